//! Values, errors and prepared statements, through a real client library.

use mysql::prelude::Queryable;
use mysql::{Conn, Params, Value};
use sheaf_sql::EngineOptions;

use crate::harness::{TestServer, error_of, query_text};

const EVERY_TYPE: &str = "CREATE TABLE every_type (
    id INT PRIMARY KEY,
    tiny TINYINT, utiny TINYINT UNSIGNED, small SMALLINT, medium MEDIUMINT, whole INT, uwhole INT UNSIGNED,
    big BIGINT, ubig BIGINT UNSIGNED, price DECIMAL(38,10), plain DECIMAL(5), f FLOAT, d DOUBLE,
    fixed CHAR(5), name VARCHAR(20), body TEXT, bin BINARY(3), vbin VARBINARY(5), data BLOB,
    day DATE, moment DATETIME, precise DATETIME(6), stamp TIMESTAMP(3) NULL, span TIME(2), made YEAR,
    flag BOOL, size ENUM('small','large'))";

const INSERT_LOW: &str = "INSERT INTO every_type VALUES (1,
    -128, 0, -32768, -8388608, -2147483648, 0, -9223372036854775808, 0,
    -1234567890123456789012345678.0123456789, -99999, -1.5, -1e300,
    'ab', '', 'text', 'xyz', '', '', '1000-01-01', '1000-01-01 00:00:00', '1999-12-31 23:59:59.999999',
    '1970-01-02 00:00:00', '-838:59:59.00', 1901, FALSE, 'small')";

const INSERT_HIGH: &str = "INSERT INTO every_type VALUES (2,
    127, 255, 32767, 8388607, 2147483647, 4294967295, 9223372036854775807, 18446744073709551615,
    1234567890123456789012345678.9, 99999, 0.25, 0.1,
    'éàü', 'naïve', 'two\\nlines', 'ab', X'00FF', X'DEADBEEF', '9999-12-31', '2024-02-29 12:00:00',
    '2024-02-29 12:00:00.5', '2030-06-15 10:20:30.123', '25:00:00.25', 2155, TRUE, 'large')";

const INSERT_NULLS: &str = "INSERT INTO every_type (id) VALUES (3)";

fn every_type(server: &TestServer) -> Conn {
    let mut connection = server.connect_to_new("types");
    for sql in [EVERY_TYPE, INSERT_LOW, INSERT_HIGH, INSERT_NULLS] {
        connection
            .query_drop(sql)
            .unwrap_or_else(|error| panic!("{sql}: {error}"));
    }
    connection
}

fn bytes(text: &str) -> Value {
    Value::Bytes(text.as_bytes().to_vec())
}

#[test]
fn every_type_comes_back_as_text() {
    let server = TestServer::start();
    let mut connection = every_type(&server);
    assert_eq!(
        query_text(
            &mut connection,
            "SELECT * FROM every_type ORDER BY id LIMIT 2"
        )[0],
        "1\t-128\t0\t-32768\t-8388608\t-2147483648\t0\t-9223372036854775808\t0\t\
         -1234567890123456789012345678.0123456789\t-99999\t-1.5\t-1e300\tab\t\ttext\txyz\t\t\t1000-01-01\t\
         1000-01-01 00:00:00\t1999-12-31 23:59:59.999999\t1970-01-02 00:00:00.000\t-838:59:59.00\t1901\t0\tsmall"
    );
    let rows: Vec<mysql::Row> = connection
        .query("SELECT * FROM every_type WHERE id = 2")
        .expect("the table is filled");
    let values = rows.into_iter().next().expect("there is a row").unwrap();
    assert_eq!(
        values[1..],
        [
            bytes("127"),
            bytes("255"),
            bytes("32767"),
            bytes("8388607"),
            bytes("2147483647"),
            bytes("4294967295"),
            bytes("9223372036854775807"),
            bytes("18446744073709551615"),
            bytes("1234567890123456789012345678.9000000000"),
            bytes("99999"),
            bytes("0.25"),
            bytes("0.1"),
            bytes("éàü"),
            bytes("naïve"),
            bytes("two\nlines"),
            Value::Bytes(b"ab\0".to_vec()),
            Value::Bytes(vec![0, 0xFF]),
            Value::Bytes(vec![0xDE, 0xAD, 0xBE, 0xEF]),
            bytes("9999-12-31"),
            bytes("2024-02-29 12:00:00"),
            bytes("2024-02-29 12:00:00.500000"),
            bytes("2030-06-15 10:20:30.123"),
            bytes("25:00:00.25"),
            bytes("2155"),
            bytes("1"),
            bytes("large"),
        ]
    );
    let nulls: Vec<mysql::Row> = connection
        .query("SELECT * FROM every_type WHERE id = 3")
        .expect("the table is filled");
    let values = nulls.into_iter().next().expect("there is a row").unwrap();
    assert!(
        values[1..].iter().all(|value| *value == Value::NULL),
        "{values:?}"
    );
}

