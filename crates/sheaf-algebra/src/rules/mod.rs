//! Rewrites of a bound query, one a file. The heading of each is the identity that it applies.
//!
//! | file | rule |
//! |---|---|
//! | [`push_down_predicates`] | conditions go as far down as they mean the same |
//! | [`indexed_expressions`] | columns take the places of expressions that they have the values of |
//! | [`no_rows`] | what has no rows, and what follows of it |
//! | [`push_down_limits`] | limits go as far down as they leave what is shown |
//! | [`unused_joins`] | joins of which nobody needs one side's columns go, or only test |
//! | [`flat_unions`] | a union of unions becomes one, and what is distinct stays as it is |
//! | [`alternative_keys`] | a join by an OR of keys is a union of joins by each of them |
//! | [`shorter_orders`] | sort keys go that those before them determine |
//! | [`infer_predicates`] | what holds of one side of a join holds of the other, where they are equal |
//! | [`tested_marks`] | a filter by the mark of a subquery is a semijoin or an antijoin |
//! | [`unnest`] | dependent joins become joins: what the right side takes from the left is pulled up |
//! | [`repeatable`] | trees that are computed twice have the same rows both times |
//! | [`parts_of_unions`] | a limit of a union takes the rows of its first part first |
//! | [`domain`] | where it cannot be pulled up, the right side is joined with its distinct values |

pub mod alternative_keys;
mod domain;
pub mod flat_unions;
pub mod indexed_expressions;
pub mod infer_predicates;
pub mod no_rows;
mod parts_of_unions;
pub mod push_down_limits;
pub mod push_down_predicates;
mod repeatable;
pub mod shorter_orders;
pub mod tested_marks;
pub mod unnest;
pub mod unused_joins;

pub(crate) use unnest::calls_only_row;

#[cfg(test)]
mod tests;

use datafusion_common::Result;

use crate::column::Columns;
use crate::relation::Relation;
use crate::scalar::Typing;

/// Applies all rules, in the order in which each needs what the others do. What `typing` is for is
/// [`Purpose::Other`](sheaf_exec::typing::Purpose::Other).
pub fn rewrite(relation: Relation, columns: &mut Columns, typing: &Typing<'_>) -> Result<Relation> {
    let relation = tested_marks::apply(relation);
    let relation = unnest::apply(relation, columns, typing)?;
    let relation = push_down_predicates::apply(relation);
    let relation = no_rows::apply(relation, columns);
    let relation = unused_joins::apply(relation);
    let relation = shorter_orders::apply(relation);
    let relation = flat_unions::apply(relation, columns);
    let relation = alternative_keys::apply(relation);
    Ok(push_down_limits::apply(relation))
}
