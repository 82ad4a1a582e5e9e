//! What a plan consists of besides what its statement is given by its session.

use super::subquery::Subquery;
use super::syntax::needs::needs_of;
use super::{Action, DirectPlan};
use crate::accounts::TableNeed;
use crate::parser::statement::Statement;

/// A plan that does not know yet what it is given.
pub(super) struct PartsOfPlan {
    pub(super) action: Action,
    pub(super) needs: Vec<TableNeed>,
    pub(super) subqueries: Vec<Subquery>,
    pub(super) list: Vec<Subquery>,
}

impl PartsOfPlan {
    pub(super) fn of(action: Action, statement: &Statement) -> PartsOfPlan {
        PartsOfPlan {
            needs: needs_of(&action, statement),
            action,
            subqueries: Vec::new(),
            list: Vec::new(),
        }
    }

    /// The plan of a statement that is given nothing but so many parameters.
    pub(super) fn into_plan(self, parameters: usize) -> DirectPlan {
        let PartsOfPlan {
            action,
            needs,
            subqueries,
            list,
        } = self;
        DirectPlan {
            subqueries,
            list,
            ..DirectPlan::given_parameters(action, needs, parameters)
        }
    }
}
