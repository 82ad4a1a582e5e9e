//! EXISTS and IN over a query of their FROM, as a join with that query. Its rows wait in memory, and are found by what
//! they are compared by.
//!
//! ```text
//!   o WHERE EXISTS (SELECT 1 FROM (q) d WHERE d.c = o.a AND p)
//!     =  o, (SELECT DISTINCT d.c FROM (q) d WHERE p) s WHERE s.c = o.a              p names columns of d alone
//! ```
//!
//! A join compares columns only with columns of their kind. So a value is equal to one of several distinct ones. In the
//! same way the distinct rows of a subquery are joined with the rows that are compared with them, where no key finds
//! these. Columns of different kinds are left to the vectorised path ([`is_link`]): the texts '1' and '01' are
//! distinct, and equal to one number.

use std::ops::ControlFlow;

use sheaf_frontend::walk::{ExpressionReader, read_expression};
use sqlparser::ast;

use super::shape::{is_plain, query_of};
use crate::direct::syntax::select_shape::{computes_nothing, is_constant};

/// What the name of a query begins with that stands in the FROM for an EXISTS or IN. It is called as MySQL calls it.
const PREFIX: &str = "<subquery";

/// The name of the next query in this FROM.
fn next_name(select: &ast::Select) -> String {
    format!("{PREFIX}{}>", select.from.len() + 1)
}

/// Whether a condition compares a column of such a query with one around. A join whose rows are not found by it has a
/// row for each of the distinct values that are equal.
pub(in crate::direct) fn is_link(condition: &ast::Expr) -> bool {
    let ast::Expr::BinaryOp {
        left,
        op: ast::BinaryOperator::Eq,
        ..
    } = condition
    else {
        return false;
    };
    matches!(left.as_ref(), ast::Expr::CompoundIdentifier(parts)
        if parts.first().is_some_and(|table| table.value.starts_with(PREFIX)))
}

/// The query with one EXISTS or IN fewer, and one query more in its FROM; `None` if it has none of this form.
pub(in crate::direct) fn semijoin_as_join(query: &ast::Query) -> Option<ast::Query> {
    let ast::SetExpr::Select(select) = query.body.as_ref() else {
        return None;
    };
    // It would show the columns of the query in its FROM, too.
    let shows_all = |item: &ast::SelectItem| matches!(item, ast::SelectItem::Wildcard(_));
    if select.from.is_empty() || select.projection.iter().any(shows_all) {
        return None;
    }
    let conjuncts = conjuncts_of(select.selection.as_ref()?);
    let name = next_name(select);
    let found = |(position, conjunct): (usize, &&ast::Expr)| {
        Some((position, Semijoin::of(conjunct)?.into_table(&name)))
    };
    let (position, (table, links)) = conjuncts.iter().enumerate().find_map(found)?;
    let links = others(&conjuncts, position).chain(links);
    let projection = select.projection.clone();
    Some(joined_with(query, (select, projection), table, links))
}

/// The query with one EXISTS fewer, or one IN of rows, `(a, b) IN (SELECT x, y ..)`, and the distinct rows of its
/// subquery in the FROM; `None` if it has none of this form.
pub(in crate::direct) fn rows_as_join(query: &ast::Query) -> Option<ast::Query> {
    let ast::SetExpr::Select(select) = query.body.as_ref() else {
        return None;
    };
    let conjuncts = conjuncts_of(select.selection.as_ref()?);
    let name = next_name(select);
    let found = |(position, conjunct): (usize, &&ast::Expr)| {
        Some((position, distinct_rows(conjunct, &name)?))
    };
    let (position, (table, links)) = conjuncts.iter().enumerate().find_map(found)?;
    let links = others(&conjuncts, position).chain(links);
    let projection = without_wildcard(select)?;
    Some(joined_with(query, (select, projection), table, links))
}

/// The conjuncts but one.
fn others<'e>(
    conjuncts: &'e [&ast::Expr],
    position: usize,
) -> impl Iterator<Item = ast::Expr> + 'e {
    let others = conjuncts.iter().enumerate();
    let others = others.filter(move |(other, _)| *other != position);
    others.map(|(_, conjunct)| (*conjunct).clone())
}

/// The query with one table more, and with these conditions in the place of its own.
fn joined_with(
    query: &ast::Query,
    (select, projection): (&ast::Select, Vec<ast::SelectItem>),
    table: ast::TableFactor,
    conditions: impl Iterator<Item = ast::Expr>,
) -> ast::Query {
    let mut select = select.clone();
    select.selection = conditions.reduce(and);
    select.projection = projection;
    select.from.push(ast::TableWithJoins {
        relation: table,
        joins: Vec::new(),
    });
    let body = Box::new(ast::SetExpr::Select(Box::new(select)));
    ast::Query {
        body,
        ..query.clone()
    }
}

