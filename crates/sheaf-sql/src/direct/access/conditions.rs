//! The conjuncts of a condition that compare a column with operands.

use sqlparser::ast;

use crate::direct::operands::operand::{Compared, Operand, is_comparable};
use crate::direct::operands::relation::Relation;
use crate::direct::syntax::names::ColumnNames;

/// Members of an IN list, at most.
pub(in crate::direct) const MAX_LIST: usize = 1_000;

/// What the place of a list that a run brings begins with. No parameter is written like this.
const LIST: &str = "?*";

/// One conjunct.
#[derive(Clone, Debug)]
pub(in crate::direct) struct Comparison {
    pub(super) column: usize,
    pub(super) kind: Kind,
}

impl Comparison {
    /// How a column stands to an operand.
    pub(in crate::direct) fn new(
        column: usize,
        relation: Relation,
        operand: Compared,
    ) -> Comparison {
        let kind = Kind::Relation(relation, operand);
        Comparison { column, kind }
    }

    /// Whether rows can be tested by it alone.
    pub(super) fn is_test(&self) -> bool {
        !matches!(
            self.kind,
            Kind::StartsWith(..) | Kind::IsNull | Kind::Rows(_)
        )
    }

    /// Whether only keys can be made of it.
    pub(in crate::direct) fn is_by_rows(&self) -> bool {
        self.as_rows().is_some()
    }

    /// Its branches, if it is an OR of conditions on several columns.
    pub(super) fn as_rows(&self) -> Option<&[RowBranch]> {
        match &self.kind {
            Kind::Rows(branches) => Some(branches),
            _ => None,
        }
    }

    /// The column and the operand that it is equal to; `None` if it is another comparison.
    pub(in crate::direct) fn as_equal(&self) -> Option<(usize, &Compared)> {
        match &self.kind {
            Kind::Relation(Relation::Equal, operand) => Some((self.column, operand)),
            _ => None,
        }
    }
}

#[derive(Clone, Debug)]
pub(super) enum Kind {
    Relation(Relation, Compared),
    In(Vec<Compared>),
    /// IN of a list that a run brings: this parameter is its length, and its members follow.
    InList(usize),
    /// LIKE, with a pattern that begins with some text, and what ESCAPE says: it bounds keys. It is among the conjuncts
    /// that are evaluated, too, and never tested.
    StartsWith(Compared, Option<Operand>),
    /// It bounds keys, and is evaluated as well.
    IsNull,
    /// IS NULL, or IS NOT NULL, that is tested and bounds no keys.
    Missing(bool),
    /// An OR: one of its branches has to hold, each of which is a lower or an upper bound, or both.
    Or(Vec<Vec<(Relation, Compared)>>),
    /// An OR of conditions on several columns, as `(a, b) IN ((1, 2), (3, 4))` is. It is bound by keys, and never
    /// tested.
    Rows(Vec<RowBranch>),
}

/// Relations of columns that hold all.
pub(super) type RowBranch = Vec<(usize, Relation, Compared)>;

/// The conjuncts of a condition; `None` if one of them is not a comparison of a column with operands.
pub(in crate::direct) fn comparisons(
    condition: &ast::Expr,
    names: &dyn ColumnNames,
) -> Option<Vec<Comparison>> {
    let mut found = Vec::new();
    collect(condition, names, &mut found)?;
    Some(found)
}

/// A condition's conjuncts that are such comparisons, and the others. LIKE and IS NULL are both. `with_rows`: an OR of
/// conditions on several columns is a comparison, too.
pub(in crate::direct) fn conditions<'e>(
    condition: &'e ast::Expr,
    names: &dyn ColumnNames,
    with_rows: bool,
) -> (Vec<Comparison>, Vec<&'e ast::Expr>) {
    match condition {
        ast::Expr::Nested(inner) => conditions(inner, names, with_rows),
        ast::Expr::BinaryOp {
            left,
            op: ast::BinaryOperator::And,
            right,
        } => {
            let (mut found, mut others) = conditions(left, names, with_rows);
            let (more, more_others) = conditions(right, names, with_rows);
            found.extend(more);
            others.extend(more_others);
            (found, others)
        }
        condition => match comparisons(condition, names) {
            Some(found) => (found, Vec::new()),
            None => match with_rows.then(|| rows(condition, names)).flatten() {
                Some(rows) => (vec![rows], Vec::new()),
                None => {
                    let of_keys = starts_with(condition, names);
                    let of_keys = of_keys.or_else(|| is_null(condition, names));
                    (of_keys.into_iter().collect(), vec![condition])
                }
            },
        },
    }
}

