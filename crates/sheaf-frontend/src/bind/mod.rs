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
//! A subquery in an expression is bound in the scopes around it, and becomes a dependent join at once. The expression
//! has a column in its place, and the join goes below the operator that the expression belongs to
//! ([`block::Block::pending`]).
//!
//! | file | what it holds |
//! |---|---|
//! | [`scope`] | what names mean in a block |
//! | [`block`] | a query block while it is bound |
//! | [`query`] | VALUES, set operations, ORDER BY and LIMIT of these |
//! | [`set_column`] | the columns of set operations |
//! | [`ordered_query`] | what ORDER BY of these may not have |
//! | [`common_table`] | common table expressions, merged where they are named or computed once |
//! | [`recursive`] | common table expressions that name themselves |
//! | [`view`] | views, bound where they are named |
//! | [`from`] | tables, derived tables, joins with ON, USING and NATURAL |
//! | [`indexed_expressions`] | expressions that indexes of a table have |
//! | [`json_table`] | JSON_TABLE |
//! | [`select`] | a SELECT, from its FROM to its LIMIT |
//! | [`over_rows`] | a list and a condition without a query, over rows at hand |
//! | [`change_condition`] | WHERE of statements that change rows |
//! | [`group`] | GROUP BY, and what may be named above it |
//! | [`grouped`] | what GROUP BY and HAVING may not have, told before anything is bound |
//! | [`expression`] | operators, literals, casts, CASE |
//! | [`literal`] | which literals are wrong |
//! | [`character_set`] | introducers: `_utf8mb4 0xD0B1` |
//! | [`session`] | variables, the clock, and other values of the session, as literals |
//! | [`function`] | calls: special forms and functions |
//! | [`aggregate`] | calls of aggregates |
//! | [`window_call`] | calls over windows |
//! | [`arguments`] | a call taken apart |
//! | [`aggregate_operands`] | what aggregates compute with |
//! | [`window`] | windows as they are written: names of others, frames |
//! | [`subquery`] | EXISTS, IN, ANY, ALL and values |
//! | [`user_variable`] | `@name := value` |
//! | [`hints`] | query blocks, and the hints that find them and their tables by name |

mod aggregate;
mod aggregate_operands;
mod arguments;
mod block;
mod change_condition;
mod character_set;
mod common_table;
mod expression;
mod from;
mod function;
mod group;
mod grouped;
mod hints;
mod indexed_expressions;
mod json;
mod json_table;
mod literal;
mod mixed_literals;
mod names;
mod ordered_query;
pub mod over_rows;
mod query;
mod recursive;
mod scope;
mod select;
mod session;
mod set_column;
mod subquery;
mod told;
mod user_variable;
pub mod view;
mod window;
mod window_call;

use std::collections::{HashMap, HashSet};
use std::rc::Rc;
use std::sync::Arc;

use arrow::datatypes::FieldRef;
use datafusion_common::{DFSchema, DataFusionError};
use datafusion_expr::logical_plan::Projection;
use datafusion_expr::{Expr, LogicalPlan, TableSource};
use sheaf_access::cancel;
use sheaf_algebra::relation::{Operator, Scan};
use sheaf_algebra::rules::indexed_expressions::IndexedExpression;
use sheaf_algebra::scalar::Typing;
use sheaf_algebra::to_logical_plan::to_logical_plans;
use sheaf_algebra::{Column, ColumnId, ColumnSet, Columns, Relation, Scalar, rules};
use sheaf_exec::CommonTableSource;
use sheaf_exec::plan_size::{check_plan_size, check_room_for_list};
use sheaf_exec::typing::{Purpose, Texts};
use sheaf_types::temporal::{TimeZone, split_datetime};
use sqlparser::ast::Query;

use crate::error::SqlError;
use crate::query::{BoundQuery, Header, QueryContext, Shown};
use crate::statement_text::StatementText;
pub use select::header_of;

use block::Block;
use common_table::CommonTable;
use grouped::has_any_value;
use hints::QueryBlocks;
use session::local_now;
use user_variable::Variables;
use view::OpenView;

type Bound<T> = Result<T, SqlError>;

/// A name that two columns of a result have is set apart with this; everything from here on is not shown.
const HIDDEN_SUFFIX: char = '\0';

