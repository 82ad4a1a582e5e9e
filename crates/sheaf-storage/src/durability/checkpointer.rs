//! The checkpointer: writes dirty pages now and then, so that recovery has little to do and the log stays short.
//!
//! A checkpoint is due when the log has grown by a share of its limit since the last one. It is also due when nothing
//! has changed for a while, so that the next start after a kill finds nothing to recover.
//!
//! The work is a step, [`Storage::checkpoint_step`]; the thread here only drives it.
//!
//! **Pace.** If all dirty pages were written as fast as the device takes them, every commit would wait behind them. So
//! a checkpoint that no thread waits for is spread out: it writes a few pages, and pauses while it is ahead of the log.
//! It is ahead while the share of the pages that is written exceeds the share that the log has used of the room for its
//! growth during the checkpoint. It takes a minute at most. A thread that needs the checkpoint makes it hurry.
//!
//! **How much log recovery has to read** is bounded by the log's limit and by `recovery_time_goal`. A checkpoint is due
//! early enough that redo takes no longer than this goal. What redo reads then is what was logged since the last
//! checkpoint, and what is logged until the next one is complete. The speed of redo is assumed to be that of a slow
//! disk, until a start has measured it.

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
    /// As fast as the device takes them: a thread waits.
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
            // Threads that change or close the storage get the error as well.
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
    /// written, and `hurries` whether a thread waits by now.
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
