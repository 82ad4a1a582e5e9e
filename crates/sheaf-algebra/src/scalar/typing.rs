//! MySQL's typing rule, applied where a node is made.
//!
//! The rule itself is `sheaf_exec::typing`, which gives a call of a marker its meaning by the types of its operands.
//! Here the operands have types already, so one node is put to it at a time. All that the rule may look at is an
//! operand's type, whether it is a column, and the value of a literal. So every other operand is represented by a
//! stand-in ([`sheaf_exec::functions::stand_in`]), a call without arguments that has the operand's field, and the cost
//! of a node does not grow with what is below it:
//!
//! ```text
//!   a + 1 < '7'      operands:  Call $add(a, 1), Literal '7'
//!                    the rule:  $lt($operand, '7')  -->  $operand < 7
//!                    the node:  Comparison <, Call $add(a, 1), Literal 7
//! ```
//!
//! There is one exception. An operand in which something [notes](Scalar::notes) what it meets is shown to the rule as a
//! whole, because the rule says in it which rows come to it.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use arrow::datatypes::{DataType, Field, FieldRef, IntervalUnit};
use datafusion_common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion_common::{
    Column as PlanColumn, DFSchema, Result, ScalarValue, TableReference, internal_err,
};
use datafusion_expr::expr::{
    AggregateFunction, NullTreatment, ScalarFunction, WindowFunction as WindowExpr,
    WindowFunctionParams,
};
use datafusion_expr::type_coercion::functions::{UDFCoercionExt, fields_with_udf};
use datafusion_expr::{
    AggregateUDF, BinaryExpr, Expr, ExprSchemable, Operator, ScalarUDF, SortExpr, WindowFrame,
    WindowFrameBound, WindowFrameUnits, WindowFunctionDefinition,
};
use sheaf_access::cancel;
use sheaf_exec::functions::collation::{collation_key, extreme_collation};
use sheaf_exec::functions::stand_in::{stand_in, stand_in_number};
use sheaf_exec::functions::user_variables::is_of_variables;
use sheaf_exec::functions::{EACH_ROW, as_function, scalar_function};
use sheaf_exec::operator::scan_exec::access_error;
use sheaf_exec::typing::stand_ins_in_bodies;
use sheaf_exec::typing::{
    MAX_ORDERED, Purpose, Texts, WatchedRows, as_column_of, field_of_aggregate, group_key, key_of,
    number_of_column, refused_texts, resolve_node, watched_condition,
};

use super::expression::written_literal;
use super::window::WindowOrder;
use super::{Aggregate, Comparison, Scalar, ScalarKind, WindowFunction};
use crate::column::ColumnId;

/// What an argument takes while its call is put to the rule: as an expression, in a copy, and in what the rule makes.
const ARGUMENT_BYTES: usize = 3 * size_of::<Expr>();

/// Makes nodes for a part of a statement.
#[derive(Clone, Copy)]
pub struct Typing<'a> {
    pub texts: &'a Texts,
    /// What the expressions are for: it decides what is noted, and whether that is an error.
    pub purpose: Purpose,
}

/// An aggregate that is to be made.
pub struct AggregateCall {
    pub function: Arc<AggregateUDF>,
    pub arguments: Vec<Scalar>,
    pub distinct: bool,
}

/// A window function that is to be made.
pub struct WindowCall {
    pub function: WindowFunctionDefinition,
    pub arguments: Vec<Scalar>,
    pub partition_by: Vec<Scalar>,
    /// Values, and whether they descend.
    pub order_by: Vec<(Scalar, bool)>,
    pub frame: WindowFrame,
    pub null_treatment: Option<NullTreatment>,
    pub distinct: bool,
}

