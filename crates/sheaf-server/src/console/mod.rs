//! The console: a page for people, over HTTP.
//!
//! ```text
//!   GET  /                the page           POST /api/login      {"user", "password"} -> cookie, token
//!   GET  /metrics ...     as for monitoring  GET  /api/login      who is logged in
//!                                            POST /api/logout
//!                                            POST /api/statement  {"sql", "desk", "database", "poll", "single"}
//!                                                                 -> results
//! ```
//!
//! All that the page shows comes from SQL statements, in sessions of the account that has logged in. So privileges hold
//! as they do for any client, and there is nothing to be shown that a client could not ask for.
//!
//! There is no TLS: a server listens on loopback addresses alone. What comes from other pages in the same browser is
//! refused (`origin_check.rs`).

mod attempts;
mod login;
mod message;
mod origin_check;
mod page;
mod result;

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use sheaf_sql::{Engine, SqlError};
use sheaf_types::json::text::push_quoted;

use self::attempts::Attempts;
use self::login::{Asked, Desk, Login, Logins, NotRun};
use self::message::Message;
use self::result::error_text;
use crate::authentication::{Origin, authenticate_by_password};
use crate::handshake::host_not_allowed;
use crate::http::answer::Answer;
use crate::http::request::{Method, Request};
use crate::http::{Handler, HttpServer, Limits};
use crate::metrics;

const LIMITS: Limits = Limits {
    name: "console",
    clients: 40,
    long_clients: 32,
    body_bytes: |path| match path {
        STATEMENT_PATH => 1 << 20,
        // They are read from clients that are not logged in.
        _ => 4 << 10,
    },
    request_time: Duration::from_secs(5),
    answer_time: Duration::from_secs(10),
    // As that of other connections: deep expressions touch a lot.
    stack_bytes: 8 << 20,
};
/// How often connections that have ended, and logins that are over, are looked for.
const LOOK_INTERVAL: Duration = Duration::from_millis(250);
/// Time for statements to end when the server does.
const END_TIME: Duration = Duration::from_secs(5);
const STATEMENT_PATH: &str = "/api/statement";
/// No account has a longer name, as in MySQL.
const MAX_USER_CHARACTERS: usize = 32;
const JSON: &str = "application/json";
const TOKEN_HEADER: &str = "x-csrf-token";

/// A server of the console. It ends when it is dropped.
pub struct ConsoleServer {
    http: HttpServer,
    console: Arc<Console>,
    watcher: Option<JoinHandle<()>>,
}

struct Console {
    engine: Arc<Engine>,
    logins: Logins,
    attempts: Attempts,
    /// Browsers send cookies to all ports of a host, so the name has the port.
    cookie_name: String,
    stopping: AtomicBool,
    /// The watcher sleeps on it.
    stop: (Mutex<()>, Condvar),
}

impl ConsoleServer {
    /// Listens on an address; port 0 lets the system choose.
    ///
    /// # Errors
    /// The address is no loopback address, or it is taken.
    pub fn start(engine: &Arc<Engine>, address: SocketAddr) -> io::Result<ConsoleServer> {
        ConsoleServer::check_address(address)?;
        let listener = TcpListener::bind(address)?;
        let port = listener.local_addr()?.port();
        let console = Arc::new(Console {
            engine: Arc::clone(engine),
            logins: Logins::new(engine),
            attempts: Attempts::default(),
            cookie_name: format!("sheaf_console_{port}"),
            stopping: AtomicBool::new(false),
            stop: Default::default(),
        });
        let handler: Arc<dyn Handler> = console.clone();
        let http = HttpServer::on(listener, LIMITS, handler)?;
        let watching = Arc::clone(&console);
        let watcher = thread::Builder::new()
            .name("console watcher".into())
            .spawn(move || watching.watch())?;
        Ok(ConsoleServer {
            http,
            console,
            watcher: Some(watcher),
        })
    }

    /// Whether a console may listen on an address: there is no TLS, and passwords are sent.
    ///
    /// # Errors
    /// It is no loopback address.
    pub fn check_address(address: SocketAddr) -> io::Result<()> {
        match address.ip().is_loopback() {
            true => Ok(()),
            false => Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "the console has no TLS and listens on this machine alone, as on 127.0.0.1; an SSH tunnel leads to it \
                 from elsewhere",
            )),
        }
    }

    /// The address, with the port that the system chose if it was asked to.
    pub fn address(&self) -> SocketAddr {
        self.http.address()
    }
}

