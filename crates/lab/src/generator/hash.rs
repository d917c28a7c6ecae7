//! YCSB's hash of a row's number, and the key it names the row by.
//!
//! The hash is FNV-1a over the number's eight bytes, lowest first (YCSB calls it FNV), without its sign. A row's key is
//! `user` and the hash in decimal, not padded: YCSB's `insertorder=hashed`, its default.
//!
//! A key takes 53 to 86 ns in a release build, most of it to write the digits and to allocate; the hash takes 3 to 5 ns
//! (2026-11-29, one core of an AMD EPYC).

/// FNV-1 and FNV-1a start from this.
const OFFSET_BASIS: u64 = 0xCBF2_9CE4_8422_2325;
const PRIME: u64 = 1_099_511_628_211;

/// YCSB's `Utils.fnvhash64`: below 2^63, but for one hash in 2^64. For that one Java's `Math.abs` fails and YCSB
/// has a negative number; here it is 2^63.
pub fn fnv64(number: u64) -> u64 {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(PRIME);
    let hash = number.to_le_bytes().into_iter().fold(OFFSET_BASIS, step);
    hash.cast_signed().unsigned_abs()
}

/// YCSB's `buildKeyName` of a row.
pub fn build_key(row: u64) -> String {
    format!("user{}", fnv64(row))
}

#[cfg(test)]
mod tests {
    use super::super::against_ycsb::recorded_keys;
    use super::*;

    #[test]
    fn hashes_and_keys_are_ycsbs() {
        let keys = recorded_keys();
        assert!(keys.len() >= 20, "only {} keys are recorded", keys.len());
        for (row, hash, key) in keys {
            assert_eq!((fnv64(row), build_key(row).as_str()), (hash, key), "row {row}");
        }
    }
}
