//! The first rows of an order, where rows have texts.
//!
//! DataFusion's sort for the first rows keeps the batches that they have come in, with the texts of all of their rows.
//! The hundred first of 40,000 rows of 2.5 KB held on to 16 MB and more, and failed where memory was short. This one
//! keeps copies of the rows that may be among the first, and where even these are too many it sorts all rows, which
//! spills.
//!
//! ```text
//!   rows -> those before the last of the first rows so far -> copied and kept; of many, the first ones stay
//!        -> there is no more memory: SortExec of those that are kept, and of all that come
//! ```
//!
//! In a plan it is the sort that it takes the place of: what is asked about that sort is asked with [`sort_of`].

use std::fmt;
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, UInt32Array};
use arrow::compute::{interleave_record_batch, take_record_batch};
use arrow::datatypes::{DataType, SchemaRef};
use arrow::row::{OwnedRow, RowConverter, Rows, SortField};
use datafusion_common::Result;
use datafusion_common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion_common::utils::memory::get_record_batch_memory_size;
use datafusion_execution::TaskContext;
use datafusion_execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion_physical_expr::{LexOrdering, PhysicalExpr};
use datafusion_physical_plan::execution_plan::CardinalityEffect;
use datafusion_physical_plan::limit::GlobalLimitExec;
use datafusion_physical_plan::metrics::{BaselineMetrics, ExecutionPlanMetricsSet, MetricsSet};
use datafusion_physical_plan::sorts::sort::SortExec;
use datafusion_physical_plan::stream::RecordBatchStreamAdapter;
use datafusion_physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties,
    InputDistributionRequirements, PlanProperties, SendableRecordBatchStream,
    replace_children_if_necessary,
};
use futures::{StreamExt, TryStreamExt, stream};

use crate::memory_pool::without_waiting;
use crate::operator::compacted_exec::detached;
use crate::operator::key_width_exec::watch_sort_keys;
use crate::operator::node_id::in_place_of;
use crate::operator::source_exec::SourceExec;

/// Rows are thrown away when there are so many more than are wanted.
const MOST_MORE_ROWS: usize = 1_024;

/// What a row takes besides its values when the first ones are looked for.
const ROW_BYTES: usize = 64;

/// Bytes of a batch that is handed on, about.
const BATCH_BYTES: usize = 128 << 10;

/// The sort that a node of a plan is.
pub fn sort_of(plan: &Arc<dyn ExecutionPlan>) -> Option<&SortExec> {
    match plan.downcast_ref::<FirstRowsExec>() {
        Some(first) => first.sort(),
        None => plan.downcast_ref::<SortExec>(),
    }
}

/// Puts a [`FirstRowsExec`] in the place of each sort for the first rows that have texts. A sort of rows that come in
/// a part of their order stays: it ends before the rows do.
pub fn keep_copies_of_first_rows(plan: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    let replaced = plan.transform_up(|node| {
        let Some(sort) = node.downcast_ref::<SortExec>() else {
            return Ok(Transformed::no(node));
        };
        if sort.fetch().is_none() || !has_texts(&sort.schema()) || comes_in_order(sort)? {
            return Ok(Transformed::no(node));
        }
        let first = Arc::new(FirstRowsExec::new(Arc::clone(&node)));
        Ok(Transformed::yes(in_place_of(&node, first)))
    })?;
    Ok(replaced.data)
}

fn has_texts(schema: &SchemaRef) -> bool {
    let mut fields = schema.fields().iter();
    fields.any(|field| matches!(field.data_type(), DataType::Utf8View | DataType::BinaryView))
}

fn comes_in_order(sort: &SortExec) -> Result<bool> {
    let input = sort.input().equivalence_properties();
    let (prefix, _) = input.extract_common_sort_prefix(sort.expr().clone())?;
    Ok(!prefix.is_empty())
}

/// See the module's comment.
#[derive(Debug)]
pub struct FirstRowsExec {
    /// A [`SortExec`] with a limit.
    sort: Arc<dyn ExecutionPlan>,
    metrics: ExecutionPlanMetricsSet,
}

impl FirstRowsExec {
    fn new(sort: Arc<dyn ExecutionPlan>) -> FirstRowsExec {
        FirstRowsExec {
            sort,
            metrics: ExecutionPlanMetricsSet::new(),
        }
    }

