//! What an engine knows for its plans: the tables of cost constants, and statistics that renew themselves.

use sheaf_optimizer::CostConstants;
use sheaf_optimizer::cost::measure::Measurement;

use super::Bench;

#[test]
fn cost_constants_are_set_in_tables() {
    let mut bench = Bench::new();
    let built_in = bench.engine.costs();
    bench.engine.create_cost_tables().unwrap();
    assert_eq!(
        bench.engine.costs(),
        built_in,
        "nothing was measured, nothing set"
    );
    let constants = "SELECT cost_name, cost_value, default_value FROM mysql.engine_cost \
                     WHERE cost_name LIKE 'io%' ORDER BY cost_name";
    assert_eq!(
        bench.rows(constants),
        [
            "io_block_read_cost|NULL|NULL",
            "io_prefetched_block_read_cost|NULL|NULL",
            "io_sequential_block_read_cost|NULL|NULL",
        ]
    );
    bench.ok(
        "UPDATE mysql.engine_cost SET cost_value = 120.5 WHERE cost_name = 'io_block_read_cost'",
    );
    bench.ok("UPDATE mysql.server_cost SET default_value = 3 WHERE cost_name = 'hash_build_cost'");
    bench.ok("UPDATE mysql.server_cost SET cost_value = -1 WHERE cost_name = 'row_evaluate_cost'");
    assert_eq!(
        bench.engine.costs(),
        built_in,
        "not before they are flushed"
    );
    bench.ok("FLUSH OPTIMIZER_COSTS");
    let costs = bench.engine.costs();
    assert_eq!((costs.random_read_us, costs.hash_build_us), (120.5, 3.0));
    assert_eq!(costs.condition_us, built_in.condition_us, "-1 is no cost");
    bench.ok(
        "UPDATE mysql.engine_cost SET cost_value = DEFAULT WHERE cost_name = 'io_block_read_cost'",
    );
    bench.ok("FLUSH OPTIMIZER_COSTS");
    assert_eq!(bench.engine.costs().random_read_us, built_in.random_read_us);
    // Making them again changes nothing, and brings back what is missing.
    bench.ok("DELETE FROM mysql.server_cost WHERE cost_name = 'key_compare_cost'");
    bench.ok("DROP TABLE mysql.engine_cost");
    bench.engine.create_cost_tables().unwrap();
    assert_eq!(bench.engine.costs().hash_build_us, 3.0);
    assert_eq!(bench.rows("SELECT COUNT(*) FROM mysql.server_cost"), ["6"]);
    assert_eq!(bench.rows("SELECT COUNT(*) FROM mysql.engine_cost"), ["8"]);
}

/// A measurement that finds everything to take `factor` times as long as by default.
fn measurement(factor: f64, is_disturbed: bool) -> Measurement {
    let mut costs = CostConstants::default();
    for constant in CostConstants::ALL {
        let value = (constant.get)(&costs) * factor;
        (constant.set)(&mut costs, value);
    }
    Measurement {
        costs,
        is_disturbed,
    }
}

/// What [`Engine::measure_costs`] says when it would find this.
fn measures(bench: &Bench, found: Option<Measurement>) -> bool {
    bench.engine.measure_costs(|_| Ok(found)).unwrap()
}

#[test]
fn constants_are_measured_once() {
    let mut bench = Bench::new();
    assert!(
        !measures(&bench, Some(measurement(2.0, false))),
        "there is no table for them"
    );
    bench.engine.create_cost_tables().unwrap();
    assert!(!measures(&bench, None), "there was no time");
    assert!(measures(&bench, Some(measurement(2.0, false))));
    let measured = bench.engine.costs();
    assert!(!measures(&bench, Some(measurement(1.0, false))));
    assert_eq!(bench.engine.costs(), measured);
    let unknown = "SELECT COUNT(*) FROM mysql.engine_cost WHERE default_value IS NULL";
    assert_eq!(bench.rows(unknown), ["0"]);

    // One that a newer version brings goes with those that are known.
    bench.ok("UPDATE mysql.server_cost SET default_value = 3 * default_value");
    bench.ok("UPDATE mysql.engine_cost SET default_value = 3 * default_value");
    bench.ok(
        "UPDATE mysql.engine_cost SET default_value = NULL WHERE cost_name = 'memory_block_scan_cost'",
    );
    assert!(measures(&bench, Some(measurement(1.0, false))));
    let page_us = bench.engine.costs().page_us;
    assert!((page_us / measured.page_us - 3.0).abs() < 0.01, "{page_us}");
}