#[test]
fn every_type_comes_back_as_binary() {
    let server = TestServer::start();
    let mut connection = every_type(&server);
    let row: mysql::Row = connection
        .exec_first("SELECT * FROM every_type WHERE id = ?", (1,))
        .expect("the table is filled")
        .expect("there is a row");
    assert_eq!(
        row.unwrap(),
        [
            Value::Int(1),
            Value::Int(-128),
            Value::Int(0),
            Value::Int(-32768),
            Value::Int(-8388608),
            Value::Int(-2147483648),
            Value::Int(0),
            Value::Int(i64::MIN),
            Value::Int(0),
            bytes("-1234567890123456789012345678.0123456789"),
            bytes("-99999"),
            Value::Float(-1.5),
            Value::Double(-1e300),
            bytes("ab"),
            bytes(""),
            bytes("text"),
            bytes("xyz"),
            bytes(""),
            bytes(""),
            Value::Date(1000, 1, 1, 0, 0, 0, 0),
            Value::Date(1000, 1, 1, 0, 0, 0, 0),
            Value::Date(1999, 12, 31, 23, 59, 59, 999_999),
            Value::Date(1970, 1, 2, 0, 0, 0, 0),
            Value::Time(true, 34, 22, 59, 59, 0),
            Value::Int(1901),
            Value::Int(0),
            bytes("small"),
        ]
    );
    let row: mysql::Row = connection
        .exec_first(
            "SELECT ubig, uwhole, span, stamp FROM every_type WHERE id = ?",
            (2,),
        )
        .expect("the table is filled")
        .expect("there is a row");
    assert_eq!(
        row.unwrap(),
        [
            Value::UInt(u64::MAX),
            Value::Int(4_294_967_295),
            Value::Time(false, 1, 1, 0, 0, 250_000),
            Value::Date(2030, 6, 15, 10, 20, 30, 123_000),
        ]
    );
    let row: mysql::Row = connection
        .exec_first("SELECT * FROM every_type WHERE id = ?", (3,))
        .expect("the table is filled")
        .expect("there is a row");
    assert!(row.unwrap()[1..].iter().all(|value| *value == Value::NULL));
}

#[test]
fn values_longer_than_a_page_come_back_through_a_pool_that_is_smaller_than_they_are() {
    let server = TestServer::start_with_pool(64 << 20, 2 << 20);
    let mut connection = server.connect_to_new("long");
    connection
        .query_drop("CREATE TABLE t (id INT PRIMARY KEY, body LONGTEXT, data MEDIUMBLOB)")
        .expect("the database is empty");
    let body = |id: u32| format!("{id:06}").repeat(20_000);
    for id in 0..40 {
        let data: Vec<u8> = (0..50_000_u32).map(|i| (i * id) as u8).collect();
        connection
            .exec_drop("INSERT INTO t VALUES (?, ?, ?)", (id, body(id), data))
            .expect("it fits");
    }
    let rows: Vec<(u32, String, Vec<u8>)> =
        connection.query("SELECT * FROM t").expect("they are there");
    assert_eq!(rows.len(), 40);
    for (id, text, data) in rows {
        assert!(text == body(id), "the text of row {id} came back different");
        assert!(
            data.iter()
                .enumerate()
                .all(|(i, &byte)| byte == (i as u32 * id) as u8),
            "row {id}"
        );
    }
}

