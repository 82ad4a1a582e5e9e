//! ANALYZE, CHECK, OPTIMIZE and REPAIR TABLE.

use std::sync::Arc;

use sheaf_storage::{Direction, KeyRange, ReadAhead, Tree};
use sheaf_table::{AnalyzeOptions, Table};

use crate::error::{Result, SqlError};
use crate::parser::statement::TableName;
use crate::query::rows::{Cells, Rows};
use crate::session::Session;
use crate::session::handle::SessionHandle;
use crate::session::result::ResultSink;
use sheaf_frontend::query::SessionValues;

/// Pages that CHECK TABLE reads ahead.
const CHECK_READ_AHEAD_PAGES: usize = 64;

impl Session {
    pub(crate) fn maintain(
        &mut self,
        verb: &'static str,
        names: &[TableName],
        sink: &mut dyn ResultSink,
    ) -> Result<()> {
        let mut rows = Rows::new([
            ("Table", Cells::Text(255)),
            ("Op", Cells::Text(10)),
            ("Msg_type", Cells::Text(10)),
            ("Msg_text", Cells::Text(1024)),
        ]);
        let options = AnalyzeOptions {
            now: self.now_utc_micros(),
            ..AnalyzeOptions::default()
        };
        for name in names {
            let (database, table) = self.resolve_for_change(name)?;
            let shown = format!("{database}.{table}");
            let mut add = |kind: &str, message: &str| {
                rows.push(vec![
                    shown.clone().into(),
                    verb.into(),
                    kind.into(),
                    message.into(),
                ]);
            };
            if verb == "check" && self.table_names().view(&database, &table).is_some() {
                let read = self.tables_of_view(&(database, table)).map(drop);
                match read {
                    Ok(()) => add("status", "OK"),
                    Err(error) => {
                        add("Error", &error.message);
                        add("error", "Corrupt");
                    }
                }
                continue;
            }
            let done = self
                .table_names()
                .table(&database, &table)
                .map_err(SqlError::from)
                .and_then(|table| match verb {
                    "check" => self.check_table(&table),
                    "repair" => Ok(()),
                    _ => {
                        let definition = &table.definition;
                        let catalog = self.catalog_of(definition);
                        self.with_definition_lock(|wait| {
                            let name = (&definition.database, &definition.name);
                            catalog.analyze_with(name.0, name.1, &options, wait)
                        })
                        .map(drop)
                    }
                });
            match done {
                Ok(()) if verb == "repair" => add(
                    "note",
                    "The storage engine for the table doesn't support repair",
                ),
                Ok(()) => add("status", "OK"),
                Err(error) if error.code == SqlError::query_interrupted().code => {
                    return Err(error);
                }
                Err(error) => {
                    add("Error", &error.message);
                    add("status", "Operation failed");
                }
            }
        }
        rows.send(sink, self.result_collation_id(), self.end_of_rows())
    }

    /// Reads every page of the table, whose checksums are verified on the way, and compares the number of entries. If
    /// they differ, others may have written between: then all is read once more while there is no other writer.
    fn check_table(&self, table: &Table) -> Result<()> {
        if self.wrong_index(table)?.is_none() {
            return Ok(());
        }
        let guard = self.lock_for_write(table)?;
        match self.wrong_index(&guard)? {
            Some(message) => Err(SqlError::unknown(message)),
            None => Ok(()),
        }
    }

    /// What is to be said of an index that has not one entry for each row.
    fn wrong_index(&self, table: &Table) -> Result<Option<String>> {
        let rows = self.handle.count_entries(&table.clustered)?;
        for (tree, index) in table.secondary.iter().zip(&table.definition.secondary) {
            let entries = self.handle.count_entries(tree)?;
            if entries != rows {
                let name = &index.name;
                return Ok(Some(format!(
                    "Index '{name}' has {entries} entries and the table has {rows} rows"
                )));
            }
        }
        Ok(None)
    }
}

impl SessionHandle {
    fn count_entries(&self, tree: &Arc<Tree>) -> Result<u64> {
        let mut cursor = tree.scan(
            KeyRange::all(),
            Direction::Forward,
            ReadAhead::Pages(CHECK_READ_AHEAD_PAGES),
        );
        let mut entries = 0;
        while let Some(leaf) = cursor.next_leaf()? {
            entries += leaf.len() as u64;
            self.cancel_flag().check()?;
        }
        Ok(entries)
    }
}
