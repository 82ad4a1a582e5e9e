//! Expressions over rows that are not read but at hand: the row that an INSERT conflicts with and the row that it
//! brings, or the rows that RETURNING shows.
//!
//! The expressions are planned as the select list of a query over tables in memory, one for each kind of row, so that
//! they mean what they mean in a query. Then only the list is kept, and evaluated over the rows as they come.
//!
//! ```text
//!   ON DUPLICATE KEY UPDATE n = n + VALUES(n)
//!   SELECT old.n + new.n FROM old, new     ->     evaluate(old row | new row) = [sum]
//! ```

use std::sync::Arc;

use arrow::array::{
    ArrayRef, BinaryArray, Date32Array, Decimal128Array, DurationMicrosecondArray, Float32Array,
    Float64Array, Int8Array, Int16Array, Int32Array, Int64Array, RecordBatch, RecordBatchOptions,
    StringViewArray, TimestampMicrosecondArray, UInt8Array, UInt16Array, UInt32Array, UInt64Array,
};
use arrow::datatypes::{Field, FieldRef, Schema, SchemaRef};
use datafusion_common::DFSchema;
use datafusion_common::config::ConfigOptions;
use datafusion_common::tree_node::TreeNode;
use datafusion_expr::execution_props::ExecutionProps;
use datafusion_expr::physical_planning_context::PhysicalPlanningContext;
use datafusion_expr::{Expr, LogicalPlan, TableSource};
use datafusion_physical_expr::{PhysicalExpr, create_physical_expr};
use sheaf_access::arrow_field;
use sheaf_exec::MemoryTableSource;
use sheaf_optimizer::with_coerced_types;
use sheaf_table::Column;
use sheaf_types::{ColumnType, Value};
use sqlparser::ast;

use crate::error::{Result, SqlError};
use crate::parser::Parsed;
use crate::query::rows::value_at;
use crate::query::values::select_of_items;
use crate::session::Session;
use crate::session::result::ColumnMeta;
use sheaf_frontend::bind::logical_plan;
use sheaf_frontend::query::{Listed, QueryContext};

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

/// Expressions that are planned over rows at hand.
pub(crate) struct PlannedExpressions {
    /// The columns of all kinds of rows, one after the other.
    pub(crate) schema: SchemaRef,
    pub(crate) expressions: Vec<Arc<dyn PhysicalExpr>>,
    pub(crate) condition: Option<Arc<dyn PhysicalExpr>>,
    /// How the results are described to a client, and in Arrow.
    pub(crate) metas: Vec<ColumnMeta>,
    pub(crate) fields: Vec<FieldRef>,
}

