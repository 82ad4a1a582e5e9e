//! INSERT and REPLACE: … VALUES, … SET and … SELECT, with ON DUPLICATE KEY UPDATE and RETURNING.
//!
//! ```text
//!   VALUES, SET     open the table -> values of all rows -> write them one by one
//!   SELECT          open the table -> plan the query ---> write its rows while it runs
//!                                         '-------------> or collect them first, if it reads the table
//! ```
//!
//! The table that is filled is opened before those that the query reads, with all that foreign keys connect it to. A
//! [`TableWriter`] converts the values of each row, fills in defaults, tests CHECKs and writes the row. RETURNING keeps
//! the rows as they were written, and shows them when the statement is through.

pub(crate) mod destination;
pub(crate) mod insert_values;
pub(crate) mod made_table;
pub(crate) mod on_duplicate;
pub(crate) mod row_shape;
pub(crate) mod table_writer;

use std::sync::Arc;

use sheaf_exec::operator::kept_rows::keeps_rows;
use sheaf_frontend::locking::{has_locking_clause, skips_locked};
use sheaf_table::{Column, CreateTable, Privileges, QualifiedName, Table};
use sheaf_types::error::codes;
use sheaf_types::temporal::split_datetime;
use sheaf_types::{ColumnType, assignment::Mode};
use sqlparser::ast;

use crate::change::find::change_query::returned_items;
use crate::change::find::through_view::{
    ChangedView, changed_views, check_change_of_view, no_deletes, not_insertable,
};
use crate::change::rules::generated_columns::check_given_columns;
use crate::change::values::assigned::last_part;
use crate::error::{Result, SqlError};
use crate::parser::change::name_of;
use crate::parser::statement::{self, TableName};
use crate::parser::{Parsed, ParsedQuery};
use crate::query::made_columns::column_type_of;
use crate::query::read_plan::Purpose;
use crate::query::row_evaluator::{RowEvaluator, RowKind};
use crate::query::row_spool::{RowSpool, SpooledRows, collect_rows};
use crate::query::rows::value_at;
use crate::query::run::{PlannedQuery, Runner};
use crate::query::values::{has_subquery, hybrid_number, shown_in};
use crate::session::Session;
use crate::session::result::{Origin, ResultSink};
use destination::Destination;
use insert_values::{values_to_insert, write_values};
use on_duplicate::{source_column, take_source_columns};
use row_shape::RowShape;
use sheaf_frontend::query::BoundQuery;
use table_writer::{OnDuplicate, OpenedTarget, TableWriter, WriteOptions, Written};

/// Rows that RETURNING sends at once, and bytes of them beyond which it takes no further row.
const RETURNING_ROWS: usize = 1024;
const RETURNING_BYTES: usize = 1 << 20;

/// What an INSERT did.
pub(crate) struct Inserted {
    written: Written,
    /// The table as it was written, and its rows for RETURNING.
    table: Arc<Table>,
    rows: Option<SpooledRows>,
}

impl Inserted {
    /// The text that goes with the OK.
    pub(crate) fn info(&self, warnings: u64) -> String {
        self.written.info(warnings)
    }
}

