//! From a query's syntax tree to a logical plan, and what a client is told of its columns.
//!
//! The binder asks for tables by name. Those of `information_schema`, and a table that exists for one query only, are
//! rows in memory.

use std::sync::Arc;

use arrow::datatypes::{Field, FieldRef};
use datafusion_expr::TableSource;
use sheaf_exec::MemoryTableSource;
use sheaf_frontend::bind::over_rows::{RowQuery, row_query};
use sheaf_frontend::bind::{column_types, logical_plan};
use sheaf_frontend::query::{BoundQuery, Header, Listed, QueryContext, Reader, ViewNotes};
use sheaf_memory::planning;
use sqlparser::ast;

use crate::error::Result;
use crate::parser::ParsedQuery;
use crate::query::value_extent::text_lengths;
use crate::session::Session;
use crate::session::result::{ColumnMeta, table_flags};

impl Session {
    pub(crate) fn lower(
        &self,
        query: ParsedQuery<'_>,
        extra: Option<&Arc<MemoryTableSource>>,
        listed: Listed,
    ) -> Result<BoundQuery> {
        self.lower_with(query, extra, (listed, false))
    }

    /// As [`Self::lower`], of a query whose FROM is to be replaced by rows: everything else stays above it.
    pub(crate) fn lower_over_rows(
        &self,
        query: ParsedQuery<'_>,
        extra: &Arc<MemoryTableSource>,
    ) -> Result<BoundQuery> {
        self.lower_with(query, Some(extra), (Listed::Items, true))
    }

    /// The same of a query that is a list over a condition; `None` of any other.
    pub(crate) fn bind_row_query(
        &self,
        query: ParsedQuery<'_>,
        extra: &Arc<MemoryTableSource>,
    ) -> Result<Option<RowQuery>> {
        self.bound_with(query, (Some(extra), None), (Listed::Items, true), row_query)
    }

    /// As [`Self::lower`], of the query of a view that is made.
    pub(crate) fn lower_noting(
        &self,
        query: ParsedQuery<'_>,
        notes: &ViewNotes,
    ) -> Result<BoundQuery> {
        let flags = (Listed::Items, false);
        self.bound_with(query, (None, Some(notes)), flags, logical_plan)
    }

    /// The types of a query's columns.
    pub(crate) fn column_types(&self, query: ParsedQuery<'_>) -> Result<Vec<FieldRef>> {
        self.bound_with(query, (None, None), (Listed::Items, false), column_types)
    }

    fn lower_with(
        &self,
        query: ParsedQuery<'_>,
        extra: Option<&Arc<MemoryTableSource>>,
        flags: (Listed, bool),
    ) -> Result<BoundQuery> {
        self.bound_with(query, (extra, None), flags, logical_plan)
    }

    fn bound_with<T>(
        &self,
        query: ParsedQuery<'_>,
        (extra, notes): (Option<&Arc<MemoryTableSource>>, Option<&ViewNotes>),
        (listed, is_over_rows): (Listed, bool),
        bind: impl FnOnce(&ast::Query, &QueryContext<'_>) -> Result<T>,
    ) -> Result<T> {
        let virtual_tables = |database: &str,
                              table: &str,
                              reader: Reader<'_>|
         -> Result<Option<Arc<dyn TableSource>>> {
            if let Some(extra) = extra
                && extra.name == table
            {
                return Ok(Some(Arc::clone(extra) as Arc<dyn TableSource>));
            }
            match reader {
                // No table of the server has its name, as far as the session is concerned.
                Reader::Owner => return Ok(None),
                Reader::Session => self.check_read_by(None, database, table)?,
                Reader::Definer(account) => self.check_read_by(Some(account), database, table)?,
            }
            // The rows come with each run.
            if is_over_rows {
                return self.shape_of_virtual_table(database, table);
            }
            // Rows are not planned.
            let found = || self.virtual_tables.table(database, table, self);
            let found = planning::aside(found)?;
            Ok(found.map(|(schema, batch)| {
                Arc::new(MemoryTableSource::new(
                    table.to_string(),
                    schema,
                    vec![batch],
                )) as Arc<dyn TableSource>
            }))
        };
        let beside_locks = self.statement.beside_locks.as_ref();
        let context = QueryContext {
            sql: query.text,
            tables: self.table_names(),
            session: self,
            parameters: &[],
            virtual_tables: &virtual_tables,
            rights: Some(self),
            listed,
            notes,
            is_over_rows,
            locked: beside_locks.map(|beside| beside.locked.as_slice()),
        };
        let planning = self.workers.planning();
        planning.during(|| bind(query.ast, &context))
    }

    /// As [`Self::lower`], of a query of which only its columns are asked for: a direct plan of it checks before each
    /// run what the session may read.
    pub(crate) fn lower_shape(&self, query: &ast::Query, text: &str) -> Result<BoundQuery> {
        let context = QueryContext {
            sql: text,
            tables: self.table_names(),
            session: self,
            parameters: &[],
            virtual_tables: &|database: &str, table: &str, reader: Reader<'_>| match reader {
                Reader::Owner => Ok(None),
                _ => self.shape_of_virtual_table(database, table),
            },
            rights: None,
            listed: Listed::Items,
            notes: None,
            is_over_rows: false,
            locked: None,
        };
        logical_plan(query, &context)
    }

    /// The columns of a table of `information_schema` that direct plans read; `None` if there is no such table.
    fn shape_of_virtual_table(
        &self,
        database: &str,
        table: &str,
    ) -> Result<Option<Arc<dyn TableSource>>> {
        let shape = self
            .virtual_tables
            .shape_of_definitions(database, table, self)?;
        Ok(shape.map(|schema| {
            let source = MemoryTableSource::new(table.to_string(), schema, Vec::new());
            Arc::new(source) as Arc<dyn TableSource>
        }))
    }

    /// Columns of a query without running or locking anything, for PREPARE.
    pub(crate) fn describe_query(&self, query: ParsedQuery<'_>) -> Result<Vec<ColumnMeta>> {
        let lowered = self.lower(query, None, Listed::Items)?;
        Ok(self.columns_of(&lowered))
    }

    pub(crate) fn columns_of(&self, query: &BoundQuery) -> Vec<ColumnMeta> {
        let fields = query.plan.schema().fields();
        fields
            .iter()
            .zip(&query.headers)
            .zip(text_lengths(query))
            .map(|((field, header), length)| self.column_of(field, header, length))
            .collect()
    }

    /// How a client is told of a column. `length`: of its texts, if that is known.
    pub(crate) fn column_of(
        &self,
        field: &Field,
        header: &Header,
        length: Option<u32>,
    ) -> ColumnMeta {
        let collation_id = self.result_collation_id();
        let mut meta = ColumnMeta::with_text_length(field, header, collation_id, length);
        if !header.org_name.is_empty()
            && let Ok(table) = self
                .table_names()
                .table(&header.database, &header.org_table)
            && let Some(column) = table.definition.column_position(&header.org_name)
        {
            meta.flags |= table_flags(&table.definition, column);
        }
        meta
    }
}
