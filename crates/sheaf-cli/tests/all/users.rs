//! Accounts, passwords and privileges, as clients meet them.

use mysql::prelude::Queryable;
use mysql::{Conn, Opts};
use sheaf_sql::EngineOptions;

use crate::harness::{TestServer, code, error_of, query_text, run};
use crate::raw_client::{CLIENT_PLUGIN_AUTH, RawClient};

pub(crate) fn connect_as(server: &TestServer, user: &str, password: &str) -> mysql::Result<Conn> {
    let options = server.options().user(Some(user));
    Conn::new(options.pass(Some(password).filter(|password| !password.is_empty())))
}

/// Code and text of the error that a statement must give.
pub(crate) fn refusal(connection: &mut Conn, statement: &str) -> (u16, String) {
    match connection.query_drop(statement) {
        Err(mysql::Error::MySqlError(error)) => (error.code, error.message),
        other => panic!("{statement}: {other:?}"),
    }
}

/// A server with a small shop, and root's connection to it.
pub(crate) fn shop() -> (TestServer, Conn) {
    let server = TestServer::start();
    let mut root = server.connect_to_new("shop");
    run(
        &mut root,
        &[
            "CREATE TABLE orders (id INT PRIMARY KEY, item VARCHAR(20), price INT, KEY (price))",
            "CREATE TABLE salaries (id INT PRIMARY KEY, amount INT)",
            "INSERT INTO orders VALUES (1, 'sheaf', 10), (2, 'scythe', 20), (3, 'sickle', 30)",
            "INSERT INTO salaries VALUES (1, 1000)",
        ],
    );
    (server, root)
}

#[test]
fn what_is_refused_of_the_servers_own_databases_names_the_account() {
    let server = TestServer::start();
    let mut root = server.connect();
    run(
        &mut root,
        &[
            "CREATE USER ann@'%' IDENTIFIED BY 'geheim'",
            "GRANT ALL ON *.* TO ann@'%'",
        ],
    );
    let mut ann = connect_as(&server, "ann", "geheim").expect("ann may connect");
    assert_eq!(
        refusal(&mut ann, "CREATE TABLE information_schema.t (a INT)"),
        (
            1044,
            "Access denied for user 'ann'@'%' to database 'information_schema'".into()
        )
    );
}

#[test]
fn users_come_and_go_and_stay_over_a_restart() {
    let mut server = TestServer::start();
    let mut root = server.connect();
    assert_eq!(
        error_of(connect_as(&server, "ann", "secret")),
        (1045, "28000".into())
    );
    run(
        &mut root,
        &[
            "CREATE USER ann@localhost IDENTIFIED BY 'secret', 'bob'@'%'",
            "CREATE USER IF NOT EXISTS ann@localhost IDENTIFIED BY 'other'",
        ],
    );
    assert_eq!(
        query_text(&mut root, "SHOW WARNINGS"),
        ["Note\t3163\tAuthorization ID 'ann'@'localhost' already exists."]
    );
    assert_eq!(
        refusal(&mut root, "CREATE USER bob, ann@localhost, cid"),
        (
            1396,
            "Operation CREATE USER failed for 'bob'@'%','ann'@'localhost'".into()
        )
    );
    assert_eq!(code(&mut root, "DROP USER cid"), 1396);

    drop(root);
    server.restart();
    let mut root = server.connect();
    let mut ann = connect_as(&server, "ann", "secret").expect("the password");
    assert_eq!(
        query_text(&mut ann, "SELECT USER(), CURRENT_USER()"),
        ["ann@localhost\tann@localhost"]
    );
    let mut bob = connect_as(&server, "bob", "").expect("bob has no password");
    assert_eq!(
        query_text(&mut bob, "SELECT USER(), CURRENT_USER()"),
        ["bob@localhost\tbob@%"]
    );
    for (user, password) in [("ann", "Secret"), ("ann", ""), ("bob", "x"), ("cid", "")] {
        let error = match connect_as(&server, user, password) {
            Err(mysql::Error::MySqlError(error)) => error,
            other => panic!("{user} {password}: {:?}", other.map(drop)),
        };
        let using = if password.is_empty() { "NO" } else { "YES" };
        assert_eq!(
            (error.code, error.state.as_str(), error.message.as_str()),
            (
                1045,
                "28000",
                format!("Access denied for user '{user}'@'localhost' (using password: {using})")
                    .as_str()
            )
        );
    }

    // One's own password one may change, and nobody else's.
    run(&mut ann, &["SET PASSWORD = 'new'"]);
    connect_as(&server, "ann", "new").expect("the new password");
    run(
        &mut ann,
        &["ALTER USER CURRENT_USER() IDENTIFIED BY 'newer'"],
    );
    connect_as(&server, "ann", "newer").expect("the newer password");
    assert_eq!(
        refusal(&mut ann, "SET PASSWORD FOR bob = 'mine'"),
        (
            1227,
            "Access denied; you need (at least one of) the CREATE USER privilege(s) for this operation"
                .into()
        )
    );
    run(
        &mut root,
        &[
            "RENAME USER bob TO rob@localhost",
            "ALTER USER rob@localhost ACCOUNT LOCK",
        ],
    );
    assert_eq!(error_of(connect_as(&server, "bob", "")).0, 1045);
    assert_eq!(error_of(connect_as(&server, "rob", "")).0, 3118);
    run(&mut root, &["DROP USER ann@localhost, rob@localhost"]);
    assert_eq!(error_of(connect_as(&server, "ann", "newer")).0, 1045);
    // Who is connected may do nothing any more.
    assert_eq!(code(&mut ann, "CREATE DATABASE d"), 1044);
}

