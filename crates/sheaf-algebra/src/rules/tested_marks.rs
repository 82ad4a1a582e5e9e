//! `filter m (A mark join m of B on p)  =  A semijoin B on p`, and with `NOT m` an antijoin.
//!
//! A mark has three values, and a filter takes unknown for false. So the antijoin is by all that may be true:
//!
//! ```text
//!   x IN (SELECT y ..)           m          semijoin on x = y
//!   x NOT IN (SELECT y ..)       NOT m      antijoin on x = y OR x IS NULL OR y IS NULL
//!   x > ALL (SELECT y ..)        NOT m      antijoin on x <= y OR x IS NULL OR y IS NULL
//!   a OR x IN (SELECT y ..)      a OR m     a mark of two values will do, since m is not denied
//! ```
//!
//! A mark is named by the condition that it was made for. Beside that, projections above the filter may hand it on, as
//! they do with all columns of their input where groups or orders are computed. These lose it with its join.

use crate::column::ColumnId;
use crate::column_set::ColumnSet;
use crate::relation::{DependentJoin, DependentKind, Filter, Operator, Project, Relation};
use crate::scalar::{Comparison, Scalar, ScalarKind, Truth};

pub fn apply(relation: Relation) -> Relation {
    without_tested(relation, &mut ColumnSet::new())
}

/// `gone`: the marks that are no columns any more.
fn without_tested(relation: Relation, gone: &mut ColumnSet) -> Relation {
    let relation = match relation.into_operator() {
        Operator::Filter(Filter { input, condition }) => {
            let mut conditions = condition.into_conjuncts();
            let input = tested(*input, &mut conditions, gone);
            match conditions.is_empty() {
                true => return without_tested(input, gone),
                false => input.filter(Scalar::and(conditions)),
            }
        }
        operator => operator.into(),
    };
    let relation = relation.map_inputs(&mut |input| without_tested(input, gone));
    match relation.into_operator() {
        Operator::Project(Project {
            input, mut items, ..
        }) if !gone.is_empty() => {
            items.retain(|item| {
                let handed_on = item.value.as_column();
                !handed_on.is_some_and(|column| gone.contains(column))
            });
            input.project(items)
        }
        operator => operator.into(),
    }
}

/// Below a filter: its conditions that are marks go.
fn tested(relation: Relation, conditions: &mut Vec<Scalar>, gone: &mut ColumnSet) -> Relation {
    match relation.into_operator() {
        Operator::DependentJoin(join) => {
            let DependentJoin {
                kind,
                left,
                right,
                condition,
            } = join;
            let (kind, condition) = match kind {
                DependentKind::Mark(mark) => {
                    let (kind, condition) = tested_mark(mark, condition, conditions);
                    if !matches!(kind, DependentKind::Mark(_) | DependentKind::Found(_)) {
                        gone.insert(mark);
                    }
                    (kind, condition)
                }
                kind => (kind, condition),
            };
            let left = tested(*left, conditions, gone);
            left.dependent_join(kind, *right, condition)
        }
        operator => operator.into(),
    }
}

fn tested_mark(
    mark: ColumnId,
    condition: Option<Scalar>,
    conditions: &mut Vec<Scalar>,
) -> (DependentKind, Option<Scalar>) {
    let mut naming = (0..conditions.len()).filter(|at| conditions[*at].columns().contains(mark));
    let (Some(at), None) = (naming.next(), naming.next()) else {
        return (DependentKind::Mark(mark), condition);
    };
    let is_mark = |scalar: &Scalar| scalar.as_column() == Some(mark);
    match conditions[at].kind() {
        ScalarKind::Column(_) => {
            conditions.remove(at);
            (DependentKind::Semi, condition)
        }
        ScalarKind::Not(operand) if is_mark(operand) => {
            conditions.remove(at);
            (DependentKind::Anti, condition.map(may_be_true))
        }
        _ => match uses(&conditions[at], mark, false) {
            Uses::Affirmed => (DependentKind::Found(mark), condition),
            Uses::Denied => (DependentKind::Found(mark), condition.map(may_be_true)),
            Uses::Both => (DependentKind::Mark(mark), condition),
        },
    }
}

/// How a condition uses a mark.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Uses {
    /// Unknown may stand for false.
    Affirmed,
    /// Unknown may stand for true.
    Denied,
    Both,
}

fn uses(condition: &Scalar, mark: ColumnId, is_denied: bool) -> Uses {
    let of_all = |conditions: &[Scalar]| {
        let naming = conditions
            .iter()
            .filter(|operand| operand.columns().contains(mark));
        let mut uses = naming.map(|operand| uses(operand, mark, is_denied));
        let first = uses.next().unwrap_or(Uses::Both);
        match uses.all(|other| other == first) {
            true => first,
            false => Uses::Both,
        }
    };
    match condition.kind() {
        ScalarKind::Column(_) if is_denied => Uses::Denied,
        ScalarKind::Column(_) => Uses::Affirmed,
        ScalarKind::Not(operand) => uses(operand, mark, !is_denied),
        ScalarKind::And(conditions) | ScalarKind::Or(conditions) => of_all(conditions),
        _ => Uses::Both,
    }
}

/// The condition where unknown is true. Of a comparison that is told by its operands, so that joins see the comparison.
pub(super) fn may_be_true(condition: Scalar) -> Scalar {
    if !condition.is_nullable() {
        return condition;
    }
    match condition.kind() {
        ScalarKind::Comparison {
            operator,
            left,
            right,
        } if *operator != Comparison::NullSafeEqual => {
            let operands = [left, right]
                .into_iter()
                .filter(|operand| operand.is_nullable());
            let nulls = operands.map(|operand| operand.as_ref().clone().is_null());
            Scalar::or(std::iter::once(condition.clone()).chain(nulls))
        }
        ScalarKind::And(conditions) => Scalar::and(conditions.iter().cloned().map(may_be_true)),
        _ => condition.test(Truth::False, true),
    }
}
