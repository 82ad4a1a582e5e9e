//! Functions that tell of a value what is known before there is one: CHARSET, COLLATION, COERCIBILITY, GET_FORMAT.
//!
//! They are constants to the plan. A text that comes from no column is of the connection's. What the
//! server says of itself, such as USER() and VERSION(), is `utf8mb3` to MySQL's clients. It is here, too, in CHARSET
//! and COLLATION alone.

use sheaf_algebra::{ColumnSet, Scalar};
use sheaf_exec::functions::types::{Coercibility, collation_of, is_literal_of_bytes};
use sheaf_exec::functions::{SqlType, called};
use sheaf_types::Collation;
use sqlparser::ast::Expr;

use super::arguments::wrong_argument_count;
use super::character_set::{BINARY, other_character_set, parts_of_text};
use super::{Binder, Bound};
use crate::character_sets::default_collation;
use crate::error::SqlError;
use crate::session_functions::SessionFunction;
use crate::syntax::{bare, object_text};

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
    pub(super) fn told_of_type(&mut self, name: &str, values: &[&Expr]) -> Bound<Option<Scalar>> {
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
        let is_of_set = matches!(known, Some((Collation::OfSet(_), _)));
        if !is_of_set && let Some(set) = other_character_set(operand) {
            let told = match name {
                "charset" => set,
                _ => default_collation(set),
            };
            return self.text(told).map(Some);
        }
        let yields = matches!(known, Some((_, Coercibility::Coercible)));
        let is_own = is_system_constant(operand)
            || yields && (is_in_utf8mb3(operand) || self.is_of_system(operand)?);
        if !is_own && let Some(connection) = self.told_of_connection(name, operand, &value) {
            return self.text(connection).map(Some);
        }
        let told = match (known, name) {
            (_, "charset") if is_own => "utf8mb3",
            _ if is_own => "utf8mb3_general_ci",
            (None | Some((Collation::Binary, _)), _) => BINARY,
            (Some((collation, _)), "charset") => collation.character_set(),
            (Some((collation, _)), _) => collation.name(),
        };
        self.text(told).map(Some)
    }

    /// The connection's character set or collation, if that is what a text has: one that is neither of a column nor
    /// said to be of another. Some have other names than what compares them here.
    fn told_of_connection(&self, name: &str, operand: &Expr, value: &Scalar) -> Option<String> {
        let is_said = matches!(
            bare(operand),
            Expr::Convert {
                charset: Some(_),
                ..
            } | Expr::Prefixed { .. }
                | Expr::Collate { .. }
                | Expr::Subquery(_)
        );
        let of_connection = self.connection_text("collation_connection")?;
        let (collation, coercibility) = collation_of(&value.sql_type())?;
        let is_own = collation == self.collation()
            && collation == Collation::nearest(&of_connection)
            && coercibility != Coercibility::Explicit;
        if is_said || !is_own || value.columns() != ColumnSet::new() {
            return None;
        }
        match name {
            "charset" => self.connection_text("character_set_connection"),
            _ => Some(of_connection),
        }
    }

    /// How much an operand yields to others: 0 not at all, and 6 to all.
    fn coercibility(&mut self, operand: &Expr) -> Bound<i64> {
        let value = self.value(operand)?;
        let ty = value.sql_type();
        Ok(match (collation_of(&ty), ty) {
            _ if is_system_constant(operand) => 3,
            (Some(_), _) if makes_bytes(operand) => 4,
            (Some((_, Coercibility::Explicit)), _) => 0,
            (Some((_, Coercibility::Mixed)), _) => 1,
            (Some((_, Coercibility::Implicit | Coercibility::OfServer)), _) => 2,
            // The typing rule does not tell system constants from literals.
            (Some((_, Coercibility::Coercible)), _) => match self.is_of_system(operand)? {
                true => 3,
                false => 4,
            },
            (None, SqlType::Null) => 6,
            (None, SqlType::Bytes)
                if matches!(operand, Expr::Value(_))
                    || is_literal_of_bytes(value.field())
                    || makes_bytes(operand) =>
            {
                4
            }
            (None, SqlType::Bytes) => 2,
            (None, _) => 5,
        })
    }

    /// Whether a text is what the server says of itself, or put together of such texts and of others that yield to
    /// them.
    fn is_of_system(&mut self, operand: &Expr) -> Bound<bool> {
        if is_system_constant(operand) {
            return Ok(true);
        }
        if is_system_variable(operand) {
            let ty = self.value(operand)?.sql_type();
            return Ok(matches!(ty, SqlType::Text { .. }));
        }
        for part in parts_of_text(operand) {
            if self.is_of_system(part)? {
                return Ok(true);
            }
        }
        Ok(false)
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

/// USER(), VERSION() and their like, which yield to columns and not to literals.
pub(super) fn is_system_constant(operand: &Expr) -> bool {
    let Expr::Function(function) = bare(operand) else {
        return false;
    };
    let name = object_text(&function.name).to_ascii_lowercase();
    matches!(
        SessionFunction::named(&name),
        Some(
            SessionFunction::User
                | SessionFunction::CurrentUser
                | SessionFunction::CurrentRole
                | SessionFunction::Version
                | SessionFunction::Database
        )
    )
}

/// `@@name`, `@@session.name`
fn is_system_variable(operand: &Expr) -> bool {
    let first = match operand {
        Expr::Identifier(name) => Some(name),
        Expr::CompoundIdentifier(names) => names.first(),
        _ => None,
    };
    first.is_some_and(|name| name.quote_style.is_none() && name.value.starts_with("@@"))
}

/// Functions whose texts are in the server's own character set, and yield as literals do.
fn is_in_utf8mb3(operand: &Expr) -> bool {
    is_call_of(operand, &["charset", "collation", "gtid_subtract", "uuid"])
}

/// Functions whose bytes are no column's, and yield as literals do.
fn makes_bytes(operand: &Expr) -> bool {
    let Expr::Function(function) = bare(operand) else {
        return false;
    };
    let name = object_text(&function.name).to_ascii_lowercase();
    name == "load_file" || called(&name).is_some_and(|function| function.makes_bytes)
}

pub(super) fn is_call_of(operand: &Expr, names: &[&str]) -> bool {
    let Expr::Function(function) = bare(operand) else {
        return false;
    };
    let name = object_text(&function.name);
    names.iter().any(|known| known.eq_ignore_ascii_case(&name))
}
