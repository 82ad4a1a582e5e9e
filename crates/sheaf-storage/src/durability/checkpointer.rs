//! The checkpointer: writes dirty pages now and then, so that recovery has little to do and the log stays short.
//!
//! A checkpoint is due when the log has grown by a share of its limit since the last one, and when nothing has changed
//! for a while, so that the next start after a kill finds nothing to recover.
//!
//! The work is a step, [`Storage::checkpoint_step`]; the thread here only drives it.
//!
//! **Pace.** Writing all dirty pages as fast as the device takes them would make every commit wait behind them. A
//! checkpoint that nobody waits for is therefore spread out: it writes a few pages and pauses while it is ahead of the
//! log, that is, while the part of the pages that is written is larger than the part that the log has used up of the
//! room it may grow by meanwhile; and it takes a minute at most. Who needs the checkpoint makes it hurry.
//!
//! **How much log recovery has to read** is bounded by the log's limit and by `recovery_time_goal`: a checkpoint is due
//! early enough that what was logged since the last one, and is logged until the next one is complete, can be redone in
//! that time. What redo does in a second is a number for a slow disk, until a start has measured it.

use std::sync::Arc;
use std::time::Duration;

use crate::background::BackgroundWork;
use crate::error::Result;
use crate::pool::buffer_pool::BufferPool;
use crate::storage::Storage;
use crate::sync;

/// Time from one look to the next.
const INTERVAL: Duration = Duration::from_millis(500);

/// Pages that a checkpoint writes between two pauses: as many as a device writes in less than a millisecond, because
/// commits wait behind them.
const PAGES_AT_A_TIME: usize = 16;

/// A pause of a checkpoint that is ahead of the log.
const PAUSE: Duration = Duration::from_millis(5);

/// A checkpoint takes this long if the log does not grow.
const LONGEST_SWEEP: Duration = Duration::from_secs(60);

/// How fast the pages of a checkpoint are written.
#[derive(Clone, Copy)]
pub(crate) enum Pace<'p> {
    /// As fast as the device takes them: somebody waits.
    Fast,
    /// Not faster than the log grows. `pause` sleeps, and returns false if that is over for good.
    Slow { pause: &'p dyn Fn(Duration) -> bool },
}

/// Starts the thread that makes checkpoints.
pub(crate) fn start(storage: &Arc<Storage>) -> Result<BackgroundWork> {
    let mut seen = None;
    BackgroundWork::start("sheaf-checkpoint", storage, INTERVAL, move |step| {
        let pause = |pause| step.pause(pause);
        let pace = Pace::Slow { pause: &pause };
        match step.storage.checkpoint_step_at(seen, pace) {
            Ok(end) => seen = Some(end),
            // Whoever changes or closes the storage gets to know as well.
            Err(error) => tracing::debug!("no checkpoint: {error}"),
        }
        INTERVAL
    })
}

/// How far a checkpoint should be by now.
pub(crate) struct Schedule {
    began_ns: u64,
    /// What the log had written when it began.
    volume: u64,
    /// What the log may write meanwhile.
    room_bytes: u64,
}

impl Schedule {
    pub(crate) fn new(volume: u64, room_bytes: u64) -> Schedule {
        Schedule {
            began_ns: sync::monotonic_ns(),
            volume,
            room_bytes,
        }
    }

    /// Whether `written` of `total` pages are more than are due when the log has written `volume`.
    fn is_ahead(&self, written: usize, total: usize, volume: u64) -> bool {
        let done = written as f64 / total.max(1) as f64;
        let grown = volume.saturating_sub(self.volume) as f64 / self.room_bytes.max(1) as f64;
        let elapsed_ns = sync::monotonic_ns().saturating_sub(self.began_ns);
        let elapsed = elapsed_ns as f64 / LONGEST_SWEEP.as_nanos() as f64;
        written < total && done > grown.max(elapsed)
    }
}

impl BufferPool {
    /// Writes all pages that are dirty now, and makes them durable. At a slow pace, `volume` says what the log has
    /// written, and `hurries` whether somebody waits by now.
    ///
    /// # Errors
    /// As [`flush_all`](BufferPool::flush_all).
    pub(crate) fn sweep(
        &self,
        pace: Pace<'_>,
        schedule: &Schedule,
        volume: impl Fn() -> u64,
        hurries: impl Fn() -> bool,
    ) -> Result<()> {
        match pace {
            Pace::Fast => self.flush_all(),
            Pace::Slow { pause } => {
                let at_a_time = || match hurries() {
                    true => self.batch_pages(),
                    false => PAGES_AT_A_TIME,
                };
                self.write_dirty_pages(at_a_time, |written, total| {
                    while !hurries() && schedule.is_ahead(written, total, volume()) && pause(PAUSE)
                    {
                    }
                })?;
                self.sync()
            }
        }
    }
}
