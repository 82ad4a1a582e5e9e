//! CHECK constraints: read from statements, and evaluated over rows before they are written.
//!
//! ```text
//!   CHECK (a > 0), CHECK (a < b)     ->     SELECT (a > 0) IS NOT FALSE, (a < b) IS NOT FALSE FROM row (a, b)
//! ```
//!
//! The list is planned over the columns that it names (see `query/row_evaluator.rs`), so that a CHECK means what it
//! would mean in a WHERE, and kept by the session (`session_parts/table_expressions.rs`). A row breaks a CHECK that is
//! false; NULL does not. INSERT, REPLACE, LOAD DATA, UPDATE and ON DUPLICATE KEY UPDATE evaluate it here. Foreign keys
//! do not change columns that a CHECK names (error 3823).

use std::ops::ControlFlow;
use std::sync::{Arc, Mutex};

use arrow::array::ArrayRef;
use sheaf_frontend::parser::check_text::column_names;
use sheaf_frontend::varying::varying_call;
use sheaf_frontend::walk::{ExpressionVisitor, walk_expression};
use sheaf_table::table::generated_value;
use sheaf_table::{CheckSpec, Column, RowTest, Table, TableDefinition, TableError};
use sheaf_types::Value;
use sheaf_types::error::codes::{self, ErrorCode};
use sqlparser::ast;

use crate::change::find::through_view::{ChangedView, check_failed};
use crate::error::{Result, SqlError};
use crate::parser::Parsed;
use crate::parser::statement::{CheckDefinition, Statement};
use crate::query::row_evaluator::{RowEvaluator, RowKind};
use crate::query::rows::value_at;
use crate::session::Session;
use crate::variables::Variables;

/// The CHECKs of a table that rows must keep.
pub(crate) struct TableChecks(Arc<PlannedChecks>);

struct PlannedChecks {
    names: Vec<String>,
    /// One item for each name: false, where the row breaks it.
    evaluator: RowEvaluator,
    /// Positions of the columns that the items name.
    columns: Vec<usize>,
    /// They are views, whose rows have to be theirs: WITH CHECK OPTION.
    are_views: bool,
    /// What a value that AUTO_INCREMENT is going to give is until then, at its place among the columns.
    not_given: Option<(usize, Value)>,
}

impl TableChecks {
    /// Whether one of them names a column.
    pub(crate) fn need(&self, column: usize) -> bool {
        self.0.columns.contains(&column)
    }

    /// Why a row may not be written, if it may not. Errors 3819 and 1369.
    fn refusal(&self, row: &[Value]) -> Result<Option<SqlError>> {
        let broken = self.broken_by(row)?;
        Ok(broken.map(|name| match self.0.are_views {
            true => check_failed(name),
            false => violated(name).into(),
        }))
    }

    /// The name of a CHECK that a row breaks, if it breaks one.
    fn broken_by(&self, row: &[Value]) -> Result<Option<&str>> {
        let checks = &self.0;
        let values = checks.columns.iter();
        let values = values.map(|column| checks.value(row, *column));
        let batch = checks.evaluator.batch_of_row(values)?;
        for (item, name) in checks.names.iter().enumerate() {
            if is_broken(&checks.evaluator.evaluate(item, &batch)?, 0)? {
                return Ok(Some(name));
            }
        }
        Ok(None)
    }

