//! Whether the constants of a plan would be computed directly: `SELECT 1`, and SELECTs without a table in a UNION or a
//! FROM. Their expressions are planned to find that out, and nothing is computed.

use crate::direct::read::constants::Constants;
use crate::direct::rows::row_source::Derived;
use crate::direct::{Action, DirectPlan};
use crate::session::Session;

impl DirectPlan {
    /// Whether it reads nothing at all.
    pub(crate) fn is_constant(&self) -> bool {
        matches!(self.action, Action::Constants(_))
    }
}

impl Session {
    /// Whether all constants of a plan would be computed directly.
    pub(crate) fn plans_constants_of(&mut self, plan: &DirectPlan) -> bool {
        let mut found = Vec::new();
        add_constants(&plan.action, &mut found);
        if found.is_empty() {
            return true;
        }
        let Some(given) = self.given_of(plan, &[]) else {
            return false;
        };
        let given = given.into_owned();
        let mut all = found.into_iter();
        let are_planned = all.all(|constants| self.would_run_constants(constants, &given));
        // The statement is not run.
        self.findings.truncated_texts.take();
        self.findings.oversized_results.take();
        are_planned
    }
}

fn add_constants<'p>(action: &'p Action, found: &mut Vec<&'p Constants>) {
    let mut of_queries = |queries: &mut dyn Iterator<Item = &'p Derived>| {
        let parts = queries.flat_map(|derived| &derived.parts);
        parts.for_each(|part| add_constants(&part.action, found));
    };
    match action {
        Action::Constants(constants) => found.push(constants),
        Action::Union(union) => of_queries(&mut std::iter::once(&union.derived)),
        Action::Join(join) => of_queries(&mut join.derived()),
        Action::OverRows(query) => of_queries(&mut query.rows.derived()),
        Action::InsertSelect(insert) => add_constants(&insert.query, found),
        Action::Read(..)
        | Action::LockFound(_)
        | Action::ChangeFound(_)
        | Action::IntoVariables(_)
        | Action::SetVariable(_)
        | Action::Update(..)
        | Action::Delete(..)
        | Action::Insert(_) => {}
    }
}
