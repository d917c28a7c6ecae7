//! One thread of a run: its connections, what it begins on them, what comes back.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::BytesMut;
use mio::{Events, Poll, Token, Waker};
use protocol::{ErrorKind, Frame, Response, ResponseEnvelope};
use ring::NodeIndex;

use super::link::{Link, NothingAsked, UnderWay};
use super::mender::Mender;
use super::pacer::Pacer;
use super::recorder::{End, Found, Recorder, Times, Window};
use super::shared::Shared;
use super::timer::Timer;
use crate::error::LabError;
use crate::latencies::Latencies;
use crate::process::thread_waited_s;
use crate::target::Door;
use crate::topology::Nodes;
use crate::workload::{Answer, Operations, Request, Step};

/// How often a thread looks whether the run is over, and tells how it goes.
const LOOK_EVERY: Duration = Duration::from_millis(100);
const TIMER: Token = Token(usize::MAX);
const MENDED: Token = Token(usize::MAX - 1);
/// A row that is loaded is asked for so often, if a server is too busy or too slow for it.
const REPEAT_COUNT_MAX: u32 = 100;

/// What a thread needs besides its connections.
pub(super) struct Work {
    pub(super) operations: Box<dyn Operations>,
    /// Which node has which rows.
    pub(super) nodes: Arc<Nodes>,
    pub(super) pacer: Pacer,
    /// So many operations may be under way.
    pub(super) in_flight_max: usize,
    pub(super) window: Window,
    /// After that an operation without an answer has failed.
    pub(super) timeout: Duration,
    /// What a server is too busy for is asked again, and not measured: a load.
    pub(super) repeats: bool,
    /// Nodes are killed and come back: that no connection is left is no reason to end.
    pub(super) bears_all_broken: bool,
    /// Opens connections in the place of broken ones.
    pub(super) door: Arc<Door>,
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
    mender: Mender,
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
    /// At both ends of the measurement.
    before: Option<Edge>,
    after: Option<Edge>,
}

/// What a thread has used up to a moment.
#[derive(Clone, Copy, Debug)]
struct Edge {
    /// Seconds for which it was ready to run and had no core.
    waited_s: f64,
    /// Bytes of answers.
    received_bytes: u64,
}

impl Worker {
    /// With its connections, and a recorder that has recorded nothing.
    pub(super) fn new(mut links: Vec<Link>, work: Work, recorder: Recorder) -> io::Result<Worker> {
        let poll = Poll::new()?;
        let timer = Timer::new(poll.registry(), TIMER)?;
        let mender = Mender::new(work.door.clone(), Waker::new(poll.registry(), MENDED)?)?;
        let has_others = links.iter().any(|link| link.node.index != links[0].node.index);
        for (index, link) in links.iter_mut().enumerate() {
            link.register(poll.registry(), Token(index))?;
            if has_others || work.repeats {
                link.keep_requests();
            }
            if link.is_buried() {
                mender.ask(index, link);
            }
        }
        Ok(Worker {
            poll,
            timer,
            armed_us: 0,
            links,
            mender,
            next_link: 0,
            work,
            is_done: false,
            recorder,
            values: BytesMut::new(),
            recent: Latencies::new(),
            recent_bad_count: 0,
            told_us: 0,
            before: None,
            after: None,
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
            self.note_edges(now_us);
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
                let is_of_link = ![TIMER, MENDED].contains(&event.token());
                if is_of_link && (event.is_readable() || is_closed) {
                    self.receive(event.token().0, is_closed)?;
                }
            }
            self.bury_broken()?;
            self.take_mended()?;
        }
        self.tell(u64::MAX);
        Ok(self.counted())
    }

    /// Notes what was used up to both ends of the measurement.
    fn note_edges(&mut self, now_us: u64) {
        let window = self.work.window;
        if self.before.is_none() && now_us >= window.from_us {
            self.before = Some(self.edge());
        }
        if self.after.is_none() && now_us >= window.until_us {
            self.after = Some(self.edge());
        }
    }

    fn edge(&self) -> Edge {
        Edge {
            waited_s: thread_waited_s(),
            received_bytes: self.links.iter().map(Link::received_bytes).sum(),
        }
    }

    fn now_us(&self) -> u64 {
        self.work.started.elapsed().as_micros() as u64
    }

