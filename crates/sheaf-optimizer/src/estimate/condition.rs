//! What a condition says about single columns.
//!
//! A [`Term`] is a condition as far as key ranges and encoded conditions can use it: sets of values per column under
//! AND and OR, and [`Term::Opaque`] for the rest. A term never claims less than its condition: every row that the
//! condition accepts lies in the term's sets. `exact` says that the converse holds too.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Bound;

use arrow::array::{Array, ArrayRef};
use arrow::datatypes::{DataType, TimeUnit};
use datafusion_common::ScalarValue;
use datafusion_expr::expr::InList;
use datafusion_expr::utils::split_binary;
use datafusion_expr::{Between, BinaryExpr, Expr, Operator};
use sheaf_access::{CompareOp, EncodedCondition, cancel};
use sheaf_exec::functions::collation::{as_like_beginning_of_bytes, as_like_prefix, sort_key};
use sheaf_exec::functions::in_values::as_in_values;
use sheaf_table::{TableDefinition, text_of_sort_key};
use sheaf_types::assignment::{Mode, assign};
use sheaf_types::labels::text_of_number;
use sheaf_types::{Collation, ColumnType, Value};
use smallvec::SmallVec;

use crate::estimate::column_set::{ColumnSet, Interval, Within, any_within, distinct_bounds};
use crate::logical::literal::{self, Floor};
use crate::logical::semantics;

/// A condition, seen through the eyes of an index.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Term {
    /// The column's value is in the set.
    Column {
        column: usize,
        set: ColumnSet,
        exact: bool,
    },
    And(Vec<Term>),
    Or(Vec<Term>),
    /// Nothing is known.
    Opaque,
}

/// The term's own conjuncts.
pub(crate) fn conjuncts(term: &Term) -> Conjuncts<'_> {
    Conjuncts {
        open: SmallVec::from_iter([std::slice::from_ref(term).iter()]),
    }
}

/// See [`conjuncts`]. A long OR asks for them of each of its branches.
pub(crate) struct Conjuncts<'t> {
    open: SmallVec<[std::slice::Iter<'t, Term>; 2]>,
}

impl<'t> Iterator for Conjuncts<'t> {
    type Item = &'t Term;

    fn next(&mut self) -> Option<&'t Term> {
        loop {
            match self.open.last_mut()?.next() {
                None => drop(self.open.pop()),
                Some(Term::And(terms)) => self.open.push(terms.iter()),
                Some(term) => return Some(term),
            }
        }
    }
}

impl Term {
    /// The condition on encoded bytes, if all of it can be said so.
    pub(crate) fn encoded(&self, table: &TableDefinition) -> Option<EncodedCondition> {
        let all = |terms: &[Term]| {
            terms
                .iter()
                .map(|term| term.encoded(table))
                .collect::<Option<Vec<_>>>()
        };
        match self {
            Term::Column {
                column,
                set,
                exact: true,
            } => set.encoded(*column, &table.columns[*column].ty),
            Term::Column { .. } | Term::Opaque => None,
            Term::And(terms) => all(terms).map(EncodedCondition::And),
            Term::Or(terms) => {
                let conditions = all(terms)?;
                let Some(column) = common_column(terms) else {
                    return Some(EncodedCondition::Or(conditions));
                };
                let conditions = terms.iter().zip(conditions);
                let within = conditions.map(|(term, condition)| {
                    let (lower, upper) = term.hull(column)?;
                    Some(Within {
                        lower,
                        upper,
                        condition,
                    })
                });
                let ty = &table.columns[column].ty;
                any_within(column, ty, within.collect::<Option<_>>()?)
            }
        }
    }

    /// Whether the term says all of its condition.
    fn is_exact(&self) -> bool {
        match self {
            Term::Column { exact, .. } => *exact,
            Term::And(terms) | Term::Or(terms) => terms.iter().all(Term::is_exact),
            Term::Opaque => false,
        }
    }

    /// The least and the greatest value of a column for which the term may be true; `None` if it says nothing of the
    /// column, or may be true for NULL.
    fn hull(&self, column: usize) -> Option<(Bound<&Value>, Bound<&Value>)> {
        conjuncts(self).find_map(|term| match term {
            Term::Column {
                column: known, set, ..
            } if *known == column => set.hull(),
            _ => None,
        })
    }
}

