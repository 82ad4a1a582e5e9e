//! What the optimizer asks: how many entries in a range, and where to cut it.
//!
//! All answers come from inner nodes, plus at most the two leaves at the ends of the range.
//!
//! An *index dive* follows the paths to both ends. Where the paths have parted, the children between them are counted.
//! On the level of the leaves the two end leaves are counted exactly. Every leaf between them is taken to hold as many
//! entries as the average leaf of the tree. Below a parting on a higher level, every node between the paths is taken to
//! have as many children as the average node.

use std::ops::Bound;

use crate::error::Result;
use crate::key_range::KeyRange;
use crate::node::{Node, NodeView, PageBytes};
use crate::page::PageId;
use crate::tree::Tree;
use crate::tree::search::{Target, new_page_image};

/// Cuts are chosen among at least this many separators for each part, if the tree has them.
const SEPARATORS_PER_PART: usize = 16;

/// The end of a path through the tree: where in the node a bound lies.
struct Step {
    node: PageId,
    /// Children (in a leaf: live entries) before the bound, and in all.
    before: u64,
    count: u64,
}

impl Tree {
    /// Estimated number of entries in `range`, by an index dive.
    pub fn estimate_entries(&self, range: &KeyRange) -> Result<u64> {
        if range.is_empty() {
            return Ok(0);
        }
        let counts = self.counts.read();
        if *range == KeyRange::all() {
            return Ok(counts.entries);
        }
        if let Some(entries) = self.count_on_one_leaf(range)? {
            return Ok(entries);
        }
        let lower = self.path_to(lower_target(range), &range.lower, true)?;
        let upper = self.path_to(upper_target(range), &range.upper, false)?;
        // A root that split between both dives makes the paths differ in length; the estimate may suffer.
        let height = lower.len().min(upper.len());
        let entries_per_leaf = average(counts.entries, counts.leaf_pages);
        let leaves_per_parent = average(counts.leaf_pages, counts.inner_pages).max(1.0);

        // From the root (last) down to the leaf (0): nodes of each level that lie between the paths.
        let mut between = 0.0;
        let mut parted = false;
        for level in (1..height).rev() {
            let (low, high) = (&lower[level], &upper[level]);
            between *= leaves_per_parent;
            if parted {
                between += (low.count - low.before - 1) as f64 + high.before as f64;
            } else if high.before > low.before {
                parted = true;
                between += (high.before - low.before - 1) as f64;
            }
        }
        let (low, high) = (&lower[0], &upper[0]);
        if low.node == high.node {
            return Ok(high.before.saturating_sub(low.before));
        }
        let ends = (low.count - low.before) + high.before;
        Ok(ends + (between * entries_per_leaf) as u64)
    }

    /// The number of entries in a range that ends on the leaf on which it begins; none if it does not.
    fn count_on_one_leaf(&self, range: &KeyRange) -> Result<Option<u64>> {
        let (Bound::Included(upper) | Bound::Excluded(upper)) = &range.upper else {
            return Ok(None);
        };
        self.retry(|failures| {
            let leaf = self.find_leaf(lower_target(range), failures)?;
            let view = leaf.view();
            let entries = view.covers(upper).then(|| {
                let slots =
                    leaf_slot(&view, &range.lower, true)..leaf_slot(&view, &range.upper, false);
                slots.filter(|&slot| !view.is_ghost(slot)).count() as u64
            });
            leaf.validate()?;
            Ok(entries)
        })
    }

    /// The path to one end of a range, from the leaf up. `before` of an inner node is the slot that the path takes.
    fn path_to(
        &self,
        target: Target<'_>,
        bound: &Bound<Vec<u8>>,
        is_lower: bool,
    ) -> Result<Vec<Step>> {
        let mut path = Vec::new();
        let mut level = 0;
        loop {
            let step = self.retry(|failures| {
                let Some(node) = self.find(target, level, failures)? else {
                    return Ok(None);
                };
                let view = node.view();
                let step = if level > 0 {
                    Step {
                        node: node.guard().page_id(),
                        before: target.child_slot(&view) as u64,
                        count: view.count() as u64,
                    }
                } else {
                    let position = leaf_slot(&view, bound, is_lower);
                    let live = |slots: std::ops::Range<usize>| {
                        slots.filter(|&slot| !view.is_ghost(slot)).count() as u64
                    };
                    let before = live(0..position);
                    Step {
                        node: node.guard().page_id(),
                        before,
                        count: before + live(position..view.count()),
                    }
                };
                node.validate()?;
                Ok(Some(step))
            })?;
            match step {
                Some(step) => path.push(step),
                None => return Ok(path),
            }
            level += 1;
        }
    }

