//! Random tables with random rows.
//!
//! The tables of a seed draw from the same few columns, so that NATURAL and USING find common names, and from few
//! values, so that joins and groups find partners. Some values are extremes: two large integers that are one double,
//! strings that differ in case or in trailing blanks, the ends of a type.
//!
//! JSON is a type of its own in MySQL and a text in MariaDB. Seeds have columns of JSON unless MariaDB is the judge.

use sheaf_storage::Random;

/// What an expression yields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Integer,
    Unsigned,
    Decimal,
    Double,
    Text,
    Date,
    DateTime,
    Time,
    Bit,
    Year,
    /// ENUM and SET: names, with numbers beneath.
    Named,
    Json,
}

/// The kinds that every server knows: all but JSON.
const KINDS: [Kind; 11] = [
    Kind::Integer,
    Kind::Unsigned,
    Kind::Decimal,
    Kind::Double,
    Kind::Text,
    Kind::Date,
    Kind::DateTime,
    Kind::Time,
    Kind::Bit,
    Kind::Year,
    Kind::Named,
];

/// A column that tables may have.
#[derive(Clone, Copy, Debug)]
pub struct ColumnKind {
    pub name: &'static str,
    pub definition: &'static str,
    pub kind: Kind,
    values: &'static [&'static str],
}

/// Columns that the tables of a seed draw from.
const COLUMNS_OF_SEED: usize = 14;

const COLUMNS: [ColumnKind; 26] = [
    ColumnKind {
        name: "a",
        definition: "int",
        kind: Kind::Integer,
        values: &["0", "1", "2", "3", "4", "5", "7", "-1", "2147483647"],
    },
    ColumnKind {
        name: "b",
        definition: "int not null",
        kind: Kind::Integer,
        values: &["0", "1", "2", "3", "4", "5", "6", "8", "-3"],
    },
    ColumnKind {
        name: "g",
        definition: "bigint",
        kind: Kind::Integer,
        values: &[
            "97716021308405770",
            "97716021308405775",
            "97716021308405780",
            "1",
            "2",
            "-9223372036854775808",
        ],
    },
    ColumnKind {
        name: "u",
        definition: "bigint unsigned",
        kind: Kind::Unsigned,
        values: &[
            "0",
            "1",
            "2",
            "3",
            "18446744073709551615",
            "18446744073709551614",
        ],
    },
    ColumnKind {
        name: "d",
        definition: "decimal(8,2)",
        kind: Kind::Decimal,
        values: &["0", "1", "1.50", "2.25", "-2.25", "3", "999999.99", "0.01"],
    },
    ColumnKind {
        name: "e",
        definition: "decimal(25,4)",
        kind: Kind::Decimal,
        values: &[
            "0",
            "1",
            "97716021308405775.0001",
            "97716021308405775.0002",
            "-7.5",
        ],
    },
    // More than 38 digits, and few enough that a product with a BIGINT has no more than 67.
    ColumnKind {
        name: "dw",
        definition: "decimal(45,6)",
        kind: Kind::Decimal,
        values: &[
            "0",
            "1",
            "1.5",
            "123456789012345678901234567890123.000001",
            "123456789012345678901234567890123.000002",
            "-123456789012345678901234567890123.5",
            "97716021308405775.0001",
            "-2.25",
        ],
    },
    ColumnKind {
        name: "f",
        definition: "double",
        kind: Kind::Double,
        values: &["0", "1", "1.5", "2.25", "-3", "1e10", "97716021308405775"],
    },
    ColumnKind {
        name: "s",
        definition: "varchar(12)",
        kind: Kind::Text,
        values: &[
            "''", "'a'", "'A'", "'b'", "'B '", "'ab'", "'x%'", "'1'", "'2x'", "'bc'",
        ],
    },
    ColumnKind {
        name: "r",
        definition: "varchar(12) collate utf8mb4_bin",
        kind: Kind::Text,
        values: &["''", "'a'", "'A'", "'b'", "'ab'", "'3'", "'2020-01-02'"],
    },
    ColumnKind {
        name: "h",
        definition: "char(5) not null",
        kind: Kind::Text,
        values: &["''", "'a'", "'A'", "'b'", "'abc'", "'zz'"],
    },
    ColumnKind {
        name: "t",
        definition: "date",
        kind: Kind::Date,
        values: &[
            "'2020-01-01'",
            "'2020-01-02'",
            "'2020-02-29'",
            "'1999-12-31'",
            "'2020-12-31'",
        ],
    },
    ColumnKind {
        name: "m",
        definition: "datetime",
        kind: Kind::DateTime,
        values: &[
            "'2020-01-01 00:00:00'",
            "'2020-01-01 12:30:45'",
            "'2020-01-02 00:00:00'",
            "'1999-12-31 23:59:59'",
        ],
    },
    ColumnKind {
        name: "i",
        definition: "time",
        kind: Kind::Time,
        values: &[
            "'00:00:00'",
            "'10:11:12'",
            "'23:59:59'",
            "'-01:00:00'",
            "'100:00:00'",
        ],
    },
    ColumnKind {
        name: "n",
        definition: "bit(5)",
        kind: Kind::Bit,
        values: &["b'0'", "b'1'", "b'10'", "b'11'", "b'101'", "b'11111'"],
    },
    ColumnKind {
        name: "o",
        definition: "bit(64)",
        kind: Kind::Bit,
        values: &[
            "b'1'",
            "b'10'",
            "b'101'",
            "b'1000000000000000000000000000000000000000000000000000000000000000'",
            "b'1111111111111111111111111111111111111111111111111111111111111111'",
        ],
    },
    ColumnKind {
        name: "p",
        definition: "float",
        kind: Kind::Double,
        values: &["0", "1", "1.5", "0.1", "-3", "16777217", "3.4e38", "1e-38"],
    },
    ColumnKind {
        name: "fd",
        definition: "float(8,2)",
        kind: Kind::Double,
        values: &["0", "1", "1.5", "2.25", "0.1", "-2.25", "999999.99"],
    },
    ColumnKind {
        name: "q",
        definition: "enum('b','ab','x','a')",
        kind: Kind::Named,
        values: &["'a'", "'b'", "'x'", "'ab'"],
    },
    ColumnKind {
        name: "v",
        definition: "set('x','b','a') not null",
        kind: Kind::Named,
        values: &["'a'", "'b'", "''", "'x'", "'b,a'", "'x,b,a'"],
    },
    ColumnKind {
        name: "w",
        definition: "decimal(6,2) unsigned zerofill",
        kind: Kind::Decimal,
        values: &["0", "1", "1.50", "2.25", "3", "9999.99", "0.01"],
    },
    ColumnKind {
        name: "x",
        definition: "char(6) collate utf8mb4_unicode_ci",
        kind: Kind::Text,
        values: &[
            "''", "'a'", "'A'", "'b'", "'ab'", "'\u{e9}'", "'\u{c9}'", "'3'",
        ],
    },
    ColumnKind {
        name: "vb",
        definition: "varbinary(6)",
        kind: Kind::Text,
        values: &["''", "'a'", "'A'", "'b'", "'b '", "'ab'"],
    },
    ColumnKind {
        name: "y",
        definition: "year",
        kind: Kind::Year,
        values: &["2020", "1999", "2000", "0", "1901", "2155"],
    },
    ColumnKind {
        name: "z",
        definition: "timestamp(3) null",
        kind: Kind::DateTime,
        values: &[
            "'2020-01-01 00:00:00'",
            "'2020-01-01 12:30:45'",
            "'2020-01-01 12:30:45.500'",
            "'1999-12-31 23:59:59'",
            "'1970-01-01 00:00:01'",
            "'2038-01-19 03:14:07.999'",
        ],
    },
    ColumnKind {
        name: "j",
        definition: "json",
        kind: Kind::Json,
        values: &[
            "'1'",
            "'\"a\"'",
            "'{\"a\": 1}'",
            "'{\"a\": \"b\", \"b\": [1, 2]}'",
            "'[1, \"a\", null]'",
            "'null'",
            "'true'",
            "'1.5'",
            "'{\"a\": {\"a\": \"A\"}}'",
            "'18446744073709551615'",
            "'[]'",
        ],
    },
];

