//! `disablebinary` and its like: what a node does for clients and says to others, switched off and on.

use std::io::Write;

use management::Info;
use serde_json::json;

use super::{Management, NodetoolError};

/// Paths of the management port.
pub(super) const NATIVE_TRANSPORT: &str = "/v1/native_transport";
pub(super) const GOSSIP: &str = "/v1/gossip";

/// Switches one of them; it is done when this returns.
pub(super) fn set(management: &Management, path: &str, enabled: bool) -> Result<(), NodetoolError> {
    management.post(path, &json!({ "enabled": enabled }))
}

/// Says whether it is on.
pub(super) fn print(
    management: &Management,
    is_on: fn(&Info) -> bool,
    out: &mut impl Write,
) -> Result<(), NodetoolError> {
    let info: Info = management.get("/v1/info", &[])?;
    writeln!(out, "{}", if is_on(&info) { "running" } else { "not running" })?;
    Ok(())
}
