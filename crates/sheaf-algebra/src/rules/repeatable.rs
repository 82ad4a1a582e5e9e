//! What a tree has to be to be computed twice, and the same tree such that it is.
//!
//! A tree may show any of several values: one of the texts that are equal in a group, the value of any row, the first
//! rows of no order. A second copy may show another one. [`Unnesting::repeatable`] makes it one in particular:
//!
//! ```text
//!   group by s of B       group by key(s): s := first s by its bytes, of B
//!   max(s)                first s by its key, backwards, and its bytes
//!   limit n of B          limit n of (sort by everything of B)
//! ```
//!
//! A sum of doubles depends on the order in which it is made, and so do windows: they stay what they are.

use std::sync::Arc;

use datafusion_common::Result;
use sheaf_exec::WorkTableSource;
use sheaf_exec::functions::SqlType;

use super::unnest::{Unnesting, ordered_input};
use crate::column::ColumnId;
use crate::relation::{Group, Item, Limit, Operator, Relation, SortKey};
use crate::scalar::{Aggregate, Scalar};

/// Whether a tree has the same rows each time that it is computed.
pub(super) fn is_repeatable(relation: &Relation) -> bool {
    let mut is_volatile = false;
    relation.for_each_scalar(&mut |scalar| is_volatile |= scalar.is_volatile());
    let is_repeatable_here = match relation.operator() {
        Operator::Limit(_) | Operator::Window(_) => false,
        // The rows of a round are read once.
        Operator::Scan(scan) => scan.source.downcast_ref::<WorkTableSource>().is_none(),
        Operator::Group(group) => group.carried.is_empty() && group.aggregates.iter().all(is_exact),
        _ => true,
    };
    is_repeatable_here && !is_volatile && relation.inputs().into_iter().all(is_repeatable)
}

/// Whether an aggregate does not depend on the order of rows.
pub(super) fn is_exact((_, aggregate): &(ColumnId, Aggregate)) -> bool {
    let is_of_any_row = matches!(
        aggregate.name(),
        "any_value" | "first_value" | "$group_concat"
    );
    !is_of_any_row
        && !SqlType::of(aggregate.field()).is_float()
        && !SqlType::of(aggregate.field()).is_text()
}

