//! Differences that are known, each with its reason: `known_differences.txt`.
//!
//! A line is `reason <tab> texts of the statement <tab> texts of Sheaf's answer <tab> texts of the judge's`; several
//! texts are separated by ` && `, and an empty field fits everything. Lines that begin with `#` are comments.

use crate::answer::Answer;

const FILE: &str = include_str!("known_differences.txt");

/// The reason why this difference is no fault, where it is known.
pub fn reason(sql: &str, sheaf: &Answer, judge: &Answer) -> Option<&'static str> {
    let (sheaf, judge) = (sheaf.summary(), judge.summary());
    let contains = |text: &str, wanted: &str| {
        wanted
            .split(" && ")
            .map(str::trim)
            .all(|part| text.contains(part))
    };
    FILE.lines()
        .filter(|line| !line.starts_with('#') && !line.trim().is_empty())
        .find_map(|line| {
            let mut fields = line.split('\t');
            let reason = fields.next()?;
            let fits = contains(sql, fields.next().unwrap_or(""))
                && contains(&sheaf, fields.next().unwrap_or(""))
                && contains(&judge, fields.next().unwrap_or(""));
            fits.then_some(reason)
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_known_difference_has_four_fields() {
        for line in FILE.lines() {
            if line.starts_with('#') || line.trim().is_empty() {
                continue;
            }
            assert_eq!(line.split('\t').count(), 4, "{line}");
            assert!(!line.split('\t').next().unwrap_or("").is_empty(), "{line}");
        }
    }
}
