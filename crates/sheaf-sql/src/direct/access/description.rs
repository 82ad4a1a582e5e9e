//! How an access reads its table, for EXPLAIN: the row of EXPLAIN's table, and the line of the tree.

use std::sync::Arc;

use sheaf_access::IndexRef;
use sheaf_frontend::value_literal::value_literal;
use sheaf_optimizer::{ExplainRow, ExtraNote, PlanNode, RowConditions, access_words};
use sheaf_storage::Direction;
use sheaf_table::Table;
use sheaf_types::Value;
use sheaf_types::text::quoting::quoted_name;
use sqlparser::ast;

use super::{Access, Comparison, Kind, Next};
use crate::direct::operands::operand::{Compared, Operand};
use crate::direct::operands::relation::Relation;
use crate::error::Result;

/// Members of a list that are shown, at most.
const MAX_SHOWN: usize = 5;

/// What stands for the values that a subquery brings.
const FOUND_FIRST: &str = "<subquery>";

/// What stands for those that another session gives its statement.
const GIVEN: &str = "?";

/// The statement's part in which a table is read.
pub(in crate::direct) struct ReadIn<'a> {
    /// The query block's number, and what MySQL calls its kind.
    pub(in crate::direct) block: (u64, &'a str),
    pub(in crate::direct) alias: &'a str,
    pub(in crate::direct) table: &'a Arc<Table>,
    pub(in crate::direct) known: KnownParameters<'a>,
    /// The columns that lookups take their keys from, by their places.
    pub(in crate::direct) outer: &'a [OuterColumn],
}

/// A column of a table that is read before.
#[derive(Clone, Debug, Default)]
pub(in crate::direct) struct OuterColumn {
    /// As EXPLAIN's column `ref` names it.
    pub(in crate::direct) with_database: String,
    /// As the tree does.
    pub(in crate::direct) name: String,
}

/// What is known of a statement's parameters before its action runs.
#[derive(Clone, Copy)]
pub(in crate::direct) struct KnownParameters<'a> {
    pub(in crate::direct) values: &'a [Value],
    /// How many the statement is given. What others are is found first.
    pub(in crate::direct) given: usize,
    /// In a subquery that runs for each row: the first parameter that is a column of the row, and these columns.
    pub(in crate::direct) of_row: (usize, &'a [OuterColumn]),
}

impl<'a> KnownParameters<'a> {
    /// The column of a row that a parameter is.
    fn column(&self, number: usize) -> Option<&'a OuterColumn> {
        let (first, columns) = self.of_row;
        columns.get(number.checked_sub(first)?)
    }

    /// What stands for a parameter without a value.
    fn unknown(&self, number: usize) -> &'static str {
        match number < self.given {
            true => GIVEN,
            false => FOUND_FIRST,
        }
    }

    /// What stands for a parameter in a condition.
    pub(in crate::direct) fn written(&self, number: usize) -> ast::Expr {
        let name = match (self.column(number), self.values.get(number)) {
            (Some(column), _) => column.name.as_str(),
            (None, Some(value)) => return value_literal(value),
            (None, None) => self.unknown(number),
        };
        ast::Expr::Identifier(ast::Ident::new(name))
    }
}

impl ReadIn<'_> {
    /// The column that an operand takes its value from.
    fn column(&self, operand: &Operand) -> Option<&OuterColumn> {
        match operand {
            Operand::Constant(_) => None,
            Operand::Outer(place) => self.outer.get(*place),
            Operand::Parameter(number) => self.known.column(*number),
        }
    }

    fn compared(&self, compared: &Compared) -> String {
        match compared {
            Compared::Plain(operand) => self.operand(operand),
            Compared::Whole(arithmetic) => arithmetic.text(&|operand| self.operand(operand)),
        }
    }

    /// Whether it takes something from a column of a table that is read before.
    fn is_looked_up(&self, compared: &Compared) -> bool {
        !compared.all(&mut |operand| self.column(operand).is_none())
    }

    fn operand(&self, operand: &Operand) -> String {
        if let Some(column) = self.column(operand) {
            return column.name.clone();
        }
        match operand {
            Operand::Constant(value) => value_text(value),
            Operand::Parameter(number) => {
                let value = self.known.values.get(*number).map(value_text);
                value.unwrap_or_else(|| self.known.unknown(*number).to_string())
            }
            Operand::Outer(_) => FOUND_FIRST.to_string(),
        }
    }

    /// What EXPLAIN's column `ref` says.
    fn source(&self, compared: &Compared) -> String {
        match compared.plain().map(|operand| self.column(operand)) {
            Some(Some(column)) => column.with_database.clone(),
            None if self.is_looked_up(compared) => "func".to_string(),
            _ => "const".to_string(),
        }
    }

    fn knows(&self, compared: &Compared) -> bool {
        compared.all(&mut |operand| match operand {
            Operand::Constant(_) => true,
            Operand::Parameter(number) => *number < self.known.values.len(),
            Operand::Outer(_) => false,
        })
    }
}

