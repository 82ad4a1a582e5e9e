//! What a SELECT computes of rows at hand: a filter, a list, an order. Each row of its result is computed from one of
//! them, or from a group.
//!
//! There is no plan of operators then. The typed expressions of the binder are compiled one by one, and evaluated over
//! the rows, which are a single batch:
//!
//! ```text
//!   SELECT DATE(at) d, COUNT(*) FROM c WHERE post = ? AND body <> ''  GROUP BY DATE(at)  ORDER BY d DESC
//!
//!   rows found by keys -> conjunct by conjunct -> groups by DATE(at) -> sorted by d -> LIMIT -> list (d, count)
//! ```
//!
//! What keys of the order are made of is computed of all rows, the rest of the list of those that LIMIT leaves.

use std::collections::{BTreeSet, HashMap};
use std::ops::Range;
use std::sync::Arc;

use arrow::array::{
    ArrayRef, AsArray, RecordBatch, RecordBatchOptions, UInt32Array, UInt64Array, new_empty_array,
    new_null_array,
};
use arrow::compute::{
    SortColumn, SortOptions, filter_record_batch, lexsort_to_indices, take, take_arrays,
};
use arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef};
use arrow::row::{OwnedRow, RowConverter, SortField};
use datafusion_common::ScalarValue;
use datafusion_common::config::ConfigOptions;
use datafusion_physical_expr::PhysicalExpr;
use datafusion_physical_expr::aggregate::AggregateFunctionExpr;
use datafusion_physical_expr::utils::collect_columns;
use sheaf_algebra::relation::Item;
use sheaf_algebra::scalar::physical::Batches;
use sheaf_algebra::{ColumnId, Scalar};
use sheaf_exec::aggregates::GROUP_CONCAT;
use sheaf_frontend::bind::over_rows::{Groups, RowQuery};

use crate::error::{Result, SqlError};
use crate::query::value_extent::{is_string, text_lengths_over_rows};
use crate::session::Session;
use crate::session::result::ColumnMeta;

type Expression = Arc<dyn PhysicalExpr>;

/// See the module's comment.
pub(in crate::direct) struct ComputedRows {
    /// The columns of the rows at hand.
    pub(in crate::direct) schema: SchemaRef,
    /// What all has to be true of a row.
    conjuncts: Vec<Expression>,
    groups: Option<ComputedGroups>,
    list: Vec<Expression>,
    listed: SchemaRef,
    /// Over the list.
    order: Vec<(Expression, SortOptions)>,
    /// The columns of the list that these are of.
    ordering: BTreeSet<usize>,
    /// What is shown of the list, and whether it may be NULL.
    shown: Vec<(usize, bool)>,
    result: SchemaRef,
}

/// Groups of rows.
struct ComputedGroups {
    /// What is computed of rows first.
    computed: Vec<Expression>,
    computed_schema: SchemaRef,
    /// What is equal in a group.
    keys: Vec<Expression>,
    /// Columns of the first row of a group.
    carried: Vec<usize>,
    aggregates: Vec<AggregateFunctionExpr>,
    /// These columns, and the aggregates.
    schema: SchemaRef,
    /// HAVING.
    conjuncts: Vec<Expression>,
}

/// Columns while expressions over them are compiled.
struct Level {
    schema: SchemaRef,
    ids: Vec<ColumnId>,
    options: Arc<ConfigOptions>,
}

impl Level {
    fn place(&self, id: ColumnId) -> Option<usize> {
        self.ids.iter().position(|known| *known == id)
    }