/// The distinct rows of the subquery of an IN or an EXISTS as a table of this name, and what columns of the query
/// around are equal to.
fn distinct_rows(conjunct: &ast::Expr, name: &str) -> Option<(ast::TableFactor, Vec<ast::Expr>)> {
    let (subquery, select, pairs) = match conjunct {
        ast::Expr::Nested(inner) => return distinct_rows(inner, name),
        ast::Expr::InSubquery {
            expr,
            subquery,
            negated: false,
        } => {
            let ast::SetExpr::Select(select) = subquery.body.as_ref() else {
                return None;
            };
            (subquery, select.clone(), pairs_of_rows(expr, select)?)
        }
        ast::Expr::Exists {
            subquery,
            negated: false,
        } => {
            let ast::SetExpr::Select(select) = subquery.body.as_ref() else {
                return None;
            };
            let mut select = select.clone();
            let pairs = pairs_of_exists(&mut select)?;
            (subquery, select, pairs)
        }
        _ => return None,
    };
    if !is_plain(subquery) || subquery.limit_clause.is_some() {
        return None;
    }
    let name = ast::Ident::with_quote('`', name);
    let mut select = select;
    select.distinct = Some(ast::Distinct::Distinct);
    select.projection = Vec::with_capacity(pairs.len());
    let mut links = Vec::with_capacity(pairs.len());
    for (number, (compared, expr)) in pairs.into_iter().enumerate() {
        let alias = ast::Ident::with_quote('`', format!("<{number}>"));
        let joined = ast::Expr::CompoundIdentifier(vec![name.clone(), alias.clone()]);
        let item = ast::SelectItem::ExprWithAlias { expr, alias };
        select.projection.push(item);
        links.push(ast::Expr::BinaryOp {
            left: Box::new(joined),
            op: ast::BinaryOperator::Eq,
            right: Box::new(compared),
        });
    }
    let table = ast::TableFactor::Derived {
        lateral: false,
        subquery: Box::new(query_of(ast::SetExpr::Select(select))),
        alias: Some(ast::TableAlias {
            explicit: true,
            name,
            columns: Vec::new(),
            at: None,
        }),
        sample: None,
    };
    Some((table, links))
}

/// What the values of a row are compared with, `(a, b) IN (SELECT x, y ..)`. A constant has the meaning of a literal
/// there, as a number beside a date, and a column of a joined table does not.
fn pairs_of_rows(row: &ast::Expr, select: &ast::Select) -> Option<Vec<(ast::Expr, ast::Expr)>> {
    let ast::Expr::Tuple(compared) = row else {
        return None;
    };
    if select.projection.len() != compared.len() {
        return None;
    }
    let pairs = compared.iter().zip(&select.projection);
    let pairs = pairs.map(|(compared, item)| match item {
        ast::SelectItem::UnnamedExpr(value)
        | ast::SelectItem::ExprWithAlias { expr: value, .. } => {
            (!is_constant(value)).then(|| (compared.clone(), value.clone()))
        }
        _ => None,
    });
    pairs.collect()
}

/// The columns of the query around that the rows of an EXISTS are found by, with their own columns that are equal to
/// these. They are taken out of its WHERE.
fn pairs_of_exists(select: &mut ast::Select) -> Option<Vec<(ast::Expr, ast::Expr)>> {
    let is_grouped = !matches!(&select.group_by, ast::GroupByExpr::Expressions(by, _) if by.is_empty())
        || select.having.is_some();
    if is_grouped || !select.projection.iter().all(computes_nothing) {
        return None;
    }
    let mut own = Vec::new();
    for part in &select.from {
        let joined = part.joins.iter().map(|join| &join.relation);
        for factor in std::iter::once(&part.relation).chain(joined) {
            own.push(name_of(factor)?.value.clone());
        }
    }
    let is_own = |expr: &ast::Expr| match expr {
        ast::Expr::CompoundIdentifier(parts) => match parts.as_slice() {
            [table, _] => Some(own.contains(&table.value)),
            _ => None,
        },
        _ => None,
    };
    let (mut pairs, mut others) = (Vec::new(), Vec::new());
    for conjunct in conjuncts_of(select.selection.as_ref()?) {
        let sides = match conjunct {
            ast::Expr::BinaryOp {
                left,
                op: ast::BinaryOperator::Eq,
                right,
            } => Some((left.as_ref(), right.as_ref())),
            _ => None,
        };
        match sides.map(|(left, right)| (left, right, is_own(left), is_own(right))) {
            Some((left, right, Some(true), Some(false))) => {
                pairs.push((right.clone(), left.clone()))
            }
            Some((left, right, Some(false), Some(true))) => {
                pairs.push((left.clone(), right.clone()))
            }
            _ => others.push(conjunct.clone()),
        }
    }
    select.selection = others.into_iter().reduce(and);
    (!pairs.is_empty()).then_some(pairs)
}

