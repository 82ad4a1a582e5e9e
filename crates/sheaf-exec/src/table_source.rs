//! What DataFusion's logical planner sees of a table.
//!
//! DataFusion carries a [`TableSource`] through every rewrite of a plan. One [`SheafTableSource`] is created per
//! *reference* to a table, not per table: it carries what belongs to the reference (its number in the statement,
//! its alias, its index hints), which SqlToRel itself would drop.
//!
//! A source answers Exact to every deterministic filter, so after optimisation all conditions on one table sit on
//! its TableScan, where the access path choice reads them.

use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::{Schema, SchemaRef};
use datafusion_common::{Constraint, Constraints, Result};
use datafusion_expr::{Expr, TableProviderFilterPushDown, TableSource};
use sheaf_table::Table;

/// USE, FORCE and IGNORE INDEX of one table reference, as index names ("PRIMARY" is the clustered index).
///
/// The lists are what the statement says; whether a name exists is checked by whoever creates them (error 1176).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct IndexHints {
    /// USE INDEX: only these are candidates, besides a table scan. `Some` of an empty list means "no index".
    pub use_index: Option<Vec<String>>,
    /// FORCE INDEX: as USE INDEX, and a table scan is taken only if none of them can be used.
    pub force_index: Vec<String>,
    /// IGNORE INDEX: these are no candidates.
    pub ignore_index: Vec<String>,
}

impl IndexHints {
    /// True if the reference has no hint at all.
    pub fn is_empty(&self) -> bool {
        self.use_index.is_none() && self.force_index.is_empty() && self.ignore_index.is_empty()
    }

    /// Whether `index` may be used for this reference.
    pub fn allows(&self, index: &str) -> bool {
        let named = |list: &[String]| list.iter().any(|name| name.eq_ignore_ascii_case(index));
        if named(&self.ignore_index) {
            return false;
        }
        if !self.force_index.is_empty() {
            return named(&self.force_index) || self.use_index.as_deref().is_some_and(named);
        }
        self.use_index.as_deref().is_none_or(named)
    }

    /// Whether `index` is named by FORCE INDEX.
    pub fn forces(&self, index: &str) -> bool {
        self.force_index
            .iter()
            .any(|name| name.eq_ignore_ascii_case(index))
    }
}

/// One reference to a table in a statement.
pub struct SheafTableSource {
    pub table: Arc<Table>,
    /// Number of this reference in its statement, in the order of appearance, from 0.
    pub reference: u32,
    /// The name that the statement knows the table by (EXPLAIN's `table` column).
    pub alias: String,
    pub hints: IndexHints,
    schema: SchemaRef,
    constraints: Constraints,
}

impl SheafTableSource {
    pub fn new(
        table: Arc<Table>,
        reference: u32,
        alias: String,
        hints: IndexHints,
    ) -> SheafTableSource {
        let fields: Vec<_> = table
            .definition
            .columns
            .iter()
            .map(sheaf_access::arrow_field)
            .collect();
        let schema = Arc::new(Schema::new(fields));
        let constraints = unique_keys(&table);
        SheafTableSource {
            table,
            reference,
            alias,
            hints,
            schema,
            constraints,
        }
    }

    /// The same reference with one more column, the encoded clustered key ([`sheaf_access::CLUSTERED_KEY`]): for
    /// statements that change the rows they find.
    pub fn with_clustered_key(self) -> SheafTableSource {
        let fields: Vec<_> = self
            .schema
            .fields()
            .iter()
            .cloned()
            .chain([Arc::new(sheaf_access::clustered_key_field())])
            .collect();
        SheafTableSource {
            schema: Arc::new(Schema::new(fields)),
            ..self
        }
    }
}

/// The primary key and the unique keys over whole, NOT NULL columns: what functional dependencies follow from.
/// DataFusion treats a nullable unique key as a weaker dependency that we do not need, and a unique key on a
/// column *prefix* says nothing about the column.
fn unique_keys(table: &Table) -> Constraints {
    let definition = &table.definition;
    let mut constraints = Vec::new();
    let indexes = std::iter::once(&definition.primary).chain(&definition.secondary);
    for index in indexes.filter(|index| (index.unique || index.primary) && !index.parts.is_empty())
    {
        let whole = index
            .parts
            .iter()
            .all(|part| part.prefix_length.is_none() && !definition.columns[part.column].nullable);
        if whole {
            constraints.push(Constraint::PrimaryKey(
                index.parts.iter().map(|part| part.column).collect(),
            ));
        }
    }
    Constraints::new_unverified(constraints)
}

impl TableSource for SheafTableSource {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn constraints(&self) -> Option<&Constraints> {
        Some(&self.constraints)
    }

    /// Only non-volatile filters are offered, and every one of them is applied by the scan.
    fn supports_filters_pushdown(
        &self,
        filters: &[&Expr],
    ) -> Result<Vec<TableProviderFilterPushDown>> {
        Ok(vec![TableProviderFilterPushDown::Exact; filters.len()])
    }
}

/// A table whose rows are already in memory: INFORMATION_SCHEMA, for example.
pub struct MemoryTableSource {
    /// Name for EXPLAIN.
    pub name: String,
    pub batches: Vec<RecordBatch>,
    schema: SchemaRef,
}

impl MemoryTableSource {
    /// All `batches` must have `schema`.
    pub fn new(name: String, schema: SchemaRef, batches: Vec<RecordBatch>) -> MemoryTableSource {
        MemoryTableSource {
            name,
            batches,
            schema,
        }
    }
}

impl TableSource for MemoryTableSource {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn supports_filters_pushdown(
        &self,
        filters: &[&Expr],
    ) -> Result<Vec<TableProviderFilterPushDown>> {
        Ok(vec![TableProviderFilterPushDown::Exact; filters.len()])
    }
}

/// The rows of the previous round of a recursive common table expression, inside of its definition.
pub struct WorkTableSource {
    /// The expression's name.
    pub name: String,
    schema: SchemaRef,
}

impl WorkTableSource {
    pub fn new(name: String, schema: SchemaRef) -> WorkTableSource {
        WorkTableSource { name, schema }
    }
}

impl TableSource for WorkTableSource {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }
}
