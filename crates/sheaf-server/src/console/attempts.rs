//! Attempts to log in that have failed. After some of them, each next one has to wait longer.
//!
//! They are counted by user and address, so that guesses of one user's password keep no other user out. Few passwords
//! are checked at the same time, because that is made to take long.
//!
//! What is known is bounded, also for an address, so that others are not forgotten for it. Beyond the bounds the least
//! is forgotten: the fewest failures, and the oldest of these. So many names keep nobody out, and a user whose password
//! is guessed is still known. All loopback addresses are one, because a client on this machine may choose among them.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// So many may fail without a wait.
const FREE_ATTEMPTS: u32 = 5;
const FIRST_WAIT: Duration = Duration::from_secs(1);
const LONGEST_WAIT: Duration = Duration::from_secs(60);
/// Failures are forgotten after this.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(15 * 60);
/// Users and addresses whose failures are known.
const MAX_KNOWN: usize = 1024;
/// Users of one address whose failures are known.
const MAX_KNOWN_OF_ADDRESS: usize = 256;
/// Passwords that are checked at the same time.
const MAX_CHECKS: usize = 4;

#[derive(Clone, Copy)]
struct Failures {
    count: u32,
    last: Instant,
}

impl Failures {
    /// What an attempt at this time still has to wait.
    fn wait(&self, now: Instant) -> Option<Duration> {
        let doublings = self.count.checked_sub(FREE_ATTEMPTS)?;
        let wait = FIRST_WAIT
            .saturating_mul(1 << doublings.min(6))
            .min(LONGEST_WAIT);
        let left = (self.last + wait).saturating_duration_since(now);
        (!left.is_zero()).then_some(left)
    }
}

#[derive(Default)]
struct State {
    failures: HashMap<(IpAddr, String), Failures>,
    checks: usize,
}

impl State {
    /// Forgets the least, if another user of an address would be too many.
    fn make_room(&mut self, address: IpAddr) {
        let is_of = |key: &&(IpAddr, String)| key.0 == address;
        let is_address_full = self.failures.keys().filter(is_of).count() >= MAX_KNOWN_OF_ADDRESS;
        if !is_address_full && self.failures.len() < MAX_KNOWN {
            return;
        }
        let all = self.failures.iter();
        let least = all
            .filter(|((other, _), _)| !is_address_full || *other == address)
            .min_by_key(|(_, failures)| (failures.count, failures.last))
            .map(|(key, _)| key.clone());
        if let Some(least) = least {
            self.failures.remove(&least);
        }
    }
}

/// See the module's comment.
#[derive(Default)]
pub(super) struct Attempts(Mutex<State>);

impl Attempts {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Checks a password, unless it has to wait. The error is how long.
    pub(super) fn check<T, E>(
        &self,
        (address, user): (IpAddr, &str),
        now: Instant,
        check: impl FnOnce() -> Result<T, E>,
    ) -> Result<Result<T, E>, Duration> {
        let address = match address.is_loopback() {
            true => IpAddr::V4(Ipv4Addr::LOCALHOST),
            false => address,
        };
        let key = (address, user.to_string());
        {
            let mut state = self.lock();
            state.failures.retain(|_, failures| {
                now.saturating_duration_since(failures.last) < FORGOTTEN_AFTER
            });
            let known = state.failures.get(&key);
            if let Some(wait) = known.and_then(|failures| failures.wait(now)) {
                return Err(wait);
            }
            let is_new = known.is_none();
            if state.checks >= MAX_CHECKS {
                return Err(FIRST_WAIT);
            }
            if is_new {
                state.make_room(address);
            }
            // It counts as a failure until it is none, so that many at the same time are no way around.
            let failures = state.failures.entry(key.clone()).or_insert(Failures {
                count: 0,
                last: now,
            });
            failures.count += 1;
            failures.last = now;
            state.checks += 1;
        }
        let _checked = Checked(self);
        let outcome = check();
        if outcome.is_ok() {
            self.lock().failures.remove(&key);
        }
        Ok(outcome)
    }
}

/// A check that has ended, be it by a panic.
struct Checked<'a>(&'a Attempts);

impl Drop for Checked<'_> {
    fn drop(&mut self) {
        self.0.lock().checks -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

    #[test]
    fn who_fails_has_to_wait() {
        let attempts = Attempts::default();
        let began = Instant::now();
        let fail = |user, at| attempts.check((HERE, user), at, || Err::<(), ()>(()));
        let pass = |user, at| attempts.check((HERE, user), at, || Ok::<(), ()>(()));
        for _ in 0..FREE_ATTEMPTS {
            assert_eq!(fail("a", began), Ok(Err(())));
        }
        assert_eq!(pass("a", began), Err(FIRST_WAIT));
        assert_eq!(pass("b", began), Ok(Ok(())));
        let later = began + FIRST_WAIT;
        assert_eq!(fail("a", later), Ok(Err(())));
        assert_eq!(pass("a", later), Err(2 * FIRST_WAIT));
        for round in 1..100 {
            let _ = fail("a", later + round * LONGEST_WAIT);
        }
        let last = later + 99 * LONGEST_WAIT;
        assert_eq!(pass("a", last), Err(LONGEST_WAIT));
        assert_eq!(pass("a", last + LONGEST_WAIT), Ok(Ok(())));
        assert_eq!(fail("a", last + LONGEST_WAIT), Ok(Err(())));
        assert_eq!(pass("a", last + LONGEST_WAIT), Ok(Ok(())));
    }

    #[test]
    fn what_is_known_is_bounded_and_keeps_nobody_out() {
        let attempts = Attempts::default();
        let began = Instant::now();
        let fail = |address: IpAddr, user: &str, at| {
            attempts.check((address, user), at, || Err::<(), ()>(()))
        };
        for _ in 0..=FREE_ATTEMPTS {
            let _ = fail(HERE, "guessed", began);
        }
        assert_eq!(fail(HERE, "guessed", began), Err(FIRST_WAIT));
        // The other address of this machine is the same one.
        let there = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 2));
        for user in 0..2 * MAX_KNOWN {
            assert_eq!(fail(there, &user.to_string(), began), Ok(Err(())));
        }
        assert_eq!(attempts.lock().failures.len(), MAX_KNOWN_OF_ADDRESS);
        assert_eq!(fail(HERE, "guessed", began), Err(FIRST_WAIT));
        let pass = attempts.check((HERE, "new"), began, || Ok::<(), ()>(()));
        assert_eq!(pass, Ok(Ok(())));
        for host in 0..2 * MAX_KNOWN as u32 {
            let address = IpAddr::V4(Ipv4Addr::from_bits(0x0A00_0000 + host));
            assert_eq!(fail(address, "a", began), Ok(Err(())));
        }
        assert_eq!(attempts.lock().failures.len(), MAX_KNOWN);
        assert_eq!(fail(HERE, "guessed", began), Err(FIRST_WAIT));
        assert_eq!(fail(HERE, "b", began + FORGOTTEN_AFTER), Ok(Err(())));
        assert_eq!(attempts.lock().failures.len(), 1);
    }
}
