//! An expression as DataFusion writes it, and back.
//!
//! The typing rule and today's optimizer read DataFusion's expressions. What the rule gives has no markers any more, so
//! it is one of the kinds that a [`Scalar`] has.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, FieldRef};
use datafusion_common::metadata::FieldMetadata;
use datafusion_common::{Result, ScalarValue, internal_err};
use datafusion_expr::expr::{Case, Cast, InList, ScalarFunction};
use datafusion_expr::{BinaryExpr, Expr, Operator, ReturnFieldArgs, ScalarUDF, cast};
use sheaf_access::cancel;
use sheaf_exec::long_literal::{is_long, plan_literal};
use sheaf_exec::operator::scan_exec::access_error;

use super::{Comparison, Scalar, ScalarKind, Truth};
use crate::column::ColumnId;

/// Conditions of a chain that is a tree as deep as it is long. Longer ones are balanced.
pub(super) const MAX_DEEP_CHAIN: usize = 16;

/// A literal as it is, with what its type is besides that of its value. It is copied if others have it as well.
pub(super) fn written_literal(value: Arc<ScalarValue>, field: &Field) -> Expr {
    Expr::Literal(Arc::unwrap_or_clone(value), metadata_of(field))
}

fn metadata_of(field: &Field) -> Option<FieldMetadata> {
    let metadata = field.metadata();
    (!metadata.is_empty()).then(|| FieldMetadata::from(metadata))
}

/// How columns and literals are written.
struct Leaves<'a> {
    column: &'a dyn Fn(ColumnId, &FieldRef) -> Expr,
    /// Long literals have short names.
    names_long: bool,
}

impl Scalar {
    /// The expression, with columns as `column` writes them.
    ///
    /// # Errors
    /// The statement shall stop: a condition of thousands of parts takes megabytes.
    pub fn to_expr(&self, column: &dyn Fn(ColumnId, &FieldRef) -> Expr) -> Result<Expr> {
        let names_long = false;
        self.written(&Leaves { column, names_long })
    }

    /// The same for a plan, where [long literals](sheaf_exec::long_literal) have short names.
    ///
    /// # Errors
    /// As of [`Self::to_expr`].
    pub fn to_plan_expr(&self, column: &dyn Fn(ColumnId, &FieldRef) -> Expr) -> Result<Expr> {
        let names_long = true;
        self.written(&Leaves { column, names_long })
    }

    fn written(&self, leaves: &Leaves<'_>) -> Result<Expr> {
        if !matches!(self.kind, ScalarKind::Column(_) | ScalarKind::Literal(_)) {
            cancel::check_statement().map_err(access_error)?;
        }
        let boxed =
            |operand: &Scalar| -> Result<Box<Expr>> { Ok(Box::new(operand.written(leaves)?)) };
        let all = |operands: &[Scalar]| -> Result<Vec<Expr>> {
            operands
                .iter()
                .map(|operand| operand.written(leaves))
                .collect()
        };
        Ok(match &self.kind {
            ScalarKind::Column(id) => (leaves.column)(*id, &self.field),
            ScalarKind::Literal(value) => match leaves.names_long {
                true => plan_literal(value, metadata_of(&self.field)),
                false => written_literal(Arc::clone(value), &self.field),
            },
            ScalarKind::Call {
                function,
                arguments,
            } => {
                let arguments = match leaves.names_long && reads_long(function, arguments) {
                    true => arguments
                        .iter()
                        .map(|argument| match &argument.kind {
                            ScalarKind::Literal(_) => argument.to_expr(leaves.column),
                            _ => argument.written(leaves),
                        })
                        .collect::<Result<_>>()?,
                    false => all(arguments)?,
                };
                Expr::ScalarFunction(ScalarFunction::new_udf(Arc::clone(function), arguments))
            }
            ScalarKind::Cast(operand) => Expr::Cast(Cast::new_from_field(
                boxed(operand)?,
                Arc::clone(&self.field),
            )),
            ScalarKind::Comparison {
                operator,
                left,
                right,
            } => {
                let (left, right) = (boxed(left)?, boxed(right)?);
                Expr::BinaryExpr(BinaryExpr::new(left, operator_of(*operator), right))
            }
            ScalarKind::And(conditions) => chain(all(conditions)?, Operator::And),
            ScalarKind::Or(conditions) => chain(all(conditions)?, Operator::Or),
            ScalarKind::Not(operand) => Expr::Not(boxed(operand)?),
            ScalarKind::Test {
                operand,
                is,
                negated,
            } => {
                let operand = boxed(operand)?;
                match (is, negated) {
                    (Truth::Null, false) => Expr::IsNull(operand),
                    (Truth::Null, true) => Expr::IsNotNull(operand),
                    (Truth::True, false) => Expr::IsTrue(operand),
                    (Truth::True, true) => Expr::IsNotTrue(operand),
                    (Truth::False, false) => Expr::IsFalse(operand),
                    (Truth::False, true) => Expr::IsNotFalse(operand),
                    (Truth::Unknown, false) => Expr::IsUnknown(operand),
                    (Truth::Unknown, true) => Expr::IsNotUnknown(operand),
                }
            }
            ScalarKind::InList {
                operand,
                list,
                negated,
            } => Expr::InList(InList::new(boxed(operand)?, all(list)?, *negated)),
            ScalarKind::Case {
                branches,
                otherwise,
            } => {
                let branches = branches.iter();
                let branches = branches.map(|(when, then)| Ok((boxed(when)?, boxed(then)?)));
                let branches = branches.collect::<Result<_>>()?;
                let otherwise = otherwise.as_deref().map(boxed).transpose()?;
                Expr::Case(Case::new(None, branches, otherwise))
            }
        })
    }

