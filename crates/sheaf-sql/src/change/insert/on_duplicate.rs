//! ON DUPLICATE KEY UPDATE: what happens to the conflicting row, which has a unique key of the new one.
//!
//! The expressions see two rows: the conflicting one, by the column's name, and the one that was to be inserted, by
//! `VALUES(column)` or by the row alias of `INSERT … AS new`. They are planned once over both rows (see
//! `query/row_evaluator.rs`, or `direct/expression/` where the plan is kept) and evaluated for each conflicting row,
//! from left to right. An assignment sees what those before it made of the row.
//!
//! A subquery is computed once, before the statement changes anything. One that takes something from the rows is not
//! supported, nor one that gives something else each time. `(SELECT uuid())` is `uuid()`.
//!
//! Those of INSERT … SELECT may also name columns that the SELECT reads. It delivers them behind the values, and they
//! are a third row:
//!
//! ```text
//!   INSERT INTO t (id, n) SELECT id, 1 FROM s ON DUPLICATE KEY UPDATE n = t.n + s.c
//!   SELECT id, 1, s.c AS $0 FROM s             n = old.n + source.$0
//! ```

use std::borrow::Cow;
use std::ops::ControlFlow;
use std::sync::Arc;

use sheaf_exec::aggregates::aggregate_function;
use sheaf_frontend::bind::over_rows::not_over_rows;
use sheaf_frontend::column_default::computed_default;
use sheaf_frontend::syntax::inside;
use sheaf_frontend::value_literal::value_literal;
use sheaf_frontend::varying::varies_by_row;
use sheaf_frontend::walk::{ExpressionVisitor, walk_expression};
use sheaf_table::convert::default_in_row;
use sheaf_table::{Column, Table, TableDefinition};
use sheaf_types::error::codes;
use sheaf_types::{
    ColumnProblem, Value,
    assignment::{Mode, current_timestamp, zero_value},
};
use sqlparser::ast;

use crate::change::row_values::values_before::write_defaults;
use crate::change::rules::generated_columns::value_not_allowed;
use crate::change::values::assigned::{assign, is_default, issue, last_part};
use crate::change::values::sum::sum;
use crate::error::{Result, SqlError};
use crate::parser::Parsed;
use crate::query::row_evaluator::{RowEvaluator, RowKind};
use crate::query::values::{hybrid_number, shown_in};
use crate::session::Session;
use crate::session::result::Origin;
use crate::session::warnings::Warnings;

/// What the rows are called in the planned expressions. No identifier is written like this.
pub(crate) const OLD: &str = "\0old";
pub(crate) const NEW: &str = "\0new";
const SOURCE: &str = "\0source";

/// The assignments of one statement.
pub(crate) struct DuplicateUpdate {
    table: Arc<Table>,
    /// From left to right: columns and what becomes of them.
    assignments: Vec<(usize, Assigned)>,
    values: Values,
    /// Columns with ON UPDATE CURRENT_TIMESTAMP that are not assigned.
    stamped: Vec<usize>,
    mode: Mode,
    now_micros: i64,
    /// The statement inserts one row: then NULL is refused in every mode.
    is_of_only_row: bool,
}

/// What is assigned to a column.
pub(crate) enum Assigned {
    Default,
    /// What it holds, which is not looked at again.
    Itself,
    Value(Value, Origin),
    /// A column of the row that was to be inserted.
    New(usize),
    Sum(AssignedSum),
    /// An expression, by its number.
    Computed(usize),
}

/// What a column of the conflicting row holds, plus or minus a number.
pub(crate) struct AssignedSum {
    pub(crate) column: usize,
    pub(crate) negated: bool,
    pub(crate) operand: Addend,
    /// The number of its expression among those of sums, for a sum that is not plain.
    pub(crate) expression: usize,
}

pub(crate) enum Addend {
    Value(Value),
    /// A column of the row that was to be inserted.
    New(usize),
}

