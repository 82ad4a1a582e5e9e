//! Random queries of random tables.

use super::random::Random;
use super::random_tables::{Sql, Table, TableColumn, operand};

impl Table {
    fn column_list(&self, random: &mut Random) -> Vec<usize> {
        match random.one_in(3) {
            true => (0..self.columns.len()).collect(),
            false => (0..1 + random.below(3))
                .map(|_| random.below(self.columns.len()))
                .collect(),
        }
    }

    /// ` where ...` on the parts of a key, and sometimes on others, or with what is no comparison.
    pub(super) fn condition(&self, random: &mut Random, sql: &mut Sql) {
        self.comparisons(random, sql);
        if random.one_in(4) {
            let other = *random.pick(&[" and ", " and ", " and not "]);
            sql.push(other).push("(");
            self.truth(random, sql);
            sql.push(")");
        }
    }

    /// A condition that no index serves.
    fn truth(&self, random: &mut Random, sql: &mut Sql) {
        sql.computes = true;
        let TableColumn { name, kind } = random.pick(&self.columns);
        let other = &random.pick(&self.columns).name;
        let value = operand(random, *kind);
        match random.below(9) {
            0 => sql.push(name).push(" is null"),
            1 => sql.push(name).push(" is not null"),
            2 => sql.push(name).push(" <> ").operand(random, &value),
            3 => sql.push(name).push(" like 'a%'"),
            4 => sql.push(name).push(" = ").push(other),
            5 => {
                sql.push(name).push(" = ").operand(random, &value);
                sql.push(" or ").push(other).push(" is null")
            }
            6 => sql
                .push(name)
                .push(" not in (1, ")
                .operand(random, &value)
                .push(")"),
            7 => {
                sql.push("coalesce(").push(name).push(", ").push(other);
                sql.push(") >= ").operand(random, &value)
            }
            _ => sql.push(name).push(" + 1 > ").operand(random, &value),
        };
    }

    /// What is computed from a row.
    pub(super) fn expression(&self, random: &mut Random, sql: &mut Sql) {
        sql.computes = true;
        let TableColumn { name, kind } = random.pick(&self.columns);
        let other = &random.pick(&self.columns).name;
        let value = operand(random, *kind);
        match random.below(26) {
            0 => sql.push(name).push(" + ").operand(random, &value),
            1 => sql.push(name).push(" * ").operand(random, "2"),
            2 => {
                sql.push("concat(").push(name).push(", ");
                sql.operand(random, &value).push(", ").push(other).push(")")
            }
            3 => sql.push("upper(").push(name).push(")"),
            4 => sql
                .push("coalesce(")
                .push(name)
                .push(", ")
                .push(other)
                .push(")"),
            5 => sql
                .push("ifnull(")
                .push(name)
                .push(",")
                .operand(random, &value)
                .push(")"),
            6 => {
                sql.push("if(")
                    .push(name)
                    .push(" > ")
                    .operand(random, &value);
                sql.push(", ")
                    .push(other)
                    .push(", ")
                    .operand(random, "7")
                    .push(")")
            }
            7 => {
                sql.push("case when ").push(name).push(" is null then ");
                sql.operand(random, "'none'")
                    .push(" else ")
                    .push(other)
                    .push(" end")
            }
            8 => sql
                .push("substring(")
                .push(name)
                .push(", 1, ")
                .operand(random, "2")
                .push(")"),
            9 => sql.push(name).push(" + ").push(other),
            10 => sql.push("char_length( ").push(name).push(" )"),
            11 => sql.push(name).push(" is null"),
            12 => sql.push("now()"),
            13 => sql
                .push("date_add(now(), interval ")
                .operand(random, "3")
                .push(" day)"),
            14 => sql.push("curdate()"),
            15 => sql.push("@number"),
            16 => sql.push("concat(@text, ").push(name).push(")"),
            17 => sql.push(name).push(" - @number"),
            18 => sql.push("-").push(name),
            19 => sql.push(name).push(" / ").operand(random, "3"),
            20 => sql
                .push("round(")
                .push(name)
                .push(", ")
                .operand(random, "1")
                .push(")"),
            21 => sql
                .push("nullif(")
                .push(name)
                .push(", ")
                .operand(random, &value)
                .push(")"),
            22 => sql
                .push(name)
                .push(" between ")
                .operand(random, &value)
                .push(" and ")
                .push(other),
            23 => sql.push("cast(").push(name).push(" as char(3))"),
            24 => sql
                .push("greatest(")
                .push(name)
                .push(", ")
                .operand(random, &value)
                .push(")"),
            _ => sql.operand(random, &value),
        };
    }

