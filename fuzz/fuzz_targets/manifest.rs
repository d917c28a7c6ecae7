//! Any bytes as a manifest; see `storage::hostile`.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| storage::hostile::read_manifest(data));
