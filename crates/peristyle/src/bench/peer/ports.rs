//! Ports for a ring: the same for clients and for the other nodes on each address, one of its own to look after a node.
//!
//! They lie side by side, and are taken in blocks, so that what several searchers find does not overlap by halves:
//!
//! ```text
//!   first        CQL, on 127.0.0.1 to .N
//!   first + 1    the other nodes, on 127.0.0.1 to .N
//!   first + 2    management of node 1, ...
//!   first + 1+N  ... of node N; or all of them on first + 2, on 127.0.0.1 to .N
//! ```

use std::net::{Ipv4Addr, TcpListener};

use super::error::PeerError;

/// As many nodes as `peristyle cluster` starts.
pub(super) const NODE_COUNT_MAX: usize = 64;
/// Blocks begin at multiples of this, more than any ring needs.
const BLOCK: u16 = 80;
/// Below it are those of known services, above those that the kernel gives to connections.
const PORTS: std::ops::Range<u16> = 20_000..32_000;

const _: () = assert!(BLOCK as usize >= NODE_COUNT_MAX + 2, "a ring has room in a block");

/// The first one of each purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ports {
    pub(super) cql: u16,
    pub(super) storage: u16,
    pub(super) management: u16,
}

impl Ports {
    /// The first block, from that port on and round, in which nobody listens.
    ///
    /// # Errors
    /// There is none.
    pub(super) fn free(node_count: usize, first_port: u16) -> Result<Ports, PeerError> {
        let block_count = (PORTS.end - PORTS.start) / BLOCK;
        let begin = first_port.saturating_sub(PORTS.start) / BLOCK;
        let block = |step: u16| PORTS.start + (begin % block_count + step) % block_count * BLOCK;
        let found = (0..block_count).map(block).map(Ports::from).find(|ports| ports.are_free(node_count));
        found.ok_or(PeerError::NoPorts(node_count))
    }

    fn from(first: u16) -> Ports {
        Ports { cql: first, storage: first + 1, management: first + 2 }
    }

    fn are_free(self, node_count: usize) -> bool {
        (0..node_count as u16).all(|index| {
            let address = Ipv4Addr::from(u32::from(Ipv4Addr::LOCALHOST) + u32::from(index));
            let is_free = |address: Ipv4Addr, port: u16| TcpListener::bind((address, port)).is_ok();
            [self.cql, self.storage, self.management].into_iter().all(|port| is_free(address, port))
                && is_free(Ipv4Addr::LOCALHOST, self.management + index)
        })
    }
}

/// Where a program begins to look, other than those that were started beside it: ports may be free that one of these
/// is about to take.
pub(super) fn first_port_of_this_process() -> u16 {
    let blocks = u32::from((PORTS.end - PORTS.start) / BLOCK);
    PORTS.start + (std::process::id() % blocks) as u16 * BLOCK
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_in_which_somebody_listens_is_passed_over() {
        let ports = Ports::free(3, 31_000).unwrap();
        let taken = TcpListener::bind((Ipv4Addr::new(127, 0, 0, 3), ports.storage)).unwrap();
        let others = Ports::free(3, 31_000).unwrap();
        assert_ne!(ports, others);
        assert_ne!(Ports::free(3, ports.cql).unwrap(), ports);
        drop(taken);
        assert_eq!((ports.storage, ports.management), (ports.cql + 1, ports.cql + 2));
    }

    #[test]
    fn the_search_goes_round() {
        for first in [0, PORTS.end - 1, PORTS.end, u16::MAX, first_port_of_this_process()] {
            let ports = Ports::free(1, first).unwrap();
            assert!(PORTS.contains(&ports.cql) && PORTS.contains(&ports.management), "{first}: {ports:?}");
        }
    }
}
