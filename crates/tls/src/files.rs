//! The files of which credentials are made, as an administrator names them.

use std::path::{Path, PathBuf};

use runtime::Disk;

use crate::TlsError;

/// No file may be longer: a chain, a key and a bundle of CAs have some kilobytes each.
pub const FILE_BYTES_MAX: u64 = 1 << 20;

/// Where certificates and their key stand, in PEM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    /// The certificate that is shown, and behind it those that lead to a CA.
    pub certificate: PathBuf,
    /// Its private key: PKCS #8, PKCS #1 or SEC1, without a password.
    pub key: PathBuf,
    /// The CAs that are believed, one or more.
    pub authorities: PathBuf,
}

/// What the files hold.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Contents {
    pub(crate) certificate: Vec<u8>,
    pub(crate) key: Vec<u8>,
    pub(crate) authorities: Vec<u8>,
}

impl TlsFiles {
    /// Reads all three. Blocks.
    pub(crate) fn read(&self, disk: &dyn Disk) -> Result<Contents, TlsError> {
        Ok(Contents {
            certificate: read(disk, &self.certificate)?,
            key: read(disk, &self.key)?,
            authorities: read(disk, &self.authorities)?,
        })
    }
}

fn read(disk: &dyn Disk, path: &Path) -> Result<Vec<u8>, TlsError> {
    let fail = |source| TlsError::Read { path: path.to_owned(), source };
    let file_bytes = disk.file_bytes(path).map_err(fail)?;
    if file_bytes > FILE_BYTES_MAX {
        return Err(TlsError::TooLong { path: path.to_owned(), file_bytes });
    }
    disk.read(path).map_err(fail)
}
