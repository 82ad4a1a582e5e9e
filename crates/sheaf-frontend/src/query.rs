//! The front half of a query: from its syntax tree to a logical plan with MySQL's meaning.
//!
//! ```text
//!   sqlparser AST -> lower (markers, table references, headers) -> SqlToRel -> typing rule -> (the optimizer)
//! ```
//!
//! The result is an ordinary logical plan. Every operator has MySQL's semantics spelled out in plain expressions or in
//! Sheaf's scalar functions. Every string is compared by collation key, and each table reference is a
//! [`sheaf_exec::SheafTableSource`] of its own.

use std::sync::Arc;

use datafusion_common::config::ConfigOptions;
use datafusion_common::tree_node::TreeNodeRecursion;
use datafusion_common::{Column, DataFusionError, SchemaError};
use datafusion_expr::{Expr, LogicalPlan, TableSource};
use datafusion_optimizer::AnalyzerRule;
use datafusion_optimizer::analyzer::resolve_grouping_function::ResolveGroupingFunction;
use datafusion_sql::planner::{NullOrdering, ParserOptions, SqlToRel};
use sheaf_access::{CancelFlag, cancel};
use sheaf_exec::functions::EvaluationError;
use sheaf_exec::functions::truncated::TruncatedTexts;
use sheaf_exec::group_keys::has_doubtful_keys;
use sheaf_exec::plan_size::check_plan_size;
use sheaf_exec::typing::{Texts, resolve_plan};
use sheaf_table::Catalog;
use sheaf_types::error::codes;
use sheaf_types::temporal::split_datetime;
use sheaf_types::{Collation, Value};
use sqlparser::ast::{Query, SetExpr, Statement};

use crate::any_row::{AnyRows, check_outer_columns, with_any_rows};
use crate::bind::{Refusal, bind};
use crate::context::StatementContext;
use crate::error::{Result, SqlError};
use crate::last_insert_id::InsertIdCell;
use crate::lower::{self, HIDDEN_SUFFIX, TableReference};
use crate::multiset::{mark_multisets, number_equal_rows};
use crate::parser::hint::HintWarning;
use crate::rollup_order::in_order_of_groups;

/// What a statement may ask of its session: `@@variables`, `@user_variables`, NOW(), DATABASE() and their like.
/// The values are those at the start of the statement.
pub trait SessionValues {
    /// DATABASE().
    fn current_database(&self) -> Option<&str>;
    /// USER(), as `name@host`.
    fn user(&self) -> String;
    /// CURRENT_USER(): the account that the client is.
    fn current_user(&self) -> String {
        self.user()
    }
    fn connection_id(&self) -> u64;
    fn last_insert_id(&self) -> u64;
    /// Where LAST_INSERT_ID(value) leaves its value.
    fn insert_id_cell(&self) -> InsertIdCell {
        InsertIdCell::default()
    }
    /// Where texts are noted that the running statement cuts to numbers.
    fn truncated_texts(&self) -> TruncatedTexts {
        TruncatedTexts::default()
    }
    /// What is raised when the running statement shall end.
    fn cancel_flag(&self) -> CancelFlag {
        CancelFlag::new()
    }
    /// ROW_COUNT(): rows changed by the previous statement, -1 after a query.
    fn row_count(&self) -> i64;
    /// FOUND_ROWS(): rows of the previous result set.
    fn found_rows(&self) -> u64;
    /// Start of the statement, microseconds since 1970-01-01 00:00:00 UTC.
    fn now_utc_micros(&self) -> i64;
    /// The session's time zone: seconds to add to UTC at the start of the statement.
    fn time_zone_offset_seconds(&self) -> i32;
    /// VERSION().
    fn version(&self) -> String;
    /// `@@name`, `@@session.name`, `@@global.name`; `None` if there is no such variable (error 1193).
    fn system_variable(&self, global: bool, name: &str) -> Option<Value>;
    /// Whether derived tables become part of the query around them (`optimizer_switch`).
    fn merges_derived_tables(&self) -> bool {
        true
    }
    /// Which queries are bound to the algebra (`optimizer_switch`). In development.
    fn binding(&self) -> Binding {
        Binding::Off
    }
    /// Whether a query with groups names nothing but these, what they determine, and aggregates (`sql_mode`). Otherwise
    /// all else is that of any row of the group.
    fn only_full_group_by(&self) -> bool {
        true
    }
    /// Whether texts and numbers make no zero date (`sql_mode`).
    fn refuses_zero_dates(&self) -> bool {
        false
    }
    /// Whether constants of the statement come from parameters. A text that is no date is no error then.
    fn has_parameters(&self) -> bool {
        false
    }
    /// What texts compare by that come from no column (`collation_connection`).
    fn collation(&self) -> Collation {
        Collation::default()
    }
    /// `@name`, NULL if never set. Names are case-insensitive.
    fn user_variable(&self, name: &str) -> Value;
}