/// An OR of conditions on several columns.
fn rows(condition: &ast::Expr, names: &dyn ColumnNames) -> Option<Comparison> {
    let mut branches = Vec::new();
    collect_rows(condition, names, &mut branches)?;
    let (column, ..) = branches.first()?.first()?;
    Some(Comparison {
        column: *column,
        kind: Kind::Rows(branches),
    })
}

fn collect_rows(
    condition: &ast::Expr,
    names: &dyn ColumnNames,
    branches: &mut Vec<RowBranch>,
) -> Option<()> {
    match condition {
        ast::Expr::Nested(inner) => collect_rows(inner, names, branches)?,
        ast::Expr::BinaryOp {
            left,
            op: ast::BinaryOperator::Or,
            right,
        } => {
            collect_rows(left, names, branches)?;
            collect_rows(right, names, branches)?;
        }
        ast::Expr::InList {
            expr,
            list,
            negated: false,
        } if list.len() <= MAX_LIST && matches!(expr.as_ref(), ast::Expr::Tuple(_)) => {
            for member in list {
                let mut found = Vec::new();
                collect_pairs((expr, member), names, &mut found)?;
                branches.push(branch_of(found)?);
            }
        }
        condition => branches.push(branch_of(comparisons(condition, names)?)?),
    }
    (branches.len() <= MAX_LIST).then_some(())
}

fn branch_of(found: Vec<Comparison>) -> Option<RowBranch> {
    let relations = found.into_iter().map(|comparison| match comparison.kind {
        Kind::Relation(relation, operand) if relation != Relation::NotEqual => {
            Some((comparison.column, relation, operand))
        }
        _ => None,
    });
    relations.collect()
}

/// `(a, b) = (1, 2)`, as the comparisons of its columns.
fn collect_pairs(
    (left, right): (&ast::Expr, &ast::Expr),
    names: &dyn ColumnNames,
    found: &mut Vec<Comparison>,
) -> Option<()> {
    let (ast::Expr::Tuple(left), ast::Expr::Tuple(right)) = (left, right) else {
        return None;
    };
    if left.len() != right.len() {
        return None;
    }
    let mut pairs = left.iter().zip(right);
    pairs.try_for_each(|pair| collect_relation(pair, Relation::Equal, names, found))
}

/// What a LIKE says of keys.
fn starts_with(condition: &ast::Expr, names: &dyn ColumnNames) -> Option<Comparison> {
    let ast::Expr::Like {
        negated: false,
        any: false,
        expr,
        pattern,
        escape_char,
    } = condition
    else {
        return None;
    };
    let escape = match escape_char {
        Some(escape) => Some(Operand::of(&ast::Expr::Value(escape.clone()))?),
        None => None,
    };
    let column = names.column(expr)?;
    let ty = &names.definition().columns[column].ty;
    if !ty.is_character() || !is_comparable(ty) {
        return None;
    }
    // A text that begins with these bytes begins with this text by any collation.
    let pattern = match pattern.as_ref() {
        ast::Expr::Cast {
            expr,
            data_type: ast::DataType::Binary(None),
            ..
        } => expr,
        pattern => pattern,
    };
    let pattern = Compared::Plain(Operand::of(pattern)?);
    let kind = Kind::StartsWith(pattern, escape);
    Some(Comparison { column, kind })
}

/// IS NULL and IS NOT NULL as a test of a row.
pub(in crate::direct) fn missing(
    condition: &ast::Expr,
    names: &dyn ColumnNames,
) -> Option<Comparison> {
    let (expr, is_missing) = match condition {
        ast::Expr::Nested(inner) => return missing(inner, names),
        ast::Expr::IsNull(expr) => (expr, true),
        ast::Expr::IsNotNull(expr) => (expr, false),
        _ => return None,
    };
    let column = names.column(expr)?;
    // `IS NULL` finds the date 0 in a column that cannot be NULL.
    let definition = &names.definition().columns[column];
    definition.nullable.then_some(Comparison {
        column,
        kind: Kind::Missing(is_missing),
    })
}

/// What IS NULL says of keys.
fn is_null(condition: &ast::Expr, names: &dyn ColumnNames) -> Option<Comparison> {
    let ast::Expr::IsNull(expr) = condition else {
        return None;
    };
    let column = names.column(expr)?;
    names.definition().columns[column]
        .nullable
        .then_some(Comparison {
            column,
            kind: Kind::IsNull,
        })
}

