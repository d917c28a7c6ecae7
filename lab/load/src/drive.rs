//! `load drive`: a closed loop, so many requests in flight on each connection.
//!
//! Words: `hosts=127.0.0.1` (with commas, all with one `port`), `consistency=ONE`, `port`, `statement=read`,
//! `rows=100000`, `keyspace=limits`, `connections=4`, `window=64`, `threads=1`, `seconds=10`, `warmup=2`,
//! `route=replicas|any`, `requests=` (so many, then it ends, before its time), `server=PID,PID` (whose CPU time is
//! taken), `answers=read|left` (left: nothing is read, so each connection sends its window and then only holds what
//! the server owes it). What happens in the warm-up is not counted.
//!
//! With several hosts each connection is asked only for rows of which its host is a replica (see `route.rs`), in the
//! proportions of YCSB's skew among these. So every host has its windows full all the time, whichever row is asked for
//! most; `route=any` asks all hosts for all rows.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use mio::{Events, Interest, Poll, Token};

use crate::Outcome;
use crate::frame::{self, ERROR, HEADER_BYTES};
use crate::histogram::Histogram;
use crate::link::{Link, OUT_BYTES_MAX, Talk};
use crate::process::cpu_seconds;
use crate::route::Route;
use crate::statement::{Kind, Requests, letters, level_named};
use crate::words::Words;

/// How often a thread looks whether the run is over.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// What all threads count together.
#[derive(Default)]
struct Counts {
    answered: AtomicU64,
    answer_bytes: AtomicU64,
    overloaded: AtomicU64,
    errors: AtomicU64,
    closed: AtomicU64,
    /// Requests begun, whether the socket has taken them or not.
    begun: AtomicU64,
    measuring: AtomicBool,
    stop: AtomicBool,
    first_error: Mutex<Option<String>>,
}

/// How much is asked of a server.
#[derive(Clone, Copy)]
struct Bounds {
    warmup: Duration,
    time: Duration,
    /// No end but the time's without it.
    requests: Option<u64>,
}

impl Bounds {
    fn of(words: &Words) -> Outcome<Bounds> {
        let requests = words.number("requests", 0u64)?;
        Ok(Bounds {
            warmup: Duration::from_secs(words.number("warmup", 2)?),
            time: Duration::from_secs(words.number("seconds", 10)?),
            requests: (requests > 0).then_some(requests),
        })
    }

    /// What one of several threads may ask.
    fn share(self, index: usize, threads: usize) -> u64 {
        self.requests.map_or(u64::MAX, |all| (all + (threads - 1 - index) as u64) / threads as u64)
    }

    /// Waits until the time is over, or all that was to be asked is answered.
    fn wait(self, counts: &Counts) {
        let begun = Instant::now();
        let is_done = |all| counts.answered.load(Ordering::Relaxed) >= all;
        while begun.elapsed() < self.time && !self.requests.is_some_and(is_done) {
            std::thread::sleep(LOOK_EVERY.min(self.time.saturating_sub(begun.elapsed())));
        }
    }
}

/// Connects, drives, prints what was measured.
pub(crate) fn run(words: &Words) -> Outcome<()> {
    let kind = Kind::named(words.text("statement", "read"))?;
    let port = words.number("port", 9042)?;
    let connections = words.number("connections", 4usize)?;
    let window = words.number("window", 64u16)?;
    let threads = words.number("threads", 1usize)?.clamp(1, connections.max(1));
    let bounds = Bounds::of(words)?;
    let rows = words.number("rows", 100_000u64)?;
    let server = words.text("server", "");
    let reads = words.text("answers", "read") == "read";
    let hosts = words.list("hosts", "127.0.0.1");
    let keyspace = words.text("keyspace", "limits");
    let (mut talks, ids) = connect(&hosts, port, connections, &kind.texts(keyspace))?;
    let route = route(&mut talks, hosts.len(), keyspace, words)?;
    let mut parts: Vec<Vec<(Link, usize)>> = (0..threads).map(|_| Vec::new()).collect();
    for (index, talk) in talks.into_iter().enumerate() {
        parts[index % threads].push((talk.into_link()?, index % hosts.len()));
    }
    let counts = Arc::new(Counts::default());
    let (letters, level) = (letters(), level_named(words.text("consistency", "ONE"))?);
    let workers: Vec<_> = parts
        .into_iter()
        .enumerate()
        .map(|(index, links)| {
            let requests = Requests::new(kind, &ids, rows, index as u64 + 1, &letters).at(level);
            let requests = match &route {
                Some(route) => requests.routed(route, hosts.len())?,
                None => requests,
            };
            let counts = counts.clone();
            let left = bounds.share(index, threads);
            Ok(std::thread::spawn(move || Worker::new(links, window, requests, left, reads, counts)?.run()))
        })
        .collect::<Outcome<_>>()?;
    std::thread::sleep(bounds.warmup);
    let before = Snapshot::of(&counts, server);
    counts.measuring.store(true, Ordering::Relaxed);
    bounds.wait(&counts);
    counts.measuring.store(false, Ordering::Relaxed);
    let after = Snapshot::of(&counts, server);
    counts.stop.store(true, Ordering::Relaxed);
    let mut latencies = Histogram::new();
    for worker in workers {
        latencies.add(&worker.join().map_err(|_| "a thread panicked")??);
    }
    report(&counts, &before, &after, &latencies);
    Ok(())
}

