//! Faults of nodes that know each other: links cut one way and both, connections reset, nodes killed, without power at
//! once or at some change of their disk, all of them together, stopped for a while, started again; and at last none of
//! that.

use std::time::Duration;

use runtime::MemoryNetwork;
use tokio::time::sleep;

use crate::dice::Dice;
use crate::faults::Fault;
use crate::peers::identity::address;
use crate::served::Hosts;

/// After so long without faults all must talk: the longest pause of a connection, and the time to make one.
const RECOVERY: Duration = Duration::from_secs(20);

/// Who makes faults, of which nodes.
pub(crate) struct Turmoil<'a> {
    pub(crate) dice: &'a Dice,
    pub(crate) hosts: &'a Hosts,
    pub(crate) network: &'a MemoryNetwork,
    acts: Acts<'a>,
    incarnations: Vec<u64>,
}

/// What the run does about faults.
#[derive(Clone, Copy)]
pub(crate) struct Acts<'a> {
    /// Adds a line to its log.
    pub(crate) note: &'a dyn Fn(std::fmt::Arguments<'_>),
    /// Starts a node, whose incarnation it is.
    pub(crate) start: &'a dyn Fn(usize, u64),
    /// A node is about to be killed.
    pub(crate) dies: &'a dyn Fn(usize),
    /// Counts a fault.
    pub(crate) count: &'a dyn Fn(Fault),
}

impl<'a> Turmoil<'a> {
    /// Starts so many nodes.
    pub(crate) fn begin(
        node_count: usize,
        dice: &'a Dice,
        (hosts, network): (&'a Hosts, &'a MemoryNetwork),
        acts: Acts<'a>,
    ) -> Self {
        let incarnations = vec![0; node_count];
        let mut turmoil = Turmoil { dice, hosts, network, acts, incarnations };
        (0..node_count).for_each(|node| turmoil.start(node));
        turmoil
    }

    /// Makes so many faults, one after the other.
    pub(crate) async fn rage(&mut self, fault_count: u64) {
        for _ in 0..fault_count {
            sleep(Duration::from_millis(self.dice.between(1, 2_000))).await;
            let node_count = self.incarnations.len();
            let (one, other) = (self.dice.below(node_count), self.dice.below(node_count));
            match self.dice.below(18) {
                0 | 1 => {
                    (self.acts.count)(Fault::Cut);
                    self.note(format_args!("cut from {one} to {other}"));
                    self.network.cut(address(one), address(other));
                }
                2 => self.isolate(one),
                3..=5 => {
                    self.note(format_args!("heal from {one} to {other}"));
                    self.network.heal(address(one), address(other));
                }
                6 => {
                    (self.acts.count)(Fault::Reset);
                    self.note(format_args!("reset between {one} and {other}"));
                    self.network.reset(address(one), address(other));
                }
                7 | 8 => self.kill(one).await,
                9 => self.cut_power_soon(one),
                11 => self.fail_slowly(one).await,
                14 => self.pause(one),
                15 => (0..node_count).for_each(|node| self.go_on(node)),
                10 if self.dice.one_in(6) => {
                    for node in 0..node_count {
                        self.kill(node).await;
                    }
                }
                _ => {
                    let dead = (0..node_count).find(|node| !self.hosts.is_alive(*node));
                    dead.into_iter().for_each(|node| self.start(node));
                }
            }
        }
    }

    /// Ends all faults, and waits until nothing of them ought to be felt.
    pub(crate) async fn settle(&mut self) {
        self.calm();
        sleep(RECOVERY).await;
    }

    /// Kills a node, which stays away, ends all other faults, and waits until nothing of these ought to be felt.
    pub(crate) async fn settle_without(&mut self, away: usize) {
        self.kill(away).await;
        self.calm_all_but(Some(away));
        sleep(RECOVERY).await;
    }

    /// Ends all faults.
    pub(crate) fn calm(&mut self) {
        self.calm_all_but(None);
    }

