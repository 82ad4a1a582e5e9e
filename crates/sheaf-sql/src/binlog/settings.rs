//! What variables say about the binary log.

use std::time::Duration;

use sheaf_binlog::row::columns::RowImage;

/// What variables say about the files.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BinlogSettings {
    /// The server's.
    pub(crate) version: &'static str,
    pub(crate) server_id: u32,
    /// A file that is longer is the last but one.
    pub(crate) max_file_bytes: u64,
    pub(crate) image: RowImage,
    /// Older files are removed; `None`: they stay.
    pub(crate) expire: Option<Duration>,
}
