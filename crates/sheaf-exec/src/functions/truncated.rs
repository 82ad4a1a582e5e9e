//! Texts of which only a part is the number that is wanted.
//!
//! `'5 apples' + 1` is 6, with the warning "Truncated incorrect DOUBLE value: '5 apples'". Where a strict mode stores
//! what comes out, that is an error. Kernels convert without a word, since most conversions serve a comparison. But
//! where a select list computes with a text, the typing rule puts a function of this module around it. The function
//! belongs to a session: it notes in a cell what it has cut, and the session looks into that before it says how its
//! statement ended.
//!
//! Divisions by zero, which are NULL, are noted in the same way where the session watches for them (the mode
//! ERROR_FOR_DIVISION_BY_ZERO), and so are texts that STR_TO_DATE cannot read.
//!
//! What is noted of a row is noted only where MySQL computes that operand. So behind its operands each function has
//! conditions, and notes nothing of rows for which one of them is not true (`typing/reached.rs`).

use std::hash::{Hash, Hasher};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arrow::array::{
    Array, ArrayRef, AsArray, Decimal128Array, Float64Array, StringViewArray, UInt64Array,
};
use arrow::datatypes::{DataType, FieldRef};
use datafusion_common::{Result, ScalarValue, exec_err};
use datafusion_expr::expr::ScalarFunction;
use datafusion_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility, lit,
};
use sheaf_types::number::{
    is_double_text, is_integer_text, text_place, text_to_double, text_to_unsigned,
};
use sheaf_types::temporal::{
    MAX_TIME, ZERO_DATETIME, datetime_of_number, read_datetime, read_partial_date, read_time,
    time_of_number,
};

use super::EvaluationError;
use super::argument::{to_double, to_text};
use super::call_name::name_of_call;
use super::date_format::{Reading, reading};
use super::types::{MAX_PRECISION, SqlType};

/// The number that is made of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NumberKind {
    Double,
    /// A double here, too.
    Decimal,
    /// A whole number of 64 bits, negative ones modulo 2^64.
    Integer,
    /// The [place](sheaf_types::number::text_place) among numbers of so many decimals.
    Place(u8),
}

impl NumberKind {
    /// As MySQL calls it.
    fn name(self) -> &'static str {
        match self {
            NumberKind::Double | NumberKind::Place(_) => "DOUBLE",
            NumberKind::Decimal => "DECIMAL",
            NumberKind::Integer => "INTEGER",
        }
    }

    /// The name of the function.
    fn function_name(self) -> &'static str {
        match self {
            NumberKind::Double => "$double_of_text",
            NumberKind::Decimal => "$decimal_of_text",
            NumberKind::Integer => "$integer_of_text",
            NumberKind::Place(_) => "$place_of_text",
        }
    }

    /// 1292: the text is none.
    pub(crate) fn error(self, text: &str) -> EvaluationError {
        EvaluationError::truncated_text(self.name(), text)
    }

    /// Whether the whole text is such a number.
    pub fn is_whole(self, text: &str) -> bool {
        match self {
            NumberKind::Double | NumberKind::Decimal | NumberKind::Place(_) => is_double_text(text),
            NumberKind::Integer => is_integer_text(text),
        }
    }
}

/// What a text is read as that is to be a date or a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MomentKind {
    /// A date, with or without a time.
    DateTime,
    /// As that, but not the zero date.
    NonZeroDateTime,
    /// A date, also with a month or a day of zero.
    PartialDateTime,
    Time,
    /// A time, or a date with or without one.
    TimeOrDate,
}

