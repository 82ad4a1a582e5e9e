//! What a statement takes from its session when it runs: parameters, user variables, the clock, and functions of the
//! session.
//!
//! `NOW()` is the statement's own start, so it is read at each execution and never becomes a part of a plan.

use std::ops::ControlFlow;

use sheaf_frontend::session_functions::SessionFunction as Named;
use sheaf_frontend::walk::{ExpressionVisitor, walk_expression};
use sheaf_types::Value;
use sheaf_types::temporal::{SECOND, split_datetime};
use sqlparser::ast;

use super::plain_call::plain_call;
use super::selection::selection_of;
use crate::parser::parameter_number;
use crate::parser::statement::{Scope, Statement};
use crate::session::Session;
use crate::session::result::Origin;
use crate::variables::Variables;
use sheaf_frontend::query::SessionValues;

/// Fraction digits of a second, at most.
pub(in crate::direct) const MAX_DIGITS: u8 = 6;

/// See the module's comment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::direct) enum Given {
    /// By its place in the statement, from 0.
    Parameter(usize),
    /// `@name`.
    UserVariable(String),
    /// `@@name`, `@@global.name`.
    SystemVariable {
        is_global: bool,
        name: String,
    },
    Clock(Clock),
    Session(SessionFunction),
}

/// A reading of the clock at the statement's start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::direct) struct Clock {
    pub(in crate::direct) part: ClockPart,
    is_utc: bool,
    /// Fraction digits of its seconds.
    pub(in crate::direct) digits: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::direct) enum ClockPart {
    Moment,
    Day,
    Time,
    /// Seconds since 1970.
    UnixSeconds,
}

/// A function of the session that does not read the clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::direct) enum SessionFunction {
    Database,
    User,
    CurrentUser,
    CurrentRole,
    Version,
    ConnectionId,
    LastInsertId,
    RowCount,
    FoundRows,
}

impl Given {
    /// `None` for any other expression.
    pub(in crate::direct) fn of(expr: &ast::Expr) -> Option<Given> {
        match expr {
            ast::Expr::Value(value) => match &value.value {
                ast::Value::Placeholder(text) => parameter_number(text).map(Given::Parameter),
                _ => None,
            },
            ast::Expr::Identifier(name) if name.quote_style.is_none() => {
                match name.value.strip_prefix('@') {
                    Some(variable) => (!variable.is_empty() && !variable.starts_with('@'))
                        .then(|| Given::UserVariable(variable.to_string())),
                    None => name
                        .value
                        .eq_ignore_ascii_case("current_user")
                        .then_some(Given::Session(SessionFunction::CurrentUser)),
                }
            }
            ast::Expr::Function(function) => of_function(function),
            _ => None,
        }
    }

    /// The same, and system variables: of those the value alone does not tell what is wrong with the name.
    pub(in crate::direct) fn in_expression(expr: &ast::Expr) -> Option<Given> {
        let parts: &[ast::Ident] = match expr {
            ast::Expr::Identifier(name) => std::slice::from_ref(name),
            ast::Expr::CompoundIdentifier(parts) => parts,
            _ => return Given::of(expr),
        };
        let Some(first) = parts[0].value.strip_prefix("@@") else {
            return Given::of(expr);
        };
        let scope = first.to_ascii_lowercase();
        let (is_global, name) = match (scope.as_str(), parts) {
            (_, [_]) => (false, scope.clone()),
            ("global", [_, name]) => (true, name.value.to_ascii_lowercase()),
            ("session" | "local", [_, name])
                if Variables::check_readable(Scope::Session, &name.value).is_ok() =>
            {
                (false, name.value.to_ascii_lowercase())
            }
            _ => return None,
        };
        Some(Given::SystemVariable { is_global, name })
    }

