//! Collects the expressions of a statement, and finds what in them changes from run to run.
//!
//! Columns and inputs get names in the places where they stand. An input may be a column of the batch only where
//! nothing but its type matters; which places those are is said here.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::ops::ControlFlow;

use sheaf_frontend::bind::over_rows::VALUE_OF_SUBQUERY;
use sheaf_frontend::syntax::copy_of;
use sheaf_frontend::varying::acts;
use sheaf_frontend::walk::{ExpressionVisitor, walk_expression};
use sheaf_table::TableDefinition;
use sheaf_types::Collation;
use sqlparser::ast;

use super::{Expressions, Free, INPUT, Input, Inputs, Kind, input_number};
use crate::change::insert::on_duplicate::{NEW, OLD};
use crate::direct::syntax::given::Given;
use crate::direct::syntax::names::{ColumnNames, Names, column_of};
use crate::direct::syntax::plain_call::is_aggregate_name;

/// Finds the column that a name is: the position of its kind of row, and its own.
type Resolve<'a> = dyn Fn(&ast::Expr) -> Option<(usize, usize)> + 'a;

/// Collects the expressions of a plan.
pub(in crate::direct) struct Collector<'a> {
    kinds: Vec<(&'a str, &'a TableDefinition)>,
    resolve: Box<Resolve<'a>>,
    items: Vec<ast::Expr>,
    condition: Option<ast::Expr>,
    columns: BTreeSet<(usize, usize)>,
    inputs: Vec<Input>,
    is_refused: bool,
    are_unfinished: bool,
    /// Of a whole query: what its items are called.
    aliases: Option<BTreeSet<String>>,
    /// Items are stored, and their types are not shown.
    are_stored: bool,
}

/// An expression that was collected.
pub(in crate::direct) struct Collected {
    /// Its number.
    pub(in crate::direct) item: usize,
    /// The columns that it reads, with their kinds of rows.
    pub(in crate::direct) columns: BTreeSet<(usize, usize)>,
}

