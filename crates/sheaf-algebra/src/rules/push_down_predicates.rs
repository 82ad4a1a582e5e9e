//! `filter p (A join B)  =  (filter p A) join B`, where `p` names columns of `A` alone, and its relatives.
//!
//! ```text
//!   filter p (project A)           project (filter p' A)        p' has what the list computes for its columns
//!   filter p (A left join B)       (filter p A) left join B     p names columns of A alone
//!   filter p (A left join B)       filter p (A join B)          p is not true where the columns of B are NULL
//!   filter p (A semijoin B)        (filter p A) semijoin B      the same for antijoins and mark joins
//!   filter p (group by k of A)     group by k of (filter p A)   p names columns of k alone, and k is not empty
//!   filter p (window by k of A)    window by k of (filter p A)  p names columns of k alone
//!   filter p (A union B)           (filter p A) union (filter p B)
//!   A join B on p and q            (filter p A) join B on q     p names columns of A alone; not of a left join
//! ```
//!
//! What the sides of a join are filtered by is filled up with what follows from it ([`super::infer_predicates`]).
//!
//! What is volatile stays where it is: it matters for which rows it is computed. Nothing is pushed below a limit, and
//! nothing below what assigns user variables: `(SELECT a, @n := @n + 1 FROM t) d WHERE a = 5` counts all rows.

use std::collections::HashMap;

use super::infer_predicates::{OfSides, inferred};
use crate::column::ColumnId;
use crate::column_set::ColumnSet;
use crate::properties::nullability::refuses_missing;
use crate::relation::{
    DependentJoin, DependentKind, Filter, Group, Item, Join, JoinKind, Operator, Project, Relation,
    SetKind, SetOperation, Sort, Window,
};
use crate::scalar::{Scalar, WindowFunction};

/// A condition does not grow by more than this: what is computed twice at each level doubles with each.
const MAX_MORE_NODES: usize = 2_000;

pub fn apply(relation: Relation) -> Relation {
    push(relation, Vec::new())
}

/// The relation with conditions, as far down as they may go.
fn push(relation: Relation, mut conditions: Vec<Scalar>) -> Relation {
    match relation.into_operator() {
        Operator::Filter(Filter { input, condition }) => {
            let assigned_for = match condition.is_of_variables() {
                true => std::mem::take(&mut conditions),
                false => Vec::new(),
            };
            let (stays, moves): (Vec<_>, Vec<_>) = condition
                .into_conjuncts()
                .into_iter()
                .partition(Scalar::is_volatile);
            conditions.extend(moves);
            let relation = filtered(push(*input, conditions), stays);
            filtered(relation, assigned_for)
        }
        Operator::Project(Project {
            input,
            items,
            derived,
        }) => {
            let assigns = items.iter().any(|item| item.value.is_of_variables());
            let (of_items, mut stays) = split_by(conditions, |condition| {
                !assigns && is_computed_below(condition, &items)
            });
            let mut below = Vec::with_capacity(of_items.len());
            for condition in of_items {
                let computed = with_items(condition.clone(), &items);
                match computed.nodes() <= condition.nodes() + MAX_MORE_NODES {
                    true => below.push(computed),
                    false => stays.push(condition),
                }
            }
            let input = push(*input, below);
            let input = Box::new(input);
            let project = Project {
                input,
                items,
                derived,
            };
            filtered(Operator::Project(project).into(), stays)
        }
        Operator::Sort(Sort { input, keys }) => push(*input, conditions).sort(keys),
        Operator::Group(group) => {
            let keys: ColumnSet = group.keys.iter().copied().collect();
            let others: ColumnSet = group.carried.iter().copied().collect();
            let aggregates = group.aggregates.iter().map(|(id, _)| *id);
            let others: ColumnSet = others.iter().chain(aggregates).collect();
            let is_plain = group.rollup.is_none();
            let (below, stays) = split_by(conditions, |condition| {
                let columns = condition.columns();
                is_plain && columns.intersects(&keys) && !columns.intersects(&others)
            });
            let input = Box::new(push(*group.input, below));
            filtered(Operator::Group(Group { input, ..group }).into(), stays)
        }
        Operator::SetOperation(operation) => set_operation(operation, conditions),
        Operator::Join(join) => push_into_join(join, conditions),
        Operator::DependentJoin(mut join) => {
            // The right side is for the rules of dependent joins.
            let (below, stays) = split_by_left(conditions, &join);
            join.left = Box::new(push(*join.left, below));
            join.right = Box::new(push(*join.right, Vec::new()));
            filtered(Operator::DependentJoin(join).into(), stays)
        }
        Operator::Expand(mut expand) => {
            let (kept, others): (ColumnSet, ColumnSet) = (
                expand.kept.iter().copied().collect(),
                expand.columns.iter().copied().collect(),
            );
            let (below, stays) = split_by(conditions, |condition| is_of(condition, &kept, &others));
            expand.input = Box::new(push(*expand.input, below));
            filtered(expand.relation(), stays)
        }
        Operator::Window(Window { input, functions }) => {
            let (below, stays) = split_by(conditions, |condition| {
                let columns = condition.columns();
                let of_each = |function: &WindowFunction| {
                    let partition = function.partition_by().iter();
                    let partition: ColumnSet = partition.filter_map(Scalar::as_column).collect();
                    columns.is_subset(&partition)
                };
                !columns.is_empty() && functions.iter().all(|(_, function)| of_each(function))
            });
            filtered(push(*input, below).window(functions), stays)
        }
        operator @ (Operator::Scan(_)
        | Operator::Values(_)
        | Operator::Limit(_)
        | Operator::Recursive(_)) => {
            let relation = Relation::from(operator);
            filtered(
                relation.map_inputs(&mut |input| push(input, Vec::new())),
                conditions,
            )
        }
    }
}

