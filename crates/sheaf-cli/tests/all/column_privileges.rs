//! Privileges on single columns, as clients meet them. The answers are MySQL's.

use std::io::Write;

use mysql::prelude::Queryable;
use mysql::{Conn, LocalInfileHandler};

use crate::harness::{TestServer, code, error_of, query_text, run};
use crate::users::{connect_as, refusal};

/// A server with a table `t (a, b, c, d)` and one `s (a, z)`, the connection of root, and that of a user that has no
/// rights to `t`.
fn tables() -> (TestServer, Conn, Conn) {
    let server = TestServer::start();
    let mut root = server.connect_to_new("shop");
    run(
        &mut root,
        &[
            "CREATE TABLE t (a INT PRIMARY KEY, b INT, c INT DEFAULT 3, \
             d INT GENERATED ALWAYS AS (a + c), CHECK (c < 1000))",
            "INSERT INTO t (a, b) VALUES (1, 2), (3, 4)",
            "CREATE TABLE s (a INT PRIMARY KEY, z INT)",
            "INSERT INTO s VALUES (1, 10)",
            "CREATE USER ann",
            "GRANT SELECT ON s TO ann",
        ],
    );
    let mut ann = connect_as(&server, "ann", "").expect("ann has no password");
    run(&mut ann, &["USE shop"]);
    (server, root, ann)
}

const GRANT: &str = "GRANT SELECT (a, b), INSERT (a), UPDATE (b), REFERENCES (c) ON t TO ann";

/// What is refused: the code, and the command and what it is denied for.
fn denied(connection: &mut Conn, statement: &str) -> (u16, String) {
    let (code, message) = refusal(connection, statement);
    let (command, of_what) = message
        .split_once(" command denied to user 'ann'@'localhost' for ")
        .unwrap_or_else(|| panic!("{statement}: {message}"));
    (code, format!("{command}: {of_what}"))
}

fn check_denied(connection: &mut Conn, denials: &[(&str, &str)]) {
    for (statement, expected) in denials {
        let (code, what) = denied(connection, statement);
        assert_eq!(what, *expected, "{statement}");
        let is_of_column = expected.contains(": column ");
        assert_eq!(code, if is_of_column { 1143 } else { 1142 }, "{statement}");
    }
}

