//! What a kernel may make, and when it has to stop.
//!
//! A few nested calls make gigabytes of a letter: `hex(hex(hex(...)))`, `repeat(repeat(...))`. So every kernel says how
//! much it is going to make before it makes it. It does so in one place: it writes its texts into a [`TextWriter`],
//! which takes no more than is allowed.
//!
//! ```text
//!   one value     longer than max_allowed_packet: NULL, and warning 1301; error 1301 if NULL cannot be
//!   all values    of a batch, more than a share of the query memory: error 1041, or fewer rows at a time
//!   KILL          looked at before each call, between its rows, and within a long value
//! ```
//!
//! The limits belong to a session, and reach the kernels with the configuration that plans run under. Where there is
//! none, constants are folded. They are small there or stay as they were written. Their errors are reported when they
//! are evaluated, if they ever are.

use std::any::Any;
use std::cell::Cell;
use std::cmp;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};

use datafusion_common::config::{ConfigEntry, ConfigExtension, ExtensionOptions};
use datafusion_common::{DataFusionError, Result};
use memchr::memmem;
use sheaf_access::{AccessError, CancelFlag, cancel};
use sheaf_types::Collation;

use super::EvaluationError;
use super::random_numbers::SeededNumbers;

/// The longest text that is folded into a plan, in bytes.
const MAX_FOLDED_BYTES: usize = 64 << 10;

/// The most that a function makes of the values on which a condition is tried, to estimate it, in bytes.
const MAX_ESTIMATED_BYTES: usize = 16 << 20;

/// Messages of one statement that are kept; the others are counted.
const MAX_MESSAGES: usize = 1024;

/// What the calls of a session's statements may make.
#[derive(Clone, Debug)]
pub struct ResultLimits {
    /// The longest string (max_allowed_packet), in bytes.
    pub value_bytes: usize,
    /// All strings that one call makes for a batch, in bytes.
    pub batch_bytes: usize,
    /// Raised when the running statement shall end.
    pub cancel: CancelFlag,
    /// Where it is noted what was too long. `None`: that is an error.
    pub oversized: Option<OversizedResults>,
    /// What RAND() draws from.
    pub numbers: SeededNumbers,
}

/// A single row may take this many times what a batch is to take.
pub(crate) const PARTS_OF_ROW: usize = 4;
/// Functions that make long texts of short ones make this part of it at a time, and at least so many bytes. They are
/// evaluated for fewer rows then. Each call of a statement makes its texts, in each worker, and with half of all query
/// memory for each of them the process took more than it may before anybody had a row.
const LENGTHENED_PART: usize = 8;
const LEAST_LENGTHENED_BYTES: usize = 1 << 20;

impl ResultLimits {
    /// What a single row may take, in bytes.
    pub(crate) fn row_bytes(&self) -> usize {
        self.batch_bytes.saturating_mul(PARTS_OF_ROW)
    }

    /// What a function that makes long texts of short ones may make of several rows, in bytes.
    pub(crate) fn lengthened_bytes(&self) -> usize {
        let part = self.batch_bytes / LENGTHENED_PART;
        part.max(LEAST_LENGTHENED_BYTES.min(self.batch_bytes))
    }

    /// A warning in every mode. Where there is no statement that could have it, nothing happens.
    pub fn warn(&self, error: EvaluationError) {
        if let Some(oversized) = &self.oversized {
            oversized.warn(error);
        }
    }

    /// # Errors
    /// The statement has been told to stop.
    pub fn check(&self) -> Result<()> {
        let checked = self.cancel.check();
        checked.map_err(|error| DataFusionError::External(Box::new(error)))
    }

    /// # Errors
    /// 1041: a function has made so many bytes for a batch, and they are too many.
    pub fn check_batch(&self, function: &str, made_bytes: usize) -> Result<()> {
        match made_bytes <= self.row_bytes() {
            true => Ok(()),
            false => Err(EvaluationError::batch_too_large(function, self.row_bytes()).into()),
        }
    }
}

/// What ends a statement that has been told to stop. The statement knows why.
pub(crate) fn stopped() -> DataFusionError {
    DataFusionError::External(Box::new(AccessError::Cancelled))
}

