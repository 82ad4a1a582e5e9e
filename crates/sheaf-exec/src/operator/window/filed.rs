//! A partition in a file, and how the functions of a window get at their values without having its rows in memory.
//!
//! ```text
//!   rows as they come --> file of rows ----------------------> rows again --> rows with values
//!        |                                                     forward: running functions
//!        |--> file of numbers of equal rows (peers) ---------> PERCENT_RANK, CUME_DIST, NTILE
//!        '--> file of arguments --> backwards: functions
//!             of the rows that follow --> file of values ----> backwards again
//! ```
//!
//! A function whose frame ends at the end of the partition is one whose frame begins at its beginning, if the rows come
//! in reverse. The file of arguments is read from its end, and so is the file of what the functions make of it.

use std::collections::VecDeque;
use std::sync::Arc;

use arrow::array::{ArrayRef, Float64Array, RecordBatch, UInt64Array};
use arrow::compute::concat_batches;
use arrow::datatypes::{Field, Schema, SchemaRef};
use datafusion_common::utils::memory::get_record_batch_memory_size;
use datafusion_common::{Result, internal_datafusion_err, internal_err};
use datafusion_execution::memory_pool::MemoryReservation;
use datafusion_execution::{SendableRecordBatchStream, TaskContext};
use datafusion_physical_expr::window::WindowExpr;
use futures::TryStreamExt;

use super::back_file::BackFile;
use super::functions::{Functions, Way};
use super::peers::{Peers, PeersIn, PeersOut};
use super::rows::same;
use super::running::{Known, Running};
use crate::operator::compacted_exec::detached;
use crate::operator::row_file::RowFile;

/// See the module's comment.
pub(super) struct Filed {
    rows: RowFile,
    count: usize,
    peers: Option<PeersOut>,
    backward: Option<(Functions, BackFile)>,
    /// The columns that functions use which know no other way.
    together: Vec<RecordBatch>,
    together_bytes: usize,
    needs_together: bool,
}

impl Filed {
    pub(super) fn new(functions: &Functions, context: &TaskContext) -> Result<Filed> {
        let ways = || functions.all.iter().map(|function| &function.way);
        let backward: Vec<Arc<dyn WindowExpr>> = ways()
            .filter_map(|way| match way {
                Way::Backward(reversed) => Some(Arc::clone(reversed)),
                _ => None,
            })
            .collect();
        let ranks = ways().any(|way| matches!(way, Way::PercentRank | Way::CumeDist));
        Ok(Filed {
            rows: RowFile::new(Arc::clone(functions.input()), "window", context)?,
            count: 0,
            peers: match ranks {
                true => Some(PeersOut::new(context)?),
                false => None,
            },
            backward: match backward.is_empty() {
                true => None,
                false => Some((
                    Functions::new(&backward, functions.input())?,
                    BackFile::new(context)?,
                )),
            },
            together: Vec::new(),
            together_bytes: 0,
            needs_together: ways().any(|way| matches!(way, Way::Together)),
        })
    }

    pub(super) fn append(&mut self, functions: &Functions, rows: &RecordBatch) -> Result<()> {
        if rows.num_rows() == 0 {
            return Ok(());
        }
        self.count += rows.num_rows();
        self.rows.append(rows)?;
        if let (Some(peers), Some(first)) = (&mut self.peers, functions.all.first()) {
            let order_by = first.expr.order_by_columns(rows)?;
            let order_by: Vec<ArrayRef> = order_by.into_iter().map(|key| key.values).collect();
            peers.add(&order_by, rows.num_rows())?;
        }
        if let Some((functions, file)) = &mut self.backward {
            file.append(&detached(functions.used_columns(rows)?)?)?;
        }
        if self.needs_together {
            let used = detached(functions.used_columns(rows)?)?;
            self.together_bytes += get_record_batch_memory_size(&used);
            self.together.push(used);
        }
        Ok(())
    }

    /// Bytes of what is in memory nevertheless.
    pub(super) fn kept_bytes(&self) -> usize {
        self.together_bytes
    }

    /// The rows of the partition, which is complete. `constants`: the values of functions that have one for all rows.
    pub(super) async fn end(
        self,
        functions: &Arc<Functions>,
        constants: Vec<Option<ArrayRef>>,
        kept: &MemoryReservation,
    ) -> Result<FiledRows> {
        let reservation = kept.new_empty();
        let backward = match self.backward {
            Some((functions, file)) => Some(backward_values(&functions, file, &reservation).await?),
            None => None,
        };
        reservation.free();
        let together = match self.needs_together {
            true => {
                reservation.try_grow(functions.value_bytes(self.count) + self.together_bytes)?;
                Some(concat_batches(functions.used_schema(), &self.together)?)
            }
            false => None,
        };
        drop(self.together);
        let (mut forward, mut back) = (Vec::new(), 0);
        let mut values = Vec::with_capacity(functions.all.len());
        for (function, constant) in functions.all.iter().zip(constants) {
            values.push(match (&function.way, constant) {
                (Way::Constant, Some(value)) => FiledValues::Same(value),
                (Way::Forward, _) => {
                    forward.push(Arc::clone(&function.expr));
                    FiledValues::Forward(forward.len() - 1)
                }
                (Way::Backward(_), _) => {
                    back += 1;
                    FiledValues::Backward(back - 1)
                }
                (Way::Tiles(tiles), _) => FiledValues::Tiles(*tiles),
                (Way::PercentRank, _) => FiledValues::PercentRank,
                (Way::CumeDist, _) => FiledValues::CumeDist,
                (Way::Together, _) => match &together {
                    Some(used) => FiledValues::Each(function.expr.evaluate(used)?),
                    None => return internal_err!("a function without its arguments"),
                },
                (Way::Constant, None) => return internal_err!("a constant without a value"),
            });
        }
        drop(together);
        let forward = match forward.is_empty() {
            true => None,
            false => {
                let functions = Functions::new(&forward, functions.input())?;
                let running = Running::new(&functions)?;
                Some((functions, running))
            }
        };
        // What was computed at once stays until the last row has gone.
        let arrays = values.iter().map(|values| match values {
            FiledValues::Each(array) => array.get_array_memory_size(),
            _ => 0,
        });
        reservation.try_resize(arrays.sum())?;
        Ok(FiledRows {
            rows: Some(self.rows.read()?),
            count: self.count as i64,
            at: 0,
            forward,
            known: VecDeque::new(),
            peers: self.peers.map(PeersOut::end).transpose()?,
            backward,
            values,
            running: kept.new_empty(),
            _values: reservation,
        })
    }
}

