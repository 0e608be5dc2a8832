//! The languages: the nodes of their grammars that define and use names.

use super::{Kind, Usage, bindings};
use crate::diff::RepoPath;
use std::sync::OnceLock;
use tree_sitter::Language;
use tree_sitter_language::LanguageFn;

/// The position of a node's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NameIn {
    /// A field.
    Field(&'static str),
    /// The innermost `declarator`, as in C.
    Declarator,
    /// The left side, if the right side is a function or a class: `exports.load = function () {}`.
    Assigned {
        left: &'static str,
        right: &'static str,
    },
    /// The first child that is named and of one of these kinds.
    Child(&'static [&'static str]),
}

/// The meaning of a kind of nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NodeRole {
    Define(Kind, NameIn),
    /// The node uses the name.
    Use(Usage, NameIn),
    /// The node assigns or declares a variable, constant or field.
    Value(NameIn),
    /// The node imports the names in its leaves.
    Import,
    /// A leaf that is the name of a type.
    TypeName,
    /// A call that is a test case if its function has one of these names and its first argument is
    /// a text.
    Case {
        function: &'static str,
        names: &'static [&'static str],
    },
    /// A wrapper whose lines belong to the definition inside: decorators, `export`.
    Wrapper,
}

/// A supported language.
pub(super) struct Grammar {
    /// Languages of one family share names: C and C++, JavaScript and TypeScript.
    pub(super) family: &'static str,
    extensions: &'static [&'static str],
    language: LanguageFn,
    roles: &'static [(&'static str, NodeRole)],
    /// Kinds of nodes that are the body of a definition without a `body` field.
    pub(super) bodies: &'static [&'static str],
    table: OnceLock<NodeTable>,
}

/// The language in the form that the walk needs.
#[derive(Debug)]
pub(super) struct NodeTable {
    pub(super) language: Language,
    /// Roles by the ID of the kind of nodes.
    roles: Vec<Option<NodeRole>>,
    /// By the same ID: true if leaves of the kind are names.
    names: Vec<bool>,
    /// By the same ID: whether the kind binds names, or is a scope of bound names.
    locals: Vec<Local>,
}

/// How a kind of nodes relates to parameters and local variables.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Local {
    pub(super) is_scope: bool,
    pub(super) binds: bool,
}

impl NodeTable {
    pub(super) fn role(&self, kind: u16) -> Option<NodeRole> {
        self.roles.get(usize::from(kind)).copied().flatten()
    }

    /// Returns how a kind relates to parameters and local variables.
    pub(super) fn local(&self, kind: u16) -> Local {
        self.locals
            .get(usize::from(kind))
            .copied()
            .unwrap_or_default()
    }

    /// Returns true if a leaf of the kind is a name.
    pub(super) fn is_name(&self, kind: u16) -> bool {
        self.names
            .get(usize::from(kind))
            .copied()
            .unwrap_or_default()
    }
}

impl Grammar {
    /// Returns the grammar of a file, by its name.
    pub(super) fn of(path: &RepoPath) -> Option<&'static Self> {
        let name = String::from_utf8_lossy(path.file_name()).to_ascii_lowercase();
        let extension = match name.as_str() {
            "rakefile" | "gemfile" => "rb",
            _ => name.rsplit_once('.').map_or("", |(_, extension)| extension),
        };
        GRAMMARS.iter().find(|g| g.extensions.contains(&extension))
    }

    /// Returns true for strings that name functions: callbacks of PHP.
    fn is_name_text(&self, kind: &str) -> bool {
        self.family == "php" && kind == "string_content"
    }

    pub(super) fn table(&self) -> &NodeTable {
        self.table.get_or_init(|| {
            let language = Language::new(self.language);
            let kinds: Vec<Option<&str>> = (0..language.node_kind_count())
                .map(|id| named_kind(&language, u16::try_from(id).ok()?))
                .collect();
            let roles = kinds
                .iter()
                .map(|kind| kind.and_then(|kind| self.role(kind)))
                .collect();
            let names = kinds
                .iter()
                .map(|kind| kind.is_some_and(|kind| self.is_name(kind)))
                .collect();
            let locals = kinds
                .iter()
                .map(|kind| kind.map_or_else(Local::default, |kind| self.local(kind)))
                .collect();
            NodeTable {
                language,
                roles,
                names,
                locals,
            }
        })
    }

    /// Returns the role of a kind of node, if it has one.
    fn role(&self, kind: &str) -> Option<NodeRole> {
        self.roles
            .iter()
            .find(|(name, _)| *name == kind)
            .map(|(_, role)| *role)
    }

    /// Returns true if nodes of a kind are names.
    fn is_name(&self, kind: &str) -> bool {
        kind.ends_with("identifier") || NAMES.contains(&kind) || self.is_name_text(kind)
    }

    /// Returns what a kind of node means for local names. `block` is a closure in Ruby only.
    fn local(&self, kind: &str) -> Local {
        let is_scope = bindings::is_scope(kind) && (kind != "block" || self.family == "ruby");
        Local {
            is_scope,
            binds: bindings::binds(kind),
        }
    }
}

