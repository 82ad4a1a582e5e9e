//! Progress of long work, and the way to stop it.

/// Told about the progress of bulk loads and index builds, from several threads.
pub trait Progress: Send + Sync {
    /// A phase begins: `name` is for people ("sorting index i_l_shipdate"), `total` the units to come if known.
    fn begin(&self, name: &str, total: Option<u64>);
    /// So many units more are done.
    fn advance(&self, units: u64);
    /// True if the work should stop with `TableError::Interrupted`.
    fn is_cancelled(&self) -> bool {
        false
    }
}

/// Progress that is not watched.
pub struct NoProgress;

impl Progress for NoProgress {
    fn begin(&self, _name: &str, _total: Option<u64>) {}
    fn advance(&self, _units: u64) {}
}
