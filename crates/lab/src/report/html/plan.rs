//! What was run, as a table and as the file from which it can be run again.

use types::calendar::Day;

use super::super::headline::releases;
use super::super::plot::escaped;
use super::super::words;
use crate::disturbance::Disturbance;
use crate::manifest::{Machine, Manifest, Pace, Plan, Target};

/// The last part of a page.
pub(super) fn section(manifest: &Manifest) -> String {
    let mut rows = plan_rows(&manifest.plan);
    rows.extend(place_rows(manifest));
    let rows: String = rows
        .iter()
        .map(|(name, value)| format!("<tr><th>{}</th><td>{}</td></tr>\n", escaped(name), escaped(value)))
        .collect();
    let json = serde_json::to_string_pretty(manifest).unwrap_or_else(|error| error.to_string());
    format!(
        "<h2>What was run</h2>\n<table class=\"plan\">\n<tbody>\n{rows}</tbody>\n</table>\n\
         <h2>Run it again</h2>\n<p>The manifest lies beside this page, and stands below:</p>\n\
         <pre><code>peristyle bench repeat manifest.json</code></pre>\n\
         <details>\n<summary>manifest.json</summary>\n<pre>{}</pre>\n</details>\n",
        escaped(&json)
    )
}

fn plan_rows(plan: &Plan) -> Vec<(String, String)> {
    let mut rows = vec![row("workload", plan.workload.clone())];
    rows.extend(plan.settings.iter().map(|(name, value)| (format!("setting {name}"), value.clone())));
    rows.extend([
        row("rows", words::count(plan.row_count)),
        row("pace", pace(&plan.pace)),
        row("consistency", plan.consistency.clone()),
        row("keyspace", plan.keyspace.clone()),
        row("connections", words::count(plan.connection_count as u64)),
        row("threads", words::count(plan.thread_count as u64)),
        row("warm-up", words::seconds(plan.warmup_s)),
        row("measured", format!("{} in each repetition", words::seconds(plan.measured_s))),
        row("repetitions", format!("{}, of which {} dropped", plan.repetition_count, plan.dropped_count)),
        row("ended by", format!("more than {} of failed operations", words::percent(plan.error_part_max))),
        row("time-out", format!("{} for an answer", words::seconds(plan.timeout_s))),
        row("seed", plan.seed.to_string()),
    ]);
    if !plan.disturbances.is_empty() {
        let done: Vec<String> = plan.disturbances.iter().map(disturbance).collect();
        rows.push(row("done to servers", format!("{} of each repetition", done.join(", "))));
    }
    rows
}

fn place_rows(manifest: &Manifest) -> Vec<(String, String)> {
    let Manifest { machine, target, plan, .. } = manifest;
    let mut rows = vec![
        row("nodes", plan.nodes.join(", ")),
        row("cluster", target.cluster.clone()),
        row("releases", releases(target)),
        row("replication", target.replication.clone()),
    ];
    rows.extend(target.facts.iter().map(|(name, value)| (name.clone(), value.clone())));
    rows.extend([
        row("servers", servers(target)),
        row("client’s machine", machine_words(machine)),
        row("lab", manifest.lab.clone()),
        row("began", utc(manifest.began_at_s)),
    ]);
    rows
}

fn row(name: &str, value: String) -> (String, String) {
    (name.to_owned(), value)
}

fn disturbance(disturbance: &Disturbance) -> String {
    format!("{} at {}", disturbance.act.past(), words::seconds(disturbance.at_s))
}

fn pace(pace: &Pace) -> String {
    match pace {
        Pace::Open { rate } => format!("open: {} operations/s, answered or not", words::figure(*rate)),
        Pace::Closed { in_flight } => format!("closed: {in_flight} operations always under way"),
    }
}

fn servers(target: &Target) -> String {
    match target.process_ids.is_empty() {
        true => "elsewhere, or not named".to_owned(),
        false => {
            format!("{} on the client’s machine", words::several(target.process_ids.len() as u64, "server"))
        }
    }
}

fn machine_words(machine: &Machine) -> String {
    let (cores, memory) =
        (words::several(machine.core_count as u64, "logical core"), words::bytes(machine.memory_bytes));
    format!("{}, {cores}, {memory} of memory, {}", machine.processor, machine.system)
}

/// A time as people write it.
fn utc(since_1970_s: u64) -> String {
    let (days, seconds) = (since_1970_s / 86_400, since_1970_s % 86_400);
    let Day { year, month, day } = Day::from_epoch_days(days as i64);
    let (hour, minute) = (seconds / 3600, seconds / 60 % 60);
    format!("{year}-{month:02}-{day:02} {hour:02}:{minute:02} UTC")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::example::example;

    #[test]
    fn a_page_tells_all_that_a_run_depends_on() {
        let mut manifest = example().manifest;
        manifest.plan.disturbances = vec!["20:kill:2".parse().unwrap(), "40.5:start:2".parse().unwrap()];
        let section = section(&manifest);
        for value in
            ["ycsb-b", "zipfian", "QUORUM", "replication_factor", "1,000,000", "42", "5.0.4", "24.0 GiB"]
        {
            assert!(section.contains(value), "{value}");
        }
        assert!(
            section
                .contains("<td>node 2 killed at 20 s, node 2 serves again at 40.5 s of each repetition</td>")
        );
        assert!(section.contains("<td>12 s for an answer</td>"));
        assert!(section.contains("4, of which 1 dropped") && section.contains("&quot;seed&quot;: 42"));
    }

    #[test]
    fn times_are_those_of_the_calendar() {
        assert_eq!(utc(0), "1970-01-01 00:00 UTC");
        assert_eq!(utc(951_827_696), "2000-02-29 12:34 UTC");
        assert_eq!(utc(1_764_378_000), "2025-11-29 01:00 UTC");
    }
}
