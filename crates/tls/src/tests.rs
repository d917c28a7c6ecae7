//! Two ends on a network in memory: who talks with whom, and what each side says when they do not.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;

use bytes::BytesMut;
use rcgen::ExtendedKeyUsagePurpose;
use runtime::network::memory::MemoryNetworkOptions;
use runtime::{ByteStream, Clock, Disk, ManualClock, MemoryDisk, MemoryNetwork};
use rustls::pki_types::pem::PemObject;
use tokio::io::AsyncWriteExt;

use super::*;
use crate::certificates::Look;
use crate::testing::{Authority, Says, Shown};

const CONNECTS: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));
const ACCEPTS: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2));

/// The year 2030.
fn clock() -> Arc<dyn Clock> {
    let clock = ManualClock::default();
    clock.set_micros(1_893_456_000_000_000);
    Arc::new(clock)
}

fn files() -> TlsFiles {
    TlsFiles {
        certificate: "/tls/node.crt".into(),
        key: "/tls/node.key".into(),
        authorities: "/tls/ca.crt".into(),
    }
}

fn write(disk: &MemoryDisk, path: &Path, text: &str) {
    disk.create_dir_all(Path::new("/tls")).expect("a folder");
    disk.write_atomically(path, text.as_bytes()).expect("written");
}

fn write_all(disk: &MemoryDisk, shown: &Shown, believed: &str) {
    write(disk, &files().certificate, &shown.certificate);
    write(disk, &files().key, &shown.key);
    write(disk, &files().authorities, believed);
}

fn open_with(
    shown: &Shown,
    believed: &str,
    names: NameCheck,
) -> Result<(Certificates, Arc<MemoryDisk>), TlsError> {
    let disk = Arc::new(MemoryDisk::new());
    write_all(&disk, shown, believed);
    let certificates = Certificates::open(files(), names, Arc::clone(&disk) as Arc<dyn Disk>, clock())?;
    Ok((certificates, disk))
}

fn open(shown: &Shown, believed: &str) -> Certificates {
    open_with(shown, believed, NameCheck::Address).expect("certificates").0
}

/// Two ends of a stream.
async fn streams() -> (ByteStream, ByteStream) {
    let network = MemoryNetwork::new(1, MemoryNetworkOptions::default());
    let address = SocketAddr::new(ACCEPTS, 7000);
    let listener = network.host(ACCEPTS).bind(address, 1).expect("an address").remove(0);
    let listener = listener.open().expect("it listens");
    let host = network.host(CONNECTS);
    let (connected, accepted) = tokio::join!(host.connect(address), listener.accept());
    (connected.expect("a stream"), accepted.expect("a stream").0)
}

async fn read(stream: &mut TlsStream, count: usize) -> std::io::Result<BytesMut> {
    let mut read = BytesMut::new();
    while read.len() < count {
        if std::future::poll_fn(|task| stream.poll_read_some(&mut read, 10_000, task)).await? == 0 {
            break;
        }
    }
    Ok(read)
}

async fn write_to(stream: &mut TlsStream, mut bytes: &[u8]) -> std::io::Result<()> {
    while !bytes.is_empty() {
        let count = std::future::poll_fn(|task| stream.poll_write(bytes, task)).await?;
        bytes = &bytes[count..];
    }
    std::future::poll_fn(|task| stream.poll_flush(task)).await
}

/// What comes of a talk, for who connects and for who accepts.
async fn meet(connects: &Certificates, accepts: &Certificates) -> [Result<(), String>; 2] {
    let (near, far) = streams().await;
    let connecting = async {
        let mut stream = TlsStream::connect(near, &connects.current(), ACCEPTS).await?;
        // Whether the other side believes us is known when it talks.
        write_to(&mut stream, b"question").await?;
        match read(&mut stream, 6).await? {
            answer if answer == "answer" => Ok(()),
            _ => Err(TlsError::Closed),
        }
    };
    let accepting = async {
        let mut stream = TlsStream::accept(far, BytesMut::new(), &accepts.current()).await?;
        let question = read(&mut stream, 8).await?;
        assert!(question.is_empty() || question == "question");
        write_to(&mut stream, b"answer").await?;
        Ok::<_, TlsError>(())
    };
    let (connected, accepted) = tokio::join!(connecting, accepting);
    [connected, accepted].map(|met| met.map_err(|error: TlsError| error.to_string()))
}

