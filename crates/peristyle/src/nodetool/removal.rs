//! `removenode` and `assassinate`: a dead member is taken out of the ring for good, as long as no keyspace has a table.
//!
//! Its part of the data would have to come to others else, which is not built yet (`removenode`), or would be missing
//! on them (`assassinate`): each replica less is one loss less that the ring bears. So a lost member keeps its place
//! then, as down, until an empty node takes it.

use std::io::Write;

use management::{Info, Node, Status};
use serde_json::json;

use super::NodetoolError;
use super::http::Management;

/// `removenode status`, `removenode force` or `removenode HOST_ID`.
pub(super) fn remove(
    management: &Management,
    operation: &str,
    out: &mut impl Write,
) -> Result<(), NodetoolError> {
    let failed = |what: &str| Err(NodetoolError::Failed(what.to_owned()));
    match operation {
        "status" => Ok(writeln!(out, "RemovalStatus: No token removals in process.")?),
        "force" => failed("No tokens to force removal on, call 'removenode' first"),
        host_id => {
            let (info, status) = (management.get("/v1/info", &[])?, management.get("/v1/status", &[])?);
            take_out(management, dead_member(host_id, &info, &status).map_err(NodetoolError::Failed)?)
        }
    }
}

/// `assassinate ADDRESS`.
pub(super) fn assassinate(management: &Management, address: &str) -> Result<(), NodetoolError> {
    let status: Status = management.get("/v1/status", &[])?;
    match status.nodes.iter().find(|node| node.address == address) {
        None => Err(NodetoolError::Failed(format!("{address} is no member of the ring"))),
        Some(node) => take_out(management, node),
    }
}

fn take_out(management: &Management, node: &Node) -> Result<(), NodetoolError> {
    let removed = management.post("/v1/members/remove", &json!({"host_id": node.host_id}));
    removed.map_err(|error| match error {
        NodetoolError::Failed(why) => NodetoolError::Failed(stays(node, &why)),
        other => other,
    })
}

/// The member with that id, which is down; else why not, in Cassandra's words as far as it has some.
fn dead_member<'s>(host_id: &str, info: &Info, status: &'s Status) -> Result<&'s Node, String> {
    let is_it = |other: &str| other.eq_ignore_ascii_case(host_id);
    match status.nodes.iter().find(|node| is_it(&node.host_id)) {
        None => Err("Host ID not found.".to_owned()),
        Some(_) if is_it(&info.host_id) => Err("Cannot remove self".to_owned()),
        Some(Node { address, is_up: true, .. }) => Err(format!(
            "Node /{address} is alive and owns this ID. Use decommission command to remove it from the ring \
             (which is not built yet)"
        )),
        Some(node) => Ok(node),
    }
}

fn stays(Node { address, host_id, .. }: &Node, why: &str) -> String {
    format!(
        "node {address} ({host_id}) stays a member, and nothing was done: {why}. To give its place to another one, \
         start an empty node: peristyle serve --replace-address {address} ... If most voters are lost for good, see \
         peristyle ring recover"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_would_be_removed_is_told_in_words_why_not() {
        let node = |number: u32, is_up| Node {
            address: format!("10.0.0.{number}"),
            host_id: format!("0000000{number}-0000-0000-0000-00000000000a"),
            is_up,
            ..Node::default()
        };
        let nodes = vec![node(1, true), node(2, true), node(3, false)];
        let info = Info { host_id: nodes[0].host_id.clone(), ..Info::default() };
        let status = Status { nodes: nodes.clone(), ..Status::default() };
        let told = |host_id: &str| dead_member(host_id, &info, &status).expect_err("it is not removed");
        assert_eq!(told("7"), "Host ID not found.");
        assert_eq!(told(&nodes[0].host_id), "Cannot remove self");
        let alive = told(&nodes[1].host_id.to_uppercase());
        assert!(alive.starts_with("Node /10.0.0.2 is alive and owns this ID. Use decommission"), "{alive}");
        let dead = dead_member(&nodes[2].host_id, &info, &status).expect("it is down");
        let dead = stays(dead, "keyspace k holds tables");
        assert!(dead.contains("--replace-address 10.0.0.3 ") && dead.contains("nothing was done"), "{dead}");
    }
}
