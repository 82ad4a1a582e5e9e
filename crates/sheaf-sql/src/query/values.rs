//! What expressions may ask of the session, and the values of expressions outside of queries.
//!
//! The binder knows no session. It asks by a trait, [`SessionValues`], which the session answers here: whose account it
//! is, what time it is, what a variable holds.
//!
//! Expressions stand outside of queries too, as in SET and VALUES. Literals are read as they are.
//! Others become a SELECT without a table, many of them at a time, so that they mean what they mean in a query.

use std::borrow::Cow;
use std::ops::ControlFlow;
use std::sync::Arc;

use sheaf_access::CancelFlag;
use sheaf_binlog::gtid::{Gtid, GtidSet};
use sheaf_exec::functions::truncated::TruncatedTexts;
use sheaf_exec::functions::user_variables::AssignedVariables;
use sheaf_exec::functions::{EvaluationError, Length, called};
use sheaf_storage::sync::atomic::Ordering;
use sheaf_types::error::codes;
use sheaf_types::labels::number_of_text;
use sheaf_types::number::{Int256, bit_bytes};
use sheaf_types::temporal::{datetime_as_integer, time_as_integer};
use sheaf_types::text::encoding::TextEncoding;
use sheaf_types::text::hexadecimal::bytes_of;
use sheaf_types::{Collation, ColumnType, Value, column_text, number_literal, zero_filled};
use sqlparser::ast;

use crate::engine::Engine;
use crate::error::{Result, SqlError};
use crate::last_insert_id::InsertIdCell;
use crate::parser::Parsed;
use crate::parser::statement::Scope;
use crate::parser::statement_bytes::{digits_of_set, text_of_set};
use crate::query::read_plan::Purpose;
use crate::query::rows::value_at;
use crate::query::run::PlannedQuery;
use crate::query::server_files::reader_of_server_files;
use crate::session::Session;
use crate::session::result::Origin;
use crate::variables::{GTID_OWNED, SERVER_VERSION, VariableValue, Variables};
use sheaf_frontend::gtid_wait::ExecutedGtids;
use sheaf_frontend::load_file::FileReader;
use sheaf_frontend::query::SessionValues;
use sheaf_frontend::user_lock::SessionLocks;
use sheaf_frontend::walk::{ExpressionVisitor, walk_expression};

impl From<&VariableValue> for Value {
    fn from(value: &VariableValue) -> Value {
        match value {
            VariableValue::Bool(on) => Value::Int(i64::from(*on)),
            VariableValue::Integer(number) => match i64::try_from(*number) {
                Ok(number) => Value::Int(number),
                Err(_) => Value::UInt(u64::try_from(*number).unwrap_or(u64::MAX)),
            },
            VariableValue::Float(number) => Value::Double(*number),
            VariableValue::Text(text) => Value::Text(text.clone()),
        }
    }
}

impl SessionValues for Session {
    fn current_database(&self) -> Option<&str> {
        self.database.as_deref()
    }

    fn user(&self) -> String {
        format!("{}@{}", self.client.info.user, self.client.info.host)
    }

    fn current_user(&self) -> String {
        let name = self.client.account_name();
        format!("{}@{}", name.user, name.host)
    }

    fn current_role(&self) -> String {
        self.client.current_role()
    }

    fn has_parameters(&self) -> bool {
        self.prepared.runs
    }
    fn collation(&self) -> Collation {
        self.reading().collation
    }

    fn merges_derived_tables(&self) -> bool {
        self.variables.merges_derived_tables()
    }

    fn only_full_group_by(&self) -> bool {
        self.variables.sql_mode().contains("ONLY_FULL_GROUP_BY")
    }

    fn has_signed_differences(&self) -> bool {
        let mode = self.variables.sql_mode();
        mode.contains("NO_UNSIGNED_SUBTRACTION")
    }

    fn pads_characters(&self) -> bool {
        let mode = self.variables.sql_mode();
        mode.contains("PAD_CHAR_TO_FULL_LENGTH")
    }

    fn quotient_decimals(&self) -> u8 {
        self.variables.quotient_decimals()
    }

