//! Roles, as clients meet them. The answers are MySQL's.

use mysql::Conn;
use mysql::prelude::Queryable;

use crate::harness::{TestServer, code, error_of, query_text, run};
use crate::users::{connect_as, refusal};

/// A server with a table `t` and a view, roles that may read, write and delete, and a user `ann` that may do nothing.
fn roles() -> (TestServer, Conn) {
    let server = TestServer::start();
    let mut root = server.connect_to_new("shop");
    run(
        &mut root,
        &[
            "CREATE TABLE t (a INT PRIMARY KEY, b INT)",
            "INSERT INTO t VALUES (1, 2), (3, 4)",
            "CREATE ROLE reader, 'writer'@'%', cleaner, other",
            "GRANT SELECT ON t TO reader",
            "GRANT INSERT ON t TO writer",
            "GRANT DELETE ON t TO cleaner",
            "GRANT cleaner TO writer",
            "CREATE USER ann, bob",
            "GRANT reader TO ann",
            "GRANT writer TO ann WITH ADMIN OPTION",
        ],
    );
    (server, root)
}

fn current_role(connection: &mut Conn) -> String {
    query_text(connection, "SELECT CURRENT_ROLE()").remove(0)
}

const READER: &str = "`reader`@`%`";
const WRITER: &str = "`writer`@`%`";
const BOTH: &str = "`reader`@`%`,`writer`@`%`";

#[test]
fn a_session_uses_the_roles_that_it_names() {
    let (server, _root) = roles();
    let mut ann = connect_as(&server, "ann", "").expect("ann has no password");
    assert_eq!(current_role(&mut ann), "NONE");
    assert_eq!(code(&mut ann, "SELECT a FROM shop.t"), 1142);
    assert_eq!(code(&mut ann, "USE shop"), 1044);
    for (roles, current) in [
        ("reader", READER),
        ("`writer`@`%`, reader", BOTH),
        ("NONE", "NONE"),
        ("ALL", BOTH),
        ("ALL EXCEPT reader", WRITER),
        ("ALL EXCEPT reader, nosuch", WRITER),
        ("ALL EXCEPT cleaner", BOTH),
        ("DEFAULT", "NONE"),
    ] {
        run(&mut ann, &[&format!("SET ROLE {roles}")]);
        assert_eq!(current_role(&mut ann), current, "{roles}");
    }
    run(&mut ann, &["SET ROLE reader"]);
    for role in ["nosuch", "other", "cleaner", "reader, other"] {
        assert_eq!(code(&mut ann, &format!("SET ROLE {role}")), 3530, "{role}");
        assert_eq!(current_role(&mut ann), READER);
    }
    assert_eq!(
        refusal(&mut ann, "SET ROLE other").1,
        "`other`@`%` is not granted to `ann`@`%`"
    );
    // Each has the same plans, and other rights.
    for _ in 0..3 {
        run(&mut ann, &["SET ROLE reader", "USE shop"]);
        assert_eq!(query_text(&mut ann, "SELECT b FROM t WHERE a = 1"), ["2"]);
        assert_eq!(code(&mut ann, "INSERT INTO t VALUES (9, 9)"), 1142);
        run(
            &mut ann,
            &[
                "SET ROLE writer",
                "INSERT INTO t VALUES (9, 9)",
                "DELETE FROM t WHERE 1 = 0",
            ],
        );
        assert_eq!(code(&mut ann, "SELECT b FROM t WHERE a = 1"), 1142);
        run(&mut ann, &["SET ROLE ALL", "DELETE FROM t WHERE a = 9"]);
    }
    // The function is read anew wherever it stands.
    for (roles, current) in [("reader", READER), ("ALL", BOTH), ("reader", READER)] {
        run(&mut ann, &[&format!("SET ROLE {roles}")]);
        let named = "SELECT CONCAT(a, CURRENT_ROLE()) FROM t WHERE a = 1";
        assert_eq!(query_text(&mut ann, named), [format!("1{current}")]);
    }
    // A new session of the same connection has its default roles.
    ann.reset().expect("ann stays");
    assert_eq!(current_role(&mut ann), "NONE");
}