fn value_text(value: &Value) -> String {
    match value.is_null() || value.is_number() {
        true => value.to_string(),
        false => format!("'{value}'"),
    }
}

impl Relation {
    fn text(self) -> &'static str {
        match self {
            Relation::Equal => "=",
            Relation::NotEqual => "<>",
            Relation::Less => "<",
            Relation::LessOrEqual => "<=",
            Relation::Greater => ">",
            Relation::GreaterOrEqual => ">=",
        }
    }
}

impl Comparison {
    fn text(&self, column: &str, read: &ReadIn<'_>) -> String {
        let one = |(relation, operand): &(Relation, Compared)| {
            format!("{column} {} {}", relation.text(), read.compared(operand))
        };
        match &self.kind {
            Kind::Relation(Relation::Equal, operand) if read.is_looked_up(operand) => {
                format!("{column}={}", read.compared(operand))
            }
            Kind::Relation(relation, operand) => one(&(*relation, operand.clone())),
            Kind::In(list) => {
                let shown = list.iter().take(MAX_SHOWN);
                let mut texts: Vec<String> = shown.map(|operand| read.compared(operand)).collect();
                if list.len() > MAX_SHOWN {
                    texts.push("...".to_string());
                }
                format!("{column} in ({})", texts.join(","))
            }
            Kind::InList(_) => format!("{column} in ({FOUND_FIRST})"),
            Kind::StartsWith(pattern, _) => format!("{column} LIKE {}", read.compared(pattern)),
            Kind::IsNull | Kind::Missing(true) => format!("{column} IS NULL"),
            Kind::Missing(false) => format!("{column} IS NOT NULL"),
            Kind::Rows(branches) => {
                let columns = &read.table.definition.columns;
                let one = |(column, relation, operand): &(usize, Relation, Compared)| {
                    let column = &columns[*column].name;
                    format!("{column} {} {}", relation.text(), read.compared(operand))
                };
                let shown = branches.iter().take(MAX_SHOWN).map(|branch| {
                    let relations: Vec<String> = branch.iter().map(one).collect();
                    format!("({})", relations.join(" and "))
                });
                let mut texts: Vec<String> = shown.collect();
                if branches.len() > MAX_SHOWN {
                    texts.push("...".to_string());
                }
                texts.join(" or ")
            }
            Kind::Or(branches) => {
                let branches = branches.iter().map(|branch| {
                    let relations: Vec<String> = branch.iter().map(one).collect();
                    match relations.as_slice() {
                        [only] => only.clone(),
                        both => format!("({})", both.join(" and ")),
                    }
                });
                branches.collect::<Vec<_>>().join(" or ")
            }
        }
    }

    /// Whether its operands are known before the statement runs.
    fn is_known(&self, read: &ReadIn<'_>) -> bool {
        match &self.kind {
            Kind::Relation(_, operand) | Kind::StartsWith(operand, _) => read.knows(operand),
            Kind::In(list) => list.iter().all(|operand| read.knows(operand)),
            Kind::InList(_) => false,
            Kind::IsNull | Kind::Missing(_) => true,
            Kind::Rows(branches) => {
                let mut operands = branches.iter().flatten().map(|(.., operand)| operand);
                operands.all(|operand| read.knows(operand))
            }
            Kind::Or(branches) => {
                let mut operands = branches.iter().flatten().map(|(_, operand)| operand);
                operands.all(|operand| read.knows(operand))
            }
        }
    }

    /// The operand of an equality.
    fn operand(&self) -> Option<&Compared> {
        match &self.kind {
            Kind::Relation(_, operand) => Some(operand),
            _ => None,
        }
    }
}

impl Access {
    /// Whether everything that it compares with is known before the statement runs.
    pub(in crate::direct) fn is_known(&self, read: &ReadIn<'_>) -> bool {
        let mut comparisons = self.comparisons.iter();
        comparisons.all(|comparison| comparison.is_known(read))
    }

    /// Rows that its keys lead to, by estimate; `None`: that is not known before the statement runs.
    pub(in crate::direct) fn expected_rows(&self, read: &ReadIn<'_>) -> Result<Option<u64>> {
        if self.is_single() {
            return Ok(Some(1));
        }
        if !self.is_known(read) {
            return Ok(None);
        }
        match self.bind(read.table, read.known.values) {
            Some(bound) => Ok(Some(bound.keys.estimated_rows(read.table, self.index)?)),
            None => Ok(None),
        }
    }

