//! Functional dependencies: rows that agree on some columns agree on others. ONLY_FULL_GROUP_BY asks for them.
//!
//! ```text
//!   SELECT a, b, u.name, MAX(c) FROM t JOIN u ON u.id = t.a WHERE b = 5 GROUP BY a
//!   {} -> t.b    a constant          t.a <-> u.id    equal          u.id -> u.name    a key
//! ```
//!
//! A column of a query around is a constant of one run of a subquery. So `t.a = o.a + 1` says that `o.a` determines
//! `t.a`, and whoever asks takes the [free columns](super::Properties::free) as given.
//!
//! The inner side of an outer join may be missing, and is NULL then. So its constants are none above the join. A key of
//! it determines the rest all the same: where it is NULL, so is the rest. An equality of the condition holds where the
//! columns of the outer side are the same that the condition names, since these decide whether there is a partner.

use std::iter;
use std::sync::Arc;

use super::{RightSide, Sides, exact_column, plain_column, sides};
use crate::column::ColumnId;
use crate::column_set::ColumnSet;
use crate::relation::{DependentKind, Operator, Relation};
use crate::scalar::{Comparison, Scalar, ScalarKind};

/// Rows that agree on `from` agree on `to`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dependency {
    pub from: ColumnSet,
    pub to: ColumnSet,
}

/// The dependencies of an operator. It shares those of its inputs: of a thousand joins one above the other, each has
/// those of all below, and a list for each would be memory in the square of their number.
#[derive(Clone, Debug, Default)]
pub struct Dependencies(Option<Arc<Part>>);

#[derive(Debug)]
struct Part {
    of_input: Dependencies,
    own: Vec<Dependency>,
}

impl Dependencies {
    fn with(self, own: Vec<Dependency>) -> Dependencies {
        match own.is_empty() {
            true => self,
            false => Dependencies(Some(Arc::new(Part {
                of_input: self,
                own,
            }))),
        }
    }

    pub fn iter(&self) -> impl Iterator<Item = &Dependency> {
        let mut part = self.0.as_deref();
        let parts = iter::from_fn(move || {
            let found = part?;
            part = found.of_input.0.as_deref();
            Some(found)
        });
        parts.flat_map(|part| &part.own)
    }
}

impl Drop for Part {
    /// One part after the other: there may be more of them than a stack has room for.
    fn drop(&mut self) {
        let mut next = self.of_input.0.take();
        while let Some(mut part) = next.and_then(Arc::into_inner) {
            next = part.of_input.0.take();
        }
    }
}

pub(super) fn of(operator: &Operator) -> Dependencies {
    if let Some(sides) = sides(operator) {
        let mut own = of_join(&sides);
        own.extend(of_subquery(operator));
        return sides.left.properties().dependencies.clone().with(own);
    }
    let input = |input: &Relation| input.properties().dependencies.clone();
    match operator {
        Operator::Scan(scan) => {
            let all: ColumnSet = scan.columns.iter().copied().collect();
            let keys = super::keys::of(operator).into_iter();
            let keys = keys.map(|from| Dependency {
                from,
                to: all.clone(),
            });
            Dependencies::default().with(keys.collect())
        }
        Operator::Filter(filter) => {
            let mut own = Vec::new();
            let computes = |of: &ColumnSet| of.intersects(&filter.input.column_set());
            equalities(&filter.condition, &computes, &mut own);
            input(&filter.input).with(own)
        }
        Operator::Project(project) => {
            let mut own = Vec::new();
            for item in project.items.iter().filter(|item| !item.is_passed_on()) {
                if !item.value.is_volatile() {
                    let (from, to) = (item.value.columns(), [item.column].into_iter().collect());
                    if item.value.as_column().is_some() {
                        // It is the same under another name.
                        let (from, to) = (ColumnSet::clone(&to), ColumnSet::clone(&from));
                        own.push(Dependency { from, to });
                    }
                    own.push(Dependency { from, to });
                }
            }
            input(&project.input).with(own)
        }
        Operator::Expand(expand) => input(&expand.input),
        Operator::Window(window) => input(&window.input),
        Operator::Sort(sort) => input(&sort.input),
        Operator::Limit(limit) => input(&limit.input),
        Operator::Group(group) => {
            // What is rolled up has lost what it determined.
            let below = match group.rollup {
                Some(_) => Dependencies::default(),
                None => input(&group.input),
            };
            let aggregates = group.aggregates.iter().map(|(id, _)| *id);
            let others = group.carried.iter().copied().chain(aggregates);
            below.with(vec![Dependency {
                from: group.keys.iter().copied().chain(group.rollup).collect(),
                to: others.collect(),
            }])
        }
        Operator::Values(_) | Operator::SetOperation(_) | Operator::Recursive(_) => {
            Dependencies::default()
        }
        Operator::Join(_) | Operator::DependentJoin(_) => Dependencies::default(),
    }
}

