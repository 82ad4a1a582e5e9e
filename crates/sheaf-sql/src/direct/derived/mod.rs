//! Queries in a FROM, `(SELECT ..) AS k`, and UNION. Their parts are direct plans of their own, which run first. The
//! rows wait in memory, in the form that rows of a table have:
//!
//! ```text
//!   (SELECT id FROM n ORDER BY created LIMIT 20) k  JOIN n ON n.id = k.id
//!    -------------------------------------------
//!    rows in memory, in their order               ->  the key of n  ->  rows of n
//! ```
//!
//! A join goes through them as through the rows of a table. Behind another table it finds them by the columns that ON
//! compares. What a query shows is described by the vectorised path, once, of the query without what chooses its rows:
//! no WHERE or LIMIT changes a type.
//!
//! Groups of a whole table are not found by keys of their own. But where the groups are joined by their key, those of
//! the rows that they are joined to are enough. The other tables are read first, and bring a list:
//!
//! ```text
//!   n LEFT JOIN (SELECT post, COUNT(*) FROM c GROUP BY post) k ON k.post = n.id  WHERE n.user = ?
//!               (SELECT post, COUNT(*) FROM c WHERE post IN (what n.id is) GROUP BY post)
//! ```
//!
//! Tables of `information_schema` that tell of definitions are such queries, too. Their rows are made for each run, of
//! the databases and tables that the WHERE names.
//!
//! A WITH whose tables are named once, or a few times, is the same, written in another place ([`without_with`]).
//!
//! | file | what it holds |
//! |---|---|
//! | [`from_part`] | tables and queries of a FROM |
//! | [`semijoin`] | EXISTS and IN over such a query |
//! | [`shape`] | queries without what chooses their rows |
//! | [`union`] | UNION as a statement |
//! | [`with_queries`] | WITH |

mod from_part;
mod semijoin;
mod shape;
mod union;
mod with_queries;

use std::cell::Cell as Shared;
use std::collections::BTreeSet;
use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Schema};
use sheaf_access::TYPE_KEY;
use sheaf_frontend::query::BoundQuery;
use sheaf_storage::TreeId;
use sheaf_table::{Column, Index, RowLayout, TableDefinition, ValueRef};
use sheaf_types::{Collation, ColumnType, Value};
use sqlparser::ast;

pub(super) use self::from_part::{part_of_from, table_of_from};
pub(super) use self::semijoin::{is_link, rows_as_join, semijoin_as_join};
use self::shape::{is_plain, query_of, shape_of, unwrapped};
pub(super) use self::shape::{shape_of_select, without_conditions};
pub(super) use self::union::{Union, run_direct_union};
pub(super) use self::with_queries::without_with;
use super::access::list_in_place;
use super::needs_of;
use super::operands::operand::{Compared, Operand};
use super::read::{limit_and_offset, row_count};
use super::rewrite::using::without_using;
use super::rows::derived_rows::DerivedRows;
use super::rows::order::descends;
use super::rows::row_source::{Asked, Derived, Part, key_of};
use super::rows::values::Values;
use super::syntax::attempt::Attempt;
use super::syntax::headers::Spelled;
use super::syntax::names::{Names, column_of};
use super::syntax::select_shape::has_many_row_function;
use crate::accounts::TableNeed;
use crate::catalog_views::information_schema::{
    AskedTables, rows_of_definitions, shape_of_definitions,
};
use crate::error::Result;
use crate::events::thread_work::{self, Work};
use crate::parser::statement::Statement;
use crate::query::made_columns::column_type_of;
use crate::query::rows::Cell as Shown;
use crate::session::Session;
use crate::session::result::ColumnMeta;

/// Parts of a UNION, at most.
const MAX_PARTS: usize = 16;