impl MomentKind {
    /// As MySQL calls it.
    fn name(self) -> &'static str {
        match self {
            MomentKind::DateTime | MomentKind::NonZeroDateTime | MomentKind::PartialDateTime => {
                "datetime"
            }
            MomentKind::Time | MomentKind::TimeOrDate => "time",
        }
    }

    /// Whether the whole text is one.
    pub fn is_one(self, text: &str) -> bool {
        match self {
            MomentKind::DateTime => {
                read_datetime(text).is_ok_and(|read| !read.trailing && read.micros(6).is_ok())
            }
            MomentKind::NonZeroDateTime => {
                let micros = read_datetime(text).and_then(|read| read.micros(6));
                MomentKind::DateTime.is_one(text) && micros != Ok(ZERO_DATETIME)
            }
            MomentKind::PartialDateTime => {
                MomentKind::DateTime.is_one(text) || read_partial_date(text).is_some()
            }
            MomentKind::Time => read_time(text).is_ok_and(|read| !read.trailing && !read.is_cut),
            MomentKind::TimeOrDate => {
                MomentKind::Time.is_one(text) || MomentKind::PartialDateTime.is_one(text)
            }
        }
    }
}

impl MomentKind {
    /// Whether the digits of a number spell one. What is behind the point says nothing about that.
    fn is_number_of_one(self, number: &str) -> bool {
        let whole = number.split('.').next().unwrap_or_default();
        let Ok(whole) = whole.parse::<i64>() else {
            return false;
        };
        let is_time = || {
            matches!(self, MomentKind::Time | MomentKind::TimeOrDate)
                && time_of_number(whole).is_some_and(|micros| micros.abs() < MAX_TIME)
        };
        let is_partial =
            || self == MomentKind::PartialDateTime && read_partial_date(number).is_some();
        match datetime_of_number(whole) {
            Some(micros) => self != MomentKind::NonZeroDateTime || micros != ZERO_DATETIME,
            None => is_time() || is_partial(),
        }
    }
}

/// Messages of one statement that are kept; the others are counted.
const MAX_MESSAGES: usize = 1024;

/// What the running statement of a session has cut.
#[derive(Clone, Debug, Default)]
pub struct TruncatedTexts(Arc<Cell>);

#[derive(Debug, Default)]
struct Cell {
    /// There is something to look at in `noted`.
    is_used: AtomicBool,
    watches_divisions: AtomicBool,
    watches_constants: AtomicBool,
    watches_conditions: AtomicBool,
    warns_of_constants: AtomicBool,
    noted: Mutex<Noted>,
}

#[derive(Debug, Default)]
struct Noted {
    is_refused: bool,
    /// Codes and texts.
    messages: Vec<(u16, String)>,
    count: u64,
}

impl TruncatedTexts {
    /// What was noted, to note something.
    fn write(&self) -> MutexGuard<'_, Noted> {
        let noted = self.0.noted.lock();
        self.0.is_used.store(true, Ordering::Release);
        noted.unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins a statement.
    pub fn begin(&self) {
        self.0.watches_divisions.store(false, Ordering::Relaxed);
        self.0.watches_constants.store(false, Ordering::Relaxed);
        self.0.watches_conditions.store(false, Ordering::Relaxed);
        self.0.warns_of_constants.store(false, Ordering::Relaxed);
        if self.0.is_used.load(Ordering::Acquire) {
            *self.write() = Noted::default();
            self.0.is_used.store(false, Ordering::Release);
        }
    }

    /// From now on it is an error.
    pub fn refuse(&self) {
        self.write().is_refused = true;
    }

    /// Whether it is an error.
    pub fn is_refused(&self) -> bool {
        self.0.is_used.load(Ordering::Acquire) && self.write().is_refused
    }

    /// A constant that is not what it is compared with; the error says so. It is noted once, however often the
    /// statement is planned.
    ///
    /// # Errors
    /// Where it is refused, this one.
    pub fn note_constant(&self, error: EvaluationError) -> Result<()> {
        if self.is_refused() {
            return Err(error.into());
        }
        self.note_once(error);
        Ok(())
    }

    /// A division by a constant that is zero, in a condition. `is_sought`: it is compared with an indexed column, and
    /// computed before the statement looks at rows.
    ///
    /// # Errors
    /// Where it is refused, 1365.
    pub fn note_constant_division(&self, is_sought: bool) -> Result<()> {
        let error = EvaluationError::division_by_zero();
        if is_sought && self.0.warns_of_constants.load(Ordering::Relaxed) {
            self.note_once(error);
            return Ok(());
        }
        self.note_constant(error)
    }

