//! The words that are keywords to MySQL's lexer, as the texts of digests show them.
//!
//! Several words can be one token to MySQL, and a digest shows the last of their names: INT is INTEGER, and DISTINCT is
//! DISTINCTROW. A word that is no keyword here is a name, and keeps its letters.
//!
//! Reference: MySQL 9.7, `information_schema.KEYWORDS`, and what `STATEMENT_DIGEST_TEXT()` says of each.

use std::sync::LazyLock;

use crate::parser::word_table::WordTable;

/// The longest of all.
const LONGEST: usize = "ASSIGN_GTIDS_TO_ANONYMOUS_TRANSACTIONS".len();

/// What a digest shows of a word; `None` if it is a name. `is_call`: a parenthesis follows, so that it may be a
/// function of the grammar.
pub(super) fn keyword(word: &str, is_call: bool) -> Option<&'static str> {
    let found = WORDS.find(word);
    let found = found.or_else(|| is_call.then(|| CALLS.find(word)).flatten());
    found.copied()
}

/// Keywords, and functions of the grammar, with what is shown of them.
static WORDS: LazyLock<WordTable<&str>> = LazyLock::new(|| shown(&KEYWORDS));
static CALLS: LazyLock<WordTable<&str>> = LazyLock::new(|| shown(&FUNCTIONS));

