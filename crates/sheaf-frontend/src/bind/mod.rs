//! The binder: from a query's syntax tree to the algebra (`sheaf-algebra`).
//!
//! Here every name gets its meaning, once. A column becomes an id, and every expression is built with its type. What
//! comes out has no names, no markers and no subqueries in expressions. So nothing behind it asks what MySQL means.
//!
//! A query block is bound in the order in which MySQL evaluates it. Each step may use what those before it have made:
//!
//! ```text
//!   WITH --> FROM --> WHERE --> GROUP BY --> select list, HAVING, ORDER BY --> windows --> DISTINCT --> LIMIT
//!            scope    filter    keys         bound over the columns of FROM;
//!                                            aggregates become columns of the group
//! ```
//!
//! A subquery in an expression is bound in the scopes around it, and becomes a dependent join at once: the expression
//! has a column in its place, and the join goes below the operator that the expression belongs to
//! ([`block::Block::pending`]).
//!
//! # Two ways
//!
//! The binder takes over from `lower/`, SqlToRel and the typing of plans, statement kind by statement kind. What it
//! does not know yet is [`Refusal::Unsupported`], and the other way takes the statement. `optimizer_switch='bind=on'`
//! asks for it. `sheaf-cli/tests/all/bind.rs` runs the statements of all .slt files both ways.
//!
//! | file | what it holds |
//! |---|---|
//! | [`scope`] | what names mean in a block |
//! | [`block`] | a query block while it is bound |
//! | [`query`] | WITH, set operations, ORDER BY and LIMIT of these |
//! | [`from`] | tables, derived tables, joins with ON, USING and NATURAL |
//! | [`select`] | a SELECT, from its FROM to its LIMIT |
//! | [`group`] | GROUP BY, and what may be named above it |
//! | [`expression`] | operators, literals, casts, CASE |
//! | [`function`] | calls: special forms, functions, aggregates, windows |
//! | [`subquery`] | EXISTS, IN, ANY, ALL and values |

mod block;
mod expression;
mod from;
mod function;
mod group;
mod query;
mod scope;
mod select;
mod subquery;

use std::sync::Arc;

use arrow::datatypes::FieldRef;
use datafusion_common::DataFusionError;
use datafusion_expr::LogicalPlan;
use sheaf_access::cancel;
use sheaf_algebra::relation::{Operator, Scan};
use sheaf_algebra::scalar::Typing;
use sheaf_algebra::to_logical_plan::to_logical_plan;
use sheaf_algebra::{Column, ColumnId, Columns, Relation, Scalar, rules};
use sheaf_exec::functions::EvaluationError;
use sheaf_exec::typing::{Purpose, Texts};
use sheaf_types::temporal::split_datetime;
use sqlparser::ast::Query;

use crate::error::SqlError;
use crate::lower::hints::QueryBlocks;
use crate::lower::{self, MAX_NESTING, StatementText, TableReference};
use crate::query::{Header, LoweredQuery, QueryContext};
use block::Block;

/// Why a query is not bound.
pub enum Refusal {
    /// It is wrong.
    Error(SqlError),
    /// The other way takes it, because of this.
    Unsupported(String),
}

type Bound<T> = Result<T, Refusal>;

impl From<SqlError> for Refusal {
    fn from(error: SqlError) -> Refusal {
        Refusal::Error(error)
    }
}

impl From<sheaf_access::AccessError> for Refusal {
    fn from(error: sheaf_access::AccessError) -> Refusal {
        Refusal::Error(error.into())
    }
}

impl From<DataFusionError> for Refusal {
    fn from(error: DataFusionError) -> Refusal {
        if cancel::is_statement_cancelled() {
            return Refusal::Error(SqlError::query_interrupted());
        }
        match EvaluationError::find(&error) {
            Some(known) => Refusal::Error(SqlError::from(known)),
            None => Refusal::Unsupported(error.strip_backtrace()),
        }
    }
}

fn unsupported<T>(what: impl Into<String>) -> Bound<T> {
    Err(Refusal::Unsupported(what.into()))
}

/// A column that a query gives.
#[derive(Clone)]
struct Output {
    id: ColumnId,
    field: FieldRef,
    header: Header,
}