    /// What is computed without a row.
    pub(super) fn constant(random: &mut Random, sql: &mut Sql) {
        sql.computes = true;
        match random.below(10) {
            0 => sql.push("now()"),
            1 => sql.push("current_timestamp(3)"),
            2 => sql.push("curdate()"),
            3 => sql.push("utc_time()"),
            4 => sql.push("@number"),
            5 => sql.push("@text"),
            6 => sql.push("concat('a', ").operand(random, "'b'").push(")"),
            7 => sql.push("2 + ").operand(random, "3"),
            8 => sql.push("upper(@text)"),
            _ => sql.push("default"),
        };
    }

    pub(super) fn comparisons(&self, random: &mut Random, sql: &mut Sql) {
        let mut columns = random.pick(&self.keys).clone();
        if columns.is_empty() || random.one_in(5) {
            columns.push(random.below(self.columns.len()));
        }
        if random.one_in(6) {
            columns.truncate(1);
        }
        for (at, column) in columns.iter().enumerate() {
            sql.push(if at == 0 { " where " } else { " and " });
            let TableColumn { name, kind } = &self.columns[*column];
            let last = at + 1 == columns.len();
            let form = match last && random.one_in(2) {
                true => random.below(8),
                false => 0,
            };
            let value = operand(random, *kind);
            match form {
                1 => {
                    let other = operand(random, *kind);
                    sql.push(name).push(" between ").operand(random, &value);
                    sql.push(" and ").operand(random, &other);
                }
                2 => {
                    sql.push(name).push(" in (");
                    for member in 0..1 + random.below(4) {
                        let value = operand(random, *kind);
                        sql.push(if member == 0 { "" } else { ", " });
                        sql.operand(random, &value);
                    }
                    sql.push(")");
                }
                3 => {
                    let relation = *random.pick(&[" < ", " <= ", " > ", " >= "]);
                    sql.push(name).push(relation).operand(random, &value);
                }
                4 => {
                    let other = operand(random, *kind);
                    sql.push(name).push(" >= ").operand(random, &value);
                    sql.push(" and ")
                        .push(name)
                        .push(" < ")
                        .operand(random, &other);
                }
                5 => {
                    sql.operand(random, &value).push(" = ").push(name);
                }
                6 => {
                    let (low, high) = (operand(random, *kind), operand(random, *kind));
                    sql.push("(").push(name).push(" = ").operand(random, &value);
                    sql.push(" or ").push(name).push(" between ");
                    sql.operand(random, &low)
                        .push(" and ")
                        .operand(random, &high);
                    sql.push(" or ")
                        .push(name)
                        .push(" < ")
                        .operand(random, &low);
                    sql.push(")");
                }
                7 => {
                    let relation = *random.pick(&[" < ", " = ", " >= "]);
                    let sum = *random.pick(&[" - 1", " + 2", " - 0.5"]);
                    sql.push(name).push(relation).operand(random, &value);
                    sql.push(sum);
                }
                _ => {
                    sql.push(name).push(" = ").operand(random, &value);
                }
            }
        }
    }

