//! Texts that are joined from parts: `join` of a list, and builders of texts.
//!
//! The order of the parts decides what data can change: behind a fixed host it cannot choose the
//! server, and in front of one it can.

use super::SinkKind;
use super::eval::map_taints;
use super::run::FlowRun;
use super::shape::{ByteSpan, ExprId, ExprKind};
use super::sink::GivenArg;
use super::value::{Const, FlowValue, Taint, Taints, join_taints};
use std::rc::Rc;

/// Classes whose object collects a text.
const BUILDERS: &[&str] = &[
    "StringBuilder",
    "StringBuffer",
    "strings.Builder",
    "bytes.Buffer",
];
/// Last words of their names.
const BUILDER_NAMES: &[&str] = &["StringBuilder", "StringBuffer", "Builder", "Buffer"];

/// The parts of a joined text.
struct JoinedParts {
    separator: FlowValue,
    elements: Vec<FlowValue>,
    /// Data of the lists themselves, which can be at any place of the text.
    of_lists: Taints,
}

impl JoinedParts {
    fn new(separator: FlowValue) -> Self {
        Self {
            separator,
            elements: Vec::new(),
            of_lists: None,
        }
    }

    /// Adds the elements of a list in order, or a value that is no list.
    fn add(&mut self, value: &FlowValue) {
        match &value.items {
            Some(items) => {
                self.elements.extend(items.keys.values().cloned());
                self.elements.extend(items.rest.clone());
                self.of_lists = join_taints(&self.of_lists, &value.taints);
            }
            None => self.elements.push(value.clone()),
        }
    }
}

