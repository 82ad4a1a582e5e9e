//! Columns whose values are numbers to the server and something else to a client: BIT, SET, and numbers with ZEROFILL.

use mysql::Value;
use mysql::consts::{ColumnFlags, ColumnType};
use mysql::prelude::Queryable;

use crate::harness::TestServer;

#[test]
fn bits_come_and_go_in_both_protocols() {
    let mut server = TestServer::start();
    let mut connection = server.connect_to_new("bits");
    connection
        .query_drop("CREATE TABLE t (id INT PRIMARY KEY, active BIT(1), n BIT(20), KEY (active))")
        .expect("a table of bits");
    let insert = "INSERT INTO t VALUES (?, ?, ?)";
    for (id, active, n) in [
        (1, Value::from(true), Value::from(5)),
        (2, Value::from(0), Value::from(&b"\x01\x02"[..])),
        (3, Value::NULL, Value::from(u64::from(u16::MAX))),
    ] {
        connection
            .exec_drop(insert, (id, active, n))
            .expect("parameters of all kinds are bits");
    }
    let rows: [(u8, Value, &[u8]); 3] = [
        (1, Value::Bytes(vec![1]), &[0, 0, 5]),
        (2, Value::Bytes(vec![0]), &[0, 1, 2]),
        (3, Value::NULL, &[0, 0xFF, 0xFF]),
    ];
    for round in 0..2 {
        let text: Vec<(u8, Value, Vec<u8>)> = connection
            .query("SELECT id, active, n FROM t ORDER BY id")
            .expect("a query");
        let binary: Vec<(u8, Value, Vec<u8>)> = connection
            .exec("SELECT id, active, n FROM t ORDER BY id", ())
            .expect("a statement");
        let expected = rows
            .iter()
            .map(|(id, active, n)| (*id, active.clone(), n.to_vec()));
        let expected: Vec<_> = expected.collect();
        assert_eq!((&text, &binary), (&expected, &expected), "round {round}");
        drop(connection);
        // From the log.
        server.restart();
        connection = server.connect();
        connection.query_drop("USE bits").expect("it is there");
    }
    let found = |connection: &mut mysql::Conn, active: Value| -> Vec<u8> {
        let by_parameter = "SELECT id FROM t WHERE active = ?";
        connection
            .exec(by_parameter, (active,))
            .expect("a condition")
    };
    assert_eq!(found(&mut connection, Value::from(true)), [1]);
    assert_eq!(found(&mut connection, Value::from(1)), [1]);
    assert_eq!(found(&mut connection, Value::from(0u8)), [2]);
    let result = connection.query_iter("SELECT active, n FROM t LIMIT 0");
    let result = result.expect("a query");
    let described: Vec<_> = result
        .columns()
        .as_ref()
        .iter()
        .map(|column| {
            (
                column.column_type(),
                column.column_length(),
                column.character_set(),
            )
        })
        .collect();
    let bit = ColumnType::MYSQL_TYPE_BIT;
    assert_eq!(described, [(bit, 1, 63), (bit, 20, 63)]);
}

#[test]
fn zeros_in_front_are_texts_alone() {
    let server = TestServer::start();
    let mut connection = server.connect_to_new("zeros");
    connection
        .query_drop("CREATE TABLE t (z INT(6) ZEROFILL, m DECIMAL(6,2) ZEROFILL, f FLOAT(7,2))")
        .expect("a table");
    connection
        .exec_drop("INSERT INTO t VALUES (?, ?, ?)", (42, "1.5", 2.345))
        .expect("parameters");
    let select = "SELECT z, m, f FROM t";
    let text: Option<(String, String, String)> = connection.query_first(select).expect("a query");
    let shown = ("000042", "0001.50", "2.35");
    let shown = (shown.0.to_owned(), shown.1.to_owned(), shown.2.to_owned());
    assert_eq!(text, Some(shown));
    let binary: Option<(u32, String, f32)> = connection.exec_first(select, ()).expect("a query");
    assert_eq!(binary, Some((42, "0001.50".to_owned(), 2.35)));
}

#[test]
fn sets_are_texts_in_both_protocols() {
    let mut server = TestServer::start();
    let mut connection = server.connect_to_new("sets");
    connection
        .query_drop("CREATE TABLE t (id INT PRIMARY KEY, s SET('x','y','z') NOT NULL, KEY (s))")
        .expect("a table of sets");
    let insert = "INSERT INTO t VALUES (?, ?)";
    for (id, set) in [
        (1, Value::from("z,x")),
        (2, Value::from(2)),
        (3, Value::from("")),
    ] {
        connection
            .exec_drop(insert, (id, set))
            .expect("texts and numbers are sets");
    }
    let select = "SELECT id, s, s + 0 FROM t ORDER BY s";
    let expected = [(3, "", 0.0), (2, "y", 2.0), (1, "x,z", 5.0)];
    let expected = expected.map(|(id, text, number)| (id, text.to_owned(), number));
    for round in 0..2 {
        let text: Vec<(u8, String, f64)> = connection.query(select).expect("a query");
        let binary: Vec<(u8, String, f64)> = connection.exec(select, ()).expect("a statement");
        assert_eq!(
            (&text[..], &binary[..]),
            (&expected[..], &expected[..]),
            "round {round}"
        );
        drop(connection);
        // From the log.
        server.restart();
        connection = server.connect();
        connection.query_drop("USE sets").expect("it is there");
    }
    let found: Vec<u8> = connection
        .exec("SELECT id FROM t WHERE s = ?", ("x,z",))
        .expect("a condition");
    assert_eq!(found, [1]);
    let result = connection.query_iter("SELECT s FROM t LIMIT 0");
    let result = result.expect("a query");
    let column = &result.columns().as_ref()[0].clone();
    assert_eq!(column.column_type(), ColumnType::MYSQL_TYPE_STRING);
    assert!(column.flags().contains(ColumnFlags::SET_FLAG));
}