/// Conditions on the left side of a dependent join, and those that name what it adds.
fn split_by_left(conditions: Vec<Scalar>, join: &DependentJoin) -> (Vec<Scalar>, Vec<Scalar>) {
    let mut others = match join.kind {
        DependentKind::Mark(column)
        | DependentKind::Found(column)
        | DependentKind::Single(column) => [column].into_iter().collect(),
        _ => ColumnSet::new(),
    };
    others.union_with(&join.right.column_set());
    let left = join.left.column_set();
    split_by(conditions, |condition| is_of(condition, &left, &others))
}

/// `filter p (A djoin B)  =  (filter p A) djoin B`, before there is a join: `B` is wanted for fewer rows then. A
/// condition that names columns from further out stays: what `B` is computed for would depend on them, too.
pub(super) fn below_dependent_joins(relation: Relation) -> Relation {
    match relation.into_operator() {
        Operator::Filter(Filter { input, condition }) => match input.into_operator() {
            Operator::DependentJoin(mut join)
                if !condition.is_of_variables() && !join.right.contains_volatile() =>
            {
                let left = join.left.column_set();
                let (below, mut stays) = split_by_left(condition.into_conjuncts(), &join);
                let (below, taken): (Vec<_>, Vec<_>) = below
                    .into_iter()
                    .partition(|condition| condition.columns().is_subset(&left));
                stays.extend(taken);
                join.left = Box::new(below_dependent_joins(filtered(*join.left, below)));
                filtered(Operator::DependentJoin(join).into(), stays)
            }
            operator => Relation::from(operator).filter(condition),
        },
        operator => operator.into(),
    }
}

fn filtered(relation: Relation, conditions: Vec<Scalar>) -> Relation {
    match conditions.is_empty() {
        true => relation,
        false => relation.filter(Scalar::and(conditions)),
    }
}

fn split_by(conditions: Vec<Scalar>, goes: impl Fn(&Scalar) -> bool) -> (Vec<Scalar>, Vec<Scalar>) {
    conditions
        .into_iter()
        .partition(|condition| goes(condition) && !condition.is_volatile())
}

/// Whether a condition can be tested by one side alone. What names neither stays where it is.
fn is_of(condition: &Scalar, side: &ColumnSet, other: &ColumnSet) -> bool {
    let columns = condition.columns();
    columns.intersects(side) && !columns.intersects(other)
}

