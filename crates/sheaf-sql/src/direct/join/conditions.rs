//! What the WHERE and the ON of a join say, by table of the FROM.

use std::collections::BTreeSet;

use sqlparser::ast;

use super::MAX_TABLES;
use super::link::{Link, link_of};
use crate::direct::access::{Comparison, comparisons, missing};
use crate::direct::derived::part_of_from;
use crate::direct::operands::operand::Compared;
use crate::direct::operands::relation::Relation;
use crate::direct::syntax::attempt::Attempt;
use crate::direct::syntax::names::{Names, OneOf, column_of};
use crate::session::Session;

/// What a WHERE says, by table of the FROM.
pub(super) struct Conditions<'a> {
    pub(super) own: Vec<Vec<Comparison>>,
    pub(super) links: Vec<Link<'a>>,
    /// Conjuncts that no key and no test of a row says.
    pub(super) rest: Vec<&'a ast::Expr>,
    /// Tables whose rows may be missing.
    pub(super) outer: Vec<bool>,
}

/// What a FROM consists of.
pub(super) struct From<'a> {
    pub(super) names: Vec<Names<'a>>,
    /// Of inner joins.
    pub(super) conditions: Vec<&'a ast::Expr>,
    /// Of LEFT JOINs, with their right sides.
    pub(super) outer: Vec<(usize, &'a ast::Expr)>,
}

/// The tables of a FROM with inner joins and LEFT JOINs only, and the conditions of the joins.
pub(super) fn tables_of<'a>(
    session: &Session,
    from: &'a [ast::TableWithJoins],
    attempt: Attempt<'_>,
) -> Option<From<'a>> {
    let mut names: Vec<Names<'a>> = Vec::new();
    let mut conditions = Vec::new();
    let mut outer = Vec::new();
    for part in from {
        names.push(part_of_from(session, &part.relation, attempt)?);
        for join in &part.joins {
            match &join.join_operator {
                ast::JoinOperator::Join(ast::JoinConstraint::On(condition))
                | ast::JoinOperator::Inner(ast::JoinConstraint::On(condition)) => {
                    conditions.push(condition);
                }
                ast::JoinOperator::CrossJoin(ast::JoinConstraint::None) => {}
                ast::JoinOperator::Left(ast::JoinConstraint::On(condition))
                | ast::JoinOperator::LeftOuter(ast::JoinConstraint::On(condition)) => {
                    outer.push((names.len(), condition));
                    names.push(Names {
                        is_outer: true,
                        ..part_of_from(session, &join.relation, attempt)?
                    });
                    continue;
                }
                _ => return None,
            }
            names.push(part_of_from(session, &join.relation, attempt)?);
        }
        if names.len() > MAX_TABLES {
            return None;
        }
    }
    let mut aliases = BTreeSet::new();
    let differ = names.iter().all(|names| aliases.insert(names.alias));
    (differ && !names.is_empty()).then_some(From {
        names,
        conditions,
        outer,
    })
}

