//! How to reach the source, how far its changes have come, and where that is kept.
//!
//! The catalog has both as lines `name=value`. The password has a file of its own beside the database, which only the
//! owner of the server reads; no statement shows it.

use std::fmt;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use sheaf_binlog::gtid::GtidSet;
use sheaf_frontend::parser::replication::SourceChange;
use sheaf_table::KeptReplication;
use sheaf_types::error::codes;

use super::filter::Filter;
use super::kept_lines::{escaped, unescaped};
use super::link::LinkTls;
use crate::error::{Result, SqlError};

/// The file with the password, in the directory of the database.
const PASSWORD_FILE: &str = "replica.password";

/// Where a file of a binary log begins.
pub(crate) const FIRST_POSITION: u64 = 4;

/// How to reach the source, but for the password.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SourceOptions {
    pub(crate) host: String,
    pub(crate) port: u16,
    pub(crate) user: String,
    pub(crate) auto_position: bool,
    /// Seconds between two attempts to connect.
    pub(crate) connect_retry: u64,
    /// Attempts to connect, at most; 0: no end.
    pub(crate) retry_count: u64,
    pub(crate) heartbeat_ms: u64,
    pub(crate) get_public_key: bool,
    /// What is sent is encrypted as `tls` says.
    pub(crate) encrypts: bool,
    pub(crate) tls: LinkTls,
    pub(crate) filter: Filter,
    /// Which threads START REPLICA has started and nothing has stopped: they begin with the server.
    pub(crate) runs_io: bool,
    pub(crate) runs_sql: bool,
    /// The server that started them, by its UUID: a restored copy of it is another one, and starts nothing.
    pub(crate) started_by: String,
}

impl Default for SourceOptions {
    /// MySQL's defaults.
    fn default() -> SourceOptions {
        SourceOptions {
            host: String::new(),
            port: 3306,
            user: String::new(),
            auto_position: false,
            connect_retry: 60,
            retry_count: 10,
            heartbeat_ms: 30_000,
            get_public_key: false,
            encrypts: false,
            tls: LinkTls::default(),
            filter: Filter::default(),
            runs_io: false,
            runs_sql: false,
            started_by: String::new(),
        }
    }
}

/// How far changes have come.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Position {
    /// Empty: the source's first file.
    pub(crate) file: String,
    pub(crate) position: u64,
    /// Transactions of all sources that were applied.
    pub(crate) gtids: GtidSet,
    /// The table of a CREATE TABLE ... SELECT is there that ends at this position, and its rows are not; 0: there is
    /// none.
    pub(crate) made: u64,
}

/// All that the catalog keeps.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct KeptSource {
    pub(crate) options: SourceOptions,
    pub(crate) position: Position,
}

/// It is never shown.
#[derive(Clone, Default)]
pub(crate) struct Password(pub(crate) String);

impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Password")
    }
}

impl Position {
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let Position {
            file,
            position,
            gtids,
            made,
        } = self;
        // A set of several servers is shown in several lines.
        let gtids = gtids.to_string().replace('\n', "");
        let file = escaped(file);
        format!("file={file}\nposition={position}\ngtids={gtids}\nmade={made}\n").into_bytes()
    }

    fn read(bytes: &[u8]) -> Result<Position> {
        let mut read = Position::default();
        for (name, value) in lines(bytes)? {
            match name {
                "file" => read.file = unescaped(value),
                "position" => read.position = number(value)?,
                "gtids" => read.gtids = value.parse().map_err(|_| unreadable())?,
                "made" => read.made = number(value)?,
                _ => return Err(unreadable()),
            }
        }
        Ok(read)
    }
}

/// Bytes that the options take in the catalog, at most: they are one entry.
const MAX_OPTIONS_BYTES: usize = 3_800;

