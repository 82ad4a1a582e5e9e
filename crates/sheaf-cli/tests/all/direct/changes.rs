//! Direct changes: what they lock, and INSERTs of many rows of one form.

use mysql::prelude::Queryable;
use mysql::{Conn, OptsBuilder};

use super::both_ways::Client;
use super::random_tables::Sql;
use super::{session_count, statements_direct};
use crate::harness::TestServer;

/// What the query of an UPDATE or DELETE has searched is locked, of the tables that change and of those that are read.
#[test]
fn changes_of_what_a_query_finds_lock_what_it_has_searched() {
    let server = TestServer::start();
    let mut connection = server.connect_to_new("searched");
    for sql in [
        "create table t (id int primary key, k int, n int, key k (k))",
        "create table u (id int primary key, m int)",
        "insert into t values (1, 1, 0), (2, 1, 0), (3, 5, 0), (4, 9, 0)",
        "insert into u values (1, 1), (5, 5), (9, 9)",
    ] {
        connection.query_drop(sql).expect(sql);
    }
    let options = OptsBuilder::from_opts(server.options()).db_name(Some("searched"));
    let mut other = Conn::new(options).expect("a connection");
    other
        .query_drop("set innodb_lock_wait_timeout = 1")
        .expect("a timeout");
    let changes = [
        "update t join u on u.id = t.k set t.n = t.n + 1 where u.id = 1",
        "delete t from u join t on t.k = u.id where u.id = 1",
        "update t set n = (select m from u where id = 1) where k = 1",
        "delete from t where k in (select id from u where id = 1)",
        "update t set n = n + 1 where k in (select id from u where id = 1)",
    ];
    let tries = [
        // With the rows that the change finds, and between them.
        ("update t set n = 7 where id = 2", true, true),
        ("insert into t values (10, 1, 0)", true, false),
        ("update t set k = 1 where id = 4", true, false),
        // What was only read.
        ("update u set m = 2 where id = 1", true, false),
        // Elsewhere in the tables.
        ("insert into t values (11, 9, 0)", false, false),
        ("update t set n = 7 where id = 3", false, false),
        ("update u set m = 2 where id = 5", false, false),
    ];
    for level in ["repeatable read", "read committed"] {
        for change in changes {
            let begin = format!("set session transaction isolation level {level}");
            connection.query_drop(begin).expect("a level");
            for (sql, waits, waits_for_rows) in tries {
                let waits = if level == "read committed" {
                    waits_for_rows
                } else {
                    waits
                };
                connection.query_drop("begin").expect("a transaction");
                let before = statements_direct(&mut connection);
                connection.query_drop(change).expect(change);
                assert!(statements_direct(&mut connection) > before, "{change}");
                other.query_drop("begin").expect("a transaction");
                let waited = other.query_drop(sql).is_err();
                other.query_drop("rollback").expect("a rollback");
                connection.query_drop("rollback").expect("a rollback");
                assert_eq!(waited, waits, "{level}: {change}: {sql}");
            }
        }
    }
}

