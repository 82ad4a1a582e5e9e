//! `x IN (list)` and `(x, y) IN (rows)`.
//!
//! A member that is a constant of x's domain becomes a value of x's own type, and stands in a list. What x is compared
//! with otherwise becomes a comparison of its own, beside the list. A list may be long, so of x all is found out once,
//! and a plain constant costs no more than its conversion ([`Subject`]). A long list of constants is packed
//! ([`crate::functions::in_values`]).

use arrow::array::{ArrayRef, Int64Array};
use arrow::compute::{cast, filter, is_not_null};
use datafusion_common::metadata::FieldMetadata;
use datafusion_common::{DFSchema, Result, ScalarValue, internal_err};
use datafusion_expr::{Expr, Operator, lit};
use sheaf_access::cancel;
use sheaf_types::Collation;
use sheaf_types::temporal;

use super::compare::{
    Operand, PartOf, Place, beside_year, collated, compare, never_equal, number_place,
    of_one_collation, place_of_moment, unknown,
};
use super::once::computed_once;
use super::{Rule, field_of, literal, operands, reached, type_of};
use crate::functions::collation::{collation_key, sort_key};
use crate::functions::in_values::{self, MAX_OPERANDS, MIN_PACKED, in_values, is_packable};
use crate::functions::limits::ask_for;
use crate::functions::types::{SqlType, common_collation};
use crate::operator::scan_exec::access_error;

/// So often planning and execution copy the constants of a list, at most at the same time.
const COPIES_OF_LIST: usize = 4;

/// What the comparison with a member that is no constant takes, as measured: a call that makes a text, and the sort
/// keys of both operands.
const COMPARISON_BYTES: usize = 3 << 10;

/// Makes room for a list of these members.
///
/// # Errors
/// 1041: there is none, or the statement shall stop for another reason.
fn ask_for_list(members: &[Expr]) -> Result<()> {
    let bytes = |member: &Expr| literal(member).map_or(COMPARISON_BYTES, ScalarValue::size);
    let bytes: usize = members.iter().map(bytes).sum();
    ask_for(bytes.saturating_mul(COPIES_OF_LIST))
}

/// `x IN (list)`: plain where each member is a literal of x's domain.
pub(super) fn in_list(args: Vec<Expr>, schema: &DFSchema, rule: Rule<'_>) -> Result<Expr> {
    let mut args = args.into_iter();
    let Some(x) = args.next() else {
        return Ok(lit(false));
    };
    let make = |x: Vec<Expr>, members: Vec<Expr>, schema: &DFSchema| {
        let [x] = operands(x)?;
        in_members(x, members, schema, rule)
    };
    let x = of_one_collation(x, args.as_slice().iter(), schema, "IN")?;
    computed_once("in", (vec![x], args.collect()), schema, make)
}

/// A comparison that is made where none of those before it is true.
fn after_others(equal: Expr, before: &[Expr]) -> Result<Expr> {
    if before.is_empty() || !reached::takes_conditions(&equal) {
        return Ok(equal);
    }
    match any_of(before.to_vec()).map(|any| reached::copy(&any)) {
        Some(any) => {
            let others = any?.map(Expr::is_not_true);
            reached::with_conditions(equal, others.as_slice())
        }
        None => Ok(equal),
    }
}

