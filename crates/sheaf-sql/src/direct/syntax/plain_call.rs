//! A call of a function taken apart, where it is nothing but a name and operands.

use sqlparser::ast;

/// The name in lower case, and the operands. `None`: it has more than that, such as OVER, DISTINCT or a database.
pub(in crate::direct) fn plain_call(function: &ast::Function) -> Option<(String, Vec<&ast::Expr>)> {
    let ast::Function {
        name,
        uses_odbc_syntax: false,
        parameters: ast::FunctionArguments::None,
        args,
        filter: None,
        null_treatment: None,
        over: None,
        within_group,
    } = function
    else {
        return None;
    };
    let [part] = name.0.as_slice() else {
        return None;
    };
    let operands = match args {
        ast::FunctionArguments::None => Vec::new(),
        ast::FunctionArguments::List(list)
            if list.clauses.is_empty() && list.duplicate_treatment.is_none() =>
        {
            let operands = list.args.iter().map(|argument| match argument {
                ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Expr(expr)) => Some(expr),
                _ => None,
            });
            operands.collect::<Option<_>>()?
        }
        _ => return None,
    };
    let name = part.as_ident()?.value.to_ascii_lowercase();
    within_group.is_empty().then_some((name, operands))
}

/// Whether a function, by its name in small letters, is one of several rows.
pub(in crate::direct) fn is_aggregate_name(name: &str) -> bool {
    const NAMES: [&str; 20] = [
        "count",
        "sum",
        "avg",
        "min",
        "max",
        "any_value",
        "grouping",
        "group_concat",
        "std",
        "stddev",
        "stddev_pop",
        "stddev_samp",
        "variance",
        "var_pop",
        "var_samp",
        "bit_and",
        "bit_or",
        "bit_xor",
        "json_arrayagg",
        "json_objectagg",
    ];
    NAMES.contains(&name)
}
