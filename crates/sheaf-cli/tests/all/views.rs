//! Views as clients meet them: privileges, locks, definitions that change, restarts and dumps.
//!
//! What queries of views answer is tested in tests/sqllogic/views.slt.

use std::process::{Command, Stdio};

use mysql::Conn;
use mysql::prelude::Queryable;

use crate::clients::{installed, mariadb};
use crate::harness::{TestServer, code, query_text, run};

/// A server with a shop that has a view, and root's connection to it.
fn shop() -> (TestServer, Conn) {
    let server = TestServer::start();
    let mut root = server.connect_to_new("shop");
    run(
        &mut root,
        &[
            "CREATE TABLE orders (id INT PRIMARY KEY, item VARCHAR(20), price INT)",
            "INSERT INTO orders VALUES (1, 'sheaf', 10), (2, 'scythe', 20), (3, 'sickle', 30)",
            "CREATE VIEW items AS SELECT id, item FROM orders",
        ],
    );
    (server, root)
}

fn connect_as(server: &TestServer, user: &str) -> Conn {
    let options = server.options().user(Some(user)).db_name(Some("shop"));
    Conn::new(options).expect("an account")
}

#[test]
fn a_view_shows_what_its_definer_may_see() {
    let (server, mut root) = shop();
    run(
        &mut root,
        &[
            "CREATE SQL SECURITY INVOKER VIEW own AS SELECT id FROM orders",
            "CREATE USER ann, bob",
            "CREATE DEFINER = bob@'%' VIEW of_bob AS SELECT id FROM orders",
            "CREATE DEFINER = nobody@localhost VIEW of_nobody AS SELECT id FROM orders",
            "GRANT SELECT ON shop.items TO ann",
            "GRANT SELECT ON shop.own TO ann",
            "GRANT SELECT ON shop.of_bob TO ann",
            "GRANT CREATE VIEW ON shop.* TO ann",
        ],
    );
    assert_eq!(code(&mut root, "SELECT * FROM of_nobody"), 1449);
    let mut ann = connect_as(&server, "ann");
    assert_eq!(
        query_text(&mut ann, "SELECT item FROM items WHERE id = 2"),
        ["scythe"]
    );
    assert_eq!(code(&mut ann, "SELECT * FROM orders"), 1142);
    assert_eq!(code(&mut ann, "SELECT id FROM own"), 1356);
    assert_eq!(code(&mut ann, "SELECT id FROM of_bob"), 1356);
    assert_eq!(code(&mut ann, "SELECT id FROM of_nobody"), 1142);
    // What is behind it is another question.
    assert_eq!(code(&mut ann, "SHOW CREATE VIEW items"), 1142);
    assert_eq!(code(&mut ann, "SHOW CREATE TABLE items"), 1142);
    assert_eq!(code(&mut ann, "EXPLAIN SELECT * FROM items"), 1345);
    assert_eq!(query_text(&mut ann, "SELECT COUNT(*) FROM items"), ["3"]);
    // And so is how it is read.
    let trace =
        "SELECT LENGTH(trace) > 0, insufficient_privileges FROM information_schema.optimizer_trace";
    run(
        &mut ann,
        &[
            "SET optimizer_trace = 'enabled=on'",
            "SELECT MAX(id) FROM items",
        ],
    );
    assert_eq!(query_text(&mut ann, trace), ["0\t1"]);
    run(
        &mut ann,
        &["SELECT 1", "SET optimizer_trace = 'enabled=off'"],
    );
    assert_eq!(query_text(&mut ann, trace), ["1\t0"]);
    run(&mut root, &["GRANT SHOW VIEW ON shop.items TO ann"]);
    assert!(query_text(&mut ann, "SHOW CREATE VIEW items")[0].contains("orders"));
    for explain in ["EXPLAIN", "EXPLAIN FORMAT=TREE", "EXPLAIN ANALYZE"] {
        assert_eq!(
            code(&mut ann, &format!("{explain} SELECT * FROM items")),
            1345
        );
        assert_eq!(
            code(&mut ann, &format!("{explain} SELECT * FROM orders")),
            1142
        );
    }
    run(&mut root, &["REVOKE SHOW VIEW ON shop.items FROM ann"]);
    run(
        &mut root,
        &[
            "CREATE VIEW who AS SELECT CURRENT_USER() AS definer, CURRENT_USER AS c, USER() AS reader",
            "CREATE SQL SECURITY INVOKER VIEW whom AS SELECT CURRENT_USER() AS invoker",
            "GRANT SELECT ON shop.who TO ann",
            "GRANT SELECT ON shop.whom TO ann",
        ],
    );
    assert_eq!(
        query_text(&mut ann, "SELECT * FROM who, whom"),
        ["root@localhost\troot@localhost\tann@localhost\tann@%"]
    );
    assert_eq!(
        query_text(
            &mut ann,
            "SELECT view_definition FROM information_schema.views WHERE table_name = 'items'"
        ),
        [""]
    );
    for wrong in [
        "CREATE VIEW mine AS SELECT * FROM orders",
        "CREATE OR REPLACE VIEW items AS SELECT 1",
        "ALTER VIEW items AS SELECT 1",
        "DROP VIEW items",
    ] {
        assert_eq!(code(&mut ann, wrong), 1142, "{wrong}");
    }
    let of_root = "CREATE DEFINER = root@localhost VIEW mine AS SELECT id FROM items";
    assert_eq!(code(&mut ann, of_root), 1227);
    run(&mut ann, &["CREATE VIEW mine AS SELECT id FROM items"]);
    assert_eq!(query_text(&mut root, "SELECT COUNT(*) FROM mine"), ["3"]);
    // A right that is none on columns shows none.
    run(
        &mut root,
        &[
            "CREATE USER cid",
            "GRANT CREATE VIEW, SHOW VIEW ON shop.* TO cid",
        ],
    );
    let mut cid = connect_as(&server, "cid");
    for wrong in [
        "SHOW COLUMNS FROM items",
        "DESC orders",
        "SHOW CREATE VIEW items",
    ] {
        assert_eq!(code(&mut cid, wrong), 1142, "{wrong}");
    }
    for (sql, expected) in [
        (
            "SELECT COUNT(*) FROM information_schema.columns WHERE table_schema = 'shop'",
            "0",
        ),
        (
            "SELECT MAX(view_definition) FROM information_schema.views",
            "",
        ),
        (
            "SELECT COUNT(*) > 3 FROM information_schema.tables WHERE table_schema = 'shop'",
            "1",
        ),
    ] {
        assert_eq!(query_text(&mut cid, sql), [expected], "{sql}");
    }
    // To change a view takes a privilege for it, and its definer's for the table.
    assert_eq!(code(&mut ann, "UPDATE items SET item = 'x'"), 1142);
    assert_eq!(code(&mut ann, "DELETE FROM items"), 1142);
    assert_eq!(code(&mut ann, "INSERT INTO items VALUES (4, 'x')"), 1142);
    assert_eq!(
        code(&mut ann, "UPDATE mine JOIN items USING (id) SET item = 'x'"),
        1142
    );
    run(
        &mut root,
        &[
            "GRANT INSERT, UPDATE, DELETE ON shop.items TO ann",
            "GRANT INSERT, UPDATE, DELETE ON shop.of_bob TO ann",
            "GRANT SELECT ON shop.orders TO bob",
        ],
    );
    run(
        &mut ann,
        &[
            "INSERT INTO items VALUES (4, 'x')",
            "UPDATE items SET item = 'y' WHERE id = 4",
            "DELETE FROM items WHERE item = 'y'",
        ],
    );
    for wrong in [
        "INSERT INTO of_bob VALUES (4)",
        "UPDATE of_bob SET id = 4",
        "DELETE FROM of_bob",
    ] {
        assert_eq!(code(&mut ann, wrong), 1356, "{wrong}");
    }
    run(&mut root, &["REVOKE SELECT ON shop.orders FROM bob"]);
    // ALTER VIEW keeps what it does not name.
    run(
        &mut root,
        &["ALTER VIEW own AS SELECT id FROM orders WHERE id > 0"],
    );
    assert_eq!(code(&mut ann, "SELECT id FROM own"), 1356);
    run(
        &mut root,
        &["ALTER VIEW of_bob AS SELECT id FROM orders WHERE id > 0"],
    );
    assert_eq!(code(&mut ann, "SELECT id FROM of_bob"), 1356);
    run(&mut root, &["GRANT DROP ON shop.items TO ann"]);
    assert_eq!(code(&mut ann, "ALTER VIEW items AS SELECT 1"), 1227);
    run(&mut root, &["REVOKE DROP ON shop.items FROM ann"]);
    // Its definer's privileges are asked for when it is used.
    run(&mut root, &["REVOKE SELECT ON shop.items FROM ann"]);
    assert_eq!(code(&mut root, "SELECT COUNT(*) FROM mine"), 1356);
    run(
        &mut root,
        &[
            "GRANT SELECT ON shop.orders TO bob",
            "GRANT SELECT ON shop.orders TO ann",
        ],
    );
    assert_eq!(query_text(&mut ann, "SELECT MAX(id) FROM of_bob"), ["3"]);
    assert_eq!(query_text(&mut ann, "SELECT MAX(id) FROM own"), ["3"]);
    run(&mut root, &["DROP USER bob"]);
    assert_eq!(code(&mut ann, "SELECT MAX(id) FROM of_bob"), 1449);
}

