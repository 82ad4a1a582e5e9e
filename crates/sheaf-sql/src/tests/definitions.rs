//! Databases, tables, indexes, and what SHOW says of them.

use super::{Bench, run};
use crate::{Session, SessionInfo};

#[test]
fn a_database_comes_and_goes() {
    let mut bench = Bench::new();
    bench.ok("CREATE DATABASE shop");
    assert_eq!(bench.error("CREATE DATABASE shop"), 1007);
    let ok = bench.ok("CREATE DATABASE IF NOT EXISTS shop");
    assert_eq!(ok.warnings, 1);
    assert_eq!(bench.rows("SHOW DATABASES LIKE 'sh%'"), ["shop"]);
    bench.ok("USE shop; CREATE TABLE t (a INT)");
    assert_eq!(bench.ok("DROP DATABASE shop").ok.affected_rows, 1);
    assert_eq!(bench.error("DROP DATABASE shop"), 1008);
    assert_eq!(
        bench.error("CREATE TABLE t (a INT)"),
        1046,
        "the current database is gone"
    );
    assert_eq!(bench.error("USE shop"), 1049);
    assert_eq!(bench.error("DROP DATABASE information_schema"), 1044);
}

#[test]
fn a_database_has_a_collation() {
    let mut bench = Bench::new();
    let told = "SELECT @@character_set_database, @@collation_database";
    assert_eq!(bench.rows(told), ["utf8mb4|utf8mb4_0900_ai_ci"]);
    assert_eq!(
        bench.rows("SHOW CREATE DATABASE test"),
        [
            "test|CREATE DATABASE `test` /*!40100 DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_0900_ai_ci */"
        ]
    );
    let altered = bench.ok("ALTER DATABASE CHARACTER SET utf8mb4 COLLATE utf8mb4_bin");
    assert_eq!((altered.ok.affected_rows, altered.warnings), (1, 0));
    assert_eq!(bench.rows(told), ["utf8mb4|utf8mb4_bin"]);
    bench.ok("CREATE TABLE t (a VARCHAR(3))");
    let shown = bench.rows("SHOW CREATE TABLE t").concat();
    assert!(
        shown.ends_with("CHARSET=utf8mb4 COLLATE=utf8mb4_bin"),
        "{shown}"
    );
    // The character set alone stands for its default collation.
    bench.ok("ALTER DATABASE test CHARACTER SET utf8mb4");
    assert_eq!(bench.rows(told), ["utf8mb4|utf8mb4_0900_ai_ci"]);
    bench.ok("CREATE DATABASE old CHARACTER SET latin1");
    assert_eq!(
        bench.rows("SHOW CREATE DATABASE old"),
        ["old|CREATE DATABASE `old` /*!40100 DEFAULT CHARACTER SET latin1 */"]
    );
    // Where there is not the collation that was asked for, the nearest one is told of.
    assert_eq!(
        bench
            .ok("CREATE DATABASE older CHARACTER SET tis620")
            .warnings,
        1
    );
    assert_eq!(
        bench.rows("SHOW CREATE DATABASE older"),
        [
            "older|CREATE DATABASE `older` /*!40100 DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci */"
        ]
    );
    bench.ok("USE information_schema");
    assert_eq!(bench.rows(told), ["utf8mb3|utf8mb3_general_ci"]);
    assert_eq!(
        bench.rows("SHOW CREATE DATABASE information_schema"),
        [
            "information_schema|CREATE DATABASE `information_schema` /*!40100 DEFAULT CHARACTER SET utf8mb3 */"
        ]
    );
    for (sql, code) in [
        ("ALTER DATABASE COLLATE utf8mb4_bin", 1044),
        ("ALTER DATABASE nowhere COLLATE utf8mb4_bin", 1049),
        ("ALTER DATABASE nowhere ENCRYPTION 'N'", 1049),
        ("SHOW CREATE DATABASE nowhere", 1049),
        (
            "ALTER DATABASE test CHARACTER SET utf8 COLLATE utf8mb4_bin",
            1253,
        ),
        ("ALTER DATABASE test READ ONLY = 1", 1235),
    ] {
        assert_eq!(bench.error(sql), code, "{sql}");
    }
    bench.ok("ALTER DATABASE test CHARACTER SET utf8 COLLATE utf8mb3_bin");
    bench.ok("ALTER DATABASE test ENCRYPTION 'N'");
    bench.ok("USE test");
    assert_eq!(bench.rows(told), ["utf8mb3|utf8mb3_bin"]);
    // Others are told when they come.
    let info = SessionInfo {
        database: Some("test".into()),
        ..SessionInfo::default()
    };
    let mut other = bench.engine.session(info).expect("a session");
    bench.ok("ALTER DATABASE COLLATE utf8mb4_general_ci");
    let rows = |session: &mut Session| run(session, told).expect("it is right").rows;
    assert_eq!(rows(&mut other), ["utf8mb3|utf8mb3_bin"]);
    other.reset();
    assert_eq!(rows(&mut other), ["utf8mb4|utf8mb4_general_ci"]);
    run(&mut other, "DROP DATABASE test").expect("nobody uses it");
    assert_eq!(rows(&mut other), ["utf8mb4|utf8mb4_0900_ai_ci"]);
}