    fn note_once(&self, error: EvaluationError) {
        let mut noted = self.write();
        let is_full = noted.messages.len() == MAX_MESSAGES;
        let is_known = |(_, message): &(u16, String)| *message == error.message;
        if is_full || !noted.messages.iter().any(is_known) {
            noted.count += 1;
            if !is_full {
                noted.messages.push((error.code, error.message));
            }
        }
    }

    /// How many messages there are so far, for [`Self::messages_after`].
    pub fn messages(&self) -> usize {
        match self.0.is_used.load(Ordering::Acquire) {
            true => self.write().messages.len(),
            false => 0,
        }
    }

    /// What was noted after so many messages: of constants, where only planning happened since.
    pub fn messages_after(&self, known: usize) -> Vec<(u16, String)> {
        if !self.0.is_used.load(Ordering::Acquire) {
            return Vec::new();
        }
        let noted = self.write();
        noted.messages.get(known..).unwrap_or_default().to_vec()
    }

    /// Notes what planning noted of constants, for a plan that is kept; each once in a statement. False where it is
    /// refused.
    pub fn note_again(&self, constants: &[(u16, String)]) -> bool {
        if constants.is_empty() {
            return true;
        }
        let mut noted = self.write();
        if noted.is_refused {
            return false;
        }
        for constant in constants {
            if !noted.messages.contains(constant) {
                noted.count += 1;
                if noted.messages.len() < MAX_MESSAGES {
                    noted.messages.push(constant.clone());
                }
            }
        }
        true
    }

    /// A constant text that is compared with a number.
    ///
    /// # Errors
    /// 1292 where it is refused and is no number as a whole.
    pub fn note_constant_text(&self, kind: NumberKind, text: &str) -> Result<()> {
        match kind.is_whole(text) {
            true => Ok(()),
            false => self.note_constant(EvaluationError::truncated_text(kind.name(), text)),
        }
    }

    /// In queries that are planned from now on, divisions by zero are noted.
    pub fn watch_divisions(&self) {
        self.0.watches_divisions.store(true, Ordering::Relaxed);
        self.watch_constant_divisors();
    }

    /// In queries that are planned from now on, conditions note divisions by a constant that is zero.
    pub fn watch_constant_divisors(&self) {
        self.0.watches_constants.store(true, Ordering::Relaxed);
    }

    /// In statements that change rows and are planned from now on, divisions by zero in conditions are noted.
    /// `warns_of_constants`: what an indexed column is compared with is warned of, even where the rest is refused.
    pub fn watch_conditions(&self, warns_of_constants: bool) {
        let cell = &self.0;
        cell.watches_conditions.store(true, Ordering::Relaxed);
        cell.warns_of_constants
            .store(warns_of_constants, Ordering::Relaxed);
    }

    pub fn watches_conditions(&self) -> bool {
        self.0.watches_conditions.load(Ordering::Relaxed)
    }

    pub fn watches_constant_divisors(&self) -> bool {
        self.0.watches_constants.load(Ordering::Relaxed)
    }

    pub fn watches_divisions(&self) -> bool {
        self.0.watches_divisions.load(Ordering::Relaxed)
    }

    /// How many messages there are so far, and how many were counted.
    pub fn noted_so_far(&self) -> (usize, u64) {
        let noted = self.0.noted.lock();
        let noted = noted.unwrap_or_else(PoisonError::into_inner);
        (noted.messages.len(), noted.count)
    }

    /// Forgets what was noted since: what noted it is done again.
    pub fn forget_since(&self, (messages, count): (usize, u64)) {
        let noted = self.0.noted.lock();
        let mut noted = noted.unwrap_or_else(PoisonError::into_inner);
        noted.messages.truncate(messages);
        noted.count = noted.count.min(count);
    }

