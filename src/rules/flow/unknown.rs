//! Doubt about data after a call of code that neither the file nor the tables have.

use super::FlowLanguage as L;
use super::call::Callee;
use super::doubt::Doubt;
use super::names;
use super::paths::{Calling, PathId, Root};
use super::run::FlowRun;
use super::shape::{ExprId, ExprKind};
use super::value::What;

/// Last words of the names of variables that hold the class of a form.
const FORM_CLASSES: [&str; 3] = ["form_class", "form_cls", "FormClass"];

/// Words in the names of objects that send requests or read documents: `get` does not look anything
/// up there.
const SENDERS: [&str; 17] = [
    "http",
    "https",
    "client",
    "request",
    "requests",
    "api",
    "rest",
    "agent",
    "browser",
    "curl",
    "web",
    "faraday",
    "conn",
    "connection",
    "json",
    "parser",
    "reader",
];
/// Methods that change a text or an address, and check nothing.
const TEXT_METHODS: [&str; 10] = [
    "resolve", "decode", "unescape", "trim", "strip", "lower", "upper", "concat", "join", "wrap",
];

impl<'m> FlowRun<'m> {
    /// Returns the doubt about the arguments of an unknown call that are in its result.
    /// `is_own`: the object of the call is not a parameter.
    pub(super) fn doubt_of_call(&mut self, word: &str, target: &Callee, is_own: bool) -> Doubt {
        if is_own && self.is_doubtful(word, target) {
            Doubt::Unknown
        } else if self.says_check(word, target) {
            Doubt::Stated
        } else {
            Doubt::None
        }
    }

    /// Returns true for a function of another file of the project, whose effect on data is unknown.
    fn is_doubtful(&mut self, word: &str, target: &Callee) -> bool {
        let is_service = target
            .receiver
            .as_ref()
            .and_then(|(of, _)| self.name_of_object(*of))
            .is_some_and(names::is_service);
        if is_service && matches!(self.language, L::Java | L::Kotlin | L::CSharp | L::Go) {
            return true;
        }
        let is_getter = names::is_getter(word);
        let root = target
            .path
            .map(|p| (self.paths.root_of(p), self.paths.text(p)));
        match (self.language, &target.receiver, root) {
            (L::C | L::Cpp, ..) => false,
            (L::Java | L::Kotlin | L::CSharp, Some(_), Some((Root::Unknown, _))) => is_getter,
            (L::Java | L::Kotlin | L::CSharp, Some(_), _) => {
                is_getter && !self.is_known_module(target)
            }
            (L::Java | L::Kotlin | L::CSharp, None, _) => is_getter,
            (_, Some(_), Some((Root::Unknown, _))) => true,
            (L::Php, None, _) => word.contains(|c: char| c.is_ascii_uppercase()),
            (L::Ruby, None, _) => word.starts_with(|c: char| c.is_ascii_lowercase()),
            (_, None, Some((Root::Free, _))) => false,
            (_, _, Some(_)) => !self.is_known_module(target),
            _ => false,
        }
    }

    /// Returns true for a call of an object of the program itself whose name, or that of the
    /// method, says that it checks or makes addresses: `this.redirects.target(x)`,
    /// `url_guard.check(x)`.
    ///
    /// Classes are not such objects, because they are often those of libraries. A name alone does
    /// not hide the flow: it becomes a suggestion.
    fn says_check(&mut self, word: &str, target: &Callee) -> bool {
        let Some((of, base)) = target
            .receiver
            .as_ref()
            .filter(|_| !names::has_word(word, &TEXT_METHODS))
        else {
            return false;
        };
        let Some(name) = self.name_of_object(*of) else {
            return false;
        };
        base.what == What::Other
            && self.language != L::C
            && self.language != L::Cpp
            && is_variable_name(name)
            && !self.is_package(*of, base.path)
            && [name, word].into_iter().any(names::says_check)
    }

    /// Returns true for a module of the tables, and for each name that the file imports in the
    /// languages in which packages are not objects.
    pub(super) fn is_package(&mut self, object: ExprId, path: Option<PathId>) -> bool {
        let module = self.module;
        if let ExprKind::Name(name) = &module.expr(object).kind
            && matches!(self.language, L::Go | L::Java | L::Kotlin | L::CSharp)
        {
            return module.imports.iter().any(|i| i.alias == *name);
        }
        let Some(path) = path.filter(|p| self.paths.root_of(*p) == Root::Known) else {
            return false;
        };
        let text = self.paths.text(path);
        let first = text.split(['.', '/']).next().unwrap_or_default();
        self.table.usual.iter().any(|p| is_path_in(p, first))
    }

