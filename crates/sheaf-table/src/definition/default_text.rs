//! How the default of a column is written: in SHOW CREATE TABLE, SHOW COLUMNS and `information_schema`.

use sheaf_types::number::push_bit_literal;
use sheaf_types::text::hexadecimal::literal_of;
use sheaf_types::{Value, column_text};

use super::schema::{Column, DefaultValue};

/// The default of a column, as a text of one of these kinds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DefaultText<'a> {
    Null,
    /// CURRENT_TIMESTAMP, with the digits of its fraction.
    CurrentTimestamp(String),
    /// Without the parentheses around it.
    Expression(&'a str),
    /// A literal of its own kind, which needs no quotes: `b'101'`, `0xE4`.
    Literal(String),
    /// The text of a value, without quotes.
    Value(String),
}

impl Column {
    /// `None`: it has none.
    pub fn default_text(&self) -> Option<DefaultText<'_>> {
        Some(match self.default.as_ref()? {
            DefaultValue::CurrentTimestamp => {
                DefaultText::CurrentTimestamp(self.current_timestamp())
            }
            DefaultValue::Expression(default) => DefaultText::Expression(&default.text),
            DefaultValue::Value(Value::Null) => DefaultText::Null,
            DefaultValue::Value(Value::Bytes(bytes)) if std::str::from_utf8(bytes).is_err() => {
                DefaultText::Literal(literal_of(bytes))
            }
            DefaultValue::Value(Value::UInt(bits)) if self.ty.bit_length().is_some() => {
                let mut literal = String::new();
                push_bit_literal(*bits, &mut literal);
                DefaultText::Literal(literal)
            }
            DefaultValue::Value(value) => DefaultText::Value(column_text(&self.ty, value)),
        })
    }

    /// CURRENT_TIMESTAMP as the default of this column, or as what an update assigns to it.
    pub fn current_timestamp(&self) -> String {
        match self.ty.fraction_digits() {
            0 => "CURRENT_TIMESTAMP".to_string(),
            digits => format!("CURRENT_TIMESTAMP({digits})"),
        }
    }
}
