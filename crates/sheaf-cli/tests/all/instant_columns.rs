//! Rows from before their columns, through every way that reads and writes them.
//!
//! ```text
//!   old      its rows are there, then columns come and go          fresh    made with all its columns
//! ```
//!
//! Both tables hold the same rows, so each statement has the same answer for both.

use mysql::prelude::Queryable;
use mysql::{Conn, Row};

use crate::harness::{TestServer, query_text, run, text_rows};

/// `{t}` stands for the table.
const QUERIES: &[&str] = &[
    "select * from {t} order by id",
    "select * from {t} where id = 7",
    "select id, late, note from {t} where id in (3, 30, 45)",
    "select id, label from {t} where id between 5 and 12 order by id desc",
    "select id from {t} where late = 4 order by id",
    "select id from {t} where late is null order by id",
    "select id, kind from {t} where kind = 'b' and score >= 0 order by id limit 5",
    "select id from {t} where note like 'long%' order by id",
    "select kind, count(*), sum(late), min(label), max(score), count(note) from {t} group by kind order by kind",
    "select a.id, b.id from {t} a join {t} b on a.late = b.late and a.id < b.id order by 1, 2 limit 20",
    "select id, sum(late) over (order by id) from {t} order by id",
    "select id, late + score, concat(label, '!') from {t} where number > 3 order by id",
    "select distinct late, kind from {t} order by late, kind",
    "select id from {t} where exists (select 1 from {t} c where c.id = {t}.late) order by id",
    "select late, id from {t} force index (by_late) where late between 3 and 5 order by late, id",
    "select number, id from {t} force index (by_number) where number = 4 order by id",
    "select id, length(note) from {t} order by length(note), id",
    "select id, made from {t} where made > '2000-01-01' order by made, id",
];

const CHANGES: &[&str] = &[
    "update {t} set number = number + 1 where id = 2",
    "update {t} set late = late + 1 where id < 6",
    "update {t} set note = repeat('long ', 3000), label = 'x' where id in (8, 41)",
    "update {t} set note = null where id = 41",
    "update {t} set kind = 'b' where late = 5",
    "delete from {t} where id in (1, 9, 42)",
    "insert into {t} (id, number, late) values (100, 1, 5)",
    "insert into {t} (id, number) values (2, 2) on duplicate key update score = 2.5, number = 77",
    "replace into {t} (id, number, label) values (3, 33, 'again')",
    "update {t} a join {t} b on a.late = b.id set a.score = 1.25 where a.id < 20",
];

/// Both protocols, with direct plans and without.
fn answers(c: &mut Conn, table: &str, sql: &str) -> Vec<Vec<String>> {
    let sql = sql.replace("{t}", table);
    let mut answers = Vec::new();
    for direct in ["on", "off"] {
        run(c, &[&format!("set optimizer_switch = 'direct={direct}'")]);
        answers.push(query_text(c, &sql));
        let binary: Vec<Row> = c.exec(&sql, ()).expect(&sql);
        answers.push(text_rows(binary));
    }
    run(c, &["set optimizer_switch = default"]);
    assert_eq!(answers[0], answers[2], "{sql}");
    assert_eq!(answers[1], answers[3], "{sql}");
    answers
}

fn compare(c: &mut Conn) {
    compare_rows(c);
    // It commits.
    for table in ["old", "fresh"] {
        let checked = query_text(c, &format!("check table {table}"));
        assert!(checked[0].ends_with("OK"), "{checked:?}");
    }
}

fn compare_rows(c: &mut Conn) {
    for sql in QUERIES {
        assert_eq!(answers(c, "old", sql), answers(c, "fresh", sql), "{sql}");
    }
}

#[test]
fn rows_from_before_their_columns_are_as_those_behind_them() {
    let mut server = TestServer::start();
    let mut c = server.connect_to_new("shapes");
    run(
        &mut c,
        &[
            "set timestamp = 1700000000",
            "create table old (id int primary key, gone text, number int, label varchar(20), key by_number (number))",
        ],
    );
    let of = |id: u32| {
        let gone = if id.is_multiple_of(5) {
            "repeat('gone', 4000)"
        } else {
            "'short'"
        };
        format!("({id}, {gone}, {}, concat('label ', {id}))", id % 7)
    };
    let rows = |ids: std::ops::Range<u32>| ids.map(of).collect::<Vec<_>>().join(", ");
    run(
        &mut c,
        &[
            &format!("insert into old values {}", rows(1..30)),
            "alter table old add late int default 4, add kind enum('a', 'b') not null after id",
            &format!(
                "insert into old (id, gone, number, label) values {}",
                rows(30..40)
            ),
            "update old set late = null where id % 4 = 0",
            "alter table old drop gone, add note text, add score double not null first",
            "insert into old (id, number, label, late, kind, note, score) select id + 40, number, label, id % 6, 'b', repeat('long ', id * 200), id / 2 from old where id <= 10",
            "alter table old add made timestamp not null default current_timestamp, algorithm = instant",
            "alter table old add key by_late (late, id), alter score set default 1.5",
            "create table fresh (score double not null default 1.5, id int primary key, kind enum('a', 'b') not null, number int, label varchar(20), late int default 4, note text, made timestamp not null default current_timestamp, key by_number (number), key by_late (late, id))",
            "insert into fresh select * from old",
        ],
    );
    // What made the table again would show it as it is.
    let made = |c: &mut Conn, table: &str| {
        query_text(c, &format!("show create table {table}"))[0].replace(table, "")
    };
    assert_eq!(made(&mut c, "old"), made(&mut c, "fresh"));
    compare(&mut c);
    for sql in CHANGES {
        for table in ["old", "fresh"] {
            run(&mut c, &[&sql.replace("{t}", table)]);
        }
        let all = "select * from {t} order by id";
        assert_eq!(
            answers(&mut c, "old", all),
            answers(&mut c, "fresh", all),
            "{sql}"
        );
    }
    compare(&mut c);
    // A statement that fails, and a transaction that is rolled back, leave rows as they were.
    run(&mut c, &["begin"]);
    for table in ["old", "fresh"] {
        run(
            &mut c,
            &[&format!(
                "update {table} set note = 'other', late = 0, number = 0"
            )],
        );
        let twice = format!("insert into {table} (id, number) values (500, 1), (501, 1), (500, 1)");
        assert!(c.query_drop(twice).is_err());
        run(&mut c, &[&format!("delete from {table} where id % 2 = 0")]);
    }
    compare_rows(&mut c);
    run(&mut c, &["rollback"]);
    compare(&mut c);
    drop(c);
    server.restart();
    let mut c = server.connect();
    run(&mut c, &["use shapes"]);
    compare(&mut c);
    run(&mut c, &["alter table old force", "optimize table fresh"]);
    compare(&mut c);
}
