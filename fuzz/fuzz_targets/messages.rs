//! Any bytes as what another node sends; see `messaging::hostile`. The first byte chooses the handshake or frames.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| match data {
    [0..=63, rest @ ..] => messaging::hostile::read_handshake(rest),
    [_, rest @ ..] => messaging::hostile::read_frames(rest),
    [] => {}
});
