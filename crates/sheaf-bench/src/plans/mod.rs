//! How good the optimizer's choices are: each query under every plan that it can be forced into, and under the free
//! choice.
//!
//! Plans are forced by `optimizer_switch`, by index hints and by hints in comments, which are made from what EXPLAIN
//! says of the free choice: each table first, each index of each table, each method off. What EXPLAIN shows as the same
//! plan is timed once. Cold means a server that was just started; warm, the fastest of some runs after that. Where a
//! forced plan seems to be better, both are timed again, by turns, and these times count.
//!
//! Three groups: the reference queries, the 22 queries of TPC-H, and queries drawn from a seed over tables whose
//! columns are skewed, correlated with each other, and correlated with the primary key.
//!
//! A run takes hours. It writes its report after every query, and every timed plan as a line of a file beside the data.
//! A query that fails or takes too long is left out with a line that says so.

mod forces;
mod report;

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use clap::Args;
use mysql::Conn;
use mysql::prelude::Queryable;
use sheaf_cli::tpch::REFERENCE_CASES;

use crate::data;
use crate::error::BenchError;
use crate::generated_queries;
use crate::peers::{self, Server, mysql_client};

use forces::{Explained, Force};
pub use report::replace_section;

/// Options of `sheaf-bench plans`.
#[derive(Args)]
pub struct Options {
    /// TPC-H scale factor.
    #[arg(long, default_value_t = 1.0)]
    scale: f64,
    /// Buffer pools; each is measured by itself.
    #[arg(long, value_delimiter = ',', default_value = "256M,4G", value_parser = sheaf_cli::size::parse_size)]
    memory: Vec<usize>,
    /// Queries that are drawn.
    #[arg(long, default_value_t = 200)]
    generated: usize,
    /// Rows of the larger of the tables that they read.
    #[arg(long, default_value_t = 600_000)]
    rows: u64,
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Only these groups (reference, tpch, generated) or queries (generated/012).
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// Warm runs of each plan; the fastest counts.
    #[arg(long, default_value_t = 3)]
    runs: usize,
    /// Seconds that the free choice of a query gets.
    #[arg(long, default_value_t = 60)]
    limit: u64,
    /// Minutes that the queries of one pool get; those for which no time is left are left out. 0: no limit.
    #[arg(long, default_value_t = 0)]
    minutes: u64,
    /// Leave out the cold runs, which need a start of the server each.
    #[arg(long)]
    warm_only: bool,
    /// Folder with TPC-H's queries, one `.sql` file each.
    #[arg(long, default_value = "crates/sheaf-cli/tests/tpch/queries")]
    queries: PathBuf,
    /// Folder for data and servers; kept, so that a second run loads nothing.
    #[arg(long)]
    work: Option<PathBuf>,
    /// File that receives the results, a section for each pool; `-` prints them only.
    #[arg(long, default_value = "docs/plans.md")]
    out: String,
}

/// A choice is good if it takes no more than so many times as long as the best plan.
const GOOD: f64 = 1.25;

/// And never may it take longer than this.
const WORST: f64 = 3.0;

/// Differences below this are noise, in seconds.
const NOISE_SECONDS: f64 = 0.001;

/// A forced plan is stopped after so many times the time of the free choice: it is no better then.
const GIVE_UP_FACTOR: f64 = 4.0;

/// And never before this time.
const LEAST_LIMIT: Duration = Duration::from_millis(1_000);

/// A plan that took so many times as long as the best one is not run again.
const HOPELESS_FACTOR: f64 = 2.0;

/// Turns in which a better plan and the free choice are timed again.
const WARM_TURNS: usize = 5;
const COLD_TURNS: usize = 3;

/// What a connection waits beyond the limit of its statement before the server is taken to hang.
const HANG: Duration = Duration::from_secs(60);

/// A query to be measured.
pub struct Query {
    pub group: &'static str,
    pub name: String,
    pub database: &'static str,
    pub sql: String,
}

/// What a run took, and what the optimizer thought.
#[derive(Clone, Copy)]
struct Timed {
    elapsed: Duration,
    predicted_us: f64,
}

/// A plan, and what it took. A time is missing where the plan was stopped.
struct Measured {
    /// What leads to it.
    label: String,
    /// Tables and indexes as EXPLAIN names them.
    plan: String,
    uses_mrr: bool,
    cold: Option<Timed>,
    warm: Option<Timed>,
}

/// A query's plans, the free choice first.
struct Outcome {
    query: Query,
    plans: Vec<Measured>,
}

/// What one pool's queries did.
#[derive(Default)]
struct Results {
    outcomes: Vec<Outcome>,
    /// What went wrong, in words.
    failures: Vec<String>,
    /// Queries that are still to be measured.
    open: usize,
    planning: Vec<(String, Duration)>,
}