/// Conditions that are evaluated to test `expr`, whose term this is, on a row. Of an OR it is one after the other,
/// until one is true; but sets of one column are searched, on encoded bytes.
pub(crate) fn tests(expr: &Expr, term: &Term) -> usize {
    match is_searched(term) {
        true => 1,
        false => split_binary(expr, Operator::Or).len(),
    }
}

/// Whether the term is one test of encoded bytes.
fn is_searched(term: &Term) -> bool {
    match term {
        Term::Or(terms) => term.is_exact() && common_columns(terms).next().is_some(),
        Term::And(terms) => terms.iter().all(is_searched),
        Term::Column { exact, .. } => *exact,
        Term::Opaque => false,
    }
}

/// Of the columns of which all terms say between which values it is, the one that tells most of them apart.
fn common_column(terms: &[Term]) -> Option<usize> {
    let mut columns = common_columns(terms);
    let first = columns.next()?;
    let Some(second) = columns.next() else {
        return Some(first);
    };
    let mut best = (
        distinct_bounds(terms.iter().filter_map(|term| term.hull(first))),
        first,
    );
    for column in std::iter::once(second).chain(columns) {
        let bounds = distinct_bounds(terms.iter().filter_map(|term| term.hull(column)));
        if bounds > best.0 {
            best = (bounds, column);
        }
    }
    Some(best.1)
}

/// The columns of which all terms say between which values they are.
fn common_columns(terms: &[Term]) -> impl Iterator<Item = usize> {
    let first = terms.first().into_iter().flat_map(conjuncts);
    let columns = first.filter_map(|term| match term {
        Term::Column { column, .. } => Some(*column),
        _ => None,
    });
    columns.filter(|column| terms.iter().all(|term| term.hull(*column).is_some()))
}

/// Reads `expr`, a condition on one table. Its columns are found by name.
pub(crate) fn analyze(expr: &Expr, table: &TableDefinition) -> Term {
    match expr {
        Expr::BinaryExpr(BinaryExpr {
            left,
            op: Operator::And,
            right,
        }) => and(analyze_all([left, right], Operator::And, table)),
        Expr::BinaryExpr(BinaryExpr {
            left,
            op: Operator::Or,
            right,
        }) => any_branch(analyze_all([left, right], Operator::Or, table)),
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => comparison(left, *op, right, table),
        Expr::Between(Between {
            expr,
            negated: false,
            low,
            high,
        }) => {
            let low = comparison(expr, Operator::GtEq, low, table);
            let high = comparison(expr, Operator::LtEq, high, table);
            and(vec![low, high])
        }
        Expr::InList(InList {
            expr,
            list,
            negated,
        }) => {
            let op = if *negated {
                Operator::NotEq
            } else {
                Operator::Eq
            };
            let column = compared_column(expr, table);
            let term = |item: &Expr| match (&column, semantics::constant(item)) {
                // The estimate of a cancelled statement is not used.
                _ if cancel::is_statement_cancelled() => Term::Opaque,
                (Some(column), Some(constant)) => compare_with(column, op, &constant, table),
                _ => comparison(expr, op, item, table),
            };
            let terms = list.iter().map(term).collect();
            if *negated { and(terms) } else { or(terms) }
        }
        Expr::IsNull(inner) => null_test(inner, ColumnSet::null(), table),
        Expr::IsNotNull(inner) => null_test(inner, ColumnSet::not_null(), table),
        // Only rows for which the condition is true are kept, so these change nothing.
        Expr::IsTrue(inner) => analyze(inner, table),
        Expr::Alias(alias) => analyze(&alias.expr, table),
        Expr::Literal(ScalarValue::Boolean(Some(true)), _) => Term::And(Vec::new()),
        Expr::Literal(ScalarValue::Boolean(_) | ScalarValue::Null, _) => Term::Or(Vec::new()),
        other => packed_list(other, table)
            .or_else(|| like(other, table))
            .unwrap_or(Term::Opaque),
    }
}

/// A long list of constants; `None` if it is something else.
fn packed_list(expr: &Expr, table: &TableDefinition) -> Option<Term> {
    let (list, negated) = match expr {
        Expr::Not(inner) => (inner.as_ref(), true),
        other => (other, false),
    };
    let (operands, columns) = as_in_values(list)?;
    match (operands, columns) {
        ([operand], [values]) => {
            let column = compared_column(operand, table)?;
            let values = values_of(&column, values, table)?.into_iter().flatten();
            let intervals = match negated {
                true => between(values.collect()),
                false => values.map(Interval::of_point).collect(),
            };
            Some(Term::Column {
                column: column.position,
                set: ColumnSet::of_intervals(intervals, None),
                exact: true,
            })
        }
        (operands, columns) if !negated => packed_rows(operands, columns, table),
        _ => None,
    }
}

