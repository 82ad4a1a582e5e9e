//! The texts that `gtid_next` and `gtid_purged` are set to.

use sheaf_binlog::gtid::{Gtid, GtidSet, Tag, Uuid};
use sheaf_types::error::codes;

use super::NewValue;
use crate::error::{Result, SqlError, excerpt};

pub(crate) const GTID_NEXT: &str = "gtid_next";
pub(crate) const GTID_PURGED: &str = "gtid_purged";
pub(crate) const GTID_OWNED: &str = "gtid_owned";
/// The binary log gives the next transaction its number.
pub(crate) const AUTOMATIC: &str = "AUTOMATIC";
/// A transaction without a GTID, where there are none.
pub(crate) const ANONYMOUS: &str = "ANONYMOUS";

/// What `gtid_next` is set to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SaidNext {
    Automatic,
    Anonymous,
    Gtid(Gtid),
}

impl SaidNext {
    /// # Errors
    /// 1774 for what is no GTID, 1231 for NULL, 1232 for a number; 1235 for one with a tag.
    pub(crate) fn of(new: &NewValue) -> Result<SaidNext> {
        let text = match new {
            NewValue::Default => return Ok(SaidNext::Automatic),
            new => text_of(GTID_NEXT, new)?,
        };
        if text.eq_ignore_ascii_case(AUTOMATIC) {
            return Ok(SaidNext::Automatic);
        }
        if text.eq_ignore_ascii_case(ANONYMOUS) {
            return Ok(SaidNext::Anonymous);
        }
        let malformed = || {
            SqlError::new(
                codes::MALFORMED_GTID_SPECIFICATION,
                format!("Malformed GTID specification '{}'.", excerpt(text)),
            )
        };
        let (server, number) = text.split_once(':').ok_or_else(malformed)?;
        let tag = match number.split_once(':') {
            Some((tag, _)) => Some(tag),
            None => server.eq_ignore_ascii_case(AUTOMATIC).then_some(number),
        };
        if let Some(tag) = tag.and_then(Tag::new).filter(|tag| !tag.is_empty()) {
            return Err(SqlError::not_supported_yet(format_args!(
                "gtid_next with the tag '{}'",
                tag.as_str()
            )));
        }
        let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
        let number = number.parse::<u64>().ok().filter(|_| is_number);
        let gtid = match (server.parse::<Uuid>(), number) {
            (Ok(server), Some(number)) => Gtid::new(server, number),
            _ => None,
        };
        gtid.map(SaidNext::Gtid).ok_or_else(malformed)
    }
}

/// What `gtid_purged` is set to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SaidPurged {
    pub(crate) set: GtidSet,
    /// It begins with `+`: what there is stays.
    pub(crate) is_added: bool,
}

impl SaidPurged {
    /// # Errors
    /// 1230 for DEFAULT, 1231 for what is no set, 1232 for a number.
    pub(crate) fn of(new: &NewValue) -> Result<SaidPurged> {
        if matches!(new, NewValue::Default) {
            return Err(SqlError::new(
                codes::NO_DEFAULT,
                format!("Variable '{GTID_PURGED}' doesn't have a default value"),
            ));
        }
        let text = text_of(GTID_PURGED, new)?;
        let said = text.trim_start();
        let (said, is_added) = match said.strip_prefix('+') {
            Some(added) => (added, true),
            None => (said, false),
        };
        let set = said.parse::<GtidSet>();
        let set =
            set.map_err(|_| SqlError::wrong_value_for_variable(GTID_PURGED, excerpt(text)))?;
        Ok(SaidPurged { set, is_added })
    }
}

fn text_of<'n>(name: &str, new: &'n NewValue) -> Result<&'n str> {
    match new {
        NewValue::Text(text) => Ok(text),
        NewValue::Null => Err(SqlError::wrong_value_for_variable(name, "NULL")),
        NewValue::Integer(_) | NewValue::Float(_) | NewValue::Default => {
            Err(SqlError::wrong_type_for_variable(name))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SERVER: &str = "3e11fa47-71ca-11e1-9e33-c80aa9429562";

    #[test]
    fn gtid_next_takes_what_mysql_takes() {
        let said = |text: &str| SaidNext::of(&NewValue::Text(text.to_string()));
        assert_eq!(said("automatic"), Ok(SaidNext::Automatic));
        assert_eq!(said("Anonymous"), Ok(SaidNext::Anonymous));
        assert_eq!(SaidNext::of(&NewValue::Default), Ok(SaidNext::Automatic));
        let server = SERVER.parse().expect("a uuid");
        let gtid = Gtid::new(server, 5).map(SaidNext::Gtid);
        assert_eq!(said(&format!("{SERVER}:5")).ok(), gtid);
        let code = |text: String| said(&text).expect_err("it is refused").code;
        for malformed in [
            SERVER.to_string(),
            format!("{SERVER}:1-3"),
            format!("{SERVER}:0"),
            format!("{SERVER}:+5"),
            format!("{SERVER}:"),
            format!("{SERVER}:99999999999999999999"),
            "abc".to_string(),
            String::new(),
            " automatic ".to_string(),
            "automatic:".to_string(),
            "automatic:1".to_string(),
        ] {
            assert_eq!(code(malformed.clone()), 1774, "{malformed}");
        }
        for tagged in [format!("{SERVER}:tag:3"), "automatic:tag".to_string()] {
            assert_eq!(code(tagged.clone()), 1235, "{tagged}");
        }
        let code = |new: NewValue| SaidNext::of(&new).expect_err("it is refused").code;
        assert_eq!(
            [code(NewValue::Null), code(NewValue::Integer(5))],
            [1231, 1232]
        );
    }

    #[test]
    fn gtid_purged_takes_sets_and_additions() {
        let said = |text: &str| SaidPurged::of(&NewValue::Text(text.to_string()));
        let set: GtidSet = format!("{SERVER}:1-5").parse().expect("a set");
        for (text, is_added, expected) in [
            (format!("{SERVER}:1-5"), false, &set),
            (format!(" +{SERVER}:1-5"), true, &set),
            (String::new(), false, &GtidSet::new()),
            ("+".to_string(), true, &GtidSet::new()),
        ] {
            let expected = SaidPurged {
                set: expected.clone(),
                is_added,
            };
            assert_eq!(said(&text), Ok(expected), "{text}");
        }
        let code = |new: NewValue| SaidPurged::of(&new).expect_err("it is refused").code;
        let refused = [
            NewValue::Text("x".to_string()),
            NewValue::Default,
            NewValue::Null,
            NewValue::Integer(3),
        ];
        assert_eq!(refused.map(code), [1231, 1230, 1231, 1232]);
    }
}
