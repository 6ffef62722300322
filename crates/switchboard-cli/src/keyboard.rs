//! Lines that somebody pastes while something else goes on: of any length, and unseen.

use std::cell::Cell;
use std::io::{self, IsTerminal};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::getpgrp;
use rustix::termios::{
    LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcgetpgrp, tcsetattr,
};

/// What is longer is no line of a person's.
const LONGEST: usize = 64 * 1024;

/// How often it is looked whether something was typed. A thread that waits for it could not be
/// stopped, and would take the answer to a later question.
const LOOK: Duration = Duration::from_millis(50);

/// Standard input, read only as far as something is there.
pub(crate) struct Keyboard {
    phase: Phase,
    line: Vec<u8>,
    _unseen: Option<Unseen>,
}

#[derive(PartialEq, Eq)]
enum Phase {
    Open,
    Over,
}

impl Keyboard {
    pub(crate) fn open() -> Keyboard {
        if is_in_background() {
            return Keyboard { phase: Phase::Over, line: Vec::new(), _unseen: None };
        }
        let unseen = io::stdin().is_terminal().then(Unseen::begin).flatten();
        Keyboard { phase: Phase::Open, line: Vec::new(), _unseen: unseen }
    }

    /// Waits for the next line that says something; for ever, if there is none. May be dropped and
    /// asked again. `typed` is told how much of it is there.
    pub(crate) async fn line(&mut self, typed: &Cell<usize>) -> String {
        loop {
            if let Some(end) = self.line.iter().position(|byte| *byte == b'\n') {
                let rest = self.line.split_off(end + 1);
                let line = std::mem::replace(&mut self.line, rest);
                typed.set(self.line.len());
                match String::from_utf8_lossy(&line).trim() {
                    "" => continue,
                    line => return line.to_owned(),
                }
            }
            self.read().await;
            typed.set(self.line.len());
        }
    }

    async fn read(&mut self) {
        if self.phase == Phase::Over {
            return std::future::pending().await;
        }
        if !is_ready() {
            return tokio::time::sleep(LOOK).await;
        }
        let mut part = [0; 4096];
        match rustix::io::read(io::stdin(), &mut part) {
            Ok(length @ 1..) => self.line.extend(part.iter().take(length)),
            Err(Errno::INTR) => {}
            Ok(0) | Err(_) => self.phase = Phase::Over,
        }
        if self.line.len() > LONGEST {
            self.line.clear();
        }
        // An input that never ends must not keep everything else waiting.
        tokio::task::yield_now().await;
    }
}

/// Whoever touches the terminal from the background of a shell is stopped.
fn is_in_background() -> bool {
    tcgetpgrp(io::stdin()).is_ok_and(|front| front != getpgrp())
}

fn is_ready() -> bool {
    let input = io::stdin();
    let mut input = [PollFd::new(&input, PollFlags::IN)];
    matches!(poll(&mut input, Some(&Timespec::default())), Ok(1..))
}

/// While it lives, the terminal shows nothing of what is typed and passes it on at once: a terminal
/// that waits for whole lines cuts them at 4,095 bytes.
struct Unseen {
    before: Termios,
}

impl Unseen {
    fn begin() -> Option<Unseen> {
        let before = tcgetattr(io::stdin()).ok()?;
        let mut modes = before.clone();
        modes.local_modes -= LocalModes::ECHO | LocalModes::ICANON;
        modes.special_codes[SpecialCodeIndex::VMIN] = 1;
        modes.special_codes[SpecialCodeIndex::VTIME] = 0;
        // What was typed before anybody was asked is no answer.
        tcsetattr(io::stdin(), OptionalActions::Flush, &modes).ok()?;
        Some(Unseen { before })
    }
}

impl Drop for Unseen {
    fn drop(&mut self) {
        // Nor is what was left half pasted a command for the shell.
        let _gone = tcsetattr(io::stdin(), OptionalActions::Flush, &self.before);
    }
}