#[test]
fn root_may_have_a_password() {
    let mut server = TestServer::start();
    let mut root = server.connect();
    run(
        &mut root,
        &["ALTER USER root@localhost IDENTIFIED BY 'sheaf'"],
    );
    assert_eq!(error_of(connect_as(&server, "root", "")).0, 1045);
    assert_eq!(error_of(connect_as(&server, "root", "wrong")).0, 1045);
    let mut again = connect_as(&server, "root", "sheaf").expect("the password");
    run(&mut again, &["CREATE DATABASE d"]);
    drop((root, again));
    server.restart();
    assert_eq!(error_of(connect_as(&server, "root", "")).0, 1045);
    connect_as(&server, "root", "sheaf").expect("the password");
}

#[test]
fn the_most_specific_account_decides() {
    let server = TestServer::start();
    let mut root = server.connect();
    run(
        &mut root,
        &[
            "CREATE USER ann@'%' IDENTIFIED BY 'far', ann@'127.0.%' IDENTIFIED BY 'near'",
            "CREATE USER ''@'10.0.0.1'",
        ],
    );
    assert_eq!(error_of(connect_as(&server, "ann", "far")).0, 1045);
    let mut ann = connect_as(&server, "ann", "near").expect("the nearer account");
    assert_eq!(
        query_text(&mut ann, "SELECT CURRENT_USER()"),
        ["ann@127.0.%"]
    );
    run(
        &mut root,
        &["CREATE USER ann@localhost IDENTIFIED BY 'here'"],
    );
    connect_as(&server, "ann", "here").expect("the nearest account");
}

