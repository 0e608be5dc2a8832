//! Use of memory after it was freed.

use super::super::super::shape::CodeBlock;
use super::super::words::is_word;
use super::super::{children, field};
use super::C;
use tree_sitter::Node;

/// Pairs of a freed pointer and a later statement of the same block that are compared, at most.
const MOST_PAIRS: usize = 20_000;

/// The use of a pointer by a statement after the pointer was freed.
enum UseAfterFree<'n> {
    /// The statement does not name the pointer.
    None,
    /// The statement assigns the pointer, or its effect is unknown.
    Other,
    /// The statement frees the pointer again.
    Free(Node<'n>),
    /// The statement reads or writes the data behind the pointer.
    Read(Node<'n>),
}
impl<'n, 't> C<'_, 't> {
    /// Adds a call if statements of one block use or free a pointer after they freed it.
    pub(super) fn frees(&mut self, nodes: &[Node<'n>], out: &mut CodeBlock) {
        let mut pairs = 0;
        for (i, node) in nodes.iter().enumerate() {
            let Some(name) = self.freed(*node).or_else(|| self.freed_in_branch(*node)) else {
                continue;
            };
            let is_sure = self.freed(*node).is_some();
            let rest = nodes.get(i + 1..).unwrap_or_default();
            for later in rest {
                pairs += 1;
                if pairs > MOST_PAIRS {
                    return;
                }
                if matches!(
                    later.kind(),
                    "labeled_statement" | "case_statement" | "preproc_else" | "preproc_elif"
                ) {
                    break;
                }
                if self.freed(*later) == Some(name) {
                    self.note(*later, "__double_free", out);
                    break;
                }
                match self.use_of(*later, name) {
                    UseAfterFree::None => {}
                    UseAfterFree::Other => break,
                    UseAfterFree::Free(at) => self.note(at, "__double_free", out),
                    UseAfterFree::Read(at) => {
                        // After a branch that frees the pointer, another condition may guard the
                        // use.
                        if is_sure {
                            self.note(at, "__use_after_free", out);
                        }
                        break;
                    }
                }
                if matches!(
                    later.kind(),
                    "return_statement"
                        | "break_statement"
                        | "goto_statement"
                        | "continue_statement"
                ) {
                    break;
                }
            }
        }
    }

    /// Returns the pointer that a branch frees before execution continues: `if (failed) { free(p);
    /// }`.
    fn freed_in_branch(&self, node: Node<'n>) -> Option<&'t str> {
        if node.kind() != "if_statement" || field(node, "alternative").is_some() {
            return None;
        }
        let body = field(node, "consequence").filter(|b| b.kind() == "compound_statement")?;
        let name = children(body).last().and_then(|last| self.freed(*last))?;
        // The text does not show enough if the condition checks the pointer, as in `if (p)
        // free(p);`.
        let test = field(node, "condition")
            .map(|t| self.l.text(t))
            .unwrap_or_default();
        (!test.contains(name)).then_some(name)
    }

    /// Returns the pointer that a statement frees: `free(p);`, `delete p;`.
    fn freed(&self, node: Node<'n>) -> Option<&'t str> {
        let inner = if node.kind() == "expression_statement" {
            children(node).first().copied()?
        } else {
            node
        };
        let pointer = match inner.kind() {
            "call_expression"
                if matches!(
                    self.l.text(field(inner, "function")?),
                    "free" | "std::free" | "kfree" | "g_free"
                ) =>
            {
                children(field(inner, "arguments")?).first().copied()?
            }
            "delete_expression" => children(inner).last().copied()?,
            _ => return None,
        };
        matches!(pointer.kind(), "identifier" | "field_expression").then(|| self.l.text(pointer))
    }

    /// Returns how a statement uses a pointer that was freed before.
    fn use_of(&self, node: Node<'n>, name: &str) -> UseAfterFree<'n> {
        let text = self.l.text(node);
        let mut from = 0;
        while let Some(at) = text.get(from..).and_then(|t| t.find(name)) {
            let start = from + at;
            let end = start + name.len();
            let before = text.get(..start).unwrap_or_default();
            let after = text.get(end..).unwrap_or_default();
            let is_whole = !before.ends_with(is_word)
                && !after.starts_with(is_word)
                && !before.ends_with("->")
                && !before.ends_with('.');
            from = end;
            if !is_whole {
                continue;
            }
            let rest = after.trim_start();
            if rest.starts_with('=') && !rest.starts_with("==") && !before.ends_with('*') {
                // `p = p->next` reads the pointer before it assigns it.
                let code = rest.split(';').next().unwrap_or_default();
                let code = code
                    .replace("sizeof(*", "sizeof(?")
                    .replace("sizeof *", "sizeof ?");
                let reads = [format!("{name}->"), format!("{name}["), format!("*{name}")];
                let read = reads.iter().filter_map(|r| code.find(r.as_str())).min();
                let offset = node.start_byte() + end + (after.len() - rest.len());
                let read =
                    read.and_then(|r| node.descendant_for_byte_range(offset + r, offset + r + 1));
                return read.map_or(UseAfterFree::Other, UseAfterFree::Read);
            }
            // An address or a size does not read the data behind the pointer.
            let is_address = before.ends_with('&') && !before.ends_with("&&");
            if is_address || before.ends_with("sizeof(") || before.ends_with("sizeof ") {
                return UseAfterFree::Other;
            }
            let offset = node.start_byte() + start;
            let Some(place) = node.descendant_for_byte_range(offset, offset + name.len()) else {
                return UseAfterFree::Other;
            };
            if before.ends_with("free(") && node.kind() == "if_statement" {
                return UseAfterFree::Free(place);
            }
            return if self.is_dereferenced(place) {
                UseAfterFree::Read(place)
            } else {
                UseAfterFree::Other
            };
        }
        UseAfterFree::None
    }

    /// Returns true if the data behind a pointer is used: `*p`, `p->x`, `p[i]`, or an argument of a
    /// call.
    fn is_dereferenced(&self, place: Node<'n>) -> bool {
        let mut at = place;
        for _ in 0..3 {
            let Some(p) = at.parent() else { return false };
            match p.kind() {
                "subscript_expression" => {
                    return field(p, "argument").is_some_and(|a| a.id() == at.id());
                }
                "pointer_expression" => return self.l.text(p).starts_with('*'),
                "field_expression" => {
                    if self.l.text(p).contains("->") {
                        return true;
                    }
                    at = p;
                }
                "argument_list" => {
                    let call = p
                        .parent()
                        .and_then(|c| field(c, "function"))
                        .map(|f| self.l.text(f))
                        .unwrap_or_default();
                    let reads = [
                        "printf", "puts", "str", "mem", "write", "send", "fputs", "atoi",
                        "fprintf", "sprintf",
                    ];
                    return reads.iter().any(|w| call.starts_with(w))
                        && !call.starts_with("memset_free");
                }
                "return_statement" => return true,
                _ => return false,
            }
        }
        false
    }
}
