//! `nodetool status`.

use std::collections::BTreeMap;
use std::io::Write;

use super::numbers::file_size;
use super::{Management, NodetoolError};
use management::{Node, Status};

/// All nodes, as far as wanted by their names.
pub(super) fn get(
    management: &Management,
    keyspace: Option<&str>,
    resolve_ip: bool,
) -> Result<Status, NodetoolError> {
    let query: Vec<(&str, &str)> = keyspace.iter().map(|keyspace| ("keyspace", *keyspace)).collect();
    let mut status: Status = management.get("/v1/status", &query)?;
    if resolve_ip {
        let hosts = std::fs::read_to_string("/etc/hosts").unwrap_or_default();
        status.nodes.iter_mut().for_each(|node| resolve(&mut node.address, &hosts));
    }
    Ok(status)
}

/// Prints the ring, data centre by data centre, columns aligned over all of them.
pub(super) fn print(status: &Status, out: &mut impl Write) -> Result<(), NodetoolError> {
    let mut data_centers: BTreeMap<&str, Vec<&Node>> = BTreeMap::new();
    for node in &status.nodes {
        data_centers.entry(&node.data_center).or_default().push(node);
    }
    // With more tokens than data centres the tokens themselves are not shown, only how many.
    let token_count: u64 = status.nodes.iter().map(|node| node.token_count).sum();
    let one_token_each = data_centers.len() as u64 >= token_count;
    let is_effective = status.nodes.iter().any(|node| node.owns_is_effective);
    let header = header(one_token_each, is_effective);
    let tables: Vec<(&str, Vec<Vec<String>>)> = data_centers
        .into_iter()
        .map(|(name, nodes)| {
            let rows = nodes.into_iter().map(|node| row(node, one_token_each));
            (name, std::iter::once(header.clone()).chain(rows).collect())
        })
        .collect();
    let widths: Vec<usize> = (0..header.len())
        .map(|column| {
            tables.iter().flat_map(|(_, rows)| rows).map(|row| row[column].len()).max().unwrap_or(0)
        })
        .collect();
    for (index, (name, rows)) in tables.iter().enumerate() {
        if index > 0 {
            writeln!(out)?;
        }
        let title = format!("Datacenter: {name}");
        writeln!(out, "{title}\n{}", "=".repeat(title.len()))?;
        writeln!(out, "Status=Up/Down\n|/ State=Normal/Leaving/Joining/Moving")?;
        for row in rows {
            let cells: Vec<String> =
                row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}")).collect();
            writeln!(out, "{}", cells.join("  "))?;
        }
    }
    writeln!(out)?;
    if let Some(note) = &status.note {
        writeln!(out, "Note: {note}")?;
    }
    Ok(())
}

/// Puts the name in the place of an address, as a file like `/etc/hosts` has it; what it does not name stays.
pub(super) fn resolve(address: &mut String, hosts: &str) {
    let name = hosts.lines().find_map(|line| {
        let mut words = line.split('#').next()?.split_whitespace();
        (words.next()? == *address).then(|| words.next().map(str::to_owned))?
    });
    if let Some(name) = name {
        *address = name;
    }
}

fn header(one_token_each: bool, is_effective: bool) -> Vec<String> {
    let owns = if is_effective { "Owns (effective)" } else { "Owns" };
    let names = match one_token_each {
        true => ["--", "Address", "Load", owns, "Host ID", "Token", "Rack"],
        false => ["--", "Address", "Load", "Tokens", owns, "Host ID", "Rack"],
    };
    names.map(str::to_owned).to_vec()
}

fn row(node: &Node, one_token_each: bool) -> Vec<String> {
    let state = match node.state.as_str() {
        "leaving" => 'L',
        "joining" => 'J',
        "moving" => 'M',
        _ => 'N',
    };
    let state = format!("{}{state}", if node.is_up { 'U' } else { 'D' });
    let load = node.load_bytes.map_or_else(|| "?".to_owned(), file_size);
    let owns = match node.owns {
        Some(share) if node.owns_is_effective => format!("{:.1}%", share * 100.0),
        _ => "?".to_owned(),
    };
    let (address, host_id, rack) = (node.address.clone(), node.host_id.clone(), node.rack.clone());
    match one_token_each {
        true => vec![state, address, load, owns, host_id, node.token.clone().unwrap_or_default(), rack],
        false => vec![state, address, load, node.token_count.to_string(), owns, host_id, rack],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_become_names_where_there_are_some() {
        let mut addresses = ["127.0.0.1", "10.0.0.9"].map(str::to_owned);
        for address in &mut addresses {
            resolve(address, "# 10.0.0.9 no\n127.0.0.1\tlocalhost here # 1\n\n::1 localhost\n");
        }
        assert_eq!(addresses, ["localhost", "10.0.0.9"]);
    }

    #[test]
    fn the_ring_looks_as_in_cassandra() {
        let node = Node {
            data_center: "datacenter1".into(),
            rack: "rack1".into(),
            address: "127.0.0.1".into(),
            host_id: "1292eed1-7956-4942-b19a-81b9af083eb5".into(),
            is_up: true,
            state: "normal".into(),
            load_bytes: Some(227_092),
            token_count: 16,
            owns: Some(1.0),
            owns_is_effective: true,
            ..Node::default()
        };
        let mut out = Vec::new();
        print(&Status { nodes: vec![node], note: None }, &mut out).unwrap();
        // As printed by Cassandra 5.0.9, spaces at the ends of lines included.
        let expected = "Datacenter: datacenter1\n\
            =======================\n\
            Status=Up/Down\n\
            |/ State=Normal/Leaving/Joining/Moving\n\
            --  Address    Load        Tokens  Owns (effective)  Host ID                               Rack \n\
            UN  127.0.0.1  221.77 KiB  16      100.0%            1292eed1-7956-4942-b19a-81b9af083eb5  rack1\n\n";
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }
}
