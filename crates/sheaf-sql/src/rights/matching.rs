//! Which account a client is: the first that fits, in MySQL's order.
//!
//! Accounts are ordered by their hosts, the most specific first, and then by their users, names before the empty name,
//! which is any user:
//!
//! ```text
//!   a host or an address    localhost, 10.0.0.7
//!   a network               10.0.0.0/255.255.255.0, 10.0.0.0/24
//!   a pattern               10.0.%, %.example.org: the later its first wildcard, the more specific
//!   any host                %
//!   any host                (empty)
//! ```
//!
//! (MySQL Reference Manual, "Access Control, Stage 1: Connection Verification".)

use std::cmp::Reverse;
use std::net::Ipv4Addr;
use std::sync::Arc;

use sheaf_table::{Account, AccountName, Accounts};
use sheaf_types::Collation;
use sheaf_types::text::like::Pattern;

/// The account of a client that says that it is `user`. `hosts` are the names and addresses that it has.
pub fn find<'a>(accounts: &'a Accounts, user: &str, hosts: &[&str]) -> Option<&'a Arc<Account>> {
    accounts
        .iter()
        .filter(|(name, _)| name.user.is_empty() || name.user == user)
        .filter(|(name, _)| hosts.iter().any(|host| host_fits(host, &name.host)))
        .min_by_key(|(name, _)| specificity(name))
        .map(|(_, account)| account)
}

/// The accounts that clients would not be any more, or not from everywhere, if there were an account of this name.
pub fn hidden_by<'a>(
    accounts: &'a Accounts,
    new: &'a AccountName,
) -> impl Iterator<Item = &'a Arc<Account>> {
    accounts
        .iter()
        .filter(move |(name, _)| {
            name.user == new.user || name.user.is_empty() || new.user.is_empty()
        })
        .filter(move |(name, _)| (specificity(new), new) < (specificity(name), *name))
        .filter(move |(name, _)| may_share_client(&name.host, &new.host))
        .map(|(_, account)| account)
}

/// Whether both may fit one client. One of this machine is `localhost` and has a loopback address, any other has an
/// address. Of patterns with wildcards it is not known which networks they fit.
fn may_share_client(one: &str, other: &str) -> bool {
    let fits_some_of = |pattern: &str, of: &str| {
        host_fits(of, pattern) || (is_pattern(pattern) && network(of).is_some())
    };
    fits_some_of(one, other)
        || fits_some_of(other, one)
        || (may_be_local(one) && may_be_local(other))
        || have_common_address(one, other)
}

fn is_pattern(host: &str) -> bool {
    host.is_empty() || host.contains(['%', '_'])
}

fn may_be_local(host: &str) -> bool {
    is_pattern(host)
        || matches!(host, "localhost" | "::1")
        || have_common_address(host, "127.0.0.0/8")
}

fn have_common_address(one: &str, other: &str) -> bool {
    let addresses = |host: &str| {
        let one = || host.parse::<Ipv4Addr>().ok();
        network(host).or_else(|| Some((one()?.to_bits(), u32::MAX)))
    };
    match (addresses(one), addresses(other)) {
        (Some((one, one_mask)), Some((other, other_mask))) => {
            (one ^ other) & one_mask & other_mask == 0
        }
        _ => false,
    }
}

/// Whether any account may connect from there.
pub fn admits(accounts: &Accounts, hosts: &[&str]) -> bool {
    let mut patterns = accounts.keys().map(|name| &name.host);
    patterns.any(|pattern| hosts.iter().any(|host| host_fits(host, pattern)))
}

/// The less, the more specific.
fn specificity(name: &AccountName) -> (u8, Reverse<usize>, bool) {
    let first_wildcard = name.host.find(['%', '_']);
    let (rank, fixed) = match (name.host.as_str(), first_wildcard) {
        ("", _) => (4, 0),
        ("%", _) => (3, 0),
        (_, Some(at)) => (2, at),
        (host, None) if network(host).is_some() => (1, 0),
        _ => (0, 0),
    };
    (rank, Reverse(fixed), name.user.is_empty())
}

fn host_fits(host: &str, pattern: &str) -> bool {
    if pattern.is_empty() || host.eq_ignore_ascii_case(pattern) {
        return true;
    }
    match (network(pattern), host.parse::<Ipv4Addr>()) {
        (Some((network, mask)), Ok(address)) => address.to_bits() & mask == network,
        (Some(_), Err(_)) => false,
        (None, _) => Pattern::of_names(pattern).matches(host),
    }
}

