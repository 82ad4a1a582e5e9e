//! From a parsed statement to the code that runs it.

use std::ops::ControlFlow;

use sheaf_frontend::walk::walk_outside_queries;
use sheaf_table::annotated;
use sheaf_types::error::codes;
use sqlparser::ast;

use super::backup::backup;
use super::diagnostics::get_diagnostics;
use super::hints::{limit_lock_waits_of_statement, obey_statement_hints};
use super::set_statement::set_for_statement;
use crate::accounts::requirements::check_requirement;
use crate::accounts::statements::change_accounts;
use crate::advisor::advise_indexes;
use crate::catalog_views::binary_log::change_binary_log;
use crate::catalog_views::performance_schema::truncate_counted;
use crate::catalog_views::show::run_show;
use crate::error::{Result, SqlError};
use crate::locking::locked_tables::{flush_with_read_lock, lock_tables_by_name, unlock};
use crate::parser::statement::Statement;
use crate::parser::{Parsed, ParsedStatement};
use crate::query::values::select_of;
use crate::resource_groups::statements::change_resource_groups;
use crate::select::select_into::select_into;
use crate::session::Session;
use crate::session::hypothesis::Hypothesis;
use crate::session::result::ResultSink;
use crate::statement::properties::{Changes, Effect, UnderLockTables, properties_of};
use crate::variables::NextTransaction;

impl Session {
    /// Runs a parsed statement.
    pub(crate) fn dispatch(
        &mut self,
        statement: ParsedStatement<'_>,
        sink: &mut dyn ResultSink,
    ) -> Result<()> {
        let Parsed { mut ast, text } = statement;
        // A panic may have left it.
        self.statement.view = None;
        self.statement.is_explained = false;
        self.statement.says_wait = false;
        self.statement.hypothesis = Hypothesis::default();
        if !properties_of(&ast).keeps_warnings {
            self.clear_warnings();
        }
        loop {
            ast = match ast {
                Statement::Within { seconds, statement } => {
                    limit_lock_waits_of_statement(self, seconds);
                    self.statement.says_wait = true;
                    *statement
                }
                Statement::SetStatement {
                    assignments,
                    statement,
                } => {
                    set_for_statement(self, Parsed::new(assignments, text))?;
                    *statement
                }
                ast => break self.dispatch_itself(Parsed::new(ast, text), sink),
            };
        }
    }

    /// Runs a statement that nothing stands in front of.
    fn dispatch_itself(
        &mut self,
        statement: ParsedStatement<'_>,
        sink: &mut dyn ResultSink,
    ) -> Result<()> {
        let Parsed { ast, text } = statement;
        self.traces
            .begin(&self.variables, properties_of(&ast).is_traced);
        let outcome = self.run_statement(Parsed::new(ast, text), sink);
        self.traces.end(&self.variables, text);
        outcome
    }

    pub(crate) fn run_statement(
        &mut self,
        statement: ParsedStatement<'_>,
        sink: &mut dyn ResultSink,
    ) -> Result<()> {
        let Parsed {
            ast: mut statement,
            text,
        } = statement;
        let properties = properties_of(&statement);
        let logged = properties.logged.filter(|_| self.is_replicated());
        check_requirement(self, properties.requirement)?;
        self.table_locks.check_used(
            properties.under_lock_tables,
            self.database.as_deref(),
            self.table_names(),
        )?;
        match properties.changes {
            Changes::TemporaryDefinitions => {
                self.transactions.check_reads_and_writes(&self.variables)?
            }
            Changes::Statistics if self.defines_temporary(properties.under_lock_tables) => {}
            Changes::Definitions if self.defines_temporary(properties.under_lock_tables) => {
                self.transactions.check_reads_and_writes(&self.variables)?;
            }
            Changes::Definitions if properties.transaction == Effect::Commits => {
                self.check_writable_anew()?;
            }
            Changes::Definitions => self.check_writable(false)?,
            Changes::Statistics => {
                self.table_locks.check_no_read_lock()?;
                self.begin_change()?;
            }
            Changes::Rows | Changes::Nothing => {}
        }
        obey_statement_hints(self, properties.hints, text);
        if let Some(command) = properties.command {
            self.handle.commands.count(command);
        }
        match properties.transaction {
            Effect::Commits => {
                self.commit_open()?;
                self.transactions.next = NextTransaction::default();
            }
            Effect::Begins => self.begin_implicitly(),
            Effect::None => {}
        }
        if !properties.plans_queries {
            self.workers.planning().pause();
        }
        let _timer = self.limit_time(properties.is_query);
        if let Some(kind) = logged
            && let Some(logged) = self.logged_definition(kind, &mut statement, text)?
        {
            let ast = Parsed::new(statement, text);
            return annotated(logged.to_bytes(), || self.run_ready_statement(ast, sink));
        }
        self.run_ready_statement(Parsed::new(statement, text), sink)
    }

