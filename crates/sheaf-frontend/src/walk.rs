//! The walk over all expressions of a syntax tree, and the tables between them.
//!
//! Every visitor type that is given to sqlparser makes the compiler copy the walk over the whole syntax tree, a hundred
//! kilobytes of code. So there is one, and visitors are called through a pointer.

use std::ops::ControlFlow;

use sqlparser::ast::{
    Expr, Insert, Query, Select, TableFactor, TableWithJoins, VisitMut, VisitorMut,
};

/// What is called for each expression.
pub trait ExpressionVisitor {
    /// Before a subquery's expressions.
    fn enter_query(&mut self, _query: &Query) {}
    /// After them.
    fn leave_query(&mut self) {}
    /// Then, for visitors that change more of a query than its expressions.
    fn change_query(&mut self, _query: &mut Query) {}
    /// A SELECT, before what stands in it.
    fn enter_select(&mut self, _select: &Select) {}
    /// A table in a FROM.
    fn enter_table(&mut self, _table: &TableFactor) {}
    /// After what stands in it.
    fn leave_table(&mut self, _table: &mut TableFactor) {}
    /// Before the expression's operands.
    fn enter_expression(&mut self, _expression: &Expr) {}
    /// After them. Breaking ends the walk.
    fn leave_expression(&mut self, expression: &mut Expr) -> ControlFlow<()>;
}

/// Calls the visitor for an expression and all below it, those of subqueries included.
pub fn walk_expression(expression: &mut Expr, visitor: &mut dyn ExpressionVisitor) {
    let _ = expression.visit(&mut Walk(visitor));
}

/// Calls `visit` for an expression and all below it, operands first, but for what stands in subqueries: there a name
/// may mean a column of their own. Breaking ends the walk.
pub fn walk_outside_queries(
    expression: &mut Expr,
    visit: &mut dyn FnMut(&mut Expr) -> ControlFlow<()>,
) {
    walk_expression(expression, &mut OutsideQueries { visit, queries: 0 });
}

struct OutsideQueries<'a> {
    visit: &'a mut dyn FnMut(&mut Expr) -> ControlFlow<()>,
    /// Open subqueries.
    queries: usize,
}

impl ExpressionVisitor for OutsideQueries<'_> {
    fn enter_query(&mut self, _query: &Query) {
        self.queries += 1;
    }

    fn leave_query(&mut self) {
        self.queries -= 1;
    }

    fn leave_expression(&mut self, expression: &mut Expr) -> ControlFlow<()> {
        match self.queries {
            0 => (self.visit)(expression),
            _ => ControlFlow::Continue(()),
        }
    }
}

/// As [`walk_expression`], for a whole query.
pub fn walk_query(query: &mut Query, visitor: &mut dyn ExpressionVisitor) {
    let _ = query.visit(&mut Walk(visitor));
}

/// As [`walk_expression`], for a FROM.
pub fn walk_tables(tables: &mut [TableWithJoins], visitor: &mut dyn ExpressionVisitor) {
    for table in tables {
        let _ = table.visit(&mut Walk(visitor));
    }
}

/// As [`walk_expression`], for an INSERT.
pub fn walk_insert(insert: &mut Insert, visitor: &mut dyn ExpressionVisitor) {
    let _ = insert.visit(&mut Walk(visitor));
}

struct Walk<'a>(&'a mut dyn ExpressionVisitor);

impl VisitorMut for Walk<'_> {
    type Break = ();

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        self.0.enter_query(query);
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        self.0.leave_query();
        self.0.change_query(query);
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<()> {
        self.0.enter_select(select);
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, table: &mut TableFactor) -> ControlFlow<()> {
        self.0.enter_table(table);
        ControlFlow::Continue(())
    }

    fn post_visit_table_factor(&mut self, table: &mut TableFactor) -> ControlFlow<()> {
        self.0.leave_table(table);
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expression: &mut Expr) -> ControlFlow<()> {
        self.0.enter_expression(expression);
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expression: &mut Expr) -> ControlFlow<()> {
        self.0.leave_expression(expression)
    }
}
