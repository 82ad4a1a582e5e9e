//! Optimizer hints: what stands in `/*+ … */` behind SELECT, INSERT, REPLACE, UPDATE and DELETE.
//!
//! The grammar is that of MySQL's manual, "Optimizer Hints":
//!
//! ```text
//! hints:     hint …
//! hint:      table_hint ( [@block] [table [@block], …] )            BKA, HASH_JOIN, MERGE, JOIN_ORDER …
//!          | index_hint ( [@block] table [@block] [index, …] )      MRR, NO_ICP, INDEX …
//!          | SEMIJOIN ( [@block] [strategy, …] )  |  SUBQUERY ( [@block] strategy )
//!          | JOIN_FIXED_ORDER ( [@block] )        |  QB_NAME ( name )
//!          | SET_VAR ( variable = value )         |  MAX_EXECUTION_TIME ( milliseconds )
//!          | RESOURCE_GROUP ( name )
//! ```
//!
//! A hint never makes a statement fail: from the first thing that is not understood on, the rest of the comment is left
//! out, with a warning. Names are resolved when the query is bound.

use std::fmt;

use sheaf_exec::hints::{JoinOrderKind, SemijoinStrategy};
use sheaf_types::error::codes;
use sheaf_types::text::quoting::quoted_name;
use sqlparser::ast::{OptimizerHint, OptimizerHintStyle};

/// The most characters of a statement that a warning quotes.
const MAX_QUOTED_CHARACTERS: usize = 80;

/// Something about hints that the client is warned of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HintWarning {
    /// MySQL's code: codes::PARSE_ERROR.number(), 1235 or 3125 to 3128.
    pub code: u16,
    pub message: String,
}

/// A table as a hint names it: `t`, or `t@block`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HintTable {
    pub name: String,
    pub block: Option<String>,
}

/// What hints turn on and off for tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TableSwitch {
    BatchedKeyAccess,
    HashJoin,
    Merge,
    DerivedConditionPushdown,
}

/// What hints turn on and off for tables and their indexes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum IndexSwitch {
    MultiRangeRead,
    IndexCondition,
    RangeOptimization,
    IndexMerge,
    SkipScan,
    Index,
    JoinIndex,
    GroupIndex,
    OrderIndex,
}

/// The value of SET_VAR.
#[derive(Clone, Debug, PartialEq)]
pub enum HintValue {
    /// A word or a string.
    Text(String),
    Integer(i128),
    Number(f64),
}

/// One hint.
#[derive(Clone, Debug, PartialEq)]
pub enum Hint {
    /// Without tables: for all tables of the block.
    Table {
        what: TableSwitch,
        on: bool,
        block: Option<String>,
        tables: Vec<HintTable>,
    },
    /// Without indexes: for the table.
    Index {
        what: IndexSwitch,
        on: bool,
        table: HintTable,
        indexes: Vec<String>,
    },
    JoinOrder {
        kind: JoinOrderKind,
        block: Option<String>,
        tables: Vec<HintTable>,
    },
    JoinFixedOrder {
        block: Option<String>,
    },
    Semijoin {
        on: bool,
        block: Option<String>,
        strategies: Vec<SemijoinStrategy>,
    },
    Subquery {
        block: Option<String>,
        strategy: SemijoinStrategy,
    },
    QueryBlockName(String),
    SetVariable {
        name: String,
        value: HintValue,
    },
    MaxExecutionTime {
        milliseconds: u64,
    },
    ResourceGroup(String),
}

const TABLE_HINTS: &[(&str, TableSwitch, bool)] = &[
    ("BKA", TableSwitch::BatchedKeyAccess, true),
    ("NO_BKA", TableSwitch::BatchedKeyAccess, false),
    ("HASH_JOIN", TableSwitch::HashJoin, true),
    ("NO_HASH_JOIN", TableSwitch::HashJoin, false),
    // Since MySQL 8.0.20 these two are about hash joins.
    ("BNL", TableSwitch::HashJoin, true),
    ("NO_BNL", TableSwitch::HashJoin, false),
    ("MERGE", TableSwitch::Merge, true),
    ("NO_MERGE", TableSwitch::Merge, false),
    (
        "DERIVED_CONDITION_PUSHDOWN",
        TableSwitch::DerivedConditionPushdown,
        true,
    ),
    (
        "NO_DERIVED_CONDITION_PUSHDOWN",
        TableSwitch::DerivedConditionPushdown,
        false,
    ),
];

