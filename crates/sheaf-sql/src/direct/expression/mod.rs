//! Expressions that direct plans leave to the typing rule and its kernels: whatever is computed from one row.
//!
//! There is one meaning of MySQL's functions, that of the vectorised path. An expression is planned as the item of a
//! query over its table, once, and evaluated over batches of one row:
//!
//! ```text
//!   SET c = CONCAT(c, ?), d = NOW()          concat(c, $0)       over   [ c | $0 ] = [ 'abc' | 'x' ]
//! ```
//!
//! What changes from run to run are its *inputs*: parameters, user variables, the clock. Where types alone decide
//! what an expression means, an input is one more column of the batch. Elsewhere its value is a part of the
//! expression, as a literal is: the pattern of LIKE, the digits of ROUND, what is compared with a date. So a session
//! keeps an expression for each combination of such values that it has met lately.
//!
//! An expression is a session's own, although plans are shared. It notes in the session which texts it has cut to
//! numbers, and it holds as long as the [circumstances](Circumstances) are the same.
//!
//! | file | what it holds |
//! |---|---|
//! | [`row_query`] | filters, lists, groups and orders of rows, without operators |
//! | [`mod@query_instance`] | such a query for some values of what a run is given |
//! | [`constant_operands`] | operands that are computed of constants |

mod collector;
pub(super) mod constant_operands;
mod input;
pub(super) mod query_instance;
pub(super) mod row_query;

