//! Pairs of files that are joined one after another.
//!
//! A pair is joined by building on its left rows. If they do not fit in memory, both halves are divided again; if they
//! cannot be divided, they are taken in pieces:
//!
//! ```text
//!   rows of the left side are kept, or wanted by themselves:   left in pieces, each joined with the whole right half
//!   the same of the right side:                                right in pieces, each joined with the whole left half
//! ```
//!
//! So each row that may be delivered without a match is in one piece, which sees all rows of the other half.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions, UInt64Array};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion_common::{JoinType, Result, internal_datafusion_err};
use datafusion_execution::TaskContext;
use datafusion_physical_expr::expressions::Column;
use datafusion_physical_expr::{LexOrdering, PhysicalExprRef, PhysicalSortExpr};
use datafusion_physical_plan::joins::{HashJoinExec, PartitionMode};
use datafusion_physical_plan::sorts::sort::SortExec;
use datafusion_physical_plan::stream::RecordBatchStreamAdapter;
use datafusion_physical_plan::{ExecutionPlan, ExecutionPlanProperties, SendableRecordBatchStream};
use futures::{StreamExt, TryStreamExt, stream};
use tokio::task::JoinSet;

use super::build::{Build, Held};
use super::lock;
use super::partition::{Divided, Divider, Part, Side};
use super::source::InContextExec;
use crate::operator::compacted_exec::{compacted, detached};
use crate::operator::source_exec::SourceExec;

/// How often rows are divided before they are taken in pieces.
const MAX_DEPTH: usize = 5;

/// A part that has more of the rows than this in a hundred was not divided.
const STUCK_PERCENT: usize = 80;

/// The column that numbers the rows of the right side.
const NUMBER: &str = "#row";

/// One after another.
enum Work {
    Pair(Pair),
    /// The rest of a side that is taken in pieces.
    Pieces {
        build: SendableRecordBatchStream,
        other: Part,
        /// The right side is in pieces.
        is_right: bool,
    },
}

struct Pair {
    left: Part,
    right: Part,
    depth: usize,
    /// Dividing its left rows did not help.
    is_stuck: bool,
}

/// A join that is run for each pair.
struct PairJoin {
    join: HashJoinExec,
    left: Arc<Side>,
    right: Arc<Side>,
    context: Arc<TaskContext>,
}

/// Work that is left for one or all partitions.
type Queue = Arc<Mutex<VecDeque<Work>>>;

/// Both sides of a join, in files.
pub(super) struct Pairs {
    pair_join: Arc<PairJoin>,
    /// One for each partition if the order of its rows is kept, else one for all.
    queues: Vec<Queue>,
    in_order: bool,
    schema: SchemaRef,
    fetch: Option<usize>,
}

impl Pairs {
    /// Divides the rows of the left side, those that are held and the rest, and then those of the right side.
    pub(super) async fn divide(
        join: Arc<HashJoinExec>,
        in_order: bool,
        held: Held,
        rest: SendableRecordBatchStream,
        context: Arc<TaskContext>,
    ) -> Result<Pairs> {
        let pair_join = Arc::new(PairJoin::new(&join, in_order, &context)?);
        let left = divide_rows(&pair_join.left, 0, held, rest, &context).await?;
        let right = divide_right(&join, in_order, &pair_join.right, &context).await?;
        let queues = match in_order {
            true => right
                .into_iter()
                .map(|right| queue(pairs_of(left.parts.clone(), right.parts, 0)))
                .collect(),
            false => vec![queue(all_pairs(&join, left, right))],
        };
        Ok(Pairs {
            pair_join,
            queues,
            in_order,
            schema: join.schema(),
            fetch: join.fetch(),
        })
    }

