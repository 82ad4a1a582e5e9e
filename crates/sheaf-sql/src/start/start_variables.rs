//! System variables that a server's configuration sets, when it starts and when the file is read again.
//!
//! All of them are tested first, as SET GLOBAL tests them. Then either all are set or none: a server never runs with a
//! part of what its file says.
//!
//! What SET PERSIST has kept is set first, and stays.

use std::sync::Arc;

use crate::engine::Engine;
use crate::error::Result;
use crate::session::SessionInfo;
use crate::variables::persisted::Persisted;
use crate::variables::{self, Variables, said_of};

impl Engine {
    /// Sets system variables as `SET GLOBAL` does, by names and values. Those that SET PERSIST has kept stay as they
    /// are. Returns what the assignments warn of.
    ///
    /// # Errors
    /// What is wrong with them, one text for each fault. Nothing was set then.
    pub fn set_globals(
        self: &Arc<Self>,
        assignments: &[(&str, &str)],
    ) -> std::result::Result<Vec<String>, Vec<String>> {
        let (kept, others): (Vec<_>, Vec<_>) = assignments
            .iter()
            .copied()
            .partition(|(name, _)| self.is_persisted(name));
        let mut session = self
            .session(SessionInfo::default())
            .map_err(|error| vec![error.to_string()])?;
        let mut warnings = session.assign_configured(&others)?;
        let is_not_taken = |(name, value): (&str, &str)| {
            format!(
                "{name} = {value}: not taken, SET PERSIST has another value for it; RESET PERSIST {name} forgets that"
            )
        };
        warnings.extend(kept.into_iter().map(is_not_taken));
        Ok(warnings)
    }

    /// Sets what is persisted, in the order in which it was set. A variable that cannot be set is told of in the error
    /// log, and no reason not to start.
    pub(super) fn set_persisted(self: &Arc<Self>) -> Result<()> {
        let mut persisted: Vec<_> = self.persisted_variables().into_iter().collect();
        if persisted.is_empty() {
            return Ok(());
        }
        persisted.sort_by_key(|(_, one)| one.set_micros);
        let mut session = self.session(SessionInfo::default())?;
        for (name, Persisted { value, .. }) in persisted {
            match session.assign_configured(&[(&name, &value)]) {
                Ok(warnings) => warnings
                    .iter()
                    .for_each(|warning| tracing::warn!("persisted {warning}")),
                Err(faults) => faults
                    .iter()
                    .for_each(|fault| tracing::error!("not set as persisted: {fault}")),
            }
        }
        Ok(())
    }
}

/// What is wrong with system variables that a configuration is to set, as far as that is known without a server.
/// Each with the place of its assignment.
pub fn faults_of_globals(assignments: &[(&str, &str)]) -> Vec<(usize, String)> {
    let mut globals = Variables::default();
    let mut fault_of = |name: &str, value: &str| -> Result<()> {
        let new = variables::of_configuration(name, value)?;
        let mut session = globals.clone();
        variables::assign_global(&mut session, &mut globals, name, &new)
    };
    assignments
        .iter()
        .enumerate()
        .filter_map(|(place, (name, value))| {
            let error = fault_of(name, value).err()?;
            Some((place, said_of(name, value, &error)))
        })
        .collect()
}