    fn sort(&self) -> Option<&SortExec> {
        self.sort.downcast_ref::<SortExec>()
    }
}

impl DisplayAs for FirstRowsExec {
    fn fmt_as(&self, format: DisplayFormatType, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "FirstRowsExec: ")?;
        self.sort.fmt_as(format, f)
    }
}

impl ExecutionPlan for FirstRowsExec {
    /// That of the sort.
    fn name(&self) -> &str {
        self.sort.name()
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.sort.properties()
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        self.sort.children()
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let sort = replace_children_if_necessary(Arc::clone(&self.sort), children)?;
        Ok(Arc::new(FirstRowsExec::new(sort)))
    }

    fn input_distribution_requirements(&self) -> InputDistributionRequirements {
        self.sort.input_distribution_requirements()
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        self.sort.benefits_from_input_partitioning()
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        self.sort.maintains_input_order()
    }

    fn fetch(&self) -> Option<usize> {
        self.sort.fetch()
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }

    fn cardinality_effect(&self) -> CardinalityEffect {
        self.sort.cardinality_effect()
    }

    fn apply_expressions(
        &self,
        visit: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        self.sort.apply_expressions(visit)
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let sort = self.sort().and_then(|sort| Some((sort, sort.fetch()?)));
        let Some((sort, most)) = sort else {
            return self.sort.execute(partition, context);
        };
        let input = sort.input().execute(partition, Arc::clone(&context))?;
        let schema = input.schema();
        let first = FirstRows::new(sort.expr().clone(), most, &schema, partition, &context)?;
        let counted = BaselineMetrics::new(&self.metrics, partition);
        let rows = stream::once(first.of(input, context)).try_flatten();
        let rows = rows.inspect_ok(move |batch| counted.record_output(batch.num_rows()));
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, rows)))
    }
}

/// A kept row: its batch, and its number in that.
type Place = (usize, usize);

/// The rows that may be among the first ones.
struct FirstRows {
    keys: LexOrdering,
    converter: RowConverter,
    schema: SchemaRef,
    most: usize,
    kept: Vec<RecordBatch>,
    kept_rows: usize,
    kept_bytes: usize,
    /// Of their keys, which are there only while the first ones are looked for.
    key_bytes: usize,
    /// The key of the last one, as soon as there are as many as are wanted.
    last: Option<OwnedRow>,
    reservation: MemoryReservation,
}

impl FirstRows {
    fn new(
        keys: LexOrdering,
        most: usize,
        schema: &SchemaRef,
        partition: usize,
        context: &TaskContext,
    ) -> Result<FirstRows> {
        let fields = keys.iter().map(|key| {
            let ty = key.expr.data_type(schema)?;
            Ok(SortField::new_with_options(ty, key.options))
        });
        let converter = RowConverter::new(fields.collect::<Result<_>>()?)?;
        let consumer = MemoryConsumer::new(format!("FirstRows[{partition}]"));
        Ok(FirstRows {
            keys,
            converter,
            schema: Arc::clone(schema),
            most,
            kept: Vec::new(),
            kept_rows: 0,
            kept_bytes: 0,
            key_bytes: 0,
            last: None,
            reservation: consumer.register(context.memory_pool()),
        })
    }

    /// The first rows of the input, in their order.
    async fn of(
        mut self,
        mut input: SendableRecordBatchStream,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        while self.most > 0
            && let Some(batch) = input.try_next().await?
        {
            if let Some(candidates) = self.candidates(batch)?
                && !self.keep(candidates)?
            {
                return self.sort_all(input, &context);
            }
        }
        self.sorted(context.session_config().batch_size())
    }

    fn keys_of(&self, batch: &RecordBatch) -> Result<Rows> {
        let keys = self.keys.iter().map(|key| {
            let values = key.expr.evaluate(batch)?;
            values.into_array(batch.num_rows())
        });
        let keys: Vec<ArrayRef> = keys.collect::<Result<_>>()?;
        Ok(self.converter.convert_columns(&keys)?)
    }