#[test]
fn columns_are_read_with_the_privilege() {
    let (_server, mut root, mut ann) = tables();
    run(&mut root, &[GRANT]);
    for (query, rows) in [
        ("SELECT a FROM t", &["1", "3"][..]),
        ("SELECT COUNT(*) FROM t", &["2"]),
        ("SELECT 1 FROM t", &["1", "1"]),
        ("SELECT t.a FROM t JOIN s USING (a)", &["1"]),
        ("SELECT * FROM (SELECT a, b FROM t) q", &["1\t2", "3\t4"]),
        ("SELECT a AS c FROM t ORDER BY c DESC", &["3", "1"]),
        ("SELECT x.b FROM t x WHERE x.a = 3", &["4"]),
        ("SELECT a FROM t FOR UPDATE", &["1", "3"]),
        (
            "SELECT a FROM t WHERE b IN (SELECT b FROM t) ORDER BY b DESC",
            &["3", "1"],
        ),
        (
            "WITH q AS (SELECT b FROM t WHERE a = 1) SELECT * FROM q",
            &["2"],
        ),
        // EXISTS does not ask what its query lists.
        ("SELECT z FROM s WHERE EXISTS (SELECT * FROM t)", &["10"]),
        (
            "SELECT z FROM s WHERE EXISTS (SELECT t.* FROM t WHERE t.a = s.a)",
            &["10"],
        ),
        ("SELECT EXISTS (SELECT * FROM t WHERE b = 5)", &["0"]),
    ] {
        // Later runs may find a plan.
        for _ in 0..3 {
            assert_eq!(query_text(&mut ann, query), rows, "{query}");
        }
    }
    let column_c = "SELECT: column 'c' in table 't'";
    let whole = "SELECT: table 't'";
    let denials = [
        ("SELECT c FROM t", column_c),
        ("SELECT c FROM t WHERE a = 1", column_c),
        ("SELECT a FROM t WHERE c = 3", column_c),
        ("SELECT a FROM t ORDER BY c", column_c),
        ("SELECT a FROM t GROUP BY c", column_c),
        ("SELECT MAX(a) FROM t HAVING MAX(c) > 1", column_c),
        ("SELECT SUM(a) OVER (ORDER BY c) FROM t", column_c),
        ("SELECT COUNT(c) FROM t", column_c),
        ("SELECT x.c FROM t x", column_c),
        ("SELECT shop.t.c FROM t", column_c),
        ("SELECT t.a FROM t JOIN s ON t.c = s.z", column_c),
        ("SELECT 1 FROM t JOIN t u USING (c)", column_c),
        ("SELECT (SELECT c FROM t LIMIT 1)", column_c),
        ("SELECT a FROM t WHERE a IN (SELECT c FROM t)", column_c),
        (
            "SELECT z FROM s WHERE EXISTS (SELECT 1 FROM t WHERE t.c = s.z)",
            column_c,
        ),
        ("SELECT a FROM t UNION SELECT c FROM t", column_c),
        ("WITH q AS (SELECT c FROM t) SELECT * FROM q", column_c),
        ("EXPLAIN SELECT c FROM t", column_c),
        ("DO (SELECT MAX(c) FROM t)", column_c),
        ("SET @x = (SELECT MAX(c) FROM t)", column_c),
        ("SELECT d FROM t", "SELECT: column 'd' in table 't'"),
        (
            "SELECT nosuch FROM t",
            "SELECT: column 'nosuch' in table 't'",
        ),
        ("SELECT * FROM t", whole),
        ("SELECT t.* FROM t", whole),
        ("TABLE t", whole),
        ("SELECT * FROM s CROSS JOIN t", whole),
        ("SELECT COUNT(*) FROM (SELECT * FROM t) q", whole),
        ("SELECT EXISTS (SELECT *, c FROM t)", column_c),
        ("SELECT EXISTS (SELECT * FROM t WHERE c = 1)", column_c),
        ("SELECT EXISTS (SELECT * FROM (SELECT * FROM t) q)", whole),
    ];
    // Plans that root has made are shared.
    for (query, _) in denials
        .iter()
        .filter(|(query, _)| query.starts_with("SELECT"))
    {
        if !query.contains("nosuch") && !query.contains("OVER") {
            let _ = root.query_drop(query);
        }
    }
    check_denied(&mut ann, &denials);

    // Whatever the column outside is called, the one inside hides it.
    let hidden =
        "SELECT z FROM (SELECT 1 AS c, 2 AS z) o WHERE EXISTS (SELECT 1 FROM t WHERE c = 1)";
    check_denied(&mut ann, &[(hidden, column_c)]);

    // A name that a hidden column has as well does not mean the other.
    run(
        &mut root,
        &[
            "CREATE TABLE u (a INT, c INT, e INT)",
            "GRANT SELECT (c, e) ON u TO ann",
        ],
    );
    let column_a_of_u = "SELECT: column 'a' in table 'u'";
    check_denied(
        &mut ann,
        &[
            ("SELECT a FROM t JOIN u", column_a_of_u),
            ("SELECT a FROM u JOIN t", column_a_of_u),
            ("SELECT e FROM t JOIN u WHERE a = 1", column_a_of_u),
            ("SELECT e FROM t JOIN u ORDER BY a + 1", column_a_of_u),
            ("SELECT c FROM u JOIN t", column_c),
        ],
    );
    assert_eq!(code(&mut ann, "SELECT a FROM t JOIN t AS v"), 1052);
    run(
        &mut ann,
        &[
            "SELECT e, b FROM t JOIN u",
            "SELECT t.a, u.c FROM t JOIN u ORDER BY a",
        ],
    );

    // To have a privilege on each column is enough for `*`; to write some is not enough to count.
    run(&mut root, &["GRANT SELECT (c, d) ON t TO ann"]);
    assert_eq!(
        query_text(&mut ann, "SELECT * FROM t WHERE a = 1"),
        ["1\t2\t3\t4"]
    );
    run(&mut root, &["REVOKE SELECT ON t FROM ann"]);
    check_denied(
        &mut ann,
        &[
            ("SELECT COUNT(*) FROM t", whole),
            ("SELECT a FROM t", whole),
        ],
    );
}

