//! The name of the cluster that a node is a member of, kept in its directory as `ring/cluster-name.json`: started with
//! another one it would serve clients under that, and find none of the others.

use std::path::PathBuf;

use runtime::Disk;
use storage::Layout;
use storage::state_file::{read_state, write_state};

use crate::AssemblyError;

fn path(layout: &Layout) -> PathBuf {
    layout.agreement().join("cluster-name.json")
}

/// Is it that of the directory, as far as that has one?
///
/// # Errors
/// It is another one, or the disk fails.
pub(crate) fn check(disk: &dyn Disk, layout: &Layout, configured: &str) -> Result<(), AssemblyError> {
    is_kept(disk, layout, configured).map(drop)
}

/// Keeps it: the node is a member.
///
/// # Errors
/// As [`check`].
pub(crate) fn keep(disk: &dyn Disk, layout: &Layout, configured: &str) -> Result<(), AssemblyError> {
    if !is_kept(disk, layout, configured)? {
        write_state(disk, &path(layout), &configured)?;
    }
    Ok(())
}

fn is_kept(disk: &dyn Disk, layout: &Layout, configured: &str) -> Result<bool, AssemblyError> {
    match read_state::<String>(disk, &path(layout))? {
        Some(saved) if saved != configured => {
            Err(AssemblyError::ClusterName { saved, configured: configured.to_owned() })
        }
        saved => Ok(saved.is_some()),
    }
}

#[cfg(test)]
mod tests {
    use runtime::MemoryDisk;

    use super::*;

    #[test]
    fn a_member_is_of_the_cluster_that_it_has_come_into() {
        let (disk, layout) = (MemoryDisk::new(), Layout::new("/node"));
        disk.create_dir_all(&layout.agreement()).expect("a directory");
        for name in ["shop", "other"] {
            check(&disk, &layout, name).expect("it is no member yet");
        }
        keep(&disk, &layout, "shop").expect("kept");
        check(&disk, &layout, "shop").expect("the same");
        keep(&disk, &layout, "shop").expect("kept already");
        let refused = check(&disk, &layout, "other").expect_err("another one").to_string();
        assert!(refused.starts_with("Saved cluster name shop != configured name other"), "{refused}");
    }
}