/// A long list of rows.
fn packed_rows(operands: &[Expr], columns: &[ArrayRef], table: &TableDefinition) -> Option<Term> {
    let operands = operands.iter().zip(columns);
    let columns: Vec<_> = operands
        .map(|(operand, values)| {
            let column = compared_column(operand, table)?;
            let values = values_of(&column, values, table)?;
            Some((column.position, values.into_iter()))
        })
        .collect();
    let rows = columns.iter().flatten().map(|(_, values)| values.len());
    let rows = rows.max()?;
    let known = columns.iter().flatten().map(|(column, _)| *column);
    let different: BTreeSet<usize> = known.clone().collect();
    let are_different = different.len() == known.count();
    let mut columns = columns;
    let terms = (0..rows).map(|_| {
        let parts = columns.iter_mut().map(|column| match column {
            Some((column, values)) => Term::Column {
                column: *column,
                set: match values.next().flatten() {
                    Some(value) => ColumnSet::point(value),
                    None => ColumnSet::nothing(),
                },
                exact: true,
            },
            None => Term::Opaque,
        });
        let parts = parts.collect();
        // There are no two sets of one column to intersect.
        match are_different {
            true => Term::And(parts),
            false => and(parts),
        }
    });
    Some(or(terms.collect()))
}

/// The values of a list as those of the column, each `None` if it is none; `None` if the column does not order them so.
fn values_of(
    column: &ComparedColumn,
    values: &ArrayRef,
    table: &TableDefinition,
) -> Option<Vec<Option<Value>>> {
    let ty = &table.columns[column.position].ty;
    if ty.has_labels() || ty.collation() != column.collation {
        return None;
    }
    let value = |row: usize| {
        let constant = ScalarValue::try_from_array(values, row).ok()?;
        Some(match literal::floor(ty, &constant)? {
            Floor::At { value, exact: true } => Some(value),
            Floor::At { .. } | Floor::Below | Floor::Null => None,
        })
    };
    (0..values.len()).map(value).collect()
}

/// What lies between ascending values, below the first and above the last.
fn between(values: Vec<Value>) -> Vec<Interval> {
    let mut intervals = Vec::with_capacity(values.len() + 1);
    let mut lower = Bound::Unbounded;
    for value in values {
        let upper = Bound::Excluded(value.clone());
        intervals.extend(Interval::within(lower, upper));
        lower = Bound::Excluded(value);
    }
    intervals.push(Interval::Range {
        lower,
        upper: Bound::Unbounded,
    });
    intervals
}

/// The terms of a chain of ANDs or ORs, however it is nested: united all at once, each is gone through once.
fn analyze_all(operands: [&Expr; 2], op: Operator, table: &TableDefinition) -> Vec<Term> {
    let operands = operands.into_iter();
    let chain = operands.flat_map(|operand| split_binary(operand, op));
    chain.map(|operand| analyze(operand, table)).collect()
}

/// The conjunction, with the sets of one column intersected.
fn and(terms: Vec<Term>) -> Term {
    // A range, of which a long OR may have one in each branch.
    if let [
        Term::Column { column, set, exact },
        Term::Column {
            column: other,
            set: other_set,
            exact: other_exact,
        },
    ] = terms.as_slice()
        && column == other
    {
        return Term::Column {
            column: *column,
            set: set.intersect(other_set),
            exact: *exact && *other_exact,
        };
    }
    let mut merged: Vec<Term> = Vec::new();
    // By column, where its term stands and the sets that are to go into it.
    let mut gathered: BTreeMap<usize, (usize, Vec<ColumnSet>)> = BTreeMap::new();
    for term in flatten(terms, |term| match term {
        Term::And(inner) => Ok(inner),
        other => Err(other),
    }) {
        let Term::Column { column, set, exact } = term else {
            merged.push(term);
            continue;
        };
        if let Some((place, sets)) = gathered.get_mut(&column) {
            sets.push(set);
            if let Term::Column { exact: known, .. } = &mut merged[*place] {
                *known &= exact;
            }
        } else {
            gathered.insert(column, (merged.len(), vec![set]));
            merged.push(Term::Column {
                column,
                set: ColumnSet::nothing(),
                exact,
            });
        }
    }
    for (place, sets) in gathered.into_values() {
        if let (Term::Column { set, .. }, Some(all)) =
            (&mut merged[place], ColumnSet::intersection(sets))
        {
            *set = all;
        }
    }
    if merged.len() == 1 {
        merged.remove(0)
    } else {
        Term::And(merged)
    }
}

