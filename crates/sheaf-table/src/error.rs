//! Errors of the table floor. Each knows the MySQL error code, the SQLSTATE and the message a MySQL client expects.

use std::io::ErrorKind;

use sheaf_storage::{StorageError, TempFileError};
use sheaf_types::error::{ColumnIssue, UnknownType};

/// Result of the table floor.
pub type Result<T, E = TableError> = std::result::Result<T, E>;

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
        /// The values of the index parts joined by `-`.
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
    /// Foreign keys know their parents by name, which must stay.
    #[error(
        "This version of Sheaf doesn't yet support 'renaming a table that foreign keys refer to'"
    )]
    RenamedReferencedTable,
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
    #[error("Key column '{column}' doesn't exist in table")]
    UnknownKeyColumn { column: String },
    #[error("BLOB/TEXT column '{column}' used in key specification without a key length")]
    LongColumnNeedsPrefix { column: String },
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
    #[error("Column '{column}' has duplicated value '{label}' in ENUM")]
    DuplicateLabel { column: String, label: String },
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
    #[error("Lock wait timeout exceeded; try restarting transaction")]
    LockWaitTimeout,
    #[error("Table definition has changed, please retry transaction")]
    DefinitionChanged,
    #[error("Query execution was interrupted")]
    Interrupted,
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
    /// The code that MySQL sends for this error.
    pub fn mysql_code(&self) -> u16 {
        match self {
            TableError::Storage(error) => storage_code(error).0,
            TableError::Column(issue) => issue.mysql_code(),
            TableError::DuplicateKey { .. } => 1062,
            TableError::NoParentRow { .. } => 1452,
            TableError::HasChildRow { .. } => 1451,
            TableError::DuplicateForeignKey { .. } => 1826,
            TableError::ForeignKeyColumnCount { .. } => 1239,
            TableError::ForeignKeyNotNull { .. } => 1830,
            TableError::ForeignKeyMissingTable { .. } => 1824,
            TableError::ForeignKeyMissingColumn { .. } => 3734,
            TableError::ForeignKeyIncompatible { .. } => 3780,
            TableError::ForeignKeyMissingIndex { .. } => 1822,
            TableError::ColumnNeededByForeignKey { .. } => 1828,
            TableError::ColumnNeededByChild { .. } => 1829,
            TableError::ColumnUsedByForeignKey { .. } => 1832,
            TableError::ColumnUsedByChild { .. } => 1833,
            TableError::IndexNeededByForeignKey { .. } => 1553,
            TableError::ReferencedTable { .. } => 3730,
            TableError::RenamedReferencedTable => 1235,
            TableError::TruncatedReferencedTable { .. } => 1701,
            TableError::CheckViolated { .. } => 3819,
            TableError::DuplicateCheck { .. } => 3822,
            TableError::UnknownCheck { .. } => 3821,
            TableError::CheckOfUnknownColumn { .. } => 3820,
            TableError::CheckOfOtherColumn { .. } => 3813,
            TableError::CheckOfAutoIncrement { .. } => 3818,
            TableError::ColumnOfCheckChangesWithParent { .. } => 3823,
            TableError::ColumnNeededByCheck { .. } => 3959,
            TableError::UnknownDatabase { .. } => 1049,
            TableError::DatabaseExists { .. } => 1007,
            TableError::CannotDropDatabase { .. } => 1008,
            TableError::UnknownTable { .. } => 1146,
            TableError::CannotDropTable { .. } => 1051,
            TableError::TableExists { .. } => 1050,
            TableError::DuplicateColumn { .. } => 1060,
            TableError::DuplicateIndex { .. } => 1061,
            TableError::MultiplePrimaryKeys => 1068,
            TableError::TooManyIndexes { .. } => 1069,
            TableError::TooManyIndexParts { .. } => 1070,
            TableError::UnknownColumn { .. } => 1054,
            TableError::CannotDropAllColumns => 1090,
            TableError::KeyDoesNotExist { .. } => 1176,
            TableError::InvalidUseOfNull => 1138,
            TableError::TooManyColumns => 1117,
            TableError::NoColumns => 1113,
            TableError::KeyTooLong { .. } => 1071,
            TableError::UnknownKeyColumn { .. } => 1072,
            TableError::LongColumnNeedsPrefix { .. } => 1170,
            TableError::IncorrectPrefix => 1089,
            TableError::NullablePrimaryKey => 1171,
            TableError::ColumnTooLong { .. } => 1074,
            TableError::DuplicateLabel { .. } => 1291,
            TableError::IncorrectAutoColumn => 1075,
            TableError::IncorrectColumnSpecifier { .. } => 1063,
            TableError::InvalidDefault { .. } => 1067,
            TableError::LongColumnDefault { .. } => 1101,
            TableError::IncorrectDatabaseName { .. } => 1102,
            TableError::IncorrectTableName { .. } => 1103,
            TableError::IncorrectColumnName { .. } => 1166,
            TableError::IncorrectIndexName { .. } => 1280,
            TableError::NameTooLong { .. } => 1059,
            TableError::CannotDropIndex { .. } => 1091,
            TableError::RowTooLarge { .. } => 1118,
            TableError::UnknownType(_) => 4161,
            TableError::AutoIncrementExhausted => 1467,
            TableError::LockWaitTimeout => 1205,
            TableError::DefinitionChanged => 1412,
            TableError::Interrupted => 1317,
            TableError::TableNotEmpty { .. } | TableError::CatalogTooNew { .. } => 1105,
            TableError::Corrupt { .. } => 1034,
            TableError::TemporaryFile(error) => match error.source.kind() {
                ErrorKind::StorageFull | ErrorKind::QuotaExceeded => 1021,
                _ => 1026,
            },
        }
    }

    /// The five characters that stand for the class of the error.
    pub fn sqlstate(&self) -> &'static str {
        match self {
            TableError::Storage(error) => storage_code(error).1,
            TableError::Column(issue) => issue.sqlstate(),
            TableError::DuplicateKey { .. }
            | TableError::NoParentRow { .. }
            | TableError::HasChildRow { .. } => "23000",
            TableError::TableExists { .. } => "42S01",
            TableError::UnknownTable { .. } | TableError::CannotDropTable { .. } => "42S02",
            TableError::DuplicateColumn { .. } => "42S21",
            TableError::UnknownColumn { .. } => "42S22",
            TableError::InvalidUseOfNull => "22004",
            TableError::Interrupted => "70100",
            TableError::UnknownDatabase { .. }
            | TableError::ForeignKeyColumnCount { .. }
            | TableError::DuplicateIndex { .. }
            | TableError::MultiplePrimaryKeys
            | TableError::TooManyIndexes { .. }
            | TableError::TooManyIndexParts { .. }
            | TableError::NoColumns
            | TableError::CannotDropAllColumns
            | TableError::KeyDoesNotExist { .. }
            | TableError::KeyTooLong { .. }
            | TableError::UnknownKeyColumn { .. }
            | TableError::LongColumnNeedsPrefix { .. }
            | TableError::NullablePrimaryKey
            | TableError::ColumnTooLong { .. }
            | TableError::IncorrectAutoColumn
            | TableError::IncorrectColumnSpecifier { .. }
            | TableError::InvalidDefault { .. }
            | TableError::LongColumnDefault { .. }
            | TableError::IncorrectDatabaseName { .. }
            | TableError::IncorrectTableName { .. }
            | TableError::IncorrectColumnName { .. }
            | TableError::IncorrectIndexName { .. }
            | TableError::NameTooLong { .. }
            | TableError::CannotDropIndex { .. }
            | TableError::RowTooLarge { .. }
            | TableError::RenamedReferencedTable
            | TableError::TruncatedReferencedTable { .. }
            | TableError::UnknownType(_) => "42000",
            _ => "HY000",
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
fn storage_code(error: &StorageError) -> (u16, &'static str) {
    match error {
        // The log has no room: on its device, or until its archive has caught up.
        StorageError::DiskFull { .. } | StorageError::ArchiveBehind { .. } => (1021, "HY000"),
        StorageError::Corrupt { .. } | StorageError::Malformed { .. } => (1034, "HY000"),
        StorageError::PoolExhausted { .. } => (1041, "HY000"),
        StorageError::DuplicateKey { .. } => (1062, "23000"),
        StorageError::EntryTooLarge { .. } => (1118, "42000"),
        StorageError::KeyTooLarge { .. } => (1071, "42000"),
        StorageError::TransactionTooLarge { .. } | StorageError::SpillFileFull { .. } => {
            (1197, "HY000")
        }
        StorageError::VersionStoreFull { .. } | StorageError::TooManySnapshots { .. } => {
            (1041, "HY000")
        }
        StorageError::Deadlock => (1213, "40001"),
        StorageError::LockWaitTimeout => (1205, "HY000"),
        StorageError::LockNotAvailable => (3572, "HY000"),
        StorageError::LockWaitInterrupted => (1317, "70100"),
        StorageError::TooManyLocks { .. } => (1206, "HY000"),
        StorageError::Closed => (1053, "08S01"),
        _ => (1030, "HY000"),
    }
}
