//! Values are stored, or refused, as MySQL does.

use sheaf_types::assignment::{Mode, assign, assign_altered, assign_text};
use sheaf_types::{ColumnIssue, ColumnProblem, ColumnType, Value};

fn column(ty: &str) -> ColumnType {
    ColumnType::parse(ty).unwrap()
}

/// The stored value's text in strict mode, or MySQL's code and message.
fn store(ty: &str, value: Value) -> Result<String, (u16, String)> {
    assign(&column(ty), &value, Mode::STRICT)
        .map(|(value, _)| value.to_string())
        .map_err(|problem| {
            let issue = ColumnIssue {
                problem,
                column: "c".into(),
                row: 1,
            };
            (issue.mysql_code(), issue.to_string())
        })
}

/// The value of a wide DECIMAL.
fn wide(unscaled: i128, scale: u8) -> Value {
    Value::WideDecimal {
        unscaled: unscaled.into(),
        scale,
    }
}

fn text(text: &str) -> Value {
    Value::Text(text.into())
}

#[test]
fn text_is_stored_as_mysql_stores_it() {
    for (ty, given, stored) in [
        ("int", "12", "12"),
        ("int", " -12 ", "-12"),
        ("int", "1.5", "2"),
        ("int", "-2.5", "-3"),
        ("int", "1e2", "100"),
        ("tinyint unsigned", "255", "255"),
        (
            "bigint unsigned",
            "18446744073709551615",
            "18446744073709551615",
        ),
        ("decimal(5,2)", "1.005", "1.01"),
        ("decimal(5,2)", "-999.99", "-999.99"),
        (
            "decimal(38,0)",
            "99999999999999999999999999999999999999",
            "99999999999999999999999999999999999999",
        ),
        (
            "decimal(65,0)",
            "-99999999999999999999999999999999999999999999999999999999999999999",
            "-99999999999999999999999999999999999999999999999999999999999999999",
        ),
        (
            "decimal(60,18)",
            "123456789012345678901234567890123456789012.1234567890123456785",
            "123456789012345678901234567890123456789012.123456789012345679",
        ),
        (
            "decimal(65,30)",
            "1.5e3",
            "1500.000000000000000000000000000000",
        ),
        ("decimal(40,1)", "-0.04", "0.0"),
        ("double", "1e3", "1000"),
        ("float", "0.1", "0.1"),
        ("char(3)", "ab   ", "ab"),
        ("varchar(3)", "äöü", "äöü"),
        ("varchar(2)", "ab ", "ab"),
        ("binary(3)", "a", "a\0\0"),
        ("date", "24-2-29", "2024-02-29"),
        ("date", "2024-02-29 23:59:59.4", "2024-02-29"),
        ("date", "2024-02-29 23:59:59.9", "2024-03-01"),
        ("datetime", "2024-02-29 23:59:59.5", "2024-03-01 00:00:00"),
        (
            "datetime(1)",
            "2024-02-29 23:59:59.55",
            "2024-02-29 23:59:59.600000",
        ),
        ("time", "-1:02:03", "-01:02:03"),
        ("time", "", "00:00:00"),
        ("time", "  ", "00:00:00"),
        ("year", "24", "2024"),
        ("year", "0", "2000"),
        ("enum('a','b')", "B", "2"),
        ("enum('a','b')", "1", "1"),
        ("tinyint(1)", "1", "1"),
    ] {
        assert_eq!(
            store(ty, text(given)).as_deref(),
            Ok(stored),
            "{given:?} as {ty}"
        );
    }
}