/// What a join has besides those of its left side.
fn of_join(sides: &Sides<'_>) -> Vec<Dependency> {
    let mut dependencies = Vec::new();
    if sides.right_side == RightSide::Tested {
        return dependencies;
    }
    let of_right = sides.right.properties().dependencies.iter().cloned();
    match sides.right_side {
        RightSide::MayBeMissing => {
            dependencies.extend(of_right.filter(|known| !known.from.is_empty()));
            if let Some(condition) = sides.condition {
                outer_equalities(condition, &sides.right.column_set(), &mut dependencies);
            }
        }
        _ => {
            dependencies.extend(of_right);
            if let Some(condition) = sides.condition.filter(|_| sides.filters) {
                let computes = |of: &ColumnSet| {
                    let (left, right) = (sides.left.column_set(), sides.right.column_set());
                    of.intersects(&left) || of.intersects(&right)
                };
                equalities(condition, &computes, &mut dependencies);
            }
        }
    }
    dependencies
}

/// What a subquery gives for a row follows from what it takes from that, unless it is another one for each row.
fn of_subquery(operator: &Operator) -> Option<Dependency> {
    let Operator::DependentJoin(join) = operator else {
        return None;
    };
    if join.right.varies() {
        return None;
    }
    let column = match join.kind {
        DependentKind::Single(column)
        | DependentKind::Mark(column)
        | DependentKind::Found(column) => column,
        _ => return None,
    };
    let mut from = join.right.free_columns().clone();
    if let Some(condition) = &join.condition {
        condition.add_columns(&mut from);
    }
    let from = from.intersection(&join.left.column_set());
    let to = [column].into_iter().collect();
    Some(Dependency { from, to })
}

/// What a condition says that every row meets. `computes`: whether some of the columns are those of the rows.
fn equalities(
    condition: &Scalar,
    computes: &dyn Fn(&ColumnSet) -> bool,
    found: &mut Vec<Dependency>,
) {
    for (column, of) in equal_columns(condition, computes) {
        let to = [column].into_iter().collect();
        found.push(Dependency { from: of, to });
    }
}

/// What the condition of an outer join says of its inner side.
fn outer_equalities(condition: &Scalar, inner: &ColumnSet, found: &mut Vec<Dependency>) {
    let needed = condition.columns().difference(inner);
    for (column, of) in equal_columns(condition, &|_| true) {
        if inner.contains(column) && !of.intersects(inner) {
            let to = [column].into_iter().collect();
            let from = needed.clone();
            found.push(Dependency { from, to });
        }
    }
}

/// Columns that are equal to something, and the columns of that: none, if it is constant. What is computed of columns
/// of the rows is no constant, and ONLY_FULL_GROUP_BY does not look into it.
fn equal_columns(
    condition: &Scalar,
    computes: &dyn Fn(&ColumnSet) -> bool,
) -> Vec<(ColumnId, ColumnSet)> {
    let conjuncts = condition.conjuncts();
    let equalities = conjuncts.iter().filter_map(Scalar::as_equality);
    let bounds = conjuncts.windows(2).filter_map(equal_bounds);
    let mut found = Vec::new();
    for (one, other) in equalities.chain(bounds) {
        for (side, of) in [(one, other), (other, one)] {
            let Some(column) = exact_column(side) else {
                continue;
            };
            if of.is_volatile() || of.is_of_variables() {
                continue;
            }
            let columns = of.columns();
            let is_plain = columns.is_empty() || plain_column(of).is_some() || !computes(&columns);
            if is_plain {
                found.push((column, columns));
            }
        }
    }
    found
}

/// `x BETWEEN 1 AND 1`, which is `x >= 1` and `x <= 1` side by side: x is equal to its bound.
fn equal_bounds(conjuncts: &[Scalar]) -> Option<(&Scalar, &Scalar)> {
    let [one, other] = conjuncts else {
        return None;
    };
    let (value, low) = at_least(one)?;
    let (high, known) = at_least(other)?;
    (value == known && low == high).then_some((value, low))
}

/// Of an order, the operand that is not less than the other, and that.
fn at_least(condition: &Scalar) -> Option<(&Scalar, &Scalar)> {
    match condition.kind() {
        ScalarKind::Comparison {
            operator: Comparison::GreaterOrEqual,
            left,
            right,
        } => Some((left, right)),
        ScalarKind::Comparison {
            operator: Comparison::LessOrEqual,
            left,
            right,
        } => Some((right, left)),
        _ => None,
    }
}
