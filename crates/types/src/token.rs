//! Where on the ring a partition lives.

/// Position of a partition key on the ring: Murmur3 of the serialized key, as Cassandra's
/// `Murmur3Partitioner` computes it. `i64::MIN` is never the token of a key; it bounds ranges.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Token(pub i64);

const C1: u64 = 0x87c3_7b91_1142_53d5;
const C2: u64 = 0x4cf5_ad43_2745_937f;

impl Token {
    /// The bound below every key's token.
    pub const MIN: Token = Token(i64::MIN);
    /// The largest token a key can have.
    pub const MAX: Token = Token(i64::MAX);

    /// The token of a serialized partition key. The empty key, which no table accepts, is at
    /// [`Token::MIN`].
    pub fn of(key: &[u8]) -> Token {
        if key.is_empty() {
            return Token::MIN;
        }
        let [hash, _] = murmur3_x64_128(key);
        Token(if hash == i64::MIN as u64 { i64::MAX } else { hash as i64 })
    }
}

/// Murmur3's 128-bit form with seed 0 and one deviation kept for the sake of every token ever
/// stored: bytes of the tail (what is left after blocks of 16) are sign-extended. Bloom filters
/// use both halves.
pub fn murmur3_x64_128(key: &[u8]) -> [u64; 2] {
    let (mut h1, mut h2) = (0u64, 0u64);
    let (blocks, tail) = key.as_chunks::<16>();
    for block in blocks {
        let block = u128::from_le_bytes(*block);
        h1 ^= mix_first(block as u64);
        h1 = h1.rotate_left(27).wrapping_add(h2).wrapping_mul(5).wrapping_add(0x52dc_e729);
        h2 ^= mix_second((block >> 64) as u64);
        h2 = h2.rotate_left(31).wrapping_add(h1).wrapping_mul(5).wrapping_add(0x3849_5ab5);
    }
    let (low, high) = tail.split_at(tail.len().min(8));
    if !high.is_empty() {
        h2 ^= mix_second(sign_extended(high));
    }
    if !low.is_empty() {
        h1 ^= mix_first(sign_extended(low));
    }
    h1 ^= key.len() as u64;
    h2 ^= key.len() as u64;
    h1 = h1.wrapping_add(h2);
    h2 = h2.wrapping_add(h1);
    h1 = finish(h1);
    h2 = finish(h2);
    h1 = h1.wrapping_add(h2);
    h2 = h2.wrapping_add(h1);
    [h1, h2]
}

fn mix_first(k: u64) -> u64 {
    k.wrapping_mul(C1).rotate_left(31).wrapping_mul(C2)
}

fn mix_second(k: u64) -> u64 {
    k.wrapping_mul(C2).rotate_left(33).wrapping_mul(C1)
}

/// The quirk: a byte above 0x7f flips all bits above it.
fn sign_extended(bytes: &[u8]) -> u64 {
    bytes.iter().enumerate().fold(0, |value, (i, &byte)| value ^ ((byte as i8 as i64 as u64) << (8 * i)))
}

fn finish(mut k: u64) -> u64 {
    k ^= k >> 33;
    k = k.wrapping_mul(0xff51_afd7_ed55_8ccd);
    k ^= k >> 33;
    k = k.wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    k ^ (k >> 33)
}
