//! Subqueries that are computed for each row.
//!
//! The algebra makes joins of subqueries. What it leaves becomes a column of an [`Apply`], which runs the subquery for
//! each combination of the values that it is correlated by ([`sheaf_exec::operator::apply_exec`]), as a rule with one
//! plan for all of them ([`crate::physical::bound_subquery`]):
//!
//! ```text
//!   Projection o.id, (SELECT COUNT(*) ... t.k < o.k)      Projection o.id, $applied0
//!     o                                            -->      Apply $applied0 = (SELECT COUNT(*) ... t.k < o.k)
//!                                                             o
//! ```
//!
//! Where the subquery may find several rows, a further column says how many, and `$only_row` makes an error of that in
//! the rows that come to the value.
//!
//! Lateral queries that the algebra leaves are an [`Apply`] as well. Then it has the columns of the query, and a row
//! for each of its rows ([`sheaf_exec::operator::apply_rows_exec`]).
//!
//! If a subquery names a column of a query two levels out, the subquery between them is the one that runs for each row.
//!
//! A subquery that gives something else each time, as one with RAND() does, runs for each row even if it is not
//! correlated.

use std::cmp::Ordering;
use std::collections::HashSet;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow::datatypes::{DataType, Field, FieldRef};
use datafusion_common::metadata::FieldMetadata;
use datafusion_common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion_common::{Column, DFSchema, DFSchemaRef, Result, ScalarValue, internal_err};
use datafusion_expr::expr_rewriter::NamePreserver;
use datafusion_expr::logical_plan::{Extension, Projection, Subquery, UserDefinedLogicalNodeCore};
use datafusion_expr::{Expr, LogicalPlan};
use sheaf_exec::functions::closed::contains_varying;
use sheaf_exec::functions::control::ONLY_ROW;
use sheaf_exec::functions::scalar_function;
use sheaf_exec::lateral::{self, Lateral};
use sheaf_exec::typing::{outer_columns_of, schema_of_operands, without_or_null};

/// A query block with the value of a subquery, which is correlated with it, as a further column; or with all rows of
/// it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Apply {
    pub kind: Applied,
    pub input: Arc<LogicalPlan>,
    pub subquery: Arc<LogicalPlan>,
    /// What the subquery is correlated by, as it calls it.
    pub outer: Vec<Column>,
    /// The same, over rows of the input.
    pub parameters: Vec<Expr>,
    /// That of the input, the value, and the number of rows where there may be several; or the columns of the subquery.
    schema: DFSchemaRef,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Applied {
    /// A value for each row.
    Value,
    /// Rows for each row.
    Rows {
        /// A row without any comes once, with NULL in their place.
        keeps_rows: bool,
    },
}

impl Apply {
    /// The rows of a lateral query; `None` if it is correlated with a query further out, too, which has to be run
    /// first.
    fn lateral(lateral: &Lateral) -> Result<Option<Apply>> {
        let outer = outer_of(&lateral.query);
        let of_input = lateral.input.schema();
        if !outer.iter().all(|column| of_input.has_column(column)) {
            return Ok(None);
        }
        let parameters = outer.iter().cloned().map(Expr::Column).collect();
        let input = lateral.input.as_ref().clone();
        let query = Arc::clone(&lateral.query.subquery);
        Apply::rows(input, query, (outer, parameters), lateral.keeps_rows).map(Some)
    }

    fn rows(
        input: LogicalPlan,
        subquery: Arc<LogicalPlan>,
        (outer, parameters): (Vec<Column>, Vec<Expr>),
        keeps_rows: bool,
    ) -> Result<Apply> {
        Ok(Apply {
            kind: Applied::Rows { keeps_rows },
            schema: Arc::new(lateral::schema_of(&input, &subquery)?),
            input: Arc::new(input),
            subquery,
            outer,
            parameters,
        })
    }

    fn new(input: LogicalPlan, subquery: &Subquery, name: &str) -> Result<Apply> {
        let outer = outer_of(subquery);
        let parameters = outer.iter().cloned().map(Expr::Column).collect();
        let plan = Arc::clone(&subquery.subquery);
        Apply::of(input, plan, outer, parameters, name)
    }