#[test]
fn views_outlive_restarts_and_what_is_behind_them() {
    let (mut server, mut root) = shop();
    run(
        &mut root,
        &["CREATE VIEW dear AS SELECT * FROM orders WHERE price > 10 WITH CHECK OPTION"],
    );
    drop(root);
    server.restart();
    let mut root = connect_as(&server, "root");
    assert_eq!(
        query_text(&mut root, "SELECT COUNT(*), MAX(item) FROM dear"),
        ["2\tsickle"]
    );
    let shown = query_text(&mut root, "SHOW CREATE VIEW dear");
    assert_eq!(
        shown,
        [
            "dear\tCREATE ALGORITHM=UNDEFINED DEFINER=`root`@`localhost` SQL SECURITY DEFINER VIEW `dear` \
          (`id`,`item`,`price`) AS SELECT `orders`.`id`, `orders`.`item`, `orders`.`price` FROM orders \
          WHERE price > 10 WITH CASCADED CHECK OPTION\tutf8mb4\tutf8mb4_general_ci"
        ]
    );
    assert_eq!(
        query_text(&mut root, "SHOW FULL TABLES"),
        ["dear\tVIEW", "items\tVIEW", "orders\tBASE TABLE"]
    );
    run(&mut root, &["RENAME TABLE orders TO sold"]);
    assert_eq!(code(&mut root, "SELECT * FROM dear"), 1356);
    assert_eq!(query_text(&mut root, "SHOW COLUMNS FROM dear").len(), 3);
    run(
        &mut root,
        &["CREATE VIEW orders AS SELECT id, item, price FROM sold"],
    );
    assert_eq!(query_text(&mut root, "SELECT COUNT(*) FROM dear"), ["2"]);
    run(
        &mut root,
        &["DROP DATABASE shop", "CREATE DATABASE shop", "USE shop"],
    );
    assert!(query_text(&mut root, "SHOW TABLES").is_empty());
}

