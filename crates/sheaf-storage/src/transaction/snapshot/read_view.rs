//! What a reader may see.

use std::sync::Arc;

use crate::error::Result;
use crate::page::Lsn;
use crate::transaction::snapshot::registry::{Snapshot, SnapshotRegistry};
use crate::transaction::snapshot::status::StatusCell;

/// What a reader may see of a tree: what had committed when its snapshot was taken, and the changes of its own
/// transaction; or simply what is there now, committed or not. Cheap to clone: all clones share one snapshot, which
/// lives as long as the last of them.
#[derive(Clone)]
pub struct ReadView(Option<Arc<View>>);

struct View {
    snapshot: Snapshot,
    /// The reader's own transaction, whose changes it sees.
    own: Option<Arc<StatusCell>>,
}

impl ReadView {
    /// Whether both are clones of one view. Of what is there now two reads may see different states, of which one is as
    /// right as the other.
    pub fn is_same(&self, other: &ReadView) -> bool {
        match (&self.0, &other.0) {
            (None, None) => true,
            (Some(own), Some(other)) => Arc::ptr_eq(own, other),
            _ => false,
        }
    }

    /// What is there now, of finished and unfinished transactions alike. For callers that hold a lock that keeps
    /// writers away, for locking reads once they have their locks, and for maintenance.
    pub fn newest() -> ReadView {
        ReadView(None)
    }

    /// A view of what has committed by now, plus what `own` has changed and will change.
    pub(crate) fn take(
        registry: &Arc<SnapshotRegistry>,
        own: Option<Arc<StatusCell>>,
    ) -> Result<ReadView> {
        let snapshot = registry.take()?;
        Ok(ReadView(Some(Arc::new(View { snapshot, own }))))
    }

    /// As [`take`](Self::take), of what had committed at `lsn`, durable or not. `None`: as
    /// [`SnapshotRegistry::take_ahead`].
    pub(crate) fn take_ahead(
        registry: &Arc<SnapshotRegistry>,
        own: Arc<StatusCell>,
        lsn: Lsn,
    ) -> Result<Option<ReadView>> {
        let snapshot = registry.take_ahead(lsn)?;
        let own = Some(own);
        Ok(snapshot.map(|snapshot| ReadView(Some(Arc::new(View { snapshot, own })))))
    }

    /// Whether this is [`newest`](Self::newest).
    #[inline]
    pub fn is_newest(&self) -> bool {
        self.0.is_none()
    }

    /// The snapshot's timestamp; none for [`newest`](Self::newest).
    pub fn timestamp(&self) -> Option<Lsn> {
        self.0.as_ref().map(|view| view.snapshot.lsn())
    }

    /// Whether the view shows what this transaction did.
    #[inline]
    pub(crate) fn sees(&self, writer: &Arc<StatusCell>) -> bool {
        match &self.0 {
            None => true,
            Some(view) => {
                writer.is_visible_at(view.snapshot.lsn())
                    || view
                        .own
                        .as_ref()
                        .is_some_and(|own| Arc::ptr_eq(own, writer))
            }
        }
    }
}

impl ReadView {
    /// Whether the view sees something else than what the transaction left on a page. (What was rolled back is not
    /// there any more.)
    #[inline]
    pub(crate) fn hides(&self, writer: &Arc<StatusCell>) -> bool {
        !self.sees(writer) && !writer.is_rolled_back()
    }
}

impl std::fmt::Debug for ReadView {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.0 {
            None => f.write_str("newest"),
            Some(view) => match &view.own {
                Some(own) => write!(f, "{} and transaction {}", view.snapshot.lsn().0, own.id()),
                None => write!(f, "{}", view.snapshot.lsn().0),
            },
        }
    }
}
