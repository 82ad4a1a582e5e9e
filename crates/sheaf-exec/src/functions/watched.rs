//! Functions that hand their operand on, and note what is wrong with it.
//!
//! ```text
//!   a / b               a / $divisor(b)
//!   LN(x)               LN($logarithm_of(x))
//!   d < 'abc'           d < DATE($watched_text('abc'))
//!   i = '12x'           $of_constant(i = 12)
//!   CAST(j AS DATE)     DATE($watched_json(j))
//!   MAKETIME(h, 0, 0)   $noted_maketime(h, 0, 0)
//! ```
//!
//! One function serves all: what it looks for is its [`Watch`]. Behind its operands it has the conditions under which
//! MySQL computes them (see [`super::truncated`], which keeps what is noted). Only [`NumberOfText`] and the functions
//! of `watched_time.rs` make another value of their operands.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Decimal128Array, Float64Array, UInt64Array};
use arrow::datatypes::{DataType, FieldRef};
use datafusion_common::{Result, ScalarValue, exec_err};
use datafusion_expr::expr::ScalarFunction;
use datafusion_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility, lit,
};
use sheaf_types::number::{text_place, text_to_double, text_to_unsigned};
use sheaf_types::temporal::ZERO_DATETIME;

use super::EvaluationError;
use super::call_name::name_of_call;
use super::conversion::{to_bytes, to_datetime, to_double, to_text};
use super::date_format::{Reading, reading};
use super::document::json_of;
use super::truncated::{MomentKind, NumberKind, TruncatedTexts};
use super::types::{MAX_PRECISION, SqlType};
use super::watched_json::{self, JsonTarget};
use super::watched_rows::{bad_rows, rows_of, where_all_are_true};
use super::watched_time::noted_time;

impl TruncatedTexts {
    /// The number that a text begins with, or 0.
    pub fn number_of(&self, kind: NumberKind, text: Expr) -> Expr {
        let function = ScalarUDF::from(NumberOfText {
            texts: self.clone(),
            kind,
            signature: Signature::variadic_any(Volatility::Volatile),
        });
        function.call(vec![text])
    }

    /// What is divided by, which is looked at for zeros where all of the conditions are true.
    pub fn divisor(&self, operand: Expr, conditions: impl IntoIterator<Item = Expr>) -> Expr {
        let operands = std::iter::once(operand).chain(conditions);
        self.watched(Watch::Divisor, operands.collect())
    }

    /// An operand of a logarithm, which is looked at for what has none. `base`: of another operand's logarithm, which
    /// MySQL comes to behind it.
    pub fn logarithm(&self, operand: Expr, base: Option<Expr>) -> Expr {
        let has_base = base.is_some();
        let operands = std::iter::once(operand).chain(base);
        self.watched(Watch::Logarithm { has_base }, operands.collect())
    }

    /// What STR_TO_DATE has made of a text by a format. It is noted where that is NULL or less than the text, and all
    /// conditions are true.
    pub fn parsed_date(&self, date: Expr, text: Expr, format: Expr) -> Expr {
        self.watched(Watch::ParsedDate, vec![date, text, format])
    }

    /// The sum of a date and an interval. It is noted where that is NULL and neither of them is.
    pub fn moved_date(&self, sum: Expr, date: Expr, interval: Expr) -> Expr {
        self.watched(Watch::MovedDate, vec![sum, date, interval])
    }

    /// Whether this is a function of this module. Its first operand is what it hands on, or makes a number of, but for
    /// [`super::watched_time`].
    pub fn notes(function: &str) -> bool {
        Watch::NAMES.contains(&function)
            || noted_time(function).is_some()
            || matches!(
                function,
                "$double_of_text" | "$decimal_of_text" | "$integer_of_text" | "$place_of_text"
            )
    }

    /// Whether it is one that is NULL where its first operand is, and only there.
    pub fn hands_on(function: &str) -> bool {
        Self::notes(function) && noted_time(function).is_none()
    }

    /// What a call of a function of this module hands on, where nothing is noted.
    pub(crate) fn silent(call: ScalarFunction) -> Expr {
        let ScalarFunction { func, mut args } = call;
        if let Some(time) = noted_time(func.name()) {
            args.truncate(time.operands);
            return super::call(time.function, args);
        }
        let operand = args.swap_remove(0);
        match func.inner().downcast_ref::<NumberOfText>() {
            Some(number) => match number.kind {
                NumberKind::Double | NumberKind::Decimal => {
                    super::call("$cast_double", vec![operand])
                }
                NumberKind::Place(decimals) => {
                    super::call("$text_place", vec![operand, lit(i64::from(decimals))])
                }
                NumberKind::Integer => operand,
            },
            None => operand,
        }
    }

