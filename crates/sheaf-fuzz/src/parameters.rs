//! The same statement with its constants as parameters.
//!
//! ```text
//!   where (x1.a = 5 or x1.s like 'a%') order by 1   -->   where (x1.a = ? or x1.s like ?) order by 1,   5, 'a%'
//! ```
//!
//! Decimals, dates and times stay as they are, because their parameters are texts to Sheaf, and so do bits. The
//! positions of ORDER BY are no constants, and neither are the paths of `->` and JSON_VALUE, the document of
//! JSON_TABLE, and the numbers of frames and of functions that look at other rows.

use mysql::Value;

/// The statement with a `?` for each constant that can be a parameter, and their values.
pub fn with_parameters(sql: &str) -> (String, Vec<Value>) {
    let mut rest = Lexer { sql, at: 0 };
    let mut out = String::with_capacity(sql.len());
    let mut values = Vec::new();
    // Numbers here are positions of ORDER BY, or digits of a type.
    let mut is_fixed = false;
    // The next text is the document of JSON_TABLE.
    let mut is_table = false;
    while let Some(token) = rest.next_token() {
        match token {
            Token::Word(word) => {
                is_fixed = match word {
                    "order" | "decimal" | "varchar" | "rows" | "range" | "ntile" | "nth_value"
                    | "lag" | "lead" => true,
                    "limit" => false,
                    _ => is_fixed,
                };
                is_table |= word == "json_table";
                out.push_str(word);
                // A typed literal.
                if matches!(word, "date" | "time" | "timestamp" | "b")
                    && rest.is_text()
                    && let Some(Token::Text(text)) = rest.next_token()
                {
                    out.push_str(text);
                }
            }
            Token::Text(path) if path.starts_with("'$") => out.push_str(path),
            Token::Text(document) if is_table => {
                is_table = false;
                out.push_str(document);
            }
            Token::Text(text) => {
                out.push('?');
                values.push(Value::Bytes(unquoted(text).into_bytes()));
            }
            Token::Number(number) => match number_value(number) {
                Some(value) if !is_fixed => {
                    out.push('?');
                    values.push(value);
                }
                _ => out.push_str(number),
            },
            Token::Other(text) => {
                // An ORDER BY of a subquery ends with the subquery.
                is_fixed &= text != ")";
                out.push_str(text);
            }
        }
    }
    (out, values)
}

enum Token<'a> {
    /// A name or a keyword.
    Word(&'a str),
    /// A string with its quotes.
    Text(&'a str),
    /// A number, with its sign where it has one.
    Number(&'a str),
    Other(&'a str),
}

/// Reads the SQL of the generator: lower case, `\` and doubled quotes in strings, comments without strings.
struct Lexer<'a> {
    sql: &'a str,
    at: usize,
}

fn is_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'.'
}

impl<'a> Lexer<'a> {
    fn byte(&self, at: usize) -> u8 {
        self.sql.as_bytes().get(at).copied().unwrap_or(0)
    }

    fn is_text(&self) -> bool {
        self.byte(self.at) == b'\''
    }

    fn next_token(&mut self) -> Option<Token<'a>> {
        let start = self.at;
        let first = self.byte(start);
        if start >= self.sql.len() {
            return None;
        }
        let token: fn(&'a str) -> Token<'a> = match first {
            b'\'' => {
                self.skip_text();
                Token::Text
            }
            b'-' if self.byte(start + 1).is_ascii_digit() => {
                self.at += 1;
                self.skip_number();
                Token::Number
            }
            b'0'..=b'9' => {
                self.skip_number();
                Token::Number
            }
            _ if is_name(first) => {
                while is_name(self.byte(self.at)) {
                    self.at += 1;
                }
                Token::Word
            }
            _ => {
                // Of other characters, one at a time.
                self.at += 1;
                while !self.sql.is_char_boundary(self.at) {
                    self.at += 1;
                }
                Token::Other
            }
        };
        Some(token(&self.sql[start..self.at]))
    }

    fn skip_text(&mut self) {
        self.at += 1;
        while self.at < self.sql.len() {
            match self.byte(self.at) {
                b'\\' => self.at += 2,
                b'\'' if self.byte(self.at + 1) == b'\'' => self.at += 2,
                b'\'' => {
                    self.at += 1;
                    return;
                }
                _ => self.at += 1,
            }
        }
    }

    fn skip_number(&mut self) {
        while is_name(self.byte(self.at)) {
            let is_exponent = self.byte(self.at) == b'e';
            self.at += 1;
            if is_exponent && matches!(self.byte(self.at), b'-' | b'+') {
                self.at += 1;
            }
        }
    }
}

fn unquoted(text: &str) -> String {
    let inner = text
        .strip_prefix('\'')
        .and_then(|text| text.strip_suffix('\''))
        .unwrap_or(text);
    let mut out = String::with_capacity(inner.len());
    let mut letters = inner.chars();
    while let Some(letter) = letters.next() {
        match letter {
            // In a pattern, `\%` and `\_` keep the backslash; the generator escapes nothing but backslashes.
            '\\' => match letters.next() {
                Some(escaped @ ('%' | '_')) => out.extend(['\\', escaped]),
                Some(escaped) => out.push(escaped),
                None => out.push('\\'),
            },
            '\'' => {
                letters.next();
                out.push('\'');
            }
            _ => out.push(letter),
        }
    }
    out
}

fn number_value(number: &str) -> Option<Value> {
    if number.contains('e') {
        return number.parse().ok().map(Value::Double);
    }
    if number.contains('.') {
        return None;
    }
    let signed = number.parse().ok().map(Value::Int);
    signed.or_else(|| number.parse().ok().map(Value::UInt))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constants_become_parameters() {
        let (sql, values) = with_parameters(
            "select x1.a + -3 c0, (x1.f - 1.5e0) c1 from t1 x1 where x1.s like 'x\\\\%%' and x1.s <> 'it''s' \
             and x1.a in (18446744073709551615, 1.5) /*order*/ order by 2 desc, 1 limit 5",
        );
        assert_eq!(
            sql,
            "select x1.a + ? c0, (x1.f - ?) c1 from t1 x1 where x1.s like ? and x1.s <> ? \
             and x1.a in (?, 1.5) /*order*/ order by 2 desc, 1 limit ?"
        );
        assert_eq!(
            values,
            [
                Value::Int(-3),
                Value::Double(1.5),
                Value::Bytes(b"x\\%%".to_vec()),
                Value::Bytes(b"it's".to_vec()),
                Value::UInt(u64::MAX),
                Value::Int(5),
            ]
        );
    }

    #[test]
    fn moments_and_orders_of_subqueries() {
        let (sql, values) = with_parameters(
            "select date'2020-01-01', timestamp'2020-01-02 03:04:05', time'-100:00:00', b'101', \
             (select x2.a from t x2 order by 1 limit 1) + 1, cast(2 as decimal(12,3)), x1.j->>'$.a'",
        );
        assert_eq!(
            sql,
            "select date'2020-01-01', timestamp'2020-01-02 03:04:05', time'-100:00:00', b'101', \
             (select x2.a from t x2 order by 1 limit ?) + ?, cast(? as decimal(12,3)), x1.j->>'$.a'"
        );
        assert_eq!(values, [Value::Int(1), Value::Int(1), Value::Int(2)]);
    }
}
