//! Statements about accounts: CREATE, ALTER, DROP and RENAME USER, SET PASSWORD, GRANT, REVOKE. Those about roles are
//! in [`role`](super::role).
//!
//! The name of an account is a user and a host. The tokeniser takes `@` for a letter unless a quote follows. So
//! `bob@localhost` is one word, `'bob'@localhost` a string and a word, and `'bob'@'%'` a string, the sign and a string.

use sheaf_table::account::{MAX_HOST_CHARACTERS, MAX_USER_CHARACTERS};
use sheaf_table::{AccountName, AuthenticationMethod, Privileges};
use sheaf_types::error::codes;
use sqlparser::tokenizer::Token;

use super::statement::TableName;
use super::{ParseResult, Statement, StatementParser};
use crate::error::SqlError;

/// The host of an account that is named without one.
const ANY_HOST: &str = "%";

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AccountStatement {
    Create {
        if_not_exists: bool,
        users: Vec<UserDefinition>,
        /// They are granted, too.
        default_roles: Vec<AccountName>,
        options: AccountOptions,
    },
    Alter {
        if_exists: bool,
        users: Vec<UserDefinition>,
        options: AccountOptions,
    },
    Drop {
        if_exists: bool,
        users: Vec<UserName>,
    },
    Rename(Vec<(UserName, UserName)>),
    SetPassword {
        user: UserName,
        password: String,
    },
    Grant(Grant),
    Revoke {
        if_exists: bool,
        grant: Grant,
        ignore_unknown_user: bool,
    },
    /// REVOKE ALL PRIVILEGES, GRANT OPTION FROM …
    RevokeAll {
        if_exists: bool,
        from: Vec<UserName>,
    },
    CreateRoles {
        if_not_exists: bool,
        roles: Vec<AccountName>,
    },
    DropRoles {
        if_exists: bool,
        roles: Vec<AccountName>,
    },
    GrantRoles {
        grant: RoleGrant,
        with_admin_option: bool,
    },
    RevokeRoles {
        if_exists: bool,
        grant: RoleGrant,
        ignore_unknown_user: bool,
    },
    SetRole(ActiveRoles),
    /// SET DEFAULT ROLE, and ALTER USER … DEFAULT ROLE.
    SetDefaultRole {
        if_exists: bool,
        users: Vec<UserName>,
        roles: DefaultRoles,
    },
}

/// Which of the roles that it was granted a session uses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ActiveRoles {
    None,
    /// Those that it had when it connected.
    Default,
    All,
    AllExcept(Vec<AccountName>),
    Only(Vec<AccountName>),
}

/// Which of its roles an account has when it connects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DefaultRoles {
    None,
    All,
    Only(Vec<AccountName>),
}

/// GRANT and REVOKE of roles.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoleGrant {
    pub roles: Vec<AccountName>,
    pub accounts: Vec<UserName>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UserName {
    /// CURRENT_USER()
    Current,
    Named(AccountName),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UserDefinition {
    pub name: UserName,
    pub identified: Option<Identified>,
}

/// IDENTIFIED …
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identified {
    /// WITH …
    pub method: Option<AuthenticationMethod>,
    pub secret: Secret,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Secret {
    /// No password.
    None,
    /// BY 'password'
    Password(String),
    /// AS 'what the method checks passwords with'
    Verifier(String),
}

/// `None`: as it was.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AccountOptions {
    pub require_tls: Option<bool>,
    pub locked: Option<bool>,
    pub max_user_connections: Option<u32>,
}

/// What GRANT grants and REVOKE revokes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    /// ALL PRIVILEGES: those that the level has.
    pub all: bool,
    /// GRANT OPTION among them.
    pub privileges: Privileges,
    /// Privileges on single columns, each with the columns' names.
    pub columns: Vec<(Privileges, Vec<String>)>,
    pub on: GrantLevel,
    pub users: Vec<UserName>,
}

