//! Some hundred crashes; the long form is the program `torture` of sheaf-bench.

use sheaf_torture::{Summary, torture};

/// `SHEAF_TORTURE_SEEDS=1000..2000` runs others than these.
#[test]
fn what_was_acknowledged_survives_every_crash_and_nothing_else_does() {
    let range = std::env::var("SHEAF_TORTURE_SEEDS").ok().and_then(|range| {
        let (start, end) = range.split_once("..")?;
        Some(start.parse().ok()?..end.parse().ok()?)
    });
    let mut total = Summary::default();
    for seed in range.unwrap_or(0..100u64) {
        total += torture(seed);
    }
    eprintln!("{total:?}");
    assert!(total.crashes > 0 && total.commits > 0);
}

#[test]
fn a_run_is_a_function_of_its_seed() {
    for seed in 0..4 {
        assert_eq!(torture(seed), torture(seed));
    }
}
