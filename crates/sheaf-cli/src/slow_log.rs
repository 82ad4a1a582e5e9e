//! The slow query log, as MySQL, MariaDB, Percona Server and Sheaf write it, summed up by the shape of its statements.
//!
//! ```text
//!   # Time: 2026-11-30T09:00:00.000000Z
//!   # User@Host: app[app] @  [10.0.0.7]
//!   # Schema: shop  Last_errno: 0                      not in all of them
//!   # Query_time: 1.250000  Lock_time: 0.000010 ...
//!   use shop;                                          when it changes
//!   SET timestamp=1795942800;
//!   SELECT ...;
//! ```
//!
//! A shape is a statement without its literals. Of each shape the slowest statement is kept.

use std::collections::BTreeMap;
use std::io::{self, BufRead};

/// Shapes that are kept, at most; what comes later and is new is left out.
const MAX_SHAPES: usize = 10_000;

/// The longest statement that is kept, in bytes.
const MAX_STATEMENT_BYTES: usize = 64 << 10;

/// The statements of one shape in one database.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Shape {
    /// The slowest of them.
    pub sample: String,
    pub count: u64,
    pub seconds: f64,
    /// What the sample took, in seconds.
    pub slowest: f64,
}

/// See the module's comment.
#[derive(Debug, Default)]
pub struct SlowLog {
    /// By database and shape.
    shapes: BTreeMap<(String, String), Shape>,
    /// The database that the statements use.
    database: String,
    seconds: f64,
    statement: String,
    /// Statements that were left out.
    pub left_out: u64,
}

impl SlowLog {
    /// One whose statements are of this database until it names another.
    pub fn new(database: &str) -> SlowLog {
        SlowLog {
            database: database.to_string(),
            ..SlowLog::default()
        }
    }

    /// Reads a log to its end.
    ///
    /// # Errors
    /// What reading says.
    pub fn read(&mut self, mut log: impl BufRead) -> io::Result<()> {
        let mut bytes = Vec::new();
        while log.read_until(b'\n', &mut bytes)? > 0 {
            let line = String::from_utf8_lossy(&bytes);
            self.take_line(line.trim_end_matches(['\n', '\r']));
            bytes.clear();
        }
        self.end_statement();
        Ok(())
    }

    fn take_line(&mut self, line: &str) {
        if line.starts_with("# Time: ") || line.starts_with("# User@Host: ") {
            self.end_statement();
        } else if line.starts_with("# administrator command: ") {
            self.statement.clear();
        } else if let Some(rest) = line.strip_prefix("# Schema: ") {
            let name = rest.split("  ").next().unwrap_or_default().trim();
            if !name.is_empty() {
                self.database = name.to_string();
            }
        } else if let Some(rest) = line.strip_prefix("# Query_time: ") {
            let number = rest.split_whitespace().next();
            self.seconds = number.and_then(|number| number.parse().ok()).unwrap_or(0.0);
        } else if self.statement.is_empty() && is_preamble(line) {
            // The server has started.
        } else if let Some(name) = used_database(line).filter(|_| self.statement.is_empty()) {
            self.database = name.to_string();
        } else if self.statement.len() <= MAX_STATEMENT_BYTES {
            if !self.statement.is_empty() {
                self.statement.push('\n');
            }
            self.statement.push_str(line);
        }
    }

    fn end_statement(&mut self) {
        let statement = std::mem::take(&mut self.statement);
        let statement = statement.trim().trim_end_matches(';').trim();
        if statement.is_empty() {
            return;
        }
        let key = (self.database.clone(), shape_of(statement));
        let has_room = self.shapes.len() < MAX_SHAPES || self.shapes.contains_key(&key);
        if statement.len() > MAX_STATEMENT_BYTES || !has_room {
            self.left_out += 1;
            return;
        }
        let shape = self.shapes.entry(key).or_default();
        shape.count += 1;
        shape.seconds += self.seconds;
        if shape.sample.is_empty() || self.seconds > shape.slowest {
            shape.slowest = self.seconds;
            shape.sample = statement.to_string();
        }
    }

    /// The shapes by database, those that took most time first.
    pub fn by_database(self) -> BTreeMap<String, Vec<Shape>> {
        let mut databases: BTreeMap<String, Vec<Shape>> = BTreeMap::new();
        for ((database, _), shape) in self.shapes {
            databases.entry(database).or_default().push(shape);
        }
        for shapes in databases.values_mut() {
            shapes.sort_by(|a, b| b.seconds.total_cmp(&a.seconds));
        }
        databases
    }
}

/// Lines that a server writes when it opens the log, and those that say when a statement began.
fn is_preamble(line: &str) -> bool {
    let begins = ["SET timestamp=", "# ", "Tcp port:", "Time   ", "Time\t"];
    begins.iter().any(|begin| line.starts_with(begin)) || line.contains(", Version: ")
}

fn used_database(line: &str) -> Option<&str> {
    let name = line.strip_prefix("use ")?.strip_suffix(';')?;
    Some(name.trim_matches('`'))
}

