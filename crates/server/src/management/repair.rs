//! `/v1/repair`: tables made equal on all their replicas.

use std::collections::BTreeSet;

use axum::extract::State;
use axum::routing::post;
use axum::{Json, Router};
use cluster::metadata::Member;
use coordinator::CoordinatorError;
use coordinator::replicas::RepairExtent;
use management::Repaired;
use ring::TokenRange;
use schema::{Schema, TableId};
use serde::Deserialize;
use uuid::Uuid;

use super::ManagementState;
use super::actions::Target;
use super::answer::{Answer, Refusal};
use super::request::{OptionalBody, token};

pub(super) fn routes() -> Router<ManagementState> {
    Router::new().route("/v1/repair", post(repair))
}

/// What to repair; no keyspace are all that are on the ring.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Wanted {
    keyspace: Option<String>,
    tables: Option<Vec<String>>,
    /// Only ranges of which the node is the first replica.
    primary_range: bool,
    /// Only what lies behind this token, up to `end_token`: around the end of the ring, if that is less.
    start_token: Option<String>,
    end_token: Option<String>,
    /// Only on replicas of these data centres.
    data_centers: Vec<String>,
    /// The same of this node's.
    local_data_center: bool,
    /// Only on these nodes.
    hosts: Vec<String>,
    /// On replicas that live, instead of refusing where one does not.
    force: bool,
}

impl Wanted {
    /// What that means in a ring of these members.
    fn extent(&self, members: &[Member], here: Uuid) -> Result<RepairExtent, Refusal> {
        let mut centers: Vec<String> =
            self.data_centers.iter().map(|center| center.trim().to_owned()).collect();
        if self.local_data_center {
            let own = members.iter().find(|member| member.candidate.host_id == here);
            centers.extend(own.map(|own| own.candidate.data_center.clone()));
        }
        let nodes = match (centers.is_empty(), self.hosts.is_empty()) {
            (true, true) => None,
            (false, true) => Some(nodes_of(&centers, members)?),
            (true, false) => Some(hosts_of(&self.hosts, members)?),
            (false, false) => return Err(Refusal::wrong("Cannot combine -dc and -hosts options.")),
        };
        if self.primary_range && (!self.data_centers.is_empty() || !self.hosts.is_empty()) {
            let what = "Primary range repair should be performed on all nodes in the cluster.";
            return Err(Refusal::wrong(what));
        }
        if nodes.as_ref().is_some_and(|nodes| !nodes.contains(&here)) {
            let part = if centers.is_empty() { "current host" } else { "local data center" };
            return Err(Refusal::wrong(format!("The {part} must be part of the repair")));
        }
        Ok(RepairExtent {
            only_primary: self.primary_range,
            tokens: self.tokens()?,
            nodes,
            must_share: !self.hosts.is_empty(),
            only_living: self.force,
        })
    }

    fn tokens(&self) -> Result<Option<TokenRange>, Refusal> {
        let (Some(start), Some(end)) = (&self.start_token, &self.end_token) else {
            return match (&self.start_token, &self.end_token) {
                (None, None) => Ok(None),
                _ => Err(Refusal::wrong("a part of the ring has a start token and an end token")),
            };
        };
        let range = TokenRange { start: token(start)?, end: token(end)? };
        if range.start == range.end {
            return Err(Refusal::wrong("Start and end tokens must be different."));
        }
        Ok(Some(range))
    }
}

/// The members in these data centres.
fn nodes_of(centers: &[String], members: &[Member]) -> Result<BTreeSet<Uuid>, Refusal> {
    let is_known = |center: &&String| members.iter().any(|member| member.candidate.data_center == **center);
    let unknown: Vec<&str> = centers.iter().filter(|center| !is_known(center)).map(String::as_str).collect();
    if !unknown.is_empty() {
        return Err(Refusal::wrong(format!("data center(s) [{}] not found", unknown.join(", "))));
    }
    let members = members.iter().filter(|member| centers.contains(&member.candidate.data_center));
    Ok(members.map(|member| member.candidate.host_id).collect())
}

/// The members with these addresses.
fn hosts_of(hosts: &[String], members: &[Member]) -> Result<BTreeSet<Uuid>, Refusal> {
    let host_id = |host: &String| {
        let (host, is_at) = (host.trim(), |member: &Member, host: &str| {
            let address = member.candidate.address;
            host.parse() == Ok(address) || host.parse() == Ok(address.ip())
        });
        let member = members.iter().find(|member| is_at(member, host));
        let unknown = || Refusal::wrong(format!("Unknown host specified {host}"));
        member.map(|member| member.candidate.host_id).ok_or_else(unknown)
    };
    hosts.iter().map(host_id).collect()
}

