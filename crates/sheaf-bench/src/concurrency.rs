//! What others cost a reader: transactions that are open, rows that are being changed, a snapshot that is held.
//!
//! Everything runs in this process through the library. The figure that counts is work for a second of processor time
//! of the reader's own threads. On a machine with fewer cores than threads, a reader beside sixteen writers is slower
//! by the clock for no fault of the storage. A reader's threads are its own and the pool that answers large queries;
//! writers run on theirs. Each situation is measured in turn with its quiet counterpart, and the median of the rounds
//! counts. What a long time of updates leaves behind cannot be measured in turn with what was before: there the
//! counterpart is a table with the same rows that nobody has changed.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use clap::Args;
use sheaf::{Connection, Database};

use crate::error::BenchError;
use crate::machine::{self, ThreadTimes};
use crate::reference::write_section;

/// Options of `sheaf-bench concurrency`.
#[derive(Args)]
pub struct Options {
    /// Rows of the table, about 250 bytes each with the index.
    #[arg(long, default_value_t = 200_000)]
    rows: u64,
    /// Transactions that are active while snapshots are opened.
    #[arg(long, default_value_t = 1_000)]
    transactions: usize,
    #[arg(long, default_value_t = 16)]
    writers: usize,
    /// Seconds of each measurement.
    #[arg(long, default_value_t = 3)]
    seconds: u64,
    /// Rounds of each comparison; the median counts.
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Seconds of updates behind a snapshot that is held.
    #[arg(long, default_value_t = 600)]
    hold_seconds: u64,
    #[arg(long, default_value = "1G", value_parser = sheaf_cli::size::parse_size)]
    memory: usize,
    /// Folder for the data; emptied first.
    #[arg(long)]
    work: Option<PathBuf>,
    /// File that receives the results table; `-` prints it only.
    #[arg(long, default_value = "docs/benchmarks.md")]
    out: String,
}

/// The table that writers change, and one with the same rows that nobody changes.
const TABLES: [&str; 2] = ["t", "unchanged"];
/// Reads that are compared take turns, each for so long: what else goes on in the machine slows all of them.
const TURN: Duration = Duration::from_millis(100);
/// What the collector may take to drop what a snapshot has kept.
const COLLECTION: Duration = Duration::from_secs(5);
/// Name of the threads on which readers run; Linux cuts names to 15 bytes.
const READER: &str = "bench-reader";
/// Name of the engine's threads that answer large queries.
const QUERY_THREADS: &str = "sheaf-query";

/// Runs the measurements and writes their table.
pub fn run(options: &Options) -> Result<(), BenchError> {
    let folder = options
        .work
        .clone()
        .unwrap_or_else(|| std::env::temp_dir().join("sheaf-bench"))
        .join("concurrency");
    if folder.exists() {
        std::fs::remove_dir_all(&folder).map_err(|error| BenchError::file(&folder, error))?;
    }
    let database = Database::open(
        &folder,
        sheaf::Options::default().with_memory_bytes(options.memory),
    )
    .map_err(BenchError::from_display)?;
    eprintln!("filling {} rows", options.rows);
    let connections = options.transactions + options.writers + 16;
    fill(&database, options.rows, connections)?;
    let bench = Bench {
        options,
        database: &database,
        changes: AtomicU64::new(0),
    };
    let mut lines = Vec::new();
    lines.push(bench.snapshots()?);
    lines.push(bench.beside_writers(
        "point reads (SELECT c WHERE id = ?)",
        "at least 0.9",
        Read::POINT,
    )?);
    lines.push(bench.beside_writers(
        "scans (SELECT COUNT(*), SUM(k))",
        "at least 0.7",
        Read::SCAN,
    )?);
    lines.extend(bench.held_snapshot()?);
    database.close().map_err(BenchError::from_display)?;
    let text = report(options, &lines);
    println!("{text}");
    if options.out != "-" {
        write_section(options.out.as_ref(), &text)?;
    }
    Ok(())
}

