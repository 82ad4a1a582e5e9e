//! Queries: common table expressions, FROM, select lists, grouping, ordering.
//!
//! In comes a query of the syntax tree. Out come a query whose names and operators SqlToRel understands, and the
//! headers of its result. The parts are lowered in this order, so that each sees the names that it may use:
//!
//! ```text
//!   WITH --> FROM (opens the scope) --> WHERE --> select list --> GROUP BY --> HAVING --> ORDER BY --> LIMIT
//! ```
//!
//! Headers are apart from names: two columns of a result may have one header, but SqlToRel needs names that differ. So
//! a repeated name gets a suffix that is not shown (`HIDDEN_SUFFIX`). In HAVING and ORDER BY the names of items come
//! before those of columns. The HAVING of a query without groups becomes part of its WHERE.
//!
//! Some forms that SqlToRel does not read are written as others:
//!
//! - wildcards over joins with USING, as columns;
//! - VALUES with subqueries, as a union of SELECTs;
//! - a column that WITH ROLLUP repeats, under another name;
//! - the LIMIT of a recursive union, around it.

use std::collections::HashSet;
use std::ops::ControlFlow;
use std::sync::Arc;

use sheaf_exec::aggregates::aggregate_function;
use sheaf_exec::{SheafTableSource, TableHints};
use sqlparser::ast::helpers::attached_token::AttachedToken;
use sqlparser::ast::{
    BinaryOperator, Cte, Distinct, Expr, GroupByExpr, GroupByWithModifier, Ident, Join,
    JoinConstraint, JoinOperator, LimitClause, ObjectName, Offset, OffsetRows, OrderBy,
    OrderByExpr, OrderByKind, Parens, Query, Select, SelectItem, SelectItemQualifiedWildcardKind,
    SetExpr, SetOperator, SetQuantifier, TableAlias, TableAliasColumnDef, TableFactor,
    TableIndexHintForClause, TableIndexHintType, TableIndexHints, TableWithJoins, Value as Literal,
    ValueWithSpan, Values, With,
};

use super::build::{any_row, binary, call, literal, null, number};
use super::expression::object_text;
use super::grouped::{any_values_of_rows, check_groups, check_having};
use super::scope::{ColumnNames, JoinedBy, Scope, ScopeItem};
use super::{CommonTable, Lowering, TableReference, Work};
use crate::dialect::SheafDialect;
use crate::error::{Result, SqlError};
use crate::parser::{Statement, parse_statement};
use crate::walk::{ExpressionVisitor, walk_expression};

/// What a query's columns are for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Use {
    /// The result of the statement: duplicate names are fine.
    Result,
    /// A table that is referred to by column names: duplicates are error 1060.
    Table,
    /// A value, IN or EXISTS: names do not matter.
    Subquery,
}

/// Sets apart a name that occurs twice; everything from here on is not shown.
pub const HIDDEN_SUFFIX: char = '\0';

/// No query has more rows. DataFusion adds LIMIT and OFFSET up in an `i64`.
pub const MAX_ROW_COUNT: u64 = i64::MAX as u64 / 2;

/// What an item of a select list is called.
pub enum Header {
    Named(String),
    /// A wildcard, and the names of its columns, if the query is a table.
    Wildcard(Vec<String>),
}

type Headers = Vec<Header>;

/// Set apart from the name of a column that ORDER BY uses as well.
const ORDER_SUFFIX: &str = "\0order";

/// The names of a table's columns, from those of the query that it is.
fn column_names(headers: &[Header]) -> impl Iterator<Item = &String> {
    headers.iter().flat_map(|header| match header {
        Header::Named(name) => std::slice::from_ref(name),
        Header::Wildcard(names) => names.as_slice(),
    })
}

/// An item of a select list that is the first of its name.
struct NamedItem {
    name: String,
    /// Set apart with [`ORDER_SUFFIX`].
    is_ordered: bool,
    /// A column without an alias.
    is_column: bool,
    position: usize,
}

/// What ORDER BY names that is not the name of an item.
#[derive(Default)]
struct OrderedNames {
    /// Columns together with their tables.
    qualified: HashSet<String>,
    /// Names inside of expressions: of columns, and of items where no table has such a column.
    inside: HashSet<String>,
}

impl OrderedNames {
    fn of(order_by: Option<&OrderBy>) -> OrderedNames {
        let mut names = OrderedNames::default();
        if let Some(OrderByKind::Expressions(items)) = order_by.map(|order_by| &order_by.kind) {
            for item in items {
                match &item.expr {
                    Expr::Identifier(_) | Expr::Value(_) => {}
                    expr => walk_expression(&mut expr.clone(), &mut names),
                }
            }
        }
        names
    }
}

