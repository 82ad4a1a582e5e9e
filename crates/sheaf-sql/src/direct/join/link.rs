//! How a row of one table stands to rows of others: by a comparison of two columns, or of a column and what is computed
//! of others.

use sqlparser::ast;

use crate::direct::operands::arithmetic::Arithmetic;
use crate::direct::operands::operand::{Compared, Operand, are_comparable};
use crate::direct::operands::relation::Relation;
use crate::direct::syntax::names::{Names, column_of};

/// How a row of one table stands to rows of others: `a.column = b.column`, `a.column < b.column + 1`.
pub(super) struct Link<'a> {
    pub(super) written: &'a ast::Expr,
    /// Each finds rows of one table by those of the others.
    ways: Vec<LinkWay>,
}

/// See [`Link`].
pub(super) struct LinkWay {
    /// The column that is compared, and its table.
    pub(super) column: (usize, usize),
    pub(super) relation: Relation,
    pub(super) other: Arithmetic<Term>,
}

/// What a column is compared with.
#[derive(Clone)]
pub(super) enum Term {
    /// Of another table.
    Column((usize, usize)),
    Operand(Operand),
}

impl Link<'_> {
    /// How rows of a table are found; `None`: by those of others, only theirs are.
    pub(super) fn way_to(&self, table: usize) -> Option<&LinkWay> {
        self.ways.iter().find(|way| way.column.0 == table)
    }

    pub(super) fn is_of(&self, table: usize) -> bool {
        let mut tables = self.tables();
        tables.any(|of| of == table)
    }

    /// Its tables but one.
    pub(super) fn others(&self, table: usize) -> impl Iterator<Item = usize> {
        self.tables().filter(move |other| *other != table)
    }

    /// All its tables, some more than once.
    pub(super) fn tables(&self) -> impl Iterator<Item = usize> {
        let mut tables = Vec::new();
        if let Some(way) = self.ways.first() {
            tables.push(way.column.0);
            way.other.all(&mut |term| {
                if let Term::Column((table, _)) = term {
                    tables.push(*table);
                }
                true
            });
        }
        tables.into_iter()
    }

    /// The columns that are equal; `None` if it says something else.
    pub(super) fn equal_columns(&self) -> Option<[(usize, usize); 2]> {
        match self.ways.first()? {
            LinkWay {
                column,
                relation: Relation::Equal,
                other: Arithmetic::Leaf(Term::Column(other)),
            } => Some([*column, *other]),
            _ => None,
        }
    }
}

impl Arithmetic<Term> {
    /// What a column is compared with when the rows of the other tables are known, whose values get places in `slots`.
    pub(super) fn taken(&self, slots: &mut Vec<(usize, usize)>) -> Compared {
        let mut operand = |term: &Term| match term {
            Term::Operand(operand) => operand.clone(),
            Term::Column(column) => {
                let known = slots.iter().position(|slot| slot == column);
                Operand::Outer(known.unwrap_or_else(|| {
                    slots.push(*column);
                    slots.len() - 1
                }))
            }
        };
        match self.map(&mut operand) {
            Arithmetic::Leaf(operand) => Compared::Plain(operand),
            computed => Compared::Whole(computed),
        }
    }
}

/// What a comparison says of rows of several tables; `None`: nothing that finds rows of one of them. `written`: what it
/// is a part of.
pub(super) fn link_of<'a>(
    (left, op, right): (&ast::Expr, &ast::BinaryOperator, &ast::Expr),
    written: &'a ast::Expr,
    names: &[Names<'_>],
) -> Option<Link<'a>> {
    let relation = Relation::of(op).filter(|relation| *relation != Relation::NotEqual)?;
    let sides = [(left, relation, right), (right, relation.swapped(), left)];
    let ways = sides.iter().filter_map(|(own, relation, other)| {
        let column = column_of(names, own)?;
        let other = other_side(column, other, names)?;
        Some(LinkWay {
            column,
            relation: *relation,
            other,
        })
    });
    let ways: Vec<LinkWay> = ways.collect();
    (!ways.is_empty()).then_some(Link { written, ways })
}

/// What a column is compared with, if that takes something from other tables and nothing from its own.
fn other_side(
    (table, column): (usize, usize),
    expr: &ast::Expr,
    names: &[Names<'_>],
) -> Option<Arithmetic<Term>> {
    let definition = |(table, column): (usize, usize)| &names[table].definition().columns[column];
    let own = definition((table, column));
    if let Some(other) = column_of(names, expr) {
        let is_link = other.0 != table && are_comparable(own, definition(other));
        return is_link.then_some(Arithmetic::Leaf(Term::Column(other)));
    }
    let whole = |other: (usize, usize)| other.0 != table && definition(other).ty.is_integer();
    let mut term = |expr: &ast::Expr| match column_of(names, expr) {
        Some(other) => whole(other).then_some(Term::Column(other)),
        None => Operand::of(expr).map(Term::Operand),
    };
    let other = Arithmetic::of(expr, &mut term).filter(|_| own.ty.is_integer())?;
    let has_columns = !other.all(&mut |term| matches!(term, Term::Operand(_)));
    has_columns.then_some(other)
}
