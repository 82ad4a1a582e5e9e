//! Function calls: names and argument counts are checked, special forms written out, aggregates renamed.
//!
//! A call is one of four things, which are tried in this order:
//!
//! | what | becomes |
//! |---|---|
//! | an aggregate | the aggregate of that name here, in MySQL's type: AVG is `$average($sum(x), count(x))` |
//! | a function with OVER | the window function, whose frame's intervals are in units that SqlToRel reads |
//! | a special form, such as SLEEP or a function with a unit of time | calls of internal functions |
//! | any other function | a call of the scalar function of that name |
//!
//! Unknown names (1305), wrong numbers of arguments (1582) and aggregates where none may stand (1111) are errors here,
//! because the name as it was written is known only here.

use sqlparser::ast::{
    DateTimeField, DuplicateTreatment, Expr, Function, FunctionArg, FunctionArgExpr,
    FunctionArgumentClause, FunctionArguments, Interval, OrderByExpr, Value as Literal,
    WindowFrame, WindowFrameBound, WindowFrameUnits, WindowSpec, WindowType,
};

use sheaf_exec::functions::{as_function, scalar_function};
use sheaf_types::error::codes;

use super::Lowering;
use super::build::{argument, call, function, null, number, text};
use super::column_default::column_of_default;
use super::expression::{Lowered, object_text};
use super::grouped::{
    check_window_arguments, group_concat_over_window, has_window_function,
    misplaced_window_function, nested_window_function, with_default_of_row,
};
use super::scope::{derived_window, no_such_window};
use crate::context::window_function;
use crate::error::{Result, SqlError};
use crate::last_insert_id::SET_LAST_INSERT_ID;
use crate::sleep::SLEEP;

/// Aggregates of MySQL by their names here.
pub fn aggregate_name(name: &str) -> Option<&'static str> {
    Some(match name {
        "count" => "count",
        "sum" => "$sum",
        "avg" => "avg",
        "min" => "min",
        "max" => "max",
        "any_value" => "any_value",
        "grouping" => "grouping",
        "group_concat" => "$group_concat",
        "std" | "stddev" | "stddev_pop" => "stddev_pop",
        "stddev_samp" => "stddev",
        "variance" | "var_pop" => "var_pop",
        "var_samp" => "var",
        "bit_and" => "bit_and",
        "bit_or" => "bit_or",
        "bit_xor" => "bit_xor",
        _ => return None,
    })
}

/// 1582.
pub fn wrong_argument_count(name: &str) -> SqlError {
    SqlError::new(
        codes::WRONG_PARAMCOUNT_TO_NATIVE_FCT,
        format!("Incorrect parameter count in the call to native function '{name}'"),
    )
}

/// 1111.
pub fn invalid_group_function() -> SqlError {
    SqlError::new(
        codes::INVALID_GROUP_FUNC_USE,
        "Invalid use of group function",
    )
}

/// A call taken apart.
pub struct Arguments {
    pub values: Vec<Expr>,
    pub star: bool,
    pub distinct: bool,
    pub order_by: Vec<OrderByExpr>,
    pub separator: Option<String>,
}

pub fn take_arguments(args: FunctionArguments) -> Result<Arguments> {
    let mut taken = Arguments {
        values: vec![],
        star: false,
        distinct: false,
        order_by: vec![],
        separator: None,
    };
    let list = match args {
        FunctionArguments::None => return Ok(taken),
        FunctionArguments::Subquery(query) => {
            taken.values.push(Expr::Subquery(query));
            return Ok(taken);
        }
        FunctionArguments::List(list) => list,
    };
    taken.distinct = list.duplicate_treatment == Some(DuplicateTreatment::Distinct);
    for arg in list.args {
        match arg {
            FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => taken.values.push(expr),
            FunctionArg::Unnamed(FunctionArgExpr::Wildcard) => taken.star = true,
            other => return Err(SqlError::not_supported_yet(other)),
        }
    }
    for clause in list.clauses {
        match clause {
            FunctionArgumentClause::OrderBy(order_by) => taken.order_by = order_by,
            FunctionArgumentClause::Separator(value) => {
                taken.separator = match value.value {
                    Literal::SingleQuotedString(text) | Literal::DoubleQuotedString(text) => {
                        Some(text)
                    }
                    other => return Err(SqlError::not_supported_yet(other)),
                }
            }
            FunctionArgumentClause::IgnoreOrRespectNulls(_) => {}
            other => return Err(SqlError::not_supported_yet(other)),
        }
    }
    Ok(taken)
}

