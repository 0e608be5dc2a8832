//! Certificates that tests generate: X.509 v3 with ECDSA on P-256 (RFC 5280), self-signed.

use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair, KeyPair};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use std::sync::Arc;

/// The content of a certificate.
pub struct Certificate<'a> {
    /// A name (`localhost`), or an IPv4 address.
    pub host: &'a str,
    /// End of validity, as `YYYYMMDDhhmmssZ`.
    pub until: &'a str,
}

/// A certificate in the two forms that a test needs.
pub struct Made {
    /// For the server.
    pub config: rustls::ServerConfig,
    /// For `SSL_CERT_FILE` of a client that must trust it.
    pub pem: String,
}

impl Certificate<'_> {
    pub fn make(&self) -> Made {
        let random = SystemRandom::new();
        let pkcs8 = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, &random).unwrap();
        let key =
            EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, pkcs8.as_ref(), &random)
                .unwrap();
        // ecdsa-with-SHA256; ecPublicKey on prime256v1; commonName; subjectAltName;
        // basicConstraints.
        let signing = der(0x30, &[oid(&[0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 3, 2])]);
        let curve = [
            oid(&[0x2a, 0x86, 0x48, 0xce, 0x3d, 2, 1]),
            oid(&[0x2a, 0x86, 0x48, 0xce, 0x3d, 3, 1, 7]),
        ];
        let bits = der(3, &[vec![0], key.public_key().as_ref().to_vec()]);
        let name = der(0x30, &[oid(&[0x55, 4, 3]), der(0x0c, &[b"test".to_vec()])]);
        let name = der(0x30, &[der(0x31, &[name])]);
        let time = |text: &str| der(0x18, &[text.as_bytes().to_vec()]);
        let host = match self.host.parse::<std::net::Ipv4Addr>() {
            Ok(ip) => der(0x87, &[ip.octets().to_vec()]),
            Err(_) => der(0x82, &[self.host.as_bytes().to_vec()]),
        };
        let names = der(
            0x30,
            &[oid(&[0x55, 0x1d, 17]), der(4, &[der(0x30, &[host])])],
        );
        let content = der(
            0x30,
            &[
                der(0xa0, &[der(2, &[vec![2]])]),
                der(2, &[vec![1]]),
                signing.clone(),
                name.clone(),
                der(0x30, &[time("20200101000000Z"), time(self.until)]),
                name,
                der(0x30, &[der(0x30, &curve), bits]),
                der(0xa3, &[der(0x30, &[names])]),
            ],
        );
        let signature = key.sign(&random, &content).unwrap();
        let signature = der(3, &[vec![0], signature.as_ref().to_vec()]);
        let certificate = der(0x30, &[content, signing, signature]);
        let pem = format!(
            "-----BEGIN CERTIFICATE-----\n{}\n-----END CERTIFICATE-----\n",
            base64(&certificate)
        );
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let private = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(pkcs8.as_ref().to_vec()));
        let config = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![CertificateDer::from(certificate)], private)
            .unwrap();
        Made { config, pem }
    }
}

/// Encodes a value: tag, length, content.
fn der(tag: u8, parts: &[Vec<u8>]) -> Vec<u8> {
    let content = parts.concat();
    let mut out = vec![tag];
    match u8::try_from(content.len()) {
        Ok(n @ 0..=127) => out.push(n),
        Ok(n) => out.extend([0x81, n]),
        Err(_) => out.extend(
            [
                &[0x82][..],
                &u16::try_from(content.len()).unwrap().to_be_bytes(),
            ]
            .concat(),
        ),
    }
    out.extend(content);
    out
}

fn oid(bytes: &[u8]) -> Vec<u8> {
    der(6, &[bytes.to_vec()])
}

fn base64(bytes: &[u8]) -> String {
    use base64::Engine as _;
    let text = base64::engine::general_purpose::STANDARD.encode(bytes);
    text.as_bytes()
        .chunks(64)
        .map(|l| String::from_utf8_lossy(l).into_owned())
        .collect::<Vec<_>>()
        .join("\n")
}
