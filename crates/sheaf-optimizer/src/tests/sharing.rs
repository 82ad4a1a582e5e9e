//! What a plan has several times: that it runs once, and that the rows are right whether it does or not.

use sheaf_exec::operator::scan_exec::ScanExec;
use sheaf_storage::Random;
use sheaf_types::Value;

use super::harness::{Lab, Rows, metric};
use crate::Trace;
use crate::json::Layout;

/// 20,000 sales of 40 shops.
fn sales() -> Lab {
    let mut lab = Lab::new();
    let mut random = Random::new(5);
    let rows = (0..20_000i64).map(|id| {
        vec![
            Value::Int(id),
            Value::Int(random.below(40) as i64),
            Value::Int(random.below(1000) as i64),
        ]
    });
    lab.table(
        "sale",
        &[
            ("id", "int", false),
            ("shop", "int", false),
            ("amount", "int", true),
        ],
        &["PRIMARY(id)"],
        rows.collect(),
    );
    let shops = (0..40i64).map(|id| vec![Value::Int(id), Value::Int(id % 3)]);
    let columns = [("id", "int", false), ("region", "int", false)];
    lab.table("shop", &columns, &["PRIMARY(id)"], shops.collect());
    lab
}

fn references(rows: &Rows) -> usize {
    rows.shown.matches("SharedExec").count()
}

fn examined(rows: &Rows) -> usize {
    metric::<ScanExec>(&rows.plan, "rows_examined")
}

const REVENUE: &str =
    "(SELECT shop, SUM(amount) AS total FROM sale WHERE amount > 10 GROUP BY shop)";

/// The same query twice.
fn best_shop() -> String {
    format!(
        "SELECT shop, total FROM {REVENUE} a WHERE total = (SELECT MAX(total) FROM {REVENUE} b)"
    )
}

/// A query that is named twice.
fn best_shop_by_name() -> String {
    format!(
        "WITH revenue AS {REVENUE} SELECT shop, total FROM revenue WHERE total = (SELECT MAX(total) FROM revenue)"
    )
}

#[test]
fn a_query_that_stands_there_twice_runs_once() {
    let mut lab = sales();
    for partitions in 1..=3 {
        lab.settings.target_partitions = partitions;
        lab.settings.switch.shared_subplans = false;
        let twice = lab.run(&best_shop());
        let named = lab.run(&best_shop_by_name());
        lab.settings.switch.shared_subplans = true;
        let once = lab.run(&best_shop());
        assert_eq!(once.text(), twice.text());
        assert_eq!(named.text(), twice.text());
        assert_eq!(
            (references(&twice), references(&once)),
            (0, 2),
            "{}",
            once.shown
        );
        assert_eq!((examined(&twice), examined(&once)), (40_000, 20_000));
        assert_eq!(named.shown.matches("CommonTableReadExec").count(), 2);
        assert_eq!(examined(&named), 20_000);
    }
}

#[test]
fn rows_that_turn_out_too_many_are_not_kept() {
    let mut lab = sales();
    for partitions in 1..=3 {
        lab.settings.target_partitions = partitions;
        lab.settings.kept_bytes = usize::MAX;
        let kept = lab.run(&best_shop());
        lab.settings.kept_bytes = 100;
        let not_kept = lab.run(&best_shop());
        assert_eq!(not_kept.text(), kept.text());
        assert_eq!(references(&not_kept), 2);
        assert_eq!(lab.run(&best_shop_by_name()).text(), kept.text());
    }
}

#[test]
fn only_what_is_the_same_each_time_is_shared() {
    let lab = sales();
    for sql in [
        // Each of them draws its own numbers.
        "SELECT COUNT(*) FROM (SELECT shop, SUM(RAND()) AS r FROM sale GROUP BY shop) a, \
         (SELECT shop, SUM(RAND()) AS r FROM sale GROUP BY shop) b WHERE a.shop = b.shop AND a.r < b.r",
        // Other conditions, other functions, other groups.
        "SELECT COUNT(*) FROM (SELECT shop, SUM(amount) AS r FROM sale WHERE id > 7 GROUP BY shop) a, \
         (SELECT shop, SUM(amount) AS r FROM sale WHERE id > 8 GROUP BY shop) b WHERE a.shop = b.shop AND a.r < b.r",
        "SELECT COUNT(*) FROM (SELECT shop, SUM(amount) AS r FROM sale GROUP BY shop) a, \
         (SELECT shop, SUM(DISTINCT amount) AS r FROM sale GROUP BY shop) b WHERE a.shop = b.shop AND a.r < b.r",
        "SELECT COUNT(*) FROM (SELECT amount, COUNT(*) AS r FROM sale GROUP BY amount) a, \
         (SELECT shop, COUNT(*) AS r FROM sale GROUP BY shop) b WHERE a.r = b.r",
        // More rows than are worth being kept.
        "SELECT COUNT(*) FROM sale a, sale b WHERE a.id = b.amount",
    ] {
        let rows = lab.run(sql);
        assert_eq!(references(&rows), 0, "{sql}\n{}", rows.shown);
    }
}

