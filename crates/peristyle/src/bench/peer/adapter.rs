//! Servers of others: a program in between starts and stops them. `docs/lab/peers.md` says how it is asked.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use lab::CommitLogSync;

use super::PeerWish;
use super::error::PeerError;
use super::keeper::{Keeper, Server};
use super::place::{Place, Staying};
use super::ports::Ports;
use crate::cluster::ProcessId;

/// The adapter of Cassandra: the script that is used by hand, too. It is carried by the program, so that one that is
/// installed has it.
const CASSANDRA: &str = include_str!("cassandra.sh");
/// Where it is in a checkout of the repository.
const CASSANDRA_PATH: &str = "lab/peers/cassandra";
/// Tells it where Cassandra is, or is to be installed.
const CASSANDRA_HOME: &str = "PERISTYLE_CASSANDRA_HOME";

/// A program that is an adapter.
#[derive(Debug)]
pub(super) struct Adapter {
    /// The program, and words that come before all others.
    words: Vec<OsString>,
    environment: Option<(&'static str, PathBuf)>,
}

impl Adapter {
    /// Somebody's own.
    pub(super) fn new(program: &Path) -> Adapter {
        Adapter { words: vec![program.into()], environment: None }
    }

    /// That of Cassandra: the checkout's if we are in one, with its `.peers`, else ours, which installs into the
    /// user's cache.
    pub(super) fn of_cassandra(place: &Place) -> Result<Adapter, PeerError> {
        let here = std::env::current_dir().unwrap_or_default();
        let scripts = here.ancestors().map(|folder| folder.join(CASSANDRA_PATH));
        if let Some(script) = scripts.into_iter().find(|script| script.is_file()) {
            return Ok(Adapter::new(&script));
        }
        let script = place.file("cassandra.sh");
        fs::write(&script, CASSANDRA).map_err(PeerError::file("write", &script))?;
        let environment = std::env::var_os(CASSANDRA_HOME).is_none().then(|| (CASSANDRA_HOME, cache()));
        Ok(Adapter { words: vec!["bash".into(), script.into()], environment })
    }

    /// The adapter with more words and the folder of the nodes.
    fn asked(&self, place: &Place, words: &[String]) -> Vec<OsString> {
        let words = words.iter().map(OsString::from);
        let folder = [OsString::from("--dir"), place.data().into()];
        // By `env`, since a program may be run by another one that puts it into a group.
        let environment = self.environment.iter().flat_map(|(name, value)| {
            let mut setting = OsString::from(format!("{name}="));
            setting.push(value);
            [OsString::from("env"), setting]
        });
        environment.chain(self.words.iter().cloned()).chain(words).chain(folder).collect()
    }

    fn order(&self, place: &Place, words: &[String], staying: Staying) -> Result<(), PeerError> {
        place.run(Place::plain(&self.asked(place, words)), staying).map(|_| ())
    }
}

/// Where Cassandra is installed for this user.
fn cache() -> PathBuf {
    let of_home = || Some(PathBuf::from(std::env::var_os("HOME")?).join(".cache"));
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    cache.or_else(of_home).unwrap_or_else(std::env::temp_dir).join("peristyle/cassandra")
}

impl Keeper for Adapter {
    fn up(&self, place: &Place, wanted: &PeerWish, ports: Ports) -> Result<Vec<Server>, PeerError> {
        let words = self.asked(place, &up_words(wanted, ports));
        let told = place.run(place.limited(&words), Staying::UntilInterrupted)?;
        let servers = told.lines().map(server).collect::<Result<Vec<_>, _>>()?;
        match servers.len() == wanted.node_count {
            true => Ok(servers),
            false => Err(PeerError::Count { told: servers.len(), wanted: wanted.node_count }),
        }
    }

    fn start(&self, place: &Place, number: usize) -> Result<Server, PeerError> {
        let words = self.asked(place, &["node-start".to_owned(), number.to_string()]);
        let told = place.run(place.limited(&words), Staying::UntilInterrupted)?;
        server(told.trim_end())
    }

    fn cut(&self, place: &Place, number: usize, _others: &[usize]) -> Result<(), PeerError> {
        self.order(place, &["cut".to_owned(), number.to_string()], Staying::UntilInterrupted)
    }

    fn heal(&self, place: &Place) -> Result<(), PeerError> {
        self.order(place, &["heal".to_owned()], Staying::UntilInterrupted)
    }

    fn down(&self, place: &Place) -> Result<(), PeerError> {
        self.order(place, &["down".to_owned()], Staying::ToTheEnd)
    }
}

/// What an adapter is told first. Of when a write is acknowledged it hears if that is not as usual, so that one that
/// knows nothing of it will do.
fn up_words(wanted: &PeerWish, ports: Ports) -> Vec<String> {
    let options = [
        ("--nodes", wanted.node_count.to_string()),
        ("--port", ports.cql.to_string()),
        ("--storage-port", ports.storage.to_string()),
        ("--jmx-port", ports.management.to_string()),
    ];
    let memory = wanted.memory_bytes.map(|bytes| ("--memory", bytes.to_string()));
    let sync = wanted.commit_log_sync;
    let sync = (sync != CommitLogSync::Periodic).then(|| ("--commitlog-sync", sync.name().to_owned()));
    let options = options.into_iter().chain(memory).chain(sync);
    std::iter::once("up".to_owned())
        .chain(options.flat_map(|(name, value)| [name.to_owned(), value]))
        .collect()
}

/// A node of a line `HOST:PORT PID`.
fn server(line: &str) -> Result<Server, PeerError> {
    let (address, number) = address_and_process(line).ok_or_else(|| PeerError::Line(line.to_owned()))?;
    let process = ProcessId::of(number).ok_or(PeerError::NoProcess(number))?;
    Ok(Server { address: address.to_owned(), process })
}

fn address_and_process(line: &str) -> Option<(&str, u32)> {
    let mut words = line.split_whitespace();
    let (address, process, end) = (words.next()?, words.next()?, words.next());
    let (host, port) = address.rsplit_once(':')?;
    let is_address = !host.is_empty() && port.parse::<u16>().is_ok_and(|port| port > 0);
    (is_address && end.is_none()).then_some((address, process.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_an_address_and_a_process() {
        assert_eq!(address_and_process("127.0.0.1:9042 17"), Some(("127.0.0.1:9042", 17)));
        assert_eq!(address_and_process("[::1]:9042   17 "), Some(("[::1]:9042", 17)));
        for wrong in ["", "127.0.0.1:9042", "127.0.0.1 17", ":9042 17", "a:0 17", "a:1 -17", "a:1 17 18"] {
            assert_eq!(address_and_process(wrong), None, "{wrong}");
        }
        let own = std::process::id();
        assert_eq!(server(&format!("a:1 {own}")).unwrap().process.number, own);
        assert!(matches!(server(&format!("a:1 {}", u32::MAX)), Err(PeerError::NoProcess(u32::MAX))));
    }

    #[test]
    fn an_adapter_is_told_what_is_wished() {
        let wanted = PeerWish {
            node_count: 3,
            memory_bytes: None,
            commit_log_sync: CommitLogSync::Periodic,
            first_port: 0,
        };
        let ports = Ports { cql: 1, storage: 2, management: 3 };
        let words = |wanted| up_words(&wanted, ports).join(" ");
        assert_eq!(words(wanted), "up --nodes 3 --port 1 --storage-port 2 --jmx-port 3");
        let more = PeerWish { memory_bytes: Some(5), commit_log_sync: CommitLogSync::Batch, ..wanted };
        assert!(words(more).ends_with(" --memory 5 --commitlog-sync batch"));
    }
}
