//! Expressions over rows that are not read but at hand: the row that an INSERT conflicts with and the row that it
//! brings, or the rows that RETURNING shows.
//!
//! The expressions are bound as the select list of a query over tables, one for each kind of row, so that they mean
//! what they mean in a query. There are no operators: only the list is computed, over the rows as they come.
//!
//! ```text
//!   ON DUPLICATE KEY UPDATE n = n + VALUES(n)
//!   SELECT old.n + new.n FROM old, new     ->     evaluate(old row | new row) = [sum]
//! ```

use std::any::Any;
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef};
use datafusion_common::config::ConfigOptions;
use datafusion_physical_expr::PhysicalExpr;
use sheaf_access::arrow_field;
use sheaf_algebra::Scalar;
use sheaf_algebra::scalar::physical::Batches;
use sheaf_exec::value_array::array_of;
use sheaf_memory::kept_by;
use sheaf_table::{Column, Table};
use sheaf_types::Value;
use sqlparser::ast;

use crate::error::{Result, SqlError};
use crate::parser::Parsed;
use crate::query::rows::value_at;
use crate::query::value_extent::{Extent, extent_over_rows, text_lengths_over_rows};
use crate::session::Session;
use crate::session::circumstances::Circumstances;
use crate::session::result::ColumnMeta;
use sheaf_frontend::bind::over_rows::{OverRows, over_rows, position_of};
use sheaf_frontend::query::{Listed, QueryContext, SessionValues};

/// One kind of row: the name that its columns are qualified with, and the columns.
pub(crate) struct RowKind<'a> {
    pub(crate) name: &'a str,
    pub(crate) columns: &'a [Column],
}

/// See the module's comment.
pub(crate) struct RowEvaluator {
    schema: SchemaRef,
    /// Columns of all kinds, one after the other.
    columns: Vec<Column>,
    expressions: Vec<Arc<dyn PhysicalExpr>>,
    /// How the results are described to a client.
    pub(crate) metas: Vec<ColumnMeta>,
}

impl RowEvaluator {
    /// What is computed, spelled out: functions and constants, without the metadata of fields, which has no order.
    pub(crate) fn text(&self) -> String {
        let texts: Vec<String> = self.expressions.iter().map(ToString::to_string).collect();
        texts.join(", ")
    }

    /// Whether the first result is a TIME.
    pub(crate) fn gives_time(&self) -> bool {
        let ty = self.expressions[0].data_type(&self.schema);
        ty.is_ok_and(|ty| matches!(ty, DataType::Duration(_)))
    }
}

/// Expressions that are planned over rows at hand.
pub(crate) struct PlannedExpressions {
    /// The columns of all kinds of rows, one after the other.
    pub(crate) schema: SchemaRef,
    pub(crate) expressions: Vec<Arc<dyn PhysicalExpr>>,
    /// What all has to be true of a row.
    pub(crate) conjuncts: Vec<Arc<dyn PhysicalExpr>>,
    bound: OverRows,
}

impl PlannedExpressions {
    /// The results in Arrow. They may be NULL where a plan says so: a client is told the same of both.
    pub(crate) fn fields(&self) -> Result<Vec<FieldRef>> {
        let items = self.bound.items.iter().zip(&self.expressions);
        let fields = items.map(|(item, expression)| {
            let field = item.field();
            let nullable = field.is_nullable() || expression.nullable(&self.schema)?;
            Ok(match nullable == field.is_nullable() {
                true => field,
                false => Arc::new(field.as_ref().clone().with_nullable(nullable)),
            })
        });
        fields.collect()
    }
}

impl Session {
    /// What `plan` plans of expressions of a table, or what it has planned before. `is_strict`: values that
    /// do not fit are errors in the statement.
    pub(crate) fn planned_of<T: Any + Send + Sync>(
        &self,
        table: &Arc<Table>,
        is_strict: bool,
        plan: impl FnOnce() -> Result<T>,
    ) -> Result<Arc<T>> {
        let (known, findings) = (&self.table_expressions, &self.findings.truncated_texts);
        let of_table = (table, is_strict);
        let holds = |circumstances: &Circumstances| self.is_still_under(circumstances);
        if let Some((planned, noted)) = known.find(holds, of_table)
            && findings.note_again(&noted)
        {
            return Ok(planned);
        }
        let noted_before = findings.messages();
        let (planned, bytes) = kept_by(plan);
        let planned = Arc::new(planned?);
        let noted = findings.messages_after(noted_before);
        let kept = (Arc::clone(&planned), noted);
        known.keep(|| self.circumstances_of_day(), of_table, kept, bytes);
        Ok(planned)
    }
}

/// A list of expressions, a condition, and the text that they were parsed from.
type ListAndCondition<'a> = Parsed<'a, (Vec<ast::SelectItem>, Option<ast::Expr>)>;

