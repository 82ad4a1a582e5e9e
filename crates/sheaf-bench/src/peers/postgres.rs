//! PostgreSQL from Debian's `postgresql` package, on a private data folder.
//!
//! PostgreSQL reads through the operating system's page cache, so a bound on its buffer pool alone would give it
//! all memory of the machine. Where a memory control group can be made, the whole server runs in one of the
//! budget's size; a cold start also empties the page cache. Times come from psql's own `\timing`.

use std::fs::{self, File};
use std::os::unix::fs::chown;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use sheaf_cli::tpch::{TABLES, schema_statements};

use super::{
    Budget, Endpoint, Server, Timed, drop_operating_system_cache, end_process, free_port,
    wait_until_listening,
};
use crate::error::BenchError;
use crate::machine;

const NAME: &str = "PostgreSQL";
/// The account that Debian's package creates; PostgreSQL refuses to run as root.
const ACCOUNT: &str = "postgres";

/// A PostgreSQL server of this run.
pub struct Postgres {
    folder: PathBuf,
    programs: PathBuf,
    budget: Budget,
    port: u16,
    process: Option<Child>,
}

impl Postgres {
    /// Prepares a server in `folder`, whose data folder is created when it is not there yet.
    pub fn new(folder: PathBuf, budget: Budget) -> Result<Self, BenchError> {
        let programs = newest_programs()
            .ok_or_else(|| BenchError::server(NAME, "not installed: apt-get install postgresql"))?;
        fs::create_dir_all(&folder).map_err(|error| BenchError::file(&folder, error))?;
        let server = Self {
            folder,
            programs,
            budget,
            port: 0,
            process: None,
        };
        if !server.folder.join("data").exists() {
            server.install()?;
        }
        Ok(server)
    }

    fn install(&self) -> Result<(), BenchError> {
        let (user, group) = account_ids()?;
        chown(&self.folder, Some(user), Some(group))
            .map_err(|error| BenchError::file(&self.folder, error))?;
        let status = Command::new("setpriv")
            .args(["--reuid", ACCOUNT, "--regid", ACCOUNT, "--init-groups"])
            .arg(self.programs.join("initdb"))
            .arg("-D")
            .arg(self.folder.join("data"))
            .args([
                "--auth=trust",
                "--username=root",
                "--encoding=UTF8",
                "--locale=C",
            ])
            .current_dir("/")
            .stdout(Stdio::null())
            .status()
            .map_err(|error| BenchError::server(NAME, error))?;
        if !status.success() {
            return Err(BenchError::server(NAME, format!("initdb failed: {status}")));
        }
        Ok(())
    }

