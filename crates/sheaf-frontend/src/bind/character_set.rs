//! Character sets in expressions: `_utf8mb4 0xD0B1`, `_binary'x'`, `CONVERT(x USING koi8r)`, `CHAR(65 USING latin1)`.
//!
//! Text is UTF-8 throughout. Bytes become text by the character set that they are said to be of. A text that is
//! converted to another character set has question marks in the places of the characters that this does not have, and
//! is UTF-8 again. Its bytes are those of the other set only where a function asks for bytes around it:
//! `HEX(CONVERT(x USING koi8r))`, `CAST(CONVERT(x USING latin1) AS BINARY)`. Functions between that make texts of texts
//! keep the set, as in `HEX(UPPER(CONVERT(x USING koi8r)))`.

use sheaf_exec::functions::called;
use sheaf_types::error::codes;
use sheaf_types::text::encoding::TextEncoding;
use sheaf_types::text::hexadecimal::{bytes_of, digits_of};
use sqlparser::ast::{
    DataType, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, Value as Literal,
};

use crate::character_sets::{character_set, has_other_bytes};
use crate::error::{Result, SqlError};
use crate::syntax::{object_text, text};

pub const BINARY: &str = "binary";
/// The character set of a string that says none: that of the connection.
const OF_CONNECTION: &str = "";

/// How many of the first operands of a function are looked at as bytes.
pub fn operands_of_bytes(function: &str) -> usize {
    match function {
        "ascii" | "bit_length" | "compress" | "crc32" | "hex" | "length" | "md5"
        | "octet_length" | "ord" | "sha" | "sha1" | "sha2" | "to_base64" | "$cast_binary" => 1,
        // The text, and the key.
        "aes_decrypt" | "aes_encrypt" => 2,
        _ => 0,
    }
}

/// The character set of this name. Error 1115.
pub fn known(name: &str) -> Result<&'static str> {
    character_set(name)
}

/// The character set that a text is in, as far as that is said, and whether it gives way to others. `None`: it is not
/// known, as of a column.
fn set_of_text(text: &Expr) -> Option<(&'static str, bool)> {
    match text {
        Expr::Nested(inner) => set_of_text(inner),
        Expr::Collate { expr, .. } => set_of_text(expr).map(|(set, _)| (set, false)),
        Expr::Convert {
            data_type,
            charset: Some(charset),
            ..
        } if !matches!(data_type, Some(DataType::JSON)) => {
            Some((known(&object_text(charset)).ok()?, false))
        }
        Expr::Prefixed { prefix, .. } => Some((known(prefix.value.strip_prefix('_')?).ok()?, true)),
        Expr::Value(value) => match value.value {
            Literal::SingleQuotedString(_) | Literal::DoubleQuotedString(_) => {
                Some((OF_CONNECTION, true))
            }
            Literal::NationalStringLiteral(_) => Some(("utf8mb3", true)),
            _ => None,
        },
        made => {
            let is_number = |part: &Expr| matches!(part, Expr::Value(value) if matches!(value.value, Literal::Number(..) | Literal::Null));
            let mut parts = parts_of_text(made);
            parts.retain(|part| !is_number(part));
            let (first, others) = parts.split_first()?;
            let first = set_of_text(first)?;
            others.iter().try_fold(first, |(set, yields), part| {
                let (other, other_yields) = set_of_text(part)?;
                match (yields, other_yields) {
                    _ if set == other => Some((set, yields && other_yields)),
                    (false, true) => Some((set, yields)),
                    (true, false) => Some((other, other_yields)),
                    _ => None,
                }
            })
        }
    }
}

/// The operands that a text is put together of, or chosen from.
pub fn parts_of_text(operand: &Expr) -> Vec<&Expr> {
    match operand {
        Expr::Nested(inside) => vec![inside],
        Expr::Trim { expr, .. } | Expr::Substring { expr, .. } => vec![expr],
        Expr::Case {
            conditions,
            else_result,
            ..
        } => {
            let results = conditions.iter().map(|branch| &branch.result);
            results.chain(else_result.as_deref()).collect()
        }
        Expr::Function(function) => {
            let (first, most) = text_operands(&function.name.to_string().to_ascii_lowercase());
            arguments_of(function).skip(first).take(most).collect()
        }
        _ => Vec::new(),
    }
}

/// The arguments of a function that are expressions.
pub fn arguments_of(function: &Function) -> impl Iterator<Item = &Expr> {
    let arguments = match &function.args {
        FunctionArguments::List(list) => list.args.as_slice(),
        _ => &[],
    };
    arguments.iter().filter_map(|argument| match argument {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(argument)) => Some(argument),
        _ => None,
    })
}

/// Which operands of a function its text is made of: the first one, and how many there are at most.
fn text_operands(function: &str) -> (usize, usize) {
    match function {
        // It is a CASE to the plan.
        "if" => (1, usize::MAX),
        name => called(name).map_or((0, 0), |function| function.text_operands),
    }
}

/// The character set that a text is said to be in, `binary` among them.
pub fn said_character_set(text: &Expr) -> Option<&'static str> {
    let (set, _) = set_of_text(text)?;
    (set != OF_CONNECTION).then_some(set)
}

/// The character set that a text is said to be in, if that is not UTF-8 and not `binary`.
pub fn other_character_set(text: &Expr) -> Option<&'static str> {
    said_character_set(text).filter(|set| has_other_bytes(set))
}

/// Whether a text is a string that says no character set, or made of such strings.
pub fn is_of_connection(text: &Expr) -> bool {
    set_of_text(text).is_some_and(|(set, _)| set == OF_CONNECTION)
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
        assert_eq!(introduced("_gbk", &hex("D6D0")).unwrap(), Some(text("中")));
        assert_eq!(introduced("_gbk", &hex("80")).unwrap_err().code, 1300);
        assert_eq!(introduced("_swe7", &hex("41")).unwrap_err().code, 1115);
        let number = Literal::Number("1".to_string(), false);
        assert_eq!(introduced("_utf8mb4", &number).unwrap(), None);
    }
}
