//! The long form: seed after seed until a number of queries have been compared.

use std::fs::File;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use clap::Args;
use sheaf_storage::Random;

use crate::answer::{Answer, Difference, Server, difference};
use crate::parameters::with_parameters;
use crate::plans::OtherPlan;
use crate::query::Generator;
use crate::reduce::reduce;
use crate::schema::Schema;
use crate::tree::Tree;
use crate::{FuzzError, changes, known, metamorphic};

/// The database that the tables are in: one of this process, as several may compare the same servers.
fn database() -> String {
    format!("sheaf_fuzz_{}", std::process::id())
}

/// How Sheaf is compared with itself about a query.
#[derive(Clone, Debug)]
enum OtherWay {
    /// Prepared, with constants as parameters.
    Prepared,
    Plan(OtherPlan),
}

impl OtherWay {
    /// Each query has one of the ways, or else the rules of [`metamorphic`].
    fn of(number: u64, random: &mut Random) -> Option<OtherWay> {
        match number % 4 {
            0 => None,
            1 => Some(OtherWay::Prepared),
            _ => Some(OtherWay::Plan(OtherPlan::new(random))),
        }
    }
}

/// A run says how far it is after so many seeds.
const SEEDS_PER_WORD: u64 = 20;

/// What to compare, and for how long.
#[derive(Args, Debug)]
pub struct Options {
    /// The first seed; the next ones follow it. By default a new one.
    #[arg(long)]
    pub seed: Option<u64>,
    /// Seeds to run, each with tables of its own.
    #[arg(long, default_value_t = u64::MAX)]
    pub seeds: u64,
    /// Queries for the tables of a seed.
    #[arg(long, default_value_t = 60)]
    pub queries: u64,
    /// Changes for the tables of a seed, in place of queries: tables with foreign keys are compared after each.
    #[arg(long)]
    pub changes: Option<u64>,
    /// Ends after so many queries or changes.
    #[arg(long, default_value_t = 10_000)]
    pub total: u64,
    /// Ends after so many seconds.
    #[arg(long, default_value_t = 3600)]
    pub seconds: u64,
    /// Ends at so many differences.
    #[arg(long, default_value_t = 1)]
    pub differences: u64,
    /// File that receives the differences, with the statements that make the tables.
    #[arg(long)]
    pub report: Option<PathBuf>,
    /// Another judge, HOST:PORT, that is asked where the first one disagrees with Sheaf. If it sides with Sheaf, that
    /// is no difference.
    #[arg(long)]
    pub second_judge: Option<String>,
    /// Prints the queries that both servers refuse, with what Sheaf says.
    #[arg(long)]
    pub show_errors: bool,
}

/// What a run has seen.
#[derive(Default)]
struct Summary {
    queries: u64,
    same_error: u64,
    refused: u64,
    timeouts: u64,
    known: u64,
    /// Differences in which the second judge sides with Sheaf.
    overruled: u64,
    differences: u64,
}

/// Compares a running Sheaf with a running judge, each at HOST:PORT.
pub fn run(options: &Options, sheaf: &str, judge: &str) -> ExitCode {
    match compare(options, sheaf, judge) {
        Ok(summary) => {
            println!(
                "fuzz: {} queries: {} failed on both, {} refused by name, {} too slow, {} known differences, {} with a second judge on Sheaf's side, {} differences",
                summary.queries,
                summary.same_error,
                summary.refused,
                summary.timeouts,
                summary.known,
                summary.overruled,
                summary.differences
            );
            match summary.differences {
                0 => ExitCode::SUCCESS,
                _ => ExitCode::FAILURE,
            }
        }
        Err(error) => {
            eprintln!("fuzz: {error}");
            ExitCode::FAILURE
        }
    }
}

fn new_seed() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(1, |since| since.as_secs() % 1_000_000_000)
}

