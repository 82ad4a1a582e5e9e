//! The options of `sheaf serve` from a file and from the environment.
//!
//! An option has one name, one form and one default: those of its flag. A file (TOML, `--config FILE`) and variables of
//! the environment (`SHEAF_MEMORY` for `--memory`) say the same by that name. A flag counts before the environment, and
//! the environment before the file. So both are put before the flags of the command line, where the last one counts.
//! What they say is tested option by option first: an error names the file and the line, or the variable.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fmt::{self, Display};
use std::path::{Path, PathBuf};

use clap::error::{ContextKind, ErrorKind};
use clap::{Arg, ArgAction, Command, Parser};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// The flag that names the file, and the variable of the environment in its place.
const CONFIG: &str = "config";
const CONFIG_VARIABLE: &str = "SHEAF_CONFIG";
/// The table of system variables in the file.
const VARIABLES: &str = "variables";
/// The flag of one system variable.
const SET: &str = "set";
/// A file beyond it is no configuration.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// What is wrong with a file or the environment, one line for each fault.
#[derive(Debug)]
pub struct ConfigurationError(Vec<String>);

impl Display for ConfigurationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join("\n"))
    }
}

impl std::error::Error for ConfigurationError {}

/// Where an option is said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    File { path: PathBuf, line: usize },
    Environment(String),
}

impl Source {
    fn line(&self) -> usize {
        match self {
            Source::File { line, .. } => *line,
            Source::Environment(_) => 0,
        }
    }
}

impl Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Source::File { path, line } => write!(f, "{}:{line}", path.display()),
            Source::Environment(name) => f.write_str(name),
        }
    }
}

/// An option that is said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Said {
    /// The name of the flag, without dashes in front.
    pub name: String,
    /// The value; an option without one is switched on.
    pub value: Option<OsString>,
    pub source: Source,
}

impl Said {
    /// It sets a system variable.
    pub fn is_variable(&self) -> bool {
        self.name == SET
    }

    pub fn flag(&self) -> OsString {
        let mut flag = OsString::from(format!("--{}", self.name));
        if let Some(value) = &self.value {
            flag.push("=");
            flag.push(value);
        }
        flag
    }
}

/// The arguments of the process, with what the file and the environment say about `serve`. Ends the process with a
/// message where one of them is wrong, as `clap` does.
pub fn parse<P: Parser>() -> P {
    let arguments: Vec<OsString> = std::env::args_os().collect();
    match complete(&P::command(), arguments, &environment()) {
        Ok(arguments) => P::parse_from(arguments),
        Err(error) => {
            eprintln!("{error}");
            std::process::exit(2);
        }
    }
}

/// The variables of the environment that may be options.
pub fn environment() -> BTreeMap<String, OsString> {
    std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value)))
        .filter(|(name, _)| name.starts_with("SHEAF_"))
        .collect()
}

/// The arguments with the options of `serve` that the file and the environment say.
fn complete(
    command: &Command,
    mut arguments: Vec<OsString>,
    environment: &BTreeMap<String, OsString>,
) -> Result<Vec<OsString>, ConfigurationError> {
    let Some(serve) = command.find_subcommand("serve") else {
        return Ok(arguments);
    };
    if arguments.get(1).is_none_or(|first| first != "serve") {
        return Ok(arguments);
    }
    let path = file_of(&arguments[2..])
        .map(PathBuf::from)
        .or_else(|| file_of_environment(environment));
    let mut said = match &path {
        Some(path) => said_in_file(serve, path)?,
        None => Vec::new(),
    };
    said.extend(said_in_environment(serve, environment)?);
    if let Some(path) = path {
        // The server reads it again at SIGHUP.
        arguments.insert(2, flag_of_file(&path));
    }
    arguments.splice(2..2, said.iter().map(Said::flag));
    Ok(arguments)
}

