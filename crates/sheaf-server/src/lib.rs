//! The MySQL protocol floor of Sheaf.
//!
//! Nothing above a socket is asynchronous here. A connection reads a command, gives it to its [`sheaf_sql::Session`],
//! and encodes what comes out straight into its send buffer, on one thread that blocks. While there are few connections
//! (up to [`ServerOptions::own_threads`]), each has that thread to itself. The others wait for their clients in an
//! epoll set and take a thread for a command only (`shared_threads`); the commits of many are waited for together
//! (`deferred_answers`). Either way a slow client holds nothing but its own thread.
//!
//! ```text
//!   listener     accepts, limits, drains        connection   one client from greeting to goodbye
//!   handshake    which user, which abilities    command      what a client can ask for
//!   authentication  does it know its password
//!   transport    socket, tls, compression       response     OK, EOF, ERR, result sets
//!   tls, self_signed  keys and certificates     compression  the compressed protocol's frames
//!   packet       frames, buffers, limits        cursor       results that wait to be fetched
//!   shared_threads, ready_connections, readiness             more connections than threads
//!   deferred_answers answers that wait for a commit
//!   local_infile a file on the client's side    parameters   values of a prepared statement
//!   text_row, binary_row                        the two encodings of a row
//!   binlog_dump  clients that follow the binary log    source_link, source_tls  this server as such a client
//!   http, metrics, console  other doors: counters for monitoring, and a page for people, over HTTP
//! ```
//!
//! The protocol is that of MySQL 8.0 with CLIENT_PROTOCOL_41, described in the MySQL Source Code Documentation,
//! "Client/Server Protocol". Constants and the packets of the handshake come from the `mysql_common` crate.

mod authentication;
mod binary_row;
mod binlog_dump;
mod command;
mod compression;
mod connection;
mod console;
mod cursor;
mod deferred_answers;
mod encoded_row;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzzing;
mod handshake;
mod http;
mod listener;
mod local_infile;
mod metrics;
mod packet;
mod parameters;
mod readiness;
mod ready_connections;
mod response;
mod self_signed;
mod shared_threads;
mod source_link;
mod source_tls;
mod text_row;
mod tls;
mod transport;

pub use console::ConsoleServer;
pub use listener::{Server, ServerOptions};
pub use metrics::MetricsServer;
pub use source_link::let_replicate;
pub use text_row::TextRows;
pub use tls::TlsOptions;