/// Tables `(id INT PRIMARY KEY, k INT, c CHAR(120), pad CHAR(60), KEY (k))`, as sysbench has them.
/// Sets how many connections there may be, too.
fn fill(database: &Database, rows: u64, connections: usize) -> Result<(), BenchError> {
    let mut connection = database.connect().map_err(BenchError::from_display)?;
    let mut execute = |sql: &str| connection.execute(sql).map_err(BenchError::from_display);
    execute(&format!("set global max_connections = {connections}"))?;
    execute("create database bench")?;
    execute("use bench")?;
    for table in TABLES {
        execute(&format!(
            "create table {table} (id int not null primary key, k int not null default 0, c char(120) not null, \
             pad char(60) not null, key k_1 (k))",
        ))?;
        const BATCH: u64 = 1_000;
        for first in (0..rows).step_by(BATCH as usize) {
            let mut sql = format!("insert into {table} values ");
            for id in first..(first + BATCH).min(rows) {
                let comma = if id == first { "" } else { "," };
                let text = format!("{:011}-", id * 7_919 % 99_991);
                let (c, pad) = (text.repeat(9), text.repeat(4));
                let _ = write!(sql, "{comma}({id},{},'{c}','{pad}')", id % 1_000);
            }
            execute(&sql)?;
        }
    }
    Ok(())
}

/// One line of the results.
struct Line {
    what: String,
    quiet: f64,
    busy: f64,
    unit: &'static str,
    /// What the ratio of busy to quiet should be.
    target: &'static str,
}

struct Bench<'a> {
    options: &'a Options,
    database: &'a Database,
    /// Rows that writers have changed.
    changes: AtomicU64,
}

/// What a reader does again and again.
#[derive(Clone, Copy)]
struct Read {
    table: &'static str,
    /// The statement for a table; the number is random.
    statement: fn(&Options, &str, u64) -> String,
}

impl Read {
    const POINT: Read = Read {
        table: TABLES[0],
        statement: |options, table, random| {
            let id = random % options.rows;
            format!("select c from {table} where id = {id}")
        },
    };
    const SCAN: Read = Read {
        table: TABLES[0],
        statement: |_, table, _| format!("select count(*), sum(k) from {table}"),
    };

    /// The same of the table that nobody changes.
    fn of_unchanged(self) -> Read {
        Read {
            table: TABLES[1],
            ..self
        }
    }

    fn run(
        self,
        bench: &Bench<'_>,
        connection: &mut Connection,
        random: u64,
    ) -> Result<(), BenchError> {
        let statement = (self.statement)(bench.options, self.table, random);
        execute(connection, &statement)
    }
}