impl Session {
    /// INSERT and REPLACE.
    pub(crate) fn insert(
        &mut self,
        insert: Parsed<'_, ast::Insert>,
        sink: &mut dyn ResultSink,
    ) -> Result<()> {
        let Parsed {
            ast: mut insert,
            text,
        } = insert;
        refuse_unsupported(&insert)?;
        let mut destination = self.destination_of(&mut insert)?;
        if destination.options.mode.strict {
            self.findings.refuse();
        }
        self.findings
            .watch_divisions_of_source(self.variables.sql_mode());
        let mut rows: Vec<Vec<ast::Expr>> = Vec::new();
        if !insert.assignments.is_empty() {
            let mut row = Vec::with_capacity(insert.assignments.len());
            for assignment in insert.assignments {
                let ast::AssignmentTarget::ColumnName(name) = &assignment.target else {
                    return Err(SqlError::not_supported_yet("INSERT ... SET of a row"));
                };
                destination.columns.push(last_part(name));
                row.push(assignment.value);
            }
            rows.push(row);
        } else if let Some(source) = insert.source {
            match *source.body {
                ast::SetExpr::Values(values)
                    if source.with.is_none() && source.order_by.is_none() =>
                {
                    rows.extend(values.rows.into_iter().map(|row| row.content));
                }
                body => {
                    let mut query = ast::Query {
                        body: Box::new(body),
                        ..*source
                    };
                    destination.options.bulk =
                        destination.returning.is_none() && destination.view.is_none();
                    let implicit = self.begin_implicit(true);
                    let inserted = self.insert_query(&mut destination, &mut query, text);
                    let inserted = self.end_implicit(implicit, destination.done(inserted))?;
                    self.findings.warn(&mut self.warnings);
                    let info = inserted.info(self.warnings.count());
                    let destination = Parsed::new(&destination, text);
                    return self.insert_done(destination, inserted, info, sink);
                }
            }
        } else {
            return Err(SqlError::not_supported_yet("INSERT ... DEFAULT VALUES"));
        }
        let info_wanted = rows.len() > 1;
        let assigned = destination.assignments.iter_mut();
        let mut given = rows
            .iter_mut()
            .flatten()
            .chain(assigned.map(|assignment| &mut assignment.value));
        let implicit = self.begin_implicit(given.any(has_subquery));
        let inserted = self.insert_values(&mut destination, rows, text);
        let inserted = self.end_implicit(implicit, destination.done(inserted))?;
        let destination = Parsed::new(&destination, text);
        self.findings.warn(&mut self.warnings);
        let info = if info_wanted {
            inserted.info(self.warnings.count())
        } else {
            String::new()
        };
        self.insert_done(destination, inserted, info, sink)
    }

    fn destination_of(&self, insert: &mut ast::Insert) -> Result<Destination> {
        let named = self.resolve_for_change(&target_of(insert)?)?;
        check_databases(insert, &named.0)?;
        let view = self.view_to_insert_into(&named, insert)?;
        let (database, table) = match &view {
            Some(view) => {
                let definition = &view.table.definition;
                (definition.database.clone(), definition.name.clone())
            }
            None => named,
        };
        let assignments = match (insert.on.take(), &view) {
            (Some(ast::OnInsert::DuplicateKeyUpdate(assignments)), Some(view)) => {
                view.assignments(assignments)?
            }
            (Some(ast::OnInsert::DuplicateKeyUpdate(assignments)), None) => assignments,
            _ => Vec::new(),
        };
        let on_duplicate = if insert.replace_into {
            OnDuplicate::Replace
        } else if !assignments.is_empty() {
            OnDuplicate::Update
        } else if insert.ignore {
            OnDuplicate::Skip
        } else {
            OnDuplicate::Fail
        };
        Ok(Destination {
            database,
            table,
            columns: insert.columns.iter().map(last_part).collect(),
            options: WriteOptions {
                mode: self.insert_mode(insert.ignore),
                on_duplicate,
                ignore: insert.ignore,
                bulk: false,
                source_keeps_rows: false,
                keeps_zero: self.variables.keeps_zero(),
            },
            assignments,
            alias: insert.insert_alias.take(),
            returning: insert.returning.take(),
            view,
        })
    }

