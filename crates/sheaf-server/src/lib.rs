//! The MySQL protocol floor of Sheaf.
//!
//! A connection is a thread that blocks: it reads a command, gives it to its [`sheaf_sql::Session`], and encodes
//! what comes out straight into its send buffer. Nothing above a socket is asynchronous here, so a slow client
//! holds its own thread and nothing else. Where there are hundreds of connections, they wait for their clients without a
//! thread, and share some for their commands (`shared_threads`).
//!
//! ```text
//!   listener     accepts, limits, drains        connection   one client from greeting to goodbye
//!   handshake    what can it do, who is it      command      what a client can ask for
//!   authentication  does it know its password
//!   transport    socket, tls, compression       response     OK, EOF, ERR, result sets
//!   packet       frames, buffers, limits        cursor       results that wait to be fetched
//!   stack_memory what an idle thread gives back   shared_threads, readiness   more connections than threads
//!   local_infile a file on the client's side    parameters   values of a prepared statement
//!   cell         one value of an Arrow batch    text_row, binary_row, text_format   its two encodings
//! ```
//!
//! The protocol is that of MySQL 8.0 with CLIENT_PROTOCOL_41, described in the MySQL Source Code Documentation,
//! "Client/Server Protocol". Constants and the packets of the handshake come from the `mysql_common` crate.

mod authentication;
mod binary_row;
mod command;
mod compression;
mod connection;
mod cursor;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzzing;
mod handshake;
mod held_answers;
mod listener;
mod local_infile;
mod packet;
mod parameters;
mod readiness;
mod ready_connections;
mod response;
mod self_signed;
mod shared_threads;
mod stack_memory;
mod text_format;
mod text_row;
mod tls;
mod transport;

pub use listener::{Server, ServerOptions};
pub use text_row::TextRows;
pub use tls::TlsOptions;