impl ConsoleServer {
    /// Ends the server: running statements get `drain_time` to finish, then they are killed.
    pub fn shut_down(mut self, drain_time: Duration) {
        self.http.drain(drain_time);
    }
}

impl Drop for ConsoleServer {
    fn drop(&mut self) {
        self.http.stop();
        self.console.stop_watching();
        if let Some(watcher) = self.watcher.take()
            && watcher.join().is_err()
        {
            tracing::error!("the thread that watches the console has panicked");
        }
        self.console.logins.end_all();
        if !self.http.end_clients(END_TIME) {
            tracing::warn!("some requests of the console did not end in time");
        }
    }
}

impl Handler for Console {
    fn answer(&self, request: &Request, client: &TcpStream) -> Answer {
        let answer = origin_check::check(request).map(|()| self.route(request, client));
        page::guarded(answer.unwrap_or_else(|refusal| refusal))
    }

    fn may_take_long(&self, request: &Request) -> bool {
        request.path.starts_with("/api/")
    }
}

impl Console {
    fn route(&self, request: &Request, client: &TcpStream) -> Answer {
        if let Some(answer) = metrics::answer(&self.engine, request) {
            return answer;
        }
        let outcome = match (request.method, request.path.as_str()) {
            (Method::Get, "/api/login") => self.who(request),
            (Method::Post, "/api/login") => self.log_in(request, client),
            (Method::Post, "/api/logout") => self.log_out(request),
            (Method::Post, STATEMENT_PATH) => self.statement(request, client),
            (Method::Get | Method::Head, path) => {
                return page::file(path)
                    .unwrap_or_else(|| Answer::plain("404 Not Found", "there is no such page\n"));
            }
            (Method::Post, _) => return Answer::not_allowed(),
        };
        outcome.unwrap_or_else(|refusal| refusal)
    }