#[test]
fn a_change_of_a_role_holds_for_open_sessions() {
    let (server, mut root) = roles();
    let mut ann = connect_as(&server, "ann", "").expect("ann has no password");
    run(&mut ann, &["SET ROLE reader", "USE shop"]);
    let insert = "INSERT INTO t VALUES (9, 9) ON DUPLICATE KEY UPDATE b = 9";
    let prepared = ann.prep("SELECT b FROM t WHERE a = ?").expect("ann may");
    let read = |ann: &mut Conn| {
        let found = ann.exec_first::<i32, _, _>(&prepared, (1,));
        found.map_err(|error| error_of::<()>(Err(error)).0)
    };
    assert_eq!(read(&mut ann), Ok(Some(2)));
    assert_eq!(code(&mut ann, insert), 1142);
    run(&mut root, &["GRANT INSERT, UPDATE ON t TO reader"]);
    run(&mut ann, &[insert]);
    run(&mut root, &["REVOKE INSERT ON t FROM reader"]);
    assert_eq!(code(&mut ann, insert), 1142);
    // A role of a role.
    run(
        &mut root,
        &["GRANT INSERT ON t TO other", "GRANT other TO reader"],
    );
    run(&mut ann, &[insert]);
    run(&mut root, &["REVOKE other FROM reader"]);
    assert_eq!(code(&mut ann, insert), 1142);

    // What is revoked or dropped is still named, and brings nothing until it is there again.
    for (gone, back) in [
        (
            &["REVOKE reader FROM ann"][..],
            &["GRANT reader TO ann"][..],
        ),
        (
            &["DROP ROLE reader"],
            &[
                "CREATE ROLE reader",
                "GRANT SELECT ON t TO reader",
                "GRANT reader TO ann",
            ],
        ),
    ] {
        run(&mut root, gone);
        assert_eq!(read(&mut ann), Err(1142));
        assert_eq!(code(&mut ann, "SELECT COUNT(*) FROM t"), 1142);
        assert_eq!(current_role(&mut ann), READER);
        run(&mut root, back);
        assert_eq!(read(&mut ann), Ok(Some(2)));
    }
}

#[test]
fn default_roles_are_used_from_the_start() {
    let (mut server, mut root) = roles();
    let start = |server: &TestServer| {
        let mut ann = connect_as(server, "ann", "").expect("ann has no password");
        current_role(&mut ann)
    };
    for (statement, current) in [
        ("SET DEFAULT ROLE writer TO ann", WRITER),
        ("SET DEFAULT ROLE ALL TO ann, bob", BOTH),
        ("ALTER USER ann DEFAULT ROLE reader", READER),
        ("ALTER USER ann DEFAULT ROLE NONE", "NONE"),
        ("ALTER USER ann DEFAULT ROLE ALL", BOTH),
        ("REVOKE writer FROM ann", READER),
        ("GRANT writer TO ann", READER),
        ("SET DEFAULT ROLE NONE TO ann", "NONE"),
        ("SET GLOBAL activate_all_roles_on_login = ON", BOTH),
        ("SET GLOBAL activate_all_roles_on_login = OFF", "NONE"),
        ("SET DEFAULT ROLE reader, writer TO ann", BOTH),
    ] {
        run(&mut root, &[statement]);
        assert_eq!(start(&server), current, "{statement}");
    }
    let created = query_text(&mut root, "SHOW CREATE USER ann");
    assert!(
        created[0].contains(&format!(" DEFAULT ROLE {BOTH} REQUIRE NONE")),
        "{created:?}"
    );
    drop(root);
    server.restart();
    assert_eq!(start(&server), BOTH);
    let mut root = server.connect();
    for (statement, expected) in [
        ("SET DEFAULT ROLE other TO ann", 3530),
        ("SET DEFAULT ROLE nosuch TO ann", 3530),
        ("SET DEFAULT ROLE reader TO nosuch", 3530),
        ("SET DEFAULT ROLE ALL TO nosuch", 3523),
        ("ALTER USER ann DEFAULT ROLE other", 3530),
        ("CREATE USER cid DEFAULT ROLE nosuch", 3162),
        ("SET GLOBAL mandatory_roles = 'reader'", 1235),
    ] {
        assert_eq!(code(&mut root, statement), expected, "{statement}");
    }
    // A user that is made has its default roles granted.
    run(
        &mut root,
        &["CREATE USER cid, dan DEFAULT ROLE reader, writer"],
    );
    assert_eq!(
        query_text(&mut root, "SHOW GRANTS FOR dan"),
        [
            "GRANT USAGE ON *.* TO `dan`@`%`".to_string(),
            format!("GRANT {BOTH} TO `dan`@`%`")
        ]
    );
    // One chooses for oneself, but not for others.
    let mut cid = connect_as(&server, "cid", "").expect("cid has no password");
    run(
        &mut cid,
        &[
            "SET DEFAULT ROLE reader TO cid",
            "ALTER USER CURRENT_USER() DEFAULT ROLE writer",
        ],
    );
    assert_eq!(code(&mut cid, "SET DEFAULT ROLE NONE TO dan"), 1227);
}

