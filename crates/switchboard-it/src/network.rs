//! A network namespace for one test, in which every address belongs to this machine, so that all
//! connections are observed.
//!
//! This module uses only the standard library, because tests of the engine include this file, too.

use std::io::{Read, Write};
use std::net::{IpAddr, Ipv6Addr, TcpListener, TcpStream};
use std::process::Command;
use std::sync::Arc;
use std::sync::mpsc;
use std::thread;

/// The environment variable that is set in the process inside the network namespace.
const INSIDE: &str = "SWITCHBOARD_TEST_NETWORK";

/// Runs the calling test, whose name is given, again in a process with its own network namespace.
/// Fails if the machine cannot create one.
#[expect(clippy::disallowed_methods, reason = "no product runs here")]
pub fn within(module: &str, test: &str, body: impl FnOnce()) {
    if std::env::var_os(INSIDE).is_some() {
        return body();
    }
    let (_, module) = module.split_once("::").expect("a module is in a crate");
    let every_address = "ip link set lo up; ip route add local default dev lo; \
                         ip -6 route add local default dev lo; exec \"$0\" \"$@\"";
    let ran = Command::new("unshare")
        .args(["--map-root-user", "--net", "sh", "-ec", every_address])
        .arg(std::env::current_exe().expect("a test is a program"))
        .args(["--exact", &format!("{module}::{test}"), "--nocapture"])
        .env(INSIDE, "1")
        .output()
        .expect("`unshare` creates the network namespace");
    let said = String::from_utf8_lossy(&ran.stdout);
    let complained = String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success() && said.contains("1 passed"), "{said}\n{complained}");
}

/// Listeners at every address on the default ports of `http` and `https`.
pub struct Canaries(mpsc::Receiver<IpAddr>);

/// The HTTP response for an address and a path.
type Answer = dyn Fn(IpAddr, &str) -> String + Send + Sync;

impl Canaries {
    const PORTS: [u16; 2] = [80, 443];

    /// Starts the listeners. `answer` gives the HTTP responses; TLS connections are closed.
    pub fn start(answer: impl Fn(IpAddr, &str) -> String + Send + Sync + 'static) -> Canaries {
        let (tell, told) = mpsc::channel();
        let answer: Arc<Answer> = Arc::new(answer);
        for port in Canaries::PORTS {
            let listener =
                TcpListener::bind((Ipv6Addr::UNSPECIFIED, port)).expect("the port is free");
            let (tell, answer) = (tell.clone(), Arc::clone(&answer));
            thread::spawn(move || {
                while let Ok((socket, _)) = listener.accept() {
                    let address =
                        socket.local_addr().expect("the socket is connected").ip().to_canonical();
                    if tell.send(address).is_err() {
                        return;
                    }
                    if port == 80 {
                        converse(socket, |path| answer(address, path));
                    }
                }
            });
        }
        Canaries(told)
    }

    /// The addresses that were connected to since the last call. It connects to each port itself:
    /// all earlier connections are known once its own are.
    pub fn seen(&self) -> Vec<IpAddr> {
        let ours = IpAddr::from([8, 8, 8, 8]);
        for port in Canaries::PORTS {
            drop(TcpStream::connect((ours, port)).expect("the canary listens"));
        }
        let mut missing = Canaries::PORTS.len();
        let mut seen = Vec::new();
        while missing > 0 {
            match self.0.recv().expect("the listeners run") {
                address if address == ours => missing -= 1,
                address => seen.push(address),
            }
        }
        seen
    }
}

fn converse(mut socket: TcpStream, answer: impl Fn(&str) -> String) {
    let mut request = Vec::new();
    let mut piece = [0; 1024];
    while !request.ends_with(b"\r\n\r\n") {
        match socket.read(&mut piece) {
            Ok(0) | Err(_) => return,
            Ok(length) => request.extend_from_slice(&piece[..length]),
        }
    }
    let request = String::from_utf8_lossy(&request);
    // The client may have closed the connection.
    let _sent = socket.write_all(answer(request.split(' ').nth(1).unwrap_or_default()).as_bytes());
}
