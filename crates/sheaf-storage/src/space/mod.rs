//! The data file: pages, and the trees they belong to.
//!
//! | file | what it holds |
//! |---|---|
//! | [`file_header`] | page 0: what the file is, where its fixed trees begin |
//! | [`extent`] | which pages belong to which tree |
//! | [`orphaned_pages`] | pages that are marked as used and belong to no tree |

pub(crate) mod extent;
pub(crate) mod file_header;
pub(crate) mod orphaned_pages;
