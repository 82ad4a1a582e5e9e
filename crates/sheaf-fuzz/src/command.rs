//! The long form: seed after seed until a number of queries have been compared.

use std::fs::File;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use clap::{Args, ValueEnum};
use sheaf_storage::Random;

use crate::answer::{Answer, Difference, Server, difference};
use crate::parameters::with_parameters;
use crate::plans::OtherPlan;
use crate::query::Generator;
use crate::reduce::reduce;
use crate::schema::Schema;
use crate::tree::Tree;
use crate::{FuzzError, Party, changes, known, metamorphic};

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
    /// Ends after so many queries or changes. By default the time ends it.
    #[arg(long, default_value_t = u64::MAX)]
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
    /// What makes the run fail. Whatever is found is printed.
    #[arg(long, value_enum, default_value_t = FailOn::Differences)]
    pub fail_on: FailOn,
    /// Prints the queries that both servers refuse, with what Sheaf says.
    #[arg(long)]
    pub show_errors: bool,
}

/// What makes a run fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum FailOn {
    /// Any difference from a judge as well, and a judge that is gone.
    Differences,
    /// Faults of Sheaf that need no judge.
    Faults,
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
    /// Differences in which a judge contradicts itself.
    contradicted: u64,
    /// Differences from the judge.
    differences: u64,
    /// Faults that need no judge.
    faults: u64,
    /// A server is gone, so the run has ended too soon.
    ended_by: Option<Party>,
}

impl Summary {
    fn exit_code(&self, fail_on: FailOn) -> ExitCode {
        let fails = match fail_on {
            FailOn::Differences => {
                self.faults > 0 || self.differences > 0 || self.ended_by.is_some()
            }
            FailOn::Faults => self.faults > 0,
        };
        match fails {
            true => ExitCode::FAILURE,
            false => ExitCode::SUCCESS,
        }
    }
}