fn compare(options: &Options, sheaf: &str, judge: &str) -> Result<Summary, FuzzError> {
    let first = options.seed.unwrap_or_else(new_seed);
    println!("fuzz: from seed {first} on");
    let mut run = Run {
        options,
        sheaf: Server::connect("Sheaf", sheaf)?,
        judge: Server::connect("the judge", judge)?,
        second: match &options.second_judge {
            Some(address) => Some(Server::connect("the second judge", address)?),
            None => None,
        },
        report: match &options.report {
            Some(path) => Some(
                File::create(path)
                    .map_err(|error| FuzzError::File(path.display().to_string(), error))?,
            ),
            None => None,
        },
        summary: Summary::default(),
        end: Instant::now() + Duration::from_secs(options.seconds),
    };
    for number in 0..options.seeds {
        if run.is_over() {
            break;
        }
        if number > 0 && number.is_multiple_of(SEEDS_PER_WORD) {
            let (queries, last) = (run.summary.queries, first + number - 1);
            eprintln!("fuzz: {queries} queries, up to seed {last}");
        }
        match options.changes {
            Some(changes) => run.changes(first + number, changes)?,
            None => run.seed(first + number)?,
        }
    }
    let drop = format!("drop database if exists {}", database());
    let servers = [&mut run.sheaf, &mut run.judge];
    for server in servers.into_iter().chain(&mut run.second) {
        server.run_all([drop.as_str()])?;
    }
    Ok(run.summary)
}

/// What two servers disagree about after a change.
struct Disagreement {
    kind: &'static str,
    text: String,
}

fn disagreement(sheaf: &Answer, judge: &Answer) -> String {
    format!(
        "-- Sheaf: {}\n-- judge: {}\n",
        sheaf.summary(),
        judge.summary()
    )
}

fn fresh_database() -> [String; 3] {
    let name = database();
    [
        format!("drop database if exists {name}"),
        format!("create database {name} character set utf8mb4 collate utf8mb4_general_ci"),
        format!("use {name}"),
    ]
}

/// Asks, and connects again to a server that has not answered.
fn ask(server: &mut Server, sql: &str) -> Result<Answer, FuzzError> {
    let answer = server.ask(sql);
    if matches!(answer, Answer::Lost(_)) {
        server.reconnect(&database())?;
    }
    Ok(answer)
}

/// Runs `changes` on new tables of two servers. The number of changes until they disagree, and about what.
fn disagree_about(
    sheaf: &mut Server,
    judge: &mut Server,
    tables: &[String],
    changes: &[String],
) -> Result<Option<(usize, Disagreement)>, FuzzError> {
    let fresh = fresh_database();
    for server in [&mut *sheaf, &mut *judge] {
        server.run_all(fresh.iter().chain(tables).map(String::as_str))?;
    }
    for (number, sql) in changes.iter().enumerate() {
        let (one, other) = (ask(sheaf, sql)?, ask(judge, sql)?);
        let is_known = known::reason(sql, &one, &other).is_some();
        let kind = match difference(sql, &one, &other) {
            Some(Difference::Rows) => Some("another number of rows changed"),
            Some(_) => Some("an error of one server"),
            None => None,
        };
        if let (Some(kind), false) = (kind, is_known) {
            let text = disagreement(&one, &other);
            return Ok(Some((number + 1, Disagreement { kind, text })));
        }
        for table in changes::TABLES {
            let sql = format!("select * from {table}");
            let (one, other) = (ask(sheaf, &sql)?, ask(judge, &sql)?);
            if difference(&sql, &one, &other).is_some() {
                let text = format!("-- table {table}\n{}", disagreement(&one, &other));
                let kind = "other rows afterwards";
                return Ok(Some((number + 1, Disagreement { kind, text })));
            }
        }
    }
    Ok(None)
}

struct Run<'a> {
    options: &'a Options,
    sheaf: Server,
    judge: Server,
    second: Option<Server>,
    report: Option<File>,
    summary: Summary,
    end: Instant,
}