/// A unit of time given as an argument, as in TIMESTAMPDIFF(MONTH, a, b).
pub fn unit_argument(expr: &Expr) -> Option<String> {
    match expr {
        Expr::Identifier(ident) => Some(ident.value.to_ascii_lowercase()),
        _ => None,
    }
}

/// A frame whose intervals SqlToRel can read: `INTERVAL 1 QUARTER` becomes `INTERVAL '3' MONTH`.
///
/// # Errors
/// 3584, 3585 and 3586 for bounds that make no frame, 1064 for offsets that MySQL's grammar does not have, 3596.
pub fn frame(mut frame: WindowFrame) -> Result<WindowFrame> {
    check_bounds(&frame)?;
    let bounds = std::iter::once(&mut frame.start_bound).chain(&mut frame.end_bound);
    for bound in bounds {
        if let WindowFrameBound::Preceding(Some(offset)) | WindowFrameBound::Following(Some(offset)) =
            bound
            && let Expr::Interval(interval) = offset.as_mut()
        {
            if frame.units != WindowFrameUnits::Range {
                let text =
                    "Window '<unnamed window>': INTERVAL can only be used with RANGE frames.";
                return Err(SqlError::new(codes::WINDOW_ROWS_INTERVAL_USE, text));
            }
            *interval = frame_interval(interval)?;
        }
    }
    Ok(frame)
}

const FRAME_ILLEGAL: &str =
    "Window '<unnamed window>': frame start or end is negative, NULL or of non-integral type";

fn check_bounds(frame: &WindowFrame) -> Result<()> {
    let illegal = || Err(SqlError::new(codes::WINDOW_FRAME_ILLEGAL, FRAME_ILLEGAL));
    let end = frame.end_bound.as_ref();
    if matches!(frame.start_bound, WindowFrameBound::Following(None)) {
        let text = "Window '<unnamed window>': frame start cannot be UNBOUNDED FOLLOWING.";
        return Err(SqlError::new(codes::WINDOW_FRAME_START_ILLEGAL, text));
    }
    if matches!(end, Some(WindowFrameBound::Preceding(None))) {
        let text = "Window '<unnamed window>': frame end cannot be UNBOUNDED PRECEDING.";
        return Err(SqlError::new(codes::WINDOW_FRAME_END_ILLEGAL, text));
    }
    for bound in std::iter::once(&frame.start_bound).chain(end) {
        let (WindowFrameBound::Preceding(Some(offset)) | WindowFrameBound::Following(Some(offset))) =
            bound
        else {
            continue;
        };
        match offset.as_ref() {
            Expr::Value(value) => match &value.value {
                Literal::Number(digits, _) => {
                    let is_whole = digits.bytes().all(|byte| byte.is_ascii_digit());
                    if frame.units != WindowFrameUnits::Range && !is_whole {
                        return illegal();
                    }
                }
                Literal::Placeholder(_) => {}
                other => return Err(SqlError::parse_error(&other.to_string(), 1)),
            },
            Expr::UnaryOp { .. } => return Err(SqlError::parse_error(&offset.to_string(), 1)),
            _ => {}
        }
    }
    // How far a bound lies behind the first row.
    let place = |bound: &WindowFrameBound| match bound {
        WindowFrameBound::Preceding(_) => 0,
        WindowFrameBound::CurrentRow => 1,
        WindowFrameBound::Following(_) => 2,
    };
    let end = end.map_or(1, place);
    match place(&frame.start_bound) > end {
        true => illegal(),
        false => Ok(()),
    }
}

fn frame_interval(interval: &Interval) -> Result<Interval> {
    let unsupported = || SqlError::not_supported_yet(format!("a frame of RANGE {interval}"));
    let Expr::Value(value) = interval.value.as_ref() else {
        return Err(unsupported());
    };
    let (Literal::Number(amount, _)
    | Literal::SingleQuotedString(amount)
    | Literal::DoubleQuotedString(amount)) = &value.value
    else {
        return Err(unsupported());
    };
    let amount = amount.trim().parse::<i64>().map_err(|_| unsupported())?;
    if amount < 0 {
        return Err(SqlError::new(codes::WINDOW_FRAME_ILLEGAL, FRAME_ILLEGAL));
    }
    let (amount, unit) = match &interval.leading_field {
        Some(DateTimeField::Quarter) => (amount.saturating_mul(3), DateTimeField::Month),
        Some(DateTimeField::Week(_)) => (amount.saturating_mul(7), DateTimeField::Day),
        Some(
            unit @ (DateTimeField::Year
            | DateTimeField::Month
            | DateTimeField::Day
            | DateTimeField::Hour
            | DateTimeField::Minute
            | DateTimeField::Second
            | DateTimeField::Microsecond),
        ) => (amount, unit.clone()),
        _ => return Err(unsupported()),
    };
    Ok(Interval {
        value: Box::new(text(amount.to_string())),
        leading_field: Some(unit),
        ..interval.clone()
    })
}

