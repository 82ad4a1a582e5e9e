//! Redo records as bytes.
//!
//! ```text
//!  kind (1) | page | the record's fields, in the order of their declaration
//! ```
//!
//! Numbers are varints and byte strings carry their length ([`bytes`](super::bytes)). A node's image leaves out the gap
//! between slots and heap, and what [`apply`](crate::log::redo::apply) does not look at. So a split logs the entries
//! that moved and not a page.

use crate::log::bytes::{Damaged, Reader, put_bytes, put_number};
use crate::log::redo::RedoRecord;
use crate::node::{MAX_SLOTS, Node, PageImage};
use crate::page::{PAGE_HEADER_BYTES, PAGE_SIZE, PAGE_TYPE_HEADER_OFFSET, PageId, TreeId, header};
use crate::space::extent::{EXTENTS_PER_GROUP, PAGES_PER_EXTENT};
use crate::space::file_header::FileHeader;

/// First byte of a record. The numbers are the log's format.
mod kind {
    pub(super) const FORMAT_NODE: u8 = 1;
    pub(super) const WRITE_NODE: u8 = 2;
    pub(super) const INSERT_ENTRY: u8 = 3;
    pub(super) const SET_VALUE: u8 = 4;
    pub(super) const MAKE_GHOST: u8 = 5;
    pub(super) const END_GHOST: u8 = 6;
    pub(super) const REMOVE_ENTRY: u8 = 7;
    pub(super) const PURGE_GHOSTS: u8 = 8;
    pub(super) const TRUNCATE_NODE: u8 = 9;
    pub(super) const FORMAT_EXTENT_MAP: u8 = 10;
    pub(super) const ALLOCATE_PAGE: u8 = 11;
    pub(super) const FREE_PAGE: u8 = 12;
    pub(super) const SET_EXTENT: u8 = 13;
    pub(super) const WRITE_FILE_HEADER: u8 = 14;
    pub(super) const CHANGE_VALUE: u8 = 15;
}

/// Appends the change of a page.
pub(crate) fn encode(out: &mut Vec<u8>, page: PageId, record: &RedoRecord<'_>) {
    let begin = |out: &mut Vec<u8>, kind: u8| {
        out.push(kind);
        put_number(out, page.0);
    };
    match *record {
        RedoRecord::FormatNode {
            tree,
            level,
            low_fence,
            high_fence,
        } => {
            begin(out, kind::FORMAT_NODE);
            put_number(out, tree.0);
            out.push(level);
            put_bytes(out, low_fence);
            out.push(u8::from(high_fence.is_some()));
            put_bytes(out, high_fence.unwrap_or(&[]));
        }
        RedoRecord::WriteNode { tree, image } => {
            begin(out, kind::WRITE_NODE);
            put_number(out, tree.0);
            put_image(out, image);
        }
        RedoRecord::InsertEntry {
            slot,
            suffix,
            value,
        } => {
            begin(out, kind::INSERT_ENTRY);
            put_number(out, slot as u64);
            put_bytes(out, suffix);
            put_bytes(out, value);
        }
        RedoRecord::SetValue { slot, value } => {
            begin(out, kind::SET_VALUE);
            put_number(out, slot as u64);
            put_bytes(out, value);
        }
        RedoRecord::ChangeValue { slot, start, bytes } => {
            begin(out, kind::CHANGE_VALUE);
            put_number(out, slot as u64);
            put_number(out, start as u64);
            put_bytes(out, bytes);
        }
        RedoRecord::SetGhost { slot, ghost } => {
            begin(
                out,
                if ghost {
                    kind::MAKE_GHOST
                } else {
                    kind::END_GHOST
                },
            );
            put_number(out, slot as u64);
        }
        RedoRecord::RemoveEntry { slot } => {
            begin(out, kind::REMOVE_ENTRY);
            put_number(out, slot as u64);
        }
        RedoRecord::PurgeGhosts => begin(out, kind::PURGE_GHOSTS),
        RedoRecord::TruncateNode { count, high_fence } => {
            begin(out, kind::TRUNCATE_NODE);
            put_number(out, count as u64);
            put_bytes(out, high_fence);
        }
        RedoRecord::FormatExtentMap { group } => {
            begin(out, kind::FORMAT_EXTENT_MAP);
            put_number(out, group);
        }
        RedoRecord::AllocatePage {
            extent,
            page: place,
            owner,
        } => {
            begin(out, kind::ALLOCATE_PAGE);
            put_number(out, extent as u64);
            out.push(place as u8);
            put_number(out, owner.0);
        }
        RedoRecord::FreePage {
            extent,
            page: place,
        } => {
            begin(out, kind::FREE_PAGE);
            put_number(out, extent as u64);
            out.push(place as u8);
        }
        RedoRecord::SetExtent {
            extent,
            used,
            owner,
        } => {
            begin(out, kind::SET_EXTENT);
            put_number(out, extent as u64);
            out.extend_from_slice(&used.to_le_bytes());
            put_number(out, owner.0);
        }
        RedoRecord::WriteFileHeader { contents } => {
            begin(out, kind::WRITE_FILE_HEADER);
            put_number(out, contents.directory_root.0);
            put_number(out, contents.catalog_root.0);
        }
    }
}

