//! Events between the two threads: a queue with a limit in bytes.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

use sheaf_memory::Share;

use super::lock;

/// A wait looks so often whether its thread shall stop.
const LOOK_INTERVAL: Duration = Duration::from_millis(100);

/// What the receiver has for the applier.
pub(crate) enum Queued {
    /// The bytes of an event without their checksum, and their share of the memory. FORMAT_DESCRIPTION is as it came.
    Event { bytes: Vec<u8>, _share: Share },
    /// The connection ended: what is not complete comes again.
    Interrupted,
}

#[derive(Default)]
struct Waiting {
    events: VecDeque<Queued>,
    bytes: usize,
    /// The applier is working on what it has taken.
    is_working: bool,
    /// The applier has begun anew: the receiver has to begin at the applied position.
    is_stale: bool,
}

/// See the [module](self).
#[derive(Default)]
pub(crate) struct EventQueue {
    waiting: Mutex<Waiting>,
    changed: Condvar,
}

impl EventQueue {
    /// Waits for room, and appends. False: `stops` has become true, or the receiver has to begin anew.
    pub(crate) fn push(&self, item: Queued, limit: usize, stops: &dyn Fn() -> bool) -> bool {
        let bytes = match &item {
            Queued::Event { bytes, .. } => bytes.len(),
            Queued::Interrupted => 0,
        };
        let is_full = |waiting: &Waiting| waiting.bytes > 0 && waiting.bytes + bytes > limit;
        loop {
            let mut waiting = lock(&self.waiting);
            if waiting.is_stale {
                return false;
            }
            if !is_full(&waiting) {
                waiting.bytes += bytes;
                waiting.events.push_back(item);
                self.changed.notify_all();
                return true;
            }
            drop(waiting);
            // It may look at this queue.
            if stops() {
                return false;
            }
            let waiting = lock(&self.waiting);
            if !waiting.is_stale && is_full(&waiting) {
                drop(self.wait(waiting));
            }
        }
    }

    /// Waits for the next one. `None`: `stops` has become true.
    pub(crate) fn pop(&self, stops: &dyn Fn() -> bool) -> Option<Queued> {
        let mut waiting = lock(&self.waiting);
        waiting.is_working = false;
        self.changed.notify_all();
        loop {
            if stops() {
                return None;
            }
            if let Some(item) = waiting.events.pop_front() {
                if let Queued::Event { bytes, .. } = &item {
                    waiting.bytes -= bytes.len();
                }
                waiting.is_working = true;
                self.changed.notify_all();
                return Some(item);
            }
            waiting = self.wait(waiting);
        }
    }

    /// The applier begins: what the receiver has sent so far may have a piece of a transaction at its beginning.
    pub(crate) fn begin_applying(&self) {
        let mut waiting = lock(&self.waiting);
        waiting.events.clear();
        waiting.bytes = 0;
        waiting.is_working = false;
        waiting.is_stale = true;
        self.changed.notify_all();
    }

    /// The receiver is to connect again.
    pub(crate) fn is_stale(&self) -> bool {
        lock(&self.waiting).is_stale
    }

    /// The receiver begins: waits until the applier has taken what there is, and empties the queue. False: `stops` has
    /// become true.
    pub(crate) fn begin_receiving(
        &self,
        applies: &dyn Fn() -> bool,
        stops: &dyn Fn() -> bool,
    ) -> bool {
        let mut waiting = lock(&self.waiting);
        while applies() && (waiting.is_working || !waiting.events.is_empty()) {
            if stops() {
                return false;
            }
            waiting = self.wait(waiting);
        }
        waiting.events.clear();
        waiting.bytes = 0;
        waiting.is_stale = false;
        self.changed.notify_all();
        !stops()
    }

    /// Bytes that wait.
    pub(crate) fn bytes(&self) -> usize {
        lock(&self.waiting).bytes
    }

    /// Those that wait look whether they shall stop.
    pub(crate) fn wake(&self) {
        self.changed.notify_all();
    }

    fn wait<'w>(
        &self,
        waiting: std::sync::MutexGuard<'w, Waiting>,
    ) -> std::sync::MutexGuard<'w, Waiting> {
        let waited = self.changed.wait_timeout(waiting, LOOK_INTERVAL);
        waited.unwrap_or_else(PoisonError::into_inner).0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sheaf_memory::Budget;

    fn event(bytes: usize) -> Queued {
        Queued::Event {
            bytes: vec![0; bytes],
            _share: Budget::new(1 << 20).take_anyway(bytes),
        }
    }

    #[test]
    fn a_full_queue_takes_no_more_and_one_event_always() {
        let queue = EventQueue::default();
        let full = || true;
        assert!(
            queue.push(event(1000), 10, &full),
            "an empty queue takes any event"
        );
        assert!(!queue.push(event(1), 10, &full));
        assert!(matches!(queue.pop(&|| false), Some(Queued::Event { .. })));
        assert_eq!(queue.bytes(), 0);
        assert!(queue.pop(&|| true).is_none());
    }

    #[test]
    fn a_full_queue_asks_whether_to_stop_without_its_lock() {
        let queue = EventQueue::default();
        assert!(queue.push(event(10), 10, &|| false));
        assert!(!queue.push(event(1), 10, &|| !queue.is_stale()));
        assert_eq!(queue.bytes(), 10);
    }

    #[test]
    fn an_applier_that_begins_has_the_receiver_begin() {
        let queue = EventQueue::default();
        assert!(queue.push(event(1), 10, &|| false));
        queue.begin_applying();
        assert!(!queue.push(event(1), 10, &|| false));
        assert!(queue.begin_receiving(&|| true, &|| false));
        assert!(queue.push(event(1), 10, &|| false));
    }
}