    /// The rows of one partition.
    pub(super) fn rows(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let run = Run {
            pair_join: Arc::clone(&self.pair_join),
            queue: Arc::clone(&self.queues[partition % self.queues.len()]),
            stack: Vec::new(),
            current: None,
        };
        let rows = stream::try_unfold(run, |mut run| async move {
            let batch = run.next().await?;
            Ok(batch.map(|batch| (batch, run)))
        });
        let joined = self.pair_join.join.schema();
        let mut rows: SendableRecordBatchStream =
            Box::pin(RecordBatchStreamAdapter::new(Arc::clone(&joined), rows));
        if self.in_order {
            let number = Column::new(NUMBER, joined.fields().len() - 1);
            let order = LexOrdering::new([PhysicalSortExpr::new_default(Arc::new(number))]);
            let order = order.ok_or_else(|| internal_datafusion_err!("an empty order"))?;
            let sort = SortExec::new(order, Arc::new(SourceExec::new(joined, compacted(rows))));
            rows = sort.execute(0, context)?;
        }
        let schema = Arc::clone(&self.schema);
        let rows = rows.map(move |batch| {
            let batch = batch?;
            let columns = batch.columns()[..schema.fields().len()].to_vec();
            // There may be no column.
            let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
            let schema = Arc::clone(&schema);
            Ok(RecordBatch::try_new_with_options(
                schema, columns, &options,
            )?)
        });
        let rows: SendableRecordBatchStream = Box::pin(RecordBatchStreamAdapter::new(
            Arc::clone(&self.schema),
            rows,
        ));
        Ok(match self.fetch {
            Some(fetch) => first_rows(rows, fetch),
            None => rows,
        })
    }
}

fn queue(pairs: Vec<Pair>) -> Queue {
    let work = pairs.into_iter().map(Work::Pair);
    Arc::new(Mutex::new(work.collect()))
}

fn pairs_of(left: Vec<Part>, right: Vec<Part>, depth: usize) -> Vec<Pair> {
    let rows: usize = left.iter().map(|part| part.rows).sum();
    let pairs = left.into_iter().zip(right);
    pairs
        .map(|(left, right)| Pair {
            is_stuck: depth >= MAX_DEPTH || left.rows * 100 > rows * STUCK_PERCENT,
            left,
            right,
            depth,
        })
        .collect()
}

/// The pairs of a join that keeps no order, over all partitions of the right side.
fn all_pairs(join: &HashJoinExec, left: Divided, right: Vec<Divided>) -> Vec<Pair> {
    let nothing = right.iter().all(|right| right.rows() == 0);
    if join.null_aware && right.iter().any(|right| right.nulls.rows > 0) {
        return Vec::new();
    }
    let mut parts = vec![Part::default(); left.parts.len()];
    for divided in right {
        for (part, more) in parts.iter_mut().zip(divided.parts) {
            part.rows += more.rows;
            part.files.extend(more.files);
        }
    }
    let mut pairs = pairs_of(left.parts, parts, 0);
    if join.null_aware && nothing {
        // NULL is not in nothing.
        pairs.extend(pairs_of(vec![left.nulls], vec![Part::default()], MAX_DEPTH));
    }
    pairs
}

/// Divides rows that are held and those that follow them.
async fn divide_rows(
    side: &Arc<Side>,
    depth: usize,
    held: Held,
    rest: SendableRecordBatchStream,
    context: &TaskContext,
) -> Result<Divided> {
    let mut divider = Divider::new(side, depth, context);
    let (batches, reservation) = held.into_batches();
    for batch in batches {
        divider.add(&batch)?;
    }
    drop(reservation);
    divider.add_all(rest).await?;
    divider.finish()
}

/// Divides the rows of each partition of the right side, all at the same time.
async fn divide_right(
    join: &HashJoinExec,
    in_order: bool,
    side: &Arc<Side>,
    context: &Arc<TaskContext>,
) -> Result<Vec<Divided>> {
    let partitions = join.right().output_partitioning().partition_count();
    let mut tasks = JoinSet::new();
    for partition in 0..partitions {
        let rows = join.right().execute(partition, Arc::clone(context))?;
        let rows = match in_order {
            true => numbered(rows, Arc::clone(&side.schema)),
            false => rows,
        };
        let mut divider = Divider::new(side, 0, context);
        tasks.spawn(async move {
            divider.add_all(rows).await?;
            Ok::<_, datafusion_common::DataFusionError>((partition, divider.finish()?))
        });
    }
    let mut divided: Vec<Option<Divided>> = (0..partitions).map(|_| None).collect();
    while let Some(ended) = tasks.join_next().await {
        let ended = ended.map_err(|error| internal_datafusion_err!("a hash join: {error}"))?;
        let (partition, parts) = ended?;
        divided[partition] = Some(parts);
    }
    Ok(divided.into_iter().flatten().collect())
}

