//! Statements about accounts as the binary log has them: followers must get the same passwords, and must not get them
//! in the clear. So a password is made what is kept of it before the statement runs:
//!
//! ```text
//!   CREATE USER u IDENTIFIED BY 'secret'   -->  CREATE USER `u`@`%` IDENTIFIED WITH 'caching_sha2_password' AS '..'
//!   GRANT SELECT ON t TO CURRENT_USER()    -->  GRANT SELECT ON t TO `u`@`%`
//! ```
//!
//! MySQL has no mysql_native_password any more, and MariaDB no caching_sha2_password. So an account of the first kind
//! has a password of both kinds, and followers read one of them: MySQL from 8.4.0 on what is in the first comment, up
//! to the end of the line, and others what is behind it.
//!
//! ```text
//!   IDENTIFIED /*!80400 WITH 'caching_sha2_password' AS '..' # */ WITH 'mysql_native_password' AS '..' /*
//!   */
//! ```

use sheaf_table::{AccountName, AuthenticationMethod};

use super::password;
use super::roles::{list_of, quoted};
use crate::binlog::words_of;
use crate::error::Result;
use crate::parser::account::{
    AccountOptions, AccountStatement, Identified, Secret, UserDefinition, UserName,
};
use crate::session::Session;

impl Session {
    /// The text for followers. Passwords in the statement are replaced by what is kept of them.
    ///
    /// # Errors
    /// Those of [`password::verifier`].
    pub(crate) fn logged_account_text(
        &self,
        statement: &mut AccountStatement,
        text: &str,
    ) -> Result<String> {
        Ok(match statement {
            AccountStatement::Create {
                if_not_exists,
                users,
                default_roles,
                options,
            } => {
                let condition = if *if_not_exists { "IF NOT EXISTS " } else { "" };
                let default_method = self.engine.default_method();
                let users = self.logged_users(users, |_| default_method, true)?;
                let roles = match list_of(default_roles.iter()).as_str() {
                    "" => String::new(),
                    roles => format!(" DEFAULT ROLE {roles}"),
                };
                format!(
                    "CREATE USER {condition}{users}{roles}{}",
                    text_of_options(options)
                )
            }
            AccountStatement::Alter {
                if_exists,
                users,
                options,
            } => {
                let condition = if *if_exists { "IF EXISTS " } else { "" };
                let users = self.logged_users(users, |name| self.method_of(name), false)?;
                format!("ALTER USER {condition}{users}{}", text_of_options(options))
            }
            AccountStatement::SetPassword { user, password } => {
                let name = self.logged_name(user);
                let method = self.method_of(&name);
                // Not in the same words as here, but of the same password.
                let verifier = password::verifier(method, password)?;
                let later = later_verifier(method, password)?;
                format!(
                    "ALTER USER {}{}",
                    quoted(&name),
                    identified_with(method, &verifier, later.as_deref())
                )
            }
            _ => with_current_user(text, &quoted(&self.client.account_name())),
        })
    }

    fn logged_name(&self, user: &UserName) -> AccountName {
        match user {
            UserName::Current => self.client.account_name(),
            UserName::Named(name) => name.clone(),
        }
    }

    /// How clients of an existing account prove their identity.
    fn method_of(&self, name: &AccountName) -> AuthenticationMethod {
        let accounts = self.engine.catalog().accounts();
        let known = accounts.get(name);
        known.map_or_else(|| self.engine.default_method(), |account| account.method)
    }

