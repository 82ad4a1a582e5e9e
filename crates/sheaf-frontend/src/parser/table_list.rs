//! Forms of MySQL's grammar that sqlparser does not read, written among the tokens in forms that it does.
//!
//! ```text
//!   a LEFT JOIN (b, c JOIN d ON y) ON x    -->   a LEFT JOIN (b CROSS JOIN (c JOIN d ON y)) ON x
//!   a LEFT JOIN b JOIN c ON y ON x         -->   a LEFT JOIN (b JOIN c ON y) ON x
//!   { OJ a LEFT JOIN b ON x }              -->   ( a LEFT JOIN b ON x )
//!   LOCK IN SHARE MODE                     -->   FOR SHARE
//!   CAST(x AS UNSIGNED INTEGER)            -->   CAST(x AS UNSIGNED)
//! ```
//!
//! In a chain of joins each ON belongs to the nearest join in front of it that has none yet. A join whose ON comes
//! behind that of a later one has that one on its right side. Joins that get no ON join from left to right.

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan};

use crate::error::{Result, SqlError};
use crate::token::keyword;

/// What becomes of the tokens around a place.
enum Edit {
    /// Instead of the token.
    Replace(Vec<Token>),
    /// In front of the token.
    Insert(Token),
}

/// A join that has no ON so far.
struct OpenJoin {
    /// The first token of its right side.
    right: usize,
    /// Another join follows.
    is_followed: bool,
}

/// A FROM that is being read, or a part of it in parentheses.
#[derive(Default)]
struct TableList {
    open: Vec<OpenJoin>,
    /// A table comes next.
    wants_table: bool,
    /// NATURAL stands before the next join, which has no ON.
    is_natural: bool,
    /// The first token since the last comma, and whether a join stands between.
    part: usize,
    has_join: bool,
    /// Places of commas; where parts begin and end that hold joins.
    commas: Vec<usize>,
    wrapped: Vec<(usize, usize)>,
}

impl TableList {
    fn starting_at(part: usize) -> TableList {
        TableList {
            wants_table: true,
            part,
            ..TableList::default()
        }
    }

    fn end_part(&mut self, end: usize) {
        if self.has_join && !self.commas.is_empty() {
            self.wrapped.push((self.part, end));
        }
        self.has_join = false;
        self.open.clear();
    }
}

/// What is between two parentheses.
#[derive(Default)]
struct Level {
    has_select: bool,
    tables: Option<TableList>,
    /// A part of a FROM, unless it turns out to be a query.
    is_nested: bool,
}

/// The tokens with MySQL's own forms replaced.
///
/// # Errors
/// 1235 for forms that are not built.
pub(super) fn rewritten(tokens: Vec<TokenWithSpan>) -> Result<Vec<TokenWithSpan>> {
    if !has_own_forms(&tokens) {
        return Ok(tokens);
    }
    let Rewriting { edits, missing, .. } = Rewriting::of(&tokens);
    match (missing, edits.is_empty()) {
        (Some(missing), _) => Err(SqlError::not_supported_yet(missing)),
        (None, true) => Ok(tokens),
        (None, false) => Ok(applied(tokens, edits)),
    }
}

/// Whether there may be something to replace: most statements are not looked at twice.
fn has_own_forms(tokens: &[TokenWithSpan]) -> bool {
    let mut has_tables = false;
    let mut before = &Token::EOF;
    for TokenWithSpan { token, .. } in tokens {
        match token {
            Token::Whitespace(_) => continue,
            Token::LBrace => return true,
            Token::LParen => match keyword(before) {
                Keyword::FROM | Keyword::UPDATE => return true,
                _ if has_tables && *before == Token::Comma => return true,
                _ => {}
            },
            Token::Word(word) if word.quote_style.is_none() => match word.keyword {
                Keyword::FROM | Keyword::UPDATE => has_tables = true,
                Keyword::JOIN
                | Keyword::STRAIGHT_JOIN
                | Keyword::LOCK
                | Keyword::SIGNED
                | Keyword::UNSIGNED
                | Keyword::USING => return true,
                _ if keyword(before) == Keyword::INTO && names_no_table(&word.value) => {
                    return true;
                }
                _ => {}
            },
            Token::AtSign if keyword(before) == Keyword::INTO => return true,
            _ => {}
        }
        before = token;
    }
    false
}