impl Derived {
    /// The plan of a query; `None` if its parts have no direct plans.
    pub(super) fn compile(
        session: &Session,
        query: &ast::Query,
        attempt: Attempt<'_>,
    ) -> Option<Derived> {
        let _nested = Nested::enter()?;
        let query = unwrapped(query);
        let without_using = without_using(query);
        let query = without_using.as_ref().unwrap_or(query);
        let is_union = matches!(query.body.as_ref(), ast::SetExpr::SetOperation { .. });
        let mut asked = None;
        let mut parts = match is_union {
            true if is_plain(query) => {
                let mut parts = PartsOf::none(session, attempt);
                parts.add_all(&query.body)?;
                parts
            }
            true => return None,
            false => match PartsOf::only(session, query, attempt) {
                Some(only) => only,
                None => {
                    let (column, only) = PartsOf::only_asked(session, query, attempt)?;
                    let place = attempt.parameters;
                    asked = Some(Asked { column, place });
                    only
                }
            },
        };
        let lowered = match parts.described.take() {
            Some(only) if !is_union => only,
            _ => session.lower_shape(&shape_of(query)?, attempt.text).ok()?,
        };
        let fields = lowered.plan.schema().fields();
        let mut names = BTreeSet::new();
        let mut columns = Vec::with_capacity(fields.len());
        for (position, field) in fields.iter().enumerate() {
            let ty = parts.type_of((position, field.as_ref()))?;
            let column = Column::new(field.name(), ty, true);
            let is_held = sheaf_access::arrow_type(&column.ty) == *field.data_type();
            let is_new = names.insert(field.name().to_lowercase());
            columns.push((is_held && is_new).then_some(column)?);
        }
        let definition = definition_of(columns);
        let all = || (0..definition.columns.len()).map(|column| (column, false));
        let distinct = match parts.parts.iter().any(|part| part.is_distinct) {
            true => Some(key_of(&definition, all())?),
            false => None,
        };
        let shown = session.columns_of(&lowered);
        let (order, limit) = match is_union {
            true => (query.order_by.as_ref(), query.limit_clause.as_ref()),
            false => (None, None),
        };
        let order = match order {
            None => None,
            Some(order_by) => {
                let columns = ordered(order_by, &shown)?;
                Some(key_of(&definition, columns.into_iter())?)
            }
        };
        let (limit, offset) = match limit {
            Some(clause) => limit_and_offset(clause)?,
            None => (None, None),
        };
        let held: Vec<_> = fields.iter().map(|field| field.as_ref().clone()).collect();
        Some(Derived {
            layout: RowLayout::new(&definition.columns),
            columns: shown,
            schema: Arc::new(Schema::new(held)),
            definition,
            parts: parts.parts,
            distinct,
            order,
            limit,
            offset,
            needs: parts.needs,
            asked,
            of_definitions: None,
        })
    }

    /// A table of `information_schema`, if it tells of nothing but definitions.
    pub(super) fn of_definitions(
        session: &Session,
        (database, table): (&str, &str),
    ) -> Option<Derived> {
        let schema = shape_of_definitions(database, table, session).ok()??;
        let mut columns = Vec::with_capacity(schema.fields().len());
        for field in schema.fields() {
            let ty = ColumnType::parse(field.metadata().get(TYPE_KEY)?).ok()?;
            let column = Column::new(field.name(), ty, true);
            let is_held = sheaf_access::arrow_type(&column.ty) == *field.data_type();
            columns.push(is_held.then_some(column)?);
        }
        let definition = definition_of(columns);
        Some(Derived {
            layout: RowLayout::new(&definition.columns),
            columns: Vec::new(),
            schema,
            definition,
            parts: Vec::new(),
            distinct: None,
            order: None,
            limit: None,
            offset: None,
            needs: Vec::new(),
            asked: None,
            of_definitions: Some((database.to_string(), table.to_string())),
        })
    }

    /// The rows of a table of `information_schema` that may have these values.
    pub(super) fn rows_of_definitions(
        &self,
        session: &Session,
        (database, table): &(String, String),
        (equal, parameters): (&[(usize, Compared)], &[Value]),
    ) -> Result<Option<DerivedRows>> {
        let mut asked = AskedTables::default();
        for (column, operand) in equal {
            if let Some(operand) = operand.plain()
                && !matches!(operand, Operand::Outer(_))
                && let Value::Text(text) = operand.value(parameters)
            {
                asked.add(&self.definition.columns[*column].name, text);
            }
        }
        let Some(found) = rows_of_definitions(database, table, session, &asked)? else {
            return Ok(None);
        };
        let mut rows = DerivedRows::default();
        for row in found.rows() {
            let value = |column: usize| match &row[column] {
                Shown::Null => ValueRef::Null,
                Shown::Text(text) => ValueRef::Bytes(text.as_bytes()),
                Shown::Unsigned(number) => ValueRef::UInt(*number),
                Shown::Signed(number) => ValueRef::Int(*number),
                Shown::Double(number) => ValueRef::Double(*number),
            };
            if !rows.push(self, value) {
                return Ok(None);
            }
        }
        Ok(Some(rows))
    }

