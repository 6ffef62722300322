//! Which files an interpreter takes for a word that names none: `./server` for `server.js`, a
//! directory for what it starts with, a module for its file.

use std::io::Read;
use std::path::{Path, PathBuf};

use super::place;
use crate::paths;

/// What interpreters add to a name.
const ENDINGS: [&str; 7] = ["js", "mjs", "cjs", "ts", "json", "py", "rb"];

/// What a directory starts with.
const STARTS: [&str; 7] =
    ["index.js", "index.mjs", "index.cjs", "index.ts", "index.json", "__main__.py", "package.json"];

/// A manifest larger than this is looked at no further.
const LARGEST_MANIFEST: u64 = 1024 * 1024;

/// Programs that take what they run from a file of the working directory, and these files.
const RUNNERS: &[(&[&str], &[&str])] = &[
    (&["npm", "pnpm", "yarn", "bun"], &["package.json"]),
    (&["deno"], &["deno.json", "deno.jsonc", "package.json"]),
    (&["make", "gmake"], &["Makefile", "makefile", "GNUmakefile"]),
    (&["just"], &["justfile", "Justfile", ".justfile"]),
    (&["task"], &["Taskfile.yml", "Taskfile.yaml"]),
    (&["rake"], &["Rakefile", "rakefile"]),
    (&["bundle"], &["Gemfile"]),
    (&["cargo"], &["Cargo.toml", ".cargo/config.toml", "src/main.rs", "build.rs"]),
    (&["go"], &["go.mod", "main.go"]),
    (&["uv", "poetry", "pdm", "hatch", "rye"], &["pyproject.toml"]),
    (&["pipenv"], &["Pipfile"]),
    (&["mise", "rtx"], &["mise.toml", ".mise.toml"]),
    (&["direnv"], &[".envrc"]),
    (&["nix", "nix-shell"], &["flake.nix", "default.nix", "shell.nix"]),
    (
        &["compose", "docker-compose", "podman-compose"],
        &["compose.yml", "compose.yaml", "docker-compose.yml", "docker-compose.yaml"],
    ),
    (&["gradle", "gradlew"], &["build.gradle", "build.gradle.kts"]),
    (&["mvn"], &["pom.xml"]),
    // Aliases and hooks.
    (&["git"], &[".git/config"]),
];

/// The file itself, or those that may be meant by its name.
pub(super) fn by_path(path: PathBuf) -> Vec<PathBuf> {
    if path.is_file() {
        return vec![path];
    }
    let mut meant: Vec<PathBuf> = Vec::new();
    if let Some(name) = path.file_name().and_then(|name| name.to_str()) {
        meant.extend(ENDINGS.iter().map(|ending| path.with_file_name(format!("{name}.{ending}"))));
    }
    meant.extend(STARTS.iter().map(|start| path.join(start)));
    if let Some(main) = main_of(&path.join("package.json")) {
        let main = path.join(main);
        meant.extend(ENDINGS.iter().map(|ending| main.with_added_extension(ending)));
        meant.push(main);
    }
    meant.push(path);
    meant
}

/// Where the module lies that a word may name.
pub(super) struct Module {
    pub(super) files: Vec<PathBuf>,
    /// Its path without an ending, and those of the packages around it.
    pub(super) stems: Vec<PathBuf>,
    /// The outermost package.
    pub(super) package: PathBuf,
}

/// `package.module` or `-mpackage` for Python, `Package::Module` for Perl.
pub(super) fn by_module(word: &str, cwd: &Path) -> Option<Module> {
    let name = word.strip_prefix("-m").or_else(|| word.strip_prefix("-M")).unwrap_or(word);
    let name = name.replace("::", ".");
    let plain = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.');
    if name.is_empty() || name.starts_with('.') || !name.chars().all(plain) {
        return None;
    }
    let module = cwd.join(name.replace('.', "/"));
    // Python runs the packages around a module first, and a module in the place of such a package.
    let depth = name.matches('.').count();
    let stems: Vec<PathBuf> = module.ancestors().take(depth + 1).map(Path::to_owned).collect();
    let mut files = vec![module.with_extension("py"), module.join("__main__.py")];
    files.extend(stems.iter().map(|package| package.join("__init__.py")));
    files.extend(stems.iter().skip(1).map(|package| package.with_extension("py")));
    files.push(module.with_extension("pm"));
    let package = stems.last().cloned().unwrap_or(module);
    let inner = stems.iter().flat_map(|stem| [stem.join("__init__"), stem.join("__main__")]);
    let stems = stems.iter().cloned().chain(inner).collect();
    Some(Module { files, stems, package })
}

/// What marks the environment that a Python belongs to.
pub(super) const VIRTUAL_ENVIRONMENT: &str = "pyvenv.cfg";

pub(super) fn by_virtual_environment(program: &Path) -> Option<PathBuf> {
    let place = program.parent()?.parent()?;
    Some(place.join(VIRTUAL_ENVIRONMENT)).filter(|settings| settings.is_file())
}

/// The files of an installed package, as in `node -r package/register`.
pub(super) fn by_package(word: &str, cwd: &Path) -> Vec<PathBuf> {
    let installed = cwd.join("node_modules");
    let first = word.split('/').next().unwrap_or_default();
    if first.is_empty() || first.starts_with('.') {
        return Vec::new();
    }
    if word.contains("..") {
        // `package/../../x.js` leads out of the package and is resolved as text.
        by_path(place::resolved_as_text(&installed.join(word)))
    } else if installed.join(first).is_dir() {
        by_path(installed.join(word))
    } else {
        Vec::new()
    }
}

/// The files that a runner of scripts takes its commands from.
pub(super) fn by_runner(program: &str, cwd: &Path) -> Vec<PathBuf> {
    let name = Path::new(program).file_stem().and_then(|name| name.to_str()).unwrap_or_default();
    let runs = RUNNERS.iter().filter(|(programs, _)| programs.contains(&name));
    runs.flat_map(|(_, files)| files.iter().map(|file| cwd.join(file))).collect()
}

/// Where launchers find programs of a project before they install any.
pub(super) fn by_launcher(word: &str, cwd: &Path) -> Vec<PathBuf> {
    if word.contains('/') {
        return Vec::new();
    }
    ["node_modules/.bin", ".venv/bin", "venv/bin"]
        .iter()
        .map(|bin| cwd.join(bin).join(word))
        .collect()
}

/// What a package starts with.
fn main_of(manifest: &Path) -> Option<String> {
    let mut text = Vec::new();
    let file = paths::open_regular(manifest).ok()??;
    file.take(LARGEST_MANIFEST + 1).read_to_end(&mut text).ok()?;
    if text.len() as u64 > LARGEST_MANIFEST {
        return None;
    }
    let manifest: serde_json::Value = serde_json::from_slice(&text).ok()?;
    manifest.get("main")?.as_str().map(str::to_owned)
}
