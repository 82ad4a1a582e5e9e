//! `x > ANY (q)  =  x > MIN(q)`: of an order, the least or the greatest row decides.
//!
//! ```text
//!   A semijoin B on a > b        =  filter a > low (A join R)
//!   A mark join m of B on a > b  =  project A, m := met or may_be and unknown (A join R)
//!
//!   R       group: low := min(b), known := count(b), all := count(*) of B, which is one row
//!   met     (a > low) is true
//!   may_be  known < all or a is null and all > 0
//! ```
//!
//! `>` and `>=` ask the least row, `<` and `<=` the greatest. By `<>` it is one of both, or neither. What is said of
//! ALL comes here as well: `x > ALL (q)` is the denied mark of `x <= y`. An antijoin has the condition that may be true
//! ([`tested_marks`](super::super::tested_marks)), so it takes unknown for true, and so may a mark of two values.
//!
//! A join by an order compares all pairs, and this reads each side once. B must take nothing from the queries around:
//! for each of their rows, R would be another row.
//!
//! Both operands of a comparison are in one domain, converted and as sort keys of texts. So MIN and MAX of the
//! converted operand have the order that the comparison has.

use arrow::datatypes::DataType;
use datafusion_common::{Result, ScalarValue};

use super::Unnesting;
use crate::column::ColumnId;
use crate::column_set::ColumnSet;
use crate::relation::{DependentJoin, DependentKind, Item, JoinKind, Relation};
use crate::scalar::{Aggregate, Comparison, Scalar, ScalarKind, Truth};

/// The comparison of a row of the left side with rows of the right side.
struct Order {
    of_left: Scalar,
    operator: Comparison,
    of_right: Scalar,
    /// A row that may be one counts as one.
    takes_unknown: bool,
}

/// The one row that decides, and what was not NULL of how many.
struct Decisive {
    row: Relation,
    extremes: Vec<ColumnId>,
    known: Option<ColumnId>,
    all: Option<ColumnId>,
}

impl Unnesting<'_> {
    /// The join as it is where it is not of this kind.
    pub(super) fn by_extreme_rows(
        &mut self,
        join: DependentJoin,
    ) -> Result<std::result::Result<Relation, Box<DependentJoin>>> {
        let Some(order) = order_of(&join) else {
            return Ok(Err(Box::new(join)));
        };
        let Some(decisive) = self.decisive(&order, join.right.as_ref())? else {
            return Ok(Err(Box::new(join)));
        };
        let met = decisive.extremes.iter().map(|extreme| {
            let (left, extreme) = (order.of_left.clone(), self.column(*extreme));
            Scalar::comparison(order.operator, left, extreme)
        });
        let met = Scalar::or(met);
        let is_met = met.clone().test(Truth::True, false);
        let may_be = self.may_be_met(&order, &decisive);
        let columns = join.left.columns().iter();
        let mut shown: Vec<Item> = columns.map(|id| self.passed_on(*id)).collect();
        let joined = join.left.join(JoinKind::Inner, decisive.row, None);
        // Of two values.
        let found = match (&may_be, order.takes_unknown) {
            (Some(may_be), true) => Scalar::or([is_met.clone(), may_be.clone()]),
            _ => is_met.clone(),
        };
        let (joined, mark) = match join.kind {
            DependentKind::Semi if !order.takes_unknown => (joined.filter(met), None),
            DependentKind::Semi => (joined.filter(found), None),
            DependentKind::Anti => (joined.filter(found.not()), None),
            DependentKind::Mark(mark) => {
                let unknown = Scalar::literal(ScalarValue::Boolean(None));
                let value = match may_be {
                    Some(may_be) if !order.takes_unknown => {
                        Scalar::or([is_met, Scalar::and([may_be, unknown])])
                    }
                    _ => found,
                };
                (joined, Some((mark, value)))
            }
            DependentKind::Found(mark) => (joined, Some((mark, found))),
            // No order was taken of these.
            DependentKind::Inner | DependentKind::LeftOuter | DependentKind::Single(_) => {
                (joined, None)
            }
        };
        shown.extend(mark.map(|(column, value)| Item { column, value }));
        Ok(Ok(joined.project(shown)))
    }

    /// `None` where MIN and MAX have no order, or one of their own.
    fn decisive(&mut self, order: &Order, right: &Relation) -> Result<Option<Decisive>> {
        let names: &[&str] = match order.operator {
            Comparison::Greater | Comparison::GreaterOrEqual => &["min"],
            Comparison::Less | Comparison::LessOrEqual => &["max"],
            Comparison::NotEqual => &["min", "max"],
            Comparison::Equal | Comparison::NullSafeEqual => return Ok(None),
        };
        let mut aggregates: Vec<(ColumnId, Aggregate)> = Vec::with_capacity(4);
        for name in names {
            aggregates.push(self.add_aggregate(name, order.of_right.clone())?);
        }
        let data_type = order.of_right.field().data_type();
        let mut taken = aggregates.iter();
        if !taken.all(|(_, aggregate)| aggregate.field().data_type() == data_type) {
            return Ok(None);
        }
        let extremes = aggregates.iter().map(|(id, _)| *id).collect();
        let (mut known, mut all) = (None, None);
        if order.of_right.is_nullable() {
            let row = Scalar::literal(ScalarValue::Int64(Some(1)));
            for (count, of) in [(&mut known, order.of_right.clone()), (&mut all, row)] {
                let aggregate = self.add_aggregate("count", of)?;
                *count = Some(aggregate.0);
                aggregates.push(aggregate);
            }
        }
        let row = right.clone().group(Vec::new(), Vec::new(), aggregates);
        Ok(Some(Decisive {
            row,
            extremes,
            known,
            all,
        }))
    }

    /// Whether NULL leaves it unknown of a row; `None` where nothing is NULL.
    fn may_be_met(&self, order: &Order, decisive: &Decisive) -> Option<Scalar> {
        let mut unknown = Vec::with_capacity(2);
        let counts = decisive.known.zip(decisive.all);
        if let Some((known, all)) = counts {
            let (known, all) = (self.column(known), self.column(all));
            unknown.push(Scalar::comparison(Comparison::Less, known, all));
        }
        if order.of_left.is_nullable() {
            let has_rows = match (counts, decisive.extremes.first()) {
                (Some((_, all)), _) => {
                    let zero = Scalar::literal(ScalarValue::Int64(Some(0)));
                    Scalar::comparison(Comparison::Greater, self.column(all), zero)
                }
                (None, Some(extreme)) => self.column(*extreme).test(Truth::Null, true),
                (None, None) => Scalar::constant(true),
            };
            let is_null = order.of_left.clone().is_null();
            unknown.push(Scalar::and([is_null, has_rows]));
        }
        (!unknown.is_empty()).then(|| Scalar::or(unknown))
    }
}

