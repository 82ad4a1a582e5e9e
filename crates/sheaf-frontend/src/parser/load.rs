//! LOAD DATA, and what it reads written: INTO OUTFILE, with MySQL's options.

use sheaf_types::error::codes;
use sqlparser::tokenizer::Token;

use super::foreign::not_partitioned;
use super::statement::{
    FileFormat, IntoTarget, LoadData, LoadTarget, OnDuplicate, OutFile, TableName,
};
use super::{ParseResult, Statement, StatementParser};
use crate::error::SqlError;

impl StatementParser<'_> {
    /// `LOAD DATA [LOW_PRIORITY | CONCURRENT] [LOCAL] INFILE 'file' [REPLACE | IGNORE] INTO TABLE name …`
    pub fn load(&mut self) -> ParseResult<Statement> {
        self.expect("LOAD")?;
        if self.peek("XML") || self.peek("INDEX") {
            return self.unsupported("LOAD XML or LOAD INDEX");
        }
        self.expect("DATA")?;
        let _ = self.accept_one_of(&["LOW_PRIORITY", "CONCURRENT"]);
        let local = self.accept("LOCAL");
        self.expect("INFILE")?;
        let file = self.string()?;
        let on_duplicate = match self.accept_one_of(&["REPLACE", "IGNORE"]) {
            Some("REPLACE") => OnDuplicate::Replace,
            Some(_) => OnDuplicate::Ignore,
            None => OnDuplicate::Error,
        };
        self.expect("INTO TABLE")?;
        let table = self.table_name()?;
        if self.peek("PARTITION") {
            return Err(not_partitioned().into());
        }
        let character_set = self.file_character_set()?;
        let format = self.file_format()?;
        let mut ignore_lines = 0;
        if self.accept("IGNORE") {
            ignore_lines = self.number()?;
            if self.accept_one_of(&["LINES", "ROWS"]).is_none() {
                return self.unexpected("LINES");
            }
        }
        let mut targets = Vec::new();
        if self.accept_token(&Token::LParen) && !self.accept_token(&Token::RParen) {
            targets = self.list(|parser| parser.load_target(&table))?;
            self.expect_token(&Token::RParen)?;
        }
        let mut set = Vec::new();
        if self.accept("SET") {
            set = self.list(|parser| {
                let name = parser.table_name()?.table;
                parser.expect_token(&Token::Eq)?;
                Ok((name, parser.expression()?))
            })?;
        }
        Ok(Statement::LoadData(Box::new(LoadData {
            local,
            file,
            on_duplicate,
            table,
            character_set,
            format,
            ignore_lines,
            targets,
            set,
        })))
    }

    /// `@a, @b`, `OUTFILE 'file' …` or `DUMPFILE 'file'`.
    pub(super) fn target_of_into(&mut self) -> ParseResult<IntoTarget> {
        match self.accept_one_of(&["OUTFILE", "DUMPFILE"]) {
            Some("OUTFILE") => Ok(IntoTarget::OutFile(OutFile {
                name: self.string()?,
                character_set: self.file_character_set()?,
                format: self.file_format()?,
            })),
            Some(_) => Ok(IntoTarget::DumpFile(self.string()?)),
            None => Ok(IntoTarget::Variables(self.list(Self::user_variable)?)),
        }
    }

    fn file_character_set(&mut self) -> ParseResult<Option<String>> {
        if self.accept("CHARACTER SET") || self.accept("CHARSET") {
            return Ok(Some(self.word_or_string()?));
        }
        Ok(None)
    }

    /// A variable, or a column that may say which table it is of. Error 1054 for another table.
    fn load_target(&mut self, table: &TableName) -> ParseResult<LoadTarget> {
        match &self.tokens.peek_token_ref().token {
            Token::Word(word) if word.quote_style.is_none() && word.value.starts_with('@') => {
                Ok(LoadTarget::Variable(self.user_variable()?))
            }
            _ => {
                let mut parts = vec![self.identifier()?];
                while parts.len() < 3 && self.accept_token(&Token::Period) {
                    parts.push(self.identifier()?);
                }
                let is_of_table = match &parts[..] {
                    [_] => true,
                    [of, _] => *of == table.table,
                    [database, of, _] => {
                        *of == table.table
                            && table
                                .database
                                .as_ref()
                                .is_none_or(|known| known == database)
                    }
                    _ => false,
                };
                match (is_of_table, parts.pop()) {
                    (true, Some(name)) => Ok(LoadTarget::Column(name)),
                    (_, last) => {
                        parts.extend(last);
                        Err(SqlError::bad_field(&parts.join("."), "field list").into())
                    }
                }
            }
        }
    }

    fn file_format(&mut self) -> ParseResult<FileFormat> {
        let mut format = FileFormat::default();
        if !self.escapes_in_files {
            format.escaped_by = None;
        }
        if self.accept_one_of(&["FIELDS", "COLUMNS"]).is_some() {
            let mut any = false;
            loop {
                if self.accept("TERMINATED BY") {
                    format.fields_terminated_by = self.string_or_bytes()?;
                } else if self.accept("OPTIONALLY ENCLOSED BY") {
                    format.enclosed_by = self.single_byte()?;
                    format.optionally_enclosed = true;
                } else if self.accept("ENCLOSED BY") {
                    format.enclosed_by = self.single_byte()?;
                } else if self.accept("ESCAPED BY") {
                    format.escaped_by = self.single_byte()?;
                } else if any {
                    break;
                } else {
                    return self.unexpected("TERMINATED BY");
                }
                any = true;
            }
        }
        if self.accept("LINES") {
            let mut any = false;
            loop {
                if self.accept("STARTING BY") {
                    format.lines_starting_by = self.string_or_bytes()?;
                } else if self.accept("TERMINATED BY") {
                    format.lines_terminated_by = self.string_or_bytes()?;
                } else if any {
                    break;
                } else {
                    return self.unexpected("TERMINATED BY");
                }
                any = true;
            }
        }
        if format.fields_terminated_by.is_empty() && format.enclosed_by.is_none() {
            return Err(SqlError::not_supported_yet(
                "files with fixed-size rows (FIELDS TERMINATED BY '')",
            )
            .into());
        }
        Ok(format)
    }

    /// One byte or nothing; error 1083 otherwise.
    fn single_byte(&mut self) -> ParseResult<Option<u8>> {
        match self.string_or_bytes()?.as_slice() {
            [] => Ok(None),
            [byte] => Ok(Some(*byte)),
            _ => Err(SqlError::new(
                codes::WRONG_FIELD_TERMINATORS,
                "Field separator argument is not what is expected; check the manual",
            )
            .into()),
        }
    }
}
