//! What clients, dumps and drivers send.

use sheaf_frontend::dialect::SheafDialect;
use sheaf_frontend::error::{Result, SqlError};
use sheaf_frontend::parser::statement::*;
use sheaf_frontend::parser::{Parameters, parse_statement, parse_with_parameters, scan};
use sheaf_table::ReferentialAction;

fn parse(text: &str) -> Result<Statement> {
    let text = scan::resolve_executable_comments(text);
    let (range, _) = scan::first_statement(&text).ok_or_else(SqlError::empty_query)?;
    parse_statement(&text[range], &SheafDialect::default())
}

fn parsed(text: &str) -> Statement {
    match parse(text) {
        Ok(statement) => statement,
        Err(error) => panic!("{text}: {error}"),
    }
}

#[test]
fn a_syntax_error_names_its_place() {
    let error = parse("SELECT 1\nFROM t WHERE )").expect_err("not SQL");
    assert_eq!((error.code, error.sqlstate), (1064, "42000"));
    assert!(
        error.message.ends_with("near ')' at line 2"),
        "{}",
        error.message
    );
    for (text, near) in [
        ("SELECT ?7, 1", "?7, 1"),
        ("SELECT a FROM t WHERE id = ?", "?"),
        ("SELECT a FROM t LIMIT 1.", "1."),
        ("SELECT a FROM t LIMIT 1, 2.5", "2.5"),
        ("SELECT a FROM t LIMIT 1 OFFSET 'x'", "'x'"),
        ("SELECT (SELECT a FROM t LIMIT -1), 2", "-1), 2"),
        ("DELETE FROM t LIMIT (1)", "(1)"),
        ("UPDATE t SET a = 1 LIMIT 0x1", "0x1"),
    ] {
        let error = parse(text).expect_err("no parameters");
        assert_eq!(error.code, 1064, "{text}");
        let place = format!("near '{near}' at line 1");
        assert!(error.message.ends_with(&place), "{}", error.message);
    }
    let error = parse("SELEC 1").expect_err("not SQL");
    assert!(
        error.message.ends_with("near 'SELEC 1' at line 1"),
        "{}",
        error.message
    );
    let error = parse("SELECT 1 FROM").expect_err("not SQL");
    assert!(
        error.message.ends_with("near '' at line 1"),
        "{}",
        error.message
    );
    let error = parse("SHOW INDEX t").expect_err("not SQL");
    assert!(
        error.message.ends_with("near 't' at line 1"),
        "{}",
        error.message
    );
}

#[test]
fn an_empty_statement_is_error_1065() {
    assert_eq!(
        parse(" /* nothing */ ; ").map_err(|e| e.code).err(),
        Some(1065)
    );
}

