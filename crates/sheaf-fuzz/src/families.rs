//! Functions of every family, as patterns whose places columns and literals of a kind take.
//!
//! A place is a letter in braces: `left({T}, 2)` has a text in it. The patterns give the same answer in both judges for
//! columns of every kind, but for a few that they refuse.
//!
//! Some functions have a value of NULL, as NOT IN of a row. Where an outer join has no row, both judges take a
//! condition on them for one that NULL does not meet. Inside of IFNULL they do not.

use crate::query::Generator;
use crate::schema::{Kind, literal, pick};
use crate::tree::{Tree, text};

/// Numbers of a text, a date, a number or bits.
const INTEGERS: [&str; 49] = [
    "abs({N})",
    "({N} + 1)",
    "({N} % 3)",
    "instr({T}, {T})",
    "locate('b', {T}, 2)",
    "ascii({T})",
    "ord({T})",
    "bit_length({T})",
    "octet_length({T})",
    "strcmp({T}, {T})",
    "ifnull(field({T}, {T}, 'a'), 0)",
    "ifnull(field({N}, 1, {N}), 0)",
    "ifnull(interval({N}, 1, 2, 3), -1)",
    "crc32({T})",
    "find_in_set({T}, 'a,b,ab')",
    "regexp_instr({R}, 'b')",
    "regexp_like({R}, '^[ab]')",
    "length({A})",
    "floor({E})",
    "ceiling({E})",
    "round({E})",
    "sign({F})",
    "mod({N}, 3)",
    "({N} div 2)",
    "period_add(202001, {N})",
    "month({M})",
    "dayofmonth({D})",
    "dayofweek({D})",
    "dayofyear({M})",
    "weekday({D})",
    "week({D})",
    "week({M}, 3)",
    "yearweek({D})",
    "quarter({D})",
    "hour({H})",
    "minute({H})",
    "second({M})",
    "microsecond({M})",
    "to_days({D})",
    "to_seconds({M})",
    "datediff({D}, {M})",
    "timestampdiff(day, {D}, {D})",
    "timestampdiff(month, {D}, {M})",
    "timestampdiff(second, {M}, {M})",
    "time_to_sec({H})",
    "extract(year_month from {M})",
    "extract(hour from {H})",
    "({A} is null)",
    "({N} is not true)",
];

const BITS: [&str; 10] = [
    "({N} & {B})",
    "({U} | 5)",
    "({N} << 2)",
    "({U} >> 1)",
    "(~{B})",
    "(~{U})",
    "({B} ^ {N})",
    "bit_count({U})",
    "bit_count({N})",
    "crc32({A})",
];

const TEXTS: [&str; 42] = [
    "concat_ws(',', {T}, {T})",
    "concat({A}, 'x')",
    "insert({T}, 1, 2, 'zz')",
    "right({T}, 2)",
    "left({A}, 3)",
    "lpad({T}, 4, 'xy')",
    "rpad({T}, 4, 'xy')",
    "ltrim({T})",
    "rtrim({T})",
    "repeat({T}, 2)",
    "replace({T}, 'b', 'cc')",
    "reverse({T})",
    "reverse({A})",
    "space({N})",
    "substring({T}, 2, 1)",
    "substring({T}, -2)",
    "substring_index({T}, 'b', 1)",
    "trim(both 'b' from {T})",
    "trim(leading 'a' from {T})",
    "quote({T})",
    "soundex({T})",
    "to_base64({T})",
    "from_base64(to_base64({T}))",
    "unhex(hex({T}))",
    "hex({A})",
    "elt({N}, {T}, 'b')",
    "ifnull(make_set({N}, 'x', {T}, 'z'), '')",
    "export_set({N}, 'y', 'n', ',', 4)",
    "conv({N}, 10, 2)",
    "bin({I})",
    "oct({U})",
    "format({E}, 2)",
    "format({I}, 0)",
    "char({N})",
    "regexp_replace({R}, 'a|b', 'z')",
    "regexp_substr({R}, '[a-c]+')",
    "dayname({D})",
    "monthname({M})",
    "date_format({M}, '%Y-%m %W %j')",
    "date_format({D}, '%e %b %y %U')",
    "time_format({H}, '%H %i')",
    "upper({A})",
];

const DECIMALS: [&str; 9] = [
    "round({E}, 1)",
    "round({E}, -1)",
    "truncate({E}, 1)",
    "abs({E})",
    "(-{E})",
    "({N} / 4)",
    "mod({E}, 7)",
    "unix_timestamp({M})",
    "greatest({E}, {N})",
];

const DOUBLES: [&str; 10] = [
    "sqrt({E})",
    "sqrt({F})",
    "atan({F})",
    "ln({E})",
    "log2({F})",
    "log10({E})",
    "round({F}, 1)",
    "truncate({F}, 0)",
    "abs({F})",
    "radians({N})",
];

const DATES: [&str; 9] = [
    "adddate({D}, 31)",
    "subdate({D}, 31)",
    "({D} + interval 1 month)",
    "({D} - interval 1 year)",
    "({D} + interval 1 quarter)",
    "from_days(to_days({M}))",
    "greatest({D}, {D})",
    "least({D}, {D})",
    "cast({T} as date)",
];

const MOMENTS: [&str; 10] = [
    "({M} + interval '1:30' hour_minute)",
    "({M} - interval 3 month)",
    "({M} + interval 90 second)",
    "timestampadd(hour, 30, {M})",
    "addtime({M}, '01:00:00')",
    "timestamp({D})",
    "timestamp({D}, {H})",
    "greatest({M}, {M})",
    "cast({D} as datetime)",
    "cast({T} as datetime)",
];

