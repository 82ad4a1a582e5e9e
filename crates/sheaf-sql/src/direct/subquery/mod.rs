//! Subqueries of a query over rows: each is a direct plan of its own, which runs once for each row.
//!
//! ```text
//!   SELECT p.id, (SELECT COUNT(*) FROM c WHERE c.post = p.id) FROM p WHERE p.user = ?
//!                 SELECT COUNT(*) FROM c WHERE c.post = ?n     a parameter behind those of the statement
//! ```
//!
//! What a subquery takes from the row ([`correlation`]) are operands of comparisons with its own columns, or values
//! that operands are computed of: `c.post = p.id + 1`. Its value is one more column of the row. EXISTS and scalar
//! subqueries are such; others are left to the vectorised path.
//!
//! A scalar subquery that a WHERE compares with runs before the statement. What it comes to, if that is a whole number,
//! is a parameter ([`with_places`]): so it is an operand of keys as well. In the same way subqueries bring a list of
//! whole numbers ([`with_list`]):
//!
//! ```text
//!   WHERE id IN (SELECT user FROM c WHERE post = ?)    ->    WHERE id IN (what it finds)
//!   WHERE email = ? OR id = ?                          ->    WHERE id IN (ids WHERE email = ?, ids WHERE id = ?)
//! ```
//!
//! | file | what it holds |
//! |---|---|
//! | [`quantified`] | IN, ANY and ALL of subqueries, written as EXISTS |

mod correlation;
pub(super) mod quantified;

use std::ops::ControlFlow;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, Int64Array, RecordBatch, new_null_array};
use arrow::compute::concat;
use arrow::datatypes::{DataType, Field};
use sheaf_access::IndexRef;
use sheaf_exec::functions::SqlType;
use sheaf_exec::functions::control::common_field;
use sheaf_exec::functions::types::{bit_length, field, zerofill};
use sheaf_frontend::bind::over_rows::VALUE_OF_SUBQUERY;
use sheaf_frontend::varying::varies_by_row;
use sheaf_frontend::walk::{ExpressionVisitor, walk_expression};
use sheaf_types::Value;
use sqlparser::ast;

use self::correlation::FromRow;
use super::access::{MAX_LIST, list_in_place};
use super::derived::part_of_from;
use super::expression::{Evaluator, Expressions};
use super::rows::values::Values;
use super::syntax::attempt::Attempt;
use super::syntax::headers::Spelled;
use super::syntax::names::{Names, column_of};
use super::syntax::select_shape::{computes_nothing, is_constant};
use super::{Action, DirectPlan, needs_of};
use crate::change::values::assigned::last_part;
use crate::error::{Result, SqlError};
use crate::parser::Parsed;
use crate::parser::statement::Statement;
use crate::query::rows::value_at;
use crate::query::values::{ONE_ITEM, select_of};
use crate::session::Session;

/// An OR of several columns has so many branches, at most.
const MAX_BRANCHES: usize = 8;

/// A query has so many subqueries, at most: each looks through the text of the statement for its headers.
const MAX_SUBQUERIES: usize = 64;

/// A subquery in the place of which a column stands.
pub(super) struct Subquery {
    pub(super) plan: DirectPlan,
    /// The columns of the row that are its parameters, with their tables' positions in the FROM.
    pub(super) outer: Vec<(usize, usize)>,
    /// What is computed of them, the parameters behind them.
    pub(super) computed: Option<Expressions>,
    pub(super) is_exists: bool,
    /// Something is computed of its value.
    is_operand: bool,
    query: Box<ast::Query>,
    /// As the statement has it.
    written: ast::Expr,
}

impl std::fmt::Debug for Subquery {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.written)
    }
}

/// Takes subqueries out of expressions.
pub(super) struct Subqueries<'a> {
    pub(super) session: &'a Session,
    pub(super) names: &'a [Names<'a>],
    pub(super) attempt: Attempt<'a>,
    pub(super) found: Vec<Subquery>,
    depth: usize,
    /// The expressions around the current one: whether each of them computes with the values of its operands.
    computes: Vec<bool>,
    is_refused: bool,
}

