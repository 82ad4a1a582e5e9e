//! What direct reads compute, and what they leave to the operators.

use mysql::prelude::Queryable;

use super::both_ways::answer_of;
use super::{session_count, statements_direct};
use crate::harness::{TestServer, query_text};

/// Tables of `information_schema` are read directly as they are by operators, and then only for the names asked for.
#[test]
fn tables_of_definitions_are_read_directly() {
    let server = TestServer::start();
    let mut connection = server.connect_to_new("defined");
    for sql in [
        "create database elsewhere",
        "create table elsewhere.parents (x int)",
        "create table parents (id int primary key, name varchar(30) not null, email varchar(40), unique key (email))",
        "create table notes (id bigint auto_increment primary key, body text, at datetime(3) default now(3), key (at))",
        "create table child (id int primary key, p int, constraint of_parent foreign key (p) references parents (id) \
         on delete cascade, constraint is_positive check (p > 0))",
        "insert into parents values (5, 'notes', null)",
    ] {
        connection.query_drop(sql).expect(sql);
    }
    for sql in [
        "select table_name from information_schema.tables where table_schema = database() and table_name = 'parents'",
        "select table_name from information_schema.tables where table_schema = database() and table_name = 'PARENTS'",
        "select table_name, table_type from information_schema.tables where table_schema = 'information_schema' order by 1",
        "select TABLE_NAME as t, TABLE_ROWS from information_schema.TABLES x where x.table_schema = schema() and table_type = 'BASE TABLE' order by t",
        "select table_name from information_schema.tables where table_schema = 'nosuch'",
        "select table_name from information_schema.tables where table_schema = null",
        "select table_name from information_schema.tables where table_name like 'po%' and table_schema = 'defined' order by table_name",
        "select count(*) from information_schema.tables where table_schema = 'defined'",
        "select column_name, data_type, is_nullable from information_schema.columns where table_schema = database() and table_name = 'parents' order by ordinal_position",
        "select * from information_schema.columns where table_schema = 'defined' and table_name = 'parents' order by ordinal_position",
        "select * from information_schema.columns where table_schema = 'defined' order by table_name, ordinal_position",
        "select column_name, column_default, upper(column_type), case when is_nullable = 'YES' then 1 else 0 end as n from information_schema.columns where table_name = 'notes' and table_schema = database() order by ordinal_position",
        "select kc.constraint_name, kc.column_name, kc.referenced_table_name, kc.referenced_column_name, c.constraint_type from information_schema.key_column_usage as kc join information_schema.table_constraints as c on kc.table_schema = c.table_schema and kc.table_name = c.table_name and kc.constraint_name = c.constraint_name where kc.table_schema = database() and kc.table_name = 'child' order by kc.ordinal_position, 1",
        "select cc.constraint_name as name, cc.check_clause as expression from information_schema.check_constraints cc join information_schema.table_constraints tc on cc.constraint_schema = tc.constraint_schema and cc.constraint_name = tc.constraint_name where tc.table_schema = 'defined' and tc.table_name = 'child' and cc.constraint_schema = 'defined'",
        "select index_name as name, group_concat(column_name order by seq_in_index) as columns, index_type as type, not non_unique as uniq from information_schema.statistics where table_schema = schema() and table_name = 'parents' group by index_name, index_type, non_unique order by 1",
        "select table_name as name, (data_length + index_length) as size, table_comment as comment, engine as engine, table_collation as collation from information_schema.tables where table_schema = 'defined' and table_type in ('BASE TABLE', 'SYSTEM VERSIONED') order by table_name",
        "select table_name from (select table_name, table_type from information_schema.tables where table_schema = database()) _subquery where _subquery.table_type = 'BASE TABLE' order by 1",
        "select exists (select 1 from information_schema.tables where table_schema = 'defined' and table_name = 'notes' and table_type in ('BASE TABLE', 'SYSTEM VERSIONED')) as `exists`",
        "select schema_name, default_character_set_name from information_schema.schemata where schema_name = 'defined'",
        "select 1 from information_schema.tables where table_schema = 'defined ' and table_name = 'parents '",
        "select distinct table_name from information_schema.statistics where table_schema='defined' order by table_name",
        "select t.table_name, c.column_name from information_schema.tables t left join information_schema.columns c on c.table_schema = t.table_schema and c.table_name = t.table_name and c.column_key = 'PRI' where t.table_schema = 'defined' order by 1,2",
        "select u.id, t.table_name from parents u join information_schema.tables t on t.table_schema = 'defined' where u.id = 5 and t.table_name = u.name",
        "select table_name from information_schema.views where table_schema = database()",
        "select trigger_name from information_schema.triggers where event_object_schema = database()",
        "select column_name from information_schema.columns where table_schema = database() and table_name = 'parents' and column_name = 'email'",
        "select max(ordinal_position), count(*), table_name from information_schema.columns where table_schema = 'defined' group by table_name having count(*) > 3 order by table_name limit 3",
    ] {
        let mut answers = Vec::new();
        for direct in ["on", "off"] {
            let switch = format!("set optimizer_switch = 'direct={direct}'");
            connection.query_drop(switch).expect("a switch");
            let before = statements_direct(&mut connection);
            let result = connection.query_iter(sql);
            answers.push(answer_of(result, "defined", false));
            let is_direct = statements_direct(&mut connection) > before;
            assert_eq!(is_direct, direct == "on", "{sql}");
        }
        assert_eq!(answers[0], answers[1], "{sql}");
    }
}

