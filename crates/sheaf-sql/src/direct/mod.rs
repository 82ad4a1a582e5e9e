//! Direct plans: statements about a few rows, without a logical plan, batches or worker threads.
//!
//! ```text
//!   syntax tree -> compile -> DirectPlan          once, and kept by a prepared statement
//!                                  |
//!   parameters  -> bind -> keys -> rows -> client       each time, on the connection's own thread
//! ```
//!
//! **What is direct.** Statements about few rows:
//!
//! - SELECT of columns by a complete unique key, a list of them, a short range of an index, or in the order of an index
//!   with a LIMIT that is reached soon;
//! - ORDER BY, DISTINCT, LIMIT, FOR UPDATE and FOR SHARE, COUNT, SUM, MIN and MAX over these, also by groups;
//! - joins by key of few rows, with the same, also with queries in the FROM ([`derived`]);
//! - UNION of such queries;
//! - all else that a SELECT does with such rows ([`over_rows`]);
//! - UPDATE and DELETE of such rows, also of several tables; INSERT and REPLACE.
//!
//! Operands of keys are constants and parameters, and only those whose comparison is plain by MySQL's typing rule
//! ([`operand`]). All else that is computed from one row is computed by the expressions of the vectorised path
//! ([`expression`]): in select lists, in assignments, in VALUES and in the rest of a condition. Code that meets
//! anything else, while compiling, binding, or later before anything was sent or changed, leaves the statement to the
//! vectorised path, which can do everything. So both paths give the same results, and a test runs each statement
//! through both: `optimizer_switch='direct=off'` closes this one.
//!
//! **When a plan holds.** It is made for one version of a table's definition, and for the variables and the database
//! that the session had. It shares the variables' memory with the session, so it notices each SET. It is compared with
//! all of these before each execution, and the definition once more under the table's lock. Sessions share plans, and
//! each has those that it uses at hand: finding one of these writes nothing that another session reads.
//!
//! | folder or file | what it holds |
//! |---|---|
//! | [`syntax`] | what the syntax tree of a statement says |
//! | [`rewrite`] | queries without what others say as well |
//! | [`operands`] | what columns are compared with |
//! | [`access`] | from WHERE to keys of an index; what entries say without their rows |
//! | [`expression`] | what is computed from a row, and from constants, by the kernels of the vectorised path |
//! | [`rows`] | tables and queries that rows come from, and rows on their way |
//! | [`shown`] | what a query shows, and its aggregates |
//! | [`read`] | SELECT of one table, or of constants; SQL_CALC_FOUND_ROWS |
//! | [`join`] | SELECT of several |
//! | [`derived`] | queries in a FROM, and UNION |
//! | [`subquery`] | EXISTS and scalar subqueries of these, lists of keys that subqueries bring; IN, ANY and ALL |
//! | [`over_rows`] | whatever else a SELECT does with rows found by keys |
//! | [`into_variables`] | SELECT … INTO of user variables, and SET of one |
//! | [`locks`] | FOR UPDATE and FOR SHARE |
//! | [`change`] | UPDATE and DELETE |
//! | [`insert`] | INSERT, also of a query and of many rows that come as text |
//! | [`cache`] | plans that are kept |
//! | [`parts`] | what a plan consists of besides what it is given |
//! | [`explain`] | what EXPLAIN says of direct plans |

mod access;
mod cache;
mod change;
mod derived;
mod explain;
mod expression;
mod insert;
mod into_variables;
mod join;
mod locks;
mod operands;
mod over_rows;
mod parts;
mod read;
mod rewrite;
mod rows;
mod shown;
mod subquery;
mod syntax;

use std::borrow::Cow;
use std::sync::Arc;

use sheaf_memory::LONG_VALUE_BYTES;
use sheaf_table::Table;
use sheaf_types::Value;

use sqlparser::ast;

use crate::accounts::TableNeed;
use crate::engine::shared_plans::PlanKey;
use crate::error::Result;
use crate::parser::statement::Statement;
use crate::parser::{self, Parameters};
use crate::session::Session;
use crate::session::result::ResultSink;
use crate::session::status::Command;

use into_variables::{IntoVariables, SetVariable};
use syntax::given::Given;
use syntax::limits::{
    LONG_CHANGE_BYTES, LONG_TEXT_BYTES, MAX_ITEMS, Rewriting, has_long_condition, has_many_queries,
    items_of,
};

