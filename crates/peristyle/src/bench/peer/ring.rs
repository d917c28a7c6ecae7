//! The servers of a peer: which run, what is done to them, and their end.

use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use lab::{Act, Hand};
use rustix::process::Signal;

use super::PeerWish;
use super::error::PeerError;
use super::keeper::{Keeper, Server};
use super::place::Place;
use super::ports::Ports;
use crate::cluster::{ProcessId, ProcessState};
use crate::cqlsh::with_causes;

/// How long the kernel may take to end a process.
const KILL_MAX: Duration = Duration::from_secs(10);
const POLL: Duration = Duration::from_millis(5);

/// Servers, by whom they are kept and where.
#[derive(Debug)]
pub(super) struct Ring {
    keeper: Box<dyn Keeper>,
    place: Place,
    ports: Ports,
    /// Locked while something is done to them: one thing at a time.
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// In the order of their numbers, which begin with 1.
    servers: Vec<Server>,
    /// Nothing runs any more, and nothing can be done.
    is_ended: bool,
}

impl Ring {
    pub(super) fn new(keeper: Box<dyn Keeper>, place: Place, ports: Ports) -> Ring {
        Ring { keeper, place, ports, state: Mutex::default() }
    }

    /// Starts all of them. Whatever comes of it, there is an end to be made.
    pub(super) fn up(&self, wanted: &PeerWish) -> Result<(), PeerError> {
        self.state().servers = self.keeper.up(&self.place, wanted, self.ports)?;
        Ok(())
    }

    pub(super) fn servers(&self) -> Vec<Server> {
        self.state().servers.clone()
    }

    /// Stops all of them, and deletes all that they wrote. What does not work is said, since nobody waits for it.
    pub(super) fn end(&self) {
        let mut state = self.state();
        if std::mem::replace(&mut state.is_ended, true) {
            return;
        }
        // At once: what one that stops in order would write is deleted anyway.
        for (number, server) in (1..).zip(&state.servers) {
            if let Err(error) = kill(number, server) {
                eprintln!("bench: process {}: {}", server.process.number, with_causes(&error));
            }
        }
        if let Err(error) = self.keeper.down(&self.place) {
            eprintln!("bench: stop servers: {}", with_causes(&error));
        }
        self.place.clear();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn carry_out(&self, act: Act) -> Result<(), PeerError> {
        let mut state = self.state();
        if state.is_ended {
            return Err(PeerError::Stopped);
        }
        match act {
            Act::Kill(number) => kill(number, state.running(number)?),
            Act::Start(number) => self.start(&mut state, number),
            Act::Pause(number) => hurt(number, state.running(number)?, ProcessId::pause),
            Act::Resume(number) => {
                hurt(number, state.running(number)?, |process| process.signal(Signal::CONT))
            }
            Act::Cut(number) => {
                state.running(number)?;
                self.keeper.cut(&self.place, number, &state.others(number))
            }
            Act::Heal => self.keeper.heal(&self.place),
        }
    }

    fn start(&self, state: &mut State, number: usize) -> Result<(), PeerError> {
        let before = state.server(number)?;
        if before.process.state() != ProcessState::Ended {
            return Err(PeerError::Running(number));
        }
        let before = before.address.clone();
        let server = self.keeper.start(&self.place, number)?;
        let now = server.address.clone();
        state.servers[number - 1] = server;
        // Clients look for it where it was.
        if now == before { Ok(()) } else { Err(PeerError::Moved { number, before, now }) }
    }
}

impl Hand for Ring {
    fn act(&self, act: Act) -> Result<(), String> {
        self.carry_out(act).map_err(|error| with_causes(&error))
    }

    fn process_ids(&self) -> Vec<u32> {
        self.servers().into_iter().map(|server| server.process.number).collect()
    }
}

impl State {
    fn server(&self, number: usize) -> Result<&Server, PeerError> {
        let server = number.checked_sub(1).and_then(|index| self.servers.get(index));
        server.ok_or(PeerError::NoNode { number, count: self.servers.len() })
    }

    /// One that has not ended; it may be paused.
    fn running(&self, number: usize) -> Result<&Server, PeerError> {
        let server = self.server(number)?;
        match server.process.state() {
            ProcessState::Ended => Err(PeerError::NotRunning(number)),
            ProcessState::Running | ProcessState::Paused => Ok(server),
        }
    }

    /// Numbers of all that run but one.
    fn others(&self, number: usize) -> Vec<usize> {
        let servers = (1..).zip(&self.servers).filter(|(other, _)| *other != number);
        let running = servers.filter(|(_, server)| server.process.state() == ProcessState::Running);
        running.map(|(other, _)| other).collect()
    }
}

fn hurt(
    number: usize,
    server: &Server,
    how: impl FnOnce(&ProcessId) -> io::Result<()>,
) -> Result<(), PeerError> {
    how(&server.process).map_err(|source| PeerError::Signal { number, source })
}

/// Ends it at once, and waits until it has.
fn kill(number: usize, server: &Server) -> Result<(), PeerError> {
    hurt(number, server, |process| process.signal(Signal::KILL))?;
    let begun = Instant::now();
    while server.process.state() != ProcessState::Ended {
        if begun.elapsed() > KILL_MAX {
            return Err(PeerError::NotEnding { number });
        }
        std::thread::sleep(POLL);
    }
    Ok(())
}

#[cfg(test)]
mod tests;