/// To be called before so many bytes are taken at once that nobody has reserved.
///
/// # Errors
/// The process has no room for them, and the statement shall stop.
pub fn ask_for(bytes: usize) -> Result<()> {
    match sheaf_memory::has_room_for_value(bytes) {
        true => Ok(()),
        false => Err(stopped()),
    }
}

/// The limits of constants that are folded.
pub(super) static FOLDED: LazyLock<ResultLimits> = LazyLock::new(|| ResultLimits {
    value_bytes: MAX_FOLDED_BYTES,
    batch_bytes: MAX_ESTIMATED_BYTES,
    cancel: CancelFlag::new(),
    oversized: None,
    numbers: SeededNumbers::default(),
});

impl ConfigExtension for ResultLimits {
    const PREFIX: &'static str = "sheaf";
}

/// They are no options that a statement can set.
impl ExtensionOptions for ResultLimits {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn as_any_mut(&mut self) -> &mut dyn Any {
        self
    }

    fn cloned(&self) -> Box<dyn ExtensionOptions> {
        Box::new(self.clone())
    }

    fn set(&mut self, key: &str, _value: &str) -> Result<()> {
        datafusion_common::exec_err!("sheaf.{key} is not an option")
    }

    fn entries(&self) -> Vec<ConfigEntry> {
        Vec::new()
    }
}

/// What was too long in the running statement of a session.
#[derive(Clone, Debug, Default)]
pub struct OversizedResults(Arc<Noted>);

#[derive(Debug, Default)]
struct Noted {
    /// There is something to look at in `messages`.
    is_used: AtomicBool,
    /// It is an error.
    is_refused: AtomicBool,
    /// Counts the session's statements.
    statement: AtomicU64,
    messages: Mutex<Messages>,
}

#[derive(Debug, Default)]
struct Messages {
    /// Codes and texts.
    kept: Vec<(u16, String)>,
    count: u64,
}

impl OversizedResults {
    fn messages(&self) -> MutexGuard<'_, Messages> {
        let messages = self.0.messages.lock();
        messages.unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins a statement.
    pub fn begin(&self) {
        self.0.is_refused.store(false, Ordering::Release);
        self.0.statement.fetch_add(1, Ordering::Relaxed);
        if self.0.is_used.swap(false, Ordering::AcqRel) {
            *self.messages() = Messages::default();
        }
    }

    /// Another number for each of the session's statements. Plans that are kept run in several of them.
    pub(crate) fn statement(&self) -> u64 {
        self.0.statement.load(Ordering::Relaxed)
    }

    /// From now on it is an error: what comes out is stored, and the mode is a strict one.
    pub fn refuse(&self) {
        self.0.is_refused.store(true, Ordering::Release);
    }

    fn is_refused(&self) -> bool {
        self.0.is_refused.load(Ordering::Acquire)
    }

    /// Codes and texts of the messages so far, and how many there were besides. They are forgotten.
    pub fn take(&self) -> (Vec<(u16, String)>, u64) {
        if !self.0.is_used.swap(false, Ordering::AcqRel) {
            return (Vec::new(), 0);
        }
        let Messages { kept, count } = std::mem::take(&mut *self.messages());
        let others = count - kept.len() as u64;
        (kept, others)
    }

    /// # Errors
    /// The error itself, if it is refused.
    pub(crate) fn note(&self, error: EvaluationError) -> Result<()> {
        if self.is_refused() {
            return Err(error.into());
        }
        self.warn(error);
        Ok(())
    }

    /// As [`note`](Self::note), and never an error.
    fn warn(&self, error: EvaluationError) {
        let mut messages = self.messages();
        self.0.is_used.store(true, Ordering::Release);
        messages.count += 1;
        if messages.kept.len() < MAX_MESSAGES {
            messages.kept.push((error.code, error.message));
        }
    }
}

/// What one call has made so far, and may make besides.
pub(super) struct Account<'l> {
    limits: &'l ResultLimits,
    function: &'static str,
    value_bytes: usize,
    /// What several values may take.
    batch_bytes: usize,
    /// A result may be NULL.
    nullable: bool,
    made_bytes: usize,
}