pub(crate) use access::measured::{AccessId, Work};
use cache::given_up::{COSTLY_ROWS, GivenUp};
pub(crate) use cache::known_plan::Known;
use cache::known_plan::plan_key;
use cache::statement_cache::MAX_STATEMENT_BYTES;
pub(crate) use cache::statement_cache::{Cached, StatementCache, run_cached, take_literals};
use change::change_found;
pub(crate) use explain::analyze::{MeasuredRun, measure_direct};
pub(crate) use explain::description::{Described, RunBy, describe_direct};
pub(crate) use explain::operators_alike::would_run_directly;
use expression::Expressions;
use expression::constant_operands;
use expression::constant_operands::with_constants;
pub(crate) use expression::{ExpressionCache, MAX_KEPT_BYTES, MAX_RESTING_BYTES};
use insert::insert_select;
pub(crate) use insert::run_value_lists;
pub(crate) use insert::value_lists::ValueLists;
use join::join_walk;
use locks::{lock_found, locking};
use operands::operand;
use parts::PartsOfPlan;
use read::may_divide;
use read::{constants, counted};
use rewrite::{dual, modifiers, qualified, using};
use shown::select_list;
use subquery::Subquery;
use subquery::quantified;
use syntax::attempt::{Attempt, KnownQueries};
use syntax::given;
pub(crate) use syntax::headers::Spelled;
use syntax::needs::needs_of;

/// `Last_query_cost` of a query that ran directly and was not estimated: what MySQL says of a lookup by key.
const COST_WITHOUT_ESTIMATE: f64 = 1.0;

/// A larger plan is not kept, and its statement runs by operators, whose memory is bounded while they are made.
const MAX_PLAN_BYTES: usize = 512 << 10;

/// Rows that a subquery is asked for one by one, rather than for all that it finds.
const MAX_ASKED_ROWS: u64 = 20;

/// See the module's comment.
pub(crate) struct DirectPlan {
    action: Action,
    parameters: usize,
    /// What takes the places behind the parameters.
    given: Vec<Given>,
    /// What is computed for the places behind these.
    constants: Option<Expressions>,
    /// What takes the places behind these.
    subqueries: Vec<Subquery>,
    /// What brings a list, which takes the places behind all of them.
    list: Vec<Subquery>,
    /// What a client gets of its rows, if all are counted.
    window: Option<counted::Window>,
    /// What its sessions need to be allowed to.
    needs: Vec<TableNeed>,
    /// What was allocated for it, as far as the program's allocator counts.
    bytes: usize,
    given_up: GivenUp,
}

enum Action {
    Read(Box<read::Read>, Arc<Table>),
    Join(Box<join::Join>),
    OverRows(Box<over_rows::OverRows>),
    Union(Box<derived::Union>),
    Constants(Box<constants::Constants>),
    Update(Box<change::Update>, Arc<Table>),
    Delete(Box<change::Delete>, Arc<Table>),
    ChangeFound(Box<change_found::ChangeFound>),
    LockFound(Box<lock_found::LockFound>),
    IntoVariables(Box<IntoVariables>),
    SetVariable(Box<SetVariable>),
    Insert(Box<insert::Insert>),
    InsertSelect(Box<insert_select::InsertSelect>),
}

impl Action {
    fn is_current(&self) -> bool {
        match self {
            Action::Read(read, table) => table.is_current() && read.is_current(table),
            Action::Update(update, table) => table.is_current() && update.rows().is_current(table),
            Action::Delete(delete, table) => table.is_current() && delete.rows().is_current(table),
            Action::Join(join) => join.is_current(),
            Action::OverRows(query) => query.is_current(),
            Action::ChangeFound(change) => change.is_current(),
            Action::LockFound(lock) => lock.is_current(),
            Action::IntoVariables(into) => into.query.is_current(),
            Action::SetVariable(set) => set.query.is_current(),
            Action::Union(union) => union.derived.is_current(),
            Action::Constants(_) => true,
            Action::Insert(insert) => insert.table().is_current(),
            Action::InsertSelect(insert) => insert.table.is_current() && insert.query.is_current(),
        }
    }

