//! Who is logged in, and the sessions in which the statements of a login run.
//!
//! ```text
//!   cookie --> login --> editor    statements that people write: they keep transactions, variables, USE
//!                    --> watcher   what the page shows: it is answered while the editor waits for its statement
//! ```
//!
//! Both are sessions of the account, like any other: they take places of `max_connections`, SHOW PROCESSLIST has them,
//! and what they may do is what the account may. A login ends when it is not used, when it is old, when one of its
//! sessions is killed, and when the account is dropped, renamed, locked, or has another password. That is looked at
//! before each request, so it fails closed.
//!
//! The cookie is 256 random bits, which scripts do not see and other sites do not send. A second random number, the
//! token, goes with each request in a header, which only the console's own page can read and send.

use std::collections::HashMap;
use std::mem::MaybeUninit;
use std::net::TcpStream;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::{Duration, Instant};

use sheaf_sql::{Engine, Session, SessionHandle, SessionInfo, SqlError};
use sheaf_table::{Account, AccountName};
use sheaf_types::text::hexadecimal::digits_of;
use socket2::SockRef;

use super::result::{Results, error_text};
use crate::authentication::Origin;

/// A login that nobody uses ends after this. What the page asks by itself is no use, a statement that runs is.
const IDLE_LIMIT: Duration = Duration::from_secs(30 * 60);
/// A login ends after this.
const AGE_LIMIT: Duration = Duration::from_secs(12 * 60 * 60);
/// Views of the page are right under all global settings: its session holds no transactions, and reads all rows.
const WATCHER_SETTINGS: &str = "SET autocommit = 1, sql_select_limit = 18446744073709551615";
/// Logins at the same time.
const MAX_LOGINS: usize = 32;
const SECRET_BYTES: usize = 32;

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // What is behind these locks is valid at each point where a panic is possible.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Which session of a login a statement runs in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Desk {
    Editor,
    Watcher,
}

/// A session, and the client that waits for its statement.
struct Place {
    handle: Arc<SessionHandle>,
    /// `None`: it has ended.
    session: Mutex<Option<Session>>,
    client: Arc<Mutex<Option<TcpStream>>>,
    is_running: AtomicBool,
    /// The last statement has left a transaction open.
    has_transaction: AtomicBool,
}

impl Place {
    fn new(engine: &Arc<Engine>, info: SessionInfo) -> Result<Place, SqlError> {
        let session = engine.session(info)?;
        let handle = session.handle();
        let client: Arc<Mutex<Option<TcpStream>>> = Arc::default();
        let waiting = Arc::clone(&client);
        let has_gone = move || lock(&waiting).as_ref().is_some_and(has_hung_up);
        handle.on_waiting(Box::new(move || !has_gone()));
        Ok(Place {
            handle,
            session: Mutex::new(Some(session)),
            client,
            is_running: AtomicBool::new(false),
            has_transaction: AtomicBool::new(false),
        })
    }
}

impl Place {
    /// Runs a statement before the first one of a client.
    fn set_up(&self, sql: &str) -> Result<(), SqlError> {
        match &mut *lock(&self.session) {
            Some(session) => session.execute(sql, &mut Results::default()),
            None => Ok(()),
        }
    }
}

/// Whether a client has closed its connection. What it has sent meanwhile stays to be read.
fn has_hung_up(client: &TcpStream) -> bool {
    let mut byte = [MaybeUninit::uninit()];
    let flags = libc::MSG_PEEK | libc::MSG_DONTWAIT;
    match SockRef::from(client).recv_with_flags(&mut byte, flags) {
        Ok(bytes) => bytes == 0,
        Err(error) => !matches!(
            error.kind(),
            std::io::ErrorKind::WouldBlock | std::io::ErrorKind::Interrupted
        ),
    }
}

/// What a request asks of a session.
pub(super) struct Asked<'a> {
    pub(super) desk: Desk,
    pub(super) sql: &'a str,
    /// To run it in; empty: where the session is.
    pub(super) database: &'a str,
    /// Several statements are an error, and none of them runs.
    pub(super) is_single: bool,
}

/// Why a request was not run.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum NotRun {
    /// The session runs another statement.
    Busy,
    /// The login has ended.
    Ended,
}

/// A login.
pub(super) struct Login {
    /// What the requests have to bring besides the cookie.
    pub(super) token: String,
    pub(super) user: String,
    account: AccountName,
    verifier: String,
    began: Instant,
    used: Mutex<Instant>,
    editor: Place,
    watcher: Place,
}

impl Login {
    pub(super) fn account(&self) -> &AccountName {
        &self.account
    }

