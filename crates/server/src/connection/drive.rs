//! The loop of one connection: read, answer, write.

use std::future::{Future, pending, poll_fn};
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use futures_util::FutureExt;
use protocol::{
    Decoder, ErrorResponse, Event, Fate, Frame, FrameError, Opcode, Request, RequestEnvelope, Response,
    ResponseEnvelope, Stage, StartupOptions, Version, supported_options,
};
use runtime::{Alarm, ByteStream, Piece};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::Instant;

use super::ShardServer;
use super::answer::Answer;
use super::batcher::Batcher;
use super::handle::Job;
use super::intake::{Intake, Received};
use super::output::Output;
use super::pending::{Answered, Done, Pending};
use super::progress::Progress;
use super::remote::frame_bytes;
use super::request::Way;
use super::session::Session;
use super::subscription::Subscription;
use crate::budget::{Held, READ_BYTES_MIN};

/// How long a client that is let go has to close its end.
const PARTING: Duration = Duration::from_secs(1);
/// While a write waits, its values are in its frame, in its plan and in its mutation.
const FRAME_COPIES: usize = 3;

pub(super) struct Connection {
    pub(super) server: Rc<ShardServer>,
    pub(super) stream: ByteStream,
    pub(super) decoder: Decoder,
    pub(super) stage: Stage,
    pub(super) session: Rc<Session>,
    subscription: Subscription,
    intake: Intake,
    /// Empty between turns, unless the client takes no answers.
    pub(super) batcher: Batcher,
    pub(super) pending: Pending,
    pub(super) output: Output,
    /// How much there was to write when a batch was answered last.
    batch_bytes: usize,
    /// Frames that came in part or were not begun.
    held: Held,
    /// Does the client take and send, while it holds what others may want?
    pub(super) progress: Progress,
    /// Does the client want to be refused rather than not read?
    throws_on_overload: bool,
    is_closing: bool,
    /// The turn that goes on.
    pub(super) piece: Piece,
}

/// Whether a request is traced.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Tracing {
    /// As its flag says.
    AsAsked,
    /// It is, because the node traces some by itself. Its client is not told.
    Sampled,
}

/// What a connection was woken by.
enum Woken {
    Done(Done),
    Event(Event),
    /// Frames to take.
    Received(Received),
    /// The client takes answers again.
    Writable,
    /// What was left over of the turn before.
    Again,
    Stalled,
    /// What batches that are done wait for does not come.
    RestIsLate,
    /// The node lets its clients go.
    Leaving,
}

/// Serves a client until it goes away or breaks the protocol.
pub(crate) async fn serve_connection(stream: ByteStream, server: Rc<ShardServer>, id: u32) -> io::Result<()> {
    stream.set_nodelay()?;
    let peer = stream.peer_address()?;
    let leaves = Rc::clone(&server);
    let _left = leaves.leaving.enter().await;
    let mut connection = Connection {
        decoder: Decoder::server(server.limits.frame_bytes).with_connection_id(id),
        stage: Stage::default(),
        session: Session::new(server.clients.enter(peer)),
        subscription: Subscription::default(),
        intake: Intake::default(),
        batcher: Batcher::default(),
        pending: Pending::new(Rc::clone(&server.late_writes)),
        output: Output::new(server.answers().hold_untaken()),
        batch_bytes: 0,
        held: server.budget.hold_for_client(),
        progress: Progress::default(),
        throws_on_overload: false,
        is_closing: false,
        piece: Piece::of_turn(),
        server,
        stream,
    };
    let outcome = connection.drive().await;
    connection.pending.put_away().await;
    connection.output.put_away().await;
    if outcome.is_ok() && connection.server.leaving.is_leaving() {
        part(&mut connection.stream).await;
    }
    outcome
}

/// Has the client take what it was answered: a socket that is closed with something in it that nobody has read forgets
/// what it has still to send.
async fn part(stream: &mut ByteStream) {
    let parting = async {
        stream.shutdown().await?;
        let mut unread = vec![0; READ_BYTES_MIN];
        while stream.read(&mut unread).await? > 0 {}
        io::Result::Ok(())
    };
    // A client that has gone has what it wanted.
    _ = tokio::time::timeout(PARTING, parting).await;
}

impl Connection {
    async fn drive(&mut self) -> io::Result<()> {
        loop {
            let woken = self.wait().await?;
            let mut has_more = matches!(woken, Woken::Received(Received::Much));
            self.piece = Piece::of_turn();
            self.output.encoder.lend(&mut self.server.workspace.borrow_mut());
            let outcome = self.turn(woken);
            self.settle();
            if !outcome? {
                return Ok(());
            }
            has_more |= self.intake.has_frames() || self.has_left_over() || self.piece.is_long();
            if has_more {
                // Others have their turns before this one goes on.
                tokio::task::yield_now().await;
            }
        }
    }