/// The list of privileges of GRANT and REVOKE.
#[derive(Default)]
struct Granted {
    all: bool,
    privileges: Privileges,
    columns: Vec<(Privileges, Vec<String>)>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GrantLevel {
    /// `*.*`
    Global,
    /// `database.*`, or `*` for the current one. A name may be a pattern.
    Database(Option<String>),
    Table(TableName),
}

impl StatementParser<'_> {
    /// The rest of CREATE USER.
    pub fn create_user(&mut self) -> ParseResult<Statement> {
        let if_not_exists = self.accept("IF NOT EXISTS");
        let users = self.user_definitions()?;
        let default_roles = match self.accept("DEFAULT ROLE") {
            true => self.role_names()?,
            false => Vec::new(),
        };
        Ok(account(AccountStatement::Create {
            if_not_exists,
            users,
            default_roles,
            options: self.account_options()?,
        }))
    }

    /// The rest of ALTER USER.
    pub fn alter_user(&mut self) -> ParseResult<Statement> {
        let if_exists = self.accept("IF EXISTS");
        let users = self.user_definitions()?;
        let is_plain = matches!(users.as_slice(), [user] if user.identified.is_none());
        if is_plain && self.accept("DEFAULT ROLE") {
            return Ok(account(AccountStatement::SetDefaultRole {
                if_exists,
                users: users.into_iter().map(|user| user.name).collect(),
                roles: self.default_roles()?,
            }));
        }
        Ok(account(AccountStatement::Alter {
            if_exists,
            users,
            options: self.account_options()?,
        }))
    }

    /// The rest of DROP USER.
    pub fn drop_user(&mut self) -> ParseResult<Statement> {
        let if_exists = self.accept("IF EXISTS");
        let users = self.list(Self::user_name)?;
        Ok(account(AccountStatement::Drop { if_exists, users }))
    }

    /// The rest of RENAME USER.
    pub fn rename_user(&mut self) -> ParseResult<Statement> {
        let pairs = self.list(|parser| {
            let old = parser.user_name()?;
            parser.expect("TO")?;
            Ok((old, parser.user_name()?))
        })?;
        Ok(account(AccountStatement::Rename(pairs)))
    }

    /// The rest of `SET PASSWORD [FOR user] = 'password'`; MariaDB's PASSWORD('password') means the same.
    pub fn set_password(&mut self) -> ParseResult<Statement> {
        let user = match self.accept("FOR") {
            true => self.user_name()?,
            false => UserName::Current,
        };
        if self.peek("TO RANDOM") {
            return self.unsupported("SET PASSWORD TO RANDOM");
        }
        if !self.accept_token(&Token::Eq) && !self.accept_token(&Token::Assignment) {
            return self.unexpected("=");
        }
        let in_function = self.accept("PASSWORD");
        if in_function {
            self.expect_token(&Token::LParen)?;
        }
        let password = self.string()?;
        if in_function {
            self.expect_token(&Token::RParen)?;
        }
        Ok(account(AccountStatement::SetPassword { user, password }))
    }

    pub fn grant(&mut self) -> ParseResult<Statement> {
        self.expect("GRANT")?;
        if self.peek("PROXY") {
            return self.unsupported("GRANT PROXY");
        }
        if self.lists_roles("TO") {
            return self.grant_roles();
        }
        let Some(Granted {
            all,
            mut privileges,
            columns,
        }) = self.privileges()?
        else {
            return self.unknown_privilege();
        };
        self.expect("ON")?;
        let on = self.grant_level()?;
        self.expect("TO")?;
        let users = self.list(Self::user_name)?;
        if self.accept("WITH") {
            self.expect("GRANT OPTION")?;
            privileges = privileges | Privileges::GRANT_OPTION;
        }
        if self.peek("AS") {
            return self.unsupported("GRANT ... AS");
        }
        Ok(account(AccountStatement::Grant(Grant {
            all,
            privileges,
            columns,
            on,
            users,
        })))
    }

