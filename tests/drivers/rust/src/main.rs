//! The round of work of tests/drivers/README.md, with the Rust driver `scylla` (protocol v4).

use std::collections::{BTreeMap, HashMap};
use std::error::Error;
use std::net::IpAddr;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use bigdecimal_04::BigDecimal;
use futures::{StreamExt, TryStreamExt};
use num_bigint_04::BigInt;
use scylla::client::session::Session;
use scylla::client::session_builder::SessionBuilder;
use scylla::response::PagingState;
use scylla::statement::batch::{Batch, BatchType};
use scylla::statement::unprepared::Statement;
use scylla::value::{CqlDate, CqlDuration, CqlTime, CqlTimestamp, CqlTimeuuid, MaybeUnset};
use uuid::Uuid;

const KEYSPACE: &str = "driver_rust";
const ROW_COUNT: i32 = 100_000;
const ROWS_PER_PARTITION: i32 = 1_000;
const IN_FLIGHT: i32 = 1_000;
const RECOVERY: Duration = Duration::from_secs(60);

type Outcome = Result<(), Box<dyn Error>>;

async fn connect() -> Result<Session, Box<dyn Error>> {
    let address = std::env::var("PERISTYLE_ADDRESS").unwrap_or_else(|_| "127.0.0.1:9042".to_owned());
    let session = SessionBuilder::new()
        .known_node(address)
        .schema_agreement_interval(Duration::from_millis(20))
        // This driver learns of others' schema changes by asking, not by events.
        .cluster_metadata_refresh_interval(Duration::from_secs(1));
    Ok(session.build().await?)
}

async fn schema(session: &Session) -> Outcome {
    session.query_unpaged(format!("DROP KEYSPACE IF EXISTS {KEYSPACE}"), ()).await?;
    let replication = "{'class': 'NetworkTopologyStrategy', 'replication_factor': 1}";
    session.query_unpaged(format!("CREATE KEYSPACE {KEYSPACE} WITH replication = {replication}"), ()).await?;
    session.use_keyspace(KEYSPACE, false).await?;
    let numbers = "c_bigint bigint, c_int int, c_smallint smallint, c_tinyint tinyint, c_float float, c_double double, \
                   c_decimal decimal, c_varint varint, c_boolean boolean";
    let texts = "c_ascii ascii, c_text text, c_blob blob, c_inet inet, c_uuid uuid, c_timeuuid timeuuid";
    let times = "c_date date, c_time time, c_timestamp timestamp, c_duration duration";
    let collections = "c_list list<int>, c_set set<text>, c_map map<text, bigint>, c_frozen frozen<map<int, frozen<list<int>>>>";
    for (table, columns) in [("numbers", numbers), ("texts", texts), ("times", times), ("collections", collections)] {
        session.query_unpaged(format!("CREATE TABLE {table} (k int PRIMARY KEY, {columns})"), ()).await?;
    }
    let wide = "CREATE TABLE wide (k int, c int, v text, s text STATIC, PRIMARY KEY (k, c)) WITH CLUSTERING ORDER BY (c DESC)";
    session.query_unpaged(wide, ()).await?;
    session.refresh_metadata().await?;
    let state = session.get_cluster_state();
    let keyspace = state.get_keyspace(KEYSPACE).ok_or("keyspace is not in the metadata")?;
    let wide = keyspace.tables.get("wide").ok_or("table is not in the metadata")?;
    assert_eq!(wide.partition_key, ["k"]);
    assert_eq!(wide.clustering_key, ["c"]);
    assert_eq!(keyspace.tables["numbers"].columns.len(), 10);
    Ok(())
}

async fn every_type(session: &Session) -> Outcome {
    numbers(session).await?;
    texts(session).await?;
    times(session).await?;
    collections(session).await?;
    let nulls = session.prepare("INSERT INTO numbers (k, c_int, c_bigint) VALUES (?, ?, ?)").await?;
    session.execute_unpaged(&nulls, (2, None::<i32>, MaybeUnset::<i64>::Unset)).await?;
    let row: (i32, Option<i32>, Option<i64>) = one(session, "SELECT k, c_int, c_bigint FROM numbers WHERE k = 2").await?;
    assert_eq!(row, (2, None, None));
    Ok(())
}

async fn one<R>(session: &Session, text: &str) -> Result<R, Box<dyn Error>>
where
    R: for<'f, 'm> scylla::deserialize::row::DeserializeRow<'f, 'm>,
{
    let prepared = session.prepare(text).await?;
    let result = session.execute_unpaged(&prepared, ()).await?.into_rows_result()?;
    Ok(result.single_row::<R>()?)
}