impl SourceOptions {
    /// Error 1235 for options that are too long to be kept.
    pub(crate) fn check_length(&self) -> Result<()> {
        match self.to_bytes().len() > MAX_OPTIONS_BYTES {
            true => Err(SqlError::not_supported_yet(format!(
                "options and filters of a replica of more than {MAX_OPTIONS_BYTES} bytes"
            ))),
            false => Ok(()),
        }
    }

    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let on = u8::from;
        let text = format!(
            "host={}\nport={}\nuser={}\nauto_position={}\nconnect_retry={}\nretry_count={}\nheartbeat_ms={}\n\
             get_public_key={}\nssl={}\nssl_ca={}\nssl_verify={}\nssl_cert={}\nssl_key={}\nruns_io={}\nruns_sql={}\n\
             started_by={}\n{}",
            escaped(&self.host),
            self.port,
            escaped(&self.user),
            on(self.auto_position),
            self.connect_retry,
            self.retry_count,
            self.heartbeat_ms,
            on(self.get_public_key),
            on(self.encrypts),
            escaped(&self.tls.authorities),
            on(self.tls.verifies_name),
            escaped(&self.tls.certificate),
            escaped(&self.tls.key),
            on(self.runs_io),
            on(self.runs_sql),
            self.started_by,
            self.filter.to_lines(),
        );
        text.into_bytes()
    }

    fn read(bytes: &[u8]) -> Result<SourceOptions> {
        let mut read = SourceOptions::default();
        for (name, value) in lines(bytes)? {
            match name {
                "host" => read.host = unescaped(value),
                "port" => read.port = u16::try_from(number(value)?).map_err(|_| unreadable())?,
                "user" => read.user = unescaped(value),
                "auto_position" => read.auto_position = number(value)? != 0,
                "connect_retry" => read.connect_retry = number(value)?,
                "retry_count" => read.retry_count = number(value)?,
                "heartbeat_ms" => read.heartbeat_ms = number(value)?,
                "get_public_key" => read.get_public_key = number(value)? != 0,
                "ssl" => read.encrypts = number(value)? != 0,
                "ssl_ca" => read.tls.authorities = unescaped(value),
                "ssl_verify" => read.tls.verifies_name = number(value)? != 0,
                "ssl_cert" => read.tls.certificate = unescaped(value),
                "ssl_key" => read.tls.key = unescaped(value),
                "runs_io" => read.runs_io = number(value)? != 0,
                "runs_sql" => read.runs_sql = number(value)? != 0,
                "started_by" => read.started_by = value.to_string(),
                _ => read.filter.read_line(name, value).ok_or_else(unreadable)?,
            }
        }
        Ok(read)
    }
}

impl KeptSource {
    pub(crate) fn read(kept: &KeptReplication) -> Result<KeptSource> {
        Ok(KeptSource {
            options: SourceOptions::read(&kept.source)?,
            position: Position::read(&kept.position)?,
        })
    }

    pub(crate) fn to_kept(&self) -> KeptReplication {
        KeptReplication {
            source: self.options.to_bytes(),
            position: self.position.to_bytes(),
        }
    }

    /// The same as CHANGE REPLICATION SOURCE TO wants it. Another host or port begins with the first file, unless a
    /// place is given.
    ///
    /// # Errors
    /// 1776: a place and SOURCE_AUTO_POSITION; 1210 and 1624 for values that are none.
    pub(crate) fn changed(&self, change: &SourceChange) -> Result<KeptSource> {
        let mut next = self.clone();
        let options = &mut next.options;
        let gives_place = change.log_file.is_some() || change.log_pos.is_some();
        if let Some(auto) = change.auto_position {
            options.auto_position = auto;
        }
        if gives_place && options.auto_position {
            return Err(SqlError::new(
                codes::BAD_REPLICA_AUTO_POSITION,
                "Parameters SOURCE_LOG_FILE, SOURCE_LOG_POS, RELAY_LOG_FILE and RELAY_LOG_POS cannot be set when \
                 SOURCE_AUTO_POSITION is active.",
            ));
        }
        if change.host.as_ref().is_some_and(String::is_empty) {
            return Err(wrong_argument("SOURCE_HOST"));
        }
        if let Some(port) = change.port {
            options.port = u16::try_from(port).map_err(|_| wrong_argument("SOURCE_PORT"))?;
        }
        if let Some(host) = &change.host {
            options.host.clone_from(host);
        }
        if gives_place || change.host.is_some() || change.port.is_some() {
            next.position.made = 0;
        }
        if change.host.is_some() || change.port.is_some() {
            next.position.file.clear();
            next.position.position = FIRST_POSITION;
        }
        if let Some(user) = &change.user {
            options.user.clone_from(user);
        }
        if let Some(seconds) = change.connect_retry {
            options.connect_retry = seconds;
        }
        if let Some(count) = change.retry_count {
            options.retry_count = count;
        }
        if let Some(period) = change.heartbeat_ms {
            options.heartbeat_ms = period;
        }
        if let Some(get) = change.get_public_key {
            options.get_public_key = get;
        }
        if let Some(encrypts) = change.ssl {
            options.encrypts = encrypts;
        }
        if let Some(verifies) = change.ssl_verify_server_cert {
            options.tls.verifies_name = verifies;
        }
        for (file, given) in [
            (&mut options.tls.authorities, &change.ssl_ca),
            (&mut options.tls.certificate, &change.ssl_cert),
            (&mut options.tls.key, &change.ssl_key),
        ] {
            if let Some(given) = given {
                file.clone_from(given);
            }
        }
        if let Some(file) = &change.log_file {
            next.position.file.clone_from(file);
            next.position.position = FIRST_POSITION;
        }
        if let Some(position) = change.log_pos {
            next.position.position = position.max(FIRST_POSITION);
        }
        Ok(next)
    }
}