#[test]
fn tables_are_read_and_changed_by_those_who_may() {
    let (server, mut root) = shop();
    run(
        &mut root,
        &["CREATE USER ann", "GRANT SELECT ON shop.orders TO ann"],
    );
    let mut ann = connect_as(&server, "ann", "").expect("ann has no password");
    run(&mut ann, &["USE shop"]);
    assert_eq!(
        query_text(&mut ann, "SELECT item FROM orders WHERE id = 2"),
        ["scythe"]
    );
    assert_eq!(
        query_text(
            &mut ann,
            "SELECT SUM(price) FROM orders GROUP BY id > 1 ORDER BY 1"
        ),
        ["10", "50"]
    );
    assert_eq!(
        refusal(&mut ann, "SELECT * FROM salaries WHERE id = 1"),
        (
            1142,
            "SELECT command denied to user 'ann'@'localhost' for table 'salaries'".into()
        )
    );
    for statement in [
        "SELECT * FROM salaries",
        "SELECT * FROM shop.missing",
        "SELECT item FROM orders JOIN salaries ON orders.id = salaries.id WHERE orders.id = 1",
        "SELECT item FROM orders WHERE id IN (SELECT id FROM salaries)",
        "SELECT (SELECT MAX(amount) FROM salaries)",
        "WITH salaries AS (SELECT * FROM shop.salaries) SELECT * FROM salaries",
        "WITH x AS (SELECT 1) SELECT * FROM salaries",
        "SELECT * FROM orders UNION ALL SELECT id, id, id FROM salaries",
        "EXPLAIN SELECT * FROM salaries WHERE id = 1",
        "EXPLAIN SELECT * FROM salaries WHERE amount = 1 ORDER BY id LIMIT 1",
        "EXPLAIN ANALYZE SELECT * FROM salaries",
        "SET @a = (SELECT MAX(amount) FROM salaries)",
        "DO (SELECT MAX(amount) FROM salaries)",
        "SHOW COLUMNS FROM salaries",
        "SHOW INDEX FROM salaries",
        "SHOW CREATE TABLE salaries",
        "SHOW TABLES WHERE Tables_in_shop IN (SELECT amount FROM salaries)",
        "PREPARE p FROM 'SELECT * FROM salaries WHERE id = ?'",
        // Locking is as good as writing.
        "SELECT * FROM orders WHERE id = 1 FOR UPDATE",
        "SELECT * FROM orders FOR UPDATE",
        "SELECT * FROM orders WHERE id = 1 FOR UPDATE SKIP LOCKED",
        "SELECT * FROM (SELECT * FROM orders FOR UPDATE) AS o",
        "(SELECT * FROM orders FOR UPDATE) UNION SELECT * FROM orders",
        "WITH o AS (SELECT * FROM orders FOR UPDATE) SELECT * FROM o",
        "INSERT INTO orders VALUES (9, 'x', 9)",
        "INSERT INTO orders SELECT * FROM orders",
        "REPLACE INTO orders VALUES (9, 'x', 9)",
        "UPDATE orders SET price = 0 WHERE id = 1",
        "UPDATE orders SET price = 0",
        "UPDATE orders, salaries SET price = 0",
        "DELETE FROM orders WHERE id = 1",
        "DELETE FROM orders",
        "DELETE orders FROM orders JOIN orders AS o ON o.id = orders.id",
        "EXPLAIN UPDATE orders SET price = 0 WHERE id = 1",
        "TRUNCATE TABLE orders",
        "DROP TABLE orders",
        "ALTER TABLE orders COMMENT 'x'",
        "CREATE INDEX i ON orders (item)",
        "DROP INDEX price ON orders",
        "RENAME TABLE orders TO o",
        "CREATE TABLE t (a INT)",
        "CREATE TABLE t LIKE orders",
        "CREATE TABLE t AS SELECT * FROM orders",
        "ANALYZE TABLE orders",
        "LOCK TABLES salaries READ",
        "GRANT SELECT ON orders TO ann",
    ] {
        assert_eq!(code(&mut ann, statement), 1142, "{statement}");
    }
    for (statement, expected) in [
        ("DROP DATABASE shop", 1044),
        ("CREATE DATABASE d", 1044),
        ("USE mysql", 1044),
        ("SHOW TABLES FROM mysql", 1044),
        ("GRANT SELECT ON shop.* TO ann", 1044),
        ("GRANT SELECT ON *.* TO ann", 1045),
        ("SHOW GRANTS FOR root@localhost", 1044),
        ("SELECT * FROM mysql.user", 1142),
        ("CREATE USER bob", 1227),
        ("DROP USER root@localhost", 1227),
        ("SET GLOBAL max_connections = 1", 1227),
        ("SET @@global.max_connections = 1", 1227),
        ("SET GLOBAL TRANSACTION READ ONLY", 1227),
        ("FLUSH STATUS", 1227),
        ("BACKUP TO '/nowhere'", 1227),
        ("LOAD DATA INFILE '/etc/passwd' INTO TABLE orders", 1227),
        ("LOAD DATA LOCAL INFILE '/dev/null' INTO TABLE orders", 1142),
        ("INSTALL PLUGIN rewriter SONAME 'rewriter.so'", 1227),
        ("CALL query_rewrite.flush_rewrite_rules()", 1370),
        ("INSERT INTO information_schema.tables VALUES (1)", 1044),
    ] {
        assert_eq!(code(&mut ann, statement), expected, "{statement}");
    }
    assert_eq!(
        query_text(&mut ann, "SHOW DATABASES"),
        ["information_schema", "shop"]
    );
    assert_eq!(query_text(&mut ann, "SHOW TABLES"), ["orders"]);
    assert_eq!(
        query_text(
            &mut ann,
            "SELECT table_name FROM information_schema.columns WHERE table_schema <> 'information_schema' \
             GROUP BY table_name"
        ),
        ["orders"]
    );
    // Rows may be locked against changes by whoever may read them.
    run(
        &mut ann,
        &[
            "SELECT * FROM orders FOR SHARE",
            "SELECT * FROM orders WHERE id = 1 LOCK IN SHARE MODE",
        ],
    );
    assert_eq!(
        query_text(
            &mut ann,
            "SELECT DISTINCT privileges FROM information_schema.columns WHERE table_name = 'orders'"
        ),
        ["select"]
    );
    let counts = [
        "SELECT COUNT(*) FROM orders",
        "SELECT COUNT(*) FROM salaries",
    ];
    assert_eq!(counts.map(|sql| query_text(&mut root, sql)), [["3"], ["1"]]);

    run(&mut root, &["GRANT UPDATE ON orders TO ann"]);
    run(
        &mut ann,
        &[
            "SELECT * FROM orders WHERE id = 1 FOR UPDATE",
            "UPDATE orders SET price = price + 1 WHERE id = 1",
        ],
    );
}

