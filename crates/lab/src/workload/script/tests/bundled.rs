//! The scripts that come with the lab.

use super::super::span::Distribution;
use super::*;

fn bundled() -> impl Iterator<Item = (&'static str, ScriptText)> {
    BUNDLED.iter().map(|(name, text)| (*name, read(name, text, &BTreeMap::new()).unwrap()))
}

#[test]
fn each_has_its_name_and_says_what_it_is_and_what_it_mends() {
    for ((name, script), (_, text)) in bundled().zip(BUNDLED) {
        assert_eq!(name, script.name);
        assert!(!script.about.is_empty() && script.about.len() < 110, "{name}");
        assert!(text.starts_with("# "), "{name} says where it is from");
    }
}

#[test]
fn our_own_parser_understands_their_statements() {
    for (name, script) in bundled() {
        let statements = script.statements();
        let all = script.tables.iter().chain(statements.iter().map(|(_, one)| &one.statement));
        for statement in all {
            let statement = statement.replace(KEYSPACE, "ks");
            if let Err(error) = cql::parse_statement(&statement) {
                panic!("{name}: `{statement}`: {error}");
            }
        }
        for (_, statement) in &statements {
            let marker_count = statement.statement.matches('?').count();
            assert_eq!(statement.values.len(), marker_count, "{name}: `{}`", statement.statement);
            assert!(statement.values.iter().all(|value| script.values.contains_key(value)), "{name}");
        }
    }
}

const PAGE: &str = include_str!("../../../../../../docs/lab/workloads.md");

#[test]
fn the_page_names_all_and_its_example_is_one() {
    for (name, _) in BUNDLED {
        assert!(PAGE.contains(&format!("\n| `{name}` | ")), "{name}");
    }
    let example = PAGE.split("```toml\n").nth(1).unwrap().split("```").next().unwrap();
    let script = read("users", example, &BTreeMap::new()).unwrap();
    assert_eq!((script.rows_per_partition, script.partition), (20, Distribution::TrueZipfian(0.99)));
    let statements = script.statements();
    for statement in script.tables.iter().chain(statements.iter().map(|(_, one)| &one.statement)) {
        cql::parse_statement(&statement.replace(KEYSPACE, "ks")).unwrap();
    }
}

#[test]
fn every_setting_can_be_set() {
    for (name, text) in BUNDLED {
        let table: toml::Table = text.parse().unwrap();
        for (setting, value) in table["settings"].as_table().unwrap() {
            let value = if value.is_str() { "uniform".to_owned() } else { value.to_string() };
            let settings = BTreeMap::from([(setting.clone(), value)]);
            read(name, text, &settings).unwrap();
        }
    }
}

#[test]
fn a_plan_is_completed_once_by_name_or_by_file() {
    let by_name = Plan { workload: "tlp-lwt".to_owned(), script: None, ..plan("", 0) }.completed().unwrap();
    assert_eq!((by_name.workload.as_str(), by_name.row_count), ("tlp-lwt", 100_000));
    assert_eq!(
        by_name.script.as_deref(),
        Some(BUNDLED.iter().find(|(name, _)| *name == "tlp-lwt").unwrap().1)
    );
    assert_eq!(by_name.clone().completed().unwrap(), by_name);
    let path = format!("{}/workloads/nb-tabular.toml", env!("CARGO_MANIFEST_DIR"));
    let by_file = Plan { workload: path, script: None, ..plan("", 0) }.completed().unwrap();
    assert_eq!((by_file.workload.as_str(), by_file.row_count), ("nb-tabular", 100_000));
    let own = Plan { workload: "ycsb-a".to_owned(), script: None, ..plan("", 7) };
    assert_eq!(own.clone().completed().unwrap(), own);
    assert_eq!(Plan { row_count: 0, ..own.clone() }.completed().unwrap().row_count, 100_000);
    let missing = Plan { workload: "no/such.toml".to_owned(), script: None, ..own };
    assert_eq!(missing.completed().unwrap_err().to_string(), "read no/such.toml");
}