impl Typing<'_> {
    /// A call of the function, operator or marker of this name.
    pub fn call(&self, name: &str, arguments: Vec<Scalar>) -> Result<Scalar> {
        match scalar_function(name) {
            Some(function) => self.call_function(function, arguments),
            None => internal_err!("there is no function {name}"),
        }
    }

    pub fn call_function(
        &self,
        function: Arc<ScalarUDF>,
        arguments: Vec<Scalar>,
    ) -> Result<Scalar> {
        let arguments = self.with_row(&function, arguments)?;
        if as_function(&function).is_none() {
            let field = super::expression::returned_field(&function, &arguments)?;
            return Ok(Scalar::call(function, arguments, field));
        }
        self.typed_call(function, arguments, Vec::new())
    }

    /// The arguments of a function that gives each row a value of its own, as RAND(5) does: another one of this kind
    /// stands behind them. DataFusion takes a call for a constant if its arguments are, and rows for sorted by it.
    fn with_row(&self, function: &ScalarUDF, mut arguments: Vec<Scalar>) -> Result<Vec<Scalar>> {
        let is_of_each_row = match as_function(function) {
            Some(function) => function.volatile,
            None => is_of_variables(function),
        };
        let has_row = |last: &Scalar| match last.kind() {
            ScalarKind::Call { function, .. } => function.name() == EACH_ROW,
            _ => false,
        };
        if is_of_each_row && arguments.last().is_some_and(|last| !has_row(last)) {
            arguments.push(self.call(EACH_ROW, Vec::new())?);
        }
        Ok(arguments)
    }

    /// As [`Self::call`], with constants behind the arguments. Each is what [`Self::literal`] makes of it: many cost
    /// less this way than as nodes of their own.
    pub fn call_on_constants(
        &self,
        name: &str,
        arguments: Vec<Scalar>,
        constants: Vec<ScalarValue>,
    ) -> Result<Scalar> {
        match scalar_function(name) {
            Some(function) => self.typed_call(function, arguments, constants),
            None => internal_err!("there is no function {name}"),
        }
    }

    fn typed_call(
        &self,
        function: Arc<ScalarUDF>,
        arguments: Vec<Scalar>,
        constants: Vec<ScalarValue>,
    ) -> Result<Scalar> {
        let count = arguments.len() + constants.len();
        cancel::check_room_for_value(count * ARGUMENT_BYTES).map_err(access_error)?;
        let operands = Operands::default();
        let mut arguments = operands.exprs(arguments)?;
        arguments.reserve(constants.len());
        let empty = DFSchema::empty();
        for constant in constants {
            let constant = Expr::Literal(constant, None);
            arguments.push(resolve_node(constant, &empty, self.texts, self.purpose)?);
        }
        let mut call = Expr::ScalarFunction(ScalarFunction::new_udf(function, arguments));
        // The body of a function cannot have stand-ins. Where it has, the rule is asked again, for these as they are.
        let noted = self.texts.noted_so_far();
        while operands.has_hidden() {
            let schema = operands.schema()?;
            let typed = resolve_node(call.clone(), &schema, self.texts, self.purpose)?;
            let numbers = stand_ins_in_bodies(&typed);
            if numbers.is_empty() {
                return operands.scalar(typed);
            }
            self.texts.forget_since(noted);
            call = operands.with_whole(call, &numbers)?;
        }
        self.node(call, &operands)
    }

    /// A constant. A text gets the collation of the connection.
    pub fn literal(&self, value: ScalarValue) -> Result<Scalar> {
        self.node(Expr::Literal(value, None), &Operands::default())
    }

    /// `left operator right` by MySQL's rules of comparison.
    pub fn comparison(&self, operator: Comparison, left: Scalar, right: Scalar) -> Result<Scalar> {
        if operator != Comparison::NullSafeEqual
            && let Some(number) = number_beside_column(&left, &right)
        {
            return Ok(Scalar::comparison(operator, left, number));
        }
        self.call(operator.function_name(), vec![left, right])
    }

    /// `value BETWEEN low AND high`.
    pub fn between(&self, [value, low, high]: [Scalar; 3]) -> Result<Scalar> {
        let bounds = [&low, &high].map(|bound| number_beside_column(&value, bound));
        if let [Some(low), Some(high)] = bounds {
            let from = Scalar::comparison(Comparison::GreaterOrEqual, value.clone(), low);
            let to = Scalar::comparison(Comparison::LessOrEqual, value, high);
            return Ok(Scalar::and([from, to]));
        }
        self.call("$between", vec![value, low, high])
    }

    /// A value as a condition: true unless it is zero.
    pub fn condition(&self, value: Scalar) -> Result<Scalar> {
        match value.is_condition() {
            true => Ok(value),
            false => self.call("$truth", vec![value]),
        }
    }

    /// A condition as a value: 1 or 0.
    pub fn value(&self, scalar: Scalar) -> Result<Scalar> {
        match scalar.is_condition() {
            true => self.call("$int", vec![scalar]),
            false => Ok(scalar),
        }
    }

    /// AND. `before`: how many operands of the same chain stand in front of these.
    pub fn and(&self, left: Scalar, right: Scalar, before: usize) -> Result<Scalar> {
        self.connective(Operator::And, left, right, before)
    }

    /// The same for OR.
    pub fn or(&self, left: Scalar, right: Scalar, before: usize) -> Result<Scalar> {
        self.connective(Operator::Or, left, right, before)
    }

    /// The rule has something to say of AND and OR only where a row may come to one side and not to the other, and of a
    /// side in front of a constant. Of what stands behind many operands of a chain it says nothing more: each operand
    /// would be shown all before it.
    fn connective(
        &self,
        operator: Operator,
        left: Scalar,
        right: Scalar,
        before: usize,
    ) -> Result<Scalar> {
        let is_of_rows = |scalar: &Scalar| {
            matches!(scalar.kind, ScalarKind::Column(_) | ScalarKind::Call { .. })
        };
        let is_and = operator == Operator::And;
        let has_conditions = right.notes
            && before + left.chain_length(is_and) < MAX_ORDERED
            && right.chain_length(is_and) < MAX_ORDERED;
        if !has_conditions && right.contains(&is_of_rows) {
            cancel::check_statement().map_err(access_error)?;
            return Ok(match operator {
                Operator::And => Scalar::and([left, right]),
                _ => Scalar::or([left, right]),
            });
        }
        let operands = Operands::default();
        let (left, right) = (operands.whole(&left)?, operands.whole(&right)?);
        let connective = BinaryExpr::new(Box::new(left), operator, Box::new(right));
        self.node(Expr::BinaryExpr(connective), &operands)
    }

    /// A value as a column of `to`, metadata and all: of a set operation, for example.
    pub fn column_of(&self, value: Scalar, to: &Field) -> Result<Scalar> {
        let operands = Operands::default();
        let value = operands.expr(value)?;
        let schema = operands.schema()?;
        let converted = as_column_of(value, to, &schema, Some(self.texts))?;
        operands.scalar(converted)
    }

    /// A value of a round of a recursive table, as a column of its first part. Error 1264 for what is out of its range.
    pub fn of_round(&self, value: Scalar, to: &Field) -> Result<Scalar> {
        let from = value.field().data_type();
        if from == to.data_type() && value.field().metadata() == to.metadata() {
            return Ok(value);
        }
        let is_exact = matches!(
            to.data_type(),
            DataType::Decimal128(..) | DataType::Decimal256(..)
        ) || to.data_type().is_integer();
        let value = match !is_exact || from == to.data_type() || from.is_null() {
            true => value,
            false => {
                let null = ScalarValue::try_from(to.data_type())?;
                let null = Scalar::typed_literal(null, to.metadata().clone());
                let name = Scalar::literal(ScalarValue::Utf8(Some(to.name().clone())));
                self.call("$fitted", vec![value, null, name])?
            }
        };
        let operands = Operands::default();
        let value = operands.expr(value)?;
        let schema = operands.schema()?;
        operands.scalar(as_column_of(value, to, &schema, None)?)
    }

    /// A condition over a table by which a statement finds the rows that it changes. `parts`: its parts, and whether
    /// they have subqueries; `indexed`: columns that indexes begin with.
    pub fn watched_condition(
        &self,
        parts: Vec<(Scalar, bool)>,
        indexed: &[String],
    ) -> Result<Scalar> {
        let operands = Operands::default();
        let parts = parts
            .into_iter()
            .map(|(part, has_subquery)| Ok((operands.whole(&part)?, has_subquery)));
        let rows = WatchedRows::Table(indexed);
        operands.scalar(watched_condition(parts.collect::<Result<_>>()?, rows)?)
    }

    /// The same of a condition over a join by `conditions`, without subqueries.
    pub fn watched_condition_of_join(
        &self,
        parts: &[Scalar],
        conditions: &[Scalar],
    ) -> Result<Scalar> {
        let operands = Operands::default();
        let parts = parts.iter();
        let parts = parts.map(|part| Ok((operands.whole(part)?, false)));
        let parts = parts.collect::<Result<_>>()?;
        let conditions = conditions.iter().map(|condition| operands.whole(condition));
        let rows = WatchedRows::Join(conditions.collect::<Result<_>>()?);
        operands.scalar(watched_condition(parts, rows)?)
    }

    /// A condition over a table, where texts that are no numbers are errors.
    pub fn refused_texts(&self, condition: Scalar) -> Result<Scalar> {
        let operands = Operands::default();
        let condition = operands.whole(&condition)?;
        let schema = operands.schema()?;
        operands.scalar(refused_texts(condition, &schema, self.texts)?)
    }

    /// What a value sorts by: the sort key of a text, for example.
    pub fn sort_key(&self, value: Scalar) -> Result<Scalar> {
        let operands = Operands::default();
        let value = operands.expr(value)?;
        let schema = operands.schema()?;
        operands.scalar(key_of(value, &schema)?)
    }

    /// What MIN and MAX choose a value by.
    pub fn extreme_key(&self, value: Scalar) -> Result<Scalar> {
        let Some(collation) = extreme_collation(&value.sql_type()) else {
            return self.sort_key(value);
        };
        let operands = Operands::default();
        let value = operands.expr(value)?;
        operands.scalar(collation_key(value, collation))
    }

    /// What a value is grouped by: rows are equal where this is.
    pub fn group_key(&self, value: Scalar) -> Result<Scalar> {
        let operands = Operands::default();
        let value = operands.expr(value)?;
        let schema = operands.schema()?;
        let key = group_key(&value, &schema)?;
        operands.scalar(key.unwrap_or(value))
    }

    pub fn aggregate(&self, call: AggregateCall) -> Result<Aggregate> {
        let operands = Operands::default();
        let arguments = operands.exprs(call.arguments)?;
        let function = AggregateFunction::new_udf(
            call.function,
            arguments,
            call.distinct,
            None,
            Vec::new(),
            None,
        );
        let schema = operands.schema()?;
        let typed = resolve_node(
            Expr::AggregateFunction(function),
            &schema,
            self.texts,
            self.purpose,
        )?;
        let field = field_of_aggregate(&typed, &schema)?;
        let Expr::AggregateFunction(AggregateFunction { func, params }) = typed else {
            return internal_err!("the typing rule has made {typed} of an aggregate");
        };
        for argument in &params.args {
            operands.count_uses(argument)?;
        }
        let arguments = operands.parts(params.args)?;
        Ok(Aggregate {
            taken_types: taken_types(&arguments, func.as_ref())?,
            function: func,
            arguments,
            distinct: params.distinct,
            order_by: Vec::new(),
            field,
        })
    }

    pub fn window(&self, call: WindowCall) -> Result<WindowFunction> {
        let operands = Operands::default();
        let order_by = call.order_by.into_iter().map(|(value, descends)| {
            Ok(SortExpr {
                expr: operands.expr(value)?,
                asc: !descends,
                nulls_first: !descends,
            })
        });
        let function = WindowExpr {
            fun: call.function,
            params: WindowFunctionParams {
                order_by: order_by.collect::<Result<_>>()?,
                args: operands.exprs(call.arguments)?,
                partition_by: operands.exprs(call.partition_by)?,
                window_frame: call.frame,
                filter: None,
                null_treatment: call.null_treatment,
                distinct: call.distinct,
            },
        };
        let schema = operands.schema()?;
        let function = Expr::WindowFunction(Box::new(function));
        let typed = resolve_node(function, &schema, self.texts, self.purpose)?;
        let field = typed.to_field(&schema)?.1;
        let Expr::WindowFunction(typed) = typed else {
            return internal_err!("the typing rule has made {typed} of a window function");
        };
        let WindowExpr { fun, params } = *typed;
        let order_by = params.order_by.into_iter().map(|order| {
            Ok(WindowOrder {
                value: operands.part(order.expr)?,
                ascending: order.asc,
                nulls_first: order.nulls_first,
            })
        });
        let order_by = order_by.collect::<Result<Vec<_>>>()?;
        let arguments = operands.parts(params.args)?;
        let taken_types = match &fun {
            WindowFunctionDefinition::AggregateUDF(function) => {
                taken_types(&arguments, function.as_ref())
            }
            WindowFunctionDefinition::WindowUDF(function) => {
                taken_types(&arguments, function.as_ref())
            }
        };
        Ok(WindowFunction {
            function: fun,
            arguments,
            taken_types: taken_types?,
            partition_by: operands.parts(params.partition_by)?,
            frame: typed_frame(params.window_frame, &order_by)?,
            order_by,
            null_treatment: params.null_treatment,
            distinct: params.distinct,
            field,
        })
    }

    fn node(&self, expr: Expr, operands: &Operands) -> Result<Scalar> {
        let schema = operands.schema()?;
        let typed = resolve_node(expr, &schema, self.texts, self.purpose)?;
        operands.scalar(typed)
    }
}

