//! How clients reach the nodes: a connection to any that serves, kept while it is good.

use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::rc::Rc;
use std::time::Duration;

use protocol::{Consistency, Query, QueryParameters, Request, Response, Text, Version};
use tokio::time::timeout;

use super::World;
use crate::dice::Dice;
use crate::served::{Connection, PreparedIds};
use crate::ways::Way;

/// No answer is waited for longer: a link may be cut. All time-outs of nodes are over by then.
pub(crate) const PATIENCE: Duration = Duration::from_secs(15);

/// A client on its way to nodes.
pub(crate) struct Visitor {
    pub(crate) world: Rc<World>,
    pub(crate) dice: Dice,
    /// Where it comes from.
    pub(crate) address: IpAddr,
    /// What it has prepared on each node.
    prepared: Vec<PreparedIds>,
    /// What it was connected to last.
    open: Option<(usize, Connection)>,
}

impl Visitor {
    pub(crate) fn new(world: &Rc<World>, number: u8) -> Visitor {
        Visitor {
            world: Rc::clone(world),
            dice: Dice::new(world.stage.seed, 0, 8_200 + u64::from(number)),
            address: IpAddr::V4(Ipv4Addr::new(127, 0, 1, number + 1)),
            prepared: world.plan.nodes.iter().map(|_| PreparedIds::default()).collect(),
            open: None,
        }
    }

    /// The connection it has, or one to some node that serves: of the first data centre, where rivals agree there.
    pub(crate) async fn enter(&mut self) -> io::Result<(usize, Connection)> {
        match self.open.take() {
            Some(open) => Ok(open),
            None => {
                let mut serving = self.world.serving();
                let plan = &self.world.plan;
                serving.retain(|node| !plan.cast.is_local || plan.center_of(*node) == 0);
                if serving.is_empty() {
                    return Err(io::ErrorKind::NotConnected.into());
                }
                let node = *self.dice.pick(&serving);
                Ok((node, self.connect(node).await?))
            }
        }
    }

    /// Keeps a connection for the next time.
    pub(crate) fn keep(&mut self, node: usize, connection: Connection) {
        self.open = Some((node, connection));
    }

    async fn connect(&self, node: usize) -> io::Result<Connection> {
        let (network, version) =
            (self.world.stage.network.host(self.address), *self.dice.pick(&[Version::V4, Version::V5]));
        let prepared = Rc::clone(&self.prepared[node]);
        Connection::open(&network, self.world.places.cql(node), version, prepared).await
    }

    /// Asks one node, on a connection of its own.
    ///
    /// # Errors
    /// There is no answer.
    pub(crate) async fn ask(&self, node: usize, text: &str, level: Consistency) -> io::Result<Response> {
        self.ask_with(node, text, QueryParameters::at(level)).await
    }

    pub(crate) async fn ask_with(
        &self,
        node: usize,
        text: &str,
        parameters: QueryParameters,
    ) -> io::Result<Response> {
        let asking = async {
            let request = Request::Query(Query { query: Text::from(text), parameters });
            self.connect(node).await?.call(request).await
        };
        let answered = timeout(PATIENCE, asking).await.unwrap_or(Err(io::ErrorKind::TimedOut.into()));
        if answered.is_err() {
            self.world.ways.add(Way::BrokenConnection, 1);
        }
        answered
    }
}
