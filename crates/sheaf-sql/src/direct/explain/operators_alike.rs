//! Whether a direct plan would run, and the operators' plan that reads what it reads, as it reads it.
//!
//! A direct plan has no estimates but those of its keys. Hints lead the optimizer to the same indexes, in the same
//! order and without what direct plans do not do (multi-range reads, jumps, hash joins, bounded regret). EXPLAIN takes
//! that plan's estimates where it reads the same.

use sheaf_optimizer::NOT_IN_DIRECT_PLANS;
use sheaf_types::text::quoting::quoted_name;
use sqlparser::ast;

use crate::direct::access::Access;
use crate::direct::join::{Join, JoinedWay};
use crate::direct::read::{Way, would_read};
use crate::direct::{Action, DirectPlan};
use crate::error::Result;
use crate::parser::statement::Statement;
use crate::session::Session;

/// How a plan without parameters that [reads no queries](DirectPlan::reads_queries) would run, for EXPLAIN;
/// `None`: it would not.
pub(crate) fn would_run_directly(session: &Session, plan: &DirectPlan) -> Result<Option<Way>> {
    let may_run = session.client.meets_needs_to_show(plan);
    let Some(given) = session
        .given_of(plan, &[])
        .filter(|_| may_run && !session.table_locks.are_held())
    else {
        return Ok(None);
    };
    match &plan.action {
        Action::Read(read, table) => would_read(session, read, table, &given),
        Action::Join(join) => {
            let would_run = join.that_would_run(session, &given)?;
            Ok(would_run.map(|_| Way::Through))
        }
        Action::OverRows(query) => {
            let would_run = query.that_would_run(session, &given)?;
            Ok(would_run.map(|_| Way::Through))
        }
        // They are described by themselves.
        Action::Constants(_) | Action::Union(_) => Ok(None),
        Action::ChangeFound(change) => would_run_directly(session, &change.query),
        Action::LockFound(lock) => would_run_directly(session, &lock.find),
        // They are not explained.
        Action::IntoVariables(_) | Action::SetVariable(_) => Ok(None),
        Action::Update(..) | Action::Delete(..) | Action::Insert(_) | Action::InsertSelect(_) => {
            Ok(Some(Way::Through))
        }
    }
}

impl DirectPlan {
    /// The statement with hints that make the optimizer's plan like this one; `None` if none can.
    pub(crate) fn hinted(&self, way: Way, statement: &Statement) -> Option<Statement> {
        let mut statement = statement.clone();
        let (from, hints) = match &mut statement {
            Statement::Query(query) => match query.body.as_mut() {
                ast::SetExpr::Select(select) => (&select.from, &mut select.optimizer_hints),
                _ => return None,
            },
            Statement::Update(update) => (&update.tables, &mut update.hints),
            Statement::Delete(delete) => (&delete.tables, &mut delete.hints),
            _ => return None,
        };
        let factors = from.iter().flat_map(|part| {
            let joined = part.joins.iter().map(|join| &join.relation);
            std::iter::once(&part.relation).chain(joined)
        });
        let aliases = factors.map(alias_of).collect::<Option<Vec<String>>>()?;
        let mut text = format!("SET_VAR(optimizer_switch='{NOT_IN_DIRECT_PLANS}')");
        let mut order = Vec::new();
        let mut read = |from: usize, table: &sheaf_table::Table, access: &Access| {
            let alias = aliases.get(from)?;
            let index = &access.index.definition(table).name;
            text.push_str(&format!(" INDEX({alias} {})", quoted_name(index)));
            order.push(alias.as_str());
            Some(())
        };
        match &self.action {
            // The operators' plan of a small table is its own.
            Action::Read(plan, _) if plan.reads_whole => return None,
            Action::Read(plan, table) => read(0, table, plan.access_of(way).0)?,
            Action::ChangeFound(_) | Action::LockFound(_) => {
                let query = match &self.action {
                    Action::ChangeFound(change) => &change.query,
                    Action::LockFound(lock) => &lock.find,
                    _ => return None,
                };
                match &query.action {
                    Action::Read(plan, table) => read(0, table, plan.access_of(way).0)?,
                    Action::Join(join) => read_all(join, read)?,
                    Action::OverRows(query) => read_all(&query.rows, read)?,
                    _ => return None,
                }
            }
            Action::Update(plan, _) if plan.rows().access.is_whole() => return None,
            Action::Update(plan, table) => read(0, table, &plan.rows().access)?,
            Action::Delete(plan, _) if plan.rows().access.is_whole() => return None,
            Action::Delete(plan, table) => read(0, table, &plan.rows().access)?,
            Action::Join(join) => read_all(join, read)?,
            Action::OverRows(query) => read_all(&query.rows, read)?,
            Action::Insert(_)
            | Action::InsertSelect(_)
            | Action::Union(_)
            | Action::IntoVariables(_)
            | Action::SetVariable(_)
            | Action::Constants(_) => return None,
        }
        if order.len() > 1 {
            text.push_str(&format!(" JOIN_ORDER({})", order.join(", ")));
        }
        *hints = vec![ast::OptimizerHint {
            prefix: String::new(),
            text,
            style: ast::OptimizerHintStyle::MultiLine,
        }];
        Some(statement)
    }
}

/// Tells how each table of a join is read; `None` if one of them is a query.
fn read_all(
    join: &Join,
    mut read: impl FnMut(usize, &sheaf_table::Table, &Access) -> Option<()>,
) -> Option<()> {
    join.tables.iter().try_for_each(|joined| match &joined.way {
        JoinedWay::Keys(table, accesses) => read(joined.from, table, accesses.last()?),
        JoinedWay::Walk(table, access, _) | JoinedWay::First(table, access, _) => {
            read(joined.from, table, access)
        }
        JoinedWay::Small(..) | JoinedWay::Rows(_) => None,
    })
}

/// The name of a table in hints.
fn alias_of(factor: &ast::TableFactor) -> Option<String> {
    let ast::TableFactor::Table { name, alias, .. } = factor else {
        return None;
    };
    let name = match alias {
        Some(alias) => &alias.name,
        None => name.0.last()?.as_ident()?,
    };
    Some(quoted_name(&name.value))
}