#[test]
fn columns_are_written_with_the_privilege() {
    let (_server, mut root, mut ann) = tables();
    run(&mut root, &[GRANT]);
    let done = [
        "INSERT INTO t (a) VALUES (7)",
        "INSERT INTO t SET a = 9",
        "INSERT INTO t (a) SELECT z FROM s",
        "INSERT INTO t (a) VALUES (7) ON DUPLICATE KEY UPDATE b = b + 1",
        "INSERT INTO t (a) VALUES (7) ON DUPLICATE KEY UPDATE b = VALUES(a)",
        "INSERT INTO t (a) VALUES (7) AS n ON DUPLICATE KEY UPDATE b = n.a",
        "INSERT INTO t (a) VALUES (7) AS n(x) ON DUPLICATE KEY UPDATE b = x",
        "UPDATE t SET b = 5",
        "UPDATE t SET b = b + 1 WHERE a = 1",
        "UPDATE t x SET x.b = 3 ORDER BY a LIMIT 1",
        "UPDATE t, s SET t.b = s.z WHERE t.a = s.a",
    ];
    for statement in done {
        for _ in 0..2 {
            if statement.contains("SELECT") || !statement.contains("DUPLICATE") {
                run(&mut root, &["DELETE FROM t WHERE a > 3"]);
            }
            run(&mut ann, &[statement]);
        }
    }
    let update_c = "UPDATE: column 'c' in table 't'";
    let select_c = "SELECT: column 'c' in table 't'";
    let insert_b = "INSERT: column 'b' in table 't'";
    let denials = [
        ("INSERT INTO t (a, b) VALUES (8, 1)", insert_b),
        ("INSERT INTO t SET b = 9", insert_b),
        ("INSERT INTO t (b) SELECT z FROM s", insert_b),
        ("INSERT INTO t (a) SELECT c FROM t", select_c),
        (
            "INSERT INTO t VALUES (8, 1, 1, DEFAULT)",
            "INSERT: table 't'",
        ),
        ("INSERT INTO t () VALUES ()", "INSERT: table 't'"),
        (
            "INSERT INTO t (a) VALUES (7) ON DUPLICATE KEY UPDATE b = c",
            select_c,
        ),
        (
            "INSERT INTO t (a) VALUES (7) ON DUPLICATE KEY UPDATE b = VALUES(c)",
            select_c,
        ),
        (
            "INSERT INTO t (a) VALUES (7) AS n ON DUPLICATE KEY UPDATE b = n.c",
            select_c,
        ),
        (
            "INSERT INTO t (a) VALUES (7) ON DUPLICATE KEY UPDATE c = 1",
            update_c,
        ),
        ("REPLACE INTO t (a) VALUES (7)", "DELETE: table 't'"),
        ("UPDATE t SET c = 1", update_c),
        ("UPDATE t SET b = 1, c = 1 WHERE a = 1", update_c),
        ("UPDATE t SET b = c", select_c),
        ("UPDATE t SET b = 1 WHERE c = 3", select_c),
        ("UPDATE t SET b = 1 ORDER BY c LIMIT 1", select_c),
        (
            "UPDATE t SET b = (SELECT MAX(c) FROM (SELECT c FROM t) q)",
            select_c,
        ),
        ("UPDATE t, s SET t.c = s.z WHERE t.a = s.a", update_c),
        ("UPDATE t, s SET t.b = t.c WHERE t.a = s.a", select_c),
        // The second value is computed when the row is written.
        ("UPDATE t SET b = a, b = b + c", select_c),
        ("EXPLAIN UPDATE t SET c = 1", update_c),
        ("EXPLAIN UPDATE t SET b = 1, c = 1 WHERE a = 1", update_c),
        ("EXPLAIN FORMAT=TREE UPDATE t, s SET t.c = s.z", update_c),
        ("EXPLAIN UPDATE t SET b = a, b = b + c", select_c),
        ("EXPLAIN UPDATE t SET b = 1 WHERE c = 3", select_c),
        ("EXPLAIN INSERT INTO t (a, b) VALUES (8, 1)", insert_b),
        ("EXPLAIN INSERT INTO t (b) SELECT z FROM s", insert_b),
        ("EXPLAIN INSERT INTO t (a) SELECT c FROM t", select_c),
        ("EXPLAIN REPLACE INTO t (a) VALUES (7)", "DELETE: table 't'"),
        ("EXPLAIN DELETE FROM t WHERE a = 1", "DELETE: table 't'"),
        (
            "EXPLAIN DELETE t FROM t JOIN s ON t.a = s.a",
            "DELETE: table 't'",
        ),
        ("DELETE FROM t WHERE a = 1", "DELETE: table 't'"),
    ];
    for (statement, _) in denials
        .iter()
        .filter(|(_, what)| !what.starts_with("DELETE"))
    {
        let _ = root.query_drop(statement);
    }
    check_denied(&mut ann, &denials);

    run(&mut root, &["GRANT DELETE ON t TO ann"]);
    run(
        &mut ann,
        &[
            "DELETE FROM t WHERE a = 99",
            "REPLACE INTO t (a) VALUES (7)",
        ],
    );
    check_denied(
        &mut ann,
        &[
            ("DELETE FROM t WHERE c = 99", select_c),
            ("DELETE t FROM t JOIN s ON t.c = s.z", select_c),
            ("REPLACE INTO t (b) VALUES (7)", insert_b),
        ],
    );
    // Generated columns and CHECKs read what they need; a key needs the column that it refers to.
    run(
        &mut root,
        &[
            "GRANT UPDATE (c) ON t TO ann",
            "GRANT CREATE ON shop.* TO ann",
        ],
    );
    run(&mut ann, &["UPDATE t SET c = 7 WHERE a = 1"]);
    assert_eq!(code(&mut ann, "UPDATE t SET c = 1000 WHERE a = 1"), 3819);
    assert_eq!(
        query_text(&mut root, "SELECT c, d FROM t WHERE a = 1"),
        ["7\t8"]
    );
    let key = "CREATE TABLE k (x INT, FOREIGN KEY (x) REFERENCES t (a))";
    run(&mut root, &["GRANT REFERENCES (a) ON t TO ann"]);
    check_denied(&mut ann, &[(key, "REFERENCES: table 'shop.t'")]);
    run(&mut root, &["GRANT REFERENCES ON t TO ann"]);
    run(&mut ann, &[key]);
}

