//! The share of a table's rows that a condition accepts, from what ANALYZE TABLE found.
//!
//! | the condition | where its share comes from |
//! |---|---|
//! | sets of one column's values: `=`, `<>`, `<`, BETWEEN, IN, LIKE 'p%', IS NULL | the histogram: common values and buckets |
//! | the same, without a histogram | distinct values and NULLs; a guess for ranges |
//! | anything else about one column: LIKE '%x%', `YEAR(d) = 1995` | the condition, tried on the values in the histogram |
//! | a column against a column | distinct values (`=`), the histograms of both (`<`) |
//! | AND, OR, NOT | their parts, as if they were independent; what is said of one column is taken together first |
//! | a table that was never analyzed, and everything else | a guess ([`guess`]) |
//!
//! Conditions on several columns are independent here. Where an index binds them together,
//! [`crate::access::path`] takes their common share from an index dive.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ops::Bound;
use std::rc::Rc;
use std::sync::Arc;

use arrow::array::RecordBatch;
use datafusion_common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion_common::{DFSchema, ScalarValue};
use datafusion_expr::execution_props::ExecutionProps;
use datafusion_expr::physical_planning_context::PhysicalPlanningContext;
use datafusion_expr::utils::{split_binary, split_conjunction};
use datafusion_expr::{BinaryExpr, Expr, Operator, Volatility};
use datafusion_physical_expr::create_physical_expr;
use sheaf_access::{BatchCondition, arrow_type};
use sheaf_exec::functions::in_values::as_in_values;
use sheaf_exec::operator::batch_condition::ExprCondition;
use sheaf_table::{ColumnEstimator, PartBounds, Table, Within};
use sheaf_types::labels::text_of_number;
use sheaf_types::{ColumnType, Value};

use crate::estimate::column_set::{ColumnSet, Interval};
use crate::estimate::condition::{self, Term};
use crate::logical::{literal, semantics};

/// Share of the rows that a comparison with one bound is guessed to accept.
const GUESSED_HALF_RANGE: f64 = 0.33;
/// Share that one with two bounds, or LIKE, is guessed to accept.
const GUESSED_RANGE: f64 = 0.11;
/// Share of an equality.
const GUESSED_EQUAL: f64 = 0.1;
/// Share of a condition that says nothing to us.
const GUESSED_OTHER: f64 = 0.5;

/// Intervals of one set that are looked up in a histogram.
const MAX_INTERVALS: usize = 1_000;

/// Estimates conditions on one table.
pub(crate) struct Selectivity {
    table: Arc<Table>,
    /// By column, once asked for; `None`: never analyzed.
    estimators: RefCell<BTreeMap<usize, Option<Rc<ColumnEstimator>>>>,
}

impl Selectivity {
    pub(crate) fn new(table: Arc<Table>) -> Selectivity {
        Selectivity {
            table,
            estimators: RefCell::default(),
        }
    }

    /// What is known of a column; `None`: the table was never analyzed.
    pub(crate) fn estimator(&self, column: usize) -> Option<Rc<ColumnEstimator>> {
        let mut known = self.estimators.borrow_mut();
        let make = || self.table.column_estimator(column).map(Rc::new);
        known.entry(column).or_insert_with(make).clone()
    }

    /// Share of the rows that have NULL in a column.
    pub(crate) fn nulls(&self, column: usize) -> f64 {
        self.estimator(column)
            .map_or(0.0, |estimator| estimator.null())
    }

    /// Distinct values of a column, NULL not counted; `None`: never analyzed.
    pub(crate) fn distinct(&self, column: usize) -> Option<f64> {
        let estimator = self.estimator(column)?;
        Some(estimator.statistics().distinct.value.max(1) as f64)
    }

