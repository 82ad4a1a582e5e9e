//! Changes of definitions: tables, indexes.
//!
//! The catalog checks and carries out. This module turns what the statement says into what the catalog is asked for. It
//! resolves collations and defaults, follows IF EXISTS, and reports the progress of index builds and copies.

use std::sync::Arc;
use std::time::Duration;

use arrow::datatypes::{DataType, Field};
use sheaf_storage::{Direction, KeyRange, ReadAhead, Tree};
use sheaf_table::convert::to_column;
use sheaf_table::{
    AlterOptions, AlterWork, Alteration, Altered, AnalyzeOptions, Catalog, CheckSpec, Column,
    ColumnPlace, CreateTable, DefaultValue, ForeignKeySpec, IndexPartSpec, IndexSpec, LockRequest,
    NoProgress, Table, TableDefinition, TableError,
};
use sheaf_types::error::codes;
use sheaf_types::{Collation, ColumnType, Value, assignment::Mode};
use sqlparser::ast;

use crate::definition::made_columns::made_type;
use crate::error::{Result, SqlError};
use crate::parser::statement as parsed;
use crate::parser::statement::{KeyDefinition, KeyKind, TableChange, TableName};
use crate::parser::{Parsed, ParsedQuery};
use crate::query::rows::{Cells, Rows};
use crate::query::run::MAX_REPLANS;
use crate::query::values::{hybrid_number, literal};
use crate::session::Session;
use crate::session::progress::SessionProgress;
use crate::session::result::ResultSink;
use crate::variables;
use sheaf_frontend::query::SessionValues;

/// How long an index build or a copy waits at most for the table's writers, and at its end for its readers;
/// `lock_wait_timeout` may say less. It is short against that variable's default: others wait for it meanwhile.
const INDEX_LOCK_WAIT: Duration = Duration::from_secs(60);

/// Pages that CHECK TABLE reads ahead.
const CHECK_READ_AHEAD_PAGES: usize = 64;

/// Database and table.
type QualifiedName = (String, String);

/// Tables.
impl Session {
    pub(crate) fn create_table(
        &mut self,
        create: Parsed<'_, parsed::CreateTable>,
        sink: &mut dyn ResultSink,
    ) -> Result<()> {
        let Parsed { ast: create, text } = create;
        let (database, name) = self.resolve_for_change(&create.name)?;
        if create.if_not_exists && self.engine.catalog().table(&database, &name).is_ok() {
            self.warnings.note(
                codes::TABLE_EXISTS_ERROR,
                SqlError::table_exists(&name).message,
            );
            return self.ok(sink, 0, String::new());
        }
        let request = match &create.like {
            Some(other) => {
                let (other_database, other_table) = self.resolve(other)?;
                let other = self.engine.catalog().table(&other_database, &other_table)?;
                same_shape(&other.definition, database.clone(), name.clone())
            }
            None => {
                let create = Parsed::new(&create, text);
                self.table_request(create, database.clone(), name.clone())?
            }
        };
        if let Some(query) = create.query {
            let query = Parsed::new(query.as_ref(), text);
            return self.create_table_from_query(request, query, create.ignore, sink);
        }
        let catalog = self.engine.catalog();
        let made = self.with_definition_lock(|wait| {
            match catalog.create_table_within(request.clone(), wait) {
                Err(TableError::TableExists { table }) if create.if_not_exists => Ok(Some(table)),
                made => made.map(|_| None),
            }
        })?;
        if let Some(existing) = made {
            let note = SqlError::table_exists(&existing).message;
            self.warnings.note(codes::TABLE_EXISTS_ERROR, note);
        }
        self.ok(sink, 0, String::new())
    }

    /// CREATE TABLE … SELECT: columns of the query that the statement does not define are added after those it does.
    fn create_table_from_query(
        &mut self,
        mut request: CreateTable,
        query: ParsedQuery<'_>,
        ignore: bool,
        sink: &mut dyn ResultSink,
    ) -> Result<()> {
        let mode = self.insert_mode(ignore);
        if mode.strict {
            self.findings.refuse();
        }
        self.findings
            .watch_divisions_of_source(self.variables.sql_mode());
        let lowered = self.lower(query, None, false)?;
        let planned = self.plan_query(query, None)?;
        let schema = planned.schema();
        let mut targets = Vec::new();
        let columns = schema.fields().iter().zip(&planned.columns);
        for (position, (field, meta)) in columns.enumerate() {
            let defined = request
                .columns
                .iter()
                .position(|column| sheaf_table::schema::same_name(&column.name, &meta.name));
            let target = defined.unwrap_or_else(|| {
                request.columns.push(Column::new(
                    meta.name.clone(),
                    made_type(&lowered.plan, position, column_type_of(field)),
                    field.is_nullable(),
                ));
                request.columns.len() - 1
            });
            if targets.contains(&target) {
                return Err(SqlError::duplicate_field_name(&meta.name));
            }
            targets.push(target);
        }
        let written = self.insert_into_new(request, targets, planned, mode)?;
        self.ok(sink, written.rows, written.info(self.warnings.count()))
    }

