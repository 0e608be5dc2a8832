//! Stores in object storage: S3, Google Cloud Storage and Azure Blob Storage, by opendal.
//!
//! opendal builds and signs the requests, and finds credentials by each store's own conventions
//! (variables, configuration files, metadata services). It gets no transport of its own: `http`
//! sends everything, with its certificates, proxies and bounds. No program is run for credentials.

mod azure;
mod endpoint;

use self::azure::AzureAccount;
use self::endpoint::endpoint;
use super::{BlobRead, StoreFailure, StoreListing, in_time};
use crate::env::Env;
use crate::http::StatusCode;
use crate::http::transfer::{Carrier, Delivery, Parcel};
use futures_util::{TryStreamExt as _, stream};
use opendal::options::{ListOptions, WriteOptions};
use opendal::raw::Operation;
use opendal::{
    Buffer, EntryMode, Error, ErrorKind, HttpBody, HttpTransport, HttpTransporter,
    OperationContext, Operator, services,
};
use std::sync::{Arc, Mutex};

/// Bytes of an answer to a request, at most: a page of a listing, or an entry.
const MAX_ANSWER: usize = 8 << 20;
/// Entries of a page of a listing. Azure's own pages of 5000 entries with long names would be larger
/// than an answer may be.
const PAGE: usize = 1000;
/// Attempts to create a blob that another machine creates at the same time.
const CREATIONS: usize = 2;
/// Region that is used if none is configured: S3-compatible servers accept it.
const REGION: &str = "us-east-1";
/// Variable with the address of an emulator of Google Cloud Storage.
const EMULATOR: &str = "STORAGE_EMULATOR_HOST";

/// A store in a bucket.
#[derive(Debug)]
pub(in crate::ai::shared) struct ObjectStore {
    operator: Operator,
    /// The outcome of the last request, which the errors of opendal do not contain.
    last: LastExchange,
}

type LastExchange = Arc<Mutex<Option<Exchange>>>;

/// A request that was sent.
#[derive(Debug)]
struct Exchange {
    /// False if it asked another service for the credentials of the store.
    is_of_store: bool,
    outcome: RequestOutcome,
}

#[derive(Debug)]
enum RequestOutcome {
    Answered(StatusCode),
    /// The connection failed, for this reason.
    Lost(String),
}

/// The transport of opendal: `http`.
struct OwnTransport {
    carrier: Carrier,
    last: LastExchange,
}

impl ObjectStore {
    /// Names a bucket: `BUCKET[/PREFIX]`. Connects to nothing.
    pub(super) fn new(scheme: &str, rest: &str, env: &Env) -> Result<Self, StoreFailure> {
        let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
        let operator = match scheme {
            "s3" => s3(bucket, prefix, env)?,
            "gs" => gcs(bucket, prefix, env)?,
            _ => azblob(bucket, prefix, env)?,
        };
        Self::over(operator, env)
    }

    /// Lets `http` send the requests of a client.
    fn over(operator: Operator, env: &Env) -> Result<Self, StoreFailure> {
        let carrier = Carrier::new(env).map_err(|failure| failure.message)?;
        let last = LastExchange::default();
        let transport = HttpTransporter::new(OwnTransport {
            carrier,
            last: Arc::clone(&last),
        });
        let context = OperationContext::new().with_http_transport(transport);
        Ok(Self {
            operator: operator.with_context(context),
            last,
        })
    }

    /// Describes an error: by the last request if opendal does not know its kind.
    fn described(&self, error: &Error) -> StoreFailure {
        let last = self.last.lock().ok().and_then(|mut last| last.take());
        described(error.kind(), last)
    }

