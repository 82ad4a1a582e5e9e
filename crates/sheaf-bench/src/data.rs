//! TPC-H data as `.tbl` files, generated once per scale and kept in a cache folder; and its queries.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use indicatif::{ProgressBar, ProgressStyle};
use sheaf_cli::tpch::{TABLES, TableReader, expected_rows};

use crate::error::BenchError;

/// The folder that holds one `.tbl` file per table at `scale`, generated if it is not there yet.
///
/// A folder is complete when it carries the mark that is written last, so an interrupted generation starts over.
pub fn tbl_folder(work: &Path, scale: f64) -> Result<PathBuf, BenchError> {
    let folder = work.join(format!("tpch-{scale}"));
    let complete = folder.join("complete");
    if complete.exists() {
        return Ok(folder);
    }
    fs::create_dir_all(&folder).map_err(|error| BenchError::file(&folder, error))?;
    for table in TABLES {
        let bar = ProgressBar::new(expected_rows(table, scale)).with_style(
            ProgressStyle::with_template("generating {msg:10} {bar:40} {human_pos} rows")
                .map_err(BenchError::from_display)?,
        );
        bar.set_message(table);
        let path = folder.join(format!("{table}.tbl"));
        let progress = bar.clone();
        let mut reader = TableReader::new(table, scale)
            .ok_or_else(|| BenchError::Other(format!("TPC-H has no table {table}")))?
            .with_progress(move |rows| progress.set_position(rows));
        let mut file = File::create(&path).map_err(|error| BenchError::file(&path, error))?;
        io::copy(&mut reader, &mut file).map_err(|error| BenchError::file(&path, error))?;
        bar.finish_and_clear();
    }
    File::create(&complete).map_err(|error| BenchError::file(&complete, error))?;
    Ok(folder)
}

/// The queries of a folder with one `.sql` file each, as (name, text without the semicolon), by name.
pub fn query_files(folder: &Path) -> Result<Vec<(String, String)>, BenchError> {
    let entries = fs::read_dir(folder).map_err(|error| BenchError::file(folder, error))?;
    let paths: io::Result<Vec<PathBuf>> = entries.map(|entry| Ok(entry?.path())).collect();
    let mut paths = paths.map_err(|error| BenchError::file(folder, error))?;
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "sql"));
    paths.sort();
    let read = |path: PathBuf| {
        let sql = fs::read_to_string(&path).map_err(|error| BenchError::file(&path, error))?;
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        let sql = sql.trim().trim_end_matches(';').to_string();
        Ok((name.into_owned(), sql))
    };
    paths.into_iter().map(read).collect()
}