/// Compares a running Sheaf with itself, and with a running judge where there is one, each at HOST:PORT.
pub fn run(options: &Options, sheaf: &str, judge: Option<&str>) -> ExitCode {
    match compare(options, sheaf, judge) {
        Ok(summary) => {
            println!(
                "fuzz: {} queries: {} failed on both, {} refused by name, {} too slow, {} known differences, {} with a second judge on Sheaf's side, {} in which a judge contradicts itself, {} differences, {} faults",
                summary.queries,
                summary.same_error,
                summary.refused,
                summary.timeouts,
                summary.known,
                summary.overruled,
                summary.contradicted,
                summary.differences,
                summary.faults
            );
            summary.exit_code(options.fail_on)
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

fn compare(options: &Options, sheaf: &str, judge: Option<&str>) -> Result<Summary, FuzzError> {
    let first = options.seed.unwrap_or_else(new_seed);
    println!("fuzz: from seed {first} on");
    let connected = |party, address: Option<&str>| {
        let judge = address
            .map(|address| Server::connect(party, address))
            .transpose();
        match (judge, options.fail_on) {
            (Err(error), FailOn::Faults) => {
                eprintln!("fuzz: comparison with {party}: SKIPPED ({error})");
                Ok(None)
            }
            (judge, _) => judge,
        }
    };
    let mut judge = connected(Party::Judge, judge)?;
    let mut run = Run {
        options,
        sheaf: Server::connect(Party::Sheaf, sheaf)?,
        has_json: match &mut judge {
            Some(judge) => !judge.is_mariadb()?,
            None => true,
        },
        judge,
        second: connected(Party::SecondJudge, options.second_judge.as_deref())?,
        report: match &options.report {
            Some(path) => Some(
                File::create(path)
                    .map_err(|error| FuzzError::File(path.display().to_string(), error))?,
            ),
            None => None,
        },
        summary: Summary::default(),
        end: Instant::now() + Duration::from_secs(options.seconds),
        tables: Vec::new(),
    };
    for number in 0..options.seeds {
        if run.is_over() {
            break;
        }
        if number > 0 && number.is_multiple_of(SEEDS_PER_WORD) {
            let (queries, last) = (run.summary.queries, first + number - 1);
            eprintln!("fuzz: {queries} queries, up to seed {last}");
        }
        let seed = first + number;
        let outcome = match options.changes {
            Some(changes) => run.changes(seed, changes),
            None => run.seed(seed),
        };
        if let Err(error) = outcome {
            return run.ended_by(seed, error);
        }
    }
    run.drop_databases();
    Ok(run.summary)
}

/// What is wrong after a change.
struct Disagreement {
    kind: &'static str,
    text: String,
    is_fault: bool,
}

fn disagreement(sheaf: &Answer, judge: Option<&Answer>) -> String {
    let judge = judge.map(|answer| format!("-- judge: {}\n", answer.summary()));
    format!(
        "-- Sheaf: {}\n{}",
        sheaf.summary(),
        judge.unwrap_or_default()
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
        server.reconnect(&database(), sql)?;
    }
    Ok(answer)
}

/// Runs `changes` on new tables of Sheaf, and of a judge where there is one. The number of changes until something is
/// wrong, and what.
fn disagree_about(
    sheaf: &mut Server,
    mut judge: Option<&mut Server>,
    tables: &[String],
    changes: &[String],
) -> Result<Option<(usize, Disagreement)>, FuzzError> {
    let fresh = fresh_database();
    for server in std::iter::once(&mut *sheaf).chain(judge.as_deref_mut()) {
        server.run_all(fresh.iter().chain(tables).map(String::as_str))?;
    }
    let mut both = |sql: &str| -> Result<_, FuzzError> {
        let one = ask(sheaf, sql)?;
        let other = match &mut judge {
            Some(judge) => Some(ask(judge, sql)?),
            None => None,
        };
        let found = match &other {
            Some(other) => difference(sql, &one, other)
                .filter(|found| found.is_fault() || known::reason(sql, &one, other).is_none()),
            None => one.fault(),
        };
        Ok(found.map(|found| (found, disagreement(&one, other.as_ref()))))
    };
    for (number, sql) in changes.iter().enumerate() {
        if let Some((found, text)) = both(sql)? {
            let kind = match found {
                Difference::Lost => "a lost connection",
                Difference::Internal => "an internal error",
                Difference::Rows | Difference::Order => "another number of rows changed",
                Difference::Error | Difference::MissingError => "an error of one server",
            };
            let is_fault = found.is_fault();
            return Ok(Some((
                number + 1,
                Disagreement {
                    kind,
                    text,
                    is_fault,
                },
            )));
        }
        for table in changes::TABLES {
            if let Some((found, text)) = both(&format!("select * from {table}"))? {
                let found = Disagreement {
                    kind: "other rows afterwards",
                    text: format!("-- table {table}\n{text}"),
                    is_fault: found.is_fault(),
                };
                return Ok(Some((number + 1, found)));
            }
        }
    }
    Ok(None)
}

/// How Sheaf's answer differs from those of the judges. While a statement is made small it stays the same, so that the
/// small one shows what the whole one did.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Found {
    /// The difference from the first judge.
    kind: Difference,
    /// The differences from the judges that had an answer, with the numbers of their errors.
    judges: Vec<(Difference, Option<u16>)>,
}

/// True when a judge with another answer has Sheaf's under another plan of its own. Errors do not depend on plans.
fn is_agreed_by_other_plans(
    judge: &mut Server,
    sql: &str,
    sheaf: &Answer,
    answer: &Answer,
) -> Result<bool, FuzzError> {
    if !matches!((sheaf, answer), (Answer::Rows(_), Answer::Rows(_))) {
        return Ok(false);
    }
    let answers = judge.ask_by_other_plans(sql);
    if answers
        .iter()
        .any(|answer| matches!(answer, Answer::Lost(_)))
    {
        judge.reconnect(&database(), sql)?;
    }
    let agrees = |answer: &Answer| {
        matches!(answer, Answer::Rows(_)) && difference(sql, sheaf, answer).is_none()
    };
    Ok(answers.iter().any(agrees))
}

/// What the judges say about an answer of Sheaf.
enum Verdict {
    Same,
    /// Sheaf says that it does not know this yet.
    Refused,
    /// Sheaf, or the judges that know the statement, had no answer in time.
    TooSlow,
    Known,
    /// The second judge sides with Sheaf.
    Overruled,
    /// A judge sides with Sheaf when it plans otherwise, so it contradicts itself.
    Contradicted,
    Differs(Found),
}

struct Run<'a> {
    options: &'a Options,
    sheaf: Server,
    judge: Option<Server>,
    second: Option<Server>,
    report: Option<File>,
    summary: Summary,
    end: Instant,
    /// The statements that make the tables of the seed.
    tables: Vec<String>,
    /// Whether the judge has JSON as a type.
    has_json: bool,
}

impl Run<'_> {
    fn is_over(&self) -> bool {
        self.summary.queries >= self.options.total
            || self.summary.differences + self.summary.faults >= self.options.differences
            || Instant::now() >= self.end
    }

    fn servers(&mut self) -> impl Iterator<Item = &mut Server> {
        std::iter::once(&mut self.sheaf)
            .chain(&mut self.judge)
            .chain(&mut self.second)
    }

    /// A server that does not answer keeps its database.
    fn drop_databases(&mut self) {
        let drop = format!("drop database if exists {}", database());
        for server in self.servers() {
            if let Err(error) = server.run_all([drop.as_str()]) {
                eprintln!("fuzz: {error}");
            }
        }
    }

    /// What the run has seen until `error`. A Sheaf that is gone, or refuses what makes the tables, is a fault. A judge
    /// that is gone is none.
    fn ended_by(mut self, seed: u64, error: FuzzError) -> Result<Summary, FuzzError> {
        let Some(party) = error.party() else {
            return Err(error);
        };
        self.summary.ended_by = Some(party);
        match party {
            Party::Sheaf => self.tell(seed, "the run ends", &format!("-- {error}\n"), true)?,
            Party::Judge | Party::SecondJudge => {
                eprintln!("fuzz: the run ends at seed {seed}: {error}");
            }
        }
        Ok(self.summary)
    }

    /// The tables and queries of one seed.
    fn seed(&mut self, seed: u64) -> Result<(), FuzzError> {
        let mut random = Random::new(seed);
        let schema = Schema::new(&mut random, self.has_json);
        let mut statements = fresh_database().to_vec();
        statements.extend(
            schema
                .tables
                .iter()
                .flat_map(|table| table.statements.iter().cloned()),
        );
        for server in self.servers() {
            server.run_all(statements.iter().map(String::as_str))?;
        }
        self.tables = statements;
        for number in 0..self.options.queries {
            if self.is_over() {
                break;
            }
            // Each query has a sequence of its own, so that it stays the same whatever was asked before it.
            let mut random = Random::new(seed.wrapping_mul(1_000_003).wrapping_add(number));
            let tree = Generator::new(&mut random, &schema).statement();
            let way = OtherWay::of(number, &mut random);
            if let Some(way) = &way {
                self.other_way(seed, tree.clone(), way)?;
            }
            self.query(seed, tree)?;
            if way.is_none() {
                let mut generator = Generator::new(&mut random, &schema);
                let sheaf = &mut self.sheaf;
                let broken = metamorphic::check(&mut generator, &mut |sql| ask(sheaf, sql))?;
                if let Some(broken) = broken {
                    let text = format!("-- {}\n{};\n", broken.what, broken.statements.join(";\n"));
                    self.tell(seed, "Sheaf disagrees with itself", &text, true)?;
                }
            }
        }
        Ok(())
    }

    /// Changes of tables that refer to each other.
    fn changes(&mut self, seed: u64, number: u64) -> Result<(), FuzzError> {
        let mut random = Random::new(seed);
        self.tables = changes::tables(&mut random);
        let all: Vec<String> = (0..number).map(|_| changes::change(&mut random)).collect();
        let Some((end, what)) = self.first_disagreement(&all)? else {
            self.summary.queries += number;
            return Ok(());
        };
        self.summary.queries += end as u64;
        if !what.is_fault && self.is_overruled_about(&all[..end])? {
            self.summary.overruled += 1;
            return Ok(());
        }
        let mut failed = None;
        let smallest = changes::reduce(all[..end].to_vec(), |changes| {
            let shows = self.shows(changes, &what);
            shows.unwrap_or_else(|error| {
                failed = Some(error);
                false
            })
        });
        if let Some(error) = failed {
            return Err(error);
        }
        let found = self.first_disagreement(&smallest)?;
        let text = format!(
            "{};\n{}",
            smallest.join(";\n"),
            found.map_or(what.text, |(_, what)| what.text)
        );
        self.tell(seed, what.kind, &text, what.is_fault)
    }

    /// True when these changes still show what was found. The second judge need not agree about fewer changes.
    fn shows(&mut self, changes: &[String], what: &Disagreement) -> Result<bool, FuzzError> {
        let found = self.first_disagreement(changes)?;
        let is_same = found.is_some_and(|(_, now)| now.kind == what.kind);
        Ok(is_same && (what.is_fault || !self.is_overruled_about(changes)?))
    }

    /// Runs `changes` on new tables. The number of changes until something is wrong, and what.
    fn first_disagreement(
        &mut self,
        changes: &[String],
    ) -> Result<Option<(usize, Disagreement)>, FuzzError> {
        disagree_about(&mut self.sheaf, self.judge.as_mut(), &self.tables, changes)
    }

    /// True when the second judge agrees with Sheaf about all of these changes.
    fn is_overruled_about(&mut self, changes: &[String]) -> Result<bool, FuzzError> {
        match &mut self.second {
            Some(second) => {
                let found = disagree_about(&mut self.sheaf, Some(second), &self.tables, changes)?;
                Ok(found.is_none())
            }
            None => Ok(false),
        }
    }

    /// Compares what Sheaf answers to a statement with what it answers in another way, and makes a difference small.
    fn other_way(&mut self, seed: u64, tree: Tree, way: &OtherWay) -> Result<(), FuzzError> {
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
        let what = format!("Sheaf disagrees with itself, {found:?}");
        self.tell(seed, &what, &text, true)
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
            self.sheaf.reconnect(&database(), &other_sql)?;
        }
        let text = format!(
            "{sql};\n-- {}\n{other_sql};\n-- {}\n",
            one.summary(),
            other.summary()
        );
        // A fault of the statement itself is reported when it is compared with the judge's answer.
        let found = match one.fault() {
            Some(_) => None,
            None => other.fault().or_else(|| difference(sql, &one, &other)),
        };
        // Constants make a subquery depend on less than parameters do. What it depends on may be refused by name.
        let is_refused = matches!(way, OtherWay::Prepared) && other.is_refusal();
        let found = found.filter(|_| !is_refused);
        let is_new =
            |found: &Difference| found.is_fault() || known::reason(sql, &one, &other).is_none();
        Ok((found.filter(is_new), text))
    }

    /// In which way Sheaf disagrees with the judges about a query. It does not where one of them answers as Sheaf does,
    /// nor where what each of them answers is explained.
    fn differs(&mut self, sql: &str, counts: bool) -> Result<Option<Found>, FuzzError> {
        let one = ask(&mut self.sheaf, sql)?;
        let fault = one.fault().map(|fault| Found {
            kind: fault,
            judges: Vec::new(),
        });
        if fault.is_some() {
            return Ok(fault);
        }
        let mut summary = Summary::default();
        let verdict = if one.is_refusal() {
            Verdict::Refused
        } else if one.is_timeout() {
            Verdict::TooSlow
        } else {
            self.verdict(sql, &one)?
        };
        match verdict {
            Verdict::Refused => summary.refused += 1,
            Verdict::TooSlow => summary.timeouts += 1,
            Verdict::Same => {
                if matches!(one, Answer::Error { .. }) {
                    if counts && self.options.show_errors {
                        println!("-- {}\n{sql};", one.summary());
                    }
                    summary.same_error += 1;
                }
            }
            Verdict::Known => summary.known += 1,
            Verdict::Overruled => summary.overruled += 1,
            Verdict::Contradicted => summary.contradicted += 1,
            Verdict::Differs(found) => return Ok(Some(found)),
        }
        self.count(counts, &summary);
        Ok(None)
    }

    /// What the judges say about Sheaf's answer.
    fn verdict(&mut self, sql: &str, sheaf: &Answer) -> Result<Verdict, FuzzError> {
        let Some(judge) = &mut self.judge else {
            return Ok(Verdict::Same);
        };
        let first = ask(judge, sql)?;
        if first.is_none() {
            return Ok(Verdict::TooSlow);
        }
        let Some(kind) = difference(sql, sheaf, &first) else {
            return Ok(Verdict::Same);
        };
        // A judge that does not know the statement says nothing about it, so the other one decides.
        let is_unknown = first.is_unknown_syntax();
        let mut is_known = known::reason(sql, sheaf, &first).is_some();
        let second = match &mut self.second {
            Some(second) if is_unknown || !is_known => Some(ask(second, sql)?),
            _ => None,
        };
        if let Some(second) = &second {
            match second.is_none() {
                true if is_unknown => return Ok(Verdict::TooSlow),
                false if difference(sql, sheaf, second).is_none() => {
                    return Ok(Verdict::Overruled);
                }
                _ => {}
            }
            is_known |= is_unknown && known::reason(sql, sheaf, second).is_some();
        } else if is_unknown {
            // There is no other one.
            return Ok(Verdict::Known);
        }
        if is_known {
            return Ok(Verdict::Known);
        }
        let judges = self.judge.iter_mut().zip([&first]);
        let judges = judges.chain(self.second.iter_mut().zip(&second));
        for (judge, answer) in judges.filter(|(_, answer)| !answer.is_unknown_syntax()) {
            if is_agreed_by_other_plans(judge, sql, sheaf, answer)? {
                return Ok(Verdict::Contradicted);
            }
        }
        let mut judges = vec![(kind, first.error_code())];
        if let Some(second) = &second {
            let kind = difference(sql, sheaf, second);
            judges.extend(kind.map(|kind| (kind, second.error_code())));
        }
        Ok(Verdict::Differs(Found { kind, judges }))
    }

    fn count(&mut self, counts: bool, more: &Summary) {
        if counts {
            self.summary.same_error += more.same_error;
            self.summary.refused += more.refused;
            self.summary.timeouts += more.timeouts;
            self.summary.known += more.known;
            self.summary.overruled += more.overruled;
            self.summary.contradicted += more.contradicted;
        }
    }

    /// Compares one query, and makes a difference small.
    fn query(&mut self, seed: u64, tree: Tree) -> Result<(), FuzzError> {
        self.summary.queries += 1;
        let Some(found) = self.differs(&tree.sql(), true)? else {
            return Ok(());
        };
        let whole = tree.sql();
        let mut failed = None;
        let smallest = reduce(tree, |sql| match self.differs(sql, false) {
            Ok(now) => now.as_ref() == Some(&found),
            Err(error) => {
                failed = Some(error);
                false
            }
        });
        if let Some(error) = failed {
            return Err(error);
        }
        let sql = smallest.sql();
        let one = ask(&mut self.sheaf, &sql)?;
        let mut text = format!("{sql};\n-- Sheaf: {}\n", one.summary());
        let judges = self.judge.iter_mut().chain(&mut self.second);
        for judge in judges.filter(|_| !found.kind.is_fault()) {
            let answer = ask(judge, &sql)?;
            text += &format!("-- {}: {}\n", judge.party, answer.summary());
        }
        let kind = found.kind;
        self.tell(seed, &format!("{kind:?}"), &text, kind.is_fault())?;
        self.write_report(&format!("-- made from\n-- {whole};\n"))
    }

    /// Counts and prints what was found. A fault has the statements that make the tables with it; of a difference they
    /// are in the report only.
    fn tell(&mut self, seed: u64, what: &str, text: &str, is_fault: bool) -> Result<(), FuzzError> {
        let found = format!("-- seed {seed}: {what}\n{text}");
        let with_tables = format!("{found}/*\n{};\n*/\n", self.tables.join(";\n"));
        match is_fault {
            true => {
                self.summary.faults += 1;
                println!("-- FAULT\n{with_tables}");
            }
            false => {
                self.summary.differences += 1;
                println!("{found}");
            }
        }
        self.write_report(&with_tables)
    }

    fn write_report(&mut self, text: &str) -> Result<(), FuzzError> {
        match &mut self.report {
            Some(report) => writeln!(report, "{text}")
                .map_err(|error| FuzzError::File("the report".to_owned(), error)),
            None => Ok(()),
        }
    }
}