/// The deepest nesting of expressions and queries that is followed (error 1436 beyond).
const MAX_NESTING: usize = 250;

/// The most tables and query blocks of a statement, and the most expressions and operators that it repeats by naming
/// common table expressions. Those that take something from a query around them count each time that they are named,
/// since they are planned each time.
const MAX_BLOCKS: u64 = 20_000;
const MAX_REPEATED_EXPRESSIONS: u64 = 1_000_000;

fn unsupported<T>(what: impl Into<String>) -> Bound<T> {
    Err(SqlError::not_supported_yet(what.into()))
}

/// A column that a query gives.
#[derive(Clone)]
struct Output {
    id: ColumnId,
    field: FieldRef,
    header: Header,
}

/// A query, and the columns that it gives.
type BoundPart = (Relation, Vec<Output>);

/// Binds a query, applies the rules, and makes a plan for today's optimizer.
///
/// # Errors
/// MySQL's for names (1046, 1054, 1052, 1146, 1305), arguments (1582), aggregates (1111, 1055, 3065, 3066) and
/// constants.
pub fn logical_plan(query: &Query, context: &QueryContext<'_>) -> Bound<BoundQuery> {
    // Whatever has gone wrong then.
    bound(query, context).map_err(|error| match cancel::is_statement_cancelled() {
        true => SqlError::query_interrupted(),
        false => error,
    })
}

/// The constants of a statement, and what is noted of them.
fn texts_of(context: &QueryContext<'_>) -> Texts {
    let session = context.session;
    Texts::of(session.collation(), session.truncated_texts())
        .on_day(split_datetime(local_now(session)).0)
        .in_time_zone(TimeZone::of_offset(session.time_zone_offset_seconds()))
        .of_parameters(session.has_parameters())
        .refusing_zero_dates(session.refuses_zero_dates())
        .refusing_zero_in_dates(session.refuses_zero_in_dates())
}

/// The types of a query's columns, of which nothing else is asked. Whether they may be NULL is told by a plan.
///
/// # Errors
/// As for a plan; 1235 for assignments of user variables, whose types may take several attempts.
pub fn column_types(query: &Query, context: &QueryContext<'_>) -> Bound<Vec<FieldRef>> {
    let text = Rc::new(StatementText::new(context.sql));
    let texts = texts_of(context);
    let mut binder = Binder::new(context, (&text, &texts), Variables::of(context));
    let (_, outputs) = binder.query(query)?;
    match binder.variables.grown() {
        None => Ok(outputs.into_iter().map(|output| output.field).collect()),
        Some(_) => unsupported("assignments in this place"),
    }
}

