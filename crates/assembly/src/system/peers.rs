//! `system.peers` and `system.peers_v2`: the other nodes of the ring, as drivers find them.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use cluster::membership::Known;
use cluster::metadata::Member;
use md5::{Digest, Md5};
use read::PartitionRows;
use schema::{Schema, Table};
use uuid::Uuid;

use super::definitions::digest_id;
use super::made_up::{MadeUpRows, Value};
use super::schema_version::SchemaVersions;
use super::view::{NodeView, RELEASE_VERSION};

/// The versions of the schema that the nodes have which are heard, this one too, with where they are.
pub fn schema_versions(view: &NodeView, schema: &Schema) -> BTreeMap<Uuid, Vec<SocketAddr>> {
    let own = OwnSchema { epoch: schema.epoch(), version: SchemaVersions::default().of(schema) };
    let mut versions = BTreeMap::<Uuid, Vec<SocketAddr>>::new();
    for Member { candidate, .. } in view.nodes() {
        let epoch = match view.ring().filter(|_| candidate.host_id != view.host_id) {
            Some(known) => known.other(candidate.host_id).schema_epoch(),
            None => own.epoch,
        };
        if view.hears(candidate.host_id) {
            versions.entry(schema_version(own, true, epoch)).or_default().push(candidate.address);
        }
    }
    versions.values_mut().for_each(|nodes| nodes.sort());
    versions
}

/// The schema that this node has.
#[derive(Clone, Copy)]
pub(super) struct OwnSchema {
    pub(super) epoch: u64,
    pub(super) version: Uuid,
}

/// A row for each other member.
pub(super) fn rows(table: &Table, known: &Known, own: OwnSchema) -> Vec<PartitionRows> {
    let mut rows = MadeUpRows::new(table);
    let members = known.members();
    let members = members.iter().flat_map(|members| members.list());
    let others = members.filter(|member| member.candidate.host_id != known.host_id());
    // What a row is found by: `system.peers` does not tell nodes of one address apart, and shows the last, as in
    // Cassandra.
    let has_ports = table.column("peer_port").is_some();
    let port_of = |member: &Member| if has_ports { member.candidate.address.port() } else { 0 };
    let others: BTreeMap<_, _> =
        others.map(|member| ((member.candidate.address.ip(), port_of(member)), member)).collect();
    for member in others.into_values() {
        let candidate = &member.candidate;
        let other = known.other(candidate.host_id);
        let schema_version = schema_version(own, other.is_alive(), other.schema_epoch());
        let port = |port: u16| Value::from(i32::from(port));
        rows.add([
            ("peer", candidate.address.ip().into()),
            ("peer_port", port(candidate.address.port())),
            ("data_center", (&candidate.data_center).into()),
            ("host_id", candidate.host_id.into()),
            ("native_address", candidate.cql_address.ip().into()),
            ("native_port", port(candidate.cql_address.port())),
            ("rack", (&candidate.rack).into()),
            ("release_version", RELEASE_VERSION.into()),
            ("rpc_address", candidate.cql_address.ip().into()),
            ("schema_version", schema_version.into()),
            ("tokens", Value::tokens(&member.tokens)),
        ]);
    }
    rows.finish()
}

/// The version of another node's schema. Drivers wait after a change until all nodes show the same one. A node that
/// does not live takes no statement that could meet an old schema, and has the new one before it serves again: nobody
/// is to wait for it. Of one that is behind, or ahead, only the epoch is known here; all that counts is that its
/// version is another.
pub(super) fn schema_version(own: OwnSchema, is_alive: bool, epoch: u64) -> Uuid {
    if !is_alive || epoch == own.epoch {
        return own.version;
    }
    digest_id(Md5::new_with_prefix(format!("schema at epoch {epoch}")))
}

#[cfg(test)]
pub(super) mod testing {
    use std::sync::Arc;

    use cluster::Members;
    use cluster::metadata::{Candidate, Metadata};
    use messaging::Identity;