impl ExpressionVisitor for OrderedNames {
    fn leave_expression(&mut self, expression: &mut Expr) -> ControlFlow<()> {
        match expression {
            Expr::CompoundIdentifier(parts) => {
                let column = parts.last().map(|part| part.value.to_lowercase());
                self.qualified.extend(column);
            }
            Expr::Identifier(name) => {
                self.inside.insert(name.value.to_lowercase());
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

fn alias_name(name: &str) -> TableAlias {
    TableAlias {
        explicit: true,
        name: Ident::with_quote('`', name),
        columns: vec![],
        at: None,
    }
}

/// The digits of a number literal.
pub fn number_digits(expr: &Expr) -> Option<&str> {
    match expr {
        Expr::Value(ValueWithSpan {
            value: Literal::Number(digits, _),
            ..
        }) => Some(digits),
        _ => None,
    }
}

/// Whether this is the position of a column, where one may stand: a whole number.
pub fn is_position(expr: &Expr) -> bool {
    number_digits(expr).is_some_and(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()))
}

/// The grouping sets of WITH ROLLUP. Within them SqlToRel knows no positions of items, and nothing may come twice: what
/// does gets another name. The items show it as it comes first: a column is summed up where no group has it any more.
/// So say the standard and MySQL; MariaDB shows NULL in one of its items.
///
/// ```text
///   a, b, a WITH ROLLUP   -->   ROLLUP(a, b, $again(a))
/// ```
fn rollup(groups: Vec<Expr>, items: &[SelectItem]) -> Expr {
    let mut known: Vec<Expr> = Vec::with_capacity(groups.len());
    for group in groups {
        let position = number_digits(&group).and_then(|digits| digits.parse::<usize>().ok());
        let is_wildcard = |item: &SelectItem| {
            matches!(
                item,
                SelectItem::Wildcard(_) | SelectItem::QualifiedWildcard(..)
            )
        };
        let before = position.and_then(|position| items.get(..position));
        let item = before.filter(|before| !before.iter().any(is_wildcard));
        let mut group = match item.and_then(<[SelectItem]>::last) {
            Some(SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. }) => {
                expr.clone()
            }
            _ => group,
        };
        while known.contains(&group) {
            group = call("$again", vec![group]);
        }
        known.push(group);
    }
    Expr::Rollup(known.into_iter().map(|group| vec![group]).collect())
}

/// DISTINCT rows are ordered by what they show. SqlToRel knows an expression among it by its position:
///
/// ```text
///   SELECT DISTINCT a + 1 FROM t ORDER BY a + 1   -->   SELECT DISTINCT a + 1 FROM t ORDER BY 1
/// ```
fn order_by_shown_items(select: &Select, order_by: &mut OrderBy) {
    let OrderByKind::Expressions(orders) = &mut order_by.kind else {
        return;
    };
    if select.distinct != Some(Distinct::Distinct) {
        return;
    }
    let shown: Vec<&Expr> = select
        .projection
        .iter()
        .map_while(|item| match item {
            SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => Some(expr),
            // It stands for any number of columns.
            _ => None,
        })
        .collect();
    for order in orders {
        // Parameters are counted in the order of the text.
        let is_computed = is_plain_column(&order.expr).is_none()
            && number_digits(&order.expr).is_none()
            && !order.expr.to_string().contains('?');
        let position = shown.iter().position(|expr| **expr == order.expr);
        if let Some(position) = position.filter(|_| is_computed) {
            order.expr = number(position + 1);
        }
    }
}

/// Error 1064 for a LIMIT or OFFSET that is computed.
pub fn check_row_count(expr: &Expr) -> Result<()> {
    match expr {
        Expr::BinaryOp { .. } | Expr::UnaryOp { .. } | Expr::Function(_) => {
            Err(SqlError::parse_error(&expr.to_string(), 1))
        }
        _ => Ok(()),
    }
}

/// Whether an order is by columns of a block's tables alone.
fn is_by_columns(order_by: Option<&OrderBy>, block: &Scope) -> bool {
    let is_column = |item: &OrderByExpr| match &item.expr {
        Expr::Identifier(name) => block.has_column(None, &name.value),
        Expr::CompoundIdentifier(parts) => match parts.as_slice() {
            [table, name] => block.has_column(Some(&table.value), &name.value),
            _ => false,
        },
        _ => false,
    };
    match order_by.map(|order_by| &order_by.kind) {
        Some(OrderByKind::Expressions(items)) => items.iter().all(is_column),
        _ => false,
    }
}

pub fn is_beyond_all_rows(expr: &Expr) -> bool {
    let rows = number_digits(expr).and_then(|digits| digits.parse::<u64>().ok());
    rows.is_some_and(|rows| rows > MAX_ROW_COUNT)
}

/// Taken apart from the alias that an item's text may end with.
pub fn is_plain_column(expr: &Expr) -> Option<&Ident> {
    match expr {
        Expr::Identifier(ident) if !ident.value.starts_with('@') => Some(ident),
        Expr::CompoundIdentifier(parts) if !parts[0].value.starts_with('@') => parts.last(),
        _ => None,
    }
}

/// Whether an item of a select list has neither an alias nor the name of a column.
fn is_named_by_text(item: &SelectItem) -> bool {
    matches!(item, SelectItem::UnnamedExpr(expr) if is_plain_column(expr).is_none())
}

/// Whether a name in ORDER BY may be that of the item. That of a wildcard may be any.
fn may_show(item: &SelectItem, column: &Ident) -> bool {
    let is_named = |name: &Ident| name.value.eq_ignore_ascii_case(&column.value);
    match item {
        SelectItem::UnnamedExpr(expr) => is_plain_column(expr).is_some_and(is_named),
        SelectItem::ExprWithAlias { expr, alias } => {
            is_named(alias) || is_plain_column(expr).is_some_and(is_named)
        }
        _ => true,
    }
}

/// The header of an item without an alias.
pub fn header_of(expr: &Expr, written: Option<&str>) -> String {
    if let Some(column) = is_plain_column(expr) {
        return column.value.clone();
    }
    if let Expr::Value(value) = expr {
        match &value.value {
            Literal::SingleQuotedString(text) | Literal::DoubleQuotedString(text) => {
                return text.clone();
            }
            Literal::Null => return "NULL".to_string(),
            _ => {}
        }
    }
    written.map_or_else(|| expr.to_string(), str::to_string)
}

/// The lists of USE, FORCE and IGNORE INDEX. Error 1176 for an index that does not exist.
pub fn index_hints(
    hints: &[TableIndexHints],
    index_exists: impl Fn(&str) -> bool,
    table: &str,
) -> Result<TableHints> {
    let mut taken = TableHints::default();
    for hint in hints {
        let names: Vec<String> = hint
            .index_names
            .iter()
            .map(|name| name.value.clone())
            .collect();
        if let Some(unknown) = names.iter().find(|name| !index_exists(name)) {
            return Err(SqlError::key_does_not_exist(unknown, table));
        }
        let (rows, order_by, group_by) =
            (&mut taken.rows, &mut taken.order_by, &mut taken.group_by);
        let purposes = match hint.for_clause {
            None => vec![rows, order_by, group_by],
            Some(TableIndexHintForClause::Join) => vec![rows],
            Some(TableIndexHintForClause::OrderBy) => vec![order_by],
            Some(TableIndexHintForClause::GroupBy) => vec![group_by],
        };
        for purpose in purposes {
            let names = names.iter().cloned();
            match hint.hint_type {
                TableIndexHintType::Use => purpose.use_index.get_or_insert_default().extend(names),
                TableIndexHintType::Force => purpose.force_index.extend(names),
                TableIndexHintType::Ignore => purpose.ignore_index.extend(names),
            }
        }
    }
    Ok(taken)
}

impl Lowering<'_> {
    /// A query and the headers of its result.
    pub fn query(&mut self, query: Query, purpose: Use) -> Result<(Query, Headers)> {
        self.nested(|this| {
            let (ctes, scopes) = (this.ctes.len(), this.scopes.len());
            let clause = (this.clause, this.windows_allowed);
            let lowered = this.query_inner(query, purpose);
            (this.clause, this.windows_allowed) = clause;
            this.ctes.truncate(ctes);
            this.scopes.truncate(scopes);
            lowered
        })
    }

    fn query_inner(&mut self, mut query: Query, purpose: Use) -> Result<(Query, Headers)> {
        if let Some(with) = &mut query.with {
            let first = self.ctes.len();
            for cte in std::mem::take(&mut with.cte_tables) {
                let name = &cte.alias.name.value;
                if self.ctes[first..].iter().any(|table| table.name == *name) {
                    return Err(SqlError::non_unique_table(name));
                }
                let lowered = self.common_table(cte, with.recursive)?;
                with.cte_tables.push(lowered);
            }
        }
        if let SetExpr::Select(select) = query.body.as_mut() {
            any_values_of_rows(select, query.order_by.as_mut());
        }
        if let SetExpr::Select(select) = query.body.as_mut()
            && let Some(order_by) = &mut query.order_by
        {
            self.group_distinct(select, order_by);
            order_by_shown_items(select, order_by);
        }
        let scopes = self.scopes.len();
        let (body, headers) = match *query.body {
            SetExpr::Select(select) => {
                let ordered_by = OrderedNames::of(query.order_by.as_ref());
                let (select, headers) = self.select(*select, purpose, &ordered_by)?;
                (SetExpr::Select(Box::new(select)), headers)
            }
            body => self.set_expression(body, purpose)?,
        };
        query.body = Box::new(body);
        // A single row has its order, whatever the columns are that it is said by.
        let block = self.scopes.get(scopes).filter(|block| block.is_one_row);
        let is_one_row = block.is_some_and(|block| is_by_columns(query.order_by.as_ref(), block));
        if let Some(order_by) = query.order_by {
            let aggregates_before = self.aggregates_seen;
            self.enter_clause("order clause", true);
            let order_by = self.order_by(order_by, scopes)?;
            query.order_by = (!is_one_row).then_some(order_by);
            if self.aggregates_seen > aggregates_before
                && let SetExpr::Select(select) = query.body.as_mut()
            {
                self.show_any_row(&mut select.group_by);
            }
        }
        query.limit_clause = match query.limit_clause {
            Some(limit) => self.limit(limit)?,
            None => None,
        };
        self.locking |= !query.locks.is_empty();
        query.locks.clear();
        Ok((query, headers))
    }

    fn common_table(&mut self, mut cte: Cte, recursive: bool) -> Result<Cte> {
        let position = self.ctes.len();
        let name = cte.alias.name.value.clone();
        // SqlToRel takes no name that a query around has given.
        if self.ctes.iter().any(|table| table.name == name) {
            cte.alias.name.value = format!("{name}{HIDDEN_SUFFIX}{position}");
        }
        let exact = cte.alias.name.value.clone();
        cte.alias = self.table_alias(cte.alias);
        let columns = cte.alias.columns.iter();
        let columns = columns.map(|column| column.name.value.clone()).collect();
        let table = CommonTable {
            name,
            exact: exact.clone(),
            columns,
            // Of its query.
            depth: self.depth + 1,
            is_read: false,
            work: Work::default(),
        };
        let mut later = Some(table);
        if recursive {
            self.ctes.extend(later.take());
        }
        let first_reference = self.tables.len();
        let before = self.work;
        let (mut query, headers, sets_apart) = self.query_of_table(*cte.query, &cte.alias)?;
        let work = self.work.since(before);
        self.blocks.define_common_table(&exact, first_reference);
        if let SetExpr::SetOperation { left, .. } = query.body.as_mut()
            && self.ctes.get(position).is_some_and(|table| table.is_read)
        {
            give_types(left);
        }
        cte.query = Box::new(query);
        self.ctes.extend(later);
        let columns = self.columns_of_table(&mut cte.alias, &headers, sets_apart);
        if let Some(table) = self.ctes.get_mut(position) {
            (table.columns, table.work) = (columns, work);
        }
        match recursive {
            true => with_limit_around_union(cte),
            false => Ok(cte),
        }
    }

    /// A query whose columns have names, and whether it has set some apart for the sake of its ORDER BY.
    fn query_of_table(
        &mut self,
        query: Query,
        alias: &TableAlias,
    ) -> Result<(Query, Headers, bool)> {
        let outer = std::mem::take(&mut self.sets_apart);
        // Names may be given behind the table's own.
        let purpose = match alias.columns.is_empty() {
            true => Use::Table,
            false => Use::Subquery,
        };
        let lowered = self.query(query, purpose);
        let sets_apart = std::mem::replace(&mut self.sets_apart, outer) || self.many_spellings;
        let (query, headers) = lowered?;
        Ok((query, headers, sets_apart))
    }

    /// The names of the columns of a table that is a query. Those that its query has set apart are given back by the
    /// alias.
    fn columns_of_table(
        &mut self,
        alias: &mut TableAlias,
        headers: &[Header],
        sets_apart: bool,
    ) -> Vec<String> {
        if !alias.columns.is_empty() {
            let columns = alias.columns.iter();
            return columns.map(|column| column.name.value.clone()).collect();
        }
        let names = self.spelled(headers);
        if sets_apart {
            let columns = names.iter().map(|name| TableAliasColumnDef {
                name: Ident::with_quote('`', name),
                data_type: None,
            });
            alias.columns = columns.collect();
        }
        names
    }

    /// The names of a query's columns, as SqlToRel knows them.
    fn spelled(&mut self, headers: &[Header]) -> Vec<String> {
        let names = column_names(headers);
        names.map(|name| self.column_name(name)).collect()
    }

    /// The common table of this name, which is read then: what SqlToRel knows it by, its columns, and what reading it
    /// repeats.
    fn read_common_table(&mut self, name: &str) -> Option<(String, Vec<String>, Work)> {
        let mut known = self.ctes.iter_mut().rev();
        let table = known.find(|table| table.name == name)?;
        table.is_read = true;
        Some((table.exact.clone(), table.columns.clone(), table.work))
    }

    fn table_alias(&mut self, mut alias: TableAlias) -> TableAlias {
        alias.name.quote_style = Some('`');
        for column in &mut alias.columns {
            column.name = self.column_ident(column.name.clone());
        }
        alias
    }

    fn set_expression(&mut self, body: SetExpr, purpose: Use) -> Result<(SetExpr, Headers)> {
        Ok(match body {
            SetExpr::Select(mut select) => {
                let scopes = self.scopes.len();
                any_values_of_rows(&mut select, None);
                let (select, headers) = self.select(*select, purpose, &OrderedNames::default())?;
                self.scopes.truncate(scopes);
                (SetExpr::Select(Box::new(select)), headers)
            }
            SetExpr::Query(query) => {
                let (query, headers) = self.query(*query, purpose)?;
                (SetExpr::Query(Box::new(query)), headers)
            }
            SetExpr::SetOperation {
                left,
                op,
                set_quantifier,
                right,
            } => {
                let (left, headers) = self.nested(|this| this.set_expression(*left, purpose))?;
                // The second part of a recursion reads the first.
                let depth = self.depth;
                let defined = self.ctes.last();
                if defined.is_some_and(|table| table.columns.is_empty() && table.depth == depth) {
                    let columns = self.spelled(&headers);
                    if let Some(table) = self.ctes.last_mut() {
                        table.columns = columns;
                    }
                }
                // The names are those of the first part.
                let purpose = match purpose {
                    Use::Table => Use::Subquery,
                    purpose => purpose,
                };
                let (right, _) = self.nested(|this| this.set_expression(*right, purpose))?;
                (
                    SetExpr::SetOperation {
                        left: Box::new(left),
                        op,
                        set_quantifier,
                        right: Box::new(right),
                    },
                    headers,
                )
            }
            SetExpr::Values(values) if values.rows.iter().any(has_subquery) => {
                return self.set_expression(selects_of(values)?, purpose);
            }
            SetExpr::Values(mut values) => {
                let mut width = 0;
                for row in &mut values.rows {
                    let items = std::mem::take(&mut row.content);
                    width = items.len();
                    row.content = self.values(items)?;
                }
                values.value_keyword = false;
                (
                    SetExpr::Values(values),
                    (0..width)
                        .map(|at| Header::Named(format!("column_{at}")))
                        .collect(),
                )
            }
            other => return Err(SqlError::not_supported_yet(other)),
        })
    }

    /// `ordered_by`: what ORDER BY names. Leaves the query block's names behind.
    fn select(
        &mut self,
        select: Select,
        purpose: Use,
        ordered_by: &OrderedNames,
    ) -> Result<(Select, Headers)> {
        self.count_block(Work::default())?;
        let enclosing = self.blocks.open(&select, self.context.sql);
        let lowered = self.select_inner(select, purpose, ordered_by);
        self.blocks.close(enclosing);
        lowered
    }

    fn select_inner(
        &mut self,
        mut select: Select,
        purpose: Use,
        ordered_by: &OrderedNames,
    ) -> Result<(Select, Headers)> {
        select.optimizer_hints.clear();
        select.select_modifiers = None;
        let from = std::mem::take(&mut select.from);
        let mut scope = Scope::default();
        for table in from {
            if let Some((table, names)) = self.table_with_joins(table)? {
                select.from.push(table);
                scope.append(names);
            }
        }
        if !select.named_window.is_empty() {
            let windows = std::mem::take(&mut select.named_window);
            let named = windows.into_iter().map(|window| (window.0.value, window.1));
            scope.define_windows(named.collect())?;
        }
        check_having(&select, &|table, name| scope.has_column(table, name))?;
        if let GroupByExpr::Expressions(groups, _) = &select.group_by {
            check_groups(groups, &select.projection, |name| {
                scope.has_column(None, name)
            })?;
        }
        let own = self.scopes.len();
        self.scopes.push(scope);
        self.enter_clause("where clause", false);
        select.selection = select
            .selection
            .map(|condition| self.filter(condition, false))
            .transpose()?;
        let aggregates_before = self.aggregates_seen;
        let written = match select.projection.iter().any(is_named_by_text) {
            true => self.text.select_items(select.select_token.0.span.start),
            false => Vec::new(),
        };
        self.enter_clause("field list", true);
        let (projection, headers) = self.projection(
            std::mem::take(&mut select.projection),
            (&written, ordered_by),
            purpose,
        )?;
        select.projection = projection;
        self.enter_clause("group statement", false);
        select.group_by = self.group_by(select.group_by, &select.projection)?;
        self.scopes[own].names_items = true;
        self.enter_clause("having clause", false);
        select.having = select
            .having
            .map(|condition| self.filter(condition, true))
            .transpose()?;
        self.scopes[own].names_items = false;
        let is_grouped = !matches!(&select.group_by, GroupByExpr::Expressions(exprs, _) if exprs.is_empty())
            || self.aggregates_seen > aggregates_before;
        self.scopes[own].is_one_row = is_grouped
            && matches!(&select.group_by, GroupByExpr::Expressions(exprs, _) if exprs.is_empty());
        if let Some(having) = select.having.take() {
            let condition = without_aliases(having, &select, is_grouped);
            if is_grouped {
                select.having = Some(condition);
            } else {
                select.selection = Some(match select.selection.take() {
                    Some(selection) => binary(selection, BinaryOperator::And, condition),
                    None => condition,
                });
            }
        }
        if is_grouped {
            self.show_any_row(&mut select.group_by);
        }
        Ok((select, headers))
    }

    /// What is lowered next, and whether window functions may stand there. A statement that changes rows has them in
    /// its subqueries only.
    fn enter_clause(&mut self, clause: &'static str, windows_allowed: bool) {
        let changes_rows = self.context.clustered_keys && self.depth == 1;
        (self.clause, self.windows_allowed) = (clause, windows_allowed && !changes_rows);
    }

    /// `written`: the texts of the items; `ordered_by`: what ORDER BY names.
    fn projection(
        &mut self,
        items: Vec<SelectItem>,
        (written, ordered_by): (&[&str], &OrderedNames),
        purpose: Use,
    ) -> Result<(Vec<SelectItem>, Headers)> {
        let has_text = written.len() == items.len();
        let wildcards = items.iter().filter(|item| {
            matches!(
                item,
                SelectItem::Wildcard(_) | SelectItem::QualifiedWildcard(..)
            )
        });
        let wildcards = wildcards.count();
        let has_wildcard = wildcards > 0;
        let mut used = HashSet::new();
        let mut named = Vec::new();
        let mut lowered = Vec::with_capacity(items.len());
        let mut headers = Vec::with_capacity(items.len());
        for (position, item) in items.into_iter().enumerate() {
            let (expr, header, is_alias) = match item {
                SelectItem::UnnamedExpr(expr) => {
                    let header = header_of(&expr, has_text.then(|| written[position]));
                    (expr, header, false)
                }
                SelectItem::ExprWithAlias { expr, alias } => (expr, alias.value, true),
                wildcard @ (SelectItem::Wildcard(_) | SelectItem::QualifiedWildcard(..)) => {
                    let is_alone = wildcards == 1;
                    self.wildcard(wildcard, (purpose, is_alone), &mut lowered, &mut headers)?;
                    continue;
                }
                other => return Err(SqlError::not_supported_yet(other)),
            };
            let plain = is_plain_column(&expr).is_some();
            let name = self.column_name(&header);
            let is_new = used.insert(name.to_lowercase());
            if !is_new && purpose == Use::Table {
                return Err(SqlError::duplicate_field_name(&header));
            }
            // A wildcard may bring the same name again.
            let beside_wildcard = has_wildcard && purpose == Use::Result;
            let hidden = !is_new || (beside_wildcard && !is_alias);
            // ORDER BY uses a column that has the same name.
            let lowercase = name.to_lowercase();
            let is_ordered = is_alias
                && !hidden
                && (ordered_by.qualified.contains(&lowercase)
                    || ((beside_wildcard || ordered_by.inside.contains(&lowercase))
                        && self.is_column_name(&lowercase)));
            self.sets_apart |= is_ordered;
            let value = self.value(expr)?;
            if is_alias
                && self.may_have_subqueries
                && let Some(scope) = self.scopes.last_mut()
                && let Some(meaning) = item_outside(&value, scope)
            {
                scope.items_outside.push((name.clone(), meaning));
            }
            let is_spelled_so = is_plain_column(&value).is_none_or(|column| column.value == name);
            let item = if plain && !is_alias && !hidden && is_spelled_so {
                SelectItem::UnnamedExpr(value)
            } else {
                let value = if plain {
                    value
                } else {
                    call("$result", vec![value])
                };
                let name = match (hidden, is_ordered) {
                    (true, _) => format!("{name}{HIDDEN_SUFFIX}{position}"),
                    (false, true) => format!("{name}{ORDER_SUFFIX}"),
                    (false, false) => name.clone(),
                };
                SelectItem::ExprWithAlias {
                    expr: value,
                    alias: Ident::with_quote('`', name),
                }
            };
            if is_new {
                named.push(NamedItem {
                    name,
                    is_ordered,
                    is_column: plain && !is_alias,
                    position: lowered.len(),
                });
            }
            lowered.push(item);
            headers.push(Header::Named(header));
        }
        self.name_items(named, &lowered);
        Ok((lowered, headers))
    }

    /// Whether a table of the query has a column of this name, in small letters.
    fn is_column_name(&self, name: &str) -> bool {
        let columns = self.scopes.last().map(Scope::columns);
        let mut columns = columns.into_iter().flatten();
        columns.any(|column| column.name.to_lowercase() == name)
    }

    /// Tells what ORDER BY and HAVING mean by the items' names, where that takes more than SqlToRel.
    fn name_items(&mut self, named: Vec<NamedItem>, items: &[SelectItem]) {
        let is_plain = self.scopes.iter().all(Scope::is_plain);
        if is_plain && !named.iter().any(|item| item.is_ordered) {
            return;
        }
        let means = |item: &NamedItem| match &items[item.position] {
            SelectItem::ExprWithAlias { alias, .. } if item.is_ordered => {
                Some(Expr::Identifier(alias.clone()))
            }
            SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. }
                if item.is_column =>
            {
                Some(expr.clone())
            }
            _ => None,
        };
        if let Some(scope) = self.scopes.last_mut() {
            let named = named.into_iter();
            let items = named.map(|item| ScopeItem {
                means: means(&item),
                name: item.name,
            });
            scope.items = items.collect();
        }
    }