impl AssignedSum {
    /// `None`: its expression has to be computed.
    fn value(&self, columns: &[Column], row: &[Value], new: &[Value]) -> Option<Value> {
        let operand = match &self.operand {
            Addend::Value(value) => value,
            Addend::New(column) => &new[*column],
        };
        let is_exact = matches!(
            operand,
            Value::Null | Value::Int(_) | Value::UInt(_) | Value::Decimal { .. }
        );
        let ty = &columns[self.column].ty;
        is_exact.then(|| sum(ty, &row[self.column], self.negated, operand))?
    }
}

/// Expressions over the conflicting row and the row that was to be inserted, as a plan has them that is kept.
pub(crate) trait KeptExpressions: Send + Sync {
    /// The value of an expression, and where it comes from.
    fn value(&self, item: usize, rows: [&[Value]; 2]) -> Result<(Value, Origin)>;
}

/// `None`: there are none to compute.
pub(crate) type OptionalExpressions = Option<Box<dyn KeptExpressions>>;

/// What computes expressions over both rows.
pub(crate) enum Values {
    Planned(RowEvaluator),
    /// Of a plan that is kept; `None` if it has none. The second one computes sums.
    Kept(OptionalExpressions, OptionalExpressions),
}

impl Values {
    /// The value of an expression, and where it comes from.
    fn value(
        &self,
        expression: usize,
        row: &[Value],
        (new, source): (&[Value], &[Value]),
    ) -> Result<(Value, Origin)> {
        match self {
            Values::Planned(evaluator) => {
                let value = evaluator.value(expression, row.iter().chain(new).chain(source))?;
                Ok((value, Origin::from(&evaluator.metas[expression])))
            }
            Values::Kept(kept, _) => kept_value(kept, expression, [row, new]),
        }
    }

    /// The same of a sum.
    fn value_of_sum(&self, expression: usize, rows: [&[Value]; 2]) -> Result<(Value, Origin)> {
        match self {
            Values::Kept(_, sums) => kept_value(sums, expression, rows),
            Values::Planned(_) => kept_value(&None, expression, rows),
        }
    }
}

fn kept_value(
    kept: &OptionalExpressions,
    expression: usize,
    rows: [&[Value]; 2],
) -> Result<(Value, Origin)> {
    let kept = kept
        .as_ref()
        .ok_or_else(|| SqlError::unknown("an assignment without its expression"))?;
    kept.value(expression, rows)
}

/// `INSERT … AS alias(columns)`.
struct RowAlias {
    name: Option<String>,
    /// In the order of the columns that are inserted.
    columns: Vec<String>,
}

impl RowAlias {
    fn of(alias: Option<&ast::InsertAliases>) -> RowAlias {
        RowAlias {
            name: alias.map(|alias| last_part(&alias.row_alias)),
            columns: alias
                .and_then(|alias| alias.col_aliases.as_ref())
                .map(|names| names.iter().map(|name| name.value.clone()).collect())
                .unwrap_or_default(),
        }
    }
}

/// Qualifies the columns in an expression with the row that they mean, [`OLD`] or [`NEW`]; `None` if the alias of the
/// new row is wrong.
pub(crate) fn with_named_rows(
    expression: &ast::Expr,
    (table, targets): (&Table, &[usize]),
    alias: Option<&ast::InsertAliases>,
) -> Option<ast::Expr> {
    let alias = RowAlias::of(alias);
    if !alias.columns.is_empty() && alias.columns.len() != targets.len() {
        return None;
    }
    let mut naming = Naming {
        table,
        targets,
        alias: &alias,
    };
    let mut expression = expression.clone();
    walk_expression(&mut expression, &mut naming);
    Some(expression)
}

/// Columns with ON UPDATE CURRENT_TIMESTAMP besides those that are assigned.
fn stamped_columns(table: &Table, assignments: &[(usize, Assigned)]) -> Vec<usize> {
    let columns = &table.definition.columns;
    let is_assigned = |column: usize| assignments.iter().any(|(other, _)| *other == column);
    (0..columns.len())
        .filter(|column| columns[*column].on_update_current_timestamp && !is_assigned(*column))
        .collect()
}

