//! A terminal for a program under test: what is typed goes in, what is shown comes out.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::process::Stdio;
use std::time::Duration;

use rustix::fs::{Mode, OFlags};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use tokio::process::Command;

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
    let (ours, theirs) = open();
    let clone = |fd: &OwnedFd| Stdio::from(fd.try_clone().expect("a descriptor can be copied"));
    let mut child = command
        .stdin(clone(&theirs))
        .stdout(clone(&theirs))
        .stderr(clone(&theirs))
        .kill_on_drop(true)
        .spawn()
        .expect("the program starts");
    // The command keeps copies of what it gave to its child.
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    drop(theirs);
    let mut keyboard = File::from(ours.try_clone().expect("a descriptor can be copied"));
    keyboard.write_all(typed.as_bytes()).expect("a terminal takes a few lines");
    keyboard.write_all(END_OF_INPUT).expect("a terminal takes a few lines");
    let screen = tokio::task::spawn_blocking(move || {
        let (mut screen, mut seen) = (File::from(ours), Vec::new());
        // A terminal that everybody has left gives an error, not an end.
        let _all_left = screen.read_to_end(&mut seen);
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
