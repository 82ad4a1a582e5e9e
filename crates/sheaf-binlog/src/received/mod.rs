//! Events of another server, as a replica receives them.
//!
//! What MySQL since 5.6 and MariaDB since 10.0 write is read, with the encodings that Sheaf itself does not write: rows
//! events of version 1, times without fractions, GTIDs of MariaDB. Bytes come over a network. So nothing here trusts a
//! length, and what does not hold is `None` or an error that says where.
//!
//! ```text
//!   event --[checksum]--> Received --+-- Query, Gtid, Xid ...
//!                                    +-- TableMap  -> SourceTable
//!                                    +-- Rows      -> RowsReader, with a SourceTable -> images of rows
//! ```
//!
//! | file | what it holds |
//! |---|---|
//! | [`event`] | an event by its type, and the statement of QUERY |
//! | [`table`] | the table that TABLE_MAP describes |
//! | [`compressed`] | events that MariaDB compresses |
//! | [`payload`] | the compressed events of a transaction |
//! | [`rows`] | images of rows |
//! | `value` | a value of an image, for a column of the replica |
//! | `json` | a JSON document |
//! | `cursor` | numbers and lengths |

pub mod compressed;
mod cursor;
pub mod event;
mod json;
pub mod payload;
pub mod rows;
pub mod table;
mod value;

pub use compressed::uncompressed;
pub use event::{Received, ReceivedQuery, SourceEvent};
pub use payload::TransactionPayload;
pub use rows::{Image, RowsKind, RowsReader};
pub use table::{SourceColumn, SourceTable};
pub use value::decode_text;
