//! Random statements, and a judge that knows the right answer.
//!
//! A seed makes tables, rows and queries ([`schema`], [`query`], [`expression`]). Each query goes to Sheaf and to
//! another server, the judge, and the answers must be the same ([`answer`]). Without a judge, Sheaf is compared with
//! itself ([`metamorphic`]). The rows for which a condition is true, false or NULL are all rows (ternary logic
//! partitioning, Rigger and Su, OOPSLA 2020). A condition that is only counted finds as many rows as one that an index
//! may serve (NoREC, Rigger and Su, ESEC/FSE 2020). A statement has the same rows when it is planned otherwise
//! ([`plans`]), and when it is prepared, with its constants as parameters ([`parameters`]).
//!
//! A difference is made small before anybody sees it: [`tree::Tree`] knows what a statement can do without. Differences
//! that are meant stand in `known_differences.txt`, each with its reason.
//!
//! What is found is a fault or a difference. A fault needs no judge: a broken connection, error 1105, or Sheaf
//! disagrees with itself. A difference may be the judge's own fault.

use std::fmt;

pub mod answer;
mod changes;
pub mod command;
mod expression;
mod families;
mod json;
mod known;
mod metamorphic;
mod parameters;
mod plans;
mod query;
mod reduce;
mod schema;
mod sources;
pub mod tree;
mod windows;

/// One of the servers of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Party {
    Sheaf,
    Judge,
    SecondJudge,
}

impl fmt::Display for Party {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Party::Sheaf => "Sheaf",
            Party::Judge => "the judge",
            Party::SecondJudge => "the second judge",
        })
    }
}

/// An error that ends a run.
#[derive(Debug, thiserror::Error)]
pub enum FuzzError {
    #[error("an address is HOST:PORT, not {0}")]
    Address(String),
    #[error("no connection to {party}: {error}")]
    Connect { party: Party, error: mysql::Error },
    #[error("{party} is gone after {sql}: {error}")]
    Gone {
        party: Party,
        sql: String,
        error: mysql::Error,
    },
    #[error("{party} refused {sql}: {error}")]
    Statement {
        party: Party,
        sql: String,
        error: mysql::Error,
    },
    #[error("{0}: {1}")]
    File(String, std::io::Error),
}

impl FuzzError {
    /// The server whose fault it is.
    fn party(&self) -> Option<Party> {
        match self {
            FuzzError::Connect { party, .. }
            | FuzzError::Gone { party, .. }
            | FuzzError::Statement { party, .. } => Some(*party),
            FuzzError::Address(_) | FuzzError::File(..) => None,
        }
    }
}
