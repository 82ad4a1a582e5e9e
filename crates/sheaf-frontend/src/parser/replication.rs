//! CHANGE REPLICATION SOURCE TO, START REPLICA, STOP REPLICA and RESET REPLICA, with the spellings before MySQL 8.0.23.

use sqlparser::ast;
use sqlparser::tokenizer::Token;

use super::{ParseResult, StatementParser};
use crate::error::SqlError;

/// What a statement wants of the server as a replica.
#[derive(Clone, Debug)]
pub enum ReplicationStatement {
    ChangeSource(Box<SourceChange>),
    Start(ReplicaThreads),
    Stop(ReplicaThreads),
    Reset {
        /// The source is forgotten, too.
        all: bool,
    },
}

/// Threads that a statement names; without a name both are meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplicaThreads {
    /// The one that receives.
    pub io: bool,
    /// The one that applies.
    pub sql: bool,
}

/// What CHANGE REPLICATION SOURCE TO says; `None` stays as it is.
#[derive(Clone, Debug, Default)]
pub struct SourceChange {
    pub host: Option<String>,
    pub port: Option<u64>,
    pub user: Option<String>,
    pub password: Option<String>,
    pub log_file: Option<String>,
    pub log_pos: Option<u64>,
    pub auto_position: Option<bool>,
    pub connect_retry: Option<u64>,
    pub retry_count: Option<u64>,
    /// In milliseconds.
    pub heartbeat_ms: Option<u64>,
    pub get_public_key: Option<bool>,
}

/// Options of MySQL's that this version does not have; each may begin with MASTER_ instead.
const UNKNOWN_OPTIONS: [&str; 28] = [
    "SOURCE_BIND",
    "SOURCE_DELAY",
    "SOURCE_COMPRESSION_ALGORITHMS",
    "SOURCE_ZSTD_COMPRESSION_LEVEL",
    "SOURCE_SSL_CA",
    "SOURCE_SSL_CAPATH",
    "SOURCE_SSL_CERT",
    "SOURCE_SSL_CRL",
    "SOURCE_SSL_CRLPATH",
    "SOURCE_SSL_KEY",
    "SOURCE_SSL_CIPHER",
    "SOURCE_SSL_VERIFY_SERVER_CERT",
    "SOURCE_TLS_VERSION",
    "SOURCE_TLS_CIPHERSUITES",
    "SOURCE_PUBLIC_KEY_PATH",
    "SOURCE_CONNECTION_AUTO_FAILOVER",
    "SOURCE_USE_GTID",
    "SOURCE_DEMOTE_TO_SLAVE",
    "NETWORK_NAMESPACE",
    "RELAY_LOG_FILE",
    "RELAY_LOG_POS",
    "IGNORE_SERVER_IDS",
    "PRIVILEGE_CHECKS_USER",
    "REQUIRE_ROW_FORMAT",
    "REQUIRE_TABLE_PRIMARY_KEY_CHECK",
    "ASSIGN_GTIDS_TO_ANONYMOUS_TRANSACTIONS",
    "GTID_ONLY",
    "DO_DOMAIN_IDS",
];

/// SOURCE_HEARTBEAT_PERIOD in seconds, at most.
const MAX_HEARTBEAT_SECONDS: f64 = 4_294_967.0;

