//! Random tables, and statements with operands in their texts or as parameters.

use std::fmt::Write as _;

use mysql::Value;

use super::random::Random;

/// A column's type and values that it may hold, as SQL and as parameters.
pub(super) const TYPES: &[(&str, &[&str])] = &[
    (
        "int",
        &["0", "1", "2", "3", "7", "-5", "2147483647", "-2147483648"],
    ),
    (
        "bigint unsigned",
        &["0", "1", "2", "5", "18446744073709551615"],
    ),
    ("tinyint", &["0", "1", "2", "127", "-128"]),
    ("smallint unsigned", &["0", "1", "65535", "3"]),
    (
        "decimal(6,2)",
        &["0", "1", "1.50", "-2.25", "9999.99", "3.1"],
    ),
    (
        "varchar(20)",
        &["''", "'a'", "'A'", "'á'", "'b'", "'b '", "'abc'", "'x''y'"],
    ),
    (
        "varchar(20) collate utf8mb4_bin",
        &["''", "'a'", "'A'", "'á'", "'b'", "'b '"],
    ),
    (
        "char(6) collate utf8mb4_general_ci",
        &["''", "'a'", "'A'", "'b'", "'zz'"],
    ),
    ("varbinary(8)", &["''", "'a'", "'A'", "'ab'"]),
    (
        "date",
        &[
            "'2020-01-01'",
            "'2020-01-02'",
            "'1999-12-31'",
            "'2024-02-29'",
        ],
    ),
    (
        "datetime(3)",
        &["'2020-01-01 10:00:00'", "'2020-01-01 10:00:00.5'"],
    ),
    ("double", &["0", "1", "1.5", "-2e3"]),
    ("enum('s','m','l')", &["'s'", "'m'", "'l'"]),
    ("year", &["1999", "2020"]),
    ("time", &["'10:00:00'", "'-01:00:00'"]),
    ("text", &["''", "'long text'"]),
];

/// Operands that are not of the column's type, or beyond it.
const STRANGE: &[&str] = &[
    "NULL",
    "'1'",
    "' 2.0 '",
    "'1.5'",
    "'3 apples'",
    "'18446744073709551615'",
    "'1e99'",
    "'x'",
    "1.5",
    "1e0",
    "-1",
    "300",
    "99999999999",
    "'2020-01-01'",
    "TRUE",
    "x'61'",
    "@number",
    "@text",
];

pub struct TableColumn {
    pub name: String,
    pub(super) kind: usize,
}

impl TableColumn {
    /// The column as a part of a key, `may_be_cut` to a beginning.
    pub(super) fn part(&self, random: &mut Random, may_be_cut: bool) -> String {
        let ty = TYPES[self.kind].0;
        let strings = ["varchar", "char", "varbinary"];
        let is_string = strings.iter().any(|string| ty.starts_with(string));
        let cut = match may_be_cut && (ty == "text" || is_string && random.one_in(3)) {
            true => "(2)",
            false => "",
        };
        let direction = if random.one_in(4) { " desc" } else { "" };
        format!("{}{cut}{direction}", self.name)
    }
}

pub struct Table {
    pub name: String,
    pub columns: Vec<TableColumn>,
    /// Column lists of the keys, the primary one first (empty: none).
    pub(super) keys: Vec<Vec<usize>>,
}

/// An operand: what stands in the text, and its value for `?`.
pub(super) fn operand(random: &mut Random, kind: usize) -> String {
    match random.one_in(9) {
        true => random.pick(STRANGE).to_string(),
        false => random.pick(TYPES[kind].1).to_string(),
    }
}

/// The value of an operand's text as a parameter, if it can be one.
fn parameter(random: &mut Random, text: &str) -> Option<Value> {
    if text == "NULL" {
        return Some(Value::NULL);
    }
    if let Some(inner) = text
        .strip_prefix('\'')
        .and_then(|text| text.strip_suffix('\''))
    {
        if let Ok([year, month, day]) = inner
            .split('-')
            .map(str::parse::<u16>)
            .collect::<Result<Vec<_>, _>>()
            .as_deref()
            .map_or(Err(()), |parts| <[u16; 3]>::try_from(parts).map_err(|_| ()))
            && random.one_in(2)
        {
            return Some(Value::Date(year, month as u8, day as u8, 0, 0, 0, 0));
        }
        return Some(Value::Bytes(inner.replace("''", "'").into_bytes()));
    }
    if let Ok(number) = text.parse::<i64>() {
        return Some(match random.below(3) {
            0 if number >= 0 => Value::UInt(number as u64),
            1 => Value::Bytes(text.as_bytes().to_vec()),
            _ => Value::Int(number),
        });
    }
    if let Ok(number) = text.parse::<u64>() {
        return Some(Value::UInt(number));
    }
    text.parse::<f64>()
        .ok()
        .map(|number| match random.one_in(2) {
            true => Value::Double(number),
            false => Value::Bytes(text.as_bytes().to_vec()),
        })
}

