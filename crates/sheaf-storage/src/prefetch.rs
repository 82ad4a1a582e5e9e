//! Prefetch: start reading pages that will be wanted soon. (Skeleton.)

/// What a call of prefetch found and did.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PrefetchSummary {
    /// Pages that were in memory, or on their way.
    pub resident: usize,
    /// Pages for which a read was started.
    pub requested_pages: usize,
    /// Read requests they were merged into.
    pub requests: usize,
}