/// A table: its key is `k`, or `k` and `l`.
#[derive(Clone, Debug)]
pub struct Table {
    pub name: String,
    /// Columns in their order, the key's among them.
    pub columns: Vec<(String, Kind)>,
    /// The statements that make it and fill it.
    pub statements: Vec<String>,
}

/// Tables of one seed.
#[derive(Clone, Debug)]
pub struct Schema {
    pub tables: Vec<Table>,
    /// Kinds of the columns that the tables draw from.
    kinds: Vec<Kind>,
}

/// One of `items`.
pub fn pick<'a, T>(random: &mut Random, items: &'a [T]) -> &'a T {
    &items[random.below(items.len() as u64) as usize]
}

/// True in one of `n` cases.
pub fn one_in(random: &mut Random, n: u64) -> bool {
    random.below(n) == 0
}

/// A value of the column as SQL, or NULL where it may be.
pub fn value(random: &mut Random, column: &ColumnKind) -> String {
    if !column.definition.contains("not null") && one_in(random, 7) {
        return "null".to_owned();
    }
    let values = column.values.len() as u64;
    // The first values are common.
    let limit = 1 + random.below(values);
    column.values[random.below(limit) as usize].to_owned()
}

/// A literal as a person would write it for a column of this kind.
pub fn literal(random: &mut Random, kind: Kind) -> String {
    let columns: Vec<&ColumnKind> = COLUMNS
        .iter()
        .filter(|column| column.kind == kind)
        .collect();
    let column = pick(random, &columns);
    let value = *pick(random, column.values);
    match kind {
        Kind::Date => format!("date{value}"),
        Kind::DateTime => format!("timestamp{value}"),
        Kind::Time => format!("time{value}"),
        Kind::Double if !value.contains('e') => format!("{value}e0"),
        Kind::Json => format!("cast({value} as json)"),
        // Bits by themselves are a string of bytes.
        Kind::Bit => u64::from_str_radix(value.trim_start_matches('b').trim_matches('\''), 2)
            .map_or_else(|_| value.to_owned(), |number| number.to_string()),
        _ => value.to_owned(),
    }
}