    /// Runs a statement for which all is ready.
    fn run_ready_statement(
        &mut self,
        statement: ParsedStatement<'_>,
        sink: &mut dyn ResultSink,
    ) -> Result<()> {
        let Parsed {
            ast: statement,
            text,
        } = statement;
        match statement {
            Statement::Query(query) => {
                let planned = self.plan_or_send(Parsed::new(query.as_ref(), text), sink)?;
                // It may be large, and the plan has all of it.
                self.workers.planning().during(|| drop(query));
                match planned {
                    Some((planned, limit)) => self.send_planned(planned, limit, sink),
                    None => Ok(()),
                }
            }
            Statement::SelectInto { query, target } => {
                select_into(self, Parsed::new(query.as_ref(), text), *target, sink)
            }
            Statement::Insert(insert) => self.insert(Parsed::new(*insert, text), sink),
            Statement::Update(update) => self.update(Parsed::new(*update, text), sink),
            Statement::Delete(delete) => self.delete(Parsed::new(*delete, text), sink),
            Statement::LoadData(load) => self.load_data(Parsed::new(*load, text), sink),
            Statement::Explain(explain) => self.explain(Parsed::new(*explain, text), sink),
            Statement::InstallRewriter => self.install_rewriter(sink),
            Statement::UninstallRewriter => self.uninstall_rewriter(sink),
            Statement::FlushRewriteRules => self.flush_rewrite_rules(sink),
            Statement::CreateDatabase {
                name,
                if_not_exists,
                options,
            } => self.create_database(&name, if_not_exists, &options, sink),
            Statement::AlterDatabase { name, options } => self.alter_database(name, &options, sink),
            Statement::DropDatabase { name, if_exists } => {
                self.drop_database(&name, if_exists, sink)
            }
            Statement::CreateTable(create) => self.create_table(Parsed::new(*create, text), sink),
            Statement::CreateView(create) => self.create_view(Parsed::new(*create, text), sink),
            Statement::DropViews { names, if_exists } => self.drop_views(&names, if_exists, sink),
            Statement::DropTables {
                names,
                if_exists,
                temporary,
            } => self.drop_tables(&names, (if_exists, temporary), sink),
            Statement::DropAbsent {
                what,
                code,
                names,
                if_exists,
            } => {
                for name in &names {
                    let name = name.qualified(self.database.as_deref());
                    let message = format!("{what} {name} does not exist");
                    if !if_exists {
                        return Err(SqlError::new(code, message));
                    }
                    self.warnings.note(code, message);
                }
                self.ok(sink, 0, String::new())
            }
            Statement::AlterTable { name, changes } => {
                self.alter_table(&name, Parsed::new(&changes, text), sink)
            }
            Statement::RenameTables(pairs) => self.rename_tables(&pairs, sink),
            Statement::TruncateTable(name) => match truncate_counted(self, &name, sink)? {
                true => Ok(()),
                false => self.truncate_table(&name, sink),
            },
            Statement::Maintain { verb, names } => self.maintain(verb, &names, sink),
            Statement::ChecksumTables { names, is_quick } => {
                self.checksum_tables(&names, is_quick, sink)
            }
            Statement::Histograms {
                table,
                columns,
                buckets,
            } => self.change_histograms(&table, &columns, buckets, sink),
            Statement::Advise(advise) => advise_indexes(self, advise, sink),
            Statement::Backup { folder } => backup(self, &folder, sink),
            Statement::Use(name) if name.is_empty() => Err(SqlError::no_database_selected()),
            Statement::Use(name) => {
                sheaf_table::check_database_name(&name)?;
                self.set_database(&name)?;
                self.ok(sink, 0, String::new())
            }
            Statement::Set(assignments) => {
                let before = self.variables.autocommit();
                self.set(Parsed::new(assignments, text), sink)?;
                if !before && self.variables.autocommit() {
                    self.commit_open()?;
                }
                Ok(())
            }
            Statement::SetTransaction {
                scope,
                isolation,
                read_only,
            } => self.set_transaction(scope, isolation, read_only, sink),
            Statement::Show(show) => run_show(self, Parsed::new(show, text), sink),
            Statement::Flush {
                status,
                optimizer_costs,
                slow_log,
                binary_log,
            } => {
                if slow_log {
                    self.engine.slow_log.reopen();
                }
                if binary_log && let Some(binlog) = self.engine.binlog() {
                    binlog.flush()?;
                }
                if status {
                    self.engine.flush_status(&self.handle);
                }
                if optimizer_costs {
                    self.engine.reload_costs()?;
                }
                self.ok(sink, 0, String::new())
            }
            Statement::BinaryLog(change) => {
                change_binary_log(self, Parsed::new(&change, text), sink)
            }
            Statement::Replication(statement) => self.change_replication(statement, sink),
            Statement::ResetPersist { name, if_exists } => {
                self.reset_persist(name.as_deref(), if_exists, sink)
            }
            Statement::Shutdown => {
                self.engine.request_shutdown()?;
                self.ok(sink, 0, String::new())
            }
            Statement::Kill { connection, id } => {
                self.kill(connection, Parsed::new(&id, text), sink)
            }
            Statement::Prepare { name, source } => self.prepare_by_name(&name, source, sink),
            Statement::Execute { name, using } => self.execute_by_name(&name, &using, sink),
            Statement::Deallocate { name } => self.deallocate_by_name(&name, sink),
            Statement::Begin {
                consistent_snapshot,
                read_only,
            } => self.begin(consistent_snapshot, read_only, sink),
            Statement::Commit(end) => {
                self.end_gtid(true)?;
                self.commit_or_rollback(true, end, sink)
            }
            Statement::Rollback(end) => {
                self.end_gtid(false)?;
                self.commit_or_rollback(false, end, sink)
            }
            Statement::Savepoint(name) => self.savepoint(name, sink),
            Statement::RollbackTo(name) => self.rollback_to(&name, sink),
            Statement::ReleaseSavepoint(name) => self.release_savepoint(&name, sink),
            Statement::LockTables(tables) => lock_tables_by_name(self, &tables, sink),
            Statement::UnlockTables => unlock(self, sink),
            Statement::FlushWithReadLock(tables) => flush_with_read_lock(self, &tables, sink),
            Statement::Do(expressions) => {
                self.findings.watch_divisions(self.variables.sql_mode());
                for expression in expressions {
                    let expression = in_select_list(expression)?;
                    self.evaluate(Parsed::new(&expression, text))?;
                }
                self.ok(sink, 0, String::new())
            }
            Statement::GetDiagnostics(read) => {
                get_diagnostics(self, Parsed::new(*read, text), sink)
            }
            Statement::Account(statement) => change_accounts(self, *statement, sink),
            Statement::ResourceGroup(statement) => change_resource_groups(self, *statement, sink),
            Statement::Within { statement, .. } | Statement::SetStatement { statement, .. } => {
                self.run_statement(Parsed::new(*statement, text), sink)
            }
            Statement::Unsupported(what) => Err(SqlError::not_supported_yet(what)),
        }
    }