/// A table in memory would do by its estimate, but its strings are longer than strings are taken to be.
#[test]
fn a_hash_join_that_does_not_fit_in_memory_spills() {
    let server = TestServer::start_with_pool(160 << 20, 2 << 20);
    let mut connection = server.connect_to_new("wide");
    for sql in [
        "CREATE TABLE t (id INT PRIMARY KEY, k INT, s VARCHAR(250))",
        "SET cte_max_recursion_depth = 400000",
        "INSERT INTO t WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 400000)
            SELECT i, i * 7919 % 400000, REPEAT(CHAR(97 + i % 26), 200 + i % 50) FROM n",
        "SET optimizer_switch = 'batched_key_access=off'",
        "FLUSH STATUS",
    ] {
        connection.query_drop(sql).expect(sql);
    }
    let joined: Option<(u64, u64, u64)> = connection
        .query_first(
            "SELECT COUNT(*), SUM(LENGTH(a.s)), COUNT(DISTINCT LEFT(b.s, 1)) FROM t a JOIN t b ON a.k = b.k",
        )
        .expect("it spills");
    let bytes = (1..=400_000).map(|i| 200 + i % 50).sum();
    assert_eq!(joined, Some((400_000, bytes, 26)));
    let switches: Option<(String, u64)> = connection
        .query_first("SHOW STATUS LIKE 'Sheaf_plan_switches'")
        .expect("there is such a counter");
    assert_eq!(switches.map(|(_, count)| count), Some(0));
}

/// A top-k holds its rows in memory; where they do not fit, all rows are sorted instead, which spills.
#[test]
fn a_deep_offset_is_no_matter_of_memory() {
    let server = TestServer::start_with_pool(160 << 20, 2 << 20);
    let mut connection = server.connect_to_new("wide");
    fill_with_wide_rows(&mut connection);
    let last = query_text(
        &mut connection,
        "SELECT id, s FROM t ORDER BY s DESC, id LIMIT 399999, 2",
    );
    let least = (0..400_000_i64).filter(|i| i * 7919 % 26 == 0);
    let last_id = least.max_by_key(|i| (std::cmp::Reverse(200 + i % 50), *i));
    let last_id = last_id.expect("there are such");
    assert_eq!(last, [format!("{last_id}\t{}", "a".repeat(200))]);
}

/// `t` with 400,000 rows: `s` is 200 to 249 times a letter.
fn fill_with_wide_rows(connection: &mut Conn) {
    let mut run = |sql: &str| connection.query_drop(sql).expect(sql);
    run("CREATE TABLE t (id INT PRIMARY KEY, s VARCHAR(250))");
    run("SET cte_max_recursion_depth = 10000");
    for first in (0..400_000).step_by(10_000) {
        run(&format!(
            "INSERT INTO t WITH RECURSIVE n (i) AS (SELECT {first} UNION ALL SELECT i + 1 FROM n WHERE i < {first} + 9999)
                SELECT i, REPEAT(CHAR(97 + i * 7919 % 26), 200 + i % 50) FROM n"
        ));
    }
}

/// Sorts of operators, rows to change and cursors have one limit; what exceeds it fails alone, and leaves nothing
/// behind.
#[test]
fn temporary_files_have_a_limit() {
    let mut options = EngineOptions {
        memory_bytes: 160 << 20,
        pool_bytes: Some(2 << 20),
        ..EngineOptions::default()
    };
    options.storage.max_temp_bytes = 1 << 20;
    let server = TestServer::start_with(options, |_, _| {});
    let mut connection = server.connect_to_new("wide");
    fill_with_wide_rows(&mut connection);
    for sql in [
        "SELECT s, id FROM t ORDER BY s, id DESC",
        "UPDATE t SET s = CONCAT(s, 'x')",
    ] {
        let Err(mysql::Error::MySqlError(error)) = connection.query_drop(sql) else {
            panic!("{sql} works");
        };
        assert_eq!((error.code, error.state.as_str()), (1021, "HY000"), "{sql}");
        let limit = "max_temp_bytes (1048576 bytes)";
        assert!(error.message.contains(limit), "{sql}: {}", error.message);
    }
    let kept = query_text(
        &mut connection,
        "SELECT COUNT(*), SUM(s LIKE '%x'), MAX(LENGTH(s)) FROM t",
    );
    let ending_in_x = (0..400_000_i64).filter(|i| i * 7919 % 26 == 23).count();
    assert_eq!(kept, [format!("400000\t{ending_in_x}\t249")]);
    let used = query_text(&mut connection, "SHOW STATUS LIKE 'Temp_file_bytes'");
    assert_eq!(used, ["Temp_file_bytes\t0"]);
}

