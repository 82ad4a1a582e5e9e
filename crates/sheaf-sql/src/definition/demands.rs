//! ALGORITHM and LOCK of ALTER TABLE, CREATE INDEX and DROP INDEX: how a change is to be done, or is refused.
//!
//! | work | ALGORITHM | what others can do meanwhile, at most |
//! |---|---|---|
//! | the definition alone | INSTANT, INPLACE, COPY | write (LOCK=NONE) |
//! | indexes, CHECKs and foreign keys alone | INPLACE, COPY | write; with COPY read (LOCK=SHARED) |
//! | the same, with another name for the table or a column | INPLACE, COPY | read |
//! | rows are written anew as they are | INPLACE, COPY | write, if there is a primary key; else, and with COPY, read |
//! | values are converted | COPY | as before; where COPY is not said, write |
//!
//! Each of them may be asked for less. LOCK=DEFAULT, or no word, lets others do as much as they can. With
//! LOCK=EXCLUSIVE they do not even read. ALGORITHM=DEFAULT is the first that is possible; a statement that asks for a
//! copy gets the same with less work. Others can do the same with the parents of new foreign keys. ALGORITHM=INPLACE
//! and COPY write the rows anew for columns that come or go. The last of several words counts.
//!
//! Reference: MySQL manual, "ALTER TABLE Statement", "Performance and Space Requirements" and "Concurrency Control".

use sheaf_table::{AlterWork, Alteration};
use sheaf_types::error::codes;

use crate::error::{Result, SqlError};
use crate::parser::statement::TableChange;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Algorithm {
    Default,
    Instant,
    Inplace,
    Copy,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lock {
    Default,
    None,
    Shared,
    Exclusive,
}

/// What others can do with the table while it is altered, but for the moment in which its definition is entered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Meanwhile {
    Write,
    Read,
    Nothing,
}

/// What a statement says of ALGORITHM and LOCK.
#[derive(Debug, Clone, Copy)]
pub(super) struct Demands {
    algorithm: Algorithm,
    lock: Lock,
}

impl Demands {
    /// # Errors
    /// 1800 and 1801 for words that are none, 1221 for ALGORITHM=INSTANT with a LOCK.
    pub(super) fn of(changes: &[TableChange]) -> Result<Demands> {
        let mut demands = Demands {
            algorithm: Algorithm::Default,
            lock: Lock::Default,
        };
        for change in changes {
            match change {
                TableChange::Algorithm(word) => demands.algorithm = algorithm_of(word)?,
                TableChange::Lock(word) => demands.lock = lock_of(word)?,
                _ => {}
            }
        }
        match demands.algorithm == Algorithm::Instant && demands.lock != Lock::Default {
            true => Err(SqlError::wrong_usage(
                "ALGORITHM=INSTANT",
                "LOCK=NONE/SHARED/EXCLUSIVE",
            )),
            false => Ok(demands),
        }
    }

    /// Whether the rows are left as they are, if that is possible. Those of a temporary table are not unless the
    /// statement says so: a transaction that has changed them goes on, and they are all of the altered table then.
    pub(super) fn takes_instant(self, temporary: bool) -> bool {
        match self.algorithm {
            Algorithm::Instant => true,
            Algorithm::Default => !temporary,
            Algorithm::Inplace | Algorithm::Copy => false,
        }
    }

    /// A copy is asked for.
    pub(super) fn asks_for_copy(self) -> bool {
        self.algorithm == Algorithm::Copy
    }

    /// What others can do while these changes are made, which are so much work. `admits_writers`: they could write.
    ///
    /// # Errors
    /// 1845, and 1846 with the reason, for what cannot be done as it is asked for.
    pub(super) fn meanwhile(
        self,
        alterations: &[Alteration],
        work: AlterWork,
        admits_writers: bool,
    ) -> Result<Meanwhile> {
        self.check_algorithm(alterations, work)?;
        let can_write = work == AlterWork::Definition || admits_writers;
        match self.lock {
            Lock::Default if can_write && self.algorithm != Algorithm::Copy => Ok(Meanwhile::Write),
            Lock::Default | Lock::Shared => Ok(Meanwhile::Read),
            Lock::Exclusive => Ok(Meanwhile::Nothing),
            Lock::None => {
                let reason = match work {
                    _ if self.algorithm == Algorithm::Copy => "COPY algorithm requires a lock",
                    _ if can_write => return Ok(Meanwhile::Write),
                    AlterWork::Copy => why_copied(alterations),
                    AlterWork::Rebuild => "the table cannot be changed while its rows are copied",
                    AlterWork::Index | AlterWork::Definition => {
                        "the table cannot be changed while its rows are read, where it is altered otherwise"
                    }
                };
                let (clause, instead) = ("LOCK=NONE", "LOCK=SHARED");
                Err(SqlError::alter_not_supported_because(
                    clause, reason, instead,
                ))
            }
        }
    }

    fn check_algorithm(self, alterations: &[Alteration], work: AlterWork) -> Result<()> {
        let (clause, reason) = match (self.algorithm, work) {
            (Algorithm::Default | Algorithm::Copy, _) | (_, AlterWork::Definition) => return Ok(()),
            (Algorithm::Inplace, AlterWork::Copy) => ("ALGORITHM=INPLACE", why_copied(alterations)),
            (Algorithm::Inplace, _) => return Ok(()),
            (Algorithm::Instant, AlterWork::Copy) => ("ALGORITHM=INSTANT", why_copied(alterations)),
            (Algorithm::Instant, _) => {
                let (clause, instead) = ("ALGORITHM=INSTANT", "ALGORITHM=COPY/INPLACE");
                return Err(SqlError::alter_not_supported(clause, instead));
            }
        };
        let instead = "ALGORITHM=COPY";
        Err(SqlError::alter_not_supported_because(
            clause, reason, instead,
        ))
    }
}

