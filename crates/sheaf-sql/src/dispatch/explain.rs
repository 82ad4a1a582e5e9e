//! EXPLAIN: the plan that a statement would run with. EXPLAIN ANALYZE: the plan with what happened. EXPLAIN FOR
//! CONNECTION is elsewhere (`dispatch/explain_connection.rs`), and so is EXPLAIN ALTER TABLE
//! (`definition/explain_alteration.rs`).

use sheaf_optimizer::json::{Json, Layout};
use sheaf_optimizer::{ExplainRow, Explanation, NodeId, PlanNode};
use sqlparser::ast;

use super::hints::obey_statement_hints;
use crate::direct::{
    AccessId, Described, DirectPlan, MeasuredRun, RunBy, Work, describe_direct, measure_direct,
    would_run_directly,
};
use crate::error::{Result, SqlError};
use crate::parser::statement::{Explain, ExplainFormat, ExplainTarget, Statement};
use crate::parser::{Parsed, ParsedStatement};
use crate::query::rows::{Cell, Cells, Rows};
use crate::query::run::PlannedQuery;
use crate::session::Session;
use crate::session::result::ResultSink;
use crate::session_parts::traces::DirectOutcome;
use crate::statement::properties::properties_of;

/// The first line of what EXPLAIN ANALYZE says of a statement that locks rows, and would run directly.
const IN_PLACE_OF_DIRECT: &str = "Operators in place of a direct plan, without its locks";

/// The same where its direct plan was run.
const DIRECT_WITHOUT_LOCKS: &str = "Direct (without operators, and without its locks)";

/// What a statement does with the rows that its query finds.
pub(super) struct Change {
    /// MySQL's `select_type` for the tables that are changed.
    pub(super) kind: &'static str,
    /// Their names in the statement.
    pub(super) tables: Vec<String>,
}

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

/// What EXPLAIN ANALYZE has to measure.
enum Analyzed {
    /// A direct plan, which was measured.
    Directly(Box<Explanation>),
    /// Operators. The statement would run directly, and what it finds depends on locks.
    InsteadOfLocks,
    Operators,
}

/// The query of a statement, and what is done with what it finds.
type QueryAndChange = (Option<PlannedQuery>, Option<Change>);

impl Session {
    pub(crate) fn explain(
        &mut self,
        explain: Parsed<'_, Explain>,
        sink: &mut dyn ResultSink,
    ) -> Result<()> {
        let Parsed { ast: explain, text } = explain;
        self.statement.is_explained = true;
        let rows = match explain.target {
            ExplainTarget::Connection(id) => self.explain_connection(id, explain.format)?,
            ExplainTarget::Statement(Statement::AlterTable { name, changes })
                if !explain.analyze && explain.format == ExplainFormat::Traditional =>
            {
                self.explain_alteration(&name, Parsed::new(&changes, text))?
            }
            ExplainTarget::Statement(statement) if explain.analyze => {
                self.analyze_statement(Parsed::new(statement, text), explain.format)?
            }
            ExplainTarget::Statement(statement) => {
                let explanation = self.explanation_of(Parsed::new(statement, text))?;
                shown(&explanation, explain.format)
            }
        };
        // The client may take its time.
        self.workers.planning().pause();
        rows.send(sink, self.result_collation_id(), self.end_of_rows())
    }

    /// Plans a statement without locking or changing anything but the definitions of its tables.
    fn explanation_of(&mut self, statement: ParsedStatement<'_>) -> Result<Explanation> {
        // What it plans for itself is not traced.
        let trace = std::mem::take(&mut self.traces.current);
        let plan = self.direct_plan(&statement.ast, (statement.text, 0));
        let direct = self.direct_to_explain(plan.as_ref(), &statement.ast);
        self.traces.current = trace;
        let direct = direct?;
        match (&direct, &plan) {
            (_, None) => {}
            (Direct::No, Some(_)) => self.traces.note_direct(DirectOutcome::GivenUp),
            (Direct::Described(..) | Direct::WithoutTable, Some(_)) => {
                self.traces.note_direct(DirectOutcome::Chosen);
            }
        }
        self.explanation_with(direct, statement)
    }

