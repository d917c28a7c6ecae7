//! The management port does what it is told, or says what it did not understand and does nothing.

use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use serde_json::{Value, json};

use super::management::with_table;
use super::support::Node;

/// All that requests can change of a node with the table `k.t`.
fn state(node: &Node) -> Vec<Value> {
    let paths =
        ["/v1/tablestats?keyspace=k&table=t", "/v1/snapshots", "/v1/backups", "/v1/compactionhistory"];
    let mut state: Vec<Value> = paths.iter().map(|path| node.get(path).1).collect();
    state.push(node.get("/v1/compactions").1["throughput_bytes_per_second"].clone());
    state.push(node.get("/v1/info").1["draining"].clone());
    state
}

fn request(line: &str, headers: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "{line} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: {length}\r\n{headers}\r\n{body}"
    )
}

const JSON: &str = "Content-Type: application/json\r\n";

#[test]
fn a_body_that_is_not_understood_is_refused_and_nothing_is_done() {
    let node = with_table();
    let before = state(&node);
    let paths = [
        "flush",
        "compact",
        "drain",
        "stop",
        "verify",
        "scrub",
        "upgradesstables",
        "compactions/auto",
        "compactions/stop",
        "compactions/throughput",
        "import",
        "refresh",
        "snapshot",
        "snapshots/clear",
        "backups",
    ];
    let form = "Content-Type: application/x-www-form-urlencoded\r\n";
    for path in paths {
        let line = format!("POST /v1/{path}");
        let check = |headers: &str, body: &str, expected: u16| {
            let (status, answer) = node.http(&request(&line, headers, body));
            assert_eq!(status, expected, "{path} {headers} {body}: {answer}");
            assert!(answer["error"].as_str().is_some_and(|words| !words.is_empty()), "{path}: {answer}");
        };
        for kind in [form, "", "Content-Type: text/plain\r\n", "Content-Type: application/jsonx\r\n"] {
            check(kind, r#"{"keyspace": "k"}"#, 415);
            check(kind, "not json", 415);
        }
        for body in [
            "not json",
            "{",
            "{} {}",
            "null",
            "[]",
            r#"["k", ["t"]]"#,
            r#""k""#,
            " ",
            r#"{"keyspaces_": "k"}"#,
            r#"{"Keyspace": "k"}"#,
            r#"{"keyspace": 1}"#,
            r#"{"keyspace": ["k"]}"#,
            r#"{"keyspace": "k", "keyspace": "k"}"#,
            r#"{"keyspace": "k", "tables": "t"}"#,
            r#"{"keyspace": "k", "tables": []}"#,
            r#"{"keyspace": "k", "tables": ["t"], "more": true}"#,
        ] {
            check(JSON, body, 400);
        }
    }
    assert_eq!(state(&node), before);
}

#[test]
fn a_body_is_json_however_that_is_spelt_and_none_is_none_whatever_it_is_called() {
    let node = with_table();
    for headers in [JSON, "content-type: Application/JSON; charset=utf-8\r\n"] {
        let flush = node.http(&request("POST /v1/flush", headers, r#"{"keyspace": "k"}"#));
        assert_eq!(flush, (200, json!({"table_count": 1})));
    }
    for headers in ["", JSON, "Content-Type: application/x-www-form-urlencoded\r\n"] {
        assert_eq!(
            node.http(&request("POST /v1/compactions/stop", headers, "")),
            (200, json!({"stopped": 0}))
        );
        let (status, needs) = node.http(&request("POST /v1/backups", headers, ""));
        assert_eq!((status, &needs), (400, &json!({"error": "this path needs a JSON object as its body"})));
    }
}

#[test]
fn what_contradicts_itself_or_is_not_there_is_refused() {
    let node = with_table();
    let before = state(&node);
    let refused = |path: &str, body: &str, expected: u16| {
        let (status, answer) = node.post(path, body);
        assert_eq!(status, expected, "{path} {body}: {answer}");
    };
    for keyspace in ["nope", "K", "", "k\\u0000", "../k", "system_views"] {
        let body = format!(r#"{{"keyspace": "{keyspace}"}}"#);
        for path in ["/v1/flush", "/v1/compact", "/v1/upgradesstables", "/v1/verify", "/v1/scrub"] {
            refused(path, &body, 404);
        }
        refused("/v1/compactions/auto", &format!(r#"{{"keyspace": "{keyspace}", "enabled": false}}"#), 404);
        refused("/v1/refresh", &format!(r#"{{"keyspace": "{keyspace}", "table": "t"}}"#), 404);
        refused("/v1/snapshot", &format!(r#"{{"tag": "s", "keyspaces": ["k", "{keyspace}"]}}"#), 404);
        refused("/v1/snapshots/clear", &format!(r#"{{"all": true, "keyspaces": ["{keyspace}"]}}"#), 404);
    }
    refused("/v1/flush", r#"{"tables": ["t"]}"#, 400);
    refused("/v1/flush", r#"{"keyspace": "k", "tables": ["t", "nope"]}"#, 404);
    refused("/v1/compact", r#"{"user_defined": []}"#, 400);
    refused("/v1/compact", r#"{"user_defined": [","]}"#, 400);
    refused("/v1/compact", r#"{"user_defined": ["x"], "keyspace": "k"}"#, 400);
    refused("/v1/compact", r#"{"keyspace": "k", "start_token": "x"}"#, 400);
    refused("/v1/snapshot", r#"{"tag": "s", "table": "t"}"#, 400);
    refused("/v1/snapshot", r#"{"tag": "s", "keyspaces": ["k"], "table": "nope"}"#, 404);
    refused("/v1/snapshots/clear", "{}", 400);
    refused("/v1/import", r#"{"keyspace": "k", "table": "t"}"#, 400);
    refused("/v1/import", r#"{"keyspace": "k", "table": "t", "directories": ["/tmp", "tmp"]}"#, 400);
    refused("/v1/refresh", r#"{"keyspace": "k", "table": "t", "directories": ["/tmp"]}"#, 400);
    assert_eq!(state(&node), before);
}

#[test]
fn a_snapshot_is_not_called_what_no_directory_may_be_called() {
    let node = with_table();
    let before = state(&node);
    let long = "x".repeat(256);
    for tag in ["", "a/b", "../../up", "..", ".hidden", "a\nb", "a\0b", "a\\b", &long] {
        for keyspaces in [json!(["k"]), json!([])] {
            let body = json!({"tag": tag, "keyspaces": keyspaces});
            let (status, answer) = node.post("/v1/snapshot", &body.to_string());
            assert_eq!(status, 400, "{tag:?}: {answer}");
        }
    }
    assert_eq!(state(&node), before);
    let tag = &long[1..];
    let body = json!({"tag": tag, "keyspaces": ["k"]}).to_string();
    assert_eq!(node.post("/v1/snapshot", &body), (200, json!({"table_count": 1})));
    let again = json!({"error": format!("Snapshot {tag} already exists.")});
    assert_eq!(node.post("/v1/snapshot", &body), (400, again));
    assert_eq!(node.get("/v1/snapshots").1["snapshots"][0]["tag"], json!(tag));
}

#[test]
fn snapshots_of_a_dropped_keyspace_can_be_cleared_by_its_name() {
    let node = with_table();
    assert_eq!(node.post("/v1/snapshot", r#"{"tag": "s", "keyspaces": ["k"]}"#).0, 200);
    node.client().query("DROP KEYSPACE k");
    let count = node.get("/v1/snapshots").1["snapshots"].as_array().map(Vec::len);
    assert!(count.is_some_and(|count| count >= 1));
    let cleared = node.post("/v1/snapshots/clear", r#"{"all": true, "keyspaces": ["k"]}"#);
    assert_eq!(cleared.0, 200, "{}", cleared.1);
    assert_eq!(node.get("/v1/snapshots").1["snapshots"], json!([]));
}

#[test]
fn parameters_and_bodies_stand_where_they_belong() {
    let node = with_table();
    let before = state(&node);
    for path in ["/v1/flush?keyspace=k", "/v1/compact?x", "/v1/drain?now=1"] {
        let (status, answer) = node.post(path, "");
        assert_eq!((status, answer), (400, json!({"error": "this path takes no parameters"})), "{path}");
    }
    for path in [
        "/v1/info?x=1",
        "/v1/status?keyspce=k",
        "/v1/status?table=t",
        "/v1/status?keyspace=k&keyspace=k",
        "/v1/tablestats?keyspace=k&tabel=t",
    ] {
        assert_eq!(node.get(path).0, 400, "{path}");
    }
    assert_eq!(node.http(&request("GET /v1/status", JSON, r#"{"keyspace": "k"}"#)).0, 400);
    assert_eq!(node.http(&request("DELETE /v1/snapshots", "", "")).0, 405);
    assert_eq!(state(&node), before);
}

#[test]
fn who_calls_the_node_by_the_name_of_another_or_is_a_web_page_is_refused() {
    let node = Node::start();
    let drain = |headers: &str| {
        node.http(&format!(
            "POST /v1/drain HTTP/1.1\r\n{headers}Content-Length: 0\r\nConnection: close\r\n\r\n"
        ))
    };
    for host in ["evil.example", "evil.example:7199", "localhost.evil.example", "8.8.8.8"] {
        let (status, answer) = drain(&format!("Host: {host}\r\n"));
        assert_eq!(status, 403, "{host}: {answer}");
        assert!(answer["error"].as_str().is_some_and(|words| words.contains("localhost")), "{answer}");
    }
    assert_eq!(drain("").0, 400, "no name at all");
    let page = drain("Host: 127.0.0.1\r\nOrigin: http://example.org\r\n");
    assert_eq!(page, (403, json!({"error": "not for web pages"})));
    assert_eq!(node.get("/v1/info").1["draining"], json!(false));
}

/// A file with the token `secret`, which these may read and write.
#[expect(clippy::disallowed_methods, reason = "a test sets up its files")]
fn token_file(directory: &Path, mode: u32) -> std::path::PathBuf {
    let path = directory.join("token");
    std::fs::write(&path, "secret\n").expect("written");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).expect("set");
    path
}

#[test]
fn where_there_is_a_token_nobody_is_served_without_it() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = token_file(directory.path(), 0o600);
    let node = Node::try_with(|options| options.management_token_file = Some(path)).expect("a node");
    let info = |headers: &str| {
        node.http(&format!("GET /metrics HTTP/1.1\r\nHost: db.example\r\nConnection: close\r\n{headers}\r\n"))
    };
    assert_eq!(info("Authorization: Bearer secret\r\n").0, 200);
    for headers in ["", "Authorization: Bearer secreT\r\n", "Authorization: Basic c2VjcmV0\r\n"] {
        let (status, answer) = info(headers);
        assert_eq!(status, 401, "{answer}");
        assert!(answer["error"].as_str().is_some_and(|words| words.contains("token")), "{answer}");
    }
}

#[test]
fn a_port_that_others_reach_is_not_opened_without_a_good_token() {
    let directory = tempfile::tempdir().expect("a directory");
    let refused = |token_file: Option<&Path>| {
        let node = Node::try_with(|options| {
            options.management = Some(SocketAddr::from(([0, 0, 0, 0], 0)));
            options.management_token_file = token_file.map(Path::to_owned);
        });
        node.err().map(|error| error.to_string()).expect("refused")
    };
    assert!(refused(None).contains("set `management_token_file`"), "{}", refused(None));
    let missing = directory.path().join("nothing");
    assert!(refused(Some(&missing)).starts_with("read token file"), "{}", refused(Some(&missing)));
    let open = token_file(directory.path(), 0o644);
    assert!(refused(Some(&open)).contains("others than its owner"), "{}", refused(Some(&open)));
}
