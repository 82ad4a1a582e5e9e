//! What the server brings: a connection to the source.
//!
//! This crate knows no packets. A program that reaches other servers gives the engine a way to open a link
//! ([`Engine::reach_sources_by`](crate::Engine::reach_sources_by)).

use std::sync::Arc;
use std::time::Duration;

use sheaf_binlog::gtid::GtidSet;

/// Where the source is to begin.
#[derive(Clone, Debug)]
pub enum LinkStart {
    Place {
        file: String,
        position: u64,
    },
    /// Behind these transactions.
    Gtids(GtidSet),
}

/// Whether a link shall end.
pub type Stops = Arc<dyn Fn() -> bool + Send + Sync>;

/// What a link is opened with.
#[derive(Clone)]
pub struct LinkRequest {
    pub host: String,
    pub port: u16,
    pub user: String,
    pub password: String,
    /// The source may send the key that the password is encrypted with.
    pub get_public_key: bool,
    /// `None`: nothing is encrypted.
    pub tls: Option<LinkTls>,
    pub start: LinkStart,
    /// The replica's own.
    pub server_id: u32,
    pub server_uuid: String,
    pub heartbeat: Duration,
    /// A source that says nothing for so long is gone.
    pub timeout: Duration,
    pub max_event_bytes: usize,
    /// All waits end when it becomes true.
    pub stops: Stops,
}

/// How the source is trusted. Files are in PEM; an empty name is none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LinkTls {
    /// The file with certificates that the source's is one of, or is signed with.
    pub authorities: String,
    /// The source's certificate is for its name.
    pub verifies_name: bool,
    /// The files with the replica's own certificate and its key.
    pub certificate: String,
    pub key: String,
}

/// What a source says of itself.
#[derive(Clone, Debug, Default)]
pub struct SourceIdentity {
    pub server_id: u32,
    /// Empty: it has none.
    pub server_uuid: String,
    pub is_mariadb: bool,
    /// Seconds by which its clock is ahead.
    pub clock_ahead: i64,
}

/// Why there is no link, or no event.
#[derive(Clone, Debug)]
pub struct LinkError {
    pub code: u16,
    pub message: String,
    /// Another attempt has no better end.
    pub is_final: bool,
}

/// An open connection that delivers events.
pub trait SourceLink: Send {
    fn identity(&self) -> &SourceIdentity;

    /// Waits for the next event and puts its bytes, with their checksum, into `event`. False: the link was told to
    /// stop.
    ///
    /// # Errors
    /// The connection has ended, or the source has refused.
    fn next_event(&mut self, event: &mut Vec<u8>) -> Result<bool, LinkError>;
}

/// Opens a link. `Ok(None)`: it was told to stop meanwhile.
pub type OpenLink =
    dyn Fn(&LinkRequest) -> Result<Option<Box<dyn SourceLink>>, LinkError> + Send + Sync;