    /// At most `parts - 1` keys, ascending and inside the range, that cut it into pieces with about the same number
    /// of leaves.
    pub fn split_points(&self, range: &KeyRange, parts: usize) -> Result<Vec<Vec<u8>>> {
        if parts < 2 || range.is_empty() {
            return Ok(Vec::new());
        }
        // From the root down: the first level with enough separators in the range is good enough.
        let (mut level, mut separators) = (self.root_level()? + 1, 0);
        while level > 1 && separators < parts * SEPARATORS_PER_PART {
            (level, separators) = (level - 1, 0);
            self.visit_separators(range, level, &mut |_, slots| separators += slots.len())?;
        }
        let cuts = (parts - 1).min(separators);
        let wanted = |cut: usize| cut * (separators + 1) / (cuts + 1) - 1;
        // Only those that are cut at are copied: a level has hundreds.
        let mut points: Vec<Vec<u8>> = Vec::with_capacity(cuts);
        let (mut cut, mut before) = (1, 0);
        if cuts > 0 {
            self.visit_separators(range, level, &mut |node, slots| {
                while cut <= cuts && wanted(cut) < before + slots.len() {
                    points.push(node.key(slots.start + wanted(cut) - before));
                    cut += 1;
                }
                before += slots.len();
            })?;
        }
        points.dedup();
        Ok(points)
    }

    /// Calls `visit` for each node of a level that the range meets, with the slots whose separators lie inside the
    /// range.
    fn visit_separators(
        &self,
        range: &KeyRange,
        level: u8,
        visit: &mut dyn FnMut(Node<'_>, std::ops::Range<usize>),
    ) -> Result<()> {
        let mut page = new_page_image();
        let mut next = Some(start_of(range));
        while let Some(key) = next {
            if !self.copy_node(Target::Key(&key), level, &mut page)? {
                break;
            }
            let node = Node(&page);
            let mut slots = children_in(node, range);
            // Those of the outermost children may lie outside.
            while !slots.is_empty() && !is_inside(range, &node.key(slots.start)) {
                slots.start += 1;
            }
            while !slots.is_empty() && !is_inside(range, &node.key(slots.end - 1)) {
                slots.end -= 1;
            }
            visit(node, slots);
            next = node
                .high_fence()
                .map(<[u8]>::to_vec)
                .filter(|fence| !range.is_above(fence));
        }
        Ok(())
    }
}

/// The slot of a leaf at which a range begins, or before which it ends.
fn leaf_slot<P: PageBytes>(
    view: &NodeView<'_, P>,
    bound: &Bound<Vec<u8>>,
    is_lower: bool,
) -> usize {
    match bound {
        Bound::Included(key) => {
            let position = view.lower_bound(key);
            position.slot + usize::from(position.found && !is_lower)
        }
        Bound::Excluded(key) => {
            let position = view.lower_bound(key);
            position.slot + usize::from(position.found && is_lower)
        }
        Bound::Unbounded if is_lower => 0,
        Bound::Unbounded => view.count(),
    }
}

/// Whether a cut at `key` leaves something of the range on both sides.
fn is_inside(range: &KeyRange, key: &[u8]) -> bool {
    let above_lower = match &range.lower {
        Bound::Included(lower) | Bound::Excluded(lower) => key > lower.as_slice(),
        Bound::Unbounded => !key.is_empty(),
    };
    above_lower && !range.is_above(key)
}

/// The children of an inner node that may hold keys of the range.
pub(super) fn children_in(node: Node<'_>, range: &KeyRange) -> std::ops::Range<usize> {
    let view = node.view();
    let first = match &range.lower {
        Bound::Included(key) | Bound::Excluded(key) if view.covers(key) => view.child_slot(key),
        _ => 0,
    };
    let last = match &range.upper {
        Bound::Included(key) if view.covers(key) => view.child_slot(key),
        Bound::Excluded(key) if view.covers(key) => view.child_slot_before(key),
        _ => node.count() - 1,
    };
    first..last.max(first) + 1
}

pub(super) fn start_of(range: &KeyRange) -> Vec<u8> {
    match &range.lower {
        Bound::Included(key) | Bound::Excluded(key) => key.clone(),
        Bound::Unbounded => Vec::new(),
    }
}

fn lower_target(range: &KeyRange) -> Target<'_> {
    match &range.lower {
        Bound::Included(key) | Bound::Excluded(key) => Target::Key(key),
        Bound::Unbounded => Target::Key(&[]),
    }
}

fn upper_target(range: &KeyRange) -> Target<'_> {
    match &range.upper {
        Bound::Included(key) => Target::Key(key),
        Bound::Excluded(key) => Target::Before(key),
        Bound::Unbounded => Target::Last,
    }
}

fn average(total: u64, of: u64) -> f64 {
    if of == 0 {
        0.0
    } else {
        total as f64 / of as f64
    }
}
