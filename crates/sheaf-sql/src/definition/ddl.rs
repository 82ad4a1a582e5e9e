//! Tables: CREATE, DROP, RENAME and TRUNCATE.
//!
//! The catalog checks and carries out. This module turns what the statement says into what the catalog is asked for. It
//! resolves collations and defaults, follows IF EXISTS, and reports the progress of index builds and copies.

use std::collections::HashSet;

use sheaf_frontend::error::NotKept;
use sheaf_frontend::locking::skips_locked;
use sheaf_frontend::parser::check_text::column_names;
use sheaf_frontend::query::{BoundQuery, Listed};
use sheaf_frontend::syntax::number_digits;
use sheaf_frontend::varying::varies;
use sheaf_table::convert::to_column;
use sheaf_table::{
    CheckSpec, Column, CreateTable, DefaultExpression, DefaultValue, ForeignKeySpec, IndexPartSpec,
    IndexSpec, QualifiedName, TableDefinition, TableError,
};
use sheaf_types::assignment::{Mode, names_labels};
use sheaf_types::error::codes;
use sheaf_types::{Collation, ColumnType, Value};
use sqlparser::ast;

use crate::definition::comments::Commented;
use crate::definition::key_expressions::primary_specs;
use crate::definition::replaced_table::Replaced;
use crate::definition::view_names::MAX_NAME_CHARACTERS;
use crate::error::{Result, SqlError};
use crate::parser::statement as parsed;
use crate::parser::statement::{KeyDefinition, KeyKind, OnDuplicate, TableName};
use crate::parser::{Parsed, ParsedQuery};
use crate::query::made_columns::{rolls_up, written_items};
use crate::query::never_null::never_null;
use crate::query::run::PlannedQuery;
use crate::query::value_extent::extents;
use crate::query::values::{hybrid_number, literal};
use crate::session::Session;
use crate::session::result::ResultSink;
use crate::session::warnings::Warnings;
use crate::variables;

/// Tables.
impl Session {
    pub(crate) fn create_table(
        &mut self,
        create: Parsed<'_, parsed::CreateTable>,
        sink: &mut dyn ResultSink,
    ) -> Result<()> {
        let Parsed { ast: create, text } = create;
        // A temporary table may have the name of any table.
        let (database, name) = match create.temporary {
            true => self.resolve(&create.name)?,
            false => self.resolve_for_change(&create.name)?,
        };
        self.check_changeable(&database)?;
        if create.temporary && !create.foreign_keys.is_empty() {
            return Err(SqlError::cannot_add_foreign_key());
        }
        let exists = match create.temporary {
            true => self.table_names().is_temporary(&database, &name),
            false => self.engine.catalog().columns(&database, &name).is_some(),
        };
        let replaced = create.or_replace.then(|| Replaced {
            name: (database.clone(), name.clone()),
            temporary: create.temporary,
        });
        if let Some(replaced) = &replaced {
            self.check_replaced(replaced)?;
        }
        if let Some(other) = &create.like
            && self.resolve(other)? == (database.clone(), name.clone())
        {
            return Err(SqlError::non_unique_table(&name));
        }
        if create.if_not_exists && exists {
            self.warnings.note(
                codes::TABLE_EXISTS_ERROR,
                SqlError::table_exists(&name).message,
            );
            return self.ok(sink, 0, String::new());
        }
        let request = match &create.like {
            Some(other) => {
                let (other_database, other_table) = self.resolve(other)?;
                let names = self.table_names_in_utc();
                let other = names.table(&other_database, &other_table)?;
                same_shape(&other.definition, database.clone(), name.clone())
            }
            None => {
                let create = Parsed::new(&create, text);
                self.table_request(create, database.clone(), name.clone())?
            }
        };
        if let Some(query) = create.query {
            let query = Parsed::new(query.as_ref(), text);
            let how = (create.temporary, create.on_duplicate);
            return self.create_table_from_query(request, query, (how, replaced.as_ref()), sink);
        }
        if let Some(replaced) = &replaced {
            self.engine.catalog().check_request(&request)?;
            self.drop_replaced(replaced)?;
        }
        if create.temporary {
            self.create_temporary_table(request)?;
            if create.like.is_none() {
                self.warn_of_indexes_of_new((&database, &name));
            }
            return self.ok(sink, 0, String::new());
        }
        if self.transactions.incoming.is_next {
            self.make_source_table(request)?;
            return self.ok(sink, 0, String::new());
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
        } else if create.like.is_none() {
            self.warn_of_indexes_of_new((&database, &name));
        }
        self.ok(sink, 0, String::new())
    }

