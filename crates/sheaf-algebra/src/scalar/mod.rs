//! Typed expressions.
//!
//! A [`Scalar`] knows its type: the Arrow field that its value has, with the SQL type in the metadata. It is computed
//! when the node is made ([`Typing`]) and never changes. Comparisons are of operands in one domain: a comparison of
//! texts compares sort keys (`ck`), one with a constant has the constant in the type of the other operand. Conditions
//! have three values, and the type BOOLEAN, which no column of a table has.
//!
//! | file | what it holds |
//! |---|---|
//! | [`typing`] | MySQL's typing rule, where a node is made |
//! | [`expression`] | the same expression as DataFusion writes it, and back |
//! | [`long_lists`] | long disjunctions of constants as lists, and parts of such lists |
//! | [`fold`] | constants are computed |
//! | [`fingerprint`] | what equal expressions share, so that lists of them are searched at once |
//! | [`physical`] | the same as it is computed over batches |
//! | [`aggregate`] | aggregates of groups |
//! | [`window`] | functions over windows |

pub mod aggregate;
pub mod expression;
pub mod fingerprint;
pub mod fold;
pub mod long_lists;
pub mod physical;
pub mod typing;
pub mod window;

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use arrow::datatypes::{DataType, Field, FieldRef};
use datafusion_common::ScalarValue;
use datafusion_expr::ScalarUDF;
use sheaf_exec::functions::stand_in::Size;
use sheaf_exec::functions::truncated::TruncatedTexts;
use sheaf_exec::functions::user_variables::{ASSIGN_VARIABLE, is_of_variables};
use sheaf_exec::functions::{SqlType, closed};
use sheaf_exec::typing::nodes_of_call;

pub use aggregate::Aggregate;
pub use fingerprint::{Fingerprint, Places};
pub use typing::Typing;
pub use window::WindowFunction;

use crate::column::{ColumnId, Columns};
use crate::column_set::ColumnSet;

/// A typed expression.
#[derive(Clone, Debug)]
pub struct Scalar {
    kind: ScalarKind,
    field: FieldRef,
    /// A function in it notes what it meets (a text that is cut, a division by zero), so it matters which rows compute
    /// it, and what stands in front of it.
    notes: bool,
    /// With all that is in it.
    size: Size,
    fingerprint: Fingerprint,
}

/// What an expression is.
#[derive(Clone, Debug, PartialEq)]
pub enum ScalarKind {
    Column(ColumnId),
    /// Its type is in the field, metadata and all. Expressions are copied often, and a text may be megabytes.
    Literal(Arc<ScalarValue>),
    Call {
        function: Arc<ScalarUDF>,
        arguments: Vec<Scalar>,
    },
    /// A conversion for which Arrow's is MySQL's, to the type of the field.
    Cast(Box<Scalar>),
    /// Of operands in one domain.
    Comparison {
        operator: Comparison,
        left: Box<Scalar>,
        right: Box<Scalar>,
    },
    /// Of two or more conditions.
    And(Vec<Scalar>),
    Or(Vec<Scalar>),
    Not(Box<Scalar>),
    /// IS NULL and its relatives: true or false.
    Test {
        operand: Box<Scalar>,
        is: Truth,
        negated: bool,
    },
    /// Of members in the operand's domain.
    InList {
        operand: Box<Scalar>,
        list: Vec<Scalar>,
        negated: bool,
    },
    /// The value behind the first condition that is true. Without `otherwise` it is NULL where none is.
    Case {
        branches: Vec<(Scalar, Scalar)>,
        otherwise: Option<Box<Scalar>>,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    /// `<=>`: NULL is equal to NULL.
    NullSafeEqual,
}

impl Comparison {
    /// The marker function of the typing rule.
    pub fn function_name(self) -> &'static str {
        match self {
            Comparison::Equal => "$eq",
            Comparison::NotEqual => "$ne",
            Comparison::Less => "$lt",
            Comparison::LessOrEqual => "$le",
            Comparison::Greater => "$gt",
            Comparison::GreaterOrEqual => "$ge",
            Comparison::NullSafeEqual => "$null_safe_eq",
        }
    }