impl FlowRun<'_> {
    /// Returns the text of a call that joins the elements of a list with a separator: `join` of
    /// Python, JavaScript, Ruby and Go, `String.join` of Java and C#, `implode` of PHP and
    /// `joinToString` of Kotlin. `None`: the call does not show which part is the separator, or the
    /// list is not written in the call, so that it can have another order than its elements were
    /// added in.
    pub(super) fn separated(
        &mut self,
        receiver: Option<&(ExprId, FlowValue)>,
        given: &[GivenArg],
    ) -> Option<FlowValue> {
        let receivers = receiver.iter().map(|(place, base)| (*place, base));
        let mut values = receivers.chain(given.iter().map(|a| (a.expr, &a.value)));
        if values.any(|(place, value)| value.items.is_some() && !self.is_written_list(place)) {
            return None;
        }
        let parts = self.joined_parts(receiver.map(|(_, base)| base), given)?;
        let mut list = Vec::with_capacity(parts.elements.len() * 2);
        for element in parts.elements {
            if !list.is_empty() {
                list.push(parts.separator.clone());
            }
            list.push(element);
        }
        let text = self.concat(&list);
        Some(text.with(&map_taints(&parts.of_lists, 0, true)))
    }

    /// Returns true for a list that is written out, or a call that makes one of its arguments.
    fn is_written_list(&self, id: ExprId) -> bool {
        match &self.module.expr(id).kind {
            ExprKind::Collection(_) => true,
            ExprKind::Pass(of) => self.is_written_list(*of),
            ExprKind::Call { callee, .. } => {
                let name = match &self.module.expr(*callee).kind {
                    ExprKind::Name(name) => self.module.word(*name),
                    _ => return false,
                };
                matches!(name, "listOf" | "arrayOf" | "array")
            }
            _ => false,
        }
    }

    fn joined_parts(&self, base: Option<&FlowValue>, given: &[GivenArg]) -> Option<JoinedParts> {
        let first = given.first().map(|a| &a.value);
        if let Some(list) = base.filter(|b| b.items.is_some()) {
            let separator = first.cloned().unwrap_or_else(|| FlowValue::text(","));
            let mut parts = JoinedParts::new(separator);
            parts.add(list);
            return Some(parts);
        }
        if let Some(separator) = base.filter(|b| is_text(b)) {
            let list = first.filter(|f| f.items.is_some())?;
            let mut parts = JoinedParts::new(separator.clone());
            parts.add(list);
            return Some(parts);
        }
        let second = given.get(1).map(|a| &a.value)?;
        let is_text_class = base.is_none_or(|b| self.is_class_of_text(b));
        let mut parts;
        if is_text(first?) && is_text_class {
            parts = JoinedParts::new(first?.clone());
            given.iter().skip(1).for_each(|a| parts.add(&a.value));
        } else if first?.items.is_some() && is_text(second) && given.len() == 2 {
            parts = JoinedParts::new(second.clone());
            parts.add(first?);
        } else {
            return None;
        }
        Some(parts)
    }

    /// Returns an address that is joined with parts of a path.
    pub(super) fn joined_path(
        &mut self,
        base: Option<&FlowValue>,
        given: &[GivenArg],
    ) -> FlowValue {
        let values = given.iter().map(|a| a.value.clone());
        let mut parts = Vec::new();
        for part in base.cloned().into_iter().chain(values) {
            if !parts.is_empty() {
                parts.push(FlowValue::text("/"));
            }
            parts.push(part);
        }
        self.concat(&parts)
    }

    /// Returns true for `String` of Java and `string` of C#.
    fn is_class_of_text(&self, value: &FlowValue) -> bool {
        let names = &["String", "string"];
        let path = value.path.filter(|_| value.taints.is_none());
        path.is_some_and(|p| self.paths.text_ending_with(p, names).is_some())
    }

    /// Returns the result of a method of a builder of texts, and changes the text of the builder.
    /// `None`: the receiver is no builder, or the method is another one.
    pub(super) fn builder_method(
        &mut self,
        word: &str,
        (place, base): (ExprId, &FlowValue),
        given: &[GivenArg],
        span: ByteSpan,
    ) -> Option<FlowValue> {
        let path = self.paths.text_ending_with(base.path?, BUILDER_NAMES)?;
        if base.items.is_some() || !BUILDERS.contains(&path.trim_start_matches("java.lang.")) {
            return None;
        }
        let values = given.iter().map(|a| a.value.clone());
        let text = match word {
            "append" | "Append" | "WriteString" | "WriteByte" | "WriteRune" => {
                let parts: Vec<FlowValue> = start_of(base).into_iter().chain(values).collect();
                self.concat(&parts)
            }
            "appendLine" | "AppendLine" | "appendln" => {
                let line_end = FlowValue::text("\n");
                let values = values.chain([line_end]);
                let parts: Vec<FlowValue> = start_of(base).into_iter().chain(values).collect();
                self.concat(&parts)
            }
            "insert" | "Insert" if given.len() == 2 => {
                let is_start = given[0].value.constant == Some(Const::Int(0));
                let inserted = given[1].value.clone();
                let parts: Vec<FlowValue> = [inserted].into_iter().chain(start_of(base)).collect();
                let text = self.concat(&parts);
                if is_start {
                    text
                } else {
                    // Where the text is inserted is unknown, so no part of the result is.
                    FlowValue::tainted(parts.iter().fold(None, |t, p| join_taints(&t, &p.deep())))
                }
            }
            "String" | "toString" | "ToString" if given.is_empty() => {
                return Some(FlowValue {
                    path: None,
                    ..base.clone()
                });
            }
            "length" | "capacity" | "charAt" | "indexOf" | "lastIndexOf" | "isEmpty" | "Len"
            | "Cap" | "Grow" | "ensureCapacity" | "EnsureCapacity" | "Bytes" => return None,
            // Another method can remove the start.
            _ => {
                let data = base.deep();
                let values = given.iter().map(|a| a.value.deep());
                FlowValue::tainted(values.fold(data, |t, v| join_taints(&t, &v)))
                    .exposed(SinkKind::Url.bit() | SinkKind::Redirect.bit())
            }
        };
        let text = FlowValue {
            path: base.path,
            ..text
        };
        let text = self.through(text, span);
        self.store(place, text.clone());
        Some(text)
    }
}

