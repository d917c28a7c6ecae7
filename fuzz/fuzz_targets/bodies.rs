//! Any bytes as what another node asks, or answers; see `replica::hostile`.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| replica::hostile::read_body(data));
