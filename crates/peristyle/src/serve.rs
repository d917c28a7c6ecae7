//! `peristyle serve`: arguments to a configuration, and a node until it is told to stop.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use config::Config;
use runtime::{Runtime, RuntimeOptions};
use server::{Server, ServerOptions};
use tokio::signal::unix::{SignalKind, signal};
use tracing_subscriber::EnvFilter;

/// Every flag is also an option of the configuration file; a flag wins.
#[derive(Args, Debug, Default)]
pub(crate) struct ServeArguments {
    /// Configuration file (TOML); none is needed
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Folder of the node's files [default: ./peristyle-data]
    #[arg(long, value_name = "DIR")]
    pub(crate) data_dir: Option<PathBuf>,
    /// Address for CQL clients [default: 127.0.0.1:9042]
    #[arg(long, value_name = "ADDR:PORT")]
    pub(crate) listen: Option<String>,
    /// Address of the management port [default: 127.0.0.1:7199]
    #[arg(long, value_name = "ADDR:PORT")]
    pub(crate) management: Option<String>,
    /// Memory budget, such as 512MiB or 4GiB
    #[arg(long, value_name = "SIZE")]
    pub(crate) memory: Option<String>,
    /// Number of shards [default: one per core]
    #[arg(long, value_name = "N")]
    pub(crate) shards: Option<u16>,
    /// When a write is acknowledged: group, periodic or batch [default: group]
    #[arg(long, value_name = "WHEN")]
    pub(crate) commitlog_sync: Option<String>,
}

impl ServeArguments {
    /// The configuration file, and the flags over it.
    fn config(&self) -> Result<Config, String> {
        let mut config = Config::default();
        if let Some(path) = &self.config {
            let text = std::fs::read_to_string(path)
                .map_err(|error| format!("read configuration file {}: {error}", path.display()))?;
            config.apply_file(path, &text).map_err(|error| error.to_string())?;
        }
        let data_dir = self.data_dir.as_ref().map(|path| path.display().to_string());
        let shards = self.shards.map(|count| count.to_string());
        let flags = [
            ("data-dir", &data_dir),
            ("listen", &self.listen),
            ("management", &self.management),
            ("memory", &self.memory),
            ("shards", &shards),
            ("commitlog-sync", &self.commitlog_sync),
        ];
        for (flag, value) in flags {
            if let Some(value) = value {
                config.apply_flag(flag, value).map_err(|error| error.to_string())?;
            }
        }
        config.check().map_err(|error| error.to_string())?;
        Ok(config)
    }
}

/// Serves until SIGTERM or Ctrl-C. `on_ready` is called once, with the address of the CQL port, when
/// the first query can be answered.
pub(crate) fn run(
    arguments: &ServeArguments,
    on_ready: impl FnOnce(SocketAddr) + Send + 'static,
) -> ExitCode {
    let filter = EnvFilter::try_from_env("PERISTYLE_LOG").unwrap_or_else(|_| EnvFilter::new("info"));
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).init();
    match serve(arguments, on_ready) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("peristyle: {error}");
            ExitCode::FAILURE
        }
    }
}

fn serve(arguments: &ServeArguments, on_ready: impl FnOnce(SocketAddr)) -> Result<(), String> {
    let config = arguments.config()?;
    let cores =
        std::thread::available_parallelism().map_or(1, |count| u16::try_from(count.get()).unwrap_or(256));
    let runtime =
        Runtime::real(RuntimeOptions::default()).map_err(|error| format!("start threads: {error}"))?;
    let server = Server::start(&runtime, ServerOptions::from_config(&config, cores))
        .map_err(|error| error.to_string())?;
    let listen = server.listen();
    println!("ready: CQL on {listen}");
    on_ready(listen);
    let waiting = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| format!("wait for signals: {error}"))?;
    waiting.block_on(async {
        wait_for_the_end(&server).await.map_err(|error| format!("wait for signals: {error}"))?;
        server.stop().await.map_err(|error| format!("stop: {error}"))
    })
}

/// Resolves at SIGTERM, at Ctrl-C, when the management port asks for it, or when a shard has died.
async fn wait_for_the_end(server: &Server) -> std::io::Result<()> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut watch = tokio::time::interval(Duration::from_secs(1));
    loop {
        tokio::select! {
            _ = terminate.recv() => return Ok(()),
            _ = interrupt.recv() => return Ok(()),
            () = server.stop_requested() => return Ok(()),
            _ = watch.tick() => {
                if server.has_failed() {
                    return Err(std::io::Error::other("a shard has died; see the log"));
                }
            }
        }
    }
}
