//! The console as an HTTP client sees it: who is let in, what is refused, and when a login ends.
//!
//! The page itself is tested in a browser, see `console_page.rs`.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

use mysql::Conn;
use sheaf_server::ConsoleServer;

use crate::harness::{TestServer, query_text, run, wait_until};

/// What came back.
#[derive(Debug)]
struct Answer {
    status: u16,
    head: String,
    body: String,
}

impl Answer {
    fn read(stream: &mut TcpStream) -> Answer {
        let mut text = String::new();
        stream.read_to_string(&mut text).expect("an answer");
        let (head, body) = text.split_once("\r\n\r\n").expect("a head");
        let status = head.split(' ').nth(1).expect("a status");
        Answer {
            status: status.parse().expect("a number"),
            head: head.to_string(),
            body: body.to_string(),
        }
    }

    /// A member of the object that came, if it is a text or a number.
    fn member(&self, name: &str) -> &str {
        let start = format!("\"{name}\":");
        let (_, rest) = self.body.split_once(&start).expect("a member");
        let rest = rest.trim_start_matches('"');
        rest.split(['"', ',', '}']).next().expect("its value")
    }
}

/// A client that does what browsers do.
#[derive(Clone)]
struct Browser {
    address: SocketAddr,
    cookie: String,
    token: String,
    editor: String,
}

impl Browser {
    fn new(console: &ConsoleServer) -> Browser {
        Browser {
            address: console.address(),
            cookie: String::new(),
            token: String::new(),
            editor: String::new(),
        }
    }

    /// Logged in.
    fn of(console: &ConsoleServer, user: &str, password: &str) -> Browser {
        let mut browser = Browser::new(console);
        let answer = browser.log_in(user, password);
        assert_eq!(answer.status, 200, "{answer:?}");
        browser.token = answer.member("token").to_string();
        browser.editor = answer.member("editor").to_string();
        let (_, cookie) = answer.head.split_once("Set-Cookie: ").expect("a cookie");
        let (cookie, attributes) = cookie.split_once("; ").expect("its attributes");
        assert!(attributes.starts_with("Path=/; HttpOnly; SameSite=Strict"));
        browser.cookie = cookie.to_string();
        browser
    }

    fn begin(&self, request: &str, headers: &str, body: &str) -> TcpStream {
        let mut stream = TcpStream::connect(self.address).expect("a connection");
        let (length, cookie) = (body.len(), &self.cookie);
        let text = format!(
            "{request} HTTP/1.1\r\nContent-Length: {length}\r\nCookie: a=b; {cookie}\r\n{headers}\r\n{body}"
        );
        stream.write_all(text.as_bytes()).expect("a request");
        stream
    }

    /// With the headers that the page sends.
    fn post(&self, path: &str, body: &str) -> TcpStream {
        let (host, token) = (self.address, &self.token);
        let headers = format!(
            "Host: {host}\r\nContent-Type: application/json\r\nX-CSRF-Token: {token}\r\nSec-Fetch-Site: same-origin\r\n"
        );
        self.begin(&format!("POST {path}"), &headers, body)
    }

    fn send(&self, request: &str, headers: &str, body: &str) -> Answer {
        Answer::read(&mut self.begin(request, headers, body))
    }

    fn get(&self, path: &str) -> Answer {
        let (port, token) = (self.address.port(), &self.token);
        let headers = format!("Host: localhost:{port}\r\nX-CSRF-Token: {token}\r\n");
        self.send(&format!("GET {path}"), &headers, "")
    }

    fn log_in(&self, user: &str, password: &str) -> Answer {
        let body = format!("{{\"user\": \"{user}\", \"password\": \"{password}\"}}");
        Answer::read(&mut self.post("/api/login", &body))
    }

    fn begin_statement(&self, desk: &str, sql: &str) -> TcpStream {
        let sql = sql.replace('\\', "\\\\").replace('"', "\\\"");
        let body = format!("{{\"desk\": \"{desk}\", \"sql\": \"{sql}\"}}");
        self.post("/api/statement", &body)
    }

    fn statement(&self, desk: &str, sql: &str) -> Answer {
        Answer::read(&mut self.begin_statement(desk, sql))
    }

    fn editor(&self, sql: &str) -> Answer {
        self.statement("editor", sql)
    }

    /// A request that is to have one statement, as those of *Explain*.
    fn single(&self, sql: &str) -> Answer {
        let body = format!("{{\"desk\": \"editor\", \"sql\": \"{sql}\", \"single\": true}}");
        Answer::read(&mut self.post("/api/statement", &body))
    }

