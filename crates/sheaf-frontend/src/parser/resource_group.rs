//! Statements about resource groups: CREATE, ALTER, DROP and SET RESOURCE GROUP.
//!
//! CPUs are single numbers and ranges, with or without commas between them: `VCPU = 0, 2-3 5`.

use sheaf_table::ResourceGroupKind;
use sqlparser::tokenizer::Token;

use super::{ParseResult, Statement, StatementParser};

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ResourceGroupStatement {
    Create {
        name: String,
        kind: ResourceGroupKind,
        settings: ResourceGroupSettings,
    },
    Alter {
        name: String,
        settings: ResourceGroupSettings,
        force: bool,
    },
    Drop {
        name: String,
        force: bool,
    },
    Set {
        name: String,
        /// The connections to put into the group; empty: the own one.
        threads: Vec<u64>,
    },
}

/// `None`: not said.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResourceGroupSettings {
    /// First and last of each range, as they were written.
    pub cpus: Option<Vec<(u64, u64)>>,
    pub thread_priority: Option<i64>,
    pub enabled: Option<bool>,
}

impl StatementParser<'_> {
    /// The rest of CREATE RESOURCE GROUP.
    pub fn create_resource_group(&mut self) -> ParseResult<Statement> {
        let name = self.identifier()?;
        self.expect("TYPE")?;
        self.accept_token(&Token::Eq);
        let kind = match self.accept_one_of(&["USER", "SYSTEM"]) {
            Some("USER") => ResourceGroupKind::User,
            Some(_) => ResourceGroupKind::System,
            None => return self.unexpected("USER or SYSTEM"),
        };
        let settings = self.resource_group_settings()?;
        Ok(statement(ResourceGroupStatement::Create {
            name,
            kind,
            settings,
        }))
    }

    /// The rest of ALTER RESOURCE GROUP.
    pub fn alter_resource_group(&mut self) -> ParseResult<Statement> {
        let name = self.identifier()?;
        let settings = self.resource_group_settings()?;
        let force = self.accept("FORCE");
        Ok(statement(ResourceGroupStatement::Alter {
            name,
            settings,
            force,
        }))
    }

    /// The rest of DROP RESOURCE GROUP.
    pub fn drop_resource_group(&mut self) -> ParseResult<Statement> {
        let name = self.identifier()?;
        let force = self.accept("FORCE");
        Ok(statement(ResourceGroupStatement::Drop { name, force }))
    }

    /// The rest of SET RESOURCE GROUP.
    pub fn set_resource_group(&mut self) -> ParseResult<Statement> {
        let name = self.identifier()?;
        let mut threads = Vec::new();
        if self.accept("FOR") {
            threads.push(self.number()?);
            while self.another_number()? {
                threads.push(self.number()?);
            }
        }
        Ok(statement(ResourceGroupStatement::Set { name, threads }))
    }

    fn resource_group_settings(&mut self) -> ParseResult<ResourceGroupSettings> {
        let mut settings = ResourceGroupSettings::default();
        if self.accept("VCPU") {
            self.accept_token(&Token::Eq);
            let mut cpus = vec![self.cpu_range()?];
            while self.another_number()? {
                cpus.push(self.cpu_range()?);
            }
            settings.cpus = Some(cpus);
        }
        if self.accept("THREAD_PRIORITY") {
            self.accept_token(&Token::Eq);
            let sign = if self.accept_token(&Token::Minus) {
                -1
            } else {
                1
            };
            let size = i64::try_from(self.number()?).unwrap_or(i64::MAX);
            settings.thread_priority = Some(sign * size);
        }
        settings.enabled = self
            .accept_one_of(&["ENABLE", "DISABLE"])
            .map(|word| word == "ENABLE");
        Ok(settings)
    }

    fn cpu_range(&mut self) -> ParseResult<(u64, u64)> {
        let first = self.number()?;
        let last = match self.accept_token(&Token::Minus) {
            true => self.number()?,
            false => first,
        };
        Ok((first, last))
    }

    /// Whether a list of numbers goes on. Between them there may be a comma, which a number must follow.
    fn another_number(&mut self) -> ParseResult<bool> {
        let comma = self.accept_token(&Token::Comma);
        match self.tokens.peek_token_ref().token {
            Token::Number(..) => Ok(true),
            _ if comma => self.unexpected("a number"),
            _ => Ok(false),
        }
    }
}

fn statement(statement: ResourceGroupStatement) -> Statement {
    Statement::ResourceGroup(Box::new(statement))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialect::SheafDialect;
    use crate::parser::parse_statement;

    fn parse(text: &str) -> ResourceGroupStatement {
        match parse_statement(text, &SheafDialect::default()) {
            Ok(Statement::ResourceGroup(statement)) => *statement,
            other => panic!("{text}: {other:?}"),
        }
    }

    #[test]
    fn all_clauses_are_read() {
        let settings = ResourceGroupSettings {
            cpus: Some(vec![(16, 31), (48, 48), (50, 63)]),
            thread_priority: Some(-7),
            enabled: Some(false),
        };
        for text in [
            "CREATE RESOURCE GROUP cpu1 TYPE = SYSTEM VCPU = 16-31, 48, 50-63 THREAD_PRIORITY = -7 DISABLE",
            "create resource group `cpu1` type system vcpu 16-31 48 50 - 63 thread_priority -7 disable",
        ] {
            let expected = ResourceGroupStatement::Create {
                name: "cpu1".into(),
                kind: ResourceGroupKind::System,
                settings: settings.clone(),
            };
            assert_eq!(parse(text), expected, "{text}");
        }
        let altered = parse("ALTER RESOURCE GROUP cpu1 DISABLE FORCE");
        let expected = ResourceGroupStatement::Alter {
            name: "cpu1".into(),
            settings: ResourceGroupSettings {
                enabled: Some(false),
                ..ResourceGroupSettings::default()
            },
            force: true,
        };
        assert_eq!(altered, expected);
        let set = parse("SET RESOURCE GROUP cpu1 FOR 14, 78 4");
        let expected = ResourceGroupStatement::Set {
            name: "cpu1".into(),
            threads: vec![14, 78, 4],
        };
        assert_eq!(set, expected);
    }

    #[test]
    fn what_is_no_group_is_a_syntax_error() {
        for text in [
            "CREATE RESOURCE GROUP 'cpu1' TYPE = USER",
            "CREATE RESOURCE GROUP cpu1 TYPE = NEITHER",
            "CREATE RESOURCE GROUP cpu1",
            "CREATE RESOURCE GROUP cpu1 TYPE = USER VCPU = 1,",
            "CREATE RESOURCE GROUP cpu1 TYPE = USER VCPU = 1-",
            "CREATE RESOURCE GROUP cpu1 TYPE = USER FORCE",
            "ALTER RESOURCE GROUP cpu1 TYPE = USER",
            "SET RESOURCE GROUP cpu1 FOR",
            "SET RESOURCE GROUP cpu1 FOR 1,",
            "DROP RESOURCE GROUP",
        ] {
            let outcome = parse_statement(text, &SheafDialect::default());
            assert_eq!(outcome.expect_err(text).code, 1064, "{text}");
        }
    }
}
