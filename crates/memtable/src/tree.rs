//! Partitions in ring order: a B+ tree over tokens.
//!
//! ```text
//!   inner node   tokens of the first entries below all children but the first │ children
//!   leaf         tokens of its entries                                        │ places of the entries │ next leaf
//!   entries      partition key and value, where they were put first, never moved
//! ```
//!
//! A look-up in a large map is a walk through memory that is in no cache, and what counts is how many
//! lines it touches. The order of partitions is that of their tokens but for the rare two of one
//! token, so nodes hold nothing but tokens, thirty-two in four lines, which are asked for together; and there are
//! two or three levels less than in a tree of eleven keys a node. Nothing is ever taken out of a memtable.

use std::ops::Bound;

use rows::PartitionKey;
use smallvec::SmallVec;
use stdx::prefetch::{prefetch, prefetch_value};

/// Tokens of a node.
const WIDTH: usize = 32;
/// What nodes take for each entry: with keys in no order they are two thirds full.
pub(super) const NODE_BYTES_PER_ENTRY: usize = (size_of::<Leaf>() + size_of::<Inner>() / FULL) / FULL;
const FULL: usize = WIDTH * 2 / 3;
/// Keys that are looked up together at most.
pub const KEYS_TOGETHER: usize = 16;
/// Where a node has no token: no token is greater, so that it lies before none.
const UNUSED: i64 = i64::MAX;
/// No leaf.
const NONE: u32 = u32::MAX;
/// Levels of inner nodes at most: enough for two billion entries.
const HEIGHT_MAX: usize = 16;

const _: () = assert!(WIDTH.is_power_of_two(), "a node is halved when it is searched, and when it is split");
const _: () = assert!((WIDTH / 2).pow(8) > NONE as usize, "eight levels are enough for all places");

/// Where an entry is, for good.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartitionPlace(u32);

/// Where some keys are; `None` for those that are not there.
pub type PartitionPlaces = SmallVec<[Option<PartitionPlace>; KEYS_TOGETHER]>;

/// A map from partition keys to values.
#[derive(Debug)]
pub(super) struct PartitionTree<V> {
    entries: Blocks<(PartitionKey, V)>,
    leaves: Blocks<Leaf>,
    inner: Blocks<Inner>,
    /// [`NONE`] as long as there are no entries: most tables of many are not written to.
    root: u32,
    /// Levels of inner nodes above the leaves.
    height: u32,
}

#[derive(Debug)]
struct Leaf {
    run: Run,
    next: u32,
}

#[derive(Debug)]
struct Inner {
    /// The first entry below each child but the first.
    run: Run,
    /// One more than there are tokens.
    children: [u32; WIDTH + 1],
}

/// Entries in order, by their tokens and their places.
#[derive(Clone, Debug)]
struct Run {
    /// Behind those of the entries all are [`UNUSED`].
    tokens: [i64; WIDTH],
    places: [u32; WIDTH],
    count: usize,
}

/// A node that was split off, to be put behind the one it comes from.
struct Split {
    token: i64,
    place: u32,
    node: u32,
}

impl Run {
    const EMPTY: Run = Run { tokens: [UNUSED; WIDTH], places: [0; WIDTH], count: 0 };

    /// How many tokens are less.
    #[inline]
    fn tokens_before(&self, token: i64) -> usize {
        // Halved without a branch, that of several keys the processor does at the same time: 40 instructions, where to
        // compare all takes 150.
        let (mut count, mut half) = (0, WIDTH / 2);
        while half > 0 {
            count += half * usize::from(self.tokens[count + half - 1] < token);
            half /= 2;
        }
        count + usize::from(self.tokens[count] < token)
    }

    fn insert(&mut self, index: usize, token: i64, place: u32) {
        assert!(index <= self.count && self.count < WIDTH, "a node has room for what comes");
        let (before, behind) = (&self.tokens[..index], &self.tokens[index..self.count]);
        let is_in_order = before.last().is_none_or(|last| *last <= token)
            && behind.first().is_none_or(|next| token <= *next);
        assert!(is_in_order, "tokens of a node rise");
        assert_eq!(self.tokens[self.count], UNUSED, "behind the tokens of a node there is none");
        self.tokens.copy_within(index..self.count, index + 1);
        self.places.copy_within(index..self.count, index + 1);
        (self.tokens[index], self.places[index]) = (token, place);
        self.count += 1;
    }