use sheaf_exec::value_array::array_of;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch, RecordBatchOptions};
use arrow::datatypes::{
    DataType, Date32Type, Decimal128Type, Decimal256Type, DurationMicrosecondType, Field, FieldRef,
    Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, Schema, SchemaRef,
    TimeUnit, TimestampMicrosecondType, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use datafusion_physical_expr::PhysicalExpr;
use sheaf_access::{arrow_field, wide_of};
use sheaf_exec::functions::types::{Coercibility, SqlType};
use sheaf_frontend::value_literal::value_literal;
use sheaf_frontend::walk::{walk_expression, walk_query};
use sheaf_memory::kept_by;
use sheaf_table::Column;
use sheaf_types::{ColumnType, Value};
use smallvec::SmallVec;
use sqlparser::ast;

pub(super) use self::collector::Collector;
pub(super) use self::input::Inputs;
use self::input::{
    Free, INPUT, Input, Key, KeyPart, Substitution, array_of_input, input_number, is_long,
};
use super::syntax::given::Given;
use super::syntax::headers::{ComputedHeaders, ShownColumns, Spelled};
use crate::change::insert::on_duplicate::KeptExpressions;
use crate::error::{Result, SqlError};
use crate::parser::Parsed;
use crate::query::rows::value_at;
use crate::session::Session;
use crate::session::circumstances::Circumstances;
use crate::session::result::{Cell, ColumnMeta, Origin};
use query_instance::QueryInstance;

/// Expressions that a session keeps, each with some kilobytes of its own. When there are more it begins anew.
const MAX_KEPT: usize = 256;
/// And what they take together, in bytes. One that takes more alone, such as with a long literal, is kept until the end
/// of its statement.
pub(crate) const MAX_KEPT_BYTES: usize = 512 << 10;
/// The same while the session rests: there may be many that do.
pub(crate) const MAX_RESTING_BYTES: usize = 64 << 10;
/// Combinations of values for which the expressions of a plan are kept.
const MAX_INSTANCES: usize = 8;

/// The kind of row that inputs are columns of. No identifier is written like this, nor like [`INPUT`].
pub(super) const INPUTS: &str = "\0inputs";

/// Expressions of one plan, with names in the places of their inputs.
#[derive(Debug)]
pub(super) struct Expressions {
    kinds: Vec<Kind>,
    items: Vec<ast::Expr>,
    condition: Option<ast::Expr>,
    inputs: Inputs,
    /// A client is told of their types.
    are_shown: bool,
    /// They are values of rows that a statement writes.
    are_stored: bool,
}

impl Expressions {
    /// How many values they have.
    pub(super) fn len(&self) -> usize {
        self.items.len()
    }

    /// Whether so many parameters are all that they take.
    pub(super) fn are_given(&self, parameters: usize) -> bool {
        let mut inputs = self.inputs.list.iter();
        inputs.all(|input| !matches!(input.given, Given::Parameter(number) if number >= parameters))
    }

    /// Whether they look at a column of a row.
    pub(super) fn read(&self, column: usize) -> bool {
        let mut columns = self.kinds.iter().flat_map(|kind| &kind.columns);
        columns.any(|(known, _)| *known == column)
    }
}

/// One kind of row: its name, and the columns that are read.
#[derive(Debug)]
struct Kind {
    number: usize,
    /// Columns may lack values that they cannot lack in the table: the row is being made.
    is_unfinished: bool,
    name: String,
    columns: Vec<(usize, Column)>,
}

/// The expressions of a plan, planned for some values.
#[derive(Debug)]
pub(super) struct Instance {
    /// The columns of a row's batch.
    schema: SchemaRef,
    expressions: Vec<Arc<dyn PhysicalExpr>>,
    /// What all has to be true of a row.
    conjuncts: Vec<Arc<dyn PhysicalExpr>>,
    metas: Vec<ColumnMeta>,
    fields: Vec<FieldRef>,
    /// The columns that are read, with their kinds of rows.
    columns: Vec<(usize, usize, ColumnType)>,
    /// The inputs that are columns behind these.
    free: SmallVec<[usize; 4]>,
    /// What planning noted of constants. Each statement is told.
    noted: Vec<(u16, String)>,
}

struct Entry<I> {
    key: Key,
    /// `None`: they cannot be planned, or not so that they need nothing but their row.
    instance: Option<Arc<I>>,
    /// How results were described last.
    shown: Option<Arc<ShownColumns>>,
    /// What both were seen to take.
    instance_bytes: usize,
    shown_bytes: usize,
}

impl<I> Entry<I> {
    /// How results with these names are described: as the last time, or as `make` does it. `kept_bytes`: of all
    /// entries.
    fn shown_as(
        &mut self,
        kept_bytes: &mut usize,
        names: Vec<String>,
        make: impl FnOnce(Vec<String>) -> ShownColumns,
    ) -> Arc<ShownColumns> {
        let shown = match self.shown.take() {
            Some(shown) if shown.has_names(&names) => shown,
            _ => {
                *kept_bytes -= self.shown_bytes;
                let bytes_of_names: usize = names.iter().map(String::len).sum();
                let (shown, bytes) = kept_by(|| Arc::new(make(names)));
                self.shown_bytes = bytes + bytes_of_names;
                *kept_bytes += self.shown_bytes;
                shown
            }
        };
        self.shown = Some(Arc::clone(&shown));
        shown
    }
}

/// By the number of the plan's inputs; what was used last comes first.
type Known<I> = BTreeMap<u64, Vec<Entry<I>>>;

/// The expressions of a session.
#[derive(Default)]
pub(crate) struct ExpressionCache {
    circumstances: Option<Circumstances>,
    known: Known<Instance>,
    queries: Known<QueryInstance>,
    /// All entries together, and what they were seen to take.
    kept: usize,
    kept_bytes: usize,
}

impl ExpressionCache {
    /// Whether it begins anew before it takes another entry.
    fn is_full(&self) -> bool {
        self.kept >= MAX_KEPT || self.kept_bytes >= MAX_KEPT_BYTES
    }

    /// The session rests, or its statement has ended: what is much is not kept for the next one.
    pub(crate) fn let_go(&mut self, most_bytes: usize) {
        if self.kept_bytes > most_bytes {
            *self = ExpressionCache::default();
        }
    }
}

/// Expressions with the inputs of one run.
#[derive(Debug)]
pub(super) struct Evaluator {
    instance: Arc<Instance>,
    inputs: SmallVec<[ArrayRef; 4]>,
}

/// The expressions of a plan for a run with these parameters. `None`: the vectorised path has to do it.
pub(super) fn evaluator(
    session: &mut Session,
    expressions: &Expressions,
    parameters: &[Value],
) -> Option<Evaluator> {
    let values = inputs_of(session, &expressions.inputs, parameters)?;
    let make = |session: &mut Session, _| {
        // It serves all expressions of the session.
        session.task_context();
        let key = expressions.inputs.key(&values, KeyPart::of);
        (key, instance_of(session, expressions, &values))
    };
    let given = (&expressions.inputs, values.as_slice());
    let instance = kept_instance(session, given, |cache| &mut cache.known, make)?;
    if !session.findings.truncated_texts.note_again(&instance.noted) {
        return None;
    }
    let inputs = free_arrays(&instance.free, &values)?;
    Some(Evaluator { inputs, instance })
}

/// The plan of a query over rows for a run with these parameters, and the inputs that are its columns.
///
/// Where a query with columns in the places of inputs `is_bound_twice`, a plan's first run gets one for its own
/// constants, which is bound once. Most queries that have new texts are not seen again.
pub(super) fn query_instance(
    session: &mut Session,
    inputs: &Inputs,
    parameters: &[Value],
    (is_bound_twice, make): (
        impl Fn(&PlanInputs) -> bool,
        impl Fn(&mut Session, PlanInputs) -> Option<QueryInstance>,
    ),
) -> Option<(Arc<QueryInstance>, SmallVec<[ArrayRef; 4]>)> {
    let values = inputs_of(session, inputs, parameters)?;
    let is_short = |(input, value): (&Input, &Value)| {
        matches!(input.given, Given::Parameter(_)) && !is_long(value)
    };
    let make = |session: &mut Session, is_first: bool| {
        let by_class = || inputs.key(&values, KeyPart::of);
        let given = PlanInputs::new(session, inputs, &values);
        if is_first
            && inputs.list.iter().zip(&values).all(is_short)
            && is_bound_twice(&given)
            && let Some(instance) = make(session, given.as_constants())
        {
            let key = inputs.key(&values, |_, value| KeyPart::Constant(value.clone()));
            return (key, Some(instance));
        }
        (by_class(), make(session, given))
    };
    let given = (inputs, values.as_slice());
    let instance = kept_instance(session, given, |cache| &mut cache.queries, make)?;
    let arrays = free_arrays(&instance.free, &values)?;
    Some((instance, arrays))
}

/// As [`evaluator`], for a select list: with how its columns are described.
pub(super) fn evaluator_of_list(
    session: &mut Session,
    (expressions, headers): (&Expressions, &ComputedHeaders),
    list: (&[ColumnMeta], &SchemaRef),
    parameters: &[Value],
    spelled: Spelled<'_>,
) -> Option<(Evaluator, Arc<ShownColumns>)> {
    let evaluator = evaluator(session, expressions, parameters)?;
    let names = headers.names(parameters, spelled)?;
    let Instance { metas, fields, .. } = evaluator.instance.as_ref();
    let shown = session.expressions.with(|cache: &mut ExpressionCache| {
        let ExpressionCache {
            known, kept_bytes, ..
        } = cache;
        let entries = known.get_mut(&expressions.inputs.id)?;
        let entry = entries.first_mut()?;
        Some(entry.shown_as(kept_bytes, names, |names| {
            ShownColumns::new(list, headers, names, (metas, fields))
        }))
    })?;
    Some((evaluator, shown))
}

/// `None`: a value is too long to be a part of an expression, or the statement shall stop, which is seen elsewhere.
fn inputs_of(
    session: &Session,
    inputs: &Inputs,
    parameters: &[Value],
) -> Option<SmallVec<[Value; 4]>> {
    let mut values = SmallVec::with_capacity(inputs.list.len());
    for input in &inputs.list {
        let value = input.given.value(session, parameters);
        // Each is a copy.
        let fits = !is_long(&value) || input.class(&value).is_some();
        if !fits || !sheaf_memory::may_go_on() {
            return None;
        }
        values.push(value);
    }
    Some(values)
}

/// What fits the values of the inputs, and is first of its plan then; what `make` makes if there is nothing, with
/// what it fits. `make` is told whether the plan has had nothing so far.
fn kept_instance<I>(
    session: &mut Session,
    (inputs, values): (&Inputs, &[Value]),
    kept: impl Fn(&mut ExpressionCache) -> &mut Known<I>,
    make: impl FnOnce(&mut Session, bool) -> (Key, Option<I>),
) -> Option<Arc<I>> {
    let mut cache: Box<ExpressionCache> = session.expressions.take();
    let holds = cache.circumstances.as_ref();
    let holds = holds.is_some_and(|known| session.is_still_under(known));
    if !holds || cache.is_full() {
        *cache = ExpressionCache {
            circumstances: Some(session.circumstances_of_day()),
            ..ExpressionCache::default()
        };
    }
    let fits = |entry: &Entry<I>| {
        let parts = entry.key.iter().zip(&inputs.list).zip(values);
        parts
            .into_iter()
            .all(|((part, input), value)| part.fits(input, value))
    };
    let entries = kept(&mut cache).entry(inputs.id).or_default();
    match entries.iter().position(fits) {
        Some(found) => entries[..=found].rotate_right(1),
        None => {
            let is_full = entries.len() == MAX_INSTANCES;
            let left = is_full.then(|| entries.pop()).flatten();
            let left_bytes = left.map_or(0, |entry| entry.instance_bytes + entry.shown_bytes);
            let is_first = entries.is_empty();
            let ((key, instance), instance_bytes) = kept_by(|| make(session, is_first));
            let entry = Entry {
                key,
                instance: instance.map(Arc::new),
                shown: None,
                instance_bytes,
                shown_bytes: 0,
            };
            entries.insert(0, entry);
            cache.kept += usize::from(!is_full);
            cache.kept_bytes += instance_bytes;
            cache.kept_bytes -= left_bytes;
        }
    }
    let entries = kept(&mut cache).get(&inputs.id);
    let instance = entries.and_then(|entries| entries.first()?.instance.clone());
    session.expressions.put(cache);
    instance
}

fn instance_of(session: &Session, expressions: &Expressions, values: &[Value]) -> Option<Instance> {
    // Of conditions, divisions by constants are noted. What changes rows has no condition here that divides.
    if expressions.are_shown || expressions.are_stored || expressions.items.is_empty() {
        session
            .findings
            .watch_divisions(session.variables.sql_mode());
    }
    let noted_before = session.findings.truncated_texts.messages();
    let mut kinds: Vec<(&str, SchemaRef)> = Vec::with_capacity(expressions.kinds.len() + 1);
    for kind in &expressions.kinds {
        let columns = kind.columns.iter();
        let field = |column: &Column| {
            let is_nullable = column.nullable || kind.is_unfinished;
            arrow_field(column).with_nullable(is_nullable)
        };
        let fields: Vec<Field> = columns.map(|(_, column)| field(column)).collect();
        kinds.push((&kind.name, Arc::new(Schema::new(fields))));
    }
    let inputs = &expressions.inputs;
    let PlanInputs {
        written,
        free,
        fields,
        constants,
    } = PlanInputs::new(session, inputs, values);
    let one = ast::Expr::value(ast::Value::Number("1".into(), false));
    let items = match expressions.items.is_empty() {
        true => std::slice::from_ref(&one),
        false => expressions.items.as_slice(),
    };
    let has_clock = |number: &usize| matches!(inputs.list[*number].given, Given::Clock(_));
    // Constants are never NULL, to a client, also where they are computed from the clock.
    let shown = match expressions.are_shown && free.iter().any(has_clock) {
        true => {
            let list = (with_inputs(items, &constants), None);
            let planned = session.plan_over_rows(Parsed::new(list, ""), &kinds).ok()?;
            Some(session.metas_of(&planned, true).ok()?)
        }
        false => None,
    };
    if !fields.is_empty() {
        kinds.push((INPUTS, Arc::new(Schema::new(fields))));
    }
    let condition = expressions.condition.as_ref();
    let condition = condition.map(|condition| with_input(condition, &written));
    let items = with_inputs(items, &written);
    let planned = session
        .plan_over_rows(Parsed::new((items, condition), ""), &kinds)
        .ok()?;
    let metas = match shown {
        Some(metas) => metas,
        None => session.metas_of(&planned, expressions.are_shown).ok()?,
    };
    let fields = planned.fields().ok()?;
    let has_cells = |field: &FieldRef| has_cells(field.data_type());
    // What comes to a column of the table, as IFNULL(column, NULL) does, is described as that.
    let is_column = |meta: &ColumnMeta| !meta.org_name.is_empty() && meta.table != INPUTS;
    let is_whole =
        fields.iter().all(has_cells) && !(expressions.are_shown && metas.iter().any(is_column));
    let columns = expressions.kinds.iter().flat_map(|kind| {
        let columns = kind.columns.iter();
        columns.map(|(position, column)| (kind.number, *position, column.ty.clone()))
    });
    is_whole.then(|| Instance {
        schema: planned.schema,
        expressions: planned.expressions,
        conjuncts: planned.conjuncts,
        metas,
        fields,
        columns: columns.collect(),
        free,
        noted: session
            .findings
            .truncated_texts
            .messages_after(noted_before),
    })
}

impl ExpressionCache {
    /// How the columns of a query over rows are described whose plan was found last.
    pub(super) fn shown_of_query(
        &mut self,
        inputs: &Inputs,
        names: Vec<String>,
        make: impl FnOnce(Vec<String>) -> ShownColumns,
    ) -> Option<Arc<ShownColumns>> {
        let entries = self.queries.get_mut(&inputs.id)?;
        let entry = entries.first_mut()?;
        Some(entry.shown_as(&mut self.kept_bytes, names, make))
    }
}

/// A condition as text, each of its conjuncts in parentheses.
pub(super) fn written_condition(condition: &ast::Expr) -> String {
    match condition {
        ast::Expr::Nested(_) => condition.to_string(),
        ast::Expr::BinaryOp {
            left,
            op: ast::BinaryOperator::And,
            right,
        } => {
            let conjuncts = [left, right].map(|conjunct| written_condition(conjunct));
            conjuncts.join(" and ")
        }
        other => format!("({other})"),
    }
}

impl Inputs {
    /// A query with its inputs as they stand in the statement. `parameter`: what stands for a parameter by its place.
    pub(super) fn put_written_into(
        &self,
        query: Cow<'_, ast::Query>,
        parameter: &dyn Fn(usize) -> ast::Expr,
    ) -> ast::Query {
        with_inputs_of_query(query, &self.written(parameter))
    }
}

/// What a plan that is made is given.
pub(super) struct PlanInputs {
    /// For each input what takes its place, if it is no column.
    written: Vec<Option<ast::Expr>>,
    pub(super) free: SmallVec<[usize; 4]>,
    /// The fields of the inputs that are columns.
    pub(super) fields: Vec<Field>,
    /// For each input what a client would have written in its place.
    constants: Vec<Option<ast::Expr>>,
}

impl PlanInputs {
    fn new(session: &Session, inputs: &Inputs, values: &[Value]) -> PlanInputs {
        let mut made = PlanInputs {
            written: Vec::with_capacity(values.len()),
            free: SmallVec::new(),
            fields: Vec::new(),
            constants: Vec::with_capacity(values.len()),
        };
        for (number, (input, value)) in inputs.list.iter().zip(values).enumerate() {
            let constant = match &input.given {
                Given::Parameter(_) => Some(value_literal(value)),
                _ => Some(input.written.clone()),
            };
            made.written.push(match input.class(value) {
                Some(class) => {
                    made.free.push(number);
                    let name = format!("{INPUT}{number}");
                    made.fields.push(class.field(name, session));
                    None
                }
                None => constant.clone(),
            });
            made.constants.push(constant);
        }
        made
    }

    /// The same with constants in the places of all inputs.
    fn as_constants(&self) -> PlanInputs {
        PlanInputs {
            written: self.constants.clone(),
            free: SmallVec::new(),
            fields: Vec::new(),
            constants: self.constants.clone(),
        }
    }

    /// A query with what takes the places of its inputs.
    pub(super) fn put_into<'q>(&self, query: &'q ast::Query) -> Cow<'q, ast::Query> {
        match self.written.iter().any(Option::is_some) {
            true => Cow::Owned(with_inputs_of_query(Cow::Borrowed(query), &self.written)),
            false => Cow::Borrowed(query),
        }
    }

    /// The same with constants in all of them: so a client is told of its columns.
    pub(super) fn put_constants_into(&self, query: Cow<'_, ast::Query>) -> ast::Query {
        with_inputs_of_query(query, &self.constants)
    }
}

