//! Pages: the unit of disk, of the buffer pool and of latching.
//!
//! Every page is 16 KiB and opens with the same 64 bytes. The first 32 belong to this module and mean the same on every
//! page. The next 32 belong to the owner of the page type (tree nodes, extent maps, the file header).
//!
//! ```text
//!  0        4    5    6      8                16               24               32                       64
//!  +--------+----+----+------+----------------+----------------+----------------+------------------------+---
//!  | crc32c |type|lvl |flags | page id        | tree id        | LSN            | for the page's type    | body
//!  +--------+----+----+------+----------------+----------------+----------------+------------------------+---
//! ```
//!
//! All integers are little-endian. The checksum is CRC-32C of bytes 4..16384 and is only meaningful on disk: it is
//! computed on the copy that is written back and verified when the page is read. The page id is stored so that a
//! page that was written to, or read from, the wrong place is found out as well.

use std::fmt;
use std::ops::{Deref, DerefMut};

/// Bytes in a page, on disk and in a frame.
pub const PAGE_SIZE: usize = 16 * 1024;

/// Bytes of the header that all pages share, including the part that the page's type lays out.
pub const PAGE_HEADER_BYTES: usize = 64;

/// First header byte that the page's type lays out.
pub const PAGE_TYPE_HEADER_OFFSET: usize = 32;

/// Byte offsets of the common header's fields.
pub mod header {
    /// `u32`: CRC-32C of the rest of the page; set when the page is written.
    pub const CHECKSUM: usize = 0;
    /// `u8`: a [`PageType`](super::PageType).
    pub const PAGE_TYPE: usize = 4;
    /// `u8`: 0 in a leaf, the height above the leaves in an inner node.
    pub const LEVEL: usize = 5;
    /// `u16`: bits that the page's type defines.
    pub const FLAGS: usize = 6;
    /// `u64`: the page's own number.
    pub const PAGE_ID: usize = 8;
    /// `u64`: the tree the page belongs to, 0 if none.
    pub const TREE_ID: usize = 16;
    /// `u64`: log position of the newest change on the page.
    pub const LSN: usize = 24;
}

/// The number of a page: its offset in the data file, in pages.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct PageId(pub u64);

impl PageId {
    /// Byte offset of the page in its file.
    pub fn offset(self) -> u64 {
        self.0 * PAGE_SIZE as u64
    }
}

impl fmt::Display for PageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// The number of a B+tree. Zero is "no tree".
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct TreeId(pub u64);

impl fmt::Display for TreeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// A position in the log.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Lsn(pub u64);

/// What a page holds. The numbers are the file format.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct PageType(pub u8);

impl PageType {
    /// The first page of the data file.
    pub const FILE_HEADER: PageType = PageType(1);
    /// Which extents and pages are in use.
    pub const EXTENT_MAP: PageType = PageType(2);
    /// A leaf of a B+tree.
    pub const LEAF: PageType = PageType(3);
    /// An inner node of a B+tree.
    pub const INNER: PageType = PageType(4);
}

/// Why a page that was read from disk is not the page that was asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PageDamage {
    /// The stored checksum does not match the contents.
    Checksum { stored: u32, computed: u32 },
    /// The page is intact but it is another page.
    Misplaced { stored: PageId },
}

impl fmt::Display for PageDamage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PageDamage::Checksum { stored, computed } => {
                write!(
                    f,
                    "checksum is {stored:#010x}, contents give {computed:#010x}"
                )
            }
            PageDamage::Misplaced { stored } => write!(f, "it carries the number of page {stored}"),
        }
    }
}

/// The LSN in the bytes of a page.
pub(crate) fn lsn_of(page: &[u8]) -> Lsn {
    let mut lsn = [0; 8];
    lsn.copy_from_slice(&page[header::LSN..header::LSN + 8]);
    Lsn(u64::from_le_bytes(lsn))
}

/// The bytes of one page.
#[repr(C, align(4096))]
pub struct Page([u8; PAGE_SIZE]);

impl Page {
    /// A page of zeros, on the heap.
    pub fn zeroed() -> Box<Page> {
        Box::new(Page([0; PAGE_SIZE]))
    }

    /// All bytes, header included.
    pub fn bytes(&self) -> &[u8; PAGE_SIZE] {
        &self.0
    }

    /// All bytes, header included.
    pub fn bytes_mut(&mut self) -> &mut [u8; PAGE_SIZE] {
        &mut self.0
    }

    /// The little-endian `u16` at `offset`. Panics when it does not lie in the page.
    pub fn u16_at(&self, offset: usize) -> u16 {
        u16::from_le_bytes(self.array_at(offset))
    }

    /// The little-endian `u32` at `offset`. Panics when it does not lie in the page.
    pub fn u32_at(&self, offset: usize) -> u32 {
        u32::from_le_bytes(self.array_at(offset))
    }

