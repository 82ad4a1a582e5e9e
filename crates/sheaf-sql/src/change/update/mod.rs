//! UPDATE, of one table and of several.
//!
//! ```text
//!   SELECT keys, new values -> spool -> for each row: read it, put the values in, compare, write
//! ```
//!
//! In the form for one table assignments are made from left to right, and an expression sees what assignments before it
//! made of a column: `SET a = a + 1, b = a` gives b the new a. The query computes all values at once, so these later
//! values are computed when rows are written (`later_values.rs`). With several tables all expressions see the old
//! values.
//!
//! A row that a join finds more than once is changed once, with the values found first.

pub(crate) mod update_rows;
pub(crate) mod update_target;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::sync::Arc;

use sheaf_access::cancel;
use sheaf_frontend::column_default::default_expression;
use sheaf_frontend::syntax::inside;
use sheaf_frontend::walk::{ExpressionVisitor, walk_expression, walk_outside_queries};
use sheaf_table::{ChangeSet, Privileges, Table};
use sqlparser::ast;

use crate::change::find::change_query::{ChangeQuery, Reference, References, key_of};
use crate::change::find::first_finds::{Finds, FirstFinds};
use crate::change::row_values::later_values::{
    LaterValues, column_of, is_of_rows, later_evaluator, names_one_of, without_evaluator,
};
use crate::change::row_values::values_before::write_defaults;
use crate::change::rules::generated_columns::value_not_allowed;
use crate::change::rules::row_rules::{RowRules, row_rules};
use crate::change::values::assigned::{as_stored, is_default};
use crate::change::values::value_names::names_outside_queries;
use crate::error::{Result, SqlError};
use crate::isolation::transaction::StatementTransaction;
use crate::locking::statement_locks::Others;
use crate::parser::statement::Update;
use crate::parser::{Parsed, ParsedQuery};
use crate::query::row_spool::{RowSpool, SpooledRows, collect_rows};
use crate::query::rows::value_at;
use crate::query::run::PlannedQuery;
use crate::query::values::hybrid_number;
use crate::session::Session;
use crate::session::result::ResultSink;
use update_rows::{Updated, update_rows};
use update_target::{Rules, Source, Target};

/// Columns that are replaced by what was assigned to them before, in one statement: each may repeat a whole expression.
const MAX_SUBSTITUTIONS: usize = 1_000;

/// One `column = value`.
struct Assignment {
    /// Number of the table's reference.
    reference: usize,
    column: usize,
    value: NewValue,
}

#[derive(Clone)]
enum NewValue {
    Default,
    Expression(Box<ast::Expr>),
    /// By its number among the later values.
    Later(usize),
}

/// How an UPDATE is done.
struct UpdateQuery {
    targets: Vec<Target>,
    later: LaterValues,
    rules: Rules,
    query: Box<ast::Query>,
}

impl Session {
    pub(crate) fn update(
        &mut self,
        update: Parsed<'_, Update>,
        sink: &mut dyn ResultSink,
    ) -> Result<()> {
        let Parsed { ast: update, text } = update;
        check_clauses(&update, is_single(&update.tables))?;
        // Otherwise what it changes has to be known first.
        if !self.temporary.has_any() {
            self.check_writable(false)?;
        }
        let (references, assignments, locked) = self.lock_for_change(
            (&update.tables, &update.assignments),
            Privileges::UPDATE,
            |references| {
                check_clauses(&update, is_of_one(&update, references))?;
                let assignments = resolve(references, &update.assignments)?;
                let targets = assignments.iter().map(|a| a.reference).collect();
                Ok((assignments, targets))
            },
        )?;
        let parsed = Parsed::new(&update, text);
        let outcome = match self.check_assigned(&references, (&update.assignments, &assignments)) {
            Ok(()) => self.update_locked(parsed, (&references, &locked), assignments),
            Err(denied) => Err(denied),
        };
        self.transactions.keep_tables(locked);
        self.end_update(outcome?, sink)
    }

