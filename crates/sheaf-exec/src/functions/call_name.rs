//! The name of the column that a call computes.
//!
//! DataFusion names an expression by its text, and asks for the names of an expression and of all below it at each step
//! of planning. The text of a call has the texts of its arguments in it, so the names of a nest of calls take time that
//! grows with the square of its depth. A call with a long name therefore has a short one with a hash of it:
//!
//! ```text
//!   a + 1                        $add(t.a,Int64(1))
//!   a + 1 + 1 + 1 + ...          $add(#5d41402abc4b2a76b9719d911017c592)
//! ```
//!
//! The name of a call follows from the names of its arguments alone. DataFusion relies on that: it computes an argument
//! below, and names its column as the argument was named.

use std::fmt::Write;
use std::hash::{DefaultHasher, Hash, Hasher};

use datafusion_common::Result;
use datafusion_expr::Expr;

/// How messages call a function: as MySQL's do, not by the name that the pass over the syntax tree gives it.
pub(crate) fn name_in_sql(function: &'static str) -> &'static str {
    match function {
        "$cast_json" => "cast_as_json",
        "$widen_decimal" => "case",
        "$cast_char" => "cast_as_char",
        "$cast_binary" => "cast_as_binary",
        "$json_array_of" => "json_arrayagg",
        "$json_object_of" => "json_objectagg",
        "$json_returned" => "json_value",
        "$member_of" => "member of",
        other => other.trim_start_matches('$'),
    }
}

/// The longest name that is a text.
const MAX_TEXT_BYTES: usize = 256;

/// The name of a call of `function`.
pub(crate) fn name_of_call(function: &str, args: &[Expr]) -> Result<String> {
    let mut name = format!("{function}(");
    for (at, arg) in args.iter().enumerate() {
        if at > 0 {
            name.push(',');
        }
        write!(name, "{}", arg.schema_name())?;
    }
    name.push(')');
    if name.len() <= MAX_TEXT_BYTES {
        return Ok(name);
    }
    // Two hashes of 64 bits, which begin at different places.
    let hash = |begin: u8| {
        let mut hasher = DefaultHasher::new();
        (begin, &name).hash(&mut hasher);
        hasher.finish()
    };
    Ok(format!("{function}(#{:016x}{:016x})", hash(0), hash(1)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::functions::call;
    use datafusion_expr::{col, lit};

    fn sum(terms: usize, last: Expr) -> Expr {
        (0..terms).fold(last, |sum, _| call("$add", vec![sum, lit(1i64)]))
    }

    fn name(expr: &Expr) -> String {
        expr.schema_name().to_string()
    }

    #[test]
    fn names_of_nests_are_short_and_tell_them_apart() {
        assert_eq!(name(&sum(2, col("a"))), "$add($add(a,Int64(1)),Int64(1))");
        let long = name(&sum(200, col("a")));
        assert!(long.len() <= MAX_TEXT_BYTES, "{long}");
        assert_eq!(long, name(&sum(200, col("a"))));
        assert_ne!(long, name(&sum(201, col("a"))));
        assert_ne!(long, name(&sum(200, col("b"))));
        assert_ne!(long, name(&sum(200, col("t.a"))));
    }

    #[test]
    fn a_name_follows_from_the_names_of_the_arguments() {
        for terms in [2, 40, 200] {
            let argument = sum(terms, col("a"));
            let named = col("below").alias(name(&argument));
            let plain = call("$multiply", vec![argument, lit(2i64)]);
            let other = call("$multiply", vec![named, lit(2i64)]);
            assert_eq!(name(&plain), name(&other));
        }
    }
}
