//! ALTER TABLE, CREATE INDEX and DROP INDEX.
//!
//! What a statement says becomes a list of alterations. The catalog tells what work they are: a change of the
//! definition alone, a build of indexes, or a copy of all rows.

use std::sync::Arc;
use std::time::Duration;

use sheaf_frontend::varying::differs_elsewhere;
use sheaf_table::{
    AlterOptions, AlterWork, Alteration, Altered, Catalog, CheckSpec, ColumnPlace, GeneratedKind,
    InitialValues, LockRequest, NoProgress, QualifiedName, Table, TableDefinition, TableError,
};
use sheaf_types::Collation;
use sheaf_types::error::codes;

use crate::definition::comments::Commented;
use crate::definition::demands::{Demands, Meanwhile};
use crate::definition::key_expressions::primary_specs;
use crate::error::{Result, SqlError};
use crate::parser::Parsed;
use crate::parser::statement as parsed;
use crate::parser::statement::{KeyDefinition, KeyKind, TableChange, TableName};
use crate::query::run::MAX_REPLANS;
use crate::session::Session;
use crate::session::progress::SessionProgress;
use crate::session::result::ResultSink;

/// How long an index build or a copy waits at most for the table's writers, and at its end for its readers;
/// `lock_wait_timeout` may say less. It is short against that variable's default: others wait for it meanwhile.
const INDEX_LOCK_WAIT: Duration = Duration::from_secs(60);

/// What an ALTER TABLE would do.
pub(super) struct PlannedAlteration {
    /// The table's, with its database.
    pub(super) name: QualifiedName,
    /// What the rest is worked out for.
    pub(super) current: Arc<Table>,
    pub(super) alterations: Vec<Alteration>,
    /// Without trees.
    pub(super) next: TableDefinition,
    pub(super) work: AlterWork,
    /// Others can change rows meanwhile, if they are let.
    pub(super) admits_writers: bool,
    /// The definition alone changes, and no other table follows.
    pub(super) takes_a_moment: bool,
    pub(super) meanwhile: Meanwhile,
    pub(super) demands: Demands,
}

impl Session {
    pub(crate) fn alter_table(
        &mut self,
        name: &TableName,
        changes: Parsed<'_, &Vec<TableChange>>,
        sink: &mut dyn ResultSink,
    ) -> Result<()> {
        let mark = self.warnings.mark();
        for _ in 0..MAX_REPLANS {
            match self.alter_known(name, changes)? {
                Some(altered) => return self.altered(&altered, changes.ast, sink),
                None => self.warnings.back_to(mark),
            }
        }
        Err(SqlError::definition_changed())
    }