#[test]
fn a_change_reads_what_it_names() {
    let (_server, mut root, mut ann) = tables();
    run(&mut root, &["GRANT UPDATE (b), INSERT (a) ON t TO ann"]);
    for switch in ["direct=on", "direct=off"] {
        run(
            &mut ann,
            &[
                &format!("SET optimizer_switch = '{switch}'"),
                "SET @x = 4",
                "UPDATE t SET b = 1",
                "UPDATE t SET b = ABS(-3) + @x LIMIT 1",
                "UPDATE t SET b = (SELECT 1) WHERE 1 = 1",
                "UPDATE t SET b = DEFAULT WHERE RAND() > 2",
                "UPDATE t AS x SET x.b = 1 WHERE EXISTS (SELECT 1)",
                "UPDATE t, (SELECT 1 AS q) AS d SET b = q",
                "WITH d AS (SELECT 1 AS q) UPDATE t, d SET b = q",
                "UPDATE t LEFT JOIN s ON TRUE SET t.b = s.z",
                "UPDATE t SET b = (SELECT MAX(z) FROM s) ORDER BY RAND()",
                "EXPLAIN UPDATE t SET b = 1 WHERE 1 = 1",
            ],
        );
        check_denied(
            &mut ann,
            &[
                ("UPDATE t SET b = b + 1", "SELECT: column 'b' in table 't'"),
                (
                    "UPDATE t SET b = 2 ORDER BY b LIMIT 1",
                    "SELECT: column 'b' in table 't'",
                ),
                (
                    "UPDATE t SET b = (SELECT MAX(s.z) FROM s WHERE s.a = t.a)",
                    "SELECT: column 'a' in table 't'",
                ),
                (
                    "UPDATE t SET b = 1 WHERE EXISTS (SELECT 1 FROM t AS x)",
                    "SELECT: table 't'",
                ),
                (
                    "UPDATE t, (SELECT COUNT(*) AS q FROM t) AS d SET b = q",
                    "SELECT: table 't'",
                ),
                ("SELECT 1 FROM t", "SELECT: table 't'"),
                ("UPDATE t SET b = b", "SELECT: column 'b' in table 't'"),
                (
                    "UPDATE t SET b = DEFAULT(c)",
                    "SELECT: column 'c' in table 't'",
                ),
                (
                    "UPDATE t, s SET b = c + z",
                    "SELECT: column 'c' in table 't'",
                ),
                (
                    "INSERT INTO t (a) VALUES (8), (a + 1)",
                    "SELECT: column 'a' in table 't'",
                ),
                (
                    "INSERT INTO t SET a = DEFAULT(c)",
                    "SELECT: column 'c' in table 't'",
                ),
                (
                    "INSERT INTO t (a) VALUES ((SELECT MAX(z) FROM s WHERE z > c))",
                    "SELECT: column 'c' in table 't'",
                ),
                (
                    "INSERT INTO t (a) VALUES (7) ON DUPLICATE KEY UPDATE b = VALUES(a)",
                    "SELECT: column 'a' in table 't'",
                ),
            ],
        );
    }
    assert_eq!(query_text(&mut root, "SELECT DISTINCT b FROM t"), ["10"]);
    let prepared = ann
        .prep("UPDATE t SET b = ABS(?) WHERE ? = 1")
        .expect("nothing is read");
    for _ in 0..3 {
        ann.exec_drop(&prepared, (-4, 1)).expect("ann may");
    }
    assert_eq!(query_text(&mut root, "SELECT DISTINCT b FROM t"), ["4"]);
}

