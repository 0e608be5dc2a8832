//! The source of `review` that words mean: a range, a commit, a path, a number.

use super::DirectoryQueries;
use super::vocabulary::WORDS;
use std::path::{Component, Path};

pub(super) fn source(words: &[&[&str]], globs: &[String]) -> Vec<String> {
    words
        .iter()
        .flat_map(|w| w.iter())
        .map(|w| (*w).to_owned())
        .chain(globs.iter().cloned())
        .collect()
}

/// Returns the meaning of words in the position of a source of `review`.
pub(super) fn of_words(words: &[&str], around: &dyn DirectoryQueries) -> Vec<Vec<String>> {
    match words {
        [] => Vec::new(),
        [word] => of_word(word, around),
        [base, head] if around.is_revision(base) && around.is_revision(head) => {
            vec![branch(base, head)]
        }
        [first, rest @ ..]
            if let Some((_, name)) = WORDS.iter().find(|(word, _)| word == first) =>
        {
            vec![source(&[&[*name], rest], &[])]
        }
        _ if words.iter().all(|w| around.is_file(Path::new(w))) => {
            vec![source(&[&["code"], words], &[])]
        }
        [first, paths @ ..] => {
            if let Some(globs) = globs(words, around) {
                return vec![source(&[&["changes"]], &globs)];
            }
            let Some(globs) = globs(paths, around) else {
                return Vec::new();
            };
            let mut found = of_word(first, around);
            found
                .iter_mut()
                .for_each(|source| source.extend_from_slice(&globs));
            found
        }
    }
}

/// Returns the meaning of a word in the position of a source of `review`.
pub(super) fn of_word(word: &str, around: &dyn DirectoryQueries) -> Vec<Vec<String>> {
    let path = Path::new(word);
    let is_patch = path
        .extension()
        .is_some_and(|e| e == "patch" || e == "diff");
    if word == "-" || is_patch && around.is_file(path) {
        return vec![source(&[&["patch", word]], &[])];
    }
    if around.is_file(path) {
        return vec![source(&[&["code", word]], &[])];
    }
    if around.is_dir(path) {
        return globs(&[word], around)
            .map(|globs| source(&[&["changes"]], &globs))
            .into_iter()
            .collect();
    }
    if let Some((_, name)) = WORDS.iter().find(|(name, _)| *name == word) {
        return vec![source(&[&[*name]], &[])];
    }
    if let Some((base, head)) = word.split_once("...") {
        return vec![branch(base, head)];
    }
    if let Some((base, head)) = word.split_once("..") {
        return vec![source(&[&["commit", word]], &[]), branch(base, head)];
    }
    if around.is_branch(word) {
        return vec![
            source(&[&["branch", word]], &[]),
            source(&[&["commit", word]], &[]),
        ];
    }
    if around.is_revision(word) {
        return vec![source(&[&["commit", word]], &[])];
    }
    of_pull(word)
        .map(|pull| source(&[&["pr", pull]], &[]))
        .into_iter()
        .collect()
}

/// Returns the URL or the number of a pull request.
pub(super) fn of_pull(word: &str) -> Option<&str> {
    let number = word.trim_start_matches(['#', '!']);
    match word.starts_with("https://") || word.starts_with("http://") {
        true => Some(word),
        false => {
            (!number.is_empty() && number.bytes().all(|b| b.is_ascii_digit())).then_some(number)
        }
    }
}

/// Returns the review of a branch for a range of two names; an empty end means HEAD.
fn branch(base: &str, head: &str) -> Vec<String> {
    let base = if base.is_empty() { "HEAD" } else { base };
    match head {
        "" | "HEAD" => source(&[&["branch", "--base", base]], &[]),
        _ => source(&[&["branch", head, "--base", base]], &[]),
    }
}

/// Returns the option that limits a review to files and directories; empty without paths, `None` if
/// a word is neither, or if no pattern matches it alone.
pub(super) fn globs(paths: &[&str], around: &dyn DirectoryQueries) -> Option<Vec<String>> {
    let globs: Option<Vec<String>> = paths.iter().map(|path| glob(path, around)).collect();
    let option = (!paths.is_empty()).then(|| "--files".to_owned());
    Some(option.into_iter().chain(globs?).collect())
}

fn glob(word: &str, around: &dyn DirectoryQueries) -> Option<String> {
    let path = Path::new(word);
    let is_dir = around.is_dir(path);
    if !is_dir && !around.is_file(path) || word.contains(['*', '?', '[', ']', '{', '}', '\\', '!'])
    {
        return None;
    }
    let relative = if path.is_absolute() {
        path.strip_prefix(around.dir()).ok()?
    } else {
        path
    };
    let mut names = Vec::new();
    for component in relative.components() {
        match component {
            Component::Normal(name) => names.push(name.to_str()?),
            Component::CurDir => {}
            Component::ParentDir | Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    if is_dir {
        names.push("**");
    }
    Some(names.join("/"))
}