#[test]
fn columns_are_described_as_mysql_does() {
    use mysql::consts::{ColumnFlags, ColumnType};
    let server = TestServer::start();
    let mut connection = every_type(&server);
    let result = connection
        .query_iter("SELECT id, uwhole AS u, price, name, data, day FROM every_type LIMIT 0");
    let result = result.expect("the table is filled");
    let described: Vec<_> = result
        .columns()
        .as_ref()
        .iter()
        .map(|column| {
            let unsigned = column.flags().contains(ColumnFlags::UNSIGNED_FLAG);
            (
                column.name_str().into_owned(),
                column.column_type(),
                unsigned,
                column.character_set() == 63,
            )
        })
        .collect();
    assert_eq!(
        described,
        [
            ("id".into(), ColumnType::MYSQL_TYPE_LONG, false, true),
            ("u".into(), ColumnType::MYSQL_TYPE_LONG, true, true),
            (
                "price".into(),
                ColumnType::MYSQL_TYPE_NEWDECIMAL,
                false,
                true
            ),
            (
                "name".into(),
                ColumnType::MYSQL_TYPE_VAR_STRING,
                false,
                false
            ),
            ("data".into(), ColumnType::MYSQL_TYPE_BLOB, false, true),
            ("day".into(), ColumnType::MYSQL_TYPE_DATE, false, true),
        ]
    );
    let id = &result.columns().as_ref()[0].clone();
    assert!(id.flags().contains(
        ColumnFlags::NOT_NULL_FLAG | ColumnFlags::PRI_KEY_FLAG | ColumnFlags::PART_KEY_FLAG
    ));
    assert!(!id.flags().contains(ColumnFlags::MULTIPLE_KEY_FLAG));
    assert_eq!(id.table_str(), "every_type");
    assert_eq!(id.schema_str(), "types");
}

#[test]
fn errors_have_mysqls_codes_and_states() {
    let server = TestServer::start();
    let mut connection = server.connect_to_new("errors");
    connection
        .query_drop("CREATE TABLE t (a INT PRIMARY KEY, b VARCHAR(3) NOT NULL, c TINYINT, d DATE)")
        .expect("the database is empty");
    connection
        .query_drop("INSERT INTO t VALUES (1, 'x', 1, NULL)")
        .expect("the table is empty");
    for (sql, code, state) in [
        ("SELEC 1", 1064, "42000"),
        ("", 1065, "42000"),
        ("SELECT * FROM missing", 1146, "42S02"),
        ("SELECT missing FROM t", 1054, "42S22"),
        ("SELECT missing(1)", 1305, "42000"),
        ("USE missing", 1049, "42000"),
        ("CREATE TABLE t (a INT)", 1050, "42S01"),
        ("DROP TABLE missing", 1051, "42S02"),
        ("INSERT INTO t VALUES (1, 'y', 1, NULL)", 1062, "23000"),
        ("INSERT INTO t VALUES (2, NULL, 1, NULL)", 1048, "23000"),
        ("INSERT INTO t VALUES (2, 'long', 1, NULL)", 1406, "22001"),
        ("INSERT INTO t VALUES (2, 'x', 128, NULL)", 1264, "22003"),
        ("INSERT INTO t VALUES (2, 'x', 'y', NULL)", 1366, "HY000"),
        (
            "INSERT INTO t VALUES (2, 'x', 1, '2023-02-30')",
            1292,
            "22007",
        ),
        ("INSERT INTO t VALUES (2, 'x', 1/0, NULL)", 1365, "22012"),
        ("INSERT INTO t VALUES (2, 'x')", 1136, "21S01"),
        ("INSERT INTO t (a, a) VALUES (2, 2)", 1110, "42000"),
        ("SET no_such_variable = 1", 1193, "HY000"),
        ("CREATE TABLE u (a INT, a INT)", 1060, "42S21"),
    ] {
        match connection.query_drop(sql) {
            Err(mysql::Error::MySqlError(error)) => {
                assert_eq!(
                    (error.code, error.state.as_str()),
                    (code, state),
                    "{sql}: {error}"
                );
            }
            other => panic!("{sql}: {other:?}"),
        }
    }
    assert_eq!(
        query_text(&mut connection, "SELECT * FROM t"),
        ["1\tx\t1\tNULL"],
        "the table is as it was"
    );
}

