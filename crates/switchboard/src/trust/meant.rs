//! Which files an interpreter takes for a word that names none: `./server` for `server.js`, a
//! directory for what it starts with, a module for its file.

use std::io::Read;
use std::path::{Path, PathBuf};

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

/// The files of a module that a word may name, `package.module` or `-mpackage`.
pub(super) fn by_module(word: &str, cwd: &Path) -> Vec<PathBuf> {
    let name = word.strip_prefix("-m").unwrap_or(word);
    let plain = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.');
    if name.is_empty() || !name.chars().all(plain) {
        return Vec::new();
    }
    let module = cwd.join(name.replace('.', "/"));
    // Python runs the packages around a module first.
    let depth = name.matches('.').count();
    let around = module.ancestors().skip(1).take(depth).map(|package| package.join("__init__.py"));
    let mut files = vec![module.with_extension("py"), module.join("__main__.py")];
    files.push(module.join("__init__.py"));
    files.extend(around);
    files
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
