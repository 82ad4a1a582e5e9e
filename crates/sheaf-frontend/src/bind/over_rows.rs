//! Expressions over rows at hand: a list and a condition, and no query around them.
//!
//! They mean what they mean in a query over tables of these columns, so they are bound in a block of one. But no
//! operators are made of it: what comes out are the typed expressions, and the columns are those of the rows, one kind
//! behind the other.

use std::sync::Arc;

use arrow::datatypes::{FieldRef, SchemaRef};
use sheaf_algebra::column::Origin;
use sheaf_algebra::{Column, ColumnId, Scalar};
use sheaf_exec::typing::Purpose;
use sqlparser::ast::{Expr, SelectItem};
use sqlparser::tokenizer::Location;

use super::block::Block;
use super::grouped::any_values_of_items;
use super::scope::{Scope, ScopeColumn, TableName};
use super::user_variable::Variables;
use super::{Binder, Bound, texts_of};
use crate::error::SqlError;
use crate::query::{Header, Listed, QueryContext};
use crate::statement_text::StatementText;

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
    let text = StatementText::new(context.sql);
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
        Some(condition) => {
            let condition = binder.condition(condition)?;
            Some(match texts.are_refused() {
                true => binder.typing().refused_texts(condition)?,
                false => condition,
            })
        }
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
        return Err(SqlError::not_supported_yet(
            "a subquery or an aggregate in this place",
        ));
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

impl Binder<'_> {
    /// The names of the columns of all kinds of rows.
    fn scope_of_rows(&mut self, kinds: &[(&str, SchemaRef)]) -> Bound<Scope> {
        let mut all = Scope::default();
        for (reference, (name, schema)) in kinds.iter().enumerate() {
            let table = Arc::new(TableName {
                alias: name.to_string(),
                table: name.to_string(),
                database: String::new(),
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
                table: Arc::clone(&table),
            });
            let columns = columns.collect();
            all.append(Scope::of_table(table, columns))?;
        }
        Ok(all)
    }
}
