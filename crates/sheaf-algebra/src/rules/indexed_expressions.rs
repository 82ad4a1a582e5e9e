//! `filter p(e) A  =  filter p(c) A`, where `c` is a column of `A` that has the values of the expression `e`.
//!
//! Such a column is a generated one, or the hidden one of a key expression. An index that has it then serves what is
//! said of the expression:
//!
//! ```text
//!   filter a + b = 5 (scan t)               filter c = 5 (scan t)
//!   filter lower(s) IN ('x', 'y') (scan t)  filter d IN ('x', 'y') (scan t)
//!   sort a + b (project a + b)              sort c (project c)
//!   group by a + b (project a + b)          group by c (project c)
//! ```
//!
//! What is replaced are conditions, and what rows are sorted or grouped by. Nothing is typed anew, so the column has to
//! have the very type of the expression. A column of whole numbers of fewer bytes holds other values where a lenient
//! `sql_mode` has clamped them. What follows for it from a comparison with a constant is a condition beside that:
//!
//! ```text
//!   filter a + 1 = 5 (scan t)               filter a + 1 = 5 AND n = 5 (scan t)
//! ```
//!
//! A row of an outer join that is filled up with NULL has NULL in the column, whatever the expression would give. So a
//! column stands for its expression only below the join that may fill it up.
//!
//! Reference: MySQL manual, "Optimizer Use of Generated Column Indexes".

use arrow::datatypes::{DataType, FieldRef};
use datafusion_common::ScalarValue;
use sheaf_exec::functions::SqlType;

use crate::column::ColumnId;
use crate::column_set::ColumnSet;
use crate::relation::{
    DependentJoin, DependentKind, Filter, Group, Item, Join, JoinKind, Operator, Project, Relation,
    Sort, SortKey,
};
use crate::scalar::{Comparison, Scalar, ScalarKind};

/// A column with the values of an expression over other columns of its table.
#[derive(Clone, Debug)]
pub struct IndexedExpression {
    /// As it is bound for each purpose that it may have.
    expressions: Vec<Scalar>,
    column: ColumnId,
    field: FieldRef,
    /// Its values are those of the expression. Otherwise they are clamped to what the column holds.
    is_exact: bool,
}

impl IndexedExpression {
    /// The column holds whatever the expression gives, but for whole numbers that are too large for it. `None`: its
    /// values cannot stand for those of the expression.
    pub fn new(
        expressions: Vec<Scalar>,
        column: ColumnId,
        field: FieldRef,
    ) -> Option<IndexedExpression> {
        let first = expressions.first()?;
        let is_plain = first.as_column().is_none() && first.as_literal().is_none();
        let is_exact = is_of_same_type(&field, first);
        let varies = expressions.iter().any(Scalar::varies);
        let agrees = is_exact || is_narrower(&field, first);
        (is_plain && agrees && !varies).then_some(IndexedExpression {
            expressions,
            column,
            field,
            is_exact,
        })
    }

    fn is(&self, scalar: &Scalar) -> bool {
        self.expressions.contains(scalar)
    }

    fn scalar(&self) -> Scalar {
        Scalar::column(self.column, FieldRef::clone(&self.field))
    }

    /// A constant in the type of the column, if clamped values stand to it as those of the expression do.
    fn constant(&self, other: &Scalar) -> Option<Scalar> {
        let ty = self.field.data_type();
        let value = whole_number(other.as_literal()?)?;
        let (least, greatest) = range_of(ty)?;
        let narrow = ScalarValue::Decimal128(Some(value), MAX_DIGITS, 0).cast_to(ty);
        let constant = Scalar::literal(narrow.ok()?);
        (least < value && value < greatest).then_some(constant)
    }
}

fn is_of_same_type(field: &FieldRef, scalar: &Scalar) -> bool {
    let is_of_same_kind = match (SqlType::of(field), scalar.sql_type()) {
        (
            SqlType::Text { collation, .. },
            SqlType::Text {
                collation: other, ..
            },
        ) => collation == other,
        (column, expression) => column == expression,
    };
    field.data_type() == scalar.field().data_type() && is_of_same_kind
}

/// A column of whole numbers of fewer bytes.
fn is_narrower(field: &FieldRef, scalar: &Scalar) -> bool {
    let is_year = SqlType::of(field).is_year();
    let (column, expression) = (field.data_type(), scalar.field().data_type());
    !is_year && column != expression && range_of(column).is_some() && range_of(expression).is_some()
}

/// The digits of a DECIMAL that holds any whole number of 64 bits.
const MAX_DIGITS: u8 = 20;