impl<'a> Subqueries<'a> {
    pub(super) fn new(
        session: &'a Session,
        names: &'a [Names<'a>],
        attempt: Attempt<'a>,
    ) -> Subqueries<'a> {
        Subqueries {
            session,
            names,
            attempt,
            found: Vec::new(),
            depth: 0,
            computes: Vec::new(),
            is_refused: false,
        }
    }

    /// Puts columns in the places of subqueries; `None` if there is one that has no direct plan.
    pub(super) fn take_from(&mut self, expr: &mut ast::Expr) -> Option<()> {
        walk_expression(expr, self);
        (!self.is_refused).then_some(())
    }

    fn subquery(&self, written: ast::Expr) -> Option<Subquery> {
        let (query, is_exists) = match &written {
            ast::Expr::Exists { subquery, .. } => (subquery, true),
            ast::Expr::Subquery(query) => (query, false),
            _ => return None,
        };
        // It is another one for each row, and not what a statement computes before.
        if varies_by_row(query) {
            return None;
        }
        let mut query = query.as_ref().clone();
        if is_exists && query.limit_clause.is_none() {
            query.limit_clause = Some(ast::LimitClause::LimitOffset {
                limit: Some(ast::Expr::value(ast::Value::Number("1".into(), false))),
                offset: None,
                limit_by: Vec::new(),
            });
        }
        let mut taken = FromRow::default();
        let ast::SetExpr::Select(select) = query.body.as_mut() else {
            return None;
        };
        // EXISTS does not compute what it lists, and a direct plan does.
        if is_exists && !select.projection.iter().all(computes_nothing) {
            return None;
        }
        for part in &mut select.from {
            self.correlate_query(&mut part.relation, &mut taken);
            for join in &mut part.joins {
                self.correlate_query(&mut join.relation, &mut taken);
            }
        }
        let before = self.attempt.parameters;
        let with_columns = self.attempt.with_parameters(before + taken.columns.len());
        let mut inner = Vec::new();
        for part in &select.from {
            inner.push(part_of_from(self.session, &part.relation, with_columns)?);
            for join in &part.joins {
                inner.push(part_of_from(self.session, &join.relation, with_columns)?);
            }
        }
        if let Some(selection) = &mut select.selection {
            self.correlate(selection, &inner, &mut taken);
        }
        drop(inner);
        let computed = taken.computed(&mut query, self.names, before)?;
        // The conditions may have taken columns, too.
        let columns = taken.columns.len();
        let parameters = before + columns + computed.as_ref().map_or(0, Expressions::len);
        let attempt = self.attempt.with_parameters(parameters);
        let action = self.session.query_action(&query, attempt)?;
        // Whatever runs for each row reads few rows each time.
        let reads_small = match &action {
            Action::Join(join) => join.reads_small(),
            Action::OverRows(query) => query.rows.reads_small(),
            _ => false,
        };
        if reads_small {
            return None;
        }
        let statement = Statement::Query(Box::new(query));
        let needs = needs_of(&action, &statement);
        let plan = DirectPlan::given_parameters(action, needs, parameters);
        let Statement::Query(query) = statement else {
            return None;
        };
        let is_plain = plan.needs.iter().all(|need| need.locks.is_none());
        (is_plain && (is_exists || plan.result_columns() == 1)).then_some(Subquery {
            plan,
            outer: taken.columns,
            computed,
            is_exists,
            is_operand: self.computes.contains(&true),
            query,
            written,
        })
    }
}

impl ExpressionVisitor for Subqueries<'_> {
    fn enter_query(&mut self, _query: &ast::Query) {
        self.depth += 1;
    }

    fn leave_query(&mut self) {
        self.depth -= 1;
    }

    fn enter_expression(&mut self, expression: &ast::Expr) {
        self.computes.push(computes(expression));
    }

    fn leave_expression(&mut self, expression: &mut ast::Expr) -> ControlFlow<()> {
        self.computes.pop();
        if self.depth == 0
            && let ast::Expr::Subquery(query) = &*expression
            && self.computes.contains(&true)
            && may_have_hidden_digits(query)
        {
            self.is_refused = true;
            return ControlFlow::Break(());
        }
        if self.depth == 0
            && let ast::Expr::Subquery(query) = &*expression
            && is_a_constant(query)
        {
            self.is_refused = true;
            return ControlFlow::Break(());
        }
        // A column in its place is no value to compare with.
        if self.depth == 0
            && matches!(
                expression,
                ast::Expr::AnyOp { .. } | ast::Expr::AllOp { .. }
            )
        {
            self.is_refused = true;
            return ControlFlow::Break(());
        }
        if self.depth > 0
            || !matches!(
                expression,
                ast::Expr::Exists { .. } | ast::Expr::Subquery(_)
            )
        {
            return ControlFlow::Continue(());
        }
        let name = format!("{VALUE_OF_SUBQUERY}{}", self.found.len());
        let column = ast::Expr::Identifier(ast::Ident::with_quote('`', name));
        let column = match expression {
            ast::Expr::Exists { negated: true, .. } => ast::Expr::UnaryOp {
                op: ast::UnaryOperator::Not,
                expr: Box::new(column),
            },
            _ => column,
        };
        let written = std::mem::replace(expression, column);
        let subquery = match self.found.len() < MAX_SUBQUERIES {
            true => self.subquery(written),
            false => None,
        };
        let Some(subquery) = subquery else {
            self.is_refused = true;
            return ControlFlow::Break(());
        };
        self.found.push(subquery);
        ControlFlow::Continue(())
    }
}