    /// The ids of the editor's session and of the watcher's.
    pub(super) fn ids(&self) -> (u64, u64) {
        (self.editor.handle.id(), self.watcher.handle.id())
    }

    /// Whether the editor's session has a transaction open, or had one when its running statement began.
    pub(super) fn has_transaction(&self) -> bool {
        self.editor.has_transaction.load(Ordering::Acquire)
    }

    /// Whether another text is the token, in a time that does not depend on where they differ.
    pub(super) fn is_token(&self, other: &str) -> bool {
        let pairs = self.token.bytes().zip(other.bytes());
        let differences = pairs.fold(0, |seen, (own, other)| seen | (own ^ other));
        self.token.len() == other.len() && std::hint::black_box(differences) == 0
    }

    pub(super) fn note_use(&self, now: Instant) {
        *lock(&self.used) = now;
    }

    fn place(&self, desk: Desk) -> &Place {
        match desk {
            Desk::Editor => &self.editor,
            Desk::Watcher => &self.watcher,
        }
    }

    fn is_over(&self, engine: &Engine, now: Instant) -> bool {
        let accounts = engine.catalog().accounts();
        let account = accounts.get(&self.account);
        let may_go_on = account.is_some_and(|account| {
            account.verifier == self.verifier && !account.locked && !account.require_tls
        });
        let is_killed = self.editor.handle.is_killed() || self.watcher.handle.is_killed();
        !may_go_on
            || is_killed
            || engine.requires_secure_transport()
            || now.saturating_duration_since(self.began) > AGE_LIMIT
            || !self.editor.is_running.load(Ordering::Acquire)
                && now.saturating_duration_since(*lock(&self.used)) > IDLE_LIMIT
    }

    /// Runs statements. The answer is an object in JSON.
    pub(super) fn run(&self, asked: &Asked<'_>, client: &TcpStream) -> Result<String, NotRun> {
        let place = self.place(asked.desk);
        let mut session = match place.session.try_lock() {
            Ok(session) => session,
            Err(TryLockError::WouldBlock) => return Err(NotRun::Busy),
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
        };
        let Some(running) = &mut *session else {
            return Err(NotRun::Ended);
        };
        // Without it, that the client hangs up is not noticed.
        *lock(&place.client) = client.try_clone().ok();
        let began = Instant::now();
        place.is_running.store(true, Ordering::Release);
        running.set_multi_statements(asked.desk == Desk::Editor && !asked.is_single);
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            let mut results = Results::default();
            let mut ran = match asked.database {
                "" => Ok(()),
                name => running.set_database(name),
            };
            if ran.is_ok() {
                ran = running.execute(asked.sql, &mut results);
            }
            (results, ran)
        }));
        *lock(&place.client) = None;
        if asked.desk == Desk::Editor {
            // The end of a long statement is a use, too.
            self.note_use(Instant::now());
        }
        place.is_running.store(false, Ordering::Release);
        let seconds = began.elapsed().as_secs_f64();
        let Ok((results, ran)) = outcome else {
            // What the panic left in the session is not known.
            *session = None;
            place.handle.kill();
            tracing::error!(
                id = place.handle.id(),
                "a statement of the console panicked; its login ends"
            );
            return Err(NotRun::Ended);
        };
        let error = ran.as_ref().err().map_or("null".to_string(), error_text);
        let (results, is_cut) = results.finish();
        let mut answer = format!(
            "{{\"results\":[{results}],\"cut\":{is_cut},\"error\":{error},\"seconds\":{seconds:.6},\"database\":"
        );
        sheaf_types::json::text::push_quoted(running.database().unwrap_or_default(), &mut answer);
        let is_open = running.status_flags() & sheaf_sql::status_flags::IN_TRANSACTION != 0;
        place.has_transaction.store(is_open, Ordering::Release);
        answer.push_str(&format!(",\"transaction\":{is_open}}}"));
        running.count_traffic(asked.sql.len() as u64, answer.len() as u64);
        running.rest();
        if running.is_released() {
            *session = None;
            place.handle.kill();
        }
        Ok(answer)
    }

    /// Ends its sessions. A statement that runs ends soon, and its session with it.
    fn end(&self) {
        for place in [&self.editor, &self.watcher] {
            place.handle.kill();
            if let Ok(mut session) = place.session.try_lock() {
                *session = None;
            }
        }
    }
}

/// All logins, by their cookies.
pub(super) struct Logins {
    engine: Arc<Engine>,
    by_cookie: Mutex<HashMap<String, Arc<Login>>>,
}

impl Logins {
    pub(super) fn new(engine: &Arc<Engine>) -> Logins {
        Logins {
            engine: Arc::clone(engine),
            by_cookie: Mutex::default(),
        }
    }