/// What a column is compared with instead of a number. It is what the rule says of most comparisons, without asking it.
fn number_beside_column(column: &Scalar, number: &Scalar) -> Option<Scalar> {
    match (&column.kind, &number.kind) {
        (ScalarKind::Column(_), ScalarKind::Literal(value))
            if number.field.metadata().is_empty() =>
        {
            number_of_column(&column.field, value).map(Scalar::literal)
        }
        _ => None,
    }
}

/// The types in which a function takes these arguments.
fn taken_types<F: UDFCoercionExt>(arguments: &[Scalar], function: &F) -> Result<Vec<DataType>> {
    let arguments = arguments.iter();
    let fields: Vec<FieldRef> = arguments
        .map(|argument| Arc::clone(argument.field()))
        .collect();
    let taken = fields_with_udf(&fields, function)?.into_iter();
    Ok(taken.map(|field| field.data_type().clone()).collect())
}

/// A frame whose ends of the partition have a type, as its distances do: that of the order of a RANGE, spans of time
/// for one over dates.
fn typed_frame(mut frame: WindowFrame, order_by: &[WindowOrder]) -> Result<WindowFrame> {
    let data_type = match frame.units {
        WindowFrameUnits::Rows | WindowFrameUnits::Groups => DataType::UInt64,
        WindowFrameUnits::Range => match order_by.first() {
            Some(order) => match order.value.field().data_type() {
                DataType::Date32 | DataType::Timestamp(..) => {
                    DataType::Interval(IntervalUnit::MonthDayNano)
                }
                other => other.clone(),
            },
            None => return internal_err!("a frame of RANGE without an order"),
        },
    };
    for bound in [&mut frame.start_bound, &mut frame.end_bound] {
        if let WindowFrameBound::Preceding(distance) | WindowFrameBound::Following(distance) = bound
            && distance.is_null()
        {
            *distance = ScalarValue::try_from(&data_type)?;
        }
    }
    Ok(frame)
}