    fn of(
        input: LogicalPlan,
        subquery: Arc<LogicalPlan>,
        outer: Vec<Column>,
        parameters: Vec<Expr>,
        name: &str,
    ) -> Result<Apply> {
        let value = subquery.schema().field(0).as_ref().clone();
        let value = Arc::new(value.with_name(name).with_nullable(true));
        let rows = may_have_several_rows(&subquery)
            .then(|| Arc::new(Field::new(name_of_rows(name), DataType::Int64, false)));
        let columns = input.schema().iter();
        let columns = columns.map(|(table, field)| (table.cloned(), Arc::clone(field)));
        let applied = std::iter::once(value).chain(rows);
        let columns = columns.chain(applied.map(|field| (None, field))).collect();
        let schema = DFSchema::new_with_metadata(columns, input.schema().metadata().clone())?;
        let dependencies = input.schema().functional_dependencies().clone();
        Ok(Apply {
            kind: Applied::Value,
            schema: Arc::new(schema.with_functional_dependencies(dependencies)?),
            input: Arc::new(input),
            subquery,
            outer,
            parameters,
        })
    }

    fn value_name(&self) -> &str {
        let value = self.schema.fields().get(self.input.schema().fields().len());
        value.map_or("", |value| value.name())
    }
}

impl Hash for Apply {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let columns = (&self.outer, &self.parameters);
        (self.kind, &self.input, &self.subquery, columns).hash(state);
    }
}

impl PartialOrd for Apply {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        (self == other).then_some(Ordering::Equal)
    }
}

impl UserDefinedLogicalNodeCore for Apply {
    fn name(&self) -> &str {
        "Apply"
    }

    fn inputs(&self) -> Vec<&LogicalPlan> {
        vec![&self.input]
    }

    fn schema(&self) -> &DFSchemaRef {
        &self.schema
    }

    fn expressions(&self) -> Vec<Expr> {
        self.parameters.clone()
    }

    /// Conditions on the input are tested first.
    fn prevent_predicate_push_down_columns(&self) -> HashSet<String> {
        if self.kind != Applied::Value {
            let fields = self.subquery.schema().fields().iter();
            return fields.map(|field| field.name().clone()).collect();
        }
        let name = self.value_name();
        HashSet::from([name.to_string(), name_of_rows(name)])
    }

    fn fmt_for_explain(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "Apply: {}", self.value_name())
    }

    fn with_exprs_and_inputs(
        &self,
        parameters: Vec<Expr>,
        mut inputs: Vec<LogicalPlan>,
    ) -> Result<Self> {
        let Some(input) = inputs.pop() else {
            return internal_err!("a subquery for rows without their input");
        };
        let (subquery, outer) = (Arc::clone(&self.subquery), self.outer.clone());
        if let Applied::Rows { keeps_rows } = self.kind {
            return Apply::rows(input, subquery, (outer, parameters), keeps_rows);
        }
        Apply::of(input, subquery, outer, parameters, self.value_name())
    }

    /// Whether it has a row for each of the input.
    fn supports_limit_pushdown(&self) -> bool {
        self.kind == Applied::Value
    }

    fn necessary_children_exprs(&self, output_columns: &[usize]) -> Option<Vec<Vec<usize>>> {
        let columns = self.input.schema().fields().len();
        let of_input = output_columns.iter().copied();
        // Those of the parameters are added.
        Some(vec![of_input.filter(|column| *column < columns).collect()])
    }
}

/// What a subquery is correlated by, each once.
fn outer_of(subquery: &Subquery) -> Vec<Column> {
    let mut outer: Vec<Column> = Vec::new();
    for expr in &subquery.outer_ref_columns {
        if let Expr::OuterReferenceColumn(_, column) = expr
            && !outer.contains(column)
        {
            outer.push(column.clone());
        }
    }
    outer
}

/// The column with the number of rows beside a value of this name.
fn name_of_rows(value: &str) -> String {
    format!("{value} rows")
}

fn may_have_several_rows(subquery: &LogicalPlan) -> bool {
    subquery.max_rows().is_none_or(|rows| rows > 1)
}

/// Applies the correlated subqueries of a typed plan.
pub(crate) fn with_applies(plan: LogicalPlan) -> Result<LogicalPlan> {
    Ok(Applies::default().rewrite(plan)?.data)
}

#[derive(Default)]
struct Applies {
    /// How many there are.
    count: usize,
}