impl Session {
    /// Puts the values of subqueries into assignments.
    ///
    /// # Errors
    /// Those of the subqueries, and 1235 for one that names columns of the rows, or reads tables and gives something
    /// else for each row.
    pub(crate) fn compute_subqueries(
        &mut self,
        assignments: &mut [ast::Assignment],
        text: &str,
    ) -> Result<()> {
        assignments.iter_mut().try_for_each(|assignment| {
            let mut inlined = InlinedQueries::default();
            walk_expression(&mut assignment.value, &mut inlined);
            if inlined.has_others {
                let what = "a subquery of ON DUPLICATE KEY UPDATE with RAND() or the like";
                return Err(SqlError::not_supported_yet(what));
            }
            self.compute_subqueries_in(&mut assignment.value, text)
        })
    }

    /// As [`Self::compute_subqueries`], of one expression.
    pub(crate) fn compute_subqueries_in(
        &mut self,
        expression: &mut ast::Expr,
        text: &str,
    ) -> Result<()> {
        // What SET TRANSACTION said is not about these reads alone.
        let next = self.transactions.next;
        let mut subqueries = Subqueries {
            session: &mut *self,
            text,
            queries: 0,
            failure: None,
        };
        walk_expression(expression, &mut subqueries);
        if let Some(error) = subqueries.failure {
            return Err(error);
        }
        self.transactions.next = next;
        Ok(())
    }

    /// Plans the assignments. `targets`: the columns that the statement inserts; `source`: those that its SELECT
    /// delivers behind them ([`take_source_columns`]).
    pub(crate) fn duplicate_update(
        &self,
        table: &Arc<Table>,
        (targets, source): (&[usize], &[Column]),
        assignments: Parsed<'_, &Vec<ast::Assignment>>,
        alias: Option<&ast::InsertAliases>,
        mode: Mode,
    ) -> Result<DuplicateUpdate> {
        let Parsed {
            ast: assignments,
            text,
        } = assignments;
        let definition = &table.definition;
        let alias = RowAlias::of(alias);
        if !alias.columns.is_empty() && alias.columns.len() != targets.len() {
            return Err(SqlError::new(
                codes::VIEW_WRONG_LIST,
                "In definition of view, derived table or common table expression, SELECT list and column names list have \
                 different column counts",
            ));
        }
        let mut naming = Naming {
            table,
            targets,
            alias: &alias,
        };
        let mut planned = Vec::with_capacity(assignments.len());
        let mut items = Vec::new();
        for assignment in assignments {
            let ast::AssignmentTarget::ColumnName(name) = &assignment.target else {
                return Err(SqlError::not_supported_yet("SET of a row"));
            };
            let name = last_part(name);
            let column = definition
                .column_position(&name)
                .ok_or_else(|| SqlError::bad_field(&name, "field list"))?;
            if definition.columns[column].generated.is_some() {
                match is_default(&assignment.value) {
                    true => continue,
                    false => return Err(value_not_allowed(&name, &definition.name)),
                }
            }
            let computed = match definition.columns[column].default_expression() {
                Some(default) if is_default(&assignment.value) => Some(computed_default(default)?),
                _ => None,
            };
            if computed.is_none() && is_default(&assignment.value) {
                planned.push((column, Assigned::Default));
                continue;
            }
            let number =
                hybrid_number(&assignment.value, &definition.columns[column].ty).or(computed);
            let mut value = number.unwrap_or_else(|| assignment.value.clone());
            write_defaults(table, &mut value)?;
            walk_expression(&mut value, &mut naming);
            if column_of_row(&value, OLD, definition) == Some(column) {
                planned.push((column, Assigned::Itself));
                continue;
            }
            planned.push((column, Assigned::Computed(items.len())));
            items.push(ast::SelectItem::ExprWithAlias {
                expr: value,
                alias: ast::Ident::with_quote('`', format!("value {} ", items.len())),
            });
        }
        let kinds = [OLD, NEW].map(|name| RowKind {
            name,
            columns: &definition.columns,
        });
        let source = (!source.is_empty()).then_some(RowKind {
            name: SOURCE,
            columns: source,
        });
        let kinds: Vec<RowKind<'_>> = kinds.into_iter().chain(source).collect();
        let evaluator = self.row_evaluator(Parsed::new(items, text), &kinds)?;
        Ok(DuplicateUpdate {
            table: Arc::clone(table),
            stamped: stamped_columns(table, &planned),
            assignments: planned,
            values: Values::Planned(evaluator),
            mode,
            now_micros: self.local_now_micros(),
            is_of_only_row: false,
        })
    }