/// The operands of a node while it is put to the rule.
#[derive(Default)]
struct Operands {
    /// What stand-ins stand for, by their numbers. The last one that is put back takes it.
    hidden: RefCell<Vec<Option<Scalar>>>,
    /// How often each is still to be put back. Empty where that is not known.
    uses: RefCell<Vec<usize>>,
    /// The columns that the rule sees, with their fields.
    columns: RefCell<Vec<(ColumnId, FieldRef)>>,
}

impl Operands {
    fn exprs(&self, scalars: Vec<Scalar>) -> Result<Vec<Expr>> {
        let whole = scalars.iter().any(Scalar::notes);
        let scalars = scalars.into_iter();
        scalars
            .map(|scalar| match whole {
                true => self.whole(&scalar),
                false => self.expr(scalar),
            })
            .collect()
    }

    /// What the rule sees of an operand.
    fn expr(&self, scalar: Scalar) -> Result<Expr> {
        Ok(match scalar.kind {
            // It may be long, and nothing else has it.
            ScalarKind::Literal(value) => written_literal(value, &scalar.field),
            ScalarKind::Column(_) => self.whole(&scalar)?,
            _ if scalar.notes => self.whole(&scalar)?,
            _ => {
                let mut hidden = self.hidden.borrow_mut();
                let stand_in = stand_in(hidden.len(), Arc::clone(&scalar.field), scalar.size());
                hidden.push(Some(scalar));
                stand_in
            }
        })
    }