    fn is_logged_in(&self) -> bool {
        self.get("/api/login").status == 200
    }
}

/// A server with a table, its console, and a connection of root.
fn server() -> (TestServer, ConsoleServer, Conn) {
    let server = TestServer::start();
    let mut root = server.connect_to_new("shop");
    run(
        &mut root,
        &[
            "CREATE TABLE t (id INT PRIMARY KEY, name VARCHAR(20), data VARBINARY(4))",
            "INSERT INTO t VALUES (1, 'a\"b', x'FF00'), (2, NULL, 'x')",
            "CREATE TABLE secret (id INT PRIMARY KEY)",
            "CREATE USER app IDENTIFIED BY 'geheim'",
            "GRANT SELECT ON shop.t TO app",
        ],
    );
    let console = ConsoleServer::start(server.engine(), ([127, 0, 0, 1], 0).into());
    (server, console.expect("a free port"), root)
}

#[test]
fn statements_run_in_sessions_of_the_account() {
    let (_server, console, _root) = server();
    let browser = Browser::of(&console, "app", "geheim");
    assert_eq!(browser.get("/api/login").member("user"), "app");
    let answer = browser.editor("SELECT * FROM shop.t ORDER BY id");
    assert!(
        answer.body.starts_with(
            "{\"results\":[{\"columns\":[{\"name\":\"id\",\"number\":true},{\"name\":\"name\",\"number\":false},\
             {\"name\":\"data\",\"number\":false}],\"rows\":[[\"1\",\"a\\\"b\",\"0xFF00\"],[\"2\",null,\"x\"]],\
             \"cut\":false,\"warnings\":0}],\"cut\":false,\"error\":null,"
        ),
        "{answer:?}"
    );
    // The session of the editor stays, the one of the watcher is another.
    browser.editor("SET @a = 7; USE shop");
    let answer = browser.editor("SELECT @a; SELECT DATABASE()");
    assert!(answer.body.contains("[[\"7\"]]"), "{answer:?}");
    assert!(answer.body.contains("[[\"shop\"]]"), "{answer:?}");
    assert_eq!(answer.member("database"), "shop");
    let answer = browser.statement("watcher", "SELECT @a");
    assert!(answer.body.contains("[[null]]"), "{answer:?}");
    // What came before an error is shown, too.
    let answer = browser.editor("SELECT 1; SELECT * FROM secret; SELECT 2");
    assert!(answer.body.contains("[[\"1\"]]"), "{answer:?}");
    assert!(!answer.body.contains("[[\"2\"]]"), "{answer:?}");
    assert_eq!(answer.member("code"), "1142");
    assert_eq!(browser.editor("SELECT FROM").member("code"), "1064");
    assert_eq!(browser.editor("KILL 999999").member("code"), "1094");
    let long = browser.editor(
        "WITH RECURSIVE r (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM r WHERE i < 1000) \
         SELECT r.i FROM r, (SELECT 1 UNION ALL SELECT 2) s",
    );
    assert!(long.body.contains("\"cut\":true"), "rows are left out");
}

#[test]
fn what_stands_behind_a_semicolon_does_not_run() {
    let (_server, console, mut root) = server();
    let browser = Browser::of(&console, "root", "");
    let update = "UPDATE shop.t SET name = 'changed' WHERE id = 1";
    let several = format!("EXPLAIN FORMAT=TREE SELECT * FROM shop.t; {update}");
    for answer in [
        browser.single(&several),
        browser.single(&several.replace("EXPLAIN", "EXPLAIN ANALYZE")),
        browser.single(&format!("SELECT 1; {update}")),
        browser.single(&format!("SELECT 1 /*! ; {update} */")),
        browser.statement("watcher", &several),
    ] {
        assert_eq!(answer.member("code"), "1064", "{answer:?}");
        assert!(answer.body.starts_with("{\"results\":[]"), "{answer:?}");
    }
    let name = "SELECT name FROM shop.t WHERE id = 1";
    assert_eq!(query_text(&mut root, name), ["a\"b"]);
    let answer = browser.single("EXPLAIN FORMAT=TREE SELECT * FROM shop.t;");
    assert_eq!(answer.member("error"), "null");
    // The next request may have several again.
    assert_eq!(browser.editor("SELECT 1; SELECT 2").member("error"), "null");
}