fn with_inputs_of_query(query: Cow<'_, ast::Query>, written: &[Option<ast::Expr>]) -> ast::Query {
    let mut query = query.into_owned();
    walk_query(&mut query, &mut Substitution { written });
    query
}

/// The values of the inputs that are columns, as arrays of one.
fn free_arrays(free: &[usize], values: &[Value]) -> Option<SmallVec<[ArrayRef; 4]>> {
    let arrays = free.iter().map(|number| array_of_input(&values[*number]));
    arrays.collect()
}

/// An expression with what takes the places of its inputs.
fn with_input(expr: &ast::Expr, written: &[Option<ast::Expr>]) -> ast::Expr {
    let mut expr = expr.clone();
    walk_expression(&mut expr, &mut Substitution { written });
    expr
}

/// The same of several, as a select list.
fn with_inputs(items: &[ast::Expr], written: &[Option<ast::Expr>]) -> Vec<ast::SelectItem> {
    let items = items.iter().enumerate();
    let items = items.map(|(number, item)| ast::SelectItem::ExprWithAlias {
        expr: with_input(item, written),
        // No column has such a name.
        alias: ast::Ident::with_quote('`', format!("value {number} ")),
    });
    items.collect()
}

impl Expressions {
    /// The same, as a part of a select list. A client is told how long its texts can be, for which those in the
    /// statement are constants.
    pub(super) fn shown(mut self) -> Expressions {
        for input in &mut self.inputs.list {
            if input.is_joined {
                input.free = Free::None;
            }
        }
        for item in &self.items {
            if let Some(number) = input_number(item) {
                let input = &mut self.inputs.list[number];
                if matches!(input.given, Given::Parameter(_)) {
                    input.free = Free::Numbers;
                }
            }
        }
        Expressions {
            are_shown: true,
            ..self
        }
    }

