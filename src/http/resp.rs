//! A connection to a Redis server: the protocol RESP2 over TCP or TLS.
//!
//! Redis does not speak HTTP, so this is the second kind of connection that `http` opens. Plain TCP
//! is only for this machine, which the policy checks. A server is not trusted: every reply has a
//! bound, and its text is shown escaped and short.

use crate::text::shortened;
use crate::untrusted::Inert;
use rustls::pki_types::ServerName;
use rustls_platform_verifier::ConfigVerifierExt as _;
use secrecy::{ExposeSecret as _, SecretString};
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

/// Bytes of one line of a reply, at most.
const MAX_LINE: usize = 4 << 10;
/// Elements of a list, at most.
const MAX_ITEMS: usize = 100_000;
/// Characters of a server's text that are shown, at most.
const MAX_SHOWN: usize = 200;

/// The address of a Redis server, and how to sign in.
#[derive(Debug)]
pub struct RespServer {
    pub host: String,
    pub port: u16,
    pub is_secure: bool,
    pub database: u16,
    pub user: Option<String>,
    pub password: Option<SecretString>,
}

/// A reply of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RespReply {
    /// A short text, such as `OK`.
    Status(String),
    Number(i64),
    /// `None`: there is no value.
    Bytes(Option<Vec<u8>>),
    List(Vec<RespReply>),
}

/// A stream of bytes in both directions.
trait Duplex: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Duplex for T {}

/// An open connection.
pub struct RespConnection {
    stream: Box<dyn Duplex>,
    /// Bytes that were read and not used yet.
    buffer: Vec<u8>,
    /// Position of the first unused byte.
    used: usize,
}

impl std::fmt::Debug for RespConnection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("RespConnection")
    }
}

impl RespServer {
    /// Connects and signs in. The caller sets the deadline.
    ///
    /// # Errors
    ///
    /// The server cannot be reached, its certificate is not valid, or it refuses the password.
    pub async fn connect(&self) -> Result<RespConnection, String> {
        let stream = TcpStream::connect((self.host.as_str(), self.port))
            .await
            .map_err(|e| format!("cannot connect: {e}"))?;
        // A command is one write that waits for its answer.
        let _ = stream.set_nodelay(true);
        let stream: Box<dyn Duplex> = match self.is_secure {
            true => Box::new(self.secured(stream).await?),
            false => Box::new(stream),
        };
        let mut connection = RespConnection {
            stream,
            buffer: Vec::new(),
            used: 0,
        };
        self.sign_in(&mut connection).await?;
        Ok(connection)
    }

    /// Starts TLS, with the root certificates of this machine.
    async fn secured(&self, stream: TcpStream) -> Result<impl Duplex + use<>, String> {
        // An error only means that a provider is already installed.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let config = rustls::ClientConfig::with_platform_verifier()
            .map_err(|e| format!("cannot set up TLS: {e}"))?;
        let name = ServerName::try_from(self.host.clone())
            .map_err(|_| "the host is not a valid name for TLS".to_owned())?;
        TlsConnector::from(Arc::new(config))
            .connect(name, stream)
            .await
            .map_err(|e| format!("TLS connection failed: {}", shown(&e.to_string())))
    }

    /// Sends the password and selects the database.
    async fn sign_in(&self, connection: &mut RespConnection) -> Result<(), String> {
        if let Some(password) = &self.password {
            let password = password.expose_secret().as_bytes();
            let reply = match &self.user {
                Some(user) => {
                    connection
                        .command(&[b"AUTH", user.as_bytes(), password], MAX_LINE)
                        .await
                }
                None => connection.command(&[b"AUTH", password], MAX_LINE).await,
            };
            // The answer of a hostile server may repeat the password.
            reply.map_err(|_| "the server refused the password in REDISCLI_AUTH".to_owned())?;
        }
        if self.database > 0 {
            let number = self.database.to_string();
            connection
                .command(&[b"SELECT", number.as_bytes()], MAX_LINE)
                .await?;
        }
        Ok(())
    }
}

