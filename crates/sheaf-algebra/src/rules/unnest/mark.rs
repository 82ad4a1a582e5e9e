//! Marks of three values, which tell whether a subquery has a row, or that NULL leaves that unknown.
//!
//! Where a condition is unknown, NULL takes the place of its equalities, and a join by it has no keys: it would compare
//! each row of the left side with all rows of the right one. So rows with NULL are joined apart from the others, by the
//! equalities that are left to them:
//!
//! ```text
//!   (a, b) IN (SELECT c, d FROM t)
//!
//!   is true                            a = c and b = d
//!   is unknown, unless it is true      may be a = c and b = d, with the rows of t where c is null or d is null
//!                                      a is null and b = d
//!                                      a = c and b is null
//!                                      a is null and b is null, with any row of t
//! ```
//!
//! `(a, b) NOT IN` in a condition is an antijoin by each of them.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field};
use datafusion_common::{Result, ScalarValue, internal_err};

use super::Unnesting;
use crate::column::ColumnId;
use crate::column_set::ColumnSet;
use crate::relation::{DependentJoin, Item, JoinKind, Relation};
use crate::rules::repeatable::is_repeatable;
use crate::rules::tested_marks::may_be_true;
use crate::rules::unnest::Pulled;
use crate::scalar::{Scalar, ScalarKind};

/// Operands of the left side that may be NULL, of which each set has a join of its own.
const MAX_NULLABLE: usize = 2;

/// A right side, and by what it is joined; `None`: any of its rows will do.
type Part = (Relation, Option<Scalar>);

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
        let mut relation = *join.left;
        let mut marked = |(right, condition): Part| {
            let field = Arc::new(Field::new("mark", DataType::Boolean, false));
            let id = self.columns.add_computed("mark", Arc::clone(&field));
            let left = std::mem::replace(&mut relation, Relation::unit());
            relation = left.join(JoinKind::Mark(id), right, condition);
            Scalar::column(id, field)
        };
        let is_true = marked(joined_by(condition.clone(), &pulled));
        let parts = match pulled.conditions.is_empty() {
            true => parts_with_null(&condition, &pulled.relation),
            false => None,
        };
        let parts = parts.unwrap_or_else(|| vec![joined_by(may_be_true(condition), &pulled)]);
        let may_be: Vec<Scalar> = parts.into_iter().map(marked).collect();
        // m is NULL only if it is not true and may be.
        let unknown = Scalar::literal(ScalarValue::Boolean(None));
        let value = Scalar::or([is_true, Scalar::and([Scalar::or(may_be), unknown])]);
        shown.push(Item {
            column: mark,
            value,
        });
        Ok(relation.project(shown))
    }
}

/// The rows of a left side for which no row of a right side may be equal, as antijoins; `None` if the condition says
/// something else, or is of one equality, for which there is a join that knows of NULL.
pub(super) fn antijoins_of_rows(
    left: &Relation,
    right: &Relation,
    may_be: &Scalar,
) -> Option<Relation> {
    let equalities = may_be.conjuncts().iter().map(without_nulls);
    let equalities = equalities.collect::<Option<Vec<&Scalar>>>()?;
    if equalities.len() < 2 || !is_repeatable(right) {
        return None;
    }
    let condition = Scalar::and(equalities.into_iter().cloned());
    let parts = parts_with_null(&condition, right)?;
    let parts = std::iter::once((right.clone(), Some(condition))).chain(parts);
    Some(parts.fold(left.clone(), |left, (right, condition)| {
        left.join(JoinKind::Anti, right, condition)
    }))
}

/// The equality of which a condition says that it is [not false](may_be_true).
fn without_nulls(may_be: &Scalar) -> Option<&Scalar> {
    let equality = match may_be.kind() {
        ScalarKind::Or(parts) => parts.first()?,
        _ => may_be,
    };
    equality.as_equality()?;
    (may_be_true(equality.clone()) == *may_be).then_some(equality)
}

fn joined_by(condition: Scalar, pulled: &Pulled) -> Part {
    let conditions = std::iter::once(condition).chain(pulled.conditions.iter().cloned());
    (pulled.relation.clone(), Some(Scalar::and(conditions)))
}

/// Where a condition that is not true is unknown: one of these has a row then. See the module's comment. `None`: it is
/// not made of equalities between the sides, or something remains that a join has a key of.
fn parts_with_null(condition: &Scalar, right: &Relation) -> Option<Vec<Part>> {
    if condition.is_volatile() || condition.notes() {
        return None;
    }
    let own = right.column_set();
    let mut pairs = Vec::new();
    for equality in condition.conjuncts() {
        let (one, other) = equality.as_equality()?;
        let (of_one, of_other) = (one.columns(), other.columns());
        let (outer, inner) = match (of_one.intersects(&own), of_other.intersects(&own)) {
            (false, true) if of_other.is_subset(&own) => (one, other),
            (true, false) if of_one.is_subset(&own) => (other, one),
            _ => return None,
        };
        if !outer.is_nullable() && !inner.is_nullable() {
            return None;
        }
        pairs.push((equality, outer, inner));
    }
    let nullable = pairs.iter().filter(|(_, outer, _)| outer.is_nullable());
    let nullable = nullable.count();
    if nullable > MAX_NULLABLE {
        return None;
    }
    let mut parts = Vec::new();
    let inner = pairs.iter().map(|(_, _, inner)| *inner);
    let nulls = inner.filter(|inner| inner.is_nullable());
    let nulls: Vec<Scalar> = nulls.map(|inner| inner.clone().is_null()).collect();
    if !nulls.is_empty() {
        let with_null = right.clone().filter(Scalar::or(nulls));
        parts.push(match pairs.len() {
            1 => (with_null.limit(0, Some(1)), None),
            _ => (with_null, Some(may_be_true(condition.clone()))),
        });
    }
    for set in 1..1u32 << nullable {
        let mut conditions = Vec::with_capacity(pairs.len());
        let mut has_equality = false;
        let mut number = 0;
        for (equality, outer, _) in &pairs {
            let is_null = outer.is_nullable() && {
                number += 1;
                set & (1 << (number - 1)) != 0
            };
            conditions.push(match is_null {
                true => (*outer).clone().is_null(),
                false => (*equality).clone(),
            });
            has_equality |= !is_null;
        }
        let right = match has_equality {
            true => right.clone(),
            false => right.clone().limit(0, Some(1)),
        };
        parts.push((right, Some(Scalar::and(conditions))));
    }
    Some(parts)
}
