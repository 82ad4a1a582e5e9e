//! How a keyed join runs: outer rows are collected, looked up and joined, round by round.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use arrow::array::{
    ArrayRef, BooleanArray, BooleanBufferBuilder, RecordBatch, RecordBatchOptions, new_null_array,
};
use arrow::compute::{concat_batches, filter_record_batch, take};
use arrow::datatypes::SchemaRef;
use datafusion_common::{DataFusionError, Result, internal_err};
use datafusion_execution::{RecordBatchStream, SendableRecordBatchStream};
use datafusion_physical_plan::joins::utils::JoinFilter;
use datafusion_physical_plan::metrics::BaselineMetrics;
use futures::{FutureExt, Stream, StreamExt};
use sheaf_access::{AccessError, CancelFlag, KeyedLookup};
use sheaf_storage::Tree;

use crate::keyed_join::filter::keep_matches;
use crate::keyed_join::hashed_table::KeptRows;
use crate::keyed_join::held::Held;
use crate::keyed_join::join_type::{KeyedJoinType, marks_only};
use crate::keyed_join::key_encoder::KeyEncoder;
use crate::keyed_join::lookup_record::LookupRecord;
use crate::keyed_join::lookup_switch::{Making, SwitchWatch};
use crate::operator::noted_rows::NotedRows;
use crate::operator::scan_exec::{ScanCounts, access_error};

/// Outer rows of the first round of a join that starts small, and of the largest one.
pub const FIRST_SMALL_ROUND_ROWS: usize = 32;
pub const MAX_SMALL_ROUND_ROWS: usize = 1024;

/// The outer rows of the round that is being collected.
#[derive(Default)]
pub(super) struct Round {
    batches: Vec<RecordBatch>,
    rows: usize,
    bytes: usize,
}

/// The outer rows of the round whose matches are being delivered.
pub(super) struct Matching {
    outer: RecordBatch,
    /// Outer rows that had a match; not kept for inner joins.
    matched: BooleanBufferBuilder,
}

pub(super) enum State {
    Collecting(Round),
    Matching(Matching),
    /// The table that takes the place of the lookups is being made; no round has begun.
    Switching(Making),
    Finished,
}

/// Where matches are found.
pub(super) enum Inner {
    Lookup(Box<KeyedLookup>),
    Kept(KeptRows),
}

impl Inner {
    fn full(&self) -> bool {
        match self {
            Inner::Lookup(lookup) => lookup.full(),
            Inner::Kept(kept) => kept.full(),
        }
    }

    fn push(&mut self, key: &[u8], outer_row: u32) {
        match self {
            Inner::Lookup(lookup) => lookup.push(key, outer_row),
            Inner::Kept(kept) => kept.push(key, outer_row),
        }
    }
}

pub(super) struct KeyedJoinStream {
    pub(super) outer_schema: SchemaRef,
    /// `None` when it has ended.
    pub(super) outer: Option<SendableRecordBatchStream>,
    pub(super) inner: Inner,
    /// While lookups may still be stopped.
    pub(super) watch: Option<SwitchWatch>,
    pub(super) cancel: CancelFlag,
    pub(super) batch_rows: usize,
    pub(super) noted: NotedRows,
    /// Knows what its pool is asked for.
    pub(super) tree: Arc<Tree>,
    pub(super) encoder: KeyEncoder,
    /// Ranges of keys are looked up.
    pub(super) ranged: bool,
    /// Where each key is recorded.
    pub(super) record: Option<Arc<LookupRecord>>,
    pub(super) join_type: KeyedJoinType,
    pub(super) filter: Option<JoinFilter>,
    pub(super) projection: Vec<usize>,
    pub(super) schema: SchemaRef,
    /// Bytes of outer rows at which a round is full, whatever the key buffer says.
    pub(super) outer_budget: usize,
    /// Of a join that goes on in order.
    pub(super) held: Option<Held>,
    /// Outer rows of the round to come, of a join that starts small.
    pub(super) next_round_rows: Option<usize>,
    /// What is left of an outer batch that did not fit the round, or one that came before it began.
    pub(super) rest: Option<RecordBatch>,
    pub(super) state: State,
    pub(super) totals: ScanCounts,
    pub(super) baseline: BaselineMetrics,
}

