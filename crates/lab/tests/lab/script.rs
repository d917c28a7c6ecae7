//! Workloads that are texts, over a server whose behaviour is known.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use lab::{Pace, Plan, Preparation, Watch};
use protocol::Consistency;

use crate::measured::{self, measured};
use crate::stub::{Manners, Stub};

/// Two threads, so that they share what partitions hold.
fn plan(stub: &Stub, workload: &str) -> Plan {
    let plan = measured::plan(stub, workload, Pace::Closed { in_flight: 4 });
    Plan { thread_count: 2, measured_s: 1.0, repetition_count: 2, ..plan }
}

#[test]
fn a_bundled_script_is_loaded_measured_and_checked() {
    let stub = Stub::start(Manners { delay: Duration::from_millis(1), ..Manners::default() });
    let results = measured(&plan(&stub, "tlp-keyvalue")).unwrap();
    assert_eq!(results.repetitions.len(), 2);
    for repetition in &results.repetitions {
        let kinds: Vec<&str> = repetition.kinds.iter().map(|kind| kind.kind.as_str()).collect();
        assert_eq!(kinds, ["read", "write"]);
        let total = repetition.total();
        assert!(total.response.count() > 100, "{}", total.response.count());
        assert_eq!((total.wrong_count, total.error_count), (0, 0), "{:?}", repetition.wrongs);
    }
}

#[test]
fn a_wrong_answer_is_found() {
    let stub = Stub::start(Manners { mixes_every: Some(10), ..Manners::default() });
    let results = measured(&plan(&stub, "tlp-keyvalue")).unwrap();
    let repetition = &results.repetitions[0];
    let reads = repetition.kinds[0].total();
    let expected = (reads.response.count() + reads.wrong_count) / 10;
    assert!(reads.wrong_count > 0 && reads.wrong_count.abs_diff(expected) <= 4, "{}", reads.wrong_count);
    let wrong = repetition.wrongs.keys().next().unwrap();
    assert!(
        wrong.starts_with("value of 001.0.") && wrong.ends_with("is not what was written there"),
        "{wrong}"
    );
}

#[test]
fn a_script_of_a_file_is_repeated_from_the_manifest_alone() {
    let stub = Stub::start(Manners::default());
    let folder = std::env::temp_dir().join(format!("peristyle-lab-script-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join("mine.toml");
    std::fs::write(&file, MINE).unwrap();
    let mut first = plan(&stub, file.to_str().unwrap());
    first.settings.insert("bytes".to_owned(), "60".to_owned());
    let results = measured(&first).unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
    let kept = serde_json::to_string(&results.manifest.plan).unwrap();
    let again: Plan = serde_json::from_str(&kept).unwrap();
    assert_eq!((again.workload.as_str(), again.script.as_deref()), ("mine", Some(MINE)));
    let results = measured(&again).unwrap();
    assert_eq!(results.repetitions[0].total().wrong_count, 0);
    assert!(results.repetitions[0].total().response.count() > 0);
}

const MINE: &str = r#"
name = "mine"
about = "one text of each key"
tables = ["CREATE TABLE IF NOT EXISTS {keyspace}.mine (key text PRIMARY KEY, note text)"]

[settings]
bytes = 40

[values]
key = { kind = "template", text = "{hash:12}" }
note = { kind = "derived", of = ["key"], bytes = "{bytes}" }

[load]
statement = "INSERT INTO {keyspace}.mine (key, note) VALUES (?, ?)"
values = ["key", "note"]

[[operation]]
name = "read"
statement = "SELECT key, note FROM {keyspace}.mine WHERE key = ?"
values = ["key"]
rows = 1
"#;

#[test]
fn what_can_not_be_run_is_refused_in_words() {
    let stub = Stub::start(Manners::default());
    let refused = |change: &dyn Fn(&mut Plan)| {
        let mut plan = Plan { script: Some(MINE.to_owned()), ..plan(&stub, "mine") };
        change(&mut plan);
        measured(&plan).unwrap_err().to_string()
    };
    let text = |from: &str, to: &str| refused(&|plan| plan.script = Some(MINE.replace(from, to)));
    assert!(
        refused(&|plan| drop(plan.settings.insert("colour".to_owned(), "red".to_owned())))
            .contains("there is no setting 'colour': it has bytes")
    );
    assert!(text("\"template\", text", "\"tmplate\", text").contains("unknown variant `tmplate`"));
    assert!(text("values = [\"key\"]", "values = []").contains("there are 1 markers and 0 values"));
    let number = "kind = \"number\", from = 0, to = 9";
    let misfit = text("kind = \"template\", text = \"{hash:12}\"", number);
    assert!(misfit.contains("'key' can not make a value of type text for key"), "{misfit}");
    assert!(
        refused(&|plan| (plan.workload, plan.script) = ("tlp-nothing".to_owned(), None))
            .contains("no workload 'tlp-nothing'")
    );
}

/// A counter of eight characters, which never counts.
const COUNTED: &str = r#"
name = "counted"
about = "increments that are lost"
partitions = 20
tables = ["CREATE TABLE {keyspace}.t (key text PRIMARY KEY, field0 text)"]

[values]
key = { kind = "template", text = "row{partition:5}" }
field0 = { kind = "letters", bytes = 10 }

[load]
statement = "INSERT INTO {keyspace}.t (key, field0) VALUES (?, ?)"
values = ["key", "field0"]

[[operation]]
name = "add"
statement = "UPDATE {keyspace}.t SET field0 = ? WHERE key = ?"
values = ["field0", "key"]

[audit]
counts = "add"
statement = "SELECT key FROM {keyspace}.t WHERE key = ?"
values = ["key"]
"#;

#[test]
fn counters_are_read_where_what_was_acknowledged_must_be_seen() {
    let stub = Stub::start(Manners::default());
    let mut plan = Plan { measured_s: 0.5, repetition_count: 1, ..plan(&stub, "counted") };
    (plan.script, plan.row_count) = (Some(COUNTED.to_owned()), 20);
    let stop = AtomicBool::new(false);
    let mut watch = Watch { tell: &mut |_| {}, loaded: &mut |_, _| {}, stop: &stop };
    let results =
        lab::run(&plan, &Preparation { loads: true, ..Preparation::default() }, &mut watch).unwrap();
    let audit = results.repetitions[0].audit.unwrap();
    assert!(audit.counted == 0 && audit.acknowledged_count > 0, "{audit:?}");
    assert!(!results.repetitions[0].wrongs.is_empty(), "what was lost is told");
    let levels = stub.read_levels();
    assert_eq!(levels.len(), 40, "each counter is read before and afterwards");
    assert!(levels.iter().all(|level| *level == Consistency::All), "the plan's ONE would not do");
}
