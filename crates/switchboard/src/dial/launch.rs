//! Launchers, such as `npx`, that install a program and run it: the installed program runs in place
//! of the launcher. The project in which the user happens to work does not decide which program
//! runs.

mod installed;
mod known;
mod npm;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use switchboard_core::launcher::package::Version;
use switchboard_core::launcher::{self, Launch, LauncherKind, python};
use tokio::sync::watch;
use tokio::time::Instant;

use super::lookup;
use super::secret::{self, ProgramLimits, SecretError};
use super::spawn::{Program, Spawner};
use crate::paths;
use crate::upstream::stderr::{self, Tail};
use crate::upstream::{DialError, DialStage};
use known::{Age, Known};

/// The minimum timeout for an installation; a longer start timeout takes precedence.
const INSTALLATION: Duration = Duration::from_secs(60);

/// The maximum size of a launcher's output.
const LARGEST_OUTPUT: usize = 256 * 1024;

/// With this variable, Python does not search the working directory for modules.
const SAFE_PATH: &str = "PYTHONSAFEPATH";

/// How the launcher of a server is resolved to the installed program.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Launching {
    pub(crate) resolving: Resolving,
    pub(crate) ground: Ground,
    /// Switchboard's directory for known packages, which also holds the neutral directory for
    /// launchers.
    pub(crate) home: PathBuf,
    /// The log file for the standard error of the server.
    pub(crate) log: PathBuf,
    pub(crate) start_timeout: Duration,
    /// The network variables, such as proxies, that are set but passed on only if the entry names
    /// them.
    pub(crate) withheld: Vec<&'static str>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Resolving {
    On,
    /// Launchers are not resolved: they run as configured.
    Off,
}

/// Whether files in the working directory of a server may decide what runs.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ground {
    /// The entry names the directory, or comes from it: files in the directory may decide what
    /// runs.
    Own,
    /// The server runs in the project in which the user happens to work: the project's files must
    /// not decide what runs.
    Foreign,
}

/// A program that is ready to start, and its start timeout.
pub(crate) struct Ready {
    pub(crate) program: Program,
    pub(crate) start_timeout: Duration,
}

/// What a command would run, as far as the files on disk show.
pub(crate) enum Outlook {
    /// The configured command runs unchanged.
    Plain,
    /// This program runs in place of the launcher.
    Direct(InstalledProgram),
    /// The launcher has to install the package first, or to report its location.
    Ask(Box<Asking>),
}

pub(crate) struct Asking {
    launch: Launch,
    /// The program of an earlier installation, which runs if the launcher fails.
    stale: Option<InstalledProgram>,
}

/// The program of an installed package.
pub(crate) struct InstalledProgram {
    pub(crate) program: Program,
    /// The path of the package's file that runs.
    pub(crate) file: String,
    swayed: Swayed,
}

/// Whether the working directory also decides which program runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Swayed {
    ByNothing,
    /// The interpreter or shim takes its version or settings from the working directory.
    ByItsDirectory,
}

impl Launching {
    /// The program to start. If the location of the package is unknown, the launcher runs first and
    /// installs it.
    pub(crate) async fn resolve(
        &self,
        spawner: &Arc<dyn Spawner>,
        stage: &watch::Sender<DialStage>,
        program: Program,
    ) -> Result<Ready, DialError> {
        if launcher::kind_of(&program.command, &program.args).is_none() {
            return Ok(self.directly(self.without_the_project(program)));
        }
        let (looking, looked_for) = (self.clone(), program.clone());
        let look = tokio::task::spawn_blocking(move || looking.outlook(&looked_for));
        let Asking { launch, stale } = match look.await.map_err(|_| DialError::Unchecked)? {
            Outlook::Plain => return Ok(self.plainly(program)),
            Outlook::Direct(found) => return Ok(self.unswayed(found)),
            Outlook::Ask(asking) => *asking,
        };
        stage.send_replace(DialStage::Installing { since: Instant::now() });
        let told = self.ask(spawner, &launch, &program).await;
        stage.send_replace(DialStage::Starting);
        match (told, stale) {
            (Ok(root), _) => {
                let (looking, looked_for) = (self.clone(), program.clone());
                let look = move || looking.installed(&launch, &looked_for, &root);
                let found = tokio::task::spawn_blocking(look).await;
                Ok(match found.map_err(|_| DialError::Unchecked)? {
                    Some(found) => self.unswayed(found),
                    // The package is installed, but only the launcher knows what to run.
                    None => self.plainly(program),
                })
            }
            (Err(error), Some(stale)) => {
                let command = program.command;
                tracing::warn!(command, %error, "installing failed; running the version of an earlier installation");
                Ok(self.unswayed(stale))
            }
            (Err(error), None) => Err(error),
        }
    }

    /// What the program's command would run. Reads files, and starts nothing.
    pub(crate) fn outlook(&self, program: &Program) -> Outlook {
        let launch = launcher::parse(&program.command, &program.args);
        let Some(launch) = launch.filter(|_| self.resolving == Resolving::On) else {
            return Outlook::Plain;
        };
        let place = self.place(program);
        if is_found_elsewhere(self.ground, &launch, program, &place) {
            return Outlook::Plain;
        }
        if launch.kind == LauncherKind::Npm
            && launch.package.version != Version::Moving
            && let Some(root) = npm::root_of(&launch.package, &program.env)
            && let Some(found) = installed::program(&launch, &root, program, &place)
        {
            return Outlook::Direct(found);
        }
        let Some((root, age)) = self.known(&launch, program).recall() else {
            return Outlook::Ask(Box::new(Asking { launch, stale: None }));
        };
        let found = installed::program(&launch, &root, program, &place);
        match (found, age, &launch.package.version) {
            (Some(found), Age::Fresh, _) | (Some(found), Age::Stale, Version::Exact(_)) => {
                Outlook::Direct(found)
            }
            (stale, _, _) => Outlook::Ask(Box::new(Asking { launch, stale })),
        }
    }

