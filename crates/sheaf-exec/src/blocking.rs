//! Work that blocks, on a thread that has other work to do.
//!
//! The tasks of all statements share a few worker threads. A wait for a lock, for memory or for the disk must not keep
//! one of them from the others.

/// Does something that blocks, such as a long wait, inside of a plan. A worker thread that does is replaced meanwhile,
/// so that other statements go on.
pub fn blocking<T>(work: impl FnOnce() -> T) -> T {
    use tokio::runtime::{Handle, RuntimeFlavor};
    let is_worker = Handle::try_current()
        .is_ok_and(|handle| handle.runtime_flavor() == RuntimeFlavor::MultiThread);
    match is_worker {
        true => tokio::task::block_in_place(work),
        false => work(),
    }
}