/// The rows with their numbers.
fn numbered(rows: SendableRecordBatchStream, schema: SchemaRef) -> SendableRecordBatchStream {
    let mut next = 0;
    let with_numbers = Arc::clone(&schema);
    let rows = rows.map(move |batch| {
        let batch = batch?;
        let end = next + batch.num_rows() as u64;
        let numbers: ArrayRef = Arc::new(UInt64Array::from_iter_values(next..end));
        next = end;
        let columns = batch.columns().iter().cloned().chain([numbers]);
        Ok(RecordBatch::try_new(
            Arc::clone(&with_numbers),
            columns.collect(),
        )?)
    });
    Box::pin(RecordBatchStreamAdapter::new(schema, rows))
}

fn first_rows(rows: SendableRecordBatchStream, fetch: usize) -> SendableRecordBatchStream {
    let schema = rows.schema();
    let rows = stream::try_unfold((rows, fetch), |(mut rows, left)| async move {
        if left == 0 {
            return Ok(None);
        }
        let Some(batch) = rows.try_next().await? else {
            return Ok(None);
        };
        let taken = batch.num_rows().min(left);
        Ok(Some((batch.slice(0, taken), (rows, left - taken))))
    });
    Box::pin(RecordBatchStreamAdapter::new(schema, rows))
}

impl PairJoin {
    fn new(join: &HashJoinExec, in_order: bool, context: &Arc<TaskContext>) -> Result<PairJoin> {
        let (left_keys, right_keys): (Vec<PhysicalExprRef>, Vec<_>) =
            join.on().iter().cloned().unzip();
        let left_schema = join.left().schema();
        let right_schema = match in_order {
            true => with_number(&join.right().schema()),
            false => join.right().schema(),
        };
        let builder = join.builder().reset_state();
        let mut builder = builder
            .with_fetch(None)
            .with_null_aware(false)
            .with_new_children(vec![
                Arc::new(SourceExec::without_rows(Arc::clone(&left_schema))),
                Arc::new(SourceExec::without_rows(Arc::clone(&right_schema))),
            ])?
            .recompute_properties();
        if in_order {
            builder = builder.with_projection(Some(projection_with_number(join)));
        }
        let side = |schema, keys| {
            let mut side = Side::new(schema, keys, join.null_equality(), context);
            side.nulls_apart = join.null_aware;
            Arc::new(side)
        };
        Ok(PairJoin {
            left: side(left_schema, left_keys),
            right: side(right_schema, right_keys),
            join: builder.build()?,
            context: Arc::clone(context),
        })
    }

    /// Whether such a pair has no rows to deliver.
    fn is_in_vain(&self, pair: &Pair) -> bool {
        use JoinType::{Full, Left, LeftAnti, LeftMark, Right, RightAnti, RightMark};
        let needs_left = !matches!(self.join.join_type(), Full | Right | RightAnti | RightMark);
        let needs_right = !matches!(self.join.join_type(), Full | Left | LeftAnti | LeftMark);
        (needs_left && pair.left.rows == 0) || (needs_right && pair.right.rows == 0)
    }

    /// Whether a row of the right side has to meet all rows of the left side at once.
    fn is_about_right(&self) -> bool {
        use JoinType::{Right, RightAnti, RightMark, RightSemi};
        matches!(
            self.join.join_type(),
            Right | RightAnti | RightMark | RightSemi
        )
    }

    /// Joins rows that are held with those of the other side.
    fn run(&self, held: Held, other: &Part, is_right: bool) -> Result<SendableRecordBatchStream> {
        let Build { rows, grant } = held.into_build()?;
        let (built, streamed) = match is_right {
            false => (&self.left, &self.right),
            true => (&self.right, &self.left),
        };
        let build: Arc<dyn ExecutionPlan> =
            Arc::new(SourceExec::new(Arc::clone(&built.schema), rows));
        let streamed = SourceExec::new(Arc::clone(&streamed.schema), streamed.read(other));
        let context = Arc::clone(&self.context);
        let streamed: Arc<dyn ExecutionPlan> =
            Arc::new(InContextExec::new(Arc::new(streamed), context, &grant));
        let children = match is_right {
            false => vec![build, streamed],
            true => vec![streamed, build],
        };
        let builder = self.join.builder().reset_state();
        let join = builder.with_new_children(children)?.build()?;
        let join: Arc<dyn ExecutionPlan> = match is_right {
            false => Arc::new(join),
            true => join.swap_inputs(PartitionMode::CollectLeft)?,
        };
        join.execute(0, grant.context(&self.context))
    }
}

