//! System variables that SET PERSIST keeps: they are set again when the server starts.
//!
//! ```text
//!   SET PERSIST a = 1  -->  mysqld-auto.cnf in the data directory  -->  the next start: SET GLOBAL a = 1
//! ```
//!
//! The file has MySQL's name and form, so that tools know it. It is written anew as a whole, beside the old one, and
//! takes its place when it is durable. What is persisted counts before the command line, the environment and the
//! configuration's file: a statement said it later than they did.
//!
//! Reference: MySQL manual, "Persisted System Variables".

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use sheaf_types::json::text::{push_quoted, read};
use sheaf_types::json::{Json, View};

use crate::error::{Result, SqlError};

/// The file, in the data directory. Backups have it, too.
pub const FILE: &str = "mysqld-auto.cnf";
const NEW_FILE: &str = "mysqld-auto.cnf.new";
/// A longer file is none of these.
const MAX_FILE_BYTES: u64 = 4 << 20;
/// The group of variables in the file.
const VARIABLES: &str = "mysql_dynamic_variables";

/// A value, and which account has set it when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Persisted {
    /// As SHOW VARIABLES prints it.
    pub(crate) value: String,
    pub(crate) user: String,
    pub(crate) host: String,
    /// Microseconds since 1970 UTC.
    pub(crate) set_micros: u64,
}

/// All that is persisted, by the names of variables.
pub(crate) type PersistedVariables = BTreeMap<String, Persisted>;

/// What the file in a data directory says; nothing where there is none.
///
/// # Errors
/// 1105: it cannot be read, or has another form.
pub(crate) fn read_file(directory: &Path) -> Result<PersistedVariables> {
    let path = directory.join(FILE);
    let refused = |reason: &dyn std::fmt::Display| {
        SqlError::unknown(format!(
            "{}: {reason}; mend the file, or remove it to start without persisted variables",
            path.display()
        ))
    };
    let mut text = String::new();
    // A pipe would be waited for.
    if std::fs::metadata(&path).is_ok_and(|found| !found.is_file()) {
        return Err(refused(&"it is no file"));
    }
    match File::open(&path) {
        Ok(file) => file
            .take(MAX_FILE_BYTES)
            .read_to_string(&mut text)
            .map_err(|error| refused(&error))?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(BTreeMap::new()),
        Err(error) => return Err(refused(&error)),
    };
    let document = read(&text).map_err(|_| refused(&"it is no JSON"))?;
    let root = document.as_json().as_object();
    let found = root.and_then(|root| root.get(VARIABLES));
    let Some(variables) = found.and_then(|found| found.as_object()) else {
        return Err(refused(&"it has no object mysql_dynamic_variables"));
    };
    let mut persisted = BTreeMap::new();
    for (name, found) in variables {
        let value =
            text_at(found, &["Value"]).ok_or_else(|| refused(&format!("{name} has no Value")))?;
        let at = |key| text_at(found, &["Metadata", key]).unwrap_or_default();
        persisted.insert(
            name.to_ascii_lowercase(),
            Persisted {
                value,
                user: at("User"),
                host: at("Host"),
                set_micros: at("Timestamp").parse().unwrap_or_default(),
            },
        );
    }
    Ok(persisted)
}

/// A string or a number behind these keys, as text.
fn text_at(json: Json<'_>, keys: &[&str]) -> Option<String> {
    let found = keys
        .iter()
        .try_fold(json, |json, key| json.as_object()?.get(key))?;
    match found.view() {
        View::String(text) => Some(text.to_string()),
        View::Int(number) => Some(number.to_string()),
        View::UInt(number) => Some(number.to_string()),
        _ => None,
    }
}

/// The text of the file.
fn text_of(persisted: &PersistedVariables) -> String {
    let quoted = |text: &str| {
        let mut quoted = String::new();
        push_quoted(text, &mut quoted);
        quoted
    };
    let mut text = format!("{{\"Version\": 2, {}: {{", quoted(VARIABLES));
    for (n, (name, one)) in persisted.iter().enumerate() {
        let comma = if n == 0 { "" } else { "," };
        // A text takes whatever is written to it.
        let _ = write!(
            text,
            "{comma}\n  {}: {{\"Value\": {}, \"Metadata\": {{\"Host\": {}, \"User\": {}, \"Timestamp\": {}}}}}",
            quoted(name),
            quoted(&one.value),
            quoted(&one.host),
            quoted(&one.user),
            one.set_micros
        );
    }
    text.push_str("}}\n");
    text
}

/// Writes the file anew.
pub(crate) fn write_file(directory: &Path, persisted: &PersistedVariables) -> io::Result<()> {
    let (path, new) = (directory.join(FILE), directory.join(NEW_FILE));
    let mut file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o640)
        .open(&new)?;
    file.write_all(text_of(persisted).as_bytes())?;
    file.sync_all()?;
    std::fs::rename(&new, &path)?;
    File::open(directory)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let directory = tempfile::tempdir().expect("a directory");
        let directory = directory.path();
        assert_eq!(read_file(directory), Ok(BTreeMap::new()));
        let one = |value: &str| Persisted {
            value: value.into(),
            user: "a \"user\"".into(),
            host: "localhost".into(),
            set_micros: 1_700_000_000_000_000,
        };
        let persisted = BTreeMap::from([
            ("init_file".to_string(), one("a\\b\n'c' é")),
            ("max_connections".to_string(), one("77")),
        ]);
        for persisted in [persisted, BTreeMap::new()] {
            write_file(directory, &persisted).expect("it is written");
            assert_eq!(read_file(directory), Ok(persisted));
        }
        assert!(!directory.join(NEW_FILE).exists());
    }

    #[test]
    fn the_file_of_mysql_is_read_and_others_are_refused() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join(FILE);
        let mysql = r#"{"Version": 2, "mysql_dynamic_variables": {"max_connections": {"Value": "155",
            "Metadata": {"Host": "localhost", "User": "root", "Timestamp": 1700000000000000}}}}"#;
        std::fs::write(&path, mysql).expect("a file");
        let persisted = read_file(directory.path()).expect("it is right");
        assert_eq!(persisted["max_connections"].value, "155");
        for text in [
            "",
            "max_connections = 7",
            "[]",
            "{}",
            r#"{"mysql_dynamic_variables": {"a": 1}}"#,
        ] {
            std::fs::write(&path, text).expect("a file");
            let error = read_file(directory.path()).expect_err(text);
            assert!(error.message.contains(FILE), "{}", error.message);
        }
    }
}
