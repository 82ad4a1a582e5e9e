//! CREATE, ALTER, DROP and SET RESOURCE GROUP.
//!
//! Their rules and messages are those of MySQL's manual, "Resource Group Management Statements", with two exceptions.
//! What ALTER does not name stays as it is, the priority too. And threads are named by the ids of their connections.

use std::sync::Arc;

use sheaf_exec::runtime::thread_placement;
use sheaf_table::cpu_set::MAX_CPUS;
use sheaf_table::resource_group::{MAX_CPU_RANGES, MAX_RESOURCE_GROUPS};
use sheaf_table::{CpuSet, Privileges, ResourceGroup, ResourceGroupKind, TableError};
use sheaf_types::error::codes;

use super::{TO_USE, cannot_bind, enter_group, is_default_group, lock, no_such_group};
use crate::engine::Engine;
use crate::error::{Result, SqlError};
use crate::parser::resource_group::{ResourceGroupSettings, ResourceGroupStatement};
use crate::rights::Client;
use crate::session::Session;
use crate::session::result::ResultSink;
use crate::session::warnings::Warnings;

/// The most characters of a group's name.
const MAX_NAME_CHARACTERS: usize = 64;

impl Client {
    /// What a statement about resource groups needs. Error 1227.
    pub(crate) fn check_resource_group_statement(
        &self,
        statement: &ResourceGroupStatement,
    ) -> Result<()> {
        match statement {
            ResourceGroupStatement::Set { .. } => self.check_one_of(TO_USE),
            _ => self.check_one_of(Privileges::RESOURCE_GROUP_ADMIN),
        }
    }
}

pub(crate) fn change_resource_groups(
    session: &mut Session,
    statement: ResourceGroupStatement,
    sink: &mut dyn ResultSink,
) -> Result<()> {
    match statement {
        ResourceGroupStatement::Create {
            name,
            kind,
            settings,
        } => {
            let warnings = &mut session.warnings;
            create_resource_group(&session.engine, warnings, name, kind, &settings)?;
        }
        ResourceGroupStatement::Alter {
            name,
            settings,
            force,
        } => alter_resource_group(session, &name, &settings, force)?,
        ResourceGroupStatement::Drop { name, force } => {
            drop_resource_group(session, &name, force)?;
        }
        ResourceGroupStatement::Set { name, threads } => {
            set_resource_group(session, &name, &threads)?;
        }
    }
    session.ok(sink, 0, String::new())
}

fn create_resource_group(
    engine: &Engine,
    warnings: &mut Warnings,
    name: String,
    kind: ResourceGroupKind,
    settings: &ResourceGroupSettings,
) -> Result<()> {
    check_name(&name)?;
    let exists = SqlError::new(
        codes::RESOURCE_GROUP_EXISTS,
        format!("Resource Group '{name}' exists"),
    );
    if is_default_group(&name) {
        return Err(exists);
    }
    let key = ResourceGroup::key(&name);
    let group = ResourceGroup {
        thread_priority: warnings
            .thread_priority(&name, kind, settings)?
            .unwrap_or(0),
        cpus: cpus(settings)?.unwrap_or_default(),
        enabled: settings.enabled.unwrap_or(true),
        name,
        kind,
    };
    engine.catalog().change_resource_groups(|groups| {
        if groups.contains_key(&key) {
            return Err(exists);
        }
        if groups.len() >= MAX_RESOURCE_GROUPS {
            return Err(SqlError::unknown(format!(
                "There are {MAX_RESOURCE_GROUPS} resource groups, which is the most; drop one first"
            )));
        }
        groups.insert(key, Arc::new(group));
        Ok(())
    })
}

fn alter_resource_group(
    session: &mut Session,
    name: &str,
    settings: &ResourceGroupSettings,
    force: bool,
) -> Result<()> {
    check_name(name)?;
    if is_default_group(name) {
        return Err(not_for_defaults("Alter"));
    }
    let engine = Arc::clone(&session.engine);
    let mut active = lock(&engine.resource_groups.0);
    let old = engine.resource_group(name)?;
    let cpus = cpus(settings)?;
    let priority = session.warnings.thread_priority(name, old.kind, settings)?;
    if force && settings.enabled != Some(false) {
        return Err(SqlError::new(
            codes::INVALID_USE_OF_FORCE_OPTION,
            "Option FORCE invalid as DISABLE option is not specified.",
        ));
    }
    let key = ResourceGroup::key(name);
    let new = Arc::new(ResourceGroup {
        cpus: cpus.unwrap_or_else(|| old.cpus.clone()),
        thread_priority: priority.unwrap_or(old.thread_priority),
        enabled: settings.enabled.unwrap_or(old.enabled),
        ..ResourceGroup::clone(&old)
    });
    engine.catalog().change_resource_groups(|groups| {
        groups.insert(key.clone(), Arc::clone(&new));
        Ok::<(), TableError>(())
    })?;
    // Those that are in a disabled group stay as they are, unless they are forced out.
    if new.enabled {
        for session in engine.sessions_in(&key) {
            let group = engine.activate(&mut active, &new, session.id())?;
            session.assign_group(group);
        }
    } else {
        active.remove(&key);
        if force {
            engine
                .sessions_in(&key)
                .iter()
                .for_each(|session| session.assign_group(None));
        }
    }
    Ok(())
}

