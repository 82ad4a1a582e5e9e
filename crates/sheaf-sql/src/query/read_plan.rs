//! Through which view a query reads, and when what it reads is locked.
//!
//! Three facts decide: what the query is run for, what asks for locks, and whether a transaction is open. One table
//! holds all cases; the first row that fits is taken:
//!
//! ```text
//!   purpose          locks asked for by   transaction   ->  view       locks
//!   any, view given  -                    -                 given      none: the caller locks
//!   kept, joins      level                open              current    when it has run
//!   any              level or clause      open              newest     before it runs
//!   insert, values   -                    -                 current    none
//!   any, no tables   -                    -                 current    none
//!   any              -                    -                 snapshot   none
//! ```
//!
//! "Level" is SERIALIZABLE in a transaction that may write, and REPEATABLE READ where it inserts or computes values;
//! "clause" is FOR UPDATE or FOR SHARE. The newest view reads what is committed when the locks are there. Outside of a
//! transaction nothing is locked, because the locks would end with the statement.

use sheaf_frontend::query::Listed;

/// What a query is run for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// To show rows: a consistent read.
    Read,
    /// To compute values of another statement.
    Values,
    /// To set a user variable, as [`Self::Values`].
    Variable,
    /// To show rows, of a query that can wait until what it has read
    /// [is locked](crate::query::run::PlannedQuery::to_lock). The rows that it says it locks may be locked already.
    Kept { rows_are_locked: bool },
    /// To show rows that it has locked.
    Locked,
    /// To insert what it finds.
    Insert,
    /// To change the rows that it finds: it delivers their clustered keys.
    Change,
}

impl Purpose {
    /// Whether the rows go to the client, and the statement changes none.
    pub(crate) fn shows_rows(self) -> bool {
        match self {
            Purpose::Read | Purpose::Values | Purpose::Variable | Purpose::Kept { .. } => true,
            Purpose::Locked | Purpose::Insert | Purpose::Change => false,
        }
    }

    /// Whether another statement takes the values of its rows: its level locks them as it locks those of changes.
    pub(crate) fn feeds_a_statement(self) -> bool {
        match self {
            Purpose::Insert | Purpose::Values | Purpose::Variable => true,
            Purpose::Read | Purpose::Kept { .. } | Purpose::Locked | Purpose::Change => false,
        }
    }

    /// Whether FOR UPDATE and FOR SHARE of the query still have to be obeyed.
    pub(crate) fn obeys_locking_clauses(self) -> bool {
        match self {
            Purpose::Read | Purpose::Values | Purpose::Variable | Purpose::Insert => true,
            Purpose::Kept { rows_are_locked } => !rows_are_locked,
            Purpose::Locked | Purpose::Change => false,
        }
    }

    /// Whether the caller locks the rows that the query finds, and with them what queries inside of it ask for.
    pub(crate) fn locks_what_it_finds(self) -> bool {
        matches!(self, Purpose::Locked | Purpose::Change)
    }

    /// What the list of its outermost SELECT holds.
    pub(crate) fn listed(self) -> Listed {
        match self {
            Purpose::Values => Listed::Values,
            Purpose::Variable => Listed::Variables,
            Purpose::Change => Listed::Changes,
            Purpose::Read | Purpose::Kept { .. } | Purpose::Locked | Purpose::Insert => {
                Listed::Items
            }
        }
    }
}

/// What asks for locks of what a query reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LocksFor {
    Nobody,
    /// SERIALIZABLE, or REPEATABLE READ of a change.
    Level,
    /// FOR UPDATE or FOR SHARE.
    Clause,
}

/// The view of a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ViewFor {
    /// The caller has it.
    Given,
    /// Whatever is committed at the moment of each read.
    Newest,
    /// What is committed now.
    Current,
    /// That of the transaction, by its level.
    Snapshot,
}

/// When what a query reads is locked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LockWhen {
    Never,
    BeforeItRuns,
    WhenItHasRun,
}

/// How a query reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ReadPlan {
    pub(crate) view: ViewFor,
    pub(crate) locks: LockWhen,
}

/// What is known of a query when its way of reading is chosen.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReadFacts {
    pub(crate) purpose: Purpose,
    pub(crate) has_view: bool,
    pub(crate) locks_for: LocksFor,
    pub(crate) in_transaction: bool,
    pub(crate) reads_tables: bool,
    /// It names several tables, or one several times: it may have joins.
    pub(crate) has_joins: bool,
}

impl ReadPlan {
    pub(crate) fn choose(facts: ReadFacts) -> Self {
        let plan = |view, locks| ReadPlan { view, locks };
        if facts.has_view {
            return plan(ViewFor::Given, LockWhen::Never);
        }
        match (facts.purpose, facts.locks_for, facts.in_transaction) {
            (Purpose::Kept { .. }, LocksFor::Level, true) if facts.has_joins => {
                plan(ViewFor::Current, LockWhen::WhenItHasRun)
            }
            (_, LocksFor::Level | LocksFor::Clause, true) => {
                plan(ViewFor::Newest, LockWhen::BeforeItRuns)
            }
            (Purpose::Insert | Purpose::Values | Purpose::Variable, _, _) => {
                plan(ViewFor::Current, LockWhen::Never)
            }
            _ if !facts.reads_tables => plan(ViewFor::Current, LockWhen::Never),
            _ => plan(ViewFor::Snapshot, LockWhen::Never),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PURPOSES: [Purpose; 8] = [
        Purpose::Read,
        Purpose::Values,
        Purpose::Variable,
        Purpose::Kept {
            rows_are_locked: false,
        },
        Purpose::Kept {
            rows_are_locked: true,
        },
        Purpose::Locked,
        Purpose::Insert,
        Purpose::Change,
    ];

    /// All facts that a purpose may meet.
    fn all_facts() -> impl Iterator<Item = ReadFacts> {
        (0..PURPOSES.len() * 3 * 16).map(|n| {
            let bit = |bit: usize| n >> bit & 1 == 1;
            let rest = n >> 4;
            ReadFacts {
                purpose: PURPOSES[rest / 3],
                has_view: bit(0),
                locks_for: [LocksFor::Nobody, LocksFor::Level, LocksFor::Clause][rest % 3],
                in_transaction: bit(1),
                reads_tables: bit(2),
                has_joins: bit(3),
            }
        })
    }

    #[test]
    fn locks_are_taken_in_transactions_that_ask_for_them_and_never_by_a_given_view() {
        for facts in all_facts() {
            let plan = ReadPlan::choose(facts);
            let asks = facts.locks_for != LocksFor::Nobody && facts.in_transaction;
            let locks = plan.locks != LockWhen::Never;
            assert_eq!(locks, asks && !facts.has_view, "{facts:?}: {plan:?}");
            assert_eq!(plan.view == ViewFor::Given, facts.has_view, "{facts:?}");
        }
    }

    #[test]
    fn what_is_locked_before_it_runs_reads_what_is_newest() {
        for facts in all_facts() {
            let plan = ReadPlan::choose(facts);
            let is_newest = plan.view == ViewFor::Newest;
            assert_eq!(is_newest, plan.locks == LockWhen::BeforeItRuns, "{facts:?}");
        }
    }

    #[test]
    fn only_joins_of_a_kept_read_are_locked_when_they_have_run() {
        for facts in all_facts() {
            if ReadPlan::choose(facts).locks == LockWhen::WhenItHasRun {
                assert!(matches!(facts.purpose, Purpose::Kept { .. }) && facts.has_joins);
                assert_eq!(facts.locks_for, LocksFor::Level);
            }
        }
    }
}