    fn compile<T>(
        &self,
        compile: impl FnOnce(Batches<'_>) -> datafusion_common::Result<T>,
    ) -> Option<T> {
        let compiled = compile(Batches {
            schema: &self.schema,
            position: &|id| self.place(id),
            options: &self.options,
        });
        compiled.ok()
    }

    fn expression(&self, scalar: &Scalar) -> Option<Expression> {
        self.compile(|over| over.expression(scalar))
    }

    /// The conditions that all have to be true.
    fn conjuncts(&self, condition: Option<&Scalar>) -> Option<Vec<Expression>> {
        let conjuncts = condition.into_iter().flat_map(Scalar::conjuncts);
        let conjuncts = conjuncts.map(|conjunct| self.compile(|over| over.condition(conjunct)));
        conjuncts.collect()
    }

    /// The columns that a list makes.
    fn list(&self, list: &[(&Item, Expression)]) -> Option<Level> {
        let fields = list.iter().enumerate().map(|(number, (item, expression))| {
            let ty = expression.data_type(&self.schema).ok()?;
            let field = Field::new(format!("l{number}"), ty, true);
            Some(field.with_metadata(item.value.field().metadata().clone()))
        });
        Some(Level {
            schema: Arc::new(Schema::new(fields.collect::<Option<Vec<Field>>>()?)),
            ids: list.iter().map(|(item, _)| item.column).collect(),
            options: Arc::clone(&self.options),
        })
    }
}

/// How the result of a query is described to a client, and in Arrow.
pub(in crate::direct) struct Described {
    pub(in crate::direct) metas: Vec<ColumnMeta>,
    pub(in crate::direct) types: Vec<DataType>,
}

/// The columns of rows at hand by their tables and names, in their order.
pub(in crate::direct) type Columns<'a> = [(&'a str, &'a str)];

impl ComputedRows {
    /// `rows`: the columns that rows have. `None`: one is missing, or there is something that only operators do.
    pub(in crate::direct) fn new(
        session: &Session,
        query: &RowQuery,
        rows: &Columns<'_>,
    ) -> Option<ComputedRows> {
        let rows = level_of_rows(session, query, rows)?;
        let conjuncts = rows.conjuncts(query.condition.as_ref())?;
        let (groups, level) = match &query.groups {
            None => (None, None),
            Some(groups) => {
                let (groups, level) = ComputedGroups::new(&rows, groups)?;
                (Some(groups), Some(level))
            }
        };
        let below = level.as_ref().unwrap_or(&rows);
        let list = query.list.iter();
        let list = list.map(|item| Some((item, below.expression(&item.value)?)));
        let list = list.collect::<Option<Vec<_>>>()?;
        let over_list = below.list(&list)?;
        let mut order = Vec::with_capacity(query.order.len());
        for key in &query.order {
            let options = SortOptions {
                descending: key.descends,
                nulls_first: !key.descends,
            };
            let key = over_list.expression(&key.value)?;
            let is_ordered = !key.data_type(&over_list.schema).ok()?.is_null();
            order.push(is_ordered.then_some((key, options))?);
        }
        let ordering = order.iter().flat_map(|(key, _)| collect_columns(key));
        let ordering = ordering.map(|column| column.index()).collect();
        let result = query.shown.iter().map(|(at, header, _)| {
            let field = over_list.schema.field(*at).clone();
            field.with_name(&header.name)
        });
        let shown = query.shown.iter().map(|(at, ..)| {
            let nullable = list[*at].1.nullable(&below.schema).ok()?;
            Some((*at, nullable))
        });
        Some(ComputedRows {
            conjuncts,
            groups,
            order,
            ordering,
            shown: shown.collect::<Option<_>>()?,
            result: Arc::new(Schema::new(result.collect::<Vec<Field>>())),
            list: list.into_iter().map(|(_, expression)| expression).collect(),
            listed: over_list.schema,
            schema: rows.schema,
        })
    }

    /// The types of the result.
    pub(in crate::direct) fn types(&self) -> impl Iterator<Item = &DataType> {
        let fields = self.result.fields().iter();
        fields.map(|field| field.data_type())
    }

    /// The rows of the result that a window shows, and how many there are around it as well. What is shown of others is
    /// not computed: a division by zero there is none of the statement.
    pub(in crate::direct) fn run(
        &self,
        rows: RecordBatch,
        window: Range<u64>,
    ) -> Result<(RecordBatch, usize)> {
        let mut rows = filtered(&self.conjuncts, rows)?;
        if let Some(groups) = &self.groups {
            rows = groups.of(&rows)?;
        }
        let count = rows.num_rows();
        let [start, end] = [window.start, window.end]
            .map(|row| usize::try_from(row).map_or(count, |row| row.min(count)));
        let length = end.saturating_sub(start);
        let mut known = vec![None; self.list.len()];
        if self.order.is_empty() || count < 2 || length == 0 {
            rows = rows.slice(start, length);
        } else {
            for column in &self.ordering {
                known[*column] = Some(value_of(&self.list[*column], &rows)?);
            }
            let places = self.places(&known, count, end)?.slice(start, length);
            let columns = take_arrays(rows.columns(), &places, None)?;
            rows = batch_of(&rows.schema(), columns, length)?;
            for value in known.iter_mut().flatten() {
                *value = take(value.as_ref(), &places, None)?;
            }
        }
        let list = self.list.iter().zip(known);
        let list = list.map(|(expression, known)| match known {
            Some(known) => Ok(known),
            None => value_of(expression, &rows),
        });
        let list = list.collect::<Result<Vec<ArrayRef>>>()?;
        let shown = self.shown.iter().map(|(at, _)| Arc::clone(&list[*at]));
        Ok((batch_of(&self.result, shown.collect(), length)?, count))
    }