    fn has_hidden(&self) -> bool {
        !self.hidden.borrow().is_empty()
    }

    /// The expression with these operands as they are.
    fn with_whole(&self, expr: Expr, numbers: &[usize]) -> Result<Expr> {
        let hidden = self.hidden.borrow();
        let with_whole = expr.transform_down(|expr| {
            let number = stand_in_number(&expr).filter(|number| numbers.contains(number));
            Ok(match number.and_then(|number| hidden[number].as_ref()) {
                Some(scalar) => {
                    Transformed::new(self.whole(scalar)?, true, TreeNodeRecursion::Jump)
                }
                None => Transformed::no(expr),
            })
        })?;
        Ok(with_whole.data)
    }

    /// An operand as it is.
    fn whole(&self, scalar: &Scalar) -> Result<Expr> {
        scalar.to_expr(&|id, field| {
            let mut columns = self.columns.borrow_mut();
            if !columns.iter().any(|(known, _)| *known == id) {
                columns.push((id, Arc::clone(field)));
            }
            Expr::Column(PlanColumn::new(Some(table_of(id)), field.name()))
        })
    }

    /// The columns that are seen.
    fn schema(&self) -> Result<Arc<DFSchema>> {
        static EMPTY: LazyLock<Arc<DFSchema>> = LazyLock::new(|| Arc::new(DFSchema::empty()));
        let columns = self.columns.borrow();
        if columns.is_empty() {
            return Ok(Arc::clone(&EMPTY));
        }
        let fields = columns.iter();
        let fields = fields.map(|(id, field)| (Some(table_of(*id)), Arc::clone(field)));
        let schema = DFSchema::new_with_metadata(fields.collect(), HashMap::new())?;
        Ok(Arc::new(schema))
    }

