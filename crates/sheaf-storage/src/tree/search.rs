//! Descents: from the root to the node of some level that covers a key.
//!
//! Readers go down *optimistically*: they latch nothing and write nothing shared. A page is read, the place of the
//! child in it is found, the page is validated, the child's version is read, and the parent is validated once more. So
//! the child was the right one at a moment when its version was already known. Whatever is read of the child later
//! counts if that version still holds. If any validation fails, the descent starts again at the root. (Leis et al.,
//! "Optimistic Lock Coupling", 2019; the second validation is what keeps a child that is freed and reused in between
//! from being taken for the right one.)
//!
//! After [`OPTIMISTIC_ATTEMPTS`] failures the descent latches instead, shared, each child before its parent is
//! released, and hands out the same [`NodeRef`]. While its latch is held nothing can change, so that reading and
//! validating it goes on as before and succeeds. So every reader is written once, optimistically, and terminates.
//!
//! Writers find their leaf the same way and then upgrade to an exclusive latch, which succeeds only if the version
//! still holds.

use crate::error::{Result, StorageError};
use crate::node::{Node, NodeView, PageBytes, PageImage};
use crate::page::{PAGE_SIZE, PageId, PageType, header};
use crate::pool::guard::{ExclusiveGuard, OptimisticGuard, Restart, SharedGuard};
use crate::sync;
use crate::tree::Tree;

/// Attempts without latches before a descent takes them.
const OPTIMISTIC_ATTEMPTS: usize = 8;

/// What a descent looks for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Target<'k> {
    /// The node whose fences enclose the key.
    Key(&'k [u8]),
    /// The node with the largest keys below the key.
    Before(&'k [u8]),
    /// The rightmost node.
    Last,
}

impl Target<'_> {
    /// The slot of the child to go to.
    #[inline]
    pub(super) fn child_slot<P: PageBytes>(&self, node: &NodeView<'_, P>) -> usize {
        match self {
            Target::Key(key) => node.child_slot(key),
            Target::Before(key) => node.child_slot_before(key),
            Target::Last => node.count().saturating_sub(1),
        }
    }
}

/// Where a descent came to.
pub(super) enum Descent<'p> {
    /// The node; to be validated by the caller.
    At(OptimisticGuard<'p>),
    /// The tree is not so high.
    NoSuchLevel,
    /// A page on the way was not given out.
    Stopped,
}

/// Why an attempt did not give a result.
pub(crate) enum Interruption {
    Restart,
    Error(StorageError),
}

impl From<Restart> for Interruption {
    fn from(_: Restart) -> Self {
        Interruption::Restart
    }
}

impl From<StorageError> for Interruption {
    fn from(error: StorageError) -> Self {
        Interruption::Error(error)
    }
}

/// A node for reading. What was read counts once [`validate`](Self::validate) has succeeded after it.
pub(crate) struct NodeRef<'p> {
    guard: OptimisticGuard<'p>,
    /// Keeps the node from changing, if optimism failed.
    _latch: Option<SharedGuard<'p>>,
}

impl<'p> NodeRef<'p> {
    pub(crate) fn optimistic(guard: OptimisticGuard<'p>) -> NodeRef<'p> {
        NodeRef {
            guard,
            _latch: None,
        }
    }

    #[inline]
    pub(crate) fn view(&self) -> NodeView<'_, OptimisticGuard<'p>> {
        NodeView(&self.guard)
    }

    pub(crate) fn guard(&self) -> &OptimisticGuard<'p> {
        &self.guard
    }

    #[inline]
    pub(crate) fn validate(&self) -> Result<(), Restart> {
        self.guard.validate()
    }
}

impl Tree {
    /// Tries until an attempt gives a result or an error. The attempt is told how many failed before it.
    #[inline]
    pub(crate) fn retry<T>(
        &self,
        mut attempt: impl FnMut(usize) -> Result<T, Interruption>,
    ) -> Result<T> {
        let mut failures = 0;
        loop {
            match attempt(failures) {
                Ok(result) => return Ok(result),
                Err(Interruption::Error(error)) => return Err(error),
                Err(Interruption::Restart) => {
                    failures += 1;
                    sync::spin_loop();
                }
            }
        }
    }

