//! A Peristyle node for the judges: started in a folder of its own, ended with its folder.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::process::root;
use crate::report::Failure;
use crate::wire::Connection;

const START_TIMEOUT: Duration = Duration::from_secs(60);
const STOP_TIMEOUT: Duration = Duration::from_secs(60);
/// Short, so that a start can be timed.
const START_POLL: Duration = Duration::from_millis(1);
const POLL: Duration = Duration::from_millis(20);

/// How to start a node.
#[derive(Debug, Clone)]
pub(crate) struct NodeOptions {
    /// Its files; made when missing.
    pub(crate) data: PathBuf,
    /// 0 takes a free one.
    pub(crate) port: u16,
    /// Further words for `peristyle serve`.
    pub(crate) words: Vec<String>,
}

impl NodeOptions {
    /// With its files there, on a free port, with these further words.
    pub(crate) fn new(data: PathBuf, words: &[&str]) -> Self {
        NodeOptions { data, port: 0, words: words.iter().map(|word| (*word).to_owned()).collect() }
    }
}

/// A running `peristyle serve`; killed when dropped.
#[derive(Debug)]
pub(crate) struct Node {
    child: Child,
    pub(crate) port: u16,
    pub(crate) management_port: u16,
    pub(crate) data: PathBuf,
}

/// The release binary, built before, or the one that `PERISTYLE_BINARY` names.
pub(crate) fn binary() -> Result<PathBuf, Failure> {
    let named = std::env::var_os("PERISTYLE_BINARY").map(PathBuf::from);
    let path = named.unwrap_or_else(|| root().join("target/release/peristyle"));
    match path.exists() {
        true => Ok(path),
        false => {
            Err(Failure::new(format!("{} is missing: cargo build --release -p peristyle", path.display())))
        }
    }
}

/// A port that was free a moment ago.
pub(crate) fn free_port() -> Result<u16, Failure> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}

impl Node {
    /// Starts a node and waits until it answers CQL.
    pub(crate) fn start(options: &NodeOptions) -> Result<Node, Failure> {
        Node::start_as(Command::new(binary()?), options)
    }

    /// As [`Node::start`], with the program of that command, which may be one that runs another.
    pub(crate) fn start_as(mut command: Command, options: &NodeOptions) -> Result<Node, Failure> {
        std::fs::create_dir_all(&options.data)?;
        let port = if options.port == 0 { free_port()? } else { options.port };
        let management_port = free_port()?;
        let log = std::fs::File::create(options.data.with_extension("log"))?;
        command.arg("serve").arg("--data-dir").arg(&options.data);
        command.args(["--listen", &format!("127.0.0.1:{port}")]);
        command.args(["--management", &format!("127.0.0.1:{management_port}")]).args(&options.words);
        let child = command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log).spawn()?;
        let mut node = Node { child, port, management_port, data: options.data.clone() };
        let started = Instant::now();
        while Connection::open(&node.address(), 5).is_err() {
            if let Some(status) = node.child.try_wait()? {
                return Err(Failure::new(format!(
                    "the server ended while starting, {status}: {}",
                    node.log_tail()
                )));
            }
            if started.elapsed() > START_TIMEOUT {
                return Err(Failure::new(format!("the server does not answer: {}", node.log_tail())));
            }
            std::thread::sleep(START_POLL);
        }
        Ok(node)
    }

    /// `127.0.0.1:PORT`, as a client wants it.
    pub(crate) fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// Its process.
    pub(crate) fn process_id(&self) -> u32 {
        self.child.id()
    }

    /// `peristyle nodetool WORDS…` against it.
    pub(crate) fn nodetool(&self, words: &[&str]) -> Result<String, Failure> {
        let mut command = Command::new(binary()?);
        command
            .args(["nodetool", "--management", &format!("127.0.0.1:{}", self.management_port)])
            .args(words);
        crate::peers::output(&mut command)
    }

    /// What it tells collectors of metrics.
    pub(crate) fn metrics(&self) -> Result<String, Failure> {
        metrics_of(&format!("127.0.0.1:{}", self.management_port))
    }

    /// The code that the process ends with by itself, if it does in time.
    pub(crate) fn exit_code(&mut self, within: Duration) -> Result<Option<i32>, Failure> {
        let asked = Instant::now();
        while asked.elapsed() < within {
            if let Some(status) = self.child.try_wait()? {
                return Ok(status.code());
            }
            std::thread::sleep(POLL);
        }
        Ok(None)
    }

    /// Ends it cleanly with SIGTERM.
    pub(crate) fn stop(mut self) -> Result<(), Failure> {
        self.end("TERM")
    }

    /// Ends it with a signal, and waits until it has ended.
    pub(crate) fn end(&mut self, signal: &str) -> Result<(), Failure> {
        let process_id = self.child.id().to_string();
        crate::peers::succeed(Command::new("kill").args(["-s", signal, &process_id]))?;
        let asked = Instant::now();
        while self.child.try_wait()?.is_none() {
            if asked.elapsed() > STOP_TIMEOUT {
                return Err(Failure::new(format!("the server does not end on SIG{signal}")));
            }
            std::thread::sleep(POLL);
        }
        Ok(())
    }

    fn log_tail(&self) -> String {
        let Ok(file) = std::fs::File::open(self.data.with_extension("log")) else { return String::new() };
        let lines: Vec<String> = BufReader::new(file).lines().map_while(Result::ok).collect();
        lines[lines.len().saturating_sub(5)..].join(" / ")
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        // It may have ended by itself; then there is nothing to do.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What the node with this management address tells collectors of metrics.
pub(crate) fn metrics_of(address: &str) -> Result<String, Failure> {
    let mut socket = TcpStream::connect(address)?;
    socket.write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")?;
    let mut text = String::new();
    socket.read_to_string(&mut text)?;
    Ok(text)
}

/// A figure of [`Node::metrics`].
pub(crate) fn metric(metrics: &str, name: &str) -> Result<f64, Failure> {
    let found = metrics.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.parse().ok());
    found.ok_or_else(|| Failure::new(format!("no metric {name}")))
}

/// A folder under `target/` that is empty now.
pub(crate) fn fresh_folder(name: &str) -> Result<PathBuf, Failure> {
    let path = root().join("target/xtask").join(name);
    clear(&path)?;
    std::fs::create_dir_all(&path)?;
    Ok(path)
}

fn clear(path: &Path) -> Result<(), Failure> {
    match std::fs::remove_dir_all(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error.into()),
        _ => Ok(()),
    }
}
