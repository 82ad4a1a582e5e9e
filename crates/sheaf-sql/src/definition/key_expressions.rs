//! Key expressions: what a part of a key may be that is no column, and which type its values have.
//!
//! ```text
//!   KEY k ((lower(name)), (a + b))     hidden columns  varchar(20) AS (lower(`name`)),  bigint AS (`a` + `b`)
//! ```
//!
//! The values are those of a hidden generated column (`sheaf_table::definition::key_expression`). Its type is the one
//! that CREATE TABLE … SELECT would give, but as wide as the expression's own type, so that the column stands for the
//! expression in queries (`sheaf-frontend/src/bind/indexed_expressions.rs`). It is known when all columns are: those of
//! the statement, of its query, or of the table as ALTER TABLE leaves it. When a column changes that an expression
//! names, the hidden column gets its type anew.

use sheaf_frontend::error::NotKept;
use sheaf_frontend::parser::check_text::column_names;
use sheaf_frontend::varying::depends_on_time_zone;
use sheaf_table::schema::same_name;
use sheaf_table::{
    Alteration, Catalog, Column, GeneratedColumn, GeneratedKind, IndexPartSpec, IndexSpec, Table,
    TableDefinition, TableError,
};
use sheaf_types::ColumnType;
use sheaf_types::column_type::Sign;
use sheaf_types::error::codes;
use sqlparser::ast;

use crate::change::rules::generated_columns::is_row;
use crate::definition::comments::Commented;
use crate::dialect::SheafDialect;
use crate::error::{Result, SqlError};
use crate::parser::parse_expression;
use crate::parser::statement::{KeyDefinition, KeyExpression, KeyKind, KeyPart};
use crate::query::made_columns::key_expression_type;
use crate::query::row_evaluator::RowKind;
use crate::session::Session;

/// What messages call an index that is given no name.
const UNNAMED: &str = "functional_index";

impl Session {
    /// What a key asks for that is no primary key. Errors for expressions that it may not have.
    pub(super) fn index_spec(&mut self, key: &KeyDefinition) -> Result<IndexSpec> {
        let name = key.name.as_deref().unwrap_or(UNNAMED);
        // An index without a name has that of its first column.
        let of_column = key.parts.first().map(|part| part.column.as_str());
        let of_column = of_column.filter(|column| !column.is_empty());
        let shown = key.name.as_deref().or(of_column).unwrap_or(UNNAMED);
        let comment = self.kept_comment(&key.comment, Commented::Index(shown))?;
        let parts = key.parts.iter().map(|part| self.part_spec(name, part));
        Ok(IndexSpec {
            name: key.name.clone(),
            parts: parts.collect::<Result<_>>()?,
            unique: key.kind == KeyKind::Unique,
            comment,
            invisible: key.invisible,
        })
    }

    fn part_spec(&self, index: &str, part: &KeyPart) -> Result<IndexPartSpec> {
        let expression = match &part.expression {
            Some(expression) => Some(Box::new(self.untyped_column(index, expression)?)),
            None => None,
        };
        Ok(IndexPartSpec {
            column: part.column.clone(),
            expression,
            prefix_length: part.prefix_length,
            descending: part.descending,
        })
    }

