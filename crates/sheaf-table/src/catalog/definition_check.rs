//! What CREATE TABLE, ALTER TABLE and CREATE INDEX may ask for: names, types, defaults and keys are checked and
//! resolved here, before anything is made.

use sheaf_storage::{MAX_ENTRY_BYTES, TreeId, value_limit};
use sheaf_types::{
    Value,
    assignment::Mode,
    column_type::{
        ColumnType, MAX_CHAR_LENGTH, MAX_ENUM_LABELS, MAX_SET_LABELS, MAX_VARBINARY_LENGTH,
    },
};

use crate::codec::key_codec::KeyLayout;
use crate::codec::overflow::OVERFLOW_REFERENCE_BYTES;
use crate::codec::row_codec::RowLayout;
use crate::definition::check_constraint::{check_against_foreign_keys, resolve_check};
use crate::definition::convert::to_column;
use crate::definition::foreign_key::{leading_index, resolve_foreign_key};
use crate::definition::generated_column;
use crate::definition::key_expression;
use crate::definition::schema::{
    Column, CreateTable, DefaultValue, ForeignKeySpec, Index, IndexPart, IndexPartSpec, IndexSpec,
    MAX_COLUMNS, MAX_INDEX_PARTS, MAX_INDEXES, MAX_NAME_CHARACTERS, PRIMARY, TableDefinition,
    same_name,
};
use crate::error::{Result, TableError};

/// Trees are made after the checks; until then an index has this one.
pub(crate) const NO_TREE: TreeId = TreeId(0);

/// A name that is too long, empty, or ends with a space is refused with `incorrect`.
pub(crate) fn check_name(name: &str, incorrect: fn(String) -> TableError) -> Result<()> {
    if name.chars().count() > MAX_NAME_CHARACTERS {
        return Err(TableError::NameTooLong {
            name: name.to_string(),
        });
    }
    if name.is_empty() || name.ends_with(' ') || name.contains('\0') {
        return Err(incorrect(name.to_string()));
    }
    Ok(())
}

/// Whether a table or a view may have this name.
///
/// # Errors
/// `NameTooLong`, `IncorrectTableName`.
pub fn check_table_name(name: &str) -> Result<()> {
    check_name(name, |name| TableError::IncorrectTableName { name })
}

/// Whether a database may have this name.
///
/// # Errors
/// `NameTooLong`, `IncorrectDatabaseName`.
pub fn check_database_name(name: &str) -> Result<()> {
    check_name(name, |name| TableError::IncorrectDatabaseName { name })
}

/// The definition of a new table, without trees.
///
/// # Errors
/// The MySQL error for whatever is wrong with the request.
pub(crate) fn resolve_table(id: u64, request: CreateTable) -> Result<TableDefinition> {
    check_table_name(&request.name)?;
    if request.columns.is_empty() {
        return Err(TableError::NoColumns);
    }
    if request.columns.len() > MAX_COLUMNS {
        return Err(TableError::TooManyColumns);
    }
    let mut columns = request.columns;
    let in_primary = |column: &Column, key: &Option<Vec<IndexPartSpec>>| {
        key.iter()
            .flatten()
            .any(|part| same_name(&part.column, &column.name))
    };
    for column in &mut columns {
        if column.auto_increment || in_primary(column, &request.primary_key) {
            column.nullable = false;
            if column.default == Some(DefaultValue::Value(Value::Null)) {
                column.default = None;
            }
        }
        check_column(column)?;
    }
    for (i, column) in columns.iter().enumerate() {
        if columns[..i]
            .iter()
            .any(|other| same_name(&other.name, &column.name))
        {
            return Err(TableError::DuplicateColumn {
                column: column.name.clone(),
            });
        }
    }
    let mut definition = TableDefinition {
        id,
        database: request.database,
        name: request.name,
        columns,
        primary: Index {
            id: 0,
            name: PRIMARY.to_string(),
            parts: Vec::new(),
            unique: true,
            primary: true,
            tree: NO_TREE,
            comment: String::new(),
            invisible: false,
        },
        secondary: Vec::new(),
        collation: request.collation,
        comment: request.comment,
        overflow: None,
        auto_increment_start: request.auto_increment_start.max(1),
        foreign_keys: Vec::new(),
        checks: Vec::new(),
        shape: None,
    };
    if let Some(parts) = &request.primary_key {
        definition.primary.parts = resolve_parts(&mut definition, parts)?;
    }
    for spec in &request.indexes {
        let index = resolve_index(&mut definition, spec, 1)?;
        definition.secondary.push(index);
    }
    for spec in &request.foreign_keys {
        let foreign_key = resolve_foreign_key(&definition, spec)?;
        if leading_index(&definition, &foreign_key.columns).is_none() {
            let own = index_for(&definition, spec);
            let index = resolve_index(&mut definition, &own, 1)?;
            definition.secondary.push(index);
        }
        definition.foreign_keys.push(foreign_key);
    }
    for spec in &request.checks {
        let check = resolve_check(&definition, spec)?;
        definition.checks.push(check);
    }
    definition.order_indexes();
    check_visibility(&definition)?;
    check_against_foreign_keys(&definition)?;
    generated_column::check_primary_key(&definition)?;
    generated_column::check_foreign_keys(&definition)?;
    check_key_lengths(&definition)?;
    check_unique_prefixes(&definition)?;
    check_auto_increment(&definition)?;
    check_row_length(&definition)?;
    Ok(definition)
}

