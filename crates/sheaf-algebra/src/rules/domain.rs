//! `A djoin B  =  A join (D djoin B) on d <=> d'`, where `D` are the distinct values of what `B` takes from `A`.
//!
//! This is the general rule of Neumann and Kemper, "Unnesting Arbitrary Queries" (2015). It always gets there, because
//! `D` has no duplicates and can be pushed down through every operator of `B`, until nothing below takes anything from
//! `D` and a product is left. [`unnest`](super::unnest) asks for it where conditions cannot be pulled up.
//!
//! ```text
//!   D djoin (filter p B)             filter p (D djoin B)
//!   D djoin (project B)              project, and D, of (D djoin B)
//!   D djoin (group by k of B)        group by k, D of (D djoin B)
//!   D djoin (group: c of B)          D left join (group by D: c of (D djoin B)), with counts of 0
//!   D djoin (limit n of B)           filter number <= n (number by D of (D djoin B))
//!   D djoin (window by k of B)       window by k, D of (D djoin B)
//!   D djoin (expand d of B)          expand d of (D djoin B)
//!   D djoin (B join C)               (D djoin B) join C                      C takes nothing from D
//!   D djoin (B join C)               (D djoin B) join (D djoin C) on D = D   for joins of every kind
//!   D djoin (B union C)              (D djoin B) union (D djoin C)
//!   D djoin B                        D product B                             B takes nothing from D
//! ```
//!
//! `A` is computed twice, and has to be the same both times. So it has no limit, no window, and no groups that show the
//! value of any of their rows. Where it has, `D` is made of parts of `A` below these, which have all the values, and
//! perhaps more:
//!
//! ```text
//!   D of (project c: f(b) of (limit n of B))   project c: f(b), of D of B
//!   D of (group: m := min(b) of B)             (project m := b, of D of B) union NULL
//!   D of (A join B)                            D of A join D of B
//!   D of (A left join B)                       (D of A join D of B) union (D of A join NULL)
//! ```
//!
//! Where that does not get there either, `A` is made such that it has the same rows each time
//! ([`repeatable`](super::repeatable)).
//!
//! How much is copied into domains has a limit. What is beyond it is run for each row, or refused.
//!
//! Values of `D` are told apart exactly. Texts that are equal by their collation may differ in what `B` makes of them,
//! and so may the JSON values 1 and 1.0. So a text is represented by its bytes where values are compared, and a JSON
//! value by those of its text.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::datatypes::FieldRef;
use datafusion_common::{Result, ScalarValue};
use sheaf_exec::functions::SqlType;

use super::repeatable::{is_exact, is_repeatable};
use super::unnest::{Pulled, Unnesting};
use crate::column::ColumnId;
use crate::column_set::ColumnSet;
use crate::relation::{
    DependentJoin, DependentKind, Filter, Group, Item, Join, JoinKind, Operator, Project, Relation,
    SetKind, SetOperation, Values,
};
use crate::scalar::{Comparison, Scalar};

/// Operators of left sides that a statement may copy into domains. Of dependent joins in a row each left side has the
/// copies of those before it, so that they would multiply.
const MAX_COPIED: usize = 1_000;

/// What a right side takes from a left side.
struct Domain {
    left: Relation,
    taken: Vec<Taken>,
    set: ColumnSet,
    /// There is nothing to tell apart.
    is_one_row: bool,
}

struct Taken {
    column: ColumnId,
    /// As it is above the left side.
    field: FieldRef,
    by_bytes: bool,
}

/// The distinct values, at one place of the tree.
struct Instance {
    /// What stands for each column that is taken.
    values: HashMap<ColumnId, Scalar>,
    /// What is compared, in the order of what is taken.
    matched: Vec<Scalar>,
    /// All columns.
    columns: Vec<ColumnId>,
}

impl Instance {
    fn in_scalar(&self, scalar: Scalar) -> Scalar {
        scalar.replace(&|scalar| self.values.get(&scalar.as_column()?).cloned())
    }

    fn in_relation(&self, relation: Relation) -> Relation {
        let relation = relation.map_inputs(&mut |input| self.in_relation(input));
        relation.map_scalars(&mut |scalar| self.in_scalar(scalar))
    }
}

