//! Functions and aggregates over windows: each becomes a column beside those of its block.
//!
//! The same function over the same window twice is one column. [`super::window`] has the windows as they are written.

use std::sync::Arc;

use datafusion_common::ScalarValue;
use datafusion_expr::{WindowFrame, WindowFrameBound, WindowFrameUnits, WindowFunctionDefinition};
use sheaf_algebra::relation::Item;
use sheaf_algebra::scalar::WindowFunction;
use sheaf_algebra::scalar::typing::WindowCall;
use sheaf_algebra::{ColumnId, Relation, Scalar};
use sheaf_exec::aggregates::aggregate_function;
use sheaf_types::error::codes;
use sqlparser::ast::{Expr, NullTreatment, OrderByExpr, Value as Literal, WindowSpec, WindowType};

use super::arguments::Arguments;
use super::block::Clause;
use super::window::{
    MAX_WINDOWS, check_amount, derived_window, frame, group_concat_over_window,
    misplaced_window_function, nested_window_function, no_such_window, too_many_windows,
};
use super::{Binder, Bound, unsupported};
use crate::error::SqlError;
use crate::syntax::{is_position, is_same, number_digits};

/// More keys of a window become one. What the window operators find out about the order of their keys takes time that
/// grows with the third power of the number of keys: 250 of PARTITION BY took 15 s.
const MAX_KEYS: usize = 16;

impl Binder<'_> {
    /// An aggregate over a window.
    pub(super) fn aggregate_over(
        &mut self,
        name: &str,
        arguments: &Arguments<'_>,
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
        let one = Expr::Value(Literal::Number("1".into(), false).into());
        let arguments = match arguments.star {
            true if name == "count" => vec![&one],
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
    pub(super) fn window_call(
        &mut self,
        function: WindowFunctionDefinition,
        arguments: &[&Expr],
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

    /// The rows with what functions over windows make of them. Functions may share an operand, as the two that AVG is
    /// made of: what notes something is computed once a row.
    pub(super) fn over_windows(
        &mut self,
        mut relation: Relation,
        functions: Vec<(ColumnId, WindowFunction)>,
    ) -> Relation {
        let mut noting: Vec<Item> = Vec::new();
        let mut once = |operand: Scalar| {
            if !operand.notes() || operand.as_literal().is_some() {
                return operand;
            }
            let known = noting.iter().find(|item| item.value == operand);
            let column = match known {
                Some(item) => item.column,
                None => self.new_column("operand", &operand),
            };
            let taken = Scalar::column(column, Arc::clone(operand.field()));
            if known.is_none() {
                noting.push(Item {
                    column,
                    value: operand,
                });
            }
            taken
        };
        let functions = functions.into_iter();
        let functions: Vec<_> = functions
            .map(|(id, function)| (id, function.map_operands(&mut once)))
            .collect();
        if !noting.is_empty() {
            let items = self.passed_on(&relation).chain(noting).collect();
            relation = relation.project(items);
        }
        relation.window(functions)
    }

    fn window_operands(
        &mut self,
        function: WindowFunctionDefinition,
        arguments: &[&Expr],
        aggregate: Option<&str>,
        spec: &WindowSpec,
        null_treatment: Option<NullTreatment>,
    ) -> Bound<WindowCall> {
        let written = arguments;
        let arguments = self.values(arguments.iter().copied())?;
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
        let mut partition_by = self.values(&spec.partition_by)?;
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
        if partition_by.len() > MAX_KEYS {
            let directions = "a".repeat(partition_by.len());
            partition_by = vec![self.one_sort_key(&directions, partition_by)?];
        }
        if order_by.len() > MAX_KEYS {
            let letter = |(_, descends): &(Scalar, bool)| if *descends { 'd' } else { 'a' };
            let directions: String = order_by.iter().map(letter).collect();
            let keys = order_by.into_iter().map(|(key, _)| key).collect();
            order_by = vec![(self.one_sort_key(&directions, keys)?, false)];
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