    /// The value in a run with these parameters; NULL of a variable that there is not.
    pub(in crate::direct) fn value(&self, session: &Session, parameters: &[Value]) -> Value {
        match self {
            Given::Parameter(number) => parameters[*number].clone(),
            Given::UserVariable(name) => session.user_variable(name),
            Given::SystemVariable { is_global, name } => session
                .system_variable(*is_global, name)
                .unwrap_or_default(),
            Given::Clock(clock) => clock.value(session),
            Given::Session(function) => function.value(session),
        }
    }

    /// The value where it is read as a literal; `None` of a variable's that has no plain one.
    pub(in crate::direct) fn literal_value(
        &self,
        session: &Session,
        parameters: &[Value],
    ) -> Option<Value> {
        let value = self.value(session, parameters);
        let is_plain = matches!(
            value,
            Value::Null | Value::Int(_) | Value::UInt(_) | Value::Text(_) | Value::Decimal { .. }
        );
        (is_plain || !matches!(self, Given::UserVariable(_))).then_some(value)
    }

    pub(in crate::direct) fn origin(&self) -> Origin {
        Origin::of_decimals(match self {
            Given::Clock(clock) => clock.digits,
            _ => 0,
        })
    }
}

/// A call without arguments, or with the number of fraction digits.
fn of_function(function: &ast::Function) -> Option<Given> {
    let (name, operands) = plain_call(function)?;
    let digits = match operands.as_slice() {
        [] => None,
        [ast::Expr::Value(value)] => match &value.value {
            ast::Value::Number(digits, _) => Some(digits.parse::<u8>().ok()?),
            _ => return None,
        },
        _ => return None,
    };
    let clock = |part: ClockPart, is_utc: bool| {
        let digits = digits.unwrap_or(0).min(MAX_DIGITS);
        Some(Given::Clock(Clock {
            part,
            is_utc,
            digits,
        }))
    };
    // The present; of another moment it is computed.
    if name == "unix_timestamp" && digits.is_none() {
        return clock(ClockPart::UnixSeconds, true);
    }
    let function = match Named::named(&name)? {
        Named::Now => return clock(ClockPart::Moment, false),
        Named::UtcTimestamp => return clock(ClockPart::Moment, true),
        Named::CurrentTime => return clock(ClockPart::Time, false),
        Named::UtcTime => return clock(ClockPart::Time, true),
        _ if digits.is_some() => return None,
        Named::CurrentDate => return clock(ClockPart::Day, false),
        Named::UtcDate => return clock(ClockPart::Day, true),
        // It is another moment each time.
        Named::SysDate => return None,
        Named::Database => SessionFunction::Database,
        Named::User => SessionFunction::User,
        Named::CurrentUser => SessionFunction::CurrentUser,
        Named::CurrentRole => SessionFunction::CurrentRole,
        Named::Version => SessionFunction::Version,
        Named::ConnectionId => SessionFunction::ConnectionId,
        Named::LastInsertId => SessionFunction::LastInsertId,
        Named::RowCount => SessionFunction::RowCount,
        Named::FoundRows => SessionFunction::FoundRows,
    };
    Some(Given::Session(function))
}

impl Clock {
    fn value(self, session: &Session) -> Value {
        let micros = match self.is_utc {
            true => session.now_utc_micros(),
            false => session.local_now_micros(),
        };
        let cut = |micros: i64| {
            micros - micros.rem_euclid(10i64.pow(u32::from(MAX_DIGITS - self.digits)))
        };
        match self.part {
            ClockPart::Moment => Value::DateTime(cut(micros)),
            ClockPart::Day => Value::Date(split_datetime(micros).0),
            ClockPart::Time => Value::Time(cut(split_datetime(micros).1)),
            ClockPart::UnixSeconds => Value::Int(micros.div_euclid(SECOND)),
        }
    }
}