impl<'a> Collector<'a> {
    /// Over several kinds of rows, or none.
    pub(in crate::direct) fn new(
        kinds: Vec<(&'a str, &'a TableDefinition)>,
        resolve: Box<Resolve<'a>>,
    ) -> Collector<'a> {
        Collector {
            kinds,
            resolve,
            items: Vec::new(),
            condition: None,
            columns: BTreeSet::new(),
            inputs: Vec::new(),
            is_refused: false,
            are_unfinished: false,
            aliases: None,
            are_stored: false,
        }
    }

    /// For items that are stored, so that their types are not shown.
    pub(in crate::direct) fn for_values(self) -> Collector<'a> {
        Collector {
            are_stored: true,
            ..self
        }
    }

    /// Over the row that an INSERT conflicts with and the row that it brings, whose columns are qualified.
    pub(in crate::direct) fn of_duplicates(definition: &'a TableDefinition) -> Collector<'a> {
        let resolve = |expr: &ast::Expr| {
            let ast::Expr::CompoundIdentifier(parts) = expr else {
                return None;
            };
            let [row, column] = parts.as_slice() else {
                return None;
            };
            let kind = [OLD, NEW].iter().position(|name| *name == row.value)?;
            Some((kind, definition.column_position(&column.value)?))
        };
        let kinds = [OLD, NEW].map(|name| (name, definition));
        Collector {
            are_unfinished: true,
            ..Collector::new(kinds.to_vec(), Box::new(resolve))
        }
    }

    /// Over the rows of a table.
    pub(in crate::direct) fn of_table(names: &'a Names<'a>) -> Collector<'a> {
        let resolve = |expr: &ast::Expr| names.column(expr).map(|column| (0, column));
        Collector::new(vec![(names.alias, names.definition())], Box::new(resolve))
    }

    /// Over the joined rows of tables, for a query whose items have such aliases.
    pub(in crate::direct) fn of_query(
        names: &'a [Names<'a>],
        aliases: BTreeSet<String>,
    ) -> Collector<'a> {
        let resolve = |expr: &ast::Expr| column_of(names, expr);
        let kinds = names.iter();
        let kinds = kinds.map(|names| (names.alias, names.definition()));
        Collector {
            aliases: Some(aliases),
            ..Collector::new(kinds.collect(), Box::new(resolve))
        }
    }

    /// Over no rows.
    pub(in crate::direct) fn of_constants() -> Collector<'static> {
        Collector::new(Vec::new(), Box::new(|_: &ast::Expr| None))
    }

    /// Takes an expression; `None` if it is not computed from a row.
    pub(in crate::direct) fn add(&mut self, expr: &ast::Expr) -> Option<Collected> {
        let before = std::mem::take(&mut self.columns);
        // Without room for a copy, the operators say so.
        let mut item = copy_of(expr).ok()?;
        self.take_part(&mut item)?;
        if let Some(number) = input_number(&item) {
            // It is given out as it is.
            self.inputs[number].free = Free::All;
        }
        self.free_item(&item);
        let columns = std::mem::replace(&mut self.columns, before);
        self.columns.extend(&columns);
        self.items.push(item);
        Some(Collected {
            item: self.items.len() - 1,
            columns,
        })
    }

    /// Puts names in the places of the inputs of a part of a query; `None` if it is not computed from rows.
    pub(in crate::direct) fn take_part(&mut self, part: &mut ast::Expr) -> Option<()> {
        walk_expression(part, self);
        let is_whole = !self.is_refused && !has_place(part);
        is_whole.then_some(())
    }

    /// Sees to it that an item of a query which is nothing but a parameter is a column.
    pub(in crate::direct) fn free_parameter(&mut self, item: &ast::Expr) {
        if let Some(number) = input_number(item)
            && matches!(self.inputs[number].given, Given::Parameter(_))
        {
            self.inputs[number].free = Free::All;
        }
    }

    /// Whether there are inputs so far.
    pub(in crate::direct) fn has_inputs(&self) -> bool {
        !self.inputs.is_empty()
    }

    /// Reads a column, whether or not an expression does.
    pub(in crate::direct) fn read(&mut self, kind: usize, column: usize) {
        self.columns.insert((kind, column));
    }

    /// The columns that a query reads, with their tables, and its inputs. `constant`: these are parts of the query
    /// and no columns, which would have to be grouped by.
    pub(in crate::direct) fn finish_query(
        mut self,
        constant: bool,
    ) -> (Vec<(usize, usize)>, Inputs) {
        if constant {
            self.inputs
                .iter_mut()
                .for_each(|input| input.free = Free::None);
        }
        (self.columns.into_iter().collect(), Inputs::new(self.inputs))
    }

    /// Takes the condition that rows have to fulfil, as its conjuncts.
    pub(in crate::direct) fn add_condition(&mut self, conjuncts: &[&ast::Expr]) -> Option<()> {
        for conjunct in conjuncts {
            let mut conjunct = Box::new((*conjunct).clone());
            self.take_part(&mut conjunct)?;
            let conjunct = Box::new(ast::Expr::Nested(conjunct));
            self.condition = Some(match self.condition.take() {
                None => *conjunct,
                Some(before) => ast::Expr::BinaryOp {
                    left: Box::new(before),
                    op: ast::BinaryOperator::And,
                    right: conjunct,
                },
            });
        }
        Some(())
    }

    /// `None` if there are none.
    pub(in crate::direct) fn finish(self) -> Option<Expressions> {
        if self.items.is_empty() && self.condition.is_none() {
            return None;
        }
        let kinds = self
            .kinds
            .iter()
            .enumerate()
            .map(|(number, (name, definition))| {
                let own = self.columns.iter().filter(|(kind, _)| *kind == number);
                let columns = own.map(|(_, column)| (*column, definition.columns[*column].clone()));
                Kind {
                    number,
                    is_unfinished: self.are_unfinished,
                    name: name.to_string(),
                    columns: columns.collect(),
                }
            });
        Some(Expressions {
            kinds: kinds.filter(|kind| !kind.columns.is_empty()).collect(),
            items: self.items,
            condition: self.condition,
            inputs: Inputs::new(self.inputs),
            are_shown: false,
            are_stored: self.are_stored,
        })
    }

    fn input(&mut self, given: Given, written: ast::Expr) -> ast::Expr {
        let name = format!("{INPUT}{}", self.inputs.len());
        self.inputs.push(Input {
            free: match given {
                Given::Clock(_) => Free::All,
                _ => Free::None,
            },
            given,
            written,
            is_joined: false,
        });
        ast::Expr::Identifier(ast::Ident::with_quote('`', name))
    }

    fn is_alias(&self, expr: &ast::Expr) -> bool {
        match (expr, &self.aliases) {
            (ast::Expr::Identifier(name), Some(aliases)) => {
                aliases.contains(&name.value.to_lowercase())
            }
            _ => false,
        }
    }

    /// Whether a function is none of one row, or does more than to compute.
    fn refuses(&self, function: &ast::Function) -> bool {
        let name = function.name.to_string().to_ascii_lowercase();
        let has_arguments = matches!(&function.args, ast::FunctionArguments::List(list)
            if !list.args.is_empty());
        let is_of_many = function.over.is_some() || is_aggregate_name(&name);
        is_of_many && self.aliases.is_none()
            // A sequence of numbers, one for each row.
            || name == "rand" && has_arguments
            || matches!(name.as_str(), "values" | "value" | "default")
            || acts(&name)
    }

    /// Sees to it that inputs are columns where an operator computes with a column, or a text is put together of one.
    /// Constants among themselves are folded, and may have to be constant.
    fn free_inputs(&mut self, operands: &[&ast::Expr], free: Free) {
        if !operands.iter().any(|operand| has_column(operand)) {
            return;
        }
        for operand in operands {
            if let Some(number) = input_number(operand) {
                self.inputs[number].free = free;
                self.inputs[number].is_joined = free == Free::All;
            }
        }
    }
}