#[test]
fn every_statement_of_a_dump_is_read() {
    for text in [
        "/*!40101 SET @OLD_CHARACTER_SET_CLIENT=@@CHARACTER_SET_CLIENT */;",
        "/*!40014 SET @OLD_UNIQUE_CHECKS=@@UNIQUE_CHECKS, UNIQUE_CHECKS=0 */;",
        "/*!50503 SET NAMES utf8mb4 */;",
        "/*!40103 SET TIME_ZONE='+00:00' */;",
        "/*!40101 SET SQL_MODE=@OLD_SQL_MODE */;",
        "DROP TABLE IF EXISTS `orders`;",
        "LOCK TABLES `orders` WRITE;",
        "/*!40000 ALTER TABLE `orders` DISABLE KEYS */;",
        "INSERT INTO `orders` VALUES (1,'a'),(2,NULL);",
        "UNLOCK TABLES;",
        "CREATE DATABASE /*!32312 IF NOT EXISTS*/ `shop` /*!40100 DEFAULT CHARACTER SET utf8mb4 */;",
        "SET SESSION SQL_MODE='NO_AUTO_VALUE_ON_ZERO';",
        "SET GLOBAL optimizer_switch='mrr=on,mrr_cost_based=off', SESSION sort_buffer_size = 4*1024*1024;",
        "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ;",
        "START TRANSACTION /*!40100 WITH CONSISTENT SNAPSHOT */;",
        "SHOW VARIABLES LIKE 'lower_case_%';",
        "SHOW SESSION STATUS WHERE Variable_name LIKE 'Handler%' AND Value > 0",
        "SELECT @@version_comment LIMIT 1",
        "KILL QUERY 12",
        "ANALYZE TABLE a, b.c",
        "ANALYZE LOCAL TABLE a UPDATE HISTOGRAM ON x, `y` WITH 32 BUCKETS",
        "ANALYZE TABLE a UPDATE HISTOGRAM ON x",
        "ANALYZE TABLE b.a DROP HISTOGRAM ON x, y",
        "EXPLAIN FORMAT=JSON SELECT 1",
        "DESCRIBE UPDATE t SET a = 1 WHERE b = 2",
        "DESC DELETE FROM t WHERE b = 2",
        "EXPLAIN ANALYZE FORMAT=JSON SELECT 1",
        "EXPLAIN FORMAT=TREE FOR CONNECTION 7",
        "FLUSH LOCAL STATUS",
        "PREPARE s FROM 'SELECT ?'",
        "EXECUTE s USING @a, @b",
        "DEALLOCATE PREPARE s",
        "SELECT * FROM t WHERE a = 1 LOCK IN SHARE MODE",
        "SHOW FULL COLUMNS FROM `t` FROM `d` LIKE '%'",
        "SHOW WARNINGS LIMIT 10",
        "/*!50001 DROP VIEW IF EXISTS `v`*/;",
        "SHOW MASTER STATUS",
        "SHOW FUNCTION STATUS WHERE Db = 'shop'",
        "SELECT /*!40001 SQL_NO_CACHE */ * FROM `orders`",
        "INSERT INTO t SET a = 1, b = DEFAULT",
        "REPLACE INTO t (a) VALUES (1)",
        "RENAME TABLE a TO b, c.d TO e",
    ] {
        parsed(text);
    }
}

#[test]
fn databases_have_options() {
    let options = |character_set: Option<&str>, collation: Option<&str>| DatabaseOptions {
        character_set: character_set.map(str::to_string),
        collation: collation.map(str::to_string),
    };
    for (text, expected) in [
        ("CREATE DATABASE d", options(None, None)),
        (
            "CREATE SCHEMA d DEFAULT CHARACTER SET = utf8mb4 DEFAULT COLLATE 'utf8mb4_bin'",
            options(Some("utf8mb4"), Some("utf8mb4_bin")),
        ),
        (
            "CREATE DATABASE d CHARSET binary /*!80016 DEFAULT ENCRYPTION='N' */",
            options(Some("binary"), None),
        ),
        (
            "CREATE DATABASE d COLLATE = utf8mb4_bin",
            options(None, Some("utf8mb4_bin")),
        ),
    ] {
        let Statement::CreateDatabase { name, options, .. } = parsed(text) else {
            panic!("{text}");
        };
        assert_eq!((name.as_str(), options), ("d", expected), "{text}");
    }
    for (text, expected) in [
        ("ALTER DATABASE d COLLATE utf8mb4_bin", Some("d")),
        (
            "ALTER SCHEMA `collate` COLLATE = utf8mb4_bin",
            Some("collate"),
        ),
        ("ALTER DATABASE COLLATE utf8mb4_bin", None),
        ("ALTER DATABASE DEFAULT COLLATE utf8mb4_bin", None),
    ] {
        let Statement::AlterDatabase {
            name,
            options: found,
        } = parsed(text)
        else {
            panic!("{text}");
        };
        assert_eq!(name.as_deref(), expected, "{text}");
        assert_eq!(found, options(None, Some("utf8mb4_bin")), "{text}");
    }
    assert!(matches!(
        parsed("ALTER DATABASE d READ ONLY = 1"),
        Statement::Unsupported(_)
    ));
    for text in [
        "ALTER DATABASE",
        "ALTER DATABASE d",
        "ALTER DATABASE d DEFAULT",
        "CREATE DATABASE d DEFAULT",
        "CREATE DATABASE d COLLATE",
    ] {
        assert_eq!(parse(text).map_err(|e| e.code).err(), Some(1064), "{text}");
    }
}

