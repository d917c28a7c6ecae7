//! Builds a trie from sorted keys, and lays it into pages as it grows.
//!
//! 1. Keys come in order, so all that is open is the path of the last one, kept on a stack. A key
//!    that leaves the path completes the nodes beyond the point where it leaves.
//! 2. A completed node knows the bytes of its branch. While node and branch are under a page they
//!    wait, since they may still share a page with their neighbours.
//! 3. Once they are not, the children's branches are written, the largest that fits the current
//!    page first; when none fits, the page is filled with zeros and the next one begun. What is
//!    left of the node then is the node alone, whose pointers leave the page.
//! 4. A branch with pointers out of its page was measured for the wrong place: distances, and with
//!    them kinds, may be larger where it is written. It is measured again just before.

use crate::PAGE_BYTES;
use crate::shape::{self, Outline};

/// Of the largest node, one with 256 children of eight bytes each and a payload.
const NODE_BYTES_MAX: usize = 3 + 256 * 8 + 20;
const _: () = assert!(NODE_BYTES_MAX < PAGE_BYTES, "every node fits a page");

/// What a node can carry.
pub trait Payload {
    /// Flags in the node: 1 to 15.
    fn flags(&self) -> u8;
    /// Bytes that [`Payload::write`] appends.
    fn bytes(&self) -> usize;
    /// Appends it.
    fn write(&self, out: &mut Vec<u8>);
}

/// The file that a trie is written to: bytes are appended to it, page after page.
pub trait PageFile {
    /// Why it can not be written.
    type Error;

    /// Where the next byte goes.
    fn position(&self) -> u64;

    /// Bytes to the end of the current page; a whole page at its start.
    fn bytes_left_in_page(&self) -> usize {
        PAGE_BYTES - (self.position() % PAGE_BYTES as u64) as usize
    }

    /// Appends with the help of the buffer itself.
    ///
    /// # Errors
    /// It can not be written.
    fn write_with(&mut self, write: impl FnOnce(&mut Vec<u8>)) -> Result<(), Self::Error>;

    /// Zeros to the next page.
    ///
    /// # Errors
    /// It can not be written.
    fn pad_to_page(&mut self) -> Result<(), Self::Error> {
        let left = self.bytes_left_in_page();
        if left == PAGE_BYTES {
            return Ok(());
        }
        self.write_with(|buffer| buffer.resize(buffer.len() + left, 0))?;
        assert_eq!(self.bytes_left_in_page(), PAGE_BYTES, "a padded file goes on at a page's start");
        Ok(())
    }

    /// The error for a key that is not above the one before.
    fn keys_do_not_rise(&self) -> Self::Error;
}

/// Writes one trie after the other into a file.
#[derive(Debug)]
pub struct TrieWriter<P> {
    /// The open path, the root first; each node's byte is that which leads to it.
    stack: Vec<Branch<P>>,
    last_key: Vec<u8>,
    count: u64,
}

#[derive(Debug)]
struct Branch<P> {
    byte: u8,
    payload: Option<P>,
    children: Vec<Branch<P>>,
    /// Where it was written.
    position: Option<u64>,
    /// Bytes of what is below it and not written.
    branch_bytes: usize,
    node_bytes: usize,
    /// Has it a child that is written?
    points_out: bool,
    /// Has something below its children a child that is written?
    points_out_below: bool,
}

impl<P: Payload> Branch<P> {
    fn new(byte: u8) -> Self {
        Branch {
            byte,
            payload: None,
            children: Vec::new(),
            position: None,
            branch_bytes: 0,
            node_bytes: 0,
            points_out: false,
            points_out_below: false,
        }
    }

    fn total_bytes(&self) -> usize {
        self.branch_bytes + self.node_bytes
    }

    fn outline(&self, position: u64) -> Outline {
        Outline {
            child_count: self.children.len(),
            first_byte: self.children.first().map_or(0, |child| child.byte),
            last_byte: self.children.last().map_or(0, |child| child.byte),
            distance_max: self.distance_max(position),
            has_payload: self.payload.is_some(),
        }
    }