#[track_caller]
fn check(met: &[Result<(), String>; 2], connects: &str, accepts: &str) {
    let said = |outcome: &Result<(), String>| outcome.clone().expect_err("no talk");
    assert!(said(&met[0]).contains(connects), "who connects: {}", said(&met[0]));
    assert!(said(&met[1]).contains(accepts), "who accepts: {}", said(&met[1]));
}

fn both(authority: &Authority) -> [Certificates; 2] {
    [CONNECTS, ACCEPTS].map(|address| open(&authority.shown(&Says::of(address)), &authority.pem()))
}

#[tokio::test(start_paused = true)]
async fn ends_of_one_ca_talk_and_those_of_two_do_not() {
    let (ours, theirs) = (both(&Authority::new("ours")), both(&Authority::new("theirs")));
    assert_eq!(meet(&ours[0], &ours[1]).await, [Ok(()), Ok(())]);
    let met = meet(&theirs[0], &ours[1]).await;
    check(
        &met,
        "its certificate is of no CA that is believed here",
        "it does not believe the CA of the certificate",
    );
}

#[tokio::test(start_paused = true)]
async fn who_is_not_believed_learns_it_with_the_first_answer() {
    let (ours, theirs) = (Authority::new("ours"), Authority::new("theirs"));
    let both_pems = format!("{}{}", ours.pem(), theirs.pem());
    // It believes both, and shows what the other one does not believe.
    let connects = open(&theirs.shown(&Says::of(CONNECTS)), &both_pems);
    let accepts = open(&ours.shown(&Says::of(ACCEPTS)), &ours.pem());
    let met = meet(&connects, &accepts).await;
    check(
        &met,
        "it does not believe the CA of the certificate",
        "its certificate is of no CA that is believed here",
    );
    // Both CAs on both sides, as while one follows the other: they talk.
    let accepts = open(&ours.shown(&Says::of(ACCEPTS)), &both_pems);
    assert_eq!(meet(&connects, &accepts).await, [Ok(()), Ok(())]);
}

#[tokio::test(start_paused = true)]
async fn a_certificate_names_the_address_that_was_connected_to() {
    let authority = Authority::new("ours");
    let elsewhere = authority.shown(&Says::of(IpAddr::from([10, 0, 0, 9])));
    let accepts = open(&elsewhere, &authority.pem());
    let shown = authority.shown(&Says::of(CONNECTS));
    let met = meet(&open(&shown, &authority.pem()), &accepts).await;
    check(&met, "does not name the address that was connected to", "it refuses the certificate shown to it");
    let anyone = open_with(&shown, &authority.pem(), NameCheck::None).expect("certificates").0;
    assert_eq!(meet(&anyone, &accepts).await, [Ok(()), Ok(())]);
    // Names do not matter to it, the CA does.
    let stranger = Authority::new("theirs");
    let met = meet(&anyone, &open(&stranger.shown(&Says::of(ACCEPTS)), &stranger.pem())).await;
    check(&met, "its certificate is of no CA", "it does not believe the CA");
}

/// Clocks differ: to one end it is 2030, and to the other one 1980, when the certificate was valid.
#[tokio::test(start_paused = true)]
async fn an_expired_certificate_is_not_believed() {
    let authority = Authority::new("ours");
    let old = Says { years: [1970, 2000], ..Says::of(ACCEPTS) };
    let disk = Arc::new(MemoryDisk::new());
    write_all(&disk, &authority.shown(&old), &authority.pem());
    let slow = ManualClock::default();
    slow.set_micros(315_532_800_000_000);
    let accepts = Certificates::open(files(), NameCheck::Address, disk, Arc::new(slow)).expect("valid then");
    let connects = open(&authority.shown(&Says::of(CONNECTS)), &authority.pem());
    let met = meet(&connects, &accepts).await;
    check(&met, "its certificate has expired", "to it the certificate shown has expired");
}