/// Reads one change of a page. A node's image is put together in `scratch`.
pub(crate) fn decode<'r, 'a: 'r>(
    input: &mut Reader<'a>,
    scratch: &'r mut PageImage,
) -> Result<(PageId, RedoRecord<'r>), Damaged> {
    let kind = input.byte()?;
    let page = PageId(input.number()?);
    let record = match kind {
        kind::FORMAT_NODE => {
            let tree = TreeId(input.number()?);
            let level = input.byte()?;
            let low_fence = input.bytes()?;
            let has_high_fence = input.byte()? != 0;
            let high_fence = input.bytes()?;
            RedoRecord::FormatNode {
                tree,
                level,
                low_fence,
                high_fence: has_high_fence.then_some(high_fence),
            }
        }
        kind::WRITE_NODE => {
            let tree = TreeId(input.number()?);
            take_image(input, scratch)?;
            RedoRecord::WriteNode {
                tree,
                image: scratch,
            }
        }
        kind::INSERT_ENTRY => RedoRecord::InsertEntry {
            slot: input.bounded(MAX_SLOTS)?,
            suffix: input.bytes()?,
            value: input.bytes()?,
        },
        kind::SET_VALUE => RedoRecord::SetValue {
            slot: input.bounded(MAX_SLOTS)?,
            value: input.bytes()?,
        },
        kind::CHANGE_VALUE => RedoRecord::ChangeValue {
            slot: input.bounded(MAX_SLOTS)?,
            start: input.bounded(PAGE_SIZE)?,
            bytes: input.bytes()?,
        },
        kind::MAKE_GHOST | kind::END_GHOST => RedoRecord::SetGhost {
            slot: input.bounded(MAX_SLOTS)?,
            ghost: kind == kind::MAKE_GHOST,
        },
        kind::REMOVE_ENTRY => RedoRecord::RemoveEntry {
            slot: input.bounded(MAX_SLOTS)?,
        },
        kind::PURGE_GHOSTS => RedoRecord::PurgeGhosts,
        kind::TRUNCATE_NODE => RedoRecord::TruncateNode {
            count: input.bounded(MAX_SLOTS)?,
            high_fence: input.bytes()?,
        },
        kind::FORMAT_EXTENT_MAP => RedoRecord::FormatExtentMap {
            group: input.number()?,
        },
        kind::ALLOCATE_PAGE => RedoRecord::AllocatePage {
            extent: extent(input)?,
            page: place(input)?,
            owner: TreeId(input.number()?),
        },
        kind::FREE_PAGE => RedoRecord::FreePage {
            extent: extent(input)?,
            page: place(input)?,
        },
        kind::SET_EXTENT => {
            let extent = extent(input)?;
            let used = input.take(size_of::<u64>())?;
            RedoRecord::SetExtent {
                extent,
                used: u64::from_le_bytes(used.try_into().map_err(|_| Damaged)?),
                owner: TreeId(input.number()?),
            }
        }
        kind::WRITE_FILE_HEADER => RedoRecord::WriteFileHeader {
            contents: FileHeader {
                directory_root: PageId(input.number()?),
                catalog_root: PageId(input.number()?),
            },
        },
        _ => return Err(Damaged),
    };
    Ok((page, record))
}

/// An extent's place in its map.
fn extent(input: &mut Reader<'_>) -> Result<usize, Damaged> {
    input.bounded(EXTENTS_PER_GROUP - 1)
}

/// A page's place in its extent.
fn place(input: &mut Reader<'_>) -> Result<u32, Damaged> {
    let place = u32::from(input.byte()?);
    if u64::from(place) < PAGES_PER_EXTENT {
        Ok(place)
    } else {
        Err(Damaged)
    }
}

/// The parts of the page header that a node's image has a say in: type, level and flags, and the node's own fields.
const HEADER_PARTS: [std::ops::Range<usize>; 2] = [
    header::PAGE_TYPE..header::PAGE_ID,
    PAGE_TYPE_HEADER_OFFSET..PAGE_HEADER_BYTES,
];

/// A node's header, its slots with their length, and all from the start of the heap on with its length.
fn put_image(out: &mut Vec<u8>, image: &PageImage) {
    for part in HEADER_PARTS {
        out.extend_from_slice(&image[part]);
    }
    let (slots_end, heap_start) = Node(image).gap_extent();
    put_bytes(out, &image[PAGE_HEADER_BYTES..slots_end]);
    put_bytes(out, &image[heap_start..]);
}

