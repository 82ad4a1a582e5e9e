//! Where statements begin and end, and what is refused before it is parsed.

use sheaf_frontend::dialect::SheafDialect;
use sheaf_frontend::parser::parse_statement;
use sheaf_frontend::parser::scan::{
    MAX_EXPRESSION_DEPTH, MAX_PARENTHESES, first_statement, resolve_executable_comments,
};

/// The error of a statement that is parsed.
fn parsed(text: &str) -> Result<(), u16> {
    parse_statement(text, &SheafDialect::default())
        .map(|_| ())
        .map_err(|error| error.code)
}

fn statements(mut text: &str) -> Vec<&str> {
    let mut all = Vec::new();
    while let Some((range, next)) = first_statement(text) {
        all.push(&text[range]);
        text = &text[next..];
    }
    all
}

#[test]
fn statements_end_at_semicolons_that_are_code() {
    assert_eq!(
        statements("SELECT ';' /* ; */, `a;b`, \"c\\\";\" -- ;\n , 'it''s;'; ;; SELECT 2 # ;\n;"),
        vec![
            "SELECT ';' /* ; */, `a;b`, \"c\\\";\" -- ;\n , 'it''s;'",
            "SELECT 2"
        ]
    );
    assert!(statements(" ; -- nothing\n /* nor here */ ;").is_empty());
}

#[test]
fn executable_comments_are_code_when_their_version_fits() {
    let text =
        "/*!40101 SET NAMES utf8 */; /*!SELECT '*/' */; /*!100100 SELECT 3 */; /*M! SELECT 4 */";
    let resolved = resolve_executable_comments(text);
    assert_eq!(resolved.len(), text.len());
    assert_eq!(statements(&resolved), vec!["SET NAMES utf8", "SELECT '*/'"]);
}

#[test]
fn optimizer_hints_stay() {
    assert_eq!(
        statements("SELECT /*+ MRR(t) */ 1"),
        vec!["SELECT /*+ MRR(t) */ 1"]
    );
}

#[test]
fn deep_nesting_is_refused_and_long_lists_are_not() {
    let deep = format!("SELECT {}1", "1+".repeat(MAX_EXPRESSION_DEPTH + 1));
    assert_eq!(parsed(&deep), Err(1436));
    let parentheses = format!(
        "SELECT {}1{}",
        "(".repeat(MAX_PARENTHESES),
        ")".repeat(MAX_PARENTHESES)
    );
    assert_eq!(parsed(&parentheses), Err(1436));
    let list = format!("INSERT INTO t VALUES {}(-1)", "(-1,-2),".repeat(100_000));
    assert_eq!(parsed(&list), Ok(()));
    let conditions = format!("SELECT 1 WHERE a IN ({}0)", "-1,".repeat(100_000));
    assert_eq!(parsed(&conditions), Ok(()));
}

#[test]
fn chains_of_and_and_or_are_not_deep() {
    let chain = format!(
        "SELECT 1 WHERE {}a = 1",
        "a = 1 OR b < 2 AND ".repeat(5_000)
    );
    assert_eq!(parsed(&chain), Ok(()));
    let chain = format!("SELECT {}1", "(1 OR ".repeat(MAX_PARENTHESES + 1));
    assert_eq!(parsed(&chain), Err(1436));
    let sums = format!("SELECT 1 OR {}1", "1 + ".repeat(MAX_EXPRESSION_DEPTH + 1));
    assert_eq!(parsed(&sums), Err(1436));
}

/// A name of a column may be END. Where it is, the CASE goes on.
#[test]
fn branches_of_a_case_lie_beside_each_other() {
    let branches = "WHEN a = 1 THEN b + 1 ".repeat(MAX_EXPRESSION_DEPTH + 1);
    assert_eq!(parsed(&format!("SELECT CASE {branches}END")), Ok(()));
    let nest = |levels: usize| {
        let cases = "CASE WHEN a THEN 1 ELSE ".repeat(levels);
        format!("SELECT {cases} 1 {}", "END ".repeat(levels))
    };
    assert_eq!(parsed(&nest(MAX_PARENTHESES + 1)), Ok(()));
    assert_eq!(parsed(&nest(MAX_EXPRESSION_DEPTH + 1)), Err(1436));
    let nots = "NOT ".repeat(MAX_EXPRESSION_DEPTH / 2);
    let named = format!(
        "SELECT CASE WHEN {nots} end + CASE WHEN {nots} end + {nots} 1 THEN 1 END THEN 2 END"
    );
    assert_eq!(parsed(&named), Err(1436));
}

/// The parser reads tokens; a look at the text alone may see other ones.
#[test]
fn depth_is_that_of_the_tokens() {
    let sum = "1 + ".repeat(MAX_EXPRESSION_DEPTH + 1);
    for hidden in ["b'\\', ", "1 --\u{a0}'\n + ", "'\\'', "] {
        assert_eq!(
            parsed(&format!("SELECT {hidden}{sum}1")),
            Err(1436),
            "{hidden}"
        );
    }
    let between = " BETWEEN 1 AND 1".repeat(MAX_EXPRESSION_DEPTH + 1);
    assert_eq!(parsed(&format!("SELECT 1{between}")), Err(1436));
    let conditions = "1 BETWEEN 0 AND 2 AND ".repeat(MAX_EXPRESSION_DEPTH + 1);
    assert_eq!(parsed(&format!("SELECT {conditions}1")), Ok(()));
}