#[test]
fn databases_are_made_and_changed_by_those_who_may() {
    let (server, mut root) = shop();
    run(
        &mut root,
        &[
            "CREATE USER ann",
            "CREATE USER bob",
            "GRANT CREATE ON `shop%`.* TO ann",
            "GRANT ALTER ON shop.* TO bob",
            "GRANT ALL ON shop.orders TO ann",
        ],
    );
    let mut ann = connect_as(&server, "ann", "").expect("ann has no password");
    let mut bob = connect_as(&server, "bob", "").expect("bob has no password");
    run(
        &mut ann,
        &["CREATE DATABASE shop_2 COLLATE utf8mb4_bin", "USE shop"],
    );
    run(
        &mut bob,
        &["USE shop", "ALTER DATABASE COLLATE utf8mb4_general_ci"],
    );
    let denied = "Access denied for user 'ann'@'%' to database 'shop'";
    for statement in [
        "ALTER DATABASE shop COLLATE utf8mb4_bin",
        "ALTER SCHEMA COLLATE utf8mb4_bin",
    ] {
        assert_eq!(refusal(&mut ann, statement), (1044, denied.into()));
    }
    for statement in [
        "CREATE DATABASE shop_3 COLLATE utf8mb4_bin",
        "ALTER DATABASE shop_2 COLLATE utf8mb4_general_ci",
        "ALTER DATABASE nowhere COLLATE utf8mb4_general_ci",
    ] {
        assert_eq!(code(&mut bob, statement), 1044, "{statement}");
    }
    let shown = "SELECT schema_name, default_collation_name FROM information_schema.schemata \
                 WHERE schema_name LIKE 'shop%' ORDER BY schema_name";
    assert_eq!(
        query_text(&mut root, shown),
        ["shop\tutf8mb4_general_ci", "shop_2\tutf8mb4_bin"]
    );
    assert_eq!(query_text(&mut bob, shown), ["shop\tutf8mb4_general_ci"]);
}

#[test]
fn a_change_that_reads_needs_select() {
    let (server, mut root) = shop();
    run(
        &mut root,
        &[
            "CREATE USER ann",
            "GRANT UPDATE, DELETE, INSERT ON shop.orders TO ann",
            "CREATE SQL SECURITY INVOKER VIEW orders_seen AS SELECT id FROM orders",
            "GRANT SELECT ON orders_seen TO ann",
        ],
    );
    let mut ann = connect_as(&server, "ann", "").expect("ann has no password");
    run(
        &mut ann,
        &["USE shop", "INSERT INTO orders VALUES (4, 'rake', 40)"],
    );
    for direct in ["on", "off"] {
        run(
            &mut ann,
            &[
                &format!("SET optimizer_switch = 'direct={direct}'"),
                "UPDATE orders SET price = 5",
                "UPDATE orders SET price = DEFAULT LIMIT 1",
                "UPDATE orders SET price = (SELECT 1), item = CONCAT('a', @b) WHERE RAND() < 2 ORDER BY RAND()",
                "DELETE FROM orders WHERE 1 = 0",
                "INSERT INTO orders VALUES (1, 'x', 7) ON DUPLICATE KEY UPDATE price = 7 + 1, item = 'y'",
            ],
        );
        for statement in [
            "UPDATE orders SET price = 5 WHERE EXISTS (SELECT 1 FROM orders AS o)",
            "UPDATE orders SET price = (SELECT COUNT(*) FROM (SELECT 1 FROM shop.orders) AS o)",
            "DELETE FROM orders WHERE EXISTS (SELECT 1 FROM orders_seen)",
            "DELETE orders FROM orders JOIN (SELECT 1) AS o",
            "DELETE FROM orders RETURNING 1",
            "SELECT 1 FROM orders",
        ] {
            assert_eq!(
                refusal(&mut ann, statement),
                (
                    1142,
                    "SELECT command denied to user 'ann'@'localhost' for table 'orders'".into()
                ),
                "{statement}"
            );
        }
    }
    // The columns that a change names are told by a binder, which names them.
    for direct in ["on", "off"] {
        run(
            &mut ann,
            &[&format!("SET optimizer_switch = 'direct={direct}'")],
        );
        for (statement, column) in [
            ("UPDATE orders SET price = 5 WHERE id = 1", "id"),
            ("UPDATE orders SET price = id", "id"),
            ("UPDATE orders SET price = 5 ORDER BY item LIMIT 1", "item"),
            ("EXPLAIN UPDATE orders SET price = 5 WHERE id = 1", "id"),
            ("DELETE FROM orders WHERE id = 1", "id"),
            ("EXPLAIN DELETE FROM orders WHERE id = 1", "id"),
            (
                "INSERT INTO orders VALUES (1, 'x', 7) ON DUPLICATE KEY UPDATE price = price + 1",
                "price",
            ),
            (
                "INSERT INTO orders VALUES (1, 'x', 7) ON DUPLICATE KEY UPDATE price = VALUES(price) + 1, item = 'y'",
                "price",
            ),
            (
                "INSERT INTO orders VALUES (1, 'x', 7) AS o ON DUPLICATE KEY UPDATE price = o.price",
                "price",
            ),
            (
                "INSERT INTO orders (id, price) VALUES (1, 7) AS o(a, b) ON DUPLICATE KEY UPDATE price = a + b",
                "id",
            ),
            (
                "INSERT INTO orders VALUES (1, 'x', 7) ON DUPLICATE KEY UPDATE id = LAST_INSERT_ID(orders.price) + VALUES(id)",
                "price",
            ),
            (
                "INSERT INTO orders VALUES (1, 'x', 7) ON DUPLICATE KEY UPDATE item = CONCAT(item, VALUES(@a))",
                "item",
            ),
        ] {
            let message = format!(
                "SELECT command denied to user 'ann'@'localhost' for column '{column}' in table 'orders'"
            );
            assert_eq!(refusal(&mut ann, statement), (1143, message), "{statement}");
        }
    }
    run(
        &mut ann,
        &[
            "EXPLAIN UPDATE orders SET price = 5",
            "EXPLAIN DELETE FROM orders WHERE 1 = 0",
            "DELETE FROM orders",
        ],
    );
    assert_eq!(query_text(&mut root, "SELECT COUNT(*) FROM orders"), ["0"]);
}