#[test]
fn a_statement_of_many_rows_that_fails_leaves_none() {
    let server = TestServer::start();
    let mut connection = server.connect_to_new("errors");
    connection
        .query_drop("CREATE TABLE t (a INT PRIMARY KEY, b INT, KEY (b))")
        .expect("the database is empty");
    let outcome = connection.query_drop("INSERT INTO t VALUES (1, 1), (2, 2), (3, 3), (2, 4)");
    assert_eq!(error_of(outcome), (1062, "23000".into()));
    assert_eq!(query_text(&mut connection, "SELECT COUNT(*) FROM t"), ["0"]);
    assert_eq!(
        query_text(
            &mut connection,
            "SELECT COUNT(*) FROM t FORCE INDEX (b) WHERE b > 0"
        ),
        ["0"]
    );
}

#[test]
fn prepared_statements_bind_values_of_all_kinds() {
    let server = TestServer::start();
    let mut connection = server.connect_to_new("prepared");
    connection
        .query_drop(
            "CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, n BIGINT, u BIGINT UNSIGNED, d DOUBLE,
             price DECIMAL(10,2), s VARCHAR(20), b BLOB, day DATE, moment DATETIME(6), span TIME(6))",
        )
        .expect("the database is empty");
    let insert = connection
        .prep("INSERT INTO t (n, u, d, price, s, b, day, moment, span) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)")
        .expect("the statement is well formed");
    assert_eq!(insert.num_params(), 9);
    let values = vec![
        Value::Int(-5),
        Value::UInt(u64::MAX),
        Value::Double(1.25),
        bytes("12.345"),
        bytes("naïve"),
        Value::Bytes(vec![0, 0xFF, 0x27]),
        Value::Date(2024, 2, 29, 0, 0, 0, 0),
        Value::Date(2024, 2, 29, 23, 59, 59, 123_456),
        Value::Time(true, 1, 2, 3, 4, 500_000),
    ];
    connection
        .exec_drop(&insert, Params::Positional(values))
        .expect("the values fit");
    assert_eq!(
        (connection.affected_rows(), connection.last_insert_id()),
        (1, 1)
    );
    connection
        .exec_drop(&insert, Params::Positional(vec![Value::NULL; 9]))
        .expect("NULL fits");
    assert_eq!(connection.last_insert_id(), 2);

    let row: mysql::Row = connection
        .exec_first(
            "SELECT n, u, d, price, s, b, day, moment, span FROM t WHERE id = ?",
            (1,),
        )
        .expect("the statement is well formed")
        .expect("there is a row");
    assert_eq!(
        row.unwrap(),
        [
            Value::Int(-5),
            Value::UInt(u64::MAX),
            Value::Double(1.25),
            bytes("12.35"),
            bytes("naïve"),
            Value::Bytes(vec![0, 0xFF, 0x27]),
            Value::Date(2024, 2, 29, 0, 0, 0, 0),
            Value::Date(2024, 2, 29, 23, 59, 59, 123_456),
            Value::Time(true, 1, 2, 3, 4, 500_000),
        ]
    );

    let find = connection
        .prep("SELECT id FROM t WHERE s = ? OR n > ?")
        .expect("the statement is well formed");
    for (text, number, found) in [
        ("NAÏVE", 0, Some(1)),
        ("other", -6, Some(1)),
        ("other", 0, None),
    ] {
        let id: Option<u32> = connection
            .exec_first(&find, (text, number))
            .expect("the types fit");
        assert_eq!(id, found, "{text} {number}");
    }
    connection.close(find).expect("a statement can be closed");
    assert_eq!(
        error_of(connection.prep("SELECT * FROM missing WHERE a = ?")),
        (1146, "42S02".into())
    );
}

#[test]
fn a_recursion_begins_with_parameters() {
    let server = TestServer::start();
    let mut connection = server.connect_to_new("recursion");
    let count = "WITH RECURSIVE n AS (SELECT ? AS i UNION ALL SELECT i + ? FROM n WHERE i < ?) SELECT i FROM n ORDER BY i";
    let count = connection.prep(count).expect("types are not known yet");
    let rows: Vec<i64> = connection.exec(&count, (1, 2, 5)).expect("it counts");
    assert_eq!(rows, [1, 3, 5]);
    let rows: Vec<Option<i64>> = connection
        .exec(&count, (Value::NULL, 2, 5))
        .expect("nothing is less than NULL");
    assert_eq!(rows, [None]);
    let nothing = "WITH RECURSIVE n AS (SELECT NULL AS i, 1 AS j UNION ALL SELECT i, j + 1 FROM n WHERE j < 2) SELECT i, j FROM n ORDER BY j";
    assert_eq!(query_text(&mut connection, nothing), ["NULL\t1", "NULL\t2"]);
}