    /// Whether it reads no table along an index that has no keys for it.
    fn finds_by_keys(&self) -> bool {
        match self {
            Action::Read(read, _) => !read.access.is_whole(),
            Action::Join(join) => !join.walks_whole(),
            Action::OverRows(query) => !query.rows.walks_whole(),
            _ => true,
        }
    }

    /// Whether a list that a run brings is among the keys that find rows.
    fn binds_list(&self) -> bool {
        match self {
            Action::Read(read, _) => read.access.binds_list(),
            Action::Join(join) => join.binds_list(),
            Action::OverRows(query) => query.rows.binds_list(),
            _ => false,
        }
    }

    /// How many columns its result has.
    fn result_columns(&self) -> usize {
        match self {
            Action::Read(read, _) => read.result_columns(),
            Action::Join(join) => join.columns.len(),
            Action::OverRows(query) => query.result_columns(),
            Action::Union(union) => union.derived.result_columns(),
            Action::Constants(constants) => constants.result_columns(),
            Action::LockFound(lock) => lock.result_columns(),
            Action::Update(..)
            | Action::Delete(..)
            | Action::ChangeFound(_)
            | Action::IntoVariables(_)
            | Action::SetVariable(_)
            | Action::Insert(_)
            | Action::InsertSelect(_) => 0,
        }
    }
}

impl DirectPlan {
    /// A plan that is given nothing but so many parameters.
    fn given_parameters(action: Action, needs: Vec<TableNeed>, parameters: usize) -> DirectPlan {
        DirectPlan {
            action,
            parameters,
            given: Vec::new(),
            constants: None,
            subqueries: Vec::new(),
            list: Vec::new(),
            window: None,
            needs,
            bytes: 0,
            given_up: GivenUp::default(),
        }
    }

    /// What was allocated for it.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Whether the tables are what the plan was made for.
    pub(crate) fn is_current(&self) -> bool {
        let mut subqueries = self.subqueries.iter().chain(&self.list);
        self.action.is_current() && subqueries.all(Subquery::is_current)
    }

    /// How many columns its result has.
    fn result_columns(&self) -> usize {
        self.action.result_columns()
    }

    /// Whether something is to be found before the statement itself runs.
    fn has_subqueries(&self) -> bool {
        let reads_queries = match &self.action {
            Action::Join(join) => join.derived().next().is_some(),
            Action::OverRows(query) => query.rows.derived().next().is_some(),
            Action::Union(_) => true,
            _ => false,
        };
        reads_queries || !self.subqueries.is_empty() || !self.list.is_empty()
    }

    /// Whether it reads anything but tables: then no plan of operators reads the same.
    pub(crate) fn reads_queries(&self) -> bool {
        match &self.action {
            Action::OverRows(query) if !query.subqueries.is_empty() => true,
            Action::InsertSelect(_) => true,
            Action::ChangeFound(change) => change.query.reads_queries(),
            Action::LockFound(lock) => lock.find.reads_queries(),
            Action::IntoVariables(into) => into.query.reads_queries(),
            Action::SetVariable(set) => set.query.reads_queries(),
            _ => self.has_subqueries(),
        }
    }

    /// How many parameters it is given, and takes from the session or computes of constants.
    fn given_places(&self) -> usize {
        let constants = self.constants.as_ref().map_or(0, Expressions::len);
        self.parameters + self.given.len() + constants
    }

    /// What an UPDATE or a DELETE is called, and the tables that it changes.
    pub(crate) fn changed_tables(&self) -> Option<(&'static str, Vec<String>)> {
        match &self.action {
            Action::Update(update, _) => Some(("UPDATE", vec![update.rows().alias.clone()])),
            Action::Delete(delete, _) => Some(("DELETE", vec![delete.rows().alias.clone()])),
            Action::ChangeFound(change) => Some(change.changed_tables()),
            _ => None,
        }
    }

    /// Whether it finds rows of tables, and does more than write those that the statement spells.
    pub(crate) fn reads_table(&self) -> bool {
        !matches!(self.action, Action::Insert(_))
    }