const INDEX_HINTS: &[(&str, IndexSwitch, bool)] = &[
    ("MRR", IndexSwitch::MultiRangeRead, true),
    ("NO_MRR", IndexSwitch::MultiRangeRead, false),
    // There is no ICP: it is on unless something says otherwise.
    ("NO_ICP", IndexSwitch::IndexCondition, false),
    (
        "NO_RANGE_OPTIMIZATION",
        IndexSwitch::RangeOptimization,
        false,
    ),
    ("INDEX_MERGE", IndexSwitch::IndexMerge, true),
    ("NO_INDEX_MERGE", IndexSwitch::IndexMerge, false),
    ("SKIP_SCAN", IndexSwitch::SkipScan, true),
    ("NO_SKIP_SCAN", IndexSwitch::SkipScan, false),
    ("INDEX", IndexSwitch::Index, true),
    ("NO_INDEX", IndexSwitch::Index, false),
    ("JOIN_INDEX", IndexSwitch::JoinIndex, true),
    ("NO_JOIN_INDEX", IndexSwitch::JoinIndex, false),
    ("GROUP_INDEX", IndexSwitch::GroupIndex, true),
    ("NO_GROUP_INDEX", IndexSwitch::GroupIndex, false),
    ("ORDER_INDEX", IndexSwitch::OrderIndex, true),
    ("NO_ORDER_INDEX", IndexSwitch::OrderIndex, false),
];

const JOIN_ORDERS: &[(&str, JoinOrderKind)] = &[
    ("JOIN_ORDER", JoinOrderKind::Order),
    ("JOIN_PREFIX", JoinOrderKind::Prefix),
    ("JOIN_SUFFIX", JoinOrderKind::Suffix),
];

const SEMIJOIN_STRATEGIES: &[(&str, SemijoinStrategy)] = &[
    ("FIRSTMATCH", SemijoinStrategy::FirstMatch),
    ("LOOSESCAN", SemijoinStrategy::FirstMatch),
    ("DUPSWEEDOUT", SemijoinStrategy::FirstMatch),
    ("MATERIALIZATION", SemijoinStrategy::Materialization),
];

const SUBQUERY_STRATEGIES: &[(&str, SemijoinStrategy)] = &[
    ("INTOEXISTS", SemijoinStrategy::FirstMatch),
    ("MATERIALIZATION", SemijoinStrategy::Materialization),
];

impl Hint {
    /// The hint's name as MySQL writes it.
    pub fn name(&self) -> &'static str {
        match self {
            Hint::Table { what, on, .. } => TABLE_HINTS
                .iter()
                .find(|(_, known, is_on)| known == what && is_on == on)
                .map_or("", |(name, ..)| name),
            Hint::Index { what, on, .. } => INDEX_HINTS
                .iter()
                .find(|(_, known, is_on)| known == what && is_on == on)
                .map_or("", |(name, ..)| name),
            Hint::JoinOrder { kind, .. } => JOIN_ORDERS
                .iter()
                .find(|(_, known)| known == kind)
                .map_or("", |(name, _)| name),
            Hint::JoinFixedOrder { .. } => "JOIN_FIXED_ORDER",
            Hint::Semijoin { on: true, .. } => "SEMIJOIN",
            Hint::Semijoin { on: false, .. } => "NO_SEMIJOIN",
            Hint::Subquery { .. } => "SUBQUERY",
            Hint::QueryBlockName(_) => "QB_NAME",
            Hint::SetVariable { .. } => "SET_VAR",
            Hint::MaxExecutionTime { .. } => "MAX_EXECUTION_TIME",
            Hint::ResourceGroup(_) => "RESOURCE_GROUP",
        }
    }

    /// The query block that the hint as a whole is for, where it names one.
    pub fn block(&self) -> Option<&str> {
        match self {
            Hint::Table { block, .. }
            | Hint::JoinOrder { block, .. }
            | Hint::JoinFixedOrder { block }
            | Hint::Semijoin { block, .. }
            | Hint::Subquery { block, .. } => block.as_deref(),
            Hint::Index { table, .. } => table.block.as_deref(),
            _ => None,
        }
    }
}

impl fmt::Display for HintTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", quoted_name(&self.name))?;
        match &self.block {
            Some(block) => write!(f, "@{}", quoted_name(block)),
            None => Ok(()),
        }
    }
}

