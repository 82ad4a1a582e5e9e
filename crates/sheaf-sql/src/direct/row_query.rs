//! What a SELECT computes of rows at hand where each of them is a row of its result: a filter, a list, an order.
//!
//! There is no plan of operators then. The typed expressions of the binder are compiled one by one, and evaluated over
//! the rows, which are a single batch:
//!
//! ```text
//!   SELECT id, COALESCE(score, 0) s FROM p WHERE user = ? AND title <> ''  ORDER BY s DESC
//!
//!   rows found by keys  -> conjunct by conjunct -> list (id, s) -> sorted by s -> what is shown
//! ```

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, RecordBatch, RecordBatchOptions, UInt64Array};
use arrow::compute::{
    SortColumn, SortOptions, filter_record_batch, lexsort_to_indices, take_arrays,
};
use arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef};
use datafusion_physical_expr::PhysicalExpr;
use sheaf_algebra::relation::Item;
use sheaf_algebra::scalar::physical::Batches;
use sheaf_algebra::{ColumnId, Scalar};
use sheaf_frontend::bind::over_rows::RowQuery;

use crate::error::{Result, SqlError};
use crate::query::row_evaluator::text_lengths_over_rows;
use crate::session::Session;
use crate::session::result::ColumnMeta;

/// See the module's comment.
pub(super) struct ComputedRows {
    /// The columns of the rows at hand.
    pub(super) schema: SchemaRef,
    /// What all has to be true of a row.
    conjuncts: Vec<Arc<dyn PhysicalExpr>>,
    list: Vec<Arc<dyn PhysicalExpr>>,
    listed: SchemaRef,
    /// Over the list.
    order: Vec<(Arc<dyn PhysicalExpr>, SortOptions)>,
    /// What is shown of the list.
    shown: Vec<usize>,
    result: SchemaRef,
}

/// How the result of a query is described to a client, and in Arrow.
pub(super) struct Described {
    pub(super) metas: Vec<ColumnMeta>,
    pub(super) types: Vec<DataType>,
}

/// The columns of rows at hand by their tables and names, in their order.
pub(super) type Columns<'a> = [(&'a str, &'a str)];

impl ComputedRows {
    /// `rows`: the columns that rows have. `None`: one is missing, or there is something that only operators do.
    pub(super) fn new(
        session: &Session,
        query: &RowQuery,
        rows: &Columns<'_>,
    ) -> Option<ComputedRows> {
        let (schema, positions) = rows_of(query, rows)?;
        let options = session.function_options();
        let over_rows = Batches {
            schema: &schema,
            position: &|id| place_of(&positions, id),
            options: &options,
        };
        let conjuncts = query.condition.iter().flat_map(Scalar::conjuncts);
        let conjuncts = conjuncts.map(|conjunct| over_rows.condition(conjunct));
        let conjuncts = conjuncts.collect::<std::result::Result<Vec<_>, _>>().ok()?;
        let list = query.list.iter();
        let list = list.map(|item| over_rows.expression(&item.value));
        let list = list.collect::<std::result::Result<Vec<_>, _>>().ok()?;
        let fields = list.iter().enumerate().map(|(number, item)| {
            let ty = item.data_type(&schema).ok()?;
            let bound = query.list[number].value.field();
            let field = Field::new(format!("l{number}"), ty, true);
            Some(field.with_metadata(bound.metadata().clone()))
        });
        let listed = Arc::new(Schema::new(fields.collect::<Option<Vec<Field>>>()?));
        let over_list = Batches {
            schema: &listed,
            position: &|id| query.list.iter().position(|item| item.column == id),
            options: &options,
        };
        let mut order = Vec::with_capacity(query.order.len());
        for key in &query.order {
            let options = SortOptions {
                descending: key.descends,
                nulls_first: !key.descends,
            };
            let key = over_list.expression(&key.value).ok()?;
            let is_ordered = !key.data_type(&listed).ok()?.is_null();
            order.push(is_ordered.then_some((key, options))?);
        }
        let result = query.shown.iter().map(|(at, header, _)| {
            let field = listed.field(*at).clone();
            field.with_name(&header.name)
        });
        Some(ComputedRows {
            conjuncts,
            order,
            shown: query.shown.iter().map(|(at, ..)| *at).collect(),
            result: Arc::new(Schema::new(result.collect::<Vec<Field>>())),
            list,
            listed,
            schema,
        })
    }