/// The schema of the right side with the numbers of its rows.
fn with_number(schema: &SchemaRef) -> SchemaRef {
    let number = Arc::new(Field::new(NUMBER, DataType::UInt64, false));
    let fields = schema.fields().iter().cloned().chain([number]);
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}

/// The columns that a join delivers, and the number of the row of its right side.
fn projection_with_number(join: &HashJoinExec) -> Vec<usize> {
    let right = join.right().schema().fields().len();
    let number = match join.join_type() {
        JoinType::RightSemi | JoinType::RightAnti | JoinType::RightMark => right,
        _ => join.left().schema().fields().len() + right,
    };
    let columns: Vec<usize> = match &join.projection {
        Some(projection) => projection.to_vec(),
        None => (0..join.join_schema().fields().len()).collect(),
    };
    // The mark comes after the columns of the right side.
    let moved = columns.into_iter().map(|column| match column >= number {
        true => column + 1,
        false => column,
    });
    moved.chain([number]).collect()
}

/// The joins of one partition.
struct Run {
    pair_join: Arc<PairJoin>,
    queue: Queue,
    /// What comes before the queue.
    stack: Vec<Work>,
    current: Option<SendableRecordBatchStream>,
}

impl Run {
    async fn next(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            if let Some(rows) = &mut self.current {
                if let Some(batch) = rows.try_next().await? {
                    return Ok(Some(detached(batch)?));
                }
                self.current = None;
            }
            let work = self.stack.pop().or_else(|| lock(&self.queue).pop_front());
            match work {
                None => return Ok(None),
                Some(Work::Pair(pair)) => self.begin_pair(pair).await?,
                Some(Work::Pieces {
                    build,
                    other,
                    is_right,
                }) => self.begin_piece(build, other, is_right).await?,
            }
        }
    }

    async fn begin_pair(&mut self, pair: Pair) -> Result<()> {
        let pair_join = Arc::clone(&self.pair_join);
        if pair_join.is_in_vain(&pair) {
            return Ok(());
        }
        let mut rows = pair_join.left.read(&pair.left);
        let mut held = Held::new(Arc::clone(&pair_join.left.schema), &pair_join.context);
        while let Some(batch) = rows.try_next().await? {
            if held.add(batch)? {
                continue;
            }
            if !pair.is_stuck {
                return self.divide(pair, held, rows).await;
            }
            if pair_join.is_about_right() {
                drop((held, rows));
                self.stack.push(Work::Pieces {
                    build: pair_join.right.read(&pair.right),
                    other: pair.left,
                    is_right: true,
                });
                return Ok(());
            }
            self.current = Some(pair_join.run(held, &pair.right, false)?);
            self.stack.push(Work::Pieces {
                build: rows,
                other: pair.right,
                is_right: false,
            });
            return Ok(());
        }
        self.current = Some(pair_join.run(held, &pair.right, false)?);
        Ok(())
    }

    async fn begin_piece(
        &mut self,
        mut build: SendableRecordBatchStream,
        other: Part,
        is_right: bool,
    ) -> Result<()> {
        let pair_join = Arc::clone(&self.pair_join);
        let side = match is_right {
            true => &pair_join.right,
            false => &pair_join.left,
        };
        let mut held = Held::new(Arc::clone(&side.schema), &pair_join.context);
        let mut is_last = false;
        loop {
            let Some(batch) = build.try_next().await? else {
                is_last = true;
                break;
            };
            if !held.add(batch)? {
                break;
            }
        }
        if held.rows() > 0 {
            self.current = Some(pair_join.run(held, &other, is_right)?);
        }
        if !is_last {
            self.stack.push(Work::Pieces {
                build,
                other,
                is_right,
            });
        }
        Ok(())
    }

    /// Divides both halves of a pair.
    async fn divide(
        &mut self,
        pair: Pair,
        held: Held,
        rest: SendableRecordBatchStream,
    ) -> Result<()> {
        let pair_join = Arc::clone(&self.pair_join);
        let (context, depth) = (&pair_join.context, pair.depth + 1);
        let left = divide_rows(&pair_join.left, depth, held, rest, context).await?;
        let mut right = Divider::new(&pair_join.right, depth, context);
        right.add_all(pair_join.right.read(&pair.right)).await?;
        let pairs = pairs_of(left.parts, right.finish()?.parts, depth);
        self.stack.extend(pairs.into_iter().rev().map(Work::Pair));
        Ok(())
    }
}