impl fmt::Display for Hint {
    /// The hint with its arguments, as warnings call it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut words: Vec<String> = Vec::new();
        if let Some(block) = self.block()
            && !matches!(self, Hint::Index { .. })
        {
            words.push(format!("@{}", quoted_name(block)));
        }
        let strategy = |known: &[(&str, SemijoinStrategy)], strategy: &SemijoinStrategy| {
            let found = known.iter().find(|(_, known)| known == strategy);
            found.map_or(String::new(), |(name, _)| (*name).to_string())
        };
        match self {
            Hint::Table { tables, .. } | Hint::JoinOrder { tables, .. } => {
                let tables: Vec<String> = tables.iter().map(HintTable::to_string).collect();
                words.extend((!tables.is_empty()).then(|| tables.join(",")));
            }
            Hint::Index { table, indexes, .. } => {
                words.push(table.to_string());
                words.extend(indexes.iter().map(|index| quoted_name(index)));
            }
            Hint::Semijoin { strategies, .. } => {
                let names: Vec<String> = strategies
                    .iter()
                    .map(|one| strategy(SEMIJOIN_STRATEGIES, one))
                    .collect();
                words.extend((!names.is_empty()).then(|| names.join(", ")));
            }
            Hint::Subquery { strategy: one, .. } => words.push(strategy(SUBQUERY_STRATEGIES, one)),
            Hint::JoinFixedOrder { .. } => {}
            Hint::QueryBlockName(name) | Hint::ResourceGroup(name) => words.push(quoted_name(name)),
            Hint::SetVariable { name, value } => words.push(match value {
                HintValue::Text(text) => format!("{name}='{text}'"),
                HintValue::Integer(number) => format!("{name}={number}"),
                HintValue::Number(number) => format!("{name}={number}"),
            }),
            Hint::MaxExecutionTime { milliseconds } => words.push(milliseconds.to_string()),
        }
        write!(f, "{}({})", self.name(), words.join(" "))
    }
}

/// The hints of a query block. Only its first comment may have any. `sql` is the statement, which warnings quote.
pub fn hints_of(comments: &[OptimizerHint], sql: &str) -> (Vec<Hint>, Vec<HintWarning>) {
    let mut comments = comments.iter().filter(|comment| {
        comment.prefix.is_empty() && comment.style == OptimizerHintStyle::MultiLine
    });
    let Some(first) = comments.next() else {
        return (Vec::new(), Vec::new());
    };
    let mut warnings = Vec::new();
    let mut parser = HintParser::new(&first.text);
    let hints = parser.hints();
    if let Some(at) = parser.failed_at {
        warnings.push(syntax_error(&first.text, at, sql));
    }
    if let Some(second) = comments.next() {
        warnings.push(syntax_error(&second.text, 0, sql));
    }
    (hints, warnings)
}

/// The warning for the hint that is wrong at this byte of a comment.
fn syntax_error(comment: &str, at: usize, sql: &str) -> HintWarning {
    let found = sql.find(&format!("/*+{comment}*/"));
    let (near, line) = match found {
        Some(start) => {
            let at = start + "/*+".len() + at;
            (&sql[at..], 1 + sql[..at].matches('\n').count())
        }
        None => (&comment[at..], 1),
    };
    let near: String = near.chars().take(MAX_QUOTED_CHARACTERS).collect();
    HintWarning {
        code: codes::PARSE_ERROR.number(),
        message: format!("Optimizer hint syntax error near '{near}' at line {line}"),
    }
}

#[derive(Clone, Debug, PartialEq)]
enum Token {
    /// A name; whether it was quoted.
    Name(String, bool),
    /// `@name`.
    Block(String),
    Text(String),
    Number(String),
    Mark(char),
    /// Something that occurs in no hint.
    Unknown,
}

type Characters<'a> = std::iter::Peekable<std::str::CharIndices<'a>>;

/// Reads on as long as characters `belong` to what began with `start`.
fn word(start: String, rest: &mut Characters<'_>, belongs: impl Fn(char) -> bool) -> String {
    let mut word = start;
    while let Some((_, c)) = rest.next_if(|(_, c)| belongs(*c)) {
        word.push(c);
    }
    word
}

/// Reads up to the closing quote; `None` if there is none. A doubled quote is one.
fn quoted_text(rest: &mut Characters<'_>, quote: char) -> Option<String> {
    let mut found = String::new();
    while let Some((_, c)) = rest.next() {
        if c != quote {
            found.push(c);
        } else if rest.next_if(|(_, next)| *next == quote).is_some() {
            found.push(quote);
        } else {
            return Some(found);
        }
    }
    None
}

