//! Marks of three values, which tell whether a subquery has a row, or that NULL leaves that unknown.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field};
use datafusion_common::{Result, ScalarValue, internal_err};

use super::Unnesting;
use crate::column::ColumnId;
use crate::column_set::ColumnSet;
use crate::relation::{DependentJoin, Item, JoinKind, Relation};
use crate::rules::repeatable::is_repeatable;
use crate::rules::tested_marks::may_be_true;
use crate::scalar::Scalar;

impl Unnesting<'_> {
    /// `mark m on p  =  m := CASE WHEN t THEN TRUE WHEN u THEN NULL ELSE FALSE END`, with t for a row where p is true,
    /// and u for one where it may be.
    pub(super) fn mark_of_three_values(
        &mut self,
        mut join: DependentJoin,
        mark: ColumnId,
        outer: &ColumnSet,
    ) -> Result<Relation> {
        let Some(condition) = join.condition.clone() else {
            return internal_err!("a mark of three values has a condition");
        };
        // The right side is computed twice.
        let pulled = match is_repeatable(&join.right) {
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
        for condition in [condition.clone(), may_be_true(condition)] {
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
}