/// The file that the environment names.
pub fn file_of_environment(environment: &BTreeMap<String, OsString>) -> Option<PathBuf> {
    let path = environment.get(CONFIG_VARIABLE)?;
    (!path.is_empty()).then(|| path.into())
}

fn flag_of_file(path: &Path) -> OsString {
    let mut flag = OsString::from("--config=");
    flag.push(path);
    flag
}

/// The value of the last `--config`.
fn file_of(arguments: &[OsString]) -> Option<OsString> {
    let mut found = None;
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        if argument == "--config" {
            found = arguments.next().cloned();
        } else if let Some(path) = argument
            .to_str()
            .and_then(|text| text.strip_prefix("--config="))
        {
            found = Some(path.into());
        }
    }
    found
}

/// The options of `serve` that a file or the environment may say.
fn options(serve: &Command) -> impl Iterator<Item = &Arg> {
    serve.get_arguments().filter(|argument| {
        let name = argument.get_long();
        name.is_some_and(|name| ![CONFIG, SET, "help"].contains(&name))
    })
}

fn option<'a>(serve: &'a Command, name: &str) -> Option<&'a Arg> {
    options(serve).find(|argument| argument.get_long() == Some(name))
}

fn is_switch(argument: &Arg) -> bool {
    matches!(argument.get_action(), ArgAction::SetTrue)
}

/// What the environment says.
pub fn said_in_environment(
    serve: &Command,
    environment: &BTreeMap<String, OsString>,
) -> Result<Vec<Said>, ConfigurationError> {
    let mut said = Vec::new();
    let mut faults = Vec::new();
    for argument in options(serve) {
        let name = argument.get_long().unwrap_or_default();
        let variable = format!("SHEAF_{}", name.replace('-', "_").to_ascii_uppercase());
        let Some(value) = environment.get(&variable) else {
            continue;
        };
        let source = Source::Environment(variable);
        let value = if is_switch(argument) {
            match value.to_str() {
                Some("1" | "on" | "true") => None,
                Some("0" | "off" | "false") => continue,
                _ => {
                    faults.push(format!("{source}: {value:?} is neither on nor off"));
                    continue;
                }
            }
        } else {
            Some(value.clone())
        };
        said.push(Said {
            name: name.into(),
            value,
            source,
        });
    }
    checked(serve, said, faults)
}

/// What a file says: options of `serve`, and system variables in the table `[variables]`.
pub fn said_in_file(serve: &Command, path: &Path) -> Result<Vec<Said>, ConfigurationError> {
    let one = |fault: String| ConfigurationError(vec![fault]);
    let text = read(path).map_err(|error| one(format!("{}: {error}", path.display())))?;
    let table = DeTable::parse(&text).map_err(|error| {
        let line = error.span().map_or(1, |span| line_of(&text, span.start));
        let message = error.message().replace('\n', "; ");
        one(format!("{}:{line}: {message}", path.display()))
    })?;
    let mut reader = FileReader {
        serve,
        path,
        text: &text,
        said: Vec::new(),
        faults: Vec::new(),
    };
    reader.options(table.get_ref());
    // In the order of the file: a variable may depend on one before it.
    reader.said.sort_by_key(|said| said.source.line());
    checked(serve, reader.said, reader.faults)
}

fn read(path: &Path) -> Result<String, Box<dyn std::error::Error>> {
    let metadata = std::fs::metadata(path)?;
    if !metadata.is_file() {
        return Err("not a file".into());
    }
    if metadata.len() > MAX_FILE_BYTES {
        return Err(format!("longer than {MAX_FILE_BYTES} bytes").into());
    }
    Ok(std::fs::read_to_string(path)?)
}

fn line_of(text: &str, at: usize) -> usize {
    let before = &text.as_bytes()[..at.min(text.len())];
    before.iter().filter(|byte| **byte == b'\n').count() + 1
}

