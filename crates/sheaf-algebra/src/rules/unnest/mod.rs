//! `A dependent join B  =  A join B`, where nothing in `B` is computed from `A`; and the ways to get there.
//!
//! What `B` takes from `A` is pulled up through the operators of `B` to the join, after Neumann and Kemper, "Unnesting
//! Arbitrary Queries" (2015), as far as that needs no copy of `A`:
//!
//! ```text
//!   A djoin p (filter q B)                  A djoin (p and q) B
//!   A djoin p (project B)                   A djoin p (project, and what p names, of B)
//!   A djoin (a = b) (group by k of B)       A djoin (a = b) (group by k, b of B)
//!   A djoin (a = b) (limit n of B)          A djoin (a = b) (filter number <= n (number by b of B))
//!   A djoin (a = b) (window by k of B)      A djoin (a = b) (window by k, b of B)
//!   A djoin p (sort B)                      A djoin p B
//!   A djoin p (B semijoin (q and a = c) C)  A djoin p (B join (q and a = c) C)       where rows may come more often
//! ```
//!
//! A group without keys has a row where `B` has none, and one with the key `b` has not. So a subquery that is a value
//! is joined below what it computes of its aggregates:
//!
//! ```text
//!   single v (A, project v := f(c) (group: c := count of B))
//!     =   project A, v := f(c is null ? 0 : c) (A left join (group by b: c := count of B) on a = b)
//! ```
//!
//! What is NULL of no rows, as `sum(x) + 1` is, is computed below the join: a condition on it makes an inner join of
//! it.
//!
//! Where a subquery that is a value may find several rows, these are counted, and
//! [`ONLY_ROW`](sheaf_exec::functions::control::ONLY_ROW) makes an error of it.
//!
//! Where rows are compared by an order with all rows of `B`, the least or the greatest of these decides
//! ([`extreme_rows`]).
//!
//! Rows of documents of `A` are made of the rows of `A` themselves ([`expand`]).
//!
//! Where `B` takes a value from `A` in a place from which it cannot be pulled up, the general rule takes over
//! ([`domain`](super::domain)), unless `B` is a value and finds its rows by an index. Then, and where the general rule
//! does not get there, the dependent join stays, and `B` is run for each row of `A` that differs in what `B` takes. But
//! running `B` each time costs more than the few rows of a value, or of a range with both ends. Those a join finds,
//! too. The same holds of EXISTS, IN and LATERAL where `B` has a limit and a range with one end.
//!
//! A subquery that gives something else each time, as one with RAND() does, is run for each row of `A`, whatever it
//! takes from it ([`varying`]).

mod expand;
mod extreme_rows;
mod found_by_index;
mod mark;
mod pull;
mod single;
mod varying;

use std::sync::Arc;

use datafusion_common::{Result, ScalarValue, internal_err};
use sheaf_access::cancel;
use sheaf_exec::aggregates::aggregate_function;
use sheaf_exec::operator::scan_exec::access_error;

use found_by_index::{found_by_index, has_limit, is_cut};
use mark::antijoins_of_rows;

use super::push_down_predicates::below_dependent_joins;
use crate::column::{ColumnId, Columns};
use crate::column_set::ColumnSet;
use crate::relation::{DependentJoin, DependentKind, Item, JoinKind, Operator, Relation};
use crate::scalar::typing::AggregateCall;
use crate::scalar::{Comparison, Scalar, Truth, Typing};

pub(super) use found_by_index::first_of_indexes;
pub(super) use pull::{Pulled, ordered_input};
pub(crate) use single::calls_only_row;

pub fn apply(relation: Relation, columns: &mut Columns, typing: &Typing<'_>) -> Result<Relation> {
    let mut unnesting = Unnesting {
        columns,
        typing,
        keeps_probes: true,
        copied: 0,
    };
    unnesting.relation(relation)
}

