//! Texts of which only a part is the number that is wanted.
//!
//! `'5 apples' + 1` is 6, with the warning "Truncated incorrect DOUBLE value: '5 apples'". Where a strict mode stores
//! what comes out, that is an error. Kernels convert without a word, since most conversions serve a comparison. But
//! where a select list computes with a text, the typing rule puts a function of `watched.rs` around it. The function
//! belongs to a session: it notes in a cell of this module what it has cut, and the session looks into that before it
//! says how its statement ended.
//!
//! Divisions by zero, which are NULL, are noted in the same way where the session watches for them (the mode
//! ERROR_FOR_DIVISION_BY_ZERO), and so are texts that STR_TO_DATE cannot read.
//!
//! What is noted of a row is noted only where MySQL computes that operand. So behind its operands each function has
//! conditions, and notes nothing of rows for which one of them is not true (`typing/reached.rs`).

use std::hash::{Hash, Hasher};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use datafusion_common::Result;
use sheaf_types::error::codes;
use sheaf_types::number::{is_double_text, is_integer_text};
use sheaf_types::temporal::{
    MAX_TIME, ZERO_DATETIME, datetime_of_number, read_datetime, read_partial_date, read_time,
    time_of_number,
};

use super::EvaluationError;

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
    pub(super) fn name(self) -> &'static str {
        match self {
            NumberKind::Double | NumberKind::Place(_) => "DOUBLE",
            NumberKind::Decimal => "DECIMAL",
            NumberKind::Integer => "INTEGER",
        }
    }

    /// The name of the function.
    pub(super) fn function_name(self) -> &'static str {
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
    pub(super) fn name(self) -> &'static str {
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
    pub(super) fn is_number_of_one(self, number: &str) -> bool {
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
pub struct TruncatedTexts {
    cell: Arc<Cell>,
    /// The functional index whose key parts are computed.
    index: Option<Arc<str>>,
}

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

/// One cell is equal to itself alone.
impl PartialEq for TruncatedTexts {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.cell, &other.cell) && self.index == other.index
    }
}

impl Eq for TruncatedTexts {}

impl Hash for TruncatedTexts {
    fn hash<H: Hasher>(&self, state: &mut H) {
        Arc::as_ptr(&self.cell).hash(state);
    }
}

