//! Who lives: every node tells all others so, a few times a second.

use std::time::Duration;

use tokio::time::Instant;

use super::Known;
use super::door::Heard;
use super::message::Said;
use super::presence::Claims;
use crate::metadata::MetadataMachine;
use crate::raft::Agreement;

/// So often.
pub(super) const INTERVAL: Duration = Duration::from_millis(200);
/// Who was not heard for so long is asked for nothing: five heartbeats. Requests protect themselves against less.
pub const SILENCE: Duration = Duration::from_millis(1_000);

/// So long after a farewell all others have heard it, unless they can not be reached.
pub const FAREWELL: Duration = Duration::from_millis(400);

/// Tells all others that this node lives, and how much it has. They learn how far it has come, too: that stands before
/// every message.
pub(super) fn send(known: &Known, agreement: &Agreement<MetadataMachine>, claims: &Claims) {
    let Some(members) = known.members() else { return };
    let said = match known.is_withdrawn() {
        true => Said::Farewell,
        false => Said::Heartbeat { is_serving: known.is_serving() },
    };
    for member in members.list() {
        if member.candidate.host_id != known.host_id() {
            let peer = agreement.peer(member.candidate.host_id, claims.address_of(member));
            peer.notify(|out| said.put(out)).expect("it is short");
            if let Some(bytes) = known.load_bytes() {
                peer.notify(|out| Said::Load(bytes).put(out)).expect("it is short");
            }
        }
    }
}

/// Looks who was heard and who was not; `last` is when it was looked last. A node that stood still meanwhile has heard
/// nobody, which says nothing of the others: they have the time that it stood still more.
pub(super) fn look(known: &Known, heard: &Heard, last: Instant) {
    let Some(members) = known.members() else { return };
    let now = Instant::now();
    let stood_still = (now - last).saturating_sub(2 * INTERVAL);
    heard.borrow_mut().values_mut().for_each(|heartbeat| heartbeat.at += stood_still);
    for member in members.list() {
        let host_id = member.candidate.host_id;
        if host_id != known.host_id() {
            let last = heard.borrow().get(&host_id).copied();
            let is_heard = last.is_some_and(|last| now < last.at + SILENCE);
            let last = last.filter(|last| !last.is_withdrawn);
            let silence = last.map(|last| now.saturating_duration_since(last.at));
            known.other(host_id).note_silence(silence, is_heard);
            let alive = last.filter(|_| is_heard);
            known.set(host_id, alive.is_some(), alive.is_some_and(|last| last.is_serving));
        }
    }
}
