//! A pseudo-terminal for a program under test: types input and reads the screen.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::process::Stdio;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags};
use rustix::process::Signal;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Termios, tcgetattr};
use tokio::process::{Child, Command};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::processes::{reads_its_input, send_signal};

/// The limit for a command of a test, generous for a busy machine.
const DEADLINE: Duration = Duration::from_secs(50);

/// Ctrl-D, repeated for programs that read the end of input more than once.
const END_OF_INPUT: &[u8] = &[0x04; 64];

/// The result of a command on a terminal.
#[derive(Debug)]
pub struct Shown {
    /// The exit code; `None` if a signal ended the command.
    pub code: Option<i32>,
    /// Everything on the screen, including typed text.
    pub screen: String,
}

/// Types a line whenever the program waits for one: text that was typed earlier is not read as an
/// answer.
pub(crate) struct Typist {
    /// The process that reads the input.
    program: u32,
    keyboard: File,
    lines: VecDeque<Vec<u8>>,
    /// The bytes that are typed after the last line.
    at_the_end: &'static [u8],
    /// The length of the screen when the last line was typed.
    answered: usize,
}

impl Typist {
    pub(crate) fn new(
        program: u32,
        keyboard: File,
        typed: &str,
        at_the_end: &'static [u8],
    ) -> Typist {
        let lines = typed.split_inclusive('\n').map(|line| line.as_bytes().to_vec()).collect();
        Typist { program, keyboard, lines, at_the_end, answered: 0 }
    }

    /// Types the next line if the screen ends with a question, which ends with a blank.
    pub(crate) fn look(&mut self, screen: &[u8]) {
        let news = screen.get(self.answered..).unwrap_or_default();
        let another = self.answered == 0 || news.contains(&b'\n');
        if another && screen.ends_with(b" ") && self.is_waited_for() {
            let line = self.lines.pop_front();
            let typed = line.as_deref().unwrap_or(self.at_the_end);
            self.keyboard.write_all(typed).expect("the terminal accepts the input");
            self.answered = screen.len();
        }
    }

    /// Whether the program reads input, rather than writing more or ending.
    fn is_waited_for(&self) -> bool {
        const PAUSE: Timespec = Timespec { tv_sec: 0, tv_nsec: 2_000_000 };
        loop {
            let mut more = [PollFd::new(&self.keyboard, PollFlags::IN)];
            if !matches!(poll(&mut more, Some(&PAUSE)), Ok(0)) {
                return false;
            }
            if reads_its_input(self.program) {
                return true;
            }
        }
    }
}

/// Runs a command to its end on its own terminal, with `typed` as the input.
pub async fn run(command: &mut Command, typed: &str) -> Shown {
    // Ctrl-D for programs that read without a question; typed early, so that it answers none.
    run_after(END_OF_INPUT, command, typed).await
}

/// Runs a command on a terminal with `early` typed before its start, and no other input.
pub async fn run_with_type_ahead(command: &mut Command, early: &str) -> Shown {
    run_after(early.as_bytes(), command, "").await
}

async fn run_after(early: &[u8], command: &mut Command, typed: &str) -> Shown {
    let (ours, theirs) = open();
    let mut keyboard = File::from(ours.try_clone().expect("a descriptor can be copied"));
    keyboard.write_all(early).expect("the terminal accepts the input");
    let child = start_at(command, &theirs);
    drop(theirs);
    let mut typist = Typist::new(id(&child), keyboard, typed, END_OF_INPUT);
    finish(child, ours, move |screen| typist.look(screen)).await
}

/// Runs a command on a terminal with `typed` as the input, and presses Ctrl-C at `question`.
pub async fn interrupt(command: &mut Command, typed: &str, question: &'static str) -> Shown {
    let (child, ours) = start(command);
    let keyboard = File::from(ours.try_clone().expect("a descriptor can be copied"));
    let mut typist = Typist::new(id(&child), keyboard, typed, b"");
    let program = id(&child);
    let mut pressed = false;
    finish(child, ours, move |screen| {
        typist.look(screen);
        if !pressed && String::from_utf8_lossy(screen).contains(question) {
            pressed = true;
            send_signal(program, Signal::INT);
        }
    })
    .await
}