/// Errors `NoVisibleColumn`, and `InvisiblePrimaryKey`: also of the unique key that stands for a primary key.
pub(crate) fn check_visibility(definition: &TableDefinition) -> Result<()> {
    if definition.visible_columns().next().is_none() {
        return Err(TableError::NoVisibleColumn);
    }
    // In MySQL's order it is the first, and whether it is of beginnings of columns does not matter here.
    let first = match definition.has_hidden_row_id() {
        true => definition.secondary.first(),
        false => Some(&definition.primary),
    };
    let is_nullable = |part: &IndexPart| {
        let column = &definition.columns[part.column];
        column.nullable || column.hidden
    };
    let stands_for_primary = |index: &&Index| index.unique && !index.parts.iter().any(is_nullable);
    match first
        .filter(stands_for_primary)
        .is_some_and(|key| key.invisible)
    {
        true => Err(TableError::InvisiblePrimaryKey),
        false => Ok(()),
    }
}

/// A new secondary index of a table, without a tree. Ids from `first_id` on may be its. The table gets the hidden
/// columns of its expressions.
///
/// # Errors
/// The MySQL error for whatever is wrong with the request.
pub(crate) fn resolve_index(
    definition: &mut TableDefinition,
    spec: &IndexSpec,
    first_id: u32,
) -> Result<Index> {
    if definition.secondary.len() >= MAX_INDEXES {
        return Err(TableError::TooManyIndexes { limit: MAX_INDEXES });
    }
    let has_expression = spec.parts.iter().any(|part| part.expression.is_some());
    let parts = resolve_parts(definition, &spec.parts)?;
    let name = match &spec.name {
        Some(name) => {
            check_name(name, |name| TableError::IncorrectIndexName { name })?;
            if same_name(name, PRIMARY) {
                return Err(TableError::IncorrectIndexName { name: name.clone() });
            }
            if definition.secondary_position(name).is_some() {
                return Err(TableError::DuplicateIndex {
                    index: name.clone(),
                });
            }
            name.clone()
        }
        None if has_expression => free_name(definition, key_expression::DEFAULT_NAME),
        None => free_name(definition, &definition.columns[parts[0].column].name),
    };
    let taken = definition.secondary.iter().map(|index| index.id);
    let id = taken.max().map_or(first_id, |id| first_id.max(id + 1));
    let (unique, comment) = (spec.unique, spec.comment.clone());
    Ok(Index {
        id,
        name,
        parts,
        unique,
        primary: false,
        tree: NO_TREE,
        comment,
        invisible: spec.invisible,
    })
}

/// The index that a foreign key needs in its own table, where none begins with its columns.
pub(crate) fn index_for(definition: &TableDefinition, spec: &ForeignKeySpec) -> IndexSpec {
    let wanted = spec.name.as_ref().or(spec.index_name.as_ref());
    let free = |name: &&String| definition.secondary_position(name).is_none();
    IndexSpec {
        name: wanted.filter(free).cloned(),
        parts: spec.columns.iter().map(IndexPartSpec::column).collect(),
        unique: false,
        comment: String::new(),
        invisible: false,
    }
}

/// The column's name, or that with `_2`, `_3` ... behind.
fn free_name(definition: &TableDefinition, column: &str) -> String {
    let taken =
        |name: &str| same_name(name, PRIMARY) || definition.secondary_position(name).is_some();
    let numbered = (2..).map(|number| format!("{column}_{number}"));
    std::iter::once(column.to_string())
        .chain(numbered)
        .find(|name| !taken(name))
        .unwrap_or_else(|| column.to_string())
}

