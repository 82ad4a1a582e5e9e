//! `@name`: the variables that a session makes for itself.

use std::collections::BTreeMap;
use std::sync::Arc;

use sheaf_memory::{Budget, Share};
use sheaf_types::Value;
use sheaf_types::error::codes;

use crate::error::{Result, SqlError};

/// The most user variables of a session, and the most bytes of their values together. All sessions together have at
/// most `session_memory` for them.
const MAX_USER_VARIABLES: usize = 1_000;
const MAX_USER_VARIABLE_BYTES: usize = 16 << 20;
/// What a variable is counted with besides the bytes of its value.
const VARIABLE_BYTES: usize = 128;

/// A session's variables, with their share of what sessions may keep.
pub(crate) struct UserVariables {
    /// By their names in lower case.
    values: BTreeMap<String, Value>,
    budget: Arc<Budget>,
    share: Option<Share>,
}

impl UserVariables {
    pub(crate) fn new(budget: &Arc<Budget>) -> UserVariables {
        UserVariables {
            values: BTreeMap::new(),
            budget: Arc::clone(budget),
            share: None,
        }
    }

    /// NULL for one that was not set.
    pub(crate) fn get(&self, name: &str) -> Value {
        let value = self.values.get(&name.to_lowercase());
        value.cloned().unwrap_or(Value::Null)
    }

    /// Sets a variable; `name` in lower case. Returns what it was before. Dates, times and JSON values become texts, as
    /// in MySQL.
    pub(crate) fn set(&mut self, name: &str, value: Value) -> Result<Option<Value>> {
        let value = match value {
            Value::Date(_)
            | Value::Time(_)
            | Value::DateTime(_)
            | Value::Timestamp(_)
            | Value::Json(_) => Value::Text(value.to_string()),
            value => value,
        };
        if self.values.len() >= MAX_USER_VARIABLES && !self.values.contains_key(name) {
            return Err(SqlError::new(
                codes::USER_LIMIT_REACHED,
                format!(
                    "The session has exceeded the 'user_variables' resource (current value: {MAX_USER_VARIABLES})"
                ),
            ));
        }
        let others = self.values.iter().filter(|(other, _)| *other != name);
        let bytes: usize = others.map(|(_, value)| value.string_bytes()).sum();
        if bytes + value.string_bytes() > MAX_USER_VARIABLE_BYTES {
            return Err(SqlError::out_of_memory(&format!(
                "the user variables of a session have at most {MAX_USER_VARIABLE_BYTES} bytes"
            )));
        }
        let is_new = !self.values.contains_key(name);
        let count = self.values.len() + usize::from(is_new);
        if !self.resize_share(count * VARIABLE_BYTES + bytes + value.string_bytes()) {
            return Err(sessions_keep_too_much(&self.budget));
        }
        Ok(self.values.insert(name.to_string(), value))
    }

    /// False: other sessions have what is wanted.
    fn resize_share(&mut self, bytes: usize) -> bool {
        match &mut self.share {
            Some(share) if share.bytes() == bytes => true,
            Some(share) => share.resize(bytes),
            None => {
                self.share = self.budget.try_take(bytes);
                self.share.is_some()
            }
        }
    }

    /// Makes a variable what it was, `None`: unknown.
    pub(crate) fn restore(&mut self, name: String, value: Option<Value>) {
        match value {
            Some(value) => self.values.insert(name, value),
            None => self.values.remove(&name),
        };
        let bytes: usize = self.values.values().map(Value::string_bytes).sum();
        // Where another session has taken what it was counted with, the next assignment counts it.
        self.resize_share(self.values.len() * VARIABLE_BYTES + bytes);
    }

    pub(crate) fn clear(&mut self) {
        self.values.clear();
        self.share = None;
    }
}

/// Error 1041: what all sessions keep is all that they may.
pub(crate) fn sessions_keep_too_much(budget: &Budget) -> SqlError {
    SqlError::out_of_memory(&format!(
        "user variables, prepared statements and parameters of all sessions have at most {} bytes (session_memory); \
         raise --memory",
        budget.limit_bytes()
    ))
}
