//! The round of tests/cluster/README.md in which a node is lost, by the Rust driver.

mod placement;
mod places;
mod work;

use std::error::Error;
use std::fmt::Debug;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use scylla::client::execution_profile::ExecutionProfile;
use scylla::client::session::Session;
use scylla::client::session_builder::SessionBuilder;
use scylla::statement::Consistency;

use placement::{finds_replicas, tokens_of_hosts_up};
use places::Places;
use work::Work;

const KEYSPACE: &str = "loss_rust";
const WRITERS: usize = 8;
const SETTLE: Duration = Duration::from_secs(30);
const POLL: Duration = Duration::from_millis(100);
/// The node of the contact point: the driver's control connection goes with it.
const LOST: &str = "1";
const LOST_ADDRESS: &str = "127.0.0.1";

type Outcome = Result<(), Box<dyn Error>>;

#[tokio::main]
async fn main() -> Outcome {
    let places = Places::read()?;
    let session = connect().await?;
    sees_the_ring(&session, &places).await?;
    println!("ok: {} hosts with their tokens", places.tokens.len());
    finds_replicas(&session, &places.rows).await?;
    create_table(&session).await?;
    let work = Arc::new(Work::new(session).await?);
    loses_a_node(&work).await?;
    sees_the_ring(work.session(), &places).await?;
    work.has_all_rows().await
}

async fn connect() -> Result<Session, Box<dyn Error>> {
    let profile = ExecutionProfile::builder()
        .consistency(Consistency::Quorum)
        .request_timeout(Some(Duration::from_secs(10)))
        .build();
    let session = SessionBuilder::new()
        .known_node(std::env::var("PERISTYLE_ADDRESS")?)
        .schema_agreement_interval(Duration::from_millis(20))
        .default_execution_profile_handle(profile.into_handle());
    Ok(session.build().await?)
}

async fn create_table(session: &Session) -> Outcome {
    let replication = "{'class': 'NetworkTopologyStrategy', 'replication_factor': 3}";
    session.query_unpaged(format!("CREATE KEYSPACE {KEYSPACE} WITH replication = {replication}"), ()).await?;
    session.query_unpaged(format!("CREATE TABLE {KEYSPACE}.rows (id int PRIMARY KEY, v text)"), ()).await?;
    Ok(())
}

async fn sees_the_ring(session: &Session, places: &Places) -> Outcome {
    wait_for("all hosts are connected, with our tokens", || tokens_of_hosts_up(session) == places.tokens)
        .await
}

async fn loses_a_node(work: &Arc<Work>) -> Outcome {
    let writers: Vec<_> = (0..WRITERS)
        .map(|_| {
            let work = work.clone();
            tokio::spawn(async move { work.write().await })
        })
        .collect();
    goes_on(work, "before").await?;
    cluster("kill").await?;
    goes_on(work, &format!("without node {LOST}")).await?;
    let is_down = || !tokens_of_hosts_up(work.session()).contains_key(LOST_ADDRESS);
    wait_for("the driver sees that it is down", is_down).await?;
    cluster("start").await?;
    goes_on(work, "with it again").await?;
    work.end();
    for writer in writers {
        writer.await?;
    }
    let failures = work.failures.lock().expect("no writer panics");
    match failures.is_empty() {
        true => Ok(()),
        false => Err(format!("failed: kinds of failures: {failures:?}").into()),
    }
}

/// Rows are written for a while.
async fn goes_on(work: &Work, when: &str) -> Outcome {
    let before = work.acknowledged_count();
    tokio::time::sleep(Duration::from_secs_f64(std::env::var("PERISTYLE_REST_SECONDS")?.parse()?)).await;
    let written = work.acknowledged_count() - before;
    println!("ok: {written} rows written {when}");
    match written {
        0 => Err(format!("failed: rows are written {when}").into()),
        _ => Ok(()),
    }
}

async fn cluster(verb: &str) -> Outcome {
    let command = format!("{} {verb} {LOST}", std::env::var("PERISTYLE_CLUSTER")?);
    let status = tokio::task::spawn_blocking(|| Command::new("sh").arg("-c").arg(command).status()).await??;
    equal(&status.success(), &true, verb)
}

async fn wait_for(what: &str, condition: impl Fn() -> bool) -> Outcome {
    let started = Instant::now();
    while !condition() {
        if started.elapsed() > SETTLE {
            return Err(format!("failed: {what}").into());
        }
        tokio::time::sleep(POLL).await;
    }
    Ok(())
}

fn equal<T: PartialEq + Debug>(got: &T, expected: &T, what: &str) -> Outcome {
    match got == expected {
        true => Ok(()),
        false => Err(format!("failed: {what}: got {got:?}, expected {expected:?}").into()),
    }
}
