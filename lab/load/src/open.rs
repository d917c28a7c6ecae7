//! `load open`: an open loop. Requests come at a rate of their own, at random moments (a Poisson process), whether
//! the server keeps up or not, as requests of many independent users do.
//!
//! Words: those of `drive`, and `rate` (requests a second over all threads), `deadline_ms=1000`, `window=4096`
//! (streams of each connection), `slot_ms=0` (tells also, of each slot so long since the warm-up, how many good
//! answers came in it, and the 99th percentile in µs of those that were due in it). A request's time runs from the
//! moment at which it ought to be sent. It ends as one of
//!
//! ```text
//!   good        answered before its deadline
//!   overloaded  answered `Overloaded`, whenever
//!   errors      answered another error
//!   late        answered after its deadline, or not at all
//!   unsent      no stream was free, or the server took no more bytes: its users wait in vain too
//! ```
//!
//! Arrivals are looked at each millisecond, so latencies below that say little.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use mio::{Events, Poll, Token};

use crate::Outcome;
use crate::drive::{connect, register};
use crate::frame::{self, ERROR};
use crate::histogram::Histogram;
use crate::keys::Random;
use crate::link::{Link, OUT_BYTES_MAX};
use crate::process::{cpu_seconds, waited_seconds};
use crate::statement::{Kind, Requests, letters, level_named};
use crate::words::Words;

const TICK: Duration = Duration::from_millis(1);

/// What one thread is to do.
#[derive(Clone, Copy)]
struct Plan {
    per_second: f64,
    seconds: f64,
    warmup: f64,
    deadline_us: u64,
    window: u16,
    /// 0 for no slots.
    slot_us: u64,
}

/// Of a short time.
struct Slot {
    /// Good answers that came in it.
    good: u64,
    /// Those of requests that were due in it.
    latencies: Histogram,
}

/// What one thread found, after the warm-up.
#[derive(Default)]
struct Found {
    offered: u64,
    good: u64,
    overloaded: u64,
    errors: u64,
    late: u64,
    unsent: u64,
    closed: u64,
    latencies: Option<Histogram>,
    /// Good answers in each second since the warm-up.
    by_second: Vec<u64>,
    slots: Vec<Slot>,
}

/// Connects, offers the load, prints what came of it.
pub(crate) fn run(words: &Words) -> Outcome<()> {
    let kind = Kind::named(words.text("statement", "read"))?;
    let port = words.number("port", 9042)?;
    let connections = words.number("connections", 16usize)?;
    let threads = words.number("threads", 1usize)?.clamp(1, connections.max(1));
    let rate: f64 = words.number("rate", 1000.0)?;
    let plan = Plan {
        per_second: rate / threads as f64,
        seconds: words.number("seconds", 10.0)?,
        warmup: words.number("warmup", 2.0)?,
        deadline_us: words.number("deadline_ms", 1000u64)? * 1000,
        window: words.number("window", 4096u16)?,
        slot_us: words.number("slot_ms", 0u64)? * 1000,
    };
    let rows = words.number("rows", 100_000u64)?;
    let server = words.text("server", "");
    let (talks, ids) = connect(
        &words.list("hosts", "127.0.0.1"),
        port,
        connections,
        &kind.texts(words.text("keyspace", "limits")),
    )?;
    let mut parts: Vec<Vec<Link>> = (0..threads).map(|_| Vec::new()).collect();
    for (index, talk) in talks.into_iter().enumerate() {
        parts[index % threads].push(talk.into_link()?);
    }
    let (letters, level) = (letters(), level_named(words.text("consistency", "ONE"))?);
    let first_error = Arc::new(Mutex::new(None));
    let mut workers = Vec::new();
    for (index, links) in parts.into_iter().enumerate() {
        let requests = Requests::new(kind, &ids, rows, index as u64 + 1, &letters).at(level);
        let (first_error, random) = (first_error.clone(), Random::new(index as u64 + 71));
        workers
            .push(std::thread::spawn(move || Worker::new(links, plan, requests, random, first_error)?.run()));
    }
    std::thread::sleep(Duration::from_secs_f64(plan.warmup));
    let (server_before, client_before) = (cpu_seconds(server), cpu_seconds("self"));
    let waited_before = [waited_seconds(server), waited_seconds("self")];
    std::thread::sleep(Duration::from_secs_f64(plan.seconds));
    let (server_cpu, client_cpu) = (cpu_seconds(server) - server_before, cpu_seconds("self") - client_before);
    let waited = [waited_seconds(server) - waited_before[0], waited_seconds("self") - waited_before[1]];
    let mut all = Found { latencies: Some(Histogram::new()), ..Found::default() };
    for worker in workers {
        all.add(worker.join().map_err(|_| "a thread panicked")??);
    }
    all.report(&plan, rate, [server_cpu, client_cpu], waited);
    if let Some(error) = first_error.lock().ok().and_then(|mut first| first.take()) {
        eprintln!("first error: {error}");
    }
    Ok(())
}

