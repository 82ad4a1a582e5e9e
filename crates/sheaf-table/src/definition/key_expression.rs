//! Key expressions: parts of an index that are no columns.
//!
//! The values of a key expression are those of a hidden column, a VIRTUAL [generated](super::generated_column) one that
//! comes behind all others. So the index is one of columns, and whatever writes rows, builds indexes or reads them
//! knows of nothing else:
//!
//! ```text
//!   t (a INT, KEY k ((a + 1), a))     columns  a, !hidden!0 AS (`a` + 1)     k  (!hidden!0, a)
//! ```
//!
//! A hidden column has no name in SQL: [`TableDefinition::column_position`] does not find it. It comes and goes with
//! its index. What shows a definition shows the expression in its place.
//!
//! Reference: MySQL manual, "CREATE INDEX Statement", "Functional Key Parts".

use crate::definition::schema::{Index, IndexPart, TableDefinition, same_name};

/// What an index with a key expression is called that is given no name.
pub(crate) const DEFAULT_NAME: &str = "functional_index";

impl TableDefinition {
    /// The table has indexes of expressions.
    pub fn has_key_expressions(&self) -> bool {
        self.columns.iter().any(|column| column.hidden)
    }

    /// The expression that a part of an index is; `None`: it is a column.
    pub fn key_expression(&self, part: &IndexPart) -> Option<&str> {
        let column = &self.columns[part.column];
        let generated = column.generated.as_ref().filter(|_| column.hidden);
        generated.map(|generated| generated.expression.as_str())
    }

    /// The index that a hidden column belongs to.
    pub fn index_of_expression(&self, column: usize) -> Option<&Index> {
        let has = |index: &&Index| index.parts.iter().any(|part| part.column == column);
        self.secondary.iter().find(has)
    }

    /// What a column is called where plans are shown: a hidden one is its expression.
    pub fn shown_name(&self, column: usize) -> &str {
        let column = &self.columns[column];
        match column.generated.as_ref().filter(|_| column.hidden) {
            Some(generated) => &generated.expression,
            None => &column.name,
        }
    }

    /// Position of a column by the name that plans know it by, hidden or not.
    pub fn position_in_plan(&self, name: &str) -> Option<usize> {
        let mut columns = self.columns.iter();
        columns.position(|column| same_name(&column.name, name))
    }

    /// The name of a new hidden column.
    pub(crate) fn hidden_name(&self) -> String {
        let is_free = |name: &String| self.position_in_plan(name).is_none();
        let mut names = (0..).map(|number: u32| format!("!hidden!{number}"));
        names.find(is_free).unwrap_or_default()
    }
}
