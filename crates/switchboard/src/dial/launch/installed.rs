//! From the place where a launcher installed a package to the program in it.

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

use switchboard_core::launcher::package::{runs_under_node, script_of};
use switchboard_core::launcher::{Kind, Launch};

use super::Found;
use crate::dial::lookup;
use crate::dial::spawn::Program;
use crate::paths;

/// As much of a file as tells what runs it.
const HEAD: u64 = 256;

/// The program that the launcher would run for `plain`, if `root` has it. Programs beside it are
/// found first, as the launcher would have it; other programs are looked for from `place`.
pub(super) fn program(
    launch: &Launch,
    root: &Path,
    plain: &Program,
    place: &Path,
) -> Option<Found> {
    let path = plain.env.get("PATH").map(String::as_str).unwrap_or_default();
    let (folder, words) = match launch.kind {
        Kind::Npm | Kind::Bun | Kind::Pnpm => {
            let modules = root.join("node_modules");
            let script = script(launch, &modules.join(&launch.package.name))?;
            let words = match script {
                Script::OfNode(script) => vec![node(&plain.command, path, place)?, script],
                Script::Program(program) => vec![program],
            };
            (modules.join(".bin"), words)
        }
        Kind::Uv => {
            let folder = root.join("bin");
            let name = launch.bin.as_ref().unwrap_or(&launch.package.name);
            let program = Some(folder.join(name)).filter(|program| lookup::is_program(program))?;
            (folder, vec![program])
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
    Some(Found { program: Program { command, args, env, cwd: plain.cwd.clone() }, file })
}

enum Script {
    OfNode(PathBuf),
    Program(PathBuf),
}

fn script(launch: &Launch, package: &Path) -> Option<Script> {
    let manifest = paths::read_regular(&package.join("package.json")).ok()??;
    let named = script_of(launch, std::str::from_utf8(&manifest).ok()?)?;
    let script = package.join(named).canonicalize().ok()?;
    // A manifest does not lead out of its package.
    let inside = script.starts_with(package.canonicalize().ok()?);
    if !inside || !fs::metadata(&script).ok()?.is_file() {
        return None;
    }
    let mut head = Vec::new();
    File::open(&script).ok()?.take(HEAD).read_to_end(&mut head).ok()?;
    if runs_under_node(script.to_str()?, &head) {
        Some(Script::OfNode(script))
    } else {
        Some(script).filter(|script| lookup::is_program(script)).map(Script::Program)
    }
}

/// The `node` beside the launcher if that is given by its path, else the one on the path.
fn node(launcher: &str, path: &str, place: &Path) -> Option<PathBuf> {
    let beside = launcher.contains('/').then(|| place.join(launcher).with_file_name("node"));
    beside.filter(|node| lookup::is_program(node)).or_else(|| lookup::find("node", path, place))
}
