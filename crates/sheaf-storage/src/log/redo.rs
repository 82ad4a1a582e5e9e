//! Redo records: every way in which a page may change, by name.
//!
//! [`apply`] is the only code that changes the bytes of a page of the data file. A mini-transaction applies its records
//! when it commits. Recovery applies the same records to the same pages in the same order, and gets the same bytes,
//! because `apply` depends on nothing but the page and the record. That is why records speak of slots and suffixes, of
//! what happens on the page, and not of keys and trees ("physiological" logging, Mohan et al., ARIES, 1992).
//!
//! The code that makes a record has checked that it fits the page. A record that does not fit is a bug. Assertions
//! catch it inside the section that must not fail: the process aborts before a wrong page can reach the disk.

use crate::node::{NodeMut, PageImage};
use crate::page::{PAGE_TYPE_HEADER_OFFSET, Page, TreeId, header};
use crate::space::extent;
use crate::space::file_header::FileHeader;

/// One change of one page.
#[derive(Clone, Copy)]
pub(crate) enum RedoRecord<'a> {
    /// Makes the page an empty node of a tree.
    FormatNode {
        tree: TreeId,
        level: u8,
        low_fence: &'a [u8],
        high_fence: Option<&'a [u8]>,
    },
    /// Makes the page a node with the contents of `image`, whose page number and LSN do not count. A log record of it
    /// leaves the image's gap out.
    WriteNode { tree: TreeId, image: &'a PageImage },
    /// Puts an entry into `slot`; the entries from there on move up.
    InsertEntry {
        slot: usize,
        suffix: &'a [u8],
        value: &'a [u8],
    },
    /// Replaces the value of an entry.
    SetValue { slot: usize, value: &'a [u8] },
    /// Overwrites a part of the value of an entry, which keeps its length.
    ChangeValue {
        slot: usize,
        start: usize,
        bytes: &'a [u8],
    },
    /// Makes an entry a ghost, or a ghost an entry.
    SetGhost { slot: usize, ghost: bool },
    /// Takes an entry out; the entries after it move down.
    RemoveEntry { slot: usize },
    /// Takes all ghosts out.
    PurgeGhosts,
    /// Keeps the first `count` entries and lowers the high fence: the left half of a split.
    TruncateNode { count: usize, high_fence: &'a [u8] },
    /// Makes the page the empty extent map of a group.
    FormatExtentMap { group: u64 },
    /// Marks a page of an extent as used; the extent becomes `owner`'s (0: shared by trees).
    AllocatePage {
        extent: usize,
        page: u32,
        owner: TreeId,
    },
    /// Marks a page as free. An extent without used pages loses its owner.
    FreePage { extent: usize, page: u32 },
    /// Marks a set of pages of an extent as used, and all others as free.
    SetExtent {
        extent: usize,
        used: u64,
        owner: TreeId,
    },
    /// Writes the file header.
    WriteFileHeader { contents: FileHeader },
}

/// Changes `page` as `record` says.
pub(crate) fn apply(page: &mut Page, record: &RedoRecord<'_>) {
    match *record {
        RedoRecord::FormatNode {
            tree,
            level,
            low_fence,
            high_fence,
        } => {
            page.set_tree_id(tree);
            NodeMut(page).format(level, low_fence, high_fence);
        }
        RedoRecord::WriteNode { tree, image } => {
            page.set_tree_id(tree);
            for field in [
                header::PAGE_TYPE..header::PAGE_ID,
                PAGE_TYPE_HEADER_OFFSET..image.len(),
            ] {
                page[field.clone()].copy_from_slice(&image[field]);
            }
        }
        RedoRecord::InsertEntry {
            slot,
            suffix,
            value,
        } => {
            NodeMut(page).insert(slot, suffix, value, false);
        }
        RedoRecord::SetValue { slot, value } => NodeMut(page).set_value(slot, value),
        RedoRecord::ChangeValue { slot, start, bytes } => {
            NodeMut(page).change_value(slot, start, bytes);
        }
        RedoRecord::SetGhost { slot, ghost } => NodeMut(page).set_ghost(slot, ghost),
        RedoRecord::RemoveEntry { slot } => NodeMut(page).remove(slot),
        RedoRecord::PurgeGhosts => NodeMut(page).purge_ghosts(),
        RedoRecord::TruncateNode { count, high_fence } => NodeMut(page).truncate(count, high_fence),
        RedoRecord::FormatExtentMap { group } => extent::map_page::format(page, group),
        RedoRecord::AllocatePage {
            extent,
            page: bit,
            owner,
        } => {
            let (used, old_owner) = extent::map_page::extent(page, extent);
            assert!(used & (1 << bit) == 0, "the page is in use");
            assert!(
                used == 0 || old_owner == owner,
                "the extent belongs to another tree"
            );
            extent::map_page::set_extent(page, extent, used | 1 << bit, owner);
        }
        RedoRecord::FreePage { extent, page: bit } => {
            let (used, owner) = extent::map_page::extent(page, extent);
            assert!(used & (1 << bit) != 0, "the page is free already");
            extent::map_page::set_extent(page, extent, used & !(1 << bit), owner);
        }
        RedoRecord::SetExtent {
            extent,
            used,
            owner,
        } => {
            extent::map_page::set_extent(page, extent, used, owner);
        }
        RedoRecord::WriteFileHeader { contents } => contents.write(page),
    }
}
