//! EXPLAIN: the plan that a statement would run with. EXPLAIN ANALYZE: the plan with what happened. EXPLAIN FOR
//! CONNECTION: the plan that another session is running, with how far it has come. EXPLAIN ALTER TABLE is
//! [elsewhere](crate::definition::explain_alteration).

use sheaf_optimizer::json::{Json, Layout};
use sheaf_optimizer::{ExplainRow, Explanation};
use sheaf_types::error::codes;
use sqlparser::ast;

use crate::error::{Result, SqlError};
use crate::parser::statement::{Explain, ExplainFormat, ExplainTarget, Statement};
use crate::parser::{Parsed, ParsedStatement};
use crate::query::rows::{Cell, Cells, Rows};
use crate::query::run::PlannedQuery;
use crate::session::Session;
use crate::session::result::ResultSink;

/// What a statement does with the rows that its query finds.
pub(crate) struct Change {
    /// MySQL's `select_type` for the tables that are changed.
    kind: &'static str,
    /// Their names in the statement.
    tables: Vec<String>,
}

/// The query of a statement, and what is done with what it finds.
pub(crate) type QueryAndChange = (Option<PlannedQuery>, Option<Change>);

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

    /// The query of a statement that reads or changes rows, planned as EXPLAIN plans it; `None` if it has none.
    pub(crate) fn plan_of_statement(
        &mut self,
        statement: ParsedStatement<'_>,
    ) -> Result<Option<PlannedQuery>> {
        let (query, _) = self.plan_to_explain_as_is(statement)?;
        Ok(query)
    }

    /// The query as EXPLAIN plans it, and what the statement does with its rows.
    pub(crate) fn plan_to_explain_as_is(
        &mut self,
        statement: ParsedStatement<'_>,
    ) -> Result<QueryAndChange> {
        let Parsed {
            ast: statement,
            text,
        } = statement;
        Ok(match statement {
            Statement::Query(query) => {
                (Some(self.plan_explained(Parsed::new(&query, text))?), None)
            }
            Statement::Insert(insert) => {
                let change = Change {
                    kind: if insert.replace_into {
                        "REPLACE"
                    } else {
                        "INSERT"
                    },
                    tables: vec![insert.table.to_string().replace('`', "")],
                };
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
        let tree = match self.direct_run(Parsed::new(&statement, text))? {
            Some(tree) => tree,
            None => {
                let Statement::Query(query) = statement else {
                    return Err(SqlError::not_supported_yet("EXPLAIN of this statement"));
                };
                let mut planned = self.plan_query(Parsed::new(&query, text), None)?;
                planned.measure()?;
                let physical = self.run_planned(planned, |_| Ok(()))?;
                physical.explain_run()
            }
        };
        Ok(match format {
            ExplainFormat::Json => document(Json::from(&tree)),
            _ => one_text(tree.print()),
        })
    }

    fn explain_connection(&mut self, id: u64, format: ExplainFormat) -> Result<Rows> {
        let handle = self.engine.session_handle(id)?;
        let Some(plan) = handle.running_plan() else {
            // A session that runs nothing has an empty plan; what it runs may have none.
            return match handle.activity().statement {
                Some(statement) if !is_explainable(&statement) => Err(not_explainable()),
                _ => Ok(empty(format)),
            };
        };
        Ok(match format {
            ExplainFormat::Tree => one_text(plan.explain_progress().print()),
            format => shown(&plan.explanation(), format),
        })
    }
}

/// Error 3012.
fn not_explainable() -> SqlError {
    SqlError::new(
        codes::EXPLAIN_NOT_SUPPORTED,
        "EXPLAIN FOR CONNECTION command is supported only for SELECT/UPDATE/INSERT/DELETE/REPLACE",
    )
}

fn is_explainable(statement: &str) -> bool {
    let word = statement.trim_start_matches(['(', ' ', '\n', '\t']);
    let word: String = word.chars().take_while(char::is_ascii_alphabetic).collect();
    [
        "SELECT", "WITH", "TABLE", "VALUES", "UPDATE", "INSERT", "DELETE", "REPLACE",
    ]
    .contains(&word.to_ascii_uppercase().as_str())
}

/// What is shown of a query; nothing if the statement has none.
pub(crate) fn explanation(query: Option<PlannedQuery>) -> Explanation {
    query.map_or_else(Explanation::default, |query| query.physical.explanation())
}

/// A plan in one of the formats.
fn shown(explanation: &Explanation, format: ExplainFormat) -> Rows {
    match format {
        ExplainFormat::Traditional => {
            let mut rows = traditional();
            for row in &explanation.tables {
                rows.push(cells_of(row));
            }
            rows
        }
        ExplainFormat::Json => document(Json::from(explanation)),
        ExplainFormat::Tree => one_text(explanation.text()),
    }
}

/// With what the statement does with the rows.
pub(crate) fn changed(explanation: Explanation, change: Option<Change>) -> Explanation {
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
fn empty(format: ExplainFormat) -> Rows {
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