    /// Error 1143 for a column that may not be assigned, or one that a value reads and that may not be read. Values
    /// that are computed by the query are checked there too. Later values are not part of it, nor are a column that is
    /// assigned to itself and DEFAULT of a column.
    fn check_assigned(
        &self,
        references: &References,
        (written, resolved): (&[ast::Assignment], &[Assignment]),
    ) -> Result<()> {
        if self.client.has_all_rights() {
            return Ok(());
        }
        for assignment in resolved {
            let reference = &references.0[assignment.reference];
            self.check_column(reference, assignment.column, Privileges::UPDATE)?;
        }
        for assignment in written {
            for (table, column) in names_outside_queries(&assignment.value) {
                let parts = table.into_iter().chain([column]);
                let parts: Vec<ast::Ident> = parts.map(ast::Ident::new).collect();
                // What means no column is found when the query is bound.
                if let Ok((reference, column)) = references.column(&ast::ObjectName::from(parts)) {
                    let reference = &references.0[reference];
                    self.check_may_name(reference)?;
                    self.check_column(reference, column, Privileges::SELECT)?;
                }
            }
        }
        Ok(())
    }

    /// Tells the client what an UPDATE did.
    pub(crate) fn end_update(&mut self, updated: Updated, sink: &mut dyn ResultSink) -> Result<()> {
        self.findings.warn(&mut self.warnings);
        let info = match sink.wants_info() {
            true => format!(
                "Rows matched: {}  Changed: {}  Warnings: {}",
                updated.matched,
                updated.changed,
                self.warnings.count()
            ),
            false => String::new(),
        };
        let affected = match self.client.info.found_rows {
            true => updated.matched,
            false => updated.changed,
        };
        self.ok(sink, affected, info)
    }

    fn update_locked(
        &mut self,
        update: Parsed<'_, &Update>,
        (references, locked): (&References, &ChangeSet),
        assignments: Vec<Assignment>,
    ) -> Result<Updated> {
        let single = is_of_one(update.ast, references);
        let changed: BTreeSet<usize> = assignments.iter().map(|a| a.reference).collect();
        let planned = self.update_query(update.ast, references, assignments)?;
        let UpdateQuery {
            mut targets,
            later,
            rules,
            query,
        } = planned;
        for target in &mut targets {
            target.row_rules = row_rules(self, &target.table, rules.mode)?;
            if let Some(view) = &references.0[target.reference].changed_view {
                target.row_rules.add_checks(self.view_checks(view)?);
            }
        }
        let query = update.with(query.as_ref());
        if rules.mode.strict {
            self.findings.refuse();
        }
        self.findings.watch_divisions(self.variables.sql_mode());
        self.check_safe_update(query, references, changed, "UPDATE")?;
        let mut statement = self.begin_changes(locked)?;
        let outcome = self.update_until_stable(
            &mut statement,
            (&targets, locked),
            (query, &later),
            rules,
            single,
        );
        self.end_changes(statement, outcome)
    }

    /// What is to be changed, without what computes and checks new rows, how, and the query that finds it.
    fn update_query(
        &self,
        update: &Update,
        references: &References,
        assignments: Vec<Assignment>,
    ) -> Result<UpdateQuery> {
        cancel::check_room_for_tree()?;
        let (assignments, later) = match is_of_one(update, references) {
            true => left_to_right(references, assignments)?,
            false => (assignments, LaterValues::default()),
        };
        let rules = self.rules_of_update(update.ignore);
        let (targets, mut projection) = plan_targets(references, assignments)?;
        projection.extend_from_slice(later.given());
        let query = ChangeQuery {
            hints: &update.hints,
            projection,
            from: &update.tables,
            selection: &update.selection,
            order_by: &update.order_by,
            limit: &update.limit,
        }
        .build()?;
        Ok(UpdateQuery {
            targets,
            later,
            rules,
            query,
        })
    }

    pub(crate) fn rules_of_update(&self, ignore: bool) -> Rules {
        Rules {
            mode: self.insert_mode(ignore),
            ignore,
            now_micros: self.local_now_micros(),
        }
    }

