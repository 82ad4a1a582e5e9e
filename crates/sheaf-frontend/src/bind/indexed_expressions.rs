//! Expressions that indexes have: those of generated columns, and key expressions.
//!
//! When a table is named that has such indexes, the expressions are bound over its columns, once for each purpose that
//! makes another expression of them. A rule of the algebra puts their columns in the places of equal expressions
//! ([`sheaf_algebra::rules::indexed_expressions`]).
//!
//! ```text
//!   t (a INT, KEY k ((a + 1)))     WHERE t.a + 1 = 5     ->     !hidden!0 = 5, by k
//! ```
//!
//! An expression is bound as it is kept: its literals compare by the default collation, whatever the session's is, and
//! the time zone is UTC, days and months have English names, and quotients and differences are those of the default
//! variables. So it is equal to an expression of the statement only if both mean the same.

use std::rc::Rc;
use std::sync::Arc;

use sheaf_algebra::Scalar;
use sheaf_algebra::rules::indexed_expressions::IndexedExpression;
use sheaf_algebra::scalar::ScalarKind;
use sheaf_exec::SheafTableSource;
use sheaf_exec::functions::types::declared_type;
use sheaf_exec::functions::{Length, SqlType, as_function};
use sheaf_exec::typing::Purpose;
use sheaf_table::{Column, GeneratedColumn};
use sheaf_types::Collation;
use sheaf_types::temporal::TimeZone;

use super::Binder;
use super::block::Block;
use super::scope::{Scope, ScopeColumn};
use crate::dialect::SheafDialect;
use crate::parser::parse_expression;
use crate::statement_text::StatementText;

impl Binder<'_> {
    /// Notes what indexes of a table have of expressions. `columns`: those of the table, in its order.
    pub(super) fn note_indexed_expressions(
        &mut self,
        source: &SheafTableSource,
        columns: &[ScopeColumn],
    ) {
        let definition = &source.table.definition;
        if !definition.has_generated_columns() || self.context.is_over_rows {
            return;
        }
        for (position, column) in definition.columns.iter().enumerate() {
            let Some(generated) = &column.generated else {
                continue;
            };
            let mut indexes = definition.indexes().filter(|index| source.uses(index));
            let has = |part: &sheaf_table::IndexPart| part.column == position;
            if !indexes.any(|index| index.parts.iter().any(has)) {
                continue;
            }
            let names = |column: &&ScopeColumn| generated.names(&column.name);
            let named: Vec<ScopeColumn> = columns.iter().filter(names).cloned().collect();
            let (Some(own), Some(table)) = (columns.get(position), named.first()) else {
                continue;
            };
            let scope = Scope::of_table(Arc::clone(&table.table), named.clone());
            let expressions = self.bound_as_kept(generated, &scope);
            if expressions.iter().any(|one| !holds_all(column, one)) {
                continue;
            }
            let field = Arc::clone(&own.field);
            let indexed = IndexedExpression::new(expressions, own.id, field);
            self.indexed_expressions.extend(indexed);
        }
    }

    /// The expression of a generated column for each purpose, over the columns that it names. Nothing, if it cannot be
    /// bound.
    fn bound_as_kept(&mut self, generated: &GeneratedColumn, scope: &Scope) -> Vec<Scalar> {
        let text = &generated.expression;
        let Ok(expression) = parse_expression(text, &SheafDialect::default()) else {
            return Vec::new();
        };
        // Nothing of what is around.
        let around = std::mem::replace(&mut self.text, Rc::new(StatementText::new(text.clone())));
        let blocks = std::mem::take(&mut self.blocks);
        let aggregates = std::mem::take(&mut self.open_aggregates);
        let is_chosen = std::mem::take(&mut self.is_chosen);
        let any_value = std::mem::take(&mut self.has_any_value);
        let is_kept = std::mem::replace(&mut self.binds_kept, true);
        let texts = self.texts.of_collation(Collation::default());
        let texts = texts.refusing_zero_dates(true).in_time_zone(TimeZone::UTC);
        let texts = self.texts_of_view.replace(Rc::new(texts));
        let noted = self.texts.noted_so_far();
        let mut bound: Vec<Scalar> = Vec::new();
        for purpose in [Purpose::Other, Purpose::ChangeCondition] {
            self.blocks.push(Block::new(scope.clone()));
            let one = self.with_purpose(purpose, |binder| binder.expression(&expression));
            self.blocks.clear();
            match one {
                Ok(one) if !bound.contains(&one) => bound.push(one),
                Ok(_) => {}
                Err(_) => {
                    bound.clear();
                    break;
                }
            }
        }
        self.texts.forget_since(noted);
        self.texts_of_view = texts;
        self.binds_kept = is_kept;
        self.has_any_value = any_value;
        self.is_chosen = is_chosen;
        self.open_aggregates = aggregates;
        self.blocks = blocks;
        self.text = around;
        bound
    }
}

/// Whether a column holds whatever its expression gives, but for whole numbers that are too large for it.
fn holds_all(column: &Column, expression: &Scalar) -> bool {
    if expression.is_nullable() && !column.nullable {
        return false;
    }
    match (&column.ty, column.ty.declared_length()) {
        _ if column.hidden => true,
        (ty, Some(length)) if ty.is_short_text() && ty.is_varying() => {
            longest_text(expression).is_some_and(|longest| longest <= length)
        }
        (ty, _) if ty.is_floating() => ty.float_digits().is_none() && !ty.is_unsigned(),
        (ty, _) if ty.decimal_digits().is_some() => !ty.is_unsigned(),
        // BIT and YEAR have fewer values than the numbers of their bytes.
        (ty, _) if ty.is_integer() => true,
        (ty, _) => ty.is_temporal() && !ty.follows_time_zone(),
    }
}

/// Characters of the longest text that an expression gives, as far as the [rows](Length) of its functions tell.
fn longest_text(expression: &Scalar) -> Option<u32> {
    match expression.kind() {
        ScalarKind::Column(_) => {
            let ty = declared_type(expression.field())?;
            ty.declared_length().filter(|_| ty.is_short_text())
        }
        ScalarKind::Literal(value) => {
            let text = value.try_as_str()?.unwrap_or_default();
            u32::try_from(text.chars().count()).ok()
        }
        ScalarKind::Call {
            function,
            arguments,
        } if matches!(expression.sql_type(), SqlType::Text { .. }) => {
            match as_function(function)?.length {
                Length::OfAll => arguments.iter().try_fold(0u32, |sum, argument| {
                    sum.checked_add(longest_text(argument)?)
                }),
                Length::OfOperand(operand) => longest_text(arguments.get(operand)?),
                Length::CutTo(_) | Length::Part => longest_text(arguments.first()?),
                Length::Fixed(length) => Some(length),
                Length::Own
                | Length::Int
                | Length::OfLongest(_)
                | Length::FilledTo(_)
                | Length::Repeated(_) => None,
            }
        }
        _ => None,
    }
}
