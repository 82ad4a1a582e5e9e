//! The query rewrite rules that are in force, of all sessions. `dispatch/rewriting.rs` reads and uses them.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use sheaf_table::Catalog;

use crate::parser::rewrite::RewriteRules;

/// The table of the rules, as MySQL's plugin names it.
pub(crate) const DATABASE: &str = "query_rewrite";
pub(crate) const TABLE: &str = "rewrite_rules";

/// The rules of all sessions.
pub(crate) struct RewriteRegistry {
    /// Whether there are any.
    active: AtomicBool,
    rules: RwLock<Arc<RewriteRules>>,
    /// The table has not been read since the database was opened.
    pub(crate) unread: Mutex<bool>,
}

impl RewriteRegistry {
    /// The registry of a database that was just opened.
    pub(crate) fn new(catalog: &Catalog) -> RewriteRegistry {
        RewriteRegistry {
            active: AtomicBool::new(false),
            rules: RwLock::default(),
            unread: Mutex::new(catalog.table(DATABASE, TABLE).is_ok()),
        }
    }

    pub(crate) fn rules(&self) -> Option<Arc<RewriteRules>> {
        // A thread that sees the flag a moment late sees the rules a moment late.
        let is_active = self.active.load(Ordering::Relaxed);
        is_active.then(|| {
            let rules = self.rules.read().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(&rules)
        })
    }

    pub(crate) fn replace(&self, rules: RewriteRules) {
        let is_active = !rules.is_empty();
        *self.rules.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(rules);
        self.active.store(is_active, Ordering::Relaxed);
    }
}
