//! RANGE frames with distances: what the order is computed in, and the distances in it.
//!
//! The frame of a row goes from one bound to another, and a bound is the row's key plus or minus a distance. DataFusion
//! adds in the type of the key. Where a sum leaves that type, it takes the edge of the partition, or 0. Neither is
//! right: at the edge lie the rows whose key is NULL, and a row with the key 0 may be nearer than the distance.
//!
//! ```text
//!   x TINYINT, ORDER BY x DESC RANGE BETWEEN CURRENT ROW AND 20 FOLLOWING
//!
//!      127 ... -110  -120  NULL        -120 - 20 is no TINYINT; NULL is not within 20 of -120
//! ```
//!
//! So keys get a type that holds the sum of any value and any distance, and a distance that is longer than any two
//! values are apart is cut to one that is just longer. Distances of exact numbers are rounded to the decimals of the
//! key: of whole numbers, `1.5 PRECEDING` begins a frame where `1 PRECEDING` does, and ends one where `2 PRECEDING`
//! does.

use std::cmp::Ordering;

use arrow::datatypes::{DataType, Field, IntervalMonthDayNano, TimeUnit, i256};
use datafusion_common::{DFSchema, DataFusionError, Result, ScalarValue, exec_err};
use datafusion_expr::{Expr, WindowFrame, WindowFrameBound};
use sheaf_types::error::codes::{self, ErrorCode};
use sheaf_types::temporal::DAY;

use super::cast;
use super::expression_type::{field_of, type_of};
use crate::functions::interval::Span;
use crate::functions::types::{HEX_OF_KEY, MAX_PRECISION, SqlType};
use crate::functions::{EvaluationError, call};

/// No two points in time are as many months apart, and no two days.
const FARTHEST_MONTHS: i64 = 12 * 20_000;
const FARTHEST_DAYS: i64 = 366 * 20_000;
const NANOS_OF_MICROSECOND: i64 = 1_000;

/// 3587 for distances along an ENUM or SET, whose key is a number, and which is none.
pub(super) fn check_order(order: &Expr, frame: &WindowFrame, schema: &DFSchema) -> Result<()> {
    let is_label = matches!(type_of(order, schema)?, SqlType::Enum { .. });
    match is_label && Distance::all_of(frame).next().is_some() {
        true => Err(no_distances()),
        false => Ok(()),
    }
}

/// Makes the key one that a frame can run over, and the distances of the frame values of its type.
///
/// # Errors
/// 3587, 3588 and 3589 for distances that the key's type does not have.
pub(super) fn range_key(key: Expr, frame: &mut WindowFrame, schema: &DFSchema) -> Result<Expr> {
    let field = field_of(&key, schema)?;
    let mut distances: Vec<Distance> = Distance::all_of(frame).collect();
    if distances.is_empty() {
        // DataFusion knows no ranges of bytes, nor of spans of time.
        return Ok(match field.data_type() {
            // The hexadecimal digits order as the bytes do.
            DataType::Binary => call(HEX_OF_KEY, vec![key]),
            DataType::Duration(_) => cast(key, DataType::Int64),
            _ => key,
        });
    }
    check_distances(field.data_type(), &distances)?;
    let mut way = Way::of(&field, &distances)?;
    if is_turned(&way, &distances)? {
        // Only rows whose key is NULL have rows in such a frame: their peers.
        for distance in &mut distances {
            distance.text = None;
        }
        way = Way::of(&field, &distances)?;
    }
    for distance in &distances {
        let value = way.value(distance)?;
        let bound = match distance.is_end {
            false => &mut frame.start_bound,
            true => &mut frame.end_bound,
        };
        *bound = match distance.follows {
            false => WindowFrameBound::Preceding(value),
            true => WindowFrameBound::Following(value),
        };
    }
    Ok(match way.key_type() == *field.data_type() {
        true => key,
        false => cast(key, way.key_type()),
    })
}

/// A bound of a frame that is neither the row nor an end of the partition.
struct Distance {
    is_end: bool,
    follows: bool,
    /// `1.5`, or `1 MONTH`. `None`: farther than any row.
    text: Option<String>,
}