fn in_members(x: Expr, members: Vec<Expr>, schema: &DFSchema, rule: Rule<'_>) -> Result<Expr> {
    // What x is compared as depends on the member: a date with a number as a number. There are few such kinds.
    const MOST_SUBJECTS: usize = 8;
    let (x, members) = beside_year(x, members, schema)?;
    let part_of = match members.len() {
        1 => PartOf::OnlyMember,
        _ => PartOf::OneOfSeveral,
    };
    ask_for_list(&members)?;
    let mut subject = Subject::of(&x, schema, rule)?;
    let mut values = Vec::new();
    let mut lists: Vec<(Expr, Vec<Expr>)> = Vec::new();
    let mut others: Vec<Expr> = Vec::new();
    let mut has_null = false;
    // Those that were compared before, where it matters.
    let is_ordered = rule.watches() && members.len() <= reached::MAX_ORDERED;
    let mut before: Vec<Expr> = Vec::new();
    let plain = subject
        .as_mut()
        .map(|subject| subject.values(&members, rule));
    let mut plain = plain.unwrap_or_default().into_iter();
    for member in members {
        if let Some(value) = plain.next().flatten() {
            values.push(value);
            continue;
        }
        if literal(&member).is_some_and(ScalarValue::is_null) {
            has_null = true;
            continue;
        }
        cancel::check_statement().map_err(access_error)?;
        let surroundings = (schema, rule);
        let equality = compare(Operator::Eq, x.clone(), member, surroundings, part_of)?;
        let equality = match is_ordered {
            true => {
                let equality = after_others(equality, &before)?;
                before.push(equality.clone());
                equality
            }
            false => equality,
        };
        match equality {
            Expr::BinaryExpr(equality)
                if equality.op == Operator::Eq
                    && literal(&equality.right).is_some()
                    && literal(&equality.left).is_none() =>
            {
                let (subject, member) = (*equality.left, *equality.right);
                match lists.iter().position(|(known, _)| *known == subject) {
                    Some(at) => lists[at].1.push(member),
                    None if lists.len() < MOST_SUBJECTS => lists.push((subject, vec![member])),
                    None => others.push(subject.eq(member)),
                }
            }
            // Of members that x cannot be, all comparisons are the same.
            other if others.last() == Some(&other) && !other.is_volatile() => {}
            other => others.push(other),
        }
    }
    let mut equal = Vec::new();
    if let Some(subject) = subject.filter(|_| !values.is_empty()) {
        let subject = subject.compared();
        let known = lists.iter().position(|(known, _)| *known == subject);
        let rest = known.map(|known| lists.remove(known).1).unwrap_or_default();
        let is_packed = values.len() >= MIN_PACKED && is_packable(&values[0].data_type());
        if is_packed {
            let column = ScalarValue::iter_to_array(values)?;
            equal.push(in_values(vec![subject.clone()], &[column])?);
            if !rest.is_empty() {
                lists.push((subject, rest));
            }
        } else {
            let values = values.into_iter().map(|value| Expr::Literal(value, None));
            lists.insert(0, (subject, values.chain(rest).collect()));
        }
    }
    equal.extend(
        lists
            .into_iter()
            .map(|(subject, mut members)| match members.len() {
                1 => subject.eq(members.remove(0)),
                _ => subject.in_list(members, false),
            }),
    );
    // What notes something of a row says itself after which members that is. So it does not stand behind others.
    let noting = others.extract_if(.., |other| reached::takes_conditions(other));
    let noting: Vec<Expr> = noting.collect();
    others.splice(0..0, equal);
    let mut result = match (any_of(noting), any_of(others)) {
        (Some(noting), Some(others)) => Some(rule.all_computed(noting, Operator::Or, others)?),
        (noting, others) => noting.or(others),
    };
    if has_null {
        result = Some(match result {
            Some(result) => result.or(unknown()),
            None => unknown(),
        });
    }
    Ok(result.unwrap_or_else(|| lit(false)))
}

/// An operand of IN, and what is known of it once for all members.
struct Subject {
    operand: Operand,
    /// What texts among the members have besides their texts, and the collation that they are compared by.
    texts: Option<(Option<FieldMetadata>, Collation)>,
}

impl Subject {
    /// `None` of an operand of which every comparison is to be asked for.
    fn of(x: &Expr, schema: &DFSchema, rule: Rule<'_>) -> Result<Option<Subject>> {
        if literal(x).is_some() || rule.watches() && reached::takes_conditions(x) {
            return Ok(None);
        }
        let operand = Operand::new(x.clone(), schema)?;
        let is_plain = matches!(
            operand.ty,
            SqlType::Integer { .. }
                | SqlType::Decimal { .. }
                | SqlType::Text { .. }
                | SqlType::Date
                | SqlType::DateTime { .. }
                | SqlType::Time { .. }
        );
        let texts = None;
        Ok(is_plain.then_some(Subject { operand, texts }))
    }

    /// What is equal to a value.
    fn compared(self) -> Expr {
        match self.texts {
            Some((_, collation)) => collation_key(self.operand.expr, collation),
            None => self.operand.expr,
        }
    }

    /// The values of members that are plain constants. Where something is noted of a row, all are, or none is said to
    /// be: what is noted depends on the members before it.
    fn values(&mut self, members: &[Expr], rule: Rule<'_>) -> Vec<Option<ScalarValue>> {
        let values = members.iter().map(|member| self.value(member));
        let values: Vec<Option<ScalarValue>> = values.collect();
        match rule.watches() && values.iter().any(Option::is_none) {
            true => Vec::new(),
            false => values,
        }
    }

