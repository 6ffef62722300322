//! Lines that are pasted while the command waits for something else: of any length, without echo.

use std::cell::Cell;
use std::io::{self, IsTerminal};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::getpgrp;
use rustix::termios::{LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetpgrp};

use crate::printer::HiddenInput;

/// The size limit of a line in bytes; a longer line is dropped.
const LONGEST: usize = 64 * 1024;

/// The polling interval for input. Input is polled because a thread with a blocking read could not
/// be stopped, and would consume the answer to a later question.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Standard input, read without blocking.
pub(crate) struct Keyboard {
    /// Whether the input has ended, or must not be read by this process.
    is_over: bool,
    line: Vec<u8>,
    _hidden: Option<HiddenInput>,
}

impl Keyboard {
    pub(crate) fn open() -> Keyboard {
        // A background process that reads the terminal would be stopped.
        let is_over = tcgetpgrp(io::stdin()).is_ok_and(|front| front != getpgrp());
        let is_typed = !is_over && io::stdin().is_terminal();
        // Unread input is dropped when the modes are changed, because it is no answer, and when
        // they are restored, so that a half-pasted line does not reach the shell.
        let hidden = is_typed.then(|| HiddenInput::begin(OptionalActions::Flush, by_byte).ok());
        Keyboard { is_over, line: Vec::new(), _hidden: hidden.flatten() }
    }

    /// Waits for the next line that is not empty, without a limit. Cancel safe. `typed` is set to
    /// the number of bytes that are read but not returned.
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
        if self.is_over {
            return std::future::pending().await;
        }
        if !is_ready() {
            return tokio::time::sleep(POLL_INTERVAL).await;
        }
        let mut part = [0; 4096];
        match rustix::io::read(io::stdin(), &mut part) {
            Ok(length @ 1..) => self.line.extend(part.iter().take(length)),
            Err(Errno::INTR) => {}
            Ok(0) | Err(_) => self.is_over = true,
        }
        if self.line.len() > LONGEST {
            self.line.clear();
        }
        // Input without an end must not starve other tasks.
        tokio::task::yield_now().await;
    }
}

fn is_ready() -> bool {
    let input = io::stdin();
    let mut input = [PollFd::new(&input, PollFlags::IN)];
    matches!(poll(&mut input, Some(&Timespec::default())), Ok(1..))
}

/// Turns off echo and line mode: in line mode, a terminal cuts lines at 4,095 bytes.
fn by_byte(modes: &mut Termios) {
    modes.local_modes -= LocalModes::ECHO | LocalModes::ICANON;
    modes.special_codes[SpecialCodeIndex::VMIN] = 1;
    modes.special_codes[SpecialCodeIndex::VTIME] = 0;
}