impl Distance {
    fn all_of(frame: &WindowFrame) -> impl Iterator<Item = Distance> {
        let bounds = [(false, &frame.start_bound), (true, &frame.end_bound)];
        bounds.into_iter().filter_map(|(is_end, bound)| {
            let (follows, value) = match bound {
                WindowFrameBound::Preceding(value) => (false, value),
                WindowFrameBound::Following(value) => (true, value),
                WindowFrameBound::CurrentRow => return None,
            };
            let text = value.try_as_str().flatten()?.to_string();
            Some(Distance {
                is_end,
                follows,
                text: Some(text),
            })
        })
    }

    /// A part of a unit that is cut lies within the frame, or beyond it. Then the whole unit is.
    fn rounds_up(&self) -> bool {
        self.is_end != self.follows
    }

    /// The digits of the number in units of so many decimals, and whether there is something behind them. `None`: it is
    /// farther than any row.
    fn digits(&self, decimals: u8) -> Result<Option<(String, bool)>> {
        let Some(text) = &self.text else {
            return Ok(None);
        };
        let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
        let mut digits = whole.bytes().chain(fraction.bytes());
        if !digits.all(|byte| byte.is_ascii_digit()) {
            return exec_err!("'{text}' is no distance of a frame");
        }
        let (kept, cut) = fraction.split_at(fraction.len().min(usize::from(decimals)));
        let zeros = "0".repeat(usize::from(decimals) - kept.len());
        let rest = cut.bytes().any(|digit| digit != b'0');
        Ok(Some((format!("{whole}{kept}{zeros}"), rest)))
    }

    /// The number in units of so many decimals, at most `farthest`.
    fn scaled(&self, decimals: u8, farthest: i128) -> Result<i128> {
        let Some((digits, rest)) = self.digits(decimals)? else {
            return Ok(farthest);
        };
        let units = digits.bytes().fold(0i128, |sum, digit| {
            sum.saturating_mul(10)
                .saturating_add(i128::from(digit - b'0'))
        });
        let rest = i128::from(rest && self.rounds_up());
        Ok(units.saturating_add(rest).min(farthest))
    }

    /// The same in twice as many bits, where no two numbers are farther apart than 10^60.
    fn scaled_wide(&self, decimals: u8) -> Result<i256> {
        const LONGEST: usize = 60;
        let farthest =
            i256::from_i128(10i128.pow(30)).wrapping_mul(i256::from_i128(10i128.pow(30)));
        let Some((digits, rest)) = self.digits(decimals)? else {
            return Ok(farthest);
        };
        let digits = digits.trim_start_matches('0');
        let units = match digits.len() {
            0 => Some(i256::ZERO),
            1..=LONGEST => i256::from_string(digits),
            _ => None,
        };
        let rest = i256::from_i128(i128::from(rest && self.rounds_up()));
        Ok(units.map_or(farthest, |units| units.wrapping_add(rest)))
    }

    fn span(&self) -> Result<Option<Span>> {
        let Some(text) = &self.text else {
            return Ok(None);
        };
        let span = text
            .rsplit_once(' ')
            .and_then(|(amount, unit)| Span::read(amount, unit));
        match span {
            Some(span) => Ok(Some(span)),
            None => Err(unsupported(&format!("INTERVAL {text}"))),
        }
    }
}

/// How bounds are computed.
enum Way {
    /// As whole numbers, with distances up to this one.
    Whole {
        farthest: i64,
    },
    /// As exact numbers of so many decimals.
    Exact {
        decimals: u8,
        farthest: i128,
    },
    /// As exact numbers for whose sums 128 bits are too few.
    Wide {
        decimals: u8,
    },
    Double,
    /// As points in time.
    Moment {
        key: DataType,
    },
    /// As microseconds.
    Time,
}

/// MySQL's TIME is within 839 hours of 0.
const FARTHEST_TIME: i64 = 100 * DAY;

