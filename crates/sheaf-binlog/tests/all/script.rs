//! The statements of the golden files: as SQL for MySQL, and as what we log of them.
//!
//! `SHEAF_WRITE_DOCS=1` writes `golden/script.sql` anew.

use std::fs;

use sheaf_binlog::event::rows::RowsEvent;
use sheaf_binlog::row::columns::{ColumnSet, RowImage};
use sheaf_binlog::table::{KeyColumn, LoggedColumn, LoggedTable};
use sheaf_types::{ColumnType, Value};

use crate::cases::{self, Cell, DATABASE};
use crate::golden::folder;

/// What a statement did to rows.
pub(crate) enum Change {
    Insert(Vec<Vec<Value>>, ColumnSet),
    Update(Vec<[Vec<Value>; 2]>, [ColumnSet; 2]),
    Delete(Vec<Vec<Value>>, ColumnSet),
}

/// A statement of the script.
pub(crate) enum Step {
    /// Not logged.
    Setting(String),
    Ddl(String),
    Rows(RowsStatement),
}

/// A statement that changes rows.
pub(crate) struct RowsStatement {
    pub(crate) sql: String,
    /// In the order of their TABLE_MAPs.
    pub(crate) tables: Vec<LoggedTable>,
    /// In the order of their rows events.
    pub(crate) parts: Vec<Part>,
    /// Foreign keys refer to the tables, or were checked.
    pub(crate) has_foreign_keys: bool,
}

impl RowsStatement {
    /// A statement about one table.
    fn new(sql: impl Into<String>, table: &LoggedTable, change: Change) -> RowsStatement {
        RowsStatement {
            sql: sql.into(),
            tables: vec![table.clone()],
            parts: vec![Part {
                table: 0,
                change,
                flagged: |event| event,
            }],
            has_foreign_keys: false,
        }
    }

    fn flagged(mut self, flagged: Flagged) -> RowsStatement {
        self.parts
            .iter_mut()
            .for_each(|part| part.flagged = flagged);
        self
    }

    fn of_foreign_keys(mut self) -> RowsStatement {
        self.has_foreign_keys = true;
        self
    }
}

/// Rows of one table that a statement changed.
pub(crate) struct Part {
    /// The place in the statement's tables.
    pub(crate) table: usize,
    pub(crate) change: Change,
    /// Enters the flags of its events.
    pub(crate) flagged: Flagged,
}

type Flagged = for<'t> fn(RowsEvent<'t>) -> RowsEvent<'t>;

impl Step {
    fn setting(sql: impl Into<String>) -> Step {
        Step::Setting(sql.into())
    }

    /// A statement that changes the rows of one table.
    fn rows(sql: impl Into<String>, table: &LoggedTable, change: Change) -> Step {
        Step::Rows(RowsStatement::new(sql, table, change))
    }
}

pub(crate) fn steps() -> Vec<Step> {
    let mut steps = vec![
        Step::setting("RESET BINARY LOGS AND GTIDS"),
        Step::setting("SET NAMES utf8mb4"),
        Step::setting("SET sql_mode = ''"),
        Step::setting("SET time_zone = '+00:00'"),
        Step::Ddl(format!("CREATE DATABASE {DATABASE}")),
        Step::Setting(format!("USE {DATABASE}")),
    ];
    for case in cases::all() {
        let (table, rows) = (case.table(), case.values());
        let all = table.all_columns();
        steps.push(Step::Ddl(case.create_sql()));
        let change = Change::Insert(rows.clone(), all.clone());
        steps.push(Step::rows(case.insert_sql(), &table, change));
        if case.is_emptied {
            let change = Change::Delete(rows, all);
            steps.push(Step::rows(case.delete_sql(), &table, change));
        }
    }
    steps.extend(steps_of_images());
    steps.extend(steps_of_keys());
    steps.extend(steps_of_sessions());
    steps.push(Step::setting("FLUSH BINARY LOGS"));
    steps
}