/// Binds a query, applies the rules, and makes a plan for today's optimizer.
///
/// # Errors
/// MySQL's; and what is not bound yet.
pub fn bind(query: &Query, context: &QueryContext<'_>) -> Result<LoweredQuery, Refusal> {
    if context.clustered_keys {
        return unsupported("rows that are to be changed");
    }
    let text = StatementText::new(context.sql);
    let texts = Texts::of(
        context.session.collation(),
        context.session.truncated_texts(),
    );
    let texts = texts
        .on_day(split_datetime(lower::local_now(context.session)).0)
        .refusing_zero_dates(context.session.refuses_zero_dates());
    if context.session.truncated_texts().is_refused() {
        return unsupported("a query whose rows are stored in a strict mode");
    }
    let mut binder = Binder {
        context,
        text: &text,
        texts: &texts,
        columns: Columns::default(),
        tables: Vec::new(),
        common_tables: Vec::new(),
        blocks: Vec::new(),
        hints: QueryBlocks::new(context.session.merges_derived_tables()),
        purpose: Purpose::Other,
        open_aggregates: Vec::new(),
        parameters_seen: 0,
        locking: false,
        depth: 0,
    };
    let (relation, outputs) = binder.query(query)?;
    let Binder {
        mut columns,
        mut tables,
        hints,
        locking,
        parameters_seen,
        ..
    } = binder;
    let sources: Vec<_> = tables
        .iter()
        .map(|table| Arc::clone(&table.source))
        .collect();
    let hint_warnings = hints.resolve(&mut tables);
    let is_same = |(table, source): (&TableReference, &Arc<_>)| Arc::ptr_eq(&table.source, source);
    let relation = match tables.iter().zip(&sources).all(is_same) {
        true => relation,
        false => with_sources(relation, &tables),
    };
    let typing = Typing {
        texts: &texts,
        purpose: Purpose::Other,
    };
    let relation = rules::rewrite(relation, &mut columns, &typing)?;
    let plan: LogicalPlan = to_logical_plan(&relation, &columns)?;
    Ok(LoweredQuery {
        plan,
        headers: outputs.into_iter().map(|output| output.header).collect(),
        parameter_count: text.parameter_count().max(parameters_seen),
        locking,
        hint_warnings,
    })
}

/// The same over sources that have their hints.
fn with_sources(relation: Relation, tables: &[TableReference]) -> Relation {
    let relation = relation.map_inputs(&mut |input| with_sources(input, tables));
    match relation.into_operator() {
        Operator::Scan(scan) => {
            let source = Arc::clone(&tables[scan.reference as usize].source);
            Scan { source, ..scan }.relation()
        }
        operator => operator.into(),
    }
}

/// The state of the pass.
struct Binder<'a> {
    context: &'a QueryContext<'a>,
    text: &'a StatementText<'a>,
    texts: &'a Texts,
    columns: Columns,
    tables: Vec<TableReference>,
    common_tables: Vec<CommonTable>,
    /// The query blocks that are open, the innermost last.
    blocks: Vec<Block>,
    hints: QueryBlocks,
    /// What the expressions that are bound now are for.
    purpose: Purpose,
    /// The aggregates whose arguments are bound, and what these have named.
    open_aggregates: Vec<OpenAggregate>,
    parameters_seen: usize,
    locking: bool,
    depth: usize,
}

/// An aggregate whose arguments are bound.
struct OpenAggregate {
    /// The position of the block in which it stands.
    block: usize,
    /// Columns of that block, or of a query inside of it, are named.
    names_own: bool,
    /// The innermost block around that whose columns are named.
    names_outer: Option<usize>,
}

/// A common table expression. It is bound anew where it is named, with ids of its own, in the scopes of its definition.
struct CommonTable {
    name: String,
    columns: Vec<String>,
    query: Query,
    /// How many of those before it its query may name.
    known: usize,
    /// How many blocks were open around its definition.
    blocks: usize,
}

impl Binder<'_> {
    fn typing(&self) -> Typing<'_> {
        Typing {
            texts: self.texts,
            purpose: self.purpose,
        }
    }

    /// Binds something that is for this.
    fn with_purpose<T>(&mut self, purpose: Purpose, bind: impl FnOnce(&mut Self) -> T) -> T {
        let before = std::mem::replace(&mut self.purpose, purpose);
        let bound = bind(self);
        self.purpose = before;
        bound
    }

    /// Runs `inner` one level deeper.
    fn nested<T>(&mut self, inner: impl FnOnce(&mut Self) -> Bound<T>) -> Bound<T> {
        if self.depth == MAX_NESTING {
            return Err(SqlError::stack_overrun(MAX_NESTING).into());
        }
        cancel::check_statement()?;
        self.depth += 1;
        let result = inner(self);
        self.depth -= 1;
        result
    }

    fn block(&mut self) -> Bound<&mut Block> {
        match self.blocks.last_mut() {
            Some(block) => Ok(block),
            None => unsupported("an expression outside of a query"),
        }
    }

    /// A new column for a value. A column that comes a second time gets another id.
    fn new_column(&mut self, name: &str, value: &Scalar) -> ColumnId {
        self.columns.add(Column {
            field: Arc::clone(value.field()),
            name: name.to_string(),
            origin: None,
        })
    }
}
