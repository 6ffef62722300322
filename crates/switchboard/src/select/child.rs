//! The process that runs a filter: this program, executed again with tight limits on time and
//! memory.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::language::{self, Trouble};
use super::{MEMORY, OUTPUT, PATIENCE, PROCESSOR};

/// The `argv[0]` with which this program runs a filter.
pub(super) const NAME: &str = "switchboard-select";

/// The stack size of the thread that runs the filter, in bytes.
const STACK: usize = 64 << 20;

static AT_HAND: AtomicBool = AtomicBool::new(false);

/// The exit codes of the filter process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FilterExit {
    /// The filter succeeded; the output of the process is its output.
    Done = 0,
    /// The filter is invalid; the output of the process is the parse error.
    Invalid = 10,
    /// The filter failed; the output of the process is the run-time error.
    Failed = 11,
    TooLarge = 12,
    /// The process could not start its work, or panicked.
    Broken = 13,
}

impl FilterExit {
    pub(super) fn of(code: i32) -> Option<FilterExit> {
        use FilterExit::{Broken, Done, Failed, Invalid, TooLarge};
        [Done, Invalid, Failed, TooLarge, Broken].into_iter().find(|exit| *exit as i32 == code)
    }
}

/// The request to the process: the lengths of both texts, then the texts. Without `json`, the
/// process only parses the filter.
pub(super) fn request(filter: &str, json: Option<&str>) -> Vec<u8> {
    let length = |text: Option<&str>| text.map_or(u64::MAX, |text| text.len() as u64).to_le_bytes();
    let parts: [&[u8]; 4] = [
        &length(Some(filter)),
        &length(json),
        filter.as_bytes(),
        json.unwrap_or_default().as_bytes(),
    ];
    parts.concat()
}

/// Whether this program can be started to run a filter.
pub(super) fn is_at_hand() -> bool {
    AT_HAND.load(Ordering::Relaxed)
}

/// If the process was started to run a filter, runs it and never returns.
#[expect(clippy::exit, reason = "the process only runs a filter")]
pub(crate) fn run_if_asked() {
    let mut words = std::env::args_os();
    if words.next().is_some_and(|name| name == NAME)
        && words.len() == 0
        && lifeline().is_ok_and(|socket| socket.local_addr().is_ok())
    {
        std::process::exit(run().unwrap_or(FilterExit::Broken) as i32);
    }
    AT_HAND.store(true, Ordering::Relaxed);
}

/// Standard input, which is a socket if the gateway started the process. If another program chose
/// this `argv[0]`, it is no socket.
fn lifeline() -> io::Result<UnixStream> {
    Ok(UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?))
}

fn run() -> io::Result<FilterExit> {
    #[cfg(target_os = "linux")]
    switchboard_reaper::handover::close_inherited();
    let mut lifeline = lifeline()?;
    let mut output = File::from(io::stdout().as_fd().try_clone_to_owned()?);
    confine()?;
    let (filter, json) = read(&mut lifeline)?;
    lifeline.set_read_timeout(Some(PATIENCE))?;
    thread::Builder::new().spawn(move || exit_with(lifeline))?;
    let working = thread::Builder::new().stack_size(STACK).spawn(move || match json {
        Some(json) => language::run(&filter, &json, OUTPUT),
        None => language::check(&filter).map(|()| Vec::new()),
    })?;
    let (exit, answer) = match working.join() {
        Ok(Ok(given)) => (FilterExit::Done, given),
        Ok(Err(Trouble::Invalid(why))) => (FilterExit::Invalid, why.into_bytes()),
        Ok(Err(Trouble::Failed(why))) => (FilterExit::Failed, why.into_bytes()),
        Ok(Err(Trouble::TooLarge)) => (FilterExit::TooLarge, Vec::new()),
        Err(_panicked) => (FilterExit::Broken, Vec::new()),
    };
    output.write_all(&answer)?;
    Ok(exit)
}

/// Exits when the gateway closes the socket or the wall-clock limit is over.
#[expect(clippy::exit, reason = "no caller waits for the filter any more")]
fn exit_with(mut lifeline: UnixStream) {
    let _closed_or_too_late = lifeline.read(&mut [0]);
    std::process::exit(FilterExit::Broken as i32);
}

fn read(source: &mut UnixStream) -> io::Result<(String, Option<String>)> {
    let mut lengths = [[0; 8]; 2];
    for length in &mut lengths {
        source.read_exact(length)?;
    }
    let [filter, json] = lengths.map(u64::from_le_bytes);
    let mut text = |length: u64| {
        let mut text = String::new();
        source.take(length).read_to_string(&mut text)?;
        if text.len() as u64 == length {
            Ok(text)
        } else {
            Err(io::Error::from(io::ErrorKind::UnexpectedEof))
        }
    };
    let filter = text(filter)?;
    Ok((filter, if json == u64::MAX { None } else { Some(text(json)?) }))
}

/// Sets the resource limits of the filter process.
fn confine() -> io::Result<()> {
    #[cfg(target_os = "linux")]
    let memory = Resource::Data;
    #[cfg(not(target_os = "linux"))]
    let memory = Resource::As;
    let processor = PROCESSOR.as_secs();
    // The hard limit is one second higher, so that SIGXCPU ends the process and identifies the
    // cause.
    limit(Resource::Cpu, processor, processor + 1)?;
    let bounded = limit(memory, MEMORY, MEMORY);
    if cfg!(target_os = "linux") {
        bounded?;
    }
    limit(Resource::Core, 0, 0)?;
    limit(Resource::Fsize, 0, 0)?;
    // With a limit of zero, the filter process can open no further file.
    limit(Resource::Nofile, 0, 0)
}

fn limit(resource: Resource, current: u64, maximum: u64) -> io::Result<()> {
    let allowed = getrlimit(resource).maximum.unwrap_or(u64::MAX);
    let (current, maximum) = (current.min(allowed), maximum.min(allowed));
    Ok(setrlimit(resource, Rlimit { current: Some(current), maximum: Some(maximum) })?)
}
