//! CHANGE REPLICATION SOURCE TO, START REPLICA, STOP REPLICA and RESET REPLICA, with the spellings before MySQL 8.0.23.

use sheaf_types::error::codes;
use sqlparser::ast;
use sqlparser::tokenizer::Token;

use super::{ParseResult, StatementParser};
use crate::error::SqlError;

/// What a statement wants of the server as a replica.
#[derive(Clone, Debug)]
pub enum ReplicationStatement {
    ChangeSource(Box<SourceChange>),
    ChangeFilter(Vec<FilterRule>),
    Start {
        threads: ReplicaThreads,
        /// Where the applier stops by itself.
        until: Option<ReplicaUntil>,
    },
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

/// What CHANGE REPLICATION FILTER says: all names of one kind of rules.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FilterRule {
    DoDatabases(Vec<String>),
    IgnoreDatabases(Vec<String>),
    /// Databases and tables.
    DoTables(Vec<(String, String)>),
    IgnoreTables(Vec<(String, String)>),
    /// Patterns of `database.table`.
    DoPatterns(Vec<String>),
    IgnorePatterns(Vec<String>),
}

/// What START REPLICA UNTIL says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReplicaUntil {
    /// In front of the first transaction of a set.
    BeforeGtids(String),
    /// When all transactions of a set are applied.
    AfterGtids(String),
    /// Behind what the source has written up to a position.
    Place { file: String, position: u64 },
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
    pub ssl: Option<bool>,
    /// Files; empty: none.
    pub ssl_ca: Option<String>,
    pub ssl_cert: Option<String>,
    pub ssl_key: Option<String>,
    pub ssl_verify_server_cert: Option<bool>,
}