/// Measures and writes the report.
pub fn run(options: &Options) -> Result<(), BenchError> {
    let work = options.work.clone();
    let work = work.unwrap_or_else(|| std::env::temp_dir().join("sheaf-bench"));
    for &memory in &options.memory {
        let mut bench = Bench::open(options, &work, memory)?;
        let mut results = Results::default();
        let deadline = Instant::now() + Duration::from_secs(options.minutes * 60);
        let queries = bench.queries()?;
        let all = queries.len();
        for (number, query) in queries.into_iter().enumerate() {
            results.open = all - number;
            if options.minutes > 0 && Instant::now() > deadline {
                break;
            }
            let name = format!("{} {}", query.group, query.name);
            match bench.measure(query) {
                Ok(outcome) => {
                    eprintln!("{}/{all} {}", number + 1, report::line(&outcome));
                    results.outcomes.push(outcome);
                }
                Err(error) => {
                    eprintln!("{}/{all} {name}: {error}", number + 1);
                    results.failures.push(format!("{name}: {error}"));
                    // A server that has not survived it is started again; the next query tells whether that helps.
                    bench.restart()?;
                }
            }
            results.open -= 1;
            report::write(options, memory, &results)?;
        }
        results.planning = bench.planning_times()?;
        bench.server.stop()?;
        println!("{}", report::write(options, memory, &results)?);
    }
    Ok(())
}

struct Bench<'a> {
    options: &'a Options,
    server: Box<dyn Server>,
    /// Receives every timed plan as a line.
    lines: File,
}