/// The disjunction, with the sets of one column united.
fn or(terms: Vec<Term>) -> Term {
    let mut merged: Vec<Term> = Vec::new();
    // Where the sets of a column with the same LIKE prefix stand; others have no union.
    let mut places: HashMap<(usize, Option<String>), usize> = HashMap::new();
    for term in flatten(terms, |term| match term {
        Term::Or(inner) => Ok(inner),
        other => Err(other),
    }) {
        let Term::Column { column, set, exact } = term else {
            merged.push(term);
            continue;
        };
        let place = places.entry((column, set.starts_with.clone()));
        let place = *place.or_insert(merged.len());
        if let Some(Term::Column {
            set: known,
            exact: known_exact,
            ..
        }) = merged.get_mut(place)
        {
            known.intervals.extend(set.intervals);
            *known_exact &= exact;
        } else {
            merged.push(Term::Column { column, set, exact });
        }
    }
    for term in &mut merged {
        if let Term::Column { set, .. } = term {
            let intervals = std::mem::take(&mut set.intervals);
            *set = ColumnSet::of_intervals(intervals, set.starts_with.take());
        }
    }
    if merged.len() == 1 {
        merged.remove(0)
    } else {
        Term::Or(merged)
    }
}

/// The disjunction. What every branch says of a column is said once, where sets of columns say all that is left:
/// `c AND d = 1 OR c AND d = 2` is `c AND d IN (1, 2)`. An index can then be asked for both, and a row is not tested
/// branch by branch. Only rows for which it is true are kept, so `c OR c AND d` is `c`.
fn any_branch(branches: Vec<Term>) -> Term {
    let Some((Term::And(first), others @ [_, ..])) = branches.split_first() else {
        return or(branches);
    };
    let is_exact = |term: &&Term| matches!(term, Term::Column { exact: true, .. });
    let mut common: Vec<Term> = first.iter().filter(is_exact).cloned().collect();
    for branch in others {
        if common.is_empty() {
            return or(branches);
        }
        common.retain(|term| match branch {
            Term::And(terms) => terms.contains(term),
            other => other == term,
        });
    }
    if common.is_empty() {
        return or(branches);
    }
    let mut rests = Vec::with_capacity(branches.len());
    for branch in &branches {
        let terms = match branch {
            Term::And(terms) => terms.as_slice(),
            other => std::slice::from_ref(other),
        };
        let rest = terms.iter().filter(|term| !common.contains(term));
        let rest: Vec<Term> = rest.cloned().collect();
        if rest.is_empty() {
            return and(common);
        }
        rests.push(and(rest));
    }
    match or(rests) {
        rest @ Term::Column { .. } => {
            common.push(rest);
            and(common)
        }
        _ => or(branches),
    }
}

fn flatten(terms: Vec<Term>, open: impl Fn(Term) -> Result<Vec<Term>, Term> + Copy) -> Vec<Term> {
    let mut flat = Vec::with_capacity(terms.len());
    for term in terms {
        match open(term) {
            Ok(inner) => flat.extend(flatten(inner, open)),
            Err(term) => flat.push(term),
        }
    }
    flat
}

/// A column that is compared, possibly through a cast that keeps its order.
struct ComparedColumn {
    position: usize,
    /// Compared under this collation; `None`: by the order of its Arrow values.
    collation: Option<Collation>,
}

fn compared_column(expr: &Expr, table: &TableDefinition) -> Option<ComparedColumn> {
    match expr {
        Expr::Column(column) => Some(ComparedColumn {
            position: table.position_in_plan(&column.name)?,
            collation: None,
        }),
        Expr::Cast(cast) => {
            let inner = compared_column(&cast.expr, table)?;
            let from = sheaf_access::arrow_type(&table.columns[inner.position].ty);
            keeps_order(&from, cast.field.data_type()).then_some(inner)
        }
        Expr::Alias(alias) => compared_column(&alias.expr, table),
        other => {
            let (inner, collation) = semantics::collation_key(other)?;
            let inner = compared_column(inner, table)?;
            Some(ComparedColumn {
                collation: Some(collation),
                ..inner
            })
        }
    }
}

