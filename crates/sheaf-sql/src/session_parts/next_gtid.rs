//! What `gtid_next` says: the GTID of the session's next transaction.
//!
//! As a rule the binary log gives a transaction the next number of this server (AUTOMATIC). A GTID of another server
//! is for an empty transaction alone: COMMIT marks it as executed, so that a replica leaves it out.
//!
//! ```text
//!   AUTOMATIC --SET--> owned --COMMIT, ROLLBACK--> used --SET--> AUTOMATIC, or another one
//! ```

use sheaf_binlog::gtid::Gtid;
use sheaf_types::error::codes;

use crate::error::{Result, SqlError};

/// See the [module](self).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum NextGtid {
    #[default]
    Automatic,
    /// Of the transaction that is open or comes next.
    Owned(Gtid),
    /// As owned, but it was executed before.
    Executed(Gtid),
    /// Its transaction has ended.
    Used(Gtid),
}

impl NextGtid {
    /// The GTID that the next COMMIT marks as executed.
    pub(crate) fn owned(self) -> Option<Gtid> {
        match self {
            NextGtid::Owned(gtid) => Some(gtid),
            NextGtid::Automatic | NextGtid::Executed(_) | NextGtid::Used(_) => None,
        }
    }

    /// COMMIT or ROLLBACK.
    pub(crate) fn end_transaction(&mut self) {
        if let NextGtid::Owned(gtid) | NextGtid::Executed(gtid) = *self {
            *self = NextGtid::Used(gtid);
        }
    }

    /// Error 1790 while a transaction owns a GTID.
    pub(crate) fn check_can_be_set(self) -> Result<()> {
        match self.owned() {
            None => Ok(()),
            Some(gtid) => Err(SqlError::new(
                codes::CANT_SET_GTID_NEXT_WHEN_OWNING_GTID,
                format!(
                    "@@SESSION.GTID_NEXT cannot be changed by a client that owns a GTID. The client owns {gtid}. \
                     Ownership is released on COMMIT or ROLLBACK."
                ),
            )),
        }
    }

    /// Whether the session may change anything. Error 1837 behind a transaction that had a GTID; error 1235 where one
    /// is to have it.
    pub(crate) fn check_change(self) -> Result<()> {
        match self {
            NextGtid::Automatic => Ok(()),
            NextGtid::Owned(gtid) => Err(SqlError::not_supported_yet(format_args!(
                "a change while gtid_next is '{gtid}': an empty transaction alone can have it (COMMIT)"
            ))),
            NextGtid::Executed(gtid) => Err(SqlError::not_supported_yet(format_args!(
                "a change while gtid_next is '{gtid}', which was executed before (SET gtid_next = AUTOMATIC)"
            ))),
            NextGtid::Used(gtid) => Err(SqlError::new(
                codes::GTID_NEXT_TYPE_UNDEFINED_GTID,
                format!(
                    "When @@SESSION.GTID_NEXT is set to a GTID, you must explicitly set it to a different value after \
                     a COMMIT or ROLLBACK. Please check GTID_NEXT variable manual page for detailed explanation. \
                     Current @@SESSION.GTID_NEXT is '{gtid}'."
                ),
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gtid_is_owned_up_to_the_end_of_its_transaction() {
        let gtid = Gtid::new(sheaf_binlog::gtid::Uuid([7; 16]), 3).expect("a number");
        let code = |checked: Result<()>| checked.err().map(|error| error.code);
        for (next, owned, after, change, set) in [
            (NextGtid::Automatic, None, NextGtid::Automatic, None, None),
            (
                NextGtid::Owned(gtid),
                Some(gtid),
                NextGtid::Used(gtid),
                Some(1235),
                Some(1790),
            ),
            (
                NextGtid::Executed(gtid),
                None,
                NextGtid::Used(gtid),
                Some(1235),
                None,
            ),
            (
                NextGtid::Used(gtid),
                None,
                NextGtid::Used(gtid),
                Some(1837),
                None,
            ),
        ] {
            let mut ended = next;
            ended.end_transaction();
            let checked = (code(next.check_change()), code(next.check_can_be_set()));
            assert_eq!(
                (next.owned(), ended, checked),
                (owned, after, (change, set))
            );
        }
    }
}
