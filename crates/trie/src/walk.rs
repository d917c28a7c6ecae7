//! Looks a key up.

use crate::node::{Malformed, Node, Search};
use crate::{Pages, Payloads};

/// The end of a path.
#[derive(Clone, Copy, Debug)]
pub struct Followed {
    /// What the last node carries.
    pub payload: Payloads,
    /// Was the whole key followed?
    pub is_whole: bool,
    /// Has the last node children?
    pub has_children: bool,
}

/// Follows a key to the end, or to a position in another page, which is `None`: one further to the front.
///
/// # Errors
/// The page is not one of a trie.
pub fn follow_in_page(
    page: &[u8],
    page_start: u64,
    position: &mut u64,
    rest: &mut &[u8],
) -> Result<Option<Followed>, &'static str> {
    while let Some(within) = position.checked_sub(page_start) {
        let bytes = page.get(within as usize..).unwrap_or_default();
        let node = Node::new(bytes, *position).map_err(|Malformed| "a trie node crosses its page")?;
        let found = rest.split_first().map(|(byte, behind)| (node.search(*byte), behind));
        let Some((Search::Found(slot), behind)) = found else {
            let (is_whole, has_children) = (rest.is_empty(), node.slot_count() > 0);
            return Ok(Some(Followed { payload: Payloads::of(&node), is_whole, has_children }));
        };
        let child = node.child(slot).ok().flatten();
        *position = child.ok_or("a trie node points nowhere")?;
        *rest = behind;
    }
    Ok(None)
}

/// The node at a position.
pub(crate) fn node_at<S: Pages>(pages: &mut S, position: u64) -> Result<Node<'_>, S::Interrupt> {
    // Looked at twice, since a borrow that may be returned can not be given up for the error.
    let is_sound = Node::new(pages.page(position)?, position).is_ok();
    if !is_sound {
        return Err(pages.damaged(position, "a trie node crosses its page"));
    }
    match Node::new(pages.page(position)?, position) {
        Ok(node) => Ok(node),
        Err(_) => unreachable!("the same bytes were a node just now"),
    }
}