    pub fn revoke(&mut self) -> ParseResult<Statement> {
        self.expect("REVOKE")?;
        let if_exists = self.accept("IF EXISTS");
        if self.lists_roles("FROM") {
            return self.revoke_roles(if_exists);
        }
        let Some(Granted {
            all,
            privileges,
            columns,
        }) = self.privileges()?
        else {
            return self.unknown_privilege();
        };
        let is_everything = all && privileges == Privileges::GRANT_OPTION && columns.is_empty();
        if is_everything && self.accept("FROM") {
            let from = self.list(Self::user_name)?;
            return Ok(account(AccountStatement::RevokeAll { if_exists, from }));
        }
        self.expect("ON")?;
        let on = self.grant_level()?;
        self.expect("FROM")?;
        let users = self.list(Self::user_name)?;
        let grant = Grant {
            all,
            privileges,
            columns,
            on,
            users,
        };
        let ignore_unknown_user = self.accept("IGNORE UNKNOWN USER");
        Ok(account(AccountStatement::Revoke {
            if_exists,
            grant,
            ignore_unknown_user,
        }))
    }

    /// Privileges of MySQL that are not there, such as ROLE_ADMIN.
    fn unknown_privilege(&mut self) -> ParseResult<Statement> {
        let word = self.tokens.peek_token_ref().token.to_string();
        self.unsupported(&format!("The privilege {word}"))
    }

    /// The name of an account.
    ///
    /// # Errors
    /// 1470 for one that is too long.
    pub fn user_name(&mut self) -> ParseResult<UserName> {
        let is_call = self.tokens.peek_nth_token_ref(1).token == Token::LParen;
        if self.accept("CURRENT_USER") || (is_call && self.accept("USER")) {
            if self.accept_token(&Token::LParen) {
                self.expect_token(&Token::RParen)?;
            }
            return Ok(UserName::Current);
        }
        let unquoted = self.unquoted_word();
        let (user, host) = match unquoted.as_deref().and_then(|word| word.split_once('@')) {
            Some((user, host)) => {
                self.tokens.advance_token();
                (user.to_string(), Some(host.to_string()))
            }
            None => {
                let user = self.word_or_string()?;
                let host = self.unquoted_word();
                let mut host = host.and_then(|word| word.strip_prefix('@').map(str::to_string));
                if host.is_some() {
                    self.tokens.advance_token();
                } else if self.accept_token(&Token::AtSign) {
                    host = Some(String::new());
                }
                (user, host)
            }
        };
        let host = match host {
            None => ANY_HOST.to_string(),
            Some(host) if host.is_empty() => self.word_or_string()?,
            Some(host) => host,
        };
        for (name, limit, what) in [
            (&user, MAX_USER_CHARACTERS, "user name"),
            (&host, MAX_HOST_CHARACTERS, "host name"),
        ] {
            if name.chars().count() > limit || name.contains('\0') {
                let message = format!(
                    "String '{}' is too long for {what} (should be no longer than {limit})",
                    crate::error::excerpt(name)
                );
                return Err(SqlError::new(codes::WRONG_STRING_LENGTH, message).into());
            }
        }
        Ok(UserName::Named(AccountName::new(&user, &host)))
    }

    fn unquoted_word(&self) -> Option<String> {
        match &self.tokens.peek_token_ref().token {
            Token::Word(word) if word.quote_style.is_none() => Some(word.value.clone()),
            _ => None,
        }
    }

    fn user_definitions(&mut self) -> ParseResult<Vec<UserDefinition>> {
        self.list(|parser| {
            Ok(UserDefinition {
                name: parser.user_name()?,
                identified: parser.identified()?,
            })
        })
    }

