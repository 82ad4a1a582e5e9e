//! The statements that Sheaf knows, as the parser delivers them.
//!
//! Queries and expressions stay in sqlparser's AST. What only MySQL has, and sqlparser does not parse, has types of
//! its own here.

use sheaf_table::{AccountName, GeneratedKind, ReferentialAction};
use sheaf_types::ColumnType;
use sheaf_types::error::codes::ErrorCode;
use sqlparser::ast;

use super::account::{AccountStatement, UserName};
use super::diagnostics::GetDiagnostics;
use super::replication::ReplicationStatement;
use super::resource_group::ResourceGroupStatement;
use super::view::CreateView;
use crate::error::{Result, SqlError};

/// A table's name as written: the database may be left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableName {
    pub database: Option<String>,
    pub table: String,
}

impl TableName {
    /// The table's database and name; error 1046 if neither the name nor the session has a database. Errors 1059 and
    /// 1103 for a name that no table can have.
    pub fn resolve(&self, current_database: Option<&str>) -> Result<(String, String)> {
        sheaf_table::check_table_name(&self.table)?;
        let database = self.database.as_deref().or(current_database);
        let database = database.ok_or_else(SqlError::no_database_selected)?;
        Ok((database.to_string(), self.table.clone()))
    }

    /// As MySQL writes it in messages: `database.table`.
    pub fn qualified(&self, current_database: Option<&str>) -> String {
        match self.database.as_deref().or(current_database) {
            Some(database) => format!("{database}.{}", self.table),
            None => self.table.clone(),
        }
    }
}

/// What CREATE DATABASE and ALTER DATABASE say of a database.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DatabaseOptions {
    pub character_set: Option<String>,
    pub collation: Option<String>,
}

/// What ANALYZE TABLE and its relatives do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MaintenanceVerb {
    Analyze,
    Check(Thoroughness),
    Optimize,
    Repair,
}

impl MaintenanceVerb {
    /// As results name it.
    pub fn name(self) -> &'static str {
        match self {
            MaintenanceVerb::Analyze => "analyze",
            MaintenanceVerb::Check(_) => "check",
            MaintenanceVerb::Optimize => "optimize",
            MaintenanceVerb::Repair => "repair",
        }
    }
}

/// How much CHECK TABLE does; of several words the one that asks for most counts. FAST, CHANGED and MEDIUM mean nothing
/// to tables that survive crashes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Thoroughness {
    /// Counts the entries of each index.
    Quick,
    /// Computes generated columns again besides.
    Medium,
    /// Compares the entries of each index with the rows besides.
    Extended,
    /// FOR UPGRADE: whether this program reads the table, which it does once it is open.
    ForUpgrade,
}

