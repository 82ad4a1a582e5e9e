//! The plans of the workload's statements, as they are and with candidates.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use sheaf_optimizer::advisor::{TableNeed, is_settled};
use sheaf_table::{IndexPart, Table};
use sqlparser::ast;

use super::planned_cost::PlannedCost;
use super::replanning::replanned;
use super::workload::WorkloadStatement;
use super::{Limits, check_advice, not_advised};
use crate::accounts::requirements::check_requirement;
use crate::error::{Result, SqlError};
use crate::parser::change::name_of;
use crate::parser::statement::Update;
use crate::parser::{Parsed, Statement, parse_statement, scan};
use crate::session::Session;
use crate::session::hypothesis::{OptimizedQuery, PlanNotes};
use crate::statement::properties::properties_of;

/// A candidate that saves less than this of no statement is of no use to others either.
const CHEAPER_SHARE: f64 = 0.98;

/// What a statement changes of a table, each time that it runs.
pub(super) struct TableChange {
    pub table_id: u64,
    pub rows: f64,
    /// Entries that each row takes out and puts in, together, of an index that is changed.
    pub entries: f64,
    /// The columns that are given other values; `None`: whole rows come or go.
    pub columns: Option<Vec<usize>>,
}

/// A statement with its plan as it is.
pub(super) struct Studied {
    pub statement: WorkloadStatement,
    ast: Statement,
    /// What operators are planned of, if that is the same with all candidates.
    query: Option<OptimizedQuery>,
    pub cost_us: f64,
    pub needs: Vec<TableNeed>,
    pub changes: Vec<TableChange>,
}

/// See the module's comment.
pub(super) struct Study {
    pub statements: Vec<Studied>,
    /// How many statements could not be planned.
    pub unplanned: usize,
    /// By statement, and the candidates on its tables.
    known: BTreeMap<(usize, Vec<usize>), f64>,
}

impl Study {
    /// Plans all statements as they are. What is wrong with one that is given alone is the caller's business.
    pub(super) fn new(
        session: &mut Session,
        workload: Vec<WorkloadStatement>,
        is_alone: bool,
        limits: &mut Limits,
    ) -> Result<Study> {
        let mut study = Study {
            statements: Vec::new(),
            unplanned: 0,
            known: BTreeMap::new(),
        };
        for statement in workload {
            check_advice(&session.handle)?;
            if !limits.go_on() {
                break;
            }
            limits.plans += 1;
            match study_statement(session, statement) {
                Ok(studied) => study.statements.push(studied),
                Err(error) if is_alone => return Err(error),
                Err(error) if error.code == SqlError::query_interrupted().code => {
                    return Err(error);
                }
                Err(_) => study.unplanned += 1,
            }
        }
        Ok(study)
    }

    /// Plans all statements as they are once more, because more of their tables is in memory by now.
    pub(super) fn plan_again(&mut self, session: &mut Session, limits: &mut Limits) -> Result<()> {
        for studied in &mut self.statements {
            if limits.go_on() {
                limits.plans += 1;
                studied.cost_us = studied.planned_over(Vec::new(), session)?.cost_us;
            }
        }
        Ok(())
    }

    /// The tables that statements read by conditions, joins, orders or groups, or change.
    pub(super) fn tables(&self) -> Vec<Arc<Table>> {
        let mut tables: Vec<Arc<Table>> = Vec::new();
        for need in self.statements.iter().flat_map(|studied| &studied.needs) {
            if !tables.iter().any(|known| known.is_version_of(&need.table)) {
                tables.push(Arc::clone(&need.table));
            }
        }
        tables
    }