    fn uses_invisible_indexes(&self) -> bool {
        self.variables.uses_invisible_indexes()
    }

    fn refuses_zero_dates(&self) -> bool {
        self.variables.sql_mode().contains("NO_ZERO_DATE")
    }

    fn refuses_zero_in_dates(&self) -> bool {
        self.variables.sql_mode().contains("NO_ZERO_IN_DATE")
    }

    fn connection_id(&self) -> u64 {
        self.variables.pseudo_thread_id().unwrap_or(self.id())
    }

    fn last_insert_id(&self) -> u64 {
        self.outcome.last_insert_id
    }

    fn assigned_variables(&self) -> AssignedVariables {
        self.outcome.assigned_variables.clone()
    }

    fn insert_id_cell(&self) -> InsertIdCell {
        self.outcome.insert_id_cell.clone()
    }

    fn truncated_texts(&self) -> TruncatedTexts {
        self.findings.truncated_texts.clone()
    }

    fn cancel_flag(&self) -> CancelFlag {
        self.handle.cancel_flag().clone()
    }

    fn user_locks(&self) -> SessionLocks {
        self.user_locks.clone()
    }

    fn executed_gtids(&self) -> ExecutedGtids {
        gtids_of(&self.engine, self.transactions.next_gtid.owned())
    }

    fn file_reader(&self) -> FileReader {
        let most = self.variables.max_allowed_packet();
        reader_of_server_files(&self.client, &self.engine, most)
    }

    fn row_count(&self) -> i64 {
        self.outcome.row_count
    }

    fn found_rows(&self) -> u64 {
        self.outcome.found_rows
    }

    fn now_utc_micros(&self) -> i64 {
        // SET timestamp = n pins the clock, as replication and tests do; 0 lets it go.
        self.variables
            .pinned_now_micros()
            .unwrap_or(self.statement.start_micros)
    }

    fn time_zone_offset_seconds(&self) -> i32 {
        self.variables.time_zone_offset_seconds()
    }

    fn version(&self) -> String {
        SERVER_VERSION.to_string()
    }

    fn has_session_value(&self, name: &str) -> bool {
        let name = name.to_ascii_lowercase();
        // What there is not at all is another error.
        let is_known = self.variables.get(&name).is_ok();
        !is_known || Variables::check_readable(Scope::Session, &name).is_ok()
    }

    fn system_variable(&self, global: bool, name: &str) -> Option<Value> {
        let name = name.to_ascii_lowercase();
        if matches!(name.as_str(), "gtid_executed" | "gtid_purged") {
            self.engine.show_gtids();
        }
        if global {
            Variables::check_readable(Scope::Global, &name).ok()?;
            return self.engine.globals().get(&name).ok().map(Value::from);
        }
        Some(match name.as_str() {
            "timestamp" => Value::Double(self.now_utc_micros() as f64 / 1e6),
            "last_insert_id" | "identity" => Value::UInt(self.outcome.last_insert_id),
            "insert_id" => Value::UInt(self.outcome.chosen_insert_id.load(Ordering::Relaxed)),
            "pseudo_thread_id" => Value::UInt(self.connection_id()),
            GTID_OWNED => {
                let owned = self.transactions.next_gtid.owned();
                Value::Text(owned.map_or_else(String::new, |gtid| gtid.to_string()))
            }
            "warning_count" => Value::UInt(self.warnings.previous_count()),
            "error_count" => Value::UInt(self.warnings.previous_errors()),
            // Values that only the engine has are read from the engine.
            name => {
                let value = if Variables::is_global_only(name) {
                    self.engine.globals().get(name).ok().map(Value::from)
                } else {
                    self.variables.get(name).ok().map(Value::from)
                };
                match value? {
                    Value::Text(text) if text.is_empty() && name == "character_set_results" => {
                        Value::Null
                    }
                    Value::Text(text) if text == "NULL" && name == "secure_file_priv" => {
                        Value::Null
                    }
                    value => value,
                }
            }
        })
    }

