//! Errors as MySQL clients know them: a number, a SQLSTATE and a text.
//!
//! Every floor below has its own typed error. This module is the one place where they become MySQL errors (in
//! `lower_floors.rs`), so that a driver's error handling (duplicate key, lost connection, syntax) works as it does
//! against MySQL.
//! The constructors carry MySQL's symbolic names (`ER_NO_SUCH_TABLE` is [`SqlError::no_such_table`]) and its
//! texts; the numbers are those of MySQL's manual, "Server Error Message Reference".

mod lower_floors;

use std::fmt;

use sheaf_table::AccountName;
use sheaf_types::error::codes::{self, ErrorCode};

/// The most bytes of a client's text that an error message repeats (MySQL cuts at 80 characters).
const MAX_ERROR_TEXT_CHARACTERS: usize = 80;

/// An error with MySQL's number, SQLSTATE and text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SqlError {
    pub code: u16,
    /// Five characters.
    pub sqlstate: &'static str,
    pub message: String,
}

pub type Result<T, E = SqlError> = std::result::Result<T, E>;

impl fmt::Display for SqlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "ERROR {} ({}): {}",
            self.code, self.sqlstate, self.message
        )
    }
}

impl std::error::Error for SqlError {}

/// The start of a client's text, as long as an error message may repeat it.
pub fn excerpt(text: &str) -> &str {
    match text.char_indices().nth(MAX_ERROR_TEXT_CHARACTERS) {
        Some((end, _)) => &text[..end],
        None => text,
    }
}