/// Whether an expression computes something of its operands. A comparison takes them as they are shown.
fn computes(expression: &ast::Expr) -> bool {
    match expression {
        ast::Expr::Nested(_) | ast::Expr::Subquery(_) | ast::Expr::Exists { .. } => false,
        ast::Expr::InList { .. } | ast::Expr::Between { .. } => false,
        ast::Expr::IsNull(_) | ast::Expr::IsNotNull(_) => false,
        ast::Expr::BinaryOp { op, .. } => !matches!(
            op,
            ast::BinaryOperator::And
                | ast::BinaryOperator::Or
                | ast::BinaryOperator::Xor
                | ast::BinaryOperator::Eq
                | ast::BinaryOperator::NotEq
                | ast::BinaryOperator::Lt
                | ast::BinaryOperator::LtEq
                | ast::BinaryOperator::Gt
                | ast::BinaryOperator::GtEq
                | ast::BinaryOperator::Spaceship
        ),
        _ => true,
    }
}

/// Whether a query has no table, and its value is made of nothing that changes with rows. To others it is what it is
/// made of, which may be a date beside dates, and is not NULL.
fn is_a_constant(query: &ast::Query) -> bool {
    let ast::SetExpr::Select(select) = query.body.as_ref() else {
        return false;
    };
    let is_made_of_constants = |item: &ast::SelectItem| match item {
        ast::SelectItem::UnnamedExpr(expr) | ast::SelectItem::ExprWithAlias { expr, .. } => {
            is_constant(expr)
        }
        _ => false,
    };
    select.from.is_empty() && select.projection.iter().all(is_made_of_constants)
}

/// Whether the value of a query may be a quotient, which has more digits than are shown. A direct plan of a subquery
/// brings what is shown.
pub(super) fn may_have_hidden_digits(query: &ast::Query) -> bool {
    let divides = |expression: &ast::Expr| match expression {
        ast::Expr::BinaryOp { op, .. } => *op == ast::BinaryOperator::Divide,
        ast::Expr::Function(function) => last_part(&function.name).eq_ignore_ascii_case("avg"),
        _ => false,
    };
    let found = ast::visit_expressions(query, |expression| match divides(expression) {
        true => ControlFlow::Break(()),
        false => ControlFlow::Continue(()),
    });
    found.is_break()
}

/// Puts subqueries back into the places of their columns.
pub(super) struct Restored<'a>(pub(super) &'a [Subquery]);

impl ExpressionVisitor for Restored<'_> {
    fn leave_expression(&mut self, expression: &mut ast::Expr) -> ControlFlow<()> {
        let is_column = |expr: &ast::Expr| match expr {
            ast::Expr::Identifier(name) => {
                let number: usize = name.value.strip_prefix(VALUE_OF_SUBQUERY)?.parse().ok()?;
                self.0.get(number)
            }
            _ => None,
        };
        if let Some(subquery) = is_column(expression) {
            *expression = match &subquery.written {
                // NOT stands before the column.
                ast::Expr::Exists { subquery, .. } => ast::Expr::Exists {
                    subquery: subquery.clone(),
                    negated: false,
                },
                written => written.clone(),
            };
        }
        ControlFlow::Continue(())
    }
}

impl Subquery {
    pub(super) fn is_current(&self) -> bool {
        self.plan.is_current()
    }

    pub(super) fn needs(&self) -> &[crate::accounts::TableNeed] {
        &self.plan.needs
    }