    /// As SQL writes it.
    pub fn symbol(self) -> &'static str {
        match self {
            Comparison::Equal => "=",
            Comparison::NotEqual => "<>",
            Comparison::Less => "<",
            Comparison::LessOrEqual => "<=",
            Comparison::Greater => ">",
            Comparison::GreaterOrEqual => ">=",
            Comparison::NullSafeEqual => "<=>",
        }
    }

    /// The same of the operands in the other order.
    pub fn swapped(self) -> Comparison {
        match self {
            Comparison::Less => Comparison::Greater,
            Comparison::LessOrEqual => Comparison::GreaterOrEqual,
            Comparison::Greater => Comparison::Less,
            Comparison::GreaterOrEqual => Comparison::LessOrEqual,
            Comparison::Equal | Comparison::NotEqual | Comparison::NullSafeEqual => self,
        }
    }

    /// What is true where this is false. `None` of `<=>`, whose opposite has no name.
    pub fn negated(self) -> Option<Comparison> {
        Some(match self {
            Comparison::Equal => Comparison::NotEqual,
            Comparison::NotEqual => Comparison::Equal,
            Comparison::Less => Comparison::GreaterOrEqual,
            Comparison::LessOrEqual => Comparison::Greater,
            Comparison::Greater => Comparison::LessOrEqual,
            Comparison::GreaterOrEqual => Comparison::Less,
            Comparison::NullSafeEqual => return None,
        })
    }
}

/// What an expression is tested for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Truth {
    Null,
    True,
    False,
    Unknown,
}

/// The field of a condition that may be unknown, and of one that may not.
static CONDITION: LazyLock<[FieldRef; 2]> = LazyLock::new(|| {
    [false, true].map(|nullable| Arc::new(Field::new("condition", DataType::Boolean, nullable)))
});

/// Nothing is copied if there is none yet.
fn add_all(conditions: &mut Vec<Scalar>, others: Vec<Scalar>) {
    match conditions.is_empty() {
        true => *conditions = others,
        false => conditions.extend(others),
    }
}

fn condition(nullable: bool) -> FieldRef {
    Arc::clone(&CONDITION[usize::from(nullable)])
}

/// Equality is that of what is computed. The field follows from it, but for the nullability of columns; only what a
/// literal is and what a conversion is to stands in the field alone.
impl PartialEq for Scalar {
    fn eq(&self, other: &Scalar) -> bool {
        if self.fingerprint != other.fingerprint {
            return false;
        }
        let is_of_same_type = match &self.kind {
            ScalarKind::Literal(_) | ScalarKind::Cast(_) => {
                self.field.data_type() == other.field.data_type()
                    && self.field.metadata() == other.field.metadata()
            }
            _ => true,
        };
        is_of_same_type && self.kind == other.kind
    }
}

impl Scalar {
    fn new(kind: ScalarKind, field: FieldRef) -> Scalar {
        let mut notes = false;
        let mut size = Size { nodes: 1, cases: 0 };
        let mut fingerprint = Fingerprint::of_kind(&kind);
        visit_operands(&kind, &mut |operand| {
            fingerprint = fingerprint.with(operand);
            notes |= operand.notes;
            size.nodes = size.nodes.saturating_add(operand.size.nodes);
            size.cases = size.cases.max(operand.size.cases);
        });
        match &kind {
            ScalarKind::Call { function, .. } => {
                notes |= TruncatedTexts::notes(function.name());
                size.nodes = size.nodes.saturating_add(nodes_of_call(function) - 1);
            }
            ScalarKind::Case { .. } => size.cases += 1,
            _ => {}
        }
        Scalar {
            kind,
            field,
            notes,
            size,
            fingerprint,
        }
    }

    /// Equal expressions have equal ones.
    pub fn fingerprint(&self) -> Fingerprint {
        self.fingerprint
    }

    /// `field` says whether it may be NULL here.
    pub fn column(id: ColumnId, field: FieldRef) -> Scalar {
        Scalar::new(ScalarKind::Column(id), field)
    }

    /// A column as it is where it is made.
    pub fn made(id: ColumnId, columns: &Columns) -> Scalar {
        Scalar::column(id, Arc::clone(&columns.get(id).field))
    }

    /// A constant of the type of its value.
    pub fn literal(value: ScalarValue) -> Scalar {
        let field = Field::new("literal", value.data_type(), value.is_null());
        Scalar::new(ScalarKind::Literal(Arc::new(value)), Arc::new(field))
    }