    /// The rows of a batch that may be among the first ones, in buffers of their own.
    fn candidates(&mut self, batch: RecordBatch) -> Result<Option<RecordBatch>> {
        let keys = self.keys_of(&batch)?;
        let mut rows: Vec<u32> = match &self.last {
            Some(last) => {
                let is_before = |row: &u32| keys.row(*row as usize) < last.row();
                (0..batch.num_rows() as u32).filter(is_before).collect()
            }
            None => (0..batch.num_rows() as u32).collect(),
        };
        if rows.is_empty() {
            return Ok(None);
        }
        if rows.len() > self.most {
            rows.select_nth_unstable_by_key(self.most - 1, |row| keys.row(*row as usize));
            rows.truncate(self.most);
            rows.sort_unstable();
        }
        self.key_bytes += keys.size() / batch.num_rows() * rows.len();
        let candidates = match rows.len() == batch.num_rows() {
            true => batch,
            false => take_record_batch(&batch, &UInt32Array::from(rows))?,
        };
        detached(candidates).map(Some)
    }

    /// Keeps rows with the others. False if there is no memory for so many.
    fn keep(&mut self, batch: RecordBatch) -> Result<bool> {
        self.kept_rows += batch.num_rows();
        self.kept_bytes += get_record_batch_memory_size(&batch);
        self.kept.push(batch);
        let most = match &self.last {
            Some(_) => self.most + self.most.max(MOST_MORE_ROWS),
            None => self.most,
        };
        if self.kept_rows >= most && self.has_room() {
            self.throw_away()?;
        }
        if self.has_room() {
            return Ok(true);
        }
        // The room for copies of them is lacking, and is not needed where few of them stay.
        Ok(self.kept_rows > self.most && {
            self.throw_away()?;
            self.has_room()
        })
    }

    /// Reserves what is kept twice, because the first ones of it are copied, and its keys.
    fn has_room(&self) -> bool {
        let bytes = 2 * self.kept_bytes + self.key_bytes + ROW_BYTES * self.kept_rows;
        without_waiting(|| self.reservation.try_resize(bytes)).is_ok()
    }

    /// The keys of the kept rows by batch, and the places of the first ones of them.
    fn chosen(&self) -> Result<(Vec<Rows>, Vec<Place>)> {
        let keys = self.kept.iter().map(|batch| self.keys_of(batch));
        let keys: Vec<Rows> = keys.collect::<Result<_>>()?;
        let mut places: Vec<Place> = Vec::with_capacity(self.kept_rows);
        for (batch, rows) in keys.iter().enumerate() {
            places.extend((0..rows.num_rows()).map(|row| (batch, row)));
        }
        if places.len() > self.most {
            places.select_nth_unstable_by_key(self.most - 1, |(batch, row)| keys[*batch].row(*row));
            places.truncate(self.most);
        }
        Ok((keys, places))
    }

    /// Leaves the first ones of the kept rows.
    fn throw_away(&mut self) -> Result<()> {
        let (keys, places) = self.chosen()?;
        if places.len() == self.most {
            let last = places
                .iter()
                .map(|(batch, row)| keys[*batch].row(*row))
                .max();
            self.last = last.map(|last| last.owned());
        }
        if places.len() == self.kept_rows {
            return Ok(());
        }
        drop(keys);
        // Small ones, each of which is free as soon as its rows are elsewhere.
        let rows = self.rows_of_batch(usize::MAX);
        let batches = places.chunks(rows).map(|places| self.copied(places));
        self.kept = batches.collect::<Result<_>>()?;
        self.key_bytes = self.key_bytes / self.kept_rows * places.len();
        self.kept_rows = places.len();
        self.kept_bytes = self.kept.iter().map(get_record_batch_memory_size).sum();
        Ok(())
    }

    fn copied(&self, places: &[Place]) -> Result<RecordBatch> {
        let kept: Vec<&RecordBatch> = self.kept.iter().collect();
        detached(interleave_record_batch(&kept, places)?)
    }

    /// Rows of a batch that is handed on.
    fn rows_of_batch(&self, most: usize) -> usize {
        let row_bytes = (self.kept_bytes / self.kept_rows.max(1)).max(1);
        most.min(BATCH_BYTES.div_ceil(row_bytes)).max(1)
    }