    /// Begins what is due, as long as there is room. What has waited for one too long has failed.
    fn begin_due(&mut self, now_us: u64) {
        while !self.is_done
            && let Some(intended_us) = self.work.pacer.due(now_us)
            && intended_us < self.work.window.until_us
        {
            let has_stream = self.has_room() && self.links.iter().any(|link| link.free_stream().is_some());
            let is_late = intended_us.saturating_add(self.timeout_us()) < now_us;
            if !has_stream && !is_late {
                break;
            }
            let mut request = Request::new(&mut self.values);
            let Some(operation) = self.work.operations.begin(&mut request) else {
                self.is_done = true;
                break;
            };
            let under_way = UnderWay { operation, intended_us, begun_us: now_us, repeat_count: 0 };
            self.work.pacer.pass();
            if has_stream {
                let turns = Turns { links: &self.links, nodes: &self.work.nodes, now_us };
                let (index, stream) = turns.next_stream(&mut self.next_link, &request);
                self.links[index].begin(stream, under_way, &request, now_us);
            } else {
                let seconds = self.work.timeout.as_secs_f64();
                self.fail(under_way, now_us, format!("no connection was free for {seconds} s"));
            }
        }
        self.links.iter_mut().for_each(Link::send);
    }

    /// May another operation be under way?
    fn has_room(&self) -> bool {
        self.links.iter().map(Link::busy_count).sum::<usize>() < self.work.in_flight_max
    }

    fn timeout_us(&self) -> u64 {
        self.work.timeout.as_micros() as u64
    }

    /// Gives up what has been under way for too long.
    fn forget_late(&mut self, now_us: u64) {
        let Some(before_us) = now_us.checked_sub(self.timeout_us()) else { return };
        for index in 0..self.links.len() {
            for under_way in self.links[index].forget(before_us) {
                let (node, seconds) = (&self.links[index].node.address, self.work.timeout.as_secs_f64());
                let message = format!("{node} did not answer for {seconds} s");
                self.fail(under_way, now_us, message);
            }
        }
    }

    /// An operation has failed without an answer.
    fn fail(&mut self, under_way: UnderWay, now_us: u64, message: String) {
        self.work.operations.fail(&under_way.operation);
        self.record(under_way, now_us, End::Error(message));
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
        let answered = self.links[index].answered(stream, now_us);
        let answered = answered.map_err(|NothingAsked| {
            self.malformed(index, format!("it answers on stream {stream}, which asked nothing"))
        })?;
        let Some(mut under_way) = answered else { return Ok(()) };
        let envelope = ResponseEnvelope::decode(frame);
        let envelope = envelope.map_err(|error| self.malformed(index, error.to_string()))?;
        if let Response::Error(error) = &envelope.response
            && self.ask_again(&error.kind, (index, stream), under_way, now_us)
        {
            self.recorder.note_asked_again(under_way.intended_us);
            return Ok(());
        }
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

    /// Asks again what has failed by such an error, where that is done. Tells whether it is.
    fn ask_again(
        &mut self,
        error: &ErrorKind,
        asked: (usize, i16),
        under_way: UnderWay,
        now_us: u64,
    ) -> bool {
        match error {
            // It has done nothing: another one is asked, as drivers do, once for a request.
            ErrorKind::Unavailable { .. }
                if under_way.repeat_count == 0 && self.ask_another(asked, under_way, now_us) =>
            {
                true
            }
            ErrorKind::Unavailable { .. }
            | ErrorKind::Overloaded
            | ErrorKind::WriteTimeout { .. }
            | ErrorKind::ReadTimeout { .. } => {
                self.work.repeats
                    && under_way.repeat_count < REPEAT_COUNT_MAX
                    && self.ask_the_same(asked, now_us)
            }
            _ => false,
        }
    }

    /// Asks the same node again, if it is known what was asked.
    fn ask_the_same(&mut self, (index, stream): (usize, i16), now_us: u64) -> bool {
        let Some(kept) = self.links[index].kept(stream) else { return false };
        let request = Request::again(kept, &mut self.values);
        self.links[index].ask_again(stream, &request, now_us);
        true
    }

    /// Asks another node, if there is one.
    fn ask_another(&mut self, (index, stream): (usize, i16), under_way: UnderWay, now_us: u64) -> bool {
        let link = &self.links[index];
        let Some(kept) = link.kept(stream) else { return false };
        let request = Request::again(kept, &mut self.values);
        let turns = Turns { links: &self.links, nodes: &self.work.nodes, now_us };
        let found = turns.other_stream(&mut self.next_link, &request, link.node.index);
        let Some((other, free)) = found else { return false };
        self.links[index].end(stream);
        self.links[other].begin(free, UnderWay { repeat_count: 1, ..under_way }, &request, now_us);
        true
    }

    fn record(&mut self, under_way: UnderWay, ended_us: u64, end: End) {
        let times = Times { intended_us: under_way.intended_us, begun_us: under_way.begun_us, ended_us };
        match end {
            End::Good => self.recent.record(ended_us - under_way.intended_us),
            _ => self.recent_bad_count += 1,
        }
        self.recorder.record(under_way.operation.kind, times, end);
    }

    /// Links that broke are left out until they are mended, and what was under way on them has failed.
    fn bury_broken(&mut self) -> Result<(), LabError> {
        let now_us = self.now_us();
        for index in 0..self.links.len() {
            let Some(error) = self.links[index].bury() else { continue };
            let node = self.links[index].node.address.clone();
            let message = format!("the connection to {node} broke: {error}");
            for under_way in self.links[index].take_all() {
                self.fail(under_way, now_us, message.clone());
            }
            if self.links.iter().all(Link::is_buried) && !self.work.bears_all_broken {
                return Err(LabError::Broken { node, source: error });
            }
            self.mender.ask(index, &self.links[index]);
        }
        Ok(())
    }

    /// New links take the place of those that broke.
    fn take_mended(&mut self) -> io::Result<()> {
        while let Some((index, mut link)) = self.mender.next() {
            link.register(self.poll.registry(), Token(index))?;
            link.take_place_of(&self.links[index]);
            self.links[index] = link;
        }
        Ok(())
    }

    /// Gives up what is late, and tells how it goes, now and then.
    fn tell(&mut self, now_us: u64) {
        if now_us >= self.told_us.saturating_add(LOOK_EVERY.as_micros() as u64) {
            self.forget_late(self.now_us());
            self.work.shared.tell(&mut self.recent, std::mem::take(&mut self.recent_bad_count));
            self.told_us = now_us;
        }
    }

    /// What it has found, with what was due until now and has no end.
    fn counted(mut self) -> Found {
        let (now_us, window) = (self.now_us(), self.work.window);
        let under_way: Vec<UnderWay> = self.links.iter_mut().flat_map(Link::take_all).collect();
        under_way.iter().for_each(|under_way| self.work.operations.fail(&under_way.operation));
        let begun = under_way.iter().filter(|under_way| window.has(under_way.intended_us)).count() as u64;
        let due_us = window.until_us.min(now_us);
        let overdue = |until_us| self.work.pacer.overdue_count(until_us);
        let unbegun = if self.is_done { 0 } else { overdue(due_us).saturating_sub(overdue(window.from_us)) };
        self.recorder.note_endless(begun + unbegun);
        let now = self.edge();
        let (before, after) = (self.before.unwrap_or(now), self.after.unwrap_or(now));
        self.recorder
            .note_used(after.waited_s - before.waited_s, after.received_bytes - before.received_bytes);
        self.recorder.finish()
    }
}

/// Whose turn it is.
struct Turns<'a> {
    links: &'a [Link],
    nodes: &'a Nodes,
    now_us: u64,
}

