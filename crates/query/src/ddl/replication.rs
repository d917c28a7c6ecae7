//! `replication = {'class': …}`: strategies, their factors, and what does not fit the cluster.

use std::collections::BTreeMap;

use schema::Replication;

use super::is_system_keyspace;
use crate::{ClusterFacts, QueryError};

/// Classes without a dot are here.
const PACKAGE: &str = "org.apache.cassandra.locator.";
/// The factor when none is written.
const DEFAULT_FACTOR: &str = "1";
const FACTOR: &str = "replication_factor";

type Options = BTreeMap<String, String>;

fn refuse<T>(message: impl Into<String>) -> Result<T, QueryError> {
    Err(QueryError::Config(message.into()))
}

fn short(class: &str) -> &str {
    class.strip_prefix(PACKAGE).unwrap_or_default()
}

/// What was written, made whole: the class's full name, and factors for all data centres. `before`
/// are the options the keyspace had.
pub(super) fn read(
    written: &[(&str, &str)],
    before: &Options,
    facts: &ClusterFacts,
) -> Result<Replication, QueryError> {
    let mut options: Options =
        written.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    let class = options.remove("class").unwrap_or_default();
    let class = if class.contains('.') { class } else { format!("{PACKAGE}{class}") };
    match short(&class) {
        "OldNetworkTopologyStrategy" => {
            return refuse(
                "The support for the OldNetworkTopologyStrategy has been removed in C* version 4.0. The keyspace \
                 strategy should be switch to NetworkTopologyStrategy",
            );
        }
        "NetworkTopologyStrategy" => expand(&mut options, before, facts),
        "SimpleStrategy" => {
            let factor = before.get(FACTOR).map_or(DEFAULT_FACTOR, String::as_str);
            options.entry(FACTOR.into()).or_insert_with(|| factor.to_owned());
        }
        "LocalStrategy" => {}
        _ => return refuse(format!("Unable to find replication strategy class '{class}'")),
    }
    Ok(Replication { class, options })
}

/// Turns `replication_factor` into a factor for each data centre that has none.
fn expand(options: &mut Options, before: &Options, facts: &ClusterFacts) {
    if options.is_empty() {
        let factor = before.get(FACTOR).map_or(DEFAULT_FACTOR, String::as_str);
        options.insert(FACTOR.into(), factor.to_owned());
    }
    if let Some(written) = options.remove(FACTOR) {
        for (center, factor) in before.iter().filter(|(center, _)| *center != FACTOR) {
            options.entry(center.clone()).or_insert_with(|| factor.clone());
        }
        // A factor that is none expands to nothing; that nothing is refused later.
        let Ok(factor) = Factor::parse(&written) else { return };
        for center in facts.data_centers.keys() {
            options.entry(center.clone()).or_insert_with(|| factor.text());
        }
    }
    options.retain(|_, factor| factor != "0");
}

/// `3`, or `3/1` with one of them transient.
struct Factor {
    all: i32,
}

impl Factor {
    /// # Errors
    /// What Java says is wrong with it.
    fn parse(text: &str) -> Result<Self, String> {
        let number = |text: &str| text.parse::<i32>().map_err(|_| format!("For input string: \"{text}\""));
        let (all, transient) = match text.split_once('/') {
            None => (number(text)?, 0),
            Some((_, transient)) if transient.contains('/') || transient.is_empty() => {
                return Err("Replication factor format is <replicas> or <replicas>/<transient>".to_owned());
            }
            Some((all, transient)) => (number(all)?, number(transient)?),
        };
        if transient != 0 {
            return Err("Transient replication is not enabled on this node".to_owned());
        }
        if all < 0 {
            return Err(format!("Replication factor must be non-negative, found {all}"));
        }
        Ok(Factor { all })
    }

    fn text(&self) -> String {
        self.all.to_string()
    }
}

