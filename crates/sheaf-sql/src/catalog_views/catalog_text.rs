//! Properties of columns as SHOW and `information_schema` print them.

use sheaf_table::{Column, DefaultText, DefaultValue, TableDefinition};
use sheaf_types::labels::longest_text;
use sheaf_types::text::hexadecimal::digits_of;
use sheaf_types::{ColumnType, Value};

/// A column's default as text; `None` for NULL and for no default. Bytes are hexadecimal digits, as in MySQL, without
/// the zeros that BINARY is filled up with.
pub(crate) fn column_default(column: &Column) -> Option<String> {
    if let Some(DefaultValue::Value(Value::Bytes(bytes))) = &column.default {
        let filled = bytes.iter().rev().take_while(|byte| **byte == 0).count();
        return Some(match column.ty.is_padded() {
            true => format!("0x{}", digits_of(&bytes[..bytes.len() - filled])),
            false if bytes.is_empty() => String::new(),
            false => format!("0x{}", digits_of(bytes)),
        });
    }
    match column.default_text()? {
        DefaultText::Null => None,
        DefaultText::Expression(text) => Some(text.to_string()),
        DefaultText::CurrentTimestamp(text)
        | DefaultText::Literal(text)
        | DefaultText::Value(text) => Some(text),
    }
}

/// The Extra of SHOW COLUMNS.
pub(crate) fn generation_extra(column: &Column) -> String {
    let mut extra = Vec::new();
    if column.auto_increment {
        extra.push("auto_increment".to_string());
    }
    if matches!(
        column.default,
        Some(DefaultValue::CurrentTimestamp | DefaultValue::Expression(_))
    ) {
        extra.push("DEFAULT_GENERATED".to_string());
    }
    if column.on_update_current_timestamp {
        extra.push(format!("on update {}", column.current_timestamp()));
    }
    if let Some(generated) = &column.generated {
        extra.push(format!("{} GENERATED", generated.kind.name()));
    }
    if column.invisible {
        extra.push("INVISIBLE".to_string());
    }
    extra.join(" ")
}

/// PRI, UNI, MUL or nothing: the column's best place in an index, where only the first place counts but in the
/// primary key. Without one, the first unique index that cannot hold NULL counts as it.
pub(crate) fn column_key(definition: &TableDefinition, column: usize) -> &'static str {
    let primary = definition.leading_key();
    let mut parts = primary.iter().flat_map(|index| &index.parts);
    if parts.any(|part| part.column == column) {
        return "PRI";
    }
    let leads = |index: &&sheaf_table::Index| {
        index
            .parts
            .first()
            .is_some_and(|part| part.column == column)
    };
    if definition
        .secondary
        .iter()
        .filter(leads)
        .any(|index| index.unique && index.parts.len() == 1)
    {
        "UNI"
    } else if definition.secondary.iter().any(|index| leads(&index)) {
        "MUL"
    } else {
        ""
    }
}

/// Digits and scale of a number.
pub(crate) fn numeric_precision(ty: &ColumnType) -> (Option<u64>, Option<u64>) {
    if let Some(bits) = ty.bit_length() {
        return (Some(bits.into()), None);
    }
    if let Some((precision, scale)) = ty.decimal_digits() {
        return (Some(precision.into()), Some(scale.into()));
    }
    if ty.is_floating() {
        return match ty.float_digits() {
            Some(digits) => (Some(digits.precision.into()), Some(digits.scale.into())),
            None if ty.is_single() => (Some(12), None),
            None => (Some(22), None),
        };
    }
    match ty.whole_digits().filter(|_| ty.is_integer()) {
        // MySQL counts those of the signed one.
        Some(_) if ty.integer_bits() == Some(24) => (Some(7), Some(0)),
        Some(digits) => (Some(digits.into()), Some(0)),
        None => (None, None),
    }
}

/// The most bytes of a string.
pub(crate) fn octet_length(ty: &ColumnType) -> Option<u64> {
    let bytes = match ty.collation() {
        Some(collation) => u64::from(collation.character_bytes()),
        None => 1,
    };
    let characters = match ty.has_labels() {
        true => longest_text(ty),
        false => ty.declared_length().map(u64::from),
    };
    characters
        .map(|characters| characters * bytes)
        .or(ty.long_bytes())
}
