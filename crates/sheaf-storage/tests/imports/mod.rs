//! Which modules of a crate name which others: a small reader of Rust sources.
//!
//! ```text
//!   text --tokens--> words and signs, without comments and literals
//!        --read----> per module: its items, its children, its `use` trees, the paths in its code
//!        --resolve-> of each path the module in which its item is defined
//! ```
//!
//! A path is followed through `use` and `pub use`, stars included: `crate::Name` belongs to the module that defines
//! `Name`, and not to the one that hands it on. So handing on alone is no import. What is compiled for tests only is
//! left out.

mod tokens;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use tokens::{Token, tokens};

/// The names of a module, from the top of the crate: `["tree", "search"]`. The top itself has none.
pub type ModulePath = Vec<String>;

/// How often a name is handed on at most.
const MAX_STEPS: usize = 16;

/// What stands in a module.
#[derive(Default)]
struct Module {
    /// What it defines itself.
    items: BTreeSet<String>,
    /// Names that `use` brings in, with the paths that they stand for.
    names: BTreeMap<String, Vec<String>>,
    /// Paths that `use` brings in by a star.
    stars: Vec<Vec<String>>,
    /// Paths that it names otherwise or imports for itself.
    used: BTreeSet<Vec<String>>,
}

/// The modules of a crate.
pub struct Sources {
    modules: BTreeMap<ModulePath, Module>,
}

/// Where a path leads.
#[derive(Debug, PartialEq, Eq)]
enum Place {
    /// To an item of this module, or to the module.
    Here(ModulePath),
    /// Out of the crate, or to a local name.
    Elsewhere,
}

impl Sources {
    /// Reads the sources of a crate.
    pub fn read(sources: &Path) -> Sources {
        let mut found = Sources {
            modules: BTreeMap::new(),
        };
        let root = ["lib.rs", "main.rs"].map(|name| sources.join(name));
        for file in root.iter().filter(|file| file.exists()) {
            found.read_file(file, &[]);
        }
        found.read_folder(sources, &[]);
        found
    }

    fn read_folder(&mut self, folder: &Path, path: &[String]) {
        for (name, file) in entries(folder) {
            let mut inner = path.to_vec();
            if name != "mod" {
                inner.push(name);
            }
            match file.is_dir() {
                true => self.read_folder(&file, &inner),
                false => self.read_file(&file, &inner),
            }
        }
    }

    fn read_file(&mut self, file: &Path, path: &[String]) {
        let text = fs::read_to_string(file).expect("a source");
        self.read_module(&tokens(&text), path);
    }

    fn read_module(&mut self, mut code: &[Token], path: &[String]) {
        let mut module = self.modules.remove(path).unwrap_or_default();
        let mut is_handed_on = false;
        while let Some((token, rest)) = code.split_first() {
            let is_word_of = |word: &str| matches!(token, Token::Word(found) if found == word);
            if *token == Token::Sign('#') {
                let (attribute, after) = group(&rest[usize::from(begins(rest, '!'))..]);
                code = if is_for_tests(attribute) {
                    after_item(after)
                } else {
                    after
                };
                continue;
            }
            if is_word_of("pub") {
                is_handed_on = true;
                let after = if begins(rest, '(') {
                    group(rest).1
                } else {
                    rest
                };
                code = after;
                continue;
            }
            if is_word_of("use") {
                let (tree, after) = until_semicolon(rest);
                let mut imported = Vec::new();
                read_use_tree(tree, &[], &mut imported);
                for (target, name) in imported {
                    let target = absolute(target, path);
                    if !is_handed_on {
                        module.used.insert(target.clone());
                    }
                    match name.as_deref() {
                        Some("*") => module.stars.push(target),
                        Some(name) => drop(module.names.insert(name.to_string(), target)),
                        None => {}
                    }
                }
                is_handed_on = false;
                code = after;
                continue;
            }
            is_handed_on = false;
            if let Some(Token::Word(name)) = rest.first()
                && let Token::Word(word) = token
                && ITEMS.contains(&word.as_str())
            {
                module.items.insert(name.clone());
                if word == "mod" && begins(&rest[1..], '{') {
                    let inner: Vec<String> = path.iter().chain([name]).cloned().collect();
                    let (body, after) = group(&rest[1..]);
                    self.read_module(body, &inner);
                    code = after;
                    continue;
                }
                code = &rest[1..];
                continue;
            }
            let (named, after) = read_path(code);
            if named.len() > 1 {
                module.used.insert(absolute(named, path));
                code = after;
            } else {
                code = rest;
            }
        }
        self.modules.insert(path.to_vec(), module);
    }