const TIMES: [&str; 7] = [
    "maketime({N}, 10, 5)",
    "sec_to_time({N})",
    "subtime({H}, '00:00:01')",
    "addtime({H}, '00:30:00')",
    "time({M})",
    "timediff({M}, {M})",
    "cast({T} as time)",
];

/// Documents of documents.
const DOCUMENTS: [&str; 8] = [
    "json_keys({J})",
    "json_array_append({J}, '$', {I})",
    "json_array_insert({J}, '$[0]', {T})",
    "json_merge_preserve({J}, {J})",
    "json_quote({T})",
    "json_search({J}, 'one', 'a')",
    "json_array({A}, {A})",
    "json_object('a', {A}, 'b', {J})",
];

const NUMBERS_OF_DOCUMENTS: [&str; 5] = [
    "json_contains_path({J}, 'one', '$.a', '$[0]')",
    "json_overlaps({J}, {J})",
    "json_valid({T})",
    "json_length({J}, '$.b')",
    "json_contains({J}, '1')",
];

/// Conditions.
const CONDITIONS: [&str; 16] = [
    "({R} regexp '^[ab]')",
    "({R} not regexp 'b$')",
    "({R} rlike 'a|x')",
    "({T} like {T})",
    "({T} not like '_b%')",
    "({T} like 'A%' escape '|')",
    "({N} is true)",
    "({E} is not false)",
    "({F} is unknown)",
    "(({N}, {N}) = ({N}, 2))",
    "(({N}, {T}) in ((1, 'a'), (2, 'b'), (3, 'ab')))",
    "ifnull((({N}, {N}) not in ((1, 2), ({N}, 3))), 0)",
    "ifnull((({D}, {N}) < (date'2020-02-01', 3)), 0)",
    "({N} in ({N}, {N}, 5))",
    "({N} between {N} and {N})",
    "({D} between date'2020-01-01' and {D})",
];

impl Generator<'_> {
    /// A call of a function whose value is of this kind; `None` where no family makes such values.
    pub fn of_family(&mut self, kind: Kind) -> Option<Tree> {
        let patterns: &[&str] = match kind {
            Kind::Integer => &INTEGERS,
            Kind::Unsigned => &BITS,
            Kind::Decimal => &DECIMALS,
            Kind::Double => &DOUBLES,
            Kind::Text => &TEXTS,
            Kind::Date => &DATES,
            Kind::DateTime => &MOMENTS,
            Kind::Time => &TIMES,
            Kind::Json => &DOCUMENTS,
            Kind::Bit | Kind::Year | Kind::Named => return None,
        };
        let pattern = pick::<&str>(self.random, patterns);
        Some(self.filled(pattern))
    }

    /// A number of a document.
    pub fn number_of_document(&mut self) -> Tree {
        let pattern = pick::<&str>(self.random, &NUMBERS_OF_DOCUMENTS);
        self.filled(pattern)
    }

    /// A condition of a family.
    pub fn condition_of_family(&mut self) -> Tree {
        let pattern = pick::<&str>(self.random, &CONDITIONS);
        self.filled(pattern)
    }

    /// The pattern with a column or a literal at each of its places.
    fn filled(&mut self, pattern: &str) -> Tree {
        let mut parts = Vec::new();
        let mut rest = pattern;
        while let Some((before, behind)) = rest.split_once('{') {
            let (place, behind) = behind.split_once('}').unwrap_or((behind, ""));
            parts.push(text(before));
            parts.push(self.at_place(place));
            rest = behind;
        }
        parts.push(text(rest));
        Tree::Sequence(parts)
    }

    fn at_place(&mut self, place: &str) -> Tree {
        let kind = match place {
            "N" => return self.small_number(),
            "R" => return self.letters(),
            "A" => self.kind_of_any(),
            "I" => Kind::Integer,
            "U" => Kind::Unsigned,
            "E" => Kind::Decimal,
            "F" => Kind::Double,
            "T" => Kind::Text,
            "D" => Kind::Date,
            "M" => Kind::DateTime,
            "H" => Kind::Time,
            "B" => Kind::Bit,
            _ => Kind::Json,
        };
        self.leaf(kind)
    }

    /// A kind of whose values every function makes the same text: not of doubles and documents.
    fn kind_of_any(&mut self) -> Kind {
        match self.kind() {
            Kind::Double | Kind::Json => Kind::Integer,
            kind => kind,
        }
    }

    /// A text of letters: MySQL refuses bytes in regular expressions.
    fn letters(&mut self) -> Tree {
        let text = self.leaf(Kind::Text);
        match text.sql().ends_with(".vb") {
            true => self::text(literal(self.random, Kind::Text)),
            false => text,
        }
    }

    /// An integer that arithmetic cannot make too large: a column of few digits, or a literal.
    fn small_number(&mut self) -> Tree {
        let small = [".k", ".l", ".b"];
        match self.column(Kind::Integer) {
            Some(column) if small.iter().any(|name| column.sql().ends_with(name)) => column,
            _ => text(self.random.below(8).to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use sheaf_storage::Random;

    use super::*;
    use crate::schema::Schema;

    #[test]
    fn each_place_of_a_pattern_is_filled() {
        let mut random = Random::new(3);
        let schema = Schema::new(&mut random, true);
        let mut generator = Generator::new(&mut random, &schema);
        for kind in [
            Kind::Integer,
            Kind::Unsigned,
            Kind::Decimal,
            Kind::Double,
            Kind::Text,
            Kind::Date,
            Kind::DateTime,
            Kind::Time,
        ] {
            for _ in 0..100 {
                let sql = generator.of_family(kind).expect("a family").sql();
                assert!(!sql.contains(['{', '}']), "{sql}");
            }
        }
        assert_eq!(generator.filled("f(2)").sql(), "f(2)");
    }
}
