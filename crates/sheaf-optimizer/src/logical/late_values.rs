//! What is only shown is computed of the rows that a LIMIT leaves.
//!
//! ```text
//!   Sort k, limit 10                       -->     Projection k, 1 / b AS v
//!     Projection k, 1 / b AS v                       Sort k, limit 10
//!                                                      Projection k, b AS $late_1
//! ```
//!
//! Of the rows that no client sees nobody may hear either: no warning of a division by zero, and no error of a change
//! that stores the values. So functions that tell something are always computed late. Others are where that saves work:
//! few rows are left, and the sort gets no texts that it would not have had. Long columns are none, unless a
//! condition reads them anyway: they are read of the rows that are left ([`crate::physical::late_columns`]), and so is
//! what is computed of them.

use std::sync::Arc;

use datafusion_common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion_common::{Column, ExprSchema, HashMap, HashSet, Result};
use datafusion_expr::logical_plan::{Projection, Sort};
use datafusion_expr::{Expr, LogicalPlan};
use sheaf_exec::SheafTableSource;
use sheaf_exec::functions::closed::calls;
use sheaf_types::ColumnType;

/// More rows than these are computed by the workers below the sort.
const MOST_ROWS: usize = 10_000;

/// Rows that a sort leaves, at most, where long columns are read of these.
pub(crate) const MOST_READ_LATE: usize = 1_000;

/// Columns of texts and byte strings are long from so many bytes or characters on, or if they are TEXT or BLOB.
const LONG: u32 = 1_000;

/// Whether a column's values may be long.
pub(crate) fn may_be_long(ty: &ColumnType) -> bool {
    ty.long_bytes().is_some() || ty.declared_length() >= Some(LONG)
}

/// Moves projections from below sorts with a limit to above them.
pub(crate) fn compute_values_late(plan: LogicalPlan) -> Result<LogicalPlan> {
    let mut has_any = false;
    plan.apply_with_subqueries(|node| {
        has_any |= matches!(node, LogicalPlan::Sort(Sort { fetch: Some(_), input, .. })
            if matches!(input.as_ref(), LogicalPlan::Projection(_)));
        Ok(match has_any {
            true => TreeNodeRecursion::Stop,
            false => TreeNodeRecursion::Continue,
        })
    })?;
    if !has_any {
        return Ok(plan);
    }
    let rewritten = plan.transform_up_with_subqueries(|node| match node {
        LogicalPlan::Sort(sort) if sort.fetch.is_some() => with_late_values(sort),
        // What stood above the sort chooses from its columns.
        LogicalPlan::Projection(above) => Ok(match merged(&above)? {
            Some(merged) => Transformed::yes(LogicalPlan::Projection(merged)),
            None => Transformed::no(LogicalPlan::Projection(above)),
        }),
        other => Ok(Transformed::no(other)),
    })?;
    Ok(rewritten.data)
}

fn with_late_values(sort: Sort) -> Result<Transformed<LogicalPlan>> {
    let LogicalPlan::Projection(below) = sort.input.as_ref() else {
        return Ok(Transformed::no(LogicalPlan::Sort(sort)));
    };
    let mut keys = HashSet::new();
    for key in &sort.expr {
        keys.extend(key.expr.column_refs().into_iter().cloned());
    }
    // Columns of the projection's input that the sort gets anyway, by the name that it knows them by.
    let mut handed_on: HashMap<Column, Column> = HashMap::new();
    for (item, output) in below.expr.iter().zip(below.schema.columns()) {
        if let Some(column) = column_of(item) {
            handed_on.entry(column.clone()).or_insert(output);
        }
    }
    let few_rows = sort.fetch.is_some_and(|rows| rows <= MOST_ROWS);
    let mut early = Vec::with_capacity(below.expr.len());
    let mut late = Vec::with_capacity(below.expr.len());
    for (item, output) in below.expr.iter().zip(below.schema.columns()) {
        let is_late = !keys.contains(&output)
            && (item.is_volatile()
                || few_rows
                    && is_computed(item)
                    && !needs_texts(item, (below, sort.fetch), &handed_on)?)
            && !has_subquery(item)?;
        if !is_late {
            early.push(item.clone());
            late.push(Expr::Column(output));
            continue;
        }
        let value = item.clone().transform_up(|expr| {
            let Expr::Column(column) = expr else {
                return Ok(Transformed::no(expr));
            };
            let handed = match handed_on.get(&column) {
                Some(handed) => handed.clone(),
                None => {
                    let name = format!("$late_{}", handed_on.len());
                    let handed = Column::new_unqualified(name.as_str());
                    early.push(Expr::Column(column.clone()).alias(name));
                    handed_on.insert(column, handed.clone());
                    handed
                }
            };
            Ok(Transformed::yes(Expr::Column(handed)))
        })?;
        late.push(match value.data {
            alias @ Expr::Alias(_) => alias,
            value => value.alias_qualified(output.relation, output.name),
        });
    }
    if late.iter().all(|item| matches!(item, Expr::Column(_))) {
        return Ok(Transformed::no(LogicalPlan::Sort(sort)));
    }
    let early = Projection::try_new(early, Arc::clone(&below.input))?;
    let sort = Sort {
        input: Arc::new(LogicalPlan::Projection(early)),
        ..sort
    };
    let late = Projection::try_new(late, Arc::new(LogicalPlan::Sort(sort)))?;
    Ok(Transformed::yes(LogicalPlan::Projection(late)))
}

