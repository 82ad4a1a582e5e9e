//! JSON_TABLE: a document, which may be computed of the tables before it in the FROM, and the columns of its rows.
//!
//! ```text
//!   t, JSON_TABLE(t.j, '$[*]' COLUMNS (n FOR ORDINALITY, v INT PATH '$.v')) AS x
//!
//!   -->   t inner dependent join (expand t.j of unit)
//! ```

use std::sync::Arc;

use sheaf_algebra::relation::Expand;
use sheaf_algebra::{ColumnId, Relation, Scalar};
use sheaf_exec::functions::types::SqlType;
use sheaf_exec::json_table::{JsonTable, JsonTableColumn, assigned};
use sheaf_types::column_type::{MAX_VARBINARY_LENGTH, Sign};
use sheaf_types::error::codes;
use sheaf_types::json::table::{Column, Level, Otherwise, ValueColumn};
use sheaf_types::json::{Document, JsonError, Path, text};
use sheaf_types::{Collation, ColumnType};
use sqlparser::ast::{
    DataType, Expr, JsonTableColumn as Written, JsonTableColumnErrorHandling, JsonTableNamedColumn,
    Value as Literal, ValueWithSpan,
};

use super::block::{Block, Clause};
use super::character_set::BINARY;
use super::from::visible;
use super::scope::{Scope, ScopeColumn, TableName};
use super::{Binder, Bound};
use crate::character_sets::{character_set_of, has_other_bytes, named_collation};
use crate::error::SqlError;
use crate::parser::column_type;
use crate::parser::statement::TypeName;
use crate::syntax::{is_same, object_text};

/// The name of the function in errors.
const NAME: &str = "JSON_TABLE";

/// Levels of columns, the outermost among them. MySQL has as many, and says that they are one more.
const MAX_LEVELS: usize = 15;

impl Binder<'_> {
    /// The document, a JSON value. It may name columns of the tables before.
    pub(super) fn document_of_table(&mut self, expr: &Expr, before: &[&Scope]) -> Bound<Scalar> {
        let blocks = self.blocks.len();
        let mut block = Block::new(visible(before)?);
        block.clause = Clause::TableFunction;
        self.blocks.push(block);
        let document = self.value(expr);
        let has_subqueries = self.block().is_ok_and(|block| !block.pending.is_empty());
        self.blocks.truncate(blocks);
        let document = document?;
        if has_subqueries {
            return Err(SqlError::wrong_arguments(NAME));
        }
        match document.sql_type() {
            SqlType::Json => Ok(document),
            _ => self.call("$json_table", vec![document]),
        }
    }

    /// `rows`: the path, and what stands in COLUMNS.
    pub(super) fn json_table(
        &mut self,
        alias: &str,
        document: Scalar,
        rows: (&ValueWithSpan, &[Written]),
    ) -> Bound<(Relation, Scope)> {
        self.count_block()?;
        let mut reading = Reading {
            alias,
            collation: self.collation(),
            columns: Vec::new(),
            levels: 0,
            defaults: Vec::new(),
        };
        let (path, written) = rows;
        let level = reading.level(path, written)?;
        reading.check_defaults()?;
        let Reading {
            columns, collation, ..
        } = reading;
        let text: Vec<String> = written.iter().map(ToString::to_string).collect();
        let table = JsonTable {
            name: alias.to_string(),
            rows: level,
            columns,
            text: format!("{path} {} {}", text.join(", "), collation.name()),
        };
        let name = Arc::new(TableName {
            alias: alias.to_string(),
            ..TableName::default()
        });
        let mut scope_columns: Vec<ScopeColumn> = Vec::with_capacity(table.columns.len());
        for column in &table.columns {
            let field = Arc::new(column.field());
            scope_columns.push(ScopeColumn {
                id: self.columns.add_computed(&column.name, Arc::clone(&field)),
                name: column.name.clone(),
                field,
                may_be_missing: false,
                invisible: false,
                table: Arc::clone(&name),
            });
        }
        let columns: Vec<ColumnId> = scope_columns.iter().map(|column| column.id).collect();
        let expand = Expand {
            input: Box::new(Relation::unit()),
            document,
            table: Arc::new(table),
            kept: Vec::new(),
            columns,
            keeps_rows: false,
        };
        Ok((expand.relation(), Scope::of_table(name, scope_columns)))
    }
}

/// The columns while they are read.
struct Reading<'a> {
    /// Of the table.
    alias: &'a str,
    collation: Collation,
    /// Those so far, in the order of the cells of a row.
    columns: Vec<JsonTableColumn>,
    levels: usize,
    /// Each with the name and the type of its column.
    defaults: Vec<(String, ColumnType, Document)>,
}