    /// The program of the package at the location that the launcher reported. Stores the location.
    fn installed(
        &self,
        launch: &Launch,
        program: &Program,
        root: &Path,
    ) -> Option<InstalledProgram> {
        let found = installed::program(launch, root, program, &self.place(program))?;
        if let Err(error) = self.known(launch, program).keep(root) {
            tracing::warn!(?error, "cannot store the location of a package");
        }
        Some(found)
    }

    /// Runs the launcher to install the package and report its location.
    async fn ask(
        &self,
        spawner: &Arc<dyn Spawner>,
        launch: &Launch,
        program: &Program,
    ) -> Result<PathBuf, DialError> {
        let asked = Program {
            command: program.command.clone(),
            args: launch.probe_args(),
            env: program.env.clone(),
            cwd: self.entered_place(program),
            confinement: program.confinement,
        };
        let limits = ProgramLimits { patience: self.installation(), output: LARGEST_OUTPUT };
        let (tail, began) = (Tail::default(), Instant::now());
        let read_errors = |source| stderr::drain(source, tail.clone(), Some(self.log.clone()));
        let answer =
            secret::ask_hearing(Arc::clone(spawner), asked, String::new(), limits, read_errors);
        let withheld = self.withheld.iter().filter(|name| !program.env.contains_key(**name));
        let failed = |cause| DialError::Install {
            command: program.command.clone(),
            took: began.elapsed(),
            cause,
            stderr: tail.lines(),
            withheld: withheld.clone().copied().collect(),
        };
        let answer = match answer.await {
            Ok(answer) => answer.reveal(),
            Err(SecretError::Start(cause)) => {
                return Err(DialError::spawn(program.command.clone(), cause));
            }
            Err(cause) => return Err(failed(cause)),
        };
        let root = launch.root_in(&answer).map(PathBuf::from);
        root.ok_or_else(|| failed(SecretError::Empty))
    }

    fn known(&self, launch: &Launch, program: &Program) -> Known {
        Known::of(&self.home, launch, program, &self.place(program))
    }

    /// The directory that a launcher runs in, whose settings and packages it uses.
    fn place(&self, program: &Program) -> PathBuf {
        match self.ground {
            Ground::Own => program.cwd.clone(),
            Ground::Foreign => self.home.join("neutral"),
        }
    }

    /// Like `place`, but creates the directory. If that fails, `/` is used, which belongs to no
    /// project.
    fn entered_place(&self, program: &Program) -> PathBuf {
        let place = self.place(program);
        match self.ground {
            Ground::Own => place,
            Ground::Foreign if make_neutral(&place) => place,
            Ground::Foreign => PathBuf::from("/"),
        }
    }

    fn directly(&self, program: Program) -> Ready {
        Ready { program, start_timeout: self.start_timeout }
    }

    /// The installed program, ready to start. If its working directory could decide what runs, the
    /// program starts in the directory for launchers instead.
    fn unswayed(&self, InstalledProgram { mut program, swayed, .. }: InstalledProgram) -> Ready {
        match swayed {
            Swayed::ByNothing => {}
            Swayed::ByItsDirectory => program.cwd = self.entered_place(&program),
        }
        self.directly(program)
    }

    /// The launcher itself, ready to start. A launcher or version manager reads settings of its
    /// working directory, so it must not start in a foreign project.
    fn plainly(&self, mut program: Program) -> Ready {
        program.cwd = self.entered_place(&program);
        Ready { program, start_timeout: self.installation() }
    }

    fn without_the_project(&self, mut program: Program) -> Program {
        if self.ground == Ground::Foreign
            && python::imports_from_its_directory(&program.command, &program.args)
        {
            program.env.entry(SAFE_PATH.to_owned()).or_insert_with(|| "1".to_owned());
        }
        program
    }

    fn installation(&self) -> Duration {
        self.start_timeout.max(INSTALLATION)
    }
}

/// Whether the launcher finds the package without installing it: in a `node_modules` directory, or
/// as a globally installed program.
fn is_found_elsewhere(ground: Ground, launch: &Launch, program: &Program, place: &Path) -> bool {
    match launch.kind {
        LauncherKind::Uv => return false,
        LauncherKind::Npm | LauncherKind::Bun | LauncherKind::Pnpm => {}
    }
    let name = &launch.package.name;
    let installed_here = || {
        let mut folders = place.ancestors().map(|folder| folder.join("node_modules"));
        folders.any(|modules| {
            let bin = launch.bin.as_ref().unwrap_or(name);
            modules.join(name).exists() || modules.join(".bin").join(bin).exists()
        })
    };
    let installed_for_all = || {
        let path = program.env.get("PATH").map(String::as_str).unwrap_or_default();
        let launcher = lookup::find(&program.command, path, place);
        launcher.is_some_and(|launcher| launcher.with_file_name(name).exists())
    };
    (ground == Ground::Own && installed_here())
        || (launch.kind == LauncherKind::Npm
            && launch.package.may_be_global()
            && installed_for_all())
}

/// Creates a directory without settings. npm stops its upward search at the `package.json` in it.
fn make_neutral(place: &Path) -> bool {
    let manifest = place.join("package.json");
    if !manifest.is_file() && paths::private_dir(place).is_ok() {
        let made = paths::create_private(&manifest).and_then(|mut new| new.write_all(b"{}\n"));
        // An error does not matter if another process created the manifest first.
        return made.is_ok() || manifest.is_file();
    }
    manifest.is_file()
}

#[cfg(test)]
mod tests;