    /// The little-endian `u64` at `offset`. Panics when it does not lie in the page.
    pub fn u64_at(&self, offset: usize) -> u64 {
        u64::from_le_bytes(self.array_at(offset))
    }

    /// Stores a little-endian `u16` at `offset`.
    pub fn set_u16_at(&mut self, offset: usize, value: u16) {
        self.0[offset..offset + 2].copy_from_slice(&value.to_le_bytes());
    }

    /// Stores a little-endian `u32` at `offset`.
    pub fn set_u32_at(&mut self, offset: usize, value: u32) {
        self.0[offset..offset + 4].copy_from_slice(&value.to_le_bytes());
    }

    /// Stores a little-endian `u64` at `offset`.
    pub fn set_u64_at(&mut self, offset: usize, value: u64) {
        self.0[offset..offset + 8].copy_from_slice(&value.to_le_bytes());
    }

    fn array_at<const N: usize>(&self, offset: usize) -> [u8; N] {
        let mut array = [0; N];
        array.copy_from_slice(&self.0[offset..offset + N]);
        array
    }

    pub fn page_type(&self) -> PageType {
        PageType(self.0[header::PAGE_TYPE])
    }

    pub fn set_page_type(&mut self, page_type: PageType) {
        self.0[header::PAGE_TYPE] = page_type.0;
    }

    pub fn level(&self) -> u8 {
        self.0[header::LEVEL]
    }

    pub fn flags(&self) -> u16 {
        self.u16_at(header::FLAGS)
    }

    pub fn page_id(&self) -> PageId {
        PageId(self.u64_at(header::PAGE_ID))
    }

    pub fn set_page_id(&mut self, page: PageId) {
        self.set_u64_at(header::PAGE_ID, page.0);
    }

    pub fn tree_id(&self) -> TreeId {
        TreeId(self.u64_at(header::TREE_ID))
    }

    pub fn set_tree_id(&mut self, tree: TreeId) {
        self.set_u64_at(header::TREE_ID, tree.0);
    }

    pub fn lsn(&self) -> Lsn {
        Lsn(self.u64_at(header::LSN))
    }

    pub fn set_lsn(&mut self, lsn: Lsn) {
        self.set_u64_at(header::LSN, lsn.0);
    }

    /// The checksum that belongs to the present contents.
    pub fn compute_checksum(&self) -> u32 {
        crc32c::crc32c(&self.0[header::CHECKSUM + 4..])
    }

    /// Stores the checksum of the present contents; the last thing done before the page is written.
    pub fn seal(&mut self) {
        let checksum = self.compute_checksum();
        self.set_u32_at(header::CHECKSUM, checksum);
    }

    /// Whether this is page `expected`, as it was sealed.
    pub fn verify(&self, expected: PageId) -> Result<(), PageDamage> {
        let (stored, computed) = (self.u32_at(header::CHECKSUM), self.compute_checksum());
        if stored != computed {
            return Err(PageDamage::Checksum { stored, computed });
        }
        if self.page_id() != expected {
            return Err(PageDamage::Misplaced {
                stored: self.page_id(),
            });
        }
        Ok(())
    }
}

/// A page is used as its bytes; the typed accessors cover the common header.
impl Deref for Page {
    type Target = [u8; PAGE_SIZE];

    fn deref(&self) -> &[u8; PAGE_SIZE] {
        &self.0
    }
}

impl DerefMut for Page {
    fn deref_mut(&mut self) -> &mut [u8; PAGE_SIZE] {
        &mut self.0
    }
}

impl fmt::Debug for Page {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Page")
            .field("page", &self.page_id())
            .field("tree", &self.tree_id())
            .field("type", &self.page_type())
            .field("level", &self.level())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sealed(page: PageId) -> Box<Page> {
        let mut bytes = Page::zeroed();
        bytes.set_page_id(page);
        bytes.set_tree_id(TreeId(7));
        bytes[5000] = 42;
        bytes.seal();
        bytes
    }

    #[test]
    fn a_sealed_page_verifies_as_itself_only() {
        let page = sealed(PageId(3));
        assert_eq!(page.verify(PageId(3)), Ok(()));
        assert_eq!(
            page.verify(PageId(4)),
            Err(PageDamage::Misplaced { stored: PageId(3) })
        );
    }

    #[test]
    fn every_flipped_bit_of_a_page_is_found() {
        for bit in (0..PAGE_SIZE * 8).step_by(1021) {
            let mut page = sealed(PageId(3));
            page[bit / 8] ^= 1 << (bit % 8);
            assert!(
                matches!(page.verify(PageId(3)), Err(PageDamage::Checksum { .. })),
                "bit {bit}"
            );
        }
    }

    #[test]
    fn a_page_of_zeros_is_not_a_page() {
        assert!(Page::zeroed().verify(PageId(0)).is_err());
    }
}