/// The parts of an index. The table gets the hidden columns of its expressions.
pub(crate) fn resolve_parts(
    definition: &mut TableDefinition,
    specs: &[IndexPartSpec],
) -> Result<Vec<IndexPart>> {
    if specs.is_empty() || specs.len() > MAX_INDEX_PARTS {
        return Err(TableError::TooManyIndexParts {
            limit: MAX_INDEX_PARTS,
        });
    }
    let mut parts: Vec<IndexPart> = Vec::with_capacity(specs.len());
    for spec in specs {
        let column = match &spec.expression {
            Some(column) => Some(add_hidden_column(definition, column)?),
            None => definition.column_position(&spec.column),
        };
        let Some(column) = column else {
            return Err(TableError::UnknownKeyColumn {
                column: spec.column.clone(),
            });
        };
        if parts.iter().any(|part| part.column == column) {
            return Err(TableError::DuplicateColumn {
                column: spec.column.clone(),
            });
        }
        let prefix_length = resolve_prefix(&definition.columns[column], spec.prefix_length)?;
        parts.push(IndexPart {
            column,
            prefix_length,
            descending: spec.descending,
        });
    }
    Ok(parts)
}

/// Adds the hidden column of a key expression, and gives it its name. Returns its position.
fn add_hidden_column(definition: &mut TableDefinition, column: &Column) -> Result<usize> {
    if definition.columns.len() >= MAX_COLUMNS {
        return Err(TableError::TooManyColumns);
    }
    let mut column = Column {
        name: definition.hidden_name(),
        invisible: true,
        hidden: true,
        ..column.clone()
    };
    check_column(&mut column)?;
    definition.columns.push(column);
    Ok(definition.columns.len() - 1)
}

/// The prefix of a column that an index has; `None`: the whole column.
///
/// # Errors
/// `JsonInIndex`, `LongColumnNeedsPrefix`, `IncorrectPrefix`.
pub(crate) fn resolve_prefix(column: &Column, prefix_length: Option<u32>) -> Result<Option<u32>> {
    let ty = &column.ty;
    if ty.is_json() {
        return Err(TableError::JsonInIndex {
            column: column.name.clone(),
        });
    }
    let Some(length) = prefix_length else {
        return match ty.is_long() {
            true => Err(TableError::LongColumnNeedsPrefix {
                column: column.name.clone(),
            }),
            false => Ok(None),
        };
    };
    let longest = longest_string(ty).unwrap_or(0);
    if length == 0 || u64::from(length) > longest {
        return Err(TableError::IncorrectPrefix);
    }
    // A prefix as long as the column is no prefix.
    Ok(Some(length).filter(|length| ty.is_long() || u64::from(*length) < longest))
}

/// The most characters of a text, or bytes of a byte string; `None`: the type is none of these.
pub(crate) fn longest_string(ty: &ColumnType) -> Option<u64> {
    ty.declared_length().map(u64::from).or(ty.long_bytes())
}

/// The key of a beginning does not tell accents and cases apart, although these collations do.
///
/// # Errors
/// `UniquePrefix`.
pub(crate) fn check_unique_prefixes(definition: &TableDefinition) -> Result<()> {
    let secondary = definition.secondary.iter().filter(|index| index.unique);
    for part in std::iter::once(&definition.primary)
        .chain(secondary)
        .flat_map(|index| &index.parts)
    {
        let column = &definition.columns[part.column];
        if let (Some(_), Some(collation)) = (part.prefix_length, column.ty.collation())
            && collation.has_levels()
        {
            return Err(TableError::UniquePrefix {
                column: column.name.clone(),
                collation: collation.name(),
            });
        }
    }
    Ok(())
}

/// Longest declared key, in bytes, as MySQL counts them.
pub const MAX_DECLARED_KEY_BYTES: usize = 3072;

/// MySQL's limit on declared lengths. Trees have room for half as much again. Zero bytes of byte strings, and
/// characters under a collation of several levels, may take more than that in a key: such a key is refused when it is
/// inserted.
pub(crate) fn check_key_lengths(definition: &TableDefinition) -> Result<()> {
    let layouts = std::iter::once(KeyLayout::clustered(definition)).chain(
        definition
            .secondary
            .iter()
            .map(|index| KeyLayout::secondary(definition, index)),
    );
    for layout in layouts {
        let declared = layout.parts[..layout.declared].iter();
        let bytes: u32 = declared.map(|part| part.mysql_value_len).sum();
        if bytes as usize > MAX_DECLARED_KEY_BYTES {
            return Err(TableError::KeyTooLong {
                limit: MAX_DECLARED_KEY_BYTES,
            });
        }
    }
    Ok(())
}