    /// What the typing rule has made. `leaf` knows what stands for columns and operands.
    pub(super) fn from_expr(expr: Expr, leaf: &dyn Fn(&Expr) -> Option<Scalar>) -> Result<Scalar> {
        if let Some(scalar) = leaf(&expr) {
            return Ok(scalar);
        }
        let one = |expr: Box<Expr>| Scalar::from_expr(*expr, leaf);
        let all = |exprs: Vec<Expr>| -> Result<Vec<Scalar>> {
            let exprs = exprs.into_iter();
            exprs.map(|expr| Scalar::from_expr(expr, leaf)).collect()
        };
        let test =
            |operand: Box<Expr>, is: Truth, negated: bool| Ok(one(operand)?.test(is, negated));
        match expr {
            Expr::Alias(alias) => one(alias.expr),
            Expr::Literal(value, metadata) => {
                let metadata = metadata.map(|metadata| metadata.to_hashmap());
                Ok(Scalar::typed_literal(value, metadata.unwrap_or_default()))
            }
            Expr::ScalarFunction(ScalarFunction { func, args }) => {
                let arguments = all(args)?;
                let field = returned_field(&func, &arguments)?;
                Ok(Scalar::call(func, arguments, field))
            }
            Expr::Cast(cast) => {
                let operand = one(cast.expr)?;
                let field = cast.field.as_ref().clone();
                let field = field.with_nullable(operand.is_nullable());
                Ok(Scalar::new(
                    ScalarKind::Cast(Box::new(operand)),
                    Arc::new(field),
                ))
            }
            Expr::BinaryExpr(BinaryExpr { left, op, right }) => {
                let (left, right) = (one(left)?, one(right)?);
                match op {
                    Operator::And => Ok(Scalar::and([left, right])),
                    Operator::Or => Ok(Scalar::or([left, right])),
                    op => match comparison_of(op) {
                        Some(operator) => Ok(Scalar::comparison(operator, left, right)),
                        None => internal_err!("the typing rule has left an operator {op}"),
                    },
                }
            }
            Expr::Not(operand) => Ok(one(operand)?.not()),
            Expr::IsNull(operand) => test(operand, Truth::Null, false),
            Expr::IsNotNull(operand) => test(operand, Truth::Null, true),
            Expr::IsTrue(operand) => test(operand, Truth::True, false),
            Expr::IsNotTrue(operand) => test(operand, Truth::True, true),
            Expr::IsFalse(operand) => test(operand, Truth::False, false),
            Expr::IsNotFalse(operand) => test(operand, Truth::False, true),
            Expr::IsUnknown(operand) => test(operand, Truth::Unknown, false),
            Expr::IsNotUnknown(operand) => test(operand, Truth::Unknown, true),
            Expr::InList(InList {
                expr,
                list,
                negated,
            }) => {
                let (operand, list) = (one(expr)?, all(list)?);
                Ok(operand.in_list(list, negated))
            }
            Expr::Case(Case {
                expr: None,
                when_then_expr,
                else_expr,
            }) => {
                let branches = when_then_expr
                    .into_iter()
                    .map(|(when, then)| Ok((one(when)?, one(then)?)))
                    .collect::<Result<Vec<_>>>()?;
                let otherwise = else_expr.map(one).transpose()?;
                Ok(case(branches, otherwise))
            }
            other => internal_err!("the typing rule has left {other}"),
        }
    }
}

/// Whether the type of a call follows from a long literal, as that of `STR_TO_DATE(s, '...')` does.
fn reads_long(function: &ScalarUDF, arguments: &[Scalar]) -> bool {
    let short = |argument: &Scalar| {
        let value = argument.as_literal();
        value.is_none_or(|value| !is_long(value))
    };
    if arguments.iter().all(short) {
        return false;
    }
    let field = |literals: &[Option<&ScalarValue>]| {
        let fields: Vec<FieldRef> = arguments
            .iter()
            .map(|argument| Arc::clone(&argument.field))
            .collect();
        let arguments = ReturnFieldArgs {
            arg_fields: &fields,
            scalar_arguments: literals,
        };
        function.return_field_from_args(arguments).ok()
    };
    let literals: Vec<_> = arguments.iter().map(Scalar::as_literal).collect();
    let arguments = arguments.iter();
    let shown: Vec<_> = arguments
        .map(|argument| argument.as_literal().filter(|value| !is_long(value)))
        .collect();
    field(&literals) != field(&shown)
}