    /// Its rows for a list of values of the column that it [is asked](Self::asked) for. As [`Self::rows`].
    pub(super) fn rows_of(
        &self,
        session: &mut Session,
        parameters: &[Value],
        mut list: Vec<Value>,
    ) -> Result<Option<DerivedRows>> {
        let Some(own) = self.asked.and_then(|asked| parameters.get(..asked.place)) else {
            return Ok(None);
        };
        let mut all = own.to_vec();
        all.push(Value::UInt(list.len() as u64));
        all.append(&mut list);
        self.rows(session, &all)
    }

    /// Its rows, with these parameters. `None`: the vectorised path has to do it.
    pub(super) fn rows(
        &self,
        session: &mut Session,
        parameters: &[Value],
    ) -> Result<Option<DerivedRows>> {
        let (Some(limit), Some(offset)) = (
            row_count(self.limit.as_ref(), parameters, u64::MAX),
            row_count(self.offset.as_ref(), parameters, 0),
        ) else {
            return Ok(None);
        };
        // Of a client's rows it is said how many there are at most, and not of these.
        if session.variables.sql_select_limit() != u64::MAX {
            return Ok(None);
        }
        thread_work::note(Work::temporary_table());
        let mut rows = DerivedRows::default();
        for part in &self.parts {
            let mut values = Values::default();
            let before = (session.outcome.found_rows, session.outcome.row_count);
            let given = (parameters, Spelled::AsWritten);
            let is_done = session.run_action(&part.action, given, &mut values);
            let is_done = values.outcome(is_done);
            (session.outcome.found_rows, session.outcome.row_count) = before;
            if !is_done? || !rows.take(self, &values)? {
                return Ok(None);
            }
            if let Some(key) = self.distinct.as_ref().filter(|_| part.is_distinct) {
                rows.keep_different(self, key)?;
            }
        }
        if let Some(order) = &self.order {
            rows.sort(self, order)?;
        }
        let count = |number| usize::try_from(number).unwrap_or(usize::MAX);
        let spans = rows.spans.into_iter();
        rows.spans = spans.skip(count(offset)).take(count(limit)).collect();
        Ok(Some(rows))
    }
}

/// How deeply queries may nest in a FROM. A query is compiled in several ways until one succeeds, and so are those
/// inside.
const MAX_NESTING: usize = 3;

thread_local! {
    /// Queries in a FROM that are compiled, one in another.
    static NESTING: Shared<usize> = const { Shared::new(0) };
}

/// Whether what is compiled is a query in a FROM, or a part of one.
pub(super) fn is_in_from() -> bool {
    NESTING.get() > 0
}

/// A query in a FROM is compiled as long as this lives.
struct Nested;

impl Nested {
    /// `None`: it is nested too deeply.
    fn enter() -> Option<Nested> {
        let depth = NESTING.get();
        (depth < MAX_NESTING).then(|| {
            NESTING.set(depth + 1);
            Nested
        })
    }
}

impl Drop for Nested {
    fn drop(&mut self) {
        NESTING.set(NESTING.get() - 1);
    }
}

/// Collects the parts of a UNION.
struct PartsOf<'a> {
    session: &'a Session,
    attempt: Attempt<'a>,
    parts: Vec<Part>,
    /// The columns' types in each part, and as Arrow has them.
    types: Vec<Vec<(ColumnType, DataType)>>,
    needs: Vec<TableNeed>,
    /// The columns of the last part.
    described: Option<BoundQuery>,
}

