//! Properties of columns as SHOW and `information_schema` print them.

use sheaf_table::{Column, DefaultText, DefaultValue, TableDefinition};
use sheaf_types::column_type::Sign;
use sheaf_types::labels::longest_text;
use sheaf_types::text::hexadecimal::digits_of;
use sheaf_types::{ColumnType, Value};

/// A column's default as text; `None` for NULL and for no default. Bytes are hexadecimal digits, as in MySQL, without
/// the zeros that BINARY is filled up with.
pub(crate) fn column_default(column: &Column) -> Option<String> {
    if let Some(DefaultValue::Value(Value::Bytes(bytes))) = &column.default {
        let filled = bytes.iter().rev().take_while(|byte| **byte == 0).count();
        return Some(match column.ty {
            ColumnType::Binary { .. } => format!("0x{}", digits_of(&bytes[..bytes.len() - filled])),
            _ if bytes.is_empty() => String::new(),
            _ => format!("0x{}", digits_of(bytes)),
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
    let digits = |signed: u64, unsigned: u64, sign: &Sign| {
        (
            Some(if sign.is_unsigned() { unsigned } else { signed }),
            Some(0),
        )
    };
    match ty {
        ColumnType::Bool => (Some(3), Some(0)),
        ColumnType::Bit { length } => (Some((*length).into()), None),
        ColumnType::TinyInt { sign } => digits(3, 3, sign),
        ColumnType::SmallInt { sign } => digits(5, 5, sign),
        ColumnType::MediumInt { sign } => digits(7, 7, sign),
        ColumnType::Int { sign } => digits(10, 10, sign),
        ColumnType::BigInt { sign } => digits(19, 20, sign),
        ColumnType::Decimal {
            precision, scale, ..
        } => (Some((*precision).into()), Some((*scale).into())),
        ColumnType::Float {
            digits: Some(digits),
            ..
        }
        | ColumnType::Double {
            digits: Some(digits),
            ..
        } => (Some(digits.precision.into()), Some(digits.scale.into())),
        ColumnType::Float { .. } => (Some(12), None),
        ColumnType::Double { .. } => (Some(22), None),
        _ => (None, None),
    }
}

/// The most bytes of a string.
pub(crate) fn octet_length(ty: &ColumnType) -> Option<u64> {
    let bytes = match ty.collation() {
        Some(collation) => u64::from(collation.character_bytes()),
        None => 1,
    };
    match ty {
        ColumnType::Char { length, .. } | ColumnType::VarChar { length, .. } => {
            Some(u64::from(*length) * bytes)
        }
        ColumnType::Enum { .. } | ColumnType::Set { .. } => {
            longest_text(ty).map(|characters| characters * bytes)
        }
        ColumnType::Text { max_bytes, .. } | ColumnType::Blob { max_bytes } => Some(*max_bytes),
        ColumnType::Binary { length } | ColumnType::VarBinary { length } => {
            Some(u64::from(*length))
        }
        _ => None,
    }
}