#[test]
fn a_literal_is_no_operator_of_a_plan() {
    let (_server, console, _root) = server();
    let browser = Browser::of(&console, "root", "");
    let sql =
        r"EXPLAIN FORMAT=TREE SELECT * FROM shop.t WHERE name LIKE '%x\n-> Table scan on forged'";
    let answer = browser.editor(sql);
    // Behind the x stands a backslash in the text, not a newline.
    assert!(
        answer.body.contains(r"x\\n-> Table scan on forged"),
        "{answer:?}"
    );
}

#[test]
fn settings_of_all_sessions_do_not_change_the_watcher() {
    let (_server, console, mut root) = server();
    run(
        &mut root,
        &[
            "SET GLOBAL autocommit = 0",
            "SET GLOBAL sql_select_limit = 1",
        ],
    );
    let browser = Browser::of(&console, "root", "");
    let answer = browser.statement("watcher", "SELECT id FROM shop.t ORDER BY id");
    assert!(answer.body.contains("[[\"1\"],[\"2\"]]"), "{answer:?}");
    assert_eq!(answer.member("transaction"), "false");
    assert_eq!(browser.get("/api/login").member("transaction"), "false");
    let answer = browser.editor("UPDATE shop.t SET name = 'x'");
    assert_eq!(answer.member("transaction"), "true");
    // The page knows it when it is loaded again.
    assert_eq!(browser.get("/api/login").member("transaction"), "true");
    browser.editor("ROLLBACK");
    assert_eq!(browser.get("/api/login").member("transaction"), "false");
}

#[test]
fn privileges_are_those_of_the_account() {
    let (_server, console, mut root) = server();
    let browser = Browser::of(&console, "app", "geheim");
    let list = "SELECT DISTINCT USER FROM information_schema.PROCESSLIST";
    let answer = browser.statement("watcher", list);
    assert!(answer.body.contains("\"rows\":[[\"app\"]]"), "{answer:?}");
    let id = query_text(&mut root, "SELECT CONNECTION_ID()");
    let answer = browser.editor(&format!("KILL {}", id[0]));
    assert_eq!(answer.member("code"), "1095");
    let answer = browser.editor("SELECT * FROM performance_schema.threads");
    assert_eq!(answer.member("code"), "1142");
    // What is granted meanwhile holds at once.
    run(&mut root, &["GRANT SELECT ON shop.secret TO app"]);
    let answer = browser.editor("SELECT * FROM shop.secret");
    assert_eq!(answer.member("error"), "null");
    run(&mut root, &["REVOKE SELECT ON shop.secret FROM app"]);
    let answer = browser.editor("SELECT * FROM shop.secret");
    assert_eq!(answer.member("code"), "1142");
}

#[test]
fn only_the_page_is_answered() {
    let (_server, console, _root) = server();
    let browser = Browser::of(&console, "root", "");
    let own = format!("Host: {}\r\n", console.address());
    let typed = "Content-Type: application/json\r\n";
    let token = format!("X-CSRF-Token: {}\r\n", browser.token);
    let body = "{\"desk\": \"editor\", \"sql\": \"SELECT 1\"}";
    let post = |headers: &str| {
        let answer = browser.send("POST /api/statement", headers, body);
        answer.status
    };
    let right = format!("{own}{typed}{token}");
    assert_eq!(post(&right), 200);
    // Names that lead here are not its own (DNS rebinding).
    for path in ["/", "/metrics", "/health", "/api/login"] {
        for host in ["Host: evil.example\r\n", "Host: 10.0.0.1\r\n", ""] {
            let answer = browser.send(&format!("GET {path}"), host, "");
            assert_eq!(answer.status, 421, "{path} {host}");
        }
    }
    assert_eq!(post(&format!("Host: evil.example\r\n{typed}{token}")), 421);
    assert_eq!(post(&format!("{own}{typed}")), 403);
    assert_eq!(post(&format!("{own}{typed}X-CSRF-Token: x\r\n")), 403);
    assert_eq!(post(&format!("{own}{token}")), 415);
    assert_eq!(
        post(&format!("{own}Content-Type: text/plain\r\n{token}")),
        415
    );
    assert_eq!(post(&format!("{right}Sec-Fetch-Site: cross-site\r\n")), 403);
    assert_eq!(post(&format!("{right}Sec-Fetch-Site: same-site\r\n")), 403);
    assert_eq!(
        post(&format!("{right}Origin: http://evil.example\r\n")),
        403
    );
    assert_eq!(post(&format!("{right}Origin: null\r\n")), 403);
    let origin = format!("{right}Origin: http://{}\r\n", console.address());
    assert_eq!(post(&origin), 200);
    // Without the cookie the token is nothing, and the other way round.
    let stranger = Browser::new(&console);
    let answer = stranger.send("POST /api/statement", &right, body);
    assert_eq!(answer.status, 401);
    assert_eq!(stranger.get("/api/login").status, 401);
    let mut liar = browser.clone();
    liar.cookie.push('0');
    assert!(!liar.is_logged_in());
    assert!(browser.is_logged_in());
    // The cookie does not lead to the token.
    assert_eq!(browser.send("GET /api/login", &own, "").status, 403);
    assert!(!browser.get("/api/login").body.contains(&browser.token));
    // Browsers keep it apart.
    let page = browser.get("/");
    assert_eq!(page.status, 200);
    for wanted in [
        "Content-Security-Policy: default-src 'none'; script-src 'self'; ",
        "frame-ancestors 'none'",
        "X-Content-Type-Options: nosniff",
        "Cache-Control: no-store",
    ] {
        assert!(page.head.contains(wanted), "{wanted}");
    }
    assert_eq!(browser.get("/console/main.js").status, 200);
    assert_eq!(browser.get("/console/../Cargo.toml").status, 404);
    assert_eq!(browser.send("POST /", &right, "{}").status, 405);
    assert!(browser.get("/metrics").body.ends_with("# EOF\n"));
    assert!(browser.get("/ready").body.ends_with("ready\n"));
}

