//! Tests of TLS, proxies and keys: the destination of a request, and who can read its content.

use super::{KINDS, canary, question};
use crate::certificate::Certificate;
use crate::loopback::{Reply, Server, closed_port};
use claude_reviewer::ai::ask::Cause;
use claude_reviewer::policy::BackendKind::{Anthropic, Google, OpenAi};
use serde_json::json;
use std::io::Read as _;
use std::io::Write as _;
use std::time::{Duration, Instant};

#[test]
fn net_16_a_certificate_that_proves_nothing_ends_it() {
    for (host, until) in [
        ("127.0.0.1", "20990101000000Z"),
        ("127.0.0.1", "20210101000000Z"),
        ("elsewhere.example", "20990101000000Z"),
    ] {
        let server = Server::tls(Certificate { host, until }.make().config, |r| r.text("{}"));
        let failure = question(OpenAi, &server.url())
            .env("OPENAI_API_KEY", &canary())
            .fails(Cause::Unreachable);
        assert!(
            failure.message.contains("TLS connection failed"),
            "{}",
            failure.message
        );
        assert_eq!(
            (server.requests().len(), server.connections()),
            (0, 1),
            "it is not tried again"
        );
    }
}

#[test]
fn net_16_an_old_version_of_tls_ends_it() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("https://{}", listener.local_addr().unwrap());
    let server = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut hello = [0; 4096];
        let _ = stream.read(&mut hello).unwrap();
        // A server hello of TLS 1.0 (RFC 2246, section 7.4.1.3), with TLS_RSA_WITH_AES_128_CBC_SHA.
        let body = [&[3, 1][..], &[7; 32], &[0, 0, 0x2f, 0]].concat();
        let message = [&[2, 0, 0, u8::try_from(body.len()).unwrap()][..], &body].concat();
        let record = [
            &[22, 3, 1, 0, u8::try_from(message.len()).unwrap()][..],
            &message,
        ]
        .concat();
        stream.write_all(&record).unwrap();
        let _ = stream.read(&mut hello);
    });
    let failure = question(OpenAi, &url).fails(Cause::Unreachable);
    assert!(
        failure.message.contains("TLS connection failed"),
        "{}",
        failure.message
    );
    server.join().unwrap();
}

#[test]
fn net_18_requests_to_other_machines_go_through_the_proxy() {
    for variable in ["HTTPS_PROXY", "https_proxy", "ALL_PROXY"] {
        let proxy = Server::start(|_| Reply::with(502, &[], b""));
        let address = format!("http://someone:{}@127.0.0.1:{}", canary(), proxy.port());
        let question = question(OpenAi, "https://api.example.test/v1").env(variable, &address);
        question
            .with(|b| b.max_retries = 0)
            .fails(Cause::Unreachable);
        let asked = proxy.requests();
        assert_eq!(
            (asked[0].method.as_str(), asked[0].path.as_str()),
            ("CONNECT", "api.example.test:443")
        );
        assert!(
            asked[0]
                .header("proxy-authorization")
                .is_some_and(|v| v.starts_with("Basic "))
        );
    }
}

#[test]
fn net_18_a_socks_proxy_resolves_the_name_itself() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("socks5h://{}", listener.local_addr().unwrap());
    let proxy = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut bytes = [0; 512];
        // RFC 1928: no authentication; then the request is rejected.
        let _ = stream.read(&mut bytes).unwrap();
        stream.write_all(&[5, 0]).unwrap();
        let n = stream.read(&mut bytes).unwrap();
        stream.write_all(&[5, 5, 0, 1, 0, 0, 0, 0, 0, 0]).unwrap();
        bytes[..n].to_vec()
    });
    let question = question(OpenAi, "https://api.example.test/v1").env("ALL_PROXY", &address);
    question
        .with(|b| b.max_retries = 0)
        .fails(Cause::Unreachable);
    let asked = proxy.join().unwrap();
    assert_eq!(
        asked,
        [
            &[5, 1, 0, 3, 16][..],
            b"api.example.test",
            &443_u16.to_be_bytes()
        ]
        .concat()
    );
}

#[test]
fn net_18_a_proxy_that_asks_for_credentials_ends_it() {
    let proxy =
        Server::start(|_| Reply::with(407, &[("proxy-authenticate", "Basic realm=x")], b""));
    let address = format!("http://someone:{}@127.0.0.1:{}", canary(), proxy.port());
    let question = question(Anthropic, "https://api.example.test").env("HTTPS_PROXY", &address);
    let failure = question
        .env("ANTHROPIC_API_KEY", "another-canary")
        .fails(Cause::Refused);
    assert!(failure.message.contains("407"), "{}", failure.message);
    assert!(failure.hint.unwrap().contains("HTTPS_PROXY"));
    assert_eq!(proxy.requests().len(), 1);
    assert!(
        !proxy.saw("another-canary"),
        "the key goes to the server alone"
    );
}