impl Plan {
    /// Empty ones for the whole time.
    fn slots(&self) -> Vec<Slot> {
        let seconds_us = (self.seconds * 1e6) as u64;
        let count = seconds_us.checked_div(self.slot_us).unwrap_or(0);
        (0..count).map(|_| Slot { good: 0, latencies: Histogram::new() }).collect()
    }

    /// The slot of a moment since the beginning.
    fn slot_of(&self, at_us: u64) -> Option<usize> {
        let since_us = at_us.checked_sub((self.warmup * 1e6) as u64)?;
        since_us.checked_div(self.slot_us).map(|index| index as usize)
    }
}

impl Found {
    fn add(&mut self, other: Found) {
        self.offered += other.offered;
        self.good += other.good;
        self.overloaded += other.overloaded;
        self.errors += other.errors;
        self.late += other.late;
        self.unsent += other.unsent;
        self.closed += other.closed;
        if let (Some(mine), Some(theirs)) = (&mut self.latencies, &other.latencies) {
            mine.add(theirs);
        }
        self.by_second.resize(self.by_second.len().max(other.by_second.len()), 0);
        self.by_second.iter_mut().zip(&other.by_second).for_each(|(mine, theirs)| *mine += theirs);
        for (index, slot) in other.slots.into_iter().enumerate() {
            match self.slots.get_mut(index) {
                Some(mine) => {
                    mine.good += slot.good;
                    mine.latencies.add(&slot.latencies);
                }
                None => self.slots.push(slot),
            }
        }
    }

    /// Requests whose end is known.
    fn ended(&self) -> u64 {
        self.good + self.overloaded + self.errors + self.late + self.unsent
    }

    fn report(&self, plan: &Plan, rate: f64, cpu: [f64; 2], waited: [f64; 2]) {
        let ([server_cpu, client_cpu], [server_waited, client_waited]) = (cpu, waited);
        let seconds = plan.seconds;
        let silent = self.by_second.iter().take(seconds as usize).filter(|count| **count == 0).count();
        let by_second: Vec<String> = self.by_second.iter().map(u64::to_string).collect();
        let slot = |slot: &Slot| format!("[{},{}]", slot.good, slot.latencies.quantile_us(0.99));
        let slots: Vec<String> = self.slots.iter().map(slot).collect();
        println!(
            "{{\"rate\":{rate:.0},\"seconds\":{seconds},\"offered\":{},\"good\":{},\"good_per_s\":{:.0},\
             \"overloaded\":{},\"errors\":{},\"late\":{},\"unsent\":{},\"closed\":{},\"silent_seconds\":{silent},\
             \"server_cpu_s\":{server_cpu:.2},\"client_cpu_s\":{client_cpu:.2},\
             \"server_waited_s\":{server_waited:.2},\"client_waited_s\":{client_waited:.2},{},\
             \"by_second\":[{}],\"slots\":[{}]}}",
            self.offered,
            self.good,
            self.good as f64 / seconds,
            self.overloaded,
            self.errors,
            self.late,
            self.unsent,
            self.closed,
            self.latencies.as_ref().map(Histogram::json).unwrap_or_default(),
            by_second.join(","),
            slots.join(",")
        );
    }
}

/// Streams of one link: when each request was due, in microseconds.
struct Streams {
    free: Vec<u16>,
    due_us: Vec<u64>,
}

struct Worker {
    poll: Poll,
    links: Vec<Link>,
    streams: Vec<Streams>,
    plan: Plan,
    requests: Requests,
    random: Random,
    started: Instant,
    found: Found,
    first_error: Arc<Mutex<Option<String>>>,
}

