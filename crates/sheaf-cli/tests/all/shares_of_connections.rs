//! How many connections an account may have at a time.

use mysql::Conn;

use crate::harness::{TestServer, error_of, query_text, run};
use crate::users::{connect_as, shop};

#[test]
fn an_account_has_its_share_of_the_connections() {
    let (server, mut root) = shop();
    run(
        &mut root,
        &[
            "CREATE USER one WITH MAX_USER_CONNECTIONS 1",
            "CREATE USER many WITH MAX_QUERIES_PER_HOUR 0",
            "ALTER USER many WITH MAX_USER_CONNECTIONS 3",
            "CREATE USER other",
        ],
    );
    assert_eq!(
        query_text(&mut root, "SHOW CREATE USER one"),
        [
            "CREATE USER `one`@`%` IDENTIFIED WITH 'mysql_native_password' REQUIRE NONE \
             WITH MAX_USER_CONNECTIONS 1 PASSWORD EXPIRE DEFAULT ACCOUNT UNLOCK"
        ]
    );
    let one = connect_as(&server, "one", "").expect("the first");
    assert_eq!(
        error_of(connect_as(&server, "one", "")),
        (1226, "42000".into())
    );
    // By another name it has the same share, and the same rights.
    let mut one = one;
    run(
        &mut root,
        &[
            "GRANT CREATE ON made.* TO one",
            "RENAME USER one TO first",
            "CREATE USER one",
        ],
    );
    assert_eq!(
        error_of(connect_as(&server, "first", "")),
        (1226, "42000".into())
    );
    run(&mut one, &["CREATE DATABASE made"]);
    assert_eq!(query_text(&mut one, "SELECT CURRENT_USER()"), ["first@%"]);
    run(
        &mut root,
        &[
            "DROP USER one",
            "RENAME USER first TO one",
            "DROP DATABASE made",
        ],
    );
    assert_eq!(
        error_of(connect_as(&server, "one", "")),
        (1226, "42000".into())
    );
    drop(one);
    server.wait_for_connections(1);
    connect_as(&server, "one", "").expect("its place is free again");

    run(&mut root, &["SET GLOBAL max_user_connections = 2"]);
    let others: Vec<Conn> = (0..2)
        .map(|_| connect_as(&server, "other", "").expect("there is a place"))
        .collect();
    assert_eq!(
        error_of(connect_as(&server, "other", "")),
        (1203, "42000".into())
    );
    // An account's own number comes first, and administrators are not counted.
    let many: Vec<Conn> = (0..3)
        .map(|_| connect_as(&server, "many", "").expect("there is a place"))
        .collect();
    assert_eq!(
        error_of(connect_as(&server, "many", "")),
        (1226, "42000".into())
    );
    let roots: Vec<Conn> = (0..3).map(|_| server.connect()).collect();
    drop((others, many, roots));
    run(&mut root, &["SET GLOBAL max_user_connections = DEFAULT"]);

    // One that changes its user counts as that one.
    let mut client = connect_as(&server, "other", "").expect("there is a place");
    let change = mysql::ChangeUserOpts::new().with_user(Some("one".to_string()));
    client.change_user(change).expect("there is a place");
    assert_eq!(
        error_of(connect_as(&server, "one", "")),
        (1226, "42000".into())
    );
}

#[test]
fn connections_count_for_an_account_that_gets_another_name() {
    let server = TestServer::start();
    let mut root = server.connect();
    run(&mut root, &["CREATE USER one WITH MAX_USER_CONNECTIONS 1"]);
    let first = connect_as(&server, "one", "").expect("there is a place");
    run(&mut root, &["RENAME USER one TO two"]);
    assert_eq!(error_of(connect_as(&server, "two", "")).0, 1226);
    drop(first);
    server.wait_for_connections(1);
    assert!(connect_as(&server, "two", "").is_ok());
}