impl Way {
    fn of(key: &Field, distances: &[Distance]) -> Result<Way> {
        let day_is_divided = || -> Result<bool> {
            for distance in distances {
                if distance.span()?.is_some_and(|span| span.micros % DAY != 0) {
                    return Ok(true);
                }
            }
            Ok(false)
        };
        Ok(match key.data_type() {
            // The edges are right where no key is NULL.
            DataType::Int64 if !key.is_nullable() && fit(distances, 0, i64::MAX.into())? => {
                Way::Whole { farthest: i64::MAX }
            }
            DataType::Int64 | DataType::UInt64 => Way::Exact {
                decimals: 0,
                farthest: 1 << 65,
            },
            ty if ty.is_integer() => Way::Whole { farthest: 1 << 33 },
            DataType::Decimal128(precision, decimals) => {
                let decimals = u8::try_from(*decimals).unwrap_or(0);
                // What is left of 128 bits beside a value of this precision.
                let (most, left) = (10i128.pow(u32::from(*precision)), 7 * 10i128.pow(37));
                match most <= left / 2 {
                    true => Way::Exact {
                        decimals,
                        farthest: 2 * most,
                    },
                    false if fit(distances, decimals, left)? => Way::Exact {
                        decimals,
                        farthest: left,
                    },
                    false => Way::Wide { decimals },
                }
            }
            DataType::Decimal256(_, decimals) => Way::Wide {
                decimals: u8::try_from(*decimals).unwrap_or(0),
            },
            DataType::Date32 if day_is_divided()? => Way::Moment {
                key: DataType::Timestamp(TimeUnit::Microsecond, None),
            },
            ty @ (DataType::Date32 | DataType::Timestamp(..)) => Way::Moment { key: ty.clone() },
            DataType::Duration(_) => {
                for distance in distances {
                    if distance.span()?.is_some_and(|span| span.months != 0) {
                        return Err(unsupported("INTERVAL of months over TIME"));
                    }
                }
                Way::Time
            }
            _ => Way::Double,
        })
    }

    fn key_type(&self) -> DataType {
        match self {
            Way::Whole { .. } | Way::Time => DataType::Int64,
            Way::Exact { decimals, .. } => DataType::Decimal128(MAX_PRECISION, *decimals as i8),
            Way::Wide { decimals } => DataType::Decimal256(76, *decimals as i8),
            Way::Double => DataType::Float64,
            Way::Moment { key } => key.clone(),
        }
    }

    fn value(&self, distance: &Distance) -> Result<ScalarValue> {
        Ok(match self {
            Way::Whole { farthest } => {
                let units = distance.scaled(0, i128::from(*farthest))?;
                ScalarValue::Int64(Some(i64::try_from(units).unwrap_or(*farthest)))
            }
            Way::Exact { decimals, farthest } => {
                let units = distance.scaled(*decimals, *farthest)?;
                ScalarValue::Decimal128(Some(units), MAX_PRECISION, *decimals as i8)
            }
            Way::Wide { decimals } => {
                let units = distance.scaled_wide(*decimals)?;
                ScalarValue::Decimal256(Some(units), 76, *decimals as i8)
            }
            Way::Double => {
                let number = match &distance.text {
                    None => f64::INFINITY,
                    Some(text) => match text.parse::<f64>() {
                        Ok(number) => number,
                        Err(_) => return exec_err!("'{text}' is no distance of a frame"),
                    },
                };
                ScalarValue::Float64(Some(number))
            }
            Way::Moment { .. } => {
                let farthest = Span {
                    months: FARTHEST_MONTHS,
                    micros: 0,
                };
                let span = distance.span()?.unwrap_or(farthest);
                let days = (span.micros / DAY).min(FARTHEST_DAYS);
                ScalarValue::IntervalMonthDayNano(Some(IntervalMonthDayNano::new(
                    span.months.min(FARTHEST_MONTHS) as i32,
                    days as i32,
                    span.micros % DAY * NANOS_OF_MICROSECOND,
                )))
            }
            Way::Time => {
                let span = distance.span()?;
                let micros = span.map_or(FARTHEST_TIME, |span| span.micros);
                ScalarValue::Int64(Some(micros.min(FARTHEST_TIME)))
            }
        })
    }
}

