//! Replication strategies: how many copies there are, and by which rule nodes are chosen for them.

use std::collections::BTreeMap;

use schema::Replication;

use crate::RingError;

/// Where Cassandra's strategies are; classes without a package are there, too.
const PACKAGE: &str = "org.apache.cassandra.locator.";
const FACTOR: &str = "replication_factor";

/// A replication strategy with its factors. Keyspaces with equal ones can share a
/// [`Placement`](crate::Placement).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Strategy {
    /// `LocalStrategy`: each node has all tokens for itself.
    Local,
    /// `SimpleStrategy`: the owner of the token and the next different nodes along the ring, wherever
    /// they stand.
    Simple {
        /// How many replicas.
        factor: u32,
    },
    /// `NetworkTopologyStrategy`: for each data centre the next nodes along the ring that stand in it,
    /// in different racks as far as there are racks.
    NetworkTopology {
        /// How many replicas in which data centre. Those that are not named have none.
        factors: BTreeMap<String, u32>,
    },
}

impl Strategy {
    /// The strategy that a keyspace's options name. They are whole: `replication_factor` of
    /// `NetworkTopologyStrategy` was expanded to the data centres when the statement was run.
    ///
    /// # Errors
    /// [`RingError::UnknownStrategy`] for a class that we do not have, [`RingError::BadFactor`] for a
    /// factor that is missing or no number. Transient replicas (`3/1`) are none of ours.
    pub fn of(replication: &Replication) -> Result<Self, RingError> {
        let options = &replication.options;
        match replication.class.strip_prefix(PACKAGE).unwrap_or(&replication.class) {
            "LocalStrategy" => Ok(Strategy::Local),
            "SimpleStrategy" => {
                let text = options.get(FACTOR).map_or("", String::as_str);
                Ok(Strategy::Simple { factor: parse(FACTOR, text)? })
            }
            "NetworkTopologyStrategy" => {
                let factors = options.iter().map(|(center, text)| Ok((center.clone(), parse(center, text)?)));
                Ok(Strategy::NetworkTopology { factors: factors.collect::<Result<_, RingError>>()? })
            }
            _ => Err(RingError::UnknownStrategy { class: replication.class.clone() }),
        }
    }
}

/// A factor: `3`, or `3/0`, which is the same without transient replicas.
fn parse(option: &str, text: &str) -> Result<u32, RingError> {
    let number = text.strip_suffix("/0").unwrap_or(text);
    number.parse().map_err(|_| RingError::BadFactor { option: option.to_owned(), text: text.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(class: &str, options: &[(&str, &str)], expected: Result<Strategy, &str>) {
        let options = options.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let replication = Replication { class: class.to_owned(), options: options.collect() };
        let strategy = Strategy::of(&replication).map_err(|error| error.to_string());
        assert_eq!(strategy, expected.map_err(str::to_owned), "{replication:?}");
    }

    #[test]
    fn options_of_a_keyspace_name_a_strategy() {
        let full = "org.apache.cassandra.locator.SimpleStrategy";
        check(full, &[(FACTOR, "3")], Ok(Strategy::Simple { factor: 3 }));
        check("SimpleStrategy", &[(FACTOR, "3/0")], Ok(Strategy::Simple { factor: 3 }));
        check("LocalStrategy", &[], Ok(Strategy::Local));
        let factors = BTreeMap::from([("dc1".to_owned(), 3), ("dc2".to_owned(), 0)]);
        check(
            "NetworkTopologyStrategy",
            &[("dc1", "3"), ("dc2", "0")],
            Ok(Strategy::NetworkTopology { factors }),
        );
    }

    #[test]
    fn other_classes_and_what_is_no_factor_are_refused() {
        check("EverywhereStrategy", &[], Err("replication strategy EverywhereStrategy is not known"));
        let bad =
            |text| format!("replication option replication_factor is {text:?}, not a number of replicas");
        for text in ["x", "-1", "3/1", ""] {
            check("SimpleStrategy", &[(FACTOR, text)], Err(&bad(text)));
        }
        check("SimpleStrategy", &[], Err(&bad("")));
    }
}
