//! Results on a terminal: as a table, as one column a line, or as tab-separated lines for other programs.

use std::fs::File;
use std::io::{self, Read, Write};
use std::time::Duration;

use arrow::record_batch::RecordBatch;
use sheaf_server::TextRows;
use sheaf_sql::{ColumnMeta, EndOfRows, OkInfo, ResultSink, SqlError};
use unicode_width::UnicodeWidthStr;

/// The widths of a table's columns are those of its first rows. Later rows may stick out, but the whole result
/// need not be kept.
const MEASURED_ROWS: usize = 1000;
/// On each side of the head of a vertical row, as in the mysql client.
const STARS: usize = 27;

/// How rows are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    Table,
    Vertical,
    Tabs,
}

/// Shows the results of one request.
pub struct ResultPrinter<W: Write> {
    out: W,
    layout: Layout,
    columns: Vec<ColumnMeta>,
    /// Rows that wait until the widths are known; `None` for NULL.
    waiting: Vec<Vec<Option<String>>>,
    /// Of the table whose head is written.
    widths: Option<Vec<usize>>,
    rows: u64,
    summary: String,
}

impl<W: Write> ResultPrinter<W> {
    pub fn new(out: W, layout: Layout) -> Self {
        ResultPrinter {
            out,
            layout,
            columns: Vec::new(),
            waiting: Vec::new(),
            widths: None,
            rows: 0,
            summary: String::new(),
        }
    }

    /// What was done and how long it took, as the mysql client says it.
    pub fn finish(mut self, elapsed: Duration) -> io::Result<()> {
        if self.layout != Layout::Tabs && !self.summary.is_empty() {
            let (first, info) = self.summary.split_once('\n').unwrap_or((&self.summary, ""));
            writeln!(self.out, "{first} ({:.3} sec)", elapsed.as_secs_f64())?;
            if !info.is_empty() {
                writeln!(self.out, "{info}")?;
            }
            writeln!(self.out)?;
        }
        self.out.flush()
    }

    fn print_row(&mut self, row: &[Option<String>]) -> io::Result<()> {
        self.rows += 1;
        match self.layout {
            Layout::Tabs => {
                let cells: Vec<String> = row
                    .iter()
                    .map(|cell| cell.as_deref().map_or("NULL".into(), escape_tabs))
                    .collect();
                writeln!(self.out, "{}", cells.join("\t"))
            }
            Layout::Vertical => {
                let stars = "*".repeat(STARS);
                writeln!(self.out, "{stars} {}. row {stars}", self.rows)?;
                let width = self
                    .columns
                    .iter()
                    .map(|column| column.name.width())
                    .max()
                    .unwrap_or(0);
                for (column, cell) in self.columns.iter().zip(row) {
                    let indent = " ".repeat(width - column.name.width());
                    writeln!(
                        self.out,
                        "{indent}{}: {}",
                        column.name,
                        cell.as_deref().unwrap_or("NULL")
                    )?;
                }
                Ok(())
            }
            Layout::Table => {
                for (position, cell) in row.iter().enumerate() {
                    let text = cell.as_deref().unwrap_or("NULL");
                    let width = self.widths.as_ref().map_or(0, |widths| widths[position]);
                    let padding = " ".repeat(width.saturating_sub(text.width()));
                    if self.columns[position].type_.is_number() {
                        write!(self.out, "| {padding}{text} ")?;
                    } else {
                        write!(self.out, "| {text}{padding} ")?;
                    }
                }
                writeln!(self.out, "|")
            }
        }
    }

    /// Writes the head of a table, now that its widths are known, and the rows that waited for it.
    fn print_waiting(&mut self) -> io::Result<()> {
        let rows = std::mem::take(&mut self.waiting);
        let mut widths: Vec<usize> = self
            .columns
            .iter()
            .map(|column| column.name.width())
            .collect();
        for row in &rows {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = (*width).max(cell.as_deref().unwrap_or("NULL").width());
            }
        }
        self.widths = Some(widths);
        self.print_rule()?;
        let widths = self.widths.iter().flatten();
        for (column, &width) in self.columns.iter().zip(widths) {
            write!(
                self.out,
                "| {}{} ",
                column.name,
                " ".repeat(width - column.name.width())
            )?;
        }
        writeln!(self.out, "|")?;
        self.print_rule()?;
        rows.iter().try_for_each(|row| self.print_row(row))
    }

    fn print_rule(&mut self) -> io::Result<()> {
        for width in self.widths.iter().flatten() {
            write!(self.out, "+{}", "-".repeat(width + 2))?;
        }
        writeln!(self.out, "+")
    }
}

impl<W: Write> ResultSink for ResultPrinter<W> {
    fn columns(&mut self, columns: &[ColumnMeta]) -> Result<(), SqlError> {
        self.columns = columns.to_vec();
        self.rows = 0;
        self.widths = None;
        if self.layout == Layout::Tabs {
            let names: Vec<String> = columns
                .iter()
                .map(|column| escape_tabs(&column.name))
                .collect();
            writeln!(self.out, "{}", names.join("\t")).map_err(write_error)?;
        }
        Ok(())
    }