/// Whether no distance is longer than so many units of these decimals.
fn fit(distances: &[Distance], decimals: u8, longest: i128) -> Result<bool> {
    for distance in distances {
        if distance.scaled(decimals, i128::MAX)? > longest {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Whether a frame ends before it begins, whatever row it is of.
///
/// # Errors
/// 1235 where that depends on the lengths of months.
fn is_turned(way: &Way, distances: &[Distance]) -> Result<bool> {
    let [start, end] = distances else {
        return Ok(false);
    };
    if start.follows != end.follows {
        return Ok(false);
    }
    let order = match way {
        Way::Moment { .. } => match (start.span()?, end.span()?) {
            (Some(from), Some(to)) => from.compare(&to),
            _ => Some(Ordering::Equal),
        },
        way => way.value(start)?.partial_cmp(&way.value(end)?),
    };
    let Some(order) = order else {
        return Err(unsupported("between months and days"));
    };
    Ok(match start.follows {
        true => order == Ordering::Greater,
        false => order == Ordering::Less,
    })
}

/// 1235.
fn unsupported(what: &str) -> DataFusionError {
    let text = format!("This version of Sheaf doesn't yet support 'a frame of RANGE {what}'");
    EvaluationError::new(codes::NOT_SUPPORTED_YET, text).into()
}

/// 3587: texts and the like have no distances.
fn no_distances() -> DataFusionError {
    let text = "Window '<unnamed window>' with RANGE N PRECEDING/FOLLOWING frame requires exactly one deterministic \
                ORDER BY expression, of numeric or temporal type";
    EvaluationError::new(codes::WINDOW_RANGE_FRAME_ORDER_TYPE, text).into()
}

/// Distances of points in time are intervals, distances of numbers are numbers, and texts have none.
fn check_distances(ty: &DataType, distances: &[Distance]) -> Result<()> {
    // `1 MONTH`
    let is_interval = |distance: &Distance| {
        distance
            .text
            .as_ref()
            .is_some_and(|text| text.contains(' '))
    };
    let has_intervals = distances.iter().any(is_interval);
    let has_numbers = !distances.iter().all(is_interval);
    let is_time = matches!(
        ty,
        DataType::Date32 | DataType::Timestamp(..) | DataType::Duration(_)
    );
    let wrong = |code: ErrorCode, what: &str| {
        let text = format!("Window '<unnamed window>' with RANGE {what}");
        Err(EvaluationError::new(code, text).into())
    };
    match ty {
        _ if is_time && has_numbers => wrong(
            codes::WINDOW_RANGE_FRAME_TEMPORAL_TYPE,
            "frame has ORDER BY expression of datetime type. Only INTERVAL bound value allowed.",
        ),
        _ if is_time => Ok(()),
        ty if !ty.is_numeric() => Err(no_distances()),
        _ if has_intervals => wrong(
            codes::WINDOW_RANGE_FRAME_NUMERIC_TYPE,
            "frame has ORDER BY expression of numeric type, INTERVAL bound value not allowed.",
        ),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use datafusion_expr::{WindowFrameUnits, col};

    use super::*;

    fn after(text: &str) -> WindowFrameBound {
        WindowFrameBound::Following(ScalarValue::from(text))
    }

    fn before(text: &str) -> WindowFrameBound {
        WindowFrameBound::Preceding(ScalarValue::from(text))
    }

    /// The type of the key, and the distances of the frame.
    fn typed(
        ty: DataType,
        is_nullable: bool,
        start: WindowFrameBound,
        end: WindowFrameBound,
    ) -> (DataType, Vec<ScalarValue>) {
        let field = Field::new("k", ty, is_nullable);
        let schema = DFSchema::from_unqualified_fields(vec![field].into(), Default::default());
        let schema = schema.expect("a schema");
        let mut frame = WindowFrame::new_bounds(WindowFrameUnits::Range, start, end);
        let key = range_key(col("k"), &mut frame, &schema).expect("a key");
        let distances = [frame.start_bound, frame.end_bound];
        let distances = distances.into_iter().filter_map(|bound| match bound {
            WindowFrameBound::Preceding(value) | WindowFrameBound::Following(value) => Some(value),
            WindowFrameBound::CurrentRow => None,
        });
        let ty = field_of(&key, &schema)
            .expect("a field")
            .data_type()
            .clone();
        (ty, distances.collect())
    }

    #[test]
    fn distances_of_whole_numbers_are_rounded_into_the_frame() {
        let whole = |number: i64| ScalarValue::Int64(Some(number));
        let (ty, distances) = typed(DataType::Int8, true, before("1.5"), after("1.5"));
        assert_eq!((ty, distances), (DataType::Int64, vec![whole(1), whole(1)]));
        let (_, distances) = typed(DataType::UInt32, false, before("3.5"), before("1.5"));
        assert_eq!(distances, [whole(3), whole(2)]);
        let (_, distances) = typed(DataType::Int16, false, after("1.5"), after("3.5"));
        assert_eq!(distances, [whole(2), whole(3)]);
    }

    #[test]
    fn no_sum_leaves_the_type_of_the_key() {
        let far = "1".repeat(300);
        let (ty, distances) = typed(DataType::Int32, true, before(&far), after("1"));
        assert_eq!(ty, DataType::Int64);
        assert_eq!(distances[0], ScalarValue::Int64(Some(1 << 33)));
        for ty in [DataType::UInt64, DataType::Int64] {
            let (ty, distances) = typed(ty, true, before(&far), after("1"));
            assert_eq!(ty, DataType::Decimal128(38, 0));
            assert_eq!(distances[0], ScalarValue::Decimal128(Some(1 << 65), 38, 0));
        }
        let (ty, _) = typed(DataType::Int64, false, before("9"), after("1"));
        assert_eq!(ty, DataType::Int64);
        let (ty, _) = typed(DataType::Int64, false, before(&far), after("1"));
        assert_eq!(ty, DataType::Decimal128(38, 0));
        let (ty, distances) = typed(DataType::Decimal128(4, 2), true, before(&far), after("1.5"));
        assert_eq!(ty, DataType::Decimal128(38, 2));
        let decimal = |units| ScalarValue::Decimal128(Some(units), 38, 2);
        assert_eq!(distances, [decimal(20_000), decimal(150)]);
        let (ty, _) = typed(
            DataType::Decimal128(38, 2),
            true,
            before(&far),
            after("1.5"),
        );
        assert_eq!(ty, DataType::Decimal256(76, 2));
        let (ty, distances) = typed(DataType::Float32, true, before("0.1"), after("1"));
        assert_eq!(ty, DataType::Float64);
        assert_eq!(distances[0], ScalarValue::Float64(Some(0.1)));
    }

    #[test]
    fn intervals_are_months_days_and_parts_of_days() {
        let span = |months, days, nanos| {
            ScalarValue::IntervalMonthDayNano(Some(IntervalMonthDayNano::new(months, days, nanos)))
        };
        let (ty, distances) = typed(DataType::Date32, true, before("1 QUARTER"), after("2 WEEK"));
        assert_eq!(ty, DataType::Date32);
        assert_eq!(distances, [span(3, 0, 0), span(0, 14, 0)]);
        let moment = DataType::Timestamp(TimeUnit::Microsecond, None);
        let (ty, distances) = typed(DataType::Date32, true, before("36 HOUR"), after("1 DAY"));
        assert_eq!(ty, moment);
        assert_eq!(distances[0], span(0, 1, 12 * 3_600 * 1_000_000_000));
        let (_, distances) = typed(
            moment,
            true,
            before("0.5 SECOND"),
            after("1:30 HOUR_MINUTE"),
        );
        assert_eq!(distances[0], span(0, 0, 500_000_000));
        assert_eq!(distances[1], span(0, 0, 90 * 60 * 1_000_000_000));
    }

    #[test]
    fn a_frame_that_ends_before_it_begins_is_beyond_all_rows() {
        let (ty, distances) = typed(DataType::Int8, true, after("5"), after("3"));
        assert_eq!(ty, DataType::Int64);
        let far = ScalarValue::Int64(Some(1 << 33));
        assert_eq!(distances, [far.clone(), far]);
        // No whole number is between.
        let (ty, distances) = typed(DataType::Int64, false, before("1.8"), before("1.2"));
        assert_eq!(ty, DataType::Decimal128(38, 0));
        assert_eq!(distances[0], distances[1]);
        let (_, distances) = typed(DataType::Date32, true, before("1 MONTH"), before("40 DAY"));
        assert_eq!(distances[0], distances[1]);
    }

    #[test]
    fn distances_fit_the_type_of_the_key() {
        let code = |ty: DataType, start: &str, end: &str| {
            let field = Field::new("k", ty, true);
            let schema = DFSchema::from_unqualified_fields(vec![field].into(), Default::default());
            let (start, end) = (before(start), before(end));
            let mut frame = WindowFrame::new_bounds(WindowFrameUnits::Range, start, end);
            let error = range_key(col("k"), &mut frame, &schema.expect("a schema"));
            error.expect_err("no such frame").to_string()
        };
        assert!(code(DataType::Utf8, "1", "1").contains("requires exactly one"));
        assert!(code(DataType::Date32, "1", "1").contains("Only INTERVAL"));
        assert!(code(DataType::Int8, "1 DAY", "1 DAY").contains("not allowed"));
        assert!(code(DataType::Date32, "30 DAY", "1 MONTH").contains("between months and days"));
        assert!(code(DataType::Date32, "1.5 DAY", "1 DAY").contains("yet support"));
    }
}
