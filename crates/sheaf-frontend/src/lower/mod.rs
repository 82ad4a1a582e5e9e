//! The pass over the syntax tree: MySQL's operators become markers, names become exact.
//!
//! DataFusion's SqlToRel would give each operator its own meaning (`/` of integers, `=` of a string and a number, AND
//! of integers). So this pass runs first and leaves it nothing to interpret:
//!
//! - Each operator, cast and special form becomes a call of a function of [`sheaf_exec::functions`]: `a + b` is
//!   `$add(a, b)`. Conditions and values are kept apart here, because MySQL's conditions are integers and DataFusion's
//!   are not. A condition that is used as a value is wrapped in `$int`, a value that is used as a condition in
//!   `$truth`.
//! - Each reference to a table is renamed to its number (`#3`). So the catalog lookup gives every reference a source of
//!   its own, with its hints ([`hints`]). Its alias is made explicit.
//! - Column names become those of the definition, since MySQL's are case-insensitive and SqlToRel's are not.
//! - Functions of the session and `?` become literals.
//! - Result headers are cut from the statement's text ([`header`]).
//!
//! Functions and their argument counts are checked here, where the error can name them.

pub(crate) mod build;
pub(crate) mod character_set;
pub mod column_default;
pub(crate) mod expression;
pub(crate) mod function;
pub(crate) mod grouped;
pub(crate) mod header;
pub(crate) mod hints;
mod row_subquery;
pub(crate) mod scope;
pub(crate) mod select;
pub(crate) mod session;

use std::sync::Arc;

use datafusion_common::HashMap;
use datafusion_expr::TableSource;
use sheaf_access::cancel;
use sqlparser::ast::{Expr, Ident, Query};

use crate::error::{Result, SqlError};
use crate::parser::hint::HintWarning;
use crate::query::QueryContext;

pub use header::StatementText;
pub use select::HIDDEN_SUFFIX;
pub use session::local_now;

/// The deepest nesting of expressions and queries that is followed (error 1436 beyond).
pub const MAX_NESTING: usize = 250;

/// The most tables and query blocks of a statement, and the most expressions and operators that it repeats by naming
/// common table expressions. These count each time that they are named, since they are planned each time.
pub const MAX_BLOCKS: u64 = 20_000;
pub const MAX_REPEATED_EXPRESSIONS: u64 = 1_000_000;

/// How much there is to plan.
#[derive(Clone, Copy, Default)]
struct Work {
    /// Tables and query blocks.
    blocks: u64,
    /// Expressions, operators and queries.
    expressions: u64,
}

impl Work {
    fn since(self, before: Work) -> Work {
        Work {
            blocks: self.blocks - before.blocks,
            expressions: self.expressions - before.expressions,
        }
    }
}

/// One reference to a table in the statement.
pub struct TableReference {
    pub source: Arc<dyn TableSource>,
    /// The name that columns are qualified with.
    pub alias: String,
    pub database: String,
    pub table: String,
}

/// What the pass found out.
pub struct Lowered {
    pub query: Query,
    /// References by number.
    pub tables: Vec<TableReference>,
    /// Header of each item of the outermost select list; `None` stands for a wildcard.
    pub headers: Vec<Option<String>>,
    pub parameter_count: usize,
    pub locking: bool,
    pub hint_warnings: Vec<HintWarning>,
}

/// Whether the text may have a query within another.
fn has_two_selects(sql: &str) -> bool {
    const SELECT: &[u8] = b"select";
    let words = sql.as_bytes().windows(SELECT.len());
    words
        .filter(|word| word.eq_ignore_ascii_case(SELECT))
        .nth(1)
        .is_some()
}

/// Lowers a query. `any_rows`: queries with groups may name what they do not group by.
pub fn lower(query: &Query, context: &QueryContext<'_>, any_rows: bool) -> Result<Lowered> {
    let text = StatementText::new(context.sql);
    let mut lowering = Lowering {
        context,
        text: &text,
        names: HashMap::new(),
        many_spellings: false,
        tables: Vec::new(),
        ctes: Vec::new(),
        scopes: Vec::new(),
        sets_apart: false,
        may_have_subqueries: has_two_selects(context.sql),
        blocks: hints::QueryBlocks::new(context.session.merges_derived_tables()),
        parameters_seen: 0,
        locking: false,
        depth: 0,
        work: Work::default(),
        clause: "field list",
        windows_allowed: false,
        repeated: 0,
        aggregates_allowed: true,
        aggregates_seen: 0,
        in_filter: false,
        subqueries_seen: 0,
        unknown: Unknown::Itself,
        any_rows,
    };
    let (query, headers) = lowering.query(query.clone(), select::Use::Result)?;
    let headers = headers.into_iter().map(|header| match header {
        select::Header::Named(name) => Some(name),
        select::Header::Wildcard(_) => None,
    });
    let headers = headers.collect();
    let hint_warnings = lowering.blocks.resolve(&mut lowering.tables);
    Ok(Lowered {
        query,
        hint_warnings,
        headers,
        parameter_count: text.parameter_count().max(lowering.parameters_seen),
        locking: lowering.locking,
        tables: lowering.tables,
    })
}