fn bound(query: &Query, context: &QueryContext<'_>) -> Bound<BoundQuery> {
    let text = Rc::new(StatementText::new(context.sql));
    let texts = texts_of(context);
    let mut variables = Variables::of(context);
    let is_watched = texts.watch_conditions() || texts.are_refused();
    let watches_conditions = is_watched && !change_condition::has_limit(query);
    let (bound, relation, outputs) = loop {
        let mut binder = Binder::new(context, (&text, &texts), variables);
        binder.watches_conditions = watches_conditions;
        let (relation, outputs) = binder.query(query)?;
        match binder.variables.grown() {
            None => break (binder, relation, outputs),
            Some(grown) => variables = grown,
        }
    };
    bound.variables.refuse_reads_by_subqueries()?;
    let Binder {
        mut columns,
        mut tables,
        computed_once,
        hints,
        locking,
        parameters_seen,
        indexed_expressions,
        ..
    } = bound;
    let plain = tables.clone();
    let hint_warnings = hints.resolve(&mut tables);
    let is_same = |(one, other): (&Arc<_>, &Arc<_>)| Arc::ptr_eq(one, other);
    let made_by = made_by(&relation, &outputs, &computed_once)?;
    let has_hints = !tables.iter().zip(&plain).all(is_same);
    let typing = Typing {
        texts: &texts,
        purpose: Purpose::Other,
    };
    let mut rewritten = |relation: Relation| -> Bound<Relation> {
        let relation = match has_hints {
            true => with_sources(relation, &tables),
            false => relation,
        };
        if context.is_over_rows {
            return Ok(relation);
        }
        // Before, because rules ask for indexes. And behind, because conditions have moved below outer joins.
        let relation = rules::indexed_expressions::apply(relation, &indexed_expressions);
        let relation = rules::rewrite(relation, &mut columns, &typing)?;
        Ok(rules::indexed_expressions::apply(
            relation,
            &indexed_expressions,
        ))
    };
    let (sources, mut relations): (Vec<_>, Vec<_>) = computed_once.into_iter().unzip();
    relations.push(relation);
    let relations = relations.into_iter().map(&mut rewritten);
    let relations = relations.collect::<Bound<Vec<_>>>()?;
    let mut plans = to_logical_plans(&relations, &columns)?;
    let Some(plan) = plans.pop() else {
        return unsupported("a statement without a plan");
    };
    for (source, definition) in sources.iter().zip(plans) {
        if let Some(table) = CommonTableSource::of(source) {
            table.define(definition);
        }
    }
    check_plan_size(&plan)?;
    let nullable = outputs.iter().map(|output| output.field.is_nullable());
    let mut nullable: Vec<bool> = nullable.collect();
    if relations.last().is_some_and(has_no_rows)
        && let Some((_, written)) = made_by.iter().find(|(number, _)| number.is_none())
        && let Ok(plans) = to_logical_plans(std::slice::from_ref(written), &columns)
    {
        // A client is told the same of a query whether or not it is known to find no rows.
        let fields = plans.iter().flat_map(|plan| plan.schema().fields());
        for (nullable, field) in nullable.iter_mut().zip(fields) {
            *nullable |= field.is_nullable();
        }
    }
    let outputs = outputs.into_iter();
    let outputs = outputs.map(|output| ((output.id, output.field), output.header));
    let (outputs, headers): (Vec<_>, Vec<Header>) = outputs.unzip();
    Ok(BoundQuery {
        plan: with_names(plan, &headers, &nullable)?,
        shown: Shown {
            outputs,
            columns,
            made_by,
        },
        headers,
        parameter_count: text.parameter_count().max(parameters_seen),
        locking,
        hint_warnings,
    })
}

/// Whether nothing is left of a query but its columns.
fn has_no_rows(relation: &Relation) -> bool {
    match relation.operator() {
        Operator::Values(values) => values.rows.is_empty(),
        Operator::Project(project) => has_no_rows(&project.input),
        Operator::Sort(sort) => has_no_rows(&sort.input),
        _ => false,
    }
}

/// See [`Shown::made_by`].
fn made_by(
    relation: &Relation,
    outputs: &[Output],
    computed_once: &[(Arc<dyn TableSource>, Relation)],
) -> Bound<Vec<(Option<u32>, Relation)>> {
    let is_of_table = |output: &Output| !output.header.org_table.is_empty();
    if outputs.iter().all(is_of_table) {
        return Ok(Vec::new());
    }
    let copied = computed_once.iter().map(|(_, relation)| relation);
    let nodes: usize = copied.chain([relation]).map(expression_nodes).sum();
    cancel::check_room_for_value(nodes.saturating_mul(size_of::<Scalar>()))?;
    let common_tables = computed_once.iter().filter_map(|(source, relation)| {
        let number = CommonTableSource::of(source)?.number;
        Some((Some(number), relation.clone()))
    });
    let whole = std::iter::once((None, relation.clone()));
    Ok(whole.chain(common_tables).collect())
}

/// The nodes of all expressions of a relation.
fn expression_nodes(relation: &Relation) -> usize {
    let mut nodes = 0usize;
    relation.for_each_scalar(&mut |scalar| nodes = nodes.saturating_add(scalar.size().nodes));
    let inputs = relation.inputs().into_iter().map(expression_nodes);
    nodes.saturating_add(inputs.sum())
}

/// Whether a text has this word in it, in small letters or not.
fn has_word(text: &str, word: &str) -> bool {
    let mut words = text.as_bytes().windows(word.len());
    words.any(|found| found.eq_ignore_ascii_case(word.as_bytes()))
}

