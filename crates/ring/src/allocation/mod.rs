//! Which tokens a node gets: at the founding of a ring, when a node joins, when one leaves.
//!
//! **What is wanted.** Nodes of a rack hold the same, or as much as their `num_tokens` say, when a keyspace has
//! `factor` replicas in each data centre; a change moves hardly more than it must; tokens stay about
//! `num_tokens` for each node. And all nodes come to the same answer, so equal inputs give equal outputs.
//!
//! **What is used.** Take the order of the owners along the ring as given, and only shift tokens between
//! their neighbours. Then every vnode keeps its replicas, and only lengths change: shifting the token of
//! node *g* by a slot makes *g* a replica of that slot in place of one other node, *l*.
//!
//! ```text
//!    before:  ─── g ──────────── x ──── y ──── l ──      replicas behind g, of three:  x y l
//!    after:   ───────── g ────── x ──── y ──── l ──      replicas of what g passed:    g x y
//! ```
//!
//! So each token is a valve between two nodes, whatever the strategy, the factor and the racks: what
//! *g* and *l* are, the walk itself says. To balance a ring is to open valves between those who have too much
//! and those who have too little, a slot at a time (`settle`). A step costs a slot of data to be moved only if *g*
//! did not hold that slot before and *l* did: steps that move nothing are taken whenever they help, others only
//! against a difference worth it, and only up to a part of what the change moves anyway (`moves`): a fifth for a
//! join; of several parts, the first with which it is even enough, for a leave.
//!
//! What is left is a good order to begin with:
//!
//! - *Founding* (`spread`): tokens of each rack at equal distances, the nodes in turn, in four different
//!   orders for the four quarters of the ring: with one, a node would share replicas with four others only,
//!   and they alone would carry its load when it is down; with sixteen, with nearly all, and then any
//!   loss of as many nodes as there are replicas loses data.
//! - *Joining* (`admit`): one token after the other goes where it evens out most. Old nodes can only lose by that,
//!   so nothing moves but to the newcomer. It takes over whole tokens of nodes that have too many.
//! - *Leaving* (`hand_over`): the tokens go, which gives their ranges to the next nodes. Where that is uneven, the
//!   token stays and goes to a node that has too little. One token in place of one gives nobody but what the leaver
//!   had; more of them are paid from the same budget.
//!
//! Where there are as many racks as replicas, each rack holds everything once, and its tokens alone
//! decide who has what: each rack is balanced for itself. Data centres always are.
//!
//! **What was refused.** Cassandra's allocator only adds tokens, one at a time, and lets those of a leaver go: nothing
//! evens out what a leave has done. Random tokens need hundreds for each node.
//! Tables of slot by slot assignments (consistent hashing with bounded loads, Scylla's tablets) balance
//! perfectly, but drivers would not find replicas by tokens. Decision 0028 has the figures.

mod admit;
mod draft;
mod effect;
mod hand_over;
mod moves;
mod settle;
mod shares;
mod spread;

use std::collections::BTreeSet;

use uuid::Uuid;

use crate::{Grid, Node, RingError, Topology};
use draft::{Draft, Nodes};
use moves::{Before, Budget};

/// How many slots there are at least for each token, until the grid is the finest: so that tokens can be shifted.
const SLOTS_PER_TOKEN: usize = 2;

/// A node that shall get tokens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Newcomer {
    /// Who it is.
    pub host_id: Uuid,
    /// Where it stands.
    pub data_center: String,
    /// Where in the data centre.
    pub rack: String,
    /// How many tokens it gets: its weight beside the others.
    pub num_tokens: u16,
}

impl Newcomer {
    /// `num_tokens` where nobody says otherwise, as in Cassandra.
    pub const NUM_TOKENS: u16 = 16;
}

/// The replicas in each data centre for which tokens are chosen where nobody says otherwise; Cassandra's
/// `allocate_tokens_for_local_replication_factor`.
pub const FACTOR: u32 = 3;

