//! `system_views.gossip_info` and `internode_outbound`: the nodes of a ring, and what this one asks the others. A node
//! that is alone has none.
//!
//! As in `nodetool gossipinfo`, the version of a value is the epoch of the ring, or of the schema, that it was known
//! with. What nobody counts is null.

use cluster::membership::{Counted, Known, MessageTotals};
use cluster::metadata::{Member, MemberState};
use read::PartitionRows;
use schema::Table;

use super::made_up::{MadeUpRows, Value};
use super::peers::{OwnSchema, schema_version};
use super::view::RELEASE_VERSION;

/// The rows of `gossip_info`.
pub(super) fn gossip_rows(table: &Table, known: &Known, own: OwnSchema) -> Vec<PartitionRows> {
    let mut rows = MadeUpRows::new(table);
    for member in known.members().iter().flat_map(|members| members.list()) {
        rows.add_all(gossip(member, known, own));
    }
    rows.finish()
}

fn gossip(
    Member { candidate, tokens, state }: &Member,
    known: &Known,
    own: OwnSchema,
) -> Vec<(&'static str, Value)> {
    let other = Some(known.other(candidate.host_id)).filter(|_| candidate.host_id != known.host_id());
    let epoch = |epoch: u64| Value::from(i32::try_from(epoch).unwrap_or(i32::MAX));
    let incarnation = match &other {
        Some(other) => other.incarnation(),
        None => Some(known.incarnation()),
    };
    let generation = incarnation.map(|micros| micros / 1_000_000);
    let (is_alive, schema_epoch) =
        other.as_ref().map_or((true, own.epoch), |other| (other.is_alive(), other.schema_epoch()));
    let serves = other.as_ref().map_or_else(|| known.is_serving(), |other| other.is_up());
    let load = match &other {
        Some(other) => other.load_bytes(),
        None => known.load_bytes(),
    };
    let word = if *state == MemberState::Joining { "JOINING" } else { "NORMAL" };
    let status = tokens.first().map(|token| format!("{word},{token}"));
    let of_ring = [
        ("dc", Value::from(&candidate.data_center)),
        ("host_id", candidate.host_id.to_string().into()),
        ("internal_address_and_port", candidate.address.to_string().into()),
        ("native_address_and_port", candidate.cql_address.to_string().into()),
        ("rack", (&candidate.rack).into()),
        ("release_version", RELEASE_VERSION.into()),
        ("status_with_port", status.into()),
    ];
    let versions = [
        "dc_version",
        "host_id_version",
        "internal_address_and_port_version",
        "native_address_and_port_version",
        "rack_version",
        "release_version_version",
        "status_with_port_version",
        "tokens_version",
    ];
    let versions = versions.map(|name| (name, epoch(known.ring_epoch())));
    let of_node = [
        ("address", Value::from(candidate.address.ip())),
        ("port", i32::from(candidate.address.port()).into()),
        ("generation", generation.map_or(Value::Null, epoch)),
        ("load", load.map(|bytes| bytes.to_string()).into()),
        ("rpc_ready", serves.to_string().into()),
        ("schema", schema_version(own, is_alive, schema_epoch).to_string().into()),
        ("schema_version", epoch(schema_epoch)),
    ];
    of_node.into_iter().chain(of_ring).chain(versions).collect()
}

/// The rows of `internode_outbound`: requests to shards, about agreement and about membership together.
pub(super) fn outbound_rows(table: &Table, known: &Known) -> Vec<PartitionRows> {
    let mut rows = MadeUpRows::new(table);
    let counted = known.counted();
    let members = known.members();
    let members = members.iter().flat_map(|members| members.list());
    for Member { candidate, .. } in members.filter(|member| member.candidate.host_id != known.host_id()) {
        let is_to = |counted: &&Counted| counted.host_id == Some(candidate.host_id);
        let MessageTotals { pending, answered, lost } = counted.iter().filter(is_to).collect();
        rows.add([
            ("address", candidate.address.ip().into()),
            ("port", i32::from(candidate.address.port()).into()),
            ("dc", (&candidate.data_center).into()),
            ("rack", (&candidate.rack).into()),
            ("error_count", lost.into()),
            ("pending_count", pending.into()),
            ("sent_count", answered.into()),
        ]);
    }
    rows.finish()
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::super::definitions::virtual_keyspaces;
    use super::super::made_up::testing::text;
    use super::super::peers::testing::{candidate, known};
    use super::*;

    fn lines(name: &str, rows: impl Fn(&Table) -> Vec<PartitionRows>) -> Vec<String> {
        let keyspaces = virtual_keyspaces().expect("keyspaces");
        let table = keyspaces.iter().find_map(|keyspace| keyspace.tables.get(name)).expect("a table");
        text(table, &rows(table))
    }

    #[test]
    fn all_nodes_of_a_ring_are_told_of_and_the_others_are_asked() {
        let known = known((1..=2).map(candidate).collect());
        known.set_load_bytes(77);
        let own = OwnSchema { epoch: 0, version: Uuid::nil() };
        let gossip = lines("gossip_info", |table| gossip_rows(table, &known, own));
        assert_eq!(gossip.len(), 2, "{gossip:?}");
        for part in
            ["address=10.0.0.1 port=7000", "dc=dc1", "load=77", "internal_address_and_port=10.0.0.1:7000"]
        {
            assert!(gossip[0].contains(part), "{part}: {}", gossip[0]);
        }
        let of_other = &gossip[1];
        assert!(of_other.contains("address=10.0.0.2") && of_other.contains("rpc_ready=false"), "{of_other}");
        assert!(!of_other.contains(" load="), "it has told nothing yet: {of_other}");
        let outbound = lines("internode_outbound", |table| outbound_rows(table, &known));
        assert_eq!(
            outbound,
            ["address=10.0.0.2 port=7000 dc=dc2 rack=r1 error_count=0 pending_count=0 sent_count=0"]
        );
    }
}
