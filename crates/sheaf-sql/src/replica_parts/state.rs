//! What the replica's threads do, as statements of others see it.

use std::sync::{Mutex, MutexGuard};
use std::time::{SystemTime, UNIX_EPOCH};

use sheaf_binlog::gtid::{Gtid, GtidSet};

use super::lock;
use super::source::{KeptSource, Password, Position};

/// Why a thread has stopped, or waits.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ThreadError {
    /// 0: nothing is wrong.
    pub(crate) code: u16,
    pub(crate) message: String,
    /// Microseconds since 1970; 0 where nothing is wrong.
    pub(crate) time_us: u64,
}

impl ThreadError {
    pub(crate) fn now(code: u16, message: impl Into<String>) -> ThreadError {
        ThreadError {
            code,
            message: message.into(),
            time_us: now_us(),
        }
    }
}

/// A connection to the source, as it is now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Connection {
    #[default]
    None,
    Connecting,
    Connected,
}

/// What a thread has done last and does now, for performance_schema.
#[derive(Clone, Debug, Default)]
pub(crate) struct Worked {
    /// The transaction that was done last; empty: none.
    pub(crate) last: String,
    pub(crate) last_committed_us: u64,
    pub(crate) last_began_us: u64,
    pub(crate) last_ended_us: u64,
    /// The one that is being done; empty: none.
    pub(crate) now: String,
    pub(crate) now_committed_us: u64,
    pub(crate) now_began_us: u64,
}

impl Worked {
    /// A transaction begins.
    pub(crate) fn begin(&mut self, name: String, committed_us: u64) {
        self.now = name;
        self.now_committed_us = committed_us;
        self.now_began_us = now_us();
    }

    /// It has ended.
    pub(crate) fn end(&mut self) {
        self.last = std::mem::take(&mut self.now);
        self.last_committed_us = std::mem::take(&mut self.now_committed_us);
        self.last_began_us = std::mem::take(&mut self.now_began_us);
        self.last_ended_us = now_us();
    }

    /// It comes again.
    pub(crate) fn give_up(&mut self) {
        self.now.clear();
        self.now_committed_us = 0;
        self.now_began_us = 0;
    }
}

/// All that is known.
#[derive(Clone, Debug, Default)]
pub(crate) struct Known {
    /// `None`: the server is no replica.
    pub(crate) kept: Option<KeptSource>,
    pub(crate) password: Password,
    pub(crate) connection: Connection,
    pub(crate) source_server_id: u32,
    pub(crate) source_uuid: String,
    /// Seconds by which the source's clock is ahead.
    pub(crate) clock_ahead: i64,
    /// How far events were received.
    pub(crate) read_file: String,
    pub(crate) read_position: u64,
    pub(crate) retrieved: GtidSet,
    pub(crate) io_error: ThreadError,
    pub(crate) sql_error: ThreadError,
    pub(crate) heartbeats: u64,
    pub(crate) last_heartbeat_us: u64,
    pub(crate) received: Worked,
    pub(crate) applied: Worked,
    /// When the source made what is being applied, in seconds since 1970; 0: all that was received is applied.
    pub(crate) applying_time: u32,
    /// What the SQL thread waits for or does.
    pub(crate) sql_state: &'static str,
    /// How often a transaction was tried again.
    pub(crate) retries: u64,
    /// Groups of events to leave out (sql_replica_skip_counter).
    pub(crate) skip: u64,
    /// Where the applier stops.
    pub(crate) until: Option<Until>,
}

/// Where the applier stops by itself (START REPLICA UNTIL).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Until {
    BeforeGtids(GtidSet),
    AfterGtids(GtidSet),
    Place { file: String, position: u64 },
}

impl Until {
    /// Whether the applier is there, having come to this position.
    pub(crate) fn is_reached(&self, position: &Position, executed: &GtidSet) -> bool {
        match self {
            Until::BeforeGtids(_) => false,
            Until::AfterGtids(set) => set.is_subset(executed),
            Until::Place {
                file,
                position: last,
            } => place(&position.file, position.position) >= place(file, *last),
        }
    }

    /// Whether the applier is not to begin with this transaction.
    pub(crate) fn is_in_front_of(&self, gtid: Option<Gtid>) -> bool {
        match (self, gtid) {
            (Until::BeforeGtids(set), Some(gtid)) => set.contains(gtid),
            _ => false,
        }
    }
}

/// A position in the log of a source, to be compared with others: the numbers of files grow, also in digits.
pub(crate) fn place(file: &str, position: u64) -> (usize, &str, u64) {
    (file.len(), file, position)
}

/// See the [module](self).
#[derive(Default)]
pub(crate) struct ReplicaState(Mutex<Known>);

impl ReplicaState {
    /// All of it, as of now.
    pub(crate) fn get(&self) -> Known {
        self.lock().clone()
    }

    pub(crate) fn change<T>(&self, change: impl FnOnce(&mut Known) -> T) -> T {
        change(&mut self.lock())
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        lock(&self.0)
    }
}

pub(crate) fn now_us() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.map_or(0, |now| u64::try_from(now.as_micros()).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_applier_stops_at_a_place_or_at_transactions() {
        let set = |text: &str| text.parse::<GtidSet>().unwrap();
        let server = "3e11fa47-71ca-11e1-9e33-c80aa9429562";
        let at = |file: &str, place: u64| Position {
            file: file.into(),
            position: place,
            ..Position::default()
        };
        let until = Until::Place {
            file: "binlog.999999".into(),
            position: 200,
        };
        for (file, place, is_there) in [
            ("binlog.999998", 900, false),
            ("binlog.999999", 199, false),
            ("binlog.999999", 200, true),
            ("binlog.1000000", 4, true),
        ] {
            assert_eq!(
                until.is_reached(&at(file, place), &GtidSet::new()),
                is_there
            );
        }
        let until = Until::AfterGtids(set(&format!("{server}:3-5")));
        let executed = |last: u64| set(&format!("{server}:1-{last}"));
        assert!(!until.is_reached(&at("a", 4), &executed(4)));
        assert!(until.is_reached(&at("a", 4), &executed(5)));
        let until = Until::BeforeGtids(set(&format!("{server}:3-5")));
        assert!(!until.is_reached(&at("a", 4), &executed(5)));
        let gtid = |number: u64| Gtid::new(server.parse().unwrap(), number);
        assert!(until.is_in_front_of(gtid(3)) && !until.is_in_front_of(gtid(2)));
        assert!(!until.is_in_front_of(None));
    }
}
