//! Records MariaDB's answers to the 22 TPC-H queries, which the tests compare Sheaf's answers with.

use std::fs;
use std::path::Path;

use crate::data;
use crate::error::BenchError;
use crate::peers::{Budget, Server, TextRows, mariadb};

/// Enough for the small scales that answers are recorded at.
const BUDGET: Budget = Budget {
    memory_bytes: 512 << 20,
    pool_bytes: 256 << 20,
};

/// Runs each `.sql` file of `queries` on MariaDB over TPC-H at `scale`; writes `out`/NAME.tsv.
///
/// A file holds one line per row, columns separated by tabs, NULL as `\N`.
pub fn record(scale: f64, queries: &Path, out: &Path) -> Result<(), BenchError> {
    let work = std::env::temp_dir().join(format!("sheaf-answers-{}", std::process::id()));
    let recorded = record_in(&work, scale, queries, out);
    fs::remove_dir_all(&work).map_err(|error| BenchError::file(&work, error))?;
    recorded
}

fn record_in(work: &Path, scale: f64, queries: &Path, out: &Path) -> Result<(), BenchError> {
    let tbl = data::tbl_folder(work, scale)?;
    let mut server = mariadb::server(work.join("mariadb"), BUDGET)?;
    server.start()?;
    server.load(&tbl)?;
    fs::create_dir_all(out).map_err(|error| BenchError::file(out, error))?;
    for (name, sql) in data::query_files(queries)? {
        let rows = server.run(&sql, &[])?.rows;
        let path = out.join(name).with_extension("tsv");
        fs::write(&path, as_tsv(&rows)).map_err(|error| BenchError::file(&path, error))?;
        println!("{}: {} rows", path.display(), rows.len());
    }
    server.stop()
}

fn as_tsv(rows: &TextRows) -> String {
    let mut text = String::new();
    for row in rows {
        let fields: Vec<&str> = row
            .iter()
            .map(|field| field.as_deref().unwrap_or("\\N"))
            .collect();
        text.push_str(&fields.join("\t"));
        text.push('\n');
    }
    text
}