    /// `*` and `table.*`. Where joins have put columns together, `*` is written out, and so are wildcards that may show
    /// the same column.
    fn wildcard(
        &mut self,
        wildcard: SelectItem,
        (purpose, is_alone): (Use, bool),
        items: &mut Vec<SelectItem>,
        headers: &mut Headers,
    ) -> Result<()> {
        let scope = self.scopes.last();
        let has_joined = scope.is_some_and(Scope::has_joined);
        let (wildcard, table) = match wildcard {
            SelectItem::QualifiedWildcard(
                SelectItemQualifiedWildcardKind::ObjectName(name),
                options,
            ) => {
                // A database before the table says no more than the table's alias, if it is that of the table.
                if let [database, table] = name.0.as_slice()
                    && let (Some(database), Some(table)) = (database.as_ident(), table.as_ident())
                    && !scope.is_some_and(|scope| scope.has_table(&database.value, &table.value))
                {
                    return Err(SqlError::bad_table(&object_text(&name)));
                }
                let table = ObjectName(name.0.last().cloned().into_iter().collect());
                let alias = object_text(&table);
                let kind = SelectItemQualifiedWildcardKind::ObjectName(table);
                (SelectItem::QualifiedWildcard(kind, options), Some(alias))
            }
            SelectItem::Wildcard(options) => (SelectItem::Wildcard(options), None),
            other => return Err(SqlError::not_supported_yet(other)),
        };
        let columns = match (scope, &table) {
            (Some(scope), Some(table)) => scope.columns_of(table),
            (Some(scope), None) if has_joined || !is_alone || purpose == Use::Table => {
                scope.columns()
            }
            _ => Vec::new(),
        };
        // SqlToRel knows what to say of a table that there is not.
        let is_written_out = !columns.is_empty() && (!is_alone || (has_joined && table.is_none()));
        if !is_written_out {
            let names = columns.into_iter().map(|column| column.name).collect();
            items.push(wildcard);
            headers.push(Header::Wildcard(names));
            return Ok(());
        }
        for column in columns {
            let item = SelectItem::UnnamedExpr(column.expr());
            let item = match items.contains(&item) {
                false => item,
                true if purpose == Use::Table => {
                    return Err(SqlError::duplicate_field_name(&column.name));
                }
                true => SelectItem::ExprWithAlias {
                    expr: column.expr(),
                    alias: Ident::with_quote(
                        '`',
                        format!("{}{HIDDEN_SUFFIX}{}", column.name, items.len()),
                    ),
                },
            };
            items.push(item);
            headers.push(Header::Named(column.name));
        }
        Ok(())
    }