impl<'a> PartsOf<'a> {
    fn none(session: &'a Session, attempt: Attempt<'a>) -> PartsOf<'a> {
        PartsOf {
            session,
            attempt,
            parts: Vec::new(),
            types: Vec::new(),
            needs: Vec::new(),
            described: None,
        }
    }

    /// A query that is one SELECT.
    fn only(session: &'a Session, query: &ast::Query, attempt: Attempt<'a>) -> Option<PartsOf<'a>> {
        let mut parts = PartsOf::none(session, attempt);
        parts.add(query, false)?;
        Some(parts)
    }

    /// The same of the rows with a list of values in a column that tells groups apart, which an index finds.
    fn only_asked(
        session: &'a Session,
        query: &ast::Query,
        attempt: Attempt<'a>,
    ) -> Option<(usize, PartsOf<'a>)> {
        let ast::SetExpr::Select(select) = query.body.as_ref() else {
            return None;
        };
        if query.limit_clause.is_some() || query.order_by.is_some() {
            return None;
        }
        let ast::GroupByExpr::Expressions(by, modifiers) = &select.group_by else {
            return None;
        };
        let is_group = |expr: &ast::Expr| by.iter().any(|key| key == expr);
        if !modifiers.is_empty() || by.is_empty() && has_many_row_function(select) {
            return None;
        }
        let tables = tables_of(session, &select.from);
        let is_no_number = |expr: &ast::Expr| match column_of(&tables, expr) {
            Some((table, column)) => !tables[table].definition().columns[column].ty.is_integer(),
            None => false,
        };
        let shown = select.projection.iter().enumerate();
        shown
            .filter_map(|(column, item)| match item {
                ast::SelectItem::UnnamedExpr(expr)
                | ast::SelectItem::ExprWithAlias { expr, .. } => Some((column, expr)),
                _ => None,
            })
            .filter(|(_, expr)| by.is_empty() || is_group(expr))
            .find_map(|(column, expr)| {
                let is_column = matches!(
                    expr,
                    ast::Expr::Identifier(_) | ast::Expr::CompoundIdentifier(_)
                ) && !is_no_number(expr);
                let mut select = is_column.then(|| select.clone())?;
                let asked = ast::Expr::InList {
                    expr: Box::new(expr.clone()),
                    list: vec![list_in_place(attempt.parameters)],
                    negated: false,
                };
                select.selection = Some(match select.selection.take() {
                    None => asked,
                    Some(written) => ast::Expr::BinaryOp {
                        left: Box::new(ast::Expr::Nested(Box::new(written))),
                        op: ast::BinaryOperator::And,
                        right: Box::new(asked),
                    },
                });
                let query = ast::Query {
                    body: Box::new(ast::SetExpr::Select(select)),
                    ..query.clone()
                };
                let with_list = attempt.with_parameters(attempt.parameters + 1);
                let only = PartsOf::only(session, &query, with_list)?;
                let [part] = only.parts.as_slice() else {
                    return None;
                };
                let (ty, _) = only.types.first()?.get(column)?;
                let is_found = ty.is_integer() && part.action.binds_list();
                is_found.then_some((column, only))
            })
    }

    /// Adds all parts of a UNION.
    fn add_all(&mut self, set: &ast::SetExpr) -> Option<()> {
        let ast::SetExpr::SetOperation {
            left,
            op: ast::SetOperator::Union,
            set_quantifier,
            right,
        } = set
        else {
            return self.add_set(set, false);
        };
        let is_distinct = match set_quantifier {
            ast::SetQuantifier::All => false,
            ast::SetQuantifier::None | ast::SetQuantifier::Distinct => true,
            _ => return None,
        };
        self.add_all(left)?;
        self.add_set(right, is_distinct)
    }

    fn add_set(&mut self, set: &ast::SetExpr, is_distinct: bool) -> Option<()> {
        match set {
            ast::SetExpr::Select(_) => self.add(&query_of(set.clone()), is_distinct),
            ast::SetExpr::Query(query) => self.add(unwrapped(query), is_distinct),
            _ => None,
        }
    }

    /// Adds a SELECT.
    fn add(&mut self, query: &ast::Query, is_distinct: bool) -> Option<()> {
        let is_select = matches!(query.body.as_ref(), ast::SetExpr::Select(_));
        if !is_select || !is_plain(query) || self.parts.len() == MAX_PARTS {
            return None;
        }
        let action = self.session.query_action(query, self.attempt)?;
        let needs = needs_of(&action, &Statement::Query(Box::new(query.clone())));
        if needs.iter().any(|need| need.locks.is_some()) {
            return None;
        }
        self.needs.extend(needs);
        let text = self.attempt.text;
        let lowered = self.session.lower_shape(&shape_of(query)?, text).ok()?;
        let fields = lowered.plan.schema().fields().iter();
        let types = fields.map(|field| Some((type_of(field)?, field.data_type().clone())));
        self.types.push(types.collect::<Option<_>>()?);
        self.described = Some(lowered);
        self.parts.push(Part {
            action,
            is_distinct,
        });
        Some(())
    }

    /// The type of a column, which is the same in all parts, or that of all of them where they are signed integers. The
    /// column of the result is `of_all`.
    fn type_of(&self, (position, of_all): (usize, &Field)) -> Option<ColumnType> {
        let mut types = self.types.iter().map(|types| types.get(position));
        let (first, data_type) = types.next()??;
        let is_rounded = !first.is_single() && first.float_digits().is_some();
        if self.types.len() > 1 && is_rounded {
            return None;
        }
        let is_same = |other: Option<&(ColumnType, DataType)>| {
            other.is_some_and(|(ty, other)| {
                let is_text = ty.is_character() && first.is_character();
                let is_bytes = ty.is_binary() && first.is_binary();
                other == data_type
                    && (ty == first || is_bytes || is_text && ty.collation() == first.collation())
            })
        };
        if types.all(is_same) {
            return Some(first.clone());
        }
        let is_signed = |ty: &ColumnType| ty.is_integer() && !ty.is_unsigned();
        let mut types = self.types.iter().map(|types| types.get(position));
        let are_signed = types.all(|ty| ty.is_some_and(|(ty, _)| is_signed(ty)));
        let of_all = type_of(of_all)?;
        (are_signed && is_signed(&of_all)).then_some(of_all)
    }
}