/// Which of the two ways a query takes. In development: see [`crate::bind`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Binding {
    /// It is lowered, and SqlToRel plans it.
    #[default]
    Off,
    /// It is bound to the algebra, if that is possible.
    On,
    /// It is bound to the algebra. What is not bound yet is error 1235, for tests.
    Only,
}

/// Tables that are not in the catalog (INFORMATION_SCHEMA); `Ok(None)` if there is none of this name.
pub type VirtualTables<'a> = dyn Fn(&str, &str) -> Result<Option<Arc<dyn TableSource>>> + 'a;

/// What a query is planned against.
pub struct QueryContext<'a> {
    /// The text that the tokens' positions refer to: what the parser was given. Result headers are cut from it.
    pub sql: &'a str,
    pub catalog: &'a Catalog,
    pub session: &'a dyn SessionValues,
    /// Values of `?`, in order. Missing ones (a statement that is only being prepared) are NULL.
    pub parameters: &'a [Value],
    pub virtual_tables: &'a VirtualTables<'a>,
    /// The tables in the outermost FROM have one more column, the clustered key: for statements that change rows.
    pub clustered_keys: bool,
    /// The plan is to be a list over a condition over the tables, as they are written, if it is nothing else.
    pub is_over_rows: bool,
}

/// A column of the result as the client is told.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Header {
    /// The alias, or the text of the expression as the client wrote it.
    pub name: String,
    /// The column's own name where the item is a plain column; empty otherwise.
    pub org_name: String,
    /// The alias of the table that the column comes from; empty for an expression.
    pub table: String,
    /// The table's own name.
    pub org_table: String,
    pub database: String,
}

/// A query ready for the optimizer.
pub struct LoweredQuery {
    pub plan: LogicalPlan,
    /// One for each column of `plan`. The field's metadata carries the SQL type (`sheaf.type`).
    pub headers: Vec<Header>,
    /// Number of `?` in the query.
    pub parameter_count: usize,
    /// FOR UPDATE or FOR SHARE was given.
    pub locking: bool,
    /// What is wrong with its optimizer hints.
    pub hint_warnings: Vec<HintWarning>,
}

/// Lowers and plans `query`.
///
/// # Errors
/// MySQL's for names (1046, 1054, 1052, 1146, 1305), arguments (1582), aggregates (1111, 1055, 3065) and constants.
pub fn logical_plan(query: &Query, context: &QueryContext<'_>) -> Result<LoweredQuery> {
    let binding = context.session.binding();
    if binding != Binding::Off {
        match bind(query, context) {
            Ok(bound) => return Ok(bound),
            Err(Refusal::Error(error)) => return Err(error),
            Err(Refusal::Unsupported(what)) if binding == Binding::Only => {
                return Err(SqlError::not_supported_yet(format!("binding {what}")));
            }
            Err(Refusal::Unsupported(_)) => {}
        }
    }
    if !context.session.only_full_group_by() {
        return planned(query, context, AnyRows::Shown);
    }
    match planned(query, context, AnyRows::Refused) {
        // Most queries name nothing but what they group by, so the others are planned twice.
        Err(error) if error.is(codes::WRONG_FIELD_WITH_GROUP) => {
            planned(query, context, AnyRows::Determined).map_err(|second| {
                match second.is(codes::WRONG_FIELD_WITH_GROUP) {
                    true => error,
                    false => second,
                }
            })
        }
        planned => planned,
    }
}