#[test]
fn a_file_is_loaded_into_columns_by_those_who_may() {
    let (_server, mut root, mut ann) = tables();
    run(&mut root, &["GRANT INSERT (a) ON t TO ann"]);
    let handler = LocalInfileHandler::new(|_name, file| file.write_all(b"70\t71\n"));
    ann.set_local_infile_handler(Some(handler));
    let load = |into: &str| format!("LOAD DATA LOCAL INFILE 'rows' INTO TABLE t {into}");
    for into in ["(a, @x)", "(@x, a)", "(@x, @y) SET a = @y + 1"] {
        run(&mut ann, &[&load(into)]);
    }
    let rows = "SELECT a FROM t WHERE a > 9 AND b IS NULL ORDER BY a";
    assert_eq!(query_text(&mut root, rows), ["70", "71", "72"]);
    let insert_b = "INSERT: column 'b' in table 't'";
    for (into, expected) in [
        ("(a, b)", insert_b),
        ("(@x, b) SET a = @x", insert_b),
        ("(a) SET b = 3", insert_b),
        ("", "INSERT: table 't'"),
    ] {
        check_denied(&mut ann, &[(load(into).as_str(), expected)]);
    }
}

#[test]
fn keys_are_shown_with_the_columns_that_one_may_use() {
    let (_server, mut root, mut ann) = tables();
    run(
        &mut root,
        &[
            "CREATE TABLE p (x INT PRIMARY KEY, y INT, UNIQUE uy (y), UNIQUE yx (y, x))",
            "CREATE TABLE ch (id INT PRIMARY KEY, k INT, l INT, \
             CONSTRAINT fk1 FOREIGN KEY (k) REFERENCES p (x), \
             CONSTRAINT fk2 FOREIGN KEY (l) REFERENCES p (y))",
            "REVOKE SELECT ON s FROM ann",
            "GRANT SELECT (z) ON s TO ann",
            "GRANT SELECT (id, k) ON ch TO ann",
            "GRANT UPDATE (y) ON p TO ann",
            "GRANT DELETE ON t TO ann",
        ],
    );
    let of_columns = "SELECT table_name, constraint_name, column_name \
                      FROM information_schema.key_column_usage WHERE table_schema = 'shop' ORDER BY 1, 2, 3";
    assert_eq!(
        query_text(&mut ann, of_columns),
        ["ch\tfk1\tk", "ch\tPRIMARY\tid", "p\tuy\ty", "p\tyx\ty"]
    );
    // As in MySQL, constraints and indexes are those of tables.
    let constraints = "SELECT table_name, constraint_type FROM information_schema.table_constraints \
                       WHERE table_schema = 'shop' AND table_name IN ('ch', 's') ORDER BY 1, 2";
    assert_eq!(
        query_text(&mut ann, constraints),
        [
            "ch\tFOREIGN KEY",
            "ch\tFOREIGN KEY",
            "ch\tPRIMARY KEY",
            "s\tPRIMARY KEY"
        ]
    );
    let parts = "SELECT COUNT(*) FROM information_schema.statistics WHERE table_schema = 'shop'";
    let all = query_text(&mut root, parts);
    assert_eq!(query_text(&mut ann, parts), all);
    assert_eq!(
        query_text(
            &mut ann,
            "SELECT COUNT(*) FROM information_schema.check_constraints WHERE constraint_schema = 'shop'"
        ),
        ["1"]
    );
}

