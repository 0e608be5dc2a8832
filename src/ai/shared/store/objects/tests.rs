//! Stores by what a server answers: its conditions, its errors and its addresses.

use super::*;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;
use std::path::PathBuf;
use std::thread::JoinHandle;

/// Reads an environment of pairs.
fn env(vars: &[(&str, &str)]) -> Env {
    Env::from_pairs(PathBuf::new(), vars.iter().copied())
}

/// A server that gives one answer to each of its requests, in this order.
struct Scripted {
    address: String,
    /// Returns the head of each request.
    heads: JoinHandle<Vec<String>>,
}

/// An answer: its status line, further lines of its head, and its body. `ADDRESS` stands for the
/// server.
type Answer = (&'static str, &'static str, &'static str);

impl Scripted {
    fn start(answers: &'static [Answer]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let own = address.clone();
        let heads = std::thread::spawn(move || {
            let answered = answers.iter().map(|(status, lines, body)| {
                let (mut stream, _) = listener.accept().unwrap();
                let mut reader = BufReader::new(stream.try_clone().unwrap());
                let mut head = String::new();
                while !head.ends_with("\r\n\r\n") {
                    assert_ne!(reader.read_line(&mut head).unwrap(), 0);
                }
                let head = head.to_ascii_lowercase();
                let length = head.split("content-length: ").nth(1).map_or(0, |rest| {
                    let digits = rest.split("\r\n").next().unwrap();
                    digits.parse().unwrap()
                });
                reader.take(length).read_to_end(&mut Vec::new()).unwrap();
                let lines = lines.replace("ADDRESS", &own);
                let size = body.len();
                let answer = format!(
                    "HTTP/1.1 {status}\r\nConnection: close\r\nContent-Length: {size}\r\n{lines}\r\n{body}"
                );
                stream.write_all(answer.as_bytes()).unwrap();
                head
            });
            answered.collect()
        });
        Self { address, heads }
    }

    /// Opens a store of this server.
    fn store(&self, scheme: &str) -> ObjectStore {
        let env = match scheme {
            "gs" => env(&[(EMULATOR, &self.address)]),
            "azblob" => {
                let text = format!(
                    "AccountName=reviews1;AccountKey=aGVsbG8=;BlobEndpoint={}/reviews1",
                    self.address
                );
                env(&[("AZURE_STORAGE_CONNECTION_STRING", &text)])
            }
            _ => {
                // Other credentials would be read from the process.
                let builder = services::S3::default()
                    .bucket("reviews")
                    .root("shared")
                    .region(REGION)
                    .endpoint(&self.address)
                    .access_key_id("test")
                    .secret_access_key("test");
                return ObjectStore::over(Operator::new(builder).unwrap(), &env(&[])).unwrap();
            }
        };
        ObjectStore::new(scheme, "reviews/shared", &env).unwrap()
    }
}

/// Runs work of a store.
fn run<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
        .block_on(work)
}

/// Creates a blob in a store that answers like this. Returns the result, and the heads of the
/// requests.
fn created(scheme: &str, answers: &'static [Answer]) -> (Result<bool, StoreFailure>, Vec<String>) {
    let server = Scripted::start(answers);
    let store = server.store(scheme);
    let made = run(store.create("leases-1/x", b"lease"));
    (made, server.heads.join().unwrap())
}

const S3_CONFLICT: Answer = (
    "409 Conflict",
    "",
    "<Error><Code>ConditionalRequestConflict</Code><Message>x</Message></Error>",
);
const S3_EXISTS: Answer = (
    "412 Precondition Failed",
    "",
    "<Error><Code>PreconditionFailed</Code><Message>x</Message></Error>",
);
const OK: Answer = ("200 OK", "", "");

#[test]
fn flt_03_s3_creates_a_lease_once_also_if_two_machines_do_at_the_same_moment() {
    let (made, heads) = created("s3", &[OK]);
    assert_eq!(made, Ok(true));
    assert!(heads[0].contains("\r\nif-none-match: *\r\n"), "{heads:?}");
    assert_eq!(created("s3", &[S3_EXISTS]).0, Ok(false));
    assert_eq!(created("s3", &[S3_CONFLICT, OK]).0, Ok(true));
    assert_eq!(created("s3", &[S3_CONFLICT, S3_EXISTS]).0, Ok(false));
    assert_eq!(created("s3", &[S3_CONFLICT, S3_CONFLICT]).0, Ok(false));
}

const GS_SESSION: Answer = ("200 OK", "Location: ADDRESS/session\r\n", "");
const GS_EXISTS: Answer = (
    "412 Precondition Failed",
    "Content-Type: application/json\r\n",
    r#"{"error":{"code":412,"message":"x","errors":[{"reason":"conditionNotMet","message":"x","domain":"global"}]}}"#,
);
const GS_CREATED: Answer = (
    "200 OK",
    "Content-Type: application/json\r\n",
    r#"{"name":"x","size":"5","generation":"1","etag":"x","md5Hash":"x","contentType":"x","updated":"2026-01-01T00:00:00Z"}"#,
);

#[test]
fn flt_03_google_creates_a_lease_only_if_no_object_has_its_name() {
    let (made, heads) = created("gs", &[GS_SESSION, GS_CREATED]);
    assert_eq!(made, Ok(true));
    assert!(heads[0].contains("ifgenerationmatch=0"), "{heads:?}");
    // An emulator gets no credentials.
    assert!(heads.iter().all(|head| !head.contains("authorization")));
    // The lease was there before, and another machine created it during the upload.
    assert_eq!(created("gs", &[GS_EXISTS]).0, Ok(false));
    assert_eq!(created("gs", &[GS_SESSION, GS_EXISTS]).0, Ok(false));
}