    /// Codes and texts of the messages so far, and how many there were besides. They are forgotten.
    pub fn take(&self) -> (Vec<(u16, String)>, u64) {
        if !self.0.is_used.load(Ordering::Acquire) {
            return (Vec::new(), 0);
        }
        let mut noted = self.write();
        let messages = std::mem::take(&mut noted.messages);
        let others = std::mem::take(&mut noted.count) - messages.len() as u64;
        (messages, others)
    }

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
        let function = ScalarUDF::from(Divisor {
            texts: self.clone(),
            signature: Signature::variadic_any(Volatility::Volatile),
        });
        function.call(std::iter::once(operand).chain(conditions).collect())
    }

    /// An operand of a logarithm, which is looked at for what has none. `base`: of another operand's logarithm, which
    /// MySQL comes to behind it.
    pub fn logarithm(&self, operand: Expr, base: Option<Expr>) -> Expr {
        let function = ScalarUDF::from(LogarithmOf {
            texts: self.clone(),
            has_base: base.is_some(),
            signature: Signature::variadic_any(Volatility::Volatile),
        });
        function.call(std::iter::once(operand).chain(base).collect())
    }

    /// What STR_TO_DATE has made of a text by a format. It is noted where that is NULL or less than the text, and all
    /// conditions are true.
    pub fn parsed_date(&self, date: Expr, text: Expr, format: Expr) -> Expr {
        let function = ScalarUDF::from(ParsedDate {
            texts: self.clone(),
            signature: Signature::variadic_any(Volatility::Volatile),
        });
        function.call(vec![date, text, format])
    }

    /// Whether this is a function of this module. Its first operand is what it hands on, or makes a number of.
    pub fn notes(function: &str) -> bool {
        matches!(
            function,
            DIVISOR
                | LOGARITHM
                | PARSED_DATE
                | CONSTANT
                | FITTED
                | "$double_of_text"
                | "$decimal_of_text"
                | "$integer_of_text"
                | "$place_of_text"
                | "$watched_text"
        )
    }

    /// What a call of a function of this module hands on, where nothing is noted.
    pub(crate) fn silent(call: ScalarFunction) -> Expr {
        let ScalarFunction { func, mut args } = call;
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
        self.watched(TextKind::Moment(kind), text)
    }

    /// The text as it is. Where it is no number, that is noted.
    pub fn number_text(&self, kind: NumberKind, text: Expr) -> Expr {
        self.watched(TextKind::Number(kind), text)
    }

    fn watched(&self, kind: TextKind, text: Expr) -> Expr {
        let function = ScalarUDF::from(WatchedText {
            texts: self.clone(),
            kind,
            signature: Signature::variadic_any(Volatility::Volatile),
        });
        function.call(vec![text])
    }

    /// The DECIMAL that CAST has made of a number. It is noted where the number is out of the range of so many digits.
    pub fn fitted(&self, made: Expr, number: Expr) -> Expr {
        let function = ScalarUDF::from(Fitted {
            texts: self.clone(),
            signature: Signature::variadic_any(Volatility::Volatile),
        });
        function.call(vec![made, number])
    }

    /// What was made of a constant. What is wrong with the constant is noted where there is a row for which all of the
    /// conditions are true, once in a statement.
    pub fn of_constant(&self, value: Expr, error: EvaluationError, conditions: &[Expr]) -> Expr {
        let function = ScalarUDF::from(OfConstant {
            texts: self.clone(),
            error,
            signature: Signature::variadic_any(Volatility::Volatile),
        });
        function.call(
            std::iter::once(value)
                .chain(conditions.iter().cloned())
                .collect(),
        )
    }

    /// A text that is cut in so many rows.
    fn note(&self, kind: NumberKind, text: &str, rows: usize) -> Result<()> {
        self.note_error(|| EvaluationError::truncated_text(kind.name(), text), rows)
    }

    /// What would be an error, in so many rows.
    fn note_error(&self, error: impl Fn() -> EvaluationError, rows: usize) -> Result<()> {
        if rows == 0 {
            return Ok(());
        }
        let mut noted = self.write();
        if noted.is_refused {
            return Err(error().into());
        }
        noted.count += rows as u64;
        let room = rows.min(MAX_MESSAGES - noted.messages.len());
        if room > 0 {
            let EvaluationError { code, message, .. } = error();
            noted
                .messages
                .extend(std::iter::repeat_n((code, message), room));
        }
        Ok(())
    }
}