    /// What the rule has made of all operands.
    fn scalar(&self, expr: Expr) -> Result<Scalar> {
        self.count_uses(&expr)?;
        self.part(expr)
    }

    /// A part of what the rule has made.
    fn part(&self, expr: Expr) -> Result<Scalar> {
        Scalar::from_expr(expr, &|expr| self.leaf(expr))
    }

    fn parts(&self, exprs: Vec<Expr>) -> Result<Vec<Scalar>> {
        exprs.into_iter().map(|expr| self.part(expr)).collect()
    }

    fn count_uses(&self, expr: &Expr) -> Result<()> {
        if !self.has_hidden() {
            return Ok(());
        }
        let mut uses = self.uses.borrow_mut();
        uses.resize(self.hidden.borrow().len(), 0);
        expr.apply(|expr| {
            if let Some(number) = stand_in_number(expr) {
                uses[number] += 1;
            }
            Ok(TreeNodeRecursion::Continue)
        })?;
        Ok(())
    }

    /// What an expression stands for.
    fn leaf(&self, expr: &Expr) -> Option<Scalar> {
        match expr {
            Expr::Column(column) => {
                let columns = self.columns.borrow();
                let table = column.relation.as_ref()?.table();
                let id = ColumnId(table.strip_prefix('#')?.parse().ok()?);
                let (_, field) = columns.iter().find(|(known, _)| *known == id)?;
                Some(Scalar::column(id, Arc::clone(field)))
            }
            Expr::ScalarFunction(_) => {
                let number = stand_in_number(expr)?;
                let (mut hidden, mut uses) = (self.hidden.borrow_mut(), self.uses.borrow_mut());
                match uses.get_mut(number) {
                    Some(1) => hidden[number].take(),
                    Some(uses) => {
                        *uses -= 1;
                        hidden[number].clone()
                    }
                    None => hidden[number].clone(),
                }
            }
            _ => None,
        }
    }
}

