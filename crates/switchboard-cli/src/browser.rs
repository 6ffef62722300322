//! Opens the user's browser at a URL: as one argument, without a shell, and only if there is a
//! display.

use std::io;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use switchboard::Environment;
use switchboard::sign_in::link::Link;

/// How long to wait for a browser to fail. A browser that still runs after this time has opened the
/// URL.
const FAILURE_WAIT: Duration = Duration::from_secs(1);

/// Starts the browser of this user.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Browser<'e> {
    system: System,
    environment: &'e Environment,
    patience: Duration,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum System {
    /// Linux, or another system with a display server.
    Unix,
    MacOs,
    Windows,
}

/// Why the browser was not opened.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NotOpened {
    #[error("this is an SSH session, and the browser runs on another machine")]
    Remote,
    #[error("there is no display (`DISPLAY` and `WAYLAND_DISPLAY` are not set)")]
    NoDisplay,
    #[error("the URL to open is not an HTTP URL")]
    NotHttp,
    #[error("cannot start `{program}`")]
    NotStarted {
        program: String,
        #[source]
        cause: io::Error,
    },
    #[error("`{program}` could not open the URL ({status})")]
    Failed { program: String, status: ExitStatus },
}

impl<'e> Browser<'e> {
    pub(crate) fn of(environment: &'e Environment) -> Browser<'e> {
        let system = if cfg!(target_os = "macos") {
            System::MacOs
        } else if cfg!(windows) {
            System::Windows
        } else {
            System::Unix
        };
        Browser { system, environment, patience: FAILURE_WAIT }
    }

    /// Opens the browser, which keeps running when this program ends.
    pub(crate) async fn open(&self, link: &Link) -> Result<(), NotOpened> {
        let CommandLine { program, args } = self.words(link.as_str())?;
        let not_started = |cause| NotOpened::NotStarted { program: program.clone(), cause };
        let mut child = self.start(&program, &args).map_err(not_started)?;
        match tokio::time::timeout(self.patience, child.wait()).await {
            Ok(Ok(status)) if !status.success() => Err(NotOpened::Failed { program, status }),
            Ok(Err(cause)) => Err(not_started(cause)),
            Ok(Ok(_)) | Err(_) => Ok(()),
        }
    }

    /// The command line that opens a URL on this system.
    fn words(&self, address: &str) -> Result<CommandLine, NotOpened> {
        if self.environment.variable("SSH_CONNECTION").is_some() {
            return Err(NotOpened::Remote);
        }
        // A URL with another scheme could be taken for an option, a file or a command.
        if !address.starts_with("https://") && !address.starts_with("http://") {
            return Err(NotOpened::NotHttp);
        }
        let (program, before) = match self.system {
            System::Unix if !self.has_display() => return Err(NotOpened::NoDisplay),
            System::Unix => (self.preferred().unwrap_or("xdg-open"), None),
            System::MacOs => ("open", None),
            System::Windows => ("rundll32", Some("url.dll,FileProtocolHandler")),
        };
        let args = before.into_iter().chain([address]).map(str::to_owned).collect();
        Ok(CommandLine { program: program.to_owned(), args })
    }

    fn has_display(&self) -> bool {
        ["DISPLAY", "WAYLAND_DISPLAY"].iter().any(|name| self.environment.variable(name).is_some())
    }

    /// The program in the environment variable `BROWSER`. A list, a command line or a template in
    /// it is left to `xdg-open`.
    fn preferred(&self) -> Option<&'e str> {
        let name = self.environment.variable("BROWSER")?;
        let is_plain = !name.starts_with('-')
            && name.chars().all(|c| c.is_ascii_alphanumeric() || "-._+/".contains(c))
            // The program is an absolute path or a bare name: a relative path would depend on the
            // current directory.
            && (name.starts_with('/') || !name.contains('/'));
        is_plain.then_some(name)
    }

    /// Starts the program in its own process group, so that Ctrl-C does not end it, and outside of
    /// any project.
    #[expect(clippy::disallowed_methods, reason = "a browser is to outlive this program")]
    fn start(&self, program: &str, args: &[String]) -> io::Result<tokio::process::Child> {
        tokio::process::Command::new(program)
            .args(args)
            .env_clear()
            .envs(self.environment.all())
            .current_dir("/")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()
    }
}

/// A command line: program and arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
struct CommandLine {
    program: String,
    args: Vec<String>,
}

#[cfg(test)]
mod tests;