fn shown(words: &[&'static str]) -> WordTable<&'static str> {
    WordTable::new(words.iter().map(|word| {
        let alias = ALIASES.binary_search_by(|(name, _)| name.cmp(word));
        (*word, alias.map_or(*word, |at| ALIASES[at].1))
    }))
}

/// The same of a word in a comment with hints.
pub(super) fn hint_keyword(word: &str) -> Option<&'static str> {
    with_upper(word, |upper| find(&HINTS, upper))
}

/// Whether `_name` says what a literal is written in.
pub(super) fn is_introducer(word: &str) -> bool {
    let name = word.strip_prefix('_');
    name.is_some_and(|name| with_upper(name, |upper| find(&CHARACTER_SETS, upper)).is_some())
}

fn find(words: &[&'static str], upper: &str) -> Option<&'static str> {
    let at = words.binary_search(&upper).ok()?;
    words.get(at).copied()
}

fn with_upper<T>(word: &str, then: impl FnOnce(&str) -> Option<T>) -> Option<T> {
    let mut upper = [0; LONGEST];
    let upper = upper.get_mut(..word.len())?;
    upper.copy_from_slice(word.as_bytes());
    upper.make_ascii_uppercase();
    then(std::str::from_utf8(upper).ok()?)
}

/// Words that are shown as other ones of the same meaning.
#[rustfmt::skip]
const ALIASES: [(&str, &str); 42] = [
    ("ANY", "SOME"),
    ("BIGINT", "INT8"),
    ("CHAR", "CHARACTER"),
    ("COLUMNS", "FIELDS"),
    ("CURRENT_DATE", "CURDATE"),
    ("CURRENT_TIME", "CURTIME"),
    ("CURRENT_TIMESTAMP", "NOW"),
    ("DATABASE", "SCHEMA"),
    ("DATABASES", "SCHEMAS"),
    ("DAY", "SQL_TSI_DAY"),
    ("DEC", "DECIMAL"),
    ("DESCRIBE", "EXPLAIN"),
    ("DISTINCT", "DISTINCTROW"),
    ("DOUBLE", "FLOAT8"),
    ("FLOAT", "FLOAT4"),
    ("GEOMCOLLECTION", "GEOMETRYCOLLECTION"),
    ("HOUR", "SQL_TSI_HOUR"),
    ("INT", "INTEGER"),
    ("INT1", "TINYINT"),
    ("INT2", "SMALLINT"),
    ("INT3", "MIDDLEINT"),
    ("INT4", "INTEGER"),
    ("IO_THREAD", "RELAY_THREAD"),
    ("LOCALTIME", "NOW"),
    ("LOCALTIMESTAMP", "NOW"),
    ("MEDIUMINT", "MIDDLEINT"),
    ("MID", "SUBSTRING"),
    ("MINUTE", "SQL_TSI_MINUTE"),
    ("MONTH", "SQL_TSI_MONTH"),
    ("NDB", "NDBCLUSTER"),
    ("QUARTER", "SQL_TSI_QUARTER"),
    ("REGEXP", "RLIKE"),
    ("SECOND", "SQL_TSI_SECOND"),
    ("SESSION_USER", "SYSTEM_USER"),
    ("SQL_TSI_WEEK", "WEEK"),
    ("SQL_TSI_YEAR", "YEAR"),
    ("STD", "STDDEV_POP"),
    ("STDDEV", "STDDEV_POP"),
    ("SUBSTR", "SUBSTRING"),
    ("USER", "SYSTEM_USER"),
    ("VARCHAR", "VARCHARACTER"),
    ("VARIANCE", "VAR_POP"),
];

/// Keywords where a parenthesis follows at once.
#[rustfmt::skip]
const FUNCTIONS: [&str; 36] = [
    "ADDDATE", "BIT_AND", "BIT_OR", "BIT_XOR", "CAST", "COUNT", "CURDATE", "CURTIME", "DATE_ADD", "DATE_SUB",
    "EXTRACT", "GROUP_CONCAT", "JSON_ARRAYAGG", "JSON_DUALITY_OBJECT", "JSON_OBJECTAGG", "MAX", "MID", "MIN", "NOW",
    "POSITION", "SESSION_USER", "STD", "STDDEV", "STDDEV_POP", "STDDEV_SAMP", "ST_COLLECT", "SUBDATE", "SUBSTR",
    "SUBSTRING", "SUM", "SYSDATE", "SYSTEM_USER", "TRIM", "VARIANCE", "VAR_POP", "VAR_SAMP",
];

/// Keywords of comments with hints.
#[rustfmt::skip]
const HINTS: [&str; 42] = [
    "BKA", "BNL", "DERIVED_CONDITION_PUSHDOWN", "DUPSWEEDOUT", "FIRSTMATCH", "GROUP_INDEX", "HASH_JOIN", "INDEX",
    "INDEX_MERGE", "INTOEXISTS", "JOIN_FIXED_ORDER", "JOIN_INDEX", "JOIN_ORDER", "JOIN_PREFIX", "JOIN_SUFFIX",
    "LOOSESCAN", "MATERIALIZATION", "MAX_EXECUTION_TIME", "MERGE", "MRR", "NO_BKA", "NO_BNL",
    "NO_DERIVED_CONDITION_PUSHDOWN", "NO_GROUP_INDEX", "NO_HASH_JOIN", "NO_ICP", "NO_INDEX", "NO_INDEX_MERGE",
    "NO_JOIN_INDEX", "NO_MERGE", "NO_MRR", "NO_ORDER_INDEX", "NO_RANGE_OPTIMIZATION", "NO_SEMIJOIN", "NO_SKIP_SCAN",
    "ORDER_INDEX", "QB_NAME", "RESOURCE_GROUP", "SEMIJOIN", "SET_VAR", "SKIP_SCAN", "SUBQUERY",
];

/// What may stand behind the underscore of an introducer.
#[rustfmt::skip]
const CHARACTER_SETS: [&str; 42] = [
    "ARMSCII8", "ASCII", "BIG5", "BINARY", "CP1250", "CP1251", "CP1256", "CP1257", "CP850", "CP852", "CP866", "CP932",
    "DEC8", "EUCJPMS", "EUCKR", "GB18030", "GB2312", "GBK", "GEOSTD8", "GREEK", "HEBREW", "HP8", "KEYBCS2", "KOI8R",
    "KOI8U", "LATIN1", "LATIN2", "LATIN5", "LATIN7", "MACCE", "MACROMAN", "SJIS", "SWE7", "TIS620", "UCS2", "UJIS",
    "UTF16", "UTF16LE", "UTF32", "UTF8", "UTF8MB3", "UTF8MB4",
];

/// Keywords wherever they are no part of a qualified name.
#[rustfmt::skip]
const KEYWORDS: [&str; 760] = [
    "ABSENT", "ACCESSIBLE", "ACCOUNT", "ACTION", "ACTIVE", "ADD", "ADMIN", "AFTER", "AGAINST", "AGGREGATE",
    "ALGORITHM", "ALL", "ALLOW_MISSING_FILES", "ALTER", "ALWAYS", "ANALYZE", "AND", "ANY", "ARRAY", "AS", "ASC",
    "ASCII", "ASENSITIVE", "ASSIGN_GTIDS_TO_ANONYMOUS_TRANSACTIONS", "AT", "ATTRIBUTE", "AUTHENTICATION", "AUTO",
    "AUTOEXTEND_SIZE", "AUTO_INCREMENT", "AUTO_REFRESH", "AUTO_REFRESH_SOURCE", "AVG", "AVG_ROW_LENGTH", "BACKUP",
    "BEFORE", "BEGIN", "BERNOULLI", "BETWEEN", "BIGINT", "BINARY", "BINLOG", "BIT", "BLOB", "BLOCK", "BOOL",
    "BOOLEAN", "BOTH", "BTREE", "BUCKETS", "BULK", "BY", "BYTE", "CACHE", "CALL", "CASCADE", "CASCADED", "CASE",
    "CATALOG_NAME", "CHAIN", "CHALLENGE_RESPONSE", "CHANGE", "CHANGED", "CHANNEL", "CHAR", "CHARACTER", "CHARSET",
    "CHECK", "CHECKSUM", "CIPHER", "CLASS_ORIGIN", "CLIENT", "CLONE", "CLOSE", "COALESCE", "CODE", "COLLATE",
    "COLLATION", "COLUMN", "COLUMNS", "COLUMN_FORMAT", "COLUMN_NAME", "COMMENT", "COMMIT", "COMMITTED", "COMPACT",
    "COMPLETION", "COMPONENT", "COMPRESSED", "COMPRESSION", "CONCURRENT", "CONDITION", "CONNECTION", "CONSISTENT",
    "CONSTRAINT", "CONSTRAINT_CATALOG", "CONSTRAINT_NAME", "CONSTRAINT_SCHEMA", "CONTAINS", "CONTEXT", "CONTINUE",
    "CONVERT", "CPU", "CREATE", "CROSS", "CUBE", "CUME_DIST", "CURRENT", "CURRENT_DATE", "CURRENT_TIME",
    "CURRENT_TIMESTAMP", "CURRENT_USER", "CURSOR", "CURSOR_NAME", "DATA", "DATABASE", "DATABASES", "DATAFILE", "DATE",
    "DATETIME", "DAY", "DAY_HOUR", "DAY_MICROSECOND", "DAY_MINUTE", "DAY_SECOND", "DEALLOCATE", "DEC", "DECIMAL",
    "DECLARE", "DEFAULT", "DEFAULT_AUTH", "DEFINER", "DEFINITION", "DELAYED", "DELAY_KEY_WRITE", "DELETE",
    "DENSE_RANK", "DESC", "DESCRIBE", "DESCRIPTION", "DETERMINISTIC", "DIAGNOSTICS", "DIRECTORY", "DISABLE",
    "DISCARD", "DISK", "DISTINCT", "DISTINCTROW", "DIV", "DO", "DOUBLE", "DROP", "DUAL", "DUALITY", "DUMPFILE",
    "DUPLICATE", "DYNAMIC", "EACH", "ELSE", "ELSEIF", "EMPTY", "ENABLE", "ENCLOSED", "ENCRYPTION", "END", "ENDS",
    "ENFORCED", "ENGINE", "ENGINES", "ENGINE_ATTRIBUTE", "ENUM", "ERROR", "ERRORS", "ESCAPE", "ESCAPED", "EVENT",
    "EVENTS", "EVERY", "EXCEPT", "EXCHANGE", "EXCLUDE", "EXECUTE", "EXISTS", "EXIT", "EXPANSION", "EXPIRE", "EXPLAIN",
    "EXPORT", "EXTENDED", "EXTENT_SIZE", "EXTERNAL", "EXTERNAL_FORMAT", "FACTOR", "FAILED_LOGIN_ATTEMPTS", "FALSE",
    "FAST", "FAULTS", "FETCH", "FIELDS", "FILE", "FILES", "FILE_BLOCK_SIZE", "FILE_FORMAT", "FILE_NAME",
    "FILE_PATTERN", "FILE_PREFIX", "FILTER", "FINISH", "FIRST", "FIRST_VALUE", "FIXED", "FLOAT", "FLOAT4", "FLOAT8",
    "FLUSH", "FOLLOWING", "FOLLOWS", "FOR", "FORCE", "FOREIGN", "FORMAT", "FOUND", "FROM", "FULL", "FULLTEXT",
    "FUNCTION", "GENERAL", "GENERATE", "GENERATED", "GEOMCOLLECTION", "GEOMETRY", "GEOMETRYCOLLECTION", "GET",
    "GET_FORMAT", "GET_SOURCE_PUBLIC_KEY", "GLOBAL", "GRANT", "GRANTS", "GROUP", "GROUPING", "GROUPS",
    "GROUP_REPLICATION", "GTIDS", "GTID_ONLY", "GUIDED", "HANDLER", "HASH", "HAVING", "HEADER", "HELP",
    "HIGH_PRIORITY", "HISTOGRAM", "HISTORY", "HOST", "HOSTS", "HOUR", "HOUR_MICROSECOND", "HOUR_MINUTE",
    "HOUR_SECOND", "IDENTIFIED", "IF", "IGNORE", "IGNORE_SERVER_IDS", "IMPORT", "IN", "INACTIVE", "INDEX", "INDEXES",
    "INFILE", "INITIAL", "INITIAL_SIZE", "INITIATE", "INNER", "INOUT", "INSENSITIVE", "INSERT", "INSERT_METHOD",
    "INSTALL", "INSTANCE", "INT", "INT1", "INT2", "INT3", "INT4", "INT8", "INTEGER", "INTERSECT", "INTERVAL", "INTO",
    "INVISIBLE", "INVOKER", "IO", "IO_AFTER_GTIDS", "IO_BEFORE_GTIDS", "IO_THREAD", "IPC", "IS", "ISOLATION",
    "ISSUER", "ITERATE", "JOIN", "JSON", "JSON_TABLE", "JSON_VALUE", "KEY", "KEYRING", "KEYS", "KEY_BLOCK_SIZE",
    "KILL", "LAG", "LANGUAGE", "LAST", "LAST_VALUE", "LATERAL", "LEAD", "LEADING", "LEAVE", "LEAVES", "LEFT", "LESS",
    "LEVEL", "LIBRARY", "LIKE", "LIMIT", "LINEAR", "LINES", "LINESTRING", "LIST", "LOAD", "LOCAL", "LOCALTIME",
    "LOCALTIMESTAMP", "LOCK", "LOCKED", "LOCKS", "LOG", "LOGFILE", "LOGS", "LONG", "LONGBLOB", "LONGTEXT", "LOOP",
    "LOW_PRIORITY", "MANUAL", "MASKING", "MASTER", "MATCH", "MATERIALIZED", "MAXVALUE", "MAX_CONNECTIONS_PER_HOUR",
    "MAX_QUERIES_PER_HOUR", "MAX_ROWS", "MAX_SIZE", "MAX_UPDATES_PER_HOUR", "MAX_USER_CONNECTIONS", "MEDIUM",
    "MEDIUMBLOB", "MEDIUMINT", "MEDIUMTEXT", "MEMBER", "MEMORY", "MERGE", "MESSAGE_TEXT", "MICROSECOND", "MIDDLEINT",
    "MIGRATE", "MINUTE", "MINUTE_MICROSECOND", "MINUTE_SECOND", "MIN_ROWS", "MOD", "MODE", "MODIFIES", "MODIFY",
    "MONTH", "MULTILINESTRING", "MULTIPOINT", "MULTIPOLYGON", "MUTEX", "MYSQL_ERRNO", "NAME", "NAMES", "NATIONAL",
    "NATURAL", "NCHAR", "NDB", "NDBCLUSTER", "NESTED", "NETWORK_NAMESPACE", "NEVER", "NEW", "NEXT", "NO", "NODEGROUP",
    "NONE", "NOT", "NOWAIT", "NO_WAIT", "NO_WRITE_TO_BINLOG", "NTH_VALUE", "NTILE", "NULL", "NULLS", "NUMBER",
    "NUMERIC", "NVARCHAR", "OF", "OFF", "OFFSET", "OJ", "OLD", "ON", "ONE", "ONLY", "OPEN", "OPTIMIZE",
    "OPTIMIZER_COSTS", "OPTION", "OPTIONAL", "OPTIONALLY", "OPTIONS", "OR", "ORDER", "ORDINALITY", "ORGANIZATION",
    "OTHERS", "OUT", "OUTER", "OUTFILE", "OVER", "OWNER", "PACK_KEYS", "PAGE", "PARALLEL", "PARAMETERS", "PARSER",
    "PARSE_TREE", "PARTIAL", "PARTITION", "PARTITIONING", "PARTITIONS", "PASSWORD", "PASSWORD_LOCK_TIME", "PATH",
    "PERCENT_RANK", "PERSIST", "PERSIST_ONLY", "PHASE", "PLUGIN", "PLUGINS", "PLUGIN_DIR", "POINT", "POLICY",
    "POLYGON", "PORT", "PRECEDES", "PRECEDING", "PRECISION", "PREPARE", "PRESERVE", "PREV", "PRIMARY", "PRIVILEGES",
    "PRIVILEGE_CHECKS_USER", "PROCEDURE", "PROCESS", "PROCESSLIST", "PROFILE", "PROFILES", "PROXY", "PURGE",
    "QUALIFY", "QUARTER", "QUERY", "QUICK", "RANDOM", "RANGE", "RANK", "READ", "READS", "READ_ONLY", "READ_WRITE",
    "REAL", "REBUILD", "RECOVER", "RECURSIVE", "REDO_BUFFER_SIZE", "REDUNDANT", "REFERENCE", "REFERENCES", "REGEXP",
    "REGISTRATION", "RELATIONAL", "RELAY", "RELAYLOG", "RELAY_LOG_FILE", "RELAY_LOG_POS", "RELAY_THREAD", "RELEASE",
    "RELOAD", "REMOVE", "RENAME", "REORGANIZE", "REPAIR", "REPEAT", "REPEATABLE", "REPLACE", "REPLICA", "REPLICAS",
    "REPLICATE_DO_DB", "REPLICATE_DO_TABLE", "REPLICATE_IGNORE_DB", "REPLICATE_IGNORE_TABLE", "REPLICATE_REWRITE_DB",
    "REPLICATE_WILD_DO_TABLE", "REPLICATE_WILD_IGNORE_TABLE", "REPLICATION", "REQUIRE", "REQUIRE_ROW_FORMAT",
    "REQUIRE_TABLE_PRIMARY_KEY_CHECK", "RESET", "RESIGNAL", "RESOURCE", "RESPECT", "RESTART", "RESTORE", "RESTRICT",
    "RESUME", "RETAIN", "RETURN", "RETURNED_SQLSTATE", "RETURNING", "RETURNS", "REUSE", "REVERSE", "REVOKE", "RIGHT",
    "RLIKE", "ROLE", "ROLLBACK", "ROLLUP", "ROTATE", "ROUTINE", "ROW", "ROWS", "ROW_COUNT", "ROW_FORMAT",
    "ROW_NUMBER", "RTREE", "S3", "SAVEPOINT", "SCHEDULE", "SCHEMA", "SCHEMAS", "SCHEMA_NAME", "SECOND", "SECONDARY",
    "SECONDARY_ENGINE", "SECONDARY_ENGINE_ATTRIBUTE", "SECONDARY_LOAD", "SECONDARY_UNLOAD", "SECOND_MICROSECOND",
    "SECURITY", "SELECT", "SENSITIVE", "SEPARATOR", "SERIAL", "SERIALIZABLE", "SERVER", "SESSION", "SET", "SETS",
    "SHARE", "SHOW", "SHUTDOWN", "SIGNAL", "SIGNED", "SIMPLE", "SKIP", "SLAVE", "SLOW", "SMALLINT", "SNAPSHOT",
    "SOCKET", "SOME", "SONAME", "SOUNDS", "SOURCE", "SOURCE_AUTO_POSITION", "SOURCE_BIND",
    "SOURCE_COMPRESSION_ALGORITHMS", "SOURCE_CONNECTION_AUTO_FAILOVER", "SOURCE_CONNECT_RETRY", "SOURCE_DELAY",
    "SOURCE_HEARTBEAT_PERIOD", "SOURCE_HOST", "SOURCE_LOG_FILE", "SOURCE_LOG_POS", "SOURCE_PASSWORD", "SOURCE_PORT",
    "SOURCE_PUBLIC_KEY_PATH", "SOURCE_RETRY_COUNT", "SOURCE_SSL", "SOURCE_SSL_CA", "SOURCE_SSL_CAPATH",
    "SOURCE_SSL_CERT", "SOURCE_SSL_CIPHER", "SOURCE_SSL_CRL", "SOURCE_SSL_CRLPATH", "SOURCE_SSL_KEY",
    "SOURCE_SSL_VERIFY_SERVER_CERT", "SOURCE_TLS_CIPHERSUITES", "SOURCE_TLS_VERSION", "SOURCE_USER",
    "SOURCE_ZSTD_COMPRESSION_LEVEL", "SPATIAL", "SPECIFIC", "SQL", "SQLEXCEPTION", "SQLSTATE", "SQLWARNING",
    "SQL_AFTER_GTIDS", "SQL_AFTER_MTS_GAPS", "SQL_BEFORE_GTIDS", "SQL_BIG_RESULT", "SQL_BUFFER_RESULT",
    "SQL_CALC_FOUND_ROWS", "SQL_NO_CACHE", "SQL_SMALL_RESULT", "SQL_THREAD", "SQL_TSI_DAY", "SQL_TSI_HOUR",
    "SQL_TSI_MINUTE", "SQL_TSI_MONTH", "SQL_TSI_QUARTER", "SQL_TSI_SECOND", "SQL_TSI_WEEK", "SQL_TSI_YEAR", "SRID",
    "SSL", "STACKED", "START", "STARTING", "STARTS", "STATS_AUTO_RECALC", "STATS_PERSISTENT", "STATS_SAMPLE_PAGES",
    "STATUS", "STOP", "STORAGE", "STORED", "STRAIGHT_JOIN", "STREAM", "STRICT_LOAD", "STRING", "SUBCLASS_ORIGIN",
    "SUBJECT", "SUBPARTITION", "SUBPARTITIONS", "SUPER", "SUSPEND", "SWAPS", "SWITCHES", "SYSTEM", "TABLE", "TABLES",
    "TABLESAMPLE", "TABLESPACE", "TABLE_CHECKSUM", "TABLE_NAME", "TEMPORARY", "TEMPTABLE", "TERMINATED", "TEXT",
    "THAN", "THEN", "THREAD_PRIORITY", "TIES", "TIME", "TIMESTAMP", "TIMESTAMPADD", "TIMESTAMPDIFF", "TINYBLOB",
    "TINYINT", "TINYTEXT", "TLS", "TO", "TRAILING", "TRANSACTION", "TRIGGER", "TRIGGERS", "TRUE", "TRUNCATE", "TYPE",
    "TYPES", "UNBOUNDED", "UNCOMMITTED", "UNDEFINED", "UNDO", "UNDOFILE", "UNDO_BUFFER_SIZE", "UNICODE", "UNINSTALL",
    "UNION", "UNIQUE", "UNKNOWN", "UNLOCK", "UNREGISTER", "UNSIGNED", "UNTIL", "UPDATE", "UPGRADE", "URI", "URL",
    "USAGE", "USE", "USER", "USER_RESOURCES", "USE_FRM", "USING", "UTC_DATE", "UTC_TIME", "UTC_TIMESTAMP", "VALIDATE",
    "VALIDATION", "VALUE", "VALUES", "VARBINARY", "VARCHAR", "VARCHARACTER", "VARIABLES", "VARYING", "VCPU", "VECTOR",
    "VERIFY_KEY_CONSTRAINTS", "VIEW", "VIRTUAL", "VISIBLE", "WAIT", "WARNINGS", "WEEK", "WEIGHT_STRING", "WHEN",
    "WHERE", "WHILE", "WINDOW", "WITH", "WITHOUT", "WORK", "WRAPPER", "WRITE", "X509", "XA", "XID", "XML", "XOR",
    "YEAR", "YEAR_MONTH", "ZEROFILL", "ZONE",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_sorted_and_no_longer_than_the_buffer() {
        for list in [&KEYWORDS[..], &FUNCTIONS, &HINTS, &CHARACTER_SETS] {
            assert!(list.is_sorted());
            assert!(list.iter().all(|word| word.len() <= LONGEST));
        }
        assert!(ALIASES.is_sorted());
        for (name, shown) in ALIASES {
            assert_eq!(keyword(name, true), Some(shown), "{name}");
        }
    }

    #[test]
    fn words_are_told_from_names() {
        assert_eq!(keyword("select", false), Some("SELECT"));
        assert_eq!(keyword("Int", false), Some("INTEGER"));
        assert_eq!(keyword("count", true), Some("COUNT"));
        assert_eq!(keyword("count", false), None);
        assert_eq!(keyword("orders", false), None);
        assert_eq!(hint_keyword("no_icp"), Some("NO_ICP"));
        assert!(is_introducer("_utf8mb4"));
        assert!(!is_introducer("_id"));
    }
}