    /// Of each module the others whose items it names.
    pub fn imports(&self) -> BTreeMap<ModulePath, BTreeSet<ModulePath>> {
        let imports = self.modules.iter().map(|(path, module)| {
            let used = module.used.iter();
            let places = used.map(|named| match named.split_last() {
                // All that a module has: the module itself, and what it hands on.
                Some((star, before)) if star == "*" => self.resolve(path, before, 0),
                _ => self.resolve(path, named, 0),
            });
            let others = places.filter_map(|place| match place {
                Place::Here(other) if other != *path => Some(other),
                _ => None,
            });
            (path.clone(), others.collect())
        });
        imports.collect()
    }

    /// Follows a path that stands in a module: from the top (`crate`), from a child, or from an imported name.
    fn resolve(&self, from: &[String], named: &[String], steps: usize) -> Place {
        match named.split_first() {
            Some((first, rest)) if first == "crate" => self.descend(&[], rest, steps),
            Some((first, _)) if self.is_known(from, first) => self.descend(from, named, steps),
            _ => Place::Elsewhere,
        }
    }

    /// Whether the first name of a path is one of the module's own.
    fn is_known(&self, from: &[String], first: &str) -> bool {
        let child: ModulePath = from.iter().cloned().chain([first.to_string()]).collect();
        let module = self.modules.get(from);
        self.modules.contains_key(&child) || module.is_some_and(|it| it.names.contains_key(first))
    }

    fn descend(&self, module: &[String], named: &[String], steps: usize) -> Place {
        let Some((first, rest)) = named.split_first() else {
            return Place::Here(module.to_vec());
        };
        let child: ModulePath = module.iter().cloned().chain([first.clone()]).collect();
        let known = self.modules.get(module);
        let handed_on = known.and_then(|known| known.names.get(first));
        if self.modules.contains_key(&child) && (!rest.is_empty() || handed_on.is_none()) {
            return self.descend(&child, rest, steps);
        }
        let Some(known) = known.filter(|_| steps < MAX_STEPS) else {
            return Place::Here(module.to_vec());
        };
        if let Some(target) = handed_on {
            let target: Vec<String> = target.iter().chain(rest).cloned().collect();
            // What does not begin in the module itself is of another crate.
            return match target.first() {
                Some(begin) if begin != "crate" && begin == first => Place::Elsewhere,
                _ => self.resolve(module, &target, steps + 1),
            };
        }
        if known.items.contains(first) {
            return Place::Here(module.to_vec());
        }
        for star in &known.stars {
            let before = &star[..star.len() - 1];
            if let Place::Here(other) = self.resolve(module, before, steps + 1)
                && other != module
                && self.has(&other, first)
            {
                return self.descend(&other, named, steps + 1);
            }
        }
        Place::Here(module.to_vec())
    }

    fn has(&self, module: &[String], name: &str) -> bool {
        let known = self.modules.get(module);
        known.is_some_and(|known| known.items.contains(name)) || self.is_known(module, name)
    }
}

/// The words before the name of an item.
const ITEMS: [&str; 10] = [
    "fn",
    "struct",
    "enum",
    "union",
    "trait",
    "type",
    "const",
    "static",
    "mod",
    "macro_rules",
];

