//! Where a program is looked up when it is started.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// The paths, in order, at which `execvp` would try `command` for a program that starts in `cwd`
/// with this `PATH`. The paths need not exist.
pub(crate) fn candidates(command: &str, path: &str, cwd: &Path) -> Vec<PathBuf> {
    if command.contains('/') {
        return vec![cwd.join(command)];
    }
    folders(path, cwd).map(|folder| folder.join(command)).collect()
}

/// The program that would be started, if it exists.
pub(crate) fn find(command: &str, path: &str, cwd: &Path) -> Option<PathBuf> {
    candidates(command, path, cwd).into_iter().find(|candidate| is_program(candidate))
}

/// Whether the path is an executable file.
pub(crate) fn is_program(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|data| data.is_file() && data.permissions().mode() & 0o111 != 0)
}

/// The directories of a `PATH`. A relative one is relative to `cwd`, and an empty one is `cwd`.
pub(crate) fn folders(path: &str, cwd: &Path) -> impl Iterator<Item = PathBuf> {
    path.split(':').map(|folder| cwd.join(folder))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_without_slash_is_looked_up_on_search_path() {
        let check = |command: &str, path: &str, expected: &[&str]| {
            let expected: Vec<PathBuf> = expected.iter().map(PathBuf::from).collect();
            assert_eq!(candidates(command, path, Path::new("/p")), expected, "{command} {path}");
        };
        check("x", "/bin:bin:./b:", &["/bin/x", "/p/bin/x", "/p/./b/x", "/p/x"]);
        check("./x", "/bin", &["/p/./x"]);
        check("/a/x", "/bin", &["/a/x"]);
    }
}