impl Session {
    /// Plans expressions over rows. Errors as for a query; 1235 for a subquery.
    pub(crate) fn row_evaluator(
        &self,
        items: Parsed<'_, Vec<ast::SelectItem>>,
        kinds: &[RowKind<'_>],
    ) -> Result<RowEvaluator> {
        self.row_evaluator_as(items, kinds, self)
    }

    /// As [`Self::row_evaluator`], bound with what `values` says of the session.
    pub(crate) fn row_evaluator_as(
        &self,
        items: Parsed<'_, Vec<ast::SelectItem>>,
        kinds: &[RowKind<'_>],
        values: &dyn SessionValues,
    ) -> Result<RowEvaluator> {
        let schema_of = |kind: &RowKind<'_>| Arc::new(Schema::new(fields(kind.columns)));
        let schemas: Vec<(&str, SchemaRef)> = kinds
            .iter()
            .map(|kind| (kind.name, schema_of(kind)))
            .collect();
        let Parsed { ast: items, text } = items;
        let planned = self.plan_as(Parsed::new((items, None), text), &schemas, values)?;
        let metas = self.metas_of(&planned, true)?;
        Ok(RowEvaluator {
            schema: planned.schema,
            columns: kinds
                .iter()
                .flat_map(|kind| kind.columns.iter().cloned())
                .collect(),
            expressions: planned.expressions,
            metas,
        })
    }

    /// The type of an expression over rows of one kind, and how long its values can be.
    pub(crate) fn type_over_rows(
        &self,
        item: ast::SelectItem,
        kind: &RowKind<'_>,
        values: &dyn SessionValues,
    ) -> Result<(FieldRef, Option<Extent>)> {
        let fields: Vec<Field> = kind.columns.iter().map(arrow_field).collect();
        let schema = Arc::new(Schema::new(fields));
        let expressions = Parsed::new((vec![item], None), "");
        let bound =
            self.bind_over_rows(expressions, &[(kind.name, Arc::clone(&schema))], values)?;
        let Some(item) = bound.items.first() else {
            return Err(SqlError::unknown("an expression that is nothing"));
        };
        let position = |id| Some(position_of(id));
        let extent = extent_over_rows(&item.value, (&schema, &position));
        Ok((item.field(), extent))
    }

    /// Plans expressions, and a condition, over kinds of rows with their names.
    pub(crate) fn plan_over_rows(
        &self,
        expressions: ListAndCondition<'_>,
        kinds: &[(&str, SchemaRef)],
    ) -> Result<PlannedExpressions> {
        self.plan_as(expressions, kinds, self)
    }

    fn plan_as(
        &self,
        expressions: ListAndCondition<'_>,
        kinds: &[(&str, SchemaRef)],
        values: &dyn SessionValues,
    ) -> Result<PlannedExpressions> {
        let bound = self.bind_over_rows(expressions, kinds, values)?;
        let schema = schema_of(kinds);
        let batches = Batches {
            schema: &schema,
            position: &|id| Some(position_of(id)).filter(|at| *at < schema.fields().len()),
            options: &self.function_options(),
        };
        let items = bound.items.iter();
        let expressions = items.map(|item| batches.expression(&item.value));
        let expressions = expressions.collect::<std::result::Result<_, _>>()?;
        let conjuncts = bound.condition.iter().flat_map(Scalar::conjuncts);
        let conjuncts = conjuncts.map(|conjunct| batches.condition(conjunct));
        Ok(PlannedExpressions {
            expressions,
            conjuncts: conjuncts.collect::<std::result::Result<_, _>>()?,
            schema,
            bound,
        })
    }

    /// How a client is told of what was planned, if it `is_told`: what is only stored has no lengths.
    pub(crate) fn metas_of(
        &self,
        planned: &PlannedExpressions,
        is_told: bool,
    ) -> Result<Vec<ColumnMeta>> {
        let items = &planned.bound.items;
        let values = items.iter().map(|item| &item.value);
        let position = |id| Some(position_of(id));
        let lengths = match is_told {
            true => text_lengths_over_rows(values, (&planned.schema, &position)),
            false => vec![None; items.len()],
        };
        let items = items.iter().zip(planned.fields()?).zip(lengths);
        let metas =
            items.map(|((item, field), length)| self.column_of(&field, &item.header, length));
        Ok(metas.collect())
    }

    fn bind_over_rows(
        &self,
        expressions: ListAndCondition<'_>,
        kinds: &[(&str, SchemaRef)],
        values: &dyn SessionValues,
    ) -> Result<OverRows> {
        let Parsed {
            ast: (items, condition),
            text,
        } = expressions;
        let context = QueryContext {
            sql: text,
            tables: self.table_names(),
            session: values,
            parameters: &[],
            virtual_tables: &|_: &str, _: &str, _| Ok(None),
            rights: None,
            listed: Listed::Values,
            notes: None,
            is_over_rows: false,
            locked: None,
        };
        over_rows(items, condition.as_ref(), kinds, &context)
    }

    /// What functions are told that are computed without a plan: what operators of the session are told, if there have
    /// been some.
    pub(crate) fn function_options(&self) -> Arc<ConfigOptions> {
        if let Some(task) = self.workers.task() {
            return Arc::clone(task.session_config().options());
        }
        let mut options = ConfigOptions::default();
        options.extensions.insert(self.result_limits());
        Arc::new(options)
    }
}

/// The columns of all kinds of rows.
fn schema_of(kinds: &[(&str, SchemaRef)]) -> SchemaRef {
    match kinds {
        [(_, only)] => Arc::clone(only),
        kinds => {
            let fields = kinds
                .iter()
                .flat_map(|(_, schema)| schema.fields().iter().cloned());
            Arc::new(Schema::new(fields.collect::<Vec<FieldRef>>()))
        }
    }
}

/// The columns as Arrow fields. All may be NULL: a row that is being made has no value yet where one is given out.
fn fields(columns: &[Column]) -> Vec<Field> {
    columns
        .iter()
        .map(|column| arrow_field(column).with_nullable(true))
        .collect()
}

pub(crate) fn table_of(name: &str) -> ast::TableWithJoins {
    ast::TableWithJoins {
        relation: ast::TableFactor::Table {
            // The database only keeps the name from being looked up in the current one.
            name: ast::ObjectName::from(vec![
                ast::Ident::with_quote('`', ""),
                ast::Ident::with_quote('`', name),
            ]),
            alias: None,
            args: None,
            with_hints: Vec::new(),
            version: None,
            with_ordinality: false,
            partitions: Vec::new(),
            json_path: None,
            sample: None,
            index_hints: Vec::new(),
        },
        joins: Vec::new(),
    }
}

impl RowEvaluator {
    /// The values of one expression for one row of each kind, given one after the other.
    pub(crate) fn value<'v>(
        &self,
        expression: usize,
        row: impl Iterator<Item = &'v Value>,
    ) -> Result<Value> {
        let batch = self.batch_of_row(row)?;
        value_at(self.evaluate(expression, &batch)?.as_ref(), 0)
    }

    /// One row of each kind, given one after the other.
    pub(crate) fn batch_of_row<'v>(
        &self,
        row: impl Iterator<Item = &'v Value>,
    ) -> Result<RecordBatch> {
        let values: Vec<[&Value; 1]> = row.map(|value| [value]).collect();
        let columns: Vec<&[&Value]> = values.iter().map(|value| value.as_slice()).collect();
        self.batch(&columns, 1)
    }