impl StatementParser<'_> {
    /// option = value, ... [FOR CHANNEL name], behind CHANGE REPLICATION SOURCE TO.
    pub(super) fn change_source(&mut self) -> ParseResult<ReplicationStatement> {
        let mut change = SourceChange::default();
        loop {
            self.source_option(&mut change)?;
            if !self.accept_token(&Token::Comma) {
                break;
            }
        }
        self.channel()?;
        let change = Box::new(change);
        Ok(ReplicationStatement::ChangeSource(change))
    }

    fn source_option(&mut self, change: &mut SourceChange) -> ParseResult<()> {
        let written = self.identifier()?.to_ascii_uppercase();
        let name = match written.strip_prefix("MASTER_") {
            Some(rest) => format!("SOURCE_{rest}"),
            None => written.clone(),
        };
        self.expect_token(&Token::Eq)?;
        match name.as_str() {
            "SOURCE_HOST" => change.host = Some(self.string()?),
            "SOURCE_PORT" => change.port = Some(self.number()?),
            "SOURCE_USER" => change.user = Some(self.string()?),
            "SOURCE_PASSWORD" => change.password = Some(self.string()?),
            "SOURCE_LOG_FILE" => change.log_file = Some(self.string()?),
            "SOURCE_LOG_POS" => change.log_pos = Some(self.number()?),
            "SOURCE_AUTO_POSITION" => change.auto_position = Some(self.number()? != 0),
            "SOURCE_CONNECT_RETRY" => change.connect_retry = Some(self.number()?),
            "SOURCE_RETRY_COUNT" => change.retry_count = Some(self.number()?),
            "GET_SOURCE_PUBLIC_KEY" | "GET_MASTER_PUBLIC_KEY" => {
                change.get_public_key = Some(self.number()? != 0);
            }
            "SOURCE_HEARTBEAT_PERIOD" => change.heartbeat_ms = Some(self.heartbeat()?),
            // There is no TLS to the source, so that 0 is what is so.
            "SOURCE_SSL" => {
                if self.number()? != 0 {
                    return Err(SqlError::not_supported_yet(format!("{written} = 1")).into());
                }
            }
            name if UNKNOWN_OPTIONS.contains(&name) => {
                return Err(SqlError::not_supported_yet(written).into());
            }
            _ => return self.unexpected("an option of the source"),
        }
        Ok(())
    }

    fn heartbeat(&mut self) -> ParseResult<u64> {
        let seconds = match self.tokens.parse_value()?.value {
            ast::Value::Number(digits, _) => digits.to_string().parse::<f64>().ok(),
            _ => None,
        };
        match seconds.filter(|seconds| (0.0..=MAX_HEARTBEAT_SECONDS).contains(seconds)) {
            Some(seconds) => Ok((seconds * 1000.0).round() as u64),
            None => self.unexpected("seconds"),
        }
    }

    /// [IO_THREAD | SQL_THREAD, ...] [FOR CHANNEL name], behind START REPLICA.
    pub(super) fn start_replica(&mut self) -> ParseResult<ReplicationStatement> {
        let threads = self.replica_threads()?;
        for what in ["UNTIL", "USER", "PASSWORD", "DEFAULT_AUTH", "PLUGIN_DIR"] {
            if self.peek(what) {
                let what = format!("START REPLICA {what}");
                return Err(SqlError::not_supported_yet(what).into());
            }
        }
        self.channel()?;
        Ok(ReplicationStatement::Start(threads))
    }

    /// [IO_THREAD | SQL_THREAD, ...] [FOR CHANNEL name], behind STOP REPLICA.
    pub(super) fn stop_replica(&mut self) -> ParseResult<ReplicationStatement> {
        let threads = self.replica_threads()?;
        self.channel()?;
        Ok(ReplicationStatement::Stop(threads))
    }

    /// `RESET REPLICA [ALL] [FOR CHANNEL name]`, behind REPLICA.
    pub(super) fn reset_replica(&mut self) -> ParseResult<ReplicationStatement> {
        let all = self.accept("ALL");
        self.channel()?;
        Ok(ReplicationStatement::Reset { all })
    }

    fn replica_threads(&mut self) -> ParseResult<ReplicaThreads> {
        let mut threads = ReplicaThreads {
            io: false,
            sql: false,
        };
        let mut is_wanted = false;
        loop {
            match self.accept_one_of(&["IO_THREAD", "RELAY_THREAD", "SQL_THREAD"]) {
                Some("SQL_THREAD") => threads.sql = true,
                Some(_) => threads.io = true,
                None if is_wanted => return self.unexpected("IO_THREAD or SQL_THREAD"),
                None => break,
            }
            is_wanted = self.accept_token(&Token::Comma);
            if !is_wanted {
                break;
            }
        }
        Ok(match threads.io || threads.sql {
            true => threads,
            false => ReplicaThreads {
                io: true,
                sql: true,
            },
        })
    }

    /// FOR CHANNEL ''. There is one channel, the one without a name.
    pub(super) fn channel(&mut self) -> ParseResult<()> {
        if self.accept("FOR CHANNEL") && !self.string()?.is_empty() {
            return Err(SqlError::not_supported_yet("replication channels with names").into());
        }
        Ok(())
    }
}
