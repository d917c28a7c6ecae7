//! `peristyle serve`: flags and a file to a configuration, and a node until it is told to stop.

use std::io::{IsTerminal, Write};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use clap::{Arg, ArgAction, ArgMatches, Args, Command};
use config::{Config, ConfigError, OPTIONS};
use runtime::{BrokenInvariant, DiskAccess, Failsafe, Plants, Runtime, RuntimeOptions};
use server::{Server, ServerError, ServerOptions};
use tokio::signal::unix::{SignalKind, signal};
use tracing_subscriber::EnvFilter;

use crate::cqlsh::with_causes;
use crate::memory_watch::MemoryWatch;

/// Everything is logged from here on, unless `PERISTYLE_LOG` says otherwise. Of agreement the log tells itself:
/// openraft warns of a node that is away several times a second, for as long as it is.
const LOG_LEVEL: &str = "info,openraft=error";
/// What a process ends with whose disk failed, where the policy is `die`; Cassandra's code.
const DISK_FAILED_CODE: i32 = 100;
/// What a process ends with that broke a promise of its own code: `EX_SOFTWARE` of `sysexits.h`.
const INVARIANT_BROKEN_CODE: i32 = 70;
/// How long a stop in order may take.
const STOP_MAX: Duration = Duration::from_secs(20);
/// What a process ends with that did not stop in that time.
const STOP_FAILED_CODE: i32 = 101;
/// Descriptors that the process is likely to have open beside those of its clients.
const FILES_EXPECTED: u64 = 2_048;
/// Set once the node was told to stop: what its clients in this process meet then is no failure.
static IS_STOPPING: AtomicBool = AtomicBool::new(false);
/// How soon a dead shard is noticed, where nobody looks at memory more often.
const WATCH_INTERVAL: Duration = Duration::from_millis(500);

/// Flags of `serve` and `demo`: `--config FILE`, and one flag for every option of that file.
#[derive(Clone, Debug, Default)]
pub(crate) struct ServeArguments {
    config: Option<PathBuf>,
    /// Names without their hyphens, and values.
    flags: Vec<(String, String)>,
}

/// Flags come from the table of options, so that none is forgotten.
impl Args for ServeArguments {
    fn augment_args(command: Command) -> Command {
        let file =
            Arg::new("config").long("config").value_name("FILE").help("Configuration file; none is needed");
        let flags = OPTIONS.iter().map(|option| {
            let help = format!("{} [default: {}]", option.about, option.default);
            let flag = Arg::new(option.name).long(option.flag()).value_name(option.value).help(help);
            if option.is_list() { flag.action(ArgAction::Append) } else { flag }
        });
        command.arg(file).args(flags)
    }

    fn augment_args_for_update(command: Command) -> Command {
        ServeArguments::augment_args(command)
    }
}

impl clap::FromArgMatches for ServeArguments {
    fn from_arg_matches(matches: &ArgMatches) -> Result<ServeArguments, clap::Error> {
        let text =
            |name: &str| Some(matches.get_many::<String>(name)?.cloned().collect::<Vec<_>>().join(","));
        let flags = OPTIONS.iter().filter_map(|option| Some((option.flag(), text(option.name)?)));
        Ok(ServeArguments { config: text("config").map(PathBuf::from), flags: flags.collect() })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = ServeArguments::from_arg_matches(matches)?;
        Ok(())
    }
}

