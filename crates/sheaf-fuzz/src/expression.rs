//! Random expressions and conditions over the columns that are in scope.

use crate::query::Generator;
use crate::schema::{Kind, literal, one_in, pick};
use crate::sequence;
use crate::tree::{Tree, text};

/// A column that an expression may name, as SQL.
#[derive(Clone, Debug)]
pub struct Visible {
    pub sql: String,
    pub kind: Kind,
}

/// Comparisons.
const COMPARISONS: [&str; 8] = ["=", "=", "=", "<>", "<", "<=", ">", ">="];

/// Stands in what may overflow; `known_differences.txt` asks for it.
const OVERFLOW_MARK: &str = "/*overflow*/";

/// Whether an integer expression may be near the ends of BIGINT: it has a column that may be, or one that may come from
/// such a column, or a literal.
fn is_large(sql: &str) -> bool {
    let has_long_number = sql
        .split(|letter: char| !letter.is_ascii_digit())
        .any(|digits| digits.len() > 10);
    has_long_number || [".g", ".o", ".c"].iter().any(|name| sql.contains(name))
}

/// Columns of derived tables are called c0, c1, and so on; they may be any expression.
fn is_column_of_table(sql: &str) -> bool {
    match sql.split_once('.') {
        Some((_, name)) => name.bytes().all(|byte| byte.is_ascii_lowercase()),
        None => false,
    }
}

/// Kinds whose values are compared with those of `kind` by a rule that all servers share.
fn partners(kind: Kind) -> &'static [Kind] {
    match kind {
        Kind::Integer => &[
            Kind::Unsigned,
            Kind::Decimal,
            Kind::Double,
            Kind::Bit,
            Kind::Year,
        ],
        Kind::Unsigned => &[Kind::Integer, Kind::Decimal, Kind::Bit],
        Kind::Decimal => &[Kind::Integer, Kind::Unsigned, Kind::Double],
        Kind::Double => &[Kind::Integer, Kind::Decimal],
        Kind::Text => &[Kind::Named],
        Kind::Date => &[Kind::DateTime],
        Kind::DateTime => &[Kind::Date],
        Kind::Time => &[Kind::Time],
        Kind::Bit => &[Kind::Integer, Kind::Unsigned, Kind::Decimal],
        Kind::Year => &[Kind::Integer, Kind::Unsigned],
        Kind::Named => &[Kind::Text, Kind::Integer],
        Kind::Json => &[Kind::Integer, Kind::Unsigned, Kind::Double, Kind::Text],
    }
}