pub(crate) fn check_auto_increment(definition: &TableDefinition) -> Result<()> {
    let Some(column) = definition.auto_increment_column() else {
        return Ok(());
    };
    let leads = definition
        .indexes()
        .any(|index| index.parts[0].column == column);
    let count = definition
        .columns
        .iter()
        .filter(|column| column.auto_increment)
        .count();
    if leads && count == 1 {
        Ok(())
    } else {
        Err(TableError::IncorrectAutoColumn)
    }
}

/// With all long values moved out, a row and its key must fit an entry.
pub(crate) fn check_row_length(definition: &TableDefinition) -> Result<()> {
    let layout = RowLayout::of(definition);
    let strings = definition
        .columns
        .iter()
        .filter(|column| column.ty.max_bytes().is_some())
        .count();
    let least = layout.fixed_bytes() + strings * OVERFLOW_REFERENCE_BYTES;
    let clustered = KeyLayout::clustered(definition);
    let key = clustered.mysql_key_len(clustered.parts.len()) as usize;
    let limit = value_limit(key);
    if least > limit {
        Err(TableError::RowTooLarge { limit })
    } else {
        Ok(())
    }
}

/// True if a row can be so long that values must move to an overflow tree.
pub(crate) fn needs_overflow(definition: &TableDefinition) -> bool {
    let strings: u64 = definition
        .columns
        .iter()
        .filter_map(|column| column.ty.max_stored_bytes())
        .sum();
    let row = RowLayout::of(definition).fixed_bytes() as u64 + strings;
    // The key repeats columns of the row, and may take half as much again for characters.
    row + row * 3 / 2 > MAX_ENTRY_BYTES as u64
}

