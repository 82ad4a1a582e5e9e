//! Random texts of every family: INSERT, CAST, comparisons and literals make the same value of each. And random numbers
//! without quotes, of more digits than a DECIMAL has, too.

use super::Bench;

/// A family: the column's type, the cast that makes the same values of texts, and pieces of its texts.
struct Family {
    column: &'static str,
    cast: &'static str,
    /// The keywords of its literals.
    literals: &'static [&'static str],
    pieces: &'static [&'static str],
}

const NUMBERS: &[&str] = &[
    "0",
    "1",
    "5",
    "9",
    "12",
    "127",
    "128",
    "255",
    "99999999",
    "2147483647",
    "000",
    "-",
    "+",
    ".",
    ".5",
    ".005",
    "e",
    "E2",
    "e-2",
    "e+1",
    "e40",
    "e400",
    " ",
    "\t",
    "x",
    "4999999999",
];
const MOMENTS: &[&str] = &[
    "2024",
    "24",
    "0000",
    "00",
    "02",
    "2",
    "29",
    "31",
    "12",
    "10",
    "59",
    "60",
    "838",
    "-",
    "-",
    "/",
    ":",
    ":",
    ".",
    " ",
    "T",
    "x",
    ".5",
    ".25",
    ".123456",
    "20240229",
    "101112",
    "\t",
    "+",
    "2024-02-29",
    "12:30:45",
];

const FAMILIES: &[Family] = &[
    Family {
        column: "INT",
        // A cast to an integer ends at the point.
        cast: "LEAST(GREATEST(CAST(CAST(x AS DECIMAL(38,10)) AS SIGNED), -2147483648), 2147483647)",
        literals: &[],
        pieces: NUMBERS,
    },
    Family {
        column: "DECIMAL(10,2)",
        cast: "CAST(x AS DECIMAL(10,2))",
        literals: &[],
        pieces: NUMBERS,
    },
    Family {
        column: "DOUBLE",
        cast: "CAST(x AS DOUBLE)",
        literals: &[],
        pieces: NUMBERS,
    },
    Family {
        column: "FLOAT",
        cast: "CAST(x AS FLOAT)",
        literals: &[],
        pieces: NUMBERS,
    },
    Family {
        column: "DATE",
        cast: "CAST(x AS DATE)",
        literals: &["DATE"],
        pieces: MOMENTS,
    },
    Family {
        column: "DATETIME(6)",
        cast: "CAST(x AS DATETIME(6))",
        literals: &["DATE", "TIMESTAMP"],
        pieces: MOMENTS,
    },
    Family {
        column: "TIME(6)",
        cast: "CAST(x AS TIME(6))",
        literals: &["TIME"],
        pieces: MOMENTS,
    },
    Family {
        column: "VARCHAR(4)",
        cast: "CAST(x AS CHAR(4))",
        literals: &[],
        pieces: &["a", "é", "😀", " ", "b", "\t", "0"],
    },
    Family {
        column: "VARBINARY(4)",
        cast: "CAST(x AS BINARY)",
        literals: &[],
        pieces: &["a", "b", "0", " "],
    },
];

const TEXTS: usize = 250;
const MAX_PIECES: usize = 6;

/// Texts of these pieces, each once.
fn texts(pieces: &[&str], mut state: u64) -> Vec<String> {
    let mut next = |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % below as u64) as usize
    };
    let mut texts: Vec<String> = (0..TEXTS)
        .map(|_| {
            let count = next(MAX_PIECES + 1);
            (0..count).map(|_| pieces[next(pieces.len())]).collect()
        })
        .collect();
    texts.sort();
    texts.dedup();
    texts
}

#[test]
fn insert_cast_comparison_and_literal_read_the_same() {
    let mut bench = Bench::new();
    // The zero date is what lenient mode stores of a text that is none.
    bench.ok("SET sql_mode = 'NO_ZERO_IN_DATE'");
    for (seed, family) in (1..).zip(FAMILIES) {
        agrees(
            &mut bench,
            family,
            &texts(family.pieces, seed * 0x2545_F491_4F6C_DD1D),
        );
    }
}

