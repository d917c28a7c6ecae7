//! The token of a partition key: the first half of Murmur3 (128 bits, 64-bit form, seed 0) as Cassandra's partitioner
//! has it, which takes the bytes after the last whole block of 16 as signed ones.

const FIRST: u64 = 0x87c3_7b91_1142_53d5;
const SECOND: u64 = 0x4cf5_ad43_2745_937f;

/// Where a key is on the ring.
pub(crate) fn token(key: &[u8]) -> i64 {
    let (mut low, mut high) = (0u64, 0u64);
    let (blocks, rest) = key.as_chunks::<16>();
    for block in blocks {
        let words = u128::from_le_bytes(*block);
        low = (low ^ scattered_low(words as u64)).rotate_left(27);
        low = low.wrapping_add(high).wrapping_mul(5).wrapping_add(0x52dc_e729);
        high = (high ^ scattered_high((words >> 64) as u64)).rotate_left(31);
        high = high.wrapping_add(low).wrapping_mul(5).wrapping_add(0x3849_5ab5);
    }
    let (first, second) = rest.split_at(rest.len().min(8));
    high ^= scattered_high(signed(second)) ^ key.len() as u64;
    low ^= scattered_low(signed(first)) ^ key.len() as u64;
    low = low.wrapping_add(high);
    high = high.wrapping_add(low);
    match finished(low).wrapping_add(finished(high)) as i64 {
        // No key is at the least token.
        i64::MIN => i64::MAX,
        token => token,
    }
}

fn scattered_low(word: u64) -> u64 {
    word.wrapping_mul(FIRST).rotate_left(31).wrapping_mul(SECOND)
}

fn scattered_high(word: u64) -> u64 {
    word.wrapping_mul(SECOND).rotate_left(33).wrapping_mul(FIRST)
}

/// Up to eight bytes as a number; each reaches over those above it when it is negative. Nothing is 0.
fn signed(bytes: &[u8]) -> u64 {
    let places = (0..).step_by(8);
    bytes.iter().zip(places).fold(0, |word, (byte, place)| word ^ ((*byte as i8 as i64 as u64) << place))
}

fn finished(mut word: u64) -> u64 {
    word = (word ^ (word >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    word = (word ^ (word >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    word ^ (word >> 33)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_those_of_cassandra() {
        assert_eq!(token(b"123"), -7_468_325_962_851_647_638);
        assert_eq!(token(b"test"), -6_017_608_668_500_074_083);
        assert_eq!(token("krem\u{f3}wki".as_bytes()), 4_354_931_215_268_080_151);
    }
}