fn planned(query: &Query, context: &QueryContext<'_>, any_rows: AnyRows) -> Result<LoweredQuery> {
    let lowered = lower::lower(query, context, any_rows != AnyRows::Refused)?;
    let options = ConfigOptions::default();
    let (cell, cancel) = (
        context.session.insert_id_cell(),
        context.session.cancel_flag(),
    );
    let provider = StatementContext::new(&lowered.tables, &options, cell, cancel);
    let texts = Texts::of(
        context.session.collation(),
        context.session.truncated_texts(),
    );
    let texts = texts
        .on_day(split_datetime(lower::local_now(context.session)).0)
        .of_parameters(context.session.has_parameters())
        .refusing_zero_dates(context.session.refuses_zero_dates());
    let planner = SqlToRel::new_with_options(&provider, parser_options());
    let plan = planner
        .sql_statement_to_plan(Statement::Query(Box::new(lowered.query)))
        .and_then(|plan| {
            check_plan_size(&plan)?;
            Ok(plan)
        })
        .map_err(|error| planning_error(error, query))?;
    if any_rows == AnyRows::Refused && has_doubtful_groups(&plan) {
        return planned(query, context, AnyRows::Determined);
    }
    let plan = Ok(plan)
        .and_then(|plan| match any_rows {
            AnyRows::Refused => check_outer_columns(&plan).map(|()| plan),
            any_rows => with_any_rows(plan, any_rows),
        })
        .and_then(mark_multisets)
        // GROUPING() names group expressions, which typing changes. What it becomes hides the number of the group from
        // all but the groups.
        .and_then(|plan| ResolveGroupingFunction::new().analyze(plan, &options))
        .and_then(in_order_of_groups)
        .and_then(|plan| resolve_plan(plan, &texts))
        .and_then(number_equal_rows)
        .map_err(|error| planning_error(error, query))?;
    let headers = headers(&plan, &lowered.headers, &lowered.tables);
    Ok(LoweredQuery {
        plan,
        headers,
        parameter_count: lowered.parameter_count,
        locking: lowered.locking,
        hint_warnings: lowered.hint_warnings,
    })
}

/// True where a plan groups rows whose schema may say too much of keys. SqlToRel groups by what it takes for determined
/// by the group columns as well, which would divide groups then. With a mark behind the columns that the query groups
/// by, what it adds is dropped ([`with_any_rows`]).
fn has_doubtful_groups(plan: &LogicalPlan) -> bool {
    let mut found = false;
    // Nothing fails here.
    let _ = plan.apply_with_subqueries(|node| {
        found |= match node {
            LogicalPlan::Aggregate(aggregate) => has_doubtful_keys(&aggregate.input),
            _ => false,
        };
        Ok(match found {
            true => TreeNodeRecursion::Stop,
            false => TreeNodeRecursion::Continue,
        })
    });
    found
}

fn parser_options() -> ParserOptions {
    ParserOptions::new()
        // Names arrive exact.
        .with_enable_ident_normalization(false)
        .with_parse_float_as_decimal(true)
        .with_default_null_ordering(NullOrdering::NullsMin)
}

