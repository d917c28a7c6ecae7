//! With which nodes a talk must be under TLS.

use tls::Certificates;
use uuid::Uuid;

use crate::metadata::{Candidate, Members};

/// Between which nodes what is said is encrypted, in the words of Cassandra's `internode_encryption`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encryption {
    /// Between none that does not ask for it.
    None,
    /// Between nodes of different racks, or data centres.
    Rack,
    /// Between nodes of different data centres.
    Dc,
    /// Between all.
    All,
}

/// How a node's talks are protected.
#[derive(Clone, Debug)]
pub struct Protection {
    /// Which of them must be.
    pub encryption: Encryption,
    /// What the node shows, and whom it believes.
    pub certificates: Certificates,
}

impl Encryption {
    /// Must a talk of the node `here` with that one be encrypted? With a node of which it is not known where it stands,
    /// it must, if with any.
    pub(super) fn is_needed(self, members: Option<&Members>, here: Uuid, there: Option<Uuid>) -> bool {
        let place =
            |host_id| members.and_then(|members| members.get(host_id)).map(|member| &member.candidate);
        let (here, there) = (place(here), there.and_then(place));
        let differ = |of: fn(&Candidate) -> &str| match (here, there) {
            (Some(here), Some(there)) => of(here) != of(there),
            _ => true,
        };
        let is_other_data_center = || differ(|node| &node.data_center);
        match self {
            Encryption::None => false,
            Encryption::Rack => is_other_data_center() || differ(|node| &node.rack),
            Encryption::Dc => is_other_data_center(),
            Encryption::All => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use super::*;

    fn candidate(number: u8, data_center: &str, rack: &str) -> Candidate {
        Candidate {
            host_id: Uuid::from_u128(number.into()),
            address: SocketAddr::from(([10, 0, 0, number], 7000)),
            cql_address: SocketAddr::from(([10, 0, 0, number], 9042)),
            data_center: data_center.into(),
            rack: rack.into(),
            shard_count: 1,
            num_tokens: 2,
            initial_tokens: Vec::new(),
            history_version: crate::metadata::HISTORY_VERSION,
        }
    }

    /// Node 1 stands in the first rack of the first data centre; the others as their numbers say.
    fn members() -> Members {
        let founded = Members::founded(Uuid::from_u128(99), candidate(1, "dc1", "r1")).expect("a ring");
        [candidate(2, "dc1", "r1"), candidate(3, "dc1", "r2"), candidate(4, "dc2", "r1")]
            .into_iter()
            .fold(founded, |members, next| members.joined(next).expect("it joins"))
    }

    #[test]
    fn racks_and_data_centers_decide_and_a_stranger_is_far_away() {
        let members = members();
        let needed = |encryption: Encryption, there: Option<u128>| {
            encryption.is_needed(Some(&members), Uuid::from_u128(1), there.map(Uuid::from_u128))
        };
        let others = [Some(2), Some(3), Some(4), Some(5), None];
        for (encryption, expected) in [
            (Encryption::None, [false; 5]),
            (Encryption::Rack, [false, true, true, true, true]),
            (Encryption::Dc, [false, false, true, true, true]),
            (Encryption::All, [true; 5]),
        ] {
            assert_eq!(others.map(|there| needed(encryption, there)), expected, "{encryption:?}");
        }
        // Before it is a member it does not know where anybody stands.
        let needed =
            |encryption: Encryption| encryption.is_needed(None, Uuid::from_u128(1), Some(Uuid::from_u128(2)));
        let expected = [false, true, true, true];
        assert_eq!(
            [Encryption::None, Encryption::Rack, Encryption::Dc, Encryption::All].map(needed),
            expected
        );
    }
}