    fn sorted(self, batch_rows: usize) -> Result<SendableRecordBatchStream> {
        let (keys, mut places) = self.chosen()?;
        places.sort_unstable_by_key(|(batch, row)| keys[*batch].row(*row));
        drop(keys);
        let rows = self.rows_of_batch(batch_rows);
        let schema = Arc::clone(&self.schema);
        let batches =
            stream::try_unfold((self, places, 0), move |(first, places, at)| async move {
                let end = places.len().min(at + rows);
                if at == end {
                    return Ok(None);
                }
                let batch = first.copied(&places[at..end])?;
                Ok(Some((batch, (first, places, end))))
            });
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, batches)))
    }

    /// Sorts what is kept and what comes, and takes the first rows.
    fn sort_all(
        self,
        input: SendableRecordBatchStream,
        context: &TaskContext,
    ) -> Result<SendableRecordBatchStream> {
        let rows = self.rows_of_batch(context.session_config().batch_size());
        let (bytes, reservation) = (self.kept_bytes, self.reservation);
        let is_reserved = without_waiting(|| reservation.try_resize(bytes)).is_ok();
        let kept = Parts {
            batches: self.kept.into_iter(),
            current: None,
            rows,
            reservation: is_reserved.then_some(reservation),
        };
        let parts = input.map_ok(move |batch| {
            stream::iter(Parts {
                batches: vec![batch].into_iter(),
                current: None,
                rows,
                reservation: None,
            })
        });
        let all = stream::iter(kept).chain(parts.try_flatten());
        let all = RecordBatchStreamAdapter::new(Arc::clone(&self.schema), all);
        let source = SourceExec::new(Arc::clone(&self.schema), Box::pin(all));
        let sort = SortExec::new(self.keys, Arc::new(source));
        let sort = watch_sort_keys(Arc::new(sort))?;
        GlobalLimitExec::new(sort, 0, Some(self.most)).execute(0, smaller_batches(context, rows))
    }
}

/// Batches in parts of so many rows, with buffers of their own. What is reserved for a batch is given back with it.
struct Parts {
    batches: std::vec::IntoIter<RecordBatch>,
    /// With how many of its rows have been handed on.
    current: Option<(RecordBatch, usize)>,
    rows: usize,
    reservation: Option<MemoryReservation>,
}

impl Iterator for Parts {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some((batch, at)) = &mut self.current {
                let rows = self.rows.min(batch.num_rows() - *at);
                if rows > 0 {
                    let part = batch.slice(*at, rows);
                    *at += rows;
                    return Some(detached(part));
                }
                if let Some(reservation) = &self.reservation {
                    reservation.shrink(get_record_batch_memory_size(batch));
                }
            }
            self.current = Some((self.batches.next()?, 0));
        }
    }
}

/// The context of a statement with fewer rows in a batch.
fn smaller_batches(context: &TaskContext, rows: usize) -> Arc<TaskContext> {
    Arc::new(TaskContext::new(
        context.task_id(),
        context.session_id(),
        context.session_config().clone().with_batch_size(rows),
        context.scalar_functions().clone(),
        context.higher_order_functions().clone(),
        context.aggregate_functions().clone(),
        context.window_functions().clone(),
        context.runtime_env(),
    ))
}

#[cfg(test)]
mod tests {
    use arrow::array::{Int64Array, StringViewArray};
    use arrow::compute::SortOptions;
    use datafusion_execution::config::SessionConfig;
    use datafusion_execution::memory_pool::{GreedyMemoryPool, MemoryPool};
    use datafusion_execution::runtime_env::RuntimeEnvBuilder;
    use datafusion_physical_expr::PhysicalSortExpr;
    use datafusion_physical_expr::expressions::col;

    use super::*;

    /// Rows with numbers in no order, some of them equal and some NULL, and a text of so many bytes for each.
    fn batches(rows: i64, text_bytes: usize) -> Vec<RecordBatch> {
        let numbers: Vec<Option<i64>> = (0..rows)
            .map(|row| (row % 97 > 0).then_some(row * 7_919 % (rows / 2).max(1)))
            .collect();
        let made = numbers.chunks(300).map(|numbers| {
            let texts = numbers.iter().map(|number| {
                let text = format!("{number:?}");
                Some(text.repeat(text_bytes.div_ceil(text.len())))
            });
            let texts = StringViewArray::from_iter(texts);
            RecordBatch::try_from_iter_with_nullable([
                (
                    "number",
                    Arc::new(Int64Array::from(numbers.to_vec())) as ArrayRef,
                    true,
                ),
                ("text", Arc::new(texts) as ArrayRef, true),
            ])
        });
        made.collect::<std::result::Result<_, _>>().unwrap()
    }

