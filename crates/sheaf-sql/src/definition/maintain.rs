//! ANALYZE, CHECK, OPTIMIZE and REPAIR TABLE.
//!
//! CHECK TABLE computes generated columns again, hidden ones of functional indexes too: a function may have come to
//! give other values than when a row was written. QUICK leaves that out. EXTENDED compares the entries of indexes with
//! the rows as well, as `sheaf check` does. OPTIMIZE TABLE writes the rows of a table that has such columns anew,
//! as ALTER TABLE .. FORCE does. Other tables need that for nothing: pages that become empty are used again.

use std::sync::Arc;

use sheaf_storage::{Direction, KeyRange, ReadAhead, Tree};
use sheaf_table::check::check_rows;
use sheaf_table::{AnalyzeOptions, Table};
use sheaf_types::{Value, column_text};

use crate::error::{Result, SqlError};
use crate::parser::Parsed;
use crate::parser::statement::{MaintenanceVerb, TableChange, TableName, Thoroughness};
use crate::query::rows::{Cells, Rows};
use crate::query::run::MAX_REPLANS;
use crate::session::Session;
use crate::session::handle::SessionHandle;
use crate::session::progress::SessionProgress;
use crate::session::result::ResultSink;
use sheaf_frontend::query::SessionValues;

/// Pages that CHECK TABLE reads ahead.
const CHECK_READ_AHEAD_PAGES: usize = 64;
/// The most bytes of a wrong entry that CHECK TABLE shows.
const MAX_FINDING_BYTES: usize = 512;

