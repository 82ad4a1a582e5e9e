//! The followers that have registered (COM_REGISTER_SLAVE): what SHOW REPLICAS lists.
//!
//! A follower is listed while its connection lasts. A server that registers once more takes its own place, so that what
//! a broken connection has left is not in the list twice.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Names of a follower, of its user and its password, in characters: MySQL's limits.
const MAX_HOST_BYTES: usize = 255;
const MAX_USER_BYTES: usize = 96;
const MAX_PASSWORD_BYTES: usize = 32;

/// What a follower says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replica {
    pub server_id: u32,
    pub host: String,
    pub port: u16,
    /// Empty if it has not said any.
    pub(crate) uuid: String,
}

/// Why what a follower says of itself is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WrongReplica {
    /// It ends too early.
    Malformed,
    /// A name is too long or not whole: which one.
    TooLong(&'static str),
    /// The numbers at its end are not there.
    Wrong,
}

impl Replica {
    /// Reads the body of COM_REGISTER_SLAVE:
    ///
    /// ```text
    ///   | server (4) | length (1), host | length (1), user | length (1), password | port (2) | rank (4) | source (4) |
    /// ```
    ///
    /// # Errors
    /// It is none.
    pub fn read(body: &[u8]) -> Result<Replica, WrongReplica> {
        let (server_id, mut rest) = body
            .split_first_chunk()
            .filter(|(_, rest)| !rest.is_empty())
            .ok_or(WrongReplica::Malformed)?;
        let mut name = |limit: usize, what: &'static str| {
            let (length, behind) = rest.split_first().ok_or(WrongReplica::TooLong(what))?;
            let length = usize::from(*length);
            let (name, behind) = behind
                .split_at_checked(length)
                .filter(|_| length <= limit)
                .ok_or(WrongReplica::TooLong(what))?;
            rest = behind;
            Ok(String::from_utf8_lossy(name).into_owned())
        };
        let host = name(MAX_HOST_BYTES, "report-host")?;
        name(MAX_USER_BYTES, "report-user")?;
        name(MAX_PASSWORD_BYTES, "report-password")?;
        let numbers = rest.first_chunk::<10>().ok_or(WrongReplica::Wrong)?;
        Ok(Replica {
            server_id: u32::from_le_bytes(*server_id),
            host,
            port: u16::from_le_bytes([numbers[0], numbers[1]]),
            uuid: String::new(),
        })
    }
}

/// The list.
#[derive(Debug, Default)]
pub(crate) struct Replicas {
    /// By their numbers, with the numbers of their sessions.
    known: Mutex<BTreeMap<u32, (u64, Replica)>>,
}

/// Takes a follower off the list when its session ends.
#[derive(Debug)]
pub(crate) struct Registration {
    replicas: Arc<Replicas>,
    session: u64,
}

impl Replicas {
    /// Lists a follower until the registration is dropped.
    pub(crate) fn register(self: &Arc<Self>, session: u64, replica: Replica) -> Registration {
        let mut known = self.lock();
        known.retain(|_, (of, _)| *of != session);
        known.insert(replica.server_id, (session, replica));
        Registration {
            replicas: Arc::clone(self),
            session,
        }
    }

    /// The followers by their numbers.
    pub(crate) fn list(&self) -> Vec<Replica> {
        let known = self.lock();
        known.values().map(|(_, replica)| replica.clone()).collect()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<u32, (u64, Replica)>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        let session = self.session;
        self.replicas.lock().retain(|_, (of, _)| *of != session);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn body(names: [&str; 3]) -> Vec<u8> {
        let mut body = 77_u32.to_le_bytes().to_vec();
        for name in names {
            body.push(name.len() as u8);
            body.extend_from_slice(name.as_bytes());
        }
        body.extend_from_slice(&3306_u16.to_le_bytes());
        body.extend_from_slice(&[0; 8]);
        body
    }

    #[test]
    fn what_a_follower_says_is_read_and_half_of_it_is_refused() {
        let whole = body(["h1", "uu", "pp"]);
        let replica = Replica::read(&whole).expect("it is whole");
        assert_eq!(
            (replica.server_id, replica.host.as_str(), replica.port),
            (77, "h1", 3306)
        );
        for (end, wrong) in [
            (0, WrongReplica::Malformed),
            (4, WrongReplica::Malformed),
            (6, WrongReplica::TooLong("report-host")),
            (8, WrongReplica::TooLong("report-user")),
            (12, WrongReplica::TooLong("report-password")),
            (whole.len() - 1, WrongReplica::Wrong),
        ] {
            assert_eq!(Replica::read(&whole[..end]), Err(wrong), "{end}");
        }
        let long = body(["", "", &"p".repeat(33)]);
        let wrong = WrongReplica::TooLong("report-password");
        assert_eq!(Replica::read(&long), Err(wrong));
    }

    #[test]
    fn a_follower_is_listed_once_and_while_its_session_lasts() {
        let replicas = Arc::new(Replicas::default());
        let replica = Replica::read(&body(["h1", "", ""])).expect("it is whole");
        let first = replicas.register(1, replica.clone());
        let second = replicas.register(2, replica.clone());
        assert_eq!(replicas.list(), std::slice::from_ref(&replica));
        // The place is the second one's by now.
        drop(first);
        assert_eq!(replicas.list(), [replica]);
        drop(second);
        assert!(replicas.list().is_empty());
    }
}
