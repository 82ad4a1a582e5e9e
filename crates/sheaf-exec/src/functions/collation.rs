//! `ck(x, collation)`: the sort key of a string, which is what strings are compared, grouped, joined and sorted by.
//!
//! DataFusion has no notion of a collation, but it compares byte strings with memcmp, and a sort key is a byte string
//! whose memcmp order is the collation's. So the typing rule writes `a = b` as `ck(a) = ck(b)`, and nothing below it
//! needs to know. The bytes are those that indexes store, so a comparison `ck(column, c) < literal` is a range of an
//! index on the column. This module recognises such comparisons for the planner.
//!
//! Under case-insensitive collations two different strings may have one key. `GROUP BY name` therefore groups by
//! `ck(name)` and shows some name of the group (see [`crate::typing`]).

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, BinaryArray};
use arrow::buffer::{Buffer, OffsetBuffer, ScalarBuffer};
use datafusion_common::{Column, Result, ScalarValue, exec_err};
use datafusion_expr::expr::{InList, ScalarFunction};
use datafusion_expr::{BinaryExpr, Expr, Operator, lit};
use sheaf_types::Collation;

use crate::functions::like::{compiled, escape_character};
use crate::functions::result_array::{Made, long_byte_strings};
use crate::functions::types::field;
use crate::functions::{Call, Function, SqlType, as_function, call};
use crate::long_literal::literal_of;

/// Name of the function.
pub const COLLATION_KEY: &str = "ck";

pub(crate) static FUNCTIONS: &[Function] = &[
    // Text, name of its collation.
    Function::strict(
        COLLATION_KEY,
        (2, 2),
        |_| Ok(field::bytes()),
        |call| Ok(Arc::new(sort_keys(call)?)),
    ),
    // Text, name of its collation, a length in characters or -1, one in bytes or 0, and flags.
    Function::strict(
        "$weight_string",
        (5, 5),
        |_| Ok(field::bytes()),
        weight_strings,
    )
    .growing(),
];

/// The flag of WEIGHT_STRING with which its bytes are as many as it says.
pub const FILLS_BYTES: i64 = 0x80;

/// The collation that the second argument names.
fn named_collation(call: &Call<'_>) -> Option<Collation> {
    let name = call.scalar(1).and_then(ScalarValue::try_as_str).flatten()?;
    Collation::parse(name)
}

fn weight_strings(call: &Call<'_>) -> Result<ArrayRef> {
    let Some(collation) = named_collation(call) else {
        return exec_err!("WEIGHT_STRING without a collation");
    };
    let values = call.text(0)?;
    let [lengths, all_bytes, all_flags] = [call.int(2)?, call.int(3)?, call.int(4)?];
    let most = call.account().value_bytes();
    let mut space = Vec::new();
    if collation.pads_spaces() {
        collation.weight_string_into(" ", None, &mut space);
    }
    long_byte_strings(call, |row, out| {
        let numbers = [&lengths, &all_bytes, &all_flags].map(|numbers| numbers.get(row));
        let (Some(text), [Some(length), Some(bytes), Some(flags)]) = (values.get(row), numbers)
        else {
            return Made::Null;
        };
        let length = usize::try_from(length).ok();
        let bytes = usize::try_from(bytes).unwrap_or(0);
        if length.is_some_and(|length| length > most) || bytes > most {
            return Made::TooLong;
        }
        if !collation.weight_string_into(text, length, out) {
            return Made::Null;
        }
        if bytes > 0 {
            while flags & FILLS_BYTES != 0 && out.len() < bytes {
                match space.is_empty() {
                    true => out.push(0),
                    false => out.extend_from_slice(&space),
                }
            }
            out.truncate(bytes);
        }
        Made::Bytes
    })
}

fn sort_keys(call: &Call<'_>) -> Result<BinaryArray> {
    let Some(collation) = named_collation(call) else {
        return exec_err!("ck without a collation");
    };
    let values = call.text(0)?.array;
    let (rows, turns) = (values.len(), call.turns());
    let mut keys = Vec::with_capacity(values.total_buffer_bytes_used() + rows * 16);
    let mut offsets = Vec::with_capacity(rows + 1);
    offsets.push(0i32);
    for row in 0..rows {
        if values.is_valid(row) {
            turns.push_sort_key(collation, values.value(row), &mut keys);
        }
        match i32::try_from(keys.len()) {
            Ok(end) => offsets.push(end),
            Err(_) => return exec_err!("a batch of strings longer than 2 GiB"),
        }
    }
    let offsets = OffsetBuffer::new(ScalarBuffer::from(offsets));
    Ok(BinaryArray::new(
        offsets,
        Buffer::from_vec(keys),
        values.nulls().cloned(),
    ))
}

