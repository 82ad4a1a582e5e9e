//! The names of a view's columns that the statement does not give.
//!
//! The name of an expression is its text, which may be no name, or that of another column. Then it is made, as MySQL
//! does:
//!
//! ```text
//!   SELECT 1, 1, 1, '', 'a ' FROM t    -->   1, Name_exp_1, Name_exp_1_1, Name_exp_4, Name_exp_5
//! ```
//!
//! A name that is written, or that of a column, stays.

use sheaf_frontend::query::Header;
use sqlparser::ast::{Query, SelectItem, SetExpr};

/// The most characters of a column's name.
pub(super) const MAX_NAME_CHARACTERS: usize = 64;

/// Which columns of a query have the text of an expression as their name.
pub(super) fn named_by_text(query: &Query, headers: &[Header]) -> Vec<bool> {
    let mut body = query.body.as_ref();
    let select = loop {
        body = match body {
            SetExpr::Query(inner) => inner.body.as_ref(),
            SetExpr::SetOperation { left, .. } => left.as_ref(),
            SetExpr::Select(select) => break select,
            _ => return vec![false; headers.len()],
        };
    };
    let items = &select.projection;
    let is_one = |item: &&SelectItem| {
        matches!(
            item,
            SelectItem::UnnamedExpr(_) | SelectItem::ExprWithAlias { .. }
        )
    };
    // Where `*` stands before and behind an item, nothing tells its place.
    let mut is_text = vec![false; headers.len()];
    let mut note = |place: Option<usize>, item: &SelectItem| {
        if let Some(place) = place
            && let Some(header) = headers.get(place)
        {
            is_text[place] =
                matches!(item, SelectItem::UnnamedExpr(_)) && header.org_name.is_empty();
        }
    };
    for (place, item) in items.iter().take_while(is_one).enumerate() {
        note(Some(place), item);
    }
    for (from_end, item) in items.iter().rev().take_while(is_one).enumerate() {
        note(headers.len().checked_sub(from_end + 1), item);
    }
    is_text
}

/// Makes names of what is none, and of names that are there twice.
pub(super) fn make_names(names: &mut [String], is_text: &[bool]) {
    let is_made = |place: usize| is_text.get(place) == Some(&true);
    for (place, name) in names.iter_mut().enumerate() {
        let is_long = name.chars().count() > MAX_NAME_CHARACTERS;
        if is_long || is_made(place) && (name.is_empty() || name.ends_with(' ')) {
            *name = format!("Name_exp_{}", place + 1);
        }
    }
    for place in 1..names.len() {
        for before in 0..place {
            if !same_name(&names[place], &names[before]) {
                continue;
            }
            let changed = match (is_made(place), is_made(before)) {
                (true, _) => place,
                (false, true) => before,
                // It is an error.
                (false, false) => continue,
            };
            names[changed] = unique_name(&names[..=place], changed);
        }
    }
}

fn unique_name(names: &[String], changed: usize) -> String {
    let written = &names[changed];
    let is_free = |name: &String| {
        let mut others = names.iter().enumerate();
        !others.any(|(place, other)| place != changed && same_name(other, name))
    };
    let numbered = (1..=names.len()).map(|number| format!("Name_exp_{number}_{written}"));
    let mut made = std::iter::once(format!("Name_exp_{written}")).chain(numbered);
    made.find(is_free).unwrap_or_else(|| written.clone())
}

fn same_name(one: &str, other: &str) -> bool {
    one.to_lowercase() == other.to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::make_names;

    fn made(names: &[&str], is_text: &[bool]) -> Vec<String> {
        let mut names: Vec<String> = names.iter().map(ToString::to_string).collect();
        make_names(&mut names, is_text);
        names
    }

    /// As MySQL 9.7 names them.
    #[test]
    fn texts_become_names_that_are_there_once() {
        let all = [true; 4];
        assert_eq!(
            made(&["1", "1", "1", "1"], &all),
            ["1", "Name_exp_1", "Name_exp_1_1", "Name_exp_2_1"]
        );
        assert_eq!(made(&["1", "1"], &[true, false]), ["Name_exp_1", "1"]);
        assert_eq!(made(&["a", "a"], &[false, true]), ["a", "Name_exp_a"]);
        assert_eq!(made(&["a", "A"], &[false, false]), ["a", "A"]);
        assert_eq!(
            made(&["a", "", " ", "a "], &[false, true, true, true]),
            ["a", "Name_exp_2", "Name_exp_3", "Name_exp_4"]
        );
    }
}