pub(crate) fn check_column(column: &mut Column) -> Result<()> {
    check_name(&column.name, |name| TableError::IncorrectColumnName {
        name,
    })?;
    let name = || column.name.clone();
    let limit = match column.ty.collation() {
        _ if column.ty.is_padded() => MAX_CHAR_LENGTH,
        Some(collation) => MAX_VARBINARY_LENGTH / collation.character_bytes(),
        None => MAX_VARBINARY_LENGTH,
    };
    if column.ty.declared_length() > Some(limit) {
        return Err(TableError::ColumnTooLong {
            column: name(),
            limit,
        });
    }
    if let (Some(labels), Some(collation)) = (column.ty.labels(), column.ty.collation()) {
        let most = match column.ty.set_labels() {
            Some(_) => MAX_SET_LABELS,
            None => MAX_ENUM_LABELS,
        };
        if labels.is_empty() || labels.len() > most {
            return Err(TableError::IncorrectColumnSpecifier { column: name() });
        }
        for (i, label) in labels.iter().enumerate() {
            let mut before = labels[..i].iter();
            if let Some(first) = before.find(|other| collation.compare(other, label).is_eq()) {
                return Err(TableError::DuplicateLabel {
                    column: name(),
                    label: first.clone(),
                    kind: column.ty.name(),
                });
            }
        }
    }
    // Tables of before may count by FLOAT and DOUBLE, and go on to.
    if column.auto_increment && !column.ty.is_integer() {
        return Err(TableError::IncorrectColumnSpecifier { column: name() });
    }
    let has_clock = column.ty.is_moment();
    if column.on_update_current_timestamp && !has_clock {
        return Err(TableError::IncorrectColumnSpecifier { column: name() });
    }
    let invalid = TableError::InvalidDefault { column: name() };
    let resolved = match &column.default {
        None => None,
        Some(_) if column.auto_increment => return Err(invalid),
        Some(DefaultValue::CurrentTimestamp) if has_clock => Some(DefaultValue::CurrentTimestamp),
        Some(DefaultValue::CurrentTimestamp) => return Err(invalid),
        Some(DefaultValue::Expression(default)) => Some(DefaultValue::Expression(default.clone())),
        Some(DefaultValue::Value(Value::Null)) if column.nullable => {
            Some(DefaultValue::Value(Value::Null))
        }
        Some(DefaultValue::Value(_)) if column.ty.is_long() => {
            return Err(TableError::LongColumnDefault { column: name() });
        }
        Some(DefaultValue::Value(value)) => {
            // Whether 0000-00-00 may be a default was decided where it was read.
            let mode = Mode {
                zero_date: true,
                ..Mode::STRICT
            };
            let (value, _) = to_column(column, value, mode).map_err(|_| invalid)?;
            Some(DefaultValue::Value(value))
        }
    };
    column.default = resolved;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(name: &str, ty: &str) -> Column {
        Column::new(name, ColumnType::parse(ty).unwrap(), true)
    }

    fn key(columns: &[&str]) -> Vec<IndexPartSpec> {
        columns
            .iter()
            .map(|column| IndexPartSpec::column(*column))
            .collect()
    }

    fn index(name: Option<&str>, columns: &[&str]) -> IndexSpec {
        IndexSpec {
            name: name.map(str::to_string),
            parts: key(columns),
            unique: false,
            comment: String::new(),
            invisible: false,
        }
    }

    fn prefix(column: &str, length: u32) -> IndexSpec {
        let mut spec = index(None, &[column]);
        spec.parts[0].prefix_length = Some(length);
        spec
    }

    fn table(
        columns: Vec<Column>,
        primary: Option<&[&str]>,
        indexes: Vec<IndexSpec>,
    ) -> Result<TableDefinition> {
        let mut request = CreateTable::new("d", "t", columns);
        request.primary_key = primary.map(key);
        request.indexes = indexes;
        resolve_table(1, request)
    }

    fn code(result: Result<TableDefinition>) -> u16 {
        result.unwrap_err().mysql_code()
    }

    #[test]
    fn names_are_found_without_case_and_made_up_where_missing() {
        let definition = table(
            vec![column("Id", "int"), column("a", "varchar(20)")],
            Some(&["ID"]),
            vec![
                index(None, &["A"]),
                index(None, &["a", "id"]),
                index(Some("k"), &["id"]),
            ],
        )
        .unwrap();
        assert!(!definition.columns[0].nullable);
        let names: Vec<&str> = definition
            .secondary
            .iter()
            .map(|index| index.name.as_str())
            .collect();
        assert_eq!(names, ["a", "a_2", "k"]);
        assert_eq!(
            definition.secondary[1]
                .parts
                .iter()
                .map(|part| part.column)
                .collect::<Vec<_>>(),
            [1, 0]
        );
    }

    #[test]
    fn wrong_requests_get_mysqls_errors() {
        let a = || column("a", "int");
        let text = || column("t", "text");
        let mut counter = a();
        counter.auto_increment = true;
        let mut long_default = text();
        long_default.default = Some(DefaultValue::Value(Value::Text("x".into())));
        let mut bad_default = a();
        bad_default.default = Some(DefaultValue::Value(Value::Text("x".into())));
        for (result, expected) in [
            (table(vec![], None, vec![]), 1113),
            (table(vec![a(), column("A", "int")], None, vec![]), 1060),
            (table(vec![column("", "int")], None, vec![]), 1166),
            (
                table(vec![column(&"x".repeat(65), "int")], None, vec![]),
                1059,
            ),
            (table(vec![a()], Some(&["b"]), vec![]), 1072),
            (table(vec![a()], None, vec![index(None, &["a", "a"])]), 1060),
            (
                table(
                    vec![a()],
                    None,
                    vec![index(Some("k"), &["a"]), index(Some("K"), &["a"])],
                ),
                1061,
            ),
            (
                table(vec![a()], None, vec![index(Some("primary"), &["a"])]),
                1280,
            ),
            (table(vec![text()], None, vec![index(None, &["t"])]), 1170),
            (table(vec![a()], None, vec![prefix("a", 1)]), 1089),
            (
                table(vec![column("c", "char(3)")], None, vec![prefix("c", 4)]),
                1089,
            ),
            (
                table(
                    vec![column("c", "varchar(1000)")],
                    None,
                    vec![index(None, &["c"])],
                ),
                1071,
            ),
            (table(vec![column("c", "char(256)")], None, vec![]), 1074),
            (
                table(vec![column("c", "enum('a','A')")], None, vec![]),
                1291,
            ),
            (table(vec![counter.clone()], None, vec![]), 1075),
            (table(vec![long_default], None, vec![]), 1101),
            (table(vec![bad_default], None, vec![]), 1067),
        ] {
            assert_eq!(code(result), expected);
        }
        assert!(table(vec![counter], Some(&["a"]), vec![]).is_ok());
    }

    #[test]
    fn a_prefix_of_the_whole_column_is_none() {
        let definition = table(
            vec![column("c", "char(3)")],
            None,
            vec![prefix("c", 3), prefix("c", 2)],
        )
        .unwrap();
        let lengths: Vec<_> = definition
            .secondary
            .iter()
            .map(|index| index.parts[0].prefix_length)
            .collect();
        assert_eq!(lengths, [None, Some(2)]);
    }

    #[test]
    fn only_tables_with_long_rows_have_an_overflow_tree() {
        assert!(!needs_overflow(
            &table(
                vec![column("a", "int"), column("b", "char(25)")],
                None,
                vec![]
            )
            .unwrap()
        ));
        assert!(needs_overflow(
            &table(vec![column("a", "text")], None, vec![]).unwrap()
        ));
    }
}