/// What stands in a folder of sources, by the names of modules. Tests are left out, and the top of the crate.
pub fn entries(folder: &Path) -> Vec<(String, PathBuf)> {
    let found = fs::read_dir(folder).expect("a folder").map(|entry| {
        let path = entry.expect("an entry").path();
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        (name.into_owned(), path)
    });
    let left_out = ["lib", "main", "tests", "fuzzing"];
    found
        .filter(|(name, path)| {
            let is_source = path.is_dir() || path.extension().is_some_and(|e| e == "rs");
            is_source && !left_out.contains(&name.as_str())
        })
        .collect()
}

/// A path from the top of the crate, `["crate", ..]`; as it is if it begins with a name.
fn absolute(named: Vec<String>, own: &[String]) -> Vec<String> {
    let above = named.iter().take_while(|name| *name == "super").count();
    let is_own = named.first().is_some_and(|name| name == "self");
    if above == 0 && !is_own {
        return named;
    }
    let kept = own.len().saturating_sub(above);
    let rest = named.into_iter().skip(above + usize::from(is_own));
    let begin = std::iter::once("crate".to_string()).chain(own[..kept].iter().cloned());
    begin.chain(rest).collect()
}

fn begins(code: &[Token], sign: char) -> bool {
    code.first() == Some(&Token::Sign(sign))
}

/// The contents of the brackets that the code begins with, and what follows.
fn group(code: &[Token]) -> (&[Token], &[Token]) {
    let mut depth = 0;
    for (at, token) in code.iter().enumerate() {
        match token {
            Token::Sign('(' | '[' | '{') => depth += 1,
            Token::Sign(')' | ']' | '}') => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return (&code[1.min(at)..at], &code[at + 1..]);
        }
    }
    (&[], &[])
}

fn until_semicolon(code: &[Token]) -> (&[Token], &[Token]) {
    let end = code.iter().position(|token| *token == Token::Sign(';'));
    let end = end.unwrap_or(code.len());
    (&code[..end], &code[(end + 1).min(code.len())..])
}

/// Whether an attribute is `cfg(test)`, or `cfg(all(test, ..))`.
fn is_for_tests(attribute: &[Token]) -> bool {
    let words = attribute.iter().filter_map(|token| match token {
        Token::Word(word) => Some(word.as_str()),
        _ => None,
    });
    let words: Vec<&str> = words.collect();
    matches!(
        words.as_slice(),
        ["cfg", "test", ..] | ["cfg", "all", "test", ..]
    )
}

/// What follows an item: it ends with a semicolon or with its braces.
fn after_item(mut code: &[Token]) -> &[Token] {
    while let Some((token, rest)) = code.split_first() {
        code = match token {
            Token::Sign(';' | ',') => return rest,
            // It is the last one in braces.
            Token::Sign('}' | ')') => return code,
            Token::Sign('{') => return group(code).1,
            Token::Sign('(' | '[') => group(code).1,
            _ => rest,
        };
    }
    code
}

/// The paths of a `use` tree, each with the name that it gets: a star if it brings in all, `None` for `as _`.
fn read_use_tree(
    tree: &[Token],
    before: &[String],
    found: &mut Vec<(Vec<String>, Option<String>)>,
) {
    let mut path = before.to_vec();
    let mut code = tree;
    while let Some((token, rest)) = code.split_first() {
        match token {
            Token::Word(word) if word == "as" => {
                let name = match rest.first() {
                    Some(Token::Word(name)) if name != "_" => Some(name.clone()),
                    _ => None,
                };
                found.push((path, name));
                return;
            }
            // A group's `self` is what stands before the group.
            Token::Word(word)
                if word == "self" && path.len() == before.len() && !path.is_empty() => {}
            Token::Word(word) => path.push(word.clone()),
            Token::Sign('*') => {
                path.push("*".to_string());
                found.push((path, Some("*".to_string())));
                return;
            }
            Token::Sign('{') => {
                for branch in branches(group(code).0) {
                    read_use_tree(branch, &path, found);
                }
                return;
            }
            _ => {}
        }
        code = rest;
    }
    if let Some(name) = path.last().cloned() {
        found.push((path, Some(name)));
    }
}

