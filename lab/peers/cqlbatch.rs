//! A plain closed-loop CQL load on std alone: text batches of inserts, IN reads, and
//! single-row statements, each sent as an unprepared QUERY frame (protocol v4) on its own
//! connection per thread.  Build: rustc --edition 2021 -O -o cqlbatch cqlbatch.rs
//!
//!   cqlbatch MODE [key=value ...]
//!   MODE   schema | fill | batch | unlogged | in | insert | select
//!          (fill: unlogged batches until each of `rows` keys is written once)
//!   keys   port=9042 threads=16 size=10 per=100 rows=1000000 seconds=30 warmup=10
//!          table=habr.t server=PID seq=0|1 (1: keys in order, each written once)
//! Prints one JSON object.  Loopback only.
use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How often a batch of `fill` is sent again, a second apart.
const FILL_RETRIES: usize = 20;

struct Conn {
    s: TcpStream,
    inb: Vec<u8>,
}

impl Conn {
    fn open(port: u16) -> std::io::Result<Conn> {
        let s = TcpStream::connect(("127.0.0.1", port))?;
        s.set_nodelay(true)?;
        let mut c = Conn { s, inb: Vec::new() };
        let body = b"\x00\x01\x00\x0bCQL_VERSION\x00\x053.0.0";
        c.send(1, body)?;
        let op = c.recv()?;
        assert!(op == 2, "no READY after STARTUP: opcode {op}");
        Ok(c)
    }
    fn send(&mut self, op: u8, body: &[u8]) -> std::io::Result<()> {
        let mut f = vec![4, 0, 0, 0, op];
        f.extend_from_slice(&(body.len() as u32).to_be_bytes());
        f.extend_from_slice(body);
        self.s.write_all(&f)
    }
    fn recv(&mut self) -> std::io::Result<u8> {
        let mut h = [0u8; 9];
        self.s.read_exact(&mut h)?;
        let n = u32::from_be_bytes([h[5], h[6], h[7], h[8]]) as usize;
        self.inb.resize(n, 0);
        self.s.read_exact(&mut self.inb)?;
        Ok(h[4])
    }
    fn query(&mut self, q: &str) -> Result<(), String> {
        let mut f = Vec::with_capacity(q.len() + 16);
        f.extend_from_slice(&[4, 0, 0, 0, 7]);
        f.extend_from_slice(&((q.len() + 7) as u32).to_be_bytes());
        f.extend_from_slice(&(q.len() as u32).to_be_bytes());
        f.extend_from_slice(q.as_bytes());
        f.extend_from_slice(&[0, 1, 0]); // consistency ONE, no flags
        self.s.write_all(&f).map_err(|e| e.to_string())?;
        match self.recv().map_err(|e| e.to_string())? {
            8 => Ok(()),
            _ => Err(String::from_utf8_lossy(&self.inb[..self.inb.len().min(300)]).into_owned()),
        }
    }
    /// Rows in the RESULT just read (kind 2), following the metadata only as far as needed: v4.
    fn rows(&self) -> usize {
        let b = &self.inb;
        let i = |p: usize| u32::from_be_bytes([b[p], b[p + 1], b[p + 2], b[p + 3]]) as usize;
        let sh = |p: usize| u16::from_be_bytes([b[p], b[p + 1]]) as usize;
        if b.len() < 12 || i(0) != 2 {
            return 0;
        }
        let (flags, cols) = (i(4), i(8));
        let mut p = 12;
        if flags & 2 != 0 {
            p += 4 + i(p);
        }
        if flags & 4 == 0 {
            if flags & 1 != 0 {
                p += 2 + sh(p);
                p += 2 + sh(p);
            }
            for _ in 0..cols {
                if flags & 1 == 0 {
                    p += 2 + sh(p);
                    p += 2 + sh(p);
                }
                p += 2 + sh(p);
                p += 2; // native types only
            }
        }
        i(p)
    }
}

