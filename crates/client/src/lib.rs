//! A CQL connection for tools: the shell, the demo, the crash rounds, the load generator.
//!
//! Blocking and small on purpose: one socket, requests pipelined by hand, no pool, no policies, no
//! metadata. Applications use a driver; this is for programs that need to see the protocol itself.

#[cfg(test)]
use bytes as _;
