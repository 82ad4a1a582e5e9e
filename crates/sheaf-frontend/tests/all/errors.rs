//! Errors as clients see them.

use arrow::error::ArrowError;
use datafusion_common::DataFusionError;
use sheaf_access::AccessError;
use sheaf_exec::ExecError;
use sheaf_frontend::error::SqlError;
use sheaf_table::TableError;

#[test]
fn an_error_reads_as_the_mysql_client_prints_it() {
    let error = SqlError::no_such_table("shop", "orders");
    assert_eq!(
        error.to_string(),
        "ERROR 1146 (42S02): Table 'shop.orders' doesn't exist"
    );
}

#[test]
fn a_syntax_error_repeats_at_most_eighty_characters() {
    let error = SqlError::parse_error(&"é".repeat(500), 3);
    assert!(
        error
            .message
            .ends_with(&format!("near '{}' at line 3", "é".repeat(80)))
    );
}

#[test]
fn an_error_from_below_is_found_behind_its_wrappers() {
    let cause = TableError::UnknownTable {
        database: "shop".into(),
        table: "orders".into(),
    };
    let wrapped = DataFusionError::External(Box::new(AccessError::from(cause)));
    let wrapped = ArrowError::ExternalError(Box::new(wrapped.context("while scanning")));
    let error = SqlError::from(ExecError::from(DataFusionError::from(wrapped)));
    assert_eq!((error.code, error.sqlstate), (1146, "42S02"));
    assert_eq!(SqlError::from(ExecError::Cancelled).code, 1317);
}
