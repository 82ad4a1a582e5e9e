//! Functions over windows, whose answers do not depend on the order of equal rows.
//!
//! Where every source has its key in sight, an order by all keys is a total one. Then every function may stand there,
//! and frames of ROWS. Otherwise only functions stand there for which rows of equal rank are alike.

use crate::expression::{Visible, list};
use crate::query::{Body, Generator};
use crate::schema::{Kind, one_in, pick};
use crate::sequence;
use crate::tree::{Tree, text};

/// Frames that need a total order.
const ROWS: [&str; 7] = [
    " rows unbounded preceding",
    " rows between 1 preceding and 1 following",
    " rows between 2 preceding and current row",
    " rows between current row and unbounded following",
    " rows between 3 preceding and 1 preceding",
    " rows between 1 following and 2 following",
    " rows between unbounded preceding and unbounded following",
];

/// Frames of an order by one small number.
const RANGES: [&str; 5] = [
    " range between 1 preceding and 1 following",
    " range between 2 preceding and current row",
    " range between current row and unbounded following",
    " range between unbounded preceding and 1 preceding",
    " range between unbounded preceding and unbounded following",
];

/// Where a window has its words.
struct Window {
    over: String,
    clause: String,
}

impl Generator<'_> {
    /// A query with one or two functions over a window.
    pub(crate) fn windowed(&mut self) -> (Vec<Tree>, Vec<Kind>, String) {
        // Of arrays and objects MySQL makes several partitions, as none of them comes first.
        let partition = match (one_in(self.random, 2), self.any_column()) {
            (true, Some(column)) if column.kind != Kind::Json => {
                format!("partition by {} ", column.sql)
            }
            _ => String::new(),
        };
        let keys = self.keys();
        let (order, frame, is_total) = match keys {
            Some(keys) if one_in(self.random, 2) => {
                let frame = match one_in(self.random, 2) {
                    true => pick::<&str>(self.random, &ROWS),
                    false => "",
                };
                (format!("order by {keys}"), frame, true)
            }
            _ => {
                let (order, frame) = self.order_of_peers();
                (order, frame, false)
            }
        };
        let count = 1 + self.random.below(2) as usize;
        let mut items = Vec::new();
        let mut kinds = Vec::new();
        for _ in 0..count {
            let (function, kind) = match is_total {
                true => self.function_of_rows(),
                false => self.function_of_peers(),
            };
            items.push(function);
            kinds.push(kind);
        }
        let Window { over, clause } = self.window(&partition, &order, frame);
        let items = items
            .into_iter()
            .zip(&kinds)
            .map(|(function, kind)| match kind {
                // MariaDB shows ten digits of PERCENT_RANK and CUME_DIST, others show all.
                Kind::Double => sequence!["round(", function, over.clone(), ", 8)"],
                _ => sequence![function, over.clone()],
            })
            .collect();
        (items, kinds, clause)
    }

    /// ORDER BY of a column, with a frame where it is a small number.
    fn order_of_peers(&mut self) -> (String, &'static str) {
        match self.any_column() {
            Some(column) if column.kind != Kind::Json => {
                let is_small = [".k", ".l", ".b"]
                    .iter()
                    .any(|name| column.sql.ends_with(name));
                let frame = match is_small && one_in(self.random, 2) {
                    true => pick::<&str>(self.random, &RANGES),
                    false => "",
                };
                let way = *pick(self.random, &["", "", " desc"]);
                (format!("order by {}{way}", column.sql), frame)
            }
            _ => (String::new(), ""),
        }
    }

    /// The window in OVER, under a name, or partly each.
    fn window(&mut self, partition: &str, order: &str, frame: &str) -> Window {
        match self.random.below(4) {
            0 => Window {
                over: format!(" over ({partition}{order}{frame})"),
                clause: String::new(),
            },
            1 => Window {
                over: " over w".to_owned(),
                clause: format!(" window w as ({partition}{order}{frame})"),
            },
            2 => Window {
                over: format!(" over (v{frame})"),
                clause: format!(" window w as ({partition}), v as (w {order})"),
            },
            _ => Window {
                over: format!(" over (w {order}{frame})"),
                clause: format!(" window w as ({partition})"),
            },
        }
    }

    /// The keys of all sources, if every source has its key.
    fn keys(&self) -> Option<String> {
        let columns: &[Visible] = self.scopes.last()?;
        let source = |column: &Visible| {
            let name = column.sql.split_once('.');
            name.map(|(source, _)| source.to_owned())
        };
        let is_key = |column: &&Visible| {
            let name = column.sql.split_once('.').map(|(_, name)| name);
            matches!(name, Some("k" | "l"))
        };
        let keys: Vec<&Visible> = columns.iter().filter(is_key).collect();
        let has_key = |column: &Visible| keys.iter().any(|key| source(key) == source(column));
        match !keys.is_empty() && columns.iter().all(has_key) {
            true => {
                let keys: Vec<&str> = keys.iter().map(|key| key.sql.as_str()).collect();
                Some(keys.join(", "))
            }
            false => None,
        }
    }

    fn function_of_rows(&mut self) -> (Tree, Kind) {
        let kind = *pick(
            self.random,
            &[
                Kind::Integer,
                Kind::Decimal,
                Kind::Text,
                Kind::Date,
                Kind::DateTime,
            ],
        );
        let value = self.leaf(kind);
        match self.random.below(9) {
            0 => (text("row_number()"), Kind::Integer),
            1 => {
                let groups = 1 + self.random.below(4);
                (text(format!("ntile({groups})")), Kind::Integer)
            }
            2 => (sequence!["lag(", value, ", 1)"], kind),
            3 => (sequence!["lead(", value, ", 2)"], kind),
            4 => (sequence!["first_value(", value, ")"], kind),
            5 => (sequence!["last_value(", value, ")"], kind),
            6 => (sequence!["nth_value(", value, ", 2)"], kind),
            _ => self.function_of_peers(),
        }
    }

    fn function_of_peers(&mut self) -> (Tree, Kind) {
        match self.random.below(11) {
            0 => (text("rank()"), Kind::Integer),
            1 => (text("dense_rank()"), Kind::Integer),
            2 => (text("count(*)"), Kind::Integer),
            3 => (
                sequence!["sum(", self.scalar(Kind::Integer, 0), ")"],
                Kind::Decimal,
            ),
            4 => (
                sequence!["min(", self.scalar(Kind::Integer, 0), ")"],
                Kind::Integer,
            ),
            5 => (text("percent_rank()"), Kind::Double),
            6 => (text("cume_dist()"), Kind::Double),
            7 => (
                sequence!["avg(", self.scalar(Kind::Decimal, 0), ")"],
                Kind::Decimal,
            ),
            8 => (
                sequence!["count(", self.scalar(Kind::Text, 0), ")"],
                Kind::Integer,
            ),
            9 => (
                sequence!["bit_or(", self.leaf(Kind::Bit), ")"],
                Kind::Unsigned,
            ),
            _ => (
                sequence!["max(", self.scalar(Kind::Text, 0), ")"],
                Kind::Text,
            ),
        }
    }

    /// A query with windows over `from`.
    pub(crate) fn over_windows(&mut self, from: Tree) -> Body {
        let kind = self.kind();
        let shown = self.scalar(kind, 0);
        let (functions, of_functions, clause) = self.windowed();
        let condition = self.where_clause();
        let mut kinds = vec![kind];
        kinds.extend(of_functions);
        let items = std::iter::once(shown)
            .chain(functions)
            .enumerate()
            .map(|(number, item)| sequence![item, format!(" c{number}")])
            .collect();
        Body {
            tree: sequence!["select ", list(items), from, condition, clause],
            kinds,
        }
    }
}