    /// Keeps the first so many; the others.
    fn split_off(&mut self, kept: usize) -> Run {
        assert!(kept < self.count, "a node that is split leaves something to both");
        let (mut rest, count) = (Run::EMPTY, self.count - kept);
        rest.tokens[..count].copy_from_slice(&self.tokens[kept..self.count]);
        rest.places[..count].copy_from_slice(&self.places[kept..self.count]);
        self.tokens[kept..].fill(UNUSED);
        (self.count, rest.count) = (kept, count);
        rest
    }
}

impl<V> PartitionTree<V> {
    pub(super) fn new() -> Self {
        PartitionTree {
            entries: Blocks::default(),
            leaves: Blocks::default(),
            inner: Blocks::default(),
            root: NONE,
            height: 0,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(super) fn get(&self, key: &PartitionKey) -> Option<&V> {
        if self.root == NONE {
            return None;
        }
        let run = &self.leaves.get(self.leaf_of(key, |_, _| {})).run;
        let place = self.place_at(run, self.count_before(run, key), key)?;
        Some(&self.entries.get(place).1)
    }

    /// Looks for up to [`KEYS_TOGETHER`] keys. They go down level by level, all of them one before any goes
    /// two, so that the memory each waits for comes while the others are looked at. `look` tells which
    /// bytes of a value will be read.
    pub(super) fn places_of(
        &self,
        keys: &[&PartitionKey],
        look: impl Fn(&V) -> Option<&[u8]>,
    ) -> PartitionPlaces {
        assert!(keys.len() <= KEYS_TOGETHER, "so many keys are looked for together");
        if self.root == NONE {
            return SmallVec::from_elem(None, keys.len());
        }
        let mut leaves: SmallVec<[u32; KEYS_TOGETHER]> = SmallVec::from_elem(self.root, keys.len());
        for level in 1..=self.height {
            for (node, key) in leaves.iter_mut().zip(keys) {
                *node = self.child_of(*node, key).1;
                match level == self.height {
                    true => prefetch_value(self.leaves.get(*node)),
                    false => prefetch_value(self.inner.get(*node)),
                }
            }
        }
        // Of the first key with that token, which is nearly always the one.
        let first_of_token = |(leaf, key): (&u32, &&PartitionKey)| {
            let (run, token) = (&self.leaves.get(*leaf).run, key.token.0);
            let index = run.tokens_before(token);
            let place = *run.places[..run.count].get(index).filter(|_| run.tokens[index] == token)?;
            prefetch_value(self.entries.get(place));
            Some(PartitionPlace(place))
        };
        let mut places: PartitionPlaces = leaves.iter().zip(keys).map(first_of_token).collect();
        for place in places.iter().flatten() {
            let (key, value) = self.entries.get(place.0);
            prefetch(&key.bytes);
            prefetch(look(value).unwrap_or_default());
        }
        for ((place, leaf), key) in places.iter_mut().zip(&leaves).zip(keys) {
            if place.is_some_and(|place| *self.key_at(place) != **key) {
                let run = &self.leaves.get(*leaf).run;
                *place = self.place_at(run, self.count_before(run, key), key).map(PartitionPlace);
            }
        }
        places
    }

    /// The key at a place.
    pub(super) fn key_at(&self, place: PartitionPlace) -> &PartitionKey {
        &self.entries.get(place.0).0
    }

    /// The value at a place.
    pub(super) fn at(&self, place: PartitionPlace) -> &V {
        &self.entries.get(place.0).1
    }

    /// The value at a place, to be changed.
    pub(super) fn at_mut(&mut self, place: PartitionPlace) -> &mut V {
        &mut self.entries.get_mut(place.0).1
    }

    /// The value of a key; if there is none, the key as it is to be kept and its value are made. And were
    /// they made?
    pub(super) fn get_or_insert(
        &mut self,
        key: &PartitionKey,
        make: impl FnOnce() -> (PartitionKey, V),
    ) -> (&mut V, bool) {
        if self.root == NONE {
            self.root = self.leaves.push(Leaf { run: Run::EMPTY, next: NONE });
        }
        let mut path = Path::default();
        let leaf = self.leaf_of(key, |node, child| path.push(node, child));
        let run = &self.leaves.get(leaf).run;
        let index = self.count_before(run, key);
        if let Some(place) = self.place_at(run, index, key) {
            return (&mut self.entries.get_mut(place).1, false);
        }
        let place = self.entries.push(make());
        let mut split = self.insert_into_leaf(leaf, index, key.token.0, place);
        while let Some(below) = split.take() {
            match path.pop() {
                Some((node, child)) => split = self.insert_into_inner(node, child, below),
                None => self.grow(below),
            }
        }
        (&mut self.entries.get_mut(place).1, true)
    }

    /// Entries in ring order, from a place on.
    pub(super) fn range(&self, start: Bound<&PartitionKey>) -> Entries<'_, V> {
        let (leaf, index) = match start {
            _ if self.root == NONE => (NONE, 0),
            Bound::Unbounded => (self.first_leaf(), 0),
            Bound::Included(key) | Bound::Excluded(key) => {
                let leaf = self.leaf_of(key, |_, _| {});
                let run = &self.leaves.get(leaf).run;
                let index = self.count_before(run, key);
                let is_left_out =
                    matches!(start, Bound::Excluded(_)) && self.place_at(run, index, key).is_some();
                (leaf, index + usize::from(is_left_out))
            }
        };
        Entries { tree: self, leaf, index }
    }

    /// No entries.
    pub(super) fn none(&self) -> Entries<'_, V> {
        Entries { tree: self, leaf: NONE, index: 0 }
    }