impl Lowering<'_> {
    fn no_such_function(&self, name: &str) -> SqlError {
        let database = self.context.session.current_database();
        let name = match database {
            Some(database) => format!("{database}.{name}"),
            None => name.to_string(),
        };
        SqlError::new(
            codes::SP_DOES_NOT_EXIST,
            format!("FUNCTION {name} does not exist"),
        )
    }

    /// Error 3593 for a window function where there is none.
    fn check_window_function(&self, name: &str) -> Result<()> {
        match self.windows_allowed {
            true => Ok(()),
            false => Err(misplaced_window_function(name)),
        }
    }

    /// Operands of aggregates and window functions have no window functions.
    fn without_windows<T>(&mut self, inner: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        let allowed = std::mem::replace(&mut self.windows_allowed, false);
        let result = inner(self);
        self.windows_allowed = allowed;
        result
    }

    pub fn function(&mut self, call: Function) -> Result<Lowered> {
        if let Some((table, name)) = column_of_default(&call)? {
            let table = table.map(|table| table.value.as_str());
            let default = self.default_of(table, &name.value)?;
            // In ORDER BY a number alone would be a position.
            let default = super::build::call("$again", vec![self.value(default)?]);
            return Ok(Lowered::Value(default));
        }
        let written = object_text(&call.name);
        let name = written.to_ascii_lowercase();
        let over = call.over;
        let mut arguments = take_arguments(call.args)?;
        if let Some(aggregate) = aggregate_name(&name) {
            if over.is_some() {
                self.check_window_function(&name)?;
            }
            if aggregate == "$group_concat" && over.is_some() {
                return Err(group_concat_over_window());
            }
            let over = over.map(|over| self.window(over)).transpose()?;
            let lowered = self.without_windows(|this| this.aggregate(aggregate, arguments, over));
            return Ok(Lowered::Value(lowered?));
        }
        if window_function(&name).is_some() {
            check_window_arguments(&name, &arguments.values)?;
            if over.is_none() {
                return Err(SqlError::parse_error(&format!("{written}()"), 1));
            }
        }
        if let Some(over) = over {
            if window_function(&name).is_none() {
                return Err(SqlError::parse_error("OVER", 1));
            }
            self.check_window_function(&name)?;
            if call.null_treatment.is_none()
                && let Some(case) = with_default_of_row(&name, &arguments.values, &over)
            {
                return Ok(Lowered::Value(self.value(case)?));
            }
            let over = self.window(over)?;
            let args = self.without_windows(|this| this.values(arguments.values))?;
            let mut windowed = function(&name, args.into_iter().map(argument).collect());
            windowed.over = Some(over);
            windowed.null_treatment = call.null_treatment;
            return Ok(Lowered::Value(Expr::Function(windowed)));
        }
        if arguments.star || arguments.distinct {
            return Err(SqlError::parse_error(&format!("{written}(*)"), 1));
        }
        if let Some(special) = self.special_function(&name, &mut arguments.values)? {
            return Ok(special);
        }
        let Some(udf) = scalar_function(&name).filter(|_| !name.starts_with('$')) else {
            return Err(self.no_such_function(&written));
        };
        let count = arguments.values.len();
        if let Some(function) = as_function(&udf)
            && (count < function.least_arguments || count > function.most_arguments)
        {
            return Err(wrong_argument_count(&written));
        }
        let args = self.values(arguments.values)?;
        let lowered = super::build::call(udf.name(), args);
        Ok(if udf.name() == "regexp_like" {
            Lowered::Condition(lowered)
        } else {
            Lowered::Value(lowered)
        })
    }

    /// Functions that are special forms. The arguments are taken out if it is one.
    fn special_function(&mut self, name: &str, values: &mut Vec<Expr>) -> Result<Option<Lowered>> {
        let count = values.len();
        let expect = |fits: bool| {
            if fits {
                Ok(())
            } else {
                Err(wrong_argument_count(name))
            }
        };
        if name == "last_insert_id" && count == 1 {
            let id = self.values(std::mem::take(values))?;
            let id = super::build::call("$cast_unsigned", id);
            return Ok(Some(Lowered::Value(super::build::call(
                SET_LAST_INSERT_ID,
                vec![id],
            ))));
        }
        if name == "sleep" {
            expect(count == 1)?;
            let seconds = self.values(std::mem::take(values))?;
            let seconds = super::build::call("$cast_double", seconds);
            return Ok(Some(Lowered::Value(super::build::call(
                SLEEP,
                vec![seconds],
            ))));
        }
        if count <= 1 {
            let fsp = match values.first() {
                Some(Expr::Value(value)) => match &value.value {
                    Literal::Number(digits, _) => digits.parse::<u8>().ok(),
                    _ => None,
                },
                _ => None,
            };
            if (count == 0 || fsp.is_some())
                && let Some(value) = self.session_function(name, fsp)
            {
                return Ok(Some(Lowered::Value(value)));
            }
        }
        let mut args = match name {
            "if" | "ifnull" | "isnull" | "date_add" | "date_sub" | "adddate" | "subdate"
            | "timestampadd" | "timestampdiff" | "unix_timestamp" | "from_unixtime"
            | "coalesce" | "trim" => std::mem::take(values),
            _ => return Ok(None),
        }
        .into_iter();
        let mut next = || args.next().unwrap_or_else(null);
        Ok(Some(match name {
            "if" => {
                expect(count == 3)?;
                let (condition, then, otherwise) = (next(), next(), next());
                let args = vec![
                    self.condition(condition)?,
                    self.value(then)?,
                    self.value(otherwise)?,
                ];
                Lowered::Value(call("$case", args))
            }
            "ifnull" => {
                expect(count == 2)?;
                let (value, otherwise) = (next(), next());
                Lowered::Value(call(
                    "coalesce",
                    vec![self.value(value)?, self.value(otherwise)?],
                ))
            }
            "coalesce" => {
                expect(count > 0)?;
                let values: Vec<Expr> = std::iter::once(next()).chain(args).collect();
                Lowered::Value(call("coalesce", self.values(values)?))
            }
            "isnull" => {
                expect(count == 1)?;
                Lowered::Condition(Expr::IsNull(Box::new(self.value(next())?)))
            }
            "trim" => {
                expect(count == 1)?;
                Lowered::Value(call(
                    "$trim",
                    vec![self.value(next())?, text(" "), text("b")],
                ))
            }
            "date_add" | "date_sub" | "adddate" | "subdate" => {
                expect(count == 2)?;
                let marker = if matches!(name, "date_add" | "adddate") {
                    "$date_add"
                } else {
                    "$date_subtract"
                };
                let (date, amount) = (next(), next());
                Lowered::Value(match amount {
                    Expr::Interval(interval) => self.add_interval(marker, date, interval)?,
                    days if name.ends_with("date") => call(
                        marker,
                        vec![self.value(date)?, self.value(days)?, text("day")],
                    ),
                    other => return Err(SqlError::parse_error(&other.to_string(), 1)),
                })
            }
            "timestampadd" => {
                expect(count == 3)?;
                let (unit, amount, date) = (next(), next(), next());
                let unit = unit_argument(&unit)
                    .ok_or_else(|| SqlError::parse_error(&unit.to_string(), 1))?;
                Lowered::Value(call(
                    "$date_add",
                    vec![self.value(date)?, self.value(amount)?, text(unit)],
                ))
            }
            "timestampdiff" => {
                expect(count == 3)?;
                let (unit, from, to) = (next(), next(), next());
                let unit = unit_argument(&unit)
                    .ok_or_else(|| SqlError::parse_error(&unit.to_string(), 1))?;
                Lowered::Value(call(
                    "timestampdiff",
                    vec![text(unit), self.value(from)?, self.value(to)?],
                ))
            }
            "unix_timestamp" => {
                expect(count <= 1)?;
                Lowered::Value(if count == 0 {
                    self.unix_now()
                } else {
                    call(
                        "$unix_timestamp",
                        vec![self.value(next())?, self.zone_offset()],
                    )
                })
            }
            _ => {
                expect(count == 1 || count == 2)?;
                let seconds = next();
                let converted = call(
                    "$from_unixtime",
                    vec![self.value(seconds)?, self.zone_offset()],
                );
                Lowered::Value(if count == 2 {
                    call("date_format", vec![converted, self.value(next())?])
                } else {
                    converted
                })
            }
        }))
    }

    fn aggregate(
        &mut self,
        name: &str,
        mut arguments: Arguments,
        over: Option<WindowType>,
    ) -> Result<Expr> {
        if !self.aggregates_allowed && over.is_none() {
            // It is no aggregate, so it may stand where these may not.
            return match (name, arguments.values.pop()) {
                ("any_value", Some(value)) if arguments.values.is_empty() => self.value(value),
                _ => Err(invalid_group_function()),
            };
        }
        // An aggregate of an aggregate is wrong, unless the outer one is a window function.
        let allowed = std::mem::replace(&mut self.aggregates_allowed, over.is_some());
        self.aggregates_seen += usize::from(over.is_none());
        // Inside, names are those of tables.
        let names_items = self.names_items(false);
        let lowered = self.aggregate_call(name, arguments, over);
        self.names_items(names_items);
        self.aggregates_allowed = allowed;
        lowered
    }

    /// Sets whether the names of items hide those of columns, and returns what was set before.
    fn names_items(&mut self, wanted: bool) -> bool {
        let scope = self.scopes.last_mut();
        scope.is_some_and(|scope| std::mem::replace(&mut scope.names_items, wanted))
    }

    fn aggregate_call(
        &mut self,
        name: &str,
        arguments: Arguments,
        over: Option<WindowType>,
    ) -> Result<Expr> {
        let Arguments {
            values,
            star,
            distinct,
            order_by,
            separator,
        } = arguments;
        let build = |name: &str, args: Vec<FunctionArg>| {
            let mut aggregate = function(name, args);
            if let FunctionArguments::List(list) = &mut aggregate.args {
                list.duplicate_treatment = distinct.then_some(DuplicateTreatment::Distinct);
            }
            aggregate.over = over.clone();
            Expr::Function(aggregate)
        };
        if name == "count" && star {
            // A constant that is never NULL: no planner has to know what the star means.
            return Ok(build(name, vec![argument(number(1))]));
        }
        if star || values.is_empty() {
            return Err(SqlError::parse_error(")", 1));
        }
        let mut args = Vec::with_capacity(values.len());
        for value in values {
            let before = self.subqueries_seen;
            let value = self.value(value)?;
            // SqlToRel calls a column of groups by its expression, and leaves subqueries out of it: that of an IN would
            // be the same for any subquery.
            args.push(match self.subqueries_seen == before {
                true => value,
                false => call("$again", vec![value, number(self.subqueries_seen)]),
            });
        }
        if name == "count" && distinct && args.len() > 1 {
            args = vec![call("$tuple_key", args)];
        }
        if name == "$group_concat" {
            let order_by = by_position(&args, order_by)?;
            let joined = if args.len() == 1 {
                args.remove(0)
            } else {
                call("concat", args)
            };
            return self.group_concat(joined, distinct, order_by, separator);
        }
        if name == "grouping" && over.is_none() && !distinct {
            // A BIGINT, as MySQL has it.
            let grouping = build(name, args.into_iter().map(argument).collect());
            return Ok(call("$cast_signed", vec![grouping]));
        }
        if args.len() != 1 {
            return Err(SqlError::parse_error(",", 1));
        }
        // What the aggregates compute with, as operators would.
        args = match name {
            "bit_and" | "bit_or" | "bit_xor" => {
                args.push(number(0));
                vec![call("$bit_or", args)]
            }
            "stddev_pop" | "stddev" | "var_pop" | "var" => vec![call("$cast_double", args)],
            // Of the numbers, not of the texts that say them.
            "avg" if distinct => {
                args.push(number(0));
                vec![call("$add", args)]
            }
            _ => args,
        };
        let argument_of = |name: &str| build(name, args.iter().cloned().map(argument).collect());
        Ok(match name {
            // The type and the rounding of a quotient are those of AVG.
            "avg" => call("$average", vec![argument_of("$sum"), argument_of("count")]),
            "bit_and" => call(
                "$cast_unsigned",
                vec![call("coalesce", vec![argument_of(name), number(u64::MAX)])],
            ),
            "bit_or" | "bit_xor" => call(
                "$cast_unsigned",
                vec![call("coalesce", vec![argument_of(name), number(0)])],
            ),
            // Squares of huge numbers leave the range of doubles.
            "stddev_pop" | "stddev" | "var_pop" | "var" => {
                let shown = text(format!("{name}(x)"));
                call("$finite", vec![argument_of(name), shown])
            }
            _ => argument_of(name),
        })
    }

    /// The order is asked for by a key, so that nothing needs to be sorted before the aggregate.
    fn group_concat(
        &mut self,
        joined: Expr,
        distinct: bool,
        order_by: Vec<OrderedBy>,
        separator: Option<String>,
    ) -> Result<Expr> {
        let mut directions = String::new();
        let mut keys = Vec::new();
        for order in order_by {
            directions.push(if order.is_descending { 'd' } else { 'a' });
            keys.push(match order.key {
                OrderKey::Argument(argument) => argument,
                OrderKey::Expression(expression) => self.value(expression)?,
            });
        }
        let order_key = if keys.is_empty() {
            null()
        } else {
            call(
                "$sort_key",
                std::iter::once(text(directions)).chain(keys).collect(),
            )
        };
        let distinct_key = if distinct {
            call("$tuple_key", vec![joined.clone()])
        } else {
            null()
        };
        let args = vec![
            joined,
            text(separator.unwrap_or_else(|| ",".to_string())),
            self.group_concat_limit(),
            distinct_key,
            order_key,
        ];
        Ok(call("$group_concat", args))
    }

    fn window(&mut self, over: WindowType) -> Result<WindowType> {
        Ok(match over {
            WindowType::WindowSpec(spec) => {
                let spec = match &spec.window_name {
                    None => spec,
                    Some(base) => {
                        let base = base.value.clone();
                        let known = self.named_window(&base)?;
                        derived_window(spec, "<unnamed window>", &base, &known)?
                    }
                };
                WindowType::WindowSpec(self.window_spec(spec)?)
            }
            WindowType::NamedWindow(name) => {
                let spec = self.named_window(&name.value)?;
                WindowType::WindowSpec(self.window_spec(spec)?)
            }
        })
    }

    /// A window of the WINDOW clause, not lowered yet.
    fn named_window(&self, name: &str) -> Result<WindowSpec> {
        match self.scopes.last() {
            Some(scope) => Ok(scope.window(name)?.clone()),
            None => Err(no_such_window(name)),
        }
    }

    pub fn window_spec(&mut self, spec: WindowSpec) -> Result<WindowSpec> {
        let mut operands = spec
            .partition_by
            .iter()
            .chain(spec.order_by.iter().map(|item| &item.expr));
        if operands.any(has_window_function) {
            return Err(nested_window_function());
        }
        let partition_by = self.without_windows(|this| this.values(spec.partition_by))?;
        Ok(WindowSpec {
            partition_by,
            order_by: self.without_windows(|this| this.order_by_items(spec.order_by, false))?,
            window_frame: spec.window_frame.map(frame).transpose()?,
            ..spec
        })
    }
}

