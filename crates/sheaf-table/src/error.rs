//! Errors of the table floor. Each knows the MySQL error code, the SQLSTATE and the message a MySQL client expects.
//!
//! The message of a variant is the text of its `#[error]`; its number comes from [`TableError::code`], one `match` for
//! all variants. Errors of the storage are in [`TableError::Storage`] and get their numbers in `storage_code`. The
//! numbers themselves stand in `sheaf-types/src/error/codes.rs`.

use std::io::ErrorKind;

use sheaf_storage::{StorageError, TempFileError};
use sheaf_types::error::codes::{self, ErrorCode};
use sheaf_types::error::{ColumnIssue, UnknownType};

/// Result of the table floor.
pub type Result<T, E = TableError> = std::result::Result<T, E>;

/// The most bytes of a duplicate entry that its error shows, as MySQL's does.
const MAX_SHOWN_ENTRY_BYTES: usize = 64;

/// Anything that can go wrong on the table floor.
#[derive(Debug, thiserror::Error)]
pub enum TableError {
    #[error(transparent)]
    Storage(StorageError),
    #[error(transparent)]
    Column(#[from] ColumnIssue),
    #[error("Duplicate entry '{entry}' for key '{key}'")]
    DuplicateKey {
        /// `table.index`
        key: String,
        /// The values of the index parts joined by `-`, as much of them as is shown.
        entry: String,
    },
    /// `constraint`: the child and the constraint, as MySQL prints them.
    #[error("Cannot add or update a child row: a foreign key constraint fails ({constraint})")]
    NoParentRow { constraint: String },
    #[error("Cannot delete or update a parent row: a foreign key constraint fails ({constraint})")]
    HasChildRow { constraint: String },
    #[error("Duplicate foreign key constraint name '{name}'")]
    DuplicateForeignKey { name: String },
    #[error(
        "Incorrect foreign key definition for '{name}': Key reference and table reference don't match"
    )]
    ForeignKeyColumnCount { name: String },
    #[error(
        "Column '{column}' cannot be NOT NULL: needed in a foreign key constraint '{name}' SET NULL"
    )]
    ForeignKeyNotNull { column: String, name: String },
    #[error("Failed to open the referenced table '{table}'")]
    ForeignKeyMissingTable { table: String },
    #[error(
        "Failed to add the foreign key constraint. Missing column '{column}' for constraint '{name}' in the \
         referenced table '{table}'"
    )]
    ForeignKeyMissingColumn {
        column: String,
        name: String,
        table: String,
    },
    #[error(
        "Referencing column '{column}' and referenced column '{referenced}' in foreign key constraint '{name}' \
         are incompatible."
    )]
    ForeignKeyIncompatible {
        column: String,
        referenced: String,
        name: String,
    },
    #[error(
        "Failed to add the foreign key constraint. Missing index for constraint '{name}' in the referenced table \
         '{table}'"
    )]
    ForeignKeyMissingIndex { name: String, table: String },
    #[error("Cannot drop column '{column}': needed in a foreign key constraint '{name}'")]
    ColumnNeededByForeignKey { column: String, name: String },
    #[error(
        "Cannot drop column '{column}': needed in a foreign key constraint '{name}' of table '{table}'"
    )]
    ColumnNeededByChild {
        column: String,
        name: String,
        table: String,
    },
    #[error("Cannot change column '{column}': used in a foreign key constraint '{name}'")]
    ColumnUsedByForeignKey { column: String, name: String },
    #[error(
        "Cannot change column '{column}': used in a foreign key constraint '{name}' of table '{table}'"
    )]
    ColumnUsedByChild {
        column: String,
        name: String,
        table: String,
    },
    #[error("Cannot drop index '{index}': needed in a foreign key constraint")]
    IndexNeededByForeignKey { index: String },
    #[error(
        "Cannot drop table '{table}' referenced by a foreign key constraint '{name}' on table '{child}'."
    )]
    ReferencedTable {
        table: String,
        name: String,
        child: String,
    },
    /// `constraint`: the child and the constraint, as MySQL prints them.
    #[error("Cannot truncate a table referenced in a foreign key constraint ({constraint})")]
    TruncatedReferencedTable { constraint: String },
    #[error("Check constraint '{name}' is violated.")]
    CheckViolated { name: String },
    #[error("Duplicate check constraint name '{name}'.")]
    DuplicateCheck { name: String },
    #[error("Check constraint '{name}' is not found in the table.")]
    UnknownCheck { name: String },
    #[error("Check constraint '{name}' refers to non-existing column '{column}'.")]
    CheckOfUnknownColumn { name: String, column: String },
    #[error("Column check constraint '{name}' references other column.")]
    CheckOfOtherColumn { name: String },
    #[error("Check constraint '{name}' cannot refer to an auto-increment column.")]
    CheckOfAutoIncrement { name: String },
    #[error(
        "Column '{column}' cannot be used in a check constraint '{check}': needed in a foreign key constraint \
         '{foreign_key}' referential action."
    )]
    ColumnOfCheckChangesWithParent {
        column: String,
        check: String,
        foreign_key: String,
    },
    #[error(
        "Check constraint '{name}' uses column '{column}', hence column cannot be dropped or renamed."
    )]
    ColumnNeededByCheck { name: String, column: String },
    #[error("Column '{column}' has a generated column dependency.")]
    ColumnNeededByGenerated { column: String },
    #[error(
        "Column '{column}' has a functional index dependency and cannot be dropped or renamed."
    )]
    ColumnNeededByKeyExpression { column: String },
    #[error("'{what}' is not supported for generated columns.")]
    UnsupportedOnGenerated { what: &'static str },
    #[error(
        "This version of Sheaf doesn't yet support 'a unique key on a prefix of the column {column}, whose collation is {collation}'"
    )]
    UniquePrefix {
        column: String,
        collation: &'static str,
    },
    #[error("Foreign key '{name}' uses virtual column '{column}' which is not supported.")]
    ForeignKeyOfVirtualColumn { name: String, column: String },
    #[error("Cannot define foreign key with {clause} clause on a generated column.")]
    ForeignKeyChangesGenerated { clause: &'static str },
    #[error(
        "This version of Sheaf doesn't yet support '{clause} of the column {column}, which a virtual generated column names'"
    )]
    ForeignKeyChangesBase {
        clause: &'static str,
        column: String,
    },
    #[error("Cannot add foreign key constraint")]
    CannotAddForeignKey,
    #[error(
        "Column '{column}' of table '{table}' has a default value expression dependency and cannot be dropped or renamed."
    )]
    ColumnNeededByDefault { column: String, table: String },
    #[error(
        "Default value expression of column '{column}' cannot refer to a column defined after it if that column is a \
         generated column or has an expression as default value."
    )]
    DefaultOfLaterColumn { column: String },
    #[error(
        "Default value expression of column '{column}' cannot refer to an auto-increment column."
    )]
    DefaultOfAutoIncrement { column: String },
    #[error("Unknown database '{name}'")]
    UnknownDatabase { name: String },
    #[error("Can't create database '{name}'; database exists")]
    DatabaseExists { name: String },
    #[error("Can't drop database '{name}'; database doesn't exist")]
    CannotDropDatabase { name: String },
    #[error("Table '{database}.{table}' doesn't exist")]
    UnknownTable { database: String, table: String },
    #[error("Unknown table '{database}.{table}'")]
    CannotDropTable { database: String, table: String },
    #[error("'{database}.{table}' is not BASE TABLE")]
    NotBaseTable { database: String, table: String },
    #[error("'{database}.{table}' is not VIEW")]
    NotView { database: String, table: String },
    #[error("Table '{table}' already exists")]
    TableExists { table: String },
    #[error("Duplicate column name '{column}'")]
    DuplicateColumn { column: String },
    #[error("Duplicate key name '{index}'")]
    DuplicateIndex { index: String },
    #[error("Multiple primary key defined")]
    MultiplePrimaryKeys,
    #[error("Too many keys specified; max {limit} keys allowed")]
    TooManyIndexes { limit: usize },
    #[error("Too many key parts specified; max {limit} parts allowed")]
    TooManyIndexParts { limit: usize },
    #[error("Unknown column '{column}' in '{table}'")]
    UnknownColumn { column: String, table: String },
    #[error("You can't delete all columns with ALTER TABLE; use DROP TABLE instead")]
    CannotDropAllColumns,
    #[error("A table must have at least one visible column.")]
    NoVisibleColumn,
    #[error("A primary key index cannot be invisible")]
    InvisiblePrimaryKey,
    #[error("Key '{key}' doesn't exist in table '{table}'")]
    KeyDoesNotExist { key: String, table: String },
    #[error("Invalid use of NULL value")]
    InvalidUseOfNull,
    #[error("Too many columns")]
    TooManyColumns,
    #[error("A table must have at least 1 column")]
    NoColumns,
    #[error("Specified key was too long; max key length is {limit} bytes")]
    KeyTooLong { limit: usize },
    /// `key`: `table.index`.
    #[error(
        "Specified key was too long; a row needs {bytes} bytes in key '{key}', those of its primary key included, \
         and the limit is {limit} bytes"
    )]
    EntryKeyTooLong {
        key: String,
        bytes: usize,
        limit: usize,
    },
    #[error("Key column '{column}' doesn't exist in table")]
    UnknownKeyColumn { column: String },
    #[error("BLOB/TEXT column '{column}' used in key specification without a key length")]
    LongColumnNeedsPrefix { column: String },
    #[error(
        "JSON column '{column}' supports indexing only via generated columns on a specified JSON path."
    )]
    JsonInIndex { column: String },
    #[error(
        "Incorrect prefix key; the used key part isn't a string, the used length is longer than the key part, \
         or the storage engine doesn't support unique prefix keys"
    )]
    IncorrectPrefix,
    #[error(
        "All parts of a PRIMARY KEY must be NOT NULL; if you need NULL in a key, use UNIQUE instead"
    )]
    NullablePrimaryKey,
    #[error(
        "Column length too big for column '{column}' (max = {limit}); use BLOB or TEXT instead"
    )]
    ColumnTooLong { column: String, limit: u32 },
    #[error("Column '{column}' has duplicated value '{label}' in {}", .kind.to_uppercase())]
    DuplicateLabel {
        column: String,
        label: String,
        /// ENUM or SET.
        kind: &'static str,
    },
    #[error(
        "Incorrect table definition; there can be only one auto column and it must be defined as a key"
    )]
    IncorrectAutoColumn,
    #[error("Incorrect column specifier for column '{column}'")]
    IncorrectColumnSpecifier { column: String },
    #[error("Invalid default value for '{column}'")]
    InvalidDefault { column: String },
    #[error("BLOB, TEXT, GEOMETRY or JSON column '{column}' can't have a default value")]
    LongColumnDefault { column: String },
    #[error("Incorrect database name '{name}'")]
    IncorrectDatabaseName { name: String },
    #[error("Incorrect table name '{name}'")]
    IncorrectTableName { name: String },
    #[error("Incorrect column name '{name}'")]
    IncorrectColumnName { name: String },
    #[error("Incorrect index name '{name}'")]
    IncorrectIndexName { name: String },
    #[error("Identifier name '{name}' is too long")]
    NameTooLong { name: String },
    #[error("Can't DROP '{name}'; check that column/key exists")]
    CannotDropIndex { name: String },
    #[error(
        "Row size too large. The maximum row size for the used table type, not counting BLOBs, is {limit}"
    )]
    RowTooLarge { limit: usize },
    #[error(transparent)]
    UnknownType(#[from] UnknownType),
    #[error("Failed to read auto-increment value from storage engine")]
    AutoIncrementExhausted,
    #[error(
        "The definitions of all tables have at most {limit_bytes} bytes (definition_memory); drop tables, or start with a larger --memory"
    )]
    DefinitionsTooLarge { limit_bytes: usize },
    #[error("Lock wait timeout exceeded; try restarting transaction")]
    LockWaitTimeout,
    #[error("Table definition has changed, please retry transaction")]
    DefinitionChanged,
    #[error("Query execution was interrupted")]
    Interrupted,
    /// The keys of rows that others change while an index is built have more bytes than they may.
    #[error(
        "Creating index '{index}' required more than 'innodb_online_alter_log_max_size' bytes of modification log. \
         Please try again."
    )]
    TooManyChangesBeside { index: String },
    #[error("Table '{table}' is not empty: a bulk load fills empty tables only")]
    TableNotEmpty { table: String },
    #[error(
        "The catalog is of format {found}, this program reads formats up to {known}; use a newer program"
    )]
    CatalogTooNew { found: u64, known: u64 },
    /// Bytes in a page do not say what they should: a page that passed its checksum was written wrongly.
    #[error("Incorrect key file for table '{object}'; {detail}")]
    Corrupt { object: String, detail: String },
    #[error("Error writing or reading {0}")]
    TemporaryFile(#[from] TempFileError),
}

