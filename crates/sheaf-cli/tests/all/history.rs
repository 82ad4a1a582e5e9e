//! Random transactions of several sessions, and a checker of what they saw (Adya, "Weak Consistency", 1999).
//!
//! Every row is a list, and every write appends a number that no other write of the row appends. So the list that a row
//! has in the end is the order of its versions, and a list that was read says which version it was (the idea of Elle:
//! Kingsbury and Alvaro, VLDB 2020). From that follows which transaction depends on which:
//!
//! ```text
//!   final list  1 2 3        ww  writer of 1  -> writer of 2 -> writer of 3
//!   a reader read 1 2        wr  writer of 2  -> the reader
//!                            rw  the reader   -> writer of 3
//! ```
//!
//! A row that is not there is an empty list, so a range that was read without it depends on the transaction that
//! inserts it: phantoms are edges like others.
//!
//! | level | checked |
//! |---|---|
//! | all | what is committed is there, what is not was never read (G1a), nor half of what one wrote (G1b); no cycle of ww (G0), nor of ww and wr (G1c) |
//! | REPEATABLE READ | a plain read finds what the one before found, unless the transaction has changed the row itself |
//! | SERIALIZABLE | no cycle at all (G2) |

use std::collections::{BTreeMap, BTreeSet};

use mysql::Conn;
use mysql::prelude::Queryable;

use crate::harness::{TestServer, query_text};
use crate::transactions::Random;

const SESSIONS: u64 = 6;
const TRANSACTIONS_OF_SESSION: u64 = 200;
/// Keys are below this; half of the rows are there from the start.
const KEYS: u64 = 16;
const GROUPS: u64 = 4;
/// Finds rows by keys that it takes from another table.
const JOIN: &str =
    "select /*+ JOIN_ORDER(picks, lists) BKA(lists) */ lists.id, list from picks join lists";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Level {
    ReadCommitted,
    RepeatableRead,
    Serializable,
}

/// A version of a row: all that was appended to it so far.
type List = Vec<u64>;

#[derive(Debug)]
enum Event {
    /// Rows that were read, absent ones as empty lists.
    Read {
        rows: BTreeMap<u64, List>,
        plain: bool,
    },
    /// A number was appended to these rows, as far as they are there; `surely` if each of them is.
    Append {
        keys: Vec<u64>,
        number: u64,
        surely: bool,
    },
}

struct Transaction {
    events: Vec<Event>,
    committed: bool,
}

/// Runs a session's transactions. The numbers it appends are its own.
fn run_session(mut c: Conn, level: Level, session: u64, seed: u64) -> Vec<Transaction> {
    let mut random = Random(seed ^ (session << 32));
    let mut next_number = 1 + session * 1_000_000;
    let mut transactions = Vec::new();
    for _ in 0..TRANSACTIONS_OF_SESSION {
        c.query_drop("begin").expect("begin");
        let mut events = Vec::new();
        let steps = 1 + random.below(4);
        let outcome = (0..steps).try_for_each(|_| {
            let event = step(&mut c, level, &mut random, &mut next_number)?;
            events.push(event);
            Ok(())
        });
        let committed = match outcome {
            Ok(()) if random.below(8) > 0 => {
                c.query_drop("commit").expect("commit");
                true
            }
            Ok(()) => {
                c.query_drop("rollback").expect("rollback");
                false
            }
            Err(mysql::Error::MySqlError(error)) => {
                assert_eq!(error.code, 1213, "{error}");
                false
            }
            Err(error) => panic!("{error}"),
        };
        transactions.push(Transaction { events, committed });
    }
    transactions
}

