//! A session's prepared statements, of the protocol (COM_STMT_*) and of SQL. `dispatch/prepared.rs` runs them.

use std::collections::BTreeMap;
use std::sync::Arc;

use sheaf_memory::Share;
use sheaf_types::Collation;

use crate::dialect::SheafDialect;
use crate::session_parts::kept::Kept;

/// A session's prepared statements.
#[derive(Default)]
pub(crate) struct PreparedStatements {
    pub(crate) by_id: BTreeMap<u32, Prepared>,
    /// Those of SQL's PREPARE.
    pub(crate) names: BTreeMap<String, u32>,
    last_id: u32,
    /// One of them is running.
    pub(crate) runs: bool,
}

/// One of them.
pub(crate) struct Prepared {
    pub(crate) text: Arc<str>,
    /// The current database of PREPARE, which is that of each execution, too.
    pub(crate) database: Option<Arc<str>>,
    /// How PREPARE has read the text, and each execution does.
    pub(crate) reading: Reading,
    pub(crate) parameters: usize,
    /// Of what all sessions may keep: for its text, and for its syntax tree.
    pub(crate) memory: Share,
    /// What the first execution has found out. Not while it runs: it is taken out and put back by each execution.
    pub(crate) compiled: Kept,
}

/// What a text means, apart from the tables that it names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reading {
    pub(crate) dialect: SheafDialect,
    /// Of texts that come from no column.
    pub(crate) collation: Collation,
}

impl PreparedStatements {
    /// Ids count up and wrap around; an id in use is passed over.
    pub(crate) fn next_id(&mut self) -> u32 {
        loop {
            self.last_id = self.last_id.wrapping_add(1);
            if self.last_id != 0 && !self.by_id.contains_key(&self.last_id) {
                return self.last_id;
            }
        }
    }
}