    /// The assignments of a plan that is kept, for one run.
    pub(crate) fn kept_duplicate_update(
        &self,
        table: &Arc<Table>,
        assignments: Vec<(usize, Assigned)>,
        (expressions, sums): (OptionalExpressions, OptionalExpressions),
        mode: Mode,
    ) -> DuplicateUpdate {
        DuplicateUpdate {
            table: Arc::clone(table),
            stamped: stamped_columns(table, &assignments),
            assignments,
            values: Values::Kept(expressions, sums),
            mode,
            now_micros: self.local_now_micros(),
            is_of_only_row: false,
        }
    }
}

impl DuplicateUpdate {
    pub(crate) fn of_only_row(&mut self) {
        self.is_of_only_row = true;
    }

    fn refuses_null(&self, column: &Column) -> bool {
        self.is_of_only_row && !column.nullable
    }

    /// The conflicting row, `old`, as it shall be; `new` is the row that was to be inserted, `source` what the SELECT
    /// delivers behind it.
    pub(crate) fn updated(
        &self,
        old: &[Value],
        (new, source): (&[Value], &[Value]),
        row_number: u64,
        warnings: &mut Warnings,
    ) -> Result<Vec<Value>> {
        let columns = &self.table.definition.columns;
        let mut row = old.to_vec();
        for (column, assigned) in &self.assignments {
            // A hundred columns may each get a value of nearly a megabyte.
            if !sheaf_memory::may_go_on() {
                return Err(SqlError::query_interrupted());
            }
            let definition = &columns[*column];
            let (value, origin) = match assigned {
                Assigned::Default => {
                    row[*column] = default_in_row(definition, self.now_micros)
                        .ok_or_else(|| SqlError::no_default_for_field(&definition.name))?;
                    continue;
                }
                Assigned::Itself => continue,
                Assigned::Value(value, origin) => (Cow::Borrowed(value), origin.clone()),
                Assigned::New(column) => (Cow::Borrowed(&new[*column]), Origin::default()),
                Assigned::Sum(sum) => match sum.value(columns, &row, new) {
                    Some(value) => (Cow::Owned(value), Origin::default()),
                    None => {
                        let (value, origin) =
                            self.values.value_of_sum(sum.expression, [&row, new])?;
                        (Cow::Owned(value), origin)
                    }
                },
                Assigned::Computed(expression) => {
                    let (value, origin) = self.values.value(*expression, &row, (new, source))?;
                    (Cow::Owned(value), origin)
                }
            };
            let value = shown_in(&value, &origin, &definition.ty);
            // NULL asks for the next number, and a row that is there already gets none.
            if value.is_null() && definition.auto_increment && !definition.nullable {
                row[*column] = zero_value(&definition.ty);
                continue;
            }
            if self.refuses_null(definition) && value.is_null() {
                return Err(issue(definition, ColumnProblem::Null, row_number).into());
            }
            row[*column] = assign(definition, &value, self.mode, row_number, warnings)?;
        }
        if row != old {
            for column in &self.stamped {
                row[*column] = current_timestamp(&columns[*column].ty, self.now_micros);
            }
        }
        Ok(row)
    }
}

/// Puts expressions in the places of subqueries that compute them without tables, and give something else for each row:
/// `(SELECT uuid())`.
#[derive(Default)]
struct InlinedQueries {
    /// Open ones.
    queries: usize,
    /// There are such that are more than an expression.
    has_others: bool,
}

impl ExpressionVisitor for InlinedQueries {
    fn enter_query(&mut self, _query: &ast::Query) {
        self.queries += 1;
    }

    fn leave_query(&mut self) {
        self.queries -= 1;
    }

