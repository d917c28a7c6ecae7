//! One thread of a run: its connections, what it begins on them, what comes back.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::BytesMut;
use mio::{Events, Poll, Token};
use protocol::{Frame, Response, ResponseEnvelope};

use super::link::{Link, UnderWay};
use super::pacer::Pacer;
use super::recorder::{End, Found, Recorder, Times, Window};
use super::shared::Shared;
use super::timer::Timer;
use crate::error::LabError;
use crate::latencies::Latencies;
use crate::process::thread_waited_s;
use crate::topology::Nodes;
use crate::workload::{Answer, Operations, Request, Step};

/// How often a thread looks whether the run is over, and tells how it goes.
const LOOK_EVERY: Duration = Duration::from_millis(100);
const TIMER: Token = Token(usize::MAX);

/// What a thread needs besides its connections.
pub(super) struct Work {
    pub(super) operations: Box<dyn Operations>,
    /// Which node has which rows.
    pub(super) nodes: Arc<Nodes>,
    pub(super) pacer: Pacer,
    pub(super) window: Window,
    /// How long operations that belong to the measurement may take after its end.
    pub(super) patience: Duration,
    pub(super) started: Instant,
    pub(super) shared: Arc<Shared>,
}

/// A thread.
pub(super) struct Worker {
    poll: Poll,
    timer: Timer,
    /// When the timer will wake.
    armed_us: u64,
    links: Vec<Link>,
    /// The link that is asked next.
    next_link: usize,
    work: Work,
    /// The operations said that there are no more.
    is_done: bool,
    recorder: Recorder,
    values: BytesMut,
    recent: Latencies,
    recent_bad_count: u64,
    told_us: u64,
    /// Seconds that it has waited for a core, at both ends of the measurement.
    waited_before: Option<f64>,
    waited_after: Option<f64>,
}

impl Worker {
    /// With its connections, and a recorder that has recorded nothing.
    pub(super) fn new(mut links: Vec<Link>, work: Work, recorder: Recorder) -> io::Result<Worker> {
        let poll = Poll::new()?;
        let timer = Timer::new(poll.registry(), TIMER)?;
        for (index, link) in links.iter_mut().enumerate() {
            link.register(poll.registry(), Token(index))?;
        }
        Ok(Worker {
            poll,
            timer,
            armed_us: 0,
            links,
            next_link: 0,
            work,
            is_done: false,
            recorder,
            values: BytesMut::new(),
            recent: Latencies::new(),
            recent_bad_count: 0,
            told_us: 0,
            waited_before: None,
            waited_after: None,
        })
    }

    /// Works until the time is over and all that belongs to it has an end, or nobody waits for it any more.
    ///
    /// # Errors
    /// All connections broke, or a server's bytes make no sense.
    pub(super) fn run(mut self) -> Result<Found, LabError> {
        let mut events = Events::with_capacity(1024);
        loop {
            let now_us = self.now_us();
            self.begin_due(now_us);
            self.note_waiting(now_us);
            self.tell(now_us);
            if self.is_over(now_us) {
                break;
            }
            self.set_timer()?;
            match self.poll.poll(&mut events, Some(LOOK_EVERY)) {
                Err(error) if error.kind() != io::ErrorKind::Interrupted => return Err(error.into()),
                _ => {}
            }
            for event in &events {
                let is_closed = event.is_read_closed() || event.is_error();
                if event.token() != TIMER && (event.is_readable() || is_closed) {
                    self.receive(event.token().0, is_closed)?;
                }
            }
            self.bury_broken()?;
        }
        self.tell(u64::MAX);
        Ok(self.counted())
    }

    /// Notes how long this thread has waited for a core up to both ends of the measurement.
    fn note_waiting(&mut self, now_us: u64) {
        let window = self.work.window;
        if self.waited_before.is_none() && now_us >= window.from_us {
            self.waited_before = Some(thread_waited_s());
        }
        if self.waited_after.is_none() && now_us >= window.until_us {
            self.waited_after = Some(thread_waited_s());
        }
    }

    fn now_us(&self) -> u64 {
        self.work.started.elapsed().as_micros() as u64
    }

    /// Begins what is due, as long as there are streams.
    fn begin_due(&mut self, now_us: u64) {
        while !self.is_done
            && let Some(intended_us) = self.work.pacer.due(now_us)
            && intended_us < self.work.window.until_us
        {
            if self.links.iter().all(|link| link.free_stream().is_none()) {
                break;
            }
            let mut request = Request::new(&mut self.values);
            let Some(operation) = self.work.operations.begin(&mut request) else {
                self.is_done = true;
                break;
            };
            let (index, stream) = next_stream(&self.links, &mut self.next_link, &self.work.nodes, &request);
            let under_way = UnderWay { operation, intended_us, begun_us: now_us };
            self.links[index].begin(stream, under_way, &request);
            self.work.pacer.pass();
        }
        self.links.iter_mut().for_each(Link::send);
    }

    /// Wakes when the next operation is due, unless a stream must come free first.
    fn set_timer(&mut self) -> io::Result<()> {
        let Some(next_us) = self.work.pacer.next_us() else { return Ok(()) };
        // Later than at the beginning of this turn: what was begun since has taken time.
        let now_us = self.now_us();
        let is_waiting = next_us > now_us && next_us < self.work.window.until_us;
        if !is_waiting || next_us == self.armed_us {
            return Ok(());
        }
        self.armed_us = next_us;
        self.timer.set(Duration::from_micros(next_us - now_us))
    }