/// Returns the name of a kind of node; `None` for punctuation and keywords.
fn named_kind(language: &Language, id: u16) -> Option<&str> {
    language
        .node_kind_for_id(id)
        .filter(|_| language.node_kind_is_named(id))
}

/// Kinds of leaves that are names, in addition to identifiers: of PHP and Ruby.
const NAMES: [&str; 3] = ["name", "constant", "simple_symbol"];
const NAME: NameIn = NameIn::Field("name");
const FUNCTION: NodeRole = NodeRole::Define(Kind::Function, NAME);
const TYPE: NodeRole = NodeRole::Define(Kind::Type, NAME);
const GROUP: NodeRole = NodeRole::Define(Kind::Group, NAME);
const VALUE: NodeRole = NodeRole::Value(NAME);
const CALLED: NodeRole = NodeRole::Use(Usage::Call, NameIn::Field("function"));
const NAMED: NodeRole = NodeRole::Use(Usage::Call, NAME);

const fn grammar(
    family: &'static str,
    extensions: &'static [&'static str],
    language: LanguageFn,
    roles: &'static [(&'static str, NodeRole)],
    bodies: &'static [&'static str],
) -> Grammar {
    Grammar {
        family,
        extensions,
        language,
        roles,
        bodies,
        table: OnceLock::new(),
    }
}

const CASES: &[&str] = &[
    "describe", "context", "suite", "it", "test", "specify", "feature", "scenario",
];

const SCRIPT: &[(&str, NodeRole)] = &[
    ("function_declaration", FUNCTION),
    ("generator_function_declaration", FUNCTION),
    ("function_signature", FUNCTION),
    ("method_definition", FUNCTION),
    ("method_signature", FUNCTION),
    ("abstract_method_signature", FUNCTION),
    ("class_declaration", TYPE),
    ("abstract_class_declaration", TYPE),
    ("interface_declaration", TYPE),
    ("type_alias_declaration", TYPE),
    ("enum_declaration", TYPE),
    ("internal_module", GROUP),
    ("module", GROUP),
    (
        "variable_declarator",
        NodeRole::Define(
            Kind::Function,
            NameIn::Assigned {
                left: "name",
                right: "value",
            },
        ),
    ),
    (
        "assignment_expression",
        NodeRole::Define(
            Kind::Function,
            NameIn::Assigned {
                left: "left",
                right: "right",
            },
        ),
    ),
    (
        "pair",
        NodeRole::Define(
            Kind::Function,
            NameIn::Assigned {
                left: "key",
                right: "value",
            },
        ),
    ),
    (
        "field_definition",
        NodeRole::Define(
            Kind::Function,
            NameIn::Assigned {
                left: "property",
                right: "value",
            },
        ),
    ),
    (
        "public_field_definition",
        NodeRole::Define(
            Kind::Function,
            NameIn::Assigned {
                left: "name",
                right: "value",
            },
        ),
    ),
    (
        "call_expression",
        NodeRole::Case {
            function: "function",
            names: CASES,
        },
    ),
    (
        "new_expression",
        NodeRole::Use(Usage::Call, NameIn::Field("constructor")),
    ),
    ("jsx_opening_element", NAMED),
    ("jsx_self_closing_element", NAMED),
    ("property_signature", VALUE),
    ("import_statement", NodeRole::Import),
    ("type_identifier", NodeRole::TypeName),
    ("lexical_declaration", NodeRole::Wrapper),
    ("variable_declaration", NodeRole::Wrapper),
    ("expression_statement", NodeRole::Wrapper),
    ("export_statement", NodeRole::Wrapper),
];

const C: &[(&str, NodeRole)] = &[
    (
        "function_definition",
        NodeRole::Define(Kind::Function, NameIn::Declarator),
    ),
    ("preproc_function_def", FUNCTION),
    ("struct_specifier", TYPE),
    ("union_specifier", TYPE),
    ("enum_specifier", TYPE),
    ("class_specifier", TYPE),
    ("concept_definition", TYPE),
    ("alias_declaration", TYPE),
    (
        "type_definition",
        NodeRole::Define(Kind::Type, NameIn::Declarator),
    ),
    ("namespace_definition", GROUP),
    ("template_declaration", NodeRole::Wrapper),
    ("field_declaration", NodeRole::Value(NameIn::Declarator)),
    ("preproc_def", VALUE),
    ("enumerator", VALUE),
    ("preproc_include", NodeRole::Import),
    ("call_expression", CALLED),
    (
        "new_expression",
        NodeRole::Use(Usage::Call, NameIn::Field("type")),
    ),
    ("type_identifier", NodeRole::TypeName),
];