    /// What the running statement has assigned comes before what was there.
    fn user_variable(&self, name: &str) -> Value {
        let assigned = &self.outcome.assigned_variables;
        let assigned = assigned.get(&name.to_lowercase());
        if let Some(value) = assigned.and_then(|value| value_at(value.as_ref(), 0).ok()) {
            return value;
        }
        self.user_variables.get(name)
    }
}

/// Variables whose value stands elsewhere in the session.
const KEPT_ELSEWHERE: [&str; 5] = [
    GTID_OWNED,
    "insert_id",
    "last_insert_id",
    "pseudo_thread_id",
    "timestamp",
];

impl Session {
    /// The variables as the session sees them, by name, as SHOW VARIABLES prints them.
    pub(crate) fn shown_variables(&self) -> Vec<(&'static str, String)> {
        let globals = self.engine.globals();
        let shown = |(name, value): (&'static str, String)| {
            let value = if KEPT_ELSEWHERE.contains(&name) {
                match self.system_variable(false, name) {
                    Some(Value::Double(number)) => format!("{number:.6}"),
                    Some(found) => found.to_string(),
                    None => value,
                }
            } else if Variables::is_global_only(name) {
                globals.get(name).map_or(value, |found| found.to_string())
            } else {
                value
            };
            (name, value)
        };
        self.variables.all(false).into_iter().map(shown).collect()
    }

    /// What was assigned by `@name := value` takes effect. A value that there is no room for is left out: its statement
    /// is over.
    pub(crate) fn take_assigned_variables(&mut self) {
        for (name, value) in self.outcome.assigned_variables.take() {
            let value = value_at(value.as_ref(), 0);
            let value = value.and_then(|value| self.user_variables.set(&name, value));
            if let Err(error) = value {
                tracing::warn!(name, %error, "a user variable was not assigned");
            }
        }
    }
}

/// The value of a literal, with its sign; `None` for everything else.
pub(crate) fn literal(expression: &ast::Expr) -> Option<Value> {
    match expression {
        ast::Expr::Value(value) => match &value.value {
            ast::Value::Number(digits, _) => number_literal(digits),
            ast::Value::SingleQuotedString(text) | ast::Value::DoubleQuotedString(text) => {
                Some(Value::Text(text.clone()))
            }
            ast::Value::HexStringLiteral(digits) => bytes_of(digits).map(Value::Bytes),
            ast::Value::Boolean(truth) => Some(Value::Int(i64::from(*truth))),
            ast::Value::Null => Some(Value::Null),
            _ => None,
        },
        ast::Expr::Prefixed { prefix, value } if digits_of_set(prefix, value).is_some() => {
            text_of_set(prefix, value).map(Value::Text)
        }
        // Parameters, and what dumps write.
        ast::Expr::Prefixed { prefix, value } if prefix.value.eq_ignore_ascii_case("_binary") => {
            match literal(value)? {
                Value::Text(text) => Some(Value::Bytes(text.into_bytes())),
                value @ Value::Bytes(_) => Some(value),
                _ => None,
            }
        }
        ast::Expr::UnaryOp {
            op: ast::UnaryOperator::Minus,
            expr,
        } => negated(literal(expr)?),
        ast::Expr::UnaryOp {
            op: ast::UnaryOperator::Plus,
            expr,
        }
        | ast::Expr::Nested(expr) => literal(expr),
        _ => None,
    }
}

/// A hexadecimal literal that is longer is no number: it is out of range even where its number would fit, and so is one
/// beyond BIGINT in a column that is not unsigned.
const MAX_NUMBER_BYTES: usize = 8;

/// A number that is out of the range of each column of numbers.
const BEYOND_ALL: &str = "1e400";

