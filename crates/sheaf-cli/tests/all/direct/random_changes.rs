//! Random changes of random tables.

use super::random::Random;
use super::random_tables::{Sql, TYPES, Table, TableColumn, operand};

impl Table {
    /// INSERT of rows that go in, or not.
    pub fn insert(&self, random: &mut Random) -> Sql {
        self.insert_of(random, "insert into ")
    }

    /// INSERT and REPLACE of all forms.
    pub fn write(&self, random: &mut Random) -> Sql {
        let verb = *random.pick(&["insert into ", "insert ignore into ", "replace into "]);
        let mut sql = self.insert_of(random, verb);
        if verb != "insert into " || random.one_in(3) {
            return sql;
        }
        sql.push(" on duplicate key update ");
        for at in 0..1 + random.below(2) {
            let TableColumn { name, kind } = random.pick(&self.columns);
            sql.push(if at == 0 { "" } else { ", " })
                .push(name)
                .push(" = ");
            let value = operand(random, *kind);
            match random.below(6) {
                0 => sql.push(name).push(" + ").operand(random, "1"),
                1 => sql.push("values(").push(name).push(")"),
                2 => {
                    sql.push(name).push(" + values(");
                    sql.push(&random.pick(&self.columns).name).push(")")
                }
                3 => {
                    Self::constant(random, &mut sql);
                    &mut sql
                }
                4 => sql.push(&random.pick(&self.columns).name),
                _ => sql.operand(random, &value),
            };
        }
        sql
    }

    fn insert_of(&self, random: &mut Random, verb: &str) -> Sql {
        let mut sql = Sql::default();
        sql.push(verb).push(&self.name).push(" values ");
        for row in 0..1 + random.below(2) {
            sql.push(if row == 0 { "(" } else { ", (" });
            for (at, column) in self.columns.iter().enumerate() {
                sql.push(if at == 0 { "" } else { ", " });
                if random.one_in(12) {
                    Self::constant(random, &mut sql);
                    continue;
                }
                let value = match !self.keys[0].contains(&at) && random.one_in(8) {
                    true => "NULL".into(),
                    false => operand(random, column.kind),
                };
                sql.operand(random, &value);
            }
            sql.push(")");
        }
        sql
    }

    pub fn update(&self, random: &mut Random) -> Sql {
        let mut sql = Sql::default();
        sql.push("update ").push(&self.name).push(" set ");
        for at in 0..1 + random.below(2) {
            let TableColumn { name, kind } = random.pick(&self.columns);
            sql.push(if at == 0 { "" } else { ", " })
                .push(name)
                .push(" = ");
            let value = operand(random, *kind);
            match random.below(5) {
                3 => self.expression(random, &mut sql),
                4 if random.one_in(2) => Self::constant(random, &mut sql),
                0 => {
                    sql.push(name);
                    let sign = if random.one_in(2) { " + " } else { " - " };
                    sql.push(sign).operand(random, &value);
                }
                1 if random.one_in(3) => {
                    sql.push(&random.pick(&self.columns).name);
                }
                _ => {
                    sql.operand(random, &value);
                }
            }
        }
        self.condition(random, &mut sql);
        sql
    }

