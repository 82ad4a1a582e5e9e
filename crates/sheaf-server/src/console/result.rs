//! Results of statements as JSON.
//!
//! Values are texts, as the protocol sends them, or null: numbers of JavaScript would lose digits. What a result has
//! beyond its limits is left out, and the answer says so; the statement runs to its end nevertheless, as it may change
//! something.
//!
//! ```text
//!   {"columns": [{"name": "id", "number": true}], "rows": [["1"], [null]], "cut": false, "warnings": 0}
//!   {"affected": 3, "info": "", "warnings": 0}
//! ```

use std::io::Read;

use arrow::record_batch::RecordBatch;
use sheaf_sql::{ColumnMeta, EndOfRows, OkInfo, ResultSink, SqlError};
use sheaf_types::json::text::push_quoted;

use crate::text_row::TextRows;

/// Rows of one result that are shown.
const MAX_ROWS: usize = 1000;
/// Bytes of an answer.
const MAX_BYTES: usize = 8 << 20;
/// Results of one request.
const MAX_RESULTS: usize = 64;

/// Where the statements of a request write their results.
#[derive(Default)]
pub(super) struct Results {
    /// Objects with commas between them.
    text: String,
    results: usize,
    open: Option<Open>,
    /// Some results were left out.
    is_cut: bool,
}

/// A result whose rows come.
struct Open {
    columns: Vec<ColumnMeta>,
    text: String,
    rows: usize,
    is_cut: bool,
}

impl Results {
    /// The results, and whether some were left out.
    pub(super) fn finish(self) -> (String, bool) {
        (self.text, self.is_cut)
    }

    fn add(&mut self, result: &str) {
        if self.results >= MAX_RESULTS || self.text.len() + result.len() > MAX_BYTES {
            self.is_cut = true;
            return;
        }
        if self.results > 0 {
            self.text.push(',');
        }
        self.text.push_str(result);
        self.results += 1;
    }
}

impl ResultSink for Results {
    fn columns(&mut self, columns: &[ColumnMeta]) -> Result<(), SqlError> {
        let mut text = String::from("{\"columns\":[");
        for (position, column) in columns.iter().enumerate() {
            text.push_str(if position > 0 {
                ",{\"name\":"
            } else {
                "{\"name\":"
            });
            push_quoted(&column.name, &mut text);
            text.push_str(",\"number\":");
            text.push_str(if column.type_.is_number() {
                "true}"
            } else {
                "false}"
            });
        }
        text.push_str("],\"rows\":[");
        self.open = Some(Open {
            columns: columns.to_vec(),
            text,
            rows: 0,
            is_cut: false,
        });
        Ok(())
    }

    fn rows(&mut self, batch: &RecordBatch) -> Result<(), SqlError> {
        let written = self.text.len();
        let Some(open) = &mut self.open else {
            return Err(SqlError::unknown("rows came before their columns"));
        };
        let rows = TextRows::new(batch, &open.columns)?;
        let mut value = Vec::new();
        for row in 0..batch.num_rows() {
            open.is_cut |= open.rows >= MAX_ROWS || written + open.text.len() > MAX_BYTES;
            if open.is_cut {
                return Ok(());
            }
            let start = open.text.len();
            open.text.push_str(if open.rows > 0 { ",[" } else { "[" });
            for column in 0..open.columns.len() {
                if column > 0 {
                    open.text.push(',');
                }
                value.clear();
                match rows.append(row, column, &mut value) {
                    true => push_value(&value, &mut open.text),
                    false => open.text.push_str("null"),
                }
                if written + open.text.len() > MAX_BYTES {
                    open.text.truncate(start);
                    open.is_cut = true;
                    return Ok(());
                }
            }
            open.text.push(']');
            open.rows += 1;
        }
        Ok(())
    }

    fn end_of_rows(&mut self, end: EndOfRows) -> Result<(), SqlError> {
        if let Some(mut open) = self.open.take() {
            let (is_cut, warnings) = (open.is_cut, end.warnings);
            open.text
                .push_str(&format!("],\"cut\":{is_cut},\"warnings\":{warnings}}}"));
            self.add(&open.text);
        }
        Ok(())
    }

