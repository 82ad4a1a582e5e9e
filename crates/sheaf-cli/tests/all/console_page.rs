//! The console's page in a real browser, where Chromium is installed.
//!
//! Chromium is led over a pipe, by the DevTools protocol: objects in JSON with a zero byte between them
//! (<https://chromedevtools.github.io/devtools-protocol/>). `SHEAF_WRITE_DOCS=1` takes the pictures of docs/console.md
//! anew.

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use sheaf_server::ConsoleServer;

use crate::clients::installed;
use crate::harness::{TestServer, code, query_text, run, wait_until};

/// A browser that hangs does not keep the tests for ever.
const BROWSER_SECONDS: &str = "180";

struct Browser {
    process: Child,
    requests: File,
    answers: File,
    /// What has come and was not looked at.
    pending: Vec<u8>,
    last: u32,
    session: String,
    /// Everything that the page has complained of.
    complaints: Vec<String>,
}

impl Browser {
    fn start(folder: &Path) -> Browser {
        let path = |name: &str| folder.join(name).display().to_string();
        let (requests, answers) = (path("requests"), path("answers"));
        let made = Command::new("mkfifo").args([&requests, &answers]).status();
        assert!(made.expect("mkfifo runs").success());
        let script = "exec timeout \"$4\" chromium --headless=new --no-sandbox --disable-gpu --disable-dev-shm-usage \
             --no-first-run --hide-scrollbars --window-size=1280,1100 --remote-debugging-pipe --user-data-dir=\"$3\" \
             about:blank 3<\"$1\" 4>\"$2\"";
        let process = Command::new("sh")
            .args(["-c", script, "sh", &requests, &answers])
            .args([&path("profile"), BROWSER_SECONDS])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("a shell");
        let requests = OpenOptions::new().write(true).open(&requests);
        let mut browser = Browser {
            process,
            requests: requests.expect("a pipe"),
            answers: File::open(&answers).expect("a pipe"),
            pending: Vec::new(),
            last: 0,
            session: String::new(),
            complaints: Vec::new(),
        };
        let targets = browser.ask("Target.getTargets", "{}");
        let page = targets
            .split('{')
            .find(|target| target.contains("\"type\":\"page\""))
            .expect("a page");
        let attach = format!(
            "{{\"targetId\": \"{}\", \"flatten\": true}}",
            member(page, "targetId")
        );
        let attached = browser.ask("Target.attachToTarget", &attach);
        browser.session = member(&attached, "sessionId").to_string();
        for domain in ["Page", "Runtime", "Log"] {
            browser.ask(&format!("{domain}.enable"), "{}");
        }
        browser
    }

    /// Sends a command, and waits for its answer.
    fn ask(&mut self, method: &str, parameters: &str) -> String {
        self.last += 1;
        let (id, session) = (self.last, &self.session);
        let session = match session.as_str() {
            "" => String::new(),
            session => format!(", \"sessionId\": \"{session}\""),
        };
        let command = format!(
            "{{\"id\": {id}, \"method\": \"{method}\", \"params\": {parameters}{session}}}\0"
        );
        self.requests
            .write_all(command.as_bytes())
            .expect("the browser listens");
        let begin = format!("{{\"id\":{id},");
        loop {
            let message = self.next();
            if message.starts_with(&begin) {
                assert!(!message.contains("\"error\":{"), "{method}: {message}");
                return message;
            }
            let complains = ["Runtime.exceptionThrown", "Log.entryAdded"]
                .iter()
                .any(|event| message.contains(event));
            // Whether somebody is logged in is asked in the beginning.
            if complains && !message.contains("401") {
                self.complaints.push(message);
            }
        }
    }

    fn next(&mut self) -> String {
        let mut buffer = [0; 1 << 16];
        loop {
            if let Some(end) = self.pending.iter().position(|byte| *byte == 0) {
                let message: Vec<u8> = self.pending.drain(..=end).collect();
                return String::from_utf8_lossy(&message[..end]).into_owned();
            }
            let count = self.answers.read(&mut buffer).expect("the browser answers");
            assert!(count > 0, "the browser has ended");
            self.pending.extend_from_slice(&buffer[..count]);
        }
    }

