//! One table of what each kind of statement is.
//!
//! [`properties_of`] is one `match` that names every statement. The compiler refuses a new
//! statement until its row says which privileges it needs, how it behaves under LOCK TABLES, and what it does to the
//! open transaction. Nothing has a default that opens a door:
//!
//! ```text
//!   requirement        privileges                accounts/requirements.rs
//!   under_lock_tables  tables it may name        locking/locked_tables.rs
//!   transaction        begins, commits           dispatch/run.rs
//!   changes            READ ONLY, read locks     dispatch/run.rs
//!   command            Com_*                     dispatch/run.rs
//!   preparing          columns, error 1295       dispatch/prepared.rs
//!   hints              comments with hints       dispatch/hints.rs
//!   is_traced          optimizer_trace           session_parts/traces.rs
//!   plans_queries      memory while it runs      dispatch/run.rs
//!   logged             DDL in the binary log     dispatch/run.rs
//! ```
//!
//! The rows hold references into the statement. The reader of a column does the work, so building a row costs nothing.
//! MySQL has the same table as `sql_command_flags` (`sql/sql_parse.cc`).

use sheaf_table::Privileges;
use sqlparser::ast;

use crate::binlog::statement::StatementKind;
use crate::parser::account::AccountStatement;
use crate::parser::replication::ReplicationStatement;
use crate::parser::resource_group::ResourceGroupStatement;
use crate::parser::statement::{
    Assignment, BinaryLogChange, CreateTable, Delete, ExplainTarget, IntoTarget, LoadData,
    LockedTable, MaintenanceVerb, Scope, Show, Statement, TableChange, TableName, Update,
};
use crate::parser::view::ViewChange;
use crate::session::status::Command;
use crate::variables::TO_SET_GLOBALS;

/// What a statement is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Properties<'a> {
    /// What `Com_*` counts it as.
    pub(crate) command: Option<Command>,
    pub(crate) requirement: Requirement<'a>,
    pub(crate) under_lock_tables: UnderLockTables<'a>,
    pub(crate) transaction: Effect,
    pub(crate) changes: Changes,
    pub(crate) preparing: Preparing<'a>,
    pub(crate) hints: Hints<'a>,
    /// `optimizer_trace` records how it is planned.
    pub(crate) is_traced: bool,
    /// Queries are planned for it. Others have taken all that they take for their text when it is parsed.
    pub(crate) plans_queries: bool,
    /// `max_execution_time` limits it, besides `max_statement_time`.
    pub(crate) is_query: bool,
    /// It says what the statement before it has said, so it does not clear its warnings.
    pub(crate) keeps_warnings: bool,
    /// How the binary log has its text, if the text is there: a statement that changes tables, views or databases.
    pub(crate) logged: Option<StatementKind>,
}