    /// The same, for values that columns are compared with.
    pub(super) fn compared(self) -> Expressions {
        Expressions {
            are_stored: false,
            ..self
        }
    }

    /// The condition that rows have to fulfil, as the statement has it. `parameter`: what stands for a parameter by its
    /// place.
    pub(super) fn condition_text(&self, parameter: &dyn Fn(usize) -> ast::Expr) -> Option<String> {
        let written = self.inputs.written(parameter);
        let condition = self.condition.as_ref()?;
        Some(written_condition(&with_input(condition, &written)))
    }

    /// The columns that are read, of the only kind of rows.
    pub(super) fn columns(&self) -> impl Iterator<Item = usize> + '_ {
        let columns = self.kinds.iter().flat_map(|kind| &kind.columns);
        columns.map(|(column, _)| *column)
    }
}

impl Evaluator {
    /// The batch of a row: `value_of` gives the values of its columns, by the kind of row and their position.
    pub(super) fn row(
        &self,
        mut value_of: impl FnMut(usize, usize) -> Result<Value>,
    ) -> Result<RecordBatch> {
        let mut arrays = Vec::with_capacity(self.instance.schema.fields().len());
        for (kind, position, ty) in &self.instance.columns {
            let value = value_of(*kind, *position)?;
            arrays.push(array_of(ty, &[&value])?);
        }
        arrays.extend(self.inputs.iter().cloned());
        let options = RecordBatchOptions::new().with_row_count(Some(1));
        let schema = Arc::clone(&self.instance.schema);
        Ok(RecordBatch::try_new_with_options(schema, arrays, &options)?)
    }

