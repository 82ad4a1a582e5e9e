//! What DataFusion's logical planner sees of a table.
//!
//! DataFusion carries a [`TableSource`] through every rewrite of a plan. One [`SheafTableSource`] is created per
//! *reference* to a table, not per table. It carries what belongs to the reference (its number in the statement, its
//! alias, its hints).
//!
//! A source answers Exact to every deterministic filter, so after optimisation all conditions on one table sit on
//! its TableScan, where the access path choice reads them.

use std::collections::HashSet;
use std::sync::{Arc, OnceLock};

use arrow::array::RecordBatch;
use arrow::datatypes::{Schema, SchemaRef};
use datafusion_common::tree_node::TreeNodeRecursion;
use datafusion_common::{Constraint, Constraints, Result};
use datafusion_expr::{Expr, LogicalPlan, TableProviderFilterPushDown, TableSource};
use sheaf_table::{Index, Table};

use crate::hints::TableHints;

/// One reference to a table in a statement.
pub struct SheafTableSource {
    pub table: Arc<Table>,
    /// Number of this reference in its statement, in the order of appearance, from 0.
    pub reference: u32,
    /// The name that the statement knows the table by (EXPLAIN's `table` column).
    pub alias: String,
    pub hints: TableHints,
    /// A locking read does not lock it: it is read through the view of plain reads.
    pub is_beside_locks: bool,
    schema: SchemaRef,
    constraints: Constraints,
}

impl SheafTableSource {
    pub fn new(
        table: Arc<Table>,
        reference: u32,
        alias: String,
        hints: impl Into<TableHints>,
    ) -> SheafTableSource {
        let schema = sheaf_access::schema_of(&table);
        let constraints = unique_keys(&table);
        SheafTableSource {
            table,
            reference,
            alias,
            hints: hints.into(),
            is_beside_locks: false,
            schema,
            constraints,
        }
    }

    /// Whether plans may use an index of the table at all.
    pub fn uses(&self, index: &Index) -> bool {
        !index.invisible || self.hints.invisible_indexes
    }

    /// The same reference, of whose keys nothing is said.
    pub fn without_keys(&self) -> SheafTableSource {
        SheafTableSource {
            table: Arc::clone(&self.table),
            reference: self.reference,
            alias: self.alias.clone(),
            hints: self.hints.clone(),
            is_beside_locks: self.is_beside_locks,
            schema: Arc::clone(&self.schema),
            constraints: Constraints::default(),
        }
    }

    /// The same reference with other hints.
    pub fn with_hints(&self, hints: TableHints) -> SheafTableSource {
        SheafTableSource {
            table: Arc::clone(&self.table),
            reference: self.reference,
            alias: self.alias.clone(),
            hints,
            is_beside_locks: self.is_beside_locks,
            schema: Arc::clone(&self.schema),
            constraints: self.constraints.clone(),
        }
    }

    /// The same reference to another state of the table, whose columns and unique keys are the same.
    pub fn over(&self, table: Arc<Table>) -> SheafTableSource {
        SheafTableSource {
            table,
            reference: self.reference,
            alias: self.alias.clone(),
            hints: self.hints.clone(),
            is_beside_locks: self.is_beside_locks,
            schema: Arc::clone(&self.schema),
            constraints: self.constraints.clone(),
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

/// A common table expression that a statement names several times. Its query is computed once
/// (`operator/common_tables_exec.rs`).
pub struct CommonTableSource {
    /// Tells those of a statement apart. One that reads another has the greater number.
    pub number: u32,
    /// The expression's name.
    pub name: String,
    schema: SchemaRef,
    definition: OnceLock<Arc<LogicalPlan>>,
}

impl CommonTableSource {
    /// One whose definition is still to come.
    pub fn new(number: u32, name: String, schema: SchemaRef) -> CommonTableSource {
        CommonTableSource {
            number,
            name,
            schema,
            definition: OnceLock::new(),
        }
    }

    /// Says what its rows are, once. The plan has the columns of the schema, in their order.
    pub fn define(&self, definition: LogicalPlan) {
        let _ = self.definition.set(Arc::new(definition));
    }

    /// The plan of its query, before any optimisation.
    pub fn definition(&self) -> Option<&Arc<LogicalPlan>> {
        self.definition.get()
    }

    /// The source of a table, if it is one of these.
    pub fn of(source: &Arc<dyn TableSource>) -> Option<&CommonTableSource> {
        source.downcast_ref()
    }
}

impl TableSource for CommonTableSource {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }
}

/// Calls `visit` with each node of a plan, those of subqueries and of common table expressions included. The query of
/// each of these counts once, however often it is named.
pub fn for_each_node(
    plan: &LogicalPlan,
    visit: &mut dyn FnMut(&LogicalPlan) -> Result<()>,
) -> Result<()> {
    let mut known = HashSet::new();
    let mut definitions: Vec<Arc<LogicalPlan>> = Vec::new();
    let mut walk = |plan: &LogicalPlan, definitions: &mut Vec<Arc<LogicalPlan>>| {
        plan.apply_with_subqueries(|node| {
            visit(node)?;
            if let LogicalPlan::TableScan(scan) = node
                && let Some(table) = CommonTableSource::of(&scan.source)
                && let Some(definition) = table.definition()
                && known.insert(table.number)
            {
                definitions.push(Arc::clone(definition));
            }
            Ok(TreeNodeRecursion::Continue)
        })
    };
    walk(plan, &mut definitions)?;
    while let Some(definition) = definitions.pop() {
        walk(&definition, &mut definitions)?;
    }
    Ok(())
}