/// The shortest text of a time that begins with a date.
const DIGITS_OF_DATETIME: usize = 12;

fn agrees(bench: &mut Bench, family: &Family, texts: &[String]) {
    let Family {
        column,
        cast,
        literals,
        ..
    } = family;
    bench.ok("DROP TABLE IF EXISTS src, t, p");
    bench.ok("CREATE TABLE src (id INT PRIMARY KEY, x VARCHAR(60))");
    for table in ["t", "p"] {
        bench.ok(&format!(
            "CREATE TABLE {table} (id INT PRIMARY KEY, c {column})"
        ));
    }
    let rows: Vec<String> = (texts.iter().enumerate())
        .map(|(id, text)| format!("({id}, '{text}')"))
        .collect();
    // By a query, and by literals.
    bench.ok(&format!("INSERT INTO src VALUES {}", rows.join(", ")));
    bench.ok("INSERT INTO t SELECT id, x FROM src");
    bench.ok(&format!("INSERT INTO p VALUES {}", rows.join(", ")));
    let stored = bench.rows("SELECT c FROM t ORDER BY id");
    assert_eq!(
        bench.rows("SELECT c FROM p ORDER BY id"),
        stored,
        "{column}"
    );

    let made = bench.rows(&format!("SELECT {cast} FROM src ORDER BY id"));
    let compared = bench.rows("SELECT t.c = src.x FROM t JOIN src ON src.id = t.id ORDER BY t.id");
    for (id, text) in texts.iter().enumerate() {
        let what = format!("{text:?} as {column}");
        // What is no date or time is NULL in an expression, and all zeros in a column.
        // A column takes no time of a day that there is not, as in MariaDB; CAST takes it.
        let has_day = column.starts_with("TIME")
            && text.bytes().filter(u8::is_ascii_digit).count() >= DIGITS_OF_DATETIME;
        let is_zero = stored[id].bytes().all(|byte| b"0-: .".contains(&byte));
        let none = (made[id] == "NULL" || has_day) && is_zero;
        if *column == "VARBINARY(4)" {
            let cut = &made[id][..made[id].len().min(4)];
            assert_eq!(stored[id], cut, "{what}");
        } else {
            assert!(
                none || stored[id] == made[id],
                "{what}: {} {}",
                stored[id],
                made[id]
            );
        }
        let constant = format!("SELECT c = '{text}' FROM t WHERE id = {id}");
        // A constant that is no date is refused, or equal to none. One that is no time is 00:00:00, as in a column; one
        // that begins with digits may be longer than any time.
        let has_digits = text.contains(|c: char| c.is_ascii_digit());
        // Such a constant is equal to none, while a text of a column is cut to the longest time.
        let is_longest = column.starts_with("TIME") && stored[id].contains("838:59:59");
        match bench.run(&constant) {
            Ok(constant) if is_longest && text.trim() != stored[id] => {
                assert_eq!(constant.rows, ["0"], "{what}");
            }
            Ok(constant) if none && column.starts_with("TIME") => {
                assert!(has_digits || constant.rows == ["1"], "{what}");
            }
            Ok(constant) if none => assert_ne!(constant.rows, ["1"], "{what}"),
            Ok(constant) => assert_eq!(constant.rows, [compared[id].as_str()], "{what}"),
            Err(error) => assert!(none && error.code == 1525, "{what}: {error}"),
        }
        let is_number =
            text.starts_with(|c: char| c.is_ascii_digit()) && text.parse::<f64>().is_ok();
        if *column == "DOUBLE" && is_number {
            // Beyond the largest double a literal is an error.
            let literal = bench.run(&format!("SELECT {text} = c FROM t WHERE id = {id}"));
            let is_equal = literal.as_ref().map(|read| read.rows[0].as_str());
            assert!(matches!(is_equal, Ok("1") | Err(_)), "{what}: {is_equal:?}");
        }
        for literal in *literals {
            // A literal has no more than its value, or it is none.
            let Ok(read) = bench.run(&format!(
                "SELECT {literal}'{text}' = c FROM t WHERE id = {id}"
            )) else {
                continue;
            };
            assert_eq!(read.rows, ["1"], "{literal}'{text}' is not {}", stored[id]);
        }
    }
}