#[test]
fn texts_in_bit_operations_are_integers() {
    let server = TestServer::start();
    let mut connection = server.connect_to_new("bits");
    let mut answer = |sql: &str| {
        let rows = query_text(&mut connection, sql);
        (rows, query_text(&mut connection, "SHOW WARNINGS"))
    };
    let none = Vec::<String>::new();
    assert_eq!(
        answer("SELECT '5' | 2, ' 12 ' & 4, ~'-1', '18446744073709551615' >> 63"),
        (vec!["7\t4\t0\t1".to_string()], none)
    );
    let warning =
        |text: &str| format!("Warning\t1292\tTruncated incorrect INTEGER value: '{text}'");
    assert_eq!(
        answer("SELECT 'abc' & 1, '5.7' | 2, BIT_COUNT('7 apples')"),
        (
            vec!["0\t7\t3".to_string()],
            vec![warning("abc"), warning("5.7"), warning("7 apples")]
        )
    );
    let from_rows =
        "SELECT s | 8 FROM (SELECT 1 AS id, '1' AS s UNION ALL SELECT 2, 'x') t ORDER BY id";
    assert_eq!(
        answer(from_rows),
        (vec!["9".to_string(), "8".to_string()], vec![warning("x")])
    );
    // A constant of a condition, too.
    assert_eq!(
        answer("SELECT 1 FROM DUAL WHERE 'x' | 8"),
        (vec!["1".to_string()], vec![warning("x")])
    );
}

/// Characters and collation of each column of a result.
fn text_columns(connection: &mut Conn, sql: &str) -> Vec<(u32, u16)> {
    let result = connection.query_iter(sql);
    let result = result.unwrap_or_else(|error| panic!("{sql}: {error}"));
    let columns = result.columns();
    let columns = columns.as_ref().iter();
    columns
        .map(|column| match column.character_set() {
            63 => (column.column_length(), 63),
            collation => (column.column_length() / 4, collation),
        })
        .collect()
}

#[test]
fn computed_texts_are_announced_with_the_longest_that_they_can_be() {
    let server = TestServer::start();
    let mut connection = server.connect_to_new("lengths");
    connection
        .query_drop("CREATE TABLE t (id INT, s VARCHAR(20), b VARBINARY(10))")
        .expect("it is new");
    for (expression, characters) in [
        ("CONCAT(s, 'é')", 21),
        ("CONCAT_WS(', ', s, s, 'x')", 45),
        ("CONCAT(id, '-', s)", 32),
        ("HEX(s)", 160),
        ("HEX(b)", 20),
        ("HEX(id)", 16),
        ("UPPER(s)", 20),
        ("TRIM(s)", 20),
        ("'abc'", 3),
        ("LEFT(s, 3)", 3),
        ("SUBSTRING(s, 2, 5)", 5),
        ("SUBSTRING(s, 2)", 19),
        ("RPAD(s, 30, ' ')", 30),
        ("REPEAT(s, 3)", 60),
        ("IF(id = 1, 'a', 'bbb')", 3),
        ("CASE id WHEN 1 THEN s ELSE 'x' END", 20),
        ("COALESCE(s, 'none')", 20),
        ("CAST(id AS CHAR)", 11),
        ("CAST(s AS CHAR(7))", 7),
        ("MD5(s)", 32),
    ] {
        for sql in [
            format!("SELECT {expression} FROM t"),
            format!("SELECT x FROM (SELECT {expression} AS x FROM t) AS d ORDER BY 1 LIMIT 3"),
        ] {
            let columns = text_columns(&mut connection, &sql);
            assert_eq!(columns[0].0, characters, "{sql}");
        }
    }
    for sql in [
        "SELECT CONCAT(s, 'x') FROM t UNION SELECT 'abc'",
        "SELECT DISTINCT CONCAT(s, 'x') FROM t",
        "SELECT CONCAT(s, 'x') FROM t GROUP BY 1",
        "SELECT d.x FROM t JOIN (SELECT DISTINCT CONCAT(s, 'x') AS x, id FROM t) AS d USING (id)",
    ] {
        assert_eq!(text_columns(&mut connection, sql)[0].0, 21, "{sql}");
    }
    // However often a query stands for itself twice, describing it ends.
    let mut doubled = "WITH c0 AS (SELECT CONCAT(s, 'x') AS x FROM t)".to_string();
    for n in 1..10 {
        let before = n - 1;
        doubled.push_str(&format!(
            ", c{n} AS (SELECT CONCAT(a.x, b.x) AS x FROM c{before} a, c{before} b LIMIT 1)"
        ));
    }
    text_columns(&mut connection, &format!("{doubled} SELECT x FROM c9"));
}