impl Applies {
    fn rewrite(&mut self, plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
        let plan = plan.map_children(|input| self.rewrite(input))?;
        let plan = match plan.transformed {
            true => Transformed::yes(plan.data.recompute_schema()?),
            false => plan,
        };
        let has_subqueries = has_subqueries(&plan.data)?;
        if let LogicalPlan::Extension(extension) = &plan.data
            && let Some(lateral) = extension.node.as_any().downcast_ref::<Lateral>()
        {
            return Ok(match Apply::lateral(lateral)? {
                Some(apply) => {
                    let node = Arc::new(apply);
                    Transformed::yes(LogicalPlan::Extension(Extension { node }))
                }
                None => plan,
            });
        }
        match plan.data {
            node @ (LogicalPlan::Filter(_) | LogicalPlan::Projection(_)) if has_subqueries => {
                self.at_node(node)
            }
            node if has_subqueries => {
                let node = node.map_subqueries(|subquery| self.rewrite(subquery))?;
                let changed = plan.transformed || node.transformed;
                Ok(Transformed::new_transformed(node.data, changed))
            }
            data => Ok(Transformed { data, ..plan }),
        }
    }

    /// A filter or a select list with subqueries.
    fn at_node(&mut self, node: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
        let schema = schema_of_operands(&node)?;
        let columns = node.schema().columns();
        let is_filter = matches!(node, LogicalPlan::Filter(_));
        let names = NamePreserver::new(&node);
        let mut applied: Vec<(Subquery, String)> = Vec::new();
        let node = node.map_expressions(|expr| {
            let name = names.save(&expr);
            let replaced =
                expr.transform_down(|expr| self.subquery(expr, &schema, &mut applied))?;
            Ok(match replaced.transformed {
                true => Transformed::yes(name.restore(without_or_null(replaced.data)?.data)),
                false => replaced,
            })
        })?;
        if applied.is_empty() {
            return match node.transformed {
                true => Ok(Transformed::yes(node.data.recompute_schema()?)),
                false => Ok(node),
            };
        }
        let node = node.data.map_children(|mut input| {
            for (subquery, name) in applied.drain(..) {
                let node = Arc::new(Apply::new(input, &subquery, &name)?);
                input = LogicalPlan::Extension(Extension { node });
            }
            Ok(Transformed::yes(input))
        })?;
        let node = node.data.recompute_schema()?;
        Ok(Transformed::yes(match is_filter {
            true => {
                let columns = columns.into_iter().map(Expr::Column).collect();
                LogicalPlan::Projection(Projection::try_new(columns, Arc::new(node))?)
            }
            false => node,
        }))
    }

    /// A subquery, or the column that takes its place.
    fn subquery(
        &mut self,
        expr: Expr,
        schema: &DFSchema,
        applied: &mut Vec<(Subquery, String)>,
    ) -> Result<Transformed<Expr>> {
        let Expr::ScalarSubquery(subquery) = expr else {
            return Ok(Transformed::no(expr));
        };
        let is_of_node = |outer: &Expr| match outer {
            Expr::OuterReferenceColumn(_, column) => schema.has_column(column),
            _ => true,
        };
        let is_varying = varies(&subquery.subquery)?;
        let is_applied = (is_varying || !subquery.outer_ref_columns.is_empty())
            && subquery.outer_ref_columns.iter().all(is_of_node);
        if !is_applied {
            let plan = self.rewrite(subquery.subquery.as_ref().clone())?;
            let changed = plan.transformed;
            let subquery = match changed {
                true => subquery.with_plan(Arc::new(plan.data)),
                false => subquery,
            };
            let expr = Expr::ScalarSubquery(subquery);
            return Ok(Transformed::new(expr, changed, TreeNodeRecursion::Continue));
        }
        let is_single = !may_have_several_rows(&subquery.subquery);
        let mut known = applied.iter();
        let known = known.find(|(known, _)| !is_varying && *known == subquery);
        let name = match known {
            Some((_, name)) => name.clone(),
            None => {
                let name = format!("$applied{}", self.count);
                self.count += 1;
                applied.push((subquery, name.clone()));
                name
            }
        };
        let value = Expr::Column(Column::new_unqualified(name.clone()));
        let value = match (is_single, scalar_function(ONLY_ROW)) {
            (false, Some(only_row)) => {
                let rows = Expr::Column(Column::new_unqualified(name_of_rows(&name)));
                only_row.call(vec![value, rows])
            }
            _ => value,
        };
        Ok(Transformed::new(value, true, TreeNodeRecursion::Jump))
    }
}