    /// `items`: the select list.
    fn group_by(&mut self, group_by: GroupByExpr, items: &[SelectItem]) -> Result<GroupByExpr> {
        let GroupByExpr::Expressions(exprs, modifiers) = group_by else {
            return Err(SqlError::not_supported_yet("GROUP BY ALL"));
        };
        let mut lowered = Vec::with_capacity(exprs.len());
        for expr in exprs {
            lowered.push(if is_position(&expr) {
                expr
            } else {
                self.value(expr)?
            });
        }
        Ok(match modifiers.as_slice() {
            [] => GroupByExpr::Expressions(lowered, vec![]),
            [GroupByWithModifier::Rollup] => {
                GroupByExpr::Expressions(vec![rollup(lowered, items)], vec![])
            }
            _ => {
                return Err(SqlError::not_supported_yet(
                    "GROUP BY modifiers other than WITH ROLLUP",
                ));
            }
        })
    }

    /// The query may name what it does not group by.
    fn show_any_row(&self, group_by: &mut GroupByExpr) {
        if let GroupByExpr::Expressions(exprs, _) = group_by
            && self.any_rows
            && exprs.last() != Some(&any_row())
        {
            exprs.push(any_row());
        }
    }

    /// Without ONLY_FULL_GROUP_BY, DISTINCT rows may be ordered by a column that they do not show. It is that of any of
    /// the rows that are equal:
    ///
    /// ```text
    ///   SELECT DISTINCT a FROM t ORDER BY b   -->   SELECT a FROM t GROUP BY 1 ORDER BY b
    /// ```
    fn group_distinct(&self, select: &mut Select, order_by: &OrderBy) {
        let GroupByExpr::Expressions(groups, _) = &mut select.group_by else {
            return;
        };
        let OrderByKind::Expressions(items) = &order_by.kind else {
            return;
        };
        let is_hidden = |item: &OrderByExpr| {
            is_plain_column(&item.expr)
                .is_some_and(|column| !select.projection.iter().any(|item| may_show(item, column)))
        };
        if !self.context.session.only_full_group_by()
            && select.distinct == Some(Distinct::Distinct)
            && groups.is_empty()
            && select.having.is_none()
            && items.iter().any(is_hidden)
        {
            select.distinct = None;
            groups.extend((1..=select.projection.len()).map(number));
        }
    }