impl Turns<'_> {
    /// A free stream, of which there is one: to a node that has the row, if such a node has one, and to a node that is
    /// not slow, links taking turns.
    fn next_stream(&self, next_link: &mut usize, request: &Request<'_>) -> (usize, i16) {
        let found = self.best_stream(next_link, request, |_| true);
        found.expect("whoever begins an operation has seen a free stream")
    }

    /// The same of any node but this one.
    fn other_stream(
        &self,
        next_link: &mut usize,
        request: &Request<'_>,
        than: NodeIndex,
    ) -> Option<(usize, i16)> {
        self.best_stream(next_link, request, |link| link.node.index != than)
    }

    fn best_stream(
        &self,
        next_link: &mut usize,
        request: &Request<'_>,
        may_be: impl Fn(&Link) -> bool,
    ) -> Option<(usize, i16)> {
        let token = request.token();
        let is_replica =
            |link: &Link| token.is_some_and(|token| self.nodes.is_replica(link.node.index, token));
        let is_brisk = |link: &Link| !link.is_slow(self.now_us);
        let (index, stream) = self
            .first(*next_link, |link| may_be(link) && is_brisk(link) && is_replica(link))
            .or_else(|| self.first(*next_link, |link| may_be(link) && is_replica(link)))
            .or_else(|| self.first(*next_link, |link| may_be(link) && is_brisk(link)))
            .or_else(|| self.first(*next_link, may_be))?;
        *next_link = (index + 1) % self.links.len();
        Some((index, stream))
    }

    fn first(&self, next_link: usize, is_wanted: impl Fn(&Link) -> bool) -> Option<(usize, i16)> {
        let turns = (0..self.links.len()).map(|turn| (next_link + turn) % self.links.len());
        let free = |index: usize| Some((index, self.links[index].free_stream()?));
        turns.filter_map(free).find(|(index, _)| is_wanted(&self.links[*index]))
    }
}