    fn table_request(
        &mut self,
        create: Parsed<'_, &parsed::CreateTable>,
        database: String,
        name: String,
    ) -> Result<CreateTable> {
        let Parsed { ast: create, text } = create;
        let own =
            self.collation_of(create.character_set.as_deref(), create.collation.as_deref())?;
        let collation = match own {
            Some(collation) => collation,
            None => self.engine.catalog().database_collation(&database)?,
        };
        let mut columns = Vec::with_capacity(create.columns.len());
        for definition in &create.columns {
            let definition = Parsed::new(definition, text);
            columns.push(self.column(definition, collation, &create.keys)?);
        }
        if columns.is_empty() && create.query.is_none() {
            return Err(SqlError::table_must_have_columns());
        }
        let mut primary_key = None;
        let mut indexes = Vec::new();
        for key in &create.keys {
            match key.kind {
                KeyKind::Primary if primary_key.is_some() => {
                    return Err(SqlError::multiple_primary_key());
                }
                KeyKind::Primary => primary_key = Some(part_specs(key)),
                KeyKind::Unique | KeyKind::Plain => indexes.push(index_spec(key)),
            }
        }
        let mut checks = Vec::with_capacity(create.checks.len());
        for check in &create.checks {
            let shown = format!("{name}_chk_{}", checks.len() + 1);
            checks.push(self.check_spec(check, &shown)?);
        }
        self.try_checks(&name, &checks, &columns)?;
        let foreign_keys = create
            .foreign_keys
            .iter()
            .map(|key| self.foreign_key_spec(key, &database))
            .collect();
        Ok(CreateTable {
            database,
            name,
            columns,
            primary_key,
            indexes,
            collation,
            comment: create.comment.clone(),
            auto_increment_start: create.auto_increment.unwrap_or(1),
            foreign_keys,
            check_foreign_keys: self.variables.foreign_key_checks(),
            checks,
        })
    }

    /// The collation that CHARACTER SET and COLLATE name; `None` if neither is given. Collations that columns do not
    /// have are replaced by the nearest, with a warning.
    pub(crate) fn collation_of(
        &mut self,
        character_set: Option<&str>,
        collation: Option<&str>,
    ) -> Result<Option<Collation>> {
        let Some(name) = variables::named_collation(character_set, collation)? else {
            return Ok(None);
        };
        if let Some(collation) = Collation::parse(name) {
            return Ok(Some(collation));
        }
        let nearest = variables::nearest_collation(name);
        self.warnings.warn(
            codes::DEPRECATED_UTF8_ALIAS,
            format!("'{name}' is stored as '{}'", nearest.name()),
        );
        Ok(Some(nearest))
    }

