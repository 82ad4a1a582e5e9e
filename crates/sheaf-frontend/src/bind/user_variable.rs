//! `@name := value`, and `@name` in a statement that has such.
//!
//! A variable is computed with in one type, that all its values fit in: what it is before, and whatever the statement
//! assigns. Since `@n := @n + 1` has a type by that of `@n`, the statement is bound again until no type changes, a few
//! times at most.
//!
//! A variable that is an integer before is shown as one, and compared as one with integers, whatever is assigned:
//!
//! ```text
//!   SET @a = 0, @b = 0;
//!   SELECT @a := '10', @b := '2', @a > @b, @m := @a + 1.5, @a    -->   10, 2, 1, 11.5, 10
//! ```
//!
//! An assignment itself has the type of its value, and leaves a value of that type.

use std::collections::{BTreeMap, BTreeSet};

use datafusion_common::ScalarValue;
use sheaf_algebra::Scalar;
use sheaf_exec::functions::types::SqlType;
use sheaf_types::Value;
use sheaf_types::number::{MAX_DIGITS, MAX_WIDE_DIGITS, is_wide};
use sqlparser::ast::Expr;

use super::block::Clause;
use super::{Binder, Bound};
use crate::error::SqlError;
use crate::query::QueryContext;
use crate::value_literal::value_literal;

/// Statements are bound so often that their variables find a type. Then DECIMAL, which may grow each time, is DOUBLE.
const MAX_ATTEMPTS: usize = 4;

/// What values a variable may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Null,
    Integer,
    Unsigned,
    Decimal { digits: u8, scale: u8 },
    Double,
    Text,
    Bytes,
}

/// The variables that a statement assigns, by their names in lower case.
#[derive(Clone, Default)]
pub(super) struct Variables {
    kinds: BTreeMap<String, Kind>,
    /// Those that are integers before.
    integers: BTreeMap<String, Kind>,
    /// What is assigned, as far as it was bound.
    assigned: BTreeMap<String, Kind>,
    /// Those that subqueries in select lists read.
    read_by_subqueries: BTreeSet<String>,
    attempts: usize,
}

impl Variables {
    /// Those of the whole text: an INSERT binds its values one by one.
    pub fn of(context: &QueryContext<'_>) -> Variables {
        let mut variables = Variables::default();
        for (place, _) in context.sql.match_indices(":=") {
            let before = context.sql[..place].trim_end();
            let is_part = |letter: char| letter.is_alphanumeric() || "_.$".contains(letter);
            let stem = before.trim_end_matches(is_part);
            if !stem.ends_with('@') {
                continue;
            }
            let name = before[stem.len()..].to_lowercase();
            let kind = Kind::of_value(&context.session.user_variable(&name));
            if matches!(kind, Kind::Integer | Kind::Unsigned) {
                variables.integers.insert(name.clone(), kind);
            }
            variables.kinds.insert(name, kind);
        }
        variables
    }

    /// What they have to be bound as instead, if they were bound as too little.
    pub fn grown(&self) -> Option<Variables> {
        let mut kinds = self.kinds.clone();
        for (name, assigned) in &self.assigned {
            if let Some(kind) = kinds.get_mut(name) {
                *kind = kind.and(*assigned);
                if self.attempts + 1 >= MAX_ATTEMPTS && matches!(kind, Kind::Decimal { .. }) {
                    *kind = Kind::Double;
                }
            }
        }
        (kinds != self.kinds && self.attempts < MAX_ATTEMPTS).then(|| Variables {
            kinds,
            integers: self.integers.clone(),
            assigned: BTreeMap::new(),
            read_by_subqueries: BTreeSet::new(),
            attempts: self.attempts + 1,
        })
    }