#[test]
fn net_18_this_machine_is_asked_without_a_proxy() {
    let proxy = Server::start(|_| Reply::with(502, &[], b""));
    let address = format!("http://127.0.0.1:{}", proxy.port());
    let all = |url: &str| {
        let question = question(OpenAi, url).with(|b| b.max_retries = 0);
        question
            .env("HTTP_PROXY", &address)
            .env("HTTPS_PROXY", &address)
            .env("ALL_PROXY", &address)
    };
    let server = Server::start(|r| r.text("{}"));
    all(&server.url()).ask().unwrap();
    all(&format!("http://localhost:{}", server.port()))
        .ask()
        .unwrap();
    let made = Certificate {
        host: "127.0.0.1",
        until: "20990101000000Z",
    }
    .make();
    let secure = Server::tls(made.config, |r| r.text("{}"));
    all(&secure.url()).fails(Cause::Unreachable);
    assert_eq!(
        (
            server.requests().len(),
            secure.connections(),
            proxy.connections()
        ),
        (2, 1, 0)
    );
    let direct = all("https://api.example.test").env("NO_PROXY", "other.test, .example.test");
    direct.within(Duration::from_secs(3)).ask().unwrap_err();
    assert_eq!(proxy.connections(), 0, "NO_PROXY is honoured");
}

#[test]
fn net_19_plain_http_to_another_machine_is_refused() {
    let failure = question(OpenAi, "http://192.0.2.1:8080/v1")
        .env("OPENAI_API_KEY", &canary())
        .fails(Cause::Setup);
    assert!(
        failure.message.contains("plain http") && failure.hint.unwrap().contains("https"),
        "{}",
        failure.message
    );
}

#[test]
fn sec_02_keys_go_into_headers_and_nowhere_else() {
    for (kind, header, prefix) in [
        (Anthropic, "x-api-key", ""),
        (OpenAi, "authorization", "Bearer "),
        (Google, "x-goog-api-key", ""),
    ] {
        let server =
            Server::start(|_| Reply::error(400, "invalid_request_error", "API key not valid"));
        let question = question(kind, &server.url()).env(kind.key_variable().unwrap(), &canary());
        question.fails(Cause::Refused);
        let request = &server.requests()[0];
        assert_eq!(
            request.header(header),
            Some(format!("{prefix}{}", canary()).as_str())
        );
        assert!(
            !request.path.contains("key=") && !request.path.contains(&canary()),
            "{}",
            request.path
        );
        assert!(!String::from_utf8_lossy(&request.body).contains(&canary()));
        let away = format!("http://127.0.0.1:{}", closed_port());
        super::question(kind, &away)
            .env(kind.key_variable().unwrap(), &canary())
            .fails(Cause::Unreachable);
    }
}

#[test]
fn sec_03_a_key_that_a_server_repeats_is_taken_out_before_its_words_are_cut() {
    for kind in KINDS {
        for padding in (0..=200).step_by(7) {
            let server = Server::start(move |r| {
                let keys = ["x-api-key", "authorization", "x-goog-api-key"];
                let key = keys.iter().find_map(|k| r.header(k)).unwrap_or_default();
                Reply::error(
                    401,
                    "x",
                    &format!("{}{key} is wrong: {key}", "p".repeat(padding)),
                )
            });
            let failure = question(kind, &server.url())
                .env(kind.key_variable().unwrap(), &canary())
                .fails(Cause::Refused);
            let pieces = canary()
                .as_bytes()
                .windows(10)
                .any(|w| failure.message.contains(std::str::from_utf8(w).unwrap()));
            assert!(!pieces, "{}", failure.message);
            assert!(
                failure.message.starts_with("401 Unauthorized"),
                "{}",
                failure.message
            );
        }
    }
    // In every other position that a server can choose.
    let says = json!({ "choices": [{ "message": { "content": "{}" }, "finish_reason": canary() }], "model": canary() });
    let server = Server::start(move |_| Reply::json(200, &says));
    question(OpenAi, &server.url())
        .env("OPENAI_API_KEY", &canary())
        .fails(Cause::Malformed);
    let says = json!({ "choices": [{ "message": { "content": "{}" }, "finish_reason": "stop" }], "model": canary() });
    let server = Server::start(move |_| Reply::json(200, &says));
    let answer = question(OpenAi, &server.url())
        .env("OPENAI_API_KEY", &canary())
        .ask()
        .unwrap();
    assert_eq!(answer.model, "***");
}