    /// The places of the first rows in their order, by what is known of the list.
    fn places(&self, known: &[Option<ArrayRef>], rows: usize, first: usize) -> Result<UInt32Array> {
        let columns = known.iter().zip(self.listed.fields());
        let columns = columns.map(|(known, field)| match known {
            Some(known) => Arc::clone(known),
            // No key is of it.
            None => new_null_array(field.data_type(), rows),
        });
        let listed = batch_of(&self.listed, columns.collect(), rows)?;
        let mut keys = Vec::with_capacity(self.order.len() + 1);
        for (key, options) in &self.order {
            keys.push(SortColumn {
                values: value_of(key, &listed)?,
                options: Some(*options),
            });
        }
        // Rows of one place stay in their order.
        keys.push(SortColumn {
            values: Arc::new(UInt64Array::from_iter_values(0..rows as u64)),
            options: None,
        });
        Ok(lexsort_to_indices(&keys, Some(first))?)
    }
}

impl ComputedGroups {
    /// Groups of rows, and the columns that they have.
    fn new(rows: &Level, groups: &Groups) -> Option<(ComputedGroups, Level)> {
        // Columns of tables are passed on, whether or not they are read.
        let computed = groups.computed.iter();
        let computed =
            computed.filter(|item| !item.is_passed_on() || rows.place(item.column).is_some());
        let computed = computed.map(|item| Some((item, rows.expression(&item.value)?)));
        let computed = computed.collect::<Option<Vec<_>>>()?;
        let own = match groups.computed.is_empty() {
            true => None,
            false => Some(rows.list(&computed)?),
        };
        let below = own.as_ref().unwrap_or(rows);
        let keys = groups.keys.iter();
        let keys = keys.map(|(_, key)| below.expression(key));
        let keys = keys.collect::<Option<Vec<_>>>()?;
        let (mut ids, mut fields, mut carried) = (Vec::new(), Vec::new(), Vec::new());
        let equal = groups.keys.iter();
        let equal = equal.map(|(id, key)| (id, key.as_column() == Some(*id)));
        let others = groups.carried.iter().map(|id| (id, false));
        for (id, is_key) in equal.chain(others) {
            // A key is grouped by together with the columns that it determines, whether or not they are read.
            let Some(place) = below.place(*id) else {
                continue;
            };
            ids.push(*id);
            let field = below.schema.field(place).clone();
            // What is taken from a group's first row may be NULL, to a plan and to clients.
            let nullable = !is_key || field.is_nullable();
            fields.push(field.with_nullable(nullable));
            carried.push(place);
        }
        let mut aggregates = Vec::with_capacity(groups.aggregates.len());
        for (id, aggregate) in &groups.aggregates {
            // The planner gives it what it tells the session of texts that it cuts.
            if aggregate.function().name() == GROUP_CONCAT {
                return None;
            }
            let made = below.compile(|over| over.aggregate(aggregate))?;
            let field = made.field();
            let field = Field::new("a", field.data_type().clone(), field.is_nullable());
            fields.push(field.with_metadata(aggregate.field().metadata().clone()));
            ids.push(*id);
            aggregates.push(made);
        }
        let level = Level {
            schema: Arc::new(Schema::new(fields)),
            ids,
            options: Arc::clone(&rows.options),
        };
        let conjuncts = level.conjuncts(groups.condition.as_ref())?;
        let computed_schema = Arc::clone(&below.schema);
        let computed = match groups.computed.is_empty() {
            true => Vec::new(),
            false => computed.into_iter().map(|(_, made)| made).collect(),
        };
        Some((
            ComputedGroups {
                computed,
                computed_schema,
                keys,
                carried,
                aggregates,
                schema: Arc::clone(&level.schema),
                conjuncts,
            },
            level,
        ))
    }

    /// The groups of these rows, in the order of their first ones.
    fn of(&self, rows: &RecordBatch) -> Result<RecordBatch> {
        let count = rows.num_rows();
        let computed;
        let rows = match self.computed.is_empty() {
            true => rows,
            false => {
                let values = values_of(&self.computed, rows)?;
                computed = batch_of(&self.computed_schema, values, count)?;
                &computed
            }
        };
        let members = self.members(rows)?;
        let first = members.iter().map(|members| members.first().copied());
        let first = UInt32Array::from_iter(first);
        let mut columns = Vec::with_capacity(self.schema.fields().len());
        for place in &self.carried {
            columns.push(take(rows.column(*place), &first, None)?);
        }
        for aggregate in &self.aggregates {
            let arguments = values_of(&aggregate.expressions(), rows)?;
            let mut values = Vec::with_capacity(members.len());
            for members in &members {
                let mut accumulator = aggregate.create_accumulator()?;
                if members.len() == count {
                    accumulator.update_batch(&arguments)?;
                } else {
                    let members = UInt32Array::from_iter_values(members.iter().copied());
                    accumulator.update_batch(&take_arrays(&arguments, &members, None)?)?;
                }
                values.push(accumulator.evaluate()?);
            }
            columns.push(match values.is_empty() {
                true => new_empty_array(aggregate.field().data_type()),
                false => ScalarValue::iter_to_array(values)?,
            });
        }
        filtered(
            &self.conjuncts,
            batch_of(&self.schema, columns, members.len())?,
        )
    }