    /// A subquery has its rows before the list around it is computed, so it does not see what is assigned there. In
    /// WHERE it is computed before all rows, as in MySQL.
    ///
    /// # Errors
    /// 1235 where one reads what is assigned.
    pub fn refuse_reads_by_subqueries(&self) -> Bound<()> {
        let mut read = self.read_by_subqueries.iter();
        if read.any(|name| self.assigned.contains_key(name)) {
            let what = "a subquery that reads a user variable which the statement assigns";
            return Err(SqlError::not_supported_yet(what));
        }
        Ok(())
    }
}

impl Kind {
    fn of_value(value: &Value) -> Kind {
        match value {
            Value::Null => Kind::Null,
            Value::UInt(_) => Kind::Unsigned,
            Value::Decimal { scale, .. } => Kind::Decimal {
                digits: MAX_DIGITS,
                scale: *scale,
            },
            Value::WideDecimal { scale, .. } => Kind::Decimal {
                digits: MAX_WIDE_DIGITS,
                scale: *scale,
            },
            Value::Float(_) | Value::Double(_) => Kind::Double,
            Value::Bytes(_) => Kind::Bytes,
            integer if integer.is_number() => Kind::Integer,
            _ => Kind::Text,
        }
    }

    fn of_type(sql_type: SqlType) -> Kind {
        match sql_type {
            SqlType::Null => Kind::Null,
            SqlType::Integer { unsigned: true } => Kind::Unsigned,
            integer if integer.is_integer() => Kind::Integer,
            SqlType::Decimal {
                precision, scale, ..
            } => Kind::Decimal {
                digits: match is_wide(precision) {
                    true => MAX_WIDE_DIGITS,
                    false => MAX_DIGITS,
                },
                scale,
            },
            SqlType::Float | SqlType::Double => Kind::Double,
            SqlType::Bytes => Kind::Bytes,
            _ => Kind::Text,
        }
    }

    /// What values of both fit in.
    fn and(self, other: Kind) -> Kind {
        let digits_of = |kind| match kind {
            Kind::Decimal { digits, scale } => Some((digits, scale)),
            Kind::Integer | Kind::Unsigned => Some((MAX_DIGITS, 0)),
            _ => None,
        };
        match (self, other) {
            (one, other) if one == other => one,
            (Kind::Null, other) | (other, Kind::Null) => other,
            (Kind::Text | Kind::Bytes, _) | (_, Kind::Text | Kind::Bytes) => Kind::Text,
            (one, other) => match (digits_of(one), digits_of(other)) {
                (Some(one), Some(other)) => Kind::Decimal {
                    digits: one.0.max(other.0),
                    scale: one.1.max(other.1),
                },
                _ => Kind::Double,
            },
        }
    }
}