/// What a literal is in a column of this type if that is another one: the number of a hexadecimal literal, the bytes of
/// a text in another character set. `None` for other columns and other expressions.
pub(crate) fn hybrid_number(expression: &ast::Expr, ty: &ColumnType) -> Option<ast::Expr> {
    match expression {
        ast::Expr::Nested(inner) => hybrid_number(inner, ty),
        ast::Expr::Prefixed { prefix, value } if ty.takes_bytes() => digits_of_set(prefix, value)
            .map(|_| ast::Expr::Prefixed {
                prefix: ast::Ident::new("_binary"),
                value: value.clone(),
            }),
        ast::Expr::Value(value) if ty.is_number() => match &value.value {
            ast::Value::HexStringLiteral(digits) => {
                let bytes = digits.len().div_ceil(2);
                let greatest = match ty.is_unsigned() {
                    true => u64::MAX,
                    false => i64::MAX.unsigned_abs(),
                };
                let number = match bytes {
                    0 => Some(0),
                    1..=MAX_NUMBER_BYTES => u64::from_str_radix(digits, 16).ok(),
                    _ => None,
                };
                Some(ast::Expr::value(
                    match number.filter(|number| *number <= greatest) {
                        Some(number) => ast::Value::Number(number.to_string(), false),
                        None => ast::Value::SingleQuotedString(BEYOND_ALL.to_owned()),
                    },
                ))
            }
            _ => None,
        },
        _ => None,
    }
}

/// A point in time, or a time, has digits of a second that only the origin of its value tells.
fn is_moment(value: &Value) -> bool {
    matches!(
        value,
        Value::Time(_) | Value::DateTime(_) | Value::Timestamp(_)
    )
}

/// The text of such a value, with as many digits as its expression has. `None` for other values.
fn text_of_moment(value: &Value, origin: &Origin) -> Option<Value> {
    let fsp = origin.decimals;
    let text = || column_text(&ColumnType::datetime(fsp), value);
    is_moment(value).then(|| Value::Text(text()))
}

/// The value of an expression as a column of this type takes it:
///
/// - A point in time does not know how many digits of a second its expression has. A text shows them.
/// - An ENUM or SET is its label to texts and dates, and the label's number to numbers.
/// - A string shows all digits of a FLOAT, unless it is a TEXT or BLOB. These hold what a client is shown of a column.
/// - A text of another character set is the bytes that it has there, where the column is of bytes or a BIT.
/// - A BIT and a YEAR take the whole number of a column of times or moments. Of any other expression of them a BIT
///   takes the text, and a YEAR the year.
/// - What a column of the same kind holds is taken over without a check: the FLOAT of a FLOAT(M,D), and the ENUM of 0.
pub(crate) fn shown_in<'v>(value: &'v Value, origin: &Origin, ty: &ColumnType) -> Cow<'v, Value> {
    let is_string = ty.is_character() || ty.is_binary();
    let is_bit = ty.bit_length().is_some();
    let takes_number = is_bit || ty.is_year();
    if let (Value::Text(text), Some(declared)) = (value, &origin.declared)
        && (ty.is_binary() || is_bit && !declared.has_labels())
        && let Some(collation) = declared.collation()
        && collation.encoding() != TextEncoding::Utf8
    {
        let bytes = collation.encoding().encode(text.as_bytes());
        return Cow::Owned(Value::Bytes(bytes.into_owned()));
    }
    match (value, &origin.declared) {
        (Value::Time(time), _) if takes_number && origin.is_column => {
            Cow::Owned(Value::Int(time_as_integer(*time)))
        }
        (Value::DateTime(moment) | Value::Timestamp(moment), _)
            if takes_number && origin.is_column =>
        {
            Cow::Owned(Value::Int(datetime_as_integer(*moment)))
        }
        (value, _) if is_string && is_moment(value) => match text_of_moment(value, origin) {
            Some(text) => Cow::Owned(text),
            None => Cow::Borrowed(value),
        },
        (value, Some(declared)) if origin.is_column && ty.is_long() => {
            shown_as_string(declared, value)
        }
        (Value::Float(_), _) if ty.is_long() => Cow::Borrowed(value),
        (Value::Float(float), _) if is_string || ty.is_single() && !is_copied(origin, ty) => {
            Cow::Owned(Value::Double(f64::from(*float)))
        }
        (Value::Text(label), Some(declared))
            if ty.enum_labels().is_some()
                && is_copied(origin, ty)
                && label.is_empty()
                && number_of_text(declared, label) == 0 =>
        {
            Cow::Owned(Value::Enum(0))
        }
        (Value::Text(label), Some(declared))
            if declared.has_labels() && (ty.is_number() || is_bit) =>
        {
            Cow::Owned(Value::UInt(number_of_text(declared, label)))
        }
        _ => Cow::Borrowed(value),
    }
}

