//! How large a statement with a direct plan is, at most.

use std::cell::Cell;
use std::ops::ControlFlow;

use sheaf_frontend::walk::{ExpressionReader, read_expression};
use sqlparser::ast;

/// A statement of more queries, one in the other or beside it, has no direct plan: each would keep its text and those
/// in it.
const MAX_QUERIES: usize = 32;
/// Nor has a query of more items than a table has columns: the attempts to make a plan of 20,000 took 70 MiB. In a text
/// that is long, what stands in the items counts, too: CONCAT may have tens of thousands of calls.
pub(in crate::direct) const MAX_ITEMS: usize = 4096;
pub(in crate::direct) const LONG_TEXT_BYTES: usize = 16 << 10;
/// An UPDATE or DELETE whose text is longer, without the values that were taken out of it, has no direct plan.
pub(in crate::direct) const LONG_CHANGE_BYTES: usize = 4 << 10;

/// Operands of operators and members of lists that a WHERE may have. Longer ones are for a plan of operators, which has
/// packed lists, and are not copied to find that out.
const MAX_TERMS: usize = 4_000;

/// Queries inside of each other that are rewritten, at most: each that has no plan is compiled twice, with all inside.
const MAX_REWRITTEN: u32 = 2;

thread_local! {
    /// Rewritten queries that are being compiled.
    static REWRITTEN: Cell<u32> = const { Cell::new(0) };
}

/// A rewritten query is compiled as long as this lives.
pub(in crate::direct) struct Rewriting;

impl Rewriting {
    /// `None`: there are enough around it.
    pub(in crate::direct) fn enter() -> Option<Rewriting> {
        let depth = REWRITTEN.get();
        (depth < MAX_REWRITTEN).then(|| {
            REWRITTEN.set(depth + 1);
            Rewriting
        })
    }

    /// How many there are now.
    pub(in crate::direct) fn depth() -> u32 {
        REWRITTEN.get()
    }
}

impl Drop for Rewriting {
    fn drop(&mut self) {
        REWRITTEN.set(REWRITTEN.get() - 1);
    }
}

/// Whether there are more queries in a text than have a direct plan. What one query assigns row by row to a user
/// variable, another one may read: then there is one.
pub(in crate::direct) fn has_many_queries(text: &str) -> bool {
    const WORD: &[u8] = b"select";
    let has_assignments = text.contains(":=");
    let text = text.as_bytes();
    let begins_query = |at: &usize| {
        let word = text.get(*at..*at + WORD.len());
        word.is_some_and(|word| word.eq_ignore_ascii_case(WORD))
    };
    let queries = memchr::memchr2_iter(b's', b'S', text).filter(begins_query);
    let most = match has_assignments {
        true => 1,
        false => MAX_QUERIES,
    };
    queries.take(most + 1).count() > most
}

/// How many items the lists of a query have. `with_parts`: and how many expressions stand in them.
pub(in crate::direct) fn items_of(body: &ast::SetExpr, with_parts: bool) -> usize {
    let items = |body| items_of(body, with_parts);
    match body {
        ast::SetExpr::Select(select) if with_parts => {
            let mut parts = Parts(0);
            for item in &select.projection {
                match item {
                    ast::SelectItem::UnnamedExpr(expr)
                    | ast::SelectItem::ExprWithAlias { expr, .. } => {
                        read_expression(expr, &mut parts);
                    }
                    _ => {}
                }
            }
            parts.0.max(select.projection.len())
        }
        ast::SetExpr::Select(select) => select.projection.len(),
        ast::SetExpr::Query(query) => items(&query.body),
        ast::SetExpr::SetOperation { left, right, .. } => items(left) + items(right),
        _ => 0,
    }
}

/// Counts expressions, as far as it matters.
struct Parts(usize);

impl ExpressionReader for Parts {
    fn leave_expression(&mut self, _expression: &ast::Expr) -> ControlFlow<()> {
        self.0 += 1;
        match self.0 > MAX_ITEMS {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    }
}

/// Whether a query's WHERE has more than [`MAX_TERMS`].
pub(in crate::direct) fn has_long_condition(query: &ast::Query) -> bool {
    let ast::SetExpr::Select(select) = query.body.as_ref() else {
        return false;
    };
    let mut open: Vec<&ast::Expr> = select.selection.iter().collect();
    let mut terms = 0;
    while let Some(expr) = open.pop() {
        match expr {
            ast::Expr::BinaryOp { left, right, .. } => {
                open.extend([left.as_ref(), right.as_ref()]);
                terms += 1;
            }
            ast::Expr::Nested(inner) => open.push(inner),
            ast::Expr::InList { expr, list, .. } => {
                open.push(expr);
                terms += list.len();
            }
            _ => terms += 1,
        }
        if terms > MAX_TERMS {
            return true;
        }
    }
    false
}
