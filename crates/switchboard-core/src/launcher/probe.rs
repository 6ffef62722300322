//! The probe of a launcher. It makes the launcher install the package and then run one line of our
//! code, which prints where the package is, instead of the package's program.

use super::{Launch, LauncherKind};

/// The text before the printed path, by which the path is found in the output.
const PREFIX: &str = "switchboard: ";

/// JavaScript that prints `PATH`, in which the directory of the package comes first.
const NODE: &str = "process.stdout.write('\\nswitchboard: '+process.env.PATH+'\\n')";
const PYTHON: &str = "import sys; print('\\nswitchboard: '+sys.prefix)";

impl Launch {
    /// The arguments with which the launcher installs the package and prints its path.
    pub fn probe_args(&self) -> Vec<String> {
        let spec = self.package.spec.as_str();
        let package = format!("--package={spec}");
        let words: &[&str] = match self.kind {
            LauncherKind::Npm => &["--yes", &package, "--", "node", "-e", NODE],
            LauncherKind::Bun => &["--package", spec, "node", "-e", NODE],
            LauncherKind::Pnpm => &[&package, "node", "-e", NODE],
            LauncherKind::Uv => &["--from", spec, "python", "-c", PYTHON],
        };
        self.mode.iter().chain(words).map(|word| (*word).to_owned()).collect()
    }

    /// The path of the package in the output of the launcher: the directory that contains
    /// `node_modules`, or the Python environment.
    pub fn root_in<'a>(&self, printed: &'a str) -> Option<&'a str> {
        let line = printed.lines().rev().find_map(|line| line.strip_prefix(PREFIX))?;
        let root = match self.kind {
            LauncherKind::Npm | LauncherKind::Bun | LauncherKind::Pnpm => {
                line.split(':').find_map(|folder| folder.strip_suffix("/node_modules/.bin"))?
            }
            LauncherKind::Uv => line.trim_end(),
        };
        root.starts_with('/').then_some(root)
    }
}