#[test]
fn roles_come_and_go() {
    let (server, mut root) = roles();
    for (statement, expected) in [
        ("CREATE ROLE reader", 1396),
        ("CREATE ROLE ann", 1396),
        ("CREATE ROLE ''", 1396),
        ("CREATE ROLE new, new", 1396),
        ("CREATE ROLE none", 1064),
        ("DROP ROLE nosuch", 1396),
        ("DROP ROLE reader, nosuch", 1396),
        ("RENAME USER reader TO readers", 3532),
        ("GRANT nosuch TO ann", 3523),
        ("GRANT reader TO nosuch", 3523),
        ("GRANT reader, nosuch TO bob", 3523),
        ("REVOKE nosuch FROM ann", 3523),
        ("REVOKE reader FROM nosuch", 3523),
        ("GRANT reader TO reader", 4027),
        ("GRANT writer TO cleaner", 4027),
        ("GRANT ROLE_ADMIN ON *.* TO ann", 1235),
    ] {
        assert_eq!(code(&mut root, statement), expected, "{statement}");
    }
    assert_eq!(
        refusal(&mut root, "GRANT ann TO cleaner").1,
        "User account `cleaner`@`%` is directly or indirectly granted to the role `ann`@`%`. \
         The GRANT would create a loop"
    );
    let warned = |root: &mut Conn, statement: &str, warning: &str| {
        run(root, &[statement]);
        assert_eq!(query_text(root, "SHOW WARNINGS"), [warning], "{statement}");
    };
    for (statement, warning) in [
        (
            "CREATE ROLE IF NOT EXISTS reader, new",
            "Note\t3163\tAuthorization ID 'reader'@'%' already exists.",
        ),
        (
            "DROP ROLE IF EXISTS nosuch, new",
            "Note\t3162\tAuthorization ID 'nosuch'@'%' does not exist.",
        ),
        (
            "REVOKE IF EXISTS nosuch FROM ann",
            "Warning\t3523\tUnknown authorization ID `nosuch`@`%`",
        ),
        (
            "REVOKE reader FROM nosuch IGNORE UNKNOWN USER",
            "Warning\t3162\tAuthorization ID nosuch does not exist.",
        ),
    ] {
        warned(&mut root, statement, warning);
    }
    // What is not granted can be revoked.
    run(
        &mut root,
        &["REVOKE other FROM ann", "REVOKE other FROM ann"],
    );
    assert_eq!(query_text(&mut root, "SHOW WARNINGS"), [""; 0]);
    // No client is a role.
    assert!(connect_as(&server, "reader", "").is_err());
    // An account takes its roles with it when it is renamed, and no account keeps one that is dropped.
    run(&mut root, &["RENAME USER ann TO anna"]);
    let grants = |root: &mut Conn, of: &str| {
        let mut rows = query_text(root, &format!("SHOW GRANTS FOR {of}"));
        rows.retain(|row| !row.contains(" ON "));
        rows
    };
    assert_eq!(
        grants(&mut root, "anna"),
        [
            "GRANT `reader`@`%` TO `anna`@`%`",
            "GRANT `writer`@`%` TO `anna`@`%` WITH ADMIN OPTION"
        ]
    );
    // To grant a role again takes nothing away.
    run(&mut root, &["GRANT writer TO anna", "DROP USER reader"]);
    assert_eq!(
        grants(&mut root, "anna"),
        ["GRANT `writer`@`%` TO `anna`@`%` WITH ADMIN OPTION"]
    );
    run(&mut root, &["DROP ROLE cleaner"]);
    assert_eq!(grants(&mut root, "writer"), [""; 0]);
    // Privileges are not roles.
    run(
        &mut root,
        &["REVOKE ALL PRIVILEGES, GRANT OPTION FROM anna"],
    );
    assert_eq!(
        grants(&mut root, "anna"),
        ["GRANT `writer`@`%` TO `anna`@`%` WITH ADMIN OPTION"]
    );
}