    /// A name is that of an item first, and inside of an expression that of a column. `block`: the scope of the query.
    fn order_by(&mut self, order_by: OrderBy, block: usize) -> Result<OrderBy> {
        let kind = match order_by.kind {
            OrderByKind::Expressions(items) => {
                let mut lowered = Vec::with_capacity(items.len());
                for item in items {
                    let is_name = matches!(item.expr, Expr::Identifier(_));
                    if let Some(scope) = self.scopes.get_mut(block) {
                        scope.names_items = is_name;
                    }
                    lowered.extend(self.order_by_items(vec![item], true)?);
                }
                OrderByKind::Expressions(lowered)
            }
            all => all,
        };
        Ok(OrderBy {
            kind,
            interpolate: None,
        })
    }

    /// `ordinals`: a number is the position of a column.
    pub fn order_by_items(
        &mut self,
        items: Vec<OrderByExpr>,
        ordinals: bool,
    ) -> Result<Vec<OrderByExpr>> {
        items
            .into_iter()
            // Other numbers order nothing.
            .filter(|item| number_digits(&item.expr).is_none() || is_position(&item.expr))
            .map(|mut item| {
                if !(ordinals && is_position(&item.expr)) {
                    item.expr = self.value(item.expr)?;
                }
                Ok(item)
            })
            .collect()
    }

