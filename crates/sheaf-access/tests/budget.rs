//! Scans that may spend only so much.

mod common;

use std::sync::Arc;

use common::*;
use sheaf_access::{
    AccessError, Budget, CancelFlag, CompareOp, Condition, EncodedCondition, Fetch, IndexRef,
    Prices, Scan, ScanMetrics, ScanSpec, SessionCounters, SortKeys,
};
use sheaf_storage::KeyRange;
use sheaf_types::Value;

/// One microsecond for whatever a row or an entry takes, wherever its pages are.
const PRICES: Prices = Prices {
    key_us: 0.0,
    entry_us: 1.0,
    row_us: 1.0,
    index_condition_us: 0.0,
    jump_us: 1.0,
    lookup_us: 1.0,
    random_read_us: 0.0,
    sequential_read_us: 0.0,
};

fn scan(spec: &ScanSpec, budget: &Budget) -> Scan {
    let spec = Arc::new(spec.clone());
    let (ranges, counters) = (spec.ranges.clone(), Arc::new(SessionCounters::default()));
    let scan = Scan::new(spec, ranges, counters, CancelFlag::new());
    let scan = scan.expect("the specification is possible");
    scan.with_budget(budget.clone(), PRICES)
}

/// Runs a scan of which no row matches until it ends; true if its budget was used up.
fn is_stopped(scan: &mut Scan) -> bool {
    match scan.next_batch() {
        Ok(None) => false,
        Err(AccessError::BudgetSpent) => true,
        other => panic!("neither the end nor a spent budget: {other:?}"),
    }
}

fn spent(metrics: ScanMetrics) -> u64 {
    metrics.index_entries + metrics.rows_examined + metrics.row_lookups
}

#[test]
fn a_scan_stops_once_its_budget_is_spent() {
    let world = World::new(8 << 20);
    let table = world.create(every_kind(), &["id", "line"], &[&["a"]]);
    let mut random = Random(7);
    let rows = random_rows(&mut random, 3_000);
    world.insert(&rows);
    let nothing = EncodedCondition::Compare {
        column: ID,
        op: CompareOp::Less,
        value: Value::Int(i64::from(i32::MIN)),
    };
    let clustered = ScanSpec {
        row_condition: Some(Condition {
            encoded: Some(nothing),
            rest: None,
        }),
        ..ScanSpec::full(Arc::clone(&table), vec![ID])
    };
    let secondary = |fetch| ScanSpec {
        index: IndexRef::Secondary(0),
        ranges: vec![KeyRange::all()],
        fetch,
        projection: vec![ID, NOTE],
        ..clustered.clone()
    };
    let by_mrr = Fetch::MultiRange {
        buffer_bytes: 4 << 10,
        sort: SortKeys::Auto,
    };
    for spec in [
        clustered.clone(),
        secondary(Fetch::Lookup),
        secondary(by_mrr),
    ] {
        let budget = Budget::default();
        // Without a limit, and with one that suffices.
        assert!(!is_stopped(&mut scan(&spec, &budget)), "{spec:?}");
        let mut whole = scan(&spec, &budget);
        budget.start(1e9);
        assert!(!is_stopped(&mut whole), "{spec:?}");
        let all = spent(whole.metrics());
        assert!(all >= rows.len() as u64, "{spec:?}: {all}");

        let mut before = 0;
        for limit in [0, 100, 1_000, all / 2] {
            budget.start(limit as f64);
            let mut stopped = scan(&spec, &budget);
            assert!(is_stopped(&mut stopped), "{limit}: {spec:?}");
            let done = spent(stopped.metrics());
            assert!(done > limit && done < all, "{limit}: {done} of {all}");
            assert!(done >= before);
            assert_eq!(budget.spent_us(), done as f64);
            // It has failed; it does not go on.
            assert!(!is_stopped(&mut stopped));
            before = done;
        }

        // Two scans of one budget.
        budget.start(all as f64 * 1.5);
        assert!(!is_stopped(&mut scan(&spec, &budget)));
        let mut second = scan(&spec, &budget);
        assert!(is_stopped(&mut second), "{spec:?}");
        assert!(spent(second.metrics()) < all);
    }
}
