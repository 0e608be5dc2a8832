//! Tests of each kind of secret in each context, and of text that stays readable.

use super::*;
use crate::policy::RulesPolicy;
use crate::rules::secret::generate::generate;
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use std::time::{Duration, Instant};

/// Work that is worse than linear takes minutes here.
#[test]
fn dif_16_the_search_for_secrets_is_linear_whatever_the_text_holds() {
    let rules = RuleSet::new(&RulesPolicy::default(), &[]).unwrap();
    let words = ["PRIVATE", " KEY"].concat();
    for unit in [
        format!("-----BEGIN {words}-----"),
        format!("-----END {words}-----"),
        format!("-----BEGIN {words}-----\n"),
        format!("-----END {words}-----\n"),
        format!("-----BEGIN {words}-----abcd-----END {words}-----"),
        format!("abcd\n-----END {words}----- -----END {words}-----\n"),
        format!("---- END {words} "),
        "Private-Lines: 400\n".to_owned(),
        "Private-Lines: 400 ".to_owned(),
        "password = \"hunter2hunter2\" ".to_owned(),
    ] {
        let text = unit.repeat(250_000 / unit.len());
        let started = Instant::now();
        let found = rules.secrets(text.as_bytes());
        assert!(
            started.elapsed() < Duration::from_secs(20),
            "{unit:?} took {:?}",
            started.elapsed()
        );
        assert!(found.windows(2).all(|w| w[0].span.end <= w[1].span.start));
    }
}

#[test]
fn secrets_are_in_order_within_their_lines_and_named_by_who_knows_most() {
    let rules = RuleSet::new(&RulesPolicy::default(), &[]).unwrap();
    let key = format!("AKIAY{}", "Q3EGRNDLK5V2TW7");
    let text = format!("a = 1\npassword = \"{key}\"\nb = \"{key}\"; c = \"{key}\"\n");
    let found = rules.secrets(text.as_bytes());
    assert_eq!(found.len(), 3, "{found:?}");
    for s in &found {
        assert_eq!(
            (&text[s.span.clone()], s.kind),
            (key.as_str(), "aws-access-key-id")
        );
    }
}

fn rules() -> RuleSet {
    RuleSet::new(&RulesPolicy::default(), &[]).unwrap()
}

/// A random number generator with a fixed sequence for each seed.
struct Dice(u64);

impl Dice {
    fn below(&mut self, n: u32) -> u32 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) % u64::from(n)) as u32
    }

    fn of(&mut self, signs: &str, count: usize) -> String {
        let signs = signs.as_bytes();
        (0..count)
            .map(|_| char::from(signs[self.below(signs.len() as u32) as usize]))
            .collect()
    }

    fn made(&mut self, name: &str) -> String {
        generate(name, &mut |n| self.below(n)).unwrap()
    }

    fn bytes(&mut self, count: usize) -> Vec<u8> {
        (0..count).map(|_| self.below(256) as u8).collect()
    }
}

const ALNUM: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
const BASE64: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const URL_SAFE: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
const HEX: &str = "0123456789abcdef";

/// Fails if eight consecutive characters of a secret remain after redaction, except in its public
/// prefix.
#[track_caller]
fn assert_gone(rules: &RuleSet, text: &str, secret: &str, what: &str) {
    let masked = String::from_utf8_lossy(&rules.mask(text.as_bytes())).into_owned();
    let mut rest = text.as_bytes().to_vec();
    for s in secrets(rules, text.as_bytes()) {
        rest[s.span].fill(b'#');
    }
    let rest = String::from_utf8_lossy(&rest).into_owned();
    let piece = secret.len().min(8);
    let from = if secret.len() >= 16 { 4 } else { 0 };
    for shown in [&masked, &rest] {
        for at in from..=secret.len() - piece {
            let part = &secret[at..at + piece];
            assert!(
                !shown.contains(part),
                "{what}: {part:?} of {secret:?} is left of\n{text}\n{shown}"
            );
        }
    }
    assert_eq!(masked.len(), text.len(), "{what}: columns moved");
}