    /// The text as it is. Where it is no date or time, that is noted: what is made of it is NULL.
    pub fn moment(&self, kind: MomentKind, text: Expr) -> Expr {
        self.watched(Watch::Moment(kind), vec![text])
    }

    /// The text as it is. Where it is no number, that is noted.
    pub fn number_text(&self, kind: NumberKind, text: Expr) -> Expr {
        self.watched(Watch::Number(kind), vec![text])
    }

    fn watched(&self, watch: Watch, operands: Vec<Expr>) -> Expr {
        let function = ScalarUDF::from(Watched {
            texts: self.clone(),
            watch,
            signature: Signature::variadic_any(Volatility::Volatile),
        });
        function.call(operands)
    }

    /// A value as it is, which CAST makes a text of so many characters of, or so many bytes. What is cut is noted.
    pub(crate) fn cut(&self, value: Expr, is_binary: bool, length: usize) -> Expr {
        self.watched(Watch::Cut { is_binary, length }, vec![value])
    }

    /// The DECIMAL that CAST has made of a number. It is noted where the number is out of the range of so many digits.
    pub fn fitted(&self, made: Expr, number: Expr) -> Expr {
        self.watched(Watch::Fitted, vec![made, number])
    }

    /// The JSON value as it is. Where it does not fit what it is converted to, that is noted.
    /// `name`: that of its field.
    pub fn json(&self, target: JsonTarget, value: Expr, name: &str) -> Expr {
        let column = watched_json::shown_name(name);
        self.watched(Watch::Json { target, column }, vec![value])
    }

    /// What was made of a constant. What is wrong with the constant is noted where there is a row for which all of the
    /// conditions are true, once in a statement.
    pub fn of_constant(&self, value: Expr, error: EvaluationError, conditions: &[Expr]) -> Expr {
        let operands = std::iter::once(value).chain(conditions.iter().cloned());
        self.watched(Watch::Constant(error), operands.collect())
    }
}

/// Makes a number of a text, and notes where that is only a part of it.
#[derive(Debug, PartialEq, Eq, Hash)]
struct NumberOfText {
    texts: TruncatedTexts,
    kind: NumberKind,
    signature: Signature,
}

impl ScalarUDFImpl for NumberOfText {
    fn name(&self) -> &str {
        self.kind.function_name()
    }

    fn schema_name(&self, args: &[Expr]) -> Result<String> {
        name_of_call(self.name(), args)
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arguments: &[DataType]) -> Result<DataType> {
        Ok(match self.kind {
            NumberKind::Double | NumberKind::Decimal => DataType::Float64,
            NumberKind::Integer => DataType::UInt64,
            NumberKind::Place(decimals) => DataType::Decimal128(MAX_PRECISION, decimals as i8 + 1),
        })
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let Some((operand, conditions)) = args.args.split_first() else {
            return exec_err!("{} without its argument", self.name());
        };
        let (rows, rows_of_each) = rows_of(&args);
        let texts = to_text(&operand.to_array(rows)?, &args.arg_fields[0])?;
        let is_bad = |text: &str| !self.kind.is_whole(text);
        for row in bad_rows(&texts, is_bad, conditions)? {
            self.texts.note(self.kind, texts.value(row), rows_of_each)?;
        }
        let numbers: ArrayRef = match self.kind {
            NumberKind::Double | NumberKind::Decimal => {
                let numbers = texts.iter().map(|text| text.map(text_to_double));
                Arc::new(numbers.collect::<Float64Array>())
            }
            NumberKind::Integer => {
                let numbers = texts.iter().map(|text| text.map(text_to_unsigned));
                Arc::new(numbers.collect::<UInt64Array>())
            }
            NumberKind::Place(decimals) => {
                let places = texts.iter().map(|text| Some(text_place(text?, decimals)));
                let places: Decimal128Array = places.collect();
                Arc::new(places.with_data_type(args.return_field.data_type().clone()))
            }
        };
        Ok(match rows == 1 && rows_of_each != 1 {
            true => ColumnarValue::Scalar(ScalarValue::try_from_array(&numbers, 0)?),
            false => ColumnarValue::Array(numbers),
        })
    }
}