/// FULL, MINIMAL and NOBLOB, with a primary key and without.
fn steps_of_images() -> Vec<Step> {
    let types = ["int", "int", "varchar(10)", "text", "json", "int"];
    let types = types.map(|ty| ColumnType::parse(ty).unwrap());
    let names = ["id", "a", "v", "t", "j", "z"];
    let columns = || {
        let columns = names.iter().zip(types.clone());
        columns
            .map(|(name, ty)| LoggedColumn::new(*name, ty, *name != "id"))
            .collect::<Vec<_>>()
    };
    let row = |cells: [&str; 6]| -> Vec<Value> {
        let values = cells.iter().zip(&types).map(|(cell, ty)| match *cell {
            "NULL" => Value::Null,
            text => Cell::Text(text.to_string()).value(ty),
        });
        values.collect()
    };
    let columns_sql = "id int NOT NULL, a int, v varchar(10), t text, j json, z int";
    let mut steps = Vec::new();
    for (name, key, key_sql) in [
        ("keyed", &[KeyColumn::whole(0)][..], ", PRIMARY KEY (id)"),
        ("keyless", &[][..], ""),
    ] {
        let table = LoggedTable::new(DATABASE, name, columns(), key).unwrap();
        steps.push(Step::Ddl(format!(
            "CREATE TABLE {name} ({columns_sql}{key_sql})"
        )));
        for (image_sql, image) in [
            ("FULL", RowImage::Full),
            ("MINIMAL", RowImage::Minimal),
            ("NOBLOB", RowImage::NoBlob),
        ] {
            steps.push(Step::Setting(format!(
                "SET binlog_row_image = '{image_sql}'"
            )));
            let rows = |sql: String, change| Step::rows(sql, &table, change);
            let assigned = [0, 1, 3]
                .into_iter()
                .fold(ColumnSet::none(6), ColumnSet::with);
            let first = row(["1", "5", "NULL", "text", "NULL", "NULL"]);
            steps.push(rows(
                format!("INSERT INTO {name} (id, a, t) VALUES (1, 5, 'text')"),
                Change::Insert(vec![first.clone()], table.columns_after(image, &assigned)),
            ));
            let second = row(["1", "6", "new", "text", "NULL", "NULL"]);
            let assigned = [1, 2].into_iter().fold(ColumnSet::none(6), ColumnSet::with);
            steps.push(rows(
                format!("UPDATE {name} SET a = 6, v = 'new'"),
                Change::Update(
                    vec![[first, second.clone()]],
                    [
                        table.columns_before(image),
                        table.columns_after(image, &assigned),
                    ],
                ),
            ));
            let third = row(["1", "6", "new", "text", "[1]", "NULL"]);
            let assigned = ColumnSet::none(6).with(4);
            steps.push(rows(
                format!("UPDATE {name} SET j = '[1]'"),
                Change::Update(
                    vec![[second, third.clone()]],
                    [
                        table.columns_before(image),
                        table.columns_after(image, &assigned),
                    ],
                ),
            ));
            steps.push(rows(
                format!("DELETE FROM {name}"),
                Change::Delete(vec![third], table.columns_before(image)),
            ));
        }
        steps.push(Step::setting("SET binlog_row_image = 'FULL'"));
    }
    steps
}

/// Primary keys of several columns and of prefixes, and an invisible column.
fn steps_of_keys() -> Vec<Step> {
    let ty = |text: &str| ColumnType::parse(text).unwrap();
    let text = |text: &str| Value::Text(text.to_string());
    let columns = vec![
        LoggedColumn::new("a", ty("varchar(20)"), false),
        LoggedColumn::new("b", ty("int"), true).invisible(),
        LoggedColumn::new("c", ty("varbinary(20)"), false),
        LoggedColumn::new("d", ty("int unsigned"), false),
    ];
    let prefixes = [
        KeyColumn::whole(3),
        KeyColumn::prefix(0, 5),
        KeyColumn::prefix(2, 7),
    ];
    let prefixed = LoggedTable::new(DATABASE, "prefixed", columns.clone(), &prefixes).unwrap();
    let whole = [KeyColumn::whole(2), KeyColumn::whole(0)];
    let several = LoggedTable::new(DATABASE, "several", columns, &whole).unwrap();
    let row = vec![
        text("a"),
        Value::Null,
        Value::Bytes(b"c".to_vec()),
        Value::UInt(4),
    ];
    let columns_sql = "a varchar(20) NOT NULL, b int INVISIBLE, c varbinary(20) NOT NULL, d int unsigned NOT NULL";
    let mut steps = Vec::new();
    for (name, key, table) in [
        ("prefixed", "d, a(5), c(7)", prefixed),
        ("several", "c, a", several),
    ] {
        steps.push(Step::Ddl(format!(
            "CREATE TABLE {name} ({columns_sql}, PRIMARY KEY ({key}))"
        )));
        let all = table.all_columns();
        let sql = format!("INSERT INTO {name} VALUES ('a', 'c', 4)");
        let change = Change::Insert(vec![row.clone()], all);
        steps.push(Step::rows(sql, &table, change));
    }
    steps
}