    fn leave_expression(&mut self, expression: &mut ast::Expr) -> ControlFlow<()> {
        if self.queries > 0 {
            return ControlFlow::Continue(());
        }
        let inlined = match &*expression {
            ast::Expr::Subquery(query) if varies_by_row(query) => only_expression(query),
            ast::Expr::Exists { subquery, .. } if varies_by_row(subquery) => None,
            _ => return ControlFlow::Continue(()),
        };
        match inlined {
            Some(value) => *expression = ast::Expr::Nested(Box::new(value)),
            None => self.has_others = true,
        }
        ControlFlow::Continue(())
    }
}

/// The only expression that a query computes without tables, aggregates and other queries.
fn only_expression(query: &ast::Query) -> Option<ast::Expr> {
    let ast::SetExpr::Select(select) = query.body.as_ref() else {
        return None;
    };
    let [ast::SelectItem::UnnamedExpr(value) | ast::SelectItem::ExprWithAlias { expr: value, .. }] =
        select.projection.as_slice()
    else {
        return None;
    };
    // Whatever else it has is shown.
    let is_all = query.to_string() == format!("SELECT {}", select.projection[0]);
    let is_of_rows = |expression: &ast::Expr| match expression {
        ast::Expr::Subquery(_) | ast::Expr::Exists { .. } | ast::Expr::InSubquery { .. } => true,
        ast::Expr::Function(function) => {
            let name = last_part(&function.name).to_ascii_lowercase();
            function.over.is_some() || aggregate_function(&name).is_some()
        }
        _ => false,
    };
    let found = ast::visit_expressions(value, |expression| match is_of_rows(expression) {
        true => ControlFlow::Break(()),
        false => ControlFlow::Continue(()),
    });
    (is_all && found.is_continue()).then(|| value.clone())
}

/// Replaces subqueries by their values.
struct Subqueries<'a> {
    session: &'a mut Session,
    text: &'a str,
    /// Open ones.
    queries: usize,
    failure: Option<SqlError>,
}

impl ExpressionVisitor for Subqueries<'_> {
    fn enter_query(&mut self, _query: &ast::Query) {
        self.queries += 1;
    }

    fn leave_query(&mut self) {
        self.queries -= 1;
    }

    fn leave_expression(&mut self, expression: &mut ast::Expr) -> ControlFlow<()> {
        let is_subquery = matches!(
            expression,
            ast::Expr::Subquery(_) | ast::Expr::Exists { .. }
        );
        if self.queries > 0 || !is_subquery {
            return ControlFlow::Continue(());
        }
        match self.session.evaluate(Parsed::new(expression, self.text)) {
            Ok(value) => {
                *expression = match &value {
                    // As it prints. The DOUBLE of the same value has more digits.
                    Value::Float(_) => {
                        ast::Expr::value(ast::Value::SingleQuotedString(value.to_string()))
                    }
                    _ => value_literal(&value),
                };
            }
            Err(error) => {
                let names_the_rows =
                    error.is(codes::BAD_FIELD_ERROR) || error.is(codes::SP_DOES_NOT_EXIST);
                self.failure = Some(match names_the_rows {
                    true => not_over_rows(),
                    false => error,
                });
                return ControlFlow::Break(());
            }
        }
        ControlFlow::Continue(())
    }
}

/// Lets the SELECT of an INSERT deliver the columns that assignments name and the table does not have, and names them
/// in the assignments as columns of the third row. Returns how many they are. The rows of UNION, DISTINCT and groups
/// have no such columns.
///
/// # Errors
/// 1052 for a name of a column of the table and of one of a table of the SELECT, if a session looks them up.
pub(crate) fn take_source_columns(
    session: Option<&Session>,
    (table, alias): (&Table, Option<&ast::InsertAliases>),
    assignments: &mut [ast::Assignment],
    query: &mut ast::Query,
) -> Result<usize> {
    let ast::SetExpr::Select(select) = query.body.as_mut() else {
        return Ok(0);
    };
    let is_grouped = !matches!(&select.group_by,
        ast::GroupByExpr::Expressions(groups, _) if groups.is_empty());
    if select.distinct.is_some() || is_grouped || select.having.is_some() {
        return Ok(0);
    }
    let mut names = SourceNames {
        table,
        alias,
        found: Vec::new(),
        own: Vec::new(),
        queries: 0,
        of_new_row: 0,
    };
    for assignment in assignments {
        if !is_default(&assignment.value) {
            walk_expression(&mut assignment.value, &mut names);
        }
    }
    let session = session.filter(|_| !names.own.is_empty());
    let tables = session.and_then(|session| session.references_of(&select.from).ok());
    let is_of_both = |name: &&ast::Ident| {
        let mut tables = tables.iter();
        tables.any(|tables| tables.have_column(&name.value))
    };
    if let Some(name) = names.own.iter().find(is_of_both) {
        return Err(SqlError::non_unique_column(&name.value, "field list"));
    }
    let found = names.found.into_iter().enumerate();
    let items = found.map(|(at, expr)| ast::SelectItem::ExprWithAlias {
        expr,
        alias: ast::Ident::with_quote('`', source_column(at)),
    });
    let before = select.projection.len();
    select.projection.extend(items);
    Ok(select.projection.len() - before)
}

