//! A connection to a Redis server: the protocol RESP2 over TCP or TLS.
//!
//! Redis does not speak HTTP, so this is the second kind of connection that `http` opens. Plain TCP
//! is only for this machine, which the policy checks. A server is not trusted: every reply has a
//! bound, and its text is shown without the password, escaped and short.

use super::key::Key;
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
    /// `None`: the value does not exist.
    Bytes(Option<Vec<u8>>),
    List(Vec<RespReply>),
    /// The key has a value of a type that the command is not for (`WRONGTYPE`).
    WrongType,
    /// The server reports another error: its text, for display.
    Error(String),
}

/// A stream of bytes in both directions.
trait Duplex: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Duplex for T {}

/// An open connection.
pub struct RespConnection {
    stream: Box<dyn Duplex>,
    /// Masks the password, which a hostile server can repeat in any later error.
    secret: Option<Key>,
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
            secret: self.secret(),
            buffer: Vec::new(),
            used: 0,
        };
        self.sign_in(&mut connection).await?;
        Ok(connection)
    }

    /// Returns the password as a key that masks it in texts.
    fn secret(&self) -> Option<Key> {
        self.password.clone().and_then(Key::of_password)
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
            .map_err(|e| {
                // The certificate of a server that knows the password can hold it.
                let why = shown(&e.to_string(), self.secret().as_ref());
                format!("TLS connection failed: {why}")
            })
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
            if !matches!(reply?, RespReply::Status(_)) {
                return Err("the server refused the password in REDISCLI_AUTH".to_owned());
            }
        }
        if self.database > 0 {
            let number = self.database.to_string();
            let args: [&[u8]; 2] = [b"SELECT", number.as_bytes()];
            connection.command(&args, MAX_LINE).await?.accepted()?;
        }
        Ok(())
    }
}

impl RespReply {
    /// Returns the reply, if it is not an error.
    ///
    /// # Errors
    ///
    /// The server reports an error.
    pub fn accepted(self) -> Result<Self, String> {
        match self {
            Self::Error(why) => Err(format!("the server reports: {why}")),
            Self::WrongType => Err("the server reports a value of another type".to_owned()),
            reply => Ok(reply),
        }
    }
}

impl RespConnection {
    /// Sends a command and reads its reply: one value of at most `most` bytes, or an error that the
    /// server reports. A connection whose command did not end is out of step and must be dropped.
    ///
    /// # Errors
    ///
    /// The connection was lost, or the reply is malformed, too large or a list.
    pub async fn command(&mut self, args: &[&[u8]], most: usize) -> Result<RespReply, String> {
        self.send(&encoded(args)).await?;
        self.reply(most).await
    }

    /// Sends several commands at once and reads their replies, in order, each of at most `most`
    /// bytes. Their number must be small: nothing is read before all commands are sent.
    ///
    /// # Errors
    ///
    /// Same as [`Self::command`].
    pub async fn commands(
        &mut self,
        all: &[Vec<&[u8]>],
        most: usize,
    ) -> Result<Vec<RespReply>, String> {
        let bytes: Vec<u8> = all.iter().flat_map(|args| encoded(args)).collect();
        self.send(&bytes).await?;
        let mut replies = Vec::with_capacity(all.len());
        for _ in all {
            replies.push(self.reply(most).await?);
        }
        Ok(replies)
    }

    /// Sends a command and reads its reply: a list of values and of lists of values, of at most
    /// `most` bytes in total.
    ///
    /// # Errors
    ///
    /// Same as [`Self::command`]; the server reports an error, or the reply is not a list.
    pub async fn list(&mut self, args: &[&[u8]], most: usize) -> Result<Vec<RespReply>, String> {
        self.send(&encoded(args)).await?;
        let mut left = most;
        let (kind, rest) = self.line().await?;
        if kind != b'*' {
            self.value(kind, &rest, most).await?.accepted()?;
            return Err(malformed());
        }
        let mut items = Vec::new();
        for _ in 0..bounded(length(&rest)?.unwrap_or_default(), MAX_ITEMS)? {
            let (kind, rest) = self.line().await?;
            items.push(match kind {
                b'*' => RespReply::List(self.values(&rest, &mut left).await?),
                _ => self.counted(kind, &rest, &mut left).await?,
            });
        }
        Ok(items)
    }

    /// Sends bytes.
    async fn send(&mut self, bytes: &[u8]) -> Result<(), String> {
        self.stream
            .write_all(bytes)
            .await
            .map_err(|e| format!("the connection was lost: {e}"))
    }

    /// Reads one value.
    async fn reply(&mut self, most: usize) -> Result<RespReply, String> {
        let (kind, rest) = self.line().await?;
        match kind {
            b'*' => Err("the server sent more than one value".to_owned()),
            _ => self.value(kind, &rest, most).await,
        }
    }

    /// Reads the values of a list whose first line was read.
    async fn values(&mut self, rest: &str, left: &mut usize) -> Result<Vec<RespReply>, String> {
        let mut items = Vec::new();
        for _ in 0..bounded(length(rest)?.unwrap_or_default(), MAX_ITEMS)? {
            let (kind, rest) = self.line().await?;
            items.push(self.counted(kind, &rest, left).await?);
        }
        Ok(items)
    }

    /// Reads a value of a list, and takes its bytes off those that are left for the list.
    async fn counted(
        &mut self,
        kind: u8,
        rest: &str,
        left: &mut usize,
    ) -> Result<RespReply, String> {
        let value = self.value(kind, rest, *left).await?;
        let size = match &value {
            RespReply::Bytes(Some(bytes)) => bytes.len(),
            _ => rest.len(),
        };
        // Empty values occupy memory too.
        let size = size + std::mem::size_of::<RespReply>();
        *left = left
            .checked_sub(size)
            .ok_or_else(|| "the server sent more than a list may have".to_owned())?;
        Ok(value)
    }