/// Foreign keys that delete rows, and sessions that check less or number otherwise.
fn steps_of_sessions() -> Vec<Step> {
    let ty = || ColumnType::parse("int").unwrap();
    let id = || LoggedColumn::new("id", ty(), false);
    let key = [KeyColumn::whole(0)];
    let parent = LoggedTable::new(DATABASE, "parent", vec![id()], &key).unwrap();
    let columns = vec![id(), LoggedColumn::new("parent", ty(), true)];
    let child = LoggedTable::new(DATABASE, "child", columns, &key).unwrap();
    let row = |values: &[i64]| -> Vec<Value> { values.iter().copied().map(Value::Int).collect() };
    let insert = |sql: &str, table: &LoggedTable, rows: &[&[i64]]| {
        let rows = rows.iter().map(|values| row(values)).collect();
        RowsStatement::new(sql, table, Change::Insert(rows, table.all_columns()))
    };
    let insert_parent = |id: i64| {
        let sql = format!("INSERT INTO parent VALUES ({id})");
        insert(&sql, &parent, &[&[id]]).of_foreign_keys()
    };
    // The child comes before its parent, one parent after the other.
    let of_parent = |id| Part {
        table: 0,
        change: Change::Delete(vec![row(&[id])], parent.all_columns()),
        flagged: |event| event,
    };
    let of_children = |rows: &[&[i64]]| Part {
        table: 1,
        change: Change::Delete(
            rows.iter().map(|values| row(values)).collect(),
            child.all_columns(),
        ),
        flagged: |event| event.without_foreign_key_checks(),
    };
    vec![
        Step::Ddl("CREATE TABLE parent (id int NOT NULL PRIMARY KEY)".to_string()),
        Step::Ddl(
            "CREATE TABLE child (id int NOT NULL PRIMARY KEY, parent int, \
             FOREIGN KEY (parent) REFERENCES parent (id) ON DELETE CASCADE)"
                .to_string(),
        ),
        Step::Rows(
            insert("INSERT INTO parent VALUES (1), (2)", &parent, &[&[1], &[2]]).of_foreign_keys(),
        ),
        Step::Rows(
            insert(
                "INSERT INTO child VALUES (1, 1), (2, 1), (3, 2)",
                &child,
                &[&[1, 1], &[2, 1], &[3, 2]],
            )
            .of_foreign_keys(),
        ),
        Step::Rows(RowsStatement {
            sql: "DELETE FROM parent".to_string(),
            tables: vec![parent.clone(), child.clone()],
            parts: vec![
                of_children(&[&[1, 1], &[2, 1]]),
                of_parent(1),
                of_children(&[&[3, 2]]),
                of_parent(2),
            ],
            has_foreign_keys: true,
        }),
        Step::setting("SET foreign_key_checks = 0"),
        // The key of the child is not checked, so it does not count.
        Step::Rows(
            insert("INSERT INTO child VALUES (4, 9)", &child, &[&[4, 9]])
                .flagged(|event| event.without_foreign_key_checks()),
        ),
        Step::Rows(insert_parent(6).flagged(|event| event.without_foreign_key_checks())),
        Step::setting("SET foreign_key_checks = 1"),
        Step::setting("SET unique_checks = 0"),
        Step::Rows(insert_parent(3).flagged(|event| event.without_unique_checks())),
        Step::setting("SET unique_checks = 1"),
        Step::setting("SET auto_increment_increment = 10, auto_increment_offset = 3"),
        Step::Rows(insert_parent(4)),
        Step::setting("SET auto_increment_increment = 1, auto_increment_offset = 1"),
        Step::setting("SET autocommit = 0"),
        Step::Rows(insert_parent(5)),
        Step::setting("COMMIT"),
        Step::setting("SET autocommit = 1"),
    ]
}

#[test]
fn the_script_is_that_of_the_tables() {
    let mut script = String::new();
    for step in steps() {
        script += match &step {
            Step::Setting(sql) | Step::Ddl(sql) | Step::Rows(RowsStatement { sql, .. }) => sql,
        };
        script += ";\n";
    }
    let path = folder().join("script.sql");
    if std::env::var_os("SHEAF_WRITE_DOCS").is_some() {
        fs::write(&path, &script).unwrap();
    }
    assert_eq!(fs::read_to_string(path).unwrap(), script);
}
