//! What a call costs over HTTP, and what bad neighbours cost a good client.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::Outcome;
use crate::table::Table;
use crate::world::{Home, World};

const WARM_UP: usize = 500;
const CALLS: usize = 4_000;
const DRIBBLERS: usize = 1_000;

/// More than any buffer on the way holds.
const UNREAD: usize = 10 * 1024 * 1024;

pub(crate) fn measure(world: &World, table: &mut Table) -> Outcome<()> {
    raise_file_limit()?;
    let server = Server::start(world.unguarded_echo_home()?)?;
    let floor = plain_loop()?;
    let mut direct = Client::at(floor)?;
    let mut through = server.client()?;
    direct.sequential(WARM_UP)?;
    through.sequential(WARM_UP)?;
    if !String::from_utf8_lossy(&through.body).contains("hello there") {
        return Err(format!("unexpected answer: {}", String::from_utf8_lossy(&through.body)).into());
    }
    let (direct, alone) = (direct.sequential(CALLS)?, through.sequential(CALLS)?);
    for (name, percent, bar) in [("HTTP echo p50", 50, "≤ 5 ×"), ("HTTP echo p99", 99, "")] {
        let (ours, floor) = (alone.percentile(percent), direct.percentile(percent));
        let ratio = ours.as_secs_f64() / floor.as_secs_f64();
        table.row(name, micros(ours), format!("{ratio:.2} × direct ({})", micros(floor)), bar);
    }
    for window in [16, 64] {
        let ours = in_flight(window, || server.client())?;
        let floor = in_flight(window, || Client::at(floor))?;
        table.row(
            &format!("HTTP calls a second, {window} in flight"),
            format!("{:.1}k/s", ours / 1_000.0),
            format!("{:.2} × direct ({:.1}k/s)", ours / floor, floor / 1_000.0),
            "",
        );
    }
    among_bad_neighbours(&server, through, &alone, table)
}

/// A good client that was there before, beside one that does not read and many that dribble.
fn among_bad_neighbours(
    server: &Server,
    mut good: Client,
    alone: &Times,
    table: &mut Table,
) -> Outcome<()> {
    let mut unreading = server.client()?;
    unreading.send(&"x".repeat(UNREAD))?;
    let over = Arc::new(AtomicBool::new(false));
    let (address, until) = (server.address, Arc::clone(&over));
    let dribbling = thread::spawn(move || dribble(address, &until));
    let times = good.sequential(CALLS);
    over.store(true, Ordering::Relaxed);
    let connects = dribbling.join().map_err(|_| "the dribblers panicked")?;
    table.row(
        "HTTP echo p99, 1,000 dribbling sockets and a slow reader",
        micros(times?.percentile(99)),
        format!("{} alone, {connects} connects meanwhile", micros(alone.percentile(99))),
        "< 50 ms",
    );
    Ok(())
}

/// Holds many sockets open, a byte at a time, and comes again when thrown out.
fn dribble(address: SocketAddr, over: &AtomicBool) -> usize {
    let mut sockets: Vec<Option<TcpStream>> = (0..DRIBBLERS).map(|_| None).collect();
    let mut connects = 0;
    while !over.load(Ordering::Relaxed) {
        for socket in &mut sockets {
            if socket.as_mut().is_some_and(|socket| socket.write_all(b"x").is_ok()) {
                continue;
            }
            *socket = TcpStream::connect(address).ok();
            connects += 1;
            if let Some(socket) = socket {
                let _thrown_out = socket.write_all(b"POST /mcp HTTP/1.1\r\nX-Slow: ");
            }
        }
        thread::sleep(Duration::from_millis(10));
    }
    connects
}

/// Calls a second with so many clients, each waiting for its answer.
fn in_flight(window: usize, client: impl Fn() -> Outcome<Client>) -> Outcome<f64> {
    let clients = (0..window).map(|_| client()).collect::<Outcome<Vec<Client>>>()?;
    let each = CALLS / window;
    let started = Instant::now();
    let threads: Vec<_> = clients
        .into_iter()
        .map(|mut client| thread::spawn(move || client.sequential(each).map_err(|e| e.to_string())))
        .collect();
    for thread in threads {
        thread.join().map_err(|_| "a client panicked")??;
    }
    Ok((each * window) as f64 / started.elapsed().as_secs_f64())
}

/// `serve --http` in a home of its own.
struct Server {
    child: Child,
    address: SocketAddr,
    home: Home,
}