    /// Alters a table as it is when this begins; `None`: others have changed it before it was locked.
    pub(super) fn alter_known(
        &mut self,
        name: &TableName,
        changes: Parsed<'_, &Vec<TableChange>>,
    ) -> Result<Option<Altered>> {
        let PlannedAlteration {
            name: (database, table),
            current,
            alterations,
            next,
            work,
            admits_writers,
            takes_a_moment,
            meanwhile,
            demands: _,
        } = self.plan_alteration(name, changes)?;
        let temporary = current.definition.is_temporary();
        if !temporary && self.is_replicated() {
            check_same_elsewhere(changes.ast)?;
        }
        let numbering = self.numbering(changes.ast, &current.definition)?;
        let indexes_before: Vec<u32> = current
            .definition
            .secondary
            .iter()
            .map(|index| index.id)
            .collect();
        let old_name = (database.clone(), table.clone());
        if work.copies() {
            self.variables.check_time_zone(&next)?;
        }
        let name = (database.as_str(), table.as_str());
        let mut options = AlterOptions {
            memory_bytes: 0,
            threads: self.workers.threads(),
            mode: self.insert_mode(false),
            keeps_zero: self.variables.keeps_zero(),
            series: numbering.series,
            numbers_in_place: numbering.in_place,
            now_micros: self.local_now_micros(),
            check_foreign_keys: self.variables.foreign_key_checks(),
            version: Some(current),
            row_test: None,
            row_fill: None,
            beside_writers: (admits_writers || takes_a_moment) && meanwhile == Meanwhile::Write,
            online_log_bytes: self.engine.globals().online_alter_log_bytes(),
            excludes_readers: meanwhile == Meanwhile::Nothing && work > AlterWork::Definition,
        };
        // Rows are tested where a CHECK is new to them, and where their values may change.
        let mut failure = None;
        let computes = work.copies() && next.has_generated_columns();
        if work == AlterWork::Copy || computes || alterations.iter().any(brings_check) {
            (options.row_test, failure) = self.row_test(&next)?.unzip();
        }
        let mut fill_failure = None;
        if work.copies() {
            (options.row_fill, fill_failure) = self.row_fill(&next)?.unzip();
        }
        let altered = if work > AlterWork::Definition || options.beside_writers {
            let progress = SessionProgress::new(self.handle());
            let memory = match work {
                AlterWork::Definition => None,
                _ => Some(self.sort_memory(false)?),
            };
            options.memory_bytes = memory.as_ref().map_or(0, |memory| memory.bytes());
            // One wait, not one in slices: the second wait comes after the build, which must not be done again.
            let limit = Duration::from_secs(self.variables.lock_wait_timeout_seconds());
            let handle = &self.handle;
            let is_interrupted = || handle.should_stop_waiting();
            let wait = LockRequest {
                session: self.id(),
                interrupt: Some(&is_interrupted),
                // Beside writers it keeps nobody waiting.
                ..LockRequest::from(match options.beside_writers {
                    true => limit,
                    false => limit.min(INDEX_LOCK_WAIT),
                })
            };
            let catalog = self.table_names().catalog_of(name.0, name.1);
            let altered = catalog.alter_table(name, &alterations, &options, &progress, wait);
            // Why a CHECK could not be evaluated.
            let failures = failure.into_iter().chain(fill_failure);
            for failure in failures {
                if let Some(error) = failure.lock().ok().and_then(|mut failure| failure.take()) {
                    return Err(error);
                }
            }
            unless_changed(altered)?
        } else if !alterations.is_empty() {
            let catalog = self.table_names().catalog_of(name.0, name.1);
            self.with_definition_lock(|wait| {
                unless_changed(catalog.alter_table(name, &alterations, &options, &NoProgress, wait))
            })?
        } else {
            Some(Altered {
                work,
                rows: 0,
                issues: Vec::new(),
                more_issues: 0,
            })
        };
        let renamed = alterations
            .iter()
            .filter_map(|alteration| match alteration {
                Alteration::RenameTo { database, table } => Some((database.clone(), table.clone())),
                _ => None,
            });
        let renames: Vec<_> = renamed.map(|new| (old_name.clone(), new)).collect();
        if altered.is_some() && !temporary {
            self.table_locks.rename_locked(&renames);
        }
        if altered.is_some() {
            self.warn_of_duplicate_indexes(&next, &indexes_before);
        }
        Ok(altered)
    }

    /// Warns of indexes that are as others. `before`: the ids of those that were there.
    pub(super) fn warn_of_duplicate_indexes(
        &mut self,
        definition: &TableDefinition,
        before: &[u32],
    ) {
        let table = format!("{}.{}", definition.database, definition.name);
        for index in definition.duplicate_indexes() {
            if !before.contains(&index.id) {
                let name = &index.name;
                let message = format!(
                    "Duplicate index '{name}' defined on the table '{table}'. This is deprecated and will be disallowed in a future release."
                );
                self.warnings.warn(codes::DUP_INDEX, message);
            }
        }
    }

    /// What a statement would do with the table as it is.
    pub(super) fn plan_alteration(
        &mut self,
        name: &TableName,
        changes: Parsed<'_, &Vec<TableChange>>,
    ) -> Result<PlannedAlteration> {
        let demands = Demands::of(changes.ast)?;
        let (database, table) = self.resolve_for_change(name)?;
        let current = self.table_names_in_utc().table(&database, &table)?;
        let mut alterations = self.alterations(&current.definition, changes)?;
        let temporary = current.definition.is_temporary();
        if demands.takes_instant(temporary) && !alterations.is_empty() {
            alterations.push(Alteration::Instantly(self.initial_values()));
        }
        self.type_altered_key_expressions(&current, &mut alterations)?;
        if temporary {
            self.check_alters_temporary(&alterations)?;
        }
        let (next, work) = Catalog::altered_definition(&current, &alterations)?;
        self.check_row_order(changes.ast, &next)?;
        let added: Vec<CheckSpec> = added_checks(&alterations);
        self.try_checks(&table, &added, &next.columns)?;
        self.try_defaults(&table, &next.columns)?;
        self.try_generated(&table, &next.columns)?;
        let admits_writers = Catalog::admits_writers(&current, &alterations)?;
        let meanwhile = demands.meanwhile(&alterations, work, admits_writers)?;
        let catalog = self.table_names().catalog_of(&database, &table);
        let takes_a_moment =
            !alterations.is_empty() && catalog.takes_a_moment(&current, &alterations)?;
        Ok(PlannedAlteration {
            name: (database, table),
            current,
            alterations,
            next,
            work,
            admits_writers,
            takes_a_moment,
            meanwhile,
            demands,
        })
    }