    fn command(&self) -> Command {
        match self.action {
            Action::Read(..)
            | Action::Join(_)
            | Action::OverRows(_)
            | Action::Union(_)
            | Action::LockFound(_)
            | Action::IntoVariables(_)
            | Action::Constants(_) => Command::Select,
            Action::SetVariable(_) => Command::SetOption,
            Action::Update(..) => Command::Update,
            Action::Delete(..) => Command::Delete,
            Action::ChangeFound(ref change) => change.command,
            Action::Insert(_) => Command::Insert,
            Action::InsertSelect(_) => Command::InsertSelect,
        }
    }
}

fn has_tables(query: &ast::Query) -> bool {
    match query.body.as_ref() {
        ast::SetExpr::Select(select) => !select.from.is_empty(),
        _ => true,
    }
}

impl Session {
    /// What is known of a statement whose places for values are `?`: what some session has found out, or what this one
    /// finds out now.
    ///
    /// # Errors
    /// It could not be found out: what stops the running statement, for want of memory among others.
    pub(crate) fn known_plan(&self, text: &str) -> Result<(PlanKey, Known)> {
        let key = plan_key(self, text);
        if !self.variables.direct_plans() {
            return Ok((key, Known::NotDirect));
        }
        let version = self.engine.catalog().schema_version();
        // Others' names mean other tables.
        let is_shared = !self.temporary.has_any();
        if is_shared
            && let Some(known) = self.engine.plans.find(&key, version)
            && let known = Known::of_shared(known)
            && known.is_current()
        {
            self.handle.commands.count(Command::StatementCacheHits);
            return Ok((key, known));
        }
        self.handle.commands.count(Command::StatementCacheMisses);
        self.admit(text)?;
        // What is kept with the plans of all is not the statement's.
        let mut bytes = self.workers.planning().begin_plan();
        let measured = || self.measured_plan(text);
        let plan = self.workers.planning().during(measured);
        bytes.is_made();
        self.handle.cancel_flag().check()?;
        let known = match plan {
            Some(plan) if plan.bytes <= MAX_PLAN_BYTES => Known::Direct(Arc::new(plan)),
            _ => Known::NotDirect,
        };
        if is_shared && text.len() <= MAX_STATEMENT_BYTES {
            self.engine.plans.keep(key.clone(), version, known.shared());
        }
        Ok((key, known))
    }

    /// The direct plan of a statement whose places for values are `?`, which knows its size.
    fn measured_plan(&self, text: &str) -> Option<DirectPlan> {
        if has_many_queries(text) {
            return None;
        }
        let before = sheaf_memory::held_by_thread();
        let plan = {
            let parsed = parser::parse_with_parameters(text, &self.dialect(), Parameters::Numbered);
            // What is wrong is told by the parser that gets the values.
            let (statement, parameters) = parsed.ok()?;
            self.direct_plan(&statement, (text, parameters))?
        };
        let kept = sheaf_memory::held_by_thread() - before;
        let bytes = usize::try_from(kept).unwrap_or(0);
        Some(DirectPlan { bytes, ..plan })
    }

    /// The direct plan of a statement with so many parameters; `None` if it has none. `text` is what was parsed.
    pub(crate) fn direct_plan(
        &self,
        statement: &Statement,
        given: (&str, usize),
    ) -> Option<DirectPlan> {
        let queries = KnownQueries::default();
        self.plan_attempted(statement, Attempt::new(given, &queries))
    }

