//! Whose turn it is to be parsed and planned.
//!
//! A statement takes many times its text before it runs, and it is known from the text how much about. So a long one
//! takes a share of the engine's [memory for that](sheaf_memory::planning) before it is parsed, and waits where others
//! have it. What it really takes is measured, and it keeps of its share what its plan takes while it runs.

use std::sync::{Arc, Weak};
use std::time::Duration;

use sheaf_exec::QueryRuntime;
use sheaf_memory::planning::{PlanningMemory, PlanningShare, Waiter};
use sqlparser::ast::{OptimizerHint, OptimizerHintStyle};

use crate::parser::hint::{Hint, hints_of};
use crate::parser::parsed_at_once;
use crate::parser::text_size::{TextSize, at_first_word, begins_with};
use crate::session_parts::handle::SessionHandle;

/// Statements of so much text are not looked at: what they take is measured only.
pub(crate) const SMALL_TEXT_BYTES: usize = 256;
/// What a statement takes for each token of its text, and for each query in it, until it is planned.
const TOKEN_BYTES: usize = 700;
const QUERY_BYTES: usize = 8 << 10;
/// What it takes for each token where there is no query to plan.
const PARSED_TOKEN_BYTES: usize = 150;
/// The same for literals of long lists and for their commas.
const LISTED_TOKEN_BYTES: usize = 150;

/// The share of a session's statements.
pub(crate) fn share_of(
    all: &Arc<PlanningMemory>,
    runtime: &Arc<QueryRuntime>,
    handle: &Arc<SessionHandle>,
) -> Arc<PlanningShare> {
    let waits = Waits::new(runtime, handle);
    PlanningShare::new(all, handle.memory(), Box::new(waits))
}

/// How a session's statements wait for their turn.
pub(crate) struct Waits {
    handle: Weak<SessionHandle>,
    runtime: Arc<QueryRuntime>,
}

impl Waits {
    pub(crate) fn new(runtime: &Arc<QueryRuntime>, handle: &Arc<SessionHandle>) -> Waits {
        Waits {
            handle: Arc::downgrade(handle),
            runtime: Arc::clone(runtime),
        }
    }
}

impl Waiter for Waits {
    fn shall_stop(&self) -> bool {
        let handle = self.handle.upgrade();
        handle.is_none_or(|handle| handle.should_stop_waiting())
    }

    fn most(&self) -> Duration {
        let waited = self.handle.upgrade().map(|handle| handle.memory().waited());
        let timeout = self.runtime.memory().wait_timeout();
        timeout.saturating_sub(waited.unwrap_or_default())
    }

    fn wait(&self, wait: &mut dyn FnMut()) {
        sheaf_storage::sync::waiting(wait);
    }
}

/// What a statement of this text is likely to take until it is planned.
pub(crate) fn expected_bytes(text: &str) -> usize {
    match parsed_at_once(text) {
        // A portion of the other rows is parsed beside the first one.
        Some((front, tail)) => 2 * expected_at_once(front) + expected_at_once(tail),
        None => expected_at_once(text),
    }
}

/// What a text takes that is parsed at once.
fn expected_at_once(text: &str) -> usize {
    let size = TextSize::of(text);
    let plans = size.queries > 0 || begins_with(text, &["UPDATE", "DELETE", "WITH", "EXPLAIN"]);
    let of_token = match plans {
        true => TOKEN_BYTES,
        false => PARSED_TOKEN_BYTES,
    };
    size.meaningful * of_token + size.listed * LISTED_TOKEN_BYTES + size.queries * QUERY_BYTES
}

/// Whether a statement of this text is a query, which `max_execution_time` is for.
pub(crate) fn is_query(text: &str) -> bool {
    begins_with(text, &["SELECT", "WITH", "VALUES", "TABLE"])
}

/// Whether a statement of this text takes memory to be planned and run. Those that look after the server or their
/// transaction do not: they have to go on when there is none.
pub(crate) fn takes_a_place(text: &str) -> bool {
    let changes_and_plans = [
        "INSERT", "REPLACE", "UPDATE", "DELETE", "EXPLAIN", "DESCRIBE", "DESC", "CREATE", "LOAD",
    ];
    is_query(text)
        || begins_with(text, &changes_and_plans)
        || begins_with(text, &["SET", "DO"]) && TextSize::of(text).queries > 0
}

