//! SET: variables with their scopes, NAMES, TRANSACTION.

use sqlparser::tokenizer::Token;

use super::statement::{Assignment, BinaryLogChange, Persist, Scope, SetValue};
use super::{ParseResult, Statement, StatementParser};

impl StatementParser<'_> {
    pub fn set(&mut self) -> ParseResult<Statement> {
        self.tokens.advance_token();
        for (words, scope) in [
            ("TRANSACTION", Scope::Default),
            ("SESSION TRANSACTION", Scope::Session),
            ("LOCAL TRANSACTION", Scope::Session),
            ("GLOBAL TRANSACTION", Scope::Global),
        ] {
            if self.accept(words) {
                return self.set_transaction(scope);
            }
        }
        // Its FOR is missing: the others are taken out before.
        if self.accept("STATEMENT") {
            return self.unexpected("FOR");
        }
        if self.accept("PASSWORD") {
            return self.set_password();
        }
        if self.accept("RESOURCE GROUP") {
            return self.set_resource_group();
        }
        if self.accept("ROLE") {
            return self.set_role();
        }
        if self.accept("DEFAULT ROLE") {
            return self.set_default_role();
        }
        // As in MySQL, a scope word holds for the assignments after it that have none.
        let mut scope = (Scope::Default, Persist::No);
        let assignments = self.list(|parser| parser.assignment(&mut scope))?;
        Ok(Statement::Set(assignments))
    }

    fn assignment(&mut self, scope: &mut (Scope, Persist)) -> ParseResult<Assignment> {
        if self.accept("NAMES") {
            if self.accept("DEFAULT") {
                return Ok(Assignment::Names {
                    character_set: None,
                    collation: None,
                });
            }
            let character_set = Some(self.word_or_string()?);
            let collation = if self.accept("COLLATE") {
                Some(self.word_or_string()?)
            } else {
                None
            };
            return Ok(Assignment::Names {
                character_set,
                collation,
            });
        }
        if self.accept("CHARACTER SET") || self.accept("CHARSET") {
            let name = if self.accept("DEFAULT") {
                None
            } else {
                Some(self.word_or_string()?)
            };
            return Ok(Assignment::CharacterSet(name));
        }
        let word = self.accept_one_of(&["GLOBAL", "SESSION", "LOCAL", "PERSIST_ONLY", "PERSIST"]);
        let has_scope = word.is_some();
        if let Some(word) = word {
            *scope = match word {
                "SESSION" | "LOCAL" => (Scope::Session, Persist::No),
                "GLOBAL" => (Scope::Global, Persist::No),
                "PERSIST" => (Scope::Global, Persist::AndSet),
                _ => (Scope::Global, Persist::Only),
            };
        }
        let Token::Word(word) = &self.tokens.peek_token_ref().token else {
            return self.unexpected("a variable");
        };
        // GLOBAL and its like stand only in front of a plain name.
        if has_scope && word.quote_style.is_none() && word.value.starts_with('@') {
            return self.unexpected("a system variable");
        }
        if word.value.starts_with('@') && !word.value.starts_with("@@") {
            let name = self.user_variable()?;
            self.assignment_operator()?;
            return Ok(Assignment::User {
                name,
                value: Box::new(self.expression()?),
            });
        }
        let ((scope, persist), name) = self.system_variable(*scope)?;
        self.assignment_operator()?;
        Ok(Assignment::System {
            scope,
            persist,
            name,
            value: self.set_value()?,
        })
    }

    pub(super) fn assignment_operator(&mut self) -> ParseResult<()> {
        if self.accept_token(&Token::Eq) || self.accept_token(&Token::Assignment) {
            Ok(())
        } else {
            self.unexpected("=")
        }
    }

    /// `name`, `@@name`, `@@global.name`; the name in lower case.
    fn system_variable(
        &mut self,
        scope: (Scope, Persist),
    ) -> ParseResult<((Scope, Persist), String)> {
        let mut scope = scope;
        let mut name = self.identifier()?;
        if let Some(rest) = name.strip_prefix("@@") {
            name = rest.to_string();
            let explicit = match name.to_ascii_lowercase().as_str() {
                "global" => Some((Scope::Global, Persist::No)),
                "persist" => Some((Scope::Global, Persist::AndSet)),
                "persist_only" => Some((Scope::Global, Persist::Only)),
                "session" | "local" => Some((Scope::Session, Persist::No)),
                _ => None,
            };
            scope = (Scope::Default, Persist::No);
            if let Some(explicit) = explicit {
                self.expect_token(&Token::Period)?;
                scope = explicit;
                name = self.identifier()?;
            }
        }
        Ok((scope, name.to_ascii_lowercase()))
    }

    /// RESET PERSIST, and RESET of the binary log and of the replica.
    pub(super) fn reset(&mut self) -> ParseResult<Statement> {
        let binary_logs = ["RESET BINARY LOGS AND GTIDS", "RESET MASTER"];
        if self.accept_one_of(&binary_logs).is_some() {
            return match self.peek("TO") {
                true => self.unsupported("RESET BINARY LOGS AND GTIDS TO"),
                false => Ok(Statement::BinaryLog(BinaryLogChange::Reset)),
            };
        }
        if self
            .accept_one_of(&["RESET REPLICA", "RESET SLAVE"])
            .is_some()
        {
            return Ok(Statement::Replication(self.reset_replica()?));
        }
        if !self.accept("RESET PERSIST") {
            return self.unsupported("RESET");
        }
        let if_exists = self.accept("IF EXISTS");
        let name = match if_exists || !self.at_end() {
            true => Some(self.identifier()?.to_ascii_lowercase()),
            false => None,
        };
        Ok(Statement::ResetPersist { name, if_exists })
    }

    pub(super) fn set_value(&mut self) -> ParseResult<SetValue> {
        let behind = &self.tokens.peek_nth_token_ref(1).token;
        let follows_word =
            matches!(behind, Token::EOF | Token::Comma) || Self::is_word(behind, "FOR");
        if let Token::Word(word) = &self.tokens.peek_token_ref().token
            && follows_word
            && !word.value.starts_with('@')
        {
            let is_default =
                word.quote_style.is_none() && word.value.eq_ignore_ascii_case("DEFAULT");
            let is_null = word.quote_style.is_none() && word.value.eq_ignore_ascii_case("NULL");
            let value = word.value.clone();
            if !is_null {
                self.tokens.advance_token();
                return Ok(if is_default {
                    SetValue::Default
                } else {
                    SetValue::Word(value)
                });
            }
        }
        Ok(SetValue::Expression(Box::new(self.expression()?)))
    }

    fn set_transaction(&mut self, scope: Scope) -> ParseResult<Statement> {
        let mut isolation = None;
        let mut read_only = None;
        loop {
            if isolation.is_none() && self.accept("ISOLATION LEVEL") {
                let Some(level) = self.accept_one_of(&[
                    "READ UNCOMMITTED",
                    "READ COMMITTED",
                    "REPEATABLE READ",
                    "SERIALIZABLE",
                ]) else {
                    return self.unexpected("an isolation level");
                };
                isolation = Some(level.replace(' ', "-"));
            } else if read_only.is_none()
                && let Some(mode) = self.accept_one_of(&["READ ONLY", "READ WRITE"])
            {
                read_only = Some(mode == "READ ONLY");
            } else {
                return self.unexpected("another characteristic of transactions");
            }
            if !self.accept_token(&Token::Comma) {
                return Ok(Statement::SetTransaction {
                    scope,
                    isolation,
                    read_only,
                });
            }
        }
    }
}