async fn numbers(session: &Session) -> Outcome {
    let insert = session
        .prepare("INSERT INTO numbers (k, c_bigint, c_int, c_smallint, c_tinyint, c_float, c_double, c_decimal, c_varint, c_boolean) VALUES (1, ?, ?, ?, ?, ?, ?, ?, ?, ?)")
        .await?;
    let decimal: BigDecimal = "-12345678901234567890.0500".parse()?;
    let varint: BigInt = "-170141183460469231731687303715884105729".parse()?;
    let values = (i64::MIN, i32::MIN, i16::MIN, i8::MIN, 3.5f32, -0.1f64, decimal.clone(), varint.clone(), true);
    session.execute_unpaged(&insert, values).await?;
    let row: (i64, i32, i16, i8, f32, f64, BigDecimal, BigInt, bool) = one(
        session,
        "SELECT c_bigint, c_int, c_smallint, c_tinyint, c_float, c_double, c_decimal, c_varint, c_boolean FROM numbers WHERE k = 1",
    )
    .await?;
    assert_eq!(row, (i64::MIN, i32::MIN, i16::MIN, i8::MIN, 3.5f32, -0.1f64, decimal, varint, true));
    Ok(())
}

async fn texts(session: &Session) -> Outcome {
    let insert = session
        .prepare("INSERT INTO texts (k, c_ascii, c_text, c_blob, c_inet, c_uuid, c_timeuuid) VALUES (1, ?, ?, ?, ?, ?, ?)")
        .await?;
    let inet: IpAddr = "2001:db8::1".parse()?;
    let uuid = Uuid::parse_str("00112233-4455-6677-8899-aabbccddeeff")?;
    let timeuuid: CqlTimeuuid = "13814000-1dd2-11b2-8080-808080808080".parse()?;
    let (ascii, text, blob) = ("abc".to_owned(), "grüße \u{1f30d}".to_owned(), vec![0u8, 255, 16]);
    session.execute_unpaged(&insert, (&ascii, &text, &blob, inet, uuid, timeuuid)).await?;
    let row: (String, String, Vec<u8>, IpAddr, Uuid, CqlTimeuuid) =
        one(session, "SELECT c_ascii, c_text, c_blob, c_inet, c_uuid, c_timeuuid FROM texts WHERE k = 1").await?;
    assert_eq!(row, (ascii, text, blob, inet, uuid, timeuuid));
    Ok(())
}

async fn times(session: &Session) -> Outcome {
    let insert = session.prepare("INSERT INTO times (k, c_date, c_time, c_timestamp, c_duration) VALUES (1, ?, ?, ?, ?)").await?;
    let values = (
        CqlDate((1 << 31) + 19_782),
        CqlTime(86_399_999_999_999),
        CqlTimestamp(-1),
        CqlDuration { months: 1, days: 2, nanoseconds: 3 },
    );
    session.execute_unpaged(&insert, values).await?;
    let row: (CqlDate, CqlTime, CqlTimestamp, CqlDuration) =
        one(session, "SELECT c_date, c_time, c_timestamp, c_duration FROM times WHERE k = 1").await?;
    assert_eq!(row, values);
    Ok(())
}

async fn collections(session: &Session) -> Outcome {
    let insert = session.prepare("INSERT INTO collections (k, c_list, c_set, c_map, c_frozen) VALUES (1, ?, ?, ?, ?)").await?;
    let list = vec![3, 1, 2, 1];
    let set = vec!["a".to_owned(), "b".to_owned()];
    let map = BTreeMap::from([("k".to_owned(), 1i64), ("l".to_owned(), -1)]);
    let frozen = BTreeMap::from([(1, vec![1, 2]), (2, vec![])]);
    session.execute_unpaged(&insert, (&list, &set, &map, &frozen)).await?;
    let row: (Vec<i32>, Vec<String>, BTreeMap<String, i64>, BTreeMap<i32, Vec<i32>>) =
        one(session, "SELECT c_list, c_set, c_map, c_frozen FROM collections WHERE k = 1").await?;
    assert_eq!(row, (list, set, map, frozen));
    Ok(())
}

