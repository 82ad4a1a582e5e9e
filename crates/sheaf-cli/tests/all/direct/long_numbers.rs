//! Numbers of 1 to 45 digits through both ways: up to 38 digits are exact, and more of them are a DOUBLE.

use super::both_ways::Client;
use super::random::Random;
use super::random_tables::Sql;
use super::statements_direct;
use crate::harness::TestServer;

const MAX_DIGITS: usize = 45;
const COLUMNS: &[&str] = &["t", "d", "f", "i", "s"];
const STATEMENTS: usize = 300;

/// A number, perhaps with a sign, a point, and zeros in front.
fn number(random: &mut Random) -> String {
    let digits = *b"0001123456789999";
    let count = 1 + random.below(MAX_DIGITS);
    let mut number: String = (0..count)
        .map(|_| char::from(*random.pick(&digits)))
        .collect();
    if random.one_in(2) {
        number.insert(random.below(count), '.');
    }
    if random.one_in(3) {
        number.insert(0, '-');
    }
    number
}

fn statement(random: &mut Random, at: usize) -> String {
    let column = *random.pick(COLUMNS);
    let number = number(random);
    match random.below(10) {
        0 => format!("insert into k (id, {column}) values ({at}, {number})"),
        1 => format!(
            "insert into k (id, {column}) values ({at}, {number}), ({at}000, {number}), ({at}001, 1)"
        ),
        2 => format!("replace into k (id, {column}) values (1, {number})"),
        3 => format!("insert into k (id) values (1) on duplicate key update {column} = {number}"),
        4 => format!("update k set {column} = {column} + {number} where id = 1"),
        5 => format!("select id from k where {column} = {number} order by id"),
        6 => format!("select id from k where {column} < {number} order by id"),
        7 => format!("select id from k where {column} in ({number}, 1) order by id"),
        _ => format!("update k set {column} = {number} where id = 1"),
    }
}

#[test]
fn numbers_of_any_length_are_read_alike() {
    let server = TestServer::start();
    let mut direct = Client::new(&server, "dbone", "on");
    let mut vectorised = Client::new(&server, "dbtwo", "off");
    let mut both = |text: String| {
        let sql = Sql::plain(text);
        assert_eq!(
            direct.run(&sql, false),
            vectorised.run(&sql, false),
            "{}",
            sql.text
        );
    };
    // So that a number beyond its column is stored as the nearest one.
    both("set sql_mode = ''".into());
    both(
        "create table k (id int primary key, t varchar(100), d decimal(38,10), f double, i bigint, \
         s decimal(30,20), key (d), key (f), key (i))"
            .into(),
    );
    both("insert into k values (1, 'a', 1, 1, 1, 1)".into());
    let mut random = Random::new(1);
    for at in 10..10 + STATEMENTS {
        both(statement(&mut random, at));
        both("select * from k where id = 1".into());
    }
    both("select * from k order by id".into());
    let direct = statements_direct(&mut direct.connection);
    assert!(direct > 0, "no statement was direct");
}
