//! Messages between gateway and keeper: one start request, orders, and reports.

use std::ffi::{OsStr, OsString};
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use crate::Confinement;
use crate::processes::Identity;

/// The program to start. Its standard streams are sent with the message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StartRequest {
    pub command: OsString,
    pub args: Vec<OsString>,
    /// The whole environment of the program.
    pub env: Vec<(OsString, OsString)>,
    pub cwd: PathBuf,
    /// The directory of the records of running servers.
    pub records: PathBuf,
    pub confinement: Confinement,
}

impl StartRequest {
    pub fn encode(&self) -> Vec<u8> {
        let mut words = vec![self.command.as_os_str(), self.cwd.as_os_str()];
        words.push(self.records.as_os_str());
        for (name, value) in &self.env {
            words.extend([name.as_os_str(), value.as_os_str()]);
        }
        words.extend(self.args.iter().map(OsString::as_os_str));
        let mut bytes = Vec::new();
        bytes.extend((self.env.len() as u64).to_le_bytes());
        bytes.push(match self.confinement {
            Confinement::WherePossible => b'c',
            Confinement::Off => b'o',
        });
        for word in words {
            bytes.extend((word.len() as u64).to_le_bytes());
            bytes.extend(word.as_bytes());
        }
        bytes
    }

    /// Parses a start request; `None` if the bytes are not a valid one.
    pub fn decode(mut bytes: &[u8]) -> Option<StartRequest> {
        let variables = number(&mut bytes)?;
        let (confinement, rest) = bytes.split_first()?;
        let confinement = match confinement {
            b'c' => Confinement::WherePossible,
            b'o' => Confinement::Off,
            _ => return None,
        };
        bytes = rest;
        let command = word(&mut bytes)?;
        let cwd = word(&mut bytes)?.into();
        let records = word(&mut bytes)?.into();
        let mut env = Vec::new();
        for _ in 0..variables {
            env.push((word(&mut bytes)?, word(&mut bytes)?));
        }
        let mut args = Vec::new();
        while !bytes.is_empty() {
            args.push(word(&mut bytes)?);
        }
        Some(StartRequest { command, args, env, cwd, records, confinement })
    }
}

fn number(bytes: &mut &[u8]) -> Option<u64> {
    let (number, rest) = bytes.split_first_chunk()?;
    *bytes = rest;
    Some(u64::from_le_bytes(*number))
}

fn word(bytes: &mut &[u8]) -> Option<OsString> {
    let length = usize::try_from(number(bytes)?).ok()?;
    let (word, rest) = bytes.split_at_checked(length)?;
    *bytes = rest;
    Some(OsStr::from_bytes(word).to_owned())
}

/// Reads a start request of this length.
pub(crate) fn read_request(source: impl Read, length: u64) -> io::Result<StartRequest> {
    let mut bytes = Vec::new();
    source.take(length).read_to_end(&mut bytes)?;
    StartRequest::decode(&bytes).ok_or_else(|| io::ErrorKind::InvalidData.into())
}

/// Orders of the gateway to the keeper of a running server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// Sends SIGTERM to the server's process group.
    Terminate,
    /// Kills the server and all its descendants.
    Kill,
    /// The gateway shuts down: gives the server time to exit by itself, then ends it.
    Finish,
}

impl Order {
    const ALL: [Order; 3] = [Order::Terminate, Order::Kill, Order::Finish];

    pub fn encode(self) -> [u8; 1] {
        match self {
            Order::Terminate => *b"t",
            Order::Kill => *b"k",
            Order::Finish => *b"f",
        }
    }

    pub(crate) fn decode(byte: u8) -> Option<Order> {
        Order::ALL.into_iter().find(|order| order.encode() == [byte])
    }
}

/// Reports of a keeper to the gateway.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Report {
    Started(Identity),
    /// The server could not be started; the value is the system's error number.
    NotStarted(i32),
    /// The server itself has ended, with this wait status.
    Ended(i32),
    /// All processes of the server have ended. This is the last report.
    Gone,
}

impl Report {
    pub const LENGTH: usize = 13;

    pub fn encode(self) -> [u8; Report::LENGTH] {
        let (kind, number, start) = match self {
            Report::Started(Identity { pid, start }) => (b's', pid, start),
            Report::NotStarted(error) => (b'n', error, 0),
            Report::Ended(status) => (b'e', status, 0),
            Report::Gone => (b'g', 0, 0),
        };
        let mut bytes = [kind; Report::LENGTH];
        bytes[1..5].copy_from_slice(&number.to_le_bytes());
        bytes[5..].copy_from_slice(&start.to_le_bytes());
        bytes
    }

    /// Parses a report; `None` if the bytes are not a valid one.
    pub fn decode(bytes: [u8; Report::LENGTH]) -> Option<Report> {
        let (kind, rest) = bytes.split_first()?;
        let (number, start) = rest.split_first_chunk()?;
        let number = i32::from_le_bytes(*number);
        let start = u64::from_le_bytes(start.try_into().ok()?);
        match kind {
            b's' => Some(Report::Started(Identity { pid: number, start })),
            b'n' => Some(Report::NotStarted(number)),
            b'e' => Some(Report::Ended(number)),
            b'g' => Some(Report::Gone),
            _ => None,
        }
    }
}

/// The error number for a report. An error without one is about the request, such as a zero byte in
/// an argument.
pub(crate) fn error_number(error: &io::Error) -> i32 {
    error.raw_os_error().unwrap_or(rustix::io::Errno::INVAL.raw_os_error())
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStringExt;

    use super::*;

    #[test]
    fn reaper_messages_round_trip_exactly() {
        let word = |text: &[u8]| OsString::from_vec(text.to_vec());
        let request = StartRequest {
            command: word(b"server"),
            args: vec![word(b""), word(b"a\nb"), word(b"\xff $(x)")],
            env: vec![(word(b"A"), word(b"")), (word(b"B"), word(b"=\0"))],
            cwd: "/tmp".into(),
            records: "/state".into(),
            confinement: Confinement::WherePossible,
        };
        let bytes = request.encode();
        assert_eq!(StartRequest::decode(&bytes), Some(request));
        for cut in (0..bytes.len()).filter(|cut| *cut + 8 < bytes.len()) {
            let part = StartRequest::decode(&bytes[..cut]);
            assert!(part.is_none_or(|part| part.args.len() < 3), "cut at {cut}");
        }
        for report in [
            Report::Started(Identity { pid: 7, start: u64::MAX - 1 }),
            Report::NotStarted(2),
            Report::Ended(-9),
            Report::Gone,
        ] {
            assert_eq!(Report::decode(report.encode()), Some(report));
        }
        assert_eq!(Report::decode([0; Report::LENGTH]), None);
    }
}
