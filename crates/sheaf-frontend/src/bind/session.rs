//! Values of the statement and its session, as literals: `?`, `@@variables`, `@variables`, NOW(), DATABASE().

use sheaf_algebra::Scalar;
use sheaf_types::Value;
use sheaf_types::temporal::{self, SECOND};
use sqlparser::ast::Expr;

use super::arguments::wrong_argument_count;
use super::character_set::operands_of_bytes;
use super::{Binder, Bound};
use crate::error::{Result, SqlError};
use crate::query::SessionValues;
use crate::session_functions::SessionFunction;
use crate::syntax::{call, null, number, text};
use crate::value_literal::value_literal;

/// The statement's start in the session's time zone, microseconds since 1970-01-01 00:00:00 there.
pub fn local_now(session: &dyn SessionValues) -> i64 {
    session.now_utc_micros() + i64::from(session.time_zone_offset_seconds()) * SECOND
}

/// `@name`, `@@name`, `@@session.name`, `@@global.name`, if the identifier is one of those.
pub fn variable(session: &dyn SessionValues, parts: &[&str]) -> Result<Option<Expr>> {
    let Some(first) = parts.first().and_then(|part| part.strip_prefix('@')) else {
        return Ok(None);
    };
    let Some(system) = first.strip_prefix('@') else {
        return Ok(Some(value_literal(&session.user_variable(first))));
    };
    let (global, name) = match (system.to_ascii_lowercase().as_str(), parts.get(1)) {
        ("global", Some(name)) => (true, (*name).to_string()),
        ("session" | "local", Some(name)) if !session.has_session_value(name) => {
            return Err(SqlError::no_session_value(name));
        }
        ("session" | "local", Some(name)) => (false, (*name).to_string()),
        (name, None) => (false, name.to_string()),
        (structured, Some(name)) => (false, format!("{structured}.{name}")),
    };
    let of_scope = |global| session.system_variable(global, &name.to_ascii_lowercase());
    match of_scope(global) {
        Some(value) => Ok(Some(value_literal(&value))),
        None if global && of_scope(false).is_some() => Err(SqlError::session_variable(&name)),
        None => Err(SqlError::unknown_system_variable(&name)),
    }
}

impl Binder<'_> {
    /// As [`session_function`]. In a view, CURRENT_USER() is the account that the view reads its tables as.
    pub(super) fn session_function(&self, name: &str, fsp: Option<u8>) -> Option<Expr> {
        match (name, self.definer()) {
            ("current_user", Some(account)) => {
                Some(text(format!("{}@{}", account.user, account.host)))
            }
            _ => session_function(self.context.session, name, fsp),
        }
    }

    /// AES_ENCRYPT and AES_DECRYPT, in the session's mode.
    pub(super) fn cipher(&mut self, name: &str, values: &[&Expr]) -> Bound<Option<Scalar>> {
        let cipher = match name {
            "aes_encrypt" => "$aes_encrypt",
            "aes_decrypt" => "$aes_decrypt",
            _ => return Ok(None),
        };
        if !(2..=6).contains(&values.len()) {
            return Err(wrong_argument_count(name));
        }
        let mode = block_encryption_mode(self.context.session);
        let mut arguments = vec![self.text(mode)?];
        for (at, operand) in values.iter().enumerate() {
            let value = self.value(operand)?;
            arguments.push(match at < operands_of_bytes(name) {
                true => self.in_its_character_set(value, operand)?,
                false => value,
            });
        }
        self.call(cipher, arguments).map(Some)
    }
}

/// Those of them whose argument is a number of fraction digits.
pub fn takes_fraction_digits(function: &str) -> bool {
    matches!(
        function,
        "now"
            | "current_timestamp"
            | "localtime"
            | "localtimestamp"
            | "sysdate"
            | "utc_timestamp"
            | "curtime"
            | "current_time"
            | "utc_time"
    )
}

/// Functions of the session and the clock; `None` if `name` is none of them. `fsp` is the argument of those that
/// take the number of fraction digits.
pub fn session_function(session: &dyn SessionValues, name: &str, fsp: Option<u8>) -> Option<Expr> {
    let function = SessionFunction::named(name)?;
    let digits = fsp.unwrap_or(0).min(6);
    let cut = |micros: i64| micros - micros.rem_euclid(10i64.pow(6 - u32::from(digits)));
    let datetime = |micros: i64| {
        let mut printed = String::new();
        temporal::push_datetime(cut(micros), digits, &mut printed);
        call("$cast_datetime", vec![text(printed), number(digits)])
    };
    let date = |micros: i64| {
        let mut printed = String::new();
        temporal::push_date(temporal::split_datetime(micros).0, &mut printed);
        call("$cast_date", vec![text(printed)])
    };
    let time = |micros: i64| {
        let mut printed = String::new();
        temporal::push_time(
            cut(temporal::split_datetime(micros).1),
            digits,
            &mut printed,
        );
        call("$cast_time", vec![text(printed), number(digits)])
    };
    Some(match function {
        SessionFunction::Now => datetime(local_now(session)),
        SessionFunction::SysDate => {
            let offset = number(session.time_zone_offset_seconds());
            call("$sysdate", vec![offset, number(digits)])
        }
        SessionFunction::UtcTimestamp => datetime(session.now_utc_micros()),
        SessionFunction::CurrentDate => date(local_now(session)),
        SessionFunction::UtcDate => date(session.now_utc_micros()),
        SessionFunction::CurrentTime => time(local_now(session)),
        SessionFunction::UtcTime => time(session.now_utc_micros()),
        SessionFunction::Database => session.current_database().map_or_else(null, text),
        SessionFunction::User => text(session.user()),
        SessionFunction::CurrentUser => text(session.current_user()),
        SessionFunction::CurrentRole => text(session.current_role()),
        SessionFunction::Version => text(session.version()),
        SessionFunction::ConnectionId => number(session.connection_id()),
        SessionFunction::LastInsertId => number(session.last_insert_id()),
        SessionFunction::RowCount => number(session.row_count()),
        SessionFunction::FoundRows => number(session.found_rows()),
    })
}

/// The mode of AES_ENCRYPT and AES_DECRYPT.
fn block_encryption_mode(session: &dyn SessionValues) -> String {
    const DEFAULT: &str = "aes-128-ecb";
    match session.system_variable(false, "block_encryption_mode") {
        Some(Value::Text(mode)) => mode,
        _ => DEFAULT.to_string(),
    }
}

/// The longest result of GROUP_CONCAT, in bytes: a value fits into a packet.
pub fn group_concat_limit(session: &dyn SessionValues) -> Expr {
    const DEFAULT: u64 = 1024;
    let number_of = |variable| match session.system_variable(false, variable) {
        Some(Value::UInt(limit)) => Some(limit),
        Some(Value::Int(limit)) => u64::try_from(limit).ok(),
        _ => None,
    };
    let limit = number_of("group_concat_max_len").unwrap_or(DEFAULT);
    let most = sheaf_exec::functions::error::MAX_RESULT_BYTES as u64;
    let packet = number_of("max_allowed_packet").unwrap_or(most);
    number(limit.min(most).min(packet))
}