    /// Every column, so that only equal rows tie.
    fn order(&self, random: &mut Random, sql: &mut Sql) {
        let mut columns: Vec<usize> = (0..self.columns.len()).collect();
        for at in 0..columns.len() {
            columns.swap(at, random.below(self.columns.len()));
        }
        if !self.keys[0].is_empty() && random.one_in(2) {
            columns = self.keys[0].clone();
            if random.one_in(2) {
                // The order of an index.
                columns = [random.pick(&self.keys).clone(), columns].concat();
            }
        }
        let descending = random.one_in(2);
        for (at, column) in columns.iter().enumerate() {
            sql.push(if at == 0 { " order by " } else { ", " });
            sql.push(&self.columns[*column].name);
            if descending || random.one_in(5) {
                sql.push(" desc");
            }
        }
    }

    /// A query, and whether its rows come in one order.
    pub fn select(&self, random: &mut Random) -> (Sql, bool) {
        let mut sql = Sql::default();
        sql.push("select ");
        if random.one_in(6) {
            self.aggregates(random, &mut sql);
            sql.push(" from ").push(&self.name);
            if !random.one_in(5) {
                self.condition(random, &mut sql);
            }
            return (sql, true);
        }
        let distinct = random.one_in(6);
        if distinct {
            sql.push("distinct ").merges_equals();
        }
        let qualified = random.one_in(4);
        if random.one_in(5) {
            sql.push("*");
        } else {
            for (at, column) in self.column_list(random).into_iter().enumerate() {
                sql.push(if at == 0 { "" } else { ", " });
                if !distinct && random.one_in(3) {
                    self.expression(random, &mut sql);
                    if random.one_in(4) {
                        sql.push(" as made").push(&at.to_string());
                    }
                    continue;
                }
                if qualified {
                    sql.push("x.");
                }
                sql.push(&self.columns[column].name);
                if random.one_in(7) {
                    sql.push(" as shown").push(&at.to_string());
                }
            }
        }
        sql.push(" from ").push(&self.name);
        if qualified {
            sql.push(" as x");
        }
        let ordered = !distinct && random.one_in(3);
        let all = ordered && random.one_in(4);
        if !all {
            self.condition(random, &mut sql);
        }
        if ordered {
            self.order(random, &mut sql);
            if all || random.one_in(2) {
                let limit = random.below(4).to_string();
                sql.push(" limit ").operand(random, &limit);
                if random.one_in(3) {
                    sql.push(" offset 1");
                }
            }
        }
        if !distinct && random.one_in(4) {
            let lock = *random.pick(&[
                " for update",
                " for share",
                " for update nowait",
                " for update skip locked",
                " for share skip locked",
            ]);
            sql.push(lock);
        }
        (sql, ordered)
    }

    /// A query of this table and another, whose key comes from this one's rows, and whether its rows come in one order.
    pub fn join(&self, random: &mut Random, other: &Table) -> (Sql, bool) {
        let mut sql = Sql::default();
        let tables = [(self, "x"), (other, "y")];
        let tail = Tail::begin(random, &tables, &mut sql);
        sql.push(" from ").push(&self.name).push(" x");
        let on = random.one_in(2);
        let left = on && random.one_in(2);
        sql.push(match (on, left) {
            (false, _) => ", ",
            (true, false) => " join ",
            (true, true) => " left join ",
        });
        sql.push(&other.name).push(" y");
        for (number, at) in random.pick(&other.keys).clone().into_iter().enumerate() {
            sql.push(match (number, on) {
                (0, true) => " on ",
                (0, false) => " where ",
                _ => " and ",
            });
            sql.push(&other.qualified("y", at)).push(" = ");
            if random.one_in(4) {
                let value = operand(random, other.columns[at].kind);
                sql.operand(random, &value);
                continue;
            }
            let kind = other.columns[at].kind;
            let same: Vec<usize> = (0..self.columns.len())
                .filter(|own| self.columns[*own].kind == kind)
                .collect();
            let own = match same.as_slice() {
                [] => random.below(self.columns.len()),
                same => *random.pick(same),
            };
            sql.push(&self.qualified("x", own));
        }
        let mut key = random.pick(&self.keys).clone();
        if key.is_empty() {
            key.push(0);
        }
        let has_where = !on && sql.text.contains(" where ");
        for (number, at) in key.into_iter().enumerate() {
            sql.push(if number == 0 && !has_where {
                " where "
            } else {
                " and "
            });
            sql.push(&self.qualified("x", at));
            let value = operand(random, self.columns[at].kind);
            let relation = if random.one_in(4) { " >= " } else { " = " };
            sql.push(relation).operand(random, &value);
        }
        let ordered = tail.end(random, &mut sql);
        if random.one_in(5) {
            let lock = *random.pick(&[
                " for update",
                " for share",
                " for update of x",
                " for share of y nowait",
                " for update skip locked",
                " for update of y skip locked",
                " for update of x for share of y",
            ]);
            sql.push(lock);
        }
        (sql, ordered)
    }

