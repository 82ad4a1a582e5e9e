//! How good the optimizer's choices are: each query under every plan that it can be forced into, and under the free choice.
//!
//! Plans are forced by `optimizer_switch`, by index hints and by hints in comments, which are made from what EXPLAIN says of
//! the free choice: each table first, each index of each table, each method off. What EXPLAIN shows as the same plan is
//! timed once. Cold means a server that was just started; warm, the fastest of some runs after that.
//!
//! Three groups: the reference queries, the 22 queries of TPC-H, and queries drawn from a seed over tables whose columns are
//! skewed, correlated with each other, and correlated with the primary key.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use std::{fs, io};

use clap::Args;
use mysql::Conn;
use mysql::prelude::Queryable;
use sheaf::tpch::REFERENCE_CASES;

use crate::data;
use crate::error::BenchError;
use crate::generated_queries;
use crate::machine;
use crate::peers::{self, Server, mysql_client};

/// Options of `sheaf-bench plans`.
#[derive(Args)]
pub struct Options {
    /// TPC-H scale factor.
    #[arg(long, default_value_t = 1.0)]
    scale: f64,
    /// Buffer pools; each is measured by itself.
    #[arg(long, value_delimiter = ',', default_value = "256M,4G", value_parser = sheaf::size::parse_size)]
    memory: Vec<usize>,
    /// Queries that are drawn.
    #[arg(long, default_value_t = 200)]
    generated: usize,
    /// Rows of the larger of the tables that they read.
    #[arg(long, default_value_t = 600_000)]
    rows: u64,
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Only these groups: reference, tpch, generated.
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// Warm runs of each plan; the fastest counts.
    #[arg(long, default_value_t = 3)]
    runs: usize,
    /// Leave out the cold runs, which need a start of the server each.
    #[arg(long)]
    warm_only: bool,
    /// Folder with TPC-H's queries, one `.sql` file each.
    #[arg(long, default_value = "crates/sheaf/tests/tpch/queries")]
    queries: PathBuf,
    /// Folder for data and servers; kept, so that a second run loads nothing.
    #[arg(long)]
    work: Option<PathBuf>,
    /// File that receives the results; `-` prints them only.
    #[arg(long, default_value = "docs/plans.md")]
    out: String,
}

/// A choice is good if it takes no more than so many times as long as the best plan.
const GOOD: f64 = 1.25;

/// And never may it take longer than this.
const WORST: f64 = 3.0;

/// Differences below this are noise, in seconds.
const NOISE_SECONDS: f64 = 0.001;

/// A forced plan is given up after so many times the time of the free choice.
const GIVE_UP_FACTOR: f64 = 10.0;

/// And never before this time, in milliseconds.
const LEAST_LIMIT_MS: f64 = 2_000.0;

/// A query to be measured.
pub struct Query {
    pub group: &'static str,
    pub name: String,
    pub database: &'static str,
    pub sql: String,
}

/// A way to force a plan.
struct Force {
    label: String,
    settings: Vec<String>,
    /// For a comment after the first SELECT.
    hint: Option<String>,
}

/// A plan, and what it took.
struct Measured {
    /// What leads to it.
    label: String,
    /// By what the optimizer thinks, in microseconds.
    predicted_us: f64,
    cold: Option<Duration>,
    warm: Option<Duration>,
}

/// A query's plans, the free choice first.
struct Outcome {
    query: Query,
    plans: Vec<Measured>,
}

/// Measures and writes the report.
pub fn run(options: &Options) -> Result<(), BenchError> {
    let work = options.work.clone();
    let work = work.unwrap_or_else(|| std::env::temp_dir().join("sheaf-bench"));
    let mut report = String::new();
    for &memory in &options.memory {
        let mut bench = Bench::open(options, &work, memory)?;
        let mut outcomes = Vec::new();
        for query in bench.queries()? {
            eprintln!("{} {}", query.group, query.name);
            outcomes.push(bench.measure(query)?);
        }
        let planning = bench.planning_times()?;
        bench.server.stop()?;
        describe(&mut report, options, memory, &outcomes, &planning);
    }
    println!("{report}");
    if options.out != "-" {
        let path = Path::new(&options.out);
        let text = format!("# Plans\n\n{}\n{report}", INTRODUCTION.trim());
        fs::write(path, text).map_err(|error| BenchError::file(path, error))?;
    }
    Ok(())
}

const INTRODUCTION: &str = "
Written by `sheaf-bench plans`: each query is timed under every plan that hints and switches lead to, and under the free
choice. The *ratio* of a query is the time of the free choice over that of the best plan; differences of less than a
millisecond count as none. *Predicted* is the optimizer's cost in seconds.
";