/// Whether a cast maps different values to different values in the same order.
pub(crate) fn keeps_order(from: &DataType, to: &DataType) -> bool {
    use DataType::{Date32, Decimal128, Float32, Float64, LargeUtf8, Timestamp, Utf8, Utf8View};
    let integer_digits = |ty: &DataType| match ty {
        DataType::Int8 | DataType::UInt8 => Some(3),
        DataType::Int16 | DataType::UInt16 => Some(5),
        DataType::Int32 | DataType::UInt32 => Some(10),
        DataType::Int64 => Some(19),
        DataType::UInt64 => Some(20),
        _ => None,
    };
    match (from, to) {
        (from, to) if from == to => true,
        (from, to) if from.is_integer() && to.is_integer() => {
            let (Some(from_width), Some(to_width)) = (from.primitive_width(), to.primitive_width())
            else {
                return false;
            };
            match (from.is_unsigned_integer(), to.is_unsigned_integer()) {
                (a, b) if a == b => from_width <= to_width,
                (true, false) => from_width < to_width,
                _ => false,
            }
        }
        (from, Decimal128(precision, scale)) if from.is_integer() => {
            let digits = integer_digits(from).unwrap_or(u8::MAX);
            i16::from(*precision) - i16::from(*scale) >= i16::from(digits)
        }
        (Decimal128(p1, s1), Decimal128(p2, s2)) => {
            s2 >= s1 && i16::from(*p2) - i16::from(*s2) >= i16::from(*p1) - i16::from(*s1)
        }
        // A double holds 32-bit integers and floats exactly.
        (from, Float64) if from.is_integer() => {
            from.primitive_width().is_some_and(|width| width <= 4)
        }
        (Float32, Float64) | (Date32, Timestamp(TimeUnit::Microsecond, None)) => true,
        (Utf8 | LargeUtf8 | Utf8View, Utf8 | LargeUtf8 | Utf8View) => true,
        _ => false,
    }
}

fn comparison(left: &Expr, op: Operator, right: &Expr, table: &TableDefinition) -> Term {
    if let Some(column) = compared_column(left, table)
        && let Some(constant) = semantics::constant(right)
    {
        return compare_with(&column, op, &constant, table);
    }
    if let Some(column) = compared_column(right, table)
        && let Some(constant) = semantics::constant(left)
        && let Some(op) = op.swap()
    {
        return compare_with(&column, op, &constant, table);
    }
    Term::Opaque
}

fn compare_with(
    column: &ComparedColumn,
    op: Operator,
    constant: &ScalarValue,
    table: &TableDefinition,
) -> Term {
    let position = column.position;
    let ty = &table.columns[position].ty;
    let term = |set| Term::Column {
        column: position,
        set,
        exact: true,
    };
    if let (Some(labels), Some(collation)) = (ty.enum_labels(), ty.collation()) {
        return match enum_numbers(labels, collation, column.collation, op, constant) {
            Some(set) => term(set),
            None => Term::Opaque,
        };
    }
    if let (Some(labels), Some(collation)) = (ty.set_labels(), ty.collation()) {
        return match set_number(
            ty,
            (&labels[..], collation),
            column.collation,
            (op, constant),
        ) {
            Some(set) => term(set),
            None => Term::Opaque,
        };
    }
    // The index is in the order of the column's own collation; any other order is no range of it.
    if ty.collation() != column.collation && !constant.is_null() {
        return Term::Opaque;
    }
    let Some(floor) = literal::floor(ty, constant) else {
        return Term::Opaque;
    };
    let op = match (op, &floor) {
        (Operator::IsNotDistinctFrom, Floor::Null) => return term(ColumnSet::null()),
        (Operator::Eq | Operator::IsNotDistinctFrom, _) => CompareOp::Eq,
        (Operator::NotEq, _) => CompareOp::NotEq,
        (Operator::Lt, _) => CompareOp::Less,
        (Operator::LtEq, _) => CompareOp::LessOrEqual,
        (Operator::Gt, _) => CompareOp::Greater,
        (Operator::GtEq, _) => CompareOp::GreaterOrEqual,
        _ => return Term::Opaque,
    };
    term(ColumnSet::of_bounds(floor.bounds(op)))
}