    /// A query whose columns are `a0`, `a1` and so on, with the kinds of those that are this table's.
    fn query(&self, random: &mut Random, sql: &mut Sql) -> Vec<Option<usize>> {
        let columns: Vec<usize> = (0..1 + random.below(3))
            .map(|_| random.below(self.columns.len()))
            .collect();
        let names = columns.iter().enumerate();
        let items = names.map(|(number, at)| format!("{} as a{number}", self.columns[*at].name));
        let items = items.collect::<Vec<_>>().join(", ");
        let kinds = columns
            .iter()
            .map(|at| Some(self.columns[*at].kind))
            .collect();
        let form = random.below(6);
        match form {
            // Of groups of one number: what else there is of it differs.
            0 => {
                let by = &self.columns[columns[0]].name;
                let of = &self.columns[0].name;
                sql.push("select ").push(by).push(" as a0, max(").push(of);
                sql.push(") as a1, count(*) as a2 from ").push(&self.name);
                if !random.one_in(3) {
                    self.comparisons(random, sql);
                }
                sql.push(" group by ").push(by);
                let least = random.below(3).to_string();
                if random.one_in(4) {
                    sql.push(" having count(*) > ").operand(random, &least);
                }
                return vec![Some(self.columns[columns[0]].kind), None, None];
            }
            1 => {
                sql.push("select distinct ").push(&items);
                sql.push(" from ").push(&self.name);
                self.condition(random, sql);
            }
            2 => {
                for part in 0..2 + random.below(2) {
                    let all = *random.pick(&[" union ", " union all ", " union distinct "]);
                    sql.push(if part == 0 { "" } else { all });
                    sql.push("(select ").push(&items);
                    sql.push(" from ").push(&self.name);
                    self.comparisons(random, sql);
                    sql.push(")");
                }
                if random.one_in(2) {
                    let order = (0..columns.len()).map(|number| format!("a{number}"));
                    let limit = random.below(5).to_string();
                    sql.push(" order by ")
                        .push(&order.collect::<Vec<_>>().join(", "));
                    sql.push(" limit ").operand(random, &limit);
                }
            }
            _ => {
                sql.push("select ").push(&items);
                sql.push(" from ").push(&self.name);
                let all = random.one_in(4);
                if !all {
                    self.condition(random, sql);
                }
                if all || random.one_in(2) {
                    self.order(random, sql);
                    let limit = random.below(5).to_string();
                    sql.push(" limit ").operand(random, &limit);
                    if random.one_in(3) {
                        sql.push(" offset 1");
                    }
                }
            }
        }
        kinds
    }

