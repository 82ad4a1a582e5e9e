//! Operands that an expression names more than once, computed once.
//!
//! [`computed_once`] makes an expression of operands. Where those that it repeats are more than a few nodes, the
//! expression becomes the body of a function ([`crate::functions::closed`]), and they are its arguments. A nest of such
//! operators then takes as many nodes as the statement is long.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::datatypes::FieldRef;
use datafusion_common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion_common::{Column, DFSchema, Result, TableReference};
use datafusion_expr::{Case, Expr, ScalarUDF, Volatility};

use super::reached::takes_conditions;
use super::{deep, field_of, literal};
use crate::functions::closed::{closed, closed_operator, open_body};
use crate::functions::stand_in::{size_behind, stand_in_number};
use crate::functions::truncated::TruncatedTexts;
use crate::functions::user_variables::is_of_variables;

/// Nodes of an expression that may be repeated without much ado.
const FEW_NODES: usize = 8;

/// Nodes of a condition that CASE may have in the open. DataFusion looks for conditions of CASE that are never true, in
/// time that doubles with each CASE inside of another one's condition.
const MANY_NODES: usize = 64;

/// Branches of a CASE that may stand in the open. DataFusion makes each a condition that has those of all before it.
const MANY_BRANCHES: usize = 32;

/// Whether DataFusion is to leave a CASE alone that stands in the open: it notes what a strict change hears of.
pub fn has_many_branches(case: &Case) -> bool {
    case.when_then_expr.len() > MANY_BRANCHES
}

/// CASE inside of each other that may stand in the open. DataFusion asks each whether it may be NULL once for itself
/// and once for the one around it.
const MANY_CASES: usize = 3;

/// What the columns of repeated operands are called in a body, with a number.
const VALUE: &str = "$value";

/// The nodes that a call counts for, without its arguments. A function with a body counts for more than may be
/// repeated, however few its arguments are: it is as large as its body. So does one that gives something else, or takes
/// a lock, each time that it is computed.
pub fn nodes_of_call(function: &ScalarUDF) -> usize {
    match closed_operator(function).is_some() || varies(function) {
        true => FEW_NODES + 1,
        false => 1,
    }
}

/// Functions that hand their operand on vary in what they note alone. Those of user variables must stay in the open.
fn varies(function: &ScalarUDF) -> bool {
    function.signature().volatility == Volatility::Volatile
        && !TruncatedTexts::notes(function.name())
        && !is_of_variables(function)
}

/// The numbers of the operands that the body of a function has a stand-in for, in this expression.
pub fn stand_ins_in_bodies(expr: &Expr) -> Vec<usize> {
    fn collect(expr: &Expr, is_body: bool, numbers: &mut Vec<usize>) {
        // The closure does not fail.
        let _ = expr.apply(|expr| {
            match stand_in_number(expr) {
                Some(number) if is_body && !numbers.contains(&number) => numbers.push(number),
                _ => {}
            }
            if let Expr::ScalarFunction(call) = expr
                && let Some(body) = open_body(&call.func)
            {
                deep(|| collect(body, true, numbers));
            }
            Ok(TreeNodeRecursion::Continue)
        });
    }
    let mut numbers = Vec::new();
    collect(expr, false, &mut numbers);
    numbers
}

/// Whether an expression may be repeated.
pub(super) fn is_small(expr: &Expr) -> bool {
    !has_nodes(expr, FEW_NODES + 1)
}

/// Whether a CASE of these conditions is to be closed.
pub(super) fn are_many(conditions: &[&Expr]) -> bool {
    conditions.len() > MANY_BRANCHES || conditions.iter().any(|one| has_nodes(one, MANY_NODES))
}

/// Whether CASE with these operands is too deep a nest of them.
pub(super) fn are_deep<'e>(operands: impl IntoIterator<Item = &'e Expr>) -> bool {
    let deepest = operands.into_iter().map(|operand| deep(|| cases(operand)));
    deepest.max().unwrap_or(0) >= MANY_CASES
}

/// How many CASE are inside of each other, counted no further than [`MANY_CASES`].
fn cases(expr: &Expr) -> usize {
    if let Some(size) = size_behind(expr) {
        return size.cases;
    }
    let is_case = matches!(expr, Expr::Case(_));
    let mut deepest = 0;
    // The closure does not fail.
    let _ = expr.apply_children(|inner| {
        deepest = deepest.max(deep(|| cases(inner)));
        Ok(match deepest < MANY_CASES {
            true => TreeNodeRecursion::Continue,
            false => TreeNodeRecursion::Stop,
        })
    });
    deepest + usize::from(is_case)
}