    /// ORDER BY writes rows in another order only where no primary key orders them, nor a unique key that InnoDB takes
    /// for it: with one it is a warning. Errors 1054 for a column that the table does not have, and 1235 without such a
    /// key.
    fn check_row_order(&mut self, changes: &[TableChange], next: &TableDefinition) -> Result<()> {
        for change in changes {
            let TableChange::OrderRows(columns) = change else {
                continue;
            };
            if let Some(unknown) = columns
                .iter()
                .find(|name| next.column_position(name).is_none())
            {
                return Err(SqlError::bad_field(unknown, "order clause"));
            }
            if next.has_hidden_row_id() && next.row_order().secondary.is_none() {
                return Err(SqlError::not_supported_yet(
                    "ALTER TABLE ... ORDER BY without a primary key",
                ));
            }
            let table = &next.name;
            self.warnings.warn(
                codes::UNKNOWN_ERROR,
                format!("ORDER BY ignored as there is a user-defined clustered index in the table '{table}'"),
            );
        }
        Ok(())
    }

    /// What rows have in columns that are added without writing them.
    fn initial_values(&self) -> InitialValues {
        let mode = self.insert_mode(false);
        InitialValues {
            now_micros: self.local_now_micros(),
            time_zone: mode.time_zone,
            zero_date: !mode.strict || mode.zero_date,
        }
    }