    use super::super::definitions::base_schema;
    use super::*;

    pub(crate) fn candidate(number: u8) -> Candidate {
        let host = |port| SocketAddr::from(([10, 0, 0, number], port));
        Candidate {
            host_id: Uuid::from_u128(number.into()),
            address: host(7000),
            cql_address: host(9042),
            data_center: format!("dc{number}"),
            rack: "r1".into(),
            shard_count: 1,
            num_tokens: 2,
            initial_tokens: Vec::new(),
            history_version: 1,
        }
    }

    /// What node 1 of these knows.
    pub(crate) fn known(candidates: Vec<Candidate>) -> Known {
        let identity = Identity {
            cluster_name: "c".into(),
            cluster_id: None,
            host_id: Uuid::from_u128(1),
            incarnation: 1,
            shard_count: 1,
            wants_compression: false,
            secret: None,
        };
        let mut candidates = candidates.into_iter();
        let founder = candidates.next().expect("one at least");
        let founded = Members::founded(Uuid::from_u128(99), founder).expect("a ring");
        let members = candidates.fold(founded, |members, next| members.joined(next).expect("it joins"));
        let schema = Arc::new(base_schema().expect("schema"));
        Known::new(identity, &Metadata { schema, members: Some(Arc::new(members)) })
    }
}

#[cfg(test)]
mod tests {
    use cluster::metadata::Candidate;

    use super::super::definitions::base_schema;
    use super::super::made_up::testing::text;
    use super::testing::{candidate, known};
    use super::*;

    fn peers(table: &str, candidates: Vec<Candidate>) -> Vec<String> {
        let schema = base_schema().expect("schema");
        let table = schema.table("system", table).expect("table");
        let own = OwnSchema { epoch: 0, version: Uuid::nil() };
        let lines = text(table, &rows(table, &known(candidates), own));
        lines.iter().map(|line| line.split(" tokens=").next().unwrap_or_default().to_owned()).collect()
    }

    #[test]
    fn each_other_member_has_a_row() {
        let candidates: Vec<Candidate> = (1..=3).map(candidate).collect();
        let id = |number: u128| Uuid::from_u128(number);
        let rest = format!("release_version=5.0.9 schema_version={}", Uuid::nil());
        let v2 = |number: u8| {
            format!(
                "peer=10.0.0.{number} peer_port=7000 data_center=dc{number} host_id={} native_address=10.0.0.{number} \
                 native_port=9042 rack=r1 {rest}",
                id(number.into())
            )
        };
        assert_eq!(peers("peers_v2", candidates.clone()), [v2(2), v2(3)]);
        let v1 = |number: u8| {
            format!(
                "peer=10.0.0.{number} data_center=dc{number} host_id={} rack=r1 release_version=5.0.9 \
                 rpc_address=10.0.0.{number} schema_version={}",
                id(number.into()),
                Uuid::nil()
            )
        };
        assert_eq!(peers("peers", candidates), [v1(2), v1(3)]);
        assert!(peers("peers_v2", vec![candidate(1)]).is_empty());
    }

    #[test]
    fn nodes_of_one_address_have_one_row_where_ports_are_not_told() {
        let mut other = candidate(3);
        other.address = SocketAddr::from(([10, 0, 0, 2], 7001));
        let candidates = vec![candidate(1), candidate(2), other];
        assert_eq!(peers("peers_v2", candidates.clone()).len(), 2);
        let found = peers("peers", candidates);
        assert!(found.len() == 1 && found[0].contains("data_center=dc3"), "{found:?}");
    }

    #[test]
    fn only_a_node_that_lives_can_have_another_schema() {
        let own = OwnSchema { epoch: 7, version: Uuid::nil() };
        assert_eq!(schema_version(own, true, 7), own.version);
        assert_eq!(schema_version(own, false, 3), own.version);
        let behind = schema_version(own, true, 6);
        assert!(behind != own.version && behind != schema_version(own, true, 5));
    }
}
