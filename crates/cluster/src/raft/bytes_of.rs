//! Log ids, votes, entries and memberships as bytes: the same on disk and between nodes.
//!
//! `docs/formats/raft-log.md` draws them. Integers are little-endian. Whatever is read may be wrong and is checked: a
//! count says nothing that the bytes behind it do not bear out.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};

use bytes::{Buf, BufMut, Bytes};
use uuid::Uuid;

use super::types::{
    Address, Command, Entry, LogId, Membership, Payload, SnapshotMeta, StoredMembership, Vote,
};

/// Bytes that are not what they should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0} makes no sense")]
pub(crate) struct BadBytes(pub(crate) &'static str);

/// Reads from the front of bytes.
pub(crate) struct Reader<'a>(pub(crate) &'a [u8]);

impl Reader<'_> {
    pub(crate) fn u8(&mut self) -> Result<u8, BadBytes> {
        self.0.try_get_u8().map_err(|_| BadBytes("a byte"))
    }

    pub(crate) fn u16(&mut self) -> Result<u16, BadBytes> {
        self.0.try_get_u16_le().map_err(|_| BadBytes("a short number"))
    }

    pub(crate) fn u32(&mut self) -> Result<u32, BadBytes> {
        self.0.try_get_u32_le().map_err(|_| BadBytes("a number"))
    }

    pub(crate) fn u64(&mut self) -> Result<u64, BadBytes> {
        self.0.try_get_u64_le().map_err(|_| BadBytes("a long number"))
    }

    pub(crate) fn flag(&mut self) -> Result<bool, BadBytes> {
        match self.u8()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(BadBytes("a flag")),
        }
    }

    pub(crate) fn uuid(&mut self) -> Result<Uuid, BadBytes> {
        let (id, rest) = self.0.split_first_chunk().ok_or(BadBytes("an id"))?;
        self.0 = rest;
        Ok(Uuid::from_bytes(*id))
    }

    /// Bytes after their length.
    pub(crate) fn bytes(&mut self) -> Result<Bytes, BadBytes> {
        let count = self.u32()? as usize;
        let (taken, rest) = self.0.split_at_checked(count).ok_or(BadBytes("a length"))?;
        self.0 = rest;
        Ok(Bytes::copy_from_slice(taken))
    }

    /// So many things, each read the same way.
    pub(crate) fn list<T>(
        &mut self,
        read: impl Fn(&mut Self) -> Result<T, BadBytes>,
    ) -> Result<Vec<T>, BadBytes> {
        // Nothing is reserved for a count that may be wrong.
        (0..self.u32()?).map(|_| read(self)).collect()
    }

    pub(crate) fn optional<T>(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<T, BadBytes>,
    ) -> Result<Option<T>, BadBytes> {
        match self.flag()? {
            true => read(self).map(Some),
            false => Ok(None),
        }
    }

    pub(crate) fn log_id(&mut self) -> Result<LogId, BadBytes> {
        Ok(LogId::new_term_index(self.u64()?, self.u64()?))
    }

    pub(crate) fn vote(&mut self) -> Result<Vote, BadBytes> {
        let (term, node) = (self.u64()?, self.uuid()?);
        match self.flag()? {
            true => Ok(Vote::new_committed(term, node)),
            false => Ok(Vote::new(term, node)),
        }
    }

    pub(crate) fn entry(&mut self) -> Result<Entry, BadBytes> {
        let log_id = self.log_id()?;
        let payload = match self.u8()? {
            1 => Payload::Blank,
            2 => Payload::Normal(Command { id: self.uuid()?, body: self.bytes()? }),
            3 => Payload::Membership(self.membership()?),
            _ => return Err(BadBytes("a kind of entry")),
        };
        Ok(Entry { log_id, payload })
    }

    pub(crate) fn membership(&mut self) -> Result<Membership, BadBytes> {
        let voters = self.list(|reader| reader.list(Self::uuid))?;
        let voters: Vec<BTreeSet<Uuid>> = voters.into_iter().map(BTreeSet::from_iter).collect();
        let nodes: BTreeMap<Uuid, Address> =
            self.list(|reader| Ok((reader.uuid()?, reader.address()?)))?.into_iter().collect();
        if voters.is_empty() && nodes.is_empty() {
            return Ok(Membership::default());
        }
        Membership::new(voters, nodes).map_err(|_| BadBytes("a membership"))
    }

    pub(crate) fn address(&mut self) -> Result<Address, BadBytes> {
        let ip = match self.u8()? {
            4 => IpAddr::from(self.u32()?.to_le_bytes()),
            6 => IpAddr::from(self.uuid()?.into_bytes()),
            _ => return Err(BadBytes("an address")),
        };
        Ok(Address(SocketAddr::new(ip, self.u16()?)))
    }

    pub(crate) fn snapshot_meta(&mut self) -> Result<SnapshotMeta, BadBytes> {
        let last_log_id = self.optional(Self::log_id)?;
        let last_membership = StoredMembership::new(self.optional(Self::log_id)?, self.membership()?);
        Ok(SnapshotMeta { last_log_id, last_membership })
    }

    /// Nothing more comes.
    pub(crate) fn end(&self) -> Result<(), BadBytes> {
        if self.0.is_empty() { Ok(()) } else { Err(BadBytes("what comes behind the end")) }
    }
}

