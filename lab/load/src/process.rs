//! What the kernel knows of a process.

/// CPU seconds used so far by one process, or several with commas between them; 0 of a process that is not there (no
/// `server=` was given).
pub(crate) fn cpu_seconds(process_ids: &str) -> f64 {
    process_ids.split(',').map(cpu_seconds_of).sum()
}

fn cpu_seconds_of(process_id: &str) -> f64 {
    let text = std::fs::read_to_string(format!("/proc/{process_id}/stat")).unwrap_or_default();
    let after_name = text.rsplit(')').next().unwrap_or_default();
    let ticks = |index: usize| after_name.split_whitespace().nth(index)?.parse::<f64>().ok();
    (ticks(11).unwrap_or(0.0) + ticks(12).unwrap_or(0.0)) / 100.0
}

/// Seconds in which threads were ready to run and had no core, over all threads; 0 of no process. Of one
/// thread close to the seconds that passed, it was starved: what it did then says nothing about it.
pub(crate) fn waited_seconds(process_id: &str) -> f64 {
    let Ok(tasks) = std::fs::read_dir(format!("/proc/{process_id}/task")) else { return 0.0 };
    let waited = |folder: std::path::PathBuf| {
        let text = std::fs::read_to_string(folder.join("schedstat")).ok()?;
        text.split_whitespace().nth(1)?.parse::<f64>().ok()
    };
    tasks.flatten().filter_map(|task| waited(task.path())).sum::<f64>() / 1e9
}