    /// The value of x's own type that is equal to the member, if it is a constant of which nothing is to be said.
    fn value(&mut self, member: &Expr) -> Option<ScalarValue> {
        let Expr::Literal(value, metadata) = member else {
            return None;
        };
        let at = |place: Place| match place {
            Place::At(value) => Some(value),
            _ => None,
        };
        match &self.operand.ty {
            SqlType::Integer { .. } | SqlType::Decimal { .. } => {
                if let ScalarValue::Utf8View(Some(text)) = value {
                    // What it spells is said of nothing else: it is compared as the number.
                    let number = ScalarValue::Int64(Some(whole_number(text)?));
                    return number_place(&self.operand, &number, &SqlType::Null).and_then(at);
                }
                let is_number = matches!(
                    value,
                    ScalarValue::Int64(Some(_))
                        | ScalarValue::UInt64(Some(_))
                        | ScalarValue::Decimal128(Some(_), ..)
                        | ScalarValue::Decimal256(Some(_), ..)
                );
                match is_number && metadata.is_none() {
                    true => number_place(&self.operand, value, &SqlType::Null).and_then(at),
                    false => None,
                }
            }
            SqlType::Text { .. } => {
                let ScalarValue::Utf8View(Some(text)) = value else {
                    return None;
                };
                let collation = match &self.texts {
                    Some((known, collation)) if known == metadata => *collation,
                    Some(_) => return None,
                    None => {
                        let member = type_of(member, &DFSchema::empty()).ok()?;
                        let types = [self.operand.ty.clone(), member];
                        let (collation, _) = common_collation(&types, "=").ok()?;
                        self.texts = Some((metadata.clone(), collation));
                        collation
                    }
                };
                // The comparison says what is wrong with it.
                if collation.first_foreign(text).is_some() {
                    return None;
                }
                Some(ScalarValue::Binary(Some(sort_key(text, collation))))
            }
            SqlType::Date | SqlType::DateTime { .. } => {
                let text = value.try_as_str().flatten()?;
                let is_whole = temporal::read_datetime(text).is_ok_and(|read| !read.trailing);
                let micros = temporal::datetime_of_text(text).filter(|_| is_whole)?;
                at(place_of_moment(micros, self.operand.ty == SqlType::Date))
            }
            SqlType::Time { .. } => {
                let micros = temporal::time_of_text(value.try_as_str().flatten()?)?;
                Some(ScalarValue::DurationMicrosecond(Some(micros)))
            }
            _ => None,
        }
    }
}

/// The whole number that a text is, if it has nothing but its digits, perhaps behind `-`, and a double holds it.
fn whole_number(text: &str) -> Option<i64> {
    const DOUBLE_DIGITS: usize = 15;
    let digits = text.strip_prefix('-').unwrap_or(text);
    let are_digits = digits.bytes().all(|byte| byte.is_ascii_digit());
    let is_short = digits.len() <= DOUBLE_DIGITS;
    (are_digits && is_short)
        .then(|| text.parse().ok())
        .flatten()
}

/// `x IN (list)` of a long list of whole numbers, which is packed.
pub(super) fn in_numbers(args: Vec<Expr>, schema: &DFSchema, rule: Rule<'_>) -> Result<Expr> {
    let [x, list] = operands(args)?;
    let list = literal(&list).and_then(|list| list.try_as_str().flatten());
    let Some(numbers) = list.and_then(in_values::unpacked) else {
        return internal_err!("a packed list without its numbers");
    };
    let field = field_of(&x, schema)?;
    let is_whole = matches!(SqlType::of(&field), SqlType::Integer { .. });
    if is_whole && field.data_type().is_integer() && literal(&x).is_none() {
        let numbers = Int64Array::from(numbers);
        // Those that are no values of the type become NULL.
        let values = cast(&numbers, field.data_type())?;
        let values = filter(&values, &is_not_null(&values)?)?;
        return match values.is_empty() {
            true => Ok(never_equal(&x)),
            false => in_values(vec![x], &[values]),
        };
    }
    let members = numbers.into_iter().map(lit);
    in_list(std::iter::once(x).chain(members).collect(), schema, rule)
}

/// The disjunction of some conditions, a tree that is not deep however many they are. `None` if there are none.
fn any_of(mut conditions: Vec<Expr>) -> Option<Expr> {
    const FEW: usize = 16;
    while conditions.len() > FEW {
        let mut pairs = Vec::with_capacity(conditions.len().div_ceil(2));
        let mut rest = conditions.into_iter();
        while let Some(condition) = rest.next() {
            pairs.push(match rest.next() {
                Some(other) => condition.or(other),
                None => condition,
            });
        }
        conditions = pairs;
    }
    conditions.into_iter().reduce(Expr::or)
}