fn cpu(pid: &str) -> f64 {
    let s = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let f: Vec<&str> = s.rsplit(')').next().unwrap_or("").split_whitespace().collect();
    if f.len() < 13 {
        return 0.0;
    }
    (f[11].parse::<f64>().unwrap() + f[12].parse::<f64>().unwrap()) / 100.0
}
fn busy() -> f64 {
    let s = std::fs::read_to_string("/proc/stat").unwrap_or_default();
    let f: Vec<f64> =
        s.lines().next().unwrap_or("").split_whitespace().skip(1).map(|x| x.parse().unwrap_or(0.0)).collect();
    (f[0] + f[1] + f[2] + f[5] + f[6]) / 100.0
}
fn rss(pid: &str) -> u64 {
    std::fs::read_to_string(format!("/proc/{pid}/status"))
        .unwrap_or_default()
        .lines()
        .find(|l| l.starts_with("VmRSS"))
        .and_then(|l| l.split_whitespace().nth(1))
        .and_then(|v| v.parse::<u64>().ok())
        .unwrap_or(0)
        / 1024
}

fn main() {
    let mut args = std::env::args().skip(1);
    let mode = args.next().expect("mode");
    let mut o: HashMap<String, String> = HashMap::new();
    for a in args {
        let (k, v) = a.split_once('=').expect("key=value");
        o.insert(k.into(), v.into());
    }
    let get = |k: &str, d: &str| o.get(k).cloned().unwrap_or_else(|| d.to_string());
    let num = |k: &str, d: &str| get(k, d).parse::<u64>().unwrap();
    let (port, threads, size, per, rows) = (
        num("port", "9042") as u16,
        num("threads", "16"),
        num("size", "10") as usize,
        num("per", "100"),
        num("rows", "1000000"),
    );
    let (secs, warm, table, server, seq) = (
        num("seconds", "30"),
        num("warmup", "10"),
        get("table", "habr.t"),
        get("server", ""),
        num("seq", "0") == 1,
    );
    if mode == "schema" {
        let mut c = Conn::open(port).unwrap();
        let ks = table.split('.').next().unwrap();
        c.query(&format!(
            "CREATE KEYSPACE IF NOT EXISTS {ks} \
             WITH replication = {{'class':'SimpleStrategy','replication_factor':1}}"
        ))
        .unwrap();
        c.query(&format!("CREATE TABLE IF NOT EXISTS {table} (id bigint PRIMARY KEY, title text)")).unwrap();
        println!("ok");
        return;
    }
    let fill = mode == "fill";
    let seq = seq || fill;
    let next = Arc::new(AtomicU64::new(0));
    let (stop, go) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    let mut hs = vec![];
    for t in 0..threads {
        let (mode, table, next, stop, go) =
            (mode.clone(), table.clone(), next.clone(), stop.clone(), go.clone());
        hs.push(std::thread::spawn(move || {
            let mut c = Conn::open(port).unwrap();
            let mut x: u64 = 0x9E3779B97F4A7C15u64.wrapping_mul(t + 1);
            let mut rnd = move || {
                x ^= x << 13;
                x ^= x >> 7;
                x ^= x << 17;
                x
            };
            let (mut lat, mut got, mut errs, mut first) = (Vec::<u32>::new(), 0u64, 0u64, None);
            let mut q = String::new();
            let mut counting = false;
            while !stop.load(Relaxed) {
                q.clear();
                let base = if seq { next.fetch_add(per, Relaxed) } else { 0 };
                if fill && base >= rows {
                    break;
                }
                let mut key = |i: u64| if seq { base + i } else { rnd() % rows };
                use std::fmt::Write as _;
                match mode.as_str() {
                    "batch" | "unlogged" | "fill" => {
                        q.push_str(if mode == "batch" { "BEGIN BATCH " } else { "BEGIN UNLOGGED BATCH " });
                        for i in 0..per {
                            let k = key(i);
                            let _ = write!(q, "INSERT INTO {table} (id, title) VALUES ({k},'");
                            for j in 0..size {
                                q.push((b'a' + ((k as usize + j * 7) % 26) as u8) as char);
                            }
                            q.push_str("'); ");
                        }
                        q.push_str("APPLY BATCH");
                    }
                    "in" => {
                        let _ = write!(q, "SELECT * FROM {table} WHERE id IN (");
                        for i in 0..per {
                            if i > 0 {
                                q.push(',');
                            }
                            // One of each stretch of keys: no key twice, so `per` rows come back.
                            let stretch = (rows / per).max(1);
                            let _ = write!(q, "{}", i * stretch + key(0) % stretch);
                        }
                        q.push(')');
                    }
                    "insert" => {
                        let k = key(0);
                        let _ = write!(q, "INSERT INTO {table} (id, title) VALUES ({k},'");
                        for j in 0..size {
                            q.push((b'a' + ((k as usize + j * 7) % 26) as u8) as char);
                        }
                        q.push_str("')");
                    }
                    "select" => {
                        let _ = write!(q, "SELECT * FROM {table} WHERE id = {}", key(0));
                    }
                    m => panic!("mode {m}"),
                }
                if !counting && go.load(Relaxed) {
                    counting = true;
                }
                let t0 = Instant::now();
                let mut r = c.query(&q);
                if fill {
                    // A server that is not warm may time out; every key must be there in the end.
                    for _ in 0..FILL_RETRIES {
                        if r.is_err() {
                            std::thread::sleep(Duration::from_secs(1));
                            r = c.query(&q);
                        }
                    }
                    r.as_ref().unwrap();
                }
                if counting {
                    match r {
                        Ok(()) => {
                            lat.push(t0.elapsed().as_micros() as u32);
                            if mode == "in" || mode == "select" {
                                got += c.rows() as u64;
                            }
                        }
                        Err(e) => {
                            errs += 1;
                            first.get_or_insert(e);
                        }
                    }
                }
            }
            (lat, got, errs, first)
        }));
    }
    if fill {
        hs.into_iter().for_each(|h| drop(h.join().unwrap()));
        println!("ok");
        return;
    }
    std::thread::sleep(Duration::from_secs(warm));
    let (t0, s0, m0, b0) = (Instant::now(), cpu(&server), cpu("self"), busy());
    go.store(true, Relaxed);
    std::thread::sleep(Duration::from_secs(secs));
    stop.store(true, Relaxed);
    let (el, sv, me, all, rs) =
        (t0.elapsed().as_secs_f64(), cpu(&server) - s0, cpu("self") - m0, busy() - b0, rss(&server));
    let (mut lat, mut got, mut errs, mut first) = (vec![], 0, 0, None);
    for h in hs {
        let (l, g, e, f) = h.join().unwrap();
        lat.extend(l);
        got += g;
        errs += e;
        first = first.or(f);
    }
    lat.sort_unstable();
    let n = lat.len().max(1);
    let p = |q: f64| lat.get(((n as f64 * q) as usize).min(n - 1)).copied().unwrap_or(0);
    let items = if matches!(mode.as_str(), "insert" | "select") { 1 } else { per } as f64;
    let reqs = lat.len() as f64;
    println!(
        "{{\"mode\":\"{mode}\",\"size\":{size},\"per\":{per},\"threads\":{threads}\
         ,\"rows\":{rows},\"seconds\":{el:.2},\"requests\":{reqs}\
         ,\"requests_per_s\":{:.0},\"rows_per_s\":{:.0},\"rows_returned\":{got}\
         ,\"avg_us\":{:.0},\"p50_us\":{},\"p95_us\":{},\"p99_us\":{},\"max_us\":{}\
         ,\"errors\":{errs},\"server_cpu_s\":{sv:.2},\"client_cpu_s\":{me:.2},\"other_cpu_s\":{:.2}\
         ,\"server_requests_per_core_s\":{:.0},\"server_rows_per_core_s\":{:.0},\"server_rss_mb\":{rs}}}",
        reqs / el,
        reqs * items / el,
        lat.iter().map(|&x| x as f64).sum::<f64>() / n as f64,
        p(0.5),
        p(0.95),
        p(0.99),
        p(1.0),
        (all - sv - me).max(0.0),
        if sv > 0.0 { reqs / sv } else { 0.0 },
        if sv > 0.0 { reqs * items / sv } else { 0.0 }
    );
    if let Some(e) = first {
        eprintln!("first error: {e}");
    }
}
