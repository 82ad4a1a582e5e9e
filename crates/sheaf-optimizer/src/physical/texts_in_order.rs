//! The rows of an aggregate in an order in which it keeps little, where memory is short.
//!
//! Rows that are grouped by texts are sorted by these: a hash table has all of them in memory, and when it spills, once
//! more in their order. So are rows of which a MIN or MAX keeps a text for each group. What follows is about
//! GROUP_CONCAT, which keeps the texts of its rows.
//!
//! The rows are sorted by their groups first. So one group is in memory, and of that no more than is shown. DISTINCT
//! takes another sort, which says which texts were there before:
//!
//! ```text
//!   Aggregate  group_concat(case when $first then text end) by k
//!     Projection  ..., $first                   long texts are made above the sorts
//!       Sort  k, order key
//!         FirstOfEqual  k, distinct key
//!           Sort  k, distinct key
//! ```
//!
//! Rows have one order. Where functions want several, each order has copies of the rows, which stand together, and a
//! function takes the texts of its own copies. So do the grouping sets of ROLLUP, of which a row is in several:
//!
//! ```text
//!   Aggregate  group_concat(case when $use = 0 and $first then s end),
//!              group_concat(case when $use = 1 then t end),
//!              count(*) filter (where $use = 0)             by k, set
//!     Sort  k, set, $use, case $use when 0 then order of s when 1 then order of t end
//!       ...
//!         Copies  each row for each grouping set and use
//! ```
//!
//! COUNT and SUM of distinct values that are not groups of groups already
//! (`crate::logical::distinct_aggregates`) would keep sets of these values. They get uses as well.

use std::sync::Arc;

use arrow::datatypes::{DataType, Schema, SchemaRef};
use datafusion_common::tree_node::{Transformed, TreeNode};
use datafusion_common::{Result, ScalarValue, internal_datafusion_err};
use datafusion_expr::Operator;
use datafusion_expr::execution_props::ExecutionProps;
use datafusion_physical_expr::PhysicalExpr;
use datafusion_physical_expr::aggregate::{AggregateExprBuilder, AggregateFunctionExpr};
use datafusion_physical_expr::expressions::{BinaryExpr, CaseExpr, Column, Literal};
use datafusion_physical_expr::{LexOrdering, PhysicalSortExpr};
use datafusion_physical_plan::aggregates::PhysicalGroupBy;
use datafusion_physical_plan::projection::{ProjectionExec, ProjectionExpr};
use datafusion_physical_plan::sorts::sort::SortExec;
use datafusion_physical_plan::{ExecutionPlan, ExecutionPlanProperties};
use sheaf_exec::aggregates::GROUP_CONCAT;
use sheaf_exec::operator::bounded_projection::{KEPT_TEXT, is_string};
use sheaf_exec::operator::copies_exec::CopiesExec;
use sheaf_exec::operator::first_of_equal_exec::{FirstOfEqualExec, short_keys};

use crate::physical::planner::{Planner, relied_on};
use crate::physical::rules::one_stream;
use crate::physical::sort_keys::bounded_sort_keys;

/// The arguments of GROUP_CONCAT.
const TEXT: usize = 0;
const DISTINCT_KEY: usize = 3;
const ORDER_KEY: usize = 4;

type Expr = Arc<dyn PhysicalExpr>;

/// What is aggregated, and by what, in the place of what it was.
pub(super) struct InOrder {
    pub(super) plan: Arc<dyn ExecutionPlan>,
    pub(super) groups: PhysicalGroupBy,
    pub(super) functions: Vec<Arc<AggregateFunctionExpr>>,
    pub(super) filters: Vec<Option<Expr>>,
}

/// What a function wants of the rows of its group.
#[derive(Default)]
struct Use {
    /// The first ones of those that are equal in this.
    distinct: Option<Expr>,
    order: Option<Expr>,
}

