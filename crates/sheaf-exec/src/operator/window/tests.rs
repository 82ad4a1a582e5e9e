//! Windows over any partitions, in any memory, say what DataFusion's operators say.

use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, RecordBatch, StringViewArray};
use arrow::compute::concat_batches;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use arrow::util::pretty::pretty_format_batches;
use datafusion_common::ScalarValue;
use datafusion_expr::{WindowFrame, WindowFrameBound, WindowFrameUnits, WindowFunctionDefinition};
use datafusion_functions_aggregate::count::count_udaf;
use datafusion_functions_aggregate::min_max::{max_udaf, min_udaf};
use datafusion_functions_aggregate::sum::sum_udaf;
use datafusion_functions_window::cume_dist::cume_dist_udwf;
use datafusion_functions_window::lead_lag::{lag_udwf, lead_udwf};
use datafusion_functions_window::nth_value::{first_value_udwf, last_value_udwf, nth_value_udwf};
use datafusion_functions_window::ntile::ntile_udwf;
use datafusion_functions_window::rank::{dense_rank_udwf, percent_rank_udwf, rank_udwf};
use datafusion_functions_window::row_number::row_number_udwf;
use datafusion_physical_expr::expressions::{Column, lit};
use datafusion_physical_expr::{LexOrdering, PhysicalSortExpr};
use datafusion_physical_plan::sorts::sort::SortExec;
use datafusion_physical_plan::windows::create_window_expr;
use sheaf_access::CancelFlag;
use sheaf_storage::TempSpace;

use super::*;
use crate::ExecError;
use crate::memory_consumers::out_of_memory_in;
use crate::operator::compacted_exec::detached;
use crate::operator::values_exec::ValuesExec;
use crate::runtime::{QueryRuntime, RuntimeOptions};

const LITTLE: usize = 2 << 20;
const MUCH: usize = 1 << 30;
const BATCH_ROWS: usize = 256;

fn schema() -> SchemaRef {
    Arc::new(Schema::new(vec![
        Field::new("part", DataType::Int64, true),
        Field::new("number", DataType::Int64, true),
        Field::new("text", DataType::Utf8View, true),
    ]))
}

fn column(index: usize) -> Arc<dyn PhysicalExpr> {
    Arc::new(Column::new(schema().field(index).name(), index))
}

fn order() -> PhysicalSortExpr {
    PhysicalSortExpr::new_default(column(1))
}

/// Rows of partitions with these lengths, in the order of partitions and numbers, some numbers and texts more than
/// once.
fn sorted(lengths: &[usize]) -> Arc<dyn ExecutionPlan> {
    let (mut parts, mut numbers, mut texts) = (Vec::new(), Vec::new(), Vec::new());
    for (part, length) in lengths.iter().enumerate() {
        for row in 0..*length {
            let random = (part * 7919 + row * 104_729) % 1009;
            parts.push((part > 0).then_some(part as i64));
            numbers.push((row > 0).then_some(row as i64 / 3));
            texts.push((random % 11 > 0).then(|| format!("a text that is not short {random}")));
        }
    }
    let columns: Vec<ArrayRef> = vec![
        Arc::new(Int64Array::from(parts)),
        Arc::new(Int64Array::from(numbers)),
        Arc::new(StringViewArray::from_iter(texts)),
    ];
    let all = RecordBatch::try_new(schema(), columns).expect("columns of one length");
    let batches = (0..all.num_rows()).step_by(BATCH_ROWS).map(|start| {
        let length = BATCH_ROWS.min(all.num_rows() - start);
        detached(all.slice(start, length)).expect("a batch")
    });
    let values = ValuesExec::new(schema(), batches.collect());
    // By the texts as well, so that there is one order.
    let text = PhysicalSortExpr::new_default(column(2));
    let keys = LexOrdering::new([PhysicalSortExpr::new_default(column(0)), order(), text]);
    Arc::new(SortExec::new(keys.expect("keys"), Arc::new(values)))
}

fn frame(units: WindowFrameUnits, start: WindowFrameBound, end: WindowFrameBound) -> WindowFrame {
    WindowFrame::new_bounds(units, start, end)
}

/// A function with its arguments and its frame; `None`: without ORDER BY.
type Function = (
    WindowFunctionDefinition,
    Vec<Arc<dyn PhysicalExpr>>,
    Option<WindowFrame>,
);