/// A choice between values of one type. `CASE WHEN a IS NOT NULL THEN a ELSE 1 END`, which COALESCE(a, 1) is, is never
/// NULL.
fn case(branches: Vec<(Scalar, Scalar)>, otherwise: Option<Scalar>) -> Scalar {
    let values = || branches.iter().map(|(_, value)| value).chain(&otherwise);
    let mut types = values().map(|value| value.field.data_type());
    let data_type = types.find(|data_type| !data_type.is_null());
    let data_type = data_type.cloned().unwrap_or(DataType::Null);
    let may_be_null = |(when, then): &(Scalar, Scalar)| {
        let is_there = matches!(
            &when.kind,
            ScalarKind::Test { operand, is: Truth::Null, negated: true } if operand.as_ref() == then
        );
        then.is_nullable() && !is_there
    };
    let nullable =
        otherwise.as_ref().is_none_or(Scalar::is_nullable) || branches.iter().any(may_be_null);
    let field = Arc::new(Field::new("case", data_type, nullable));
    let kind = ScalarKind::Case {
        branches,
        otherwise: otherwise.map(Box::new),
    };
    Scalar::new(kind, field)
}

/// Arguments in the types in which their function takes them, for a plan. Literals behind the first one are literals,
/// be they long or not: functions look at them when they are planned.
pub(super) fn as_taken(
    arguments: &[Scalar],
    types: &[DataType],
    column: &dyn Fn(ColumnId, &FieldRef) -> Expr,
) -> Result<Vec<Expr>> {
    let arguments = arguments.iter().zip(types).enumerate();
    arguments
        .map(|(at, (argument, taken))| {
            let expr = match (at, &argument.kind) {
                (1.., ScalarKind::Literal(_)) => argument.to_expr(column)?,
                _ => argument.to_plan_expr(column)?,
            };
            Ok(match argument.field().data_type() == taken {
                true => expr,
                false => cast(expr, taken.clone()),
            })
        })
        .collect()
}

/// The field of a function's result.
pub(super) fn returned_field(function: &ScalarUDF, arguments: &[Scalar]) -> Result<FieldRef> {
    let fields: Vec<FieldRef> = arguments
        .iter()
        .map(|argument| Arc::clone(&argument.field))
        .collect();
    let literals: Vec<_> = arguments.iter().map(Scalar::as_literal).collect();
    function.return_field_from_args(ReturnFieldArgs {
        arg_fields: &fields,
        scalar_arguments: &literals,
    })
}

fn chain(mut conditions: Vec<Expr>, operator: Operator) -> Expr {
    let join = |left: Expr, right: Expr| {
        Expr::BinaryExpr(BinaryExpr::new(Box::new(left), operator, Box::new(right)))
    };
    while conditions.len() > MAX_DEEP_CHAIN {
        let mut pairs = Vec::with_capacity(conditions.len().div_ceil(2));
        let mut rest = conditions.into_iter();
        while let Some(left) = rest.next() {
            pairs.push(match rest.next() {
                Some(right) => join(left, right),
                None => left,
            });
        }
        conditions = pairs;
    }
    let conditions = conditions.into_iter();
    conditions
        .reduce(join)
        .unwrap_or_else(|| datafusion_expr::lit(operator == Operator::And))
}

pub(super) fn operator_of(comparison: Comparison) -> Operator {
    match comparison {
        Comparison::Equal => Operator::Eq,
        Comparison::NotEqual => Operator::NotEq,
        Comparison::Less => Operator::Lt,
        Comparison::LessOrEqual => Operator::LtEq,
        Comparison::Greater => Operator::Gt,
        Comparison::GreaterOrEqual => Operator::GtEq,
        Comparison::NullSafeEqual => Operator::IsNotDistinctFrom,
    }
}

fn comparison_of(operator: Operator) -> Option<Comparison> {
    Some(match operator {
        Operator::Eq => Comparison::Equal,
        Operator::NotEq => Comparison::NotEqual,
        Operator::Lt => Comparison::Less,
        Operator::LtEq => Comparison::LessOrEqual,
        Operator::Gt => Comparison::Greater,
        Operator::GtEq => Comparison::GreaterOrEqual,
        Operator::IsNotDistinctFrom => Comparison::NullSafeEqual,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use sheaf_access::cancel::CancelFlag;

    use super::*;

    #[test]
    fn an_expression_is_not_written_for_a_statement_that_shall_stop() {
        let field = Arc::new(Field::new("a", DataType::Int64, true));
        let a = Scalar::column(ColumnId(0), field);
        let tested = a.clone().test(Truth::Null, false);
        let column = |_: ColumnId, field: &FieldRef| datafusion_expr::col(field.name());
        let flag = CancelFlag::new();
        flag.cancel();
        flag.during(|| {
            assert!(tested.to_plan_expr(&column).is_err());
            assert!(tested.to_expr(&column).is_err());
            // What it is made of takes nothing.
            assert!(a.to_expr(&column).is_ok());
        });
        let written = tested.to_plan_expr(&column).unwrap();
        assert_eq!(written, datafusion_expr::col("a").is_null());
    }
}
