//! `limit n (project A)  =  project (limit n A)`, and its relatives.
//!
//! ```text
//!   limit n behind k (limit m A)        limit min(n, m - k) A, behind the first of both
//!   limit n (A left join B)             limit n ((limit n A) left join B)     the same for joins that mark rows
//!   limit n (A join B on true)          limit n ((limit n A) join (limit n B))
//!   limit n (A union B)                 limit n ((limit n A) union (limit n B))
//! ```
//!
//! Below there are as many rows as are skipped and shown together. What a limit shows of rows without an order is any
//! of them.

use crate::relation::{
    DependentJoin, DependentKind, Join, JoinKind, Limit, Operator, Project, Relation, SetKind,
    SetOperation,
};

pub fn apply(relation: Relation) -> Relation {
    let relation = match relation.into_operator() {
        Operator::Limit(limit) => pushed(merged(limit)),
        operator => operator.into(),
    };
    relation.map_inputs(&mut apply)
}

/// One limit in the place of limits one above the other.
fn merged(mut limit: Limit) -> Limit {
    loop {
        match limit.input.into_operator() {
            Operator::Limit(below) => {
                let left = below.fetch.map(|rows| rows.saturating_sub(limit.skip));
                limit = Limit {
                    input: below.input,
                    skip: limit.skip.saturating_add(below.skip),
                    fetch: match (limit.fetch, left) {
                        (Some(own), Some(left)) => Some(own.min(left)),
                        (own, left) => own.or(left),
                    },
                };
            }
            operator => {
                let input = Box::new(operator.into());
                return Limit { input, ..limit };
            }
        }
    }
}

fn pushed(limit: Limit) -> Relation {
    let Limit { input, skip, fetch } = limit;
    let Some(most) = fetch.map(|fetch| skip.saturating_add(fetch)) else {
        return input.limit(skip, fetch);
    };
    match input.into_operator() {
        Operator::Project(project) if !project.has_variables() => {
            let input = Box::new(project.input.limit(skip, fetch));
            Operator::Project(Project { input, ..project }).into()
        }
        Operator::DependentJoin(join) if matches!(join.kind, DependentKind::Single(_)) => {
            let left = Box::new(join.left.limit(skip, fetch));
            Operator::DependentJoin(DependentJoin { left, ..join }).into()
        }
        Operator::Join(join) => joined(join, most).limit(skip, fetch),
        Operator::SetOperation(operation) if operation.kind == SetKind::Union => {
            let inputs = operation.inputs.into_iter();
            let inputs = inputs.map(|input| input.limit(0, Some(most))).collect();
            let union = Operator::SetOperation(SetOperation {
                inputs,
                ..operation
            });
            Relation::from(union).limit(skip, fetch)
        }
        operator => Relation::from(operator).limit(skip, fetch),
    }
}

fn joined(join: Join, most: u64) -> Relation {
    let limited = |side: Box<Relation>| Box::new(side.limit(0, Some(most)));
    let (limits_left, limits_right) = match join.kind {
        JoinKind::LeftOuter | JoinKind::Mark(_) => (true, false),
        JoinKind::Inner => (join.condition.is_none(), join.condition.is_none()),
        JoinKind::Semi | JoinKind::Anti => (false, false),
    };
    let Join { left, right, .. } = join;
    Operator::Join(Join {
        left: if limits_left { limited(left) } else { left },
        right: if limits_right { limited(right) } else { right },
        ..join
    })
    .into()
}
