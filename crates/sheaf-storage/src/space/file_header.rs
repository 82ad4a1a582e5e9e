//! The file header: page 0 of the data file says what the file is and where its two fixed trees begin.
//!
//! It is written once, when the file is made. Everything that changes is in the extent maps, in the tree directory, and
//! in the log's control block.

use crate::page::{PAGE_HEADER_BYTES, PAGE_SIZE, Page, PageId, PageType};
use crate::space::extent::{CATALOG_ROOT, DIRECTORY_ROOT, PAGES_PER_EXTENT};

/// First bytes of the header's body.
const MAGIC: [u8; 8] = *b"SHEAF\r\n\x1a";

/// Version of the file format. A file of another version is refused.
pub(crate) const FORMAT_VERSION: u32 = 3;

const MAGIC_AT: usize = PAGE_HEADER_BYTES;
const VERSION: usize = PAGE_HEADER_BYTES + 8;
const PAGE_BYTES: usize = PAGE_HEADER_BYTES + 12;
const EXTENT_PAGES: usize = PAGE_HEADER_BYTES + 16;
const DIRECTORY: usize = PAGE_HEADER_BYTES + 24;
const CATALOG: usize = PAGE_HEADER_BYTES + 32;

/// Contents of page 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FileHeader {
    pub directory_root: PageId,
    pub catalog_root: PageId,
}

impl FileHeader {
    /// The header of an empty file.
    pub(crate) fn new() -> FileHeader {
        FileHeader {
            directory_root: DIRECTORY_ROOT,
            catalog_root: CATALOG_ROOT,
        }
    }

    pub(crate) fn write(&self, page: &mut Page) {
        page.set_page_type(PageType::FILE_HEADER);
        page[MAGIC_AT..MAGIC_AT + MAGIC.len()].copy_from_slice(&MAGIC);
        page.set_u32_at(VERSION, FORMAT_VERSION);
        page.set_u32_at(PAGE_BYTES, PAGE_SIZE as u32);
        page.set_u32_at(EXTENT_PAGES, PAGES_PER_EXTENT as u32);
        page.set_u64_at(DIRECTORY, self.directory_root.0);
        page.set_u64_at(CATALOG, self.catalog_root.0);
    }

    /// The header in `page`, or why there is none that this program understands.
    pub(crate) fn read(page: &Page) -> Result<FileHeader, String> {
        if page.page_type() != PageType::FILE_HEADER
            || page[MAGIC_AT..MAGIC_AT + MAGIC.len()] != MAGIC
        {
            return Err("not a Sheaf data file".into());
        }
        let version = page.u32_at(VERSION);
        if version != FORMAT_VERSION {
            return Err(format!(
                "the format of the data file has version {version}, and this program reads version {FORMAT_VERSION}: open it \
                 with the program that wrote it, and copy the tables over"
            ));
        }
        let expected = [
            ("page size", PAGE_BYTES, PAGE_SIZE as u32),
            ("extent size", EXTENT_PAGES, PAGES_PER_EXTENT as u32),
        ];
        for (name, offset, value) in expected {
            let found = page.u32_at(offset);
            if found != value {
                return Err(format!("{name} is {found}, this program reads {value}"));
            }
        }
        Ok(FileHeader {
            directory_root: PageId(page.u64_at(DIRECTORY)),
            catalog_root: PageId(page.u64_at(CATALOG)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_reads_as_it_was_written() {
        let header = FileHeader {
            catalog_root: PageId(99),
            ..FileHeader::new()
        };
        let mut page = Page::zeroed();
        header.write(&mut page);
        assert_eq!(FileHeader::read(&page), Ok(header));
    }

    #[test]
    fn other_files_and_versions_are_named_as_such() {
        let mut page = Page::zeroed();
        assert_eq!(FileHeader::read(&page), Err("not a Sheaf data file".into()));
        FileHeader::new().write(&mut page);
        page.set_u32_at(VERSION, 9);
        assert_eq!(
            FileHeader::read(&page),
            Err(
                "the format of the data file has version 9, and this program reads version 3: open it with the program that \
                 wrote it, and copy the tables over"
                    .into()
            )
        );
    }
}