/// Returns the text that a builder has so far; `None` if it is empty.
fn start_of(base: &FlowValue) -> Option<FlowValue> {
    let has_text = base.constant.is_some() || base.known.is_some() || base.taints.is_some();
    has_text.then(|| FlowValue {
        path: None,
        ..base.clone()
    })
}

fn is_text(value: &FlowValue) -> bool {
    matches!(value.constant, Some(Const::Text(_)))
}

/// Returns data with the kinds of sinks that the same data cannot harm in a text that was built
/// of it.
pub(super) fn cleaned_like(data: &Taints, built: &Taints) -> Taints {
    let changed = data.as_ref()?.iter().map(|t| Taint {
        clean: t.clean | clean_of(built, t.origin),
        is_built: true,
        ..t.clone()
    });
    Some(Rc::new(changed.collect()))
}

/// Returns the kinds of sinks that data of an origin cannot harm; 0 if the data is not there.
fn clean_of(data: &Taints, origin: u32) -> u32 {
    let known = data.iter().flat_map(|d| d.iter());
    known
        .filter(|t| t.origin == origin)
        .map(|t| t.clean)
        .reduce(|a, b| a & b)
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::super::{FlowCertainty, FlowLanguage, FlowSubject, SinkKind, analyse};

    /// Returns true if data of the request reaches the address of a request in a handler.
    /// `address`: statements of the handler that set `u` from the parameter `id`.
    fn chooses_server(language: FlowLanguage, handler: &str, address: &str) -> bool {
        let code = handler.replace("ADDRESS", address);
        let analysis = analyse(language, code.as_bytes());
        assert!(analysis.is_complete, "{code}");
        analysis.flows.iter().any(|f| {
            f.subject == FlowSubject::Flow(SinkKind::Url) && f.confidence > FlowCertainty::Low
        })
    }

    /// Checks addresses that are built in two ways: with a fixed host in front of the data, and
    /// with the data as the host.
    fn check(language: FlowLanguage, handler: &str, addresses: &[(&str, &str)]) {
        for (fixed, chosen) in addresses {
            assert!(!chooses_server(language, handler, fixed), "{fixed}");
            assert!(chooses_server(language, handler, chosen), "{chosen}");
        }
    }

    #[test]
    fn a_fixed_host_in_front_of_data_stays_in_csharp() {
        let handler = "using System.Net.Http;\nusing Microsoft.AspNetCore.Mvc;\npublic class A : Controller {\n  HttpClient c = new HttpClient();\n  [HttpGet] public async Task<string> Get(string id) {\n    ADDRESS\n    return await c.GetStringAsync(u);\n  }\n}\n";
        check(
            FlowLanguage::CSharp,
            handler,
            &[
                (
                    "var u = string.Format(\"https://a.example.org/x/{0}\", id);",
                    "var u = string.Format(\"https://{0}/x\", id);",
                ),
                (
                    "var u = string.Format(CultureInfo.InvariantCulture, \"https://a.example.org/x/{0}\", id);",
                    "var u = string.Format(CultureInfo.InvariantCulture, \"https://{0}/x\", id);",
                ),
                (
                    "var u = string.Concat(\"https://a.example.org/x/\", id);",
                    "var u = string.Concat(\"https://\", id);",
                ),
                (
                    "var u = string.Join(\"/\", \"https://a.example.org/x\", id);",
                    "var u = string.Join(\"/\", id, \"x\");",
                ),
            ],
        );
    }

    #[test]
    fn a_fixed_host_in_front_of_data_stays_in_java() {
        let handler = "import org.springframework.web.bind.annotation.*;\nimport org.springframework.web.client.RestTemplate;\n@RestController\nclass A {\n  RestTemplate t = new RestTemplate();\n  @GetMapping(\"/a\") String a(@RequestParam String id) {\n    ADDRESS\n    return t.getForObject(u, String.class);\n  }\n}\n";
        check(
            FlowLanguage::Java,
            handler,
            &[
                (
                    "String u = String.format(Locale.ROOT, \"https://a.example.org/x/%s\", id);",
                    "String u = String.format(Locale.ROOT, \"https://%s/x\", id);",
                ),
                (
                    "String u = String.join(\"/\", \"https://a.example.org/x\", id);",
                    "String u = String.join(\"/\", id, \"x\");",
                ),
                (
                    "StringBuilder s = new StringBuilder(\"https://a.example.org/x/\"); s.append(id); String u = s.toString();",
                    "StringBuilder s = new StringBuilder(\"/x/\"); s.insert(0, id); String u = s.toString();",
                ),
                (
                    "StringBuilder s = new StringBuilder(\"https://a.example.org/x/\"); s.append(id); int n = s.length(); String u = s.toString();",
                    "StringBuilder s = new StringBuilder(\"https://a.example.org/x/\"); s.append(id); s.delete(0, 24); String u = s.toString();",
                ),
                (
                    "StringBuilder s = new StringBuilder(); s.append(\"https://a.example.org/x/\").append(id); String u = s.toString();",
                    "StringBuilder s = new StringBuilder(); s.append(\"https://\").append(id); String u = s.toString();",
                ),
            ],
        );
    }

    #[test]
    fn a_fixed_host_in_front_of_data_stays_in_go() {
        let handler = "package a\n\nimport (\n\t\"net/http\"\n\t\"net/url\"\n\t\"strings\"\n)\n\nfunc get(w http.ResponseWriter, r *http.Request) {\n\tid := r.FormValue(\"id\")\n\tADDRESS\n\thttp.Get(u)\n}\n";
        check(
            FlowLanguage::Go,
            handler,
            &[
                (
                    "u := strings.Join([]string{\"https://a.example.org/x\", id}, \"/\")",
                    "u := strings.Join([]string{\"https:/\", id}, \"/\")",
                ),
                (
                    "u, _ := url.JoinPath(\"https://a.example.org/x\", id)",
                    "u, _ := url.JoinPath(id, \"x\")",
                ),
                (
                    "var s strings.Builder\n\ts.WriteString(\"https://a.example.org/x/\")\n\ts.WriteString(id)\n\tu := s.String()",
                    "var s strings.Builder\n\ts.WriteString(\"https://\")\n\ts.WriteString(id)\n\tu := s.String()",
                ),
            ],
        );
    }

    #[test]
    fn a_fixed_host_in_front_of_data_stays_in_python_and_ruby() {
        check(
            FlowLanguage::Python,
            "import requests\nfrom flask import Flask, request\napp = Flask(__name__)\n@app.route(\"/a\")\ndef a():\n    id = request.args[\"id\"]\n    ADDRESS\n    return requests.get(u).text\n",
            &[
                (
                    "u = \"/\".join([\"https://a.example.org/x\", id])",
                    "u = \"/\".join([\"https:/\", id])",
                ),
                (
                    "u = \"/\".join((\"https://a.example.org\", \"x\", id))",
                    "p = [\"https://a.example.org/x\", id]; p.reverse(); u = \"/\".join(p)",
                ),
                (
                    "u = \"\".join((\"https://a.example.org/x/\", id))",
                    "u = \"\".join((\"https://\", id))",
                ),
            ],
        );
        check(
            FlowLanguage::Ruby,
            "require 'net/http'\nclass AController < ApplicationController\n  def a\n    id = params[:id]\n    ADDRESS\n    Net::HTTP.get(URI(u))\n  end\nend\n",
            &[
                (
                    "u = format(\"https://a.example.org/x/%s\", id)",
                    "u = format(\"https://%s/x\", id)",
                ),
                (
                    "u = File.join(\"https://a.example.org/x\", id)",
                    "u = File.join(id, \"x\")",
                ),
                (
                    "u = [\"https://a.example.org/x\", id].join(\"/\")",
                    "u = [id, \"x\"].join(\"/\")",
                ),
            ],
        );
    }
}