/// The same with the names of the result. Of equal ones the later are set apart. Columns that are `nullable` as the
/// query is written are so, whatever the rules know: so a client is told the same of every plan.
fn with_names(
    plan: LogicalPlan,
    headers: &[Header],
    nullable: &[bool],
) -> Result<LogicalPlan, DataFusionError> {
    let fields = || plan.schema().fields().iter();
    let mut widened = fields().zip(nullable);
    let is_widened = widened.any(|(field, nullable)| *nullable && !field.is_nullable());
    let mut named = fields().zip(headers);
    if named.all(|(field, header)| *field.name() == header.name) && !is_widened {
        return Ok(plan);
    }
    check_room_for_list(headers.len())?;
    let mut used = HashSet::with_capacity(headers.len());
    let names = headers.iter().enumerate().map(|(position, header)| {
        match used.insert(header.name.to_lowercase()) {
            true => header.name.clone(),
            false => format!("{}{HIDDEN_SUFFIX}{position}", header.name),
        }
    });
    let names: Vec<String> = names.collect();
    let (exprs, input) = match plan {
        LogicalPlan::Projection(projection) => (projection.expr, projection.input),
        other => {
            let columns = other.schema().columns().into_iter().map(Expr::Column);
            (columns.collect(), Arc::new(other))
        }
    };
    let exprs = exprs
        .into_iter()
        .zip(names)
        .map(|(expr, name)| match &expr {
            Expr::Column(column) if column.name == name => expr,
            _ => expr.unalias().alias(name),
        });
    let mut projection = Projection::try_new(exprs.collect(), input)?;
    if is_widened {
        let schema = projection.schema.as_ref();
        let fields = schema.iter().zip(nullable);
        let fields = fields.map(|((table, field), nullable)| {
            let nullable = *nullable || field.is_nullable();
            let field = field.as_ref().clone().with_nullable(nullable);
            (table.cloned(), Arc::new(field))
        });
        let fields = fields.collect();
        let dependencies = schema.functional_dependencies().clone();
        let schema = DFSchema::new_with_metadata(fields, HashMap::new())?;
        projection.schema = Arc::new(schema.with_functional_dependencies(dependencies)?);
    }
    Ok(LogicalPlan::Projection(projection))
}

/// The same over sources that have their hints.
fn with_sources(relation: Relation, tables: &[Arc<dyn TableSource>]) -> Relation {
    let relation = relation.map_inputs(&mut |input| with_sources(input, tables));
    match relation.into_operator() {
        Operator::Scan(scan) => {
            let source = Arc::clone(&tables[scan.reference as usize]);
            Scan { source, ..scan }.relation()
        }
        operator => operator.into(),
    }
}

/// The state of the pass.
struct Binder<'a> {
    context: &'a QueryContext<'a>,
    text: Rc<StatementText<'a>>,
    texts: &'a Texts,
    columns: Columns,
    /// The source of each reference to a table.
    tables: Vec<Arc<dyn TableSource>>,
    common_tables: Vec<CommonTable>,
    /// Those of the statement that are computed once, those first that others read.
    computed_once: Vec<(Arc<dyn TableSource>, Relation)>,
    /// The query blocks that are open, the innermost last.
    blocks: Vec<Block>,
    hints: QueryBlocks,
    /// What the expressions that are bound now are for.
    purpose: Purpose,
    /// The aggregates whose arguments are bound, and what these have named.
    open_aggregates: Vec<OpenAggregate>,
    /// What is bound now is a part of something that may do without its value: an OR, a choice, a HAVING.
    is_chosen: bool,
    parameters_seen: usize,
    variables: Variables,
    locking: bool,
    depth: usize,
    /// The depth of the FROM whose tables a locking read locks; 0: there is none.
    locked_depth: usize,
    /// Tables and query blocks that have been bound.
    blocks_so_far: u64,
    /// Common table expressions that are bound where they are named.
    open_common_tables: usize,
    /// Expressions that were bound in these.
    repeated_expressions: u64,
    /// Subqueries of expressions that are open.
    open_subqueries: usize,
    /// Those of them that stand in a select list.
    open_listed_subqueries: usize,
    /// Columns whose values are those of scalar subqueries.
    values_of_subqueries: ColumnSet,
    /// The query that is bound next needs no order without a LIMIT. Names in its ORDER BY have to be right anyway.
    drops_order: bool,
    /// The query that is bound next is an operand: its item keeps the digits of quotients that are not shown.
    keeps_digits: bool,
    /// Operands of a chain of AND or OR in front of the part of the chain that is bound next.
    operands_before: usize,
    /// The query that is bound next is that of an EXISTS, which does not ask what it lists.
    lists_nothing: bool,
    /// The views whose queries are bound, the innermost last.
    open_views: Vec<OpenView>,
    /// The query of a view whose rows the statement may change is bound.
    delivers_key: bool,
    /// Of literals in the query of a view.
    texts_of_view: Option<Rc<Texts>>,
    /// Derived tables keep their names, because they may have to be planned by themselves.
    keeps_derived_tables: bool,
    derived_so_far: u32,
    /// The statement has the word somewhere.
    has_any_value: bool,
    /// Divisions by zero in conditions over tables are noted, but for those of subqueries.
    watches_conditions: bool,
    /// What indexes of the tables have of expressions.
    indexed_expressions: Vec<IndexedExpression>,
    /// An expression is bound that a definition keeps: it means the same in every session.
    binds_kept: bool,
}