impl<'l> Account<'l> {
    pub(super) fn new(
        limits: &'l ResultLimits,
        function: &'static str,
        bytewise: bool,
        nullable: bool,
    ) -> Account<'l> {
        // Half of all bytes take two as characters.
        let bytes_of_character = if bytewise { 2 } else { 1 };
        Account {
            limits,
            function,
            value_bytes: limits.value_bytes.saturating_mul(bytes_of_character),
            batch_bytes: limits.batch_bytes,
            nullable,
            made_bytes: 0,
        }
    }

    /// Of values that no client has asked for, but that rows are told apart by. They may be as long as a row, and none
    /// becomes NULL.
    pub(super) fn of_keys(self) -> Account<'l> {
        Account {
            value_bytes: self.limits.row_bytes(),
            nullable: false,
            ..self
        }
    }

    /// Of texts that may be many times as long as what they are made of.
    pub(super) fn of_lengthened(self) -> Account<'l> {
        Account {
            batch_bytes: self.limits.lengthened_bytes(),
            ..self
        }
    }

    /// Of documents: only their texts are as long as max_allowed_packet at most, and documents that are stored. What is
    /// folded stays short.
    pub(super) fn of_documents(self) -> Account<'l> {
        match &self.limits.oversized {
            Some(oversized) if !oversized.is_refused() => Account {
                value_bytes: usize::MAX,
                ..self
            },
            _ => self,
        }
    }

    /// The longest value.
    pub(super) fn value_bytes(&self) -> usize {
        self.value_bytes
    }

    /// Whether the statement has been told to stop. What is computed from then on does not matter: the call ends with
    /// [`check`](Self::check).
    pub(super) fn is_over(&self) -> bool {
        self.limits.cancel.is_cancelled()
    }

    /// # Errors
    /// The statement has been told to stop.
    pub(super) fn check(&self) -> Result<()> {
        self.limits.check()
    }

    /// Looks at values that were made already, so many for the rows and so many bytes together.
    ///
    /// # Errors
    /// As those of [`book`](Self::book).
    pub(super) fn check_made(&self, rows: usize, bytes: usize) -> Result<()> {
        if rows == 1 && bytes > self.value_bytes {
            let limit = self.limits.value_bytes;
            return Err(EvaluationError::result_too_large(self.function, limit).into());
        }
        let most = match rows {
            1 => self.limits.row_bytes(),
            _ => self.batch_bytes,
        };
        match bytes <= most {
            true => Ok(()),
            false => Err(EvaluationError::batch_too_large(self.function, most).into()),
        }
    }

    /// Books a value of so many bytes. False: it is too long, and becomes NULL.
    ///
    /// # Errors
    /// 1301 where it cannot become NULL, 1041 if it is too much for the batch; what [`check`](Self::check) says if the
    /// process has no room for it.
    pub(super) fn book(&mut self, bytes: usize) -> Result<bool> {
        if bytes > self.value_bytes {
            let error = EvaluationError::result_too_large(self.function, self.limits.value_bytes);
            match &self.limits.oversized {
                Some(oversized) if self.nullable => oversized.note(error)?,
                _ => return Err(error.into()),
            }
            return Ok(false);
        }
        let most = match self.made_bytes {
            // Less than one value cannot be made at a time.
            0 => self.limits.row_bytes(),
            _ => self.batch_bytes,
        };
        if !sheaf_memory::has_room_for_value(bytes) {
            self.check()?;
        }
        self.made_bytes = self.made_bytes.saturating_add(bytes);
        if self.made_bytes > most {
            let limit = self.batch_bytes;
            return Err(EvaluationError::batch_too_large(self.function, limit).into());
        }
        Ok(true)
    }
}