    /// `IDENTIFIED {BY 'password' | WITH method [BY 'password' | AS 'verifier']}`
    fn identified(&mut self) -> ParseResult<Option<Identified>> {
        if !self.accept("IDENTIFIED") {
            return Ok(None);
        }
        let mut method = None;
        if self.accept_one_of(&["WITH", "VIA"]).is_some() {
            let name = self.word_or_string()?;
            let known = AuthenticationMethod::by_name(&name);
            let unknown = || {
                SqlError::new(
                    codes::PLUGIN_IS_NOT_LOADED,
                    format!("Plugin '{name}' is not loaded"),
                )
            };
            method = Some(known.ok_or_else(unknown)?);
        }
        let secret = if self.accept_one_of(&["AS", "USING"]).is_some() {
            Secret::Verifier(self.string()?)
        } else if self.accept("BY") {
            if self.peek("RANDOM PASSWORD") {
                return Err(SqlError::not_supported_yet("IDENTIFIED BY RANDOM PASSWORD").into());
            }
            match self.accept("PASSWORD") {
                true => Secret::Verifier(self.string()?),
                false => Secret::Password(self.string()?),
            }
        } else if method.is_some() {
            Secret::None
        } else {
            return self.unexpected("BY");
        };
        if self.peek("REPLACE") || self.peek("RETAIN CURRENT PASSWORD") {
            return Err(
                SqlError::not_supported_yet("Verifying or keeping the old password").into(),
            );
        }
        Ok(Some(Identified { method, secret }))
    }

    fn account_options(&mut self) -> ParseResult<AccountOptions> {
        let mut options = AccountOptions::default();
        loop {
            if self.accept("REQUIRE") {
                options.require_tls = match self.accept_one_of(&["NONE", "SSL"]) {
                    Some(word) => Some(word == "SSL"),
                    None => {
                        return Err(SqlError::not_supported_yet(
                            "REQUIRE with other conditions than SSL",
                        )
                        .into());
                    }
                };
            } else if self.accept("WITH") {
                self.resource_limits(&mut options)?;
            } else if let Some(word) = self.accept_one_of(&["ACCOUNT LOCK", "ACCOUNT UNLOCK"]) {
                options.locked = Some(word == "ACCOUNT LOCK");
            } else if self
                .accept_one_of(&["PASSWORD EXPIRE NEVER", "PASSWORD EXPIRE DEFAULT"])
                .is_some()
            {
                // Passwords do not expire.
            } else if self.at_end() {
                return Ok(options);
            } else {
                for what in ["PASSWORD", "COMMENT", "ATTRIBUTE"] {
                    if self.peek(what) {
                        return Err(SqlError::not_supported_yet(format!("USER ... {what}")).into());
                    }
                }
                return self.unexpected("REQUIRE or ACCOUNT");
            }
        }
    }

    /// What follows WITH. Limits that are not kept may be 0, which is none.
    fn resource_limits(&mut self, options: &mut AccountOptions) -> ParseResult<()> {
        const LIMITS: [&str; 4] = [
            "MAX_USER_CONNECTIONS",
            "MAX_QUERIES_PER_HOUR",
            "MAX_UPDATES_PER_HOUR",
            "MAX_CONNECTIONS_PER_HOUR",
        ];
        let mut any = false;
        while let Some(name) = self.accept_one_of(&LIMITS) {
            any = true;
            let limit = self.number()?;
            if name == LIMITS[0] {
                options.max_user_connections = Some(u32::try_from(limit).unwrap_or(u32::MAX));
            } else if limit != 0 {
                return Err(SqlError::not_supported_yet(format!("USER ... WITH {name}")).into());
            }
        }
        match any {
            true => Ok(()),
            false => self.unexpected(LIMITS[0]),
        }
    }

