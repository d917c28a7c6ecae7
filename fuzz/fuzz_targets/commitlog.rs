//! A commit log of any bytes, replayed, and logs with one known harm; see `commitlog::hostile`.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| commitlog::hostile::read(data));
