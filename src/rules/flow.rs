//! Stub of the flow analysis, until the engine is merged.

/// A language whose files can be analysed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FlowLanguage {
    /// Python.
    Python,
    /// JavaScript, with JSX.
    JavaScript,
    /// TypeScript.
    TypeScript,
    /// TypeScript with JSX.
    Tsx,
    /// Java.
    Java,
    /// Kotlin.
    Kotlin,
    /// Go.
    Go,
    /// PHP.
    Php,
    /// Ruby.
    Ruby,
    /// C#.
    CSharp,
    /// C.
    C,
    /// C++.
    Cpp,
}

macro_rules! kinds {
    ($($(#[$doc:meta])* $name:ident = $word:literal,)*) => {
        /// What a flow ends in.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Kind { $($(#[$doc])* $name,)* }

        impl Kind {
            /// Every kind, in the order of `format::KINDS`.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// Returns the word of the tables.
            pub fn name(self) -> &'static str {
                match self { $(Self::$name => $word,)* }
            }
        }
    };
}

kinds! {
    /// A statement of SQL.
    Sql = "sql",
    /// A query of a document database.
    NoSql = "nosql",
    /// A command of a shell or a program.
    Command = "command",
    /// Code that is run.
    Code = "code",
    /// Source of a template.
    Template = "template",
    /// A filter or name of LDAP.
    Ldap = "ldap",
    /// An XPath expression.
    XPath = "xpath",
    /// An XQuery expression.
    XQuery = "xquery",
    /// A header of a response.
    Header = "header",
    /// A line of a log.
    Log = "log",
    /// A format string.
    Format = "format",
    /// Markup that a browser reads.
    Html = "html",
    /// A path of a file.
    Path = "path",
    /// A path from an archive.
    ZipSlip = "zipslip",
    /// An address that the server requests.
    Url = "url",
    /// An address that the client is sent to.
    Redirect = "redirect",
    /// Data that becomes objects.
    Deserialization = "deserialization",
    /// XML whose entities are expanded.
    Xml = "xml",
    /// A regular expression.
    Regex = "regex",
    /// A class, method or property by name.
    Reflection = "reflection",
    /// Fields of a record, all at once.
    MassAssignment = "mass-assignment",
    /// Keys of an object that can change its prototype.
    Prototype = "prototype",
    /// What is stored in a session as trusted.
    Trust = "trust",
    /// A size, index or copy in memory.
    Memory = "memory",
    /// A header of a mail.
    Email = "email",
    /// A cell of a spreadsheet.
    Csv = "csv",
}

/// What a finding is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Subject {
    /// Data reaches a sink.
    Flow(Kind),
    /// A call is dangerous by itself: the ID of a rule.
    Rule(&'static str),
}

/// How well a flow is proven. Later is stronger.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Proof {
    /// The value comes from the caller of an ordinary function.
    Unknown,
    /// The value comes from arguments, the environment, a file or a database.
    Local,
    /// The value comes from a request, a socket or a queue. Also: a call that is dangerous by itself.
    Request,
}

/// How certain a finding is. Later is more certain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Confidence {
    /// Not certain.
    Low,
    /// Probable.
    Medium,
    /// Certain.
    High,
}

/// What happens to the data at a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StepRole {
    /// It enters.
    Source,
    /// It passes through.
    Through,
    /// It does harm.
    Sink,
}

/// A place on the way of the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// From 1.
    pub line: u32,
    /// The first byte in the file.
    pub start: usize,
    /// The byte after the last.
    pub end: usize,
    /// What happens here.
    pub role: StepRole,
}

/// A finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flow {
    /// What it is about.
    pub subject: Subject,
    /// From the source to the sink. The sink is last.
    pub steps: Vec<Step>,
    /// How well it is proven.
    pub proof: Proof,
    /// What the source is, for people.
    pub source_label: &'static str,
    /// What the sink is, for people.
    pub sink_label: &'static str,
    /// A weakness other than the one of the subject.
    pub cwe: Option<u32>,
    /// How certain it is.
    pub confidence: Confidence,
}

impl Flow {
    /// Returns the last step: where the finding is.
    pub fn sink(&self) -> Option<&Step> {
        self.steps.last()
    }
}

/// The findings of a file.
#[derive(Clone, Debug, Default)]
pub struct Analysis {
    /// By place in the file.
    pub flows: Vec<Flow>,
    /// False: a limit of size or work ended the analysis early.
    pub is_complete: bool,
    /// Bytes that the parser read.
    pub bytes_parsed: usize,
}

/// Returns true if the file may contain a sink or a call of interest.
pub fn may_match(_language: FlowLanguage, text: &[u8]) -> bool {
    memchr::memmem::find(text, b"execute").is_some()
}

/// Returns true if the text has a word of the tables.
pub fn touches(_language: FlowLanguage, text: &[u8]) -> bool {
    may_match(_language, text) || memchr::memmem::find(text, b"request").is_some()
}

/// Finds flows in a file.
pub fn analyse(_language: FlowLanguage, text: &[u8]) -> Analysis {
    Analysis { flows: Vec::new(), is_complete: true, bytes_parsed: text.len() }
}
