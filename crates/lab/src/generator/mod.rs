//! What is drawn at random: rows, kinds of operation, and the time of the next arrival.
//!
//! Workloads that bear YCSB's names must be YCSB's, flaws included, or their results compare with nobody's. So
//! `Zipfian`, `Scrambled`, `Latest`, `Uniform`, `Discrete`, `fnv64` and `build_key` repeat YCSB 0.17.0. The first
//! three give from the same random fraction the same row, hashes and keys are equal, and `Uniform` is as even: the
//! tests check it against what YCSB's own classes gave. (`Discrete` is checked against its weights.) `TrueZipfian`
//! stands beside them for whoever wants the skew that YCSB only states.
//!
//! A choice and its randomness are apart: a choice is made once and cloned to the threads, each thread has a `Random`
//! of its own, and nothing is shared or locked. A draw takes 2 to 82 ns, as each file tells (medians of five, over
//! three runs on a machine that was also building), so a thread that sends a hundred thousand requests a second
//! spends less than a hundredth of its time on each draw of a request.
//!
//! The same seed draws the same rows. Powers and logarithms are the platform's; where two platforms round the last
//! digit differently, at worst one draw in ten thousand falls on another row.

mod random;

mod hash;
mod permutation;
mod zeta;

mod discrete;
mod latest;
mod scrambled;
mod true_zipfian;
mod uniform;
mod zipfian;

#[cfg(test)]
mod against_ycsb;

pub use discrete::Discrete;
pub use hash::{build_key, fnv64};
pub use latest::Latest;
pub use random::Random;
pub(crate) use random::scattered;
pub use scrambled::{Scrambled, expected_new_rows};
pub use true_zipfian::TrueZipfian;
pub use uniform::Uniform;
pub use zipfian::{ZIPFIAN_CONSTANT, Zipfian};