    /// Whether a temporary table may be altered so. Errors 1215 for a foreign key, and those of a new name.
    fn check_alters_temporary(&self, alterations: &[Alteration]) -> Result<()> {
        for alteration in alterations {
            match alteration {
                Alteration::AddForeignKey { .. } => return Err(SqlError::cannot_add_foreign_key()),
                Alteration::RenameTo { database, .. } => {
                    self.check_temporary_name(database)?;
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn altered(
        &mut self,
        altered: &Altered,
        changes: &[TableChange],
        sink: &mut dyn ResultSink,
    ) -> Result<()> {
        self.note_altered(altered);
        // MySQL counts rows where it copies them, which is not everything that copies or tests them here.
        let copies = altered.work == AlterWork::Copy || changes.iter().any(copies_in_mysql);
        let records = if copies { altered.rows } else { 0 };
        let warnings = self.warnings.count();
        let info = format!("Records: {records}  Duplicates: 0  Warnings: {warnings}");
        self.ok(sink, records, info)
    }

    /// Notes values that were not quite kept.
    pub(super) fn note_altered(&mut self, altered: &Altered) {
        self.findings.warn(&mut self.warnings);
        for issue in &altered.issues {
            self.warnings.add_issue(issue);
        }
        self.warnings.count_others(altered.more_issues);
    }

    /// What the catalog is asked for. What is not supported is refused before anything is done.
    fn alterations(
        &mut self,
        definition: &TableDefinition,
        changes: Parsed<'_, &Vec<TableChange>>,
    ) -> Result<Vec<Alteration>> {
        let Parsed { ast: changes, text } = changes;
        let (database, table) = (definition.database.as_str(), definition.name.as_str());
        // Columns have the collation that the table has in the end, wherever the statement says so.
        let mut collation = definition.collation;
        for change in changes {
            let chosen = match change {
                TableChange::DefaultCollation {
                    character_set,
                    collation,
                } => self
                    .warnings
                    .collation_of(character_set.as_deref(), collation.as_deref())?,
                TableChange::ConvertTo {
                    character_set: None,
                    collation,
                } => {
                    let default = self.engine.catalog().database_collation(database)?;
                    let collation = collation.as_deref().unwrap_or(default.name());
                    self.warnings
                        .collation_of(Some(default.character_set()), Some(collation))?
                }
                TableChange::ConvertTo {
                    character_set,
                    collation,
                } => self
                    .warnings
                    .collation_of(character_set.as_deref(), collation.as_deref())?,
                _ => None,
            };
            collation = chosen.unwrap_or(collation);
        }
        let mut alterations: Vec<Alteration> = Vec::with_capacity(changes.len());
        for change in changes {
            let alteration = match change {
                TableChange::AddColumn {
                    column,
                    keys,
                    place,
                } => {
                    for key in keys {
                        alterations.push(self.key_alteration(key)?);
                    }
                    Alteration::AddColumn {
                        column: self.column(Parsed::new(column, text), collation, keys)?,
                        place: place.as_ref().map_or(ColumnPlace::Last, column_place),
                    }
                }
                TableChange::ChangeColumn {
                    name,
                    column,
                    keys,
                    place,
                } => {
                    for key in keys {
                        alterations.push(self.key_alteration(key)?);
                    }
                    Alteration::ChangeColumn {
                        name: name.clone(),
                        new: self.column(Parsed::new(column, text), collation, keys)?,
                        place: place.as_ref().map(column_place),
                    }
                }
                TableChange::RenameColumn { old, new } => Alteration::RenameColumn {
                    name: old.clone(),
                    new: new.clone(),
                },
                TableChange::SetDefault {
                    column,
                    default,
                    default_text,
                } => {
                    let position = definition.column_position(column);
                    let position = position.ok_or_else(|| TableError::UnknownColumn {
                        column: column.clone(),
                        table: table.to_string(),
                    })?;
                    let generated = &definition.columns[position].generated;
                    let default = match default {
                        Some(_) if generated.is_some() => {
                            return Err(SqlError::wrong_usage("DEFAULT", "generated column"));
                        }
                        Some(default) => {
                            let column = &definition.columns[position];
                            Some(self.default_value(column, (default, default_text), text)?)
                        }
                        None => None,
                    };
                    Alteration::SetDefault {
                        column: column.clone(),
                        default,
                    }
                }
                TableChange::ColumnVisibility { column, invisible } => {
                    Alteration::ColumnVisibility {
                        column: column.clone(),
                        invisible: *invisible,
                    }
                }
                TableChange::KeyVisibility { name, invisible } => Alteration::IndexVisibility {
                    name: name.clone(),
                    invisible: *invisible,
                },
                TableChange::DropColumn { name } => Alteration::DropColumn(name.clone()),
                TableChange::AddKey(key) => self.key_alteration(key)?,
                TableChange::DropKey { name } => Alteration::DropIndex(name.clone()),
                TableChange::DropPrimaryKey => Alteration::DropPrimaryKey,
                TableChange::RenameKey { old, new } => Alteration::RenameIndex {
                    name: old.clone(),
                    new: new.clone(),
                },
                TableChange::AddForeignKey(key) => Alteration::AddForeignKey {
                    spec: self.foreign_key_spec(key, database)?,
                    check: self.variables.foreign_key_checks(),
                },
                TableChange::DropForeignKey { name } => Alteration::DropForeignKey(name.clone()),
                TableChange::AddCheck(check) => {
                    let shown = format!("{table}_chk");
                    Alteration::AddCheck(self.check_spec(check, &shown)?)
                }
                TableChange::DropCheck { name } => Alteration::DropCheck(name.clone()),
                TableChange::EnforceCheck { name, enforced } => Alteration::EnforceCheck {
                    name: name.clone(),
                    enforced: *enforced,
                },
                TableChange::DropConstraint { name } => dropped_constraint(definition, name)?,
                TableChange::AutoIncrement(first) => Alteration::SetAutoIncrement(*first),
                TableChange::Comment(comment) => {
                    let comment = self.kept_comment(comment, Commented::Table(table))?;
                    Alteration::SetComment(comment)
                }
                TableChange::DefaultCollation { .. } => Alteration::SetCollation(collation),
                TableChange::ConvertTo { .. } if collation == Collation::Binary => {
                    return Err(SqlError::not_supported_yet(
                        "ALTER TABLE ... CONVERT TO CHARACTER SET binary",
                    ));
                }
                TableChange::ConvertTo { .. } => Alteration::ConvertTo(collation),
                TableChange::Rebuild | TableChange::OrderRows(_) => Alteration::Rebuild,
                // Without a database it goes to the session's, as in MySQL: that is where the privileges are looked
                // for.
                TableChange::RenameTo(new) => {
                    let (new_database, new_table) = self.resolve_for_change(new)?;
                    // Of several names the last one counts.
                    alterations.retain(|change| !matches!(change, Alteration::RenameTo { .. }));
                    Alteration::RenameTo {
                        database: new_database,
                        table: new_table,
                    }
                }
                TableChange::Algorithm(_) | TableChange::Lock(_) | TableChange::Nothing => continue,
                TableChange::Unsupported(what) => return Err(SqlError::not_supported_yet(what)),
            };
            alterations.push(alteration);
        }
        Ok(alterations)
    }

    /// A key that is added.
    fn key_alteration(&mut self, key: &KeyDefinition) -> Result<Alteration> {
        Ok(match key.kind {
            KeyKind::Primary => {
                self.kept_comment(&key.comment, Commented::Index("PRIMARY"))?;
                Alteration::AddPrimaryKey(primary_specs(key)?)
            }
            KeyKind::Unique | KeyKind::Plain => Alteration::AddIndex(self.index_spec(key)?),
        })
    }
}

/// `None`: others have changed the table's definition.
fn unless_changed(altered: sheaf_table::Result<Altered>) -> sheaf_table::Result<Option<Altered>> {
    match altered {
        Err(TableError::DefinitionChanged) => Ok(None),
        altered => altered.map(Some),
    }
}

/// Whether MySQL copies all rows for a change, be it that no value is converted.
fn copies_in_mysql(change: &TableChange) -> bool {
    match change {
        TableChange::Algorithm(word) => word.eq_ignore_ascii_case("COPY"),
        TableChange::AddCheck(check) => check.enforced,
        TableChange::EnforceCheck { enforced, .. } => *enforced,
        TableChange::AddForeignKey(_) | TableChange::OrderRows(_) => true,
        TableChange::AddColumn { column, .. } => {
            let generated = column.generated.as_ref();
            generated.is_some_and(|generated| generated.kind == GeneratedKind::Stored)
        }
        _ => false,
    }
}

/// Followers run the statement, and are to find the same in a new column. Error 1674.
fn check_same_elsewhere(changes: &[TableChange]) -> Result<()> {
    let differs = |change: &TableChange| match change {
        TableChange::AddColumn { column, .. } => {
            let default = column.default.as_ref();
            default.is_some_and(differs_elsewhere)
        }
        _ => false,
    };
    match changes.iter().any(differs) {
        true => Err(SqlError::new(
            codes::BINLOG_UNSAFE_SYSTEM_FUNCTION,
            "Statement is unsafe because it uses a system function that may return a different value on the replica.",
        )),
        false => Ok(()),
    }
}

fn added_checks(alterations: &[Alteration]) -> Vec<CheckSpec> {
    let added = alterations
        .iter()
        .filter_map(|alteration| match alteration {
            Alteration::AddCheck(spec) => Some(spec.clone()),
            _ => None,
        });
    added.collect()
}

/// Whether rows that are there must keep a CHECK that they did not have to keep before.
fn brings_check(alteration: &Alteration) -> bool {
    match alteration {
        Alteration::AddCheck(spec) => spec.enforced,
        Alteration::EnforceCheck { enforced, .. } => *enforced,
        _ => false,
    }
}

/// What DROP CONSTRAINT drops. Errors 3940 if there is no constraint of this name, and 3939 if there are several.
fn dropped_constraint(definition: &TableDefinition, name: &str) -> Result<Alteration> {
    let is_named = |other: &str| sheaf_table::schema::same_name(other, name);
    let mut found = Vec::new();
    if definition
        .foreign_keys
        .iter()
        .any(|key| is_named(&key.name))
    {
        found.push(Alteration::DropForeignKey(name.to_string()));
    }
    if definition.checks.iter().any(|check| is_named(&check.name)) {
        found.push(Alteration::DropCheck(name.to_string()));
    }
    if definition
        .index(name)
        .is_some_and(|index| index.unique || index.primary)
    {
        found.push(Alteration::DropIndex(name.to_string()));
    }
    match (found.pop(), found.is_empty()) {
        (Some(alteration), true) => Ok(alteration),
        (Some(_), false) => Err(SqlError::new(
            codes::MULTIPLE_CONSTRAINTS_WITH_SAME_NAME,
            format!(
                "Table has multiple constraints with the name '{name}'. Please use constraint specific 'DROP' clause."
            ),
        )),
        (None, _) => Err(SqlError::new(
            codes::CONSTRAINT_NOT_FOUND,
            format!("Constraint '{name}' does not exist."),
        )),
    }
}

fn column_place(place: &parsed::ColumnPlace) -> ColumnPlace {
    match place {
        parsed::ColumnPlace::First => ColumnPlace::First,
        parsed::ColumnPlace::After(column) => ColumnPlace::After(column.clone()),
    }
}