    /// The view of this name, if it is one, and rows can be inserted: of one that joins tables, into that of which the
    /// statement names columns. Errors 1471, 1142, 1356, 1395 for a REPLACE, and 1235 for what is not done through
    /// views.
    fn view_to_insert_into(
        &self,
        (database, name): &QualifiedName,
        insert: &ast::Insert,
    ) -> Result<Option<Arc<ChangedView>>> {
        let Some(view) = self.table_names().view(database, name) else {
            return Ok(None);
        };
        let changed = changed_views(self, &view, "INSERT");
        let changed = changed.map_err(|error| match error.code {
            code if code == codes::NON_UPDATABLE_TABLE.number() => not_insertable(name),
            _ => error,
        })?;
        let mut listed: Vec<String> = insert.columns.iter().map(last_part).collect();
        listed.extend(insert.assignments.iter().filter_map(|assignment| {
            let ast::AssignmentTarget::ColumnName(name) = &assignment.target else {
                return None;
            };
            Some(last_part(name))
        }));
        let has_listed = |changed: &ChangedView| listed.iter().any(|name| changed.has_column(name));
        let chosen = changed.iter().position(has_listed).unwrap_or(0);
        let changed = changed.into_iter().nth(chosen);
        let changed = changed.ok_or_else(|| not_insertable(name))?;
        changed.insertable(&listed)?;
        if changed.joins && insert.replace_into {
            return Err(no_deletes(database, name));
        }
        let privileges = match (insert.replace_into, &insert.on) {
            (true, _) => Privileges::INSERT | Privileges::DELETE,
            (false, Some(_)) => Privileges::INSERT | Privileges::UPDATE,
            (false, None) => Privileges::INSERT,
        };
        check_change_of_view(&self.client, &self.engine, &changed, privileges)?;
        if insert.returning.is_some() || insert.insert_alias.is_some() {
            return Err(SqlError::not_supported_yet(
                "RETURNING and an alias of the new row in INSERT into a view",
            ));
        }
        Ok(Some(Arc::new(changed)))
    }

    /// Answers the client: with the rows that RETURNING shows, or with what was done.
    pub(crate) fn insert_done(
        &mut self,
        destination: Parsed<'_, &Destination>,
        inserted: Inserted,
        info: String,
        sink: &mut dyn ResultSink,
    ) -> Result<()> {
        let Inserted {
            mut written,
            table,
            rows,
        } = inserted;
        let view = destination.ast.view.as_ref();
        if view.is_some_and(|view| !view.shows_generated_ids()) {
            written.first_auto_increment = 0;
            written.last_auto_increment = 0;
        }
        self.outcome.note_generated(written.first_auto_increment);
        if let Some(items) = &destination.ast.returning {
            // Rows leave while the statement runs.
            self.transactions.finish_commit(&self.handle.counters)?;
            let evaluator = self.returning(destination.with(items), &table)?;
            sink.columns(&evaluator.metas)?;
            if let Some(mut rows) = rows {
                loop {
                    let next = rows.next_rows(RETURNING_ROWS, RETURNING_BYTES)?;
                    if next.is_empty() {
                        break;
                    }
                    sink.rows(&evaluator.results(&next)?)?;
                }
            }
            return self.end_query(sink);
        }
        let id = match written.first_auto_increment {
            0 if written.rows + written.updated > 0 => written.last_auto_increment,
            first => first,
        };
        self.ok_with_id(
            sink,
            written.affected(self.client.info.found_rows),
            id,
            info,
        )
    }

    /// Plans the items of RETURNING over rows of the table.
    fn returning(
        &self,
        items: Parsed<'_, &Vec<ast::SelectItem>>,
        table: &Table,
    ) -> Result<RowEvaluator> {
        let definition = &table.definition;
        let kind = RowKind {
            name: &definition.name,
            columns: &definition.columns,
        };
        let all = returned_items(items.with(items.ast.as_slice()), table);
        self.row_evaluator(items.with(all), &[kind])
    }

    /// How values go into columns, as sql_mode and IGNORE say.
    pub(crate) fn insert_mode(&self, ignore: bool) -> Mode {
        let mode = self.variables.assignment_mode();
        Mode {
            strict: mode.strict && !ignore,
            today: Some(split_datetime(self.local_now_micros()).0),
            ..mode
        }
    }

    fn insert_values(
        &mut self,
        destination: &mut Destination,
        rows: Vec<Vec<ast::Expr>>,
        text: &str,
    ) -> Result<Inserted> {
        let target = self.open_target_of(destination)?;
        let values = values_to_insert(self, target.table(), destination, rows, text);
        self.transactions.has_read_for_change();
        let (targets, values) = match values {
            Ok(found) => found,
            Err(error) => {
                self.transactions.leave_target(target);
                return Err(error);
            }
        };
        let mut writer = self.writer_of(target, destination.options)?;
        let destination = Parsed::new(&*destination, text);
        let done = self
            .prepare_writer(&mut writer, destination, (&targets, &[]))
            .and_then(|()| write_values(self, &mut writer, targets, Parsed::new(values, text)));
        self.close_inserted(writer, done)
    }

