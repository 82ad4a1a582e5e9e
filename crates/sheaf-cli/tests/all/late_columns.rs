//! Long columns that a sort with a LIMIT leaves out: the rows that are left have theirs, whatever they are.

use mysql::Conn;
use mysql::prelude::Queryable;

use crate::harness::{TestServer, query_text};

fn explained(c: &mut Conn, sql: &str) -> String {
    query_text(c, &format!("explain format=tree {sql}")).join("\n")
}

/// Each query with a LIMIT has the first rows of the same query without it.
#[test]
fn long_columns_are_read_of_the_rows_that_are_left() {
    let server = TestServer::start();
    let mut c = server.connect_to_new("late");
    for sql in [
        "create table t (id int primary key, k int, v int not null, name varchar(20), body text, data longblob, \
         wide varchar(4000), key (k))",
        "insert into t values (1, 1, 70, 'b', 'short', repeat('x', 100000), null), \
         (2, 1, 60, 'a', repeat('long ', 10000), null, repeat('w', 4000)), (3, 2, 50, null, null, '', ''), \
         (4, null, 40, 'B', 'x', repeat('y', 300000), 'w'), (5, 2, 30, 'c', '', 'z', null)",
        "insert into t select id + 5, k, v - 35, concat(name, id), concat(body, id), concat(data, id), wide from t",
        "analyze table t",
        "set optimizer_switch = 'direct=off'",
    ] {
        c.query_drop(sql).expect(sql);
    }
    let queries = [
        "select id, data from t order by v",
        "select * from t order by name, id",
        "select id, name, body, wide from t order by name desc, v desc",
        "select data as d, id as i, data as again from t where v > 10 order by v desc",
        "select id, upper(name), data from t where k = 1 or k = 2 order by v",
        "select x.id, length(x.data) from (select id, data, body from t order by v limit 4) x order by x.id",
        "select data from t order by v",
        "select id, length(data), left(body, 3) from t order by v",
        "select length(data), data, v + 1 from t where id > 2 order by v",
        "select id, length(data) from t order by length(body), v",
        "select id, length(data), left(body, 3) from t where data like '%x%' or id > 3 order by v",
        "select id, length(data), data from t where length(data) > 5 order by v",
        "select id, data from t where k = 1 order by k, name",
        "select id, data from t where name = 'b' and k = 1 order by k, name, v",
    ];
    let check = |c: &mut Conn| {
        for sql in queries {
            let all = query_text(c, sql);
            for (limit, offset) in [(0, 0), (1, 0), (3, 0), (3, 2), (4, 9), (100, 0)] {
                let some = query_text(c, &format!("{sql} limit {limit} offset {offset}"));
                let wanted = all.iter().skip(offset).take(limit);
                assert!(
                    some.iter().eq(wanted),
                    "{sql} limit {limit} offset {offset}"
                );
            }
        }
    };
    check(&mut c);
    for sql in &queries[..5] {
        let tree = explained(&mut c, &format!("{sql} limit 2"));
        assert!(tree.contains("Late lookup on t using PRIMARY: "), "{tree}");
    }
    // What is computed of them is computed late, too.
    for sql in [
        "select id, length(data) from t order by v limit 2",
        "select id, left(body, 3), upper(data) from t where k > 0 order by v desc limit 2",
        "select id, length(data) from t where body like '%o%' or id > 0 order by v limit 2",
    ] {
        let tree = explained(&mut c, sql);
        assert!(tree.contains("Late lookup on t using PRIMARY: "), "{tree}");
    }
    for sql in [
        // There is nothing that waits for the sort.
        "select id, body from t order by body limit 2",
        "select id, name from t order by name limit 2",
        // The condition has read it.
        "select id, length(data) from t where data like '%zz%' or id >= 0 order by v limit 2",
        "select id, length(data) from t where length(data) > 5 order by v + 0 limit 2",
        // All rows are wanted.
        "select id, data from t order by v",
        "select id, data from t order by v limit 5000",
    ] {
        let tree = explained(&mut c, sql);
        assert!(!tree.contains("Late lookup"), "{tree}");
    }
    // What a transaction has changed itself, and what it does not see.
    c.query_drop("begin").expect("a transaction");
    c.query_drop("update t set data = repeat('q', 200000) where id = 3")
        .expect("a change");
    c.query_drop("delete from t where id = 4")
        .expect("a change");
    c.query_drop("insert into t (id, v, data) values (100, 1, repeat('r', 150000))")
        .expect("a change");
    let options = mysql::OptsBuilder::from_opts(server.options()).db_name(Some("late"));
    let mut other = Conn::new(options).expect("a connection");
    for sql in [
        "set optimizer_switch = 'direct=off'",
        "set session transaction isolation level repeatable read",
        "begin",
        "select count(*) from t",
    ] {
        other.query_drop(sql).expect(sql);
    }
    check(&mut c);
    let before = query_text(
        &mut other,
        "select id, data, body from t order by v limit 5",
    );
    c.query_drop("commit").expect("the end");
    let after = query_text(
        &mut other,
        "select id, data, body from t order by v limit 5",
    );
    assert!(before == after);
    check(&mut other);
    // Locks are those of the rows that are read.
    let locked = query_text(
        &mut c,
        "select id, data from t order by v limit 1 for update",
    );
    assert!(locked[0].starts_with("10\t"));
}
