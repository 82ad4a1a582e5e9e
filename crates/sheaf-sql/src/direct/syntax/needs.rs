//! What a session has to be allowed to, to run a plan.

use sheaf_table::{PrivilegeLevel, Privileges, Table};

use crate::accounts::{Client, TableNeed, delete_reads, update_reads};
use crate::direct::rows::row_source::Derived;
use crate::direct::{Action, DirectPlan};
use crate::parser::statement::Statement;

/// What a plan's statement needs of its tables.
pub(in crate::direct) fn needs_of(action: &Action, statement: &Statement) -> Vec<TableNeed> {
    let need = |table: &Table, privileges: Privileges| TableNeed::new(table, privileges, None);
    let changing = |privilege: Privileges, reads: bool| match reads {
        true => privilege | Privileges::SELECT,
        false => privilege,
    };
    match (action, statement) {
        (Action::Read(read, table), _) => {
            let locks = read.locking.map(|locking| locking.mode());
            vec![TableNeed::new(table, Privileges::SELECT, locks)]
        }
        (Action::Join(join), _) => {
            let tables = join.tables();
            let own = tables.map(|table| need(table, Privileges::SELECT));
            let derived = join.derived().flat_map(Derived::needs).cloned();
            own.chain(derived).collect()
        }
        (Action::OverRows(query), _) => {
            let tables = query.rows.tables();
            let own = tables.map(|table| need(table, Privileges::SELECT));
            let derived = query.rows.derived().flat_map(Derived::needs).cloned();
            let queries = derived.chain(query.needs_of_subqueries());
            own.chain(queries).collect()
        }
        (Action::Union(union), _) => union.derived.needs().to_vec(),
        (Action::LockFound(lock), _) => lock.needs(),
        (Action::IntoVariables(into), _) => into.query.needs.clone(),
        (Action::SetVariable(set), _) => set.query.needs.clone(),
        (Action::Constants(_), _) => Vec::new(),
        (Action::Update(_, table), Statement::Update(update)) => {
            vec![need(
                table,
                changing(Privileges::UPDATE, update_reads(update)),
            )]
        }
        (Action::Delete(_, table), Statement::Delete(delete)) => {
            vec![need(
                table,
                changing(Privileges::DELETE, delete_reads(delete)),
            )]
        }
        // Not made of such statements, but then all is asked for.
        (Action::Update(_, table) | Action::Delete(_, table), _) => {
            vec![need(table, Privileges::all_at(PrivilegeLevel::Table))]
        }
        (Action::ChangeFound(change), Statement::Update(update)) => {
            change.needs(update_reads(update))
        }
        (Action::ChangeFound(change), Statement::Delete(delete)) => {
            change.needs(delete_reads(delete))
        }
        (Action::ChangeFound(change), _) => change.needs(true),
        (Action::Insert(insert), _) => vec![need(insert.table(), insert.needs)],
        (Action::InsertSelect(insert), _) => insert.needs.clone(),
    }
}

impl Client {
    /// Whether the session may run a plan that it only shows, which locks nothing.
    pub(in crate::direct) fn meets_needs_to_show(&self, plan: &DirectPlan) -> bool {
        let without_locks = |need: &TableNeed| TableNeed {
            locks: None,
            ..need.clone()
        };
        let needs: Vec<TableNeed> = plan.needs.iter().map(without_locks).collect();
        self.meets_needs(&needs)
    }
}
