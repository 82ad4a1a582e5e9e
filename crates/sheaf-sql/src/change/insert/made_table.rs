//! Tables that are made in the transaction of their rows: CREATE TABLE ... SELECT where followers are told of rows, and
//! what a source has made in this way.
//!
//! | | rows come | and the table is there |
//! |---|---|---|
//! | CREATE TABLE ... SELECT | from the query, through a [writer](TableWriter) | when the writer is closed |
//! | a source's | in events, between BEGIN and COMMIT of the applier | when the transaction commits |

use std::sync::Arc;

use sheaf_table::{CreateTable, NewTable, WriteGuard};

use crate::binlog::statement::{LoggedStatement, StatementKind};
use crate::change::insert::table_writer::{TableWriter, WriteOptions};
use crate::error::Result;
use crate::isolation::transaction::StatementTransaction;
use crate::session::Session;
use crate::session_parts::transactions::MadeTable;

impl Session {
    fn prepare_table(&self, request: CreateTable) -> Result<(MadeTable, WriteGuard)> {
        let logged = match self.is_replicated() {
            true => {
                let text = self.text_of_request(&request, false)?;
                Some(LoggedStatement {
                    kind: StatementKind::TableWithRows,
                    ..self.logged_text_of_definition(&text)
                })
            }
            false => None,
        };
        let (catalog, zone) = (self.engine.catalog(), self.variables.time_zone());
        let (table, guard) = NewTable::prepare(catalog, request, zone)?;
        Ok((MadeTable { table, logged }, guard))
    }

    /// As [`open_new_writer`](Self::open_new_writer), where followers learn of the rows: they go in one by one, and the
    /// table is made in their transaction.
    pub(super) fn open_new_writer_logged(
        &mut self,
        request: CreateTable,
        options: WriteOptions,
    ) -> Result<TableWriter> {
        let (made, guard) = self.prepare_table(request)?;
        let table = Arc::clone(&guard);
        let tables = self.lock_tables_of_new(guard)?;
        let mut writer = self.row_writer(table, tables, options)?;
        writer.made = Some(made);
        Ok(writer)
    }

    /// Ends the changes of a statement that makes a table: both come about, or neither does.
    pub(super) fn end_changes_of_new(
        &mut self,
        mut made: MadeTable,
        mut statement: StatementTransaction,
        done: Result<()>,
    ) -> Result<()> {
        let said = done.and_then(|()| made.say(statement.changes()));
        let entered = said.and_then(|()| Ok(made.table.enter(statement.changes())?));
        let entered = match entered {
            Ok(entered) => entered,
            Err(error) => return self.end_changes(statement, Err(error)),
        };
        statement.transaction.makes_table = true;
        self.end_changes(statement, Ok(()))?;
        self.commit_open()?;
        entered.has_committed();
        Ok(())
    }

    /// CREATE TABLE of a source that sends the rows next.
    pub(crate) fn make_source_table(&mut self, request: CreateTable) -> Result<()> {
        let (made, guard) = self.prepare_table(request)?;
        let of_source = &mut self.transactions.incoming;
        (of_source.made, of_source.guard) = (Some(made), Some(guard));
        Ok(())
    }

    /// Commits the open transaction, and with it the table that the source has made for its rows, if there is one.
    pub(crate) fn commit_source_table(&mut self) -> Result<()> {
        if self.transactions.incoming.made.is_none() {
            return self.commit_open();
        }
        // Other definitions wait from here on, and not for a lock of all tables.
        self.begin_change()?;
        let Some(mut made) = self.transactions.incoming.made.take() else {
            return Ok(());
        };
        let entered = match &mut self.transactions.open {
            Some(open) => {
                open.makes_table = true;
                let said = made.say(&mut open.transaction);
                said.and_then(|()| Ok(made.table.enter(&mut open.transaction)?))
            }
            None => return Ok(()),
        };
        let entered = match entered {
            Ok(entered) => entered,
            Err(error) => {
                self.transactions.roll_back(&self.handle.counters)?;
                return Err(error);
            }
        };
        self.commit_open()?;
        entered.has_committed();
        Ok(())
    }
}

impl MadeTable {
    /// Tells followers of the table.
    fn say(&self, changes: &mut sheaf_storage::Transaction) -> Result<()> {
        match &self.logged {
            Some(logged) => Ok(changes.annotate(&logged.to_bytes(), true)?),
            None => Ok(()),
        }
    }
}
