//! Looks a key up.

use super::{Node, Pages, Payloads};

/// The end of a path.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Followed {
    /// What the last node carries.
    pub(crate) payload: Payloads,
    /// Was the whole key followed?
    pub(crate) is_whole: bool,
    /// Has the last node children?
    pub(crate) has_children: bool,
}

/// Follows a key from the root as far as the trie goes.
pub(crate) fn follow<S: Pages>(pages: &mut S, root: u64, key: &[u8]) -> Result<Followed, S::Interrupt> {
    let mut position = root;
    let mut rest = key.iter();
    loop {
        let node = node_at(pages, position)?;
        let byte = rest.next();
        let found = byte.map(|byte| node.search(*byte));
        if let Some(super::node::Search::Found(slot)) = found
            && let Ok(Some(child)) = node.child(slot)
        {
            position = child;
            continue;
        }
        if matches!(found, Some(super::node::Search::Found(_))) {
            return Err(pages.damaged(position, "a trie node points nowhere"));
        }
        return Ok(Followed {
            payload: Payloads::of(&node),
            is_whole: byte.is_none(),
            has_children: node.slot_count() > 0,
        });
    }
}

/// The node at a position.
pub(super) fn node_at<S: Pages>(pages: &mut S, position: u64) -> Result<Node<'_>, S::Interrupt> {
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