/// A ring of nodes that are founded together, balanced for `factor` replicas in each data centre, or for one when it
/// is 0.
///
/// # Errors
/// [`RingError`] when there is no node, a node twice or without tokens, or more tokens than have room.
pub fn found(newcomers: &[Newcomer], factor: u32) -> Result<Topology, RingError> {
    let factor = factor.max(1);
    let nodes = newcomers.iter().map(Newcomer::node).collect();
    let mut site = Site::new(Grid::COARSEST, nodes)?;
    for data_center in site.data_centers() {
        let mut center = site.center(&data_center, factor);
        for draft in &mut center.drafts {
            draft.spread(&mut site.occupied);
            draft.settle(&mut site.occupied, &Before::nothing(), &mut Budget::unlimited());
        }
        site.keep(center);
    }
    site.finish()
}

/// The ring with one more node, for which others give up part of theirs.
///
/// # Errors
/// [`RingError`] when the node is there already, wants no tokens, or more than have room.
pub fn join(topology: &Topology, newcomer: &Newcomer, factor: u32) -> Result<Topology, RingError> {
    let factor = factor.max(1);
    let mut nodes = topology.nodes().to_vec();
    nodes.push(newcomer.node());
    let mut site = Site::new(topology.grid(), nodes)?;
    let mut center = site.center(&newcomer.data_center, factor);
    let before = Before::of(topology, &newcomer.data_center, &center.nodes, site.grid, factor);
    let mut budget = Budget::unlimited();
    for draft in &mut center.drafts {
        if let Some(share) = draft.admit(&mut site.occupied) {
            budget = Budget::of_join(share);
        }
    }
    for draft in &mut center.drafts {
        draft.settle(&mut site.occupied, &before, &mut budget);
    }
    site.keep(center);
    site.finish()
}

/// The ring without a node, whose part goes to others.
///
/// # Errors
/// [`RingError`] when the node is not there, or is the last one.
pub fn leave(topology: &Topology, host_id: Uuid, factor: u32) -> Result<Topology, RingError> {
    let factor = factor.max(1);
    let index = topology.index_of(host_id).ok_or(RingError::UnknownNode { host_id })?;
    let mut nodes = topology.nodes().to_vec();
    let leaver = nodes.remove(index.as_usize());
    let mut site = Site::new(topology.grid(), nodes)?;
    let center = site.center(&leaver.data_center, factor);
    let before = Before::of(topology, &leaver.data_center, &center.nodes, site.grid, factor);
    let occupied = site.occupied.clone();
    let mut drafts = Vec::new();
    for mut budget in Budget::of_leave(before.gone_slot_count()) {
        site.occupied = occupied.clone();
        drafts = site.handed_over(&center.drafts, &leaver, &before, &mut budget);
        if drafts.iter().all(Draft::is_even) {
            break;
        }
    }
    site.keep(Center { drafts, ..center });
    site.finish()
}

impl Newcomer {
    fn node(&self) -> Node {
        Node {
            host_id: self.host_id,
            data_center: self.data_center.clone(),
            rack: self.rack.clone(),
            num_tokens: self.num_tokens,
            tokens: Vec::new(),
        }
    }
}

/// All nodes while tokens are chosen for some of them.
struct Site {
    grid: Grid,
    /// In the order of their host ids.
    nodes: Vec<Node>,
    /// The slots that end with a token of any node.
    occupied: Occupied,
}

/// Which slots end with a token, by their numbers.
#[derive(Clone)]
struct Occupied(Vec<bool>);

impl Occupied {
    fn has(&self, slot: usize) -> bool {
        self.0[slot]
    }

    fn set(&mut self, slot: usize, is_occupied: bool) {
        self.0[slot] = is_occupied;
    }
}

/// One data centre of a [`Site`]. Its nodes have indexes of their own, in the same order.
struct Center {
    /// Where the nodes are in the site.
    places: Vec<usize>,
    /// Who they are.
    nodes: Vec<Uuid>,
    /// The parts that are balanced each for itself.
    drafts: Vec<Draft>,
}