/// The worst that a shared plan could do: run with the rights of whoever made it.
#[test]
fn a_cached_plan_has_the_rights_of_who_runs_it() {
    let (server, mut root) = shop();
    run(
        &mut root,
        &["CREATE USER ann", "GRANT SELECT ON shop.orders TO ann"],
    );
    let mut ann = connect_as(&server, "ann", "").expect("ann has no password");
    run(&mut ann, &["USE shop"]);
    let statements = [
        "SELECT amount FROM salaries WHERE id = 1",
        "SELECT SUM(amount) FROM salaries WHERE id = 1",
        "SELECT amount FROM orders JOIN salaries ON salaries.id = orders.id WHERE orders.id = 1",
        "UPDATE salaries SET amount = 7 WHERE id = 2",
        "DELETE FROM salaries WHERE id = 2",
        "INSERT INTO salaries VALUES (2, 2)",
        "SELECT amount FROM salaries WHERE id = 1 FOR UPDATE",
    ];
    for statement in statements {
        for _ in 0..3 {
            // The plan is found by its text without literals: this one is root's.
            run(&mut root, &["DELETE FROM salaries WHERE id = 2", statement]);
        }
        assert_eq!(code(&mut ann, statement), 1142, "{statement}");
    }
    // A prepared statement holds its plan, but not the right to run it.
    run(&mut root, &["GRANT SELECT ON salaries TO ann"]);
    let prepared = ann
        .prep("SELECT amount FROM salaries WHERE id = ?")
        .expect("ann may");
    let read = |ann: &mut Conn| ann.exec_first::<i32, _, _>(&prepared, (1,));
    for _ in 0..3 {
        assert_eq!(read(&mut ann).expect("ann may"), Some(1000));
        run(&mut ann, &["SELECT amount FROM salaries WHERE id = 1"]);
    }
    run(&mut root, &["REVOKE SELECT ON salaries FROM ann"]);
    assert_eq!(error_of(read(&mut ann)).0, 1142);
    assert_eq!(
        code(&mut ann, "SELECT amount FROM salaries WHERE id = 1"),
        1142
    );
    run(&mut root, &["GRANT SELECT ON shop.* TO ann"]);
    assert_eq!(read(&mut ann).expect("ann may again"), Some(1000));
}

