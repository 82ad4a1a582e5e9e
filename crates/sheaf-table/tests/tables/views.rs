//! Views in the catalog: durable, under names that no table has, and gone with their database.

use sheaf_table::{AccountName, TableError};
use sheaf_table::{Catalog, ViewAlgorithm, ViewCheck, ViewDefinition, ViewSecurity};

use crate::fixture::{NO_WAIT, column, example, open, scratch};

fn view(name: &str, query: &str) -> ViewDefinition {
    ViewDefinition {
        database: "d".to_string(),
        name: name.to_string(),
        algorithm: ViewAlgorithm::Merge,
        definer: AccountName::new("root", "localhost"),
        security: ViewSecurity::Definer,
        check: ViewCheck::None,
        is_updatable: false,
        query: query.to_string(),
        columns: vec![column("id", "int", false)],
        character_set: "utf8mb4".to_string(),
        collation: "utf8mb4_0900_ai_ci".to_string(),
    }
}

fn queries(catalog: &Catalog) -> Vec<(String, String)> {
    let views = catalog.views("d").unwrap();
    let views = views.iter().map(|view| &view.definition);
    views
        .map(|view| (view.name.clone(), view.query.clone()))
        .collect()
}

fn pairs(expected: &[(&str, &str)]) -> Vec<(String, String)> {
    let expected = expected.iter();
    expected
        .map(|(name, query)| (name.to_string(), query.to_string()))
        .collect()
}

#[test]
fn views_are_there_after_a_restart() {
    let (directory, catalog) = scratch();
    // One that takes several entries.
    let long = format!("SELECT '{}'", "x".repeat(20_000));
    catalog.put_view(view("long", &long), false).unwrap();
    catalog.put_view(view("v", "SELECT 1"), false).unwrap();
    catalog.put_view(view("w", "SELECT 2"), true).unwrap();
    let before = catalog.schema_version();
    catalog.put_view(view("v", "SELECT 3"), true).unwrap();
    assert!(catalog.schema_version() > before);
    catalog.storage().close().unwrap();
    drop(catalog);

    let catalog = open(directory.path());
    let all = [
        ("long", long.as_str()),
        ("v", "SELECT 3"),
        ("w", "SELECT 2"),
    ];
    assert_eq!(queries(&catalog), pairs(&all));
    assert_eq!(
        catalog.view("d", "w").unwrap().definition,
        view("w", "SELECT 2")
    );
    // A shorter one leaves nothing of a longer one.
    catalog.put_view(view("long", "SELECT 4"), true).unwrap();
    catalog.rename_view("d", "w", "z").unwrap();
    catalog
        .drop_views(&[("d".to_string(), "v".to_string())])
        .unwrap();
    catalog.storage().close().unwrap();
    drop(catalog);
    let catalog = open(directory.path());
    assert_eq!(
        queries(&catalog),
        pairs(&[("long", "SELECT 4"), ("z", "SELECT 2")])
    );
    assert_eq!(catalog.drop_database("d", true, NO_WAIT).unwrap(), 2);
    catalog.create_database("d").unwrap();
    catalog.storage().close().unwrap();
    drop(catalog);
    assert!(queries(&open(directory.path())).is_empty());
}

#[test]
fn tables_and_views_share_their_names() {
    let (_directory, catalog) = scratch();
    catalog.create_table(example()).unwrap();
    catalog.put_view(view("v", "SELECT 1"), false).unwrap();
    let exists = |result| matches!(result, Err(TableError::TableExists { .. }));
    assert!(exists(catalog.put_view(view("v", "SELECT 2"), false)));
    assert!(exists(catalog.put_view(view("t", "SELECT 2"), false)));
    assert!(matches!(
        catalog.put_view(view("t", "SELECT 2"), true),
        Err(TableError::NotView { .. })
    ));
    let mut table = example();
    table.name = "v".to_string();
    assert!(exists(catalog.create_table(table).map(drop)));
    assert!(exists(catalog.rename_view("d", "v", "t")));
    let name = |name: &str| ("d".to_string(), name.to_string());
    assert!(exists(
        catalog.rename_tables(&[(name("t"), name("v"))], NO_WAIT)
    ));

    assert!(matches!(
        catalog.table("d", "v"),
        Err(TableError::NotBaseTable { .. })
    ));
    assert!(catalog.view("d", "t").is_none());
    // All or none.
    for (wrong, is_table) in [("t", true), ("nothing", false)] {
        let refused = catalog.drop_views(&[name("v"), name(wrong)]);
        match is_table {
            true => assert!(matches!(refused, Err(TableError::NotView { .. }))),
            false => assert!(matches!(refused, Err(TableError::CannotDropTable { .. }))),
        }
        assert!(catalog.view("d", "v").is_some());
    }
    let elsewhere = ViewDefinition {
        database: "nowhere".to_string(),
        ..view("v", "SELECT 1")
    };
    assert!(matches!(
        catalog.put_view(elsewhere, false),
        Err(TableError::UnknownDatabase { .. })
    ));
    assert!(matches!(
        catalog.put_view(view(&"v".repeat(65), "SELECT 1"), false),
        Err(TableError::NameTooLong { .. })
    ));
}