    /// The results for many rows of the only kind.
    pub(crate) fn results(&self, rows: &[Vec<Value>]) -> Result<RecordBatch> {
        let columns: Vec<Vec<&Value>> = (0..self.columns.len())
            .map(|column| rows.iter().map(|row| &row[column]).collect())
            .collect();
        let columns: Vec<&[&Value]> = columns.iter().map(Vec::as_slice).collect();
        let batch = self.batch(&columns, rows.len())?;
        let arrays = (0..self.expressions.len())
            .map(|expression| self.evaluate(expression, &batch))
            .collect::<Result<Vec<_>>>()?;
        let fields: Vec<Field> = self
            .expressions
            .iter()
            .zip(&arrays)
            .enumerate()
            .map(|(n, (expression, array))| {
                let name = format!("{n}");
                match expression.return_field(&self.schema) {
                    Ok(field) => field.as_ref().clone().with_name(name).with_nullable(true),
                    Err(_) => Field::new(name, array.data_type().clone(), true),
                }
            })
            .collect();
        let options = RecordBatchOptions::new().with_row_count(Some(rows.len()));
        let schema = Arc::new(Schema::new(fields));
        Ok(RecordBatch::try_new_with_options(schema, arrays, &options)?)
    }

    /// The values of one expression for the rows of a batch.
    pub(crate) fn evaluate(&self, expression: usize, batch: &RecordBatch) -> Result<ArrayRef> {
        let expression = &self.expressions[expression];
        let value = expression.evaluate(batch)?;
        Ok(value.into_array(batch.num_rows())?)
    }

    /// Rows, given column by column.
    pub(crate) fn batch(&self, columns: &[&[&Value]], rows: usize) -> Result<RecordBatch> {
        let arrays = self
            .columns
            .iter()
            .zip(columns)
            .map(|(column, values)| Ok(array_of(&column.ty, values)?))
            .collect::<Result<Vec<_>>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        let schema = Arc::clone(&self.schema);
        Ok(RecordBatch::try_new_with_options(schema, arrays, &options)?)
    }
}
