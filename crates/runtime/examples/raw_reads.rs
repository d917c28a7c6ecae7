//! What the disk gives: random reads of one file through a plain io_uring program, past the page cache.
//!
//! `cargo run --release -p peristyle-runtime --example raw_reads -- PATH READ_BYTES DEPTH SECONDS SEED`
//!
//! It shares no code with the server's reads: it is the limit that these are held against. Reads begin
//! at multiples of 512 bytes. The last line is `reads=N seconds=S per_second=R p99_us=P`.

#![allow(clippy::print_stdout, reason = "a program for the terminal")]
#![allow(clippy::disallowed_methods, reason = "a program lives outside the simulated world")]
#![allow(unsafe_code, reason = "gives addresses to the kernel")]

use std::alloc::{Layout, alloc_zeroed};
use std::error::Error;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::time::{Duration, Instant};

use io_uring::{IoUring, opcode, types};

const BLOCK_BYTES: u64 = 512;
const O_DIRECT: i32 = rustix::fs::OFlags::DIRECT.bits() as i32;

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [path, read_bytes, depth, seconds, seed] = words.as_slice() else {
        return Err("PATH READ_BYTES DEPTH SECONDS SEED".into());
    };
    let (read_bytes, depth): (usize, usize) = (read_bytes.parse()?, depth.parse()?);
    let (length, mut random) = (Duration::from_secs(seconds.parse()?), seed.parse::<u64>()? | 1);
    let file = std::fs::OpenOptions::new().read(true).custom_flags(O_DIRECT).open(path)?;
    let places =
        (file.metadata()?.len().checked_sub(read_bytes as u64).ok_or("a larger file")?) / BLOCK_BYTES;
    let layout = Layout::from_size_align(read_bytes * depth, 4096)?;
    // SAFETY: the size is not 0. The memory is never freed: the program ends with it.
    let buffers = unsafe { alloc_zeroed(layout) };
    let mut ring: IoUring =
        IoUring::builder().setup_single_issuer().setup_coop_taskrun().build(depth as u32)?;
    let mut begun = vec![Instant::now(); depth];
    let mut latencies = Vec::new();
    let mut free: Vec<usize> = (0..depth).collect();
    let start = Instant::now();
    while start.elapsed() < length || free.len() < depth {
        while start.elapsed() < length
            && let Some(slot) = free.pop()
        {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let offset = ((u128::from(random) * u128::from(places)) >> 64) as u64 * BLOCK_BYTES;
            // SAFETY: each slot has a part of the buffers of its own.
            let buffer = unsafe { buffers.add(slot * read_bytes) };
            let read = opcode::Read::new(types::Fd(file.as_raw_fd()), buffer, read_bytes as u32);
            begun[slot] = Instant::now();
            // SAFETY: the buffers live as long as the program.
            unsafe { ring.submission().push(&read.offset(offset).build().user_data(slot as u64))? };
        }
        ring.submit_and_wait(1)?;
        for completion in ring.completion() {
            if completion.result() != read_bytes as i32 {
                return Err(format!("a read gave {}", completion.result()).into());
            }
            let slot = completion.user_data() as usize;
            latencies.push(begun[slot].elapsed());
            free.push(slot);
        }
    }
    let seconds = start.elapsed().as_secs_f64();
    latencies.sort_unstable();
    let p99 = latencies.get(latencies.len() * 99 / 100).copied().unwrap_or_default();
    let count = latencies.len();
    println!(
        "reads={count} seconds={seconds:.3} per_second={:.0} p99_us={}",
        count as f64 / seconds,
        p99.as_micros()
    );
    Ok(())
}
