//! What was planned before somebody left the ring.

use cluster::membership::Known;
use cluster::metadata::{Candidate, Metadata};

use super::*;

pub(super) fn candidate(number: u128) -> Candidate {
    let host = |port| SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, 0, 0, number as u8)), port);
    Candidate {
        host_id: Uuid::from_u128(number),
        address: host(7000),
        cql_address: host(9042),
        data_center: "dc1".into(),
        rack: "r1".into(),
        shard_count: 1,
        num_tokens: 4,
        initial_tokens: Vec::new(),
        history_version: 1,
    }
}

/// A node that has come as far as these members.
pub(super) fn known(node: usize, members: &Arc<Members>) -> Known {
    let metadata = Metadata { schema: schema(true), members: Some(Arc::clone(members)) };
    Known::new(Me(node).identity(), &metadata)
}

/// Its frames say that it has come as far as all others: members changed between its plan and the end of its turn.
#[test]
fn what_was_planned_before_the_fence_is_not_answered_whatever_the_frame_says() {
    run(async {
        let founded = Members::founded(Uuid::from_u128(77), candidate(51)).expect("a ring");
        let members = founded.joined(candidate(52)).expect("it joins");
        let members = Arc::new(members.replaced(candidate(52).host_id, &candidate(53)));
        assert_eq!(members.fence(), 3);
        let ring = Ring::start_fenced(&members).await;
        let write = async |planned_at: u64| {
            let replicas = ring.replicas(0).clone().at_ring_epoch(planned_at);
            let mutations = vec![insert(planned_at as i32, "v", 1)];
            replicas.write(mutations, Consistency::Quorum, PATIENCE).await
        };
        let refused = write(2).await;
        assert!(matches!(refused, Err(ReplicaError::WriteTimeout { received: 1, .. })), "{refused:?}");
        write(3).await.expect("it is planned behind that");
        let read = async |planned_at: u64| {
            let replicas = ring.replicas(0).clone().at_ring_epoch(planned_at);
            replicas.read(&command(3), Consistency::Quorum, PATIENCE).await
        };
        assert!(read(2).await.is_err(), "it may have counted on who has left");
        assert_eq!(read(3).await.expect("it is planned behind that").partitions.len(), 1);
    });
}
