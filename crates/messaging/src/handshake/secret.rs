//! A secret that all nodes of a cluster know, and how one shows that it does without telling it.
//!
//! Each side sends a random number that is used once, and a keyed hash (HMAC-SHA256, RFC 2104) over everything that
//! was said so far, both numbers included. Whoever listens can neither learn the secret nor use a hash again. It keeps
//! strangers out; what is said afterwards can be read by who listens. For that there is TLS.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// Length of a proof.
pub(super) const PROOF_BYTES: usize = 32;

/// What a side sends to show that it knows the secret; zeros where there is none.
pub(super) type Proof = [u8; PROOF_BYTES];

/// The secret. Cheap to clone.
#[derive(Clone)]
pub struct Secret(Arc<[u8]>);

/// Whose proof it is: one side's can not be sent back as the other's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Initiator,
    Acceptor,
}

impl Secret {
    /// Of any bytes; the longer the better.
    pub fn new(bytes: &[u8]) -> Secret {
        Secret(bytes.into())
    }

    fn mac(&self, side: Side, said: &[Bytes; 2]) -> Hmac<Sha256> {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.0).expect("HMAC takes keys of any length");
        mac.update(match side {
            Side::Initiator => b"peristyle initiator",
            Side::Acceptor => b"peristyle acceptor ",
        });
        said.iter().for_each(|part| mac.update(part));
        mac
    }

    /// Over the hello and what the welcome says beside its own proof.
    pub(super) fn proof(&self, side: Side, said: &[Bytes; 2]) -> Proof {
        self.mac(side, said).finalize().into_bytes().into()
    }

    /// Takes the same time whatever is wrong with the proof.
    pub(super) fn is_proven(&self, side: Side, said: &[Bytes; 2], proof: &Proof) -> bool {
        self.mac(side, said).verify_slice(proof).is_ok()
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Secret")
    }
}
