//! Any bytes as what another node says about membership, or as metadata that was agreed on, on its way or on the disk;
//! see `cluster::membership::hostile` and `cluster::metadata::hostile`.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    cluster::membership::hostile::read_membership(data);
    cluster::metadata::hostile::read_metadata(data);
});
