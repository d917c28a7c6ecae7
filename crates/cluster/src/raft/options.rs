//! What an agreement is told when it starts.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use openraft::{Config, SnapshotPolicy, StepDownPolicy};
use uuid::Uuid;

/// Who this node is, where it keeps what it agreed to, and how long others are waited for.
#[derive(Clone, Debug)]
pub struct AgreementOptions {
    /// This node. An id is never used again for another one.
    pub node: Uuid,
    /// Where other nodes reach it.
    pub address: SocketAddr,
    /// Its log and snapshot are here; made when it is not there.
    pub directory: PathBuf,
    /// How long others are waited for.
    pub timing: Timing,
    /// After so many entries what they made is kept instead of them.
    pub snapshot_entry_count: u64,
}

/// Times of an agreement.
#[derive(Clone, Copy, Debug)]
pub struct Timing {
    /// A leader is heard so often.
    pub heartbeat: Duration,
    /// Who has heard no leader for so long wants to be one: a time between the two.
    pub election_min: Duration,
    /// The longest such time. For so long nobody votes for another leader than the one that was heard.
    pub election_max: Duration,
    /// A command or a read is tried for so long.
    pub patience: Duration,
}

impl Default for Timing {
    fn default() -> Timing {
        Timing {
            heartbeat: Duration::from_millis(500),
            election_min: Duration::from_millis(1500),
            election_max: Duration::from_millis(3000),
            patience: Duration::from_secs(10),
        }
    }
}

impl Timing {
    /// How long one message and its answer may take, with the other's sync. Not less: what was given up is sent again.
    pub(super) fn message_patience(&self) -> Duration {
        self.heartbeat * 2
    }
}

impl AgreementOptions {
    /// What openraft is told. Each line that is not a plain figure was a failure in the trial (decision 0027).
    pub(super) fn config(&self) -> Result<Arc<Config>, String> {
        let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        let Timing { heartbeat, election_min, election_max, .. } = self.timing;
        let config = Config {
            heartbeat_interval: millis(heartbeat),
            election_timeout_min: millis(election_min),
            election_timeout_max: millis(election_max),
            // A cut-off node that comes back deposes nobody.
            enable_pre_vote: Some(true),
            // A leader that lost its power may have sent what it has forgotten: it does not take up its term again.
            enable_leader_restore: Some(false),
            // A leader that hears no majority falls silent, so that those who hear it vote for another one: after its
            // lease, which is the longest election time-out, and another one.
            quorum_loss_probe_interval: Some(2 * millis(election_max)),
            removed_leader_step_down: StepDownPolicy::After(3 * millis(heartbeat)),
            snapshot_policy: SnapshotPolicy::LogsSinceLast(self.snapshot_entry_count),
            // Who is farther behind gets the snapshot; it must be worth it.
            replication_lag_threshold: self.snapshot_entry_count.saturating_mul(2),
            max_in_snapshot_log_to_keep: self.snapshot_entry_count / 4,
            backoff: "50ms 100ms ..500ms".to_owned(),
            ..Config::default()
        };
        config.validate().map(Arc::new).map_err(|error| error.to_string())
    }
}