impl TruncatedTexts {
    /// What was noted, to note something.
    fn write(&self) -> MutexGuard<'_, Noted> {
        let noted = self.cell.noted.lock();
        self.cell.is_used.store(true, Ordering::Release);
        noted.unwrap_or_else(PoisonError::into_inner)
    }

    /// The same cell, for what computes the key parts of a functional index. A JSON value that does not fit is never
    /// refused there, as in MySQL: its warning names the index.
    pub fn of_index(&self, index: &str) -> TruncatedTexts {
        TruncatedTexts {
            cell: Arc::clone(&self.cell),
            index: Some(index.into()),
        }
    }

    pub(super) fn index(&self) -> Option<&str> {
        self.index.as_deref()
    }

    /// Begins a statement.
    pub fn begin(&self) {
        self.cell.watches_divisions.store(false, Ordering::Relaxed);
        self.cell.watches_constants.store(false, Ordering::Relaxed);
        self.cell.watches_conditions.store(false, Ordering::Relaxed);
        self.cell.warns_of_constants.store(false, Ordering::Relaxed);
        if self.cell.is_used.load(Ordering::Acquire) {
            *self.write() = Noted::default();
            self.cell.is_used.store(false, Ordering::Release);
        }
    }

    /// From now on it is an error.
    pub fn refuse(&self) {
        self.write().is_refused = true;
    }

    /// Whether it is an error.
    pub fn is_refused(&self) -> bool {
        self.cell.is_used.load(Ordering::Acquire) && self.write().is_refused
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
        if is_sought && self.cell.warns_of_constants.load(Ordering::Relaxed) {
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
        match self.cell.is_used.load(Ordering::Acquire) {
            true => self.write().messages.len(),
            false => 0,
        }
    }

    /// What was noted after so many messages: of constants, where only planning happened since.
    pub fn messages_after(&self, known: usize) -> Vec<(u16, String)> {
        if !self.cell.is_used.load(Ordering::Acquire) {
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
        self.cell.watches_divisions.store(true, Ordering::Relaxed);
        self.watch_constant_divisors();
    }

    /// In queries that are planned from now on, conditions note divisions by a constant that is zero.
    pub fn watch_constant_divisors(&self) {
        self.cell.watches_constants.store(true, Ordering::Relaxed);
    }

    /// In statements that change rows and are planned from now on, divisions by zero in conditions are noted.
    /// `warns_of_constants`: what an indexed column is compared with is warned of, even where the rest is refused.
    pub fn watch_conditions(&self, warns_of_constants: bool) {
        let cell = &self.cell;
        cell.watches_conditions.store(true, Ordering::Relaxed);
        cell.warns_of_constants
            .store(warns_of_constants, Ordering::Relaxed);
    }

    pub fn watches_conditions(&self) -> bool {
        self.cell.watches_conditions.load(Ordering::Relaxed)
    }

    pub fn watches_constant_divisors(&self) -> bool {
        self.cell.watches_constants.load(Ordering::Relaxed)
    }

    pub fn watches_divisions(&self) -> bool {
        self.cell.watches_divisions.load(Ordering::Relaxed)
    }

    /// How many messages there are so far, and how many were counted.
    pub fn noted_so_far(&self) -> (usize, u64) {
        let noted = self.cell.noted.lock();
        let noted = noted.unwrap_or_else(PoisonError::into_inner);
        (noted.messages.len(), noted.count)
    }

    /// Whether a division by zero was noted since.
    pub fn has_divided_since(&self, (messages, _): (usize, u64)) -> bool {
        let noted = self.cell.noted.lock();
        let noted = noted.unwrap_or_else(PoisonError::into_inner);
        let mut later = noted.messages.iter().skip(messages);
        later.any(|(code, _)| *code == codes::DIVISION_BY_ZERO.number())
    }

    /// Forgets what was noted since: what noted it is done again.
    pub fn forget_since(&self, (messages, count): (usize, u64)) {
        let noted = self.cell.noted.lock();
        let mut noted = noted.unwrap_or_else(PoisonError::into_inner);
        noted.messages.truncate(messages);
        noted.count = noted.count.min(count);
    }

    /// Codes and texts of the messages so far, and how many there were besides. They are forgotten.
    pub fn take(&self) -> (Vec<(u16, String)>, u64) {
        if !self.cell.is_used.load(Ordering::Acquire) {
            return (Vec::new(), 0);
        }
        let mut noted = self.write();
        let messages = std::mem::take(&mut noted.messages);
        let others = std::mem::take(&mut noted.count) - messages.len() as u64;
        (messages, others)
    }

    /// A text that is cut in so many rows.
    pub(super) fn note(&self, kind: NumberKind, text: &str, rows: usize) -> Result<()> {
        self.note_error(|| EvaluationError::truncated_text(kind.name(), text), rows)
    }

    /// What would be an error, in so many rows.
    pub(super) fn note_error(
        &self,
        error: impl Fn() -> EvaluationError,
        rows: usize,
    ) -> Result<()> {
        if rows == 0 {
            return Ok(());
        }
        if self.is_refused() {
            return Err(error().into());
        }
        self.note_warning(error, rows);
        Ok(())
    }

    /// What is never an error, in so many rows.
    pub(super) fn note_warning(&self, error: impl Fn() -> EvaluationError, rows: usize) {
        let mut noted = self.write();
        noted.count += rows as u64;
        let room = rows.min(MAX_MESSAGES - noted.messages.len());
        if room > 0 {
            let EvaluationError { code, message, .. } = error();
            noted
                .messages
                .extend(std::iter::repeat_n((code, message), room));
        }
    }
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
