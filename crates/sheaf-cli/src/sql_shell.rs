//! `sheaf sql`: a shell on a database of this machine, without a server.
//!
//! On a terminal it reads lines with history and shows tables, as the mysql client does. With `-e`, or with its
//! input from a file, it runs the statements, stops at the first error, and gives tab-separated lines unless a
//! person looks at them.

use std::error::Error;
use std::io::{self, BufRead, BufWriter, IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Instant;

use clap::Args;
use rustyline::DefaultEditor;
use rustyline::config::Config;
use rustyline::error::ReadlineError;
use sheaf_sql::{Engine, EngineOptions, Session, SessionInfo};
use signal_hook::consts::SIGINT;
use signal_hook::iterator::Signals;

use crate::result_printer::{Layout, ResultPrinter};
use crate::statement_reader::{Statement, StatementReader};
use sheaf_cli::size::parse_size;

/// Lines that the history file keeps.
const HISTORY_LINES: usize = 10_000;
const HISTORY_FILE: &str = ".sheaf_history";
const HELP: &str = "\
End a statement with ; or with \\G to see one column a line.
Ctrl-C ends a running statement, or clears what was typed. quit, exit or Ctrl-D leaves.
";

#[derive(Debug, Args)]
pub struct SqlArguments {
    /// The directory that holds the database; created if absent.
    #[arg(long)]
    data_dir: PathBuf,
    /// Statements to run, instead of reading them.
    #[arg(short = 'e', long = "execute", value_name = "SQL")]
    execute: Option<String>,
    /// The database to start in.
    #[arg(short = 'D', long)]
    database: Option<String>,
    /// Tables, also where the output is not a terminal.
    #[arg(short = 't', long)]
    table: bool,
    /// What the process may use, such as 512M or 8G.
    #[arg(long, value_parser = parse_size, default_value = "512M")]
    memory: usize,
    /// The buffer pool's share of the memory; by default the engine decides.
    #[arg(long, value_parser = parse_size)]
    pool: Option<usize>,
}

pub fn run(arguments: SqlArguments) -> Result<ExitCode, Box<dyn Error>> {
    let engine = Engine::open(
        &arguments.data_dir,
        EngineOptions {
            memory_bytes: arguments.memory,
            pool_bytes: arguments.pool,
            ..EngineOptions::default()
        },
    )?;
    let result = run_on(&engine, &arguments);
    engine.close()?;
    result
}

fn run_on(engine: &Arc<Engine>, arguments: &SqlArguments) -> Result<ExitCode, Box<dyn Error>> {
    let mut session = engine.session(SessionInfo::default())?;
    if let Some(database) = &arguments.database {
        session.set_database(database)?;
    }
    let layout = if arguments.table || io::stdout().is_terminal() {
        Layout::Table
    } else {
        Layout::Tabs
    };
    let mut shell = Shell {
        running: cancel_on_interrupt(&session)?,
        session,
        layout,
    };
    if let Some(sql) = &arguments.execute {
        return shell.run_all(sql.as_bytes());
    }
    if !io::stdin().is_terminal() {
        return shell.run_all(io::stdin().lock());
    }
    shell.converse()
}

/// Lets Ctrl-C end the statement that runs while the flag is set, instead of the process.
fn cancel_on_interrupt(session: &Session) -> io::Result<Arc<AtomicBool>> {
    let running = Arc::new(AtomicBool::new(false));
    let (seen, handle) = (Arc::clone(&running), session.handle());
    let mut signals = Signals::new([SIGINT])?;
    thread::Builder::new()
        .name("interrupt".into())
        .spawn(move || {
            for _ in signals.forever() {
                if seen.load(Ordering::Acquire) {
                    handle.cancel();
                }
            }
        })?;
    Ok(running)
}

struct Shell {
    session: Session,
    /// A statement runs.
    running: Arc<AtomicBool>,
    layout: Layout,
}

impl Shell {
    /// Runs statements until one fails.
    fn run_all(&mut self, input: impl BufRead) -> Result<ExitCode, Box<dyn Error>> {
        let mut reader = StatementReader::default();
        for line in input.lines() {
            reader.push_line(&line?);
            while let Some(statement) = reader.next_statement() {
                if !self.run(&statement)? {
                    return Ok(ExitCode::FAILURE);
                }
            }
        }
        match reader.take_rest() {
            Some(statement) if !self.run(&statement)? => Ok(ExitCode::FAILURE),
            _ => Ok(ExitCode::SUCCESS),
        }
    }

    /// Runs what is typed until the person leaves.
    fn converse(&mut self) -> Result<ExitCode, Box<dyn Error>> {
        println!(
            "Sheaf {}. Statements end with ; or \\G. Type 'help' for help.\n",
            env!("CARGO_PKG_VERSION")
        );
        let config = Config::builder()
            .max_history_size(HISTORY_LINES)?
            .auto_add_history(true)
            .build();
        let mut editor = DefaultEditor::with_config(config)?;
        let history = std::env::home_dir().map(|home| home.join(HISTORY_FILE));
        if let Some(path) = &history {
            // The first time there is none.
            let _ = editor.load_history(path);
        }
        let mut reader = StatementReader::default();
        loop {
            match editor.readline(reader.prompt()) {
                Ok(line) if reader.is_at_start() && is_quit(&line) => break,
                Ok(line) if reader.is_at_start() && is_command(&line, &["help", "\\h", "?"]) => {
                    print!("{HELP}")
                }
                Ok(line) => {
                    reader.push_line(&line);
                    while let Some(statement) = reader.next_statement() {
                        self.run(&statement)?;
                    }
                }
                Err(ReadlineError::Interrupted) => reader = StatementReader::default(),
                Err(ReadlineError::Eof) => break,
                Err(error) => return Err(error.into()),
            }
        }
        if let Some(path) = &history
            && let Err(error) = editor.save_history(path)
        {
            eprintln!(
                "sheaf: the history was not saved in {}: {error}",
                path.display()
            );
        }
        println!("Bye");
        Ok(ExitCode::SUCCESS)
    }

    /// Runs a statement and shows what it gives; `false` if it failed.
    fn run(&mut self, statement: &Statement) -> io::Result<bool> {
        let layout = if statement.vertical {
            Layout::Vertical
        } else {
            self.layout
        };
        let out = BufWriter::new(io::stdout().lock());
        let mut printer = ResultPrinter::new(out, layout);
        let start = Instant::now();
        self.running.store(true, Ordering::Release);
        let result = self.session.execute(&statement.sql, &mut printer);
        self.running.store(false, Ordering::Release);
        match result {
            Ok(()) => {
                printer.finish(start.elapsed())?;
                Ok(true)
            }
            Err(error) => {
                // Rows that came before the error are shown before it.
                drop(printer);
                io::stdout().flush()?;
                eprintln!("{error}");
                Ok(false)
            }
        }
    }
}

fn is_quit(line: &str) -> bool {
    is_command(line, &["quit", "exit", "\\q"])
}

fn is_command(line: &str, names: &[&str]) -> bool {
    let line = line.trim().trim_end_matches(';').trim_end();
    names.iter().any(|name| line.eq_ignore_ascii_case(name))
}
