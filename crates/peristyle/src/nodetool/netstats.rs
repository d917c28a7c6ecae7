//! `nodetool netstats`, `tpstats`: what goes over the network, and what waits.

use std::io::Write;

use management::{Compactions, Info, Messages, Network};

use super::NodetoolError;

/// Prints what goes on between this node and the others.
pub(super) fn print(network: &Network, out: &mut impl Write) -> Result<(), NodetoolError> {
    writeln!(out, "Mode: {}", network.mode)?;
    writeln!(out, "Not sending any streams.")?;
    writeln!(out, "Read Repair Statistics:")?;
    writeln!(out, "Attempted: {}", network.read_repairs.compared)?;
    writeln!(out, "Mismatch (Blocking): {}", network.read_repairs.mismatched)?;
    // Nothing is compared behind the answer to a client.
    writeln!(out, "Mismatch (Background): n/a")?;
    writeln!(
        out,
        "{:<25}{:>10}{:>10}{:>15}{:>10}",
        "Pool Name", "Active", "Pending", "Completed", "Dropped"
    )?;
    for (pool, messages) in kinds(network) {
        let Messages { pending, completed, dropped } = messages;
        writeln!(out, "{pool:<25}{:>10}{pending:>10}{completed:>15}{dropped:>10}", "n/a")?;
    }
    Ok(())
}

/// What goes between nodes, by what it is about.
fn kinds(network: &Network) -> [(&'static str, &Messages); 2] {
    [("Replica messages", &network.replica_messages), ("Agreement messages", &network.agreement_messages)]
}

/// Prints what there is of Cassandra's pools.
pub(super) fn pools(
    info: &Info,
    compactions: &Compactions,
    network: &Network,
    out: &mut impl Write,
) -> Result<(), NodetoolError> {
    let columns = ["Pool Name", "Active", "Pending", "Completed", "Blocked", "All time blocked"];
    let pending: u64 = compactions.pending.iter().map(|pending| pending.count).sum();
    let active = compactions.active.len();
    let compaction = [active.to_string(), pending.to_string(), compactions.completed.to_string()];
    let blocked = info.requests.waiting_connections.to_string();
    let rows = [
        columns.map(str::to_owned),
        row("CompactionExecutor", &[&compaction[0], &compaction[1], &compaction[2]]),
        row("Native-Transport-Requests", &["n/a", "n/a", "n/a", &blocked]),
    ];
    let width = |column: usize| rows.iter().map(|row| row[column].len()).max().unwrap_or_default();
    for row in &rows {
        let padded = |(column, cell): (usize, &String)| {
            let width = width(column);
            format!("{cell:<width$}")
        };
        let cells: Vec<String> = row.iter().enumerate().map(padded).collect();
        writeln!(out, "{}", cells.join(" ").trim_end())?;
    }
    writeln!(out, "\nOther pools do not exist: a shard is one thread, which does all work of its data.")?;
    writeln!(out, "Shards: {}", info.shard_count)?;
    writeln!(out, "Requests refused as Overloaded: {}", info.requests.overloaded_count)?;
    writeln!(out, "\n{:<20}{:>10}", "Message type", "Dropped")?;
    for (kind, messages) in kinds(network) {
        writeln!(out, "{kind:<20}{:>10}", messages.dropped)?;
    }
    Ok(())
}

/// What is not counted is `n/a`.
fn row(pool: &str, cells: &[&str]) -> [String; 6] {
    let cell = |column: usize| match column {
        0 => pool.to_owned(),
        column => cells.get(column - 1).map_or("n/a", |cell| cell).to_owned(),
    };
    std::array::from_fn(cell)
}

#[cfg(test)]
mod tests {
    use management::{PendingCompactions, ReadRepairs, Requests};

    use super::*;

    #[test]
    fn the_network_is_told_of_in_cassandras_lines() {
        let network = Network {
            mode: "NORMAL".into(),
            read_repairs: ReadRepairs { compared: 17, mismatched: 3 },
            replica_messages: Messages { pending: 2, completed: 1_234, dropped: 5 },
            agreement_messages: Messages { pending: 0, completed: 9, dropped: 0 },
        };
        let mut out = Vec::new();
        print(&network, &mut out).expect("prints");
        let expected = "Mode: NORMAL\nNot sending any streams.\nRead Repair Statistics:\nAttempted: 17\n\
                        Mismatch (Blocking): 3\nMismatch (Background): n/a\n\
                        Pool Name                    Active   Pending      Completed   Dropped\n\
                        Replica messages                n/a         2           1234         5\n\
                        Agreement messages              n/a         0              9         0\n";
        assert_eq!(String::from_utf8(out).expect("text"), expected);
    }

    #[test]
    fn pools_that_exist_are_told_of_and_what_is_not_counted_is_not_zero() {
        let pending = PendingCompactions { keyspace: "k".into(), table: "t".into(), count: 2 };
        let compactions = Compactions { pending: vec![pending], completed: 8, ..Compactions::default() };
        let requests = Requests { waiting_connections: 4, overloaded_count: 6, ..Requests::default() };
        let info = Info { requests, shard_count: 2, ..Info::default() };
        let mut out = Vec::new();
        let lost = |dropped| Messages { dropped, ..Messages::default() };
        let network =
            Network { replica_messages: lost(5), agreement_messages: lost(1), ..Network::default() };
        pools(&info, &compactions, &network, &mut out).expect("prints");
        let expected = "Pool Name                 Active Pending Completed Blocked All time blocked\n\
                        CompactionExecutor        0      2       8         n/a     n/a\n\
                        Native-Transport-Requests n/a    n/a     n/a       4       n/a\n\n\
                        Other pools do not exist: a shard is one thread, which does all work of its data.\n\
                        Shards: 2\nRequests refused as Overloaded: 6\n\n\
                        Message type           Dropped\n\
                        Replica messages             5\n\
                        Agreement messages           1\n";
        assert_eq!(String::from_utf8(out).expect("text"), expected);
    }
}
