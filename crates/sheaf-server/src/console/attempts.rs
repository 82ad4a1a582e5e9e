//! Attempts to log in that have failed. After some of them, each next one has to wait longer.
//!
//! They are counted by user and address, so that guesses of one user's password keep no other user out. Few passwords
//! are checked at the same time, because that is made to take long.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// So many may fail without a wait.
const FREE_ATTEMPTS: u32 = 5;
const FIRST_WAIT: Duration = Duration::from_secs(1);
const LONGEST_WAIT: Duration = Duration::from_secs(60);
/// Failures are forgotten after this.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(15 * 60);
/// Users and addresses whose failures are known. Beyond that, a login that fails and is not among them is
/// refused for as long as they are.
const MAX_KNOWN: usize = 1024;
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
            let is_full = known.is_none() && state.failures.len() >= MAX_KNOWN;
            if is_full || state.checks >= MAX_CHECKS {
                return Err(FIRST_WAIT);
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
    use std::net::Ipv4Addr;

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
    fn what_is_known_is_bounded() {
        let attempts = Attempts::default();
        let began = Instant::now();
        let fail =
            |user: usize, at| attempts.check((HERE, &user.to_string()), at, || Err::<(), ()>(()));
        for user in 0..MAX_KNOWN {
            assert_eq!(fail(user, began), Ok(Err(())));
        }
        assert_eq!(fail(MAX_KNOWN, began), Err(FIRST_WAIT));
        assert_eq!(fail(MAX_KNOWN, began + FORGOTTEN_AFTER), Ok(Err(())));
        assert_eq!(attempts.lock().failures.len(), 1);
    }
}