/// One statement.
fn step(
    c: &mut Conn,
    level: Level,
    random: &mut Random,
    next_number: &mut u64,
) -> mysql::Result<Event> {
    let key = random.below(KEYS);
    let high = (key + random.below(4)).min(KEYS - 1);
    let group = random.below(GROUPS);
    let lock = ["", "", "", " for update", " for share"][random.below(5) as usize];
    let mut read = |condition: String, keys: Vec<u64>, lock: &str| {
        let sql = match condition.starts_with("on ") {
            true => format!("{JOIN} {condition}{lock}"),
            false => format!("select id, list from lists {condition}{lock}"),
        };
        let found: Vec<(u64, String)> = c.query(sql)?;
        let mut rows: BTreeMap<u64, List> =
            keys.into_iter().map(|key| (key, List::new())).collect();
        for (id, list) in found {
            let numbers = list
                .split_terminator(' ')
                .map(|n| n.parse().expect("a number"));
            rows.insert(id, numbers.collect());
        }
        let plain = lock.is_empty();
        Ok(Event::Read { rows, plain })
    };
    let in_group = || (0..KEYS).filter(|key| key % GROUPS == group).collect();
    // Nobody changes the other table of a join.
    let lock_of_join = match lock {
        "" => "",
        " for update" => " for update of lists",
        _ => " for share of lists",
    };
    match random.below(12) {
        0 | 1 => read(format!("where id = {key}"), vec![key], lock),
        2 => read(
            format!("where id between {key} and {high}"),
            (key..=high).collect(),
            lock,
        ),
        3 => read(
            format!("force index (tag) where tag = {group}"),
            in_group(),
            lock,
        ),
        10 => read(
            format!("on lists.tag = picks.tag where picks.id between {group} and {group}"),
            in_group(),
            lock_of_join,
        ),
        11 => read(
            format!("on lists.id = picks.id where picks.id between {key} and {high}"),
            (key..=high).collect(),
            lock_of_join,
        ),
        // A scan of everything, whose condition no index serves.
        4 if level != Level::Serializable || random.below(4) == 0 => {
            read(format!("where id % {GROUPS} = {group}"), in_group(), "")
        }
        kind => {
            let number = *next_number;
            *next_number += 1;
            let (sql, keys, surely) = match kind {
                4..=6 => (
                    format!(
                        "insert into lists values ({key}, {}, '{number} ')
                         on duplicate key update list = concat(list, '{number} ')",
                        key % GROUPS
                    ),
                    vec![key],
                    true,
                ),
                7 => (
                    format!("update lists set list = concat(list, '{number} ') where id = {key}"),
                    vec![key],
                    false,
                ),
                8 => (
                    format!(
                        "update lists set list = concat(list, '{number} ') where id between {key} and {high}"
                    ),
                    (key..=high).collect(),
                    false,
                ),
                _ => (
                    format!(
                        "update lists force index (tag) set list = concat(list, '{number} ')
                         where tag = {group} and id >= {key}"
                    ),
                    (key..KEYS).filter(|key| key % GROUPS == group).collect(),
                    false,
                ),
            };
            c.query_drop(sql)?;
            if kind == 7 && c.affected_rows() == 0 {
                // It has found out that there is no such row.
                return Ok(Event::Read {
                    rows: BTreeMap::from([(key, List::new())]),
                    plain: false,
                });
            }
            Ok(Event::Append {
                keys,
                number,
                surely,
            })
        }
    }
}

/// What is known of a run.
struct History {
    transactions: Vec<Transaction>,
    lists: BTreeMap<u64, List>,
    /// The transaction that appended a number.
    writers: BTreeMap<u64, usize>,
}

/// Why one transaction comes before another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Edge {
    WriteWrite,
    WriteRead,
    ReadWrite,
}

impl History {
    fn new(transactions: Vec<Transaction>, lists: BTreeMap<u64, List>) -> History {
        let mut writers = BTreeMap::new();
        for (position, transaction) in transactions.iter().enumerate() {
            for event in &transaction.events {
                if let Event::Append { number, .. } = event {
                    writers.insert(*number, position);
                }
            }
        }
        History {
            transactions,
            lists,
            writers,
        }
    }

    fn list(&self, key: u64) -> &[u64] {
        self.lists.get(&key).map_or(&[], Vec::as_slice)
    }

    fn committed(&self) -> impl Iterator<Item = (usize, &Transaction)> {
        let transactions = self.transactions.iter().enumerate();
        transactions.filter(|(_, transaction)| transaction.committed)
    }

    /// Nothing that was committed is lost, and nothing else is there.
    fn check_lists(&self) {
        for (key, list) in &self.lists {
            let distinct: BTreeSet<_> = list.iter().collect();
            assert_eq!(distinct.len(), list.len(), "a number twice in row {key}");
            for number in list {
                let writer = &self.transactions[self.writers[number]];
                assert!(writer.committed, "{number} of row {key} was rolled back");
            }
        }
        for (_, transaction) in self.committed() {
            for event in &transaction.events {
                if let Event::Append {
                    keys,
                    number,
                    surely: true,
                } = event
                {
                    let is_there = |key: &u64| self.list(*key).contains(number);
                    assert!(keys.iter().all(is_there), "{number} is lost");
                }
            }
        }
    }

