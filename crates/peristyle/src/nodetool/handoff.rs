//! `nodetool statushandoff` and its like: what other nodes have missed, and how it is handed to them.

use std::io::Write;

use management::{Handoffs, PendingNode};
use serde_json::{Value, json};

use super::NodetoolError;
use super::http::Management;

/// What becomes of what others miss.
#[derive(clap::Subcommand, Debug)]
pub(super) enum HandoffCommand {
    /// Disable storing hinted handoffs: what other nodes miss is not kept any more
    Disablehandoff,
    /// Disable hints for a data center
    Disablehintsfordc {
        /// The data center to disable
        datacenter: String,
    },
    /// Reenable future hints storing on the current node
    Enablehandoff,
    /// Enable hints for a data center that was previously disabled
    Enablehintsfordc {
        /// The data center to enable
        datacenter: String,
    },
    /// Print the max hint window in ms
    Getmaxhintwindow,
    /// Print all pending hints that this node has, as parts of tables that other nodes have missed something of
    Listpendinghints,
    /// Pause hints delivery process
    Pausehandoff,
    /// Resume hints delivery process
    Resumehandoff,
    /// Set hinted handoff throttle in KiB per second, of each shard to each node; 0 for none
    Sethintedhandoffthrottlekb {
        /// Value in KiB per second
        throttle: u64,
    },
    /// Status of storing future hints on the current node
    Statushandoff,
    /// Truncate all hints on the local node, or those for the endpoint: what was missed is forgotten
    Truncatehints {
        /// The endpoint to truncate hints of
        endpoint: Option<String>,
    },
}

pub(super) fn run(
    management: &Management,
    command: &HandoffCommand,
    out: &mut impl Write,
) -> Result<(), NodetoolError> {
    let set = |wanted: Value| management.post("/v1/handoff", &wanted);
    match command {
        HandoffCommand::Disablehandoff => set(json!({ "is_enabled": false })),
        HandoffCommand::Enablehandoff => set(json!({ "is_enabled": true })),
        HandoffCommand::Disablehintsfordc { datacenter } => set(json!({ "disable_for": datacenter })),
        HandoffCommand::Enablehintsfordc { datacenter } => set(json!({ "enable_for": datacenter })),
        HandoffCommand::Pausehandoff => set(json!({ "is_paused": true })),
        HandoffCommand::Resumehandoff => set(json!({ "is_paused": false })),
        HandoffCommand::Sethintedhandoffthrottlekb { throttle } => {
            set(json!({ "bytes_per_second": throttle.saturating_mul(1_024) }))
        }
        HandoffCommand::Truncatehints { endpoint } => {
            management.post("/v1/handoff/forget", &json!({ "address": endpoint }))
        }
        HandoffCommand::Getmaxhintwindow => {
            let window = get(management)?.window_ms;
            Ok(writeln!(out, "Current max hint window: {window} ms")?)
        }
        HandoffCommand::Statushandoff => status(&get(management)?, out),
        HandoffCommand::Listpendinghints => list(&get(management)?, out),
    }
}

fn get(management: &Management) -> Result<Handoffs, NodetoolError> {
    management.get("/v1/handoff", &[])
}

/// Whether what is missed is kept, in Cassandra's words.
fn status(handoffs: &Handoffs, out: &mut impl Write) -> Result<(), NodetoolError> {
    let running = if handoffs.is_enabled { "running" } else { "not running" };
    writeln!(out, "Hinted handoff is {running}")?;
    for center in &handoffs.disabled_data_centers {
        writeln!(out, "Data center {center} is disabled")?;
    }
    if handoffs.is_paused {
        writeln!(out, "What was missed is not handed on for now: see resumehandoff")?;
    }
    Ok(())
}

/// Who has missed something. There are no files of hints: what is counted are parts of tables.
fn list(handoffs: &Handoffs, out: &mut impl Write) -> Result<(), NodetoolError> {
    if handoffs.nodes.is_empty() {
        return Ok(writeln!(out, "This node does not have any pending hints")?);
    }
    let columns = ["Host ID", "Address", "Rack", "DC", "Status", "To send", "To compare", "Oldest"];
    let rows: Vec<[String; 8]> =
        std::iter::once(columns.map(str::to_owned)).chain(handoffs.nodes.iter().map(row)).collect();
    let width = |column: usize| rows.iter().map(|row| row[column].len()).max().unwrap_or_default();
    for row in &rows {
        let cells = row.iter().enumerate().map(|(column, cell)| format!("{cell:<0$}", width(column)));
        writeln!(out, "{}", cells.collect::<Vec<_>>().join("  ").trim_end())?;
    }
    Ok(())
}

fn row(node: &PendingNode) -> [String; 8] {
    let status = if node.is_up { "UP" } else { "DOWN" };
    let oldest = node.oldest_age_ms.map(|millis| format!("{} s ago", millis / 1_000));
    [
        node.host_id.clone(),
        node.address.clone(),
        node.rack.clone(),
        node.data_center.clone(),
        status.to_owned(),
        node.logged_count.to_string(),
        node.compared_count.to_string(),
        oldest.unwrap_or_else(|| "n/a".to_owned()),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn printed(
        print: impl FnOnce(&Handoffs, &mut Vec<u8>) -> Result<(), NodetoolError>,
        handoffs: &Handoffs,
    ) -> String {
        let mut out = Vec::new();
        print(handoffs, &mut out).expect("prints");
        String::from_utf8(out).expect("text")
    }

    #[test]
    fn the_status_is_told_in_cassandras_words() {
        let disabled_data_centers = vec!["dc2".to_owned()];
        let handoffs = Handoffs { is_enabled: true, disabled_data_centers, ..Handoffs::default() };
        assert_eq!(printed(status, &handoffs), "Hinted handoff is running\nData center dc2 is disabled\n");
        let paused = Handoffs { is_paused: true, ..Handoffs::default() };
        let expected =
            "Hinted handoff is not running\nWhat was missed is not handed on for now: see resumehandoff\n";
        assert_eq!(printed(status, &paused), expected);
    }

    #[test]
    fn who_has_missed_something_is_listed() {
        assert_eq!(printed(list, &Handoffs::default()), "This node does not have any pending hints\n");
        let node = PendingNode {
            host_id: "6d194555-f6eb-41d0-c000-000000000001".into(),
            address: "127.0.0.2".into(),
            rack: "r1".into(),
            data_center: "dc1".into(),
            is_up: false,
            logged_count: 4_000,
            compared_count: 0,
            oldest_age_ms: Some(61_200),
        };
        let expected = "\
Host ID                               Address    Rack  DC   Status  To send  To compare  Oldest
6d194555-f6eb-41d0-c000-000000000001  127.0.0.2  r1    dc1  DOWN    4000     0           61 s ago
";
        assert_eq!(printed(list, &Handoffs { nodes: vec![node], ..Handoffs::default() }), expected);
    }
}