    /// The value of an expression as text.
    fn value(&mut self, script: &str) -> String {
        let quoted = script
            .replace('\\', "\\\\")
            .replace('"', "\\\"")
            .replace('\n', " ");
        let parameters = format!(
            "{{\"expression\": \"String({quoted})\", \"awaitPromise\": true, \"returnByValue\": true}}"
        );
        let answer = self.ask("Runtime.evaluate", &parameters);
        assert!(!answer.contains("exceptionDetails"), "{script}: {answer}");
        member(&answer, "value").to_string()
    }

    fn wait_for(&mut self, condition: &str) {
        wait_until(condition, || self.value(condition) == "true");
    }

    fn click(&mut self, text: &str) {
        let script = format!(
            "[...document.querySelectorAll('button')].find((one) => one.textContent === '{text}').click()"
        );
        self.value(&script);
    }

    fn open(&mut self, view: &str) {
        self.value(&format!("document.getElementById('tab-{view}').click()"));
        self.wait_for(&format!(
            "location.hash === '#{view}' && document.querySelector('#view h2') !== null"
        ));
    }

    fn press(&mut self, key: &str) {
        for kind in ["keyDown", "keyUp"] {
            let event =
                format!("{{\"type\": \"{kind}\", \"key\": \"{key}\", \"code\": \"{key}\"}}");
            self.ask("Input.dispatchKeyEvent", &event);
        }
    }

    /// A picture for the documents, if these are written.
    fn picture(&mut self, name: &str) {
        if std::env::var_os("SHEAF_WRITE_DOCS").is_none() {
            return;
        }
        let taken = self.ask("Page.captureScreenshot", "{\"format\": \"png\"}");
        let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
        let mut decoder = Command::new("base64")
            .arg("-d")
            .stdin(Stdio::piped())
            .stdout(File::create(docs.join(name)).expect("a picture"))
            .spawn()
            .expect("base64 runs");
        let mut input = decoder.stdin.take().expect("its input");
        input
            .write_all(member(&taken, "data").as_bytes())
            .expect("it reads");
        drop(input);
        assert!(decoder.wait().expect("it ends").success());
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // It may have ended by itself. If it does not end, its time does that.
        let _ = self
            .requests
            .write_all(b"{\"id\": 0, \"method\": \"Browser.close\"}\0");
        let _ = self.process.wait();
    }
}

/// The text of a member, whose value has no quotes.
fn member<'m>(message: &'m str, name: &str) -> &'m str {
    let start = format!("\"{name}\":\"");
    let (_, rest) = message.split_once(&start).expect("a member");
    rest.split('"').next().unwrap_or_default()
}

