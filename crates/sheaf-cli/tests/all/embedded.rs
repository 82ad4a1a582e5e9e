//! The library.

use arrow::array::AsArray;
use arrow::compute::concat_batches;
use arrow::datatypes::{Decimal128Type, Int32Type, Int64Type};
use arrow::record_batch::RecordBatch;
use arrow::util::display::array_value_to_string;
use sheaf::{Cell, Connection, Database, Options, Value, params};

fn options() -> Options {
    Options::default().with_memory_bytes(64 << 20)
}

#[test]
fn rows_come_as_arrow_batches() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let database = Database::open(directory.path(), options()).expect("an empty database");
    let mut connection = database.connect().expect("a session");
    connection
        .execute("CREATE DATABASE shop")
        .expect("the name is free");
    connection.execute("USE shop").expect("it was just created");
    connection
        .execute("CREATE TABLE t (a INT PRIMARY KEY, b DECIMAL(8,2), c VARCHAR(20))")
        .expect("the name is free");
    let inserted = connection.execute("INSERT INTO t VALUES (1, 1.5, 'one'), (2, NULL, 'two')");
    assert_eq!(inserted, Ok(2));
    let batches = connection
        .query("SELECT a, b, c FROM t ORDER BY a")
        .expect("the table is filled");
    assert_eq!(
        batches.iter().map(|batch| batch.num_rows()).sum::<usize>(),
        2
    );
    let batch = &batches[0];
    assert_eq!(batch.column(0).as_primitive::<Int32Type>().value(0), 1);
    assert_eq!(
        batch.column(1).as_primitive::<Decimal128Type>().value(0),
        150
    );
    assert_eq!(batch.column(2).as_string_view().value(0), "one");
    let error = connection
        .query("SELECT * FROM missing")
        .expect_err("there is no such table");
    assert_eq!((error.code, error.sqlstate), (1146, "42S02"));
}

#[test]
fn what_was_closed_is_there_when_opened_again() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let database = Database::open(directory.path(), options()).expect("an empty database");
    let mut connection = database.connect().expect("a session");
    for sql in [
        "CREATE DATABASE shop",
        "CREATE DATABASE exact COLLATE utf8mb4_bin",
        "CREATE DATABASE changed",
        "ALTER DATABASE changed COLLATE utf8mb4_general_ci",
        "CREATE TABLE shop.t (a INT PRIMARY KEY, b INT, KEY (b))",
        "INSERT INTO shop.t VALUES (1, 10), (2, 20)",
    ] {
        connection
            .execute(sql)
            .unwrap_or_else(|error| panic!("{sql}: {error}"));
    }
    drop(connection);
    database.close().expect("the database closes");

    let database = Database::open(directory.path(), options()).expect("the same database");
    let mut connection = database.connect().expect("a session");
    let batches = connection
        .query("SELECT SUM(b) + 0 FROM shop.t WHERE b > 5")
        .expect("the table is there");
    assert_eq!(batches[0].num_rows(), 1);
    let batches = connection
        .query("SELECT COUNT(*) FROM shop.t")
        .expect("the table is there");
    assert_eq!(batches[0].column(0).as_primitive::<Int64Type>().value(0), 2);
    for (database, collation) in [
        ("shop", "utf8mb4_0900_ai_ci"),
        ("exact", "utf8mb4_bin"),
        ("changed", "utf8mb4_general_ci"),
    ] {
        connection
            .execute(&format!("USE {database}"))
            .expect("the database is there");
        let batch = rows_of(&mut connection, "SELECT @@collation_database");
        let told = array_value_to_string(batch.column(0), 0).expect("it is text");
        assert_eq!(told, collation, "{database}");
    }
}

#[test]
fn a_large_result_can_be_left_early() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let database = Database::open(directory.path(), options()).expect("an empty database");
    let mut connection = database.connect().expect("a session");
    connection
        .execute("CREATE DATABASE shop")
        .expect("the name is free");
    connection
        .execute("CREATE TABLE shop.t (a INT PRIMARY KEY)")
        .expect("the name is free");
    let rows: Vec<String> = (0..20_000).map(|i| format!("({i})")).collect();
    connection
        .execute(&format!("INSERT INTO shop.t VALUES {}", rows.join(",")))
        .expect("the table is empty");
    let mut batches = 0;
    let error = connection
        .query_each("SELECT x.a, y.a FROM shop.t x, shop.t y", |_batch| {
            batches += 1;
            if batches == 3 {
                Err(sheaf::Error::unknown("enough"))
            } else {
                Ok(())
            }
        })
        .expect_err("four hundred million rows are too many");
    assert_eq!((batches, error.message.as_str()), (3, "enough"));
    assert!(
        connection.query("SELECT COUNT(*) FROM shop.t").is_ok(),
        "the session goes on"
    );
}

