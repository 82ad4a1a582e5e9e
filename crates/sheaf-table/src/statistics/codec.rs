//! Statistics as bytes, as docs/catalog-format.md specifies them.
//!
//! Whatever the bytes are, reading them gives statistics that estimates can work with, or an error: shares lie between
//! 0 and 1, and keys ascend.

use std::collections::BTreeMap;

use crate::definition::codec::{Reader, Writer};
use crate::error::Result;
#[cfg(test)]
use crate::error::TableError;
use crate::statistics::histogram::{Bucket, CommonValue, SampledValue};
use crate::statistics::{
    ColumnStatistics, DistinctEstimate, Histogram, IndexStatistics, TableStatistics,
};

/// The newest format this program writes and reads. Formats 1 and 2 have rows and distinct prefixes only.
const FORMAT: u64 = 3;

const COMPLETE: u64 = 1;

/// The bytes of a table's statistics.
pub(crate) fn encode_statistics(statistics: &TableStatistics) -> Vec<u8> {
    let mut writer = Writer::default();
    writer.number(FORMAT);
    writer.number(statistics.rows);
    writer.number(statistics.indexes.len() as u64);
    for (id, index) in &statistics.indexes {
        writer.number(u64::from(*id));
        writer.number(index.distinct_prefixes.len() as u64);
        for count in &index.distinct_prefixes {
            writer.number(*count);
        }
    }
    for index in statistics.indexes.values() {
        writer.double(index.entry_bytes);
    }
    writer.double(statistics.row_bytes);
    writer.number(statistics.columns.len() as u64);
    for column in &statistics.columns {
        write_column(&mut writer, column);
    }
    writer.into_bytes()
}

fn write_column(writer: &mut Writer, column: &ColumnStatistics) {
    writer.double(column.null_share);
    writer.number(column.distinct.value);
    writer.number(column.distinct.low);
    writer.number(column.distinct.high);
    writer.double(column.average_bytes);
    writer.double(column.correlation);
    writer.number(column.wanted_buckets as u64);
    writer.double(column.sampling_rate);
    writer.signed(column.collected_at);
    let Some(histogram) = &column.histogram else {
        writer.number(0);
        return;
    };
    writer.number(histogram.requested_buckets as u64);
    writer.number(u64::from(histogram.is_complete) * COMPLETE);
    let write_value = |writer: &mut Writer, value: &SampledValue| {
        writer.bytes(&value.key);
        writer.bytes(&value.payload);
    };
    writer.number(histogram.common.len() as u64);
    for common in &histogram.common {
        write_value(writer, &common.value);
        writer.double(common.share);
    }
    writer.number(histogram.buckets.len() as u64);
    for bucket in &histogram.buckets {
        write_value(writer, &bucket.lower);
        write_value(writer, &bucket.upper);
        writer.double(bucket.share);
        writer.double(bucket.distinct);
    }
}

/// Reads a table's statistics.
///
/// # Errors
/// `CatalogTooNew`, or `Corrupt` if the bytes are not any.
pub(crate) fn decode_statistics(bytes: &[u8]) -> Result<TableStatistics> {
    let mut reader = Reader::new(bytes, "statistics");
    let format = reader.version(FORMAT)?;
    let rows = reader.number()?;
    let mut indexes = BTreeMap::new();
    let mut ids = Vec::new();
    for _ in 0..reader.count()? {
        let id: u32 = reader.narrow()?;
        let distinct_prefixes = (0..reader.count()?)
            .map(|_| reader.number())
            .collect::<Result<_>>()?;
        let index = IndexStatistics {
            distinct_prefixes,
            entry_bytes: 0.0,
        };
        indexes.insert(id, index);
        ids.push(id);
    }
    let mut statistics = TableStatistics {
        rows,
        indexes,
        ..TableStatistics::default()
    };
    if format < 3 {
        return Ok(statistics);
    }
    for id in ids {
        let bytes = read_size(&mut reader)?;
        if let Some(index) = statistics.indexes.get_mut(&id) {
            index.entry_bytes = bytes;
        }
    }
    statistics.row_bytes = read_size(&mut reader)?;
    statistics.columns = (0..reader.count()?)
        .map(|_| read_column(&mut reader))
        .collect::<Result<_>>()?;
    Ok(statistics)
}

fn read_column(reader: &mut Reader<'_>) -> Result<ColumnStatistics> {
    let mut column = ColumnStatistics {
        null_share: read_share(reader)?,
        distinct: DistinctEstimate {
            value: reader.number()?,
            low: reader.number()?,
            high: reader.number()?,
        },
        average_bytes: read_size(reader)?,
        correlation: read_double(reader, -1.0, 1.0)?,
        wanted_buckets: reader.narrow()?,
        sampling_rate: read_share(reader)?,
        collected_at: reader.signed()?,
        histogram: None,
    };
    column.wanted_buckets = column.wanted_buckets.min(crate::statistics::MAX_BUCKETS);
    let requested_buckets: usize = reader.narrow()?;
    if requested_buckets == 0 {
        return Ok(column);
    }
    let is_complete = reader.number()? & COMPLETE != 0;
    let common: Vec<CommonValue> = (0..reader.count()?)
        .map(|_| {
            Ok(CommonValue {
                value: read_value(reader)?,
                share: read_share(reader)?,
            })
        })
        .collect::<Result<_>>()?;
    let buckets: Vec<Bucket> = (0..reader.count()?)
        .map(|_| {
            Ok(Bucket {
                lower: read_value(reader)?,
                upper: read_value(reader)?,
                share: read_share(reader)?,
                distinct: read_double(reader, 1.0, f64::MAX)?,
            })
        })
        .collect::<Result<_>>()?;
    let ascends = common.is_sorted_by(|a, b| a.value.key < b.value.key)
        && buckets
            .iter()
            .all(|bucket| bucket.lower.key <= bucket.upper.key)
        && buckets.is_sorted_by(|a, b| a.upper.key < b.lower.key);
    if !ascends {
        return Err(reader.corrupt());
    }
    column.histogram = Some(Histogram {
        common,
        buckets,
        is_complete,
        requested_buckets,
    });
    Ok(column)
}