    /// Warns of indexes of a table that was just made, unless others have dropped it again.
    fn warn_of_indexes_of_new(&mut self, (database, name): (&str, &str)) {
        let made = self.table_names_in_utc().table(database, name);
        if let Ok(made) = made {
            self.warn_of_duplicate_indexes(&made.definition, &[]);
        }
    }

    /// CREATE TABLE … SELECT: the query's columns come after those that the statement alone defines.
    fn create_table_from_query(
        &mut self,
        mut request: CreateTable,
        query: ParsedQuery<'_>,
        ((temporary, on_duplicate), replaced): ((bool, OnDuplicate), Option<&Replaced>),
        sink: &mut dyn ResultSink,
    ) -> Result<()> {
        // Followers make the table in the transaction of its rows, and those of MySQL no foreign keys there.
        if !request.foreign_keys.is_empty() && self.is_replicated() {
            return Err(SqlError::new(
                codes::FOREIGN_KEY_WITH_ATOMIC_CREATE_SELECT,
                "Foreign key creation is not allowed with CREATE TABLE as SELECT and CREATE TABLE with START \
                 TRANSACTION statement.",
            ));
        }
        // A table that comes with its rows is bulk loaded, and a bulk load skips and replaces nothing. A temporary one
        // is there before its rows.
        if on_duplicate != OnDuplicate::Error && has_unique_key(&request) && !temporary {
            return Err(SqlError::not_supported_yet(
                "CREATE TABLE ... IGNORE or REPLACE SELECT with a unique key",
            ));
        }
        let mode = self.insert_mode(on_duplicate == OnDuplicate::Ignore);
        if mode.strict {
            self.findings.refuse();
        }
        self.findings
            .watch_divisions_of_source(self.variables.sql_mode());
        if skips_locked(query.ast) {
            return Err(SqlError::not_supported_yet(
                "SKIP LOCKED in CREATE TABLE ... SELECT",
            ));
        }
        let lowered = self.lower(query, None, Listed::Items)?;
        if let Some(replaced) = replaced {
            replaced.check_not_read(&lowered)?;
        }
        let (database, name) = (request.database.clone(), request.name.clone());
        let how = (mode, on_duplicate);
        let written = match temporary {
            true => {
                if let Some(replaced) = replaced {
                    self.drop_replaced(replaced)?;
                }
                self.temporary_from_query(request, query, &lowered, how)?
            }
            false => {
                let planned = self.plan_query(query, None)?;
                let bound = (query.ast, &lowered);
                let targets = self.add_columns_of(&mut request, bound, &planned)?;
                if let Some(replaced) = replaced {
                    self.engine.catalog().check_request(&request)?;
                    self.drop_replaced(replaced)?;
                }
                self.insert_into_new(request, targets, planned, how)?
            }
        };
        self.warn_of_indexes_of_new((&database, &name));
        self.outcome.note_generated(written.first_auto_increment);
        let affected = written.affected(self.client.info.found_rows);
        self.ok(sink, affected, written.info(self.warnings.count()))
    }

    /// Adds the columns of a query to those of CREATE TABLE … SELECT. Returns where the query's are. Errors for
    /// generated columns that cannot be computed of them.
    pub(crate) fn add_columns_of(
        &mut self,
        request: &mut CreateTable,
        (query, lowered): (&ast::Query, &BoundQuery),
        planned: &PlannedQuery,
    ) -> Result<Vec<usize>> {
        let schema = planned.schema();
        // Those that the query does not give come first, and then its own, in its order.
        let mut defined = std::mem::take(&mut request.columns);
        let mut given: Vec<Column> = Vec::with_capacity(planned.columns.len());
        let columns = schema.fields().iter().zip(&planned.columns);
        let shown = lowered.shown.outputs.iter().zip(extents(lowered));
        let shown = shown.zip(written_items(query, planned.columns.len()));
        let shown = shown.zip(never_null(lowered));
        let rolls_up = rolls_up(query);
        for ((field, meta), ((((_, shown), extent), written), is_there)) in columns.zip(shown) {
            let is_same =
                |column: &Column| sheaf_table::schema::same_name(&column.name, &meta.name);
            if given.iter().any(is_same) {
                return Err(SqlError::duplicate_field_name(&meta.name));
            }
            given.push(match defined.iter().position(is_same) {
                Some(known) => defined.remove(known),
                None => {
                    // A plan knows of more columns that they are never NULL.
                    let nullable = shown.is_nullable() && !is_there;
                    let field = field.as_ref().clone().with_nullable(nullable);
                    match rolls_up {
                        true => self.rolled_up_column(&field, meta, (extent, written)),
                        false => self.made_column(&field, meta, (extent, written)),
                    }
                }
            });
        }
        let targets = (defined.len()..defined.len() + given.len()).collect();
        request.columns = defined;
        request.columns.extend(given);
        self.try_generated(&request.name, &request.columns)?;
        let indexes = &mut request.indexes;
        self.type_key_expressions(&request.name, &request.columns, indexes)?;
        Ok(targets)
    }

