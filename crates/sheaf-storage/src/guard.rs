//! Page guards: the type of a guard says what may be done with a page. (Skeleton.)

use std::cmp::Ordering;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};

use crate::page::{Lsn, Page, PageId};

/// The page changed while it was read without a latch: start again.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Restart;

pub struct OptimisticGuard<'p>(PhantomData<(&'p (), *const u8)>);
pub struct SharedGuard<'p>(PhantomData<(&'p (), *const u8)>);
pub struct ExclusiveGuard<'p>(PhantomData<(&'p (), *const u8)>);

impl<'p> OptimisticGuard<'p> {
    pub fn page_id(&self) -> PageId {
        unimplemented!()
    }
    /// Reads past the end of the page give 0.
    pub fn read_u8(&self, _offset: usize) -> u8 {
        unimplemented!()
    }
    pub fn read_u16(&self, _offset: usize) -> u16 {
        unimplemented!()
    }
    pub fn read_u32(&self, _offset: usize) -> u32 {
        unimplemented!()
    }
    pub fn read_u64(&self, _offset: usize) -> u64 {
        unimplemented!()
    }
    /// Copies bytes out of the page; what would lie past its end is zero.
    pub fn copy_out(&self, _offset: usize, _into: &mut [u8]) {
        unimplemented!()
    }
    /// Compares `length` bytes of the page at `offset` with `other`, as memcmp and then by length.
    pub fn compare(&self, _offset: usize, _length: usize, _other: &[u8]) -> Ordering {
        unimplemented!()
    }
    /// Changes whenever the page may have changed or was evicted; for resuming cursors.
    pub fn version(&self) -> PageVersion {
        unimplemented!()
    }
    pub fn validate(&self) -> Result<(), Restart> {
        unimplemented!()
    }
    pub fn upgrade(self) -> Result<ExclusiveGuard<'p>, Restart> {
        unimplemented!()
    }
    pub fn to_shared(self) -> Result<SharedGuard<'p>, Restart> {
        unimplemented!()
    }
}

/// A page's version: equal versions of the same page mean equal contents.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PageVersion(pub(crate) u64);

impl<'p> SharedGuard<'p> {
    pub fn page_id(&self) -> PageId {
        unimplemented!()
    }
    pub fn version(&self) -> PageVersion {
        unimplemented!()
    }
}

impl Deref for SharedGuard<'_> {
    type Target = Page;
    fn deref(&self) -> &Page {
        unimplemented!()
    }
}

impl<'p> ExclusiveGuard<'p> {
    pub fn page_id(&self) -> PageId {
        unimplemented!()
    }
    /// The page was changed: stores the LSN and schedules the page for write-back.
    pub fn mark_dirty(&mut self, _lsn: Lsn) {
        unimplemented!()
    }
    pub fn downgrade(self) -> SharedGuard<'p> {
        unimplemented!()
    }
}

impl Deref for ExclusiveGuard<'_> {
    type Target = Page;
    fn deref(&self) -> &Page {
        unimplemented!()
    }
}

impl DerefMut for ExclusiveGuard<'_> {
    fn deref_mut(&mut self) -> &mut Page {
        unimplemented!()
    }
}
