//! What a session knows of a statement's direct plan, and how that is found among those that all sessions share.

use std::any::Any;
use std::sync::Arc;

use crate::direct::DirectPlan;
use crate::engine::shared_plans::{PlanKey, SharedKnown, SharedPlan};
use crate::session::Session;

/// What is known of a statement.
#[derive(Clone)]
pub(crate) enum Known {
    Direct(Arc<DirectPlan>),
    /// It has no direct plan.
    NotDirect,
}

impl Known {
    /// As all sessions have it.
    pub(in crate::direct) fn of_shared(shared: SharedKnown) -> Known {
        let plan = shared.map(|plan| -> Arc<dyn Any + Send + Sync> { plan });
        match plan.map(Arc::downcast) {
            Some(Ok(plan)) => Known::Direct(plan),
            Some(Err(_)) | None => Known::NotDirect,
        }
    }

    pub(in crate::direct) fn shared(&self) -> SharedKnown {
        match self {
            Known::Direct(plan) => Some(Arc::<DirectPlan>::clone(plan)),
            Known::NotDirect => None,
        }
    }

    pub(crate) fn is_current(&self) -> bool {
        match self {
            Known::Direct(plan) => plan.is_current(),
            Known::NotDirect => true,
        }
    }

    pub(in crate::direct) fn plan(&self) -> Option<&DirectPlan> {
        match self {
            Known::Direct(plan) => Some(plan),
            Known::NotDirect => None,
        }
    }
}

impl SharedPlan for DirectPlan {
    fn result_columns(&self) -> usize {
        DirectPlan::result_columns(self)
    }

    fn bytes(&self) -> usize {
        DirectPlan::bytes(self)
    }
}

/// What a plan of this text depends on.
pub(in crate::direct) fn plan_key(session: &Session, text: &str) -> PlanKey {
    PlanKey {
        text: text.into(),
        database: session.database.as_deref().map(Arc::from),
        sql_mode: session.variables.sql_mode(),
        collation_id: session.result_collation_id(),
        connection_collation_id: session.variables.connection_collation_id(),
        pushes_index_conditions: session.variables.pushes_index_conditions(),
        quotient_decimals: session.variables.quotient_decimals(),
        time_zone_offset_seconds: session.variables.time_zone_offset_seconds(),
    }
}
