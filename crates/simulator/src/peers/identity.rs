//! Who simulated nodes are, and where they are reached.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use messaging::{Context, Established, Identity, Node, Secret};
use uuid::Uuid;

pub(crate) fn address(node: usize) -> IpAddr {
    let last = u8::try_from(node + 1).expect("a handful of hosts");
    IpAddr::V4(Ipv4Addr::new(127, 0, 0, last))
}

/// Where a node listens to others.
pub(crate) fn listening(node: usize) -> SocketAddr {
    SocketAddr::new(address(node), 7000)
}

pub(crate) fn host_id(node: usize) -> Uuid {
    Uuid::from_u128(node as u128 + 1)
}

/// A node as it tells others of itself.
pub(crate) struct Me {
    pub(crate) node: usize,
    /// Its life.
    pub(crate) incarnation: u64,
    pub(crate) shard_count: u16,
}

impl Node for Me {
    fn identity(&self) -> Identity {
        Identity {
            cluster_name: "Test Cluster".to_owned(),
            cluster_id: Some(Uuid::from_u128(99)),
            host_id: host_id(self.node),
            incarnation: self.incarnation,
            shard_count: self.shard_count,
            wants_compression: self.node.is_multiple_of(2),
            secret: Some(Secret::new(b"secret")),
        }
    }

    fn context(&self) -> Context {
        Context { clock_micros: 0, schema_epoch: 0, ring_epoch: self.incarnation }
    }

    fn heard(&self, from: &Established, context: Context) {
        assert_eq!(context.ring_epoch, from.incarnation, "frames of another life");
    }
}