impl TableError {
    /// Error 1062 of these values of a key's parts. It shows the beginning of long ones, in whole characters.
    pub(crate) fn duplicate_key(key: String, parts: &[String]) -> TableError {
        let mut entry = parts.join("-");
        entry.truncate(entry.floor_char_boundary(MAX_SHOWN_ENTRY_BYTES));
        TableError::DuplicateKey { key, entry }
    }

    /// The number and SQLSTATE that MySQL sends for this error.
    pub fn code(&self) -> ErrorCode {
        match self {
            TableError::Storage(error) => storage_code(error),
            TableError::Column(issue) => issue.problem.code(),
            TableError::DuplicateKey { .. } => codes::DUP_ENTRY,
            TableError::NoParentRow { .. } => codes::NO_REFERENCED_ROW_2,
            TableError::HasChildRow { .. } => codes::ROW_IS_REFERENCED_2,
            TableError::DuplicateForeignKey { .. } => codes::FK_DUP_NAME,
            TableError::ForeignKeyColumnCount { .. } => codes::WRONG_FK_DEF,
            TableError::ForeignKeyNotNull { .. } => codes::FK_COLUMN_NOT_NULL,
            TableError::ForeignKeyMissingTable { .. } => codes::FK_CANNOT_OPEN_PARENT,
            TableError::ForeignKeyMissingColumn { .. } => codes::FK_NO_COLUMN_PARENT,
            TableError::ForeignKeyIncompatible { .. } => codes::FK_INCOMPATIBLE_COLUMNS,
            TableError::ForeignKeyMissingIndex { .. } => codes::FK_NO_INDEX_PARENT,
            TableError::ColumnNeededByForeignKey { .. } => codes::FK_COLUMN_CANNOT_DROP,
            TableError::ColumnNeededByChild { .. } => codes::FK_COLUMN_CANNOT_DROP_CHILD,
            TableError::ColumnUsedByForeignKey { .. } => codes::FK_COLUMN_CANNOT_CHANGE,
            TableError::ColumnUsedByChild { .. } => codes::FK_COLUMN_CANNOT_CHANGE_CHILD,
            TableError::IndexNeededByForeignKey { .. } => codes::DROP_INDEX_FK,
            TableError::ReferencedTable { .. } => codes::FK_CANNOT_DROP_PARENT,
            TableError::TruncatedReferencedTable { .. } => codes::TRUNCATE_ILLEGAL_FK,
            TableError::CheckViolated { .. } => codes::CHECK_CONSTRAINT_VIOLATED,
            TableError::DuplicateCheck { .. } => codes::CHECK_CONSTRAINT_DUP_NAME,
            TableError::UnknownCheck { .. } => codes::CHECK_CONSTRAINT_NOT_FOUND,
            TableError::CheckOfUnknownColumn { .. } => {
                codes::CHECK_CONSTRAINT_REFERS_UNKNOWN_COLUMN
            }
            TableError::CheckOfOtherColumn { .. } => {
                codes::COLUMN_CHECK_CONSTRAINT_REFERENCES_OTHER_COLUMN
            }
            TableError::CheckOfAutoIncrement { .. } => {
                codes::CHECK_CONSTRAINT_REFERS_AUTO_INCREMENT_COLUMN
            }
            TableError::ColumnOfCheckChangesWithParent { .. } => {
                codes::CHECK_CONSTRAINT_CLAUSE_USING_FK_REFER_ACTION_COLUMN
            }
            TableError::ColumnNeededByGenerated { .. } => codes::DEPENDENT_BY_GENERATED_COLUMN,
            TableError::ColumnNeededByKeyExpression { .. } => codes::DEPENDENT_BY_FUNCTIONAL_INDEX,
            TableError::UnsupportedOnGenerated { .. } => {
                codes::UNSUPPORTED_ACTION_ON_GENERATED_COLUMN
            }
            TableError::ForeignKeyOfVirtualColumn { .. } => codes::FK_CANNOT_USE_VIRTUAL_COLUMN,
            TableError::ForeignKeyChangesGenerated { .. } => {
                codes::WRONG_FK_OPTION_FOR_GENERATED_COLUMN
            }
            TableError::ForeignKeyChangesBase { .. } | TableError::UniquePrefix { .. } => {
                codes::NOT_SUPPORTED_YET
            }
            TableError::CannotAddForeignKey => codes::CANNOT_ADD_FOREIGN,
            TableError::ColumnNeededByCheck { .. } => codes::DEPENDENT_BY_CHECK_CONSTRAINT,
            TableError::ColumnNeededByDefault { .. } => codes::DEPENDENT_BY_DEFAULT_GENERATED_VALUE,
            TableError::DefaultOfLaterColumn { .. } => codes::DEFAULT_VAL_GENERATED_NON_PRIOR,
            TableError::DefaultOfAutoIncrement { .. } => codes::DEFAULT_VAL_GENERATED_REF_AUTO_INC,
            TableError::UnknownDatabase { .. } => codes::BAD_DB_ERROR,
            TableError::DatabaseExists { .. } => codes::DB_CREATE_EXISTS,
            TableError::CannotDropDatabase { .. } => codes::DB_DROP_EXISTS,
            TableError::UnknownTable { .. } => codes::NO_SUCH_TABLE,
            TableError::CannotDropTable { .. } => codes::BAD_TABLE_ERROR,
            TableError::NotBaseTable { .. } | TableError::NotView { .. } => codes::WRONG_OBJECT,
            TableError::TableExists { .. } => codes::TABLE_EXISTS_ERROR,
            TableError::DuplicateColumn { .. } => codes::DUP_FIELDNAME,
            TableError::DuplicateIndex { .. } => codes::DUP_KEYNAME,
            TableError::MultiplePrimaryKeys => codes::MULTIPLE_PRI_KEY,
            TableError::TooManyIndexes { .. } => codes::TOO_MANY_KEYS,
            TableError::TooManyIndexParts { .. } => codes::TOO_MANY_KEY_PARTS,
            TableError::UnknownColumn { .. } => codes::BAD_FIELD_ERROR,
            TableError::CannotDropAllColumns => codes::CANT_REMOVE_ALL_FIELDS,
            TableError::NoVisibleColumn => codes::MUST_HAVE_VISIBLE_COLUMN,
            TableError::InvisiblePrimaryKey => codes::PK_INDEX_CANT_BE_INVISIBLE,
            TableError::KeyDoesNotExist { .. } => codes::KEY_DOES_NOT_EXITS,
            TableError::InvalidUseOfNull => codes::INVALID_USE_OF_NULL,
            TableError::TooManyColumns => codes::TOO_MANY_FIELDS,
            TableError::NoColumns => codes::TABLE_MUST_HAVE_COLUMNS,
            TableError::KeyTooLong { .. } | TableError::EntryKeyTooLong { .. } => {
                codes::TOO_LONG_KEY
            }
            TableError::UnknownKeyColumn { .. } => codes::KEY_COLUMN_DOES_NOT_EXITS,
            TableError::JsonInIndex { .. } => codes::JSON_USED_AS_KEY,
            TableError::LongColumnNeedsPrefix { .. } => codes::BLOB_KEY_WITHOUT_LENGTH,
            TableError::IncorrectPrefix => codes::WRONG_SUB_KEY,
            TableError::NullablePrimaryKey => codes::PRIMARY_CANT_HAVE_NULL,
            TableError::ColumnTooLong { .. } => codes::TOO_BIG_FIELDLENGTH,
            TableError::DuplicateLabel { .. } => codes::DUPLICATED_VALUE_IN_TYPE,
            TableError::IncorrectAutoColumn => codes::WRONG_AUTO_KEY,
            TableError::IncorrectColumnSpecifier { .. } => codes::WRONG_FIELD_SPEC,
            TableError::InvalidDefault { .. } => codes::INVALID_DEFAULT,
            TableError::LongColumnDefault { .. } => codes::BLOB_CANT_HAVE_DEFAULT,
            TableError::IncorrectDatabaseName { .. } => codes::WRONG_DB_NAME,
            TableError::IncorrectTableName { .. } => codes::WRONG_TABLE_NAME,
            TableError::IncorrectColumnName { .. } => codes::WRONG_COLUMN_NAME,
            TableError::IncorrectIndexName { .. } => codes::WRONG_NAME_FOR_INDEX,
            TableError::NameTooLong { .. } => codes::TOO_LONG_IDENT,
            TableError::CannotDropIndex { .. } => codes::CANT_DROP_FIELD_OR_KEY,
            TableError::RowTooLarge { .. } => codes::TOO_BIG_ROWSIZE,
            TableError::UnknownType(_) => codes::UNKNOWN_DATA_TYPE,
            TableError::AutoIncrementExhausted => codes::AUTOINC_READ_FAILED,
            TableError::DefinitionsTooLarge { .. } => codes::OUT_OF_RESOURCES,
            TableError::LockWaitTimeout => codes::LOCK_WAIT_TIMEOUT,
            TableError::DefinitionChanged => codes::TABLE_DEF_CHANGED,
            TableError::Interrupted => codes::QUERY_INTERRUPTED,
            TableError::TooManyChangesBeside { .. } => codes::INNODB_ONLINE_LOG_TOO_BIG,
            TableError::TableNotEmpty { .. } | TableError::CatalogTooNew { .. } => {
                codes::UNKNOWN_ERROR
            }
            TableError::Corrupt { .. } => codes::NOT_KEYFILE,
            TableError::TemporaryFile(error) => match error.source.kind() {
                ErrorKind::StorageFull | ErrorKind::QuotaExceeded => codes::DISK_FULL,
                _ => codes::ERROR_ON_WRITE,
            },
        }
    }

