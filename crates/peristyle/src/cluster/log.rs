//! `log`: the end of what a node has told.

use std::io::Write;
use std::path::Path;

use super::error::ClusterError;
use super::{description, node};

pub(super) fn print(
    directory: &Path,
    number: usize,
    line_count: usize,
    out: &mut impl Write,
) -> Result<(), ClusterError> {
    description::look(directory)?.node(number)?;
    Ok(writeln!(out, "{}", node::log_end(directory, number, line_count)?)?)
}
