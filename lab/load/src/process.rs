//! What the kernel knows of a process.

/// CPU seconds used so far; 0 of a process that is not there (no `server=` was given).
pub(crate) fn cpu_seconds(process_id: &str) -> f64 {
    let text = std::fs::read_to_string(format!("/proc/{process_id}/stat")).unwrap_or_default();
    let after_name = text.rsplit(')').next().unwrap_or_default();
    let ticks = |index: usize| after_name.split_whitespace().nth(index)?.parse::<f64>().ok();
    (ticks(11).unwrap_or(0.0) + ticks(12).unwrap_or(0.0)) / 100.0
}
