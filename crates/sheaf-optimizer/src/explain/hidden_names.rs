//! The hidden columns of functional key parts, as the expressions that they hold.
//!
//! ```text
//!   t (a INT, KEY k ((a + 1)))     x.!hidden!0     ->     (x.a + 1)
//! ```
//!
//! Below the binder such a column is one like others, so the texts of a plan name it. They are mended when the plan is
//! shown.

use crate::explain::ExplainRow;
use crate::explain::plan_node::PlanNode;
use crate::json::Json;

/// MySQL's word for what is no column, in EXPLAIN's column ref.
const COMPUTED: &str = "func";

/// Pairs of what texts call a column and what it is, the longest first.
pub(crate) struct HiddenNames(Vec<(String, String)>);

impl HiddenNames {
    /// Those of the tables that EXPLAIN shows.
    pub(crate) fn of(tables: Vec<&ExplainRow>) -> HiddenNames {
        let mut names = Vec::new();
        let mut without_table: Vec<(String, String)> = Vec::new();
        for row in tables {
            let (Some(detail), Some(alias)) = (&row.detail, &row.table) else {
                continue;
            };
            let definition = &detail.table.definition;
            let in_full = format!("`{}`.`{alias}`", definition.database);
            for column in definition.columns.iter().filter(|column| column.hidden) {
                let Some(generated) = &column.generated else {
                    continue;
                };
                let (mut plain, mut full) =
                    (generated.expression.clone(), generated.expression.clone());
                for name in &generated.columns {
                    plain = plain.replace(&format!("`{name}`"), &format!("{alias}.{name}"));
                    full = full.replace(&format!("`{name}`"), &format!("{in_full}.`{name}`"));
                }
                without_table.push((column.name.clone(), plain.clone()));
                names.push((format!("{alias}.{}", column.name), plain));
                names.push((format!("{in_full}.`{}`", column.name), full));
            }
        }
        // What sorts by a single column does not name its table.
        let known = without_table.clone();
        without_table.retain(|(name, _)| {
            let same = known.iter().filter(|(known, _)| known == name);
            same.count() == 1
        });
        names.append(&mut without_table);
        names.sort_by_key(|(name, _)| std::cmp::Reverse(name.len()));
        HiddenNames(names)
    }

    /// Puts the expressions into the lines and rows of a tree.
    pub(crate) fn show_in_tree(&self, tree: &mut PlanNode) {
        if self.0.is_empty() {
            return;
        }
        tree.for_each(&mut |node| {
            self.show_in(&mut node.text);
            let rows = node.tables.iter_mut();
            rows.for_each(|row| self.show_in_row(row));
        });
    }

    /// What a table is looked up by.
    fn show_in_row(&self, row: &mut ExplainRow) {
        let Some(sources) = &row.ref_ else {
            return;
        };
        let is_hidden = |source: &str| {
            self.0
                .iter()
                .any(|(name, _)| source.ends_with(name.as_str()))
        };
        let shown = sources.split(',').map(|source| match is_hidden(source) {
            true => COMPUTED,
            false => source,
        });
        row.ref_ = Some(shown.collect::<Vec<_>>().join(","));
    }

    /// Puts the expressions into the texts of a document.
    pub(crate) fn show_in_document(&self, document: &mut Json) {
        if !self.0.is_empty() {
            document.for_each_text(&mut |text| self.show_in(text));
        }
    }

    fn show_in(&self, text: &mut String) {
        for (name, shown) in &self.0 {
            let mut from = 0;
            while let Some(at) = text[from..].find(name.as_str()).map(|at| from + at) {
                let before = text[..at].chars().next_back();
                from = match before.is_some_and(|letter| continues(letter, name)) {
                    // The end of another name, or one with its table.
                    true => at + name.len(),
                    false => {
                        text.replace_range(at..at + name.len(), shown);
                        at + shown.len()
                    }
                };
            }
        }
    }
}

/// Whether a name that stands behind this letter is only the end of another one.
fn continues(letter: char, name: &str) -> bool {
    let has_no_table = !name.contains('.');
    letter.is_alphanumeric() || letter == '_' || has_no_table && matches!(letter, '.' | '`')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_replaced_as_a_whole() {
        let names = HiddenNames(vec![
            ("x.!hidden!10".into(), "lower(x.s)".into()),
            ("x.!hidden!1".into(), "(x.a + 1)".into()),
            ("!hidden!1".into(), "(x.a + 1)".into()),
        ]);
        let mut tree = PlanNode::line(
            "Filter: (x.!hidden!1 = x.!hidden!10)",
            Some(PlanNode::line("Table scan on xx: xx.!hidden!1", None)),
        );
        names.show_in_tree(&mut tree);
        assert_eq!(tree.text, "Filter: ((x.a + 1) = lower(x.s))");
        assert_eq!(tree.children[0].text, "Table scan on xx: xx.!hidden!1");
        let mut sort = PlanNode::line("Sort: !hidden!1 DESC", None);
        names.show_in_tree(&mut sort);
        assert_eq!(sort.text, "Sort: (x.a + 1) DESC");
        let mut row = ExplainRow {
            ref_: Some("const,d.x.!hidden!1,d.x.a".into()),
            ..ExplainRow::default()
        };
        names.show_in_row(&mut row);
        assert_eq!(row.ref_.as_deref(), Some("const,func,d.x.a"));
    }
}
