//! Columns that are never NULL: NOT NULL in their table, or tested by a condition. Not those of the inner side of an
//! outer join, whatever they are below it. And conditions that are never true where some columns are NULL.

use datafusion_common::ScalarValue;
use sheaf_exec::functions::in_values::values_of;

use super::{RightSide, plain_column, sides};
use crate::column_set::ColumnSet;
use crate::relation::{DependentKind, JoinKind, Operator};
use crate::scalar::{Comparison, Scalar, ScalarKind, Truth};

pub(super) fn not_null(operator: &Operator) -> ColumnSet {
    match operator {
        Operator::Scan(scan) => {
            let schema = scan.source.schema();
            let fields = schema.fields().iter().zip(&scan.columns);
            let fields = fields.filter(|(field, _)| !field.is_nullable());
            fields.map(|(_, column)| *column).collect()
        }
        Operator::Filter(filter) => {
            let tested = refuses_null(&filter.condition);
            filter.input.properties().not_null.clone().union(&tested)
        }
        Operator::Project(project) => {
            let below = &project.input.properties().not_null;
            let items = project
                .items
                .iter()
                .filter(|item| match item.value.as_column() {
                    Some(column) => below.contains(column),
                    None => !item.value.is_nullable() && is_typed_for(&item.value, below),
                });
            let mut columns: ColumnSet = items.map(|item| item.column).collect();
            columns.union_with(below);
            columns
        }
        Operator::Group(group) => {
            let aggregates = group.aggregates.iter();
            let aggregates = aggregates.filter(|(_, aggregate)| aggregate.counts());
            let mut columns: ColumnSet = aggregates.map(|(id, _)| *id).collect();
            // Without keys there may be no row to carry from.
            columns.extend(group.rollup);
            if !group.keys.is_empty() && group.rollup.is_none() {
                columns.union_with(&group.input.properties().not_null);
            }
            columns
        }
        Operator::Window(window) => {
            let functions = window.functions.iter();
            let functions = functions.filter(|(_, function)| !function.field().is_nullable());
            let mut columns = window.input.properties().not_null.clone();
            columns.extend(functions.map(|(id, _)| *id));
            columns
        }
        Operator::Expand(expand) => expand.input.properties().not_null.clone(),
        Operator::Sort(sort) => sort.input.properties().not_null.clone(),
        Operator::Limit(limit) => limit.input.properties().not_null.clone(),
        Operator::Values(values) => {
            let columns = values.columns.iter().enumerate();
            let columns =
                columns.filter(|(at, _)| values.rows.iter().all(|row| !row[*at].is_nullable()));
            columns.map(|(_, column)| *column).collect()
        }
        Operator::SetOperation(operation) => {
            let never = |at: usize| {
                operation.inputs.iter().all(|input| {
                    let properties = input.properties();
                    properties.not_null.contains(properties.columns[at])
                })
            };
            let columns = operation.columns.iter().enumerate();
            columns
                .filter(|(at, _)| never(*at))
                .map(|(_, column)| *column)
                .collect()
        }
        Operator::Recursive(_) => ColumnSet::new(),
        Operator::Join(_) | Operator::DependentJoin(_) => of_join(operator),
    }
}

/// Whether none of the columns of a value is NULL that are not by their type. Below an outer join they were not.
fn is_typed_for(value: &Scalar, not_null: &ColumnSet) -> bool {
    !value.contains(&|part| match part.kind() {
        ScalarKind::Column(column) => !part.is_nullable() && !not_null.contains(*column),
        _ => false,
    })
}

fn of_join(operator: &Operator) -> ColumnSet {
    let Some(sides) = sides(operator) else {
        return ColumnSet::new();
    };
    let mut columns = sides.left.properties().not_null.clone();
    if sides.right_side == RightSide::Shown {
        columns.union_with(&sides.right.properties().not_null);
    }
    if let Some(condition) = sides.condition.filter(|_| sides.filters) {
        columns.union_with(&refuses_null(condition));
    }
    match operator {
        Operator::Join(join) => {
            if let JoinKind::Mark(mark) = join.kind {
                columns.insert(mark);
            }
        }
        Operator::DependentJoin(join) => match (join.kind, &join.condition) {
            (DependentKind::Found(mark), _) | (DependentKind::Mark(mark), None) => {
                columns.insert(mark);
            }
            _ => {}
        },
        _ => {}
    }
    columns
}

/// Columns that are not NULL where the condition is true. Those of comparisons, and of IS NOT NULL; there are others.
pub fn refuses_null(condition: &Scalar) -> ColumnSet {
    let mut columns = ColumnSet::new();
    for conjunct in condition.conjuncts() {
        match conjunct.kind() {
            ScalarKind::Comparison {
                operator,
                left,
                right,
            } if *operator != Comparison::NullSafeEqual => {
                columns.extend(plain_column(left));
                columns.extend(plain_column(right));
            }
            ScalarKind::InList { operand, .. } => columns.extend(plain_column(operand)),
            ScalarKind::Call {
                function,
                arguments,
            } if values_of(function).is_some() => {
                columns.extend(arguments.iter().filter_map(plain_column));
            }
            ScalarKind::Test {
                operand,
                is: Truth::Null,
                negated: true,
            } => columns.extend(plain_column(operand)),
            _ => {}
        }
    }
    columns
}