#[test]
fn set_keeps_scope_and_value() {
    let Statement::Set(assignments) =
        parsed("SET @a := 1, GLOBAL x = DEFAULT, @@session.y = ON, z = 'q', @@w = 1+1")
    else {
        panic!("not SET");
    };
    let shown: Vec<String> = assignments
        .iter()
        .map(|assignment| match assignment {
            Assignment::User { name, value } => format!("@{name}={value}"),
            Assignment::System {
                scope, name, value, ..
            } => format!(
                "{scope:?} {name}={}",
                match value {
                    SetValue::Default => "DEFAULT".into(),
                    SetValue::Word(word) => format!("word {word}"),
                    SetValue::Expression(expression) => expression.to_string(),
                }
            ),
            other => format!("{other:?}"),
        })
        .collect();
    assert_eq!(
        shown,
        [
            "@a=1",
            "Global x=DEFAULT",
            "Session y=word ON",
            "Global z='q'",
            "Default w=1 + 1"
        ]
    );
}

#[test]
fn load_data_takes_all_options() {
    let Statement::LoadData(load) = parsed(
        r#"LOAD DATA LOCAL INFILE '/tmp/a.csv' IGNORE INTO TABLE d.t CHARACTER SET utf8mb4
           FIELDS TERMINATED BY ',' OPTIONALLY ENCLOSED BY '"' ESCAPED BY '\\'
           LINES STARTING BY '>' TERMINATED BY '\r\n' IGNORE 1 LINES (a, @x, b) SET c = @x + 1"#,
    ) else {
        panic!("not LOAD DATA");
    };
    assert!(load.local);
    assert_eq!(load.on_duplicate, OnDuplicate::Ignore);
    assert_eq!(
        load.format,
        FileFormat {
            fields_terminated_by: b",".to_vec(),
            enclosed_by: Some(b'"'),
            optionally_enclosed: true,
            escaped_by: Some(b'\\'),
            lines_starting_by: b">".to_vec(),
            lines_terminated_by: b"\r\n".to_vec(),
        }
    );
    assert_eq!(load.ignore_lines, 1);
    assert_eq!(
        load.targets,
        [
            LoadTarget::Column("a".into()),
            LoadTarget::Variable("x".into()),
            LoadTarget::Column("b".into())
        ]
    );
    assert_eq!(load.set[0].0, "c");
}

#[test]
fn create_table_reads_types_options_and_keys() {
    let Statement::CreateTable(table) = parsed(
        "CREATE TABLE IF NOT EXISTS d.t (
            id BIGINT(20) UNSIGNED NOT NULL AUTO_INCREMENT COMMENT 'key',
            name VARCHAR(40) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin DEFAULT 'x',
            price DECIMAL(15,2) NOT NULL DEFAULT 0.00,
            kind ENUM('a','b') NULL,
            at TIMESTAMP(3) NOT NULL DEFAULT CURRENT_TIMESTAMP(3) ON UPDATE CURRENT_TIMESTAMP(3),
            flag BOOL, body TEXT, code CHAR(3) BINARY,
            PRIMARY KEY (id), UNIQUE KEY u (name(5), kind DESC) USING BTREE COMMENT 'c', KEY (price),
            CONSTRAINT fk FOREIGN KEY (kind) REFERENCES other (id) ON DELETE CASCADE ON UPDATE SET NULL
        ) ENGINE=InnoDB AUTO_INCREMENT=7 DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci COMMENT='no'",
    ) else {
        panic!("not CREATE TABLE");
    };
    assert!(table.if_not_exists);
    let types: Vec<String> = table
        .columns
        .iter()
        .map(|column| column.ty.ty.to_string())
        .collect();
    assert_eq!(
        types,
        [
            "bigint unsigned",
            "varchar(40)",
            "decimal(15,2)",
            "enum('a','b')",
            "timestamp(3)",
            "tinyint(1)",
            "text",
            "char(3)"
        ]
    );
    assert_eq!(table.keys.len(), 3);
    assert_eq!(table.keys[1].parts[0].prefix_length, Some(5));
    assert!(table.keys[1].parts[1].descending);
    assert_eq!(table.auto_increment, Some(7));
    assert_eq!(
        table.foreign_keys,
        [ForeignKeyDefinition {
            name: Some("fk".into()),
            index: None,
            columns: vec!["kind".into()],
            table: TableName {
                database: None,
                table: "other".into(),
            },
            referenced: vec!["id".into()],
            on_delete: ReferentialAction::Cascade,
            on_update: ReferentialAction::SetNull,
        }]
    );
}