#[test]
fn without_conversion_columns_keep_their_own_collations() {
    let server = TestServer::start();
    let mut connection = server.connect_to_new("collations");
    for sql in [
        "CREATE TABLE t (s VARCHAR(20), n VARCHAR(20) COLLATE utf8mb4_bin, b VARBINARY(10))",
        "INSERT INTO t VALUES ('é', 'é', x'ff')",
        "SET character_set_results = NULL",
    ] {
        connection.query_drop(sql).expect(sql);
    }
    assert_eq!(
        text_columns(&mut connection, "SELECT s, n, b, CONCAT(s, 'x') FROM t"),
        [(20, 255), (20, 46), (10, 63), (21, 255)]
    );
    assert_eq!(query_text(&mut connection, "SELECT s, n FROM t"), ["é\té"]);
    connection
        .query_drop("SET character_set_results = binary")
        .expect("it may be set");
    assert_eq!(
        text_columns(&mut connection, "SELECT s, n FROM t"),
        [(80, 63), (80, 63)]
    );
}

/// Sessions share plans where their literals compare alike.
#[test]
fn sessions_of_other_collations_have_plans_of_their_own() {
    let server = TestServer::start();
    let mut first = server.connect_to_new("shared_plans");
    for sql in [
        "CREATE TABLE t (id INT PRIMARY KEY, n INT)",
        "INSERT INTO t VALUES (1, 1)",
        "SET NAMES utf8mb4 COLLATE utf8mb4_general_ci",
        "SET character_set_results = NULL",
    ] {
        first.query_drop(sql).expect(sql);
    }
    let mut second = server.connect();
    for sql in [
        "USE shared_plans",
        "SET NAMES utf8mb4 COLLATE utf8mb4_bin",
        "SET character_set_results = NULL",
    ] {
        second.query_drop(sql).expect(sql);
    }
    let sql = "SELECT id FROM t WHERE id = 1 AND CONCAT(n, 'a') = '1A'";
    for _ in 0..5 {
        assert_eq!(query_text(&mut first, sql), ["1"]);
        assert!(query_text(&mut second, sql).is_empty());
    }
}

/// A dump that is read again has the same clauses, and units of time are no columns.
#[test]
fn the_text_of_a_check_stays_as_it_is() {
    let server = TestServer::start();
    let mut c = server.connect_to_new("checks");
    c.query_drop(
        "CREATE TABLE t (year DATE, b DATE, c INT, CHECK ((((c > 0)))), CHECK ((c > 1) OR (c < 9)), \
         CONSTRAINT age CHECK (TIMESTAMPDIFF(YEAR, year, b) >= 18), \
         CHECK (TIMESTAMPADD( month, 1, b) > year))",
    )
    .unwrap();
    let shown = |c: &mut mysql::Conn| -> String {
        let row: (String, String) = c.query_first("SHOW CREATE TABLE t").unwrap().unwrap();
        row.1
    };
    let first = shown(&mut c);
    for clause in [
        "CHECK ((`c` > 0))",
        "CHECK (((`c` > 1) OR (`c` < 9)))",
        "CHECK ((TIMESTAMPDIFF(YEAR, `year`, `b`) >= 18))",
    ] {
        assert!(first.contains(clause), "{first}");
    }
    for _ in 0..2 {
        c.query_drop("DROP TABLE t").unwrap();
        c.query_drop(&first).unwrap();
        assert_eq!(shown(&mut c), first);
    }
    let error = error_of(c.query_drop("INSERT t VALUES ('2000-01-01', '2010-01-01', 3)"));
    assert_eq!(error.0, 3819);
    c.query_drop("INSERT t VALUES ('2000-01-01', '2020-01-01', 3)")
        .unwrap();
}