#[test]
fn a_prepared_query_follows_its_view() {
    let (_server, mut root) = shop();
    let statement = root
        .prep("SELECT * FROM items WHERE id = ?")
        .expect("a statement");
    let fetch = |root: &mut Conn, id: i32| -> Vec<String> {
        let rows: Vec<mysql::Row> = root.exec(&statement, (id,)).expect("rows");
        rows.iter()
            .map(|row| format!("{:?}", row.clone().unwrap()))
            .collect()
    };
    assert_eq!(fetch(&mut root, 1), ["[Int(1), Bytes(\"sheaf\")]"]);
    run(
        &mut root,
        &["ALTER VIEW items AS SELECT id, price * 2 AS twice FROM orders"],
    );
    assert_eq!(fetch(&mut root, 3), ["[Int(3), Int(60)]"]);
    run(&mut root, &["DROP VIEW items"]);
    assert!(root.exec_drop(&statement, (1,)).is_err());
    run(
        &mut root,
        &[
            "PREPARE p FROM 'CREATE VIEW wrong AS SELECT ?'",
            "SET @a = 1",
        ],
    );
    assert_eq!(code(&mut root, "EXECUTE p USING @a"), 1351);
}

#[test]
fn locked_views_lock_their_tables() {
    let (server, mut root) = shop();
    run(
        &mut root,
        &["CREATE TABLE other (a INT)", "LOCK TABLES items READ"],
    );
    assert_eq!(query_text(&mut root, "SELECT COUNT(*) FROM items"), ["3"]);
    assert_eq!(query_text(&mut root, "SELECT COUNT(*) FROM orders"), ["3"]);
    assert_eq!(code(&mut root, "SELECT * FROM other"), 1100);
    assert_eq!(code(&mut root, "UPDATE items SET item = ''"), 1099);
    assert_eq!(code(&mut root, "UPDATE orders SET item = ''"), 1099);
    let mut other = connect_as(&server, "root");
    run(
        &mut other,
        &["SET innodb_lock_wait_timeout = 1, lock_wait_timeout = 1"],
    );
    assert_eq!(query_text(&mut other, "SELECT COUNT(*) FROM orders"), ["3"]);
    assert_eq!(code(&mut other, "UPDATE orders SET price = 0"), 1205);
    run(&mut root, &["LOCK TABLES items WRITE"]);
    run(
        &mut root,
        &["UPDATE items SET item = 'sheaves' WHERE id = 1"],
    );
    assert_eq!(code(&mut other, "SELECT * FROM orders"), 1205);
    run(&mut root, &["UNLOCK TABLES"]);
    run(&mut other, &["UPDATE orders SET price = price + 1"]);
}

