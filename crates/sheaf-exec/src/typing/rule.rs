//! What the typing rule knows besides an expression and its schema: the statement's texts, and what the expression is
//! for.
//!
//! From that follows whether a wrong value is an error, a warning for each row, or nothing.

use std::ops::Deref;

use arrow::datatypes::{DataType, Field, FieldRef};
use datafusion_common::metadata::FieldMetadata;
use datafusion_common::tree_node::TreeNode;
use datafusion_common::{Result, ScalarValue};
use datafusion_expr::{Expr, Operator, binary_expr, lit};
use sheaf_types::Collation;
use sheaf_types::temporal::{TimeZone, wall_clock_text};

use crate::functions::truncated::{NumberKind, TruncatedTexts};
use crate::functions::types::{Coercibility, SqlType, field};
use crate::functions::{EvaluationError, call};

/// What is to be known of a statement's texts, and of its day.
pub struct Texts {
    /// Of literals. Tells the connection's collation, unless it is the default.
    pub(super) literal_metadata: Option<FieldMetadata>,
    /// Takes down those that are cut to a number.
    pub(super) truncated: TruncatedTexts,
    /// The day on which a TIME is a point in time, counted from 1970-01-01.
    today: i32,
    /// That of the session.
    time_zone: TimeZone,
    /// Some are values of parameters.
    pub(super) are_parameters: bool,
    /// What is made of texts and numbers is no zero date (`sql_mode` NO_ZERO_DATE).
    pub(super) refuses_zero_dates: bool,
    /// No value is compared with a date of which only the month or the day is zero (`sql_mode` NO_ZERO_IN_DATE).
    pub(super) refuses_zero_in_dates: bool,
}

impl Texts {
    /// Literals compare by `collation` (`collation_connection`) where no column is compared with.
    pub fn of(collation: Collation, truncated: TruncatedTexts) -> Texts {
        let field = field::collated_text(collation, Coercibility::Coercible);
        let is_told = !field.metadata().is_empty();
        Texts {
            literal_metadata: is_told.then(|| FieldMetadata::from(field.metadata())),
            truncated,
            today: 0,
            time_zone: TimeZone::UTC,
            are_parameters: false,
            refuses_zero_dates: false,
            refuses_zero_in_dates: false,
        }
    }

    /// The field of a column that was made of these. A text that none of them is compares as literals do.
    pub fn column_made_of(&self, made: Field, parts: &[FieldRef]) -> Field {
        let is_text = |field: &FieldRef| {
            let ty = SqlType::of(field);
            ty.is_text() || matches!(ty, SqlType::Bytes | SqlType::Json)
        };
        let is_plain = *made.data_type() == DataType::Utf8View && made.metadata().is_empty();
        match &self.literal_metadata {
            Some(metadata) if is_plain && !parts.iter().any(is_text) => {
                made.with_metadata(metadata.to_hashmap())
            }
            _ => made,
        }
    }

    /// The same of literals that compare by another collation.
    pub fn of_collation(&self, collation: Collation) -> Texts {
        Texts {
            today: self.today,
            time_zone: self.time_zone,
            are_parameters: self.are_parameters,
            refuses_zero_dates: self.refuses_zero_dates,
            refuses_zero_in_dates: self.refuses_zero_in_dates,
            ..Texts::of(collation, self.truncated.clone())
        }
    }

    /// The zero date is NULL where a text or a number is to be a date.
    pub fn refusing_zero_dates(self, refuses_zero_dates: bool) -> Texts {
        Texts {
            refuses_zero_dates,
            ..self
        }
    }

    /// A text such as 2024-00-10 is none that dates are compared with.
    pub fn refusing_zero_in_dates(self, refuses_zero_in_dates: bool) -> Texts {
        Texts {
            refuses_zero_in_dates,
            ..self
        }
    }

    /// Constants of the statement may come from parameters.
    pub fn of_parameters(self, are_parameters: bool) -> Texts {
        Texts {
            are_parameters,
            ..self
        }
    }

    /// Divisions by zero in conditions are errors, as in a statement that changes rows.
    pub fn watch_conditions(&self) -> bool {
        self.truncated.watches_conditions()
    }

    /// How much has been noted while expressions were typed ([`TruncatedTexts::noted_so_far`]).
    pub fn noted_so_far(&self) -> (usize, u64) {
        self.truncated.noted_so_far()
    }

    /// Whether one that was typed since divides by a constant that is zero, where that is noted.
    pub fn has_divided_since(&self, noted: (usize, u64)) -> bool {
        self.truncated.has_divided_since(noted)
    }

    /// An expression is typed again: what it has noted since is forgotten.
    pub fn forget_since(&self, noted: (usize, u64)) {
        self.truncated.forget_since(noted);
    }

    /// What is no number where one is wanted is an error.
    pub fn are_refused(&self) -> bool {
        self.truncated.is_refused()
    }

    /// The statement runs on this day, counted from 1970-01-01.
    pub fn on_day(self, today: i32) -> Texts {
        Texts { today, ..self }
    }

    /// The statement's session has this time zone.
    pub fn in_time_zone(self, time_zone: TimeZone) -> Texts {
        Texts { time_zone, ..self }
    }

