-- What every archive of this folder was made from. A part has every format of a definition that the program knows;
-- docs/catalog-format.md lists them.
CREATE DATABASE shop;
USE shop;
-- Format 3: plain columns, with an index, a foreign key and a CHECK.
CREATE TABLE customer (id INT PRIMARY KEY, name VARCHAR(40) NOT NULL, city VARCHAR(20), born DATE, KEY (city, name));
CREATE TABLE orders (id BIGINT UNSIGNED AUTO_INCREMENT PRIMARY KEY, customer_id INT NOT NULL, price DECIMAL(12,2), placed DATETIME(3),
  note TEXT, CONSTRAINT of_customer FOREIGN KEY (customer_id) REFERENCES customer (id) ON DELETE CASCADE,
  CONSTRAINT no_gift CHECK (price > 0));
-- Format 4: a default that is an expression.
CREATE TABLE defaults (id INT PRIMARY KEY, token VARCHAR(40) DEFAULT (CONCAT('t', 1 + 1)), made TIMESTAMP NULL DEFAULT NULL);
-- Format 5: generated columns.
CREATE TABLE generated (a INT PRIMARY KEY, twice INT AS (a * 2) STORED, thrice INT AS (a * 3) VIRTUAL, KEY (thrice));
-- Format 6: types that came later.
CREATE TABLE types (id INT PRIMARY KEY, f FLOAT(7,2), b BIT(10), s SET('x', 'y', 'z'), j JSON, z INT(6) UNSIGNED ZEROFILL, e ENUM('a', 'b'),
  t TIME(2), y YEAR, v VARBINARY(20), d DOUBLE);
-- Format 7: what is invisible.
CREATE TABLE invisible (a INT PRIMARY KEY, b INT INVISIBLE, KEY by_b (b) INVISIBLE);
-- Format 8: a hidden column, of an index over an expression.
CREATE TABLE hidden (a INT PRIMARY KEY, name VARCHAR(20), KEY by_upper ((UPPER(name))));
-- Format 9: columns that came and went without a copy of the rows.
CREATE TABLE shaped (a INT PRIMARY KEY, gone INT, kept INT);
INSERT INTO shaped VALUES (1, 10, 100), (2, 20, 200);
ALTER TABLE shaped ADD COLUMN added INT DEFAULT 7;
INSERT INTO shaped VALUES (3, 30, 300, 8);
ALTER TABLE shaped DROP COLUMN gone;
INSERT INTO customer VALUES (1, 'Ada', 'London', '1815-12-10'), (2, 'Grüße', 'Köln', '2000-02-29'), (3, 'Max', NULL, NULL);
INSERT INTO orders (customer_id, price, placed, note) VALUES (1, 9.50, '2024-02-29 12:30:45.678', REPEAT('long ', 5000)),
  (2, 120, '2023-01-01', 'short'), (1, 75.25, NULL, NULL);
INSERT INTO defaults (id) VALUES (1), (2);
INSERT INTO generated (a) VALUES (1), (2), (3);
INSERT INTO types VALUES (1, 1.25, b'1000000001', 'x,z', '{"a": [1, null, "b"]}', 42, 'b', '-12:34:56.78', 2024, x'00FF', 1e300),
  (2, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO invisible (a, b) VALUES (1, 5), (2, 6);
INSERT INTO hidden VALUES (1, 'one'), (2, 'Two');
CREATE VIEW spent AS SELECT c.name, SUM(o.price) AS total FROM customer c JOIN orders o ON o.customer_id = c.id GROUP BY c.name;
CREATE USER reader@localhost IDENTIFIED BY 'secret';
GRANT SELECT ON shop.* TO reader@localhost;
ANALYZE TABLE customer, orders;