impl<'a> Conditions<'a> {
    pub(super) fn of(
        conjuncts: &[&'a ast::Expr],
        outer: &[(usize, &'a ast::Expr)],
        names: &[Names<'_>],
    ) -> Option<Conditions<'a>> {
        let nothing = || Conditions {
            own: vec![Vec::new(); names.len()],
            links: Vec::new(),
            rest: Vec::new(),
            outer: vec![false; names.len()],
        };
        let mut conditions = nothing();
        for conjunct in conjuncts {
            conditions.add(conjunct, names);
        }
        let mut left = Vec::with_capacity(outer.len());
        for (table, condition) in outer {
            let mut own = nothing();
            own.add(condition, names);
            own.test_missing(*table, names);
            (own.rest.is_empty() && own.is_of(*table)).then_some(())?;
            left.push((*table, own));
        }
        // Nothing that is compared is NULL: a table of which the condition says something has a row.
        while let Some(at) = left
            .iter()
            .position(|(table, _)| conditions.concern(*table))
        {
            let (_, inner) = left.swap_remove(at);
            conditions.take(inner);
        }
        for (table, own) in left {
            conditions.take(own);
            conditions.outer[table] = true;
        }
        conditions.tell_definitions(names);
        Some(conditions)
    }

    /// Takes IS NULL and IS NOT NULL of a table's columns as tests of its rows.
    fn test_missing(&mut self, table: usize, names: &[Names<'_>]) {
        if names[table].table().is_none() {
            return;
        }
        for condition in std::mem::take(&mut self.rest) {
            match missing(condition, &OneOf { names, table }) {
                Some(test) => self.own[table].push(test),
                None => self.rest.push(condition),
            }
        }
    }

    /// What a column of `information_schema` is equal to, those are, too, that it is joined with. So few rows are made
    /// of each of the tables.
    fn tell_definitions(&mut self, names: &[Names<'_>]) {
        let is_told = |table: usize| names[table].is_of_definitions() && !self.outer[table];
        let mut told = Vec::new();
        for [one, other] in self.links.iter().filter_map(Link::equal_columns) {
            if !is_told(one.0) || !is_told(other.0) {
                continue;
            }
            for (from, to) in [(one, other), (other, one)] {
                let equal = self.own[from.0].iter().filter_map(Comparison::as_equal);
                let mut of_column = equal.filter(|(column, _)| *column == from.1);
                if let Some((_, operand)) = of_column.next() {
                    let equal = Comparison::new(to.1, Relation::Equal, operand.clone());
                    told.push((to.0, equal));
                }
            }
        }
        for (table, comparison) in told {
            self.own[table].push(comparison);
        }
    }

    /// What the columns of a query's rows are equal to.
    pub(super) fn equal_of(&self, table: usize) -> Vec<(usize, Compared)> {
        let equal = self.own[table].iter().filter_map(Comparison::as_equal);
        equal
            .map(|(column, operand)| (column, operand.clone()))
            .collect()
    }

    /// Whether these are conditions of a LEFT JOIN's right side alone, and of tables before it.
    fn is_of(&self, table: usize) -> bool {
        let mut others = self.own.iter().enumerate();
        let is_before = |link: &Link<'_>| {
            link.way_to(table).is_some() && link.others(table).all(|other| other < table)
        };
        others.all(|(other, own)| other == table || own.is_empty())
            && self.links.iter().all(is_before)
    }

    /// Whether something is said of a table.
    fn concern(&self, table: usize) -> bool {
        !self.own[table].is_empty() || self.links.iter().any(|link| link.is_of(table))
    }

    fn take(&mut self, others: Conditions<'a>) {
        for (own, other) in self.own.iter_mut().zip(others.own) {
            own.extend(other);
        }
        self.links.extend(others.links);
        self.rest.extend(others.rest);
    }

    fn add(&mut self, condition: &'a ast::Expr, names: &[Names<'_>]) {
        match condition {
            ast::Expr::Nested(inner) => return self.add(inner, names),
            ast::Expr::BinaryOp {
                left,
                op: ast::BinaryOperator::And,
                right,
            } => {
                self.add(left, names);
                return self.add(right, names);
            }
            ast::Expr::BinaryOp { left, op, right } if Relation::of(op).is_some() => {
                let sides = (column_of(names, left), column_of(names, right));
                let is_of_columns = sides.0.is_some() && sides.1.is_some();
                match link_of((left, op, right), condition, names) {
                    Some(link) => return self.links.push(link),
                    None if is_of_columns => return self.rest.push(condition),
                    None => {}
                }
            }
            ast::Expr::Between {
                expr,
                negated: false,
                low,
                high,
            } => {
                let bounds = [
                    (ast::BinaryOperator::GtEq, low.as_ref()),
                    (ast::BinaryOperator::LtEq, high.as_ref()),
                ];
                let link = |(op, bound): &(ast::BinaryOperator, &ast::Expr)| {
                    link_of((expr, op, bound), condition, names)
                };
                let links: Vec<Link<'_>> = bounds.iter().filter_map(link).collect();
                if let [_, _] = links.as_slice() {
                    return self.links.extend(links);
                }
            }
            _ => {}
        }
        let own = (0..names.len()).find_map(|table| {
            // Rows of other queries are not found by constants.
            let is_of_definitions = names[table].is_of_definitions();
            if names[table].table().is_none() && !is_of_definitions {
                return None;
            }
            let found = comparisons(condition, &OneOf { names, table })?;
            let all_equal = || found.iter().all(|found| found.as_equal().is_some());
            (!is_of_definitions || all_equal()).then_some((table, found))
        });
        match own {
            Some((table, found)) => self.own[table].extend(found),
            None => self.rest.push(condition),
        }
    }

    /// Whether tables are linked by more than equal columns.
    pub(super) fn has_other_links(&self) -> bool {
        self.links.iter().any(|link| link.equal_columns().is_none())
    }

    /// The same where joined rows are tested by what is not the equality of two columns.
    pub(super) fn by_equal_columns(mut self) -> Conditions<'a> {
        let links = std::mem::take(&mut self.links);
        for link in links {
            // Where a row may be missing, the link says whether it is.
            let is_kept =
                link.equal_columns().is_some() || link.tables().any(|table| self.outer[table]);
            // A BETWEEN is two of them.
            let is_known = |known: &&ast::Expr| std::ptr::eq(*known, link.written);
            if is_kept {
                self.links.push(link);
            } else if !self.rest.iter().any(is_known) {
                self.rest.push(link.written);
            }
        }
        self
    }
}
