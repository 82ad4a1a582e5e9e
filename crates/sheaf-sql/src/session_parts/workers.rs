//! What runs a session's statements: threads, query memory, and what operators see of the session.
//!
//! Most sessions use the engine's worker threads. One that is in a resource group
//! ([`resource_groups`](crate::resource_groups)) uses those of the group, and its own thread runs where the group's
//! threads do.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use datafusion_execution::TaskContext;
use sheaf_exec::functions::limits::ResultLimits;
use sheaf_exec::memory_pool::StatementPool;
use sheaf_exec::runtime::thread_placement;
use sheaf_exec::{QueryRuntime, ThreadPlacement};
use sheaf_memory::StatementMemory;
use sheaf_memory::crowd::Place;
use sheaf_memory::planning::PlanningShare;
use sheaf_table::ResourceGroup;

use crate::error::Result;

/// A resource group that sessions are in, or were in.
pub(crate) struct ActiveGroup {
    pub(crate) definition: Arc<ResourceGroup>,
    pub(crate) placement: Arc<ThreadPlacement>,
    runtime: Mutex<Option<Arc<QueryRuntime>>>,
}

impl ActiveGroup {
    pub(crate) fn new(definition: Arc<ResourceGroup>, placement: ThreadPlacement) -> ActiveGroup {
        ActiveGroup {
            definition,
            placement: Arc::new(placement),
            runtime: Mutex::new(None),
        }
    }

    /// The group's worker threads, which start with the first call.
    fn runtime(&self, default: &QueryRuntime) -> Result<Arc<QueryRuntime>> {
        // It is replaced whole, so a panic elsewhere does not spoil it.
        let runtime = self.runtime.lock();
        let mut runtime = runtime.unwrap_or_else(PoisonError::into_inner);
        if let Some(runtime) = runtime.as_ref() {
            return Ok(Arc::clone(runtime));
        }
        let started = default.placed(&self.definition.name, Arc::clone(&self.placement))?;
        *runtime = Some(Arc::clone(&started));
        Ok(started)
    }
}

/// The active groups of an engine, by the names of their definitions. Code that changes which session is in which
/// group, or a definition, holds the lock.
#[derive(Default)]
pub(crate) struct ActiveGroups(pub(crate) Mutex<BTreeMap<String, Arc<ActiveGroup>>>);

/// Where a session's statements run.
#[derive(Default)]
pub(crate) struct SessionGroup {
    /// The group that the session was in when its statement began; `None`: the default one.
    own: Option<Arc<ActiveGroup>>,
    /// Of the handle, when `own` was taken from it.
    version: u64,
    /// The group that a hint of the running statement names; inside is `None` for the default one.
    hinted: Option<Option<Arc<ActiveGroup>>>,
}

impl SessionGroup {
    fn current(&self) -> Option<&Arc<ActiveGroup>> {
        self.hinted.as_ref().unwrap_or(&self.own).as_ref()
    }
}

/// What runs a session's statements: threads, query memory, and what operators see of the session.
pub(crate) struct Workers {
    /// Those of sessions that are in no group.
    default: Arc<QueryRuntime>,
    group: SessionGroup,
    /// What operators see; made again when a variable or the group changes.
    task: Option<Arc<TaskContext>>,
    /// What the session's statements have of the query memory.
    memory: Arc<StatementPool>,
    /// What they have of the memory for what is planned.
    planning: Arc<PlanningShare>,
    /// Its place among the statements that are planned or run, if it has needed one.
    place: Mutex<Option<Place>>,
}

impl Workers {
    pub(crate) fn new(
        default: &Arc<QueryRuntime>,
        memory: &Arc<StatementMemory>,
        planning: Arc<PlanningShare>,
    ) -> Workers {
        Workers {
            default: Arc::clone(default),
            group: SessionGroup::default(),
            task: None,
            memory: default.statement_pool(Arc::clone(memory)),
            planning,
            place: Mutex::default(),
        }
    }

    /// The statement's place among those that are planned or run.
    pub(crate) fn place(&self) -> MutexGuard<'_, Option<Place>> {
        // It is replaced whole.
        self.place.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What the session's statement has of the memory for what is planned.
    pub(crate) fn planning(&self) -> &Arc<PlanningShare> {
        &self.planning
    }

    /// Which of the session's moves between groups is known.
    pub(crate) fn group_version(&self) -> u64 {
        self.group.version
    }

    /// The session was put into another group.
    pub(crate) fn change_group(&mut self, own: Option<Arc<ActiveGroup>>, version: u64) {
        (self.group.own, self.group.version) = (own, version);
        self.task = None;
    }

    /// Moves the calling thread to where the group's threads run.
    pub(crate) fn place_thread(&self) {
        let moved = match self.group.current() {
            Some(group) => group.placement.enter(),
            None => thread_placement::leave(),
        };
        if let Err(error) = moved {
            // The statement runs where the thread is.
            tracing::warn!(%error, "a session's thread cannot run where its resource group says");
        }
    }

    pub(crate) fn enter_hinted_group(&mut self, group: Option<Arc<ActiveGroup>>) {
        self.group.hinted = Some(group);
        self.task = None;
        self.place_thread();
    }

    /// The statement is over.
    pub(crate) fn leave_hinted_group(&mut self) {
        if self.group.hinted.take().is_some() {
            self.task = None;
            self.place_thread();
        }
    }

    /// The worker threads that the running statement's vectorised plans run on.
    pub(crate) fn runtime(&self) -> Result<Arc<QueryRuntime>> {
        match self.group.current() {
            Some(group) => group.runtime(&self.default),
            None => Ok(Arc::clone(&self.default)),
        }
    }

    /// How many threads the running statement may divide its work among.
    pub(crate) fn threads(&self) -> usize {
        let all = self.default.options().threads;
        match self.group.current() {
            Some(group) => all.min(group.placement.cpus().len()),
            None => all,
        }
    }

    /// What operators see of the session, if it is known.
    pub(crate) fn task(&self) -> Option<&Arc<TaskContext>> {
        self.task.as_ref()
    }

    pub(crate) fn keep_task(&mut self, task: Arc<TaskContext>) {
        self.task = Some(task);
    }

    /// The configuration of plans may depend on what has changed.
    pub(crate) fn forget_task(&mut self) {
        self.task = None;
    }

    /// What the operators of a plan with batches of so many rows see of the session.
    pub(crate) fn new_task(
        &self,
        session_id: u64,
        batch_rows: usize,
        limits: Option<ResultLimits>,
    ) -> Arc<TaskContext> {
        let mut config = self.default.session_config(batch_rows, self.threads());
        if let Some(limits) = limits {
            config.options_mut().extensions.insert(limits);
        }
        let memory = Arc::clone(&self.memory);
        self.default
            .task_context(session_id.to_string(), config, memory)
    }
}
