//! Rows of documents that the left side has, made of the rows of the left side.
//!
//! ```text
//!   A djoin p (expand d of unit)             filter p (expand d of A)
//!   A left djoin (expand d of unit)          outer expand d of A
//!   A djoin p (filter q B)                   filter p (filter q (A djoin B))
//!   A djoin p (project B)                    filter p (project, and A, of (A djoin B))
//!   A djoin p (B join q C)                   filter p ((A djoin B) join q C)          C takes nothing from A
//! ```

use datafusion_common::ScalarValue;

use super::Unnesting;
use crate::column_set::ColumnSet;
use crate::relation::{
    DependentJoin, DependentKind, Filter, Join, JoinKind, Operator, Project, Relation,
};
use crate::scalar::Scalar;

impl Unnesting<'_> {
    /// The join as it is where it is not of this kind.
    pub(super) fn expanded(
        &self,
        join: DependentJoin,
        outer: &ColumnSet,
    ) -> Result<Relation, Box<DependentJoin>> {
        match join.kind {
            DependentKind::Inner if expands(&join.right, outer) == Some(true) => {
                let expanded = self.over(*join.left, *join.right, outer);
                Ok(match join.condition {
                    Some(condition) => expanded.filter(condition),
                    None => expanded,
                })
            }
            DependentKind::LeftOuter if join.condition.as_ref().is_none_or(is_true) => {
                match join.right.operator() {
                    Operator::Expand(expand) if expand.input.is_unit() => {
                        let mut expand = expand.clone().over(*join.left);
                        expand.keeps_rows = true;
                        Ok(expand.relation())
                    }
                    _ => Err(Box::new(join)),
                }
            }
            _ => Err(Box::new(join)),
        }
    }

    /// `left djoin right`, of a right side that [`expands`].
    fn over(&self, left: Relation, right: Relation, outer: &ColumnSet) -> Relation {
        if !right.free_columns().intersects(outer) {
            return match right.is_unit() {
                true => left,
                false => left.join(JoinKind::Inner, right, None),
            };
        }
        match right.into_operator() {
            Operator::Expand(mut expand) => {
                let shown = left.columns().to_vec();
                let kept = std::mem::take(&mut expand.kept);
                expand.kept = shown.into_iter().chain(kept).collect();
                let input = std::mem::replace(&mut expand.input, Box::new(Relation::unit()));
                expand.input = Box::new(self.over(left, *input, outer));
                expand.relation()
            }
            Operator::Filter(Filter { input, condition }) => {
                self.over(left, *input, outer).filter(condition)
            }
            Operator::Project(Project { input, items, .. }) => {
                let shown = left.columns().iter().map(|id| self.passed_on(*id));
                let items = shown.chain(items).collect();
                self.over(left, *input, outer).project(items)
            }
            Operator::Join(Join {
                kind,
                left: first,
                right: second,
                condition,
            }) => match first.free_columns().intersects(outer) {
                true => self
                    .over(left, *first, outer)
                    .join(kind, *second, condition),
                false => {
                    let expanded = self.over(left, *second, outer);
                    first.join(kind, expanded, condition)
                }
            },
            operator => left.dependent_join(DependentKind::Inner, operator.into(), None),
        }
    }
}

/// Whether rows of documents are made of what is taken from outside; `None` if what is taken is in a place from which
/// the left side cannot be put below it.
fn expands(relation: &Relation, outer: &ColumnSet) -> Option<bool> {
    if !relation.free_columns().intersects(outer) {
        return Some(false);
    }
    match relation.operator() {
        Operator::Expand(expand) => {
            expands(&expand.input, outer)?;
            Some(true)
        }
        Operator::Filter(filter) => expands(&filter.input, outer),
        Operator::Project(project) if project.derived.is_none() && !project.has_variables() => {
            expands(&project.input, outer)
        }
        Operator::Join(join) if join.kind == JoinKind::Inner => {
            let takes = |relation: &Relation| relation.free_columns().intersects(outer);
            match (takes(&join.left), takes(&join.right)) {
                (true, false) => expands(&join.left, outer),
                (false, true) => expands(&join.right, outer),
                _ => None,
            }
        }
        _ => None,
    }
}

fn is_true(condition: &Scalar) -> bool {
    let folded = condition.clone().folded();
    matches!(folded.as_literal(), Some(ScalarValue::Boolean(Some(true))))
}