impl Binder<'_> {
    /// `@name`; `None` if the statement does not assign it.
    pub(super) fn assigned_variable(&mut self, name: &str) -> Bound<Option<Scalar>> {
        let name = name.to_lowercase();
        let Some(kind) = self.variables.kinds.get(&name).copied() else {
            return Ok(None);
        };
        let value = self.variable_of_kind(&name, kind)?;
        self.note_read(name);
        Ok(Some(value))
    }

    /// It is read here, maybe by a subquery.
    fn note_read(&mut self, name: String) {
        if self.open_listed_subqueries > 0 {
            self.variables.read_by_subqueries.insert(name);
        }
    }

    /// A variable that is an integer before, and is an item of a select list. `None` of all else.
    pub(super) fn listed_integer_variable(&mut self, expr: &Expr) -> Bound<Option<Scalar>> {
        let value = self.integer_variable(expr)?;
        if let (Some(_), Some(name)) = (&value, name_of(expr)) {
            self.note_read(name);
        }
        Ok(value)
    }

    /// A variable that is an integer before, and is shown, or compared with integers. `None` of all else.
    fn integer_variable(&self, expr: &Expr) -> Bound<Option<Scalar>> {
        let Some(name) = name_of(expr) else {
            return Ok(None);
        };
        match self.variables.integers.get(&name).copied() {
            Some(kind) => self.variable_of_kind(&name, kind).map(Some),
            None => Ok(None),
        }
    }

    /// The sides of a comparison: variables that are integers before are, where the other side is one.
    pub(super) fn integers_compared(
        &self,
        (one, left): (&Expr, Scalar),
        (other, right): (&Expr, Scalar),
    ) -> Bound<(Scalar, Scalar)> {
        if self.variables.integers.is_empty() {
            return Ok((left, right));
        }
        let variables = (self.integer_variable(one)?, self.integer_variable(other)?);
        let is_integer = |variable: &Option<Scalar>, side: &Scalar| {
            variable.is_some() || side.sql_type().is_integer()
        };
        if !is_integer(&variables.0, &left) || !is_integer(&variables.1, &right) {
            return Ok((left, right));
        }
        Ok((variables.0.unwrap_or(left), variables.1.unwrap_or(right)))
    }

    fn variable_of_kind(&self, name: &str, kind: Kind) -> Bound<Scalar> {
        let before = value_literal(&self.context.session.user_variable(name));
        let before = self.of_kind(self.internal(&before)?, kind)?;
        if kind == Kind::Null {
            return Ok(before);
        }
        let field = before.field().as_ref().clone().with_nullable(true).into();
        let function = self.context.session.assigned_variables();
        let function = function.read(name, field);
        Ok(self.typing().call_function(function, vec![before])?)
    }

    /// `@name := value`.
    pub(super) fn assignment(&mut self, variable: &Expr, value: &Expr) -> Bound<Scalar> {
        let Some(name) = name_of(variable) else {
            return Err(SqlError::parse_error(":=", 1));
        };
        let is_row_by_row = self.open_subqueries == 0
            && self.blocks.last().is_some_and(|block| {
                matches!(block.clause, Clause::FieldList | Clause::Where)
                    && !block.in_aggregate
                    && !block.in_window
                    && !block.in_window_specification
            });
        if !is_row_by_row {
            let what = "':=' outside of a select list and WHERE";
            return Err(SqlError::not_supported_yet(what));
        }
        let value = self.operand(value)?;
        let assigned = Kind::of_type(value.sql_type());
        let known = self.variables.assigned.entry(name.clone());
        let known = known.or_insert(Kind::Null);
        *known = known.and(assigned);
        let kind = match assigned {
            Kind::Null => self.variables.kinds.get(&name).copied(),
            _ => None,
        };
        let value = self.of_kind(value, kind.unwrap_or(assigned))?;
        let field = value.field().as_ref().clone().with_nullable(true).into();
        let function = self.context.session.assigned_variables();
        let function = function.assign(&name, field);
        Ok(self.typing().call_function(function, vec![value])?)
    }

    fn of_kind(&self, value: Scalar, kind: Kind) -> Bound<Scalar> {
        match kind {
            Kind::Null => Ok(Scalar::literal(ScalarValue::Null)),
            Kind::Integer => self.call("$cast_signed", vec![value]),
            Kind::Unsigned => self.call("$cast_unsigned", vec![value]),
            Kind::Decimal { digits, scale } => {
                let digits = self.integer(digits.into());
                let operands = vec![value, digits, self.integer(scale.into())];
                self.call("$cast_decimal", operands)
            }
            Kind::Double => self.call("$cast_double", vec![value]),
            Kind::Text => self.call("$cast_char", vec![value]),
            Kind::Bytes => self.call("$cast_binary", vec![value]),
        }
    }
}

/// The name of a user variable, in lower case.
fn name_of(expr: &Expr) -> Option<String> {
    match expr {
        Expr::Identifier(ident) => match ident.value.strip_prefix('@') {
            Some(name) if !name.starts_with('@') => Some(name.to_lowercase()),
            _ => None,
        },
        Expr::Nested(inner) => name_of(inner),
        _ => None,
    }
}