fn has_nodes(expr: &Expr, least: usize) -> bool {
    let mut nodes = 0;
    // The closure does not fail.
    let _ = expr.apply(|expr| {
        nodes += match expr {
            Expr::ScalarFunction(call) => match size_behind(expr) {
                Some(size) => size.nodes,
                None => nodes_of_call(&call.func),
            },
            _ => 1,
        };
        Ok(match nodes < least {
            true => TreeNodeRecursion::Continue,
            false => TreeNodeRecursion::Stop,
        })
    });
    nodes >= least
}

/// What `make` makes of `values`, which it may repeat, and of `others`, each of which it names once. `make` also gets
/// the schema that these are of.
pub(super) fn computed_once(
    operator: &'static str,
    (values, others): (Vec<Expr>, Vec<Expr>),
    schema: &DFSchema,
    make: impl FnOnce(Vec<Expr>, Vec<Expr>, &DFSchema) -> Result<Expr>,
) -> Result<Expr> {
    if values.iter().all(is_small) {
        return make(values, others, schema);
    }
    let mut arguments = Arguments::of(&values, &others, schema);
    let values = values.into_iter().map(|value| match is_small(&value) {
        true => arguments.with_columns(value),
        false => arguments.value(value),
    });
    let values = values.collect::<Result<Vec<_>>>()?;
    let others = others.into_iter();
    let others = others.map(|other| match takes_conditions(&other) {
        // Conditions are added to what is in the open.
        true => arguments.value(other),
        false => arguments.with_columns(other),
    });
    let others = others.collect::<Result<Vec<_>>>()?;
    let inner = arguments.schema()?;
    let body = make(values, others, &inner)?;
    if !arguments.are_repeated(&body) {
        return arguments.put_back(body);
    }
    arguments.closed(operator, body, inner)
}

/// The expression behind a function's name, where DataFusion does not look into it.
pub(super) fn hidden(operator: &'static str, expr: Expr, schema: &DFSchema) -> Result<Expr> {
    let mut arguments = Arguments::of(std::slice::from_ref(&expr), &[], schema);
    let body = match takes_conditions(&expr) {
        true => return Ok(expr),
        false => arguments.with_columns(expr)?,
    };
    // The function needs an argument to know how many rows there are.
    let has_stand_in = || body.exists(|expr| Ok(stand_in_number(expr).is_some()));
    if arguments.exprs.is_empty() && !has_stand_in()? {
        return Ok(body);
    }
    let inner = arguments.schema()?;
    arguments.closed(operator, body, inner)
}

/// The arguments of a function that is being made, which are the columns of its body.
struct Arguments<'s> {
    schema: &'s DFSchema,
    exprs: Vec<Expr>,
    fields: Vec<(Option<TableReference>, FieldRef)>,
    /// Where the columns of the schema are.
    positions: HashMap<(Option<TableReference>, String), usize>,
    next_value: usize,
}

