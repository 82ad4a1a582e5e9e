//! Calls: special forms and functions.
//!
//! A call of an aggregate goes on in [`super::aggregate`], and one over a window in [`super::window_call`].

use std::sync::Arc;

use datafusion_common::ScalarValue;
use datafusion_expr::WindowFunctionDefinition;
use sheaf_access::arrow_field;
use sheaf_algebra::Scalar;
use sheaf_exec::functions::{as_function, scalar_function};
use sheaf_types::column_type::MAX_FRACTION_DIGITS;
use sheaf_types::error::codes;
use sheaf_types::temporal::SECOND;
use sqlparser::ast::{Expr, Function, NullTreatment};

use super::arguments::{take_arguments, unit_argument, wrong_argument_count};
use super::character_set::operands_of_bytes;
use super::scope::Found;
use super::session::takes_fraction_digits;
use super::subquery::operand_columns;
use super::window::{check_window_arguments, window_function, with_default_of_row};
use super::{Binder, Bound, unsupported};
use crate::benchmark::benchmark_function;
use crate::column_default::{column_of_default, default_expression};
use crate::digest::digest_function;
use crate::error::SqlError;
use crate::function_names::{needs_parenthesis, without_parenthesis};
use crate::gtid_wait::{WAIT_FOR_EXECUTED_GTID_SET, gtid_wait_function};
use crate::load_file::load_file_function;
use crate::sleep::sleep_function;
use crate::syntax::{aggregate_name, number_digits, object_text};
use crate::value_literal::value_literal;

/// Whether arguments of a function behind the first ones come in pairs.
fn takes_pairs(function: &str) -> bool {
    matches!(
        function,
        "json_object"
            | "json_set"
            | "json_insert"
            | "json_replace"
            | "json_array_append"
            | "json_array_insert"
    )
}