/// Whether a subquery may give something else each time that it is computed. What is computed apart from it, as common
/// table expressions are, is the same.
pub(crate) fn varies(subquery: &LogicalPlan) -> Result<bool> {
    let mut varies = false;
    subquery.apply_with_subqueries(|node| {
        node.apply_expressions(|expr| {
            varies |= contains_varying(expr);
            Ok(match varies {
                true => TreeNodeRecursion::Stop,
                false => TreeNodeRecursion::Continue,
            })
        })
    })?;
    Ok(varies)
}

fn has_subqueries(node: &LogicalPlan) -> Result<bool> {
    let mut found = false;
    node.apply_expressions(|expr| {
        found |= expr.exists(|expr| Ok(matches!(expr, Expr::ScalarSubquery(_))))?;
        Ok(match found {
            true => TreeNodeRecursion::Stop,
            false => TreeNodeRecursion::Continue,
        })
    })?;
    Ok(found)
}

/// What takes the place of a column further out.
pub(crate) enum Given {
    Value(ScalarValue),
    /// Something that has no value yet.
    Place(Expr),
}

impl Given {
    fn expr(&self, field: &FieldRef) -> Expr {
        match self {
            Given::Value(value) => {
                let metadata = FieldMetadata::from(field.metadata());
                let metadata = (!metadata.is_empty()).then_some(metadata);
                Expr::Literal(value.clone(), metadata)
            }
            Given::Place(place) => place.clone(),
        }
    }
}

/// Puts something in the place of columns further out. Those that a subquery inside names are the same, unless a query
/// between has a column of that name.
pub(crate) fn with_given(plan: LogicalPlan, given: &[(&Column, &Given)]) -> Result<LogicalPlan> {
    let with_given = plan.transform_up(|node| {
        let node = match has_subqueries(&node)? {
            true => inside_of_subqueries(node, given)?,
            false => node,
        };
        let names = NamePreserver::new(&node);
        let node = node.map_expressions(|expr| {
            if !expr.contains_outer() {
                return Ok(Transformed::no(expr));
            }
            let name = names.save(&expr);
            let replaced = expr.transform(|expr| {
                let Expr::OuterReferenceColumn(field, column) = &expr else {
                    return Ok(Transformed::no(expr));
                };
                let mut known = given.iter();
                Ok(match known.find(|(known, _)| *known == column) {
                    Some((_, given)) => Transformed::yes(given.expr(field)),
                    None => Transformed::no(expr),
                })
            })?;
            let plain = replaced.data.transform_up(literal_on_the_right)?;
            Ok(Transformed::yes(name.restore(plain.data)))
        })?;
        // What is made of columns that are not NULL now is not, either.
        Ok(Transformed::yes(node.data.recompute_schema()?))
    })?;
    Ok(with_given.data)
}

/// A comparison with a literal as all others are written. DataFusion takes `b = 1 AND 1 = b` for a contradiction, and
/// so it does two equal literals of which one has a description of its type.
pub(crate) fn literal_on_the_right(expr: Expr) -> Result<Transformed<Expr>> {
    let Expr::BinaryExpr(mut comparison) = expr else {
        return Ok(Transformed::no(expr));
    };
    if !comparison.op.supports_propagation() {
        return Ok(Transformed::no(Expr::BinaryExpr(comparison)));
    }
    let is_left = comparison.left.as_literal().is_some();
    if is_left
        && comparison.right.as_literal().is_none()
        && let Some(swapped) = comparison.op.swap()
    {
        comparison.op = swapped;
        std::mem::swap(&mut comparison.left, &mut comparison.right);
    }
    if let Expr::Literal(_, described) = comparison.right.as_mut() {
        *described = None;
    }
    Ok(Transformed::yes(Expr::BinaryExpr(comparison)))
}

fn inside_of_subqueries(node: LogicalPlan, given: &[(&Column, &Given)]) -> Result<LogicalPlan> {
    let schema = schema_of_operands(&node)?;
    let given = given.iter().copied();
    let given: Vec<_> = given
        .filter(|(column, _)| !schema.has_column(column))
        .collect();
    let node = node.map_subqueries(|subquery| {
        let LogicalPlan::Subquery(mut subquery) = subquery else {
            return Ok(Transformed::no(subquery));
        };
        let plan = subquery.subquery.as_ref().clone();
        subquery.subquery = Arc::new(with_given(plan, &given)?);
        subquery.outer_ref_columns = outer_columns_of(&subquery.subquery)?;
        Ok(Transformed::yes(LogicalPlan::Subquery(subquery)))
    })?;
    Ok(node.data)
}