#[test]
fn a_type_with_wrong_parameters_is_mysqls_error() {
    let code = |text: &str| parse(text).map_err(|error| error.code).err();
    assert_eq!(code("CREATE TABLE t (a DECIMAL(80,2))"), Some(1426));
    assert_eq!(code("CREATE TABLE t (a DECIMAL(5,6))"), Some(1427));
    assert_eq!(code("CREATE TABLE t (a DATETIME(9))"), Some(1426));
    assert_eq!(code("CREATE TABLE t (a VARCHAR UNSIGNED)"), Some(1064));
    assert_eq!(code("CREATE TABLE t (a JSON)"), None);
    assert_eq!(
        code("CREATE TABLE t (a INT(255), b TINYINT(255), c FLOAT(53), d BLOB(4294967295))"),
        None
    );
    for width in [
        "INT(256)",
        "TINYINT(256)",
        "BIGINT(300)",
        "TEXT(4294967296)",
    ] {
        let text = format!("CREATE TABLE t (a {width})");
        assert_eq!(code(&text), Some(1439), "{text}");
    }
    assert_eq!(code("CREATE TABLE t (a FLOAT(54))"), Some(1063));
}

#[test]
fn alter_adds_and_drops_keys() {
    let Statement::AlterTable { changes, .. } = parsed(
        "ALTER TABLE t ADD UNIQUE INDEX i (a, b(3)), DROP KEY j, ADD PRIMARY KEY (a), ALGORITHM=INPLACE",
    ) else {
        panic!("not ALTER TABLE");
    };
    assert!(
        matches!(&changes[0], TableChange::AddKey(key) if key.kind == KeyKind::Unique && key.parts.len() == 2)
    );
    assert!(matches!(&changes[1], TableChange::DropKey { name } if name == "j"));
    assert!(matches!(&changes[2], TableChange::AddKey(key) if key.kind == KeyKind::Primary));
    assert!(matches!(&changes[3], TableChange::Algorithm(name) if name == "INPLACE"));
}

#[test]
fn alter_changes_columns_and_options() {
    let Statement::AlterTable { changes, .. } = parsed(
        "ALTER TABLE t ADD (a INT, KEY (a)), ADD COLUMN b INT NOT NULL DEFAULT 3 AFTER a, MODIFY c BIGINT FIRST, \
         CHANGE COLUMN d e INT UNIQUE, DROP f, RENAME COLUMN g TO h, ALTER i SET DEFAULT 5, \
         ENGINE=InnoDB COMMENT='x' AUTO_INCREMENT 7, CONVERT TO CHARACTER SET utf8mb4 COLLATE utf8mb4_bin",
    ) else {
        panic!("not ALTER TABLE");
    };
    assert_eq!(changes.len(), 12);
    assert!(matches!(&changes[1], TableChange::AddKey(_)));
    assert!(
        matches!(&changes[2], TableChange::AddColumn { column, place, .. }
            if column.not_null && *place == Some(ColumnPlace::After("a".into())))
    );
    assert!(
        matches!(&changes[3], TableChange::ChangeColumn { name, place, .. }
            if name == "c" && *place == Some(ColumnPlace::First))
    );
    assert!(
        matches!(&changes[4], TableChange::ChangeColumn { name, column, keys, place: None, .. }
            if name == "d" && column.name == "e" && keys.len() == 1)
    );
    assert!(matches!(&changes[9], TableChange::Comment(comment) if comment == "x"));
    assert!(matches!(&changes[10], TableChange::AutoIncrement(7)));
    assert!(matches!(
        &changes[11],
        TableChange::ConvertTo {
            character_set: Some(_),
            collation: Some(_),
        }
    ));
}

#[test]
fn parameters_are_literals_wherever_they_stand() {
    let dialect = SheafDialect::default();
    let text = "SELECT ?, a - ? FROM t WHERE b = ? AND c = '?' LIMIT ?";
    let (_, count) = parse_with_parameters(text, &dialect, Parameters::Unknown).expect("prepared");
    assert_eq!(count, 4);
    let values = [
        sheaf_types::Value::Text("x'; DROP TABLE t".into()),
        sheaf_types::Value::Int(-5),
        sheaf_types::Value::Null,
        sheaf_types::Value::Int(3),
    ];
    let (statement, _) =
        parse_with_parameters(text, &dialect, Parameters::Values(&values)).expect("executed");
    let Statement::Query(query) = statement else {
        panic!("not a query")
    };
    assert_eq!(
        query.to_string(),
        "SELECT 'x''; DROP TABLE t', a - (-5) FROM t WHERE b = NULL AND c = '?' LIMIT 3"
    );
    let error = parse_with_parameters(text, &dialect, Parameters::Values(&values[..3]))
        .expect_err("one is missing");
    assert_eq!(error.code, 1210);
}