    /// A constant, and what its type is besides that of its value.
    pub fn typed_literal(value: ScalarValue, metadata: HashMap<String, String>) -> Scalar {
        let field = Field::new("literal", value.data_type(), value.is_null());
        let field = Arc::new(field.with_metadata(metadata));
        Scalar::new(ScalarKind::Literal(Arc::new(value)), field)
    }

    /// A condition that is always this.
    pub fn constant(value: bool) -> Scalar {
        Scalar::literal(ScalarValue::Boolean(Some(value)))
    }

    fn call(function: Arc<ScalarUDF>, arguments: Vec<Scalar>, field: FieldRef) -> Scalar {
        let kind = ScalarKind::Call {
            function,
            arguments,
        };
        Scalar::new(kind, field)
    }

    /// All of the conditions; the only one of them by itself.
    pub fn and(conditions: impl IntoIterator<Item = Scalar>) -> Scalar {
        Scalar::connected(conditions, true)
    }

    /// One of the conditions; the only one of them by itself.
    pub fn or(conditions: impl IntoIterator<Item = Scalar>) -> Scalar {
        Scalar::connected(conditions, false)
    }

    /// How many operands it has as a chain of AND, or of OR: 1 if it is none.
    pub fn chain_length(&self, is_and: bool) -> usize {
        match &self.kind {
            ScalarKind::And(all) if is_and => all.len(),
            ScalarKind::Or(all) if !is_and => all.len(),
            _ => 1,
        }
    }

    /// AND or OR. A chain grows by one condition at a time, so nothing is computed again of those that it has.
    fn connected(conditions: impl IntoIterator<Item = Scalar>, is_and: bool) -> Scalar {
        let mut all = Vec::new();
        let (mut nullable, mut notes) = (false, false);
        let mut size = Size { nodes: 1, cases: 0 };
        let chain = match is_and {
            true => ScalarKind::And,
            false => ScalarKind::Or,
        };
        let mut fingerprint = Fingerprint::of_kind(&chain(Vec::new()));
        for condition in conditions {
            nullable |= condition.is_nullable();
            notes |= condition.notes;
            size.cases = size.cases.max(condition.size.cases);
            size.nodes = size.nodes.saturating_add(condition.size.nodes);
            let is_chain = condition.chain_length(is_and) > 1;
            match condition.kind {
                ScalarKind::And(inner) | ScalarKind::Or(inner) if is_chain => {
                    size.nodes -= 1;
                    fingerprint = match all.is_empty() {
                        true => condition.fingerprint,
                        false => inner.iter().fold(fingerprint, Fingerprint::with),
                    };
                    add_all(&mut all, inner);
                }
                _ => {
                    fingerprint = fingerprint.with(&condition);
                    all.push(condition);
                }
            }
        }
        match all.len() {
            0 => Scalar::constant(is_and),
            1 => all.remove(0),
            _ => Scalar {
                kind: chain(all),
                field: condition(nullable),
                notes,
                size,
                fingerprint,
            },
        }
    }

