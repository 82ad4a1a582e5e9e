//! Inputs of expressions: what a run of a statement gives them, such as parameters, user variables and the clock.
//!
//! ```text
//!   CONCAT(c, ?)   a column where the type alone matters     [ c | $0 ] = [ 'abc' | 'x' ]
//!   c LIKE ?       a part of the expression elsewhere        c LIKE 'x%'
//! ```
//!
//! An expression is planned for the [`Class`] of each input of the first kind, and for the value of each of the
//! second ([`KeyPart`]).

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arrow::array::{
    ArrayRef, Date32Array, DurationMicrosecondArray, Int64Array, StringViewArray,
    TimestampMicrosecondArray,
};
use arrow::datatypes::Field;
use sheaf_exec::functions::types::{Coercibility, field};
use sheaf_frontend::query::SessionValues;
use sheaf_frontend::walk::ExpressionVisitor;
use sheaf_types::Value;
use sheaf_types::temporal::{SECOND, split_offset};
use smallvec::SmallVec;
use sqlparser::ast;

use crate::direct::syntax::given::{Clock, ClockPart, Given, MAX_DIGITS};
use crate::session::Session;

/// The longest value that is kept as a part of an expression, in bytes.
const MAX_KEPT_VALUE_BYTES: usize = 1024;
/// What the name of an input begins with; its number follows.
pub(super) const INPUT: &str = "\0i";

/// What the expressions of a plan are given.
#[derive(Debug)]
pub(in crate::direct) struct Inputs {
    /// Of all plans of the process.
    pub(super) id: u64,
    pub(super) list: Vec<Input>,
}

impl Inputs {
    pub(super) fn new(list: Vec<Input>) -> Inputs {
        static IDS: AtomicU64 = AtomicU64::new(0);
        Inputs {
            id: IDS.fetch_add(1, Ordering::Relaxed),
            list,
        }
    }

    pub(super) fn key(&self, values: &[Value], part: impl Fn(&Input, &Value) -> KeyPart) -> Key {
        let inputs = self.list.iter().zip(values);
        inputs.map(|(input, value)| part(input, value)).collect()
    }

    /// Each as it stands in the statement. `parameter`: what stands for a parameter by its place.
    pub(super) fn written(&self, parameter: &dyn Fn(usize) -> ast::Expr) -> Vec<Option<ast::Expr>> {
        let written = self.list.iter().map(|input| match input.given {
            Given::Parameter(number) => Some(parameter(number)),
            _ => Some(input.written.clone()),
        });
        written.collect()
    }
}

#[derive(Debug)]
pub(super) struct Input {
    pub(super) given: Given,
    /// As it stands in the statement.
    pub(super) written: ast::Expr,
    pub(super) free: Free,
    /// A text is put together of it: its length is a part of the text's.
    pub(super) is_joined: bool,
}

/// Which values of an input are columns, because nothing but their types matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Free {
    None,
    /// Arithmetic takes a text for what it says.
    Numbers,
    Texts,
    All,
}

/// The type of an input that is a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    Int,
    Text,
    Date,
    /// With the digits of its second's fraction.
    Time(u8),
    DateTime(u8),
    Clock(Clock),
}

/// The digits that the fraction of a value's second is shown with.
fn digits_of(micros: i64) -> u8 {
    match micros % SECOND {
        0 => 0,
        _ => MAX_DIGITS,
    }
}

impl Input {
    /// `None`: its value is a part of the expression.
    pub(super) fn class(&self, value: &Value) -> Option<Class> {
        match (&self.given, value) {
            _ if self.free == Free::None => None,
            (Given::Clock(clock), _) => Some(Class::Clock(*clock)),
            // A number is a BIGINT by its digits, whatever the client has bound.
            (_, Value::Int(_)) if self.free != Free::Texts => Some(Class::Int),
            (_, Value::UInt(number))
                if self.free != Free::Texts && i64::try_from(*number).is_ok() =>
            {
                Some(Class::Int)
            }
            // A moment with an offset is one as a constant only.
            (_, Value::Text(text)) if self.free != Free::Numbers && !has_offset(text) => {
                Some(Class::Text)
            }
            (_, Value::Date(_)) if self.free == Free::All => Some(Class::Date),
            (_, Value::Time(micros)) if self.free == Free::All => {
                Some(Class::Time(digits_of(*micros)))
            }
            (_, Value::DateTime(micros)) if self.free == Free::All => {
                Some(Class::DateTime(digits_of(*micros)))
            }
            _ => None,
        }
    }
}