/// Whether a word behind INTO is a variable or begins what is no table.
fn names_no_table(word: &str) -> bool {
    let others = ["outfile", "dumpfile"];
    word.starts_with('@') || others.iter().any(|other| word.eq_ignore_ascii_case(other))
}

fn applied(tokens: Vec<TokenWithSpan>, mut edits: Vec<(usize, Edit)>) -> Vec<TokenWithSpan> {
    edits.sort_by_key(|(at, _)| *at);
    let mut edits = edits.into_iter().peekable();
    let mut result = Vec::with_capacity(tokens.len() + edits.len());
    for (at, token) in tokens.into_iter().enumerate() {
        let span = token.span;
        let mut kept = Some(token);
        while let Some((_, edit)) = edits.next_if(|(place, _)| *place == at) {
            match edit {
                Edit::Insert(token) => result.push(TokenWithSpan { token, span }),
                Edit::Replace(tokens) => {
                    kept = None;
                    let tokens = tokens.into_iter();
                    result.extend(tokens.map(|token| TokenWithSpan { token, span }));
                }
            }
        }
        result.extend(kept);
    }
    result
}

struct Rewriting<'t> {
    tokens: &'t [TokenWithSpan],
    /// Positions of tokens that are no white space.
    places: Vec<usize>,
    edits: Vec<(usize, Edit)>,
    is_delete: bool,
    /// A form that is not built.
    missing: Option<&'static str>,
}

fn word(token: &Token) -> Option<&str> {
    match token {
        Token::Word(word) if word.quote_style.is_none() => Some(&word.value),
        _ => None,
    }
}

fn new_word(text: &str) -> Token {
    Token::make_keyword(text)
}

/// What ends a FROM.
fn ends_tables(keyword: Keyword) -> bool {
    matches!(
        keyword,
        Keyword::WHERE
            | Keyword::GROUP
            | Keyword::HAVING
            | Keyword::ORDER
            | Keyword::LIMIT
            | Keyword::WINDOW
            | Keyword::UNION
            | Keyword::EXCEPT
            | Keyword::INTERSECT
            | Keyword::FOR
            | Keyword::LOCK
            | Keyword::INTO
            | Keyword::SET
            | Keyword::VALUES
            | Keyword::RETURNING
            | Keyword::SELECT
    )
}

impl<'t> Rewriting<'t> {
    fn of(tokens: &'t [TokenWithSpan]) -> Rewriting<'t> {
        let is_significant = |(at, token): (usize, &TokenWithSpan)| match token.token {
            Token::Whitespace(_) => None,
            _ => Some(at),
        };
        let mut rewriting = Rewriting {
            tokens,
            places: tokens
                .iter()
                .enumerate()
                .filter_map(is_significant)
                .collect(),
            edits: Vec::new(),
            is_delete: false,
            missing: None,
        };
        rewriting.run();
        rewriting
    }

    fn token(&self, at: usize) -> &'t Token {
        self.places
            .get(at)
            .map_or(&Token::EOF, |place| &self.tokens[*place].token)
    }

    fn is_words(&self, at: usize, words: &[&str]) -> bool {
        words.iter().enumerate().all(|(n, wanted)| {
            word(self.token(at + n)).is_some_and(|word| word.eq_ignore_ascii_case(wanted))
        })
    }

    fn edit(&mut self, at: usize, edit: Edit) {
        if let Some(place) = self.places.get(at) {
            self.edits.push((*place, edit));
        }
    }

    fn replace(&mut self, at: usize, words: &[&str]) {
        let tokens = words.iter().map(|word| new_word(word)).collect();
        self.edit(at, Edit::Replace(tokens));
    }

    fn run(&mut self) {
        let mut levels = vec![Level::default()];
        let is_update = keyword(self.token(0)) == Keyword::UPDATE;
        let is_delete = keyword(self.token(0)) == Keyword::DELETE;
        self.is_delete = is_delete;
        if is_update {
            levels[0].tables = Some(TableList::starting_at(1));
        }
        levels[0].has_select = is_delete;
        let mut at = usize::from(is_update || is_delete);
        while at < self.places.len() {
            at = self.step(at, &mut levels);
        }
        if let Some(mut level) = levels.pop() {
            self.end_tables(&mut level, at);
        }
    }

