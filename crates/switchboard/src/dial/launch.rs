//! Programs that install before they run, such as `npx`: the installed program is run instead, and
//! no project has a say in which one that is.

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

/// An installation may take this long, and longer if a start may.
const INSTALLATION: Duration = Duration::from_secs(60);

/// The most that a launcher may print when it is asked.
const ANSWER: usize = 256 * 1024;

/// With this one set, Python does not look for modules where it is started.
const SAFE_PATH: &str = "PYTHONSAFEPATH";

/// How the launcher of a server is dealt with.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Launching {
    pub(crate) resolving: Resolving,
    pub(crate) ground: Ground,
    /// A directory of ours, for what is known and for launchers to run in.
    pub(crate) home: PathBuf,
    /// Where the standard error of the server goes.
    pub(crate) log: PathBuf,
    pub(crate) start_timeout: Duration,
    /// Variables that say how the network is reached, and that programs do not see unless their
    /// entry names them.
    pub(crate) withheld: Vec<&'static str>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Resolving {
    On,
    /// Launchers run as they stand.
    Off,
}

/// Whose directory a server runs in.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ground {
    /// The entry names it, or comes from there: what lies there may decide what is run.
    Own,
    /// Whatever project the user is in: nothing in there may.
    Foreign,
}

/// A program, and how long it may take until it answers.
pub(crate) struct Ready {
    pub(crate) program: Program,
    pub(crate) start_timeout: Duration,
}

/// What would run, as far as files tell.
pub(crate) enum Outlook {
    /// The command runs as it stands.
    Plain,
    /// This runs instead of the launcher.
    Direct(InstalledProgram),
    /// The launcher is asked first.
    Ask(Box<Asking>),
}

pub(crate) struct Asking {
    launch: Launch,
    /// What was installed when it was asked before: better than nothing.
    stale: Option<InstalledProgram>,
}

/// What a launcher installed.
pub(crate) struct InstalledProgram {
    pub(crate) program: Program,
    /// The file of the package that runs.
    pub(crate) file: String,
    swayed: Swayed,
}

/// What besides the package decides what runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Swayed {
    ByNothing,
    /// Whatever runs it takes its version or its settings from the directory that it starts in.
    ByItsDirectory,
}

impl Launching {
    /// The program to start. Asks the launcher, which installs the package, if it is not known yet
    /// where that lies.
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
                    // It was installed; the launcher has to know what to run.
                    None => self.plainly(program),
                })
            }
            (Err(error), Some(stale)) => {
                let command = program.command;
                tracing::warn!(command, %error, "running what was installed before");
                Ok(self.unswayed(stale))
            }
            (Err(error), None) => Err(error),
        }
    }

    /// What would run, without starting anything.
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

    /// The program where the launcher said that it lies, which is kept.
    fn installed(
        &self,
        launch: &Launch,
        program: &Program,
        root: &Path,
    ) -> Option<InstalledProgram> {
        let found = installed::program(launch, root, program, &self.place(program))?;
        if let Err(error) = self.known(launch, program).keep(root) {
            tracing::warn!(?error, "cannot keep where a package lies");
        }
        Some(found)
    }

    /// Has the launcher install the package and say where that is.
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
        let limits = ProgramLimits { patience: self.installation(), output: ANSWER };
        let (tail, began) = (Tail::default(), Instant::now());
        let hearing = |source| stderr::drain(source, tail.clone(), Some(self.log.clone()));
        let answer =
            secret::ask_hearing(Arc::clone(spawner), asked, String::new(), limits, hearing);
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

    /// Where a launcher runs: it takes the settings, and the packages, that lie there.
    fn place(&self, program: &Program) -> PathBuf {
        match self.ground {
            Ground::Own => program.cwd.clone(),
            Ground::Foreign => self.home.join("neutral"),
        }
    }

    /// The same once something runs there. Where it cannot be made, the root belongs to no project.
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

    /// What was installed.
    fn unswayed(&self, InstalledProgram { mut program, swayed, .. }: InstalledProgram) -> Ready {
        match swayed {
            Swayed::ByNothing => {}
            Swayed::ByItsDirectory => program.cwd = self.entered_place(&program),
        }
        self.directly(program)
    }

    /// The launcher itself. It, or a version manager that stands in for it, looks into the directory
    /// that it starts in, so what it runs is not in the project either.
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

/// Whether the launcher would not install the package: it finds one where it runs, or a program
/// that is installed for all users.
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

/// Makes a directory in which nothing decides what is run, and above which npm looks no further.
fn make_neutral(place: &Path) -> bool {
    let manifest = place.join("package.json");
    if !manifest.is_file() && paths::private_dir(place).is_ok() {
        let made = paths::create_private(&manifest).and_then(|mut new| new.write_all(b"{}\n"));
        // Another process may have been faster.
        return made.is_ok() || manifest.is_file();
    }
    manifest.is_file()
}

#[cfg(test)]
mod tests;