/// What a table of a FROM is called.
fn name_of(factor: &ast::TableFactor) -> Option<&ast::Ident> {
    let ast::TableFactor::Table { name, alias, .. } = factor else {
        return None;
    };
    match alias {
        Some(alias) => Some(&alias.name),
        None => name.0.last()?.as_ident(),
    }
}

/// The items of a SELECT with the tables that `*` is of in its place. `None`: joins make one of two columns, or the
/// tables have no names.
fn without_wildcard(select: &ast::Select) -> Option<Vec<ast::SelectItem>> {
    let is_all = |item: &ast::SelectItem| matches!(item, ast::SelectItem::Wildcard(_));
    if !select.projection.iter().any(is_all) {
        return Some(select.projection.clone());
    }
    let mut tables = Vec::new();
    for part in &select.from {
        let joined = part.joins.iter().map(|join| &join.relation);
        for factor in std::iter::once(&part.relation).chain(joined) {
            let name = name_of(factor)?.clone();
            let name = ast::ObjectName::from(vec![name]);
            let kind = ast::SelectItemQualifiedWildcardKind::ObjectName(name);
            let options = ast::WildcardAdditionalOptions::default();
            tables.push(ast::SelectItem::QualifiedWildcard(kind, options));
        }
        let mut joins = part.joins.iter();
        if joins.any(|join| !has_own_columns(&join.join_operator)) {
            return None;
        }
    }
    let mut items = Vec::with_capacity(select.projection.len());
    for item in &select.projection {
        match is_all(item) {
            true => items.extend(tables.iter().cloned()),
            false => items.push(item.clone()),
        }
    }
    Some(items)
}

/// Whether `*` shows all columns of both sides of a join.
fn has_own_columns(join: &ast::JoinOperator) -> bool {
    use ast::JoinOperator::{CrossJoin, Inner, Join, Left, LeftOuter};
    matches!(
        join,
        Join(ast::JoinConstraint::On(_))
            | Inner(ast::JoinConstraint::On(_))
            | CrossJoin(ast::JoinConstraint::None)
            | Left(ast::JoinConstraint::On(_))
            | LeftOuter(ast::JoinConstraint::On(_))
    )
}

/// A query in a FROM whose rows are looked for.
struct Semijoin {
    /// What looks for them.
    query: ast::Query,
    select: Box<ast::Select>,
    /// The query itself, as a table.
    table: ast::TableFactor,
    alias: ast::Ident,
    /// Its columns, and what they are equal to in the query around.
    links: Vec<(ast::Expr, ast::Expr)>,
    /// Conditions on its columns alone.
    own: Vec<ast::Expr>,
}

impl Semijoin {
    fn of(conjunct: &ast::Expr) -> Option<Semijoin> {
        let (query, compared) = match conjunct {
            ast::Expr::Exists {
                subquery,
                negated: false,
            } => (subquery, None),
            ast::Expr::InSubquery {
                expr,
                subquery,
                negated: false,
            } => (subquery, Some(expr.as_ref())),
            _ => return None,
        };
        let ast::SetExpr::Select(select) = query.body.as_ref() else {
            return None;
        };
        let is_grouped = !matches!(&select.group_by, ast::GroupByExpr::Expressions(by, _) if by.is_empty())
            || select.having.is_some();
        let is_cut = query.limit_clause.is_some() || query.fetch.is_some();
        if is_grouped || is_cut || query.with.is_some() || !query.locks.is_empty() {
            return None;
        }
        let [ast::TableWithJoins { relation, joins }] = select.from.as_slice() else {
            return None;
        };
        let ast::TableFactor::Derived {
            lateral: false,
            alias: Some(alias),
            ..
        } = relation
        else {
            return None;
        };
        if !joins.is_empty() || !select.projection.iter().all(computes_nothing) {
            return None;
        }
        let mut semijoin = Semijoin {
            query: query.as_ref().clone(),
            select: select.clone(),
            table: relation.clone(),
            alias: alias.name.clone(),
            links: Vec::new(),
            own: Vec::new(),
        };
        if let Some(compared) = compared {
            let [ast::SelectItem::UnnamedExpr(column)] = select.projection.as_slice() else {
                return None;
            };
            let is_column =
                matches!(column, ast::Expr::Identifier(_)) || semijoin.names_only_its_own(column);
            let is_compared = matches!(compared, ast::Expr::CompoundIdentifier(_))
                || matches!(compared, ast::Expr::Identifier(_));
            if !is_column || !is_compared {
                return None;
            }
            semijoin.links.push((column.clone(), compared.clone()));
        }
        let conditions = select.selection.as_ref().map(conjuncts_of);
        for condition in conditions.into_iter().flatten() {
            match semijoin.link(condition) {
                Some(link) => semijoin.links.push(link),
                None if semijoin.names_only_its_own(condition) => {
                    semijoin.own.push(condition.clone());
                }
                None => return None,
            }
        }
        (!semijoin.links.is_empty()).then_some(semijoin)
    }