fn whole_number(value: &ScalarValue) -> Option<i128> {
    match value {
        ScalarValue::Int8(value) => value.map(i128::from),
        ScalarValue::Int16(value) => value.map(i128::from),
        ScalarValue::Int32(value) => value.map(i128::from),
        ScalarValue::Int64(value) => value.map(i128::from),
        ScalarValue::UInt8(value) => value.map(i128::from),
        ScalarValue::UInt16(value) => value.map(i128::from),
        ScalarValue::UInt32(value) => value.map(i128::from),
        ScalarValue::UInt64(value) => value.map(i128::from),
        _ => None,
    }
}

/// The least and the greatest whole number of a type.
fn range_of(ty: &DataType) -> Option<(i128, i128)> {
    Some(match ty {
        DataType::Int8 => (i8::MIN.into(), i8::MAX.into()),
        DataType::Int16 => (i16::MIN.into(), i16::MAX.into()),
        DataType::Int32 => (i32::MIN.into(), i32::MAX.into()),
        DataType::Int64 => (i64::MIN.into(), i64::MAX.into()),
        DataType::UInt8 => (0, u8::MAX.into()),
        DataType::UInt16 => (0, u16::MAX.into()),
        DataType::UInt32 => (0, u32::MAX.into()),
        DataType::UInt64 => (0, u64::MAX.into()),
        _ => return None,
    })
}

/// The relation with columns in the places of what they are known to have the values of.
pub fn apply(relation: Relation, known: &[IndexedExpression]) -> Relation {
    match known.is_empty() {
        true => relation,
        false => replaced(relation, known, &ColumnSet::new()).0,
    }
}

/// Those whose columns the rows of a relation have.
type Available<'k> = Vec<&'k IndexedExpression>;

/// `keys`: columns of the relation that its rows are sorted or grouped by.
fn replaced<'k>(
    relation: Relation,
    known: &'k [IndexedExpression],
    keys: &ColumnSet,
) -> (Relation, Available<'k>) {
    let none = ColumnSet::new();
    match relation.into_operator() {
        Operator::Scan(scan) => {
            let is_of_scan = |one: &&IndexedExpression| scan.columns.contains(&one.column);
            let available = known.iter().filter(is_of_scan).collect();
            (Operator::Scan(scan).into(), available)
        }
        Operator::Filter(Filter { input, condition }) => {
            let (input, available) = replaced(*input, known, keys);
            let condition = in_condition(condition, &available);
            let input = Box::new(input);
            let filter = Operator::Filter(Filter { input, condition });
            (filter.into(), available)
        }
        Operator::Sort(Sort { input, keys }) => {
            let columns = keys.iter().filter_map(|key| key.value.as_column());
            let (input, available) = replaced(*input, known, &columns.collect());
            let keys = keys.into_iter().map(|key| SortKey {
                value: in_expression(key.value, &available),
                ..key
            });
            let (input, keys) = (Box::new(input), keys.collect());
            (Operator::Sort(Sort { input, keys }).into(), available)
        }
        Operator::Group(group) => {
            let columns = group.keys.iter().copied().collect();
            let (input, _) = replaced(*group.input, known, &columns);
            let input = Box::new(input);
            let group = Operator::Group(Group { input, ..group });
            (group.into(), Vec::new())
        }
        Operator::Project(Project {
            input,
            items,
            derived,
        }) => {
            let (input, available) = replaced(*input, known, &none);
            let items = items
                .into_iter()
                .map(|item| match keys.contains(item.column) {
                    true => Item {
                        value: in_expression(item.value, &available),
                        ..item
                    },
                    false => item,
                });
            let items: Vec<Item> = items.collect();
            let is_handed_on = |one: &&IndexedExpression| {
                let mut items = items.iter().filter(|item| item.is_passed_on());
                items.any(|item| item.column == one.column)
            };
            let available = available.into_iter().filter(is_handed_on).collect();
            let project = Operator::Project(Project {
                input: Box::new(input),
                items,
                derived,
            });
            (project.into(), available)
        }
        Operator::Join(join) => {
            let (left, of_left) = replaced(*join.left, known, &none);
            let (right, of_right) = replaced(*join.right, known, &none);
            let both: Available = of_left.iter().chain(&of_right).copied().collect();
            let join = Join {
                left: Box::new(left),
                right: Box::new(right),
                condition: join.condition.map(|found| in_condition(found, &both)),
                ..join
            };
            let available = match join.kind {
                JoinKind::Inner => both,
                _ => of_left,
            };
            (Operator::Join(join).into(), available)
        }
        Operator::DependentJoin(join) => {
            let (left, of_left) = replaced(*join.left, known, &none);
            let (right, of_right) = replaced(*join.right, known, &none);
            let both: Available = of_left.iter().chain(&of_right).copied().collect();
            let join = DependentJoin {
                left: Box::new(left),
                right: Box::new(right),
                condition: join.condition.map(|found| in_condition(found, &both)),
                ..join
            };
            let available = match join.kind {
                DependentKind::Inner => both,
                _ => of_left,
            };
            (Operator::DependentJoin(join).into(), available)
        }
        operator @ (Operator::Window(_) | Operator::Limit(_)) => {
            let mut available = Vec::new();
            let relation = Relation::from(operator).map_inputs(&mut |input| {
                let (input, of_input) = replaced(input, known, &none);
                available = of_input;
                input
            });
            (relation, available)
        }
        operator => {
            let relation = Relation::from(operator);
            let relation = relation.map_inputs(&mut |input| replaced(input, known, &none).0);
            (relation, Vec::new())
        }
    }
}

