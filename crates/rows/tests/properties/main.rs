//! What must hold of rows whatever they are: properties over random rows, ranges and streams.
//!
//! | file | property |
//! |---|---|
//! | `given.rs` | (what the others draw from) |
//! | `counting.rs` | counters show the sum of what was added, whoever counted it and however it came to others |
//! | `encoding.rs` | rows and mutations survive encoding; hostile bytes do no harm |
//! | `merging.rs` | merging rows is commutative, associative, idempotent; purging hides nothing and reveals nothing |
//! | `ranges.rs` | range tombstones and slices behave as the sets they stand for |
//! | `streams.rs` | merged streams equal what a naive model says, both ways, within slices |

mod counting;
mod encoding;
mod given;
mod merging;
mod ranges;
mod streams;
