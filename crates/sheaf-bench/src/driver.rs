//! Drives clients side by side for a while, and says how fast each unit of work was.
//!
//! Every client is a thread with a connection of its own that does one unit after the other, without pauses. What is
//! done while the servers warm up is not counted.

use std::sync::atomic::{AtomicU8, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::error::BenchError;

/// A client does little with its stack, and there may be a thousand of them.
const CLIENT_STACK_BYTES: usize = 256 << 10;

/// What clients are told, in this order.
const WARM_UP: u8 = 0;
const COUNT: u8 = 1;
const STOP: u8 = 2;

/// What the clients of one run did, by kind of work.
#[derive(Debug, Default, Clone)]
pub struct Driven {
    /// Latencies of each kind in microseconds, ascending.
    pub latencies_us: Vec<Vec<u32>>,
    /// How long was counted.
    pub elapsed: Duration,
    /// Processor time that the server used meanwhile.
    pub server: Duration,
}

impl Driven {
    /// Units of all kinds.
    pub fn count(&self) -> usize {
        self.latencies_us.iter().map(Vec::len).sum()
    }

    /// Units of all kinds in a second.
    pub fn per_second(&self) -> f64 {
        self.count() as f64 / self.elapsed.as_secs_f64().max(1e-9)
    }

    /// Processor time of the server for a unit, in microseconds.
    pub fn server_us(&self) -> f64 {
        self.server.as_secs_f64() * 1e6 / self.count().max(1) as f64
    }

    /// The latency in milliseconds that `share` of the units of a kind do not exceed; NaN if there were none.
    pub fn quantile_ms(&self, kind: usize, share: f64) -> f64 {
        let sorted = self.latencies_us.get(kind).map_or(&[][..], Vec::as_slice);
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a share of a length"
        )]
        let position = (sorted.len() as f64 * share) as usize;
        sorted
            .get(position.min(sorted.len().saturating_sub(1)))
            .map_or(f64::NAN, |&latency| f64::from(latency) / 1e3)
    }
}

/// Runs `unit` on each of `clients`, again and again: for `warm_up`, and then for `time`, which counts. `unit` returns
/// the kind of what it did, below `kinds`; `server_time` the processor time that the server has used so far.
pub fn drive<C: Send>(
    clients: Vec<C>,
    kinds: usize,
    warm_up: Duration,
    time: Duration,
    server_time: impl Fn() -> Duration,
    unit: impl Fn(&mut C) -> Result<usize, BenchError> + Sync,
) -> Result<Driven, BenchError> {
    let phase = AtomicU8::new(WARM_UP);
    thread::scope(|scope| {
        let (phase, unit) = (&phase, &unit);
        let mut threads = Vec::with_capacity(clients.len());
        for mut client in clients {
            let work = move || -> Result<Vec<Vec<u32>>, BenchError> {
                let mut latencies = vec![Vec::new(); kinds];
                loop {
                    let (seen, started) = (phase.load(Ordering::Relaxed), Instant::now());
                    if seen == STOP {
                        return Ok(latencies);
                    }
                    let kind = unit(&mut client)?;
                    if seen == COUNT
                        && let Some(list) = latencies.get_mut(kind)
                    {
                        list.push(u32::try_from(started.elapsed().as_micros()).unwrap_or(u32::MAX));
                    }
                }
            };
            let thread = thread::Builder::new()
                .stack_size(CLIENT_STACK_BYTES)
                .spawn_scoped(scope, work)
                .map_err(BenchError::from_display);
            match thread {
                Ok(thread) => threads.push(thread),
                Err(error) => {
                    phase.store(STOP, Ordering::Relaxed);
                    return Err(error);
                }
            }
        }
        thread::sleep(warm_up);
        let (started, used) = (Instant::now(), server_time());
        phase.store(COUNT, Ordering::Relaxed);
        thread::sleep(time);
        let (elapsed, server) = (started.elapsed(), server_time().saturating_sub(used));
        phase.store(STOP, Ordering::Relaxed);
        let mut driven = Driven {
            latencies_us: vec![Vec::new(); kinds],
            elapsed,
            server,
        };
        for thread in threads {
            let latencies = thread.join().unwrap_or_else(|_| {
                Err(BenchError::Other(
                    "a client panicked; its message is above".into(),
                ))
            })?;
            for (all, some) in driven.latencies_us.iter_mut().zip(latencies) {
                all.extend(some);
            }
        }
        for latencies in &mut driven.latencies_us {
            latencies.sort_unstable();
        }
        Ok(driven)
    })
}