    /// The rows of each group. Without keys there is one group, even of no rows.
    fn members(&self, rows: &RecordBatch) -> Result<Vec<Vec<u32>>> {
        let all = 0..rows.num_rows() as u32;
        if self.keys.is_empty() {
            return Ok(vec![all.collect()]);
        }
        let keys = values_of(&self.keys, rows)?;
        let fields = keys
            .iter()
            .map(|key| SortField::new(key.data_type().clone()));
        let keys = RowConverter::new(fields.collect())?.convert_columns(&keys)?;
        let mut known: HashMap<OwnedRow, usize> = HashMap::new();
        let mut members: Vec<Vec<u32>> = Vec::new();
        for row in all {
            let group = *known
                .entry(keys.row(row as usize).owned())
                .or_insert_with(|| {
                    members.push(Vec::new());
                    members.len() - 1
                });
            members[group].push(row);
        }
        Ok(members)
    }
}

/// The rows of which all is true. What a conjunct has decided the next ones are not asked, which may fail.
fn filtered(conjuncts: &[Expression], mut rows: RecordBatch) -> Result<RecordBatch> {
    for conjunct in conjuncts {
        if rows.num_rows() == 0 {
            break;
        }
        let truth = value_of(conjunct, &rows)?;
        let truth = truth.as_boolean_opt();
        let truth = truth.ok_or_else(|| SqlError::unknown("a condition without a truth value"))?;
        rows = filter_record_batch(&rows, truth)?;
    }
    Ok(rows)
}

fn values_of(expressions: &[Expression], rows: &RecordBatch) -> Result<Vec<ArrayRef>> {
    let expressions = expressions.iter();
    expressions
        .map(|expression| value_of(expression, rows))
        .collect()
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

/// The columns that rows have; `None` if the FROM does not have one of them.
fn level_of_rows(session: &Session, query: &RowQuery, rows: &Columns<'_>) -> Option<Level> {
    let columns = rows.iter().map(|(table, name)| {
        let mut columns = query.columns.iter();
        columns.find(|column| column.table == *table && column.field.name() == name)
    });
    let columns = columns.collect::<Option<Vec<_>>>()?;
    let fields = columns.iter().map(|column| Arc::clone(&column.field));
    let schema = Schema::new(fields.collect::<Vec<FieldRef>>());
    Some(Level {
        schema: Arc::new(schema),
        ids: columns.iter().map(|column| column.id).collect(),
        options: session.function_options(),
    })
}

/// Whether a value over groups is a column of the FROM, or a number that aggregates alone come to. Of others, only a
/// plan tells how long they are and whether they may be NULL.
fn is_known_of_groups(value: &Scalar, query: &RowQuery, groups: &Groups) -> bool {
    let is_of_from = |id: ColumnId| query.columns.iter().any(|column| column.id == id);
    let is_aggregate = |id: ColumnId| groups.aggregates.iter().any(|(own, _)| *own == id);
    match value.as_column() {
        Some(column) if is_of_from(column) => !groups.keys.is_empty(),
        _ => {
            let is_number = !is_string(value.field().data_type());
            is_number && value.columns().iter().all(is_aggregate)
        }
    }
}

/// How a client is told of a query's columns. `None`: only a plan tells that.
pub(in crate::direct) fn describe_row_query(
    session: &Session,
    query: &RowQuery,
    computed: &ComputedRows,
) -> Option<Described> {
    let fields = query.columns.iter().map(|column| Arc::clone(&column.field));
    let schema = Arc::new(Schema::new(fields.collect::<Vec<FieldRef>>()));
    let position = |id: ColumnId| query.columns.iter().position(|column| column.id == id);
    let mut values = query.shown.iter().map(|(at, ..)| &query.list[*at].value);
    if let Some(groups) = &query.groups
        && !values
            .clone()
            .all(|value| is_known_of_groups(value, query, groups))
    {
        return None;
    }
    let lengths = text_lengths_over_rows(&mut values, (&schema, &position));
    let shown = query.shown.iter().zip(&computed.shown).zip(lengths);
    let metas = shown.map(|(((_, header, field), (_, nullable)), length)| {
        let field = field.as_ref().clone().with_name(&header.name);
        // It may be NULL where a plan says so, too.
        let nullable = *nullable || field.is_nullable();
        session.column_of(&field.with_nullable(nullable), header, length)
    });
    let types = query.shown.iter();
    Some(Described {
        metas: metas.collect(),
        types: types.map(|(.., field)| field.data_type().clone()).collect(),
    })
}