/// Headers of the result: the items' own, and for what a wildcard brought the columns' names.
fn headers(plan: &LogicalPlan, items: &[Option<String>], tables: &[TableReference]) -> Vec<Header> {
    let schema = plan.schema();
    let from_wildcards = schema.fields().len() + items.iter().filter(|item| item.is_none()).count();
    let from_wildcards = from_wildcards.saturating_sub(items.len());
    let wildcards = items.iter().filter(|item| item.is_none()).count();
    let origins = origins(plan);
    let mut names: Vec<Option<String>> = Vec::with_capacity(schema.fields().len());
    for item in items {
        match item {
            Some(header) => names.push(Some(header.clone())),
            // Of a single wildcard the columns are known; of several, the names of the columns decide.
            None if wildcards == 1 => names.extend(std::iter::repeat_n(None, from_wildcards)),
            None => {}
        }
    }
    if names.len() != schema.fields().len() {
        names = vec![None; schema.fields().len()];
    }
    schema
        .fields()
        .iter()
        .zip(names)
        .zip(origins)
        .map(|((field, name), origin)| {
            let own_name = field.name().split(HIDDEN_SUFFIX).next().unwrap_or_default();
            let name = name.unwrap_or_else(|| own_name.to_string());
            let Some(column) = origin else {
                return Header {
                    name,
                    ..Header::default()
                };
            };
            let alias = column
                .relation
                .as_ref()
                .map(|relation| relation.table().to_string())
                .unwrap_or_default();
            let table = tables.iter().find(|table| table.alias == alias);
            Header {
                name,
                org_name: column.name.clone(),
                org_table: table.map(|table| table.table.clone()).unwrap_or_default(),
                database: table
                    .map(|table| table.database.clone())
                    .unwrap_or_default(),
                table: alias,
            }
        })
        .collect()
}

/// For each column of the result, the column of a table that it shows unchanged, if it is that.
fn origins(plan: &LogicalPlan) -> Vec<Option<Column>> {
    match plan {
        LogicalPlan::Projection(projection) => {
            let below = origins(&projection.input);
            let schema = projection.input.schema();
            let origin = |expr: &Expr| match expr {
                Expr::Column(column) => below.get(schema.maybe_index_of_column(column)?)?.clone(),
                Expr::Alias(alias) => match alias.expr.as_ref() {
                    Expr::Column(column) => {
                        below.get(schema.maybe_index_of_column(column)?)?.clone()
                    }
                    _ => None,
                },
                _ => None,
            };
            projection.expr.iter().map(origin).collect()
        }
        LogicalPlan::Sort(_)
        | LogicalPlan::Limit(_)
        | LogicalPlan::Filter(_)
        | LogicalPlan::Distinct(_) => plan
            .inputs()
            .first()
            .map(|input| origins(input))
            .unwrap_or_default(),
        // Whatever is qualified here is a column of a table, or of a derived one.
        _ => plan
            .schema()
            .columns()
            .into_iter()
            .map(|column| column.relation.is_some().then_some(column))
            .collect(),
    }
}

/// DataFusion's errors of planning as MySQL's.
fn planning_error(error: DataFusionError, query: &Query) -> SqlError {
    // Whatever has gone wrong then.
    if cancel::is_statement_cancelled() {
        return SqlError::query_interrupted();
    }
    if let Some(known) = EvaluationError::find(&error) {
        return SqlError::from(known);
    }
    let mut source = &error;
    loop {
        source = match source {
            DataFusionError::Context(_, inner) | DataFusionError::Diagnostic(_, inner) => inner,
            DataFusionError::Collection(errors) if !errors.is_empty() => &errors[0],
            DataFusionError::SchemaError(schema_error, _) => {
                return match schema_error.as_ref() {
                    SchemaError::FieldNotFound { field, .. } => {
                        let name = column_text(field);
                        SqlError::bad_field(&name, clause_of(query, &field.name))
                    }
                    SchemaError::AmbiguousReference { field } => SqlError::non_unique_column(
                        &column_text(field),
                        clause_of(query, &field.name),
                    ),
                    SchemaError::DuplicateUnqualifiedField { name } => {
                        SqlError::duplicate_field_name(name)
                    }
                    SchemaError::DuplicateQualifiedField { name, .. } => {
                        SqlError::duplicate_field_name(name)
                    }
                };
            }
            DataFusionError::Plan(text) => return plan_error(text),
            DataFusionError::NotImplemented(text) => return SqlError::not_supported_yet(text),
            _ => break,
        };
    }
    SqlError::unknown(error.strip_backtrace())
}

fn column_text(column: &Column) -> String {
    match &column.relation {
        Some(relation) => format!("{}.{}", relation.table(), column.name),
        None => column.name.clone(),
    }
}

