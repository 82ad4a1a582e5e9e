//! Operands of aggregates that have long literals, computed below the aggregate.
//!
//! DataFusion names an aggregate by its text, and makes the text again in each rule. A literal of bytes is shown by its
//! numbers, about four characters a byte:
//!
//! ```text
//!   sum(s IN ('<2 MB>', 'x'))   -->   sum(#7.0)   over   s IN ('<2 MB>', 'x') AS #7.0
//! ```

use datafusion_common::Column as PlanColumn;
use datafusion_common::tree_node::TreeNode;
use datafusion_expr::Expr;

use crate::column::ColumnId;

/// Literals of more bytes are long.
const LONG_LITERAL_BYTES: usize = 4 << 10;

/// The aggregate, which reads columns in place of such operands. The operands are added to the list, under names of
/// their own.
pub(crate) fn with_long_operands_apart(
    aggregate: Expr,
    id: ColumnId,
    apart: &mut Vec<Expr>,
) -> Expr {
    let is_long = |expr: &Expr| {
        let is_long = |part: &Expr| {
            Ok(matches!(part, Expr::Literal(value, _) if value.size() > LONG_LITERAL_BYTES))
        };
        !matches!(expr, Expr::Literal(..)) && expr.exists(is_long).unwrap_or(false)
    };
    let Expr::AggregateFunction(mut call) = aggregate else {
        return aggregate;
    };
    for (at, operand) in call.params.args.iter_mut().enumerate() {
        if is_long(operand) {
            let name = format!("{id}.{at}");
            let column = Expr::Column(PlanColumn::new_unqualified(name.clone()));
            apart.push(std::mem::replace(operand, column).alias(name));
        }
    }
    Expr::AggregateFunction(call)
}