async fn paging(session: &Session) -> Outcome {
    let insert = session.prepare("INSERT INTO wide (k, c, v) VALUES (?, ?, ?)").await?;
    let writes = (0..ROW_COUNT).map(|i| {
        let insert = &insert;
        async move { session.execute_unpaged(insert, (i / ROWS_PER_PARTITION, i % ROWS_PER_PARTITION, format!("value {i}"))).await }
    });
    futures::stream::iter(writes).buffer_unordered(500).try_for_each(|_| async { Ok(()) }).await?;

    let mut select = session.prepare("SELECT k, c, v FROM wide").await?;
    select.set_page_size(1000);
    let (mut state, mut pages, mut seen) = (PagingState::start(), 0, 0);
    let mut last: HashMap<i32, i32> = HashMap::new();
    loop {
        let (page, next) = session.execute_single_page(&select, (), state).await?;
        pages += 1;
        for row in page.into_rows_result()?.rows::<(i32, i32, String)>()? {
            let (k, c, v) = row?;
            assert_eq!(v, format!("value {}", k * ROWS_PER_PARTITION + c));
            assert_eq!(c, last.insert(k, c).unwrap_or(ROWS_PER_PARTITION) - 1, "falling order");
            seen += 1;
        }
        match next.into_paging_control_flow() {
            ControlFlow::Break(()) => break,
            ControlFlow::Continue(next) => state = next,
        }
    }
    assert_eq!(seen, ROW_COUNT);
    assert!((100..=102).contains(&pages), "{pages} pages");
    let iterated = session.query_iter(Statement::new("SELECT c FROM wide WHERE k = 7").with_page_size(100), ()).await?;
    assert_eq!(iterated.rows_stream::<(i32,)>()?.count().await, 1000);
    Ok(())
}

async fn batches(session: &Session) -> Outcome {
    let insert = session.prepare("INSERT INTO wide (k, c, v) VALUES (?, ?, ?)").await?;
    for (key, kind) in [(1001, BatchType::Logged), (1002, BatchType::Unlogged)] {
        let mut batch = Batch::new(kind);
        let mut values = Vec::new();
        for c in 0..10 {
            batch.append_statement(insert.clone());
            values.push((key, c, format!("batch {c}")));
        }
        session.batch(&batch, values).await?;
        let rows = session.query_unpaged("SELECT c FROM wide WHERE k = ?", (key,)).await?.into_rows_result()?;
        assert_eq!(rows.rows_num(), 10);
    }
    Ok(())
}

async fn in_flight(session: &Session) -> Outcome {
    let select = session.prepare("SELECT v FROM wide WHERE k = ? AND c = ?").await?;
    let reads = (0..IN_FLIGHT).map(|i| {
        let select = &select;
        async move { session.execute_unpaged(select, (i % 100, i)).await.map(|answer| (i, answer)) }
    });
    for (i, answer) in futures::future::try_join_all(reads).await? {
        let (value,) = answer.into_rows_result()?.single_row::<(String,)>()?;
        assert_eq!(value, format!("value {}", i % 100 * ROWS_PER_PARTITION + i));
    }
    Ok(())
}

async fn events(session: &Session) -> Outcome {
    let other = connect().await?;
    let heard = |wanted: bool| {
        let other = &other;
        async move {
            let end = Instant::now() + Duration::from_secs(10);
            loop {
                let state = other.get_cluster_state();
                let known = state.get_keyspace(KEYSPACE).is_some_and(|keyspace| keyspace.tables.contains_key("heard"));
                if known == wanted {
                    return;
                }
                assert!(Instant::now() < end, "no schema event");
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
    };
    session.query_unpaged("CREATE TABLE heard (k int PRIMARY KEY)", ()).await?;
    heard(true).await;
    session.query_unpaged("DROP TABLE heard", ()).await?;
    heard(false).await;
    Ok(())
}

async fn reconnect(session: &Session, restart: &str) -> Outcome {
    let select = session.prepare("SELECT v FROM wide WHERE k = ? AND c = ?").await?;
    let status = tokio::process::Command::new("sh").args(["-c", restart]).status().await?;
    assert!(status.success(), "PERISTYLE_RESTART: {status}");
    let end = Instant::now() + RECOVERY;
    loop {
        match session.execute_unpaged(&select, (3, 4)).await {
            Ok(answer) => {
                assert_eq!(answer.into_rows_result()?.single_row::<(String,)>()?.0, "value 3004");
                break;
            }
            Err(error) => assert!(Instant::now() < end, "no recovery: {error}"),
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let (count,): (i64,) = one(session, "SELECT count(*) FROM wide WHERE k = 9").await?;
    assert_eq!(count, i64::from(ROWS_PER_PARTITION));
    Ok(())
}

fn report(name: &str, started: Instant) {
    println!("ok: {name} ({:.1} s)", started.elapsed().as_secs_f64());
}

#[tokio::main]
async fn main() -> Outcome {
    let session = connect().await?;
    let mut started = Instant::now();
    macro_rules! step {
        ($name:literal, $work:expr) => {
            $work.await?;
            report($name, started);
            started = Instant::now();
        };
    }
    step!("schema", schema(&session));
    step!("every type", every_type(&session));
    step!("paging", paging(&session));
    step!("batches", batches(&session));
    step!("in flight", in_flight(&session));
    step!("events", events(&session));
    if let Ok(restart) = std::env::var("PERISTYLE_RESTART") {
        reconnect(&session, &restart).await?;
        report("reconnect", started);
    }
    session.query_unpaged(format!("DROP KEYSPACE {KEYSPACE}"), ()).await?;
    Ok(())
}