/// Errors that DataFusion gives as text only.
fn plan_error(text: &str) -> SqlError {
    if text.contains("must be in GROUP BY or an aggregate function")
        || text.contains("must appear in the GROUP BY clause")
    {
        // `column "t.k" must appear in ...`, or `t.k must be in ...`.
        let quoted = text
            .split_once("column \"")
            .and_then(|(_, rest)| rest.split_once('"'));
        let column = match quoted.or_else(|| text.split_once(" must be in GROUP BY")) {
            Some((column, _)) => column,
            None => "?",
        };
        return SqlError::not_in_group_by(column);
    }
    let argument = text.strip_prefix("Argument ").and_then(|rest| {
        let (argument, _) = rest.split_once(" to grouping function is not in grouping columns")?;
        Some(argument)
    });
    if argument.is_some() {
        let message = "Argument #0 of GROUPING function is not in GROUP BY";
        return SqlError::new(codes::FIELD_IN_GROUPING_NOT_GROUP_BY, message);
    }
    if text.starts_with("For SELECT DISTINCT, ORDER BY expressions ") {
        return SqlError::new(
            codes::FIELD_IN_ORDER_NOT_SELECT,
            "Expression of ORDER BY clause is not in SELECT list; this is incompatible with DISTINCT",
        );
    }
    for (told, clause) in [
        ("Cannot find column with position ", "group statement"),
        ("Order by column out of bounds, specified: ", "order clause"),
    ] {
        let position = text.split_once(told).map(|(_, rest)| rest);
        let position = position.and_then(|rest| rest.split([' ', ',']).next());
        if let Some(position) = position {
            return SqlError::bad_field(position, clause);
        }
    }
    if text.contains("Order by index starts at 1") {
        return SqlError::bad_field("0", "order clause");
    }
    if text.contains("should only return one column")
        || text.contains("must return exactly one column")
    {
        return SqlError::new(codes::OPERAND_COLUMNS, "Operand should contain 1 column(s)");
    }
    if text.contains("names given as column alias") {
        return SqlError::new(
            codes::VIEW_WRONG_LIST,
            "In definition of view, derived table or common table expression, SELECT list and column names list have \
             different column counts",
        );
    }
    if text.contains("have different number of columns") || text.contains("same number of columns")
    {
        return SqlError::new(
            codes::WRONG_NUMBER_OF_COLUMNS_IN_SELECT,
            "The used SELECT statements have a different number of columns",
        );
    }
    if text.contains("* with no tables specified") {
        return SqlError::new(codes::NO_TABLES_USED, "No tables used");
    }
    if let Some(table) = text.strip_prefix("Invalid qualifier ") {
        return SqlError::bad_table(table);
    }
    if text.starts_with("RANGE requires exactly one ORDER BY column") {
        return SqlError::new(
            codes::WINDOW_RANGE_FRAME_ORDER_TYPE,
            "Window '<unnamed window>' with RANGE N PRECEDING/FOLLOWING frame requires exactly one ORDER BY expression, of numeric or temporal type",
        );
    }
    SqlError::unknown(text)
}

/// The clause in which a column name occurs first, as MySQL's messages call it.
fn clause_of(query: &Query, column: &str) -> &'static str {
    let mut body = query.body.as_ref();
    while let SetExpr::SetOperation { left, .. } = body {
        body = left;
    }
    let SetExpr::Select(select) = body else {
        return "field list";
    };
    let mentions = |text: String| {
        text.to_lowercase()
            .split(|c: char| !(c.is_alphanumeric() || c == '_' || c == '$'))
            .any(|word| word == column.to_lowercase())
    };
    if select
        .projection
        .iter()
        .any(|item| mentions(item.to_string()))
    {
        "field list"
    } else if select.from.iter().any(|table| mentions(table.to_string())) {
        "on clause"
    } else if select
        .selection
        .as_ref()
        .is_some_and(|condition| mentions(condition.to_string()))
    {
        "where clause"
    } else if mentions(select.group_by.to_string()) {
        "group statement"
    } else if select
        .having
        .as_ref()
        .is_some_and(|condition| mentions(condition.to_string()))
    {
        "having clause"
    } else if query
        .order_by
        .as_ref()
        .is_some_and(|order| mentions(order.to_string()))
    {
        "order clause"
    } else {
        "field list"
    }
}