#[test]
fn grants_are_shown_as_statements_that_make_them() {
    let (server, mut root) = shop();
    assert_eq!(
        query_text(&mut root, "SHOW GRANTS"),
        ["GRANT ALL PRIVILEGES ON *.* TO `root`@`localhost` WITH GRANT OPTION"]
    );
    run(
        &mut root,
        &[
            "CREATE USER ann IDENTIFIED BY 'a' REQUIRE SSL",
            "GRANT PROCESS, SELECT, BACKUP_ADMIN ON *.* TO ann",
            "GRANT ALL ON `shop`.* TO ann",
            "GRANT INSERT, UPDATE ON `sto%`.* TO ann",
            "GRANT SELECT ON shop.orders TO ann WITH GRANT OPTION",
            "REVOKE UPDATE ON `sto%`.* FROM ann",
        ],
    );
    assert_eq!(
        query_text(&mut root, "SHOW GRANTS FOR ann"),
        [
            "GRANT SELECT, PROCESS ON *.* TO `ann`@`%`",
            "GRANT BACKUP_ADMIN ON *.* TO `ann`@`%`",
            "GRANT ALL PRIVILEGES ON `shop`.* TO `ann`@`%`",
            "GRANT INSERT ON `sto%`.* TO `ann`@`%`",
            "GRANT SELECT ON `shop`.`orders` TO `ann`@`%` WITH GRANT OPTION",
        ]
    );
    assert_eq!(
        query_text(&mut root, "SHOW CREATE USER ann"),
        [
            "CREATE USER `ann`@`%` IDENTIFIED WITH 'mysql_native_password' AS \
          '*667F407DE7C6AD07358FA38DAED7828A72014B4E' REQUIRE SSL PASSWORD EXPIRE DEFAULT ACCOUNT UNLOCK"
        ]
    );
    assert_eq!(
        query_text(
            &mut root,
            "SELECT table_schema, privilege_type FROM information_schema.schema_privileges \
             WHERE table_schema LIKE 'sto%'"
        ),
        ["sto%\tINSERT"]
    );
    for (statement, expected) in [
        ("GRANT SELECT ON shop.orders TO nobody", 1410),
        ("GRANT SELECT ON shop.missing TO ann", 1146),
        ("GRANT PROCESS ON shop.* TO ann", 1221),
        ("GRANT PROCESS ON shop.orders TO ann", 1144),
        ("REVOKE SELECT ON other.* FROM ann", 1141),
        ("REVOKE SELECT ON shop.salaries FROM ann", 1147),
        ("REVOKE SELECT ON *.* FROM nobody", 1141),
        ("SHOW GRANTS FOR nobody", 1141),
        ("CREATE USER cid IDENTIFIED WITH ldap", 1524),
        (
            "CREATE USER cid IDENTIFIED WITH mysql_native_password AS 'x'",
            1827,
        ),
    ] {
        assert_eq!(code(&mut root, statement), expected, "{statement}");
    }
    assert_eq!(
        query_text(
            &mut root,
            "SELECT host, user, select_priv, insert_priv, plugin FROM mysql.user ORDER BY user"
        ),
        [
            "%\tann\tY\tN\tmysql_native_password",
            "localhost\troot\tY\tY\tmysql_native_password"
        ]
    );
    run(&mut root, &["REVOKE ALL PRIVILEGES, GRANT OPTION FROM ann"]);
    assert_eq!(
        query_text(&mut root, "SHOW GRANTS FOR ann"),
        ["GRANT USAGE ON *.* TO `ann`@`%`"]
    );
    drop(server);
}

#[test]
fn who_has_the_grant_option_may_grant() {
    let (server, mut root) = shop();
    run(
        &mut root,
        &[
            "CREATE USER ann, bob",
            "GRANT SELECT, INSERT ON shop.* TO ann WITH GRANT OPTION",
        ],
    );
    let mut ann = connect_as(&server, "ann", "").expect("ann has no password");
    run(&mut ann, &["USE shop", "GRANT SELECT ON orders TO bob"]);
    assert_eq!(code(&mut ann, "GRANT DELETE ON orders TO bob"), 1142);
    assert_eq!(code(&mut ann, "GRANT ALL ON shop.* TO bob"), 1044);
    let mut bob = connect_as(&server, "bob", "").expect("bob has no password");
    assert_eq!(
        query_text(&mut bob, "SELECT COUNT(*) FROM shop.orders"),
        ["3"]
    );
    run(&mut ann, &["REVOKE SELECT ON orders FROM bob"]);
    assert_eq!(code(&mut bob, "SELECT COUNT(*) FROM shop.orders"), 1142);
    // A revoked database is not left by itself, but what it has cannot be seen.
    assert_eq!(
        query_text(&mut bob, "SHOW DATABASES"),
        ["information_schema"]
    );
}

/// Names of databases are patterns: nobody grants what fits more databases than their own.
#[test]
fn who_may_grant_a_pattern_may_not_grant_a_wider_one() {
    let (server, mut root) = shop();
    run(
        &mut root,
        &[
            "CREATE DATABASE shops",
            "CREATE TABLE shops.t (a INT)",
            "CREATE USER ann, bob",
            "GRANT SELECT ON `sho_`.* TO ann WITH GRANT OPTION",
            r"GRANT SELECT ON `my\_stock`.* TO ann WITH GRANT OPTION",
        ],
    );
    let mut ann = connect_as(&server, "ann", "").expect("ann has no password");
    for refused in ["`sho%`", "`s_o_`", "my_stock", "`%`"] {
        let grant = format!("GRANT SELECT ON {refused}.* TO ann, bob");
        assert_eq!(code(&mut ann, &grant), 1044, "{refused}");
    }
    assert_eq!(code(&mut ann, "SELECT * FROM shops.t"), 1142);
    for allowed in ["shop", "`sho_`", r"`my\_stock`"] {
        run(&mut ann, &[&format!("GRANT SELECT ON {allowed}.* TO bob")]);
    }
    let mut bob = connect_as(&server, "bob", "").expect("bob has no password");
    assert_eq!(
        query_text(&mut bob, "SELECT COUNT(*) FROM shop.orders"),
        ["3"]
    );
}

