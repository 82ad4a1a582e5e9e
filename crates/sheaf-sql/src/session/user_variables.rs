//! `@name`: the variables that a session makes for itself.

use std::collections::BTreeMap;

use sheaf_types::Value;

use crate::error::{Result, SqlError};

/// The most user variables of a session, and the most bytes of their values together.
const MAX_USER_VARIABLES: usize = 1_000;
const MAX_USER_VARIABLE_BYTES: usize = 16 << 20;

/// By their names in lower case.
#[derive(Default)]
pub(crate) struct UserVariables(BTreeMap<String, Value>);

impl UserVariables {
    /// NULL for one that was not set.
    pub(crate) fn get(&self, name: &str) -> Value {
        let value = self.0.get(&name.to_lowercase());
        value.cloned().unwrap_or(Value::Null)
    }

    /// Sets a variable; `name` in lower case. Returns what it was before. Dates and times become texts, as in MySQL.
    pub(crate) fn set(&mut self, name: &str, value: Value) -> Result<Option<Value>> {
        let value = match value {
            Value::Date(_) | Value::Time(_) | Value::DateTime(_) | Value::Timestamp(_) => {
                Value::Text(value.to_string())
            }
            value => value,
        };
        if self.0.len() >= MAX_USER_VARIABLES && !self.0.contains_key(name) {
            return Err(SqlError::unknown(format!(
                "A session has at most {MAX_USER_VARIABLES} user variables"
            )));
        }
        let others = self.0.iter().filter(|(other, _)| *other != name);
        let bytes: usize = others.map(|(_, value)| bytes_of(value)).sum();
        if bytes + bytes_of(&value) > MAX_USER_VARIABLE_BYTES {
            return Err(SqlError::out_of_memory(&format!(
                "the user variables of a session have at most {MAX_USER_VARIABLE_BYTES} bytes"
            )));
        }
        Ok(self.0.insert(name.to_string(), value))
    }

    /// Makes a variable what it was, `None`: unknown.
    pub(crate) fn restore(&mut self, name: String, value: Option<Value>) {
        match value {
            Some(value) => self.0.insert(name, value),
            None => self.0.remove(&name),
        };
    }

    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }
}

/// What a value takes beside the space of the value itself.
fn bytes_of(value: &Value) -> usize {
    match value {
        Value::Text(text) => text.len(),
        Value::Bytes(bytes) => bytes.len(),
        _ => 0,
    }
}