#[tokio::test(start_paused = true)]
async fn who_shows_no_certificate_is_not_talked_with() {
    let authority = Authority::new("ours");
    let accepts = open(&authority.shown(&Says::of(ACCEPTS)), &authority.pem());
    let (near, far) = streams().await;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut roots = rustls::RootCertStore::empty();
    roots
        .add(rustls::pki_types::CertificateDer::from_pem_slice(authority.pem().as_bytes()).expect("PEM"))
        .expect("CA");
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_root_certificates(roots)
        .with_no_client_auth();
    let shy = Credentials { client: Arc::new(config), server: Arc::clone(&accepts.current().server) };
    let connecting = async {
        let mut stream = TlsStream::connect(near, &shy, ACCEPTS).await.expect("it believes us");
        read(&mut stream, 1).await.expect_err("the other end does not").to_string()
    };
    let accepted = accepts.current();
    let accepting = TlsStream::accept(far, BytesMut::new(), &accepted);
    let (told, accepted) = tokio::join!(connecting, accepting);
    assert!(told.contains("it wants a certificate and was shown none"), "{told}");
    assert!(accepted.expect_err("nobody").to_string().contains("it shows no certificate"));
}

#[tokio::test(start_paused = true)]
async fn what_is_no_tls_is_refused() {
    let authority = Authority::new("ours");
    let [connects, accepts] = both(&authority);
    for garbage in
        [&b"\x16\x03\x01\xff\xff garbage of any kind"[..], b"GET / HTTP/1.1\r\n\r\n", &[0xff; 70_000]]
    {
        let (mut near, far) = streams().await;
        let credentials = accepts.current();
        let accepting = TlsStream::accept(far, BytesMut::from(&garbage[..1]), &credentials);
        let sending = async {
            // It may be cut off in the midst of it.
            _ = near.write_all(&garbage[1..]).await;
            _ = near.shutdown().await;
            near
        };
        let (accepted, _near) = tokio::join!(accepting, sending);
        let said = accepted.expect_err("garbage").to_string();
        assert!(said.starts_with("TLS: "), "{said}");
    }
    let (near, mut far) = streams().await;
    let credentials = connects.current();
    let (connected, _) =
        tokio::join!(TlsStream::connect(near, &credentials, ACCEPTS), far.write_all(&REFUSAL));
    assert!(connected.expect_err("refused").to_string().contains("it talks no TLS"));
    let (near, far) = streams().await;
    drop(far);
    let connected = TlsStream::connect(near, &credentials, ACCEPTS).await;
    assert!(matches!(connected, Err(TlsError::Closed | TlsError::Stream(_))), "{connected:?}");
}

#[tokio::test(start_paused = true)]
async fn long_bytes_go_both_ways_at_once_and_over_threads() {
    let [connects, accepts] = both(&Authority::new("ours"));
    let (near, far) = streams().await;
    let (connecting, accepting) = (connects.current(), accepts.current());
    let (near, far) = tokio::join!(
        TlsStream::connect(near, &connecting, ACCEPTS),
        TlsStream::accept(far, BytesMut::new(), &accepting)
    );
    let (mut near, far) = (near.expect("connected"), far.expect("accepted"));
    let mut far = far.detach().expect("detached").attach().expect("attached");
    let long: Vec<u8> = (0..3_000_000_u32).map(|index| (index % 251) as u8).collect();
    let echo = async {
        let came = read(&mut far, long.len()).await.expect("read");
        write_to(&mut far, &came).await.expect("written");
        far.shutdown().await.expect("closed");
    };
    let ask = async {
        write_to(&mut near, &long).await.expect("written");
        let came = read(&mut near, long.len()).await.expect("read");
        assert!(came == long, "other bytes came back");
        assert!(read(&mut near, 1).await.expect("its end").is_empty());
    };
    tokio::join!(echo, ask);
}