    /// Every list that was read was there once, and whole (G1a and G1b).
    fn check_reads(&self) {
        for (reader, transaction) in self.committed() {
            for event in &transaction.events {
                let Event::Read { rows, .. } = event else {
                    continue;
                };
                for (key, read) in rows {
                    let list = self.list(*key);
                    assert!(
                        list.starts_with(read),
                        "transaction {reader} read {read:?} of row {key}, which became {list:?}"
                    );
                    let writer = |number: Option<&u64>| number.map(|number| self.writers[number]);
                    let last = writer(read.last());
                    assert!(
                        last.is_none()
                            || last == Some(reader)
                            || last != writer(list.get(read.len())),
                        "transaction {reader} read a part of what {last:?} wrote to row {key}"
                    );
                }
            }
        }
    }

    /// Plain reads of a transaction find the same again, but for rows that it writes.
    fn check_stability(&self) {
        for (reader, transaction) in self.transactions.iter().enumerate() {
            let mut seen: BTreeMap<u64, &List> = BTreeMap::new();
            let mut written = BTreeSet::new();
            for event in &transaction.events {
                match event {
                    Event::Append { keys, .. } => written.extend(keys.iter().copied()),
                    Event::Read { rows, plain: true } => {
                        for (key, list) in rows.iter().filter(|(key, _)| !written.contains(*key)) {
                            let before = *seen.entry(*key).or_insert(list);
                            assert_eq!(before, list, "transaction {reader}, row {key}");
                        }
                    }
                    Event::Read { .. } => {}
                }
            }
        }
    }

    fn edges(&self, wanted: &[Edge]) -> BTreeMap<usize, BTreeSet<(usize, Edge)>> {
        let mut edges: BTreeMap<usize, BTreeSet<(usize, Edge)>> = BTreeMap::new();
        let mut add = |from: usize, to: usize, edge: Edge| {
            if from != to && wanted.contains(&edge) {
                edges.entry(from).or_default().insert((to, edge));
            }
        };
        for list in self.lists.values() {
            for pair in list.windows(2) {
                let writers = (self.writers[&pair[0]], self.writers[&pair[1]]);
                add(writers.0, writers.1, Edge::WriteWrite);
            }
        }
        for (reader, transaction) in self.committed() {
            for event in &transaction.events {
                let Event::Read { rows, .. } = event else {
                    continue;
                };
                for (key, read) in rows {
                    if let Some(last) = read.last() {
                        add(self.writers[last], reader, Edge::WriteRead);
                    }
                    if let Some(next) = self.list(*key).get(read.len()) {
                        add(reader, self.writers[next], Edge::ReadWrite);
                    }
                }
            }
        }
        edges
    }

    /// No transaction comes before itself.
    fn check_acyclic(&self, wanted: &[Edge]) {
        let edges = self.edges(wanted);
        let mut done = BTreeSet::new();
        for &start in edges.keys() {
            // The path from the start, each with the edges that are still to be followed.
            let mut path: Vec<(usize, Vec<(usize, Edge)>)> = Vec::new();
            let mut next = Some(start);
            loop {
                if let Some(node) = next.take().filter(|node| !done.contains(node)) {
                    let cycle: Vec<_> = path
                        .iter()
                        .map(|(on_path, _)| *on_path)
                        .skip_while(|on_path| *on_path != node)
                        .collect();
                    assert!(
                        cycle.is_empty(),
                        "a cycle of {wanted:?}:\n{}",
                        self.described(&cycle)
                    );
                    let ahead = edges.get(&node).into_iter().flatten().copied().collect();
                    path.push((node, ahead));
                }
                let Some((node, ahead)) = path.last_mut() else {
                    break;
                };
                match ahead.pop() {
                    Some((to, _)) => next = Some(to),
                    None => {
                        done.insert(*node);
                        path.pop();
                    }
                }
            }
        }
    }

    fn described(&self, cycle: &[usize]) -> String {
        let line = |transaction: &usize| {
            format!(
                "{transaction}: {:?}\n",
                self.transactions[*transaction].events
            )
        };
        cycle.iter().map(line).collect()
    }
}

