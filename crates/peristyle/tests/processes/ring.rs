//! A ring of three nodes with two shards each, on loopback addresses of its own.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
use std::path::PathBuf;
use std::process::{Command, Output};

use super::Node;

/// Where nodes keep their data, and how they are reached.
pub(crate) struct RingOfThree {
    directory: tempfile::TempDir,
    /// The third part of their addresses.
    net: u8,
    /// The same on all nodes: for clients, for other nodes, and for the port of `nodetool`.
    ports: [u16; 3],
    /// Further ones of `serve`.
    words: Vec<String>,
}

impl RingOfThree {
    pub(crate) fn new(net: u8, words: &[&str]) -> RingOfThree {
        let first = IpAddr::V4(Ipv4Addr::new(127, 0, net, 1));
        let free = [(); 3].map(|()| TcpListener::bind((first, 0)).expect("a free port"));
        let ports = free.map(|free| free.local_addr().expect("an address").port());
        let words = words.iter().map(|word| (*word).to_owned()).collect();
        RingOfThree { directory: tempfile::tempdir().expect("a directory"), net, ports, words }
    }

    /// Of the node with this number, from 1.
    pub(crate) fn address(&self, node: u8) -> IpAddr {
        IpAddr::V4(Ipv4Addr::new(127, 0, self.net, node))
    }

    /// Starts one, or starts it again.
    pub(crate) fn start(&self, node: u8) -> Node {
        self.start_with(node, &[])
    }

    /// The same, with words of its own.
    pub(crate) fn start_with(&self, node: u8, words: &[&str]) -> Node {
        let [clients, nodes, management] = self.ports;
        let (address, first) = (self.address(node), self.address(1));
        let mut command = Command::new(env!("CARGO_BIN_EXE_peristyle"));
        command.args(["serve", "--shards", "2", "--memory", "96MiB", "--seeds"]).arg(first.to_string());
        command.arg("--data-dir").arg(self.data_directory(node));
        command.arg("--listen").arg(format!("{address}:{clients}"));
        command.arg("--management").arg(format!("{address}:{management}"));
        command.arg("--listen-address").arg(address.to_string());
        command.arg("--storage-port").arg(nodes.to_string()).args(&self.words).args(words);
        Node::run(node, command)
    }

    /// Where clients connect.
    pub(crate) fn clients(&self, node: u8) -> SocketAddr {
        SocketAddr::new(self.address(node), self.ports[0])
    }

    /// Where other nodes do.
    pub(crate) fn storage(&self, node: u8) -> SocketAddr {
        SocketAddr::new(self.address(node), self.ports[1])
    }

    /// Of a node.
    pub(crate) fn data_directory(&self, node: u8) -> PathBuf {
        self.directory.path().join(format!("node{node}"))
    }

    /// A command and its arguments.
    pub(crate) fn run_nodetool(&self, node: u8, words: &str) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_peristyle"));
        command.args(["nodetool", "-h"]).arg(self.address(node).to_string());
        command.arg("-p").arg(self.ports[2].to_string()).args(words.split(' ')).output().expect("it runs")
    }

    /// What a command prints; it ends well.
    #[track_caller]
    pub(crate) fn nodetool(&self, node: u8, words: &str) -> String {
        let output = self.run_nodetool(node, words);
        assert!(output.status.success(), "{words}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("text")
    }

    /// How a node sees another one: `U` or `D`.
    #[track_caller]
    pub(crate) fn sees(&self, node: u8, other: u8) -> char {
        let (status, other) = (self.nodetool(node, "status"), self.address(other).to_string());
        let line =
            status.lines().find(|line| line.contains(&other)).expect("a line for each node").to_owned();
        line.chars().next().expect("a letter")
    }
}