/// What is computed from one row, or from none, needs no vectorised plan: each of these is direct, and means the same.
#[test]
fn what_is_computed_from_a_row_is_direct() {
    let server = TestServer::start();
    let mut c = server.connect_to_new("computed");
    let create = "create table t (id int primary key, k int not null, d decimal(8,2), c varchar(40) default 'none', \
                  at datetime(3), changed timestamp null on update current_timestamp, key k (k))";
    for sql in [
        create,
        "set timestamp = 1700000000, @n = 3, @text = 'Abc'",
        "insert into t (id, k, d, c) values (1, 5, 1.25, 'one'), (2, 6, null, 'two'), (3, 7, 9.5, null)",
    ] {
        c.query_drop(sql).expect(sql);
    }
    let statements = [
        "select k+1 from t where id = 1",
        "select K + 17, concat(c, '-', k), d * 2 as twice from t where id = 1",
        "select *, upper(c), now(), @n from t where id in (1, 2)",
        "select 1 from t where id = 2",
        "select 'x', -1, k-1 from t where id = 2",
        "select coalesce(d, k), if(k > 5, c, 'small'), case k when 5 then 'five' else c end from t where id between 1 and 3",
        "select left(c, 2), date_format(now(), '%Y-%m'), cast(k as char(5)) from t where id = 3",
        "select id from t where id between 1 and 3 and (c = 'one' or d is null)",
        "select count(*) from t where id between 1 and 3 and c like '%o%'",
        "select k / 0, k % 4 from t where k = 6",
        "select max(id) + 1, concat(min(k), '-', max(k)) from t",
        "select max(k), min(id), -max(k) as least from t",
        "select id from t where id = 2 and lower(c) = 'TWO' and left(trim(c), 2) >= 'tw'",
        "select id from t where id between 1 and 3 and (upper(c) = 'one ' or rtrim(c) = 5)",
        "select id, c from t where k = 6 or id = 1",
        "select id, c from t where k between 5 and 6 or (id = 3 and c is null) order by id desc limit 2",
        "select count(*) from t where id in (select k - 4 from t where k = 6)",
        "select c from t where id in (select id from t where k > 5) and c like 't%'",
        "select c + 1 from t where id = 1 for update",
        "select c, k, d into @i1, @i2, @i3 from t where id = 1",
        "select @i1, @i2, @i3",
        "select count(*), max(c) into @i1, @i2 from t where k between 5 and 6",
        "select row_count(), found_rows(), @i1, @i2",
        "select at, c into @i1, @i2 from t where id = 77",
        "select concat(c, '/', k), now(), d * 2 into @i1, @i2, @i3 from t where id = @n for update",
        "select coalesce(@i1, 'none'), @i2, @i3",
        "set @i1 = (select max(k) from t where id between 1 and 2)",
        "set @i2 = (select c from t where id = 77)",
        "set @i3 = ((select c from t where k = 6))",
        // NULL alone has a type that operators tell.
        "select @i1, coalesce(@i2, 'none'), @i2 is null, @i3",
        "select (select max(k) from t where id = 2), 7 into @i1, @i2",
        "select @i1, @i2",
        "select id from t where id = 7 % 4",
        "select id from t where id = floor(5 / 2) and k > 5 % 2",
        "select c from t where k = abs(-6) and id = cast('2' as unsigned)",
        "select id from t where id in (5 % 3, abs(-3), 1)",
        "select id from t where k between 11 % 6 and greatest(5, 6)",
        "select count(*), sum(k), min(d) from t",
        "select count(*) from t where c like '%o%'",
        "select id, upper(c) from t where c > 'on' order by c desc",
        "select distinct d from t",
        "select 1",
        "select last_insert_id(), row_count(), found_rows(), database(), connection_id() > 0",
        "select @@version, @@session.sql_mode as mode, @@max_allowed_packet, @@autocommit",
        "select @n + 1, 'x' as x, 'y', 2.50, -3, upper(@text), @text, @n",
        "select now(), current_date, utc_timestamp(3) + 0, current_user, version()",
        "insert into t (id, k, at) values (10, 1 + 1, now(3))",
        "insert into t (id, k, c) values (11, @n, concat(@text, 'd')), (12, default(k), default)",
        "insert into t (id, k, c) values (11, @n, concat(@text, 'd')), (12, 2, default)",
        "insert into t values (13, 1, null, upper('abc'), utc_timestamp(), curdate())",
        "insert ignore into t (id, k, c) values (13, 1, now())",
        "insert into t set id = 14, k = 2, c = upper('abc'), at = now()",
        "update t set c = 'one only' where id = 14 limit 1",
        "delete from t where id = 14 limit 1",
        "select c, @n from t where id = @n",
        "select id from t where id = last_insert_id() and k > @n",
        "update t set c = 'by variable' where id = @n",
        "update t set k = 300 + 1, d = 2 * 3.5 - 1 where id = 1",
        "update t set c = 'by remainder' where id = 7 % 4",
        "delete from t where id = mod(209, 100)",
        "select id from t where id between 1 and 3 and (c <> 'two' or k = 6) and d < 100",
        "replace into t (id, k, c) values (13, 2, 'replaced')",
        "insert into t (id, k) values (1, 9) on duplicate key update k = k + values(k), c = 'again'",
        "insert into t (id, k) values (1, 9) on duplicate key update k = values(k), at = now(), d = d * 2",
        "update t set at = now() where id = 1",
        "update t set c = concat(c, '/', id), d = d + 12.500000 where id = 1",
        "update t set c = upper(c) where id between 1 and 3",
        "update t set c = default, d = d / 3 where id = 2",
        "update t set k = k + @n where id = 3 and (c = 'x' or k = 7)",
        "update t set d = 1 / 0 where id = 3",
        "delete from t where id = 12 and k <> 3",
        "select id from t where id between 1 and 20 and c <> 'TWO' and k != 7",
        "select id from t where id between 1 and 20 and (k <> 5 or k = 5)",
        "select id from t where id > 1 and id <> 3 and k <> null order by id limit 5",
        "select count(*) from t where id between 1 and 20 and d <> 1.25 and 300 <> k",
        "insert into t (id, k, c, at) select id + 100, k, concat(c, '+'), now() from t where id = 1",
        "insert ignore into t (id, k, d) select id, k, d from t where id between 1 and 3",
        "insert into t (id, k, c) select 200, count(*), max(c) from t where id between 1 and 3",
        "insert into t (id, k) select 201, 1 from t where id = 99",
        "replace into t (id, k, d, c) select id, k + 1, coalesce(d, 1.5) * 2, upper(c) from t where id = 101",
        "insert into t (id, k) select 202, 5 where not exists (select 1 from t where id = 202)",
        "insert into t (id, k) select 202, 5 where not exists (select 1 from t where id = 202)",
        "insert into t (id, k) select id, 'abc' from t where id = 1",
        "insert into t (id, k, c) select id, k + 1, 'dup' from t where id in (1, 2) on duplicate key update k = values(k), c = concat(t.c, '+', values(c))",
        "insert into t (id, k, c) select id + 300, k, c from t where id in (1, 2) on duplicate key update k = t.k + 1",
        "insert into t (id, k, c) select id + 299, k, c from t where id in (1, 2) on duplicate key update k = t.k + 1, c = default",
        "insert into t (id, k) select id, 7 from t where id in (1, 2) on duplicate key update k = 7",
        "insert into t (id, k) select id, 7 from t where id = 1 on duplicate key update k = 'abc'",
        "delete from t where id between 100 and 300",
        "insert into t (id, k, d, c) values (15, 17 % 5, 7 / 4, concat('c', 9 % 4)), (16, 17 div 5, 1.5 / 3, concat('x', 16))",
        "insert into t (id, k, d, c) values (17, 18 % 5, 8 / 3, concat('d', 9 % 5)), (18, 19 div 5, 2.5 / 7, concat('y', 17))",
        "update t set k = case id when 15 then 5 when 16 then 6 else k end, c = case when id = 15 then 'fifteen' when id = 16 then '16' end where id in (15, 16)",
        "update t set k = case id when 17 then 7 when 18 then 8 else k end, c = case when id = 17 then null when id = 18 then 18 end where id in (17, 18)",
        "update t set c = if(k > 5, 'large', coalesce(c, 'none')), d = ifnull(d, 1) + 0.5 where id in (15, 17)",
        "update t set c = concat(c, '!'), k = k + 10 where k between 0 and 9 order by k limit 2",
        "update t set k = 1000 where id > 14 order by id desc limit 1",
        "update t set c = 'limited' where id in (1, 2, 3) order by id limit 2",
        "delete from t where k > 5 order by k desc limit 1",
        "delete from t where id between 15 and 18 order by id limit 1",
        "delete from t where id between 15 and 18 order by id desc limit 100",
        "select * from t where id between 1 and 20",
    ];
    let mut answers: Vec<Vec<String>> = Vec::new();
    for direct in ["off", "on"] {
        c.query_drop("drop table if exists t").expect("no table");
        c.query_drop(create).expect("a table");
        c.query_drop("insert into t (id, k, d, c) values (1, 5, 1.25, 'one'), (2, 6, null, 'two'), (3, 7, 9.5, null)")
            .expect("rows");
        c.query_drop(format!("set optimizer_switch = 'direct={direct}'"))
            .expect("a switch");
        let mut shown = Vec::new();
        for sql in statements {
            let before = session_count(&mut c, "Statements_direct");
            let answer = answer_of(c.query_iter(sql), "computed", false);
            let is_direct = session_count(&mut c, "Statements_direct") > before;
            // What fails is told by the other way, or in the middle of this one.
            assert!(
                is_direct == (direct == "on") || answer.error.is_some(),
                "{sql}: {direct}"
            );
            let warnings = query_text(&mut c, "show warnings");
            shown.push(format!("{sql}: {answer:?} {warnings:?}"));
        }
        answers.push(shown);
    }
    for (vectorised, direct) in answers[0].iter().zip(&answers[1]) {
        assert_eq!(vectorised, direct);
    }
}