    /// Whether candidates of one table make some statement cheaper, without others. `table` is their table with them,
    /// and `parts` are those of each. They may be made of fewer rows than those that are compared later.
    pub(super) fn is_helped(
        &self,
        (table, parts): (&Arc<Table>, &[&[IndexPart]]),
        session: &mut Session,
        limits: &mut Limits,
    ) -> Result<bool> {
        for studied in &self.statements {
            let mut parts = parts.iter();
            let may_use = parts.any(|parts| studied.may_use(table.definition.id, parts));
            if may_use && limits.go_on() {
                limits.plans += 1;
                let planned = studied.planned_over(vec![Arc::clone(table)], session)?;
                if planned.cost_us < studied.cost_us * CHEAPER_SHARE {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    /// What a statement costs with some candidates on its tables, by number, ascending. `tables` makes these tables.
    pub(super) fn cost(
        &mut self,
        key: (usize, Vec<usize>),
        tables: impl FnOnce(&[usize]) -> Vec<Arc<Table>>,
        session: &mut Session,
        limits: &mut Limits,
    ) -> Result<f64> {
        let studied = &self.statements[key.0];
        if key.1.is_empty() {
            return Ok(studied.cost_us);
        }
        if let Some(known) = self.known.get(&key) {
            return Ok(*known);
        }
        limits.plans += 1;
        let cost = studied.planned_over(tables(&key.1), session)?.cost_us;
        self.known.insert(key, cost);
        Ok(cost)
    }
}

impl Studied {
    /// Whether a plan of it may have any use of an index.
    pub(super) fn may_use(&self, table_id: u64, parts: &[IndexPart]) -> bool {
        let mut needs = self.needs.iter();
        needs.any(|need| need.table.definition.id == table_id && need.may_use(parts))
    }

    /// Whether it changes rows of a table that are there.
    pub(super) fn changes_rows_of(&self, table_id: u64) -> bool {
        let changes_rows = matches!(self.ast, Statement::Update(_) | Statement::Delete(_));
        let mut changes = self.changes.iter();
        changes_rows && changes.any(|change| change.table_id == table_id)
    }

    /// Its plan over these tables, which stand for others of their version.
    pub(super) fn planned_over(
        &self,
        tables: Vec<Arc<Table>>,
        session: &mut Session,
    ) -> Result<PlannedCost> {
        check_advice(&session.handle)?;
        if let Some(query) = &self.query
            && let Some(planned) = replanned(session, query, &tables)?
        {
            return Ok(planned);
        }
        session.statement.hypothesis.tables = tables;
        enter_database(session, self.statement.database.as_deref());
        check_to_advise(session, &self.ast)?;
        let planned = planned_cost(session, self.ast.clone(), &self.statement.text);
        session.statement.hypothesis.tables.clear();
        planned
    }
}

/// Makes a database the current one, until the request ends.
pub(super) fn enter_database(session: &mut Session, database: Option<&str>) {
    if session.database.as_deref() != database {
        let own = std::mem::replace(&mut session.database, database.map(str::to_string));
        session.statement.own_database.get_or_insert(own);
    }
}

/// Errors for a statement that the session may not run.
pub(super) fn check_to_advise(session: &mut Session, statement: &Statement) -> Result<()> {
    let properties = properties_of(statement);
    check_requirement(session, properties.requirement)?;
    session.table_locks.check_used(
        properties.under_lock_tables,
        session.database.as_deref(),
        session.table_names(),
    )
}

/// Plans a statement as it is.
fn study_statement(session: &mut Session, statement: WorkloadStatement) -> Result<Studied> {
    enter_database(session, statement.database.as_deref());
    let text: Cow<'_, str> = scan::resolve_executable_comments(&statement.text);
    let text = text.into_owned();
    let (range, _) = scan::first_statement(&text).ok_or_else(SqlError::empty_query)?;
    let mut text = text[range].to_string();
    let ast = match (
        parse_statement(&text, &session.dialect()),
        &statement.without_rows,
    ) {
        (Err(_), Some(without_rows)) => {
            text.clone_from(without_rows);
            parse_statement(&text, &session.dialect())?
        }
        (parsed, _) => parsed?,
    };
    if !matches!(
        ast,
        Statement::Query(_) | Statement::Insert(_) | Statement::Update(_) | Statement::Delete(_)
    ) {
        return Err(not_advised());
    }
    check_to_advise(session, &ast)?;
    session.statement.hypothesis.notes = Some(PlanNotes::default());
    let planned = planned_cost(session, ast.clone(), &text);
    let notes = session.statement.hypothesis.notes.take();
    let PlanNotes { needs, mut queries } = notes.unwrap_or_default();
    let planned = planned?;
    let query = match queries.len() {
        1 => queries.pop(),
        _ => None,
    };
    let query = match query {
        Some(query) if is_settled(&query.plan)? => Some(query),
        _ => None,
    };
    let changes = changes_of(
        session,
        &ast,
        &needs,
        (planned.rows, statement.changed_rows),
    )?;
    Ok(Studied {
        statement: WorkloadStatement { text, ..statement },
        ast,
        query,
        cost_us: planned.cost_us,
        needs,
        changes,
    })
}

/// Plans a statement's query, and forgets the plan. It locks no rows.
fn planned_cost(session: &mut Session, statement: Statement, text: &str) -> Result<PlannedCost> {
    let mark = session.warnings.mark();
    let planned = session.plan_of_statement(Parsed::new(statement, text));
    // What is said of the statement's hints is said when it runs.
    session.warnings.back_to(mark);
    Ok(match planned? {
        Some(planned) => PlannedCost::of(&planned.physical),
        None => PlannedCost {
            cost_us: 0.0,
            rows: 1.0,
            uses: Vec::new(),
        },
    })
}

/// What a statement changes. `rows`: those that its query is estimated to find, and those that it was counted to
/// change.
fn changes_of(
    session: &Session,
    statement: &Statement,
    needs: &[TableNeed],
    (found, counted): (f64, Option<f64>),
) -> Result<Vec<TableChange>> {
    let changed = needs.iter().filter(|need| need.is_changed);
    let rows = counted.unwrap_or(found);
    Ok(match statement {
        Statement::Insert(insert) => {
            let ast::TableObject::TableName(name) = &insert.table else {
                return Ok(Vec::new());
            };
            let (database, table) = session.resolve(&name_of(name)?)?;
            let table = session.table_names().table(&database, &table)?;
            let values = match insert.source.as_ref().map(|source| source.body.as_ref()) {
                Some(ast::SetExpr::Values(values)) => values.rows.len() as f64,
                _ => found,
            };
            vec![TableChange {
                table_id: table.definition.id,
                rows: counted.unwrap_or(values),
                entries: if insert.replace_into { 2.0 } else { 1.0 },
                columns: None,
            }]
        }
        Statement::Delete(_) => changed
            .map(|need| TableChange {
                table_id: need.table.definition.id,
                rows,
                entries: 1.0,
                columns: None,
            })
            .collect(),
        Statement::Update(update) => changed
            .map(|need| TableChange {
                table_id: need.table.definition.id,
                rows,
                // The old entry is taken out, and the new one put in.
                entries: 2.0,
                columns: Some(assigned_columns(update, &need.table)),
            })
            .collect(),
        _ => Vec::new(),
    })
}

/// The columns of a table that an UPDATE may assign to, by their names alone.
fn assigned_columns(update: &Update, table: &Table) -> Vec<usize> {
    let assigned = update.assignments.iter();
    let columns = assigned.filter_map(|assignment| {
        let ast::AssignmentTarget::ColumnName(name) = &assignment.target else {
            return None;
        };
        let name = name.0.last()?.as_ident()?;
        table.definition.column_position(&name.value)
    });
    columns.collect()
}
