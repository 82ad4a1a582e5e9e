//! What is known of an operator's rows, derived from what is known of its inputs'.
//!
//! A property holds at a place of the tree: a column of the inner side of an outer join is never NULL below the join,
//! and may be above it. All of them are about MySQL's equality, by which texts are equal that differ in case, for
//! example.
//!
//! | file | property |
//! |---|---|
//! | [`keys`] | columns on which no two rows agree |
//! | [`dependencies`] | columns that determine others |
//! | [`constants`] | columns that a derived table computes of nothing |
//! | [`equivalences`] | columns that are equal in every row, where none of them is NULL |
//! | [`nullability`] | columns that are never NULL |
//! | [`order`] | the order in which rows come |

pub mod constants;
pub mod dependencies;
pub mod equivalences;
pub mod keys;
pub mod nullability;
pub mod order;

pub use dependencies::{Dependencies, Dependency};
pub use order::OrderedColumn;

use arrow::datatypes::DataType;
use sheaf_exec::functions::collation::COLLATION_KEY;

use crate::column::ColumnId;
use crate::column_set::ColumnSet;
use crate::relation::{DependentKind, JoinKind, Operator, Relation};
use crate::scalar::{Scalar, ScalarKind};

/// What is known of an operator's rows.
#[derive(Clone, Debug, Default)]
pub struct Properties {
    /// In order.
    pub columns: Vec<ColumnId>,
    /// Columns of the queries around.
    pub free: ColumnSet,
    /// On all columns of a key no two rows agree, NULL being equal to NULL. The empty key: there is at most one row.
    pub keys: Vec<ColumnSet>,
    pub dependencies: Dependencies,
    /// Sets that do not overlap.
    pub equivalences: Vec<ColumnSet>,
    pub not_null: ColumnSet,
    pub order: Vec<OrderedColumn>,
}

impl Properties {
    pub(crate) fn of(operator: &Operator) -> Properties {
        let columns = columns(operator);
        let set: ColumnSet = columns.iter().copied().collect();
        let mut properties = Properties {
            free: free_columns(operator),
            keys: keys::of(operator),
            dependencies: dependencies::of(operator),
            equivalences: equivalences::of(operator),
            not_null: nullability::not_null(operator).intersection(&set),
            order: order::of(operator),
            columns,
        };
        properties.keys.retain(|key| key.is_subset(&set));
        properties
    }

    pub fn has_at_most_one_row(&self) -> bool {
        self.keys.iter().any(ColumnSet::is_empty)
    }

    /// Whether no two rows agree on these columns.
    pub fn has_key_among(&self, given: &ColumnSet) -> bool {
        self.keys.iter().any(|key| key.is_subset(given))
    }

    /// As [`Self::determined_by`], within one run of a subquery. Columns of the queries around are constants there.
    pub fn determined_in_a_run(&self, given: &ColumnSet) -> ColumnSet {
        self.determined_by(&given.clone().union(&self.free))
    }

    /// All columns that are the same in all rows that agree on `given`, as ONLY_FULL_GROUP_BY has it. It says that
    /// texts that are equal to a collation determine what is computed from them, although that may tell them apart.
    pub fn determined_by(&self, given: &ColumnSet) -> ColumnSet {
        let mut determined = given.clone();
        loop {
            let before = determined.len();
            for dependency in self.dependencies.iter() {
                if dependency.from.is_subset(&determined) {
                    determined.union_with(&dependency.to);
                }
            }
            if determined.len() == before {
                return determined;
            }
        }
    }
}

/// What a join has of its right side.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum RightSide {
    /// Its columns.
    Shown,
    /// Its columns, or NULL in all of them.
    MayBeMissing,
    /// Nothing.
    Tested,
}

/// Both sides of a join of any kind.
pub(crate) struct Sides<'a> {
    pub left: &'a Relation,
    pub right: &'a Relation,
    pub right_side: RightSide,
    pub condition: Option<&'a Scalar>,
    /// Whether rows that do not meet the condition are lost.
    pub filters: bool,
    /// Of no row of the left side come several.
    pub keeps_left_rows: bool,
}