/// The tables of a FROM; none if there is anything else in it.
fn tables_of<'a>(session: &Session, from: &'a [ast::TableWithJoins]) -> Vec<Names<'a>> {
    let factors = from.iter().flat_map(|part| {
        let joined = part.joins.iter().map(|join| &join.relation);
        std::iter::once(&part.relation).chain(joined)
    });
    let tables = factors.map(|factor| Names::of_factor(session, factor));
    tables.collect::<Option<_>>().unwrap_or_default()
}

/// The type of a column that holds what a query's column holds; `None` of types whose values change on their way
/// through a batch.
fn type_of(field: &Field) -> Option<ColumnType> {
    let unknown = ColumnType::longtext(Collation::Binary);
    let is_stored = field.metadata().contains_key(sheaf_access::TYPE_KEY);
    Some(match column_type_of(field) {
        ty if ty.is_year() => return None,
        // Its labels.
        ty if ty.has_labels() => unknown,
        // By what it is compared is not known here.
        ty if ty.is_character() && !is_stored => unknown,
        ty => ty,
    })
}

/// A table of these columns that there is not.
fn definition_of(columns: Vec<Column>) -> TableDefinition {
    TableDefinition {
        id: 0,
        database: String::new(),
        name: String::new(),
        columns,
        primary: Index {
            id: 0,
            name: String::new(),
            parts: Vec::new(),
            unique: true,
            primary: true,
            tree: TreeId(0),
            comment: String::new(),
            invisible: false,
        },
        secondary: Vec::new(),
        collation: Collation::default(),
        comment: String::new(),
        overflow: None,
        auto_increment_start: 0,
        foreign_keys: Vec::new(),
        checks: Vec::new(),
        shape: None,
    }
}

/// The columns of a UNION's ORDER BY, which has names that one column each has.
fn ordered(order_by: &ast::OrderBy, shown: &[ColumnMeta]) -> Option<Vec<(usize, bool)>> {
    let ast::OrderByKind::Expressions(items) = &order_by.kind else {
        return None;
    };
    if order_by.interpolate.is_some() {
        return None;
    }
    let item = |item: &ast::OrderByExpr| {
        let ast::Expr::Identifier(name) = &item.expr else {
            return None;
        };
        let is_it = |meta: &ColumnMeta| meta.name.eq_ignore_ascii_case(&name.value);
        let mut named = (0..shown.len()).filter(|column| is_it(&shown[*column]));
        match (named.next(), named.next()) {
            (Some(column), None) => Some((column, descends(item)?)),
            _ => None,
        }
    };
    items.iter().map(item).collect()
}