impl Class {
    pub(super) fn field(self, name: String, session: &Session) -> Field {
        let field = match self {
            Class::Int => field::bigint(),
            Class::Text => field::collated_text(session.collation(), Coercibility::Coercible),
            Class::Date => field::date(),
            Class::Time(digits) => field::time(digits),
            Class::DateTime(digits) => field::datetime(digits),
            Class::Clock(clock) => match clock.part {
                ClockPart::Moment => field::datetime(clock.digits),
                ClockPart::Day => field::date(),
                ClockPart::Time => field::time(clock.digits),
                ClockPart::UnixSeconds => field::bigint(),
            },
        };
        field.with_name(name).with_nullable(false)
    }
}

/// A value as the array of a batch of one row. `None`: it is of another type, or the statement shall stop.
pub(super) fn array_of_input(value: &Value) -> Option<ArrayRef> {
    if let Value::Text(text) = value
        && !sheaf_memory::has_room_for_value(text.len())
    {
        return None;
    }
    Some(match value {
        Value::Int(number) => Arc::new(Int64Array::from_value(*number, 1)),
        Value::UInt(number) => Arc::new(Int64Array::from_value(i64::try_from(*number).ok()?, 1)),
        Value::Text(text) => Arc::new(StringViewArray::from_iter_values([text])),
        Value::DateTime(micros) => Arc::new(TimestampMicrosecondArray::from_value(*micros, 1)),
        Value::Date(days) => Arc::new(Date32Array::from_value(*days, 1)),
        Value::Time(micros) => Arc::new(DurationMicrosecondArray::from_value(*micros, 1)),
        _ => return None,
    })
}

/// The input that an expression is.
pub(super) fn input_number(expr: &ast::Expr) -> Option<usize> {
    match expr {
        ast::Expr::Nested(inner) => input_number(inner),
        ast::Expr::Identifier(name) => name.value.strip_prefix(INPUT)?.parse().ok(),
        _ => None,
    }
}

/// Puts what a run is given in the places of inputs that are no columns.
pub(super) struct Substitution<'a> {
    /// For each input what takes its place, if anything does.
    pub(super) written: &'a [Option<ast::Expr>],
}

impl ExpressionVisitor for Substitution<'_> {
    fn leave_expression(&mut self, expression: &mut ast::Expr) -> ControlFlow<()> {
        if let ast::Expr::Identifier(_) = expression
            && let Some(number) = input_number(expression)
            && let Some(Some(written)) = self.written.get(number)
        {
            *expression = written.clone();
        }
        ControlFlow::Continue(())
    }
}

fn has_offset(text: &str) -> bool {
    split_offset(text).is_some()
}

pub(super) fn is_long(value: &Value) -> bool {
    value.string_bytes() > MAX_KEPT_VALUE_BYTES
}

/// What an expression was planned for, of one of its inputs.
#[derive(Debug)]
pub(super) enum KeyPart {
    Class(Class),
    Value(Value),
    /// A value that might have been a column.
    Constant(Value),
}

impl KeyPart {
    pub(super) fn of(input: &Input, value: &Value) -> KeyPart {
        match input.class(value) {
            Some(class) => KeyPart::Class(class),
            None => KeyPart::Value(value.clone()),
        }
    }

    pub(super) fn fits(&self, input: &Input, value: &Value) -> bool {
        let is_same = |known: &Value| match (known, value) {
            (Value::Double(known), Value::Double(value)) => known.to_bits() == value.to_bits(),
            _ => known == value,
        };
        match (self, input.class(value)) {
            (KeyPart::Constant(known), _) => is_same(known),
            (KeyPart::Class(known), Some(class)) => *known == class,
            (KeyPart::Value(known), None) => is_same(known),
            _ => false,
        }
    }
}

/// What it was planned for, of all inputs.
pub(super) type Key = SmallVec<[KeyPart; 4]>;
