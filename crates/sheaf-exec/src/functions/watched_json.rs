//! JSON values that are converted, and what is noted of those that do not fit (see [`super::watched`]).

use sheaf_types::error::codes;
use sheaf_types::json::functions::coerce::{
    CoercionProblem, to_date, to_datetime, to_double, to_integer, to_time, to_wide_decimal,
};
use sheaf_types::json::{Json, text as json_text};

use super::EvaluationError;
use super::truncated::NumberKind;

/// What a JSON value is converted to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum JsonTarget {
    Integer,
    Double,
    Decimal,
    Date,
    DateTime,
    Time,
}

impl From<NumberKind> for JsonTarget {
    fn from(kind: NumberKind) -> JsonTarget {
        match kind {
            NumberKind::Integer => JsonTarget::Integer,
            NumberKind::Decimal => JsonTarget::Decimal,
            NumberKind::Double | NumberKind::Place(_) => JsonTarget::Double,
        }
    }
}

impl JsonTarget {
    /// As MySQL calls it.
    fn name(self) -> &'static str {
        match self {
            JsonTarget::Integer => "INTEGER",
            JsonTarget::Double => "DOUBLE",
            JsonTarget::Decimal => "DECIMAL",
            JsonTarget::Date => "DATE",
            JsonTarget::DateTime => "DATETIME/TIMESTAMP",
            JsonTarget::Time => "TIME",
        }
    }

    /// What is wrong with a value.
    pub(crate) fn problem(self, value: Json<'_>) -> Option<CoercionProblem> {
        match self {
            JsonTarget::Integer => to_integer(value).problem,
            JsonTarget::Double => to_double(value).problem,
            JsonTarget::Decimal => to_wide_decimal(value).problem,
            JsonTarget::Date => to_date(value).problem,
            JsonTarget::DateTime => to_datetime(value).problem,
            JsonTarget::Time => to_time(value).problem,
        }
    }

    /// 3155 and 3156, and 1292 for a DECIMAL beyond the integers.
    pub(super) fn error(
        self,
        (value, problem): (Json<'_>, CoercionProblem),
        column: &str,
        row: u64,
    ) -> EvaluationError {
        match problem {
            CoercionProblem::DecimalOutOfRange => {
                EvaluationError::truncated_text("DECIMAL", &json_text::to_text(value))
            }
            problem => problem.error(self.name(), column, row).into(),
        }
    }
}

impl EvaluationError {
    /// 3903 and 3904: a JSON value does not fit a key part of a functional index.
    pub(super) fn unfit_for_index(
        problem: CoercionProblem,
        index: &str,
    ) -> Option<EvaluationError> {
        let (code, what) = match problem {
            CoercionProblem::Invalid => (codes::INVALID_JSON_VALUE_FOR_FUNCTIONAL_INDEX, "Invalid"),
            CoercionProblem::OutOfRange => (
                codes::JSON_VALUE_OUT_OF_RANGE_FOR_FUNCTIONAL_INDEX,
                "Out of range",
            ),
            CoercionProblem::DecimalOutOfRange => return None,
        };
        Some(EvaluationError::new(
            code,
            format!("{what} JSON value for CAST for functional index '{index}'."),
        ))
    }
}

/// What messages call a value whose field has this name: that of a column or of a function, as in MySQL.
pub(super) fn shown_name(field: &str) -> String {
    match field.trim_start_matches('$') {
        // Of constants it is forgotten which function has made them.
        "" | "cast_json" => "cast_as_json".to_string(),
        name => name.to_string(),
    }
}