    /// The same of a statement, or of a query that it is made of.
    fn plan_attempted(&self, statement: &Statement, attempt: Attempt<'_>) -> Option<DirectPlan> {
        let Attempt {
            text, parameters, ..
        } = attempt;
        let may_be_direct = match statement {
            // A direct plan of nothing but literals would have copies of long ones.
            Statement::Query(query) if text.len() >= LONG_VALUE_BYTES && !has_tables(query) => {
                false
            }
            Statement::Query(query) => {
                items_of(&query.body, text.len() > LONG_TEXT_BYTES) <= MAX_ITEMS
            }
            // The tree of a change stays while its direct plan runs.
            Statement::Update(_) | Statement::Delete(_) => text.len() <= LONG_CHANGE_BYTES,
            Statement::Insert(_) | Statement::SelectInto { .. } | Statement::Set(_) => true,
            _ => false,
        };
        if !may_be_direct || !self.variables.direct_plans() || has_many_queries(text) {
            return None;
        }
        let without_with = match statement {
            Statement::Query(query) if query.with.is_some() => {
                Some(Statement::Query(Box::new(derived::without_with(query)?)))
            }
            _ => None,
        };
        let statement = without_with.as_ref().unwrap_or(statement);
        let without_databases = qualified::without_databases(self, statement, text);
        let statement = without_databases.as_ref().unwrap_or(statement);
        let of_variables = match statement {
            Statement::SelectInto { .. } => {
                let into = IntoVariables::compile(self, statement, attempt)?;
                Some(Action::IntoVariables(Box::new(into)))
            }
            Statement::Set(_) => {
                let set = SetVariable::compile(self, statement, attempt)?;
                Some(Action::SetVariable(Box::new(set)))
            }
            _ => None,
        };
        if let Some(action) = of_variables {
            return Some(PartsOfPlan::of(action, statement).into_plan(parameters));
        }
        if matches!(statement, Statement::Query(query) if select_list::may_name_given(query)) {
            return None;
        }
        let without_modifiers = modifiers::without_modifiers(statement);
        let statement = without_modifiers.as_ref().unwrap_or(statement);
        let without_dual = dual::without_dual(statement);
        let statement = without_dual.as_ref().unwrap_or(statement);
        let (without_limit, window) = counted::without_limit(statement).unzip();
        let statement = without_limit.as_ref().unwrap_or(statement);
        let (rewritten, given) = given::with_places(statement, (text, parameters));
        let statement = rewritten.as_ref().unwrap_or(statement);
        let places = parameters + given.len();
        let mut constants = None;
        let mut parts = self.parts_of_plan(statement, attempt.with_parameters(places));
        // Keys may be made of constants where a LIMIT alone would end the search.
        let has_keys = |parts: &PartsOfPlan| parts.action.finds_by_keys();
        if !parts.as_ref().is_some_and(has_keys)
            && let Some((statement, found)) =
                constant_operands::with_places(statement, (parameters, places))
            && let with_constants = attempt.with_parameters(places + found.len())
            && let Some(by_constants) = self.parts_of_plan(&statement, with_constants)
            && (parts.is_none() || has_keys(&by_constants))
        {
            parts = Some(by_constants);
            constants = Some(found);
        }
        // What no index serves reads a small table from end to end.
        let parts = parts.or_else(|| match statement {
            Statement::Query(query)
                if !has_long_condition(query) && !read::is_of_large_table(self, query) =>
            {
                let action = match read::Read::compile_whole(self, query, text) {
                    Some((read, table)) => Action::Read(Box::new(read), table),
                    None => {
                        let attempt = attempt.with_parameters(places);
                        let whole = over_rows::OverRows::compile_whole(self, query, attempt)?;
                        Action::OverRows(Box::new(whole))
                    }
                };
                Some(PartsOfPlan::of(action, statement))
            }
            _ => None,
        });
        Some(DirectPlan {
            given,
            constants,
            window,
            ..parts?.into_plan(parameters)
        })
    }