    /// The leaf where a key is or ought to be; `visit` is told each inner node on the way, and which child.
    fn leaf_of(&self, key: &PartitionKey, mut visit: impl FnMut(u32, usize)) -> u32 {
        let mut node = self.root;
        for _ in 0..self.height {
            let (child, below) = self.child_of(node, key);
            visit(node, child);
            node = below;
        }
        node
    }

    /// Which child of an inner node a key is below, and what node that is.
    fn child_of(&self, node: u32, key: &PartitionKey) -> (usize, u32) {
        let inner = self.inner.get(node);
        let child = self.count_before(&inner.run, key);
        // An entry that begins a child is in it.
        let child = child + usize::from(self.place_at(&inner.run, child, key).is_some());
        (child, inner.children[child])
    }

    fn first_leaf(&self) -> u32 {
        (0..self.height).fold(self.root, |node, _| self.inner.get(node).children[0])
    }

    /// How many entries of a run are before the key.
    fn count_before(&self, run: &Run, key: &PartitionKey) -> usize {
        let token = key.token.0;
        let mut count = run.tokens_before(token);
        // Several keys of one token are seldom.
        while count < run.count && run.tokens[count] == token && self.entries.get(run.places[count]).0 < *key
        {
            count += 1;
        }
        count
    }

    /// The place of the entry there, if it is that of the key.
    fn place_at(&self, run: &Run, index: usize, key: &PartitionKey) -> Option<u32> {
        let place = *run.places[..run.count].get(index)?;
        (run.tokens[index] == key.token.0 && self.entries.get(place).0 == *key).then_some(place)
    }

    fn insert_into_leaf(&mut self, leaf: u32, index: usize, token: i64, place: u32) -> Option<Split> {
        let Leaf { run, next } = self.leaves.get_mut(leaf);
        if run.count < WIDTH {
            run.insert(index, token, place);
            return None;
        }
        let mut rest = run.split_off(WIDTH / 2);
        if index <= WIDTH / 2 {
            run.insert(index, token, place);
        } else {
            rest.insert(index - WIDTH / 2, token, place);
        }
        let (first_token, first_place, next) = (rest.tokens[0], rest.places[0], *next);
        let node = self.leaves.push(Leaf { run: rest, next });
        self.leaves.get_mut(leaf).next = node;
        Some(Split { token: first_token, place: first_place, node })
    }

    /// Puts a node behind the child that it was split off.
    fn insert_into_inner(&mut self, node: u32, child: usize, below: Split) -> Option<Split> {
        let inner = self.inner.get_mut(node);
        if inner.run.count < WIDTH {
            inner.insert(child, below);
            return None;
        }
        // The middle entry goes up; what is behind it goes to the new node.
        let kept = WIDTH / 2;
        let mut rest = Inner { run: inner.run.split_off(kept), children: [NONE; WIDTH + 1] };
        let (token, place) = (rest.run.tokens[0], rest.run.places[0]);
        rest.run.tokens.copy_within(1.., 0);
        rest.run.places.copy_within(1.., 0);
        rest.run.count -= 1;
        let moved = rest.run.count + 1;
        rest.children[..moved].copy_from_slice(&inner.children[kept + 1..kept + 1 + moved]);
        if child <= kept {
            inner.insert(child, below);
        } else {
            rest.insert(child - kept - 1, below);
        }
        Some(Split { token, place, node: self.inner.push(rest) })
    }

