//! What processors and the device do, and how long both together take.

use std::ops::{Add, AddAssign};

/// What of the shorter part is not hidden behind the longer one: the first pages are waited for. A scan with 0.54 s for
/// the device and 0.20 s for each of two workers took 0.59 s.
const NOT_HIDDEN: f64 = 0.25;

/// What the workers do for pages that the device reads, as a share of its time: requests, completions, checksums. A
/// multi-range read of 11,450 pages by one worker took 0.17 s of the device and 0.12 s of the processor, 0.02 of them
/// for its rows. A scan of the same pages by two workers took 0.14 s.
const COMPLETIONS: f64 = 0.5;

/// Work of one phase of a plan, in microseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Work {
    /// Of the workers, which share it: processor time, and waits for pages that were not prefetched.
    pub worker_us: f64,
    /// Of the device, which has one bandwidth for all: reads of prefetched pages.
    pub device_us: f64,
}

impl Work {
    pub(crate) fn of_workers(worker_us: f64) -> Self {
        Work {
            worker_us,
            device_us: 0.0,
        }
    }

    /// A share of it (0 to 1).
    pub(crate) fn share(self, share: f64) -> Self {
        Work {
            worker_us: self.worker_us * share,
            device_us: self.device_us * share,
        }
    }

    /// ```text
    ///   busy = (worker + device / 2) / workers
    ///   max(device, busy) + min(device, busy) / 4
    /// ```
    ///
    /// While the device reads what was requested ahead, the workers process what has arrived. The side with more to do
    /// decides.
    pub(crate) fn elapsed_us(self, workers: f64) -> f64 {
        let busy_us = (self.worker_us + COMPLETIONS * self.device_us) / workers.max(1.0);
        self.device_us.max(busy_us) + NOT_HIDDEN * self.device_us.min(busy_us)
    }

    /// What a budget is charged with: it counts all work, by device and workers alike.
    pub(crate) fn spent_us(self) -> f64 {
        self.worker_us + self.device_us
    }
}

impl Add for Work {
    type Output = Work;

    fn add(self, other: Work) -> Work {
        Work {
            worker_us: self.worker_us + other.worker_us,
            device_us: self.device_us + other.device_us,
        }
    }
}

impl AddAssign for Work {
    fn add_assign(&mut self, other: Work) {
        *self = *self + other;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workers_share_the_processor_s_part_and_the_device_has_one_bandwidth() {
        let scan = Work {
            worker_us: 100.0,
            device_us: 60.0,
        };
        assert_eq!(scan.elapsed_us(1.0), 145.0);
        assert_eq!(scan.elapsed_us(2.0), 80.0);
        assert_eq!((scan + Work::of_workers(40.0)).elapsed_us(2.0), 100.0);
    }
}
