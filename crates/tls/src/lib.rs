//! TLS 1.3 over byte streams, for whoever talks to the world; both ends show a certificate.
//!
//! ```text
//!   files ── read ──► Credentials ── of this moment ──► TlsStream::connect, TlsStream::accept
//!     └── looked at every few seconds by Certificates: new talks take what is new, and what is broken is left
//! ```
//!
//! A [`TlsStream`] stands on a [`runtime::ByteStream`], a socket or one in memory, and moves between threads as that
//! does. What is said over it, who says it, and who must use it are not known here. Keys and signatures are drawn by
//! `ring` from the system's randomness and not by [`runtime::Random`]: under TLS a run of the simulator would not be
//! repeated byte by byte, so there is none in it.
//!
//! | a reader asks | file |
//! |---|---|
//! | which files, and what may be wrong with them? | `files.rs`, `error.rs` |
//! | whom do we believe, and what do we show? | `credentials.rs` |
//! | what if the files change? | `certificates.rs` |
//! | how do bytes get on a stream and off it? | `stream.rs` |
//! | why is there no talk, in words? | `reasons.rs` |

mod certificates;
mod credentials;
mod error;
mod files;
mod reasons;
mod stream;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
#[cfg(test)]
mod tests;

pub use certificates::{Certificates, LOOK_INTERVAL};
pub use credentials::{Credentials, NameCheck};
pub use error::TlsError;
pub use files::{FILE_BYTES_MAX, TlsFiles};
pub use stream::{DetachedTlsStream, HANDSHAKE_BYTE, REFUSAL, TlsStream};
