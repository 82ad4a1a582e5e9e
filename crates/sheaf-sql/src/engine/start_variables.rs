//! System variables that a server's configuration sets, when it starts and when the file is read again.

use std::sync::Arc;

use sheaf_types::text::quoting::quoted_string;

use super::Engine;
use crate::error::{Result, SqlError};
use crate::session::SessionInfo;

impl Engine {
    /// Sets a system variable as `SET GLOBAL` does; a value of digits is a number. Returns what the statement warns of.
    ///
    /// # Errors
    /// Those of `SET GLOBAL`, and 1193 for a name with other characters than letters, digits and `_`.
    pub fn set_global(self: &Arc<Self>, name: &str, value: &str) -> Result<Vec<String>> {
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
        if !name.chars().all(is_name) {
            return Err(SqlError::unknown_system_variable(name));
        }
        let mut session = self.session(SessionInfo::default())?;
        let value = match value.parse::<f64>() {
            Ok(number) if number.is_finite() => value.to_string(),
            _ => quoted_string(value),
        };
        session.run_own(&format!("SET GLOBAL {name} = {value}"))?;
        let warnings = session.warnings.kept().iter();
        Ok(warnings.map(|warning| warning.message.clone()).collect())
    }
}
