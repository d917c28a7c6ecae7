//! Rivals: clients that count together, by changes with a condition and in counters ([`crate::score`]).

use std::cell::RefCell;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;

use protocol::{Consistency, ErrorKind, Execute, Query, QueryParameters, Request, Response, Version};

use super::client::{Client, Ended};
use super::connection::{Connection, parameters};
use super::statement::{packed, spelled};
use super::{World, clients_address};
use crate::scenario::Violation;
use crate::score::{Asked, Kind, Score};

/// Requests that a rival has under way together.
const TOGETHER_MAX: u64 = 4;

/// A rival for a while.
pub(crate) struct Rival {
    pub(crate) client: Client,
    pub(crate) score: Rc<RefCell<Score>>,
}

impl Rival {
    /// Some bursts of work on connections that may break.
    pub(crate) async fn work(&self, burst_count: u64) -> Result<(), Violation> {
        let network = self.world().network.host(clients_address(self.client.node));
        for _ in 0..burst_count {
            let version = *self.client.dice.pick(&[Version::V4, Version::V5]);
            let bursts = async {
                let address: SocketAddr = self.client.address;
                let prepared = Rc::clone(&self.client.prepared);
                let mut connection = Connection::open(&network, address, version, prepared).await?;
                for _ in 0..self.client.dice.between(1, 4) {
                    self.burst(&mut connection).await?;
                }
                Ok(())
            };
            match self.client.in_time(bursts).await {
                Ok(()) => {}
                Err(Ended::Violation(violation)) => return Err(violation),
                Err(Ended::Broken(error)) => {
                    self.client.note(format_args!("broken: {error}"));
                    if !self.world().hosts.is_alive(self.client.node) {
                        return Ok(());
                    }
                }
            }
        }
        Ok(())
    }

    async fn burst(&self, connection: &mut Connection) -> Result<(), Ended> {
        let dice = &self.client.dice;
        let count = dice.between(1, TOGETHER_MAX + 1);
        let mut waiting = Vec::new();
        for stream in 0..count as i16 {
            let asked = self.score.borrow_mut().roll(dice);
            let request = self.request(connection, &asked).await?;
            connection.put(stream, request);
            waiting.push(asked);
        }
        connection.send(usize::MAX).await?;
        self.client.fuse.burn_for_client();
        for _ in 0..count {
            let (stream, response) = connection.receive().await?;
            let Some(asked) = waiting.get(stream as usize) else {
                return Err(self.wrong(format!("an answer on stream {stream}, where nothing was asked")));
            };
            self.take(connection, asked, response)?;
        }
        Ok(())
    }

    async fn request(&self, connection: &mut Connection, asked: &Asked) -> Result<Request, Ended> {
        let (text, values) = asked.statement("s");
        let is_serial = asked.kind() == Kind::Shown;
        let consistency = if is_serial { Consistency::Serial } else { Consistency::One };
        let plain = QueryParameters { consistency, ..parameters() };
        if self.client.dice.one_in(4) {
            return Ok(Request::Query(Query { query: spelled(&text, &values), parameters: plain }));
        }
        let id = connection.prepare(&text).await?;
        let parameters = QueryParameters { values: packed(&values), ..plain };
        Ok(Request::Execute(Execute { id, result_metadata_id: None, parameters }))
    }

    fn take(&self, connection: &Connection, asked: &Asked, response: Response) -> Result<(), Ended> {
        let alive = || self.world().hosts.is_alive(self.client.node);
        match response {
            Response::Error(error) => match error.kind {
                ErrorKind::Unprepared { .. } => {
                    connection.forget_prepared();
                    Ok(())
                }
                ErrorKind::Overloaded | ErrorKind::IsBootstrapping => {
                    self.score.borrow_mut().take_undone(asked);
                    Ok(())
                }
                ErrorKind::ReadFailure { .. }
                | ErrorKind::WriteTimeout { .. }
                | ErrorKind::CasWriteUnknown { .. }
                    if self.client.reads_may_fail =>
                {
                    Ok(())
                }
                _ if !alive() => Err(Ended::Broken(io::ErrorKind::ConnectionAborted.into())),
                kind => Err(self.wrong(format!("{asked:?} fails: {kind:?} {}", error.message))),
            },
            answer => {
                let taken = self.score.borrow_mut().take(asked, &answer, true);
                let way = taken.map_err(|what| self.wrong(format!("{asked:?}: {what}")))?;
                self.world().ways.add(way, 1);
                Ok(())
            }
        }
    }

    fn world(&self) -> &World {
        &self.client.world
    }

    fn wrong(&self, what: String) -> Ended {
        let (number, node) = (self.client.number, self.client.node);
        Ended::Violation(Violation::new(format!("rival {number} of node {node}: {what}")))
    }
}
