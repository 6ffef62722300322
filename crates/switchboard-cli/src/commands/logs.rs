//! Shows the standard error of servers.

use std::io::{self, Read, Seek, SeekFrom};
use std::path::PathBuf;
use std::time::Duration;

use switchboard::name::ServerName;
use switchboard::paths::open_regular;
use switchboard::render::words::{clean_block, clean_line};

use crate::args::server::Logs;
use crate::conversation::Conversation;
use crate::exit::Exit;
use crate::report::CommandResult;

/// The polling interval of `--follow`.
const POLL_INTERVAL: Duration = Duration::from_millis(300);

const LONGEST_LINE: usize = 16 * 1024;

pub(super) async fn logs(conversation: &Conversation<'_>, options: &Logs) -> CommandResult {
    let printer = conversation.app.printer;
    let servers: Vec<ServerName> = match &options.server {
        Some(server) => vec![conversation.server(server)?],
        None => {
            let catalog = conversation.session.gateway().catalog();
            catalog.shelves().map(|(name, _)| name.clone()).collect()
        }
    };
    let mut logs: Vec<Log> = Vec::new();
    for server in &servers {
        let prefix = match servers.len() {
            1 => String::new(),
            _ => format!("{} ", printer.out.name(clean_line(server.as_str(), 100))),
        };
        logs.push(Log { path: conversation.app.paths.log_of(server), prefix, read: 0 });
    }
    let mut empty = true;
    for log in &mut logs {
        let mut lines = log.new_lines()?;
        if lines.len() < options.lines {
            lines.splice(..0, log.rotated()?);
        }
        empty &= lines.is_empty();
        for line in lines.iter().skip(lines.len().saturating_sub(options.lines)) {
            printer.text(&log.shown(line))?;
        }
    }
    if empty && !options.follow {
        printer.note(&match &options.server {
            Some(server) => format!("`{}` has written to no log yet", clean_line(server, 100)),
            None => "no server has written to a log yet".to_owned(),
        });
    }
    if !options.follow {
        return Ok(Exit::Done);
    }
    loop {
        tokio::time::sleep(POLL_INTERVAL).await;
        for log in &mut logs {
            for line in log.new_lines()? {
                printer.text(&log.shown(&line))?;
            }
        }
    }
}

/// The log file of one server, read up to the offset `read`.
struct Log {
    path: PathBuf,
    prefix: String,
    read: u64,
}

impl Log {
    /// The complete lines that the server wrote since the last call.
    fn new_lines(&mut self) -> io::Result<Vec<String>> {
        let Some(mut file) = open_regular(&self.path)? else { return Ok(Vec::new()) };
        if file.metadata()?.len() < self.read {
            // A shorter file was rotated: reads the new file from its beginning.
            self.read = 0;
        }
        file.seek(SeekFrom::Start(self.read))?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |last| last + 1);
        bytes.truncate(whole);
        self.read += whole as u64;
        Ok(String::from_utf8_lossy(&bytes).lines().map(str::to_owned).collect())
    }

    /// The lines of the older file, to which the log was rotated.
    fn rotated(&self) -> io::Result<Vec<String>> {
        let before = self.path.with_extension("log.1");
        Log { path: before, prefix: String::new(), read: 0 }.new_lines()
    }

    fn shown(&self, line: &str) -> String {
        format!("{}{}\n", self.prefix, clean_block(line, LONGEST_LINE))
    }
}
