//! Long disjunctions of equalities with constants, which are lists of these constants.
//!
//! ```text
//!   a = 1 OR a = 2 OR ...                            a IN (1, 2, ...)
//!   (a = 1 AND b = 5) OR (a = 2 AND b = 6) OR ...    (a, b) IN ((1, 5), (2, 6), ...)
//!   a <> 1 AND a <> 2 AND ...                        NOT a IN (1, 2, ...)
//! ```
//!
//! A long list is one call ([`sheaf_exec::functions::in_values`]), whatever it is made of. So what is written as an OR
//! of ten thousand terms is not gone through at every step of planning.

use arrow::array::ArrayRef;
use datafusion_common::{Result, ScalarValue};
use sheaf_access::cancel;
use sheaf_exec::functions::in_values::{
    MAX_OPERANDS, MIN_PACKED, function_of, is_packable, values_of,
};
use sheaf_exec::operator::scan_exec::access_error;

use super::{Comparison, Scalar, ScalarKind, condition};
use crate::column_set::ColumnSet;

/// Combinations of operands that are looked for among the terms of one disjunction.
const MAX_COMBINATIONS: usize = 8;

/// A list is made of its values by way of arrays, of rows that are ordered, and of arrays in this order.
const COPIES: usize = 3;

/// Terms about the same operands.
struct Combination {
    operands: Vec<Scalar>,
    /// The values of each operand.
    columns: Vec<Vec<ScalarValue>>,
    /// Where the terms are among all.
    terms: Vec<usize>,
}

impl Scalar {
    /// The condition with a list in the place of many terms.
    pub fn with_long_lists(self) -> Result<Scalar> {
        if self.notes || self.size.nodes < MIN_PACKED {
            return Ok(self);
        }
        let inner = |terms: Vec<Scalar>| -> Result<Vec<Scalar>> {
            terms.into_iter().map(Scalar::with_long_lists).collect()
        };
        Ok(match self.kind {
            ScalarKind::Or(terms) => {
                let terms = in_lists(terms, Comparison::Equal)?;
                Scalar::or(inner(terms)?)
            }
            ScalarKind::And(terms) => {
                let terms = in_lists(terms, Comparison::NotEqual)?;
                Scalar::and(inner(terms)?)
            }
            ScalarKind::Not(operand) => operand.with_long_lists()?.not(),
            _ => self,
        })
    }

    /// Of a list of rows what it says of some columns: of the operands that are of no others. `None` if that is
    /// nothing, or if this is no list of rows.
    pub(crate) fn list_of(&self, columns: &ColumnSet, others: &ColumnSet) -> Option<Scalar> {
        let ScalarKind::Call {
            function,
            arguments,
        } = &self.kind
        else {
            return None;
        };
        let values = values_of(function)?;
        let is_of = |operand: &Scalar| {
            let of = operand.columns();
            of.intersects(columns) && !of.intersects(others)
        };
        let operands = arguments.iter().zip(values);
        let (operands, values): (Vec<Scalar>, Vec<ArrayRef>) = operands
            .filter(|(operand, _)| is_of(operand))
            .map(|(operand, values)| (operand.clone(), values.clone()))
            .unzip();
        let is_part = !operands.is_empty() && operands.len() < arguments.len();
        is_part.then(|| list(operands, &values).ok()).flatten()
    }
}