    fn open_target_of(&mut self, destination: &Destination) -> Result<OpenedTarget> {
        let (database, table) = (&destination.database, &destination.table);
        let of_view = destination.view.is_some();
        self.open_target((database, table), of_view, &destination.options)
    }

    /// The destination of an INSERT or REPLACE, without what ON DUPLICATE KEY UPDATE and RETURNING say; `None` if it
    /// is wrong.
    pub(crate) fn plain_destination(&self, insert: &ast::Insert) -> Option<Destination> {
        refuse_unsupported(insert).ok()?;
        let (database, table) = self.resolve_for_change(&target_of(insert).ok()?).ok()?;
        check_databases(insert, &database).ok()?;
        Some(Destination {
            database,
            table,
            columns: insert.columns.iter().map(last_part).collect(),
            options: WriteOptions {
                mode: self.insert_mode(insert.ignore),
                on_duplicate: match (insert.replace_into, &insert.on) {
                    (true, _) => OnDuplicate::Replace,
                    (false, Some(_)) => OnDuplicate::Update,
                    (false, None) if insert.ignore => OnDuplicate::Skip,
                    (false, None) => OnDuplicate::Fail,
                },
                ignore: insert.ignore,
                bulk: false,
                source_keeps_rows: false,
                keeps_zero: self.variables.keeps_zero(),
            },
            assignments: Vec::new(),
            alias: None,
            returning: None,
            view: None,
        })
    }

    /// Ends a writer, with the rows for RETURNING.
    pub(crate) fn close_inserted(
        &mut self,
        mut writer: TableWriter,
        done: Result<()>,
    ) -> Result<Inserted> {
        let done = writer.write_waiting(&mut self.warnings).and(done);
        let table = Arc::clone(writer.table());
        let rows = writer.take_kept_rows();
        Ok(Inserted {
            written: self.close_writer(writer, done)?,
            table,
            rows,
        })
    }

    /// Tells the writer what the statement says about conflicting rows and about RETURNING.
    fn prepare_writer(
        &mut self,
        writer: &mut TableWriter,
        destination: Parsed<'_, &Destination>,
        (targets, source): (&[usize], &[Column]),
    ) -> Result<()> {
        let table = Arc::clone(writer.table());
        if let Some(view) = &destination.ast.view
            && let Some(checks) = self.view_checks(view)?
        {
            writer.add_checks(checks);
        }
        if let Some(items) = &destination.ast.returning {
            // Errors in the items are found before a row is written.
            self.returning(destination.with(items), &table)?;
            writer.keep_rows(RowSpool::new(self));
        }
        if !destination.ast.assignments.is_empty() {
            writer.update_duplicates(self.duplicate_update(
                &table,
                (targets, source),
                destination.with(&destination.ast.assignments),
                destination.ast.alias.as_ref(),
                destination.ast.options.mode,
            )?);
        }
        Ok(())
    }

    /// Makes a table of what a planned query returns, for CREATE TABLE … SELECT: it comes with all rows, or not at all.
    pub(crate) fn insert_into_new(
        &mut self,
        request: CreateTable,
        targets: Vec<usize>,
        planned: PlannedQuery,
        (mode, on_duplicate): (Mode, statement::OnDuplicate),
    ) -> Result<Written> {
        let keeps_zero = self.variables.keeps_zero();
        let is_replicated = self.is_replicated();
        let options = WriteOptions {
            mode,
            on_duplicate: OnDuplicate::from(on_duplicate),
            ignore: on_duplicate == statement::OnDuplicate::Ignore,
            // What is loaded past the log is not in the binary log either.
            bulk: !is_replicated,
            source_keeps_rows: keeps_rows(&planned.physical.plan),
            keeps_zero,
        };
        let mut writer = match is_replicated {
            true => self.open_new_writer_logged(request, options)?,
            false => self.open_new_writer(request, options)?,
        };
        let done = self.write_rows(&mut writer, targets, RowsToInsert::Planned(planned));
        let written = self.close_writer(writer, done)?;
        self.findings.warn(&mut self.warnings);
        Ok(written)
    }

