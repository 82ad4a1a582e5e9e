//! Sets of GTIDs: what GTID_SUBSET and GTID_SUBTRACT compute with, and what PREVIOUS_GTIDS holds.

use std::collections::BTreeMap;
use std::fmt;

use super::{Gtid, Interval, Intervals, Tag, Uuid};

/// A set of GTIDs. Its text has one line for each server, in the order of their uuids.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GtidSet {
    /// No intervals are empty, and no server is without tags.
    servers: BTreeMap<Uuid, BTreeMap<Tag, Intervals>>,
}

/// PREVIOUS_GTIDS with tags: the first and the last byte of the number of servers.
const TAGGED_FORMAT: u8 = 1;

impl GtidSet {
    pub fn new() -> GtidSet {
        GtidSet::default()
    }

    pub fn is_empty(&self) -> bool {
        self.servers.is_empty()
    }

    pub fn contains(&self, gtid: Gtid) -> bool {
        let intervals = self.intervals(gtid.server(), &Tag::default());
        intervals.is_some_and(|intervals| intervals.contains(gtid.number()))
    }

    /// The numbers of a server under a tag.
    pub fn intervals(&self, server: Uuid, tag: &Tag) -> Option<&Intervals> {
        self.servers.get(&server)?.get(tag)
    }

    pub fn add(&mut self, gtid: Gtid) {
        let (first, last) = (gtid.number(), gtid.number());
        self.add_interval(gtid.server(), Tag::default(), Interval { first, last });
    }

    /// Adds an interval of a server. An empty one adds nothing.
    pub fn add_interval(&mut self, server: Uuid, tag: Tag, interval: Interval) {
        if interval.first <= interval.last {
            let tags = self.servers.entry(server).or_default();
            tags.entry(tag).or_default().add(interval);
        }
    }

    /// Adds all of another set.
    pub fn union(&mut self, other: &GtidSet) {
        for (server, tag, intervals) in other.series() {
            for interval in intervals.iter() {
                self.add_interval(server, tag.clone(), interval);
            }
        }
    }

    /// GTID_SUBTRACT: takes all of another set out.
    pub fn subtract(&mut self, other: &GtidSet) {
        self.servers.retain(|server, tags| {
            tags.retain(|tag, intervals| {
                if let Some(taken) = other.intervals(*server, tag) {
                    intervals.subtract(taken);
                }
                !intervals.is_empty()
            });
            !tags.is_empty()
        });
    }

    /// GTID_SUBSET: whether all of this set is in the other.
    pub fn is_subset(&self, other: &GtidSet) -> bool {
        self.series().all(|(server, tag, intervals)| {
            let found = other.intervals(server, tag);
            found.is_some_and(|found| intervals.is_subset(found))
        })
    }

    /// The numbers of each server and tag.
    fn series(&self) -> impl Iterator<Item = (Uuid, &Tag, &Intervals)> {
        self.servers.iter().flat_map(|(server, tags)| {
            tags.iter()
                .map(move |(tag, intervals)| (*server, tag, intervals))
        })
    }

    /// The set that a body of PREVIOUS_GTIDS has. `None`: it is none.
    pub fn read(body: &[u8]) -> Option<GtidSet> {
        let (head, mut rest) = body.split_first_chunk::<8>()?;
        let is_tagged = head[7] == TAGGED_FORMAT;
        let count = u64::from_le_bytes(*head);
        let count = match is_tagged {
            true => count << 8 >> 16,
            false => count,
        };
        let mut set = GtidSet::new();
        for _ in 0..count {
            let server = Uuid(*take(&mut rest)?);
            let mut tag = Tag::default();
            if is_tagged {
                let [length] = take(&mut rest)?;
                let (text, behind) = rest.split_at_checked(usize::from(length >> 1))?;
                tag = Tag::new(std::str::from_utf8(text).ok()?)?;
                rest = behind;
            }
            for _ in 0..u64::from_le_bytes(*take(&mut rest)?) {
                let first = u64::from_le_bytes(*take(&mut rest)?);
                let behind = u64::from_le_bytes(*take(&mut rest)?);
                let last = behind.checked_sub(1)?;
                set.add_interval(server, tag.clone(), Interval { first, last });
            }
        }
        rest.is_empty().then_some(set)
    }

    /// The body of PREVIOUS_GTIDS, in which form a follower sends the set, too.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.put(&mut bytes);
        bytes
    }

    /// Appends the body of PREVIOUS_GTIDS: a number of series, and for each the server, the tag where there are tags,
    /// and its intervals with the number behind the last one.
    pub(crate) fn put(&self, out: &mut Vec<u8>) {
        let is_tagged = self.series().any(|(_, tag, _)| !tag.is_empty());
        let count = self.series().count() as u64;
        let head = match is_tagged {
            true => u64::from(TAGGED_FORMAT) << 56 | count << 8 | u64::from(TAGGED_FORMAT),
            false => count,
        };
        out.extend_from_slice(&head.to_le_bytes());
        for (server, tag, intervals) in self.series() {
            out.extend_from_slice(&server.0);
            if is_tagged {
                // In the library that MySQL writes it with, a number below 128 is twice itself in one byte.
                out.push((tag.as_str().len() as u8) << 1);
                out.extend_from_slice(tag.as_str().as_bytes());
            }
            out.extend_from_slice(&(intervals.len() as u64).to_le_bytes());
            for interval in intervals.iter() {
                out.extend_from_slice(&interval.first.to_le_bytes());
                out.extend_from_slice(&interval.last.saturating_add(1).to_le_bytes());
            }
        }
    }
}

