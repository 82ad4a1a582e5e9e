//! Space management: which pages of the data file belong to which tree.
//!
//! The file is a row of *extents* of 64 pages (1 MiB). Extents are counted off into *groups* of 1020. The second page
//! of a group is its *extent map*, 16 bytes for each extent of the group: a bit per used page, and the owner.
//!
//! ```text
//!  group 0                                                        group 1
//!  |header|map|directory root|catalog root| ... extent 1 | ... |  |free |map| ...
//!     0     1        2              3           64..127           65280 65281
//! ```
//!
//! An extent is free (no page used), owned by one tree, or shared. *Owned* extents hold the leaves of large trees and
//! nothing else, so a scan in key order reads the disk in order. *Shared* extents (owner 0) hold single pages of many
//! trees. These are all inner nodes, and the first [`SMALL_TREE_LEAVES`] leaves of every tree. So an empty table costs
//! one page and not a megabyte.
//!
//! The maps on disk are changed by mini-transactions only. [`Space`] is their copy in memory, and the place where pages
//! are chosen. A page is reserved here first and entered in its map when the mini-transaction commits; if it does not
//! commit, the page is returned here. A freed page goes the other way around: first out of the map, then free for
//! others here. So what `Space` calls free is always free on disk as well.
//!
//! Rollback must not fail for lack of space, so the last [`ROLLBACK_RESERVE_EXTENTS`] free extents are given to
//! rollbacks only.

use std::collections::{BTreeMap, BTreeSet};

use crate::page::{PageId, TreeId};
use crate::sync::Mutex;

/// Pages of an extent.
pub(crate) const PAGES_PER_EXTENT: u64 = 64;

/// Extents that one map page describes.
pub(crate) const EXTENTS_PER_GROUP: usize = 1020;

/// Leaves of a tree that lie in shared extents; later ones come from extents of its own.
pub(crate) const SMALL_TREE_LEAVES: u64 = 32;

/// Free extents that only a rollback may take.
const ROLLBACK_RESERVE_EXTENTS: usize = 1;

/// The file grows by an eighth of its size, but by at most this many extents at a time.
const MAX_GROWTH_EXTENTS: usize = 64;

/// Pages at fixed places of the file.
pub(crate) const FILE_HEADER_PAGE: PageId = PageId(0);
pub(crate) const DIRECTORY_ROOT: PageId = PageId(2);
pub(crate) const CATALOG_ROOT: PageId = PageId(3);

/// Pages of extent 0 that are used in an empty file: those above and the extent map.
pub(crate) const FIXED_PAGES: u64 = 0b1111;

/// Pages of the first extent of every group that hold no nodes: the unused first page and the map.
pub(crate) const GROUP_PAGES: u64 = 0b11;

/// No owner: the extent is free or shared.
const NO_TREE: TreeId = TreeId(0);

/// The extent that a page lies in, and the page's place in it.
pub(crate) fn locate(page: PageId) -> (usize, u32) {
    (
        (page.0 / PAGES_PER_EXTENT) as usize,
        (page.0 % PAGES_PER_EXTENT) as u32,
    )
}

/// The page at a place of an extent.
pub(crate) fn page_in(extent: usize, place: u32) -> PageId {
    PageId(extent as u64 * PAGES_PER_EXTENT + u64::from(place))
}

/// The map page that describes an extent, and the extent's place in it.
pub(crate) fn map_of(extent: usize) -> (PageId, usize) {
    (
        map_of_group(extent / EXTENTS_PER_GROUP),
        extent % EXTENTS_PER_GROUP,
    )
}

/// The map page of a group.
pub(crate) fn map_of_group(group: usize) -> PageId {
    page_in(group * EXTENTS_PER_GROUP, 1)
}

/// The layout of map pages.
pub(crate) mod map_page {
    use super::EXTENTS_PER_GROUP;
    use crate::page::{PAGE_HEADER_BYTES, PAGE_TYPE_HEADER_OFFSET, Page, PageType, TreeId};