#[test]
fn roles_are_granted_by_those_who_may() {
    let (server, mut root) = roles();
    run(
        &mut root,
        &[
            "CREATE USER maker",
            "GRANT CREATE USER ON *.* TO maker",
            "CREATE USER boss",
            "GRANT CREATE USER, SUPER ON *.* TO boss",
            "GRANT SELECT ON shop.t TO boss",
        ],
    );
    let mut ann = connect_as(&server, "ann", "").expect("ann has no password");
    run(
        &mut ann,
        &[
            "GRANT writer TO bob",
            "GRANT writer TO bob WITH ADMIN OPTION",
            "REVOKE writer FROM bob",
        ],
    );
    for statement in [
        "GRANT reader TO bob",
        "GRANT writer, reader TO bob",
        "GRANT cleaner TO bob",
        "REVOKE reader FROM ann",
        "CREATE ROLE more",
        "DROP ROLE reader",
        "CREATE USER cid DEFAULT ROLE reader",
    ] {
        assert_eq!(code(&mut ann, statement), 1227, "{statement}");
    }
    assert_eq!(code(&mut ann, "SHOW GRANTS FOR reader"), 1044);
    // An active role may have the admin option.
    run(
        &mut root,
        &[
            "GRANT other TO reader WITH ADMIN OPTION",
            "DROP USER bob",
            "CREATE USER bob",
        ],
    );
    assert_eq!(code(&mut ann, "GRANT other TO bob"), 1227);
    run(&mut ann, &["SET ROLE reader", "GRANT other TO bob"]);

    let mut maker = connect_as(&server, "maker", "").expect("maker has no password");
    run(
        &mut maker,
        &["CREATE ROLE idle", "DROP ROLE idle", "CREATE ROLE idle"],
    );
    for statement in [
        "GRANT idle TO bob",
        "GRANT reader TO maker",
        "CREATE USER cid DEFAULT ROLE reader",
        // They may do what maker may not, by themselves or by their roles.
        "DROP ROLE reader",
        "DROP ROLE writer",
        "ALTER USER ann IDENTIFIED BY 'x'",
        "SET DEFAULT ROLE NONE TO ann",
    ] {
        assert_eq!(code(&mut maker, statement), 1227, "{statement}");
    }
    // SUPER grants what its user has anyway.
    let mut boss = connect_as(&server, "boss", "").expect("boss has no password");
    run(&mut boss, &["GRANT idle TO bob", "REVOKE idle FROM bob"]);
    for statement in [
        "GRANT root@localhost TO boss",
        "GRANT writer TO boss",
        "GRANT cleaner TO boss",
    ] {
        assert_eq!(code(&mut boss, statement), 1227, "{statement}");
    }
    run(&mut root, &["REVOKE other FROM reader"]);
    run(&mut boss, &["GRANT reader TO boss"]);
}

