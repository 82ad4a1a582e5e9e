//! SELECT over rows that keys have found: groups, orders, aggregates and filters of expressions, all direct and with
//! the answers of the vectorised path.

use mysql::prelude::Queryable;
use mysql::{Conn, Value};

use crate::harness::{TestServer, query_text};

const SETUP: [&str; 8] = [
    "create table author (id int primary key, name varchar(40) not null, email varchar(60) collate utf8mb4_bin unique, \
     team int, key (team))",
    "create table post (id int primary key, author int not null, title varchar(60), status varchar(10) not null, \
     score decimal(8,2), views int unsigned not null, ratio double, at datetime(3), key (author, at), key (status))",
    "create table tag (post int not null, tag int not null, primary key (post, tag))",
    "insert into author values (1, 'Ann', 'ann@x', 1), (2, 'bob', 'Bob@x', 1), (3, 'Cy', null, null), (4, 'Dora', 'd@x', 2)",
    "insert into post values (1, 1, 'one', 'draft', 1.25, 10, 0.5, '2024-01-01 10:00:00.250'), \
     (2, 1, 'Two', 'public', null, 20, null, '2024-01-02'), (3, 1, 'two', 'public', 9.5, 5, 0.25, null), \
     (4, 2, null, 'draft', 3.75, 0, 2, '2024-02-29'), (5, 2, 'five', 'public', 3.75, 4000000000, 8, '2023-12-31 23:59:59'), \
     (6, 9, 'lost', 'draft', 0, 1, 1, '2024-01-01')",
    "insert into tag values (1, 7), (1, 8), (2, 7), (3, 9), (5, 7), (5, 8)",
    "analyze table author, post, tag",
    "set timestamp = 1700000000, @n = 2",
];