impl Reading<'_> {
    fn level(&mut self, path: &ValueWithSpan, written: &[Written]) -> Bound<Level> {
        self.levels += 1;
        if self.levels > MAX_LEVELS {
            let (most, alias) = (MAX_LEVELS + 1, self.alias);
            let text = format!(
                "More than supported {most} NESTED PATHs were found in JSON_TABLE '{alias}'"
            );
            return Err(SqlError::new(codes::JSON_TABLE_TOO_MANY_NESTED_PATHS, text));
        }
        let path = path_of(path)?;
        let columns = written.iter().map(|column| self.column(column));
        let columns = columns.collect::<Bound<_>>()?;
        Ok(Level { path, columns })
    }

    fn column(&mut self, written: &Written) -> Bound<Column> {
        match written {
            Written::ForOrdinality(name) => {
                let ty = ColumnType::bigint(Sign::Signed);
                self.add(&name.value, ty, Otherwise::Null)?;
                Ok(Column::Ordinality)
            }
            Written::Nested(nested) => {
                Ok(Column::Nested(self.level(&nested.path, &nested.columns)?))
            }
            Written::Named(named) => self.named(named),
        }
    }

    fn named(&mut self, named: &JsonTableNamedColumn) -> Bound<Column> {
        let name = &named.name.value;
        let ty = self.type_of(name, &named.r#type)?;
        let path = path_of(&named.path)?;
        // ON EMPTY and ON ERROR say nothing then, as in MySQL.
        if named.exists {
            self.add(name, ty, Otherwise::Null)?;
            return Ok(Column::Exists(path));
        }
        let on_empty = otherwise(name, &ty, named.on_empty.as_ref())?;
        let on_error = otherwise(name, &ty, named.on_error.as_ref())?;
        for otherwise in [&on_empty, &on_error] {
            if let Otherwise::Default(default) = otherwise {
                let default = (name.clone(), ty.clone(), default.clone());
                self.defaults.push(default);
            }
        }
        let is_json = ty.is_json();
        self.add(name, ty, on_error.clone())?;
        Ok(Column::Value(ValueColumn {
            name: name.clone(),
            path,
            is_json,
            on_empty,
            on_error,
        }))
    }

    /// The parser has made one name of what is written.
    fn type_of(&self, name: &str, data_type: &DataType) -> Bound<ColumnType> {
        let written = match data_type {
            DataType::Custom(written, _) => object_text(written),
            other => other.to_string(),
        };
        let written = column_type(&written, name)?;
        let collation = self.collation_of(&written)?;
        let most = MAX_VARBINARY_LENGTH / collation.character_bytes();
        let is_varchar = written.ty.is_short_text() && written.ty.is_varying();
        if is_varchar && written.ty.declared_length() > Some(most) {
            return Err(SqlError::too_big_field_length(name, most.into()));
        }
        match written.ty.collation() {
            Some(_) => Ok(written.in_collation(collation)),
            // A number is unsigned by ZEROFILL, and has no zeros.
            None => Ok(written.ty.without_zerofill()),
        }
    }

    /// The collation that a type names, and otherwise that of the connection.
    ///
    /// # Errors
    /// 1115, 1253 and 1273; 1235 for character sets whose texts are stored as UTF-8, but have other characters.
    fn collation_of(&self, written: &TypeName) -> Bound<Collation> {
        let (set, name) = (&written.character_set, &written.collation);
        let Some(named) = named_collation(set.as_deref(), name.as_deref())? else {
            return Ok(self.collation);
        };
        let set = character_set_of(named);
        if written.ty.collation().is_some() && has_other_bytes(set) {
            return Err(SqlError::not_supported_yet(format!(
                "CHARACTER SET {set} for a column of JSON_TABLE"
            )));
        }
        let has_bytes = written.ty.is_json() || written.ty.is_binary();
        match Collation::parse(named) {
            Some(Collation::Binary) => Ok(Collation::Binary),
            _ if has_bytes => Err(SqlError::collation_of_other_character_set(named, "binary")),
            _ if written.binary && name.is_none() => Ok(Collation::Utf8mb4_bin),
            Some(collation) => Ok(collation),
            None => Ok(Collation::nearest(named)),
        }
    }

    /// Columns have to hold their defaults. That is looked at when all of them have been read.
    fn check_defaults(&self) -> Bound<()> {
        for (column, ty, default) in &self.defaults {
            assigned(column, ty, default.as_json()).map_err(|error| wrong(&error))?;
        }
        Ok(())
    }

    /// Error 1060 for a name that another column has, at whatever level.
    fn add(&mut self, name: &str, ty: ColumnType, on_error: Otherwise) -> Bound<()> {
        if self
            .columns
            .iter()
            .any(|column| is_same(&column.name, name))
        {
            return Err(SqlError::duplicate_field_name(name));
        }
        self.columns.push(JsonTableColumn {
            name: name.to_string(),
            ty,
            on_error,
        });
        Ok(())
    }
}

/// A text between quotes; `None` for any other literal.
fn text_of(literal: &ValueWithSpan) -> Option<&str> {
    match &literal.value {
        Literal::SingleQuotedString(text)
        | Literal::DoubleQuotedString(text)
        | Literal::NationalStringLiteral(text) => Some(text),
        _ => None,
    }
}

fn path_of(literal: &ValueWithSpan) -> Bound<Path> {
    let Some(text) = text_of(literal) else {
        return Err(SqlError::parse_error(&literal.to_string(), 1));
    };
    Path::parse(text).map_err(|error| wrong(&error))
}

/// ON EMPTY or ON ERROR. A default is a JSON text.
fn otherwise(
    column: &str,
    ty: &ColumnType,
    written: Option<&JsonTableColumnErrorHandling>,
) -> Bound<Otherwise> {
    let default = match written {
        None | Some(JsonTableColumnErrorHandling::Null) => return Ok(Otherwise::Null),
        Some(JsonTableColumnErrorHandling::Error) => return Ok(Otherwise::Error),
        Some(JsonTableColumnErrorHandling::Default(default)) => default,
    };
    // The parser lets strings and bytes pass.
    let Some(default) = text_of(default) else {
        return Err(wrong(&JsonError::CharacterSet {
            character_set: BINARY.to_string(),
        }));
    };
    let document: Document =
        text::read(default).map_err(|problem| wrong(&problem.in_argument(1, NAME)))?;
    let json = document.as_json();
    if json.nesting() > 0 && !ty.is_json() {
        return Err(SqlError::invalid_default(column));
    }
    Ok(Otherwise::Default(document))
}

fn wrong(error: &JsonError) -> SqlError {
    SqlError::new(error.code(), error.to_string())
}