impl Bench<'_> {
    fn connect(&self) -> Result<Connection, BenchError> {
        let mut connection = self.database.connect().map_err(BenchError::from_display)?;
        execute(&mut connection, "use bench")?;
        Ok(connection)
    }

    /// Reads on a thread of its own, by turns and each for the given time; returns units for a second of processor
    /// time.
    fn read_rates<const READS: usize>(
        &self,
        reads: [Read; READS],
    ) -> Result<[f64; READS], BenchError> {
        let limit = Duration::from_secs(self.options.seconds) * READS as u32;
        on_reader_thread(|| {
            let mut connection = self.connect()?;
            let mut random = Random(0x9E37_79B9);
            for read in reads {
                read.run(self, &mut connection, random.next())?;
            }
            let cpu = || ThreadTimes::now(&[READER, QUERY_THREADS]);
            let (mut units, mut used) = ([0u64; READS], [Duration::ZERO; READS]);
            let start = Instant::now();
            while start.elapsed() < limit {
                for (i, read) in reads.into_iter().enumerate() {
                    let (turn, before) = (Instant::now(), cpu());
                    while turn.elapsed() < TURN {
                        read.run(self, &mut connection, random.next())?;
                        units[i] += 1;
                    }
                    used[i] += cpu().since(&before);
                }
            }
            Ok(std::array::from_fn(|i| {
                units[i] as f64 / used[i].as_secs_f64().max(1e-9)
            }))
        })
    }

    fn read_rate(&self, read: Read) -> Result<f64, BenchError> {
        Ok(self.read_rates([read])?[0])
    }

    /// The rates of the read on the table that nobody changes, and on the other one: medians of the rounds.
    fn unchanged_and_changed(&self, read: Read) -> Result<(f64, f64), BenchError> {
        let (mut unchanged, mut changed) = (Vec::new(), Vec::new());
        for _ in 0..self.options.rounds.max(1) {
            let rates = self.read_rates([read.of_unchanged(), read])?;
            unchanged.push(rates[0]);
            changed.push(rates[1]);
        }
        Ok((median(unchanged), median(changed)))
    }

    /// Runs `during` while writers change rows.
    fn with_writers<T>(
        &self,
        writers: usize,
        during: impl FnOnce() -> Result<T, BenchError>,
    ) -> Result<T, BenchError> {
        let stop = AtomicBool::new(false);
        thread::scope(|scope| {
            let handles: Vec<_> = (0..writers)
                .map(|writer| {
                    let stop = &stop;
                    scope.spawn(move || -> Result<(), BenchError> {
                        let mut connection = self.connect()?;
                        let mut random = Random(writer as u64 + 1);
                        while !stop.load(Ordering::Relaxed) {
                            let id = random.next() % self.options.rows;
                            execute(
                                &mut connection,
                                &format!("update t set k = k + 1 where id = {id}"),
                            )?;
                            self.changes.fetch_add(1, Ordering::Relaxed);
                        }
                        Ok(())
                    })
                })
                .collect();
            let outcome = during();
            stop.store(true, Ordering::Relaxed);
            for handle in handles {
                handle.join().unwrap_or_else(|_| {
                    Err(BenchError::Other(
                        "a writer panicked; its message is above".into(),
                    ))
                })?;
            }
            outcome
        })
    }

    fn beside_writers(
        &self,
        what: &str,
        target: &'static str,
        read: Read,
    ) -> Result<Line, BenchError> {
        let (mut quiet, mut busy) = (Vec::new(), Vec::new());
        let mut changes_per_second = 0;
        for _ in 0..self.options.rounds.max(1) {
            quiet.push(self.read_rate(read)?);
            let before = self.changes.load(Ordering::Relaxed);
            busy.push(self.with_writers(self.options.writers, || self.read_rate(read))?);
            changes_per_second =
                (self.changes.load(Ordering::Relaxed) - before) / self.options.seconds.max(1);
        }
        let what = format!(
            "{what}, quiet / beside {} writers ({changes_per_second} updates a second)",
            self.options.writers
        );
        let line = Line {
            what,
            quiet: median(quiet),
            busy: median(busy),
            unit: "a processor second",
            target,
        };
        eprintln!("{}: {:.0} / {:.0}", line.what, line.quiet, line.busy);
        Ok(line)
    }

    /// What it takes to open a snapshot beside one active transaction, and beside many. Tens of nanoseconds are less
    /// than what goes on in the machine adds to a single measurement, and the clock of other threads goes by scheduler
    /// ticks. So one thread opens them in short turns by its own clock, and the median of the turns counts. One and
    /// many take turns more often than other comparisons do. What was done to make transactions active is over when
    /// they begin.
    fn snapshots(&self) -> Result<Line, BenchError> {
        /// Snapshots of one turn: half a millisecond, so that most turns are not interrupted.
        const OPENED: u32 = 16_384;
        const TURNS: usize = 101;
        /// The log has been written by then, and the processor is not busy with that.
        const SETTLING: Duration = Duration::from_millis(200);
        const ALTERNATIONS: usize = 5;
        let storage = self.database.engine().storage();
        let turn = || -> Result<f64, BenchError> {
            let before = machine::processor_time_of_this_thread();
            for _ in 0..OPENED {
                drop(storage.read_view().map_err(BenchError::from_display)?);
            }
            let used = machine::processor_time_of_this_thread() - before;
            Ok(used.as_secs_f64() * 1e9 / f64::from(OPENED))
        };
        let cost = || {
            thread::sleep(SETTLING);
            on_reader_thread(|| {
                turn()?;
                let turns = (0..TURNS).map(|_| turn());
                Ok(median(turns.collect::<Result<_, BenchError>>()?))
            })
        };
        let active = |count: usize| -> Result<Vec<Connection>, BenchError> {
            (0..count)
                .map(|number| {
                    let mut connection = self.connect()?;
                    execute(&mut connection, "begin")?;
                    execute(
                        &mut connection,
                        &format!("update t set k = k + 1 where id = {number}"),
                    )?;
                    Ok(connection)
                })
                .collect()
        };
        let (mut quiet, mut busy) = (Vec::new(), Vec::new());
        for _ in 0..self.options.rounds.max(1) * ALTERNATIONS {
            for (count, results) in [(1, &mut quiet), (self.options.transactions, &mut busy)] {
                let mut connections = active(count)?;
                results.push(cost()?);
                for connection in &mut connections {
                    execute(connection, "rollback")?;
                }
            }
        }
        let line = Line {
            what: format!(
                "opening and closing a snapshot beside 1 / {} active transactions",
                self.options.transactions
            ),
            quiet: median(quiet),
            busy: median(busy),
            unit: "ns",
            target: "at most 1.1",
        };
        eprintln!("{}: {:.0} / {:.0} ns", line.what, line.quiet, line.busy);
        Ok(line)
    }

    /// New readers of a table after a long time of updates behind a snapshot that is still held, and when it is held no
    /// more: what slows them then is not the snapshot.
    fn held_snapshot(&self) -> Result<Vec<Line>, BenchError> {
        let mut holder = self.connect()?;
        execute(&mut holder, "start transaction with consistent snapshot")?;
        let seen = sum(&mut holder)?;
        let changes = self.changes.load(Ordering::Relaxed);
        self.with_writers(self.options.writers, || {
            thread::sleep(Duration::from_secs(self.options.hold_seconds));
            Ok(())
        })?;
        let changes = self.changes.load(Ordering::Relaxed) - changes;
        let line = |what: &str, when: &str, read: Read| -> Result<Line, BenchError> {
            let (quiet, busy) = self.unchanged_and_changed(read)?;
            let line = Line {
                what: format!(
                    "{what} of new readers, of a table that nobody changes / after {} s with {changes} updates {when}",
                    self.options.hold_seconds
                ),
                quiet,
                busy,
                unit: "a processor second",
                target: "at least 0.9",
            };
            eprintln!("{}: {:.0} / {:.0}", line.what, line.quiet, line.busy);
            Ok(line)
        };
        let held = "behind a held snapshot";
        let mut lines = vec![
            line("point reads", held, Read::POINT)?,
            line("scans", held, Read::SCAN)?,
        ];
        if sum(&mut holder)? != seen {
            return Err(BenchError::Other(
                "the held snapshot does not see what it saw at first".into(),
            ));
        }
        execute(&mut holder, "rollback")?;
        thread::sleep(COLLECTION);
        lines.push(line("scans", "when the snapshot is gone", Read::SCAN)?);
        Ok(lines)
    }
}