impl Session {
    /// Plans expressions over rows. Errors as for a query; 1235 for a subquery.
    pub(crate) fn row_evaluator(
        &self,
        items: Parsed<'_, Vec<ast::SelectItem>>,
        kinds: &[RowKind<'_>],
    ) -> Result<RowEvaluator> {
        let schema_of = |kind: &RowKind<'_>| Arc::new(Schema::new(fields(kind.columns)));
        let schemas: Vec<(&str, SchemaRef)> = kinds
            .iter()
            .map(|kind| (kind.name, schema_of(kind)))
            .collect();
        let Parsed { ast: items, text } = items;
        let planned = self.plan_over_rows(Parsed::new((items, None), text), &schemas)?;
        Ok(RowEvaluator {
            schema: planned.schema,
            columns: kinds
                .iter()
                .flat_map(|kind| kind.columns.iter().cloned())
                .collect(),
            expressions: planned.expressions,
            metas: planned.metas,
        })
    }

    /// Plans expressions, and a condition, over kinds of rows with their names.
    pub(crate) fn plan_over_rows(
        &self,
        expressions: Parsed<'_, (Vec<ast::SelectItem>, Option<ast::Expr>)>,
        kinds: &[(&str, SchemaRef)],
    ) -> Result<PlannedExpressions> {
        let Parsed {
            ast: (items, condition),
            text,
        } = expressions;
        let mut query = select_of_items(items)?;
        if let ast::SetExpr::Select(select) = query.body.as_mut() {
            select.from = kinds.iter().map(|(name, _)| table_of(name)).collect();
            select.selection = condition;
        }
        let virtual_tables = |_: &str, table: &str| -> Result<Option<Arc<dyn TableSource>>> {
            let kind = kinds.iter().find(|(name, _)| *name == table);
            Ok(kind.map(|(_, schema)| {
                let schema = Arc::clone(schema);
                let source = MemoryTableSource::new(table.to_string(), schema, Vec::new());
                Arc::new(source) as Arc<dyn TableSource>
            }))
        };
        let lowered = logical_plan(
            &query,
            &QueryContext {
                sql: text,
                catalog: self.engine.catalog(),
                session: self,
                parameters: &[],
                virtual_tables: &virtual_tables,
                listed: Listed::Values,
                is_over_rows: true,
            },
        )?;
        let metas = self.columns_of(&lowered.plan, &lowered.headers);
        let shown = lowered.plan.schema().fields().iter().cloned().collect();
        let LogicalPlan::Projection(projection) = with_coerced_types(lowered.plan)? else {
            return Err(not_over_rows());
        };
        let (condition, rows) = match projection.input.as_ref() {
            LogicalPlan::Filter(filter) => (Some(&filter.predicate), filter.input.as_ref()),
            rows => (None, rows),
        };
        let has_subquery = |expression: &Expr| {
            expression.exists(|part| {
                Ok(matches!(
                    part,
                    Expr::ScalarSubquery(_) | Expr::Exists(_) | Expr::InSubquery(_)
                ))
            })
        };
        for expression in projection.expr.iter().chain(condition) {
            if has_subquery(expression)? {
                return Err(not_over_rows());
            }
        }
        if !is_rows_only(rows) {
            return Err(not_over_rows());
        }
        let fields = kinds
            .iter()
            .flat_map(|(_, schema)| schema.fields().iter().cloned());
        let schema = Schema::new(fields.collect::<Vec<FieldRef>>());
        let input: &DFSchema = rows.schema();
        if input.fields().len() != schema.fields().len() {
            return Err(not_over_rows());
        }
        let mut options = ConfigOptions::default();
        options.extensions.insert(self.result_limits());
        let mut properties = ExecutionProps::new();
        properties.config_options = Some(Arc::new(options));
        let context = PhysicalPlanningContext::default();
        let physical =
            |expression: &Expr| create_physical_expr(expression, input, &properties, &context);
        Ok(PlannedExpressions {
            schema: Arc::new(schema),
            expressions: projection
                .expr
                .iter()
                .map(physical)
                .collect::<std::result::Result<Vec<_>, _>>()?,
            condition: condition.map(physical).transpose()?,
            metas,
            fields: shown,
        })
    }
}

pub(crate) fn not_over_rows() -> SqlError {
    SqlError::not_supported_yet("a subquery or an aggregate in this place")
}

/// Whether a plan is the rows themselves: no subquery became a join beside them.
fn is_rows_only(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::TableScan(_) => true,
        // There are no rows, and expressions without columns.
        LogicalPlan::EmptyRelation(empty) => empty.produce_one_row,
        LogicalPlan::SubqueryAlias(alias) => is_rows_only(&alias.input),
        LogicalPlan::Join(join) => {
            join.on.is_empty()
                && join.filter.is_none()
                && is_rows_only(&join.left)
                && is_rows_only(&join.right)
        }
        _ => false,
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
        let values: Vec<[&Value; 1]> = row.map(|value| [value]).collect();
        let columns: Vec<&[&Value]> = values.iter().map(|value| value.as_slice()).collect();
        let array = self.evaluate(expression, &self.batch(&columns, 1)?)?;
        value_at(array.as_ref(), 0)
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

    fn evaluate(&self, expression: usize, batch: &RecordBatch) -> Result<ArrayRef> {
        let expression = &self.expressions[expression];
        let value = expression.evaluate(batch)?;
        Ok(value.into_array(batch.num_rows())?)
    }

    fn batch(&self, columns: &[&[&Value]], rows: usize) -> Result<RecordBatch> {
        let arrays = self
            .columns
            .iter()
            .zip(columns)
            .map(|(column, values)| array_of(&column.ty, values))
            .collect::<Result<Vec<_>>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        let schema = Arc::clone(&self.schema);
        Ok(RecordBatch::try_new_with_options(schema, arrays, &options)?)
    }
}

/// Values of a column as the array that a scan would deliver.
pub(crate) fn array_of(ty: &ColumnType, values: &[&Value]) -> Result<ArrayRef> {
    let int = |value: &&Value| value.as_i128();
    macro_rules! integers {
        ($array:ty, $native:ty) => {
            Arc::new(<$array>::from_iter(
                values.iter().map(|value| int(value).map(|v| v as $native)),
            ))
        };
    }
    Ok(match ty {
        ColumnType::Bool | ColumnType::TinyInt { unsigned: false } => integers!(Int8Array, i8),
        ColumnType::TinyInt { unsigned: true } => integers!(UInt8Array, u8),
        ColumnType::SmallInt { unsigned: false } => integers!(Int16Array, i16),
        ColumnType::SmallInt { unsigned: true } | ColumnType::Year => integers!(UInt16Array, u16),
        ColumnType::MediumInt { unsigned: false } | ColumnType::Int { unsigned: false } => {
            integers!(Int32Array, i32)
        }
        ColumnType::MediumInt { unsigned: true } | ColumnType::Int { unsigned: true } => {
            integers!(UInt32Array, u32)
        }
        ColumnType::BigInt { unsigned: false } => integers!(Int64Array, i64),
        ColumnType::BigInt { unsigned: true } => integers!(UInt64Array, u64),
        ColumnType::Float { .. } => {
            Arc::new(Float32Array::from_iter(values.iter().map(|v| match v {
                Value::Float(v) => Some(*v),
                _ => None,
            })))
        }
        ColumnType::Double { .. } => {
            Arc::new(Float64Array::from_iter(values.iter().map(|v| match v {
                Value::Double(v) => Some(*v),
                _ => None,
            })))
        }
        ColumnType::Decimal {
            precision, scale, ..
        } => {
            let numbers = values.iter().map(|v| match v {
                Value::Decimal { unscaled, .. } => Some(*unscaled),
                _ => None,
            });
            let array = Decimal128Array::from_iter(numbers);
            Arc::new(array.with_precision_and_scale(*precision, *scale as i8)?)
        }
        ColumnType::Date => Arc::new(Date32Array::from_iter(values.iter().map(|v| match v {
            Value::Date(v) => Some(*v),
            _ => None,
        }))),
        ColumnType::Time { .. } => Arc::new(DurationMicrosecondArray::from_iter(
            values.iter().map(|v| match v {
                Value::Time(v) => Some(*v),
                _ => None,
            }),
        )),
        ColumnType::DateTime { .. } | ColumnType::Timestamp { .. } => Arc::new(
            TimestampMicrosecondArray::from_iter(values.iter().map(|v| match v {
                Value::DateTime(v) | Value::Timestamp(v) => Some(*v),
                _ => None,
            })),
        ),
        ColumnType::Enum { labels, .. } => {
            let label = |number: u16| match number.checked_sub(1) {
                Some(at) => labels.get(usize::from(at)).map_or("", String::as_str),
                None => "",
            };
            Arc::new(StringViewArray::from_iter(values.iter().map(|v| match v {
                Value::Enum(number) => Some(label(*number)),
                _ => None,
            })))
        }
        ColumnType::Char { .. } | ColumnType::VarChar { .. } | ColumnType::Text { .. } => {
            Arc::new(StringViewArray::from_iter(values.iter().map(|v| match v {
                Value::Text(text) => Some(text.as_str()),
                _ => None,
            })))
        }
        ColumnType::Binary { .. } | ColumnType::VarBinary { .. } | ColumnType::Blob { .. } => {
            Arc::new(BinaryArray::from_iter(values.iter().map(|v| match v {
                Value::Bytes(bytes) => Some(bytes.as_slice()),
                _ => None,
            })))
        }
    })
}
