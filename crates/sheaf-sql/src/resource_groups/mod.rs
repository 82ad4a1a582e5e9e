//! Resource groups at work: which threads run a session's statements, and where.
//!
//! ```text
//!   session (own group, or the group of a hint)
//!     |- its own thread          direct plans, planning, changes      enters the group's placement
//!     '- the group's runtime     vectorised plans                     workers were started there
//! ```
//!
//! The catalog has the definitions. An [`ActiveGroup`] is one that is in use, with its worker threads, which start with
//! its first vectorised plan. When a definition changes, a new active group takes the old one's place and its sessions
//! are handed over; a statement that runs stays where it began.
//!
//! What group a session is in is kept in its [`SessionHandle`](crate::session::handle::SessionHandle), because others
//! may move it; the session looks there when a statement starts.

pub(crate) mod statements;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sheaf_exec::ThreadPlacement;
use sheaf_exec::runtime::thread_placement;
use sheaf_table::{CpuSet, Privileges, ResourceGroup, ResourceGroupKind};
use sheaf_types::error::codes;

use crate::engine::Engine;
use crate::error::{Result, SqlError};
use crate::query::rows::{Cells, Rows};
use crate::rights::Client;
use crate::session::Session;
use crate::session::handle::SessionHandle;
use crate::session::workers::ActiveGroup;

/// The group of sessions that are in no other.
const USER_DEFAULT: &str = "USR_default";
/// The group of the server's own threads.
const SYSTEM_DEFAULT: &str = "SYS_default";

const TEXT: Cells = Cells::Text(64);

/// To put sessions into groups.
const TO_USE: Privileges = Privileges::from_all(&[
    Privileges::RESOURCE_GROUP_ADMIN,
    Privileges::RESOURCE_GROUP_USER,
]);

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // What is behind these locks is replaced whole, so a panic elsewhere does not spoil it.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn no_such_group(name: &str) -> SqlError {
    SqlError::new(
        codes::RESOURCE_GROUP_NOT_EXISTS,
        format!("Resource Group '{name}' does not exist."),
    )
}

fn group_is_disabled(name: &str) -> SqlError {
    SqlError::new(
        codes::RESOURCE_GROUP_DISABLED,
        format!("Resource group {name} is disabled."),
    )
}

fn cannot_bind(name: &str, session: u64, why: &str) -> SqlError {
    SqlError::new(
        codes::RESOURCE_GROUP_BIND_FAILED,
        format!("Unable to bind resource group {name} with thread id ({session}).({why})."),
    )
}

/// The groups that are always there: they have all CPUs and change no priority.
fn default_groups() -> [ResourceGroup; 2] {
    let group = |name: &str, kind| ResourceGroup {
        name: name.into(),
        kind,
        enabled: true,
        cpus: CpuSet::default(),
        thread_priority: 0,
    };
    [
        group(USER_DEFAULT, ResourceGroupKind::User),
        group(SYSTEM_DEFAULT, ResourceGroupKind::System),
    ]
}

fn is_default_group(name: &str) -> bool {
    name.eq_ignore_ascii_case(USER_DEFAULT) || name.eq_ignore_ascii_case(SYSTEM_DEFAULT)
}

/// Those of a group's CPUs that the process has.
fn usable_cpus(group: &ResourceGroup) -> CpuSet {
    let all = thread_placement::cpus_of_process();
    match group.cpus.is_empty() {
        true => all.clone(),
        false => all.iter().filter(|cpu| group.cpus.contains(*cpu)).collect(),
    }
}

impl Engine {
    /// The definition of a resource group. Error 3651 if there is none.
    fn resource_group(&self, name: &str) -> Result<Arc<ResourceGroup>> {
        let stored = self.catalog().resource_groups();
        if let Some(group) = stored.get(&ResourceGroup::key(name)) {
            return Ok(Arc::clone(group));
        }
        let mut defaults = default_groups().into_iter();
        defaults
            .find(|group| group.name.eq_ignore_ascii_case(name))
            .map(Arc::new)
            .ok_or_else(|| no_such_group(name))
    }