/// Address and mask of `10.0.0.0/255.255.255.0` or `10.0.0.0/24`.
fn network(pattern: &str) -> Option<(u32, u32)> {
    let (address, mask) = pattern.split_once('/')?;
    let address: Ipv4Addr = address.parse().ok()?;
    let mask = match mask.parse::<u32>() {
        Ok(bits @ 0..=32) => u32::MAX.checked_shl(32 - bits).unwrap_or(0),
        Ok(_) => return None,
        Err(_) => mask.parse::<Ipv4Addr>().ok()?.to_bits(),
    };
    Some((address.to_bits(), mask))
}

/// Of patterns the best that fits the name of a database: that whose first wildcard is the latest.
pub fn best_pattern<'a, T>(
    patterns: impl Iterator<Item = (&'a String, T)>,
    database: &str,
) -> Option<T> {
    best(patterns, |pattern| {
        Pattern::new(pattern, Some('\\'), Collation::Utf8mb4_bin).matches(database)
    })
}

/// The same of those that fit whatever fits `asked`, which is a pattern itself.
pub fn best_cover<'a, T>(
    patterns: impl Iterator<Item = (&'a String, T)>,
    asked: &str,
) -> Option<T> {
    best(patterns, |pattern| covers(pattern, asked))
}

fn best<'a, T>(
    patterns: impl Iterator<Item = (&'a String, T)>,
    fits: impl Fn(&str) -> bool,
) -> Option<T> {
    patterns
        .filter(|(pattern, _)| fits(pattern.as_str()))
        .min_by_key(|(pattern, _)| Reverse(fixed_length(pattern)))
        .map(|(_, found)| found)
}

/// How much of a pattern stands before its first wildcard, which `\\` makes a character: the more, the more specific.
fn fixed_length(pattern: &str) -> usize {
    let mut places = pattern.char_indices();
    while let Some((at, place)) = places.next() {
        match place {
            '\\' => drop(places.next()),
            '%' | '_' => return at,
            _ => {}
        }
    }
    usize::MAX
}

/// What a place of a pattern stands for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Character(char),
    AnyCharacter,
    AnyText,
}

fn places(pattern: &str) -> Vec<Place> {
    let mut characters = pattern.chars();
    let mut places = Vec::new();
    while let Some(character) = characters.next() {
        places.push(match character {
            '%' => Place::AnyText,
            '_' => Place::AnyCharacter,
            '\\' => Place::Character(characters.next().unwrap_or('\\')),
            other => Place::Character(other),
        });
    }
    places
}

/// Whether everything that fits the pattern `asked` fits `pattern`, too. A `_` stands for one character, so not for a
/// `%`, and a character for itself, so not for a `_`.
fn covers(pattern: &str, asked: &str) -> bool {
    let pattern = places(pattern);
    // How much of the pattern may have been used for what of `asked` was looked at.
    let mut used = vec![false; pattern.len() + 1];
    used[0] = true;
    pass_any_text(&pattern, &mut used);
    for wanted in places(asked) {
        let mut next = vec![false; pattern.len() + 1];
        for (at, place) in pattern.iter().enumerate().filter(|(at, _)| used[*at]) {
            match place {
                Place::AnyText => next[at] = true,
                Place::AnyCharacter => next[at + 1] |= wanted != Place::AnyText,
                place => next[at + 1] |= *place == wanted,
            }
        }
        pass_any_text(&pattern, &mut next);
        used = next;
    }
    used[pattern.len()]
}