#[test]
fn passwords_are_asked_for_and_not_often() {
    let (_server, console, mut root) = server();
    run(
        &mut root,
        &[
            "CREATE USER sha IDENTIFIED WITH caching_sha2_password BY 'lang'",
            "CREATE USER closed IDENTIFIED BY 'x' ACCOUNT LOCK",
            "CREATE USER tls IDENTIFIED BY 'x' REQUIRE SSL",
            "CREATE USER elsewhere@'10.0.0.1' IDENTIFIED BY 'x'",
            "CREATE ROLE reader",
        ],
    );
    let browser = Browser::new(&console);
    assert_eq!(browser.log_in("sha", "lang").status, 200);
    for (user, password, code) in [
        ("sha", "kurz", "1045"),
        ("sha", "", "1045"),
        ("app", "Geheim", "1045"),
        ("root", "x", "1045"),
        ("nobody", "", "1045"),
        ("closed", "x", "3118"),
        ("tls", "x", "1045"),
        ("elsewhere", "x", "1045"),
        ("reader", "", "3118"),
    ] {
        let answer = browser.log_in(user, password);
        assert_eq!(answer.status, 401, "{user}");
        assert_eq!(answer.member("code"), code, "{user}");
        assert!(!answer.head.contains("Set-Cookie"), "{user}");
    }
    // Each attempt that is let through makes the wait for the next one longer.
    let answers = std::iter::repeat_with(|| browser.log_in("app", "falsch"));
    let refused = answers.take(16).find(|answer| answer.status == 429);
    let refused = refused.expect("an attempt that has to wait");
    assert!(refused.head.contains("Retry-After: "), "{refused:?}");
    assert_eq!(browser.log_in("root", "").status, 200);
    let wrong = Answer::read(&mut browser.post("/api/login", "[]"));
    assert_eq!(wrong.status, 400);
    let name = "ä".repeat(32);
    assert_eq!(browser.log_in(&name, "").status, 401);
    assert_eq!(browser.log_in(&format!("{name}x"), "").status, 400);
    assert_eq!(browser.log_in("app", &"x".repeat(4096)).status, 413);
}