#[test]
fn names_are_kept_for_other_databases_and_modes() {
    let (_server, mut root) = shop();
    run(
        &mut root,
        &[
            "CREATE DATABASE other",
            "USE other",
            "CREATE TABLE near (id INT)",
            "INSERT INTO near VALUES (3)",
            "CREATE VIEW shop.far AS SELECT o.item FROM shop.orders o JOIN near USING (id)",
            "SET sql_mode = 'ANSI_QUOTES'",
            "CREATE VIEW quoted AS SELECT \"id\" AS \"a b\" FROM \"near\" WHERE \"id\" > 1",
            "SET sql_mode = ''",
        ],
    );
    assert_eq!(query_text(&mut root, "SELECT * FROM shop.far"), ["sickle"]);
    assert_eq!(query_text(&mut root, "SELECT `a b` FROM quoted"), ["3"]);
    let query = |name: &str| {
        format!("SELECT view_definition FROM information_schema.views WHERE table_name = '{name}'")
    };
    assert_eq!(
        query_text(&mut root, &query("far")),
        ["SELECT o.item FROM orders o JOIN `other`.near USING (id)"]
    );
    assert_eq!(
        query_text(&mut root, &query("quoted")),
        ["SELECT `id` AS `a b` FROM `near` WHERE `id` > 1"]
    );
    run(
        &mut root,
        &[
            "CREATE VIEW shop.own_names AS SELECT shop.orders.id FROM shop.orders WHERE shop.orders.id > 1 ORDER BY shop.orders.id",
        ],
    );
    assert_eq!(
        query_text(&mut root, &query("own_names")),
        ["SELECT orders.id FROM orders WHERE orders.id > 1 ORDER BY orders.id"]
    );
    assert_eq!(
        query_text(&mut root, "SELECT SUM(id) FROM shop.own_names"),
        ["5"]
    );
    // Two tables of one name.
    run(
        &mut root,
        &[
            "CREATE TABLE orders (id INT)",
            "INSERT INTO orders VALUES (7)",
            "CREATE VIEW both_of (a, b, c, d) AS SELECT * FROM orders, shop.orders WHERE shop.orders.id = 1",
        ],
    );
    assert_eq!(
        query_text(&mut root, "SELECT * FROM both_of"),
        ["7\t1\tsheaf\t10"]
    );
    run(&mut root, &["SET sql_mode = 'PIPES_AS_CONCAT'"]);
    run(
        &mut root,
        &["CREATE VIEW piped AS SELECT id || 'x' FROM near"],
    );
    assert_eq!(
        query_text(&mut root, &query("piped")),
        ["SELECT concat(id, 'x') FROM near"]
    );
    run(&mut root, &["SET sql_mode = 'HIGH_NOT_PRECEDENCE'"]);
    run(
        &mut root,
        &["CREATE VIEW high AS SELECT NOT id = 1 FROM near"],
    );
    assert_eq!(
        query_text(&mut root, &query("high")),
        ["SELECT (NOT (id)) = 1 FROM near"]
    );
}

