//! A home in which nine hosts have servers.

use std::fs;
use std::path::{Path, PathBuf};

use switchboard_it::program::Installed;
use tokio::process::Command;

use crate::PROGRAMS;

/// A home and a project with realistic files of nine hosts.
pub(crate) struct NineHosts {
    pub(crate) installed: Installed,
    pub(crate) project: PathBuf,
}

impl NineHosts {
    pub(crate) fn new() -> Self {
        let installed = Installed::bare(PROGRAMS);
        let home = installed.home().canonicalize().unwrap();
        let project = home.join("project");
        let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/nine-hosts");
        let fixture = Self { installed, project: project.clone() };
        fixture.copy(&data.join("home"), &home);
        fixture.copy(&data.join("project"), &project);
        fixture
    }

    /// Copies a directory, and replaces the placeholders `[HOME]` and `[PROJECT]` in its files.
    fn copy(&self, from: &Path, to: &Path) {
        fs::create_dir_all(to).unwrap();
        for entry in fs::read_dir(from).unwrap() {
            let entry = entry.unwrap();
            let to = to.join(entry.file_name());
            if entry.file_type().unwrap().is_dir() {
                self.copy(&entry.path(), &to);
                continue;
            }
            let home = self.project.parent().unwrap();
            let text = fs::read_to_string(entry.path()).unwrap();
            let text = text.replace("[PROJECT]", &self.project.to_string_lossy());
            fs::write(to, text.replace("[HOME]", &home.to_string_lossy())).unwrap();
        }
    }

    pub(crate) async fn run(&self, words: &[&str]) -> (Option<i32>, String, String) {
        let project = self.project.to_string_lossy();
        let words = ["--cwd", &*project].into_iter().chain(words.iter().copied());
        let ran = self.installed.run(words).await;
        let home = self.project.parent().unwrap().to_string_lossy().into_owned();
        let named = |text: &str| text.replace(&home, "[HOME]");
        (ran.code, named(&ran.stdout), named(&ran.stderr))
    }

    /// The command `switchboard` in the project, to run on a terminal.
    pub(crate) fn command(&self) -> Command {
        let mut command = self.installed.command();
        command.current_dir(&self.project);
        command
    }
}