/// Why a node could not serve.
#[derive(Debug, thiserror::Error)]
enum ServeError {
    #[error("read the {what} {path}")]
    File { what: &'static str, path: PathBuf, source: std::io::Error },
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error("take the {0} bytes of `memory`, as `memory_pretouch` says")]
    Memory(u64, #[source] std::collections::TryReserveError),
    #[error("start the node's threads")]
    Threads(#[source] std::io::Error),
    #[error("wait for signals")]
    Signals(#[source] std::io::Error),
    #[error(transparent)]
    Start(ServerError),
    #[error("stop the node")]
    Stop(#[source] ServerError),
    #[error("the node takes no part in its ring any more: {0}")]
    LeftRing(String),
    #[error("a shard has died; see the log")]
    ShardDied,
}

/// Serves until SIGTERM, Ctrl-C or a stop over the management port. `on_ready` is called once, with
/// the address of the CQL port, when the first query can be answered.
pub(crate) fn run(arguments: &ServeArguments, on_ready: impl FnOnce(SocketAddr)) -> ExitCode {
    let filter = EnvFilter::try_from_env("PERISTYLE_LOG").unwrap_or_else(|_| EnvFilter::new(LOG_LEVEL));
    let log = tracing_subscriber::fmt().with_env_filter(filter).with_ansi(std::io::stderr().is_terminal());
    // Of a log that can not be written, on a full disk say, nobody can be told: to tell standard error is to panic.
    let log = log.with_writer(std::io::stderr).log_internal_errors(false);
    // Somebody who embeds us may have set one up already.
    let _ = log.try_init();
    match configuration(arguments).and_then(|config| serve(arguments, &config, on_ready)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "peristyle: {}", with_causes(&error));
            ExitCode::FAILURE
        }
    }
}

/// Was the node told to stop?
pub(crate) fn is_stopping() -> bool {
    IS_STOPPING.load(Ordering::Relaxed)
}

/// Defaults, the file over them, flags over that.
fn configuration(arguments: &ServeArguments) -> Result<Config, ServeError> {
    let mut config = Config::default();
    let read = |what, path: &PathBuf| {
        let fail = |source| ServeError::File { what, path: path.clone(), source };
        std::fs::read_to_string(path).map_err(fail)
    };
    if let Some(path) = &arguments.config {
        config.apply_file(path, &read("configuration file", path)?)?;
    }
    for (flag, value) in &arguments.flags {
        config.apply_flag(flag, value)?;
    }
    if let Some(path) = config.rackdc_file.clone() {
        config.apply_rackdc(&path, &read("file of `rackdc_file`", &path)?)?;
    }
    config.machine_bytes = runtime::memory_limit_bytes();
    config.check()?;
    Ok(config)
}

fn serve(
    arguments: &ServeArguments,
    config: &Config,
    on_ready: impl FnOnce(SocketAddr),
) -> Result<(), ServeError> {
    let started = Instant::now();
    let memory = if config.memory_pretouch {
        let bytes = usize::try_from(config.memory_bytes()).unwrap_or(usize::MAX);
        allocator::take_ahead(bytes).map_err(|source| ServeError::Memory(config.memory_bytes(), source))?;
        None
    } else {
        Some(MemoryWatch::start(config.memory_bytes()))
    };
    let cores =
        std::thread::available_parallelism().map_or(1, |count| u16::try_from(count.get()).unwrap_or(256));
    let options = RuntimeOptions {
        disk_access: disk_access(config),
        // A flush must not wait until a merge has read its piece.
        background_thread_count: config.concurrent_compactors as usize + 1,
        ..RuntimeOptions::default()
    };
    let runtime = Runtime {
        failsafe: Failsafe::ending(end_broken),
        plants: Plants::of_process(),
        ..Runtime::real(options).map_err(ServeError::Threads)?
    };
    let waiting =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(ServeError::Threads)?;
    let options = ServerOptions::from_config(config, cores);
    config.check_shards(options.storage.shard_count)?;
    let others_count = options.ring.as_ref().map_or(0, |ring| ring.limits.connection_count);
    let connection_count = options.limits.connection_count + others_count;
    if let Err(error) = runtime::expect_descriptors(connection_count as u64 + FILES_EXPECTED) {
        tracing::warn!(%error, "shards wait while the system makes room for descriptors");
    }
    log_start(arguments, &options);
    let server = Server::start(&runtime, options).map_err(ServeError::Start)?;
    log_ready(&server, started.elapsed());
    let _ = writeln!(std::io::stdout(), "ready: CQL on {}", server.listen());
    on_ready(server.listen());
    waiting.block_on(async {
        let reason = wait_for_the_end(&server, memory).await?;
        IS_STOPPING.store(true, Ordering::Relaxed);
        tracing::info!(reason, "stopping: clients are let go, memtables written out");
        let stopping = Instant::now();
        end_in_any_case();
        server.stop().await.map_err(ServeError::Stop)?;
        tracing::info!(elapsed = ?millis(stopping.elapsed()), "stopped");
        Ok(())
    })
}

/// Ends the process at once, on whichever thread.
fn end_broken(broken: &BrokenInvariant) -> ! {
    // Kept to the end, so that this is the last line.
    let mut stderr = std::io::stderr().lock();
    let _ = writeln!(stderr, "peristyle: {broken}; the process ends, and the next start replays its log");
    std::process::exit(INVARIANT_BROKEN_CODE);
}

/// Ends the process when stopping it in order takes too long: a shard that is kept by something would keep it for ever.
fn end_in_any_case() {
    let watching = runtime::start_service("stop-watch", || async {
        tokio::time::sleep(STOP_MAX).await;
        tracing::error!(after = ?STOP_MAX, "the node does not stop: its process ends; the next start replays its log");
        std::process::exit(STOP_FAILED_CODE);
    });
    if let Err(error) = watching {
        tracing::warn!(%error, "nothing watches over the stop");
    }
}

/// What somebody who reads the log will want to know of this run.
fn log_start(arguments: &ServeArguments, options: &ServerOptions) {
    let mebibytes = |bytes: usize| format!("{}MiB", bytes >> 20);
    let storage = &options.storage;
    tracing::info!(
        version = env!("CARGO_PKG_VERSION"),
        process = std::process::id(),
        configuration = %arguments.config.as_deref().unwrap_or_else(|| "none".as_ref()).display(),
        data_dir = %std::path::absolute(&storage.directory).unwrap_or_else(|_| storage.directory.clone()).display(),
        shards = storage.shard_count,
        memory = mebibytes(usize::try_from(options.memory_bytes).unwrap_or(usize::MAX)),
        memtables = mebibytes(storage.memtable_bytes),
        cache = mebibytes(storage.cache_bytes),
        "starting"
    );
}

fn log_ready(server: &Server, elapsed: Duration) {
    let management = server.management().map_or_else(|| "off".to_owned(), |address| address.to_string());
    tracing::info!(cql = %server.listen(), %management, recovery = ?millis(elapsed), "ready");
}

/// No finer than people care for.
fn millis(time: Duration) -> Duration {
    Duration::from_millis(u64::try_from(time.as_millis()).unwrap_or(u64::MAX))
}

fn disk_access(config: &Config) -> DiskAccess {
    match config.disk_access {
        config::DiskAccess::Auto => DiskAccess::Auto,
        config::DiskAccess::IoUring => DiskAccess::IoUring,
        config::DiskAccess::Pread => DiskAccess::Pread,
        config::DiskAccess::Buffered => DiskAccess::Buffered,
    }
}

/// Resolves at SIGTERM, at Ctrl-C or when the management port asks for it, with the one it was; an error when a
/// shard has died.
async fn wait_for_the_end(
    server: &Server,
    mut memory: Option<MemoryWatch>,
) -> Result<&'static str, ServeError> {
    let mut terminate = signal(SignalKind::terminate()).map_err(ServeError::Signals)?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(ServeError::Signals)?;
    let mut next_look = WATCH_INTERVAL;
    loop {
        tokio::select! {
            _ = terminate.recv() => return Ok("SIGTERM"),
            _ = interrupt.recv() => return Ok("SIGINT"),
            () = server.stop_requested() => return Ok("the management port"),
            // At once: a disk that fails may not let anything end in order.
            () = server.disk_failed() => std::process::exit(DISK_FAILED_CODE),
            () = tokio::time::sleep(next_look) => {
                if let Some(memory) = &mut memory {
                    next_look = memory.look(server).await;
                }
                if server.has_failed() {
                    return Err(ServeError::ShardDied);
                }
                if let Some(why) = server.left_ring() {
                    return Err(ServeError::LeftRing(why));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Words {
        #[command(flatten)]
        serve: ServeArguments,
    }

    #[track_caller]
    fn parse(words: &[&str]) -> Result<Config, String> {
        let words = Words::try_parse_from([&["serve"], words].concat()).map_err(|error| error.to_string())?;
        configuration(&words.serve).map_err(|error| error.to_string())
    }

    #[test]
    fn every_option_is_a_flag() {
        let config = parse(&["--data-dir", "d", "--shards=3", "--commitlog-sync", "batch"]).unwrap();
        assert_eq!(config.data_dir, PathBuf::from("d"));
        assert_eq!(config.shards, Some(3));
        assert_eq!(config.commitlog_sync, config::CommitlogSync::Batch);
    }

    #[test]
    fn lists_are_given_one_by_one_or_together() {
        let config = parse(&["--data-file-directories", "a", "--data-file-directories=b,c"]).unwrap();
        assert_eq!(config.data_file_directories, ["a", "b", "c"].map(PathBuf::from));
        assert!(parse(&["--shards", "1", "--shards", "2"]).is_err());
        let seeds = ["--listen-address=127.0.0.1", "--seeds=127.0.0.1", "--seeds=127.0.0.2:7001"];
        let addresses = ["127.0.0.1:7000", "127.0.0.2:7001"].map(|address| address.parse().unwrap());
        assert_eq!(parse(&seeds).unwrap().seed_addresses(), addresses);
    }

    #[test]
    fn more_memory_than_the_machine_has_is_refused() {
        let error = parse(&["--memory", "4000TiB"]).unwrap_err();
        assert!(error.starts_with("configuration: `memory` = 4000TiB: more than the "), "{error}");
    }

    #[test]
    fn a_file_that_is_missing_is_called_what_it_is() {
        for (flag, what) in [("--config", "configuration file"), ("--rackdc-file", "file of `rackdc_file`")] {
            assert_eq!(parse(&[flag, "/no/file"]).unwrap_err(), format!("read the {what} /no/file"));
        }
    }

    #[test]
    fn a_wrong_value_or_flag_is_refused() {
        assert!(parse(&["--shards", "many"]).is_err());
        assert!(parse(&["--shard", "1"]).is_err());
    }
}