#[test]
fn strict_mode_refuses_with_mysqls_errors() {
    for (ty, given, code, message) in [
        (
            "datetime",
            "9999-12-31 23:59:59.5",
            1441,
            "Datetime function: datetime field overflow",
        ),
        (
            "date",
            "9999-12-31 23:59:59.9999999",
            1441,
            "Datetime function: datetime field overflow",
        ),
        (
            "int",
            "abc",
            1366,
            "Incorrect integer value: 'abc' for column 'c' at row 1",
        ),
        (
            "int",
            "",
            1366,
            "Incorrect integer value: '' for column 'c' at row 1",
        ),
        (
            "int",
            "12abc",
            1265,
            "Data truncated for column 'c' at row 1",
        ),
        (
            "tinyint",
            "128",
            1264,
            "Out of range value for column 'c' at row 1",
        ),
        (
            "int unsigned",
            "-1",
            1264,
            "Out of range value for column 'c' at row 1",
        ),
        (
            "decimal(5,2)",
            "1000",
            1264,
            "Out of range value for column 'c' at row 1",
        ),
        (
            "decimal(5,2)",
            "x",
            1366,
            "Incorrect decimal value: 'x' for column 'c' at row 1",
        ),
        (
            "double",
            "x",
            1366,
            "Incorrect DOUBLE value: 'x' for column 'c' at row 1",
        ),
        (
            "float",
            "1e39",
            1264,
            "Out of range value for column 'c' at row 1",
        ),
        (
            "varchar(2)",
            "abc",
            1406,
            "Data too long for column 'c' at row 1",
        ),
        (
            "tinyblob",
            &"x".repeat(256),
            1406,
            "Data too long for column 'c' at row 1",
        ),
        (
            "date",
            "2024-02-30",
            1292,
            "Incorrect date value: '2024-02-30' for column 'c' at row 1",
        ),
        (
            "datetime",
            "x",
            1292,
            "Incorrect datetime value: 'x' for column 'c' at row 1",
        ),
        (
            "timestamp",
            "1960-01-01",
            1292,
            "Incorrect datetime value: '1960-01-01 00:00:00' for column 'c' at row 1",
        ),
        (
            "time",
            "839:00:00",
            1292,
            "Incorrect time value: '839:00:00' for column 'c' at row 1",
        ),
        (
            "year",
            "1900",
            1264,
            "Out of range value for column 'c' at row 1",
        ),
        (
            "enum('a','b')",
            "c",
            1265,
            "Data truncated for column 'c' at row 1",
        ),
    ] {
        assert_eq!(
            store(ty, text(given)),
            Err((code, message.to_string())),
            "{given:?} as {ty}"
        );
    }
}

#[test]
fn other_values_are_converted_too() {
    for (ty, given, stored) in [
        ("int", Value::Double(2.5), "2"),
        (
            "int",
            Value::Decimal {
                unscaled: 25,
                scale: 1,
            },
            "3",
        ),
        ("decimal(5,1)", Value::Double(0.15), "0.2"),
        ("decimal(40,1)", Value::Double(0.15), "0.2"),
        (
            "decimal(40,1)",
            Value::UInt(u64::MAX),
            "18446744073709551615.0",
        ),
        (
            "decimal(40,2)",
            Value::Decimal {
                unscaled: -15,
                scale: 3,
            },
            "-0.02",
        ),
        ("decimal(5,1)", wide(-155, 2), "-1.6"),
        ("bigint", wide(155, 1), "16"),
        ("double", wide(25, 1), "2.5"),
        ("varchar(9)", wide(-5, 2), "-0.05"),
        ("bit(8)", wide(49, 1), "5"),
        ("varchar(10)", Value::Int(-5), "-5"),
        ("date", Value::Int(20240229), "2024-02-29"),
        ("date", Value::DateTime(-1), "1970-01-01"),
        ("date", Value::DateTime(-600_000), "1969-12-31"),
        ("datetime", Value::Date(1), "1970-01-02 00:00:00"),
        ("bigint", Value::Date(0), "19700101"),
        ("time", Value::Int(101112), "10:11:12"),
        ("int", Value::Time(86_399_500_000), "240000"),
        ("int", Value::Time(-86_399_500_000), "-240000"),
        ("bigint", Value::DateTime(-500_000), "19700101000000"),
        ("decimal(10,1)", Value::Time(86_399_500_000), "235959.5"),
        ("year", Value::Int(0), "0000"),
        ("varchar(10)", Value::Bytes(b"abc".to_vec()), "abc"),
    ] {
        assert_eq!(
            store(ty, given.clone()).as_deref(),
            Ok(stored),
            "{given:?} as {ty}"
        );
    }
    assert_eq!(
        store("varchar(10)", Value::Bytes(vec![b'a', 0xFF])),
        Err((
            1366,
            "Incorrect string value: '\\xFF' for column 'c' at row 1".into()
        ))
    );
}

#[test]
fn lenient_mode_stores_the_nearest_value_with_a_warning() {
    for (ty, given, stored, problem) in [
        ("tinyint", "300", "127", ColumnProblem::OutOfRange),
        ("int unsigned", "-5", "0", ColumnProblem::OutOfRange),
        ("int", "12abc", "12", ColumnProblem::Truncated),
        ("varchar(2)", "abc", "ab", ColumnProblem::TooLong),
        ("enum('a')", "x", "0", ColumnProblem::Truncated),
        ("decimal(3,1)", "-100", "-99.9", ColumnProblem::OutOfRange),
        (
            "decimal(40,1)",
            "-1e39",
            "-999999999999999999999999999999999999999.9",
            ColumnProblem::OutOfRange,
        ),
        (
            "decimal(39,0)",
            "1e400",
            "999999999999999999999999999999999999999",
            ColumnProblem::OutOfRange,
        ),
        (
            "decimal(40,1) unsigned",
            "-0.001",
            "0.0",
            ColumnProblem::OutOfRange,
        ),
    ] {
        let (value, found) = assign(&column(ty), &text(given), Mode::LENIENT).unwrap();
        assert_eq!(
            (value.to_string().as_str(), found),
            (stored, Some(problem)),
            "{given:?} as {ty}"
        );
    }
    let not_null = ColumnType::Int {
        sign: sheaf_types::column_type::Sign::Signed,
    };
    assert_eq!(
        assign(&not_null, &Value::Null, Mode::STRICT),
        Err(ColumnProblem::Null)
    );
    assert_eq!(
        assign(&not_null, &Value::Null, Mode::LENIENT),
        Ok((Value::Int(0), Some(ColumnProblem::Null)))
    );
}