#[test]
fn disturbed_measurements_are_repeated_and_the_lower_values_kept() {
    let mut bench = Bench::new();
    bench.engine.create_cost_tables().unwrap();
    let factor = |bench: &Bench| {
        let default = CostConstants::default().random_read_us;
        (bench.engine.costs().random_read_us / default * 100.0).round() / 100.0
    };
    let provisional = "SELECT COUNT(*) FROM mysql.engine_cost WHERE comment LIKE '%next start'";
    assert!(measures(&bench, Some(measurement(5.0, true))));
    assert_eq!(factor(&bench), 5.0, "better than what another machine has");
    assert_eq!(bench.rows(provisional), ["8"]);
    assert!(measures(&bench, Some(measurement(9.0, true))));
    assert_eq!(factor(&bench), 5.0);
    assert!(measures(&bench, Some(measurement(1.5, true))));
    assert_eq!(factor(&bench), 1.5);
    assert_eq!(bench.rows(provisional), ["8"]);
    // Two that agree are believed.
    assert!(measures(&bench, Some(measurement(1.6, true))));
    assert_eq!(factor(&bench), 1.5);
    assert_eq!(bench.rows(provisional), ["0"]);
    assert!(!measures(&bench, Some(measurement(1.0, false))));
    let comment = "SELECT comment FROM mysql.engine_cost WHERE cost_name = 'io_block_read_cost'";
    assert_eq!(bench.rows(comment), ["a page at random, waited for"]);
}

#[test]
fn tables_are_analyzed_again_when_they_have_changed() {
    let mut bench = Bench::new();
    bench.ok("CREATE TABLE t (id INT PRIMARY KEY, a INT, KEY (a))");
    let cardinality = "SELECT CARDINALITY FROM information_schema.STATISTICS \
                       WHERE TABLE_SCHEMA = 'test' AND TABLE_NAME = 't' AND INDEX_NAME = 'a'";
    let fill = |bench: &mut Bench, ids: std::ops::Range<u32>, values: u32| {
        let rows: Vec<String> = ids.map(|id| format!("({id},{})", id % values)).collect();
        bench.ok(&format!("INSERT INTO t VALUES {}", rows.join(",")));
    };
    fill(&mut bench, 0..500, 10);
    assert!(!bench.engine.analyze_step().unwrap(), "too few rows");
    fill(&mut bench, 500..2000, 10);
    bench.ok("SET GLOBAL innodb_stats_auto_recalc = OFF");
    assert!(!bench.engine.analyze_step().unwrap(), "it is switched off");
    bench.ok("SET GLOBAL innodb_stats_auto_recalc = ON");
    assert!(bench.engine.analyze_step().unwrap());
    assert!(
        !bench.engine.analyze_step().unwrap(),
        "nothing changed since"
    );
    assert_eq!(bench.rows(cardinality), ["10"]);
    fill(&mut bench, 2000..4000, 50);
    assert_eq!(
        bench.rows(cardinality),
        ["10"],
        "statistics do not change by themselves"
    );
    assert!(bench.engine.analyze_step().unwrap());
    assert_eq!(bench.rows(cardinality), ["50"]);
}

/// The thread ends with the engine, also when it is the last to hold it.
#[test]
fn maintenance_ends_with_the_engine() {
    let mut bench = Bench::new();
    bench.engine.start_maintenance().unwrap();
    bench.engine.start_maintenance().unwrap();
    assert_eq!(bench.rows("SELECT COUNT(*) FROM mysql.server_cost"), ["6"]);
    bench.engine.close().unwrap();
}