/// The privileges that a statement needs before it runs.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Requirement<'a> {
    /// It concerns the session alone.
    Nothing,
    /// What it names is checked where it is looked up: tables in the planner, sessions in KILL, objects in SHOW.
    WhenLookedUp,
    /// One of these, globally.
    OneOf(Privileges),
    /// Privileges on a database; `None`: on the current one.
    Database(Option<&'a str>, Privileges),
    Tables(&'a [TableName], Privileges),
    /// The same of views, whose names mean no temporary tables.
    Views(&'a [TableName], Privileges),
    /// To see what another session does.
    Session(u64),
    /// EXECUTE for a stored routine.
    Routine(&'static str),
    Insert(&'a ast::Insert),
    Update(&'a Update),
    Delete(&'a Delete),
    LoadData(&'a LoadData),
    Create(&'a CreateTable),
    Alter(&'a TableName, &'a [TableChange]),
    Rename(&'a [(TableName, TableName)]),
    Lock(&'a [LockedTable]),
    ReadLock(&'a [TableName]),
    Account(&'a AccountStatement),
    ResourceGroup(&'a ResourceGroupStatement),
}

/// What a statement may use while the session has tables locked.
#[derive(Clone, Copy, Debug)]
pub(crate) enum UnderLockTables<'a> {
    /// It names no tables, or those of the server itself.
    Free,
    /// Error 1192.
    Refused,
    // Tables that it must have locked.
    Query(&'a ast::Query),
    Insert(&'a ast::Insert),
    Update(&'a Update),
    Delete(&'a Delete),
    LoadData(&'a LoadData),
    Expressions(&'a [ast::Expr]),
    Read(&'a [TableName]),
    // Tables that it must have locked for WRITE.
    Create(&'a CreateTable),
    Define(&'a [TableName]),
    DefineViews(&'a [TableName]),
    Alter(&'a TableName, &'a [TableChange]),
    Rename(&'a [(TableName, TableName)]),
}

/// What a statement does to the session's transaction before it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    /// It opens one while autocommit is off.
    Begins,
    /// It commits the open one ("Statements That Cause an Implicit Commit").
    Commits,
    /// None, or its own business: COMMIT, SET autocommit, UNLOCK TABLES.
    None,
}

/// What a statement changes that outlives the session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Changes {
    Nothing,
    /// Rows: READ ONLY and read locks are checked when it opens its tables.
    Rows,
    /// What the server knows about tables. Only the global read lock keeps it out, as in MySQL.
    Statistics,
    /// Temporary tables are made or dropped. READ ONLY is checked before it runs; no lock keeps it out.
    TemporaryDefinitions,
    /// Definitions, accounts, groups. READ ONLY and read locks are checked before it runs.
    Definitions,
}

/// What happens when a statement is prepared.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Preparing<'a> {
    /// The columns of its result are known.
    Query(&'a ast::Query),
    /// It has no result, or one that is known when it runs.
    WithoutColumns,
    /// Error 1295.
    Refused,
    /// Not built: the text names it.
    Unsupported(&'a str),
}

/// The comments that may hold optimizer hints.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Hints<'a> {
    pub(crate) comments: &'a [ast::OptimizerHint],
    /// It may have a limit of its time: a SELECT.
    pub(crate) may_limit_time: bool,
}

impl<'a> Properties<'a> {
    /// What every statement has to say. The rest is that of most statements until a row says otherwise.
    fn new(
        command: impl Into<Option<Command>>,
        requirement: Requirement<'a>,
        under_lock_tables: UnderLockTables<'a>,
        transaction: Effect,
        changes: Changes,
    ) -> Self {
        Self {
            command: command.into(),
            requirement,
            under_lock_tables,
            transaction,
            changes,
            preparing: Preparing::WithoutColumns,
            hints: Hints::default(),
            is_traced: false,
            plans_queries: false,
            is_query: false,
            keeps_warnings: false,
            logged: None,
        }
    }

    /// A statement that concerns the session alone.
    fn of_session(command: impl Into<Option<Command>>, requirement: Requirement<'a>) -> Self {
        let (effect, changes) = (Effect::None, Changes::Nothing);
        Self::new(command, requirement, UnderLockTables::Free, effect, changes)
    }

    /// A statement that changes definitions, and commits.
    fn of_definition(
        command: impl Into<Option<Command>>,
        requirement: Requirement<'a>,
        under_lock_tables: UnderLockTables<'a>,
        logged: Option<StatementKind>,
    ) -> Self {
        let (effect, changes) = (Effect::Commits, Changes::Definitions);
        Self {
            logged,
            ..Self::new(command, requirement, under_lock_tables, effect, changes)
        }
    }

    /// A statement that reads or changes rows.
    fn of_rows(
        command: Command,
        requirement: Requirement<'a>,
        under_lock_tables: UnderLockTables<'a>,
        changes: Changes,
    ) -> Self {
        Self::new(
            command,
            requirement,
            under_lock_tables,
            Effect::Begins,
            changes,
        )
    }

    /// It is planned: its comments may hold hints, and traces show how.
    fn planned(self, comments: &'a [ast::OptimizerHint]) -> Self {
        let hints = Hints {
            comments,
            may_limit_time: false,
        };
        Self {
            hints,
            is_traced: true,
            ..self
        }
    }

    /// Whether queries are planned for it.
    fn with_queries(self, plans_queries: bool) -> Self {
        Self {
            plans_queries,
            ..self
        }
    }

    fn prepared(self, preparing: Preparing<'a>) -> Self {
        Self { preparing, ..self }
    }
}

/// What a statement is. This is the only place that says it.
pub(crate) fn properties_of(statement: &Statement) -> Properties<'_> {
    use UnderLockTables::{Free, Refused};
    match statement {
        // Rows.
        Statement::Query(query) => {
            let locks = UnderLockTables::Query(query);
            let read = Requirement::WhenLookedUp;
            let query_only = Hints {
                comments: comments_of_query(query),
                may_limit_time: true,
            };
            Properties {
                is_query: true,
                is_traced: true,
                plans_queries: true,
                hints: query_only,
                preparing: Preparing::Query(query),
                ..Properties::of_rows(Command::Select, read, locks, Changes::Nothing)
            }
        }
        Statement::SelectInto { query, target } => Properties {
            is_query: true,
            is_traced: true,
            plans_queries: true,
            hints: Hints {
                comments: comments_of_query(query),
                may_limit_time: true,
            },
            ..Properties::of_rows(
                Command::Select,
                match **target {
                    IntoTarget::Variables(_) => Requirement::WhenLookedUp,
                    // Besides what the query needs.
                    IntoTarget::OutFile(_) | IntoTarget::DumpFile(_) => {
                        Requirement::OneOf(Privileges::FILE)
                    }
                },
                UnderLockTables::Query(query),
                Changes::Nothing,
            )
        },
        Statement::Insert(insert) => Properties::of_rows(
            command_of_insert(insert),
            Requirement::Insert(insert),
            UnderLockTables::Insert(insert),
            Changes::Rows,
        )
        .planned(comments_of_insert(insert))
        .with_queries(command_of_insert(insert) == Command::InsertSelect),
        Statement::Update(update) => Properties::of_rows(
            match update.tables.as_slice() {
                [table] if table.joins.is_empty() => Command::Update,
                _ => Command::UpdateMulti,
            },
            Requirement::Update(update),
            UnderLockTables::Update(update),
            Changes::Rows,
        )
        .planned(&update.hints)
        .with_queries(true),
        Statement::Delete(delete) => Properties::of_rows(
            match delete.targets.is_empty() {
                true => Command::Delete,
                false => Command::DeleteMulti,
            },
            Requirement::Delete(delete),
            UnderLockTables::Delete(delete),
            Changes::Rows,
        )
        .planned(&delete.hints)
        .with_queries(true),
        Statement::LoadData(load) => Properties::of_rows(
            Command::Load,
            Requirement::LoadData(load),
            UnderLockTables::LoadData(load),
            Changes::Rows,
        ),
        Statement::Do(expressions) => Properties::new(
            Command::Do,
            Requirement::WhenLookedUp,
            UnderLockTables::Expressions(expressions),
            Effect::None,
            Changes::Nothing,
        )
        .with_queries(true),
        Statement::Explain(explain) => {
            let (requirement, locks, hints) = match &explain.target {
                ExplainTarget::Statement(statement) => {
                    let explained = properties_of(statement);
                    let (needs, locks) = (explained.requirement, explained.under_lock_tables);
                    (needs, locks, explained.hints)
                }
                ExplainTarget::Connection(id) => {
                    (Requirement::Session(*id), Free, Hints::default())
                }
            };
            let (effect, changes) = (Effect::None, Changes::Nothing);
            Properties {
                is_query: true,
                is_traced: true,
                plans_queries: true,
                hints,
                ..Properties::new(Command::Explain, requirement, locks, effect, changes)
            }
        }
        // Definitions.
        Statement::CreateDatabase { name, .. } => Properties::of_definition(
            Command::CreateDb,
            Requirement::Database(Some(name), Privileges::CREATE),
            Refused,
            Some(StatementKind::Database),
        ),
        Statement::AlterDatabase { name, .. } => Properties::of_definition(
            Command::AlterDb,
            Requirement::Database(name.as_deref(), Privileges::ALTER),
            Refused,
            Some(StatementKind::Database),
        ),
        Statement::DropDatabase { name, .. } => Properties::of_definition(
            Command::DropDb,
            Requirement::Database(Some(name), Privileges::DROP),
            Refused,
            Some(StatementKind::Database),
        ),
        // What it makes is the session's own, so nothing is committed.
        Statement::CreateTable(create) if create.temporary => Properties::new(
            Command::CreateTable,
            Requirement::Create(create),
            match (&create.query, &create.like) {
                (Some(query), _) => UnderLockTables::Query(query),
                (None, Some(like)) => UnderLockTables::Read(std::slice::from_ref(like)),
                (None, None) => Free,
            },
            match create.query {
                Some(_) => Effect::Begins,
                None => Effect::None,
            },
            Changes::TemporaryDefinitions,
        )
        .with_queries(create.query.is_some()),
        Statement::DropTables {
            temporary: true, ..
        } => Properties::new(
            Command::DropTable,
            // It drops no others.
            Requirement::Nothing,
            Free,
            Effect::None,
            Changes::TemporaryDefinitions,
        ),
        Statement::CreateTable(create) => Properties::of_definition(
            Command::CreateTable,
            Requirement::Create(create),
            UnderLockTables::Create(create),
            Some(StatementKind::Table),
        )
        .with_queries(create.query.is_some()),
        Statement::CreateView(create) => Properties::of_definition(
            match create.change {
                ViewChange::Alter => None,
                ViewChange::Create { .. } | ViewChange::Replace => Some(Command::CreateView),
            },
            Requirement::Views(
                std::slice::from_ref(&create.name),
                match create.change {
                    ViewChange::Create { .. } => Privileges::CREATE_VIEW,
                    ViewChange::Replace | ViewChange::Alter => {
                        Privileges::CREATE_VIEW | Privileges::DROP
                    }
                },
            ),
            UnderLockTables::DefineViews(std::slice::from_ref(&create.name)),
            Some(StatementKind::Other),
        )
        .with_queries(true),
        Statement::DropViews { names, .. } => Properties::of_definition(
            Command::DropView,
            Requirement::Views(names, Privileges::DROP),
            UnderLockTables::DefineViews(names),
            Some(StatementKind::Other),
        ),
        Statement::DropTables { names, .. } => Properties::of_definition(
            Command::DropTable,
            Requirement::Tables(names, Privileges::DROP),
            UnderLockTables::Define(names),
            Some(StatementKind::Other),
        ),
        // Nothing of the kind exists, so nothing changes.
        Statement::DropAbsent { .. } => Properties::of_session(None, Requirement::WhenLookedUp),
        Statement::AlterTable { name, changes } => Properties::of_definition(
            Command::AlterTable,
            Requirement::Alter(name, changes),
            UnderLockTables::Alter(name, changes),
            Some(StatementKind::Table),
        ),
        Statement::RenameTables(pairs) => Properties::of_definition(
            Command::RenameTable,
            Requirement::Rename(pairs),
            UnderLockTables::Rename(pairs),
            Some(StatementKind::Other),
        ),
        Statement::TruncateTable(name) => {
            let names = std::slice::from_ref(name);
            Properties::of_definition(
                Command::Truncate,
                Requirement::Tables(names, Privileges::DROP),
                UnderLockTables::Define(names),
                Some(StatementKind::Other),
            )
        }
        Statement::InstallRewriter | Statement::UninstallRewriter => {
            Properties::of_definition(None, Requirement::OneOf(TO_SET_GLOBALS), Free, None)
        }
        Statement::FlushRewriteRules => Properties::new(
            None,
            Requirement::Routine("query_rewrite.flush_rewrite_rules"),
            Free,
            Effect::Commits,
            Changes::Nothing,
        ),
        Statement::Account(statement) => {
            let requirement = Requirement::Account(statement);
            match **statement {
                AccountStatement::SetRole(_) => Properties::of_session(None, requirement),
                AccountStatement::Create { .. }
                | AccountStatement::Alter { .. }
                | AccountStatement::Drop { .. }
                | AccountStatement::Rename(_)
                | AccountStatement::SetPassword { .. }
                | AccountStatement::Grant(_)
                | AccountStatement::Revoke { .. }
                | AccountStatement::RevokeAll { .. }
                | AccountStatement::CreateRoles { .. }
                | AccountStatement::DropRoles { .. }
                | AccountStatement::GrantRoles { .. }
                | AccountStatement::RevokeRoles { .. }
                | AccountStatement::SetDefaultRole { .. } => {
                    let logged = Some(StatementKind::Other);
                    Properties::of_definition(None, requirement, Free, logged)
                }
            }
        }
        Statement::ResourceGroup(statement) => {
            let requirement = Requirement::ResourceGroup(statement);
            match **statement {
                ResourceGroupStatement::Set { .. } => Properties::of_session(None, requirement),
                ResourceGroupStatement::Create { .. }
                | ResourceGroupStatement::Alter { .. }
                | ResourceGroupStatement::Drop { .. } => {
                    Properties::of_definition(None, requirement, Free, None)
                }
            }
        }
        // Administration.
        Statement::Maintain { verb, names } => {
            let needs = match verb {
                MaintenanceVerb::Check(_) => Privileges::SELECT,
                MaintenanceVerb::Analyze | MaintenanceVerb::Optimize | MaintenanceVerb::Repair => {
                    Privileges::SELECT | Privileges::INSERT
                }
            };
            let changes = match verb {
                MaintenanceVerb::Analyze | MaintenanceVerb::Optimize => Changes::Statistics,
                MaintenanceVerb::Check(_) | MaintenanceVerb::Repair => Changes::Nothing,
            };
            Properties::new(
                Command::Analyze,
                Requirement::Tables(names, needs),
                UnderLockTables::Read(names),
                Effect::Commits,
                changes,
            )
        }
        Statement::ChecksumTables { names, .. } => Properties::of_rows(
            Command::Checksum,
            Requirement::Tables(names, Privileges::SELECT),
            UnderLockTables::Read(names),
            Changes::Nothing,
        ),
        Statement::Histograms { table, .. } => {
            let names = std::slice::from_ref(table);
            Properties::new(
                Command::Analyze,
                Requirement::Tables(names, Privileges::SELECT | Privileges::INSERT),
                UnderLockTables::Read(names),
                Effect::Commits,
                Changes::Statistics,
            )
        }
        // The statements that it plans are checked one by one, and the digests as a table.
        Statement::Advise(advise) => Properties {
            is_query: true,
            plans_queries: true,
            // As the definition that verifies an index does.
            transaction: match advise.verify {
                true => Effect::Commits,
                false => Effect::None,
            },
            ..Properties::of_session(None, Requirement::WhenLookedUp)
        },
        Statement::Backup { .. } => Properties::new(
            None,
            Requirement::OneOf(Privileges::BACKUP_ADMIN | Privileges::SUPER),
            Free,
            Effect::Commits,
            Changes::Nothing,
        ),
        Statement::Flush { .. } => {
            Properties::of_session(Command::Flush, Requirement::OneOf(Privileges::RELOAD))
        }
        Statement::BinaryLog(change) => Properties::of_session(
            None,
            Requirement::OneOf(match change {
                BinaryLogChange::Reset => Privileges::RELOAD,
                BinaryLogChange::PurgeTo(_) | BinaryLogChange::PurgeBefore(_) => Privileges::SUPER,
            }),
        )
        .with_queries(true),
        Statement::Replication(statement) => Properties::of_session(
            None,
            Requirement::OneOf(match statement {
                ReplicationStatement::Reset { .. } => Privileges::RELOAD,
                ReplicationStatement::ChangeSource(_)
                | ReplicationStatement::ChangeFilter(_)
                | ReplicationStatement::Start { .. }
                | ReplicationStatement::Stop(_) => {
                    Privileges::SUPER | Privileges::REPLICATION_SLAVE_ADMIN
                }
            }),
        ),
        Statement::ResetPersist { .. } => {
            Properties::of_session(None, Requirement::OneOf(TO_SET_GLOBALS))
        }
        Statement::Shutdown => {
            Properties::of_session(Command::Shutdown, Requirement::OneOf(Privileges::SHUTDOWN))
        }
        Statement::Kill { .. } => Properties::of_session(Command::Kill, Requirement::WhenLookedUp),
        Statement::Show(show) => Properties {
            keeps_warnings: matches!(show, Show::Warnings { .. }),
            ..Properties::of_session(Command::Show, Requirement::WhenLookedUp)
        },
        // Locks of tables.
        Statement::LockTables(tables) => Properties::new(
            Command::LockTables,
            Requirement::Lock(tables),
            Free,
            Effect::Commits,
            Changes::Nothing,
        ),
        Statement::FlushWithReadLock(tables) => Properties::new(
            Command::Flush,
            Requirement::ReadLock(tables),
            Free,
            Effect::Commits,
            Changes::Nothing,
        ),
        Statement::UnlockTables => {
            Properties::of_session(Command::UnlockTables, Requirement::Nothing)
        }
        // The session.
        Statement::Use(_) => Properties::of_session(Command::ChangeDb, Requirement::WhenLookedUp),
        Statement::Set(assignments) => {
            let is_global = |assignment: &Assignment| matches!(assignment, Assignment::System { scope, .. } if *scope == Scope::Global);
            let requirement = match assignments.iter().any(is_global) {
                true => Requirement::OneOf(TO_SET_GLOBALS),
                false => Requirement::WhenLookedUp,
            };
            Properties::of_session(Command::SetOption, requirement).with_queries(true)
        }
        Statement::SetTransaction { scope, .. } => {
            let requirement = match *scope == Scope::Global {
                true => Requirement::OneOf(TO_SET_GLOBALS),
                false => Requirement::Nothing,
            };
            Properties::of_session(Command::SetOption, requirement)
        }
        Statement::Prepare { .. } => {
            Properties::of_session(Command::PrepareSql, Requirement::Nothing)
                .prepared(Preparing::Refused)
        }
        // The prepared statement is checked as itself.
        Statement::Execute { .. } => {
            Properties::of_session(Command::ExecuteSql, Requirement::WhenLookedUp)
                .prepared(Preparing::Refused)
        }
        Statement::Deallocate { .. } => {
            Properties::of_session(Command::DeallocSql, Requirement::Nothing)
                .prepared(Preparing::Refused)
        }
        Statement::Begin { .. } => Properties::of_session(Command::Begin, Requirement::Nothing),
        Statement::Commit(_) => Properties::of_session(Command::Commit, Requirement::Nothing),
        Statement::Rollback(_) => Properties::of_session(Command::Rollback, Requirement::Nothing),
        Statement::Savepoint(_) => Properties::of_session(Command::Savepoint, Requirement::Nothing),
        Statement::RollbackTo(_) => {
            Properties::of_session(Command::RollbackToSavepoint, Requirement::Nothing)
        }
        Statement::ReleaseSavepoint(_) => {
            Properties::of_session(Command::ReleaseSavepoint, Requirement::Nothing)
        }
        Statement::GetDiagnostics(_) => Properties {
            keeps_warnings: true,
            preparing: Preparing::Refused,
            ..Properties::of_session(Command::GetDiagnostics, Requirement::Nothing)
        },
        // What is in front of it is obeyed already: it is what it contains, which is logged as itself.
        Statement::Within { statement, .. } | Statement::SetStatement { statement, .. } => {
            Properties {
                logged: None,
                ..properties_of(statement)
            }
        }
        Statement::Unsupported(what) => Properties::of_session(None, Requirement::Nothing)
            .prepared(Preparing::Unsupported(what)),
    }
}

fn command_of_insert(insert: &ast::Insert) -> Command {
    match insert.source.as_deref().map(|source| source.body.as_ref()) {
        Some(ast::SetExpr::Values(_)) | None => Command::Insert,
        Some(_) => Command::InsertSelect,
    }
}

/// The comments behind the statement's first word.
fn comments_of_insert(insert: &ast::Insert) -> &[ast::OptimizerHint] {
    match (&insert.source, insert.optimizer_hints.as_slice()) {
        (Some(source), []) => comments_of_query(source),
        (_, own) => own,
    }
}

fn comments_of_query(query: &ast::Query) -> &[ast::OptimizerHint] {
    let mut body = query.body.as_ref();
    loop {
        body = match body {
            ast::SetExpr::Select(select) => return &select.optimizer_hints,
            ast::SetExpr::SetOperation { left, .. } => left,
            ast::SetExpr::Query(inner) => &inner.body,
            _ => return &[],
        };
    }
}