impl Generator<'_> {
    /// A column of this kind, here or, now and then, in a query around this one.
    pub fn column(&mut self, kind: Kind) -> Option<Tree> {
        let scopes = self.scopes.len();
        if scopes == 0 {
            return None;
        }
        let scope = match scopes > 1 && one_in(self.random, 4) {
            true => self.random.below(scopes as u64 - 1) as usize,
            false => scopes - 1,
        };
        let fitting: Vec<&Visible> = self.scopes[scope]
            .iter()
            .filter(|column| column.kind == kind)
            .collect();
        match fitting.is_empty() {
            true => None,
            false => Some(text(pick(self.random, &fitting).sql.clone())),
        }
    }

    /// A column of any kind of this query.
    pub fn any_column(&mut self) -> Option<Visible> {
        let columns = self.scopes.last()?.clone();
        match columns.is_empty() {
            true => None,
            false => Some(pick(self.random, &columns).clone()),
        }
    }

    /// A column or a literal.
    pub fn leaf(&mut self, kind: Kind) -> Tree {
        match one_in(self.random, 4) {
            true => text(literal(self.random, kind)),
            false => match self.column(kind) {
                Some(column) => column,
                None => text(literal(self.random, kind)),
            },
        }
    }

    /// An expression of this kind.
    pub fn scalar(&mut self, kind: Kind, depth: u32) -> Tree {
        if depth == 0 || one_in(self.random, 3) {
            return self.leaf(kind);
        }
        let depth = depth - 1;
        if one_in(self.random, 12) && self.may_nest() {
            return self.scalar_subquery(kind);
        }
        if one_in(self.random, 3)
            && let Some(call) = self.of_family(kind)
        {
            return either(call, [self.leaf(kind)]);
        }
        // Of bits, Sheaf and MariaDB make a number, and MySQL makes bits.
        if kind != Kind::Bit && one_in(self.random, 4) {
            return self.control(kind, depth);
        }
        match kind {
            Kind::Integer => self.integer(depth),
            Kind::Unsigned => self.unsigned(depth),
            Kind::Time | Kind::Bit | Kind::Year | Kind::Named => self.leaf(kind),
            Kind::Json => self.json(depth),
            Kind::Decimal if one_in(self.random, 6) => {
                let of = *pick(self.random, &[Kind::Text, Kind::Year, Kind::Time]);
                sequence!["cast(", self.leaf(of), " as decimal(12,3))"]
            }
            Kind::Decimal | Kind::Double => {
                let sign = *pick(self.random, &[" + ", " - ", " * "]);
                let (one, two) = (self.scalar(kind, depth), self.scalar(Kind::Integer, 0));
                // The decimal may be a literal without a fraction, which is an integer.
                let may_overflow = kind == Kind::Decimal && is_large(&two.sql());
                self.calculated(one, sign, two, may_overflow)
            }
            Kind::Text => self.text(depth),
            Kind::Date => {
                let date = self.scalar(Kind::Date, depth);
                let whole = match self.random.below(4) {
                    0 => sequence!["last_day(", date.clone(), ")"],
                    1 => sequence!["(", date.clone(), " + interval 1 day)"],
                    2 => sequence!["makedate(", self.leaf(Kind::Year), ", 60)"],
                    _ => sequence!["date(", self.scalar(Kind::DateTime, 0), ")"],
                };
                either(whole, [date])
            }
            Kind::DateTime => {
                let moment = self.scalar(Kind::DateTime, depth);
                either(
                    sequence!["(", moment.clone(), " - interval 1 hour)"],
                    [moment],
                )
            }
        }
    }

    fn integer(&mut self, depth: u32) -> Tree {
        if self.schema.has_json() && one_in(self.random, 5) {
            return self.number_of_json();
        }
        let one = self.scalar(Kind::Integer, depth);
        match self.random.below(10) {
            0 => self.arithmetic(one),
            1 => sequence!["length(", self.scalar(Kind::Text, depth), ")"],
            2 => either(sequence!["sign(", one.clone(), ")"], [one]),
            3 => sequence!["year(", self.leaf(Kind::Date), ")"],
            4 => sequence!["(", self.condition(depth.min(1)), ")"],
            5 => sequence!["char_length(", self.leaf(Kind::Text), ")"],
            6 => sequence!["bit_count(", self.leaf(Kind::Bit), ")"],
            7 => {
                // Of a constant and a SET, MySQL shows a place in the definition.
                let name = self.column(Kind::Text).unwrap_or_else(|| text("null"));
                sequence!["find_in_set(", name, ", ", self.leaf(Kind::Named), ")"]
            }
            8 => {
                let of = *pick(self.random, &[Kind::Decimal, Kind::Double, Kind::Date]);
                sequence!["cast(", self.leaf(of), " as signed)"]
            }
            _ => {
                let kind = self.kind();
                sequence!["(", self.leaf(kind), " is null)"]
            }
        }
    }

    /// The numbers of what is no number by itself. They stand in no arithmetic, which would overflow.
    fn unsigned(&mut self, depth: u32) -> Tree {
        let one = self.scalar(Kind::Unsigned, depth);
        let bits = self.leaf(Kind::Bit);
        match self.random.below(4) {
            0 => {
                let of = *pick(self.random, &[Kind::Bit, Kind::Year, Kind::Named]);
                match self.column(of) {
                    Some(column) => sequence!["(", column, " + 0)"],
                    None => one,
                }
            }
            1 => {
                let sign = *pick(self.random, &[" & ", " | ", " ^ "]);
                either(sequence!["(", one.clone(), sign, bits, ")"], [one])
            }
            2 => sequence!["(", self.column(Kind::Bit).unwrap_or(one), " >> 1)"],
            _ => {
                // A decimal below 0 is 0 in Sheaf and MariaDB, and a large number in MySQL.
                let of = *pick(self.random, &[Kind::Bit, Kind::Year, Kind::Integer]);
                sequence!["cast(", self.leaf(of), " as unsigned)"]
            }
        }
    }

    /// A sum, a difference, a quotient or a remainder. Whether an overflow is an error depends on which rows a server
    /// computes it for, so there are few of them, and they have a mark.
    fn arithmetic(&mut self, one: Tree) -> Tree {
        let sign = *pick(self.random, &[" + ", " - ", " div ", " % "]);
        let two = self.leaf(Kind::Integer);
        let may_overflow = [&one, &two].iter().any(|side| is_large(&side.sql()));
        self.calculated(one, sign, two, may_overflow && sign != " % ")
    }

    /// The result of an operator, or its first operand alone.
    fn calculated(&mut self, one: Tree, sign: &str, two: Tree, may_overflow: bool) -> Tree {
        let mark = match may_overflow {
            true if !one_in(self.random, 8) => return one,
            true => OVERFLOW_MARK,
            false => "",
        };
        either(sequence!["(", one.clone(), sign, mark, two, ")"], [one])
    }

    fn text(&mut self, depth: u32) -> Tree {
        if self.schema.has_json() && one_in(self.random, 5) {
            return self.text_of_json();
        }
        let one = self.scalar(Kind::Text, depth);
        match self.random.below(9) {
            0 => {
                let two = self.leaf(Kind::Text);
                either(sequence!["concat(", one.clone(), ", ", two, ")"], [one])
            }
            1 => either(sequence!["upper(", one.clone(), ")"], [one]),
            2 => either(sequence!["lower(", one.clone(), ")"], [one]),
            3 => either(sequence!["substring(", one.clone(), ", 2)"], [one]),
            4 => either(sequence!["left(", one.clone(), ", 1)"], [one]),
            5 => either(sequence!["trim(", one.clone(), ")"], [one]),
            6 => sequence!["hex(", self.leaf(Kind::Bit), ")"],
            _ => {
                let of = [
                    Kind::Integer,
                    Kind::Decimal,
                    Kind::Year,
                    Kind::Named,
                    Kind::DateTime,
                ];
                let of = *pick(self.random, &of);
                sequence!["cast(", self.leaf(of), " as char)"]
            }
        }
    }

    /// CASE, IF, COALESCE, IFNULL, NULLIF.
    fn control(&mut self, kind: Kind, depth: u32) -> Tree {
        let (one, two) = (self.scalar(kind, depth), self.leaf(kind));
        let simpler = [one.clone(), two.clone()];
        let whole = match self.random.below(5) {
            0 => sequence!["coalesce(", one, ", ", two, ")"],
            1 => sequence!["ifnull(", one, ", ", two, ")"],
            2 => sequence!["nullif(", one, ", ", two, ")"],
            3 => sequence![
                "if(",
                self.condition(depth.min(1)),
                ", ",
                one,
                ", ",
                two,
                ")"
            ],
            _ => {
                let otherwise = match one_in(self.random, 2) {
                    true => sequence![" else ", two],
                    false => text(""),
                };
                sequence![
                    "case when ",
                    self.condition(depth.min(1)),
                    " then ",
                    one,
                    otherwise,
                    " end",
                ]
            }
        };
        either(whole, simpler)
    }

    /// A condition.
    pub fn condition(&mut self, depth: u32) -> Tree {
        if depth > 0 && one_in(self.random, 2) {
            let (one, two) = (self.condition(depth - 1), self.condition(depth - 1));
            let simpler = [one.clone(), two.clone()];
            return match self.random.below(8) {
                0..=3 => either(sequence!["(", one, " and ", two, ")"], simpler),
                4..=5 => either(sequence!["(", one, " or ", two, ")"], simpler),
                6 => either(sequence!["(not ", one, ")"], simpler),
                _ => either(sequence!["(", one, " xor ", two, ")"], simpler),
            };
        }
        if one_in(self.random, 7) && self.may_nest() {
            return self.subquery_condition();
        }
        if one_in(self.random, 8) {
            return self.condition_of_family();
        }
        let kind = self.kind();
        let left = self.scalar(kind, depth.min(1));
        match self.random.below(11) {
            0 => sequence!["(", left, " is null)"],
            1 => sequence!["(", left, " is not null)"],
            2 if kind != Kind::Json => {
                let is_quoted = self.may_quote(kind, &left);
                let items = (0..1 + self.random.below(4))
                    .map(|_| self.constant(kind, is_quoted))
                    .collect();
                let not = *pick(self.random, &[" in (", " in (", " not in ("]);
                sequence!["(", left, not, list(items), "))"]
            }
            3 if kind != Kind::Json => {
                let not = *pick(self.random, &[" between ", " between ", " not between "]);
                let is_quoted = self.may_quote(kind, &left);
                let low = self.constant(kind, is_quoted);
                let high = match is_quoted {
                    true => self.constant(kind, true),
                    false => self.leaf(kind),
                };
                sequence!["(", left, not, low, " and ", high, ")"]
            }
            4 if kind == Kind::Text => {
                let pattern = *pick(self.random, &["'a%'", "'%b'", "'_'", "'%'", "'x\\\\%%'"]);
                sequence!["(", left, " like ", pattern, ")"]
            }
            5 => sequence!["(", left, " <=> ", self.leaf(kind), ")"],
            6 => {
                let sign = *pick(self.random, &COMPARISONS);
                let is_quoted = self.may_quote(kind, &left);
                sequence!["(", left, sign, self.constant(kind, is_quoted), ")"]
            }
            7 => {
                let sign = *pick(self.random, &COMPARISONS);
                let other = *pick(self.random, partners(kind));
                sequence!["(", left, sign, self.leaf(other), ")"]
            }
            _ => {
                let sign = *pick(self.random, &COMPARISONS);
                sequence!["(", left, sign, self.leaf(kind), ")"]
            }
        }
    }

    /// Whether constants to compare `left` with are texts, as a driver sends them that quotes everything. Beside a
    /// column, a text is converted to its type. Beside any other number, MySQL and MariaDB compare as doubles, also
    /// large integers, and Sheaf digit by digit.
    fn may_quote(&mut self, kind: Kind, left: &Tree) -> bool {
        let is_number = matches!(
            kind,
            Kind::Integer | Kind::Unsigned | Kind::Decimal | Kind::Double | Kind::Bit | Kind::Year
        );
        // A text beside a time is a time in Sheaf and MariaDB; MySQL compares texts.
        let has_text = match kind {
            Kind::Json => false,
            Kind::Time => !self.schema.has_json(),
            _ => true,
        };
        one_in(self.random, 4) && has_text && (!is_number || is_column_of_table(&left.sql()))
    }

    /// A constant to compare with: a literal of the kind, the same as a string, or NULL.
    fn constant(&mut self, kind: Kind, is_quoted: bool) -> Tree {
        let plain = literal(self.random, kind);
        if one_in(self.random, 12) {
            return text("null");
        }
        if !is_quoted {
            return text(plain);
        }
        if let (Kind::Bit, Ok(number)) = (kind, plain.parse::<u64>()) {
            return text(format!("b'{number:b}'"));
        }
        let bare = plain
            .trim_start_matches("date")
            .trim_start_matches("timestamp");
        let bare = bare.trim_start_matches("time").trim_matches('\'');
        text(format!("'{}'", bare.trim_end_matches("e0")))
    }

    /// EXISTS, IN, ANY and ALL.
    fn subquery_condition(&mut self) -> Tree {
        let kind = self.kind();
        let left = self.leaf(kind);
        let not = *pick(self.random, &["", "", "not "]);
        match self.random.below(5) {
            0 => sequence!["(", not, "exists (", self.exists_subquery(), "))"],
            3 => {
                let other = self.kind();
                let (right, query) = (self.leaf(other), self.column_subquery(&[kind, other]));
                sequence!["((", left, ", ", right, ") ", not, "in (", query, "))"]
            }
            1 | 2 => sequence![
                "(",
                left,
                " ",
                not,
                "in (",
                self.column_subquery(&[kind]),
                "))"
            ],
            _ => {
                let sign = *pick(self.random, &COMPARISONS);
                let quantifier = *pick(self.random, &["any", "all", "some"]);
                let query = self.column_subquery(&[kind]);
                sequence!["(", left, " ", sign, " ", quantifier, " (", query, "))"]
            }
        }
    }
}

/// `whole`, or one of its parts.
pub fn either<const N: usize>(whole: Tree, parts: [Tree; N]) -> Tree {
    Tree::Choice(Box::new(whole), parts.into())
}

/// Items with commas; one stays.
pub fn list(items: Vec<Tree>) -> Tree {
    Tree::List {
        separator: ", ",
        items,
        least: 1,
    }
}