/// With the parameters of the prepared form, which has `?` in the places of `$`.
const STATEMENTS: [(&str, &[&str]); 140] = [
    (
        "select p.id, upper(p.title), concat(a.name, ' <', a.email, '>') as who from post p join author a on a.id = p.author where p.id = $",
        &["1"],
    ),
    (
        "select p.id, coalesce(a.name, 'nobody') as who, date(p.at) from post p left join author a on a.id = p.author where p.id in ($, $, $) order by p.id",
        &["1", "6", "4"],
    ),
    (
        "select p.id from post p left join author a on a.id = p.author where p.id in ($, $) and a.id is null",
        &["6", "1"],
    ),
    (
        "select a.* from author a join post p on p.author = a.id and p.score is null where p.author = $",
        &["1"],
    ),
    (
        "select a.id, a.name, count(p.id) as posts from author a left join post p on p.author = a.id where a.id = $ group by a.id, a.name",
        &["3"],
    ),
    (
        "select a.id, count(p.id), sum(p.views) from author a left join post p on p.author = a.id where a.id in ($, $, $) group by a.id order by a.id",
        &["1", "2", "3"],
    ),
    (
        "select lower(title) as t, count(*) + 0, count(distinct status), sum(distinct views) from post where author = $ group by title order by t",
        &["1"],
    ),
    (
        "select count(*) + 0, max(views) + 1, coalesce(sum(views), 0), min(title), avg(score) from post where author = $",
        &["77"],
    ),
    (
        "select author, max(upper(title)), min(status), count(score) * 2 from post where author in ($, $) group by author having count(*) > $ and max(views) > $ order by author desc",
        &["1", "2", "1", "5"],
    ),
    (
        "select p.author, a.name, count(t.tag) + 0 as n from post p left join author a on a.id = p.author left join tag t on t.post = p.id where p.id in ($, $, $) group by p.author, a.name order by n desc, p.author",
        &["1", "4", "6"],
    ),
    (
        "select case when views > $ then 'much' else 'little' end as k, sum(if(score is null, 1, 0)), max(at) from post where author = $ group by k order by k",
        &["7", "1"],
    ),
    (
        "select title, score, score is null as missing from post where author = $ and views + 0 < $ order by missing desc, upper(title), id",
        &["1", "15"],
    ),
    (
        "select id, round(score, 1), title <=> $ from post where author in ($, $) order by ratio desc, id limit 4 offset 1",
        &["'TWO'", "1", "2"],
    ),
    (
        "select status, group_concat(title order by id), bit_or(views) from post where author = $ group by status order by status",
        &["1"],
    ),
    (
        "select id, title from post where author = $ order by coalesce(score, 0) desc, id limit 2",
        &["1"],
    ),
    (
        "select id, views * 2 + 1 as v from post where author = $ order by v desc limit 1 offset 1",
        &["1"],
    ),
    (
        "select count(*), sum(views), avg(score), max(at), min(title), avg(ratio) from post where author = $",
        &["1"],
    ),
    (
        "select count(*), sum(views), avg(score), max(at), min(title) from post where author = $",
        &["77"],
    ),
    (
        "select count(case when status = 'draft' then 1 end) as drafts, sum(if(views > 5, 1, 0)) from post where author = $",
        &["1"],
    ),
    (
        "select status, count(*) as n from post where author = $ group by status order by n desc, status",
        &["1"],
    ),
    (
        "select status, count(*) as n from post where author = $ group by status having n > $ order by n",
        &["1", "1"],
    ),
    (
        "select date(at) as day, count(*) from post where author = $ group by date(at) order by day",
        &["1"],
    ),
    (
        "select year(at), month(at), count(*) from post where author = $ group by year(at), month(at) order by 1, 2",
        &["2"],
    ),
    (
        "select coalesce(sum(views), 0) as total from post where author = $",
        &["42"],
    ),
    (
        "select coalesce(max(score), -1) + 1 from post where author = $",
        &["1"],
    ),
    (
        "select distinct lower(title) as t from post where author = $ order by t",
        &["1"],
    ),
    (
        "select count(distinct lower(title)) from post where author = $",
        &["1"],
    ),
    (
        "select group_concat(title order by id separator '/') from post where author = $",
        &["1"],
    ),
    (
        "select a.name, p.views + $ from post p join author a on a.id = p.author where p.author = $ order by p.views",
        &["3", "1"],
    ),
    (
        "select a.name, p.score / 0, p.views % $ from post p, author a where a.id = p.author and p.id = $",
        &["3", "1"],
    ),
    (
        "select p.id, a.name from post p join author a on a.id = p.author where p.author = $ and (p.title like $ or a.name = 'bob')",
        &["1", "'%w%'"],
    ),
    (
        "select p.id, a.name from post p join author a on a.id = p.author where p.author = $ and p.status <> $ order by p.id",
        &["1", "'draft'"],
    ),
    (
        "select p.id, t.tag from post p join tag t on t.post = p.id where p.id = $ and t.tag not in ($, $)",
        &["1", "7", "99"],
    ),
    (
        "select p.title + 1 from post p join author a on a.id = p.author where p.id = $",
        &["2"],
    ),
    (
        "select p.author, sum(p.score) as s from post p where p.author in ($, $) group by p.author having sum(p.score) > $ order by s",
        &["1", "2", "1"],
    ),
    (
        "select a.team, count(*), max(p.score) from author a join post p on p.author = a.id where a.id = $ group by a.team",
        &["1"],
    ),
    (
        "select p.id, timestampdiff(day, p.at, now()) from post p where p.author = $ order by timestampdiff(day, p.at, now()), p.id",
        &["1"],
    ),
    (
        "select sum(views) + @n, count(*) from post where author = $",
        &["1"],
    ),
    (
        "select p.*, a.name from post p left join author a on a.id = p.author and a.team = $ where p.author = $ order by lower(p.title), p.id",
        &["1", "1"],
    ),
    (
        "select if(count(*) > $, 'many', 'few'), any_value(status) from post where id = $",
        &["1", "1"],
    ),
    (
        "select std(views), bit_or(views), var_samp(views) from post where author = $",
        &["1"],
    ),
    (
        "select p.status, t.tag, count(*) + 0 from post p join tag t on t.post = p.id where p.id = $ group by p.status, t.tag order by t.tag desc limit $",
        &["1", "1"],
    ),
    (
        "select a.email, min(date(p.at)) from author a join post p on p.author = a.id where a.email = $ group by a.email",
        &["'Bob@x'"],
    ),
    (
        "select a.email from author a join post p on p.author = a.id where a.email = $ and p.views >= 0 order by concat(p.title, 'x') limit 1",
        &["'bob@x'"],
    ),
    (
        "select exists(select * from author where email = $) as `exists`",
        &["'Bob@x'"],
    ),
    (
        "select exists(select * from author where email = $) as `exists`",
        &["'nobody'"],
    ),
    (
        "select not exists(select 1 from post where author = $ and status = $ limit 1)",
        &["1", "'draft'"],
    ),
    (
        "select (select count(*) from post where author = $) + 1, (select name from author where id = $)",
        &["1", "2"],
    ),
    (
        "select (select max(at) from post where author = $), (select score from post where id = $)",
        &["1", "4"],
    ),
    (
        "select a.id, (select count(*) from post p where p.author = a.id) as posts from author a where a.id in ($, $, $)",
        &["1", "2", "3"],
    ),
    (
        "select a.*, (select sum(p.score) from post p where p.author = a.id and p.status = $) as s from author a where a.team = $ order by s desc",
        &["'draft'", "1"],
    ),
    (
        "select * from author a where a.id in ($, $, $) and exists (select * from post p where p.author = a.id and p.views > $)",
        &["1", "2", "3", "5"],
    ),
    (
        "select a.id from author a where a.id in ($, $, $) and not exists (select 1 from post p where a.id = p.author) order by a.id",
        &["1", "3", "4"],
    ),
    (
        "select p.id from post p where p.author = $ and exists (select 1 from tag t where t.post = p.id) order by p.id limit 1",
        &["1"],
    ),
    (
        "select id from post where author = $ and views > (select min(views) from post where author = $) order by id",
        &["1", "2"],
    ),
    (
        "select p.id, (select a.email from author a where a.id = p.author) as who from post p where p.id in ($, $) order by who",
        &["1", "6"],
    ),
    (
        "select p.id, (select upper(a.name) from author a where a.id = p.author and a.team is not null) from post p where p.author in ($, $) order by p.id",
        &["2", "9"],
    ),
    (
        "select a.id, coalesce((select p.title from post p where p.author = a.id order by p.id desc limit 1), 'none') from author a where a.id in ($, $) order by 1",
        &["1", "3"],
    ),
    (
        "select title from post where id = (select max(post) from tag where tag.post = $)",
        &["5"],
    ),
    (
        "select name from author where id = (select author from post where id = $)",
        &["4"],
    ),
    (
        "select name from author where id = (select author from post where id = $) and team = $",
        &["77", "1"],
    ),
    (
        "select a.name, p.title from author a join post p on p.author = a.id where a.id = (select author from post where id = $) and p.views < (select views from post where id = $)",
        &["1", "2"],
    ),
    (
        "select count(*) from post where author = (select id from author where email = $) and views >= 0",
        &["'Bob@x'"],
    ),
    (
        "select p.id from post p join author a on a.id = p.author where a.id = $ and p.status = $",
        &["1", "'public'"],
    ),
    (
        "select id from post where author = $ and status = $ order by id",
        &["2", "'draft'"],
    ),
    (
        "select id, title, row_number() over (order by id desc) from post where author = $ order by id",
        &["1"],
    ),
    (
        "select p.id, p.title from (select id from post order by id limit $) k join post p on p.id = k.id",
        &["3"],
    ),
    (
        "select p.* from (select id from post where author = $ order by at desc limit $ offset 1) k join post p on p.id = k.id",
        &["1", "2"],
    ),
    (
        "select p.id, k.n from (select author, count(*) as n from post where author in ($, $) group by author) k join post p on p.author = k.author order by p.id",
        &["1", "2"],
    ),
    (
        "select a.name, k.n from author a left join (select author, count(*) as n from post where author in ($, $) group by author) k on k.author = a.id where a.id in ($, $, $) order by a.id",
        &["1", "2", "1", "2", "3"],
    ),
    (
        "select p.id from ((select id from post where author = $) union (select post from tag where post in ($, $))) k join post p on p.id = k.id order by p.id",
        &["1", "1", "5"],
    ),
    (
        "select count(*), sum(k.views) from (select views from post where author = $ limit 10) k",
        &["1"],
    ),
    (
        "with k as (select id from author where id in ($, $)) select p.id, x.id from k x join post p on p.author = x.id order by p.id",
        &["1", "2"],
    ),
    (
        "select id, title from post where author = $ union all select id, title from post where id = $",
        &["1", "2"],
    ),
    (
        "(select id from post where author = $) union (select post from tag where post = $) order by id desc limit $",
        &["1", "3", "2"],
    ),
    (
        "select upper(k.title), k.id + 1 from (select id, title from post where author = $ order by id limit 2) k order by k.id desc",
        &["1"],
    ),
    (
        "select distinct k.status from (select status, id from post where author = $ order by id limit 5) k order by k.status",
        &["1"],
    ),
    (
        "select k.post, k.t from (select post, max(tag) as t from tag group by post) k where k.t > $ order by k.post",
        &["7"],
    ),
    (
        "select * from (select id, status from post where author = $ order by id desc limit 3) k where k.status like $ order by k.id",
        &["1", "'d%'"],
    ),
    (
        "select k.id, p.id from (select id from author where team = $) k left join post p on p.author = k.id and p.status = $ order by k.id, p.id",
        &["1", "'draft'"],
    ),
    (
        "select k.a, k.e, p.id from (select id as a, email as e from author where id in ($, $)) k join (select author, id from post where author = $) p on p.author = k.a order by p.id",
        &["1", "3", "1"],
    ),
    (
        "select k.id from (select id from post where author = $ limit 0) k join post p on p.id = k.id",
        &["1"],
    ),
    (
        "select a.name, k.at from (select author, at from post where author = $ order by at limit 3) k join author a on a.id = k.author order by k.at desc",
        &["1"],
    ),
    (
        "select p.id, a.name from post p left join author a on a.id = p.author order by p.id desc limit $",
        &["3"],
    ),
    (
        "select p.id, upper(a.name) from post p join author a on a.id = p.author order by p.id limit $ offset $",
        &["2", "1"],
    ),
    (
        "select p.id, (select count(*) from tag t where t.post = p.id) as n from post p order by p.id limit $",
        &["3"],
    ),
    (
        "select p.id, (select count(*) from tag t where t.post = p.id) as n from post p where p.author = $ order by p.views desc limit $",
        &["1", "2"],
    ),
    (
        "select a.id, k.n from author a left join (select author, count(*) as n from post group by author) k on k.author = a.id where a.id in ($, $, $) order by a.id",
        &["1", "2", "3"],
    ),
    (
        "select p.id, k.m from post p join (select post, max(tag) as m, count(*) as n from tag t group by post having n > $) k on k.post = p.id where p.author = $ order by p.id",
        &["1", "1"],
    ),
    (
        "select p.id, p.at from (select author, max(at) as m from post where author in ($, $) group by author) k join post p on p.author = k.author and p.at = k.m order by p.id",
        &["1", "2"],
    ),
    (
        "select a.name, k.title from author a join (select author, title, id from post) k on k.author = a.id where a.id = $ order by k.id",
        &["1"],
    ),
    (
        "select p.id, a.name, k.n from post p left join author a on a.id = p.author left join (select post, count(*) as n from tag group by post) k on k.post = p.id order by p.id desc limit $",
        &["4"],
    ),
    (
        "select distinct post from tag order by post desc limit $",
        &["3"],
    ),
    (
        "select post, min(tag) from tag group by post order by post",
        &[],
    ),
    (
        "select id from post where id in (select max(tag) from tag group by post) order by id",
        &[],
    ),
    (
        "select a.name, p.id from author a join post p on p.id = a.id + $ order by p.id",
        &["1"],
    ),
    (
        "select a.id, p.id from author a left join post p on p.id = a.id * 2 - 1 where a.id in ($, $, $) order by a.id",
        &["1", "3", "4"],
    ),
    (
        "select count(*), sum(p.views) from author a join post p on p.id between a.id and a.id + $",
        &["2"],
    ),
    (
        "select a.id, p.id from author a join post p on p.id > a.id and a.id + 3 > p.id where a.team = $ order by a.id, p.id",
        &["1"],
    ),
    (
        "select a.id, a.name from author a join post p on a.id = p.views - 4 where p.id in ($, $)",
        &["1", "3"],
    ),
    (
        "select id, (select max(title) from post p where p.id = a.id + $) as t from author a order by id",
        &["1"],
    ),
    (
        "select id from author a where exists (select 1 from post p where p.id > a.id * 2 and p.id < a.id * 2 + 3) order by id",
        &[],
    ),
    (
        "select id, (select count(*) from post p where p.author between a.id - 1 and a.id) as n from author a order by id desc limit $",
        &["3"],
    ),
    (
        "select id, (select count(*) from tag t where t.post = a.team + 0) as n from author a order by id",
        &[],
    ),
    (
        "select a.id, b.id from author a join author b on b.id = a.team + 1 order by a.id",
        &[],
    ),
    (
        "select a.id, b.id from author a join author b on b.id >= a.team and b.id <= -(-1) * a.team order by a.id",
        &[],
    ),
    (
        "select k.m, p.title from (select status, max(id) as m from post group by status) k join post p on p.id = k.m order by k.m",
        &[],
    ),
    (
        "select k.team, k.n, a.name from (select team, count(*) as n from author where name <> $ group by team) k join author a on a.id = k.team order by k.team",
        &["'bob'"],
    ),
    (
        "select id, k.n from (select author as id, count(*) as n from post where author in ($, $) group by author) k join author a using (id) order by id",
        &["1", "2"],
    ),
    (
        "select id, a.name, p.id as other from author a left join (select id from post where author = $) p using (id) where id > $ order by id",
        &["1", "1"],
    ),
    (
        "select a.*, k.views from author a join (select id, views from post order by id limit 2 offset $) k using (ID) order by id",
        &["1"],
    ),
    (
        "select p.id, q.id from post p join post q on q.author = p.author and q.views < p.views where p.id = $ order by q.id",
        &["2"],
    ),
    (
        "select p.id, q.id from post p join post q on q.author = p.author and p.at < q.at where p.id = $ order by q.id",
        &["1"],
    ),
    (
        "select p.id, q.id from post p left join post q on q.author = p.author and q.id between p.id + 1 and p.views where p.author = $ order by p.id, q.id",
        &["1"],
    ),
    (
        "select distinct a.team, a.id, p.views from author a join post p on p.author = a.id where a.id in ($, $) order by 1 desc, 2 desc, 3",
        &["1", "2"],
    ),
    (
        "select t.tag, count(*) as n from author a join tag t on t.post = a.id + 1 group by t.tag having n > $ order by t.tag",
        &["0"],
    ),
    (
        "select upper(a.name), p.views + a.team from author a join post p on p.id = a.id where a.team > $ order by 1",
        &["0"],
    ),
    (
        "select id from post where id between $ * 2 - 1 and $ + 1 + 1 order by id",
        &["1", "1"],
    ),
    (
        "select a.id, p.id from author a left join post p on p.author = a.id and p.score is null where a.id in ($, $, $)",
        &["1", "2", "3"],
    ),
    (
        "select a.id, p.id from author a left join post p on p.author = a.id and p.at is null where a.id in ($, $, $)",
        &["1", "2", "3"],
    ),
    (
        "select id from author where email like $ escape $ order by id",
        &["'Bo%'", "''"],
    ),
    (
        "select id from author where email like $ escape $ order by id",
        &["'a_n%'", "'!'"],
    ),
    (
        "select count(*) from (select 1 as one from post where author = $ limit 2) as z",
        &["1"],
    ),
    (
        "select a.id, p.title from author a left join post p on p.author = a.id and (p.at is not null) and p.status = 'public' where a.id in ($, $) order by a.id, p.id",
        &["1", "2"],
    ),
    (
        "select a.id, count(p.id) from author a left join post p on p.author = a.id and p.title is not null and p.score is null where a.id in ($, $) group by a.id",
        &["1", "2"],
    ),
    (
        "select * from tag where (post, tag) in (select id, author from post where author = $) order by post, tag",
        &["1"],
    ),
    (
        "select id from post where (author, id) in (select author, max(id) from post where author in ($, $) group by author) order by id",
        &["1", "2"],
    ),
    (
        "select left(status, 3) as s, count(*), max(title) from post group by left(status, 3) order by s",
        &[],
    ),
    ("select count(*), max(name), min(email) from author", &[]),
    (
        "select avg(views), count(distinct lower(title)), group_concat(title order by id) from post where views > $",
        &["1"],
    ),
    (
        "select distinct left(title, 1) as t from post order by t",
        &[],
    ),
    (
        "select status, avg(score) from post where title like $ group by status having count(*) > $ order by status",
        &["'%o%'", "0"],
    ),
    (
        "select id from author where id = $ union all select count(*) from post where author = $ order by id",
        &["1", "2"],
    ),
    (
        "select `over_rows`.`author`.`id`, over_rows.author.name from over_rows.author where (over_rows.author.id = $ and 1=1)",
        &["2"],
    ),
    (
        "select over_rows.author.id, upper(over_rows.author.name) as n from over_rows.author where over_rows.author.id in ($, $) and (over_rows.author.id) in (select t0.author from over_rows.post as t0 where t0.id = $) order by over_rows.author.id",
        &["1", "2", "4"],
    ),
    (
        "select * from post where exists (select * from author where post.author = author.id and email = $) order by id",
        &["'ann@x'"],
    ),
    (
        "select p.id, upper(p.title) from post p where exists (select 1 from author a join tag t on t.post = a.id where a.id = p.author and a.email = $) and p.views > $ order by p.id",
        &["'ann@x'", "5"],
    ),
    (
        "select id, email from author where email like binary $ order by id",
        &["'Bo%'"],
    ),
    (
        "select sql_no_cache id, upper(name) from author where id = $",
        &["2"],
    ),
    (
        "select high_priority sql_small_result distinct team from author where id in ($, $) order by team",
        &["1", "2"],
    ),
];

