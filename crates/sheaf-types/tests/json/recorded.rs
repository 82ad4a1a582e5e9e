//! Expressions and MySQL's answers to them, recorded from MySQL 9.7 by `SELECT expression`.
//!
//! `recorded/*.txt` have an expression a line. Behind it stand MySQL's answer (`= text`, as the client shows
//! it), its error (`! number SQLSTATE message`) and its warnings (`~ number message`).

use crate::evaluate::{Evaluator, Sql};

/// Answers of a file: line by line, the first thing that differs fails the test with all that do.
fn check(file: &str, text: &str) {
    let mut lines = text.lines().filter(|line| !line.is_empty()).peekable();
    let (mut wrong, mut count) = (Vec::new(), 0);
    while let Some(expression) = lines.next() {
        if expression.starts_with('#') {
            continue;
        }
        let mut expected = Vec::new();
        while let Some(line) = lines.next_if(|line| line.starts_with(['=', '!', '~'])) {
            expected.push(line.to_string());
        }
        assert!(!expected.is_empty(), "no answer to {expression}");
        let mut evaluator = Evaluator::default();
        let mut answer = match evaluator.evaluate(expression) {
            Ok(value) => vec![format!("= {}", shown(&value))],
            Err(error) => {
                let code = error.code();
                vec![format!("! {} {} {error}", code.number(), code.sqlstate())]
            }
        };
        answer.extend(
            evaluator
                .warnings
                .into_iter()
                .map(|warning| format!("~ {warning}")),
        );
        count += 1;
        if answer != expected {
            wrong.push(format!(
                "{expression}\n  MySQL {expected:?}\n  Sheaf {answer:?}"
            ));
        }
    }
    assert!(
        wrong.is_empty(),
        "{} of {count} in {file}:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

/// As MySQL's client shows a value.
fn shown(value: &Sql) -> String {
    let text = value.text().unwrap_or("NULL".to_string());
    let text = text
        .replace('\\', "\\\\")
        .replace('\n', "\\n")
        .replace('\t', "\\t");
    text.replace('\0', "\\0")
}

#[test]
fn texts_are_read_and_written() {
    check("text.txt", include_str!("recorded/text.txt"));
}

#[test]
fn paths_lead_to_values() {
    check("paths.txt", include_str!("recorded/paths.txt"));
}

#[test]
fn documents_change() {
    check("modify.txt", include_str!("recorded/modify.txt"));
}

#[test]
fn values_become_values_of_sql() {
    check("values.txt", include_str!("recorded/values.txt"));
}

#[test]
fn corners_of_all() {
    check("more.txt", include_str!("recorded/more.txt"));
}

#[test]
fn values_have_an_order() {
    let text = include_str!("recorded/order.txt");
    let mut lines = text.lines().filter(|line| !line.starts_with('#'));
    let (mut values, mut expected) = (Vec::new(), Vec::new());
    while let Some(expression) = lines.next() {
        let value = Evaluator::default().evaluate(expression).expect("a value");
        values.push((
            expression,
            value.document(1, "").expect("a document").expect("no NULL"),
        ));
        let line = lines.next().expect("an answer");
        expected.push(line.strip_prefix("= ").unwrap_or_default());
    }
    assert_eq!(values.len(), expected.len());
    let mut wrong = Vec::new();
    for (first, (name, value)) in values.iter().enumerate() {
        for (offset, sign) in expected[first].chars().enumerate() {
            let (other_name, other) = &values[first + 1 + offset];
            let (a, b) = (value.as_json(), other.as_json());
            let order = sheaf_types::json::compare::compare(a, b);
            let by_key = sheaf_types::json::sort_key::sort_key(a)
                .cmp(&sheaf_types::json::sort_key::sort_key(b));
            assert_eq!(order, by_key, "{name} {other_name}");
            let ours = match order {
                std::cmp::Ordering::Less => '<',
                std::cmp::Ordering::Equal => '=',
                std::cmp::Ordering::Greater => '>',
            };
            if ours != sign {
                wrong.push(format!("{name} {sign} {other_name}, not {ours}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}:\n{}", wrong.len(), wrong.join("\n"));
}
