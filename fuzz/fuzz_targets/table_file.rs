//! A table file of any bytes, opened and read every way there is; see `sstable::hostile`.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| sstable::hostile::read(data));