impl Site {
    fn new(grid: Grid, mut nodes: Vec<Node>) -> Result<Self, RingError> {
        nodes.sort_by_key(|node| node.host_id);
        if let Some(pair) = nodes.windows(2).find(|pair| pair[0].host_id == pair[1].host_id) {
            return Err(RingError::NodeTwice { host_id: pair[0].host_id });
        }
        if let Some(node) = nodes.iter().find(|node| node.num_tokens == 0) {
            return Err(RingError::NoTokens { host_id: node.host_id });
        }
        let grid = grid.max(grid_for(&nodes)?);
        let mut occupied = Occupied(vec![false; grid.slot_count()]);
        for token in nodes.iter().flat_map(|node| &node.tokens) {
            occupied.set(grid.slot_of(*token), true);
        }
        Ok(Site { grid, nodes, occupied })
    }

    fn data_centers(&self) -> BTreeSet<String> {
        self.nodes.iter().map(|node| node.data_center.clone()).collect()
    }

    /// A data centre with its drafts: one for each rack when there are as many as replicas, else one.
    fn center(&self, name: &str, factor: u32) -> Center {
        let centers = self.data_centers();
        let in_center = |place: &usize| self.nodes[*place].data_center == name;
        let places: Vec<usize> = (0..self.nodes.len()).filter(in_center).collect();
        let center = Nodes {
            grid: self.grid,
            nth: centers.iter().take_while(|&other| other.as_str() < name).count(),
            center_count: centers.len(),
            nodes: places.iter().map(|&place| &self.nodes[place]).collect(),
        };
        let racks = center.racks();
        let drafts = match racks.len() == factor as usize {
            true => racks.iter().map(|rack| Draft::of_rack(&center, rack)).collect(),
            false => vec![Draft::of_center(&center, factor)],
        };
        Center { nodes: center.nodes.iter().map(|node| node.host_id).collect(), places, drafts }
    }

    /// Drafts in which others have what a leaver had.
    fn handed_over(
        &mut self,
        drafts: &[Draft],
        leaver: &Node,
        before: &Before,
        budget: &mut Budget,
    ) -> Vec<Draft> {
        let mut drafts = drafts.to_vec();
        for draft in drafts.iter_mut().filter(|draft| draft.is_of_rack(&leaver.rack)) {
            let slots = leaver.tokens.iter().map(|&token| self.grid.slot_of(token));
            draft.hand_over(slots, &mut self.occupied, before, budget);
        }
        for draft in &mut drafts {
            draft.settle(&mut self.occupied, before, budget);
        }
        drafts
    }

    /// Gives the nodes of a data centre the tokens that its drafts have for them.
    fn keep(&mut self, center: Center) {
        for &place in &center.places {
            self.nodes[place].tokens.clear();
        }
        for (slot, owner) in center.drafts.iter().flat_map(Draft::tokens) {
            let place = center.places[owner.as_usize()];
            self.nodes[place].tokens.push(self.grid.last_token(slot));
        }
    }

    fn finish(self) -> Result<Topology, RingError> {
        Topology::new(self.grid, self.nodes)
    }
}

/// The coarsest grid that leaves room around so many tokens.
fn grid_for(nodes: &[Node]) -> Result<Grid, RingError> {
    let token_count: usize = nodes.iter().map(|node| usize::from(node.num_tokens)).sum();
    let slot_bits = (token_count * SLOTS_PER_TOKEN).next_power_of_two().ilog2() as u8;
    let grid = Grid::new(slot_bits.clamp(Grid::SLOT_BITS_MIN, Grid::SLOT_BITS_MAX))?;
    // Nodes may come to have half as many tokens more.
    match token_count * 2 <= grid.slot_count() {
        true => Ok(grid),
        false => Err(RingError::TooManyTokens { token_count, slot_count: grid.slot_count() / 2 }),
    }
}