    const GROUP: usize = PAGE_TYPE_HEADER_OFFSET;
    const EXTENT_BYTES: usize = 16;
    const OWNER: usize = 8;

    /// Makes a page the map of a group in which all extents are free.
    pub(crate) fn format(page: &mut Page, group: u64) {
        page[PAGE_TYPE_HEADER_OFFSET..].fill(0);
        page.set_page_type(PageType::EXTENT_MAP);
        page.set_tree_id(TreeId(0));
        page.set_u64_at(GROUP, group);
    }

    /// Used pages and owner of the extent at a place of the map.
    pub(crate) fn extent(page: &Page, place: usize) -> (u64, TreeId) {
        assert!(place < EXTENTS_PER_GROUP);
        let at = PAGE_HEADER_BYTES + place * EXTENT_BYTES;
        (page.u64_at(at), TreeId(page.u64_at(at + OWNER)))
    }

    /// Sets used pages and owner; an extent without used pages has no owner.
    pub(crate) fn set_extent(page: &mut Page, place: usize, used: u64, owner: TreeId) {
        assert!(place < EXTENTS_PER_GROUP);
        let at = PAGE_HEADER_BYTES + place * EXTENT_BYTES;
        page.set_u64_at(at, used);
        page.set_u64_at(at + OWNER, if used == 0 { 0 } else { owner.0 });
    }
}

/// What a page is wanted for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PageRequest {
    pub tree: TreeId,
    /// From an extent of the tree's own; else from a shared one.
    pub own_extent: bool,
    /// The new page should come soon after this one.
    pub near: Option<PageId>,
    /// A rollback may take what others must leave.
    pub for_rollback: bool,
}

/// No extent is free: the file has to grow first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NoFreeExtent;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Extent {
    used: u64,
    owner: TreeId,
}

impl Extent {
    fn has_room(self) -> bool {
        self.used != u64::MAX
    }
}

#[derive(Default)]
struct SpaceState {
    extents: Vec<Extent>,
    free: BTreeSet<usize>,
    /// Extents with used and unused pages, by owner; 0 for the shared ones.
    with_room: BTreeMap<TreeId, BTreeSet<usize>>,
}

/// The extent maps of the whole file, in memory: 16 bytes for each MiB of file.
pub(crate) struct Space {
    state: Mutex<SpaceState>,
}

impl Space {
    /// The space of a file of which nothing is known yet.
    pub(crate) fn new() -> Space {
        Space {
            state: Mutex::new(SpaceState::default()),
        }
    }

    /// Adds the next extent of the file, as its map describes it.
    pub(crate) fn add_extent(&self, used: u64, owner: TreeId) {
        let mut state = self.state.lock();
        state.extents.push(Extent { used, owner });
        let extent = state.extents.len() - 1;
        state.index(extent);
    }

    /// Adds a free extent; in the first one of a group the group's own pages are used. Returns what is used.
    pub(crate) fn add_free_extent(&self) -> u64 {
        let first_of_group = self.extent_count().is_multiple_of(EXTENTS_PER_GROUP);
        let used = if first_of_group { GROUP_PAGES } else { 0 };
        self.add_extent(used, NO_TREE);
        used
    }

    /// Extents of the file.
    pub(crate) fn extent_count(&self) -> usize {
        self.state.lock().extents.len()
    }

    /// Used pages and owner of an extent.
    pub(crate) fn extent(&self, extent: usize) -> (u64, TreeId) {
        let Extent { used, owner } = self.state.lock().extents[extent];
        (used, owner)
    }

    /// By how many extents the file should grow.
    pub(crate) fn growth(&self) -> usize {
        let state = self.state.lock();
        (state.extents.len() / 8).clamp(1 + ROLLBACK_RESERVE_EXTENTS, MAX_GROWTH_EXTENTS)
    }