#[derive(Clone, Debug)]
pub enum Statement {
    Query(Box<ast::Query>),
    /// A query whose rows are not sent to the client.
    SelectInto {
        query: Box<ast::Query>,
        target: Box<IntoTarget>,
    },
    Insert(Box<ast::Insert>),
    Update(Box<Update>),
    Delete(Box<Delete>),
    LoadData(Box<LoadData>),
    /// The plugin that rewrites queries: INSTALL PLUGIN, UNINSTALL PLUGIN, and CALL of its procedure.
    InstallRewriter,
    UninstallRewriter,
    FlushRewriteRules,
    Explain(Box<Explain>),
    CreateDatabase {
        name: String,
        if_not_exists: bool,
        options: DatabaseOptions,
    },
    /// Without a name: of the current database.
    AlterDatabase {
        name: Option<String>,
        options: DatabaseOptions,
    },
    DropDatabase {
        name: String,
        if_exists: bool,
    },
    CreateTable(Box<CreateTable>),
    /// CREATE VIEW and ALTER VIEW.
    CreateView(Box<CreateView>),
    DropViews {
        names: Vec<TableName>,
        if_exists: bool,
    },
    DropTables {
        names: Vec<TableName>,
        if_exists: bool,
        /// Temporary tables only.
        temporary: bool,
    },
    /// DROP of what this version does not have: `code` is MySQL's error for something missing.
    DropAbsent {
        what: &'static str,
        code: ErrorCode,
        names: Vec<TableName>,
        if_exists: bool,
    },
    AlterTable {
        name: TableName,
        changes: Vec<TableChange>,
    },
    RenameTables(Vec<(TableName, TableName)>),
    TruncateTable(TableName),
    /// ANALYZE, CHECK, OPTIMIZE and REPAIR TABLE.
    Maintain {
        verb: MaintenanceVerb,
        names: Vec<TableName>,
    },
    /// CHECKSUM TABLE. QUICK: only what is known without reading rows, which is nothing.
    ChecksumTables {
        names: Vec<TableName>,
        is_quick: bool,
    },
    /// ANALYZE TABLE ... UPDATE HISTOGRAM with so many buckets, or DROP HISTOGRAM.
    Histograms {
        table: TableName,
        columns: Vec<String>,
        buckets: Option<u64>,
    },
    /// ADVISE INDEXES: Sheaf's own.
    Advise(Advise),
    /// BACKUP TO 'folder': Sheaf's own.
    Backup {
        folder: String,
    },
    Use(String),
    Set(Vec<Assignment>),
    SetTransaction {
        scope: Scope,
        isolation: Option<String>,
        read_only: Option<bool>,
    },
    Show(Show),
    /// FLUSH TABLES [...] WITH READ LOCK: of these tables, or, if there are none, of everything.
    FlushWithReadLock(Vec<TableName>),
    /// FLUSH of other things. What it names besides has nothing to do here.
    Flush {
        status: bool,
        optimizer_costs: bool,
        /// The file of the slow query log is opened again.
        slow_log: bool,
        /// The binary log goes on in another file.
        binary_log: bool,
    },
    /// PURGE BINARY LOGS and RESET BINARY LOGS AND GTIDS.
    BinaryLog(BinaryLogChange),
    Replication(ReplicationStatement),
    /// RESET PERSIST; a name: of one variable.
    ResetPersist {
        name: Option<String>,
        if_exists: bool,
    },
    /// SHUTDOWN: the server ends.
    Shutdown,
    Kill {
        connection: bool,
        id: Box<ast::Expr>,
    },
    Prepare {
        name: String,
        source: PrepareSource,
    },
    Execute {
        name: String,
        using: Vec<String>,
    },
    Deallocate {
        name: String,
    },
    /// BEGIN and START TRANSACTION.
    Begin {
        consistent_snapshot: bool,
        read_only: Option<bool>,
    },
    Commit(TransactionEnd),
    Rollback(TransactionEnd),
    Savepoint(String),
    RollbackTo(String),
    ReleaseSavepoint(String),
    LockTables(Vec<LockedTable>),
    UnlockTables,
    /// WAIT and NOWAIT of MariaDB: the statement waits at most so long for each lock.
    Within {
        seconds: u64,
        statement: Box<Statement>,
    },
    /// SET STATEMENT of MariaDB: the statement runs with these variables of the session.
    SetStatement {
        assignments: Vec<Assignment>,
        statement: Box<Statement>,
    },
    Do(Vec<ast::Expr>),
    /// GET DIAGNOSTICS: what the statement before says of itself goes to user variables.
    GetDiagnostics(Box<GetDiagnostics>),
    /// CREATE USER, GRANT and the like.
    Account(Box<AccountStatement>),
    /// CREATE, ALTER, DROP and SET RESOURCE GROUP.
    ResourceGroup(Box<ResourceGroupStatement>),
    /// Parsed, and not executed by this version; the text names the statement.
    Unsupported(String),
}

/// A table of LOCK TABLES.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockedTable {
    pub name: TableName,
    pub alias: Option<String>,
    /// WRITE, not READ.
    pub write: bool,
}

/// What COMMIT and ROLLBACK do besides.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TransactionEnd {
    /// AND CHAIN: the next transaction begins at once.
    pub chain: bool,
    /// RELEASE: the connection ends.
    pub release: bool,
}

#[derive(Clone, Debug)]
pub struct Explain {
    pub format: ExplainFormat,
    /// EXPLAIN ANALYZE: run it and show what happened.
    pub analyze: bool,
    pub target: ExplainTarget,
}