/// The rule's messages name a column by its name alone, so the id is the table.
fn table_of(id: ColumnId) -> TableReference {
    TableReference::bare(id.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use sheaf_exec::functions::truncated::TruncatedTexts;

    const DEPTH: usize = 60;

    fn column(id: u32, name: &str) -> Scalar {
        let field = Field::new(name, DataType::Int64, true);
        Scalar::column(ColumnId(id), Arc::new(field))
    }

    fn number(number: i64) -> Scalar {
        Scalar::literal(ScalarValue::Int64(Some(number)))
    }

    /// The size of what DataFusion gets, bodies of functions apart.
    fn nodes(scalar: &Scalar) -> usize {
        let named =
            |id: ColumnId, _: &FieldRef| Expr::Column(PlanColumn::from_name(id.to_string()));
        let expr = scalar.to_expr(&named).unwrap();
        assert!(stand_ins_in_bodies(&expr).is_empty());
        let mut nodes = 0;
        expr.apply(|expr| {
            nodes += 1;
            assert_eq!(stand_in_number(expr), None);
            Ok(TreeNodeRecursion::Continue)
        })
        .unwrap();
        nodes
    }

    #[test]
    fn nests_have_as_many_nodes_as_are_written() {
        let texts = Texts::of(Default::default(), TruncatedTexts::default());
        let typing = Typing {
            texts: &texts,
            purpose: Purpose::Shown,
        };
        let (a, b) = (|| column(0, "a"), || column(1, "b"));
        let call = |name: &str, arguments: Vec<Scalar>| typing.call(name, arguments).unwrap();
        let value = |condition: Scalar| typing.value(condition).unwrap();
        let truth = |scalar: Scalar| typing.condition(scalar).unwrap();
        type Wrap<'a> = (&'static str, Box<dyn Fn(Scalar) -> Scalar + 'a>);
        let wraps: Vec<Wrap<'_>> = vec![
            ("+", Box::new(|x| call("$add", vec![x, b()]))),
            ("=", Box::new(|x| value(call("$eq", vec![x, b()])))),
            (
                "between",
                Box::new(|x| value(call("$between", vec![x, number(0), b()]))),
            ),
            ("in", Box::new(|x| value(call("$in", vec![x, a(), b()])))),
            (
                "row in",
                Box::new(|x| {
                    let row = vec![number(2), x, b(), number(1), a(), number(3), b()];
                    value(call("$row_in", row))
                }),
            ),
            (
                "row <",
                Box::new(|x| value(call("$row_lt", vec![x, a(), b(), number(1)]))),
            ),
            ("nullif", Box::new(|x| call("nullif", vec![x, b()]))),
            ("nullif of", Box::new(|x| call("nullif", vec![b(), x]))),
            ("ifnull", Box::new(|x| call("coalesce", vec![x, b()]))),
            (
                "ifnull of a sum",
                Box::new(|x| {
                    let sum = call("$add", vec![b(), number(1)]);
                    call("coalesce", vec![sum, x, b()])
                }),
            ),
            ("if", Box::new(|x| call("$case", vec![truth(x), a(), b()]))),
            (
                "then",
                Box::new(|x| call("$case", vec![truth(a()), x, b()])),
            ),
            (
                "else",
                Box::new(|x| call("$case", vec![truth(a()), b(), x])),
            ),
            (
                "case of a value",
                Box::new(|x| {
                    let arguments = vec![x, number(1), a(), number(2), b(), number(3)];
                    call("$simple_case", arguments)
                }),
            ),
            (
                "case of a value, then",
                Box::new(|x| call("$simple_case", vec![a(), number(1), x, b()])),
            ),
        ];
        for (name, wrap) in wraps {
            let few = (0..DEPTH).fold(a(), |nested, _| wrap(nested));
            let many = (0..2 * DEPTH).fold(a(), |nested, _| wrap(nested));
            let (few, many) = (nodes(&few), nodes(&many));
            assert!(
                few < 20 * DEPTH && many < 3 * few + 20,
                "{name}: {few}, {many}"
            );
        }
    }

    #[test]
    fn many_branches_are_behind_a_name() {
        let texts = Texts::of(Default::default(), TruncatedTexts::default());
        let typing = Typing {
            texts: &texts,
            purpose: Purpose::Shown,
        };
        let case = |branches: i64| {
            let branches = (0..branches).flat_map(|at| {
                let equal = typing.call("$eq", vec![column(0, "a"), number(at)]);
                [equal.unwrap(), number(at)]
            });
            typing.call("$case", branches.collect()).unwrap()
        };
        assert!(matches!(case(3).kind(), ScalarKind::Case { .. }));
        // It has one argument, the column.
        let many = case(1000);
        assert_eq!(nodes(&many), 2);
        assert_eq!(many, case(1000));
        assert_ne!(many, case(999));
    }

    #[test]
    fn functions_get_their_arguments_in_the_types_that_they_take() {
        let texts = Texts::of(Default::default(), TruncatedTexts::default());
        let typing = Typing {
            texts: &texts,
            purpose: Purpose::Shown,
        };
        let name = |id: ColumnId, _: &FieldRef| Expr::Column(PlanColumn::from_name(id.to_string()));
        let sum = || sheaf_exec::aggregates::aggregate_function("$sum").unwrap();
        let aggregate = typing.aggregate(AggregateCall {
            function: sum(),
            arguments: vec![column(0, "a")],
            distinct: false,
        });
        let aggregate = aggregate.unwrap();
        assert_eq!(aggregate.arguments(), [column(0, "a")]);
        let expr = aggregate.to_expr(&name).unwrap().to_string();
        assert_eq!(expr, "$sum(CAST(#0 AS Decimal128(20, 0)))");

        let frame = |units, distance| {
            let (start, end) = (
                WindowFrameBound::Preceding(distance),
                WindowFrameBound::CurrentRow,
            );
            WindowFrame::new_bounds(units, start, end)
        };
        let window = |order: Scalar, frame: WindowFrame| {
            let function = typing.window(WindowCall {
                function: WindowFunctionDefinition::AggregateUDF(sum()),
                arguments: vec![column(0, "a")],
                partition_by: Vec::new(),
                order_by: vec![(order, false)],
                frame,
                null_treatment: None,
                distinct: false,
            });
            function.unwrap().to_expr(&name).unwrap().to_string()
        };
        let one = ScalarValue::UInt64(Some(1));
        let rows = window(column(1, "b"), frame(WindowFrameUnits::Rows, one));
        let summed = "$sum(CAST(#0 AS Decimal128(20, 0)))";
        assert_eq!(
            rows,
            format!(
                "{summed} ORDER BY [#1 ASC NULLS FIRST] ROWS BETWEEN 1 PRECEDING AND CURRENT ROW"
            )
        );
        let small = Field::new("d", DataType::Int8, true);
        let order = WindowOrder {
            value: Scalar::column(ColumnId(3), Arc::new(small)),
            ascending: true,
            nulls_first: true,
        };
        let endless = frame(WindowFrameUnits::Range, ScalarValue::Null);
        let typed = typed_frame(endless, &[order]).unwrap();
        assert_eq!(
            typed.start_bound,
            WindowFrameBound::Preceding(ScalarValue::Int8(None))
        );
    }
}