#[test]
fn grants_are_shown_with_roles() {
    let (server, mut root) = roles();
    run(
        &mut root,
        &[
            "GRANT SELECT (a), UPDATE (b) ON t TO writer",
            "GRANT PROCESS ON *.* TO reader",
            "GRANT CREATE ON `sh%`.* TO ann",
            "GRANT INDEX ON `sh%`.* TO reader",
            "GRANT SELECT (b) ON t TO ann",
        ],
    );
    let usage = "GRANT USAGE ON *.* TO `ann`@`%`";
    let process = "GRANT PROCESS ON *.* TO `ann`@`%`";
    let create = "GRANT CREATE ON `sh%`.* TO `ann`@`%`";
    let create_index = "GRANT CREATE, INDEX ON `sh%`.* TO `ann`@`%`";
    let column = "GRANT SELECT (`b`) ON `shop`.`t` TO `ann`@`%`";
    let of_reader = "GRANT SELECT, SELECT (`b`) ON `shop`.`t` TO `ann`@`%`";
    let of_writer =
        "GRANT SELECT (`a`, `b`), INSERT, UPDATE (`b`), DELETE ON `shop`.`t` TO `ann`@`%`";
    let roles = [
        "GRANT `reader`@`%` TO `ann`@`%`",
        "GRANT `writer`@`%` TO `ann`@`%` WITH ADMIN OPTION",
    ];
    let plain = [&[usage, create, column], &roles[..]].concat();
    let with_reader = [&[process, create_index, of_reader], &roles[..]].concat();
    let with_writer = [&[usage, create, of_writer], &roles[..]].concat();
    assert_eq!(query_text(&mut root, "SHOW GRANTS FOR ann"), plain);
    let shown = query_text(&mut root, "SHOW GRANTS FOR ann USING reader");
    assert_eq!(shown, with_reader);
    let shown = query_text(&mut root, "SHOW GRANTS FOR ann USING writer, writer");
    assert_eq!(shown, with_writer);
    for role in ["other", "nosuch", "cleaner"] {
        let statement = format!("SHOW GRANTS FOR ann USING {role}");
        assert_eq!(code(&mut root, &statement), 3530, "{role}");
    }
    let mut ann = connect_as(&server, "ann", "").expect("ann has no password");
    assert_eq!(query_text(&mut ann, "SHOW GRANTS"), plain);
    run(&mut ann, &["SET ROLE writer"]);
    assert_eq!(query_text(&mut ann, "SHOW GRANTS"), with_writer);
    let own = "SHOW GRANTS FOR CURRENT_USER()";
    assert_eq!(query_text(&mut ann, own), with_writer);
    assert_eq!(query_text(&mut ann, "SHOW GRANTS FOR ann"), plain);
    run(
        &mut ann,
        &["USE shop", "SELECT a, b FROM t", "UPDATE t SET b = 7"],
    );

    // Tables of the standard.
    let of = |connection: &mut Conn, table: &str, columns: &str, order: &str| {
        let query = format!("SELECT {columns} FROM information_schema.{table} ORDER BY {order}");
        query_text(connection, &query)
    };
    run(&mut ann, &["SET DEFAULT ROLE reader TO ann"]);
    assert_eq!(
        of(&mut ann, "applicable_roles", "*", "role_name"),
        [
            "ann\t%\twriter\t%\tcleaner\t%\tNO\tNO\tNO",
            "ann\t%\tann\t%\treader\t%\tNO\tYES\tNO",
            "ann\t%\tann\t%\twriter\t%\tYES\tNO\tNO",
        ]
    );
    assert_eq!(
        of(
            &mut ann,
            "administrable_role_authorizations",
            "role_name",
            "1"
        ),
        ["writer"]
    );
    assert_eq!(
        of(&mut ann, "enabled_roles", "*", "1"),
        ["writer\t%\tNO\tNO"]
    );
    assert_eq!(
        of(&mut ann, "role_table_grants", "*", "grantee"),
        [
            "NULL\tNULL\tcleaner\t%\tdef\tshop\tt\tDelete\tNO",
            "NULL\tNULL\twriter\t%\tdef\tshop\tt\tInsert\tNO",
        ]
    );
    assert_eq!(
        of(&mut ann, "role_column_grants", "*", "column_name"),
        [
            "NULL\tNULL\twriter\t%\tdef\tshop\tt\ta\tSelect\tNO",
            "NULL\tNULL\twriter\t%\tdef\tshop\tt\tb\tUpdate\tNO",
        ]
    );
    for table in ["applicable_roles", "enabled_roles", "role_table_grants"] {
        assert_eq!(of(&mut root, table, "*", "1"), [""; 0], "{table}");
    }
}

