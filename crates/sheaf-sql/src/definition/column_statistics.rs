//! Histograms at the surface: ANALYZE TABLE ... UPDATE and DROP HISTOGRAM, and the JSON of
//! `information_schema.COLUMN_STATISTICS`, as MySQL prints it.
//!
//! MySQL's equi-height histograms have no common values apart. They are shown as buckets of their own, of one value.

use sheaf_table::statistics::histogram::SampledValue;
use sheaf_table::statistics::{ColumnKey, ColumnStatistics, Histogram, MAX_BUCKETS};
use sheaf_table::{AnalyzeOptions, Table};
use sheaf_types::error::codes;
use sheaf_types::json::text::push_opaque;
use sheaf_types::{ColumnType, Value, number::decimal_text, temporal};

use crate::error::{Result, SqlError};
use crate::parser::statement::TableName;
use crate::query::rows::{Cells, Rows};
use crate::session::Session;
use crate::session::result::ResultSink;
use sheaf_frontend::query::SessionValues;

/// The collation that MySQL names for values that are no strings.
const COLLATION_OF_NUMBERS: u16 = 8;

/// The type that MySQL's JSON gives to strings.
const JSON_STRING_TYPE: u8 = 254;

impl Session {
    /// ANALYZE TABLE ... UPDATE HISTOGRAM, with a number of buckets, or DROP HISTOGRAM, without.
    pub(crate) fn change_histograms(
        &mut self,
        name: &TableName,
        columns: &[String],
        buckets: Option<u64>,
        sink: &mut dyn ResultSink,
    ) -> Result<()> {
        if buckets.is_some_and(|buckets| !(1..=MAX_BUCKETS as u64).contains(&buckets)) {
            return Err(SqlError::new(
                codes::DATA_OUT_OF_RANGE,
                "Number of buckets value is out of range in 'ANALYZE TABLE'",
            ));
        }
        let (database, table) = self.resolve_for_change(name)?;
        let mut rows = Rows::new([
            ("Table", Cells::Text(255)),
            ("Op", Cells::Text(10)),
            ("Msg_type", Cells::Text(10)),
            ("Msg_text", Cells::Text(1024)),
        ]);
        let shown = format!("{database}.{table}");
        let mut add = |kind: &str, message: String| {
            rows.push(vec![
                shown.clone().into(),
                "histogram".into(),
                kind.into(),
                message.into(),
            ]);
        };
        match self.table_names_in_utc().table(&database, &table) {
            Ok(opened) if opened.definition.is_temporary() => add(
                "Error",
                "Cannot create histogram statistics for a temporary table.".to_string(),
            ),
            Err(error) => add("Error", SqlError::from(error).message),
            Ok(opened) => {
                let mut positions = Vec::new();
                for column in columns {
                    let position = opened.definition.column_position(column);
                    let ty = position.map(|position| &opened.definition.columns[position].ty);
                    match position {
                        Some(position) if positions.contains(&position) => {}
                        Some(_) if buckets.is_some() && ty.is_some_and(ColumnType::is_json) => add(
                            "Error",
                            format!("The column '{column}' has an unsupported data type."),
                        ),
                        Some(position) => positions.push(position),
                        None => add("Error", format!("The column '{column}' does not exist.")),
                    }
                }
                self.store_histograms(&opened, &positions, buckets, &mut add)?;
            }
        }
        rows.send(sink, self.result_collation_id(), self.end_of_rows())
    }

    fn store_histograms(
        &self,
        table: &Table,
        columns: &[usize],
        buckets: Option<u64>,
        add: &mut dyn FnMut(&str, String),
    ) -> Result<()> {
        if columns.is_empty() {
            return Ok(());
        }
        let definition = &table.definition;
        let (database, name) = (&definition.database, &definition.name);
        let column_name = |column: &usize| &definition.columns[*column].name;
        let catalog = self.engine.catalog();
        let Some(buckets) = buckets else {
            let dropped = self.with_definition_lock(|wait| {
                catalog.drop_histograms(database, name, columns, wait)
            })?;
            for (column, was_there) in columns.iter().zip(dropped) {
                let column = column_name(column);
                match was_there {
                    true => add(
                        "status",
                        format!("Histogram statistics removed for column '{column}'."),
                    ),
                    false => add(
                        "Error",
                        format!("No histogram statistics found for column '{column}'."),
                    ),
                }
            }
            return Ok(());
        };
        let options = AnalyzeOptions {
            now: self.now_utc_micros(),
            ..AnalyzeOptions::default()
        };
        self.with_definition_lock(|wait| {
            catalog.update_histograms(database, name, columns, buckets as usize, &options, wait)
        })?;
        for column in columns {
            let column = column_name(column);
            add(
                "status",
                format!("Histogram statistics created for column '{column}'."),
            );
        }
        Ok(())
    }
}

/// A column's histogram as JSON; `None`: it has none.
pub(crate) fn histogram_json(table: &Table, column: usize) -> Result<Option<String>> {
    let Some(estimator) = table.column_estimator(column) else {
        return Ok(None);
    };
    let statistics = estimator.statistics();
    match &statistics.histogram {
        Some(histogram) => json(table, column, statistics, histogram).map(Some),
        None => Ok(None),
    }
}

