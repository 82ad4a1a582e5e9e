//! CHECKSUM TABLE: a number for the rows of a table, by which copies of it are compared.
//!
//! ```text
//!   value -> its kind, length and bytes -> FNV-1a over the values of a row -> mixed -> summed over the rows -> 32 bits
//! ```
//!
//! A sum, so that the order of the rows does not count, and rows that are there twice do. The values are hashed, not
//! the bytes that store them: a table whose columns have come and gone without a copy has the number of one that was
//! made as it is now. It is not MySQL's number, which is made of the bytes of its rows.
//!
//! Reference: MySQL manual, "CHECKSUM TABLE Statement"; <http://www.isthe.com/chongo/tech/comp/fnv/>.

use arrow::array::RecordBatch;
use sheaf_table::{Column, Table};
use sheaf_types::Value;
use sheaf_types::error::codes;

use crate::error::{Result, SqlError};
use crate::parser::statement::{Statement, TableName};
use crate::parser::{self, Parsed};
use crate::query::rows::{Cell, Cells, Rows, value_at};
use crate::session::Session;
use crate::session::result::ResultSink;
use crate::session::warnings::Level;
use crate::virtual_database::is_virtual_database;

const FNV_OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
const FNV_PRIME: u64 = 0x0000_0100_0000_01b3;

impl Session {
    pub(crate) fn checksum_tables(
        &mut self,
        names: &[TableName],
        is_quick: bool,
        sink: &mut dyn ResultSink,
    ) -> Result<()> {
        let mut rows = Rows::new([("Table", Cells::Text(128)), ("Checksum", Cells::Unsigned)]);
        for name in names {
            let (database, table) = self.resolve(name)?;
            let checksum = match self.checksum_of(&database, &table, is_quick) {
                Ok(checksum) => checksum,
                Err(error) if error.code == SqlError::query_interrupted().code => {
                    return Err(error);
                }
                Err(error) => {
                    self.warnings.add(Level::Error, error.code, error.message);
                    None
                }
            };
            let shown = format!("{database}.{table}");
            rows.push(vec![
                shown.into(),
                checksum.map_or(Cell::Null, Cell::Unsigned),
            ]);
        }
        rows.send(sink, self.result_collation_id(), self.end_of_rows())
    }

    fn checksum_of(&mut self, database: &str, table: &str, is_quick: bool) -> Result<Option<u64>> {
        let is_made = is_virtual_database(database) || self.is_system_table(database, table);
        if is_made || self.table_names().view(database, table).is_some() {
            return Err(SqlError::new(
                codes::WRONG_OBJECT,
                format!("'{database}.{table}' is not BASE TABLE"),
            ));
        }
        let found = self.table_names().table(database, table)?;
        if is_quick {
            return Ok(None);
        }
        let text = query_of_all(&found, database, table);
        let Statement::Query(query) = parser::parse_statement(&text, &self.dialect())? else {
            return Ok(None);
        };
        let mut checksum = Checksum::default();
        self.run_query(Parsed::new(&query, &text), |batch| checksum.add_rows(batch))?;
        Ok(Some(checksum.folded()))
    }
}

/// All columns that have a name, invisible ones too. A TIMESTAMP as its seconds, which no time zone changes. LIMIT,
/// since `sql_select_limit` is not meant.
fn query_of_all(table: &Table, database: &str, name: &str) -> String {
    let quoted = |name: &str| format!("`{}`", name.replace('`', "``"));
    let columns = table.definition.columns.iter();
    let columns = columns.filter(|column| !column.hidden);
    let shown = |column: &Column| match column.ty.follows_time_zone() {
        true => format!("UNIX_TIMESTAMP({})", quoted(&column.name)),
        false => quoted(&column.name),
    };
    let columns: Vec<String> = columns.map(shown).collect();
    format!(
        "SELECT {} FROM {}.{} LIMIT {}",
        columns.join(", "),
        quoted(database),
        quoted(name),
        u64::MAX
    )
}

/// The sum over rows. See the module's comment.
#[derive(Default)]
struct Checksum(u64);

impl Checksum {
    fn add_rows(&mut self, batch: &RecordBatch) -> Result<()> {
        for row in 0..batch.num_rows() {
            let mut hash = RowHash::default();
            for column in batch.columns() {
                hash.add(&value_at(column.as_ref(), row)?);
            }
            self.0 = self.0.wrapping_add(hash.mixed());
        }
        Ok(())
    }

    fn folded(&self) -> u64 {
        (self.0 >> 32) ^ (self.0 & u64::from(u32::MAX))
    }
}

struct RowHash(u64);

impl Default for RowHash {
    fn default() -> RowHash {
        RowHash(FNV_OFFSET)
    }
}

impl RowHash {
    fn add(&mut self, value: &Value) {
        match value {
            Value::Null => self.add_bytes(&[0]),
            Value::Text(text) => self.add_value(text.as_bytes()),
            Value::Bytes(bytes) | Value::Json(bytes) => self.add_value(bytes),
            other => self.add_value(other.to_string().as_bytes()),
        }
    }

    /// With its length, so that what one value ends with is not what the next one begins with.
    fn add_value(&mut self, bytes: &[u8]) {
        self.add_bytes(&[1]);
        self.add_bytes(&(bytes.len() as u64).to_le_bytes());
        self.add_bytes(bytes);
    }

    fn add_bytes(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(FNV_PRIME);
        }
    }

    /// Every bit of the hash depends on all of the row: sums of rows that differ little differ as others do.
    fn mixed(self) -> u64 {
        let mut bits = self.0;
        for factor in [0xff51_afd7_ed55_8ccd, 0xc4ce_b9fe_1a85_ec53] {
            bits = (bits ^ bits >> 33).wrapping_mul(factor);
        }
        bits ^ bits >> 33
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{ArrayRef, Int32Array, StringViewArray};

    use super::*;

    fn checksum(rows: &[(Option<i32>, Option<&str>)]) -> u64 {
        let numbers: Int32Array = rows.iter().map(|(number, _)| *number).collect();
        let texts: StringViewArray = rows.iter().map(|(_, text)| *text).collect();
        let columns: [(&str, ArrayRef); 2] = [("a", Arc::new(numbers)), ("b", Arc::new(texts))];
        let batch = RecordBatch::try_from_iter(columns).expect("columns of one length");
        let mut checksum = Checksum::default();
        checksum.add_rows(&batch).expect("values of known types");
        checksum.folded()
    }

    #[test]
    fn the_order_of_rows_does_not_count_and_all_else_does() {
        let (one, two) = ((Some(1), Some("x")), (Some(2), Some("y")));
        assert_eq!(checksum(&[]), 0);
        assert_eq!(checksum(&[one, two]), checksum(&[two, one]));
        let mut all = vec![
            checksum(&[one]),
            checksum(&[one, two]),
            checksum(&[one, one]),
            checksum(&[one, one, two, two]),
            checksum(&[(Some(1), Some("y")), (Some(2), Some("x"))]),
            checksum(&[(Some(1), Some(""))]),
            checksum(&[(Some(1), None)]),
            checksum(&[(None, Some("1"))]),
            checksum(&[(None, None)]),
            checksum(&[(Some(11), Some("x"))]),
            checksum(&[(Some(1), Some("1x"))]),
        ];
        let count = all.len();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), count);
    }
}