/// Whether a condition is never true where all of these columns are NULL.
///
/// ```text
///   b.v + 1 > 3                  yes, of the columns of b
///   b.v > 3 OR b.k = 1           yes
///   b.v > 3 OR a.v > 3           no
///   NOT (b.v <=> 3)              no
/// ```
pub fn refuses_missing(condition: &Scalar, missing: &ColumnSet) -> bool {
    !Outcomes::of(condition, missing).may_be_true
}

/// What a condition may be.
#[derive(Clone, Copy)]
struct Outcomes {
    may_be_true: bool,
    may_be_false: bool,
    may_be_unknown: bool,
}

impl Outcomes {
    const ANY: Outcomes = Outcomes {
        may_be_true: true,
        may_be_false: true,
        may_be_unknown: true,
    };

    fn only(value: Option<bool>) -> Outcomes {
        Outcomes {
            may_be_true: value == Some(true),
            may_be_false: value == Some(false),
            may_be_unknown: value.is_none(),
        }
    }

    /// Of a condition, where columns are NULL.
    fn of(condition: &Scalar, missing: &ColumnSet) -> Outcomes {
        let of = |operand: &Scalar| Outcomes::of(operand, missing);
        match condition.kind() {
            ScalarKind::Literal(value) => match value.as_ref() {
                ScalarValue::Boolean(value) => Outcomes::only(*value),
                value if value.is_null() => Outcomes::only(None),
                _ => Outcomes::ANY,
            },
            ScalarKind::And(conditions) => {
                let all = conditions.iter().map(of);
                all.reduce(Outcomes::and).unwrap_or(Outcomes::ANY)
            }
            ScalarKind::Or(conditions) => {
                let all = conditions.iter().map(|operand| of(operand).not());
                all.reduce(Outcomes::and)
                    .map_or(Outcomes::ANY, Outcomes::not)
            }
            ScalarKind::Not(operand) => of(operand).not(),
            ScalarKind::Test {
                operand,
                is,
                negated,
            } => {
                let found = match is {
                    Truth::Null | Truth::Unknown if is_missing(operand, missing) => {
                        Outcomes::only(Some(true))
                    }
                    Truth::Null if !operand.is_condition() => Outcomes::ANY,
                    is => of(operand).test(*is),
                };
                match negated {
                    true => found.not(),
                    false => found,
                }
            }
            ScalarKind::Comparison {
                operator: Comparison::NullSafeEqual,
                left,
                right,
            } => match [left, right].map(|operand| is_missing(operand, missing)) {
                [true, true] => Outcomes::only(Some(true)),
                [true, false] if is_value(right) => Outcomes::only(Some(false)),
                [false, true] if is_value(left) => Outcomes::only(Some(false)),
                _ => Outcomes::ANY,
            },
            ScalarKind::Call {
                function,
                arguments,
            } if values_of(function).is_some() => {
                // A row that is not in a list for another of its values may be false.
                let mut arguments = arguments.iter();
                Outcomes {
                    may_be_true: !arguments.any(|argument| is_missing(argument, missing)),
                    ..Outcomes::ANY
                }
            }
            _ if is_missing(condition, missing) => Outcomes::only(None),
            _ => Outcomes::ANY,
        }
    }

    fn and(self, other: Outcomes) -> Outcomes {
        Outcomes {
            may_be_true: self.may_be_true && other.may_be_true,
            may_be_false: self.may_be_false || other.may_be_false,
            may_be_unknown: self.may_be_unknown || other.may_be_unknown,
        }
    }

    fn not(self) -> Outcomes {
        Outcomes {
            may_be_true: self.may_be_false,
            may_be_false: self.may_be_true,
            may_be_unknown: self.may_be_unknown,
        }
    }

    /// Of `condition IS TRUE` and its relatives.
    fn test(self, is: Truth) -> Outcomes {
        let (yes, no) = match is {
            Truth::True => (self.may_be_true, self.may_be_false || self.may_be_unknown),
            Truth::False => (self.may_be_false, self.may_be_true || self.may_be_unknown),
            Truth::Null | Truth::Unknown => {
                (self.may_be_unknown, self.may_be_true || self.may_be_false)
            }
        };
        Outcomes {
            may_be_true: yes,
            may_be_false: no,
            may_be_unknown: false,
        }
    }
}

/// Whether it is a literal that is not NULL. A column may be NULL where its type says that it is not.
fn is_value(scalar: &Scalar) -> bool {
    scalar.as_literal().is_some_and(|value| !value.is_null())
}

/// Whether a value is NULL wherever these columns are.
fn is_missing(value: &Scalar, missing: &ColumnSet) -> bool {
    let is_missing = |operand: &Scalar| is_missing(operand, missing);
    match value.kind() {
        ScalarKind::Column(id) => missing.contains(*id),
        ScalarKind::Literal(value) => value.is_null(),
        ScalarKind::Cast(operand) | ScalarKind::Not(operand) => is_missing(operand),
        ScalarKind::InList { operand, .. } => is_missing(operand),
        ScalarKind::Call {
            function,
            arguments,
        } => function.is_strict() && arguments.iter().any(is_missing),
        ScalarKind::Comparison {
            operator,
            left,
            right,
        } => *operator != Comparison::NullSafeEqual && (is_missing(left) || is_missing(right)),
        ScalarKind::And(_)
        | ScalarKind::Or(_)
        | ScalarKind::Test { .. }
        | ScalarKind::Case { .. } => false,
    }
}