    fn logged_users(
        &self,
        users: &mut [UserDefinition],
        method: impl Fn(&AccountName) -> AuthenticationMethod,
        are_new: bool,
    ) -> Result<String> {
        let mut texts = Vec::with_capacity(users.len());
        for user in users {
            let name = self.logged_name(&user.name);
            let given = user.identified.as_ref().and_then(|it| it.method);
            let method = given.unwrap_or_else(|| method(&name));
            let verifier = match &user.identified {
                None => None,
                Some(Identified { secret, .. }) => Some(match secret {
                    Secret::None => String::new(),
                    Secret::Password(password) => password::verifier(method, password)?,
                    Secret::Verifier(verifier) => verifier.clone(),
                }),
            };
            let secret = user.identified.as_ref().map(|it| &it.secret);
            let later = match secret {
                Some(Secret::Password(password)) => later_verifier(method, password)?,
                Some(Secret::None) | None => later_verifier(method, "")?,
                // The password is not known.
                Some(Secret::Verifier(_)) => None,
            };
            let identified = match &verifier {
                Some(verifier) => identified_with(method, verifier, later.as_deref()),
                None if are_new => identified_with(method, "", later.as_deref()),
                None => String::new(),
            };
            texts.push(format!("{}{identified}", quoted(&name)));
            if let Some(verifier) = verifier {
                user.identified = Some(Identified {
                    method: Some(method),
                    secret: match verifier.is_empty() {
                        true => Secret::None,
                        false => Secret::Verifier(verifier),
                    },
                });
            }
        }
        Ok(texts.join(", "))
    }
}

/// What followers keep of a password that do not have the method. `None`: all have it.
fn later_verifier(method: AuthenticationMethod, password: &str) -> Result<Option<String>> {
    match method {
        AuthenticationMethod::NativePassword => {
            let later = AuthenticationMethod::CachingSha2Password;
            password::verifier(later, password).map(Some)
        }
        AuthenticationMethod::CachingSha2Password => Ok(None),
    }
}

/// `later`: the same password for followers that know caching_sha2_password alone.
fn identified_with(method: AuthenticationMethod, verifier: &str, later: Option<&str>) -> String {
    // The alphabet of verifiers has no quote.
    // No password is said in so many words: MySQL takes one that is not said for one that has expired.
    let with = |method: AuthenticationMethod, verifier: &str| {
        format!("WITH '{}' AS '{verifier}'", method.name())
    };
    let own = with(method, verifier);
    match later {
        None => format!(" IDENTIFIED {own}"),
        Some(later) => {
            let later = with(AuthenticationMethod::CachingSha2Password, later);
            format!(" IDENTIFIED /*!80400 {later} # */ {own} /*\n*/")
        }
    }
}

fn text_of_options(options: &AccountOptions) -> String {
    let mut text = String::new();
    match options.require_tls {
        Some(true) => text.push_str(" REQUIRE SSL"),
        Some(false) => text.push_str(" REQUIRE NONE"),
        None => {}
    }
    if let Some(limit) = options.max_user_connections {
        text.push_str(&format!(" WITH MAX_USER_CONNECTIONS {limit}"));
    }
    match options.locked {
        Some(true) => text.push_str(" ACCOUNT LOCK"),
        Some(false) => text.push_str(" ACCOUNT UNLOCK"),
        None => {}
    }
    text
}

/// A follower has another current user.
fn with_current_user(text: &str, name: &str) -> String {
    let words = words_of(text);
    let word = |place: usize| words.get(place).map_or("", |range| &text[range.clone()]);
    let mut own = String::new();
    let mut done = 0;
    for (place, range) in words.iter().enumerate() {
        if word(place).eq_ignore_ascii_case("CURRENT_USER") {
            let is_call = word(place + 1) == "(" && word(place + 2) == ")";
            let end = words[if is_call { place + 2 } else { place }].end;
            own.push_str(&text[done..range.start]);
            own.push_str(name);
            done = end;
        }
    }
    own.push_str(&text[done..]);
    own
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_current_user_has_a_name_for_followers() {
        for (given, own) in [
            (
                "GRANT r TO CURRENT_USER, current_user ( )",
                "GRANT r TO `u`@`%`, `u`@`%`",
            ),
            (
                "GRANT r TO `CURRENT_USER`, 'CURRENT_USER'",
                "GRANT r TO `CURRENT_USER`, 'CURRENT_USER'",
            ),
            ("DROP USER a@localhost", "DROP USER a@localhost"),
        ] {
            assert_eq!(with_current_user(given, "`u`@`%`"), own);
        }
    }
}