/// A statement: its text with the operands in place, and with `?` for those that can be parameters.
#[derive(Clone, Default)]
pub struct Sql {
    pub text: String,
    pub prepared: String,
    pub parameters: Vec<Value>,
    /// Of rows that are equal by collation any may be shown.
    pub folds: bool,
    /// Columns of the result are told without the tables that they come from.
    pub loses_origins: bool,
    /// Something is computed from rows: they may be warned of in another order.
    pub computes: bool,
}

impl Sql {
    /// The same, prepared, with other values, many of them of other types.
    pub fn with_other_parameters(&self, random: &mut Random) -> Sql {
        let others = [
            Value::NULL,
            Value::Int(-1),
            Value::Int(2),
            Value::Int(300),
            Value::UInt(3),
            Value::UInt(u64::MAX),
            Value::Double(1.5),
            Value::Bytes(b"1".to_vec()),
            Value::Bytes(b"A ".to_vec()),
            Value::Bytes(b"2020-01-02".to_vec()),
            Value::Date(2020, 1, 1, 0, 0, 0, 0),
            Value::Date(2020, 1, 1, 10, 0, 0, 0),
        ];
        let parameters = self.parameters.iter().map(|value| match random.one_in(2) {
            true => random.pick(&others).clone(),
            false => value.clone(),
        });
        Sql {
            parameters: parameters.collect(),
            ..self.clone()
        }
    }

    /// A statement without parameters.
    pub fn plain(text: String) -> Sql {
        Sql {
            prepared: text.clone(),
            text,
            ..Sql::default()
        }
    }

    /// Rows that are equal by collation become one.
    pub(super) fn merges_equals(&mut self) {
        self.folds = true;
        self.loses_origins = true;
    }

    pub(super) fn push(&mut self, text: &str) -> &mut Self {
        self.text.push_str(text);
        self.prepared.push_str(text);
        self
    }

    pub(super) fn add(&mut self, other: &Sql) -> &mut Self {
        self.text.push_str(&other.text);
        self.prepared.push_str(&other.prepared);
        self.parameters.extend_from_slice(&other.parameters);
        self
    }

    pub(super) fn operand(&mut self, random: &mut Random, text: &str) -> &mut Self {
        self.text.push_str(text);
        match parameter(random, text).filter(|_| !random.one_in(6)) {
            Some(value) => {
                self.prepared.push('?');
                self.parameters.push(value);
            }
            None => self.prepared.push_str(text),
        }
        self
    }
}

impl Table {
    /// A table with random columns and keys.
    pub fn random(random: &mut Random, number: usize) -> Table {
        let mut columns: Vec<TableColumn> = (0..2 + random.below(5))
            .map(|at| TableColumn {
                name: format!("c{at}"),
                kind: random.below(TYPES.len()),
            })
            .collect();
        // One number at least, to count with.
        columns[0].kind = random.below(5);
        let mut keys = Vec::new();
        for key in 0..1 + random.below(3) {
            let mut parts: Vec<usize> = (0..1 + random.below(3))
                .map(|_| random.below(columns.len()))
                .filter(|column| key > 0 || TYPES[columns[*column].kind].0 != "text")
                .collect();
            parts.sort_unstable();
            parts.dedup();
            if key == 0 && random.one_in(8) {
                parts.clear();
            }
            keys.push(parts);
        }
        keys[1..].sort();
        Table {
            name: format!("t{number}"),
            columns,
            keys,
        }
    }

    pub fn create(&self, random: &mut Random) -> String {
        let mut sql = format!("create table {} (", self.name);
        for (at, column) in self.columns.iter().enumerate() {
            let not_null = self.keys[0].contains(&at) || random.one_in(4);
            let _ = write!(
                sql,
                "{}{} {}{}",
                if at == 0 { "" } else { ", " },
                column.name,
                TYPES[column.kind].0,
                if not_null { " not null" } else { "" }
            );
        }
        for (number, key) in self.keys.iter().enumerate() {
            if key.is_empty() {
                continue;
            }
            let parts: Vec<String> = key
                .iter()
                .map(|at| self.columns[*at].part(random, number > 0))
                .collect();
            let what = match number {
                0 => "primary key".to_string(),
                _ if random.one_in(2) => format!("unique key u{number}"),
                _ => format!("key k{number}"),
            };
            let _ = write!(sql, ", {what} ({})", parts.join(", "));
        }
        sql.push(')');
        sql
    }
}
