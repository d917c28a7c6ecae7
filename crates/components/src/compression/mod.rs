//! Data in chunks: compressed or not, each with a checksum, and where to find them.

mod codec;
mod data_file;
mod data_writer;
mod info;

use codec::Codec;
pub use data_file::DataFile;
pub use data_writer::{DataWriter, FinishedData};
use info::CRC_BYTES;
use info::CompressionInfo;
pub use info::CompressionParameters;