fn described(columns: &[mysql::Column]) -> Vec<String> {
    let length = |column: &mysql::Column| match column.column_type() {
        mysql::consts::ColumnType::MYSQL_TYPE_VAR_STRING if column.org_name_str().is_empty() => 0,
        _ => column.column_length(),
    };
    let describe = |column: &mysql::Column| {
        format!(
            "{} {} {} {} {:?} {} {:?} {} {}",
            column.name_str(),
            column.org_name_str(),
            column.table_str(),
            column.org_table_str(),
            column.column_type(),
            length(column),
            column.flags(),
            column.character_set(),
            column.decimals(),
        )
    };
    columns.iter().map(describe).collect()
}

fn answer<P: mysql::prelude::Protocol>(
    result: mysql::Result<mysql::QueryResult<'_, '_, '_, P>>,
    ordered: bool,
) -> String {
    let mut result = match result {
        Ok(result) => result,
        Err(error) => return error.to_string(),
    };
    let columns = described(result.columns().as_ref());
    let mut rows: Vec<String> = result
        .by_ref()
        .map(|row| format!("{:?}", row.map(mysql::Row::unwrap)))
        .collect();
    if !ordered {
        rows.sort();
    }
    format!("{columns:?}\n{rows:?}")
}

fn direct_count(c: &mut Conn) -> u64 {
    let row: Option<(String, u64)> = c
        .query_first("show session status like 'Statements_direct'")
        .expect("a status variable");
    row.expect("it is listed").1
}