    /// A list of privileges; `None` if there is another word in it.
    fn privileges(&mut self) -> ParseResult<Option<Granted>> {
        let mut granted = Granted::default();
        loop {
            let mut named = Privileges::NONE;
            if self.accept_one_of(&["ALL PRIVILEGES", "ALL"]).is_some() {
                granted.all = true;
            } else if self.accept("GRANT OPTION") {
                granted.privileges = granted.privileges | Privileges::GRANT_OPTION;
            } else if !self.accept("USAGE") {
                let known = Privileges::ALL_BY_NAME.iter();
                let longest = known
                    .filter(|(_, name, _)| self.peek(name))
                    .max_by_key(|(_, name, _)| name.len());
                let Some((privilege, name, _)) = longest else {
                    return Ok(None);
                };
                self.expect(name)?;
                named = *privilege;
            }
            if self.tokens.peek_token_ref().token == Token::LParen {
                if named.is_empty() || !Privileges::ON_COLUMNS.contains(named) {
                    return self.unexpected("ON");
                }
                self.expect_token(&Token::LParen)?;
                let columns = self.list(Self::identifier)?;
                self.expect_token(&Token::RParen)?;
                granted.columns.push((named, columns));
            } else {
                granted.privileges = granted.privileges | named;
            }
            if !self.accept_token(&Token::Comma) {
                return match granted.all && !granted.columns.is_empty() {
                    true => self.unexpected("no columns beside ALL"),
                    false => Ok(Some(granted)),
                };
            }
        }
    }

    fn grant_level(&mut self) -> ParseResult<GrantLevel> {
        self.accept("TABLE");
        for what in ["PROCEDURE", "FUNCTION"] {
            if self.peek(what) && self.tokens.peek_nth_token_ref(1).token != Token::Period {
                return Err(SqlError::not_supported_yet("Privileges on routines").into());
            }
        }
        if self.accept_token(&Token::Mul) {
            if !self.accept_token(&Token::Period) {
                return Ok(GrantLevel::Database(None));
            }
            self.expect_token(&Token::Mul)?;
            return Ok(GrantLevel::Global);
        }
        let first = self.identifier()?;
        if !self.accept_token(&Token::Period) {
            return Ok(GrantLevel::Table(TableName {
                database: None,
                table: first,
            }));
        }
        if self.accept_token(&Token::Mul) {
            return Ok(GrantLevel::Database(Some(first)));
        }
        Ok(GrantLevel::Table(TableName {
            database: Some(first),
            table: self.identifier()?,
        }))
    }
}