    /// Runs psql with `arguments` and returns what it printed.
    fn psql(&self, database: &str, arguments: &[&str]) -> Result<String, BenchError> {
        let output = Command::new(self.programs.join("psql"))
            .args(["-h", "127.0.0.1", "-p"])
            .arg(self.port.to_string())
            .args([
                "-U", "root", "-d", database, "-X", "-q", "-A", "-t", "-F", "\t",
            ])
            .args(["-v", "ON_ERROR_STOP=1", "-P", "null=\\N"])
            .args(arguments)
            .output()
            .map_err(|error| BenchError::server(NAME, error))?;
        if !output.status.success() {
            let message = String::from_utf8_lossy(&output.stderr);
            if message.contains("statement timeout") {
                return Err(BenchError::TimedOut { server: NAME });
            }
            return Err(BenchError::server(NAME, message));
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }
}

/// The `bin` folder of the newest PostgreSQL that Debian's packages installed.
fn newest_programs() -> Option<PathBuf> {
    let mut versions: Vec<PathBuf> = fs::read_dir("/usr/lib/postgresql")
        .ok()?
        .filter_map(|entry| Some(entry.ok()?.path().join("bin")))
        .filter(|programs| programs.join("initdb").exists())
        .collect();
    versions.sort();
    versions.pop()
}

fn account_ids() -> Result<(u32, u32), BenchError> {
    let accounts = fs::read_to_string("/etc/passwd").map_err(BenchError::from_display)?;
    let ids = accounts.lines().find_map(|line| {
        let fields: Vec<&str> = line.split(':').collect();
        (fields.first() == Some(&ACCOUNT)).then_some(())?;
        Some((fields.get(2)?.parse().ok()?, fields.get(3)?.parse().ok()?))
    });
    ids.ok_or_else(|| BenchError::server(NAME, format!("there is no account {ACCOUNT}")))
}

/// A memory control group of `bytes`, or `None` where this process may not make one (the results say so).
fn memory_group(bytes: u64) -> Option<PathBuf> {
    let group = PathBuf::from("/sys/fs/cgroup/memory/sheaf-bench-postgres");
    fs::create_dir_all(&group).ok()?;
    fs::write(group.join("memory.limit_in_bytes"), bytes.to_string()).ok()?;
    Some(group)
}

/// A MySQL-dialect schema statement as PostgreSQL's `CREATE TABLE` and its `CREATE INDEX` statements.
fn translate_schema(statement: &str) -> (String, Vec<String>) {
    let table = statement
        .split_whitespace()
        .nth(2)
        .unwrap_or_default()
        .to_owned();
    let mut create = String::new();
    let mut indexes = Vec::new();
    let mut rest = statement;
    while let Some(position) = rest.find("KEY ") {
        let (before, after) = rest.split_at(position);
        if before.ends_with("PRIMARY ") {
            create.push_str(before);
            create.push_str("KEY ");
            rest = &after["KEY ".len()..];
            continue;
        }
        // `KEY name (columns)`, behind a comma that goes with it.
        create.push_str(before.trim_end().trim_end_matches(','));
        let definition = &after["KEY ".len()..];
        let end = definition.find(')').map_or(definition.len(), |end| end + 1);
        if let Some((name, columns)) = definition[..end].split_once(' ') {
            indexes.push(format!("CREATE INDEX {name} ON {table} {columns}"));
        }
        rest = &definition[end..];
    }
    create.push_str(rest);
    (create, indexes)
}

/// A reference query in PostgreSQL's dialect: no index hints, `||` as OR, standard interval arithmetic.
fn translate_query(sql: &str) -> String {
    let mut translated = sql.replace("||", "or");
    for hint in ["i_l_partkey", "i_o_orderdate", "PRIMARY"] {
        translated = translated.replace(&format!(" force index ({hint})"), "");
    }
    while let Some(start) = translated.find("date_add(") {
        let Some(end) = translated[start..].find(')').map(|end| start + end) else {
            break;
        };
        let arguments = translated[start + "date_add(".len()..end].to_owned();
        let Some((date, interval)) = arguments.split_once(',') else {
            break;
        };
        let interval = interval
            .trim()
            .trim_start_matches("interval ")
            .replace('\'', "");
        translated.replace_range(
            start..=end,
            &format!("date {} + interval '{interval}'", date.trim()),
        );
    }
    translated
}

impl Server for Postgres {
    fn name(&self) -> &'static str {
        NAME
    }

    fn version(&mut self) -> Result<String, BenchError> {
        Ok(self
            .psql("postgres", &["-c", "show server_version"])?
            .trim()
            .to_owned())
    }

    fn start(&mut self) -> Result<(), BenchError> {
        drop_operating_system_cache();
        self.port = free_port()?;
        let log = self.folder.join("server.log");
        let out = File::options()
            .create(true)
            .append(true)
            .open(&log)
            .map_err(|error| BenchError::file(&log, error))?;
        let enter_group = match memory_group(self.budget.memory_bytes) {
            Some(group) => format!("echo $$ > {}/cgroup.procs && ", group.display()),
            None => String::new(),
        };
        let script = format!(
            "{enter_group}exec setpriv --reuid {ACCOUNT} --regid {ACCOUNT} --init-groups {}/postgres -D {} -p {} \
             -k '' -h 127.0.0.1 -c shared_buffers={}kB -c max_wal_size=4GB -c work_mem=32MB \
             -c maintenance_work_mem=64MB",
            self.programs.display(),
            self.folder.join("data").display(),
            self.port,
            self.budget.pool_bytes / 1024,
        );
        let mut child = Command::new("sh")
            .args(["-c", &script])
            .current_dir("/")
            .stdout(out.try_clone().map_err(BenchError::from_display)?)
            .stderr(out)
            .spawn()
            .map_err(|error| BenchError::server(NAME, error))?;
        let listening = wait_until_listening(NAME, &mut child, self.port);
        self.process = Some(child);
        listening?;
        while self.psql("postgres", &["-c", "select 1"]).is_err() {
            std::thread::sleep(Duration::from_millis(50));
        }
        Ok(())
    }