    /// Ends another session of the same user, or of any user with the privilege (COM_PROCESS_KILL).
    pub fn kill_session(&self, id: u64) -> Result<()> {
        self.client
            .check_may_kill(self.engine.session_handle(id)?.as_ref())?;
        self.engine.kill(id, true)
    }

    fn kill(
        &mut self,
        connection: bool,
        id: Parsed<'_, &ast::Expr>,
        sink: &mut dyn ResultSink,
    ) -> Result<()> {
        let id = self.evaluate(id)?;
        let id = id
            .as_i128()
            .and_then(|id| u64::try_from(id).ok())
            .ok_or_else(|| SqlError::new(codes::WRONG_ARGUMENTS, "Incorrect arguments to KILL"))?;
        self.client
            .check_may_kill(self.engine.session_handle(id)?.as_ref())?;
        if id == self.id() {
            // A statement that kills its own session, or itself, is what gets interrupted.
            self.engine.kill(id, connection)?;
            return Err(SqlError::query_interrupted());
        }
        self.engine.kill(id, connection)?;
        self.ok(sink, 0, String::new())
    }

    /// Whether all tables whose definitions a statement changes are temporary.
    fn defines_temporary(&self, used: UnderLockTables<'_>) -> bool {
        let names = match used {
            _ if !self.temporary.has_any() => return false,
            UnderLockTables::Define(names) | UnderLockTables::Read(names) => names,
            UnderLockTables::Alter(name, _) => std::slice::from_ref(name),
            _ => return false,
        };
        names.iter().all(|name| {
            let name = self.resolve(name);
            name.is_ok_and(|(database, table)| self.table_names().is_temporary(&database, &table))
        })
    }
}

/// An expression of DO, which may have window functions, as that of a select list.
fn in_select_list(mut expression: ast::Expr) -> Result<ast::Expr> {
    let mut has_window = false;
    walk_outside_queries(&mut expression, &mut |expression| {
        has_window |=
            matches!(expression, ast::Expr::Function(function) if function.over.is_some());
        ControlFlow::Continue(())
    });
    Ok(match has_window {
        true => ast::Expr::Subquery(select_of(vec![expression])?),
        false => expression,
    })
}