    /// The node of `level` (0: leaf) for `target`; none if the tree has no such level. To be validated by the caller.
    #[inline]
    pub(crate) fn find(
        &self,
        target: Target<'_>,
        level: u8,
        failures: usize,
    ) -> Result<Option<NodeRef<'_>>, Interruption> {
        if failures < OPTIMISTIC_ATTEMPTS {
            Ok(self
                .find_optimistic(target, level)?
                .map(NodeRef::optimistic))
        } else {
            let Some(latch) = self.find_shared(target, level)? else {
                return Ok(None);
            };
            let guard = self.store.pool.optimistic(latch.page_id())?;
            Ok(Some(NodeRef {
                guard,
                _latch: Some(latch),
            }))
        }
    }

    /// The leaf for `target`. To be validated by the caller.
    #[inline]
    pub(crate) fn find_leaf(
        &self,
        target: Target<'_>,
        failures: usize,
    ) -> Result<NodeRef<'_>, Interruption> {
        self.find(target, 0, failures)?.ok_or(Interruption::Restart)
    }

    #[inline]
    fn find_optimistic(
        &self,
        target: Target<'_>,
        level: u8,
    ) -> Result<Option<OptimisticGuard<'_>>, Interruption> {
        let pool = &self.store.pool;
        match self.descend(target, level, |page| pool.optimistic(page).map(Some))? {
            Descent::At(guard) => Ok(Some(guard)),
            Descent::NoSuchLevel | Descent::Stopped => Ok(None),
        }
    }

    /// Goes down without latches, through pages that `open` gives out.
    #[inline(always)]
    pub(super) fn descend<'p>(
        &self,
        target: Target<'_>,
        level: u8,
        open: impl Fn(PageId) -> Result<Option<OptimisticGuard<'p>>>,
    ) -> Result<Descent<'p>, Interruption> {
        let Some(mut guard) = open(self.root)? else {
            return Ok(Descent::Stopped);
        };
        let mut at = NodeView(&guard).level();
        if at < level {
            guard.validate()?;
            return Ok(Descent::NoSuchLevel);
        }
        while at > level {
            let view = NodeView(&guard);
            let child = view.child(target.child_slot(&view));
            guard.validate()?;
            let child_guard = match open(child) {
                Ok(Some(child_guard)) => child_guard,
                Ok(None) => {
                    guard.validate()?;
                    return Ok(Descent::Stopped);
                }
                Err(error) => {
                    // A page that was freed meanwhile may well be unreadable.
                    guard.validate()?;
                    return Err(error.into());
                }
            };
            guard.validate()?;
            let child_level = NodeView(&child_guard).level();
            if child_level != at - 1 || child_guard.u64_at(header::TREE_ID) != self.id.0 {
                child_guard.validate()?;
                return Err(self.not_a_child(child, at - 1).into());
            }
            guard = child_guard;
            at = child_level;
        }
        Ok(Descent::At(guard))
    }

    fn not_a_child(&self, page: PageId, level: u8) -> StorageError {
        self.store.malformed(
            self.id,
            page,
            format!("expected a node of level {level} of tree {}", self.id),
        )
    }

    fn check_child(&self, page: &PageImage, id: PageId, level: u8) -> Result<()> {
        let expected_type = if level == 0 {
            PageType::LEAF
        } else {
            PageType::INNER
        };
        let is_child = page[header::PAGE_TYPE] == expected_type.0
            && page[header::LEVEL] == level
            && page.u64_at(header::TREE_ID) == self.id.0;
        if is_child {
            Ok(())
        } else {
            Err(self.not_a_child(id, level))
        }
    }

    /// As [`find`](Self::find), with latches all the way.
    fn find_shared(&self, target: Target<'_>, level: u8) -> Result<Option<SharedGuard<'_>>> {
        let mut latch = self.store.pool.shared(self.root)?;
        if Node(&latch).level() < level {
            return Ok(None);
        }
        while Node(&latch).level() > level {
            let node = Node(&latch);
            let child = node.child(target.child_slot(&node.view()));
            let child_latch = self.store.pool.shared(child)?;
            self.check_child(&child_latch, child, node.level() - 1)?;
            latch = child_latch;
        }
        Ok(Some(latch))
    }

    /// The node of `level` that covers `key`, latched exclusively; none if the tree has no such level.
    #[inline]
    pub(crate) fn find_exclusive(
        &self,
        key: &[u8],
        level: u8,
    ) -> Result<Option<ExclusiveGuard<'_>>> {
        self.retry(|failures| {
            if failures < OPTIMISTIC_ATTEMPTS {
                match self.find_optimistic(Target::Key(key), level)? {
                    Some(guard) => Ok(Some(guard.upgrade()?)),
                    None => Ok(None),
                }
            } else {
                self.find_exclusive_latched(key, level)
            }
        })
    }

    /// As [`find_exclusive`](Self::find_exclusive): the parent stays latched, shared, until the node is.
    fn find_exclusive_latched(
        &self,
        key: &[u8],
        level: u8,
    ) -> Result<Option<ExclusiveGuard<'_>>, Interruption> {
        if let Some(parent) = self.find_shared(Target::Key(key), level + 1)? {
            let node = Node(&parent);
            let child = node.child(node.view().child_slot(key));
            let guard = self.store.pool.exclusive(child)?;
            self.check_child(&guard, child, level)?;
            return Ok(Some(guard));
        }
        let root = self.store.pool.exclusive(self.root)?;
        match Node(&root).level() {
            found if found == level => Ok(Some(root)),
            found if found < level => Ok(None),
            // The root was split in between.
            _ => Err(Interruption::Restart),
        }
    }

    /// A private copy of the node of `level` for `target`; none if the tree has no such level.
    pub(crate) fn copy_node(
        &self,
        target: Target<'_>,
        level: u8,
        copy: &mut PageImage,
    ) -> Result<bool> {
        self.retry(|failures| {
            let Some(node) = self.find(target, level, failures)? else {
                return Ok(false);
            };
            node.guard().copy_out(0, copy);
            node.validate()?;
            Ok(true)
        })
    }

    /// Level of the root: 0 if the tree is a single leaf.
    pub(crate) fn root_level(&self) -> Result<u8> {
        self.retry(|_| {
            let guard = self.store.pool.optimistic(self.root)?;
            let level = NodeView(&guard).level();
            guard.validate()?;
            Ok(level)
        })
    }
}

/// A page's worth of bytes on the heap.
pub(crate) fn new_page_image() -> Box<PageImage> {
    Box::new([0; PAGE_SIZE])
}
