//! How much of a tree is in memory: read off the page table, without I/O and without making anything look used.
//!
//! The nodes above the leaves of a range list its leaves, and the page table says of each whether it is there. Of a
//! large range a few of these nodes are looked at, spread evenly. A node that is not in memory itself is not read. Its
//! leaves count as absent, because every reader of one of them used the node at least as recently.
//!
//! Of all trees together the answer comes from the frames: each holds a page, and the page says to which tree it
//! belongs.

use std::collections::BTreeMap;

use crate::error::Result;
use crate::key_range::KeyRange;
use crate::node::{Node, PageBytes, PageImage};
use crate::page::{TreeId, header};
use crate::storage::Storage;
use crate::tree::Tree;
use crate::tree::estimate::{children_in, start_of};
use crate::tree::search::{Descent, Interruption, Target, new_page_image};

/// Nodes of one level that a question about a range looks at, at most about twice as many.
const SAMPLE_NODES: usize = 16;

/// What the header of a page that belongs to no tree says.
const NO_TREE: TreeId = TreeId(0);

/// Pages of a tree in the buffer pool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Residency {
    /// Leaves and inner nodes in memory.
    pub resident: u64,
    /// Those of them that differ from their copy on disk.
    pub dirty: u64,
}

/// What became of a look at a node.
enum Look {
    Copied,
    NotInMemory,
    NoSuchLevel,
}

impl Tree {
    /// Share (0 to 1) of the leaves of `range` that are in the buffer pool; of a large range, by a sample. Reads what
    /// is in memory only.
    pub fn resident_share(&self, range: &KeyRange) -> Result<f64> {
        if range.is_empty() {
            return Ok(1.0);
        }
        let pool = &self.store.pool;
        if !pool.is_resident(self.root) {
            return Ok(0.0);
        }
        let mut share = 1.0;
        let mut page = new_page_image();
        let mut keys = vec![start_of(range)];
        for level in (1..=self.root_level()?).rev() {
            let picks = SAMPLE_NODES.div_ceil(keys.len());
            let (mut seen, mut next) = (0, Vec::new());
            let (mut leaves, mut resident) = (0u64, 0u64);
            for key in &keys {
                match self.look_at_node(Target::Key(key), level, &mut page)? {
                    // The tree has just lost a level; on the one below it is found.
                    Look::NoSuchLevel => {
                        next.push(key.clone());
                        seen += 1;
                        continue;
                    }
                    Look::NotInMemory => continue,
                    Look::Copied => seen += 1,
                }
                let node = Node(&page);
                let children = children_in(node, range);
                if level == 1 {
                    leaves += children.len() as u64;
                    resident += children
                        .filter(|&slot| pool.is_resident(node.child(slot)))
                        .count() as u64;
                } else {
                    next.extend(spread(children, picks).map(|slot| node.key(slot)));
                }
            }
            share *= seen as f64 / keys.len() as f64;
            if seen == 0 {
                return Ok(0.0);
            }
            if level == 1 && leaves > 0 {
                share *= resident as f64 / leaves as f64;
            }
            keys = next;
        }
        Ok(share)
    }

    /// A private copy of the node of `level` for `target`, if the way to it is in memory.
    fn look_at_node(&self, target: Target<'_>, level: u8, copy: &mut PageImage) -> Result<Look> {
        let pool = &self.store.pool;
        self.retry(|_| {
            let descent = self.descend(target, level, |page| pool.look_at(page))?;
            Ok::<_, Interruption>(match descent {
                Descent::At(guard) => {
                    guard.copy_out(0, copy);
                    guard.validate()?;
                    Look::Copied
                }
                Descent::Stopped => Look::NotInMemory,
                Descent::NoSuchLevel => Look::NoSuchLevel,
            })
        })
    }
}

/// At most `picks` of the slots, evenly spread.
fn spread(slots: std::ops::Range<usize>, picks: usize) -> impl Iterator<Item = usize> {
    let picks = picks.min(slots.len());
    (0..picks).map(move |pick| slots.start + (2 * pick + 1) * slots.len() / (2 * picks))
}

impl Storage {
    /// The trees of which pages are in memory, and how many pages. Looks at every frame; pages that are being changed
    /// at this moment are left out.
    pub fn residency(&self) -> BTreeMap<TreeId, Residency> {
        let mut trees: BTreeMap<TreeId, Residency> = BTreeMap::new();
        self.store().pool.for_each_resident(|page, is_dirty| {
            let tree = TreeId(page.u64_at(header::TREE_ID));
            if page.validate().is_ok() && tree != NO_TREE {
                let residency = trees.entry(tree).or_default();
                residency.resident += 1;
                residency.dirty += u64::from(is_dirty);
            }
        });
        trees
    }
}