    /// What a statement's plan consists of besides what it is given, which has so many places.
    fn parts_of_plan(&self, statement: &Statement, attempt: Attempt<'_>) -> Option<PartsOfPlan> {
        let with_places = match statement {
            Statement::Query(query) => subquery::with_places(self, query, attempt),
            _ => None,
        };
        let (rewritten, subqueries) = match with_places {
            Some((query, found)) => (Some(Statement::Query(Box::new(query))), found),
            None => (None, Vec::new()),
        };
        let statement = rewritten.as_ref().unwrap_or(statement);
        let mut list = Vec::new();
        let action = match statement {
            Statement::Query(query) => {
                let attempt = attempt.with_parameters(attempt.parameters + subqueries.len());
                let by_list = || {
                    let (query, found) = subquery::with_list(self, query, attempt)?;
                    let with_list = attempt.with_parameters(attempt.parameters + 1);
                    let action = self.query_action(&query, with_list)?;
                    // Lists are keys, and not tested row by row.
                    let is_key = match &action {
                        Action::Read(read, _) => read.access.binds_list(),
                        // Values that an UPDATE computes of the rows of one table.
                        Action::OverRows(query) => {
                            query.rows.tables.len() == 1 && query.rows.binds_list()
                        }
                        _ => false,
                    };
                    is_key.then_some((action, found))
                };
                if let Some(action) = self.plain_action(query, attempt) {
                    action
                } else if !query.locks.is_empty() {
                    let lock = lock_found::LockFound::compile(self, query, attempt)?;
                    Action::LockFound(Box::new(lock))
                } else if has_long_condition(query) {
                    // It would be copied.
                    return None;
                } else if let Some((action, found)) = by_list() {
                    // Where other keys find few rows, the subquery is asked for each of these.
                    let has_few_rows = match &action {
                        Action::Read(read, table) => {
                            let rows = read.access.usual_rows_without_list(table);
                            rows.is_some_and(|rows| rows <= MAX_ASKED_ROWS)
                        }
                        _ => false,
                    };
                    let asked = || self.rewritten_action(query, attempt);
                    match has_few_rows.then(asked).flatten() {
                        Some(asked) => asked,
                        None => {
                            list = found;
                            action
                        }
                    }
                } else {
                    let rewritten = self.rewritten_action(query, attempt);
                    rewritten.or_else(|| {
                        let joined = derived::rows_as_join(query)?;
                        self.query_action(&joined, attempt)
                    })?
                }
            }
            Statement::Update(update) => match change::Update::compile(self, update) {
                Some((update, table)) => Action::Update(Box::new(update), table),
                None => {
                    let change = change_found::ChangeFound::of_update(self, update, attempt)?;
                    Action::ChangeFound(Box::new(change))
                }
            },
            Statement::Delete(delete) => match change::Delete::compile(self, delete) {
                Some((delete, table)) => Action::Delete(Box::new(delete), table),
                None => {
                    let change = change_found::ChangeFound::of_delete(self, delete, attempt)?;
                    Action::ChangeFound(Box::new(change))
                }
            },
            Statement::Insert(insert) => match insert::Insert::compile(self, insert) {
                Some(insert) => Action::Insert(Box::new(insert)),
                None => {
                    let insert = insert_select::InsertSelect::compile(self, insert, attempt)?;
                    Action::InsertSelect(Box::new(insert))
                }
            },
            _ => return None,
        };
        let mut parts = PartsOfPlan::of(action, statement);
        for subquery in subqueries.iter().chain(&list) {
            parts.needs.extend_from_slice(subquery.needs());
        }
        Some(PartsOfPlan {
            subqueries,
            list,
            ..parts
        })
    }

    fn query_action(&self, query: &ast::Query, attempt: Attempt<'_>) -> Option<Action> {
        let action = self.plain_action(query, attempt);
        action.or_else(|| self.rewritten_action(query, attempt))
    }

    /// With EXISTS in place of IN, ANY and ALL.
    fn rewritten_action(&self, query: &ast::Query, attempt: Attempt<'_>) -> Option<Action> {
        let _rewriting = Rewriting::enter()?;
        let with_exists = quantified::with_exists(self, query)?;
        self.query_action(&with_exists, attempt)
    }

    fn plain_action(&self, query: &ast::Query, attempt: Attempt<'_>) -> Option<Action> {
        if has_long_condition(query) {
            return None;
        }
        let without_using = using::without_using(query);
        let query = without_using.as_ref().unwrap_or(query);
        if let Some(constants) = constants::Constants::compile(self, query, attempt.text) {
            return Some(Action::Constants(Box::new(constants)));
        }
        if let Some((read, table)) = read::Read::compile(self, query, attempt.text) {
            return Some(Action::Read(Box::new(read), table));
        }
        if let Some(join) = join::Join::compile(self, query, attempt) {
            return Some(Action::Join(Box::new(join)));
        }
        if let Some(union) = derived::Union::compile(self, query, attempt) {
            return Some(Action::Union(Box::new(union)));
        }
        if let Some(query) = over_rows::OverRows::compile(self, query, attempt) {
            return Some(Action::OverRows(Box::new(query)));
        }
        let joined = derived::semijoin_as_join(query)?;
        self.query_action(&joined, attempt)
    }