    fn column(
        &mut self,
        definition: Parsed<'_, &parsed::ColumnDefinition>,
        table_collation: Collation,
        keys: &[KeyDefinition],
    ) -> Result<Column> {
        let Parsed {
            ast: definition,
            text,
        } = definition;
        let type_name = &definition.ty;
        let own = self.collation_of(
            type_name.character_set.as_deref(),
            type_name.collation.as_deref(),
        )?;
        let collation = match own.unwrap_or(table_collation) {
            Collation::Binary => Collation::Binary,
            _ if type_name.binary => Collation::Utf8mb4_bin,
            collation => collation,
        };
        let mut ty = with_collation(type_name.ty.clone(), collation);
        if let ColumnType::Double { unsigned } = ty
            && type_name.real
            && self.variables.sql_mode().contains("REAL_AS_FLOAT")
        {
            ty = ColumnType::Float { unsigned };
        }
        let in_primary_key = keys.iter().any(|key| {
            key.kind == KeyKind::Primary
                && key
                    .parts
                    .iter()
                    .any(|part| sheaf_table::schema::same_name(&part.column, &definition.name))
        });
        if in_primary_key && definition.explicit_null && !definition.not_null {
            return Err(SqlError::primary_cannot_have_null());
        }
        let nullable = !definition.not_null && !in_primary_key && !definition.auto_increment;
        let mut column = Column {
            auto_increment: definition.auto_increment,
            comment: definition.comment.clone(),
            ..Column::new(definition.name.clone(), ty, nullable)
        };
        if let Some(default) = &definition.default {
            let default = self.default_value(&column, Parsed::new(default, text))?;
            column.default = Some(default);
        }
        if let Some(on_update) = &definition.on_update {
            if !is_current_timestamp(on_update) || !has_time_of_day(&column.ty) {
                return Err(SqlError::new(
                    codes::INVALID_ON_UPDATE,
                    format!("Invalid ON UPDATE clause for '{}' column", column.name),
                ));
            }
            column.on_update_current_timestamp = true;
        }
        Ok(column)
    }

    fn default_value(
        &mut self,
        column: &Column,
        default: Parsed<'_, &ast::Expr>,
    ) -> Result<DefaultValue> {
        let Parsed { ast: default, text } = default;
        if is_current_timestamp(default) {
            return if has_time_of_day(&column.ty) {
                Ok(DefaultValue::CurrentTimestamp)
            } else {
                Err(SqlError::invalid_default(&column.name))
            };
        }
        let mode = Mode {
            strict: true,
            ..self.insert_mode(false)
        };
        let number = hybrid_number(default, &column.ty);
        let Some(value) = literal(number.as_ref().unwrap_or(default)) else {
            // MySQL 8 takes any expression in parentheses; constants are what can be kept.
            let constant = match default {
                ast::Expr::Nested(inner) => inner,
                // A literal behind an introducer, `_utf8mb4 X'41'`, and N'a'.
                ast::Expr::Prefixed { .. } | ast::Expr::Value(_) => default,
                _ => return Err(SqlError::invalid_default(&column.name)),
            };
            let value = self.evaluate(Parsed::new(constant, text))?;
            return constant_default(column, &value, mode);
        };
        constant_default(column, &value, mode)
    }

    pub(crate) fn drop_tables(
        &mut self,
        names: &[TableName],
        if_exists: bool,
        sink: &mut dyn ResultSink,
    ) -> Result<()> {
        let names = names.iter().map(|name| self.resolve_for_change(name));
        let names = names.collect::<Result<Vec<QualifiedName>>>()?;
        for (position, name) in names.iter().enumerate() {
            if names[..position].contains(name) {
                return Err(SqlError::non_unique_table(&name.1));
            }
        }
        let mut found = Vec::new();
        let mut missing = Vec::new();
        for (database, table) in names {
            match self.engine.catalog().table(&database, &table) {
                Ok(_) => found.push((database, table)),
                Err(TableError::UnknownTable { .. } | TableError::UnknownDatabase { .. }) => {
                    missing.push(format!("{database}.{table}"));
                }
                Err(error) => return Err(error.into()),
            }
        }
        // As in MySQL 8, a missing table keeps the others from being dropped.
        if !missing.is_empty() {
            let error = SqlError::bad_table(&missing.join(","));
            if !if_exists {
                return Err(error);
            }
            for name in &missing {
                self.warnings
                    .note(codes::BAD_TABLE_ERROR, SqlError::bad_table(name).message);
            }
        }
        let (catalog, check) = (self.engine.catalog(), self.variables.foreign_key_checks());
        self.with_definition_lock(|wait| catalog.drop_tables(&found, check, wait))?;
        self.table_locks.forget_locked(&found);
        self.ok(sink, 0, String::new())
    }

    pub(crate) fn rename_tables(
        &mut self,
        pairs: &[(TableName, TableName)],
        sink: &mut dyn ResultSink,
    ) -> Result<()> {
        let mut renames = Vec::with_capacity(pairs.len());
        for (old, new) in pairs {
            let (old, new) = (self.resolve_for_change(old)?, self.resolve_for_change(new)?);
            renames.push((old, new));
        }
        let catalog = self.engine.catalog();
        self.with_definition_lock(|wait| catalog.rename_tables(&renames, wait))?;
        self.table_locks.rename_locked(&renames);
        self.ok(sink, 0, String::new())
    }

