//! What each column type is among others: a line for each, so that a new type says here what callers will hear of it.

use std::fs;
use std::path::Path;

use sheaf_types::ColumnType;
use sheaf_types::column_type::Stored;

fn parsed(text: &str) -> ColumnType {
    ColumnType::parse(text).expect(text)
}

fn decimal(precision: u8, scale: u8) -> Stored {
    Stored::Decimal { precision, scale }
}

#[test]
fn types_say_what_they_are_stored_as_here_and_in_mysql() {
    for (text, stored, mysql_bytes) in [
        ("tinyint(1)", Stored::Signed(8), Some(1)),
        ("tinyint unsigned", Stored::Unsigned(8), Some(1)),
        ("smallint", Stored::Signed(16), Some(2)),
        ("mediumint", Stored::Signed(24), Some(3)),
        ("mediumint unsigned", Stored::Unsigned(24), Some(3)),
        ("int", Stored::Signed(32), Some(4)),
        ("int(6) unsigned zerofill", Stored::Unsigned(32), Some(4)),
        ("bigint unsigned", Stored::Unsigned(64), Some(8)),
        ("bit(1)", Stored::Unsigned(8), Some(1)),
        ("bit(17)", Stored::Unsigned(32), Some(3)),
        ("bit(64)", Stored::Unsigned(64), Some(8)),
        ("decimal(10,2)", decimal(10, 2), Some(5)),
        ("decimal(65,30)", decimal(65, 30), Some(30)),
        ("float", Stored::Float, Some(4)),
        ("double(8,2)", Stored::Double, Some(8)),
        ("char(5)", Stored::String, None),
        ("varchar(5)", Stored::String, None),
        ("text", Stored::String, None),
        ("binary(5)", Stored::String, None),
        ("varbinary(5)", Stored::String, None),
        ("longblob", Stored::String, None),
        ("json", Stored::String, None),
        ("date", Stored::Signed(32), Some(3)),
        ("time", Stored::Signed(64), Some(3)),
        ("time(1)", Stored::Signed(64), Some(4)),
        ("datetime(6)", Stored::Signed(64), Some(8)),
        ("timestamp(3)", Stored::Signed(64), Some(6)),
        ("year", Stored::Small, Some(1)),
        ("enum('a','b')", Stored::Small, Some(1)),
        ("set('a','b')", Stored::Unsigned(8), Some(1)),
        (
            "set('1','2','3','4','5','6','7','8','9')",
            Stored::Unsigned(16),
            Some(2),
        ),
    ] {
        let ty = parsed(text);
        assert_eq!(ty.stored(), stored, "{text}");
        assert_eq!(ty.mysql_bytes(), mysql_bytes, "{text}");
    }
}

