//! `nodetool describecluster`, `describering`, `getendpoints`, `getseeds`: all nodes together.

use std::io::Write;

use management::{Cluster, Endpoints, Range, Ranges, Replica};

use super::NodetoolError;

/// Prints the cluster. Cassandra puts an empty line behind each version.
pub(super) fn describe(cluster: &Cluster, out: &mut impl Write) -> Result<(), NodetoolError> {
    writeln!(out, "Cluster Information:")?;
    writeln!(out, "\tName: {}", cluster.name)?;
    writeln!(out, "\tSnitch: {}", cluster.snitch)?;
    writeln!(out, "\tDynamicEndPointSnitch: disabled")?;
    writeln!(out, "\tPartitioner: {}", cluster.partitioner)?;
    writeln!(out, "\tSchema versions:")?;
    let unreachable = ("UNREACHABLE".to_owned(), cluster.unreachable.clone());
    let unreachable = Some(unreachable).filter(|(_, nodes)| !nodes.is_empty());
    for (version, nodes) in cluster.schema_versions.clone().into_iter().chain(unreachable) {
        writeln!(out, "\t\t{version}: [{}]\n", nodes.join(", "))?;
    }
    let node_count: u64 = cluster.data_centers.values().map(|center| center.node_count).sum();
    let down_count: u64 = cluster.data_centers.values().map(|center| center.down_count).sum();
    writeln!(out, "Stats for all nodes:")?;
    writeln!(out, "\tLive: {}", node_count.saturating_sub(down_count))?;
    writeln!(out, "\tJoining: 0\n\tMoving: 0\n\tLeaving: 0")?;
    writeln!(out, "\tUnreachable: {down_count}")?;
    writeln!(out, "\nData Centers: ")?;
    for (name, center) in &cluster.data_centers {
        writeln!(out, "\t{name} #Nodes: {} #Down: {}", center.node_count, center.down_count)?;
    }
    writeln!(out, "\nDatabase versions:")?;
    for (version, nodes) in &cluster.release_versions {
        writeln!(out, "\t{version}: [{}]\n", nodes.join(", "))?;
    }
    writeln!(out, "Keyspaces:")?;
    for (name, replication) in &cluster.keyspaces {
        let options: Vec<String> =
            replication.options.iter().map(|(name, value)| format!("{name}={value}")).collect();
        writeln!(out, "\t{name} -> Replication class: {} {{{}}}", replication.class, options.join(", "))?;
    }
    Ok(())
}

/// Prints the ranges of a keyspace with their replicas.
pub(super) fn ranges(ranges: &Ranges, out: &mut impl Write) -> Result<(), NodetoolError> {
    writeln!(out, "Schema Version:{}", ranges.schema_version)?;
    writeln!(out, "TokenRange: ")?;
    for Range { start_token, end_token, replicas } in &ranges.ranges {
        let each = |tell: fn(&Replica) -> String| replicas.iter().map(tell).collect::<Vec<_>>().join(", ");
        let details = |Replica { address, data_center, rack, .. }: &Replica| {
            format!("EndpointDetails(host:{address}, datacenter:{data_center}, rack:{rack})")
        };
        writeln!(
            out,
            "\tTokenRange(start_token:{start_token}, end_token:{end_token}, endpoints:[{}], rpc_endpoints:[{}], \
             endpoint_details:[{}])",
            each(|replica| replica.address.clone()),
            each(|replica| replica.cql_address.clone()),
            each(details),
        )?;
    }
    Ok(())
}

/// Prints the nodes that have a key.
pub(super) fn endpoints(endpoints: &Endpoints, out: &mut impl Write) -> Result<(), NodetoolError> {
    endpoints.addresses.iter().try_for_each(|address| writeln!(out, "{address}"))?;
    Ok(())
}

/// Prints the seeds.
pub(super) fn seeds(cluster: &Cluster, out: &mut impl Write) -> Result<(), NodetoolError> {
    match cluster.seeds.as_slice() {
        [] => writeln!(out, "Seed node list does not contain any remote node IPs")?,
        seeds => writeln!(
            out,
            "Current list of seed node IPs, excluding the current node's IP: {}",
            seeds.join(" ")
        )?,
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use management::{DataCenter, Replication};

    use super::*;

    fn shown(print: impl Fn(&mut Vec<u8>) -> Result<(), NodetoolError>) -> String {
        let mut out = Vec::new();
        print(&mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_cluster_is_described_in_the_words_of_cassandra() {
        let list = |nodes: &[&str]| nodes.iter().map(|node| (*node).to_owned()).collect::<Vec<_>>();
        let simple = Replication {
            class: "SimpleStrategy".into(),
            options: [("replication_factor".into(), "2".into())].into(),
        };
        let cluster = Cluster {
            name: "c".into(),
            snitch: "s".into(),
            partitioner: "p".into(),
            schema_versions: [("v".into(), list(&["10.0.0.1", "10.0.0.2"]))].into(),
            unreachable: list(&["10.0.0.3"]),
            data_centers: [("dc1".into(), DataCenter { node_count: 3, down_count: 1 })].into(),
            release_versions: [("5.0.9".into(), list(&["10.0.0.1:7000"]))].into(),
            keyspaces: [("k".into(), simple)].into(),
            seeds: Vec::new(),
        };
        let expected = "Cluster Information:\n\tName: c\n\tSnitch: s\n\tDynamicEndPointSnitch: disabled\n\
            \tPartitioner: p\n\tSchema versions:\n\t\tv: [10.0.0.1, 10.0.0.2]\n\n\
            \t\tUNREACHABLE: [10.0.0.3]\n\nStats for all nodes:\n\tLive: 2\n\tJoining: 0\n\tMoving: 0\n\
            \tLeaving: 0\n\tUnreachable: 1\n\nData Centers: \n\tdc1 #Nodes: 3 #Down: 1\n\n\
            Database versions:\n\t5.0.9: [10.0.0.1:7000]\n\n\
            Keyspaces:\n\tk -> Replication class: SimpleStrategy {replication_factor=2}\n";
        assert_eq!(shown(|out| describe(&cluster, out)), expected);
        let none = "Seed node list does not contain any remote node IPs\n";
        assert_eq!(shown(|out| seeds(&cluster, out)), none);
        let some = Cluster { seeds: list(&["/10.0.0.1:7000", "/10.0.0.2:7000"]), ..cluster };
        let expected = "Current list of seed node IPs, excluding the current node's IP: /10.0.0.1:7000 \
            /10.0.0.2:7000\n";
        assert_eq!(shown(|out| seeds(&some, out)), expected);
    }

    #[test]
    fn ranges_are_described_in_the_words_of_cassandra() {
        let replica = |number: u8| Replica {
            address: format!("10.0.0.{number}"),
            cql_address: format!("10.1.0.{number}"),
            data_center: "dc1".into(),
            rack: "r1".into(),
        };
        let range =
            Range { start_token: "-1".into(), end_token: "9".into(), replicas: vec![replica(1), replica(2)] };
        let of = Ranges { schema_version: "v".into(), ranges: vec![range] };
        let expected = "Schema Version:v\nTokenRange: \n\
            \tTokenRange(start_token:-1, end_token:9, endpoints:[10.0.0.1, 10.0.0.2], \
            rpc_endpoints:[10.1.0.1, 10.1.0.2], \
            endpoint_details:[EndpointDetails(host:10.0.0.1, datacenter:dc1, rack:r1), \
            EndpointDetails(host:10.0.0.2, datacenter:dc1, rack:r1)])\n";
        assert_eq!(shown(|out| ranges(&of, out)), expected);
    }
}
