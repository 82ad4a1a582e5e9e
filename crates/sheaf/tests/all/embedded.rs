//! The library.

use arrow::array::AsArray;
use arrow::datatypes::{Decimal128Type, Int32Type, Int64Type};
use sheaf::{Database, Options};

fn options() -> Options {
    Options {
        memory_bytes: 64 << 20,
        ..Options::default()
    }
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