impl SessionFunction {
    fn value(self, session: &Session) -> Value {
        match self {
            SessionFunction::Database => match session.current_database() {
                Some(database) => Value::Text(database.to_string()),
                None => Value::Null,
            },
            SessionFunction::User => Value::Text(session.user()),
            SessionFunction::CurrentUser => Value::Text(session.current_user()),
            SessionFunction::CurrentRole => Value::Text(session.current_role()),
            SessionFunction::Version => Value::Text(session.version()),
            SessionFunction::ConnectionId => Value::UInt(session.connection_id()),
            SessionFunction::LastInsertId => Value::UInt(session.last_insert_id()),
            SessionFunction::RowCount => Value::Int(session.row_count()),
            SessionFunction::FoundRows => Value::UInt(session.found_rows()),
        }
    }
}

/// Whether there may be such calls and variables in a text, which may be megabytes long.
fn may_have_some(text: &str) -> bool {
    let text = text.as_bytes();
    let begins = |at: usize, name: &[u8]| {
        let part = text.get(at..at + name.len());
        part.is_some_and(|part| part.eq_ignore_ascii_case(name))
    };
    text.iter().enumerate().any(|(at, byte)| match byte {
        b'@' => true,
        // LAST_INSERT_ID
        b'i' | b'I' => begins(at, b"insert_id"),
        b'c' | b'C' => begins(at, b"connection_id"),
        b'd' | b'D' => begins(at, b"database"),
        b's' | b'S' => begins(at, b"schema("),
        _ => false,
    })
}

/// A statement whose WHERE has places, behind so many parameters, for the variables and numbers of the session in it:
/// they are operands of its keys then. With what takes these places. `None` if there are none; `text` is what was
/// parsed.
pub(in crate::direct) fn with_places(
    statement: &Statement,
    (text, parameters): (&str, usize),
) -> (Option<Statement>, Vec<Given>) {
    let mut places = Places {
        first: parameters,
        given: Vec::new(),
    };
    if !may_have_some(text) {
        return (None, places.given);
    }
    let mut statement = statement.clone();
    let selection = selection_of(&mut statement);
    if let Some(selection) = selection {
        walk_expression(selection, &mut places);
    }
    match places.given.is_empty() {
        true => (None, places.given),
        false => (Some(statement), places.given),
    }
}

/// See [`with_places`].
struct Places {
    first: usize,
    given: Vec<Given>,
}

impl ExpressionVisitor for Places {
    fn leave_expression(&mut self, expression: &mut ast::Expr) -> ControlFlow<()> {
        let given = Given::of(expression).filter(|given| {
            matches!(
                given,
                Given::UserVariable(_)
                    | Given::Session(
                        SessionFunction::LastInsertId
                            | SessionFunction::ConnectionId
                            | SessionFunction::Database
                    )
            )
        });
        if let Some(given) = given {
            let place = format!("?{}", self.first + self.given.len());
            *expression = ast::Expr::value(ast::Value::Placeholder(place));
            self.given.push(given);
        }
        ControlFlow::Continue(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialect::SheafDialect;

    fn given(text: &str) -> Option<Given> {
        let expr = crate::parser::parse_expression(text, &SheafDialect::default()).expect(text);
        Given::in_expression(&expr)
    }

    #[test]
    fn the_clock_and_the_session_are_given() {
        let moment = |digits: u8| {
            Some(Given::Clock(Clock {
                part: ClockPart::Moment,
                is_utc: false,
                digits,
            }))
        };
        assert_eq!(given("now()"), moment(0));
        assert_eq!(given("CURRENT_TIMESTAMP"), moment(0));
        assert_eq!(given("current_timestamp(3)"), moment(3));
        assert_eq!(given("@x"), Some(Given::UserVariable("x".into())));
        assert_eq!(
            given("@@global.Port"),
            Some(Given::SystemVariable {
                is_global: true,
                name: "port".into()
            })
        );
        assert_eq!(
            given("last_insert_id()"),
            Some(Given::Session(SessionFunction::LastInsertId))
        );
        for other in [
            "x",
            "rand()",
            "last_insert_id(1)",
            "now() + 1",
            "curdate(1)",
        ] {
            assert_eq!(given(other), None, "{other}");
        }
    }
}