/// What EXPLAIN explains.
#[derive(Clone, Debug)]
pub enum ExplainTarget {
    Statement(Statement),
    /// FOR CONNECTION: what the session of this id is running.
    Connection(u64),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Advise {
    pub of: Advised,
    /// The most bytes that the indexes may take together.
    pub limit_bytes: Option<u64>,
    /// The first of them is made, measured and dropped.
    pub verify: bool,
}

/// Which statements ADVISE INDEXES looks at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Advised {
    /// All that have run.
    Workload,
    /// Those that have run in a database.
    Schema(String),
    /// This one.
    Statement(String),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExplainFormat {
    Traditional,
    Json,
    Tree,
}

// Changes of rows. INSERT and REPLACE are sqlparser's.

#[derive(Clone, Debug)]
pub struct Update {
    pub hints: Vec<ast::OptimizerHint>,
    pub ignore: bool,
    pub tables: Vec<ast::TableWithJoins>,
    pub assignments: Vec<ast::Assignment>,
    pub selection: Option<ast::Expr>,
    pub order_by: Vec<ast::OrderByExpr>,
    pub limit: Option<ast::Expr>,
}

#[derive(Clone, Debug)]
pub struct Delete {
    pub hints: Vec<ast::OptimizerHint>,
    pub ignore: bool,
    /// The tables to delete from, by name or alias, in the forms for several tables; empty in the form for one.
    pub targets: Vec<TableName>,
    pub tables: Vec<ast::TableWithJoins>,
    pub selection: Option<ast::Expr>,
    pub order_by: Vec<ast::OrderByExpr>,
    pub limit: Option<ast::Expr>,
    pub returning: Option<Vec<ast::SelectItem>>,
}

// Definitions.

#[derive(Clone, Debug)]
pub struct CreateTable {
    pub name: TableName,
    /// For this session, and until it ends.
    pub temporary: bool,
    pub if_not_exists: bool,
    /// OR REPLACE of MariaDB: a table of this name is dropped before.
    pub or_replace: bool,
    pub columns: Vec<ColumnDefinition>,
    pub keys: Vec<KeyDefinition>,
    pub foreign_keys: Vec<ForeignKeyDefinition>,
    /// Those of columns included.
    pub checks: Vec<CheckDefinition>,
    pub collation: Option<String>,
    pub character_set: Option<String>,
    pub auto_increment: Option<u64>,
    pub comment: String,
    /// CREATE TABLE … LIKE other.
    pub like: Option<TableName>,
    /// CREATE TABLE … SELECT.
    pub query: Option<Box<ast::Query>>,
    /// CREATE TABLE … IGNORE SELECT and CREATE TABLE … REPLACE SELECT.
    pub on_duplicate: OnDuplicate,
}

#[derive(Clone, Debug)]
pub struct ColumnDefinition {
    pub name: String,
    pub ty: TypeName,
    pub not_null: bool,
    /// NULL was written.
    pub explicit_null: bool,
    pub default: Option<ast::Expr>,
    /// The default as it is kept if it is computed for each row.
    pub default_text: String,
    pub on_update: Option<ast::Expr>,
    pub auto_increment: bool,
    pub generated: Option<GeneratedDefinition>,
    pub invisible: bool,
    pub comment: String,
}

/// `[GENERATED ALWAYS] AS (expression) [VIRTUAL | STORED]`.
#[derive(Clone, Debug)]
pub struct GeneratedDefinition {
    pub expression: ast::Expr,
    /// The expression as it is kept.
    pub text: String,
    pub kind: GeneratedKind,
}

/// A column's type as written. Texts get their collation from the column, the table or the default, in this
/// order, so it is not part of the type yet.
#[derive(Clone, Debug)]
pub struct TypeName {
    /// With [`sheaf_types::Collation`]'s default in it.
    pub ty: ColumnType,
    pub character_set: Option<String>,
    pub collation: Option<String>,
    /// TEXT(n): characters, whose bytes are those of the character set.
    pub characters: Option<u64>,
    /// REAL: a FLOAT under the mode REAL_AS_FLOAT.
    pub real: bool,
    /// CHAR(n) BINARY: the `_bin` collation of its character set.
    pub binary: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyKind {
    Primary,
    Unique,
    Plain,
}

#[derive(Clone, Debug)]
pub struct KeyDefinition {
    pub kind: KeyKind,
    pub name: Option<String>,
    pub parts: Vec<KeyPart>,
    pub comment: String,
    pub invisible: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyPart {
    /// Empty if the part is an expression.
    pub column: String,
    pub expression: Option<Box<KeyExpression>>,
    pub prefix_length: Option<u32>,
    pub descending: bool,
}

/// A part of a key that is an expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyExpression {
    pub expression: ast::Expr,
    /// The expression as it is kept.
    pub text: String,
}

/// `[CONSTRAINT name] FOREIGN KEY [index] (columns) REFERENCES table (columns) [ON DELETE …] [ON UPDATE …]`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForeignKeyDefinition {
    pub name: Option<String>,
    pub index: Option<String>,
    pub columns: Vec<String>,
    pub table: TableName,
    /// Empty: the columns of the table's primary key.
    pub referenced: Vec<String>,
    pub on_delete: ReferentialAction,
    pub on_update: ReferentialAction,
}

/// `[CONSTRAINT [name]] CHECK (expression) [[NOT] ENFORCED]`
#[derive(Clone, Debug, PartialEq)]
pub struct CheckDefinition {
    pub name: Option<String>,
    pub expression: ast::Expr,
    /// The expression as it is kept: columns in backticks and without their table.
    pub text: String,
    pub enforced: bool,
    /// The column whose definition it is part of.
    pub of_column: Option<String>,
}

/// Where a column goes among the others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ColumnPlace {
    First,
    After(String),
}