    /// The hidden column of an expression, whose type is still to come.
    ///
    /// # Errors
    /// 3762 for a column alone, 3758, 3772 and 3800 for what the expression may not be or contain, 1235 for one whose
    /// values only a session knows.
    fn untyped_column(&self, index: &str, written: &KeyExpression) -> Result<Column> {
        let expression = &written.expression;
        if is_column(expression) {
            return Err(SqlError::new(
                codes::FUNCTIONAL_INDEX_ON_FIELD,
                "Functional index on a column is not supported. Consider using a regular index instead.",
            ));
        }
        match NotKept::of_generated(expression) {
            None => {}
            Some(NotKept::Query | NotKept::Function(_)) => {
                return Err(SqlError::new(
                    codes::FUNCTIONAL_INDEX_FUNCTION_IS_NOT_ALLOWED,
                    format!(
                        "Expression of functional index '{index}' contains a disallowed function."
                    ),
                ));
            }
            Some(NotKept::Variable) => {
                return Err(SqlError::new(
                    codes::DEFAULT_VAL_GENERATED_VARIABLES,
                    format!(
                        "Default value expression of column '{index}' cannot refer user or system variables."
                    ),
                ));
            }
        }
        if is_row(expression) {
            return Err(SqlError::new(
                codes::FUNCTIONAL_INDEX_ROW_VALUE_IS_NOT_ALLOWED,
                format!("Expression of functional index '{index}' cannot refer to a row value."),
            ));
        }
        if depends_on_time_zone(expression) {
            return Err(SqlError::not_supported_yet(
                "FROM_UNIXTIME in a functional key part",
            ));
        }
        self.check_meaning("functional key parts", &written.text)?;
        let ty = ColumnType::bigint(Sign::Signed);
        Ok(Column {
            generated: Some(GeneratedColumn {
                expression: written.text.clone(),
                columns: column_names(expression),
                kind: GeneratedKind::Virtual,
            }),
            invisible: true,
            hidden: true,
            ..Column::new("", ty, true)
        })
    }

    /// Gives the expressions of indexes their types, over the columns that the table is going to have.
    pub(crate) fn type_key_expressions(
        &self,
        table: &str,
        columns: &[Column],
        indexes: &mut [IndexSpec],
    ) -> Result<()> {
        for spec in indexes {
            let index = spec.name.as_deref().unwrap_or(UNNAMED);
            for column in spec
                .parts
                .iter_mut()
                .filter_map(|part| part.expression.as_mut())
            {
                **column = self.typed_column(table, (index, column.as_ref()), columns)?;
            }
        }
        Ok(())
    }

    /// Gives types to expressions of new indexes, and of those there are whose columns change.
    pub(super) fn type_altered_key_expressions(
        &self,
        current: &Table,
        alterations: &mut Vec<Alteration>,
    ) -> Result<()> {
        let has_expression = |alteration: &Alteration| match alteration {
            Alteration::AddIndex(spec) => spec.parts.iter().any(|part| part.expression.is_some()),
            _ => false,
        };
        let definition = &current.definition;
        if !definition.has_key_expressions() && !alterations.iter().any(has_expression) {
            return Ok(());
        }
        let others = alterations.iter().filter(|change| !has_expression(change));
        let others: Vec<Alteration> = others.cloned().collect();
        let (next, _) = Catalog::altered_definition(current, &others)?;
        let table = definition.name.as_str();
        for alteration in alterations.iter_mut() {
            if let Alteration::AddIndex(spec) = alteration {
                self.type_key_expressions(table, &next.columns, std::slice::from_mut(spec))?;
            }
        }
        for (position, column) in definition.columns.iter().enumerate() {
            if !column.hidden || !names_changed(column, definition, &next) {
                continue;
            }
            let index = definition.index_of_expression(position);
            let index = index.map_or(UNNAMED, |index| index.name.as_str());
            let typed = self.typed_column(table, (index, column), &next.columns)?;
            alterations.push(Alteration::KeyExpressionType {
                column: position,
                ty: typed.ty,
                nullable: typed.nullable,
            });
        }
        Ok(())
    }