    /// Puts a new table in the place of the old one, as MySQL does.
    pub(crate) fn truncate_table(
        &mut self,
        name: &TableName,
        sink: &mut dyn ResultSink,
    ) -> Result<()> {
        let (database, table) = self.resolve_for_change(name)?;
        let (catalog, check) = (self.engine.catalog(), self.variables.foreign_key_checks());
        let name = (database.as_str(), table.as_str());
        self.with_definition_lock(|wait| catalog.truncate_table(name, check, wait))?;
        self.ok(sink, 0, String::new())
    }
}

/// ALTER TABLE.
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
                Some(altered) => return self.altered(&altered, sink),
                None => self.warnings.back_to(mark),
            }
        }
        Err(SqlError::definition_changed())
    }

    /// Alters a table as it is when this begins; `None`: others have changed it before it was locked.
    fn alter_known(
        &mut self,
        name: &TableName,
        changes: Parsed<'_, &Vec<TableChange>>,
    ) -> Result<Option<Altered>> {
        let (database, table) = self.resolve_for_change(name)?;
        let old_name = (database.clone(), table.clone());
        let current = self.engine.catalog().table(&database, &table)?;
        let alterations = self.alterations(&current.definition, changes)?;
        let (next, work) = Catalog::altered_definition(&current, &alterations)?;
        let added: Vec<CheckSpec> = added_checks(&alterations);
        self.try_checks(&table, &added, &next.columns)?;
        check_demands(changes.ast, work)?;
        let name = (database.as_str(), table.as_str());
        let mut options = AlterOptions {
            memory_bytes: 0,
            threads: self.workers.threads(),
            mode: self.insert_mode(false),
            keeps_zero: self.keeps_zero(),
            series: self.variables.auto_increment_series(),
            now_micros: self.local_now_micros(),
            check_foreign_keys: self.variables.foreign_key_checks(),
            version: Some(current),
            row_test: None,
        };
        // Rows are tested where a CHECK is new to them, and where their values may change.
        let mut failure = None;
        if work == AlterWork::Copy || alterations.iter().any(brings_check) {
            (options.row_test, failure) = self.row_test(&next)?.unzip();
        }
        let altered = if work > AlterWork::Definition {
            let progress = SessionProgress::new(self.handle());
            let memory = self.sort_memory()?;
            options.memory_bytes = memory.bytes();
            // One wait, not one in slices: the second wait comes after the build, which must not be done again.
            let limit = Duration::from_secs(self.variables.lock_wait_timeout_seconds());
            let handle = &self.handle;
            let is_interrupted = || handle.should_stop_waiting();
            let wait = LockRequest {
                session: self.id(),
                interrupt: Some(&is_interrupted),
                ..LockRequest::from(limit.min(INDEX_LOCK_WAIT))
            };
            let catalog = self.engine.catalog();
            let altered = catalog.alter_table(name, &alterations, &options, &progress, wait);
            // Why a CHECK could not be evaluated.
            if let Some(error) = failure.and_then(|failure| failure.lock().ok()?.take()) {
                return Err(error);
            }
            unless_changed(altered)?
        } else if !alterations.is_empty() {
            let catalog = self.engine.catalog();
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
        if altered.is_some() {
            self.table_locks.rename_locked(&renames);
        }
        Ok(altered)
    }

    fn altered(&mut self, altered: &Altered, sink: &mut dyn ResultSink) -> Result<()> {
        for issue in &altered.issues {
            self.warnings.warn(issue.mysql_code(), issue.to_string());
        }
        self.warnings.count_others(altered.more_issues);
        // MySQL counts rows where it converts them.
        let records = match altered.work {
            AlterWork::Copy => altered.rows,
            _ => 0,
        };
        let warnings = self.warnings.count();
        let info = format!("Records: {records}  Duplicates: 0  Warnings: {warnings}");
        self.ok(sink, records, info)
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
                } => self.collation_of(character_set.as_deref(), collation.as_deref())?,
                TableChange::ConvertTo {
                    character_set: None,
                    collation,
                } => {
                    let default = self.engine.catalog().database_collation(database)?;
                    let collation = collation.as_deref().unwrap_or(default.name());
                    self.collation_of(Some(default.character_set()), Some(collation))?
                }
                TableChange::ConvertTo {
                    character_set,
                    collation,
                } => self.collation_of(character_set.as_deref(), collation.as_deref())?,
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
                    alterations.extend(keys.iter().map(key_alteration));
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
                    alterations.extend(keys.iter().map(key_alteration));
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
                TableChange::SetDefault { column, default } => {
                    let position = definition.column_position(column);
                    let position = position.ok_or_else(|| TableError::UnknownColumn {
                        column: column.clone(),
                        table: table.to_string(),
                    })?;
                    let default = match default {
                        Some(default) => {
                            let column = &definition.columns[position];
                            Some(self.default_value(column, Parsed::new(default, text))?)
                        }
                        None => None,
                    };
                    Alteration::SetDefault {
                        column: column.clone(),
                        default,
                    }
                }
                TableChange::DropColumn { name } => Alteration::DropColumn(name.clone()),
                TableChange::AddKey(key) => key_alteration(key),
                TableChange::DropKey { name } => Alteration::DropIndex(name.clone()),
                TableChange::DropPrimaryKey => Alteration::DropPrimaryKey,
                TableChange::RenameKey { old, new } => Alteration::RenameIndex {
                    name: old.clone(),
                    new: new.clone(),
                },
                TableChange::AddForeignKey(key) => Alteration::AddForeignKey {
                    spec: self.foreign_key_spec(key, database),
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
                TableChange::Comment(comment) => Alteration::SetComment(comment.clone()),
                TableChange::DefaultCollation { .. } => Alteration::SetCollation(collation),
                TableChange::ConvertTo { .. } if collation == Collation::Binary => {
                    return Err(SqlError::not_supported_yet(
                        "ALTER TABLE ... CONVERT TO CHARACTER SET binary",
                    ));
                }
                TableChange::ConvertTo { .. } => Alteration::ConvertTo(collation),
                TableChange::Rebuild => Alteration::Rebuild,
                // Without a database it goes to the session's, as in MySQL: that is where the privileges are looked
                // for.
                TableChange::RenameTo(new) => {
                    let (new_database, new_table) = self.resolve_for_change(new)?;
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
        let refers_to_itself = |alteration: &Alteration| match alteration {
            Alteration::AddForeignKey { spec, .. } => {
                spec.referenced_database == database && spec.referenced_table == table
            }
            _ => false,
        };
        let is_renamed =
            |alteration: &Alteration| matches!(alteration, Alteration::RenameTo { .. });
        if alterations.iter().any(is_renamed) && alterations.iter().any(refers_to_itself) {
            return Err(TableError::RenamedReferencedTable.into());
        }
        Ok(alterations)
    }

    /// What a foreign key asks for. Without columns of the parent it refers to the parent's primary key.
    fn foreign_key_spec(
        &self,
        key: &parsed::ForeignKeyDefinition,
        database: &str,
    ) -> ForeignKeySpec {
        let referenced_database = key.table.database.as_deref().unwrap_or(database);
        let mut referenced_columns = key.referenced.clone();
        if referenced_columns.is_empty()
            && let Ok(parent) = self
                .engine
                .catalog()
                .table(referenced_database, &key.table.table)
        {
            let parent = &parent.definition;
            let parts = parent.primary.parts.iter();
            let names = parts.map(|part| parent.columns[part.column].name.clone());
            referenced_columns.extend(names);
        }
        ForeignKeySpec {
            name: key.name.clone(),
            index_name: key.index.clone(),
            columns: key.columns.clone(),
            referenced_database: referenced_database.to_string(),
            referenced_table: key.table.table.clone(),
            referenced_columns,
            on_delete: key.on_delete,
            on_update: key.on_update,
        }
    }
}

/// `None`: others have changed the table's definition.
fn unless_changed(altered: sheaf_table::Result<Altered>) -> sheaf_table::Result<Option<Altered>> {
    match altered {
        Err(TableError::DefinitionChanged) => Ok(None),
        altered => altered.map(Some),
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

/// A key that is added.
fn key_alteration(key: &KeyDefinition) -> Alteration {
    match key.kind {
        KeyKind::Primary => Alteration::AddPrimaryKey(part_specs(key)),
        KeyKind::Unique | KeyKind::Plain => Alteration::AddIndex(index_spec(key)),
    }
}

fn column_place(place: &parsed::ColumnPlace) -> ColumnPlace {
    match place {
        parsed::ColumnPlace::First => ColumnPlace::First,
        parsed::ColumnPlace::After(column) => ColumnPlace::After(column.clone()),
    }
}

/// Whether changes of a table are done as ALGORITHM and LOCK ask for. Indexes are built, and rows copied, while others
/// read the table and do not write it; everything else only changes the definition. Errors 1845 and 1846 for what is
/// not kept, 1800 and 1801 for words that are none.
fn check_demands(changes: &[TableChange], work: AlterWork) -> Result<()> {
    let (cannot_write, can_read) = match work.copies() {
        true => (
            "the table cannot be changed while its rows are copied",
            "the table can be read while its rows are copied",
        ),
        false => (
            "the table cannot be changed while an index is built",
            "the table can be read while an index is built",
        ),
    };
    for change in changes {
        match change {
            TableChange::Algorithm(word) => match (word.as_str(), work) {
                // A statement that asks for a copy gets the same with less work.
                ("DEFAULT" | "COPY", _) | ("INSTANT", AlterWork::Definition) => {}
                ("INPLACE" | "INSTANT", AlterWork::Copy) => {
                    return Err(SqlError::alter_not_supported_because(
                        &format!("ALGORITHM={word}"),
                        "values are converted to another type, or the rows lose their order",
                        "ALGORITHM=COPY",
                    ));
                }
                ("INPLACE", _) => {}
                ("INSTANT", _) => {
                    return Err(SqlError::alter_not_supported(
                        "ALGORITHM=INSTANT",
                        "ALGORITHM=INPLACE",
                    ));
                }
                (other, _) => {
                    let message = format!("Unknown ALGORITHM '{other}'");
                    return Err(SqlError::new(codes::UNKNOWN_ALTER_ALGORITHM, message));
                }
            },
            TableChange::Lock(word) => match (word.as_str(), work) {
                ("DEFAULT" | "SHARED", _) | ("NONE" | "EXCLUSIVE", AlterWork::Definition) => {}
                ("NONE", _) => {
                    return Err(SqlError::alter_not_supported_because(
                        "LOCK=NONE",
                        cannot_write,
                        "LOCK=SHARED",
                    ));
                }
                ("EXCLUSIVE", _) => {
                    return Err(SqlError::alter_not_supported_because(
                        "LOCK=EXCLUSIVE",
                        can_read,
                        "LOCK=SHARED",
                    ));
                }
                (other, _) => {
                    let message = format!("Unknown LOCK type '{other}'");
                    return Err(SqlError::new(codes::UNKNOWN_ALTER_LOCK, message));
                }
            },
            _ => {}
        }
    }
    Ok(())
}

/// ANALYZE, CHECK, OPTIMIZE and REPAIR TABLE.
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
            let done = self
                .engine
                .catalog()
                .table(&database, &table)
                .map_err(SqlError::from)
                .and_then(|table| match verb {
                    "check" => self.check_table(&table),
                    "repair" => Ok(()),
                    _ => {
                        let (definition, catalog) = (&table.definition, self.engine.catalog());
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
        let TableDefinition { database, name, .. } = &table.definition;
        let guard = self.lock_for_write(database, name)?;
        match self.wrong_index(&guard)? {
            Some(message) => Err(SqlError::unknown(message)),
            None => Ok(()),
        }
    }

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
            self.handle.cancel_flag().check()?;
        }
        Ok(entries)
    }
}

/// CHAR, VARCHAR and TEXT of the character set `binary` are the byte types.
fn with_collation(ty: ColumnType, collation: Collation) -> ColumnType {
    match (ty, collation) {
        (ColumnType::Char { length, .. }, Collation::Binary) => ColumnType::Binary { length },
        (ColumnType::VarChar { length, .. }, Collation::Binary) => ColumnType::VarBinary { length },
        (ColumnType::Text { max_bytes, .. }, Collation::Binary) => ColumnType::Blob { max_bytes },
        (ty, collation) => ty.with_collation(collation),
    }
}

/// `mode`: whether 0000-00-00 is a value; it is strict.
fn constant_default(column: &Column, value: &Value, mode: Mode) -> Result<DefaultValue> {
    if value.is_null() {
        return if column.nullable {
            Ok(DefaultValue::Value(Value::Null))
        } else {
            Err(SqlError::invalid_default(&column.name))
        };
    }
    if matches!(column.ty, ColumnType::Text { .. } | ColumnType::Blob { .. }) {
        return Err(SqlError::blob_cannot_have_default(&column.name));
    }
    match to_column(column, value, mode) {
        Ok((value, _)) => Ok(DefaultValue::Value(value)),
        Err(_) => Err(SqlError::invalid_default(&column.name)),
    }
}

fn has_time_of_day(ty: &ColumnType) -> bool {
    matches!(
        ty,
        ColumnType::DateTime { .. } | ColumnType::Timestamp { .. }
    )
}

/// CURRENT_TIMESTAMP under any of its names, with or without parentheses and digits.
pub(crate) fn is_current_timestamp(expression: &ast::Expr) -> bool {
    let name = match expression {
        ast::Expr::Function(function) => function.name.to_string(),
        ast::Expr::Identifier(name) if name.quote_style.is_none() => name.value.clone(),
        ast::Expr::Nested(inner) => return is_current_timestamp(inner),
        _ => return false,
    };
    ["CURRENT_TIMESTAMP", "NOW", "LOCALTIME", "LOCALTIMESTAMP"]
        .iter()
        .any(|known| name.eq_ignore_ascii_case(known))
}

fn part_specs(key: &KeyDefinition) -> Vec<IndexPartSpec> {
    key.parts
        .iter()
        .map(|part| IndexPartSpec {
            column: part.column.clone(),
            prefix_length: part.prefix_length,
            descending: part.descending,
        })
        .collect()
}

fn index_spec(key: &KeyDefinition) -> IndexSpec {
    IndexSpec {
        name: key.name.clone(),
        parts: part_specs(key),
        unique: key.kind == KeyKind::Unique,
        comment: key.comment.clone(),
    }
}

/// The request that makes an empty table like an existing one.
fn same_shape(definition: &TableDefinition, database: String, name: String) -> CreateTable {
    let specs = |parts: &[sheaf_table::IndexPart]| {
        let spec = |part: &sheaf_table::IndexPart| IndexPartSpec {
            column: definition.columns[part.column].name.clone(),
            prefix_length: part.prefix_length,
            descending: part.descending,
        };
        parts.iter().map(spec).collect::<Vec<_>>()
    };
    CreateTable {
        database,
        name,
        columns: definition.columns.clone(),
        primary_key: (!definition.has_hidden_row_id()).then(|| specs(&definition.primary.parts)),
        indexes: definition
            .secondary
            .iter()
            .map(|index| IndexSpec {
                name: Some(index.name.clone()),
                parts: specs(&index.parts),
                unique: index.unique,
                comment: index.comment.clone(),
            })
            .collect(),
        collation: definition.collation,
        comment: definition.comment.clone(),
        auto_increment_start: 1,
        foreign_keys: Vec::new(),
        // Foreign keys of a table that was there have been checked.
        check_foreign_keys: false,
        checks: definition
            .checks
            .iter()
            .map(|check| CheckSpec {
                name: None,
                expression: check.expression.clone(),
                columns: check.columns.clone(),
                enforced: check.enforced,
                of_column: None,
            })
            .collect(),
    }
}

/// The column type that holds what a query's column holds.
pub(crate) fn column_type_of(field: &Field) -> ColumnType {
    if let Some(ty) = field
        .metadata()
        .get(sheaf_access::TYPE_KEY)
        .and_then(|text| ColumnType::parse(text).ok())
    {
        return ty;
    }
    let collation = Collation::default();
    match field.data_type() {
        DataType::Boolean | DataType::Int8 | DataType::Int16 | DataType::Int32 => {
            ColumnType::Int { unsigned: false }
        }
        DataType::UInt8 | DataType::UInt16 | DataType::UInt32 => ColumnType::Int { unsigned: true },
        DataType::Int64 => ColumnType::BigInt { unsigned: false },
        DataType::UInt64 => ColumnType::BigInt { unsigned: true },
        DataType::Float32 => ColumnType::Float { unsigned: false },
        DataType::Float64 => ColumnType::Double { unsigned: false },
        DataType::Decimal128(precision, scale) => ColumnType::Decimal {
            precision: *precision,
            scale: u8::try_from(*scale).unwrap_or(0),
            unsigned: false,
        },
        DataType::Date32 | DataType::Date64 => ColumnType::Date,
        DataType::Timestamp(..) => ColumnType::DateTime { fsp: 6 },
        DataType::Duration(_) => ColumnType::Time { fsp: 6 },
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView => ColumnType::Blob {
            max_bytes: 4_294_967_295,
        },
        _ => ColumnType::Text {
            max_bytes: 4_294_967_295,
            collation,
        },
    }
}