/// An ENUM compared with a string compares its labels, but the index has their numbers: the numbers of the labels for
/// which the comparison is true.
fn enum_numbers(
    labels: &[String],
    collation: Collation,
    compared_under: Option<Collation>,
    op: Operator,
    constant: &ScalarValue,
) -> Option<ColumnSet> {
    if compared_under != Some(collation) {
        return None;
    }
    let wanted = literal::bytes_of(constant)?;
    let mut intervals = Vec::new();
    // Number 0 is the empty error value, which reads as ''.
    let labels = std::iter::once("").chain(labels.iter().map(String::as_str));
    for (number, label) in (0u16..).zip(labels) {
        let key = sort_key(label, collation);
        let order = key.as_slice().cmp(wanted);
        let matches = match op {
            Operator::Eq | Operator::IsNotDistinctFrom => order.is_eq(),
            Operator::NotEq => order.is_ne(),
            Operator::Lt => order.is_lt(),
            Operator::LtEq => order.is_le(),
            Operator::Gt => order.is_gt(),
            Operator::GtEq => order.is_ge(),
            _ => return None,
        };
        if matches {
            intervals.extend(ColumnSet::point(Value::Enum(number)).intervals);
        }
    }
    Some(ColumnSet::of_intervals(intervals, None))
}

/// A SET that is equal to a string: its number, if the string is the text of one. `None` where only the rows tell.
fn set_number(
    ty: &ColumnType,
    (labels, collation): (&[String], Collation),
    compared_under: Option<Collation>,
    (op, constant): (Operator, &ScalarValue),
) -> Option<ColumnSet> {
    let is_equal = matches!(op, Operator::Eq | Operator::IsNotDistinctFrom);
    // Other characters than ASCII's may be equal to a comma. A member without any is in no text.
    let is_plain = |label: &String| label.is_ascii() && !label.is_empty();
    let is_plain = labels.iter().all(is_plain);
    if compared_under != Some(collation) || !is_equal || !is_plain {
        return None;
    }
    let wanted = literal::bytes_of(constant)?;
    let text = text_of_sort_key(wanted, collation)?;
    if sort_key(&text, collation) != wanted {
        return None;
    }
    Some(match assign(ty, &Value::Text(text), Mode::STRICT) {
        // Its members in their order, and each of them once.
        Ok((Value::Set(number), _))
            if sort_key(&text_of_number(ty, number), collation) == wanted =>
        {
            ColumnSet::point(Value::Set(number))
        }
        _ => ColumnSet::of_intervals(Vec::new(), None),
    })
}

fn null_test(inner: &Expr, set: ColumnSet, table: &TableDefinition) -> Term {
    match compared_column(inner, table) {
        Some(column) => Term::Column {
            column: column.position,
            set,
            exact: true,
        },
        None => Term::Opaque,
    }
}

fn like(expr: &Expr, table: &TableDefinition) -> Option<Term> {
    like_of_text(expr, table).or_else(|| like_of_bytes(expr, table))
}

/// Byte strings that begin with others lie between these and the next ones that do not.
fn like_of_bytes(expr: &Expr, table: &TableDefinition) -> Option<Term> {
    let (column, beginning) = as_like_beginning_of_bytes(expr, |column| {
        let position = table.position_in_plan(&column.name);
        position.is_some_and(|position| table.columns[position].ty.is_binary())
    })?;
    // It is of ASCII: no byte of it is the last one that there is.
    let mut end = beginning.clone();
    *end.last_mut()? += 1;
    let (lower, upper) = (Value::Bytes(beginning), Value::Bytes(end));
    Some(Term::Column {
        column: table.position_in_plan(&column.name)?,
        set: ColumnSet::between(Bound::Included(lower), Bound::Excluded(upper)),
        exact: false,
    })
}

fn like_of_text(expr: &Expr, table: &TableDefinition) -> Option<Term> {
    let found = as_like_prefix(expr, |column| {
        let position = table.position_in_plan(&column.name)?;
        let ty = &table.columns[position].ty;
        if ty.is_character() {
            ty.collation()
        } else {
            None
        }
    })?;
    let column = table.position_in_plan(&found.column.name)?;
    Some(Term::Column {
        column,
        set: ColumnSet::starts_with(found.prefix),
        exact: false,
    })
}