    /// Makes a temporary table of what a query finds, in the open transaction, as INSERT … SELECT does.
    pub(crate) fn temporary_from_query(
        &mut self,
        request: CreateTable,
        query: ParsedQuery<'_>,
        lowered: &BoundQuery,
        how: (Mode, statement::OnDuplicate),
    ) -> Result<Written> {
        let locks = has_locking_clause(query.ast);
        let implicit = locks.then(|| self.begin_implicit(true));
        let written = self.insert_temporary_from_query(request, query, lowered, how);
        match implicit {
            Some(implicit) => self.end_implicit(implicit, written),
            None => written,
        }
    }

    fn insert_temporary_from_query(
        &mut self,
        request: CreateTable,
        query: ParsedQuery<'_>,
        lowered: &BoundQuery,
        how: (Mode, statement::OnDuplicate),
    ) -> Result<Written> {
        let read = self.read_for_change(query, Purpose::Insert, |session, planned, waits| {
            let mut request = request.clone();
            let targets = session.add_columns_of(&mut request, (query.ast, lowered), &planned)?;
            Ok((request, targets, session.read_or_planned(planned, waits)?))
        });
        self.transactions.has_read_for_change();
        let (request, targets, rows) = read?;
        self.insert_into_new_temporary(request, targets, rows, how)
    }

    /// Makes a temporary table and fills it. A rollback of the open transaction takes its rows, and not the table. If
    /// the statement fails, the table is gone again.
    fn insert_into_new_temporary(
        &mut self,
        request: CreateTable,
        targets: Vec<usize>,
        (rows, source_keeps_rows): (RowsToInsert, bool),
        (mode, on_duplicate): (Mode, statement::OnDuplicate),
    ) -> Result<Written> {
        let options = WriteOptions {
            mode,
            on_duplicate: OnDuplicate::from(on_duplicate),
            ignore: on_duplicate == statement::OnDuplicate::Ignore,
            // A bulk load gives up the transaction of a statement alone, and what the query has locked in it.
            bulk: !self.transactions.is_open(),
            source_keeps_rows,
            keeps_zero: self.variables.keeps_zero(),
        };
        let name = (request.database.clone(), request.name.clone());
        self.create_temporary_table(request)?;
        let written = self
            .open_writer(&name.0, &name.1, options)
            .and_then(|mut writer| {
                let done = self.write_rows(&mut writer, targets, rows);
                self.close_writer(writer, done)
            });
        match written {
            Ok(_) => self.findings.warn(&mut self.warnings),
            Err(_) => self.temporary.drop_tables(&[name]),
        }
        written
    }

    /// INSERT … SELECT.
    fn insert_query(
        &mut self,
        destination: &mut Destination,
        query: &mut ast::Query,
        text: &str,
    ) -> Result<Inserted> {
        let target = self.open_target_of(destination)?;
        let source = self.rows_to_insert(target.table(), destination, query, text);
        self.transactions.has_read_for_change();
        let source = match source {
            Ok(source) => source,
            Err(error) => {
                self.transactions.leave_target(target);
                return Err(error);
            }
        };
        let SourceRows {
            targets,
            others,
            rows,
            keeps_rows,
        } = source;
        let options = WriteOptions {
            source_keeps_rows: keeps_rows,
            ..destination.options
        };
        let mut writer = self.writer_of(target, options)?;
        let destination = Parsed::new(&*destination, text);
        let done = self
            .prepare_writer(&mut writer, destination, (&targets, &others))
            .and_then(|()| self.write_rows(&mut writer, targets, rows));
        self.close_inserted(writer, done)
    }