/// What functions make of the rows of a file in reverse, which are read in reverse again.
async fn backward_values(
    functions: &Functions,
    mut file: BackFile,
    reservation: &MemoryReservation,
) -> Result<BackFile> {
    let fields = functions
        .all
        .iter()
        .map(|function| Field::new(function.expr.name(), function.data_type.clone(), true));
    let schema: SchemaRef = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
    let mut values = file.another()?;
    let mut running = Running::new(functions)?;
    let mut write = |known: Vec<Known>| -> Result<()> {
        for (_, columns) in known {
            values.append(&RecordBatch::try_new(Arc::clone(&schema), columns)?)?;
        }
        Ok(())
    };
    while let Some(rows) = file.take_last()? {
        write(running.add(functions, rows)?)?;
        reservation.try_resize(running.bytes())?;
        // Where the statement can be stopped.
        tokio::task::yield_now().await;
    }
    write(running.end(functions)?)?;
    Ok(values)
}

/// The values of one function.
enum FiledValues {
    Same(ArrayRef),
    Each(ArrayRef),
    /// Those of the running functions, and those of the functions backwards, with this number.
    Forward(usize),
    Backward(usize),
    Tiles(i64),
    PercentRank,
    CumeDist,
}

/// The rows of a file on their way out.
pub(super) struct FiledRows {
    /// None: all were read.
    rows: Option<SendableRecordBatchStream>,
    count: i64,
    /// Rows that were handed on.
    at: usize,
    forward: Option<(Functions, Running)>,
    /// Rows with the values of the running functions.
    known: VecDeque<Known>,
    peers: Option<PeersIn>,
    backward: Option<BackFile>,
    values: Vec<FiledValues>,
    /// For what the running functions hold, and for values.
    running: MemoryReservation,
    _values: MemoryReservation,
}

impl FiledRows {
    /// The next rows, and the values of the functions beside them.
    pub(super) async fn next(&mut self) -> Result<Option<Known>> {
        let Some((batch, forward)) = self.next_known().await? else {
            return Ok(None);
        };
        let rows = batch.num_rows();
        let peers = match &mut self.peers {
            Some(peers) => peers.next(rows).await?,
            None => Vec::new(),
        };
        let backward = match &mut self.backward {
            Some(file) => {
                let values = file.take_last()?;
                let values = values.filter(|values| values.num_rows() == rows);
                values
                    .ok_or_else(|| internal_datafusion_err!("rows without their values"))?
                    .columns()
                    .to_vec()
            }
            None => Vec::new(),
        };
        let values = self.values.iter().map(|values| {
            Ok(match values {
                FiledValues::Same(value) => same(value, rows)?,
                FiledValues::Each(values) => values.slice(self.at, rows),
                FiledValues::Forward(number) => Arc::clone(&forward[*number]),
                FiledValues::Backward(number) => Arc::clone(&backward[*number]),
                FiledValues::Tiles(tiles) => self.tiles(*tiles, rows),
                FiledValues::PercentRank => ranked(&peers, |peers| {
                    peers.before as f64 / (self.count - 1).max(1) as f64
                }),
                FiledValues::CumeDist => ranked(&peers, |peers| {
                    (peers.before + peers.all) as f64 / self.count as f64
                }),
            })
        });
        let values = values.collect::<Result<_>>()?;
        self.at += rows;
        Ok(Some((batch, values)))
    }

    async fn next_known(&mut self) -> Result<Option<Known>> {
        loop {
            if let Some(known) = self.known.pop_front() {
                return Ok(Some(known));
            }
            let Some(rows) = &mut self.rows else {
                return Ok(None);
            };
            let batch = rows.try_next().await?;
            let Some((functions, running)) = &mut self.forward else {
                return Ok(batch.map(|batch| (batch, Vec::new())));
            };
            match batch {
                Some(batch) => self.known.extend(running.add(functions, batch)?),
                None => {
                    self.rows = None;
                    self.known.extend(running.end(functions)?);
                }
            }
            self.running.try_resize(running.bytes())?;
        }
    }

    /// The rows are divided as equally as possible, the first tiles have one more.
    fn tiles(&self, tiles: i64, rows: usize) -> ArrayRef {
        let (least, larger) = (self.count / tiles, self.count % tiles);
        let in_larger = larger * (least + 1);
        let numbers = (self.at as i64..)
            .take(rows)
            .map(|row| match row < in_larger {
                true => row / (least + 1) + 1,
                false => larger + (row - in_larger) / least + 1,
            });
        Arc::new(UInt64Array::from_iter_values(
            numbers.map(|number| number as u64),
        ))
    }
}

/// One value for all rows that are peers.
fn ranked(peers: &[Peers], value: impl Fn(&Peers) -> f64) -> ArrayRef {
    let values = peers
        .iter()
        .flat_map(|peers| std::iter::repeat_n(value(peers), peers.rows));
    Arc::new(Float64Array::from_iter_values(values))
}