/// `ck(x, collation)`; a literal is folded to its key.
pub fn collation_key(x: Expr, collation: Collation) -> Expr {
    if let Expr::Literal(value, _) = &x
        && let Some(text) = value.try_as_str()
    {
        return Expr::Literal(
            ScalarValue::Binary(text.map(|text| sort_key(text, collation))),
            None,
        );
    }
    call(COLLATION_KEY, vec![x, lit(collation.name())])
}

/// The sort key of one text.
pub fn sort_key(text: &str, collation: Collation) -> Vec<u8> {
    let mut key = Vec::with_capacity(text.len() + 8);
    collation.sort_key_into(text, &mut key);
    key
}

/// A call of `ck` on a column: the column and the collation.
pub fn as_collation_key(expr: &Expr) -> Option<(&Column, Collation)> {
    let Expr::ScalarFunction(ScalarFunction { func, args }) = expr else {
        return None;
    };
    if as_function(func)?.name != COLLATION_KEY {
        return None;
    }
    match args.as_slice() {
        [Expr::Column(column), Expr::Literal(collation, _)] => {
            Some((column, Collation::parse(collation.try_as_str()??)?))
        }
        _ => None,
    }
}

fn key_literal(expr: &Expr) -> Option<&[u8]> {
    match literal_of(expr)? {
        ScalarValue::Binary(Some(key)) | ScalarValue::BinaryView(Some(key)) => Some(key),
        _ => None,
    }
}

/// `ck(column, collation) op key`, as a comparison of the column's sort key.
#[derive(Debug, PartialEq)]
pub struct KeyComparison<'a> {
    pub column: &'a Column,
    pub collation: Collation,
    /// With the column on the left.
    pub op: Operator,
    /// A sort key in `collation`.
    pub key: &'a [u8],
}

/// Recognises a comparison of a string column with a constant, in either order.
pub fn as_key_comparison(expr: &Expr) -> Option<KeyComparison<'_>> {
    let Expr::BinaryExpr(BinaryExpr { left, op, right }) = expr else {
        return None;
    };
    if let (Some((column, collation)), Some(key)) = (as_collation_key(left), key_literal(right)) {
        return Some(KeyComparison {
            column,
            collation,
            op: *op,
            key,
        });
    }
    let ((column, collation), key) = (as_collation_key(right)?, key_literal(left)?);
    Some(KeyComparison {
        column,
        collation,
        op: op.swap()?,
        key,
    })
}

/// Recognises `column IN ('a', 'b')` on a string column: the sort keys of the list.
pub fn as_key_list(expr: &Expr) -> Option<(&Column, Collation, Vec<&[u8]>)> {
    let Expr::InList(InList {
        expr,
        list,
        negated: false,
    }) = expr
    else {
        return None;
    };
    let (column, collation) = as_collation_key(expr)?;
    let keys = list.iter().map(key_literal).collect::<Option<Vec<_>>>()?;
    Some((column, collation, keys))
}

/// What `column LIKE 'pattern'` says about the beginning of the column.
#[derive(Debug, PartialEq)]
pub struct LikePrefix<'a> {
    pub column: &'a Column,
    /// The collation that LIKE compares by.
    pub collation: Collation,
    /// The text before the first wildcard; not empty.
    pub prefix: String,
}