/// A running command on a terminal, whose screen and input the test controls.
#[derive(Debug)]
pub struct Watched {
    child: Child,
    keyboard: File,
    screen: watch::Receiver<String>,
    watching: JoinHandle<()>,
}

impl Watched {
    pub fn start(command: &mut Command) -> Watched {
        let (child, ours) = start(command);
        let keyboard = File::from(ours.try_clone().expect("a descriptor can be copied"));
        let (shows, screen) = watch::channel(String::new());
        let watching = tokio::task::spawn_blocking(move || {
            follow(ours, |seen| {
                shows.send_replace(String::from_utf8_lossy(seen).into_owned());
            });
        });
        Watched { child, keyboard, screen, watching }
    }

    /// Waits until `part` is on the screen, and returns the whole screen.
    pub async fn until(&mut self, part: &str) -> String {
        let shown = self.screen.wait_for(|screen| screen.contains(part));
        if let Ok(Ok(screen)) = tokio::time::timeout(DEADLINE, shown).await {
            return screen.clone();
        }
        panic!("`{part}` was never shown: {}", *self.screen.borrow());
    }

    pub fn types(&mut self, text: &str) {
        self.keyboard.write_all(text.as_bytes()).expect("the terminal accepts the input");
    }

    /// Presses Ctrl-C.
    pub fn interrupt(&self) {
        send_signal(id(&self.child), Signal::INT);
    }

    /// The modes of the terminal.
    pub fn modes(&self) -> Termios {
        tcgetattr(&self.keyboard).expect("the descriptor is a terminal")
    }

    /// Waits for the end of the command.
    pub async fn ended(&mut self) -> Shown {
        let status = tokio::time::timeout(DEADLINE, self.child.wait()).await;
        let status = status.expect("the command ends in time").expect("a child can be waited for");
        (&mut self.watching).await.expect("reading cannot panic");
        let screen = self.screen.borrow().clone();
        Shown { code: status.code(), screen }
    }
}

fn id(child: &Child) -> u32 {
    child.id().expect("the program runs")
}

fn start(command: &mut Command) -> (Child, OwnedFd) {
    let (ours, theirs) = open();
    (start_at(command, &theirs), ours)
}

fn start_at(command: &mut Command, theirs: &OwnedFd) -> Child {
    let clone = |fd: &OwnedFd| Stdio::from(fd.try_clone().expect("a descriptor can be copied"));
    let child = command
        .stdin(clone(theirs))
        .stdout(clone(theirs))
        .stderr(clone(theirs))
        .kill_on_drop(true)
        .spawn()
        .expect("the program starts");
    // The command keeps copies of the descriptors of its child.
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    child
}

/// Waits for the end of the command; calls `look` with the screen at each change.
async fn finish(
    mut child: Child,
    ours: OwnedFd,
    mut look: impl FnMut(&[u8]) + Send + 'static,
) -> Shown {
    let screen = tokio::task::spawn_blocking(move || {
        String::from_utf8_lossy(&follow(ours, &mut look)).into_owned()
    });
    let status = tokio::time::timeout(DEADLINE, child.wait()).await;
    let status = status.expect("the command ends in time").expect("a child can be waited for");
    let screen = screen.await.expect("reading cannot panic");
    Shown { code: status.code(), screen }
}

/// Reads the screen until no process has the terminal open.
fn follow(ours: OwnedFd, mut look: impl FnMut(&[u8])) -> Vec<u8> {
    let (mut screen, mut seen, mut part) = (File::from(ours), Vec::new(), [0; 4096]);
    // A terminal without a process gives an error, not an end of file.
    while let Ok(length @ 1..) = screen.read(&mut part) {
        seen.extend_from_slice(&part[..length]);
        look(&seen);
    }
    seen
}

/// Opens a terminal: the side of the test and the side of the program.
fn open() -> (OwnedFd, OwnedFd) {
    let ours =
        openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a pseudo-terminal is available");
    grantpt(&ours).and_then(|()| unlockpt(&ours)).expect("the terminal is new");
    let name = ptsname(&ours, Vec::new()).expect("the terminal has a name");
    let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
    let theirs =
        rustix::fs::open(&*name, flags, Mode::empty()).expect("the terminal can be opened");
    (ours, theirs)
}