impl KeyedJoinStream {
    fn poll_batch(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<RecordBatch>>> {
        let busy = self.baseline.elapsed_compute().clone();
        loop {
            match std::mem::replace(&mut self.state, State::Finished) {
                State::Collecting(round) => match ready!(self.poll_collect(round, context)) {
                    Ok(state) => self.state = state,
                    Err(error) => return Poll::Ready(Some(Err(error))),
                },
                State::Switching(mut making) => match making.poll_unpin(context) {
                    Poll::Pending => {
                        self.state = State::Switching(making);
                        return Poll::Pending;
                    }
                    Poll::Ready(Ok(table)) => {
                        if let Some(watch) = self.watch.take() {
                            watch.has_ended(table.is_some());
                        }
                        if let Some(table) = table {
                            self.inner = Inner::Kept(KeptRows::new(table, self.batch_rows));
                        }
                        self.state = State::Collecting(Round::default());
                    }
                    Poll::Ready(Err(error)) => {
                        return Poll::Ready(Some(Err(DataFusionError::Shared(error))));
                    }
                },
                State::Matching(mut matching) => {
                    let timer = busy.timer();
                    let step = self.next_matches(&mut matching);
                    drop(timer);
                    match step {
                        Err(error) => return Poll::Ready(Some(Err(error))),
                        Ok(Some(batch)) => {
                            self.state = State::Matching(matching);
                            if batch.num_rows() > 0 {
                                return Poll::Ready(Some(Ok(batch)));
                            }
                        }
                        Ok(None) => {
                            self.state = State::Collecting(Round::default());
                            match self.end_of_round(&matching) {
                                Err(error) => return Poll::Ready(Some(Err(error))),
                                Ok(Some(batch)) if batch.num_rows() > 0 => {
                                    return Poll::Ready(Some(Ok(batch)));
                                }
                                Ok(_) => {}
                            }
                        }
                    }
                }
                State::Finished => return Poll::Ready(None),
            }
        }
    }

    /// Takes outer batches until the round is full or they end, then starts the lookup.
    fn poll_collect(&mut self, mut round: Round, context: &mut Context<'_>) -> Poll<Result<State>> {
        let busy = self.baseline.elapsed_compute().clone();
        let most_rows = self.most_rows();
        let is_due = round.rows == 0 && self.is_switch_due();
        while !self.inner.full() && round.bytes < self.outer_budget && round.rows < most_rows {
            let batch = match (self.rest.take(), &mut self.outer) {
                (Some(rest), _) => rest,
                (None, None) => break,
                (None, Some(outer)) => match outer.poll_next_unpin(context) {
                    Poll::Pending => {
                        self.state = State::Collecting(round);
                        return Poll::Pending;
                    }
                    Poll::Ready(None) => {
                        self.outer = None;
                        break;
                    }
                    Poll::Ready(Some(batch)) => batch?,
                },
            };
            if is_due
                && batch.num_rows() > 0
                && let Some(watch) = &mut self.watch
            {
                // Only now it is known that the lookups would go on.
                self.rest = Some(batch);
                return Poll::Ready(Ok(State::Switching(watch.make())));
            }
            let batch = self.cut(batch, most_rows - round.rows);
            let timer = busy.timer();
            self.push_keys(&batch, round.rows)?;
            drop(timer);
            round.rows += batch.num_rows();
            round.bytes += batch.get_array_memory_size();
            round.batches.push(batch);
        }
        if round.rows == 0 {
            return Poll::Ready(Ok(State::Finished));
        }
        let timer = busy.timer();
        let outer = concat_batches(&self.outer_schema, &round.batches)?;
        drop(round);
        if matches!(self.inner, Inner::Lookup(_)) {
            self.look_up(KeyedLookup::run)?;
        }
        drop(timer);
        let mut matched = BooleanBufferBuilder::new(0);
        if self.join_type != KeyedJoinType::Inner {
            matched.append_n(outer.num_rows(), false);
        }
        Poll::Ready(Ok(State::Matching(Matching { outer, matched })))
    }

    /// Outer rows at which a round is full.
    fn most_rows(&self) -> usize {
        let watched = self.watch.as_ref().map(SwitchWatch::round_rows);
        let limits = self.next_round_rows.into_iter().chain(watched);
        limits.min().unwrap_or(usize::MAX)
    }

    /// Whether the lookups are to be stopped, if there are more outer rows.
    fn is_switch_due(&mut self) -> bool {
        match (&mut self.watch, &self.inner) {
            (Some(watch), Inner::Lookup(lookup)) => watch.is_due(&lookup.metrics()),
            _ => false,
        }
    }

    /// Pushes the keys of `batch`, whose first row is row `first` of the round.
    fn push_keys(&mut self, batch: &RecordBatch, first: usize) -> Result<()> {
        if u32::try_from(first + batch.num_rows()).is_err() {
            return internal_err!("more than 2^32 outer rows in one round");
        }
        let mut noted = self.record.as_ref().map(|record| record.noted());
        let inner = &mut self.inner;
        if self.ranged {
            return self.encoder.encode_ranges(batch, |row, range| {
                if let Some(noted) = &mut noted {
                    noted.note_range(range.start, range.end);
                }
                let outer_row = (first + row) as u32;
                match inner {
                    Inner::Lookup(lookup) => lookup.push_range(range.start, range.end, outer_row),
                    // What has the keys is found there, and the filter says what is within the bounds.
                    Inner::Kept(kept) => kept.push(range.key, outer_row),
                }
            });
        }
        self.encoder.encode(batch, |row, key| {
            if let Some(noted) = &mut noted {
                noted.note(key);
            }
            inner.push(key, (first + row) as u32);
        })
    }

    /// The first rows of an outer batch; the others are for the next round.
    fn cut(&mut self, batch: RecordBatch, rows: usize) -> RecordBatch {
        if batch.num_rows() <= rows {
            return batch;
        }
        self.rest = Some(batch.slice(rows, batch.num_rows() - rows));
        batch.slice(0, rows)
    }

    /// The next batch of joined rows; empty if these matches deliver nothing by themselves; `None` at the end of the
    /// round.
    fn next_matches(&mut self, matching: &mut Matching) -> Result<Option<RecordBatch>> {
        let found = match &mut self.inner {
            Inner::Lookup(_) => self.look_up(KeyedLookup::next_batch)?,
            Inner::Kept(kept) => {
                self.cancel.check().map_err(access_error)?;
                kept.next_batch()?
            }
        };
        let Some((rows, inner)) = found else {
            return Ok(None);
        };
        let (rows, inner) = match &self.filter {
            Some(filter) => keep_matches(filter, &matching.outer, rows, inner)?,
            None => (rows, inner),
        };
        if self.join_type != KeyedJoinType::Inner {
            for row in rows.values() {
                matching.matched.set_bit(*row as usize, true);
            }
        }
        let nothing_yet = RecordBatch::new_empty(Arc::clone(&self.schema));
        if marks_only(self.join_type) {
            return Ok(Some(nothing_yet));
        }
        let outer_columns = matching.outer.num_columns();
        let columns = self.projection.iter().map(|column| {
            if *column < outer_columns {
                Ok(take(matching.outer.column(*column), &rows, None)?)
            } else {
                Ok(Arc::clone(inner.column(*column - outer_columns)))
            }
        });
        let columns = columns.collect::<Result<Vec<ArrayRef>>>()?;
        let joined = self.batch(columns, rows.len())?;
        match &mut self.held {
            Some(held) => held.push(rows, joined).map(|()| Some(nothing_yet)),
            None => Ok(Some(joined)),
        }
    }

    /// Lets the access method work, and books what it did.
    fn look_up<T>(
        &mut self,
        work: impl FnOnce(&mut KeyedLookup) -> std::result::Result<T, AccessError>,
    ) -> Result<T> {
        let Inner::Lookup(lookup) = &mut self.inner else {
            return internal_err!("a keyed join has given its lookups up");
        };
        let before = self.tree.thread_page_work();
        let outcome = work(lookup).map_err(access_error);
        let pages = self.tree.thread_page_work().since(before);
        self.totals.record_pages(pages);
        self.totals.record(&lookup.metrics());
        if let Some(watch) = &mut self.watch {
            watch.add_pages(pages);
        }
        outcome
    }

    /// What is delivered at the end of a round. The next one is to be twice as long, if this one was small.
    fn end_of_round(&mut self, matching: &Matching) -> Result<Option<RecordBatch>> {
        if let Some(rows) = &mut self.next_round_rows {
            *rows = (*rows * 2).min(MAX_SMALL_ROUND_ROWS);
        }
        let marked = self.marked_rows(matching)?;
        let Some(held) = &mut self.held else {
            return Ok(marked);
        };
        if let Some(unmatched) = marked {
            let matched = matching.matched.finish_cloned();
            let numbers = (0..).zip(matched.iter());
            let numbers = numbers.filter(|(_, matched)| !matched).map(|(row, _)| row);
            held.push(numbers.collect::<Vec<u32>>().into(), unmatched)?;
        }
        held.take(&self.schema).map(Some)
    }

    /// The outer rows that are delivered for having, or not having, matched.
    fn marked_rows(&self, matching: &Matching) -> Result<Option<RecordBatch>> {
        let matched = || BooleanArray::new(matching.matched.finish_cloned(), None);
        let keep = match self.join_type {
            KeyedJoinType::Inner => return Ok(None),
            KeyedJoinType::Mark => None,
            KeyedJoinType::Semi => Some(matched()),
            KeyedJoinType::Anti | KeyedJoinType::LeftOuter => {
                Some(arrow::compute::not(&matched())?)
            }
        };
        let outer = match &keep {
            Some(keep) => filter_record_batch(&matching.outer, keep)?,
            None => matching.outer.clone(),
        };
        let rows = outer.num_rows();
        let outer_columns = outer.num_columns();
        let columns =
            self.projection
                .iter()
                .zip(self.schema.fields())
                .map(|(column, field)| -> ArrayRef {
                    if *column < outer_columns {
                        Arc::clone(outer.column(*column))
                    } else if self.join_type == KeyedJoinType::Mark {
                        Arc::new(matched())
                    } else {
                        new_null_array(field.data_type(), rows)
                    }
                });
        let columns = columns.collect();
        Ok(Some(self.batch(columns, rows)?))
    }

    fn batch(&self, columns: Vec<ArrayRef>, rows: usize) -> Result<RecordBatch> {
        let rows = RecordBatchOptions::new().with_row_count(Some(rows));
        Ok(RecordBatch::try_new_with_options(
            Arc::clone(&self.schema),
            columns,
            &rows,
        )?)
    }
}

impl Stream for KeyedJoinStream {
    type Item = Result<RecordBatch>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let poll = self.poll_batch(context);
        if let Poll::Ready(Some(Ok(batch))) = &poll {
            self.noted.note(batch);
        }
        self.baseline.record_poll(poll)
    }
}

impl RecordBatchStream for KeyedJoinStream {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }
}