    /// May one more request be taken?
    fn may_take(&self) -> bool {
        !self.is_closing
            && !self.output.is_blocked()
            && self.pending.request_count() + self.batcher.len() < self.server.limits.requests_per_connection
    }

    /// Was a turn too long for all that was gathered?
    fn has_left_over(&self) -> bool {
        let has_output = self.output.bytes() > 0 && self.awaits_rest_until().is_none();
        !self.output.is_blocked() && (self.batcher.len() > 0 || has_output)
    }

    /// Waits for something to do.
    async fn wait(&mut self) -> io::Result<Woken> {
        // First: a client that always has more to ask would never leave.
        if !self.is_closing && self.server.leaving.is_leaving() {
            return Ok(Woken::Leaving);
        }
        if self.has_left_over() {
            return Ok(Woken::Again);
        }
        let (may_take, has_pending, is_blocked) =
            (self.may_take(), !self.pending.is_empty(), self.output.is_blocked());
        let is_holding = is_blocked || self.intake.awaits_frame();
        self.progress.expect(is_holding);
        if !may_take {
            self.intake.leave_line();
        }
        let holds_little = self.decoder.held_bytes() < READ_BYTES_MIN && self.output.bytes() == 0;
        self.intake.owes_nothing(!has_pending && holds_little);
        let is_closing = self.is_closing;
        let late_at = self.awaits_rest_until();
        let Connection { server, stream, decoder, pending, subscription, intake, progress, .. } = self;
        let (mut reader, writer) = stream.split();
        tokio::select! {
            biased;
            Some(done) = pending.next(), if has_pending => Ok(Woken::Done(done)),
            event = subscription.next() => Ok(Woken::Event(event)),
            writable = writer.writable(), if is_blocked => writable.map(|()| Woken::Writable),
            received = poll_fn(|context| intake.poll(&mut reader, decoder, server, context)), if may_take => {
                received.map(Woken::Received)
            }
            () = progress.stalled(server.limits.stall), if is_holding => Ok(Woken::Stalled),
            () = rings_at(&server.alarm, late_at) => Ok(Woken::RestIsLate),
            () = server.leaving.wait(), if !is_closing => Ok(Woken::Leaving),
        }
    }

    /// Does what there is to do without waiting; `false` when the connection is at its end.
    fn turn(&mut self, woken: Woken) -> io::Result<bool> {
        let mut takes_frames = self.intake.may_go_on(&self.server);
        match woken {
            Woken::Received(Received::End) => return Ok(false),
            Woken::Received(_) => {
                self.progress.moved(self.decoder.held_bytes());
                takes_frames = true;
            }
            Woken::Done(done) => self.put_late(done),
            Woken::Event(event) => self.put_event(event),
            Woken::Writable => self.unblock(),
            Woken::Stalled if self.server.is_memory_wanted() => {
                return Err(io::Error::new(
                    io::ErrorKind::TimedOut,
                    "the client neither takes its answers nor sends the rest of its request, and others wait",
                ));
            }
            Woken::Stalled => self.progress.forgive(),
            // What is in flight ends, and nothing more is taken.
            Woken::Leaving => self.is_closing = true,
            Woken::RestIsLate => {
                self.server.ways.late_batches.add(1);
                self.pending.give_up_rest();
            }
            Woken::Again => {}
        }
        self.write_complete()?;
        if takes_frames {
            self.intake.leave_line();
            self.take_frames()?;
        }
        self.take_batched()?;
        self.pending.end_party();
        while !self.piece.is_long()
            && let Some(done) = self.pending.next_now()
        {
            self.put_late(done);
            self.write_much()?;
            self.take_batched()?;
            self.pending.end_party();
        }
        self.put_events();
        self.write_complete()?;
        let is_owing = !self.pending.is_empty() || self.batcher.len() > 0 || self.output.bytes() > 0;
        Ok(!self.is_closing || is_owing)
    }

    /// Writes, unless there are only answers that wait for others.
    fn write_complete(&mut self) -> io::Result<()> {
        if self.awaits_rest_until().is_some() { Ok(()) } else { self.write() }
    }

    /// Gives back what was lent for a turn, and has counted what is left.
    fn settle(&mut self) {
        self.output.set_aside();
        self.output.encoder.give_back(&mut self.server.workspace.borrow_mut());
        let input_bytes = self.intake.settle(&mut self.decoder);
        self.held.set(input_bytes + self.batcher.settle());
        self.output.count();
        self.server.chunks.borrow_mut().sweep();
    }