pub(crate) fn put_bytes(out: &mut impl BufMut, bytes: &[u8]) {
    out.put_u32_le(u32::try_from(bytes.len()).expect("nothing of ours is so long"));
    out.put_slice(bytes);
}

pub(crate) fn put_optional<O: BufMut, T>(out: &mut O, value: Option<T>, put: impl FnOnce(&mut O, T)) {
    out.put_u8(u8::from(value.is_some()));
    if let Some(value) = value {
        put(out, value);
    }
}

pub(crate) fn put_log_id(out: &mut impl BufMut, log_id: LogId) {
    out.put_u64_le(log_id.leader_id.term);
    out.put_u64_le(log_id.index);
}

pub(crate) fn put_vote(out: &mut impl BufMut, vote: &Vote) {
    out.put_u64_le(vote.leader_id.term);
    out.put_slice(vote.leader_id.voted_for.as_bytes());
    out.put_u8(u8::from(vote.committed));
}

pub(crate) fn put_entry(out: &mut impl BufMut, entry: &Entry) {
    put_log_id(out, entry.log_id);
    match &entry.payload {
        Payload::Blank => out.put_u8(1),
        Payload::Normal(command) => {
            out.put_u8(2);
            out.put_slice(command.id.as_bytes());
            put_bytes(out, &command.body);
        }
        Payload::Membership(membership) => {
            out.put_u8(3);
            put_membership(out, membership);
        }
    }
}

pub(crate) fn put_membership(out: &mut impl BufMut, membership: &Membership) {
    let voters = membership.get_joint_config();
    put_count(out, voters.len());
    for set in voters {
        put_count(out, set.len());
        set.iter().for_each(|voter| out.put_slice(voter.as_bytes()));
    }
    put_count(out, membership.nodes().count());
    for (node, address) in membership.nodes() {
        out.put_slice(node.as_bytes());
        put_address(out, *address);
    }
}

pub(crate) fn put_count(out: &mut impl BufMut, count: usize) {
    out.put_u32_le(u32::try_from(count).expect("far fewer"));
}

pub(crate) fn put_address(out: &mut impl BufMut, Address(address): Address) {
    match address.ip() {
        IpAddr::V4(ip) => {
            out.put_u8(4);
            out.put_slice(&ip.octets());
        }
        IpAddr::V6(ip) => {
            out.put_u8(6);
            out.put_slice(&ip.octets());
        }
    }
    out.put_u16_le(address.port());
}

pub(crate) fn put_snapshot_meta(out: &mut impl BufMut, meta: &SnapshotMeta) {
    put_optional(out, meta.last_log_id, put_log_id);
    put_optional(out, *meta.last_membership.log_id(), put_log_id);
    put_membership(out, meta.last_membership.membership());
}
