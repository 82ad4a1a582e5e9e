//! Threads, locks, atomics and time. (Skeleton.)

pub use std::sync::atomic;
pub use std::thread;