    /// The parameters of a run, with what the session gives and what constants come to besides; `None` if that is for
    /// the vectorised path to read.
    fn places_of<'p>(
        &mut self,
        plan: &DirectPlan,
        parameters: &'p [Value],
    ) -> Option<Cow<'p, [Value]>> {
        let given = self.given_beside(plan, parameters)?;
        match &plan.constants {
            None => Some(given),
            Some(constants) => with_constants(self, constants, &given).map(Cow::Owned),
        }
    }

    /// As [`Self::places_of`], without computing anything: `None` also if there is something to be computed.
    fn given_of<'p>(&self, plan: &DirectPlan, parameters: &'p [Value]) -> Option<Cow<'p, [Value]>> {
        match plan.constants {
            None => self.given_beside(plan, parameters),
            Some(_) => None,
        }
    }

    fn given_beside<'p>(
        &self,
        plan: &DirectPlan,
        parameters: &'p [Value],
    ) -> Option<Cow<'p, [Value]>> {
        if plan.given.is_empty() {
            return Some(Cow::Borrowed(parameters));
        }
        let mut all = parameters.to_vec();
        for given in &plan.given {
            all.push(given.literal_value(self, parameters)?);
        }
        Some(Cow::Owned(all))
    }

    /// Runs a plan that [is current](DirectPlan::is_current), in the circumstances that it was made for, as
    /// `dispatch` runs statements. `spelled` tells how literals are written. False: nothing has happened, and the
    /// statement is to be dispatched.
    pub(crate) fn run_direct(
        &mut self,
        plan: &DirectPlan,
        (parameters, spelled): (&[Value], Spelled<'_>),
        sink: &mut dyn ResultSink,
    ) -> Result<bool> {
        let given = (parameters, spelled);
        let outcome = match &plan.window {
            None => self.run_direct_to_end(plan, given, sink),
            // The session's limit is for queries without their own.
            Some(window) => match window.sink(parameters, sink) {
                Some(mut sink) if self.variables.sql_select_limit() == u64::MAX => {
                    self.run_direct_to_end(plan, given, &mut sink)
                }
                _ => Ok(false),
            },
        };
        if self.variables.traces_optimizer() {
            self.trace_run(plan, &outcome);
        }
        outcome
    }

    /// The same of all rows of a query.
    fn run_direct_to_end(
        &mut self,
        plan: &DirectPlan,
        (parameters, spelled): (&[Value], Spelled<'_>),
        sink: &mut dyn ResultSink,
    ) -> Result<bool> {
        if plan.given_up.skips_run() {
            return Ok(false);
        }
        let read_before = self.handle.counters.rows_read.get();
        let is_done = self.around_direct(plan, parameters, |session, parameters| {
            session.run_parts(plan, (parameters, spelled), sink)
        })?;
        let read = self.handle.counters.rows_read.get();
        if is_done || read.saturating_sub(read_before) >= COSTLY_ROWS {
            plan.given_up.note(is_done);
        }
        Ok(is_done)
    }

    /// What is done before and after a plan is run.
    fn around_direct(
        &mut self,
        plan: &DirectPlan,
        parameters: &[Value],
        run: impl FnOnce(&mut Session, &[Value]) -> Result<bool>,
    ) -> Result<bool> {
        // Locked tables go by the names of references, which it does not have.
        if self.table_locks.are_held() {
            return Ok(false);
        }
        self.workers.planning().pause();
        let warnings = self.warnings.clone();
        self.clear_warnings();
        let Some(parameters) = self.places_of(plan, parameters) else {
            self.warnings = warnings;
            self.findings.truncated_texts.take();
            self.findings.oversized_results.take();
            return Ok(false);
        };
        // A panic may have left them.
        self.statement.view = None;
        self.statement.searched = None;
        if !self.client.has_all_rights() && !self.client.meets_needs(&plan.needs) {
            self.warnings = warnings;
            return Ok(false);
        }
        self.begin_implicitly();
        let parameters = operand::as_literals(&parameters);
        let is_query = plan.command() == Command::Select;
        let _timer = self.limit_time(is_query);
        let outcome = run(self, &parameters);
        match outcome {
            Ok(false) => {
                self.warnings = warnings;
                // The vectorised path finds the same again.
                self.findings.truncated_texts.take();
                self.findings.oversized_results.take();
            }
            _ => {
                if is_query {
                    self.outcome.last_query_cost = COST_WITHOUT_ESTIMATE;
                }
                // EXPLAIN ANALYZE is the command that is counted then.
                if !self.statement.is_explained {
                    self.handle.count_reads(plan.reads());
                    self.handle.commands.count(plan.command());
                    self.handle.commands.count(Command::Direct);
                }
            }
        }
        outcome
    }

    /// Parameters with what subqueries come to. `None`: the vectorised path has to do it.
    fn parameters_and_found(
        &mut self,
        plan: &DirectPlan,
        parameters: &[Value],
    ) -> Result<Option<Vec<Value>>> {
        let mut all = parameters.to_vec();
        for subquery in &plan.subqueries {
            match subquery.number(self, parameters)? {
                Some(value) => all.push(value),
                None => return Ok(None),
            }
        }
        if plan.list.is_empty() {
            return Ok(Some(all));
        }
        let mut list = Vec::new();
        for subquery in &plan.list {
            if !subquery.add_to_list(self, &all, &mut list)? {
                return Ok(None);
            }
        }
        all.push(Value::UInt(list.len() as u64));
        all.append(&mut list);
        Ok(Some(all))
    }

    /// Runs a plan inside of another one, with the parameters of that. False: the vectorised path has to do it.
    fn run_inner(
        &mut self,
        query: &DirectPlan,
        (parameters, spelled): (&[Value], Spelled<'_>),
        sink: &mut dyn ResultSink,
    ) -> Result<bool> {
        let Some(parameters) = self.places_of(query, parameters) else {
            return Ok(false);
        };
        self.run_parts(query, (&parameters, spelled), sink)
    }

    /// Runs what a plan consists of.
    fn run_parts(
        &mut self,
        plan: &DirectPlan,
        (parameters, spelled): (&[Value], Spelled<'_>),
        sink: &mut dyn ResultSink,
    ) -> Result<bool> {
        self.with_found(plan, parameters, |session, all| {
            session.run_action(&plan.action, (all, spelled), sink)
        })
    }

    /// Runs something with the parameters of a plan and what its subqueries come to, all of it through one view.
    fn with_found(
        &mut self,
        plan: &DirectPlan,
        parameters: &[Value],
        run: impl FnOnce(&mut Session, &[Value]) -> Result<bool>,
    ) -> Result<bool> {
        if !plan.has_subqueries() {
            return run(self, parameters);
        }
        let view = match self.statement.view.clone() {
            Some(view) => view,
            None => self.read_view()?,
        };
        let before = self.statement.view.replace(view);
        let all = self.parameters_and_found(plan, parameters);
        let outcome = all.and_then(|all| match all {
            Some(all) => run(self, &all),
            None => Ok(false),
        });
        self.statement.view = before;
        outcome
    }

    /// False: the vectorised path has to do it.
    fn run_action(
        &mut self,
        action: &Action,
        given: (&[Value], Spelled<'_>),
        sink: &mut dyn ResultSink,
    ) -> Result<bool> {
        let (parameters, _) = given;
        match action {
            Action::Read(read, table) => match read.locking {
                Some(locking) => {
                    let read = (read.as_ref(), locking);
                    locking::run_direct_locking_read(self, read, table, given, sink)
                }
                None => read::run_direct_read(self, read, table, given, sink),
            },
            Action::Join(join) => join_walk::run_direct_join(self, join, parameters, sink),
            Action::OverRows(query) => over_rows::run_direct_over_rows(self, query, given, sink),
            Action::Union(union) => derived::run_direct_union(self, union, parameters, sink),
            Action::LockFound(lock) => lock_found::run_direct_lock_found(self, lock, given, sink),
            Action::IntoVariables(into) => {
                into_variables::run_direct_into_variables(self, into, parameters, sink)
            }
            Action::SetVariable(set) => {
                into_variables::run_direct_set_variable(self, set, parameters, sink)
            }
            Action::Constants(constants) => {
                constants::run_direct_constants(self, constants, given, sink)
            }
            Action::Update(update, table) => {
                change::run_direct_update(self, update, table, parameters, sink)
            }
            Action::Delete(delete, table) => {
                change::run_direct_delete(self, delete, table, parameters, sink)
            }
            Action::ChangeFound(change) => {
                change_found::run_direct_change_found(self, change, parameters, sink)
            }
            Action::Insert(insert) => {
                insert::run_direct_insert(self, insert, (parameters, None), sink)
            }
            Action::InsertSelect(insert) => {
                insert_select::run_direct_insert_select(self, insert, parameters, sink)
            }
        }
    }
}
