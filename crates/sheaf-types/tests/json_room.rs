//! Long documents, whose work may be stopped.

use std::sync::Arc;

use sheaf_memory::{StatementMemory, StopFlag};
use sheaf_types::json::JsonError;
use sheaf_types::json::text::{TextProblem, read, to_pretty, to_text};

#[test]
fn a_statement_that_shall_stop_reads_no_more_values() {
    let stop = Arc::new(StopFlag::default());
    let statement = StatementMemory::new(Arc::clone(&stop));
    let text = format!("[{}1]", "1,".repeat(100_000));
    let document = statement.during(|| read(&text)).expect("JSON");
    let whole = to_pretty(document.as_json());
    stop.raise();
    let stopped = statement.during(|| read(&text));
    assert_eq!(stopped, Err(TextProblem::Limit(JsonError::Stopped)));
    let part = statement.during(|| to_pretty(document.as_json()));
    assert!(part.len() < whole.len() / 10, "{}", part.len());
}

#[test]
fn members_in_any_order_are_sorted_in_runs() {
    let count = 200_000u64;
    let key = |number: u64| number.wrapping_mul(7919) % count;
    let members: Vec<_> = (0..count).map(|n| format!("\"{}\":{n}", key(n))).collect();
    let text = format!("{{{},\"5\":-1}}", members.join(","));
    let document = read(&text).expect("JSON");
    let object = document.as_json().as_object().expect("an object");
    assert_eq!(object.iter().count(), count as usize);
    let (first, _) = object.iter().next().expect("a member");
    assert_eq!(first, "0");
    let five = object
        .iter()
        .find(|(key, _)| *key == "5")
        .expect("a member");
    assert_eq!(to_text(five.1), "-1");
}
