//! Aggregates: each becomes a column of a block's group.
//!
//! The block may be one around the query in which the aggregate stands. The same aggregate twice is one column.

use std::ops::ControlFlow;
use std::sync::Arc;

use datafusion_common::ScalarValue;
use sheaf_algebra::Scalar;
use sheaf_algebra::scalar::typing::AggregateCall;
use sheaf_algebra::scalar::{Fingerprint, ScalarKind};
use sheaf_exec::aggregates::aggregate_function;
use sheaf_exec::functions::SqlType;
use sheaf_exec::functions::arithmetic::digits_of_wide_average;
use sheaf_exec::typing::Purpose;
use sheaf_types::error::codes;
use sqlparser::ast::Expr;

use super::aggregate_operands::is_name;
use super::arguments::{Arguments, invalid_group_function, wrong_argument_count};
use super::block::Clause;
use super::session::group_concat_limit;
use super::{Binder, Bound, OpenAggregate, unsupported};
use crate::error::SqlError;
use crate::syntax::{aggregate_name, is_position, number_digits};
use crate::walk::read_outside_queries;

impl Binder<'_> {
    /// An aggregate of the block's groups, or of those of a query around.
    pub(super) fn aggregate(&mut self, name: &str, arguments: &Arguments<'_>) -> Bound<Scalar> {
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
        // Of what a group is, there is one value.
        if name == "any_value"
            && let [value] = arguments.values.as_slice()
            && has_aggregate(value)
        {
            return self.value(value);
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
    fn grouping(&mut self, arguments: &Arguments<'_>) -> Bound<Scalar> {
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

    fn aggregate_arguments(&mut self, name: &str, arguments: &Arguments<'_>) -> Bound<Vec<Scalar>> {
        if name == "count" && arguments.star && arguments.values.is_empty() {
            // A constant that is never NULL.
            return Ok(vec![self.integer(1)]);
        }
        if arguments.star || arguments.values.is_empty() {
            return Err(SqlError::parse_error(")", 1));
        }
        if matches!(name, "json_arrayagg" | "json_objectagg") {
            return self.json_collected(name, arguments);
        }
        let mut operands = self.operands(arguments.values.iter().copied())?;
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
        if matches!(name, "max" | "min") && !is_name(arguments.values[0]) {
            operands = self.of_no_column(operands)?;
        }
        self.computed_with(name, arguments.distinct, operands)
    }

    /// The order is asked for by a key, so that nothing needs to be sorted before the aggregate.
    fn group_concat(
        &mut self,
        mut operands: Vec<Scalar>,
        arguments: &Arguments<'_>,
    ) -> Bound<Vec<Scalar>> {
        let mut directions = String::new();
        let mut keys = Vec::new();
        for order in arguments.order_by {
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
            false => self.one_sort_key(&directions, keys)?,
        };
        let joined = match operands.len() {
            1 => operands.remove(0),
            _ => self.call("concat", operands)?,
        };
        let distinct_key = match arguments.distinct {
            true => self.call("$tuple_key", vec![joined.clone()])?,
            false => Scalar::literal(ScalarValue::Null),
        };
        let separator = arguments.separator.unwrap_or(",");
        Ok(vec![
            joined,
            self.text(separator)?,
            self.internal(&group_concat_limit(self.context.session))?,
            distinct_key,
            order_key,
        ])
    }

    /// The operands may be megabytes: they are copied only where two columns have them.
    fn aggregate_of(
        &mut self,
        name: &str,
        mut operands: Vec<Scalar>,
        distinct: bool,
    ) -> Bound<Scalar> {
        let column = |this: &mut Self, part: &str| {
            let operands = match part {
                // AVG counts, too, what it adds up.
                "$sum" if name == "avg" => operands.clone(),
                _ => std::mem::take(&mut operands),
            };
            this.aggregate_column(part, operands, distinct)
        };
        self.with_parts(name, column)
    }

    /// What an aggregate of MySQL's is made of, given the columns of plain ones.
    pub(super) fn with_parts(
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
                let mut arguments = vec![column(self, "$sum")?, column(self, "count")?];
                let decimals = self.quotient_decimals();
                let summand = self.summand(&arguments[0])?;
                match summand.and_then(|ty| digits_of_wide_average(&ty, decimals)) {
                    Some(digits) => {
                        let told = [decimals, digits].map(|told| self.integer(told.into()));
                        arguments.extend(told);
                        self.call("$average", arguments)
                    }
                    None => self.quotient("$average", arguments),
                }
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

    /// The type of what a sum adds up, given the column that the sum is.
    fn summand(&mut self, sum: &Scalar) -> Bound<Option<SqlType>> {
        let ScalarKind::Column(sum) = *sum.kind() else {
            return Ok(None);
        };
        let block = self.block()?;
        let aggregates = block.aggregates.iter().rev();
        let mut aggregates = aggregates.map(|(id, known)| (id, known.arguments()));
        let functions = block.functions.iter().rev();
        let mut functions = functions.map(|(id, known)| (id, known.arguments()));
        let found = aggregates.find(|(id, _)| **id == sum);
        let found = found.or_else(|| functions.find(|(id, _)| **id == sum));
        Ok(found.and_then(|(_, arguments)| Some(arguments.first()?.sql_type())))
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
        let fingerprint = Fingerprint::of_all(aggregate.arguments().iter());
        let block = self.block()?;
        let is_it = |at: usize| block.aggregates[at].1 == aggregate;
        if let Some(at) = block.aggregate_places.find(fingerprint, is_it) {
            return Ok(Scalar::column(block.aggregates[at].0, field));
        }
        let id = self.columns.add_computed(name, Arc::clone(&field));
        let block = self.block()?;
        let place = block.aggregates.len();
        block.aggregate_places.add(fingerprint, place);
        block.aggregates.push((id, aggregate));
        Ok(Scalar::column(id, field))
    }
}

/// Whether an aggregate is part of an expression, outside of its subqueries.
fn has_aggregate(expression: &Expr) -> bool {
    let mut is_found = false;
    read_outside_queries(expression, &mut |expression| {
        if let Expr::Function(function) = expression
            && function.over.is_none()
        {
            let name = function.name.to_string().to_lowercase();
            is_found |= aggregate_name(name.trim_matches('`')).is_some();
        }
        ControlFlow::Continue(())
    });
    is_found
}