impl Worker {
    fn new(
        links: Vec<Link>,
        plan: Plan,
        requests: Requests,
        random: Random,
        first_error: Arc<Mutex<Option<String>>>,
    ) -> Outcome<Worker> {
        let streams =
            links.iter().map(|_| Streams { free: (0..plan.window).rev().collect(), due_us: Vec::new() });
        let found = Found {
            latencies: Some(Histogram::new()),
            by_second: vec![0; plan.seconds.ceil() as usize],
            slots: plan.slots(),
            ..Found::default()
        };
        let streams = streams.collect();
        let poll = Poll::new()?;
        Ok(Worker {
            poll,
            links,
            streams,
            plan,
            requests,
            random,
            started: Instant::now(),
            found,
            first_error,
        })
    }

    fn run(mut self) -> Outcome<Found> {
        for index in 0..self.links.len() {
            register(&self.poll, &mut self.links[index], index)?;
            self.streams[index].due_us = vec![0; usize::from(self.plan.window)];
        }
        let (mut events, mut scratch) = (Events::with_capacity(1024), Vec::new());
        let end_us = (self.plan.warmup + self.plan.seconds) * 1e6;
        let mut next_us = self.gap_us();
        let mut turn = 0;
        loop {
            let now_us = self.started.elapsed().as_micros() as u64;
            while next_us <= now_us as f64 && next_us < end_us {
                self.begin(turn, next_us as u64);
                turn = (turn + 1) % self.links.len();
                next_us += self.gap_us();
            }
            self.links.iter_mut().for_each(Link::send);
            if now_us as f64 > end_us + self.plan.deadline_us as f64 {
                break;
            }
            self.poll.poll(&mut events, Some(TICK))?;
            let now_us = self.started.elapsed().as_micros() as u64;
            for event in &events {
                let Token(index) = event.token();
                if event.is_readable() {
                    self.receive(index, now_us, &mut scratch)?;
                }
                self.links[index].send();
            }
        }
        self.found.late += self.found.offered - self.found.ended();
        Ok(self.found)
    }

    /// From one arrival to the next.
    fn gap_us(&mut self) -> f64 {
        -(1.0 - self.random.fraction()).ln() * 1e6 / self.plan.per_second
    }

    fn is_counted(&self, due_us: u64) -> bool {
        due_us as f64 >= self.plan.warmup * 1e6
    }

    fn begin(&mut self, index: usize, due_us: u64) {
        let is_counted = self.is_counted(due_us);
        self.found.offered += u64::from(is_counted);
        let (link, streams) = (&mut self.links[index], &mut self.streams[index]);
        let is_full = link.waiting_bytes() > OUT_BYTES_MAX || link.is_closed;
        match if is_full { None } else { streams.free.pop() } {
            Some(stream) => {
                streams.due_us[usize::from(stream)] = due_us;
                self.requests.put_next(&mut link.out, stream, 0);
            }
            None => self.found.unsent += u64::from(is_counted),
        }
    }

    fn receive(&mut self, index: usize, now_us: u64, scratch: &mut Vec<u8>) -> Outcome<()> {
        let was_closed = self.links[index].is_closed;
        let (streams, found, plan) = (&mut self.streams[index], &mut self.found, self.plan);
        let first_error = &self.first_error;
        self.links[index].receive(scratch, |frame, _| {
            let due_us = streams.due_us.get(usize::from(frame.stream));
            let due_us = *due_us.ok_or("an answer to a stream that was never used")?;
            streams.free.push(frame.stream);
            let warmup_us = (plan.warmup * 1e6) as u64;
            if due_us < warmup_us {
                return Ok(());
            }
            let latency_us = now_us.saturating_sub(due_us);
            if frame.opcode == ERROR {
                let (code, message) = frame::error_of(frame.body);
                if code == frame::OVERLOADED {
                    found.overloaded += 1;
                } else {
                    found.errors += 1;
                    if let Ok(mut first) = first_error.lock() {
                        first.get_or_insert(format!("{code:#06x}: {message}"));
                    }
                }
                return Ok(());
            }
            if let Some(latencies) = &mut found.latencies {
                latencies.record(latency_us);
            }
            if let Some(slot) = plan.slot_of(due_us).and_then(|index| found.slots.get_mut(index)) {
                slot.latencies.record(latency_us);
            }
            if latency_us > plan.deadline_us {
                found.late += 1;
                return Ok(());
            }
            found.good += 1;
            if let Some(slot) = plan.slot_of(now_us).and_then(|index| found.slots.get_mut(index)) {
                slot.good += 1;
            }
            let second = ((now_us - warmup_us) / 1_000_000) as usize;
            if let Some(count) = found.by_second.get_mut(second) {
                *count += 1;
            }
            Ok(())
        })?;
        found.closed += u64::from(self.links[index].is_closed && !was_closed);
        Ok(())
    }
}