    /// What an UPDATE changes, without what computes and checks new rows, and the query that finds it. An error if rows
    /// get values that the query does not deliver.
    pub(crate) fn update_to_find(&self, update: &Update) -> Result<(Vec<Target>, Box<ast::Query>)> {
        check_clauses(update, is_single(&update.tables))?;
        let references = self.references_of(&update.tables)?;
        references.check_no_views()?;
        let assignments = resolve(&references, &update.assignments)?;
        let planned = self.update_query(update, &references, assignments)?;
        match planned.later.is_empty() {
            true => Ok((planned.targets, planned.query)),
            false => Err(without_evaluator()),
        }
    }

    /// The targets of a plan that sessions share, as a run of this session changes them: with the generated columns and
    /// the CHECKs of their tables. `None`: there are none.
    pub(crate) fn targets_of_run(&self, targets: &[Target]) -> Result<Option<Vec<Target>>> {
        let has_rules = |target: &Target| RowRules::are_there(&target.table.definition);
        if !targets.iter().any(has_rules) {
            return Ok(None);
        }
        let mode = self.insert_mode(false);
        let targets = targets.iter().map(|target| {
            Ok(Target {
                table: Arc::clone(&target.table),
                key: target.key,
                columns: target.columns.clone(),
                stamped: target.stamped.clone(),
                row_rules: row_rules(self, &target.table, mode)?,
                reference: target.reference,
            })
        });
        Ok(Some(targets.collect::<Result<_>>()?))
    }

    /// The plan that finds the rows of an UPDATE, and the tables that it changes, for EXPLAIN.
    pub(crate) fn plan_update(
        &mut self,
        update: Parsed<'_, &Update>,
    ) -> Result<(PlannedQuery, Vec<String>)> {
        let assigned = update.ast.assignments.as_slice();
        let references = self.references_to_assign(&update.ast.tables, assigned)?;
        let assignments = resolve(&references, assigned)?;
        // What may not be done is not explained.
        for assignment in &assignments {
            let changed = &references.0[assignment.reference];
            self.check_may_change(changed, Privileges::UPDATE)?;
        }
        self.check_assigned(&references, (&update.ast.assignments, &assignments))?;
        let changed = assignments.iter().map(|assignment| assignment.reference);
        let changed = changed.map(|reference| references.0[reference].alias.clone());
        let changed = changed.collect::<BTreeSet<_>>().into_iter().collect();
        let planned = self.update_query(update.ast, &references, assignments)?;
        let view = self.read_view()?;
        Ok((
            self.plan_change(update.with(&planned.query), view)?,
            changed,
        ))
    }

