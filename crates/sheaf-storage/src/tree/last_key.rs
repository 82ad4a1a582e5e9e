//! The last key of a tree, whether its entry is visible or not.

use crate::error::Result;
use crate::node::Node;
use crate::tree::Tree;
use crate::tree::search::{Target, new_page_image};

impl Tree {
    /// The largest key of the tree, ghosts included; none if there is no entry at all. For numbers that are given out
    /// in ascending order: an entry whose delete is not committed may come back with its number.
    pub fn last_key(&self) -> Result<Option<Vec<u8>>> {
        let mut page = new_page_image();
        let mut before: Option<Vec<u8>> = None;
        loop {
            let target = before.as_deref().map_or(Target::Last, Target::Before);
            self.copy_node(target, 0, &mut page)?;
            let node = Node(&page);
            if let Some(last) = node.count().checked_sub(1) {
                return Ok(Some([node.prefix(), node.suffix(last)].concat()));
            }
            if node.low_fence().is_empty() {
                return Ok(None);
            }
            before = Some(node.low_fence().to_vec());
        }
    }
}