fn functions() -> Vec<Function> {
    use WindowFrameBound::{CurrentRow, Following, Preceding};
    use WindowFrameUnits::{Range, Rows};
    use WindowFunctionDefinition::{AggregateUDF, WindowUDF};
    let rows = |number: u64| ScalarValue::UInt64(Some(number));
    let values = |number: i64| ScalarValue::Int64(Some(number));
    let (all_rows, all_values) = (ScalarValue::UInt64(None), ScalarValue::Int64(None));
    let so_far = || frame(Range, Preceding(all_values.clone()), CurrentRow);
    let everything = || {
        frame(
            Rows,
            Preceding(all_rows.clone()),
            Following(all_rows.clone()),
        )
    };
    let last = || frame(Rows, Preceding(rows(5)), CurrentRow);
    let around = || frame(Rows, Preceding(rows(2)), Following(rows(3)));
    let near = || frame(Range, Preceding(values(1)), Following(values(2)));
    let rest = || frame(Rows, CurrentRow, Following(all_rows.clone()));
    let to_end = || frame(Rows, Preceding(rows(2)), Following(all_rows.clone()));
    let earlier = || frame(Rows, Preceding(rows(9)), Preceding(rows(4)));
    let (number, text) = (|| vec![column(1)], || vec![column(2)]);
    vec![
        (AggregateUDF(max_udaf()), text(), None),
        (AggregateUDF(min_udaf()), text(), Some(everything())),
        (AggregateUDF(count_udaf()), text(), None),
        (AggregateUDF(sum_udaf()), number(), Some(so_far())),
        (AggregateUDF(max_udaf()), text(), Some(so_far())),
        (AggregateUDF(sum_udaf()), number(), Some(last())),
        (AggregateUDF(sum_udaf()), number(), Some(around())),
        (AggregateUDF(sum_udaf()), number(), Some(near())),
        (AggregateUDF(sum_udaf()), number(), Some(rest())),
        (AggregateUDF(count_udaf()), text(), Some(earlier())),
        (WindowUDF(row_number_udwf()), vec![], Some(so_far())),
        (WindowUDF(rank_udwf()), vec![], Some(so_far())),
        (WindowUDF(dense_rank_udwf()), vec![], Some(so_far())),
        (WindowUDF(percent_rank_udwf()), vec![], Some(so_far())),
        (WindowUDF(cume_dist_udwf()), vec![], Some(so_far())),
        (WindowUDF(ntile_udwf()), vec![lit(3i64)], Some(so_far())),
        (
            WindowUDF(lag_udwf()),
            vec![column(2), lit(3i64)],
            Some(so_far()),
        ),
        (
            WindowUDF(lead_udwf()),
            vec![column(2), lit(2i64)],
            Some(so_far()),
        ),
        (WindowUDF(first_value_udwf()), text(), Some(so_far())),
        (WindowUDF(first_value_udwf()), text(), Some(around())),
        (WindowUDF(last_value_udwf()), text(), Some(so_far())),
        (WindowUDF(last_value_udwf()), text(), Some(everything())),
        (
            WindowUDF(nth_value_udwf()),
            vec![column(2), lit(2i64)],
            Some(so_far()),
        ),
        (AggregateUDF(max_udaf()), text(), Some(rest())),
        (WindowUDF(last_value_udwf()), text(), Some(to_end())),
        (WindowUDF(first_value_udwf()), text(), Some(everything())),
        (
            WindowUDF(nth_value_udwf()),
            vec![column(2), lit(20_000i64)],
            Some(everything()),
        ),
    ]
}

/// DataFusion's operator for some of the [`functions`], all with ORDER BY or none.
fn window(which: &[usize], is_partitioned: bool, lengths: &[usize]) -> Arc<dyn ExecutionPlan> {
    window_that(which, is_partitioned, lengths, false)
}

/// The same, of functions that may pass over NULL.
fn window_that(
    which: &[usize],
    is_partitioned: bool,
    lengths: &[usize],
    ignores_nulls: bool,
) -> Arc<dyn ExecutionPlan> {
    let all = functions();
    let partition_by = if is_partitioned {
        vec![column(0)]
    } else {
        vec![]
    };
    let expressions: Vec<Arc<dyn WindowExpr>> = which
        .iter()
        .map(|which| {
            let (function, arguments, frame) = &all[*which];
            let order_by = if frame.is_some() {
                vec![order()]
            } else {
                vec![]
            };
            let frame = frame.clone().unwrap_or_else(|| WindowFrame::new(None));
            create_window_expr(
                function,
                format!("f{which}"),
                arguments,
                &partition_by,
                &order_by,
                Arc::new(frame),
                schema(),
                ignores_nulls,
                false,
                None,
            )
            .expect("a function")
        })
        .collect();
    let input = match is_partitioned {
        true => sorted(lengths),
        // It is sorted by the numbers as well.
        false => sorted(&lengths[..1]),
    };
    match expressions.iter().all(|expr| expr.uses_bounded_memory()) {
        true => Arc::new(
            BoundedWindowAggExec::try_new(expressions, input, InputOrderMode::Sorted, false)
                .expect("a window"),
        ),
        false => Arc::new(WindowAggExec::try_new(expressions, input, false).expect("a window")),
    }
}

struct Run {
    runtime: Arc<QueryRuntime>,
    temp_space: Arc<TempSpace>,
    _directory: tempfile::TempDir,
}

fn runtime(query_memory_bytes: usize) -> Run {
    let directory = tempfile::tempdir().expect("a directory");
    let temp_space = TempSpace::new(directory.path(), 1 << 30);
    let runtime = QueryRuntime::new(RuntimeOptions {
        threads: 1,
        query_memory_bytes,
        temp_space: Arc::clone(&temp_space),
    });
    Run {
        runtime: runtime.expect("a runtime"),
        temp_space,
        _directory: directory,
    }
}