    /// Does what was gathered, as long as the client takes answers.
    fn take_batched(&mut self) -> io::Result<()> {
        while self.batcher.len() > 0
            && !self.output.is_blocked()
            && (self.batcher.is_plain_due() || !self.piece.is_long())
        {
            match self.batcher.next_full() {
                Some(frame) => self.take_whole(Ok(frame), Tracing::AsAsked),
                None => self.do_plain(),
            }
            self.write_much()?;
        }
        Ok(())
    }

    /// Takes frames that are complete, as long as there is room for their requests; one in any case. Plain requests
    /// are done batch by batch, but for the last few that are gathered.
    fn take_frames(&mut self) -> io::Result<()> {
        let mut is_first = true;
        while self.may_take() && (is_first || !self.piece.is_long()) {
            if self.batcher.is_plain_due() {
                // Gathered just now, or left over of a turn that the client's socket ended.
                self.take_batched()?;
                continue;
            }
            let has_room = is_first || self.server.budget.has_room();
            // To refuse takes no room.
            if !has_room && !self.throws_on_overload && !self.intake.is_refusing() {
                break;
            }
            is_first = false;
            let Some(frame) = self.decoder.next_frame() else {
                self.intake.is_emptied();
                return Ok(());
            };
            match frame {
                Ok(frame)
                    if is_statement(frame.header.opcode) && self.refuses(frame.header.stream, has_room) =>
                {
                    self.refuse(frame.header.version, frame.header.stream, has_room);
                }
                Ok(frame) if self.is_sampled(frame.header.opcode) => {
                    self.take_whole(Ok(frame), Tracing::Sampled);
                }
                Ok(frame) => match self.way_of(frame) {
                    Way::Full(frame) => self.take_whole(Ok(frame), Tracing::AsAsked),
                    plain => {
                        self.decoder.note_sound_request();
                        self.batcher.add(plain);
                    }
                },
                Err(error) => self.take_whole(Err(error), Tracing::AsAsked),
            }
            self.write_much()?;
        }
        if self.decoder.held_bytes() == 0 {
            // It had one request, which took all of the turn: it asks little, and need not stand with those who ask
            // much.
            self.intake.is_emptied();
        } else {
            self.intake.leaves_frames(&self.server);
        }
        Ok(())
    }

    /// Takes a frame whatever it is.
    fn take_whole(&mut self, frame: Result<Frame, FrameError>, tracing: Tracing) {
        let request = frame.and_then(|frame| {
            let envelope = self.decoder.decode_request(&frame)?;
            Ok((frame, envelope))
        });
        match request {
            Ok((frame, envelope)) => self.take_request(&frame, envelope, tracing),
            Err(error) => self.put_frame_error(&error),
        }
    }

    /// Is the next request traced though its client may not have asked for it?
    fn is_sampled(&self, opcode: Opcode) -> bool {
        let random = &*self.server.tracer.coordinator.runtime().random;
        is_statement(opcode) && self.server.clients.trace_chance().hits(random)
    }

    /// Is the next request refused rather than begun?
    fn refuses(&mut self, stream: i16, has_room: bool) -> bool {
        self.intake.refuses(stream) || (!has_room && self.throws_on_overload)
    }

    fn take_request(&mut self, frame: &Frame, envelope: RequestEnvelope, tracing: Tracing) {
        let (version, stream) = (frame.header.version, frame.header.stream);
        self.session.client.count_request();
        if let Err(error) = self.stage.check(frame.header.opcode) {
            self.output.encoder.append_error(version, stream, &ErrorResponse::protocol(error.to_string()));
            self.is_closing |= self.stage == Stage::Startup;
            return;
        }
        match &envelope.request {
            Request::Startup(options) => self.start(version, stream, options),
            Request::Options => self.put(stream, version, Response::Supported(supported_options()).into()),
            Request::AuthResponse(_) => self.put(stream, version, Response::AuthSuccess(None).into()),
            Request::Register(kinds) => {
                self.subscription.add(&self.server.events, kinds);
                self.put(stream, version, Response::Ready.into());
            }
            _ => {
                self.begin((version, stream), envelope, tracing, frame_bytes(frame));
            }
        }
    }