/// The most digits of a random number: some more than a DECIMAL has.
const MAX_DIGITS: usize = 45;

/// Numbers of each length, with a point somewhere or without one, many of them with zeros in front.
fn numbers(mut state: u64) -> Vec<String> {
    let mut next = |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % below as u64) as usize
    };
    let of_length = (1..=MAX_DIGITS).flat_map(|length| [length; 4]);
    let mut number = |length: usize| {
        let mut number: String = (0..length)
            .map(|_| ['0', '0', '1', '5', '9'][next(5)])
            .collect();
        if next(2) == 0 {
            number.insert(next(length), '.');
        }
        number
    };
    of_length.map(&mut number).collect()
}

#[test]
fn all_statements_read_the_same_number() {
    let mut bench = Bench::new();
    bench.ok("CREATE TABLE t (id INT PRIMARY KEY, c VARCHAR(100))");
    bench.ok("CREATE TABLE one (id INT PRIMARY KEY)");
    bench.ok("INSERT INTO one VALUES (1)");
    for number in numbers(0x2545_F491_4F6C_DD1D) {
        let cast = bench.rows(&format!("SELECT CAST({number} AS CHAR) FROM one"));
        for direct in ["on", "off"] {
            bench.ok(&format!("SET optimizer_switch = 'direct={direct}'"));
            for statement in [
                format!("INSERT INTO t VALUES (1, {number})"),
                format!("INSERT INTO t VALUES (2, 'x'), (1, {number}), (3, {number})"),
                format!("INSERT INTO t SELECT 1, {number}"),
                format!("INSERT INTO t SELECT 1, {number} FROM one"),
                format!("REPLACE INTO t VALUES (1, {number})"),
            ] {
                bench.ok("DELETE FROM t");
                bench.ok(&statement);
                let stored = bench.rows("SELECT c FROM t WHERE id = 1");
                assert_eq!(stored, cast, "{statement}, direct={direct}");
            }
            for statement in [
                format!("UPDATE t SET c = {number} WHERE id = 1"),
                format!("UPDATE t SET c = {number}"),
                format!("INSERT INTO t VALUES (1, '') ON DUPLICATE KEY UPDATE c = {number}"),
            ] {
                bench.ok("REPLACE INTO t VALUES (1, 'x')");
                bench.ok(&statement);
                let stored = bench.rows("SELECT c FROM t WHERE id = 1");
                assert_eq!(stored, cast, "{statement}, direct={direct}");
            }
        }
        bench.ok("DROP TABLE IF EXISTS d");
        bench.ok(&format!(
            "CREATE TABLE d (id INT PRIMARY KEY, c VARCHAR(100) DEFAULT {number})"
        ));
        bench.ok("INSERT INTO d (id) VALUES (1)");
        assert_eq!(bench.rows("SELECT c FROM d"), cast, "DEFAULT {number}");
    }
}

/// MySQL's answers; MariaDB has no such cast.
#[test]
fn years_are_cast_from_texts_numbers_and_dates() {
    let mut bench = Bench::new();
    for (value, year) in [
        ("'24'", "2024"),
        ("'70'", "1970"),
        ("'0'", "2000"),
        ("'0000'", "2000"),
        ("'12abc'", "2012"),
        ("'x'", "NULL"),
        ("'-0'", "NULL"),
        ("0", "0000"),
        ("1", "2001"),
        ("99.5", "NULL"),
        ("69.5e0", "1970"),
        ("1900", "NULL"),
        ("2155.4", "2155"),
        ("2155.5", "NULL"),
        ("-1", "NULL"),
        ("DATE'2024-02-29'", "2024"),
        ("DATE'1850-01-01'", "NULL"),
        ("TIMESTAMP'1905-02-28 10:00:00'", "1905"),
        ("NULL", "NULL"),
    ] {
        let found = bench.rows(&format!("SELECT CONCAT(CAST({value} AS YEAR))"));
        assert_eq!(found, [year], "CAST({value} AS YEAR)");
    }
}