struct Bench<'a> {
    options: &'a Options,
    server: Box<dyn Server>,
}

impl<'a> Bench<'a> {
    fn open(options: &'a Options, work: &Path, memory: usize) -> Result<Bench<'a>, BenchError> {
        let data = format!("plans-{}", options.scale);
        let mut servers = peers::servers(work, &data, &[], memory as u64)?;
        let server = servers.remove(0);
        let mut bench = Bench { options, server };
        bench.server.start()?;
        if bench.wants("reference") || bench.wants("tpch") {
            bench.load_once(work, "tpch", |bench| {
                let tbl = data::tbl_folder(work, options.scale)?;
                bench.server.load(&tbl)
            })?;
        }
        if bench.wants("generated") {
            bench.load_once(work, &format!("generated-{}", options.rows), |bench| {
                bench
                    .server
                    .recreate_database(generated_queries::DATABASE)?;
                let mut session = bench.connect(generated_queries::DATABASE)?;
                for sql in generated_queries::tables(options.rows, options.seed) {
                    session.query_drop(sql).map_err(failed)?;
                }
                Ok(())
            })?;
        }
        Ok(bench)
    }

    fn wants(&self, group: &str) -> bool {
        self.options.only.is_empty() || self.options.only.iter().any(|only| only == group)
    }

    fn load_once(
        &mut self,
        work: &Path,
        what: &str,
        load: impl FnOnce(&mut Self) -> Result<(), BenchError>,
    ) -> Result<(), BenchError> {
        let mark = work.join(format!("loaded-plans-{}-{what}", self.options.scale));
        if !mark.exists() {
            eprintln!("loading {what}");
            load(self)?;
            fs::write(&mark, "").map_err(|error| BenchError::file(&mark, error))?;
        }
        Ok(())
    }

    fn connect(&self, database: &str) -> Result<Conn, BenchError> {
        mysql_client::connect("Sheaf", self.server.endpoint().port, Some(database))
    }

    fn queries(&self) -> Result<Vec<Query>, BenchError> {
        let mut queries = Vec::new();
        if self.wants("reference") {
            queries.extend(REFERENCE_CASES.iter().map(|case| Query {
                group: "reference",
                name: case.name.to_string(),
                database: mysql_client::DATABASE,
                sql: case.sql.to_string(),
            }));
        }
        if self.wants("tpch") {
            let folder = &self.options.queries;
            let entries = fs::read_dir(folder).map_err(|error| BenchError::file(folder, error))?;
            let paths: io::Result<Vec<PathBuf>> = entries.map(|entry| Ok(entry?.path())).collect();
            let mut paths = paths.map_err(|error| BenchError::file(folder, error))?;
            paths.retain(|path| path.extension().is_some_and(|extension| extension == "sql"));
            paths.sort();
            for path in paths {
                let sql =
                    fs::read_to_string(&path).map_err(|error| BenchError::file(&path, error))?;
                let name = path
                    .file_stem()
                    .unwrap_or_default()
                    .to_string_lossy()
                    .into_owned();
                queries.push(Query {
                    group: "tpch",
                    name,
                    database: mysql_client::DATABASE,
                    sql: sql.trim().trim_end_matches(';').to_string(),
                });
            }
        }
        if self.wants("generated") {
            let (rows, seed) = (self.options.rows, self.options.seed);
            queries.extend(generated_queries::queries(
                self.options.generated,
                rows,
                seed,
            ));
        }
        Ok(queries)
    }

    /// Times the free choice and all plans that differ from it and from each other.
    fn measure(&mut self, query: Query) -> Result<Outcome, BenchError> {
        let free = Force {
            label: "free choice".to_string(),
            settings: Vec::new(),
            hint: None,
        };
        let rows = self.explain(&query, &free)?;
        let mut plans: BTreeMap<String, ()> = BTreeMap::new();
        let mut measured = Vec::new();
        let forces = forces(&rows);
        for force in std::iter::once(free).chain(forces) {
            // A hint that leads to no plan is no alternative.
            let Ok(rows) = self.explain(&query, &force) else {
                continue;
            };
            if plans.insert(shape(&rows), ()).is_some() {
                continue;
            }
            let limit = measured.first().and_then(|free: &Measured| free.warm);
            let limit_ms =
                limit.map(|free| (free.as_secs_f64() * 1e3 * GIVE_UP_FACTOR).max(LEAST_LIMIT_MS));
            measured.push(self.time(&query, force, limit_ms)?);
        }
        Ok(Outcome {
            query,
            plans: measured,
        })
    }

    fn time(
        &mut self,
        query: &Query,
        force: Force,
        limit_ms: Option<f64>,
    ) -> Result<Measured, BenchError> {
        let mut cold = None;
        if !self.options.warm_only {
            self.server.stop()?;
            self.server.start()?;
            cold = self.run(query, &force, limit_ms)?.map(|(time, _)| time);
        }
        let mut warm: Option<Duration> = None;
        let mut predicted_us = 0.0;
        for run in 0..self.options.runs.max(1) + usize::from(self.options.warm_only) {
            let Some((time, cost)) = self.run(query, &force, limit_ms)? else {
                break;
            };
            predicted_us = cost;
            // The first run of a server that was not restarted may still read.
            if run > 0 || !self.options.warm_only {
                warm = Some(warm.map_or(time, |known| known.min(time)));
            }
        }
        Ok(Measured {
            label: force.label,
            predicted_us,
            cold,
            warm,
        })
    }

    /// Runs a query once; `None` if it took too long.
    fn run(
        &self,
        query: &Query,
        force: &Force,
        limit_ms: Option<f64>,
    ) -> Result<Option<(Duration, f64)>, BenchError> {
        let mut session = self.connect(query.database)?;
        for setting in &force.settings {
            session.query_drop(setting).map_err(failed)?;
        }
        if let Some(limit_ms) = limit_ms {
            let limit = format!("set max_execution_time = {limit_ms:.0}");
            session.query_drop(limit).map_err(failed)?;
        }
        let sql = hinted(&query.sql, force);
        let start = Instant::now();
        let rows: Result<Vec<mysql::Row>, mysql::Error> = session.query(sql);
        let elapsed = start.elapsed();
        match rows {
            Ok(_) => {}
            Err(mysql::Error::MySqlError(error)) if error.code == QUERY_TIMEOUT => return Ok(None),
            Err(error) => return Err(failed(error)),
        }
        let cost: Option<(String, String)> = session
            .query_first("show session status like 'Last_query_cost'")
            .map_err(failed)?;
        let cost = cost.and_then(|(_, cost)| cost.parse().ok()).unwrap_or(0.0);
        Ok(Some((elapsed, cost)))
    }

    fn explain(
        &self,
        query: &Query,
        force: &Force,
    ) -> Result<Vec<Vec<Option<String>>>, BenchError> {
        let mut session = self.connect(query.database)?;
        for setting in &force.settings {
            session.query_drop(setting).map_err(failed)?;
        }
        let rows = session.query(format!("explain {}", hinted(&query.sql, force)));
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

/// ER_QUERY_TIMEOUT.
const QUERY_TIMEOUT: u16 = 3024;

fn failed(error: mysql::Error) -> BenchError {
    BenchError::server("Sheaf", error)
}

/// Columns of EXPLAIN.
const TABLE: usize = 2;
const POSSIBLE_KEYS: usize = 5;
const ROWS: usize = 9;
const FILTERED: usize = 10;

/// A plan without its estimates.
fn shape(rows: &[Vec<Option<String>>]) -> String {
    let mut text = String::new();
    for row in rows {
        for (column, value) in row.iter().enumerate() {
            if column != ROWS && column != FILTERED {
                let _ = write!(text, "{}|", value.as_deref().unwrap_or("-"));
            }
        }
        text.push('\n');
    }
    text
}

/// Everything that the plan could be forced into otherwise.
fn forces(rows: &[Vec<Option<String>>]) -> Vec<Force> {
    let switch = |flag: &str| Force {
        label: flag.to_string(),
        settings: vec![format!("set optimizer_switch = '{flag}'")],
        hint: None,
    };
    let hint = |hint: String| Force {
        label: hint.clone(),
        settings: Vec::new(),
        hint: Some(hint),
    };
    let mut forces: Vec<Force> = [
        "mrr=off",
        "mrr_cost_based=off",
        "index_condition_pushdown=off",
        "batched_key_access=off",
        "hash_join=off",
    ]
    .into_iter()
    .map(switch)
    .collect();
    let cell = |row: &[Option<String>], column: usize| row.get(column).cloned().flatten();
    let tables: Vec<String> = rows
        .iter()
        .filter_map(|row| cell(row, TABLE))
        .filter(|table| !table.starts_with('<'))
        .collect();
    for (row, table) in rows.iter().filter_map(|row| Some((row, cell(row, TABLE)?))) {
        if table.starts_with('<') {
            continue;
        }
        let keys = cell(row, POSSIBLE_KEYS).unwrap_or_default();
        for key in keys.split(',').filter(|key| !key.is_empty()) {
            forces.push(hint(format!("INDEX({table} {key})")));
            forces.push(hint(format!("INDEX({table} {key}) NO_MRR({table})")));
        }
        if !keys.is_empty() {
            forces.push(hint(format!("NO_INDEX({table})")));
        }
        if tables.len() > 1 {
            forces.push(hint(format!("JOIN_PREFIX({table})")));
            forces.push(hint(format!("NO_HASH_JOIN({table})")));
            forces.push(hint(format!("HASH_JOIN({table})")));
            forces.push(hint(format!("NO_BKA({table})")));
        }
    }
    forces
}

/// The query with the hint behind its first SELECT.
fn hinted(sql: &str, force: &Force) -> String {
    let Some(hint) = &force.hint else {
        return sql.to_string();
    };
    let start = sql
        .to_ascii_lowercase()
        .find("select")
        .map_or(0, |at| at + "select".len());
    format!("{} /*+ {hint} */{}", &sql[..start], &sql[start..])
}

/// What is compared of a plan's times.
type Time = fn(&Measured) -> Option<Duration>;

/// Time of the free choice over the best one, and the best one.
fn ratio(outcome: &Outcome, time: Time) -> Option<(f64, &Measured)> {
    let free = time(outcome.plans.first()?)?.as_secs_f64();
    let timed = outcome.plans.iter().filter(|plan| time(plan).is_some());
    let best = timed.min_by_key(|plan| time(plan))?;
    let seconds = time(best)?.as_secs_f64();
    let ratio = match free - seconds < NOISE_SECONDS {
        true => 1.0,
        false => free / seconds,
    };
    Some((ratio, best))
}

fn describe(
    text: &mut String,
    options: &Options,
    memory: usize,
    outcomes: &[Outcome],
    planning: &[(String, Duration)],
) {
    let _ = writeln!(
        text,
        "## Scale {}, {} MiB of pool\n\n{}. Machine: {}.\n",
        options.scale,
        memory >> 20,
        machine::today(),
        machine::describe()
    );
    let _ = writeln!(
        text,
        "| group | pool | queries | plans | within {GOOD} x | worst |\n|---|---|---|---|---|---|"
    );
    let times: [(&str, Time); 2] = [("cold", |plan| plan.cold), ("warm", |plan| plan.warm)];
    for group in ["reference", "tpch", "generated"] {
        for (name, time) in times {
            let of_group = outcomes
                .iter()
                .filter(|outcome| outcome.query.group == group);
            let ratios: Vec<f64> = of_group
                .clone()
                .filter_map(|outcome| Some(ratio(outcome, time)?.0))
                .collect();
            if ratios.is_empty() {
                continue;
            }
            let plans: usize = of_group.map(|outcome| outcome.plans.len()).sum();
            let good = ratios.iter().filter(|ratio| **ratio <= GOOD).count();
            let worst = ratios.iter().copied().fold(1.0, f64::max);
            let _ = writeln!(
                text,
                "| {group} | {name} | {} | {plans} | {:.1}% | {worst:.2} x |",
                ratios.len(),
                100.0 * good as f64 / ratios.len() as f64,
            );
        }
    }
    let _ = writeln!(
        text,
        "\n### Choices beyond {GOOD} x (the limit is {WORST} x)\n\n| query | pool | ratio | free choice, s | best, s | best plan |\n|---|---|---|---|---|---|"
    );
    for (name, time) in times {
        for outcome in outcomes {
            let Some((ratio, best)) = ratio(outcome, time).filter(|(ratio, _)| *ratio > GOOD)
            else {
                continue;
            };
            let seconds = |plan: &Measured| time(plan).map_or(0.0, |time| time.as_secs_f64());
            let _ = writeln!(
                text,
                "| {} {} | {name} | {ratio:.2} | {:.4} | {:.4} | {} |",
                outcome.query.group,
                outcome.query.name,
                outcome.plans.first().map_or(0.0, seconds),
                seconds(best),
                best.label
            );
        }
    }
    let _ = writeln!(
        text,
        "\n### Predicted against measured\n\n| query | plan | predicted, s | cold, s | warm, s |\n|---|---|---|---|---|"
    );
    for outcome in outcomes {
        for plan in &outcome.plans {
            let shown = |time: Option<Duration>| {
                time.map_or("-".to_string(), |time| format!("{:.4}", time.as_secs_f64()))
            };
            let _ = writeln!(
                text,
                "| {} {} | {} | {:.4} | {} | {} |",
                outcome.query.group,
                outcome.query.name,
                plan.label,
                plan.predicted_us / 1e6,
                shown(plan.cold),
                shown(plan.warm)
            );
        }
    }
    let _ = writeln!(text, "\n### Planning\n\n| query | EXPLAIN, ms |\n|---|---|");
    for (name, time) in planning {
        let _ = writeln!(text, "| {name} | {:.3} |", time.as_secs_f64() * 1e3);
    }
    text.push('\n');
}
