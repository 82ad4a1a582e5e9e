//! `(filter p(x) A) join B on x = y  =  (filter p(x) A) join (filter p(y) B) on x = y`, and its relatives.
//!
//! ```text
//!   A left join B, A antijoin B    what holds of A holds of the rows of B that matter
//!   A join B, A semijoin B         what holds of B holds of the rows of A that matter as well
//! ```
//!
//! It is part of [`super::push_down_predicates`], which knows at each join what its sides are filtered by. What is
//! equal are expressions, not only columns: the sort keys of two texts are, while the texts may differ. Nothing is
//! inferred for a mark, which is NULL because of rows that the inferred condition would take away.

use crate::column_set::ColumnSet;
use crate::relation::{Join, JoinKind, Operator, Relation};
use crate::scalar::Scalar;

/// A condition of more nodes than this is not repeated.
const MAX_NODES: usize = 2_000;

/// Conditions that hold of the rows of each side of a join.
pub(super) struct OfSides {
    pub left: Vec<Scalar>,
    pub right: Vec<Scalar>,
}

/// What is inferred for the sides of a join. `own`: the join's condition; `to`: what its sides are about to be filtered
/// by, beside what they have already.
pub(super) fn inferred(join: &Join, own: &[Scalar], to: &OfSides) -> OfSides {
    let mut inferred = OfSides {
        left: Vec::new(),
        right: Vec::new(),
    };
    if matches!(join.kind, JoinKind::Mark(_)) || !own.iter().any(|one| one.as_equality().is_some())
    {
        return inferred;
    }
    let (mut of_left, mut of_right) = (Vec::new(), Vec::new());
    add_holding(&join.left, &mut of_left);
    add_holding(&join.right, &mut of_right);
    of_left.extend(&to.left);
    of_right.extend(&to.right);
    let all = own.iter().chain(of_left.iter().copied());
    let classes = Classes::of(all.chain(of_right.iter().copied()));
    let (left, right) = (join.left.column_set(), join.right.column_set());
    inferred.right = classes.carried(&of_left, &left, &right, &of_right);
    if matches!(join.kind, JoinKind::Inner | JoinKind::Semi) {
        inferred.left = classes.carried(&of_right, &right, &left, &of_left);
    }
    inferred
}

/// Adds conditions that are true of every row of a relation.
fn add_holding<'a>(relation: &'a Relation, holding: &mut Vec<&'a Scalar>) {
    match relation.operator() {
        Operator::Filter(filter) => {
            holding.extend(filter.condition.conjuncts());
            add_holding(&filter.input, holding);
        }
        Operator::Project(project) => add_holding(&project.input, holding),
        Operator::Sort(sort) => add_holding(&sort.input, holding),
        Operator::Limit(limit) => add_holding(&limit.input, holding),
        Operator::Expand(expand) => add_holding(&expand.input, holding),
        Operator::Window(window) => add_holding(&window.input, holding),
        Operator::Join(join) => {
            add_holding(&join.left, holding);
            if join.kind == JoinKind::Inner {
                holding.extend(join.condition.iter().flat_map(Scalar::conjuncts));
                add_holding(&join.right, holding);
            }
        }
        _ => {}
    }
}

/// Expressions that have one value in every row that matters.
struct Classes<'a> {
    classes: Vec<Vec<&'a Scalar>>,
}

impl<'a> Classes<'a> {
    fn of(conditions: impl Iterator<Item = &'a Scalar>) -> Classes<'a> {
        let mut classes: Vec<Vec<&Scalar>> = Vec::new();
        for (one, other) in conditions.filter_map(Scalar::as_equality) {
            let is_fit = |side: &Scalar| {
                // Zero is equal to its negative, which is not the same.
                !side.field().data_type().is_floating()
                    && !side.columns().is_empty()
                    && !side.is_volatile()
            };
            if !is_fit(one) || !is_fit(other) {
                continue;
            }
            let mut merged = vec![one, other];
            classes.retain_mut(|class| {
                let overlaps = class.contains(&one) || class.contains(&other);
                if overlaps {
                    merged.extend(
                        class
                            .drain(..)
                            .filter(|known| *known != one && *known != other),
                    );
                }
                !overlaps
            });
            classes.push(merged);
        }
        Classes { classes }
    }

    /// Conditions of the columns `from`, as conditions of the columns `to`. Those that are known are left out.
    fn carried(
        &self,
        conditions: &[&Scalar],
        from: &ColumnSet,
        to: &ColumnSet,
        known: &[&Scalar],
    ) -> Vec<Scalar> {
        let mut carried: Vec<Scalar> = Vec::new();
        for condition in conditions {
            if self.is_within(condition)
                || !condition.columns().intersects(from)
                || condition.is_volatile()
                || condition.notes()
                || condition.nodes() > MAX_NODES
            {
                continue;
            }
            let other = (*condition).clone().replace(&|part| self.equal(part, to));
            // What a side does not show is named by its conditions as well.
            let is_of_other = is_of(&other, to);
            if is_of_other && !known.contains(&&other) && !carried.contains(&other) {
                carried.push(other);
            }
        }
        carried
    }

    /// What is equal to an expression, and of the columns `to` alone.
    fn equal(&self, expression: &Scalar, to: &ColumnSet) -> Option<Scalar> {
        let mut classes = self.classes.iter();
        let class = classes.find(|class| class.contains(&expression))?;
        // How many digits of a second there are says of what type functions of it are.
        let digits = expression.sql_type().fsp();
        let is_like = |one: &&&Scalar| is_of(one, to) && one.sql_type().fsp() == digits;
        let other = class.iter().find(is_like);
        other.map(|one| (*one).clone())
    }

    /// Whether a condition is one of those that make the classes.
    fn is_within(&self, condition: &Scalar) -> bool {
        condition.as_equality().is_some_and(|(one, other)| {
            let mut classes = self.classes.iter();
            classes.any(|class| class.contains(&one) && class.contains(&other))
        })
    }
}

/// Whether an expression names columns of these, and no others.
fn is_of(expression: &Scalar, columns: &ColumnSet) -> bool {
    let named = expression.columns();
    !named.is_empty() && named.iter().all(|column| columns.contains(column))
}