impl Run {
    fn rows(
        &self,
        plan: &Arc<dyn ExecutionPlan>,
        batch_rows: usize,
    ) -> std::result::Result<String, ExecError> {
        let task = self.runtime.task_context(
            "1".to_string(),
            self.runtime.session_config(batch_rows, 1),
            self.runtime
                .statement_pool(CancelFlag::new().statement_memory()),
        );
        let stream = self.runtime.run(Arc::clone(plan), task, CancelFlag::new());
        let batches = stream.collect::<std::result::Result<Vec<_>, _>>()?;
        let all = concat_batches(&plan.schema(), &batches).map_err(|error| {
            ExecError::DataFusion(datafusion_common::DataFusionError::from(error))
        })?;
        let text = pretty_format_batches(&[all]).expect("a table");
        Ok(text.to_string())
    }
}

fn ours(plan: &Arc<dyn ExecutionPlan>) -> Arc<dyn ExecutionPlan> {
    let ours = bound_windows(Arc::clone(plan)).expect("a plan");
    assert!(ours.is::<WindowExec>());
    ours
}

#[test]
fn every_function_has_the_values_of_datafusions_operators() {
    let run = runtime(MUCH);
    let shapes: [&[usize]; 4] = [
        &[40],
        &[1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1],
        &[3, 8, 1, 64, 2, 2, 7, 16, 1],
        &[100, 1, 1, 50, 30],
    ];
    for which in 0..functions().len() {
        for (shape, batch_rows) in shapes
            .iter()
            .flat_map(|shape| [1, 7, 16, 1000].map(|rows| (shape, rows)))
        {
            for is_partitioned in [true, false] {
                let theirs = window(&[which], is_partitioned, shape);
                let expected = run.rows(&theirs, batch_rows).expect("rows");
                let found = run.rows(&ours(&theirs), batch_rows).expect("rows");
                assert_eq!(
                    found, expected,
                    "function {which}, {shape:?} by {batch_rows}"
                );
            }
        }
    }
}

#[test]
fn nulls_that_are_passed_over_are_not_the_value_of_an_edge() {
    let run = runtime(MUCH);
    for which in [18, 20, 21, 22, 24, 25, 26] {
        let theirs = window_that(&[which], true, &[3, 8, 1, 64, 2], true);
        let expected = run.rows(&theirs, 16).expect("rows");
        let found = run.rows(&ours(&theirs), 16).expect("rows");
        assert_eq!(found, expected, "function {which}");
    }
}

#[test]
fn functions_of_one_window_stand_beside_each_other() {
    let run = runtime(MUCH);
    let pairs: [&[usize]; 4] = [&[0, 2], &[3, 6, 17, 22], &[1, 10, 15, 21], &[8, 13, 14, 16]];
    for which in pairs {
        for batch_rows in [5, 64] {
            let theirs = window(which, true, &[30, 1, 9, 100, 4, 4]);
            let expected = run.rows(&theirs, batch_rows).expect("rows");
            assert_eq!(
                run.rows(&ours(&theirs), batch_rows).expect("rows"),
                expected
            );
        }
    }
}

#[test]
fn a_partition_that_does_not_fit_in_memory_waits_in_a_file() {
    let (much, little) = (runtime(MUCH), runtime(LITTLE));
    // A value for all rows, NTILE beside one, ranks, frames to the end of the partition beside running functions, and
    // values of single rows.
    let all: [&[usize]; 9] = [
        &[0],
        &[1, 15],
        &[13],
        &[14, 10],
        &[8],
        &[23, 5],
        &[24, 8, 15, 13, 14, 16, 17, 3],
        &[21, 22],
        &[25, 26],
    ];
    for which in all {
        let lengths = [20, 40_000, 3, 30_000];
        let theirs = window(which, true, &lengths);
        let expected = much.rows(&theirs, 512).expect("rows");
        let found = little.rows(&ours(&theirs), 512).expect("rows");
        assert!(found == expected, "other rows for {which:?}");
        assert_eq!(little.runtime.reserved_bytes(), 0);
        assert_eq!(little.temp_space.used_bytes(), 0);
    }
}

#[test]
fn what_neither_fits_nor_spills_is_an_error_that_names_the_window() {
    let little = runtime(LITTLE);
    // The last text of all rows of a partition that is not NULL, for each of them.
    let theirs = window_that(&[21], true, &[60_000], true);
    let failed = little
        .rows(&ours(&theirs), 512)
        .expect_err("too little memory");
    assert!(failed.is_out_of_memory());
    let part = out_of_memory_in(&failed.to_string());
    assert_eq!(part, Some("a window function"), "{failed}");
    assert_eq!(little.runtime.reserved_bytes(), 0);
}

#[test]
fn frames_hold_only_the_rows_that_they_reach() {
    let little = runtime(LITTLE);
    for which in [5, 6, 7, 9, 10, 16, 17, 18, 19, 20] {
        let theirs = window(&[which], false, &[200_000]);
        let rows = little.rows(&ours(&theirs), 1024);
        assert!(rows.is_ok(), "function {which}: {:?}", rows.err());
    }
}