/// Returns a signed web token.
fn jwt(dice: &mut Dice, claims: &str) -> String {
    let head = URL_SAFE_NO_PAD.encode(r#"{"alg":"HS256","typ":"JWT"}"#);
    format!(
        "{head}.{}.{}",
        URL_SAFE_NO_PAD.encode(claims),
        URL_SAFE_NO_PAD.encode(dice.bytes(32))
    )
}

/// Returns Base64 of random bytes after a start.
fn der(dice: &mut Dice, start: &[u8], n: usize) -> String {
    STANDARD
        .encode([start, &dice.bytes(n)[..]].concat())
        .trim_end_matches('=')
        .to_owned()
}

/// Returns secrets that need no context to be identified.
fn bare(dice: &mut Dice) -> Vec<(&'static str, String)> {
    vec![
        ("aws id", dice.made("aws-key-id:AKIA")),
        ("github", dice.made("github-token:ghp")),
        (
            "github without its checksum",
            format!("gh{}_{}", "p", dice.of(ALNUM, 36)),
        ),
        ("gitlab", format!("glp{}-{}", "at", dice.of(URL_SAFE, 20))),
        (
            "anthropic",
            format!("sk-ant-api{}-{}", "03", dice.of(URL_SAFE, 93)),
        ),
        (
            "slack",
            format!(
                "xox{}-{}-{}-{}",
                "b",
                dice.of("123456789", 12),
                dice.of("123456789", 12),
                dice.of(ALNUM, 24)
            ),
        ),
        ("stripe", format!("sk_{}_{}", "live", dice.of(ALNUM, 24))),
        (
            "sendgrid",
            format!(
                "S{}.{}.{}",
                "G",
                dice.of(URL_SAFE, 22),
                dice.of(URL_SAFE, 43)
            ),
        ),
        ("jwt", dice.made("jwt")),
        (
            "jwt without exp",
            jwt(dice, r#"{"sub":"1234567890","name":"x"}"#),
        ),
        ("jwt of anybody", jwt(dice, r#"{"role":"anon"}"#)),
        ("discord", dice.made("discord-token")),
        (
            "telegram",
            format!("{}:AA{}", dice.of("123456789", 10), dice.of(URL_SAFE, 33)),
        ),
        (
            "telegram of another form",
            format!("{}:{}", dice.of("123456789", 9), dice.of(ALNUM, 35)),
        ),
        (
            "pkcs1",
            der(dice, &[0x30, 0x82, 4, 0xa4, 2, 1, 0, 2, 0x82, 1, 1, 0], 300),
        ),
        (
            "pkcs8",
            der(dice, &[0x30, 0x82, 4, 0xbd, 2, 1, 0, 0x30, 0x0d, 6, 9], 300),
        ),
        ("sec1", der(dice, &[0x30, 0x77, 2, 1, 1, 4, 0x20], 114)),
        (
            "ed25519",
            der(
                dice,
                &[
                    0x30, 0x2e, 2, 1, 0, 0x30, 5, 6, 3, 0x2b, 0x65, 0x70, 4, 0x22, 4, 0x20,
                ],
                32,
            ),
        ),
        (
            "openssh",
            format!("b3BlbnNzaC1rZXkt{}{}", "djE", dice.of(BASE64, 200)),
        ),
        ("bare token", dice.of(ALNUM, 40)),
    ]
}

/// Returns secrets that their context identifies: the text with `@` in place of the secret, and the
/// secret.
fn told(dice: &mut Dice) -> Vec<(&'static str, String, String)> {
    let mut out: Vec<(&'static str, String, String)> = Vec::new();
    let id = dice.made("aws-key-id:AKIA");
    let halves = [
        ("java", "new BasicAWSCredentials(\"ID\", \"@\");"),
        (
            "java over lines",
            "AwsBasicCredentials.create(\n    \"ID\",\n    \"@\");",
        ),
        ("boto3", "boto3.client('s3', 'eu-west-1', 'ID', '@')"),
        (
            "boto3 named",
            "Session(\n  aws_access_key_id='ID',\n  # next\n  x='@')",
        ),
        (
            "go",
            "credentials.NewStaticCredentials(\"ID\", \"@\", \"\")",
        ),
        ("credentials.csv", "Access key ID,Secret access key\nID,@\n"),
        (
            "credentials.csv with names",
            "User name,Password,Access key ID,Secret access key\nbob,,ID,@\n",
        ),
        (
            "s3cmd",
            "access_key = ID\nbucket_location = EU\nsecret_key = @\n",
        ),
        ("colon", "ID:@"),
        ("slash", "s3://ID/@\n"),
        ("next line", "ID\n@\n"),
        ("three lines above", "@\n\n\nID\n"),
        ("yaml", "a: ID\nb: @\n"),
        ("json", "{\"a\":\"ID\",\"b\":\"@\"}"),
        ("env", "A=ID\nB=@\n"),
        ("url", "https://ID:@@sqs.local/x"),
        ("sql", "INSERT INTO t VALUES (1, 'ID', '@');"),
        ("comment", "// ID @"),
        ("html", "<td>ID</td><td>@</td>"),
        ("markdown", "| ID | @ |"),
        ("joined id", "\"ID1\" + \"ID2\", \"@\""),
    ];
    for (what, text) in halves {
        let secret = dice.of(BASE64, 40);
        let text = text
            .replace("ID1", &id[..6])
            .replace("ID2", &id[6..])
            .replace("ID", &id);
        out.push((what, text, secret));
    }
    let named = [
        ("java", "String password = \"@\";"),
        ("python", "db_password = '@'"),
        ("go", "	password := \"@\""),
        ("js object", "{ user: 'x', password: '@' }"),
        ("php", "define('DB_PASSWORD', '@');"),
        ("yaml", "db:\n  password: @\n"),
        ("env", "DB_PASSWORD=@\n"),
        ("json", "{\"password\":\"@\"}"),
        ("escaped json", "x = \"{\\\"password\\\":\\\"@\\\"}\""),
        ("xml", "<password>@</password>"),
        ("attribute", "<add key=\"DbPassword\" value=\"@\" />"),
        ("nuget", "<add key=\"ClearTextPassword\" value=\"@\" />"),
        ("plist", "<key>password</key>\n<string>@</string>"),
        ("url", "postgres://app:@@db.internal.net/x"),
        ("my host", "mysql://root:@@mysql.prod.example/db"),
        ("local url", "amqp://app:@@localhost:5672"),
        (
            "connection string",
            "Server=db;Database=x;User Id=sa;Password=@;Encrypt=true",
        ),
        ("jdbc", "jdbc:mysql://h/db?user=a&password=@"),
        ("sql", "CREATE USER x IDENTIFIED BY '@';"),
        ("sql of postgres", "ALTER ROLE x WITH PASSWORD '@';"),
        ("comment", "# password: @"),
        ("prose", "the password is @ for now"),
        (
            "kubernetes variable",
            "- name: DB_PASSWORD\n  value: \"@\"\n",
        ),
        (
            "terraform variable",
            "variable \"db_password\" {\n  type = string\n  default = \"@\"\n}\n",
        ),
        ("next line", "\"password\":\n    \"@\""),
        ("block scalar", "password: |\n  @\nx: y\n"),
        ("csv", "user,password,role\nbob,@,admin\n"),
        ("typed", "let password: Option<String> = \"@\";"),
        ("constructor", "password = SecureString(\"@\")"),
        ("joined", "password = \"<\" +\n   \">\""),
        ("token name", "const clientSecret = \"@\";"),
    ];
    for (what, text) in named {
        for secret in [
            "Winter2024!x",
            "mySecret789",
            "Default#2019!",
            &dice.made("password:14"),
        ] {
            let (first, last) = secret.split_at(5);
            let whole = text.replace('<', first).replace('>', last);
            let text = if what == "joined" {
                whole
            } else {
                text.to_owned()
            };
            out.push((what, text, secret.to_owned()));
        }
    }
    let tokens = [
        ("header", "Authorization: Api-Token @"),
        (
            "header of code",
            "headers = {\"Authorization\": \"Api-Token @\"}",
        ),
        ("bearer", "curl -H 'Authorization: Bearer @' x"),
        (
            "unknown scheme in quotes",
            "curl -H 'Authorization: Custom-Scheme @' x",
        ),
        ("token header", "Token: @"),
        ("own header", "X-Api-Key: @"),
        ("query", "https://x.net/a?b=c&access_token=@&d=e"),
    ];
    for (what, text) in tokens {
        out.push((what, text.to_owned(), dice.of(HEX, 32)));
        out.push((what, text.to_owned(), dice.of(ALNUM, 20)));
    }
    for text in [
        "HEROKU_KEY=@",
        "heroku:\n  key: '@'",
        "snyk_token: @",
        "CODECOV_TOKEN=\"@\"",
        "Authorization: Token @",
    ] {
        out.push(("uuid", text.to_owned(), dice.made("uuid4")));
    }
    let config = STANDARD.encode(format!("a: {}\n", dice.of(ALNUM, 20)));
    out.push((
        "kubernetes",
        "kind: Secret\ndata:\n  config: @\n".to_owned(),
        config,
    ));
    out.push((
        "stringData",
        "kind: Secret\nstringData:\n  config: @\n".to_owned(),
        "plain words here".to_owned(),
    ));
    out
}

/// Contexts that can contain any secret, with `@` in its place.
const PLACES: &[(&str, &str)] = &[
    ("alone", "@"),
    ("java", "String a = \"@\";"),
    ("call", "connect('x', '@')"),
    ("go", "client.New(\"@\", nil)"),
    ("yaml", "a:\n  - b: @\n"),
    ("json", "{\"a\":[\"@\"]}"),
    ("env", "A=@\n"),
    ("url", "https://x.net/bot@/send?y=1"),
    ("query", "https://x.net/?a=@&b=c"),
    ("header", "X-Thing: @\r\n"),
    ("sql", "INSERT INTO t VALUES (1, '@');"),
    ("comment", "/* was @ before */"),
    ("markdown", "Use `@` here."),
    ("html", "<td>@</td>"),
    ("csv", "a,@,b\n"),
    ("escaped", "{\\\"a\\\":\\\"@\\\"}"),
    ("file name", "dump/@.py"),
];

#[test]
fn lek_02_every_kind_of_secret_is_gone_from_every_place() {
    let (rules, mut dice) = (rules(), Dice(42));
    for round in 0..3 {
        for (kind, secret) in bare(&mut dice) {
            for (place, text) in PLACES {
                // In a path, a slash ends the Base64.
                if secret.contains(['/', '+']) && ["url", "file name"].contains(place) {
                    continue;
                }
                // The prefix `bot` of a token exists only in Telegram's addresses.
                let text = if place == &"url" && !kind.starts_with("telegram") {
                    &text.replace("bot@", "@")
                } else {
                    *text
                };
                assert_gone(
                    &rules,
                    &text.replace('@', &secret),
                    &secret,
                    &format!("{round} {kind} in {place}"),
                );
            }
        }
    }
}

#[test]
fn lek_01_a_secret_is_gone_wherever_something_beside_it_tells_of_it() {
    let (rules, mut dice) = (rules(), Dice(7));
    for round in 0..5 {
        for (what, text, secret) in told(&mut dice) {
            let text = text
                .replacen("@@", &format!("{secret}\u{1}"), 1)
                .replacen('@', &secret, 1)
                .replace('\u{1}', "@");
            if what == "joined" {
                let masked = String::from_utf8(rules.mask(text.as_bytes()).into_owned()).unwrap();
                assert!(
                    !masked.contains(&secret[..5]) && !masked.contains(&secret[5..]),
                    "{masked}"
                );
                continue;
            }
            assert_gone(&rules, &text, &secret, &format!("{round} {what}"));
        }
    }
}

#[test]
fn lek_02_literals_that_are_joined_and_characters_that_hide_are_read_as_one() {
    let (rules, mut dice) = (rules(), Dice(3));
    for (kind, secret) in bare(&mut dice) {
        let (a, b) = secret.split_at(secret.len() / 2);
        for (open, joint, close) in [
            ("k = \"", "\" + \"", "\""),
            ("k = '", "' . '", "';"),
            ("k = \"", "\" .. \"", "\""),
            ("k = \"", "\" <> \"", "\""),
            ("k = \"", "\" & \"", "\""),
            ("k = (\"", "\"\n     \"", "\")"),
            ("k = \"", "\" +\n  // more\n  \"", "\""),
            ("k = \"", "\"\nk += \"", "\""),
            ("k = [\"", "\", \"", "\"].join('')"),
            ("k=", "\\\n", "\n"),
        ] {
            // A list does not preserve a form that only the whole text has.
            if kind == "bare token" && joint.contains(',') {
                continue;
            }
            let text = format!("{open}{a}{joint}{b}{close}");
            let masked = String::from_utf8(rules.mask(text.as_bytes()).into_owned()).unwrap();
            assert!(
                !is_left(&masked, a) && !is_left(&masked, b),
                "{kind} {joint:?}: {text}\n{masked}"
            );
        }
        let wide: String = secret.chars().map(wide).collect();
        let hidden: String = secret.chars().flat_map(|c| [c, '\u{200b}']).collect();
        for text in [&wide, &hidden] {
            let masked = String::from_utf8_lossy(&rules.mask(text.as_bytes())).into_owned();
            let left: String = masked
                .chars()
                .filter(|c| !matches!(c, '*' | '\u{200b}'))
                .collect();
            assert!(left.chars().count() <= 8, "{kind}: {text}\n{masked}");
        }
    }
}

/// Returns true if a text has six adjacent characters of a part of a secret.
fn is_left(masked: &str, part: &str) -> bool {
    (0..=part.len() - 6).any(|i| masked.contains(&part[i..i + 6]))
}

fn wide(c: char) -> char {
    let n = u32::from(c);
    char::from_u32(if c.is_ascii_graphic() {
        n - 0x21 + 0xff01
    } else {
        n
    })
    .unwrap_or(c)
}

#[test]
fn lek_03_no_length_of_a_line_and_no_number_of_decoys_hides_a_secret() {
    let (rules, mut dice) = (rules(), Dice(11));
    let key = dice.made("github-token:ghp");
    let password = dice.made("password:14");
    let half = dice.of(BASE64, 40);
    let pair = format!("f(\"{}\", \"{half}\");", dice.made("aws-key-id:AKIA"));
    for decoy in [
        "password=\"changeme\", ",
        "ghp_ ",
        "token(x) ",
        "AKIAXXXXXXXXXXXXXXXX ",
        "a://b:c@d ",
        "x = '' + ",
        "eyJ. ",
        "kind: ",
    ] {
        let text = format!(
            "{} k=\"{key}\" {}; password = \"{password}\"; {pair} {}",
            decoy.repeat(400_000 / decoy.len()),
            decoy.repeat(40_000 / decoy.len()),
            decoy.repeat(4_000 / decoy.len()),
        );
        let masked = rules.mask(text.as_bytes());
        for secret in [&key, &password, &half] {
            let found = memchr::memmem::find(&masked, &secret.as_bytes()[4..]);
            assert!(found.is_none(), "{decoy:?}: {secret}");
        }
    }
    let encoded = STANDARD.encode(format!("{}{key}", "plain text ".repeat(200_000)));
    let masked = rules.mask(encoded.as_bytes());
    let last = &masked[masked.len() - encoded.len() / 4..];
    assert!(
        last.iter().all(|b| *b == b'*' || *b == b'='),
        "a long run is decoded to its end"
    );
}

#[test]
fn sec_05_references_digests_and_names_stay_readable() {
    let rules = rules();
    fn hex(n: usize) -> String {
        Dice(n as u64).of(HEX, n)
    }
    fn base64(n: usize) -> String {
        Dice(n as u64).of(BASE64, n)
    }
    for line in [
        "const a = process.env.GITHUB_TOKEN;".to_owned(),
        "password = config.get('db_password')".to_owned(),
        "token: \"{{ secrets.token }}\"".to_owned(),
        "token: ${{ secrets.GITHUB_TOKEN }}".to_owned(),
        "PASSWORD=${DB_PASSWORD}".to_owned(),
        "k := os.Getenv(\"API_KEY_2\")".to_owned(),
        "password = os.environ[\"DB_PASS1\"]".to_owned(),
        "url = f\"postgres://{user}:{password}@{host}/db\"".to_owned(),
        "url = \"https://user:pass@host.org\"".to_owned(),
        format!("commit {}", hex(40)),
        format!("checksum = \"{}\"", hex(64)),
        format!("  \"integrity\": \"sha512-{}==\",", base64(86)),
        format!("golang.org/x/net v0.1.0 h1:{}=", base64(43)),
        format!("uses: actions/checkout@{}", hex(40)),
        format!("id: {}", Dice(5).made("uuid4")),
        format!("tenant_id = \"{}\"", Dice(6).made("uuid4")),
        "let accessTokenProviderFactory = new AccessTokenProviderFactory(tokenStore);".to_owned(),
        "fn parse_token(token: &Token, secret: Option<&str>) -> Result<Token> {".to_owned(),
        "if token == Token::Comma { return parser.next_token(); }".to_owned(),
        "import { getServerSideConfigurationForTenant2Provider } from './x';".to_owned(),
        "password: string;".to_owned(),
        "<input type=\"password\" name=\"confirmPassword\" placeholder=\"Enter your password\">"
            .to_owned(),
        "max_tokens: 4096".to_owned(),
        "secretName: my-tls-secret".to_owned(),
        "token_url = \"https://id.corp.net/oauth2/token\"".to_owned(),
        "static final long serialVersionUID = 4328743862847932L;".to_owned(),
        "com.example.project.authentication.token.AccessTokenV2Service".to_owned(),
        "src/main/java/com/example/Project2/TokenServiceImplTest.java".to_owned(),
        "password = \"changeme\"".to_owned(),
        "\"password\" + \"token\"".to_owned(),
    ] {
        let masked = String::from_utf8_lossy(&rules.mask(line.as_bytes())).into_owned();
        assert_eq!(masked, line);
    }
}

#[test]
fn a_secret_is_found_where_carriage_returns_end_the_lines_of_a_long_text() {
    let rules = rules();
    let password = Dice(11).made("password:14");
    for line in [
        format!("db.corp.net:5432:orders:app:{password}"),
        format!(
            "variable \"db_password\" {{\r{}default = \"{password}\"\r}}",
            " ".repeat(1_100)
        ),
        format!(
            "mysqldump -u app --password={password} orders{}",
            " ".repeat(17_000)
        ),
    ] {
        for (end, hidden) in [("\n", ""), ("\r", ""), ("\n", " \0"), ("\r", " \0")] {
            let text =
                format!("{0}{line}{hidden}\r{0}", "x = 1\r".repeat(4_000)).replace('\r', end);
            let masked = rules.mask(text.as_bytes());
            assert!(
                memchr::memmem::find(&masked, password.as_bytes()).is_none(),
                "{end:?} {hidden:?} {line}"
            );
        }
    }
}
