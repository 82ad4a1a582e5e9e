//! Direct plans against vectorised ones: every statement through both, with the same results.
//!
//! Two databases hold the same tables. A statement runs in one with `optimizer_switch='direct=on'` and in the other
//! with `direct=off`; rows, column descriptions, counts, warnings and errors must be the same, and so must the tables
//! afterwards. Schemas, rows and statements come from a seed.

use mysql::consts::ColumnType;
use mysql::prelude::Queryable;
use mysql::{Column, Conn, OptsBuilder, Params, Value};

use crate::direct_statements::{Random, Sql, Table, between_statements};
use crate::harness::{TestServer, query_text};

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

fn answer_of<P: mysql::prelude::Protocol>(
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

/// How many statements of a connection were direct.
fn statements_direct(connection: &mut Conn) -> u64 {
    let count = query_text(connection, "show status like 'Statements_direct'");
    let count = count[0].rsplit('\t').next().expect("a value");
    count.parse().expect("a number")
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

/// What the query of an UPDATE or DELETE has searched is locked, of the tables that change and of those that are read.
#[test]
fn changes_of_what_a_query_finds_lock_what_it_has_searched() {
    let server = TestServer::start();
    let mut connection = server.connect_to_new("searched");
    for sql in [
        "create table t (id int primary key, k int, n int, key k (k))",
        "create table u (id int primary key, m int)",
        "insert into t values (1, 1, 0), (2, 1, 0), (3, 5, 0), (4, 9, 0)",
        "insert into u values (1, 1), (5, 5), (9, 9)",
    ] {
        connection.query_drop(sql).expect(sql);
    }
    let options = OptsBuilder::from_opts(server.options()).db_name(Some("searched"));
    let mut other = Conn::new(options).expect("a connection");
    other
        .query_drop("set innodb_lock_wait_timeout = 1")
        .expect("a timeout");
    let changes = [
        "update t join u on u.id = t.k set t.n = t.n + 1 where u.id = 1",
        "delete t from u join t on t.k = u.id where u.id = 1",
        "update t set n = (select m from u where id = 1) where k = 1",
        "delete from t where k in (select id from u where id = 1)",
    ];
    let tries = [
        // With the rows that the change finds, and between them.
        ("update t set n = 7 where id = 2", true, true),
        ("insert into t values (10, 1, 0)", true, false),
        ("update t set k = 1 where id = 4", true, false),
        // What was only read.
        ("update u set m = 2 where id = 1", true, false),
        // Elsewhere in the tables.
        ("insert into t values (11, 9, 0)", false, false),
        ("update t set n = 7 where id = 3", false, false),
        ("update u set m = 2 where id = 5", false, false),
    ];
    for level in ["repeatable read", "read committed"] {
        for change in changes {
            let begin = format!("set session transaction isolation level {level}");
            connection.query_drop(begin).expect("a level");
            for (sql, waits, waits_for_rows) in tries {
                let waits = if level == "read committed" {
                    waits_for_rows
                } else {
                    waits
                };
                connection.query_drop("begin").expect("a transaction");
                let before = statements_direct(&mut connection);
                connection.query_drop(change).expect(change);
                assert!(statements_direct(&mut connection) > before, "{change}");
                other.query_drop("begin").expect("a transaction");
                let waited = other.query_drop(sql).is_err();
                other.query_drop("rollback").expect("a rollback");
                connection.query_drop("rollback").expect("a rollback");
                assert_eq!(waited, waits, "{level}: {change}: {sql}");
            }
        }
    }
}

/// Tables of `information_schema` are read directly as they are by operators, and then only for the names asked for.
#[test]
fn tables_of_definitions_are_read_directly() {
    let server = TestServer::start();
    let mut connection = server.connect_to_new("defined");
    for sql in [
        "create database elsewhere",
        "create table elsewhere.parents (x int)",
        "create table parents (id int primary key, name varchar(30) not null, email varchar(40), unique key (email))",
        "create table notes (id bigint auto_increment primary key, body text, at datetime(3) default now(3), key (at))",
        "create table child (id int primary key, p int, constraint of_parent foreign key (p) references parents (id) \
         on delete cascade, constraint is_positive check (p > 0))",
        "insert into parents values (5, 'notes', null)",
    ] {
        connection.query_drop(sql).expect(sql);
    }
    for sql in [
        "select table_name from information_schema.tables where table_schema = database() and table_name = 'parents'",
        "select table_name from information_schema.tables where table_schema = database() and table_name = 'PARENTS'",
        "select table_name, table_type from information_schema.tables where table_schema = 'information_schema' order by 1",
        "select TABLE_NAME as t, TABLE_ROWS from information_schema.TABLES x where x.table_schema = schema() and table_type = 'BASE TABLE' order by t",
        "select table_name from information_schema.tables where table_schema = 'nosuch'",
        "select table_name from information_schema.tables where table_schema = null",
        "select table_name from information_schema.tables where table_name like 'po%' and table_schema = 'defined' order by table_name",
        "select count(*) from information_schema.tables where table_schema = 'defined'",
        "select column_name, data_type, is_nullable from information_schema.columns where table_schema = database() and table_name = 'parents' order by ordinal_position",
        "select * from information_schema.columns where table_schema = 'defined' and table_name = 'parents' order by ordinal_position",
        "select * from information_schema.columns where table_schema = 'defined' order by table_name, ordinal_position",
        "select column_name, column_default, upper(column_type), case when is_nullable = 'YES' then 1 else 0 end as n from information_schema.columns where table_name = 'notes' and table_schema = database() order by ordinal_position",
        "select kc.constraint_name, kc.column_name, kc.referenced_table_name, kc.referenced_column_name, c.constraint_type from information_schema.key_column_usage as kc join information_schema.table_constraints as c on kc.table_schema = c.table_schema and kc.table_name = c.table_name and kc.constraint_name = c.constraint_name where kc.table_schema = database() and kc.table_name = 'child' order by kc.ordinal_position, 1",
        "select cc.constraint_name as name, cc.check_clause as expression from information_schema.check_constraints cc join information_schema.table_constraints tc on cc.constraint_schema = tc.constraint_schema and cc.constraint_name = tc.constraint_name where tc.table_schema = 'defined' and tc.table_name = 'child' and cc.constraint_schema = 'defined'",
        "select index_name as name, group_concat(column_name order by seq_in_index) as columns, index_type as type, not non_unique as uniq from information_schema.statistics where table_schema = schema() and table_name = 'parents' group by index_name, index_type, non_unique order by 1",
        "select table_name as name, (data_length + index_length) as size, table_comment as comment, engine as engine, table_collation as collation from information_schema.tables where table_schema = 'defined' and table_type in ('BASE TABLE', 'SYSTEM VERSIONED') order by table_name",
        "select table_name from (select table_name, table_type from information_schema.tables where table_schema = database()) _subquery where _subquery.table_type = 'BASE TABLE' order by 1",
        "select exists (select 1 from information_schema.tables where table_schema = 'defined' and table_name = 'notes' and table_type in ('BASE TABLE', 'SYSTEM VERSIONED')) as `exists`",
        "select schema_name, default_character_set_name from information_schema.schemata where schema_name = 'defined'",
        "select 1 from information_schema.tables where table_schema = 'defined ' and table_name = 'parents '",
        "select distinct table_name from information_schema.statistics where table_schema='defined' order by table_name",
        "select t.table_name, c.column_name from information_schema.tables t left join information_schema.columns c on c.table_schema = t.table_schema and c.table_name = t.table_name and c.column_key = 'PRI' where t.table_schema = 'defined' order by 1,2",
        "select u.id, t.table_name from parents u join information_schema.tables t on t.table_schema = 'defined' where u.id = 5 and t.table_name = u.name",
        "select table_name from information_schema.views where table_schema = database()",
        "select trigger_name from information_schema.triggers where event_object_schema = database()",
        "select column_name from information_schema.columns where table_schema = database() and table_name = 'parents' and column_name = 'email'",
        "select max(ordinal_position), count(*), table_name from information_schema.columns where table_schema = 'defined' group by table_name having count(*) > 3 order by table_name limit 3",
    ] {
        let mut answers = Vec::new();
        for direct in ["on", "off"] {
            let switch = format!("set optimizer_switch = 'direct={direct}'");
            connection.query_drop(switch).expect("a switch");
            let before = statements_direct(&mut connection);
            let result = connection.query_iter(sql);
            answers.push(answer_of(result, "defined", false));
            let is_direct = statements_direct(&mut connection) > before;
            assert_eq!(is_direct, direct == "on", "{sql}");
        }
        assert_eq!(answers[0], answers[1], "{sql}");
    }
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
        "select c from t where id = '1'",
        "select c from t where id between 1 and 2",
        "select c from t where id between 1 and 2 order by c",
        "select distinct c from t where id between 1 and 2 order by c",
        "select c from t where id = 1 for update",
        "select id from t where k >= 5 order by k limit 1 for share nowait",
        "select c from t where id = 1 for update skip locked",
        "select c from t where k >= 5 order by k limit 2 for share skip locked",
        "select a.c, b.c from t a, t b where a.id = 1 and b.id = a.k",
        "select a.c, b.c from t a, t b where a.k between 5 and 6 and b.id = a.k order by b.c desc, a.id limit 1",
        "select distinct b.c from t a, t b where a.k between 5 and 6 and b.id = a.k order by b.c",
        "select b.c, count(*), sum(a.k) from t a join t b on b.id = a.k where a.k between 5 and 6 group by b.c",
        "select k, max(id), count(distinct c) as n from t where k in (5, 6) group by k order by k desc limit 1",
        "select count(distinct b.k), count(*) from t a join t b on b.id = a.k where a.k between 5 and 6",
        "select a.c, b.c from t a left join t b on b.id = a.k where a.id = 1",
        "select a.c, b.id from t a left join t b on b.id = a.k and b.k = 7 left join t x on x.id = b.k where a.k in (5, 6)",
        "select count(*) from t a left join t b on b.id = a.k where a.k between 5 and 6",
        "select b.c from t a left join t b on b.id = a.k where a.id = 1 and b.k > 3",
        "select id, k from t where k in (5, 6)",
        "select id, k from t where k >= 10 - 5 and k < 5 + 2",
        "select a.c, b.c from t a, t b where a.k between 6 - 1 and 6 and b.id = a.k",
        "select k + 1, upper(c) from t where id = 1",
        "select c from t where id = last_insert_id()",
        "select a.c from t a join t b on b.id = a.k where a.id = last_insert_id()",
        "select id from t where id between 1 and 2 and (c like '%a' or k is null)",
        "select sum(k) from t where id between 1 and 2",
        "select count(k) from t where k between 5 and 6 or k between 6 and 9 or k = 1",
        "select max(id) from t",
        "select min(k) from t",
        "select max(k) from t where c >= 'a'",
        "select c from t limit 1",
        "select c from t order by id desc limit 2 offset 1",
        "select id, c from t where c >= 'a' order by k limit 1",
        "select k, count(*) as n from t where id between 1 and 2 group by k order by n",
    ] {
        assert!(extra(sql).contains("Direct"), "{sql}: {}", extra(sql));
    }
    for sql in [
        "select c from t where c = 'a'",
        "select c from t order by c limit 1",
        "select max(c) from t",
        "select max(k), min(k) from t",
        "select count(*) from t",
        "select c from t order by id limit 1001",
        "select distinct c from t limit 1",
        "select c from t order by id limit 1 for update",
        "select c from t where id = 1 or upper(c) = 'X'",
        "select rand(1) from t where id = 1",
        "select c from t where id < '1.5'",
        "select c from t where id = '1 apple'",
        "select max(c) from t group by k",
        "select max(k) from t where id = 1 for update",
        "select k, count(*) from t where id between 1 and 2 group by k with rollup",
        "select a.c from t a, t b where a.id = 1 and b.c = a.c",
        "select a.c from t a left join t b on b.id = a.k and a.c = 'x' where a.id = 1",
    ] {
        assert!(!extra(sql).contains("Direct"), "{sql}: {}", extra(sql));
    }
}

/// Also of queries in a FROM, of subqueries and of the parts of a UNION, EXPLAIN says whether they run directly.
#[test]
fn explain_says_which_queries_run_directly() {
    let server = TestServer::start();
    let mut connection = server.connect_to_new("explained_queries");
    for sql in [
        "create table t (id int primary key, k int, c varchar(20), key (k))",
        "create table u (id int primary key, t int not null, n varchar(20), key by_t (t, n))",
        "insert into t values (1, 5, 'a'), (2, 5, 'b'), (3, 7, 'c'), (4, 1, 'd')",
        "insert into u values (1, 1, 'a'), (2, 1, 'b'), (3, 7, 'c')",
    ] {
        connection.query_drop(sql).expect(sql);
    }
    // Too many to be read whole.
    let others: Vec<String> = (1000..1600)
        .map(|id| format!("({id}, {id}, 'z')"))
        .collect();
    let others = format!("insert into t values {}", others.join(", "));
    connection.query_drop(others).expect("more rows");
    let direct = [
        "select * from (select k, c from t where id in (1, 2)) d where d.k = 5",
        "select t.c, d.n from (select t, n from u where t = 1) d join t on t.id = d.t",
        "select id from t where id = 1 union select id from u where id = 3 order by id desc limit 3",
        "select c from t where id = (select max(id) from u where t = 1)",
        "select c from t where id in (select t from u where id in (1, 2))",
        "select c from t where id = 1 or k = 5",
        "select id, (select count(*) from u where u.t = t.id) from t where k = 5 order by c desc",
        "select t.id, d.n from t left join (select t, count(*) n from u group by t) d on d.t = t.id where t.k = 5",
        "with w as (select id from t where k = 5 order by id limit 1) select w.id, u.n from w join u on u.t = w.id",
        "insert into u select id + 10, k, c from t where id in (1, 2)",
        "update t join u on u.t = t.id set t.k = t.k + 1 where u.id = 1",
        "update t set c = (select max(n) from u where t = 1) where id = 1",
        "delete t from u join t on t.id = u.t where u.id = 1",
        "delete from t where id in (select t from u where id in (1, 2))",
        "delete from t where id = (select t from u where id = 1)",
        "select t.c, d.m from (select t, max(n) m from u group by t) d join t on t.id = d.t",
        "select t.c, d.m from (select t, max(n) m from u group by t) d join t on t.id between d.t + 1 and d.t + 2",
        "select t.c from t join (select t as id from u where id in (1, 2)) d using (id)",
        "select (select max(c) from t where t.id = u.t + 1) from u",
        "select count(*) from u where exists (select 1 from t where t.k > u.t * 100 and t.k < u.t * 100 + 3)",
        "select t.id from (select id from t order by k limit 3 offset 550) d join t on t.id = d.id",
        "update u set n = (select max(c) from t where t.id between u.t - 1 and u.t)",
        // The new k is in the row, converted to its type, before c is computed.
        "update t set k = k + 1, c = k where id = 1",
        "update t set k = k + 1, c = concat(k, 'x') where id = 1",
    ];
    let operators = [
        "select count(*) from (select c from t order by c) d",
        "select c from t where c = (select n from u where id = 1)",
        "select id from t where id = 1 union select id from t where c = 'a'",
        "select t.c from t where id in (select t from u where n = 'a')",
    ];
    for sql in direct {
        says_whether_it_runs_directly(&mut connection, sql, true);
    }
    for sql in operators {
        says_whether_it_runs_directly(&mut connection, sql, false);
    }
    // The session's limit is for the rows that a client gets, so direct plans of queries in a FROM leave it alone.
    connection
        .query_drop("set sql_select_limit = 5")
        .expect("a limit");
    for (sql, is_direct) in [(direct[0], false), (direct[3], true), (direct[4], true)] {
        says_whether_it_runs_directly(&mut connection, sql, is_direct);
    }
}

/// All formats of EXPLAIN say whether a statement runs directly, and it does what they say.
fn says_whether_it_runs_directly(connection: &mut Conn, sql: &str, is_direct: bool) {
    let rows = query_text(connection, &format!("explain {sql}"));
    let says = |row: &String| row.ends_with("Direct") == is_direct;
    assert!(rows.iter().all(says), "{sql}: {rows:?}");
    let tree = query_text(connection, &format!("explain format=tree {sql}"));
    let is_so = tree[0].starts_with("-> Direct (without operators)");
    assert_eq!(is_so, is_direct, "{sql}: {tree:?}");
    let json = query_text(connection, &format!("explain format=json {sql}"));
    let is_so = json[0].contains("\"direct\": true");
    assert_eq!(is_so, is_direct, "{sql}: {json:?}");
    connection.query_drop("flush status").expect("a reset");
    connection.query_drop(sql).expect(sql);
    let count = "show session status like 'Statements_direct'";
    let count = query_text(connection, count);
    assert_eq!(count[0].ends_with('1'), is_direct, "{sql}: {count:?}");
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

/// A plan that is kept must notice whatever changes how texts are compared.
#[test]
fn a_prepared_statement_follows_collations() {
    let server = TestServer::start();
    let mut c = server.connect_to_new("compared");
    let run = |c: &mut Conn, sql: &str| c.query_drop(sql).expect(sql);
    let make = |c: &mut Conn, collation: &str| {
        run(c, "drop table if exists t");
        let columns = format!("id int primary key, a varchar(9) collate {collation}, key (a)");
        run(c, &format!("create table t ({columns})"));
        run(
            c,
            "insert into t values (1, 'a'), (2, 'A'), (3, 'b'), (4, '\u{e4}')",
        );
    };
    make(&mut c, "utf8mb4_0900_ai_ci");
    let by_key = c
        .prep("select id from t where a = ? order by id")
        .expect("prepared");
    let by_range = c
        .prep("select id from t where a > ? order by a, id")
        .expect("prepared");
    let update = c.prep("update t set a = a where a = ?").expect("prepared");
    let cases = [
        ("utf8mb4_0900_ai_ci", vec![1, 2, 4], vec![3]),
        ("utf8mb4_bin", vec![1], vec![3, 4]),
        ("utf8mb4_general_ci", vec![1, 2, 4], vec![3]),
        ("utf8mb4_0900_ai_ci", vec![1, 2, 4], vec![3]),
    ];
    for (collation, equal, greater) in cases {
        make(&mut c, collation);
        for direct in ["on", "off"] {
            run(&mut c, &format!("set optimizer_switch = 'direct={direct}'"));
            let what = format!("{collation}, direct={direct}");
            let found: Vec<i32> = c.exec(&by_key, ("a",)).expect("rows");
            assert_eq!(found, equal, "= {what}");
            let text = "select id from t where a = 'a' order by id";
            let found: Vec<i32> = c.query(text).expect("rows");
            assert_eq!(found, equal, "text = {what}");
            let found: Vec<i32> = c.exec(&by_range, ("a",)).expect("rows");
            assert_eq!(found, greater, "> {what}");
            c.exec_drop(&update, ("a",)).expect("it changes nothing");
            assert!(
                c.info_str()
                    .starts_with(&format!("Rows matched: {}", equal.len())),
                "{what}"
            );
        }
    }
}

/// Whether columns have to be grouped is asked by each execution anew, prepared or not.
#[test]
fn a_prepared_statement_follows_sql_mode() {
    let server = TestServer::start();
    let mut c = server.connect_to_new("grouped");
    let run = |c: &mut Conn, sql: &str| c.query_drop(sql).expect(sql);
    run(
        &mut c,
        "create table t (id int primary key, a int, b varchar(9), key (a))",
    );
    run(
        &mut c,
        "insert into t values (1, 1, 'x'), (2, 1, 'x'), (3, 2, 'y')",
    );
    run(&mut c, "set sql_mode = 'STRICT_TRANS_TABLES'");
    let text = "select a, b, count(*) from t where a = 1 group by a";
    let by_value = c
        .prep("select a, b, count(*) from t where a = ? group by a")
        .expect("any row's b");
    let of_all = c
        .prep("select a, b, count(*) from t where a = 1 group by a limit 5")
        .expect("any row's b");
    let grouped = c
        .prep("select a, count(*) from t where a = ? group by a")
        .expect("prepared");
    let code = |error: mysql::Error| match error {
        mysql::Error::MySqlError(error) => error.code,
        other => panic!("{other}"),
    };
    type Group = (i32, String, i64);
    for mode in ["", "ONLY_FULL_GROUP_BY", "", "ONLY_FULL_GROUP_BY"] {
        run(&mut c, &format!("set sql_mode = '{mode}'"));
        // The second time, what the first has left is used.
        for _ in 0..2 {
            let answers: [mysql::Result<Vec<Group>>; 3] =
                [c.query(text), c.exec(&by_value, (1,)), c.exec(&of_all, ())];
            for answer in answers {
                match (mode, answer.map_err(code)) {
                    ("", answer) => assert_eq!(answer, Ok(vec![(1, "x".to_string(), 2)])),
                    (_, answer) => assert_eq!(answer, Err(1055)),
                }
            }
            let counts: Vec<(i32, i64)> = c.exec(&grouped, (1,)).expect("rows");
            assert_eq!(counts, [(1, 2)], "sql_mode '{mode}'");
        }
    }
    let refused = c.prep("select a, b from t group by a").map_err(code);
    assert_eq!(refused.err(), Some(1055));
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

/// Statements that differ in their comments share a plan, unless the result's header is another.
#[test]
fn the_header_of_an_aggregate_has_its_comment() {
    let server = TestServer::start();
    let mut c = server.connect_to_new("headers");
    c.query_drop("create table t (a int primary key)")
        .expect("a table");
    for direct in ["on", "off"] {
        c.query_drop(format!("set optimizer_switch = 'direct={direct}'"))
            .expect("a switch");
        for header in ["sum(/* all */ a)", "sum(/* of them */ a)", "sum( a )"] {
            let sql = format!("/* tag */ select {header} from t where a = 1");
            let result = c.query_iter(&sql).expect("a sum");
            let columns = result.columns();
            assert_eq!(columns.as_ref()[0].name_str(), header, "direct={direct}");
        }
    }
}

/// What is computed from one row, or from none, needs no vectorised plan: each of these is direct, and means the same.
#[test]
fn what_is_computed_from_a_row_is_direct() {
    let server = TestServer::start();
    let mut c = server.connect_to_new("computed");
    let create = "create table t (id int primary key, k int not null, d decimal(8,2), c varchar(40) default 'none', \
                  at datetime(3), changed timestamp null on update current_timestamp, key k (k))";
    for sql in [
        create,
        "set timestamp = 1700000000, @n = 3, @text = 'Abc'",
        "insert into t (id, k, d, c) values (1, 5, 1.25, 'one'), (2, 6, null, 'two'), (3, 7, 9.5, null)",
    ] {
        c.query_drop(sql).expect(sql);
    }
    let statements = [
        "select k+1 from t where id = 1",
        "select K + 17, concat(c, '-', k), d * 2 as twice from t where id = 1",
        "select *, upper(c), now(), @n from t where id in (1, 2)",
        "select 1 from t where id = 2",
        "select 'x', -1, k-1 from t where id = 2",
        "select coalesce(d, k), if(k > 5, c, 'small'), case k when 5 then 'five' else c end from t where id between 1 and 3",
        "select left(c, 2), date_format(now(), '%Y-%m'), cast(k as char(5)) from t where id = 3",
        "select id from t where id between 1 and 3 and (c = 'one' or d is null)",
        "select count(*) from t where id between 1 and 3 and c like '%o%'",
        "select k / 0, k % 4 from t where k = 6",
        "select max(id) + 1, concat(min(k), '-', max(k)) from t",
        "select max(k), min(id), -max(k) as least from t",
        "select id from t where id = 2 and lower(c) = 'TWO' and left(trim(c), 2) >= 'tw'",
        "select id from t where id between 1 and 3 and (upper(c) = 'one ' or rtrim(c) = 5)",
        "select id, c from t where k = 6 or id = 1",
        "select id, c from t where k between 5 and 6 or (id = 3 and c is null) order by id desc limit 2",
        "select count(*) from t where id in (select k - 4 from t where k = 6)",
        "select c from t where id in (select id from t where k > 5) and c like 't%'",
        "select c + 1 from t where id = 1 for update",
        "select 1",
        "select last_insert_id(), row_count(), found_rows(), database(), connection_id() > 0",
        "select @@version, @@session.sql_mode as mode, @@max_allowed_packet, @@autocommit",
        "select @n + 1, 'x' as x, 'y', 2.50, -3, upper(@text), @text, @n",
        "select now(), current_date, utc_timestamp(3) + 0, current_user, version()",
        "insert into t (id, k, at) values (10, 1 + 1, now(3))",
        "insert into t (id, k, c) values (11, @n, concat(@text, 'd')), (12, default(k), default)",
        "insert into t (id, k, c) values (11, @n, concat(@text, 'd')), (12, 2, default)",
        "insert into t values (13, 1, null, upper('abc'), utc_timestamp(), curdate())",
        "insert ignore into t (id, k, c) values (13, 1, now())",
        "insert into t set id = 14, k = 2, c = upper('abc'), at = now()",
        "update t set c = 'one only' where id = 14 limit 1",
        "delete from t where id = 14 limit 1",
        "select c, @n from t where id = @n",
        "select id from t where id = last_insert_id() and k > @n",
        "update t set c = 'by variable' where id = @n",
        "update t set k = 300 + 1, d = 2 * 3.5 - 1 where id = 1",
        "select id from t where id between 1 and 3 and (c <> 'two' or k = 6) and d < 100",
        "replace into t (id, k, c) values (13, 2, 'replaced')",
        "insert into t (id, k) values (1, 9) on duplicate key update k = k + values(k), c = 'again'",
        "insert into t (id, k) values (1, 9) on duplicate key update k = values(k), at = now(), d = d * 2",
        "update t set at = now() where id = 1",
        "update t set c = concat(c, '/', id), d = d + 12.500000 where id = 1",
        "update t set c = upper(c) where id between 1 and 3",
        "update t set c = default, d = d / 3 where id = 2",
        "update t set k = k + @n where id = 3 and (c = 'x' or k = 7)",
        "update t set d = 1 / 0 where id = 3",
        "delete from t where id = 12 and k <> 3",
        "select id from t where id between 1 and 20 and c <> 'TWO' and k != 7",
        "select id from t where id between 1 and 20 and (k <> 5 or k = 5)",
        "select id from t where id > 1 and id <> 3 and k <> null order by id limit 5",
        "select count(*) from t where id between 1 and 20 and d <> 1.25 and 300 <> k",
        "insert into t (id, k, c, at) select id + 100, k, concat(c, '+'), now() from t where id = 1",
        "insert ignore into t (id, k, d) select id, k, d from t where id between 1 and 3",
        "insert into t (id, k, c) select 200, count(*), max(c) from t where id between 1 and 3",
        "insert into t (id, k) select 201, 1 from t where id = 99",
        "replace into t (id, k, d, c) select id, k + 1, coalesce(d, 1.5) * 2, upper(c) from t where id = 101",
        "insert into t (id, k) select 202, 5 where not exists (select 1 from t where id = 202)",
        "insert into t (id, k) select 202, 5 where not exists (select 1 from t where id = 202)",
        "insert into t (id, k) select id, 'abc' from t where id = 1",
        "insert into t (id, k, c) select id, k + 1, 'dup' from t where id in (1, 2) on duplicate key update k = values(k), c = concat(t.c, '+', values(c))",
        "insert into t (id, k, c) select id + 300, k, c from t where id in (1, 2) on duplicate key update k = k + 1",
        "insert into t (id, k, c) select id + 299, k, c from t where id in (1, 2) on duplicate key update k = k + 1, c = default",
        "insert into t (id, k) select id, 7 from t where id in (1, 2) on duplicate key update k = 7",
        "insert into t (id, k) select id, 7 from t where id = 1 on duplicate key update k = 'abc'",
        "delete from t where id between 100 and 300",
        "insert into t (id, k, d, c) values (15, 17 % 5, 7 / 4, concat('c', 9 % 4)), (16, 17 div 5, 1.5 / 3, concat('x', 16))",
        "insert into t (id, k, d, c) values (17, 18 % 5, 8 / 3, concat('d', 9 % 5)), (18, 19 div 5, 2.5 / 7, concat('y', 17))",
        "update t set k = case id when 15 then 5 when 16 then 6 else k end, c = case when id = 15 then 'fifteen' when id = 16 then '16' end where id in (15, 16)",
        "update t set k = case id when 17 then 7 when 18 then 8 else k end, c = case when id = 17 then null when id = 18 then 18 end where id in (17, 18)",
        "update t set c = if(k > 5, 'large', coalesce(c, 'none')), d = ifnull(d, 1) + 0.5 where id in (15, 17)",
        "update t set c = concat(c, '!'), k = k + 10 where k between 0 and 9 order by k limit 2",
        "update t set k = 1000 where id > 14 order by id desc limit 1",
        "update t set c = 'limited' where id in (1, 2, 3) order by id limit 2",
        "delete from t where k > 5 order by k desc limit 1",
        "delete from t where id between 15 and 18 order by id limit 1",
        "delete from t where id between 15 and 18 order by id desc limit 100",
        "select * from t where id between 1 and 20",
    ];
    let mut answers: Vec<Vec<String>> = Vec::new();
    for direct in ["off", "on"] {
        c.query_drop("drop table if exists t").expect("no table");
        c.query_drop(create).expect("a table");
        c.query_drop("insert into t (id, k, d, c) values (1, 5, 1.25, 'one'), (2, 6, null, 'two'), (3, 7, 9.5, null)")
            .expect("rows");
        c.query_drop(format!("set optimizer_switch = 'direct={direct}'"))
            .expect("a switch");
        let mut shown = Vec::new();
        for sql in statements {
            let before = session_count(&mut c, "Statements_direct");
            let answer = answer_of(c.query_iter(sql), "computed", false);
            let is_direct = session_count(&mut c, "Statements_direct") > before;
            // What fails is told by the other way, or in the middle of this one.
            assert!(
                is_direct == (direct == "on") || answer.error.is_some(),
                "{sql}: {direct}"
            );
            let warnings = query_text(&mut c, "show warnings");
            shown.push(format!("{sql}: {answer:?} {warnings:?}"));
        }
        answers.push(shown);
    }
    for (vectorised, direct) in answers[0].iter().zip(&answers[1]) {
        assert_eq!(vectorised, direct);
    }
}

/// The clock is read at each execution of a plan that is kept, and so are variables.
#[test]
fn a_kept_plan_reads_the_clock_and_variables_anew() {
    let server = TestServer::start();
    let mut c = server.connect_to_new("clocks");
    c.query_drop("create table t (id int primary key, at datetime, n int)")
        .expect("a table");
    let insert = c
        .prep("insert into t values (?, now(), @n + 1)")
        .expect("prepared");
    let select = c
        .prep("select year(now()), at < now(), n + @n from t where id = ?")
        .expect("prepared");
    for (id, seconds) in [
        (1, 1_000_000_000u64),
        (2, 1_500_000_000),
        (3, 1_600_000_000),
    ] {
        c.query_drop(format!("set timestamp = {seconds}, @n = {id}"))
            .expect("a moment");
        c.exec_drop(&insert, (id,)).expect("a row");
        let rows: Vec<(i64, i64, i64)> = c.exec(&select, (1,)).expect("a row");
        let year = [2001, 2017, 2020][id as usize - 1];
        assert_eq!(rows, [(year, i64::from(id > 1), 2 + id)]);
    }
    let rows: Vec<(i64, i64, i64)> = c
        .query("select id, unix_timestamp(at), n from t order by id")
        .expect("rows");
    assert_eq!(
        rows,
        [
            (1, 1_000_000_000, 2),
            (2, 1_500_000_000, 3),
            (3, 1_600_000_000, 4)
        ]
    );
}

/// What a plan has declined is not tried again on the way to the operators.
#[test]
fn a_walk_that_gives_up_is_made_once() {
    let server = TestServer::start();
    let mut c = server.connect_to_new("walked");
    c.query_drop("create table t (id int primary key, a int)")
        .expect("a table");
    let rows: Vec<String> = (0..3000).map(|id| format!("({id}, {})", id % 7)).collect();
    c.query_drop(format!("insert into t values {}", rows.join(", ")))
        .expect("rows");
    let prepared = c
        .prep("select id from t where a = ? order by id limit 1")
        .expect("prepared");
    c.query_drop("flush status").expect("a reset");
    let found: Vec<i32> = c.exec(&prepared, (7,)).expect("no rows");
    assert!(found.is_empty());
    let walks = session_count(&mut c, "Handler_read_first");
    assert!(walks > 0, "the plan walks along the key");
    c.query_drop("flush status").expect("a reset");
    let found: Vec<i32> = c
        .query("select id from t where a = 7 order by id limit 1")
        .expect("no rows");
    assert!(found.is_empty());
    assert_eq!(session_count(&mut c, "Handler_read_first"), walks);
    assert_eq!(session_count(&mut c, "Statements_direct"), 0);
}

/// The values of COUNT(DISTINCT) wait in memory, too, and are left to the operators if they are too large.
#[test]
fn distinct_values_that_do_not_fit_are_not_counted_directly() {
    let server = TestServer::start();
    let mut c = server.connect_to_new("distinct_values");
    c.query_drop("create table t (id int primary key, k int, b mediumtext, key (k))")
        .expect("a table");
    for id in 0..62 {
        let (k, length) = if id < 60 { (1, 100_000) } else { (2, 10) };
        let text = format!("{id}{}", "x".repeat(length));
        c.query_drop(format!("insert into t values ({id}, {k}, '{text}')"))
            .expect("a row");
    }
    for (sql, row, direct) in [
        (
            "select k, count(distinct b) from t where k = 1 group by k",
            "1\t60",
            0,
        ),
        (
            "select k, count(distinct b) from t where k = 2 group by k",
            "2\t2",
            1,
        ),
        (
            "select count(distinct b.b) from t a join t b on b.k = a.k where a.id = 1",
            "60",
            0,
        ),
        (
            "select count(distinct b.b) from t a join t b on b.k = a.k where a.id = 60",
            "2",
            1,
        ),
    ] {
        c.query_drop("flush status").expect("a reset");
        assert_eq!(query_text(&mut c, sql), [row], "{sql}");
        assert_eq!(session_count(&mut c, "Statements_direct"), direct, "{sql}");
    }
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

#[test]
fn rows_that_are_not_in_memory_are_asked_for_ahead() {
    let mut server = TestServer::start();
    let mut connection = server.connect_to_new("ahead");
    connection
        .query_drop("create table t (id int primary key, k int, filler varchar(1000), key (k))")
        .expect("a table");
    for batch in 0..8 {
        let rows: Vec<String> = (0..250)
            .map(|row| batch * 250 + row)
            .map(|id| format!("({id}, {}, '{}')", id % 10, "x".repeat(1000)))
            .collect();
        connection
            .query_drop(format!("insert into t values {}", rows.join(", ")))
            .expect("rows");
    }
    drop(connection);
    server.restart();
    let mut connection = server.connect();
    connection.query_drop("use ahead").expect("the database");
    let pages = |connection: &mut Conn| -> (u64, u64) {
        let mut value = |name: &str| {
            let row: Option<(String, u64)> = connection
                .query_first(format!(
                    "show global status like 'Innodb_buffer_pool_{name}'"
                ))
                .expect("a status variable");
            row.map_or(0, |(_, value)| value)
        };
        (value("reads"), value("read_ahead"))
    };
    // 200 rows on as many leaves, in the order of the index, then in no order.
    for (sql, waits) in [
        ("select id, filler from t where k = 3 and filler > 'a'", 20),
        (
            "select id, filler from t where k = 3 order by filler, id limit 3",
            0,
        ),
    ] {
        let explained = query_text(&mut connection, &format!("explain {sql}"));
        assert!(explained[0].contains("Direct"), "{explained:?}");
        let before = pages(&mut connection);
        query_text(&mut connection, sql);
        let after = pages(&mut connection);
        let (waited, ahead) = (after.0 - before.0, after.1 - before.1);
        assert!(waited <= waits, "{sql}: {waited} pages waited for");
        assert_eq!(ahead > 80, waits > 0, "{sql}: {ahead} pages asked for");
    }
}

/// Entries decide about what the index holds, and stand for their rows where it holds all that is read.
#[test]
fn entries_are_tested_before_their_rows_are_looked_up() {
    let server = TestServer::start();
    let mut connection = server.connect_to_new("entries");
    for sql in [
        "create table t (id int primary key, a int, b varchar(20), c decimal(8,2) not null, d int, key a_b_c (a, b, c))",
        "insert into t values (1, 1, 'x', 1.5, 10), (2, 1, 'Y', 2.5, 20), (3, 2, 'y', 3.5, 30), (4, 2, null, 4.5, 40),
         (5, 3, 'y', 5.5, 50), (6, 3, 'z', 6.5, 60), (7, 4, 'y', 7.5, 70)",
        "analyze table t",
    ] {
        connection.query_drop(sql).expect(sql);
    }
    let icp = |connection: &mut Conn, sql: &str| {
        connection.query_drop("flush status").expect("a reset");
        let rows = query_text(connection, sql);
        let counts = query_text(connection, "show session status like 'Handler_icp%'");
        let counts: Vec<String> = counts
            .iter()
            .filter_map(|line| line.split('\t').next_back())
            .map(str::to_string)
            .collect();
        let explained = query_text(connection, &format!("explain {sql}"));
        let extra = explained[0].rsplit('\t').next().unwrap_or_default();
        (rows, counts.join(" of "), extra.to_string())
    };
    let text = |texts: &[&str]| -> Vec<String> { texts.iter().map(ToString::to_string).collect() };
    // Six entries are looked at, two of them lead to rows.
    let (rows, counts, extra) = icp(
        &mut connection,
        "select d from t where a between 1 and 3 and b = 'y' and c >= 3 order by a",
    );
    assert_eq!(rows, text(&["30", "50"]));
    assert_eq!(counts, "6 of 2");
    assert!(extra.starts_with("Using index condition"), "{extra}");
    assert!(extra.ends_with("Direct"), "{extra}");
    // The index has all of it, the values as they were written and the primary key too.
    let (rows, counts, extra) = icp(
        &mut connection,
        "select id, b, c from t where a between 1 and 3 and b = 'Y' order by a desc, b desc",
    );
    assert_eq!(rows, text(&["5\ty\t5.50", "3\ty\t3.50", "2\tY\t2.50"]));
    assert_eq!(counts, "0 of 0");
    assert!(extra.contains("Using index;"), "{extra}");
    assert!(extra.ends_with("Direct"), "{extra}");
    let (rows, ..) = icp(
        &mut connection,
        "select count(*), count(b), sum(c), max(id) from t where a between 1 and 2",
    );
    assert_eq!(rows, text(&["4\t3\t12.00\t4"]));
    let (rows, ..) = icp(
        &mut connection,
        "select distinct b from t where a between 1 and 2 order by b",
    );
    assert_eq!(rows, text(&["NULL", "x", "Y"]));
    for (sql, value) in [
        ("select max(a) from t", "4"),
        ("select min(a) from t where b = 'Y'", "1"),
        ("select max(a) from t where b = 'x'", "1"),
        ("select min(d) from t where id > 3", "40"),
        ("select min(id) from t where id > 3 and d > 55", "6"),
        ("select max(id) from t where id < 3 and d > 55", "NULL"),
        ("select max(a) from t where a < 1", "NULL"),
        ("select max(b) from t where a = 2", "y"),
        ("select min(c) from t where a = 2 and b = 'y'", "3.50"),
    ] {
        assert_eq!(icp(&mut connection, sql).0, [value], "{sql}");
    }
    // Of two indexes with the same range, the one whose entries say more.
    for sql in [
        "create table two (id int primary key, a int, b int, c int, d int, key a_c (a, c), key a_b (a, b))",
        "insert into two values (1, 1, 1, 1, 1), (2, 1, 2, 2, 2), (3, 2, 2, 3, 3)",
    ] {
        connection.query_drop(sql).expect(sql);
    }
    for (sql, key) in [
        (
            "select d from two where a between 1 and 2 and b = 2",
            "a_b Using index condition; Direct",
        ),
        (
            "select c from two where a between 1 and 2",
            "a_c Using index; Direct",
        ),
    ] {
        let explained = query_text(&mut connection, &format!("explain {sql}"));
        let columns: Vec<_> = explained[0].split('\t').collect();
        assert_eq!(format!("{} {}", columns[6], columns[11]), key, "{sql}");
    }
    let (rows, ..) = icp(
        &mut connection,
        "select one.d, other.b, other.c from t one, t other where one.id = 1 and other.a = one.a",
    );
    assert_eq!(rows, text(&["10\tx\t1.50", "10\tY\t2.50"]));
    connection
        .query_drop("set optimizer_switch = 'index_condition_pushdown=off'")
        .expect("a switch");
    connection.query_drop("flush status").expect("a reset");
    let rows = query_text(
        &mut connection,
        "select d from t where a between 1 and 3 and b = 'y' and c >= 3 order by a",
    );
    assert_eq!(rows, text(&["30", "50"]));
    let counts = query_text(&mut connection, "show session status like 'Handler_icp%'");
    assert_eq!(
        counts,
        text(&["Handler_icp_attempts\t0", "Handler_icp_match\t0"])
    );
}

/// Entries, and what completes them, are those of the snapshot; locking reads test what is there now.
#[test]
fn entries_are_read_as_their_rows_are() {
    let server = TestServer::start();
    let mut reader = server.connect_to_new("snapshots");
    let mut writer = server.connect();
    let run = |c: &mut Conn, sql: &str| c.query_drop(sql).expect(sql);
    run(&mut writer, "use snapshots");
    let all = "select id, b from t where a between 1 and 2 order by id";
    let tested = "select c from t where a between 1 and 2 and b = 'y' order by c";
    for direct in ["on", "off"] {
        run(&mut writer, "drop table if exists t");
        run(
            &mut writer,
            "create table t (id int primary key, a int, b varchar(20), c int, key a_b (a, b))",
        );
        run(
            &mut writer,
            "insert into t values (1, 1, 'x', 10), (2, 1, 'y', 20), (3, 2, 'y', 30)",
        );
        let switch = format!("set optimizer_switch = 'direct={direct}'");
        run(&mut reader, &switch);
        run(&mut reader, "begin");
        assert_eq!(query_text(&mut reader, all), ["1\tx", "2\ty", "3\ty"]);
        for sql in [
            // The same sort key.
            "update t set b = 'X' where id = 1",
            "update t set b = 'z' where id = 2",
            "delete from t where id = 3",
            "insert into t values (4, 1, 'Y', 40)",
        ] {
            run(&mut writer, sql);
        }
        let count = "select count(*), min(id), max(id) from t where a between 1 and 2";
        assert_eq!(
            query_text(&mut reader, all),
            ["1\tx", "2\ty", "3\ty"],
            "{direct}"
        );
        assert_eq!(query_text(&mut reader, tested), ["20", "30"], "{direct}");
        assert_eq!(query_text(&mut reader, count), ["3\t1\t3"], "{direct}");
        let locking = format!("{tested} for update");
        assert_eq!(query_text(&mut reader, &locking), ["40"], "{direct}");
        run(&mut reader, "update t set b = 'w' where id = 2");
        assert_eq!(
            query_text(&mut reader, all),
            ["1\tx", "2\tw", "3\ty"],
            "{direct}"
        );
        assert_eq!(query_text(&mut reader, tested), ["30"], "{direct}");
        run(&mut reader, "commit");
        assert_eq!(
            query_text(&mut reader, all),
            ["1\tX", "2\tw", "4\tY"],
            "{direct}"
        );
        assert_eq!(query_text(&mut reader, tested), ["40"], "{direct}");
    }
}

/// Others have changed the rows since the snapshot, and what comes on top of that is the transaction's own: each row is
/// seen once, by every index as it is by the primary key.
#[test]
fn own_changes_hide_what_the_snapshot_has_of_the_row() {
    let server = TestServer::start();
    let mut reader = server.connect_to_new("own");
    let mut writer = server.connect();
    let run = |c: &mut Conn, sql: &str| c.query_drop(sql).expect(sql);
    run(&mut writer, "use own");
    for direct in ["on", "off"] {
        run(&mut writer, "drop table if exists t");
        run(
            &mut writer,
            "create table t (id int primary key, b varchar(20), c int, unique key by_b (b, id), key by_c (c))",
        );
        run(
            &mut writer,
            "insert into t values (1, 'a', 1), (2, 'b', 2), (3, 'c', 3), (4, 'd', 4), (5, 'e', 5)",
        );
        let switch = format!("set optimizer_switch = 'direct={direct}'");
        run(&mut reader, &switch);
        run(&mut reader, "begin");
        let by_key = "select id, b, c from t where id between 1 and 9 order by id";
        let snapshot = query_text(&mut reader, by_key);
        for sql in [
            "update t set b = concat(b, b) where id in (1, 2, 3)",
            "delete from t where id = 4",
            "update t set id = 6, c = 6 where id = 5",
        ] {
            run(&mut writer, sql);
        }
        assert_eq!(query_text(&mut reader, by_key), snapshot, "{direct}");
        for sql in [
            // What an index has, what only the row has, the row itself, a row of the same key, another row's key.
            "update t set b = 'own' where id = 1",
            "update t set c = 20 where id = 2",
            "delete from t where id = 3",
            "insert into t values (4, 'new', 40)",
            "update t set id = 5 where id = 6",
        ] {
            run(&mut reader, sql);
        }
        let own = ["1\town\t1", "2\tbb\t20", "4\tnew\t40", "5\te\t6"];
        for when in ["before", "after a savepoint"] {
            assert_eq!(query_text(&mut reader, by_key), own, "{direct}, {when}");
            for index in ["by_b", "by_c"] {
                let column = &index[3..];
                let forced = format!("from t force index ({index}) where {column} > ''");
                let forced = match index {
                    "by_c" => forced.replace("''", "0"),
                    _ => forced,
                };
                let rows = format!("select id, b, c {forced} order by id");
                assert_eq!(
                    query_text(&mut reader, &rows),
                    own,
                    "{direct}, {index}, {when}"
                );
                let ids = format!("select id {forced} order by id");
                assert_eq!(
                    query_text(&mut reader, &ids),
                    ["1", "2", "4", "5"],
                    "{direct}, {index} alone, {when}"
                );
            }
            run(&mut reader, "savepoint s");
            run(&mut reader, "update t set b = 'later', c = c + 1");
            run(&mut reader, "rollback to s");
        }
        run(&mut reader, "commit");
        assert_eq!(query_text(&mut writer, by_key), own, "{direct}");
    }
}

/// INSERTs of many rows that look alike are read without a syntax tree, and do what they do with one.
#[test]
fn rows_that_look_alike_are_inserted_as_others_are() {
    let server = TestServer::start();
    let mut direct = Client::new(&server, "dbone", "on");
    let mut parsed = Client::new(&server, "dbtwo", "off");
    let mut both = |text: &str| {
        let sql = Sql::plain(text.into());
        let (one, two) = (direct.run(&sql, false), parsed.run(&sql, false));
        let end = text.floor_char_boundary(200);
        assert_eq!(one, two, "{}", &text[..end]);
    };
    both("set timestamp = 1700000000.5, @n = 7, @text = 'Abc'");
    both(
        "create table t (id int primary key auto_increment, i tinyint, u bigint unsigned default 4, d decimal(8,2), f double, \
         c varchar(12) default 'none', b varbinary(12), e enum('a','b'), day date, at datetime(3), \
         changed timestamp null default current_timestamp, j text not null, unique key (u))",
    );
    let rows = |row: &dyn Fn(usize) -> String| {
        let rows = (1..=60).map(row);
        rows.collect::<Vec<_>>().join(",\n ")
    };
    let padding = "x".repeat(20);
    let heads = [
        "insert into t (i, u, d, f, c, b, e, day, at, j)",
        "insert ignore into t (i, u, d, f, c, b, e, day, at, j)",
        "replace into `t` (i,u,d,f,c,b,e,day,at,j)",
    ];
    for mode in [
        "",
        "strict_trans_tables,no_zero_date",
        "no_auto_value_on_zero",
    ] {
        both(&format!("set sql_mode = '{mode}'"));
        for head in heads {
            let lists = [
                rows(&|n| {
                    format!(
                        "({n},{n},{n}.5,-{n}.25,'c{n}','b{n}','a','2024-01-{n:02}',now(),'{padding}')"
                    )
                }),
                rows(&|n| {
                    format!(
                        "({}, {}, {n}.555, {n}, 'it''s\\'{n}\\n', '\\0{n}', 2, '2024-02-03', '2024-02-03 04:05:06.7', 'é')",
                        n * 5,
                        n + 100
                    )
                }),
                rows(&|n| format!("(NULL,{n},null,NULL,'{n}',NULL,null,NULL,NULL,{n})")),
                rows(&|n| {
                    format!(
                        "({n},{n}000,'{n}',' {n}.5','12345678901234567890','ü','x','0000-00-00','nonsense','%\\%\\_')"
                    )
                }),
                rows(&|n| {
                    format!(
                        "(default,{n},-99999999999{n},12345678901234567890123.5,@text,@n,'B',curdate(),@text,NULL)"
                    )
                }),
                rows(&|n| {
                    let (u, day) = (["1", "default", "null"][n % 3], ["now()", "NULL"][n / 31]);
                    format!("({n},{n},{n},{u},'c','b','a',{day},@text,'{padding}')")
                }),
                rows(&|n| {
                    format!("({n},-1,{n},{n},{n},{n},{n},20240102,20240102030405,concat('a',{n}))")
                }),
                rows(&|n| {
                    format!(
                        "({n},{n},1,1,'a','b','a',now(),now(),'{padding}'{})",
                        if n == 40 { ",1" } else { "" }
                    )
                }),
                rows(&|n| {
                    format!(
                        "({n},{n},1,1,'a','b','a',now(),now(),{})",
                        if n == 40 { "1+1" } else { "'a'" }
                    )
                }),
            ];
            for list in &lists {
                both(&format!("{head} values {list}"));
                both("select * from t order by id");
                both(&format!("{head}\nVALUES{list};"));
                both("select count(*), last_insert_id() from t");
                both(&format!(
                    "insert into t (i, u, d, f, c, b, e, day, at, j) values {list} \
                     on duplicate key update i = i + 1, c = 'again', d = values(d) + 0.5"
                ));
                both("select * from t order by id");
                both("delete from t where u < 1000");
            }
            both("truncate table t");
        }
    }
    both(&format!(
        "insert into t values {}",
        rows(&|n| format!("({n},{n},{n},1,1,'a','b','a',now(),now(),null,'{padding}')"))
    ));
    both(&format!(
        "insert into t (nothing) values {}",
        rows(&|n| format!("({n}, '{padding}')"))
    ));
    both(&format!(
        "insert into nothing values {}",
        rows(&|n| format!("({n}, '{padding}')"))
    ));
    both("begin");
    both(&format!(
        "insert into t (i, u, j) value {}",
        rows(&|n| format!("(0, 5{n}, '{padding}')"))
    ));
    both("rollback");
    both("select * from t order by id");
    let direct = session_count(&mut direct.connection, "Statements_direct");
    assert!(direct > 100, "only {direct} statements were direct");
}
