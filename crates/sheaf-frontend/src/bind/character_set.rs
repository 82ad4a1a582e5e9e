//! Character sets in expressions: `_utf8mb4 0xD0B1`, `_binary'x'`, `CONVERT(x USING utf8mb4)`, `CHAR(65 USING latin1)`.
//!
//! Text is UTF-8 throughout. Bytes become text where they are said to be UTF-8. Bytes of the narrower character sets
//! become text if they are ASCII, and are refused otherwise.

use sheaf_types::error::codes;
use sheaf_types::text::hexadecimal::{bytes_of, digits_of};
use sqlparser::ast::{Expr, Value as Literal};

use crate::error::{Result, SqlError};
use crate::syntax::text;

/// Other names than those of UTF-8, as far as ASCII goes.
const OF_ASCII: [&str; 2] = ["ascii", "latin1"];
const OF_UTF8: [&str; 3] = ["utf8mb4", "utf8mb3", "utf8"];
pub const BINARY: &str = "binary";

/// The character set of this name. Error 1115.
pub fn known(name: &str) -> Result<&'static str> {
    let mut all = OF_UTF8.iter().chain(&OF_ASCII).chain([&BINARY]);
    all.find(|known| known.eq_ignore_ascii_case(name))
        .copied()
        .ok_or_else(|| SqlError::unknown_character_set(name))
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
    if OF_ASCII.contains(&name) && !bytes.is_ascii() {
        return Err(SqlError::not_supported_yet(format!(
            "characters beyond ASCII in {name}"
        )));
    }
    match String::from_utf8(bytes) {
        Ok(string) => Ok(Some(text(string))),
        Err(error) => {
            let valid = error.utf8_error().valid_up_to();
            let wrong = &error.as_bytes()[valid..];
            let digits = digits_of(wrong);
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
        assert_eq!(introduced("_latin1", &hex("E4")).unwrap_err().code, 1235);
        assert_eq!(introduced("_ucs2", &hex("0041")).unwrap_err().code, 1115);
        let number = Literal::Number("1".to_string(), false);
        assert_eq!(introduced("_utf8mb4", &number).unwrap(), None);
    }
}
