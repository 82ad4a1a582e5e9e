//! Random changes of tables that refer to each other, and a look at the whole tables after each.
//!
//! A parent, its children and a grandchild have foreign keys with every action, unique keys, and values that collide
//! often. Each statement goes to both servers; they must agree on the rows that it changed or on its error, and then on
//! every row of every table. A statement whose outcome depends on the order in which rows are visited says its order.

use std::fmt::Write as _;

use sheaf_storage::Random;

use crate::schema::{one_in, pick};

/// Tables of a run of changes, parents first.
pub const TABLES: [&str; 4] = ["p", "c", "d", "g"];

/// Columns of each table that changes may set: name, and whether it refers to a parent.
const COLUMNS: [&[&str]; 4] = [
    &["id", "u", "s"],
    &["id", "pid", "v"],
    &["id", "ps", "v"],
    &["id", "cid", "e"],
];

/// Actions of a foreign key.
const ACTIONS: [&str; 4] = [
    "",
    " on delete cascade on update cascade",
    " on delete set null on update set null",
    " on delete cascade",
];

/// The statements that make the tables.
pub fn tables(random: &mut Random) -> Vec<String> {
    let mut action = || *pick(random, &ACTIONS);
    let options = "engine=innodb character set utf8mb4 collate utf8mb4_general_ci";
    vec![
        format!(
            "create table p (id int primary key, u int, s varchar(10), unique key (u), unique key (s)) {options}"
        ),
        format!(
            "create table c (id int primary key, pid int, v int default 5, key (pid, v), \
             foreign key (pid) references p (id){}) {options}",
            action()
        ),
        format!(
            "create table d (id int primary key, ps varchar(10), v decimal(6,2), unique key (v), \
             foreign key (ps) references p (s){}) {options}",
            action()
        ),
        format!(
            "create table g (id int, cid int, e datetime, primary key (id), \
             foreign key (cid) references c (id){}) {options}",
            action()
        ),
    ]
}

fn number(random: &mut Random) -> String {
    match one_in(random, 9) {
        true => "null".to_owned(),
        false => random.below(9).to_string(),
    }
}

fn value(random: &mut Random, column: &str) -> String {
    match column {
        "s" | "ps" => match one_in(random, 8) {
            true => "null".to_owned(),
            false => (*pick(random, &["'a'", "'A'", "'b'", "'c'", "'d '", "'d'", "''"])).to_owned(),
        },
        "e" => (*pick(random, &["null", "'2020-01-01'", "'2021-02-03 04:05:06'"])).to_owned(),
        "id" => random.below(9).to_string(),
        "v" if one_in(random, 6) => format!("{}.5", random.below(4)),
        _ => number(random),
    }
}

/// A table to look rows of `table` up in. MariaDB and MySQL refuse to read the table that a statement changes, and find
/// there what the statement itself has done to rows that refer to it, where Sheaf reads the table as it was.
fn other_table(table: usize) -> Option<usize> {
    let other = (table + 1) % TABLES.len();
    (!refers_to(other, table)).then_some(other)
}

/// A condition on the columns of table `table`, whose name is `alias`.
fn condition(random: &mut Random, table: usize, alias: &str) -> String {
    let column = *pick(random, COLUMNS[table]);
    let value = value(random, column);
    let name = format!("{alias}.{column}");
    match (random.below(6), other_table(table)) {
        (0, _) => format!("{name} is null"),
        (1, _) => format!("{name} >= {value}"),
        (2, _) => format!("{name} in ({value}, {})", self::value(random, column)),
        (3, Some(other)) => format!(
            "exists (select 1 from {} x where x.id = {alias}.id)",
            TABLES[other]
        ),
        _ => format!("{name} = {value}"),
    }
}

fn assignment(random: &mut Random, table: usize, alias: &str) -> String {
    let column = *pick(random, COLUMNS[table]);
    let value = match (column, random.below(4)) {
        ("id" | "u" | "pid" | "cid", 0) => format!("{alias}.{column} + 1"),
        ("s" | "ps", 0) => format!("concat({alias}.{column}, 'x')"),
        (_, 1) if column != "id" => "default".to_owned(),
        _ => value(random, column),
    };
    format!("{alias}.{column} = {value}")
}