#[test]
fn a_view_has_the_default_roles_of_its_maker() {
    let (server, mut root) = roles();
    run(
        &mut root,
        &[
            "CREATE DEFINER = ann VIEW v AS SELECT a FROM t",
            "GRANT SELECT ON v TO bob",
        ],
    );
    let mut bob = connect_as(&server, "bob", "").expect("bob has no password");
    run(&mut bob, &["USE shop"]);
    assert_eq!(code(&mut bob, "SELECT COUNT(*) FROM v"), 1356);
    run(&mut root, &["SET DEFAULT ROLE reader TO ann"]);
    assert_eq!(query_text(&mut bob, "SELECT COUNT(*) FROM v"), ["2"]);
    run(&mut root, &["SET DEFAULT ROLE NONE TO ann"]);
    assert_eq!(code(&mut bob, "SELECT COUNT(*) FROM v"), 1356);
}

#[test]
fn an_own_view_has_the_default_roles_too() {
    let (server, mut root) = roles();
    run(
        &mut root,
        &[
            "CREATE DEFINER = ann VIEW v AS SELECT a FROM t",
            "GRANT SELECT ON v TO ann",
        ],
    );
    let mut ann = connect_as(&server, "ann", "").expect("ann has no password");
    run(&mut ann, &["SET ROLE reader", "USE shop"]);
    assert_eq!(query_text(&mut ann, "SELECT COUNT(*) FROM t"), ["2"]);
    assert_eq!(code(&mut ann, "SELECT COUNT(*) FROM v"), 1356);
    run(&mut root, &["SET DEFAULT ROLE reader TO ann"]);
    run(&mut ann, &["SET ROLE NONE"]);
    assert_eq!(query_text(&mut ann, "SELECT COUNT(*) FROM v"), ["2"]);
}

#[test]
fn a_role_granted_again_keeps_its_admin_option() {
    let (server, mut root) = roles();
    run(&mut root, &["GRANT writer TO ann", "GRANT reader TO ann"]);
    let mut ann = connect_as(&server, "ann", "").expect("ann has no password");
    run(&mut ann, &["GRANT writer TO bob"]);
    assert_eq!(code(&mut ann, "GRANT reader TO bob"), 1227);
}

#[test]
fn roles_are_made_and_dropped_with_privileges_of_their_own() {
    let (server, mut root) = roles();
    run(
        &mut root,
        &[
            "GRANT CREATE ROLE ON *.* TO ann",
            "GRANT DROP ROLE ON *.* TO bob",
        ],
    );
    assert_eq!(
        query_text(&mut root, "SHOW GRANTS FOR ann")[0],
        "GRANT CREATE ROLE ON *.* TO `ann`@`%`"
    );
    let of_roles = "SELECT Create_role_priv, Drop_role_priv FROM mysql.user \
                    WHERE User IN ('ann', 'bob') ORDER BY User";
    assert_eq!(query_text(&mut root, of_roles), ["Y\tN", "N\tY"]);
    let mut ann = connect_as(&server, "ann", "").expect("ann has no password");
    let mut bob = connect_as(&server, "bob", "").expect("bob has no password");
    run(&mut ann, &["CREATE ROLE made"]);
    for statement in ["DROP ROLE made", "CREATE USER cid", "DROP USER made"] {
        assert_eq!(code(&mut ann, statement), 1227, "{statement}");
    }
    run(&mut bob, &["DROP ROLE made"]);
    for statement in ["CREATE ROLE made", "DROP ROLE ann", "DROP USER reader"] {
        assert_eq!(code(&mut bob, statement), 1227, "{statement}");
    }
    assert_eq!(code(&mut root, "GRANT CREATE ROLE ON shop.* TO ann"), 1221);
}
