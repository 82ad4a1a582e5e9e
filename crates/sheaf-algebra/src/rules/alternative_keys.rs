//! `A join (p or q) B  =  A join p B  union all  A join (q and p is not true) B`, where `p` and `q` are equalities.
//!
//! A join by an OR compares all pairs of rows. Each part of it alone is the key of an index or of a hash table:
//!
//! ```text
//!   o join u on u.k1 = o.a or u.k2 = o.b
//!     =   o join u on u.k1 = o.a
//!         union all  o join u on u.k2 = o.b and (u.k1 = o.a) is not true
//!
//!   o semijoin u on u.k1 = o.a or u.k2 = o.b
//!     =   o semijoin u on u.k1 = o.a
//!         union all  (o antijoin u on u.k1 = o.a) semijoin u on u.k2 = o.b
//!
//!   o antijoin u on u.k1 = o.a or u.k2 = o.b
//!     =   (o antijoin u on u.k1 = o.a) antijoin u on u.k2 = o.b
//! ```
//!
//! What an indexed column is equal to may be computed of the other side: `u.k1 = o.a + 1`.
//!
//! No pair meets two of the parts, and a part that is unknown is not true, so each row comes as often as before. Both
//! sides are read once for each part. So this is for two tables that are joined with nothing else, where each part is
//! the beginning of an index: rows of one side are looked up then, not read, or there are many on both sides.

use super::repeatable::is_repeatable;
use super::unnest::first_of_indexes;
use crate::column_set::ColumnSet;
use crate::properties::plain_column;
use crate::relation::{Join, JoinKind, Operator, Relation, SetKind};
use crate::scalar::{Scalar, ScalarKind, Truth};

/// Parts of an OR that are looked up one by one.
const MAX_PARTS: usize = 4;

pub fn apply(relation: Relation) -> Relation {
    below(relation, false)
}

/// `is_joined`: an operand of a join, whose order is chosen together with that of the others.
fn below(relation: Relation, is_joined: bool) -> Relation {
    match relation.into_operator() {
        Operator::Join(join) => {
            let join = Join {
                left: Box::new(below(*join.left, true)),
                right: Box::new(below(*join.right, true)),
                ..join
            };
            match parts_of(&join).filter(|_| !is_joined) {
                Some(parts) => by_parts(join, parts),
                None => Operator::Join(join).into(),
            }
        }
        operator => {
            // What is above a filter or a list may be the join.
            let is_seen_through = matches!(operator, Operator::Filter(_) | Operator::Project(_));
            let is_joined = is_joined && is_seen_through;
            Relation::from(operator).map_inputs(&mut |input| below(input, is_joined))
        }
    }
}

/// A condition that is an OR of keys.
struct Parts {
    parts: Vec<Scalar>,
    /// What else pairs have to meet.
    rest: Vec<Scalar>,
}

fn parts_of(join: &Join) -> Option<Parts> {
    let condition = join.condition.as_ref()?;
    let is_of_tables = is_table(&join.left) && is_table(&join.right);
    if !matches!(join.kind, JoinKind::Inner | JoinKind::Semi | JoinKind::Anti)
        || !is_of_tables
        || !join.pairs().is_empty()
        || condition.is_volatile()
        || condition.notes()
        || !is_repeatable(&join.left)
        || !is_repeatable(&join.right)
    {
        return None;
    }
    let sides = [&join.left, &join.right].map(|side| Side {
        columns: side.column_set(),
        indexed: first_of_indexes(side),
    });
    let conjuncts = condition.conjuncts();
    let at = conjuncts.iter().position(|conjunct| {
        let ScalarKind::Or(parts) = conjunct.kind() else {
            return false;
        };
        parts.len() <= MAX_PARTS && parts.iter().all(|part| is_key(part, &sides))
    })?;
    let mut rest = conjuncts.to_vec();
    let ScalarKind::Or(parts) = rest.remove(at).kind().clone() else {
        return None;
    };
    Some(Parts {
        parts: parts.to_vec(),
        rest,
    })
}

/// A side of a join.
struct Side {
    columns: ColumnSet,
    /// Those that indexes begin with.
    indexed: ColumnSet,
}

/// A stored table, or some of its rows.
fn is_table(relation: &Relation) -> bool {
    match relation.operator() {
        Operator::Scan(_) => true,
        Operator::Filter(filter) => is_table(&filter.input),
        Operator::Project(project) => !project.has_variables() && is_table(&project.input),
        _ => false,
    }
}

/// Whether a condition is an equality of a column that an index begins with, and a column of the other side, or what is
/// computed of such. Which of two columns has the index does not matter.
fn is_key(part: &Scalar, [left, right]: &[Side; 2]) -> bool {
    let Some((one, other)) = part.as_equality() else {
        return false;
    };
    let is_found = |column: &Scalar, value: &Scalar, own: &Side, others: &Side| {
        let taken = value.columns();
        let is_of_others = !taken.is_empty() && taken.is_subset(&others.columns);
        let value_is_indexed = || plain_column(value).is_some_and(|id| others.indexed.contains(id));
        plain_column(column).is_some_and(|id| {
            own.columns.contains(id)
                && is_of_others
                && (own.indexed.contains(id) || value_is_indexed())
        })
    };
    [(one, other), (other, one)]
        .into_iter()
        .any(|(column, value)| {
            is_found(column, value, left, right) || is_found(column, value, right, left)
        })
}

fn by_parts(join: Join, Parts { parts, rest }: Parts) -> Relation {
    let Join {
        kind, left, right, ..
    } = join;
    let on = |part: &Scalar| {
        Some(Scalar::and(
            std::iter::once(part.clone()).chain(rest.clone()),
        ))
    };
    if kind == JoinKind::Anti {
        return parts.iter().fold(*left, |remaining, part| {
            remaining.join(kind, right.as_ref().clone(), on(part))
        });
    }
    let mut inputs = Vec::with_capacity(parts.len());
    let mut remaining = left.as_ref().clone();
    for (at, part) in parts.iter().enumerate() {
        let right = right.as_ref().clone();
        if kind == JoinKind::Semi {
            let condition = on(part);
            inputs.push(
                remaining
                    .clone()
                    .join(kind, right.clone(), condition.clone()),
            );
            if at + 1 < parts.len() {
                remaining = remaining.join(JoinKind::Anti, right, condition);
            }
            continue;
        }
        let known = parts.iter().take(at);
        let new = known.map(|known| known.clone().test(Truth::True, true));
        let condition = on(part).into_iter().chain(new);
        inputs.push(
            remaining
                .clone()
                .join(kind, right, Some(Scalar::and(condition))),
        );
    }
    let columns = match inputs.first() {
        Some(first) => first.columns().to_vec(),
        None => left.columns().to_vec(),
    };
    Relation::set_operation(SetKind::Union, inputs, columns)
}