/// Reads the tables of a file.
struct FileReader<'a> {
    serve: &'a Command,
    path: &'a Path,
    text: &'a str,
    said: Vec<Said>,
    faults: Vec<String>,
}

impl FileReader<'_> {
    fn source(&self, at: usize) -> Source {
        Source::File {
            path: self.path.into(),
            line: line_of(self.text, at),
        }
    }

    fn fault(&mut self, at: usize, fault: &str) {
        let source = self.source(at);
        self.faults.push(format!("{source}: {fault}"));
    }

    fn options(&mut self, table: &DeTable<'_>) {
        for (key, value) in table {
            let at = key.span().start;
            let name = key.get_ref().replace('_', "-");
            if name == VARIABLES {
                self.variables(value);
                continue;
            }
            let Some(argument) = option(self.serve, &name) else {
                self.fault(at, &self.unknown(key.get_ref()));
                continue;
            };
            let value = match (value.get_ref(), is_switch(argument)) {
                (DeValue::Boolean(true), true) => None,
                (DeValue::Boolean(false), true) => continue,
                (_, true) => {
                    self.fault(at, &format!("{name} is true or false"));
                    continue;
                }
                (value, false) => match text_of(value) {
                    Some(text) => Some(text.into()),
                    None => {
                        self.fault(at, &format!("{name} is a string or a number"));
                        continue;
                    }
                },
            };
            if self.said.iter().any(|before| before.name == name) {
                self.fault(at, &format!("{name} stands twice"));
                continue;
            }
            let source = self.source(at);
            self.said.push(Said {
                name,
                value,
                source,
            });
        }
    }

    fn variables(&mut self, table: &Spanned<DeValue<'_>>) {
        let DeValue::Table(table_of_variables) = table.get_ref() else {
            self.fault(table.span().start, "variables is a table: [variables]");
            return;
        };
        for (key, value) in table_of_variables {
            let at = key.span().start;
            let name = key.get_ref();
            let text = match value.get_ref() {
                DeValue::Boolean(true) => Some("ON".into()),
                DeValue::Boolean(false) => Some("OFF".into()),
                value => text_of(value),
            };
            let Some(text) = text else {
                self.fault(at, &format!("{name} is a string, a number, true or false"));
                continue;
            };
            let source = self.source(at);
            self.said.push(Said {
                name: SET.into(),
                value: Some(format!("{name}={text}").into()),
                source,
            });
        }
    }

    /// Says that there is no such option, and which one may be meant.
    fn unknown(&self, name: &str) -> String {
        let lower = name.to_ascii_lowercase().replace('_', "-");
        let near = options(self.serve)
            .filter_map(Arg::get_long)
            .find(|known| known.contains(&lower) || lower.contains(known));
        match near {
            Some(near) => format!(
                "there is no option {name}; {} is one",
                near.replace('-', "_")
            ),
            None => format!("there is no option {name}; `sheaf serve --help` lists them"),
        }
    }
}

/// A value as a flag has it.
fn text_of(value: &DeValue<'_>) -> Option<String> {
    match value {
        DeValue::String(text) => Some(text.to_string()),
        DeValue::Integer(number) if number.radix() == 10 => Some(number.as_str().into()),
        DeValue::Float(number) => Some(number.as_str().into()),
        _ => None,
    }
}

/// What is said, where the command takes each of its options.
fn checked(
    serve: &Command,
    said: Vec<Said>,
    mut faults: Vec<String>,
) -> Result<Vec<Said>, ConfigurationError> {
    let lenient = serve
        .clone()
        .mut_args(|argument| argument.required(false))
        .no_binary_name(true);
    for one in &said {
        let Err(error) = lenient.clone().try_get_matches_from([one.flag()]) else {
            continue;
        };
        // An option may need another one, which may be said elsewhere.
        if error.kind() != ErrorKind::MissingRequiredArgument {
            faults.push(format!("{}: {}", one.source, in_one_line(one, &error)));
        }
    }
    if faults.is_empty() {
        Ok(said)
    } else {
        Err(ConfigurationError(faults))
    }
}

