//! The node of a logical plan.

use std::cmp::Ordering;
use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use arrow::datatypes::FieldRef;
use datafusion_common::{Column, DFSchema, DFSchemaRef, Result, internal_err};
use datafusion_expr::{Expr, Extension, LogicalPlan, UserDefinedLogicalNodeCore};

use super::table::JsonTable;

/// Rows of the input, each with the rows of its document.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Expand {
    pub input: Arc<LogicalPlan>,
    /// The document of a row: a JSON value.
    pub document: Expr,
    /// Columns of the input that are handed on: those that something above needs.
    pub kept: Vec<Column>,
    pub table: Arc<JsonTable>,
    /// A row whose document has no rows comes once, with NULL in all columns of the table.
    pub keeps_rows: bool,
    /// What the columns of the table are called.
    names: Vec<Column>,
    schema: DFSchemaRef,
}

impl Expand {
    /// `kept`: columns of the input; those that it lacks are left out.
    ///
    /// # Errors
    /// Two columns have one name.
    pub fn try_new(
        input: Arc<LogicalPlan>,
        document: Expr,
        mut kept: Vec<Column>,
        (table, names): (Arc<JsonTable>, Vec<Column>),
        keeps_rows: bool,
    ) -> Result<Expand> {
        let below = input.schema();
        kept.retain(|column| below.has_column(column));
        let mut fields = Vec::with_capacity(kept.len() + names.len());
        for column in &kept {
            let (qualifier, field) = below.qualified_field_from_column(column)?;
            fields.push((qualifier.cloned(), Arc::clone(field)));
        }
        for (column, name) in table.columns.iter().zip(&names) {
            let field = column.field().with_name(name.name());
            fields.push((name.relation.clone(), Arc::new(field) as FieldRef));
        }
        let schema = DFSchema::new_with_metadata(fields, below.metadata().clone())?;
        Ok(Expand {
            input,
            document,
            kept,
            table,
            keeps_rows,
            names,
            schema: Arc::new(schema),
        })
    }

    pub fn into_plan(self) -> LogicalPlan {
        let node = Arc::new(self);
        LogicalPlan::Extension(Extension { node })
    }

    /// The positions of the columns that are handed on.
    pub fn kept_positions(&self) -> Result<Vec<usize>> {
        let below = self.input.schema();
        let kept = self.kept.iter();
        kept.map(|column| below.index_of_column(column)).collect()
    }
}

impl PartialOrd for Expand {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        (self == other).then_some(Ordering::Equal)
    }
}

impl UserDefinedLogicalNodeCore for Expand {
    fn name(&self) -> &str {
        "Expand"
    }

    fn inputs(&self) -> Vec<&LogicalPlan> {
        vec![&self.input]
    }

    fn schema(&self) -> &DFSchemaRef {
        &self.schema
    }

    fn expressions(&self) -> Vec<Expr> {
        vec![self.document.clone()]
    }

    /// The algebra has pushed down what may go below.
    fn prevent_predicate_push_down_columns(&self) -> HashSet<String> {
        let fields = self.schema.fields().iter();
        fields.map(|field| field.name().clone()).collect()
    }

    fn fmt_for_explain(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "Expand: {} of {}", self.table.name, self.document)
    }

    fn with_exprs_and_inputs(
        &self,
        mut expressions: Vec<Expr>,
        mut inputs: Vec<LogicalPlan>,
    ) -> Result<Self> {
        let (Some(document), Some(input)) = (expressions.pop(), inputs.pop()) else {
            return internal_err!("rows of documents without their input");
        };
        let table = (Arc::clone(&self.table), self.names.clone());
        let kept = self.kept.clone();
        Expand::try_new(Arc::new(input), document, kept, table, self.keeps_rows)
    }

    /// Those that the document is computed of come by themselves.
    fn necessary_children_exprs(&self, output_columns: &[usize]) -> Option<Vec<Vec<usize>>> {
        let kept = self.kept_positions().ok()?;
        let wanted = output_columns.iter();
        let mut wanted: Vec<usize> = wanted
            .filter_map(|column| kept.get(*column))
            .copied()
            .collect();
        wanted.sort_unstable();
        wanted.dedup();
        Some(vec![wanted])
    }
}