/// A statement without its literals, comments and repeated rows.
fn shape_of(statement: &str) -> String {
    let mut shape = String::new();
    let mut rest = statement;
    while let Some(first) = rest.chars().next() {
        let before = rest;
        if first == '\'' || first == '"' {
            rest = behind_quotes(rest, first);
            push_literal(&mut shape);
        } else if first == '`' {
            rest = behind_quotes(rest, first);
            shape.push_str(&before[..before.len() - rest.len()]);
        } else if first.is_ascii_digit() && !ends_in_name(&shape) {
            let is_number = |c: char| c.is_ascii_alphanumeric() || c == '.';
            rest = rest.trim_start_matches(is_number);
            push_literal(&mut shape);
        } else if let Some(comment) = rest.strip_prefix("/*") {
            rest = comment.split_once("*/").map_or("", |(_, behind)| behind);
        } else if first.is_whitespace() {
            rest = rest.trim_start();
            if !shape.ends_with(' ') {
                shape.push(' ');
            }
        } else {
            rest = &rest[first.len_utf8()..];
            shape.extend(first.to_lowercase());
            for repeated in ["(?), (?)", "(?),(?)"] {
                if shape.ends_with(repeated) {
                    shape.truncate(shape.len() - repeated.len() + "(?)".len());
                }
            }
        }
    }
    shape.trim().to_string()
}

fn ends_in_name(shape: &str) -> bool {
    let last = shape.chars().next_back();
    last.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == '$')
}

/// Adds a literal; a list of them is one.
fn push_literal(shape: &mut String) {
    for list in ["?, ", "?,"] {
        if shape.ends_with(list) {
            shape.truncate(shape.len() - list.len());
            break;
        }
    }
    shape.push('?');
}

/// What comes behind a quoted string, with which `text` begins.
fn behind_quotes(text: &str, quote: char) -> &str {
    let mut characters = text.char_indices().skip(1);
    while let Some((at, character)) = characters.next() {
        if character == '\\' && quote != '`' {
            characters.next();
        } else if character == quote {
            return &text[at + quote.len_utf8()..];
        }
    }
    ""
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOG: &str = "\
/usr/sbin/mysqld, Version: 8.0.36 (MySQL). started with:
Tcp port: 3306  Unix socket: /run/mysqld.sock
Time                 Id Command    Argument
# Time: 2026-11-30T09:00:00.000000Z
# User@Host: app[app] @  [10.0.0.7]  Id:     8
# Query_time: 1.500000  Lock_time: 0.000000 Rows_sent: 1  Rows_examined: 9
use shop;
SET timestamp=1795942800;
SELECT * FROM t
WHERE a = 7 AND b IN (1, 2,3);
# Time: 2026-11-30T09:00:01.000000Z
# User@Host: app[app] @  [10.0.0.7]  Id:     8
# Query_time: 2.500000  Lock_time: 0.000000 Rows_sent: 1  Rows_examined: 9
SET timestamp=1795942801;
SELECT * FROM t WHERE a = 70 AND b IN (4);
# User@Host: app[app] @  [10.0.0.7]  Id:     9
# Schema: other  Last_errno: 0  Killed: 0
# Query_time: 0.250000  Lock_time: 0.000000 Rows_sent: 0  Rows_examined: 0
SET timestamp=1795942802;
INSERT INTO t1 VALUES (1, 'it''s; # not a line'), (2, \"x\\\"y\");
# User@Host: app[app] @  [10.0.0.7]  Id:     9
# Query_time: 0.000100  Lock_time: 0.000000 Rows_sent: 0  Rows_examined: 0
# administrator command: Quit;
";

    #[test]
    fn statements_are_summed_up_by_their_shapes() {
        let mut log = SlowLog::new("");
        log.read(LOG.as_bytes()).expect("a log");
        let databases = log.by_database();
        let names: Vec<&str> = databases.keys().map(String::as_str).collect();
        assert_eq!(names, ["other", "shop"]);
        let [shop] = databases["shop"].as_slice() else {
            panic!("{databases:?}");
        };
        assert_eq!((shop.count, shop.seconds), (2, 4.0));
        assert_eq!(shop.sample, "SELECT * FROM t WHERE a = 70 AND b IN (4)");
        let [insert] = databases["other"].as_slice() else {
            panic!("{databases:?}");
        };
        let begin = "INSERT INTO t1 VALUES (1, 'it''s; # not a line'), (2, ";
        assert!(insert.sample.starts_with(begin), "{}", insert.sample);
    }

    #[test]
    fn shapes_have_no_literals() {
        let shapes = [
            (
                "SELECT  a1 FROM `T 1`\nWHERE b=-1.5e3",
                "select a1 from `T 1` where b=-?",
            ),
            (
                "insert into t values (1,'a'), (2, 'b'),(3,'c')",
                "insert into t values (?)",
            ),
            ("/* app */ select 'x' /* y */ , 0x1F", "select ? , ?"),
            ("select \"never ends", "select ?"),
        ];
        for (statement, shape) in shapes {
            assert_eq!(shape_of(statement), shape);
        }
    }
}