#[test]
fn sessions_of_others_are_for_those_who_may_see_them() {
    let server = TestServer::start();
    let mut root = server.connect();
    run(&mut root, &["CREATE USER ann"]);
    let mut ann = connect_as(&server, "ann", "").expect("ann has no password");
    let users = |connection: &mut Conn| {
        query_text(
            connection,
            "SELECT user FROM information_schema.processlist ORDER BY user",
        )
    };
    assert_eq!(users(&mut ann), ["ann"]);
    let kill = format!("KILL {}", root.connection_id());
    assert_eq!(code(&mut ann, &kill), 1095);
    assert_eq!(
        code(
            &mut ann,
            &format!("EXPLAIN FOR CONNECTION {}", root.connection_id())
        ),
        1227
    );
    run(
        &mut root,
        &["GRANT PROCESS, CONNECTION_ADMIN ON *.* TO ann"],
    );
    assert_eq!(users(&mut ann), ["ann", "root"]);
    run(&mut ann, &[&kill]);
    assert!(root.query_drop("SELECT 1").is_err(), "root was killed");
}

#[test]
fn caching_sha2_password_asks_for_the_password_where_nobody_listens() {
    let mut socket = None;
    let mut server = TestServer::start_with(EngineOptions::default(), |options, directory| {
        socket = Some(directory.path().join("sheaf.sock"));
        options.socket = socket.clone();
    });
    let socket = socket.expect("it was chosen").display().to_string();
    let mut root = server.connect();
    run(
        &mut root,
        &["CREATE USER ann IDENTIFIED WITH caching_sha2_password BY 'sesame'"],
    );
    let by_socket = |password: &str| {
        let options = server.options().user(Some("ann")).pass(Some(password));
        Conn::new(Opts::from(
            options.prefer_socket(true).socket(Some(&socket)),
        ))
    };
    assert_eq!(error_of(connect_as(&server, "ann", "sesame")).0, 3159);
    assert_eq!(error_of(by_socket("simsim")).0, 1045);
    assert_eq!(error_of(connect_as(&server, "ann", "sesame")).0, 3159);
    by_socket("sesame").expect("the password");
    // From now on its digest is known.
    connect_as(&server, "ann", "sesame").expect("the password");
    assert_eq!(error_of(connect_as(&server, "ann", "simsim")).0, 1045);
    by_socket("sesame").expect("the password");
    run(&mut root, &["ALTER USER ann IDENTIFIED BY 'open'"]);
    assert_eq!(error_of(connect_as(&server, "ann", "sesame")).0, 3159);
    assert_eq!(error_of(by_socket("sesame")).0, 1045);
    by_socket("open").expect("the new password");
    drop(root);
    server.restart();
    assert_eq!(error_of(connect_as(&server, "ann", "open")).0, 3159);
}

#[test]
fn a_user_can_become_another() {
    let (server, mut root) = shop();
    run(
        &mut root,
        &[
            "CREATE USER ann IDENTIFIED BY 'a', bob IDENTIFIED BY 'b'",
            "GRANT SELECT ON shop.orders TO ann",
            "GRANT SELECT ON shop.salaries TO bob",
        ],
    );
    let mut connection = connect_as(&server, "ann", "a").expect("the password");
    run(&mut connection, &["SELECT * FROM shop.orders WHERE id = 1"]);
    let bob = mysql::ChangeUserOpts::new()
        .with_user(Some("bob".into()))
        .with_pass(Some("b".into()))
        .with_db_name(Some("shop".into()));
    connection.change_user(bob).expect("the password");
    assert_eq!(
        code(&mut connection, "SELECT * FROM orders WHERE id = 1"),
        1142
    );
    assert_eq!(
        query_text(&mut connection, "SELECT * FROM salaries"),
        ["1\t1000"]
    );
    let wrong = mysql::ChangeUserOpts::new()
        .with_user(Some("ann".into()))
        .with_pass(Some("b".into()));
    assert!(connection.change_user(wrong).is_err());
    assert!(connection.ping().is_err(), "the connection is closed");
}

