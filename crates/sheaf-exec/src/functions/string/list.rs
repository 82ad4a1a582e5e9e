//! Lists of texts: members by number (FIELD, ELT), with commas between them (FIND_IN_SET), and by bits (MAKE_SET,
//! EXPORT_SET).

use arrow::array::ArrayRef;
use datafusion_common::Result;

use super::{bigint, compared, text_arguments};
use crate::functions::result_array::{ints, long_texts, parts};
use crate::functions::types::{SqlType, takes_bytes, text_field};
use crate::functions::{Call, Function, Length, VARIADIC};

pub(super) static FUNCTIONS: &[Function] = &[
    Function::new("field", (2, VARIADIC), bigint, field_position)
        .never_null()
        .length(Length::Int),
    Function::new(
        "elt",
        (2, VARIADIC),
        |operands| text_field(&operands.fields[1..], "elt"),
        elt,
    )
    .bytewise_but(&[0])
    .whole_numbers(0, 1)
    .text_of(1, VARIADIC)
    .length(Length::OfLongest(1)),
    Function::strict(
        "find_in_set",
        (2, 2),
        |operands| compared(operands, "find_in_set"),
        find_in_set,
    )
    .bytewise()
    .length(Length::Int),
    Function::new(
        "make_set",
        (2, VARIADIC),
        |operands| text_field(&operands.fields[1..], "make_set"),
        make_set,
    )
    .bytewise_but(&[0])
    .whole_numbers(0, 1)
    .text_of(1, VARIADIC)
    .repeating(),
    Function::strict(
        "export_set",
        (3, 5),
        |operands| {
            text_field(
                &operands.fields[1..operands.fields.len().min(4)],
                "export_set",
            )
        },
        export_set,
    )
    .bytewise_but(&[0, 4])
    .growing()
    .whole_numbers(0, 1)
    .whole_numbers(4, 5)
    .text_of(1, VARIADIC),
];

/// FIELD compares all of its arguments in one way: strings and dates as texts, exact numbers exactly, whatever is mixed
/// as doubles. Texts are compared by the collation of the one that is looked for, which the others have no say in.
fn field_position(call: &Call<'_>) -> Result<ArrayRef> {
    let types: Vec<SqlType> = (0..call.len())
        .map(|argument| call.sql_type(argument))
        .collect();
    // NULL is like no value of any type, and makes no operand compare as a number.
    let all = |is_like: fn(&SqlType) -> bool| {
        let mut types = types.iter();
        types.all(|ty| is_like(ty) || *ty == SqlType::Null)
    };
    if all(|ty| ty.is_string() || ty.is_temporal() || *ty == SqlType::Json) {
        if takes_bytes(&call.args.arg_fields) {
            let values = (0..call.len())
                .map(|argument| call.bytes(argument))
                .collect::<Result<Vec<_>>>()?;
            return position_of_first(
                call,
                |argument, row| values[argument].get(row),
                |a, b| a == b,
            );
        }
        let arguments: Vec<usize> = (0..call.len()).collect();
        let collation = call.collation_of_first(&arguments);
        let values = text_arguments(call)?;
        let turns = call.turns();
        let is_equal = |a: &str, b: &str| turns.compare(collation, a, b).is_eq();
        return position_of_first(call, |argument, row| values[argument].get(row), is_equal);
    }
    if all(SqlType::is_exact_number) {
        if types.iter().any(SqlType::is_wide) {
            return position_of_wide(call, &types);
        }
        let scale = types.iter().map(|ty| ty.decimal_digits().1).max();
        let values = (0..call.len())
            .map(|argument| call.decimal(argument, scale.unwrap_or(0)))
            .collect::<Result<Vec<_>>>()?;
        return position_of_first(
            call,
            |argument, row| values[argument].get(row),
            |a, b| a == b,
        );
    }
    let values = (0..call.len())
        .map(|argument| call.double(argument))
        .collect::<Result<Vec<_>>>()?;
    position_of_first(
        call,
        |argument, row| values[argument].get(row),
        |a, b| a == b,
    )
}

/// FIELD of exact numbers one of which is wide. Each has its own scale: at a common one, large numbers do not fit.
fn position_of_wide(call: &Call<'_>, types: &[SqlType]) -> Result<ArrayRef> {
    let scales: Vec<u8> = types.iter().map(|ty| ty.decimal_digits().1).collect();
    let values = scales
        .iter()
        .enumerate()
        .map(|(argument, scale)| call.wide_decimal(argument, *scale))
        .collect::<Result<Vec<_>>>()?;
    let value = |argument: usize, row: usize| {
        let number = values[argument].get(row)?;
        Some((number, scales[argument]))
    };
    position_of_first(call, value, |(a, a_scale), (b, b_scale)| {
        let (coarse, scale, fine, fine_scale) = match a_scale <= b_scale {
            true => (a, a_scale, b, b_scale),
            false => (b, b_scale, a, a_scale),
        };
        fine.rescaled_noting_loss(fine_scale, scale) == Some((coarse, false))
    })
}