    /// A column, and a column of the query around that it is equal to.
    fn link(&self, condition: &ast::Expr) -> Option<(ast::Expr, ast::Expr)> {
        let ast::Expr::BinaryOp {
            left,
            op: ast::BinaryOperator::Eq,
            right,
        } = condition
        else {
            return None;
        };
        let is_own = |expr: &ast::Expr| match expr {
            ast::Expr::CompoundIdentifier(parts) => Some(self.is_alias(parts)),
            _ => None,
        };
        match (is_own(left)?, is_own(right)?) {
            (true, false) => Some((left.as_ref().clone(), right.as_ref().clone())),
            (false, true) => Some((right.as_ref().clone(), left.as_ref().clone())),
            _ => None,
        }
    }

    fn is_alias(&self, parts: &[ast::Ident]) -> bool {
        match parts {
            [table, _] => table.value.eq_ignore_ascii_case(&self.alias.value),
            _ => false,
        }
    }

    fn names_only_its_own(&self, condition: &ast::Expr) -> bool {
        let mut names = Names {
            of: self,
            has_others: false,
        };
        read_expression(condition, &mut names);
        !names.has_others
    }

    /// The distinct values of its columns as a table, and what the rows of the query around are joined with it by.
    fn into_table(self, name: &str) -> (ast::TableFactor, Vec<ast::Expr>) {
        let name = ast::Ident::with_quote('`', name);
        let mut select = self.select;
        select.distinct = Some(ast::Distinct::Distinct);
        select.selection = self.own.into_iter().reduce(and);
        select.projection = Vec::with_capacity(self.links.len());
        let mut links = Vec::with_capacity(self.links.len());
        for (number, (column, compared)) in self.links.into_iter().enumerate() {
            let alias = ast::Ident::with_quote('`', format!("<{number}>"));
            let joined = ast::Expr::CompoundIdentifier(vec![name.clone(), alias.clone()]);
            select.projection.push(ast::SelectItem::ExprWithAlias {
                expr: column,
                alias,
            });
            links.push(ast::Expr::BinaryOp {
                left: Box::new(joined),
                op: ast::BinaryOperator::Eq,
                right: Box::new(compared),
            });
        }
        let mut table = self.table;
        if let ast::TableFactor::Derived {
            subquery,
            alias: Some(alias),
            ..
        } = &mut table
        {
            alias.name = name;
            alias.columns.clear();
            let body = Box::new(ast::SetExpr::Select(select));
            **subquery = ast::Query {
                body,
                order_by: None,
                ..self.query
            };
        }
        (table, links)
    }
}

/// Whether an expression names something else than columns of a query, by the name of that.
struct Names<'a> {
    of: &'a Semijoin,
    has_others: bool,
}

impl ExpressionReader for Names<'_> {
    fn enter_query(&mut self, _query: &ast::Query) {
        self.has_others = true;
    }

    fn leave_expression(&mut self, expression: &ast::Expr) -> ControlFlow<()> {
        self.has_others |= match expression {
            ast::Expr::Identifier(_) => true,
            ast::Expr::CompoundIdentifier(parts) => !self.of.is_alias(parts),
            _ => false,
        };
        ControlFlow::Continue(())
    }
}

fn and(one: ast::Expr, other: ast::Expr) -> ast::Expr {
    ast::Expr::BinaryOp {
        left: Box::new(one),
        op: ast::BinaryOperator::And,
        right: Box::new(other),
    }
}

fn conjuncts_of(condition: &ast::Expr) -> Vec<&ast::Expr> {
    match condition {
        ast::Expr::Nested(inner) => conjuncts_of(inner),
        ast::Expr::BinaryOp {
            left,
            op: ast::BinaryOperator::And,
            right,
        } => {
            let mut conjuncts = conjuncts_of(left);
            conjuncts.extend(conjuncts_of(right));
            conjuncts
        }
        condition => vec![condition],
    }
}
