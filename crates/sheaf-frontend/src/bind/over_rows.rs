//! Expressions over rows at hand: a list and a condition, and no query around them. So are queries that are little more
//! than that, over one row of the FROM or over groups of them.
//!
//! A list means what it means in a query over tables of these columns, so it is bound in a block of one. But no
//! operators are made of it: what comes out are the typed expressions, and the columns are those of the rows, one kind
//! behind the other.

use std::rc::Rc;
use std::sync::Arc;

use arrow::datatypes::{FieldRef, SchemaRef};
use datafusion_common::ScalarValue;
use sheaf_algebra::column::Origin;
use sheaf_algebra::relation::{Item, JoinKind, SortKey};
use sheaf_algebra::scalar::Aggregate;
use sheaf_algebra::{Column, ColumnId, Operator, Relation, Scalar};
use sheaf_exec::typing::Purpose;
use sqlparser::ast::{Expr, Query, SelectItem};
use sqlparser::tokenizer::Location;

use super::block::Block;
use super::grouped::any_values_of_items;
use super::scope::{Scope, ScopeColumn, TableName};
use super::user_variable::Variables;
use super::{Binder, Bound, Output, texts_of};
use crate::error::SqlError;
use crate::query::{Header, Listed, QueryContext};
use crate::statement_text::StatementText;

/// What the name of a column of rows begins with that is the value of a subquery. No identifier is written like this.
pub const VALUE_OF_SUBQUERY: &str = "\0s";

/// One item of a list.
pub struct BoundExpression {
    pub value: Scalar,
    pub header: Header,
}

/// See the module's comment.
pub struct OverRows {
    pub items: Vec<BoundExpression>,
    pub condition: Option<Scalar>,
}

impl BoundExpression {
    /// How the result is described: its type, under its name.
    pub fn field(&self) -> FieldRef {
        let field = self.value.field().as_ref().clone();
        Arc::new(field.with_name(&self.header.name))
    }
}

/// The place of a column among those of all kinds of rows.
pub fn position_of(column: ColumnId) -> usize {
    column.0 as usize
}

/// Binds a list and a condition over kinds of rows, each by the name that its columns are qualified with.
///
/// # Errors
/// As for a query; 1235 for what is not computed from one row: subqueries, aggregates, windows, and assignments of
/// user variables.
pub fn over_rows(
    mut items: Vec<SelectItem>,
    condition: Option<&Expr>,
    kinds: &[(&str, SchemaRef)],
    context: &QueryContext<'_>,
) -> Bound<OverRows> {
    let text = Rc::new(StatementText::new(context.sql));
    let texts = texts_of(context);
    let variables = Variables::of(context);
    let mut binder = Binder::new(context, (&text, &texts), variables);
    if binder.has_any_value {
        any_values_of_items(&mut items);
    }
    let scope = binder.scope_of_rows(kinds)?;
    let mut block = Block::new(scope);
    block.lists_values = context.listed != Listed::Items;
    binder.blocks.push(block);
    let condition = match condition {
        Some(condition) => Some(binder.condition_of_found_rows(condition)?),
        None => None,
    };
    // Texts of a list that has no SELECT in the statement begin with it.
    let start = Location::new(1, 1);
    let items = binder.with_purpose(Purpose::Shown, |this| this.items(&items, start))?;
    let block = binder.block()?;
    let is_of_rows = block.pending.is_empty()
        && block.pending_in_aggregates.is_empty()
        && block.aggregates.is_empty()
        && block.functions.is_empty();
    let mut scalars = items.iter().map(|item| &item.value).chain(&condition);
    if !is_of_rows || scalars.any(Scalar::is_of_variables) {
        return Err(not_over_rows());
    }
    let items = items.into_iter().map(|item| BoundExpression {
        value: item.value,
        header: item.header,
    });
    Ok(OverRows {
        items: items.collect(),
        condition,
    })
}

/// 1235.
pub fn not_over_rows() -> SqlError {
    SqlError::not_supported_yet("a subquery or an aggregate in this place")
}

impl Binder<'_> {
    /// The names of the columns of all kinds of rows.
    fn scope_of_rows(&mut self, kinds: &[(&str, SchemaRef)]) -> Bound<Scope> {
        let mut all = Scope::default();
        for (reference, (name, schema)) in kinds.iter().enumerate() {
            let table = Arc::new(TableName {
                alias: name.to_string(),
                table: name.to_string(),
                ..TableName::default()
            });
            let fields = schema.fields().iter().enumerate();
            let columns = fields.map(|(position, field)| ScopeColumn {
                id: self.columns.add(Column {
                    field: Arc::clone(field),
                    name: field.name().clone(),
                    origin: Some(Origin {
                        reference: reference as u32,
                        position: position as u32,
                    }),
                }),
                name: field.name().clone(),
                field: Arc::clone(field),
                may_be_missing: false,
                invisible: false,
                table: Arc::clone(&table),
            });
            let columns = columns.collect();
            all.append(Scope::of_table(table, columns))?;
        }
        Ok(all)
    }
}

/// A query that computes each of its rows from one row of its FROM, or from a group: a list over a condition, in an
/// order.
pub struct RowQuery {
    /// The columns of the FROM.
    pub columns: Vec<FromColumn>,
    pub condition: Option<Scalar>,
    pub groups: Option<Groups>,
    /// What is computed: what is shown, and what only orders.
    pub list: Vec<Item>,
    /// Over the list; they compare as the rows do.
    pub order: Vec<SortKey>,
    /// What is shown, with its place in the list.
    pub shown: Vec<(usize, Header, FieldRef)>,
}