/// The sides of an operator that is a join.
pub(crate) fn sides(operator: &Operator) -> Option<Sides<'_>> {
    let (left, right, condition, right_side, filters) = match operator {
        Operator::Join(join) => {
            let (right_side, filters) = match join.kind {
                JoinKind::Inner => (RightSide::Shown, true),
                JoinKind::LeftOuter => (RightSide::MayBeMissing, false),
                JoinKind::Semi | JoinKind::Anti | JoinKind::Mark(_) => (RightSide::Tested, false),
            };
            (
                &join.left,
                &join.right,
                &join.condition,
                right_side,
                filters,
            )
        }
        Operator::DependentJoin(join) => {
            let (right_side, filters) = match join.kind {
                DependentKind::Inner => (RightSide::Shown, true),
                DependentKind::LeftOuter | DependentKind::Single(_) => {
                    (RightSide::MayBeMissing, false)
                }
                DependentKind::Semi
                | DependentKind::Anti
                | DependentKind::Mark(_)
                | DependentKind::Found(_) => (RightSide::Tested, false),
            };
            (
                &join.left,
                &join.right,
                &join.condition,
                right_side,
                filters,
            )
        }
        _ => return None,
    };
    let is_single = matches!(operator, Operator::DependentJoin(join) if matches!(join.kind, DependentKind::Single(_)));
    Some(Sides {
        left,
        right,
        right_side,
        condition: condition.as_ref(),
        filters,
        keeps_left_rows: is_single
            || right_side == RightSide::Tested
            || right.properties().has_at_most_one_row(),
    })
}

fn columns(operator: &Operator) -> Vec<ColumnId> {
    if let Some(sides) = sides(operator) {
        let left = sides.left.columns();
        let mut columns = Vec::with_capacity(left.len() + 1);
        columns.extend(left);
        match operator {
            Operator::Join(join) => match join.kind {
                JoinKind::Mark(mark) => columns.push(mark),
                JoinKind::Inner | JoinKind::LeftOuter => {
                    columns.reserve_exact(sides.right.columns().len());
                    columns.extend(sides.right.columns());
                }
                JoinKind::Semi | JoinKind::Anti => {}
            },
            Operator::DependentJoin(join) => match join.kind {
                DependentKind::Mark(column)
                | DependentKind::Found(column)
                | DependentKind::Single(column) => columns.push(column),
                DependentKind::Inner | DependentKind::LeftOuter => {
                    columns.reserve_exact(sides.right.columns().len());
                    columns.extend(sides.right.columns());
                }
                DependentKind::Semi | DependentKind::Anti => {}
            },
            _ => {}
        }
        return columns;
    }
    match operator {
        Operator::Scan(scan) => scan.columns.clone(),
        Operator::Values(values) => values.columns.clone(),
        Operator::SetOperation(operation) => operation.columns.clone(),
        Operator::Recursive(recursive) => recursive.columns.clone(),
        Operator::Project(project) => project.items.iter().map(|item| item.column).collect(),
        Operator::Filter(filter) => filter.input.columns().to_vec(),
        Operator::Sort(sort) => sort.input.columns().to_vec(),
        Operator::Limit(limit) => limit.input.columns().to_vec(),
        Operator::Expand(expand) => expand.kept.iter().chain(&expand.columns).copied().collect(),
        Operator::Group(group) => {
            let aggregates = group.aggregates.iter().map(|(id, _)| *id);
            let rows = group.keys.iter().chain(&group.carried).copied();
            rows.chain(aggregates).chain(group.rollup).collect()
        }
        Operator::Window(window) => {
            let functions = window.functions.iter().map(|(id, _)| *id);
            window
                .input
                .columns()
                .iter()
                .copied()
                .chain(functions)
                .collect()
        }
        Operator::Join(_) | Operator::DependentJoin(_) => Vec::new(),
    }
}