    /// Share of the rows that satisfy all of `conditions`, over `schema`, which has all columns of the table. Each
    /// comes with what it says of columns.
    pub(crate) fn of_all<'e>(
        &self,
        conditions: impl Iterator<Item = (&'e Expr, &'e Term)>,
        schema: &DFSchema,
    ) -> f64 {
        let mut sets: BTreeMap<usize, (Vec<&ColumnSet>, f64)> = BTreeMap::new();
        let mut share = 1.0;
        for (expr, term) in conditions {
            match term {
                Term::Column { column, set, .. } => {
                    let guess = guess(expr);
                    let (known, share) = sets.entry(*column).or_insert_with(|| (Vec::new(), 1.0));
                    known.push(set);
                    *share *= guess;
                }
                Term::Or(rows) if as_in_values(expr).is_some() => share *= self.of_rows(rows),
                _ => share *= self.of_other(expr, schema),
            }
        }
        for (column, (sets, guess)) in sets {
            let known = match sets.as_slice() {
                [set] => self.of_set(column, set),
                sets => ColumnSet::intersection_of(sets).and_then(|set| self.of_set(column, &set)),
            };
            share *= known.unwrap_or(guess);
        }
        share
    }

    /// Share of the rows that satisfy a condition over `schema`.
    pub(crate) fn of(&self, expr: &Expr, schema: &DFSchema) -> f64 {
        let conditions = split_conjunction(expr);
        let terms = conditions.iter();
        let terms = terms.map(|condition| condition::analyze(condition, &self.table.definition));
        let terms: Vec<Term> = terms.collect();
        self.of_all(conditions.into_iter().zip(&terms), schema)
    }

    /// A condition that is not a set of one column's values.
    fn of_other(&self, expr: &Expr, schema: &DFSchema) -> f64 {
        let share = match expr {
            Expr::Literal(ScalarValue::Boolean(Some(true)), _) => return 1.0,
            Expr::Literal(ScalarValue::Boolean(_) | ScalarValue::Null, _) => return 0.0,
            Expr::Alias(alias) => return self.of(&alias.expr, schema),
            Expr::IsTrue(inner) => return self.of(inner, schema),
            Expr::Not(inner) => {
                let nulls = self.any_null(inner, schema);
                Some(1.0 - self.of(inner, schema) - nulls)
            }
            Expr::BinaryExpr(BinaryExpr {
                op: Operator::And, ..
            }) => return self.of(expr, schema),
            Expr::BinaryExpr(BinaryExpr {
                op: Operator::Or, ..
            }) => {
                let branches = split_binary(expr, Operator::Or).into_iter();
                let none: f64 = branches
                    .map(|branch| 1.0 - self.of(branch, schema))
                    .product();
                Some(1.0 - none)
            }
            Expr::BinaryExpr(comparison) => self.of_two_columns(comparison),
            _ => None,
        };
        let share = share.or_else(|| self.tried(expr, schema));
        share.unwrap_or_else(|| guess(expr)).clamp(0.0, 1.0)
    }

    /// Share of the rows that are in a list of rows: of very many, some stand for all.
    fn of_rows(&self, rows: &[Term]) -> f64 {
        let step = rows.len().div_ceil(MAX_INTERVALS).max(1);
        let share = |row: &Term| -> f64 {
            let shares = condition::conjuncts(row).map(|part| match part {
                Term::Column { column, set, .. } => {
                    self.of_set(*column, set).unwrap_or(GUESSED_EQUAL)
                }
                _ => GUESSED_EQUAL,
            });
            shares.product()
        };
        let none: f64 = rows
            .iter()
            .step_by(step)
            .map(|row| 1.0 - share(row))
            .product();
        1.0 - none.powi(step as i32)
    }

    /// Share of the rows in which one of the condition's columns is NULL.
    fn any_null(&self, expr: &Expr, schema: &DFSchema) -> f64 {
        let columns = expr.column_refs();
        let position = |column| schema.index_of_column(column).ok();
        let columns: std::collections::BTreeSet<usize> =
            columns.into_iter().filter_map(position).collect();
        let none: f64 = columns
            .iter()
            .map(|column| 1.0 - self.nulls(*column))
            .product();
        1.0 - none
    }

    /// Share of the rows whose value in `column` is in `set`; `None`: the table was never analyzed.
    pub(crate) fn of_set(&self, column: usize, set: &ColumnSet) -> Option<f64> {
        let estimator = self.estimator(column)?;
        if estimator.statistics().histogram.is_none()
            && let Some(values) = all_except(set)
        {
            let nulls = match set.intervals.first() {
                Some(Interval::Null) => 0.0,
                _ => estimator.null(),
            };
            let without: f64 = values.iter().map(|value| equal(&estimator, value)).sum();
            return Some((1.0 - nulls - without).max(0.0));
        }
        // Of very many intervals, some stand for all.
        let step = set.intervals.len().div_ceil(MAX_INTERVALS).max(1);
        let intervals = set.intervals.iter().step_by(step);
        let (mut sum, mut looked_at) = (0.0f64, 0u32);
        for interval in intervals {
            sum += within(&estimator, interval);
            looked_at += 1;
        }
        sum *= set.intervals.len() as f64 / f64::from(looked_at.max(1));
        let prefix = set.starts_with.as_ref().map(|text| {
            let range = estimator
                .key()
                .layout()
                .range_within(&[], Some(Within::StartsWith(text)));
            let share = range.map_or(Some(0.0), |found| estimator.with_prefix(&found.range));
            share.unwrap_or(GUESSED_RANGE * (1.0 - estimator.null()))
        });
        Some(sum.min(prefix.unwrap_or(1.0)).clamp(0.0, 1.0))
    }

    /// A comparison of two columns of the table.
    fn of_two_columns(&self, comparison: &BinaryExpr) -> Option<f64> {
        let position = |expr| {
            let column = semantics::compared_column(expr)?;
            self.table.definition.position_in_plan(&column.name)
        };
        let (left, right) = (position(&comparison.left)?, position(&comparison.right)?);
        let both = (1.0 - self.nulls(left)) * (1.0 - self.nulls(right));
        let equal = both / self.distinct(left)?.max(self.distinct(right)?);
        match comparison.op {
            Operator::Eq => Some(equal),
            Operator::NotEq => Some(both - equal),
            Operator::Lt | Operator::LtEq => self.less(left, right),
            Operator::Gt | Operator::GtEq => self.less(right, left),
            _ => None,
        }
    }

    /// Share of the rows with `smaller < greater`, two columns of one type, as if they were independent.
    fn less(&self, smaller: usize, greater: usize) -> Option<f64> {
        let definition = &self.table.definition;
        let is_enum = definition.columns[smaller].ty.has_labels();
        if definition.columns[smaller].ty != definition.columns[greater].ty || is_enum {
            return None;
        }
        let (smaller, greater) = (self.estimator(smaller)?, self.estimator(greater)?);
        let mut share = 0.0;
        for (value, of_rows) in greater.sample(definition)?.ok()? {
            let below = PartBounds::Between {
                lower: Bound::Unbounded,
                upper: Bound::Excluded(value),
            };
            share += of_rows * smaller.within(&below)?;
        }
        Some(share)
    }

    /// A condition on one column, evaluated on the values that its histogram knows; `None` where that cannot be.
    fn tried(&self, expr: &Expr, schema: &DFSchema) -> Option<f64> {
        let refs = expr.column_refs();
        let mut columns = refs
            .iter()
            .filter_map(|column| schema.index_of_column(column).ok());
        let column = columns.next()?;
        if columns.any(|other| other != column) || !is_immutable(expr) {
            return None;
        }
        let estimator = self.estimator(column)?;
        let definition = &self.table.definition;
        let ty = &definition.columns[column].ty;
        let sample = estimator.sample(definition)?.ok()?;
        let mut values = Vec::with_capacity(sample.len() + 1);
        for (value, _) in &sample {
            values.push(as_read(value, ty)?);
        }
        values.push(ScalarValue::try_new_null(&arrow_type(ty)).ok()?);
        let (qualifier, field) = schema.qualified_field(column);
        let field = Arc::new(field.as_ref().clone().with_nullable(true));
        let fields = vec![(qualifier.cloned(), field)];
        let schema = DFSchema::new_with_metadata(fields, Default::default()).ok()?;
        let array = ScalarValue::iter_to_array(values).ok()?;
        let batch = RecordBatch::try_new(Arc::clone(schema.inner()), vec![array]).ok()?;
        let properties = ExecutionProps::new();
        let slots = PhysicalPlanningContext::default();
        let expr = create_physical_expr(expr, &schema, &properties, &slots).ok()?;
        let accepted = ExprCondition::new(expr).evaluate(&batch).ok()?;
        let shares = sample.iter().map(|(_, share)| *share);
        let shares: Vec<f64> = shares.chain([estimator.null()]).collect();
        let accepted: f64 = (0..shares.len())
            .filter(|at| accepted.value(*at))
            .map(|at| shares[at])
            .sum();
        // What no value of n buckets satisfies, half a value is taken to satisfy; and as few to fail what all satisfy.
        let common = estimator.statistics().histogram.as_ref()?.common.len();
        let buckets = sample.get(common..).unwrap_or(&[]);
        let of_buckets: f64 = buckets.iter().map(|(_, share)| share).sum();
        let unseen = 0.5 * of_buckets / buckets.len().max(1) as f64;
        Some(accepted.clamp(unseen, 1.0 - unseen))
    }
}

