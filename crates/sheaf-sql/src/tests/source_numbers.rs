//! Numbers that a replica gives to rows, which its source has numbered. The expected ones are MySQL 9.7's and MariaDB
//! 10.11's, as both give them on their own.

use super::Bench;
use crate::session_parts::transactions::SourceKind;

const COPIED: &str = "3,10,17";
const IN_PLACE: &str = "10,17,24";
/// It is not certain what the source has done.
const REFUSED: &str = "1593";

const TABLE: &str = "CREATE TABLE t (a INT NOT NULL DEFAULT 0, b VARCHAR(20), c INT, d DATETIME, v INT AS (a + 1) VIRTUAL, \
     s INT AS (a + 1) STORED, KEY f ((a + 1)), KEY k (c), UNIQUE u (a), CONSTRAINT ck CHECK (a < 100), \
     CONSTRAINT ne CHECK (a < 100) NOT ENFORCED)";
const PLAIN: &str = "CREATE TABLE t (a INT NOT NULL DEFAULT 0, b VARCHAR(20), c INT, d DATETIME)";

/// The numbers of the rows of a table, or the error.
fn numbered(source: SourceKind, table: &str, set: &str, changes: &str) -> String {
    let mut bench = Bench::new();
    bench.session.transactions.applies(source);
    for statement in [
        "CREATE TABLE parent (x INT PRIMARY KEY)",
        "INSERT INTO parent VALUES (1), (2), (3)",
        table,
        "INSERT INTO t (a, b, c) VALUES (1, 'a', 1), (2, 'b', 2), (3, 'c', 3)",
        "SET auto_increment_increment = 7, auto_increment_offset = 3",
        set,
    ] {
        bench.ok(statement);
    }
    let statement = format!("ALTER TABLE t {changes}");
    match bench.run(&statement) {
        Ok(_) => bench
            .rows("SELECT GROUP_CONCAT(id ORDER BY id) FROM t")
            .concat(),
        Err(error) => error.code.to_string(),
    }
}

fn check(source: SourceKind, table: &str, cases: &[(&str, &str)]) {
    for (changes, numbers) in cases {
        let changes = format!("ADD id INT AUTO_INCREMENT PRIMARY KEY, {changes}");
        let found = numbered(source, table, "DO 0", &changes);
        assert_eq!(found, *numbers, "{source:?}: {changes}");
    }
}