fn literal(text: &str) -> Value {
    match text.strip_prefix('\'') {
        Some(text) => Value::from(text.trim_end_matches('\'')),
        None => Value::from(text.parse::<i64>().expect("a number")),
    }
}

/// Each statement as text and prepared, twice, so that what was kept is used too.
#[test]
fn rows_found_by_keys_are_computed_with_directly() {
    let server = TestServer::start();
    let mut c = server.connect_to_new("over_rows");
    for sql in SETUP {
        c.query_drop(sql).expect(sql);
    }
    for mode in [
        "STRICT_TRANS_TABLES,ERROR_FOR_DIVISION_BY_ZERO,ONLY_FULL_GROUP_BY",
        "",
    ] {
        c.query_drop(format!("set sql_mode = '{mode}'"))
            .expect("a mode");
        for (sql, values) in STATEMENTS {
            let ordered = sql.contains(" order by ");
            let mut text = String::new();
            for (number, piece) in sql.split('$').enumerate() {
                text.push_str(if number > 0 { values[number - 1] } else { "" });
                text.push_str(piece);
            }
            let parameters: Vec<Value> = values.iter().map(|value| literal(value)).collect();
            let mut answers: Vec<Vec<String>> = Vec::new();
            for direct in ["off", "on"] {
                c.query_drop(format!("set optimizer_switch = 'direct={direct}'"))
                    .expect("a switch");
                let prepared = c.prep(sql.replace('$', "?")).expect(sql);
                let mut shown = Vec::new();
                for _ in 0..2 {
                    let before = direct_count(&mut c);
                    let as_text = answer(c.query_iter(&text), ordered);
                    shown.push(format!(
                        "{as_text} {:?}",
                        query_text(&mut c, "show warnings")
                    ));
                    let as_prepared = answer(c.exec_iter(&prepared, parameters.clone()), ordered);
                    shown.push(format!(
                        "{as_prepared} {:?}",
                        query_text(&mut c, "show warnings")
                    ));
                    let count = direct_count(&mut c) - before;
                    assert_eq!(count, if direct == "on" { 2 } else { 0 }, "{text}");
                }
                answers.push(shown);
            }
            for (vectorised, direct) in answers[0].iter().zip(&answers[1]) {
                assert_eq!(vectorised, direct, "{text}");
            }
        }
    }
}