#[test]
fn a_prepared_statement_changes_the_database_that_it_was_prepared_in() {
    let mut bench = Bench::new();
    bench.ok("PREPARE p FROM 'ALTER DATABASE COLLATE utf8mb4_bin'");
    bench.ok("CREATE DATABASE other; USE other");
    bench.ok("EXECUTE p");
    assert_eq!(
        bench.rows("SELECT @@collation_database"),
        ["utf8mb4_0900_ai_ci"]
    );
    bench.ok("USE test");
    assert_eq!(bench.rows("SELECT @@collation_database"), ["utf8mb4_bin"]);
}

#[test]
fn show_create_table_gives_back_what_was_created() {
    let mut bench = Bench::new();
    bench.ok(
        "CREATE TABLE t (id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT, name VARCHAR(20) DEFAULT 'x', \
              price DECIMAL(8,2) NOT NULL DEFAULT 0, at DATETIME(3) DEFAULT CURRENT_TIMESTAMP(3), \
              PRIMARY KEY (id), UNIQUE KEY u (name(5)), KEY p (price, name))",
    );
    let shown = bench.rows("SHOW CREATE TABLE t").concat();
    for piece in [
        "CREATE TABLE `t`",
        "`id` bigint unsigned NOT NULL AUTO_INCREMENT",
        "DEFAULT 'x'",
        "PRIMARY KEY (`id`)",
        "UNIQUE KEY `u` (`name`(5))",
        "KEY `p` (`price`,`name`)",
        "DEFAULT CURRENT_TIMESTAMP(3)",
    ] {
        assert!(shown.contains(piece), "{piece} in {shown}");
    }
    assert_eq!(
        bench.rows("SHOW COLUMNS FROM t"),
        [
            "id|bigint unsigned|NO|PRI|NULL|auto_increment",
            "name|varchar(20)|YES|UNI|x|",
            "price|decimal(8,2)|NO|MUL|0.00|",
            "at|datetime(3)|YES||CURRENT_TIMESTAMP(3)|DEFAULT_GENERATED",
        ]
    );
    assert_eq!(
        bench.rows("DESCRIBE t name"),
        ["name|varchar(20)|YES|UNI|x|"]
    );
}

#[test]
fn a_default_ends_before_not_null() {
    let mut bench = Bench::new();
    bench.ok("CREATE TABLE t (a INT PRIMARY KEY, k INTEGER DEFAULT '0' NOT NULL, n INT DEFAULT -1 NOT NULL)");
    bench.ok("INSERT INTO t (a) VALUES (1)");
    assert_eq!(bench.table_rows("t"), ["1|0|-1"]);
    assert_eq!(bench.error("INSERT INTO t (a, k) VALUES (2, NULL)"), 1048);
}