/// Whether a kernel shall stop in the middle of a value.
///
/// A kernel that goes through a long value takes it in stretches, or asks in each turn of a loop. When the statement
/// has been told to stop, no stretch follows. The kernel then makes something of what it has. That does not matter: the
/// flag is looked at behind each kernel.
///
/// ```text
///   value    aaaaaaaaaaaaaaaaa|aaaaaaaaaaaaaaaaa|aaaaaaaaaaaaaaaaa|aaaaaa
///   flag     ^ looked at      ^                 ^                 ^
/// ```
pub(super) struct Turns<'l> {
    cancel: &'l CancelFlag,
    taken: Cell<u32>,
    is_over: Cell<bool>,
}

impl<'l> Turns<'l> {
    /// Turns between two looks at the flag.
    const BETWEEN_LOOKS: u32 = 64;

    /// Bytes between two looks at the flag; an even number.
    const STRETCH_BYTES: usize = 64 << 10;

    pub(super) fn new(cancel: &'l CancelFlag) -> Turns<'l> {
        Turns {
            cancel,
            taken: Cell::new(0),
            is_over: Cell::new(false),
        }
    }

    /// For turns that take nanoseconds.
    pub(super) fn is_over(&self) -> bool {
        let taken = self.taken.get();
        self.taken.set(taken.wrapping_add(1));
        match taken % Self::BETWEEN_LOOKS {
            0 => self.is_over_now(),
            _ => self.is_over.get(),
        }
    }

    /// As [`is_over_now`](Self::is_over_now), for calls of constants, too: these have no flag of their own where they
    /// are folded, but the thread knows the one of the statement that it plans.
    pub(super) fn is_over_in_any_plan(&self) -> bool {
        if cancel::is_statement_cancelled() {
            self.is_over.set(true);
        }
        self.is_over_now()
    }

    /// For turns that take microseconds.
    pub(super) fn is_over_now(&self) -> bool {
        if self.cancel.is_cancelled() {
            self.is_over.set(true);
        }
        self.is_over.get()
    }

    /// A text, piece by piece. Forwards, each piece but the last has the same length, but for characters that are not
    /// cut.
    pub(super) fn stretches<'t>(&'l self, text: &'t str) -> Stretches<'t, 'l> {
        Stretches { text, turns: self }
    }

    /// The characters of a text.
    pub(super) fn characters<'t>(&'l self, text: &'t str) -> impl Iterator<Item = char> {
        self.stretches(text).flat_map(str::chars)
    }

    /// Bytes, piece by piece. Each piece but the last has the same, even length.
    pub(super) fn byte_stretches<'t>(&'l self, bytes: &'t [u8]) -> impl Iterator<Item = &'t [u8]> {
        let stretches = bytes.chunks(Self::STRETCH_BYTES);
        stretches.take_while(|_| !self.is_over_now())
    }

    /// The order of two texts.
    pub(super) fn compare(&self, collation: Collation, a: &str, b: &str) -> cmp::Ordering {
        let order = collation.compare_until(a, b, &|| self.is_over_now());
        order.unwrap_or(cmp::Ordering::Equal)
    }

    /// Appends the key of a text by a collation.
    pub(super) fn push_sort_key(&self, collation: Collation, text: &str, key: &mut Vec<u8>) {
        let _ = collation.sort_key_until(text, key, &|| self.is_over_now());
    }

    /// The first byte of a text in another.
    pub(super) fn find(&self, text: &str, wanted: &str) -> Option<usize> {
        let finder = memmem::Finder::new(wanted);
        let step = Self::STRETCH_BYTES.max(wanted.len());
        let mut start = 0;
        loop {
            // A piece ends where a text that begins in its last byte would end.
            let end = text.len().min(start + step + wanted.len());
            let found = finder.find(&text.as_bytes()[start..end]);
            if let Some(at) = found {
                return Some(start + at);
            }
            if end == text.len() || self.is_over_now() {
                return None;
            }
            start += step;
        }
    }
}

/// See [`Turns::stretches`].
pub(super) struct Stretches<'t, 'l> {
    text: &'t str,
    turns: &'l Turns<'l>,
}

impl<'t> Iterator for Stretches<'t, '_> {
    type Item = &'t str;

    fn next(&mut self) -> Option<&'t str> {
        if self.text.is_empty() || self.turns.is_over_now() {
            return None;
        }
        let end = self.text.floor_char_boundary(Turns::STRETCH_BYTES);
        let (first, rest) = self.text.split_at(end);
        self.text = rest;
        Some(first)
    }
}

