//! Where a transaction comes from that a replica applies: the first thing that its transaction says in the log.
//!
//! The replica's binary log has it under the source's GTID, with the source's `server_id`, and events have their times
//! of the source. So followers of the replica may follow the source instead, and the other way round.
//!
//! ```text
//!   | 'O' | server_id (4) | time (4) | committed (8) | version (4) | GTID: server (16), number (8); 0: none |
//! ```
//!
//! Numbers are little-endian.

use std::ops::ControlFlow;

use sheaf_binlog::gtid::{Gtid, Uuid};
use sheaf_storage::{ChangePlace, FollowedChange, FollowedTransaction};

use crate::error::{Result, SqlError};

/// First byte of an annotation that says where its transaction comes from.
const ORIGIN: u8 = b'O';

/// See the [module](self).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Origin {
    /// The server that made the transaction.
    pub(crate) server_id: u32,
    /// When it made it, in seconds since 1970.
    pub(crate) time: u32,
    /// When it committed it, in microseconds since 1970.
    pub(crate) committed_us: u64,
    /// The version of that server, as GTID_LOG says it.
    pub(crate) version: u32,
    /// `None`: the transaction gets a GTID of this server.
    pub(crate) gtid: Option<Gtid>,
}

impl Origin {
    pub(crate) fn to_bytes(self) -> Vec<u8> {
        let mut out = vec![ORIGIN];
        out.extend_from_slice(&self.server_id.to_le_bytes());
        out.extend_from_slice(&self.time.to_le_bytes());
        out.extend_from_slice(&self.committed_us.to_le_bytes());
        out.extend_from_slice(&self.version.to_le_bytes());
        let (server, number) = match self.gtid {
            Some(gtid) => (gtid.server().0, gtid.number()),
            None => ([0; 16], 0),
        };
        out.extend_from_slice(&server);
        out.extend_from_slice(&number.to_le_bytes());
        out
    }

    /// Whether an annotation says where its transaction comes from.
    pub(super) fn is_one(annotation: &[u8]) -> bool {
        annotation.first() == Some(&ORIGIN)
    }

    /// `None`: the bytes are none of an origin.
    fn read(annotation: &[u8]) -> Option<Origin> {
        let (kind, rest) = annotation.split_first()?;
        let (server_id, rest) = rest.split_first_chunk()?;
        let (time, rest) = rest.split_first_chunk()?;
        let (committed_us, rest) = rest.split_first_chunk()?;
        let (version, rest) = rest.split_first_chunk()?;
        let (server, rest) = rest.split_first_chunk()?;
        let (number, rest) = rest.split_first_chunk()?;
        (*kind == ORIGIN && rest.is_empty()).then_some(Origin {
            server_id: u32::from_le_bytes(*server_id),
            time: u32::from_le_bytes(*time),
            committed_us: u64::from_le_bytes(*committed_us),
            version: u32::from_le_bytes(*version),
            gtid: Gtid::new(Uuid(*server), u64::from_le_bytes(*number)),
        })
    }

    /// Where a transaction comes from; `None`: from this server.
    ///
    /// # Errors
    /// The log cannot be read.
    pub(super) fn of(transaction: &FollowedTransaction) -> Result<Option<Origin>> {
        let mut origin = Ok(None);
        transaction.for_each_from(ChangePlace::FIRST, |_, change| {
            if let FollowedChange::Annotation(said) = change
                && Origin::is_one(said)
            {
                let unreadable =
                    || SqlError::unknown("the log does not say where a transaction comes from");
                origin = Origin::read(said).map(Some).ok_or_else(unreadable);
            }
            Ok::<_, SqlError>(ControlFlow::Break(()))
        })?;
        origin
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_origin_reads_as_it_was_written_and_a_piece_of_it_does_not() {
        let origin = Origin {
            server_id: 7,
            time: 1_700_000_000,
            committed_us: 1 << 50,
            version: 90_704,
            gtid: Gtid::new(Uuid([3; 16]), 1 << 40),
        };
        for origin in [
            origin,
            Origin {
                gtid: None,
                ..origin
            },
        ] {
            let bytes = origin.to_bytes();
            assert_eq!(Origin::read(&bytes), Some(origin));
            for end in 0..bytes.len() {
                assert_eq!(Origin::read(&bytes[..end]), None);
            }
        }
    }
}
