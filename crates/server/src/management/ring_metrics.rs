//! Metrics of a ring, as this node sees it.

use std::fmt::Write as _;

use assembly::NodeView;
use cluster::membership::{About, MessageTotals};
use uuid::Uuid;

/// Appends them in the Prometheus text format. A node that is alone has none.
pub(super) fn append_metrics(view: &NodeView, out: &mut String) {
    let (Some(ring), Some(marks)) = (view.ring(), view.marks()) else { return };
    let others: Vec<_> = view
        .nodes()
        .into_iter()
        .map(|member| member.candidate)
        .filter(|node| node.host_id != view.host_id)
        .collect();
    let counted = ring.counted();
    let mut by_peer = |name: &str, help: &str, figure: &dyn Fn(Uuid) -> f64| {
        head(out, name, if name.ends_with("_total") { "counter" } else { "gauge" }, help);
        for other in &others {
            _ = writeln!(out, "{name}{{peer=\"{}\"}} {}", other.address, figure(other.host_id));
        }
    };
    let totals = |host_id| -> MessageTotals {
        counted.iter().filter(|counted| counted.host_id == Some(host_id)).collect()
    };
    by_peer("peristyle_ring_peer_messages_pending", "Requests to a node without an answer.", &|host_id| {
        totals(host_id).pending as f64
    });
    by_peer("peristyle_ring_peer_messages_answered_total", "Requests that a node answered.", &|host_id| {
        totals(host_id).answered as f64
    });
    by_peer("peristyle_ring_peer_messages_lost_total", "Requests that it did not.", &|host_id| {
        totals(host_id).lost as f64
    });
    by_peer("peristyle_ring_peer_up", "Is a node heard, and does it serve clients?", &|host_id| {
        f64::from(u8::from(ring.other(host_id).is_up()))
    });
    by_peer(
        "peristyle_ring_slots_to_send",
        "Parts of tables of which a node is sent what it missed.",
        &|host_id| marks.pending(host_id).logged_count as f64,
    );
    by_peer(
        "peristyle_ring_slots_to_compare",
        "Parts of tables that are compared with a node's.",
        &|host_id| marks.pending(host_id).compared_count as f64,
    );
    let (handoff, agreed) = (marks.handoff(), view.agreement_counts());
    for (name, help, value) in [
        (
            "peristyle_ring_agreements_total",
            "Proposals of conditional changes that replicas have agreed on: one may have the changes of many clients.",
            agreed.settled(),
        ),
        (
            "peristyle_ring_agreement_rounds_total",
            "Rounds of messages that clients waited for, for these.",
            agreed.rounds(),
        ),
        (
            "peristyle_ring_agreement_rounds_contended_total",
            "Those in which others had come before, or a replica had other rows.",
            agreed.contended(),
        ),
        (
            "peristyle_ring_agreements_made_good_total",
            "Proposals that were found unfinished, and were made good.",
            agreed.unfinished(),
        ),
        ("peristyle_ring_sent_mutations_total", "Missed mutations that were sent.", handoff.sent_count()),
        (
            "peristyle_ring_mended_partitions_total",
            "Partitions that were made equal.",
            handoff.mended_count(),
        ),
    ] {
        head(out, name, "counter", help);
        _ = writeln!(out, "{name} {value}");
    }
    let bounds = ring.bounds();
    for (name, kind, help, value) in [
        (
            "peristyle_ring_connections",
            "gauge",
            "Connections that other nodes have to this one.",
            bounds.guests.count() as u64,
        ),
        (
            "peristyle_ring_connections_refused_total",
            "counter",
            "Connections that were closed since there were too many.",
            bounds.guests.refused(),
        ),
        (
            "peristyle_ring_message_bytes",
            "gauge",
            "What connections with other nodes hold in memory.",
            bounds.room.held_bytes() as u64,
        ),
        (
            "peristyle_ring_messages_turned_away_total",
            "counter",
            "Messages that were not sent since there was no room for them.",
            bounds.room.turned_away(),
        ),
    ] {
        head(out, name, kind, help);
        _ = writeln!(out, "{name} {value}");
    }
    let about = |about| counted.iter().filter(|counted| counted.about == about).collect::<MessageTotals>();
    let (replica, agreement) = (about(About::Replica), about(About::Agreement));
    let of = |figure: fn(&MessageTotals) -> u64| {
        [("replica", figure(&replica)), ("agreement", figure(&agreement))]
    };
    for (name, kind, help, figures) in [
        (
            "peristyle_ring_messages_pending",
            "gauge",
            "Requests to nodes without an answer.",
            of(|totals| totals.pending),
        ),
        (
            "peristyle_ring_messages_answered_total",
            "counter",
            "Requests that were answered.",
            of(|totals| totals.answered),
        ),
        (
            "peristyle_ring_messages_lost_total",
            "counter",
            "Requests that were not.",
            of(|totals| totals.lost),
        ),
    ] {
        head(out, name, kind, help);
        for (about, value) in figures {
            _ = writeln!(out, "{name}{{about=\"{about}\"}} {value}");
        }
    }
}

fn head(out: &mut String, name: &str, kind: &str, help: &str) {
    _ = write!(out, "# HELP {name} {help}\n# TYPE {name} {kind}\n");
}