impl DoubleEndedIterator for Stretches<'_, '_> {
    fn next_back(&mut self) -> Option<Self::Item> {
        if self.text.is_empty() || self.turns.is_over_now() {
            return None;
        }
        let start = self.text.len().saturating_sub(Turns::STRETCH_BYTES);
        let (rest, last) = self.text.split_at(self.text.ceil_char_boundary(start));
        self.text = rest;
        Some(last)
    }
}

/// The text of one value while a kernel writes it. It grows up to the longest value and no further: what is too long is
/// known to be, and the rest of it is never made. Nor is it made where the process has no room for it. Then the
/// statement has been told to stop.
#[derive(Debug)]
pub(super) struct TextWriter {
    text: String,
    most_bytes: usize,
    is_full: bool,
}

impl TextWriter {
    pub(super) fn new(most_bytes: usize) -> TextWriter {
        TextWriter {
            text: String::new(),
            most_bytes,
            is_full: false,
        }
    }

    /// Begins the next value.
    pub(super) fn clear(&mut self) {
        self.text.clear();
        self.is_full = false;
    }

    /// What is written; `None`: it would be too long.
    pub(super) fn written(&self) -> Option<&str> {
        (!self.is_full).then_some(self.text.as_str())
    }

    /// Takes what is written. [`written`](Self::written) has said that it is a value.
    pub(super) fn take(&mut self) -> String {
        std::mem::take(&mut self.text)
    }

    /// Says that so many bytes follow. False if they are too many: then nothing more is to be written.
    pub(super) fn expect(&mut self, bytes: usize) -> bool {
        self.is_full |= bytes > self.most_bytes.saturating_sub(self.text.len());
        if !self.is_full {
            self.make_room(bytes);
        }
        !self.is_full
    }

    fn make_room(&mut self, bytes: usize) {
        if bytes <= self.text.capacity() - self.text.len() {
            return;
        }
        // What is there is copied to a place of twice its size, or as long as it takes.
        let grown = (2 * self.text.capacity()).max(self.text.len() + bytes);
        match sheaf_memory::has_room_for_value(grown) {
            true => self.text.reserve(bytes),
            false => self.is_full = true,
        }
    }

    pub(super) fn push_str(&mut self, text: &str) {
        if self.expect(text.len()) {
            self.text.push_str(text);
        }
    }

    pub(super) fn push(&mut self, character: char) {
        self.push_str(character.encode_utf8(&mut [0; 4]));
    }

    /// The string itself, for what is known not to exceed what [`expect`](Self::expect) was told.
    pub(super) fn expected(&mut self, bytes: usize) -> Option<&mut String> {
        self.expect(bytes).then_some(&mut self.text)
    }
}

impl fmt::Write for TextWriter {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.push_str(text);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits() -> ResultLimits {
        ResultLimits {
            value_bytes: 10,
            batch_bytes: 25,
            cancel: CancelFlag::new(),
            oversized: Some(OversizedResults::default()),
            numbers: SeededNumbers::default(),
        }
    }

    fn code_of(result: Result<bool>) -> Option<u16> {
        let error = result.err()?;
        Some(EvaluationError::find(&error)?.code)
    }

    #[test]
    fn a_writer_takes_no_more_than_the_longest_value() {
        let mut writer = TextWriter::new(5);
        writer.push_str("four");
        writer.push('5');
        assert_eq!(writer.written(), Some("four5"));
        writer.push('6');
        assert_eq!(writer.written(), None);
        writer.clear();
        assert!(writer.expect(5) && !writer.expect(6));
        assert!(writer.text.capacity() < 64);
        writer.clear();
        assert!(!writer.expect(usize::MAX));
    }

