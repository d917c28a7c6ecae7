//! Options about what other nodes have missed.

use std::time::Duration;

/// What is done with what other nodes have missed. Its default is nothing; the defaults of the options say what it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HandoffConfig {
    /// `hinted_handoff_enabled`.
    pub is_enabled: bool,
    /// `hinted_handoff_disabled_datacenters`.
    pub disabled_centers: Vec<String>,
    /// `hinted_handoff_throttle`, in bytes; 0 for none.
    pub bytes_per_second: u64,
    /// `max_hint_window`.
    pub window: Duration,
    /// `max_hints_log_size`, in bytes.
    pub log_bytes_max: u64,
}

/// Names with commas between them; nothing is none.
pub(crate) fn parse_names(text: &str) -> Vec<String> {
    text.split(',').map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned).collect()
}
