//! All that a statement answers, for a program that does not know the statement: the bindings of other languages.
//!
//! An [`Answer`] has its columns as MySQL describes them, its rows as Arrow batches, and its counts. A statement has
//! one; a CALL may have several.

use std::io::Read;
use std::sync::Arc;

use arrow::datatypes::{DECIMAL128_MAX_PRECISION, DataType, Field, Schema, SchemaRef, TimeUnit};
use arrow::record_batch::RecordBatch;
use sheaf_sql::{
    BatchBuilder, CellRow, ColumnMeta, EndOfRows, MysqlColumnType, OkInfo, ResultSink, column_flags,
};
use sheaf_types::Value;

use crate::{BATCH_ROWS, Connection, Result, Statement, own_file};

/// What a statement answers: rows, or counts.
#[derive(Clone, Debug, Default)]
pub struct Answer {
    /// None of a statement without rows.
    pub columns: Vec<ColumnMeta>,
    /// The rows, in your memory.
    pub batches: Vec<RecordBatch>,
    /// What batches of the rows look like, if there is a batch, or a direct plan has said so.
    announced: Option<SchemaRef>,
    /// Rows that the statement changed.
    pub affected_rows: u64,
    /// The first value that AUTO_INCREMENT gave.
    pub last_insert_id: u64,
    /// How many warnings it left.
    pub warnings: u16,
}

impl Answer {
    /// The columns of the batches, with their Arrow types. Where no row was found, the types are those that the columns
    /// are described with.
    pub fn schema(&self) -> SchemaRef {
        match (self.batches.first(), &self.announced) {
            (Some(batch), _) => batch.schema(),
            (None, Some(schema)) => Arc::clone(schema),
            (None, None) => {
                let fields = self.columns.iter().map(|column| {
                    let nullable = column.flags & column_flags::NOT_NULL == 0;
                    Field::new(&column.name, arrow_type(column), nullable)
                });
                Arc::new(Schema::new(fields.collect::<Vec<_>>()))
            }
        }
    }

    /// How many rows there are.
    pub fn rows(&self) -> usize {
        self.batches.iter().map(RecordBatch::num_rows).sum()
    }
}

/// The Arrow type that values of a column have.
fn arrow_type(column: &ColumnMeta) -> DataType {
    use MysqlColumnType as M;
    let unsigned = column.flags & column_flags::UNSIGNED != 0;
    match (column.type_, unsigned) {
        (M::Null, _) => DataType::Null,
        (M::Tiny, false) => DataType::Int8,
        (M::Tiny, true) => DataType::UInt8,
        (M::Short, false) => DataType::Int16,
        (M::Short, true) | (M::Year, _) => DataType::UInt16,
        (M::Long | M::Int24, false) => DataType::Int32,
        (M::Long | M::Int24, true) => DataType::UInt32,
        (M::LongLong, false) => DataType::Int64,
        (M::LongLong, true) => DataType::UInt64,
        (M::Float, _) => DataType::Float32,
        (M::Double, _) => DataType::Float64,
        (M::Decimal | M::NewDecimal, _) => {
            // The length is that of the text: a sign and a point are in it.
            let beside_digits = u32::from(!unsigned) + u32::from(column.decimals > 0);
            let digits = column.length.saturating_sub(beside_digits).clamp(1, 65);
            let precision = u8::try_from(digits).unwrap_or(65).max(column.decimals);
            let scale = i8::try_from(column.decimals).unwrap_or(i8::MAX);
            match precision {
                ..=DECIMAL128_MAX_PRECISION => DataType::Decimal128(precision, scale),
                _ => DataType::Decimal256(precision, scale),
            }
        }
        (M::Date, _) => DataType::Date32,
        (M::DateTime | M::Timestamp, _) => DataType::Timestamp(TimeUnit::Microsecond, None),
        (M::Time, _) => DataType::Duration(TimeUnit::Microsecond),
        (M::Json, _) => DataType::BinaryView,
        // Its length is counted in bits.
        (M::Bit, _) => match column.length {
            0..=8 => DataType::UInt8,
            9..=16 => DataType::UInt16,
            17..=32 => DataType::UInt32,
            _ => DataType::UInt64,
        },
        _ if column.is_binary() => DataType::Binary,
        _ => DataType::Utf8View,
    }
}

impl Connection {
    /// Runs a text and gives all that it answers.
    pub fn answers(&mut self, sql: &str) -> Result<Vec<Answer>> {
        let mut sink = Answers::default();
        self.session().execute(sql, &mut sink)?;
        Ok(sink.answers)
    }

    /// Runs a prepared statement with a value for each `?` and gives all that it answers.
    pub fn answers_of(&mut self, statement: &Statement, values: &[Value]) -> Result<Vec<Answer>> {
        let mut sink = Answers::default();
        self.run_into(statement, values, &mut sink)?;
        Ok(sink.answers)
    }
}

/// Collects answers.
#[derive(Default)]
struct Answers {
    answers: Vec<Answer>,
    /// Rows of the last answer that came one by one.
    single: Option<BatchBuilder>,
}

impl Answers {
    fn last(&mut self) -> &mut Answer {
        if self.answers.is_empty() {
            self.answers.push(Answer::default());
        }
        let last = self.answers.len() - 1;
        &mut self.answers[last]
    }

    /// Makes a batch of single rows once there are so many.
    fn collect(&mut self, from: usize) -> Result<()> {
        if let Some(single) = &mut self.single
            && single.rows() >= from
        {
            let batch = single.finish()?;
            self.last().batches.push(batch);
        }
        Ok(())
    }
}

impl ResultSink for Answers {
    fn columns(&mut self, columns: &[ColumnMeta]) -> Result<()> {
        self.answers.push(Answer {
            columns: columns.to_vec(),
            ..Answer::default()
        });
        Ok(())
    }

    fn rows(&mut self, batch: &RecordBatch) -> Result<()> {
        let last = self.last();
        last.announced.get_or_insert_with(|| batch.schema());
        if batch.num_rows() > 0 {
            last.batches.push(batch.clone());
        }
        Ok(())
    }

    fn takes_rows(&self) -> bool {
        true
    }

    fn row_columns(&mut self, columns: &[ColumnMeta], schema: &SchemaRef) -> Result<()> {
        self.columns(columns)?;
        self.last().announced = Some(Arc::clone(schema));
        self.single = Some(BatchBuilder::new(schema)?);
        Ok(())
    }

    fn row(&mut self, _columns: &[ColumnMeta], row: &dyn CellRow) -> Result<()> {
        if let Some(single) = &mut self.single {
            single.append(row)?;
        }
        self.collect(BATCH_ROWS)
    }

    fn end_of_rows(&mut self, end: EndOfRows) -> Result<()> {
        self.collect(1)?;
        self.single = None;
        self.last().warnings = end.warnings;
        Ok(())
    }

    fn ok(&mut self, ok: OkInfo) -> Result<()> {
        self.answers.push(Answer {
            affected_rows: ok.affected_rows,
            last_insert_id: ok.last_insert_id,
            warnings: ok.warnings,
            ..Answer::default()
        });
        Ok(())
    }

    fn local_infile(&mut self, name: &str) -> Result<Box<dyn Read + '_>> {
        own_file(name).map(|file| file as Box<dyn Read + '_>)
    }
}
