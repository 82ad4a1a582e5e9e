//! Rows of JSON_TABLE, with the answers of MySQL 9.7.

use sheaf_types::json::table::{Cell, Column, Level, Otherwise, ValueColumn};
use sheaf_types::json::text::{read, to_text};
use sheaf_types::json::{JsonError, Path};

fn path(text: &str) -> Path {
    Path::parse(text).expect(text)
}

fn level(text: &str, columns: Vec<Column>) -> Level {
    let path = path(text);
    Level { path, columns }
}

fn nested(text: &str, columns: Vec<Column>) -> Column {
    Column::Nested(level(text, columns))
}

fn column(name: &str, text: &str) -> ValueColumn {
    ValueColumn {
        name: name.to_string(),
        path: path(text),
        is_json: false,
        on_empty: Otherwise::Null,
        on_error: Otherwise::Null,
    }
}

fn scalar(text: &str) -> Column {
    Column::Value(column("a", text))
}

fn json(text: &str) -> Column {
    let is_json = true;
    Column::Value(ValueColumn {
        is_json,
        ..column("a", text)
    })
}

/// The rows, a line each.
fn rows(document: &str, table: &Level) -> Result<Vec<String>, JsonError> {
    let document = read(document).expect(document);
    let mut rows = Vec::new();
    table.for_each_row(document.as_json(), &mut |cells| {
        let mut texts = Vec::new();
        for cell in cells {
            texts.push(match cell {
                Cell::Null => "NULL".to_string(),
                Cell::Ordinal(number) => number.to_string(),
                Cell::Exists(exists) => u8::from(*exists).to_string(),
                Cell::Value(value) => to_text(*value),
                Cell::Made(document) => to_text(document.as_json()),
                Cell::Wrong(error) => return Err(error.clone()),
            });
        }
        rows.push(texts.join(" | "));
        Ok(())
    })?;
    Ok(rows)
}

#[test]
fn a_nested_level_makes_rows_below_each_row() {
    let numbers = vec![Column::Ordinality, scalar("$")];
    let columns = vec![
        Column::Ordinality,
        scalar("$.a"),
        Column::Exists(path("$.b")),
        nested("$.b[*]", numbers),
    ];
    let table = level("$[*]", columns);
    assert_eq!(
        rows(r#"[{"a":1,"b":[1,2]},{"a":2}]"#, &table).unwrap(),
        [
            "1 | 1 | 1 | 1 | 1",
            "1 | 1 | 1 | 2 | 2",
            "2 | 2 | 0 | NULL | NULL"
        ]
    );
}

#[test]
fn levels_side_by_side_do_not_multiply() {
    let numbers = || vec![Column::Ordinality, scalar("$")];
    let columns = vec![
        Column::Ordinality,
        nested("$.b[*]", numbers()),
        nested("$.c[*]", numbers()),
    ];
    let table = level("$[*]", columns);
    assert_eq!(
        rows(r#"[{"b":[1,2],"c":[3,4]},{}]"#, &table).unwrap(),
        [
            "1 | 1 | 1 | NULL | NULL",
            "1 | 2 | 2 | NULL | NULL",
            "1 | NULL | NULL | 1 | 3",
            "1 | NULL | NULL | 2 | 4",
            "2 | NULL | NULL | NULL | NULL",
        ]
    );
}

#[test]
fn levels_nest_in_levels() {
    let inner = nested("$.c[*]", vec![Column::Ordinality, scalar("$")]);
    let table = level(
        "$[*]",
        vec![nested("$.b[*]", vec![Column::Ordinality, inner])],
    );
    assert_eq!(
        rows(r#"[{"b":[{"c":[1,2]},{"c":[]},{}]}]"#, &table).unwrap(),
        [
            "1 | 1 | 1",
            "1 | 2 | 2",
            "2 | NULL | NULL",
            "3 | NULL | NULL"
        ]
    );
}

#[test]
fn columns_of_json_take_several_values() {
    let columns = vec![
        json("$[*]"),
        json("$[0 to 0]"),
        scalar("$[0 to 0]"),
        scalar("$"),
    ];
    let table = level("$[*]", columns);
    assert_eq!(rows("[[1,2]]", &table).unwrap(), ["[1, 2] | 1 | 1 | NULL"]);
    let table = level(
        "$[*]",
        vec![json("$.a"), scalar("$.a"), Column::Exists(path("$.a"))],
    );
    assert_eq!(
        rows(r#"[{"a":null},{"a":"x"}]"#, &table).unwrap(),
        ["NULL | NULL | 1", r#""x" | "x" | 1"#]
    );
}

#[test]
fn a_column_says_what_stands_for_no_value() {
    let with = |on_empty: Otherwise| {
        let name = column("a", "$.x");
        level(
            "$[*]",
            vec![Column::Value(ValueColumn { on_empty, ..name })],
        )
    };
    let default = Otherwise::Default(read("5").unwrap());
    assert_eq!(rows("[1]", &with(default)).unwrap(), ["5"]);
    assert_eq!(rows("[1]", &with(Otherwise::Null)).unwrap(), ["NULL"]);
    let error = rows("[1]", &with(Otherwise::Error)).unwrap_err();
    assert_eq!(error.code().number(), 3665);
    assert_eq!(error.to_string(), "Missing value for JSON_TABLE column 'a'");
}

#[test]
fn a_scalar_column_takes_no_container() {
    for text in ["$", "$[*]"] {
        let on_error = Otherwise::Error;
        let strict = Column::Value(ValueColumn {
            on_error,
            ..column("a", text)
        });
        let error = rows("[[1,2]]", &level("$[*]", vec![strict])).unwrap_err();
        assert_eq!(error.code().number(), 3666);
        assert_eq!(
            error.to_string(),
            "Can't store an array or an object in the scalar JSON_TABLE column 'a'"
        );
    }
}

#[test]
fn a_path_that_leads_nowhere_makes_no_rows() {
    let columns = || vec![Column::Ordinality, json("$")];
    assert_eq!(rows("[]", &level("$[*]", columns())).unwrap(), [""; 0]);
    assert_eq!(
        rows(r#"{"a":1}"#, &level("$.b", columns())).unwrap(),
        [""; 0]
    );
    assert_eq!(
        rows("[1,2]", &level("$", columns())).unwrap(),
        ["1 | [1, 2]"]
    );
}