#[derive(Debug)]
struct NumberOfText {
    texts: TruncatedTexts,
    kind: NumberKind,
    signature: Signature,
}

impl PartialEq for NumberOfText {
    fn eq(&self, other: &Self) -> bool {
        self.kind == other.kind && Arc::ptr_eq(&self.texts.0, &other.texts.0)
    }
}

impl Eq for NumberOfText {}

impl Hash for NumberOfText {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.kind.hash(state);
        Arc::as_ptr(&self.texts.0).hash(state);
    }
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

/// What a text is watched for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum TextKind {
    Moment(MomentKind),
    Number(NumberKind),
}

/// Hands a text on, and notes where it is none of its kind. Of a number the text is that of its digits.
#[derive(Debug)]
struct WatchedText {
    texts: TruncatedTexts,
    kind: TextKind,
    signature: Signature,
}

impl WatchedText {
    /// `is_number`: the text is that of a number.
    fn is_bad(&self, text: &str, is_number: bool) -> bool {
        match self.kind {
            TextKind::Moment(kind) if is_number => !kind.is_number_of_one(text),
            TextKind::Moment(kind) => !kind.is_one(text),
            TextKind::Number(kind) => !kind.is_whole(text),
        }
    }

    fn error(&self, text: &str) -> EvaluationError {
        match self.kind {
            TextKind::Moment(kind) => EvaluationError::no_moment(kind.name(), text),
            TextKind::Number(kind) => EvaluationError::truncated_text(kind.name(), text),
        }
    }
}

impl PartialEq for WatchedText {
    fn eq(&self, other: &Self) -> bool {
        self.kind == other.kind && Arc::ptr_eq(&self.texts.0, &other.texts.0)
    }
}

impl Eq for WatchedText {}

impl Hash for WatchedText {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.kind.hash(state);
        Arc::as_ptr(&self.texts.0).hash(state);
    }
}

impl ScalarUDFImpl for WatchedText {
    fn name(&self) -> &str {
        "$watched_text"
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
        let Some((operand, conditions)) = args.args.split_first() else {
            return exec_err!("{} without its argument", self.name());
        };
        let (rows, rows_of_each) = rows_of(&args);
        let texts = to_text(&operand.to_array(rows)?, &args.arg_fields[0])?;
        let ty = SqlType::of(&args.arg_fields[0]);
        let is_number = ty.is_exact_number() || ty.is_float();
        for row in bad_rows(&texts, |text| self.is_bad(text, is_number), conditions)? {
            let error = || self.error(texts.value(row));
            self.texts.note_error(error, rows_of_each)?;
        }
        Ok(operand.clone())
    }
}

/// The name of the function of [`TruncatedTexts::of_constant`].
const CONSTANT: &str = "$of_constant";

/// Hands a value on that was made of a constant, and notes what is wrong with the constant where all conditions are
/// true.
#[derive(Debug)]
struct OfConstant {
    texts: TruncatedTexts,
    error: EvaluationError,
    signature: Signature,
}

impl PartialEq for OfConstant {
    fn eq(&self, other: &Self) -> bool {
        self.error.message == other.error.message && Arc::ptr_eq(&self.texts.0, &other.texts.0)
    }
}

impl Eq for OfConstant {}

impl Hash for OfConstant {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.error.message.hash(state);
        Arc::as_ptr(&self.texts.0).hash(state);
    }
}

impl ScalarUDFImpl for OfConstant {
    fn name(&self) -> &str {
        CONSTANT
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
        let Some((value, conditions)) = args.args.split_first() else {
            return exec_err!("{} without its argument", self.name());
        };
        let rows = (0..args.number_rows).collect();
        if !where_all_are_true(rows, conditions, args.number_rows)?.is_empty() {
            self.texts.note_constant(self.error.clone())?;
        }
        Ok(value.clone())
    }
}