    fn stop(&mut self) -> Result<(), BenchError> {
        match self.process.take() {
            // SIGINT is PostgreSQL's fast shutdown: sessions are ended, everything is written.
            Some(mut child) => end_process(NAME, &mut child, libc::SIGINT),
            None => Ok(()),
        }
    }

    fn load(&mut self, folder: &Path) -> Result<(), BenchError> {
        self.recreate_database("tpch")?;
        let mut indexes = Vec::new();
        for statement in schema_statements() {
            let (create, more) = translate_schema(statement);
            self.psql("tpch", &["-c", &create])?;
            indexes.extend(more);
        }
        for table in TABLES {
            // dbgen ends each row with a delimiter, which COPY would take for one more column.
            let copy = format!(
                "\\copy {table} from program 'sed s/.$// {}/{table}.tbl' with (delimiter '|')",
                folder.display()
            );
            self.psql("tpch", &["-c", &copy])?;
        }
        for index in &indexes {
            self.psql("tpch", &["-c", index])?;
        }
        self.psql("tpch", &["-c", "vacuum analyze"])?;
        Ok(())
    }

    fn run(&mut self, sql: &str, settings: &[&str]) -> Result<Timed, BenchError> {
        let query = translate_query(sql);
        let settings = settings.iter().flat_map(|setting| ["-c", setting]);
        let arguments: Vec<&str> = settings
            .chain(["-c", "\\timing on", "-c", &query])
            .collect();
        let printed = self.psql("tpch", &arguments)?;
        let mut lines: Vec<&str> = printed.lines().collect();
        let elapsed_ms = lines
            .pop()
            .and_then(|line| {
                line.strip_prefix("Time: ")?
                    .split_whitespace()
                    .next()?
                    .parse::<f64>()
                    .ok()
            })
            .ok_or_else(|| BenchError::server(NAME, "psql printed no time"))?;
        let rows = lines
            .into_iter()
            .map(|line| {
                line.split('\t')
                    .map(|field| (field != "\\N").then(|| field.to_owned()))
                    .collect()
            })
            .collect();
        Ok(Timed {
            elapsed: Duration::from_secs_f64(elapsed_ms / 1000.0),
            rows,
        })
    }

    fn counters(&self) -> &[(String, u64)] {
        &[]
    }

    fn peak_memory_bytes(&self) -> u64 {
        self.process.as_ref().map_or(0, |child| {
            machine::peak_resident_bytes_of_family(child.id())
        })
    }

    fn endpoint(&self) -> Endpoint {
        Endpoint {
            sysbench_driver: "pgsql",
            port: self.port,
            process: self.process.as_ref().map_or(0, Child::id),
        }
    }

    fn log_position(&mut self) -> Result<u64, BenchError> {
        let position = self.psql(
            "postgres",
            &["-c", "select pg_current_wal_lsn() - '0/0'::pg_lsn"],
        )?;
        position
            .trim()
            .parse()
            .map_err(|error| BenchError::server(NAME, error))
    }

    fn recreate_database(&mut self, name: &str) -> Result<(), BenchError> {
        for sql in [
            format!("drop database if exists {name}"),
            format!("create database {name}"),
        ] {
            self.psql("postgres", &["-c", &sql])?;
        }
        Ok(())
    }

    fn has_switches(&self) -> bool {
        false
    }

    fn limit_statements(&self, limit: Duration) -> String {
        format!("set statement_timeout = {}", limit.as_millis())
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        // Nothing is left to report to; a server that does not end is visible in the process list.
        let _ = self.stop();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secondary_keys_become_indexes() {
        let (create, indexes) = translate_schema(
            "CREATE TABLE t (a INT NOT NULL, b INT, PRIMARY KEY (a), KEY i_b (b), KEY i_ba (b, a))",
        );
        assert_eq!(
            create,
            "CREATE TABLE t (a INT NOT NULL, b INT, PRIMARY KEY (a))"
        );
        assert_eq!(
            indexes,
            ["CREATE INDEX i_b ON t (b)", "CREATE INDEX i_ba ON t (b, a)"]
        );
    }

    #[test]
    fn queries_lose_what_only_mysql_knows() {
        assert_eq!(
            translate_query(
                "select 1 from t force index (PRIMARY) where (a < 1 || a > 2) \
                 and d < date_add('1993-08-01', interval '3' month)"
            ),
            "select 1 from t where (a < 1 or a > 2) and d < date '1993-08-01' + interval '3 month'"
        );
    }
}