#[test]
fn what_show_grants_shows_can_be_run_again() {
    let (_server, mut root, mut ann) = tables();
    run(
        &mut root,
        &[
            "CREATE TABLE `a``b` (`c``d` INT, `E f` INT)",
            GRANT,
            "GRANT SELECT (`c``d`, `e F`), INSERT ON `a``b` TO ann",
            "GRANT DELETE ON t TO ann WITH GRANT OPTION",
            "GRANT PROCESS ON *.* TO ann",
            "GRANT SHOW VIEW ON `sh%`.* TO ann",
            "CREATE USER bob",
        ],
    );
    let shown = query_text(&mut ann, "SHOW GRANTS");
    for grant in &shown {
        run(&mut root, &[&grant.replace("`ann`@", "`bob`@")]);
    }
    let of_bob = query_text(&mut root, "SHOW GRANTS FOR bob");
    let of_bob: Vec<String> = of_bob
        .iter()
        .map(|grant| grant.replace("`bob`@", "`ann`@"))
        .collect();
    assert_eq!(of_bob, shown);
}

#[test]
fn what_is_revoked_holds_for_prepared_statements() {
    let (server, mut root, mut ann) = tables();
    run(&mut root, &[GRANT]);
    let prepared = ann.prep("SELECT b FROM t WHERE a = ?").expect("ann may");
    let change = ann
        .prep("UPDATE t SET b = b + ? WHERE a = 1")
        .expect("ann may");
    run(&mut ann, &["PREPARE p FROM 'SELECT b FROM t WHERE a = 1'"]);
    for _ in 0..3 {
        let found = ann.exec_first::<i32, _, _>(&prepared, (3,));
        assert_eq!(found.expect("ann may"), Some(4));
        ann.exec_drop(&change, (0,)).expect("ann may");
        run(&mut ann, &["EXECUTE p"]);
    }
    run(&mut root, &["REVOKE SELECT (b) ON t FROM ann"]);
    assert_eq!(
        error_of(ann.exec_first::<i32, _, _>(&prepared, (3,))).0,
        1143
    );
    assert_eq!(error_of(ann.exec_drop(&change, (0,))).0, 1143);
    assert_eq!(code(&mut ann, "EXECUTE p"), 1143);
    run(&mut root, &["GRANT SELECT ON t TO ann"]);
    let found = ann.exec_first::<i32, _, _>(&prepared, (3,));
    assert_eq!(found.expect("ann may again"), Some(4));

    // Of two sessions that share a plan, each has its own rights.
    run(
        &mut root,
        &["CREATE USER bob", "GRANT SELECT (a) ON t TO bob"],
    );
    let mut bob = connect_as(&server, "bob", "").expect("bob has no password");
    run(&mut bob, &["USE shop"]);
    for _ in 0..3 {
        run(&mut ann, &["SELECT b FROM t WHERE a = 1"]);
        assert_eq!(code(&mut bob, "SELECT b FROM t WHERE a = 1"), 1143);
        run(&mut bob, &["SELECT a FROM t WHERE a = 1"]);
    }
}