/// The name of the function of [`TruncatedTexts::divisor`].
const DIVISOR: &str = "$divisor";

/// Hands its operand on, and notes the zeros in it where all conditions are true.
#[derive(Debug)]
struct Divisor {
    texts: TruncatedTexts,
    signature: Signature,
}

impl PartialEq for Divisor {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.texts.0, &other.texts.0)
    }
}

impl Eq for Divisor {}

impl Hash for Divisor {
    fn hash<H: Hasher>(&self, state: &mut H) {
        Arc::as_ptr(&self.texts.0).hash(state);
    }
}

impl ScalarUDFImpl for Divisor {
    fn name(&self) -> &str {
        DIVISOR
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
        let Some((operand, conditions)) = args.args.split_first() else {
            return exec_err!("{} without its operand", self.name());
        };
        let (rows, rows_of_each) = rows_of(&args);
        let numbers = to_double(&operand.to_array(rows)?, &args.arg_fields[0])?;
        let zeros = (0..rows)
            .filter(|row| numbers.is_valid(*row) && numbers.value(*row) == 0.0)
            .collect();
        let zeros = where_all_are_true(zeros, conditions, rows)?;
        self.texts.note_error(
            EvaluationError::division_by_zero,
            zeros.len() * rows_of_each,
        )?;
        Ok(operand.clone())
    }
}

/// The name of the function of [`TruncatedTexts::logarithm`].
const LOGARITHM: &str = "$logarithm_of";

/// Hands its operand on, and notes where it has no logarithm and all conditions are true. With a base it is looked at
/// where the base is positive; of the base 1 nothing has a logarithm.
#[derive(Debug)]
struct LogarithmOf {
    texts: TruncatedTexts,
    has_base: bool,
    signature: Signature,
}

impl PartialEq for LogarithmOf {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.texts.0, &other.texts.0) && self.has_base == other.has_base
    }
}

impl Eq for LogarithmOf {}

impl Hash for LogarithmOf {
    fn hash<H: Hasher>(&self, state: &mut H) {
        Arc::as_ptr(&self.texts.0).hash(state);
        self.has_base.hash(state);
    }
}

impl ScalarUDFImpl for LogarithmOf {
    fn name(&self) -> &str {
        LOGARITHM
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
        let (rows, rows_of_each) = rows_of(&args);
        let numbers = |at: usize| to_double(&args.args[at].to_array(rows)?, &args.arg_fields[at]);
        let operands = numbers(0)?;
        let bases = match self.has_base {
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
        let conditions = &args.args[1 + usize::from(self.has_base)..];
        let found = where_all_are_true(found, conditions, rows)?;
        self.texts
            .note_error(EvaluationError::no_logarithm, found.len() * rows_of_each)?;
        Ok(args.args[0].clone())
    }
}

/// The name of the function of [`TruncatedTexts::parsed_date`].
const PARSED_DATE: &str = "$parsed_date";

/// Hands a date on, and notes the texts that it was not made of as a whole, where all conditions are true.
#[derive(Debug)]
struct ParsedDate {
    texts: TruncatedTexts,
    signature: Signature,
}

impl PartialEq for ParsedDate {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.texts.0, &other.texts.0)
    }
}

impl Eq for ParsedDate {}

impl Hash for ParsedDate {
    fn hash<H: Hasher>(&self, state: &mut H) {
        Arc::as_ptr(&self.texts.0).hash(state);
    }
}

impl ScalarUDFImpl for ParsedDate {
    fn name(&self) -> &str {
        PARSED_DATE
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
        let [date, text, format, conditions @ ..] = args.args.as_slice() else {
            return exec_err!("{} without its operands", self.name());
        };
        let (rows, rows_of_each) = rows_of(&args);
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
            self.texts.note_error(error, rows_of_each)?;
        }
        Ok(date.clone())
    }
}

/// Digits of a DECIMAL that a double tells apart.
const DOUBLE_DIGITS: u8 = 15;

