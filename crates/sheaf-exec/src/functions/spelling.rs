//! Functions by the names that statements call them by.
//!
//! Some have several names. Others the binder calls by a name with `$`, since they get operands of the session or have
//! a syntax of their own: `UUID_SHORT()` is `$uuid_short`, and `DATE_SUB(d, INTERVAL 1 DAY)` is `$date_subtract`.

use super::{FUNCTIONS, Function, as_function};

/// Other names of functions.
pub(super) const ALIASES: &[(&str, &str)] = &[
    ("ceiling", "ceil"),
    ("char_length", "character_length"),
    ("dayofmonth", "day"),
    ("lcase", "lower"),
    ("mid", "substring"),
    ("octet_length", "length"),
    ("power", "pow"),
    ("sha", "sha1"),
    ("substr", "substring"),
    ("ucase", "upper"),
];

/// Functions that the binder calls by a name which is not theirs behind a `$`.
const BOUND: &[(&str, &str)] = &[
    ("adddate", "$date_add"),
    ("date_sub", "$date_subtract"),
    ("ifnull", "coalesce"),
    ("subdate", "$date_subtract"),
];

/// The row of the function of this (lower-case) name; `None` of what the binder makes of other functions, such as IF.
pub fn called(name: &str) -> Option<&'static Function> {
    if name.starts_with('$') {
        return None;
    }
    let bound = BOUND.iter().find(|(called, _)| *called == name);
    match bound {
        Some((_, bound)) => row(bound),
        None => row(name).or_else(|| row(&format!("${name}"))),
    }
}

/// The row of the function that a plan calls by this name.
pub fn row(name: &str) -> Option<&'static Function> {
    as_function(FUNCTIONS.get(name)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::functions::{Length, Moments};

    #[test]
    fn functions_are_found_by_what_statements_call_them() {
        for (name, found) in [
            ("reverse", "reverse"),
            ("lcase", "lower"),
            ("uuid_short", "$uuid_short"),
            ("date_add", "$date_add"),
            ("subdate", "$date_subtract"),
            ("trim", "$trim"),
        ] {
            assert_eq!(called(name).map(|function| function.name), Some(found));
        }
        for name in ["$add", "if", "sleep", "unknown"] {
            assert!(called(name).is_none(), "{name}");
        }
    }

    #[test]
    fn rows_tell_of_operands_that_there_are() {
        for function in FUNCTIONS.values().filter_map(|udf| as_function(udf)) {
            let name = function.name;
            let operands = function.most_arguments;
            for (_, from, to) in function.number_operands.into_iter().flatten() {
                assert!(from < to && from < operands, "{name}");
            }
            match function.moments {
                Moments::Dates(from, to) => assert!(from < to && from < operands, "{name}"),
                Moments::PartsOfDate | Moments::Time => assert!(operands > 0, "{name}"),
                Moments::None => {}
            }
            match function.length {
                Length::OfOperand(operand)
                | Length::OfLongest(operand)
                | Length::CutTo(operand)
                | Length::FilledTo(operand)
                | Length::Repeated(operand) => assert!(operand < operands, "{name}"),
                Length::Own | Length::Int | Length::Fixed(_) | Length::OfAll | Length::Part => {}
            }
            let (first, most) = function.text_operands;
            assert!(most == 0 || first < operands, "{name}");
            // What gives another value each time is nothing that keys are made of.
            assert!(!function.is_key_operand || !function.volatile, "{name}");
            assert!(
                !function.in_defaults || function.volatile || name.starts_with("$aes"),
                "{name}"
            );
        }
    }
}