#[test]
fn zero_has_no_sign() {
    for ty in ["float", "double", "double unsigned"] {
        for given in [Value::Double(-0.0), Value::Float(-0.0), text("-0")] {
            assert_eq!(store(ty, given), Ok("0".into()), "{ty}");
        }
    }
    assert_eq!(store("float", Value::Double(-1e-60)), Ok("0".into()));
    assert_eq!(store("double", Value::Double(-1e-60)), Ok("-1e-60".into()));
}

#[test]
fn lost_decimals_are_a_note() {
    let (value, problem) = assign(&column("decimal(5,2)"), &text("1.234"), Mode::STRICT).unwrap();
    assert_eq!(
        (value.to_string().as_str(), problem),
        ("1.23", Some(ColumnProblem::Rounded))
    );
}

#[test]
fn fields_go_the_short_way_with_the_same_result() {
    for (ty, given) in [
        ("int", "123"),
        ("int", "-7"),
        ("int", "99999999999"),
        ("int", "x"),
        ("decimal(15,2)", "901.0"),
        ("decimal(15,2)", "-0.04"),
        ("decimal(15,2)", "17"),
        ("decimal(15,2)", "1.239"),
        ("decimal(15,2)", "."),
        ("decimal(4,2)", "100"),
        ("date", "1998-12-01"),
        ("date", "1998-02-29"),
        ("char(4)", "ab  "),
        ("varchar(3)", "abcd"),
        ("text", "abc"),
        ("double", "1.5"),
        ("tinyint unsigned", "-0"),
    ] {
        let column = column(ty);
        let mut short = Value::Text("memory".into());
        let short =
            assign_text(&column, given, Mode::STRICT, &mut short).map(|problem| (short, problem));
        assert_eq!(
            short,
            assign(&column, &text(given), Mode::STRICT),
            "{given:?} as {ty}"
        );
    }
}

#[test]
fn bits_are_stored_as_mysql_stores_them() {
    let bytes = |bytes: &[u8]| Value::Bytes(bytes.to_vec());
    let decimal = |unscaled, scale| Value::Decimal { unscaled, scale };
    for (ty, given, stored) in [
        ("bit(10)", Value::Int(5), "5"),
        ("bit(10)", text("A"), "65"),
        ("bit(10)", text(""), "0"),
        ("bit(10)", bytes(&[0, 0, 0, 1, 1]), "257"),
        ("bit(10)", decimal(15, 1), "2"),
        ("bit(10)", Value::Double(2.5), "2"),
        ("bit(64)", Value::Int(-1), "18446744073709551615"),
        ("bit(64)", text("1234567"), "13847469359445559"),
        ("bit(64)", Value::Double(1e19), "9223372036854775807"),
    ] {
        let found = store(ty, given.clone());
        assert_eq!(found.as_deref(), Ok(stored), "{given:?} as {ty}");
    }
    for (ty, given, code, nearest) in [
        ("bit(1)", Value::Int(2), 1406, "1"),
        ("bit(1)", text("1"), 1406, "1"),
        ("bit(10)", Value::Int(-1), 1406, "1023"),
        ("bit(10)", decimal(10_235, 1), 1406, "1023"),
        ("bit(64)", text("123456789"), 1406, "18446744073709551615"),
        ("bit(64)", text("2024-01-01"), 1406, "18446744073709551615"),
        ("bit(64)", decimal(1 << 65, 0), 1264, "18446744073709551615"),
        ("bit(64)", decimal(-15, 1), 1264, "0"),
    ] {
        let found = store(ty, given.clone()).map_err(|(code, _)| code);
        assert_eq!(found, Err(code), "{given:?} as {ty}");
        let (value, problem) = assign(&column(ty), &given, Mode::LENIENT).unwrap();
        assert_eq!(value.to_string(), nearest, "{given:?} as {ty}");
        assert_eq!(
            problem,
            Some(ColumnProblem::OutOfRange),
            "{given:?} as {ty}"
        );
    }
}