    /// The same of a statement of which it is known whether it runs directly.
    fn explanation_with(
        &mut self,
        direct: Direct,
        statement: ParsedStatement<'_>,
    ) -> Result<Explanation> {
        let text = statement.text;
        let direct = match direct {
            // What is said of it is all its own: operators need not be planned.
            Direct::Described(described, Operators::No)
                if matches!(statement.ast, Statement::Query(_)) && !self.traces.current.is_on() =>
            {
                return Ok(described.explanation.as_direct());
            }
            direct => direct,
        };
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
                        let trace = std::mem::take(&mut self.traces.current);
                        obey_statement_hints(self, properties_of(&hinted).hints, text);
                        let planned = self.plan_to_explain_as_is(Parsed::new(*hinted, text));
                        self.traces.current = trace;
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
        &mut self,
        plan: Option<&DirectPlan>,
        statement: &Statement,
    ) -> Result<Direct> {
        let Some(plan) = plan else {
            return Ok(Direct::No);
        };
        if !self.plans_constants_of(plan) {
            return Ok(Direct::No);
        }
        let operators = match plan.reads_queries() || plan.is_constant() {
            true => Operators::No,
            false => match would_run_directly(self, plan)? {
                None => return Ok(Direct::No),
                Some(way) => match plan.hinted(way, statement) {
                    Some(hinted) => Operators::Hinted(Box::new(hinted)),
                    None => Operators::Own,
                },
            },
        };
        Ok(match describe_direct(self, (plan, RunBy::Itself))? {
            Some(described) => Direct::Described(Box::new(described), operators),
            None if plan.reads_table() => Direct::No,
            None => Direct::WithoutTable,
        })
    }

    /// Runs a query directly, if it would run so, and says what its plan did.
    fn direct_run(&mut self, statement: Parsed<'_, &Statement>) -> Result<Analyzed> {
        // What it plans for itself is not traced.
        let trace = std::mem::take(&mut self.traces.current);
        let plan = self.direct_plan(statement.ast, (statement.text, 0));
        let direct = self.direct_to_explain(plan.as_ref(), statement.ast);
        let run = match (&direct, &plan) {
            (Ok(Direct::Described(..)), Some(plan)) => measure_direct(self, plan),
            _ => Ok(None),
        };
        self.traces.current = trace;
        let (mut direct, run) = (direct?, run?);
        let Some(plan) = plan else {
            return Ok(Analyzed::Operators);
        };
        let (Direct::Described(described, _), Some(run)) = (&mut direct, run) else {
            self.traces.note_direct(DirectOutcome::GivenUp);
            return Ok(match (direct, plan.locks_rows()) {
                (Direct::Described(..), true) => Analyzed::InsteadOfLocks,
                _ => Analyzed::Operators,
            });
        };
        self.traces.note_direct(DirectOutcome::Chosen);
        if let Some(tree) = &mut described.explanation.tree {
            add_work(tree, &described.accesses, &run);
        }
        let statement = Parsed::new(statement.ast.clone(), statement.text);
        // What the estimates are taken from is not what the statement warns of.
        let warnings = self.warnings.clone();
        let explanation = self.explanation_with(direct, statement);
        self.warnings = warnings;
        let mut explanation = explanation?;
        Ok(match &mut explanation.tree {
            Some(whole) => {
                whole.measured = Some(run.whole);
                if plan.locks_rows() {
                    whole.text = DIRECT_WITHOUT_LOCKS.to_string();
                }
                Analyzed::Directly(Box::new(explanation))
            }
            None => Analyzed::Operators,
        })
    }

    /// The query of a statement that reads or changes rows, planned as EXPLAIN plans it; `None` if it has none.
    pub(crate) fn plan_of_statement(
        &mut self,
        statement: ParsedStatement<'_>,
    ) -> Result<Option<PlannedQuery>> {
        let (query, _) = self.plan_to_explain_as_is(statement)?;
        Ok(query)
    }

    /// The query as EXPLAIN plans it, and what the statement does with its rows.
    fn plan_to_explain_as_is(&mut self, statement: ParsedStatement<'_>) -> Result<QueryAndChange> {
        let Parsed {
            ast: statement,
            text,
        } = statement;
        Ok(match statement {
            Statement::Query(query) => {
                (Some(self.plan_explained(Parsed::new(&query, text))?), None)
            }
            Statement::Insert(insert) => {
                let change = inserted(&insert);
                let source = insert.source;
                let source = source
                    .filter(|source| !matches!(source.body.as_ref(), ast::SetExpr::Values(_)));
                let query = match source {
                    Some(query) => Some(self.plan_explained(Parsed::new(&query, text))?),
                    None => None,
                };
                (query, Some(change))
            }
            Statement::Update(update) => {
                let (query, tables) = self.plan_update(Parsed::new(&update, text))?;
                let kind = "UPDATE";
                (Some(query), Some(Change { kind, tables }))
            }
            Statement::Delete(delete) => {
                let (query, tables) = self.plan_delete(Parsed::new(&delete, text))?;
                let kind = "DELETE";
                (Some(query), Some(Change { kind, tables }))
            }
            _ => return Err(SqlError::not_supported_yet("EXPLAIN of this statement")),
        })
    }