#[test]
fn the_page_works_in_a_browser() {
    if !installed("chromium", &["chromium", "--version"]) {
        return;
    }
    let server = TestServer::start();
    let mut root = server.connect_to_new("shop");
    run(
        &mut root,
        &[
            "CREATE TABLE customer (id INT PRIMARY KEY, name VARCHAR(60), nation INT, KEY (nation))",
            "CREATE TABLE orders (id INT PRIMARY KEY, customer INT, placed DATE, total DECIMAL(10,2), KEY (customer), \
             KEY (placed))",
            "CREATE TABLE digit (d INT PRIMARY KEY)",
            "INSERT INTO digit VALUES (0), (1), (2), (3), (4), (5), (6), (7), (8), (9)",
            "INSERT INTO customer SELECT a.d * 100 + b.d * 10 + c.d, CONCAT('Customer ', a.d, b.d, c.d), \
             (b.d * 10 + c.d) % 25 FROM digit a, digit b, digit c",
            "INSERT INTO orders SELECT a.d * 1000 + b.d * 100 + c.d * 10 + d.d, (a.d * 317 + c.d * 11 + d.d) % 1000, \
             DATE_ADD('2026-01-01', INTERVAL (b.d * 31 + d.d) DAY), c.d * 10 + d.d FROM digit a, digit b, digit c, digit d",
            "ANALYZE TABLE customer, orders",
            "UPDATE customer SET name = '<img src=x onerror=alert(1)>' WHERE id = 7",
        ],
    );
    let console = ConsoleServer::start(server.engine(), ([127, 0, 0, 1], 0).into());
    let console = console.expect("a free port");
    let folder = tempfile::tempdir().expect("a folder");
    let mut browser = Browser::start(folder.path());
    let address = console.address();
    let page = format!("{{\"url\": \"http://{address}/\"}}");
    browser.ask("Page.navigate", &page);

    browser.wait_for("document.getElementById('login')?.hidden === false");
    browser.value("document.querySelector('[name=user]').value = 'nobody'");
    browser.click("Log in");
    browser.wait_for("document.getElementById('message').textContent.includes('1045')");
    browser.value("document.querySelector('[name=user]').value = 'root'");
    browser.click("Log in");
    browser.wait_for("document.querySelectorAll('#tabs button').length === 7");
    // Scripts do not see the cookie.
    assert_eq!(browser.value("document.cookie"), "");

    for view in [
        "now",
        "statements",
        "locks",
        "memory",
        "definitions",
        "advisor",
    ] {
        browser.open(view);
        browser
            .wait_for("document.querySelector('#view table, #view svg, #view textarea') !== null");
        assert_eq!(
            browser.value("document.getElementById('message').textContent"),
            "",
            "{view}"
        );
    }
    browser.open("memory");
    browser.wait_for("document.querySelectorAll('#view rect').length > 3");

    browser.open("sql");
    browser.value(
        "document.querySelector('textarea').value = 'SELECT name FROM shop.customer WHERE id = 7'",
    );
    browser.click("Run");
    browser.wait_for(
        "document.querySelector('#view td')?.textContent === '<img src=x onerror=alert(1)>'",
    );
    assert_eq!(browser.value("document.querySelector('#view img')"), "null");

    let query = "SELECT c.name, SUM(o.total) AS total FROM shop.orders o JOIN shop.customer c ON c.id = o.customer \
                 WHERE c.nation = 3 GROUP BY c.name ORDER BY total DESC LIMIT 5";
    browser.value(&format!(
        "document.querySelector('textarea').value = '{query}'"
    ));
    browser.click("Explain and measure");
    browser.wait_for("document.querySelectorAll('#view [role=treeitem]').length > 3");
    assert_eq!(
        browser.value("document.getElementById('message').textContent"),
        ""
    );
    browser.wait_for("/found/.test(document.querySelector('.node').textContent)");
    // Why others lost is there for tables.
    browser.value("[...document.querySelectorAll('.node')].find((one) => / o /.test(one.textContent)).click()");
    browser.wait_for("/Ways to (read|join) o/.test(document.querySelector('#view').textContent)");
    browser.picture("console-plan.png");
    // The keyboard goes through the tree.
    browser.value("document.querySelector('[role=treeitem][tabindex=\"0\"]').focus()");
    browser.press("Home");
    browser.wait_for("document.activeElement === document.querySelector('[role=treeitem]')");
    browser.press("ArrowDown");
    browser.wait_for("document.activeElement === document.querySelectorAll('[role=treeitem]')[1]");
    // Two plans side by side.
    browser.click("Keep for comparison");
    browser.click("Explain");
    browser.wait_for("document.querySelectorAll('.one-plan').length === 2");

    // Names of tables are no names of the script.
    browser.value(
        "document.querySelector('textarea').value = 'SELECT * FROM shop.digit AS constructor'",
    );
    browser.click("Explain");
    browser.wait_for("/constructor/.test(document.querySelector('.plans').textContent)");
    // What stands behind the statement does not run.
    browser.value(
        "document.querySelector('textarea').value = 'SELECT 1; UPDATE shop.customer SET nation = 99'",
    );
    browser.click("Explain");
    browser.wait_for("document.getElementById('message').textContent.includes('1064')");
    let changed = "SELECT COUNT(*) FROM customer WHERE nation = 99";
    assert_eq!(query_text(&mut root, changed), ["0"]);
    // An open transaction is shown.
    for (statement, is_hidden) in [("BEGIN", "false"), ("ROLLBACK", "true")] {
        browser.value(&format!(
            "document.querySelector('textarea').value = '{statement}'"
        ));
        browser.click("Run");
        browser.wait_for(&format!(
            "document.getElementById('transaction').hidden === {is_hidden}"
        ));
    }

    // A screen reader has a name for everything that can be used.
    let nameless = "[...document.querySelectorAll('button, input:not([hidden]), select, textarea')].filter((one) => \
                    !one.textContent.trim() && !one.getAttribute('aria-label') && !one.labels?.length).length";
    assert_eq!(browser.value(nameless), "0");
    browser.open("memory");
    browser.wait_for("document.querySelectorAll('#view rect').length > 3");
    assert_eq!(browser.value(nameless), "0");
    browser.picture("console-memory.png");

    // A statement is shown, and stopped.
    let mut other = server.connect();
    let sleep = "SELECT name, SLEEP(1000) FROM shop.customer WHERE id = 1";
    let sleeping = std::thread::spawn(move || code(&mut other, sleep));
    browser.open("now");
    browser.wait_for("document.querySelectorAll('#view polyline').length > 3");
    browser.wait_for("/SLEEP/.test(document.querySelector('#view').textContent)");
    assert_eq!(browser.value(nameless), "0");
    browser.picture("console-now.png");
    browser.click("Stop");
    browser.wait_for("document.getElementById('ask').open");
    browser.click("Yes");
    assert_eq!(sleeping.join().expect("its end"), 1317);
    browser.click("Log out");
    browser.wait_for("document.getElementById('login').hidden === false");
    assert_eq!(
        browser.value("document.getElementById('view').textContent"),
        ""
    );
    lessons_are_shown(&mut browser, &mut root);
    assert_eq!(browser.complaints, [""; 0]);
}

