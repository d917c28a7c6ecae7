//! `nodetool gossipinfo`, `failuredetector`: what the node knows of the others, and whom it hears.

use std::io::Write;

use management::{Gossip, KnownNode};

use super::NodetoolError;
use super::http::Management;
use super::status::resolve;

/// Asks for what is known of the nodes, with names instead of addresses if that is wished.
pub(super) fn get(management: &Management, resolve_ip: bool) -> Result<Gossip, NodetoolError> {
    let mut gossip: Gossip = management.get("/v1/gossip", &[])?;
    if resolve_ip {
        let hosts = std::fs::read_to_string("/etc/hosts").unwrap_or_default();
        gossip.nodes.iter_mut().for_each(|node| resolve(&mut node.address, &hosts));
    }
    Ok(gossip)
}

/// Prints what is known of each node, as Cassandra does: `name:version:value`. The version is the epoch of the ring or
/// of the schema that it was known with; there is none in a ring of one.
pub(super) fn info(gossip: &Gossip, out: &mut impl Write) -> Result<(), NodetoolError> {
    for node in &gossip.nodes {
        writeln!(out, "/{}", node.address)?;
        match node.generation {
            Some(generation) => writeln!(out, "  generation:{generation}")?,
            None => writeln!(out, "  generation: not heard yet")?,
        }
        writeln!(out, "  heartbeat: not counted")?;
        let ring_epoch = gossip.ring_epoch.map(|epoch| epoch.to_string()).unwrap_or_default();
        let mut state = |name: &str, version: &str, value: &str| writeln!(out, "  {name}:{version}:{value}");
        if let Some(version) = &node.schema_version {
            state("SCHEMA", &node.schema_epoch.to_string(), version)?;
        }
        state("DC", &ring_epoch, &node.data_center)?;
        state("RACK", &ring_epoch, &node.rack)?;
        state("RELEASE_VERSION", &ring_epoch, &node.release_version)?;
        state("HOST_ID", &ring_epoch, &node.host_id)?;
        // Heartbeats say it, and nobody counts them.
        state("RPC_READY", "", if node.serves_clients { "true" } else { "false" })?;
        state("INTERNAL_ADDRESS_AND_PORT", &ring_epoch, &node.internal_address)?;
        state("NATIVE_ADDRESS_AND_PORT", &ring_epoch, &node.native_address)?;
        match &node.token {
            Some(token) => {
                state("STATUS_WITH_PORT", &ring_epoch, &format!("NORMAL,{token}"))?;
                state("TOKENS", &ring_epoch, "<hidden>")?;
            }
            None => writeln!(out, "  TOKENS: not present")?,
        }
    }
    // Cassandra prints the text with a line end behind it.
    writeln!(out)?;
    Ok(())
}

/// Prints how long the others have been silent.
pub(super) fn silences(gossip: &Gossip, out: &mut impl Write) -> Result<(), NodetoolError> {
    writeln!(
        out,
        "No phi is computed: a node is down when nothing was heard of it for {} ms.",
        gossip.silence_max_ms
    )?;
    writeln!(out, "{:>10},{:>16}", "Endpoint", "Silence (ms)")?;
    let others = gossip.nodes.iter().filter(|node| !node.is_self);
    for KnownNode { address, silence_ms, .. } in others {
        let silence = silence_ms.map_or_else(|| "never heard".to_owned(), |silence| silence.to_string());
        writeln!(out, "{:>10},{silence:>16}", format!("/{address}"))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gossip() -> Gossip {
        let this = KnownNode {
            address: "127.0.0.1".into(),
            is_self: true,
            generation: Some(1_700_000_000),
            serves_clients: true,
            schema_epoch: 4,
            schema_version: Some("aea5fe85-3a3f-3a13-b5ef-ce40d7c432dc".into()),
            data_center: "dc1".into(),
            rack: "r1".into(),
            release_version: "5.0.9".into(),
            host_id: "6d194555-f6eb-41d0-c000-000000000001".into(),
            internal_address: "127.0.0.1:7000".into(),
            native_address: "127.0.0.1:9042".into(),
            token: Some("-9".into()),
            silence_ms: None,
        };
        let other = KnownNode {
            address: "127.0.0.2".into(),
            is_self: false,
            generation: None,
            serves_clients: false,
            schema_version: None,
            token: None,
            ..this.clone()
        };
        let third = KnownNode { address: "127.0.0.3".into(), silence_ms: Some(120), ..other.clone() };
        Gossip { ring_epoch: Some(3), silence_max_ms: 1_000, nodes: vec![this, other, third] }
    }

    fn printed(print: impl FnOnce(&Gossip, &mut Vec<u8>) -> Result<(), NodetoolError>) -> String {
        let mut out = Vec::new();
        print(&gossip(), &mut out).expect("prints");
        String::from_utf8(out).expect("text")
    }

    #[test]
    fn each_node_is_told_of_in_cassandras_lines() {
        let shown = printed(info);
        let first = "/127.0.0.1\n  generation:1700000000\n  heartbeat: not counted\n  \
                     SCHEMA:4:aea5fe85-3a3f-3a13-b5ef-ce40d7c432dc\n  DC:3:dc1\n  RACK:3:r1\n  \
                     RELEASE_VERSION:3:5.0.9\n  HOST_ID:3:6d194555-f6eb-41d0-c000-000000000001\n  RPC_READY::true\n  \
                     INTERNAL_ADDRESS_AND_PORT:3:127.0.0.1:7000\n  NATIVE_ADDRESS_AND_PORT:3:127.0.0.1:9042\n  \
                     STATUS_WITH_PORT:3:NORMAL,-9\n  TOKENS:3:<hidden>\n/127.0.0.2\n  generation: not heard yet\n";
        assert!(shown.starts_with(first), "{shown}");
        assert_eq!(shown.matches("SCHEMA:").count(), 1, "of the others it is not known: {shown}");
        assert!(shown.ends_with("  TOKENS: not present\n\n"), "{shown}");
    }

    #[test]
    fn the_silence_of_others_is_told_and_no_phi() {
        let shown = printed(silences);
        let expected = "No phi is computed: a node is down when nothing was heard of it for 1000 ms.\n  \
                        Endpoint,    Silence (ms)\n/127.0.0.2,     never heard\n/127.0.0.3,             120\n";
        assert_eq!(shown, expected);
    }
}
