//! A blocking HTTP client that is as cheap as possible, and the servers that it calls.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::BenchResult;
use crate::world::{Home, World};

/// A running server program that answers over HTTP.
pub(crate) struct Server {
    child: Child,
    address: SocketAddr,
    kind: TargetKind,
}

enum TargetKind {
    /// `serve --http` in its own home.
    Gateway(Home),
    /// The fixture server itself.
    Fixture,
}

impl Server {
    pub(crate) fn gateway(home: Home) -> BenchResult<Server> {
        let mut command = home.command();
        command.args(["serve", "--http", "0"]).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn()?;
        let line = first_line(child.stderr.take().ok_or("no stderr")?)?;
        let url = line.strip_prefix("Serving MCP at http://").ok_or("it does not listen")?;
        let address = url.strip_suffix("/mcp").ok_or("an odd URL")?.parse()?;
        Ok(Server { child, address, kind: TargetKind::Gateway(home) })
    }

    pub(crate) fn fixture(world: &World) -> BenchResult<Server> {
        let mut command: Command = world.http_fixture();
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn()?;
        let address = first_line(child.stdout.take().ok_or("no stdout")?)?.parse()?;
        Ok(Server { child, address, kind: TargetKind::Fixture })
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/mcp", self.address)
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// A client that has completed `initialize`.
    pub(crate) fn client(&self) -> BenchResult<HttpClient> {
        let stream = TcpStream::connect(self.address)?;
        stream.set_nodelay(true)?;
        let stream = BufReader::with_capacity(64 * 1024, stream);
        let (head, call): (String, fn(&Value) -> Value) = match &self.kind {
            TargetKind::Fixture => {
                (String::new(), |arguments| json!({ "name": "echo", "arguments": arguments }))
            }
            TargetKind::Gateway(home) => {
                (format!("Authorization: Bearer {}\r\n", home.http_token()?), |arguments| {
                    let call = json!({ "tool": "fixture_echo", "args": arguments });
                    json!({ "name": "mcp", "arguments": call })
                })
            }
        };
        let mut client = HttpClient { stream, address: self.address, head, call, body: Vec::new() };
        let hello = json!({
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": { "name": "bench", "version": "1" },
        });
        client.post("initialize", &hello)?;
        if let Some(session) = client.response()? {
            client.head.push_str(&format!("Mcp-Session-Id: {session}\r\n"));
        }
        Ok(client)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ended_already = self.child.kill();
        let _reaped = self.child.wait();
    }
}

/// The first line of the output, which contains the address. The rest is read and dropped, because
/// a full pipe blocks the server.
fn first_line(output: impl Read + Send + 'static) -> BenchResult<String> {
    let mut output = BufReader::new(output);
    let mut line = String::new();
    output.read_line(&mut line)?;
    thread::spawn(move || std::io::copy(&mut output, &mut std::io::sink()));
    Ok(line.trim().to_owned())
}

/// An HTTP client with one connection, which is kept open.
pub(crate) struct HttpClient {
    stream: BufReader<TcpStream>,
    address: SocketAddr,
    /// The headers of every request.
    head: String,
    /// Builds the parameters of a call of `echo` from its arguments.
    call: fn(&Value) -> Value,
    body: Vec<u8>,
}

impl HttpClient {
    /// Times `count` consecutive calls of `echo`.
    pub(crate) fn sequential(&mut self, arguments: &Value, count: usize) -> BenchResult<Times> {
        let mut times = Vec::with_capacity(count);
        for _ in 0..count {
            let started = Instant::now();
            self.send(arguments)?;
            self.response()?;
            times.push(started.elapsed());
        }
        let head = String::from_utf8_lossy(&self.body[..self.body.len().min(1_000)]);
        let expected = arguments["text"].as_str().unwrap_or("xxxxxx");
        if !head.contains(expected) {
            return Err(format!("unexpected answer: {head}").into());
        }
        times.sort_unstable();
        Ok(Times(times))
    }

    /// Calls `echo` without reading the response.
    pub(crate) fn send(&mut self, arguments: &Value) -> BenchResult<()> {
        self.post("tools/call", &(self.call)(arguments))
    }

    fn post(&mut self, method: &str, params: &Value) -> BenchResult<()> {
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        let body = body.to_string();
        let request = format!(
            "POST /mcp HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\n\
             Accept: application/json, text/event-stream\r\nContent-Length: {}\r\n{}\r\n{body}",
            self.address,
            body.len(),
            self.head,
        );
        Ok(self.stream.get_mut().write_all(request.as_bytes())?)
    }

    /// Reads a whole response. Returns the session id in its headers.
    fn response(&mut self) -> BenchResult<Option<String>> {
        let (mut length, mut session) = (Some(0), None);
        loop {
            let line = self.line()?;
            if line.is_empty() {
                break;
            }
            let Some((name, value)) = line.split_once(": ") else { continue };
            match name.to_ascii_lowercase().as_str() {
                "content-length" => length = Some(value.parse()?),
                "transfer-encoding" => length = None,
                "mcp-session-id" => session = Some(value.to_owned()),
                _ => {}
            }
        }
        self.body.clear();
        match length {
            Some(length) => self.read(length)?,
            // A response without a length is an event stream in chunks.
            None => loop {
                let length = usize::from_str_radix(&self.line()?, 16)?;
                self.read(length)?;
                self.line()?;
                if length == 0 {
                    break;
                }
            },
        }
        Ok(session)
    }

    fn line(&mut self) -> BenchResult<String> {
        let mut line = String::new();
        match self.stream.read_line(&mut line)? {
            0 => Err("the server hung up".into()),
            _ => Ok(line.trim_end().to_owned()),
        }
    }

    fn read(&mut self, length: usize) -> BenchResult<()> {
        let end = self.body.len();
        self.body.resize(end + length, 0);
        Ok(self.stream.read_exact(&mut self.body[end..])?)
    }
}

/// Durations in ascending order.
pub(crate) struct Times(Vec<Duration>);

impl Times {
    pub(crate) fn percentile(&self, percent: usize) -> Duration {
        self.0[self.0.len() * percent / 100]
    }
}