/// The name that a CHECK gets with its table's new name may be that of another one, which somebody chose.
#[test]
fn checks_of_a_renamed_table_have_names_of_their_own() {
    let server = TestServer::start();
    let mut c = server.connect_to_new("checks");
    for rename in ["RENAME TABLE t TO u", "ALTER TABLE t RENAME u"] {
        c.query_drop("CREATE TABLE t (a INT, CHECK (a > 0), CONSTRAINT u_chk_1 CHECK (a > 1))")
            .unwrap();
        c.query_drop(rename).unwrap();
        let names = query_text(
            &mut c,
            "SELECT constraint_name FROM information_schema.check_constraints ORDER BY 1",
        );
        assert_eq!(names, ["u_chk_1", "u_chk_2"]);
        c.query_drop("DROP TABLE u").unwrap();
    }
}

fn names_of(columns: &[mysql::Column]) -> Vec<String> {
    let names = columns.iter().map(|column| column.name_str().into_owned());
    names.collect()
}

#[test]
fn columns_are_called_as_they_are_written() {
    let server = TestServer::start();
    let mut connection = server.connect_to_new("d");
    let statements = [
        "create table t (id int primary key, v int)",
        "insert into t values (1, 7), (2, 8), (3, 9)",
    ];
    for statement in statements {
        connection.query_drop(statement).unwrap();
    }
    // Whatever a parameter is.
    let prepared = connection
        .prep("select ?, id, ? from t where id = 1")
        .unwrap();
    for value in [
        Value::from("x"),
        Value::NULL,
        Value::from(5),
        Value::from("y"),
    ] {
        let rows = connection.exec_iter(&prepared, (value, "z")).unwrap();
        assert_eq!(names_of(rows.columns().as_ref()), ["?", "id", "?"]);
    }
    let returned = [
        (
            "insert into t values (4, 1) returning id, v*2 , 'text', t.*",
            vec!["id", "v*2", "text", "id", "v"],
        ),
        (
            "replace into t values (4, 1) returning *, (v  +  1)",
            vec!["id", "v", "(v  +  1)"],
        ),
        (
            "insert into t select id + 9, v from t where id = 1 returning concat(id, '-', v) as c, NULL",
            vec!["c", "NULL"],
        ),
        (
            "delete from t where id = 4 returning v-1, id",
            vec!["v-1", "id"],
        ),
    ];
    for (statement, names) in returned {
        let rows = connection.query_iter(statement).unwrap();
        assert_eq!(names_of(rows.columns().as_ref()), names, "{statement}");
    }
}

/// MySQL makes a moment of a parameter before it compares it.
#[test]
fn a_text_that_is_bound_and_no_moment_finds_nothing() {
    let server = TestServer::start();
    let mut connection = server.connect_to_new("moments");
    let rows = [
        "CREATE TABLE t (id INT PRIMARY KEY, d DATE, dt DATETIME, t TIME, KEY (d))",
        "INSERT INTO t VALUES (1, '2020-01-01', '2020-01-01', '10:00:00'), (2, '2021-01-01', '2021-01-01', '11:00:00')",
    ];
    for sql in rows {
        connection.query_drop(sql).expect(sql);
    }
    for (condition, text, found) in [
        ("d > ?", "abc", 0),
        ("d > ?", "", 0),
        ("d <> ?", "abc", 0),
        ("dt > ?", "abc", 0),
        ("t > ?", "abc", 0),
        ("d BETWEEN ? AND '2030-01-01'", "abc", 0),
        ("d IN (?, '2020-01-01')", "abc", 1),
        ("NOT d <=> ?", "abc", 2),
        ("d > ?", "2020-01-01", 1),
        ("t > ?", "10:30", 1),
    ] {
        let count = format!("SELECT COUNT(*) FROM t WHERE {condition}");
        let count: Option<u64> = connection.exec_first(&count, (text,)).expect("it counts");
        assert_eq!(count, Some(found), "{condition} {text}");
    }
    connection
        .query_drop("SET sql_mode = ''")
        .expect("no mode is one");
    connection
        .exec_drop("DELETE FROM t WHERE d > ?", ("abc",))
        .expect("it is no error without a mode");
    assert_eq!(query_text(&mut connection, "SELECT COUNT(*) FROM t"), ["2"]);
}
