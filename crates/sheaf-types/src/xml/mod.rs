//! XML: documents, and XPath as MySQL's EXTRACTVALUE and UPDATEXML know it.
//!
//! A document is a list of nodes in their order, each with its parent. Nothing is copied: a node is a part of the text.
//!
//! ```text
//!   <a x="1">t<b/></a>      0 root   1 <a>   2 @x   3 "1"   4 "t"   5 <b>
//! ```
//!
//! | file | what it holds |
//! |---|---|
//! | [`document`] | a document from its text |
//! | [`path`] | an XPath from its text |
//! | [`evaluate`] | what an XPath finds in a document |

pub mod document;
pub mod evaluate;
pub mod path;

pub use document::{Document, WrongDocument};
pub use path::{Path, WrongPath};