/// The error in the words of a file: without dashes and hints of a command line.
fn in_one_line(said: &Said, error: &clap::Error) -> String {
    let value = said.value.as_deref().unwrap_or(OsStr::new(""));
    let cause = std::error::Error::source(error).map(ToString::to_string);
    let allowed = error.get(ContextKind::ValidValue).map(ToString::to_string);
    let cause = match (cause, allowed) {
        (Some(cause), _) => cause,
        (None, Some(allowed)) => format!("{} is none of {allowed}", value.display()),
        (None, None) => format!("{} is no value of it", value.display()),
    };
    format!("{}: {cause}", said.name.replace('-', "_"))
}

/// What `sheaf config check` prints: each option, its value, and where it is said.
pub fn overview(serve: &Command, said: &[Said]) -> Vec<[String; 3]> {
    let mut lines = Vec::new();
    for argument in options(serve) {
        let name = argument.get_long().unwrap_or_default();
        let last = said.iter().rev().find(|one| one.name == name);
        let default = argument.get_default_values();
        let (value, source) = match last {
            Some(one) => (
                one.value
                    .as_ref()
                    .map_or("true".into(), |value| value.display().to_string()),
                one.source.to_string(),
            ),
            None if is_switch(argument) => ("false".into(), "default".into()),
            None => (
                default
                    .first()
                    .map_or(String::new(), |value| value.display().to_string()),
                "default".into(),
            ),
        };
        lines.push([name.replace('-', "_"), value, source]);
    }
    for one in said.iter().filter(|one| one.name == SET) {
        let value = one.value.as_ref().map(|value| value.display().to_string());
        let (name, value) = value
            .as_deref()
            .and_then(|value| value.split_once('='))
            .unwrap_or_default();
        lines.push([
            format!("{VARIABLES}.{name}"),
            value.into(),
            one.source.to_string(),
        ]);
    }
    lines
}

/// The system variables that a file sets, for SIGHUP.
pub fn variables_of_file(
    serve: &Command,
    path: &Path,
) -> Result<Vec<Assignment>, ConfigurationError> {
    let said = said_in_file(serve, path)?;
    let values = said.iter().filter(|one| one.name == SET);
    let texts = values.filter_map(|one| one.value.as_ref()?.to_str());
    Ok(texts.filter_map(|text| text.parse().ok()).collect())
}

/// A system variable and its value, as `--set NAME=VALUE` says it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assignment {
    pub name: String,
    pub value: String,
}