#[test]
fn a_directory_belongs_to_one_process() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let _database = Database::open(directory.path(), options()).expect("an empty database");
    assert!(
        Database::open(directory.path(), options()).is_err(),
        "it is open already"
    );
}

/// All rows of a query as one batch.
fn rows_of(connection: &mut Connection, sql: &str) -> RecordBatch {
    let batches = connection
        .query(sql)
        .unwrap_or_else(|error| panic!("{sql}: {error}"));
    concat_batches(&batches[0].schema(), &batches).expect("batches of one result")
}

fn direct_statements(connection: &mut Connection) -> u64 {
    let status = rows_of(connection, "SHOW STATUS LIKE 'Statements_direct'");
    let count = status.column(1).as_string::<i32>().value(0);
    count.parse().expect("a number")
}

/// A direct plan gives the library the batches that a vectorised one would give.
#[test]
fn direct_reads_are_batches_too() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let database = Database::open(directory.path(), options()).expect("an empty database");
    let mut connection = database.connect().expect("a session");
    for sql in [
        "CREATE DATABASE shop",
        "CREATE TABLE shop.t (id INT PRIMARY KEY, a TINYINT, b SMALLINT UNSIGNED, c BIGINT, d BIGINT UNSIGNED, \
         e DECIMAL(12,3), f FLOAT, g DOUBLE, h VARCHAR(20), i VARBINARY(20), j DATE, k DATETIME(3), l TIME, m YEAR, \
         n ENUM('s','m'), o LONGTEXT, p MEDIUMINT UNSIGNED, KEY (c))",
        "INSERT INTO shop.t VALUES (1, -1, 65535, -5, 18446744073709551615, 1.5, 0.5, 1e10, 'é', x'00FF', '2020-02-29', \
         '2020-01-01 10:00:00.125', '-10:00:00', 1999, 'm', REPEAT('long ', 10000), 7)",
        "INSERT INTO shop.t (id) VALUES (2)",
        "CREATE TABLE shop.many (id INT PRIMARY KEY)",
        "INSERT INTO shop.many WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000) \
         SELECT x.i + 1000 * y.i FROM n x, n y WHERE y.i < 4",
    ] {
        connection
            .execute(sql)
            .unwrap_or_else(|error| panic!("{sql}: {error}"));
    }
    let queries = [
        "SELECT * FROM shop.t WHERE id IN (1, 2)",
        "SELECT h AS name, c FROM shop.t WHERE c = -5",
        "SELECT COUNT(*), SUM(c) AS total, SUM(e), MIN(a), MAX(j), MAX(d), MIN(e) FROM shop.t WHERE id BETWEEN 1 AND 9",
        "SELECT id FROM shop.many WHERE id > 0",
    ];
    let before = direct_statements(&mut connection);
    let direct = queries.map(|sql| rows_of(&mut connection, sql));
    assert_eq!(direct_statements(&mut connection) - before, 4);
    connection
        .execute("SET optimizer_switch = 'direct=off'")
        .expect("a flag of ours");
    for (sql, direct) in queries.iter().zip(direct) {
        let vectorised = rows_of(&mut connection, sql);
        assert_eq!(direct.columns(), vectorised.columns(), "{sql}");
        let names = |batch: &RecordBatch| -> Vec<String> {
            let fields = batch.schema_ref().fields().iter();
            fields.map(|field| field.name().clone()).collect()
        };
        assert_eq!(names(&direct), names(&vectorised), "{sql}");
    }
    assert_eq!(direct_statements(&mut connection) - before, 4);
}

#[test]
fn prepared_statements_run_with_other_values_and_give_rows_one_by_one() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let database = Database::open(directory.path(), options()).expect("an empty database");
    let mut connection = database.connect().expect("a session");
    for sql in [
        "CREATE DATABASE shop",
        "USE shop",
        "CREATE TABLE t (a INT PRIMARY KEY, b INT, c VARCHAR(20))",
    ] {
        connection.execute(sql).expect("the names are free");
    }
    let insert = connection.prepare("INSERT INTO t VALUES (?, ?, ?)");
    let insert = insert.expect("a statement");
    for a in 1..=6 {
        let values = [
            Value::Int(a),
            Value::Int(a % 3),
            Value::Text(format!("row {a}")),
        ];
        assert_eq!(connection.run(&insert, &values, |_| Ok(())), Ok(1));
    }
    let too_few = connection.run(&insert, &[Value::Int(7)], |_| Ok(()));
    assert_eq!(too_few.map_err(|error| error.code), Err(1210));

    // Of a plan that gives single rows, and of one that gives batches.
    let mut run = |sql: &str, value: i64| {
        let statement = connection.prepare(sql).expect("a statement");
        let mut rows = Vec::new();
        let outcome = connection.run(&statement, &[Value::Int(value)], |row| {
            let name = row.columns()[0].name.clone();
            rows.push(format!("{name} {:?} {:?}", row.cell(0), row.cell(9)));
            Ok(())
        });
        assert_eq!(outcome, Ok(0));
        assert_eq!(statement.parameters(), 1);
        connection.close(statement);
        rows
    };
    let text = format!("c {:?} Null", Cell::Bytes(b"row 4"));
    assert_eq!(run("SELECT c FROM t WHERE a = ?", 4), [text]);
    let count = |n| format!("n {:?} Null", Cell::Signed(n));
    let grouped = "SELECT COUNT(*) n FROM t WHERE a <= ? GROUP BY b ORDER BY b";
    assert_eq!(run(grouped, 4), [count(1), count(2), count(1)]);

    let all = connection.prepare("SELECT a FROM t").expect("a statement");
    let mut seen = 0;
    let outcome = connection.run(&all, &[], |_| {
        seen += 1;
        Err(sheaf::Error::unknown("enough"))
    });
    assert_eq!(outcome.map_err(|error| error.code), Err(1105));
    assert_eq!(seen, 1, "nothing comes after an error");
}

