//! Character sets in expressions: `_utf8mb4 0xD0B1`, `_binary'x'`, `CONVERT(x USING koi8r)`, `CHAR(65 USING latin1)`.
//!
//! Text is UTF-8 throughout. Bytes become text by the character set that they are said to be of. A text that is
//! converted to another character set has question marks in the places of the characters that this does not have, and
//! is UTF-8 again. Its bytes are those of the other set only where a function asks for bytes right around it:
//! `HEX(CONVERT(x USING koi8r))`, `CAST(CONVERT(x USING latin1) AS BINARY)`.

use sheaf_types::error::codes;
use sheaf_types::text::encoding::TextEncoding;
use sheaf_types::text::hexadecimal::{bytes_of, digits_of};
use sqlparser::ast::{DataType, Expr, Value as Literal};

use crate::character_sets::{character_set, has_other_bytes};
use crate::error::{Result, SqlError};
use crate::syntax::{object_text, text};

pub const BINARY: &str = "binary";
/// Functions of one operand that look at its bytes.
const OF_BYTES: [&str; 12] = [
    "ascii",
    "bit_length",
    "crc32",
    "hex",
    "length",
    "md5",
    "octet_length",
    "ord",
    "sha",
    "sha1",
    "to_base64",
    "$cast_binary",
];

/// The character set of this name. Error 1115.
pub fn known(name: &str) -> Result<&'static str> {
    character_set(name)
}

/// Whether a function looks at the bytes of its only operand.
pub fn asks_for_bytes(function: &str) -> bool {
    OF_BYTES.contains(&function)
}

/// The character set that an operand is converted to or is written in, if that is not UTF-8 and not `binary`.
pub fn other_character_set(operand: &Expr) -> Option<&'static str> {
    let name = match operand {
        Expr::Nested(inner) => return other_character_set(inner),
        Expr::Convert {
            data_type,
            charset: Some(charset),
            ..
        } if !matches!(data_type, Some(DataType::JSON)) => object_text(charset),
        Expr::Prefixed { prefix, .. } => prefix.value.strip_prefix('_')?.to_string(),
        _ => return None,
    };
    let name = known(&name).ok()?;
    has_other_bytes(name).then_some(name)
}

/// A literal behind an introducer, `_name`; `None` if it is no text and no bytes.
pub fn introduced(name: &str, literal: &Literal) -> Result<Option<Expr>> {
    let name = known(name.strip_prefix('_').unwrap_or(name))?;
    let bytes = match literal {
        Literal::HexStringLiteral(digits) => bytes_of(digits),
        Literal::SingleQuotedString(string) | Literal::DoubleQuotedString(string) => {
            Some(string.clone().into_bytes())
        }
        _ => None,
    };
    let Some(bytes) = bytes else {
        return Ok(None);
    };
    if name == BINARY {
        let digits = digits_of(&bytes);
        return Ok(Some(crate::syntax::literal(Literal::HexStringLiteral(
            digits,
        ))));
    }
    match TextEncoding::of_character_set(name).decode(&bytes) {
        Some(string) => Ok(Some(text(string))),
        None => {
            let valid = match std::str::from_utf8(&bytes) {
                Err(error) => error.valid_up_to(),
                Ok(_) => bytes.iter().take_while(|byte| byte.is_ascii()).count(),
            };
            let digits = digits_of(&bytes[valid..]);
            Err(SqlError::new(
                codes::INVALID_CHARACTER_STRING,
                format!("Invalid {name} character string: '{digits}'"),
            ))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_spell_bytes() {
        assert_eq!(bytes_of("D0B1"), Some(vec![0xD0, 0xB1]));
        assert_eq!(bytes_of("ABC"), Some(vec![0x0A, 0xBC]));
        assert_eq!(bytes_of(""), Some(Vec::new()));
    }

    #[test]
    fn bytes_are_text_in_their_character_set() {
        let hex = |digits: &str| Literal::HexStringLiteral(digits.to_string());
        assert_eq!(
            introduced("_utf8mb4", &hex("D0B1")).unwrap(),
            Some(text("б"))
        );
        assert_eq!(introduced("_LATIN1", &hex("41")).unwrap(), Some(text("A")));
        assert_eq!(introduced("_utf8mb4", &hex("41FF")).unwrap_err().code, 1300);
        assert_eq!(introduced("_latin1", &hex("E4")).unwrap(), Some(text("ä")));
        assert_eq!(introduced("_ascii", &hex("E4")).unwrap_err().code, 1300);
        assert_eq!(introduced("_ucs2", &hex("0041")).unwrap(), Some(text("A")));
        assert_eq!(introduced("_koi8r", &hex("C1")).unwrap(), Some(text("а")));
        assert_eq!(introduced("_gbk", &hex("41")).unwrap_err().code, 1115);
        let number = Literal::Number("1".to_string(), false);
        assert_eq!(introduced("_utf8mb4", &number).unwrap(), None);
    }
}
