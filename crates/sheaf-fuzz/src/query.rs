//! Random queries: joins of every kind, subqueries at every place, groups, windows, set operations.
//!
//! A query says by itself in which order its rows come. Behind the mark [`ORDER_MARK`] stands ORDER BY with positions
//! of the select list; two answers are the same when these columns are the same row by row, and all rows are the same
//! as a bag. LIMIT stands only behind an order of all columns.

use sheaf_storage::Random;

use crate::expression::{Visible, either, list};
use crate::schema::{Kind, Schema, Table, one_in, pick};
use crate::sequence;
use crate::tree::{Tree, text};

/// Stands before the ORDER BY of the whole statement.
pub const ORDER_MARK: &str = "/*order*/";

/// Whether a query may take its pick among strings that a collation takes for equal.
pub fn picks_among_equal(sql: &str) -> bool {
    [
        "group by",
        "distinct",
        " union ",
        "intersect",
        "except",
        "min(",
        "max(",
        "limit",
    ]
    .iter()
    .any(|word| sql.contains(word))
}

/// Subqueries nest so deep.
const NESTING: usize = 3;
/// Tables that a statement names, in all.
const TABLES: u32 = 7;

/// Makes queries over the tables of a schema.
pub struct Generator<'a> {
    pub random: &'a mut Random,
    pub schema: &'a Schema,
    /// Columns that may be named: of the query that is being written last, of those around it before.
    pub scopes: Vec<Vec<Visible>>,
    pub aliases: u32,
    /// The common table expression `c`, if there is one.
    with: Option<Derived>,
}

/// A query, and the kinds of its columns.
pub struct Body {
    pub tree: Tree,
    pub kinds: Vec<Kind>,
}

/// The columns of a derived table or of a common table expression.
#[derive(Clone)]
pub struct Derived {
    kinds: Vec<Kind>,
    /// Which of the strings that a collation takes for equal come is not said.
    picks: bool,
}

impl Derived {
    pub fn of(body: &Body) -> Derived {
        Derived {
            kinds: body.kinds.clone(),
            picks: picks_among_equal(&body.tree.sql()),
        }
    }

    /// The columns under the name `alias`. A string that was picked among equal ones is named as what they have in
    /// common: another collation may tell it from the one that another server picks.
    pub fn columns(self, alias: &str) -> Vec<Visible> {
        let columns = self.kinds.into_iter().enumerate().map(|(number, kind)| {
            let name = format!("{alias}.c{number}");
            let sql = match kind == Kind::Text && self.picks {
                true => format!("lower(rtrim({name}))"),
                false => name,
            };
            Visible { sql, kind }
        });
        columns.collect()
    }
}