/// What is looked for in an operand.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Watch {
    /// A text that is no date or time.
    Moment(MomentKind),
    /// A text that is no number. Of a number the text is that of its digits.
    Number(NumberKind),
    /// The operand was made of a constant of which this is to be said, if there is a row at all.
    Constant(EvaluationError),
    /// A text of more characters, or bytes of more of them, than CAST is to make of it.
    Cut { is_binary: bool, length: usize },
    /// Zeros.
    Divisor,
    /// What has no logarithm. With a base the operand is looked at where the base is positive; of the base 1 nothing
    /// has a logarithm.
    Logarithm { has_base: bool },
    /// A date that was not made of a text as a whole; the text and its format follow.
    ParsedDate,
    /// The sum of a date and an interval, which follow.
    MovedDate,
    /// A DECIMAL that was made of a number out of its range; the number follows.
    Fitted,
    /// A JSON value, of a column or function of this name, that is none of the type.
    Json { target: JsonTarget, column: String },
}

impl Watch {
    const NAMES: [&str; 8] = [
        "$watched_text",
        "$of_constant",
        "$divisor",
        "$logarithm_of",
        "$parsed_date",
        "$moved_date",
        "$fitted_decimal",
        "$watched_json",
    ];

    fn name(&self) -> &'static str {
        let [
            text,
            constant,
            divisor,
            logarithm,
            date,
            moved_date,
            decimal,
            json,
        ] = Watch::NAMES;
        match self {
            Watch::Moment(_) | Watch::Number(_) | Watch::Cut { .. } => text,
            Watch::Constant(_) => constant,
            Watch::Divisor => divisor,
            Watch::Logarithm { .. } => logarithm,
            Watch::ParsedDate => date,
            Watch::MovedDate => moved_date,
            Watch::Fitted => decimal,
            Watch::Json { .. } => json,
        }
    }

    /// How many operands there are in front of the conditions.
    fn operands(&self) -> usize {
        match self {
            Watch::Moment(_)
            | Watch::Number(_)
            | Watch::Cut { .. }
            | Watch::Constant(_)
            | Watch::Divisor
            | Watch::Json { .. } => 1,
            Watch::Logarithm { has_base } => 1 + usize::from(*has_base),
            Watch::ParsedDate | Watch::MovedDate => 3,
            Watch::Fitted => 2,
        }
    }
}

/// Digits of a DECIMAL that a double tells apart.
const DOUBLE_DIGITS: u8 = 15;

/// See the module's comment.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Watched {
    texts: TruncatedTexts,
    watch: Watch,
    signature: Signature,
}

impl ScalarUDFImpl for Watched {
    fn name(&self) -> &str {
        self.watch.name()
    }

    fn schema_name(&self, args: &[Expr]) -> Result<String> {
        name_of_call(self.name(), args)
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        Ok(arguments[0].clone())
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        Ok(Arc::clone(&args.arg_fields[0]))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let Some((operands, conditions)) = args.args.split_at_checked(self.watch.operands()) else {
            return exec_err!("{} without its operands", self.name());
        };
        let texts = &self.texts;
        match &self.watch {
            Watch::Moment(kind) => {
                let ty = SqlType::of(&args.arg_fields[0]);
                let is_number = ty.is_exact_number() || ty.is_float();
                let is_bad = |text: &str| match is_number {
                    true => !kind.is_number_of_one(text),
                    false => !kind.is_one(text),
                };
                let error = |text: &str| EvaluationError::no_moment(kind.name(), text);
                note_texts(texts, &args, conditions, is_bad, error)?;
            }
            Watch::Number(kind) => {
                let error = |text: &str| EvaluationError::truncated_text(kind.name(), text);
                note_texts(texts, &args, conditions, |text| !kind.is_whole(text), error)?;
            }
            Watch::Cut { is_binary, length } => {
                note_cut(texts, &args, conditions, (*is_binary, *length))?;
            }
            Watch::Constant(error) => {
                let rows = (0..args.number_rows).collect();
                if !where_all_are_true(rows, conditions, args.number_rows)?.is_empty() {
                    texts.note_constant(error.clone())?;
                }
            }
            Watch::Divisor => note_zeros(texts, &args, conditions)?,
            Watch::Logarithm { has_base } => {
                note_no_logarithms(texts, &args, *has_base, conditions)?;
            }
            Watch::MovedDate => note_overflows(texts, &args, conditions)?,
            Watch::ParsedDate => note_unread_dates(texts, &args, conditions)?,
            Watch::Fitted => note_cut_decimals(texts, &args, conditions)?,
            Watch::Json { target, column } => {
                note_unfit_documents(texts, &args, conditions, (*target, column))?;
            }
        }
        Ok(operands[0].clone())
    }
}

