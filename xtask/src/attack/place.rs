//! What is attacked: a node by itself, or the first one of a ring of three.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use crate::kernel::{high_water_bytes, runs};
use crate::measure::{labelled_metrics, mebibytes, size_bytes};
use crate::node::{Node, NodeOptions, metrics_of};
use crate::peers::succeed;
use crate::report::Failure;
use crate::ring::{Ports, Ring};

/// No other judge has them.
const PORTS: Ports = Ports { cql: 19552, storage: 17510, management: 17609 };
const RING_NODES: u64 = 3;
const STOP_TIMEOUT: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(20);

/// What is started, and with what.
pub(super) struct Plan<'a> {
    pub(super) memory: &'a str,
    pub(super) shards: &'a str,
    /// Further words for `peristyle serve`.
    pub(super) words: &'a [&'a str],
    pub(super) is_ring: bool,
    /// Whether the nodes of a ring share a secret.
    pub(super) has_secret: bool,
}

/// The first node is attacked; the others, if there are any, must not feel it.
pub(super) enum Place {
    Lone { node: Box<Node>, options: NodeOptions },
    Ring { ring: Ring, data: PathBuf },
}

/// What a node has come to.
#[derive(Clone, Copy, Default)]
pub(super) struct Figures {
    pub(super) resident_bytes: u64,
    /// The longest turn of a shard, and how long one stood in the kernel's queue.
    pub(super) turn_ms: f64,
    pub(super) queued_ms: f64,
}

impl Place {
    pub(super) fn start(folder: &Path, plan: &Plan<'_>) -> Result<Place, Failure> {
        if plan.is_ring {
            return start_ring(folder, plan);
        }
        let words = [&["--memory", plan.memory, "--shards", plan.shards], plan.words].concat();
        let options = NodeOptions::new(folder.join("data"), &words);
        Ok(Place::Lone { node: Box::new(Node::start(&options)?), options })
    }

    /// How many replicas a row can have.
    pub(super) fn replicas(&self) -> u64 {
        match self {
            Place::Lone { .. } => 1,
            Place::Ring { .. } => RING_NODES,
        }
    }

    /// Where the node that is attacked speaks CQL, on 127.0.0.1.
    pub(super) fn port(&self) -> u16 {
        match self {
            Place::Lone { node, .. } => node.port,
            Place::Ring { .. } => PORTS.cql,
        }
    }

    /// Where it is managed.
    pub(super) fn management_port(&self) -> u16 {
        match self {
            Place::Lone { node, .. } => node.management_port,
            Place::Ring { .. } => PORTS.management,
        }
    }

    /// Where a bystander asks who has nothing to do with the node that is attacked.
    pub(super) fn other_address(&self) -> Option<String> {
        match self {
            Place::Lone { .. } => None,
            Place::Ring { ring, .. } => Some(ring.address("127.0.0.2")),
        }
    }

    /// Of all nodes, the one that is attacked first.
    pub(super) fn process_ids(&self) -> Result<Vec<u32>, Failure> {
        match self {
            Place::Lone { node, .. } => Ok(vec![node.process_id()]),
            Place::Ring { ring, .. } => ring.process_ids(),
        }
    }

    /// Of all nodes, the one that is attacked first.
    pub(super) fn figures(&self) -> Result<Vec<Figures>, Failure> {
        let figures = |(process_id, host): (u32, u64)| {
            let metrics = metrics_of(&format!("127.0.0.{host}:{}", self.management_port()))?;
            let longest = |name: &str| {
                let seconds =
                    labelled_metrics(&metrics, &format!("peristyle_shard_turn_longest_{name}_seconds"));
                1000.0 * seconds.into_iter().fold(0.0, f64::max)
            };
            let resident_bytes = high_water_bytes(process_id)?;
            Ok(Figures { resident_bytes, turn_ms: longest("own"), queued_ms: longest("queued") })
        };
        self.process_ids()?.into_iter().zip(1..).map(figures).collect()
    }

    /// Ends the node that is attacked with a signal, and waits until it has ended.
    pub(super) fn end(&mut self, signal: &str) -> Result<(), Failure> {
        match self {
            Place::Lone { node, .. } => node.end(signal),
            Place::Ring { ring, .. } if signal == "KILL" => ring.order(&["kill", "1"]),
            Place::Ring { ring, .. } => {
                let process_id = ring.process_ids()?.first().copied().unwrap_or_default();
                succeed(Command::new("kill").args(["-s", signal, &process_id.to_string()]))?;
                let asked = Instant::now();
                while runs(process_id) {
                    if asked.elapsed() > STOP_TIMEOUT {
                        return Err(Failure::new(format!("node 1 does not end on SIG{signal}")));
                    }
                    std::thread::sleep(POLL);
                }
                Ok(())
            }
        }
    }

    /// All that its nodes have logged.
    pub(super) fn log(&self) -> Result<String, Failure> {
        let paths = match self {
            Place::Lone { options, .. } => vec![options.data.with_extension("log")],
            Place::Ring { data, .. } => {
                (1..=RING_NODES).map(|node| data.join(format!("node-{node}.log"))).collect()
            }
        };
        let mut all = String::new();
        for path in paths {
            all += &String::from_utf8_lossy(&std::fs::read(path)?);
        }
        Ok(all)
    }

    /// Has the node that ended serve its files again: where it does. What is returned with that keeps it.
    pub(super) fn serve_again(self) -> Result<(Place, String), Failure> {
        match self {
            Place::Lone { node, options } => {
                drop(node);
                let node = Node::start(&NodeOptions { port: 0, ..options.clone() })?;
                let address = node.address();
                Ok((Place::Lone { node: Box::new(node), options }, address))
            }
            Place::Ring { ring, data } => {
                ring.order(&["start", "1"])?;
                let address = ring.address("127.0.0.1");
                Ok((Place::Ring { ring, data }, address))
            }
        }
    }

    /// Ends all of it in order.
    pub(super) fn stop(self) -> Result<(), Failure> {
        match self {
            Place::Lone { node, .. } => node.stop(),
            // It is, when it is dropped.
            Place::Ring { .. } => Ok(()),
        }
    }
}

fn start_ring(folder: &Path, plan: &Plan<'_>) -> Result<Place, Failure> {
    let data = folder.join("cluster");
    let memory = format!("{}MiB", mebibytes(size_bytes(plan.memory)? * RING_NODES));
    let mut words = vec!["--memory".to_owned(), memory, "--shards".to_owned(), plan.shards.to_owned()];
    let mut set = |name: &str, value: &str| words.extend(["--set".to_owned(), format!("{name}={value}")]);
    for pair in plan.words.chunks_exact(2) {
        set(pair[0].trim_start_matches('-'), pair[1]);
    }
    if plan.has_secret {
        let file = folder.join("secret");
        std::fs::write(&file, "what-strangers-do-not-know-and-is-long-enough-to-be-no-guess")?;
        succeed(Command::new("chmod").arg("600").arg(&file))?;
        set("internode-secret-file", &file.display().to_string());
    }
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    Ok(Place::Ring { ring: Ring::start(&data, PORTS, &words)?, data })
}

/// Where the nodes of a ring listen for each other.
pub(super) fn storage_address() -> String {
    format!("127.0.0.1:{}", PORTS.storage)
}