/// The name of a column of the third row.
pub(crate) fn source_column(at: usize) -> String {
    format!("\0source {at}")
}

/// Whether a name is that of a column of this table, `table.column` or `database.table.column`. The query may read a
/// table of the same name in another database.
fn is_of_table(parts: &[ast::Ident], table: &Table) -> bool {
    let definition = &table.definition;
    match parts {
        [row, _] => row.value == definition.name,
        [database, row, _] => database.value == definition.database && row.value == definition.name,
        _ => false,
    }
}

/// Finds the names that can only be those of a SELECT.
struct SourceNames<'a> {
    table: &'a Table,
    alias: Option<&'a ast::InsertAliases>,
    found: Vec<ast::Expr>,
    /// Columns of the table, without its name.
    own: Vec<ast::Ident>,
    /// Open subqueries: there a name may mean a column of their own.
    queries: usize,
    /// Open VALUES(column).
    of_new_row: usize,
}

impl SourceNames<'_> {
    fn is_of_source(&self, expression: &ast::Expr) -> bool {
        let alias_columns = self.alias.and_then(|alias| alias.col_aliases.as_ref());
        match expression {
            ast::Expr::Identifier(name) => {
                let is_same = |alias: &ast::Ident| alias.value.eq_ignore_ascii_case(&name.value);
                !name.value.starts_with('@')
                    && self.table.definition.column_position(&name.value).is_none()
                    && !alias_columns.is_some_and(|columns| columns.iter().any(is_same))
            }
            ast::Expr::CompoundIdentifier(parts) => {
                let [.., row, _] = parts.as_slice() else {
                    return false;
                };
                let is_alias = |alias: &ast::InsertAliases| {
                    last_part(&alias.row_alias).eq_ignore_ascii_case(&row.value)
                };
                !row.value.starts_with('@')
                    && !is_of_table(parts, self.table)
                    && !self.alias.is_some_and(is_alias)
            }
            _ => false,
        }
    }
}

impl ExpressionVisitor for SourceNames<'_> {
    fn enter_query(&mut self, _query: &ast::Query) {
        self.queries += 1;
    }

    fn leave_query(&mut self) {
        self.queries -= 1;
    }

    fn enter_expression(&mut self, expression: &ast::Expr) {
        self.of_new_row += usize::from(is_of_new_row(expression));
    }

    fn leave_expression(&mut self, expression: &mut ast::Expr) -> ControlFlow<()> {
        self.of_new_row -= usize::from(is_of_new_row(expression));
        if self.queries > 0 {
            return ControlFlow::Continue(());
        }
        if self.is_of_source(expression) {
            let known = self.found.iter().position(|known| known == expression);
            let at = known.unwrap_or_else(|| {
                self.found.push(expression.clone());
                self.found.len() - 1
            });
            *expression = Naming::qualified(SOURCE, &source_column(at));
        } else if self.of_new_row == 0
            && let ast::Expr::Identifier(name) = expression
            && self.table.definition.column_position(&name.value).is_some()
        {
            self.own.push(name.clone());
        }
        ControlFlow::Continue(())
    }
}

fn is_of_new_row(expression: &ast::Expr) -> bool {
    matches!(expression, ast::Expr::Function(function) if column_of_values(function).is_some())
}

