//! A client that follows the binary log: COM_REGISTER_SLAVE, COM_BINLOG_DUMP and COM_BINLOG_DUMP_GTID.
//!
//! ```text
//!   COM_BINLOG_DUMP       | position (4) | flags (2) | server (4) | file                                    |
//!   COM_BINLOG_DUMP_GTID  | flags (2) | server (4) | length (4), file | position (8) | length (4), GTID set |
//!   answer                | 0 | event |  | 0 | event | ...                        until one of both goes
//! ```

use std::time::Duration;

use mysql_common::io::ParseBuf;
use sheaf_sql::SqlError;
use sheaf_sql::binlog::{DumpStart, GtidSet};

use crate::connection::Connection;
use crate::parameters::malformed_packet;
use crate::response::{write_eof, write_error};

/// The client does not wait for what is new.
const NON_BLOCK: u16 = 1;
/// A follower that is sent nothing is looked after so often.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);
/// Events that are sent together.
const MAX_BATCH: usize = 64;

/// What a client asks for.
struct DumpRequest {
    start: DumpStart,
    flags: u16,
}

impl DumpRequest {
    /// Reads the body of COM_BINLOG_DUMP.
    fn by_place(body: &[u8]) -> Result<DumpRequest, SqlError> {
        let mut body = ParseBuf(body);
        let position = body.checked_eat_u32_le().ok_or_else(malformed_packet)?;
        let flags = body.checked_eat_u16_le().ok_or_else(malformed_packet)?;
        body.checked_eat_u32_le().ok_or_else(malformed_packet)?;
        Ok(DumpRequest {
            start: DumpStart::Place {
                file: String::from_utf8_lossy(body.0).into_owned(),
                position: position.into(),
            },
            flags,
        })
    }

    /// Reads the body of COM_BINLOG_DUMP_GTID.
    fn by_gtids(body: &[u8]) -> Result<DumpRequest, SqlError> {
        let mut body = ParseBuf(body);
        let flags = body.checked_eat_u16_le().ok_or_else(malformed_packet)?;
        body.checked_eat_u32_le().ok_or_else(malformed_packet)?;
        body.checked_eat_u32_str().ok_or_else(malformed_packet)?;
        body.checked_eat_u64_le().ok_or_else(malformed_packet)?;
        let set = body.checked_eat_u32_str().ok_or_else(malformed_packet)?;
        let set = GtidSet::read(set).ok_or_else(malformed_packet)?;
        Ok(DumpRequest {
            start: DumpStart::Gtids(set),
            flags,
        })
    }
}

impl Connection {
    /// COM_BINLOG_DUMP. The connection is to be closed afterwards.
    pub(crate) fn dump_binlog_from_place(&mut self, body: &[u8]) -> Result<(), SqlError> {
        self.dump_binlog(DumpRequest::by_place(body)?)
    }

    /// COM_BINLOG_DUMP_GTID. The connection is to be closed afterwards.
    pub(crate) fn dump_binlog_behind_gtids(&mut self, body: &[u8]) -> Result<(), SqlError> {
        self.dump_binlog(DumpRequest::by_gtids(body)?)
    }

    /// Sends events until the client goes, the connection is killed, or nothing more can be sent.
    fn dump_binlog(&mut self, request: DumpRequest) -> Result<(), SqlError> {
        let mut dump = self.session.follow_binary_log(request.start)?;
        let mut unsent = 0;
        loop {
            // What is buffered leaves before the wait.
            let wait = match unsent {
                0 => LOOK_INTERVAL,
                _ => Duration::ZERO,
            };
            let event = match dump.next_event(wait) {
                Ok(event) => event,
                Err(error) => {
                    // A failed write shows in the stream's state.
                    let _ = write_error(&mut self.packets, &error);
                    return Ok(());
                }
            };
            let is_waiting = event.is_none();
            if let Some(event) = event {
                self.packets.write_packet(|out| {
                    out.push(0);
                    out.extend_from_slice(&event);
                    Ok(())
                })?;
                unsent += 1;
            }
            if unsent > 0 && (is_waiting || unsent >= MAX_BATCH) {
                self.packets.flush()?;
                unsent = 0;
                continue;
            }
            if !is_waiting {
                continue;
            }
            if request.flags & NON_BLOCK != 0 && dump.is_at_end() {
                let status = self.session.status_flags();
                let capabilities = self.client.capabilities;
                return write_eof(&mut self.packets, capabilities, 0, status);
            }
            if !self.is_still_there() || self.session.engine().is_shutting_down() {
                return Ok(());
            }
        }
    }
}
