//! Functions that tell of a value what is known before there is one: CHARSET, COLLATION, COERCIBILITY, GET_FORMAT.
//!
//! They are constants to the plan. Text is UTF-8 throughout, so CHARSET knows `utf8mb4` and `binary`.

use sheaf_algebra::Scalar;
use sheaf_exec::functions::SqlType;
use sheaf_exec::functions::types::{Coercibility, collation_of};
use sheaf_types::Collation;
use sqlparser::ast::{Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments};

use super::arguments::wrong_argument_count;
use super::character_set::BINARY;
use super::{Binder, Bound};
use crate::error::SqlError;

/// The second argument of GET_FORMAT.
const PLACES: [&str; 5] = ["EUR", "INTERNAL", "ISO", "JIS", "USA"];
const DATES: [&str; 5] = ["%d.%m.%Y", "%Y%m%d", "%Y-%m-%d", "%Y-%m-%d", "%m.%d.%Y"];
const TIMES: [&str; 5] = ["%H.%i.%s", "%H%i%s", "%H:%i:%s", "%H:%i:%s", "%h:%i:%s %p"];
const DATETIMES: [&str; 5] = [
    "%Y-%m-%d %H.%i.%s",
    "%Y%m%d%H%i%s",
    "%Y-%m-%d %H:%i:%s",
    "%Y-%m-%d %H:%i:%s",
    "%Y-%m-%d %H.%i.%s",
];

impl Binder<'_> {
    /// `None`: it is another function.
    pub(super) fn told_of_type(&mut self, name: &str, values: &[Expr]) -> Bound<Option<Scalar>> {
        let operand = match (name, values) {
            ("charset" | "collation" | "coercibility", [operand]) => operand,
            // The grammar has its operand.
            ("charset", _) => return Err(SqlError::parse_error(name, 1)),
            ("coercibility", _) => return Err(wrong_argument_count(name)),
            _ => return Ok(None),
        };
        if name == "coercibility" {
            let level = self.coercibility(operand)?;
            return Ok(Some(self.integer(level)));
        }
        let value = self.value(operand)?;
        let known = collation_of(&value.sql_type());
        let told = match (known, name) {
            (None | Some((Collation::Binary, _)), _) => BINARY,
            (Some(_), "charset") => "utf8mb4",
            (Some((collation, _)), _) => collation.name(),
        };
        self.text(told).map(Some)
    }

    /// How much an operand yields to others: 0 not at all, and 6 to all.
    fn coercibility(&mut self, operand: &Expr) -> Bound<i64> {
        const LITERAL: i64 = 4;
        let ty = self.value(operand)?.sql_type();
        let level = match (collation_of(&ty), ty) {
            _ if is_system_constant(operand) => 3,
            (Some((_, Coercibility::Explicit)), _) => 0,
            (Some((_, Coercibility::Mixed)), _) => 1,
            (Some((_, Coercibility::Implicit)), _) => 2,
            (Some((_, Coercibility::Coercible)), _) => LITERAL,
            (None, SqlType::Null) => 6,
            (None, SqlType::Bytes) if matches!(operand, Expr::Value(_)) => LITERAL,
            (None, SqlType::Bytes) => 2,
            (None, _) => 5,
        };
        if level != LITERAL {
            return Ok(level);
        }
        // The typing rule does not tell system constants from literals.
        let mut least = LITERAL;
        for part in parts_of_text(operand) {
            least = least.min(self.coercibility(part)?);
        }
        Ok(least)
    }

    /// GET_FORMAT(kind, place): NULL for a place that is not known.
    pub(super) fn format_of_place(&mut self, kind: &Expr, place: &Expr) -> Bound<Scalar> {
        let Expr::Identifier(kind) = kind else {
            return Err(SqlError::parse_error(&kind.to_string(), 1));
        };
        let formats = match kind.value.to_ascii_lowercase().as_str() {
            "date" => DATES,
            "time" => TIMES,
            "datetime" | "timestamp" => DATETIMES,
            other => return Err(SqlError::parse_error(other, 1)),
        };
        // FIELD would compare a number, or NULL, with numbers.
        let place = self.value(place)?;
        let place = self.call("concat", vec![place])?;
        if place.sql_type() == SqlType::Null {
            return Ok(place);
        }
        let mut places = vec![place];
        for known in PLACES {
            places.push(self.text(known)?);
        }
        let mut chosen = vec![self.call("field", places)?];
        for format in formats {
            chosen.push(self.text(format)?);
        }
        self.call("elt", chosen)
    }
}

/// The operands that a text is put together of, or chosen from.
fn parts_of_text(operand: &Expr) -> Vec<&Expr> {
    let names = [
        "concat",
        "concat_ws",
        "ifnull",
        "coalesce",
        "lower",
        "upper",
    ];
    match operand {
        Expr::Nested(inside) => vec![inside],
        Expr::Function(Function {
            name,
            args: FunctionArguments::List(list),
            ..
        }) if names
            .iter()
            .any(|known| known.eq_ignore_ascii_case(&name.to_string())) =>
        {
            let operands = list.args.iter().filter_map(|operand| match operand {
                FunctionArg::Unnamed(FunctionArgExpr::Expr(operand)) => Some(operand),
                _ => None,
            });
            operands.collect()
        }
        _ => Vec::new(),
    }
}

/// USER(), VERSION() and their like, which yield to columns and not to literals.
fn is_system_constant(operand: &Expr) -> bool {
    let Expr::Function(function) = operand else {
        return false;
    };
    let names = [
        "user",
        "session_user",
        "system_user",
        "current_user",
        "version",
        "database",
        "schema",
    ];
    let name = function.name.to_string();
    names.iter().any(|known| known.eq_ignore_ascii_case(&name))
}