#[test]
fn wrong_definitions_are_mysqls_errors() {
    let mut bench = Bench::new();
    for (sql, code) in [
        ("CREATE TABLE t ()", 1064),
        ("CREATE TABLE t (a INT, A INT)", 1060),
        ("CREATE TABLE t (a INT, KEY (b))", 1072),
        ("CREATE TABLE t (a INT AUTO_INCREMENT)", 1075),
        ("CREATE TABLE t (a TEXT, KEY (a))", 1170),
        ("CREATE TABLE t (a INT, KEY k (a), KEY K (a))", 1061),
        ("CREATE TABLE t (a INT PRIMARY KEY, PRIMARY KEY (a))", 1068),
        ("CREATE TABLE t (a INT NULL, PRIMARY KEY (a))", 1171),
        ("CREATE TABLE t (a INT DEFAULT 'x')", 1067),
        ("CREATE TABLE t (a TEXT DEFAULT 'x')", 1101),
        ("CREATE TABLE t (a INT NOT NULL DEFAULT NULL)", 1067),
        ("CREATE TABLE t (a VARCHAR(9) CHARACTER SET klingon)", 1115),
        ("CREATE TABLE t (a VARCHAR(9) COLLATE klingon_ci)", 1273),
        (
            "CREATE TABLE t (a INT) CHARSET latin1 COLLATE utf8mb4_bin",
            1253,
        ),
        ("CREATE TABLE information_schema.t (a INT)", 1044),
        ("CREATE TABLE nowhere.t (a INT)", 1049),
        ("DROP TABLE t", 1051),
    ] {
        assert_eq!(bench.error(sql), code, "{sql}");
    }
    bench.ok("CREATE TABLE t (a INT)");
    assert_eq!(bench.error("CREATE TABLE t (a INT)"), 1050);
    assert_eq!(bench.ok("CREATE TABLE IF NOT EXISTS t (a INT)").warnings, 1);
    assert_eq!(bench.error("ALTER TABLE t DROP KEY k"), 1091);
    assert_eq!(bench.error("ALTER TABLE t ORDER BY a"), 1235);
}

#[test]
fn wrong_changes_of_columns_are_mysqls_errors() {
    let mut bench = Bench::new();
    bench.ok("CREATE TABLE p (id INT PRIMARY KEY, x INT)");
    bench.ok("CREATE TABLE c (id INT PRIMARY KEY, p INT, s VARCHAR(20), KEY p (p), CONSTRAINT f FOREIGN KEY (p) REFERENCES p (id) ON DELETE SET NULL)");
    bench.ok("INSERT INTO p VALUES (1, NULL)");
    bench.ok("INSERT INTO c VALUES (1, 1, 'no number')");
    for (sql, code) in [
        ("ALTER TABLE c DROP COLUMN p", 1828),
        ("ALTER TABLE p DROP COLUMN id", 1829),
        ("ALTER TABLE c MODIFY p BIGINT", 1832),
        ("ALTER TABLE p MODIFY id BIGINT", 1833),
        ("ALTER TABLE c MODIFY p INT NOT NULL", 1830),
        ("ALTER TABLE p DROP PRIMARY KEY", 1553),
        ("ALTER TABLE p MODIFY x INT NOT NULL", 1138),
        ("ALTER TABLE c MODIFY s INT", 1366),
        ("ALTER TABLE c MODIFY s VARCHAR(3)", 1265),
        ("ALTER TABLE c ADD d DATE NOT NULL", 1292),
        ("ALTER TABLE c ADD d INT PRIMARY KEY", 1068),
        ("ALTER TABLE c ALTER s SET DEFAULT CURRENT_TIMESTAMP", 1067),
        ("ALTER TABLE c RENAME KEY p TO `PRIMARY`", 1280),
        ("ALTER TABLE c MODIFY s VARCHAR(9) COLLATE klingon_ci", 1273),
        ("ALTER TABLE c CONVERT TO CHARACTER SET binary", 1235),
        ("ALTER TABLE c ALTER INDEX none INVISIBLE", 1176),
        ("ALTER TABLE c MODIFY s", 1064),
    ] {
        assert_eq!(bench.error(sql), code, "{sql}");
    }
    assert_eq!(bench.table_rows("c"), ["1|1|no number"]);
    // What foreign keys do not look at may change, and without checks all may.
    bench.ok("ALTER TABLE c DROP FOREIGN KEY f, DROP COLUMN p");
    bench.ok("ALTER TABLE p MODIFY id BIGINT");
    assert_eq!(bench.table_rows("c"), ["1|no number"]);
}