impl Binder<'_> {
    fn no_such_function(&self, name: &str) -> SqlError {
        let database = self.context.session.current_database();
        let qualified = name.rsplit_once('.').map(|(_, last)| last);
        let without_parenthesis = without_parenthesis(name);
        let is_word = without_parenthesis.is_some() || qualified.is_some_and(needs_parenthesis);
        let name = without_parenthesis.unwrap_or(name);
        let name = match database {
            Some(database) if qualified.is_none() => format!("{database}.{name}"),
            _ => name.to_string(),
        };
        if is_word {
            let message = format!(
                "FUNCTION {name} does not exist. Check the 'Function Name Parsing and Resolution' section in the \
                 Reference Manual"
            );
            return SqlError::new(codes::FUNC_INEXISTENT_NAME_COLLISION, message);
        }
        SqlError::new(
            codes::SP_DOES_NOT_EXIST,
            format!("FUNCTION {name} does not exist"),
        )
    }

    pub(super) fn function(&mut self, call: &Function) -> Bound<Scalar> {
        let written = object_text(&call.name);
        let name = written.to_ascii_lowercase();
        if let Some((table, name)) = column_of_default(call)? {
            let table = table.map(|table| table.value.as_str());
            return self.default_of(table, &name.value);
        }
        let arguments = take_arguments(&call.args)?;
        if let Some(aggregate) = aggregate_name(&name) {
            return match &call.over {
                Some(over) => self.aggregate_over(aggregate, &arguments, over, call.null_treatment),
                None => self.aggregate(aggregate, &arguments),
            };
        }
        if window_function(&name).is_some() {
            check_window_arguments(&name, &arguments.values)?;
            if call.over.is_none() {
                return Err(SqlError::parse_error(&format!("{written}()"), 1));
            }
        }
        if let Some(over) = &call.over {
            let Some(function) = window_function(&name) else {
                return Err(SqlError::parse_error("OVER", 1));
            };
            if call.null_treatment != Some(NullTreatment::IgnoreNulls)
                && let Some(case) = with_default_of_row(&name, &arguments.values, over)
            {
                return self.value(&case);
            }
            let function = WindowFunctionDefinition::WindowUDF(function);
            return self.window_call(function, &arguments.values, None, over, call.null_treatment);
        }
        if arguments.star || arguments.distinct {
            return Err(SqlError::parse_error(&format!("{written}(*)"), 1));
        }
        if let Some(special) = self.special_function(&name, &arguments.values)? {
            return Ok(special);
        }
        if name == "row" {
            return Err(operand_columns(1));
        }
        let Some(udf) = scalar_function(&name).filter(|_| !name.starts_with('$')) else {
            return Err(self.no_such_function(&written));
        };
        let count = arguments.values.len();
        if let Some(function) = as_function(&udf)
            && (count < function.least_arguments
                || count > function.most_arguments
                || count % 2 != function.least_arguments % 2 && takes_pairs(&name))
        {
            return Err(wrong_argument_count(&written));
        }
        let arguments = match name.starts_with("json_") {
            true => self.json_operands(arguments.values.iter().copied())?,
            false => {
                let mut values = self.operands(arguments.values.iter().copied())?;
                if let ("ord", [operand], [value]) = (&*name, &*arguments.values, &*values)
                    && let Some(code) = self.code_in_its_character_set(value, operand)?
                {
                    return Ok(code);
                }
                let operands = values.iter_mut().zip(&arguments.values);
                for (value, operand) in operands.take(operands_of_bytes(&name)) {
                    let taken = std::mem::replace(value, Scalar::literal(ScalarValue::Null));
                    *value = self.in_its_character_set(taken, operand)?;
                }
                values
            }
        };
        Ok(self.typing().call_function(udf, arguments)?)
    }

    /// The default of a column of the innermost block that has it.
    fn default_of(&mut self, table: Option<&str>, name: &str) -> Bound<Scalar> {
        let clause = self.block()?.clause;
        let mut scopes = self.blocks.iter().rev().map(|block| &block.scope);
        if let Some(hidden) = scopes.find_map(|scope| scope.unreadable_in(None, table, name)) {
            return Err(self.denied_column(&hidden.table, name));
        }
        let blocks = self.blocks.iter().rev();
        let mut found = blocks.filter_map(|block| {
            let found = match table {
                Some(table) => block.scope.column_of(None, table, name),
                None => block.scope.column(name),
            };
            match found {
                Found::Column(column) => Some(Arc::clone(&column.table)),
                _ => None,
            }
        });
        let Some(table) = found.next() else {
            return Err(SqlError::bad_field(name, clause.name()));
        };
        let opened = self.tables_by_name().table(&table.database, &table.table);
        let columns = opened.ok().and_then(|table| {
            let position = table.definition.column_position(name)?;
            Some(table.definition.columns[position].clone())
        });
        match columns {
            Some(column) => {
                let value = self.value(&default_expression(&column)?)?;
                // What is written alone is a number, and shown as one, or a text without the number of its label.
                match column.ty.bit_length().is_some() || column.ty.has_labels() {
                    true => Ok(self.typing().column_of(value, &arrow_field(&column))?),
                    false => Ok(value),
                }
            }
            None => unsupported("DEFAULT() of a column that is computed"),
        }
    }

    /// Functions that are special forms.
    fn special_function(&mut self, name: &str, values: &[&Expr]) -> Bound<Option<Scalar>> {
        let count = values.len();
        let expect = |fits: bool| match fits {
            true => Ok(()),
            false => Err(wrong_argument_count(name)),
        };
        if name == "last_insert_id" && count == 1 {
            let id = self.value(values[0])?;
            let id = self.call("$cast_unsigned", vec![id])?;
            let function = self.context.session.insert_id_cell().function();
            return Ok(Some(self.typing().call_function(function, vec![id])?));
        }
        if name == "last_insert_id" {
            expect(count == 0)?;
        }
        if let Some(told) = self.told_of_type(name, values)? {
            return Ok(Some(told));
        }
        if name == "json_value" {
            return self.json_value(values).map(Some);
        }
        if let Some(constant) = self.name_const(name, values)? {
            return Ok(Some(constant));
        }
        if let Some(named) = self.names_of_dates(name, values)? {
            return Ok(Some(named));
        }
        match (name, values) {
            ("weight_string", [operand, bytes, characters, flags]) => {
                let numbers = [*bytes, *characters, *flags];
                return self.weight_string_within(operand, numbers).map(Some);
            }
            ("weight_string", [operand, length @ ..]) => {
                return self
                    .weight_string(operand, length.first().copied())
                    .map(Some);
            }
            _ => {}
        }
        if name == "sleep" {
            expect(count == 1)?;
            let seconds = self.value(values[0])?;
            let seconds = self.call("$cast_double", vec![seconds])?;
            let function = sleep_function(self.context.session.cancel_flag());
            return Ok(Some(self.typing().call_function(function, vec![seconds])?));
        }
        let locks = self.context.session.user_locks();
        if let Some(lock) = locks.function(name, self.context.session.cancel_flag()) {
            expect(count == lock.arguments)?;
            let mut arguments = self.values(values.iter().copied())?;
            if let Some(seconds) = arguments.get_mut(1) {
                *seconds = self.call("$cast_signed", vec![seconds.clone()])?;
            }
            return Ok(Some(self.typing().call_function(lock.function, arguments)?));
        }
        if name == WAIT_FOR_EXECUTED_GTID_SET {
            expect((1..=2).contains(&count))?;
            let mut arguments = self.values(values.iter().copied())?;
            if let Some(seconds) = arguments.get_mut(1) {
                *seconds = self.call("$cast_double", vec![seconds.clone()])?;
            }
            let session = &self.context.session;
            let executed = session.executed_gtids();
            let function = gtid_wait_function(executed, session.cancel_flag(), count);
            return Ok(Some(self.typing().call_function(function, arguments)?));
        }
        if name == "benchmark" {
            let [times, expression] = values else {
                return Err(wrong_argument_count(name));
            };
            let times = self.value(times)?;
            let mut arguments = vec![self.call("$cast_signed", vec![times])?];
            let expression = self.value(expression)?;
            let cancel = self.context.session.cancel_flag();
            let (function, named) = benchmark_function(expression, cancel);
            arguments.extend(named);
            return Ok(Some(self.typing().call_function(function, arguments)?));
        }
        if name == "load_file" {
            expect(count == 1)?;
            let path = self.value(values[0])?;
            let function = load_file_function(self.context.session.file_reader());
            return Ok(Some(self.typing().call_function(function, vec![path])?));
        }
        if matches!(name, "statement_digest" | "statement_digest_text") {
            let [statement] = values else {
                return Err(wrong_argument_count(name));
            };
            let variable = |global, name: &str| {
                let value = self.context.session.system_variable(global, name);
                value.map(|value| value.to_string()).unwrap_or_default()
            };
            let max_bytes = variable(true, "max_digest_length").parse().unwrap_or(0);
            let function = digest_function(name, &variable(false, "sql_mode"), max_bytes);
            if let Some(function) = function {
                let statement = self.value(statement)?;
                return Ok(Some(
                    self.typing().call_function(function, vec![statement])?,
                ));
            }
        }
        if name == "uuid_short" {
            expect(count == 0)?;
            let server = self.context.session.system_variable(true, "server_id");
            let server = self.internal(&value_literal(&server.unwrap_or_default()))?;
            return Ok(Some(self.call("$uuid_short", vec![server])?));
        }
        if let Some(cipher) = self.cipher(name, values)? {
            return Ok(Some(cipher));
        }
        let fsp = values.first().and_then(|digits| number_digits(digits));
        let fsp = fsp.and_then(|digits| digits.parse::<u64>().ok());
        let digits = fsp.map(|digits| digits.min(u64::from(MAX_FRACTION_DIGITS)) as u8);
        if let Some(value) = self.session_function(name, digits) {
            expect(count == 0 || count == 1 && takes_fraction_digits(name) && fsp.is_some())?;
            return match fsp {
                Some(digits) if digits > u64::from(MAX_FRACTION_DIGITS) => Err(
                    SqlError::too_big_precision(digits, name, MAX_FRACTION_DIGITS.into()),
                ),
                _ => self.internal(&value).map(Some),
            };
        }
        let offset = i64::from(self.context.session.time_zone_offset_seconds());
        Ok(Some(match (name, values) {
            ("if", [condition, then, otherwise]) => {
                let arguments = self.choosing(|this| -> Bound<Vec<Scalar>> {
                    let condition = this.condition(condition)?;
                    Ok(vec![
                        condition,
                        this.operand(then)?,
                        this.operand(otherwise)?,
                    ])
                })?;
                let chosen = self.call("$case", arguments);
                chosen.map_err(|error| error.in_operation("case", "if"))?
            }
            ("ifnull", [_, _]) | ("coalesce", [_, ..]) => {
                let chosen =
                    self.choosing(|this| this.call_on_values("coalesce", values.iter().copied()));
                chosen.map_err(|error| error.in_operation("coalesce", name))?
            }
            ("isnull", [value]) => self.value(value)?.is_null(),
            ("get_format", [kind, place]) => self.format_of_place(kind, place)?,
            ("trim", [value]) => {
                let arguments = vec![self.value(value)?, self.text(" ")?, self.text("b")?];
                self.call("$trim", arguments)?
            }
            ("date_add" | "date_sub" | "adddate" | "subdate", [date, amount]) => {
                let marker = match name {
                    "date_add" | "adddate" => "$date_add",
                    _ => "$date_subtract",
                };
                match amount {
                    Expr::Interval(interval) => self.add_interval(marker, date, interval)?,
                    days if name.ends_with("date") => {
                        let mut arguments = self.values([*date, *days])?;
                        arguments.push(self.text("day")?);
                        self.call(marker, arguments)?
                    }
                    other => return Err(SqlError::parse_error(&other.to_string(), 1)),
                }
            }
            ("timestampadd", [unit, amount, date]) => {
                let unit = unit_of(unit)?;
                let amount = self.value(amount)?;
                let arguments = vec![self.value(date)?, amount, self.text(unit)?];
                self.call("$date_add", arguments)?
            }
            ("timestampdiff", [unit, from, to]) => {
                let unit = self.text(unit_of(unit)?)?;
                let arguments = vec![unit, self.value(from)?, self.value(to)?];
                self.call("timestampdiff", arguments)?
            }
            ("unix_timestamp", []) => {
                self.integer(self.context.session.now_utc_micros().div_euclid(SECOND))
            }
            ("unix_timestamp", [value]) => {
                let arguments = vec![self.value(value)?, self.integer(offset)];
                self.call("$unix_timestamp", arguments)?
            }
            ("from_unixtime", [seconds]) => {
                let arguments = vec![self.value(seconds)?, self.integer(offset)];
                self.call("$from_unixtime", arguments)?
            }
            ("from_unixtime", [seconds, format]) => {
                let arguments = vec![self.value(seconds)?, self.integer(offset)];
                let converted = self.call("$from_unixtime", arguments)?;
                let mut arguments = vec![converted, self.value(format)?];
                arguments.extend(self.locale_of_names()?);
                self.call("date_format", arguments)?
            }
            (
                "if" | "ifnull" | "coalesce" | "isnull" | "trim" | "date_add" | "date_sub"
                | "adddate" | "subdate" | "timestampadd" | "timestampdiff" | "unix_timestamp"
                | "from_unixtime",
                _,
            ) => {
                expect(false)?;
                return Ok(None);
            }
            _ => return Ok(None),
        }))
    }
}

fn unit_of(unit: &Expr) -> Bound<String> {
    match unit_argument(unit) {
        Some(unit) => Ok(unit),
        None => Err(SqlError::parse_error(&unit.to_string(), 1)),
    }
}