    /// The column of its values; `None` if its type cannot be told.
    pub(super) fn field(&self, number: usize, session: &Session, text: &str) -> Option<Field> {
        let name = format!("{VALUE_OF_SUBQUERY}{number}");
        if self.is_exists {
            // As a number, which it is to MySQL.
            return Some(field::bigint().with_name(name).with_nullable(false));
        }
        let types = session.column_types(Parsed::new(&self.query, text)).ok()?;
        let column = types.first()?;
        // Functions and aggregates take the number of a BIT, and all digits of a FLOAT.
        let is_shown_otherwise =
            SqlType::of(column) == SqlType::Float || bit_length(column).is_some();
        if self.is_operand && is_shown_otherwise {
            return None;
        }
        // The value of an ENUM is its label, and a number has no ZEROFILL.
        let is_enum = matches!(SqlType::of(column), SqlType::Enum { .. });
        let field = match is_enum || zerofill(column).is_some() {
            true => common_field(std::slice::from_ref(column)).ok()?,
            false => column.as_ref().clone(),
        };
        Some(field.with_name(name).with_nullable(true))
    }

    /// Adds what is computed of a row, `own` of whose values are what the subquery takes, to the parameters of its run.
    /// False: it is no text.
    pub(super) fn compute(
        &self,
        computed: &Evaluator,
        (own, row): (&[usize], &[Value]),
        given: &mut Vec<Value>,
    ) -> Result<bool> {
        let batch = computed.row(|table, column| {
            let mut outer = self.outer.iter();
            let place = outer.position(|known| *known == (table, column));
            let value = place.and_then(|place| row.get(*own.get(place)?));
            value
                .cloned()
                .ok_or_else(|| SqlError::unknown("a column of a row"))
        })?;
        for item in 0..computed.len() {
            match computed.value(item, &batch)? {
                value @ (Value::Text(_) | Value::Null) => given.push(value),
                _ => return Ok(false),
            }
        }
        Ok(true)
    }

    /// Its value for a row that gives these parameters, as an array of one of this type. `None`: the vectorised path
    /// has to do it.
    pub(super) fn array(
        &self,
        session: &mut Session,
        parameters: &[Value],
        ty: &DataType,
    ) -> Result<Option<ArrayRef>> {
        Ok(match self.run(session, parameters)? {
            Outcome::NotDirect => None,
            Outcome::NoRow => Some(new_null_array(ty, 1)),
            Outcome::Value(value) => (value.data_type() == ty).then_some(value),
        })
    }

    /// The same as a value that is an operand like a literal of it; `None` of others, too.
    pub(super) fn number(
        &self,
        session: &mut Session,
        parameters: &[Value],
    ) -> Result<Option<Value>> {
        Ok(match self.run(session, parameters)? {
            Outcome::NotDirect => None,
            Outcome::NoRow => Some(Value::Null),
            Outcome::Value(value) if value.data_type().is_integer() => {
                let value = value_at(value.as_ref(), 0)?;
                let is_plain = matches!(value, Value::Int(_) | Value::UInt(_) | Value::Null);
                is_plain.then_some(value)
            }
            Outcome::Value(_) => None,
        })
    }

    /// Adds the values of all its rows to a list that is behind IN; NULL is equal to nothing. False: they are too many,
    /// or no whole numbers, or the vectorised path has to do it.
    pub(super) fn add_to_list(
        &self,
        session: &mut Session,
        parameters: &[Value],
        list: &mut Vec<Value>,
    ) -> Result<bool> {
        let Some(batches) = self.batches(session, parameters)? else {
            return Ok(false);
        };
        let rows: usize = batches.iter().map(RecordBatch::num_rows).sum();
        if list.len() + rows > MAX_LIST {
            return Ok(false);
        }
        for batch in &batches {
            let values = batch.column(0);
            if !values.data_type().is_integer() {
                return Ok(false);
            }
            for row in 0..batch.num_rows() {
                match value_at(values.as_ref(), row)? {
                    Value::Null => {}
                    value @ (Value::Int(_) | Value::UInt(_)) => list.push(value),
                    _ => return Ok(false),
                }
            }
        }
        Ok(true)
    }

    /// All its rows. `None`: the vectorised path has to do it.
    fn batches(
        &self,
        session: &mut Session,
        parameters: &[Value],
    ) -> Result<Option<Vec<RecordBatch>>> {
        let mut values = Values::default();
        let before = (session.outcome.found_rows, session.outcome.row_count);
        let given = (parameters, Spelled::AsWritten);
        let is_done = session.run_action(&self.plan.action, given, &mut values);
        let is_done = values.outcome(is_done)?;
        (session.outcome.found_rows, session.outcome.row_count) = before;
        Ok(is_done.then_some(values.batches))
    }