    /// Distance from a node at that position to its furthest child: the first of those yet to be
    /// written (their branches follow each other, each with its root at the end), or a written one.
    fn distance_max(&self, position: u64) -> u64 {
        let unwritten = self.children.iter().find(|child| child.position.is_none());
        let to_first = unwritten.map_or(0, |child| (self.branch_bytes - child.branch_bytes) as u64);
        let written = self.children.iter().filter_map(|child| child.position);
        let to_written = written.map(|child| position - child).max().unwrap_or(0);
        to_first.max(to_written)
    }

    fn measure(&self, position: u64) -> usize {
        let outline = self.outline(position);
        outline.bytes_as(outline.kind()) + self.payload.as_ref().map_or(0, Payload::bytes)
    }

    /// Measures anew what points out of the branch, given where it would be written.
    fn measure_again(&mut self, position: u64) -> usize {
        if self.points_out_below {
            let mut bytes = 0;
            for child in &mut self.children {
                bytes += child.measure_again(position + bytes as u64);
            }
            self.branch_bytes = bytes;
        }
        if self.points_out || self.points_out_below {
            self.node_bytes = self.measure(position + self.branch_bytes as u64);
        }
        self.total_bytes()
    }

    /// Writes what is not written, children first. Gives the node's position.
    fn write<F: PageFile>(&mut self, file: &mut F) -> Result<u64, F::Error> {
        for child in &mut self.children {
            if child.position.is_none() {
                let position = child.write(file)?;
                child.finish(position);
            }
        }
        let position = file.position();
        self.write_node(position, file)?;
        Ok(position)
    }

    fn write_node<F: PageFile>(&self, position: u64, file: &mut F) -> Result<(), F::Error> {
        let kind = self.outline(position).kind();
        let flags = self.payload.as_ref().map_or(0, Payload::flags);
        assert!(flags < 16 && (flags > 0) == self.payload.is_some(), "flags of a payload are 1 to 15");
        let distance = |child: &Branch<P>| {
            let below = child.position.filter(|below| *below < position);
            position - below.expect("children are written before their node")
        };
        let children = self.children.iter().map(|child| (child.byte, distance(child)));
        file.write_with(|out| {
            shape::write(kind, flags, children, out);
            if let Some(payload) = &self.payload {
                payload.write(out);
            }
        })
    }

    /// Forgets all but where it is.
    fn finish(&mut self, position: u64) {
        self.position = Some(position);
        self.branch_bytes = 0;
        self.node_bytes = 0;
        self.points_out = false;
        self.points_out_below = false;
        self.children = Vec::new();
        self.payload = None;
    }
}

impl<P: Payload> Default for TrieWriter<P> {
    fn default() -> Self {
        TrieWriter::new()
    }
}

impl<P: Payload> TrieWriter<P> {
    /// Nothing was added yet.
    pub fn new() -> Self {
        TrieWriter { stack: vec![Branch::new(0)], last_key: Vec::new(), count: 0 }
    }

    /// How many keys were added.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Adds a key, which must be greater than the one before.
    ///
    /// # Errors
    /// It is not, or the file can not be written.
    pub fn add<F: PageFile>(&mut self, key: &[u8], payload: P, file: &mut F) -> Result<(), F::Error> {
        let shared = self.last_key.iter().zip(key).take_while(|(a, b)| a == b).count();
        let rises = self.count == 0 || key.get(shared) > self.last_key.get(shared);
        if !rises {
            return Err(file.keys_do_not_rise());
        }
        while self.stack.len() > shared + 1 {
            self.complete_last(file)?;
        }
        self.stack.extend(key[shared..].iter().map(|byte| Branch::new(*byte)));
        if let Some(last) = self.stack.last_mut() {
            last.payload = Some(payload);
        }
        self.last_key.truncate(shared);
        self.last_key.extend_from_slice(&key[shared..]);
        assert_eq!(self.stack.len(), key.len() + 1, "what is open is the path of the last key");
        self.count += 1;
        Ok(())
    }