/// INSERTs of many rows that look alike are read without a syntax tree, and do what they do with one.
#[test]
fn rows_that_look_alike_are_inserted_as_others_are() {
    let server = TestServer::start();
    let mut direct = Client::new(&server, "dbone", "on");
    let mut parsed = Client::new(&server, "dbtwo", "off");
    let mut both = |text: &str| {
        let sql = Sql::plain(text.into());
        let (one, two) = (direct.run(&sql, false), parsed.run(&sql, false));
        let end = text.floor_char_boundary(200);
        assert_eq!(one, two, "{}", &text[..end]);
    };
    both("set timestamp = 1700000000.5, @n = 7, @text = 'Abc'");
    both(
        "create table t (id int primary key auto_increment, i tinyint, u bigint unsigned default 4, d decimal(8,2), f double, \
         c varchar(12) default 'none', b varbinary(12), e enum('a','b'), day date, at datetime(3), \
         changed timestamp null default current_timestamp, j text not null, unique key (u))",
    );
    let rows = |row: &dyn Fn(usize) -> String| {
        let rows = (1..=60).map(row);
        rows.collect::<Vec<_>>().join(",\n ")
    };
    let padding = "x".repeat(20);
    let heads = [
        "insert into t (i, u, d, f, c, b, e, day, at, j)",
        "insert ignore into t (i, u, d, f, c, b, e, day, at, j)",
        "replace into `t` (i,u,d,f,c,b,e,day,at,j)",
    ];
    for mode in [
        "",
        "strict_trans_tables,no_zero_date",
        "no_auto_value_on_zero",
    ] {
        both(&format!("set sql_mode = '{mode}'"));
        for head in heads {
            let lists = [
                rows(&|n| {
                    format!(
                        "({n},{n},{n}.5,-{n}.25,'c{n}','b{n}','a','2024-01-{n:02}',now(),'{padding}')"
                    )
                }),
                rows(&|n| {
                    format!(
                        "({}, {}, {n}.555, {n}, 'it''s\\'{n}\\n', '\\0{n}', 2, '2024-02-03', '2024-02-03 04:05:06.7', 'é')",
                        n * 5,
                        n + 100
                    )
                }),
                rows(&|n| format!("(NULL,{n},null,NULL,'{n}',NULL,null,NULL,NULL,{n})")),
                rows(&|n| {
                    format!(
                        "({n},{n}000,'{n}',' {n}.5','12345678901234567890','ü','x','0000-00-00','nonsense','%\\%\\_')"
                    )
                }),
                rows(&|n| {
                    format!(
                        "(default,{n},-99999999999{n},12345678901234567890123.5,@text,@n,'B',curdate(),@text,NULL)"
                    )
                }),
                rows(&|n| {
                    let (u, day) = (["1", "default", "null"][n % 3], ["now()", "NULL"][n / 31]);
                    format!("({n},{n},{n},{u},'c','b','a',{day},@text,'{padding}')")
                }),
                rows(&|n| {
                    format!("({n},-1,{n},{n},{n},{n},{n},20240102,20240102030405,concat('a',{n}))")
                }),
                rows(&|n| {
                    format!(
                        "({n},{n},1,1,'a','b','a',now(),now(),'{padding}'{})",
                        if n == 40 { ",1" } else { "" }
                    )
                }),
                rows(&|n| {
                    format!(
                        "({n},{n},1,1,'a','b','a',now(),now(),{})",
                        if n == 40 { "1+1" } else { "'a'" }
                    )
                }),
            ];
            for list in &lists {
                both(&format!("{head} values {list}"));
                both("select * from t order by id");
                both(&format!("{head}\nVALUES{list};"));
                both("select count(*), last_insert_id() from t");
                both(&format!(
                    "insert into t (i, u, d, f, c, b, e, day, at, j) values {list} \
                     on duplicate key update i = i + 1, c = 'again', d = values(d) + 0.5"
                ));
                both("select * from t order by id");
                both("delete from t where u < 1000");
            }
            both("truncate table t");
        }
    }
    both(&format!(
        "insert into t values {}",
        rows(&|n| format!("({n},{n},{n},1,1,'a','b','a',now(),now(),null,'{padding}')"))
    ));
    both(&format!(
        "insert into t (nothing) values {}",
        rows(&|n| format!("({n}, '{padding}')"))
    ));
    both(&format!(
        "insert into nothing values {}",
        rows(&|n| format!("({n}, '{padding}')"))
    ));
    both("begin");
    both(&format!(
        "insert into t (i, u, j) value {}",
        rows(&|n| format!("(0, 5{n}, '{padding}')"))
    ));
    both("rollback");
    both("select * from t order by id");
    let direct = session_count(&mut direct.connection, "Statements_direct");
    assert!(direct > 100, "only {direct} statements were direct");
}