/// Whether a value is that of a column, which a column of this type takes over: a FLOAT of as many decimals, an ENUM.
fn is_copied(origin: &Origin, ty: &ColumnType) -> bool {
    let decimals = |ty: &ColumnType| ty.float_digits().map(|digits| digits.scale);
    let declared = origin.declared.as_ref().filter(|_| origin.is_column);
    declared.is_some_and(|declared| {
        declared.is_same_kind(ty)
            && (ty.enum_labels().is_some()
                || ty.is_single()
                    && decimals(declared) == decimals(ty)
                    && declared.is_unsigned() == ty.is_unsigned())
    })
}

/// The value of a column of this type as the string that a client is shown.
pub(crate) fn shown_as_string<'v>(declared: &ColumnType, value: &'v Value) -> Cow<'v, Value> {
    match (value, declared.bit_length(), declared.filled_width()) {
        (Value::UInt(bits), Some(length), _) => Cow::Owned(Value::Bytes(bit_bytes(*bits, length))),
        (Value::Float(_) | Value::Double(_), ..) if declared.float_digits().is_some() => {
            Cow::Owned(Value::Text(column_text(declared, value)))
        }
        (number, _, Some(width)) if number.is_number() => {
            let text = column_text(declared, number);
            Cow::Owned(Value::Text(zero_filled(&text, width.into())))
        }
        _ => Cow::Borrowed(value),
    }
}

/// What a minus in front of a literal makes of it; `None` if it is no number.
pub(crate) fn negated(number: Value) -> Option<Value> {
    match number {
        Value::Int(number) => number.checked_neg().map(Value::Int),
        Value::UInt(number) if number == i64::MIN.unsigned_abs() => Some(Value::Int(i64::MIN)),
        Value::UInt(number) => Some(Value::Decimal {
            unscaled: -i128::from(number),
            scale: 0,
        }),
        Value::Decimal { unscaled, scale } => Some(Value::Decimal {
            unscaled: -unscaled,
            scale,
        }),
        Value::WideDecimal { unscaled, scale } => Some(Value::WideDecimal {
            unscaled: Int256::from(unscaled).negated().to_wide()?,
            scale,
        }),
        Value::Double(number) => Some(Value::Double(-number)),
        _ => None,
    }
}

/// Expressions that are planned as one query. A plan takes about eight kilobytes for each, and lists of rows have tens
/// of thousands. What is folded stands in it several times, with up to 64 KiB each.
const EXPRESSIONS_OF_A_QUERY: usize = 64;
/// The same where values may be long: the query has its row, and its values are copied from there.
const LONG_EXPRESSIONS_OF_A_QUERY: usize = 4;
/// As many characters, or as many copies of a text, may be long.
const LONG_COUNT: i64 = 1_000;
/// Values of so many bytes are long.
const LONG_BYTES: usize = 16 << 10;

impl Session {
    /// The value of an expression without columns.
    pub(crate) fn evaluate(&mut self, expression: Parsed<'_, &ast::Expr>) -> Result<Value> {
        let expressions = expression.with(vec![expression.ast.clone()]);
        let mut values = self.evaluate_all(expressions, &[])?;
        values
            .pop()
            .ok_or_else(|| SqlError::unknown("an expression without a value"))
    }

    /// What a user variable is set to. It keeps the digits of quotients that are not shown, as `:=` does.
    pub(crate) fn evaluate_variable(
        &mut self,
        expression: Parsed<'_, &ast::Expr>,
    ) -> Result<Value> {
        if let Some(value) = self.simple_value(expression.ast) {
            return Ok(value);
        }
        let expressions = Parsed::new(vec![expression.ast.clone()], expression.text);
        let mut row = self.evaluate_by_query(expressions, Purpose::Variable)?;
        match row.pop() {
            Some((value, origin)) => Ok(text_of_moment(&value, &origin).unwrap_or(value)),
            None => Err(SqlError::unknown("a variable without a value")),
        }
    }