#[test]
fn dumps_bring_views_to_another_database() {
    if !installed("mariadb-dump", &["mariadb-dump", "--version"])
        || !installed("the mariadb client", &["mariadb", "--version"])
    {
        return;
    }
    let (server, mut root) = shop();
    run(
        &mut root,
        &[
            // By its name it comes before what it reads.
            "CREATE VIEW a_first AS SELECT COUNT(*) AS n FROM items",
            "CREATE SQL SECURITY INVOKER VIEW dear AS SELECT * FROM orders WHERE item <> 'it''s' AND price > 10 \
             WITH LOCAL CHECK OPTION",
            "CREATE DATABASE copied",
        ],
    );
    let port = format!("-P{}", server.port());
    let dump = Command::new("mariadb-dump")
        .args([
            "--no-defaults",
            "-h",
            "127.0.0.1",
            "-u",
            "root",
            &port,
            "shop",
        ])
        .stdin(Stdio::null())
        .output()
        .expect("mariadb-dump runs");
    assert!(
        dump.status.success(),
        "{}",
        String::from_utf8_lossy(&dump.stderr)
    );
    let file = server.directory().path().join("dump.sql");
    std::fs::write(&file, &dump.stdout).expect("a file");
    let source = format!("source {}", file.display());
    let read = mariadb(server.port(), &["copied", "-e", &source]);
    assert!(
        read.status.success(),
        "{}",
        String::from_utf8_lossy(&read.stderr)
    );
    run(&mut root, &["DROP DATABASE shop", "USE copied"]);
    assert_eq!(query_text(&mut root, "SELECT n FROM a_first"), ["3"]);
    assert_eq!(query_text(&mut root, "SELECT COUNT(*) FROM dear"), ["2"]);
    assert_eq!(
        query_text(
            &mut root,
            "SELECT table_name, security_type, check_option FROM information_schema.views ORDER BY 1"
        ),
        [
            "a_first\tDEFINER\tNONE",
            "dear\tINVOKER\tLOCAL",
            "items\tDEFINER\tNONE"
        ]
    );
}

/// The plan of `c` knows `c`: its subquery runs for each row, and is planned with all tables of the statement at hand.
#[test]
fn memory_of_common_tables_ends_with_their_statement() {
    let server = TestServer::start();
    let mut root = server.connect_to_new("nested");
    for sql in [
        "CREATE TABLE t0 (id INT PRIMARY KEY, a INT, b INT, s VARCHAR(10), KEY (a))",
        "INSERT INTO t0 VALUES (1,1,2,'b'),(2,2,4,'c'),(3,3,1,'a'),(4,0,3,NULL),(5,NULL,0,'c'),(6,2,2,'a'),(7,3,4,'b'),(8,0,1,NULL)",
        "CREATE TABLE t2 (id INT, a INT, b INT, s VARCHAR(10))",
        "INSERT INTO t2 VALUES (1,1,1,'b'),(2,NULL,2,'a'),(3,0,3,'b'),(4,NULL,4,'a'),(5,2,5,'b'),(0,NULL,6,'a')",
        "CREATE TABLE u (id INT, a INT, b INT, s VARCHAR(10))",
        "INSERT INTO u VALUES (3,3,2,'D'),(3,3,5,'D'),(4,4,NULL,'A'),(5,5,NULL,'B'),(0,NULL,4,NULL),(1,NULL,3,NULL)",
        "CREATE VIEW v1 AS SELECT x.b + 1 AS id, x.b AS a, IF(y.b IS NULL, 4, x.b) AS b, x.s FROM u x LEFT JOIN t2 y USING (b)",
        "CREATE VIEW v2 AS SELECT 0 AS id, (SELECT MAX(q.a) FROM t2 q WHERE q.id = x.id) AS a, x.id AS b, x.s FROM t2 x WHERE EXISTS (SELECT 1 FROM u e WHERE e.b = x.b)",
        "CREATE VIEW v3 AS SELECT MAX(IF(y.b IS NULL, 1, y.id)) AS id, COUNT(x.a) AS a, MIN(y.b) AS b, MAX(y.s) AS s FROM v2 x, v1 y WHERE x.id <= 0",
        "CREATE VIEW v4 AS SELECT * FROM v3 x WHERE x.a <> 1",
        "CREATE VIEW v5 AS SELECT y.a AS id, COUNT(*) AS a, SUM(0) AS b, MIN(y.s) AS s FROM v4 x, v4 y GROUP BY 1",
        "CREATE VIEW v6 AS SELECT x.id, SUM(x.a) OVER (PARTITION BY y.b) AS a, RANK() OVER (ORDER BY x.a) AS b, x.s FROM t0 x LEFT JOIN v5 y ON x.id = y.id",
    ] {
        root.query_drop(sql).expect(sql);
    }
    let sql = "WITH c AS (SELECT CASE WHEN x.b IN (SELECT n.b FROM v6 n WHERE n.a = 4) THEN x.id ELSE x.b END AS id, 0 AS b FROM t2 x) SELECT COUNT(*) FROM c y JOIN c z ON y.id = z.b";
    for _ in 0..2 {
        assert_eq!(query_text(&mut root, sql), ["0"]);
        let memory = query_text(&mut root, "SHOW GLOBAL STATUS LIKE 'Query_memory_bytes'");
        assert_eq!(memory, ["Query_memory_bytes\t0"]);
    }
}
