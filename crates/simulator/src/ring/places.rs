//! Nodes that start elsewhere than they were, and nodes that have lost their disk, whose places are taken by empty
//! ones.
//!
//! One at a time: the next one when the ring has agreed on where the last one is, and it has its rows. More could be
//! more than any ring can bear: all seeds elsewhere, or all replicas lost.

use std::cell::{Cell, RefCell};
use std::net::SocketAddr;

use cluster::membership::Known;
use runtime::MemoryDisk;
use tokio::time::Instant;
use uuid::Uuid;

use super::{PORT, World};
use crate::dice::Dice;
use crate::faults::Fault;
use crate::peers::identity::{address, listening};
use crate::ways::Way;

/// Where each node is.
pub(crate) struct Places {
    /// How often it has moved: its ports are greater by that.
    moves: RefCell<Vec<u16>>,
    /// Where it was when it lost its disk.
    lost: RefCell<Vec<Option<SocketAddr>>>,
    /// Who had been there.
    lost_ids: RefCell<Vec<Uuid>>,
    loss_count: Cell<u64>,
}

impl Places {
    pub(crate) fn new(node_count: usize) -> Places {
        let (moves, lost) = (vec![0; node_count], vec![None; node_count]);
        Places {
            moves: RefCell::new(moves),
            lost: RefCell::new(lost),
            lost_ids: RefCell::default(),
            loss_count: Cell::default(),
        }
    }

    /// Where others reach a node.
    pub(crate) fn internode(&self, node: usize) -> SocketAddr {
        let SocketAddr::V4(mut listening) = listening(node) else { unreachable!("it is of version 4") };
        listening.set_port(listening.port() + self.moves.borrow()[node]);
        listening.into()
    }

    /// Where clients reach it.
    pub(crate) fn cql(&self, node: usize) -> SocketAddr {
        SocketAddr::new(address(node), PORT + self.moves.borrow()[node])
    }

    /// Where the node was whose place this one takes.
    pub(crate) fn replaced(&self, node: usize) -> Option<SocketAddr> {
        self.lost.borrow()[node]
    }

    /// How many disks were lost so far: what only one node had may be gone since.
    pub(crate) fn loss_count(&self) -> u64 {
        self.loss_count.get()
    }

    /// Who had been on disks that were lost.
    pub(crate) fn lost_ids(&self) -> Vec<Uuid> {
        self.lost_ids.borrow().clone()
    }

    fn move_on(&self, node: usize) {
        self.moves.borrow_mut()[node] += 1;
    }

    fn lose(&self, node: usize) {
        let place = self.internode(node);
        self.lost.borrow_mut()[node] = Some(place);
        self.loss_count.set(self.loss_count.get() + 1);
    }
}

impl World {
    /// A node is about to start: it may be elsewhere, or have lost its disk.
    pub(crate) fn befall(&self, node: usize, incarnation: u64) {
        let dice = Dice::new(self.stage.seed, incarnation, 8_300 + node as u64);
        let (moves, loses) = (dice.one_in(4), dice.one_in(5));
        if !self.has_tables.get() || !(moves || loses) || self.is_one_away.get() || !self.is_at_rest() {
            return;
        }
        if loses {
            self.stage.note(format_args!("node {node} has lost its disk"));
            let members = self.lives.borrow().iter().flatten().find_map(Known::members);
            let place = self.places.internode(node);
            let had = members.and_then(|members| {
                let member = members.list().iter().find(|member| member.candidate.address == place)?;
                Some(member.candidate.host_id)
            });
            self.places.lost_ids.borrow_mut().extend(had);
            self.places.lose(node);
            self.disks_lost.borrow_mut().push((node, Instant::now()));
            self.stage.hosts.put_disk(node, MemoryDisk::new());
            self.stage.faults.count(Fault::LostDisk);
            self.ways.add(Way::LostDisk, 1);
        }
        if moves {
            self.places.move_on(node);
            self.stage.note(format_args!("node {node} is at {} now", self.places.internode(node)));
            self.stage.faults.count(Fault::OtherAddress);
            self.ways.add(Way::OtherAddress, 1);
        }
    }

    /// Has the ring agreed on where all nodes are, and do all have their rows?
    pub(crate) fn is_at_rest(&self) -> bool {
        let lives = self.lives.borrow();
        let farthest = lives.iter().flatten().max_by_key(|known| known.ring_epoch());
        let Some(members) = farthest.and_then(Known::members) else { return false };
        let is_at = |node: usize| {
            let place = self.places.internode(node);
            members.list().iter().any(|member| member.candidate.address == place)
        };
        let are_all_agreed = (0..self.node_count()).all(is_at);
        let are_replaced = self.places.lost_ids.borrow().iter().all(|lost| members.get(*lost).is_none());
        are_all_agreed && are_replaced && members.list().iter().all(|member| member.state.has_rows())
    }
}