    /// The rows of INSERT … SELECT.
    fn rows_to_insert(
        &mut self,
        table: &Arc<Table>,
        destination: &mut Destination,
        query: &mut ast::Query,
        text: &str,
    ) -> Result<SourceRows> {
        let targets = destination.target_columns(table)?;
        let type_of = |column: &usize| &table.definition.columns[*column].ty;
        numbers_in_select_list(query, targets.iter().map(type_of));
        let Destination {
            assignments,
            alias,
            view,
            ..
        } = destination;
        // Of a view, assignments have other names by now.
        let names = view.is_none().then_some(&*self);
        let alias = alias.as_ref();
        let others = take_source_columns(names, (table, alias), assignments, query)?;
        self.compute_subqueries(assignments, text)?;
        if skips_locked(query) {
            return Err(SqlError::not_supported_yet(
                "SKIP LOCKED in INSERT ... SELECT",
            ));
        }
        let query = Parsed::new(&*query, text);
        self.read_for_change(query, Purpose::Insert, |session, planned, waits| {
            session.source_rows(table, (targets.clone(), others), (planned, waits))
        })
    }

    /// What a planned query of INSERT … SELECT gives. `waits`: it is to be run to its end.
    fn source_rows(
        &mut self,
        table: &Arc<Table>,
        (targets, others): (Vec<usize>, usize),
        (planned, waits): (PlannedQuery, bool),
    ) -> Result<SourceRows> {
        let schema = planned.schema();
        if schema.fields().len() != targets.len() + others {
            return Err(SqlError::wrong_value_count_on_row(1));
        }
        let others = schema.fields().iter().skip(targets.len()).enumerate();
        let others = others
            .map(|(at, field)| Column::new(source_column(at), column_type_of(field), true))
            .collect();
        // Rows that are read from the table itself are collected first: the scan must not meet what was just written.
        let mut tables = planned.tables.iter();
        let waits = waits || tables.any(|source| Arc::ptr_eq(source, table));
        let (rows, keeps_rows) = self.read_or_planned(planned, waits)?;
        Ok(SourceRows {
            targets,
            others,
            rows,
            keeps_rows,
        })
    }

    /// The rows of a planned query, read now if that `waits`, and whether reading them keeps many in memory.
    fn read_or_planned(
        &mut self,
        planned: PlannedQuery,
        waits: bool,
    ) -> Result<(RowsToInsert, bool)> {
        if waits {
            let origins = planned.origins();
            let rows = collect_rows(self, planned)?;
            return Ok((RowsToInsert::Collected(rows, origins), false));
        }
        let keeps_rows = keeps_rows(&planned.physical.plan);
        Ok((RowsToInsert::Planned(planned), keeps_rows))
    }

    fn write_rows(
        &mut self,
        writer: &mut TableWriter,
        targets: Vec<usize>,
        rows: RowsToInsert,
    ) -> Result<()> {
        let now = self.local_now_micros();
        check_given_columns(&writer.table().definition, &targets)?;
        let defaults = self.computed_defaults(&writer.table().definition)?;
        let runner = Runner::new(&self.handle, &self.workers);
        let warnings = &mut self.warnings;
        let (table, options) = (writer.table(), writer.options());
        let shape = RowShape::new(table, &targets, options, now, warnings)?;
        let shape = shape.with_defaults(defaults);
        let mut row = shape.new_row();
        let table = Arc::clone(writer.table());
        let type_of = |target: usize| &table.definition.columns[target].ty;
        match rows {
            RowsToInsert::Collected(mut rows, origins) => {
                let mut values = Vec::new();
                while rows.next(&mut values)? {
                    let number = writer.rows_seen() + 1;
                    for (at, target) in targets.iter().enumerate() {
                        let value = shown_in(&values[at], &origins[at], type_of(*target));
                        shape.put(&mut row, *target, &value, number, warnings)?;
                    }
                    if values.len() > targets.len() {
                        writer.set_source(values.drain(targets.len()..));
                    }
                    shape.complete(&mut row, (number, false), warnings)?;
                    writer.write(&row, warnings)?;
                }
                Ok(())
            }
            RowsToInsert::Planned(planned) => {
                let origins = planned.origins();
                runner.run(planned, |batch| {
                    for position in 0..batch.num_rows() {
                        let number = writer.rows_seen() + 1;
                        for (at, target) in targets.iter().enumerate() {
                            let value = value_at(batch.column(at).as_ref(), position)?;
                            let value = shown_in(&value, &origins[at], type_of(*target));
                            shape.put(&mut row, *target, &value, number, warnings)?;
                        }
                        if batch.num_columns() > targets.len() {
                            let source = batch.columns().iter().skip(targets.len());
                            let source = source.map(|column| value_at(column.as_ref(), position));
                            writer.set_source(source.collect::<Result<Vec<_>>>()?.into_iter());
                        }
                        shape.complete(&mut row, (number, false), warnings)?;
                        writer.write(&row, warnings)?;
                    }
                    Ok(())
                })?;
                Ok(())
            }
        }
    }
}