    fn rows(&mut self, batch: &RecordBatch) -> Result<(), SqlError> {
        let columns = self.columns.clone();
        let texts = TextRows::new(batch, &columns)?;
        let mut bytes = Vec::new();
        for row in 0..batch.num_rows() {
            let cells: Vec<Option<String>> = (0..columns.len())
                .map(|column| {
                    bytes.clear();
                    texts
                        .append(row, column, &mut bytes)
                        .then(|| String::from_utf8_lossy(&bytes).into_owned())
                })
                .collect();
            if self.layout == Layout::Table && self.widths.is_none() {
                self.waiting.push(cells);
                if self.waiting.len() == MEASURED_ROWS {
                    self.print_waiting().map_err(write_error)?;
                }
            } else {
                self.print_row(&cells).map_err(write_error)?;
            }
        }
        Ok(())
    }

    fn end_of_rows(&mut self, end: EndOfRows) -> Result<(), SqlError> {
        if self.layout == Layout::Table && (!self.waiting.is_empty() || self.widths.is_some()) {
            if self.widths.is_none() {
                self.print_waiting().map_err(write_error)?;
            }
            self.print_rule().map_err(write_error)?;
        }
        self.summary = match self.rows {
            0 => "Empty set".into(),
            1 => "1 row in set".into(),
            rows => format!("{rows} rows in set"),
        };
        self.summary.push_str(&warnings(end.warnings));
        Ok(())
    }

    fn ok(&mut self, ok: OkInfo) -> Result<(), SqlError> {
        let rows = if ok.affected_rows == 1 { "row" } else { "rows" };
        self.summary = format!(
            "Query OK, {} {rows} affected{}",
            ok.affected_rows,
            warnings(ok.warnings)
        );
        if !ok.info.is_empty() {
            self.summary.push('\n');
            self.summary.push_str(&ok.info);
        }
        Ok(())
    }

    /// The client is this process, so its files are here.
    fn local_infile(&mut self, name: &str) -> Result<Box<dyn Read + '_>, SqlError> {
        match File::open(name) {
            Ok(file) => Ok(Box::new(file)),
            Err(error) => Err(SqlError::file_not_found(
                name,
                error.raw_os_error().unwrap_or_default(),
                &error.to_string(),
            )),
        }
    }
}

fn warnings(count: u16) -> String {
    match count {
        0 => String::new(),
        1 => ", 1 warning".into(),
        count => format!(", {count} warnings"),
    }
}

/// One line a row and one tab between columns stay true whatever the values contain.
fn escape_tabs(text: &str) -> String {
    text.replace('\\', "\\\\")
        .replace('\t', "\\t")
        .replace('\n', "\\n")
        .replace('\0', "\\0")
}

fn write_error(error: io::Error) -> SqlError {
    SqlError::unknown(format!("cannot write the result: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{ArrayRef, Int64Array, StringViewArray};
    use sheaf_sql::MysqlColumnType;
    use std::sync::Arc;

    fn column(name: &str, type_: MysqlColumnType) -> ColumnMeta {
        ColumnMeta {
            name: name.into(),
            org_name: name.into(),
            table: String::new(),
            org_table: String::new(),
            database: String::new(),
            type_,
            collation_id: 255,
            length: 20,
            decimals: 0,
            flags: 0,
            declared: None,
        }
    }

    fn print(layout: Layout) -> String {
        let ids: ArrayRef = Arc::new(Int64Array::from(vec![Some(7), Some(1000), None]));
        let names: ArrayRef =
            Arc::new(StringViewArray::from(vec![Some("Zoë"), None, Some("a\tb")]));
        let batch =
            RecordBatch::try_from_iter([("id", ids), ("name", names)]).expect("two columns");
        let mut out = Vec::new();
        let mut printer = ResultPrinter::new(&mut out, layout);
        let show = |printer: &mut dyn ResultSink| -> Result<(), SqlError> {
            printer.columns(&[
                column("id", MysqlColumnType::LongLong),
                column("name", MysqlColumnType::VarString),
            ])?;
            printer.rows(&batch)?;
            printer.end_of_rows(EndOfRows {
                warnings: 1,
                more_results: false,
            })
        };
        show(&mut printer).expect("a buffer takes everything");
        printer
            .finish(Duration::from_millis(1500))
            .expect("a buffer takes everything");
        String::from_utf8(out).expect("texts are UTF-8")
    }

    #[test]
    fn a_table_has_numbers_on_the_right() {
        assert_eq!(
            print(Layout::Table),
            "+------+------+\n\
             | id   | name |\n\
             +------+------+\n\
             |    7 | Zoë  |\n\
             | 1000 | NULL |\n\
             | NULL | a\tb  |\n\
             +------+------+\n\
             3 rows in set, 1 warning (1.500 sec)\n\n"
                .replace(
                    "a\tb  |",
                    &format!("a\tb{} |", " ".repeat(4 - "a\tb".width()))
                )
        );
    }

    #[test]
    fn a_vertical_row_has_a_line_for_each_column() {
        let text = print(Layout::Vertical);
        assert!(
            text.starts_with(&format!(
                "{0} 1. row {0}\n  id: 7\nname: Zoë\n",
                "*".repeat(STARS)
            )),
            "{text}"
        );
    }

    #[test]
    fn tabs_are_for_programs() {
        assert_eq!(
            print(Layout::Tabs),
            "id\tname\n7\tZoë\n1000\tNULL\nNULL\ta\\tb\n"
        );
    }
}