#[derive(Clone, Debug)]
pub enum TableChange {
    AddColumn {
        column: Box<ColumnDefinition>,
        /// Those that the column's definition declares.
        keys: Vec<KeyDefinition>,
        /// `None`: behind the others.
        place: Option<ColumnPlace>,
    },
    /// MODIFY, and CHANGE with another name.
    ChangeColumn {
        name: String,
        column: Box<ColumnDefinition>,
        keys: Vec<KeyDefinition>,
        /// `None`: where it is.
        place: Option<ColumnPlace>,
    },
    RenameColumn {
        old: String,
        new: String,
    },
    /// SET DEFAULT; `None`: DROP DEFAULT.
    SetDefault {
        column: String,
        default: Option<Box<ast::Expr>>,
        /// As that of [`ColumnDefinition`].
        default_text: String,
    },
    /// ALTER COLUMN ... SET VISIBLE and SET INVISIBLE.
    ColumnVisibility {
        column: String,
        invisible: bool,
    },
    DropColumn {
        name: String,
    },
    /// ALTER INDEX ... VISIBLE and INVISIBLE.
    KeyVisibility {
        name: String,
        invisible: bool,
    },
    AddKey(KeyDefinition),
    AddForeignKey(ForeignKeyDefinition),
    DropForeignKey {
        name: String,
    },
    AddCheck(Box<CheckDefinition>),
    DropCheck {
        name: String,
    },
    /// DROP CONSTRAINT: whichever constraint has this name.
    DropConstraint {
        name: String,
    },
    /// ALTER CHECK and ALTER CONSTRAINT.
    EnforceCheck {
        name: String,
        enforced: bool,
    },
    DropKey {
        name: String,
    },
    DropPrimaryKey,
    RenameKey {
        old: String,
        new: String,
    },
    AutoIncrement(u64),
    Comment(String),
    /// `[DEFAULT] CHARACTER SET` and COLLATE: for columns to come.
    DefaultCollation {
        character_set: Option<String>,
        collation: Option<String>,
    },
    /// CONVERT TO CHARACTER SET: for all texts. DEFAULT, the database's, is `None`.
    ConvertTo {
        character_set: Option<String>,
        collation: Option<String>,
    },
    /// FORCE, ENGINE=InnoDB: the rows are written anew.
    Rebuild,
    /// ORDER BY: the rows are written anew in the order of these columns.
    OrderRows(Vec<String>),
    RenameTo(TableName),
    /// ALGORITHM=…: not a change, but a demand on the others.
    Algorithm(String),
    /// LOCK=…, the same.
    Lock(String),
    /// DISABLE KEYS, ROW_FORMAT=… and the like: read, nothing to do.
    Nothing,
    /// The text names what is not supported.
    Unsupported(String),
}

// Loading.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnDuplicate {
    Error,
    Ignore,
    Replace,
}

#[derive(Clone, Debug)]
pub struct LoadData {
    pub local: bool,
    pub file: String,
    pub on_duplicate: OnDuplicate,
    pub table: TableName,
    pub character_set: Option<String>,
    pub format: FileFormat,
    pub ignore_lines: u64,
    /// Empty: all columns in their order.
    pub targets: Vec<LoadTarget>,
    pub set: Vec<(String, ast::Expr)>,
}

/// Where the rows of a query go instead of to the client.
#[derive(Clone, Debug)]
pub enum IntoTarget {
    /// The values of the only row to user variables, by their names in lower case.
    Variables(Vec<String>),
    /// A new file of the server, of lines and fields.
    OutFile(OutFile),
    /// A new file of the server, of the bytes of the only row.
    DumpFile(String),
}