fn read_value(reader: &mut Reader<'_>) -> Result<SampledValue> {
    Ok(SampledValue {
        key: reader.bytes()?.into(),
        payload: reader.bytes()?.into(),
    })
}

/// A number within bounds, which also keeps infinity and what is not a number out.
fn read_double(reader: &mut Reader<'_>, least: f64, most: f64) -> Result<f64> {
    let value = reader.double()?;
    match (least..=most).contains(&value) {
        true => Ok(value),
        false => Err(reader.corrupt()),
    }
}

fn read_share(reader: &mut Reader<'_>) -> Result<f64> {
    read_double(reader, 0.0, 1.0)
}

fn read_size(reader: &mut Reader<'_>) -> Result<f64> {
    read_double(reader, 0.0, f64::MAX)
}

#[cfg(test)]
mod tests {
    use sheaf_storage::KeyRange;

    use super::*;
    use crate::definition::schema::{Column, CreateTable};
    use crate::statistics::ColumnKey;
    use sheaf_types::ColumnType;

    fn value(key: &[u8]) -> SampledValue {
        SampledValue {
            key: key.into(),
            payload: key[1..].into(),
        }
    }

    fn statistics() -> TableStatistics {
        let column = ColumnStatistics {
            null_share: 0.25,
            distinct: DistinctEstimate {
                value: 1000,
                low: 700,
                high: 1 << 40,
            },
            average_bytes: 4.5,
            correlation: -0.5,
            wanted_buckets: 100,
            histogram: Some(Histogram {
                common: vec![CommonValue {
                    value: value(b"\x01\x80\x00\x00\x05"),
                    share: 0.5,
                }],
                buckets: vec![
                    Bucket {
                        lower: value(b"\x01\x80\x00\x00\x00"),
                        upper: value(b"\x01\x80\x00\x01\x00"),
                        share: 0.125,
                        distinct: 17.5,
                    },
                    Bucket {
                        lower: value(b"\x01\x80\x00\x02\x00"),
                        upper: value(b"\x01\x80\x00\x02\x00"),
                        share: 0.125,
                        distinct: 1.0,
                    },
                ],
                is_complete: true,
                requested_buckets: 100,
            }),
            sampling_rate: 0.01,
            collected_at: -1,
        };
        let index = |distinct_prefixes: &[u64]| IndexStatistics {
            distinct_prefixes: distinct_prefixes.to_vec(),
            entry_bytes: 20.25,
        };
        TableStatistics {
            rows: 1 << 40,
            row_bytes: 100.5,
            indexes: [(0, index(&[5])), (3, index(&[7, 1 << 33]))].into(),
            columns: vec![column, ColumnStatistics::default()],
        }
    }

    #[test]
    fn statistics_read_back() {
        let statistics = statistics();
        let bytes = encode_statistics(&statistics);
        assert_eq!(decode_statistics(&bytes).unwrap(), statistics);
    }

    #[test]
    fn statistics_of_former_versions_read_back() {
        let mut writer = Writer::default();
        for number in [2, 1000, 1, 3, 2, 7, 900] {
            writer.number(number);
        }
        let statistics = decode_statistics(&writer.into_bytes()).unwrap();
        assert_eq!(statistics.rows, 1000);
        assert_eq!(statistics.indexes[&3].distinct_prefixes, [7, 900]);
        assert!(statistics.columns.is_empty());
    }

    #[test]
    fn cut_statistics_are_corrupt_and_newer_ones_are_named() {
        let mut bytes = encode_statistics(&statistics());
        for length in 0..bytes.len() {
            assert!(decode_statistics(&bytes[..length]).is_err(), "{length}");
        }
        bytes[0] = FORMAT as u8 + 1;
        assert!(matches!(
            decode_statistics(&bytes),
            Err(TableError::CatalogTooNew { found: 4, known: 3 })
        ));
    }

    #[test]
    fn damaged_statistics_are_refused_or_can_be_worked_with() {
        let column = Column::new("c", ColumnType::parse("int").unwrap(), true);
        let request = CreateTable::new("d", "t", vec![column]);
        let definition = crate::catalog::definition_check::resolve_table(1, request).unwrap();
        let key = ColumnKey::new(&definition, 0);
        let bytes = encode_statistics(&statistics());
        let mut refused = 0;
        for at in 0..bytes.len() {
            for bit in 0..8 {
                let mut damaged = bytes.clone();
                damaged[at] ^= 1 << bit;
                let Ok(statistics) = decode_statistics(&damaged) else {
                    refused += 1;
                    continue;
                };
                for histogram in statistics
                    .columns
                    .iter()
                    .filter_map(|c| c.histogram.as_ref())
                {
                    let probes = [&b"\x01\x80\x00\x00\x10"[..], b"\x01\x80", b"\x00", b""];
                    for probe in probes {
                        assert!((0.0..=1.0).contains(&histogram.share_of_value(probe)));
                        let range = KeyRange::prefix(probe);
                        assert!(histogram.share_of_range(&range, &key).is_finite());
                    }
                }
            }
        }
        assert!(refused > bytes.len(), "{refused}");
    }
}