    /// Reads a blob, if its size is within the bound.
    pub(super) async fn get(&self, name: &str, most: usize) -> Result<BlobRead, StoreFailure> {
        let size = match self.operator.stat(name).await {
            Ok(meta) => meta.content_length(),
            Err(e) if e.kind() == ErrorKind::NotFound => return Ok(BlobRead::Missing),
            Err(e) => return Err(self.described(&e)),
        };
        if size > most as u64 {
            return Ok(BlobRead::TooLarge);
        }
        // Some servers refuse to read an empty object, which would turn the store off.
        if size == 0 {
            return Ok(BlobRead::Content(Vec::new()));
        }
        match self.operator.read(name).await {
            Ok(bytes) if bytes.len() > most => Ok(BlobRead::TooLarge),
            Ok(bytes) => Ok(BlobRead::Content(bytes.to_vec())),
            Err(e) if e.kind() == ErrorKind::NotFound => Ok(BlobRead::Missing),
            Err(e) => Err(self.described(&e)),
        }
    }

    /// Writes a blob.
    pub(super) async fn put(&self, name: &str, bytes: &[u8]) -> Result<(), StoreFailure> {
        let written = self.operator.write(name, bytes.to_vec()).await;
        written.map(drop).map_err(|e| self.described(&e))
    }

    /// Writes a blob, unless one of this name exists (`If-None-Match: *`).
    pub(super) async fn create(&self, name: &str, bytes: &[u8]) -> Result<bool, StoreFailure> {
        for _ in 0..CREATIONS {
            let options = WriteOptions {
                if_not_exists: true,
                ..WriteOptions::default()
            };
            let bytes = bytes.to_vec();
            let Err(e) = self.operator.write_options(name, bytes, options).await else {
                return Ok(true);
            };
            match e.kind() {
                ErrorKind::ConditionNotMatch | ErrorKind::AlreadyExists => return Ok(false),
                // Another machine creates the same blob at this moment. S3 does not decide then,
                // and asks the client to try again.
                ErrorKind::Conflict => {}
                _ => return Err(self.described(&e)),
            }
        }
        Ok(false)
    }

    /// Removes a blob.
    pub(super) async fn remove(&self, name: &str) -> Result<(), StoreFailure> {
        self.operator
            .delete(name)
            .await
            .map_err(|e| self.described(&e))
    }

    /// Lists at most `most` blobs of a folder.
    pub(super) async fn list(
        &self,
        folder: &str,
        most: usize,
    ) -> Result<StoreListing, StoreFailure> {
        let path = format!("{folder}/");
        let mut listing = StoreListing::default();
        let options = ListOptions {
            limit: Some(PAGE),
            ..ListOptions::default()
        };
        let lister = self.operator.lister_options(&path, options);
        let lister = in_time(async { lister.await.map_err(|e| self.described(&e)) }).await?;
        let mut lister = std::pin::pin!(lister);
        loop {
            // One step is at most one request, for a page of the listing.
            let step = async { lister.try_next().await.map_err(|e| self.described(&e)) };
            let Some(entry) = in_time(step).await? else {
                break;
            };
            let is_file = entry.metadata().mode() == EntryMode::FILE;
            if is_file && listing.admits(entry.name(), most) {
                listing.add(entry.name().to_owned(), entry.metadata().content_length());
            }
            if listing.is_truncated {
                break;
            }
        }
        Ok(listing)
    }
}

/// Describes an error of a kind after a request. Concurrent requests can be confused with each
/// other, so that a known kind is described without it.
fn described(kind: ErrorKind, last: Option<Exchange>) -> StoreFailure {
    let Some(Exchange {
        is_of_store,
        outcome,
    }) = last
    else {
        return reason(kind).to_owned();
    };
    match (kind, outcome) {
        (ErrorKind::Unexpected, _) if !is_of_store => {
            "valid credentials for the store are missing".to_owned()
        }
        (ErrorKind::Unexpected, RequestOutcome::Lost(why)) => why,
        (ErrorKind::Unexpected, RequestOutcome::Answered(StatusCode::UNAUTHORIZED)) => {
            reason(ErrorKind::PermissionDenied).to_owned()
        }
        (ErrorKind::Unexpected, RequestOutcome::Answered(status)) if !status.is_success() => {
            format!("the store answers with status {}", status.as_u16())
        }
        // opendal reports a bucket of S3 that does not exist as a wrong setting.
        (ErrorKind::ConfigInvalid, RequestOutcome::Answered(StatusCode::NOT_FOUND))
            if is_of_store =>
        {
            reason(ErrorKind::NotFound).to_owned()
        }
        _ => reason(kind).to_owned(),
    }
}

