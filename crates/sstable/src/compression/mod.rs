//! Data in chunks: compressed or not, each with a checksum, and where to find them.

mod codec;
mod data_file;
mod data_writer;
mod info;

pub(crate) use codec::Codec;
pub(crate) use data_file::DataFile;
pub(crate) use data_writer::DataWriter;
pub(crate) use info::{CRC_BYTES, CompressionInfo, CompressionParameters};
