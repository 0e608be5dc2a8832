//! Generated secrets for samples: valid in every detail that a check reads, but without access to
//! anything.

use super::checksum;
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE_NO_PAD};

const ALNUM: &[u8] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// Returns the generated secret with a name. `None`: there is none. `random(n)` returns a number
/// below `n`.
///
/// Names: `github-token:PREFIX`, `npm-token`, `grafana-token`, `aws-key-id:PREFIX`, `age-key`,
/// `nostr-key`, `wallet-key`, `stellar-seed`, `wireguard-key`, `jwt`, `jwt:ROLE`, `jwt-example`,
/// `kubernetes-token`, `json-blob:LENGTH`, `base32-lower:LENGTH`, `basic-auth`, `discord-token`,
/// `pypi-token`, `sentry-token`, `pem-body`, `pem-key:KIND` (`rsa`, `ec`, `dsa`, `pkcs8`,
/// `ed25519`, `openssh`, `openssh-encrypted`; lines of 64 that parse, and belong to no public key),
/// `base64-password`, `uuid`, `uuid4`, `password:LENGTH`.
pub(crate) fn generate(name: &str, random: &mut dyn FnMut(u32) -> u32) -> Option<String> {
    let (name, argument) = name.split_once(':').unwrap_or((name, ""));
    let mut make = Maker { random };
    Some(match name {
        "github-token" => make.crc32(argument),
        "npm-token" => make.crc32("npm"),
        "grafana-token" => {
            let body = format!("glsa_{}", make.of(ALNUM, 32));
            format!("{body}_{}", checksum::grafana_digits(body.as_bytes()))
        }
        // The fifth character shows that an account number follows, and the sixth limits it to
        // twelve digits.
        "aws-key-id" => format!(
            "{argument}{}",
            ["Y", &make.of(b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", 15)].concat()
        ),
        "age-key" => {
            checksum::bech32_encode("age-secret-key-", &make.below(32, 52)).to_ascii_uppercase()
        }
        "nostr-key" => checksum::bech32_encode("nsec", &make.below(32, 52)),
        "wallet-key" => {
            let mut body = vec![0x04, 0x88, 0xad, 0xe4];
            body.extend(make.below(256, 74));
            checksum::base58check_encode(&body)
        }
        "stellar-seed" => {
            let mut key = [0; 32];
            key.copy_from_slice(&make.below(256, 32));
            checksum::stellar_encode(&key)
        }
        "wireguard-key" => {
            let mut key = make.below(256, 32);
            key[0] &= 0xf8;
            key[31] = key[31] & 0x7f | 0x40;
            STANDARD.encode(key)
        }
        "jwt" => {
            let head = URL_SAFE_NO_PAD.encode(r#"{"alg":"HS256","typ":"JWT"}"#);
            let claims = match argument {
                "" => format!(
                    r#"{{"iss":"https://id.corp.net","sub":"{}","exp":1900000000}}"#,
                    make.of(ALNUM, 12)
                ),
                role => {
                    format!(
                        r#"{{"iss":"supabase","ref":"{}","role":"{role}","exp":1900000000}}"#,
                        make.of(ALNUM, 20)
                    )
                }
            };
            let signature = URL_SAFE_NO_PAD.encode(make.below(256, 32));
            format!("{head}.{}.{signature}", URL_SAFE_NO_PAD.encode(claims))
        }
        // The payload of the examples in the RFC and in tutorials.
        "jwt-example" => {
            let head = URL_SAFE_NO_PAD.encode(r#"{"alg":"HS256","typ":"JWT"}"#);
            let claims = URL_SAFE_NO_PAD
                .encode(r#"{"sub":"1234567890","name":"John Doe","iat":1516239022}"#);
            format!(
                "{head}.{claims}.{}",
                URL_SAFE_NO_PAD.encode(make.below(256, 32))
            )
        }
        "kubernetes-token" => {
            let head = URL_SAFE_NO_PAD.encode(format!(
                r#"{{"alg":"RS256","kid":"{}"}}"#,
                make.of(ALNUM, 42)
            ));
            let claims = r#"{"iss":"kubernetes/serviceaccount","kubernetes.io/serviceaccount/namespace":"corp"}"#;
            format!(
                "{head}.{}.{}",
                URL_SAFE_NO_PAD.encode(claims),
                URL_SAFE_NO_PAD.encode(make.below(256, 256))
            )
        }
        // The Base64 of a JSON object with at least this length.
        "json-blob" => {
            let length = argument.parse::<usize>().unwrap_or(60);
            URL_SAFE_NO_PAD.encode(format!(r#"{{"k":"{}"}}"#, make.of(ALNUM, length * 3 / 4)))
        }
        "base32-lower" => make.of(b"abcdefghijklmnopqrstuvwxyz234567", argument.parse().ok()?),
        "uuid4" => {
            let hex = make.of(b"0123456789abcdef", 30);
            format!(
                "{}-{}-4{}-9{}-{}",
                &hex[..8],
                &hex[8..12],
                &hex[12..15],
                &hex[15..18],
                &hex[18..30]
            )
        }
        "basic-auth" => STANDARD.encode(format!("deploy:{}", make.mixed(14))),
        "discord-token" => {
            let id = format!("1{}", make.of(b"0123456789", 17));
            format!(
                "{}.{}.{}",
                URL_SAFE_NO_PAD.encode(id),
                make.of(ALNUM, 6),
                make.of(ALNUM, 38)
            )
        }
        "pypi-token" => {
            let mut body = b"\x02\x01\x08pypi.org\x02".to_vec();
            body.extend(make.below(256, 100));
            format!("pypi-{}", URL_SAFE_NO_PAD.encode(body))
        }
        "sentry-token" => {
            let body = STANDARD_NO_PAD
                .encode(r#"{"iat":1700000000.123,"url":"https://sentry.io","org":"corp"}"#);
            format!("sntrys_{body}_{}", make.of(ALNUM, 43))
        }
        "pem-body" => {
            STANDARD.encode([&[0x30, 0x82, 0x04, 0xa4][..], &make.below(256, 44)].concat())
        }
        "pem-key" => {
            let text = STANDARD.encode(make.key(argument)?);
            text.as_bytes()
                .chunks(64)
                .map(String::from_utf8_lossy)
                .collect::<Vec<_>>()
                .join("\n")
        }
        "base64-password" => STANDARD.encode(make.mixed(15)),
        "uuid" => {
            let hex = make.of(b"0123456789abcdef", 32);
            format!(
                "{}-{}-{}-{}-{}",
                &hex[..8],
                &hex[8..12],
                &hex[12..16],
                &hex[16..20],
                &hex[20..]
            )
        }
        "password" => make.mixed(argument.parse().unwrap_or(12)),
        _ => return None,
    })
}

/// Returns an element of DER: tag, length, content.
fn element(tag: u8, content: &[u8]) -> Vec<u8> {
    let length = match content.len() {
        n @ 0..0x80 => vec![n as u8],
        n @ 0x80..0x100 => vec![0x81, n as u8],
        n => [&[0x82][..], &(n as u16).to_be_bytes()].concat(),
    };
    [&[tag][..], &length, content].concat()
}

struct Maker<'a> {
    random: &'a mut dyn FnMut(u32) -> u32,
}

impl Maker<'_> {
    fn of(&mut self, alphabet: &[u8], count: usize) -> String {
        (0..count)
            .map(|_| char::from(alphabet[(self.random)(alphabet.len() as u32) as usize]))
            .collect()
    }

    fn below(&mut self, limit: u32, count: usize) -> Vec<u8> {
        (0..count).map(|_| (self.random)(limit) as u8).collect()
    }

    /// Returns letters of both cases with digits among them, as a password manager generates them.
    fn mixed(&mut self, count: usize) -> String {
        let groups: [&[u8]; 3] = [b"bcdfghkmnpqrtvwxz", b"BCDFGHKMNPQRTVWXZ", b"2345678"];
        (0..count).map(|i| self.of(groups[i % 3], 1)).collect()
    }

    /// Returns the structure of a private key of a kind, with random numbers.
    fn key(&mut self, kind: &str) -> Option<Vec<u8>> {
        Some(match kind {
            "rsa" => {
                let sizes = [256, 3, 256, 128, 128, 128, 128, 128];
                let numbers: Vec<u8> = sizes.iter().flat_map(|n| self.integer(*n)).collect();
                element(0x30, &[&[2, 1, 0][..], &numbers].concat())
            }
            "dsa" => {
                let numbers: Vec<u8> = [128, 20, 128, 128, 20]
                    .iter()
                    .flat_map(|n| self.integer(*n))
                    .collect();
                element(0x30, &[&[2, 1, 0][..], &numbers].concat())
            }
            "ec" => {
                let curve = element(0xa0, &[6, 8, 0x2a, 0x86, 0x48, 0xce, 0x3d, 3, 1, 7]);
                element(
                    0x30,
                    &[&[2, 1, 1][..], &element(4, &self.below(256, 32)), &curve].concat(),
                )
            }
            "pkcs8" => {
                let algorithm = [6, 9, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 1, 5, 0];
                let inner = self.key("rsa")?;
                element(
                    0x30,
                    &[
                        &[2, 1, 0][..],
                        &element(0x30, &algorithm),
                        &element(4, &inner),
                    ]
                    .concat(),
                )
            }
            "ed25519" => {
                let inner = element(4, &self.below(256, 32));
                element(
                    0x30,
                    &[
                        &[2, 1, 0][..],
                        &element(0x30, &[6, 3, 0x2b, 0x65, 0x70]),
                        &element(4, &inner),
                    ]
                    .concat(),
                )
            }
            "openssh" | "openssh-encrypted" => {
                let encrypted = kind == "openssh-encrypted";
                let names = if encrypted {
                    ["aes256-ctr", "bcrypt"]
                } else {
                    ["none", "none"]
                };
                let public = [
                    openssh_field(b"ssh-ed25519"),
                    openssh_field(&self.below(256, 32)),
                ]
                .concat();
                let check = self.below(256, 4);
                let private = [
                    &check[..],
                    &check,
                    &public,
                    &openssh_field(&self.below(256, 64)),
                    &openssh_field(b""),
                ]
                .concat();
                let mut out = b"openssh-key-v1\0".to_vec();
                names
                    .iter()
                    .for_each(|n| out.extend(openssh_field(n.as_bytes())));
                out.extend(
                    [
                        openssh_field(b""),
                        vec![0, 0, 0, 1],
                        openssh_field(&public),
                        openssh_field(&private),
                    ]
                    .concat(),
                );
                out
            }
            _ => return None,
        })
    }

    /// Returns a positive number of `count` bytes.
    fn integer(&mut self, count: usize) -> Vec<u8> {
        let mut bytes = self.below(256, count);
        bytes[0] = bytes[0] & 0x7f | 0x40;
        element(2, &bytes)
    }

    fn crc32(&mut self, prefix: &str) -> String {
        let body = self.of(ALNUM, 30);
        let sum = checksum::crc32_digits(body.as_bytes());
        format!("{prefix}_{body}{}", String::from_utf8_lossy(&sum))
    }
}

/// Returns a text with its length, as in the key files of OpenSSH.
fn openssh_field(bytes: &[u8]) -> Vec<u8> {
    [&(bytes.len() as u32).to_be_bytes()[..], bytes].concat()
}

#[cfg(test)]
mod tests {
    use super::super::{SecretCandidate, check};
    use super::*;

    fn random(state: &mut u32, n: u32) -> u32 {
        *state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (*state >> 8) % n
    }

    #[test]
    fn makes_what_the_checks_accept() {
        for seed in 1..40u32 {
            let mut state = seed;
            for (name, wanted) in [
                ("github-token:ghp", "crc32-base62"),
                ("npm-token", "crc32-base62"),
                ("grafana-token", "grafana-crc32"),
                ("aws-key-id:AKIA", "aws-account"),
                ("age-key", "bech32"),
                ("nostr-key", "bech32"),
                ("wallet-key", "base58check"),
                ("stellar-seed", "stellar-crc16"),
                ("wireguard-key", "wireguard-clamp"),
                ("jwt", "jwt"),
                ("jwt:service_role", "jwt-service-role"),
                ("basic-auth", "basic-auth"),
                ("discord-token", "discord-id"),
                ("pypi-token", "macaroon"),
                ("sentry-token", "base64-json"),
                ("base64-password", "base64-text"),
                ("password:12", "password"),
            ] {
                let secret = generate(name, &mut |n| random(&mut state, n)).expect(name);
                let c = SecretCandidate {
                    secret: secret.as_bytes(),
                    line: secret.as_bytes(),
                    at: 0,
                    after: b"",
                    path: b"a.txt",
                };
                assert_eq!(check(wanted, &c), Some(true), "{name} {secret}");
            }
        }
    }
}
