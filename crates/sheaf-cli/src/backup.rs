//! `sheaf backup`: copies a database, by asking the server that serves it, or itself if none does.
//!
//! A server makes the copy on its own machine (the statement `BACKUP TO 'folder'`) while it goes on serving; this
//! process only shows how far it is.

use std::error::Error;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::thread;
use std::time::Duration;

use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use mysql::Row;
use mysql::prelude::Queryable;
use sheaf_cli::size::{format_size, parse_size};
use sheaf_sql::PERSISTED_FILE;
use sheaf_storage::{CopyProgress, Storage, StorageOptions};

use crate::server_connection::{connect, password, quoted};

/// How often the server is asked how far it is.
const POLL_INTERVAL: Duration = Duration::from_millis(200);

#[derive(Debug, Args)]
pub struct BackupArguments {
    /// The folder to copy to, on the server's machine; it must be empty or absent. It becomes a data directory.
    #[arg(long)]
    to: PathBuf,
    /// The server that serves the database, such as 127.0.0.1:3306.
    #[arg(
        long,
        value_name = "HOST:PORT",
        conflicts_with = "data_dir",
        required_unless_present = "data_dir"
    )]
    server: Option<String>,
    /// The user to connect as.
    #[arg(long, default_value = "root")]
    user: String,
    /// The user's password. Everybody on this machine can read it in the list of processes; --password-file and the
    /// environment variable MYSQL_PWD are for passwords that matter.
    #[arg(long, conflicts_with = "password_file")]
    password: Option<String>,
    /// A file whose first line is the user's password.
    #[arg(long, value_name = "FILE")]
    password_file: Option<PathBuf>,
    /// The directory that holds the database, if no server uses it.
    #[arg(long)]
    data_dir: Option<PathBuf>,
    /// What the process may use when it copies itself, such as 512M or 8G.
    #[arg(long, value_parser = parse_size, default_value = "256M")]
    memory: usize,
}

pub fn run(arguments: &BackupArguments) -> Result<ExitCode, Box<dyn Error>> {
    let to = std::path::absolute(&arguments.to)?;
    match (&arguments.server, &arguments.data_dir) {
        (Some(server), _) => ask_server(arguments, server, &to)?,
        (None, Some(data_dir)) => copy_directory(data_dir, &to, arguments.memory)?,
        (None, None) => return Err("either --server or --data-dir is needed".into()),
    }
    Ok(ExitCode::SUCCESS)
}

/// Lets the server do it.
fn ask_server(arguments: &BackupArguments, server: &str, to: &Path) -> Result<(), Box<dyn Error>> {
    let password = password(
        arguments.password.as_deref(),
        arguments.password_file.as_deref(),
    )?;
    let connect = || connect(server, &arguments.user, password.as_deref());
    let (mut connection, mut watcher) = (connect()?, connect()?);
    let id = connection.connection_id();
    let statement = format!("BACKUP TO {}", quoted(&to.display().to_string()));
    let working = thread::spawn(move || connection.query_first::<Row, _>(statement));
    let progress = bar(ProgressBar::new(100), "{msg} {bar:30} {percent}% {eta}");
    while !working.is_finished() {
        let processes: Vec<Row> = watcher.query("SHOW PROCESSLIST")?;
        let own = processes
            .iter()
            .find(|row| row.get::<u64, _>("Id") == Some(u64::from(id)));
        if let Some(Some(state)) = own.and_then(|row| row.get::<Option<String>, _>("State"))
            && let Some((what, percent)) = percent_done(&state)
        {
            progress.set_message(what.to_string());
            progress.set_position(percent);
        }
        thread::sleep(POLL_INTERVAL);
    }
    progress.finish_and_clear();
    let made = working.join().map_err(|_| "the connection panicked")??;
    let number = |name: &str| {
        let row = made.as_ref();
        row.and_then(|row| row.get::<u64, _>(name)).unwrap_or(0)
    };
    say(to, number("Data_bytes"), number("Log_bytes"));
    Ok(())
}

/// What the state of a connection in SHOW PROCESSLIST says about its work, such as `copying pages: 37%`.
fn percent_done(state: &str) -> Option<(&str, u64)> {
    let (what, percent) = state.strip_suffix('%')?.rsplit_once(": ")?;
    Some((what, percent.parse().ok()?))
}

/// Copies a directory that no server uses. It is opened for that, so what a crash has left is recovered first.
fn copy_directory(data_dir: &Path, to: &Path, memory: usize) -> Result<(), Box<dyn Error>> {
    if !data_dir.is_dir() {
        return Err(format!("{}: no such directory", data_dir.display()).into());
    }
    let options = StorageOptions {
        pool_bytes: memory / 2,
        ..StorageOptions::default()
    };
    let storage = Storage::open(data_dir, options)?;
    let bar = copy_bar();
    let persisted = data_dir.join(PERSISTED_FILE);
    let made = storage.backup_to(to, &[&persisted], &mut |progress| {
        show(&bar, progress);
        Ok(())
    });
    bar.finish_and_clear();
    storage.close()?;
    let made = made?;
    say(to, made.bytes, made.log_bytes);
    Ok(())
}

fn say(to: &Path, bytes: u64, log_bytes: u64) {
    println!(
        "{}: {} of data, {} of log",
        to.display(),
        format_size(bytes as usize),
        format_size(log_bytes as usize)
    );
}

/// A bar for bytes that are copied.
pub fn copy_bar() -> ProgressBar {
    bar(
        ProgressBar::new(0),
        "{msg} {bar:30} {bytes}/{total_bytes} {eta}",
    )
}

pub fn show(bar: &ProgressBar, progress: CopyProgress) {
    bar.set_length(progress.bytes_total);
    bar.set_position(progress.bytes);
    if progress.log_bytes > 0 {
        bar.set_message(format!("log: {}", format_size(progress.log_bytes as usize)));
    }
}

/// Nothing is shown if standard error is no terminal.
fn bar(bar: ProgressBar, template: &str) -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    match ProgressStyle::with_template(template) {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}

#[cfg(test)]
mod tests {
    use super::{percent_done, quoted};

    #[test]
    fn the_state_of_a_backup_says_how_far_it_is() {
        let state = "copying pages: 37%";
        assert_eq!(percent_done(state), Some(("copying pages", 37)));
        for other in ["", "executing", "copying pages: %", "37%"] {
            assert_eq!(percent_done(other), None, "{other}");
        }
    }

    #[test]
    fn paths_survive_quoting() {
        assert_eq!(quoted("/b"), "'/b'");
        assert_eq!(quoted(r"/it's\here"), r"'/it''s\\here'");
    }
}