    fn ok(&mut self, ok: OkInfo) -> Result<(), SqlError> {
        let (affected, warnings) = (ok.affected_rows, ok.warnings);
        let mut text = format!("{{\"affected\":{affected},\"warnings\":{warnings},\"info\":");
        push_quoted(&ok.info, &mut text);
        text.push('}');
        self.add(&text);
        Ok(())
    }

    fn local_infile(&mut self, _name: &str) -> Result<Box<dyn Read + '_>, SqlError> {
        Err(SqlError::not_supported_yet(
            "LOAD DATA LOCAL in the console",
        ))
    }
}

/// A text; bytes that are none are shown as a hexadecimal literal.
fn push_value(value: &[u8], out: &mut String) {
    match std::str::from_utf8(value) {
        Ok(text) => push_quoted(text, out),
        Err(_) => {
            let digits = sheaf_types::text::hexadecimal::digits_of(value);
            out.push_str("\"0x");
            out.push_str(&digits);
            out.push('"');
        }
    }
}

/// An error as a member of an answer.
pub(super) fn error_text(error: &SqlError) -> String {
    let (code, state) = (error.code, error.sqlstate);
    let mut text = format!("{{\"code\":{code},\"sqlstate\":\"{state}\",\"message\":");
    push_quoted(&error.message, &mut text);
    text.push('}');
    text
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{ArrayRef, BinaryArray, StringArray};

    use super::*;
    use crate::text_row::tests::column;

    fn column_of_text() -> ColumnMeta {
        column("a\"b", sheaf_sql::MysqlColumnType::VarString, 0)
    }

    fn batch(values: ArrayRef) -> RecordBatch {
        RecordBatch::try_from_iter([("a", values)]).expect("a batch")
    }

    #[test]
    fn results_are_objects() {
        let mut results = Results::default();
        results.columns(&[column_of_text()]).expect("columns");
        let values = StringArray::from(vec![Some("x\n"), None]);
        results.rows(&batch(Arc::new(values))).expect("rows");
        results.end_of_rows(EndOfRows::default()).expect("an end");
        results.ok(OkInfo::default()).expect("an end");
        let (text, is_cut) = results.finish();
        assert_eq!(
            text,
            "{\"columns\":[{\"name\":\"a\\\"b\",\"number\":false}],\"rows\":[[\"x\\n\"],[null]],\"cut\":false,\
             \"warnings\":0},{\"affected\":0,\"warnings\":0,\"info\":\"\"}"
        );
        assert!(!is_cut);
    }

    #[test]
    fn what_is_no_text_is_shown_in_digits() {
        let mut results = Results::default();
        results.columns(&[column_of_text()]).expect("columns");
        let values = BinaryArray::from(vec![&b"\xff\x00"[..]]);
        results.rows(&batch(Arc::new(values))).expect("rows");
        results.end_of_rows(EndOfRows::default()).expect("an end");
        assert!(results.finish().0.contains("[[\"0xFF00\"]]"));
    }

    #[test]
    fn results_have_limits() {
        let mut results = Results::default();
        results.columns(&[column_of_text()]).expect("columns");
        let values: StringArray = vec![Some("x"); 2 * MAX_ROWS].into();
        results.rows(&batch(Arc::new(values))).expect("rows");
        results.end_of_rows(EndOfRows::default()).expect("an end");
        for _ in 0..MAX_RESULTS {
            results.ok(OkInfo::default()).expect("an end");
        }
        let (text, is_cut) = results.finish();
        assert_eq!(text.matches("[\"x\"]").count(), MAX_ROWS);
        assert!(text.contains("\"cut\":true") && is_cut);
        let mut results = Results::default();
        results.columns(&[column_of_text()]).expect("columns");
        let long = "x".repeat(MAX_BYTES);
        let values = StringArray::from(vec![Some("short"), Some(&long)]);
        results.rows(&batch(Arc::new(values))).expect("rows");
        results.end_of_rows(EndOfRows::default()).expect("an end");
        let (text, _) = results.finish();
        assert!(text.contains("\"rows\":[[\"short\"]],\"cut\":true"));
    }
}