impl Arguments<'_> {
    /// Its values have other names than the columns that are named by these.
    fn of<'s>(values: &[Expr], others: &[Expr], schema: &'s DFSchema) -> Arguments<'s> {
        let mut next_value = 0;
        for expr in values.iter().chain(others) {
            // The closure does not fail.
            let _ = expr.apply(|expr| {
                if let Expr::Column(column) = expr
                    && let Some(number) = column.name.strip_prefix(VALUE)
                    && let Ok(number) = number.parse::<usize>()
                {
                    next_value = next_value.max(number + 1);
                }
                Ok(TreeNodeRecursion::Continue)
            });
        }
        Arguments {
            schema,
            exprs: Vec::new(),
            fields: Vec::new(),
            positions: HashMap::new(),
            next_value,
        }
    }

    fn push(&mut self, expr: Expr, relation: Option<TableReference>, field: FieldRef) {
        let field = field.as_ref().clone().with_nullable(true);
        self.exprs.push(expr);
        self.fields.push((relation, Arc::new(field)));
    }

    /// An operand as one argument.
    fn value(&mut self, value: Expr) -> Result<Expr> {
        if literal(&value).is_some() {
            return Ok(value);
        }
        let name = format!("{VALUE}{}", self.next_value);
        self.next_value += 1;
        let field = field_of(&value, self.schema)?.as_ref().clone();
        self.push(value, None, Arc::new(field.with_name(&name)));
        Ok(Expr::Column(Column::new_unqualified(name)))
    }

    /// An operand that stays as it is, with its columns as arguments, and what no body can have.
    fn with_columns(&mut self, operand: Expr) -> Result<Expr> {
        let operand = operand.transform_down(|expr| {
            Ok(match expr {
                Expr::Column(column) => {
                    self.column(&column)?;
                    Transformed::no(Expr::Column(column))
                }
                Expr::OuterReferenceColumn(..)
                | Expr::ScalarSubquery(_)
                | Expr::AggregateFunction(_)
                | Expr::WindowFunction(_)
                | Expr::GroupingSet(_)
                | Expr::Placeholder(_) => {
                    Transformed::new(self.value(expr)?, true, TreeNodeRecursion::Jump)
                }
                other => Transformed::no(other),
            })
        })?;
        Ok(operand.data)
    }

    fn column(&mut self, column: &Column) -> Result<()> {
        let (relation, field) = self.schema.qualified_field_from_column(column)?;
        let key = (relation.cloned(), field.name().clone());
        if !self.positions.contains_key(&key) {
            let qualified = Expr::Column(Column::new(key.0.clone(), key.1.clone()));
            self.positions.insert(key, self.exprs.len());
            self.push(qualified, relation.cloned(), Arc::clone(field));
        }
        Ok(())
    }

    fn schema(&self) -> Result<DFSchema> {
        DFSchema::new_with_metadata(self.fields.clone(), HashMap::new())
    }

    /// The number of the value that an expression is.
    fn as_value(&self, expr: &Expr) -> Option<usize> {
        let Expr::Column(Column {
            relation: None,
            name,
            ..
        }) = expr
        else {
            return None;
        };
        let mut fields = self.fields.iter();
        let is_it = |(relation, field): &(Option<TableReference>, FieldRef)| {
            relation.is_none() && field.name() == name
        };
        name.starts_with(VALUE)
            .then(|| fields.position(is_it))
            .flatten()
    }

    /// Whether the body names a value more than once.
    fn are_repeated(&self, body: &Expr) -> bool {
        let mut named = vec![0usize; self.exprs.len()];
        // The closure does not fail.
        let _ = body.apply(|expr| {
            if let Some(at) = self.as_value(expr) {
                named[at] += 1;
            }
            Ok(TreeNodeRecursion::Continue)
        });
        named.iter().any(|times| *times > 1)
    }

    /// The body with the values where it names them.
    fn put_back(self, body: Expr) -> Result<Expr> {
        let body = body.transform_down(|expr| {
            Ok(match self.as_value(&expr) {
                Some(at) => {
                    let value = self.exprs[at].clone();
                    Transformed::new(value, true, TreeNodeRecursion::Jump)
                }
                None => Transformed::no(expr),
            })
        })?;
        Ok(body.data)
    }

    fn closed(self, operator: &'static str, body: Expr, inner: DFSchema) -> Result<Expr> {
        let returns = field_of(&body, &inner)?;
        Ok(closed(operator, body, returns, inner, self.exprs))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::functions::call;
    use crate::typing::{Purpose, Texts, resolve_node};
    use arrow::array::{AsArray, Int64Array, RecordBatch};
    use arrow::datatypes::{DataType, Field, Int64Type, Schema};
    use datafusion_expr::execution_props::ExecutionProps;
    use datafusion_expr::{col, lit};
    use datafusion_physical_expr::create_physical_expr;
    use sheaf_types::Collation;

    const DEPTH: usize = 30;

    fn schema() -> DFSchema {
        let fields = ["a", "b"].map(|name| Field::new(name, DataType::Int64, true));
        let schema = Schema::new(fields.to_vec());
        DFSchema::try_from_qualified_schema("t", &schema).unwrap()
    }

    fn resolved(expr: Expr) -> Expr {
        let texts = Texts::of(Collation::default(), TruncatedTexts::default());
        let schema = schema();
        let rule = |node| resolve_node(node, &schema, &texts, Purpose::Shown).map(Transformed::yes);
        expr.transform_up(rule).unwrap().data
    }

    fn nest(depth: usize, wrap: impl Fn(Expr) -> Expr) -> Expr {
        (0..depth).fold(col("t.a"), |nested, _| wrap(nested))
    }

    fn nodes(expr: &Expr) -> usize {
        let mut nodes = 0;
        expr.apply(|_| {
            nodes += 1;
            Ok(TreeNodeRecursion::Continue)
        })
        .unwrap();
        nodes
    }

    /// Of (1, 1), (2, 1), (5, NULL) and (NULL, 1).
    fn values(expr: &Expr) -> Vec<Option<i64>> {
        let schema = schema();
        let a = Int64Array::from(vec![Some(1), Some(2), Some(5), None]);
        let b = Int64Array::from(vec![Some(1), Some(1), None, Some(1)]);
        let rows = RecordBatch::try_new(Arc::clone(schema.inner()), vec![Arc::new(a), Arc::new(b)]);
        let (rows, context) = (rows.unwrap(), Default::default());
        let expr = create_physical_expr(expr, &schema, &ExecutionProps::new(), &context).unwrap();
        let values = expr.evaluate(&rows).unwrap().into_array(4).unwrap();
        values.as_primitive::<Int64Type>().iter().collect()
    }

    #[test]
    fn nests_have_as_many_nodes_as_are_written() {
        let b = || col("t.b");
        let number = |condition| call("$int", vec![condition]);
        let nests = [
            nest(DEPTH, |x| call("nullif", vec![x, b()])),
            nest(DEPTH, |x| {
                call("coalesce", vec![x, call("$add", vec![b(), lit(1i64)])])
            }),
            nest(DEPTH, |x| call("coalesce", vec![x.clone(), b(), lit(1i64)])),
            nest(DEPTH, |x| number(call("$between", vec![x, b(), lit(7i64)]))),
            nest(DEPTH, |x| number(call("$in", vec![x, b(), lit(7i64)]))),
            nest(DEPTH, |x| {
                number(call("$row_lt", vec![x, b(), b(), lit(7i64)]))
            }),
            nest(DEPTH, |x| number(call("$eq", vec![x, b()]))),
            nest(DEPTH, |x| {
                call(
                    "$simple_case",
                    vec![x, lit(1i64), b(), lit(2i64), lit(3i64)],
                )
            }),
            nest(DEPTH, |x| {
                call("$case", vec![call("$truth", vec![x]), b(), lit(3i64)])
            }),
        ];
        for (at, nest) in nests.into_iter().enumerate() {
            let written = nodes(&nest);
            let resolved = resolved(nest);
            assert!(
                nodes(&resolved) < 8 * written,
                "nest {at}: {}",
                nodes(&resolved)
            );
            // Nothing takes long.
            values(&resolved);
        }
    }

    #[test]
    fn what_is_computed_once_is_the_same() {
        // By hand: a value that is equal to b is NULL.
        let nullif = resolved(nest(DEPTH, |x| call("nullif", vec![x, col("t.b")])));
        assert_eq!(values(&nullif), [None, Some(2), Some(5), None]);
        // NULL, then b, then 9.
        let coalesce = resolved(nest(DEPTH, |x| {
            let nullif = call("nullif", vec![x, lit(2i64)]);
            call(
                "coalesce",
                vec![nullif, call("$add", vec![col("t.b"), lit(0i64)])],
            )
        }));
        assert_eq!(values(&coalesce), [Some(1), Some(1), Some(5), Some(1)]);
        let case = resolved(nest(1, |x| {
            let sum = nest(5, |_| x.clone());
            let sum = (0..5).fold(sum, |sum, _| call("$add", vec![sum, lit(0i64)]));
            call(
                "$simple_case",
                vec![
                    sum,
                    lit(1i64),
                    lit(10i64),
                    col("t.b"),
                    lit(20i64),
                    lit(30i64),
                ],
            )
        }));
        assert_eq!(values(&case), [Some(10), Some(30), Some(30), Some(30)]);
    }

    #[test]
    fn what_stays_small_stays_in_the_open() {
        let plain = resolved(call("$between", vec![col("t.a"), lit(1i64), col("t.b")]));
        assert!(matches!(plain, Expr::BinaryExpr(_)), "{plain}");
        // Compared once, so there is nothing to repeat.
        let sum = nest(12, |x| call("$add", vec![x, lit(1i64)]));
        let list = resolved(call("$in", vec![sum, lit(1i64)]));
        assert!(matches!(list, Expr::BinaryExpr(_)), "{list}");
    }

    #[test]
    fn equal_expressions_are_equal_behind_their_names() {
        let nullif = |other: &str| {
            let other = col(other);
            resolved(nest(DEPTH, |x| call("nullif", vec![x, other.clone()])))
        };
        assert_eq!(nullif("t.b"), nullif("t.b"));
        assert_ne!(nullif("t.b"), nullif("t.a"));
        let name = |expr: &Expr| expr.schema_name().to_string();
        assert_ne!(name(&nullif("t.b")), name(&nullif("t.a")));
    }
}