impl SqlError {
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        SqlError {
            code: code.number(),
            sqlstate: code.sqlstate(),
            message: message.into(),
        }
    }

    /// Whether it is this one of MySQL's errors.
    pub fn is(&self, code: ErrorCode) -> bool {
        self.code == code.number()
    }

    /// 1105: an error without a number of its own.
    pub fn unknown(message: impl Into<String>) -> Self {
        Self::new(codes::UNKNOWN_ERROR, message)
    }

    /// 3568: FOR UPDATE OF or FOR SHARE OF names a table that is not in the FROM.
    pub fn unresolved_table_lock(name: &str) -> Self {
        Self::new(
            codes::UNRESOLVED_TABLE_LOCK,
            format!("Unresolved table name `{name}` in locking clause."),
        )
    }

    /// Whether nothing of the transaction remains in which it happened: a deadlock, or it has changed too much.
    pub fn ends_transaction(&self) -> bool {
        self.is(codes::LOCK_DEADLOCK) || self.is(codes::TRANS_CACHE_FULL)
    }

    /// 1175: `sql_safe_updates` is on, and the statement would look at every row.
    pub fn update_without_key() -> Self {
        Self::new(
            codes::UPDATE_WITHOUT_KEY_IN_SAFE_MODE,
            "You are using safe update mode and you tried to update a table without a WHERE that uses a KEY column",
        )
    }

    /// 1845: a clause of ALTER TABLE asks for a way that there is not; `instead` is one that there is.
    pub fn alter_not_supported(clause: &str, instead: &str) -> Self {
        Self::new(
            codes::ALTER_OPERATION_NOT_SUPPORTED,
            format!("{clause} is not supported for this operation. Try {instead}."),
        )
    }

    /// 1846: as [`Self::alter_not_supported`], with the reason.
    pub fn alter_not_supported_because(clause: &str, reason: &str, instead: &str) -> Self {
        Self::new(
            codes::ALTER_OPERATION_NOT_SUPPORTED_REASON,
            format!("{clause} is not supported. Reason: {reason}. Try {instead}."),
        )
    }

    /// 1235: MySQL has this and Sheaf does not, or not yet.
    pub fn not_supported_yet(what: impl fmt::Display) -> Self {
        Self::new(
            codes::NOT_SUPPORTED_YET,
            format!("This version of Sheaf doesn't yet support '{what}'"),
        )
    }

    /// 1235: values of VIRTUAL columns are stored, and would be others in each time zone.
    pub fn virtual_in_time_zone(table: &str, column: &str) -> Self {
        Self::not_supported_yet(format!(
            "VIRTUAL columns of TIMESTAMP under a time_zone other than UTC, as {table}.{column}"
        ))
    }

    /// 1064: `near` is the rest of the statement from the token that does not fit.
    pub fn parse_error(near: &str, line: u64) -> Self {
        Self::new(
            codes::PARSE_ERROR,
            format!(
                "You have an error in your SQL syntax; check the manual that corresponds to your \
                 server version for the right syntax to use near '{}' at line {line}",
                excerpt(near)
            ),
        )
    }

    /// 1065: nothing but white space and comments.
    pub fn empty_query() -> Self {
        Self::new(codes::EMPTY_QUERY, "Query was empty")
    }

    /// 1153: the statement is longer than `max_allowed_packet`.
    pub fn net_packet_too_large() -> Self {
        Self::new(
            codes::NET_PACKET_TOO_LARGE,
            "Got a packet bigger than 'max_allowed_packet' bytes",
        )
    }

    /// 1116: more tables and query blocks than are planned.
    pub fn plan_too_large(limit: u64) -> Self {
        Self::new(
            codes::TOO_MANY_TABLES,
            format!(
                "Too many tables; a statement has at most {limit} tables and query blocks, and a common table expression \
                 counts each time that it is used"
            ),
        )
    }

    /// 1116: more tables in the FROM of one query than are joined.
    pub fn too_many_tables(limit: usize) -> Self {
        Self::new(
            codes::TOO_MANY_TABLES,
            format!("Too many tables; Sheaf can only use {limit} tables in a join"),
        )
    }

    /// 1436: the statement is nested deeper than Sheaf follows.
    pub fn stack_overrun(limit: usize) -> Self {
        Self::new(
            codes::STACK_OVERRUN_NEED_MORE,
            format!(
                "Thread stack overrun: the statement is nested deeper than {limit} levels. Split it."
            ),
        )
    }

    // Databases and tables.

    pub fn no_database_selected() -> Self {
        Self::new(codes::NO_DB_ERROR, "No database selected")
    }

    pub fn unknown_database(name: &str) -> Self {
        Self::new(codes::BAD_DB_ERROR, format!("Unknown database '{name}'"))
    }

    pub fn database_exists(name: &str) -> Self {
        Self::new(
            codes::DB_CREATE_EXISTS,
            format!("Can't create database '{name}'; database exists"),
        )
    }

    pub fn no_such_table(database: &str, table: &str) -> Self {
        Self::new(
            codes::NO_SUCH_TABLE,
            format!("Table '{database}.{table}' doesn't exist"),
        )
    }

    /// 1051, for DROP TABLE; `names` is the list of all that are missing.
    pub fn bad_table(names: &str) -> Self {
        Self::new(codes::BAD_TABLE_ERROR, format!("Unknown table '{names}'"))
    }

    /// 1356: what is wrong inside is not told.
    pub fn invalid_view(name: &str) -> Self {
        Self::new(
            codes::VIEW_INVALID,
            format!(
                "View '{name}' references invalid table(s) or column(s) or function(s) or definer/invoker of view lack \
                 rights to use them"
            ),
        )
    }

    /// 1449: of a view.
    pub fn no_such_definer(definer: &AccountName) -> Self {
        Self::new(
            codes::NO_SUCH_USER,
            format!("The user specified as a definer ({definer}) does not exist"),
        )
    }

    /// 1215: it has an action, or is of a table, that foreign keys do not have.
    pub fn cannot_add_foreign_key() -> Self {
        Self::new(
            codes::CANNOT_ADD_FOREIGN,
            "Cannot add foreign key constraint",
        )
    }

    pub fn table_exists(name: &str) -> Self {
        Self::new(
            codes::TABLE_EXISTS_ERROR,
            format!("Table '{name}' already exists"),
        )
    }

    /// 1044: also what writing to `information_schema` answers.
    pub fn database_access_denied(user: &str, host: &str, database: &str) -> Self {
        Self::new(
            codes::DBACCESS_DENIED_ERROR,
            format!("Access denied for user '{user}'@'{host}' to database '{database}'"),
        )
    }

    pub fn table_must_have_columns() -> Self {
        Self::new(
            codes::TABLE_MUST_HAVE_COLUMNS,
            "A table must have at least 1 column",
        )
    }

    // Columns and keys.

    /// 1055 for a column that an expression of the query names. `place`: such as `#1 of SELECT list`.
    pub fn not_in_group_by(place: &str, column: &str) -> Self {
        Self::new(
            codes::WRONG_FIELD_WITH_GROUP,
            format!(
                "Expression {place} is not in GROUP BY clause and contains nonaggregated column '{column}' which is not \
                 functionally dependent on columns in GROUP BY clause; this is incompatible with \
                 sql_mode=only_full_group_by"
            ),
        )
    }

    /// 1140, the same where there is no GROUP BY.
    pub fn mixed_with_groups(place: &str, column: &str) -> Self {
        Self::new(
            codes::MIX_OF_GROUP_FUNC_AND_FIELDS,
            format!(
                "In aggregated query without GROUP BY, expression {place} contains nonaggregated column '{column}'; this \
                 is incompatible with sql_mode=only_full_group_by"
            ),
        )
    }

    /// 1054: `clause` as MySQL names it, such as `field list` or `where clause`.
    pub fn bad_field(column: &str, clause: &str) -> Self {
        Self::new(
            codes::BAD_FIELD_ERROR,
            format!("Unknown column '{column}' in '{clause}'"),
        )
    }

    pub fn non_unique_column(column: &str, clause: &str) -> Self {
        Self::new(
            codes::NON_UNIQ_ERROR,
            format!("Column '{column}' in {clause} is ambiguous"),
        )
    }

    pub fn table_function_without_alias() -> Self {
        Self::new(
            codes::TABLE_FUNCTION_WITHOUT_ALIAS,
            "Every table function must have an alias",
        )
    }

    pub fn derived_without_alias() -> Self {
        Self::new(
            codes::DERIVED_MUST_HAVE_ALIAS,
            "Every derived table must have its own alias",
        )
    }

    /// 1288: rows of a derived table cannot be changed.
    pub fn non_updatable_table(table: &str, verb: &str) -> Self {
        Self::new(
            codes::NON_UPDATABLE_TABLE,
            format!("The target table {table} of the {verb} is not updatable"),
        )
    }

    /// 1109: a name that the statement's FROM does not have.
    pub fn unknown_table_in(table: &str, clause: &str) -> Self {
        Self::new(
            codes::UNKNOWN_TABLE,
            format!("Unknown table '{table}' in {clause}"),
        )
    }

    pub fn target_is_read(table: &str) -> Self {
        Self::new(
            codes::UPDATE_TABLE_USED,
            format!("You can't specify target table '{table}' for update in FROM clause"),
        )
    }

    pub fn key_update_of_two(one: &str, other: &str) -> Self {
        Self::new(
            codes::MULTI_UPDATE_KEY_CONFLICT,
            format!(
                "Primary key/partition key update is not allowed since the table is updated both as '{one}' and '{other}'."
            ),
        )
    }

    pub fn non_unique_table(table: &str) -> Self {
        Self::new(
            codes::NONUNIQ_TABLE,
            format!("Not unique table/alias: '{table}'"),
        )
    }

    /// 1792: the transaction was begun with READ ONLY.
    pub fn read_only_transaction() -> Self {
        Self::new(
            codes::CANT_EXECUTE_IN_READ_ONLY_TRANSACTION,
            "Cannot execute statement in a READ ONLY transaction.",
        )
    }

    /// 1568: what is said about transactions is for the next one.
    pub fn transaction_in_progress() -> Self {
        Self::new(
            codes::CANT_CHANGE_TX_CHARACTERISTICS,
            "Transaction characteristics can't be changed while a transaction is in progress",
        )
    }

    pub fn no_such_savepoint(name: &str) -> Self {
        Self::new(
            codes::SP_DOES_NOT_EXIST,
            format!("SAVEPOINT {name} does not exist"),
        )
    }

    /// 1367: a number that no double holds.
    pub fn illegal_double(digits: &str) -> Self {
        Self::new(
            codes::ILLEGAL_VALUE_FOR_TYPE,
            format!("Illegal double '{digits}' value found during parsing"),
        )
    }

    /// 3586: a bound of a window's frame that is no distance.
    pub fn illegal_frame() -> Self {
        Self::new(
            codes::WINDOW_FRAME_ILLEGAL,
            "Window '<unnamed window>': frame start or end is negative, NULL or of non-integral type",
        )
    }

    /// 1221: two clauses that do not go together.
    pub fn wrong_usage(first: &str, second: &str) -> Self {
        Self::new(
            codes::WRONG_USAGE,
            format!("Incorrect usage of {first} and {second}"),
        )
    }

    pub fn definition_changed() -> Self {
        Self::new(
            codes::TABLE_DEF_CHANGED,
            "Table definition has changed, please retry transaction",
        )
    }

    /// 3769, 3770, 3772: what no default may have.
    pub fn not_in_default(column: &str, what: &NotKept) -> Self {
        let of_column = format!("Default value expression of column '{column}'");
        let (code, message) = match what {
            NotKept::Query => (
                codes::DEFAULT_VAL_GENERATED_FUNCTION_IS_NOT_ALLOWED,
                format!("{of_column} contains a disallowed function."),
            ),
            NotKept::Function(function) => (
                codes::DEFAULT_VAL_GENERATED_NAMED_FUNCTION_IS_NOT_ALLOWED,
                format!("{of_column} contains a disallowed function: {function}."),
            ),
            NotKept::Variable => (
                codes::DEFAULT_VAL_GENERATED_VARIABLES,
                format!("{of_column} cannot refer user or system variables."),
            ),
        };
        Self::new(code, message)
    }

    /// Whether a table that the statement uses has got another definition meanwhile.
    pub fn is_definition_changed(&self) -> bool {
        self.code == codes::TABLE_DEF_CHANGED.number()
    }

    pub fn duplicate_field_name(column: &str) -> Self {
        Self::new(
            codes::DUP_FIELDNAME,
            format!("Duplicate column name '{column}'"),
        )
    }

    /// 1110: a column twice in INSERT's list.
    pub fn field_specified_twice(column: &str) -> Self {
        Self::new(
            codes::FIELD_SPECIFIED_TWICE,
            format!("Column '{column}' specified twice"),
        )
    }

    pub fn multiple_primary_key() -> Self {
        Self::new(codes::MULTIPLE_PRI_KEY, "Multiple primary key defined")
    }

    pub fn key_does_not_exist(key: &str, table: &str) -> Self {
        Self::new(
            codes::KEY_DOES_NOT_EXITS,
            format!("Key '{key}' doesn't exist in table '{table}'"),
        )
    }

    pub fn invalid_default(column: &str) -> Self {
        Self::new(
            codes::INVALID_DEFAULT,
            format!("Invalid default value for '{column}'"),
        )
    }

    pub fn blob_cannot_have_default(column: &str) -> Self {
        Self::new(
            codes::BLOB_CANT_HAVE_DEFAULT,
            format!("BLOB, TEXT, GEOMETRY or JSON column '{column}' can't have a default value"),
        )
    }

    pub fn primary_cannot_have_null() -> Self {
        Self::new(
            codes::PRIMARY_CANT_HAVE_NULL,
            "All parts of a PRIMARY KEY must be NOT NULL; if you need NULL in a key, use UNIQUE instead",
        )
    }

    pub fn too_big_field_length(column: &str, max: u64) -> Self {
        Self::new(
            codes::TOO_BIG_FIELDLENGTH,
            format!(
                "Column length too big for column '{column}' (max = {max}); use BLOB or TEXT instead"
            ),
        )
    }

    pub fn wrong_field_specifier(column: &str) -> Self {
        Self::new(
            codes::WRONG_FIELD_SPEC,
            format!("Incorrect column specifier for column '{column}'"),
        )
    }

    pub fn too_big_display_width(column: &str, max: u64) -> Self {
        Self::new(
            codes::TOO_BIG_DISPLAYWIDTH,
            format!("Display width out of range for column '{column}' (max = {max})"),
        )
    }

    pub fn too_many_strings(column: &str) -> Self {
        Self::new(
            codes::TOO_BIG_SET,
            format!("Too many strings for column {column} and SET"),
        )
    }

    pub fn illegal_set_value(value: &str) -> Self {
        Self::new(
            codes::ILLEGAL_VALUE_FOR_TYPE,
            format!("Illegal set '{value}' value found during parsing"),
        )
    }

    pub fn invalid_field_size(column: &str) -> Self {
        Self::new(
            codes::INVALID_FIELD_SIZE,
            format!("Invalid size for column '{column}'."),
        )
    }

    pub fn too_big_precision(precision: u64, column: &str, max: u64) -> Self {
        Self::new(
            codes::TOO_BIG_PRECISION,
            format!("Too-big precision {precision} specified for '{column}'. Maximum is {max}."),
        )
    }

    pub fn too_big_scale(scale: u64, column: &str, max: u64) -> Self {
        Self::new(
            codes::TOO_BIG_SCALE,
            format!("Too big scale {scale} specified for column '{column}'. Maximum is {max}."),
        )
    }

    /// 1427: DECIMAL(M,D) with D greater than M.
    pub fn scale_bigger_than_precision(column: &str) -> Self {
        Self::new(
            codes::M_BIGGER_THAN_D,
            format!(
                "For float(M,D), double(M,D) or decimal(M,D), M must be >= D (column '{column}')."
            ),
        )
    }

    pub fn unknown_character_set(name: &str) -> Self {
        Self::new(
            codes::UNKNOWN_CHARACTER_SET,
            format!("Unknown character set: '{name}'"),
        )
    }

    pub fn unknown_collation(name: &str) -> Self {
        Self::new(
            codes::UNKNOWN_COLLATION,
            format!("Unknown collation: '{name}'"),
        )
    }

    /// An error about collations, of an operation that is another one below: IFNULL is COALESCE, and IF is CASE.
    pub fn in_operation(mut self, below: &str, operation: &str) -> Self {
        let named = format!("for operation '{below}'");
        if let Some(mix) = self.message.strip_suffix(&named) {
            self.message = format!("{mix}for operation '{operation}'");
        }
        self
    }

    pub fn collation_of_other_character_set(collation: &str, character_set: &str) -> Self {
        Self::new(
            codes::COLLATION_CHARSET_MISMATCH,
            format!("COLLATION '{collation}' is not valid for CHARACTER SET '{character_set}'"),
        )
    }

    // Rows.

    pub fn no_default_for_field(column: &str) -> Self {
        Self::new(
            codes::NO_DEFAULT_FOR_FIELD,
            format!("Field '{column}' doesn't have a default value"),
        )
    }

    pub fn wrong_value_count_on_row(row: u64) -> Self {
        Self::new(
            codes::WRONG_VALUE_COUNT_ON_ROW,
            format!("Column count doesn't match value count at row {row}"),
        )
    }

    pub fn warn_too_few_records(row: u64) -> Self {
        Self::new(
            codes::WARN_TOO_FEW_RECORDS,
            format!("Row {row} doesn't contain data for all columns"),
        )
    }

    pub fn warn_too_many_records(row: u64) -> Self {
        Self::new(
            codes::WARN_TOO_MANY_RECORDS,
            format!(
                "Row {row} was truncated; it contained more data than there were input columns"
            ),
        )
    }

    // Files.

    pub fn file_not_found(file: &str, os_error: i32, text: &str) -> Self {
        Self::new(
            codes::EE_FILENOTFOUND,
            format!("File '{file}' not found (OS errno {os_error} - {text})"),
        )
    }

    pub fn option_prevents_statement(option: &str) -> Self {
        Self::new(
            codes::OPTION_PREVENTS_STATEMENT,
            format!(
                "The server is running with the {option} option so it cannot execute this statement"
            ),
        )
    }

    pub fn local_infile_disabled() -> Self {
        Self::new(
            codes::CLIENT_LOCAL_FILES_DISABLED,
            "Loading local data is disabled; this must be enabled on both the client and server sides",
        )
    }

    // Variables.

    pub fn unknown_system_variable(name: &str) -> Self {
        Self::new(
            codes::UNKNOWN_SYSTEM_VARIABLE,
            format!("Unknown system variable '{name}'"),
        )
    }

    /// A value that only sessions have is asked for as `@@global.name`.
    pub fn session_variable(name: &str) -> Self {
        Self::new(
            codes::INCORRECT_GLOBAL_LOCAL_VAR,
            format!("Variable '{name}' is a SESSION variable"),
        )
    }

    /// A value that only the server has is asked for as `@@session.name`.
    pub fn no_session_value(name: &str) -> Self {
        Self::new(
            codes::INCORRECT_GLOBAL_LOCAL_VAR,
            format!("Variable '{name}' is a GLOBAL variable"),
        )
    }

    pub fn wrong_value_for_variable(name: &str, value: &str) -> Self {
        Self::new(
            codes::WRONG_VALUE_FOR_VAR,
            format!(
                "Variable '{name}' can't be set to the value of '{}'",
                excerpt(value)
            ),
        )
    }

    pub fn wrong_type_for_variable(name: &str) -> Self {
        Self::new(
            codes::WRONG_TYPE_FOR_VAR,
            format!("Incorrect argument type to variable '{name}'"),
        )
    }

    pub fn read_only_variable(name: &str) -> Self {
        Self::new(
            codes::INCORRECT_GLOBAL_LOCAL_VAR,
            format!("Variable '{name}' is a read only variable"),
        )
    }

    pub fn local_variable(name: &str) -> Self {
        Self::new(
            codes::LOCAL_VARIABLE,
            format!("Variable '{name}' is a SESSION variable and can't be used with SET GLOBAL"),
        )
    }

    pub fn global_variable(name: &str) -> Self {
        Self::new(
            codes::GLOBAL_VARIABLE,
            format!("Variable '{name}' is a GLOBAL variable and should be set with SET GLOBAL"),
        )
    }

    // Sessions.

    pub fn query_interrupted() -> Self {
        Self::new(codes::QUERY_INTERRUPTED, "Query execution was interrupted")
    }

    pub fn query_timeout() -> Self {
        Self::new(
            codes::QUERY_TIMEOUT,
            "Query execution was interrupted, maximum statement execution time exceeded",
        )
    }

    pub fn no_such_thread(id: u64) -> Self {
        Self::new(codes::NO_SUCH_THREAD, format!("Unknown thread id: {id}"))
    }

    pub fn too_many_connections() -> Self {
        Self::new(codes::CON_COUNT_ERROR, "Too many connections")
    }

    pub fn too_many_user_connections(user: &str) -> Self {
        let message =
            format!("User {user} already has more than 'max_user_connections' active connections");
        Self::new(codes::TOO_MANY_USER_CONNECTIONS, message)
    }

    pub fn user_limit_reached(user: &str, resource: &str, limit: usize) -> Self {
        Self::new(
            codes::USER_LIMIT_REACHED,
            format!(
                "User '{user}' has exceeded the '{resource}' resource (current value: {limit})"
            ),
        )
    }

    pub fn server_shutdown() -> Self {
        Self::new(codes::SERVER_SHUTDOWN, "Server shutdown in progress")
    }

    pub fn access_denied(user: &str, host: &str, with_password: bool) -> Self {
        let using = if with_password { "YES" } else { "NO" };
        Self::new(
            codes::ACCESS_DENIED_ERROR,
            format!("Access denied for user '{user}'@'{host}' (using password: {using})"),
        )
    }

    /// 3159: `require_secure_transport` is on.
    pub fn insecure_transport() -> Self {
        Self::new(
            codes::SECURE_TRANSPORT_REQUIRED,
            "Connections using insecure transport are prohibited while --require_secure_transport=ON.",
        )
    }

    /// 3160: with `require_secure_transport` nobody could connect.
    pub fn no_secure_transport() -> Self {
        Self::new(
            codes::NO_SECURE_TRANSPORTS_CONFIGURED,
            "No secure transports (SSL or Shared Memory) are configured, unable to set --require_secure_transport=ON.",
        )
    }

    pub fn lock_wait_timeout() -> Self {
        Self::new(
            codes::LOCK_WAIT_TIMEOUT,
            "Lock wait timeout exceeded; try restarting transaction",
        )
    }

    // LOCK TABLES.

    pub fn table_not_locked(alias: &str) -> Self {
        Self::new(
            codes::TABLE_NOT_LOCKED,
            format!("Table '{alias}' was not locked with LOCK TABLES"),
        )
    }

    pub fn table_locked_for_read(alias: &str) -> Self {
        Self::new(
            codes::TABLE_NOT_LOCKED_FOR_WRITE,
            format!("Table '{alias}' was locked with a READ lock and can't be updated"),
        )
    }

    pub fn conflicting_read_lock() -> Self {
        Self::new(
            codes::CANT_UPDATE_WITH_READLOCK,
            "Can't execute the query because you have a conflicting read lock",
        )
    }

    pub fn locked_tables_are_active() -> Self {
        Self::new(
            codes::LOCK_OR_ACTIVE_TRANSACTION,
            "Can't execute the given command because you have active locked tables or an active transaction",
        )
    }

    // Prepared statements.

    pub fn unknown_statement_handler(handler: &str, caller: &str) -> Self {
        Self::new(
            codes::UNKNOWN_STMT_HANDLER,
            format!("Unknown prepared statement handler ({handler}) given to {caller}"),
        )
    }

    pub fn wrong_arguments(caller: &str) -> Self {
        Self::new(
            codes::WRONG_ARGUMENTS,
            format!("Incorrect arguments to {caller}"),
        )
    }

    pub fn max_prepared_statements(limit: u64) -> Self {
        Self::new(
            codes::MAX_PREPARED_STMT_COUNT_REACHED,
            format!(
                "Can't create more than max_prepared_stmt_count statements (current value: {limit})"
            ),
        )
    }

    pub fn division_by_zero() -> Self {
        Self::new(codes::DIVISION_BY_ZERO, "Division by 0")
    }

    /// 1690: `what` is the SQL type, `expression` what was computed.
    pub fn data_out_of_range(what: &str, expression: &str) -> Self {
        Self::new(
            codes::DATA_OUT_OF_RANGE,
            format!("{what} value is out of range in '{expression}'"),
        )
    }

    // Memory and disk.

    /// 1041: the query memory is not enough for this part of the statement, in words of SQL.
    pub fn query_out_of_memory(operator: Option<&str>) -> Self {
        let operator = operator.unwrap_or("the statement");
        Self::out_of_memory(&format!(
            "{operator} needs more query memory than there is; raise --memory"
        ))
    }

    /// 1041, and what to do about it.
    pub fn out_of_memory(what: &str) -> Self {
        Self::new(codes::OUT_OF_RESOURCES, format!("Out of memory; {what}"))
    }
}

/// What a definition cannot keep of an expression.
pub enum NotKept {
    Query,
    Variable,
    Function(String),
}
