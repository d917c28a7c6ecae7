//! TOC.txt: the list of components, one a line.

use std::path::Path;

use crate::{Component, SstableError};

/// The list of those components and itself, sorted as Cassandra sorts it.
pub fn component_list(components: &[Component]) -> String {
    let mut names: Vec<&str> = components.iter().map(|component| component.file_suffix()).collect();
    names.push(Component::Toc.file_suffix());
    names.sort_unstable();
    names.dedup();
    names.iter().map(|name| format!("{name}\n")).collect()
}

/// The components listed; others that we do not know (of indexes) are passed over.
pub(crate) fn from_text(path: &Path, text: &[u8]) -> Result<Vec<Component>, SstableError> {
    let text = std::str::from_utf8(text).map_err(|error| SstableError::Damaged {
        path: path.to_owned(),
        offset: error.valid_up_to() as u64,
        what: "the list of components is not text",
    })?;
    Ok(text.lines().filter_map(|line| Component::from_file_suffix(line.trim())).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn list_is_sorted_and_names_itself() {
        let text = component_list(&[Component::Rows, Component::Data]);
        assert_eq!(text, "Data.db\nRows.db\nTOC.txt\n");
        let read = from_text(Path::new("t"), b"Data.db\nOther.db\nTOC.txt\n").expect("text");
        assert_eq!(read, [Component::Data, Component::Toc]);
    }
}
