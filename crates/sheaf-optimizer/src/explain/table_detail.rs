//! What EXPLAIN's trees say of a table beyond the columns of its table.
//!
//! The planner keeps expressions and positions; texts are made of them only when EXPLAIN shows them.

use std::fmt;
use std::sync::Arc;

use datafusion_expr::Expr;
use sheaf_access::{Fetch, IndexRef};
use sheaf_storage::KeyRange;
use sheaf_table::Table;

use crate::access::range_text::range_texts;
use crate::estimate::condition;
use crate::estimate::statistics::{layout, tree};
use crate::explain::sql_text::{Names, conditions_text, expression_text};

/// Ranges that are shown, at most.
const MAX_SHOWN_RANGES: usize = 5;

/// How a table is read.
#[derive(Clone)]
pub(crate) struct TableDetail {
    pub table: Arc<Table>,
    pub index: IndexRef,
    pub fetch: Fetch,
    pub is_backward: bool,
    /// All conditions on the table.
    pub filters: Vec<Expr>,
    /// Those that are tested on index entries, and those that are tested on rows; the ranges say the others.
    pub index_filters: Vec<usize>,
    pub row_filters: Vec<usize>,
    /// Conditions on joined rows that are tested with the table's.
    pub residual: Vec<Expr>,
    /// What bounds the last of the parts that are looked up.
    pub bounds: Vec<Expr>,
    /// Columns that the plan above reads.
    pub columns: Vec<usize>,
    /// Leading parts of the index that ranges or looked-up keys bind.
    pub key_parts: usize,
    /// By ranges; otherwise by keys that a join looks up, or by jumps alone.
    pub by_ranges: bool,
}

impl fmt::Debug for TableDetail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TableDetail")
            .field("table", &self.table.definition.name)
            .field("index", &self.index)
            .finish_non_exhaustive()
    }
}

/// Without parentheses around it: it stands in a list.
fn bound_text(bound: &Expr) -> String {
    let text = expression_text(bound, Names::PLAIN);
    let inner = text
        .strip_prefix('(')
        .and_then(|text| text.strip_suffix(')'));
    inner.map_or_else(|| text.clone(), str::to_string)
}

impl TableDetail {
    /// The ranges of the index, as conditions; none if all of it is read.
    pub(crate) fn range_texts(&self) -> Vec<String> {
        if !self.by_ranges || self.key_parts == 0 {
            return Vec::new();
        }
        let definition = &self.table.definition;
        let terms: Vec<_> = self
            .filters
            .iter()
            .map(|expr| condition::analyze(expr, definition))
            .collect();
        let layout = layout(&self.table, self.index);
        let mut texts = range_texts(&terms, layout, definition, MAX_SHOWN_RANGES + 1);
        if texts.len() > MAX_SHOWN_RANGES {
            texts.truncate(MAX_SHOWN_RANGES);
            texts.push("...".to_string());
        }
        texts
    }

    fn chosen(&self, positions: &[usize]) -> Vec<Expr> {
        let chosen = positions.iter().map(|position| &self.filters[*position]);
        chosen.cloned().collect()
    }

    /// What is tested on index entries before rows are fetched.
    pub(crate) fn index_condition(&self, names: Names<'_>) -> Option<String> {
        conditions_text(&self.chosen(&self.index_filters), names)
    }

    /// What is tested on rows.
    pub(crate) fn attached_condition(&self, names: Names<'_>) -> Option<String> {
        let mut conditions = self.chosen(&self.row_filters);
        conditions.extend(self.residual.iter().cloned());
        conditions_text(&conditions, names)
    }

    /// Names of the parts of the index that are bound.
    pub(crate) fn used_key_parts(&self) -> Vec<&str> {
        let definition = &self.table.definition;
        let parts = &layout(&self.table, self.index).parts;
        let used = parts.iter().take(self.key_parts);
        used.filter_map(|part| Some(definition.shown_name(part.column?)))
            .collect()
    }

    /// `part=value` for each part of a looked-up key, and the bounds of the part behind them. `sources`: EXPLAIN's
    /// column ref.
    pub(crate) fn key_texts(&self, sources: Option<&str>) -> Vec<String> {
        let sources = sources.unwrap_or_default().split(',');
        let in_key = self.key_parts - usize::from(!self.bounds.is_empty());
        let parts = self.used_key_parts().into_iter().zip(sources);
        parts
            .take(in_key)
            .map(|(part, source)| {
                // Without the database, which the tree does not name.
                let source = match source.split_once('.') {
                    Some((database, rest)) if database == self.table.definition.database => rest,
                    _ => source,
                };
                format!("{part}={source}")
            })
            .chain(self.bounds.iter().map(bound_text))
            .collect()
    }

    /// Columns of the table that the statement reads.
    pub(crate) fn used_columns(&self) -> Vec<&str> {
        let columns = &self.table.definition.columns;
        let mut used = vec![false; columns.len()];
        // The clustered key, which statements that change rows ask for, comes after the columns.
        let known = self
            .columns
            .iter()
            .filter(|position| **position < columns.len());
        for position in known {
            used[*position] = true;
        }
        for column in self.filters.iter().flat_map(Expr::column_refs) {
            if let Some(position) = self.table.definition.position_in_plan(&column.name) {
                used[position] = true;
            }
        }
        let named = columns.iter().zip(used);
        let named = named.filter(|(column, used)| *used && !column.hidden);
        named.map(|(column, _)| column.name.as_str()).collect()
    }

    /// Bytes of a row of the table, on average.
    pub(crate) fn row_bytes(&self) -> f64 {
        let statistics = self.table.clustered.statistics();
        statistics.bytes as f64 / statistics.entries.max(1) as f64
    }

    /// Shares of the leaves that are in memory: of the index, and of the rows that it leads to.
    pub(crate) fn resident(&self) -> (Option<f64>, Option<f64>) {
        let share = |index| {
            tree(&self.table, index)
                .resident_share(&KeyRange::all())
                .ok()
        };
        let fetches_rows =
            self.index != IndexRef::Clustered && !matches!(self.fetch, Fetch::Covering);
        (
            share(self.index),
            fetches_rows.then(|| share(IndexRef::Clustered)).flatten(),
        )
    }
}