fn collect(
    condition: &ast::Expr,
    names: &dyn ColumnNames,
    found: &mut Vec<Comparison>,
) -> Option<()> {
    match condition {
        ast::Expr::Nested(inner) => collect(inner, names, found),
        ast::Expr::BinaryOp {
            left,
            op: ast::BinaryOperator::And,
            right,
        } => {
            collect(left, names, found)?;
            collect(right, names, found)
        }
        ast::Expr::BinaryOp {
            op: ast::BinaryOperator::Or,
            ..
        } => {
            let mut branches = Vec::new();
            let column = collect_branches(condition, names, &mut branches)?;
            push(found, names, column, Kind::Or(branches))
        }
        ast::Expr::BinaryOp {
            left,
            op: ast::BinaryOperator::Eq,
            right,
        } if matches!(left.as_ref(), ast::Expr::Tuple(_)) => {
            collect_pairs((left, right), names, found)
        }
        ast::Expr::BinaryOp { left, op, right } => {
            collect_relation((left, right), Relation::of(op)?, names, found)
        }
        ast::Expr::Between {
            expr,
            negated: false,
            low,
            high,
        } => {
            let column = names.column(expr)?;
            for (relation, operand) in [
                (Relation::GreaterOrEqual, low),
                (Relation::LessOrEqual, high),
            ] {
                let kind = Kind::Relation(relation, Compared::of(operand)?);
                push(found, names, column, kind)?;
            }
            Some(())
        }
        ast::Expr::InList {
            expr,
            list,
            negated: false,
        } if list.len() <= MAX_LIST => {
            let column = names.column(expr)?;
            if let Some(first) = place_of_list(list) {
                return push(found, names, column, Kind::InList(first));
            }
            let list: Option<Vec<Compared>> = list.iter().map(Compared::of).collect();
            push(found, names, column, Kind::In(list?))
        }
        _ => None,
    }
}

fn collect_relation(
    (left, right): (&ast::Expr, &ast::Expr),
    relation: Relation,
    names: &dyn ColumnNames,
    found: &mut Vec<Comparison>,
) -> Option<()> {
    let (column, relation, operand) = match names.column(left) {
        Some(column) => (column, relation, Compared::of(right)?),
        None => (
            names.column(right)?,
            relation.swapped(),
            Compared::of(left)?,
        ),
    };
    push(found, names, column, Kind::Relation(relation, operand))
}

/// What stands in the place of a list that a run brings.
pub(in crate::direct) fn list_in_place(parameter: usize) -> ast::Expr {
    ast::Expr::value(ast::Value::Placeholder(format!("{LIST}{parameter}")))
}

/// The parameter that is the length of a list that a run brings.
fn place_of_list(list: &[ast::Expr]) -> Option<usize> {
    match list {
        [ast::Expr::Value(value)] => match &value.value {
            ast::Value::Placeholder(place) => place.strip_prefix(LIST)?.parse().ok(),
            _ => None,
        },
        _ => None,
    }
}

/// The branches of an OR whose comparisons are all of one column, which is returned.
fn collect_branches(
    condition: &ast::Expr,
    names: &dyn ColumnNames,
    branches: &mut Vec<Vec<(Relation, Compared)>>,
) -> Option<usize> {
    if let ast::Expr::BinaryOp {
        left,
        op: ast::BinaryOperator::Or,
        right,
    } = condition
    {
        let column = collect_branches(left, names, branches)?;
        let other = collect_branches(right, names, branches)?;
        return (column == other && branches.len() <= MAX_LIST).then_some(column);
    }
    let mut branch = Vec::new();
    let mut column = None;
    for conjunct in comparisons(condition, names)? {
        let Kind::Relation(relation, operand) = conjunct.kind else {
            return None;
        };
        if column.is_some_and(|column| column != conjunct.column) {
            return None;
        }
        column = Some(conjunct.column);
        branch.push((relation, operand));
    }
    let relations: Vec<Relation> = branch.iter().map(|(relation, _)| *relation).collect();
    let is_range = match relations.as_slice() {
        [only] => *only != Relation::NotEqual,
        [one, other] => one.is_upper() && other.is_lower() || one.is_lower() && other.is_upper(),
        _ => false,
    };
    branches.push(branch);
    column.filter(|_| is_range)
}

fn push(
    found: &mut Vec<Comparison>,
    names: &dyn ColumnNames,
    column: usize,
    kind: Kind,
) -> Option<()> {
    is_comparable(&names.definition().columns[column].ty).then(|| {
        found.push(Comparison { column, kind });
    })
}