/// The column in VALUES(column), by its name.
pub(crate) fn column_of_values(function: &ast::Function) -> Option<&ast::Expr> {
    let name = function.name.to_string();
    if !name.eq_ignore_ascii_case("VALUES") && !name.eq_ignore_ascii_case("VALUE") {
        return None;
    }
    let ast::FunctionArguments::List(list) = &function.args else {
        return None;
    };
    let [ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Expr(column))] = list.args.as_slice()
    else {
        return None;
    };
    let is_name = matches!(
        column,
        ast::Expr::Identifier(_) | ast::Expr::CompoundIdentifier(_)
    );
    is_name.then_some(column)
}

/// The column of one of the rows, [`OLD`] or [`NEW`], if an expression whose columns are qualified is one.
pub(crate) fn column_of_row(
    named: &ast::Expr,
    wanted: &str,
    definition: &TableDefinition,
) -> Option<usize> {
    match inside(named) {
        ast::Expr::CompoundIdentifier(parts) => match parts.as_slice() {
            [row, column] if row.value == wanted => definition.column_position(&column.value),
            _ => None,
        },
        _ => None,
    }
}

/// Qualifies the columns in an expression with the row that they mean.
struct Naming<'a> {
    table: &'a Table,
    targets: &'a [usize],
    alias: &'a RowAlias,
}

impl Naming<'_> {
    fn qualified(row: &str, column: &str) -> ast::Expr {
        let parts = [row, column].map(|part| ast::Ident::with_quote('`', part));
        ast::Expr::CompoundIdentifier(parts.to_vec())
    }

    /// The column of the new row that has this alias.
    fn aliased(&self, name: &str) -> Option<&str> {
        let mut names = self.alias.columns.iter();
        let at = names.position(|alias| alias.eq_ignore_ascii_case(name))?;
        let column = self.targets.get(at)?;
        Some(&self.table.definition.columns[*column].name)
    }

    /// The column of this name, if the statement gives it a value.
    fn given<'n>(&self, name: &'n str) -> Option<&'n str> {
        let position = self.table.definition.column_position(name)?;
        self.targets.contains(&position).then_some(name)
    }

    fn is_column(&self, name: &str) -> bool {
        self.table.definition.column_position(name).is_some()
    }

    fn resolved(&self, expression: &ast::Expr) -> Option<ast::Expr> {
        match expression {
            ast::Expr::Identifier(name) if !name.value.starts_with('@') => {
                match self.aliased(&name.value) {
                    Some(column) => Some(Self::qualified(NEW, column)),
                    None if self.is_column(&name.value) => Some(Self::qualified(OLD, &name.value)),
                    None => None,
                }
            }
            ast::Expr::CompoundIdentifier(parts) => {
                let [.., row, column] = parts.as_slice() else {
                    return None;
                };
                let is_alias = |name: &String| name.eq_ignore_ascii_case(&row.value);
                if self.alias.name.as_ref().is_some_and(is_alias) {
                    let column = match self.alias.columns.is_empty() {
                        true => self.given(&column.value),
                        false => self.aliased(&column.value),
                    };
                    return column.map(|column| Self::qualified(NEW, column));
                }
                (is_of_table(parts, self.table) && self.is_column(&column.value))
                    .then(|| Self::qualified(OLD, &column.value))
            }
            ast::Expr::Function(function) => {
                let named = column_of_values(function)?;
                // A column of the table is qualified by now.
                Some(match named {
                    ast::Expr::CompoundIdentifier(parts) => match parts.as_slice() {
                        [row, column] if row.value == OLD || row.value == NEW => {
                            Self::qualified(NEW, &column.value)
                        }
                        _ => named.clone(),
                    },
                    _ => named.clone(),
                })
            }
            _ => None,
        }
    }
}

impl ExpressionVisitor for Naming<'_> {
    /// After its operands: the column in VALUES(column) is qualified by then, and the call takes its last part.
    fn leave_expression(&mut self, expression: &mut ast::Expr) -> ControlFlow<()> {
        if let Some(resolved) = self.resolved(expression) {
            *expression = resolved;
        }
        ControlFlow::Continue(())
    }
}