/// What GROUP_CONCAT orders by.
struct OrderedBy {
    key: OrderKey,
    is_descending: bool,
}

enum OrderKey {
    /// An argument, lowered.
    Argument(Expr),
    /// Not lowered yet.
    Expression(Expr),
}

/// A whole number says the argument of that position. Error 1054 if there is none.
fn by_position(arguments: &[Expr], order_by: Vec<OrderByExpr>) -> Result<Vec<OrderedBy>> {
    let ordered = |order: OrderByExpr| {
        let digits = match &order.expr {
            Expr::Value(value) => match &value.value {
                sqlparser::ast::Value::Number(digits, _) => Some(digits.clone()),
                _ => None,
            },
            _ => None,
        };
        let key = match digits {
            None => OrderKey::Expression(order.expr),
            Some(digits) => {
                let position = digits.parse::<usize>().ok();
                let position = position.and_then(|position| position.checked_sub(1));
                let argument = position.and_then(|position| arguments.get(position));
                let unknown = || SqlError::bad_field(&digits, "order clause");
                OrderKey::Argument(argument.ok_or_else(unknown)?.clone())
            }
        };
        Ok(OrderedBy {
            key,
            is_descending: order.options.asc == Some(false),
        })
    };
    order_by.into_iter().map(ordered).collect()
}