    /// The numbers of the first rows.
    fn first_numbers(
        batches: Vec<RecordBatch>,
        most: usize,
        options: SortOptions,
        memory_bytes: usize,
    ) -> Vec<Option<i64>> {
        let schema = batches[0].schema();
        let number = col("number", &schema).unwrap();
        let keys = LexOrdering::new([PhysicalSortExpr::new(number, options)]).unwrap();
        let rows = stream::iter(batches.into_iter().map(Ok));
        let rows = Box::pin(RecordBatchStreamAdapter::new(Arc::clone(&schema), rows));
        let source = Arc::new(SourceExec::new(schema, rows));
        let sort = SortExec::new(keys, source).with_fetch(Some(most));
        let plan = keep_copies_of_first_rows(Arc::new(sort)).unwrap();
        assert!(plan.is::<FirstRowsExec>());
        assert_eq!(sort_of(&plan).and_then(SortExec::fetch), Some(most));
        let pool: Arc<dyn MemoryPool> = Arc::new(GreedyMemoryPool::new(memory_bytes));
        let runtime = RuntimeEnvBuilder::new()
            .with_memory_pool(Arc::clone(&pool))
            .build_arc()
            .unwrap();
        let config = SessionConfig::new()
            .with_batch_size(300)
            .with_sort_spill_reservation_bytes(1 << 20);
        let context = TaskContext::default()
            .with_session_config(config)
            .with_runtime(runtime);
        let rows = plan.execute(0, Arc::new(context)).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().build();
        let rows: Vec<RecordBatch> = runtime.unwrap().block_on(rows.try_collect()).unwrap();
        assert_eq!(pool.reserved(), 0);
        let mut numbers = Vec::new();
        for batch in rows {
            let column = batch.column(0).as_any().downcast_ref::<Int64Array>();
            let texts = batch.column(1).as_any().downcast_ref::<StringViewArray>();
            for (number, text) in column.unwrap().iter().zip(texts.unwrap()) {
                assert!(text.unwrap().starts_with(&format!("{number:?}")));
                numbers.push(number);
            }
        }
        numbers
    }

    fn expected(batches: &[RecordBatch], most: usize, options: SortOptions) -> Vec<Option<i64>> {
        let columns: Vec<&dyn arrow::array::Array> = batches
            .iter()
            .map(|batch| batch.column(0).as_ref())
            .collect();
        let all = arrow::compute::concat(&columns).unwrap();
        let sorted = arrow::compute::sort(&all, Some(options)).unwrap();
        let sorted = sorted.as_any().downcast_ref::<Int64Array>().unwrap();
        sorted.iter().take(most).collect()
    }

    #[test]
    fn the_first_rows_come_in_their_order() {
        for rows in [1, 299, 300, 5_000] {
            let batches = batches(rows, 20);
            for most in [0, 1, 2, 299, 300, 301, 3_000, 5_000, 6_000] {
                for options in [
                    SortOptions::new(false, true),
                    SortOptions::new(true, false),
                    SortOptions::new(true, true),
                ] {
                    assert_eq!(
                        first_numbers(batches.clone(), most, options, 64 << 20),
                        expected(&batches, most, options),
                        "{most} of {rows}"
                    );
                }
            }
        }
    }

    #[test]
    fn few_rows_of_many_take_little_memory() {
        let batches = batches(20_000, 1_000);
        let options = SortOptions::new(false, true);
        let numbers = first_numbers(batches.clone(), 100, options, 3 << 20);
        assert_eq!(numbers, expected(&batches, 100, options));
    }

    #[test]
    fn all_rows_are_sorted_where_the_first_ones_do_not_fit() {
        let batches = batches(20_000, 1_000);
        let options = SortOptions::new(true, false);
        let numbers = first_numbers(batches.clone(), 15_000, options, 12 << 20);
        assert_eq!(numbers, expected(&batches, 15_000, options));
    }
}