    /// The values of expressions without columns, in few queries for those that are not simple. `types`: those of the
    /// columns that take them, if columns do. A list of rows has tens of thousands of expressions, of some kilobytes
    /// each. So they are not kept longer than until they have their values.
    pub(crate) fn evaluate_all(
        &mut self,
        expressions: Parsed<'_, Vec<ast::Expr>>,
        types: &[&ColumnType],
    ) -> Result<Vec<Value>> {
        let Parsed {
            ast: mut expressions,
            text,
        } = expressions;
        // Subqueries of one statement see the same rows, whatever the level of isolation: they are one query.
        let at_a_time = match expressions.iter_mut().any(has_subquery) {
            true => usize::MAX,
            false => self.expressions_at_a_time(&mut expressions),
        };
        let mut values: Vec<Option<Value>> = Vec::with_capacity(expressions.len());
        for expression in &expressions {
            // A user variable may be long.
            if !sheaf_memory::may_go_on() {
                self.handle.cancel_flag().check()?;
            }
            let value = self.simple_value(expression);
            values.push(match (value, types.get(values.len())) {
                (Some(value), Some(ty)) => Some(self.in_connection_bytes(value, ty)),
                (value, _) => value,
            });
        }
        let mut rest = expressions.into_iter().enumerate();
        let mut slot = 0;
        loop {
            let others = rest.by_ref().filter(|(at, _)| values[*at].is_none());
            let others = others.map(|(_, expression)| expression);
            let some: Vec<ast::Expr> = others.take(at_a_time).collect();
            if some.is_empty() {
                break;
            }
            for (value, origin) in
                self.evaluate_by_query(Parsed::new(some, text), Purpose::Values)?
            {
                while values.get(slot).is_some_and(Option::is_some) {
                    slot += 1;
                }
                if !sheaf_memory::may_go_on() {
                    self.handle.cancel_flag().check()?;
                }
                if let Some(place) = values.get_mut(slot) {
                    *place = Some(match types.get(slot) {
                        Some(ty) => shown_in(&value, &origin, ty).into_owned(),
                        None => value,
                    });
                }
            }
        }
        Ok(values.into_iter().map(Option::unwrap_or_default).collect())
    }

    fn expressions_at_a_time(&self, expressions: &mut [ast::Expr]) -> usize {
        let are_several = expressions.len() > LONG_EXPRESSIONS_OF_A_QUERY;
        let mut all = expressions.iter_mut();
        match are_several && all.any(|expression| self.may_be_long(expression)) {
            true => LONG_EXPRESSIONS_OF_A_QUERY,
            false => EXPRESSIONS_OF_A_QUERY,
        }
    }

