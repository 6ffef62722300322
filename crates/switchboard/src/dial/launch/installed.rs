//! Finds the program in the directory where a launcher installed a package.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use switchboard_core::launcher::package::{interpreter, runs_under_node, script_of};
use switchboard_core::launcher::{Launch, LauncherKind};

use super::{InstalledProgram, Swayed};
use crate::dial::lookup;
use crate::dial::spawn::Program;
use crate::paths;

/// The number of bytes of a file that are read to find its interpreter.
const HEAD: u64 = 256;

/// The program that the launcher would run for `plain`, if `root` contains it. As under the
/// launcher, programs of the package come first in the `PATH`, and relative paths are resolved from
/// `place`.
pub(super) fn program(
    launch: &Launch,
    root: &Path,
    plain: &Program,
    place: &Path,
) -> Option<InstalledProgram> {
    let path = plain.env.get("PATH").map(String::as_str).unwrap_or_default();
    let (folder, words, swayed) = match launch.kind {
        LauncherKind::Npm | LauncherKind::Bun | LauncherKind::Pnpm => {
            let modules = root.join("node_modules");
            let script = script(launch, &modules.join(&launch.package.name))?;
            let (words, swayed) = match script {
                Script::OfNode(script) => {
                    let node = node(&plain.command, path, place)?;
                    let swayed = sway_of(&node);
                    (vec![node, script], swayed)
                }
                Script::Run { script, by } if by == "node" => {
                    let node = lookup::find("node", path, place)?;
                    (vec![script], sway_of(&node))
                }
                // Other interpreters may read settings of the working directory, such as Bun's
                // `bunfig.toml`.
                Script::Run { script, by: _ } => (vec![script], Swayed::ByItsDirectory),
                Script::Program(program) => (vec![program], Swayed::ByNothing),
            };
            (modules.join(".bin"), words, swayed)
        }
        LauncherKind::Uv => {
            let folder = root.join("bin");
            let name = launch.bin.as_ref().unwrap_or(&launch.package.name);
            let program = Some(folder.join(name)).filter(|program| lookup::is_program(program))?;
            // The working directory decides nothing: the script's first line names the Python of
            // the virtual environment.
            (folder, vec![program], Swayed::ByNothing)
        }
    };
    let mut env = plain.env.clone();
    env.insert("PATH".to_owned(), format!("{}:{path}", folder.to_str()?));
    let words = words.iter().map(|word| word.to_str().map(str::to_owned));
    let mut words = words.collect::<Option<Vec<String>>>()?.into_iter();
    let command = words.next()?;
    let mut args: Vec<String> = words.collect();
    let file = args.first().unwrap_or(&command).clone();
    args.extend(launch.args.iter().cloned());
    let program =
        Program { command, args, env, cwd: plain.cwd.clone(), confinement: plain.confinement };
    Some(InstalledProgram { program, file, swayed })
}

enum Script {
    OfNode(PathBuf),
    /// The script runs under the interpreter that its first line names.
    Run {
        script: PathBuf,
        by: String,
    },
    Program(PathBuf),
}

fn script(launch: &Launch, package: &Path) -> Option<Script> {
    let manifest = paths::read(&package.join("package.json")).ok()??;
    let named = script_of(launch, std::str::from_utf8(&manifest).ok()?)?;
    let script = package.join(named).canonicalize().ok()?;
    // A path in the manifest must not lead out of the package.
    let inside = script.starts_with(package.canonicalize().ok()?);
    if !inside || !fs::metadata(&script).ok()?.is_file() {
        return None;
    }
    let mut head = Vec::new();
    paths::open_regular(&script).ok()??.take(HEAD).read_to_end(&mut head).ok()?;
    if runs_under_node(script.to_str()?, &head) {
        return Some(Script::OfNode(script));
    }
    let script = Some(script).filter(|script| lookup::is_program(script))?;
    Some(match interpreter(&head) {
        Some(by) => Script::Run { script, by },
        None => Script::Program(script),
    })
}

/// Whether the working directory decides the version of `node`: a version manager replaces `node`
/// by a shim, which chooses the version by that directory.
fn sway_of(node: &Path) -> Swayed {
    let is_shim_folder = |folder: &Path| folder.file_name().is_some_and(|name| name == "shims");
    let real = node.canonicalize().unwrap_or_default();
    let is_node = real.file_name().is_some_and(|name| name == "node" || name == "nodejs");
    if is_node && !node.parent().is_some_and(is_shim_folder) {
        Swayed::ByNothing
    } else {
        Swayed::ByItsDirectory
    }
}

/// The `node` beside a launcher with a path, otherwise the one in the `PATH`.
fn node(launcher: &str, path: &str, place: &Path) -> Option<PathBuf> {
    let beside = launcher.contains('/').then(|| place.join(launcher).with_file_name("node"));
    beside.filter(|node| lookup::is_program(node)).or_else(|| lookup::find("node", path, place))
}