/// Proofs of any length and content, cut anywhere: refused, and nothing else.
#[test]
fn what_is_no_proof_is_refused() {
    let server = TestServer::start();
    let mut root = server.connect();
    run(
        &mut root,
        &[
            "CREATE USER native IDENTIFIED BY 'secret'",
            "CREATE USER sha2 IDENTIFIED WITH caching_sha2_password BY 'secret'",
        ],
    );
    for user in ["native", "sha2", "nobody"] {
        for length in [0, 1, 19, 20, 21, 32, 255, 4000] {
            let mut client = RawClient::dial(server.address());
            client.receive().expect("the greeting");
            client.send_response(user, CLIENT_PLUGIN_AUTH);
            let (sequence, answer) = client.receive().expect("an answer");
            assert_eq!(answer[0], 0xFE, "another method is asked for");
            client
                .send_frame(sequence + 1, &vec![b'x'; length])
                .expect("the server reads");
            let error = client.receive_error();
            let expected = if user == "sha2" && length > 0 {
                3159
            } else {
                1045
            };
            assert_eq!(error.code, expected, "{user} {length}: {}", error.message);
            client.assert_closed();
        }
    }
    server.wait_for_connections(1);
}

/// Who may create users may not become one who may do more.
#[test]
fn an_account_with_more_rights_is_left_alone() {
    let (server, mut root) = shop();
    run(
        &mut root,
        &[
            "CREATE USER porter IDENTIFIED BY 'p', clerk IDENTIFIED BY 'c', guest IDENTIFIED BY 'g', boss",
            "GRANT CREATE USER, RELOAD ON *.* TO porter",
            "GRANT SELECT ON shop.* TO porter, guest",
            "GRANT SELECT, INSERT ON shop.orders TO clerk",
            "GRANT CREATE USER, PROCESS ON *.* TO boss",
        ],
    );
    let mut porter = connect_as(&server, "porter", "p").expect("the password");
    for name in ["root@localhost", "boss", "clerk"] {
        for statement in [
            format!("ALTER USER {name} IDENTIFIED BY 'mine'"),
            format!("ALTER USER guest, {name} ACCOUNT LOCK"),
            format!("SET PASSWORD FOR {name} = 'mine'"),
            format!("RENAME USER {name} TO nobody"),
            format!("DROP USER IF EXISTS guest, {name}"),
            format!("REVOKE ALL PRIVILEGES, GRANT OPTION FROM {name}"),
        ] {
            assert_eq!(code(&mut porter, &statement), 1227, "{statement}");
        }
    }
    assert_eq!(
        refusal(&mut porter, "SET PASSWORD FOR clerk = 'mine'").1,
        "Access denied; you need the INSERT privilege(s), which 'clerk'@'%' has, for this operation"
    );
    // Clients of these accounts would be those of the new ones.
    for statement in [
        "CREATE USER root@'127.0.0.1' IDENTIFIED BY 'mine'",
        "CREATE USER IF NOT EXISTS guest, boss@localhost",
        "CREATE USER ''@'127.0.0.1'",
        "RENAME USER guest TO boss@'127.0.0.%'",
    ] {
        assert_eq!(code(&mut porter, statement), 1227, "{statement}");
    }
    run(
        &mut porter,
        &[
            "CREATE USER root@'10.0.0.7', guest@localhost",
            "RENAME USER root@'10.0.0.7' TO root@'10.0.0.8'",
            "DROP USER root@'10.0.0.8', guest@localhost",
        ],
    );
    // Nobody was locked or dropped on the way.
    connect_as(&server, "guest", "g").expect("the password");
    run(
        &mut porter,
        &[
            "SET PASSWORD FOR guest = 'other'",
            "ALTER USER guest ACCOUNT LOCK",
            "DROP USER guest",
            "CREATE USER helper",
            "DROP USER helper",
            "ALTER USER porter IDENTIFIED BY 'new'",
        ],
    );
    run(&mut root, &["DROP USER boss, clerk, porter"]);
}

/// An account of a more specific host would get the clients of one that may do more.
#[test]
fn nobody_makes_an_account_that_takes_the_place_of_a_stronger_one() {
    let server = TestServer::start();
    let mut root = server.connect();
    run(
        &mut root,
        &[
            "CREATE USER clerk",
            "GRANT CREATE USER ON *.* TO clerk",
            "CREATE USER boss",
            "GRANT ALL ON *.* TO boss",
            "CREATE USER ann",
            "CREATE USER other",
        ],
    );
    let mut clerk = connect_as(&server, "clerk", "").expect("it may connect");
    for statement in [
        "CREATE USER boss@'127.0.0.1' IDENTIFIED BY 'x'",
        "CREATE USER IF NOT EXISTS boss@localhost",
        "CREATE USER ''@localhost",
        "RENAME USER other TO boss@localhost",
    ] {
        assert_eq!(code(&mut clerk, statement), 1227, "{statement}");
    }
    assert!(connect_as(&server, "boss", "").is_ok());
    run(
        &mut clerk,
        &["CREATE USER ann@localhost", "RENAME USER other TO another"],
    );
    run(&mut root, &["CREATE USER boss@localhost"]);
}