    /// Whether a value may be long though it is not written so: it is made of a long user variable, or a function makes
    /// it as long as it is told.
    pub(crate) fn may_be_long(&self, expression: &mut ast::Expr) -> bool {
        struct Found<'s> {
            session: &'s Session,
            is_long: bool,
        }
        impl ExpressionVisitor for Found<'_> {
            fn leave_expression(&mut self, expression: &mut ast::Expr) -> ControlFlow<()> {
                self.is_long |= match expression {
                    ast::Expr::Function(call) => makes_as_long_as_told(call),
                    ast::Expr::Identifier(name) if name.quote_style.is_none() => {
                        let variable = name.value.strip_prefix('@');
                        variable.is_some_and(|name| self.session.is_long_variable(name))
                    }
                    _ => false,
                };
                match self.is_long {
                    true => ControlFlow::Break(()),
                    false => ControlFlow::Continue(()),
                }
            }
        }
        if matches!(expression, ast::Expr::Value(_)) {
            return false;
        }
        let mut found = Found {
            session: self,
            is_long: false,
        };
        walk_expression(expression, &mut found);
        found.is_long
    }

    fn is_long_variable(&self, name: &str) -> bool {
        match self.user_variable(name) {
            Value::Text(text) => text.len() >= LONG_BYTES,
            Value::Bytes(bytes) | Value::Json(bytes) => bytes.len() >= LONG_BYTES,
            _ => false,
        }
    }

    /// What a column of this type takes of a string of the statement: its bytes in `character_set_connection`, if that
    /// is a column of bytes or a BIT.
    fn in_connection_bytes(&self, value: Value, ty: &ColumnType) -> Value {
        match value {
            Value::Text(text) if ty.takes_bytes() && self.has_other_bytes() => {
                let encoding = self.variables.literal_collation().encoding();
                Value::Bytes(encoding.encode(text.as_bytes()).into_owned())
            }
            value => value,
        }
    }

    /// Whether a string of the statement has other bytes than those of UTF-8.
    pub(crate) fn has_other_bytes(&self) -> bool {
        self.variables.literal_collation().encoding() != TextEncoding::Utf8
    }

    /// Literals, variables, and arithmetic on whole numbers: what SET and VALUES consist of.
    fn simple_value(&self, expression: &ast::Expr) -> Option<Value> {
        if let Some(value) = literal(expression) {
            return Some(value);
        }
        match expression {
            ast::Expr::Nested(inner) => self.simple_value(inner),
            ast::Expr::Identifier(name) if name.quote_style.is_none() => {
                if let Some(name) = name.value.strip_prefix("@@") {
                    self.system_variable(false, name)
                } else {
                    name.value
                        .strip_prefix('@')
                        .filter(|name| !name.is_empty())
                        .map(|name| self.user_variable(name))
                }
            }
            ast::Expr::CompoundIdentifier(parts) => match parts.as_slice() {
                [scope, name] if scope.value.eq_ignore_ascii_case("@@global") => {
                    self.system_variable(true, &name.value)
                }
                [scope, name]
                    if (scope.value.eq_ignore_ascii_case("@@session")
                        || scope.value.eq_ignore_ascii_case("@@local"))
                        && self.has_session_value(&name.value) =>
                {
                    self.system_variable(false, &name.value)
                }
                _ => None,
            },
            ast::Expr::BinaryOp { left, op, right } => {
                let (Value::Int(left), Value::Int(right)) =
                    (self.simple_value(left)?, self.simple_value(right)?)
                else {
                    return None;
                };
                match op {
                    ast::BinaryOperator::Plus => left.checked_add(right),
                    ast::BinaryOperator::Minus => left.checked_sub(right),
                    ast::BinaryOperator::Multiply => left.checked_mul(right),
                    _ => None,
                }
                .map(Value::Int)
            }
            _ => None,
        }
    }

    /// SELECT expression, … Each value comes with the digits after the point that its expression has.
    fn evaluate_by_query(
        &mut self,
        expressions: Parsed<'_, Vec<ast::Expr>>,
        purpose: Purpose,
    ) -> Result<Vec<(Value, Origin)>> {
        let Parsed {
            ast: expressions,
            text,
        } = expressions;
        let count = expressions.len();
        let query = select_of(expressions)?;
        let query = Parsed::new(query.as_ref(), text);
        self.read_for_change(query, purpose, |session, planned, _| {
            session.only_row(planned, count)
        })
    }

    /// The values of the row that a query delivers; NULLs, so many, if there is none.
    fn only_row(&mut self, planned: PlannedQuery, count: usize) -> Result<Vec<(Value, Origin)>> {
        let origins = planned.origins();
        let cancel = self.handle.cancel_flag().clone();
        let mut row = None;
        self.run_planned(planned, |batch| {
            for position in 0..batch.num_rows() {
                if row.is_some() {
                    return Err(SqlError::new(
                        codes::SUBQUERY_NO_1_ROW,
                        "Subquery returns more than 1 row",
                    ));
                }
                let mut values = Vec::with_capacity(batch.num_columns());
                for column in batch.columns() {
                    // The batch has them as well.
                    if !sheaf_memory::may_go_on() {
                        cancel.check()?;
                    }
                    values.push(value_at(column.as_ref(), position)?);
                }
                row = Some(values);
            }
            Ok(())
        })?;
        let row = row.unwrap_or_else(|| vec![Value::Null; count]);
        Ok(row.into_iter().zip(origins).collect())
    }
}

