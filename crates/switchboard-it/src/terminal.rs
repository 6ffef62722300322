//! A terminal for a program under test: what is typed goes in, what is shown comes out.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::process::Stdio;
use std::time::Duration;

use rustix::fs::{Mode, OFlags};
use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use tokio::process::{Child, Command};

/// No command of a test takes this long, whatever else the machine does.
const DEADLINE: Duration = Duration::from_secs(50);

/// What ends an input that is typed, once for each time that a program asks.
const END_OF_INPUT: &[u8] = &[0x04; 512];

/// A command that was run on a terminal.
#[derive(Debug)]
pub struct Shown {
    /// `None` if a signal ended it.
    pub code: Option<i32>,
    /// Everything on the screen, what was typed included.
    pub screen: String,
}

/// Runs a command to its end on a terminal of its own, where someone types `typed` and then nothing.
pub async fn run(command: &mut Command, typed: &str) -> Shown {
    let (child, ours) = start(command);
    let mut keyboard = File::from(ours.try_clone().expect("a descriptor can be copied"));
    keyboard.write_all(typed.as_bytes()).expect("a terminal takes a few lines");
    keyboard.write_all(END_OF_INPUT).expect("a terminal takes a few lines");
    finish(child, ours, |_| {}).await
}

/// Runs a command on a terminal where someone types `typed`, waits for `question` and presses
/// Ctrl-C.
pub async fn interrupt(command: &mut Command, typed: &str, question: &'static str) -> Shown {
    let (child, ours) = start(command);
    let mut keyboard = File::from(ours.try_clone().expect("a descriptor can be copied"));
    keyboard.write_all(typed.as_bytes()).expect("a terminal takes a few lines");
    let id = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
    let mut pressed = false;
    finish(child, ours, move |screen| {
        if !pressed && String::from_utf8_lossy(screen).contains(question) {
            pressed = true;
            kill_process(id.expect("it runs"), Signal::INT).expect("it is ours");
        }
    })
    .await
}

fn start(command: &mut Command) -> (Child, OwnedFd) {
    let (ours, theirs) = open();
    let clone = |fd: &OwnedFd| Stdio::from(fd.try_clone().expect("a descriptor can be copied"));
    let child = command
        .stdin(clone(&theirs))
        .stdout(clone(&theirs))
        .stderr(clone(&theirs))
        .kill_on_drop(true)
        .spawn()
        .expect("the program starts");
    // The command keeps copies of what it gave to its child.
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    (child, ours)
}

/// Waits for the end; `look` sees the screen whenever it changes.
async fn finish(
    mut child: Child,
    ours: OwnedFd,
    mut look: impl FnMut(&[u8]) + Send + 'static,
) -> Shown {
    let screen = tokio::task::spawn_blocking(move || {
        let (mut screen, mut seen, mut part) = (File::from(ours), Vec::new(), [0; 4096]);
        // A terminal that everybody has left gives an error, not an end.
        while let Ok(length @ 1..) = screen.read(&mut part) {
            seen.extend_from_slice(&part[..length]);
            look(&seen);
        }
        String::from_utf8_lossy(&seen).into_owned()
    });
    let status = tokio::time::timeout(DEADLINE, child.wait()).await;
    let status = status.expect("a command ends").expect("it can be waited for");
    let screen = screen.await.expect("reading cannot panic");
    Shown { code: status.code(), screen }
}

/// Our side and the program's.
fn open() -> (OwnedFd, OwnedFd) {
    let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal can be made");
    grantpt(&ours).and_then(|()| unlockpt(&ours)).expect("it is ours");
    let name = ptsname(&ours, Vec::new()).expect("it has a name");
    let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
    let theirs = rustix::fs::open(&*name, flags, Mode::empty()).expect("it can be opened");
    (ours, theirs)
}
