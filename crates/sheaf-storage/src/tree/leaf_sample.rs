//! A random sample of a tree's leaves, without a walk through the tree.
//!
//! The tree is gone through level by level. The children of all nodes that were read on one level are the lots from
//! which the nodes to be read on the next level are drawn:
//!
//! ```text
//!  level 3         1 node  read          lists      20 children: all are drawn
//!  level 2        20 nodes read          list   14,000 children: 1,000 are drawn
//!  level 1     1,000 nodes read          list  700,000 children: 1,000 are drawn
//!  leaves      1,000 of 9,800,000
//! ```
//!
//! So a sample of n leaves reads at most n nodes of each level: a tree of 100 GB takes as long as one of 1 GB. Every
//! leaf has the same chance, because a node with twice as many children holds twice as many lots. (A descent that takes
//! any child of each node on its way prefers leaves with few siblings; Olken and Rotem, "Random Sampling from B+
//! Trees", VLDB 1989, reject leaves to correct that.) One bias remains: the lots of a level are not the same number in
//! every sample. This favours leaves with few siblings by about one part in the number of nodes drawn above them, and
//! only where nodes above the leaves had to be drawn.
//!
//! Lots are drawn as they are listed (Vitter's algorithm R, "Random Sampling with a Reservoir", 1985), so that only
//! what was drawn is kept. A lot is a key, and leaves are found by descending with it, whatever was split or merged in
//! the meantime.
//!
//! Leaves are read once, in key order, with the device's queue kept full; so the pool treats them as it does those of a
//! scan, and evicts them first.

use std::sync::Arc;

use crate::error::Result;
use crate::key_range::KeyRange;
use crate::node::Node;
use crate::page::PageId;
use crate::random::Random;
use crate::tree::cursor::{LeafCursor, LeafEntries};
use crate::tree::search::{Target, new_page_image};
use crate::tree::{Direction, ReadAhead, Tree};

/// Pages that are requested together; in a small pool at most an eighth of its frames.
const REQUEST_PAGES: usize = 64;

/// A share of the frames that requested pages may take.
const REQUEST_FRAMES_DIVISOR: u64 = 8;

/// A node that was drawn: the key with which it is found, and the page where it was then.
struct Drawn {
    key: Vec<u8>,
    page: PageId,
}

/// Some of the lots of one level.
struct Reservoir {
    most: usize,
    listed: u64,
    drawn: Vec<Drawn>,
}

impl Reservoir {
    fn new(most: usize) -> Reservoir {
        Reservoir {
            most,
            listed: 0,
            drawn: Vec::new(),
        }
    }

    /// Lists the children of a node.
    fn list(&mut self, node: Node<'_>, random: &mut Random) {
        for slot in 0..node.count() {
            self.listed += 1;
            let lot = || Drawn {
                key: node.key(slot),
                page: node.child(slot),
            };
            if self.drawn.len() < self.most {
                self.drawn.push(lot());
                continue;
            }
            let place = random.below(self.listed) as usize;
            if place < self.most {
                self.drawn[place] = lot();
            }
        }
    }

    /// What was drawn, in key order.
    fn into_sorted(mut self) -> Vec<Drawn> {
        self.drawn.sort_unstable_by(|a, b| a.key.cmp(&b.key));
        self.drawn
    }
}

enum Source {
    /// Every leaf.
    Whole(Box<LeafCursor>),
    Drawn {
        drawn: Vec<Drawn>,
        next: usize,
        /// The first so many of `drawn` were requested from the disk.
        requested: usize,
        leaf: LeafEntries,
    },
}

/// Leaves of a tree, chosen at random, in key order.
pub struct LeafSample {
    tree: Arc<Tree>,
    source: Source,
    share: f64,
    leaves: u64,
}