/// Groups of rows that meet a condition.
pub struct Groups {
    /// Columns that are computed of rows first.
    pub computed: Vec<Item>,
    /// Columns with what is equal in a group: they are those of its first row.
    pub keys: Vec<(ColumnId, Scalar)>,
    /// Others that are those of its first row.
    pub carried: Vec<ColumnId>,
    pub aggregates: Vec<(ColumnId, Aggregate)>,
    /// HAVING.
    pub condition: Option<Scalar>,
}

/// A column of a FROM.
pub struct FromColumn {
    pub id: ColumnId,
    /// What columns of its table are qualified with.
    pub table: String,
    /// It may be NULL where an outer join has found no row.
    pub field: FieldRef,
}

/// Binds a query that has no LIMIT; `None` if there is more to it, or if its FROM has queries.
///
/// # Errors
/// As for any query.
pub fn row_query(query: &Query, context: &QueryContext<'_>) -> Bound<Option<RowQuery>> {
    let text = Rc::new(StatementText::new(context.sql));
    let texts = texts_of(context);
    let mut binder = Binder::new(context, (&text, &texts), Variables::of(context));
    let (relation, outputs) = binder.query(query)?;
    binder.as_row_query(relation, outputs)
}

impl Binder<'_> {
    fn as_row_query(&self, relation: Relation, outputs: Vec<Output>) -> Bound<Option<RowQuery>> {
        let mut operator = relation.into_operator();
        // What only orders is left out in the end.
        if let Operator::Project(project) = &operator
            && let Operator::Sort(_) = project.input.operator()
            && project.items.iter().all(Item::is_passed_on)
            && let Operator::Project(project) = operator
        {
            operator = project.input.into_operator();
        }
        let mut order = Vec::new();
        if let Operator::Sort(sort) = operator {
            for key in sort.keys {
                order.push(SortKey {
                    value: self.typing().sort_key(key.value)?,
                    descends: key.descends,
                });
            }
            operator = sort.input.into_operator();
        }
        let Operator::Project(project) = operator else {
            return Ok(None);
        };
        let list = project.items;
        let (mut condition, mut rows) = filtered(*project.input);
        let mut groups = None;
        if matches!(rows.operator(), Operator::Group(_)) {
            let Operator::Group(group) = rows.into_operator() else {
                return Ok(None);
            };
            if group.rollup.is_some() {
                return Ok(None);
            }
            let mut computed = Vec::new();
            let input = match group.input.into_operator() {
                Operator::Project(project) if project.derived.is_none() => {
                    computed = project.items;
                    *project.input
                }
                input => input.into(),
            };
            let mut keys = Vec::with_capacity(group.keys.len());
            for id in group.keys {
                let field = Arc::clone(&self.columns.get(id).field);
                let key = self.typing().group_key(Scalar::column(id, field))?;
                keys.push((id, key));
            }
            groups = Some(Groups {
                computed,
                keys,
                carried: group.carried,
                aggregates: group.aggregates,
                condition,
            });
            (condition, rows) = filtered(input);
        }
        let mut columns = Vec::new();
        let place = |id: ColumnId| list.iter().position(|item| item.column == id);
        let shown = outputs
            .into_iter()
            .map(|output| Some((place(output.id)?, output.header, output.field)));
        let shown: Option<Vec<_>> = shown.collect();
        let of_groups = groups.iter().flat_map(|groups| {
            let computed = groups.computed.iter().map(|item| &item.value);
            computed.chain(&groups.condition)
        });
        let values = list.iter().map(|item| &item.value).chain(&condition);
        let mut values = values.chain(of_groups);
        let is_plain = project.derived.is_none()
            && !values.any(Scalar::is_of_variables)
            && add_columns(&rows, false, &mut columns);
        let Some(shown) = shown.filter(|_| is_plain) else {
            return Ok(None);
        };
        Ok(Some(RowQuery {
            columns,
            condition,
            groups,
            list,
            order,
            shown,
        }))
    }
}

/// What a filter lets through, and its condition, if the rows are those of one.
fn filtered(rows: Relation) -> (Option<Scalar>, Relation) {
    match rows.into_operator() {
        Operator::Filter(filter) => (Some(filter.condition), *filter.input),
        rows => (None, rows.into()),
    }
}

/// Adds the columns of a FROM whose rows are found already; false if it is more than tables. `is_inner`: an outer join
/// may miss its rows.
fn add_columns(rows: &Relation, is_inner: bool, columns: &mut Vec<FromColumn>) -> bool {
    match rows.operator() {
        Operator::Scan(scan) => {
            let schema = scan.source.schema();
            let fields = scan.columns.iter().zip(schema.fields());
            columns.extend(fields.map(|(id, field)| FromColumn {
                id: *id,
                table: scan.name.clone(),
                field: match is_inner && !field.is_nullable() {
                    true => Arc::new(field.as_ref().clone().with_nullable(true)),
                    false => Arc::clone(field),
                },
            }));
            true
        }
        Operator::Join(join) => {
            let is_true = |condition: &Scalar| {
                condition.as_literal() == Some(&ScalarValue::Boolean(Some(true)))
            };
            let finds_all = join.condition.as_ref().is_none_or(is_true);
            let is_outer = join.kind == JoinKind::LeftOuter;
            (is_outer || join.kind == JoinKind::Inner)
                && finds_all
                && add_columns(&join.left, is_inner, columns)
                && add_columns(&join.right, is_inner || is_outer, columns)
        }
        Operator::Values(values) => values.columns.is_empty() && values.rows.len() == 1,
        _ => false,
    }
}