    fn is_over(&self, now_us: u64) -> bool {
        let is_idle = self.links.iter().all(Link::is_idle);
        let until_us = self.work.window.until_us;
        let is_late = now_us >= until_us.saturating_add(self.work.patience.as_micros() as u64);
        let is_all_begun = self.is_done || now_us >= until_us && self.work.pacer.overdue_count(until_us) == 0;
        self.work.shared.is_stopped() || is_late || is_all_begun && is_idle
    }

    /// Takes in what has come on a link.
    fn receive(&mut self, index: usize, is_closed: bool) -> Result<(), LabError> {
        let mut has_more = true;
        while has_more {
            has_more = self.links[index].receive(is_closed);
            let now_us = self.now_us();
            while let Some(frame) =
                self.links[index].next_frame().map_err(|reason| self.malformed(index, reason))?
            {
                self.take(index, &frame, now_us)?;
            }
        }
        Ok(())
    }

    fn malformed(&self, index: usize, reason: String) -> LabError {
        LabError::Malformed { node: self.links[index].node.address.clone(), reason }
    }

    /// One answer.
    fn take(&mut self, index: usize, frame: &Frame, now_us: u64) -> Result<(), LabError> {
        let stream = frame.header.stream;
        let Some(mut under_way) = self.links[index].under_way(stream) else {
            return Err(self.malformed(index, format!("it answers on stream {stream}, which asked nothing")));
        };
        let envelope = ResponseEnvelope::decode(frame);
        let envelope = envelope.map_err(|error| self.malformed(index, error.to_string()))?;
        let mut request = Request::new(&mut self.values);
        let operations = &mut self.work.operations;
        let step = match &envelope.response {
            Response::Error(error) => {
                operations.fail(&under_way.operation);
                Err(error.message.clone())
            }
            Response::Rows(rows) => {
                Ok(operations.take(&mut under_way.operation, Answer::Rows(rows), &mut request))
            }
            _ => Ok(operations.take(&mut under_way.operation, Answer::Done, &mut request)),
        };
        let end = match step {
            Ok(Step::GoOn) => {
                under_way.operation.answered_count += 1;
                self.links[index].go_on(stream, under_way.operation, &request);
                return Ok(());
            }
            Ok(Step::Done) => End::Good,
            Ok(Step::Wrong(why)) => End::Wrong(why),
            Err(message) => End::Error(message),
        };
        self.links[index].end(stream);
        self.record(under_way, now_us, end);
        Ok(())
    }

    fn record(&mut self, under_way: UnderWay, ended_us: u64, end: End) {
        let times = Times { intended_us: under_way.intended_us, begun_us: under_way.begun_us, ended_us };
        match end {
            End::Good => self.recent.record(ended_us - under_way.intended_us),
            _ => self.recent_bad_count += 1,
        }
        self.recorder.record(under_way.operation.kind, times, end);
    }

    /// Links that broke are left out from now on, and what was under way on them has failed.
    fn bury_broken(&mut self) -> Result<(), LabError> {
        let now_us = self.now_us();
        for index in 0..self.links.len() {
            let Some(error) = self.links[index].bury() else { continue };
            let node = self.links[index].node.address.clone();
            let message = format!("the connection to {node} broke: {error}");
            for under_way in self.links[index].take_all() {
                self.work.operations.fail(&under_way.operation);
                self.record(under_way, now_us, End::Error(message.clone()));
            }
            if self.links.iter().all(Link::is_buried) {
                return Err(LabError::Broken { node, source: error });
            }
        }
        Ok(())
    }

    /// Tells how it goes, now and then.
    fn tell(&mut self, now_us: u64) {
        if now_us >= self.told_us.saturating_add(LOOK_EVERY.as_micros() as u64) {
            self.work.shared.tell(&mut self.recent, std::mem::take(&mut self.recent_bad_count));
            self.told_us = now_us;
        }
    }

    /// What it has found, with what was due until now and has no end.
    fn counted(mut self) -> Found {
        let (now_us, window) = (self.now_us(), self.work.window);
        let under_way = self.links.iter_mut().flat_map(Link::take_all);
        let begun = under_way.filter(|under_way| window.has(under_way.intended_us)).count() as u64;
        let due_us = window.until_us.min(now_us);
        let unbegun = if self.is_done { 0 } else { self.work.pacer.overdue_count(due_us) };
        self.recorder.note_endless(begun + unbegun);
        let waited_before = self.waited_before.unwrap_or_else(thread_waited_s);
        self.recorder.note_waited(self.waited_after.unwrap_or_else(thread_waited_s) - waited_before);
        self.recorder.finish()
    }
}

/// A free stream, of which there is one: to a node that has the row, if such a node has one, links taking turns.
fn next_stream(links: &[Link], next_link: &mut usize, nodes: &Nodes, request: &Request<'_>) -> (usize, i16) {
    let turns = || (0..links.len()).map(|turn| (*next_link + turn) % links.len());
    let free = |index: usize| Some((index, links[index].free_stream()?));
    let is_replica = |index: &usize| {
        let token = request.token();
        token.is_some_and(|token| nodes.is_replica(links[*index].node.index, token))
    };
    let found = turns().filter(is_replica).find_map(free).or_else(|| turns().find_map(free));
    let (index, stream) = found.expect("whoever begins an operation has seen a free stream");
    *next_link = (index + 1) % links.len();
    (index, stream)
}