/// Table after table. Whoever goes away ends it behind the table that is being compared.
async fn repair(
    State(state): State<ManagementState>,
    OptionalBody(wanted): OptionalBody<Wanted>,
) -> Answer<Repaired> {
    if state.is_draining() {
        return Err(Refusal::conflict("the node is draining"));
    }
    let schema = state.schema().await?;
    let extent = wanted.extent(&state.view.nodes(), state.view.host_id)?;
    let mut tables = Target { keyspace: wanted.keyspace, tables: wanted.tables }.resolve(&schema)?;
    tables.retain(|table| is_on_ring(&schema, *table));
    let mut repaired = Repaired::default();
    // A lone node has nothing to compare with.
    let Some(repairer) = state.view.repairer() else { return Ok(Json(repaired)) };
    for table in tables {
        let compared = repairer.repair(table, extent.clone()).await;
        let compared = compared.map_err(|error| match error {
            CoordinatorError::RingRefuses { what } => Refusal::wrong(what),
            error => Refusal::failed(&error),
        })?;
        repaired.page_count += compared.page_count;
        repaired.differing_count += compared.differing_count;
        repaired.mended_count += compared.mended_count;
        repaired.partial_count += compared.partial_count;
        repaired.table_count += 1;
    }
    Ok(Json(repaired))
}

fn is_on_ring(schema: &Schema, table: TableId) -> bool {
    let keyspace = schema.keyspace_of(table);
    keyspace.is_some_and(|keyspace| !keyspace.replication.class.ends_with("LocalStrategy"))
}

#[cfg(test)]
mod tests {
    use cluster::metadata::{Candidate, MemberState};

    use super::*;

    /// Two in `dc1`, one in `dc2`.
    fn members() -> Vec<Member> {
        let member = |number: u8, data_center: &str| Member {
            candidate: Candidate {
                host_id: Uuid::from_u128(number.into()),
                address: ([10, 0, 0, number], 7000).into(),
                cql_address: ([10, 0, 0, number], 9042).into(),
                data_center: data_center.to_owned(),
                rack: "r1".to_owned(),
                shard_count: 1,
                num_tokens: 16,
                initial_tokens: Vec::new(),
                history_version: 1,
            },
            tokens: Vec::new(),
            state: MemberState::Normal,
        };
        vec![member(1, "dc1"), member(2, "dc1"), member(3, "dc2")]
    }

    /// What the first member repairs when it is asked for that.
    fn extent(body: serde_json::Value) -> Result<RepairExtent, String> {
        let wanted: Wanted = serde_json::from_value(body).expect("what to repair");
        let refused = |refusal: Refusal| format!("{refusal:?}");
        wanted.extent(&members(), Uuid::from_u128(1)).map_err(refused)
    }

    #[track_caller]
    fn check_refused(body: serde_json::Value, what: &str) {
        let refused = extent(body).expect_err("it is refused");
        assert!(refused.contains(what), "{refused}");
    }

    #[test]
    fn a_repair_is_of_all_replicas_or_those_that_are_named() {
        use serde_json::json;
        let nodes = |numbers: &[u128]| Some(numbers.iter().map(|number| Uuid::from_u128(*number)).collect());
        assert_eq!(extent(json!({})), Ok(RepairExtent::default()));
        let of = |body| extent(body).expect("an extent").nodes;
        assert_eq!(of(json!({"data_centers": ["dc1", "dc2"]})), nodes(&[1, 2, 3]));
        assert_eq!(of(json!({"local_data_center": true, "primary_range": true})), nodes(&[1, 2]));
        let hosts = extent(json!({"hosts": ["10.0.0.1", " 10.0.0.3"], "force": true})).expect("an extent");
        assert_eq!((hosts.nodes, hosts.must_share, hosts.only_living), (nodes(&[1, 3]), true, true));
        check_refused(json!({"data_centers": ["dc2"]}), "The local data center must be part of the repair");
        check_refused(json!({"data_centers": ["dc1", "dc7"]}), "data center(s) [dc7] not found");
        check_refused(json!({"hosts": ["10.0.0.2"]}), "The current host must be part of the repair");
        check_refused(json!({"hosts": ["10.0.0.1", "x"]}), "Unknown host specified x");
        check_refused(
            json!({"data_centers": ["dc1"], "hosts": ["10.0.0.1"]}),
            "Cannot combine -dc and -hosts",
        );
        let primary = "Primary range repair should be performed on all nodes";
        check_refused(json!({"data_centers": ["dc1"], "primary_range": true}), primary);
        check_refused(json!({"hosts": ["10.0.0.1", "10.0.0.2"], "primary_range": true}), primary);
    }

    #[test]
    fn a_part_of_the_ring_has_two_ends() {
        use serde_json::json;
        let part = extent(json!({"start_token": "7", "end_token": "-7"})).expect("an extent").tokens;
        assert_eq!(part, Some(TokenRange { start: types::Token(7), end: types::Token(-7) }));
        check_refused(json!({"start_token": "7"}), "a start token and an end token");
        check_refused(json!({"start_token": "7", "end_token": "x"}), "x is not a token");
        check_refused(json!({"start_token": "7", "end_token": "7"}), "must be different");
    }
}
