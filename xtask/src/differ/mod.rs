//! `cargo xtask differ`: random statements to Peristyle and to a real Cassandra, the same answers.
//!
//! What `tests/cql` asks was thought of by somebody; this asks what nobody thought of. Each seed is a
//! table and a run of writes with reads between; our node is flushed, compacted and restarted meanwhile.
//! A seed repeats its run exactly. Compared are rows and errors; not where a page ends.

mod generate;

use crate::arguments::Arguments;
use crate::node::{Node, NodeOptions, fresh_folder};
use crate::peers::oracle_address;
use crate::report::{Failure, Tally, complain};
use crate::script::answer_lines;
use crate::wire::answer::{Metadata, Rows};
use crate::wire::{Answer, Connection, Request};

use generate::{Generator, Query, Random};

const KEYSPACE: &str = "differ";
const DIFFERENCES_SHOWN: u64 = 5;
/// An answer has at most some hundred rows.
const PAGE_COUNT_MAX: u32 = 10_000;

/// Runs seeds one after the other.
pub(crate) fn run(arguments: &Arguments) -> Result<Tally, Failure> {
    let (seed, count) = (arguments.value("seed", 1u64)?, arguments.value("seeds", 1u64)?);
    let steps = arguments.value("steps", 2000u64)?;
    let theirs = oracle_address()?;
    let mut ours = match arguments.text("address") {
        Some(address) => Ours { address: address.to_owned(), node: None },
        None => Ours::start()?,
    };
    let mut tally = Tally::default();
    for seed in seed..seed + count {
        println!("--- seed {seed}, {steps} steps");
        let differences = run_seed(seed, steps, &mut ours, &theirs)?;
        println!("seed {seed}: {differences} differences");
        tally += if differences == 0 { Tally::PASS } else { Tally::FAIL };
    }
    Ok(tally)
}

/// Our side: a node that we may flush and restart, or an address.
struct Ours {
    address: String,
    node: Option<Node>,
}

impl Ours {
    fn start() -> Result<Ours, Failure> {
        let options = NodeOptions::new(fresh_folder("differ")?.join("data"), &[]);
        let node = Node::start(&options)?;
        Ok(Ours { address: node.address(), node: Some(node) })
    }

    /// Something that no answer may depend on.
    fn disturb(&mut self, random: &mut Random) -> Result<&'static str, Failure> {
        let Some(node) = self.node.take() else { return Ok("nothing") };
        let (node, done) = match random.below(8) {
            0 => {
                let options = NodeOptions { data: node.data.clone(), port: node.port, words: vec![] };
                node.stop()?;
                (Node::start(&options)?, "restart")
            }
            1 | 2 => {
                node.nodetool(&["compact", KEYSPACE])?;
                (node, "compact")
            }
            _ => {
                node.nodetool(&["flush", KEYSPACE])?;
                (node, "flush")
            }
        };
        self.node = Some(node);
        Ok(done)
    }
}

fn run_seed(seed: u64, steps: u64, ours: &mut Ours, theirs: &str) -> Result<u64, Failure> {
    let mut generator = Generator::new(seed);
    let mut chance = Random::new(!seed);
    let create = generator.create();
    let mut pair =
        Pair { ours: connect(&ours.address)?, theirs: connect(theirs)?, differences: 0, rows: 0, errors: 0 };
    pair.both(&format!("DROP KEYSPACE IF EXISTS {KEYSPACE}"))?;
    let replication = "{'class': 'SimpleStrategy', 'replication_factor': 1}";
    pair.both(&format!("CREATE KEYSPACE {KEYSPACE} WITH replication = {replication}"))?;
    pair.both(&format!("USE {KEYSPACE}"))?;
    pair.both(&create)?;
    println!("    {create}");
    for step in 0..steps {
        if chance.one_in(3) {
            pair.compare(step, &generator.read())?;
        } else {
            pair.compare(step, &Query { text: generator.write(), page_size: None })?;
        }
        if chance.one_in(150) {
            let done = ours.disturb(&mut chance)?;
            println!("    step {step}: {done}");
            pair.ours = connect(&ours.address)?;
            pair.ours.query(&format!("USE {KEYSPACE}"), &Request::default())?;
        }
        if pair.differences >= DIFFERENCES_SHOWN {
            break;
        }
    }
    println!("    {} rows answered; {} statements refused by both", pair.rows, pair.errors);
    Ok(pair.differences)
}

fn connect(address: &str) -> Result<Connection, Failure> {
    Ok(Connection::open(address, 5)?)
}

struct Pair {
    ours: Connection,
    theirs: Connection,
    differences: u64,
    /// Rows of the answers that were the same.
    rows: usize,
    /// Answers that were the same error.
    errors: u64,
}

impl Pair {
    /// A statement that must work on both sides.
    fn both(&mut self, text: &str) -> Result<(), Failure> {
        for connection in [&mut self.ours, &mut self.theirs] {
            if let Answer::Error { code, message, .. } = connection.query(text, &Request::default())?.answer {
                return Err(Failure::new(format!("{text}: error {code:#06x}: {message}")));
            }
        }
        Ok(())
    }

    fn compare(&mut self, step: u64, query: &Query) -> Result<(), Failure> {
        let ours = answer(&mut self.ours, query)?;
        let theirs = answer(&mut self.theirs, query)?;
        if ours == theirs {
            self.rows += ours.len() - 1;
            self.errors += u64::from(ours.first().is_some_and(|line| line.starts_with("error")));
            return Ok(());
        }
        self.differences += 1;
        complain!("step {step}, pages {:?}: {}", query.page_size, query.text);
        theirs.iter().filter(|line| !ours.contains(line)).for_each(|line| println!("  - {line}"));
        ours.iter().filter(|line| !theirs.contains(line)).for_each(|line| println!("  + {line}"));
        if theirs.len() == ours.len() && theirs.iter().all(|line| ours.contains(line)) {
            println!("  another order: {ours:?} in place of {theirs:?}");
        }
        Ok(())
    }
}

/// All pages' rows, below one header.
fn answer(connection: &mut Connection, query: &Query) -> Result<Vec<String>, Failure> {
    let mut request = Request { page_size: query.page_size, ..Request::default() };
    let mut lines = Vec::new();
    for page in 0..PAGE_COUNT_MAX {
        let mut response = connection.query(&query.text, &request)?;
        // Warnings tell of sizes and tombstones, which need not agree.
        response.warnings.clear();
        let repeated_header = usize::from(page > 0);
        lines.extend(answer_lines(&response, &[]).into_iter().skip(repeated_header));
        match response.answer {
            Answer::Rows(Rows { metadata: Metadata { paging_state: Some(state), .. }, .. }) => {
                request.paging_state = Some(state);
            }
            _ => return Ok(lines),
        }
    }
    Err(Failure::new(format!("{}: its pages never end", query.text)))
}
