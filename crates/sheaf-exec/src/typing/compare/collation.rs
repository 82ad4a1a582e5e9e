//! The collation of a comparison: that of all operands together, and texts for literals of bytes beside texts.

use datafusion_common::{DFSchema, Result, ScalarValue};
use datafusion_expr::{Expr, lit};
use sheaf_types::Collation;

use super::operand::Operand;
use crate::functions::types::{
    Coercibility, SqlType, common_collation, field, is_explicit,
    is_literal_of_bytes as is_literal_of_bytes_field,
};
use crate::functions::{EvaluationError, call};
use crate::typing::{Rule, Texts, fold, is_literal_of_bytes, literal, type_of, typed_literal};

/// The text that a literal of bytes is beside a text that is no literal: a column's collation is stronger than the
/// literal's, which is that of bytes. So is it with parameters that come as bytes. `None` if it is no such literal.
///
/// # Errors
/// 3854 for a literal that is no text in the other's character set. A parameter that is none stays bytes.
pub(super) fn text_beside(
    compared_with: &SqlType,
    other: &Expr,
    texts: &Texts,
) -> Result<Option<Expr>> {
    let collation = match compared_with {
        SqlType::Text {
            collation,
            coercibility: Coercibility::Explicit | Coercibility::Implicit | Coercibility::OfServer,
        }
        | SqlType::Enum { collation } => collation,
        _ => return Ok(None),
    };
    let is_literal = is_literal_of_bytes(other);
    Ok(match literal(other) {
        Some(ScalarValue::Binary(Some(bytes))) if is_literal => {
            let set = collation.character_set();
            let text = match collation.encoding().decode(bytes) {
                Some(text) => text,
                None if texts.are_parameters => return Ok(None),
                None => return Err(EvaluationError::not_convertible(bytes, "binary", set).into()),
            };
            let field = field::collated_text(*collation, Coercibility::Coercible);
            let value = ScalarValue::Utf8View(Some(text));
            Some(typed_literal(value, &field))
        }
        _ => None,
    })
}

/// Bytes of a query, say, that has them from literals: a text beside a stronger one, as a literal is.
pub(super) fn is_made_of_literals(operand: &Operand) -> bool {
    operand.ty == SqlType::Bytes
        && literal(&operand.expr).is_none()
        && is_literal_of_bytes_field(&operand.field)
}

pub(super) fn is_strong_text(ty: &SqlType) -> bool {
    match ty {
        SqlType::Text { coercibility, .. } => *coercibility != Coercibility::Coercible,
        other => other.is_text(),
    }
}

/// The operands of a function that compares the first one, a text or not, with the others.
pub(in crate::typing) fn texts_beside(
    mut operands: Vec<Expr>,
    schema: &DFSchema,
    rule: Rule<'_>,
) -> Result<Vec<Expr>> {
    if let Some((first, others)) = operands.split_first_mut()
        && others.iter().any(is_literal_of_bytes)
    {
        let ty = type_of(first, schema)?;
        for other in others {
            if let Some(text) = text_beside(&ty, other, &rule)? {
                *other = text;
            }
        }
    }
    Ok(operands)
}

/// Operands that are compared with each other, all as one type: a literal of bytes is a text beside any stronger one.
pub(in crate::typing) fn texts_beside_each_other(
    mut operands: Vec<Expr>,
    schema: &DFSchema,
    rule: Rule<'_>,
) -> Result<Vec<Expr>> {
    if !operands.iter().any(is_literal_of_bytes) {
        return Ok(operands);
    }
    let types = operands.iter().map(|operand| type_of(operand, schema));
    let types = types.collect::<Result<Vec<_>>>()?;
    for operand in &mut operands {
        for ty in &types {
            if let Some(text) = text_beside(ty, operand, &rule)? {
                *operand = text;
            }
        }
    }
    Ok(operands)
}

/// A text that is compared with several values, all by one collation: that of all of them together, as of the operands
/// of a function. It is left alone where each pair has that collation anyway.
///
/// ```text
///   s IN ('b', t)     with a column t of utf8mb4_bin, 'B' is not 'b'
/// ```
pub(in crate::typing) fn of_one_collation<'a>(
    value: Expr,
    others: impl ExactSizeIterator<Item = &'a Expr> + Clone,
    schema: &DFSchema,
    operation: &str,
) -> Result<Expr> {
    if others.len() < 2 {
        return Ok(value);
    }
    let all = others.clone();
    let ty = type_of(&value, schema)?;
    if !ty.is_text() {
        return Ok(value);
    }
    let mut types = vec![ty];
    let mut has_bytes = false;
    // Values of the type that the text has itself: with them alone it would be compared by its own collation.
    let mut of_own = None;
    for other in others {
        let ty = type_of(other, schema)?;
        // A literal of bytes is a text beside stronger ones.
        has_bytes |= ty == SqlType::Bytes && literal(other).is_none();
        if ty == types[0] {
            of_own = Some(ty);
        } else if ty.is_text() && !types.contains(&ty) {
            types.push(ty);
        }
    }
    if has_bytes && !types.iter().any(is_explicit) {
        return Ok(fold(call("$cast_binary", vec![value]), schema));
    }
    let common = match common_collation(&types, operation) {
        Ok((common, _)) => common,
        // The error counts all of them.
        Err(_) => {
            let others = all.map(|other| type_of(other, schema));
            let mut every = vec![types.swap_remove(0)];
            every.extend(others.collect::<Result<Vec<_>>>()?);
            common_collation(&every, operation)?.0
        }
    };
    for other in types[1..].iter().chain(&of_own) {
        let pair = [types[0].clone(), other.clone()];
        // Two that have none between them have that of all.
        if common_collation(&pair, operation).map_or(true, |(of_pair, _)| of_pair != common) {
            return Ok(collated(value, common, schema));
        }
    }
    Ok(value)
}

pub(in crate::typing) fn collated(value: Expr, collation: Collation, schema: &DFSchema) -> Expr {
    fold(call("$collate", vec![value, lit(collation.name())]), schema)
}