pub(super) fn account(statement: AccountStatement) -> Statement {
    Statement::Account(Box::new(statement))
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
            Ok(Statement::Unsupported(_)) => 1235,
            Ok(other) => panic!("{text}: {other:?}"),
            Err(error) => error.code,
        }
    }

    fn named(user: &str, host: &str) -> UserName {
        UserName::Named(AccountName::new(user, host))
    }

    #[test]
    fn names_of_accounts_are_written_in_many_ways() {
        for (text, name) in [
            ("bob", named("bob", "%")),
            ("'bob'", named("bob", "%")),
            ("bob@localhost", named("bob", "localhost")),
            ("bob@'10.%'", named("bob", "10.%")),
            ("'bob'@LocalHost", named("bob", "localhost")),
            ("'bob'@'%.example.org'", named("bob", "%.example.org")),
            ("`bob`@`%`", named("bob", "%")),
            ("\"bob\" @ \"%\"", named("bob", "%")),
            ("''@'%'", named("", "%")),
            ("CURRENT_USER", UserName::Current),
            ("current_user()", UserName::Current),
        ] {
            let dropped = AccountStatement::Drop {
                if_exists: false,
                users: vec![name],
            };
            assert_eq!(parse(&format!("DROP USER {text}")), dropped, "{text}");
        }
        assert_eq!(code(&format!("DROP USER {}", "u".repeat(33))), 1470);
        assert_eq!(code(&format!("DROP USER u@'{}'", "h".repeat(256))), 1470);
        assert_eq!(code("DROP USER bob@"), 1064);
    }

    #[test]
    fn users_have_methods_passwords_and_options() {
        let definition = |method, secret| UserDefinition {
            name: named("bob", "%"),
            identified: Some(Identified { method, secret }),
        };
        let native = Some(AuthenticationMethod::NativePassword);
        for (text, expected) in [
            ("BY 'p'", definition(None, Secret::Password("p".into()))),
            (
                "WITH mysql_native_password BY 'p'",
                definition(native, Secret::Password("p".into())),
            ),
            (
                "WITH 'mysql_native_password' AS '*ABC'",
                definition(native, Secret::Verifier("*ABC".into())),
            ),
            (
                "WITH mysql_native_password",
                definition(native, Secret::None),
            ),
        ] {
            let created = AccountStatement::Create {
                if_not_exists: true,
                users: vec![expected],
                default_roles: Vec::new(),
                options: AccountOptions {
                    require_tls: Some(true),
                    locked: Some(true),
                    max_user_connections: None,
                },
            };
            let text =
                format!("CREATE USER IF NOT EXISTS bob IDENTIFIED {text} REQUIRE SSL ACCOUNT LOCK");
            assert_eq!(parse(&text), created, "{text}");
        }
        assert_eq!(code("CREATE USER bob IDENTIFIED WITH ldap"), 1524);
        let limited = parse("CREATE USER bob WITH MAX_USER_CONNECTIONS 5 MAX_QUERIES_PER_HOUR 0");
        assert!(matches!(limited, AccountStatement::Create { options, .. }
            if options.max_user_connections == Some(5)));
        assert_eq!(code("CREATE USER bob WITH MAX_QUERIES_PER_HOUR 5"), 1235);
        assert_eq!(code("CREATE USER bob WITH"), 1064);
        assert_eq!(code("CREATE USER bob IDENTIFIED"), 1064);
    }

    #[test]
    fn grants_name_privileges_and_levels() {
        let grant = |text: &str| match parse(text) {
            AccountStatement::Grant(grant) => grant,
            AccountStatement::Revoke { grant, .. } => grant,
            other => panic!("{text}: {other:?}"),
        };
        let found = grant("GRANT SELECT, create user, CREATE ON *.* TO bob WITH GRANT OPTION");
        let expected = Privileges::SELECT
            | Privileges::CREATE_USER
            | Privileges::CREATE
            | Privileges::GRANT_OPTION;
        assert_eq!(found.privileges, expected);
        assert_eq!(found.on, GrantLevel::Global);
        let found = grant("GRANT ALL PRIVILEGES ON `shop%`.* TO bob, 'ann'@'::1'");
        assert!(found.all && found.privileges.is_empty());
        assert_eq!(found.on, GrantLevel::Database(Some("shop%".into())));
        assert_eq!(found.users, [named("bob", "%"), named("ann", "::1")]);
        let table = TableName {
            database: Some("shop".into()),
            table: "orders".into(),
        };
        let found = grant("REVOKE IF EXISTS USAGE, INSERT ON TABLE shop.orders FROM bob");
        assert_eq!(found.on, GrantLevel::Table(table));
        assert_eq!(found.privileges, Privileges::INSERT);
        let all = AccountStatement::RevokeAll {
            if_exists: false,
            from: vec![named("bob", "%")],
        };
        assert_eq!(parse("REVOKE ALL PRIVILEGES, GRANT OPTION FROM bob"), all);
        assert_eq!(code("GRANT ROLE_ADMIN ON *.* TO bob"), 1235);
        let found = grant("GRANT CREATE ROLE, CREATE, DROP ROLE ON *.* TO bob");
        let expected = Privileges::CREATE_ROLE | Privileges::CREATE | Privileges::DROP_ROLE;
        assert_eq!(found.privileges, expected);
        let found = grant("GRANT SELECT (a, `b c`), DELETE, insert(a) ON t TO bob");
        assert_eq!(found.privileges, Privileges::DELETE);
        let columns = [
            (Privileges::SELECT, vec!["a".to_string(), "b c".to_string()]),
            (Privileges::INSERT, vec!["a".to_string()]),
        ];
        assert_eq!(found.columns, columns);
        assert_eq!(code("GRANT DELETE (a) ON t TO bob"), 1064);
        assert_eq!(code("GRANT ALL (a) ON t TO bob"), 1064);
        assert_eq!(code("GRANT SELECT (a), ALL ON t TO bob"), 1064);
        assert_eq!(code("GRANT SELECT () ON t TO bob"), 1064);
        assert_eq!(code("GRANT SELECT ON t TO bob IDENTIFIED BY 'x'"), 1064);
    }
}