#[test]
fn a_changed_table_is_shown_as_it_is() {
    let mut bench = Bench::new();
    bench.ok("CREATE TABLE t (id INT, v VARCHAR(10) DEFAULT 'x', KEY v (v(3)))");
    bench.ok("INSERT INTO t VALUES (0, 'a'), (0, NULL)");
    let done = bench.ok("ALTER TABLE t MODIFY id INT AUTO_INCREMENT PRIMARY KEY COMMENT 'numbered', CHANGE v w VARCHAR(20) FIRST, ADD (e ENUM('a','b') NOT NULL, KEY (e)), RENAME KEY v TO w, COMMENT 'changed'");
    assert_eq!(done.ok.info, "Records: 2  Duplicates: 0  Warnings: 0");
    assert_eq!(bench.table_rows("t"), ["a|1|1", "NULL|2|1"]);
    let shown = bench.rows("SHOW CREATE TABLE t").concat();
    for line in [
        "`w` varchar(20) DEFAULT NULL,",
        "`id` int NOT NULL AUTO_INCREMENT COMMENT 'numbered',",
        "`e` enum('a','b') NOT NULL,",
        "PRIMARY KEY (`id`),",
        "KEY `w` (`w`(3)),",
        "KEY `e` (`e`)",
        "COMMENT='changed'",
    ] {
        assert!(shown.contains(line), "{line} in {shown}");
    }
    bench.ok("SET sql_mode = ''");
    let done = bench.ok("ALTER TABLE t MODIFY w VARCHAR(20) NOT NULL");
    assert_eq!(
        bench.rows("SHOW WARNINGS"),
        ["Warning|1265|Data truncated for column 'w' at row 2"]
    );
    assert_eq!(done.warnings, 1);
    assert_eq!(bench.rows("CHECK TABLE t"), ["test.t|check|status|OK"]);
}

#[test]
fn keys_are_added_to_filled_tables() {
    let mut bench = Bench::new();
    bench.ok("CREATE TABLE t (a INT PRIMARY KEY, b VARCHAR(10), c INT)");
    bench.ok("INSERT INTO t VALUES (1,'x',5),(2,'y',5),(3,'z',6)");
    bench.ok("CREATE INDEX i ON t (c, b(3))");
    bench.ok("ALTER TABLE t ADD UNIQUE KEY u (b), ADD KEY (c)");
    assert_eq!(bench.error("CREATE UNIQUE INDEX v ON t (c)"), 1062);
    let keys = bench.rows("SHOW INDEX FROM t");
    let names: Vec<String> = keys
        .iter()
        .map(|row| row.split('|').skip(1).take(4).collect::<Vec<_>>().join(" "))
        .collect();
    assert_eq!(
        names,
        ["0 PRIMARY 1 a", "0 u 1 b", "1 i 1 c", "1 i 2 b", "1 c 1 c"]
    );
    assert_eq!(bench.rows("CHECK TABLE t"), ["test.t|check|status|OK"]);
    assert_eq!(bench.rows("ANALYZE TABLE t"), ["test.t|analyze|status|OK"]);
    bench.ok("DROP INDEX i ON t");
    assert_eq!(bench.rows("SHOW KEYS FROM t FROM test").len(), 3);
}