    /// Reserves a page.
    pub(crate) fn allocate_page(&self, request: PageRequest) -> Result<PageId, NoFreeExtent> {
        let mut state = self.state.lock();
        let owner = if request.own_extent {
            request.tree
        } else {
            NO_TREE
        };
        let near = request.near.map(locate);
        let extent = match state.extent_with_room(owner, near) {
            Some(extent) => extent,
            None => state.take_free(near.map(|(extent, _)| extent + 1), request.for_rollback)?,
        };
        let used = state.extents[extent].used;
        let place = match near {
            Some((near_extent, place)) if near_extent == extent => free_place_after(used, place),
            _ => (!used).trailing_zeros(),
        };
        state.set(extent, used | 1 << place, owner);
        Ok(page_in(extent, place))
    }

    /// Reserves a whole extent for a tree, if possible the one after `previous`.
    pub(crate) fn allocate_extent(
        &self,
        tree: TreeId,
        previous: Option<usize>,
    ) -> Result<usize, NoFreeExtent> {
        let mut state = self.state.lock();
        let extent = state.take_free(previous.map(|extent| extent + 1), false)?;
        state.set(extent, u64::MAX, tree);
        Ok(extent)
    }

    /// Sets which pages of a tree's extent are in use.
    pub(crate) fn set_used(&self, extent: usize, used: u64) {
        let mut state = self.state.lock();
        let owner = state.extents[extent].owner;
        state.set(extent, used, owner);
    }

    /// Frees a page.
    pub(crate) fn release_page(&self, page: PageId) {
        let (extent, place) = locate(page);
        let mut state = self.state.lock();
        let Extent { used, owner } = state.extents[extent];
        debug_assert!(used & (1 << place) != 0, "page {page} is free already");
        state.set(extent, used & !(1 << place), owner);
    }

    /// The extents of a tree.
    pub(crate) fn extents_of(&self, tree: TreeId) -> Vec<usize> {
        let state = self.state.lock();
        (0..state.extents.len())
            .filter(|&extent| state.extents[extent].owner == tree)
            .collect()
    }

    /// Owner of the extent that a page lies in; none if it is shared, free or does not exist.
    pub(crate) fn owner(&self, page: PageId) -> Option<TreeId> {
        let state = self.state.lock();
        state
            .extents
            .get(locate(page).0)
            .map(|extent| extent.owner)
            .filter(|&owner| owner != NO_TREE)
    }

    /// Whether a page is in use.
    pub(crate) fn is_used(&self, page: PageId) -> bool {
        let (extent, place) = locate(page);
        self.state
            .lock()
            .extents
            .get(extent)
            .is_some_and(|extent| extent.used & (1 << place) != 0)
    }

    /// Pages in use in the whole file.
    pub(crate) fn used_pages(&self) -> u64 {
        self.state
            .lock()
            .extents
            .iter()
            .map(|extent| u64::from(extent.used.count_ones()))
            .sum()
    }
}

impl SpaceState {
    /// Enters an extent into the index that its state calls for.
    fn index(&mut self, extent: usize) {
        let Extent { used, owner } = self.extents[extent];
        if used == 0 {
            self.free.insert(extent);
        } else if self.extents[extent].has_room() {
            self.with_room.entry(owner).or_default().insert(extent);
        }
    }

    fn set(&mut self, extent: usize, used: u64, owner: TreeId) {
        self.free.remove(&extent);
        let old_owner = self.extents[extent].owner;
        if let Some(extents) = self.with_room.get_mut(&old_owner) {
            extents.remove(&extent);
            if extents.is_empty() {
                self.with_room.remove(&old_owner);
            }
        }
        self.extents[extent] = Extent {
            used,
            owner: if used == 0 { NO_TREE } else { owner },
        };
        self.index(extent);
    }

    /// An extent of `owner` with room: the one of `near`, else the next one after it, else any.
    fn extent_with_room(&self, owner: TreeId, near: Option<(usize, u32)>) -> Option<usize> {
        let extents = self.with_room.get(&owner)?;
        let near = near.map_or(0, |(extent, _)| extent);
        extents
            .range(near..)
            .next()
            .or_else(|| extents.iter().next())
            .copied()
    }

