//! Every statement through both ways, with the same results.
//!
//! Two databases hold the same tables. A statement runs in one with `optimizer_switch='direct=on'` and in the other
//! with `direct=off`; rows, column descriptions, counts, warnings and errors must be the same, and so must the tables
//! afterwards. Schemas, rows and statements come from a seed.

use mysql::consts::ColumnType;
use mysql::prelude::Queryable;
use mysql::{Column, Conn, OptsBuilder, Params, Value};

use super::random::Random;
use super::random_changes::between_statements;
use super::random_tables::{Sql, Table};
use super::statements_direct;
use crate::harness::{TestServer, query_text};

/// What a client sees of a statement.
#[derive(Debug, PartialEq)]
pub(super) struct Answer {
    columns: Vec<String>,
    rows: Vec<Vec<Value>>,
    affected: u64,
    id: u64,
    warnings: Vec<String>,
    info: String,
    pub(super) error: Option<(u16, String)>,
}

/// A client of one of the databases.
pub(super) struct Client {
    pub(super) connection: Conn,
    database: &'static str,
}

impl Client {
    pub(super) fn new(server: &TestServer, database: &'static str, direct: &str) -> Client {
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

    pub(super) fn run(&mut self, sql: &Sql, prepared: bool) -> Answer {
        let mut answer = match prepared {
            false => {
                let result = self.connection.query_iter(&sql.text);
                answer_of(result, self.database, sql.loses_origins)
            }
            true => match self.connection.prep(&sql.prepared) {
                Ok(statement) => {
                    let parameters = match sql.parameters.as_slice() {
                        [] => Params::Empty,
                        values => Params::Positional(values.to_vec()),
                    };
                    let result = self.connection.exec_iter(&statement, parameters);
                    answer_of(result, self.database, sql.loses_origins)
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

pub(super) fn answer_of<P: mysql::prelude::Protocol>(
    result: mysql::Result<mysql::QueryResult<'_, '_, '_, P>>,
    database: &str,
    loses_origins: bool,
) -> Answer {
    let mut result = match result {
        Ok(result) => result,
        Err(error) => return failed(error, database),
    };
    let columns = result.columns();
    let columns = columns.as_ref().iter();
    let columns = columns
        .map(|column| describe(column, loses_origins))
        .collect();
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

/// All that a client is told of a column, but its database. `shape_only`: and but its origin, which a vectorised
/// DISTINCT has lost.
/// A computed text is announced with the longest that it can be. Its literals tell that, and a direct plan serves all
/// literals, so it may announce the longest of any text.
fn length_of(column: &Column, shape_only: bool) -> u32 {
    let is_computed = shape_only || column.org_name_str().is_empty();
    match column.column_type() {
        ColumnType::MYSQL_TYPE_VAR_STRING if is_computed => 0,
        _ => column.column_length(),
    }
}

fn describe(column: &Column, shape_only: bool) -> String {
    if shape_only {
        return format!(
            "{} {:?} {} {} {}",
            column.name_str(),
            column.column_type(),
            length_of(column, shape_only),
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
        length_of(column, shape_only),
        column.flags(),
        column.character_set(),
        column.decimals(),
    )
}

/// Rows as text; `folded`: without what collations do not tell apart.
fn texts(rows: &[Vec<Value>], folded: bool) -> Vec<String> {
    let text = |value: &Value| match value {
        Value::Bytes(bytes) => {
            let text = String::from_utf8_lossy(bytes);
            match folded {
                true => {
                    let plain = text.to_lowercase().replace('\u{e1}', "a");
                    plain.trim_end().to_string()
                }
                false => text.into_owned(),
            }
        }
        other => format!("{other:?}"),
    };
    let row = |row: &Vec<Value>| {
        let texts: Vec<String> = row.iter().map(text).collect();
        format!("{texts:?}")
    };
    rows.iter().map(row).collect()
}

/// The same in one order.
fn sorted_texts(rows: &[Vec<Value>], folded: bool) -> Vec<String> {
    let mut rows = texts(rows, folded);
    rows.sort();
    rows
}

/// Runs statements over random tables in both databases. Returns how many of them were direct.
fn run_both(seed: u64, statements: usize) -> u64 {
    let mut random = Random::new(seed);
    let server = TestServer::start();
    let mut direct = Client::new(&server, "dbone", "on");
    let mut vectorised = Client::new(&server, "dbtwo", "off");
    let tables: Vec<Table> = (0..3)
        .map(|number| Table::random(&mut random, number))
        .collect();
    let mut both = |sql: &Sql, ordered: bool, prepared: bool| {
        let mut one = direct.run(sql, prepared);
        let mut two = vectorised.run(sql, prepared);
        for answer in [&mut one, &mut two] {
            if sql.text.starts_with("update ") {
                // Which row is the first is a matter of the index.
                for warning in &mut answer.warnings {
                    let row = warning.find(" at row ").unwrap_or(warning.len());
                    warning.truncate(row);
                }
                answer.warnings.sort();
            } else if sql.computes {
                answer.warnings.sort();
            }
        }
        let what = match prepared {
            true => format!("seed {seed}: {} {:?}", sql.prepared, sql.parameters),
            false => format!("seed {seed}: {}", sql.text),
        };
        match (ordered, sql.folds) {
            (true, false) => assert_eq!(one, two, "{what}"),
            (true, true) => assert_eq!(texts(&one.rows, true), texts(&two.rows, true), "{what}"),
            (false, folds) => assert_eq!(
                sorted_texts(&one.rows, folds),
                sorted_texts(&two.rows, folds),
                "{what}"
            ),
        }
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
    // The clock stands still, so that both read the same.
    for sql in [
        "set timestamp = 1700000000.5",
        "set @number = 3, @text = 'Abc'",
    ] {
        both(&Sql::plain(sql.into()), false, false);
    }
    for table in &tables {
        let create = Sql::plain(table.create(&mut Random::new(seed)));
        both(&create, false, false);
        for _ in 0..10 {
            let insert = table.insert(&mut random);
            both(&insert, false, random.one_in(2));
        }
    }
    for _ in 0..statements {
        let table = random.pick(&tables);
        let (sql, ordered) = match random.below(22) {
            0..=4 => table.select(&mut random),
            5 => (table.insert(&mut random), false),
            6 => (table.write(&mut random), false),
            7 | 8 => (table.update(&mut random), false),
            9 => (table.delete(&mut random), false),
            10 => {
                let between = between_statements(&mut random, table);
                (Sql::plain(between), false)
            }
            11 => {
                let all = format!("select * from {}", table.name);
                (Sql::plain(all), false)
            }
            12..=14 => {
                let other = random.pick(&tables);
                table.join(&mut random, other)
            }
            15..=18 => {
                let other = random.pick(&tables);
                table.derived(&mut random, other)
            }
            19 | 20 => {
                let other = random.pick(&tables);
                (table.change_found(&mut random, other), false)
            }
            _ => table.grouped(&mut random),
        };
        let prepared = random.one_in(2);
        both(&sql, ordered, prepared);
        if prepared && !sql.parameters.is_empty() && random.one_in(3) {
            // The client has kept the statement.
            for _ in 0..2 {
                if random.one_in(3) {
                    let between = between_statements(&mut random, table);
                    both(&Sql::plain(between), false, false);
                }
                let again = sql.with_other_parameters(&mut random);
                both(&again, ordered, true);
            }
        }
    }
    for table in &tables {
        let check = format!("check table {}", table.name);
        let rows = query_text(&mut direct.connection, &check);
        assert!(rows[0].ends_with("OK"), "seed {seed}: {rows:?}");
    }
    statements_direct(&mut direct.connection)
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