    /// `None`: it leaves nothing out.
    fn limit(&mut self, clause: LimitClause) -> Result<Option<LimitClause>> {
        let (limit, offset, limit_by) = match clause {
            LimitClause::LimitOffset {
                limit,
                offset,
                limit_by,
            } => {
                let limit = match limit {
                    Some(limit) => self.limit_rows(limit)?,
                    None => None,
                };
                let offset = match offset {
                    Some(mut offset) => {
                        offset.value = self.offset_rows(offset.value)?;
                        Some(offset)
                    }
                    None => None,
                };
                (limit, offset, limit_by)
            }
            LimitClause::OffsetCommaLimit { offset, limit } => {
                // Evaluated in the order of the text, for the sake of `?`.
                let offset = Offset {
                    value: self.offset_rows(offset)?,
                    rows: OffsetRows::None,
                };
                (self.limit_rows(limit)?, Some(offset), vec![])
            }
        };
        let is_limited = limit.is_some() || offset.is_some() || !limit_by.is_empty();
        Ok(is_limited.then_some(LimitClause::LimitOffset {
            limit,
            offset,
            limit_by,
        }))
    }

    /// `None`: more rows than there are. `LIMIT 5, 18446744073709551615` is MySQL's way to say all but the first five.
    fn limit_rows(&mut self, limit: Expr) -> Result<Option<Expr>> {
        check_row_count(&limit)?;
        match is_beyond_all_rows(&limit) {
            true => Ok(None),
            false => self.value(limit).map(Some),
        }
    }

    fn offset_rows(&mut self, offset: Expr) -> Result<Expr> {
        check_row_count(&offset)?;
        match is_beyond_all_rows(&offset) {
            true => Ok(number(MAX_ROW_COUNT)),
            false => self.value(offset),
        }
    }

    /// `None` for `DUAL`, which is no table.
    fn table_with_joins(
        &mut self,
        table: TableWithJoins,
    ) -> Result<Option<(TableWithJoins, Scope)>> {
        if let TableFactor::Table { name, .. } = &table.relation
            && name.0.len() == 1
            && object_text(name).eq_ignore_ascii_case("dual")
        {
            return Ok(None);
        }
        let first = self.blocks.tables_so_far();
        let (relation, mut names) = self.table_factor(table.relation)?;
        let mut joins = Vec::with_capacity(table.joins.len());
        for join in table.joins {
            let is_straight = matches!(join.join_operator, JoinOperator::StraightJoin(_));
            let middle = self.blocks.tables_so_far();
            joins.push(self.join(join, &mut names)?);
            if is_straight {
                let end = self.blocks.tables_so_far();
                self.blocks.add_straight_join(first..middle, middle..end);
            }
        }
        Ok(Some((TableWithJoins { relation, joins }, names)))
    }

    /// `names`: those of the tables so far, to which that of the joined table come.
    fn join(&mut self, join: Join, names: &mut Scope) -> Result<Join> {
        if let JoinOperator::Left(JoinConstraint::None)
        | JoinOperator::LeftOuter(JoinConstraint::None)
        | JoinOperator::Right(JoinConstraint::None)
        | JoinOperator::RightOuter(JoinConstraint::None) = &join.join_operator
        {
            return Err(SqlError::parse_error("", 1));
        }
        let (relation, right) = self.table_factor(join.relation)?;
        let operator = match join.join_operator {
            JoinOperator::Join(constraint)
            | JoinOperator::Inner(constraint)
            | JoinOperator::CrossJoin(constraint)
            | JoinOperator::StraightJoin(constraint) => {
                match self.join_constraint(constraint, names, right, false)? {
                    JoinConstraint::None => JoinOperator::CrossJoin(JoinConstraint::None),
                    constraint => JoinOperator::Inner(constraint),
                }
            }
            JoinOperator::Left(constraint) | JoinOperator::LeftOuter(constraint) => {
                let constraint = self.join_constraint(constraint, names, right, false)?;
                JoinOperator::LeftOuter(or_always(constraint))
            }
            JoinOperator::Right(constraint) | JoinOperator::RightOuter(constraint) => {
                let constraint = self.join_constraint(constraint, names, right, true)?;
                JoinOperator::RightOuter(or_always(constraint))
            }
            other => return Err(SqlError::not_supported_yet(format!("{other:?}"))),
        };
        Ok(Join {
            relation,
            global: false,
            join_operator: operator,
        })
    }

