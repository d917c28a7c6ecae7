//! Any bytes as what another node says about agreement, or as a record of its log; see `cluster::raft::hostile`.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| cluster::raft::hostile::read_agreement(data));
