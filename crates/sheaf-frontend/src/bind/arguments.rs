//! A call taken apart: its arguments, and the name of the aggregate that it is.

use sheaf_types::error::codes;
use sqlparser::ast::{
    DateTimeField, DuplicateTreatment, Expr, FunctionArg, FunctionArgExpr, FunctionArgumentClause,
    FunctionArguments, OrderByExpr, Value as Literal,
};

use crate::error::{Result, SqlError};
use crate::function_names::is_of_grammar;

/// 1582, or 1064 for a function of the grammar.
pub fn wrong_argument_count(name: &str) -> SqlError {
    if is_of_grammar(name) {
        return SqlError::parse_error(")", 1);
    }
    SqlError::new(
        codes::WRONG_PARAMCOUNT_TO_NATIVE_FCT,
        format!("Incorrect parameter count in the call to native function '{name}'"),
    )
}

/// 1111.
pub fn invalid_group_function() -> SqlError {
    SqlError::new(
        codes::INVALID_GROUP_FUNC_USE,
        "Invalid use of group function",
    )
}

/// A call taken apart. Arguments are not copied: a nest would have as many copies of its innermost ones as it is deep.
pub struct Arguments<'e> {
    pub values: Vec<&'e Expr>,
    pub star: bool,
    pub distinct: bool,
    pub order_by: &'e [OrderByExpr],
    pub separator: Option<&'e str>,
}

/// Takes a call's arguments apart.
///
/// # Errors
/// 1235.
pub fn take_arguments(args: &FunctionArguments) -> Result<Arguments<'_>> {
    let mut taken = Arguments {
        values: vec![],
        star: false,
        distinct: false,
        order_by: &[],
        separator: None,
    };
    let list = match args {
        FunctionArguments::None => return Ok(taken),
        FunctionArguments::Subquery(_) => {
            return Err(SqlError::not_supported_yet(
                "a subquery as an argument list",
            ));
        }
        FunctionArguments::List(list) => list,
    };
    taken.distinct = list.duplicate_treatment == Some(DuplicateTreatment::Distinct);
    taken.values.reserve_exact(list.args.len());
    for arg in &list.args {
        match arg {
            FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => taken.values.push(expr),
            FunctionArg::Unnamed(FunctionArgExpr::Wildcard) => taken.star = true,
            other => return Err(SqlError::not_supported_yet(other)),
        }
    }
    for clause in &list.clauses {
        match clause {
            FunctionArgumentClause::OrderBy(order_by) => taken.order_by = order_by,
            FunctionArgumentClause::Separator(value) => {
                taken.separator = match &value.value {
                    Literal::SingleQuotedString(text) | Literal::DoubleQuotedString(text) => {
                        Some(text.as_str())
                    }
                    other => return Err(SqlError::not_supported_yet(other)),
                }
            }
            FunctionArgumentClause::IgnoreOrRespectNulls(_) => {}
            other => return Err(SqlError::not_supported_yet(other)),
        }
    }
    Ok(taken)
}

/// A unit of time given as an argument, as in TIMESTAMPDIFF(MONTH, a, b).
pub fn unit_argument(expr: &Expr) -> Option<String> {
    match expr {
        Expr::Identifier(ident) => Some(ident.value.to_ascii_lowercase()),
        _ => None,
    }
}

/// The text of an identifier-like unit of time.
pub fn unit_name(field: &DateTimeField) -> String {
    match field {
        DateTimeField::Custom(ident) => ident.value.clone(),
        DateTimeField::Week(_) => "week".to_string(),
        other => other.to_string().to_ascii_lowercase(),
    }
}