impl Password {
    /// Nothing, if there is no file.
    pub(crate) fn read_file(directory: &Path) -> Result<Password> {
        match std::fs::read_to_string(directory.join(PASSWORD_FILE)) {
            Ok(password) => Ok(Password(password)),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Password::default()),
            Err(error) => Err(of_file(&error)),
        }
    }

    /// Replaces the file whole, for the owner of the server alone.
    pub(crate) fn write_file(&self, directory: &Path) -> Result<()> {
        let path = directory.join(PASSWORD_FILE);
        let new = directory.join(format!("{PASSWORD_FILE}.new"));
        let write = || {
            let mut file = std::fs::OpenOptions::new()
                .write(true)
                .create(true)
                .truncate(true)
                .mode(0o600)
                .open(&new)?;
            file.write_all(self.0.as_bytes())?;
            file.sync_all()?;
            std::fs::rename(&new, &path)
        };
        write().map_err(|error| of_file(&error))
    }

    pub(crate) fn remove_file(directory: &Path) -> Result<()> {
        match std::fs::remove_file(directory.join(PASSWORD_FILE)) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(of_file(&error)),
            _ => Ok(()),
        }
    }
}

fn of_file(error: &std::io::Error) -> SqlError {
    SqlError::unknown(format!("the file {PASSWORD_FILE}: {error}"))
}

fn wrong_argument(option: &str) -> SqlError {
    SqlError::new(
        codes::WRONG_ARGUMENTS,
        format!("Incorrect arguments to {option}"),
    )
}

fn unreadable() -> SqlError {
    SqlError::unknown("what the catalog keeps of the replica's source cannot be read")
}

fn number(value: &str) -> Result<u64> {
    value.parse().map_err(|_| unreadable())
}

/// The names and values of lines.
fn lines(bytes: &[u8]) -> Result<Vec<(&str, &str)>> {
    let text = std::str::from_utf8(bytes).map_err(|_| unreadable())?;
    let lines = text.lines();
    lines
        .map(|line| line.split_once('=').ok_or_else(unreadable))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_reads_as_it_was_written() {
        let kept = KeptSource {
            options: SourceOptions {
                host: "db.example".into(),
                port: 3307,
                user: "a\\n\nb=c".into(),
                auto_position: true,
                runs_sql: true,
                encrypts: true,
                tls: LinkTls {
                    authorities: "/etc/a=b\n.pem".into(),
                    verifies_name: true,
                    certificate: "c".into(),
                    key: "k".into(),
                },
                filter: Filter {
                    do_databases: vec!["d".into(), "e".into()],
                    ..Filter::default()
                },
                started_by: "3e11fa47-71ca-11e1-9e33-c80aa9429562".into(),
                ..SourceOptions::default()
            },
            position: Position {
                file: "binlog.000007".into(),
                position: 1 << 40,
                gtids: "3e11fa47-71ca-11e1-9e33-c80aa9429562:1-7:9,4e11fa47-71ca-11e1-9e33-c80aa9429562:1"
                    .parse()
                    .unwrap(),
                made: 5,
            },
        };
        assert_eq!(KeptSource::read(&kept.to_kept()).unwrap(), kept);
    }

    #[test]
    fn another_source_begins_at_its_first_file() {
        let kept = KeptSource {
            position: Position {
                file: "binlog.000007".into(),
                position: 99,
                ..Position::default()
            },
            ..KeptSource::default()
        };
        let host = |change: SourceChange| kept.changed(&change);
        let moved = host(SourceChange {
            host: Some("b".into()),
            ..SourceChange::default()
        });
        assert_eq!(moved.unwrap().position.file, "");
        let placed = host(SourceChange {
            host: Some("b".into()),
            log_file: Some("binlog.000002".into()),
            log_pos: Some(157),
            ..SourceChange::default()
        });
        let placed = placed.unwrap().position;
        assert_eq!(
            (placed.file.as_str(), placed.position),
            ("binlog.000002", 157)
        );
        let both = host(SourceChange {
            auto_position: Some(true),
            log_pos: Some(157),
            ..SourceChange::default()
        });
        assert_eq!(both.unwrap_err().code, 1776);
    }
}
