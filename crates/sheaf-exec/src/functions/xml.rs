//! EXTRACTVALUE and UPDATEXML.
//!
//! The path has to be a constant, as in MySQL: it is read once. What is no XML gives NULL.

use arrow::array::{ArrayRef, StringViewArray};
use arrow::datatypes::Field;
use datafusion_common::Result;
use sheaf_types::Collation;
use sheaf_types::error::codes;
use sheaf_types::xml::{Document, Path, WrongPath};

use super::result_array::texts;
use super::types::{matching_collation, text_field};
use super::{Argument, Call, EvaluationError, Function, Operands};

pub(super) static FUNCTIONS: &[Function] = &[
    // Document, path.
    Function::new("extractvalue", (2, 2), found_text, extract_value),
    // Document, path, and what stands in the place of the node.
    Function::new("updatexml", (3, 3), found_text, update_xml),
];

/// A text of the collation of the document and the path.
fn found_text(operands: &Operands<'_>) -> Result<Field> {
    text_field(&operands.fields[..2], "extractvalue")
}

fn wrong(message: String) -> EvaluationError {
    EvaluationError::new(codes::UNKNOWN_ERROR, message)
}

/// The path of all rows; `None` if it is NULL.
fn path(call: &Call<'_>, paths: &Argument<StringViewArray>) -> Result<Option<Path>> {
    if call.rows() == 0 {
        return Ok(None);
    }
    if !paths.constant {
        let message = "Only constant XPATH queries are supported".to_string();
        return Err(wrong(message).into());
    }
    let Some(text) = paths.get(0) else {
        return Ok(None);
    };
    let parsed = Path::parse(text).map_err(|problem| match problem {
        WrongPath::Syntax(rest) => wrong(format!("XPATH syntax error: '{rest}'")),
        WrongPath::TwoSets(rest) => wrong(format!(
            "XPATH error: comparison of two nodesets is not supported: '{rest}'"
        )),
        WrongPath::Unknown(rest) => wrong(format!("Unknown XPATH variable at: '{rest}'")),
        WrongPath::Variable => EvaluationError::not_supported_yet("user variables in an XPath"),
        WrongPath::TooDeep => wrong("XPATH error: the query is nested too deep".to_string()),
    });
    Ok(Some(parsed?))
}

/// What the documents of all rows compare by.
fn collation(call: &Call<'_>) -> Result<Collation> {
    let fields = &call.args.arg_fields;
    matching_collation(&fields[0], &fields[1], "extractvalue")
}

fn takes_too_long() -> EvaluationError {
    wrong("XPATH error: the query looks at too many nodes".to_string())
}

fn extract_value(call: &Call<'_>) -> Result<ArrayRef> {
    let (documents, paths) = (call.text(0)?, call.text(1)?);
    let (path, collation, turns) = (path(call, &paths)?, collation(call)?, call.turns());
    let is_over = || turns.is_over_now();
    let found = (0..call.rows()).map(|row| {
        let (Some(path), Some(text)) = (&path, documents.get(row)) else {
            return Ok(None);
        };
        let Ok(document) = Document::parse(text) else {
            return Ok(None);
        };
        match path.extract(&document, collation, &is_over) {
            Ok(found) => Ok(found),
            Err(_) if is_over() => Ok(None),
            Err(_) => Err(takes_too_long().into()),
        }
    });
    let found = found.collect::<Result<Vec<Option<String>>>>()?;
    texts(call, |row, out| {
        out.push_str(found[row].as_deref()?);
        Some(())
    })
}

fn update_xml(call: &Call<'_>) -> Result<ArrayRef> {
    let (documents, paths, replacements) = (call.text(0)?, call.text(1)?, call.text(2)?);
    let (path, collation, turns) = (path(call, &paths)?, collation(call)?, call.turns());
    let is_over = || turns.is_over_now();
    let places = (0..call.rows()).map(|row| {
        let (Some(path), Some(text)) = (&path, documents.get(row)) else {
            return Ok(None);
        };
        let Ok(document) = Document::parse(text) else {
            return Ok(None);
        };
        match path.only_node(&document, collation, &is_over) {
            // Nothing is replaced.
            Ok(place) => Ok(Some(place)),
            Err(_) if is_over() => Ok(None),
            Err(_) => Err(takes_too_long().into()),
        }
    });
    let places = places.collect::<Result<Vec<_>>>()?;
    texts(call, |row, out| {
        let (text, replacement) = (documents.get(row)?, replacements.get(row)?);
        match places[row].as_ref()? {
            Some(place) => {
                out.push_str(&text[..place.start]);
                out.push_str(replacement);
                out.push_str(&text[place.end..]);
            }
            None => out.push_str(text),
        }
        Some(())
    })
}