/// A query in a FROM sees what its statement sees, and is asked for what its statement is asked for.
#[test]
fn queries_in_a_from_are_read_as_tables_are() {
    let server = TestServer::start();
    let mut c = server.connect_to_new("derived");
    for sql in [
        "create table t (id int primary key, k int, v varchar(10), key (k))",
        "insert into t values (1, 1, 'a'), (2, 1, 'b'), (3, 2, 'c')",
        "create user reader@localhost",
        "create table open (id int primary key)",
        "insert into open values (1), (3)",
        "grant select on derived.open to reader@localhost",
    ] {
        c.query_drop(sql).expect(sql);
    }
    let sql = "select t.v from (select id from t order by id desc limit 2) k join t on t.id = k.id";
    let directly = |c: &mut Conn, sql: &str| {
        let before = direct_count(c);
        let rows = query_text(c, sql);
        (rows, direct_count(c) - before)
    };
    assert_eq!(directly(&mut c, sql), (vec!["c".into(), "b".into()], 1));
    // Its own transaction's changes, and those of nobody else.
    let options = mysql::OptsBuilder::from_opts(server.options()).db_name(Some("derived"));
    let mut other = Conn::new(options).expect("a connection");
    c.query_drop("begin").expect("a transaction");
    c.query_drop("insert into t values (4, 2, 'd')")
        .expect("a row");
    assert_eq!(directly(&mut c, sql), (vec!["d".into(), "c".into()], 1));
    assert_eq!(directly(&mut other, sql), (vec!["c".into(), "b".into()], 1));
    c.query_drop("rollback").expect("the end");
    // Another definition.
    c.query_drop("alter table t modify v varchar(20) not null, add w int default 7")
        .expect("a definition");
    let all = sql.replace("t.v", "t.*");
    let rows = vec!["3\t2\tc\t7".into(), "2\t1\tb\t7".into()];
    assert_eq!(directly(&mut c, &all), (rows, 1));
    // With its locks.
    let locking = format!("{sql} for update");
    assert_eq!(
        directly(&mut c, &locking),
        (vec!["c".into(), "b".into()], 1)
    );
    c.query_drop("set session transaction isolation level serializable")
        .expect("a level");
    c.query_drop("begin").expect("a transaction");
    assert_eq!(directly(&mut c, sql).1, 0);
    other
        .query_drop("set innodb_lock_wait_timeout = 1")
        .expect("a variable");
    other
        .query_drop("update t set v = 'x' where id = 3")
        .expect_err("it is locked");
    c.query_drop("commit").expect("the end");
    // Each table is asked for.
    let options = mysql::OptsBuilder::from_opts(server.options())
        .user(Some("reader"))
        .db_name(Some("derived"));
    let mut reader = Conn::new(options).expect("a connection");
    let sql =
        "select o.id from (select id from t order by id limit 2) k join open o on o.id = k.id";
    for _ in 0..2 {
        let refused = reader.query_drop(sql).expect_err("t is not granted");
        assert!(refused.to_string().contains("1142"), "{refused}");
        assert_eq!(query_text(&mut c, sql), ["1"]);
    }
    let sql = sql.replace("from t order", "from open order");
    assert_eq!(
        directly(&mut reader, &sql),
        (vec!["1".into(), "3".into()], 1)
    );
}