/// Whether the items that a condition names may be computed more than once.
fn is_computed_below(condition: &Scalar, items: &[Item]) -> bool {
    let columns = condition.columns();
    let mut named = items
        .iter()
        .filter(|item| columns.contains(item.column))
        .peekable();
    named.peek().is_some() && named.all(|item| !item.value.is_volatile())
}

fn with_items(condition: Scalar, items: &[Item]) -> Scalar {
    condition.replace(&|scalar| {
        let column = scalar.as_column()?;
        let item = items.iter().find(|item| item.column == column)?;
        Some(item.value.clone())
    })
}

fn set_operation(operation: SetOperation, conditions: Vec<Scalar>) -> Relation {
    let own: ColumnSet = operation.columns.iter().copied().collect();
    let (below, stays) = split_by(conditions, |condition| condition.columns().intersects(&own));
    let columns = operation.columns.clone();
    let kind = operation.kind;
    let inputs = operation.inputs.into_iter().enumerate();
    let inputs = inputs.map(|(at, input)| {
        // What the right side lacks does not come from it.
        if kind != SetKind::Union && at > 0 {
            return push(input, Vec::new());
        }
        let of_input: HashMap<ColumnId, ColumnId> = columns
            .iter()
            .copied()
            .zip(input.columns().iter().copied())
            .collect();
        let conditions = below.iter().map(|condition| {
            condition.clone().replace(&|scalar| {
                let column = of_input.get(&scalar.as_column()?)?;
                Some(Scalar::column(*column, scalar.field().clone()))
            })
        });
        let conditions = conditions.collect();
        push(input, conditions)
    });
    let inputs = inputs.collect();
    filtered(Relation::set_operation(kind, inputs, columns), stays)
}

fn push_into_join(mut join: Join, conditions: Vec<Scalar>) -> Relation {
    let (left, right) = (join.left.column_set(), join.right.column_set());
    if join.kind == JoinKind::LeftOuter {
        let refuses = |condition: &Scalar| refuses_missing(condition, &right);
        if conditions.iter().any(refuses) {
            join.kind = JoinKind::Inner;
        }
    }
    let mut own = join
        .condition
        .take()
        .map_or_else(Vec::new, Scalar::into_conjuncts);
    let mut stays = Vec::new();
    let (mut to_left, mut to_right) = (Vec::new(), Vec::new());
    match join.kind {
        JoinKind::Inner => {
            let (own_stay, mut all): (Vec<_>, Vec<_>) =
                own.into_iter().partition(Scalar::is_volatile);
            own = own_stay;
            all.extend(conditions);
            for condition in all {
                match condition {
                    condition if condition.is_volatile() => stays.push(condition),
                    condition if is_of(&condition, &left, &right) => to_left.push(condition),
                    condition if is_of(&condition, &right, &left) => to_right.push(condition),
                    condition if condition.columns().intersects(&left) => own.push(condition),
                    condition => stays.push(condition),
                }
            }
            for condition in own.iter().filter(|condition| !condition.is_volatile()) {
                to_left.extend(condition.list_of(&left, &right));
                to_right.extend(condition.list_of(&right, &left));
            }
        }
        JoinKind::LeftOuter => {
            (to_left, stays) = split_by(conditions, |condition| is_of(condition, &left, &right));
            (to_right, own) = split_by(own, |condition| is_of(condition, &right, &left));
        }
        kind => {
            let mut others = right.clone();
            if let JoinKind::Mark(mark) = kind {
                others.insert(mark);
            }
            (to_left, stays) = split_by(conditions, |condition| is_of(condition, &left, &others));
            (to_right, own) = split_by(own, |condition| is_of(condition, &right, &left));
            if kind == JoinKind::Semi {
                let (of_left, others) = split_by(own, |condition| is_of(condition, &left, &right));
                to_left.extend(of_left);
                own = others;
            }
        }
    }
    let mut to = OfSides {
        left: to_left,
        right: to_right,
    };
    let inferred = inferred(&join, &own, &to);
    to.left.extend(inferred.left);
    to.right.extend(inferred.right);
    join.left = Box::new(push(*join.left, to.left));
    join.right = Box::new(push(*join.right, to.right));
    join.condition = (!own.is_empty()).then(|| Scalar::and(own));
    filtered(Operator::Join(join).into(), stays)
}