/// Checks the options of a strategy; gives what the client should be warned of.
pub(super) fn validate(
    keyspace: &str,
    replication: &Replication,
    facts: &ClusterFacts,
) -> Result<Vec<String>, QueryError> {
    let strategy = short(&replication.class);
    let options = &replication.options;
    if strategy == "SimpleStrategy" && !options.contains_key(FACTOR) {
        return refuse("SimpleStrategy requires a replication_factor strategy option.");
    }
    let relevant = options.iter().filter(|(name, _)| strategy != "SimpleStrategy" || *name == FACTOR);
    let mut factors = Vec::new();
    for (name, text) in relevant {
        if strategy == "NetworkTopologyStrategy" && name.eq_ignore_ascii_case(FACTOR) {
            return refuse(
                "replication_factor should not appear as an option at construction time for NetworkTopologyStrategy",
            );
        }
        factors.push((name, Factor::parse(text).map_err(QueryError::Config)?));
    }
    if strategy == "NetworkTopologyStrategy" && options.is_empty() {
        return refuse("Configuration for at least one datacenter must be present");
    }
    let is_known = |name: &String| match strategy {
        "SimpleStrategy" => name == FACTOR,
        _ => facts.data_centers.contains_key(name),
    };
    if let Some(unknown) = options.keys().find(|name| !is_known(name)) {
        return refuse(format!(
            "Unrecognized strategy option {{{unknown}}} passed to {strategy} for keyspace {keyspace}"
        ));
    }
    if is_system_keyspace(keyspace) {
        return Ok(Vec::new());
    }
    let warning = |(name, factor): (&String, Factor)| {
        let (nodes, place) = match facts.data_centers.get(name).filter(|_| strategy != "SimpleStrategy") {
            Some(nodes) => (*nodes, format!(" for datacenter {name}")),
            None => (facts.data_centers.values().sum(), String::new()),
        };
        let factor = factor.all;
        (usize::try_from(factor).is_ok_and(|factor| factor > nodes)).then(|| {
            format!(
                "Your replication factor {factor} for keyspace {keyspace} is higher than the number of nodes {nodes}{place}"
            )
        })
    };
    Ok(factors.into_iter().filter_map(warning).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(written: &[(&str, &str)], expected: Result<&[(&str, &str)], &str>) {
        check_in(&["datacenter1"], written, expected);
    }

    fn check_in(centers: &[&str], written: &[(&str, &str)], expected: Result<&[(&str, &str)], &str>) {
        let facts = with_centers(centers.iter().map(|center| (*center, 1)));
        let answer = read(written, &Options::new(), &facts).and_then(|replication| {
            validate("k", &replication, &facts)?;
            Ok(replication.options)
        });
        let expected =
            expected.map(|pairs| pairs.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect());
        assert_eq!(answer.map_err(|error| error.to_string()), expected.map_err(str::to_owned), "{written:?}");
    }

    fn with_centers<'a>(centers: impl Iterator<Item = (&'a str, usize)>) -> ClusterFacts {
        let data_centers = centers.map(|(name, nodes)| (name.to_owned(), nodes)).collect();
        ClusterFacts { data_centers, ..ClusterFacts::default() }
    }

    #[test]
    fn network_topology_expands_to_all_data_centres() {
        let class = ("class", "NetworkTopologyStrategy");
        let both = ["east", "west"];
        check_in(&both, &[class, ("replication_factor", "3")], Ok(&[("east", "3"), ("west", "3")]));
        check_in(&both, &[class, ("replication_factor", "3"), ("west", "0")], Ok(&[("east", "3")]));
        check_in(&both, &[class, ("west", "2")], Ok(&[("west", "2")]));
        check_in(
            &both,
            &[class, ("east", "1"), ("datacenter1", "1")],
            Err(
                "Unrecognized strategy option {datacenter1} passed to NetworkTopologyStrategy for keyspace k",
            ),
        );
    }

    #[test]
    fn factors_above_the_number_of_nodes_are_warned_of() {
        let facts = with_centers([("east", 2), ("west", 1)].into_iter());
        let warnings = |written: &[(&str, &str)]| {
            let replication = read(written, &Options::new(), &facts).expect("options");
            validate("k", &replication, &facts).expect("valid")
        };
        let simple = |factor| warnings(&[("class", "SimpleStrategy"), ("replication_factor", factor)]);
        assert!(simple("3").is_empty());
        let expected = "Your replication factor 4 for keyspace k is higher than the number of nodes 3";
        assert_eq!(simple("4"), [expected]);
        let expected = "Your replication factor 2 for keyspace k is higher than the number of nodes 1 for datacenter west";
        assert_eq!(
            warnings(&[("class", "NetworkTopologyStrategy"), ("replication_factor", "2")]),
            [expected]
        );
    }

    #[test]
    fn network_topology_expands_to_the_data_centre() {
        let class = ("class", "NetworkTopologyStrategy");
        check(&[class, ("replication_factor", "3")], Ok(&[("datacenter1", "3")]));
        check(&[class, ("datacenter1", "2"), ("replication_factor", "3")], Ok(&[("datacenter1", "2")]));
        check(&[class], Ok(&[("datacenter1", "1")]));
        check(
            &[class, ("replication_factor", "x")],
            Err("Configuration for at least one datacenter must be present"),
        );
        check(
            &[class, ("no_such_dc", "1")],
            Err("Unrecognized strategy option {no_such_dc} passed to NetworkTopologyStrategy for keyspace k"),
        );
    }

    #[test]
    fn factors_are_numbers() {
        let simple = |factor, expected| {
            check(&[("class", "SimpleStrategy"), ("replication_factor", factor)], expected);
        };
        simple("3", Ok(&[("replication_factor", "3")]));
        simple("x", Err("For input string: \"x\""));
        simple("-1", Err("Replication factor must be non-negative, found -1"));
        simple("3/1", Err("Transient replication is not enabled on this node"));
    }
}