/// `(a, b) IN ((c, d), ...)`, of rows of as many values as the first argument says.
pub(super) fn row_in(args: Vec<Expr>, (schema, rule): (&DFSchema, Rule<'_>)) -> Result<Expr> {
    let mut args = args.into_iter();
    let count = args.next();
    let Some(ScalarValue::Int64(Some(count))) = count.as_ref().and_then(literal) else {
        return internal_err!("rows without the number of their values");
    };
    let count = usize::try_from(*count).unwrap_or(0).max(1);
    let mut row: Vec<Expr> = args.by_ref().take(count).collect();
    let mut members: Vec<Expr> = args.collect();
    if members.len() > count {
        of_the_row_s_collations(&mut row, &mut members, schema)?;
    }
    // One row is an equality; in a list of them, a text that is no date is equal to none.
    let part_of = match members.len() > count {
        true => PartOf::OneOfSeveral,
        false => PartOf::Operator,
    };
    let make = |row: Vec<Expr>, members: Vec<Expr>, schema: &DFSchema| {
        ask_for_list(&members)?;
        let PlainRows { plain, are_plain } = PlainRows::of(&row, &members, schema, rule)?;
        let mut are_plain = are_plain.into_iter();
        let mut members = members.into_iter();
        let mut equal = Vec::with_capacity(members.len() / count);
        let is_ordered = members.len() <= reached::MAX_ORDERED * count;
        while members.len() > 0 {
            cancel::check_statement().map_err(access_error)?;
            let pairs = row.iter().zip(members.by_ref().take(count));
            if are_plain.next() == Some(true) {
                pairs.for_each(drop);
                continue;
            }
            let pairs = pairs.map(|(value, member)| {
                let pair = vec![value.clone(), member];
                let pair = match rule.has_conditions() {
                    true => reached::in_operands("$eq", pair, schema, rule)?,
                    false => pair,
                };
                let [value, member] = operands(pair)?;
                compare(Operator::Eq, value, member, (schema, rule), part_of)
            });
            let pairs = pairs.collect::<Result<Vec<_>>>()?;
            let all = |left, right| rule.connected(left, Operator::And, right);
            let mut pairs = pairs.into_iter();
            let Some(first) = pairs.next() else { continue };
            let found = pairs.try_fold(first, all)?;
            equal.push(match is_ordered {
                true => after_others(found, &equal)?,
                false => found,
            });
        }
        equal.extend(plain);
        Ok(any_of(equal).unwrap_or_else(|| lit(false)))
    };
    computed_once("in", (row, members), schema, make)
}

/// The rows of a long list of which all values are plain constants.
#[derive(Default)]
struct PlainRows {
    /// That the row on the left is one of them.
    plain: Option<Expr>,
    /// Of each row, whether it is one of them. Empty: none is.
    are_plain: Vec<bool>,
}

impl PlainRows {
    fn of(row: &[Expr], members: &[Expr], schema: &DFSchema, rule: Rule<'_>) -> Result<PlainRows> {
        let none = PlainRows::default();
        if row.len() > MAX_OPERANDS || members.len() / row.len() < MIN_PACKED {
            return Ok(none);
        }
        let subjects = row.iter().map(|value| Subject::of(value, schema, rule));
        let subjects = subjects.collect::<Result<Option<Vec<_>>>>()?;
        let Some(mut subjects) = subjects else {
            return Ok(none);
        };
        let mut columns = vec![Vec::new(); row.len()];
        let are_plain = members.chunks(row.len()).map(|members| {
            let pairs = subjects.iter_mut().zip(members);
            let values = pairs.map(|(subject, member)| subject.value(member));
            let Some(values) = values.collect::<Option<Vec<_>>>() else {
                return false;
            };
            for (column, value) in columns.iter_mut().zip(values) {
                column.push(value);
            }
            true
        });
        let are_plain: Vec<bool> = are_plain.collect();
        let is_whole = are_plain.iter().all(|is_plain| *is_plain);
        if columns[0].len() < MIN_PACKED || rule.watches() && !is_whole {
            return Ok(none);
        }
        let columns = columns.into_iter().map(ScalarValue::iter_to_array);
        let columns = columns.collect::<Result<Vec<ArrayRef>>>()?;
        if !columns.iter().all(|column| is_packable(column.data_type())) {
            return Ok(none);
        }
        let subjects = subjects.into_iter().map(Subject::compared);
        Ok(PlainRows {
            plain: Some(in_values(subjects.collect(), &columns)?),
            are_plain,
        })
    }
}

/// Compares the texts of rows by the collations of the row on the left, as MySQL does of several rows.
fn of_the_row_s_collations(
    row: &mut [Expr],
    members: &mut [Expr],
    schema: &DFSchema,
) -> Result<()> {
    let width = row.len();
    for (at, value) in row.iter_mut().enumerate() {
        let ty = type_of(value, schema)?;
        if !ty.is_text() {
            continue;
        }
        let (own, _) = common_collation(std::slice::from_ref(&ty), "IN")?;
        let mut is_collated = false;
        for other in members.iter_mut().skip(at).step_by(width) {
            let other_type = type_of(other, schema)?;
            let pair = [ty.clone(), other_type.clone()];
            let is_own = common_collation(&pair, "IN").is_ok_and(|(common, _)| common == own);
            if other_type.is_text() && !is_own {
                *other = collated(std::mem::take(other), own, schema);
                is_collated = true;
            }
        }
        if is_collated {
            *value = collated(std::mem::take(value), own, schema);
        }
    }
    Ok(())
}
