-- The lessons of `sheaf demo --http`: what the console's view Learn shows and runs. One statement ends at each semicolon.

CREATE DATABASE IF NOT EXISTS learn;

DROP TABLE IF EXISTS learn.lessons, learn.transactions, learn.touched;

CREATE TABLE learn.lessons (
  number INT PRIMARY KEY,
  title VARCHAR(100) NOT NULL,
  story TEXT NOT NULL COMMENT 'what happens in the evening',
  answer TEXT NOT NULL COMMENT 'what Sheaf does about it',
  in_database VARCHAR(64) NOT NULL,
  first_sql TEXT COMMENT 'what is run before each side',
  slow_title VARCHAR(100) NOT NULL,
  slow_sql TEXT NOT NULL,
  fast_title VARCHAR(100) NOT NULL,
  fast_sql TEXT NOT NULL,
  holds_transactions BOOL NOT NULL DEFAULT FALSE COMMENT 'whether others hold transactions open meanwhile',
  slow_transactions INT NOT NULL DEFAULT 0,
  fast_transactions INT NOT NULL DEFAULT 0
);

CREATE TABLE learn.transactions (
  id INT PRIMARY KEY,
  wanted INT NOT NULL COMMENT 'so many transactions are to be open',
  open_now INT NOT NULL COMMENT 'so many are'
);

CREATE TABLE learn.touched (id INT PRIMARY KEY, n INT NOT NULL);

INSERT INTO learn.transactions VALUES (1, 0, 0);

INSERT INTO learn.touched WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < 200) SELECT i, 0 FROM n;

INSERT INTO learn.lessons (number, title, story, answer, in_database, first_sql, slow_title, slow_sql, fast_title, fast_sql) VALUES
(1, 'The table outgrew memory',
 'A query on a secondary index took 0.1 s. The table outgrew the buffer pool, and it takes eleven minutes: each entry of the index leads to a row somewhere else, and each row is a page that has to be waited for.',
 'It collects primary keys, sorts them, and reads the pages in their order, many at a time (multi-range read). Compare the pages that were waited for: before each side a scan of another table takes the memory. Where all pages are in memory it does not sort.',
 'tpch',
 'SELECT SUM(l_tax) FROM lineitem IGNORE INDEX (i_l_partkey)',
 'one row after the other',
 'SELECT /*+ SET_VAR(optimizer_switch = ''mrr=off'') */ SUM(o_totalprice) FROM orders FORCE INDEX (i_o_orderdate) WHERE o_orderdate BETWEEN ''1994-01-01'' AND ''1995-12-31''',
 'sorted, and read ahead',
 'SELECT SUM(o_totalprice) FROM orders FORCE INDEX (i_o_orderdate) WHERE o_orderdate BETWEEN ''1994-01-01'' AND ''1995-12-31'''),
(2, 'ORDER BY with LIMIT',
 'The newest twenty rows that pass a filter. The optimizer took the filter''s index, read half a million rows and sorted them. With FORCE INDEX on the primary key it answers in 10 ms.',
 'It knows the cost of both ways, and how the filter is spread along the order. If it is wrong about that, the walk in order gives up when it has spent what the other way would have cost.',
 'tpch', NULL,
 'the index of the filter, and a sort',
 'SELECT o_orderkey, o_totalprice FROM orders FORCE INDEX (i_o_custkey) WHERE o_custkey > 1500 ORDER BY o_orderkey DESC LIMIT 20',
 'the order of the primary key, until twenty are found',
 'SELECT o_orderkey, o_totalprice FROM orders WHERE o_custkey > 1500 ORDER BY o_orderkey DESC LIMIT 20'),
(3, 'Only the first column is used',
 'There is an index on (l_partkey, l_quantity, l_shipmode, l_shipinstruct), and EXPLAIN names it. But only its first column makes the range. Every row of the range is fetched to look at the others.',
 'It tests the other columns on the entries of the index, and jumps over those that cannot match (jumps). Compare the rows that were fetched.',
 'tpch', NULL,
 'only the first column',
 'SELECT /*+ SET_VAR(optimizer_switch = ''index_condition_pushdown=off,mrr=off'') */ COUNT(*), SUM(l_extendedprice) FROM lineitem FORCE INDEX (i_l_partkey) WHERE l_partkey BETWEEN 1000 AND 1500 AND l_shipmode = ''AIR'' AND l_quantity < 5',
 'all columns, with jumps',
 'SELECT COUNT(*), SUM(l_extendedprice) FROM lineitem WHERE l_partkey BETWEEN 1000 AND 1500 AND l_shipmode = ''AIR'' AND l_quantity < 5'),
(4, 'More cores, and no faster',
 'Thirty-two cores, and a range of an index is read only eight times faster than by one: all threads meet at the root of the tree.',
 'A way down a tree writes nothing that others read, so threads do not meet. One query''s range is split over the cores. The slow side is bound to one core by a resource group; on a machine of few cores, or one that is busy, the difference is small.',
 'tpch', NULL,
 'one core',
 'SELECT /*+ RESOURCE_GROUP(one_core) */ COUNT(*), SUM(SIN(l_quantity)) FROM lineitem FORCE INDEX (i_l_partkey) WHERE l_partkey BETWEEN 1000 AND 15000 AND l_shipmode <> ''AIR''',
 'all cores',
 'SELECT COUNT(*), SUM(SIN(l_quantity)) FROM lineitem FORCE INDEX (i_l_partkey) WHERE l_partkey BETWEEN 1000 AND 15000 AND l_shipmode <> ''AIR''');

INSERT INTO learn.lessons VALUES
(5, 'Reads were fast until somebody wrote',
 'Reads were fast until somebody added writes: each read began with a copy of the list of all open transactions.',
 'A snapshot is one number. The two hundred transactions of the left side have changed rows and stay open; the read looks at none of them. Both sides take the same.',
 'tpch',
 'SELECT COUNT(*), SUM(o_totalprice) FROM orders WHERE o_orderkey BETWEEN 10000 AND 20000',
 'beside 200 open transactions',
 'SELECT COUNT(*), SUM(o_totalprice) FROM orders WHERE o_orderkey BETWEEN 10000 AND 20000',
 'alone',
 'SELECT COUNT(*), SUM(o_totalprice) FROM orders WHERE o_orderkey BETWEEN 10000 AND 20000',
 TRUE, 200, 0);