    /// Puts a new root above the old one and what was split off it.
    fn grow(&mut self, below: Split) {
        let mut root = Inner { run: Run::EMPTY, children: [NONE; WIDTH + 1] };
        root.children[0] = self.root;
        root.insert(0, below);
        self.root = self.inner.push(root);
        self.height += 1;
        assert!(self.height as usize <= HEIGHT_MAX, "the way down is remembered");
    }
}

impl Inner {
    fn insert(&mut self, child: usize, below: Split) {
        self.children.copy_within(child + 1..self.run.count + 1, child + 2);
        self.children[child + 1] = below.node;
        self.run.insert(child, below.token, below.place);
    }
}

/// The inner nodes passed on the way down.
#[derive(Default)]
struct Path {
    steps: [(u32, usize); HEIGHT_MAX],
    length: usize,
}

impl Path {
    fn push(&mut self, node: u32, child: usize) {
        self.steps[self.length] = (node, child);
        self.length += 1;
    }

    fn pop(&mut self) -> Option<(u32, usize)> {
        self.length = self.length.checked_sub(1)?;
        Some(self.steps[self.length])
    }
}

/// Entries of a tree in ring order.
#[derive(Debug)]
pub(super) struct Entries<'a, V> {
    tree: &'a PartitionTree<V>,
    leaf: u32,
    index: usize,
}

impl<V> Clone for Entries<'_, V> {
    fn clone(&self) -> Self {
        Entries { ..*self }
    }
}

impl<'a, V> Iterator for Entries<'a, V> {
    type Item = (&'a PartitionKey, &'a V);

    fn next(&mut self) -> Option<Self::Item> {
        let (key, value) = self.tree.entries.get(self.next_place()?);
        Some((key, value))
    }
}

impl<'a, V> Entries<'a, V> {
    /// The next entries, up to so many. All are fetched before any is looked at: they lie where they were put
    /// first, and each would be waited for.
    pub(super) fn take_together(&mut self, count: usize, out: &mut Vec<(&'a PartitionKey, &'a V)>) {
        let mut ahead = self.clone();
        for place in (0..count).map_while(|_| ahead.next_place()) {
            prefetch_value(self.tree.entries.get(place));
        }
        out.extend(self.take(count));
    }

    fn next_place(&mut self) -> Option<u32> {
        while self.leaf != NONE {
            let Leaf { run, next } = self.tree.leaves.get(self.leaf);
            if let Some(place) = run.places[..run.count].get(self.index) {
                self.index += 1;
                return Some(*place);
            }
            (self.leaf, self.index) = (*next, 0);
        }
        None
    }
}

/// A list that grows without moving what is in it, but for the first few.
#[derive(Debug)]
struct Blocks<T> {
    blocks: Vec<Vec<T>>,
}

const BLOCK: usize = 64;

impl<T> Default for Blocks<T> {
    fn default() -> Self {
        Blocks { blocks: Vec::new() }
    }
}

impl<T> Blocks<T> {
    fn len(&self) -> usize {
        self.blocks.last().map_or(0, |last| (self.blocks.len() - 1) * BLOCK + last.len())
    }

    fn push(&mut self, item: T) -> u32 {
        let place = u32::try_from(self.len()).ok().filter(|place| *place != NONE);
        let place = place.expect("a memtable holds fewer partitions than its budget has bytes");
        if self.blocks.last().is_none_or(|last| last.len() == BLOCK) {
            let room = if self.blocks.is_empty() { 0 } else { BLOCK };
            self.blocks.push(Vec::with_capacity(room));
        }
        if let Some(last) = self.blocks.last_mut() {
            last.push(item);
        }
        place
    }

    fn get(&self, place: u32) -> &T {
        &self.blocks[place as usize / BLOCK][place as usize % BLOCK]
    }