#[test]
fn sets_are_stored_as_mysql_stores_them() {
    let set = "set('x','y','z','it''s')";
    for (given, stored) in [
        (text("x"), "1"),
        (text("z,x"), "5"),
        (text("X,x,y"), "3"),
        (text("x,y "), "3"),
        (text(""), "0"),
        (text("7"), "7"),
        (text(" 3"), "3"),
        (text("0"), "0"),
        (Value::Int(15), "15"),
        (
            Value::Decimal {
                unscaled: 15,
                scale: 1,
            },
            "1",
        ),
        (Value::Bytes(b"x".to_vec()), "1"),
    ] {
        let found = store(set, given.clone());
        assert_eq!(found.as_deref(), Ok(stored), "{given:?}");
    }
    for (given, nearest) in [
        (text("q"), "0"),
        (text("x,q,y"), "3"),
        (text("x,"), "1"),
        (text(",x"), "1"),
        (text("X ,y"), "2"),
        (text("x, y"), "1"),
        (text("16"), "0"),
        (text("3x"), "0"),
        (text("3 "), "0"),
        (Value::Int(16), "0"),
        (Value::Int(-1), "15"),
    ] {
        let found = store(set, given.clone()).map_err(|(code, _)| code);
        assert_eq!(found, Err(1265), "{given:?}");
        let (value, problem) = assign(&column(set), &given, Mode::LENIENT).unwrap();
        assert_eq!(value.to_string(), nearest, "{given:?}");
        assert_eq!(problem, Some(ColumnProblem::Truncated), "{given:?}");
    }
}

#[test]
fn a_char_that_is_cut_ends_without_spaces() {
    let stored = |text: &str| assign(&column("char(4)"), &Value::Text(text.into()), Mode::LENIENT);
    let (value, problem) = stored("Z,x y").unwrap();
    assert_eq!(
        (value, problem),
        (text("Z,x"), Some(ColumnProblem::TooLong))
    );
}

#[test]
fn spaces_are_no_member_of_a_set() {
    let set = "set('a','b')";
    assert!(matches!(store(set, text(" ")), Err((1265, _))));
    assert_eq!(store(set, text("")).as_deref(), Ok("0"));
    // MySQL takes so long a text for no number.
    assert_eq!(store(set, text(&" ".repeat(22))).as_deref(), Ok("0"));
}

#[test]
fn what_a_column_of_the_kind_held_is_not_checked_again() {
    let float = Value::Float(1_000_000.0);
    let stored = assign(&column("float(8,2)"), &float, Mode::STRICT);
    assert_eq!(stored, Ok((float, None)));
    let stored = assign(&column("float(8,2)"), &Value::Double(1e6), Mode::STRICT);
    assert_eq!(stored, Err(ColumnProblem::OutOfRange));
    let stored = assign(&column("enum('a')"), &Value::Enum(0), Mode::STRICT);
    assert_eq!(stored, Ok((Value::Enum(0), None)));
}

#[test]
fn alter_table_converts_fields_to_bit_by_their_numbers() {
    let altered = |from: &str, value: Value, mode| {
        assign_altered(&column(from), &column("bit(8)"), value, mode).map(|(value, _)| value)
    };
    for (from, value, bits) in [
        ("varchar(9)", text("65"), 65),
        ("char(9)", text(" 7 "), 7),
        ("text", text("12abc"), 12),
        ("text", text(""), 0),
        ("blob", Value::Bytes(b"1".to_vec()), 1),
        ("double", Value::Double(1.5), 2),
        ("double", Value::Double(2.5), 2),
        ("time", Value::Time(10_000_000), 10),
    ] {
        let stored = altered(from, value.clone(), Mode::STRICT);
        assert_eq!(stored, Ok(Value::UInt(bits)), "{value:?} of {from}");
    }
    for (given, bits) in [("a", 0), ("", 0), ("1.5", 1), ("1e1", 1)] {
        let wrong = ColumnProblem::TruncatedInteger {
            value: given.into(),
        };
        let refused = altered("varchar(9)", text(given), Mode::STRICT);
        assert_eq!(refused, Err(wrong), "{given:?}");
        let stored = altered("varchar(9)", text(given), Mode::LENIENT);
        assert_eq!(stored, Ok(Value::UInt(bits)), "{given:?}");
    }
    let refused = altered("varchar(9)", text("300"), Mode::STRICT);
    assert_eq!(refused, Err(ColumnProblem::TooLong));
    let stored = altered("varchar(9)", text("300"), Mode::LENIENT);
    assert_eq!(stored, Ok(Value::UInt(255)));
}

#[test]
fn alter_table_copies_numbers_whose_digits_change() {
    let (from, to) = (column("float(8,3)"), column("float(8,2)"));
    let number = Value::Float(1.239);
    let stored = assign_altered(&from, &to, number.clone(), Mode::STRICT);
    assert_eq!(stored, Ok((number, None)));
    let stored = assign_altered(
        &column("float"),
        &column("float unsigned"),
        Value::Float(-1.0),
        Mode::STRICT,
    );
    assert_eq!(stored, Err(ColumnProblem::OutOfRange));
}
