//! How transactions are isolated, as `transaction_isolation` and SET TRANSACTION say.

/// How much a transaction sees of others. Each level sees less than those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Isolation {
    ReadUncommitted,
    ReadCommitted,
    RepeatableRead,
    Serializable,
}

impl Isolation {
    /// By the name that the variable has.
    pub(crate) fn of_name(name: &str) -> Isolation {
        match name {
            "READ-UNCOMMITTED" => Isolation::ReadUncommitted,
            "READ-COMMITTED" => Isolation::ReadCommitted,
            "SERIALIZABLE" => Isolation::Serializable,
            _ => Isolation::RepeatableRead,
        }
    }
}

/// What SET TRANSACTION without a scope says about the next transaction. A statement outside of a transaction is one,
/// if it uses tables; COMMIT and ROLLBACK without one, and what commits implicitly, end it as well.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct NextTransaction {
    pub(crate) isolation: Option<Isolation>,
    pub(crate) read_only: Option<bool>,
}
