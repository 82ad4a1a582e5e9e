//! By which method a relation is joined with those before it.

use std::rc::Rc;

use crate::access::keyed_access::LookupPath;

/// How a relation is added to the ones before it.
#[derive(Debug, Clone)]
pub(crate) enum Method {
    /// It is the first.
    First,
    /// Looked up through an index for each row so far.
    Keyed(Rc<LookupPath>),
    /// Hash join; `build_new`: the new relation is kept in memory, otherwise the rows so far.
    Hash { build_new: bool },
    /// Sort-merge join, which spills.
    Merge,
    /// Every pair of rows; `build_new` as for Hash.
    NestedLoop { build_new: bool },
}

impl Method {
    /// Whether rows come out as the rows so far come in, and in their order.
    pub(crate) fn streams(&self) -> bool {
        match self {
            Method::First | Method::Keyed(_) => true,
            Method::Hash { build_new } => *build_new,
            Method::NestedLoop { .. } | Method::Merge => false,
        }
    }
}