/// What INSERT … SELECT writes.
struct SourceRows {
    /// The columns of the table that it gives values to.
    targets: Vec<usize>,
    /// What the query delivers behind their values, for the assignments.
    others: Vec<Column>,
    rows: RowsToInsert,
    /// The query keeps many rows while it runs.
    keeps_rows: bool,
}

/// Where the rows of INSERT … SELECT are.
enum RowsToInsert {
    /// With the origin of each column.
    Collected(SpooledRows, Vec<Origin>),
    Planned(PlannedQuery),
}

/// Hexadecimal literals that a select list gives to columns of numbers are numbers, as they are in VALUES. In a union
/// they are bytes.
fn numbers_in_select_list<'t>(query: &mut ast::Query, types: impl Iterator<Item = &'t ColumnType>) {
    let ast::SetExpr::Select(select) = query.body.as_mut() else {
        return;
    };
    for (item, ty) in select.projection.iter_mut().zip(types) {
        let expr = match item {
            ast::SelectItem::UnnamedExpr(expr) => expr,
            ast::SelectItem::ExprWithAlias { expr, .. } => expr,
            // It stands for any number of columns.
            _ => return,
        };
        if let Some(number) = hybrid_number(expr, ty) {
            *expr = number;
        }
    }
}

fn refuse_unsupported(insert: &ast::Insert) -> Result<()> {
    let on_conflict = matches!(insert.on, Some(ast::OnInsert::OnConflict(_)));
    let what = if insert.partitioned.is_some() {
        "INSERT ... PARTITION"
    } else if insert.or.is_some()
        || insert.overwrite
        || insert.output.is_some()
        || insert.table_alias.is_some()
        || on_conflict
    {
        "this form of INSERT"
    } else {
        return Ok(());
    };
    Err(SqlError::not_supported_yet(what))
}

/// Error 1054 for a column that is assigned by the name of another database. The parser compares the tables' names.
fn check_databases(insert: &ast::Insert, database: &str) -> Result<()> {
    let on_duplicate = match &insert.on {
        Some(ast::OnInsert::DuplicateKeyUpdate(assignments)) => assignments.as_slice(),
        _ => &[],
    };
    let assigned = insert.assignments.iter().chain(on_duplicate);
    let assigned = assigned.filter_map(|assignment| match &assignment.target {
        ast::AssignmentTarget::ColumnName(name) => Some(name),
        ast::AssignmentTarget::Tuple(_) => None,
    });
    for name in insert.columns.iter().chain(assigned) {
        let parts: Vec<&str> = name
            .0
            .iter()
            .filter_map(|part| part.as_ident())
            .map(|part| part.value.as_str())
            .collect();
        if let [written, _, _] = parts.as_slice()
            && *written != database
        {
            return Err(SqlError::bad_field(&parts.join("."), "field list"));
        }
    }
    Ok(())
}

fn target_of(insert: &ast::Insert) -> Result<TableName> {
    let ast::TableObject::TableName(name) = &insert.table else {
        return Err(SqlError::not_supported_yet(
            "INSERT into a function or a query",
        ));
    };
    name_of(name)
}
