//! A subquery that is a value: of a group without keys, of one row, or of a row by itself.
//!
//! It is joined below what it computes of its aggregates, and its rows are counted where there may be several.

use std::collections::HashMap;
use std::sync::Arc;

use datafusion_common::{Result, ScalarValue};
use datafusion_expr::Expr;
use sheaf_exec::functions::control::ONLY_ROW;
use sheaf_exec::typing::constant_value;

use super::Unnesting;
use super::found_by_index::{found_by_index, has_limit, is_found_by_key};
use super::pull::{Pulled, inner_columns, ordered_input, takes};
use crate::column::ColumnId;
use crate::column_set::ColumnSet;
use crate::relation::{
    DependentJoin, Filter, Group, Item, JoinKind, Limit, Operator, Project, Relation, SortKey,
};
use crate::scalar::{Scalar, ScalarKind};

impl Unnesting<'_> {
    /// A subquery that is a value, and takes something from the left side.
    pub(super) fn single(
        &mut self,
        join: DependentJoin,
        value: ColumnId,
        outer: &ColumnSet,
    ) -> Result<Relation> {
        let kept = join.clone();
        let right = self.of_one_row(*join.right, value)?;
        let mut shown: Vec<Item> = join
            .left
            .columns()
            .iter()
            .map(|id| self.passed_on(*id))
            .collect();
        // What the one row is computed from, innermost first.
        let mut computed: Vec<Layer> = Vec::new();
        let mut row = right;
        let group = loop {
            match row.into_operator() {
                Operator::Project(Project { input, items, .. }) => {
                    computed.push(Layer::Items(items));
                    row = *input;
                }
                Operator::Filter(Filter { input, condition }) => {
                    computed.push(Layer::Condition(condition));
                    row = *input;
                }
                Operator::Group(group) if group.keys.is_empty() && group.rollup.is_none() => {
                    break Some(group);
                }
                Operator::Values(values) if values.columns.is_empty() && values.rows.len() == 1 => {
                    break None;
                }
                other => {
                    // A row that is found by a key, or the first of several.
                    if let Operator::Limit(limit) = &other
                        && let Some(pulled) = self.first_row(limit, (&computed, value), outer)?
                        && let Some(pulled) = self.below_layers(pulled, &computed, outer)
                    {
                        let condition = Some(Scalar::and(pulled.conditions));
                        let left = *join.left;
                        let joined = left.join(JoinKind::LeftOuter, pulled.relation, condition);
                        shown.push(self.passed_on(value));
                        return Ok(joined.project(shown));
                    }
                    let mut relation = Relation::from(other);
                    for layer in computed.into_iter().rev() {
                        relation = layer.around(relation);
                    }
                    return match self.pull(relation, outer)? {
                        Some(pulled) => {
                            let condition = Some(Scalar::and(pulled.conditions));
                            let left = *join.left;
                            let joined = left.join(JoinKind::LeftOuter, pulled.relation, condition);
                            shown.push(self.passed_on(value));
                            Ok(joined.project(shown))
                        }
                        None => self.single_over_domain(kept, value),
                    };
                }
            }
        };
        if let Some(group) = &group
            && !takes(group, outer)
            && is_null_of_no_rows(group, &computed, value)?
            && let Some(pulled) = self.pull_group(group.clone(), outer)?
            && let Some(pulled) = self.below_layers(pulled, &computed, outer)
        {
            let condition = Some(Scalar::and(pulled.conditions));
            let left = *join.left;
            let joined = left.join(JoinKind::LeftOuter, pulled.relation, condition);
            shown.push(self.passed_on(value));
            return Ok(joined.project(shown));
        }
        // What stands for an aggregate above the join. Of no rows a count is 0.
        let mut values: HashMap<ColumnId, Scalar> = HashMap::new();
        let relation = match group {
            None => *join.left,
            Some(mut group) => {
                if takes(&group, outer) {
                    return self.single_over_domain(kept, value);
                }
                for (id, aggregate) in &mut group.aggregates {
                    let field = aggregate.field().as_ref().clone().with_nullable(true);
                    let field = Arc::new(field);
                    let column = self
                        .columns
                        .add_computed(aggregate.name(), Arc::clone(&field));
                    let of_group = Scalar::column(column, field);
                    let of_group = match aggregate.counts() {
                        true => {
                            let zero = Scalar::literal(ScalarValue::Int64(Some(0)));
                            self.typing.call("coalesce", vec![of_group, zero])?
                        }
                        false => of_group,
                    };
                    values.insert(*id, of_group);
                    *id = column;
                }
                let Some(pulled) = self.pull_group(group, outer)? else {
                    return self.single_over_domain(kept, value);
                };
                let condition = Some(Scalar::and(pulled.conditions));
                let left = *join.left;
                left.join(JoinKind::LeftOuter, pulled.relation, condition)
            }
        };
        let with_values = |scalar: Scalar, values: &HashMap<ColumnId, Scalar>| {
            scalar.replace(&|scalar| values.get(&scalar.as_column()?).cloned())
        };
        let mut conditions = Vec::new();
        for layer in computed.into_iter().rev() {
            match layer {
                Layer::Condition(condition) => conditions.push(with_values(condition, &values)),
                Layer::Items(items) => {
                    let items = items.into_iter();
                    let items = items.map(|item| (item.column, with_values(item.value, &values)));
                    let items: Vec<_> = items.collect();
                    values.extend(items);
                }
            }
        }
        let Some(mut shown_value) = values.remove(&value) else {
            return self.single_over_domain(kept, value);
        };
        if !conditions.is_empty() {
            let field = Arc::clone(shown_value.field());
            let null = ScalarValue::try_from(field.data_type())?;
            let null = Scalar::typed_literal(null, field.metadata().clone());
            let condition = Scalar::and(conditions);
            let case = vec![condition, shown_value, null];
            shown_value = self.typing.call("$case", case)?;
        }
        shown.push(Item {
            column: value,
            value: shown_value,
        });
        Ok(relation.project(shown))
    }

    /// What a row is computed by, above what was pulled; `None` if that takes something from outside.
    fn below_layers(&self, pulled: Pulled, layers: &[Layer], outer: &ColumnSet) -> Option<Pulled> {
        if layers.iter().any(|layer| layer.columns().intersects(outer)) {
            return None;
        }
        let Pulled {
            mut relation,
            conditions,
        } = pulled;
        let keys = inner_columns(&conditions, &relation);
        for layer in layers.iter().rev() {
            relation = match layer {
                Layer::Condition(condition) => relation.filter(condition.clone()),
                Layer::Items(items) => {
                    let mut items = items.clone();
                    for key in keys.iter() {
                        if !items.iter().any(|item| item.column == key) {
                            items.push(self.passed_on(key));
                        }
                    }
                    relation.project(items)
                }
            };
        }
        Some(Pulled {
            relation,
            conditions,
        })
    }

    /// The first row of a limit of one row, for each value of what the conditions compare with the left side:
    ///
    /// ```text
    ///   A djoin (a = b) (limit 1 of (sort o of B))  =  A djoin (a = b) (group by b: first_value(.. order by o) of B)
    /// ```
    fn first_row(
        &mut self,
        limit: &Limit,
        (layers, value): (&[Layer], ColumnId),
        outer: &ColumnSet,
    ) -> Result<Option<Pulled>> {
        if limit.skip != 0 || limit.fetch != Some(1) {
            return Ok(None);
        }
        let (input, order) = ordered_input(limit.input.as_ref().clone());
        let takes = |key: &SortKey| key.value.columns().intersects(outer);
        if order.iter().any(takes) {
            return Ok(None);
        }
        let Some(pulled) = self.pull(input, outer)? else {
            return Ok(None);
        };
        let Some((pulled, keys)) = self.with_keys(pulled)? else {
            return Ok(None);
        };
        // The group of all rows would be there without a row.
        if keys.is_empty() {
            return Ok(None);
        }
        let mut needed: ColumnSet = [value].into_iter().collect();
        for layer in layers {
            needed.union_with(&layer.columns());
        }
        let needed = needed.intersection(&pulled.relation.column_set());
        let needed = needed.difference(&keys.iter().copied().collect());
        let function = match order.is_empty() {
            true => "any_value",
            false => "first_value",
        };
        let mut order_by: Vec<(Scalar, bool)> = Vec::with_capacity(order.len());
        for key in order {
            let value = self.typing.sort_key(key.value)?;
            // A value that comes again orders nothing, and aggregates do not take it.
            if order_by.iter().all(|(known, _)| *known != value) {
                order_by.push((value, key.descends));
            }
        }
        let mut items: Vec<Item> = keys.iter().map(|key| self.passed_on(*key)).collect();
        let mut aggregates = Vec::new();
        for column in needed.iter() {
            let value = self.column(column);
            let field = value.field().as_ref().clone().with_nullable(true);
            let (id, aggregate) = self.add_aggregate(function, value)?;
            aggregates.push((id, aggregate.ordered_by(order_by.clone())));
            let value = Scalar::column(id, Arc::new(field));
            items.push(Item { column, value });
        }
        if aggregates.len() != 1 {
            // A row is numbered once, whatever it has.
            return Ok(None);
        }
        let relation = pulled.relation.group(keys, Vec::new(), aggregates);
        let relation = relation.project(items);
        Ok(Some(Pulled { relation, ..pulled }))
    }

    /// The same, joined with the distinct values of what it takes from the left side. Not where it finds its rows by an
    /// index: it is run for each of these values then, which are fewer rows.
    fn single_over_domain(&mut self, mut join: DependentJoin, value: ColumnId) -> Result<Relation> {
        if self.keeps_probes
            && let Some(found) = found_by_index(&join.right, &join.left.column_set())
            && (!found.is_bounded() || has_limit(&join.right))
        {
            return Ok(Operator::DependentJoin(join).into());
        }
        let right = join.right.as_ref().clone();
        // Whether there are several rows is asked of the rows that come to the value.
        let (right, shown_value) = match self.counted_rows(&right, value)? {
            Some((counted, only)) => {
                let only = only.replace(&|scalar| {
                    let field = scalar.field().as_ref().clone().with_nullable(true);
                    Some(Scalar::column(scalar.as_column()?, Arc::new(field)))
                });
                let item = Item {
                    column: value,
                    value: only,
                };
                (counted, item)
            }
            None => (right, self.passed_on(value)),
        };
        let Some(pulled) = self.over_domain(&mut join.left, right)? else {
            return Ok(Operator::DependentJoin(join).into());
        };
        let left = join.left.columns().iter();
        let mut shown: Vec<Item> = left.map(|id| self.passed_on(*id)).collect();
        shown.push(shown_value);
        let condition = Some(Scalar::and(pulled.conditions));
        let joined = join
            .left
            .join(JoinKind::LeftOuter, pulled.relation, condition);
        Ok(joined.project(shown))
    }

    /// The same with at most one row: where there may be several, they are counted.
    pub(in crate::rules) fn of_one_row(
        &mut self,
        right: Relation,
        value: ColumnId,
    ) -> Result<Relation> {
        Ok(match self.counted_rows(&right, value)? {
            Some((counted, only)) => counted.project(vec![Item {
                column: value,
                value: only,
            }]),
            None => right,
        })
    }

    /// A value of some row with the number of rows, and what is computed of both; `None` if there is at most one row.
    fn counted_rows(
        &mut self,
        right: &Relation,
        value: ColumnId,
    ) -> Result<Option<(Relation, Scalar)>> {
        if right.properties().has_at_most_one_row() || is_found_by_key(right) {
            return Ok(None);
        }
        let rows = self.column(value);
        let any_row = self.add_aggregate("any_value", rows)?;
        let count = self.add_aggregate("count", Scalar::literal(ScalarValue::Int64(Some(1))))?;
        let group = vec![any_row, count];
        let arguments = group.iter().map(|(id, _)| self.column(*id)).collect();
        let only = self.typing.call(ONLY_ROW, arguments)?;
        let counted = right.clone().group(Vec::new(), Vec::new(), group);
        Ok(Some((counted, only)))
    }
}