impl<'a> Bench<'a> {
    fn open(options: &'a Options, work: &Path, memory: usize) -> Result<Bench<'a>, BenchError> {
        fs::create_dir_all(work).map_err(|error| BenchError::file(work, error))?;
        let data = options.scale.to_string();
        let mut servers = peers::servers(work, &data, &[], memory as u64)?;
        let server = servers.remove(0);
        let lines = work.join(format!("plans-{}-{}M.tsv", options.scale, memory >> 20));
        let lines = File::create(&lines).map_err(|error| BenchError::file(&lines, error))?;
        let mut bench = Bench {
            options,
            server,
            lines,
        };
        bench.server.start()?;
        if bench.wants_group("reference") || bench.wants_group("tpch") {
            peers::load_tpch_once(work, options.scale, bench.server.as_mut())?;
        }
        if bench.wants_group("generated") {
            bench.load_generated_once(work)?;
        }
        Ok(bench)
    }

    fn wants_group(&self, group: &str) -> bool {
        let only = &self.options.only;
        let is_of_group = |only: &String| only.split('/').next() == Some(group);
        only.is_empty() || only.iter().any(is_of_group)
    }

    fn wants(&self, query: &Query) -> bool {
        let only = &self.options.only;
        let name = format!("{}/{}", query.group, query.name);
        only.is_empty() || only.iter().any(|only| only == query.group || *only == name)
    }

    /// Makes the tables of the generated queries, unless that was done before.
    fn load_generated_once(&mut self, work: &Path) -> Result<(), BenchError> {
        let Options {
            scale, rows, seed, ..
        } = *self.options;
        let mark = work.join(format!("loaded-generated-{scale}-{rows}-{seed}"));
        if mark.exists() {
            return Ok(());
        }
        eprintln!("loading the tables of generated queries");
        self.server.recreate_database(generated_queries::DATABASE)?;
        let mut session = self.connect(generated_queries::DATABASE)?;
        for sql in generated_queries::tables(rows, seed) {
            session.query_drop(sql).map_err(failed)?;
        }
        fs::write(&mark, "").map_err(|error| BenchError::file(&mark, error))
    }

    fn connect(&self, database: &str) -> Result<Conn, BenchError> {
        mysql_client::connect("Sheaf", self.server.endpoint().port, Some(database))
    }

    fn restart(&mut self) -> Result<(), BenchError> {
        self.server.stop()?;
        self.server.start()
    }

    fn queries(&self) -> Result<Vec<Query>, BenchError> {
        let mut queries = Vec::new();
        if self.wants_group("reference") {
            // Without its hint, the scan of Q6 is Q6.
            let cases = REFERENCE_CASES.iter().filter(|case| case.name != "q6scan");
            queries.extend(cases.map(|case| Query {
                group: "reference",
                name: case.name.to_string(),
                database: mysql_client::DATABASE,
                sql: without_index_hints(case.sql),
            }));
        }
        if self.wants_group("tpch") {
            let files = data::query_files(&self.options.queries)?;
            queries.extend(files.into_iter().map(|(name, sql)| Query {
                group: "tpch",
                name,
                database: mysql_client::DATABASE,
                sql,
            }));
        }
        if self.wants_group("generated") {
            let (rows, seed) = (self.options.rows, self.options.seed);
            queries.extend(generated_queries::queries(
                self.options.generated,
                rows,
                seed,
            ));
        }
        queries.retain(|query| self.wants(query));
        Ok(queries)
    }

    /// Times the free choice and all plans that differ from it and from each other.
    ///
    /// What is chosen depends on what is in memory, so plans are compared as they are shown to be cold and warm.
    fn measure(&mut self, query: Query) -> Result<Outcome, BenchError> {
        let free = Force::free();
        if !self.options.warm_only {
            self.restart()?;
        }
        let cold = self.explain(&query, &free)?;
        let mut forces = forces::forces(&cold);
        let shapes = |bench: &Self, forces: &[Force]| -> Vec<Option<Explained>> {
            // A hint that leads to no plan is no alternative.
            let explained = forces.iter().map(|force| bench.explain(&query, force).ok());
            explained.collect()
        };
        let cold_shapes = shapes(self, &forces);
        let limit = self.limit();
        let mut outcome = vec![self.time(&query, &free, limit, None)?];
        let warm = self.explain(&query, &free)?;
        let warm_shapes = shapes(self, &forces);
        outcome[0].plan = forces::in_words(&warm);
        outcome[0].uses_mrr = forces::uses_mrr(&warm) || forces::uses_mrr(&cold);

        let both = |cold: &Explained, warm: &Explained| forces::shape(cold) + &forces::shape(warm);
        let mut known = BTreeSet::from([both(&cold, &warm)]);
        let mut timed = vec![free];
        for (force, (cold, warm)) in forces.drain(..).zip(cold_shapes.iter().zip(&warm_shapes)) {
            let (Some(cold), Some(warm)) = (cold, warm) else {
                continue;
            };
            if !known.insert(both(cold, warm)) {
                continue;
            }
            let best = fastest(&outcome, |plan| plan.warm);
            let longest = slowest(&outcome[0]).unwrap_or(limit);
            let longest = longest.mul_f64(GIVE_UP_FACTOR).max(LEAST_LIMIT);
            let mut measured = self.time(&query, &force, longest.min(limit), best)?;
            measured.plan = forces::in_words(warm);
            measured.uses_mrr = forces::uses_mrr(warm);
            outcome.push(measured);
            timed.push(force);
        }
        self.confirm(&query, &timed, &mut outcome)?;
        let outcome = Outcome {
            query,
            plans: outcome,
        };
        let lines = report::lines(&outcome);
        self.lines
            .write_all(lines.as_bytes())
            .map_err(BenchError::from_display)?;
        Ok(outcome)
    }

    /// As long as a plan seems to be better than the free choice, times both again, by turns. These times count alone:
    /// of many plans the one that had luck comes first, and seldom twice.
    fn confirm(
        &mut self,
        query: &Query,
        forces: &[Force],
        plans: &mut [Measured],
    ) -> Result<(), BenchError> {
        let mut confirmed = BTreeSet::new();
        while let Some(best) = better(plans, |plan| plan.cold).filter(|at| confirmed.insert(*at)) {
            let mut times = [None, None];
            for _ in 0..COLD_TURNS {
                for (at, known) in [0, best].into_iter().zip(&mut times) {
                    self.restart()?;
                    keep_faster(known, self.run(query, &forces[at], self.limit())?);
                }
            }
            [plans[0].cold, plans[best].cold] = times;
        }
        confirmed.clear();
        while let Some(best) = better(plans, |plan| plan.warm).filter(|at| confirmed.insert(*at)) {
            // What was read last is in memory now, of either plan.
            for at in [0, best] {
                self.run(query, &forces[at], self.limit())?;
            }
            let mut times = [None, None];
            for _ in 0..WARM_TURNS {
                for (at, known) in [0, best].into_iter().zip(&mut times) {
                    keep_faster(known, self.run(query, &forces[at], self.limit())?);
                }
            }
            [plans[0].warm, plans[best].warm] = times;
        }
        Ok(())
    }

    /// What a plan may take that nothing better is known of.
    fn limit(&self) -> Duration {
        Duration::from_secs(self.options.limit)
    }

    /// Times a plan cold and warm; the runs end when it has no chance to be better than `best`.
    fn time(
        &mut self,
        query: &Query,
        force: &Force,
        limit: Duration,
        best: Option<Duration>,
    ) -> Result<Measured, BenchError> {
        let (mut cold, mut warm) = (None, None);
        if !self.options.warm_only {
            self.restart()?;
            cold = self.run(query, force, limit)?;
        }
        // The first run of a server that was not restarted may still read.
        let first = usize::from(!self.options.warm_only);
        for run in first..=self.options.runs.max(1) {
            let Some(timed) = self.run(query, force, limit)? else {
                break;
            };
            if run > 0 {
                keep_faster(&mut warm, Some(timed));
                let hopeless = best.map(|best| best.mul_f64(HOPELESS_FACTOR));
                if hopeless.is_some_and(|hopeless| timed.elapsed > hopeless) {
                    break;
                }
            }
        }
        Ok(Measured {
            label: force.label.clone(),
            plan: String::new(),
            uses_mrr: false,
            cold,
            warm,
        })
    }

    /// Runs a query once; `None` if it took too long.
    fn run(
        &self,
        query: &Query,
        force: &Force,
        limit: Duration,
    ) -> Result<Option<Timed>, BenchError> {
        let port = self.server.endpoint().port;
        let mut session =
            mysql_client::connect_for("Sheaf", port, Some(query.database), Some(limit + HANG))?;
        for setting in &force.settings {
            session.query_drop(setting).map_err(failed)?;
        }
        let limit = self.server.limit_statements(limit);
        session.query_drop(limit).map_err(failed)?;
        let sql = force.hinted(&query.sql);
        let start = Instant::now();
        let rows: Result<Vec<mysql::Row>, mysql::Error> = session.query(sql);
        let elapsed = start.elapsed();
        match rows.map_err(failed) {
            Ok(_) => {}
            Err(BenchError::TimedOut { .. }) => return Ok(None),
            Err(error) => return Err(error),
        }
        let cost: Option<(String, String)> = session
            .query_first("show session status like 'Last_query_cost'")
            .map_err(failed)?;
        let predicted_us = cost.and_then(|(_, cost)| cost.parse().ok()).unwrap_or(0.0);
        Ok(Some(Timed {
            elapsed,
            predicted_us,
        }))
    }

    fn explain(&self, query: &Query, force: &Force) -> Result<Explained, BenchError> {
        let mut session = self.connect(query.database)?;
        for setting in &force.settings {
            session.query_drop(setting).map_err(failed)?;
        }
        let rows = session.query(format!("explain {}", force.hinted(&query.sql)));
        Ok(mysql_client::as_text(rows.map_err(failed)?))
    }

    /// What planning takes: the fastest EXPLAIN of some queries, with everything that is around it.
    fn planning_times(&self) -> Result<Vec<(String, Duration)>, BenchError> {
        const RUNS: usize = 20;
        let mut times = Vec::new();
        for query in self.queries()? {
            let is_one = query.group == "tpch" || query.name == "point";
            if !is_one {
                continue;
            }
            let mut session = self.connect(query.database)?;
            let mut fastest = Duration::MAX;
            for _ in 0..RUNS {
                let start = Instant::now();
                session
                    .query_drop(format!("explain {}", query.sql))
                    .map_err(failed)?;
                fastest = fastest.min(start.elapsed());
            }
            times.push((query.name, fastest));
        }
        Ok(times)
    }
}

/// A query without its FORCE INDEX: the choice is to be free.
fn without_index_hints(sql: &str) -> String {
    const HINT: &str = " force index (";
    let mut free = sql.to_string();
    while let Some(start) = free.find(HINT) {
        let Some(length) = free[start..].find(')') else {
            break;
        };
        free.replace_range(start..=start + length, "");
    }
    free
}

fn failed(error: mysql::Error) -> BenchError {
    BenchError::of_statement("Sheaf", error)
}

fn keep_faster(known: &mut Option<Timed>, again: Option<Timed>) {
    let is_faster = |again: &Timed| known.is_none_or(|known| again.elapsed < known.elapsed);
    if let Some(again) = again.filter(is_faster) {
        *known = Some(again);
    }
}

/// The best plan, if it is so much better than the free choice that this counts.
fn better(plans: &[Measured], time: report::Time) -> Option<usize> {
    let best = report::ratio(plans, time);
    best.filter(|(ratio, _)| *ratio > GOOD).map(|(_, at)| at)
}

/// The shortest of some plans' times.
fn fastest(plans: &[Measured], time: report::Time) -> Option<Duration> {
    let times = plans.iter().filter_map(time);
    times.map(|timed| timed.elapsed).min()
}

/// The longer of a plan's times.
fn slowest(plan: &Measured) -> Option<Duration> {
    let times = [plan.cold, plan.warm].into_iter().flatten();
    times.map(|timed| timed.elapsed).max()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_free_choice_has_no_hint() {
        assert_eq!(
            without_index_hints("select 1 from t force index (i_a) where (a = 1)"),
            "select 1 from t where (a = 1)"
        );
        assert_eq!(without_index_hints("select (1)"), "select (1)");
    }
}
