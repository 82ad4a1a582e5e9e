//! `sheaf restore`: a backup and the archived log become a database of a chosen moment.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use chrono::{DateTime, NaiveDate, NaiveDateTime, Utc};
use clap::Args;
use sheaf::existing_archive;
use sheaf_cli::size::parse_size;
use sheaf_sql::PERSISTED_FILE;
use sheaf_storage::{Lsn, RestoreUntil, Storage, StorageError, StorageOptions, restore_to};

use crate::backup::{copy_bar, show};

#[derive(Debug, Args)]
pub struct RestoreArguments {
    /// The folder that holds the backup.
    #[arg(long)]
    from: PathBuf,
    /// The directory to make; it must be empty or absent.
    #[arg(long)]
    data_dir: PathBuf,
    /// Where the server's log was archived to.
    #[arg(long, value_name = "DIR-or-URL")]
    archive: Option<String>,
    /// The moment to restore, such as '2026-11-22 03:14:15.5'; UTC, unless it ends with an offset such as +02:00.
    /// Without it all that is archived is restored.
    #[arg(long, value_parser = parse_time, requires = "archive")]
    until: Option<DateTime<Utc>>,
    /// The moment to restore as a position of the log.
    #[arg(long, conflicts_with = "until", requires = "archive")]
    until_position: Option<u64>,
    /// What the process may use, such as 512M or 8G.
    #[arg(long, value_parser = parse_size, default_value = "512M")]
    memory: usize,
}

pub fn run(arguments: &RestoreArguments) -> Result<ExitCode, Box<dyn Error>> {
    let archive = arguments.archive.as_deref();
    let archive = archive.map(existing_archive).transpose()?;
    let until = match (arguments.until, arguments.until_position) {
        (Some(time), _) => RestoreUntil::TimeUs(u64::try_from(time.timestamp_micros())?),
        (None, Some(position)) => RestoreUntil::Position(Lsn(position)),
        (None, None) => RestoreUntil::End,
    };
    let bar = copy_bar();
    let restored = restore_to(
        &arguments.from,
        archive.as_deref(),
        (&arguments.data_dir, &[PERSISTED_FILE]),
        until,
        &mut |progress| {
            show(&bar, progress);
            Ok(())
        },
    );
    bar.finish_and_clear();
    let restored = restored.map_err(|error| explain(&arguments.from, error))?;
    // Opening it is what applies the log.
    let options = StorageOptions {
        pool_bytes: arguments.memory / 2,
        ..StorageOptions::default()
    };
    Storage::open(&arguments.data_dir, options)?.close()?;
    let newest = restored.newest_commit_us.map(show_time);
    println!(
        "{}: restored to position {} of the log; the newest transaction was committed at {}",
        arguments.data_dir.display(),
        restored.end.0,
        newest
            .as_deref()
            .unwrap_or("a time before the backup began")
    );
    match restored.next_commit_us {
        Some(next) => println!(
            "The first one that is not in was committed at {}.",
            show_time(next)
        ),
        None if until != RestoreUntil::End => {
            println!("The archived log ends there: no later transaction is known.");
        }
        None => {}
    }
    Ok(ExitCode::SUCCESS)
}

/// An error of the restoration, with times as people read them.
fn explain(from: &Path, error: StorageError) -> Box<dyn Error> {
    match error {
        StorageError::BackupIsYounger {
            completed_at_us,
            end,
        } => format!(
            "the backup in {} was completed at {}, position {end}, which is after the moment that is to be restored: \
             take an older backup",
            from.display(),
            show_time(completed_at_us)
        )
        .into(),
        error => error.into(),
    }
}

/// A moment as people write it.
fn parse_time(text: &str) -> Result<DateTime<Utc>, String> {
    for format in ["%Y-%m-%d %H:%M:%S%.f%:z", "%Y-%m-%dT%H:%M:%S%.f%:z"] {
        if let Ok(time) = DateTime::parse_from_str(text, format) {
            return Ok(time.to_utc());
        }
    }
    let plain = text.strip_suffix('Z').unwrap_or(text);
    for format in [
        "%Y-%m-%d %H:%M:%S%.f",
        "%Y-%m-%dT%H:%M:%S%.f",
        "%Y-%m-%d %H:%M",
    ] {
        if let Ok(time) = NaiveDateTime::parse_from_str(plain, format) {
            return Ok(time.and_utc());
        }
    }
    match NaiveDate::parse_from_str(plain, "%Y-%m-%d") {
        Ok(date) => Ok(date.and_time(chrono::NaiveTime::MIN).and_utc()),
        Err(_) => Err(format!(
            "'{text}' is not a time such as '2026-11-22 03:14:15'"
        )),
    }
}

fn show_time(time_us: u64) -> String {
    let time = i64::try_from(time_us)
        .ok()
        .and_then(DateTime::from_timestamp_micros);
    time.map_or_else(
        || format!("{time_us} us"),
        |time| format!("{} UTC", time.format("%Y-%m-%d %H:%M:%S%.6f")),
    )
}

#[cfg(test)]
mod tests {
    use super::{parse_time, show_time};

    #[test]
    fn moments_are_read_as_people_write_them() {
        let micros = |text: &str| parse_time(text).map(|time| time.timestamp_micros());
        assert_eq!(micros("1970-01-01 00:00:01.25"), Ok(1_250_000));
        assert_eq!(micros("1970-01-01T00:00:01Z"), Ok(1_000_000));
        assert_eq!(micros("1970-01-01 02:00:01+02:00"), Ok(1_000_000));
        assert_eq!(micros("1970-01-02"), Ok(86_400_000_000));
        assert_eq!(micros("1970-01-01 00:01"), Ok(60_000_000));
        assert!(micros("yesterday").is_err());
    }

    #[test]
    fn moments_are_shown_as_they_are_read() {
        let shown = show_time(1_700_000_000_123_456);
        assert_eq!(shown, "2023-11-14 22:13:20.123456 UTC");
        let read = shown.strip_suffix(" UTC").map(parse_time);
        assert_eq!(
            read.map(|time| time.map(|time| time.timestamp_micros())),
            Some(Ok(1_700_000_000_123_456))
        );
    }
}