#[test]
fn grants_on_columns_are_shown_and_stay_over_a_restart() {
    let (mut server, mut root, mut ann) = tables();
    let usage = "GRANT USAGE ON *.* TO `ann`@`%`";
    let on_s = "GRANT SELECT ON `shop`.`s` TO `ann`@`%`";
    let shows = |connection: &mut Conn, on_t: &[&str]| {
        let expected = [&[usage, on_s], on_t].concat();
        assert_eq!(query_text(connection, "SHOW GRANTS FOR ann"), expected);
    };
    run(
        &mut root,
        &[GRANT, "GRANT SELECT (C), INSERT (b, a) ON t TO ann"],
    );
    shows(
        &mut root,
        &[
            "GRANT SELECT (`a`, `b`, `c`), INSERT (`a`, `b`), UPDATE (`b`), REFERENCES (`c`) ON `shop`.`t` TO `ann`@`%`",
        ],
    );
    run(&mut root, &["REVOKE SELECT (c), INSERT (b) ON t FROM ann"]);
    let granted = "GRANT SELECT (`a`, `b`), INSERT (`a`), UPDATE (`b`), REFERENCES (`c`) ON `shop`.`t` TO `ann`@`%`";
    shows(&mut root, &[granted]);
    let of_columns = "SELECT grantee, table_name, column_name, privilege_type, is_grantable \
                      FROM information_schema.column_privileges ORDER BY 3, 4";
    let rows = [
        "'ann'@'%'\tt\ta\tINSERT\tNO",
        "'ann'@'%'\tt\ta\tSELECT\tNO",
        "'ann'@'%'\tt\tb\tSELECT\tNO",
        "'ann'@'%'\tt\tb\tUPDATE\tNO",
        "'ann'@'%'\tt\tc\tREFERENCES\tNO",
    ];
    assert_eq!(query_text(&mut ann, of_columns), rows);
    let seen = "SELECT column_name, privileges FROM information_schema.columns \
                WHERE table_schema = 'shop' AND table_name = 't'";
    let columns = ["a\tselect,insert", "b\tselect,update", "c\treferences"];
    assert_eq!(query_text(&mut ann, seen), columns);
    let names = |row: &String| row.split('\t').next().map(str::to_string);
    let described = query_text(&mut ann, "SHOW COLUMNS FROM t");
    let described: Vec<String> = described.iter().filter_map(names).collect();
    assert_eq!(described, ["a", "b", "c"]);
    assert_eq!(query_text(&mut ann, "SHOW TABLES"), ["s", "t"]);

    for (statement, expected) in [
        ("GRANT SELECT (nosuch) ON t TO ann", 1054),
        ("GRANT SELECT (a) ON nosuch TO ann", 1146),
        ("GRANT CREATE, SELECT (a) ON nosuch TO ann", 1146),
        ("GRANT DELETE (a) ON t TO ann", 1064),
        ("GRANT ALL (a) ON t TO ann", 1064),
        ("GRANT SELECT (a) ON shop.* TO ann", 1144),
        ("GRANT SELECT (a) ON *.* TO ann", 1144),
        ("REVOKE SELECT (a, c) ON t FROM ann", 1147),
        ("REVOKE UPDATE (a) ON t FROM ann", 1147),
        ("REVOKE SELECT (a), DELETE ON t FROM ann", 1147),
        ("REVOKE DELETE ON t FROM ann", 1147),
    ] {
        assert_eq!(code(&mut root, statement), expected, "{statement}");
    }
    drop((root, ann));
    server.restart();
    let mut root = server.connect();
    run(&mut root, &["USE shop"]);
    shows(&mut root, &[granted]);

    // Names are what is granted on.
    run(
        &mut root,
        &["RENAME TABLE t TO u", "ALTER TABLE u RENAME COLUMN b TO bb"],
    );
    shows(&mut root, &[granted]);
    let mut ann = connect_as(&server, "ann", "").expect("ann has no password");
    run(&mut ann, &["USE shop"]);
    assert_eq!(code(&mut ann, "SELECT a FROM u"), 1142);
    run(&mut root, &["RENAME TABLE u TO t"]);
    check_denied(
        &mut ann,
        &[("SELECT bb FROM t", "SELECT: column 'bb' in table 't'")],
    );
    run(&mut ann, &["SELECT a FROM t"]);

    // What is revoked on the table is revoked on its columns; all of a table holds for its columns.
    run(
        &mut root,
        &[
            "REVOKE SELECT ON t FROM ann",
            "GRANT DELETE ON t TO ann WITH GRANT OPTION",
        ],
    );
    shows(
        &mut root,
        &[
            "GRANT INSERT (`a`), UPDATE (`b`), DELETE, REFERENCES (`c`) ON `shop`.`t` TO `ann`@`%` WITH GRANT OPTION",
        ],
    );
    run(&mut root, &["CREATE USER bob"]);
    run(&mut ann, &["GRANT INSERT (a) ON t TO bob"]);
    check_denied(
        &mut ann,
        &[
            (
                "GRANT INSERT (c) ON t TO bob",
                "INSERT: column 'c' in table 't'",
            ),
            (
                "GRANT INSERT (a), SELECT (c) ON t TO bob",
                "SELECT: column 'c' in table 't'",
            ),
        ],
    );
    run(&mut root, &["GRANT ALL ON t TO ann"]);
    shows(
        &mut root,
        &["GRANT ALL PRIVILEGES ON `shop`.`t` TO `ann`@`%` WITH GRANT OPTION"],
    );
    run(
        &mut root,
        &[
            "GRANT SELECT (a) ON t TO bob",
            "REVOKE ALL PRIVILEGES, GRANT OPTION FROM bob",
        ],
    );
    assert_eq!(
        query_text(&mut root, "SHOW GRANTS FOR bob"),
        ["GRANT USAGE ON *.* TO `bob`@`%`"]
    );
}