    /// The hidden column with the type of its expression over these columns.
    ///
    /// # Errors
    /// 1054 for an unknown column, 3754 for one whose values the server gives out, 3753, 3757 and 3761 for values that
    /// no index has, 1235 for values that follow a time zone or the present day; others as for a query.
    fn typed_column(
        &self,
        table: &str,
        (index, column): (&str, &Column),
        columns: &[Column],
    ) -> Result<Column> {
        let Some(generated) = &column.generated else {
            return Err(SqlError::unknown("a key expression without an expression"));
        };
        for name in &generated.columns {
            let mut others = columns.iter().filter(|other| !other.hidden);
            let named = others.find(|other| same_name(&other.name, name));
            let named = named.ok_or_else(|| SqlError::bad_field(name, "functional index"))?;
            if named.auto_increment {
                return Err(SqlError::new(
                    codes::FUNCTIONAL_INDEX_REF_AUTO_INCREMENT,
                    format!("Functional index '{index}' cannot refer to an auto-increment column."),
                ));
            }
            if named.ty.follows_time_zone() {
                return Err(SqlError::not_supported_yet(
                    "functional key parts that name a TIMESTAMP",
                ));
            }
        }
        let expression = parse_expression(&generated.expression, &SheafDialect::default())?;
        let item = ast::SelectItem::ExprWithAlias {
            expr: expression.clone(),
            alias: ast::Ident::with_quote('`', "key"),
        };
        let names = columns.iter().filter(|other| generated.names(&other.name));
        let kind = RowKind {
            name: table,
            columns: &names.cloned().collect::<Vec<Column>>(),
        };
        let (field, extent) = self.type_over_rows(item, &kind, &self.kept_expression())?;
        let (ty, nullable) = key_expression_type(&field, extent, &expression);
        if ty.is_json() {
            return Err(SqlError::new(
                codes::FUNCTIONAL_INDEX_ON_JSON_OR_GEOMETRY_FUNCTION,
                "Cannot create a functional index on a function that returns a JSON or GEOMETRY value.",
            ));
        }
        if ty.is_long() {
            return Err(SqlError::new(
                codes::FUNCTIONAL_INDEX_ON_LOB,
                "Cannot create a functional index on an expression that returns a BLOB or TEXT. Please consider using CAST.",
            ));
        }
        if ty.is_binary() && ty.is_varying() && ty.declared_length() == Some(0) {
            return Err(SqlError::new(
                codes::WRONG_KEY_COLUMN_FUNCTIONAL_INDEX,
                format!(
                    "The used storage engine cannot index the expression '{}'.",
                    generated.expression
                ),
            ));
        }
        let typed = Column {
            ty,
            nullable,
            ..column.clone()
        };
        // Whether its values are the same on every day.
        let others = columns.iter().filter(|other| !other.hidden);
        let all: Vec<Column> = others.chain(std::iter::once(&typed)).cloned().collect();
        self.try_generated(table, &all)?;
        Ok(typed)
    }
}

/// The parts of a primary key. Error 3522 if it is to be invisible, 3756 if a part is an expression.
pub(super) fn primary_specs(key: &KeyDefinition) -> Result<Vec<IndexPartSpec>> {
    if key.parts.iter().any(|part| part.expression.is_some()) {
        return Err(SqlError::new(
            codes::FUNCTIONAL_INDEX_PRIMARY_KEY,
            "The primary key cannot be a functional index",
        ));
    }
    if key.invisible {
        return Err(TableError::InvisiblePrimaryKey.into());
    }
    let spec = |part: &KeyPart| IndexPartSpec {
        prefix_length: part.prefix_length,
        descending: part.descending,
        ..IndexPartSpec::column(part.column.as_str())
    };
    Ok(key.parts.iter().map(spec).collect())
}

/// Whether an expression is a column and nothing else.
fn is_column(expression: &ast::Expr) -> bool {
    match expression {
        ast::Expr::Nested(inner)
        | ast::Expr::UnaryOp {
            op: ast::UnaryOperator::Plus,
            expr: inner,
        } => is_column(inner),
        ast::Expr::Identifier(name) => !name.value.starts_with('@'),
        ast::Expr::CompoundIdentifier(parts) => !parts[0].value.starts_with('@'),
        _ => false,
    }
}

/// Whether a hidden column stays that names columns which are others now.
fn names_changed(column: &Column, old: &TableDefinition, next: &TableDefinition) -> bool {
    let mut hidden = next.columns.iter().filter(|other| other.hidden);
    let stays = hidden.any(|other| other.name == column.name);
    let is_other = |name: &String| {
        let [old, next] = [old, next].map(|table| {
            let column = &table.columns[table.column_position(name)?];
            Some((&column.ty, column.nullable, column.auto_increment))
        });
        old != next
    };
    let mut generated = column.generated.iter();
    stays && generated.any(|generated| generated.columns.iter().any(is_other))
}