/// The parts of a group between commas.
fn branches(code: &[Token]) -> Vec<&[Token]> {
    let mut depth = 0;
    let mut parts = Vec::new();
    let mut begin = 0;
    for (at, token) in code.iter().enumerate() {
        match token {
            Token::Sign('{') => depth += 1,
            Token::Sign('}') => depth -= 1,
            Token::Sign(',') if depth == 0 => {
                parts.push(&code[begin..at]);
                begin = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&code[begin..]);
    parts.retain(|part| !part.is_empty());
    parts
}

/// The names of a path that the code begins with, and what follows.
fn read_path(code: &[Token]) -> (Vec<String>, &[Token]) {
    let mut names = Vec::new();
    let mut code = code;
    while let [Token::Word(word), rest @ ..] = code {
        names.push(word.clone());
        code = rest;
        match code {
            [Token::Path, after @ ..] if matches!(after.first(), Some(Token::Word(_))) => {
                code = after;
            }
            _ => break,
        }
    }
    (names, code)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sources(files: &[(&[&str], &str)]) -> Sources {
        let mut sources = Sources {
            modules: BTreeMap::new(),
        };
        for (path, text) in files {
            sources.read_module(&tokens(text), &names(path));
        }
        sources
    }

    fn names(path: &[&str]) -> ModulePath {
        path.iter().map(|name| (*name).to_string()).collect()
    }

    fn imported(sources: &Sources, module: &[&str]) -> Vec<String> {
        let imports = sources.imports();
        imports[&names(module)]
            .iter()
            .map(|path| path.join("/"))
            .collect()
    }

    #[test]
    fn groups_name_each_of_their_modules() {
        let sources = sources(&[
            (&["a"], "use crate::{b::{self, C, inner::{D as E, *}}, f};"),
            (&["b"], "pub struct C;"),
            (&["b", "inner"], "pub struct D;"),
            (&["f"], ""),
        ]);
        assert_eq!(imported(&sources, &["a"]), ["b", "b/inner", "f"]);
    }

    #[test]
    fn names_belong_to_the_modules_that_define_them() {
        let sources = sources(&[
            (
                &[],
                "mod a; mod b; pub use b::inner::Deep; pub use other_crate::parser;",
            ),
            (
                &["a"],
                "use crate::{Deep, b::Handed}; fn f() { crate::parser::g(); }",
            ),
            (&["b"], "mod inner; pub use inner::*;"),
            (&["b", "inner"], "pub struct Deep; pub struct Handed;"),
        ]);
        assert_eq!(imported(&sources, &["a"]), ["b/inner"]);
        assert_eq!(imported(&sources, &["b"]), Vec::<String>::new());
    }

    #[test]
    fn paths_in_code_count_wherever_they_stand() {
        let sources = sources(&[
            (
                &["a"],
                "use crate::b;\nfn f(x: &'a super::c::D) -> char { b::g(); '\"' }",
            ),
            (
                &["b"],
                "/// See [`crate::a`].\nconst TEXT: &str = r#\"crate::a\"#;",
            ),
            (
                &["c"],
                "mod inner { use super::E; use super::super::b; struct E; }",
            ),
        ]);
        assert_eq!(imported(&sources, &["a"]), ["b", "c"]);
        assert_eq!(imported(&sources, &["b"]), Vec::<String>::new());
        assert_eq!(imported(&sources, &["c", "inner"]), ["b", "c"]);
    }

    #[test]
    fn what_is_for_tests_is_left_out_and_what_follows_is_not() {
        let text = "#[cfg(test)]\nmod tests;\n#[cfg(test)]\nuse crate::b::B;\n#[cfg(not(test))]\nuse crate::c::C;";
        let sources = sources(&[(&["a"], text), (&["b"], "struct B;"), (&["c"], "struct C;")]);
        assert_eq!(imported(&sources, &["a"]), ["c"]);
    }
}
