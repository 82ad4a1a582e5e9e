//! EXPLAIN FORMAT=JSON: the rows of EXPLAIN's table as MySQL 8 nests them.
//!
//! ```text
//!   query_block
//!     '- ordering_operation                 a sort
//!          '- grouping_operation            groups
//!               '- nested_loop or table     the tables, in the order in which they are read
//! ```
//!
//! Derived tables are nested in the table that they are, other subqueries and the branches of a UNION listed beside.
//! Costs are microseconds; `resident` is the share of an index (and of the rows it leads to) that is in memory, which
//! MySQL does not have.

use std::collections::BTreeMap;

use crate::explain::sql_text::Names;
use crate::explain::{ExplainRow, ExtraNote, RowConditions};
use crate::json::{Json, Object};

/// The document of a plan whose rows are `rows` and whose cost is `cost_us`, if that is known.
pub(crate) fn explain_json(rows: &[&ExplainRow], cost_us: Option<f64>) -> Json {
    let mut blocks = Blocks {
        rows: BTreeMap::new(),
        done: Vec::new(),
    };
    for &row in rows {
        blocks
            .rows
            .entry(row.id.unwrap_or(u64::MAX))
            .or_default()
            .push(row);
    }
    let first = blocks.rows.keys().next().copied().unwrap_or(1);
    let mut main = blocks.block(first, cost_us);
    // What no derived table has taken.
    let left: Vec<u64> = blocks.rows.keys().copied().collect();
    let mut subqueries = Vec::new();
    let mut branches = Vec::new();
    for id in left {
        if blocks.done.contains(&id) {
            continue;
        }
        let select_type = blocks.rows[&id].first();
        let select_type = select_type.map_or("", |row| row.select_type.as_str());
        let is_branch = select_type == "UNION";
        let is_dependent = select_type == "DEPENDENT SUBQUERY";
        let block = blocks.block(id, None);
        let specification = Object::new()
            .with("dependent", is_dependent)
            .with("cacheable", select_type != "UNCACHEABLE SUBQUERY")
            .with("query_block", block);
        match is_branch {
            true => branches.push(specification),
            false => subqueries.push(specification),
        }
    }
    if !subqueries.is_empty() {
        main.add("attached_subqueries", subqueries);
    }
    if branches.is_empty() {
        return Object::new().with("query_block", main).into();
    }
    let first = Object::new()
        .with("dependent", false)
        .with("cacheable", true)
        .with("query_block", main);
    branches.insert(0, first);
    let union = Object::new()
        .with("using_temporary_table", false)
        .with("query_specifications", branches);
    Object::new()
        .with("query_block", Object::new().with("union_result", union))
        .into()
}

/// Rows by query block, and the blocks that are in the document already.
struct Blocks<'r> {
    rows: BTreeMap<u64, Vec<&'r ExplainRow>>,
    done: Vec<u64>,
}

