//! Runs a fixture script as a process on stdio, or the minimal benchmark server on stdio or HTTP.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::net::{Ipv4Addr, TcpListener};
use std::process::ExitCode;
use std::sync::Arc;

use switchboard_it::fixture::{
    Ending, FixtureState, Helper, Script, act, answer_echo, answer_echo_over_http,
};

const USAGE: &str = "usage: fixture-server SCRIPT.toml|NAME[@modern|@dual] [--spawn-log FILE]
       fixture-server --bench [--spawn-log FILE]
       fixture-server --bench-http";

fn main() -> ExitCode {
    match parse(std::env::args().skip(1)).ok_or_else(|| USAGE.into()).and_then(run) {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            let cause = error.source().map(|cause| format!(": {cause}")).unwrap_or_default();
            // Nothing to do if stderr is closed.
            let _ = writeln!(io::stderr(), "fixture-server: {error}{cause}");
            ExitCode::from(2)
        }
    }
}

struct Arguments {
    play: Play,
    spawn_log: Option<String>,
}

enum Play {
    Script(String),
    Bench,
    /// Prints its address as the first line.
    BenchHttp,
    /// The helper process of another fixture.
    Help(Helper),
}

fn parse(mut arguments: impl Iterator<Item = String>) -> Option<Arguments> {
    let (mut play, mut spawn_log) = (None, None);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--bench" => play = Some(Play::Bench),
            "--bench-http" => play = Some(Play::BenchHttp),
            "--helper" => play = Some(Play::Help(Helper::Session)),
            "--daemon" => play = Some(Play::Help(Helper::Daemon)),
            "--spawn-log" => spawn_log = Some(arguments.next()?),
            option if option.starts_with("--") => return None,
            _ => play = Some(Play::Script(argument)),
        }
    }
    Some(Arguments { play: play?, spawn_log })
}

type Failure = Box<dyn std::error::Error>;

fn run(arguments: Arguments) -> Result<u8, Failure> {
    let script = match arguments.play {
        Play::Script(name_or_path) => Script::load(&name_or_path)?,
        Play::Help(helper) => return be_helper(helper),
        Play::Bench => {
            log_spawn(arguments.spawn_log.as_deref(), None)?;
            answer_echo(io::stdin().lock(), io::stdout().lock())?;
            return Ok(0);
        }
        Play::BenchHttp => {
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
            writeln!(io::stdout(), "{}", listener.local_addr()?)?;
            answer_echo_over_http(&listener)?;
            return Ok(0);
        }
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let ending = runtime.block_on(play(script, arguments.spawn_log.as_deref()));
    // A blocking read of stdin cannot be stopped.
    runtime.shutdown_background();
    match ending? {
        Ending::Closed => Ok(0),
        Ending::Exited { code } => Ok(code),
    }
}

async fn play(script: Script, spawn_log: Option<&str>) -> io::Result<Ending> {
    let grandchild = prepare(&script)?;
    log_spawn(spawn_log, grandchild)?;
    let state = FixtureState::default();
    let (stdin, stdout, stderr) = (own_stdin()?, own_stdout()?, tokio::io::stderr());
    Ok(act(Arc::new(script), state, stdin, stdout, stderr).await)
}

/// Appends `PID`, or `PID GRANDCHILD`, as one line in one write.
fn log_spawn(file: Option<&str>, grandchild: Option<u32>) -> io::Result<()> {
    let Some(file) = file else { return Ok(()) };
    let mut line = std::process::id().to_string();
    if let Some(grandchild) = grandchild {
        line.push_str(&format!(" {grandchild}"));
    }
    line.push('\n');
    OpenOptions::new().create(true).append(true).open(file)?.write_all(line.as_bytes())
}

/// Applies the process faults; returns the grandchild's id.
#[cfg(unix)]
fn prepare(script: &Script) -> io::Result<Option<u32>> {
    use switchboard_it::fixture::{ignore_sigterm, spawn_grandchild, spawn_helper};
    if script.faults.ignore_sigterm {
        ignore_sigterm()?;
    }
    script.faults.helper.map(spawn_helper).transpose()?;
    script.faults.grandchild.then(spawn_grandchild).transpose()
}

#[cfg(unix)]
fn be_helper(helper: Helper) -> Result<u8, Failure> {
    switchboard_it::fixture::help(helper)?;
    Ok(0)
}

#[cfg(not(unix))]
fn be_helper(_helper: Helper) -> Result<u8, Failure> {
    Ok(0)
}

#[cfg(not(unix))]
fn prepare(_script: &Script) -> io::Result<Option<u32>> {
    Ok(None)
}

/// The only descriptor of the standard input, so that dropping it closes the pipe.
#[cfg(unix)]
fn own_stdin() -> io::Result<tokio::fs::File> {
    use std::os::fd::AsFd;
    let pipe = io::stdin().as_fd().try_clone_to_owned()?;
    rustix::stdio::dup2_stdin(OpenOptions::new().read(true).open("/dev/null")?)?;
    Ok(std::fs::File::from(pipe).into())
}

#[cfg(not(unix))]
fn own_stdin() -> io::Result<tokio::io::Stdin> {
    Ok(tokio::io::stdin())
}

/// The only descriptor of the standard output, so that dropping it closes the pipe.
#[cfg(unix)]
fn own_stdout() -> io::Result<tokio::fs::File> {
    use std::os::fd::AsFd;
    let pipe = io::stdout().as_fd().try_clone_to_owned()?;
    rustix::stdio::dup2_stdout(OpenOptions::new().write(true).open("/dev/null")?)?;
    Ok(std::fs::File::from(pipe).into())
}

#[cfg(not(unix))]
fn own_stdout() -> io::Result<tokio::io::Stdout> {
    Ok(tokio::io::stdout())
}