impl LeafSample {
    /// The live entries of the next leaf as they are now; none at the end. Leaves without any are left out.
    pub fn next_leaf(&mut self) -> Result<Option<&LeafEntries>> {
        let (drawn, next, requested, leaf) = match &mut self.source {
            Source::Whole(cursor) => {
                let leaf = cursor.next_leaf()?;
                self.leaves += u64::from(leaf.is_some());
                return Ok(leaf);
            }
            Source::Drawn {
                drawn,
                next,
                requested,
                leaf,
            } => (drawn, next, requested, leaf),
        };
        loop {
            let Some(lot) = drawn.get(*next) else {
                return Ok(None);
            };
            if *next == *requested {
                *requested += request(&self.tree, &drawn[*next..]);
            }
            *next += 1;
            // Two leaves that were drawn may be one by now.
            if self.leaves > 0 && leaf.node().view().covers(&lot.key) {
                continue;
            }
            leaf.read_leaf_of(&self.tree, &lot.key)?;
            self.leaves += 1;
            if !leaf.is_empty() {
                // Borrowed again, because a borrow that is returned would last for the whole loop.
                break;
            }
        }
        Ok(Some(leaf))
    }

    /// Whether the sample is the whole tree.
    pub fn is_complete(&self) -> bool {
        matches!(self.source, Source::Whole(_))
    }

    /// The chance that a leaf had to be in the sample, 0 to 1.
    pub fn share(&self) -> f64 {
        self.share
    }

    /// Leaves read so far, empty ones included.
    pub fn leaves(&self) -> u64 {
        self.leaves
    }
}

/// Starts reading the first of these pages; returns how many that were.
fn request(tree: &Tree, drawn: &[Drawn]) -> usize {
    let most = (tree.store.frames / REQUEST_FRAMES_DIVISOR) as usize;
    let count = drawn.len().min(REQUEST_PAGES).min(most.max(1));
    let pages: Vec<PageId> = drawn[..count].iter().map(|drawn| drawn.page).collect();
    tree.store.pool.prefetch(&pages);
    count
}

impl Tree {
    /// A sample of about `leaves` leaves, at least one: a function of the tree and of `seed`. All leaves, if there are
    /// no more.
    pub fn sample_leaves(self: &Arc<Self>, leaves: usize, seed: u64) -> Result<LeafSample> {
        let leaves = leaves.max(1);
        let total = self.statistics().leaf_pages.max(1);
        let sample = |source, share| LeafSample {
            tree: self.clone(),
            source,
            share,
            leaves: 0,
        };
        if total <= leaves as u64 {
            let ahead = ReadAhead::Pages(REQUEST_PAGES);
            let cursor = self.scan(KeyRange::all(), Direction::Forward, ahead);
            return Ok(sample(Source::Whole(Box::new(cursor)), 1.0));
        }
        let drawn = self.draw_leaves(leaves, &mut Random::new(seed))?;
        let share = (drawn.len() as f64 / total as f64).min(1.0);
        let source = Source::Drawn {
            drawn,
            next: 0,
            requested: 0,
            leaf: LeafEntries::empty(),
        };
        Ok(sample(source, share))
    }

    /// Draws at most `most` leaves.
    fn draw_leaves(&self, most: usize, random: &mut Random) -> Result<Vec<Drawn>> {
        let mut page = new_page_image();
        let mut nodes = vec![Drawn {
            key: Vec::new(),
            page: self.root,
        }];
        for level in (1..=self.root_level()?).rev() {
            let mut reservoir = Reservoir::new(most);
            let mut requested = 0;
            let mut read_before = false;
            for (at, node) in nodes.iter().enumerate() {
                if at == requested {
                    requested += request(self, &nodes[at..]);
                }
                // Two nodes that were drawn may be one by now.
                if read_before && Node(&page).view().covers(&node.key) {
                    continue;
                }
                // The tree may have lost a level meanwhile: what was drawn are then keys on the level below.
                if !self.copy_node(Target::Key(&node.key), level, &mut page)? {
                    break;
                }
                read_before = true;
                reservoir.list(Node(&page), random);
            }
            if reservoir.listed > 0 {
                nodes = reservoir.into_sorted();
            }
        }
        Ok(nodes)
    }
}
