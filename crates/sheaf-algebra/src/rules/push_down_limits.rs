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
    match relation.into_operator() {
        // What it is pushed into may be a limit again.
        Operator::Limit(limit) => match pushed(limit).into_operator() {
            Operator::Limit(limit) if matches!(limit.input.operator(), Operator::Limit(_)) => {
                apply(Operator::Limit(limit).into())
            }
            operator => Relation::from(operator).map_inputs(&mut apply),
        },
        operator => Relation::from(operator).map_inputs(&mut apply),
    }
}

fn pushed(limit: Limit) -> Relation {
    let Limit { input, skip, fetch } = limit;
    let most = fetch.map(|fetch| skip.saturating_add(fetch));
    match (input.into_operator(), most) {
        (Operator::Limit(below), _) => {
            let left = below.fetch.map(|rows| rows.saturating_sub(skip));
            let fetch = match (fetch, left) {
                (Some(own), Some(left)) => Some(own.min(left)),
                (own, left) => own.or(left),
            };
            let skip = skip.saturating_add(below.skip);
            below.input.limit(skip, fetch)
        }
        (Operator::Project(project), Some(_)) if !project.has_variables() => {
            let input = Box::new(project.input.limit(skip, fetch));
            Operator::Project(Project { input, ..project }).into()
        }
        (Operator::DependentJoin(join), Some(_))
            if matches!(join.kind, DependentKind::Single(_)) =>
        {
            let left = Box::new(join.left.limit(skip, fetch));
            Operator::DependentJoin(DependentJoin { left, ..join }).into()
        }
        (Operator::Join(join), Some(most)) => joined(join, most).limit(skip, fetch),
        (Operator::SetOperation(operation), Some(most)) if operation.kind == SetKind::Union => {
            let inputs = operation.inputs.into_iter();
            let inputs = inputs.map(|input| input.limit(0, Some(most))).collect();
            let union = Operator::SetOperation(SetOperation {
                inputs,
                ..operation
            });
            Relation::from(union).limit(skip, fetch)
        }
        (operator, _) => Relation::from(operator).limit(skip, fetch),
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