    fn are_kept_by(&self, rows: &[Vec<Value>]) -> Result<bool> {
        let checks = &self.0;
        let columns = checks.columns.iter().map(|column| {
            let values = rows.iter().map(|row| checks.value(row, *column));
            values.collect::<Vec<&Value>>()
        });
        let columns: Vec<Vec<&Value>> = columns.collect();
        let columns: Vec<&[&Value]> = columns.iter().map(Vec::as_slice).collect();
        let batch = checks.evaluator.batch(&columns, rows.len())?;
        for item in 0..checks.names.len() {
            let kept = checks.evaluator.evaluate(item, &batch)?;
            for row in 0..rows.len() {
                if is_broken(&kept, row)? {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }
}

/// Whether a row breaks the CHECK that gives these values.
fn is_broken(kept: &ArrayRef, row: usize) -> Result<bool> {
    Ok(value_at(kept.as_ref(), row)?.is_zero())
}

impl PlannedChecks {
    /// What a CHECK is told of a column.
    fn value<'v>(&'v self, row: &'v [Value], column: usize) -> &'v Value {
        match &self.not_given {
            Some((of, value)) if *of == column && row[column].is_null() => value,
            _ => &row[column],
        }
    }
}

/// Why a row may not be written: the first of all checks that it breaks.
pub(crate) fn refusal_of(checks: &[TableChecks], row: &[Value]) -> Result<Option<SqlError>> {
    for checks in checks {
        if let Some(error) = checks.refusal(row)? {
            return Ok(Some(error));
        }
    }
    Ok(None)
}

/// Whether many rows are known to keep all checks. Which of them breaks one, or cannot be asked, is for [`refusal_of`].
pub(crate) fn are_kept(checks: &[TableChecks], rows: &[Vec<Value>]) -> bool {
    checks
        .iter()
        .all(|checks| matches!(checks.are_kept_by(rows), Ok(true)))
}

/// Why a CHECK could not be evaluated, once it could not.
pub(crate) type Failure = Arc<Mutex<Option<SqlError>>>;

/// Error 3819.
pub(crate) fn violated(name: &str) -> TableError {
    TableError::CheckViolated {
        name: name.to_string(),
    }
}

impl Session {
    /// The CHECKs that rows of a table must keep; `None` if there is none.
    pub(crate) fn table_checks(&self, table: &Arc<Table>) -> Result<Option<TableChecks>> {
        let definition = &table.definition;
        if !definition.has_enforced_checks() {
            return Ok(None);
        }
        let checks = self.planned_of(table, false, || self.planned_checks(definition))?;
        Ok(Some(TableChecks(checks)))
    }

    fn planned_checks(&self, definition: &TableDefinition) -> Result<PlannedChecks> {
        let enforced = definition.checks.iter().filter(|check| check.enforced);
        let (names, expressions): (Vec<String>, Vec<String>) = enforced
            .map(|check| (check.name.clone(), check.expression.clone()))
            .unzip();
        let named = |column: &Column| {
            let mut named = definition.checks.iter().flat_map(|check| &check.columns);
            named.any(|name| sheaf_table::schema::same_name(name, &column.name))
        };
        let columns: Vec<usize> = (0..definition.columns.len())
            .filter(|column| named(&definition.columns[*column]))
            .collect();
        let seen: Vec<Column> = columns
            .iter()
            .map(|column| definition.columns[*column].clone())
            .collect();
        let evaluator = self.check_evaluator(&definition.name, &expressions, &seen)?;
        Ok(PlannedChecks {
            names,
            evaluator,
            columns,
            are_views: false,
            not_given: None,
        })
    }

    /// What WITH CHECK OPTION asks of new rows of the table; `None`: nothing. Error 1235 for a condition that is about
    /// more than one row.
    pub(crate) fn view_checks(&self, view: &ChangedView) -> Result<Option<TableChecks>> {
        if view.conditions.is_empty() {
            return Ok(None);
        }
        let definition = &view.table.definition;
        let mut names = Vec::with_capacity(view.conditions.len());
        let mut expressions = Vec::with_capacity(view.conditions.len());
        let mut seen = vec![false; definition.columns.len()];
        for condition in &view.conditions {
            let Some(expression) = &condition.expression else {
                return Err(SqlError::not_supported_yet(
                    "WITH CHECK OPTION of a view with a subquery in its condition",
                ));
            };
            for name in column_names(expression) {
                if let Some(position) = definition.column_position(&name) {
                    seen[position] = true;
                }
            }
            names.push(condition.view.clone());
            expressions.push(expression.clone());
        }
        let columns: Vec<usize> = (0..seen.len()).filter(|column| seen[*column]).collect();
        let kept: Vec<Column> = columns
            .iter()
            .map(|column| definition.columns[*column].clone())
            .collect();
        let items = expressions.into_iter().enumerate().map(|(n, expression)| {
            let whole = ast::Expr::Nested(Box::new(expression));
            ast::SelectItem::ExprWithAlias {
                expr: ast::Expr::IsTrue(Box::new(whole)),
                alias: ast::Ident::with_quote('`', format!("check {n}")),
            }
        });
        let kind = RowKind {
            name: &definition.name,
            columns: &kept,
        };
        let evaluator = self.row_evaluator(Parsed::new(items.collect(), ""), &[kind])?;
        // A row is asked before it gets its value, as in MySQL, where it has 0 then.
        let not_given = definition.auto_increment_column().map(|column| {
            let ty = &definition.columns[column].ty;
            (column, generated_value(ty, 0))
        });
        Ok(Some(TableChecks(Arc::new(PlannedChecks {
            names,
            evaluator,
            columns,
            are_views: true,
            not_given,
        }))))
    }

    fn check_evaluator(
        &self,
        table: &str,
        expressions: &[String],
        columns: &[Column],
    ) -> Result<RowEvaluator> {
        let items = expressions.iter().enumerate();
        let items =
            items.map(|(n, expression)| format!("({expression}) IS NOT FALSE AS `check {n}`"));
        let text = format!("SELECT {}", items.collect::<Vec<_>>().join(", "));
        // As it was read: `sql_mode` says nothing about what is kept.
        let dialect = crate::dialect::SheafDialect::default();
        let items = match crate::parser::parse_statement(&text, &dialect)? {
            Statement::Query(query) => match *query.body {
                ast::SetExpr::Select(select) => select.projection,
                _ => Vec::new(),
            },
            _ => Vec::new(),
        };
        let kind = RowKind {
            name: table,
            columns,
        };
        self.row_evaluator(Parsed::new(items, &text), &[kind])
    }

    /// What the catalog is asked for. Errors for what a CHECK may not be or contain.
    pub(crate) fn check_spec(
        &self,
        check: &CheckDefinition,
        shown_name: &str,
    ) -> Result<CheckSpec> {
        let name = check.name.as_deref().unwrap_or(shown_name);
        let mut refusal = Refusal { name, found: None };
        let mut expression = check.expression.clone();
        walk_expression(&mut expression, &mut refusal);
        if let Some(error) = refusal.found {
            return Err(error);
        }
        if !may_be_boolean(&check.expression) {
            return Err(SqlError::new(
                codes::NON_BOOLEAN_EXPR_FOR_CHECK_CONSTRAINT,
                format!(
                    "An expression of non-boolean type specified to a check constraint '{name}'."
                ),
            ));
        }
        self.check_meaning("CHECK constraints", &check.text)?;
        Ok(CheckSpec {
            name: check.name.clone(),
            expression: check.text.clone(),
            columns: column_names(&check.expression),
            enforced: check.enforced,
            of_column: check.of_column.clone(),
        })
    }

    /// A definition keeps the text of an expression, which means the same under every SQL mode. Error 1235 where it was
    /// written under one that gives it another meaning.
    pub(crate) fn check_meaning(&self, what: &str, text: &str) -> Result<()> {
        let dialect = self.dialect();
        let has_pattern = || text.contains('\\') && text.to_ascii_lowercase().contains("like");
        match dialect.pipes_as_concat && text.contains("||")
            || dialect.high_not_precedence
            || dialect.no_backslash_escapes && has_pattern()
        {
            true => Err(SqlError::not_supported_yet(format!(
                "{what} under the SQL modes PIPES_AS_CONCAT, HIGH_NOT_PRECEDENCE and NO_BACKSLASH_ESCAPES"
            ))),
            false => Ok(()),
        }
    }

    /// Whether the CHECKs of a table that is being defined can be evaluated. Errors as for a query.
    pub(crate) fn try_checks(
        &self,
        table: &str,
        checks: &[CheckSpec],
        columns: &[Column],
    ) -> Result<()> {
        let is_known = |name: &String| {
            let mut columns = columns.iter();
            columns.any(|column| sheaf_table::schema::same_name(&column.name, name))
        };
        let known = checks
            .iter()
            .filter(|check| check.columns.iter().all(is_known));
        let expressions: Vec<String> = known.map(|check| check.expression.clone()).collect();
        if !expressions.is_empty() {
            self.check_evaluator(table, &expressions, columns)?;
        }
        Ok(())
    }

    /// The test of the rows that a table has when it gets this definition. Errors of evaluating are kept in the second
    /// part.
    pub(crate) fn row_test(
        &self,
        definition: &TableDefinition,
    ) -> Result<Option<(RowTest, Failure)>> {
        if !definition.has_enforced_checks() {
            return Ok(None);
        }
        let checks = TableChecks(Arc::new(self.planned_checks(definition)?));
        let failure = Arc::new(Mutex::new(None));
        let kept = Arc::clone(&failure);
        let test = move |row: &[Value]| match checks.broken_by(row) {
            Ok(None) => Ok(()),
            Ok(Some(name)) => Err(violated(name)),
            Err(error) => {
                if let Ok(mut kept) = kept.lock() {
                    *kept = Some(error);
                }
                Err(TableError::Interrupted)
            }
        };
        Ok(Some((RowTest(Arc::new(test)), failure)))
    }
}

impl Variables {
    /// Error 1235 under a time zone of the session's for a VIRTUAL column that would be computed in it: the values are
    /// stored, and are those of UTC.
    pub(crate) fn check_time_zone(&self, definition: &TableDefinition) -> Result<()> {
        if self.time_zone().is_utc() {
            return Ok(());
        }
        match definition.virtual_column_of_time_zone() {
            Some(column) => Err(SqlError::virtual_in_time_zone(
                &definition.name,
                &column.name,
            )),
            None => Ok(()),
        }
    }
}

/// Looks for what a CHECK may not contain.
struct Refusal<'a> {
    name: &'a str,
    found: Option<SqlError>,
}

impl Refusal<'_> {
    fn refuse(&mut self, code: ErrorCode, message: String) {
        self.found
            .get_or_insert_with(|| SqlError::new(code, message));
    }

    fn refuse_function(&mut self, function: &str) {
        let name = self.name;
        let message = format!(
            "An expression of a check constraint '{name}' contains disallowed function: {function}."
        );
        self.refuse(
            codes::CHECK_CONSTRAINT_NAMED_FUNCTION_IS_NOT_ALLOWED,
            message,
        );
    }
}

impl ExpressionVisitor for Refusal<'_> {
    fn enter_query(&mut self, _query: &ast::Query) {
        let name = self.name;
        let message =
            format!("An expression of a check constraint '{name}' contains disallowed function.");
        self.refuse(codes::CHECK_CONSTRAINT_FUNCTION_IS_NOT_ALLOWED, message);
    }