    fn run(&self, session: &mut Session, parameters: &[Value]) -> Result<Outcome> {
        let Some(batches) = self.batches(session, parameters)? else {
            return Ok(Outcome::NotDirect);
        };
        let rows: usize = batches.iter().map(RecordBatch::num_rows).sum();
        if self.is_exists {
            let exists = Int64Array::from_value(i64::from(rows > 0), 1);
            return Ok(Outcome::Value(Arc::new(exists)));
        }
        let mut batches = batches.iter();
        Ok(match batches.find(|batch| batch.num_rows() > 0) {
            None => Outcome::NoRow,
            Some(batch) if rows == 1 => Outcome::Value(batch.column(0).slice(0, 1)),
            // That is an error, which has a text.
            Some(_) => Outcome::NotDirect,
        })
    }
}

/// What a subquery has come to.
enum Outcome {
    NotDirect,
    NoRow,
    /// An array of one.
    Value(ArrayRef),
}

/// A query whose WHERE has places, behind so many parameters, for scalar subqueries that it compares with: they are
/// operands of its keys then. With these subqueries, which take nothing from a row.
pub(super) fn with_places(
    session: &Session,
    query: &ast::Query,
    attempt: Attempt<'_>,
) -> Option<(ast::Query, Vec<Subquery>)> {
    let is_candidate = |select: &ast::Select| {
        let selection = select.selection.as_ref();
        query.locks.is_empty() && selection.is_some_and(compares)
    };
    match query.body.as_ref() {
        ast::SetExpr::Select(select) if is_candidate(select) => {}
        _ => return None,
    }
    let mut query = query.clone();
    let mut found = Vec::new();
    if let ast::SetExpr::Select(select) = query.body.as_mut()
        && let Some(selection) = &mut select.selection
    {
        let subqueries = Subqueries::new(session, &[], attempt);
        put_places(selection, &subqueries, &mut found);
    }
    (!found.is_empty()).then_some((query, found))
}

/// A query in whose WHERE a list has the place of a subquery behind IN, or of an OR of several columns. The list is
/// behind so many parameters. These subqueries, which take nothing from a row, bring it. `None` if there is no such
/// place.
pub(super) fn with_list(
    session: &Session,
    query: &ast::Query,
    attempt: Attempt<'_>,
) -> Option<(ast::Query, Vec<Subquery>)> {
    let may_have_place =
        |select: &ast::Select| query.locks.is_empty() && select.selection.is_some();
    match query.body.as_ref() {
        ast::SetExpr::Select(select) if may_have_place(select) => {}
        _ => return None,
    }
    let mut changed = query.clone();
    let ast::SetExpr::Select(select) = changed.body.as_mut() else {
        return None;
    };
    let from = select.from.clone();
    let mut names = Vec::new();
    for part in &from {
        names.push(Names::of_factor(session, &part.relation)?);
        for join in &part.joins {
            let is_inner = matches!(
                &join.join_operator,
                ast::JoinOperator::Join(_)
                    | ast::JoinOperator::Inner(_)
                    | ast::JoinOperator::CrossJoin(_)
            );
            names.push(Names::of_factor(session, &join.relation).filter(|_| is_inner)?);
        }
    }
    let place = Place {
        subqueries: Subqueries::new(session, &[], attempt),
        own: Subqueries::new(session, &[], attempt.with_text(ONE_ITEM)),
        from: &from,
        names: &names,
        list: list_in_place(attempt.parameters),
    };
    let found = place.put_list(select.selection.as_mut()?)?;
    Some((changed, found))
}

/// Where a list goes.
struct Place<'a> {
    /// Those that the statement has.
    subqueries: Subqueries<'a>,
    /// Those that are made of it.
    own: Subqueries<'a>,
    from: &'a [ast::TableWithJoins],
    names: &'a [Names<'a>],
    list: ast::Expr,
}

