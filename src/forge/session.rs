//! The requests of one operation on a project: each call sends a request and waits for its answer.
//!
//! Forges are asked one request at a time, so the code that talks to them needs no `async`. The
//! session owns the runtime of one thread that the connections live on.

use super::address::ForgeProject;
use super::client::{ApiDocument, Client, Query};
use crate::http::{Failure, HeaderMap, Limits, Method, Repeat, Url};
use serde_json::Value;
use tokio::runtime::Runtime;

/// The project that is asked, the client of its host, and the limits of the operation.
pub(super) struct ForgeSession<'a> {
    pub(super) project: &'a ForgeProject,
    /// Name of the host, with the port if it is not the default.
    pub(super) host_name: String,
    client: &'a Client,
    limits: Limits<'a>,
    runtime: Runtime,
}

impl<'a> ForgeSession<'a> {
    /// Prepares a session. Opens no connection.
    ///
    /// # Errors
    ///
    /// The system has no resources for a runtime.
    pub(super) fn new(
        client: &'a Client,
        project: &'a ForgeProject,
        host_name: String,
        limits: Limits<'a>,
    ) -> std::io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        Ok(Self {
            project,
            host_name,
            client,
            limits,
            runtime,
        })
    }

    /// Ends the session without waiting for the resolution of a host name that is under way.
    pub(super) fn close(self) {
        self.runtime.shutdown_background();
    }

    /// Resolves the token, which may run the command that prints it. Each request calls it first, and
    /// only the first call has a cost.
    pub(super) fn ready(&self) -> Result<(), Failure> {
        self.runtime.block_on(self.client.ready(&self.limits))
    }

    /// Fails if the run was stopped or the time of the session is over.
    pub(super) fn check(&self) -> Result<(), Failure> {
        self.limits.check()
    }

    /// Returns true if the client has no token.
    pub(super) fn is_keyless(&self) -> bool {
        self.client.is_keyless()
    }

    /// Returns the name of the setting for the token.
    pub(super) fn token_name(&self) -> &str {
        self.client.token_name()
    }

    /// Returns the path prefix of requests; ends with a slash.
    pub(super) fn api_path(&self) -> &str {
        self.client.api_path()
    }

    /// Makes text of the forge safe to display; see [`Client::shown`].
    pub(super) fn shown(&self, text: &str) -> String {
        self.client.shown(text)
    }

    /// Returns an address below the API's; see [`Client::url`].
    pub(super) fn url(&self, path: &[impl AsRef<str>], query: Query<'_>) -> Result<Url, Failure> {
        self.client.url(path, query)
    }

    /// Returns the address of the next page from a `Link` header; see [`Client::next`].
    pub(super) fn next(&self, headers: &HeaderMap) -> Result<Option<Url>, Failure> {
        self.client.next(headers)
    }

    /// Parses the address of another page of a list; see [`Client::page`].
    pub(super) fn page(&self, address: &str) -> Result<Url, Failure> {
        self.client.page(address)
    }

    /// Reads a resource.
    pub(super) fn get(&self, path: &[impl AsRef<str>], query: Query<'_>) -> Result<Value, Failure> {
        Ok(self.fetch(self.url(path, query)?)?.value)
    }

    /// Reads an address from [`ForgeSession::url`], [`ForgeSession::next`] or
    /// [`ForgeSession::page`].
    pub(super) fn fetch(&self, url: Url) -> Result<ApiDocument, Failure> {
        self.send(Method::GET, Repeat::Harmless, url, None)
    }

    /// Creates a resource. The request is not repeated if the forge may have carried it out.
    pub(super) fn make(&self, path: &[impl AsRef<str>], body: &Value) -> Result<Value, Failure> {
        let url = self.url(path, &[])?;
        let made = self.send(Method::POST, Repeat::Makes, url, Some(body))?;
        Ok(made.value)
    }

    /// Changes a resource, idempotently.
    pub(super) fn change(
        &self,
        method: Method,
        path: &[impl AsRef<str>],
        body: &Value,
    ) -> Result<Value, Failure> {
        let url = self.url(path, &[])?;
        let changed = self.send(method, Repeat::Harmless, url, Some(body))?;
        Ok(changed.value)
    }

    /// Changes a resource by its path alone, idempotently.
    pub(super) fn order(&self, method: Method, path: &[impl AsRef<str>]) -> Result<(), Failure> {
        let url = self.url(path, &[])?;
        self.send(method, Repeat::Harmless, url, None).map(drop)
    }

    fn send(
        &self,
        method: Method,
        repeat: Repeat,
        url: Url,
        body: Option<&Value>,
    ) -> Result<ApiDocument, Failure> {
        self.ready()?;
        let sent = self.client.send(method, repeat, url, body, &self.limits);
        self.runtime.block_on(sent)
    }
}