    /// Reads a value whose first line was read.
    async fn value(&mut self, kind: u8, rest: &str, most: usize) -> Result<RespReply, String> {
        match kind {
            b'+' => Ok(RespReply::Status(rest.to_owned())),
            // The first word of an error is its code.
            b'-' if rest.split(' ').next() == Some("WRONGTYPE") => Ok(RespReply::WrongType),
            b'-' => Ok(RespReply::Error(shown(rest, self.secret.as_ref()))),
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
        let count = self.stream.read_buf(&mut self.buffer).await.map_err(|e| {
            let why = shown(&e.to_string(), self.secret.as_ref());
            format!("the connection was lost: {why}")
        })?;
        match count {
            0 => Err("the server closed the connection".to_owned()),
            _ => Ok(()),
        }
    }
}

/// Encodes a command: a list of its words.
fn encoded(args: &[&[u8]]) -> Vec<u8> {
    let mut out = format!("*{}\r\n", args.len()).into_bytes();
    for arg in args {
        out.extend(format!("${}\r\n", arg.len()).as_bytes());
        out.extend(*arg);
        out.extend(b"\r\n");
    }
    out
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

/// Returns a text of a server for display: without the password, on one line, escaped, short.
fn shown(text: &str, secret: Option<&Key>) -> String {
    let masked = secret.map(|key| key.mask(text));
    let text = masked.as_deref().unwrap_or(text);
    shortened(Inert::new(text.trim()).as_str(), MAX_SHOWN).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a connection to a server that answers with these bytes.
    fn answering(bytes: &'static [u8]) -> RespConnection {
        RespConnection {
            stream: Box::new(tokio::io::join(bytes, tokio::io::sink())),
            secret: Key::of_password(SecretString::from("pass word-canary".to_owned())),
            buffer: Vec::new(),
            used: 0,
        }
    }

    /// Runs a future to its end.
    fn done<T>(work: impl Future<Output = T>) -> T {
        let runtime = tokio::runtime::Builder::new_current_thread().build();
        runtime.unwrap().block_on(work)
    }

    #[test]
    fn sec_03_no_error_of_a_server_shows_the_password_or_a_long_part_of_it() {
        for answer in [
            &b"-ERR unknown user pass word-canary\r\n"[..],
            b"-ERR PASS WORD-CANARY, and again ord-canary\r\n",
        ] {
            let reply = done(answering(answer).command(&[b"GET", b"a"], 100)).unwrap();
            let why = reply.accepted().unwrap_err();
            assert!(why.contains("the server reports: ERR"), "{why}");
            assert!(!why.to_lowercase().contains("canary"), "{why}");
            let why = done(answering(answer).list(&[b"SCAN", b"0"], 100)).unwrap_err();
            assert!(!why.to_lowercase().contains("canary"), "{why}");
        }
    }

    #[test]
    fn only_a_command_for_a_list_accepts_one_and_its_bytes_are_bounded_in_total() {
        let list = b"*2\r\n$1\r\n0\r\n*2\r\n$3\r\nabc\r\n$3\r\ndef\r\n";
        let bytes = |text: &str| RespReply::Bytes(Some(text.as_bytes().to_vec()));
        assert_eq!(
            done(answering(list).list(&[b"SCAN", b"0"], 4096)).unwrap(),
            [
                bytes("0"),
                RespReply::List(vec![bytes("abc"), bytes("def")])
            ]
        );
        let why = done(answering(list).command(&[b"GET", b"a"], 4096)).unwrap_err();
        assert!(why.contains("more than one value"), "{why}");
        // Each value is within the bound, and their sum is not.
        let most = 3 * std::mem::size_of::<RespReply>() + 6;
        let why = done(answering(list).list(&[b"SCAN", b"0"], most)).unwrap_err();
        assert!(why.contains("more than"), "{why}");
        assert!(done(answering(b"$1\r\na\r\n").list(&[b"SCAN", b"0"], 4096)).is_err());
    }
    #[test]
    fn an_error_about_one_key_leaves_the_other_replies_and_the_connection_intact() {
        let answers = b":3\r\n-WRONGTYPE Operation against a key\r\n-ERR odd\r\n:4\r\n+OK\r\n";
        let mut connection = answering(answers);
        let sizes = ["a", "b", "c", "d"].map(|key| vec![b"STRLEN".as_slice(), key.as_bytes()]);
        let replies = done(connection.commands(&sizes, 100)).unwrap();
        let odd = RespReply::Error("ERR odd".to_owned());
        let number = RespReply::Number;
        assert_eq!(replies, [number(3), RespReply::WrongType, odd, number(4)]);
        let next = done(connection.command(&[b"PING"], 100)).unwrap();
        assert_eq!(next, RespReply::Status("OK".to_owned()));
        assert!(done(answering(b":3\r\n").commands(&sizes, 100)).is_err());
    }

    #[test]
    fn a_password_counts_as_refused_only_if_the_server_says_so() {
        let server = RespServer {
            host: "localhost".to_owned(),
            port: 1,
            is_secure: false,
            database: 0,
            user: None,
            password: Some(SecretString::from("pass word-canary".to_owned())),
        };
        let failure = |bytes| done(server.sign_in(&mut answering(bytes))).unwrap_err();
        assert!(failure(b"-WRONGPASS no\r\n").contains("refused the password"));
        assert!(failure(b"").contains("closed the connection"));
        assert!(failure(b"HTTP/1.1 400 Bad Request\r\n").contains("not from a Redis server"));
        assert_eq!(done(server.sign_in(&mut answering(b"+OK\r\n"))), Ok(()));
    }
}