/// The column that an item hands on under a name of its own.
fn column_of(item: &Expr) -> Option<&Column> {
    match item {
        Expr::Column(column) => Some(column),
        Expr::Alias(alias) if alias.metadata.is_none() => column_of(&alias.expr),
        _ => None,
    }
}

fn is_computed(item: &Expr) -> bool {
    column_of(item).is_none() && !matches!(item, Expr::Literal(..))
}

/// Subqueries name columns of the rows around them by names that change here.
fn has_subquery(item: &Expr) -> Result<bool> {
    item.exists(|expr| Ok(matches!(expr, Expr::ScalarSubquery(_))))
}

/// Whether the sort would get texts that it does not get otherwise, for a value that is shorter.
fn needs_texts(
    item: &Expr,
    (below, fetch): (&Projection, Option<usize>),
    handed_on: &HashMap<Column, Column>,
) -> Result<bool> {
    let lengthens = calls(item, |function| function.growing);
    let input = below.input.schema();
    Ok(!lengthens
        && item.column_refs().into_iter().any(|column| {
            let is_fixed = input
                .field_from_column(column)
                .is_ok_and(|field| field.data_type().primitive_width().is_some());
            !is_fixed
                && !handed_on.contains_key(column)
                && !is_read_late(column, &below.input, fetch)
        }))
}

/// Whether a column's values are read of the rows that a sort leaves, and not before. What a condition reads is there
/// already: it would be read twice.
fn is_read_late(column: &Column, input: &LogicalPlan, fetch: Option<usize>) -> bool {
    match input {
        LogicalPlan::Filter(filter) => {
            !reads(&filter.predicate, column) && is_read_late(column, &filter.input, fetch)
        }
        LogicalPlan::TableScan(scan) => {
            let source = scan.source.downcast_ref::<SheafTableSource>();
            !scan.filters.iter().any(|filter| reads(filter, column))
                && fetch.is_some_and(|rows| rows <= MOST_READ_LATE)
                && source.is_some_and(|source| {
                    let definition = &source.table.definition;
                    let position = definition.position_in_plan(&column.name);
                    definition.overflow.is_some()
                        && position.is_some_and(|at| may_be_long(&definition.columns[at].ty))
                })
        }
        _ => false,
    }
}

/// Whether an expression over one table reads a column, however it is qualified.
fn reads(expr: &Expr, column: &Column) -> bool {
    let mut columns = expr.column_refs().into_iter();
    columns.any(|read| read.name == column.name)
}

/// `above`, which only names columns, and the projection below it as one.
fn merged(above: &Projection) -> Result<Option<Projection>> {
    // No value is computed twice.
    let mut named = HashSet::new();
    let only_names = above
        .expr
        .iter()
        .all(|item| column_of(item).is_some_and(|column| named.insert(column)));
    let (true, LogicalPlan::Projection(below)) = (only_names, above.input.as_ref()) else {
        return Ok(None);
    };
    if !matches!(below.input.as_ref(), LogicalPlan::Sort(_)) {
        return Ok(None);
    }
    let outputs = below.schema.columns();
    let items: HashMap<Column, &Expr> = outputs.into_iter().zip(below.expr.iter()).collect();
    let mut chosen = Vec::with_capacity(above.expr.len());
    for (item, output) in above.expr.iter().zip(above.schema.columns()) {
        let item = match column_of(item).and_then(|column| items.get(column)) {
            Some(item) => (*item).clone(),
            None => item.clone(),
        };
        let is_named = matches!(&item, Expr::Alias(alias)
            if alias.relation == output.relation && alias.name == output.name)
            || matches!(&item, Expr::Column(column) if *column == output);
        chosen.push(match is_named {
            true => item,
            false => item.alias_qualified(output.relation, output.name),
        });
    }
    Projection::try_new(chosen, Arc::clone(&below.input)).map(Some)
}