impl RespConnection {
    /// Sends a command and reads its reply of at most `most` bytes in one value. A connection whose
    /// command did not end is out of step and must be dropped.
    ///
    /// # Errors
    ///
    /// The connection was lost, the reply is malformed or too large, or the server reports an error.
    pub async fn command(&mut self, args: &[&[u8]], most: usize) -> Result<RespReply, String> {
        let mut out = format!("*{}\r\n", args.len()).into_bytes();
        for arg in args {
            out.extend(format!("${}\r\n", arg.len()).as_bytes());
            out.extend(*arg);
            out.extend(b"\r\n");
        }
        self.stream
            .write_all(&out)
            .await
            .map_err(|e| format!("the connection was lost: {e}"))?;
        let (kind, rest) = self.line().await?;
        if kind != b'*' {
            return self.value(kind, &rest, most).await;
        }
        let count = length(&rest)?.unwrap_or_default();
        let mut items = Vec::new();
        for _ in 0..bounded(count, MAX_ITEMS)? {
            items.push(self.item(most).await?);
        }
        Ok(RespReply::List(items))
    }

    /// Reads an element of a list: a value, or a list of values.
    async fn item(&mut self, most: usize) -> Result<RespReply, String> {
        let (kind, rest) = self.line().await?;
        if kind != b'*' {
            return self.value(kind, &rest, most).await;
        }
        let count = length(&rest)?.unwrap_or_default();
        let mut items = Vec::new();
        for _ in 0..bounded(count, MAX_ITEMS)? {
            let (kind, rest) = self.line().await?;
            items.push(self.value(kind, &rest, most).await?);
        }
        Ok(RespReply::List(items))
    }

    /// Reads a value whose first line was read.
    async fn value(&mut self, kind: u8, rest: &str, most: usize) -> Result<RespReply, String> {
        match kind {
            b'+' => Ok(RespReply::Status(rest.to_owned())),
            b'-' => Err(format!("the server reports: {}", shown(rest))),
            b':' => rest.parse().map(RespReply::Number).map_err(|_| malformed()),
            b'$' => match length(rest)? {
                None => Ok(RespReply::Bytes(None)),
                Some(size) => {
                    let size = bounded(size, most)?;
                    self.bytes(size).await.map(Some).map(RespReply::Bytes)
                }
            },
            _ => Err(malformed()),
        }
    }

    /// Reads a line; returns its first byte and the rest.
    async fn line(&mut self) -> Result<(u8, String), String> {
        loop {
            let unused = &self.buffer[self.used..];
            if let Some(end) = unused.windows(2).position(|pair| pair == b"\r\n") {
                let text = std::str::from_utf8(&unused[..end]).map_err(|_| malformed())?;
                let kind = *text.as_bytes().first().ok_or_else(malformed)?;
                let rest = text.get(1..).ok_or_else(malformed)?.to_owned();
                self.used += end + 2;
                return Ok((kind, rest));
            }
            if unused.len() > MAX_LINE {
                return Err(malformed());
            }
            self.fill().await?;
        }
    }

    /// Reads this number of bytes, and the end of their line.
    async fn bytes(&mut self, size: usize) -> Result<Vec<u8>, String> {
        while self.buffer.len() - self.used < size + 2 {
            self.fill().await?;
        }
        let bytes = self.buffer[self.used..self.used + size].to_vec();
        self.used += size + 2;
        Ok(bytes)
    }

    /// Reads further bytes into the buffer.
    async fn fill(&mut self) -> Result<(), String> {
        self.buffer.drain(..self.used);
        self.used = 0;
        let count = self
            .stream
            .read_buf(&mut self.buffer)
            .await
            .map_err(|e| format!("the connection was lost: {}", shown(&e.to_string())))?;
        match count {
            0 => Err("the server closed the connection".to_owned()),
            _ => Ok(()),
        }
    }
}

/// Parses a length; `None` for -1, which stands for no value.
fn length(text: &str) -> Result<Option<usize>, String> {
    match text {
        "-1" => Ok(None),
        _ => text.parse().map(Some).map_err(|_| malformed()),
    }
}

/// Checks the bound of a length.
fn bounded(length: usize, most: usize) -> Result<usize, String> {
    match length > most {
        true => Err(format!("the server sent more than {most} bytes or entries")),
        false => Ok(length),
    }
}

/// Returns the failure of a reply that is not RESP.
fn malformed() -> String {
    "the answer is not from a Redis server".to_owned()
}

/// Returns a text of a server for display: on one line, escaped, short.
fn shown(text: &str) -> String {
    shortened(Inert::new(text.trim()).as_str(), MAX_SHOWN).into_owned()
}