/// The order by which a join tests its rows, where one row of the right side decides.
fn order_of(join: &DependentJoin) -> Option<Order> {
    let tests = matches!(
        join.kind,
        DependentKind::Semi
            | DependentKind::Anti
            | DependentKind::Mark(_)
            | DependentKind::Found(_)
    );
    // One row of the left side is compared with each row of the right side, and no more.
    if !tests || join.left.properties().has_at_most_one_row() {
        return None;
    }
    if !join.right.free_columns().is_empty() || is_of_each_row(&join.right) {
        return None;
    }
    let (comparison, takes_unknown) = comparison_of(join.condition.as_ref()?)?;
    let (of_left, operator, of_right) = sides_of(comparison, &join.right.column_set())?;
    let is_fixed = |operand: &Scalar| !operand.is_volatile() && !operand.is_of_variables();
    let is_ordered = of_right.sql_type().has_order_of_values();
    let is_one_domain = match (of_left.field().data_type(), of_right.field().data_type()) {
        (DataType::Decimal128(..), DataType::Decimal128(..)) => true,
        (one, other) => one == other,
    };
    (is_fixed(of_left) && is_fixed(of_right) && is_ordered && is_one_domain).then(|| Order {
        of_left: of_left.clone(),
        operator,
        of_right: of_right.clone(),
        takes_unknown,
    })
}

/// Whether what a relation has may differ from time to time.
fn is_of_each_row(relation: &Relation) -> bool {
    let mut found = false;
    relation.for_each_scalar(&mut |scalar| {
        found = found || scalar.is_volatile() || scalar.is_of_variables();
    });
    found || relation.inputs().into_iter().any(is_of_each_row)
}

/// The comparison that a condition is, and whether it takes unknown for true.
fn comparison_of(condition: &Scalar) -> Option<(&Scalar, bool)> {
    match condition.kind() {
        ScalarKind::Comparison { .. } => Some((condition, false)),
        ScalarKind::Or(parts) => {
            let (comparison, nulls) = parts.split_first()?;
            let ScalarKind::Comparison { left, right, .. } = comparison.kind() else {
                return None;
            };
            let tests = |operand: &Scalar| nulls.iter().any(|part| is_null_of(part, operand));
            let tests_all = [left, right]
                .into_iter()
                .all(|operand| !operand.is_nullable() || tests(operand));
            let tests_nothing_else = nulls
                .iter()
                .all(|part| is_null_of(part, left) || is_null_of(part, right));
            (tests_all && tests_nothing_else).then_some((comparison, true))
        }
        _ => None,
    }
}

fn is_null_of(part: &Scalar, of: &Scalar) -> bool {
    match part.kind() {
        ScalarKind::Test {
            operand,
            is: Truth::Null,
            negated: false,
        } => operand.as_ref() == of,
        _ => false,
    }
}

/// What is of the left side, and is compared so with what is of the right side.
fn sides_of<'a>(
    comparison: &'a Scalar,
    right: &ColumnSet,
) -> Option<(&'a Scalar, Comparison, &'a Scalar)> {
    let ScalarKind::Comparison {
        operator,
        left: one,
        right: other,
    } = comparison.kind()
    else {
        return None;
    };
    let is_of_left = |operand: &Scalar| !operand.columns().intersects(right);
    let is_of_right = |operand: &Scalar| {
        let columns = operand.columns();
        !columns.is_empty() && columns.is_subset(right)
    };
    if is_of_left(one) && is_of_right(other) {
        return Some((one, *operator, other));
    }
    let is_swapped = is_of_right(one) && is_of_left(other);
    is_swapped.then(|| (other.as_ref(), operator.swapped(), one.as_ref()))
}