/// Cuts a comment into tokens, with the byte where each begins.
fn tokens(text: &str) -> Vec<(Token, usize)> {
    let is_word = |c: char| c.is_alphanumeric() || c == '_' || c == '$';
    let mut tokens = Vec::new();
    let mut rest = text.char_indices().peekable();
    while let Some((at, c)) = rest.next() {
        let token = match c {
            c if c.is_whitespace() => continue,
            '(' | ')' | ',' | '=' => Token::Mark(c),
            c if c.is_ascii_digit() => {
                let number = word(c.to_string(), &mut rest, is_word);
                Token::Number(match rest.next_if(|(_, c)| *c == '.') {
                    Some(_) => word(number + ".", &mut rest, |c| c.is_ascii_digit()),
                    None => number,
                })
            }
            c if is_word(c) => Token::Name(word(c.to_string(), &mut rest, is_word), false),
            '`' => {
                quoted_text(&mut rest, '`').map_or(Token::Unknown, |name| Token::Name(name, true))
            }
            '"' | '\'' => quoted_text(&mut rest, c).map_or(Token::Unknown, Token::Text),
            '@' if rest.next_if(|(_, c)| *c == '`').is_some() => {
                quoted_text(&mut rest, '`').map_or(Token::Unknown, Token::Block)
            }
            '@' => match word(String::new(), &mut rest, is_word) {
                name if name.is_empty() => Token::Unknown,
                name => Token::Block(name),
            },
            _ => Token::Unknown,
        };
        tokens.push((token, at));
    }
    tokens
}

/// The parser of one comment.
struct HintParser {
    tokens: Vec<(Token, usize)>,
    next: usize,
    end: usize,
    /// Byte of what was not understood.
    failed_at: Option<usize>,
}

impl HintParser {
    fn new(text: &str) -> HintParser {
        HintParser {
            tokens: tokens(text),
            next: 0,
            end: text.len(),
            failed_at: None,
        }
    }

    /// The hints up to what is not understood.
    fn hints(&mut self) -> Vec<Hint> {
        let mut hints = Vec::new();
        while self.next < self.tokens.len() {
            match self.hint() {
                Some(hint) => hints.push(hint),
                None => {
                    let failed = self.tokens.get(self.next);
                    self.failed_at = Some(failed.map_or(self.end, |(_, at)| *at));
                    break;
                }
            }
        }
        hints
    }

    fn take(&mut self) -> Option<Token> {
        let token = self.tokens.get(self.next)?.0.clone();
        self.next += 1;
        Some(token)
    }

    fn accept(&mut self, mark: char) -> bool {
        let found =
            matches!(self.tokens.get(self.next), Some((Token::Mark(next), _)) if *next == mark);
        self.next += usize::from(found);
        found
    }

    fn expect(&mut self, mark: char) -> Option<()> {
        self.accept(mark).then_some(())
    }

    /// One token that `read` understands; nothing is taken otherwise.
    fn read<T>(&mut self, read: impl FnOnce(&Token) -> Option<T>) -> Option<T> {
        let found = read(&self.tokens.get(self.next)?.0)?;
        self.next += 1;
        Some(found)
    }

    fn name(&mut self) -> Option<String> {
        self.read(|token| match token {
            Token::Name(name, _) => Some(name.clone()),
            _ => None,
        })
    }

    fn block(&mut self) -> Option<String> {
        self.read(|token| match token {
            Token::Block(name) => Some(name.clone()),
            _ => None,
        })
    }

    fn one_of<T: Copy>(&mut self, known: &[(&str, T)]) -> Option<T> {
        self.read(|token| match token {
            Token::Name(name, false) => known
                .iter()
                .find(|(known, _)| known.eq_ignore_ascii_case(name))
                .map(|(_, value)| *value),
            _ => None,
        })
    }

    fn hint(&mut self) -> Option<Hint> {
        let start = self.next;
        let Some(Token::Name(name, false)) = self.take() else {
            self.next = start;
            return None;
        };
        let name = name.to_ascii_uppercase();
        let Some(read) = reader_of(&name) else {
            self.next = start;
            return None;
        };
        self.expect('(')?;
        let hint = read(self)?;
        self.expect(')')?;
        Some(hint)
    }