/// What is shown of a bucket.
struct ShownBucket<'h> {
    lower: &'h SampledValue,
    upper: &'h SampledValue,
    share: f64,
    distinct: f64,
}

fn json(
    table: &Table,
    column: usize,
    statistics: &ColumnStatistics,
    histogram: &Histogram,
) -> Result<String> {
    let definition = &table.definition;
    let ty = &definition.columns[column].ty;
    let key = ColumnKey::new(definition, column);
    let value = |value: &SampledValue| -> Result<String> {
        Ok(json_value(&key.decode(
            definition,
            &value.key,
            &value.payload,
        )?))
    };
    let is_singleton = histogram.buckets.is_empty();
    let common = histogram.common.iter().map(|common| ShownBucket {
        lower: &common.value,
        upper: &common.value,
        share: common.share,
        distinct: 1.0,
    });
    let mut buckets: Vec<ShownBucket<'_>> = histogram
        .buckets
        .iter()
        .map(|bucket| ShownBucket {
            lower: &bucket.lower,
            upper: &bucket.upper,
            share: bucket.share,
            distinct: bucket.distinct,
        })
        .chain(common)
        .collect();
    buckets.sort_by(|a, b| a.upper.key.cmp(&b.upper.key));
    let mut cumulative = 0.0;
    let mut shown = Vec::with_capacity(buckets.len());
    for bucket in buckets {
        cumulative += bucket.share;
        let share = json_double(cumulative.min(1.0));
        shown.push(if is_singleton {
            format!("[{}, {share}]", value(bucket.lower)?)
        } else {
            let distinct = bucket.distinct.round() as u64;
            let (lower, upper) = (value(bucket.lower)?, value(bucket.upper)?);
            format!("[{lower}, {upper}, {share}, {distinct}]")
        });
    }
    let mut updated = String::new();
    temporal::push_datetime(statistics.collected_at, 6, &mut updated);
    let collation = ty
        .collation()
        .map_or(COLLATION_OF_NUMBERS, |collation| collation.id());
    // The order of MySQL's JSON objects: by length of the key, then by its bytes.
    Ok(format!(
        "{{\"buckets\": [{}], \"data-type\": \"{}\", \"null-values\": {}, \"collation-id\": {collation}, \
         \"last-updated\": \"{updated}\", \"sampling-rate\": {}, \"histogram-type\": \"{}\", \
         \"number-of-buckets-specified\": {}}}",
        shown.join(", "),
        data_type(ty),
        json_double(statistics.null_share),
        json_double(statistics.sampling_rate),
        if is_singleton {
            "singleton"
        } else {
            "equi-height"
        },
        histogram.requested_buckets,
    ))
}

/// MySQL's name of what the values are.
fn data_type(ty: &ColumnType) -> &'static str {
    match ty.temporal_kind() {
        Some(kind) => kind,
        None if ty.decimal_digits().is_some() || ty.has_labels() => ty.name(),
        None if ty.is_floating() => "double",
        // Of whole numbers, that is: the others stand above.
        None if ty.is_unsigned() => "uint",
        None if ty.is_integer() => "int",
        None => "string",
    }
}

/// A number that is not an integer is shown with a point, also where nothing is behind it.
fn json_double(value: f64) -> String {
    format!("{value:?}")
}

fn json_value(value: &Value) -> String {
    match value {
        Value::Float(v) => json_double(f64::from(*v)),
        Value::Double(v) => json_double(*v),
        Value::Decimal { unscaled, scale } => decimal_text(*unscaled, *scale),
        Value::WideDecimal { .. } => value.to_string(),
        Value::Text(text) => base64_text(text.as_bytes()),
        Value::Bytes(bytes) => base64_text(bytes),
        Value::Time(micros) => {
            let mut text = String::new();
            temporal::push_time(*micros, 6, &mut text);
            format!("\"{text}\"")
        }
        Value::DateTime(micros) | Value::Timestamp(micros) => {
            let mut text = String::new();
            temporal::push_datetime(*micros, 6, &mut text);
            format!("\"{text}\"")
        }
        Value::Date(_) => format!("\"{value}\""),
        integer => integer
            .as_i128()
            .map_or("null".into(), |number| number.to_string()),
    }
}

/// A string as MySQL's JSON shows what is not text of its own character set.
fn base64_text(bytes: &[u8]) -> String {
    let mut text = String::from('"');
    push_opaque(JSON_STRING_TYPE, bytes, &mut text);
    text.push('"');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_shown_as_json() {
        assert_eq!(json_value(&Value::Double(1.0)), "1.0");
        assert_eq!(json_value(&Value::Date(0)), "\"1970-01-01\"");
        assert_eq!(
            json_value(&Value::DateTime(1)),
            "\"1970-01-01 00:00:00.000001\""
        );
        for (text, shown) in [
            ("", "\"base64:type254:\""),
            ("f", "\"base64:type254:Zg==\""),
            ("fo", "\"base64:type254:Zm8=\""),
            ("foo", "\"base64:type254:Zm9v\""),
            ("foob", "\"base64:type254:Zm9vYg==\""),
        ] {
            assert_eq!(json_value(&Value::Text(text.into())), shown);
        }
    }
}