/// What a hint of a SELECT says that it may take; zero: any time. It is asked before the statement is parsed.
pub(crate) fn hinted_limit(text: &str) -> Option<Duration> {
    const SELECT: &str = "SELECT";
    let text = at_first_word(text);
    let (first, rest) = text.split_at_checked(SELECT.len())?;
    let comment = rest.trim_ascii_start().strip_prefix("/*+")?;
    let (comment, _) = comment.split_once("*/")?;
    if !first.eq_ignore_ascii_case(SELECT) {
        return None;
    }
    let comment = OptimizerHint {
        prefix: String::new(),
        text: comment.to_string(),
        style: OptimizerHintStyle::MultiLine,
    };
    let (hints, _) = hints_of(&[comment], text);
    hints.iter().find_map(|hint| match hint {
        Hint::MaxExecutionTime { milliseconds } => Some(Duration::from_millis(*milliseconds)),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::thread;

    use arrow::array::RecordBatch;
    use sheaf_memory::StatementMemory;

    use super::*;
    use crate::error::Result;
    use crate::session_parts::status::Command;
    use crate::tests::{Bench, Collected, run};
    use crate::{CellRow, ColumnMeta, EndOfRows, OkInfo, ResultSink, SessionInfo};

    /// The share of a statement that waits for nothing.
    struct DoesNotWait;

    impl Waiter for DoesNotWait {
        fn shall_stop(&self) -> bool {
            true
        }

        fn most(&self) -> Duration {
            Duration::ZERO
        }

        fn wait(&self, _: &mut dyn FnMut()) {}
    }

    /// Takes all that large statements may have, for a statement that is being planned.
    fn take_all(bench: &Bench) -> Arc<PlanningShare> {
        let memory = bench.session.handle().memory().clone();
        let share = PlanningShare::new(bench.engine.planning(), &memory, Box::new(DoesNotWait));
        assert!(share.admit(usize::MAX, false, || ()));
        share
    }

    /// A client that takes its time: meanwhile other statements are planned.
    struct Slow {
        all: Arc<PlanningMemory>,
        memory: Arc<StatementMemory>,
        answers: usize,
    }

    impl Slow {
        fn takes_its_time(&mut self) -> Result<()> {
            let other = PlanningShare::new(&self.all, &self.memory, Box::new(DoesNotWait));
            assert!(other.admit(usize::MAX, false, || ()));
            self.answers += 1;
            Ok(())
        }
    }

    impl ResultSink for Slow {
        fn columns(&mut self, _: &[ColumnMeta]) -> Result<()> {
            self.takes_its_time()
        }

        fn rows(&mut self, _: &RecordBatch) -> Result<()> {
            self.takes_its_time()
        }

        fn end_of_rows(&mut self, _: EndOfRows) -> Result<()> {
            self.takes_its_time()
        }

        fn ok(&mut self, _: OkInfo) -> Result<()> {
            self.takes_its_time()
        }

        fn local_infile(&mut self, _: &str) -> Result<Box<dyn Read + '_>> {
            unreachable!("no file is loaded")
        }
    }

    /// A client that takes the rows of direct plans.
    struct OfRows;

    impl ResultSink for OfRows {
        fn columns(&mut self, _: &[ColumnMeta]) -> Result<()> {
            Ok(())
        }

        fn rows(&mut self, _: &RecordBatch) -> Result<()> {
            Ok(())
        }

        fn takes_rows(&self) -> bool {
            true
        }

        fn row(&mut self, _: &[ColumnMeta], _: &dyn CellRow) -> Result<()> {
            Ok(())
        }

        fn end_of_rows(&mut self, _: EndOfRows) -> Result<()> {
            Ok(())
        }

        fn ok(&mut self, _: OkInfo) -> Result<()> {
            Ok(())
        }

        fn local_infile(&mut self, _: &str) -> Result<Box<dyn Read + '_>> {
            unreachable!("no file is loaded")
        }
    }

    #[test]
    fn what_sends_its_answer_is_in_nobodys_way() {
        let mut bench = Bench::new();
        bench.ok("CREATE TABLE t (id INT PRIMARY KEY, a INT); INSERT INTO t VALUES (1, 2)");
        let mut client = Slow {
            all: Arc::clone(bench.engine.planning()),
            memory: Arc::clone(bench.session.handle().memory()),
            answers: 0,
        };
        let items = list("a + 1", 800);
        for sql in [
            format!("SELECT {items} FROM t"),
            format!("SELECT {items} FROM t FOR UPDATE"),
            format!("SELECT {} FROM t FOR UPDATE SKIP LOCKED", list("a", 800)),
            format!("SELECT SQL_CALC_FOUND_ROWS {items} FROM t LIMIT 1"),
            format!("EXPLAIN SELECT {items} FROM t"),
            format!("EXPLAIN ANALYZE SELECT {items} FROM t"),
            format!("UPDATE t SET a = GREATEST({items})"),
        ] {
            client.answers = 0;
            let answered = bench.session.execute(&sql, &mut client);
            answered.expect(&sql[..60]);
            assert!(client.answers > 0, "{}", &sql[..60]);
        }
    }

    fn list(item: &str, items: usize) -> String {
        vec![item; items].join(", ")
    }

    #[test]
    fn what_is_refused_once_is_found_out_later() {
        let mut bench = Bench::new();
        bench.ok("CREATE TABLE t (id INT PRIMARY KEY, a INT); INSERT INTO t VALUES (1, 2)");
        // Long enough to ask, and its plan is small enough to be kept.
        let direct = format!("SELECT {} FROM t WHERE id = 1", list("a", 400));
        let parsed = format!("SELECT {}, SUM(a) OVER () FROM t", list("a + 1", 800));
        let ids = [direct.as_str(), parsed.as_str()].map(|sql| {
            let prepared = bench.session.prepare(sql).expect("a statement");
            prepared.id
        });
        // Others may wait for its locks, so it does not wait long.
        bench.ok("SET GLOBAL query_memory_wait_timeout = 3600");
        bench.ok("BEGIN; UPDATE t SET a = 3");
        let taken = take_all(&bench);
        assert_eq!(bench.error(&direct), 1041);
        for id in ids {
            let refused = bench.session.execute_prepared(id, &[], &mut OfRows);
            assert_eq!(refused.map_err(|error| error.code), Err(1041));
        }
        drop(taken);
        let handle = bench.session.handle();
        let runs = || handle.commands.get(Command::Direct);
        let before = runs();
        let answered = bench.session.execute(&direct, &mut OfRows);
        assert!(answered.is_ok() && runs() == before + 1);
        for (id, is_direct) in ids.into_iter().zip([1, 0]) {
            let before = runs();
            let answered = bench.session.execute_prepared(id, &[], &mut OfRows);
            assert!(answered.is_ok() && runs() == before + is_direct, "{id}");
        }
    }

    #[test]
    fn sessions_that_keep_others_waiting_give_up_soon() {
        let mut bench = Bench::new();
        bench.ok("CREATE TABLE t (id INT PRIMARY KEY, a INT); INSERT INTO t VALUES (1, 2)");
        bench.ok("SET GLOBAL query_memory_wait_timeout = 3600");
        let large = format!("SELECT {} FROM t", list("a + 1", 800));
        let _taken = take_all(&bench);
        for locks in [
            "LOCK TABLES t READ",
            "FLUSH TABLES WITH READ LOCK",
            "BEGIN; SELECT a FROM t WHERE id = 1 FOR UPDATE",
            "BEGIN; UPDATE t SET a = 3",
        ] {
            bench.ok(locks);
            assert_eq!(bench.error(&large), 1041, "{locks}");
            bench.ok("UNLOCK TABLES");
        }
    }

    #[test]
    fn what_waits_for_a_table_gives_back_what_it_does_not_use() {
        gives_back_while_it_waits("LOCK TABLES t WRITE", "", "UNLOCK TABLES");
    }

    #[test]
    fn what_waits_for_a_row_gives_back_what_it_does_not_use() {
        for clause in [
            "FOR UPDATE",
            "WHERE id IN (SELECT id FROM test.t FOR UPDATE)",
        ] {
            gives_back_while_it_waits("BEGIN; UPDATE t SET a = 3", clause, "COMMIT");
        }
    }

    /// A large query that ends with `clause` waits for what `locks` has locked.
    fn gives_back_while_it_waits(locks: &str, clause: &str, unlocks: &str) {
        let mut bench = Bench::new();
        bench.ok("CREATE TABLE t (id INT PRIMARY KEY, a INT); INSERT INTO t VALUES (1, 2)");
        bench.ok("SET GLOBAL query_memory_wait_timeout = 3600");
        bench.ok(locks);
        let mut other = bench
            .engine
            .session(SessionInfo::default())
            .expect("a session");
        // Where an index is named there is no direct plan.
        let list = list("a + 1", 800);
        let large =
            format!("SELECT {list}, RANK() OVER (ORDER BY a) FROM test.t USE INDEX (PRIMARY)");
        let waiting = format!("{large} {clause}");
        run(&mut other, "BEGIN").expect("a transaction");
        let is_answered = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                run(&mut other, &waiting).expect("an answer");
                is_answered.store(true, Ordering::Relaxed);
            });
            while bench.engine.planning().taken_bytes() == 0 {
                assert!(!is_answered.load(Ordering::Relaxed), "{waiting}");
                thread::yield_now();
            }
            // It would be in the way of this one otherwise, which gives up soon.
            bench.ok(&large);
            assert!(!is_answered.load(Ordering::Relaxed));
            bench.ok(unlocks);
        });
        assert_eq!(bench.engine.planning().taken_bytes(), 0);
    }

    #[test]
    fn half_of_what_sessions_keep_is_not_for_trees() {
        let mut bench = Bench::new();
        bench.ok("CREATE TABLE t (id INT PRIMARY KEY, a INT); INSERT INTO t VALUES (1, 2)");
        let budget = bench.engine.kept_by_sessions().limit_bytes();
        for statement in 0..200 {
            let sql = format!(
                "SELECT {statement}, SUM(a) OVER (), {} FROM t USE INDEX (PRIMARY)",
                list("a+1", 300)
            );
            let prepared = bench.session.prepare(&sql).expect("a statement");
            for _ in 0..2 {
                let mut sink = Collected::default();
                let answered = bench.session.execute_prepared(prepared.id, &[], &mut sink);
                assert!(answered.is_ok() && sink.rows.len() == 1);
            }
        }
        let kept = bench.engine.kept_by_sessions().taken_bytes();
        assert!(
            kept > budget / 3 && kept < budget / 3 * 2,
            "{kept} of {budget}"
        );
        bench.ok(&format!("SET @v = REPEAT('x', {})", budget / 4));
    }

    #[test]
    fn what_is_planned_is_expected_to_take_more() {
        let list = |first: &str| format!("{first} {}", vec!["1"; 1000].join(", "));
        let of_values = expected_bytes(&list("INSERT INTO t VALUES"));
        let of_items = expected_bytes(&list("SELECT"));
        assert!(of_values > 100 << 10 && of_items > 3 * of_values);
        assert!(expected_bytes(&list("update t set a =")) > 3 * of_values);
        // A portion of many rows is parsed at a time.
        let rows = |count| vec!["(1, CONCAT('a', 1), NOW())"; count].join(", ");
        let of_rows = |count| expected_bytes(&format!("REPLACE t VALUES {}", rows(count)));
        assert!(of_rows(1_000) > 2 << 20 && of_rows(50_000) < 2 << 20);
        let queries = vec!["select 1"; 100].join(" union all ");
        assert!(expected_bytes(&queries) > 100 * QUERY_BYTES);
        assert!(expected_bytes("select 'select select select', selected") < 2 * QUERY_BYTES);
        // Blanks and comments are nothing.
        let spaced = "select 1".replace(' ', &" \n/* select 'em */ -- (\n# '\n".repeat(100));
        assert_eq!(expected_bytes(&spaced), expected_bytes("select 1"));
        let of_list =
            |list: String| expected_bytes(&format!("select * from t where a in ({list})"));
        let (numbers, terms) = (vec!["-1"; 1000].join(", "), vec!["b + 1"; 1000].join(", "));
        assert!(of_list(terms) > 5 * of_list(numbers));
    }

    #[test]
    fn the_limit_of_a_hint_is_known_before_the_statement_is_parsed() {
        let hinted = "SELECT /*+ MAX_EXECUTION_TIME(70) */ 1";
        assert_eq!(hinted_limit(hinted), Some(Duration::from_millis(70)));
        assert_eq!(hinted_limit("SELECT /*+ NO_ICP(t) */ 1"), None);
        let none = "(select\n/*+ NO_ICP(t) MAX_EXECUTION_TIME(0) */ 1)";
        assert_eq!(hinted_limit(none), Some(Duration::ZERO));
        for unhinted in [
            "SELECT 1",
            "UPDATE /*+ MAX_EXECUTION_TIME(70) */ t SET a = 1",
            "INSERT INTO t SELECT /*+ MAX_EXECUTION_TIME(70) */ 1",
            "SELECT '/*+ MAX_EXECUTION_TIME(70) */'",
            "SELECT (SELECT /*+ MAX_EXECUTION_TIME(70) */ 1)",
            "SELECTED /*+ MAX_EXECUTION_TIME(70) */ 1",
            "SÉLECT",
        ] {
            assert_eq!(hinted_limit(unhinted), None, "{unhinted}");
        }
        assert!(is_query("(( select 1") && !is_query("UPDATE t SET a = 1"));
    }

    #[test]
    fn what_is_planned_takes_a_place() {
        for text in [
            "SELECT(1)",
            "select*from t",
            "SELECT/*+ NO_ICP(t) */ 1",
            "/* of an application */ -- and more\n# more\nSELECT 1",
            "/*é*/select 1",
            "DESC SELECT 1",
            "SET @a = (SELECT COUNT(*) FROM t)",
            "DO (SELECT 1)",
            "WITH\tc AS (SELECT 1) SELECT 1",
        ] {
            assert!(takes_a_place(text), "{text}");
        }
        for text in [
            "SET @a = 1",
            "COMMIT",
            "KILL 1",
            "SELECTED",
            "é",
            "",
            "/* SELECT",
            "--",
        ] {
            assert!(!takes_a_place(text), "{text}");
        }
    }
}
