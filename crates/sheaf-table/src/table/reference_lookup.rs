//! What a foreign key looks up: in the parent table the rows that a reference names, in the child table the rows that
//! refer to a row.
//!
//! A statement changes rows by one thread. So the thread sums up how often it has looked into each index, and the
//! statement takes the sums when it ends ([`take_reference_lookups`]).

use std::cell::RefCell;
use std::ops::Bound;
use std::sync::Arc;

use sheaf_storage::{Direction, KeyRange, LockMode, ReadAhead, Settled, Transaction, Tree, TreeId};
use sheaf_types::number::greatest_bits;
use sheaf_types::{ColumnType, Value};

use crate::codec::key_codec::KeyLayout;
use crate::definition::foreign_key::leading_index;
use crate::error::Result;
use crate::table::Table;

/// Children that are collected before the first of them is changed.
const CHILDREN_AT_ONCE: usize = 1000;

/// Indexes whose lookups a thread counts until they are taken. One statement looks into fewer.
const MAX_COUNTED: usize = 1000;

thread_local! {
    static COUNTED: RefCell<Vec<(TreeId, u64)>> = const { RefCell::new(Vec::new()) };
}

fn count_lookup(tree: &Tree) {
    COUNTED.with_borrow_mut(|counted| {
        match counted.iter().position(|(known, _)| *known == tree.id()) {
            Some(at) => counted[at].1 += 1,
            None if counted.len() < MAX_COUNTED => counted.push((tree.id(), 1)),
            None => {}
        }
    });
}

/// How often this thread has looked into each index for foreign keys, since the last time that this was asked.
pub fn take_reference_lookups(mut each: impl FnMut(TreeId, u64)) {
    COUNTED.with_borrow_mut(|counted| {
        for (tree, lookups) in counted.drain(..) {
            each(tree, lookups);
        }
    });
}

/// Rows of a table with given values in the first columns of an index.
pub(crate) struct Lookup<'a> {
    pub(crate) tree: &'a Arc<Tree>,
    layout: &'a KeyLayout,
    /// The index is not the clustered one.
    is_secondary: bool,
    pub(crate) prefix: Vec<u8>,
}

impl<'a> Lookup<'a> {
    /// `None` if no index begins with these columns, or one of them is too short a BIT for its value.
    pub(crate) fn new<'v>(
        table: &'a Table,
        columns: &[usize],
        values: impl Iterator<Item = &'v Value>,
    ) -> Option<Lookup<'a>> {
        let index = leading_index(&table.definition, columns)?;
        let (tree, layout) = match index {
            None => (&table.clustered, &table.clustered_layout),
            Some(position) => (
                &table.secondary[position],
                &table.secondary_layouts[position],
            ),
        };
        let mut prefix = Vec::new();
        for (part, value) in values.enumerate() {
            let ty = columns
                .get(part)
                .map(|at| &table.definition.columns[*at].ty);
            if let (Some(length), Value::UInt(bits)) = (ty.and_then(ColumnType::bit_length), value)
                && *bits > greatest_bits(length)
            {
                return None;
            }
            layout.encode_part(part, value.into(), &mut prefix);
        }
        Some(Lookup {
            tree,
            layout,
            is_secondary: index.is_some(),
            prefix,
        })
    }

    pub(crate) fn finds_any(&self) -> Result<bool> {
        count_lookup(self.tree);
        Ok(self.tree.contains_prefix(&self.prefix)?.is_some())
    }

    /// A key of a row that is there whatever becomes of the transactions that are changing some.
    pub(crate) fn settled(&self, transaction: &mut Transaction) -> Result<Option<Vec<u8>>> {
        count_lookup(self.tree);
        loop {
            match self.tree.settled_prefix(transaction, &self.prefix)? {
                Settled::Found(key) => return Ok(Some(key)),
                Settled::Absent => return Ok(None),
                Settled::Unknown(unsettled) => transaction.wait_until_settled(&unsettled)?,
            }
        }
    }

    /// [`Transaction::keep_absent`], for a child whose lock of the reference goes while it waits.
    pub(crate) fn keep_absent(&self, transaction: &mut Transaction) -> Result<bool> {
        transaction.unlock_reference(self.tree, &self.prefix);
        let is_kept = transaction.keep_absent(self.tree, &self.prefix)?;
        transaction.lock_reference(self.tree, &self.prefix, LockMode::Shared)?;
        Ok(is_kept)
    }

    /// As [`Self::settled`], for a child whose lock of the reference goes while it waits: the transaction that is
    /// waited for may want it next.
    pub(crate) fn finds_parent(&self, transaction: &mut Transaction) -> Result<bool> {
        count_lookup(self.tree);
        loop {
            match self.tree.settled_prefix(transaction, &self.prefix)? {
                Settled::Found(_) => return Ok(true),
                Settled::Absent => return Ok(false),
                Settled::Unknown(unsettled) => {
                    transaction.unlock_reference(self.tree, &self.prefix);
                    transaction.wait_until_settled(&unsettled)?;
                    transaction.lock_reference(self.tree, &self.prefix, LockMode::Shared)?;
                }
            }
        }
    }

    /// Whether the row has the values that are looked up in these columns.
    pub(crate) fn is_of(&self, table: &Table, columns: &[usize], row: &[Value]) -> bool {
        let values = columns.iter().map(|column| &row[*column]);
        Lookup::new(table, columns, values).is_some_and(|lookup| lookup.prefix == self.prefix)
    }
}

/// Primary keys of the rows that a lookup finds, some at a time: they may be changed before the next are asked for.
pub(crate) struct Children<'l, 'a> {
    lookup: &'l Lookup<'a>,
    /// The last entry that was given.
    after: Option<Vec<u8>>,
    ended: bool,
}

impl<'l, 'a> Children<'l, 'a> {
    pub(crate) fn new(lookup: &'l Lookup<'a>) -> Children<'l, 'a> {
        Children {
            lookup,
            after: None,
            ended: false,
        }
    }

    pub(crate) fn next(&mut self) -> Result<Option<Vec<Vec<u8>>>> {
        if self.ended {
            return Ok(None);
        }
        let Lookup {
            tree,
            layout,
            is_secondary,
            prefix,
        } = self.lookup;
        let mut range = KeyRange::prefix(prefix);
        if let Some(after) = self.after.take() {
            range.lower = Bound::Excluded(after);
        }
        let mut cursor = tree.scan(range, Direction::Forward, ReadAhead::Off);
        let mut keys = Vec::new();
        let mut entry = Vec::new();
        self.ended = true;
        'leaves: while let Some(leaf) = cursor.next_leaf()? {
            for at in 0..leaf.len() {
                if keys.len() == CHILDREN_AT_ONCE {
                    self.ended = false;
                    break 'leaves;
                }
                leaf.key_into(at, &mut entry);
                let mut key = Vec::new();
                match is_secondary {
                    true => layout.primary_key_into(&entry, &mut key)?,
                    false => key.extend_from_slice(&entry),
                }
                keys.push(key);
            }
        }
        self.after = Some(entry);
        Ok((!keys.is_empty()).then_some(keys))
    }
}
