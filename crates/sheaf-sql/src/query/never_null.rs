//! Computed columns that are never NULL, although some of what they choose from may be.
//!
//! ```text
//!   COALESCE(a, b, c)   CASE WHEN a IS NOT NULL THEN a WHEN b IS NOT NULL THEN b ELSE c END   never NULL if b is not
//! ```
//!
//! Only definitions ask: the column of CREATE TABLE … SELECT, and of a view, is NOT NULL then. The field of the
//! expression stays nullable, since rules may put columns into it that are NULL, such as those of WITH ROLLUP.

use datafusion_common::ScalarValue;
use sheaf_algebra::scalar::{ScalarKind, Truth};
use sheaf_algebra::{ColumnId, Operator, Relation, Scalar};
use sheaf_frontend::query::BoundQuery;

/// Functions that hand their first operand on.
const HANDING_ON: [&str; 4] = ["$typed", "$collated", "$collate", "$result"];

/// Whether each of a query's columns is never NULL by its expression.
pub(crate) fn never_null(query: &BoundQuery) -> Vec<bool> {
    let mut made_by = query.shown.made_by.iter();
    let whole = made_by.find(|(number, _)| number.is_none());
    let whole = whole.map(|(_, relation)| relation);
    let whole = whole.filter(|relation| !has_groups(relation));
    let outputs = query.shown.outputs.iter();
    let value = |id| whole.and_then(|relation| made(relation, id));
    outputs
        .map(|(id, _)| value(*id).is_some_and(is_there))
        .collect()
}

/// Keys that are rolled up are NULL, whatever their columns say.
fn has_groups(relation: &Relation) -> bool {
    matches!(relation.operator(), Operator::Group(_))
        || relation.inputs().into_iter().any(has_groups)
}

/// The expression in a query's list that makes a column.
fn made(relation: &Relation, id: ColumnId) -> Option<&Scalar> {
    match relation.operator() {
        Operator::Project(project) => {
            let item = project.items.iter().find(|item| item.column == id)?;
            match item.value.as_column() {
                Some(column) => made(&project.input, column),
                None => Some(&item.value),
            }
        }
        Operator::Sort(sort) => made(&sort.input, id),
        Operator::Limit(limit) => made(&limit.input, id),
        _ => None,
    }
}

fn is_there(value: &Scalar) -> bool {
    match value.kind() {
        _ if !value.is_nullable() => true,
        ScalarKind::Call {
            function,
            arguments,
        } if HANDING_ON.contains(&function.name()) => arguments.first().is_some_and(is_there),
        ScalarKind::Case {
            branches,
            otherwise,
        } => {
            for (when, then) in branches {
                let is_tested = matches!(
                    when.kind(),
                    ScalarKind::Test { operand, is: Truth::Null, negated: true } if operand.as_ref() == then
                );
                let is_true = when.as_literal() == Some(&ScalarValue::Boolean(Some(true)));
                match is_there(then) {
                    // What stands behind it is not reached.
                    true if is_tested || is_true => return true,
                    true => {}
                    false if is_tested => {}
                    false => return false,
                }
            }
            otherwise.as_deref().is_some_and(is_there)
        }
        _ => false,
    }
}