    /// Finds rows and changes them, again and again until no other transaction comes between.
    fn update_until_stable(
        &mut self,
        statement: &mut StatementTransaction,
        (targets, locked): (&[Target], &ChangeSet),
        (query, later): (ParsedQuery<'_>, &LaterValues),
        rules: Rules,
        single: bool,
    ) -> Result<Updated> {
        let tables: Vec<_> = targets.iter().map(|t| Arc::clone(&t.table)).collect();
        self.until_stable(statement, |session, statement| {
            let view = statement.changes().view_to_lock()?;
            let planned = session.plan_change(query, view.clone())?;
            let mut searches = statement.searches_to_lock(&planned, &tables, Others::Locked)?;
            let origins = planned.origins();
            let later = match targets {
                [target] => {
                    let later = Parsed::new(later, query.text);
                    later_evaluator(session, later, &target.table, planned.schema().fields())?
                }
                _ => None,
            };
            let passes = match single {
                true => vec![(targets, collect_rows(session, planned)?, Finds::all_first())],
                false => session.collect_finds(planned, targets)?,
            };
            let mut updated = Updated::default();
            let mut last = None;
            for (targets, rows, finds) in passes {
                let changed = update_rows(
                    (statement, &session.handle),
                    (targets, locked),
                    (rows, &origins, &view),
                    finds,
                    (rules, later.as_ref()),
                    &mut session.warnings,
                );
                let Some((of_pass, last_of_pass)) = changed? else {
                    return Ok(None);
                };
                updated.add(of_pass);
                last = last_of_pass;
            }
            let last = match (&last, targets) {
                (Some(row), [target]) => key_of(&row[target.key])?,
                _ => None,
            };
            let found = (updated.found, last);
            let is_stable = statement.lock_searches(&view, &mut searches, found)?;
            Ok(is_stable.then_some(updated))
        })
    }
}

impl Session {
    /// Runs a query of several tables and keeps its rows. A row of a table is changed where it is found first. A table
    /// that has several names is changed under one after the other, in a pass for each.
    fn collect_finds<'t>(
        &mut self,
        planned: PlannedQuery,
        targets: &'t [Target],
    ) -> Result<Vec<(&'t [Target], SpooledRows, Finds)>> {
        let of_pass = match names_table_twice(targets) {
            true => 1,
            false => targets.len().max(1),
        };
        let passes = targets.chunks(of_pass);
        let mut passes: Vec<(&[Target], RowSpool, FirstFinds)> = passes
            .map(|targets| (targets, RowSpool::new(self), FirstFinds::new(self)))
            .collect();
        let mut row = Vec::new();
        self.run_planned(planned, |batch| {
            for number in 0..batch.num_rows() {
                row.clear();
                for column in batch.columns() {
                    row.push(value_at(column.as_ref(), number)?);
                }
                let last = passes.len() - 1;
                for (pass, (targets, spool, finds)) in passes.iter_mut().enumerate() {
                    let mut keys = Vec::with_capacity(targets.len());
                    for (position, target) in targets.iter().enumerate() {
                        if let Some(key) = key_of(&row[target.key])? {
                            keys.push((position, key));
                        }
                    }
                    // Nothing comes of it: all pairs of two tables would fill the disk with new values.
                    if keys.iter().all(|(position, key)| finds.has(*position, key)) {
                        continue;
                    }
                    for (position, key) in keys {
                        finds.note(position, key)?;
                    }
                    match pass == last {
                        true => spool.push(row.drain(..).map(Ok))?,
                        false => spool.push(row.iter().cloned().map(Ok))?,
                    }
                }
            }
            Ok(())
        })?;
        let passes = passes.into_iter();
        let passes =
            passes.map(|(targets, spool, finds)| Ok((targets, spool.read(), finds.end()?)));
        passes.collect()
    }
}

/// Whether a table is changed under several names. They take turns: what is assigned under the last one counts.
pub(crate) fn names_table_twice(targets: &[Target]) -> bool {
    let is_named_again = |at: usize| {
        let mut before = targets[..at].iter();
        before.any(|before| Arc::ptr_eq(&before.table, &targets[at].table))
    };
    (0..targets.len()).any(is_named_again)
}

pub(crate) fn is_single(tables: &[ast::TableWithJoins]) -> bool {
    matches!(tables, [table] if table.joins.is_empty())
}

/// Whether the rows are those of one table, and assignments are made from left to right.
fn is_of_one(update: &Update, references: &References) -> bool {
    is_single(&update.tables) && !references.joins_views()
}

/// Errors 1221 where several tables have an order or a limit.
fn check_clauses(update: &Update, is_single: bool) -> Result<()> {
    if is_single {
        return Ok(());
    }
    if !update.order_by.is_empty() {
        return Err(SqlError::wrong_usage("UPDATE", "ORDER BY"));
    }
    match &update.limit {
        Some(_) => Err(SqlError::wrong_usage("UPDATE", "LIMIT")),
        None => Ok(()),
    }
}

/// Finds the columns that are assigned. Errors 1054, 1052, 1288, and 1706 for the primary key of a table that is
/// updated under two names: the rows of one name would not be found under the other.
fn resolve(references: &References, assignments: &[ast::Assignment]) -> Result<Vec<Assignment>> {
    cancel::check_room_for_tree()?;
    let assignments = assigned_columns(references, assignments)?;
    for assignment in &assignments {
        let table = |reference: usize| references.0[reference].table.as_ref();
        let Some(changed) = table(assignment.reference) else {
            continue;
        };
        let mut parts = changed.definition.primary.parts.iter();
        let definition = &changed.definition;
        if !parts.any(|part| definition.follows_from(part.column, assignment.column)) {
            continue;
        }
        let other = assignments.iter().find(|other| {
            other.reference != assignment.reference
                && table(other.reference).is_some_and(|other| Arc::ptr_eq(other, changed))
        });
        if let Some(other) = other {
            let first = assignment.reference.min(other.reference);
            let second = assignment.reference.max(other.reference);
            let alias = |reference: usize| references.0[reference].alias.as_str();
            return Err(SqlError::key_update_of_two(alias(first), alias(second)));
        }
    }
    Ok(assignments)
}

