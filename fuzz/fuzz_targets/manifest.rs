//! Any bytes as a manifest; see `manifest::hostile`.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| manifest::hostile::read(data));
