//! Tables whose rows are made when a query asks for them.
//!
//! Queries read them, and what they show is found by queries in part. So the floor of queries knows only that there are
//! such tables; `catalog_views/` makes them, and a session is told of it when it starts.

use arrow::datatypes::SchemaRef;
use arrow::record_batch::RecordBatch;

use crate::error::Result;
use crate::session::Session;

/// What makes them.
pub(crate) trait VirtualTables: Send + Sync {
    /// The columns of a table and its rows; `None` if there is no such table.
    fn table(
        &self,
        database: &str,
        table: &str,
        session: &Session,
    ) -> Result<Option<(SchemaRef, RecordBatch)>>;

    /// The columns of a table that direct plans read; `None` if there is no such table.
    fn shape_of_definitions(
        &self,
        database: &str,
        table: &str,
        session: &Session,
    ) -> Result<Option<SchemaRef>>;
}