    /// A query of another query, or of one and a table, and whether its rows come in one order.
    pub fn derived(&self, random: &mut Random, other: &Table) -> (Sql, bool) {
        let mut sql = Sql {
            folds: true,
            computes: true,
            ..Sql::default()
        };
        if random.one_in(6) {
            sql.loses_origins = true;
            self.query(random, &mut sql);
            return (sql, false);
        }
        let mut inner = Sql::default();
        let kinds = self.query(random, &mut inner);
        let form = random.below(4);
        let of_query = |random: &mut Random| format!("k.a{}", random.below(kinds.len()));
        let mut shown: Vec<String> = (0..1 + random.below(3))
            .map(|_| match form > 0 && random.one_in(2) {
                true => other.random_column(random, "y"),
                false => of_query(random),
            })
            .collect();
        let is_with = random.one_in(4);
        if is_with {
            sql.push("with k as (").add(&inner).push(") ");
        }
        sql.push("select ");
        let is_counted = random.one_in(6);
        if is_counted {
            let counted = of_query(random);
            sql.push("count(*), count(").push(&counted).push(")");
            shown.clear();
        } else {
            sql.push(&shown.join(", "));
            if random.one_in(4) {
                let made = of_query(random);
                sql.push(", coalesce(").push(&made).push(", 0) as made");
            }
        }
        sql.push(" from ");
        let query = |sql: &mut Sql| {
            match is_with {
                true => sql.push("k"),
                false => sql.push("(").add(&inner).push(") k"),
            };
        };
        // What is linked is of one type, and a number where groups show any of their values.
        let mut links: Vec<(usize, usize)> = Vec::new();
        for (number, kind) in kinds.iter().enumerate() {
            for (at, column) in other.columns.iter().enumerate() {
                let is_same = *kind == Some(column.kind) && column.kind < 5;
                if is_same || kind.is_none() && number == 1 && column.kind < 5 {
                    links.push((number, at));
                }
            }
        }
        let link = (!links.is_empty()).then(|| *random.pick(&links));
        let on = |sql: &mut Sql| {
            if let Some((number, at)) = link {
                let own = other.qualified("y", at);
                sql.push(" on ").push(&own).push(&format!(" = k.a{number}"));
            }
        };
        match form {
            0 => query(&mut sql),
            1 | 2 => {
                query(&mut sql);
                sql.push(match link {
                    Some(_) if random.one_in(3) => " left join ",
                    _ => " join ",
                });
                sql.push(&other.name).push(" y");
                on(&mut sql);
            }
            _ => {
                sql.push(&other.name).push(" y");
                sql.push(match link {
                    Some(_) if random.one_in(2) => " left join ",
                    _ => " join ",
                });
                query(&mut sql);
                on(&mut sql);
            }
        }
        let mut has_where = false;
        if form == 3 || form > 0 && random.one_in(4) {
            let mut key = random.pick(&other.keys).clone();
            if key.is_empty() {
                key.push(0);
            }
            for at in key {
                sql.push(if has_where { " and " } else { " where " });
                has_where = true;
                let value = operand(random, other.columns[at].kind);
                let own = other.qualified("y", at);
                sql.push(&own).push(" = ").operand(random, &value);
            }
        }
        if random.one_in(5) {
            let number = random.below(kinds.len());
            let value = operand(random, kinds[number].unwrap_or(0));
            sql.push(if has_where { " and " } else { " where " });
            sql.push(&format!("k.a{number} >= "))
                .operand(random, &value);
        }
        let ordered = !shown.is_empty() && random.one_in(2);
        if ordered {
            sql.push(" order by ").push(&shown.join(", "));
            if random.one_in(2) && !sql.text.contains(" as made") {
                let limit = random.below(5).to_string();
                sql.push(" limit ").operand(random, &limit);
            }
        }
        let ordered = ordered && !sql.text.contains(" as made");
        (sql, ordered)
    }

    /// A query with groups, and whether its rows come in one order.
    pub fn grouped(&self, random: &mut Random) -> (Sql, bool) {
        let mut sql = Sql::default();
        let tail = Tail::grouped(random, &[(self, &self.name)], &mut sql);
        sql.push(" from ").push(&self.name);
        self.condition(random, &mut sql);
        let ordered = tail.end(random, &mut sql);
        (sql, ordered)
    }

    pub(super) fn qualified(&self, alias: &str, column: usize) -> String {
        format!("{alias}.{}", self.columns[column].name)
    }

    pub(super) fn random_column(&self, random: &mut Random, alias: &str) -> String {
        self.qualified(alias, random.below(self.columns.len()))
    }

