//! `nodetool ring`: a line for each token.

use std::collections::BTreeMap;
use std::io::Write;

use management::{Node, Status};

use super::NodetoolError;
use super::numbers::file_size;

/// Prints the tokens of each data centre in the order of the ring. Above the first one stands the last, where its range
/// begins.
pub(super) fn print(status: &Status, out: &mut impl Write) -> Result<(), NodetoolError> {
    let mut data_centers: BTreeMap<&str, Vec<(i64, &Node)>> = BTreeMap::new();
    for node in &status.nodes {
        let tokens = node.tokens.iter().filter_map(|token| Some((token.parse().ok()?, node)));
        data_centers.entry(&node.data_center).or_default().extend(tokens);
    }
    let width = status.nodes.iter().map(|node| node.address.len()).max().unwrap_or(0);
    writeln!(out)?;
    for (name, mut tokens) in data_centers {
        tokens.sort_by_key(|(token, _)| *token);
        writeln!(out, "Datacenter: {name}\n==========")?;
        let titles = ["Address", "Rack", "Status", "State", "Load", "Owns", "Token"];
        line(titles.map(str::to_owned), width, out)?;
        match tokens.as_slice() {
            [_, .., (last, _)] => {
                line(["", "", "", "", "", "", &last.to_string()].map(str::to_owned), width, out)?;
            }
            _ => writeln!(out)?,
        }
        for (token, node) in tokens {
            line(cells(node, token), width, out)?;
        }
        writeln!(out)?;
    }
    if status.nodes.iter().any(|node| node.token_count > 1) {
        writeln!(out, "  Warning: \"nodetool ring\" is used to output all the tokens of a node.")?;
        writeln!(out, "  To view status related info of a node use \"nodetool status\" instead.\n")?;
    }
    write!(out, "\n  ")?;
    if let Some(note) = &status.note {
        writeln!(out, "Note: {note}")?;
    }
    Ok(())
}

fn cells(node: &Node, token: i64) -> [String; 7] {
    let status = if node.is_up { "Up" } else { "Down" };
    let state = match node.state.as_str() {
        "leaving" => "Leaving",
        "joining" => "Joining",
        "moving" => "Moving",
        _ => "Normal",
    };
    let owns = match node.owns {
        Some(share) if node.owns_is_effective => format!("{:.2}%", share * 100.0),
        _ => "?".to_owned(),
    };
    let load = node.load_bytes.map_or_else(|| "?".to_owned(), file_size);
    [
        node.address.clone(),
        node.rack.clone(),
        status.to_owned(),
        state.to_owned(),
        load,
        owns,
        token.to_string(),
    ]
}

fn line(cells: [String; 7], width: usize, out: &mut impl Write) -> Result<(), NodetoolError> {
    let [address, rack, status, state, load, owns, token] = cells;
    writeln!(out, "{address:<width$}  {rack:<12}{status:<7}{state:<8}{load:<16}{owns:<20}{token:<44}")?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(number: u8, is_up: bool, tokens: &[&str]) -> Node {
        Node {
            data_center: "dc1".into(),
            rack: "r1".into(),
            address: format!("10.0.0.{number}"),
            is_up,
            state: "normal".into(),
            load_bytes: is_up.then_some(2048),
            token_count: tokens.len() as u64,
            tokens: tokens.iter().map(|token| (*token).to_owned()).collect(),
            owns: Some(0.5),
            owns_is_effective: true,
            ..Node::default()
        }
    }

    #[test]
    fn tokens_stand_in_the_order_of_the_ring() {
        let status = Status { nodes: vec![node(1, true, &["-7", "90"]), node(2, false, &["8"])], note: None };
        let mut out = Vec::new();
        print(&status, &mut out).unwrap();
        let out = String::from_utf8(out).unwrap();
        let lines: Vec<String> =
            out.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
        let expected = [
            "",
            "Datacenter: dc1",
            "==========",
            "Address Rack Status State Load Owns Token",
            "90",
            "10.0.0.1 r1 Up Normal 2 KiB 50.00% -7",
            "10.0.0.2 r1 Down Normal ? 50.00% 8",
            "10.0.0.1 r1 Up Normal 2 KiB 50.00% 90",
            "",
            "Warning: \"nodetool ring\" is used to output all the tokens of a node.",
            "To view status related info of a node use \"nodetool status\" instead.",
            "",
            "",
            "",
        ];
        assert_eq!(lines, expected);
        let first = out.lines().nth(5).unwrap();
        assert_eq!(
            first.trim_end(),
            "10.0.0.1  r1          Up     Normal  2 KiB           50.00%              -7"
        );
        assert!(out.ends_with("\n\n\n  "));
    }
}