/// An aggregate whose arguments are bound.
struct OpenAggregate {
    /// The position of the block in which it stands.
    block: usize,
    /// Columns of that block are named.
    names_own: bool,
    /// The innermost block around that whose columns are named.
    names_outer: Option<usize>,
}

impl<'a> Binder<'a> {
    fn new(
        context: &'a QueryContext<'a>,
        (text, texts): (&Rc<StatementText<'a>>, &'a Texts),
        variables: Variables,
    ) -> Binder<'a> {
        Binder {
            context,
            variables,
            text: Rc::clone(text),
            texts,
            columns: Columns::default(),
            tables: Vec::new(),
            common_tables: Vec::new(),
            computed_once: Vec::new(),
            blocks: Vec::new(),
            hints: QueryBlocks::new(context.session.merges_derived_tables()),
            purpose: Purpose::Other,
            open_aggregates: Vec::new(),
            is_chosen: false,
            parameters_seen: 0,
            locking: false,
            depth: 0,
            locked_depth: 1,
            blocks_so_far: 0,
            open_common_tables: 0,
            repeated_expressions: 0,
            open_subqueries: 0,
            open_listed_subqueries: 0,
            values_of_subqueries: ColumnSet::new(),
            drops_order: false,
            keeps_digits: false,
            operands_before: 0,
            lists_nothing: false,
            open_views: Vec::new(),
            delivers_key: false,
            texts_of_view: None,
            keeps_derived_tables: context.is_over_rows
                || !context.session.merges_derived_tables()
                || has_word(context.sql, "no_merge"),
            derived_so_far: 0,
            has_any_value: has_any_value(context.sql),
            watches_conditions: false,
            indexed_expressions: Vec::new(),
            binds_kept: false,
        }
    }
}

impl Binder<'_> {
    fn typing(&self) -> Typing<'_> {
        Typing {
            texts: self.texts_of_view.as_deref().unwrap_or(self.texts),
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

    /// Binds something whose parts may not be asked for their values.
    fn choosing<T>(&mut self, bind: impl FnOnce(&mut Self) -> T) -> T {
        let before = std::mem::replace(&mut self.is_chosen, true);
        let bound = bind(self);
        self.is_chosen = before;
        bound
    }

    /// Runs `inner` one level deeper.
    fn nested<T>(&mut self, inner: impl FnOnce(&mut Self) -> Bound<T>) -> Bound<T> {
        if self.depth == MAX_NESTING {
            return Err(SqlError::stack_overrun(MAX_NESTING));
        }
        cancel::check_statement()?;
        if self.open_common_tables > 0 {
            self.repeated_expressions += 1;
            if self.repeated_expressions > MAX_REPEATED_EXPRESSIONS {
                return Err(SqlError::plan_too_large(MAX_BLOCKS));
            }
        }
        self.depth += 1;
        let result = inner(self);
        self.depth -= 1;
        result
    }

    /// Counts a table or a query block. Error 1116 for too many.
    fn count_block(&mut self) -> Bound<()> {
        self.blocks_so_far += 1;
        match self.blocks_so_far > MAX_BLOCKS {
            true => Err(SqlError::plan_too_large(MAX_BLOCKS)),
            false => Ok(()),
        }
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