    /// USING and NATURAL become ON.
    fn join_constraint(
        &mut self,
        constraint: JoinConstraint,
        names: &mut Scope,
        right: Scope,
        keeps_right: bool,
    ) -> Result<JoinConstraint> {
        let pairs = match constraint {
            JoinConstraint::On(condition) => {
                names.append(right);
                self.scopes.push(std::mem::take(names));
                self.enter_clause("on clause", false);
                let condition = self.filter(condition, false);
                *names = self.scopes.pop().unwrap_or_default();
                return Ok(JoinConstraint::On(condition?));
            }
            JoinConstraint::None => {
                names.append(right);
                return Ok(JoinConstraint::None);
            }
            JoinConstraint::Using(columns) => {
                let columns: Vec<String> = columns.iter().map(object_text).collect();
                names.join(right, &JoinedBy::Using(&columns), keeps_right)?
            }
            JoinConstraint::Natural => names.join(right, &JoinedBy::Natural, keeps_right)?,
        };
        let equal = pairs
            .into_iter()
            .map(|(one, other)| call("$eq", vec![one.expr(), other.expr()]));
        let all = equal.reduce(|all, next| binary(all, BinaryOperator::And, next));
        Ok(all.map_or(JoinConstraint::None, JoinConstraint::On))
    }

    fn table_factor(&mut self, factor: TableFactor) -> Result<(TableFactor, Scope)> {
        match factor {
            TableFactor::Table {
                name,
                alias,
                index_hints,
                ..
            } => self.table(name, alias, &index_hints),
            TableFactor::Derived {
                lateral,
                subquery,
                alias,
                sample,
            } => {
                let Some(alias) = alias else {
                    return Err(SqlError::derived_without_alias());
                };
                let first_reference = self.tables.len();
                let (query, headers, sets_apart) = self.query_of_table(*subquery, &alias)?;
                self.blocks.add_derived(&alias.name.value, first_reference);
                let mut alias = self.table_alias(alias);
                let columns = self.columns_of_table(&mut alias, &headers, sets_apart);
                let names = Scope::of_table(&alias.name.value, ColumnNames::List(columns));
                let derived = TableFactor::Derived {
                    lateral,
                    subquery: Box::new(query),
                    alias: Some(alias),
                    sample,
                };
                Ok((derived, names))
            }
            TableFactor::NestedJoin {
                table_with_joins,
                alias,
            } => {
                let Some((inner, names)) = self.table_with_joins(*table_with_joins)? else {
                    return Err(SqlError::parse_error("DUAL", 1));
                };
                let nested = TableFactor::NestedJoin {
                    table_with_joins: Box::new(inner),
                    alias,
                };
                Ok((nested, names))
            }
            other => Err(SqlError::not_supported_yet(other)),
        }
    }

    fn table(
        &mut self,
        name: ObjectName,
        alias: Option<TableAlias>,
        hints: &[TableIndexHints],
    ) -> Result<(TableFactor, Scope)> {
        let parts: Vec<String> = name
            .0
            .iter()
            .filter_map(|part| part.as_ident())
            .map(|ident| ident.value.clone())
            .collect();
        let common = match parts.as_slice() {
            [table] => self.read_common_table(table),
            _ => None,
        };
        let repeated = common.as_ref().map(|(.., work)| *work);
        self.count_block(repeated.unwrap_or_default())?;
        if let ([table], Some((exact, columns, _))) = (parts.as_slice(), common) {
            let alias = alias.map(|alias| self.table_alias(alias));
            let alias = alias.unwrap_or_else(|| alias_name(table));
            self.blocks.add_common_table(&alias.name.value, &exact);
            let names = Scope::of_table(&alias.name.value, ColumnNames::List(columns));
            let alias = (alias.name.value != exact).then_some(alias);
            return Ok((plain_table(&exact, alias), names));
        }
        let (database, table) = match parts.as_slice() {
            [table] => match self.context.session.current_database() {
                Some(database) => (database.to_string(), table.clone()),
                None => return Err(SqlError::no_database_selected()),
            },
            [database, table] => (database.clone(), table.clone()),
            _ => return Err(SqlError::parse_error(&name.to_string(), 1)),
        };
        let alias = alias.map(|alias| self.table_alias(alias));
        let known_as = alias
            .as_ref()
            .map_or_else(|| table.clone(), |alias| alias.name.value.clone());
        let number = self.tables.len();
        let source = match (self.context.virtual_tables)(&database, &table)? {
            Some(source) => source,
            None => {
                let opened = self
                    .context
                    .catalog
                    .table(&database, &table)
                    .map_err(SqlError::from)?;
                let definition = &opened.definition;
                if self.context.session.time_zone_offset_seconds() != 0
                    && definition.has_timestamp()
                {
                    return Err(SqlError::timestamp_in_time_zone(&table));
                }
                let exists = |index: &str| {
                    let known = std::iter::once(&definition.primary).chain(&definition.secondary);
                    known
                        .map(|index| index.name.as_str())
                        .any(|known| known.eq_ignore_ascii_case(index))
                };
                let hints = index_hints(hints, exists, &table)?;
                let source = SheafTableSource::new(opened, number as u32, known_as.clone(), hints);
                let outermost = self.depth == 1;
                Arc::new(match self.context.clustered_keys && outermost {
                    true => source.with_clustered_key(),
                    false => source,
                })
            }
        };
        for field in source.schema().fields() {
            self.many_spellings |= self.column_name(field.name()) != *field.name();
        }
        self.blocks.add_table(&known_as);
        let names =
            Scope::of_table(&known_as, ColumnNames::Schema(source.schema())).in_database(&database);
        self.tables.push(TableReference {
            source,
            alias: known_as.clone(),
            database,
            table,
        });
        let alias = alias.unwrap_or_else(|| alias_name(&known_as));
        Ok((plain_table(&format!("#{number}"), Some(alias)), names))
    }
}

fn has_subquery(row: &Parens<Vec<Expr>>) -> bool {
    struct Found(bool);
    impl ExpressionVisitor for Found {
        fn enter_query(&mut self, _query: &Query) {
            self.0 = true;
        }

        fn leave_expression(&mut self, _expression: &mut Expr) -> ControlFlow<()> {
            ControlFlow::Continue(())
        }
    }
    let is_plain = |item: &&Expr| matches!(item, Expr::Value(_));
    row.content
        .iter()
        .filter(|item| !is_plain(item))
        .any(|item| {
            let mut found = Found(false);
            walk_expression(&mut item.clone(), &mut found);
            found.0
        })
}

