use super::{Digest, Reading};

fn text(statement: &str) -> String {
    Digest::of(statement, Reading::default(), 1024).text
}

/// What MySQL 9.7 says of each.
#[test]
fn texts_are_those_of_mysql() {
    for (statement, expected) in [
        (
            "select c  from t /* page 7 */ where id in (1, 2) and b = 'x' -- rest",
            "SELECT `c` FROM `t` WHERE `id` IN (...) AND `b` = ?",
        ),
        ("select 1;", "SELECT ?"),
        (
            "insert into t values (1,2),(3,4)",
            "INSERT INTO `t` VALUES (...) /* , ... */",
        ),
        (
            "insert into t values (1),(3)",
            "INSERT INTO `t` VALUES (?) /* , ... */",
        ),
        (
            "insert into t values (1,null),(3,default)",
            "INSERT INTO `t` VALUES (...) , ( ? , DEFAULT )",
        ),
        (
            "select 1, -1, a-1, a - -1, (1), 'a' 'b', null, not null",
            "SELECT ?, ... , `a` - ? , `a` - ? , (?) , ? ?, ... , NOT ?",
        ),
        (
            "select a from t where a is not null and b = null and c = -'x'",
            "SELECT `a` FROM `t` WHERE `a` IS NOT NULL AND `b` = ? AND `c` = - ?",
        ),
        (
            "select t.status, status, status.x, a.b.c, a.1 from t",
            "SELECT `t` . `status` , STATUS , `status` . `x` , `a` . `b` . `c` , `a` . `1` FROM `t`",
        ),
        (
            "select count(*), count (a), foo(a), `foo`(b), substr(a, 1) from t",
            "SELECT COUNT ( * ) , `count` ( `a` ) , `foo` ( `a` ) , `foo` ( `b` ) , SUBSTRING ( `a` , ? ) FROM `t`",
        ),
        (
            "select a from t group by 1, 2 order by 1 desc, a, 0 limit 10, 20",
            "SELECT `a` FROM `t` GROUP BY 1 , 2 ORDER BY 1 DESC , `a` , ? LIMIT ?, ...",
        ),
        (
            "select a from t order by 1+1, 2",
            "SELECT `a` FROM `t` ORDER BY ? + ?, ...",
        ),
        (
            "select @a, @`b`, @@sql_mode, @@session.x, @a:=1",
            "SELECT @? , @`b` , @@`sql_mode` , @@SESSION . `x` , @? := ?",
        ),
        (
            "create user u@localhost identified by 'x'",
            "CREATE SYSTEM_USER `u` @? IDENTIFIED BY ?",
        ),
        (
            "select /*+ BKA(t1@qb) NO_ICP(t i) */ a from t",
            "SELECT /*+ BKA ( `t1`@`qb` ) NO_ICP ( `t` `i` ) */ `a` FROM `t`",
        ),
        (
            "update /* no hint */ t set /*+ none */ a = 1",
            "UPDATE `t` SET `a` = ?",
        ),
        (
            "select x'41', 0x41, 0b1, 1e5, .5, 1., 1a, 0x1G, 1e5a, _latin1'x', n'y'",
            "SELECT ?, ... , `1a` , `0x1G` , ? `a` , (_charset) ?, ...",
        ),
        (
            "select a->'$.x', a->>'$.y', a<>b, a<=>c, a || b from t",
            "SELECT `a` -> ? , `a` ->> ? , `a` != `b` , `a` <=> `c` , `a` || `b` FROM `t`",
        ),
        (
            "select /*!80000 1 + */ 2, `a``b`, é",
            "SELECT ? + ? , `a`b` , `é`",
        ),
        (
            "create table t (a int null, b varchar(10) default null, c double)",
            "CREATE TABLE `t` ( `a` INTEGER NULL , `b` VARCHARACTER (?) DEFAULT ? , `c` FLOAT8 )",
        ),
    ] {
        assert_eq!(text(statement), expected);
    }
}

#[test]
fn lists_of_any_length_are_one() {
    let list = |length: usize| {
        let values = vec!["1"; length].join(",");
        text(&format!("select a from t where b in ({values})"))
    };
    assert_eq!(list(1), list(5));
    assert_eq!(list(2), list(50_000));
}

#[test]
fn sql_mode_says_what_quotes_and_spaces_mean() {
    let read = |ansi_quotes, ignore_space| {
        let reading = Reading {
            ansi_quotes,
            ignore_space,
        };
        Digest::of("select \"a\"\"b\", sum (c)", reading, 1024).text
    };
    assert_eq!(read(false, false), "SELECT ? , `sum` ( `c` )");
    assert_eq!(read(true, true), "SELECT `a\"b` , SUM ( `c` )");
}

#[test]
fn no_more_tokens_are_kept_than_there_is_room_for() {
    let cut = |most| Digest::of("select abc from t", Reading::default(), most).text;
    assert_eq!(cut(0), "");
    assert_eq!(cut(2), "SELECT");
    assert_eq!(cut(8), "SELECT");
    assert_eq!(cut(9), "SELECT `abc`");
    assert_eq!(cut(100), "SELECT `abc` FROM `t`");
}

#[test]
fn what_is_done_to_a_statement_stands_in_front_of_it() {
    let statement = Digest::of("select 1", Reading::default(), 1024);
    let executed = statement.behind("EXECUTE");
    assert_eq!(executed.text, "EXECUTE SELECT ?");
    assert_ne!(executed.hex(), statement.hex());
}

#[test]
fn broken_texts_have_digests() {
    for statement in [
        "",
        ";",
        "'",
        "`",
        "\"",
        "/*",
        "/*+",
        "select /*+",
        "@",
        "@@",
        "@.",
        "1e",
        "0x",
        ".",
        "x'",
        "select ))) ,,,",
        "\u{0}",
        "#",
        "--",
        "$",
        "_",
        "\\",
        "select /*+ *",
        "/*!",
        "/*!80000",
    ] {
        let digest = Digest::of(statement, Reading::default(), 1024);
        assert_eq!(digest.hex().len(), 64);
    }
}