#[test]
fn histograms_are_made_shown_and_dropped() {
    let mut bench = Bench::new();
    bench.ok("CREATE TABLE t (a INT PRIMARY KEY, b VARCHAR(10))");
    bench.ok("INSERT INTO t VALUES (1,'x'),(2,'x'),(3,NULL),(4,'Y')");
    bench.ok("SET timestamp = 1000000000");
    assert_eq!(
        bench.rows("ANALYZE TABLE t UPDATE HISTOGRAM ON b, c WITH 4 BUCKETS"),
        [
            "test.t|histogram|Error|The column 'c' does not exist.",
            "test.t|histogram|status|Histogram statistics created for column 'b'.",
        ]
    );
    let shown = "SELECT column_name, histogram FROM information_schema.column_statistics";
    assert_eq!(
        bench.rows(shown),
        [concat!(
            "b|{\"buckets\": [[\"base64:type254:eA==\", 0.5], [\"base64:type254:WQ==\", 0.75]], ",
            "\"data-type\": \"string\", \"null-values\": 0.25, \"collation-id\": 255, ",
            "\"last-updated\": \"2001-09-09 01:46:40.000000\", \"sampling-rate\": 1.0, ",
            "\"histogram-type\": \"singleton\", \"number-of-buckets-specified\": 4}",
        )]
    );
    let drop = "ANALYZE TABLE t DROP HISTOGRAM ON b";
    for message in [
        "status|Histogram statistics removed for column 'b'.",
        "Error|No histogram statistics found for column 'b'.",
    ] {
        assert_eq!(bench.rows(drop), [format!("test.t|histogram|{message}")]);
    }
    assert!(bench.rows(shown).is_empty());
    for buckets in [0, 1025] {
        let update = format!("ANALYZE TABLE t UPDATE HISTOGRAM ON a WITH {buckets} BUCKETS");
        assert_eq!(bench.error(&update), 1690);
    }
    // What was dropped stays away; the other columns get histograms.
    bench.ok("ANALYZE TABLE t");
    assert!(bench.rows(shown)[0].starts_with("a|") && bench.rows(shown).len() == 1);
    assert_eq!(
        bench.rows("SELECT index_name, pages, resident FROM information_schema.sheaf_residency"),
        ["PRIMARY|1|1"]
    );
}

#[test]
fn json_values_have_no_histogram() {
    let mut bench = Bench::new();
    bench.ok("CREATE TABLE t (j JSON, v INT)");
    assert_eq!(
        bench.rows("ANALYZE TABLE t UPDATE HISTOGRAM ON j, v WITH 4 BUCKETS"),
        [
            "test.t|histogram|Error|The column 'j' has an unsupported data type.",
            "test.t|histogram|status|Histogram statistics created for column 'v'.",
        ]
    );
    assert_eq!(
        bench.rows("ANALYZE TABLE t DROP HISTOGRAM ON j"),
        ["test.t|histogram|Error|No histogram statistics found for column 'j'."]
    );
}

#[test]
fn tables_are_renamed_truncated_and_dropped() {
    let mut bench = Bench::new();
    bench.ok("CREATE TABLE a (x INT PRIMARY KEY, KEY k (x)); INSERT INTO a VALUES (1),(2)");
    bench.ok("RENAME TABLE a TO b");
    bench.ok("CREATE TABLE c LIKE b");
    assert_eq!(bench.rows("SHOW TABLES"), ["b", "c"]);
    assert_eq!(bench.rows("SHOW INDEX FROM c").len(), 2);
    assert_eq!(bench.table_rows("b"), ["1", "2"]);
    bench.ok("TRUNCATE TABLE b");
    assert!(bench.table_rows("b").is_empty());
    assert_eq!(bench.error("DROP TABLE b, missing"), 1051);
    assert_eq!(
        bench.rows("SHOW TABLES LIKE 'b'"),
        ["b"],
        "one missing table keeps the others"
    );
    assert_eq!(bench.ok("DROP TABLE IF EXISTS b, missing, c").warnings, 1);
    assert!(bench.rows("SHOW TABLES").is_empty());
}