    fn start(&mut self, version: Version, stream: i16, options: &[(String, String)]) {
        match StartupOptions::check(options, version) {
            Ok(options) => {
                self.session.client.started(version, &options);
                self.throws_on_overload = options.throw_on_overload;
                self.decoder.establish(version, options.compression);
                self.output.encoder.establish(version, options.compression);
                self.decoder.set_ready();
                self.stage = Stage::Ready;
                self.put(stream, version, Response::Ready.into());
            }
            Err(error) => {
                self.decoder.establish(version, None);
                self.output.encoder.establish(version, None);
                self.output.encoder.append_error(
                    version,
                    stream,
                    &ErrorResponse::protocol(error.to_string()),
                );
            }
        }
    }

    /// Begins a request; most are over after one poll.
    fn begin(
        &mut self,
        (version, stream): (Version, i16),
        envelope: RequestEnvelope,
        tracing: Tracing,
        bytes: usize,
    ) {
        self.server.ways.full.add(1);
        let job = Job {
            server: Rc::clone(&self.server),
            session: Rc::clone(&self.session),
            envelope,
            is_sampled: tracing == Tracing::Sampled,
            version,
            stream,
            framing: self.output.encoder.framing(),
        };
        let mut answer: Pin<Box<dyn Future<Output = Answered>>> = Box::pin(async move {
            let (answer, room) = job.run().await;
            (stream, version, answer, room)
        });
        // One that is not over is polled again by `pending`, which is when it learns whom to wake.
        match answer.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(answered) => self.put_answered(answered),
            Poll::Pending => {
                let held = self.hold(1, bytes);
                self.pending.push(held, Box::pin(answer.map(Done::Answer)));
            }
        }
    }

    /// Counts what requests hold that wait.
    pub(super) fn hold(&self, request_count: usize, frame_bytes: usize) -> Held {
        let mut held = self.server.budget.hold_requests(request_count, FRAME_COPIES * frame_bytes);
        held.set_ending(!self.output.is_blocked());
        held
    }

    /// Answers a request that is not carried out.
    fn refuse(&mut self, version: Version, stream: i16, has_room: bool) {
        self.session.client.count_request();
        self.server.budget.count_overloaded();
        let is_late = has_room || !self.throws_on_overload;
        let error = if is_late { &self.server.too_late } else { &self.server.no_room };
        self.output.encoder.append_error(version, stream, error);
    }

    /// Puts the answers to requests that waited.
    fn put_late(&mut self, done: Done) {
        match done {
            Done::Answer(answered) => return self.put_answered(answered),
            Done::Reads(reads) => self.put_reads(reads),
            Done::Writes(writes) => self.put_writes(writes),
        }
        self.batch_bytes = self.output.bytes();
        self.server.ways.awaiting_batches.add(usize::from(self.awaits_rest_until().is_some()));
    }

    /// When there is nothing to write but answers to batches of which the rest is awaited: until when.
    fn awaits_rest_until(&self) -> Option<Instant> {
        self.pending.rest_late_at().filter(|_| self.output.bytes() == self.batch_bytes)
    }

    /// Puts an answer, which has its room until it is counted as the client's to take.
    fn put_answered(&mut self, (stream, version, answer, room): Answered) {
        match answer {
            Answer::Encoded(bytes) => {
                self.put_events();
                self.output.put_encoded(bytes);
            }
            answer => self.put(stream, version, answer),
        }
        self.session.lane.learn(room.used_bytes());
        self.output.count_room(room);
    }

    fn put(&mut self, stream: i16, version: Version, answer: Answer) {
        // A client that changes the schema hears of it before it gets its answer, as from Cassandra.
        self.put_events();
        answer.encode(&mut self.output.encoder, version, stream);
    }

    fn put_frame_error(&mut self, error: &FrameError) {
        if error.fate != Fate::CloseSilently {
            self.output.encoder.append_frame_error(error);
        }
        self.is_closing |= error.fate != Fate::GoOn;
    }

    fn put_events(&mut self) {
        while let Some(event) = self.subscription.next_now() {
            self.put_event(event);
        }
    }

    fn put_event(&mut self, event: Event) {
        let Some(version) = self.decoder.version() else { return };
        let envelope = ResponseEnvelope::from(Response::Event(event));
        self.output.encoder.append_response(version, -1, &envelope);
    }
}

/// Resolves then, or never.
async fn rings_at(alarm: &Alarm, when: Option<Instant>) {
    match when {
        Some(when) => _ = alarm.timeout_at(when, pending::<()>()).await,
        None => pending().await,
    }
}

/// Is it something to carry out, and not about the connection itself?
fn is_statement(opcode: Opcode) -> bool {
    matches!(opcode, Opcode::Query | Opcode::Execute | Opcode::Batch | Opcode::Prepare)
}