fn note_texts(
    noted: &TruncatedTexts,
    args: &ScalarFunctionArgs,
    conditions: &[ColumnarValue],
    is_bad: impl Fn(&str) -> bool,
    error: impl Fn(&str) -> EvaluationError,
) -> Result<()> {
    let (rows, rows_of_each) = rows_of(args);
    let texts = to_text(&args.args[0].to_array(rows)?, &args.arg_fields[0])?;
    for row in bad_rows(&texts, is_bad, conditions)? {
        noted.note_error(|| error(texts.value(row)), rows_of_each)?;
    }
    Ok(())
}

fn note_cut(
    noted: &TruncatedTexts,
    args: &ScalarFunctionArgs,
    conditions: &[ColumnarValue],
    (is_binary, length): (bool, usize),
) -> Result<()> {
    let (rows, rows_of_each) = rows_of(args);
    let (values, field) = (args.args[0].to_array(rows)?, &args.arg_fields[0]);
    let note = |text: &str| {
        let error = || EvaluationError::cut_by_cast(is_binary, length, text);
        noted.note_error(error, rows_of_each)
    };
    if is_binary {
        let bytes = to_bytes(&values, field)?;
        let is_cut = |row: &usize| bytes.is_valid(*row) && bytes.value(*row).len() > length;
        let cut = where_all_are_true((0..rows).filter(is_cut).collect(), conditions, rows)?;
        return cut
            .into_iter()
            .try_for_each(|row| note(&String::from_utf8_lossy(bytes.value(row))));
    }
    let texts = to_text(&values, field)?;
    let is_cut = |text: &str| is_longer(text, length);
    let cut = bad_rows(&texts, is_cut, conditions)?;
    cut.into_iter().try_for_each(|row| note(texts.value(row)))
}

/// Whether a text has more characters.
fn is_longer(text: &str, length: usize) -> bool {
    text.len() > length && text.chars().count() > length
}

fn note_zeros(
    noted: &TruncatedTexts,
    args: &ScalarFunctionArgs,
    conditions: &[ColumnarValue],
) -> Result<()> {
    let (rows, rows_of_each) = rows_of(args);
    let numbers = to_double(&args.args[0].to_array(rows)?, &args.arg_fields[0])?;
    let zeros = (0..rows)
        .filter(|row| numbers.is_valid(*row) && numbers.value(*row) == 0.0)
        .collect();
    let zeros = where_all_are_true(zeros, conditions, rows)?;
    noted.note_error(
        EvaluationError::division_by_zero,
        zeros.len() * rows_of_each,
    )
}

fn note_no_logarithms(
    noted: &TruncatedTexts,
    args: &ScalarFunctionArgs,
    has_base: bool,
    conditions: &[ColumnarValue],
) -> Result<()> {
    let (rows, rows_of_each) = rows_of(args);
    let numbers = |at: usize| to_double(&args.args[at].to_array(rows)?, &args.arg_fields[at]);
    let operands = numbers(0)?;
    let bases = match has_base {
        true => Some(numbers(1)?),
        false => None,
    };
    let has_none = |row: &usize| {
        operands.is_valid(*row)
            && match &bases {
                None => operands.value(*row) <= 0.0,
                Some(bases) => {
                    bases.is_valid(*row)
                        && bases.value(*row) > 0.0
                        && (operands.value(*row) <= 0.0 || bases.value(*row) == 1.0)
                }
            }
    };
    let found = (0..rows).filter(has_none).collect();
    let found = where_all_are_true(found, conditions, rows)?;
    noted.note_error(EvaluationError::no_logarithm, found.len() * rows_of_each)
}