impl Unnesting<'_> {
    /// Whether there are groups by texts: they show any of those that are equal.
    pub(super) fn shows_any_text(&self, relation: &Relation) -> bool {
        let here = match relation.operator() {
            Operator::Group(group) => group.keys.iter().any(|key| self.is_text(*key)),
            _ => false,
        };
        here || relation
            .inputs()
            .into_iter()
            .any(|input| self.shows_any_text(input))
    }

    fn is_text(&self, column: ColumnId) -> bool {
        SqlType::of(&self.columns.get(column).field).is_text()
    }

    /// The same rows, but that they are the same each time; `None` where there is no way to that.
    pub(super) fn repeatable(&mut self, relation: Relation) -> Result<Option<Relation>> {
        let mut is_volatile = false;
        relation
            .operator()
            .for_each_scalar(&mut |scalar| is_volatile |= scalar.is_volatile());
        if is_volatile {
            return Ok(None);
        }
        let mut result = Ok(true);
        let relation = relation.map_inputs(&mut |input| match self.repeatable(input) {
            Ok(Some(input)) => input,
            Ok(None) => {
                result = match &result {
                    Ok(_) => Ok(false),
                    Err(_) => return Relation::unit(),
                };
                Relation::unit()
            }
            Err(error) => {
                result = Err(error);
                Relation::unit()
            }
        });
        if !result? {
            return Ok(None);
        }
        Ok(match relation.into_operator() {
            Operator::Scan(scan) if scan.source.downcast_ref::<WorkTableSource>().is_some() => None,
            Operator::Window(_) | Operator::Recursive(_) => None,
            Operator::Limit(limit) => Some(self.repeatable_limit(limit)?),
            Operator::Group(group) => self.repeatable_group(group)?,
            operator => Some(operator.into()),
        })
    }

    /// Rows that are equal in everything are the same.
    fn repeatable_limit(&mut self, limit: Limit) -> Result<Relation> {
        let columns = limit.input.columns().to_vec();
        let (input, mut order) = ordered_input(*limit.input);
        let rest: Vec<ColumnId> = input.columns().to_vec();
        for column in rest {
            let value = self.passed_on(column).value;
            for value in self.exact_keys(value)? {
                let descends = false;
                order.push(SortKey { value, descends });
            }
        }
        let shown = columns.into_iter().map(|id| self.passed_on(id)).collect();
        let sorted = self.sorted_by_values(input, order);
        Ok(sorted.project(shown).limit(limit.skip, limit.fetch))
    }

    /// The rows in an order of values that are computed for it.
    fn sorted_by_values(&mut self, input: Relation, order: Vec<SortKey>) -> Relation {
        let mut items: Vec<Item> = input
            .columns()
            .iter()
            .map(|id| self.passed_on(*id))
            .collect();
        let mut keys: Vec<SortKey> = Vec::with_capacity(order.len());
        for key in order {
            if keys.iter().any(|known| known.value == key.value) {
                continue;
            }
            if key.value.as_column().is_some() {
                keys.push(key);
                continue;
            }
            let field = Arc::clone(key.value.field());
            let column = self.columns.add_computed("order", Arc::clone(&field));
            items.push(Item {
                column,
                value: key.value,
            });
            let value = Scalar::column(column, field);
            keys.push(SortKey { value, ..key });
        }
        input.project(items).sort(keys)
    }

    /// What tells values apart that are not the same.
    fn exact_keys(&self, value: Scalar) -> Result<Vec<Scalar>> {
        Ok(match value.sql_type().is_text() {
            true => vec![self.typing.call("$cast_binary", vec![value])?],
            false => vec![value],
        })
    }

    fn repeatable_group(&mut self, group: Group) -> Result<Option<Relation>> {
        let has_texts = group.keys.iter().any(|key| self.is_text(*key));
        let is_exact_already =
            !has_texts && group.carried.is_empty() && group.aggregates.iter().all(is_exact);
        if is_exact_already {
            return Ok(Some(Operator::Group(group).into()));
        }
        if group.rollup.is_some() {
            return Ok(None);
        }
        // What is shown, below and above the group.
        let mut below: Vec<Item> = Vec::new();
        let mut shown: Vec<Item> = Vec::new();
        let mut keys: Vec<ColumnId> = Vec::new();
        let mut aggregates: Vec<(ColumnId, Aggregate)> = Vec::new();
        let passed_on = group.input.columns().iter();
        below.extend(passed_on.map(|id| self.passed_on(*id)));
        for key in &group.keys {
            let value = self.passed_on(*key).value;
            if !self.is_text(*key) {
                keys.push(*key);
                shown.push(self.passed_on(*key));
                continue;
            }
            let by = self.typing.sort_key(value.clone())?;
            let column = self.columns.add_computed("key", Arc::clone(by.field()));
            below.push(Item { column, value: by });
            keys.push(column);
            let order = self.exact_keys(value.clone())?;
            let first = self.first_value(value, order, &mut aggregates)?;
            shown.push(Item {
                column: *key,
                value: first,
            });
        }
        for carried in &group.carried {
            let value = self.passed_on(*carried).value;
            let order = self.exact_keys(value.clone())?;
            let first = self.first_value(value, order, &mut aggregates)?;
            shown.push(Item {
                column: *carried,
                value: first,
            });
        }
        for (id, aggregate) in group.aggregates {
            let is_any = matches!(aggregate.name(), "any_value" | "first_value");
            let is_extreme = matches!(aggregate.name(), "min" | "max");
            let is_text = SqlType::of(aggregate.field()).is_text();
            let [argument] = aggregate.arguments() else {
                return Ok(None);
            };
            let is_same_type = aggregate.field().data_type() == argument.field().data_type()
                && aggregate.field().metadata() == argument.field().metadata();
            let argument = argument.clone();
            let mut order = Vec::new();
            if is_exact(&(id, aggregate.clone())) || is_extreme && !is_text {
                aggregates.push((id, aggregate));
                shown.push(self.passed_on(id));
                continue;
            } else if is_any && is_same_type {
                order.extend(aggregate.order_by().iter().cloned());
            } else if is_extreme && is_same_type {
                let descends = aggregate.name() == "max";
                order.push((argument.clone().is_null(), false));
                order.push((self.typing.extreme_key(argument.clone())?, descends));
            } else {
                return Ok(None);
            }
            let exact = self.exact_keys(argument.clone())?.into_iter();
            order.extend(exact.map(|key| (key, false)));
            let value = self.first_of(argument, order, &mut aggregates)?;
            shown.push(Item { column: id, value });
        }
        let input = match below.iter().all(Item::is_passed_on) {
            true => *group.input,
            false => group.input.project(below),
        };
        let grouped = input.group(keys, Vec::new(), aggregates);
        Ok(Some(grouped.project(shown)))
    }

    fn first_value(
        &mut self,
        value: Scalar,
        order: Vec<Scalar>,
        aggregates: &mut Vec<(ColumnId, Aggregate)>,
    ) -> Result<Scalar> {
        let order = order.into_iter().map(|key| (key, false)).collect();
        self.first_of(value, order, aggregates)
    }

    /// An aggregate more: the first value in an order.
    fn first_of(
        &mut self,
        value: Scalar,
        order: Vec<(Scalar, bool)>,
        aggregates: &mut Vec<(ColumnId, Aggregate)>,
    ) -> Result<Scalar> {
        let mut order_by: Vec<(Scalar, bool)> = Vec::with_capacity(order.len());
        for (key, descends) in order {
            if order_by.iter().all(|(known, _)| *known != key) {
                order_by.push((key, descends));
            }
        }
        let field = value.field().as_ref().clone().with_nullable(true);
        let (id, aggregate) = self.add_aggregate("first_value", value)?;
        aggregates.push((id, aggregate.ordered_by(order_by)));
        Ok(Scalar::column(id, Arc::new(field)))
    }
}