    #[test]
    fn a_value_that_is_too_long_is_null_and_noted() {
        let limits = limits();
        let mut account = Account::new(&limits, "repeat", false, true);
        assert!(account.book(10).unwrap());
        assert!(!account.book(11).unwrap());
        let oversized = limits.oversized.clone().unwrap();
        let (messages, others) = oversized.take();
        assert_eq!((messages.len(), others), (1, 0));
        assert!(messages[0].1.contains("repeat"), "{messages:?}");
        assert_eq!(oversized.take(), (Vec::new(), 0));
        oversized.refuse();
        assert_eq!(code_of(account.book(11)), Some(1301));
        oversized.begin();
        assert!(!account.book(11).unwrap());
        let mut not_null = Account::new(&limits, "concat", false, false);
        assert_eq!(code_of(not_null.book(11)), Some(1301));
    }

    #[test]
    fn a_batch_has_a_limit_too() {
        let limits = limits();
        let mut account = Account::new(&limits, "repeat", false, true);
        assert!(account.book(10).unwrap() && account.book(10).unwrap());
        assert_eq!(code_of(account.book(10)), Some(1041));
    }

    #[test]
    fn functions_that_lengthen_make_less_at_a_time() {
        let limits = ResultLimits {
            value_bytes: 40 << 20,
            batch_bytes: 16 << 20,
            ..limits()
        };
        let of = |bytes| {
            let mut account = Account::new(&limits, "repeat", false, true).of_lengthened();
            account.book(bytes).and_then(|_| account.book(bytes))
        };
        assert!(of(1 << 20).unwrap());
        assert_eq!(code_of(of((1 << 20) + 1)), Some(1041));
        // One value may be long.
        let mut account = Account::new(&limits, "repeat", false, true).of_lengthened();
        assert!(account.book(40 << 20).unwrap());
        assert_eq!(self::limits().lengthened_bytes(), 25);
    }

    #[test]
    fn stretches_are_the_text() {
        let cancel = CancelFlag::new();
        let turns = Turns::new(&cancel);
        for text in ["", "a", "äß€"] {
            for count in [1, 50_000, 100_001] {
                let text = text.repeat(count);
                assert_eq!(turns.stretches(&text).collect::<String>(), text);
                let backwards: Vec<_> = turns.stretches(&text).rev().collect();
                assert_eq!(backwards.into_iter().rev().collect::<String>(), text);
                assert!(turns.characters(&text).eq(text.chars()));
                assert_eq!(
                    turns.byte_stretches(text.as_bytes()).flatten().count(),
                    text.len()
                );
            }
        }
        let text = "a".repeat(Turns::STRETCH_BYTES * 3);
        let mut stretches = turns.stretches(&text);
        assert!(stretches.next().is_some() && stretches.next_back().is_some());
        cancel.cancel();
        assert!(stretches.next().is_none() && stretches.next_back().is_none());
        assert_eq!(turns.byte_stretches(text.as_bytes()).count(), 0);
    }

    #[test]
    fn a_text_is_found_across_stretches() {
        let cancel = CancelFlag::new();
        let turns = Turns::new(&cancel);
        let stretch = Turns::STRETCH_BYTES;
        for length in [1, 2, 3, stretch - 1, stretch, 2 * stretch + 1] {
            let wanted = "b".repeat(length);
            for before in [
                0,
                1,
                stretch - 2,
                stretch - 1,
                stretch,
                stretch + 1,
                3 * stretch,
            ] {
                let text = "a".repeat(before) + &wanted + "aa";
                assert_eq!(
                    turns.find(&text, &wanted),
                    Some(before),
                    "{length} {before}"
                );
                assert_eq!(turns.find(&text[..before + length - 1], &wanted), None);
            }
        }
        assert_eq!(turns.find("", ""), Some(0));
        assert_eq!(turns.find("", "a"), None);
        let text = "a".repeat(3 * stretch) + "b";
        assert_eq!(turns.find(&text, "b"), Some(3 * stretch));
        cancel.cancel();
        assert_eq!(turns.find(&text, "b"), None);
    }

    #[test]
    fn a_cancelled_statement_is_noticed() {
        let limits = limits();
        let account = Account::new(&limits, "length", false, true);
        assert!(!account.is_over() && account.check().is_ok());
        limits.cancel.cancel();
        assert!(account.is_over() && account.check().is_err());
    }
}
