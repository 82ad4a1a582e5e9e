//! Writes docs/status.md from the status variables, and checks that the document is up to date.
//!
//! A variable without a [meaning](super::status_meanings) fails the test, and so does a meaning without a variable.

use std::collections::BTreeSet;

use sheaf_access::SessionCounters;
use sheaf_storage::PoolCounters;

use crate::session_parts::status::{CommandCounters, ServerGauges, entries};
use crate::session_parts::status_meanings::MEANINGS;
use crate::tests::check_document;

const OPENING: &str = "\
# Status variables

What `SHOW STATUS` lists. Names and meanings are MySQL's where MySQL has the variable. Counters marked *session* belong
to each session: `SHOW SESSION STATUS` shows a session's own, `SHOW GLOBAL STATUS` those of all, and `FLUSH STATUS`
moves the session's to the global ones. The others are about the server. This page is written by a test;
`SHEAF_WRITE_DOCS=1 cargo test --release -p sheaf-sql --lib documents` writes it anew.

| variable | of | meaning |
|---|---|---|
";

/// Variables that each session has for itself, besides counters.
const OF_SESSIONS: [&str; 4] = [
    "Compression",
    "Last_query_cost",
    "Ssl_cipher",
    "Ssl_version",
];

#[test]
fn documents_of_status_variables_are_up_to_date() {
    let (handler, commands) = (SessionCounters::default(), CommandCounters::default());
    let counted: BTreeSet<&str> = handler
        .entries()
        .into_iter()
        .chain(commands.entries())
        .map(|(name, _)| name)
        .chain(OF_SESSIONS)
        .collect();
    let gauges = ServerGauges::default();
    let all = entries(&handler, &commands, &PoolCounters::default(), &gauges, 0.0);
    let mut page = OPENING.to_string();
    let mut described = 0;
    for (name, _) in &all {
        let meaning = match name.strip_prefix("Com_") {
            Some(statement) => format!("Statements: `{}`.", statement.replace('_', " ")),
            None => {
                described += 1;
                let known = MEANINGS.iter().find(|(known, _)| known == name);
                known
                    .unwrap_or_else(|| panic!("{name} has no meaning"))
                    .1
                    .to_string()
            }
        };
        let of = match counted.contains(name) {
            true => "session",
            false => "server",
        };
        page.push_str(&format!("| `{name}` | {of} | {meaning} |\n"));
    }
    assert_eq!(described, MEANINGS.len(), "a meaning of no variable");
    check_document("status.md", &page);
}