fn set_resource_group(session: &mut Session, name: &str, threads: &[u64]) -> Result<()> {
    check_name(name)?;
    let engine = Arc::clone(&session.engine);
    let mut active = lock(&engine.resource_groups.0);
    let group = engine.resource_group(name)?;
    let is_system = group.kind == ResourceGroupKind::System;
    if is_system {
        session
            .client
            .check_one_of(Privileges::RESOURCE_GROUP_ADMIN)?;
    }
    if !group.enabled {
        return Err(super::group_is_disabled(&group.name));
    }
    if threads.is_empty() {
        if is_system {
            let why = "System resource group can't be applied to user thread.";
            return Err(cannot_bind(&group.name, session.id(), why));
        }
        let own = engine.activate(&mut active, &group, session.id())?;
        session.handle.assign_group(own);
        enter_group(session);
        return Ok(());
    }
    for id in threads {
        let bound = match engine.session_handle(*id) {
            Err(_) => Err(SqlError::new(
                codes::INVALID_THREAD_ID,
                format!("Invalid thread id ({id})."),
            )),
            Ok(_) if is_system => Err(cannot_bind(
                &group.name,
                *id,
                "Resource group type and thread type doesn't match.",
            )),
            Ok(session) => engine
                .activate(&mut active, &group, *id)
                .map(|group| session.assign_group(group)),
        };
        match bound {
            Err(error) if threads.len() == 1 => return Err(error),
            Err(SqlError { code, message, .. }) => session.warnings.warn(code, message),
            Ok(()) => {}
        }
    }
    // The own one may be among them.
    enter_group(session);
    Ok(())
}

fn drop_resource_group(session: &Session, name: &str, force: bool) -> Result<()> {
    check_name(name)?;
    if is_default_group(name) {
        return Err(not_for_defaults("Drop"));
    }
    let mut active = lock(&session.engine.resource_groups.0);
    let group = session.engine.resource_group(name)?;
    let key = ResourceGroup::key(name);
    let sessions = session.engine.sessions_in(&key);
    if !sessions.is_empty() && !force {
        let message = format!("Resource group {} is busy.", group.name);
        return Err(SqlError::new(codes::RESOURCE_GROUP_BUSY, message));
    }
    session
        .engine
        .catalog()
        .change_resource_groups(|groups| match groups.remove(&key) {
            Some(_) => Ok(()),
            None => Err(no_such_group(name)),
        })?;
    active.remove(&key);
    sessions
        .iter()
        .for_each(|session| session.assign_group(None));
    Ok(())
}

impl Warnings {
    /// The priority that a statement gives a group. Error 3654; warning 3659 where priorities cannot be used.
    fn thread_priority(
        &mut self,
        name: &str,
        kind: ResourceGroupKind,
        settings: &ResourceGroupSettings,
    ) -> Result<Option<i8>> {
        let Some(wanted) = settings.thread_priority else {
            return Ok(None);
        };
        let allowed = kind.priorities();
        let priority = i8::try_from(wanted).ok();
        let Some(priority) = priority.filter(|priority| allowed.contains(priority)) else {
            let type_name = match kind {
                ResourceGroupKind::User => "User",
                ResourceGroupKind::System => "System",
            };
            return Err(SqlError::new(
                codes::INVALID_THREAD_PRIORITY,
                format!(
                    "Invalid thread priority value {wanted} for {type_name} resource group {name}. \
                     Allowed range is [{}, {}].",
                    allowed.start(),
                    allowed.end()
                ),
            ));
        };
        if priority != 0 && !thread_placement::priorities_are_available() {
            self.warn(
                codes::ATTRIBUTE_IGNORED,
                "Attribute thread_priority is ignored (using default value).",
            );
            return Ok(Some(0));
        }
        Ok(Some(priority))
    }
}

/// Error 1059.
fn check_name(name: &str) -> Result<()> {
    match name.chars().count() > MAX_NAME_CHARACTERS {
        true => Err(TableError::NameTooLong {
            name: name.to_string(),
        }
        .into()),
        false => Ok(()),
    }
}

fn not_for_defaults(operation: &str) -> SqlError {
    SqlError::new(
        codes::DISALLOWED_OPERATION,
        format!("{operation} operation is disallowed on default resource groups."),
    )
}

/// The CPUs that a statement gives a group. Errors 3652 and 3653.
fn cpus(settings: &ResourceGroupSettings) -> Result<Option<CpuSet>> {
    let Some(ranges) = &settings.cpus else {
        return Ok(None);
    };
    let available = thread_placement::cpus_of_process();
    let mut checked = Vec::new();
    for (first, last) in ranges {
        if first > last {
            let message = format!("Invalid VCPU range {first}-{last}");
            return Err(SqlError::new(codes::INVALID_VCPU_RANGE, message));
        }
        // A range ends here at the first CPU that is not there, so it is never long.
        for number in *first..=*last {
            let cpu = u16::try_from(number).ok();
            let Some(cpu) = cpu.filter(|cpu| available.contains(*cpu)) else {
                let message = format!("Invalid cpu id {number}");
                return Err(SqlError::new(codes::INVALID_VCPU_ID, message));
            };
            checked.push(cpu);
        }
        // However often a CPU is named.
        checked.sort_unstable();
        checked.dedup();
        debug_assert!(checked.len() <= usize::from(MAX_CPUS));
    }
    let set: CpuSet = checked.into_iter().collect();
    debug_assert!(set.ranges().len() <= MAX_CPU_RANGES);
    Ok(Some(set))
}
