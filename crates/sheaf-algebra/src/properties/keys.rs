//! Keys: sets of columns on which no two rows agree, NULL being equal to NULL.
//!
//! A table has its primary key, and the unique indexes over whole columns that are NOT NULL. A join has the keys of one
//! side where each row of that side finds at most one partner, and a key of both together always.

use datafusion_common::Constraint;

use super::{RightSide, exact_column, sides};
use crate::column_set::ColumnSet;
use crate::relation::{Operator, Relation, Scan};

/// More keys than these are of no use.
const MAX_KEYS: usize = 8;

pub(super) fn of(operator: &Operator) -> Vec<ColumnSet> {
    let mut keys = match operator {
        Operator::Scan(scan) => of_table(scan),
        Operator::Filter(filter) => filter.input.properties().keys.clone(),
        // Keys of columns that are not shown go in `Properties::of`.
        Operator::Project(project) => project.input.properties().keys.clone(),
        Operator::Window(window) => window.input.properties().keys.clone(),
        Operator::Sort(sort) => sort.input.properties().keys.clone(),
        Operator::Limit(limit) => match limit.fetch {
            Some(0 | 1) => vec![ColumnSet::new()],
            _ => limit.input.properties().keys.clone(),
        },
        Operator::Group(group) => {
            let own = group.keys.iter().copied().chain(group.rollup).collect();
            match group.rollup {
                Some(_) => vec![own],
                None => {
                    let mut keys = group.input.properties().keys.clone();
                    keys.push(own);
                    keys
                }
            }
        }
        Operator::Values(values) => match values.rows.len() {
            0 | 1 => vec![ColumnSet::new()],
            _ => Vec::new(),
        },
        Operator::Expand(_) | Operator::SetOperation(_) | Operator::Recursive(_) => Vec::new(),
        Operator::Join(_) | Operator::DependentJoin(_) => of_join(operator),
    };
    keys.truncate(MAX_KEYS);
    keys
}

fn of_table(scan: &Scan) -> Vec<ColumnSet> {
    let constraints = scan
        .source
        .constraints()
        .into_iter()
        .flat_map(|all| all.iter());
    let keys = constraints.filter_map(|constraint| match constraint {
        Constraint::PrimaryKey(positions) => {
            let columns = positions.iter().map(|position| scan.columns.get(*position));
            columns.map(|column| column.copied()).collect::<Option<_>>()
        }
        Constraint::Unique(_) => None,
    });
    keys.collect()
}

fn of_join(operator: &Operator) -> Vec<ColumnSet> {
    let Some(sides) = sides(operator) else {
        return Vec::new();
    };
    let (left, right) = (
        &sides.left.properties().keys,
        &sides.right.properties().keys,
    );
    if sides.keeps_left_rows || sides.right_side == RightSide::Tested {
        return left.clone();
    }
    let (of_left, of_right) = equal_columns(sides.condition, sides.left, sides.right);
    let mut keys = Vec::new();
    if right.iter().any(|key| key.is_subset(&of_right)) {
        keys.extend(left.iter().cloned());
    }
    if sides.right_side == RightSide::Shown && left.iter().any(|key| key.is_subset(&of_left)) {
        keys.extend(right.iter().cloned());
    }
    if keys.is_empty() {
        let pairs = left
            .iter()
            .flat_map(|left| right.iter().map(move |right| (left, right)));
        keys.extend(pairs.map(|(left, right)| left.clone().union(right)));
    }
    keys
}

/// The columns of each side that a condition makes equal to something of the other side.
pub(crate) fn equal_columns(
    condition: Option<&crate::scalar::Scalar>,
    left: &Relation,
    right: &Relation,
) -> (ColumnSet, ColumnSet) {
    let (left, right) = (left.column_set(), right.column_set());
    let (mut of_left, mut of_right) = (ColumnSet::new(), ColumnSet::new());
    for conjunct in condition
        .into_iter()
        .flat_map(|condition| condition.conjuncts())
    {
        // What is computed anew for each pair of rows says nothing about how many partners a row has.
        if conjunct.is_volatile() || conjunct.is_of_variables() {
            continue;
        }
        let Some((one, other)) = conjunct.as_equality() else {
            continue;
        };
        for (column, of) in [(one, other), (other, one)] {
            let Some(column) = exact_column(column) else {
                continue;
            };
            let of = of.columns();
            if left.contains(column) && !of.intersects(&left) {
                of_left.insert(column);
            } else if right.contains(column) && !of.intersects(&right) {
                of_right.insert(column);
            }
        }
    }
    (of_left, of_right)
}
