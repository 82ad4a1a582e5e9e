//! Calls: special forms and functions.
//!
//! A call of an aggregate goes on in [`super::aggregate`], and one over a window in [`super::window_call`].

use std::sync::Arc;

use datafusion_expr::WindowFunctionDefinition;
use sheaf_access::arrow_field;
use sheaf_algebra::Scalar;
use sheaf_exec::functions::{as_function, scalar_function};
use sheaf_types::ColumnType;
use sheaf_types::column_type::MAX_FRACTION_DIGITS;
use sheaf_types::error::codes;
use sheaf_types::temporal::SECOND;
use sqlparser::ast::{Expr, Function, FunctionArguments, NullTreatment};

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
        if matches!(call.args, FunctionArguments::Subquery(_)) {
            return unsupported("a subquery as an argument list");
        }
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
            true => self.json_operands(&arguments.values)?,
            false => {
                let mut values = self.operands(&arguments.values)?;
                if let ("ord", [operand], [value]) = (&*name, &*arguments.values, &*values)
                    && let Some(code) = self.code_in_its_character_set(value, operand)?
                {
                    return Ok(code);
                }
                let operands = values.iter_mut().zip(&arguments.values);
                for (value, operand) in operands.take(operands_of_bytes(&name)) {
                    *value = self.in_its_character_set(value.clone(), operand)?;
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
                match matches!(column.ty, ColumnType::Bit { .. }) || column.ty.has_labels() {
                    true => Ok(self.typing().column_of(value, &arrow_field(&column))?),
                    false => Ok(value),
                }
            }
            None => unsupported("DEFAULT() of a column that is computed"),
        }
    }

    /// Functions that are special forms.
    fn special_function(&mut self, name: &str, values: &[Expr]) -> Bound<Option<Scalar>> {
        let count = values.len();
        let expect = |fits: bool| match fits {
            true => Ok(()),
            false => Err(wrong_argument_count(name)),
        };
        if name == "last_insert_id" && count == 1 {
            let id = self.value(&values[0])?;
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
        if let ("weight_string", [operand, length @ ..]) = (name, values) {
            return self.weight_string(operand, length.first()).map(Some);
        }
        if name == "sleep" {
            expect(count == 1)?;
            let seconds = self.value(&values[0])?;
            let seconds = self.call("$cast_double", vec![seconds])?;
            let function = sleep_function(self.context.session.cancel_flag());
            return Ok(Some(self.typing().call_function(function, vec![seconds])?));
        }
        let locks = self.context.session.user_locks();
        if let Some(lock) = locks.function(name, self.context.session.cancel_flag()) {
            expect(count == lock.arguments)?;
            let mut arguments = self.values(values)?;
            if let Some(seconds) = arguments.get_mut(1) {
                *seconds = self.call("$cast_signed", vec![seconds.clone()])?;
            }
            return Ok(Some(self.typing().call_function(lock.function, arguments)?));
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
            let path = self.value(&values[0])?;
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
        let fsp = values.first().and_then(number_digits);
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
                let chosen = self.choosing(|this| this.call_on_values("coalesce", values));
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
                        let mut arguments = self.values([date, days])?;
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

    /// An aggregate of the block's groups, or of those of a query around.
    fn aggregate(&mut self, name: &str, arguments: &Arguments) -> Bound<Scalar> {
        let is_alone = self.blocks.len() == 1;
        let block = self.block()?;
        let has_aggregates = block.has_aggregates();
        if name == "any_value" && (block.in_aggregate || !has_aggregates) {
            // Of the only row that there is.
            return match arguments.values.as_slice() {
                [value] => self.value(value),
                _ => Err(wrong_argument_count(name)),
            };
        }
        // One inside of another must be of a query around.
        let is_inside = block.in_aggregate;
        if is_alone && (is_inside || !has_aggregates) {
            return Err(invalid_group_function());
        }
        if name == "grouping" {
            return self.grouping(arguments);
        }
        let in_window = block.in_window;
        let pending = block.pending_in_aggregates.len();
        block.in_aggregate = true;
        self.open_aggregates.push(OpenAggregate {
            block: self.blocks.len() - 1,
            names_own: false,
            names_outer: None,
        });
        // What it is given is computed for each row, as what is shown.
        let bound = self.with_purpose(Purpose::Shown, |this| {
            this.aggregate_arguments(name, arguments)
        });
        let open = self.open_aggregates.pop();
        let block = self.block()?;
        (block.in_aggregate, block.in_window) = (is_inside, in_window);
        let operands = bound?;
        // Of no rows, too.
        if name == "any_value" && operands[0].as_literal().is_some() {
            return Ok(operands[0].clone());
        }
        let (name, operands) = self.extreme_of_json(name, operands)?;
        let distinct = arguments.distinct && name != "$group_concat";
        // One that names columns of queries around alone belongs to the innermost query whose columns it names. If that
        // one may have no aggregates here, to the innermost between that may. Where none may, to its own.
        //
        // One that names no columns belongs to its own query, if that may have aggregates here. If not, to the
        // innermost query around that may.
        let may_have = |this: &Self, block: &usize| this.blocks[*block].has_aggregates();
        let around = |from: usize| from..self.blocks.len() - 1;
        let block = match open {
            Some(OpenAggregate {
                names_own: false,
                names_outer: Some(outer),
                ..
            }) => {
                // What GROUP BY names by its alias cannot be an aggregate.
                let block = &self.blocks[outer];
                if block.clause == Clause::GroupBy && block.in_item.is_some() {
                    return Err(invalid_group_function());
                }
                let block = Some(outer).filter(|block| may_have(self, block));
                block.or_else(|| around(outer).rev().find(|block| may_have(self, block)))
            }
            Some(OpenAggregate {
                names_own: false, ..
            }) if !has_aggregates => around(0).rev().find(|block| may_have(self, block)),
            _ => None,
        };
        if let Some(block) = block {
            if self.blocks[block].in_aggregate {
                return Err(invalid_group_function());
            }
            // Subqueries in it go with it.
            let pending = self.block()?.pending_in_aggregates.split_off(pending);
            self.blocks[block].pending_in_aggregates.extend(pending);
            // What contains it is further inside.
            if is_inside && let Some(containing) = self.open_aggregates.last_mut() {
                containing.names_own = true;
            }
            return self.aggregate_around(block, name, operands, distinct);
        }
        match has_aggregates && !is_inside {
            true => self.aggregate_of(name, operands, distinct),
            false => Err(invalid_group_function()),
        }
    }

    /// GROUPING(keys): which of them are rolled up, the last as the lowest bit. Error 3602 for what is no key.
    fn grouping(&mut self, arguments: &Arguments) -> Bound<Scalar> {
        let Some(grouping) = self.block()?.grouping.clone() else {
            return Err(invalid_group_function());
        };
        let mut bits: Option<Scalar> = None;
        for (at, argument) in arguments.values.iter().enumerate() {
            self.block()?.in_grouping = true;
            let value = self.with_purpose(Purpose::Other, |this| this.value(argument));
            self.block()?.in_grouping = false;
            let value = value?;
            let mut keys = grouping.keys.iter();
            let Some(key) = keys.position(|written| written.contains(&value)) else {
                let number = at + 1;
                let text = format!("Argument #{number} of GROUPING function is not in GROUP BY");
                return Err(SqlError::new(codes::FIELD_IN_GROUPING_NOT_GROUP_BY, text));
            };
            let bit = match &grouping.level {
                None => Scalar::literal(ScalarValue::UInt64(Some(0))),
                Some(level) => {
                    let lower = (grouping.keys.len() - 1 - key) as i64;
                    let shift = vec![level.clone(), self.integer(lower)];
                    let bit = self.call("$shift_right", shift)?;
                    self.call("$bit_and", vec![bit, self.integer(1)])?
                }
            };
            bits = Some(match bits {
                None => bit,
                Some(bits) => {
                    let shifted = self.call("$shift_left", vec![bits, self.integer(1)])?;
                    self.call("$bit_or", vec![shifted, bit])?
                }
            });
        }
        match bits {
            Some(bits) => self.call("$cast_signed", vec![bits]),
            None => Err(SqlError::parse_error(")", 1)),
        }
    }

    /// An aggregate of the groups of a query around, which gives it to the query in which it stands.
    fn aggregate_around(
        &mut self,
        block: usize,
        name: &str,
        operands: Vec<Scalar>,
        distinct: bool,
    ) -> Bound<Scalar> {
        let inner = self.blocks.split_off(block + 1);
        let aggregate = self.aggregate_of(name, operands, distinct);
        self.blocks.extend(inner);
        aggregate
    }

    fn aggregate_arguments(&mut self, name: &str, arguments: &Arguments) -> Bound<Vec<Scalar>> {
        if name == "count" && arguments.star {
            // A constant that is never NULL.
            return Ok(vec![self.integer(1)]);
        }
        if arguments.star || arguments.values.is_empty() {
            return Err(SqlError::parse_error(")", 1));
        }
        if matches!(name, "json_arrayagg" | "json_objectagg") {
            return self.json_collected(name, arguments);
        }
        let mut operands = self.operands(&arguments.values)?;
        if arguments.distinct && !matches!(name, "max" | "min") {
            operands = self.as_stored(operands)?;
        }
        if name == "$group_concat" {
            return self.group_concat(operands, arguments);
        }
        if name == "count" && arguments.distinct && operands.len() > 1 {
            operands = vec![self.call("$tuple_key", operands)?];
        }
        if operands.len() != 1 {
            return Err(SqlError::parse_error(",", 1));
        }
        if matches!(name, "max" | "min") && !is_name(&arguments.values[0]) {
            operands = self.of_no_column(operands)?;
        }
        self.computed_with(name, arguments.distinct, operands)
    }

    /// The order is asked for by a key, so that nothing needs to be sorted before the aggregate.
    fn group_concat(
        &mut self,
        mut operands: Vec<Scalar>,
        arguments: &Arguments,
    ) -> Bound<Vec<Scalar>> {
        let mut directions = String::new();
        let mut keys = Vec::new();
        for order in &arguments.order_by {
            let descends = order.options.asc == Some(false);
            directions.push(if descends { 'd' } else { 'a' });
            // A whole number says the argument of that position; any other constant orders nothing.
            let position = number_digits(&order.expr).filter(|_| is_position(&order.expr));
            keys.push(match position {
                None => self.value(&order.expr)?,
                Some(digits) => {
                    let position = digits.parse::<usize>().ok();
                    let position = position.and_then(|position| position.checked_sub(1));
                    let operand = position.and_then(|position| operands.get(position));
                    let unknown = || SqlError::bad_field(digits, "order clause");
                    operand.ok_or_else(unknown)?.clone()
                }
            });
        }
        let order_key = match keys.is_empty() {
            true => Scalar::literal(ScalarValue::Null),
            false => {
                let directions = self.text(directions)?;
                let keys = self.as_stored(keys)?;
                let arguments = std::iter::once(directions).chain(keys).collect();
                self.call("$sort_key", arguments)?
            }
        };
        let joined = match operands.len() {
            1 => operands.remove(0),
            _ => self.call("concat", operands)?,
        };
        let distinct_key = match arguments.distinct {
            true => self.call("$tuple_key", vec![joined.clone()])?,
            false => Scalar::literal(ScalarValue::Null),
        };
        let separator = arguments
            .separator
            .clone()
            .unwrap_or_else(|| ",".to_string());
        Ok(vec![
            joined,
            self.text(separator)?,
            self.internal(&group_concat_limit(self.context.session))?,
            distinct_key,
            order_key,
        ])
    }

    fn aggregate_of(&mut self, name: &str, operands: Vec<Scalar>, distinct: bool) -> Bound<Scalar> {
        let column =
            |this: &mut Self, name: &str| this.aggregate_column(name, operands.clone(), distinct);
        self.with_parts(name, column)
    }

    /// What an aggregate of MySQL's is made of, given the columns of plain ones.
    fn with_parts(
        &mut self,
        name: &str,
        mut column: impl FnMut(&mut Self, &str) -> Bound<Scalar>,
    ) -> Bound<Scalar> {
        let mut bits = |this: &mut Self, of_none: ScalarValue| {
            let arguments = vec![column(this, name)?, Scalar::literal(of_none)];
            let value = this.call("coalesce", arguments)?;
            this.call("$cast_unsigned", vec![value])
        };
        match name {
            "bit_and" => return bits(self, ScalarValue::UInt64(Some(u64::MAX))),
            "bit_or" | "bit_xor" => return bits(self, ScalarValue::Int64(Some(0))),
            _ => {}
        }
        match name {
            // The type and the rounding of a quotient are those of AVG.
            "avg" => {
                let arguments = vec![column(self, "$sum")?, column(self, "count")?];
                self.quotient("$average", arguments)
            }
            "$json_min" | "$json_max" => {
                let extreme = column(self, &name["$json_".len()..])?;
                self.call("$json_of_ordered", vec![extreme])
            }
            "json_arrayagg" => {
                let collected = column(self, "$group_concat")?;
                self.call("$json_array_of", vec![collected])
            }
            "json_objectagg" => {
                let collected = column(self, "$group_concat")?;
                self.call("$json_object_of", vec![collected])
            }
            // Squares of huge numbers leave the range of doubles.
            "stddev_pop" | "stddev" | "var_pop" | "var" => {
                let arguments = vec![column(self, name)?, self.text(format!("{name}(x)"))?];
                self.call("$finite", arguments)
            }
            _ => column(self, name),
        }
    }

    /// The column of the block's group that is this aggregate.
    fn aggregate_column(
        &mut self,
        name: &str,
        arguments: Vec<Scalar>,
        distinct: bool,
    ) -> Bound<Scalar> {
        let Some(function) = aggregate_function(name) else {
            return unsupported(name);
        };
        let call = AggregateCall {
            function,
            arguments,
            distinct,
        };
        let aggregate = self.with_purpose(Purpose::Shown, |this| this.typing().aggregate(call))?;
        let field = Arc::clone(aggregate.field());
        let mut known = self.block()?.aggregates.iter();
        if let Some((id, _)) = known.find(|(_, known)| *known == aggregate) {
            return Ok(Scalar::column(*id, field));
        }
        let id = self.columns.add_computed(name, Arc::clone(&field));
        self.block()?.aggregates.push((id, aggregate));
        Ok(Scalar::column(id, field))
    }

    /// An aggregate over a window.
    fn aggregate_over(
        &mut self,
        name: &str,
        arguments: &Arguments,
        over: &WindowType,
        null_treatment: Option<NullTreatment>,
    ) -> Bound<Scalar> {
        if name == "$group_concat" {
            return Err(group_concat_over_window());
        }
        let has_no_window = matches!(
            name,
            "grouping" | "any_value" | "json_arrayagg" | "json_objectagg"
        );
        if has_no_window || arguments.distinct {
            return unsupported(format!("{name} over a window"));
        }
        let arguments = match arguments.star {
            true if name == "count" => vec![Expr::Value(Literal::Number("1".into(), false).into())],
            true => return Err(SqlError::parse_error(")", 1)),
            false => arguments.values.clone(),
        };
        if arguments.len() != 1 {
            return Err(SqlError::parse_error(",", 1));
        }
        let written = name;
        self.with_parts(name, |this, name| {
            let Some(function) = aggregate_function(name) else {
                return unsupported(name);
            };
            let function = WindowFunctionDefinition::AggregateUDF(function);
            this.window_call(function, &arguments, Some(written), over, null_treatment)
        })
    }

    /// The column that is this function over a window.
    fn window_call(
        &mut self,
        function: WindowFunctionDefinition,
        arguments: &[Expr],
        aggregate: Option<&str>,
        over: &WindowType,
        null_treatment: Option<NullTreatment>,
    ) -> Bound<Scalar> {
        let name = function.name().to_string();
        let block = self.block()?;
        if block.in_window_specification {
            return Err(nested_window_function());
        }
        let is_allowed =
            matches!(block.clause, Clause::FieldList | Clause::OrderBy) && !block.lists_values;
        if !is_allowed || block.in_window || block.in_aggregate {
            let shown = aggregate.unwrap_or(&name).trim_start_matches('$');
            return Err(misplaced_window_function(shown));
        }
        let spec = self.window_spec(over)?;
        self.block()?.in_window = true;
        let call = self.window_operands(function, arguments, aggregate, &spec, null_treatment);
        let block = self.block()?;
        (block.in_window, block.in_window_specification) = (false, false);
        let function = self.typing().window(call?)?;
        let field = Arc::clone(function.field());
        let mut known = self.block()?.functions.iter();
        if let Some((id, _)) = known.find(|(_, known)| *known == function) {
            return Ok(Scalar::column(*id, field));
        }
        let mut known = self.block()?.functions.iter();
        if !known.any(|(_, known)| known.shares_window_of(&function)) {
            let block = self.block()?;
            block.windows_of_functions += 1;
            if block.windows_of_functions > MAX_WINDOWS {
                return Err(too_many_windows(block.windows_of_functions));
            }
        }
        let id = self.columns.add_computed(name, Arc::clone(&field));
        self.block()?.functions.push((id, function));
        Ok(Scalar::column(id, field))
    }

    fn window_operands(
        &mut self,
        function: WindowFunctionDefinition,
        arguments: &[Expr],
        aggregate: Option<&str>,
        spec: &WindowSpec,
        null_treatment: Option<NullTreatment>,
    ) -> Bound<WindowCall> {
        let written = arguments;
        let arguments = self.values(arguments)?;
        check_amount(function.name(), written, &arguments)?;
        let mut arguments = self.as_stored(arguments)?;
        if let Some(aggregate) = aggregate {
            arguments = self.computed_with(aggregate, false, arguments)?;
        }
        let (partition_by, order_by, frame) = self.window_parts(spec)?;
        Ok(WindowCall {
            function,
            arguments,
            partition_by,
            order_by,
            frame,
            null_treatment: null_treatment.map(|treatment| match treatment {
                NullTreatment::IgnoreNulls => datafusion_expr::expr::NullTreatment::IgnoreNulls,
                NullTreatment::RespectNulls => datafusion_expr::expr::NullTreatment::RespectNulls,
            }),
            distinct: false,
        })
    }

    /// Windows that no function is computed over have to be right, too.
    pub(super) fn check_unused_windows(&mut self) -> Bound<()> {
        let windows = self.block()?.windows.iter();
        let unused: Vec<_> = windows
            .filter(|window| !window.is_used)
            .map(|window| window.spec.clone())
            .collect();
        for spec in unused {
            self.window_parts(&spec)?;
            self.block()?.in_window_specification = false;
            self.take_pending()?;
        }
        Ok(())
    }

    /// What a window is divided and ordered by, and its frame.
    fn window_parts(&mut self, spec: &WindowSpec) -> Bound<WindowParts> {
        self.block()?.in_window_specification = true;
        let partition_by = self.values(&spec.partition_by)?;
        let mut order_by = self.window_order(&spec.order_by)?;
        let frame: WindowFrame = match &spec.window_frame {
            Some(written) => frame(written.clone())?.try_into()?,
            None => WindowFrame::new((!order_by.is_empty()).then_some(false)),
        };
        if frame.units == WindowFrameUnits::Range && order_by.is_empty() {
            if has_distance(&frame) {
                return Err(no_order_for_range());
            }
            // All rows are peers.
            order_by.push((Scalar::literal(ScalarValue::UInt64(Some(1))), false));
        } else if order_by.len() > 1 && !frame.can_accept_multi_orderby() {
            return match has_distance(&frame) {
                true => Err(no_order_for_range()),
                false => unsupported("RANGE over several columns"),
            };
        }
        Ok((partition_by, order_by, frame))
    }

    fn window_order(&mut self, items: &[OrderByExpr]) -> Bound<Vec<(Scalar, bool)>> {
        let items = items.iter();
        // Numbers that are no positions order nothing.
        let items =
            items.filter(|item| number_digits(&item.expr).is_none() || is_position(&item.expr));
        items
            .map(|item| {
                let value = self.value(&item.expr)?;
                let value = self.rolled_up_label(value)?;
                Ok((value, item.options.asc == Some(false)))
            })
            .collect()
    }

    /// The window, with what it takes over from one that it names.
    fn window_spec(&mut self, over: &WindowType) -> Bound<WindowSpec> {
        match over {
            WindowType::NamedWindow(name) => self.named_window(&name.value),
            WindowType::WindowSpec(spec) => match &spec.window_name {
                None => Ok(spec.clone()),
                Some(base) => {
                    let known = self.named_window(&base.value)?;
                    let spec = spec.clone();
                    Ok(derived_window(
                        spec,
                        "<unnamed window>",
                        &base.value,
                        &known,
                    )?)
                }
            },
        }
    }

    fn named_window(&mut self, name: &str) -> Bound<WindowSpec> {
        let mut windows = self.block()?.windows.iter_mut();
        match windows.find(|window| is_same(&window.name, name)) {
            Some(window) => {
                window.is_used = true;
                Ok(window.spec.clone())
            }
            None => Err(no_such_window(name)),
        }
    }
}

/// What the rows of a window are divided by, their order (descending?), and the frame.
type WindowParts = (Vec<Scalar>, Vec<(Scalar, bool)>, WindowFrame);

/// Whether a bound is some distance from the row.
fn has_distance(frame: &WindowFrame) -> bool {
    let bounds = [&frame.start_bound, &frame.end_bound];
    bounds.into_iter().any(|bound| match bound {
        WindowFrameBound::Preceding(distance) | WindowFrameBound::Following(distance) => {
            !distance.is_null()
        }
        WindowFrameBound::CurrentRow => false,
    })
}

/// 3587.
fn no_order_for_range() -> SqlError {
    SqlError::new(
        codes::WINDOW_RANGE_FRAME_ORDER_TYPE,
        "Window '<unnamed window>' with RANGE N PRECEDING/FOLLOWING frame requires exactly one deterministic ORDER BY \
         expression, of numeric or temporal type",
    )
}

fn unit_of(unit: &Expr) -> Bound<String> {
    match unit_argument(unit) {
        Some(unit) => Ok(unit),
        None => Err(SqlError::parse_error(&unit.to_string(), 1)),
    }
}