fn note_unread_dates(
    noted: &TruncatedTexts,
    args: &ScalarFunctionArgs,
    conditions: &[ColumnarValue],
) -> Result<()> {
    let [date, text, format] = [&args.args[0], &args.args[1], &args.args[2]];
    let (rows, rows_of_each) = rows_of(args);
    let texts = to_text(&text.to_array(rows)?, &args.arg_fields[1])?;
    let formats = to_text(&format.to_array(rows)?, &args.arg_fields[2])?;
    let dates = date.to_array(rows)?;
    // A time of day alone is none of the dates of other rows.
    let is_bad = |text: &str, format: &str, row: usize| {
        dates.is_null(row) || reading(text, format) != Reading::Whole
    };
    let mut bad = Vec::new();
    for (row, (text, format)) in texts.iter().zip(&formats).enumerate() {
        if let (Some(text), Some(format)) = (text, format)
            && is_bad(text, format, row)
        {
            bad.push(row);
        }
    }
    let kind = match args.arg_fields[0].data_type() {
        DataType::Date32 => "date",
        DataType::Duration(_) => "time",
        _ => "datetime",
    };
    for row in where_all_are_true(bad, conditions, rows)? {
        let text = texts.value(row);
        let error = || match dates.is_null(row) {
            true => EvaluationError::not_as_formatted(text, "str_to_date"),
            false => EvaluationError::truncated_text(kind, text),
        };
        noted.note_error(error, rows_of_each)?;
    }
    Ok(())
}

fn note_overflows(
    noted: &TruncatedTexts,
    args: &ScalarFunctionArgs,
    conditions: &[ColumnarValue],
) -> Result<()> {
    let (rows, rows_of_each) = rows_of(args);
    let operand = |at: usize| args.args[at].to_array(rows);
    let sums = operand(0)?;
    if sums.logical_null_count() == 0 {
        return Ok(());
    }
    let (dates, intervals) = (to_datetime(&operand(1)?, &args.arg_fields[1])?, operand(2)?);
    let has_none = |row: &usize| {
        sums.is_null(*row)
            && intervals.is_valid(*row)
            && dates.is_valid(*row)
            && dates.value(*row) != ZERO_DATETIME
    };
    let found = where_all_are_true((0..rows).filter(has_none).collect(), conditions, rows)?;
    noted.note_error(
        EvaluationError::datetime_overflow,
        found.len() * rows_of_each,
    )
}

fn note_cut_decimals(
    noted: &TruncatedTexts,
    args: &ScalarFunctionArgs,
    conditions: &[ColumnarValue],
) -> Result<()> {
    let (rows, rows_of_each) = rows_of(args);
    let numbers = to_double(&args.args[1].to_array(rows)?, &args.arg_fields[1])?;
    let (DataType::Decimal128(precision, scale) | DataType::Decimal256(precision, scale)) =
        *args.arg_fields[0].data_type()
    else {
        return exec_err!("fitted: no DECIMAL");
    };
    // What is rounded to more digits is out of the range, too. Doubles cannot tell that of many digits.
    let limit = 10f64.powi(i32::from(precision) - i32::from(scale));
    let limit = match precision <= DOUBLE_DIGITS {
        true => limit - 0.5 * 10f64.powi(-i32::from(scale)),
        false => limit * (1.0 + f64::EPSILON),
    };
    let is_cut = |row: &usize| numbers.is_valid(*row) && numbers.value(*row).abs() >= limit;
    let cut = where_all_are_true((0..rows).filter(is_cut).collect(), conditions, rows)?;
    for row in cut {
        let row = row as u64 + 1;
        let error = || EvaluationError::out_of_range_column("(null)", row);
        noted.note_error(error, rows_of_each)?;
    }
    Ok(())
}

fn note_unfit_documents(
    noted: &TruncatedTexts,
    args: &ScalarFunctionArgs,
    conditions: &[ColumnarValue],
    (target, column): (JsonTarget, &str),
) -> Result<()> {
    let (rows, rows_of_each) = rows_of(args);
    let values = args.args[0].to_array(rows)?;
    let Some(documents) = values.as_binary_view_opt() else {
        return Ok(());
    };
    let problem_of = |row: usize| {
        let document = documents
            .is_valid(row)
            .then(|| json_of(documents.value(row)))?;
        target.problem(document).map(|problem| (document, problem))
    };
    let unfit = (0..rows).filter(|row| problem_of(*row).is_some()).collect();
    for row in where_all_are_true(unfit, conditions, rows)? {
        if let Some(unfit) = problem_of(row) {
            let of_index = |index| EvaluationError::unfit_for_index(unfit.1, index);
            if let Some(warning) = noted.index().and_then(of_index) {
                noted.note_warning(|| warning.clone(), rows_of_each);
                continue;
            }
            let error = || target.error(unfit, column, row as u64 + 1);
            noted.note_error(error, rows_of_each)?;
        }
    }
    Ok(())
}