    fn calm_all_but(&mut self, away: Option<usize>) {
        self.note(format_args!("calm, without {away:?}"));
        let node_count = self.incarnations.len();
        for one in 0..node_count {
            self.go_on(one);
            (0..node_count).for_each(|other| self.network.heal(address(one), address(other)));
            match self.hosts.is_alive(one) {
                true => self.hosts.disk(one).faults().clear(),
                false if away == Some(one) => {}
                false => self.start(one),
            }
        }
    }

    fn note(&self, line: std::fmt::Arguments<'_>) {
        (self.acts.note)(line);
    }

    /// Stops a process for a while: nothing of it is gone, and it does nothing.
    fn pause(&self, node: usize) {
        if self.hosts.is_alive(node) && !self.hosts.is_paused(node) {
            (self.acts.count)(Fault::Pause);
            self.note(format_args!("node {node} stands still"));
            self.hosts.pause(node);
        }
    }

    fn go_on(&self, node: usize) {
        if self.hosts.is_paused(node) {
            self.note(format_args!("node {node} goes on"));
            self.hosts.go_on(node);
        }
    }

    fn start(&mut self, node: usize) {
        let disk = self.hosts.disk(node);
        if disk.faults().is_off() {
            self.note(format_args!("node {node} has lost its power"));
            (self.acts.dies)(node);
            self.hosts.put_disk(node, disk.crash(self.dice.between(0, u64::MAX - 1)));
        }
        self.incarnations[node] += 1;
        self.note(format_args!("node {node} starts, {}", self.incarnations[node]));
        (self.acts.start)(node, self.incarnations[node]);
    }

    /// Cuts a node off from all others: both ways, or one.
    fn isolate(&self, node: usize) {
        (self.acts.count)(Fault::Isolation);
        let (hears, is_heard) = *self.dice.pick(&[(false, false), (false, true), (true, false)]);
        self.note(format_args!("node {node} hears others: {hears}, is heard: {is_heard}"));
        for other in (0..self.incarnations.len()).filter(|other| *other != node) {
            if !hears {
                self.network.cut(address(other), address(node));
            }
            if !is_heard {
                self.network.cut(address(node), address(other));
            }
        }
    }

    /// A node no longer reaches some of the others, and is killed a moment later.
    async fn fail_slowly(&self, node: usize) {
        (self.acts.count)(Fault::Cut);
        let others = (0..self.incarnations.len()).filter(|other| *other != node);
        for other in others.filter(|_| self.dice.one_in(2)) {
            self.note(format_args!("cut from {node} to {other}"));
            self.network.cut(address(node), address(other));
        }
        sleep(Duration::from_millis(self.dice.between(1, 1_000))).await;
        self.kill(node).await;
    }

    /// Has a node lose its power at one of the next changes of its disk.
    fn cut_power_soon(&self, node: usize) {
        if self.hosts.is_alive(node) {
            (self.acts.count)(Fault::PowerCut);
            let change_count = self.dice.between(1, 60);
            self.note(format_args!("node {node} loses power after {change_count} changes"));
            self.hosts.disk(node).faults().power_off_after(change_count);
        }
    }

    /// Kills a process, or takes its power: then its disk forgets what was not synced.
    async fn kill(&self, node: usize) {
        if !self.hosts.is_alive(node) {
            return;
        }
        let loses_power = self.dice.one_in(2);
        (self.acts.count)(if loses_power { Fault::PowerCut } else { Fault::Kill });
        self.note(format_args!("node {node} {}", if loses_power { "loses power" } else { "is killed" }));
        (self.acts.dies)(node);
        self.hosts.kill(node).await;
        let disk = self.hosts.disk(node);
        let left = if loses_power { disk.crash(self.dice.between(0, u64::MAX - 1)) } else { disk.kill() };
        self.hosts.put_disk(node, left);
    }
}