    /// Logs in an account whose client has proved that it is it. Returns the cookie.
    ///
    /// # Errors
    /// Those of a new connection; 1040 also if there are too many logins.
    pub(super) fn begin(
        &self,
        (account, user): (&Account, &str),
        origin: &Origin,
        now: Instant,
    ) -> Result<(String, Arc<Login>), SqlError> {
        let info = || SessionInfo {
            user: user.to_string(),
            host: origin.host.clone(),
            account: Some(account.name.clone()),
            // Each request says whether it may have several.
            multi_statements: false,
            local_infile: false,
            ..SessionInfo::default()
        };
        self.end_those_that_are_over(now);
        if lock(&self.by_cookie).len() >= MAX_LOGINS {
            return Err(SqlError::too_many_connections());
        }
        let watcher = Place::new(&self.engine, info())?;
        watcher.set_up(WATCHER_SETTINGS)?;
        let login = Arc::new(Login {
            token: secret()?,
            user: user.to_string(),
            account: account.name.clone(),
            verifier: account.verifier.clone(),
            began: now,
            used: Mutex::new(now),
            editor: Place::new(&self.engine, info())?,
            watcher,
        });
        let cookie = secret()?;
        let mut all = lock(&self.by_cookie);
        // Others may have come meanwhile.
        if all.len() >= MAX_LOGINS {
            return Err(SqlError::too_many_connections());
        }
        all.insert(cookie.clone(), Arc::clone(&login));
        Ok((cookie, login))
    }

    /// The login of a cookie, unless it has ended.
    pub(super) fn find(&self, cookie: &str, now: Instant) -> Option<Arc<Login>> {
        let login = lock(&self.by_cookie).get(cookie).cloned()?;
        if login.is_over(&self.engine, now) {
            self.end(cookie);
            return None;
        }
        Some(login)
    }

    pub(super) fn end(&self, cookie: &str) {
        let login = lock(&self.by_cookie).remove(cookie);
        if let Some(login) = login {
            login.end();
        }
    }

    pub(super) fn end_those_that_are_over(&self, now: Instant) {
        let ended: Vec<Arc<Login>> = {
            let mut all = lock(&self.by_cookie);
            let is_over = |_: &String, login: &mut Arc<Login>| login.is_over(&self.engine, now);
            all.extract_if(is_over).map(|(_, login)| login).collect()
        };
        for login in ended {
            login.end();
        }
    }

    pub(super) fn end_all(&self) {
        let ended = std::mem::take(&mut *lock(&self.by_cookie));
        for login in ended.into_values() {
            login.end();
        }
    }

    /// Ends statements whose clients have gone.
    pub(super) fn stop_for_those_that_have_gone(&self) {
        let all: Vec<Arc<Login>> = lock(&self.by_cookie).values().cloned().collect();
        for place in all.iter().flat_map(|login| [&login.editor, &login.watcher]) {
            // Under the lock, so that it is not the next statement that is ended.
            let client = lock(&place.client);
            if client.as_ref().is_some_and(has_hung_up) {
                place.handle.cancel();
            }
        }
    }
}

/// A random number as text.
fn secret() -> Result<String, SqlError> {
    let mut bytes = [0; SECRET_BYTES];
    getrandom::fill(&mut bytes).map_err(|error| {
        SqlError::unknown(format!("the system gives no random numbers: {error}"))
    })?;
    Ok(digits_of(&bytes))
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use sheaf_sql::EngineOptions;

    use super::*;
    use crate::authentication::authenticate_by_password;

    #[test]
    fn a_statement_that_runs_is_a_use() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let engine = Engine::open(directory.path(), EngineOptions::default());
        let engine = engine.expect("an empty database");
        let origin = Origin::network(IpAddr::from([127, 0, 0, 1]));
        let account = authenticate_by_password(&engine, ("root", ""), &origin);
        let account = account.expect("an account");
        let (logins, now) = (Logins::new(&engine), Instant::now());
        let begun = logins.begin((&account, "root"), &origin, now);
        let (cookie, login) = begun.expect("a login");
        let later = now + IDLE_LIMIT + Duration::from_secs(1);
        login.editor.is_running.store(true, Ordering::Release);
        logins.end_those_that_are_over(later);
        assert!(logins.find(&cookie, later).is_some());
        assert!(logins.find(&cookie, now + 2 * AGE_LIMIT).is_none());
        let begun = logins.begin((&account, "root"), &origin, now);
        let (cookie, _) = begun.expect("a login");
        assert!(logins.find(&cookie, later).is_none());
    }
}