fn in_expression(scalar: Scalar, available: &Available<'_>) -> Scalar {
    match available.is_empty() {
        true => scalar,
        false => scalar.replace(&|part| column_for(part, available)),
    }
}

fn in_condition(condition: Scalar, available: &Available<'_>) -> Scalar {
    if available.is_empty() {
        return condition;
    }
    let conjuncts = condition.into_conjuncts();
    let follow = conjuncts
        .iter()
        .filter_map(|conjunct| following(conjunct, available));
    let follow: Vec<Scalar> = follow.filter(|one| !conjuncts.contains(one)).collect();
    let replaced = conjuncts
        .into_iter()
        .map(|one| in_expression(one, available));
    Scalar::and(replaced.chain(follow))
}

/// The column that has the values of an expression.
fn column_for(part: &Scalar, available: &Available<'_>) -> Option<Scalar> {
    let mut available = available.iter();
    let one = available.find(|one| one.is_exact && one.is(part))?;
    Some(one.scalar())
}

/// What follows for a column of clamped values from a comparison of its expression with constants.
fn following(conjunct: &Scalar, available: &Available<'_>) -> Option<Scalar> {
    let of = |operand: &Scalar| {
        let mut available = available.iter();
        available.find(|one| !one.is_exact && one.is(operand))
    };
    match conjunct.kind() {
        ScalarKind::Comparison {
            operator: Comparison::NotEqual | Comparison::NullSafeEqual,
            ..
        } => None,
        ScalarKind::Comparison {
            operator,
            left,
            right,
        } => match (of(left), of(right)) {
            (Some(one), None) => {
                let constant = one.constant(right)?;
                Some(Scalar::comparison(*operator, one.scalar(), constant))
            }
            (None, Some(one)) => {
                let constant = one.constant(left)?;
                Some(Scalar::comparison(*operator, constant, one.scalar()))
            }
            _ => None,
        },
        ScalarKind::InList {
            operand,
            list,
            negated: false,
        } => {
            let one = of(operand)?;
            let list = list.iter().map(|member| one.constant(member));
            let list = list.collect::<Option<Vec<Scalar>>>()?;
            Some(one.scalar().in_list(list, false))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::datatypes::Field;

    use super::*;

    fn column(id: u32, ty: DataType) -> Scalar {
        Scalar::column(ColumnId(id), Arc::new(Field::new("c", ty, true)))
    }

    fn known(expression: &Scalar, id: u32, ty: DataType) -> Option<IndexedExpression> {
        let field = Arc::new(Field::new("g", ty, true));
        IndexedExpression::new(vec![expression.clone()], ColumnId(id), field)
    }

    fn number(value: i64) -> Scalar {
        Scalar::literal(ScalarValue::Int64(Some(value)))
    }

    /// `a IS NULL` serves as an expression: it needs no functions.
    fn expression() -> Scalar {
        column(0, DataType::Int64).is_null()
    }

    #[test]
    fn a_column_stands_for_the_expression_of_its_type_alone() {
        let expression = expression();
        assert!(known(&expression, 1, DataType::Boolean).is_some());
        assert!(known(&expression, 1, DataType::Int32).is_none());
        assert!(known(&expression, 1, DataType::Utf8View).is_none());
        let plain = column(0, DataType::Int64);
        assert!(known(&plain, 1, DataType::Int64).is_none());
    }

    #[test]
    fn what_follows_for_clamped_values_stands_beside_the_comparison() {
        let operand = column(0, DataType::Int64);
        let one = IndexedExpression {
            expressions: vec![operand.clone()],
            column: ColumnId(1),
            field: Arc::new(Field::new("g", DataType::Int8, true)),
            is_exact: false,
        };
        let available = vec![&one];
        let compared = |value| Scalar::comparison(Comparison::Less, operand.clone(), number(value));
        let narrow = Scalar::literal(ScalarValue::Int8(Some(5)));
        let follows = Scalar::comparison(Comparison::Less, one.scalar(), narrow);
        let found = in_condition(compared(5), &available);
        assert_eq!(found, Scalar::and([compared(5), follows]));
        for value in [-128, 127, 1 << 40] {
            assert_eq!(in_condition(compared(value), &available), compared(value));
        }
        assert_eq!(in_expression(operand.clone(), &available), operand);
    }
}