/// Where rows are, if requests are to go there; the first connections are one to each host.
fn route(talks: &mut [Talk], host_count: usize, keyspace: &str, words: &Words) -> Outcome<Option<Route>> {
    match words.text("route", "replicas") {
        "replicas" if host_count == 1 => Ok(None),
        "replicas" => {
            let first = talks.get_mut(..host_count).ok_or("fewer connections than hosts")?;
            Route::ask(first, keyspace).map(Some)
        }
        "any" => Ok(None),
        other => Err(format!("no route '{other}'").into()),
    }
}

/// Opens all connections, to the hosts in turn, and prepares the texts on the first to each: ids are the same on all.
pub(crate) fn connect(
    hosts: &[&str],
    port: u16,
    count: usize,
    texts: &[String],
) -> Outcome<(Vec<Talk>, Vec<Vec<u8>>)> {
    let (mut talks, mut ids): (Vec<Talk>, Vec<Vec<u8>>) = (Vec::with_capacity(count), Vec::new());
    for (index, host) in hosts.iter().cycle().take(count).enumerate() {
        let mut talk =
            Talk::open(host, port).map_err(|error| format!("connection {index} to {host}: {error}"))?;
        if index < hosts.len() {
            ids = texts.iter().map(|text| talk.prepare(text)).collect::<Outcome<_>>()?;
        }
        talks.push(talk);
    }
    if talks.is_empty() { Err("a load needs a connection".into()) } else { Ok((talks, ids)) }
}

/// Has a link wake the loop when there is something to read or room to write.
pub(crate) fn register(poll: &Poll, link: &mut Link, index: usize) -> Outcome<()> {
    Ok(poll.registry().register(&mut link.socket, Token(index), Interest::READABLE | Interest::WRITABLE)?)
}

/// The counts at one moment.
struct Snapshot {
    at: Instant,
    answered: u64,
    answer_bytes: u64,
    overloaded: u64,
    errors: u64,
    server_cpu_s: f64,
    client_cpu_s: f64,
}

impl Snapshot {
    fn of(counts: &Counts, server: &str) -> Snapshot {
        Snapshot {
            at: Instant::now(),
            answered: counts.answered.load(Ordering::Relaxed),
            answer_bytes: counts.answer_bytes.load(Ordering::Relaxed),
            overloaded: counts.overloaded.load(Ordering::Relaxed),
            errors: counts.errors.load(Ordering::Relaxed),
            server_cpu_s: cpu_seconds(server),
            client_cpu_s: cpu_seconds("self"),
        }
    }
}

fn report(counts: &Counts, before: &Snapshot, after: &Snapshot, latencies: &Histogram) {
    let seconds = (after.at - before.at).as_secs_f64();
    let answered = after.answered - before.answered;
    let (overloaded, errors) = (after.overloaded - before.overloaded, after.errors - before.errors);
    let good = answered - overloaded - errors;
    let server = after.server_cpu_s - before.server_cpu_s;
    let client = after.client_cpu_s - before.client_cpu_s;
    let answer_bytes = (after.answer_bytes - before.answer_bytes) as f64 / good.max(1) as f64;
    // Requests made, not those that the server has taken: some wait in buffers on the way.
    let begun = counts.begun.load(Ordering::Relaxed);
    let outstanding = begun - counts.answered.load(Ordering::Relaxed).min(begun);
    let closed = counts.closed.load(Ordering::Relaxed);
    println!(
        "{{\"ops\":{good},\"seconds\":{seconds:.3},\"ops_per_s\":{:.0},\"server_cpu_s\":{server:.2},\
         \"client_cpu_s\":{client:.2},\"ops_per_core_s\":{:.0},\"answer_bytes\":{answer_bytes:.1},\
         \"overloaded\":{overloaded},\"errors\":{errors},\"closed\":{closed},\"outstanding\":{outstanding},{}}}",
        good as f64 / seconds,
        if server > 0.0 { good as f64 / server } else { 0.0 },
        latencies.json(),
    );
    let first = counts.first_error.lock().ok().and_then(|mut first| first.take());
    if let Some(error) = first {
        eprintln!("first error: {error}");
    }
}