#[test]
fn rows_are_numbered_as_mysql_numbers_them_or_not_at_all() {
    let cases = [
        ("ADD z INT AFTER a", IN_PLACE),
        ("ADD z INT DEFAULT (1 + 5)", COPIED),
        ("ADD z INT DEFAULT -1", IN_PLACE),
        ("ADD z DATETIME DEFAULT NOW()", IN_PLACE),
        ("ADD z DATETIME DEFAULT (NOW())", COPIED),
        ("ADD z INT AS (a + 1) VIRTUAL", COPIED),
        ("ADD z INT AS (a + 1) STORED", COPIED),
        ("ADD z INT CHECK (z > 0)", COPIED),
        ("ADD KEY (a)", IN_PLACE),
        ("ADD KEY ((a + 2))", COPIED),
        ("DROP KEY f", COPIED),
        ("DROP KEY u", IN_PLACE),
        ("DROP v", COPIED),
        ("DROP s", IN_PLACE),
        ("DROP d", IN_PLACE),
        ("MODIFY c BIGINT", COPIED),
        ("MODIFY c INT NOT NULL FIRST", IN_PLACE),
        ("MODIFY b VARCHAR(40)", REFUSED),
        ("MODIFY b VARCHAR(100)", REFUSED),
        ("MODIFY v INT AS (a + 2) VIRTUAL", REFUSED),
        ("ADD CHECK (a > 0)", COPIED),
        ("ADD CHECK (a > 0) NOT ENFORCED", IN_PLACE),
        ("ALTER CHECK ck ENFORCED", IN_PLACE),
        ("ALTER CHECK ne ENFORCED", COPIED),
        ("ADD FOREIGN KEY (c) REFERENCES parent (x)", COPIED),
        ("ORDER BY a", COPIED),
        ("ROW_FORMAT=DYNAMIC", REFUSED),
        ("ALGORITHM=COPY", COPIED),
        ("ALGORITHM=COPY, ALGORITHM=INPLACE", IN_PLACE),
        ("COMMENT 'x'", IN_PLACE),
        ("AUTO_INCREMENT=50", "52,59,66"),
    ];
    check(SourceKind::Mysql, TABLE, &cases);
    let key = "ADD id INT NOT NULL AUTO_INCREMENT, ADD KEY (id)";
    for (table, set, changes, numbers) in [
        (
            PLAIN,
            "SET foreign_key_checks = 0",
            "ADD FOREIGN KEY (c) REFERENCES parent (x)",
            IN_PLACE,
        ),
        (PLAIN, "SET sql_mode = ''", "MODIFY c INT NOT NULL", REFUSED),
        (TABLE, "DO 0", "DROP KEY u", REFUSED),
        (TABLE, "DO 0", "MODIFY a INT NULL", REFUSED),
        (
            PLAIN,
            "SET auto_increment_offset = 10",
            "COMMENT 'x'",
            "7,14,21",
        ),
        (
            PLAIN,
            "SET auto_increment_offset = 10",
            "AUTO_INCREMENT=50",
            "56,63,70",
        ),
        (
            PLAIN,
            "SET auto_increment_offset = 10",
            "ALGORITHM=COPY",
            REFUSED,
        ),
        (
            PLAIN,
            "SET auto_increment_increment = 1",
            "ALGORITHM=COPY",
            "1,2,3",
        ),
        (
            PLAIN,
            "SET auto_increment_increment = 1",
            "MODIFY b VARCHAR(40)",
            "1,2,3",
        ),
        (
            PLAIN,
            "SET auto_increment_increment = 1",
            "AUTO_INCREMENT=50",
            "51,52,53",
        ),
        (
            PLAIN,
            "SET auto_increment_increment = 1",
            "AUTO_INCREMENT=50, ALGORITHM=COPY",
            "50,51,52",
        ),
        (
            PLAIN,
            "SET auto_increment_increment = 1, auto_increment_offset = 1",
            "AUTO_INCREMENT=50",
            "50,51,52",
        ),
        (
            "CREATE TABLE t (a INT NOT NULL UNIQUE, b VARCHAR(20) NOT NULL UNIQUE, c INT)",
            "SET auto_increment_increment = 1",
            "ALGORITHM=COPY",
            REFUSED,
        ),
        (
            "CREATE TABLE t (a INT, b VARCHAR(20), c INT, PRIMARY KEY (a DESC, b))",
            "SET auto_increment_increment = 1",
            "ALGORITHM=COPY",
            REFUSED,
        ),
    ] {
        let found = numbered(SourceKind::Mysql, table, set, &format!("{key}, {changes}"));
        assert_eq!(found, numbers, "{set}: {changes}");
    }
}

#[test]
fn rows_are_numbered_as_mariadb_numbers_them_or_not_at_all() {
    let cases = [
        ("ADD z INT", IN_PLACE),
        ("ADD z INT DEFAULT (1 + 5)", IN_PLACE),
        ("ADD z INT AS (a + 1) VIRTUAL", COPIED),
        ("ADD z INT CHECK (z > 0)", IN_PLACE),
        ("ADD CHECK (a > 0)", COPIED),
        ("MODIFY c BIGINT", COPIED),
        ("ORDER BY a", COPIED),
    ];
    check(SourceKind::Mariadb, PLAIN, &cases);
    let generated = "CREATE TABLE t (a INT, b TEXT, c INT, v INT AS (a + 1) VIRTUAL)";
    let cases = [("ADD z INT", REFUSED), ("ALGORITHM=COPY", COPIED)];
    check(SourceKind::Mariadb, generated, &cases);
}