    /// Goes past a token, or some.
    fn step(&mut self, at: usize, levels: &mut Vec<Level>) -> usize {
        let is_inside = levels.len() > 1;
        let Some(level) = levels.last_mut() else {
            return usize::MAX;
        };
        match self.token(at) {
            Token::LParen => {
                let mut inner = Level::default();
                if let Some(tables) = level.tables.as_mut().filter(|tables| tables.wants_table) {
                    tables.wants_table = false;
                    inner.is_nested = true;
                    inner.tables = Some(TableList::starting_at(at + 1));
                }
                levels.push(inner);
            }
            // `{ OJ a LEFT JOIN b ON x }`
            Token::LBrace
                if self.is_words(at + 1, &["oj"])
                    && level
                        .tables
                        .as_ref()
                        .is_some_and(|tables| tables.wants_table) =>
            {
                if let Some(tables) = &mut level.tables {
                    tables.wants_table = false;
                }
                levels.push(Level {
                    is_nested: true,
                    tables: Some(TableList::starting_at(at + 2)),
                    ..Level::default()
                });
                self.edit(at, Edit::Replace(vec![Token::LParen]));
                self.edit(at + 1, Edit::Replace(Vec::new()));
                return at + 2;
            }
            Token::RParen | Token::RBrace if is_inside => {
                if let Some(mut level) = levels.pop() {
                    let is_brace = *self.token(at) == Token::RBrace;
                    if is_brace && level.is_nested {
                        self.edit(at, Edit::Replace(vec![Token::RParen]));
                    }
                    self.end_tables(&mut level, at);
                }
            }
            Token::Comma => {
                if let Some(tables) = &mut level.tables {
                    tables.end_part(at);
                    tables.commas.push(at);
                    tables.wants_table = true;
                    tables.part = at + 1;
                }
            }
            Token::Word(word) if word.quote_style.is_none() => {
                return self.reserved(at, word.keyword, level);
            }
            _ => {
                if let Some(tables) = &mut level.tables {
                    tables.wants_table = false;
                }
            }
        }
        at + 1
    }

    /// Goes past a word that may be reserved.
    fn reserved(&mut self, at: usize, reserved: Keyword, level: &mut Level) -> usize {
        if reserved == Keyword::LOCK && self.is_words(at, &["lock", "in", "share", "mode"]) {
            self.replace(at, &["FOR"]);
            self.replace(at + 1, &["SHARE"]);
            self.replace(at + 2, &[]);
            self.replace(at + 3, &[]);
            self.end_tables(level, at);
            return at + 4;
        }
        let before = at
            .checked_sub(1)
            .map_or(&Token::EOF, |before| self.token(before));
        if matches!(reserved, Keyword::UNSIGNED | Keyword::SIGNED)
            && (self.is_words(at + 1, &["int"]) || self.is_words(at + 1, &["integer"]))
            && (keyword(before) == Keyword::AS || *before == Token::Comma)
        {
            self.replace(at + 1, &[]);
            return at + 2;
        }
        if reserved == Keyword::INTO && level.has_select {
            let next = self.token(at + 1);
            if *next == Token::AtSign || word(next).is_some_and(names_no_table) {
                self.missing = Some("SELECT ... INTO");
            }
        }
        match reserved {
            Keyword::SELECT => {
                self.end_tables(level, at);
                level.has_select = true;
                level.is_nested = false;
            }
            // A query that begins with WITH: its commas are between common tables.
            Keyword::WITH if level.is_nested => {
                level.tables = None;
                level.is_nested = false;
            }
            Keyword::FROM if level.has_select => {
                level.tables = Some(TableList::starting_at(at + 1));
            }
            _ => return self.in_tables(at, reserved, level),
        }
        at + 1
    }

    /// Goes past a word in a FROM.
    fn in_tables(&mut self, at: usize, reserved: Keyword, level: &mut Level) -> usize {
        let Some(tables) = &mut level.tables else {
            return at + 1;
        };
        match reserved {
            Keyword::NATURAL => tables.is_natural = true,
            Keyword::JOIN | Keyword::STRAIGHT_JOIN => {
                tables.has_join = true;
                tables.wants_table = true;
                // Those before the last one are.
                if let Some(join) = tables.open.last_mut() {
                    join.is_followed = true;
                }
                if !std::mem::take(&mut tables.is_natural) {
                    tables.open.push(OpenJoin {
                        right: at + 1,
                        is_followed: false,
                    });
                }
            }
            Keyword::ON if self.is_words(at + 1, &["duplicate"]) => self.end_tables(level, at),
            Keyword::ON | Keyword::USING => {
                // DELETE FROM a USING a JOIN b.
                tables.wants_table =
                    self.is_delete && reserved == Keyword::USING && !tables.has_join;
                if let Some(join) = tables.open.pop().filter(|join| join.is_followed) {
                    self.edit(join.right, Edit::Insert(Token::LParen));
                    self.edit(at, Edit::Insert(Token::RParen));
                }
            }
            // USE INDEX FOR ORDER BY (a).
            Keyword::FOR
                if matches!(keyword(self.token(at - 1)), Keyword::INDEX | Keyword::KEY) =>
            {
                return at + 2;
            }
            reserved if ends_tables(reserved) => self.end_tables(level, at),
            _ => tables.wants_table = false,
        }
        at + 1
    }