impl Server {
    fn start(home: Home) -> Outcome<Server> {
        let mut command = home.command();
        command.args(["serve", "--http", "0"]).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn()?;
        let mut words = BufReader::new(child.stderr.take().ok_or("no stderr")?);
        let mut line = String::new();
        words.read_line(&mut line)?;
        let url = line.trim().strip_prefix("Serving MCP at http://").ok_or("it does not listen")?;
        let address = url.strip_suffix("/mcp").ok_or("an odd URL")?.parse()?;
        // Whoever reads nothing must not be written to.
        thread::spawn(move || std::io::copy(&mut words, &mut std::io::sink()));
        Ok(Server { child, address, home })
    }

    /// A client with a session.
    fn client(&self) -> Outcome<Client> {
        let mut client = Client::at(self.address)?;
        let token = self.home.http_token()?;
        client.head = format!("Authorization: Bearer {token}\r\n");
        let hello = json!({
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": { "name": "bench", "version": "1" },
        });
        let hello = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello });
        client.post(&hello.to_string())?;
        let session = client.response()?.ok_or("no session")?;
        client.head.push_str(&format!("Mcp-Session-Id: {session}\r\n"));
        Ok(client)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ended_already = self.child.kill();
        let _reaped = self.child.wait();
    }
}

/// A blocking client that keeps its connection.
struct Client {
    stream: BufReader<TcpStream>,
    /// Headers of every request.
    head: String,
    body: Vec<u8>,
}

impl Client {
    fn at(address: SocketAddr) -> Outcome<Client> {
        Ok(Client { stream: connect(address)?, head: String::new(), body: Vec::new() })
    }

    fn send(&mut self, text: &str) -> Outcome<()> {
        let call = json!({ "tool": "fixture_echo", "args": { "text": text } });
        let call = json!({ "name": "mcp", "arguments": call });
        let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call });
        self.post(&call.to_string())
    }

    fn post(&mut self, body: &str) -> Outcome<()> {
        let stream = self.stream.get_mut();
        let address = stream.peer_addr()?;
        let request = format!(
            "POST /mcp HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\n\
             Accept: application/json, text/event-stream\r\nContent-Length: {}\r\n{}\r\n{body}",
            body.len(),
            self.head,
        );
        Ok(stream.write_all(request.as_bytes())?)
    }

    /// Reads a whole response; the session that it names.
    fn response(&mut self) -> Outcome<Option<String>> {
        let (mut length, mut session) = (0, None);
        let mut line = String::new();
        loop {
            line.clear();
            if self.stream.read_line(&mut line)? == 0 {
                return Err("the server hung up".into());
            }
            let Some((name, value)) = line.trim_end().split_once(": ") else {
                if line == "\r\n" {
                    break;
                }
                continue;
            };
            match name.to_ascii_lowercase().as_str() {
                "content-length" => length = value.parse()?,
                "mcp-session-id" => session = Some(value.to_owned()),
                _ => {}
            }
        }
        self.body.resize(length, 0);
        self.stream.read_exact(&mut self.body)?;
        Ok(session)
    }

    fn sequential(&mut self, count: usize) -> Outcome<Times> {
        let mut times = Vec::with_capacity(count);
        for _ in 0..count {
            let started = Instant::now();
            self.send("hello there")?;
            self.response()?;
            times.push(started.elapsed());
        }
        times.sort_unstable();
        Ok(Times(times))
    }
}

/// Sorted.
struct Times(Vec<Duration>);

impl Times {
    fn percentile(&self, percent: usize) -> Duration {
        self.0[self.0.len() * percent / 100]
    }
}

fn micros(time: Duration) -> String {
    format!("{:.0} µs", time.as_secs_f64() * 1e6)
}

fn connect(address: SocketAddr) -> Outcome<BufReader<TcpStream>> {
    let stream = TcpStream::connect(address)?;
    stream.set_nodelay(true)?;
    Ok(BufReader::with_capacity(64 * 1024, stream))
}

/// The least that an HTTP server can do: reads a request, answers the same each time.
fn plain_loop() -> Outcome<SocketAddr> {
    const ANSWER: &str =
        r#"{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"hello there"}]}}"#;
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    let serve = |stream: TcpStream| -> Outcome<()> {
        stream.set_nodelay(true)?;
        let stream = BufReader::new(stream);
        let mut client = Client { stream, head: String::new(), body: Vec::new() };
        loop {
            client.response()?;
            let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n";
            let response = format!("{head}Content-Length: {}\r\n\r\n{ANSWER}", ANSWER.len());
            client.stream.get_mut().write_all(response.as_bytes())?;
        }
    };
    // Both end with this process.
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            thread::spawn(move || serve(stream).is_ok());
        }
    });
    Ok(address)
}

/// A thousand sockets are more than many systems allow unasked.
fn raise_file_limit() -> Outcome<()> {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    Ok(setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum })?)
}