    /// The active group of a definition, for a session; `None` for the default one. Errors 3657 if it is disabled, and
    /// 3661 if the process has none of its CPUs.
    fn activate(
        &self,
        groups: &mut BTreeMap<String, Arc<ActiveGroup>>,
        definition: &Arc<ResourceGroup>,
        session: u64,
    ) -> Result<Option<Arc<ActiveGroup>>> {
        let name = &definition.name;
        if is_default_group(name) {
            return Ok(None);
        }
        if !definition.enabled {
            return Err(group_is_disabled(name));
        }
        let key = ResourceGroup::key(name);
        if let Some(active) = groups.get(&key)
            && Arc::ptr_eq(&active.definition, definition)
        {
            return Ok(Some(Arc::clone(active)));
        }
        let cpus = usable_cpus(definition);
        if cpus.is_empty() {
            return Err(cannot_bind(name, session, "None of its CPUs is available"));
        }
        let placement = ThreadPlacement::new(cpus, definition.thread_priority);
        let active = Arc::new(ActiveGroup::new(Arc::clone(definition), placement));
        groups.insert(key, Arc::clone(&active));
        Ok(Some(active))
    }

    /// The sessions that are in a group.
    fn sessions_in(&self, key: &str) -> Vec<Arc<SessionHandle>> {
        let mut sessions = self.sessions();
        sessions.retain(|session| {
            let group = session.group();
            group.is_some_and(|group| ResourceGroup::key(&group.definition.name) == key)
        });
        sessions
    }
}

/// Takes notice of the group that the session was put into, and moves the calling thread there. Called when a
/// statement starts.
pub(crate) fn enter_group(session: &mut Session) {
    if session.handle.group_version() != session.workers.group_version() {
        let (own, version) = session.handle.take_group();
        session.workers.change_group(own, version);
    }
    session.workers.place_thread();
}

/// RESOURCE_GROUP(name): the running statement is in this group. What keeps it out is a warning.
pub(crate) fn enter_hinted_group(session: &mut Session, name: &str) {
    match hinted_group(session, name) {
        Ok(group) => session.workers.enter_hinted_group(group),
        Err(SqlError { code, message, .. }) => session.warnings.warn(code, message),
    }
}

fn hinted_group(session: &Session, name: &str) -> Result<Option<Arc<ActiveGroup>>> {
    session.client.check_one_of(TO_USE)?;
    let mut groups = lock(&session.engine.resource_groups.0);
    let definition = session.engine.resource_group(name)?;
    if definition.kind == ResourceGroupKind::System {
        let why = "System resource group can't be bound with a session thread";
        return Err(cannot_bind(&definition.name, session.id(), why));
    }
    session
        .engine
        .activate(&mut groups, &definition, session.id())
}

/// `information_schema.RESOURCE_GROUPS`, of which one sees what one may use.
pub(crate) fn resource_groups(client: &Client, engine: &Engine) -> Rows {
    let mut rows = Rows::new([
        ("RESOURCE_GROUP_NAME", TEXT),
        ("RESOURCE_GROUP_TYPE", TEXT),
        ("RESOURCE_GROUP_ENABLED", Cells::Unsigned),
        ("VCPU_IDS", Cells::Text(u32::MAX)),
        ("THREAD_PRIORITY", Cells::Signed),
    ]);
    let may_see = |kind| match kind {
        ResourceGroupKind::User => client.check_one_of(TO_USE).is_ok(),
        ResourceGroupKind::System => {
            let to_administer = Privileges::RESOURCE_GROUP_ADMIN;
            client.check_one_of(to_administer).is_ok()
        }
    };
    let stored = engine.catalog().resource_groups();
    let defaults = default_groups();
    for group in defaults.iter().chain(stored.values().map(AsRef::as_ref)) {
        if !may_see(group.kind) {
            continue;
        }
        let cpus = match group.cpus.is_empty() {
            true => thread_placement::cpus_of_process(),
            false => &group.cpus,
        };
        rows.push(vec![
            group.name.as_str().into(),
            group.kind.name().into(),
            u64::from(group.enabled).into(),
            cpus.to_string().into(),
            i64::from(group.thread_priority).into(),
        ]);
    }
    rows
}