#[test]
fn each_type_has_the_properties_of_its_family() {
    type Property = (&'static str, fn(&ColumnType) -> bool);
    let properties: [Property; 16] = [
        ("integer", ColumnType::is_integer),
        ("number", ColumnType::is_number),
        ("unsigned", ColumnType::is_unsigned),
        ("bit", |ty| ty.bit_length().is_some()),
        ("decimal", |ty| ty.decimal_digits().is_some()),
        ("floating", ColumnType::is_floating),
        ("single", ColumnType::is_single),
        ("character", ColumnType::is_character),
        ("binary", ColumnType::is_binary),
        ("short", |ty| ty.declared_length().is_some()),
        ("padded", ColumnType::is_padded),
        ("varying", ColumnType::is_varying),
        ("long", ColumnType::is_long),
        ("temporal", ColumnType::is_temporal),
        ("date", ColumnType::has_date),
        ("labels", ColumnType::has_labels),
    ];
    for (text, expected) in [
        ("tinyint(1)", "integer number"),
        ("int unsigned", "integer number unsigned"),
        ("bit(3)", "unsigned bit"),
        ("decimal(10,2)", "number decimal"),
        ("float", "number floating single"),
        ("double unsigned", "number unsigned floating"),
        ("year", "number unsigned"),
        ("char(5)", "character short padded"),
        ("varchar(5)", "character short varying"),
        ("text", "character varying long"),
        ("binary(5)", "binary short padded"),
        ("varbinary(5)", "binary short varying"),
        ("blob", "binary varying long"),
        ("json", "long"),
        ("date", "temporal date"),
        ("time", "temporal"),
        ("datetime", "temporal date"),
        ("timestamp", "temporal date"),
        ("enum('a')", "labels"),
        ("set('a')", "labels"),
    ] {
        let ty = parsed(text);
        let has = properties.iter().filter(|(_, has)| has(&ty));
        let has: Vec<&str> = has.map(|(name, _)| *name).collect();
        assert_eq!(has.join(" "), expected, "{text}");
    }
}

#[test]
fn dates_and_times_are_told_apart() {
    for (text, kind, digits, is_moment, follows_time_zone) in [
        ("date", Some("date"), None, false, false),
        ("time(2)", Some("time"), Some(2), false, false),
        ("datetime", Some("datetime"), Some(0), true, false),
        ("timestamp(6)", Some("datetime"), Some(6), true, true),
        ("year", None, None, false, false),
    ] {
        let ty = parsed(text);
        assert_eq!(ty.temporal_kind(), kind, "{text}");
        assert_eq!(ty.clock_digits(), digits, "{text}");
        assert_eq!(ty.is_moment(), is_moment, "{text}");
        assert_eq!(ty.follows_time_zone(), follows_time_zone, "{text}");
    }
}

#[test]
fn numbers_have_ranges_and_widths() {
    assert_eq!(parsed("year").whole_range(), Some((0, 2155)));
    assert_eq!(parsed("year").integer_range(), None);
    assert_eq!(parsed("bit(3)").whole_range(), Some((0, 7)));
    assert_eq!(parsed("decimal(5,0)").whole_range(), None);
    assert_eq!(parsed("year").filled_width(), Some(4));
    assert_eq!(parsed("int(6) zerofill").filled_width(), Some(6));
    assert_eq!(parsed("int").filled_width(), None);
}

#[test]
fn types_are_made_of_others() {
    for (text, single, varying) in [
        (
            "double(7,2) unsigned",
            "float(7,2) unsigned",
            "double(7,2) unsigned",
        ),
        ("char(3)", "char(3)", "varchar(3)"),
        ("binary(3)", "binary(3)", "varbinary(3)"),
        ("text", "text", "text"),
    ] {
        assert_eq!(parsed(text).into_single().to_string(), single);
        assert_eq!(parsed(text).into_varying().to_string(), varying);
    }
    assert!(parsed("decimal(3,1)").is_same_kind(&parsed("decimal(9,2) unsigned")));
    assert!(!parsed("float").is_same_kind(&parsed("double")));
}

/// A type that many files name takes long to add and to get right: others ask for properties.
const MOST_FILES: usize = 10;

const VARIANTS: [&str; 24] = [
    "Bool",
    "TinyInt",
    "SmallInt",
    "MediumInt",
    "Int",
    "BigInt",
    "Bit",
    "Decimal",
    "Float",
    "Double",
    "Char",
    "VarChar",
    "Text",
    "Binary",
    "VarBinary",
    "Blob",
    "Date",
    "Time",
    "DateTime",
    "Timestamp",
    "Year",
    "Enum",
    "Json",
    "Set",
];

/// Sources of all crates, without tests.
fn sources(folder: &Path, found: &mut Vec<String>) {
    for entry in fs::read_dir(folder).expect("a folder of sources") {
        let path = entry.expect("an entry").path();
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        if name == "tests" || name.ends_with("_tests") {
            continue;
        }
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(&path).expect("a source");
            let tests = text.find("#[cfg(test)]\nmod ").unwrap_or(text.len());
            found.push(text[..tests].to_string());
        }
    }
}

/// Whether a source names a variant of `ColumnType`, and not one of a longer name.
fn names(source: &str, variant: &str) -> bool {
    let is_of_word = |character: char| character.is_alphanumeric() || character == '_';
    let path = format!("ColumnType::{variant}");
    source.match_indices(&path).any(|(at, _)| {
        let (before, behind) = (&source[..at], &source[at + path.len()..]);
        !before.ends_with(is_of_word) && !behind.starts_with(is_of_word)
    })
}

#[test]
fn few_files_name_a_type() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut found = Vec::new();
    for entry in fs::read_dir(crates).expect("the crates") {
        let folder = entry.expect("an entry").path().join("src");
        if folder.is_dir() {
            sources(&folder, &mut found);
        }
    }
    for variant in VARIANTS {
        let files = found.iter().filter(|source| names(source, variant));
        let files = files.count();
        assert!(files > 1, "there is no {variant}");
        assert!(files <= MOST_FILES, "{files} files name {variant}");
    }
}