    /// `table [@block]`; a block in front of all tables is theirs.
    fn table(&mut self, block: &Option<String>) -> Option<HintTable> {
        let name = self.name()?;
        let own = match block {
            Some(_) => None,
            None => self.block(),
        };
        Some(HintTable {
            name,
            block: own.or_else(|| block.clone()),
        })
    }

    fn tables(&mut self, block: &Option<String>) -> Option<Vec<HintTable>> {
        let mut tables = Vec::new();
        if matches!(self.tokens.get(self.next), Some((Token::Name(..), _))) {
            tables.push(self.table(block)?);
            while self.accept(',') {
                tables.push(self.table(block)?);
            }
        }
        Some(tables)
    }

    fn index_hint(&mut self, what: IndexSwitch, on: bool) -> Option<Hint> {
        let block = self.block();
        let table = self.table(&block)?;
        let mut indexes = Vec::new();
        if let Some(first) = self.name() {
            indexes.push(first);
            while self.accept(',') {
                indexes.push(self.name()?);
            }
        }
        Some(Hint::Index {
            what,
            on,
            table,
            indexes,
        })
    }

    fn semijoin(&mut self, on: bool) -> Option<Hint> {
        let block = self.block();
        let mut strategies = Vec::new();
        if let Some(first) = self.one_of(SEMIJOIN_STRATEGIES) {
            strategies.push(first);
            while self.accept(',') {
                strategies.push(self.one_of(SEMIJOIN_STRATEGIES)?);
            }
        }
        strategies.dedup();
        Some(Hint::Semijoin {
            on,
            block,
            strategies,
        })
    }

    /// A number, perhaps of kilobytes, megabytes or gigabytes; a word; or a string.
    fn value(&mut self) -> Option<HintValue> {
        self.read(|token| match token {
            Token::Name(text, _) | Token::Text(text) => Some(HintValue::Text(text.clone())),
            Token::Number(text) => number(text),
            _ => None,
        })
    }

    fn set_variable(&mut self) -> Option<Hint> {
        let name = self.name()?.to_ascii_lowercase();
        self.expect('=')?;
        let value = self.value()?;
        Some(Hint::SetVariable { name, value })
    }

    fn max_execution_time(&mut self) -> Option<Hint> {
        let milliseconds = self.read(|token| match token {
            Token::Number(text) => text.parse::<u32>().ok(),
            _ => None,
        })?;
        Some(Hint::MaxExecutionTime {
            milliseconds: milliseconds.into(),
        })
    }
}

fn number(text: &str) -> Option<HintValue> {
    let shift = match text.chars().last()?.to_ascii_uppercase() {
        'K' => 10,
        'M' => 20,
        'G' => 30,
        _ => 0,
    };
    let digits = if shift == 0 {
        text
    } else {
        &text[..text.len() - 1]
    };
    if shift == 0 && text.contains('.') {
        return text.parse().ok().map(HintValue::Number);
    }
    let number = i128::from(digits.parse::<u64>().ok()?);
    Some(HintValue::Integer(number << shift))
}

type Reader = Box<dyn Fn(&mut HintParser) -> Option<Hint>>;