impl Collector<'_> {
    /// Sees to it that inputs are columns which an item is put together of, also where it has no column: it does not
    /// matter whether an item is constant.
    fn free_item(&mut self, item: &ast::Expr) {
        use ast::BinaryOperator::{Divide, Minus, Modulo, Multiply, MyIntegerDivide, Plus};
        match item {
            ast::Expr::Nested(inner) => self.free_item(inner),
            ast::Expr::BinaryOp { left, op, right }
                if matches!(op, Plus | Minus | Multiply)
                    || self.are_stored && matches!(op, Divide | Modulo | MyIntegerDivide) =>
            {
                self.free_operand(left, Free::Numbers);
                self.free_operand(right, Free::Numbers);
            }
            ast::Expr::Case {
                conditions,
                else_result,
                ..
            } if self.are_stored => {
                for condition in conditions {
                    self.free_operand(&condition.result, Free::All);
                }
                if let Some(result) = else_result {
                    self.free_operand(result, Free::All);
                }
            }
            ast::Expr::Function(function) if self.are_stored => {
                let name = function.name.to_string().to_ascii_lowercase();
                let (first, step, free) = match name.as_str() {
                    "concat" | "coalesce" | "ifnull" | "json_array" => (0, 1, Free::All),
                    "if" => (1, 1, Free::All),
                    "lower" | "lcase" | "upper" | "ucase" => (0, 1, Free::Texts),
                    "abs" | "floor" | "ceil" | "ceiling" => (0, 1, Free::Numbers),
                    // Their names and paths are parts of the expression.
                    "json_object" => (1, 2, Free::All),
                    "json_set" | "json_insert" | "json_replace" => (2, 2, Free::All),
                    _ => return,
                };
                let arguments = arguments_of(function).into_iter();
                for argument in arguments.skip(first).step_by(step) {
                    self.free_operand(argument, free);
                }
            }
            _ => {}
        }
    }

    fn free_operand(&mut self, operand: &ast::Expr, free: Free) {
        match input_number(operand) {
            Some(number) if self.inputs[number].free == Free::None => {
                self.inputs[number].free = free;
            }
            _ => self.free_item(operand),
        }
    }

    /// Sees to it that an input is a column that a column of its own kind is compared with, or a text that is cut from
    /// one.
    fn free_compared(&mut self, compared: &ast::Expr, operand: &ast::Expr) {
        let column = text_cut(compared);
        let (Some((kind, position)), Some(number)) = (
            (self.resolve)(column.unwrap_or(compared)),
            input_number(operand),
        ) else {
            return;
        };
        let ty = &self.kinds[kind].1.columns[position].ty;
        if ty.is_integer() && column.is_none() {
            self.inputs[number].free = Free::Numbers;
        } else if ty.is_character() && ty.collation() != Some(Collation::Binary) {
            self.inputs[number].free = Free::Texts;
        }
    }
}