#[test]
fn a_table_made_of_a_query_has_all_of_its_columns() {
    let mut bench = Bench::new();
    assert_eq!(bench.error("CREATE TABLE t SELECT 1 AS a, 2 AS A"), 1060);
    assert_eq!(
        bench.error("CREATE TABLE t (a INT) SELECT 1 AS a, 2 AS a"),
        1060
    );
    assert!(bench.rows("SHOW TABLES").is_empty());
    bench.ok("CREATE TABLE t (a INT PRIMARY KEY) SELECT 2 AS b, 1 AS a");
    assert_eq!(bench.table_rows("t"), ["2|1"]);
    // What fails leaves no table behind, and nothing of it.
    let trees = bench.engine.storage().tree_ids().unwrap();
    for (wrong, code) in [
        ("(a INT PRIMARY KEY) SELECT 1 AS a UNION ALL SELECT 1", 1062),
        ("(b INT NOT NULL) SELECT a FROM t", 1364),
        (
            "(p INT, FOREIGN KEY (p) REFERENCES t (a)) SELECT 2 AS p",
            1452,
        ),
    ] {
        assert_eq!(bench.error(&format!("CREATE TABLE u {wrong}")), code);
        assert_eq!(bench.rows("SHOW TABLES"), ["t"]);
    }
    assert_eq!(bench.engine.storage().tree_ids().unwrap(), trees);
    bench.ok("CREATE TABLE u (p INT, FOREIGN KEY (p) REFERENCES t (a)) SELECT a AS p FROM t");
    assert_eq!(bench.table_rows("u"), ["1"]);
    assert_eq!(bench.error("DELETE FROM t"), 1451);
    assert_eq!(bench.error("CREATE TABLE u SELECT 1 AS a"), 1050);
    bench.ok("CREATE TABLE IF NOT EXISTS u SELECT 7 AS p");
    assert_eq!(bench.table_rows("u"), ["1"]);
}

#[test]
fn tables_are_renamed_together_or_not_at_all() {
    let mut bench = Bench::new();
    bench.ok("CREATE TABLE a (x INT PRIMARY KEY); CREATE TABLE b (y INT PRIMARY KEY); INSERT INTO a VALUES (1)");
    assert_eq!(bench.error("RENAME TABLE a TO old, missing TO a"), 1146);
    assert_eq!(bench.error("RENAME TABLE a TO c, c TO d, d TO b"), 1050);
    assert_eq!(bench.rows("SHOW TABLES"), ["a", "b"]);
    assert_eq!(bench.table_rows("a"), ["1"]);
    bench.ok("RENAME TABLE a TO c, b TO a, c TO b");
    assert_eq!(bench.table_rows("b"), ["1"]);
    // Also ALTER TABLE takes a name without a database for one of the current database.
    bench.ok("CREATE DATABASE other; CREATE TABLE other.t (x INT)");
    bench.ok("ALTER TABLE other.t RENAME TO u");
    assert_eq!(bench.rows("SHOW TABLES"), ["a", "b", "u"]);
}

