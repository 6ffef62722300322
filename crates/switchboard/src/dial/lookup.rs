//! Where a program is looked for when it is started.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Every place, in order, at which the kernel or the library before it would try `command` for a
/// program that is started in `cwd` with this `PATH`. Whether anything is there is not asked.
pub(crate) fn candidates(command: &str, path: &str, cwd: &Path) -> Vec<PathBuf> {
    if command.contains('/') {
        return vec![cwd.join(command)];
    }
    folders(path, cwd).map(|folder| folder.join(command)).collect()
}

/// The program that would be started, if there is one.
pub(crate) fn find(command: &str, path: &str, cwd: &Path) -> Option<PathBuf> {
    candidates(command, path, cwd).into_iter().find(|candidate| is_program(candidate))
}

/// Whether a file is there that may be run.
pub(crate) fn is_program(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|data| data.is_file() && data.permissions().mode() & 0o111 != 0)
}

/// The folders of a `PATH`. Relative ones count from where the program starts, and an empty one is
/// that place itself.
pub(crate) fn folders(path: &str, cwd: &Path) -> impl Iterator<Item = PathBuf> {
    path.split(':').map(|folder| cwd.join(folder))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_without_slash_is_searched_on_path() {
        let check = |command: &str, path: &str, expected: &[&str]| {
            let expected: Vec<PathBuf> = expected.iter().map(PathBuf::from).collect();
            assert_eq!(candidates(command, path, Path::new("/p")), expected, "{command} {path}");
        };
        check("x", "/bin:bin:./b:", &["/bin/x", "/p/bin/x", "/p/./b/x", "/p/x"]);
        check("./x", "/bin", &["/p/./x"]);
        check("/a/x", "/bin", &["/a/x"]);
    }
}