    /// A constant that gives a moment with an offset, `'2024-01-01 10:00:00+02:00'`, as the session's wall clock;
    /// `None` for all else. Texts that rows have are not read so.
    pub(super) fn wall_clock(&self, operand: &Expr) -> Option<Expr> {
        let Expr::Literal(value, metadata) = operand else {
            return None;
        };
        let wall_clock = wall_clock_text(value.try_as_str().flatten()?, self.time_zone)?;
        let wall_clock = ScalarValue::Utf8View(Some(wall_clock));
        Some(Expr::Literal(wall_clock, metadata.clone()))
    }

    /// A TIME as a point in time with so many fraction digits.
    pub(super) fn of_today(&self, time: Expr, fsp: u8) -> Expr {
        let today = lit(ScalarValue::Date32(Some(self.today)));
        call("$on_day", vec![time, lit(i64::from(fsp)), today])
    }
}

/// What an expression is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// An item of a select list.
    Shown,
    /// What rows are sorted by. Constants do not sort, so nobody computes them.
    Order,
    /// A part of a condition by which rows to be changed are found.
    ChangeCondition,
    /// Such a part that compares an indexed column with constants.
    Sought,
    /// A part of a condition of a query that divides by a constant that is zero.
    DividedCondition,
    Other,
    /// It is computed elsewhere, too, and what there is to note is noted there.
    Copy,
}

/// What nodes are given their meaning by: what is known of texts, and what the expression is for.
#[derive(Clone, Copy)]
pub(crate) struct Rule<'a> {
    pub(super) texts: &'a Texts,
    pub(super) purpose: Purpose,
}

impl Deref for Rule<'_> {
    type Target = Texts;

    fn deref(&self) -> &Texts {
        self.texts
    }
}

impl Rule<'_> {
    /// The rule for the same texts and another purpose.
    pub(super) fn for_purpose(self, purpose: Purpose) -> Self {
        Rule { purpose, ..self }
    }

    /// Whether what is wrong with an operand is noted where a row comes to it: in what is shown or stored, and in a
    /// condition where it is an error. Which warnings a condition gives does not depend on the plan.
    pub(super) fn watches(self) -> bool {
        match self.purpose {
            Purpose::Shown => true,
            Purpose::ChangeCondition => self.truncated.is_refused(),
            Purpose::Order
            | Purpose::Sought
            | Purpose::DividedCondition
            | Purpose::Other
            | Purpose::Copy => false,
        }
    }

    /// Whether anything is noted where a row comes to it.
    pub(super) fn has_conditions(self) -> bool {
        matches!(
            self.purpose,
            Purpose::Shown | Purpose::ChangeCondition | Purpose::DividedCondition
        )
    }

    /// Whether a division by zero is noted where a row comes to it.
    pub(super) fn watches_divisors(self) -> bool {
        match self.purpose {
            Purpose::Shown => self.truncated.watches_divisions(),
            Purpose::ChangeCondition => self.truncated.watches_conditions(),
            Purpose::DividedCondition => self.truncated.watches_constant_divisors(),
            Purpose::Order | Purpose::Sought | Purpose::Other | Purpose::Copy => false,
        }
    }

    /// Whether what is wrong with a constant is an error.
    pub(super) fn refuses(self) -> bool {
        self.truncated.is_refused()
    }

    /// What is wrong with a constant: added to `found`, for [`Self::with_found`], where rows may not come to it, and
    /// otherwise noted here.
    pub(super) fn note_constant(
        self,
        error: EvaluationError,
        found: &mut Vec<EvaluationError>,
    ) -> Result<()> {
        match self.purpose {
            _ if self.watches() => found.push(error),
            Purpose::Copy => {}
            _ => self.truncated.note_constant(error)?,
        }
        Ok(())
    }

    /// As [`Self::note_constant`], of a text that may be no such number.
    pub(super) fn note_constant_text(
        self,
        kind: NumberKind,
        text: &str,
        found: &mut Vec<EvaluationError>,
    ) -> Result<()> {
        match kind.is_whole(text) {
            true => Ok(()),
            false => self.note_constant(kind.error(text), found),
        }
    }

    /// The value, which notes what was found of its constants where all of the conditions are true.
    pub(super) fn with_found(
        self,
        value: Expr,
        found: Vec<EvaluationError>,
        conditions: &[Expr],
    ) -> Expr {
        let with = |value, error| self.truncated.of_constant(value, error, conditions);
        found.into_iter().fold(value, with)
    }

    /// AND or OR, where both conditions are computed. Rules that simplify see no constant behind the first one.
    pub(super) fn all_computed(self, left: Expr, op: Operator, right: Expr) -> Result<Expr> {
        Ok(match (is_of_rows(&right)?, op) {
            (true, op) => binary_expr(left, op, right),
            (false, Operator::And) => call("$both", vec![left, right]),
            (false, _) => call("$either", vec![left, right]),
        })
    }
}

/// Whether an expression may differ from row to row; false if rules that simplify make a constant of it.
pub(super) fn is_of_rows(expr: &Expr) -> Result<bool> {
    expr.exists(|expr| Ok(matches!(expr, Expr::Column(_) | Expr::ScalarFunction(_))))
}