impl Unnesting<'_> {
    /// The right side of a dependent join, joined with the distinct values of what it takes from the left side; and the
    /// conditions by which its rows belong to those of the left side. `None` where there is something in it that is not
    /// taken apart yet.
    pub(super) fn over_domain(
        &mut self,
        left: &mut Relation,
        right: Relation,
    ) -> Result<Option<Pulled>> {
        let free = right.free_columns().clone();
        let of_left = free.intersection(&left.column_set());
        let left = match self.source(left, &of_left) {
            Some(source) => source,
            None => {
                let Some(same) = self.repeatable(left.clone())? else {
                    return Ok(None);
                };
                *left = same;
                left.clone()
            }
        };
        self.copied += left.operators();
        if self.copied > MAX_COPIED {
            return Ok(None);
        }
        let not_null = left.properties().not_null.clone();
        let is_one_row = left.properties().has_at_most_one_row();
        let mut taken = Vec::new();
        for column in of_left.iter() {
            let field = Arc::clone(&self.columns.get(column).field);
            let nullable = !not_null.contains(column);
            let field = match field.is_nullable() == nullable {
                true => field,
                false => Arc::new(field.as_ref().clone().with_nullable(nullable)),
            };
            let by_bytes = match SqlType::of(&field) {
                // Groups show what a DECIMAL shows.
                SqlType::Decimal {
                    scale, decimals, ..
                } if decimals < scale && !is_one_row => return Ok(None),
                ty => ty.is_text() || ty == SqlType::Json,
            };
            taken.push(Taken {
                column,
                field,
                by_bytes,
            });
        }
        let set = taken.iter().map(|taken| taken.column).collect();
        let domain = Domain {
            left,
            taken,
            set,
            is_one_row,
        };
        let Some((relation, instance)) = self.push(right, &domain)? else {
            return Ok(None);
        };
        let mut conditions = Vec::with_capacity(domain.taken.len());
        for (taken, matched) in domain.taken.iter().zip(&instance.matched) {
            let value = self.matched(
                Scalar::column(taken.column, Arc::clone(&taken.field)),
                taken,
            )?;
            conditions.push(self.same(value, matched.clone())?);
        }
        Ok(Some(Pulled {
            relation,
            conditions,
        }))
    }

    /// What may be computed twice, and has all values that a tree has of these columns. It may have more of them.
    fn source(&mut self, relation: &Relation, taken: &ColumnSet) -> Option<Relation> {
        if taken.is_empty() {
            return Some(Relation::unit());
        }
        if !taken.is_subset(&relation.column_set()) {
            return None;
        }
        if is_repeatable(relation) && !self.shows_any_text(relation) {
            return Some(relation.clone());
        }
        match relation.operator() {
            Operator::Filter(node) => self.source(&node.input, taken),
            Operator::Project(node) => {
                let items = node.items.iter();
                let items: Vec<Item> = items
                    .filter(|item| taken.contains(item.column))
                    .cloned()
                    .collect();
                if items.iter().any(|item| item.value.is_volatile()) {
                    return None;
                }
                let mut needed = ColumnSet::new();
                items
                    .iter()
                    .for_each(|item| item.value.add_columns(&mut needed));
                Some(self.source(&node.input, &needed)?.project(items))
            }
            Operator::Expand(node) => match taken.is_subset(&node.input.column_set()) {
                true => self.source(&node.input, taken),
                false => None,
            },
            Operator::Window(node) => self.source(&node.input, taken),
            Operator::Sort(node) => self.source(&node.input, taken),
            Operator::Limit(node) => self.source(&node.input, taken),
            Operator::Group(node) if node.rollup.is_none() => self.source_of_group(node, taken),
            Operator::DependentJoin(join) => self.source(&join.left, taken),
            Operator::Join(join) => {
                let (of_left, of_right) = (
                    taken.clone().intersection(&join.left.column_set()),
                    taken.clone().intersection(&join.right.column_set()),
                );
                let left = self.source(&join.left, &of_left)?;
                match join.kind {
                    _ if taken.is_subset(&of_left) => Some(left),
                    JoinKind::Inner if of_left.is_empty() => self.source(&join.right, &of_right),
                    JoinKind::Inner | JoinKind::LeftOuter => {
                        let mut right = self.source(&join.right, &of_right)?;
                        if join.kind == JoinKind::LeftOuter {
                            right = self.or_null(right, &of_right)?;
                        }
                        Some(left.join(JoinKind::Inner, right, None))
                    }
                    _ => None,
                }
            }
            Operator::Scan(_)
            | Operator::Values(_)
            | Operator::Recursive(_)
            | Operator::SetOperation(_)
            | Operator::Group(_) => None,
        }
    }

    /// What groups show of one of their rows is shown by that row, too.
    fn source_of_group(&mut self, group: &Group, taken: &ColumnSet) -> Option<Relation> {
        if taken.is_subset(&group.input.column_set()) {
            return self.source(&group.input, taken);
        }
        let shown = group
            .aggregates
            .iter()
            .filter(|(id, _)| taken.contains(*id));
        let shown: Vec<_> = shown.collect();
        let of_groups: ColumnSet = shown.iter().map(|(id, _)| *id).collect();
        let others = taken.clone().difference(&of_groups);
        // Those that are the same each time.
        let is_shown_by_any = |column: &ColumnId| {
            others.contains(*column) && SqlType::of(&self.columns.get(*column).field).is_text()
        };
        if shown.iter().all(|aggregate| is_exact(aggregate))
            && !group.carried.iter().any(|column| others.contains(*column))
            && !group.keys.iter().any(is_shown_by_any)
            && is_repeatable(&group.input)
            && !self.shows_any_text(&group.input)
        {
            let aggregates = shown.into_iter().cloned().collect();
            let input = group.input.as_ref().clone();
            return Some(input.group(group.keys.clone(), Vec::new(), aggregates));
        }
        // Values of several rows would be paired in every way.
        let [(id, aggregate)] = shown.as_slice() else {
            return None;
        };
        let [argument] = aggregate.arguments() else {
            return None;
        };
        let is_of_one_row = matches!(
            aggregate.name(),
            "min" | "max" | "any_value" | "first_value"
        );
        let field = &self.columns.get(*id).field;
        let is_same_type = field.data_type() == argument.field().data_type()
            && field.metadata() == argument.field().metadata();
        if !is_of_one_row || !is_same_type || argument.is_volatile() || !others.is_empty() {
            return None;
        }
        let input = self.source(&group.input, &argument.columns())?;
        let values = input.project(vec![Item {
            column: *id,
            value: (*argument).clone(),
        }]);
        self.or_null(values, &of_groups)
    }

    /// The rows with these columns alone, and one of NULLs.
    fn or_null(&mut self, relation: Relation, shown: &ColumnSet) -> Option<Relation> {
        let (mut values, mut nulls, mut columns) = (Vec::new(), Vec::new(), Vec::new());
        for id in shown.iter() {
            let known = self.columns.get(id).clone();
            let field = Arc::clone(&known.field);
            let null = ScalarValue::try_from(field.data_type()).ok()?;
            values.push(Item {
                column: self.columns.add(known.clone()),
                value: Scalar::column(id, Arc::clone(&field)),
            });
            nulls.push(Item {
                column: self.columns.add(known),
                value: Scalar::typed_literal(null, field.metadata().clone()),
            });
            columns.push(id);
        }
        let inputs = vec![relation.project(values), Relation::unit().project(nulls)];
        Some(Relation::set_operation(SetKind::Union, inputs, columns))
    }

    fn same(&self, one: Scalar, other: Scalar) -> Result<Scalar> {
        self.typing
            .comparison(Comparison::NullSafeEqual, one, other)
    }

    /// What a value is compared by.
    fn matched(&self, value: Scalar, taken: &Taken) -> Result<Scalar> {
        match taken.by_bytes {
            true => self.typing.call("$cast_binary", vec![value]),
            false => Ok(value),
        }
    }

    /// The distinct values once more.
    fn instance(&mut self, domain: &Domain) -> Result<(Relation, Instance)> {
        let mut instance = Instance {
            values: HashMap::new(),
            matched: Vec::new(),
            columns: Vec::new(),
        };
        let (mut items, mut keys, mut carried) = (Vec::new(), Vec::new(), Vec::new());
        for taken in &domain.taken {
            let value = Scalar::column(taken.column, Arc::clone(&taken.field));
            let column = self.columns.add_computed("taken", Arc::clone(&taken.field));
            let shown = Scalar::column(column, Arc::clone(&taken.field));
            items.push(Item {
                column,
                value: value.clone(),
            });
            instance.columns.push(column);
            instance.values.insert(taken.column, shown.clone());
            if !taken.by_bytes {
                keys.push(column);
                instance.matched.push(shown);
                continue;
            }
            let bytes = self.matched(value, taken)?;
            let field = Arc::clone(bytes.field());
            let key = self.columns.add_computed("bytes", Arc::clone(&field));
            items.push(Item {
                column: key,
                value: bytes,
            });
            carried.push(column);
            keys.push(key);
            instance.columns.push(key);
            instance.matched.push(Scalar::column(key, field));
        }
        let relation = domain.left.clone().project(items);
        let relation = match domain.is_one_row {
            true => relation,
            false => relation.group(keys, carried, Vec::new()),
        };
        Ok((relation, instance))
    }

    /// `D djoin relation`. Its columns are those of both.
    fn push(
        &mut self,
        relation: Relation,
        domain: &Domain,
    ) -> Result<Option<(Relation, Instance)>> {
        if !relation.free_columns().intersects(&domain.set) {
            let (values, instance) = self.instance(domain)?;
            if relation.is_unit() {
                return Ok(Some((values, instance)));
            }
            let product = values.join(JoinKind::Inner, relation, None);
            return Ok(Some((product, instance)));
        }
        match relation.into_operator() {
            Operator::Filter(Filter { input, condition }) => {
                let Some((input, instance)) = self.push(*input, domain)? else {
                    return Ok(None);
                };
                let condition = instance.in_scalar(condition);
                Ok(Some((input.filter(condition), instance)))
            }
            Operator::Project(Project { input, items, .. }) => {
                let Some((input, instance)) = self.push(*input, domain)? else {
                    return Ok(None);
                };
                let items = items.into_iter().map(|item| Item {
                    value: instance.in_scalar(item.value),
                    ..item
                });
                let items: Vec<Item> = items.collect();
                let kept = instance.columns.iter().map(|id| self.passed_on(*id));
                let items = items.into_iter().chain(kept).collect();
                Ok(Some((input.project(items), instance)))
            }
            Operator::Sort(sort) => self.push(*sort.input, domain),
            Operator::Group(group) => self.push_group(group, domain),
            Operator::Limit(limit) => {
                let (input, order) = super::unnest::ordered_input(*limit.input);
                let Some((input, instance)) = self.push(input, domain)? else {
                    return Ok(None);
                };
                let order = order.into_iter().map(|mut key| {
                    key.value = instance.in_scalar(key.value);
                    key
                });
                let order = order.collect();
                let keys = instance.matched.clone();
                let relation = self.first_rows(input, keys, order, limit.skip, limit.fetch)?;
                Ok(Some((relation, instance)))
            }
            Operator::Window(window) => {
                let Some((input, instance)) = self.push(*window.input, domain)? else {
                    return Ok(None);
                };
                let functions = window.functions.into_iter().map(|(id, function)| {
                    let function =
                        function.map_operands(&mut |operand| instance.in_scalar(operand));
                    let mut partition_by = function.partition_by().to_vec();
                    partition_by.extend(instance.matched.iter().cloned());
                    (id, function.with_partition_by(partition_by))
                });
                let functions = functions.collect();
                Ok(Some((input.window(functions), instance)))
            }
            Operator::Expand(mut expand) => {
                let Some((input, instance)) = self.push(*expand.input, domain)? else {
                    return Ok(None);
                };
                expand.document = instance.in_scalar(expand.document);
                expand.kept.extend(&instance.columns);
                expand.input = Box::new(input);
                Ok(Some((expand.relation(), instance)))
            }
            Operator::Join(join) => self.push_join(join, domain),
            Operator::DependentJoin(join) => match join.kind {
                DependentKind::Single(value) => self.push_single(join, value, domain),
                DependentKind::Inner | DependentKind::LeftOuter => self.push_lateral(join, domain),
                _ => Ok(None),
            },
            Operator::SetOperation(operation) => self.push_set_operation(operation, domain),
            Operator::Values(Values { columns, mut rows }) if rows.len() == 1 => {
                let (values, instance) = self.instance(domain)?;
                let items = columns.into_iter().zip(rows.remove(0));
                let items = items.map(|(column, value)| Item {
                    column,
                    value: instance.in_scalar(value),
                });
                let items: Vec<Item> = items.collect();
                let kept = instance.columns.iter().map(|id| self.passed_on(*id));
                let items = items.into_iter().chain(kept).collect();
                Ok(Some((values.project(items), instance)))
            }
            Operator::Values(_) | Operator::Scan(_) | Operator::Recursive(_) => Ok(None),
        }
    }

    fn push_group(
        &mut self,
        group: Group,
        domain: &Domain,
    ) -> Result<Option<(Relation, Instance)>> {
        // The group of all rows would be there for values that have rows alone.
        if group.rollup.is_some() {
            return Ok(None);
        }
        let Some((input, instance)) = self.push(*group.input, domain)? else {
            return Ok(None);
        };
        let aggregates = group.aggregates.into_iter().map(|(id, aggregate)| {
            let aggregate = aggregate.map_arguments(&mut |argument| instance.in_scalar(argument));
            (id, aggregate)
        });
        let aggregates: Vec<_> = aggregates.collect();
        let matched: Vec<ColumnId> = instance
            .matched
            .iter()
            .filter_map(Scalar::as_column)
            .collect();
        let of_values = instance.columns.iter().copied();
        let of_values = of_values.filter(|column| !matched.contains(column));
        let is_whole = group.keys.is_empty();
        let mut keys = group.keys;
        keys.extend(&matched);
        let mut carried = group.carried;
        carried.retain(|column| !keys.contains(column));
        carried.extend(of_values);
        if !is_whole {
            return Ok(Some((input.group(keys, carried, aggregates), instance)));
        }
        // There is a group for every value, also where there are no rows.
        let (values, all) = self.instance(domain)?;
        let mut items: Vec<Item> = all.columns.iter().map(|id| self.passed_on(*id)).collect();
        let mut counted = Vec::with_capacity(aggregates.len());
        for (id, aggregate) in aggregates {
            let field = Arc::new(aggregate.field().as_ref().clone().with_nullable(true));
            let column = self
                .columns
                .add_computed(aggregate.name(), Arc::clone(&field));
            let value = Scalar::column(column, field);
            let value = match aggregate.counts() {
                true => {
                    let zero = Scalar::literal(ScalarValue::Int64(Some(0)));
                    self.typing.call("coalesce", vec![value, zero])?
                }
                false => value,
            };
            items.push(Item { column: id, value });
            counted.push((column, aggregate));
        }
        for column in carried
            .iter()
            .filter(|column| !instance.columns.contains(column))
        {
            items.push(self.passed_on(*column));
        }
        let groups = input.group(keys, carried, counted);
        let condition = self.all_same(&all, &instance)?;
        let joined = values.join(JoinKind::LeftOuter, groups, Some(condition));
        Ok(Some((joined.project(items), all)))
    }

    fn all_same(&self, one: &Instance, other: &Instance) -> Result<Scalar> {
        let pairs = one.matched.iter().zip(&other.matched);
        let same = pairs.map(|(one, other)| self.same(one.clone(), other.clone()));
        Ok(Scalar::and(same.collect::<Result<Vec<_>>>()?))
    }

    fn push_join(&mut self, join: Join, domain: &Domain) -> Result<Option<(Relation, Instance)>> {
        let takes = |relation: &Relation| relation.free_columns().intersects(&domain.set);
        let takes_right = takes(&join.right);
        // An inner join that takes on its right side alone.
        if join.kind == JoinKind::Inner && takes_right && !takes(&join.left) {
            let Some((right, instance)) = self.push(*join.right, domain)? else {
                return Ok(None);
            };
            let condition = join
                .condition
                .map(|condition| instance.in_scalar(condition));
            return Ok(Some((
                join.left.join(join.kind, right, condition),
                instance,
            )));
        }
        let Some((left, instance)) = self.push(*join.left, domain)? else {
            return Ok(None);
        };
        let mut conditions: Vec<Scalar> = Vec::new();
        conditions.extend(
            join.condition
                .map(|condition| instance.in_scalar(condition)),
        );
        let right = match takes_right {
            false => *join.right,
            true => {
                let Some((right, of_right)) = self.push(*join.right, domain)? else {
                    return Ok(None);
                };
                conditions.push(self.all_same(&instance, &of_right)?);
                right
            }
        };
        let condition = (!conditions.is_empty()).then(|| Scalar::and(conditions));
        Ok(Some((left.join(join.kind, right, condition), instance)))
    }

    /// A subquery that is a value, inside of what is taken apart.
    fn push_single(
        &mut self,
        join: DependentJoin,
        value: ColumnId,
        domain: &Domain,
    ) -> Result<Option<(Relation, Instance)>> {
        let is_of_each_row = join
            .right
            .free_columns()
            .intersects(&join.left.column_set());
        let takes_right = join.right.free_columns().intersects(&domain.set);
        let Some((left, instance)) = self.push(*join.left, domain)? else {
            return Ok(None);
        };
        if !takes_right {
            let relation = left.dependent_join(join.kind, *join.right, None);
            return Ok(Some((relation, instance)));
        }
        if is_of_each_row {
            // It takes everything from the rows that it is run for.
            let right = instance.in_relation(*join.right);
            let relation = left.dependent_join(join.kind, right, None);
            return Ok(Some((relation, instance)));
        }
        let right = self.of_one_row(*join.right, value)?;
        let Some((right, of_right)) = self.push(right, domain)? else {
            return Ok(None);
        };
        let condition = self.all_same(&instance, &of_right)?;
        Ok(Some((
            left.join(JoinKind::LeftOuter, right, Some(condition)),
            instance,
        )))
    }

    /// Rows that are run for each row of the left side. They take everything from these.
    fn push_lateral(
        &mut self,
        join: DependentJoin,
        domain: &Domain,
    ) -> Result<Option<(Relation, Instance)>> {
        let Some((left, instance)) = self.push(*join.left, domain)? else {
            return Ok(None);
        };
        let right = instance.in_relation(*join.right);
        let condition = join
            .condition
            .map(|condition| instance.in_scalar(condition));
        let relation = left.dependent_join(join.kind, right, condition);
        Ok(Some((relation, instance)))
    }

    fn push_set_operation(
        &mut self,
        operation: SetOperation,
        domain: &Domain,
    ) -> Result<Option<(Relation, Instance)>> {
        if operation.kind != SetKind::Union {
            return Ok(None);
        }
        let mut inputs = Vec::with_capacity(operation.inputs.len());
        let mut like = None;
        for input in operation.inputs {
            let own = input.columns().to_vec();
            let Some((input, instance)) = self.push(input, domain)? else {
                return Ok(None);
            };
            let columns = own.iter().chain(&instance.columns);
            let items = columns.map(|id| self.passed_on(*id)).collect();
            inputs.push(input.project(items));
            like = Some(instance);
        }
        let Some(like) = like else {
            return Ok(None);
        };
        // The columns of the whole are new.
        let mut new = HashMap::new();
        for column in &like.columns {
            let known = self.columns.get(*column).clone();
            new.insert(*column, self.columns.add(known));
        }
        let renamed = |scalar: &Scalar| {
            let column = scalar.as_column().and_then(|column| new.get(&column));
            column.map(|column| Scalar::column(*column, Arc::clone(scalar.field())))
        };
        let columns: Vec<ColumnId> = like
            .columns
            .iter()
            .filter_map(|id| new.get(id).copied())
            .collect();
        let instance = Instance {
            values: like
                .values
                .iter()
                .filter_map(|(taken, value)| Some((*taken, renamed(value)?)))
                .collect(),
            matched: like.matched.iter().filter_map(renamed).collect(),
            columns: columns.clone(),
        };
        let columns = operation.columns.into_iter().chain(columns).collect();
        let relation = Relation::set_operation(SetKind::Union, inputs, columns);
        Ok(Some((relation, instance)))
    }
}