/// What reads the arguments of the hint of this name, in capitals.
fn reader_of(name: &str) -> Option<Reader> {
    if let Some((_, what, on)) = TABLE_HINTS.iter().find(|(known, ..)| *known == name) {
        let (what, on) = (*what, *on);
        return Some(Box::new(move |parser| {
            let block = parser.block();
            let tables = parser.tables(&block)?;
            Some(Hint::Table {
                what,
                on,
                block,
                tables,
            })
        }));
    }
    if let Some((_, what, on)) = INDEX_HINTS.iter().find(|(known, ..)| *known == name) {
        let (what, on) = (*what, *on);
        return Some(Box::new(move |parser| parser.index_hint(what, on)));
    }
    if let Some((_, kind)) = JOIN_ORDERS.iter().find(|(known, _)| *known == name) {
        let kind = *kind;
        return Some(Box::new(move |parser| {
            let block = parser.block();
            let tables = parser.tables(&block)?;
            (!tables.is_empty()).then_some(Hint::JoinOrder {
                kind,
                block,
                tables,
            })
        }));
    }
    Some(match name {
        "JOIN_FIXED_ORDER" => Box::new(|parser| {
            let block = parser.block();
            Some(Hint::JoinFixedOrder { block })
        }),
        "SEMIJOIN" => Box::new(|parser| parser.semijoin(true)),
        "NO_SEMIJOIN" => Box::new(|parser| parser.semijoin(false)),
        "SUBQUERY" => Box::new(|parser| {
            let block = parser.block();
            let strategy = parser.one_of(SUBQUERY_STRATEGIES)?;
            Some(Hint::Subquery { block, strategy })
        }),
        "QB_NAME" => Box::new(|parser| parser.name().map(Hint::QueryBlockName)),
        "RESOURCE_GROUP" => Box::new(|parser| parser.name().map(Hint::ResourceGroup)),
        "SET_VAR" => Box::new(HintParser::set_variable),
        "MAX_EXECUTION_TIME" => Box::new(HintParser::max_execution_time),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The hints of a comment, as warnings call them, and where its syntax is wrong.
    fn read(text: &str) -> (Vec<String>, Option<usize>) {
        let mut parser = HintParser::new(text);
        let hints = parser.hints();
        let hints = hints.iter().map(Hint::to_string).collect();
        (hints, parser.failed_at)
    }

    #[test]
    fn every_hint_is_read() {
        let text = " BKA(t1, t2@qb) no_bka(@qb t1) HASH_JOIN() NO_BNL(t) MRR(t i, `j k`) NO_MRR(t@`select#2`)
            NO_ICP(@qb t i) INDEX(t) NO_INDEX(t i) JOIN_INDEX(t i) ORDER_INDEX(t i) GROUP_INDEX(t i)
            NO_JOIN_INDEX(t i) SKIP_SCAN(t i) NO_SKIP_SCAN(t) INDEX_MERGE(t i, j) NO_INDEX_MERGE(t)
            JOIN_ORDER(t, u) JOIN_PREFIX(@qb t) JOIN_SUFFIX(u@qb) JOIN_FIXED_ORDER(@qb)
            SEMIJOIN(@qb FIRSTMATCH, LOOSESCAN) NO_SEMIJOIN() SUBQUERY(MATERIALIZATION) QB_NAME(qb)
            MERGE(d) NO_MERGE(d) SET_VAR(sort_buffer_size = 16M) SET_VAR(optimizer_switch = 'mrr=off')
            SET_VAR(max_error_count=0) MAX_EXECUTION_TIME(1000) RESOURCE_GROUP(night) ";
        let (hints, failed_at) = read(text);
        assert_eq!(failed_at, None);
        assert_eq!(hints.len(), 32);
        assert_eq!(
            hints[..7],
            [
                "BKA(`t1`,`t2`@`qb`)",
                "NO_BKA(@`qb` `t1`@`qb`)",
                "HASH_JOIN()",
                "NO_HASH_JOIN(`t`)",
                "MRR(`t` `i` `j k`)",
                "NO_MRR(`t`@`select#2`)",
                "NO_ICP(`t`@`qb` `i`)",
            ]
        );
        assert!(hints.contains(&"SET_VAR(sort_buffer_size=16777216)".to_string()));
        assert!(hints.contains(&"SEMIJOIN(@`qb` FIRSTMATCH)".to_string()));
    }

    #[test]
    fn what_is_before_an_error_counts() {
        let (hints, failed_at) = read("MRR(t) FASTER(t) NO_ICP(t)");
        assert_eq!((hints, failed_at), (vec!["MRR(`t`)".to_string()], Some(7)));
        for wrong in [
            "MRR(",
            "MRR()",
            "JOIN_ORDER()",
            "MRR(t,)",
            "SUBQUERY(LOOSESCAN)",
            "SET_VAR(a)",
            "MAX_EXECUTION_TIME(-1)",
            "QB_NAME(`x)",
            "@qb",
            "BKA(t@)",
        ] {
            let (hints, failed_at) = read(wrong);
            assert!(hints.is_empty() && failed_at.is_some(), "{wrong}");
        }
    }

    #[test]
    fn a_warning_quotes_the_statement() {
        let sql = "SELECT\n/*+ MRR(t) FASTER(t) */ a FROM t";
        let comment = OptimizerHint {
            prefix: String::new(),
            text: " MRR(t) FASTER(t) ".to_string(),
            style: OptimizerHintStyle::MultiLine,
        };
        let (hints, warnings) = hints_of(&[comment], sql);
        assert_eq!(hints.len(), 1);
        let expected = "Optimizer hint syntax error near 'FASTER(t) */ a FROM t' at line 2";
        assert_eq!(
            (warnings[0].code, warnings[0].message.as_str()),
            (1064, expected)
        );
    }
}