/// The lessons of the demo, about other tables: two statements are measured, and their plans stand side by side.
fn lessons_are_shown(browser: &mut Browser, root: &mut mysql::Conn) {
    let statements = include_str!("../../src/lessons.sql").split(";\n");
    let statements: Vec<&str> = statements
        .map(str::trim)
        .filter(|one| !one.is_empty())
        .collect();
    run(root, &statements);
    run(
        root,
        &[
            "UPDATE learn.lessons SET in_database = 'shop', first_sql = 'SELECT COUNT(*) FROM customer', \
             slow_sql = 'SELECT SUM(total) FROM orders IGNORE INDEX (customer) WHERE customer = 3', \
             fast_sql = 'SELECT SUM(total) FROM orders WHERE customer = 3'",
        ],
    );
    browser.value("document.querySelector('[name=user]').value = 'root'");
    browser.click("Log in");
    browser.wait_for("document.querySelectorAll('#tabs button').length === 8");
    browser.open("learn");
    browser.wait_for("document.querySelectorAll('[data-key^=lesson]').length === 5");
    browser.value("document.querySelector('[data-key=lesson3]').click()");
    browser.click("Run both");
    browser.wait_for("document.querySelectorAll('.one-plan').length === 2");
    browser.wait_for("document.getElementById('message').textContent === ''");
    browser.wait_for("/rows fetched/.test(document.querySelector('#view table').textContent)");
    // The thread of the demo is not here.
    browser.value("document.querySelector('[data-key=lesson5]').click()");
    assert_eq!(
        browser.value("document.querySelectorAll('.one-plan').length"),
        "0"
    );
}