/// Takes bytes from the left.
fn take<'a, const N: usize>(rest: &mut &'a [u8]) -> Option<&'a [u8; N]> {
    let (taken, behind) = rest.split_first_chunk()?;
    *rest = behind;
    Some(taken)
}

impl fmt::Display for GtidSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, (server, tags)) in self.servers.iter().enumerate() {
            if at > 0 {
                f.write_str(",\n")?;
            }
            write!(f, "{server}")?;
            for (tag, intervals) in tags {
                if !tag.is_empty() {
                    write!(f, ":{}", tag.as_str())?;
                }
                for Interval { first, last } in intervals.iter() {
                    match first == last {
                        true => write!(f, ":{first}")?,
                        false => write!(f, ":{first}-{last}")?,
                    }
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: &str = "3e11fa47-71ca-11e1-9e33-c80aa9429562";
    const B: &str = "00000000-0000-0000-0000-0000000000aa";

    fn set(text: &str) -> GtidSet {
        let text = text.replace('A', A).replace('B', B);
        text.parse().unwrap()
    }

    /// What MySQL 9.7 prints of the sets.
    #[test]
    fn sets_print_in_one_form() {
        for (text, printed) in [
            ("", ""),
            (" , ,,", ""),
            ("A", ""),
            ("A:5-3", ""),
            ("A:tag", ""),
            ("A:0001", "A:1"),
            ("A:1:3-5:4-9", "A:1:3-9"),
            ("A:1-2:3", "A:1-3"),
            ("A:1,A:2", "A:1-2"),
            ("A: 1 - 5 : 7 ,B : 2", "B:2,\nA:1-5:7"),
            ("A:1,,B:3,", "B:3,\nA:1"),
            ("{A}:1", "A:1"),
            ("A:9223372036854775806", "A:9223372036854775806"),
            ("A:tag:1", "A:tag:1"),
            ("A:1:tag:3:5", "A:1:tag:3:5"),
            ("A:1:Tag_9:3:5:b:7:1-9", "A:1:b:1-9:tag_9:3:5"),
            ("A:b:1,A:a:2,A:9", "A:9:a:2:b:1"),
            ("A:tag:5:tag:6", "A:tag:5-6"),
        ] {
            // Tags with a capital letter stand for no uuid.
            let text = text.replace('A', A).replace('B', B);
            let printed = printed.replace('A', A).replace('B', B);
            let read: GtidSet = text.parse().unwrap();
            assert_eq!(read.to_string(), printed, "{text}");
            assert_eq!(printed.parse::<GtidSet>().unwrap(), read);
        }
    }

    #[test]
    fn sets_are_added_subtracted_and_compared() {
        let mut sum = set("A:1-10:20,B:tag:1-3");
        sum.union(&set("A:11-19:30,B:1"));
        assert_eq!(sum, set("A:1-20:30,B:1:tag:1-3"));
        sum.subtract(&set("A:5-6:30-40,B:tag:1-9"));
        assert_eq!(sum, set("A:1-4:7-20,B:1"));
        assert!(set("A:2-3,B:1").is_subset(&sum));
        assert!(!set("A:4-5").is_subset(&sum));
        assert!(!set("A:tag:2").is_subset(&sum), "a tag has its own numbers");
        assert!(GtidSet::new().is_subset(&GtidSet::new()));
        let all = sum.clone();
        sum.subtract(&all);
        assert!(sum.is_empty());
    }

    /// The bytes that MySQL 9.7 wrote for the set.
    #[test]
    fn sets_with_tags_have_them_in_previous_gtids() {
        let mut out = Vec::new();
        set("B:7:tag:5,00000000-0000-0000-0000-0000000000ab:9").put(&mut out);
        let number = |number: u8| [number, 0, 0, 0, 0, 0, 0, 0];
        let server = |last: u8| {
            let mut uuid = [0; 16];
            uuid[15] = last;
            uuid
        };
        let mut golden = vec![1, 3, 0, 0, 0, 0, 0, 1];
        for (last, tag, first) in [
            (0xAA, &b"\x00"[..], 7),
            (0xAA, b"\x06tag", 5),
            (0xAB, b"\x00", 9),
        ] {
            golden.extend(server(last));
            golden.extend(tag);
            golden.extend([number(1), number(first), number(first + 1)].concat());
        }
        assert_eq!(out, golden);
        let tagged = set("B:7:tag:5,00000000-0000-0000-0000-0000000000ab:9");
        assert_eq!(GtidSet::read(&golden), Some(tagged));
        for end in 0..golden.len() {
            assert_eq!(GtidSet::read(&golden[..end]), None);
        }
    }

    #[test]
    fn commits_make_one_interval() {
        let server: Uuid = A.parse().unwrap();
        let mut done = GtidSet::new();
        for number in 1..=1000 {
            done.add(Gtid::new(server, number).unwrap());
        }
        assert_eq!(done.to_string(), format!("{A}:1-1000"));
        assert!(done.contains(Gtid::new(server, 1000).unwrap()));
        assert!(!done.contains(Gtid::new(server, 1001).unwrap()));
    }
}
