//! `A dependent join B  =  A join B`, where nothing in `B` is computed from `A`; and the ways to get there.
//!
//! What `B` takes from `A` is pulled up through the operators of `B` to the join, after Neumann and Kemper, "Unnesting
//! Arbitrary Queries" (2015), as far as that needs no copy of `A`:
//!
//! ```text
//!   A djoin p (filter q B)                  A djoin (p and q) B
//!   A djoin p (project B)                   A djoin p (project, and what p names, of B)
//!   A djoin (a = b) (group by k of B)       A djoin (a = b) (group by k, b of B)
//!   A djoin (a = b) (limit n of B)          A djoin (a = b) (filter number <= n (number by b of B))
//!   A djoin (a = b) (window by k of B)      A djoin (a = b) (window by k, b of B)
//!   A djoin p (sort B)                      A djoin p B
//! ```
//!
//! A group without keys has a row where `B` has none, and one with the key `b` has not. So a subquery that is a value
//! is joined below what it computes of its aggregates:
//!
//! ```text
//!   single v (A, project v := f(c) (group: c := count of B))
//!     =   project A, v := f(c is null ? 0 : c) (A left join (group by b: c := count of B) on a = b)
//! ```
//!
//! What is NULL of no rows, as `sum(x) + 1` is, is computed below the join: a condition on it makes an inner join of
//! it.
//!
//! Where a subquery that is a value may find several rows, these are counted, and [`ONLY_ROW`] makes an error of it.
//!
//! Where `B` takes a value from `A` in a place from which it cannot be pulled up, the general rule takes over
//! ([`domain`](super::domain)), unless `B` is a value and finds its rows by an index. Then, and where the general rule
//! does not get there, the dependent join stays, and `B` is run for each row of `A` that differs in what `B` takes. But
//! planning `B` each time costs more than the few rows of a value, or of a range with both ends. Those a join finds,
//! too.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::datatypes::{DataType, Field};
use datafusion_common::{Result, ScalarValue, internal_err};
use datafusion_expr::{Expr, WindowFrame, WindowFunctionDefinition};
use sheaf_access::cancel;
use sheaf_exec::SheafTableSource;
use sheaf_exec::aggregates::aggregate_function;
use sheaf_exec::functions::control::ONLY_ROW;
use sheaf_exec::operator::scan_exec::access_error;
use sheaf_exec::typing::constant_value;

use crate::column::{ColumnId, Columns};
use crate::column_set::ColumnSet;
use crate::relation::{
    DependentJoin, DependentKind, Filter, Group, Item, Join, JoinKind, Limit, Operator, Project,
    Relation, Sort, SortKey,
};
use crate::scalar::typing::{AggregateCall, WindowCall};
use crate::scalar::{Comparison, Scalar, ScalarKind, Truth, Typing};

pub fn apply(relation: Relation, columns: &mut Columns, typing: &Typing<'_>) -> Result<Relation> {
    let mut unnesting = Unnesting {
        columns,
        typing,
        keeps_probes: true,
        copied: 0,
    };
    unnesting.relation(relation)
}

pub(super) struct Unnesting<'a> {
    pub(super) columns: &'a mut Columns,
    pub(super) typing: &'a Typing<'a>,
    /// Values that find their rows by an index may be run for each row.
    keeps_probes: bool,
    /// Operators of left sides that were copied into domains.
    pub(super) copied: usize,
}

/// A right side from which conditions with columns of the left were taken.
pub(super) struct Pulled {
    pub(super) relation: Relation,
    pub(super) conditions: Vec<Scalar>,
}

