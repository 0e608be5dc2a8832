//! `[backend.NAME]`: its values, and the defaults for its name.

use super::kind::Url;
use super::preset::{self, Preset};
use std::time::Duration;

/// `[backend.NAME]`.
#[derive(Clone, Debug, PartialEq)]
pub struct Backend {
    pub name: String,
    /// `None` only before validation: every backend of a loaded policy has a kind.
    pub kind: Option<BackendKind>,
    pub model: Option<String>,
    /// A program on `PATH`, or an absolute path; `None`: `claude`. For kind `claude` only.
    pub path: Option<String>,
    /// Without a trailing slash. `None`: the default of the kind.
    pub base_url: Option<String>,
    /// The variable that contains the key. `None`: the default of the kind, unless `keyless`.
    pub api_key_env: Option<String>,
    /// A command line that prints the key.
    pub api_key_command: Option<String>,
    /// The header that carries the key. `None`: the default of the kind, and `api-key` for Azure.
    pub key_header: Option<KeyHeader>,
    /// The API of a backend of kind `openai`. `None`: Chat Completions.
    pub api: Option<Api>,
    /// The value of `api-version` in every address (Azure).
    pub api_version: Option<String>,
    pub max_retries: u32,
    /// The longest pause before the first retry; it doubles with every retry.
    pub retry_delay: Duration,
    /// Time limit of one question, with its retries and tool calls. `None`: only that of the
    /// review.
    pub timeout: Option<Duration>,
    /// How much the model reasons before it answers. `None`: its default.
    pub effort: Option<Effort>,
    /// Context size of prompt and answer together; `None`: the smallest of the kind.
    pub context_tokens: Option<u32>,
    /// USD per million tokens.
    pub price: Option<Price>,
    /// A project's file without trust set the endpoint (a loopback address). No key may be sent
    /// there, whatever its origin.
    pub keyless: bool,
    /// The full key of an operator-only value that was ignored. Such a backend must not be asked.
    pub withheld: Option<String>,
}

/// How much a model reasons before it answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Effort {
    Low,
    Medium,
    High,
}

impl Effort {
    /// Returns the canonical name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
        }
    }

    pub(super) fn parse(s: &str) -> Option<Self> {
        [Self::Low, Self::Medium, Self::High]
            .into_iter()
            .find(|e| e.name() == s)
    }
}

/// The API of a backend of kind `openai`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Api {
    /// Chat Completions.
    Chat,
    Responses,
}

impl Api {
    /// Returns the canonical name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Chat => "chat",
            Self::Responses => "responses",
        }
    }

    pub(super) fn parse(s: &str) -> Option<Self> {
        [Self::Chat, Self::Responses]
            .into_iter()
            .find(|a| a.name() == s)
    }
}

/// The header that carries the key of a backend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyHeader {
    /// `Authorization: Bearer KEY`.
    Authorization,
    /// `api-key: KEY`.
    ApiKey,
    /// `x-api-key: KEY`.
    XApiKey,
}

impl KeyHeader {
    /// Returns the name of the header, in lower case.
    pub fn name(self) -> &'static str {
        match self {
            Self::Authorization => "authorization",
            Self::ApiKey => "api-key",
            Self::XApiKey => "x-api-key",
        }
    }

    pub(super) fn parse(s: &str) -> Option<Self> {
        [Self::Authorization, Self::ApiKey, Self::XApiKey]
            .into_iter()
            .find(|h| h.name() == s)
    }
}

/// The protocol of a backend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BackendKind {
    /// The Claude Code command line.
    Claude,
    /// Anthropic's Messages API.
    Anthropic,
    /// Chat Completions, of OpenAI or any compatible server.
    OpenAi,
    /// Google's `generateContent`.
    Google,
}

/// USD per million tokens, for providers that report no cost.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Price {
    pub input: f64,
    pub cached: f64,
    pub output: f64,
}

impl Backend {
    /// Returns a backend with the defaults for its name.
    pub(super) fn new(name: &str) -> Self {
        let preset = preset::preset(name);
        Self {
            name: name.to_owned(),
            kind: BackendKind::of_built_in(name),
            model: None,
            path: None,
            base_url: preset.map(|p| p.base_url.to_owned()),
            api_key_env: None,
            api_key_command: None,
            key_header: None,
            api: None,
            api_version: None,
            max_retries: 3,
            retry_delay: Duration::from_millis(500),
            timeout: None,
            effort: None,
            context_tokens: None,
            price: None,
            keyless: false,
            withheld: None,
        }
    }
}

impl Backend {
    /// Returns true if the server of the backend is on this machine.
    pub fn is_on_this_machine(&self) -> bool {
        self.base_url
            .as_deref()
            .is_some_and(|url| Url::parse(url).is_ok_and(|url| url.loopback))
    }

    /// Returns the preset that this backend is, unless another address is configured.
    pub fn preset(&self) -> Option<&'static Preset> {
        preset::preset(&self.name).filter(|p| self.base_url.as_deref() == Some(p.base_url))
    }

    /// Returns the variable that contains the key if neither `api_key_env` nor `api_key_command` is
    /// configured; `None` if the server needs no key or the program has its own login.
    pub fn usual_key(&self) -> Option<&'static str> {
        match preset::preset(&self.name) {
            // Its key does not go to another address.
            Some(_) => self.preset().and_then(|p| p.key_variable),
            None => self.kind.and_then(BackendKind::key_variable),
        }
    }
}

impl BackendKind {
    /// All kinds, sorted by name.
    pub const ALL: [Self; 4] = [Self::Anthropic, Self::Claude, Self::Google, Self::OpenAi];

    /// The names of all kinds, in the order of [`Self::ALL`].
    pub(super) const NAMES: [&'static str; Self::ALL.len()] = {
        let mut names = [""; Self::ALL.len()];
        let mut i = 0;
        while i < names.len() {
            names[i] = Self::ALL[i].name();
            i += 1;
        }
        names
    };

    /// Returns the name in policy files. The built-in backend of this kind has the same name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Claude => "claude",
            Self::Anthropic => "anthropic",
            Self::OpenAi => "openai",
            Self::Google => "google",
        }
    }

    /// Returns the default variable for the key; `None` if the program has its own login.
    pub fn key_variable(self) -> Option<&'static str> {
        match self {
            Self::Claude => None,
            Self::Anthropic => Some("ANTHROPIC_API_KEY"),
            Self::OpenAi => Some("OPENAI_API_KEY"),
            Self::Google => Some("GEMINI_API_KEY"),
        }
    }

    /// Describes the built-in backend of this kind, for editors and documentation.
    pub(super) fn about(self) -> &'static str {
        match self {
            Self::Claude => "The Claude Code command line, with its own login.",
            Self::Anthropic => {
                "Anthropic's Messages API. The key is in ANTHROPIC_API_KEY by default."
            }
            Self::OpenAi => "OpenAI's Chat Completions. The key is in OPENAI_API_KEY by default.",
            Self::Google => "Google's Gemini API. The key is in GEMINI_API_KEY by default.",
        }
    }

    /// Parses a name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|k| k.name() == name)
    }

    /// Returns the kind of the built-in backend of that name.
    pub(super) fn of_built_in(name: &str) -> Option<Self> {
        Self::parse(name).or_else(|| preset::preset(name).map(|_| Self::OpenAi))
    }
}