    /// Returns the name of an object: of a variable, a field, and a method of Ruby without
    /// arguments.
    fn name_of_object(&self, object: ExprId) -> Option<&'m str> {
        let module = self.module;
        match &module.expr(object).kind {
            ExprKind::Name(name) | ExprKind::Member { name, .. } => Some(module.word(*name)),
            ExprKind::Call { callee, args } if args.is_empty() && self.language == L::Ruby => {
                self.name_of_object(*callee)
            }
            ExprKind::Pass(of) => self.name_of_object(*of),
            _ => None,
        }
    }

    /// Returns true for modules that the tables name, and for modules of the language.
    fn is_known_module(&mut self, target: &Callee) -> bool {
        let Some(path) = target.path else {
            return false;
        };
        let (first, has_slash) = self.paths.module_of(path);
        if self.language == L::Go && !has_slash {
            return true;
        }
        if first.is_empty() {
            return false;
        }
        if let Some(is_known) = self.known_modules.get(first) {
            return *is_known;
        }
        let is_known = self.table.usual.iter().any(|p| is_path_in(p, first))
            || self
                .table
                .patterns
                .iter()
                .any(|p| is_path_in(p.prefix, first));
        self.known_modules.insert(first.to_owned(), is_known);
        is_known
    }

    /// Returns true for a method that looks a value up by its first argument and returns its second
    /// one if there is none: `map.getOrDefault(key, value)`. The tables describe the ones of Python
    /// and JavaScript.
    pub(super) fn reads_key(&mut self, word: &str, target: &Callee) -> bool {
        let is_lookup = match self.language {
            L::Java | L::Kotlin => matches!(word, "get" | "getOrDefault"),
            L::CSharp => matches!(word, "Get" | "GetValueOrDefault" | "TryGetValue"),
            L::Go => word == "Get",
            L::Php => word == "get",
            L::Ruby => matches!(word, "get" | "fetch"),
            _ => false,
        };
        let Some((of, base)) = target.receiver.as_ref().filter(|_| is_lookup) else {
            return false;
        };
        let is_described = target.path.is_some_and(|p| self.is_described(p));
        base.what == What::Other
            && !is_described
            && !self.is_package(*of, base.path)
            && self
                .name_of_object(*of)
                .is_some_and(|n| is_variable_name(n) && !names::has_word(n, &SENDERS))
    }

    /// Returns true if an entry of the tables names a call more exactly than by its last word.
    fn is_described(&mut self, path: PathId) -> bool {
        let called = self.paths.call(path, Calling::Plain);
        self.paths.hits(called).iter().any(|h| !h.is_wild)
    }

    /// Returns the path of an object that a variable with the class of a form creates, so that its
    /// methods are known to be those of a form.
    pub(super) fn form_path(&mut self, target: &Callee) -> Option<PathId> {
        let word = self.module.word(target.name?);
        let is_form = self.language == L::Python && target.receiver.is_none();
        if !is_form || !FORM_CLASSES.iter().any(|end| word.ends_with(end)) {
            return None;
        }
        let class = self.paths.root(&format!("?.{word}"), Root::Unknown);
        Some(self.paths.call(class, Calling::Plain))
    }

    /// Returns true for a method of Go whose object has a type of another package that the tables do
    /// not know: `service.Download(ctx)`. It can look anything up by the fields of the object.
    pub(super) fn is_action_elsewhere(&mut self, target: &Callee) -> bool {
        let is_value = target.receiver.as_ref().is_some_and(|(of, base)| {
            base.what == What::Other && base.path.is_some() && !self.is_package(*of, base.path)
        });
        self.language == L::Go && is_value && !self.is_known_module(target)
    }

    /// Returns true for a method of a form that shows the form, and does not return the data that
    /// it was created from: `form.extra_panel()`. The data of WTForms and Django is in fields.
    pub(super) fn shows_form(&mut self, word: &str, target: &Callee) -> bool {
        let Some(path) = target.receiver.as_ref().and_then(|(_, base)| base.path) else {
            return false;
        };
        if self.language != L::Python || names::reads_data(word) {
            return false;
        }
        let text = self.paths.text(path);
        let class = text.trim_end_matches("()").rsplit('.').next();
        class.is_some_and(is_form_class) && self.paths.hits(path).is_empty()
    }
}

/// Returns true for the name of a class of forms, or of a variable that holds one.
fn is_form_class(name: &str) -> bool {
    let is_class = name.starts_with(|c: char| c.is_ascii_uppercase()) && name.ends_with("Form");
    is_class || FORM_CLASSES.iter().any(|end| name.ends_with(end))
}

/// Returns true for a name that is not that of a class: `redirects`, `$urls`, `COMMANDS`.
fn is_variable_name(name: &str) -> bool {
    let name = name.trim_start_matches(['$', '@', '_']);
    !name.starts_with(|c: char| c.is_ascii_uppercase())
        || !name.contains(|c: char| c.is_ascii_lowercase())
}

/// Returns true if a path is `first` or a name within it.
fn is_path_in(path: &str, first: &str) -> bool {
    path.strip_prefix(first)
        .is_some_and(|r| r.is_empty() || r.starts_with(['.', '/']))
}