impl Run<'_> {
    fn is_over(&self) -> bool {
        self.summary.queries >= self.options.total
            || self.summary.differences >= self.options.differences
            || Instant::now() >= self.end
    }

    /// The tables and queries of one seed.
    fn seed(&mut self, seed: u64) -> Result<(), FuzzError> {
        let mut random = Random::new(seed);
        let schema = Schema::new(&mut random);
        let mut statements = fresh_database().to_vec();
        statements.extend(
            schema
                .tables
                .iter()
                .flat_map(|table| table.statements.iter().cloned()),
        );
        let servers = [&mut self.sheaf, &mut self.judge];
        for server in servers.into_iter().chain(&mut self.second) {
            server.run_all(statements.iter().map(String::as_str))?;
        }
        for number in 0..self.options.queries {
            if self.is_over() {
                break;
            }
            // Each query has a sequence of its own, so that it stays the same whatever was asked before it.
            let mut random = Random::new(seed.wrapping_mul(1_000_003).wrapping_add(number));
            let tree = Generator::new(&mut random, &schema).statement();
            let way = OtherWay::of(number, &mut random);
            if let Some(way) = &way {
                self.other_way(seed, tree.clone(), way, &statements)?;
            }
            self.query(seed, tree, &statements)?;
            if way.is_none() {
                let mut generator = Generator::new(&mut random, &schema);
                if let Some(broken) = metamorphic::check(&mut generator, &mut self.sheaf) {
                    self.summary.differences += 1;
                    let text = format!("-- {}\n{};\n", broken.what, broken.statements.join(";\n"));
                    self.tell(seed, "Sheaf disagrees with itself", &text, &statements)?;
                }
            }
        }
        Ok(())
    }

    /// Changes of tables that refer to each other.
    fn changes(&mut self, seed: u64, number: u64) -> Result<(), FuzzError> {
        let mut random = Random::new(seed);
        let tables = changes::tables(&mut random);
        let all: Vec<String> = (0..number).map(|_| changes::change(&mut random)).collect();
        let Some((end, what)) = self.first_disagreement(&tables, &all)? else {
            self.summary.queries += number;
            return Ok(());
        };
        self.summary.queries += end as u64;
        if self.is_overruled_about(&tables, &all[..end])? {
            self.summary.overruled += 1;
            return Ok(());
        }
        let mut failed = None;
        let smallest = changes::reduce(all[..end].to_vec(), |changes| {
            let found = self.first_disagreement(&tables, changes);
            let is_same = |(_, now): (usize, Disagreement)| now.kind == what.kind;
            match found.map(|found| found.is_some_and(is_same)) {
                // The second judge need not agree about fewer changes.
                Ok(true) => match self.is_overruled_about(&tables, changes) {
                    Ok(is_overruled) => !is_overruled,
                    Err(error) => {
                        failed = Some(error);
                        false
                    }
                },
                Ok(false) => false,
                Err(error) => {
                    failed = Some(error);
                    false
                }
            }
        });
        if let Some(error) = failed {
            return Err(error);
        }
        let found = self.first_disagreement(&tables, &smallest)?;
        self.summary.differences += 1;
        let text = format!(
            "{};\n{}",
            smallest.join(";\n"),
            found.map_or(what.text, |(_, what)| what.text)
        );
        self.tell(seed, what.kind, &text, &tables)
    }

    /// Runs `changes` on new tables. The number of changes until Sheaf and the judge disagree, and about what.
    fn first_disagreement(
        &mut self,
        tables: &[String],
        changes: &[String],
    ) -> Result<Option<(usize, Disagreement)>, FuzzError> {
        disagree_about(&mut self.sheaf, &mut self.judge, tables, changes)
    }

    /// True when the second judge agrees with Sheaf about all of these changes.
    fn is_overruled_about(
        &mut self,
        tables: &[String],
        changes: &[String],
    ) -> Result<bool, FuzzError> {
        match &mut self.second {
            Some(second) => {
                let found = disagree_about(&mut self.sheaf, second, tables, changes)?;
                Ok(found.is_none())
            }
            None => Ok(false),
        }
    }

    /// Compares what Sheaf answers to a statement with what it answers in another way, and makes a difference small.
    fn other_way(
        &mut self,
        seed: u64,
        tree: Tree,
        way: &OtherWay,
        tables: &[String],
    ) -> Result<(), FuzzError> {
        let Some(found) = self.differs_by(way, &tree.sql())?.0 else {
            return Ok(());
        };
        let mut failed = None;
        let smallest = reduce(tree, |sql| match self.differs_by(way, sql) {
            Ok((now, _)) => now == Some(found),
            Err(error) => {
                failed = Some(error);
                false
            }
        });
        if let Some(error) = failed {
            return Err(error);
        }
        let (_, text) = self.differs_by(way, &smallest.sql())?;
        self.summary.differences += 1;
        self.tell(
            seed,
            &format!("Sheaf disagrees with itself, {found:?}"),
            &text,
            tables,
        )
    }

    /// In which way Sheaf disagrees with itself, with a text that shows it.
    fn differs_by(
        &mut self,
        way: &OtherWay,
        sql: &str,
    ) -> Result<(Option<Difference>, String), FuzzError> {
        let one = ask(&mut self.sheaf, sql)?;
        let (other, other_sql) = match way {
            OtherWay::Prepared => {
                let (prepared, values) = with_parameters(sql);
                let answer = self.sheaf.ask_prepared(&prepared, &values);
                let values: Vec<String> = values.iter().map(|value| value.as_sql(true)).collect();
                (answer, format!("{prepared}; -- {}", values.join(", ")))
            }
            OtherWay::Plan(plan) => {
                let sql = plan.of(sql);
                (self.sheaf.ask(&sql), sql)
            }
        };
        if matches!(other, Answer::Lost(_)) {
            self.sheaf.reconnect(&database())?;
        }
        let text = format!(
            "{sql};\n-- {}\n{other_sql};\n-- {}\n",
            one.summary(),
            other.summary()
        );
        // A crash is reported as a difference from the judge.
        let found = match (&one, &other) {
            (Answer::Lost(_), _) => None,
            (_, Answer::Lost(_)) => Some(Difference::Lost),
            _ => difference(sql, &one, &other),
        };
        let is_known = found.is_some() && known::reason(sql, &one, &other).is_some();
        Ok((found.filter(|_| !is_known), text))
    }

    /// In which way the servers disagree about a query.
    fn differs(&mut self, sql: &str, counts: bool) -> Result<Option<Difference>, FuzzError> {
        let one = ask(&mut self.sheaf, sql)?;
        let other = ask(&mut self.judge, sql)?;
        let found = difference(sql, &one, &other);
        let mut summary = Summary::default();
        let counted = if one.is_refusal() {
            &mut summary.refused
        } else if one.is_timeout() || other.is_timeout() {
            &mut summary.timeouts
        } else if found.is_none() {
            if matches!(one, Answer::Error { .. }) {
                if counts && self.options.show_errors {
                    println!("-- {}\n{sql};", one.summary());
                }
                summary.same_error += 1;
            }
            self.count(counts, &summary);
            return Ok(None);
        } else if known::reason(sql, &one, &other).is_some() {
            &mut summary.known
        } else if self.is_overruled(sql, &one)? {
            &mut summary.overruled
        } else {
            return Ok(found);
        };
        *counted += 1;
        self.count(counts, &summary);
        Ok(None)
    }

    fn count(&mut self, counts: bool, more: &Summary) {
        if counts {
            self.summary.same_error += more.same_error;
            self.summary.refused += more.refused;
            self.summary.timeouts += more.timeouts;
            self.summary.known += more.known;
            self.summary.overruled += more.overruled;
        }
    }

    /// True when the second judge answers as Sheaf does.
    fn is_overruled(&mut self, sql: &str, sheaf: &Answer) -> Result<bool, FuzzError> {
        let Some(second) = &mut self.second else {
            return Ok(false);
        };
        let answer = ask(second, sql)?;
        let is_no_answer = answer.is_timeout() || matches!(answer, Answer::Lost(_));
        Ok(!is_no_answer && difference(sql, sheaf, &answer).is_none())
    }

    /// Compares one query, and makes a difference small.
    fn query(&mut self, seed: u64, tree: Tree, tables: &[String]) -> Result<(), FuzzError> {
        self.summary.queries += 1;
        let Some(found) = self.differs(&tree.sql(), true)? else {
            return Ok(());
        };
        let mut failed = None;
        let smallest = reduce(tree, |sql| match self.differs(sql, false) {
            Ok(now) => now == Some(found),
            Err(error) => {
                failed = Some(error);
                false
            }
        });
        if let Some(error) = failed {
            return Err(error);
        }
        let sql = smallest.sql();
        let (one, other) = (ask(&mut self.sheaf, &sql)?, ask(&mut self.judge, &sql)?);
        self.summary.differences += 1;
        let text = format!("{sql};\n{}", disagreement(&one, &other));
        self.tell(seed, &format!("{found:?}"), &text, tables)
    }

    fn tell(
        &mut self,
        seed: u64,
        what: &str,
        text: &str,
        tables: &[String],
    ) -> Result<(), FuzzError> {
        println!("-- seed {seed}: {what}\n{text}");
        if let Some(report) = &mut self.report {
            writeln!(
                report,
                "-- seed {seed}: {what}\n{text}/*\n{};\n*/\n",
                tables.join(";\n")
            )
            .map_err(|error| FuzzError::File("the report".to_owned(), error))?;
        }
        Ok(())
    }
}
