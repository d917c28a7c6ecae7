//! What the kernel knows of processes and of this machine.

use std::collections::BTreeMap;

use crate::manifest::Machine;

/// Clock ticks of `/proc`: a hundred each second on Linux, whatever the kernel's own are.
const TICKS_PER_SECOND: f64 = 100.0;

/// What was used, up to now or between two moments.
#[derive(Clone, Debug, Default)]
pub(crate) struct Usage {
    /// Of which servers.
    pub(crate) process_ids: Vec<u32>,
    /// CPU seconds of this process.
    pub(crate) client_cpu_s: f64,
    /// CPU seconds of the servers' processes, if they were named and live.
    pub(crate) server_cpu_s: Option<f64>,
    /// Their memory.
    pub(crate) server_resident_bytes: Option<u64>,
    /// Bytes that they have read from disks, and written.
    pub(crate) server_disk_bytes: Option<(u64, u64)>,
    /// Hits and requests of their caches, by name.
    pub(crate) caches: BTreeMap<String, (u64, u64)>,
}

impl Usage {
    /// Up to now, of this process and of those that serve.
    pub(crate) fn now(process_ids: &[u32]) -> Usage {
        let sum = |of: &dyn Fn(&str) -> Option<f64>| {
            let each = process_ids.iter().map(|id| of(&id.to_string()));
            each.sum::<Option<f64>>().filter(|_| !process_ids.is_empty())
        };
        Usage {
            process_ids: process_ids.to_vec(),
            client_cpu_s: cpu_s("self").unwrap_or(0.0),
            server_cpu_s: sum(&cpu_s),
            server_resident_bytes: sum(&|id| resident_bytes(id).map(|bytes| bytes as f64))
                .map(|sum| sum as u64),
            server_disk_bytes: disk_bytes(process_ids),
            caches: BTreeMap::new(),
        }
    }

    /// What was used since an earlier moment; the memory is that of now.
    pub(crate) fn since(&self, before: &Usage) -> Usage {
        // What a process has used that is gone now, nobody knows.
        let are_same = self.process_ids == before.process_ids;
        let cpu = self.server_cpu_s.zip(before.server_cpu_s).filter(|_| are_same);
        let server_cpu_s = cpu.map(|(now, before)| now - before);
        let disk = self.server_disk_bytes.zip(before.server_disk_bytes).filter(|_| are_same);
        Usage {
            process_ids: self.process_ids.clone(),
            client_cpu_s: self.client_cpu_s - before.client_cpu_s,
            server_cpu_s,
            server_resident_bytes: self.server_resident_bytes,
            server_disk_bytes: disk.map(|(now, before)| less(now, before)),
            caches: self
                .caches
                .iter()
                .filter_map(|(name, now)| Some((name.clone(), less(*now, *before.caches.get(name)?))))
                .collect(),
        }
    }
}

/// Both counters since an earlier moment; a process that began anew counts from nothing.
fn less(now: (u64, u64), before: (u64, u64)) -> (u64, u64) {
    (now.0.saturating_sub(before.0), now.1.saturating_sub(before.1))
}

/// What the processes have read from disks and written to them, if all of them are there.
fn disk_bytes(process_ids: &[u32]) -> Option<(u64, u64)> {
    let mut sum = None;
    for id in process_ids {
        let text = std::fs::read_to_string(format!("/proc/{id}/io")).ok()?;
        let figure =
            |name: &str| text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse::<u64>().ok());
        let (read, written) = sum.unwrap_or((0, 0));
        sum = Some((read + figure("read_bytes:")?, written + figure("write_bytes:")?));
    }
    sum
}

fn cpu_s(process_id: &str) -> Option<f64> {
    let text = std::fs::read_to_string(format!("/proc/{process_id}/stat")).ok()?;
    // The name, in brackets, may hold spaces.
    let fields: Vec<&str> = text.rsplit(')').next()?.split_whitespace().collect();
    let ticks = |index: usize| fields.get(index)?.parse::<f64>().ok();
    Some((ticks(11)? + ticks(12)?) / TICKS_PER_SECOND)
}

/// Seconds for which this thread was ready to run and had no core, since its start; 0 where the kernel does not tell.
pub(crate) fn thread_waited_s() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    text.split_whitespace().nth(1).and_then(|ns| ns.parse::<f64>().ok()).unwrap_or(0.0) / 1e9
}

fn resident_bytes(process_id: &str) -> Option<u64> {
    let text = std::fs::read_to_string(format!("/proc/{process_id}/status")).ok()?;
    kibibytes(&text, "VmRSS:")
}

/// The figure of a line as `VmRSS:  1234 kB`, in bytes.
fn kibibytes(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse::<u64>().ok().map(|figure| figure * 1024)
}

/// This machine.
pub(crate) fn machine() -> Machine {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let processors = read("/proc/cpuinfo");
    let named = processors.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
    Machine {
        processor: named.map_or_else(|| "unknown".to_owned(), |(_, name)| name.trim().to_owned()),
        core_count: std::thread::available_parallelism().map_or(1, usize::from),
        memory_bytes: kibibytes(&read("/proc/meminfo"), "MemTotal:").unwrap_or(0),
        system: format!("Linux {}", read("/proc/sys/kernel/osrelease").trim()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_uses_what_the_kernel_tells() {
        let usage = Usage::now(&[std::process::id()]);
        assert!(usage.server_resident_bytes.is_some_and(|bytes| bytes > 1 << 20));
        assert!(usage.server_cpu_s.is_some());
        assert!(machine().memory_bytes > 1 << 20);
    }

    #[test]
    fn of_processes_that_are_not_there_nothing_is_told() {
        assert!(Usage::now(&[]).server_cpu_s.is_none());
        assert!(Usage::now(&[u32::MAX]).server_cpu_s.is_none());
    }
}