/// Streams of one link.
struct Streams {
    /// Those with no request in flight.
    free: Vec<u16>,
    /// When the request of each stream was made, in microseconds since the start.
    begun_us: Vec<u32>,
}

/// One thread's connections.
struct Worker {
    poll: Poll,
    links: Vec<Link>,
    /// The host of each link.
    hosts: Vec<usize>,
    streams: Vec<Streams>,
    requests: Requests,
    /// How many it may still begin.
    left: u64,
    /// Whether answers are read at all.
    reads: bool,
    counts: Arc<Counts>,
    started: Instant,
}

impl Worker {
    fn new(
        links: Vec<(Link, usize)>,
        window: u16,
        requests: Requests,
        left: u64,
        reads: bool,
        counts: Arc<Counts>,
    ) -> Outcome<Worker> {
        let (links, hosts): (Vec<Link>, Vec<usize>) = links.into_iter().unzip();
        let streams = links
            .iter()
            .map(|_| Streams { free: (0..window).rev().collect(), begun_us: vec![0; usize::from(window)] });
        let streams = streams.collect();
        Ok(Worker {
            poll: Poll::new()?,
            links,
            hosts,
            streams,
            requests,
            left,
            reads,
            counts,
            started: Instant::now(),
        })
    }

    fn run(mut self) -> Outcome<Histogram> {
        let mut latencies = Histogram::new();
        for index in 0..self.links.len() {
            register(&self.poll, &mut self.links[index], index)?;
            self.refill(index, 0);
        }
        let (mut events, mut scratch) = (Events::with_capacity(1024), Vec::new());
        while !self.counts.stop.load(Ordering::Relaxed) {
            self.poll.poll(&mut events, Some(LOOK_EVERY))?;
            let now_us = self.started.elapsed().as_micros() as u32;
            for event in &events {
                let Token(index) = event.token();
                if event.is_readable() && self.reads {
                    self.receive(index, now_us, &mut scratch, &mut latencies)?;
                }
                self.refill(index, now_us);
            }
        }
        Ok(latencies)
    }

    fn receive(
        &mut self,
        index: usize,
        now_us: u32,
        scratch: &mut Vec<u8>,
        latencies: &mut Histogram,
    ) -> Outcome<()> {
        let measuring = self.counts.measuring.load(Ordering::Relaxed);
        let (counts, streams) = (&self.counts, &mut self.streams[index]);
        let (mut answered, mut bytes) = (0, 0);
        let was_closed = self.links[index].is_closed;
        self.links[index].receive(scratch, |frame, _| {
            answered += 1;
            if frame.opcode == ERROR {
                count_error(counts, frame.body);
            } else {
                bytes += (HEADER_BYTES + frame.body.len()) as u64;
            }
            let begun_us = streams.begun_us.get(usize::from(frame.stream));
            let begun_us = *begun_us.ok_or("an answer to a stream that was never used")?;
            if measuring {
                latencies.record(u64::from(now_us.wrapping_sub(begun_us)));
            }
            streams.free.push(frame.stream);
            Ok(())
        })?;
        counts.answered.fetch_add(answered, Ordering::Relaxed);
        counts.answer_bytes.fetch_add(bytes, Ordering::Relaxed);
        if self.links[index].is_closed && !was_closed {
            counts.closed.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Begins as many requests as there are free streams and room for.
    fn refill(&mut self, index: usize, now_us: u32) {
        let (link, streams) = (&mut self.links[index], &mut self.streams[index]);
        link.send();
        let mut begun = 0;
        while link.waiting_bytes() < OUT_BYTES_MAX && !link.is_closed && self.left > begun {
            let Some(stream) = streams.free.pop() else { break };
            streams.begun_us[usize::from(stream)] = now_us;
            self.requests.put_next(&mut link.out, stream, self.hosts[index]);
            begun += 1;
            if link.waiting_bytes() >= OUT_BYTES_MAX {
                link.send();
            }
        }
        link.send();
        self.left -= begun;
        self.counts.begun.fetch_add(begun, Ordering::Relaxed);
    }
}

fn count_error(counts: &Counts, body: &[u8]) {
    let (code, message) = frame::error_of(body);
    if code == frame::OVERLOADED {
        counts.overloaded.fetch_add(1, Ordering::Relaxed);
        return;
    }
    if counts.errors.fetch_add(1, Ordering::Relaxed) == 0
        && let Ok(mut first) = counts.first_error.lock()
    {
        first.get_or_insert(format!("{code:#06x}: {message}"));
    }
}