/// Columns that are used and that no input has.
fn free_columns(operator: &Operator) -> ColumnSet {
    let mut used = ColumnSet::new();
    operator.for_each_scalar(&mut |scalar| scalar.add_columns(&mut used));
    let (mut given, mut free) = (ColumnSet::new(), ColumnSet::new());
    let mut add = |input: &Relation| {
        given.union_with(&input.column_set());
        free.union_with(input.free_columns());
    };
    match operator {
        Operator::Scan(_) | Operator::Values(_) => {}
        Operator::Filter(node) => add(&node.input),
        Operator::Project(node) => add(&node.input),
        Operator::Expand(node) => add(&node.input),
        Operator::Group(node) => add(&node.input),
        Operator::Window(node) => add(&node.input),
        Operator::Sort(node) => add(&node.input),
        Operator::Limit(node) => add(&node.input),
        Operator::SetOperation(node) => node.inputs.iter().for_each(add),
        Operator::Recursive(node) => {
            add(&node.first);
            add(&node.round);
        }
        Operator::Join(node) => {
            add(&node.left);
            add(&node.right);
        }
        Operator::DependentJoin(node) => {
            add(&node.left);
            add(&node.right);
            // What the right side takes from the left is not free.
            free = free.difference(&node.left.column_set());
            free.union_with(node.left.free_columns());
        }
    }
    used.difference(&given).union(&free)
}

/// The collation by bytes: none sets more texts apart.
const BYTES: &str = "binary";

/// The column under conversions: sort keys of texts, and casts. It is NULL where they are.
pub(crate) fn plain_column(scalar: &Scalar) -> Option<ColumnId> {
    match scalar.kind() {
        ScalarKind::Column(id) => Some(*id),
        ScalarKind::Cast(operand) => plain_column(operand),
        ScalarKind::Call {
            function,
            arguments,
        } if function.name() == COLLATION_KEY => plain_column(arguments.first()?),
        _ => None,
    }
}

/// The column under conversions that are equal only of values that are equal in the column. These are casts to wider
/// types, and sort keys of texts by bytes or by the column's own collation, whose equality properties mean.
///
/// ```text
///   i BIGINT                       CAST(i AS DOUBLE) is equal of 9007199254740992 and 9007199254740993
///   s .. COLLATE utf8mb4_bin       ck(s, utf8mb4_general_ci) is equal of 'a' and 'A'
/// ```
pub(crate) fn exact_column(scalar: &Scalar) -> Option<ColumnId> {
    match scalar.kind() {
        ScalarKind::Column(id) => Some(*id),
        ScalarKind::Cast(operand)
            if is_wider(scalar.field().data_type(), operand.field().data_type()) =>
        {
            exact_column(operand)
        }
        ScalarKind::Call {
            function,
            arguments,
        } if function.name() == COLLATION_KEY => {
            let [text, collation] = arguments.as_slice() else {
                return None;
            };
            let name = collation.as_literal()?.try_as_str()??;
            let own = text.sql_type().collation()?.name();
            match name == own || name == BYTES {
                true => exact_column(text),
                false => None,
            }
        }
        _ => None,
    }
}

/// Those in front of the point.
fn whole_digits(precision: u8, scale: i8) -> i16 {
    i16::from(precision) - i16::from(scale)
}

/// Whether different values of one type are different ones of another.
fn is_wider(wider: &DataType, narrow: &DataType) -> bool {
    match wider {
        _ if wider == narrow => true,
        wider if wider.is_integer() => narrow.is_integer(),
        DataType::Decimal128(precision, scale) => {
            let (digits, narrow_scale) = match narrow {
                DataType::Decimal128(precision, scale) => {
                    (whole_digits(*precision, *scale), *scale)
                }
                DataType::Int8 | DataType::UInt8 => (3, 0),
                DataType::Int16 | DataType::UInt16 => (5, 0),
                DataType::Int32 | DataType::UInt32 => (10, 0),
                DataType::Int64 => (19, 0),
                DataType::UInt64 => (20, 0),
                _ => return false,
            };
            *scale >= narrow_scale && whole_digits(*precision, *scale) >= digits
        }
        DataType::Float64 => match narrow {
            DataType::Float32 => true,
            narrow => narrow.is_integer() && narrow.primitive_width() < Some(size_of::<i64>()),
        },
        DataType::Timestamp(unit, _) => match narrow {
            DataType::Date32 => true,
            DataType::Timestamp(narrow, _) => unit >= narrow,
            _ => false,
        },
        _ => false,
    }
}