/// `VALUES ROW (a), ROW (b)` as `SELECT a UNION ALL SELECT b`: DataFusion computes no subqueries in VALUES.
fn selects_of(values: Values) -> Result<SetExpr> {
    let mut union: Option<SetExpr> = None;
    for row in values.rows {
        let Statement::Query(mut query) = parse_statement("SELECT 1", &SheafDialect::default())?
        else {
            return Err(SqlError::unknown("SELECT 1 is no query"));
        };
        if let SetExpr::Select(select) = query.body.as_mut() {
            let items = row.content.into_iter().enumerate();
            let items = items.map(|(at, expr)| SelectItem::ExprWithAlias {
                expr,
                alias: Ident::with_quote('`', format!("column_{at}")),
            });
            select.projection = items.collect();
        }
        union = Some(match union {
            None => *query.body,
            Some(before) => SetExpr::SetOperation {
                op: SetOperator::Union,
                set_quantifier: SetQuantifier::All,
                left: Box::new(before),
                right: query.body,
            },
        });
    }
    union.ok_or_else(|| SqlError::parse_error("", 1))
}

/// An outer join by nothing keeps all pairs of rows.
fn or_always(constraint: JoinConstraint) -> JoinConstraint {
    match constraint {
        JoinConstraint::None => JoinConstraint::On(literal(Literal::Boolean(true))),
        constraint => constraint,
    }
}

/// The rows that a recursion begins with tell its types, so what is only NULL, as parameters are before their values
/// are known, gets one.
fn give_types(first_part: &mut SetExpr) {
    match first_part {
        SetExpr::Select(select) => {
            for item in &mut select.projection {
                if let SelectItem::ExprWithAlias { expr, .. } = item
                    && matches!(expr, Expr::Function(_))
                {
                    let value = std::mem::replace(expr, null());
                    *expr = call("$first_part", vec![value]);
                }
            }
        }
        SetExpr::Query(query) => give_types(&mut query.body),
        SetExpr::SetOperation { left, right, .. } => {
            give_types(left);
            give_types(right);
        }
        _ => {}
    }
}

/// Of a union in WITH RECURSIVE SqlToRel takes the parts alone. What orders and limits its rows goes around it, which
/// also ends a recursion that would go on:
///
/// ```text
///   c AS (A UNION B LIMIT 5)   -->   c AS (WITH RECURSIVE c AS (A UNION B) SELECT * FROM c LIMIT 5)
/// ```
fn with_limit_around_union(mut cte: Cte) -> Result<Cte> {
    let is_union = matches!(
        cte.query.body.as_ref(),
        SetExpr::SetOperation {
            op: SetOperator::Union,
            ..
        }
    );
    if !is_union || (cte.query.order_by.is_none() && cte.query.limit_clause.is_none()) {
        return Ok(cte);
    }
    let Statement::Query(mut around) =
        parse_statement("SELECT * FROM c", &SheafDialect::default())?
    else {
        return Err(SqlError::unknown("SELECT * FROM c is no query"));
    };
    if let SetExpr::Select(select) = around.body.as_mut() {
        for from in &mut select.from {
            from.relation = plain_table(&cte.alias.name.value, None);
        }
    }
    around.order_by = cte.query.order_by.take();
    around.limit_clause = cte.query.limit_clause.take();
    around.with = Some(With {
        with_token: AttachedToken::empty(),
        recursive: true,
        cte_tables: vec![cte.clone()],
    });
    cte.query = around;
    Ok(cte)
}

/// A HAVING with the items of the select list that it names. In a query without groups it is a WHERE then; in one with
/// groups, names in aggregates are those of tables, and so is what the query groups by.
fn without_aliases(mut having: Expr, select: &Select, is_grouped: bool) -> Expr {
    let groups = match &select.group_by {
        GroupByExpr::Expressions(groups, _) => groups.as_slice(),
        GroupByExpr::All(_) => &[],
    };
    let mut aliases = Aliases {
        projection: &select.projection,
        groups,
        is_grouped,
        inside: 0,
    };
    walk_expression(&mut having, &mut aliases);
    having
}

/// Puts items of a select list in the place of their names.
struct Aliases<'a> {
    projection: &'a [SelectItem],
    groups: &'a [Expr],
    is_grouped: bool,
    /// How many subqueries and aggregates are open whose names are not those of items.
    inside: usize,
}

impl Aliases<'_> {
    fn item(&self, name: &Ident) -> Option<&Expr> {
        let mut groups = self.groups.iter().filter_map(is_plain_column);
        if groups.any(|group| group.value == name.value) {
            return None;
        }
        self.projection.iter().find_map(|item| match item {
            SelectItem::ExprWithAlias { expr, alias } if alias.value == name.value => Some(expr),
            _ => None,
        })
    }
}

/// What an item means to subqueries that name it; `None` for one that they cannot compute.
fn item_outside(item: &Expr, scope: &Scope) -> Option<Expr> {
    let mut item = item.clone();
    let mut columns = Qualified {
        scope,
        is_of_row: true,
    };
    walk_expression(&mut item, &mut columns);
    columns.is_of_row.then(|| Expr::Nested(Box::new(item)))
}

/// Names tables with their columns.
struct Qualified<'a> {
    scope: &'a Scope,
    /// Nothing was found that takes more than one row.
    is_of_row: bool,
}

impl ExpressionVisitor for Qualified<'_> {
    fn enter_query(&mut self, _query: &Query) {
        self.is_of_row = false;
    }

    fn enter_expression(&mut self, expression: &Expr) {
        let has_window = matches!(expression, Expr::Function(function) if function.over.is_some());
        self.is_of_row &= !has_window && !is_aggregate(expression);
    }

    fn leave_expression(&mut self, expression: &mut Expr) -> ControlFlow<()> {
        if let Expr::Identifier(name) = expression
            && let Some(column) = self.scope.only_column(&name.value)
        {
            *expression = column.expr();
        }
        ControlFlow::Continue(())
    }
}

fn is_aggregate(expression: &Expr) -> bool {
    matches!(expression, Expr::Function(function)
        if aggregate_function(&object_text(&function.name)).is_some())
}

impl ExpressionVisitor for Aliases<'_> {
    fn enter_query(&mut self, _query: &Query) {
        self.inside += 1;
    }

    fn leave_query(&mut self) {
        self.inside -= 1;
    }

    fn enter_expression(&mut self, expression: &Expr) {
        self.inside += usize::from(self.is_grouped && is_aggregate(expression));
    }

    fn leave_expression(&mut self, expression: &mut Expr) -> ControlFlow<()> {
        self.inside -= usize::from(self.is_grouped && is_aggregate(expression));
        if self.inside == 0
            && let Expr::Identifier(name) = expression
            && let Some(item) = self.item(name)
        {
            *expression = Expr::Nested(Box::new(item.clone()));
        }
        ControlFlow::Continue(())
    }
}

fn plain_table(name: &str, alias: Option<TableAlias>) -> TableFactor {
    TableFactor::Table {
        name: ObjectName::from(vec![Ident::with_quote('`', name)]),
        alias,
        args: None,
        with_hints: vec![],
        version: None,
        with_ordinality: false,
        partitions: vec![],
        json_path: None,
        sample: None,
        index_hints: vec![],
    }
}