impl Schema {
    /// Two to four tables.
    pub fn new(random: &mut Random, has_json: bool) -> Schema {
        let mut columns: Vec<&ColumnKind> = COLUMNS
            .iter()
            .filter(|column| has_json || column.kind != Kind::Json)
            .collect();
        random.shuffle(&mut columns);
        columns.truncate(COLUMNS_OF_SEED);
        let kinds = columns.iter().map(|column| column.kind).collect();
        let tables = (0..2 + random.below(3))
            .map(|number| table(random, number, &columns))
            .collect();
        Schema { tables, kinds }
    }

    /// A kind of the columns, or, now and then, any.
    pub fn kind(&self, random: &mut Random) -> Kind {
        match one_in(random, 8) {
            true => *pick(random, &KINDS),
            false => *pick(random, &self.kinds),
        }
    }

    /// Whether there may be columns of JSON.
    pub fn has_json(&self) -> bool {
        self.kinds.contains(&Kind::Json)
    }
}

/// A column in a key: whole or by its first characters, in either order.
fn key_part(random: &mut Random, column: &ColumnKind) -> String {
    let has_prefix = ["varchar", "char", "varbinary"]
        .iter()
        .any(|ty| column.definition.starts_with(ty));
    let prefix = match has_prefix && one_in(random, 3) {
        true => "(2)",
        false => "",
    };
    let way = *pick(random, &["", "", " desc"]);
    format!("{}{prefix}{way}", column.name)
}

/// Expressions that keys may have, by the column that they are of.
const EXPRESSIONS: [(&str, &str); 10] = [
    ("b", "b + 1"),
    ("b", "abs(b)"),
    ("a", "a % 3"),
    ("s", "lower(s)"),
    ("h", "left(h, 1)"),
    ("x", "lower(x)"),
    ("t", "year(t)"),
    ("m", "date(m)"),
    ("d", "round(d, 1)"),
    ("dw", "round(dw, 1)"),
];

/// A key of an expression, where one of the columns has one. MariaDB knows none and takes it for a comment.
fn parts_of_expressions(random: &mut Random, columns: &[&ColumnKind]) -> String {
    let fitting: Vec<&str> = EXPRESSIONS
        .iter()
        .filter(|(of, _)| columns.iter().any(|column| column.name == *of))
        .map(|(_, expression)| *expression)
        .collect();
    match fitting.is_empty() || !one_in(random, 2) {
        true => String::new(),
        false => format!(" /*!80013 , key f0 (({})) */", pick(random, &fitting)),
    }
}

fn table(random: &mut Random, number: u64, of: &[&ColumnKind]) -> Table {
    let name = format!("t{number}");
    let key: &[&str] = if one_in(random, 3) {
        &["k", "l"]
    } else {
        &["k"]
    };
    let mut chosen = of.to_vec();
    random.shuffle(&mut chosen);
    chosen.truncate(4 + random.below(4) as usize);
    let mut columns: Vec<(String, Kind)> = key
        .iter()
        .map(|name| ((*name).to_owned(), Kind::Integer))
        .collect();
    columns.extend(
        chosen
            .iter()
            .map(|column| (column.name.to_owned(), column.kind)),
    );
    let mut parts: Vec<String> = key
        .iter()
        .map(|name| format!("{name} int not null"))
        .collect();
    parts.extend(
        chosen
            .iter()
            .map(|column| format!("{} {}", column.name, column.definition)),
    );
    parts.push(format!("primary key ({})", key.join(",")));
    for index in 0..random.below(4) {
        let mut of: Vec<&&ColumnKind> = chosen
            .iter()
            .filter(|column| column.kind != Kind::Json)
            .collect();
        random.shuffle(&mut of);
        of.truncate(1 + random.below(3) as usize);
        let of: Vec<String> = of.iter().map(|column| key_part(random, column)).collect();
        parts.push(format!("key i{index} ({})", of.join(",")));
    }
    let computed = parts_of_expressions(random, &chosen);
    let mut statements = vec![format!(
        "create table {name} ({}{computed}) character set utf8mb4 collate utf8mb4_general_ci",
        parts.join(", ")
    )];
    let rows = match random.below(5) {
        0 => random.below(3),
        1..=3 => 3 + random.below(20),
        _ => 30 + random.below(200),
    };
    let rows: Vec<String> = (0..rows)
        .map(|n| {
            let mut cells = match key.len() {
                1 => vec![n.to_string()],
                _ => vec![(n % 4).to_string(), n.to_string()],
            };
            cells.extend(chosen.iter().map(|column| value(random, column)));
            format!("({})", cells.join(","))
        })
        .collect();
    if !rows.is_empty() {
        statements.push(format!("insert into {name} values {}", rows.join(",")));
    }
    statements.push(format!("analyze table {name}"));
    Table {
        name,
        columns,
        statements,
    }
}