/// A value as a query reads it.
fn as_read(value: &Value, ty: &ColumnType) -> Option<ScalarValue> {
    let Some(number) = value.label_number() else {
        return literal::scalar(value, ty);
    };
    let label = text_of_number(ty, number);
    ScalarValue::from(&*label).cast_to(&arrow_type(ty)).ok()
}

/// `= value`.
fn equal(estimator: &ColumnEstimator, value: &Value) -> f64 {
    estimator.equal_key(&estimator.key().layout().key_of(value))
}

/// The values of one interval.
fn within(estimator: &ColumnEstimator, interval: &Interval) -> f64 {
    let (lower, upper) = match interval {
        Interval::Null => return estimator.null(),
        Interval::Range {
            lower: Bound::Included(a),
            upper: Bound::Included(b),
        } if a == b => return equal(estimator, a),
        Interval::Range { lower, upper } => (lower, upper),
    };
    let not_null = 1.0 - estimator.null();
    let guess = match (lower, upper) {
        (Bound::Unbounded, Bound::Unbounded) => return not_null,
        (Bound::Unbounded, _) | (_, Bound::Unbounded) => GUESSED_HALF_RANGE,
        _ => GUESSED_RANGE,
    };
    let bounds = Within::Between { lower, upper };
    let Some(found) = estimator.key().layout().range_within(&[], Some(bounds)) else {
        return 0.0;
    };
    estimator
        .within_keys(&found.range)
        .unwrap_or(guess * not_null)
}

