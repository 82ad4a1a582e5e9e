//! Drives clients side by side for a while, and says how fast each unit of work was.
//!
//! Every client has a connection of its own and does one unit after the other, without pauses. What is done while the
//! servers warm up is not counted. There are two ways to drive them:
//!
//! - [`drive`]: each client is a thread. Right for work of many steps, by as many clients as may meet.
//! - [`drive_many`]: a few threads, each of which serves whichever of its connections has an answer. Right for a
//!   thousand connections: as threads they would measure how this machine switches between a thousand clients, which in
//!   earnest are elsewhere.

use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicU8, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::error::BenchError;
use crate::readiness::Readiness;

/// As much as threads usually have: statements of the library run on it. What is not touched costs nothing.
const CLIENT_STACK_BYTES: usize = 2 << 20;

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

/// Which work counts, and how the server's share of it is known.
pub struct Measurement<'m> {
    /// Kinds of work, numbered from 0.
    pub kinds: usize,
    /// Work goes on for so long before it counts.
    pub warm_up: Duration,
    /// How long it counts.
    pub time: Duration,
    /// The processor time that the server has used so far.
    pub server_time: &'m dyn Fn() -> Duration,
}

/// Runs `unit` on each of `clients`, again and again. `unit` returns the kind of what it did.
pub fn drive<C: Send>(
    clients: Vec<C>,
    measurement: &Measurement<'_>,
    unit: impl Fn(&mut C) -> Result<usize, BenchError> + Sync,
) -> Result<Driven, BenchError> {
    run_threads(clients, measurement, |mut client, phase, latencies| {
        loop {
            let (seen, started) = (phase.load(Ordering::Relaxed), Instant::now());
            if seen == STOP {
                return Ok(());
            }
            let kind = unit(&mut client)?;
            latencies.note(seen, kind, started);
        }
    })
}

/// A client whose units are a request and an answer.
pub trait Requester: AsRawFd + Send {
    /// Sends the next request, of the kind that is returned.
    fn send(&mut self) -> Result<usize, BenchError>;
    /// Receives the answer, of which at least a part is there.
    fn receive(&mut self) -> Result<(), BenchError>;
}

/// Keeps a request under way on each of `clients`, with one thread for each core.
pub fn drive_many<C: Requester>(
    clients: Vec<C>,
    measurement: &Measurement<'_>,
) -> Result<Driven, BenchError> {
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let mut groups: Vec<Vec<C>> = (0..threads.min(clients.len()))
        .map(|_| Vec::new())
        .collect();
    for (number, client) in clients.into_iter().enumerate() {
        groups[number % threads].push(client);
    }
    run_threads(groups, measurement, serve_group)
}

/// One thread of [`drive_many`].
fn serve_group<C: Requester>(
    mut clients: Vec<C>,
    phase: &AtomicU8,
    latencies: &mut Latencies,
) -> Result<(), BenchError> {
    let mut ready = Readiness::new().map_err(BenchError::from_display)?;
    let mut under_way = Vec::with_capacity(clients.len());
    for (number, client) in clients.iter_mut().enumerate() {
        ready
            .add(client.as_raw_fd(), number)
            .map_err(BenchError::from_display)?;
        let started = Instant::now();
        under_way.push((client.send()?, started));
    }
    let mut waiting = clients.len();
    while waiting > 0 {
        for number in ready.wait().map_err(BenchError::from_display)? {
            let (client, (kind, started)) = (&mut clients[number], under_way[number]);
            client.receive()?;
            // One unit of each client began in the phase before.
            let seen = phase.load(Ordering::Relaxed);
            latencies.note(seen, kind, started);
            if seen == STOP {
                waiting -= 1;
                continue;
            }
            let started = Instant::now();
            under_way[number] = (client.send()?, started);
        }
    }
    Ok(())
}

/// What one thread has measured: latencies in microseconds, by kind.
struct Latencies(Vec<Vec<u32>>);

impl Latencies {
    /// Notes a unit that ends now, if it counts.
    fn note(&mut self, phase: u8, kind: usize, started: Instant) {
        if phase == COUNT
            && let Some(list) = self.0.get_mut(kind)
        {
            list.push(u32::try_from(started.elapsed().as_micros()).unwrap_or(u32::MAX));
        }
    }
}

/// Runs `work` on each of `parts`, each in a thread of its own, and tells them which phase it is.
fn run_threads<P: Send>(
    parts: Vec<P>,
    measurement: &Measurement<'_>,
    work: impl Fn(P, &AtomicU8, &mut Latencies) -> Result<(), BenchError> + Sync,
) -> Result<Driven, BenchError> {
    let Measurement {
        kinds,
        warm_up,
        time,
        server_time,
    } = *measurement;
    let phase = AtomicU8::new(WARM_UP);
    thread::scope(|scope| {
        let (phase, work) = (&phase, &work);
        let mut threads = Vec::with_capacity(parts.len());
        for part in parts {
            let thread = thread::Builder::new()
                .stack_size(CLIENT_STACK_BYTES)
                .spawn_scoped(scope, move || {
                    let mut latencies = Latencies(vec![Vec::new(); kinds]);
                    work(part, phase, &mut latencies).map(|()| latencies.0)
                })
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