#[test]
fn a_login_ends_with_its_account_and_its_sessions() {
    let (_server, console, mut root) = server();
    let app_sessions = "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE USER = 'app'";
    for end in [
        "ALTER USER app IDENTIFIED BY 'geheim2'",
        "ALTER USER app ACCOUNT LOCK",
        "ALTER USER app REQUIRE SSL",
        "RENAME USER app TO other",
        "DROP USER app",
    ] {
        run(
            &mut root,
            &[
                "DROP USER IF EXISTS app, other",
                "CREATE USER app IDENTIFIED BY 'geheim'",
            ],
        );
        let browser = Browser::of(&console, "app", "geheim");
        run(&mut root, &[end]);
        assert_eq!(browser.editor("SELECT 1").status, 401, "{end}");
        wait_until("its sessions have ended", || {
            query_text(&mut root, app_sessions) == ["0"]
        });
    }
    let browser = Browser::of(&console, "root", "");
    run(&mut root, &[&format!("KILL {}", browser.editor)]);
    assert!(!browser.is_logged_in());
    let browser = Browser::of(&console, "root", "");
    assert_eq!(browser.editor("COMMIT RELEASE").status, 200);
    assert!(!browser.is_logged_in());
    let browser = Browser::of(&console, "root", "");
    let answer = Answer::read(&mut browser.post("/api/logout", "{}"));
    assert_eq!(answer.status, 200);
    assert!(answer.head.contains("Max-Age=0"), "{answer:?}");
    assert!(!browser.is_logged_in());
}

#[test]
fn statements_can_be_stopped() {
    let (_server, console, mut root) = server();
    let browser = Browser::of(&console, "app", "geheim");
    let running = format!(
        "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE ID = {} AND COMMAND = 'Query'",
        browser.editor
    );
    let runs = |root: &mut Conn| query_text(root, &running) == ["1"];
    let mut waiting = browser.begin_statement("editor", "SELECT SLEEP(1000) FROM shop.t");
    wait_until("it runs", || runs(&mut root));
    assert_eq!(browser.editor("SELECT 1").status, 409);
    let kill = format!("KILL QUERY {}", browser.editor);
    let answer = browser.statement("watcher", &kill);
    assert_eq!(answer.member("error"), "null");
    assert_eq!(Answer::read(&mut waiting).status, 200);
    assert_eq!(browser.editor("SELECT 1").member("error"), "null");
    // A client that goes away does not leave it behind.
    let waiting = browser.begin_statement("editor", "SELECT SLEEP(1000) FROM shop.t");
    wait_until("it runs", || runs(&mut root));
    drop(waiting);
    wait_until("it has ended", || browser.editor("SELECT 1").status == 200);
    assert_eq!(browser.editor("SELECT 1").member("error"), "null");
    // The server ends with what runs.
    let mut waiting = browser.begin_statement("editor", "SELECT SLEEP(1000) FROM shop.t");
    wait_until("it runs", || runs(&mut root));
    drop(console);
    let mut rest = Vec::new();
    // An answer or none.
    let _ = waiting.read_to_end(&mut rest);
    assert!(!runs(&mut root));
}

#[test]
fn everything_has_a_limit() {
    let (_server, console, _root) = server();
    let browser = Browser::of(&console, "root", "");
    let mut stream = TcpStream::connect(console.address()).expect("a connection");
    let head = "POST /api/statement HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2000000\r\n\r\n";
    stream.write_all(head.as_bytes()).expect("a head");
    assert_eq!(Answer::read(&mut stream).status, 413);
    let long = format!("X: {}\r\nHost: localhost\r\n", "x".repeat(10_000));
    assert_eq!(browser.send("GET /", &long, "").status, 431);
    // Clients that say nothing, or little by little, keep nobody out.
    let silent: Vec<TcpStream> = (0..64)
        .map(|number| {
            let mut stream = TcpStream::connect(console.address()).expect("a connection");
            if number % 2 == 0 {
                // It may have been pushed out already.
                let _ = stream.write_all(b"POST /api/login HTTP/1.1\r\nHost: loc");
            }
            stream
        })
        .collect();
    wait_until("the console answers", || {
        let Ok(mut stream) = TcpStream::connect(console.address()) else {
            return false;
        };
        let mut answer = String::new();
        let _ = stream.write_all(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n");
        let _ = stream.read_to_string(&mut answer);
        answer.ends_with("\r\n\r\nok\n")
    });
    drop(silent);
    let logins = std::iter::repeat_with(|| Browser::new(&console).log_in("root", ""));
    let mut logins = logins.take(64).skip_while(|answer| answer.status == 200);
    let refused = logins.next().expect("too many");
    assert_eq!(refused.member("code"), "1040");
    assert!(browser.is_logged_in());
}

#[test]
fn it_listens_on_this_machine_alone() {
    let server = TestServer::start();
    for address in ["0.0.0.0:0", "[::]:0", "192.0.2.1:0"] {
        let address: SocketAddr = address.parse().expect("an address");
        let console = ConsoleServer::start(server.engine(), address);
        let error = console.err().expect("a refusal").to_string();
        assert!(error.contains("this machine alone"), "{error}");
    }
}