impl std::str::FromStr for Assignment {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, value) = text
            .split_once('=')
            .ok_or_else(|| format!("'{text}' is not NAME=VALUE"))?;
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
        if name.is_empty() || !name.chars().all(is_name) {
            return Err(format!("'{name}' is no name of a system variable"));
        }
        Ok(Assignment {
            name: name.to_ascii_lowercase(),
            value: value.into(),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use clap::{CommandFactory, Subcommand};

    use super::*;
    use crate::serve::ServeArguments;

    #[derive(Parser)]
    struct Arguments {
        #[command(subcommand)]
        command: Choice,
    }

    #[derive(Subcommand)]
    enum Choice {
        Serve(ServeArguments),
    }

    fn file(text: &str) -> tempfile::NamedTempFile {
        let mut file = tempfile::NamedTempFile::new().expect("a temporary file");
        file.write_all(text.as_bytes()).expect("it is written");
        file
    }

    fn serve() -> Command {
        Arguments::command()
            .find_subcommand("serve")
            .expect("it is there")
            .clone()
    }

    /// The faults of a file, with `FILE` for its name.
    fn faults(text: &str) -> Vec<String> {
        let file = file(text);
        let name = file.path().display().to_string();
        match said_in_file(&serve(), file.path()) {
            Ok(said) => panic!("no fault: {said:?}"),
            Err(ConfigurationError(faults)) => faults
                .into_iter()
                .map(|fault| fault.replace(&name, "FILE"))
                .collect(),
        }
    }

    fn completed(arguments: &[&str], environment: &[(&str, &str)]) -> Vec<String> {
        let environment = environment
            .iter()
            .map(|(name, value)| (name.to_string(), value.into()))
            .collect();
        let arguments = arguments.iter().map(OsString::from).collect();
        complete(&Arguments::command(), arguments, &environment)
            .expect("it is right")
            .into_iter()
            .map(|argument| argument.into_string().expect("text"))
            .collect()
    }

    #[test]
    fn flags_count_before_the_environment_and_that_before_the_file() {
        let file = file(
            "data_dir = \"d\"\nmemory = \"64M\"\nmax-connections = 7\nrequire_secure_transport = true\n",
        );
        let path = file.path().to_str().expect("text");
        let arguments = completed(
            &["sheaf", "serve", "--config", path, "--memory", "1G"],
            &[
                ("SHEAF_MEMORY", "128M"),
                ("SHEAF_MAX_CONNECTIONS", "9"),
                ("SHEAF_OTHER", "x"),
            ],
        );
        let parsed = Arguments::try_parse_from(&arguments).expect("it is right");
        let Choice::Serve(serve) = parsed.command;
        assert_eq!(serve.memory(), 1 << 30);
        assert_eq!(serve.max_connections(), 9);
        assert!(serve.requires_secure_transport());
    }

    #[test]
    fn other_commands_take_no_options_from_the_environment() {
        let arguments = ["sheaf", "check", "--data-dir", "d"];
        assert_eq!(completed(&arguments, &[("SHEAF_MEMORY", "x")]), arguments);
    }

    #[test]
    fn variables_of_a_file_are_assignments() {
        let file =
            file("[variables]\nsql_mode = \"ANSI\"\nlong_query_time = 0.5\nautocommit = false\n");
        let variables = variables_of_file(&serve(), file.path()).expect("it is right");
        let texts: Vec<String> = variables
            .iter()
            .map(|one| format!("{}={}", one.name, one.value))
            .collect();
        assert_eq!(
            texts,
            ["sql_mode=ANSI", "long_query_time=0.5", "autocommit=OFF"]
        );
    }

    #[test]
    fn every_fault_names_its_line() {
        assert_eq!(
            faults(
                "memory = \"12X\"\n\nmemroy = 1\nconnections = 3\ntls = \"maybe\"\nlisten = true\nrequire_secure_transport = 1\n"
            ),
            [
                "FILE:4: there is no option connections; max_connections is one",
                "FILE:6: listen is a string or a number",
                "FILE:3: there is no option memroy; `sheaf serve --help` lists them",
                "FILE:7: require-secure-transport is true or false",
                "FILE:1: memory: '12X' is not a size; write a number with K, M, G or T, such as 512M",
                "FILE:5: tls: maybe is none of auto, off",
            ]
        );
        assert!(faults("memory = \n")[0].starts_with("FILE:1: "));
        assert_eq!(
            faults("[variables]\n\"a b\" = 1\n"),
            ["FILE:2: set: 'a b' is no name of a system variable"]
        );
        assert_eq!(
            faults("[other]\na = 1\n"),
            ["FILE:1: there is no option other; `sheaf serve --help` lists them"]
        );
    }

    #[test]
    fn a_switch_of_the_environment_is_on_or_off() {
        let variables =
            |text: &str| BTreeMap::from([("SHEAF_REQUIRE_SECURE_TRANSPORT".into(), text.into())]);
        let said = |text| said_in_environment(&serve(), &variables(text)).map(|said| said.len());
        assert_eq!(said("on").ok(), Some(1));
        assert_eq!(said("0").ok(), Some(0));
        assert!(said("yes please").is_err());
    }
}
