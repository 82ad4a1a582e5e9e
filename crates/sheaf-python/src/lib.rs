//! Sheaf inside a Python program: what the package `sheaf` (folder `python/`) is written over.
//!
//! The package has the interface that PEP 249 asks for. This module has what Python cannot do itself: databases and
//! sessions, values in both directions, and results that other libraries take without a copy (`arrow_stream.rs`, the
//! Arrow C data interface). A statement runs without Python's lock, so other threads go on.
//!
//! ```text
//! sheaf.connect("shop")          Connection (connection.rs) -> sheaf::Connection
//! cursor.execute(sql, [7])       value.rs: 7 becomes a value; Answer (answer.rs) keeps columns and batches
//! cursor.fetchone()              value.rs: a row becomes a tuple
//! polars.DataFrame(cursor...)    arrow_stream.rs: the batches as they lie in memory
//! ```

mod answer;
mod arrow_stream;
mod connection;
mod error;
mod open_databases;
mod value;

use pyo3::prelude::*;

#[pymodule]
fn _sheaf(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let python = module.py();
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add("EngineError", python.get_type::<error::EngineError>())?;
    module.add_class::<connection::Connection>()?;
    module.add_class::<answer::Answer>()
}
