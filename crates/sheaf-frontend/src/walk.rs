//! The walk over all expressions of a syntax tree, and the tables between them.
//!
//! Every visitor type that is given to sqlparser makes the compiler copy the walk over the whole syntax tree, a hundred
//! kilobytes of code. So there is one for those that change the tree and one for those that read it, and visitors are
//! called through a pointer.
//!
//! The first argument of TIMESTAMPDIFF, TIMESTAMPADD and GET_FORMAT looks like the name of a column, and there may be a
//! column of this name. It is a word of the function, and not visited.

use std::ops::ControlFlow;

use sqlparser::ast::{
    Expr, FunctionArg, FunctionArgExpr, FunctionArguments, Insert, Query, Select, TableFactor,
    TableWithJoins, Visit, VisitMut, Visitor, VisitorMut,
};

/// Functions whose first argument is a word.
const WITH_WORD: [&str; 3] = ["timestampadd", "timestampdiff", "get_format"];

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
    let _ = expression.visit(&mut Walk::new(visitor));
}

/// What is called for each expression that is only read.
pub trait ExpressionReader {
    /// Before a subquery's expressions.
    fn enter_query(&mut self, _query: &Query) {}
    /// After them.
    fn leave_query(&mut self) {}
    /// A table in a FROM.
    fn enter_table(&mut self, _table: &TableFactor) {}
    /// Before the expression's operands.
    fn enter_expression(&mut self, _expression: &Expr) {}
    /// After them. Breaking ends the walk.
    fn leave_expression(&mut self, _expression: &Expr) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}

/// As [`walk_expression`], without a copy of an expression that stays as it is: one with thousands of arguments takes
/// megabytes.
pub fn read_expression(expression: &Expr, reader: &mut dyn ExpressionReader) {
    let _ = expression.visit(&mut ReadingWalk::new(reader));
}

/// As [`read_expression`], for a whole query.
pub fn read_query(query: &Query, reader: &mut dyn ExpressionReader) {
    let _ = query.visit(&mut ReadingWalk::new(reader));
}

/// Calls `visit` for an expression and all below it, operands first, but for what stands in subqueries: there a name
/// may mean a column of their own. Breaking ends the walk.
pub fn walk_outside_queries(
    expression: &mut Expr,
    visit: &mut dyn FnMut(&mut Expr) -> ControlFlow<()>,
) {
    walk_expression(expression, &mut OutsideQueries { visit, queries: 0 });
}

/// As [`walk_outside_queries`], without a copy of what stays as it is.
pub fn read_outside_queries(expression: &Expr, visit: &mut dyn FnMut(&Expr) -> ControlFlow<()>) {
    read_expression(expression, &mut ReadOutsideQueries { visit, queries: 0 });
}

struct ReadOutsideQueries<'a> {
    visit: &'a mut dyn FnMut(&Expr) -> ControlFlow<()>,
    /// Open subqueries.
    queries: usize,
}

impl ExpressionReader for ReadOutsideQueries<'_> {
    fn enter_query(&mut self, _query: &Query) {
        self.queries += 1;
    }

    fn leave_query(&mut self) {
        self.queries -= 1;
    }

    fn leave_expression(&mut self, expression: &Expr) -> ControlFlow<()> {
        match self.queries {
            0 => (self.visit)(expression),
            _ => ControlFlow::Continue(()),
        }
    }
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
    let _ = query.visit(&mut Walk::new(visitor));
}

/// As [`walk_expression`], for a FROM.
pub fn walk_tables(tables: &mut [TableWithJoins], visitor: &mut dyn ExpressionVisitor) {
    for table in tables {
        let _ = table.visit(&mut Walk::new(visitor));
    }
}

/// As [`walk_expression`], for an INSERT.
pub fn walk_insert(insert: &mut Insert, visitor: &mut dyn ExpressionVisitor) {
    let _ = insert.visit(&mut Walk::new(visitor));
}

struct Walk<'a> {
    visitor: &'a mut dyn ExpressionVisitor,
    word: Word,
}

/// Where the walk is with the word that a function begins with.
#[derive(PartialEq, Eq)]
enum Word {
    None,
    /// The next expression is one.
    Next,
    Open,
}

impl Word {
    /// The walk comes to an expression. False: it is a word.
    fn enters(&mut self, expression: &Expr) -> bool {
        if *self == Word::Next {
            *self = Word::Open;
            return false;
        }
        if begins_with_word(expression) {
            *self = Word::Next;
        }
        true
    }

    /// The walk leaves an expression. False: it is a word.
    fn leaves(&mut self) -> bool {
        if *self == Word::Open {
            *self = Word::None;
            return false;
        }
        true
    }
}

impl<'a> Walk<'a> {
    fn new(visitor: &'a mut dyn ExpressionVisitor) -> Walk<'a> {
        let word = Word::None;
        Walk { visitor, word }
    }
}

fn begins_with_word(expression: &Expr) -> bool {
    let Expr::Function(function) = expression else {
        return false;
    };
    let FunctionArguments::List(list) = &function.args else {
        return false;
    };
    let Some(FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::Identifier(_)))) = list.args.first()
    else {
        return false;
    };
    let name = function.name.0.last().and_then(|part| part.as_ident());
    name.is_some_and(|name| {
        let mut known = WITH_WORD.iter();
        known.any(|known| known.eq_ignore_ascii_case(&name.value))
    })
}

impl VisitorMut for Walk<'_> {
    type Break = ();

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        self.visitor.enter_query(query);
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        self.visitor.leave_query();
        self.visitor.change_query(query);
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<()> {
        self.visitor.enter_select(select);
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, table: &mut TableFactor) -> ControlFlow<()> {
        self.visitor.enter_table(table);
        ControlFlow::Continue(())
    }

    fn post_visit_table_factor(&mut self, table: &mut TableFactor) -> ControlFlow<()> {
        self.visitor.leave_table(table);
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expression: &mut Expr) -> ControlFlow<()> {
        if self.word.enters(expression) {
            self.visitor.enter_expression(expression);
        }
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expression: &mut Expr) -> ControlFlow<()> {
        match self.word.leaves() {
            true => self.visitor.leave_expression(expression),
            false => ControlFlow::Continue(()),
        }
    }
}

struct ReadingWalk<'a> {
    reader: &'a mut dyn ExpressionReader,
    word: Word,
}

impl<'a> ReadingWalk<'a> {
    fn new(reader: &'a mut dyn ExpressionReader) -> ReadingWalk<'a> {
        let word = Word::None;
        ReadingWalk { reader, word }
    }
}

impl Visitor for ReadingWalk<'_> {
    type Break = ();

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
        self.reader.enter_query(query);
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _query: &Query) -> ControlFlow<()> {
        self.reader.leave_query();
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, table: &TableFactor) -> ControlFlow<()> {
        self.reader.enter_table(table);
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expression: &Expr) -> ControlFlow<()> {
        if self.word.enters(expression) {
            self.reader.enter_expression(expression);
        }
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expression: &Expr) -> ControlFlow<()> {
        match self.word.leaves() {
            true => self.reader.leave_expression(expression),
            false => ControlFlow::Continue(()),
        }
    }
}