/// What is wrong with a constant is told by each execution, also where no row is found.
#[test]
fn constants_that_are_cut_are_told_of_each_time() {
    let server = TestServer::start();
    let mut c = server.connect_to_new("over_rows_warned");
    c.query_drop("create table t (id int primary key, v double, key (v))")
        .expect("a table");
    let sql = "select id, count(*) + 0 from t where id = 1 and v = 'A ' group by id";
    for _ in 0..3 {
        assert!(query_text(&mut c, sql).is_empty());
        let warnings = query_text(&mut c, "show warnings");
        assert_eq!(warnings.len(), 1, "{warnings:?}");
    }
}

/// A table changes, and so does what groups may show: plans over rows follow.
#[test]
fn a_plan_over_rows_follows_its_table_and_its_mode() {
    let server = TestServer::start();
    let mut c = server.connect_to_new("over_rows_followed");
    c.query_drop("create table t (id int primary key, k int, v int, key (k))")
        .expect("a table");
    c.query_drop("insert into t values (1, 1, 5), (2, 1, 6), (3, 2, 7)")
        .expect("rows");
    let sql = "select k, sum(v + 1) as s from t where k = 1 group by k order by s";
    for _ in 0..2 {
        assert_eq!(query_text(&mut c, sql), ["1\t13"]);
    }
    c.query_drop("insert into t values (4, 1, 100)")
        .expect("a row");
    assert_eq!(query_text(&mut c, sql), ["1\t114"]);
    c.query_drop("alter table t modify v decimal(8,2)")
        .expect("another type");
    assert_eq!(query_text(&mut c, sql), ["1\t114.00"]);
    // The rows of the table are counted, and not those of a query that knows its greatest value.
    c.query_drop("set sql_mode = ''").expect("a mode");
    assert_eq!(
        query_text(&mut c, "select max(k), count(*) from t"),
        ["2\t4"]
    );
    let any = "select v, count(*) + 0 from t where k = 1 group by k";
    c.query_drop("set sql_mode = 'ONLY_FULL_GROUP_BY'")
        .expect("a mode");
    let refused = c.query_drop(any).expect_err("v is not grouped by");
    assert!(refused.to_string().contains("1055"), "{refused}");
    c.query_drop("set sql_mode = ''").expect("a mode");
    assert_eq!(query_text(&mut c, any).len(), 1);
}

/// A query is planned for its own constants first, and for columns in their places when it comes with others.
#[test]
fn a_query_with_other_constants_is_planned_for_any() {
    let server = TestServer::start();
    let mut c = server.connect_to_new("over_rows_constants");
    c.query_drop("create table t (id int primary key, k int, v varchar(20), key (k))")
        .expect("a table");
    c.query_drop("insert into t values (1, 1, 'a'), (2, 1, 'b'), (3, 2, 'c')")
        .expect("rows");
    let long = "x".repeat(1500);
    let runs = [
        ("x", 1),
        ("x", 1),
        ("yz", 2),
        ("", -1),
        ("x", 1),
        (long.as_str(), 9),
    ];
    let before = direct_count(&mut c);
    for (text, number) in runs {
        let sql = format!(
            "select concat(v, '{text}') as c, id + {number} from t where k = 1 order by concat(v, '{text}') desc"
        );
        let rows = [("b", 2), ("a", 1)].map(|(v, id)| format!("{v}{text}\t{}", id + number));
        assert_eq!(query_text(&mut c, &sql), rows, "{sql}");
    }
    assert_eq!(direct_count(&mut c), before + runs.len() as u64);
}
