//! Columns that are equal in every row in which none of them is NULL, as conditions say it.

use super::{RightSide, plain_column, sides};
use crate::column::ColumnId;
use crate::column_set::ColumnSet;
use crate::relation::{Operator, Relation};
use crate::scalar::Scalar;

pub(super) fn of(operator: &Operator) -> Vec<ColumnSet> {
    let of = |input: &Relation| input.properties().equivalences.clone();
    match operator {
        Operator::Filter(filter) => with_equalities(of(&filter.input), Some(&filter.condition)),
        Operator::Project(project) => of(&project.input),
        Operator::Expand(expand) => of(&expand.input),
        Operator::Window(window) => of(&window.input),
        Operator::Sort(sort) => of(&sort.input),
        Operator::Limit(limit) => of(&limit.input),
        Operator::Group(group) if group.rollup.is_some() => Vec::new(),
        Operator::Group(group) => of(&group.input),
        Operator::Scan(_)
        | Operator::Values(_)
        | Operator::SetOperation(_)
        | Operator::Recursive(_) => Vec::new(),
        Operator::Join(_) | Operator::DependentJoin(_) => {
            let Some(sides) = sides(operator) else {
                return Vec::new();
            };
            let mut classes = of(sides.left);
            if sides.right_side != RightSide::Tested {
                classes.extend(of(sides.right));
            }
            with_equalities(classes, sides.condition.filter(|_| sides.filters))
        }
    }
}

fn with_equalities(mut classes: Vec<ColumnSet>, condition: Option<&Scalar>) -> Vec<ColumnSet> {
    for conjunct in condition.into_iter().flat_map(Scalar::conjuncts) {
        if let Some((one, other)) = conjunct.as_equality()
            && let (Some(one), Some(other)) = (plain_column(one), plain_column(other))
        {
            merge(&mut classes, one, other);
        }
    }
    classes
}

fn merge(classes: &mut Vec<ColumnSet>, one: ColumnId, other: ColumnId) {
    let mut merged: ColumnSet = [one, other].into_iter().collect();
    classes.retain(|class| {
        let overlaps = class.contains(one) || class.contains(other);
        if overlaps {
            merged.union_with(class);
        }
        !overlaps
    });
    classes.push(merged);
}