impl Blocks<'_> {
    fn block(&mut self, id: u64, cost_us: Option<f64>) -> Object {
        self.done.push(id);
        let rows = self.rows.get(&id).cloned().unwrap_or_default();
        let cost_us = cost_us.or(rows.last().and_then(|row| row.prefix_cost_us));
        let block = Object::new().with("select_id", id).with_some(
            "cost_info",
            cost_us.map(|cost_us| Object::new().with("query_cost", cost(cost_us))),
        );
        if let [row] = rows.as_slice()
            && row.table.is_none()
        {
            return block.with_some("message", row.message());
        }
        if let [row, read @ ..] = rows.as_slice()
            && matches!(row.select_type.as_str(), "INSERT" | "REPLACE")
        {
            let table = self.table(row);
            let read = (!read.is_empty()).then(|| self.operations(read));
            return block.with("table", table).with_some("insert_from", read);
        }
        block.and(self.operations(&rows))
    }

    /// The tables of a block, and what is done with their rows.
    fn operations(&mut self, rows: &[&ExplainRow]) -> Object {
        let mut tables: Vec<Object> = rows.iter().map(|row| self.table(row)).collect();
        let mut operation = match tables.len() {
            1 => Object::new().with_some("table", tables.pop()),
            _ => {
                let tables = tables
                    .into_iter()
                    .map(|table| Object::new().with("table", table));
                Object::new().with("nested_loop", tables.collect::<Vec<_>>())
            }
        };
        let first = rows.first();
        let has = |note| first.is_some_and(|row| row.has(note));
        if has(ExtraNote::UsingTemporary) {
            let grouping = Object::new()
                .with("using_temporary_table", true)
                .with("using_filesort", false);
            operation = Object::new().with("grouping_operation", grouping.and(operation));
        }
        if has(ExtraNote::UsingFilesort) {
            let ordering = Object::new().with("using_filesort", true);
            operation = Object::new().with("ordering_operation", ordering.and(operation));
        }
        operation
    }

    fn table(&mut self, row: &ExplainRow) -> Object {
        let list = |text: &Option<String>| -> Option<Vec<Json>> {
            let text = text.as_deref()?;
            Some(text.split(',').map(Json::from).collect())
        };
        let changes = match row.select_type.as_str() {
            "INSERT" => Some("insert"),
            "REPLACE" => Some("replace"),
            "UPDATE" => Some("update"),
            "DELETE" => Some("delete"),
            _ => None,
        };
        let mut table = Object::new();
        if let Some(change) = changes {
            table.add(change, true);
        }
        let detail = row.detail.as_deref();
        let conditions = conditions_of(row);
        table = table
            .with_some("table_name", row.table.as_deref())
            .with_some("access_type", row.type_.as_deref())
            .with_some("possible_keys", list(&row.possible_keys))
            .with_some("key", row.key.as_deref());
        if let Some(detail) = detail
            && row.key.is_some()
            && detail.key_parts > 0
        {
            table.add("used_key_parts", detail.used_key_parts());
        }
        table = table
            .with_some("key_length", row.key_len.as_deref())
            .with_some("ref", list(&row.ref_))
            .with_some("rows_examined_per_scan", row.rows)
            .with_some("rows_produced_per_join", row.produced.map(Json::count))
            .with_some("filtered", row.filtered.map(|share| format!("{share:.2}")));
        if row.has(ExtraNote::TableFunction) {
            table.add("table_function", "json_table");
            table.add("using_temporary_table", true);
        }
        table = table
            .with_flag("using_index", row.has(ExtraNote::UsingIndex))
            .with_flag("backward_index_scan", row.has(ExtraNote::BackwardIndexScan))
            .with_flag("not_exists", row.has(ExtraNote::NotExists))
            .with_flag("first_match", row.has(ExtraNote::FirstMatch))
            .with_flag("using_MRR", row.has(ExtraNote::UsingMrr))
            .with_some("using_join_buffer", join_buffer(row));
        let notes = row.other_notes();
        table = table
            .with_some("notes", (!notes.is_empty()).then_some(notes))
            .with_some("switches_after_cost", row.switch_limit_us.map(cost));
        if let Some(detail) = detail {
            let ranges = detail.range_texts();
            table = table.with_some("ranges", (!ranges.is_empty()).then_some(ranges));
        }
        table = table.with_some("index_condition", conditions.on_entries);
        if let Some(cost_us) = row.cost_us {
            let prefix_us = row.prefix_cost_us.unwrap_or(cost_us);
            let eval_us = row.eval_cost_us();
            let info = Object::new()
                .with("read_cost", cost(cost_us - eval_us))
                .with("eval_cost", cost(eval_us))
                .with("prefix_cost", cost(prefix_us))
                .with_some("data_read_per_join", row.data_read_per_join());
            table.add("cost_info", info);
        }
        if let Some(detail) = detail {
            let (index, rows) = detail.resident();
            let share = |share: f64| Json::fixed(share, 2);
            let resident = Object::new()
                .with_some("index", index.map(share))
                .with_some("rows", rows.map(share));
            table.add("resident", resident);
            table.add("used_columns", detail.used_columns());
        }
        table = table.with_some("attached_condition", conditions.on_rows);
        match row.derived {
            // It is in the document once.
            Some(id) if self.done.contains(&id) => {
                let first = Object::new().with("select_id", id);
                let shared = Object::new().with("sharing_temporary_table_with", first);
                table.with("materialized_from_subquery", shared)
            }
            Some(id) => {
                let materialized = Object::new()
                    .with("using_temporary_table", false)
                    .with("dependent", false)
                    .with("cacheable", true)
                    .with("query_block", self.block(id, None));
                table.with("materialized_from_subquery", materialized)
            }
            None => table,
        }
    }
}

/// A cost as MySQL writes it: a number in a text.
/// What a plan says of itself, or what was planned.
fn conditions_of(row: &ExplainRow) -> RowConditions {
    match (&row.conditions, &row.detail) {
        (Some(own), _) => own.clone(),
        (None, Some(detail)) => {
            let names = Names {
                database: Some(&detail.table.definition.database),
                table: row.table.as_deref(),
            };
            RowConditions {
                on_entries: detail.index_condition(names),
                on_rows: detail.attached_condition(names),
            }
        }
        (None, None) => RowConditions::default(),
    }
}

fn cost(cost_us: f64) -> String {
    format!("{cost_us:.2}")
}

fn join_buffer(row: &ExplainRow) -> Option<&'static str> {
    [
        (ExtraNote::BatchedKeyAccess, "Batched Key Access"),
        (ExtraNote::JoinBufferHash, "hash join"),
        (ExtraNote::JoinBufferMerge, "sort-merge join"),
        (ExtraNote::JoinBufferNestedLoop, "Block Nested Loop"),
    ]
    .into_iter()
    .find(|(note, _)| row.has(*note))
    .map(|(_, text)| text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::Layout;

    #[test]
    fn rows_of_a_document_are_no_groups() {
        let printed = |row: &ExplainRow| {
            let document = explain_json(&[row], None);
            document.print(Layout::default())
        };
        let mut row = ExplainRow::table(1, "SIMPLE", "x", "ALL");
        row.add(ExtraNote::TableFunction);
        let alone = printed(&row);
        assert!(
            alone.contains("\"table_function\": \"json_table\""),
            "{alone}"
        );
        assert!(!alone.contains("grouping_operation"), "{alone}");
        row.add(ExtraNote::UsingTemporary);
        let grouped = printed(&row);
        assert!(grouped.contains("grouping_operation"), "{grouped}");
        assert_eq!(
            row.extra.as_deref(),
            Some("Table function: json_table; Using temporary; Using temporary")
        );
    }
}
