//! Direct plans against vectorised ones: every statement through both, with the same results.
//!
//! Two databases hold the same tables. A statement runs in one with `optimizer_switch='direct=on'` and in the other with
//! `direct=off`; rows, column descriptions, counts, warnings and errors must be the same, and so must the tables
//! afterwards. Schemas, rows and statements come from a seed.

use std::fmt::Write as _;

use mysql::prelude::Queryable;
use mysql::{Column, Conn, OptsBuilder, Params, Value};

use crate::harness::{TestServer, query_text};

/// SplitMix64.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Random {
        Random(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit as u64) as usize
    }

    pub fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len())]
    }
}

/// A column's type and values that it may hold, as SQL and as parameters.
const TYPES: &[(&str, &[&str])] = &[
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
    "'x'",
    "1.5",
    "1e0",
    "-1",
    "300",
    "99999999999",
    "'2020-01-01'",
    "TRUE",
    "x'61'",
];

struct TableColumn {
    name: String,
    kind: usize,
}

struct Table {
    name: String,
    columns: Vec<TableColumn>,
    /// Column lists of the keys, the primary one first (empty: none).
    keys: Vec<Vec<usize>>,
}

/// An operand: what stands in the text, and its value for `?`.
fn operand(random: &mut Random, kind: usize) -> String {
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
#[derive(Default)]
struct Sql {
    text: String,
    prepared: String,
    parameters: Vec<Value>,
}

impl Sql {
    /// Of rows that are equal by collation any may be shown.
    fn folds(&self) -> bool {
        self.text.starts_with("select distinct ")
    }

    fn push(&mut self, text: &str) -> &mut Self {
        self.text.push_str(text);
        self.prepared.push_str(text);
        self
    }

    fn operand(&mut self, random: &mut Random, text: &str) -> &mut Self {
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
    fn random(random: &mut Random, number: usize) -> Table {
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
                .filter(|column| TYPES[columns[*column].kind].0 != "text")
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

    fn create(&self, random: &mut Random) -> String {
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
            let parts: Vec<&str> = key
                .iter()
                .map(|at| self.columns[*at].name.as_str())
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

    fn column_list(&self, random: &mut Random) -> Vec<usize> {
        match random.one_in(3) {
            true => (0..self.columns.len()).collect(),
            false => (0..1 + random.below(3))
                .map(|_| random.below(self.columns.len()))
                .collect(),
        }
    }

    /// ` where ...` on the parts of a key, and sometimes on others.
    fn condition(&self, random: &mut Random, sql: &mut Sql) {
        let mut columns = random.pick(&self.keys).clone();
        if columns.is_empty() || random.one_in(5) {
            columns.push(random.below(self.columns.len()));
        }
        if random.one_in(6) {
            columns.truncate(1);
        }
        for (at, column) in columns.iter().enumerate() {
            sql.push(if at == 0 { " where " } else { " and " });
            let TableColumn { name, kind } = &self.columns[*column];
            let last = at + 1 == columns.len();
            let form = match last && random.one_in(2) {
                true => random.below(8),
                false => 0,
            };
            let value = operand(random, *kind);
            match form {
                1 => {
                    let other = operand(random, *kind);
                    sql.push(name).push(" between ").operand(random, &value);
                    sql.push(" and ").operand(random, &other);
                }
                2 => {
                    sql.push(name).push(" in (");
                    for member in 0..1 + random.below(4) {
                        let value = operand(random, *kind);
                        sql.push(if member == 0 { "" } else { ", " });
                        sql.operand(random, &value);
                    }
                    sql.push(")");
                }
                3 => {
                    let relation = *random.pick(&[" < ", " <= ", " > ", " >= "]);
                    sql.push(name).push(relation).operand(random, &value);
                }
                4 => {
                    let other = operand(random, *kind);
                    sql.push(name).push(" >= ").operand(random, &value);
                    sql.push(" and ")
                        .push(name)
                        .push(" < ")
                        .operand(random, &other);
                }
                5 => {
                    sql.operand(random, &value).push(" = ").push(name);
                }
                6 => {
                    let (low, high) = (operand(random, *kind), operand(random, *kind));
                    sql.push("(").push(name).push(" = ").operand(random, &value);
                    sql.push(" or ").push(name).push(" between ");
                    sql.operand(random, &low)
                        .push(" and ")
                        .operand(random, &high);
                    sql.push(" or ")
                        .push(name)
                        .push(" < ")
                        .operand(random, &low);
                    sql.push(")");
                }
                _ => {
                    sql.push(name).push(" = ").operand(random, &value);
                }
            }
        }
    }

    /// Every column, so that only equal rows tie.
    fn order(&self, random: &mut Random, sql: &mut Sql) {
        let mut columns: Vec<usize> = (0..self.columns.len()).collect();
        for at in 0..columns.len() {
            columns.swap(at, random.below(self.columns.len()));
        }
        if !self.keys[0].is_empty() && random.one_in(2) {
            columns = self.keys[0].clone();
        }
        let descending = random.one_in(2);
        for (at, column) in columns.iter().enumerate() {
            sql.push(if at == 0 { " order by " } else { ", " });
            sql.push(&self.columns[*column].name);
            if descending || random.one_in(5) {
                sql.push(" desc");
            }
        }
    }

    /// A query, and whether its rows come in one order.
    fn select(&self, random: &mut Random) -> (Sql, bool) {
        let mut sql = Sql::default();
        sql.push("select ");
        if random.one_in(6) {
            self.aggregates(random, &mut sql);
            sql.push(" from ").push(&self.name);
            self.condition(random, &mut sql);
            return (sql, true);
        }
        let distinct = random.one_in(6);
        if distinct {
            sql.push("distinct ");
        }
        let qualified = random.one_in(4);
        if random.one_in(5) {
            sql.push("*");
        } else {
            for (at, column) in self.column_list(random).into_iter().enumerate() {
                sql.push(if at == 0 { "" } else { ", " });
                if qualified {
                    sql.push("x.");
                }
                sql.push(&self.columns[column].name);
                if random.one_in(7) {
                    sql.push(" as shown").push(&at.to_string());
                }
            }
        }
        sql.push(" from ").push(&self.name);
        if qualified {
            sql.push(" as x");
        }
        self.condition(random, &mut sql);
        let ordered = !distinct && random.one_in(3);
        if ordered {
            self.order(random, &mut sql);
            if random.one_in(2) {
                let limit = random.below(4).to_string();
                sql.push(" limit ").operand(random, &limit);
                if random.one_in(3) {
                    sql.push(" offset 1");
                }
            }
        }
        if !distinct && random.one_in(4) {
            let lock = *random.pick(&[" for update", " for share", " for update nowait"]);
            sql.push(lock);
        }
        (sql, ordered)
    }

    /// A query of this table and another, whose key comes from this one's rows.
    fn join(&self, random: &mut Random, other: &Table) -> Sql {
        let mut sql = Sql::default();
        let column = |table: &Table, alias: &str, at: usize| {
            let name = &table.columns[at].name;
            format!("{alias}.{name}")
        };
        sql.push("select ");
        for at in 0..1 + random.below(3) {
            sql.push(if at == 0 { "" } else { ", " });
            let own = column(self, "x", random.below(self.columns.len()));
            let foreign = column(other, "y", random.below(other.columns.len()));
            sql.push(if random.one_in(2) { &own } else { &foreign });
        }
        if random.one_in(4) {
            let counted = column(other, "y", random.below(other.columns.len()));
            let aggregates = format!("select count(*), count(distinct {counted})");
            sql = Sql::default();
            sql.push(&aggregates);
        }
        sql.push(" from ").push(&self.name).push(" x");
        let on = random.one_in(2);
        sql.push(if on { " join " } else { ", " });
        sql.push(&other.name).push(" y");
        for (number, at) in random.pick(&other.keys).clone().into_iter().enumerate() {
            sql.push(match (number, on) {
                (0, true) => " on ",
                (0, false) => " where ",
                _ => " and ",
            });
            sql.push(&column(other, "y", at)).push(" = ");
            if random.one_in(4) {
                let value = operand(random, other.columns[at].kind);
                sql.operand(random, &value);
                continue;
            }
            let kind = other.columns[at].kind;
            let same: Vec<usize> = (0..self.columns.len())
                .filter(|own| self.columns[*own].kind == kind)
                .collect();
            let own = match same.as_slice() {
                [] => random.below(self.columns.len()),
                same => *random.pick(same),
            };
            sql.push(&column(self, "x", own));
        }
        let mut key = random.pick(&self.keys).clone();
        if key.is_empty() {
            key.push(0);
        }
        let has_where = !on && sql.text.contains(" where ");
        for (number, at) in key.into_iter().enumerate() {
            sql.push(if number == 0 && !has_where {
                " where "
            } else {
                " and "
            });
            sql.push(&column(self, "x", at));
            let value = operand(random, self.columns[at].kind);
            let relation = if random.one_in(4) { " >= " } else { " = " };
            sql.push(relation).operand(random, &value);
        }
        sql
    }

    fn aggregates(&self, random: &mut Random, sql: &mut Sql) {
        for at in 0..1 + random.below(2) {
            sql.push(if at == 0 { "" } else { ", " });
            let TableColumn { name, kind } = random.pick(&self.columns);
            match random.below(4) {
                0 => sql.push("count(*)"),
                // The kinds that are numbers.
                1 if *kind < 5 => sql.push("SUM( ").push(name).push(")"),
                2 => sql.push("max(").push(name).push(") as most"),
                _ => sql.push("count(").push(name).push(")"),
            };
        }
    }

    fn insert(&self, random: &mut Random) -> Sql {
        let mut sql = Sql::default();
        sql.push("insert into ").push(&self.name).push(" values ");
        for row in 0..1 + random.below(2) {
            sql.push(if row == 0 { "(" } else { ", (" });
            for (at, column) in self.columns.iter().enumerate() {
                sql.push(if at == 0 { "" } else { ", " });
                let value = operand(random, column.kind);
                sql.operand(random, &value);
            }
            sql.push(")");
        }
        sql
    }

    fn update(&self, random: &mut Random) -> Sql {
        let mut sql = Sql::default();
        sql.push("update ").push(&self.name).push(" set ");
        for at in 0..1 + random.below(2) {
            let TableColumn { name, kind } = random.pick(&self.columns);
            sql.push(if at == 0 { "" } else { ", " })
                .push(name)
                .push(" = ");
            let value = operand(random, *kind);
            match random.below(3) {
                0 => {
                    sql.push(name);
                    let sign = if random.one_in(2) { " + " } else { " - " };
                    sql.push(sign).operand(random, &value);
                }
                1 if random.one_in(3) => {
                    sql.push(&random.pick(&self.columns).name);
                }
                _ => {
                    sql.operand(random, &value);
                }
            }
        }
        self.condition(random, &mut sql);
        sql
    }

    fn delete(&self, random: &mut Random) -> Sql {
        let mut sql = Sql::default();
        sql.push("delete from ").push(&self.name);
        self.condition(random, &mut sql);
        sql
    }
}

/// What a client sees of a statement.
#[derive(Debug, PartialEq)]
struct Answer {
    columns: Vec<String>,
    rows: Vec<Vec<Value>>,
    affected: u64,
    id: u64,
    warnings: Vec<String>,
    info: String,
    error: Option<(u16, String)>,
}

/// A client of one of the databases.
struct Client {
    connection: Conn,
    database: &'static str,
}

impl Client {
    fn new(server: &TestServer, database: &'static str, direct: &str) -> Client {
        drop(server.connect_to_new(database));
        let options = OptsBuilder::from_opts(server.options()).db_name(Some(database));
        let mut connection = Conn::new(options).expect("a connection");
        connection
            .query_drop(format!("set optimizer_switch = 'direct={direct}'"))
            .expect("a switch");
        Client {
            connection,
            database,
        }
    }

    fn run(&mut self, sql: &Sql, prepared: bool) -> Answer {
        let mut answer = match prepared {
            false => {
                let result = self.connection.query_iter(&sql.text);
                answer_of(result, self.database, sql.folds())
            }
            true => match self.connection.prep(&sql.prepared) {
                Ok(statement) => {
                    let parameters = match sql.parameters.as_slice() {
                        [] => Params::Empty,
                        values => Params::Positional(values.to_vec()),
                    };
                    let result = self.connection.exec_iter(&statement, parameters);
                    answer_of(result, self.database, sql.folds())
                }
                Err(error) => failed(error, self.database),
            },
        };
        if answer.error.is_none() {
            answer.info = self.connection.info_str().into_owned();
        }
        if self.connection.warnings() > 0 || answer.error.is_some() {
            answer.warnings = query_text(&mut self.connection, "show warnings")
                .into_iter()
                .map(|line| line.replace(self.database, "?"))
                .collect();
        }
        answer
    }
}

fn failed(error: mysql::Error, database: &str) -> Answer {
    let mysql::Error::MySqlError(error) = error else {
        panic!("not an answer of the server: {error}");
    };
    Answer {
        columns: Vec::new(),
        rows: Vec::new(),
        affected: 0,
        id: 0,
        warnings: Vec::new(),
        info: String::new(),
        error: Some((error.code, error.message.replace(database, "?"))),
    }
}

fn answer_of<P: mysql::prelude::Protocol>(
    result: mysql::Result<mysql::QueryResult<'_, '_, '_, P>>,
    database: &str,
    folds: bool,
) -> Answer {
    let mut result = match result {
        Ok(result) => result,
        Err(error) => return failed(error, database),
    };
    let columns = result.columns();
    let columns = columns.as_ref().iter();
    let columns = columns.map(|column| describe(column, folds)).collect();
    let (affected, id) = (
        result.affected_rows(),
        result.last_insert_id().unwrap_or_default(),
    );
    let mut rows = Vec::new();
    for row in result.by_ref() {
        match row {
            Ok(row) => rows.push(row.unwrap()),
            Err(error) => return failed(error, database),
        }
    }
    Answer {
        columns,
        rows,
        affected,
        id,
        warnings: Vec::new(),
        info: String::new(),
        error: None,
    }
}

/// All that a client is told of a column, but its database. `shape_only`: and but its origin, which a vectorised DISTINCT
/// has lost.
fn describe(column: &Column, shape_only: bool) -> String {
    if shape_only {
        return format!(
            "{} {:?} {} {} {}",
            column.name_str(),
            column.column_type(),
            column.column_length(),
            column.character_set(),
            column.decimals(),
        );
    }
    format!(
        "{} {} {} {} {:?} {} {:?} {} {}",
        column.name_str(),
        column.org_name_str(),
        column.table_str(),
        column.org_table_str(),
        column.column_type(),
        column.column_length(),
        column.flags(),
        column.character_set(),
        column.decimals(),
    )
}

/// Rows without what collations do not tell apart, in one order: of equal values DISTINCT may show any.
fn comparable(rows: &[Vec<Value>], folded: bool) -> Vec<String> {
    let mut rows: Vec<String> = rows
        .iter()
        .map(|row| {
            let text = format!("{row:?}");
            match folded {
                true => text
                    .to_lowercase()
                    .replace("\\xc3\\xa1", "a")
                    .replace("b '", "b'"),
                false => text,
            }
        })
        .collect();
    rows.sort();
    rows
}

/// Runs statements over random tables in both databases. Returns how many of them were direct.
fn run_both(seed: u64, statements: usize) -> u64 {
    let mut random = Random(seed);
    let server = TestServer::start();
    let mut direct = Client::new(&server, "dbone", "on");
    let mut vectorised = Client::new(&server, "dbtwo", "off");
    let tables: Vec<Table> = (0..3)
        .map(|number| Table::random(&mut random, number))
        .collect();
    let mut both = |random: &mut Random, sql: &Sql, ordered: bool| {
        let prepared = random.one_in(2);
        let one = direct.run(sql, prepared);
        let two = vectorised.run(sql, prepared);
        let what = match prepared {
            true => format!("seed {seed}: {} {:?}", sql.prepared, sql.parameters),
            false => format!("seed {seed}: {}", sql.text),
        };
        if ordered {
            assert_eq!(one, two, "{what}");
        }
        assert_eq!(
            comparable(&one.rows, sql.folds()),
            comparable(&two.rows, sql.folds()),
            "{what}"
        );
        if sql.text.starts_with("update ") && one.error.is_some() && two.error.is_some() {
            // Which of several errors comes first is a matter of the order of rows.
            return;
        }
        let rest = |answer: Answer| Answer {
            rows: Vec::new(),
            ..answer
        };
        assert_eq!(rest(one), rest(two), "{what}");
    };
    let plain = |text: String| Sql {
        prepared: text.clone(),
        text,
        parameters: Vec::new(),
    };
    for table in &tables {
        both(&mut random, &plain(table.create(&mut Random(seed))), false);
        for _ in 0..10 {
            let insert = table.insert(&mut random);
            both(&mut random, &insert, false);
        }
    }
    for _ in 0..statements {
        let table = random.pick(&tables);
        let (sql, ordered) = match random.below(14) {
            12 | 13 => {
                let other = random.pick(&tables);
                (table.join(&mut random, other), false)
            }
            0..=4 => table.select(&mut random),
            5 | 6 => (table.insert(&mut random), false),
            7 | 8 => (table.update(&mut random), false),
            9 => (table.delete(&mut random), false),
            10 => (plain(between_statements(&mut random, table)), false),
            _ => {
                let all = plain(format!("select * from {}", table.name));
                (all, false)
            }
        };
        both(&mut random, &sql, ordered);
    }
    for table in &tables {
        let check = format!("check table {}", table.name);
        let rows = query_text(&mut direct.connection, &check);
        assert!(rows[0].ends_with("OK"), "seed {seed}: {rows:?}");
    }
    let count = query_text(
        &mut direct.connection,
        "show status like 'Statements_direct'",
    );
    let count = count[0].rsplit('\t').next().expect("a value");
    count.parse().expect("a number")
}

/// What may change the meaning of a prepared statement between two executions.
fn between_statements(random: &mut Random, table: &Table) -> String {
    let Table { name, columns, .. } = table;
    let column = random.pick(columns);
    match random.below(10) {
        0 => "begin".into(),
        1 => "commit".into(),
        2 => "rollback".into(),
        3 => "set sql_mode = ''".into(),
        4 => "set sql_mode = default".into(),
        5 => format!("alter table {name} add key extra ({})", column.name),
        6 => format!("alter table {name} drop key extra"),
        7 => format!("alter table {name} modify {} bigint", column.name),
        8 => "set names utf8mb4 collate utf8mb4_bin".into(),
        _ => "set autocommit = 1".into(),
    }
}

/// `SHEAF_DIRECT_SEEDS=100..300` runs other seeds.
#[test]
fn direct_and_vectorised_plans_agree() {
    let seeds = std::env::var("SHEAF_DIRECT_SEEDS").unwrap_or_else(|_| "0..12".into());
    let (first, end) = seeds.split_once("..").expect("a range of seeds");
    let (first, end): (u64, u64) = (first.parse().expect("a seed"), end.parse().expect("a seed"));
    let direct: u64 = (first..end).map(|seed| run_both(seed, 120)).sum();
    let least = 20 * (end - first);
    assert!(direct >= least, "only {direct} statements were direct");
}

/// Statements of sysbench go the direct way, as EXPLAIN says.
#[test]
fn explain_says_direct() {
    let server = TestServer::start();
    let mut c = server.connect_to_new("explained");
    c.query_drop("create table t (id int primary key, k int not null, c char(120), key k (k))")
        .expect("a table");
    c.query_drop("insert into t values (1, 5, 'a'), (2, 6, 'b'), (3, 7, 'c')")
        .expect("rows");
    let mut extra = |sql: &str| {
        let rows = query_text(&mut c, &format!("explain {sql}"));
        rows[0].rsplit('\t').next().unwrap_or_default().to_string()
    };
    for sql in [
        "select c from t where id = 1",
        "select c from t where id between 1 and 2",
        "select c from t where id between 1 and 2 order by c",
        "select distinct c from t where id between 1 and 2 order by c",
        "select c from t where id = 1 for update",
        "select id from t where k >= 5 order by k limit 1 for share nowait",
        "select a.c, b.c from t a, t b where a.id = 1 and b.id = a.k",
        "select count(distinct b.k), count(*) from t a join t b on b.id = a.k where a.k between 5 and 6",
        "select id, k from t where k in (5, 6)",
        "select sum(k) from t where id between 1 and 2",
        "select count(k) from t where k between 5 and 6 or k between 6 and 9 or k = 1",
    ] {
        assert!(extra(sql).contains("Direct"), "{sql}: {}", extra(sql));
    }
    for sql in [
        "select c from t where c = 'a'",
        "select c from t where id = 1 or k = 5",
        "select c from t where id = '1'",
        "select max(c) from t group by k",
        "select c from t where id = 1 for update skip locked",
        "select max(k) from t where id = 1 for update",
        "select a.c from t a, t b where a.id = 1 and b.c = a.c",
        "select a.c from t a left join t b on b.id = a.k where a.id = 1",
    ] {
        assert!(!extra(sql).contains("Direct"), "{sql}: {}", extra(sql));
    }
}

/// A plan that is kept must notice everything that changes its meaning.
#[test]
fn a_prepared_statement_follows_its_table() {
    let server = TestServer::start();
    let mut c = server.connect_to_new("followed");
    let setup = |c: &mut Conn, sql: &str| c.query_drop(sql).expect(sql);
    setup(
        &mut c,
        "create table t (id int primary key, a int, b varchar(9))",
    );
    setup(&mut c, "insert into t values (1, 10, 'x'), (2, 20, 'Y')");
    let by_id = c.prep("select * from t where id = ?").expect("prepared");
    let rows = |c: &mut Conn| -> Vec<String> {
        let rows: Vec<mysql::Row> = c.exec(&by_id, (1,)).expect("rows");
        rows.into_iter()
            .map(|row| format!("{:?}", row.unwrap()))
            .collect()
    };
    assert_eq!(rows(&mut c), ["[Int(1), Int(10), Bytes(\"x\")]"]);
    setup(&mut c, "rename table t to other");
    setup(&mut c, "create table t (id varchar(5) primary key, b int)");
    setup(&mut c, "insert into t values ('1', 5)");
    assert_eq!(rows(&mut c), ["[Bytes(\"1\"), Int(5)]"]);
    setup(&mut c, "drop table t");
    c.exec::<mysql::Row, _, _>(&by_id, (1,))
        .expect_err("there is no such table");
    setup(&mut c, "create table t (z int, id int, unique (id))");
    setup(&mut c, "insert into t values (7, 1)");
    assert_eq!(rows(&mut c), ["[Int(7), Int(1)]"]);
    setup(&mut c, "create database elsewhere");
    setup(&mut c, "create table elsewhere.t (id int primary key)");
    // The table is that of the database in which the statement was prepared.
    setup(&mut c, "use elsewhere");
    assert_eq!(rows(&mut c), ["[Int(7), Int(1)]"]);
    setup(&mut c, "truncate table followed.t");
    assert_eq!(rows(&mut c), Vec::<String>::new());
}

/// The same statement with parameters of other types than at its first execution.
#[test]
fn a_prepared_statement_takes_parameters_of_any_type() {
    let server = TestServer::start();
    let mut c = server.connect_to_new("typed");
    c.query_drop("create table t (id int primary key, b varchar(9) unique)")
        .expect("a table");
    c.query_drop("insert into t values (1, '1'), (2, '02'), (3, 'drei')")
        .expect("rows");
    let by_id = c.prep("select id from t where id = ?").expect("prepared");
    let by_text = c.prep("select id from t where b = ?").expect("prepared");
    let values = [
        (Value::Int(1), vec![1], vec![1]),
        (Value::Bytes(b"1".to_vec()), vec![1], vec![1]),
        (Value::Double(2.0), vec![2], vec![2]),
        (Value::Bytes(b"2".to_vec()), vec![2], vec![]),
        (Value::NULL, vec![], vec![]),
        (Value::Bytes(b"DREI".to_vec()), vec![], vec![3]),
        (Value::UInt(u64::MAX), vec![], vec![]),
        (Value::Int(2), vec![2], vec![2]),
    ];
    for (value, ids, texts) in values {
        let parameters = Params::Positional(vec![value.clone()]);
        let found: Vec<i32> = c.exec(&by_id, parameters.clone()).expect("rows");
        assert_eq!(found, ids, "id = {value:?}");
        let found: Vec<i32> = c.exec(&by_text, parameters).expect("rows");
        assert_eq!(found, texts, "b = {value:?}");
    }
}

/// A count of the session's, since the last FLUSH STATUS.
fn session_count(c: &mut Conn, name: &str) -> u64 {
    let row: Option<(String, u64)> = c
        .query_first(format!("show session status like '{name}'"))
        .expect("a status variable");
    row.expect("it is listed").1
}

/// Sessions share plans, but not what a plan depends on.
#[test]
fn a_plan_is_found_by_other_sessions_in_the_same_circumstances() {
    let server = TestServer::start();
    let mut first = server.connect_to_new("one");
    let mut second = server.connect_to_new("two");
    let run = |c: &mut Conn, sql: &str| c.query_drop(sql).expect(sql);
    for (c, value) in [(&mut first, "'one'"), (&mut second, "'two'")] {
        run(
            c,
            "create table t (id int primary key, a varchar(9), key (a))",
        );
        run(
            c,
            &format!("insert into t values (1, {value}), (2, 'Zwei')"),
        );
    }
    let mut third = server.connect();
    run(&mut third, "use one");
    let by_id = |id: u32| format!("/* by id */ select a from t where id = {id};");
    let ask = |c: &mut Conn, sql: &str| -> Vec<String> { c.query(sql).expect(sql) };

    assert_eq!(ask(&mut first, &by_id(1)), ["one"]);
    assert_eq!(ask(&mut second, &by_id(1)), ["two"]);
    run(&mut third, "flush status");
    assert_eq!(ask(&mut third, &by_id(2)), ["Zwei"]);
    assert_eq!(ask(&mut third, &by_id(1)), ["one"]);
    let by_id_prepared = third
        .prep("select a from t where id = ?")
        .expect("prepared");
    let rows: Vec<String> = third.exec(&by_id_prepared, (2,)).expect("rows");
    assert_eq!(rows, ["Zwei"]);
    assert_eq!(session_count(&mut third, "Statement_cache_misses"), 0);
    assert_eq!(session_count(&mut third, "Statement_cache_hits"), 3);
    assert_eq!(session_count(&mut third, "Statements_direct"), 3);

    // A literal's collation is not the column's; the column's order decides.
    let by_text = "select id from t where a = 'ZWEI'";
    run(&mut third, "set names utf8mb4 collate utf8mb4_bin");
    assert_eq!(ask(&mut first, by_text), ["2"]);
    assert_eq!(ask(&mut third, by_text), ["2"]);
    run(&mut second, "drop table t");
    run(
        &mut second,
        "create table t (id int primary key, a varchar(9) collate utf8mb4_bin, key (a))",
    );
    run(&mut second, "insert into t values (2, 'Zwei')");
    assert_eq!(ask(&mut second, by_text), Vec::<String>::new());
    assert_eq!(ask(&mut first, by_text), ["2"]);

    // What is between double quotes depends on sql_mode.
    let quoted = "select id from t where a = \"a\" and id = 1";
    assert_eq!(ask(&mut first, quoted), Vec::<String>::new());
    run(&mut third, "set sql_mode = 'ANSI_QUOTES'");
    assert_eq!(ask(&mut third, quoted), ["1"]);
    assert_eq!(ask(&mut first, quoted), Vec::<String>::new());

    // Other definitions are other plans, whoever changed them.
    run(&mut second, "drop table one.t");
    run(
        &mut second,
        "create table one.t (id varchar(5) primary key, a varchar(9))",
    );
    run(
        &mut second,
        "insert into one.t values ('1', 'one'), ('01', 'text')",
    );
    for c in [&mut first, &mut third] {
        assert_eq!(ask(c, &by_id(1)), ["text", "one"]);
    }
    let evictions: Option<(String, u64)> = first
        .query_first("show global status like 'Statement_cache_evictions'")
        .expect("a status variable");
    assert_eq!(evictions.map(|(_, count)| count), Some(0));
}
