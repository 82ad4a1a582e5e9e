create table users (
  id bigint not null auto_increment primary key, email varchar(120) not null, name varchar(80) not null,
  team_id int, is_active tinyint(1) not null default 1, balance decimal(12,2) not null default 0.00,
  last_login datetime(6), created_at datetime not null, settings text,
  unique key email (email), key team (team_id, is_active));
create table posts (
  id bigint not null auto_increment primary key, user_id bigint not null, title varchar(200) not null, body text,
  status varchar(20) not null default 'draft', views int not null default 0, score decimal(8,2),
  published_at datetime, updated_at timestamp null default null, deleted_at datetime,
  key user (user_id, published_at), key status (status, published_at));
create table comments (
  id bigint not null auto_increment primary key, post_id bigint not null, user_id bigint not null, body varchar(400) not null,
  likes int not null default 0, created_at datetime not null, key post (post_id, created_at), key user (user_id));
create table tags (id int not null auto_increment primary key, name varchar(40) not null, unique key name (name));
create table post_tags (post_id bigint not null, tag_id int not null, primary key (post_id, tag_id), key tag (tag_id, post_id));
create table counters (name varchar(60) not null primary key, hits bigint not null default 0, best decimal(10,2), changed datetime);
create table sessions (token varchar(40) not null primary key, user_id bigint, payload text, expires_at datetime not null, key user (user_id));
create table audit (id bigint not null auto_increment primary key, user_id bigint not null, what varchar(100), at datetime(3) not null, key user (user_id));
insert into tags (name) with recursive n (i) as (select 1 union all select i + 1 from n where i < 100) select concat('tag', i) from n;
insert into users (email, name, team_id, is_active, balance, last_login, created_at, settings) with recursive n (i) as (select 1 union all select i + 1 from n where i < 1000) select concat('user', i, '@example.com'), concat('User ', i), i % 50, i % 7 > 0, i * 1.25, '2024-03-01' + interval i minute, '2023-01-01' + interval i hour, '{}' from n;
insert into users (email, name, team_id, is_active, balance, last_login, created_at, settings) select concat('other', id, '@example.com'), concat('Other ', id), (id * 7) % 50, is_active, balance, last_login, created_at, settings from users;
insert into posts (user_id, title, body, status, views, score, published_at) select u.id, concat('Post ', t.id, ' of ', u.id), repeat('text ', 20), if((u.id + t.id) % 3 = 0, 'draft', 'published'), (u.id * t.id) % 1000, t.id / 4, '2024-01-01' + interval (u.id * 13 + t.id * 101) % 40000 minute from users u, tags t where t.id <= 5;
insert into comments (post_id, user_id, body, likes, created_at) select p.id, (p.id * 17 + t.id) % 2000 + 1, 'a comment of some words', (p.id * t.id) % 40, '2024-02-01' + interval (p.id + t.id) minute from posts p, tags t where t.id <= 3;
insert into post_tags select p.id, (p.id + t.id * 7) % 100 + 1 from posts p, tags t where t.id <= 3;
insert into counters select concat('page', id), id, id / 3, '2024-01-01' from posts where id <= 1000;
insert into sessions select concat('token', id), id, '{"cart": []}', '2030-01-01' from users;
analyze table users, posts, comments, tags, post_tags, counters, sessions, audit;