    fn get_mut(&mut self, place: u32) -> &mut T {
        &mut self.blocks[place as usize / BLOCK][place as usize % BLOCK]
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use bytes::Bytes;
    use proptest::prelude::*;
    use types::Token;

    use super::*;

    fn key(token: i64, name: u8) -> PartitionKey {
        PartitionKey { token: Token(token), bytes: Bytes::copy_from_slice(&[name]) }
    }

    /// A tree and a map that hold the same, each key with the number of its insertion.
    fn grown(keys: &[(i64, u8)]) -> (PartitionTree<usize>, BTreeMap<PartitionKey, usize>) {
        let (mut tree, mut map) = (PartitionTree::new(), BTreeMap::new());
        for (number, (token, name)) in keys.iter().enumerate() {
            let key = key(*token, *name);
            let (value, is_new) = tree.get_or_insert(&key, || (key.clone(), number));
            assert_eq!(is_new, !map.contains_key(&key));
            assert_eq!(*value, *map.entry(key).or_insert(number));
        }
        (tree, map)
    }

    fn check(tree: &PartitionTree<usize>, map: &BTreeMap<PartitionKey, usize>) {
        assert_eq!(tree.len(), map.len());
        assert!(tree.range(Bound::Unbounded).eq(map.iter()));
        let (mut entries, mut together) = (tree.range(Bound::Unbounded), Vec::new());
        (0..=map.len() / 7).for_each(|_| entries.take_together(7, &mut together));
        assert!(together.into_iter().eq(map.iter()));
        for (key, value) in map {
            assert_eq!(tree.get(key), Some(value), "{key:?}");
        }
        let keys: Vec<_> = map.keys().collect();
        for keys in keys.chunks(KEYS_TOGETHER) {
            let places = tree.places_of(keys, |_| None);
            let values = places.into_iter().map(|place| place.map(|place| tree.at(place)));
            assert!(values.eq(keys.iter().map(|key| map.get(key))));
        }
    }

    #[test]
    fn many_entries_in_any_order_are_found_and_listed() {
        let spread = |i: u64| i.wrapping_mul(0x9e37_79b9_7f4a_7c15) as i64;
        for count in [0, 1, 32, 33, 1_000, 50_000] {
            let orders: [Vec<(i64, u8)>; 3] = [
                (0..count).map(|i| (spread(i), 0)).collect(),
                (0..count).map(|i| (i as i64, 0)).collect(),
                (0..count).rev().map(|i| (i as i64, 0)).collect(),
            ];
            for keys in orders {
                let (tree, map) = grown(&keys);
                check(&tree, &map);
            }
        }
    }

    #[test]
    fn nodes_take_about_what_is_counted_for_each_entry() {
        let spread = |i: u64| i.wrapping_mul(0x9e37_79b9_7f4a_7c15) as i64;
        let keys: Vec<(i64, u8)> = (0..50_000).map(|i| (spread(i * i), 0)).collect();
        let (tree, _) = grown(&keys);
        let taken = tree.leaves.len() * size_of::<Leaf>() + tree.inner.len() * size_of::<Inner>();
        let counted = tree.len() * NODE_BYTES_PER_ENTRY;
        assert!(taken.abs_diff(counted) < counted / 8, "{taken} bytes, {counted} are counted");
    }

    #[test]
    fn a_node_takes_nothing_out_of_its_order_and_no_more_than_it_has_room_for() {
        let said = |run: &mut Run, index: usize, token: i64| {
            runtime::caught(|| run.insert(index, token, 0)).err().map(|panicked| panicked.what)
        };
        let mut run = Run::EMPTY;
        assert_eq!(said(&mut run, 0, 5), None);
        assert_eq!(said(&mut run, 1, 4).as_deref(), Some("tokens of a node rise"));
        assert_eq!(said(&mut run, 0, 6).as_deref(), Some("tokens of a node rise"));
        (1..WIDTH).for_each(|index| run.insert(index, 5, 0));
        assert_eq!(said(&mut run, 0, 5).as_deref(), Some("a node has room for what comes"));
    }

    proptest! {
        #[test]
        fn it_is_as_a_map(
            // Few tokens, so that many keys share one, over several nodes.
            keys in prop::collection::vec((0..6i64, any::<u8>()), 0..1500),
            asked in prop::collection::vec((-1..7i64, any::<u8>()), 20),
        ) {
            let (tree, map) = grown(&keys);
            check(&tree, &map);
            for (token, name) in asked {
                let key = key(token, name);
                prop_assert_eq!(tree.get(&key), map.get(&key));
                for place in tree.places_of(&[&key, &key], |_| None) {
                    prop_assert_eq!(place.map(|place| tree.at(place)), map.get(&key));
                }
                for start in [Bound::Included(&key), Bound::Excluded(&key)] {
                    prop_assert!(tree.range(start).eq(map.range((start, Bound::Unbounded))));
                }
            }
        }
    }
}