#[test]
fn rows_give_typed_values() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let database = Database::open(directory.path(), options()).expect("an empty database");
    let mut connection = database.connect().expect("a session");
    connection.execute("CREATE DATABASE d").expect("a database");
    connection.execute("USE d").expect("it is there");
    connection
        .execute("CREATE TABLE t (id BIGINT UNSIGNED PRIMARY KEY, a DECIMAL(8,2), b BLOB, c DATE, d DOUBLE)")
        .expect("a table");
    let values = params![u64::MAX, "9.50", vec![0_u8, 255], None::<String>, 0.5];
    let inserted = connection.execute_with("INSERT INTO t VALUES (?, ?, ?, ?, ?)", values);
    assert_eq!(inserted, Ok(1));
    // Of a plan that gives single rows, and of one that gives batches.
    for sql in [
        "SELECT * FROM t WHERE id = ?",
        "SELECT * FROM t WHERE id = ? OR a = 1 ORDER BY d + 1",
    ] {
        let rows = connection.rows(sql, params![u64::MAX]).expect("rows");
        assert_eq!(rows.len(), 1);
        for row in rows {
            assert_eq!(row.get("ID"), Ok(u64::MAX));
            assert_eq!(row.get("a"), Ok("9.50".to_string()));
            assert_eq!(row.get("a"), Ok(9.5));
            assert_eq!(row.get("b"), Ok(vec![0_u8, 255]));
            assert_eq!(row.get("c"), Ok(None::<String>));
            assert_eq!(row.get(4), Ok(0.5));
            let code = |outcome: Result<i64, sheaf::Error>| outcome.map_err(|error| error.code);
            assert_eq!(code(row.get("id")), Err(1366), "it does not fit");
            assert_eq!(code(row.get("c")), Err(1366), "NULL wants an Option");
            assert_eq!(code(row.get("e")), Err(1054));
            assert_eq!(code(row.get(5)), Err(1054));
        }
    }
}

#[test]
fn statements_are_closed_when_they_are_dropped() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let database = Database::open(directory.path(), options()).expect("an empty database");
    let mut connection = database.connect().expect("a session");
    for n in 0..10 {
        let one = connection.prepare("SELECT ?").expect("a statement");
        let outcome = connection.run(&one, params![n], |row| {
            assert_eq!(row.get(0), Ok(n));
            Ok(())
        });
        assert_eq!(outcome, Ok(0));
    }
    let kept = "SHOW GLOBAL STATUS LIKE 'Prepared_stmt_count'";
    let rows = connection.rows(kept, params![]).expect("a counter");
    let counts: Vec<String> = rows.filter_map(|row| row.get(1).ok()).collect();
    assert_eq!(counts, ["1"], "that of SHOW itself");
}

#[test]
fn statements_of_another_connection_are_refused() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let database = Database::open(directory.path(), options()).expect("an empty database");
    let mut one = database.connect().expect("a session");
    let mut other = database.connect().expect("a session");
    let of_one = one.prepare("SELECT 1").expect("a statement");
    let of_other = other.prepare("SELECT 2").expect("a statement");
    let mut found = Vec::new();
    let error = other
        .run(&of_one, params![], |row| {
            found.push(row.get::<i64>(0)?);
            Ok(())
        })
        .expect_err("the other connection has a statement of the same number");
    assert_eq!((error.code, error.sqlstate), (1243, "HY000"));
    assert_eq!(found, [0_i64; 0]);
    let rows = other
        .rows_of(&of_other, params![])
        .expect("its own statement");
    let own: Vec<i64> = rows.filter_map(|row| row.get(0).ok()).collect();
    assert_eq!(own, [2]);
}
