//! An expression, or an aggregate, as it is computed over batches, without a plan around it.
//!
//! The typing rule has decided what it means. It leaves open in which of two types a kernel computes that it does not
//! tell apart: an INT beside a BIGINT, DECIMALs of other digits, the branches of a CASE. Here they get a common one,
//! by the same tables as in a plan.

use std::sync::Arc;

use arrow::datatypes::{DataType, FieldRef, Schema};
use datafusion_common::config::ConfigOptions;
use datafusion_common::metadata::FieldMetadata;
use datafusion_common::{Result, ScalarValue, internal_datafusion_err, internal_err};
use datafusion_expr::Operator;
use datafusion_expr::type_coercion::binary::BinaryTypeCoercer;
use datafusion_expr::type_coercion::functions::fields_with_udf;
use datafusion_expr::type_coercion::other::{
    get_coerce_type_for_case_expression, get_coerce_type_for_list,
};
use datafusion_physical_expr::aggregate::{AggregateExprBuilder, AggregateFunctionExpr};
use datafusion_physical_expr::expressions::{
    CastExpr, Column, binary, case, cast, in_list, is_not_null, is_null, lit, not,
};
use datafusion_physical_expr::{PhysicalExpr, ScalarFunctionExpr};
use sheaf_exec::functions::as_function;
use sheaf_exec::functions::closed::closed_operator;
use sheaf_exec::shared_constant::constant;

use super::expression::{MAX_DEEP_CHAIN, operator_of};
use super::{Aggregate, Scalar, ScalarKind, Truth};
use crate::column::ColumnId;

/// The batches that expressions are computed over.
pub struct Batches<'a> {
    pub schema: &'a Schema,
    /// Where a column is among those of the schema.
    pub position: &'a dyn Fn(ColumnId) -> Option<usize>,
    /// What functions are told.
    pub options: &'a Arc<ConfigOptions>,
}

type Physical = Arc<dyn PhysicalExpr>;

