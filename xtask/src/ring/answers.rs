//! `cargo xtask ring-cql`: what a ring answers of which nodes are lost, against the answers of three Cassandra nodes.
//!
//! Scripts of `tests/cql/ring` are played to the first of three nodes, which is never hurt, with three replicas of each
//! row. `--@ ring WORD NODE…` does something to others: `kill` ends them and returns when the first node knows it;
//! `pause` and `resume` stop them and have them go on; `settle` gives all some time to come to one schema.
//!
//! `--cassandra` records: it starts three Cassandra nodes for each script.

use std::path::Path;
use std::process::Command;
use std::rc::Rc;
use std::time::{Duration, Instant};

use super::cassandra::CassandraRing;
use super::{HOSTS, Ports, Ring};
use crate::arguments::Arguments;
use crate::bless::{Known, files, record};
use crate::kernel;
use crate::node::fresh_folder;
use crate::peers::succeed;
use crate::report::{Failure, Tally};
use crate::script::{Hurt, Player};

const PORTS: Ports = Ports { cql: 20242, storage: 18200, management: 18299 };
/// A node that is gone must be seen to be.
const PATIENCE: Duration = Duration::from_secs(90);
const POLL: Duration = Duration::from_millis(100);
/// Until all nodes have one schema, and take each other for those that are there.
const SETTLED: Duration = Duration::from_secs(2);

/// `nodetool status` of the first node.
type Status = Rc<dyn Fn() -> Result<String, Failure>>;

/// Plays the scripts named, or all.
pub(crate) fn run(arguments: &Arguments) -> Result<Tally, Failure> {
    arguments.only(&["cassandra", "quiet"])?;
    let known = Known::read()?;
    let folder = fresh_folder("ring-cql")?;
    let mut tally = Tally::default();
    for path in files("cql/ring", "cql", &arguments.positional)? {
        let work = folder.join(path.file_stem().unwrap_or_default());
        tally += match arguments.flag("cassandra") {
            true => of_cassandra(&path, &work)?,
            false => of_ours(&known, &path, &work, arguments.flag("quiet"))?,
        };
    }
    Ok(tally)
}

fn of_cassandra(path: &Path, work: &Path) -> Result<Tally, Failure> {
    let ring = CassandraRing::start("latest", "768M", work)?;
    let status = Rc::new(|| CassandraRing::nodetool(&["status"]));
    let hurt = hurt(ring.process_ids()?, status);
    record(&Player::of_ring(&format!("{}:{}", HOSTS[0], CassandraRing::PORT), HOSTS.len() as u64, hurt), path)
}

fn of_ours(known: &Known, path: &Path, work: &Path, is_quiet: bool) -> Result<Tally, Failure> {
    let ring = Rc::new(Ring::start(work, PORTS, &["--shards", "1"])?);
    let asked = Rc::clone(&ring);
    let status = Rc::new(move || asked.nodetool(HOSTS[0], &["status"]));
    let player =
        Player::of_ring(&ring.address(HOSTS[0]), HOSTS.len() as u64, hurt(ring.process_ids()?, status));
    Ok(known.compare(&player, path, is_quiet)?.tally)
}

/// Hurts nodes that are these processes.
fn hurt(process_ids: Vec<u32>, status: Status) -> Hurt {
    Box::new(move |words: &[String]| {
        let (word, nodes) = words.split_first().ok_or_else(|| Failure::new("what is to be done?"))?;
        let signal = match word.as_str() {
            "kill" => "-KILL",
            "pause" => "-STOP",
            "resume" => "-CONT",
            "settle" => {
                std::thread::sleep(SETTLED);
                return Ok(());
            }
            _ => return Err(Failure::new(format!("nothing is known to '{word}'"))),
        };
        for node in nodes {
            let number: usize = node.parse()?;
            let hurt = (number > 1).then(|| process_ids.get(number - 1)).flatten();
            let process_id = hurt.ok_or_else(|| Failure::new(format!("node {number} is not hurt")))?;
            succeed(Command::new("kill").args([signal, &process_id.to_string()]))?;
            match word.as_str() {
                "kill" => until_down(&status, HOSTS[number - 1])?,
                "pause" => kernel::wait_until_stopped(*process_id)?,
                _ => {}
            }
        }
        Ok(())
    })
}

fn until_down(status: &Status, host: &str) -> Result<(), Failure> {
    let began = Instant::now();
    let is_down = |line: &str| line.starts_with("DN") && line.split_whitespace().nth(1) == Some(host);
    while !status()?.lines().any(is_down) {
        if began.elapsed() > PATIENCE {
            return Err(Failure::new(format!("{host} is not seen to be down")));
        }
        std::thread::sleep(POLL);
    }
    Ok(())
}
