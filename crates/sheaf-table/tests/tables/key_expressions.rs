//! Indexes of expressions: the hidden columns that come and go with them.

use sheaf_table::{
    Alteration, Catalog, Column, ColumnPlace, CreateTable, GeneratedColumn, GeneratedKind,
    IndexPartSpec, IndexSpec, TableDefinition,
};

use crate::fixture::*;

/// An index of `price * 2` and of the column `name`.
fn of_price(name: Option<&str>) -> IndexSpec {
    let column = Column {
        generated: Some(GeneratedColumn {
            expression: "(`price` * 2)".into(),
            columns: vec!["price".into()],
            kind: GeneratedKind::Virtual,
        }),
        ..column("", "decimal(16,2)", true)
    };
    let expression = IndexPartSpec {
        expression: Some(Box::new(column)),
        ..IndexPartSpec::column("")
    };
    IndexSpec {
        name: name.map(str::to_string),
        parts: vec![expression, IndexPartSpec::column("name")],
        ..index("", &[], false)
    }
}

fn with_expression(name: Option<&str>) -> CreateTable {
    let mut request = example();
    request.indexes.push(of_price(name));
    request
}

fn definition(catalog: &Catalog) -> TableDefinition {
    catalog.table("d", "t").unwrap().definition.clone()
}

fn hidden(catalog: &Catalog) -> Vec<String> {
    let definition = definition(catalog);
    let columns = definition.columns.iter().filter(|column| column.hidden);
    columns.map(|column| column.name.clone()).collect()
}

#[test]
fn a_hidden_column_is_found_by_no_name_and_kept() {
    let (directory, catalog) = scratch();
    catalog.create_table(with_expression(None)).unwrap();
    let check = |catalog: &Catalog| {
        let definition = definition(catalog);
        let index = definition.index("functional_index").unwrap();
        let part = &index.parts[0];
        assert_eq!(definition.key_expression(part), Some("(`price` * 2)"));
        assert_eq!(definition.key_expression(&index.parts[1]), None);
        let column = &definition.columns[part.column];
        assert!(column.hidden && column.invisible);
        assert_eq!(definition.column_position(&column.name), None);
        assert_eq!(definition.position_in_plan(&column.name), Some(part.column));
        assert_eq!(
            definition.named_columns().count() + 1,
            definition.columns.len()
        );
    };
    check(&catalog);
    catalog.storage().close().unwrap();
    drop(catalog);
    check(&open(directory.path()));
}

#[test]
fn hidden_columns_come_and_go_with_their_indexes() {
    let (_directory, catalog) = scratch();
    catalog.create_table(with_expression(Some("k"))).unwrap();
    let drop_index = |name: &str| Alteration::DropIndex(name.into());
    let add = Alteration::AddIndex(of_price(Some("l")));
    alter(&catalog, "t", std::slice::from_ref(&add)).unwrap();
    assert_eq!(hidden(&catalog), ["!hidden!0", "!hidden!1"]);
    let added = Alteration::AddColumn {
        column: column("x", "int", true),
        place: ColumnPlace::Last,
    };
    alter(&catalog, "t", &[drop_index("k"), added]).unwrap();
    assert_eq!(hidden(&catalog), ["!hidden!1"]);
    let columns = definition(&catalog).columns;
    assert_eq!(columns[columns.len() - 2].name, "x");
    let gone = || Alteration::DropColumn("price".into());
    let renamed = Alteration::RenameColumn {
        name: "price".into(),
        new: "cost".into(),
    };
    for change in [gone(), renamed] {
        let error = alter(&catalog, "t", &[change]).unwrap_err();
        assert_eq!(error.mysql_code(), 3837);
    }
    alter(
        &catalog,
        "t",
        &[drop_index("l"), drop_index("by_price"), gone()],
    )
    .unwrap();
    assert!(hidden(&catalog).is_empty());
}