/// The name of the function of [`TruncatedTexts::fitted`].
const FITTED: &str = "$fitted_decimal";

/// Hands a DECIMAL on, and notes where the number that it was made of is out of its range and all conditions are true.
#[derive(Debug)]
struct Fitted {
    texts: TruncatedTexts,
    signature: Signature,
}

impl PartialEq for Fitted {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.texts.0, &other.texts.0)
    }
}

impl Eq for Fitted {}

impl Hash for Fitted {
    fn hash<H: Hasher>(&self, state: &mut H) {
        Arc::as_ptr(&self.texts.0).hash(state);
    }
}

impl ScalarUDFImpl for Fitted {
    fn name(&self) -> &str {
        FITTED
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
        let [made, number, conditions @ ..] = args.args.as_slice() else {
            return exec_err!("{} without its operands", self.name());
        };
        let (rows, rows_of_each) = rows_of(&args);
        let numbers = to_double(&number.to_array(rows)?, &args.arg_fields[1])?;
        let DataType::Decimal128(precision, scale) = *args.arg_fields[0].data_type() else {
            return exec_err!("{} of no DECIMAL", self.name());
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
            self.texts.note_error(error, rows_of_each)?;
        }
        Ok(made.clone())
    }
}

/// How many rows operands have, and for how many rows of the batch each of these stands.
fn rows_of(args: &ScalarFunctionArgs) -> (usize, usize) {
    let is_scalar = |value: &ColumnarValue| matches!(value, ColumnarValue::Scalar(_));
    match args.args.iter().all(is_scalar) {
        true => (1, args.number_rows),
        false => (args.number_rows, 1),
    }
}

/// The rows whose text is bad and for which all conditions are true.
fn bad_rows(
    texts: &StringViewArray,
    is_bad: impl Fn(&str) -> bool,
    conditions: &[ColumnarValue],
) -> Result<Vec<usize>> {
    let rows = texts.iter().enumerate();
    let bad = rows.filter_map(|(row, text)| text.is_some_and(&is_bad).then_some(row));
    where_all_are_true(bad.collect(), conditions, texts.len())
}

/// Those of `found` for which all conditions are true.
fn where_all_are_true(
    mut found: Vec<usize>,
    conditions: &[ColumnarValue],
    rows: usize,
) -> Result<Vec<usize>> {
    for condition in conditions {
        if found.is_empty() {
            break;
        }
        let condition = condition.to_array(rows)?;
        let condition = condition.as_boolean();
        found.retain(|row| condition.is_valid(*row) && condition.value(*row));
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_are_counted_and_some_kept() {
        let texts = TruncatedTexts::default();
        for _ in 0..MAX_MESSAGES {
            texts.note(NumberKind::Integer, "5 apples", 2).unwrap();
        }
        let (messages, others) = texts.take();
        assert_eq!(
            messages[0].1,
            "Truncated incorrect INTEGER value: '5 apples'"
        );
        assert_eq!(
            (messages.len(), others),
            (MAX_MESSAGES, MAX_MESSAGES as u64)
        );
        assert_eq!(texts.take(), (Vec::new(), 0));
        texts.refuse();
        assert!(texts.note(NumberKind::Integer, "abc", 0).is_ok());
        assert!(texts.note(NumberKind::Integer, "abc", 1).is_err());
        texts.begin();
        assert!(texts.note(NumberKind::Integer, "abc", 1).is_ok());
    }

    #[test]
    fn constants_are_noted_once() {
        let texts = TruncatedTexts::default();
        for text in ["1bad", "1", "1bad", " 2.5e1 "] {
            texts.note_constant_text(NumberKind::Double, text).unwrap();
        }
        let message = "Truncated incorrect DOUBLE value: '1bad'".to_string();
        assert_eq!(texts.take(), (vec![(1292, message)], 0));
        texts.refuse();
        assert!(texts.note_constant_text(NumberKind::Double, "1").is_ok());
        assert!(
            texts
                .note_constant_text(NumberKind::Double, "1bad")
                .is_err()
        );
    }
}
