//! Writes rows and reads single ones at random, many at once: the load of `cargo xtask coldreads`.
//!
//! `point_reads ADDRESS load ROWS ROW_BYTES` writes `cold.rows`;
//! `point_reads ADDRESS read ROWS CONNECTIONS WINDOW SECONDS SEED` reads, WINDOW in flight on each
//! connection. The last line is `ops=N seconds=S per_second=R p99_us=P row_bytes=B`.

#![allow(clippy::print_stdout, reason = "a program for the terminal")]
#![allow(clippy::disallowed_methods, reason = "a program lives outside the simulated world")]

use std::error::Error;
use std::time::{Duration, Instant};

use client::{ConnectOptions, Connection};
use protocol::{Consistency, Prepared, Response, Value, Values};

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

/// Writes in flight on the one connection that loads.
const LOAD_WINDOW: usize = 256;

fn main() -> Outcome<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words.as_slice() {
        [address, "load", rows, row_bytes] => load(address, rows.parse()?, row_bytes.parse()?),
        [address, "read", rows, connections, window, seconds, seed] => {
            let reads = Reads {
                rows: rows.parse()?,
                window: window.parse()?,
                length: Duration::from_secs(seconds.parse()?),
            };
            read_all(address, &reads, connections.parse()?, seed.parse()?)
        }
        _ => Err("see the head of this file".into()),
    }
}

fn next(random: &mut u64) -> u64 {
    *random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    *random >> 16
}

fn load(address: &str, rows: u64, row_bytes: usize) -> Outcome<()> {
    let mut connection = Connection::open(address, &ConnectOptions::default())?;
    let insert = connection.prepare("INSERT INTO cold.rows (id, v) VALUES (?, ?)")?;
    let mut value = vec![0u8; row_bytes];
    let mut random = 7;
    let started = Instant::now();
    for id in 0..rows {
        // Bytes that do not compress: the file is as large as the rows.
        value
            .chunks_mut(6)
            .for_each(|part| part.copy_from_slice(&next(&mut random).to_be_bytes()[2..][..part.len()]));
        let values = Values::pack([Value::Bytes(&id.to_be_bytes()), Value::Bytes(&value)]);
        connection.send(Connection::execute_request(&insert, values, Consistency::One))?;
        if connection.in_flight() == LOAD_WINDOW {
            while connection.in_flight() > LOAD_WINDOW / 2 {
                connection.receive()?.checked()?;
            }
        }
    }
    while connection.in_flight() > 0 {
        connection.receive()?.checked()?;
    }
    println!("ops={rows} seconds={:.3}", started.elapsed().as_secs_f64());
    Ok(())
}

struct Reads {
    rows: u64,
    window: usize,
    length: Duration,
}

fn read_all(address: &str, reads: &Reads, connections: u64, seed: u64) -> Outcome<()> {
    let started = Instant::now();
    let parts: Vec<Outcome<(Vec<Duration>, u64)>> = std::thread::scope(|scope| {
        let begin = |index| scope.spawn(move || read(address, reads, seed.wrapping_mul(977) + index));
        let threads: Vec<_> = (0..connections).map(begin).collect();
        threads.into_iter().map(|thread| thread.join().unwrap_or(Err("a thread panicked".into()))).collect()
    });
    let seconds = started.elapsed().as_secs_f64();
    let (mut latencies, mut bytes) = (Vec::new(), 0);
    for part in parts {
        let (part, part_bytes) = part?;
        latencies.extend(part);
        bytes += part_bytes;
    }
    latencies.sort_unstable();
    let p99 = latencies.get(latencies.len() * 99 / 100).copied().unwrap_or_default();
    let count = latencies.len().max(1);
    println!(
        "ops={count} seconds={seconds:.3} per_second={:.0} p99_us={} row_bytes={}",
        count as f64 / seconds,
        p99.as_micros(),
        bytes / count as u64
    );
    Ok(())
}

/// One connection's reads: how long each took, and the bytes of all rows.
fn read(address: &str, reads: &Reads, seed: u64) -> Outcome<(Vec<Duration>, u64)> {
    let options = ConnectOptions { in_flight_max: reads.window, ..ConnectOptions::default() };
    let mut connection = Connection::open(address, &options)?;
    let select = connection.prepare("SELECT id, v FROM cold.rows WHERE id = ?")?;
    let mut random = seed;
    let (mut latencies, mut bytes) = (Vec::new(), 0);
    let mut begun = vec![Instant::now(); reads.window];
    let started = Instant::now();
    for _ in 0..reads.window {
        send(&mut connection, &select, reads.rows, &mut random, &mut begun)?;
    }
    while connection.in_flight() > 0 {
        let answer = connection.receive()?.checked()?;
        latencies.push(begun[answer.stream as usize].elapsed());
        let Response::Rows(rows) = &answer.envelope.response else { return Err("no rows".into()) };
        if rows.row_count != 1 {
            return Err(format!("{} rows where there is one", rows.row_count).into());
        }
        bytes += rows.cells.len() as u64;
        if started.elapsed() < reads.length {
            send(&mut connection, &select, reads.rows, &mut random, &mut begun)?;
        }
    }
    Ok((latencies, bytes))
}

fn send(
    connection: &mut Connection,
    select: &Prepared,
    rows: u64,
    random: &mut u64,
    begun: &mut [Instant],
) -> Outcome<()> {
    let id = next(random) % rows;
    let values = Values::pack([Value::Bytes(&id.to_be_bytes())]);
    let request = Connection::execute_request(select, values, Consistency::One);
    let stream = connection.send(request)?;
    begun[stream as usize] = Instant::now();
    Ok(())
}