fn take_image(input: &mut Reader<'_>, image: &mut PageImage) -> Result<(), Damaged> {
    image.fill(0);
    for part in HEADER_PARTS {
        let length = part.len();
        image[part].copy_from_slice(input.take(length)?);
    }
    let slots = input.bytes()?;
    let heap = input.bytes()?;
    if PAGE_HEADER_BYTES + slots.len() + heap.len() > PAGE_SIZE {
        return Err(Damaged);
    }
    image[PAGE_HEADER_BYTES..PAGE_HEADER_BYTES + slots.len()].copy_from_slice(slots);
    image[PAGE_SIZE - heap.len()..].copy_from_slice(heap);
    // What the node says of its slots and its heap is what is there.
    let parts = (PAGE_HEADER_BYTES + slots.len(), PAGE_SIZE - heap.len());
    if Node(image).gap_extent() == parts {
        Ok(())
    } else {
        Err(Damaged)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::redo;
    use crate::node::NodeMut;
    use crate::page::Page;

    fn node() -> Box<Page> {
        let mut page = Page::zeroed();
        page.set_page_id(PageId(7));
        page.set_tree_id(TreeId(3));
        let mut node = NodeMut(&mut page);
        node.format(0, b"app", Some(b"apq"));
        for (slot, suffix) in [b"le".as_slice(), b"ly", b"oint"].into_iter().enumerate() {
            node.insert(slot, suffix, b"value", slot == 1);
        }
        page
    }

    fn map() -> Box<Page> {
        let mut page = Page::zeroed();
        crate::space::extent::map_page::format(&mut page, 0);
        crate::space::extent::map_page::set_extent(&mut page, 4, 0b11, TreeId(9));
        page
    }

    /// Every kind of record, each with a page that it fits.
    fn records(image: &PageImage) -> Vec<(Box<Page>, RedoRecord<'_>)> {
        let format = |high_fence| RedoRecord::FormatNode {
            tree: TreeId(300),
            level: 2,
            low_fence: b"from",
            high_fence,
        };
        let header = FileHeader::new();
        vec![
            (Page::zeroed(), format(None)),
            (Page::zeroed(), format(Some(b"to"))),
            (
                Page::zeroed(),
                RedoRecord::WriteNode {
                    tree: TreeId(5),
                    image,
                },
            ),
            (
                node(),
                RedoRecord::InsertEntry {
                    slot: 1,
                    suffix: b"lf",
                    value: &[7; 200],
                },
            ),
            (
                node(),
                RedoRecord::SetValue {
                    slot: 2,
                    value: b"",
                },
            ),
            (
                node(),
                RedoRecord::ChangeValue {
                    slot: 2,
                    start: 1,
                    bytes: b"alu",
                },
            ),
            (
                node(),
                RedoRecord::SetGhost {
                    slot: 0,
                    ghost: true,
                },
            ),
            (
                node(),
                RedoRecord::SetGhost {
                    slot: 1,
                    ghost: false,
                },
            ),
            (node(), RedoRecord::RemoveEntry { slot: 1 }),
            (node(), RedoRecord::PurgeGhosts),
            (
                node(),
                RedoRecord::TruncateNode {
                    count: 2,
                    high_fence: b"appn",
                },
            ),
            (Page::zeroed(), RedoRecord::FormatExtentMap { group: 700 }),
            (
                map(),
                RedoRecord::AllocatePage {
                    extent: 4,
                    page: 63,
                    owner: TreeId(9),
                },
            ),
            (map(), RedoRecord::FreePage { extent: 4, page: 1 }),
            (
                map(),
                RedoRecord::SetExtent {
                    extent: 1019,
                    used: u64::MAX,
                    owner: TreeId(1 << 40),
                },
            ),
            (
                Page::zeroed(),
                RedoRecord::WriteFileHeader { contents: header },
            ),
        ]
    }

    #[test]
    fn a_decoded_record_does_what_the_original_does() {
        let image = *node().bytes();
        for (page, record) in records(&image) {
            let mut bytes = Vec::new();
            encode(&mut bytes, PageId(1 << 33), &record);
            let mut scratch = Box::new([0; PAGE_SIZE]);
            let mut input = Reader(&bytes);
            let (id, decoded) = decode(&mut input, &mut scratch).unwrap();
            assert_eq!(id, PageId(1 << 33));
            assert!(input.is_empty());

            let mut again = Vec::new();
            encode(&mut again, id, &decoded);
            assert_eq!(bytes, again);

            let (mut by_original, mut by_decoded) = (Page::zeroed(), Page::zeroed());
            by_original.copy_from_slice(page.bytes());
            by_decoded.copy_from_slice(page.bytes());
            redo::apply(&mut by_original, &record);
            redo::apply(&mut by_decoded, &decoded);
            assert!(by_original.bytes() == by_decoded.bytes());
        }
    }

    #[test]
    fn damaged_records_are_refused_or_read_as_something_else_but_never_panic() {
        let image = *node().bytes();
        let mut scratch = Box::new([0; PAGE_SIZE]);
        for (_, record) in records(&image) {
            let mut bytes = Vec::new();
            encode(&mut bytes, PageId(3), &record);
            for length in 0..bytes.len() {
                assert!(decode(&mut Reader(&bytes[..length]), &mut scratch).is_err());
            }
            for position in 0..bytes.len() {
                for bit in 0..8 {
                    let mut damaged = bytes.clone();
                    damaged[position] ^= 1 << bit;
                    let _ = decode(&mut Reader(&damaged), &mut scratch);
                }
            }
        }
    }
}