    /// Ends a FROM. In one in parentheses, commas become joins.
    fn end_tables(&mut self, level: &mut Level, at: usize) {
        let Some(mut tables) = level.tables.take() else {
            return;
        };
        tables.end_part(at);
        if !level.is_nested {
            return;
        }
        for comma in tables.commas {
            self.replace(comma, &["CROSS", "JOIN"]);
        }
        for (start, end) in tables.wrapped {
            self.edit(start, Edit::Insert(Token::LParen));
            self.edit(end, Edit::Insert(Token::RParen));
        }
    }
}

#[cfg(test)]
mod tests {
    use sqlparser::tokenizer::Tokenizer;

    use super::*;
    use crate::dialect::SheafDialect;

    /// The tokens of a statement with one space between them.
    fn shown(tokens: &[TokenWithSpan]) -> String {
        let tokens = tokens.iter().map(|token| &token.token);
        let words = tokens.filter(|token| !matches!(token, Token::Whitespace(_)));
        words.map(Token::to_string).collect::<Vec<_>>().join(" ")
    }

    fn tokens(text: &str) -> Vec<TokenWithSpan> {
        let dialect = SheafDialect::default();
        let mut tokenizer = Tokenizer::new(&dialect, text);
        tokenizer.tokenize_with_location().expect("tokens")
    }

    #[test]
    fn own_forms_are_replaced() {
        let cases = [
            (
                "select * from a left join (b, c join d on y) on x where z in (1, 2)",
                "select * from a left join (b CROSS JOIN (c join d on y)) on x where z in (1, 2)",
            ),
            (
                "select * from a left join b join c on y on x, d",
                "select * from a left join (b join c on y) on x, d",
            ),
            (
                "select * from a join b join c on x",
                "select * from a join b join c on x",
            ),
            (
                "select * from a natural join b left join c on x",
                "select * from a natural join b left join c on x",
            ),
            (
                "select * from { oj a left join b on x }, (c, d)",
                "select * from ( a left join b on x ), (c CROSS JOIN d)",
            ),
            (
                "update (a, b) set x = (1), y = 2",
                "update (a CROSS JOIN b) set x = (1), y = 2",
            ),
            (
                "delete from a using (a, b) where x",
                "delete from a using (a CROSS JOIN b) where x",
            ),
            (
                "select f(a, b), (1, 2) in ((1, 2), (3, 4)) from ((select 1, 2) union (select 3, 4)) q",
                "select f(a, b), (1, 2) in ((1, 2), (3, 4)) from ((select 1, 2) union (select 3, 4)) q",
            ),
            (
                "select extract(day from d) from a use index for order by (i, j), (b, c)",
                "select extract(day from d) from a use index for order by (i, j), (b CROSS JOIN c)",
            ),
            (
                "select * from (with c as (select 1), d as (select 2) select * from c, d) q, (e, f)",
                "select * from (with c as (select 1), d as (select 2) select * from c, d) q, (e CROSS JOIN f)",
            ),
            (
                "select cast(x as unsigned int) from a lock in share mode",
                "select cast(x as unsigned) from a FOR SHARE",
            ),
            (
                "insert into a select * from (b, c) on duplicate key update x = values(x), y = 1",
                "insert into a select * from (b CROSS JOIN c) on duplicate key update x = values(x), y = 1",
            ),
        ];
        for (text, expected) in cases {
            let rewritten = rewritten(tokens(text)).expect("tokens");
            assert_eq!(shown(&rewritten), shown(&tokens(expected)), "{text}");
        }
    }

    #[test]
    fn missing_forms_are_named() {
        for text in [
            "select a into @x from t",
            "select a from t into outfile 'x'",
        ] {
            assert_eq!(
                rewritten(tokens(text))
                    .map(|_| ())
                    .map_err(|error| error.code),
                Err(1235)
            );
        }
    }
}
