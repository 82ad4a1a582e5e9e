//! The buffer pool: pages of the data file in a fixed number of frames.
//!
//! | file | what it holds |
//! |---|---|
//! | [`buffer_pool`] | what the rest of the crate calls: fetch, flush, extend, discard |
//! | [`page_table`] | one atomic word for every page on disk: where it is, its latch, what has changed |
//! | [`guard`] | what may be done with a page, by the type of its guard |
//! | [`latch`] | transitions of a page's word, and waiting for them |
//! | [`optimistic_read`] | reading a page that another thread may change meanwhile |
//! | [`page_read`] | a read of pages into frames |
//! | [`prefetch`] | starts reads of pages that will be wanted soon |
//! | [`eviction`] | which page makes room: second chance, with resistance to scans |
//! | [`passing_pages`] | what stays of a scan that is larger than the pool |
//! | [`write_back`] | dirty pages reach the disk in batches |
//! | [`doublewrite`] | a copy of each page before it is written in place, against torn pages |
//! | [`pool_core`] | the state that operations in flight need when they complete |

pub(crate) mod buffer_pool;
pub(crate) mod doublewrite;
pub(crate) mod eviction;
pub(crate) mod guard;
pub(crate) mod latch;
pub(crate) mod optimistic_read;
pub(crate) mod page_read;
pub(crate) mod page_table;
pub(crate) mod passing_pages;
pub(crate) mod pool_core;
pub(crate) mod prefetch;
pub(crate) mod write_back;