    fn cookie<'r>(&self, request: &'r Request) -> Option<&'r str> {
        let pairs = request.header("cookie")?.split(';');
        let mut pairs = pairs.filter_map(|pair| pair.trim().split_once('='));
        pairs
            .find(|(name, _)| *name == self.cookie_name)
            .map(|(_, value)| value)
    }

    /// The login of a request, which has to bring the token.
    fn login(&self, request: &Request) -> Result<Arc<Login>, Answer> {
        let cookie = self.cookie(request);
        let login = cookie.and_then(|cookie| self.logins.find(cookie, Instant::now()));
        let login = login.ok_or_else(not_logged_in)?;
        let token = request.header(TOKEN_HEADER).unwrap_or_default();
        match login.is_token(token) {
            true => Ok(login),
            false => Err(Answer::plain(
                "403 Forbidden",
                "the request has not the token of its login\n",
            )),
        }
    }

    fn who(&self, request: &Request) -> Result<Answer, Answer> {
        let login = self.login(request)?;
        Ok(welcome(&login, None))
    }

    fn log_in(&self, request: &Request, client: &TcpStream) -> Result<Answer, Answer> {
        let message = Message::read(&request.body)?;
        let (user, password) = (message.text("user"), message.text("password"));
        // Before it is counted or logged: names that have failed are kept for a while.
        if user.chars().count() > MAX_USER_CHARACTERS {
            return Err(Answer::bad_request("no account has so long a name\n"));
        }
        let address = client
            .peer_addr()
            .map(|address| address.ip().to_canonical());
        let address = address.unwrap_or(IpAddr::V4(Ipv4Addr::LOCALHOST));
        let origin = Origin::network(address);
        let now = Instant::now();
        let attempt = self.attempts.check((address, &user), now, || {
            self.account_logs_in((&user, &password), &origin, now)
        });
        let (cookie, login) = match attempt {
            Err(wait) => {
                let seconds = wait.as_secs().max(1).to_string();
                let answer = Answer::plain(
                    "429 Too Many Requests",
                    "too many attempts have failed; wait, and try again\n",
                );
                return Err(answer.with("Retry-After", seconds));
            }
            Ok(Err(error)) => {
                self.engine.count_aborted_connect();
                tracing::info!(user, %address, %error, "the console let nobody in");
                return Err(json("401 Unauthorized", error_text(&error)));
            }
            Ok(Ok(login)) => login,
        };
        // Another login of the same browser ends.
        if let Some(earlier) = self.cookie(request) {
            self.logins.end(earlier);
        }
        tracing::info!(user, %address, "logged in to the console");
        let cookie = format!(
            "{}={cookie}; Path=/; HttpOnly; SameSite=Strict",
            self.cookie_name
        );
        Ok(welcome(&login, Some(&login.token)).with("Set-Cookie", cookie))
    }

    fn account_logs_in(
        &self,
        (user, password): (&str, &str),
        origin: &Origin,
        now: Instant,
    ) -> Result<(String, Arc<Login>), SqlError> {
        if !self.engine.admits_host(&origin.names()) {
            return Err(host_not_allowed(origin));
        }
        let account = authenticate_by_password(&self.engine, (user, password), origin)?;
        self.logins.begin((&account, user), origin, now)
    }

    fn log_out(&self, request: &Request) -> Result<Answer, Answer> {
        self.login(request)?;
        if let Some(cookie) = self.cookie(request) {
            self.logins.end(cookie);
        }
        let gone = format!(
            "{}=; Path=/; HttpOnly; SameSite=Strict; Max-Age=0",
            self.cookie_name
        );
        Ok(json("200 OK", "{}".to_string()).with("Set-Cookie", gone))
    }

    fn statement(&self, request: &Request, client: &TcpStream) -> Result<Answer, Answer> {
        let login = self.login(request)?;
        if self.engine.is_shutting_down() {
            return Err(Answer::plain(
                "503 Service Unavailable",
                "the server is shutting down\n",
            ));
        }
        let message = Message::read(&request.body)?;
        let desk = match message.text("desk").as_str() {
            "editor" => Desk::Editor,
            "watcher" => Desk::Watcher,
            _ => return Err(Answer::bad_request("the desk is editor or watcher\n")),
        };
        if !message.is("poll") {
            login.note_use(Instant::now());
        }
        let asked = Asked {
            desk,
            sql: &message.text("sql"),
            database: &message.text("database"),
            is_single: message.is("single"),
        };
        match login.run(&asked, client) {
            Ok(answer) => Ok(json("200 OK", answer)),
            Err(NotRun::Busy) => Err(Answer::plain(
                "409 Conflict",
                "a statement is running in this session\n",
            )),
            Err(NotRun::Ended) => Err(not_logged_in()),
        }
    }

    /// Until the server ends.
    fn watch(&self) {
        let (sleeping, stop) = &self.stop;
        let mut asleep = sleeping.lock().unwrap_or_else(PoisonError::into_inner);
        while !self.stopping.load(Ordering::Acquire) {
            asleep = stop
                .wait_timeout(asleep, LOOK_INTERVAL)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
            self.logins.stop_for_those_that_have_gone();
            self.logins.end_those_that_are_over(Instant::now());
        }
    }

    fn stop_watching(&self) {
        let _asleep = self.stop.0.lock().unwrap_or_else(PoisonError::into_inner);
        self.stopping.store(true, Ordering::Release);
        self.stop.1.notify_all();
    }
}

fn json(status: &'static str, text: String) -> Answer {
    Answer::new(status, JSON, text.into_bytes())
}

fn not_logged_in() -> Answer {
    json(
        "401 Unauthorized",
        "{\"message\":\"nobody is logged in\"}".to_string(),
    )
}

/// What the page is told of its login. The token is told once: the cookie alone does not lead to it.
fn welcome(login: &Login, token: Option<&str>) -> Answer {
    let (editor, watcher) = login.ids();
    let mut text = String::from("{\"user\":");
    push_quoted(&login.user, &mut text);
    text.push_str(",\"account\":");
    push_quoted(&login.account().to_string(), &mut text);
    if let Some(token) = token {
        text.push_str(",\"token\":");
        push_quoted(token, &mut text);
    }
    let is_open = login.has_transaction();
    text.push_str(&format!(
        ",\"editor\":{editor},\"watcher\":{watcher},\"transaction\":{is_open}}}"
    ));
    json("200 OK", text)
}