fn algorithm_of(word: &str) -> Result<Algorithm> {
    Ok(match word.to_ascii_uppercase().as_str() {
        "DEFAULT" => Algorithm::Default,
        "INSTANT" => Algorithm::Instant,
        "INPLACE" => Algorithm::Inplace,
        "COPY" => Algorithm::Copy,
        _ => {
            let message = format!("Unknown ALGORITHM '{word}'");
            return Err(SqlError::new(codes::UNKNOWN_ALTER_ALGORITHM, message));
        }
    })
}

fn lock_of(word: &str) -> Result<Lock> {
    Ok(match word.to_ascii_uppercase().as_str() {
        "DEFAULT" => Lock::Default,
        "NONE" => Lock::None,
        "SHARED" => Lock::Shared,
        "EXCLUSIVE" => Lock::Exclusive,
        _ => {
            let message = format!("Unknown LOCK type '{word}'");
            return Err(SqlError::new(codes::UNKNOWN_ALTER_LOCK, message));
        }
    })
}

/// Why values are converted, in MySQL's words.
fn why_copied(alterations: &[Alteration]) -> &'static str {
    let is_of_primary = |change: &Alteration| match change {
        Alteration::DropPrimaryKey => true,
        Alteration::DropIndex(name) => name.eq_ignore_ascii_case("PRIMARY"),
        _ => false,
    };
    let adds_primary = |change: &Alteration| matches!(change, Alteration::AddPrimaryKey(_));
    let drops_primary = alterations.iter().any(is_of_primary);
    match drops_primary && !alterations.iter().any(adds_primary) {
        true => "Dropping a primary key is not allowed without also adding a new primary key",
        false => "Cannot change column type INPLACE",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn demands(algorithm: &str, lock: &str) -> Demands {
        let changes = [
            TableChange::Algorithm(algorithm.to_string()),
            TableChange::Lock(lock.to_string()),
        ];
        Demands::of(&changes).unwrap()
    }

    #[test]
    fn others_can_do_as_much_as_they_can_or_as_little_as_is_asked_for() {
        for (algorithm, lock, work, admits_writers, meanwhile) in [
            (
                "default",
                "default",
                AlterWork::Index,
                true,
                Meanwhile::Write,
            ),
            (
                "inplace",
                "default",
                AlterWork::Index,
                true,
                Meanwhile::Write,
            ),
            ("copy", "default", AlterWork::Index, true, Meanwhile::Read),
            (
                "default",
                "default",
                AlterWork::Index,
                false,
                Meanwhile::Read,
            ),
            ("inplace", "none", AlterWork::Index, true, Meanwhile::Write),
            ("default", "shared", AlterWork::Index, true, Meanwhile::Read),
            (
                "copy",
                "exclusive",
                AlterWork::Index,
                true,
                Meanwhile::Nothing,
            ),
            (
                "default",
                "default",
                AlterWork::Rebuild,
                false,
                Meanwhile::Read,
            ),
            (
                "default",
                "exclusive",
                AlterWork::Copy,
                false,
                Meanwhile::Nothing,
            ),
            (
                "instant",
                "default",
                AlterWork::Definition,
                false,
                Meanwhile::Write,
            ),
            (
                "inplace",
                "none",
                AlterWork::Definition,
                false,
                Meanwhile::Write,
            ),
            (
                "Copy",
                "Shared",
                AlterWork::Definition,
                false,
                Meanwhile::Read,
            ),
        ] {
            let demands = demands(algorithm, lock);
            let found = demands.meanwhile(&[], work, admits_writers);
            assert_eq!(found.unwrap(), meanwhile, "{demands:?} {work:?}");
        }
    }

    #[test]
    fn what_cannot_be_done_is_refused_with_the_reason() {
        let cannot = |algorithm: &str, lock: &str, changes: &[Alteration], work| {
            let refused = demands(algorithm, lock).meanwhile(changes, work, true);
            refused.unwrap_err().to_string()
        };
        for (refused, text) in [
            (
                cannot("instant", "default", &[], AlterWork::Index),
                "ALGORITHM=INSTANT is not supported for this operation. Try ALGORITHM=COPY/INPLACE.",
            ),
            (
                cannot("copy", "none", &[], AlterWork::Index),
                "LOCK=NONE is not supported. Reason: COPY algorithm requires a lock. Try LOCK=SHARED.",
            ),
            (
                cannot("inplace", "default", &[], AlterWork::Copy),
                "ALGORITHM=INPLACE is not supported. Reason: Cannot change column type INPLACE. Try ALGORITHM=COPY.",
            ),
            (
                cannot(
                    "inplace",
                    "default",
                    &[Alteration::DropPrimaryKey],
                    AlterWork::Copy,
                ),
                "ALGORITHM=INPLACE is not supported. Reason: Dropping a primary key is not allowed without also adding \
                 a new primary key. Try ALGORITHM=COPY.",
            ),
        ] {
            assert!(refused.contains(text), "{refused}");
        }
    }

    #[test]
    fn the_last_of_several_words_counts() {
        let words = |words: &[&str]| {
            let words = words.iter().map(|word| TableChange::Lock(word.to_string()));
            Demands::of(&words.collect::<Vec<_>>()).map(|demands| demands.lock)
        };
        assert_eq!(
            words(&["none", "exclusive", "shared"]).unwrap(),
            Lock::Shared
        );
        let unknown = words(&["none", "Perhaps"]).unwrap_err().to_string();
        assert!(unknown.contains("Unknown LOCK type 'Perhaps'"), "{unknown}");
    }
}
