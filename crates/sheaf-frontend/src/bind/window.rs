//! Windows as they are written: names of others, frames, and the functions that need one.

use std::sync::{Arc, LazyLock};

use datafusion_common::ScalarValue;
use datafusion_expr::WindowUDF;
use sheaf_algebra::Scalar;
use sheaf_types::error::codes;
use sqlparser::ast::helpers::attached_token::AttachedToken;
use sqlparser::ast::{
    CaseWhen, Expr, Interval, NamedWindowExpr, UnaryOperator, Value as Literal, WindowFrame,
    WindowFrameBound, WindowFrameUnits, WindowSpec, WindowType,
};

use crate::error::{Result, SqlError};
use crate::syntax::{argument, function, is_position, is_same, number, number_digits, text};

/// The most windows that a SELECT may have, and those that its WINDOW clause may define, as in MySQL (error 4086
/// beyond). Each has an operator of its own, which hands on the columns of those before it.
pub const MAX_WINDOWS: usize = 127;

/// 4086.
pub fn too_many_windows(count: usize) -> SqlError {
    SqlError::new(
        codes::TOO_MANY_WINDOWS,
        format!("Too many windows in SELECT: {count}. Maximum allowed is {MAX_WINDOWS}."),
    )
}

/// The window function (not aggregate) of this name. MySQL's windows are standard SQL, and so are DataFusion's.
pub fn window_function(name: &str) -> Option<Arc<WindowUDF>> {
    static FUNCTIONS: LazyLock<Vec<Arc<WindowUDF>>> =
        LazyLock::new(datafusion_functions_window::all_default_window_functions);
    FUNCTIONS
        .iter()
        .find(|function| function.name() == name)
        .cloned()
}

/// 3579.
pub fn no_such_window(name: &str) -> SqlError {
    SqlError::new(
        codes::WINDOW_NO_SUCH_WINDOW,
        format!("Window name '{name}' is not defined."),
    )
}

/// A window of the WINDOW clause, without the names of others.
pub fn resolved_window(
    name: &str,
    windows: &[(String, NamedWindowExpr)],
    depth: usize,
) -> Result<WindowSpec> {
    let Some((_, window)) = windows.iter().find(|(known, _)| is_same(known, name)) else {
        return Err(no_such_window(name));
    };
    if depth > windows.len() {
        let text = "There is a circularity in the window dependency graph.";
        return Err(SqlError::new(
            codes::WINDOW_CIRCULARITY_IN_WINDOW_GRAPH,
            text.to_string(),
        ));
    }
    match window {
        NamedWindowExpr::NamedWindow(other) => resolved_window(&other.value, windows, depth + 1),
        NamedWindowExpr::WindowSpec(spec) => match &spec.window_name {
            None => Ok(spec.clone()),
            Some(base) => {
                let resolved = resolved_window(&base.value, windows, depth + 1)?;
                derived_window(spec.clone(), name, &base.value, &resolved)
            }
        },
    }
}

/// `(base ORDER BY ...)`: what a window takes over from the one that it names.
///
/// # Errors
/// 3581, 3582 and 3583 for what it cannot add to the other.
pub fn derived_window(
    spec: WindowSpec,
    name: &str,
    base_name: &str,
    base: &WindowSpec,
) -> Result<WindowSpec> {
    if !spec.partition_by.is_empty() {
        let text = "A window which depends on another cannot define partitioning.";
        return Err(SqlError::new(
            codes::WINDOW_NO_CHILD_PARTITIONING,
            text.to_string(),
        ));
    }
    if base.window_frame.is_some() {
        return Err(SqlError::new(
            codes::WINDOW_NO_INHERIT_FRAME,
            format!(
                "Window '{base_name}' has a frame definition, so cannot be referenced by another window."
            ),
        ));
    }
    if !spec.order_by.is_empty() && !base.order_by.is_empty() {
        return Err(SqlError::new(
            codes::WINDOW_NO_REDEFINE_ORDER_BY,
            format!(
                "Window '{name}' cannot inherit '{base_name}' since both contain an ORDER BY clause."
            ),
        ));
    }
    let order_by = match spec.order_by.is_empty() {
        true => base.order_by.clone(),
        false => spec.order_by,
    };
    Ok(WindowSpec {
        window_name: None,
        partition_by: base.partition_by.clone(),
        order_by,
        window_frame: spec.window_frame,
    })
}

