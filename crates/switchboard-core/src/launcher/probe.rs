//! Finds out once where a launcher installs a package: the launcher runs a line of our code instead
//! of the package's program.

use super::{Kind, Launch};

/// The prefix of the answer, which distinguishes it from other output.
const ANSWER: &str = "switchboard: ";

/// Prints `PATH`, in which the package's directory comes first.
const NODE: &str = "process.stdout.write('\\nswitchboard: '+process.env.PATH+'\\n')";
const PYTHON: &str = "import sys; print('\\nswitchboard: '+sys.prefix)";

impl Launch {
    /// The arguments with which the launcher installs the package and prints the answer.
    pub fn question(&self) -> Vec<String> {
        let spec = self.package.spec.as_str();
        let package = format!("--package={spec}");
        let words: &[&str] = match self.kind {
            Kind::Npm => &["--yes", &package, "--", "node", "-e", NODE],
            Kind::Bun => &["--package", spec, "node", "-e", NODE],
            Kind::Pnpm => &[&package, "node", "-e", NODE],
            Kind::Uv => &["--from", spec, "python", "-c", PYTHON],
        };
        self.mode.iter().chain(words).map(|word| (*word).to_owned()).collect()
    }

    /// The location of the package in the output of the launcher: the directory that contains
    /// `node_modules`, or the Python environment.
    pub fn root_in<'a>(&self, printed: &'a str) -> Option<&'a str> {
        let answer = printed.lines().rev().find_map(|line| line.strip_prefix(ANSWER))?;
        let root = match self.kind {
            Kind::Npm | Kind::Bun | Kind::Pnpm => {
                answer.split(':').find_map(|folder| folder.strip_suffix("/node_modules/.bin"))?
            }
            Kind::Uv => answer.trim_end(),
        };
        root.starts_with('/').then_some(root)
    }
}