fn run_history(level: Level, seed: u64) -> History {
    let server = TestServer::start();
    let mut admin = server.connect_to_new("history");
    let create = "create table lists (id int primary key, tag int not null, list text not null, key tag (tag))";
    admin.query_drop(create).expect(create);
    for key in (0..KEYS).step_by(2) {
        let sql = format!("insert into lists values ({key}, {}, '')", key % GROUPS);
        admin.query_drop(&sql).expect(&sql);
    }
    let create = "create table picks (id int primary key, tag int not null)";
    admin.query_drop(create).expect(create);
    for key in 0..KEYS {
        let sql = format!("insert into picks values ({key}, {})", key % GROUPS);
        admin.query_drop(&sql).expect(&sql);
    }
    for column in ["tag", "id"] {
        let sql = format!(
            "explain {JOIN} on lists.{column} = picks.{column} where picks.id between 1 and 2"
        );
        let plan = query_text(&mut admin, &sql).join("\n");
        assert!(plan.contains("Batched Key Access"), "{plan}");
    }
    let name = match level {
        Level::ReadCommitted => "read committed",
        Level::RepeatableRead => "repeatable read",
        Level::Serializable => "serializable",
    };
    let transactions = std::thread::scope(|scope| {
        let sessions: Vec<_> = (0..SESSIONS)
            .map(|session| {
                let mut c = server.connect();
                c.query_drop("use history").expect("the database");
                let set = format!("set session transaction isolation level {name}");
                c.query_drop(&set).expect(&set);
                scope.spawn(move || run_session(c, level, session, seed))
            })
            .collect();
        let transactions = sessions
            .into_iter()
            .map(|session| session.join().expect("a session ends well"));
        transactions.flatten().collect()
    });
    let found: Vec<(u64, String)> = admin.query("select id, list from lists").expect("lists");
    let lists = found.into_iter().map(|(id, list)| {
        let numbers = list
            .split_terminator(' ')
            .map(|n| n.parse().expect("a number"));
        (id, numbers.collect())
    });
    History::new(transactions, lists.collect())
}

fn check(level: Level, seed: u64) {
    println!("{level:?}, seed {seed}");
    let history = run_history(level, seed);
    // Enough of them must have got through, or there was nothing to check.
    let committed = history.committed().count();
    let all = history.transactions.len();
    println!("{committed} of {all} transactions committed");
    assert!(committed * 10 > all, "{committed} of {all} committed");
    history.check_lists();
    history.check_reads();
    history.check_acyclic(&[Edge::WriteWrite]);
    history.check_acyclic(&[Edge::WriteWrite, Edge::WriteRead]);
    match level {
        Level::ReadCommitted => {}
        Level::RepeatableRead => history.check_stability(),
        Level::Serializable => {
            history.check_acyclic(&[Edge::WriteWrite, Edge::WriteRead, Edge::ReadWrite]);
        }
    }
}

#[test]
fn read_committed_histories_show_only_what_was_committed() {
    check(Level::ReadCommitted, 1);
}

#[test]
fn repeatable_read_histories_are_stable_and_show_only_what_was_committed() {
    check(Level::RepeatableRead, 2);
}

#[test]
fn serializable_histories_have_no_cycle() {
    check(Level::Serializable, 3);
}

/// The checker itself: it finds what it looks for.
#[test]
fn the_checker_finds_write_skew_and_lost_writes() {
    let read = |key: u64, list: &[u64]| Event::Read {
        rows: BTreeMap::from([(key, list.to_vec())]),
        plain: true,
    };
    let append = |key: u64, number: u64| Event::Append {
        keys: vec![key],
        number,
        surely: true,
    };
    let committed = |events: Vec<Event>| Transaction {
        events,
        committed: true,
    };
    let all = [Edge::WriteWrite, Edge::WriteRead, Edge::ReadWrite];
    let fails = |check: &dyn Fn(&History), history: &History| {
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| check(history))).is_err()
    };
    let skew = History::new(
        vec![
            committed(vec![read(1, &[]), append(2, 20)]),
            committed(vec![read(2, &[]), append(1, 10)]),
        ],
        BTreeMap::from([(1, vec![10]), (2, vec![20])]),
    );
    skew.check_lists();
    skew.check_reads();
    skew.check_acyclic(&[Edge::WriteWrite, Edge::WriteRead]);
    assert!(fails(&|history| history.check_acyclic(&all), &skew));
    let lost = History::new(
        vec![
            committed(vec![append(1, 10)]),
            committed(vec![append(1, 11)]),
        ],
        BTreeMap::from([(1, vec![11])]),
    );
    assert!(fails(&History::check_lists, &lost));
    let unstable = History::new(
        vec![
            committed(vec![read(1, &[]), read(1, &[10])]),
            committed(vec![append(1, 10)]),
        ],
        BTreeMap::from([(1, vec![10])]),
    );
    assert!(fails(&History::check_stability, &unstable));
}