impl Place<'_> {
    /// Puts the list into the first conjunct that has a place for it; what brings it.
    fn put_list(&self, condition: &mut ast::Expr) -> Option<Vec<Subquery>> {
        match condition {
            ast::Expr::Nested(inner) => self.put_list(inner),
            ast::Expr::BinaryOp {
                left,
                op: ast::BinaryOperator::And,
                right,
            } => self.put_list(left).or_else(|| self.put_list(right)),
            ast::Expr::BinaryOp {
                op: ast::BinaryOperator::Or,
                ..
            } => {
                let key = self.number_of_rows()?;
                let mut found = Vec::new();
                self.branches(condition, &key, &mut found)?;
                *condition = self.in_list(key);
                Some(found)
            }
            ast::Expr::InSubquery {
                expr,
                subquery,
                negated: false,
            } => {
                let (table, column) = column_of(self.names, expr)?;
                let ty = &self.names[table].definition().columns[column].ty;
                // LIMIT is an error there.
                if !ty.is_integer() || subquery.limit_clause.is_some() {
                    return None;
                }
                let found = subquery_of(&self.subqueries, subquery)?;
                *condition = self.in_list(expr.as_ref().clone());
                Some(vec![found])
            }
            _ => None,
        }
    }

    fn in_list(&self, expr: ast::Expr) -> ast::Expr {
        ast::Expr::InList {
            expr: Box::new(expr),
            list: vec![self.list.clone()],
            negated: false,
        }
    }

    /// The column that is the key of the only table's rows.
    fn number_of_rows(&self) -> Option<ast::Expr> {
        let [names] = self.names else {
            return None;
        };
        let key = IndexRef::Clustered.definition(names.table()?);
        let [part] = key.parts.as_slice() else {
            return None;
        };
        let column = &names.definition().columns[part.column];
        let alias = ast::Ident::with_quote('`', names.alias);
        let name = ast::Ident::with_quote('`', &column.name);
        (key.primary && column.ty.is_integer())
            .then(|| ast::Expr::CompoundIdentifier(vec![alias, name]))
    }

    /// The rows of each branch of an OR.
    fn branches(
        &self,
        condition: &ast::Expr,
        key: &ast::Expr,
        found: &mut Vec<Subquery>,
    ) -> Option<()> {
        match condition {
            ast::Expr::Nested(inner) => self.branches(inner, key, found),
            ast::Expr::BinaryOp {
                left,
                op: ast::BinaryOperator::Or,
                right,
            } => {
                self.branches(left, key, found)?;
                self.branches(right, key, found)
            }
            branch => {
                let mut query = select_of(vec![key.clone()]).ok()?;
                let ast::SetExpr::Select(select) = query.body.as_mut() else {
                    return None;
                };
                select.from = self.from.to_vec();
                select.selection = Some(branch.clone());
                found.push(subquery_of(&self.own, &query)?);
                (found.len() <= MAX_BRANCHES).then_some(())
            }
        }
    }
}

fn subquery_of(subqueries: &Subqueries<'_>, query: &ast::Query) -> Option<Subquery> {
    subqueries.subquery(ast::Expr::Subquery(Box::new(query.clone())))
}

/// Whether a conjunct is a comparison with a subquery.
fn compares(condition: &ast::Expr) -> bool {
    match condition {
        ast::Expr::Nested(inner) => compares(inner),
        ast::Expr::BinaryOp { left, op, right } => match op {
            ast::BinaryOperator::And => compares(left) || compares(right),
            _ => [left, right]
                .iter()
                .any(|side| matches!(side.as_ref(), ast::Expr::Subquery(_))),
        },
        _ => false,
    }
}

fn put_places(condition: &mut ast::Expr, subqueries: &Subqueries<'_>, found: &mut Vec<Subquery>) {
    use ast::BinaryOperator::{And, Eq, Gt, GtEq, Lt, LtEq};
    match condition {
        ast::Expr::Nested(inner) => put_places(inner, subqueries, found),
        ast::Expr::BinaryOp {
            left,
            op: And,
            right,
        } => {
            put_places(left, subqueries, found);
            put_places(right, subqueries, found);
        }
        ast::Expr::BinaryOp {
            left,
            op: Eq | Gt | GtEq | Lt | LtEq,
            right,
        } => {
            for side in [left, right] {
                if let ast::Expr::Subquery(_) = side.as_ref()
                    && let Some(subquery) = subqueries.subquery(side.as_ref().clone())
                {
                    let place = format!("?{}", subqueries.attempt.parameters + found.len());
                    **side = ast::Expr::value(ast::Value::Placeholder(place));
                    found.push(subquery);
                }
            }
        }
        _ => {}
    }
}

/// Values of one column, row by row, as one array.
pub(super) fn joined(values: &[ArrayRef], ty: &DataType) -> Result<ArrayRef> {
    if values.is_empty() {
        return Ok(new_null_array(ty, 0));
    }
    let arrays: Vec<&dyn Array> = values.iter().map(AsRef::as_ref).collect();
    Ok(concat(&arrays)?)
}