/// A frame whose distances are written as the typing rule reads them: numbers without an exponent, intervals of texts.
///
/// # Errors
/// 3584, 3585 and 3586 for bounds that make no frame, 1064 for offsets that MySQL's grammar does not have, 3596.
pub fn frame(mut frame: WindowFrame) -> Result<WindowFrame> {
    check_bounds(&frame)?;
    let bounds = std::iter::once(&mut frame.start_bound).chain(&mut frame.end_bound);
    for bound in bounds {
        if let WindowFrameBound::Preceding(Some(offset))
        | WindowFrameBound::Following(Some(offset)) = bound
        {
            // Distances are exact numbers, however they are written.
            if let Expr::Value(value) = offset.as_mut()
                && let Literal::Number(digits, _) = &mut value.value
                && digits.contains(['e', 'E'])
                && let Ok(distance) = digits.parse::<f64>()
            {
                if distance.is_infinite() {
                    return Err(SqlError::illegal_double(digits));
                }
                *digits = distance.to_string();
            }
            let Expr::Interval(interval) = offset.as_mut() else {
                continue;
            };
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

fn check_bounds(frame: &WindowFrame) -> Result<()> {
    let illegal = || Err(SqlError::illegal_frame());
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
            // `INTERVAL -1 HOUR`. Its other forms are read later.
            Expr::Interval(interval) => {
                if let Expr::UnaryOp {
                    op: UnaryOperator::Minus,
                    expr,
                } = interval.value.as_ref()
                    && number_digits(expr).is_some()
                {
                    return illegal();
                }
            }
            _ => return Err(SqlError::parse_error(&offset.to_string(), 1)),
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

/// The interval with its amount as a text, which the typing rule reads.
fn frame_interval(interval: &Interval) -> Result<Interval> {
    let unsupported = || SqlError::not_supported_yet(format!("a frame of RANGE {interval}"));
    let Expr::Value(value) = interval.value.as_ref() else {
        return Err(unsupported());
    };
    let amount = match &value.value {
        Literal::Number(amount, _)
        | Literal::SingleQuotedString(amount)
        | Literal::DoubleQuotedString(amount) => amount.trim(),
        Literal::Null => return Err(SqlError::illegal_frame()),
        _ => return Err(unsupported()),
    };
    match amount.starts_with('-') {
        true => Err(SqlError::illegal_frame()),
        false => Ok(Interval {
            value: Box::new(text(amount.to_string())),
            ..interval.clone()
        }),
    }
}

/// 3593: a window function outside of a select list and ORDER BY.
pub fn misplaced_window_function(name: &str) -> SqlError {
    SqlError::new(
        codes::WINDOW_INVALID_WINDOW_FUNC_USE,
        format!("You cannot use the window function '{name}' in this context."),
    )
}

/// 3595: a window function in what a window is made of.
pub fn nested_window_function() -> SqlError {
    SqlError::new(
        codes::WINDOW_NESTED_WINDOW_FUNC_USE_IN_WINDOW_SPEC,
        "You cannot nest a window function in the specification of window '<unnamed window>'.",
    )
}

/// LAG or LEAD with a value for rows that have no row there. That value may be anything, and its type counts as that of
/// a branch of CASE:
///
/// ```text
///   LAG(a, 2, b) OVER w   -->   CASE WHEN LAG(1, 2) OVER w IS NULL THEN b ELSE LAG(a, 2) OVER w END
/// ```
///
/// `None` for other functions, and where the distance is a parameter, which is counted where it stands.
pub fn with_default_of_row(name: &str, arguments: &[&Expr], over: &WindowType) -> Option<Expr> {
    let [value, distance, default] = arguments else {
        return None;
    };
    let is_null = |expr: &Expr| matches!(expr, Expr::Value(value) if value.value == Literal::Null);
    if !matches!(name, "lag" | "lead") || !is_position(distance) || is_null(default) {
        return None;
    }
    let over_window = |value: Expr| {
        let arguments = [value, Expr::clone(distance)].map(argument);
        let mut call = function(name, arguments.to_vec());
        call.over = Some(over.clone());
        Box::new(Expr::Function(call))
    };
    Some(Expr::Case {
        case_token: AttachedToken::empty(),
        end_token: AttachedToken::empty(),
        operand: None,
        conditions: vec![CaseWhen {
            condition: Expr::IsNull(over_window(number(1))),
            result: Expr::clone(default),
        }],
        else_result: Some(over_window(Expr::clone(value))),
    })
}

/// 1235: GROUP_CONCAT knows no window.
pub fn group_concat_over_window() -> SqlError {
    SqlError::not_supported_yet("group_concat as window function")
}

/// The arguments of a function that needs a window. Of constants, MySQL's grammar takes whole numbers without a sign.
///
/// # Errors
/// 1064 for a wrong number of arguments and what is no such number, 1210 for zero where there has to be one.
pub fn check_window_arguments(name: &str, arguments: &[&Expr]) -> Result<()> {
    if window_function(name).is_none() {
        return Ok(());
    }
    let counts = match name {
        "row_number" | "rank" | "dense_rank" | "percent_rank" | "cume_dist" => 0..=0,
        "ntile" | "first_value" | "last_value" => 1..=1,
        "nth_value" => 2..=2,
        "lag" | "lead" => 1..=3,
        _ => return Ok(()),
    };
    let syntax = |at: String| Err(SqlError::parse_error(&at, 1));
    if !counts.contains(&arguments.len()) {
        return syntax(
            arguments
                .last()
                .map_or(")".to_string(), ToString::to_string),
        );
    }
    let wrong = || Err(SqlError::wrong_arguments(name));
    let amount = place_of_amount(name).and_then(|place| arguments.get(place).copied());
    let digits = |amount: &Expr| number_digits(amount).map(str::to_string);
    match amount {
        None => Ok(()),
        Some(amount) if is_position(amount) => {
            let is_zero = digits(amount).is_some_and(|digits| digits.bytes().all(|b| b == b'0'));
            match is_zero && matches!(name, "ntile" | "nth_value") {
                true => wrong(),
                false => Ok(()),
            }
        }
        // NULL stands in the place of a parameter before its value is known.
        Some(Expr::Value(value))
            if matches!(value.value, Literal::Placeholder(_))
                || (value.value == Literal::Null && name != "ntile") =>
        {
            Ok(())
        }
        Some(Expr::Identifier(variable)) if variable.value.starts_with('@') => Ok(()),
        Some(_) if name == "nth_value" => wrong(),
        Some(amount) => syntax(amount.to_string()),
    }
}

/// The position of the argument that is a number of rows.
fn place_of_amount(name: &str) -> Option<usize> {
    match name {
        "ntile" => Some(0),
        "nth_value" | "lag" | "lead" => Some(1),
        _ => None,
    }
}

/// Error 1210 for a user variable as a number of rows that holds something else; `values` are the arguments with their
/// values. NTILE takes no NULL, and neither it nor NTH_VALUE takes 0.
pub fn check_amount(name: &str, written: &[&Expr], values: &[Scalar]) -> Result<()> {
    let Some(place) = place_of_amount(name) else {
        return Ok(());
    };
    let is_variable = written.get(place).is_some_and(
        |amount| matches!(amount, Expr::Identifier(name) if name.value.starts_with('@')),
    );
    let Some(value) = values.get(place).filter(|_| is_variable) else {
        return Ok(());
    };
    let least = i64::from(matches!(name, "ntile" | "nth_value"));
    let is_number = match value.as_literal() {
        None => true,
        Some(literal) if literal.is_null() => name != "ntile",
        Some(ScalarValue::Int64(Some(number))) => *number >= least,
        Some(ScalarValue::UInt64(Some(number))) => *number >= least.unsigned_abs(),
        Some(_) => false,
    };
    match is_number {
        true => Ok(()),
        false => Err(SqlError::wrong_arguments(name)),
    }
}
