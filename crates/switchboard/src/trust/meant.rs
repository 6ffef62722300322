//! The files that an interpreter may load for a name: `server.js` for `./server`, the entry file of
//! a directory, the file of a module.

use std::io::Read;
use std::path::{Path, PathBuf};

use super::place;
use crate::paths;

/// The extensions that interpreters append to a name.
const ENDINGS: [&str; 16] = [
    "js", "mjs", "cjs", "ts", "mts", "cts", "jsx", "tsx", "json", "node", "py", "rb", "lua",
    "groovy", "class", "hs",
];

/// The names of files that an interpreter runs for a directory.
const STARTS: [&str; 14] = [
    "index.js",
    "index.mjs",
    "index.cjs",
    "index.ts",
    "index.tsx",
    "index.jsx",
    "index.json",
    "index.node",
    "init.lua",
    "__main__.py",
    "package.json",
    // Installers build packages from these files: `uvx --from . name`, `pipx run .`.
    "pyproject.toml",
    "setup.py",
    "setup.cfg",
];

/// The maximum size of a manifest that is read.
const LARGEST_MANIFEST: u64 = 1024 * 1024;

/// The file at the path or, if there is none, the files that an interpreter may load for this name.
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
        meant.extend(STARTS.iter().map(|start| main.join(start)));
        meant.push(main);
    }
    meant.push(path);
    meant
}

/// The location of the module that a word may name.
pub(super) struct Module {
    pub(super) files: Vec<PathBuf>,
    /// The paths of the module and of its parent packages, without extensions.
    pub(super) stems: Vec<PathBuf>,
    /// The path of the outermost package that contains the module.
    pub(super) package: PathBuf,
}

/// The location of a module: `package.module` or `-mpackage` for Python, `Package::Module` for
/// Perl, `package.Class` for Java, `package.module` for Lua.
pub(super) fn by_module(word: &str, cwd: &Path) -> Option<Module> {
    let name = word.strip_prefix("-m").or_else(|| word.strip_prefix("-M")).unwrap_or(word);
    let name = name.replace("::", ".");
    let plain = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.');
    if name.is_empty() || name.starts_with('.') || !name.chars().all(plain) {
        return None;
    }
    let module = cwd.join(name.replace('.', "/"));
    // Python first runs the parent packages of a module, each of which may also be a plain module
    // file.
    let depth = name.matches('.').count();
    let stems: Vec<PathBuf> = module.ancestors().take(depth + 1).map(Path::to_owned).collect();
    let mut files = vec![module.with_extension("py"), module.join("__main__.py")];
    files.extend(stems.iter().map(|package| package.join("__init__.py")));
    files.extend(stems.iter().skip(1).map(|package| package.with_extension("py")));
    files.extend(["pm", "class", "lua"].map(|ending| module.with_extension(ending)));
    files.push(module.join("init.lua"));
    let package = stems.last().cloned().unwrap_or(module);
    let inner = stems.iter().flat_map(|stem| [stem.join("__init__"), stem.join("__main__")]);
    let stems = stems.iter().cloned().chain(inner).collect();
    Some(Module { files, stems, package })
}

/// The file that marks a Python virtual environment.
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
        // Node resolves `package/../../x.js`, which leads out of the package, as text.
        by_path(place::resolved_as_text(&installed.join(word)))
    } else if installed.join(first).is_dir() {
        by_path(installed.join(word))
    } else {
        Vec::new()
    }
}

/// The paths at which launchers look for a program of the project before they install it.
pub(super) fn by_launcher(word: &str, cwd: &Path) -> Vec<PathBuf> {
    // `npx @scope/name` starts a program with the name `name`.
    let scoped = word.strip_prefix('@').and_then(|rest| rest.split_once('/'));
    let word = scoped.map_or(word, |(_, name)| name);
    if word.contains('/') {
        return Vec::new();
    }
    ["node_modules/.bin", ".venv/bin", "venv/bin"]
        .iter()
        .map(|bin| cwd.join(bin).join(word))
        .collect()
}

/// The entry file that a manifest names.
fn main_of(manifest: &Path) -> Option<String> {
    read_manifest(manifest)?.get("main")?.as_str().map(str::to_owned)
}

/// The names under which a package refers to its own files: `node -r name`, `node --import
/// '#name'`, `npx name`.
pub(super) struct OwnNames(Option<serde_json::Value>);

impl OwnNames {
    pub(super) fn of(manifest: &Path) -> OwnNames {
        OwnNames(read_manifest(manifest))
    }

    pub(super) fn contain(&self, word: &str) -> bool {
        let OwnNames(Some(manifest)) = self else { return false };
        if word.starts_with('#') {
            return manifest.get("imports").is_some();
        }
        let has_program = manifest.get("bin").is_some_and(|bin| bin.get(word).is_some());
        let name = manifest.get("name").and_then(serde_json::Value::as_str).unwrap_or_default();
        let is_name = !name.is_empty()
            && (name.rsplit('/').next() == Some(word)
                || word
                    .strip_prefix(name)
                    .is_some_and(|rest| rest.is_empty() || rest.starts_with('/')));
        has_program || is_name
    }
}

fn read_manifest(manifest: &Path) -> Option<serde_json::Value> {
    let mut text = Vec::new();
    let file = paths::open_regular(manifest).ok()??;
    file.take(LARGEST_MANIFEST + 1).read_to_end(&mut text).ok()?;
    if text.len() as u64 > LARGEST_MANIFEST {
        return None;
    }
    serde_json::from_slice(&text).ok()
}
