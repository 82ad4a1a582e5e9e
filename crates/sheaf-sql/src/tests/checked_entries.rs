//! CHECK TABLE of an index whose entries are as many as the rows, and are not theirs.

use std::time::Duration;

use sheaf_types::Value;

use super::Bench;

/// Puts the entry of a row that there is not in the place of one.
fn exchange_entry(bench: &Bench, held: [i64; 2], put: [i64; 2]) {
    let catalog = bench.engine.catalog();
    let table = catalog
        .open_for_write("test", "t", Duration::ZERO)
        .expect("the table");
    let entry = |row: [i64; 2]| {
        let row = row.map(Value::Int);
        let (mut key, mut payload) = (Vec::new(), Vec::new());
        table.secondary_layouts[0].encode_entry(
            |column| (&row[column]).into(),
            0,
            &mut key,
            &mut payload,
        );
        (key, payload)
    };
    let ((old, _), (key, payload)) = (entry(held), entry(put));
    let mut transaction = catalog.storage().begin_transaction();
    let tree = &table.secondary[0];
    assert!(tree.delete(&mut transaction, &old).expect("a deletion"));
    tree.insert(&mut transaction, &key, &payload)
        .expect("an entry");
    transaction.commit().expect("a commit");
}

#[test]
fn extended_compares_entries_with_rows() {
    let mut bench = Bench::new();
    bench.ok("CREATE TABLE t (a INT PRIMARY KEY, b INT, KEY b (b))");
    bench.ok("INSERT INTO t VALUES (1, 5), (2, 6), (3, 7)");
    let ok = ["test.t|check|status|OK"];
    for words in [
        "",
        "QUICK",
        "FAST MEDIUM CHANGED",
        "EXTENDED",
        "FOR UPGRADE",
    ] {
        assert_eq!(bench.rows(&format!("CHECK TABLE t {words}")), ok);
    }
    exchange_entry(&bench, [2, 6], [2, 60]);
    // There are as many of them as rows.
    for words in ["", "QUICK", "FOR UPGRADE"] {
        assert_eq!(bench.rows(&format!("CHECK TABLE t {words}")), ok);
    }
    for words in ["EXTENDED", "QUICK EXTENDED", "EXTENDED FAST"] {
        let rows = bench.rows(&format!("CHECK TABLE t {words}"));
        let [found, end] = rows.as_slice() else {
            panic!("two rows, not {rows:?}");
        };
        let expected = "test.t|check|Error|test.t.b: missing in the index: entry [";
        assert!(
            found.starts_with(expected) && found.ends_with(" (2 problems)"),
            "{found}"
        );
        assert_eq!(end, "test.t|check|status|Operation failed");
    }
}

#[test]
fn words_of_one_statement_are_none_of_the_other() {
    let mut bench = Bench::new();
    bench.ok("CREATE TABLE t (a INT PRIMARY KEY)");
    bench.ok("REPAIR LOCAL TABLE t QUICK EXTENDED USE_FRM");
    for statement in [
        "CHECK TABLE t USE_FRM",
        "CHECK LOCAL TABLE t",
        "REPAIR TABLE t MEDIUM",
        "REPAIR TABLE t FAST",
        "REPAIR TABLE t CHANGED",
        "REPAIR TABLE t FOR UPGRADE",
        "OPTIMIZE TABLE t QUICK",
        "ANALYZE TABLE t EXTENDED",
    ] {
        assert_eq!(bench.error(statement), 1064, "{statement}");
    }
}
