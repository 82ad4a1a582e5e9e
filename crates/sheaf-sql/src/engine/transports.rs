//! How clients reach the server, and what that means for `require_secure_transport`.
//!
//! With neither TLS nor a Unix socket, `require_secure_transport` would let nobody in. So it cannot be set there, and a
//! server on which it is set does not start without them.

use std::sync::atomic::Ordering;

use super::Engine;
use crate::error::{Result, SqlError};
use crate::variables::VariableValue;

const REQUIRED: &str = "require_secure_transport";

impl Engine {
    /// `require_secure_transport`
    pub fn requires_secure_transport(&self) -> bool {
        matches!(self.globals().get(REQUIRED), Ok(VariableValue::Bool(true)))
    }

    /// Tells clients whether they may use TLS, and notes what a server that begins to listen offers.
    ///
    /// # Errors
    /// 3160: nobody could come in.
    pub fn offer_transports(&self, has_tls: bool, has_socket: bool) -> Result<()> {
        let is_secure = has_tls || has_socket;
        if self.requires_secure_transport() && !is_secure {
            return Err(SqlError::no_secure_transport());
        }
        self.lacks_secure_transport
            .store(!is_secure, Ordering::Relaxed);
        let text = if has_tls { "YES" } else { "DISABLED" };
        self.change_globals(|globals| {
            for name in ["have_ssl", "have_openssl"] {
                globals.set_internally(name, VariableValue::Text(text.to_string()));
            }
        });
        Ok(())
    }

    /// A variable is set to `is_on`, at once or for the next start.
    ///
    /// # Errors
    /// 3160: nobody could come in any more.
    pub(crate) fn check_secure_transport(
        &self,
        name: &str,
        is_on: impl Fn() -> bool,
    ) -> Result<()> {
        let is_lacking = self.lacks_secure_transport.load(Ordering::Relaxed);
        match is_lacking && name.eq_ignore_ascii_case(REQUIRED) && is_on() {
            true => Err(SqlError::no_secure_transport()),
            false => Ok(()),
        }
    }
}
