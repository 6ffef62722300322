//! The package that a launcher installs, and the program that the package's manifest names.

use serde_json::Value;
use sha2::{Digest, Sha512};

use super::{Launch, LauncherKind, is_file_name};

/// A package and its requested version, parsed from a command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Package {
    /// The package as it is written in the command line.
    pub spec: String,
    /// The name of the package; empty if the package is a URL.
    pub name: String,
    pub version: Version,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Version {
    Exact(String),
    /// Any version that was installed for this spec. The launcher would use it too.
    Installed,
    /// A version that changes over time, such as `latest`.
    Moving,
}

impl Package {
    /// Parses a package of the registry. `None` for a directory, a file or a repository shorthand.
    pub(super) fn parse(kind: LauncherKind, spec: &str) -> Option<Package> {
        let (name, version) = match kind {
            LauncherKind::Npm | LauncherKind::Bun | LauncherKind::Pnpm => of_node(kind, spec)?,
            LauncherKind::Uv => of_python(spec)?,
        };
        Some(Package { spec: spec.to_owned(), name: name.to_owned(), version })
    }

    /// The name of the package without its scope.
    fn short_name(&self) -> &str {
        self.name.rsplit('/').next().unwrap_or_default()
    }

    /// The directory below `_npx` in npm's cache into which npm installs the package.
    pub fn npx_folder(&self) -> String {
        let digest = Sha512::digest(self.spec.as_bytes());
        digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect()
    }

    /// Whether npm may run a globally installed program instead. npm finds that program by the
    /// spec.
    pub fn may_be_global(&self) -> bool {
        self.spec == self.short_name()
    }
}

fn of_node(kind: LauncherKind, spec: &str) -> Option<(&str, Version)> {
    let (scope, rest) = match spec.strip_prefix('@') {
        Some(scoped) => scoped.split_once('/').map(|(scope, rest)| (Some(scope), rest))?,
        None => (None, spec),
    };
    let (short, version) = match rest.split_once('@') {
        Some((short, version)) => (short, Some(version)),
        None => (rest, None),
    };
    if !is_plain(short) || !scope.is_none_or(is_plain) {
        return None;
    }
    let name = spec.get(..spec.len() - rest.len() + short.len())?;
    let version = match (version, kind) {
        (None, LauncherKind::Npm) => Version::Installed,
        (None, LauncherKind::Bun | LauncherKind::Pnpm | LauncherKind::Uv) => Version::Moving,
        (Some(version), _) if version.contains([':', '/']) => return None,
        (Some(version), _) if is_exact(version) => Version::Exact(version.to_owned()),
        (Some(version), LauncherKind::Npm) if is_range(version) => Version::Installed,
        (Some(_), _) => Version::Moving,
    };
    Some((name, version))
}

fn of_python(spec: &str) -> Option<(&str, Version)> {
    if spec.contains("://") {
        return Some(("", Version::Moving));
    }
    let ends = |c: char| !(c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'));
    let (name, rest) = spec.split_at_checked(spec.find(ends).unwrap_or(spec.len()))?;
    if !is_plain(name) || rest.contains('/') {
        return None;
    }
    let version = rest.strip_prefix('@').or(rest.strip_prefix("=="));
    let version = match version.filter(|version| is_exact(version)) {
        Some(version) => Version::Exact(version.to_owned()),
        None => Version::Moving,
    };
    Some((name, version))
}

/// Whether a part of a package specifier is a simple name, so that it is neither a path nor a flag.
fn is_plain(name: &str) -> bool {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '~');
    is_file_name(name) && name.chars().all(allowed)
}

/// Whether the version is exact: three numbers, with or without a suffix.
fn is_exact(version: &str) -> bool {
    let mut parts = version.splitn(3, '.');
    let mut number = || parts.next().is_some_and(is_number);
    let suffix = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '+' | '.');
    number()
        && number()
        && parts.next().is_some_and(|third| {
            third.starts_with(|c: char| c.is_ascii_digit()) && third.chars().all(suffix)
        })
}

fn is_number(part: &str) -> bool {
    !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit())
}

fn is_range(version: &str) -> bool {
    version
        .starts_with(|c: char| c.is_ascii_digit() || matches!(c, '^' | '~' | '<' | '>' | '=' | '*'))
}

/// The program of an installed package, read from its `package.json`, as a path relative to the
/// package. `None` if the package has another version, or if several programs are possible.
pub fn script_of(launch: &Launch, manifest: &str) -> Option<String> {
    let manifest: Value = serde_json::from_str(manifest).ok()?;
    if let Version::Exact(wanted) = &launch.package.version
        && manifest.get("version")?.as_str()? != wanted
    {
        return None;
    }
    let short = launch.package.short_name();
    let programs: Vec<(&str, &str)> = match manifest.get("bin")? {
        Value::String(path) => vec![(short, path)],
        Value::Object(bins) => {
            bins.iter().filter_map(|(name, path)| Some((name.as_str(), path.as_str()?))).collect()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) => return None,
    };
    let named = |wanted: &str| {
        programs.iter().find(|(name, _)| *name == wanted).map(|(_, path)| (*path).to_owned())
    };
    if let Some(bin) = &launch.bin {
        return named(bin);
    }
    // If several names have the same file, the package has a single program.
    let (_, first) = programs.first()?;
    if programs.iter().all(|(_, path)| path == first) {
        return Some((*first).to_owned());
    }
    named(short)
}

/// Whether `node` must run a file, judged by its name and its first bytes. A file with another
/// interpreter, or with flags for the interpreter, is run as a program.
pub fn runs_under_node(file: &str, head: &[u8]) -> bool {
    let Some(line) = head.strip_prefix(b"#!") else {
        return [".js", ".mjs", ".cjs"].iter().any(|ending| file.ends_with(ending));
    };
    let line = line.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let line = String::from_utf8_lossy(line);
    let mut words = line.split_whitespace();
    let program = |word: &str| word.rsplit('/').next() == Some("node");
    match (words.next(), words.next(), words.next()) {
        (Some(node), None, None) => program(node),
        (Some(env), Some("node"), None) => env.ends_with("/env"),
        (Some(_), Some(_), _) | (Some(_), None, Some(_)) | (None, _, _) => false,
    }
}

/// The interpreter in the shebang line of a script, such as `bun` in `#!/usr/bin/env -S bun run`.
pub fn interpreter(head: &[u8]) -> Option<String> {
    let line = head.strip_prefix(b"#!")?.split(|byte| *byte == b'\n').next()?;
    let line = String::from_utf8_lossy(line);
    let name = |word: &str| word.rsplit('/').next().map(str::to_owned);
    let mut words = line.split_whitespace();
    let first = name(words.next()?)?;
    if first != "env" {
        return Some(first);
    }
    name(words.find(|word| !word.starts_with('-') && !word.contains('='))?)
}