/// The few values that a set leaves out, if it is everything else (`<>`, NOT IN).
fn all_except(set: &ColumnSet) -> Option<Vec<Value>> {
    let mut ranges = set.intervals.iter().filter_map(|interval| match interval {
        Interval::Null => None,
        Interval::Range { lower, upper } => Some((lower, upper)),
    });
    let (Bound::Unbounded, mut end) = ranges.next()? else {
        return None;
    };
    let mut values = Vec::new();
    for (lower, upper) in ranges {
        match (end, lower) {
            (Bound::Excluded(a), Bound::Excluded(b)) if a == b => values.push(a.clone()),
            _ => return None,
        }
        end = upper;
    }
    (*end == Bound::Unbounded && set.starts_with.is_none()).then_some(values)
}

/// Whether evaluating an expression while planning is the same as evaluating it later.
fn is_immutable(expr: &Expr) -> bool {
    let mut immutable = true;
    let walked = expr.apply(|expr| {
        immutable &= match expr {
            Expr::ScalarFunction(call) => call.func.signature().volatility == Volatility::Immutable,
            Expr::ScalarSubquery(_)
            | Expr::OuterReferenceColumn(..)
            | Expr::ScalarVariable(..)
            | Expr::Placeholder(_) => false,
            _ => true,
        };
        Ok(TreeNodeRecursion::Continue)
    });
    walked.is_ok() && immutable
}

/// Share of the rows that a condition is guessed to accept when nothing is known.
pub(crate) fn guess(expr: &Expr) -> f64 {
    match expr {
        Expr::BinaryExpr(binary) => match binary.op {
            Operator::And => guess(&binary.left) * guess(&binary.right),
            Operator::Or => {
                let (left, right) = (guess(&binary.left), guess(&binary.right));
                left + right - left * right
            }
            Operator::Eq | Operator::IsNotDistinctFrom => GUESSED_EQUAL,
            Operator::NotEq => 1.0 - GUESSED_EQUAL,
            Operator::Lt | Operator::LtEq | Operator::Gt | Operator::GtEq => GUESSED_HALF_RANGE,
            _ => GUESSED_OTHER,
        },
        Expr::Between(between) if between.negated => 1.0 - GUESSED_RANGE,
        Expr::Between(_) => GUESSED_RANGE,
        Expr::InList(list) => {
            let share = (GUESSED_EQUAL * list.list.len() as f64).min(GUESSED_OTHER);
            if list.negated { 1.0 - share } else { share }
        }
        Expr::ScalarFunction(_) => match as_in_values(expr) {
            Some((operands, columns)) => {
                let rows = columns.first().map_or(0, |values| values.len());
                let equal = GUESSED_EQUAL.powi(operands.len() as i32);
                (equal * rows as f64).min(GUESSED_OTHER)
            }
            None => GUESSED_OTHER,
        },
        Expr::Like(like) if like.negated => 1.0 - GUESSED_RANGE,
        Expr::Like(_) => GUESSED_RANGE,
        Expr::IsNull(_) => GUESSED_EQUAL,
        Expr::IsNotNull(_) => 1.0 - GUESSED_EQUAL,
        Expr::Not(inner) => 1.0 - guess(inner),
        Expr::IsTrue(inner) => guess(inner),
        Expr::Alias(alias) => guess(&alias.expr),
        _ => GUESSED_OTHER,
    }
}
