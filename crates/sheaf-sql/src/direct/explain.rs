//! EXPLAIN of statements that may run directly: what of it is the direct plan's, and what are operators' estimates.
//!
//! A direct plan has no estimates but those of its keys. Hints lead the optimizer to the same indexes, in the same
//! order and without what direct plans do not do (multi-range reads, jumps, hash joins, bounded regret). EXPLAIN takes
//! that plan's estimates where it reads the same. EXPLAIN ANALYZE runs the direct plan and adds what its accesses did
//! to their lines. If the plan leaves the statement to operators, these are run and measured, as without EXPLAIN.

use sheaf_optimizer::{Explanation, NOT_IN_DIRECT_PLANS, NodeId, PlanNode};
use sheaf_types::text::quoting::quoted_name;
use sqlparser::ast;

use super::access::Access;
use super::analyze::MeasuredRun;
use super::description::Described;
use super::join::{Join, JoinedWay};
use super::measured::{AccessId, Work};
use super::read::Way;
use super::{Action, DirectPlan};
use crate::dispatch::explain::{changed, explanation};
use crate::error::Result;
use crate::parser::statement::Statement;
use crate::parser::{Parsed, ParsedStatement};
use crate::session::Session;
use crate::statement::properties::properties_of;

/// How a statement would run directly.
enum Direct {
    No,
    /// As the plan describes itself.
    Described(Box<Described>, Operators),
    /// Without reading a table.
    WithoutTable,
}

/// Which operators read the same as a direct plan.
enum Operators {
    /// None: it reads queries.
    No,
    /// Those of the statement, as far as they do.
    Own,
    /// Those of the statement with these hints.
    Hinted(Box<Statement>),
}

impl Session {
    /// Plans a statement without locking or changing anything but the definitions of its tables.
    pub(crate) fn explanation_of(&mut self, statement: ParsedStatement<'_>) -> Result<Explanation> {
        let plan = self.direct_plan(&statement.ast, (statement.text, 0));
        let direct = self.direct_to_explain(plan.as_ref(), &statement.ast)?;
        self.explanation_with(direct, statement)
    }

    /// The same of a statement of which it is known whether it runs directly.
    fn explanation_with(
        &mut self,
        direct: Direct,
        statement: ParsedStatement<'_>,
    ) -> Result<Explanation> {
        let text = statement.text;
        let (query, change) = self.plan_to_explain_as_is(statement)?;
        let own = explanation(query);
        Ok(match direct {
            Direct::No => changed(own, change),
            Direct::WithoutTable => changed(own, change).as_direct(),
            Direct::Described(described, operators) => {
                let mut described = described.explanation;
                match operators {
                    Operators::No => {}
                    Operators::Own => described.take_estimates(&own),
                    Operators::Hinted(hinted) => {
                        // The user has not asked for these hints.
                        let warnings = self.warnings.clone();
                        self.obey_statement_hints(properties_of(&hinted).hints, text);
                        let planned = self.plan_to_explain_as_is(Parsed::new(*hinted, text));
                        self.warnings = warnings;
                        let (query, _) = planned?;
                        described.take_estimates(&explanation(query));
                        described.name_keys_of(&own);
                    }
                }
                changed(described, change).as_direct()
            }
        })
    }

    /// `plan`: the direct plan of the statement, if it has one.
    fn direct_to_explain(
        &self,
        plan: Option<&DirectPlan>,
        statement: &Statement,
    ) -> Result<Direct> {
        let Some(plan) = plan else {
            return Ok(Direct::No);
        };
        let operators = match plan.reads_queries() {
            true => Operators::No,
            false => match self.would_run_directly(plan)? {
                None => return Ok(Direct::No),
                Some(way) => match plan.hinted(way, statement) {
                    Some(hinted) => Operators::Hinted(Box::new(hinted)),
                    None => Operators::Own,
                },
            },
        };
        Ok(match self.describe_direct(plan)? {
            Some(described) => Direct::Described(Box::new(described), operators),
            None if plan.reads_table() => Direct::No,
            None => Direct::WithoutTable,
        })
    }

    /// Runs a query directly, and says what its plan did. `None`: it runs as a plan of operators.
    pub(crate) fn direct_run(
        &mut self,
        statement: Parsed<'_, &Statement>,
    ) -> Result<Option<PlanNode>> {
        let plan = self.direct_plan(statement.ast, (statement.text, 0));
        let Some(plan) = plan.filter(|plan| !plan.locks_rows()) else {
            return Ok(None);
        };
        let mut direct = self.direct_to_explain(Some(&plan), statement.ast)?;
        let Direct::Described(described, _) = &mut direct else {
            return Ok(None);
        };
        let Some(run) = self.measure_direct(&plan)? else {
            return Ok(None);
        };
        if let Some(tree) = &mut described.explanation.tree {
            add_work(tree, &described.accesses, &run);
        }
        let statement = Parsed::new(statement.ast.clone(), statement.text);
        // What the estimates are taken from is not what the statement warns of.
        let warnings = self.warnings.clone();
        let explanation = self.explanation_with(direct, statement);
        self.warnings = warnings;
        let mut tree = explanation?.tree;
        if let Some(whole) = &mut tree {
            whole.measured = Some(run.whole);
        }
        Ok(tree)
    }
}

/// Adds what was measured to the lines of the tables.
fn add_work(node: &mut PlanNode, accesses: &[(NodeId, AccessId)], run: &MeasuredRun) {
    if let Some(id) = node.id {
        let of_line = accesses.iter().filter(|(line, _)| *line == id);
        let work = of_line.filter_map(|(_, access)| run.accesses.get(access));
        let work = work.copied().reduce(Work::and).unwrap_or_default();
        node.measured = Some(work.measured);
        node.counters = work.counters();
    }
    let children = node.children.iter_mut();
    children.for_each(|child| add_work(child, accesses, run));
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
