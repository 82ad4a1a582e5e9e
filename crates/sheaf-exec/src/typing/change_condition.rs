//! Divisions by zero in the conditions of statements that change rows.
//!
//! In a strict mode MySQL ends such a statement with error 1365 as soon as it divides by zero for a row. Which rows it
//! comes to depends on its plan. It finds rows by an index first, and computes the other parts of the condition from
//! left to right, until one is not true:
//!
//! ```text
//!   WHERE c = 5 AND a / b > 1 AND d = 6 AND k = 20       (k is indexed)
//!
//!   c = 5 AND k = 20 AND
//!   (a / $divisor(b, (c = 5) IS TRUE, (k = 20) IS TRUE) > 1 AND d = 6) IS TRUE
//! ```
//!
//! Here conditions are computed for batches of rows, and each part as close to the table as it can be. So a divisor is
//! given conditions ([`reached`]): the parts before its own, and those that an index may serve, wherever they stand.
//! The other parts behind it wait for its part, or rows would not come to it for which they are false.
//!
//! Over a join, a part about one table is watched, and is given all other parts as conditions, with those of the join.
//! So it is about all tables, stays above the join, and notes what is wrong with rows that everything else is true for.
//! MySQL comes to these in every plan.
//!
//! What is not watched, because a plan here may come to rows that MySQL does not come to: what joins tables, conditions
//! of subqueries, and statements with a LIMIT. Nor are conditions of queries: a function that notes something is not
//! pushed down.

use datafusion_common::Result;
use datafusion_expr::expr::BinaryExpr;
use datafusion_expr::utils::conjunction;
use datafusion_expr::{Expr, Operator, lit};

use super::reached;
use crate::table_source::SheafTableSource;

/// Conditions of so many parts are watched, because each part may get copies of the others.
pub const MAX_PARTS: usize = 16;

/// The columns that indexes of a table begin with.
pub fn indexed_columns_of(source: &SheafTableSource) -> Vec<String> {
    let definition = &source.table.definition;
    let indexes = definition.indexes().filter(|index| source.uses(index));
    let first = indexes.filter_map(|index| index.parts.first());
    let names = first.map(|part| definition.columns[part.column].name.clone());
    names.collect()
}

/// The rows that a condition is about.
pub enum WatchedRows<'a> {
    /// Of a table, which has indexes that begin with these columns.
    Table(&'a [String]),
    /// Of a join by these conditions.
    Join(Vec<Expr>),
}

/// The condition of parts that are typed for the purposes that they have, and whether they have subqueries.
pub fn of_typed_parts(parts: Vec<(Expr, bool)>, rows: WatchedRows<'_>) -> Result<Expr> {
    let (resolved, subqueries): (Vec<Expr>, Vec<bool>) = parts.into_iter().unzip();
    let mut conditions: Vec<Option<Expr>> = Vec::with_capacity(resolved.len());
    let mut comes_first: Vec<bool> = Vec::with_capacity(resolved.len());
    for (part, is_subquery) in resolved.iter().zip(subqueries) {
        let copy = match is_subquery {
            true => None,
            false => reached::copy(part)?,
        };
        conditions.push(copy.map(Expr::is_true));
        comes_first.push(match rows {
            WatchedRows::Table(indexed) => is_subquery || is_found_first(part, indexed),
            WatchedRows::Join(_) => !reached::takes_conditions(part),
        });
    }
    let mut of_join = Vec::new();
    if let WatchedRows::Join(conditions) = rows {
        for condition in conditions {
            of_join.extend(reached::copy(&condition)?.map(Expr::is_true));
        }
    }
    let first = resolved.iter().position(reached::takes_conditions);
    // The parts from the first division on, of which each waits for those before it.
    let mut waiting: Option<Expr> = None;
    let mut others = Vec::with_capacity(resolved.len());
    for (at, part) in resolved.into_iter().enumerate().rev() {
        if first.is_none_or(|first| at < first) || comes_first[at] {
            others.push(part);
            continue;
        }
        let part = match reached::takes_conditions(&part) {
            true => {
                let known =
                    (0..conditions.len()).filter(|other| *other < at || comes_first[*other]);
                let known = known.filter_map(|other| conditions[other].clone());
                let known = known.chain(of_join.iter().cloned());
                let part = reached::with_conditions(part, &known.collect::<Vec<_>>())?;
                with_whole_branches(part)
            }
            false => part,
        };
        waiting = Some(match waiting {
            Some(rest) => part.and(rest).is_true(),
            // The second half of BETWEEN, which notes nothing, stays behind the first one.
            None if reached::takes_conditions(&part) && is_conjunction(&part) => part.is_true(),
            None => part,
        });
    }
    others.reverse();
    Ok(conjunction(others.into_iter().chain(waiting)).unwrap_or_else(|| lit(true)))
}

/// A disjunction whose branches stay whole. Rules that simplify would test first what branches have in common, and rows
/// for which that is false would not come to the rest.
fn with_whole_branches(part: Expr) -> Expr {
    let Expr::BinaryExpr(BinaryExpr {
        left,
        op: Operator::Or,
        right,
    }) = part
    else {
        return part;
    };
    let whole = |branch: Expr| match is_conjunction(&branch) && reached::takes_conditions(&branch) {
        true => branch.is_true(),
        false => with_whole_branches(branch),
    };
    whole(*left).or(whole(*right))
}

fn is_conjunction(part: &Expr) -> bool {
    matches!(part, Expr::BinaryExpr(both) if both.op == Operator::And)
}

/// Whether MySQL knows of a typed part before it computes the condition of a row: it is constant, or about one indexed
/// column, and divides nothing.
fn is_found_first(part: &Expr, indexed: &[String]) -> bool {
    let columns = part.column_refs();
    columns.len() <= 1
        && columns.iter().all(|column| indexed.contains(&column.name))
        && !reached::takes_conditions(part)
}