/// Options of MySQL's that this version does not have; each may begin with MASTER_ instead.
const UNKNOWN_OPTIONS: [&str; 24] = [
    "SOURCE_BIND",
    "SOURCE_DELAY",
    "SOURCE_COMPRESSION_ALGORITHMS",
    "SOURCE_ZSTD_COMPRESSION_LEVEL",
    "SOURCE_SSL_CAPATH",
    "SOURCE_SSL_CRL",
    "SOURCE_SSL_CRLPATH",
    "SOURCE_SSL_CIPHER",
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
            "SOURCE_SSL" => change.ssl = Some(self.number()? != 0),
            "SOURCE_SSL_CA" => change.ssl_ca = Some(self.string()?),
            "SOURCE_SSL_CERT" => change.ssl_cert = Some(self.string()?),
            "SOURCE_SSL_KEY" => change.ssl_key = Some(self.string()?),
            "SOURCE_SSL_VERIFY_SERVER_CERT" => {
                change.ssl_verify_server_cert = Some(self.number()? != 0);
            }
            name if UNKNOWN_OPTIONS.contains(&name) => {
                return Err(SqlError::not_supported_yet(written).into());
            }
            _ => return self.unexpected("an option of the source"),
        }
        Ok(())
    }

    /// `rule = (name, ...), ... [FOR CHANNEL name]`, behind CHANGE REPLICATION FILTER. Of several rules of a kind the
    /// last one counts.
    pub(super) fn change_filter(&mut self) -> ParseResult<ReplicationStatement> {
        let mut rules = Vec::new();
        loop {
            let name = self.identifier()?.to_ascii_uppercase();
            self.expect_token(&Token::Eq)?;
            rules.push(match name.as_str() {
                "REPLICATE_DO_DB" => FilterRule::DoDatabases(self.names(Self::identifier)?),
                "REPLICATE_IGNORE_DB" => FilterRule::IgnoreDatabases(self.names(Self::identifier)?),
                "REPLICATE_DO_TABLE" => FilterRule::DoTables(self.names(Self::full_name)?),
                "REPLICATE_IGNORE_TABLE" => FilterRule::IgnoreTables(self.names(Self::full_name)?),
                "REPLICATE_WILD_DO_TABLE" => {
                    FilterRule::DoPatterns(self.names(Self::pattern_of_table)?)
                }
                "REPLICATE_WILD_IGNORE_TABLE" => {
                    FilterRule::IgnorePatterns(self.names(Self::pattern_of_table)?)
                }
                "REPLICATE_REWRITE_DB" => {
                    return Err(SqlError::not_supported_yet(name).into());
                }
                _ => return self.unexpected("a rule of the filter"),
            });
            if !self.accept_token(&Token::Comma) {
                break;
            }
        }
        self.channel()?;
        Ok(ReplicationStatement::ChangeFilter(rules))
    }

    /// Names in parentheses; none is possible.
    fn names<T>(&mut self, name: impl FnMut(&mut Self) -> ParseResult<T>) -> ParseResult<Vec<T>> {
        self.expect_token(&Token::LParen)?;
        if self.accept_token(&Token::RParen) {
            return Ok(Vec::new());
        }
        let names = self.list(name)?;
        self.expect_token(&Token::RParen)?;
        Ok(names)
    }

    fn full_name(&mut self) -> ParseResult<(String, String)> {
        let name = self.table_name()?;
        match name.database {
            Some(database) => Ok((database, name.table)),
            None => self.unexpected("a table with its database"),
        }
    }

    /// Error 3067 for what does not name a database.
    fn pattern_of_table(&mut self) -> ParseResult<String> {
        let pattern = self.string()?;
        match pattern.contains('.') {
            true => Ok(pattern),
            false => Err(SqlError::new(
                codes::INVALID_RPL_WILD_TABLE_FILTER_PATTERN,
                "Supplied filter list contains a value which is not in the required format \
                 'db_pattern.table_pattern'",
            )
            .into()),
        }
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
        let until = match self.accept("UNTIL") {
            true => Some(self.replica_until(threads)?),
            false => None,
        };
        for what in ["USER", "PASSWORD", "DEFAULT_AUTH", "PLUGIN_DIR"] {
            if self.peek(what) {
                let what = format!("START REPLICA {what}");
                return Err(SqlError::not_supported_yet(what).into());
            }
        }
        self.channel()?;
        Ok(ReplicationStatement::Start { threads, until })
    }

    /// What stands behind UNTIL. It is about the applier.
    fn replica_until(&mut self, threads: ReplicaThreads) -> ParseResult<ReplicaUntil> {
        let wrong = || {
            SqlError::new(
                codes::BAD_REPLICA_UNTIL_COND,
                "Incorrect parameter or combination of parameters for START REPLICA UNTIL",
            )
        };
        if !threads.sql {
            return Err(wrong().into());
        }
        let (mut file, mut position) = (None, None);
        loop {
            let name = self.identifier()?.to_ascii_uppercase();
            if ["SQL_AFTER_MTS_GAPS", "RELAY_LOG_FILE", "RELAY_LOG_POS"].contains(&name.as_str()) {
                let what = format!("START REPLICA UNTIL {name}");
                return Err(SqlError::not_supported_yet(what).into());
            }
            self.expect_token(&Token::Eq)?;
            match name.as_str() {
                "SQL_BEFORE_GTIDS" if file.is_none() && position.is_none() => {
                    return Ok(ReplicaUntil::BeforeGtids(self.string()?));
                }
                "SQL_AFTER_GTIDS" if file.is_none() && position.is_none() => {
                    return Ok(ReplicaUntil::AfterGtids(self.string()?));
                }
                "SOURCE_LOG_FILE" | "MASTER_LOG_FILE" => file = Some(self.string()?),
                "SOURCE_LOG_POS" | "MASTER_LOG_POS" => position = Some(self.number()?),
                _ => return self.unexpected("where the applier stops"),
            }
            if !self.accept_token(&Token::Comma) {
                break;
            }
        }
        match (file, position) {
            (Some(file), Some(position)) if !file.is_empty() => {
                Ok(ReplicaUntil::Place { file, position })
            }
            _ => Err(wrong().into()),
        }
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
