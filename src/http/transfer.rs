//! Requests that another library builds and signs: sent as they are, once, within bounds.
//!
//! The client of object stores brings its own headers and interprets every status itself. It gets
//! the connections, the certificates, the proxies and the bounds of this module, and nothing else.

use super::{Cause, Failure, Method, Pool, Proxies, StatusCode, Url, is_local, reply};
use crate::env::Env;
use reqwest::header::{HOST, HeaderMap};
use std::net::IpAddr;

/// Sends requests of another library.
#[derive(Debug)]
pub struct Carrier {
    pool: Pool,
    proxies: Proxies,
}

/// A request.
#[derive(Clone, Debug)]
pub struct Parcel {
    pub method: Method,
    pub address: String,
    pub headers: HeaderMap,
    pub body: Vec<u8>,
}

/// An answer.
#[derive(Debug)]
pub struct Delivery {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: Vec<u8>,
}

impl Carrier {
    /// Prepares connections, with the proxies of the environment.
    ///
    /// # Errors
    ///
    /// `Setup`: a proxy variable is invalid.
    pub fn new(env: &Env) -> Result<Self, Failure> {
        Ok(Self {
            pool: Pool::default(),
            proxies: Proxies::of(env)?,
        })
    }

    /// Sends a request and reads at most `most` bytes of the answer, whatever its status. Redirects
    /// are not followed. The caller sets the deadline.
    ///
    /// # Errors
    ///
    /// `Setup`: the address is neither `https` nor of this machine or its metadata service.
    /// `Unreachable`, `TooLarge`.
    pub async fn carry(&self, parcel: Parcel, most: usize) -> Result<Delivery, Failure> {
        let url = Url::parse(&parcel.address)
            .map_err(|_| Failure::new(Cause::Setup, "the address of the store is invalid"))?;
        let is_secure = url.scheme() == "https";
        if !is_secure && !is_near(&url) {
            let message = "the address of the store is not an https URL";
            return Err(Failure::new(Cause::Setup, message));
        }
        let mut headers = parcel.headers;
        // The client derives it from the address; a signed one is the same.
        headers.remove(HOST);
        let client = self.pool.client(is_secure, &self.proxies)?;
        let request = client.request(parcel.method, url).headers(headers);
        let mut response = request
            .body(parcel.body)
            .send()
            .await
            .map_err(|e| lost(&e))?;
        let (status, headers) = (response.status(), response.headers().clone());
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(|e| lost(&e))? {
            if body.len() + chunk.len() > most {
                let message = format!("the answer is larger than {} MiB", most >> 20);
                return Err(Failure::new(Cause::TooLarge, message));
            }
            body.extend_from_slice(&chunk);
        }
        Ok(Delivery {
            status,
            headers,
            body,
        })
    }
}

/// Returns the failure of a connection.
fn lost(error: &reqwest::Error) -> Failure {
    Failure::new(Cause::Unreachable, reply::chain(error))
}

/// Returns true for an address that plain HTTP may be sent to: of this machine, or of the metadata
/// service that gives a machine in a cloud its credentials. Those services are link-local and have
/// no TLS.
fn is_near(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let address = host
        .trim_start_matches('[')
        .trim_end_matches(']')
        .parse::<IpAddr>();
    let is_metadata = match address {
        Ok(IpAddr::V4(v4)) => v4.is_link_local(),
        // The addresses of Amazon's services (fd00:ec2::254 and fd00:ec2::23).
        Ok(IpAddr::V6(v6)) => v6.segments()[..7] == [0xfd00, 0xec2, 0, 0, 0, 0, 0],
        Err(_) => host == "metadata.google.internal",
    };
    is_local(url) || is_metadata
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn net_19_plain_http_goes_to_this_machine_and_its_metadata_service_only() {
        for near in [
            "http://127.0.0.1:9000/bucket",
            "http://[::1]/",
            "http://169.254.169.254/latest",
            "http://[fd00:ec2::254]/latest",
            "http://metadata.google.internal/x",
        ] {
            assert!(is_near(&Url::parse(near).unwrap()), "{near}");
        }
        for far in [
            "http://s3.amazonaws.com/bucket",
            "http://10.0.0.1/",
            "http://[fd00:ec3::254]/",
            "http://169.254.169.254.example.com/",
        ] {
            assert!(!is_near(&Url::parse(far).unwrap()), "{far}");
        }
    }
}
