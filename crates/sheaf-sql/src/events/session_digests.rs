//! What a session has counted of its statements and not handed over yet.
//!
//! A statement that comes again is found by its text without literals, so its digest is made once:
//!
//! ```text
//!   SELECT c FROM t WHERE id = ?   -->  3        digests   [ .., .., .., (SELECT `c` FROM `t` ..., sums) ]
//! ```

use std::sync::Arc;

use sheaf_frontend::digest::Digest;

use super::digest_sums::DigestSums;
use super::digest_table::DigestTable;
use super::local_sums::{LocalSums, Slot};

/// Digests that a session has sums of. When there are more it hands them over.
const MAX_DIGESTS: usize = 32;
/// Texts that it knows the digests of.
const MAX_TEXTS: usize = 64;
/// Longer texts are not kept.
const MAX_TEXT_BYTES: usize = 4 << 10;

/// See the module's comment.
pub(crate) struct SessionDigests<C> {
    local: Arc<LocalSums>,
    /// By text, those that come often in front: a session has few, and hashing takes longer than the first of them.
    known: Vec<(Box<str>, usize)>,
    /// How the texts are read, and in which schema.
    circumstances: Option<C>,
    /// How often the table had been emptied when the sums were looked for last.
    emptied: u64,
}

impl<C: PartialEq> SessionDigests<C> {
    pub(crate) fn new(local: Arc<LocalSums>) -> SessionDigests<C> {
        SessionDigests {
            local,
            known: Vec::new(),
            circumstances: None,
            emptied: 0,
        }
    }

    pub(crate) fn local(&self) -> &LocalSums {
        &self.local
    }

    /// Whether texts mean what they meant. If not, what was known of them is forgotten.
    pub(crate) fn keep_current(
        &mut self,
        is_same: impl FnOnce(&C) -> bool,
        now: impl FnOnce() -> C,
    ) {
        if !self.circumstances.as_ref().is_some_and(is_same) {
            self.known.clear();
            self.circumstances = Some(now());
        }
    }

    /// Where the sums of a statement are. `text` is what it is known by, if it comes again.
    pub(crate) fn slot(
        &mut self,
        table: &DigestTable,
        schema: Option<&str>,
        text: Option<&str>,
        digest: impl FnOnce() -> Digest,
    ) -> usize {
        if self.emptied != table.emptied() {
            self.emptied = table.emptied();
            self.forget_what_had_no_place(table);
        }
        if let Some(slot) = text.and_then(|text| self.known_slot(text)) {
            return slot;
        }
        let digest = digest();
        let mut slots = self.local.lock();
        let is_it = |slot: &Slot| {
            let name = slot.name.as_deref();
            name.is_some_and(|name| name.digest == digest && name.schema.as_deref() == schema)
        };
        let found = slots.iter().position(is_it);
        let slot = match found {
            Some(slot) => slot,
            None => {
                let name = table.name_of(schema, digest);
                let rest = slots.iter().position(|slot| slot.name.is_none());
                match rest.filter(|_| name.is_none()) {
                    Some(slot) => slot,
                    None => {
                        if slots.len() >= MAX_DIGESTS {
                            hand_over(&mut slots, table);
                            self.known.clear();
                        }
                        slots.push(Slot {
                            name,
                            sums: DigestSums::default(),
                        });
                        slots.len() - 1
                    }
                }
            }
        };
        drop(slots);
        if let Some(text) = text.filter(|text| text.len() <= MAX_TEXT_BYTES) {
            if self.known.len() >= MAX_TEXTS {
                self.known.clear();
            }
            self.known.push((text.into(), slot));
        }
        slot
    }

    /// Brings the text half way to the front.
    fn known_slot(&mut self, text: &str) -> Option<usize> {
        let at = self.known.iter().position(|(known, _)| **known == *text)?;
        let slot = self.known[at].1;
        self.known.swap(at, at / 2);
        Some(slot)
    }

    /// The table was emptied: digests without a place are looked for again.
    fn forget_what_had_no_place(&mut self, table: &DigestTable) {
        let mut slots = self.local.lock();
        if slots.iter().any(|slot| slot.name.is_none()) {
            hand_over(&mut slots, table);
            self.known.clear();
        }
    }

    /// Hands all sums over.
    pub(crate) fn hand_over(&mut self, table: &DigestTable) {
        self.known = Vec::new();
        let mut slots = self.local.lock();
        hand_over(&mut slots, table);
        *slots = Vec::new();
    }
}

fn hand_over(slots: &mut Vec<Slot>, table: &DigestTable) {
    for slot in slots.drain(..) {
        table.add(slot.name.as_ref(), &slot.sums);
    }
}

#[cfg(test)]
mod tests {
    use sheaf_frontend::digest::Reading;

    use super::super::StatementEvent;
    use super::*;

    fn run(session: &mut SessionDigests<u8>, table: &DigestTable, text: &str) {
        let digest = || Digest::of(text, Reading::default(), 1024);
        let slot = session.slot(table, None, Some(text), digest);
        session.local.add(slot, &StatementEvent::default(), |_| {});
    }

    #[test]
    fn sums_are_seen_before_and_after_they_are_handed_over() {
        let table = DigestTable::new(1000, 1024);
        let mut session = SessionDigests::new(Arc::default());
        for number in 0..100 {
            run(&mut session, &table, &format!("select a{}", number % 50));
        }
        let local = Arc::clone(&session.local);
        let counts = || -> Vec<u64> {
            let rows = table.rows(std::iter::once(&*local));
            rows.iter().map(|(_, sums)| sums.count).collect()
        };
        assert_eq!(counts(), vec![2; 50]);
        session.hand_over(&table);
        assert_eq!(counts(), vec![2; 50]);
        assert!(local.lock().is_empty());
    }

    #[test]
    fn a_digest_is_made_once_while_its_text_means_the_same() {
        let table = DigestTable::new(1000, 1024);
        let mut session: SessionDigests<u8> = SessionDigests::new(Arc::default());
        let mut made = 0;
        for circumstances in [1, 1, 2] {
            session.keep_current(|known| *known == circumstances, || circumstances);
            session.slot(&table, None, Some("select 1"), || {
                made += 1;
                Digest::of("select 1", Reading::default(), 1024)
            });
        }
        assert_eq!(made, 2);
    }

    #[test]
    fn what_had_no_place_has_one_when_the_table_is_cleared() {
        let table = DigestTable::new(1, 1024);
        let mut session = SessionDigests::new(Arc::default());
        for text in ["select 1", "select a"] {
            run(&mut session, &table, text);
        }
        table.clear(std::iter::once(session.local()));
        run(&mut session, &table, "select a");
        let rows = table.rows(std::iter::once(session.local()));
        let [(Some(name), sums)] = &rows[..] else {
            panic!("{} rows", rows.len());
        };
        assert_eq!((name.digest.text.as_str(), sums.count), ("SELECT `a`", 1));
    }

    #[test]
    fn what_is_cleared_is_not_handed_over() {
        let table = DigestTable::new(1000, 1024);
        let mut session = SessionDigests::new(Arc::default());
        run(&mut session, &table, "select 1");
        table.clear(std::iter::once(session.local()));
        run(&mut session, &table, "select 1");
        session.hand_over(&table);
        let rows = table.rows(std::iter::empty());
        let counts: Vec<u64> = rows.iter().map(|(_, sums)| sums.count).collect();
        assert_eq!(counts, [1]);
    }
}