    /// The opposite of a condition. What is unknown stays so.
    #[expect(
        clippy::should_implement_trait,
        reason = "it is SQL's, of three values"
    )]
    pub fn not(self) -> Scalar {
        let nullable = self.is_nullable();
        Scalar::new(ScalarKind::Not(Box::new(self)), condition(nullable))
    }

    pub fn test(self, is: Truth, negated: bool) -> Scalar {
        let operand = Box::new(self);
        let kind = ScalarKind::Test {
            operand,
            is,
            negated,
        };
        Scalar::new(kind, condition(false))
    }

    pub fn is_null(self) -> Scalar {
        self.test(Truth::Null, false)
    }

    /// A comparison of operands that are in one domain already. The typing rule makes all others
    /// ([`Typing::comparison`]).
    pub fn comparison(operator: Comparison, left: Scalar, right: Scalar) -> Scalar {
        let nullable =
            operator != Comparison::NullSafeEqual && (left.is_nullable() || right.is_nullable());
        let (left, right) = (Box::new(left), Box::new(right));
        let kind = ScalarKind::Comparison {
            operator,
            left,
            right,
        };
        Scalar::new(kind, condition(nullable))
    }

    /// IN of members in the operand's domain.
    pub fn in_list(self, list: Vec<Scalar>, negated: bool) -> Scalar {
        let nullable = self.is_nullable() || list.iter().any(Scalar::is_nullable);
        let operand = Box::new(self);
        let kind = ScalarKind::InList {
            operand,
            list,
            negated,
        };
        Scalar::new(kind, condition(nullable))
    }

    pub fn kind(&self) -> &ScalarKind {
        &self.kind
    }

    pub fn field(&self) -> &FieldRef {
        &self.field
    }

    pub fn sql_type(&self) -> SqlType {
        SqlType::of(&self.field)
    }

    pub fn is_nullable(&self) -> bool {
        self.field.is_nullable()
    }

    pub fn is_condition(&self) -> bool {
        self.field.data_type() == &DataType::Boolean
    }

    /// See [`Self::notes`](Scalar).
    pub fn notes(&self) -> bool {
        self.notes
    }

    pub fn as_column(&self) -> Option<ColumnId> {
        match self.kind {
            ScalarKind::Column(id) => Some(id),
            _ => None,
        }
    }

    pub fn as_literal(&self) -> Option<&ScalarValue> {
        match &self.kind {
            ScalarKind::Literal(value) => Some(value),
            _ => None,
        }
    }

    /// Calls `visit` with each operand.
    pub fn for_each_operand(&self, visit: &mut dyn FnMut(&Scalar)) {
        visit_operands(&self.kind, visit);
    }

    /// Whether this or anything in it is so.
    pub fn contains(&self, is_so: &dyn Fn(&Scalar) -> bool) -> bool {
        if is_so(self) {
            return true;
        }
        let mut found = false;
        self.for_each_operand(&mut |operand| found = found || operand.contains(is_so));
        found
    }

    /// The columns that it is computed from.
    pub fn columns(&self) -> ColumnSet {
        let mut columns = ColumnSet::new();
        self.add_columns(&mut columns);
        columns
    }

    /// How large it is.
    pub fn nodes(&self) -> usize {
        self.size.nodes
    }

    /// See [`Self::nodes`].
    pub fn size(&self) -> Size {
        self.size
    }

    pub fn add_columns(&self, columns: &mut ColumnSet) {
        match self.kind {
            ScalarKind::Column(id) => columns.insert(id),
            _ => self.for_each_operand(&mut |operand| operand.add_columns(columns)),
        }
    }

    /// Computes something else each time, or has an effect: it may not be computed for other rows, nor twice.
    pub fn is_volatile(&self) -> bool {
        self.contains(&|scalar| match &scalar.kind {
            ScalarKind::Call { function, .. } => {
                function.signature().volatility == datafusion_expr::Volatility::Volatile
            }
            _ => false,
        })
    }

    /// It may give something else when it is computed again for the same row. What hands its operand on, and notes what
    /// is wrong with it, does not.
    pub fn varies(&self) -> bool {
        self.contains(&|scalar| match &scalar.kind {
            ScalarKind::Call { function, .. } => closed::varies(function),
            _ => false,
        })
    }

    /// It reads or assigns user variables that the statement assigns: rows come to it one by one.
    pub fn is_of_variables(&self) -> bool {
        self.contains(&|scalar| match &scalar.kind {
            ScalarKind::Call { function, .. } => is_of_variables(function),
            _ => false,
        })
    }

    /// What it assigns to a user variable, if it does so and nothing else.
    pub fn assigned_value(&self) -> Option<&Scalar> {
        match &self.kind {
            ScalarKind::Call {
                function,
                arguments,
            } if function.name() == ASSIGN_VARIABLE => arguments.first(),
            _ => None,
        }
    }

    /// A condition that rows have to meet, without the operands of AND and OR that a constant beside them makes
    /// needless. They are not computed, whatever they would have to tell.
    ///
    /// ```text
    ///   a AND (x / 0 OR 1)     a
    /// ```
    pub fn decided(self) -> Scalar {
        let is_constant = |scalar: &Scalar, value| {
            scalar.as_literal() == Some(&ScalarValue::Boolean(Some(value)))
        };
        let decide = |conditions: Vec<Scalar>, decisive: bool| {
            let conditions = conditions.into_iter().map(Scalar::decided);
            let mut conditions: Vec<Scalar> = conditions.collect();
            if conditions.iter().any(|one| is_constant(one, decisive)) {
                return vec![Scalar::constant(decisive)];
            }
            conditions.retain(|one| !is_constant(one, !decisive));
            conditions
        };
        match self.kind {
            ScalarKind::And(conditions) => Scalar::and(decide(conditions, false)),
            ScalarKind::Or(conditions) => Scalar::or(decide(conditions, true)),
            ScalarKind::Not(condition) => {
                let condition = condition.decided();
                match condition.as_literal() {
                    Some(ScalarValue::Boolean(Some(value))) => Scalar::constant(!value),
                    _ => condition.not(),
                }
            }
            _ => self,
        }
    }

    /// The conditions that all have to be true; itself, if it is no AND.
    pub fn into_conjuncts(self) -> Vec<Scalar> {
        match self.kind {
            ScalarKind::And(conditions) => conditions,
            _ => vec![self],
        }
    }

    pub fn conjuncts(&self) -> &[Scalar] {
        match &self.kind {
            ScalarKind::And(conditions) => conditions,
            _ => std::slice::from_ref(self),
        }
    }

    /// `left = right`, in one domain.
    pub fn as_equality(&self) -> Option<(&Scalar, &Scalar)> {
        match &self.kind {
            ScalarKind::Comparison {
                operator: Comparison::Equal,
                left,
                right,
            } => Some((left, right)),
            _ => None,
        }
    }

    /// The same with something else in the place of whatever `replace` answers for. The replacements have to be of the
    /// same types, since nothing is typed anew.
    pub fn replace(self, replace: &dyn Fn(&Scalar) -> Option<Scalar>) -> Scalar {
        if let Some(other) = replace(&self) {
            return other;
        }
        let Scalar { kind, field, .. } = self;
        let boxed = |operand: Box<Scalar>| Box::new(operand.replace(replace));
        let all = |operands: Vec<Scalar>| -> Vec<Scalar> {
            let operands = operands.into_iter();
            operands.map(|operand| operand.replace(replace)).collect()
        };
        let kind = match kind {
            kind @ (ScalarKind::Column(_) | ScalarKind::Literal(_)) => kind,
            ScalarKind::Call {
                function,
                arguments,
            } => ScalarKind::Call {
                function,
                arguments: all(arguments),
            },
            ScalarKind::Cast(operand) => ScalarKind::Cast(boxed(operand)),
            ScalarKind::Comparison {
                operator,
                left,
                right,
            } => ScalarKind::Comparison {
                operator,
                left: boxed(left),
                right: boxed(right),
            },
            ScalarKind::And(conditions) => return Scalar::and(all(conditions)),
            ScalarKind::Or(conditions) => return Scalar::or(all(conditions)),
            ScalarKind::Not(operand) => ScalarKind::Not(boxed(operand)),
            ScalarKind::Test {
                operand,
                is,
                negated,
            } => ScalarKind::Test {
                operand: boxed(operand),
                is,
                negated,
            },
            ScalarKind::InList {
                operand,
                list,
                negated,
            } => ScalarKind::InList {
                operand: boxed(operand),
                list: all(list),
                negated,
            },
            ScalarKind::Case {
                branches,
                otherwise,
            } => ScalarKind::Case {
                branches: branches
                    .into_iter()
                    .map(|(condition, value)| (condition.replace(replace), value.replace(replace)))
                    .collect(),
                otherwise: otherwise.map(boxed),
            },
        };
        Scalar::new(kind, field)
    }
}

fn visit_operands(kind: &ScalarKind, visit: &mut dyn FnMut(&Scalar)) {
    match kind {
        ScalarKind::Column(_) | ScalarKind::Literal(_) => {}
        ScalarKind::Call { arguments, .. } => arguments.iter().for_each(visit),
        ScalarKind::Cast(operand) | ScalarKind::Not(operand) | ScalarKind::Test { operand, .. } => {
            visit(operand)
        }
        ScalarKind::Comparison { left, right, .. } => {
            visit(left);
            visit(right);
        }
        ScalarKind::And(conditions) | ScalarKind::Or(conditions) => {
            conditions.iter().for_each(visit);
        }
        ScalarKind::InList { operand, list, .. } => {
            visit(operand);
            list.iter().for_each(visit);
        }
        ScalarKind::Case {
            branches,
            otherwise,
        } => {
            for (condition, value) in branches {
                visit(condition);
                visit(value);
            }
            if let Some(otherwise) = otherwise {
                visit(otherwise);
            }
        }
    }
}