/// What was executed, for a session that owns this GTID. A plan that is kept does not keep the engine.
fn gtids_of(engine: &Arc<Engine>, owned: Option<Gtid>) -> ExecutedGtids {
    let engine = Arc::downgrade(engine);
    Arc::new(move |text| {
        let set = text
            .parse::<GtidSet>()
            .map_err(|error| EvaluationError::new(error.code(), error.to_string()))?;
        if let Some(gtid) = owned.filter(|gtid| set.contains(*gtid)) {
            return Err(EvaluationError::new(
                codes::WAITING_FOR_OWNED_GTID,
                format!(
                    "The client holds ownership of the GTID {gtid}. Therefore, WAIT_FOR_EXECUTED_GTID_SET cannot wait for \
                     this GTID."
                ),
            ));
        }
        let engine = engine.upgrade();
        Ok(engine.is_some_and(|engine| set.is_subset(&engine.executed_gtids())))
    })
}

/// Whether a function makes values as long as an argument says, or as a file is, and this is not little.
fn makes_as_long_as_told(call: &ast::Function) -> bool {
    let name = call.name.to_string().to_ascii_lowercase();
    if name == "load_file" {
        return true;
    }
    let told = match called(&name).map(|row| row.length) {
        Some(Length::FilledTo(operand) | Length::Repeated(operand)) => operand,
        _ => return false,
    };
    let ast::FunctionArguments::List(list) = &call.args else {
        return true;
    };
    let length = list.args.get(told).and_then(|argument| match argument {
        ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Expr(length)) => literal(length),
        _ => None,
    });
    match length {
        Some(Value::Int(length)) => length >= LONG_COUNT,
        _ => true,
    }
}

/// Whether a query is somewhere in an expression.
pub(crate) fn has_subquery(expression: &mut ast::Expr) -> bool {
    struct Found(bool);
    impl ExpressionVisitor for Found {
        fn enter_query(&mut self, _query: &ast::Query) {
            self.0 = true;
        }

        fn leave_expression(&mut self, _expression: &mut ast::Expr) -> ControlFlow<()> {
            ControlFlow::Continue(())
        }
    }
    let mut found = Found(false);
    walk_expression(expression, &mut found);
    found.0
}

/// The text that the queries of [`select_of`] stand in, as far as one of their items is concerned.
pub(crate) const ONE_ITEM: &str = "SELECT 1";

/// The query that selects these expressions from no table.
pub(crate) fn select_of(expressions: Vec<ast::Expr>) -> Result<Box<ast::Query>> {
    let items = expressions
        .into_iter()
        .enumerate()
        .map(|(n, expr)| ast::SelectItem::ExprWithAlias {
            expr,
            // No column has such a name, so ORDER BY finds columns behind it.
            alias: ast::Ident::with_quote('`', format!("value {n} ")),
        })
        .collect();
    let crate::parser::Statement::Query(mut query) =
        crate::parser::parse_statement(ONE_ITEM, &crate::dialect::SheafDialect::default())?
    else {
        return Err(SqlError::unknown("SELECT 1 is no query"));
    };
    if let ast::SetExpr::Select(select) = query.body.as_mut() {
        select.projection = items;
    }
    Ok(query)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialect::SheafDialect;

    fn literal_of(text: &str) -> Option<Value> {
        literal(&crate::parser::parse_expression(text, &SheafDialect::default()).expect(text))
    }

    #[test]
    fn literals_are_typed_as_mysql_types_them() {
        assert_eq!(literal_of("-42"), Some(Value::Int(-42)));
        assert_eq!(
            literal_of("18446744073709551615"),
            Some(Value::UInt(u64::MAX))
        );
        assert_eq!(
            literal_of("-9223372036854775808"),
            Some(Value::Int(i64::MIN))
        );
        assert_eq!(
            literal_of("1.50"),
            Some(Value::Decimal {
                unscaled: 150,
                scale: 2
            })
        );
        assert_eq!(literal_of("1e3"), Some(Value::Double(1000.0)));
        assert_eq!(literal_of("'it''s'"), Some(Value::Text("it's".into())));
        assert_eq!(literal_of("X'0aff'"), Some(Value::Bytes(vec![10, 255])));
        assert_eq!(literal_of("NULL"), Some(Value::Null));
        assert_eq!(literal_of("NOW()"), None);
    }
}
