//! A whole node in a test: two shards on a temporary directory, asked over its two ports.

#![allow(clippy::expect_used, reason = "tests say what they expect")]
#![allow(clippy::disallowed_methods, reason = "clients of a real node")]

mod compactions;
mod failing;
mod late;
mod management;
mod moving;
mod operations;
mod overload;
mod pipelined;
mod refused;
mod services;
mod support;
mod system_tables;
mod tombstones;
mod traces;