#[test]
fn an_error_of_a_shared_part_is_that_of_the_statement() {
    let lab = sales();
    let ratio = "(SELECT shop, SUM(POW(10, 400 * (amount = 999))) AS r FROM sale GROUP BY shop)";
    for (sql, operator) in [
        (
            format!("SELECT a.shop FROM {ratio} a WHERE a.r = (SELECT MAX(r) FROM {ratio} b)"),
            "SharedExec",
        ),
        (
            format!(
                "WITH ratio AS {ratio} SELECT a.shop FROM ratio a WHERE a.r = (SELECT MAX(r) FROM ratio)"
            ),
            "CommonTablesExec",
        ),
    ] {
        let (query, _) = lab.plan(&sql).unwrap();
        let shown = datafusion_physical_plan::displayable(query.plan.as_ref());
        assert!(shown.indent(false).to_string().contains(operator));
        let error = lab.try_run(&sql).err().unwrap();
        assert!(error.contains("out of range"), "{error}");
    }
}

#[test]
fn the_trace_names_what_is_saved() {
    let mut lab = sales();
    lab.trace = Trace::on(1 << 20);
    lab.plan(&best_shop()).unwrap();
    let trace = lab.trace.finish().unwrap().document.print(Layout {
        one_line: true,
        end_markers: false,
    });
    assert!(
        trace.contains("\"shared_subplans\": [{\"references\": 2, \"rows\": "),
        "{trace}"
    );
}

/// Random queries that read a query in several places, by a name and written out.
#[test]
fn the_rows_are_the_same_with_and_without_sharing() {
    let mut lab = sales();
    let mut random = Random::new(11);
    let mut shared = 0;
    for _ in 0..40 {
        let low = random.below(900);
        let group = ["shop", "amount % 17", "id % 5"][random.below(3) as usize];
        let function = ["SUM(amount)", "COUNT(*)", "MAX(id)"][random.below(3) as usize];
        let body = match random.below(3) {
            0 => format!("SELECT {group} AS k, {function} AS f FROM sale WHERE amount > {low} GROUP BY 1"),
            1 => format!(
                "SELECT region AS k, {function} AS f FROM sale, shop WHERE shop = shop.id AND amount > {low} GROUP BY region"
            )
            .replace("MAX(id)", "MAX(sale.id)"),
            _ => format!("SELECT id AS k, amount AS f FROM sale WHERE amount = {low}"),
        };
        let sql = match random.below(4) {
            0 => "SELECT k, f FROM @c x WHERE f >= (SELECT MAX(f) FROM @c y) ORDER BY k, f",
            1 => "SELECT a.k, b.f FROM @c a, @c b WHERE a.k = b.k ORDER BY 1, 2",
            2 => "SELECT k FROM @c x UNION ALL SELECT f FROM @c y ORDER BY 1 LIMIT 30",
            _ => {
                "SELECT k, f FROM @c x WHERE k IN (SELECT k FROM @c y WHERE f % 2 = 0) ORDER BY k, f"
            }
        };
        let named = format!("WITH c AS ({body}) {}", sql.replace("@c", "c"));
        let sql = sql.replace("@c", &format!("({body})"));
        lab.settings.target_partitions = 1 + random.below(3) as usize;
        lab.settings.switch.shared_subplans = false;
        let expected = lab.run(&sql).text();
        lab.settings.switch.shared_subplans = true;
        for kept_bytes in [usize::MAX, 0] {
            lab.settings.kept_bytes = kept_bytes;
            let rows = lab.run(&sql);
            assert_eq!(rows.text(), expected, "{sql}\n{}", rows.shown);
            shared += usize::from(references(&rows) > 0);
            let rows = lab.run(&named);
            assert_eq!(rows.text(), expected, "{named}\n{}", rows.shown);
        }
    }
    assert!(shared > 10, "{shared} shared");
}
