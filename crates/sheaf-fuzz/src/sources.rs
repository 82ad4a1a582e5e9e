//! Sources of rows that depend on others: LATERAL, JSON_TABLE, and recursive common table expressions.

use crate::expression::{Visible, either};
use crate::query::{Body, Derived, Generator};
use crate::schema::{Kind, Table, one_in, pick};
use crate::sequence;
use crate::tree::{Tree, text};

const DOCUMENTS: [&str; 3] = [
    r#"'[{"a": 1, "b": 2.5}, {"a": 2}, {"b": 3}, 4]'"#,
    r#"'[{"a": 3, "c": [1, 2]}, {"a": null, "c": [5]}, {"c": []}]'"#,
    r#"'{"a": 5, "c": [7, 8, 7]}'"#,
];

/// The columns of a JSON_TABLE, and their kinds.
const COLUMNS: [(&str, &[Kind]); 3] = [
    (
        "'$[*]' columns (c0 for ordinality, c1 int path '$.a', c2 decimal(6,2) path '$.b')",
        &[Kind::Integer, Kind::Integer, Kind::Decimal],
    ),
    (
        "'$[*]' columns (c0 int path '$.a', nested path '$.c[*]' columns (c1 int path '$'))",
        &[Kind::Integer, Kind::Integer],
    ),
    (
        "'$' columns (c0 int path '$.a', c1 int exists path '$.b')",
        &[Kind::Integer, Kind::Integer],
    ),
];

impl Generator<'_> {
    fn next_alias(&mut self) -> String {
        self.aliases += 1;
        format!("x{}", self.aliases)
    }

    /// `left` joined with a source that may name its columns.
    pub fn with_dependent(&mut self, left: Tree, columns: Vec<Visible>) -> (Tree, Vec<Visible>) {
        let (source, more) = match one_in(self.random, 3) {
            true => self.json_table(&columns),
            false => self.lateral(&columns),
        };
        let way = *pick(self.random, &[" join ", " left join ", " cross join "]);
        let on = match way {
            " cross join " => "",
            _ => " on 1 = 1",
        };
        let whole = sequence![left.clone(), way, source, on];
        let all = columns.into_iter().chain(more).collect();
        (either(whole, [left]), all)
    }

    fn lateral(&mut self, columns: &[Visible]) -> (Tree, Vec<Visible>) {
        let alias = self.next_alias();
        // Of the names around it, those beside it are enough.
        let scopes = std::mem::replace(&mut self.scopes, vec![columns.to_vec()]);
        let body = self.body(false);
        self.scopes = scopes;
        let columns = Derived::of(&body).columns(&alias);
        let source = sequence!["lateral (", body.tree, ") ", alias];
        (source, columns)
    }

    fn json_table(&mut self, columns: &[Visible]) -> (Tree, Vec<Visible>) {
        let alias = self.next_alias();
        let documents: Vec<&Visible> = columns
            .iter()
            .filter(|column| column.kind == Kind::Json)
            .collect();
        let document = match documents.is_empty() {
            true => (*pick(self.random, &DOCUMENTS)).to_owned(),
            false => pick(self.random, &documents).sql.clone(),
        };
        let (parts, kinds) = *pick(self.random, &COLUMNS);
        let columns = kinds.iter().enumerate().map(|(number, kind)| Visible {
            sql: format!("{alias}.c{number}"),
            kind: *kind,
        });
        let columns = columns.collect();
        (
            text(format!("json_table({document}, {parts}) {alias}")),
            columns,
        )
    }

    /// The query of a recursive common table expression `c`: rows that count on from a key, with a column that stays or
    /// one that is looked up.
    pub fn recursive(&mut self) -> Body {
        let first = self.next_alias();
        let table: Table = pick(self.random, &self.schema.tables).clone();
        let union = *pick(self.random, &[" union ", " union all "]);
        let last = 2 + self.random.below(5);
        let fitting: Vec<&(String, Kind)> = table
            .columns
            .iter()
            .filter(|(_, kind)| !matches!(kind, Kind::Json | Kind::Bit))
            .collect();
        let (name, kind) = (*pick(self.random, &fitting)).clone();
        let start = format!(
            "select {first}.k c0, {first}.{name} c1 from {} {first} where {first}.k < 4",
            table.name
        );
        let (next, kind, start) = match one_in(self.random, 2) {
            true => (
                format!("select c.c0 + 1, c.c1 from c where c.c0 < {last}"),
                kind,
                start,
            ),
            false => {
                let other = self.next_alias();
                // Each key once: where several rows have it, each step would multiply the rows.
                let keys = format!("(select distinct k from {}) {other}", table.name);
                let next = format!(
                    "select c.c0 + 1, {other}.k from c join {keys} on {other}.k = c.c1 + 1 where c.c0 < {last}"
                );
                let start = format!(
                    "select {first}.k c0, {first}.k c1 from {} {first} where {first}.k < 4",
                    table.name
                );
                (next, Kind::Integer, start)
            }
        };
        Body {
            tree: text(format!("{start}{union}{next}")),
            kinds: vec![Kind::Integer, kind],
        }
    }
}