    /// UPDATE or DELETE of rows that a join finds, or a subquery, or with a value that a subquery finds.
    pub fn change_found(&self, random: &mut Random, other: &Table) -> Sql {
        let mut sql = Sql::default();
        let form = random.below(4);
        let changed = random.below(self.columns.len());
        let TableColumn { name, kind } = &self.columns[changed];
        let value = operand(random, *kind);
        match form {
            0 => sql.push("update ").push(&self.name).push(" x join "),
            1 => sql.push("delete x from ").push(&self.name).push(" x join "),
            2 => {
                // Nothing is wrong in the subquery: whether it runs without a row is not the same for both.
                sql.push("update ").push(&self.name).push(" x set ");
                sql.push(name).push(" = (select count(");
                sql.push(&other.random_column(random, "y"));
                sql.push(") from ").push(&other.name).push(" y where ");
                let mut key = random.pick(&other.keys).clone();
                if key.is_empty() {
                    key.push(0);
                }
                for (number, at) in key.into_iter().enumerate() {
                    sql.push(if number == 0 { "" } else { " and " });
                    sql.push(&other.qualified("y", at)).push(" = ");
                    sql.push(&self.random_column(random, "x"));
                }
                sql.push(")");
                self.condition(random, &mut sql);
                return sql;
            }
            _ => {
                sql.push("delete from ").push(&self.name).push(" where ");
                sql.push(name).push(" in (select ");
                sql.push(&random.pick(&other.columns).name);
                sql.push(" from ").push(&other.name);
                other.comparisons(random, &mut sql);
                sql.push(")");
                return sql;
            }
        };
        sql.push(&other.name).push(" y");
        let mut key = random.pick(&other.keys).clone();
        if key.is_empty() {
            key.push(0);
        }
        for (number, at) in key.into_iter().enumerate() {
            sql.push(if number == 0 { " on " } else { " and " });
            sql.push(&other.qualified("y", at)).push(" = ");
            sql.push(&self.random_column(random, "x"));
        }
        if form == 0 {
            // Of the other table there may be several rows.
            let own = self.random_column(random, "x");
            let name = self.qualified("x", changed);
            sql.push(" set ").push(&name).push(" = ");
            match random.below(3) {
                0 => sql.push(&own),
                1 => sql.push(&name).push(" + ").operand(random, &value),
                _ => sql.operand(random, &value),
            };
        }
        let mut key = random.pick(&self.keys).clone();
        if key.is_empty() {
            key.push(0);
        }
        for (number, at) in key.into_iter().enumerate() {
            sql.push(if number == 0 { " where " } else { " and " });
            sql.push(&self.qualified("x", at));
            let value = operand(random, self.columns[at].kind);
            let relation = if random.one_in(3) { " >= " } else { " = " };
            sql.push(relation).operand(random, &value);
        }
        sql
    }

    pub fn delete(&self, random: &mut Random) -> Sql {
        let mut sql = Sql::default();
        sql.push("delete from ").push(&self.name);
        self.condition(random, &mut sql);
        sql
    }
}

/// What may change the meaning of a prepared statement between two executions.
pub fn between_statements(random: &mut Random, table: &Table) -> String {
    let Table { name, columns, .. } = table;
    let column = random.pick(columns);
    let is_varchar = TYPES[column.kind].0.starts_with("varchar");
    match random.below(17) {
        0 => "begin".into(),
        1 => "commit".into(),
        2 => "rollback".into(),
        3 => "set sql_mode = ''".into(),
        4 => "set sql_mode = default".into(),
        5 => format!("alter table {name} add key extra ({})", column.name),
        6 => format!("alter table {name} drop key extra"),
        7 if is_varchar => {
            let collation = *random.pick(&["0900_ai_ci", "bin", "general_ci"]);
            let ty = format!("varchar(20) collate utf8mb4_{collation}");
            format!("alter table {name} modify {} {ty}", column.name)
        }
        7 => format!("alter table {name} modify {} bigint", column.name),
        8 => "set names utf8mb4 collate utf8mb4_bin".into(),
        9 => {
            let part = column.part(random, true);
            format!("alter table {name} add unique key extra ({part})")
        }
        10 => "set sql_mode = 'ansi_quotes,pipes_as_concat'".into(),
        11 => "set session transaction isolation level read committed".into(),
        12 => "set session transaction isolation level serializable".into(),
        13 => "set session transaction isolation level repeatable read".into(),
        14 => "set @number = 5, @text = 'x'".into(),
        15 => "set @number = '2x', @text = null".into(),
        _ => "set autocommit = 1".into(),
    }
}