impl Use {
    /// What is said over the rows below `projection`.
    fn of(
        function: &AggregateFunctionExpr,
        schema: &Schema,
        projection: &Below<'_>,
    ) -> Result<Use> {
        let arguments = function.expressions();
        if !is_group_concat(function) {
            let distinct =
                is_sorted_instead(function, schema)?.then(|| projection.below(&arguments[0]));
            return Ok(Use {
                distinct: distinct.transpose()?,
                order: None,
            });
        }
        let key = |at: usize| {
            let key = Some(&arguments[at]).filter(|key| !key.is::<Literal>());
            key.map(|key| projection.below(key)).transpose()
        };
        Ok(Use {
            distinct: key(DISTINCT_KEY)?,
            order: key(ORDER_KEY)?,
        })
    }

    fn is_any(&self) -> bool {
        self.distinct.is_none() && self.order.is_none()
    }

    fn is_like(&self, other: &Use) -> bool {
        let is_same = |a: &Option<Expr>, b: &Option<Expr>| match (a, b) {
            (Some(a), Some(b)) => a.eq(b),
            (a, b) => a.is_none() && b.is_none(),
        };
        is_same(&self.distinct, &other.distinct) && is_same(&self.order, &other.order)
    }
}

fn is_group_concat(function: &AggregateFunctionExpr) -> bool {
    function.fun().name() == GROUP_CONCAT
}

/// Whether the function is of distinct values that can be sorted. Floats cannot: there are two zeros.
fn is_sorted_instead(function: &AggregateFunctionExpr, schema: &Schema) -> Result<bool> {
    let is_known = matches!(function.fun().name(), "count" | "$sum");
    let [argument] = &function.expressions()[..] else {
        return Ok(false);
    };
    let ty = argument.data_type(schema)?;
    let is_sortable = !ty.is_nested() && !ty.is_floating();
    Ok(is_known && function.is_distinct() && function.order_bys().is_empty() && is_sortable)
}

/// The projection below an aggregate. Long texts are made by it, above the sorts.
struct Below<'p>(Option<&'p ProjectionExec>);