pub(super) struct Unnesting<'a> {
    pub(super) columns: &'a mut Columns,
    pub(super) typing: &'a Typing<'a>,
    /// Values that find their rows by an index may be run for each row.
    keeps_probes: bool,
    /// Operators of left sides that were copied into domains.
    pub(super) copied: usize,
}

impl Unnesting<'_> {
    /// From the innermost dependent joins outwards.
    fn relation(&mut self, relation: Relation) -> Result<Relation> {
        cancel::check_statement().map_err(access_error)?;
        let mut failed = None;
        let relation = below_dependent_joins(relation);
        let relation = relation.map_inputs(&mut |input| match self.relation(input) {
            Ok(input) => input,
            Err(error) => {
                failed = Some(error);
                Relation::unit()
            }
        });
        if let Some(error) = failed {
            return Err(error);
        }
        match relation.into_operator() {
            Operator::DependentJoin(join) => self.dependent_join(join),
            Operator::Limit(limit) => self.limit_by_parts(limit),
            operator => Ok(operator.into()),
        }
    }

    fn dependent_join(&mut self, join: DependentJoin) -> Result<Relation> {
        let join = match self.by_extreme_rows(join)? {
            Ok(relation) => return Ok(relation),
            Err(join) => *join,
        };
        let join = match self.varying(join)? {
            Ok(relation) => return Ok(relation),
            Err(join) => *join,
        };
        let outer = join.left.column_set();
        let is_independent = !join.right.free_columns().intersects(&outer);
        if let DependentKind::Single(value) = join.kind {
            return match is_independent {
                // It is computed once, before the rows around it.
                true => Ok(Operator::DependentJoin(join).into()),
                false => self.single(join, value, &outer),
            };
        }
        let kind = match join.kind {
            DependentKind::Inner => JoinKind::Inner,
            DependentKind::LeftOuter => JoinKind::LeftOuter,
            DependentKind::Semi => JoinKind::Semi,
            DependentKind::Anti => JoinKind::Anti,
            DependentKind::Found(mark) => JoinKind::Mark(mark),
            DependentKind::Mark(mark) => match &join.condition {
                Some(condition) if condition.is_nullable() => {
                    return self.mark_of_three_values(join, mark, &outer);
                }
                _ => JoinKind::Mark(mark),
            },
            DependentKind::Single(_) => return internal_err!("a single join is no other"),
        };
        if is_independent {
            if kind == JoinKind::Anti
                && let Some(may_be) = &join.condition
                && let Some(relation) = antijoins_of_rows(&join.left, &join.right, may_be)
            {
                return Ok(relation);
            }
            return Ok(join.left.join(kind, *join.right, join.condition));
        }
        let mut join = match self.expanded(join, &outer) {
            Ok(relation) => return Ok(relation),
            Err(join) => *join,
        };
        let is_of_rows = matches!(kind, JoinKind::Inner | JoinKind::LeftOuter);
        if is_of_rows && is_cut(&join.right) && self.ends_soon(&join.right, &outer) {
            return Ok(Operator::DependentJoin(join).into());
        }
        if !is_of_rows {
            join.right = Box::new(pull::repeated(*join.right, &outer));
        }
        let mut pulled = match !is_of_rows && self.ends_soon(&join.right, &outer) {
            true => self.pull(join.right.as_ref().clone(), &outer)?,
            false => self.independent(&mut join.left, &join.right, &outer)?,
        };
        if pulled.is_none() && is_of_rows {
            // Joined with the values of the left side, if nothing inside is run for each row.
            let keeps = std::mem::replace(&mut self.keeps_probes, false);
            let right = self.relation(join.right.as_ref().clone())?;
            self.keeps_probes = keeps;
            pulled = self.independent(&mut join.left, &right, &outer)?;
        }
        match pulled {
            Some(pulled) => {
                let conditions = join.condition.into_iter().chain(pulled.conditions);
                let condition = Scalar::and(conditions);
                Ok(join.left.join(kind, pulled.relation, Some(condition)))
            }
            None => self.counted(join),
        }
    }

    /// Whether the right side finds its rows by an index, in a range without an end, and stops after some of them. Then
    /// it is better run for each row: joined with the values of the left side, it would have all rows of each range.
    fn ends_soon(&self, right: &Relation, outer: &ColumnSet) -> bool {
        let is_open = || found_by_index(right, outer).is_some_and(|found| !found.is_bounded());
        self.keeps_probes && has_limit(right) && is_open()
    }

    /// A mark as a value of one row, for what is run for each row of the left side:
    ///
    /// ```text
    ///   A mark join m of B on p  =  project A, m := v = 2 or v = 1 and unknown
    ///                               (single v (A, (group: v := max(p ? 2 : p is unknown ? 1 : null) of B)))
    /// ```
    fn counted(&mut self, join: DependentJoin) -> Result<Relation> {
        if matches!(join.kind, DependentKind::Inner | DependentKind::LeftOuter) {
            return Ok(Operator::DependentJoin(join).into());
        }
        let number = |number: i64| Scalar::literal(ScalarValue::Int64(Some(number)));
        let found = match join.condition {
            None => number(2),
            Some(condition) => {
                let unknown = condition.clone().test(Truth::Unknown, false);
                let case = vec![condition, number(2), unknown, number(1)];
                self.typing.call("$case", case)?
            }
        };
        let (best, aggregate) = self.add_aggregate("max", found)?;
        let right = join
            .right
            .group(Vec::new(), Vec::new(), vec![(best, aggregate)]);
        let mut shown: Vec<Item> = join
            .left
            .columns()
            .iter()
            .map(|id| self.passed_on(*id))
            .collect();
        let applied = join
            .left
            .dependent_join(DependentKind::Single(best), right, None);
        let is = |operator: Comparison, found: i64| {
            let best = self.column(best);
            Scalar::comparison(operator, best, number(found))
        };
        match join.kind {
            DependentKind::Semi => Ok(applied.filter(is(Comparison::Equal, 2)).project(shown)),
            DependentKind::Anti => {
                let is_found = is(Comparison::NullSafeEqual, 2);
                Ok(applied.filter(is_found.not()).project(shown))
            }
            DependentKind::Mark(mark) | DependentKind::Found(mark) => {
                let is_found = is(Comparison::NullSafeEqual, 2);
                let may_be = is(Comparison::NullSafeEqual, 1);
                let unknown = Scalar::literal(ScalarValue::Boolean(None));
                let value = match join.kind {
                    DependentKind::Mark(_) => {
                        Scalar::or([is_found, Scalar::and([may_be, unknown])])
                    }
                    _ => is_found,
                };
                shown.push(Item {
                    column: mark,
                    value,
                });
                Ok(applied.project(shown))
            }
            _ => internal_err!("not a mark"),
        }
    }

    /// The right side without what it takes from the left side, in the one way or the other.
    fn independent(
        &mut self,
        left: &mut Relation,
        right: &Relation,
        outer: &ColumnSet,
    ) -> Result<Option<Pulled>> {
        match self.pull(right.clone(), outer)? {
            Some(pulled) => Ok(Some(pulled)),
            None => self.over_domain(left, right.clone()),
        }
    }

    pub(super) fn add_aggregate(
        &mut self,
        name: &str,
        argument: Scalar,
    ) -> Result<(ColumnId, crate::scalar::Aggregate)> {
        let Some(function) = aggregate_function(name) else {
            return internal_err!("{name} is not registered");
        };
        let aggregate = self.typing.aggregate(AggregateCall {
            function,
            arguments: vec![argument],
            distinct: false,
        })?;
        let id = self
            .columns
            .add_computed(name, Arc::clone(aggregate.field()));
        Ok((id, aggregate))
    }

    fn column(&self, id: ColumnId) -> Scalar {
        Scalar::made(id, self.columns)
    }

    pub(super) fn passed_on(&self, id: ColumnId) -> Item {
        Item {
            column: id,
            value: self.column(id),
        }
    }
}