#[test]
fn files_that_are_no_good_are_refused_with_their_name() {
    let (ours, theirs) = (Authority::new("ours"), Authority::new("theirs"));
    let (pem, good, other) = (ours.pem(), ours.shown(&Says::of(ACCEPTS)), ours.shown(&Says::of(ACCEPTS)));
    let refused = |shown: &Shown, believed: &str| {
        let error = open_with(shown, believed, NameCheck::Address).map(|_| ()).expect_err("refused");
        error.to_string()
    };
    let with = |certificate: &str, key: &str| Shown { certificate: certificate.into(), key: key.into() };
    for (shown, believed, said) in [
        (good.clone(), "", "/tls/ca.crt holds no CA's certificate in PEM"),
        (with("", &good.key), &pem, "/tls/node.crt holds no certificate in PEM"),
        (with(&good.certificate, &good.certificate), &pem, "/tls/node.key holds no private key in PEM"),
        (with(&good.certificate, &other.key), &pem, "/tls/node.key: the key is not that of the certificate"),
        (good.clone(), &theirs.pem(), "/tls/node.crt: this certificate is of no CA that is believed here"),
        (
            ours.shown(&Says { years: [1970, 2000], ..Says::of(ACCEPTS) }),
            &pem,
            "/tls/node.crt: this certificate has expired",
        ),
        (
            ours.shown(&Says { years: [2080, 2100], ..Says::of(ACCEPTS) }),
            &pem,
            "/tls/node.crt: this certificate is not valid yet",
        ),
        (
            ours.shown(&Says { uses: vec![ExtendedKeyUsagePurpose::ServerAuth], ..Says::of(ACCEPTS) }),
            &pem,
            "/tls/node.crt: this certificate is not for this use",
        ),
        (with(&"x".repeat(2 << 20), ""), &pem, "/tls/node.crt has 2097152 bytes; 1048576 are the most"),
    ] {
        let error = refused(&shown, believed);
        assert!(error.contains(said), "{error}, not {said}");
    }
    // Nothing of a key is told, as text or as numbers: here it lost its line ends, then its last line, or a letter.
    let (one_line, without_end) =
        (good.key.replace('\n', ""), good.key.rsplit_once("-----END").expect("PEM").0);
    for (key, said) in [
        (one_line.trim_end_matches('-').to_owned(), "the line that begins a section is not whole"),
        (one_line, "a section has no line that ends it"),
        (without_end.to_owned(), "a section has no line that ends it"),
        (good.key.replacen('M', "\u{7f}", 1), "a section is not base64"),
    ] {
        let error = refused(&with(&good.certificate, &key), &pem);
        assert_eq!(error, format!("/tls/node.key holds no private key in PEM: {said}"));
    }
    let empty: Arc<dyn Disk> = Arc::new(MemoryDisk::new());
    let missing = Certificates::open(files(), NameCheck::Address, empty, clock()).err();
    assert!(missing.expect("no file").to_string().contains("read /tls/node.crt"));
}

#[tokio::test(start_paused = true)]
async fn files_that_change_are_taken_whole_or_not_at_all() {
    let (ours, theirs) = (Authority::new("ours"), Authority::new("theirs"));
    let (followed, disk) =
        open_with(&ours.shown(&Says::of(ACCEPTS)), &ours.pem(), NameCheck::Address).expect("certificates");
    let (ours_connect, theirs_connect) = (&both(&ours)[0], &both(&theirs)[0]);
    let before = followed.current();
    assert_eq!(followed.look(), Look::Same);
    assert!(Arc::ptr_eq(&before, &followed.current()), "nothing was made anew");
    // Only one of three: they do not belong together, which is said once.
    let new = theirs.shown(&Says::of(ACCEPTS));
    write(&disk, &files().certificate, &new.certificate);
    assert!(matches!(followed.look(), Look::Broken(problem) if problem.contains("is of no CA")));
    assert_eq!(followed.look(), Look::Same);
    write(&disk, &files().authorities, &theirs.pem());
    assert!(matches!(followed.look(), Look::Broken(problem) if problem.contains("the key is not that")));
    assert_eq!(meet(ours_connect, &followed).await, [Ok(()), Ok(())], "the old ones stay");
    write(&disk, &files().key, &new.key);
    // The task finds them by itself.
    let following = followed.clone().follow(runtime::Io::inline());
    assert!(tokio::time::timeout(2 * LOOK_INTERVAL, following).await.is_err());
    assert_eq!(meet(theirs_connect, &followed).await, [Ok(()), Ok(())]);
    assert!(meet(ours_connect, &followed).await[0].is_err());
    disk.remove_file(&files().key).expect("removed");
    assert!(matches!(followed.look(), Look::Broken(problem) if problem.contains("read /tls/node.key")));
    assert_eq!(meet(theirs_connect, &followed).await, [Ok(()), Ok(())]);
}