    /// A free extent: the wanted one, else the next one after it, else the first.
    fn take_free(&self, wanted: Option<usize>, for_rollback: bool) -> Result<usize, NoFreeExtent> {
        let reserve = if for_rollback {
            0
        } else {
            ROLLBACK_RESERVE_EXTENTS
        };
        if self.free.len() <= reserve {
            return Err(NoFreeExtent);
        }
        let wanted = wanted.unwrap_or(0);
        self.free
            .range(wanted..)
            .next()
            .or_else(|| self.free.iter().next())
            .copied()
            .ok_or(NoFreeExtent)
    }
}

/// The first unused place after `place`, else the first of all.
fn free_place_after(used: u64, place: u32) -> u32 {
    let after = !used & u64::MAX.checked_shl(place + 1).unwrap_or(0);
    if after != 0 {
        after.trailing_zeros()
    } else {
        (!used).trailing_zeros()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn space(extents: usize) -> Space {
        let space = Space::new();
        space.add_extent(FIXED_PAGES, NO_TREE);
        for _ in 1..extents {
            space.add_free_extent();
        }
        space
    }

    fn request(tree: u64, own_extent: bool, near: Option<u64>) -> PageRequest {
        PageRequest {
            tree: TreeId(tree),
            own_extent,
            near: near.map(PageId),
            for_rollback: false,
        }
    }

    #[test]
    fn small_trees_share_extents_and_large_ones_own_them() {
        let space = space(4);
        assert_eq!(space.allocate_page(request(7, false, None)), Ok(PageId(4)));
        assert_eq!(space.allocate_page(request(8, false, None)), Ok(PageId(5)));
        assert_eq!(space.allocate_page(request(7, true, None)), Ok(PageId(64)));
        assert_eq!(space.allocate_page(request(8, true, None)), Ok(PageId(128)));
        assert_eq!(
            space.allocate_page(request(7, true, Some(64))),
            Ok(PageId(65))
        );
        assert_eq!(space.extents_of(TreeId(7)), [1]);
        assert_eq!(space.owner(PageId(65)), Some(TreeId(7)));
        assert_eq!(space.owner(PageId(4)), None);
    }

    #[test]
    fn a_new_page_comes_right_after_its_neighbour() {
        let space = space(4);
        for page in 64..74 {
            assert_eq!(
                space.allocate_page(request(7, true, None)),
                Ok(PageId(page))
            );
        }
        space.release_page(PageId(66));
        assert_eq!(
            space.allocate_page(request(7, true, Some(70))),
            Ok(PageId(74))
        );
        assert_eq!(
            space.allocate_page(request(7, true, Some(65))),
            Ok(PageId(66))
        );
    }

    #[test]
    fn an_extent_whose_pages_are_all_released_is_free_for_others() {
        let space = space(3);
        let page = space.allocate_page(request(7, true, None)).unwrap();
        assert_eq!(
            space.allocate_page(request(8, true, None)),
            Err(NoFreeExtent)
        );
        space.release_page(page);
        assert_eq!(space.allocate_page(request(8, true, None)), Ok(page));
    }

    #[test]
    fn the_last_extent_is_kept_for_rollbacks() {
        let space = space(2);
        assert_eq!(
            space.allocate_page(request(7, true, None)),
            Err(NoFreeExtent)
        );
        let for_rollback = PageRequest {
            for_rollback: true,
            ..request(7, true, None)
        };
        assert_eq!(space.allocate_page(for_rollback), Ok(PageId(64)));
    }

    #[test]
    fn every_group_begins_with_its_map() {
        assert_eq!(map_of(0), (PageId(1), 0));
        assert_eq!(map_of(1019), (PageId(1), 1019));
        assert_eq!(map_of(1020), (PageId(65281), 0));
        let space = space(EXTENTS_PER_GROUP + 1);
        assert!(
            space.is_used(PageId(65280))
                && space.is_used(PageId(65281))
                && !space.is_used(PageId(65282))
        );
    }
}