    /// The number that MySQL sends for this error.
    pub fn mysql_code(&self) -> u16 {
        self.code().number()
    }

    /// An error of writing an entry of an index: says of which index a key is too long. `key`: `table.index`.
    pub(crate) fn of_entry(error: StorageError, key: impl FnOnce() -> String) -> TableError {
        match error {
            StorageError::KeyTooLarge { bytes, limit } => TableError::EntryKeyTooLong {
                key: key(),
                bytes,
                limit,
            },
            other => TableError::Storage(other),
        }
    }

    /// An entry or row whose bytes cannot be what was written.
    pub(crate) fn corrupt(object: impl Into<String>, detail: impl Into<String>) -> TableError {
        TableError::Corrupt {
            object: object.into(),
            detail: detail.into(),
        }
    }
}

impl From<StorageError> for TableError {
    fn from(error: StorageError) -> TableError {
        TableError::Storage(error)
    }
}

/// MySQL code and SQLSTATE of an error from below.
fn storage_code(error: &StorageError) -> ErrorCode {
    match error {
        // The log has no room: on its device, or until its archive or its followers have caught up.
        StorageError::DiskFull { .. }
        | StorageError::ArchiveBehind { .. }
        | StorageError::FollowersBehind { .. } => codes::DISK_FULL,
        StorageError::Corrupt { .. } | StorageError::Malformed { .. } => codes::NOT_KEYFILE,
        StorageError::PoolExhausted { .. } => codes::OUT_OF_RESOURCES,
        StorageError::DuplicateKey { .. } => codes::DUP_ENTRY,
        StorageError::EntryTooLarge { .. } => codes::TOO_BIG_ROWSIZE,
        StorageError::KeyTooLarge { .. } | StorageError::TreeTooHigh { .. } => codes::TOO_LONG_KEY,
        StorageError::TransactionTooLarge { .. } | StorageError::SpillFileFull { .. } => {
            codes::TRANS_CACHE_FULL
        }
        StorageError::VersionStoreFull { .. } | StorageError::TooManySnapshots { .. } => {
            codes::OUT_OF_RESOURCES
        }
        StorageError::Deadlock => codes::LOCK_DEADLOCK,
        StorageError::LockWaitTimeout => codes::LOCK_WAIT_TIMEOUT,
        StorageError::LockNotAvailable => codes::LOCK_NOWAIT,
        StorageError::LockWaitInterrupted => codes::QUERY_INTERRUPTED,
        StorageError::TooManyLocks { .. } => codes::LOCK_TABLE_FULL,
        StorageError::Closed => codes::SERVER_SHUTDOWN,
        _ => codes::GET_ERRNO,
    }
}