impl Unnesting<'_> {
    /// From the innermost dependent joins outwards.
    fn relation(&mut self, relation: Relation) -> Result<Relation> {
        cancel::check_statement().map_err(access_error)?;
        let mut failed = None;
        let relation = relation.map_inputs(&mut |input| match self.relation(input) {
            Ok(input) => input,
            Err(error) => {
                failed = Some(error);
                Relation::unit()
            }
        });
        if let Some(error) = failed {
            return Err(error);
        }
        match relation.into_operator() {
            Operator::DependentJoin(join) => self.dependent_join(join),
            operator => Ok(operator.into()),
        }
    }

    fn dependent_join(&mut self, mut join: DependentJoin) -> Result<Relation> {
        let outer = join.left.column_set();
        let is_independent = !join.right.free_columns().intersects(&outer);
        if let DependentKind::Single(value) = join.kind {
            return match is_independent {
                // It is computed once, before the rows around it.
                true => Ok(Operator::DependentJoin(join).into()),
                false => self.single(join, value, &outer),
            };
        }
        let kind = match join.kind {
            DependentKind::Inner => JoinKind::Inner,
            DependentKind::LeftOuter => JoinKind::LeftOuter,
            DependentKind::Semi => JoinKind::Semi,
            DependentKind::Anti => JoinKind::Anti,
            DependentKind::Found(mark) => JoinKind::Mark(mark),
            DependentKind::Mark(mark) => match &join.condition {
                Some(condition) if condition.is_nullable() => {
                    return self.mark_of_three_values(join, mark, &outer);
                }
                _ => JoinKind::Mark(mark),
            },
            DependentKind::Single(_) => return internal_err!("a single join is no other"),
        };
        if is_independent {
            return Ok(join.left.join(kind, *join.right, join.condition));
        }
        let mut pulled = self.independent(&mut join.left, &join.right, &outer)?;
        if pulled.is_none() && matches!(kind, JoinKind::Inner | JoinKind::LeftOuter) {
            // Rows are not run for each row, so nothing inside may be.
            let keeps = std::mem::replace(&mut self.keeps_probes, false);
            let right = self.relation(join.right.as_ref().clone())?;
            self.keeps_probes = keeps;
            pulled = self.independent(&mut join.left, &right, &outer)?;
        }
        match pulled {
            Some(pulled) => {
                let conditions = join.condition.into_iter().chain(pulled.conditions);
                let condition = Scalar::and(conditions);
                Ok(join.left.join(kind, pulled.relation, Some(condition)))
            }
            None => self.counted(join),
        }
    }

    /// A mark as a value of one row, for what is run for each row of the left side:
    ///
    /// ```text
    ///   A mark join m of B on p  =  project A, m := v = 2 or v = 1 and unknown
    ///                               (single v (A, (group: v := max(p ? 2 : p is unknown ? 1 : null) of B)))
    /// ```
    fn counted(&mut self, join: DependentJoin) -> Result<Relation> {
        if matches!(join.kind, DependentKind::Inner | DependentKind::LeftOuter) {
            return self.of_values(join);
        }
        let number = |number: i64| Scalar::literal(ScalarValue::Int64(Some(number)));
        let found = match join.condition {
            None => number(2),
            Some(condition) => {
                let unknown = condition.clone().test(Truth::Unknown, false);
                let case = vec![condition, number(2), unknown, number(1)];
                self.typing.call("$case", case)?
            }
        };
        let (best, aggregate) = self.add_aggregate("max", found)?;
        let right = join
            .right
            .group(Vec::new(), Vec::new(), vec![(best, aggregate)]);
        let mut shown: Vec<Item> = join
            .left
            .columns()
            .iter()
            .map(|id| self.passed_on(*id))
            .collect();
        let applied = join
            .left
            .dependent_join(DependentKind::Single(best), right, None);
        let is = |operator: Comparison, found: i64| {
            let best = self.column(best);
            Scalar::comparison(operator, best, number(found))
        };
        match join.kind {
            DependentKind::Semi => Ok(applied.filter(is(Comparison::Equal, 2)).project(shown)),
            DependentKind::Anti => {
                let is_found = is(Comparison::NullSafeEqual, 2);
                Ok(applied.filter(is_found.not()).project(shown))
            }
            DependentKind::Mark(mark) | DependentKind::Found(mark) => {
                let is_found = is(Comparison::NullSafeEqual, 2);
                let may_be = is(Comparison::NullSafeEqual, 1);
                let unknown = Scalar::literal(ScalarValue::Boolean(None));
                let value = match join.kind {
                    DependentKind::Mark(_) => {
                        Scalar::or([is_found, Scalar::and([may_be, unknown])])
                    }
                    _ => is_found,
                };
                shown.push(Item {
                    column: mark,
                    value,
                });
                Ok(applied.project(shown))
            }
            _ => internal_err!("not a mark"),
        }
    }

    /// A right side of at most one row as values, each of which is run for each row of the left side:
    ///
    /// ```text
    ///   A left djoin p B  =  project A, c := n = 1 ? v : null  (single n (single v (A, project v := c of B), n))
    ///                        where n is the number of rows of filter p B
    /// ```
    fn of_values(&mut self, join: DependentJoin) -> Result<Relation> {
        let is_repeatable = super::repeatable::is_repeatable(&join.right);
        let columns = join.right.columns().to_vec();
        if !join.right.properties().has_at_most_one_row() || columns.len() > 1 && !is_repeatable {
            return Ok(Operator::DependentJoin(join).into());
        }
        let one = || Scalar::literal(ScalarValue::Int64(Some(1)));
        let (rows, count) = self.add_aggregate("count", one())?;
        let counted = match join.condition {
            Some(condition) => join.right.as_ref().clone().filter(condition),
            None => join.right.as_ref().clone(),
        };
        let counted = counted.group(Vec::new(), Vec::new(), vec![(rows, count)]);
        let is_there = Scalar::comparison(Comparison::NullSafeEqual, self.column(rows), one());
        let mut shown: Vec<Item> = join
            .left
            .columns()
            .iter()
            .map(|id| self.passed_on(*id))
            .collect();
        let mut relation = *join.left;
        relation = relation.dependent_join(DependentKind::Single(rows), counted, None);
        let is_inner = join.kind == DependentKind::Inner;
        for column in columns {
            let of_row = self.column(column);
            let field = Arc::new(of_row.field().as_ref().clone().with_nullable(true));
            let null = ScalarValue::try_from(field.data_type())?;
            let null = Scalar::typed_literal(null, field.metadata().clone());
            let id = self.columns.add_computed("value", Arc::clone(&field));
            let right = join.right.as_ref().clone().project(vec![Item {
                column: id,
                value: of_row,
            }]);
            relation = relation.dependent_join(DependentKind::Single(id), right, None);
            let value = Scalar::column(id, field);
            let value = match is_inner {
                true => value,
                false => {
                    let case = vec![is_there.clone(), value, null];
                    self.typing.call("$case", case)?
                }
            };
            shown.push(Item { column, value });
        }
        if is_inner {
            relation = relation.filter(is_there);
        }
        Ok(relation.project(shown))
    }

    /// The right side without what it takes from the left side, in the one way or the other.
    fn independent(
        &mut self,
        left: &mut Relation,
        right: &Relation,
        outer: &ColumnSet,
    ) -> Result<Option<Pulled>> {
        match self.pull(right.clone(), outer)? {
            Some(pulled) => Ok(Some(pulled)),
            None => self.over_domain(left, right.clone()),
        }
    }

    /// `mark m on p  =  m := CASE WHEN t THEN TRUE WHEN u THEN NULL ELSE FALSE END`, with t for a row where p is true,
    /// and u for one where it may be.
    fn mark_of_three_values(
        &mut self,
        mut join: DependentJoin,
        mark: ColumnId,
        outer: &ColumnSet,
    ) -> Result<Relation> {
        let Some(condition) = join.condition.clone() else {
            return internal_err!("a mark of three values has a condition");
        };
        // The right side is computed twice.
        let pulled = match super::repeatable::is_repeatable(&join.right) {
            true => self.independent(&mut join.left, &join.right, outer)?,
            false => None,
        };
        let Some(pulled) = pulled else {
            return self.counted(join);
        };
        let mut shown: Vec<Item> = join
            .left
            .columns()
            .iter()
            .map(|id| self.passed_on(*id))
            .collect();
        let mut marks = Vec::new();
        let mut relation = *join.left;
        for condition in [
            condition.clone(),
            super::tested_marks::may_be_true(condition),
        ] {
            let field = Arc::new(Field::new("mark", DataType::Boolean, false));
            let id = self.columns.add_computed("mark", Arc::clone(&field));
            let conditions = std::iter::once(condition).chain(pulled.conditions.iter().cloned());
            let right = pulled.relation.clone();
            relation = relation.join(JoinKind::Mark(id), right, Some(Scalar::and(conditions)));
            marks.push(Scalar::column(id, field));
        }
        let [is_true, may_be] = <[Scalar; 2]>::try_from(marks)
            .map_err(|_| datafusion_common::internal_datafusion_err!("two marks"))?;
        // m is NULL only if it is not true and may be.
        let unknown = Scalar::literal(ScalarValue::Boolean(None));
        let value = Scalar::or([is_true, Scalar::and([may_be, unknown])]);
        shown.push(Item {
            column: mark,
            value,
        });
        Ok(relation.project(shown))
    }

    /// A subquery that is a value, and takes something from the left side.
    fn single(
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
    pub(super) fn of_one_row(&mut self, right: Relation, value: ColumnId) -> Result<Relation> {
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

    pub(super) fn add_aggregate(
        &mut self,
        name: &str,
        argument: Scalar,
    ) -> Result<(ColumnId, crate::scalar::Aggregate)> {
        let Some(function) = aggregate_function(name) else {
            return internal_err!("{name} is not registered");
        };
        let aggregate = self.typing.aggregate(AggregateCall {
            function,
            arguments: vec![argument],
            distinct: false,
        })?;
        let id = self
            .columns
            .add_computed(name, Arc::clone(aggregate.field()));
        Ok((id, aggregate))
    }

    /// A column as it is where it is made.
    fn column(&self, id: ColumnId) -> Scalar {
        Scalar::column(id, Arc::clone(&self.columns.get(id).field))
    }

    pub(super) fn passed_on(&self, id: ColumnId) -> Item {
        Item {
            column: id,
            value: self.column(id),
        }
    }

    /// Takes the conditions with columns of `outer` out of a relation; `None` if that is not all that it takes from
    /// there. What they name besides is among the columns of what is left.
    fn pull(&mut self, relation: Relation, outer: &ColumnSet) -> Result<Option<Pulled>> {
        if !relation.free_columns().intersects(outer) {
            let conditions = Vec::new();
            return Ok(Some(Pulled {
                relation,
                conditions,
            }));
        }
        match relation.into_operator() {
            Operator::Filter(Filter { input, condition }) => {
                let Some(mut pulled) = self.pull(*input, outer)? else {
                    return Ok(None);
                };
                let (moves, stays): (Vec<_>, Vec<_>) = condition
                    .into_conjuncts()
                    .into_iter()
                    .partition(|conjunct| conjunct.columns().intersects(outer));
                if moves.iter().any(Scalar::is_volatile) {
                    return Ok(None);
                }
                pulled.conditions.extend(moves);
                if !stays.is_empty() {
                    pulled.relation = pulled.relation.filter(Scalar::and(stays));
                }
                Ok(Some(pulled))
            }
            Operator::Project(Project {
                input, mut items, ..
            }) => {
                if items
                    .iter()
                    .any(|item| item.value.columns().intersects(outer))
                {
                    return Ok(None);
                }
                let Some(mut pulled) = self.pull(*input, outer)? else {
                    return Ok(None);
                };
                for column in inner_columns(&pulled.conditions, &pulled.relation).iter() {
                    if !items.iter().any(|item| item.column == column) {
                        items.push(self.passed_on(column));
                    }
                }
                pulled.relation = pulled.relation.project(items);
                Ok(Some(pulled))
            }
            Operator::Sort(Sort { input, .. }) => self.pull(*input, outer),
            Operator::Group(group) if !group.keys.is_empty() && group.rollup.is_none() => {
                match takes(&group, outer) {
                    true => Ok(None),
                    false => self.pull_group(group, outer),
                }
            }
            Operator::Limit(limit) => self.pull_limit(limit, outer),
            Operator::Window(window) => {
                let mut takes_there = false;
                for (_, function) in &window.functions {
                    function.for_each_operand(&mut |operand| {
                        takes_there |= operand.columns().intersects(outer);
                    });
                }
                if takes_there {
                    return Ok(None);
                }
                let Some(pulled) = self.pull(*window.input, outer)? else {
                    return Ok(None);
                };
                let Some((pulled, keys)) = self.with_keys(pulled)? else {
                    return Ok(None);
                };
                let mut functions = window.functions;
                for (_, function) in &mut functions {
                    let mut partition_by = function.partition_by().to_vec();
                    partition_by.extend(keys.iter().map(|key| self.column(*key)));
                    *function = function.clone().with_partition_by(partition_by);
                }
                let relation = pulled.relation.window(functions);
                Ok(Some(Pulled { relation, ..pulled }))
            }
            Operator::Join(join) => self.pull_join(join, outer),
            Operator::Scan(_)
            | Operator::Values(_)
            | Operator::Group(_)
            | Operator::DependentJoin(_)
            | Operator::Recursive(_)
            | Operator::SetOperation(_) => Ok(None),
        }
    }

    /// A group for each value of what the conditions compare with the left side.
    fn pull_group(&mut self, group: Group, outer: &ColumnSet) -> Result<Option<Pulled>> {
        let Some(pulled) = self.pull(*group.input, outer)? else {
            return Ok(None);
        };
        let Some((pulled, keys)) = self.with_keys(pulled)? else {
            return Ok(None);
        };
        let mut by = group.keys;
        for key in keys {
            if !by.contains(&key) {
                by.push(key);
            }
        }
        let mut carried = group.carried;
        carried.retain(|column| !by.contains(column));
        let relation = pulled.relation.group(by, carried, group.aggregates);
        Ok(Some(Pulled { relation, ..pulled }))
    }

    /// The first rows for each value of what the conditions compare with the left side.
    fn pull_limit(&mut self, limit: Limit, outer: &ColumnSet) -> Result<Option<Pulled>> {
        let (input, order) = ordered_input(*limit.input);
        if order
            .iter()
            .any(|key| key.value.columns().intersects(outer))
        {
            return Ok(None);
        }
        let Some(pulled) = self.pull(input, outer)? else {
            return Ok(None);
        };
        let Some((pulled, keys)) = self.with_keys(pulled)? else {
            return Ok(None);
        };
        let keys = keys.iter().map(|key| self.column(*key)).collect();
        let (skip, fetch) = (limit.skip, limit.fetch);
        let relation = self.first_rows(pulled.relation, keys, order, skip, fetch)?;
        Ok(Some(Pulled { relation, ..pulled }))
    }

    /// Of the rows with the same keys, `fetch` behind the first `skip` of an order.
    pub(super) fn first_rows(
        &mut self,
        relation: Relation,
        keys: Vec<Scalar>,
        order: Vec<SortKey>,
        skip: u64,
        fetch: Option<u64>,
    ) -> Result<Relation> {
        let number = self.row_number(keys, order)?;
        let field = Arc::clone(number.field());
        let id = self.columns.add_computed("number", Arc::clone(&field));
        let compared = |operator: Comparison, rows: u64| {
            let number = Scalar::column(id, Arc::clone(&field));
            let rows = Scalar::literal(ScalarValue::UInt64(Some(rows)));
            Scalar::comparison(operator, number, rows)
        };
        let mut conditions = Vec::new();
        if skip > 0 {
            conditions.push(compared(Comparison::Greater, skip));
        }
        if let Some(fetch) = fetch {
            let last = skip.saturating_add(fetch);
            conditions.push(compared(Comparison::LessOrEqual, last));
        }
        Ok(relation
            .window(vec![(id, number)])
            .filter(Scalar::and(conditions)))
    }

    fn row_number(
        &self,
        partition_by: Vec<Scalar>,
        order: Vec<SortKey>,
    ) -> Result<crate::scalar::WindowFunction> {
        let order_by: Vec<_> = order
            .into_iter()
            .map(|key| (key.value, key.descends))
            .collect();
        let frame = WindowFrame::new((!order_by.is_empty()).then_some(false));
        let function = datafusion_functions_window::row_number::row_number_udwf();
        self.typing.window(WindowCall {
            function: WindowFunctionDefinition::WindowUDF(function),
            arguments: Vec::new(),
            partition_by,
            order_by,
            frame,
            null_treatment: None,
            distinct: false,
        })
    }

    fn pull_join(&mut self, join: Join, outer: &ColumnSet) -> Result<Option<Pulled>> {
        let depends = |relation: &Relation| relation.free_columns().intersects(outer);
        let condition_depends = |join: &Join| {
            let condition = join.condition.as_ref();
            condition.is_some_and(|condition| condition.columns().intersects(outer))
        };
        if join.kind != JoinKind::Inner {
            if depends(&join.right) || condition_depends(&join) {
                return Ok(None);
            }
            let Some(mut pulled) = self.pull(*join.left, outer)? else {
                return Ok(None);
            };
            pulled.relation = pulled.relation.join(join.kind, *join.right, join.condition);
            return Ok(Some(pulled));
        }
        let (Some(left), Some(right)) = (
            self.pull(*join.left, outer)?,
            self.pull(*join.right, outer)?,
        ) else {
            return Ok(None);
        };
        let conjuncts = join.condition.map_or_else(Vec::new, Scalar::into_conjuncts);
        let (moves, stays): (Vec<_>, Vec<_>) = conjuncts
            .into_iter()
            .partition(|conjunct| conjunct.columns().intersects(outer));
        let mut conditions = left.conditions;
        conditions.extend(right.conditions);
        conditions.extend(moves);
        let condition = (!stays.is_empty()).then(|| Scalar::and(stays));
        let relation = Operator::Join(Join {
            kind: JoinKind::Inner,
            left: Box::new(left.relation),
            right: Box::new(right.relation),
            condition,
        });
        Ok(Some(Pulled {
            relation: relation.into(),
            conditions,
        }))
    }

    /// Where all conditions are equalities between something of the left side and something of the relation, the latter
    /// as columns of the relation. What a condition names besides may be of queries further out. A condition that names
    /// nothing of the relation is true of all its rows or of none, and needs no key.
    fn with_keys(&mut self, pulled: Pulled) -> Result<Option<(Pulled, Vec<ColumnId>)>> {
        let own = pulled.relation.column_set();
        let mut keys = Vec::new();
        let mut computed = Vec::new();
        let mut conditions = Vec::new();
        for condition in pulled.conditions {
            if !condition.columns().intersects(&own) {
                conditions.push(condition);
                continue;
            }
            let ScalarKind::Comparison {
                operator: operator @ (Comparison::Equal | Comparison::NullSafeEqual),
                left,
                right,
            } = condition.kind()
            else {
                return Ok(None);
            };
            let is_outer = |scalar: &Scalar| !scalar.columns().intersects(&own);
            let is_inner = |scalar: &Scalar| scalar.columns().is_subset(&own);
            let (of_outer, of_inner) = match (left, right) {
                (left, right) if is_outer(left) && is_inner(right) => (left, right),
                (left, right) if is_inner(left) && is_outer(right) => (right, left),
                _ => return Ok(None),
            };
            let key = match of_inner.as_column() {
                Some(column) => column,
                None => {
                    let field = Arc::clone(of_inner.field());
                    let column = self.columns.add_computed("key", field);
                    computed.push(Item {
                        column,
                        value: of_inner.as_ref().clone(),
                    });
                    column
                }
            };
            let field = Arc::clone(of_inner.field());
            let key_column = Scalar::column(key, field);
            conditions.push(Scalar::comparison(
                *operator,
                of_outer.as_ref().clone(),
                key_column,
            ));
            // Two conditions may compare the same column.
            if !keys.contains(&key) {
                keys.push(key);
            }
        }
        let mut relation = pulled.relation;
        if !computed.is_empty() {
            let passed_on = relation.columns().iter().map(|id| self.passed_on(*id));
            let items = passed_on.chain(computed).collect();
            relation = relation.project(items);
        }
        let pulled = Pulled {
            relation,
            conditions,
        };
        Ok(Some((pulled, keys)))
    }
}

/// The rows below a limit, and the order in which it takes them. A list may be above the order; then the rows have what
/// the order is by, too.
pub(super) fn ordered_input(input: Relation) -> (Relation, Vec<SortKey>) {
    match input.into_operator() {
        Operator::Sort(Sort { input, keys }) => (*input, keys),
        Operator::Project(Project { input, items, .. }) => match input.into_operator() {
            Operator::Sort(Sort { input, keys }) if items.iter().all(Item::is_passed_on) => {
                (*input, keys)
            }
            other => (Relation::from(other).project(items), Vec::new()),
        },
        other => (other.into(), Vec::new()),
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
    let expr = of_none.to_expr(&|_, _| Expr::Literal(ScalarValue::Null, None));
    Ok(constant_value(expr)?.is_some_and(|value| value.is_null()))
}

/// Whether aggregates are computed of columns of the left side.
fn takes(group: &Group, outer: &ColumnSet) -> bool {
    let mut operands = group.aggregates.iter().flat_map(|(_, of)| of.operands());
    operands.any(|operand| operand.columns().intersects(outer))
}

/// Columns of a relation that conditions name. Others are of the left side, or of queries further out.
fn inner_columns(conditions: &[Scalar], relation: &Relation) -> ColumnSet {
    let mut columns = ColumnSet::new();
    conditions
        .iter()
        .for_each(|condition| condition.add_columns(&mut columns));
    columns.intersection(&relation.column_set())
}

/// How the first columns of indexes are compared with what comes from outside.
#[derive(Default)]
struct FoundByIndex {
    /// Columns with a lower bound that a join can look up, and with an upper one.
    lower: ColumnSet,
    upper: ColumnSet,
}

impl FoundByIndex {
    /// Whether an index has one value, or a range with both ends.
    fn is_bounded(&self) -> bool {
        self.lower.intersects(&self.upper)
    }
}

/// Whether, and how, a subquery compares the first column of an index with what it takes from outside.
fn found_by_index(relation: &Relation, outer: &ColumnSet) -> Option<FoundByIndex> {
    let mut indexed = ColumnSet::new();
    add_indexed(relation, &mut indexed);
    let mut found = None;
    add_compared(relation, &indexed, outer, &mut found);
    found
}

fn add_indexed(relation: &Relation, indexed: &mut ColumnSet) {
    if let Operator::Scan(scan) = relation.operator()
        && let Some(source) = scan.source.downcast_ref::<SheafTableSource>()
    {
        let indexes = source.table.definition.indexes();
        let first = indexes.filter_map(|index| index.parts.first());
        indexed.extend(first.filter_map(|part| scan.columns.get(part.column).copied()));
    }
    for input in relation.inputs() {
        add_indexed(input, indexed);
    }
}

fn add_compared(
    relation: &Relation,
    indexed: &ColumnSet,
    outer: &ColumnSet,
    found: &mut Option<FoundByIndex>,
) {
    relation.for_each_scalar(&mut |scalar| {
        for conjunct in scalar.conjuncts() {
            let ScalarKind::Comparison {
                operator,
                left,
                right,
            } = conjunct.kind()
            else {
                continue;
            };
            let (is_lower, is_upper) = match operator {
                Comparison::Greater | Comparison::GreaterOrEqual => (true, false),
                Comparison::Less | Comparison::LessOrEqual => (false, true),
                Comparison::Equal | Comparison::NullSafeEqual => (true, true),
                Comparison::NotEqual => (false, false),
            };
            let sides = [
                (left, right, is_lower, is_upper),
                (right, left, is_upper, is_lower),
            ];
            for (column, of, is_lower, is_upper) in sides {
                let Some(id) = crate::properties::plain_column(column) else {
                    continue;
                };
                let of_outer = of.columns();
                if !indexed.contains(id)
                    || !of_outer.intersects(outer)
                    || !of_outer.is_subset(outer)
                {
                    continue;
                }
                let found = found.get_or_insert_default();
                // Under a cast it is compared as another type, for which the index may have no range.
                if column.as_column().is_some() || column.field().data_type().is_integer() {
                    if is_lower {
                        found.lower.insert(id);
                    }
                    if is_upper {
                        found.upper.insert(id);
                    }
                }
            }
        }
    });
    for input in relation.inputs() {
        add_compared(input, indexed, outer, found);
    }
}

/// Whether something ends with a number of rows, for which a join would find all.
fn has_limit(relation: &Relation) -> bool {
    matches!(relation.operator(), Operator::Limit(_))
        || relation.inputs().into_iter().any(has_limit)
}

/// Whether what a subquery takes from outside is equal to a key of its rows, of which there is at most one then.
fn is_found_by_key(relation: &Relation) -> bool {
    match relation.operator() {
        Operator::Project(project) => is_found_by_key(&project.input),
        Operator::Sort(sort) => is_found_by_key(&sort.input),
        Operator::Filter(filter) => {
            let own = filter.input.column_set();
            let mut given = ColumnSet::new();
            for conjunct in filter.condition.conjuncts() {
                let Some((one, other)) = conjunct.as_equality() else {
                    continue;
                };
                for (side, of) in [(one, other), (other, one)] {
                    if let Some(column) = crate::properties::exact_column(side)
                        && !of.columns().intersects(&own)
                    {
                        given.insert(column);
                    }
                }
            }
            filter.input.properties().has_key_among(&given)
        }
        _ => false,
    }
}