impl<'a> Generator<'a> {
    pub fn new(random: &'a mut Random, schema: &'a Schema) -> Generator<'a> {
        Generator {
            random,
            schema,
            scopes: Vec::new(),
            aliases: 0,
            with: None,
        }
    }

    /// True while another subquery keeps the statement small enough.
    pub fn may_nest(&self) -> bool {
        self.scopes.len() < NESTING && self.aliases < TABLES
    }

    /// A kind of the schema's columns, or any.
    pub fn kind(&mut self) -> Kind {
        self.schema.kind(self.random)
    }

    /// A whole statement.
    pub fn statement(&mut self) -> Tree {
        let (with, word) = match self.random.below(15) {
            0 => (Some(self.body(false)), "with c as ("),
            1 => (Some(self.recursive()), "with recursive c as ("),
            _ => (None, ""),
        };
        self.with = with.as_ref().map(Derived::of);
        let body = match one_in(self.random, 6) {
            true => self.set_operation(),
            false => self.body(true),
        };
        let order = self.order(&body.kinds);
        let tree = sequence![body.tree, order];
        match with {
            // It may be read several times, or not at all.
            Some(with) => sequence![
                Tree::Optional(Box::new(sequence![word, with.tree, ") "])),
                tree,
            ],
            None => tree,
        }
    }

    /// ORDER BY, and LIMIT. JSON is in no order: which of two arrays or objects comes first is not said.
    fn order(&mut self, kinds: &[Kind]) -> Tree {
        let mut positions: Vec<usize> = (1..=kinds.len())
            .filter(|position| kinds[position - 1] != Kind::Json)
            .collect();
        let columns = positions.len();
        if columns == 0 || one_in(self.random, 3) {
            return text("");
        }
        self.random.shuffle(&mut positions);
        let is_limited = columns == kinds.len() && one_in(self.random, 2);
        if !is_limited {
            positions.truncate(1 + self.random.below(columns as u64) as usize);
        }
        let items = positions
            .into_iter()
            .map(|position| {
                let way = *pick(self.random, &["", "", " desc"]);
                text(format!("{position}{way}"))
            })
            .collect();
        let limit = match is_limited {
            true => {
                let rows = self.random.below(8);
                let offset = match one_in(self.random, 3) {
                    true => format!(" offset {}", self.random.below(5)),
                    false => String::new(),
                };
                Tree::Optional(Box::new(text(format!(" limit {rows}{offset}"))))
            }
            false => text(""),
        };
        // With a limit, the order has to stay whole.
        let order = Tree::List {
            separator: ", ",
            least: match is_limited {
                true => columns,
                false => 1,
            },
            items,
        };
        Tree::Optional(Box::new(sequence![
            format!(" {ORDER_MARK} order by "),
            order,
            limit,
        ]))
    }

    fn set_operation(&mut self) -> Body {
        let kinds: Vec<Kind> = (0..1 + self.random.below(3)).map(|_| self.kind()).collect();
        let mut parts = vec![self.select_of(&kinds)];
        for _ in 0..1 + self.random.below(2) {
            let operators = [
                " union ",
                " union all ",
                " union all ",
                " except ",
                " intersect ",
                " except all ",
                " intersect all ",
            ];
            let operator = *pick(self.random, &operators);
            let next = self.select_of(&kinds);
            let whole = sequence![
                "(",
                parts.pop().unwrap_or(text("")),
                ")",
                operator,
                "(",
                next.clone(),
                ")"
            ];
            parts.push(either(whole, [next]));
        }
        Body {
            tree: parts.pop().unwrap_or(text("")),
            kinds,
        }
    }

    /// A query whose columns are of these kinds.
    fn select_of(&mut self, kinds: &[Kind]) -> Tree {
        let (from, columns) = self.from(2);
        self.scopes.push(columns);
        // Their names differ: MariaDB refuses equal ones in some unions, MySQL does not.
        let items: Vec<Tree> = kinds
            .iter()
            .enumerate()
            .map(|(number, kind)| sequence![self.scalar(*kind, 1), format!(" c{number}")])
            .collect();
        let condition = self.where_clause();
        self.scopes.pop();
        // The number of columns stays: the parts of a set operation have the same.
        let items = Tree::List {
            separator: ", ",
            least: kinds.len(),
            items,
        };
        let distinct = *pick(self.random, &["", "", "", "distinct "]);
        sequence!["select ", distinct, items, from, condition]
    }

    /// A query without an order.
    pub fn body(&mut self, is_whole: bool) -> Body {
        let (from, columns) = self.from(if is_whole { 3 } else { 2 });
        self.scopes.push(columns);
        let body = match self.random.below(10) {
            0..=3 => self.grouped(from),
            4 => self.over_windows(from),
            5 if is_whole => self.star(from),
            _ => self.plain(from),
        };
        self.scopes.pop();
        body
    }

    pub fn where_clause(&mut self) -> Tree {
        match one_in(self.random, 3) {
            true => text(""),
            false => Tree::Optional(Box::new(sequence![" where ", self.condition(2)])),
        }
    }

    fn plain(&mut self, from: Tree) -> Body {
        let kinds: Vec<Kind> = (0..1 + self.random.below(4)).map(|_| self.kind()).collect();
        let items = kinds
            .iter()
            .enumerate()
            .map(|(number, kind)| sequence![self.scalar(*kind, 2), format!(" c{number}")])
            .collect();
        let distinct = *pick(self.random, &["", "", "", "distinct "]);
        let condition = self.where_clause();
        Body {
            tree: sequence!["select ", distinct, list(items), from, condition],
            kinds,
        }
    }

    fn star(&mut self, from: Tree) -> Body {
        let condition = self.where_clause();
        Body {
            tree: sequence!["select *", from, condition],
            kinds: Vec::new(),
        }
    }

    /// GROUP BY of columns, with aggregates and HAVING.
    fn grouped(&mut self, from: Tree) -> Body {
        let keys: Vec<Visible> = (0..self.random.below(4))
            .filter_map(|_| self.any_column())
            .collect();
        let mut kinds: Vec<Kind> = keys.iter().map(|key| key.kind).collect();
        let mut items: Vec<Tree> = keys.iter().map(|key| text(key.sql.clone())).collect();
        for _ in 0..1 + self.random.below(3) {
            let (aggregate, kind) = self.aggregate();
            items.push(aggregate);
            kinds.push(kind);
        }
        let items = items
            .into_iter()
            .enumerate()
            .map(|(number, item)| sequence![item, format!(" c{number}")])
            .collect();
        let condition = self.where_clause();
        let group = match keys.is_empty() {
            true => text(""),
            false => {
                // What is grouped by twice is NULL in one of its places in MariaDB.
                let repeats =
                    (1..keys.len()).any(|at| keys[..at].iter().any(|key| key.sql == keys[at].sql));
                // Of arrays and objects MySQL makes several groups, as none of them comes first.
                let has_json = keys.iter().any(|key| key.kind == Kind::Json);
                let rollup = match one_in(self.random, 12) && !repeats && !has_json {
                    true => Tree::Optional(Box::new(text(" with rollup"))),
                    false => text(""),
                };
                let keys = keys.iter().map(|key| text(key.sql.clone())).collect();
                sequence![" group by ", list(keys), rollup]
            }
        };
        let having = match one_in(self.random, 4) {
            true => {
                let (aggregate, kind) = self.aggregate();
                let literal = crate::schema::literal(self.random, kind);
                let sign = *pick(self.random, &[" > ", " <= ", " = "]);
                Tree::Optional(Box::new(sequence![" having ", aggregate, sign, literal]))
            }
            false => text(""),
        };
        Body {
            tree: sequence!["select ", list(items), from, condition, group, having],
            kinds,
        }
    }

    fn aggregate(&mut self) -> (Tree, Kind) {
        let kind = self.kind();
        let value = self.scalar(kind, 1);
        match self.random.below(11) {
            6 => {
                let function = *pick(self.random, &["bit_or(", "bit_and(", "bit_xor("]);
                let of = *pick(self.random, &[Kind::Integer, Kind::Unsigned, Kind::Bit]);
                (sequence![function, self.leaf(of), ")"], Kind::Unsigned)
            }
            7 => {
                let value = self.scalar(Kind::Integer, 1);
                (sequence!["sum(distinct ", value, ")"], Kind::Decimal)
            }
            8 => {
                let value = self.leaf(Kind::Integer);
                let joined = sequence![
                    "group_concat(distinct ",
                    value.clone(),
                    " order by ",
                    value,
                    ")"
                ];
                (joined, Kind::Text)
            }
            9 => {
                let other = self.leaf(Kind::Integer);
                let counted = sequence!["count(distinct ", value, ", ", other, ")"];
                (counted, Kind::Integer)
            }
            0 => (text("count(*)"), Kind::Integer),
            1 => (sequence!["count(", value, ")"], Kind::Integer),
            2 => (sequence!["count(distinct ", value, ")"], Kind::Integer),
            3 => (sequence!["min(", value, ")"], kind),
            4 => (sequence!["max(", value, ")"], kind),
            5 => {
                let value = self.scalar(Kind::Integer, 1);
                (sequence!["sum(", value, ")"], Kind::Decimal)
            }
            _ => {
                let value = self.scalar(Kind::Decimal, 0);
                (sequence!["avg(", value, ")"], Kind::Decimal)
            }
        }
    }

    /// FROM with up to `most` tables, and the columns of all of them.
    fn from(&mut self, most: u64) -> (Tree, Vec<Visible>) {
        let (mut tree, mut columns) = self.source();
        for _ in 1..1 + self.random.below(most) {
            if one_in(self.random, 12) && self.may_nest() {
                (tree, columns) = self.with_dependent(tree, columns);
                continue;
            }
            let (next, next_columns) = self.source();
            let simpler = [tree.clone(), next.clone()];
            let common: Vec<String> = common_names(&columns, &next_columns);
            let joined: Vec<Visible> = columns.iter().chain(&next_columns).cloned().collect();
            let whole = match self.random.below(12) {
                0 => sequence![tree, " cross join ", next],
                1 => sequence![tree, " natural join ", next],
                2 => sequence![tree, " natural left join ", next],
                3 if !common.is_empty() => {
                    let way = *pick(self.random, &[" join ", " left join ", " right join "]);
                    let name = pick(self.random, &common).clone();
                    sequence![tree, way, next, format!(" using ({name})")]
                }
                _ => {
                    let way = *pick(
                        self.random,
                        &[" join ", " left join ", " left join ", " right join "],
                    );
                    let condition = self.join_condition(&columns, &next_columns);
                    sequence![tree, way, next, " on ", condition]
                }
            };
            tree = either(whole, simpler);
            columns = joined;
        }
        (sequence![" from ", tree], columns)
    }

    fn join_condition(&mut self, left: &[Visible], right: &[Visible]) -> Tree {
        let pairs: Vec<(&Visible, &Visible)> = left
            .iter()
            .flat_map(|one| right.iter().map(move |two| (one, two)))
            .filter(|(one, two)| one.kind == two.kind)
            .collect();
        let equal = match pairs.is_empty() {
            true => text("1=1"),
            false => {
                let (one, two) = *pick(self.random, &pairs);
                let sign = *pick(self.random, &["=", "=", "=", "=", "<=>", "<"]);
                text(format!("{}{sign}{}", one.sql, two.sql))
            }
        };
        if !one_in(self.random, 3) {
            return equal;
        }
        let visible = left.iter().chain(right).cloned().collect();
        self.scopes.push(visible);
        let more = self.condition(0);
        self.scopes.pop();
        either(sequence!["(", equal.clone(), " and ", more, ")"], [equal])
    }

    /// A table, or a derived one.
    fn source(&mut self) -> (Tree, Vec<Visible>) {
        self.aliases += 1;
        let alias = format!("x{}", self.aliases);
        let made = if one_in(self.random, 8) && self.may_nest() {
            let body = self.derived();
            let derived = Derived::of(&body);
            Some((sequence!["(", body.tree, ") ", alias.clone()], derived))
        } else {
            let with = self.with.clone();
            let with = with.filter(|_| one_in(self.random, 3));
            with.map(|derived| (text(format!("c {alias}")), derived))
        };
        if let Some((tree, derived)) = made {
            return (tree, derived.columns(&alias));
        }
        let table: &Table = pick(self.random, &self.schema.tables);
        let columns = table
            .columns
            .iter()
            .map(|(name, kind)| Visible {
                sql: format!("{alias}.{name}"),
                kind: *kind,
            })
            .collect();
        (text(format!("{} {alias}", table.name)), columns)
    }

    /// The query of a derived table.
    fn derived(&mut self) -> Body {
        // Nothing outside of it can be named in it.
        let scopes = std::mem::take(&mut self.scopes);
        let mut body = match one_in(self.random, 6) {
            true => self.set_operation(),
            false => self.body(false),
        };
        self.scopes = scopes;
        // Which of the strings come that a collation takes for equal is not said, and neither is the order of JSON.
        let is_told_apart = !body.kinds.contains(&Kind::Text) && !body.kinds.contains(&Kind::Json);
        if is_told_apart && one_in(self.random, 4) {
            let order: Vec<String> = (1..=body.kinds.len()).map(|n| n.to_string()).collect();
            let limit = format!(
                " order by {} limit {}",
                order.join(", "),
                self.random.below(6)
            );
            body.tree = sequence![body.tree, limit];
        }
        body
    }

    /// A subquery of at most one row and one column.
    pub fn scalar_subquery(&mut self, kind: Kind) -> Tree {
        let (from, columns) = self.from(1);
        self.scopes.push(columns);
        let tree = match kind == Kind::Json || one_in(self.random, 3) {
            // An aggregate is one row, unless it belongs to a query around: then there is one for each row.
            true => {
                let value = self.scalar(kind, 1);
                let aggregate = *pick(self.random, &["min(", "max("]);
                let condition = self.where_clause();
                sequence![
                    "(select ",
                    aggregate,
                    value,
                    ")",
                    from,
                    condition,
                    " limit 1)"
                ]
            }
            false => {
                let value = self.scalar(kind, 0);
                let condition = self.condition(1);
                sequence![
                    "(select ",
                    value,
                    from,
                    " where ",
                    condition,
                    " order by 1 limit 1)"
                ]
            }
        };
        self.scopes.pop();
        tree
    }

    /// The query in EXISTS.
    pub fn exists_subquery(&mut self) -> Tree {
        let (from, columns) = self.from(2);
        self.scopes.push(columns);
        let condition = self.condition(1);
        self.scopes.pop();
        sequence!["select 1", from, " where ", condition]
    }

    /// The query in IN, ANY and ALL.
    pub fn column_subquery(&mut self, kinds: &[Kind]) -> Tree {
        let (from, columns) = self.from(1);
        self.scopes.push(columns);
        let values: Vec<Tree> = kinds.iter().map(|kind| self.scalar(*kind, 0)).collect();
        let condition = self.where_clause();
        self.scopes.pop();
        let values = Tree::List {
            separator: ", ",
            least: kinds.len(),
            items: values,
        };
        sequence!["select ", values, from, condition]
    }
}

/// Names of columns that both sides have once.
fn common_names(left: &[Visible], right: &[Visible]) -> Vec<String> {
    let name = |column: &Visible| column.sql.rsplit('.').next().unwrap_or("").to_owned();
    let count = |columns: &[Visible], wanted: &str| {
        columns
            .iter()
            .filter(|column| name(column) == wanted)
            .count()
    };
    left.iter()
        .map(name)
        .filter(|wanted| !wanted.contains(')'))
        .filter(|wanted| count(left, wanted) == 1 && count(right, wanted) == 1)
        .collect()
}

/// A query in parts, for rules about conditions.
pub struct Parts {
    pub items: String,
    pub from: String,
    pub condition: String,
}

impl Generator<'_> {
    /// A query without groups.
    pub fn parts(&mut self) -> Parts {
        let (from, columns) = self.from(2);
        self.scopes.push(columns);
        let items: Vec<Tree> = (0..1 + self.random.below(3))
            .map(|_| {
                let kind = self.kind();
                self.scalar(kind, 0)
            })
            .collect();
        let condition = self.condition(2);
        self.scopes.pop();
        Parts {
            items: list(items).sql(),
            from: from.sql(),
            condition: condition.sql(),
        }
    }
}