    /// The types of the result.
    pub(super) fn types(&self) -> impl Iterator<Item = &DataType> {
        let fields = self.result.fields().iter();
        fields.map(|field| field.data_type())
    }

    /// The result of the query over these rows.
    pub(super) fn run(&self, mut rows: RecordBatch) -> Result<RecordBatch> {
        // What a conjunct has decided the next ones are not asked, which may fail.
        for conjunct in &self.conjuncts {
            if rows.num_rows() == 0 {
                break;
            }
            let truth = value_of(conjunct, &rows)?;
            let truth = truth.as_boolean_opt();
            let truth =
                truth.ok_or_else(|| SqlError::unknown("a condition without a truth value"))?;
            rows = filter_record_batch(&rows, truth)?;
        }
        let list = self.list.iter().map(|item| value_of(item, &rows));
        let mut list = list.collect::<Result<Vec<ArrayRef>>>()?;
        if !self.order.is_empty() && rows.num_rows() > 1 {
            let listed = batch_of(&self.listed, list.clone(), rows.num_rows())?;
            let mut keys = Vec::with_capacity(self.order.len() + 1);
            for (key, options) in &self.order {
                keys.push(SortColumn {
                    values: value_of(key, &listed)?,
                    options: Some(*options),
                });
            }
            // Rows of one place stay in their order.
            keys.push(SortColumn {
                values: Arc::new(UInt64Array::from_iter_values(0..rows.num_rows() as u64)),
                options: None,
            });
            let places = lexsort_to_indices(&keys, None)?;
            list = take_arrays(&list, &places, None)?;
        }
        let shown = self.shown.iter().map(|at| Arc::clone(&list[*at]));
        batch_of(&self.result, shown.collect(), rows.num_rows())
    }
}

fn value_of(expression: &Arc<dyn PhysicalExpr>, rows: &RecordBatch) -> Result<ArrayRef> {
    let value = expression.evaluate(rows)?;
    Ok(value.into_array(rows.num_rows())?)
}

fn batch_of(schema: &SchemaRef, columns: Vec<ArrayRef>, rows: usize) -> Result<RecordBatch> {
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    let schema = Arc::clone(schema);
    Ok(RecordBatch::try_new_with_options(
        schema, columns, &options,
    )?)
}

/// The columns that rows have, and their ids; `None` if the FROM does not have one of them.
fn rows_of(query: &RowQuery, rows: &Columns<'_>) -> Option<(SchemaRef, Vec<ColumnId>)> {
    let columns = rows.iter().map(|(table, name)| {
        let mut columns = query.columns.iter();
        columns.find(|column| column.table == *table && column.field.name() == name)
    });
    let columns = columns.collect::<Option<Vec<_>>>()?;
    let fields = columns.iter().map(|column| Arc::clone(&column.field));
    let schema = Schema::new(fields.collect::<Vec<FieldRef>>());
    let ids = columns.iter().map(|column| column.id);
    Some((Arc::new(schema), ids.collect()))
}

fn place_of(ids: &[ColumnId], id: ColumnId) -> Option<usize> {
    ids.iter().position(|known| *known == id)
}

impl Session {
    /// How a client is told of a query's columns.
    pub(super) fn describe_row_query(&self, query: &RowQuery) -> Option<Described> {
        let fields = query.columns.iter().map(|column| Arc::clone(&column.field));
        let schema = Arc::new(Schema::new(fields.collect::<Vec<FieldRef>>()));
        let position = |id: ColumnId| query.columns.iter().position(|column| column.id == id);
        let item = |at: usize| -> &Item { &query.list[at] };
        let values = query.shown.iter().map(|(at, ..)| &item(*at).value);
        let lengths = text_lengths_over_rows(values, (&schema, &position)).ok()?;
        let shown = query.shown.iter().zip(lengths);
        let metas = shown.map(|((_, header, field), length)| {
            let field = field.as_ref().clone().with_name(&header.name);
            self.column_of(&field, header, length)
        });
        let types = query.shown.iter();
        Some(Described {
            metas: metas.collect(),
            types: types.map(|(.., field)| field.data_type().clone()).collect(),
        })
    }
}