fn assigned_columns(
    references: &References,
    assignments: &[ast::Assignment],
) -> Result<Vec<Assignment>> {
    assignments
        .iter()
        .map(|assignment| {
            let ast::AssignmentTarget::ColumnName(name) = &assignment.target else {
                return Err(SqlError::not_supported_yet("SET of a row"));
            };
            let (reference, column) = references.column(name)?;
            let value = &assignment.value;
            let table = references.0[reference].table.as_ref();
            if let Some(table) = table
                && is_generated(table, column)
                && !is_default(value)
            {
                // DEFAULT() of it is error 1364.
                write_defaults(table, &mut value.clone())?;
                let definition = &table.definition;
                return Err(value_not_allowed(
                    &definition.columns[column].name,
                    &definition.name,
                ));
            }
            let number = table.and_then(|table| {
                let column = &table.definition.columns[column];
                hybrid_number(value, &column.ty)
            });
            Ok(Assignment {
                reference,
                column,
                value: match is_default(value) {
                    true => match table.map(|table| &table.definition.columns[column]) {
                        Some(column) if column.default_expression().is_some() => {
                            let default = default_expression(column)?;
                            let default = qualified(default, &references.0[reference]);
                            NewValue::Expression(Box::new(default))
                        }
                        _ => NewValue::Default,
                    },
                    false => {
                        let mut value = number.unwrap_or_else(|| value.clone());
                        if let ([only], Some(table)) = (references.0.as_slice(), table)
                            && only.view.is_none()
                        {
                            write_defaults(table, &mut value)?;
                        }
                        NewValue::Expression(Box::new(value))
                    }
                },
            })
        })
        .collect()
}

fn is_generated(table: &Table, column: usize) -> bool {
    table.definition.columns[column].generated.is_some()
}

/// An expression over the columns of one table, in a statement that has several.
fn qualified(mut expression: ast::Expr, reference: &Reference) -> ast::Expr {
    walk_expression(&mut expression, &mut Qualify(reference));
    expression
}

struct Qualify<'a>(&'a Reference);

impl ExpressionVisitor for Qualify<'_> {
    fn leave_expression(&mut self, expression: &mut ast::Expr) -> ControlFlow<()> {
        if let ast::Expr::Identifier(column) = expression {
            *expression = self.0.column(&column.value);
        }
        ControlFlow::Continue(())
    }
}

/// Finds the values that name columns which assignments before them have changed. They are computed when rows are
/// written, but for those that only a query computes.
fn left_to_right(
    references: &References,
    assignments: Vec<Assignment>,
) -> Result<(Vec<Assignment>, LaterValues)> {
    let mut later = LaterValues::default();
    let mut assigned: Vec<usize> = Vec::new();
    let mut done: Vec<Assignment> = Vec::with_capacity(assignments.len());
    for at in 0..assignments.len() {
        let Assignment {
            reference,
            column,
            ref value,
        } = assignments[at];
        let mut value = value.clone();
        if let NewValue::Expression(expression) = &mut value
            && names_one_of(references, &assigned, expression)
        {
            value = match is_of_rows(expression) {
                true => {
                    let expression = expression.as_ref().clone();
                    NewValue::Later(later.add(references, &assigned, expression))
                }
                false => {
                    let expression = in_old_values(references, &assignments[..at], expression)?;
                    NewValue::Expression(Box::new(expression))
                }
            };
        }
        done.push(Assignment {
            reference,
            column,
            value,
        });
        let table = references.0[reference].table.as_ref();
        // A generated column is computed when the row has all its values.
        if table.is_some_and(|table| !is_generated(table, column)) {
            assigned.push(column);
        }
    }
    Ok((done, later))
}