    fn table_request(
        &mut self,
        create: Parsed<'_, &parsed::CreateTable>,
        database: String,
        name: String,
    ) -> Result<CreateTable> {
        let Parsed { ast: create, text } = create;
        let own = self
            .warnings
            .collation_of(create.character_set.as_deref(), create.collation.as_deref())?;
        let collation = match own {
            Some(collation) => collation,
            None => self.engine.catalog().database_collation(&database)?,
        };
        let comment = self.kept_comment(&create.comment, Commented::Table(&name))?;
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
                KeyKind::Primary => {
                    self.kept_comment(&key.comment, Commented::Index("PRIMARY"))?;
                    primary_key = Some(primary_specs(key)?);
                }
                KeyKind::Unique | KeyKind::Plain => indexes.push(self.index_spec(key)?),
            }
        }
        let mut checks = Vec::with_capacity(create.checks.len());
        for check in &create.checks {
            let shown = format!("{name}_chk_{}", checks.len() + 1);
            checks.push(self.check_spec(check, &shown)?);
        }
        self.try_checks(&name, &checks, &columns)?;
        self.try_defaults(&name, &columns)?;
        // The columns of a query are still to come.
        if create.query.is_none() {
            self.try_generated(&name, &columns)?;
            self.type_key_expressions(&name, &columns, &mut indexes)?;
        }
        let foreign_keys = create
            .foreign_keys
            .iter()
            .map(|key| self.foreign_key_spec(key, &database))
            .collect::<Result<_>>()?;
        Ok(CreateTable {
            database,
            name,
            columns,
            primary_key,
            indexes,
            collation,
            comment,
            auto_increment_start: create.auto_increment.unwrap_or(1),
            foreign_keys,
            check_foreign_keys: self.variables.foreign_key_checks(),
            checks,
        })
    }

    /// What a foreign key asks for. Without columns of the parent it refers to the parent's primary key.
    pub(super) fn foreign_key_spec(
        &self,
        key: &parsed::ForeignKeyDefinition,
        database: &str,
    ) -> Result<ForeignKeySpec> {
        check_names_of_foreign_key(key)?;
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
        Ok(ForeignKeySpec {
            name: key.name.clone(),
            index_name: key.index.clone(),
            columns: key.columns.clone(),
            referenced_database: referenced_database.to_string(),
            referenced_table: key.table.table.clone(),
            referenced_columns,
            on_delete: key.on_delete,
            on_update: key.on_update,
        })
    }

    pub(super) fn column(
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
        let own = self.warnings.collation_of(
            type_name.character_set.as_deref(),
            type_name.collation.as_deref(),
        )?;
        // Numbers and dates take any, as in MySQL.
        let has_bytes = type_name.ty.is_json() || type_name.ty.is_binary();
        if let (true, Some(own)) = (has_bytes, own)
            && own != Collation::Binary
        {
            return Err(SqlError::collation_of_other_character_set(
                own.name(),
                "binary",
            ));
        }
        let collation = match own.unwrap_or(table_collation) {
            Collation::Binary => Collation::Binary,
            collation if type_name.binary => collation.by_code_points(),
            collation => collation,
        };
        let mut ty = type_name.in_collation(collation);
        if type_name.real && self.variables.sql_mode().contains("REAL_AS_FLOAT") {
            ty = ty.into_single();
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
        let comment =
            self.kept_comment(&definition.comment, Commented::Column(&definition.name))?;
        let mut column = Column {
            auto_increment: definition.auto_increment,
            comment,
            invisible: definition.invisible,
            ..Column::new(definition.name.clone(), ty, nullable)
        };
        if let Some(generated) = &definition.generated {
            column.generated = Some(self.generated_column(&definition.name, generated)?);
        }
        if let Some(default) = &definition.default
            && !self.leaves_out_default(&column, default)?
        {
            let kept = &definition.default_text;
            let default = self.default_value(&column, (default, kept), text)?;
            column.default = Some(default);
        }
        if let Some(on_update) = &definition.on_update {
            let is_moment = is_current_timestamp(on_update) && column.ty.is_moment();
            if !is_moment || has_fewer_digits(on_update, &column.ty) {
                return Err(SqlError::new(
                    codes::INVALID_ON_UPDATE,
                    format!("Invalid ON UPDATE clause for '{}' column", column.name),
                ));
            }
            column.on_update_current_timestamp = true;
        }
        Ok(column)
    }

    /// An empty text as the default of a TEXT or BLOB column, which is left out with a warning if the mode is not
    /// strict.
    ///
    /// # Errors
    /// 1101 for other constants of long columns.
    fn leaves_out_default(&mut self, column: &Column, default: &ast::Expr) -> Result<bool> {
        let ast::Expr::Value(default) = default else {
            return Ok(false);
        };
        if !column.ty.is_long() || default.value == ast::Value::Null {
            return Ok(false);
        }
        let error = SqlError::blob_cannot_have_default(&column.name);
        let is_empty = matches!(
            &default.value,
            ast::Value::SingleQuotedString(text) | ast::Value::DoubleQuotedString(text)
                if text.is_empty()
        );
        let is_strict = self.variables.sql_mode().is_strict();
        if is_strict || !is_empty || column.ty.is_json() {
            return Err(error);
        }
        self.warnings
            .warn(codes::BLOB_CANT_HAVE_DEFAULT, error.message);
        Ok(true)
    }

    pub(super) fn default_value(
        &mut self,
        column: &Column,
        (default, kept): (&ast::Expr, &str),
        text: &str,
    ) -> Result<DefaultValue> {
        if let ast::Expr::Nested(inner) = default
            && let Some(what) = NotKept::of(inner)
        {
            return Err(SqlError::not_in_default(&column.name, &what));
        }
        if let ast::Expr::Nested(inner) = default
            && !(is_current_timestamp(inner)
                && column.ty.is_moment()
                && !has_fewer_digits(inner, &column.ty))
            // A long column has no constant as its default.
            && (varies(inner) || column.ty.is_long())
        {
            self.check_meaning("computed defaults", kept)?;
            return Ok(DefaultValue::Expression(DefaultExpression {
                text: kept.to_string(),
                columns: column_names(inner),
            }));
        }
        if is_current_timestamp(default) {
            let has_digits = !has_fewer_digits(default, &column.ty);
            return if column.ty.is_moment() && has_digits {
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
        // The number of a label is a default only in parentheses.
        let is_named = value.is_null() || names_labels(&column.ty, &value.to_string());
        let is_nested = matches!(default, ast::Expr::Nested(_));
        if column.ty.has_labels() && !is_named && !is_nested {
            return Err(SqlError::invalid_default(&column.name));
        }
        constant_default(column, &value, mode)
    }

    /// The names of a DROP; 1066 where it names a table or a view twice.
    pub(super) fn resolve_each_once(&self, names: &[TableName]) -> Result<Vec<QualifiedName>> {
        let names = names.iter().map(|name| self.resolve_for_change(name));
        let names = names.collect::<Result<Vec<QualifiedName>>>()?;
        let mut known = HashSet::with_capacity(names.len());
        if let Some(again) = names.iter().find(|name| !known.insert(*name)) {
            return Err(SqlError::non_unique_table(&again.1));
        }
        Ok(names)
    }

    pub(crate) fn drop_tables(
        &mut self,
        names: &[TableName],
        (if_exists, only_temporary): (bool, bool),
        sink: &mut dyn ResultSink,
    ) -> Result<()> {
        let names = self.resolve_each_once(names)?;
        let mut temporary = Vec::new();
        let mut found = Vec::new();
        let mut missing = Vec::new();
        for (database, table) in names {
            self.handle.cancel_flag().check()?;
            if self.table_names().is_temporary(&database, &table) {
                temporary.push((database, table));
                continue;
            }
            if only_temporary {
                missing.push(format!("{database}.{table}"));
                continue;
            }
            match self.engine.catalog().table(&database, &table) {
                Ok(_) => found.push((database, table)),
                Err(
                    TableError::UnknownTable { .. }
                    | TableError::UnknownDatabase { .. }
                    | TableError::NotBaseTable { .. },
                ) => {
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
        if !found.is_empty() {
            let (catalog, check) = (self.engine.catalog(), self.variables.foreign_key_checks());
            self.with_definition_lock(|wait| catalog.drop_tables(&found, check, wait))?;
            self.table_locks
                .forget_locked(&found, self.engine.catalog());
        }
        self.temporary.drop_tables(&temporary);
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
        let is_view =
            |(old, _): &&(QualifiedName, QualifiedName)| catalog.view(&old.0, &old.1).is_some();
        match (renames.iter().find(is_view), renames.len()) {
            (None, _) => {}
            (Some((old, new)), 1) => {
                self.rename_view(old, new)?;
                return self.ok(sink, 0, String::new());
            }
            (Some(_), _) => {
                return Err(SqlError::not_supported_yet(
                    "RENAME TABLE of a view and of others",
                ));
            }
        }
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
        let name = (database.as_str(), table.as_str());
        let (names, check) = (self.table_names(), self.variables.foreign_key_checks());
        let catalog = names.catalog_of(name.0, name.1);
        if names.view(name.0, name.1).is_some() {
            return Err(SqlError::no_such_table(name.0, name.1));
        }
        self.with_definition_lock(|wait| catalog.truncate_table(name, check, wait))?;
        self.ok(sink, 0, String::new())
    }
}

impl Warnings {
    /// The collation that CHARACTER SET and COLLATE name; `None` if neither is given. Collations that columns do not
    /// have are replaced by the nearest, with a warning.
    ///
    /// # Errors
    /// 1115, 1253, 1273.
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
        let nearest = Collation::nearest(name);
        self.warn(
            codes::DEPRECATED_UTF8_ALIAS,
            format!("'{name}' is stored as '{}'", nearest.name()),
        );
        Ok(Some(nearest))
    }
}

fn has_unique_key(request: &CreateTable) -> bool {
    request.primary_key.is_some() || request.indexes.iter().any(|index| index.unique)
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
    if column.ty.long_bytes().is_some() {
        return Err(SqlError::blob_cannot_have_default(&column.name));
    }
    match to_column(column, value, mode) {
        // A definition is in UTC.
        Ok((Value::Timestamp(local), _)) => {
            let utc = mode.time_zone.utc(local);
            Ok(DefaultValue::Value(Value::Timestamp(utc)))
        }
        Ok((value, _)) => Ok(DefaultValue::Value(value)),
        Err(_) => Err(SqlError::invalid_default(&column.name)),
    }
}

/// Whether CURRENT_TIMESTAMP(digits) has fewer digits of a second than a column.
fn has_fewer_digits(expression: &ast::Expr, ty: &ColumnType) -> bool {
    if !ty.is_moment() {
        return false;
    }
    let ast::Expr::Function(function) = expression else {
        return false;
    };
    let ast::FunctionArguments::List(list) = &function.args else {
        return false;
    };
    let [ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Expr(digits))] = list.args.as_slice()
    else {
        return false;
    };
    let digits = number_digits(digits).and_then(|digits| digits.parse::<u8>().ok());
    digits.is_some_and(|digits| digits < ty.fraction_digits())
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

/// Errors 1059, 1103 and 1166 for names in a foreign key that are too long, whether or not there is what they name.
fn check_names_of_foreign_key(key: &parsed::ForeignKeyDefinition) -> Result<()> {
    let is_long = |name: &&String| name.chars().count() > MAX_NAME_CHARACTERS;
    let mut own = key.index.iter().chain(&key.table.database);
    if let Some(name) = own.find(is_long) {
        let name = name.clone();
        return Err(TableError::NameTooLong { name }.into());
    }
    if is_long(&&key.table.table) {
        let name = key.table.table.clone();
        return Err(TableError::IncorrectTableName { name }.into());
    }
    match key.referenced.iter().find(is_long) {
        Some(name) => Err(TableError::IncorrectColumnName { name: name.clone() }.into()),
        None => Ok(()),
    }
}

/// The request that makes an empty table like an existing one.
pub(crate) fn same_shape(
    definition: &TableDefinition,
    database: String,
    name: String,
) -> CreateTable {
    let specs = |parts: &[sheaf_table::IndexPart]| {
        let spec = |part: &sheaf_table::IndexPart| {
            let column = &definition.columns[part.column];
            IndexPartSpec {
                expression: column.hidden.then(|| Box::new(column.clone())),
                prefix_length: part.prefix_length,
                descending: part.descending,
                ..IndexPartSpec::column(column.name.as_str())
            }
        };
        parts.iter().map(spec).collect::<Vec<_>>()
    };
    CreateTable {
        database,
        name,
        columns: definition.named_columns().cloned().collect(),
        primary_key: (!definition.has_hidden_row_id()).then(|| specs(&definition.primary.parts)),
        indexes: definition
            .secondary
            .iter()
            .map(|index| IndexSpec {
                name: Some(index.name.clone()),
                parts: specs(&index.parts),
                unique: index.unique,
                comment: index.comment.clone(),
                invisible: index.invisible,
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