/// The state of the pass.
struct Lowering<'a> {
    context: &'a QueryContext<'a>,
    text: &'a StatementText<'a>,
    /// How each column name that occurred is spelled, by its lower-case form: columns by their definition, aliases
    /// by their first occurrence.
    names: HashMap<String, String>,
    /// A table spells a column otherwise than `names` does: `Id` and `id`. Then each block's own tables tell how a
    /// column is spelled that is read, and `names` how one is that a query gives.
    many_spellings: bool,
    tables: Vec<TableReference>,
    /// The common table expressions in scope.
    ctes: Vec<CommonTable>,
    /// The names of the query blocks that are open, the innermost last.
    scopes: Vec<scope::Scope>,
    /// A query has set names of its items apart from those that its ORDER BY uses.
    sets_apart: bool,
    /// Subqueries may name items of the select lists around them.
    may_have_subqueries: bool,
    blocks: hints::QueryBlocks,
    parameters_seen: usize,
    locking: bool,
    depth: usize,
    /// What has been lowered so far.
    work: Work,
    /// The clause that is lowered, as messages call it.
    clause: &'static str,
    /// Inside of a select list or ORDER BY, and outside of aggregates.
    windows_allowed: bool,
    /// The part of its expressions that common table expressions repeat.
    repeated: u64,
    /// False inside of WHERE and ON.
    aggregates_allowed: bool,
    /// Aggregates seen so far.
    aggregates_seen: usize,
    /// Inside of WHERE, ON or HAVING, where a subquery can become a join.
    in_filter: bool,
    /// Subqueries that have been lowered.
    subqueries_seen: usize,
    /// Of the condition that is lowered next.
    unknown: Unknown,
    /// Queries with groups may name what they do not group by.
    any_rows: bool,
}

/// A common table expression.
struct CommonTable {
    name: String,
    /// What SqlToRel knows it by.
    exact: String,
    /// Empty until they are known.
    columns: Vec<String>,
    /// How deep its query is nested.
    depth: usize,
    /// A FROM has named it.
    is_read: bool,
    /// What naming it repeats.
    work: Work,
}

/// What the truth value of a condition may be taken for if it is unknown, because it makes no difference where it
/// stands.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Unknown {
    /// For nothing else.
    #[default]
    Itself,
    /// Rows are tested by the condition.
    False,
    /// Rows are tested by what denies the condition.
    True,
}

impl Unknown {
    /// Of the operand of NOT.
    fn denied(self) -> Unknown {
        match self {
            Unknown::Itself => Unknown::Itself,
            Unknown::False => Unknown::True,
            Unknown::True => Unknown::False,
        }
    }
}

impl Lowering<'_> {
    /// The exact spelling of a column name or alias.
    fn column_name(&mut self, name: &str) -> String {
        self.names
            .entry(name.to_lowercase())
            .or_insert_with(|| name.to_string())
            .clone()
    }

    fn column_ident(&mut self, ident: Ident) -> Ident {
        Ident {
            value: self.column_name(&ident.value),
            quote_style: Some('`'),
            span: ident.span,
        }
    }

    /// A column that is read, of `table` if that is named.
    fn read_column(&mut self, table: Option<&str>, ident: Ident) -> Result<Ident> {
        let spelled = match self.many_spellings {
            true => scope::spelling(&self.scopes, table, &ident.value)?,
            false => None,
        };
        Ok(match spelled {
            Some(value) => Ident {
                value,
                quote_style: Some('`'),
                span: ident.span,
            },
            None => self.column_ident(ident),
        })
    }

    /// A column by its name alone.
    fn column(&mut self, ident: Ident) -> Result<Expr> {
        Ok(match scope::meaning(&self.scopes, &ident.value) {
            Some(column) => column,
            None => Expr::Identifier(self.read_column(None, ident)?),
        })
    }

    /// A condition that rows are tested by.
    fn filter(&mut self, condition: Expr, aggregates_allowed: bool) -> Result<Expr> {
        let before = (self.aggregates_allowed, self.in_filter);
        (self.aggregates_allowed, self.in_filter) = (aggregates_allowed, true);
        self.unknown = Unknown::False;
        let lowered = self.condition(condition);
        (self.aggregates_allowed, self.in_filter) = before;
        lowered
    }

    /// Counts a table or a query block; of a common table expression, what it consists of.
    fn count_block(&mut self, repeated: Work) -> Result<()> {
        self.work.blocks = self.work.blocks.saturating_add(repeated.blocks + 1);
        self.work.expressions = self.work.expressions.saturating_add(repeated.expressions);
        self.repeated = self.repeated.saturating_add(repeated.expressions);
        if self.work.blocks > MAX_BLOCKS || self.repeated > MAX_REPEATED_EXPRESSIONS {
            return Err(SqlError::plan_too_large(MAX_BLOCKS));
        }
        Ok(())
    }

    /// Runs `inner` one level deeper.
    fn nested<T>(&mut self, inner: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        if self.depth == MAX_NESTING {
            return Err(SqlError::stack_overrun(MAX_NESTING));
        }
        cancel::check_statement()?;
        self.work.expressions += 1;
        self.depth += 1;
        let result = inner(self);
        self.depth -= 1;
        result
    }
}
