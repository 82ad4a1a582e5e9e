//! `sheaf init`: a database before its first server, so that none ever listens without a password.

use std::error::Error;
use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use clap::Args;
use sheaf_cli::serve::is_database;
use sheaf_cli::size::parse_size;
use sheaf_sql::{Engine, EngineOptions};

/// Characters of a password that is made: nobody mistakes one of them for another.
const ALPHABET: &[u8] = b"abcdefghijkmnpqrstuvwxyzACDEFGHJKLMNPQRTUVWXY3479-_+=.,:;@#%/";
/// 20 of 61 characters are 118 bits.
const PASSWORD_LENGTH: usize = 20;

#[derive(Debug, Args)]
pub struct InitArguments {
    /// The directory that holds the database; created if absent.
    #[arg(long)]
    data_dir: PathBuf,
    /// Give root a password, also in a database that is there: one that is made and printed, or that of
    /// --password-file.
    #[arg(long)]
    secure: bool,
    /// A file whose first line is the password.
    #[arg(long, value_name = "FILE", requires = "secure")]
    password_file: Option<PathBuf>,
    /// What the process may use, such as 512M or 8G.
    #[arg(long, value_parser = parse_size, default_value = "512M")]
    memory: usize,
}

pub fn run(arguments: &InitArguments) -> Result<ExitCode, Box<dyn Error>> {
    let directory = arguments.data_dir.display();
    let was_there = is_database(&arguments.data_dir);
    if was_there && !arguments.secure {
        return Err(format!("there is a database in {directory}").into());
    }
    let password = match &arguments.password_file {
        Some(file) => Some(first_line(file)?),
        None => None,
    };
    let engine = Engine::open(
        &arguments.data_dir,
        EngineOptions {
            memory_bytes: arguments.memory,
            ..EngineOptions::default()
        },
    )?;
    let secured = match arguments.secure {
        true => secure(&engine, password),
        false => Ok(()),
    };
    engine.close()?;
    secured?;
    if !was_there {
        println!("made a database in {directory}");
    }
    if !arguments.secure {
        println!("root has no password: `sheaf init --secure` gives it one");
    }
    Ok(ExitCode::SUCCESS)
}

fn first_line(file: &PathBuf) -> Result<String, Box<dyn Error>> {
    let text = fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))?;
    let password = text.lines().next().unwrap_or_default();
    if password.is_empty() {
        return Err(format!("{}: its first line is empty", file.display()).into());
    }
    Ok(password.into())
}

/// Gives each account that administers the server and has no password one.
fn secure(engine: &Arc<Engine>, password: Option<String>) -> Result<(), Box<dyn Error>> {
    let accounts = engine.open_accounts();
    if accounts.is_empty() {
        println!(
            "each account that administers the server has a password or is locked; nothing was changed"
        );
        return Ok(());
    }
    let is_given = password.is_some();
    let password = match password {
        Some(password) => password,
        None => random_password()?,
    };
    for account in accounts {
        engine.set_password(&account, &password)?;
        if is_given {
            println!("{account} has the password of the file");
        } else {
            println!("{account} has the password {password}");
        }
    }
    Ok(())
}

fn random_password() -> Result<String, Box<dyn Error>> {
    let mut password = String::new();
    while password.len() < PASSWORD_LENGTH {
        let mut bytes = [0; PASSWORD_LENGTH];
        getrandom::fill(&mut bytes)?;
        // Bytes beyond the last whole alphabet would favour its first characters.
        let whole = 256 / ALPHABET.len() * ALPHABET.len();
        let fair = bytes
            .into_iter()
            .map(usize::from)
            .filter(|byte| *byte < whole);
        let characters = fair.map(|byte| char::from(ALPHABET[byte % ALPHABET.len()]));
        password.extend(characters.take(PASSWORD_LENGTH - password.len()));
    }
    Ok(password)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_differ_and_are_long() {
        let (one, other) = (random_password(), random_password());
        let (one, other) = (one.expect("random"), other.expect("random"));
        assert_eq!(one.len(), PASSWORD_LENGTH);
        assert_ne!(one, other);
    }
}
