//! Random statements, and a judge that knows the right answer.
//!
//! A seed makes tables, rows and queries ([`schema`], [`query`], [`expression`]). Each query goes to Sheaf and to
//! another server, the judge, and the answers must be the same ([`answer`]). Without a judge, Sheaf is compared with
//! itself ([`metamorphic`]): the rows for which a condition is true, false or NULL are all rows (ternary logic
//! partitioning, Rigger and Su, OOPSLA 2020), and a condition that is only counted finds as many rows as one that an
//! index may serve (NoREC, Rigger and Su, ESEC/FSE 2020). A statement has the same rows when it is planned otherwise
//! ([`plans`]), and when it is prepared, with its constants as parameters ([`parameters`]).
//!
//! A difference is made small before anybody sees it: [`tree::Tree`] knows what a statement can do without. Differences
//! that are meant stand in `known_differences.txt`, each with its reason.

pub mod answer;
mod changes;
pub mod command;
mod expression;
mod known;
mod metamorphic;
mod parameters;
mod plans;
mod query;
mod reduce;
mod schema;
pub mod tree;

/// An error that ends a run.
#[derive(Debug, thiserror::Error)]
pub enum FuzzError {
    #[error("an address is HOST:PORT, not {0}")]
    Address(String),
    #[error("{0}")]
    Client(mysql::Error),
    #[error("{server} refused {sql}: {error}")]
    Statement {
        server: String,
        sql: String,
        error: mysql::Error,
    },
    #[error("{0}: {1}")]
    File(String, std::io::Error),
}