    /// Runs a query and shows what its operators did.
    fn analyze_statement(
        &mut self,
        statement: ParsedStatement<'_>,
        format: ExplainFormat,
    ) -> Result<Rows> {
        let Parsed {
            ast: statement,
            text,
        } = statement;
        if !matches!(statement, Statement::Query(_)) {
            return Err(SqlError::not_supported_yet(
                "EXPLAIN ANALYZE of a statement that writes",
            ));
        }
        if format == ExplainFormat::Traditional {
            return Err(SqlError::not_supported_yet(
                "EXPLAIN ANALYZE with TRADITIONAL format",
            ));
        }
        let explanation = match self.direct_run(Parsed::new(&statement, text))? {
            Analyzed::Directly(explanation) => *explanation,
            analyzed @ (Analyzed::InsteadOfLocks | Analyzed::Operators) => {
                let Statement::Query(query) = statement else {
                    return Err(SqlError::not_supported_yet("EXPLAIN of this statement"));
                };
                let mut planned = self.plan_query(Parsed::new(&query, text), None)?;
                planned.measure()?;
                let physical = self.run_planned(planned, |_| Ok(()))?;
                let explanation = physical.explain_run();
                match analyzed {
                    Analyzed::InsteadOfLocks => explanation.below(IN_PLACE_OF_DIRECT),
                    _ => explanation,
                }
            }
        };
        Ok(match format {
            ExplainFormat::Json => document(explanation.run_json()),
            _ => one_text(explanation.text()),
        })
    }
}

/// What an INSERT or a REPLACE does.
pub(super) fn inserted(insert: &ast::Insert) -> Change {
    Change {
        kind: match insert.replace_into {
            true => "REPLACE",
            false => "INSERT",
        },
        tables: vec![insert.table.to_string().replace('`', "")],
    }
}

/// What is shown of a query; nothing if the statement has none.
fn explanation(query: Option<PlannedQuery>) -> Explanation {
    query.map_or_else(Explanation::default, |query| query.physical.explanation())
}

/// Adds what was measured to the nodes of the tables.
fn add_work(tree: &mut PlanNode, accesses: &[(NodeId, AccessId)], run: &MeasuredRun) {
    tree.for_each(&mut |node| {
        let Some(id) = node.id else {
            return;
        };
        let of_node = accesses.iter().filter(|(node, _)| *node == id);
        let work = of_node.map(|(_, access)| run.accesses.get(access).copied());
        // Rows of queries in a FROM wait in memory, and no access reads them.
        if let Some(work) = work.map(Option::unwrap_or_default).reduce(Work::and) {
            node.measured = Some(work.measured);
            node.counters = work.counters();
        }
    });
}

/// A plan in one of the formats.
pub(super) fn shown(explanation: &Explanation, format: ExplainFormat) -> Rows {
    match format {
        ExplainFormat::Traditional => {
            let mut rows = traditional();
            for row in explanation.tables() {
                rows.push(cells_of(row));
            }
            rows
        }
        ExplainFormat::Json => document(Json::from(explanation)),
        ExplainFormat::Tree => one_text(explanation.text()),
    }
}

/// With what the statement does with the rows.
pub(super) fn changed(explanation: Explanation, change: Option<Change>) -> Explanation {
    let Some(Change { kind, tables }) = change else {
        return explanation;
    };
    let names = tables.join(", ");
    let line = match kind {
        "UPDATE" => format!("Update {names} (buffered)"),
        "DELETE" => format!("Delete from {names} (buffered)"),
        "REPLACE" => format!("Replace into {names}"),
        _ => format!("Insert into {names}"),
    };
    explanation.with_change(kind, &tables, line)
}

/// One cell with a text of many lines.
fn one_text(text: String) -> Rows {
    let mut rows = Rows::new([("EXPLAIN", Cells::Text(u32::MAX))]);
    rows.push(vec![text.into()]);
    rows
}

fn document(json: Json) -> Rows {
    one_text(json.print(Layout::default()))
}

/// What is shown for a session that runs no plan.
pub(super) fn empty(format: ExplainFormat) -> Rows {
    match format {
        ExplainFormat::Traditional => traditional(),
        ExplainFormat::Json | ExplainFormat::Tree => {
            Rows::new([("EXPLAIN", Cells::Text(u32::MAX))])
        }
    }
}

/// MySQL's twelve columns.
fn traditional() -> Rows {
    Rows::new([
        ("id", Cells::Unsigned),
        ("select_type", Cells::Text(19)),
        ("table", Cells::Text(64)),
        ("partitions", Cells::Text(1024)),
        ("type", Cells::Text(10)),
        ("possible_keys", Cells::Text(1024)),
        ("key", Cells::Text(64)),
        ("key_len", Cells::Text(1024)),
        ("ref", Cells::Text(1024)),
        ("rows", Cells::Unsigned),
        ("filtered", Cells::Text(10)),
        ("Extra", Cells::Text(255)),
    ])
}

fn cells_of(row: &ExplainRow) -> Vec<Cell> {
    vec![
        row.id.into(),
        row.select_type.clone().into(),
        row.table.clone().into(),
        row.partitions.clone().into(),
        row.type_.clone().into(),
        row.possible_keys.clone().into(),
        row.key.clone().into(),
        row.key_len.clone().into(),
        row.ref_.clone().into(),
        row.rows.into(),
        row.filtered.map(|filtered| format!("{filtered:.2}")).into(),
        row.extra.clone().into(),
    ]
}