/// Describes the answer of a store, without its text, which can hold anything.
fn reason(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::NotFound => "the bucket or container does not exist",
        ErrorKind::PermissionDenied => "access is denied, or credentials are missing",
        ErrorKind::RateLimited => "the store answers: too many requests",
        ErrorKind::ConfigInvalid => "its settings are invalid, or credentials are missing",
        _ => "the store answers with an error",
    }
}

/// Names a bucket of S3, or of a server with its interface (`AWS_ENDPOINT_URL_S3`).
fn s3(bucket: &str, prefix: &str, env: &Env) -> Result<Operator, StoreFailure> {
    let region = ["AWS_REGION", "AWS_DEFAULT_REGION"]
        .iter()
        .find_map(|name| env.var(name));
    let mut builder = services::S3::default()
        .bucket(bucket)
        .root(prefix)
        .region(region.unwrap_or(REGION));
    let address = ["AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"]
        .iter()
        .find_map(|name| env.var(name).map(|address| (name, address)));
    if let Some((name, address)) = address {
        builder = builder.endpoint(&endpoint(name, address, "https")?);
    }
    Operator::new(builder).map_err(unusable)
}

/// Names a bucket of Google Cloud Storage, or of an emulator. An emulator gets no credentials, as
/// with Google's own libraries.
fn gcs(bucket: &str, prefix: &str, env: &Env) -> Result<Operator, StoreFailure> {
    let mut builder = services::Gcs::default().bucket(bucket).root(prefix);
    if let Some(address) = env.var(EMULATOR) {
        let address = endpoint(EMULATOR, address, "http")?;
        builder = builder.endpoint(&address).skip_signature();
    }
    Operator::new(builder).map_err(unusable)
}

/// Names a container of Azure Blob Storage.
fn azblob(container: &str, prefix: &str, env: &Env) -> Result<Operator, StoreFailure> {
    let builder = AzureAccount::of(env)?.builder().map_err(unusable)?;
    Operator::new(builder.container(container).root(prefix)).map_err(unusable)
}

/// Describes an error in the settings of a store.
#[expect(clippy::needless_pass_by_value, reason = "it is passed to map_err")]
fn unusable(error: Error) -> StoreFailure {
    reason(error.kind()).to_owned()
}

impl HttpTransport for OwnTransport {
    async fn fetch(
        &self,
        request: http_messages::Request<Buffer>,
    ) -> opendal::Result<http_messages::Response<HttpBody>> {
        let (parts, body) = request.into_parts();
        let is_of_store = parts.extensions.get::<Operation>().is_some();
        let parcel = Parcel {
            method: parts.method,
            address: parts.uri.to_string(),
            headers: parts.headers,
            body: body.to_vec(),
        };
        let carried = self.carrier.carry(parcel, MAX_ANSWER).await;
        let (outcome, delivery) = match carried {
            Ok(delivery) => (RequestOutcome::Answered(delivery.status), Some(delivery)),
            Err(failure) => (RequestOutcome::Lost(failure.message), None),
        };
        if let Ok(mut last) = self.last.lock() {
            *last = Some(Exchange {
                is_of_store,
                outcome,
            });
        }
        let Some(delivery) = delivery else {
            return Err(Error::new(ErrorKind::Unexpected, "the request failed"));
        };
        let Delivery {
            status,
            headers,
            body,
        } = delivery;
        let size = body.len() as u64;
        let body = stream::iter([Ok(Buffer::from(body))]);
        let mut response = http_messages::Response::new(HttpBody::new(body, Some(size)));
        *response.status_mut() = status;
        *response.headers_mut() = headers;
        Ok(response)
    }
}

#[cfg(test)]
mod tests;
