//! A long IN list of plain constants as one node of the syntax tree.
//!
//! A node of the tree takes hundreds of bytes, and many steps go through all nodes of a statement: those that look for
//! what MySQL does not have, those that copy a query, and the binder. So the parser keeps the members of a long list
//! that are numbers, texts and NULL, or rows of these, in one text. The binder reads their values off it.
//!
//! ```text
//!   x IN (7, -1, 5, ...)               '7,-1,5,...'           whole numbers, which the typing rule reads itself
//!   (x, y) IN ((5, 'b'), (1, NULL))    2  'n5;t1:bn1;z'       the length of a row, and all members by their kinds
//! ```
//!
//! The texts stand in ARRAY, which MySQL does not have, so that no statement can have written it.

use sqlparser::ast::{Array, Expr};

use crate::syntax::{null, number, number_digits, string_of, text};

/// A member of a list, or of a row of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Member<'a> {
    /// Digits as they are written, perhaps behind `-`.
    Number(&'a str),
    Text(&'a str),
    Null,
}

/// A list that the parser reads.
#[derive(Debug)]
pub struct ListPacker {
    members: String,
    /// The members as the typing rule reads them, while all are whole numbers.
    numbers: Option<String>,
    /// Members of all rows so far, of those that are complete, and of the first one.
    count: usize,
    complete: usize,
    width: usize,
    rows: usize,
    /// Whether all rows have as many members as the first.
    are_alike: bool,
}

impl ListPacker {
    pub fn new() -> ListPacker {
        ListPacker {
            members: String::new(),
            numbers: Some(String::new()),
            count: 0,
            complete: 0,
            width: 0,
            rows: 0,
            are_alike: true,
        }
    }

    /// A number; `sign` is `-` or nothing.
    pub fn push_number(&mut self, sign: &str, digits: &str) {
        for part in ["n", sign, digits, ";"] {
            self.members.push_str(part);
        }
        self.count += 1;
        let is_whole = digits.parse::<i64>().is_ok();
        self.numbers = self.numbers.take().filter(|_| is_whole).map(|mut numbers| {
            if !numbers.is_empty() {
                numbers.push(',');
            }
            numbers.push_str(sign);
            numbers.push_str(digits);
            numbers
        });
    }

    pub fn push_text(&mut self, text: &str) {
        self.members.push('t');
        self.members.push_str(&text.len().to_string());
        self.members.push(':');
        self.members.push_str(text);
        self.count += 1;
        self.numbers = None;
    }

    pub fn push_null(&mut self) {
        self.members.push('z');
        self.count += 1;
        self.numbers = None;
    }

    /// What came since the last call is a row. A member alone is a row of one.
    pub fn end_row(&mut self) {
        let width = self.count - self.complete;
        if self.rows == 0 {
            self.width = width;
        }
        self.are_alike &= width == self.width;
        self.complete = self.count;
        self.rows += 1;
    }

    /// The members of an IN; `None` if these are less than so many rows, or not all rows have the same length.
    pub fn packed(self, least_rows: usize) -> Option<Expr> {
        if self.rows < least_rows || !self.are_alike {
            return None;
        }
        let elem = match self.numbers {
            Some(numbers) if self.width == 1 => vec![text(numbers)],
            _ => vec![number(self.width), text(self.members)],
        };
        Some(Expr::Array(Array { elem, named: true }))
    }
}

/// What [`ListPacker`] has made of the members of a list.
#[derive(Debug, Clone, Copy)]
pub enum PackedList<'a> {
    /// A text of whole numbers, for the typing rule.
    Numbers(&'a Expr),
    /// The members of rows of so many.
    Members { width: usize, packed: &'a str },
}

impl PackedList<'_> {
    /// The list of an IN, if it is packed.
    pub fn of(list: &[Expr]) -> Option<PackedList<'_>> {
        let [Expr::Array(Array { elem, named: true })] = list else {
            return None;
        };
        match elem.as_slice() {
            [numbers] => Some(PackedList::Numbers(numbers)),
            [width, members] => Some(PackedList::Members {
                width: number_digits(width)?.parse().ok()?,
                packed: string_of(members)?,
            }),
            _ => None,
        }
    }
}

/// The members of a packed list, one after the other.
#[derive(Debug, Clone)]
pub struct Members<'a> {
    rest: &'a str,
}

impl<'a> Members<'a> {
    pub fn of(packed: &'a str) -> Members<'a> {
        Members { rest: packed }
    }
}

impl<'a> Iterator for Members<'a> {
    type Item = Member<'a>;

    fn next(&mut self) -> Option<Member<'a>> {
        let kind = self.rest.chars().next()?;
        let behind = &self.rest[kind.len_utf8()..];
        let (member, rest) = match kind {
            'n' => {
                let (digits, rest) = behind.split_once(';')?;
                (Member::Number(digits), rest)
            }
            't' => {
                let (length, behind) = behind.split_once(':')?;
                let (text, rest) = behind.split_at_checked(length.parse().ok()?)?;
                (Member::Text(text), rest)
            }
            _ => (Member::Null, behind),
        };
        self.rest = rest;
        Some(member)
    }
}

/// The members of a list as the parser makes them where it does not pack: rows of `width` values.
pub fn unpacked(width: usize, packed: &str) -> Vec<Expr> {
    let mut values = Members::of(packed).map(|member| match member {
        Member::Number(digits) => number(digits),
        Member::Text(member) => text(member),
        Member::Null => null(),
    });
    if width == 1 {
        return values.collect();
    }
    let mut rows = Vec::new();
    loop {
        let row: Vec<Expr> = values.by_ref().take(width).collect();
        if row.is_empty() {
            return rows;
        }
        rows.push(Expr::Tuple(row));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_read_as_they_were_written() {
        let mut list = ListPacker::new();
        list.push_number("-", "1.50");
        list.push_text("a;b:'\u{e9}");
        list.end_row();
        list.push_null();
        list.push_text("");
        list.end_row();
        let packed = list.packed(2).expect("two rows");
        let Some(PackedList::Members { width, packed }) =
            PackedList::of(std::slice::from_ref(&packed))
        else {
            panic!("{packed} is no packed list");
        };
        assert_eq!(width, 2);
        let members: Vec<Member<'_>> = Members::of(packed).collect();
        let expected = [
            Member::Number("-1.50"),
            Member::Text("a;b:'\u{e9}"),
            Member::Null,
            Member::Text(""),
        ];
        assert_eq!(members, expected);
        let rows: Vec<String> = unpacked(width, packed)
            .iter()
            .map(ToString::to_string)
            .collect();
        assert_eq!(rows.len(), 2);
        assert_eq!(rows[1], "(NULL, '')");
    }

    #[test]
    fn rows_of_several_lengths_and_short_lists_are_not_packed() {
        let mut list = ListPacker::new();
        list.push_null();
        list.end_row();
        list.push_null();
        list.push_null();
        list.end_row();
        assert!(list.packed(1).is_none());
        let mut list = ListPacker::new();
        list.push_number("", "1");
        list.end_row();
        assert!(list.packed(2).is_none());
    }
}