/// A `%` may stand for nothing.
fn pass_any_text(pattern: &[Place], used: &mut [bool]) {
    for (at, place) in pattern.iter().enumerate() {
        if used[at] && *place == Place::AnyText {
            used[at + 1] = true;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn accounts(names: &[(&str, &str)]) -> Accounts {
        names
            .iter()
            .map(|(user, host)| {
                let account = Account::new(AccountName::new(user, host));
                (account.name.clone(), Arc::new(account))
            })
            .collect()
    }

    #[test]
    fn the_most_specific_account_is_the_clients() {
        let accounts = accounts(&[
            ("ann", "%"),
            ("ann", "10.0.%"),
            ("ann", "10.%"),
            ("ann", "10.0.0.0/24"),
            ("ann", "10.0.0.7"),
            ("", "localhost"),
            ("ann", "%.example.org"),
            ("bob", ""),
            ("", "192.168.0.0/255.255.0.0"),
        ]);
        let found = |user: &str, hosts: &[&str]| {
            find(&accounts, user, hosts).map(|account| account.name.to_string())
        };
        for (user, hosts, name) in [
            ("ann", &["10.0.0.7"][..], "'ann'@'10.0.0.7'"),
            ("ann", &["10.0.0.8"], "'ann'@'10.0.0.0/24'"),
            ("ann", &["10.0.1.8"], "'ann'@'10.0.%'"),
            ("ann", &["10.1.1.8"], "'ann'@'10.%'"),
            ("ann", &["web.EXAMPLE.org"], "'ann'@'%.example.org'"),
            ("ann", &["::1"], "'ann'@'%'"),
            // An account for any user of the host is more specific than the user at any host.
            ("ann", &["localhost", "127.0.0.1"], "''@'localhost'"),
            ("bob", &["10.0.0.7"], "'bob'@''"),
            ("bob", &["192.168.7.7"], "''@'192.168.0.0/255.255.0.0'"),
        ] {
            assert_eq!(
                found(user, hosts).as_deref(),
                Some(name),
                "{user} {hosts:?}"
            );
        }
        assert_eq!(found("Bob", &["11.0.0.1"]), None);
        assert_eq!(found("root", &["11.0.0.1"]), None);
        assert!(admits(&accounts, &["11.0.0.1"]));
    }

    #[test]
    fn a_new_account_hides_those_that_come_after_it() {
        for (old, new, is_hidden) in [
            (("root", "%"), ("root", "127.0.0.1"), true),
            (("root", "localhost"), ("root", "127.0.0.1"), true),
            (("root", "localhost"), ("root", "10.0.0.7"), false),
            (("root", "localhost"), ("root", "%"), false),
            (("root", "localhost"), ("ann", "localhost"), false),
            (("root", "localhost"), ("", "127.0.0.1"), false),
            (("root", "localhost"), ("", "localhost"), false),
            (("root", "%"), ("", "localhost"), true),
            (("", "%"), ("root", "localhost"), true),
            (("root", "10.0.0.0/8"), ("root", "10.0.0.7"), true),
            (("root", "10.0.0.0/8"), ("root", "11.0.0.7"), false),
            (("root", "10.%"), ("root", "10.0.0.0/24"), true),
            (("root", "10.%"), ("root", "11.0.0.7"), false),
            (("root", "10.%"), ("root", "10.0.%"), true),
            (("root", "10.0.0.7"), ("root", "10.0.0.7"), false),
        ] {
            let accounts = accounts(&[old]);
            let new = AccountName::new(new.0, new.1);
            let hidden = hidden_by(&accounts, &new).count();
            assert_eq!(hidden == 1, is_hidden, "{old:?} {new}");
        }
    }

    #[test]
    fn the_best_pattern_of_a_database_decides() {
        let patterns: Vec<(String, u8)> = ["sho%", "s%", "a\\_b"]
            .iter()
            .zip(0..)
            .map(|(pattern, n)| (pattern.to_string(), n))
            .collect();
        let best = |database: &str| best_pattern(patterns.iter().map(|(p, n)| (p, *n)), database);
        assert_eq!(best("shops"), Some(0));
        assert_eq!(best("stock"), Some(1));
        assert_eq!(best("a_b"), Some(2));
        assert_eq!(best("axb"), None);
        assert_eq!(best("Shop"), None);
        let patterns = ["a_b".to_string(), "a\\_b".to_string()];
        let best = |database: &str| best_pattern(patterns.iter().zip(0..), database);
        assert_eq!((best("a_b"), best("axb")), (Some(1), Some(0)));
    }

    #[test]
    fn a_pattern_covers_what_fits_in_no_other_way() {
        for (pattern, asked, expected) in [
            ("shop", "shop", true),
            ("sho_", "shop", true),
            ("sho_", "sho_", true),
            ("sho_", "sho%", false),
            ("sho\\_", "sho_", false),
            ("sho\\_", "sho\\_", true),
            ("sho_", "sho\\_", true),
            ("sho%", "sho_", true),
            ("sho%", "sh%", false),
            ("s%p", "s%o_p", true),
            ("s%p", "s%o", false),
            ("%", "%_%", true),
            ("_%", "%", false),
            ("", "%", false),
        ] {
            assert_eq!(covers(pattern, asked), expected, "{pattern} {asked}");
        }
    }
}