#[test]
fn sec_04_a_backend_shows_no_key_when_it_is_printed() {
    let question = question(OpenAi, "http://127.0.0.1:1").env("OPENAI_API_KEY", &canary());
    assert!(!format!("{:?}", question.backend().unwrap()).contains(&canary()));
}

#[test]
fn a_backend_without_its_key_says_what_to_set() {
    for kind in KINDS {
        let question = question(kind, "x").with(|b| b.base_url = None);
        let failure = question.backend().unwrap_err();
        assert_eq!(failure.cause, Cause::Setup);
        assert!(
            failure.message.contains(kind.key_variable().unwrap()),
            "{}",
            failure.message
        );
    }
    let named =
        question(OpenAi, "http://127.0.0.1:1").with(|b| b.api_key_env = Some("MY_KEY".to_owned()));
    assert!(named.fails(Cause::Setup).message.contains("MY_KEY"));
    let bad = question(OpenAi, "http://127.0.0.1:1")
        .env("OPENAI_API_KEY", &format!("{}\n{}", canary(), canary()));
    bad.fails(Cause::Setup);
}

#[test]
fn an_untrusted_endpoint_gets_no_key_and_a_withheld_backend_no_request() {
    for kind in KINDS {
        let server = Server::start(|r| r.text("{}"));
        let question = question(kind, &server.url()).env(kind.key_variable().unwrap(), &canary());
        let question = question.with(|b| {
            b.keyless = true;
            b.api_key_command = Some("echo other-canary".to_owned());
        });
        question.ask().unwrap();
        assert!(!server.saw(&canary()) && !server.saw("other-canary"));
        let withheld = question.with(|b| b.withheld = Some("backend.x.base_url".to_owned()));
        let failure = withheld.fails(Cause::Setup);
        assert!(
            failure.message.contains("backend.x.base_url")
                && failure.hint.unwrap().contains("policy trust")
        );
        assert_eq!(server.requests().len(), 1);
    }
}

#[test]
fn a_command_prints_the_key_once() {
    let folder = crate::support::temp_dir();
    let count = folder.path().join("count");
    let command = format!(
        "echo x >> '{}'; echo {}; echo noise >&2",
        count.display(),
        canary()
    );
    let server = Server::start(|_| Reply::error(401, "x", "who are you?"));
    let question = question(Anthropic, &server.url())
        .env("PATH", "/usr/bin:/bin")
        .env("GIT_DIR", "x");
    let question = question.with(|b| b.api_key_command = Some(command));
    let (prompt, schema) = (super::prompt(), super::schema());
    let ask = question.as_ask(&prompt, &schema);
    super::block_on(async {
        let backend = question.backend().unwrap();
        assert!(!count.exists(), "not before it is needed");
        let both =
            futures_util::future::join(backend.ask(&ask, None), backend.ask(&ask, None)).await;
        assert!(both.0.is_err() && both.1.is_err());
    });
    assert_eq!(std::fs::read_to_string(&count).unwrap(), "x\n");
    assert!(
        server
            .requests()
            .iter()
            .all(|r| r.header("x-api-key") == Some(&canary()))
    );
}

#[test]
fn a_command_that_prints_no_key_is_named_and_what_it_prints_is_not_shown() {
    let server = Server::start(|r| r.text("{}"));
    for (command, words) in [
        (
            format!("echo {}; exit 3", canary()),
            "failed with exit code 3",
        ),
        (
            format!("echo {} {}", canary(), canary()),
            "did not print a key",
        ),
        ("true".to_owned(), "did not print a key"),
        (
            format!("while :; do echo {}; done", canary()),
            "too much for a key",
        ),
        ("kill -9 $$".to_owned(), "signal 9"),
    ] {
        let question = question(OpenAi, &server.url()).env("PATH", "/usr/bin:/bin");
        let failure = question
            .with(|b| b.api_key_command = Some(command))
            .fails(Cause::Setup);
        assert!(
            failure.message.contains("api_key_command") && failure.message.contains(words),
            "{}",
            failure.message
        );
    }
    let slow = question(OpenAi, &server.url())
        .env("PATH", "/usr/bin:/bin")
        .within(Duration::from_secs(1));
    let started = Instant::now();
    slow.with(|b| b.api_key_command = Some("sleep 60".to_owned()))
        .fails(Cause::Setup);
    // The claim: the deadline of a second is kept. The command sleeps for a minute.
    assert!(started.elapsed() < Duration::from_secs(8));
    assert_eq!(server.connections(), 0);
}
