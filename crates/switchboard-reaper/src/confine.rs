//! Confines a server with Landlock, so that it can neither signal nor trace its keeper and reaper.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use landlock::{
    CompatLevel, Compatible, Ruleset, RulesetAttr, RulesetCreated, RulesetCreatedAttr, Scope,
};

use crate::limits;
use crate::message::StartRequest;

/// The names of programs that usually start setuid programs; links are followed first. Every
/// program of a snap is a link to `snap`.
const NEED_SETUID: [&str; 12] = [
    "apptainer",
    "bwrap",
    "distrobox",
    "doas",
    "firejail",
    "flatpak",
    "pkexec",
    "podman",
    "snap",
    "su",
    "sudo",
    "toolbox",
];

/// The length of a script's first line that is read, in bytes.
const LONGEST_SHEBANG: u64 = 256;

/// Makes the new process confine itself between fork and exec.
#[expect(unsafe_code, reason = "only the new process can confine itself, before it is the server")]
pub(crate) fn confine(command: &mut Command, request: &StartRequest) {
    let Some(ruleset) = signal_scope() else { return };
    let setuid = if needs_setuid(request) { Setuid::Needed } else { Setuid::Dispensable };
    // SAFETY: the keeper has one thread, so the new process finds no lock held, and may allocate.
    unsafe {
        command.pre_exec(move || {
            restrict(&ruleset, setuid);
            Ok(())
        });
    }
}

/// A Landlock ruleset that forbids signals to other processes; `None` if the kernel does not
/// support it.
pub(crate) fn signal_scope() -> Option<RulesetCreated> {
    let ruleset = Ruleset::default().set_compatibility(CompatLevel::HardRequirement);
    ruleset.scope(Scope::Signal).ok()?.create().ok()
}

#[derive(Clone, Copy)]
enum Setuid {
    Needed,
    Dispensable,
}

/// Confines this process. Without `CAP_SYS_ADMIN` the kernel requires `no_new_privs`, which
/// disables setuid programs. The kernel may refuse, because at most 16 rulesets can be stacked; the
/// server then starts unconfined, and keeper and reaper still end it.
fn restrict(ruleset: &RulesetCreated, setuid: Setuid) {
    let privileged = ruleset.try_clone().is_ok_and(|ruleset| {
        let ruleset = ruleset.no_new_privs(false);
        ruleset.restrict_self().is_ok()
    });
    if let (false, Setuid::Dispensable) = (privileged, setuid) {
        let _refused = ruleset.try_clone().map(RulesetCreated::restrict_self);
    }
    // The seccomp filter also requires `no_new_privs` or `CAP_SYS_ADMIN`, so the kernel may refuse
    // it too.
    let _refused = limits::restrict();
}

/// Whether the program, or the interpreter in its first line, is a setuid program or usually starts
/// one.
fn needs_setuid(request: &StartRequest) -> bool {
    let Some(program) = find(&request.command, request) else { return false };
    is_or_starts_setuid(&program)
        || interpreter(&program).is_some_and(|name| {
            find(&name, request).is_some_and(|program| is_or_starts_setuid(&program))
        })
}

fn is_or_starts_setuid(program: &Path) -> bool {
    const SETUID_OR_SETGID: u32 = 0o6000;
    let known = program.file_name().is_some_and(|name| NEED_SETUID.iter().any(|one| name == *one));
    let found = fs::metadata(program);
    known || found.is_ok_and(|found| found.permissions().mode() & SETUID_OR_SETGID != 0)
}

/// The file that `exec` would run for a name, with all links followed.
fn find(name: &OsStr, request: &StartRequest) -> Option<PathBuf> {
    let canonical = |path: PathBuf| request.cwd.join(path).canonicalize().ok();
    if name.as_bytes().contains(&b'/') {
        return canonical(name.into());
    }
    let path = request.env.iter().find(|(variable, _)| variable == "PATH");
    std::env::split_paths(&path?.1).find_map(|folder| canonical(folder.join(name)))
}

/// The interpreter in a script's first line; with `env`, the program that `env` runs.
fn interpreter(program: &Path) -> Option<OsString> {
    // Only regular files are opened: a named pipe would block until it has a writer.
    if !fs::metadata(program).ok()?.is_file() {
        return None;
    }
    let mut first = Vec::new();
    File::open(program).ok()?.take(LONGEST_SHEBANG).read_to_end(&mut first).ok()?;
    let line = first.strip_prefix(b"#!")?.split(|byte| *byte == b'\n').next()?;
    let mut words = line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
    let named = words.next()?;
    let is_env = Path::new(OsStr::from_bytes(named)).file_name().is_some_and(|name| name == "env");
    let name = if is_env { words.find(|word| !word.starts_with(b"-"))? } else { named };
    Some(OsStr::from_bytes(name).to_owned())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::Confinement;

    #[test]
    fn program_or_script_that_needs_setuid_is_detected() {
        let home = tempfile::tempdir().unwrap();
        let at = |name: &str| home.path().join(name);
        let write = |name: &str, text: &str, mode: u32| {
            fs::write(at(name), text).unwrap();
            fs::set_permissions(at(name), fs::Permissions::from_mode(mode)).unwrap();
        };
        write("snap", "", 0o755);
        write("plain", "", 0o755);
        write("special", "", 0o4755);
        symlink(at("snap"), at("node")).unwrap();
        symlink(at("plain"), at("python")).unwrap();
        write("by-env", "#!/usr/bin/env node\n", 0o755);
        write("by-split-env", "#!/usr/bin/env -S node --flag\n", 0o755);
        write("by-path", &format!("#!{}\n", at("node").display()), 0o755);
        write("by-plain", "#!/usr/bin/env python\n", 0o755);
        let check = |command: &str, expected: bool| {
            let request = StartRequest {
                command: command.into(),
                args: Vec::new(),
                env: vec![("PATH".into(), home.path().into())],
                cwd: home.path().into(),
                records: home.path().into(),
                confinement: Confinement::WherePossible,
            };
            assert_eq!(needs_setuid(&request), expected, "{command}");
        };
        for command in ["snap", "node", "./node", "special", "by-env", "by-split-env", "by-path"] {
            check(command, true);
        }
        for command in ["plain", "python", "by-plain", "nowhere", "./nowhere", ""] {
            check(command, false);
        }
    }
}