/// What a row is computed by, above a group.
enum Layer {
    Items(Vec<Item>),
    Condition(Scalar),
}

impl Layer {
    fn columns(&self) -> ColumnSet {
        let mut columns = ColumnSet::new();
        match self {
            Layer::Items(items) => items
                .iter()
                .for_each(|item| item.value.add_columns(&mut columns)),
            Layer::Condition(condition) => condition.add_columns(&mut columns),
        }
        columns
    }

    fn around(self, relation: Relation) -> Relation {
        match self {
            Layer::Items(items) => relation.project(items),
            Layer::Condition(condition) => relation.filter(condition),
        }
    }
}

/// Whether a value is an error where a subquery finds several rows.
pub(crate) fn calls_only_row(scalar: &Scalar) -> bool {
    let mut found = match scalar.kind() {
        ScalarKind::Call { function, .. } => function.name() == ONLY_ROW,
        _ => false,
    };
    scalar.for_each_operand(&mut |operand| found |= calls_only_row(operand));
    found
}

/// Whether what is computed of the aggregates of a group is NULL where the group has no rows. Then that is the NULL of
/// an outer join.
fn is_null_of_no_rows(group: &Group, layers: &[Layer], value: ColumnId) -> Result<bool> {
    let mut values: HashMap<ColumnId, Scalar> = HashMap::new();
    for (id, aggregate) in &group.aggregates {
        let field = aggregate.field();
        let none = match aggregate.counts() {
            true => ScalarValue::Int64(Some(0)),
            false => ScalarValue::try_from(field.data_type())?,
        };
        values.insert(*id, Scalar::typed_literal(none, field.metadata().clone()));
    }
    for layer in layers.iter().rev() {
        match layer {
            // It may be NULL for groups that have rows.
            Layer::Condition(_) => return Ok(false),
            // Whether there are several rows, is asked for the groups that are wanted.
            Layer::Items(items) if items.iter().any(|item| calls_only_row(&item.value)) => {
                return Ok(false);
            }
            Layer::Items(items) => {
                let computed = items.iter().map(|item| {
                    let of_none = item.value.clone();
                    let of_none =
                        of_none.replace(&|scalar| values.get(&scalar.as_column()?).cloned());
                    (item.column, of_none)
                });
                let computed: Vec<_> = computed.collect();
                values.extend(computed);
            }
        }
    }
    let Some(of_none) = values.remove(&value) else {
        return Ok(false);
    };
    if !of_none.columns().is_empty() || of_none.is_volatile() {
        return Ok(false);
    }
    let expr = of_none.to_expr(&|_, _| Expr::Literal(ScalarValue::Null, None))?;
    Ok(constant_value(expr)?.is_some_and(|value| value.is_null()))
}
