//! Statements about roles: CREATE and DROP ROLE, GRANT and REVOKE of roles, SET ROLE and SET DEFAULT ROLE.
//!
//! A role is an account, and named as one is. GRANT begins with a list of privileges or of roles, and only what comes
//! behind the list tells which: privileges are granted ON something.

use sheaf_table::{AccountName, Privileges};
use sqlparser::tokenizer::Token;

use super::account::{AccountStatement, ActiveRoles, DefaultRoles, RoleGrant, UserName, account};
use super::{ParseResult, Statement, StatementParser};

/// Words that are no names of roles, unless they are quoted.
const NO_ROLES: [&str; 5] = ["ALL", "DEFAULT", "NONE", "USAGE", "GRANT OPTION"];

impl StatementParser<'_> {
    /// The rest of CREATE ROLE.
    pub(super) fn create_role(&mut self) -> ParseResult<Statement> {
        let if_not_exists = self.accept("IF NOT EXISTS");
        let roles = self.role_names()?;
        Ok(account(AccountStatement::CreateRoles {
            if_not_exists,
            roles,
        }))
    }

    /// The rest of DROP ROLE.
    pub(super) fn drop_role(&mut self) -> ParseResult<Statement> {
        let if_exists = self.accept("IF EXISTS");
        let roles = self.role_names()?;
        Ok(account(AccountStatement::DropRoles { if_exists, roles }))
    }

    /// The rest of SET ROLE.
    pub(super) fn set_role(&mut self) -> ParseResult<Statement> {
        let roles = match self.accept_one_of(&["DEFAULT", "NONE", "ALL EXCEPT", "ALL"]) {
            Some("DEFAULT") => ActiveRoles::Default,
            Some("NONE") => ActiveRoles::None,
            Some("ALL") => ActiveRoles::All,
            Some(_) => ActiveRoles::AllExcept(self.role_names()?),
            None => ActiveRoles::Only(self.role_names()?),
        };
        Ok(account(AccountStatement::SetRole(roles)))
    }

    /// The rest of SET DEFAULT ROLE.
    pub(super) fn set_default_role(&mut self) -> ParseResult<Statement> {
        let roles = self.default_roles()?;
        self.expect("TO")?;
        let users = self.role_names()?;
        Ok(account(AccountStatement::SetDefaultRole {
            if_exists: false,
            users: users.into_iter().map(UserName::Named).collect(),
            roles,
        }))
    }

    /// NONE, ALL or a list of roles.
    pub(super) fn default_roles(&mut self) -> ParseResult<DefaultRoles> {
        Ok(match self.accept_one_of(&["NONE", "ALL"]) {
            Some("NONE") => DefaultRoles::None,
            Some(_) => DefaultRoles::All,
            None => DefaultRoles::Only(self.role_names()?),
        })
    }

    /// Whether the list that comes next is one of roles: `end` is the word behind it.
    pub(super) fn lists_roles(&self, end: &str) -> bool {
        // REVOKE ALL PRIVILEGES, GRANT OPTION FROM …
        if self.peek("ALL") || self.peek("GRANT OPTION") {
            return false;
        }
        let mut at = self.tokens.index();
        loop {
            match &self.tokens.token_at(at).token {
                Token::EOF => return false,
                token if Self::is_word(token, "ON") => return false,
                token if Self::is_word(token, end) => return true,
                _ => at += 1,
            }
        }
    }

    /// The rest of `GRANT role TO account`.
    pub(super) fn grant_roles(&mut self) -> ParseResult<Statement> {
        let roles = self.role_names()?;
        self.expect("TO")?;
        let accounts = self.list(Self::user_name)?;
        let with_admin_option = self.accept("WITH ADMIN OPTION");
        Ok(account(AccountStatement::GrantRoles {
            grant: RoleGrant { roles, accounts },
            with_admin_option,
        }))
    }

    /// The rest of `REVOKE role FROM account`.
    pub(super) fn revoke_roles(&mut self, if_exists: bool) -> ParseResult<Statement> {
        let roles = self.role_names()?;
        self.expect("FROM")?;
        let accounts = self.list(Self::user_name)?;
        let ignore_unknown_user = self.accept("IGNORE UNKNOWN USER");
        Ok(account(AccountStatement::RevokeRoles {
            if_exists,
            grant: RoleGrant { roles, accounts },
            ignore_unknown_user,
        }))
    }

    pub(super) fn role_names(&mut self) -> ParseResult<Vec<AccountName>> {
        self.list(Self::role_name)
    }

    /// The name of a role, or of an account that is not the session's by name. Errors 1470 and 1064.
    fn role_name(&mut self) -> ParseResult<AccountName> {
        let mut privileges = Privileges::ALL_BY_NAME.iter().map(|(_, name, _)| *name);
        let is_none = NO_ROLES.iter().any(|word| self.peek(word));
        if is_none || privileges.any(|name| self.peek(name)) {
            return self.unexpected("a role");
        }
        match self.user_name()? {
            UserName::Named(name) => Ok(name),
            UserName::Current => {
                self.tokens.prev_token();
                self.unexpected("a name")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialect::SheafDialect;
    use crate::parser::parse_statement;

    fn parse(text: &str) -> AccountStatement {
        match parse_statement(text, &SheafDialect::default()) {
            Ok(Statement::Account(statement)) => *statement,
            other => panic!("{text}: {other:?}"),
        }
    }

    fn code(text: &str) -> u16 {
        match parse_statement(text, &SheafDialect::default()) {
            Ok(other) => panic!("{text}: {other:?}"),
            Err(error) => error.code,
        }
    }

    fn named(names: &[(&str, &str)]) -> Vec<AccountName> {
        let names = names.iter();
        names
            .map(|(user, host)| AccountName::new(user, host))
            .collect()
    }

    #[test]
    fn roles_are_made_and_dropped() {
        let roles = named(&[("reader", "%"), ("writer", "localhost"), ("none", "%")]);
        let created = AccountStatement::CreateRoles {
            if_not_exists: true,
            roles: roles.clone(),
        };
        let text = "CREATE ROLE IF NOT EXISTS reader, 'writer'@localhost, `none`";
        assert_eq!(parse(text), created);
        let dropped = AccountStatement::DropRoles {
            if_exists: false,
            roles,
        };
        assert_eq!(parse("DROP ROLE reader, writer@localhost, 'none'"), dropped);
        for wrong in [
            "CREATE ROLE none",
            "CREATE ROLE default",
            "CREATE ROLE all",
            "CREATE ROLE event",
            "CREATE ROLE",
            "DROP ROLE CURRENT_USER()",
        ] {
            assert_eq!(code(wrong), 1064, "{wrong}");
        }
    }

    #[test]
    fn what_has_no_on_grants_roles() {
        let grant = RoleGrant {
            roles: named(&[("reader", "%"), ("writer", "%")]),
            accounts: named(&[("ann", "%"), ("bob", "localhost")])
                .into_iter()
                .map(UserName::Named)
                .chain([UserName::Current])
                .collect(),
        };
        for (end, with_admin_option) in [("", false), (" WITH ADMIN OPTION", true)] {
            let granted = AccountStatement::GrantRoles {
                grant: grant.clone(),
                with_admin_option,
            };
            let text =
                format!("GRANT reader, 'writer'@'%' TO ann, bob@localhost, CURRENT_USER{end}");
            assert_eq!(parse(&text), granted, "{text}");
        }
        let revoked = AccountStatement::RevokeRoles {
            if_exists: true,
            grant,
            ignore_unknown_user: true,
        };
        let text = "REVOKE IF EXISTS reader, writer FROM ann, bob@localhost, CURRENT_USER() IGNORE UNKNOWN USER";
        assert_eq!(parse(text), revoked);
        for privileges in ["GRANT SELECT ON t TO ann", "REVOKE ALL ON *.* FROM ann"] {
            assert!(
                matches!(
                    parse(privileges),
                    AccountStatement::Grant(_) | AccountStatement::Revoke { .. }
                ),
                "{privileges}"
            );
        }
        for wrong in [
            "GRANT select TO ann",
            "GRANT reader, ALL TO ann",
            "GRANT reader TO ann WITH GRANT OPTION",
            "GRANT CURRENT_USER() TO ann",
            "REVOKE reader FROM",
        ] {
            assert_eq!(code(wrong), 1064, "{wrong}");
        }
    }

    #[test]
    fn roles_are_chosen_for_a_session_and_for_an_account() {
        let writer = || named(&[("writer", "%")]);
        for (text, roles) in [
            ("NONE", ActiveRoles::None),
            ("default", ActiveRoles::Default),
            ("ALL", ActiveRoles::All),
            ("ALL EXCEPT writer", ActiveRoles::AllExcept(writer())),
            ("`writer`@`%`", ActiveRoles::Only(writer())),
        ] {
            let set = AccountStatement::SetRole(roles);
            assert_eq!(parse(&format!("SET ROLE {text}")), set, "{text}");
        }
        for (text, roles) in [
            ("NONE", DefaultRoles::None),
            ("ALL", DefaultRoles::All),
            ("writer", DefaultRoles::Only(writer())),
        ] {
            let set = AccountStatement::SetDefaultRole {
                if_exists: false,
                users: vec![UserName::Named(AccountName::new("ann", "%"))],
                roles,
            };
            assert_eq!(parse(&format!("SET DEFAULT ROLE {text} TO ann")), set);
            assert_eq!(parse(&format!("ALTER USER ann DEFAULT ROLE {text}")), set);
        }
        let created = parse("CREATE USER ann, bob DEFAULT ROLE writer REQUIRE SSL");
        assert!(
            matches!(created, AccountStatement::Create { default_roles, options, .. }
                if default_roles == writer() && options.require_tls == Some(true))
        );
        for wrong in [
            "SET ROLE writer, NONE",
            "SET ROLE ALL, writer",
            "SET ROLE EXCEPT writer",
            "SET DEFAULT ROLE DEFAULT TO ann",
            "SET DEFAULT ROLE writer",
            "SET DEFAULT ROLE writer TO CURRENT_USER()",
            "CREATE USER ann DEFAULT ROLE ALL",
            "CREATE USER ann DEFAULT ROLE NONE",
            "ALTER USER ann, bob DEFAULT ROLE writer",
            "ALTER USER ann IDENTIFIED BY 'x' DEFAULT ROLE writer",
        ] {
            assert_eq!(code(wrong), 1064, "{wrong}");
        }
    }
}