    fn leave_expression(&mut self, expression: &mut ast::Expr) -> ControlFlow<()> {
        let is_variable =
            |name: &ast::Ident| name.quote_style.is_none() && name.value.starts_with('@');
        match expression {
            ast::Expr::Identifier(name) if is_variable(name) => {
                let name = self.name;
                let message = format!(
                    "An expression of a check constraint '{name}' cannot refer to a user or system variable."
                );
                self.refuse(codes::CHECK_CONSTRAINT_VARIABLES, message);
            }
            ast::Expr::CompoundIdentifier(parts) if parts.first().is_some_and(is_variable) => {
                let name = self.name;
                let message = format!(
                    "An expression of a check constraint '{name}' cannot refer to a user or system variable."
                );
                self.refuse(codes::CHECK_CONSTRAINT_VARIABLES, message);
            }
            ast::Expr::Function(function) => {
                if let Some(called) = varying_call(function) {
                    self.refuse_function(&called);
                }
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

/// False for what is a number, a text or a time for certain.
fn may_be_boolean(expression: &ast::Expr) -> bool {
    use ast::BinaryOperator::{
        BitwiseAnd, BitwiseOr, BitwiseXor, Divide, Minus, Modulo, Multiply, MyIntegerDivide, Plus,
    };
    match expression {
        ast::Expr::Nested(inner) => may_be_boolean(inner),
        ast::Expr::Value(value) => matches!(value.value, ast::Value::Boolean(_) | ast::Value::Null),
        ast::Expr::Identifier(_) | ast::Expr::CompoundIdentifier(_) => false,
        ast::Expr::BinaryOp { op, .. } => !matches!(
            op,
            BitwiseAnd
                | BitwiseOr
                | BitwiseXor
                | Divide
                | Minus
                | Modulo
                | Multiply
                | MyIntegerDivide
                | Plus
        ),
        _ => true,
    }
}