/// The terms of an OR of equalities, or of an AND of their opposites, with those in lists that are many.
fn in_lists(terms: Vec<Scalar>, operator: Comparison) -> Result<Vec<Scalar>> {
    if terms.len() < MIN_PACKED {
        return Ok(terms);
    }
    let mut combinations: Vec<Combination> = Vec::new();
    for (at, term) in terms.iter().enumerate() {
        cancel::check_statement().map_err(access_error)?;
        let parts = match operator {
            Comparison::Equal => term.conjuncts(),
            _ => std::slice::from_ref(term),
        };
        let row = parts.iter().map(|part| with_constant(part, operator));
        let Some(row) = row.collect::<Option<Vec<_>>>() else {
            continue;
        };
        let known = combinations.iter().position(|known| {
            let operands = row.iter().map(|(operand, _)| *operand);
            known.operands.iter().eq(operands)
        });
        match known {
            Some(known) => {
                let known = &mut combinations[known];
                for (column, (_, value)) in known.columns.iter_mut().zip(&row) {
                    column.push((*value).clone());
                }
                known.terms.push(at);
            }
            None if combinations.len() < MAX_COMBINATIONS && row.len() <= MAX_OPERANDS => {
                combinations.push(Combination {
                    operands: row.iter().map(|(operand, _)| (*operand).clone()).collect(),
                    columns: row
                        .iter()
                        .map(|(_, value)| vec![(*value).clone()])
                        .collect(),
                    terms: vec![at],
                });
            }
            None => {}
        }
    }
    combinations.retain(|known| known.terms.len() >= MIN_PACKED);
    if combinations.is_empty() {
        return Ok(terms);
    }
    let mut stays = vec![true; terms.len()];
    let mut lists = Vec::with_capacity(combinations.len());
    for Combination {
        operands,
        columns,
        terms,
    } in combinations
    {
        for at in terms {
            stays[at] = false;
        }
        let bytes: usize = columns.iter().flatten().map(ScalarValue::size).sum();
        let room = cancel::check_room_for_value(bytes.saturating_mul(COPIES));
        room.map_err(access_error)?;
        let columns = columns.into_iter().map(ScalarValue::iter_to_array);
        let list = list(operands, &columns.collect::<Result<Vec<_>>>()?)?;
        lists.push(match operator {
            Comparison::Equal => list,
            _ => list.not(),
        });
    }
    let terms = terms.into_iter().zip(stays);
    lists.extend(terms.filter(|(_, stays)| *stays).map(|(term, _)| term));
    Ok(lists)
}

/// An operand and the constant of its type that it is compared with.
fn with_constant(term: &Scalar, wanted: Comparison) -> Option<(&Scalar, &ScalarValue)> {
    let ScalarKind::Comparison {
        operator,
        left,
        right,
    } = &term.kind
    else {
        return None;
    };
    let value = right.as_literal()?;
    let is_plain = *operator == wanted
        && left.as_literal().is_none()
        && !value.is_null()
        && left.field.data_type() == &value.data_type()
        && is_packable(left.field.data_type())
        && !left.is_volatile();
    is_plain.then_some((left, value))
}

fn list(operands: Vec<Scalar>, columns: &[ArrayRef]) -> Result<Scalar> {
    let nullable = operands.iter().any(Scalar::is_nullable);
    let function = function_of(columns)?;
    Ok(Scalar::call(function.into(), operands, condition(nullable)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::column::ColumnId;
    use arrow::datatypes::{DataType, Field};
    use std::sync::Arc;

    fn column(id: u32) -> Scalar {
        let field = Field::new(format!("c{id}"), DataType::Int64, true);
        Scalar::column(ColumnId(id), Arc::new(field))
    }

    fn compared(id: u32, operator: Comparison, number: i64) -> Scalar {
        let number = Scalar::literal(ScalarValue::Int64(Some(number)));
        Scalar::comparison(operator, column(id), number)
    }

    fn equal(id: u32, number: i64) -> Scalar {
        compared(id, Comparison::Equal, number)
    }

    fn lengths(scalar: &Scalar) -> Vec<usize> {
        match scalar.kind() {
            ScalarKind::Call { function, .. } => {
                let values = values_of(function).expect("a list");
                values.iter().map(|values| values.len()).collect()
            }
            ScalarKind::Not(inner) => lengths(inner),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn many_terms_are_a_list() {
        let any = Scalar::or((0..2000).map(|number| equal(0, number % 1500)));
        assert_eq!(lengths(&any.with_long_lists().unwrap()), [1500]);
        let few = Scalar::or((0..100).map(|number| equal(0, number)));
        assert_eq!(few.clone().with_long_lists().unwrap(), few);
        let none = (0..2000).map(|number| compared(0, Comparison::NotEqual, number));
        let none = Scalar::and(none).with_long_lists().unwrap();
        assert_eq!(lengths(&none), [2000]);
        assert!(matches!(none.kind(), ScalarKind::Not(_)));
    }

    #[test]
    fn terms_of_several_columns_are_rows_and_the_rest_stays() {
        let row = |number: i64| Scalar::and([equal(0, number), equal(1, number % 3)]);
        let other = compared(0, Comparison::Less, -5);
        let any = Scalar::or((0..1200).map(row).chain([other.clone()]));
        let lists = any.with_long_lists().unwrap();
        let ScalarKind::Or(terms) = lists.kind() else {
            panic!("{lists:?}");
        };
        assert_eq!((lengths(&terms[0]), &terms[1]), (vec![1200, 1200], &other));
        let [first, second] = [0, 1].map(|id| ColumnSet::from_iter([ColumnId(id)]));
        let of_second = terms[0].list_of(&second, &first).unwrap();
        assert_eq!(lengths(&of_second), [3]);
    }
}