/// Whether rows of `child` go, or change, with those of `parent`.
fn refers_to(child: usize, parent: usize) -> bool {
    matches!(
        (TABLES[child], TABLES[parent]),
        ("c" | "d" | "g", "p") | ("g", "c")
    )
}

fn insert(random: &mut Random, table: usize) -> String {
    let name = TABLES[table];
    let columns = COLUMNS[table];
    let verb = *pick(random, &["insert", "insert", "insert ignore", "replace"]);
    let mut sql = format!("{verb} into {name} ({}) ", columns.join(", "));
    let from = (table + 1 + random.below(TABLES.len() as u64 - 1) as usize) % TABLES.len();
    // What a REPLACE deletes may take rows of the table that it reads with it. MySQL and MariaDB then do not find them
    // any more; Sheaf reads the table as it was.
    let may_read = verb != "replace" || !refers_to(from, table);
    if one_in(random, 5) && may_read {
        let of: Vec<String> = columns
            .iter()
            .map(|column| match *column {
                "id" => "x.id + 3".to_owned(),
                other => value(random, other),
            })
            .collect();
        let _ = write!(
            sql,
            "select {} from {} x order by x.id",
            of.join(", "),
            TABLES[from]
        );
    } else {
        let rows: Vec<String> = (0..1 + random.below(3))
            .map(|_| {
                let cells: Vec<String> =
                    columns.iter().map(|column| value(random, column)).collect();
                format!("({})", cells.join(", "))
            })
            .collect();
        let _ = write!(sql, "values {}", rows.join(", "));
    }
    if verb.starts_with("insert") && one_in(random, 3) {
        let column = *pick(random, &columns[1..]);
        let value = match random.below(3) {
            0 => format!("values({column})"),
            1 if column != "e" => format!("{name}.{column}"),
            _ => value(random, column),
        };
        let _ = write!(sql, " on duplicate key update {column} = {value}");
    }
    sql
}

/// One change.
pub fn change(random: &mut Random) -> String {
    let table = random.below(TABLES.len() as u64) as usize;
    let name = TABLES[table];
    match random.below(8) {
        0..=3 => insert(random, table),
        4 => {
            let set = assignment(random, table, name);
            let condition = condition(random, table, name);
            let order = *pick(random, &["id", "id desc"]);
            let limit = *pick(random, &["", "", " limit 2"]);
            format!("update {name} set {set} where {condition} order by {order}{limit}")
        }
        5 => {
            let condition = condition(random, table, name);
            let limit = *pick(random, &["", "", " limit 2"]);
            format!("delete from {name} where {condition} order by id{limit}")
        }
        6 => {
            let other = (table + 1) % TABLES.len();
            let condition = condition(random, other, "y");
            // A key that changes would make the outcome depend on the order of rows.
            let column = *pick(random, &["v", "e", "cid"]);
            let (target, column) = match (name, column) {
                ("c", _) => ("c", "v"),
                ("g", _) => ("g", "e"),
                _ => ("g", "e"),
            };
            let value = value(random, column);
            format!(
                "update {target} x join {} y on x.id = y.id set x.{column} = {value} where {condition}",
                TABLES[other]
            )
        }
        _ => {
            let Some(other) = other_table(table) else {
                let condition = condition(random, table, "x");
                return format!("delete x from {name} x where {condition}");
            };
            let condition = condition(random, other, "y");
            let join = *pick(random, &["join", "left join"]);
            format!(
                "delete x from {name} x {join} {} y on x.id = y.id where {condition}",
                TABLES[other]
            )
        }
    }
}

/// The smallest list of changes, in the same order, for which `is_different` still holds.
pub fn reduce(
    mut changes: Vec<String>,
    mut is_different: impl FnMut(&[String]) -> bool,
) -> Vec<String> {
    let mut size = changes.len() / 2;
    while size > 0 {
        let mut at = 0;
        while at < changes.len() {
            let mut fewer = changes.clone();
            fewer.drain(at..(at + size).min(changes.len()));
            match is_different(&fewer) {
                true => changes = fewer,
                false => at += size,
            }
        }
        size /= 2;
    }
    changes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_that_do_not_matter_go() {
        let changes: Vec<String> = (0..20).map(|n| n.to_string()).collect();
        let left = reduce(changes, |left| {
            left.contains(&"3".to_owned()) && left.contains(&"17".to_owned())
        });
        assert_eq!(left, ["3", "17"]);
    }
}
