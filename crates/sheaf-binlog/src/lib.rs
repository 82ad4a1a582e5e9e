//! MySQL's binary log in bytes: what followers of a server read.
//!
//! The lowest part of replication. It makes bytes of values and knows nothing of where they come from: no log, no
//! table, no session. `docs/design/replication.md` says what stands above it.
//!
//! ```text
//!   file         | fe 'b' 'i' 'n' | FORMAT_DESCRIPTION | PREVIOUS_GTIDS | transaction | transaction | ... | ROTATE |
//!   transaction  | GTID_LOG | QUERY "BEGIN" | TABLE_MAP | WRITE_ROWS | TABLE_MAP | UPDATE_ROWS | ... | XID |
//!   DDL          | GTID_LOG | QUERY "CREATE TABLE ..." |
//!   event        | time | type | server | length | end position | flags | body ... | CRC-32 |
//! ```
//!
//! All bytes are MySQL's: a test makes the same tables, rows and statements as a real server did, and compares
//! the events with those of its file. So this crate has no format of its own, and no choice.
//!
//! ```
//! use sheaf_binlog::event::{EventHeader, GtidLog, Query, Xid};
//! use sheaf_binlog::event::rows::{RowsEvent, TableMap};
//! use sheaf_binlog::file::{BinlogFile, FileStart, Transaction};
//! use sheaf_binlog::gtid::{Gtid, GtidSet, Uuid};
//! use sheaf_binlog::table::{KeyColumn, LoggedColumn, LoggedTable};
//! use sheaf_types::{ColumnType, Value};
//!
//! let columns = vec![
//!     LoggedColumn::new("id", ColumnType::parse("int").unwrap(), false),
//!     LoggedColumn::new("name", ColumnType::parse("varchar(20)").unwrap(), true),
//! ];
//! let table = LoggedTable::new("shop", "customer", columns, &[KeyColumn::whole(0)]).unwrap();
//!
//! let server: Uuid = "3e11fa47-71ca-11e1-9e33-c80aa9429562".parse().unwrap();
//! let start = FileStart::new("8.0.99-Sheaf", 1, 0, GtidSet::new());
//! let mut file = BinlogFile::create(Vec::new(), &start).unwrap();
//!
//! let header = EventHeader::new(1_700_000_000, 1);
//! let mut transaction = Transaction::new();
//! transaction.push(&header, &Query::begin("shop"));
//! transaction.push(&header, &TableMap::new(101, &table));
//! let mut rows = RowsEvent::insert(101, &table, table.all_columns());
//! rows.push_insert(&[Value::Int(1), Value::Text("Ada".into())]).unwrap();
//! transaction.push(&header, &rows.ending_statement());
//! transaction.push(&header, &Xid(7));
//! let gtid = GtidLog::new(Gtid::new(server, 1).unwrap());
//! file.append(&header, gtid, transaction).unwrap();
//! assert_eq!(&file.into_inner()[..4], b"\xfebin");
//! ```
//!
//! | file | what it holds |
//! |---|---|
//! | [`error`] | what can be wrong |
//! | `bytes` | numbers and lengths as the format has them |
//! | [`gtid`] | identifiers of transactions and sets of them: GTID_SUBSET, GTID_SUBTRACT |
//! | [`row`] | values of columns in row images, and which columns an image has |
//! | [`table`] | a table as TABLE_MAP describes it |
//! | [`event`] | the events |
//! | [`mod@file`] | a binary log file |
//! | [`reader`] | reading a file |
//! | [`received`] | events of another server, and the rows that they have |
//! | [`recovery`] | what a crash left of a file |
//! | [`shown`] | events in words |

mod bytes;
pub mod error;
pub mod event;
pub mod file;
pub mod gtid;
pub mod reader;
pub mod received;
pub mod recovery;
pub mod row;
pub mod shown;
pub mod table;

pub use error::BinlogError;
