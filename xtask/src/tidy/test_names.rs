//! Finds the tests of a file in its code.

use super::File;

/// A test of a file.
pub(crate) struct Test<'a> {
    pub(crate) line: usize,
    pub(crate) name: &'a str,
    /// The modules and the name of the test without the crate, as a test runner shows them.
    pub(crate) path: String,
}

/// The tests of a file in order; empty for a file outside of `crates` and `xtask`.
pub(crate) fn tests_of(file: &File) -> Vec<Test<'_>> {
    let Some(module) = module_of(&file.path) else { return Vec::new() };
    let mut tests = Vec::new();
    let mut inner: Vec<(usize, &str)> = Vec::new();
    let mut marked = false;
    for (number, line) in file.code_lines() {
        let code = line.trim_start();
        let indent = line.len() - code.len();
        match Item::of(code) {
            Item::Mark => marked = true,
            Item::Attribute => {}
            Item::Module(name) => inner.push((indent, name)),
            Item::Function(name) if std::mem::take(&mut marked) => {
                let inner = inner.iter().map(|(_, name)| *name);
                let path: Vec<&str> = module.iter().copied().chain(inner).chain([name]).collect();
                tests.push(Test { line: number, name, path: path.join("::") });
            }
            Item::Function(_) | Item::Other => marked = false,
            Item::End => inner.retain(|(opened, _)| *opened != indent),
        }
    }
    tests
}

/// The module path of a file: of a library, or of tests in one binary.
fn module_of(path: &str) -> Option<Vec<&str>> {
    let path = path.strip_suffix(".rs")?;
    let within = match path.strip_prefix("crates/") {
        Some(path) => path.split_once('/')?.1,
        None => path.strip_prefix("xtask/")?,
    };
    let within = within.strip_prefix("src/").or_else(|| within.strip_prefix("tests/it/"))?;
    let roots = ["lib", "main", "mod"];
    Some(within.split('/').filter(|part| !roots.contains(part)).collect())
}

/// The kind of item that a line of code begins.
enum Item<'a> {
    /// The attribute that makes a function a test.
    Mark,
    Attribute,
    Module(&'a str),
    Function(&'a str),
    /// The end of the item that began at this indentation.
    End,
    Other,
}

impl<'a> Item<'a> {
    fn of(code: &'a str) -> Item<'a> {
        let name = |rest: &'a str| {
            let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
            &rest[..end]
        };
        if code.starts_with("#[test]") || code.starts_with("#[tokio::test") {
            return Item::Mark;
        }
        if code.is_empty() || code.starts_with("#[") {
            return Item::Attribute;
        }
        if code.starts_with('}') {
            return Item::End;
        }
        if let Some(rest) = code.strip_prefix("mod ").filter(|_| code.ends_with('{')) {
            return Item::Module(name(rest));
        }
        let function = code.strip_prefix("async ").unwrap_or(code).strip_prefix("fn ");
        function.map_or(Item::Other, |rest| Item::Function(name(rest)))
    }
}