/// Which of the arguments behind the first one is equal to it, from 1; 0 if none is.
fn position_of_first<T: Copy>(
    call: &Call<'_>,
    value: impl Fn(usize, usize) -> Option<T>,
    is_equal: impl Fn(T, T) -> bool,
) -> Result<ArrayRef> {
    ints(call, |row| {
        let Some(wanted) = value(0, row) else {
            return Some(0);
        };
        let found = (1..call.len())
            .find(|argument| value(*argument, row).is_some_and(|other| is_equal(wanted, other)));
        Some(found.unwrap_or(0) as i64)
    })
}

fn elt(call: &Call<'_>) -> Result<ArrayRef> {
    let positions = call.int(0)?;
    let values = (1..call.len())
        .map(|argument| call.text(argument))
        .collect::<Result<Vec<_>>>()?;
    parts(call, |row| {
        values
            .get(usize::try_from(positions.get(row)?.checked_sub(1)?).ok()?)?
            .get(row)
    })
}

fn find_in_set(call: &Call<'_>) -> Result<ArrayRef> {
    let collation = call.matching_collation("find_in_set")?;
    let (wanted, sets, turns) = (call.text(0)?, call.text(1)?, call.turns());
    ints(call, |row| {
        let (wanted, set) = (wanted.get(row)?, sets.get(row)?);
        if set.is_empty() {
            return Some(0);
        }
        // Spaces at the end count, whatever the collation does with them.
        let is_member = |member: &str| {
            spaces_behind(wanted) == spaces_behind(member)
                && turns.compare(collation, wanted, member).is_eq()
        };
        let at = set
            .split(',')
            .take_while(|_| !turns.is_over())
            .position(is_member);
        Some(at.map_or(0, |at| at as i64 + 1))
    })
}

fn spaces_behind(text: &str) -> usize {
    text.len() - text.trim_end_matches(' ').len()
}

/// The first argument as 64 bits, row by row.
fn bits(call: &Call<'_>) -> Result<impl Fn(usize) -> Option<u64>> {
    let is_unsigned = call.sql_type(0) == SqlType::Integer { unsigned: true };
    let (unsigned, signed) = (call.unsigned(0)?, call.int(0)?);
    Ok(move |row| match is_unsigned {
        true => unsigned.get(row),
        false => signed.get(row).map(|bits| bits as u64),
    })
}

/// The texts whose bits are set, with commas between them. Those that are NULL are left out.
fn make_set(call: &Call<'_>) -> Result<ArrayRef> {
    let bits = bits(call)?;
    let members = (1..call.len())
        .map(|argument| call.text(argument))
        .collect::<Result<Vec<_>>>()?;
    long_texts(call, |row, out| {
        let bits = bits(row)?;
        let chosen = members
            .iter()
            .take(u64::BITS as usize)
            .enumerate()
            .filter(|(bit, _)| bits >> bit & 1 == 1)
            .filter_map(|(_, member)| member.get(row));
        for (at, member) in chosen.enumerate() {
            if at > 0 {
                out.push_str(",");
            }
            out.push_str(member);
        }
        Some(())
    })
}

/// A text for each bit, the lowest one first.
fn export_set(call: &Call<'_>) -> Result<ArrayRef> {
    let bits = bits(call)?;
    let (on, off) = (call.text(1)?, call.text(2)?);
    let separator = (call.len() > 3).then(|| call.text(3)).transpose()?;
    let count = (call.len() > 4).then(|| call.int(4)).transpose()?;
    long_texts(call, |row, out| {
        let bits = bits(row)?;
        let (on, off) = (on.get(row)?, off.get(row)?);
        let separator = match &separator {
            Some(separator) => separator.get(row)?,
            None => ",",
        };
        let all = u64::from(u64::BITS);
        let count = match &count {
            // Below zero it is a large one.
            Some(count) => (count.get(row)? as u64).min(all),
            None => all,
        };
        for bit in 0..count {
            if bit > 0 {
                out.push_str(separator);
            }
            out.push_str(if bits >> bit & 1 == 1 { on } else { off });
        }
        Some(())
    })
}