/// Runs `work` on a thread of the readers' name.
fn on_reader_thread<T: Send>(
    work: impl FnOnce() -> Result<T, BenchError> + Send,
) -> Result<T, BenchError> {
    thread::scope(|scope| {
        let reader = thread::Builder::new()
            .name(READER.into())
            .spawn_scoped(scope, work)
            .map_err(BenchError::from_display)?;
        reader.join().unwrap_or_else(|_| {
            Err(BenchError::Other(
                "a reader panicked; its message is above".into(),
            ))
        })
    })
}

fn execute(connection: &mut Connection, sql: &str) -> Result<(), BenchError> {
    connection
        .execute(sql)
        .map(drop)
        .map_err(BenchError::from_display)
}

/// What a connection sees, in one number.
fn sum(connection: &mut Connection) -> Result<String, BenchError> {
    let batches = connection
        .query("select sum(k * (id % 89 + 1)) from t")
        .map_err(BenchError::from_display)?;
    Ok(format!("{batches:?}"))
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}

/// Numbers that follow from a seed (Marsaglia, "Xorshift RNGs", 2003).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
}

fn report(options: &Options, lines: &[Line]) -> String {
    let mut text = String::from("## Readers beside others\n\n");
    let _ = writeln!(text, "{}; in one process.  ", machine::today());
    let _ = writeln!(text, "Machine: {}.  ", machine::describe());
    let _ = writeln!(
        text,
        "Written by `sheaf-bench concurrency --rows {} --seconds {} --hold-seconds {}`: medians of {} rounds (of \
         snapshots, of five times as many, each a median of a hundred turns); every commit is on the disk before it is \
         acknowledged. A processor second is one of the reader's own threads.\n",
        options.rows, options.seconds, options.hold_seconds, options.rounds
    );
    let _ = writeln!(
        text,
        "| what | quiet | busy | unit | busy / quiet | should be |\n|---|---|---|---|---|---|"
    );
    for line in lines {
        let _ = writeln!(
            text,
            "| {} | {:.1} | {:.1} | {} | {:.2} | {} |",
            line.what,
            line.quiet,
            line.busy,
            line.unit,
            line.busy / line.quiet,
            line.target
        );
    }
    text
}