const AZURE_CREATED: Answer = ("201 Created", "ETag: \"x\"\r\n", "");
const AZURE_EXISTS: Answer = (
    "409 Conflict",
    "x-ms-error-code: BlobAlreadyExists\r\n",
    "<Error><Code>BlobAlreadyExists</Code><Message>x</Message></Error>",
);
const AZURE_MISSING: Answer = (
    "404 Not Found",
    "x-ms-error-code: ContainerNotFound\r\n",
    "<Error><Code>ContainerNotFound</Code><Message>x</Message></Error>",
);

#[test]
fn flt_03_azure_creates_a_lease_only_if_no_blob_has_its_name() {
    let (made, heads) = created("azblob", &[AZURE_CREATED]);
    assert_eq!(made, Ok(true));
    assert!(heads[0].contains("\r\nif-none-match: *\r\n"), "{heads:?}");
    assert_eq!(created("azblob", &[AZURE_EXISTS]).0, Ok(false));
}

#[test]
fn a_bucket_that_does_not_exist_is_named_as_the_cause() {
    let s3: &'static [Answer] = &[(
        "404 Not Found",
        "",
        "<Error><Code>NoSuchBucket</Code><Message>x</Message></Error>",
    )];
    for (scheme, answers) in [
        ("s3", s3),
        ("gs", &[("404 Not Found", "", "")]),
        ("azblob", &[AZURE_MISSING]),
    ] {
        let why = created(scheme, answers).0.unwrap_err();
        assert_eq!(why, reason(ErrorKind::NotFound), "{scheme}");
    }
}

#[test]
fn credentials_that_a_store_does_not_accept_are_named_as_the_cause() {
    for scheme in ["s3", "gs", "azblob"] {
        for answer in [
            &[("401 Unauthorized", "", "")] as &'static [Answer],
            &[("403 Forbidden", "", "")],
        ] {
            let why = created(scheme, answer).0.unwrap_err();
            assert!(why.contains("access is denied"), "{scheme}: {why}");
        }
        let why = created(scheme, &[("400 Bad Request", "", "")]).0;
        assert_eq!(why.unwrap_err(), "the store answers with status 400");
    }
}

/// Reads a blob of at most 4 bytes from a store that answers like this. Returns the result, and the
/// number of requests.
fn read(answers: &'static [Answer]) -> (Result<BlobRead, StoreFailure>, usize) {
    let server = Scripted::start(answers);
    let store = server.store("azblob");
    let read = run(store.get("replies-1/x", 4));
    (read, server.heads.join().unwrap().len())
}

#[test]
fn flt_02_an_empty_or_large_object_is_not_read() {
    assert_eq!(read(&[OK]), (Ok(BlobRead::Content(Vec::new())), 1));
    let large = read(&[("200 OK", "", "large")]);
    assert_eq!(large, (Ok(BlobRead::TooLarge), 1));
}

/// Describes an error of a kind after a request to the store, or to the service that gives
/// credentials.
fn after(kind: ErrorKind, is_of_store: bool, outcome: RequestOutcome) -> StoreFailure {
    let last = Exchange {
        is_of_store,
        outcome,
    };
    described(kind, Some(last))
}

#[test]
fn an_error_is_described_by_the_last_request_if_its_kind_is_unknown() {
    let unknown = ErrorKind::Unexpected;
    let lost = after(unknown, true, RequestOutcome::Lost("refused".to_owned()));
    assert_eq!(lost, "refused");
    let lost = after(unknown, false, RequestOutcome::Lost("refused".to_owned()));
    assert!(lost.contains("valid credentials"), "{lost}");
    let answered = after(unknown, true, RequestOutcome::Answered(StatusCode::OK));
    assert!(answered.contains("an error"), "{answered}");
    // A known kind counts more: the last request can be that of another operation.
    let other = RequestOutcome::Answered(StatusCode::BAD_REQUEST);
    let missing = after(ErrorKind::NotFound, true, other);
    assert!(missing.contains("does not exist"), "{missing}");
    assert!(described(unknown, None).contains("an error"));
}

/// Opens a store with variables; returns why it cannot be used.
fn refused(scheme: &str, vars: &[(&str, &str)]) -> Option<StoreFailure> {
    ObjectStore::new(scheme, "reviews/shared", &env(vars)).err()
}

#[test]
fn net_19_every_object_store_refuses_a_plain_address_of_another_machine() {
    let key = "AccountName=reviews1;AccountKey=aGVsbG8=";
    let at = |host: &str| format!("{key};BlobEndpoint=http://{host}/reviews1");
    for (scheme, variable) in [
        ("s3", "AWS_ENDPOINT_URL_S3"),
        ("s3", "AWS_ENDPOINT_URL"),
        ("gs", EMULATOR),
    ] {
        assert_eq!(refused(scheme, &[(variable, "http://127.0.0.1:9")]), None);
        let why = refused(scheme, &[(variable, "http://10.0.0.1:9")]).unwrap();
        assert!(why.starts_with(variable) && why.contains("https"), "{why}");
    }
    let variable = "AZURE_STORAGE_CONNECTION_STRING";
    assert_eq!(refused("azblob", &[(variable, &at("127.0.0.1:9"))]), None);
    let why = refused("azblob", &[(variable, &at("10.0.0.1:9"))]).unwrap();
    assert!(why.starts_with(variable) && why.contains("https"), "{why}");
}