/// Each of these took seconds: a look at the nth token walked over those before it, or an operand was read twice at
/// each level of a nest.
#[test]
fn long_and_nested_statements_are_read_once() {
    let pairs = "(1, a), ".repeat(40_000);
    let many =
        format!("WITH c AS (SELECT 1 FROM t WHERE (a, b) IN ({pairs}(1, 2))) SELECT 1 FROM c");
    let nest = |begin: &str, operand: &str, end: &str| {
        let depth = 24;
        format!(
            "SELECT {}{operand}{}",
            begin.repeat(depth),
            end.repeat(depth)
        )
    };
    let frames = [
        ("NOT (", ")"),
        ("1 IN ((SELECT ", "))"),
        ("1 IN ((SELECT ", "), 1)"),
        ("(1, 2) IN ((SELECT 1, ", "), (SELECT 1, 2))"),
        ("CONVERT(", ", CHAR)"),
        ("CONVERT(", " USING utf8mb4)"),
        ("NOW() + INTERVAL (", ") DAY"),
        ("INTERVAL (1, ", ")"),
        ("SUBSTRING(", " FROM 1 FOR 2)"),
        ("BINARY (", ")"),
        ("FLOOR(", ")"),
        ("CEIL(", ")"),
    ];
    let begin = std::time::Instant::now();
    assert!(parse(&many).is_ok());
    for (before, behind) in frames {
        let text = nest(before, "1", behind);
        assert!(parse(&text).is_ok(), "{text}");
        for wrong in ["1 2 3 FROM", " ) "] {
            let text = nest(before, wrong, behind);
            assert_eq!(
                parse(&text).map_err(|error| error.code).err(),
                Some(1064),
                "{text}"
            );
        }
    }
    // Milliseconds each; 2^24 steps were more than this for each.
    assert!(begin.elapsed().as_secs() < 60);
}

/// What begins with a subquery behind IN is one, or a list of operands.
#[test]
fn subqueries_begin_operands_behind_in() {
    for (text, is_list) in [
        ("SELECT 1 IN ((SELECT 1))", false),
        ("SELECT 1 IN (((SELECT 1)))", false),
        ("SELECT 1 NOT IN (SELECT 1)", false),
        (
            "SELECT 1 IN ((SELECT 1) UNION (SELECT 2) ORDER BY 1)",
            false,
        ),
        ("SELECT 1 IN ((SELECT 1) + 1)", true),
        ("SELECT 1 NOT IN ((SELECT 1) = 1)", true),
        ("SELECT 1 IN ((SELECT 1), 2)", true),
    ] {
        let shown = format!("{:?}", parsed(text));
        assert_eq!(shown.contains("InList"), is_list, "{text}: {shown}");
        assert_eq!(shown.contains("InSubquery"), !is_list, "{text}");
    }
}

/// Only characters have a character set.
#[test]
fn casts_to_characters_have_a_character_set() {
    for text in [
        "SELECT CAST('a' AS CHAR CHARACTER SET utf8mb4)",
        "SELECT CAST('a' AS CHAR(3) CHARSET latin1)",
        "SELECT CONVERT('a', CHAR CHARSET latin1)",
        "SELECT CONVERT('a', CHARACTER(3) CHARACTER SET latin1)",
        "SELECT CONVERT('a' USING latin1)",
        "SELECT CONVERT('1', SIGNED)",
    ] {
        parsed(text);
    }
    for text in [
        "SELECT CAST('a' AS SIGNED CHARACTER SET utf8mb4)",
        "SELECT CONVERT('a', SIGNED CHARACTER SET utf8mb4)",
        "SELECT CAST('a' AS DATE CHARSET latin1)",
        "SELECT CAST('a' AS BINARY CHARSET latin1)",
    ] {
        assert_eq!(
            parse(text).map_err(|error| error.code).err(),
            Some(1064),
            "{text}"
        );
    }
}
