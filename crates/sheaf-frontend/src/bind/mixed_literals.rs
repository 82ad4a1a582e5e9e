//! Literals of character sets that have characters which the other does not have: `_latin1'a' = _latin2'a'`. Text is
//! UTF-8 throughout, but MySQL takes no two such literals together.

use sheaf_types::error::codes;
use sqlparser::ast::Expr;

use super::Bound;
use super::character_set::{arguments_of, parts_of_text, said_character_set};
use crate::character_sets::default_collation;
use crate::error::SqlError;
use crate::syntax::{comparison_of, inside};

/// Character sets that others are converted to, or that are converted to others.
const GIVE_WAY: [&str; 3] = ["ascii", "binary", "gb18030"];

/// Looks only at operations on nothing but literals that say their character set.
///
/// # Errors
/// 1267 for two of them, 1270 for three, 1271 for more.
pub fn refuse_mixed_literals(expr: &Expr) -> Bound<()> {
    let (operands, operation) = match expr {
        Expr::BinaryOp { left, op, right } if says_its_set(left) && comparison_of(op).is_some() => {
            (vec![&**left, &**right], op.to_string())
        }
        Expr::Like { expr, pattern, .. } if says_its_set(expr) => {
            (vec![&**expr, &**pattern], "like".to_string())
        }
        Expr::RLike { expr, pattern, .. } if says_its_set(expr) => {
            (vec![&**expr, &**pattern], "regexp_like".to_string())
        }
        Expr::Between {
            expr, low, high, ..
        } if says_its_set(expr) => (vec![&**expr, &**low, &**high], "between".to_string()),
        Expr::InList { expr, list, .. } if says_its_set(expr) => {
            let operation = if list.len() == 1 { "=" } else { " IN " };
            let operands = std::iter::once(&**expr).chain(list).collect();
            (operands, operation.to_string())
        }
        Expr::Case { operand: None, .. } => (parts_of_text(expr), "case".to_string()),
        Expr::Function(function) if arguments_of(function).any(says_its_set) => {
            let name = function.name.to_string().to_ascii_lowercase();
            let operands = match name.as_str() {
                "find_in_set" | "nullif" | "strcmp" => arguments_of(function).collect(),
                _ => parts_of_text(expr),
            };
            (operands, name)
        }
        _ => return Ok(()),
    };
    if !operands.iter().copied().all(says_its_set) {
        return Ok(());
    }
    let sets: Option<Vec<&str>> = operands
        .iter()
        .map(|operand| said_character_set(operand).filter(|set| !gives_way(set)))
        .collect();
    match sets {
        Some(sets) if sets.windows(2).any(|pair| pair[0] != pair[1]) => {
            Err(illegal_mix(&sets, &operation))
        }
        _ => Ok(()),
    }
}

fn says_its_set(operand: &Expr) -> bool {
    matches!(inside(operand), Expr::Prefixed { .. })
}

fn gives_way(set: &str) -> bool {
    GIVE_WAY.contains(&set) || set.starts_with("utf") || set == "ucs2"
}

fn illegal_mix(sets: &[&str], operation: &str) -> SqlError {
    let of = |set: &&str| format!("({},COERCIBLE)", default_collation(set));
    let (code, shown) = match sets {
        [one, other] => (
            codes::CANT_AGGREGATE_2COLLATIONS,
            format!(" {} and {}", of(one), of(other)),
        ),
        [one, other, third] => (
            codes::CANT_AGGREGATE_3COLLATIONS,
            format!(" {}, {}, {}", of(one), of(other), of(third)),
        ),
        _ => (codes::CANT_AGGREGATE_NCOLLATIONS, String::new()),
    };
    SqlError::new(
        code,
        format!("Illegal mix of collations{shown} for operation '{operation}'"),
    )
}