/// What a plan has declined is not tried again on the way to the operators.
#[test]
fn a_walk_that_gives_up_is_made_once() {
    let server = TestServer::start();
    let mut c = server.connect_to_new("walked");
    c.query_drop("create table t (id int primary key, a int)")
        .expect("a table");
    let rows: Vec<String> = (0..3000).map(|id| format!("({id}, {})", id % 7)).collect();
    c.query_drop(format!("insert into t values {}", rows.join(", ")))
        .expect("rows");
    let prepared = c
        .prep("select id from t where a = ? order by id limit 1")
        .expect("prepared");
    c.query_drop("flush status").expect("a reset");
    let found: Vec<i32> = c.exec(&prepared, (7,)).expect("no rows");
    assert!(found.is_empty());
    let walks = session_count(&mut c, "Handler_read_first");
    assert!(walks > 0, "the plan walks along the key");
    c.query_drop("flush status").expect("a reset");
    let found: Vec<i32> = c
        .query("select id from t where a = 7 order by id limit 1")
        .expect("no rows");
    assert!(found.is_empty());
    assert_eq!(session_count(&mut c, "Handler_read_first"), walks);
    assert_eq!(session_count(&mut c, "Statements_direct"), 0);
}

/// The values of COUNT(DISTINCT) wait in memory, too, and are left to the operators if they are too large.
#[test]
fn distinct_values_that_do_not_fit_are_not_counted_directly() {
    let server = TestServer::start();
    let mut c = server.connect_to_new("distinct_values");
    c.query_drop("create table t (id int primary key, k int, b mediumtext, key (k))")
        .expect("a table");
    for id in 0..62 {
        let (k, length) = if id < 60 { (1, 100_000) } else { (2, 10) };
        let text = format!("{id}{}", "x".repeat(length));
        c.query_drop(format!("insert into t values ({id}, {k}, '{text}')"))
            .expect("a row");
    }
    for (sql, row, direct) in [
        (
            "select k, count(distinct b) from t where k = 1 group by k",
            "1\t60",
            0,
        ),
        (
            "select k, count(distinct b) from t where k = 2 group by k",
            "2\t2",
            1,
        ),
        (
            "select count(distinct b.b) from t a join t b on b.k = a.k where a.id = 1",
            "60",
            0,
        ),
        (
            "select count(distinct b.b) from t a join t b on b.k = a.k where a.id = 60",
            "2",
            1,
        ),
    ] {
        c.query_drop("flush status").expect("a reset");
        assert_eq!(query_text(&mut c, sql), [row], "{sql}");
        assert_eq!(session_count(&mut c, "Statements_direct"), direct, "{sql}");
    }
}
