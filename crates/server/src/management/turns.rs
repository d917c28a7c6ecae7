//! How long each shard was kept by one turn, for `/v1/info` and for metrics.

use std::fmt::Write;
use std::sync::Arc;

use management::Turns;
use runtime::TurnFigures;

/// A shard's longest turns.
pub(super) fn answer((shard, figures): (usize, &Arc<TurnFigures>)) -> Turns {
    let micros = |time: std::time::Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
    Turns {
        shard: shard as u64,
        longest_own_micros: micros(figures.own_longest()),
        longest_queued_micros: micros(figures.queued_longest()),
        over_limit_count: figures.long_count(),
    }
}

/// Appends a histogram of all shards' turns in Prometheus' text form.
pub(super) fn append_metrics(shards: &[Arc<TurnFigures>], out: &mut String) {
    let name = "peristyle_shard_turn_seconds";
    _ = write!(
        out,
        "# HELP {name} How long a shard was kept by one turn of a task.\n# TYPE {name} histogram\n"
    );
    for (shard, figures) in shards.iter().enumerate() {
        let (mut count, mut seconds_at_most) = (0, 0.0);
        for (time, more) in figures.histogram() {
            count += more;
            seconds_at_most += time.as_secs_f64() * more as f64;
            _ = writeln!(out, "{name}_bucket{{shard=\"{shard}\",le=\"{}\"}} {count}", time.as_secs_f64());
        }
        _ = writeln!(out, "{name}_bucket{{shard=\"{shard}\",le=\"+Inf\"}} {count}");
        // What each took is not kept, only between which two limits it was: the upper one is taken.
        _ = writeln!(out, "{name}_sum{{shard=\"{shard}\"}} {seconds_at_most}");
        _ = writeln!(out, "{name}_count{{shard=\"{shard}\"}} {count}");
    }
    for (name, help, seconds) in [
        (
            "longest_own",
            "The longest turn, without the kernel's run queue.",
            TurnFigures::own_longest as fn(&_) -> _,
        ),
        (
            "longest_queued",
            "The longest that a turn stood in the kernel's run queue.",
            TurnFigures::queued_longest,
        ),
    ] {
        let name = format!("peristyle_shard_turn_{name}_seconds");
        _ = write!(out, "# HELP {name} {help}\n# TYPE {name} gauge\n");
        for (shard, figures) in shards.iter().enumerate() {
            _ = writeln!(out, "{name}{{shard=\"{shard}\"}} {}", seconds(figures).as_secs_f64());
        }
    }
}