/// An expression with what the assignments before it make of the columns that it names.
fn in_old_values(
    references: &References,
    before: &[Assignment],
    expression: &ast::Expr,
) -> Result<ast::Expr> {
    let mut substitution = Substitution {
        references,
        made: BTreeMap::new(),
        count: 0,
        failure: None,
    };
    for assignment in before {
        let Some(table) = &references.0[assignment.reference].table else {
            continue;
        };
        if is_generated(table, assignment.column) {
            continue;
        }
        let column = &table.definition.columns[assignment.column];
        let made = match &assignment.value {
            NewValue::Expression(expression) => {
                let expression = substitution.of(expression)?;
                Some(as_stored(&expression, &column.ty)?)
            }
            NewValue::Default | NewValue::Later(_) => default_expression(column).ok(),
        };
        substitution.made.insert(assignment.column, made);
    }
    substitution.of(expression)
}

/// Replaces columns by the expressions that were assigned to them. Subqueries are left alone: there a name may
/// mean a column of their own.
struct Substitution<'a> {
    references: &'a References,
    /// `None`: the column was set to its default, and has none.
    made: BTreeMap<usize, Option<ast::Expr>>,
    count: usize,
    failure: Option<SqlError>,
}

impl Substitution<'_> {
    fn of(&mut self, expression: &ast::Expr) -> Result<ast::Expr> {
        let mut expression = expression.clone();
        walk_outside_queries(&mut expression, &mut |expression| self.replace(expression));
        match self.failure.take() {
            Some(error) => Err(error),
            None => Ok(expression),
        }
    }

    /// Puts what was assigned before in the place of a column.
    fn replace(&mut self, expression: &mut ast::Expr) -> ControlFlow<()> {
        let Some(column) = column_of(self.references, expression) else {
            return ControlFlow::Continue(());
        };
        match self.made.get(&column) {
            None => {}
            Some(Some(made)) if self.count < MAX_SUBSTITUTIONS => {
                self.count += 1;
                *expression = ast::Expr::Nested(Box::new(made.clone()));
            }
            Some(made) => {
                self.failure = Some(SqlError::not_supported_yet(match made {
                    Some(_) => "an UPDATE whose assignments build on each other so often",
                    None => {
                        "an expression with a column without a default that was set to DEFAULT before it"
                    }
                }));
                return ControlFlow::Break(());
            }
        }
        ControlFlow::Continue(())
    }
}

/// Whether the only table of an UPDATE has its column assigned to itself.
fn is_itself(references: &References, expression: &ast::Expr, column: usize) -> bool {
    references.0.len() == 1 && column_of(references, inside(expression)) == Some(column)
}

/// The tables to change, and the columns of the query that finds their rows.
fn plan_targets(
    references: &References,
    assignments: Vec<Assignment>,
) -> Result<(Vec<Target>, Vec<ast::Expr>)> {
    let mut projection = Vec::new();
    let mut targets: BTreeMap<usize, Target> = BTreeMap::new();
    for assignment in &assignments {
        if targets.contains_key(&assignment.reference) {
            continue;
        }
        let reference = &references.0[assignment.reference];
        let table = Arc::clone(reference.changeable("UPDATE")?);
        let assigned: BTreeSet<usize> = assignments
            .iter()
            .filter(|other| other.reference == assignment.reference)
            .map(|other| other.column)
            .collect();
        let stamped = table
            .definition
            .columns
            .iter()
            .enumerate()
            .filter(|(at, column)| column.on_update_current_timestamp && !assigned.contains(at))
            .map(|(at, _)| at)
            .collect();
        targets.insert(
            assignment.reference,
            Target {
                table,
                key: projection.len(),
                columns: Vec::new(),
                row_rules: RowRules::default(),
                reference: assignment.reference,
                stamped,
            },
        );
        projection.push(reference.key());
    }
    for assignment in assignments {
        let source = match assignment.value {
            NewValue::Default => Source::Default,
            NewValue::Expression(expression)
                if is_itself(references, &expression, assignment.column) =>
            {
                Source::Itself
            }
            NewValue::Expression(expression) => {
                projection.push(*expression);
                Source::Query(projection.len() - 1)
            }
            NewValue::Later(number) => Source::Later(number),
        };
        if let Some(target) = targets.get_mut(&assignment.reference)
            && !is_generated(&target.table, assignment.column)
        {
            target.columns.push((assignment.column, source));
        }
    }
    Ok((targets.into_values().collect(), projection))
}