    /// How many expressions there are.
    pub(super) fn len(&self) -> usize {
        self.instance.expressions.len()
    }

    /// The value of an expression, as an array of one.
    pub(super) fn array(&self, item: usize, row: &RecordBatch) -> Result<ArrayRef> {
        let value = self.instance.expressions[item].evaluate(row)?;
        Ok(value.into_array(1)?)
    }

    pub(super) fn value(&self, item: usize, row: &RecordBatch) -> Result<Value> {
        value_at(self.array(item, row)?.as_ref(), 0)
    }

    /// Whether an expression is text that is compared by the collation of any column, as a literal is.
    pub(super) fn yields_to_columns(&self, item: usize) -> bool {
        matches!(
            SqlType::of(&self.instance.fields[item]),
            SqlType::Text {
                coercibility: Coercibility::Coercible,
                ..
            }
        )
    }

    pub(super) fn origin(&self, item: usize) -> Origin {
        Origin::from(&self.instance.metas[item])
    }

    /// Whether a row fulfils the condition. What a conjunct has decided the next ones are not asked, which may fail.
    pub(super) fn passes(&self, row: &RecordBatch) -> Result<bool> {
        for conjunct in &self.instance.conjuncts {
            let value = conjunct.evaluate(row)?.into_array(1)?;
            let truth = value.as_boolean_opt();
            let truth =
                truth.ok_or_else(|| SqlError::unknown("a condition without a truth value"))?;
            if truth.is_null(0) || !truth.value(0) {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// Expressions of ON DUPLICATE KEY UPDATE: over the conflicting row and the row that was to be inserted.
pub(super) struct OverBothRows(pub(super) Evaluator);

impl KeptExpressions for OverBothRows {
    fn value(&self, item: usize, rows: [&[Value]; 2]) -> Result<(Value, Origin)> {
        let batch = self.0.row(|kind, column| Ok(rows[kind][column].clone()))?;
        Ok((self.0.value(item, &batch)?, self.0.origin(item)))
    }
}

/// The value in an array of one, for the client.
pub(super) fn cell_of(array: &ArrayRef) -> Cell<'_> {
    if array.is_null(0) {
        return Cell::Null;
    }
    match array.data_type() {
        DataType::Int8 => Cell::Signed(array.as_primitive::<Int8Type>().value(0).into()),
        DataType::Int16 => Cell::Signed(array.as_primitive::<Int16Type>().value(0).into()),
        DataType::Int32 => Cell::Signed(array.as_primitive::<Int32Type>().value(0).into()),
        DataType::Int64 => Cell::Signed(array.as_primitive::<Int64Type>().value(0)),
        DataType::UInt8 => Cell::Unsigned(array.as_primitive::<UInt8Type>().value(0).into()),
        DataType::UInt16 => Cell::Unsigned(array.as_primitive::<UInt16Type>().value(0).into()),
        DataType::UInt32 => Cell::Unsigned(array.as_primitive::<UInt32Type>().value(0).into()),
        DataType::UInt64 => Cell::Unsigned(array.as_primitive::<UInt64Type>().value(0)),
        DataType::Float32 => Cell::Float(array.as_primitive::<Float32Type>().value(0)),
        DataType::Float64 => Cell::Double(array.as_primitive::<Float64Type>().value(0)),
        DataType::Decimal128(_, scale) => Cell::Decimal {
            unscaled: array.as_primitive::<Decimal128Type>().value(0),
            scale: *scale,
        },
        DataType::Decimal256(_, scale) => Cell::WideDecimal {
            unscaled: wide_of(array.as_primitive::<Decimal256Type>().value(0)),
            scale: *scale,
        },
        DataType::Date32 => Cell::Date(array.as_primitive::<Date32Type>().value(0)),
        DataType::Timestamp(TimeUnit::Microsecond, _) => {
            Cell::DateTime(array.as_primitive::<TimestampMicrosecondType>().value(0))
        }
        DataType::Duration(TimeUnit::Microsecond) => {
            Cell::Time(array.as_primitive::<DurationMicrosecondType>().value(0))
        }
        DataType::Utf8View => Cell::Bytes(array.as_string_view().value(0).as_bytes()),
        DataType::Binary => Cell::Bytes(array.as_binary::<i32>().value(0)),
        DataType::BinaryView => Cell::Json(array.as_binary_view().value(0)),
        _ => Cell::Null,
    }
}

/// Whether results of this type come as [cells](cell_of).
fn has_cells(ty: &DataType) -> bool {
    ty.is_integer()
        || matches!(
            ty,
            DataType::Float32
                | DataType::Float64
                | DataType::Decimal128(..)
                | DataType::Decimal256(..)
                | DataType::Date32
                | DataType::Timestamp(TimeUnit::Microsecond, _)
                | DataType::Duration(TimeUnit::Microsecond)
                | DataType::Utf8View
                | DataType::Binary
                | DataType::BinaryView
        )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialect::SheafDialect;

    fn written(text: &str) -> String {
        let dialect = SheafDialect::default();
        written_condition(&crate::parser::parse_expression(text, &dialect).expect(text))
    }

    #[test]
    fn conditions_are_written_in_parentheses() {
        assert_eq!(written("a = 1"), "(a = 1)");
        assert_eq!(written("(a = 1)"), "(a = 1)");
        let three = written("(a = 1) AND (b = 2) AND (c IS NULL OR d)");
        assert_eq!(three, "(a = 1) and (b = 2) and (c IS NULL OR d)");
    }
}