impl Session {
    pub(crate) fn maintain(
        &mut self,
        verb: MaintenanceVerb,
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
                    verb.name().into(),
                    kind.into(),
                    message.into(),
                ]);
            };
            if matches!(verb, MaintenanceVerb::Check(_))
                && self.table_names().view(&database, &table).is_some()
            {
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
                    MaintenanceVerb::Check(thoroughness) => self.check_table(&table, thoroughness),
                    MaintenanceVerb::Repair => Ok(()),
                    MaintenanceVerb::Analyze | MaintenanceVerb::Optimize => {
                        if verb == MaintenanceVerb::Optimize
                            && table.definition.has_generated_columns()
                        {
                            self.rebuild(name)?;
                        }
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
                Ok(()) if verb == MaintenanceVerb::Repair => add(
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

    /// Reads every page of the table, whose checksums are verified on the way, and looks at as much of it as is asked
    /// for. If something is wrong, others may have written between: then all is read once more while there is no other
    /// writer.
    fn check_table(&mut self, table: &Arc<Table>, thoroughness: Thoroughness) -> Result<()> {
        let memory = match thoroughness {
            Thoroughness::Extended => Some(self.sort_memory(false)?),
            _ => None,
        };
        let sort_bytes = memory.as_ref().map_or(0, |memory| memory.bytes());
        match self.what_is_wrong(table, thoroughness, sort_bytes) {
            Ok(None) => return Ok(()),
            Err(error) if error.code == SqlError::query_interrupted().code => return Err(error),
            _ => {}
        }
        let guard = self.lock_for_write(table)?;
        match self.what_is_wrong(&guard, thoroughness, sort_bytes)? {
            Some(message) => Err(SqlError::unknown(message)),
            None => Ok(()),
        }
    }

    fn what_is_wrong(
        &self,
        table: &Arc<Table>,
        thoroughness: Thoroughness,
        sort_bytes: usize,
    ) -> Result<Option<String>> {
        let wrong = match thoroughness {
            Thoroughness::ForUpgrade => return Ok(None),
            Thoroughness::Quick => return self.handle.wrong_index(table),
            Thoroughness::Medium => self.handle.wrong_index(table)?,
            Thoroughness::Extended => self.wrong_entry(table, sort_bytes)?,
        };
        match wrong {
            Some(message) => Ok(Some(message)),
            None => self.stale_column(table),
        }
    }

    /// What is to be said of the first row that is not what its key says, or entry of an index that is not what the row
    /// says.
    fn wrong_entry(&self, table: &Table, sort_bytes: usize) -> Result<Option<String>> {
        let catalog = self.catalog_of(&table.definition);
        let progress = SessionProgress::new(self.handle());
        let report = check_rows(catalog, table, sort_bytes, &progress)?;
        Ok(report.findings.first().map(|finding| {
            let mut message = format!("{}: {}", finding.object, finding.detail);
            message.truncate(message.floor_char_boundary(MAX_FINDING_BYTES));
            match report.found {
                1 => message,
                found => format!("{message} ({found} problems)"),
            }
        }))
    }

    /// What is to be said of the first generated column whose expression gives something else than the column holds.
    fn stale_column(&self, table: &Arc<Table>) -> Result<Option<String>> {
        let Some(generated) = self.generated_columns(table, self.insert_mode(true))? else {
            return Ok(None);
        };
        let definition = &table.definition;
        let (mut first, mut count, mut rows_before) = (None, 0_u64, 0_u64);
        let read_ahead = ReadAhead::Pages(CHECK_READ_AHEAD_PAGES);
        let mut cursor = table
            .clustered
            .scan(KeyRange::all(), Direction::Forward, read_ahead);
        while let Some(leaf) = cursor.next_leaf()? {
            self.handle.cancel_flag().check()?;
            let mut rows: Vec<Vec<Value>> = Vec::with_capacity(leaf.len());
            for entry in 0..leaf.len() {
                rows.push(table.decode_row(&table.view(leaf.value(entry))?)?);
            }
            for stale in generated.stale(&rows)? {
                count += 1;
                if first.is_some() {
                    continue;
                }
                let (row, column) = (&rows[stale.row], &definition.columns[stale.column]);
                let place = match definition.primary.parts.as_slice() {
                    [] => format!("number {}", rows_before + stale.row as u64 + 1),
                    parts => {
                        let parts = parts.iter().map(|part| {
                            column_text(&definition.columns[part.column].ty, &row[part.column])
                        });
                        format!("'{}'", parts.collect::<Vec<_>>().join("-"))
                    }
                };
                let index = definition.index_of_expression(stale.column);
                let named = match index.filter(|_| column.hidden) {
                    Some(index) => format!("Functional index '{}'", index.name),
                    None => format!("Generated column '{}'", column.name),
                };
                let holds = column_text(&column.ty, &row[stale.column]);
                let gives = match stale.computed {
                    Ok(value) => {
                        format!("its expression gives '{}'", column_text(&column.ty, &value))
                    }
                    Err(error) => format!("its expression cannot be computed: {}", error.message),
                };
                first = Some(format!(
                    "{named} holds '{holds}' in row {place}, and {gives}"
                ));
            }
            rows_before += leaf.len() as u64;
        }
        Ok(first.map(|first| match count {
            1 => first,
            count => format!("{first} ({count} such values)"),
        }))
    }

    /// What CHECK TABLE says of generated columns of a table: the first value that is not what its expression gives.
    /// `None`: there is none.
    ///
    /// # Errors
    /// 1146, and whatever reading the table finds.
    pub fn stale_generated_column(&self, database: &str, table: &str) -> Result<Option<String>> {
        let table = self.table_names().table(database, table)?;
        self.stale_column(&table)
    }

    /// Writes the rows of a table into new trees.
    fn rebuild(&mut self, name: &TableName) -> Result<()> {
        let changes = vec![TableChange::Rebuild];
        for _ in 0..MAX_REPLANS {
            if let Some(altered) = self.alter_known(name, Parsed::new(&changes, ""))? {
                self.note_altered(&altered);
                return Ok(());
            }
        }
        Err(SqlError::definition_changed())
    }
}

impl SessionHandle {
    /// What is to be said of an index that has not one entry for each row.
    fn wrong_index(&self, table: &Table) -> Result<Option<String>> {
        let rows = self.count_entries(&table.clustered)?;
        for (tree, index) in table.secondary.iter().zip(&table.definition.secondary) {
            let entries = self.count_entries(tree)?;
            if entries != rows {
                let name = &index.name;
                return Ok(Some(format!(
                    "Index '{name}' has {entries} entries and the table has {rows} rows"
                )));
            }
        }
        Ok(None)
    }

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