impl ExpressionVisitor for Collector<'_> {
    fn enter_query(&mut self, _query: &ast::Query) {
        self.is_refused = true;
    }

    fn leave_expression(&mut self, expression: &mut ast::Expr) -> ControlFlow<()> {
        if let Some(given) = Given::in_expression(expression) {
            let written = expression.clone();
            *expression = self.input(given, written);
            return ControlFlow::Continue(());
        }
        match expression {
            ast::Expr::Identifier(name)
                if name.value.starts_with(INPUT) || name.value.starts_with(VALUE_OF_SUBQUERY) => {}
            ast::Expr::Identifier(_) | ast::Expr::CompoundIdentifier(_) => {
                match (self.resolve)(expression) {
                    Some(column) => {
                        self.columns.insert(column);
                    }
                    None => self.is_refused |= !is_unit(expression) && !self.is_alias(expression),
                }
            }
            ast::Expr::Function(function) => {
                self.is_refused |= self.refuses(function);
                let name = function.name.to_string().to_ascii_lowercase();
                if matches!(name.as_str(), "concat" | "concat_ws") {
                    self.free_inputs(&arguments_of(function), Free::All);
                }
            }
            // Each is compared with the operand.
            ast::Expr::Case {
                operand: Some(operand),
                conditions,
                ..
            } => {
                for condition in conditions {
                    self.free_compared(operand, &condition.condition);
                }
            }
            // Others may read the variable, row by row, and what is given to a run stays the same.
            ast::Expr::BinaryOp {
                op: ast::BinaryOperator::Assignment,
                ..
            } => self.is_refused = true,
            ast::Expr::BinaryOp { left, op, right } => {
                use ast::BinaryOperator::{Eq, Gt, GtEq, Lt, LtEq, Minus, Multiply, NotEq, Plus};
                if matches!(op, Plus | Minus | Multiply) {
                    self.free_inputs(&[left, right], Free::Numbers);
                } else if matches!(op, Eq | NotEq | Lt | LtEq | Gt | GtEq) {
                    self.free_compared(left, right);
                    self.free_compared(right, left);
                }
            }
            _ => {}
        }
        match self.is_refused {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    }
}

/// Whether an expression has a place for a value that is no expression.
fn has_place(expr: &ast::Expr) -> bool {
    /// Refuses texts with a place.
    struct Texts;
    impl std::fmt::Write for Texts {
        fn write_str(&mut self, text: &str) -> std::fmt::Result {
            match text.contains('?') {
                true => Err(std::fmt::Error),
                false => Ok(()),
            }
        }
    }
    write!(Texts, "{expr}").is_err()
}

/// The arguments of a function that are expressions.
fn arguments_of(function: &ast::Function) -> Vec<&ast::Expr> {
    let ast::FunctionArguments::List(list) = &function.args else {
        return Vec::new();
    };
    let arguments = list.args.iter().filter_map(|argument| match argument {
        ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Expr(expr)) => Some(expr),
        _ => None,
    });
    arguments.collect()
}

/// What a function makes a text of that has the same collation, and is compared as it would be.
fn text_cut(expr: &ast::Expr) -> Option<&ast::Expr> {
    let inner = match expr {
        ast::Expr::Nested(inner) => return text_cut(inner),
        ast::Expr::Trim {
            expr,
            trim_what: None,
            ..
        } => expr,
        ast::Expr::Function(function) => {
            let name = function.name.to_string().to_ascii_lowercase();
            match (name.as_str(), arguments_of(function).as_slice()) {
                ("lower" | "lcase" | "upper" | "ucase" | "ltrim" | "rtrim", [text]) => *text,
                ("left" | "right", [text, _]) => *text,
                _ => return None,
            }
        }
        _ => return None,
    };
    Some(text_cut(inner).unwrap_or(inner))
}

/// Whether an expression is surely none of constants only.
fn has_column(expr: &ast::Expr) -> bool {
    match expr {
        ast::Expr::Identifier(name) => !name.value.starts_with(INPUT),
        ast::Expr::CompoundIdentifier(_) => true,
        ast::Expr::Nested(expr) | ast::Expr::UnaryOp { expr, .. } => has_column(expr),
        ast::Expr::BinaryOp { left, right, .. } => has_column(left) || has_column(right),
        _ => false,
    }
}

/// A unit of time, as an argument of TIMESTAMPDIFF.
fn is_unit(expr: &ast::Expr) -> bool {
    const UNITS: [&str; 9] = [
        "microsecond",
        "second",
        "minute",
        "hour",
        "day",
        "week",
        "month",
        "quarter",
        "year",
    ];
    matches!(expr, ast::Expr::Identifier(name) if name.quote_style.is_none()
        && UNITS.iter().any(|unit| name.value.eq_ignore_ascii_case(unit)))
}