static GRAMMARS: [Grammar; 15] = [
    grammar(
        "python",
        &["py", "pyi", "pyw"],
        tree_sitter_python::LANGUAGE,
        &[
            ("function_definition", FUNCTION),
            ("class_definition", TYPE),
            ("decorated_definition", NodeRole::Wrapper),
            ("assignment", NodeRole::Value(NameIn::Field("left"))),
            ("import_statement", NodeRole::Import),
            ("import_from_statement", NodeRole::Import),
            ("call", CALLED),
            (
                "type",
                NodeRole::Use(
                    Usage::Type,
                    NameIn::Child(&["identifier", "attribute", "generic_type", "member_type"]),
                ),
            ),
        ],
        &[],
    ),
    grammar(
        "script",
        &["js", "mjs", "cjs", "jsx"],
        tree_sitter_javascript::LANGUAGE,
        SCRIPT,
        &[],
    ),
    grammar(
        "script",
        &["ts", "mts", "cts"],
        tree_sitter_typescript::LANGUAGE_TYPESCRIPT,
        SCRIPT,
        &[],
    ),
    grammar(
        "script",
        &["tsx"],
        tree_sitter_typescript::LANGUAGE_TSX,
        SCRIPT,
        &[],
    ),
    grammar(
        "go",
        &["go"],
        tree_sitter_go::LANGUAGE,
        &[
            ("function_declaration", FUNCTION),
            ("method_declaration", FUNCTION),
            ("method_elem", FUNCTION),
            ("type_spec", TYPE),
            ("type_alias", TYPE),
            ("type_declaration", NodeRole::Wrapper),
            ("const_spec", VALUE),
            ("var_spec", VALUE),
            ("field_declaration", VALUE),
            ("import_declaration", NodeRole::Import),
            ("call_expression", CALLED),
            ("type_identifier", NodeRole::TypeName),
        ],
        &["struct_type", "interface_type"],
    ),
    grammar(
        "jvm",
        &["java"],
        tree_sitter_java::LANGUAGE,
        &[
            ("method_declaration", FUNCTION),
            ("constructor_declaration", FUNCTION),
            ("compact_constructor_declaration", FUNCTION),
            ("annotation_type_element_declaration", FUNCTION),
            ("class_declaration", TYPE),
            ("interface_declaration", TYPE),
            ("annotation_type_declaration", TYPE),
            ("enum_declaration", TYPE),
            ("record_declaration", TYPE),
            ("variable_declarator", VALUE),
            ("enum_constant", VALUE),
            ("import_declaration", NodeRole::Import),
            ("method_invocation", NAMED),
            (
                "object_creation_expression",
                NodeRole::Use(Usage::Call, NameIn::Field("type")),
            ),
            ("type_identifier", NodeRole::TypeName),
        ],
        &[],
    ),
    grammar(
        "jvm",
        &["kt", "kts"],
        tree_sitter_kotlin_ng::LANGUAGE,
        &[
            ("function_declaration", FUNCTION),
            ("class_declaration", TYPE),
            ("object_declaration", TYPE),
            ("companion_object", GROUP),
            ("import", NodeRole::Import),
            (
                "call_expression",
                NodeRole::Use(
                    Usage::Call,
                    NameIn::Child(&["identifier", "navigation_expression"]),
                ),
            ),
            (
                "constructor_invocation",
                NodeRole::Use(Usage::Call, NameIn::Child(&["user_type"])),
            ),
            (
                "user_type",
                NodeRole::Use(Usage::Type, NameIn::Child(&["identifier"])),
            ),
        ],
        &["function_body", "class_body", "enum_class_body"],
    ),
    grammar(
        "ruby",
        &["rb", "rake", "gemspec", "ru"],
        tree_sitter_ruby::LANGUAGE,
        &[
            ("method", FUNCTION),
            ("singleton_method", FUNCTION),
            ("class", TYPE),
            ("module", GROUP),
            ("assignment", NodeRole::Value(NameIn::Field("left"))),
            (
                "call",
                NodeRole::Case {
                    function: "method",
                    names: CASES,
                },
            ),
            ("constant", NodeRole::TypeName),
        ],
        &[],
    ),
    grammar(
        "php",
        &["php", "phtml", "inc"],
        tree_sitter_php::LANGUAGE_PHP,
        &[
            ("function_definition", FUNCTION),
            ("method_declaration", FUNCTION),
            ("class_declaration", TYPE),
            ("interface_declaration", TYPE),
            ("trait_declaration", TYPE),
            ("enum_declaration", TYPE),
            ("namespace_definition", GROUP),
            ("property_element", VALUE),
            ("const_element", NodeRole::Value(NameIn::Child(&["name"]))),
            ("namespace_use_declaration", NodeRole::Import),
            ("function_call_expression", CALLED),
            ("member_call_expression", NAMED),
            ("nullsafe_member_call_expression", NAMED),
            ("scoped_call_expression", NAMED),
            (
                "object_creation_expression",
                NodeRole::Use(Usage::Call, NameIn::Child(&["name", "qualified_name"])),
            ),
            (
                "named_type",
                NodeRole::Use(Usage::Type, NameIn::Child(&["name", "qualified_name"])),
            ),
        ],
        &[],
    ),
    grammar(
        "rust",
        &["rs"],
        tree_sitter_rust::LANGUAGE,
        &[
            ("function_item", FUNCTION),
            ("function_signature_item", FUNCTION),
            ("macro_definition", FUNCTION),
            ("struct_item", TYPE),
            ("enum_item", TYPE),
            ("union_item", TYPE),
            ("trait_item", TYPE),
            ("type_item", TYPE),
            (
                "impl_item",
                NodeRole::Define(Kind::Group, NameIn::Field("type")),
            ),
            ("mod_item", GROUP),
            ("const_item", VALUE),
            ("static_item", VALUE),
            ("field_declaration", VALUE),
            ("enum_variant", VALUE),
            ("use_declaration", NodeRole::Import),
            ("call_expression", CALLED),
            (
                "macro_invocation",
                NodeRole::Use(Usage::Call, NameIn::Field("macro")),
            ),
            ("struct_expression", NodeRole::Use(Usage::Type, NAME)),
            ("type_identifier", NodeRole::TypeName),
        ],
        &[],
    ),
    grammar("c", &["c"], tree_sitter_c::LANGUAGE, C, &[]),
    grammar(
        "c",
        &[
            "h", "cc", "cpp", "cxx", "c++", "hpp", "hh", "hxx", "ipp", "inl", "cu", "cuh",
        ],
        tree_sitter_cpp::LANGUAGE,
        C,
        &[],
    ),
    grammar(
        "csharp",
        &["cs", "csx"],
        tree_sitter_c_sharp::LANGUAGE,
        &[
            ("method_declaration", FUNCTION),
            ("constructor_declaration", FUNCTION),
            ("destructor_declaration", FUNCTION),
            ("local_function_statement", FUNCTION),
            ("property_declaration", FUNCTION),
            ("class_declaration", TYPE),
            ("struct_declaration", TYPE),
            ("record_declaration", TYPE),
            ("interface_declaration", TYPE),
            ("enum_declaration", TYPE),
            ("delegate_declaration", TYPE),
            ("namespace_declaration", GROUP),
            ("variable_declarator", VALUE),
            ("enum_member_declaration", VALUE),
            ("using_directive", NodeRole::Import),
            ("invocation_expression", CALLED),
            (
                "object_creation_expression",
                NodeRole::Use(Usage::Call, NameIn::Field("type")),
            ),
            (
                "parameter",
                NodeRole::Use(Usage::Type, NameIn::Field("type")),
            ),
            (
                "variable_declaration",
                NodeRole::Use(Usage::Type, NameIn::Field("type")),
            ),
        ],
        &[],
    ),
    grammar(
        "shell",
        &["sh", "bash", "ksh", "bats"],
        tree_sitter_bash::LANGUAGE,
        &[("function_definition", FUNCTION), ("command", NAMED)],
        &[],
    ),
    grammar(
        "python",
        &["bzl", "star"],
        tree_sitter_python::LANGUAGE,
        &[("function_definition", FUNCTION), ("call", CALLED)],
        &[],
    ),
];

#[cfg(test)]
pub(super) fn all() -> &'static [Grammar] {
    &GRAMMARS
}

#[cfg(test)]
impl Grammar {
    /// Returns the kinds of nodes in the table that the grammar does not have. C++ has kinds that
    /// are missing from C.
    pub(super) fn unknown_kinds(&self) -> Vec<&'static str> {
        let table = self.table();
        let roles = self
            .roles
            .iter()
            .map(|(kind, _)| *kind)
            .chain(self.bodies.iter().copied());
        roles
            .filter(|kind| table.language.id_for_node_kind(kind, true) == 0)
            .collect()
    }
}
