//! Cutting typed lines into statements.
//!
//! A statement ends with `;` or `\g`, or with `\G` to show its rows vertically, but not inside a string, a quoted
//! name or a comment. Each line is scanned once, however long the statement becomes.

/// A complete statement, without what ended it.
#[derive(Debug, PartialEq, Eq)]
pub struct Statement {
    pub sql: String,
    /// Ended by `\G`: one column a line.
    pub vertical: bool,
}

/// Text that was typed and is not a statement yet.
#[derive(Default)]
pub struct StatementReader {
    text: String,
    /// Up to here `text` was scanned, and no statement ended.
    scanned: usize,
    place: Place,
}

/// Where the scan stands.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Place {
    #[default]
    Plain,
    /// Inside the given kind of quotes.
    Quoted(u8),
    LineComment,
    BlockComment,
}

impl StatementReader {
    pub fn push_line(&mut self, line: &str) {
        self.text.push_str(line);
        self.text.push('\n');
    }

    /// The next statement, once its end was typed.
    pub fn next_statement(&mut self) -> Option<Statement> {
        while let Some((end, terminator_bytes)) = self.find_end() {
            let vertical = self.text[end..].starts_with("\\G");
            let rest = self.text.split_off(end + terminator_bytes);
            let mut sql = std::mem::replace(&mut self.text, rest);
            sql.truncate(end);
            self.scanned = 0;
            if !sql.trim().is_empty() {
                return Some(Statement {
                    sql: sql.trim().to_string(),
                    vertical,
                });
            }
        }
        None
    }

    /// A last statement whose end was not typed.
    pub fn take_rest(&mut self) -> Option<Statement> {
        let rest = std::mem::take(self).text;
        let sql = rest.trim();
        (!sql.is_empty()).then(|| Statement {
            sql: sql.to_string(),
            vertical: false,
        })
    }

    /// Nothing of a statement was typed yet.
    pub fn is_at_start(&self) -> bool {
        self.place == Place::Plain && self.text.trim().is_empty()
    }

    /// What the next line continues, as the prompt shows it.
    pub fn prompt(&self) -> &'static str {
        match self.place {
            _ if self.is_at_start() => "sheaf> ",
            Place::Quoted(b'\'') => "    '> ",
            Place::Quoted(b'"') => "    \"> ",
            Place::Quoted(_) => "    `> ",
            Place::BlockComment => "   /*> ",
            Place::Plain | Place::LineComment => "    -> ",
        }
    }

    /// Where the first statement ends, and how many bytes say so.
    fn find_end(&mut self) -> Option<(usize, usize)> {
        let bytes = self.text.as_bytes();
        let mut at = self.scanned;
        while let Some(&byte) = bytes.get(at) {
            let next = bytes.get(at + 1).copied().unwrap_or(b'\n');
            let mut step = 1;
            match (self.place, byte) {
                (Place::Plain, b';') => return Some((at, 1)),
                (Place::Plain, b'\\') if matches!(next, b'g' | b'G') => return Some((at, 2)),
                (Place::Plain, b'\'' | b'"' | b'`') => self.place = Place::Quoted(byte),
                (Place::Plain, b'#') => self.place = Place::LineComment,
                // `--` begins a comment only before white space, so that 5--3 is 8.
                (Place::Plain, b'-')
                    if next == b'-' && bytes.get(at + 2).is_none_or(u8::is_ascii_whitespace) =>
                {
                    self.place = Place::LineComment;
                }
                (Place::Plain, b'/') if next == b'*' => {
                    self.place = Place::BlockComment;
                    step = 2;
                }
                (Place::Quoted(b'\'' | b'"'), b'\\') => step = 2,
                // A doubled quote ends the string and begins the next one, which comes to the same.
                (Place::Quoted(quote), _) if byte == quote => self.place = Place::Plain,
                (Place::LineComment, b'\n') => self.place = Place::Plain,
                (Place::BlockComment, b'*') if next == b'/' => {
                    self.place = Place::Plain;
                    step = 2;
                }
                _ => {}
            }
            at += step;
        }
        self.scanned = at.min(bytes.len());
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn statements(lines: &[&str]) -> Vec<String> {
        let mut reader = StatementReader::default();
        let mut found = Vec::new();
        for line in lines {
            reader.push_line(line);
            while let Some(statement) = reader.next_statement() {
                found.push(
                    statement.sql
                        + if statement.vertical {
                            " [vertical]"
                        } else {
                            ""
                        },
                );
            }
        }
        if let Some(rest) = reader.take_rest() {
            found.push(rest.sql + " [rest]");
        }
        found
    }

    #[test]
    fn a_statement_may_have_many_lines_and_a_line_many_statements() {
        assert_eq!(
            statements(&["SELECT 1; SELECT", "2\\G SELECT 3\\g;;", "SELECT 4"]),
            [
                "SELECT 1",
                "SELECT\n2 [vertical]",
                "SELECT 3",
                "SELECT 4 [rest]"
            ]
        );
    }

    #[test]
    fn an_end_inside_quotes_and_comments_is_none() {
        assert_eq!(
            statements(&[
                "SELECT ';', \"a;\\\";\", `;`, 'it''s;', 'x\\';' -- ; no",
                "# ; no",
                "/* ;",
                "; */ + 5--3;",
            ]),
            ["SELECT ';', \"a;\\\";\", `;`, 'it''s;', 'x\\';' -- ; no\n# ; no\n/* ;\n; */ + 5--3"]
        );
    }

    #[test]
    fn the_prompt_says_what_is_open() {
        let mut reader = StatementReader::default();
        assert_eq!(reader.prompt(), "sheaf> ");
        for (line, prompt) in [
            ("SELECT", "    -> "),
            ("'a", "    '> "),
            ("b' /*", "   /*> "),
            ("*/ `", "    `> "),
            ("`;", "sheaf> "),
        ] {
            reader.push_line(line);
            while reader.next_statement().is_some() {}
            assert_eq!(reader.prompt(), prompt, "after {line}");
        }
    }
}