    /// The line of the tree, and the row of EXPLAIN's table. `direction`: of the order that is wanted. `rows`: what is
    /// expected of it.
    pub(in crate::direct) fn describe(
        &self,
        read: &ReadIn<'_>,
        direction: Option<Direction>,
        rows: Option<u64>,
    ) -> (PlanNode, ExplainRow) {
        let definition = self.index.definition(read.table);
        let equal: Vec<&Comparison> = self
            .equal
            .iter()
            .map(|position| &self.comparisons[*position])
            .collect();
        let operands = || equal.iter().filter_map(|comparison| comparison.operand());
        let is_looked_up = operands().any(|operand| read.is_looked_up(operand));
        let is_equal = matches!(self.next, Next::Anything);
        let is_table = self.is_whole() && self.index == IndexRef::Clustered && direction.is_none();
        let is_backward = direction == Some(Direction::Backward) && !self.is_single();
        let type_ = if is_table {
            "ALL"
        } else if self.is_whole() {
            "index"
        } else if self.is_single() && is_looked_up {
            "eq_ref"
        } else if self.is_single() {
            "const"
        } else if is_equal {
            "ref"
        } else {
            "range"
        };
        let (block, kind) = read.block;
        let mut row = ExplainRow::table(block, kind, read.alias, type_);
        let layout = self.layout(read.table);
        let parts = match self.is_whole() {
            true => definition.parts.len(),
            false if self.is_by_rows() => {
                let rows = self.comparisons.iter().filter_map(Comparison::as_rows);
                rows.flatten().map(Vec::len).max().unwrap_or(1)
            }
            false => equal.len() + usize::from(!is_equal),
        };
        if !is_table {
            row.key = Some(definition.name.clone());
            row.key_len = Some(
                layout
                    .mysql_key_len(parts.min(layout.parts.len()))
                    .to_string(),
            );
        }
        for access in Access::candidates(read.table, &self.comparisons, false, None) {
            row.add_possible_key(&access.index.definition(read.table).name);
        }
        if matches!(type_, "eq_ref" | "const" | "ref") {
            let source = |comparison: &&Comparison| match comparison.operand() {
                Some(operand) => read.source(operand),
                None => "const".to_string(),
            };
            let sources: Vec<String> = equal.iter().map(source).collect();
            row.ref_ = Some(sources.join(","));
        }
        row.rows = rows;
        let (on_entries, on_rows): (Vec<usize>, Vec<usize>) =
            self.tested.iter().partition(|position| {
                let column = self.comparisons[**position].column;
                self.entry.part_tested(column).is_some()
            });
        if !self.has_tests() {
            row.filtered = Some(100.0);
        }
        let is_covering = self.index != IndexRef::Clustered && self.entry.is_covering();
        for (note, holds) in [
            (
                ExtraNote::UsingIndexCondition,
                !on_entries.is_empty() && !is_covering,
            ),
            (
                ExtraNote::UsingWhere,
                !on_rows.is_empty() || self.filter.is_some() || is_covering && self.has_tests(),
            ),
            (ExtraNote::UsingIndex, is_covering),
            (ExtraNote::BackwardIndexScan, is_backward),
        ] {
            if holds {
                row.add(note);
            }
        }
        let name = |comparison: &Comparison| {
            let columns = &read.table.definition.columns;
            columns[comparison.column].name.as_str()
        };
        let plain = |comparison: &Comparison| format!("{}.{}", read.alias, name(comparison));
        let tested = |positions: &[usize], column: &dyn Fn(&Comparison) -> String| {
            let comparisons = positions
                .iter()
                .map(|position| &self.comparisons[*position]);
            let texts = comparisons
                .map(|comparison| format!("({})", comparison.text(&column(comparison), read)));
            texts.collect::<Vec<_>>()
        };
        // FORMAT=JSON names columns in full.
        let quoted = |comparison: &Comparison| {
            let parts = [
                read.table.definition.database.as_str(),
                read.alias,
                name(comparison),
            ];
            parts.map(quoted_name).join(".")
        };
        let filter = || {
            self.filter
                .iter()
                .filter_map(|filter| filter.condition_text(&|number| read.known.written(number)))
        };
        let all = |mut conditions: Vec<String>| {
            conditions.extend(filter());
            conditions
        };
        let joined =
            |conditions: Vec<String>| (!conditions.is_empty()).then(|| conditions.join(" and "));
        let in_document = |conditions: Vec<String>| match conditions.len() {
            0 | 1 => joined(conditions),
            _ => joined(conditions).map(|all| format!("({all})")),
        };
        row.conditions = Some(RowConditions {
            on_entries: in_document(tested(&on_entries, &quoted)),
            on_rows: in_document(all(tested(&on_rows, &quoted))),
        });
        let mut text = access_words(&row);
        let bound: Vec<String> = self
            .bound()
            .map(|position| &self.comparisons[position])
            .map(|comparison| comparison.text(name(comparison), read))
            .collect();
        match type_ {
            "ALL" | "index" => {}
            "range" => text.push_str(&format!(" over ({})", bound.join(" AND "))),
            _ => text.push_str(&format!(" ({})", bound.join(", "))),
        }
        if is_backward {
            text.push_str(" (reverse)");
        }
        if !on_entries.is_empty() {
            let condition = tested(&on_entries, &plain).join(" and ");
            text.push_str(&format!(", with index condition: {condition}"));
        }
        if let Some(condition) = joined(all(tested(&on_rows, &plain))) {
            text.push_str(&format!(", with row condition: {condition}"));
        }
        (PlanNode::line(text, None), row)
    }
}