/// Recognises `column LIKE 'prefix...'`. The range of the prefix ([`prefix_range`]) holds every match and perhaps more,
/// so the condition itself must still be tested.
///
/// `collation` is the column's: the one that LIKE uses unless the statement says otherwise, which it cannot here.
pub fn as_like_prefix<'a>(
    expr: &'a Expr,
    column_collation: impl Fn(&Column) -> Option<Collation>,
) -> Option<LikePrefix<'a>> {
    let Expr::ScalarFunction(ScalarFunction { func, args }) = expr else {
        return None;
    };
    if as_function(func)?.name != "$like" {
        return None;
    }
    let [Expr::Column(column), pattern, Expr::Literal(escape, _)] = args.as_slice() else {
        return None;
    };
    let pattern = literal_of(pattern)?;
    let collation = column_collation(column)?;
    let escape = escape_character(escape.try_as_str()??).ok()?;
    let pattern = compiled(pattern.try_as_str()??, escape, collation).ok()?;
    let (prefix, _) = pattern.prefix();
    (!prefix.is_empty()).then_some(LikePrefix {
        column,
        collation,
        prefix,
    })
}

/// Recognises `column LIKE 'beginning...'` of a column of byte strings, whose bytes decide. The beginning is of ASCII:
/// whatever the bytes behind it are, a value matches only if it has the same bytes there.
///
/// `is_bytes` says whether a column is one.
pub fn as_like_beginning_of_bytes(
    expr: &Expr,
    is_bytes: impl Fn(&Column) -> bool,
) -> Option<(&Column, Vec<u8>)> {
    let found = as_like_prefix(expr, |column| is_bytes(column).then_some(Collation::Binary))?;
    let ascii = found.prefix.bytes().take_while(u8::is_ascii);
    let beginning: Vec<u8> = ascii.collect();
    (!beginning.is_empty()).then_some((found.column, beginning))
}

/// The sort keys that can begin with `prefix`: from the first key on, and below the second (`None`: no upper end).
///
/// Keys are built character by character, so the key of a prefix is a prefix of the key. Of a PAD SPACE collation the
/// end mark and trailing spaces are left out first, because what follows the prefix decides about them.
pub fn prefix_range(prefix: &str, collation: Collation) -> (Vec<u8>, Option<Vec<u8>>) {
    let prefix = collation.settled_prefix(prefix);
    let lower = if collation.pads_spaces() {
        let mut key = sort_key(prefix.trim_end_matches(|c: char| c <= ' '), collation);
        key.pop();
        key
    } else {
        let mut key = Vec::new();
        collation.like_prefix_into(prefix, usize::MAX, &mut key);
        key
    };
    let mut upper = lower.clone();
    while let Some(last) = upper.last_mut() {
        if *last < u8::MAX {
            *last += 1;
            return (lower, Some(upper));
        }
        upper.pop();
    }
    (lower, None)
}

/// The collation by which values of this type compare, if they are strings that need a sort key.
pub fn key_collation(ty: &SqlType) -> Option<Collation> {
    match ty {
        SqlType::Text { collation, .. } => Some(*collation),
        _ => None,
    }
}

/// The collation by which MIN and MAX choose among values. Labels are compared as texts, though rows are sorted by
/// their numbers.
pub fn extreme_collation(ty: &SqlType) -> Option<Collation> {
    match ty {
        SqlType::Text { collation, .. } | SqlType::Enum { collation } => Some(*collation),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion_expr::col;

    #[test]
    fn comparisons_of_string_columns_are_ranges_of_keys() {
        let collation = Collation::Utf8mb4_0900_ai_ci;
        let key = collation_key(lit("abc"), collation);
        let column = collation_key(col("name"), collation);
        let comparison = key.clone().lt(column.clone());
        let found = as_key_comparison(&comparison).unwrap();
        assert_eq!(
            (found.column.name(), found.op, found.key),
            ("name", Operator::Gt, &sort_key("ABC", collation)[..])
        );
        let list = column.in_list(vec![key], false);
        assert_eq!(
            as_key_list(&list).unwrap().2,
            vec![&sort_key("abc", collation)[..]]
        );
    }

    #[test]
    fn keys_with_a_prefix_lie_in_its_range() {
        for collation in Collation::ALL {
            let (lower, upper) = prefix_range("ab", collation);
            let within = |text: &str| {
                let key = sort_key(text, collation);
                key >= lower && upper.as_ref().is_none_or(|upper| key < *upper)
            };
            assert!(
                within("ab") && within("abc") && within("ab c") && within("abzzz"),
                "{collation:?}"
            );
            assert!(
                !within("aa") && !within("ac") && !within("b"),
                "{collation:?}"
            );
        }
    }
}