#[test]
fn views_have_columns_too() {
    let (server, mut root, mut ann) = tables();
    run(
        &mut root,
        &[
            "CREATE VIEW v AS SELECT a, b, c FROM t",
            "CREATE SQL SECURITY INVOKER VIEW part AS SELECT a, b FROM t",
            "CREATE SQL SECURITY INVOKER VIEW whole AS SELECT a, c FROM t",
            "GRANT SELECT (a, b) ON t TO ann",
            "GRANT SELECT (a), UPDATE (b), INSERT (a) ON v TO ann",
            "GRANT SELECT ON part TO ann",
            "GRANT SELECT ON whole TO ann",
        ],
    );
    run(
        &mut ann,
        &[
            "SELECT a FROM v",
            "SELECT * FROM part",
            "UPDATE v SET b = 4 WHERE a = 1",
            "INSERT INTO v (a) VALUES (200)",
        ],
    );
    check_denied(
        &mut ann,
        &[
            ("SELECT b FROM v", "SELECT: column 'b' in table 'v'"),
            (
                "SELECT a FROM v WHERE c = 1",
                "SELECT: column 'c' in table 'v'",
            ),
            ("SELECT * FROM v", "SELECT: table 'v'"),
            (
                "UPDATE v SET c = 4 WHERE a = 1",
                "UPDATE: column 'c' in table 'v'",
            ),
            (
                "UPDATE v SET b = 4 WHERE b = 1",
                "SELECT: column 'b' in table 'v'",
            ),
            (
                "INSERT INTO v (a, b) VALUES (201, 1)",
                "INSERT: column 'b' in table 'v'",
            ),
        ],
    );
    assert_eq!(code(&mut ann, "SELECT c FROM whole"), 1356);
    let described = query_text(
        &mut ann,
        "SELECT column_name FROM information_schema.columns WHERE table_name = 'v'",
    );
    assert_eq!(described, ["a", "b"]);
    // With the privileges of a user that may read a part, a view shows no more.
    run(
        &mut root,
        &[
            "CREATE DEFINER = ann VIEW more AS SELECT a, c FROM t",
            "CREATE DEFINER = ann VIEW less AS SELECT a, b FROM t",
            "CREATE USER bob",
            "GRANT SELECT ON more TO bob",
            "GRANT SELECT ON less TO bob",
        ],
    );
    let mut bob = connect_as(&server, "bob", "").expect("bob has no password");
    run(&mut bob, &["USE shop", "SELECT * FROM less"]);
    assert_eq!(code(&mut bob, "SELECT c FROM more"), 1356);
}

#[test]
fn a_change_without_a_condition_reads_no_more_of_a_view() {
    let (_server, mut root, mut ann) = tables();
    run(
        &mut root,
        &[
            "CREATE TABLE secret (n INT)",
            "INSERT INTO secret VALUES (3)",
            "CREATE SQL SECURITY INVOKER VIEW v AS SELECT b FROM t WHERE a IN (SELECT n FROM secret)",
            "GRANT UPDATE, DELETE ON t TO ann",
            "GRANT UPDATE, DELETE ON v TO ann",
        ],
    );
    for statement in ["UPDATE v SET b = 1", "DELETE FROM v"] {
        let (code, message) = refusal(&mut ann, statement);
        assert!([1142, 1143, 1356].contains(&code), "{statement}: {message}");
    }
    assert_eq!(
        query_text(&mut root, "SELECT b FROM t ORDER BY a"),
        ["2", "4"]
    );
    // Nothing is read of a table that is named.
    run(&mut ann, &["UPDATE t SET b = 7"]);
    assert_eq!(
        query_text(&mut root, "SELECT b FROM t ORDER BY a"),
        ["7", "7"]
    );
}