impl Batches<'_> {
    /// The expression over these batches.
    ///
    /// # Errors
    /// For columns that they do not have, and for operands that have no common type.
    pub fn expression(&self, scalar: &Scalar) -> Result<Physical> {
        match scalar.kind() {
            ScalarKind::Column(id) => match (self.position)(*id) {
                Some(position) => {
                    let name = self.schema.field(position).name();
                    Ok(Arc::new(Column::new(name, position)))
                }
                None => internal_err!("the rows have no column {id}"),
            },
            ScalarKind::Literal(value) => {
                let metadata = scalar.field().metadata();
                let metadata = (!metadata.is_empty()).then(|| FieldMetadata::from(metadata));
                constant(value, metadata)
            }
            ScalarKind::Call {
                function,
                arguments,
            } => {
                let takes_all =
                    as_function(function).is_some() || closed_operator(function).is_some();
                let mut values = self.expressions(arguments)?;
                if takes_all && self.are_as_bound(&values, arguments)? {
                    return Ok(Arc::new(ScalarFunctionExpr::new(
                        function.name(),
                        Arc::clone(function),
                        values,
                        Arc::clone(scalar.field()),
                        Arc::clone(self.options),
                    )));
                }
                if !takes_all {
                    let fields = self.fields(&values, arguments)?;
                    let taken = fields_with_udf(&fields, function.as_ref())?;
                    for (value, field) in values.iter_mut().zip(taken) {
                        *value = self.as_type(value, field.data_type())?;
                    }
                }
                Ok(Arc::new(ScalarFunctionExpr::try_new(
                    Arc::clone(function),
                    values,
                    self.schema,
                    Arc::clone(self.options),
                )?))
            }
            ScalarKind::Cast(operand) => {
                let operand = self.expression(operand)?;
                let field = Arc::clone(scalar.field());
                let cast = CastExpr::new_with_target_field(operand, field, None);
                Ok(Arc::new(cast))
            }
            ScalarKind::Comparison {
                operator,
                left,
                right,
            } => {
                let (left, right) = (self.expression(left)?, self.expression(right)?);
                self.comparison(operator_of(*operator), left, right)
            }
            ScalarKind::And(conditions) => self.chain(conditions, Operator::And),
            ScalarKind::Or(conditions) => self.chain(conditions, Operator::Or),
            ScalarKind::Not(operand) => not(self.condition(operand)?),
            ScalarKind::Test {
                operand,
                is,
                negated,
            } => {
                let wanted = match is {
                    Truth::Null => {
                        let operand = self.expression(operand)?;
                        return match negated {
                            false => is_null(operand),
                            true => is_not_null(operand),
                        };
                    }
                    Truth::True => Some(true),
                    Truth::False => Some(false),
                    Truth::Unknown => None,
                };
                let operator = match negated {
                    false => Operator::IsNotDistinctFrom,
                    true => Operator::IsDistinctFrom,
                };
                let wanted = lit(ScalarValue::Boolean(wanted));
                binary(self.condition(operand)?, operator, wanted, self.schema)
            }
            ScalarKind::InList {
                operand,
                list,
                negated,
            } => {
                let mut operand = self.expression(operand)?;
                let mut list = self.expressions(list)?;
                let own = operand.data_type(self.schema)?;
                let types = self.types(&list)?;
                if types.iter().any(|ty| *ty != own) {
                    let common = get_coerce_type_for_list(&own, &types);
                    let common = common.ok_or_else(no_common_type)?;
                    operand = self.as_type(&operand, &common)?;
                    self.all_as_type(&mut list, &common)?;
                }
                in_list(operand, list, negated, self.schema)
            }
            ScalarKind::Case {
                branches,
                otherwise,
            } => {
                let conditions = branches.iter();
                let conditions = conditions.map(|(condition, _)| self.condition(condition));
                let conditions = conditions.collect::<Result<Vec<_>>>()?;
                let values = branches.iter().map(|(_, value)| value);
                let values = values.chain(otherwise.as_deref());
                let values = values.map(|value| self.expression(value));
                let mut values = values.collect::<Result<Vec<_>>>()?;
                let types = self.types(&values)?;
                if let Some((first, others)) = types.split_first()
                    && others.iter().any(|ty| ty != first)
                {
                    let (then, last) = types.split_at(branches.len());
                    let common = get_coerce_type_for_case_expression(then, last.first());
                    let common = common.ok_or_else(no_common_type)?;
                    self.all_as_type(&mut values, &common)?;
                }
                let otherwise = otherwise.as_ref().and_then(|_| values.pop());
                case(
                    None,
                    conditions.into_iter().zip(values).collect(),
                    otherwise,
                )
            }
        }
    }

    /// The aggregate over these batches, whose rows come in any order.
    ///
    /// # Errors
    /// As of expressions, and for one that wants its rows in an order.
    pub fn aggregate(&self, aggregate: &Aggregate) -> Result<AggregateFunctionExpr> {
        if aggregate.is_ordered() {
            return internal_err!("{} of rows in an order", aggregate.name());
        }
        let function = aggregate.function();
        let mut arguments = self.expressions(aggregate.arguments())?;
        let fields = self.fields(&arguments, aggregate.arguments())?;
        let taken = fields_with_udf(&fields, function.as_ref())?;
        for (argument, field) in arguments.iter_mut().zip(taken) {
            *argument = self.as_type(argument, field.data_type())?;
        }
        AggregateExprBuilder::new(Arc::clone(function), arguments)
            .schema(Arc::new(self.schema.clone()))
            .with_distinct(aggregate.is_distinct())
            .alias(aggregate.name())
            .build()
    }

    fn expressions(&self, scalars: &[Scalar]) -> Result<Vec<Physical>> {
        let scalars = scalars.iter();
        scalars.map(|scalar| self.expression(scalar)).collect()
    }

    /// A condition, whatever its type is: NULL alone has none.
    pub fn condition(&self, scalar: &Scalar) -> Result<Physical> {
        let condition = self.expression(scalar)?;
        match scalar.is_condition() {
            true => Ok(condition),
            false => self.as_type(&condition, &DataType::Boolean),
        }
    }

    fn chain(&self, conditions: &[Scalar], operator: Operator) -> Result<Physical> {
        let conditions = conditions.iter();
        let mut all = conditions
            .map(|condition| self.condition(condition))
            .collect::<Result<Vec<_>>>()?;
        // Long ones are balanced.
        while all.len() > MAX_DEEP_CHAIN {
            let pairs = all.chunks(2).map(|pair| match pair {
                [left, right] => binary(Arc::clone(left), operator, Arc::clone(right), self.schema),
                rest => Ok(Arc::clone(&rest[0])),
            });
            all = pairs.collect::<Result<Vec<_>>>()?;
        }
        let mut all = all.into_iter();
        let Some(first) = all.next() else {
            return Ok(lit(operator == Operator::And));
        };
        all.try_fold(first, |left, right| {
            binary(left, operator, right, self.schema)
        })
    }

    fn comparison(&self, operator: Operator, left: Physical, right: Physical) -> Result<Physical> {
        let (own, other) = (left.data_type(self.schema)?, right.data_type(self.schema)?);
        if own == other {
            return binary(left, operator, right, self.schema);
        }
        let (own, other) = BinaryTypeCoercer::new(&own, &operator, &other).get_input_types()?;
        let (left, right) = (self.as_type(&left, &own)?, self.as_type(&right, &other)?);
        binary(left, operator, right, self.schema)
    }

    /// The fields of values, for their types: those that they were bound with, where these have the same. Many
    /// expressions would make a field that is named by all of their text.
    fn fields(&self, values: &[Physical], scalars: &[Scalar]) -> Result<Vec<FieldRef>> {
        let values = values.iter().zip(scalars);
        let fields = values.map(|(value, scalar)| {
            match value.data_type(self.schema)? == *scalar.field().data_type() {
                true => Ok(Arc::clone(scalar.field())),
                false => value.return_field(self.schema),
            }
        });
        fields.collect()
    }

    /// Whether arguments have the types that a call was bound with.
    fn are_as_bound(&self, values: &[Physical], arguments: &[Scalar]) -> Result<bool> {
        for (value, argument) in values.iter().zip(arguments) {
            if value.data_type(self.schema)? != *argument.field().data_type() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn types(&self, expressions: &[Physical]) -> Result<Vec<DataType>> {
        let expressions = expressions.iter();
        expressions
            .map(|expression| expression.data_type(self.schema))
            .collect()
    }

    fn as_type(&self, expression: &Physical, ty: &DataType) -> Result<Physical> {
        cast(Arc::clone(expression), self.schema, ty.clone())
    }

    fn all_as_type(&self, expressions: &mut [Physical], ty: &DataType) -> Result<()> {
        for expression in expressions {
            *expression = self.as_type(expression, ty)?;
        }
        Ok(())
    }
}

fn no_common_type() -> datafusion_common::DataFusionError {
    internal_datafusion_err!("operands without a common type")
}