#[test]
fn a_database_goes_with_all_that_refers_to_its_tables() {
    let mut bench = Bench::new();
    bench.ok("CREATE DATABASE parents; CREATE TABLE parents.p (id INT PRIMARY KEY)");
    bench.ok("CREATE TABLE parents.c (id INT PRIMARY KEY, FOREIGN KEY (id) REFERENCES p (id))");
    bench.ok("CREATE TABLE t (id INT PRIMARY KEY, FOREIGN KEY (id) REFERENCES parents.p (id))");
    assert_eq!(bench.error("DROP DATABASE parents"), 3730);
    bench.ok("INSERT INTO parents.p VALUES (1); INSERT INTO t VALUES (1)");
    bench.ok("DROP TABLE t; DROP DATABASE parents");
    assert_eq!(bench.error("DROP DATABASE parents"), 1008);
    bench.ok("DROP DATABASE IF EXISTS parents");
}

#[test]
fn definitions_survive_closing() {
    let mut bench = Bench::new();
    bench.ok("CREATE TABLE t (a INT PRIMARY KEY, b INT, KEY (b)); INSERT INTO t VALUES (1,2)");
    let shown = bench.rows("SHOW CREATE TABLE t");
    let Bench {
        session,
        engine,
        directory,
    } = bench;
    drop(session);
    engine.close().expect("a clean close");
    drop(engine);
    let options = crate::EngineOptions {
        memory_bytes: 32 << 20,
        ..crate::EngineOptions::default()
    };
    let engine =
        crate::Engine::open(&directory.path().join("data"), options).expect("it opens again");
    let info = crate::SessionInfo {
        database: Some("test".into()),
        ..crate::SessionInfo::default()
    };
    let session = engine.session(info).expect("a session");
    let mut bench = Bench {
        session,
        engine,
        directory,
    };
    assert_eq!(bench.rows("SHOW CREATE TABLE t"), shown);
    assert_eq!(bench.table_rows("t"), ["1|2"]);
}

#[test]
fn tables_of_the_same_rows_have_one_checksum() {
    let mut bench = Bench::new();
    bench.ok("CREATE TABLE a (id INT PRIMARY KEY, t TIMESTAMP, e ENUM('x', 'y'), j JSON, b BLOB, h INT INVISIBLE)");
    bench.ok("INSERT INTO a (id, t, e, j, b, h) VALUES (1, '2020-01-01', 'x', '{\"k\": 1}', x'ff00', 5), (2, NULL, 'y', NULL, '', NULL)");
    bench.ok("CREATE TABLE b LIKE a; INSERT INTO b (id, t, e, j, b, h) SELECT id, t, e, j, b, h FROM a ORDER BY id DESC");
    let mut of = |table: &str| {
        let row = bench.rows(&format!("CHECKSUM TABLE {table}")).remove(0);
        let (_, checksum) = row.split_once('|').expect("two columns");
        checksum.to_string()
    };
    let first = of("a");
    assert_eq!(of("b EXTENDED"), first);
    assert_ne!(first, "0");
    let mut changed = |statement: &str| {
        bench.ok(statement);
        bench
            .rows("CHECKSUM TABLE a, b")
            .into_iter()
            .map(|row| {
                let checksum = row.rsplit('|').next();
                checksum.unwrap_or_default().to_string()
            })
            .collect::<Vec<_>>()
    };
    // Neither the session's time zone nor how the rows are stored counts.
    assert_eq!(changed("SET time_zone = '+05:00'"), [&*first, &*first]);
    let instant = "ALTER TABLE a DROP COLUMN h, ALGORITHM=INSTANT";
    let copied = "ALTER TABLE b DROP COLUMN h, ALGORITHM=COPY";
    changed(instant);
    let same = changed(copied);
    assert_eq!(same[0], same[1]);
    assert_eq!(changed("SET sql_select_limit = 1")[0], same[0]);
    let other = changed("UPDATE a SET b = x'ff01' WHERE id = 1");
    assert_ne!(other[0], other[1]);
    // A transaction sees its own rows.
    let own = changed("BEGIN; INSERT INTO b (id) VALUES (3)");
    assert_ne!(own[1], other[1]);
    assert_eq!(changed("ROLLBACK")[1], other[1]);
}
