//! Marks of three values, which tell whether a subquery has a row, or that NULL leaves that unknown; and right sides of
//! at most one row.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field};
use datafusion_common::{Result, ScalarValue, internal_err};

use super::Unnesting;
use crate::column::ColumnId;
use crate::column_set::ColumnSet;
use crate::relation::{DependentJoin, DependentKind, Item, JoinKind, Operator, Relation};
use crate::rules::repeatable::is_repeatable;
use crate::rules::tested_marks::may_be_true;
use crate::scalar::{Comparison, Scalar};

impl Unnesting<'_> {
    /// A right side of at most one row as values, each of which is run for each row of the left side:
    ///
    /// ```text
    ///   A left djoin p B  =  project A, c := n = 1 ? v : null  (single n (single v (A, project v := c of B), n))
    ///                        where n is the number of rows of filter p B
    /// ```
    pub(super) fn of_values(&mut self, join: DependentJoin) -> Result<Relation> {
        let is_repeatable = is_repeatable(&join.right);
        let columns = join.right.columns().to_vec();
        if !join.right.properties().has_at_most_one_row() || columns.len() > 1 && !is_repeatable {
            return Ok(Operator::DependentJoin(join).into());
        }
        let one = || Scalar::literal(ScalarValue::Int64(Some(1)));
        let (rows, count) = self.add_aggregate("count", one())?;
        let counted = match join.condition {
            Some(condition) => join.right.as_ref().clone().filter(condition),
            None => join.right.as_ref().clone(),
        };
        let counted = counted.group(Vec::new(), Vec::new(), vec![(rows, count)]);
        let is_there = Scalar::comparison(Comparison::NullSafeEqual, self.column(rows), one());
        let mut shown: Vec<Item> = join
            .left
            .columns()
            .iter()
            .map(|id| self.passed_on(*id))
            .collect();
        let mut relation = *join.left;
        relation = relation.dependent_join(DependentKind::Single(rows), counted, None);
        let is_inner = join.kind == DependentKind::Inner;
        for column in columns {
            let of_row = self.column(column);
            let field = Arc::new(of_row.field().as_ref().clone().with_nullable(true));
            let null = ScalarValue::try_from(field.data_type())?;
            let null = Scalar::typed_literal(null, field.metadata().clone());
            let id = self.columns.add_computed("value", Arc::clone(&field));
            let right = join.right.as_ref().clone().project(vec![Item {
                column: id,
                value: of_row,
            }]);
            relation = relation.dependent_join(DependentKind::Single(id), right, None);
            let value = Scalar::column(id, field);
            let value = match is_inner {
                true => value,
                false => {
                    let case = vec![is_there.clone(), value, null];
                    self.typing.call("$case", case)?
                }
            };
            shown.push(Item { column, value });
        }
        if is_inner {
            relation = relation.filter(is_there);
        }
        Ok(relation.project(shown))
    }

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