    /// Writes the rest; gives the root's position, and is ready for another trie.
    ///
    /// # Errors
    /// The file can not be written.
    pub fn finish<F: PageFile>(&mut self, file: &mut F) -> Result<u64, F::Error> {
        while self.stack.len() > 1 {
            self.complete_last(file)?;
        }
        let mut root = self.stack.pop().unwrap_or_else(|| Branch::new(0));
        self.reset();
        complete(&mut root, file)?;
        let mut bytes = root.measure_again(file.position());
        if bytes > file.bytes_left_in_page() {
            if bytes <= PAGE_BYTES {
                file.pad_to_page()?;
                bytes = root.measure_again(file.position());
            }
            if bytes > file.bytes_left_in_page() {
                lay_out_children(&mut root, file)?;
                if root.node_bytes > file.bytes_left_in_page() {
                    file.pad_to_page()?;
                    root.measure_again(file.position());
                }
            }
        }
        root.write(file)
    }

    /// Forgets what was added since the last finish. What was written of it remains, unused.
    pub fn reset(&mut self) {
        self.stack.clear();
        self.stack.push(Branch::new(0));
        self.last_key.clear();
        self.count = 0;
    }

    fn complete_last<F: PageFile>(&mut self, file: &mut F) -> Result<(), F::Error> {
        let Some(mut node) = self.stack.pop() else { return Ok(()) };
        complete(&mut node, file)?;
        if let Some(parent) = self.stack.last_mut() {
            let last = parent.children.last();
            assert!(last.is_none_or(|last| last.byte < node.byte), "children of a node rise by their bytes");
            parent.children.push(node);
        }
        Ok(())
    }
}

/// Measures a node to which nothing will be added, and writes its children if they are too many.
fn complete<P: Payload, F: PageFile>(node: &mut Branch<P>, file: &mut F) -> Result<(), F::Error> {
    node.branch_bytes = node.children.iter().map(Branch::total_bytes).sum();
    node.node_bytes = node.measure(file.position());
    if node.total_bytes() >= PAGE_BYTES {
        return lay_out_children(node, file);
    }
    node.points_out = node.children.iter().any(|child| child.position.is_some());
    let below = |child: &Branch<P>| child.position.is_none() && (child.points_out || child.points_out_below);
    node.points_out_below = node.children.iter().any(below);
    Ok(())
}

/// Writes the branches of all children, the largest that fits first.
fn lay_out_children<P: Payload, F: PageFile>(node: &mut Branch<P>, file: &mut F) -> Result<(), F::Error> {
    // By size, then by byte: of equal ones the latest, whose children may be nearer, is taken first.
    let unwritten = (0..node.children.len()).filter(|index| node.children[*index].position.is_none());
    let mut waiting: Vec<(usize, usize)> =
        unwritten.map(|index| (node.children[index].total_bytes(), index)).collect();
    waiting.sort_unstable();
    let mut left = file.bytes_left_in_page();
    while !waiting.is_empty() {
        let fitting = waiting.partition_point(|(bytes, _)| *bytes <= left);
        let (_, index) = if fitting > 0 {
            waiting.remove(fitting - 1)
        } else {
            file.pad_to_page()?;
            left = PAGE_BYTES;
            waiting.remove(waiting.len() - 1)
        };
        let child = &mut node.children[index];
        if child.points_out || child.points_out_below {
            let bytes = child.measure_again(file.position());
            if bytes > left {
                if left == PAGE_BYTES {
                    lay_out_children(child, file)?;
                    left = file.bytes_left_in_page();
                }
                let entry = (node.children[index].total_bytes(), index);
                waiting.insert(waiting.partition_point(|other| *other < entry), entry);
                continue;
            }
        }
        let position = child.write(file)?;
        child.finish(position);
        left = file.bytes_left_in_page();
    }
    assert!(node.children.iter().all(|child| child.position.is_some()), "all children are laid out");
    node.branch_bytes = 0;
    node.points_out = true;
    node.points_out_below = false;
    node.node_bytes = node.measure(file.position());
    Ok(())
}