    fn aggregates(&self, random: &mut Random, sql: &mut Sql) {
        for at in 0..1 + random.below(2) {
            sql.push(if at == 0 { "" } else { ", " });
            let TableColumn { name, kind } = random.pick(&self.columns);
            match random.below(4) {
                0 => sql.push("count(*)"),
                // The kinds that are numbers.
                1 if *kind < 5 => sql.push("SUM( ").push(name).push(")"),
                2 if random.one_in(2) => sql.push("max(").push(name).push(") as most"),
                2 => sql.push("min(").push(name).push(")"),
                _ => sql.push("count(").push(name).push(")"),
            };
        }
    }
}

/// What follows the condition of a query of several tables.
struct Tail {
    groups: Vec<String>,
    order: Vec<String>,
}

impl Tail {
    /// Begins a query with `select` and what it shows.
    fn begin(random: &mut Random, tables: &[(&Table, &str)], sql: &mut Sql) -> Tail {
        let any = |random: &mut Random| {
            let (table, alias) = random.pick(tables);
            table.random_column(random, alias)
        };
        if random.one_in(3) {
            return Tail::grouped(random, tables, sql);
        }
        let mut tail = Tail {
            groups: Vec::new(),
            order: Vec::new(),
        };
        sql.push("select ");
        if random.one_in(4) {
            let counted = any(random);
            sql.push("count(*), count(distinct ");
            sql.push(&counted).push(")");
            return tail;
        }
        let distinct = random.one_in(4);
        if distinct {
            sql.push("distinct ").merges_equals();
        }
        let mut shown = Vec::new();
        for at in 0..1 + random.below(3) {
            let column = any(random);
            sql.push(if at == 0 { "" } else { ", " }).push(&column);
            if random.one_in(8) {
                sql.push(" as shown").push(&at.to_string());
            }
            shown.push(column);
        }
        if random.one_in(2) {
            // Only rows tie that are equal by collation.
            sql.folds = true;
            tail.order = match distinct {
                true => shown,
                false => tables
                    .iter()
                    .flat_map(|(table, alias)| {
                        (0..table.columns.len()).map(|at| table.qualified(alias, at))
                    })
                    .collect(),
            };
        }
        tail
    }

    /// The same of a query with groups.
    fn grouped(random: &mut Random, tables: &[(&Table, &str)], sql: &mut Sql) -> Tail {
        sql.merges_equals();
        let mut groups: Vec<String> = (0..1 + random.below(2))
            .map(|_| {
                let (table, alias) = random.pick(tables);
                table.random_column(random, alias)
            })
            .collect();
        groups.dedup();
        let mut items: Vec<String> = groups
            .iter()
            .filter(|_| !random.one_in(4))
            .cloned()
            .collect();
        for _ in 0..random.below(3) {
            let (table, alias) = random.pick(tables);
            let at = random.below(table.columns.len());
            let column = table.qualified(alias, at);
            let item = match random.below(5) {
                0 => "count(*)".into(),
                // The kinds that are numbers.
                1 if table.columns[at].kind < 5 => format!("sum({column})"),
                2 if table.columns[at].kind < 5 => format!("min({column}) as least"),
                3 => format!("count(distinct {column})"),
                _ => format!("COUNT( {column} )"),
            };
            items.insert(random.below(items.len() + 1), item);
        }
        if items.is_empty() {
            items.push("count(*)".into());
        }
        sql.push("select ").push(&items.join(", "));
        let order = match random.one_in(2) {
            true => groups.clone(),
            false => Vec::new(),
        };
        Tail { groups, order }
    }

    /// Ends the query; true if its rows come in one order.
    fn end(self, random: &mut Random, sql: &mut Sql) -> bool {
        if !self.groups.is_empty() {
            sql.push(" group by ").push(&self.groups.join(", "));
        }
        for (at, column) in self.order.iter().enumerate() {
            sql.push(if at == 0 { " order by " } else { ", " });
            sql.push(column);
            if random.one_in(3) {
                sql.push(" desc");
            }
        }
        let ordered = !self.order.is_empty();
        if ordered && random.one_in(2) {
            let limit = random.below(4).to_string();
            sql.push(" limit ").operand(random, &limit);
            if random.one_in(3) {
                sql.push(" offset 1");
            }
        }
        ordered
    }
}
