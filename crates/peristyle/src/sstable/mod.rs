//! `peristyle sstable`: table files looked at and mended while no node runs on them.
//!
//! Files are named by their `-Data.db`; versions `da`, `nb` and `oa` are read. What is written anew is `da`.

mod dump;
mod json;
mod metadata;
mod rewrite;

use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use clap::{Args, Subcommand};
use runtime::{Disk, OsDisk};
use schema::Table;
use sstable::{Component, Descriptor, SstableError, TableFile, table_of_header};

#[derive(Args, Debug)]
pub(crate) struct SstableArguments {
    #[command(subcommand)]
    command: SstableCommand,
}

#[derive(Subcommand, Debug)]
enum SstableCommand {
    /// Print rows as JSON, as sstabledump does
    Dump {
        /// Print raw timestamps instead of dates
        #[arg(short = 't', long)]
        raw_time: bool,
        /// The -Data.db file
        file: PathBuf,
    },
    /// Read files through and check all checksums and the order of rows
    Verify {
        /// The -Data.db files
        #[arg(required = true)]
        files: Vec<PathBuf>,
    },
    /// Print what is known of files as a whole, as sstablemetadata does
    Metadata {
        /// The -Data.db files
        #[arg(required = true)]
        files: Vec<PathBuf>,
    },
    /// Write what can be read of damaged files into new ones, and say what was lost
    Scrub {
        /// Where the new files go; default: beside the old ones
        #[arg(short, long)]
        output: Option<PathBuf>,
        /// The -Data.db files
        #[arg(required = true)]
        files: Vec<PathBuf>,
    },
    /// Write files into several of a size
    Split {
        /// Bytes of Data of each, in MiB
        #[arg(short, long, default_value_t = 50, value_parser = clap::value_parser!(u64).range(1..=1 << 20))]
        size: u64,
        /// Where the new files go; default: beside the old ones
        #[arg(short, long)]
        output: Option<PathBuf>,
        /// The -Data.db files
        #[arg(required = true)]
        files: Vec<PathBuf>,
    },
}

/// A table file, and the table that its header describes.
struct Opened {
    disk: Arc<dyn Disk>,
    table: Arc<Table>,
    file: Arc<TableFile>,
}

impl Opened {
    fn open(path: &Path) -> Result<Opened, SstableError> {
        let disk: Arc<dyn Disk> = Arc::new(OsDisk::new());
        let (descriptor, _) = Descriptor::from_path(path)?;
        disk.file_bytes(&descriptor.path(Component::Data))?;
        let table = Arc::new(table_of_header(&*disk, &descriptor, "keyspace", "table")?);
        let file = TableFile::open(Arc::clone(&disk), descriptor, &table)?;
        Ok(Opened { disk, table, file })
    }
}

/// Why a command did not work.
#[derive(Debug, thiserror::Error)]
enum ToolError {
    #[error("{0}")]
    File(#[from] SstableError),
    #[error("write the output: {0}")]
    Output(#[from] std::io::Error),
    #[error("{0}")]
    Lost(String),
}

/// Runs one command: 0 when all went well, 1 when a file is damaged or can not be read.
pub(crate) fn run(arguments: &SstableArguments) -> ExitCode {
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    let mut code = ExitCode::SUCCESS;
    let mut each = |files: &[PathBuf],
                    act: &mut dyn FnMut(&Path, &mut dyn Write) -> Result<(), ToolError>| {
        for path in files {
            if let Err(error) = act(path, &mut out) {
                // A reader that went away (`| head`) is no failure.
                if matches!(&error, ToolError::Output(error) if error.kind() == ErrorKind::BrokenPipe) {
                    return;
                }
                let _ = out.flush();
                eprintln!("{}: {error}", path.display());
                code = ExitCode::from(1);
            }
        }
        let _ = out.flush();
    };
    match &arguments.command {
        SstableCommand::Dump { raw_time, file } => {
            each(std::slice::from_ref(file), &mut |path, out| {
                dump::dump(&Opened::open(path)?, *raw_time, out)
            });
        }
        SstableCommand::Verify { files } => each(files, &mut |path, out| {
            Opened::open(path)?.file.verify()?;
            Ok(writeln!(out, "{}: sound", path.display())?)
        }),
        SstableCommand::Metadata { files } => {
            each(files, &mut |path, out| metadata::print(path, &Opened::open(path)?, out));
        }
        SstableCommand::Scrub { output, files } => {
            each(files, &mut |path, out| rewrite::scrub(&Opened::open(path)?, output.as_deref(), out));
        }
        SstableCommand::Split { size, output, files } => {
            let bytes = size.saturating_mul(1 << 20);
            each(files, &mut |path, out| rewrite::split(&Opened::open(path)?, bytes, output.as_deref(), out));
        }
    }
    code
}
