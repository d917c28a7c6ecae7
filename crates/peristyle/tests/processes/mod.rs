//! Nodes as processes, which end with their test.

#![allow(dead_code, reason = "each test uses a part of it")]

pub(crate) mod ring;

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use client::{ConnectOptions, Connection};

/// How long anything may take before the test has failed.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// A node that ends with the test.
pub(crate) struct Node {
    number: u8,
    process: Child,
    lines: Receiver<String>,
}

impl Node {
    pub(crate) fn run(number: u8, mut command: Command) -> Node {
        let mut process =
            command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the binary starts");
        let (said, lines) = channel();
        let outputs: [Box<dyn Read + Send>; 2] = [
            Box::new(process.stdout.take().expect("it is piped")),
            Box::new(process.stderr.take().expect("it is piped")),
        ];
        for output in outputs {
            let said = said.clone();
            std::thread::spawn(move || {
                BufReader::new(output).lines().map_while(Result::ok).for_each(|line| _ = said.send(line));
            });
        }
        Node { number, process, lines }
    }

    /// Waits until the node says that.
    #[track_caller]
    pub(crate) fn says(&self, what: &str) -> String {
        let (end, mut said) = (Instant::now() + PATIENCE, Vec::new());
        while let Ok(line) = self.lines.recv_timeout(end.saturating_duration_since(Instant::now())) {
            if line.contains(what) {
                return line;
            }
            said.push(line);
        }
        panic!("node {} does not say `{what}`, but:\n{}", self.number, said.join("\n"));
    }

    /// Waits until it serves clients, and connects to it.
    #[track_caller]
    pub(crate) fn connect(&self) -> Connection {
        let ready = self.says("ready: CQL on ");
        let options = ConnectOptions { answer_timeout: Some(PATIENCE), ..ConnectOptions::default() };
        Connection::open(ready.trim().rsplit(' ').next().expect("a word"), &options).expect("it listens")
    }
}

impl Node {
    /// Has it stand still, as if its machine hung; or go on.
    pub(crate) fn stand_still(&self, stands_still: bool) {
        let signal = if stands_still { "-STOP" } else { "-CONT" };
        let status = Command::new("kill").args([signal, &self.process.id().to_string()]).status();
        assert!(status.expect("it runs").success(), "node {} lives", self.number);
        let end = Instant::now() + PATIENCE;
        while stands_still && !self.has_stopped() {
            assert!(Instant::now() < end, "node {} does not stand still", self.number);
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// The kernel tells threads one after the other, and those that do not know yet may still answer somebody.
    fn has_stopped(&self) -> bool {
        let threads = std::fs::read_dir(format!("/proc/{}/task", self.process.id())).expect("it lives");
        let mut states = threads.flatten().filter_map(|thread| {
            let stat = std::fs::read_to_string(thread.path().join("stat")).ok()?;
            stat.rsplit_once(") ")?.1.chars().next()
        });
        states.all(|state| state == 'T')
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        // One that has ended already is no failure.
        _ = self.process.kill();
        _ = self.process.wait();
    }
}