#[derive(Clone, Debug)]
pub struct OutFile {
    pub name: String,
    pub character_set: Option<String>,
    pub format: FileFormat,
}

/// The shape of a data file, with MySQL's defaults.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileFormat {
    pub fields_terminated_by: Vec<u8>,
    pub enclosed_by: Option<u8>,
    pub optionally_enclosed: bool,
    pub escaped_by: Option<u8>,
    pub lines_starting_by: Vec<u8>,
    pub lines_terminated_by: Vec<u8>,
}

impl Default for FileFormat {
    fn default() -> Self {
        FileFormat {
            fields_terminated_by: b"\t".to_vec(),
            enclosed_by: None,
            optionally_enclosed: false,
            escaped_by: Some(b'\\'),
            lines_starting_by: Vec::new(),
            lines_terminated_by: b"\n".to_vec(),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LoadTarget {
    Column(String),
    /// A user variable, without its `@`.
    Variable(String),
}

// Variables.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// SET x, SET @@x: the session's.
    Default,
    Session,
    Global,
}

/// Whether an assignment is kept for the next start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Persist {
    No,
    /// SET PERSIST: it holds from now on.
    AndSet,
    /// SET PERSIST_ONLY: it holds from the next start on.
    Only,
}

#[derive(Clone, Debug)]
pub enum Assignment {
    System {
        scope: Scope,
        persist: Persist,
        name: String,
        value: SetValue,
    },
    /// A user variable, without its `@`.
    User {
        name: String,
        value: Box<ast::Expr>,
    },
    Names {
        character_set: Option<String>,
        collation: Option<String>,
    },
    CharacterSet(Option<String>),
}

#[derive(Clone, Debug)]
pub enum SetValue {
    /// SET x = DEFAULT.
    Default,
    /// A bare word, as in `SET sql_mode = ANSI` or `SET x = ON`.
    Word(String),
    Expression(Box<ast::Expr>),
}

#[derive(Clone, Debug)]
pub enum PrepareSource {
    Text(String),
    Variable(String),
}

// SHOW.

/// LIKE 'pattern' or WHERE condition at the end of a SHOW.
#[derive(Clone, Debug, Default)]
pub enum Filter {
    #[default]
    None,
    Like(String),
    Where(Box<ast::Expr>),
}

#[derive(Clone, Debug)]
pub enum Show {
    Databases(Filter),
    Tables {
        full: bool,
        database: Option<String>,
        filter: Filter,
    },
    TableStatus {
        database: Option<String>,
        filter: Filter,
    },
    Columns {
        full: bool,
        table: TableName,
        filter: Filter,
    },
    Index {
        table: TableName,
        filter: Filter,
    },
    CreateTable(TableName),
    CreateView(TableName),
    CreateDatabase {
        name: String,
        /// The statement that is shown has it too.
        if_not_exists: bool,
    },
    Variables {
        scope: Scope,
        filter: Filter,
    },
    Status {
        scope: Scope,
        filter: Filter,
    },
    Warnings {
        errors_only: bool,
        count: bool,
        limit: Option<(u64, u64)>,
    },
    ProcessList {
        full: bool,
    },
    /// SHOW ENGINE name STATUS
    EngineStatus(String),
    Engines,
    Plugins,
    Privileges,
    CharacterSet(Filter),
    Collation(Filter),
    Grants {
        user: UserName,
        /// USING: what the account could do with these roles.
        roles: Vec<AccountName>,
    },
    CreateUser(UserName),
    BinaryLogs,
    /// The followers that have registered.
    Replicas,
    BinaryLogStatus,
    ReplicaStatus {
        /// The names of columns are those before MySQL 8.0.22.
        old_names: bool,
    },
    /// SHOW BINLOG EVENTS
    BinlogEvents {
        /// Otherwise the first one.
        file: Option<String>,
        /// The position in the file to begin at.
        from: Option<u64>,
        /// Offset and count.
        limit: Option<(u64, u64)>,
    },
    /// Lists of things that Sheaf does not have, always empty: the text is MySQL's name of the list.
    Empty(EmptyList),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EmptyList {
    Triggers,
    Events,
    ProcedureStatus,
    FunctionStatus,
    OpenTables,
}

/// What becomes of files of the binary log.
#[derive(Clone, Debug)]
pub enum BinaryLogChange {
    /// Files before this one go.
    PurgeTo(String),
    /// Files that were written last before this moment go.
    PurgeBefore(Box<ast::Expr>),
    /// All go, and numbers begin anew.
    Reset,
}