impl<'p> Below<'p> {
    fn of(plan: &'p Arc<dyn ExecutionPlan>) -> Below<'p> {
        let projection = plan.downcast_ref::<ProjectionExec>();
        Below(projection.filter(|plan| {
            let is_volatile = |expr: &Expr| Ok(expr.is_volatile_node());
            let mut list = plan.expr().iter();
            // The closure does not fail.
            !list.any(|item| item.expr.exists(is_volatile).unwrap_or(true))
        }))
    }

    /// An expression over the projection, said over its input.
    fn below(&self, expr: &Expr) -> Result<Expr> {
        let Some(projection) = self.0 else {
            return Ok(Arc::clone(expr));
        };
        let made = |expr: Expr| match expr.downcast_ref::<Column>() {
            Some(column) => Ok(Transformed::yes(Arc::clone(
                &projection.expr()[column.index()].expr,
            ))),
            None => Ok(Transformed::no(expr)),
        };
        Ok(Arc::clone(expr).transform_up(made)?.data)
    }

    fn groups(&self, groups: &PhysicalGroupBy) -> Result<PhysicalGroupBy> {
        let exprs = groups.expr().iter();
        let exprs = exprs.map(|(expr, name)| Ok((self.below(expr)?, name.clone())));
        Ok(PhysicalGroupBy::new(
            exprs.collect::<Result<_>>()?,
            groups.null_expr().to_vec(),
            groups.groups().to_vec(),
            groups.has_grouping_set(),
        ))
    }

    /// The projection above `rows`, which have more columns than its input. Says where these are.
    fn above(
        &self,
        rows: Arc<dyn ExecutionPlan>,
        own: usize,
    ) -> Result<(Arc<dyn ExecutionPlan>, usize)> {
        let Some(projection) = self.0 else {
            return Ok((rows, own));
        };
        let mut list = projection.expr().to_vec();
        let added = list.len();
        for at in own..rows.schema().fields().len() {
            list.push(ProjectionExpr {
                expr: column_of(&rows, at),
                alias: rows.schema().field(at).name().clone(),
            });
        }
        Ok((Arc::new(ProjectionExec::try_new(list, rows)?), added))
    }
}

fn column_of(plan: &Arc<dyn ExecutionPlan>, at: usize) -> Expr {
    Arc::new(Column::new(plan.schema().field(at).name(), at))
}

/// The columns that copies of rows have more.
#[derive(Clone, Copy)]
struct Copied {
    keys: usize,
    which: usize,
}

fn equals(which: &Expr, number: usize) -> Expr {
    Arc::new(BinaryExpr::new(
        Arc::clone(which),
        Operator::Eq,
        number_of(number),
    ))
}

fn number_of(number: usize) -> Expr {
    Arc::new(Literal::new(ScalarValue::UInt32(Some(number as u32))))
}

fn and(left: Option<Expr>, right: Option<Expr>) -> Option<Expr> {
    match (left, right) {
        (Some(left), Some(right)) => Some(Arc::new(BinaryExpr::new(left, Operator::And, right))),
        (left, right) => left.or(right),
    }
}

/// Whether any of the functions keeps values that can be sorted instead.
pub(super) fn keep_values(
    functions: &[Arc<AggregateFunctionExpr>],
    schema: &Schema,
) -> Result<bool> {
    for function in functions {
        if is_group_concat(function) || is_sorted_instead(function, schema)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// How many of the functions keep a text for each group, of any length, as MAX does. A hash table that spills puts all
/// of these together in a batch.
pub(super) fn texts_kept(
    functions: &[Arc<AggregateFunctionExpr>],
    schema: &Schema,
) -> Result<usize> {
    let mut kept = 0;
    for function in functions {
        let arguments = function.expressions();
        let [argument, ..] = &arguments[..] else {
            continue;
        };
        let column = argument.downcast_ref::<Column>();
        let keeps = match function.fun().name() {
            "min" | "max" => true,
            // Others are of keys of their groups.
            "any_value" => column.is_some_and(|column| column.name().starts_with(KEPT_TEXT)),
            _ => false,
        };
        kept += usize::from(keeps && is_string(&argument.data_type(schema)?));
    }
    Ok(kept)
}

/// Whether rows are grouped by texts or bytes, and by one set of keys.
pub(super) fn by_texts(groups: &PhysicalGroupBy, schema: &Schema) -> Result<bool> {
    if groups.has_grouping_set() {
        return Ok(false);
    }
    for (key, _) in groups.expr() {
        if matches!(
            key.data_type(schema)?,
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Binary
        ) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The rows in the order of their groups. An aggregate of them has one group in memory.
pub(super) fn in_order_of_groups(
    planner: &Planner<'_>,
    plan: Arc<dyn ExecutionPlan>,
    groups: &PhysicalGroupBy,
) -> Result<Arc<dyn ExecutionPlan>> {
    let keys = groups.input_exprs().into_iter();
    let sorts = Sorts {
        properties: &planner.properties,
        which: None,
        keys: keys.map(PhysicalSortExpr::new_default).collect(),
    };
    sorts.in_order(one_stream(plan), &[])
}

/// See the [module](self). Otherwise functions keep all that they have been given.
pub(super) fn in_order_of_texts(
    planner: &Planner<'_>,
    plan: Arc<dyn ExecutionPlan>,
    groups: &PhysicalGroupBy,
    functions: &[Arc<AggregateFunctionExpr>],
    filters: &[Option<Expr>],
) -> Result<InOrder> {
    let projection = Below::of(&plan);
    let mut uses: Vec<Use> = Vec::new();
    let mut use_of = Vec::with_capacity(functions.len());
    let schema = plan.schema();
    for function in functions {
        let wanted = Use::of(function, &schema, &projection)?;
        let is_distinct = wanted.distinct.is_some();
        let number = match uses.iter().position(|known| known.is_like(&wanted)) {
            // Any will do.
            _ if wanted.is_any() => 0,
            Some(known) => known,
            None => {
                uses.push(wanted);
                uses.len() - 1
            }
        };
        use_of.push((number, is_distinct));
    }
    if uses.is_empty() {
        uses.push(Use::default());
    }

    let mut rows = match projection.0 {
        Some(projection) => one_stream(Arc::clone(projection.input())),
        None => one_stream(Arc::clone(&plan)),
    };
    let own = rows.schema().fields().len();
    let groups_below = projection.groups(groups)?;
    let copied = match uses.len() > 1 || groups.has_grouping_set() {
        true => {
            let copies = CopiesExec::try_new(rows, groups_below.clone(), uses.len() as u32)?;
            rows = Arc::new(copies);
            let which = rows.schema().fields().len() - 1;
            Some(Copied { keys: own, which })
        }
        false => None,
    };
    let keys: Vec<PhysicalSortExpr> = match copied {
        Some(Copied { keys, which }) => (keys..=which).map(|at| column_of(&rows, at)).collect(),
        None => groups_below.input_exprs(),
    }
    .into_iter()
    .map(PhysicalSortExpr::new_default)
    .collect();
    let which = copied.map(|copied| column_of(&rows, copied.which));
    let mut sorts = Sorts {
        properties: &planner.properties,
        which: which.filter(|_| uses.len() > 1),
        keys,
    };
    let mut first = None;
    if uses.iter().any(|wanted| wanted.distinct.is_some()) {
        first = Some(rows.schema().fields().len());
        rows = sorts.first_of_equal(rows, &uses)?;
    }
    rows = sorts.in_order(rows, &uses)?;

    let (rows, added) = projection.above(rows, own)?;
    let above = |at: usize| column_of(&rows, added + at - own);
    let which = copied.map(|copied| above(copied.which));
    let which = which.filter(|_| uses.len() > 1);
    let is_use = |number: usize| which.as_ref().map(|which| equals(which, number));
    let mut result = InOrder {
        groups: match copied {
            Some(Copied { keys, which }) => {
                let keys = (keys..which).map(|at| {
                    let key = above(at);
                    let name = rows.schema().field(added + at - own).name().clone();
                    (key, name)
                });
                PhysicalGroupBy::new_single(keys.collect())
            }
            None => groups.clone(),
        },
        functions: Vec::with_capacity(functions.len()),
        filters: Vec::with_capacity(functions.len()),
        plan: Arc::clone(&rows),
    };
    for ((function, filter), (number, is_distinct)) in functions.iter().zip(filters).zip(use_of) {
        let is_first = first.filter(|_| is_distinct);
        let condition = and(is_use(number), is_first.map(above));
        if is_group_concat(function) {
            result.functions.push(of_its_rows(function, condition)?);
            result.filters.push(filter.clone());
            continue;
        }
        result.functions.push(match is_distinct {
            true => Arc::new(not_distinct(function, &schema)?),
            false => Arc::clone(function),
        });
        result.filters.push(and(condition, filter.clone()));
    }
    Ok(result)
}

/// The sorts of one plan.
struct Sorts<'p> {
    properties: &'p ExecutionProps,
    /// The column that tells uses apart, if there are several.
    which: Option<Expr>,
    /// Rows that are equal in these stand together.
    keys: Vec<PhysicalSortExpr>,
}

impl Sorts<'_> {
    /// The key of each use, in its own rows.
    fn of_uses(&self, keys: Vec<(usize, Expr)>) -> Result<Expr> {
        let Some(which) = &self.which else {
            let key = keys.into_iter().next();
            let key = key.ok_or_else(|| internal_datafusion_err!("a sort without a key"))?;
            return Ok(key.1);
        };
        let cases = keys
            .into_iter()
            .map(|(number, key)| (number_of(number), key));
        let cases = CaseExpr::try_new(Some(Arc::clone(which)), cases.collect(), None)?;
        Ok(Arc::new(cases))
    }

    fn bounded(&self, key: Expr) -> PhysicalSortExpr {
        let whole = PhysicalSortExpr::new_default(Arc::clone(&key));
        let bounded = bounded_sort_keys(vec![whole], self.properties);
        let bounded = bounded.into_iter().next();
        bounded.unwrap_or_else(|| PhysicalSortExpr::new_default(key))
    }

    fn sorted(
        &self,
        rows: Arc<dyn ExecutionPlan>,
        last: Vec<PhysicalSortExpr>,
    ) -> Result<(Arc<dyn ExecutionPlan>, Option<LexOrdering>)> {
        let Some(order) = LexOrdering::new(self.keys.iter().cloned().chain(last)) else {
            return Ok((rows, None));
        };
        let properties = rows.equivalence_properties();
        let rows = match properties.ordering_satisfy(order.iter().cloned())? {
            true => rows,
            false => Arc::new(SortExec::new(order.clone(), rows)) as _,
        };
        Ok((rows, Some(order)))
    }

    /// The rows with one more column, which says of which values they are the first ones.
    fn first_of_equal(
        &mut self,
        rows: Arc<dyn ExecutionPlan>,
        uses: &[Use],
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let schema = rows.schema();
        let mut by_type: Vec<(DataType, Vec<(usize, Expr)>)> = Vec::new();
        for (number, wanted) in uses.iter().enumerate() {
            let Some(key) = &wanted.distinct else {
                continue;
            };
            let ty = key.data_type(&schema)?;
            let key = (number, Arc::clone(key));
            match by_type.iter_mut().find(|(known, _)| *known == ty) {
                Some((_, keys)) => keys.push(key),
                None => by_type.push((ty, vec![key])),
            }
        }
        let mut last = Vec::with_capacity(by_type.len());
        for (ty, keys) in by_type {
            let key = self.bounded(self.of_uses(keys)?);
            last.push(match ty {
                DataType::Binary => short_keys(key.expr),
                _ => key,
            });
        }
        let (rows, order) = self.sorted(rows, last)?;
        let order = order.ok_or_else(|| internal_datafusion_err!("equal rows without a key"))?;
        Ok(Arc::new(FirstOfEqualExec::new(rows, order)))
    }

    fn in_order(
        &self,
        rows: Arc<dyn ExecutionPlan>,
        uses: &[Use],
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let keys = uses.iter().enumerate();
        let keys = keys.filter_map(|(number, wanted)| Some((number, wanted.order.clone()?)));
        let keys: Vec<(usize, Expr)> = keys.collect();
        let last = match keys.is_empty() {
            true => Vec::new(),
            false => vec![self.bounded(self.of_uses(keys)?)],
        };
        let (rows, order) = self.sorted(rows, last)?;
        Ok(match order {
            // The aggregate asks for the groups one behind the other alone, and rules would drop the rest of the order.
            Some(order) => relied_on(rows, order),
            None => rows,
        })
    }
}

/// A GROUP_CONCAT of the texts of some rows, which come in its order. It needs no keys any more.
fn of_its_rows(
    function: &AggregateFunctionExpr,
    condition: Option<Expr>,
) -> Result<Arc<AggregateFunctionExpr>> {
    let mut arguments = function.expressions();
    if let Some(condition) = condition {
        let text = Arc::clone(&arguments[TEXT]);
        arguments[TEXT] = Arc::new(CaseExpr::try_new(None, vec![(condition, text)], None)?);
    }
    for key in [DISTINCT_KEY, ORDER_KEY] {
        arguments[key] = Arc::new(Literal::new(ScalarValue::Binary(None)));
    }
    let changed = function.with_new_expressions(arguments, Vec::new());
    let changed = changed
        .ok_or_else(|| internal_datafusion_err!("GROUP_CONCAT has as many arguments as before"))?;
    Ok(Arc::new(changed))
}

/// A function of distinct values, as one of all rows that it is given.
fn not_distinct(
    function: &AggregateFunctionExpr,
    schema: &SchemaRef,
) -> Result<AggregateFunctionExpr> {
    AggregateExprBuilder::new(Arc::new(function.fun().clone()), function.expressions())
        .schema(Arc::clone(schema))
        .alias(function.name())
        .human_display(function.human_display().unwrap_or_default())
        .build()
}
