//! Which of the sixteen kinds a node gets, and how it is written.

use crate::push_low_bytes;

/// Kinds with one child, by the width its pointer needs.
const SINGLES: [u8; 8] = [1, 2, 3, 4, 12, 13, 14, 15];
const SPARSES: [u8; 8] = [5, 5, 6, 7, 8, 9, 9, 15];
const DENSES: [u8; 8] = [10, 10, 10, 11, 12, 13, 14, 15];
/// Bits that pointers of the columns above have.
const WIDTHS: [u32; 8] = [4, 8, 12, 16, 24, 32, 40, 64];

/// Half bytes of a pointer of each kind.
pub(crate) const POINTER_NIBBLES: [u8; 16] = [0, 1, 2, 3, 4, 2, 3, 4, 6, 10, 3, 4, 6, 8, 10, 16];

const _: () = {
    let mut column = 0;
    while column < WIDTHS.len() {
        assert!(POINTER_NIBBLES[SINGLES[column] as usize] as u32 * 4 >= WIDTHS[column], "one pointer fits");
        assert!(POINTER_NIBBLES[SPARSES[column] as usize] as u32 * 4 >= WIDTHS[column], "sparse ones fit");
        assert!(POINTER_NIBBLES[DENSES[column] as usize] as u32 * 4 >= WIDTHS[column], "dense ones fit");
        column += 1;
    }
};

/// What decides over a node's kind.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outline {
    pub(crate) child_count: usize,
    pub(crate) first_byte: u8,
    pub(crate) last_byte: u8,
    /// Distance to the furthest child.
    pub(crate) distance_max: u64,
    pub(crate) has_payload: bool,
}

impl Outline {
    /// The kind of the node.
    #[inline]
    pub(crate) fn kind(&self) -> u8 {
        if self.child_count == 0 {
            return 0;
        }
        let bits = 64 - self.distance_max.leading_zeros();
        let mut width = WIDTHS.iter().position(|width| bits <= *width).unwrap_or(WIDTHS.len() - 1);
        if self.child_count == 1 {
            // The kinds of 4 and 12 bits have no room for payload flags.
            if self.has_payload && (width == 0 || width == 2) {
                width += 1;
            }
            return SINGLES[width];
        }
        let (sparse, dense) = (SPARSES[width], DENSES[width]);
        if self.bytes_as(sparse) < self.bytes_as(dense) { sparse } else { dense }
    }

    /// Bytes of the node as that kind, without payload.
    #[inline]
    pub(crate) fn bytes_as(&self, kind: u8) -> usize {
        let nibbles = usize::from(POINTER_NIBBLES[usize::from(kind)]);
        match kind {
            0 => 1,
            1 => 2,
            3 => 3,
            2 | 4 => 2 + nibbles / 2,
            5..=9 => 2 + self.child_count + (self.child_count * nibbles).div_ceil(2),
            _ => {
                let range = usize::from(self.last_byte - self.first_byte) + 1;
                3 + (range * nibbles).div_ceil(2)
            }
        }
    }
}

/// Writes a node: `children` are bytes and distances, rising by byte.
pub(crate) fn write(
    kind: u8,
    payload_flags: u8,
    children: impl ExactSizeIterator<Item = (u8, u64)> + Clone,
    out: &mut Vec<u8>,
) {
    let nibbles = usize::from(POINTER_NIBBLES[usize::from(kind)]);
    let head = kind << 4;
    let (first_byte, distance) = children.clone().next().unwrap_or_default();
    match kind {
        0 => out.push(head | payload_flags),
        1 => out.extend_from_slice(&[head | distance as u8, first_byte]),
        3 => out.extend_from_slice(&[head | (distance >> 8) as u8, distance as u8, first_byte]),
        2 | 4 => {
            out.extend_from_slice(&[head | payload_flags, first_byte]);
            push_low_bytes(distance, nibbles / 2, out);
        }
        5..=9 => {
            out.extend_from_slice(&[head | payload_flags, children.len() as u8]);
            out.extend(children.clone().map(|(byte, _)| byte));
            let mut pointers = Pointers::new(nibbles, out);
            children.for_each(|(_, distance)| pointers.push(distance));
            pointers.finish();
        }
        _ => {
            let last_byte = children.clone().last().map_or(first_byte, |(byte, _)| byte);
            out.extend_from_slice(&[head | payload_flags, first_byte, last_byte - first_byte]);
            let mut pointers = Pointers::new(nibbles, out);
            let mut next = u16::from(first_byte);
            for (byte, distance) in children {
                while next < u16::from(byte) {
                    pointers.push(0);
                    next += 1;
                }
                pointers.push(distance);
                next += 1;
            }
            pointers.finish();
        }
    }
}

/// Writes pointers one behind the other, of 1½ bytes too.
struct Pointers<'a> {
    nibbles: usize,
    /// High bits of the next byte, when it is begun.
    carry: Option<u8>,
    out: &'a mut Vec<u8>,
}

impl<'a> Pointers<'a> {
    fn new(nibbles: usize, out: &'a mut Vec<u8>) -> Self {
        Pointers { nibbles, carry: None, out }
    }

    fn push(&mut self, distance: u64) {
        if self.nibbles != 3 {
            push_low_bytes(distance, self.nibbles / 2, self.out);
            return;
        }
        match self.carry.take() {
            None => {
                self.out.push((distance >> 4) as u8);
                self.carry = Some((distance << 4) as u8);
            }
            Some(carry) => self.out.extend_from_slice(&[carry | (distance >> 8) as u8, distance as u8]),
        }
    }

    fn finish(self) {
        self.out.extend(self.carry);
    }
}
