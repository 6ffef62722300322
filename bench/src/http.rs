//! Measures a call over HTTP to servers on both transports, and the effect of misbehaving clients
//! on a well-behaved one.

use std::io::Write;
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::BenchResult;
use crate::http_client::{HttpClient, Server, Times};
use crate::process::{mebibytes, peak_resident};
use crate::table::Table;
use crate::world::World;

const WARM_UP: usize = 500;
const CALLS: usize = 4_000;
const ROUNDS: usize = 5;
const LARGE: usize = 5;
const DRIBBLERS: usize = 1_000;

/// The size of a result that is larger than all buffers between server and client, in bytes.
const UNREAD: usize = 10 * 1024 * 1024;

pub(crate) fn measure(world: &World, table: &mut Table) -> BenchResult<()> {
    raise_file_limit()?;
    let direct = Server::fixture(world)?;
    let to_stdio = Server::gateway(world.stdio_home()?)?;
    let to_url = Server::gateway(world.url_home(&direct.url())?)?;
    for (name, server, bar) in [("HTTP → stdio", &to_stdio, "≤ 5 ×"), ("HTTP → HTTP", &to_url, "")]
    {
        one_at_a_time(name, server, &direct, bar, table)?;
        // Large results are measured before many clients have increased the gateway's memory.
        for mebibytes in [1, 10] {
            large(name, server, &direct, mebibytes, table)?;
        }
        for window in [1, 16, 64] {
            in_flight(name, server, &direct, window, table)?;
        }
    }
    among_bad_neighbours(&to_stdio, table)
}

fn one_at_a_time(
    name: &str,
    server: &Server,
    direct: &Server,
    bar: &str,
    table: &mut Table,
) -> BenchResult<()> {
    let (mut ours, mut floor) = (server.client()?, direct.client()?);
    echoes(&mut ours, WARM_UP)?;
    echoes(&mut floor, WARM_UP)?;
    let percents = [(50, bar), (99, "")];
    let mut best = [(Duration::MAX, Duration::MAX); 2];
    // Both subjects are measured in turns, so that noise affects both alike.
    for _ in 0..ROUNDS {
        let (ours, floor) = (echoes(&mut ours, CALLS)?, echoes(&mut floor, CALLS)?);
        for (best, (percent, _)) in best.iter_mut().zip(percents) {
            best.0 = best.0.min(ours.percentile(percent));
            best.1 = best.1.min(floor.percentile(percent));
        }
    }
    for ((ours, floor), (percent, bar)) in best.into_iter().zip(percents) {
        let against = format!("{} × direct ({})", ratio(ours, floor), micros(floor));
        table.row(&format!("{name}, echo p{percent}"), micros(ours), against, bar);
    }
    Ok(())
}

fn in_flight(
    name: &str,
    server: &Server,
    direct: &Server,
    window: usize,
    table: &mut Table,
) -> BenchResult<()> {
    let (ours, floor) = (rate(window, server)?, rate(window, direct)?);
    table.row(
        &format!("{name}, calls a second, {window} in flight"),
        format!("{:.1}k/s", ours / 1_000.0),
        format!("{:.2} × direct ({:.1}k/s)", ours / floor, floor / 1_000.0),
        "",
    );
    Ok(())
}

/// Measures calls with results of `size` mebibytes.
fn large(
    name: &str,
    server: &Server,
    direct: &Server,
    size: usize,
    table: &mut Table,
) -> BenchResult<()> {
    let arguments = json!({ "bytes": size * 1024 * 1024 });
    let best = |server: &Server| -> BenchResult<Duration> {
        Ok(server.client()?.sequential(&arguments, LARGE)?.percentile(0))
    };
    let (ours, floor) = (best(server)?, best(direct)?);
    let milliseconds = |time: Duration| format!("{:.1} ms", time.as_secs_f64() * 1e3);
    let peak = mebibytes(peak_resident(server.pid())?);
    table.row(
        &format!("{name}, {size} MiB result"),
        format!("{}, peak {peak}", milliseconds(ours)),
        format!("{} × direct ({})", ratio(ours, floor), milliseconds(floor)),
        "",
    );
    Ok(())
}

/// Measures a well-behaved client while another client reads nothing and many sockets send one byte
/// at a time.
fn among_bad_neighbours(server: &Server, table: &mut Table) -> BenchResult<()> {
    let mut good = server.client()?;
    echoes(&mut good, WARM_UP)?;
    let alone = echoes(&mut good, CALLS)?;
    let mut unreading = server.client()?;
    unreading.send(&json!({ "bytes": UNREAD }))?;
    let over = Arc::new(AtomicBool::new(false));
    let (address, until) = (server.address(), Arc::clone(&over));
    let dribbling = thread::spawn(move || dribble(address, &until));
    let times = echoes(&mut good, CALLS);
    over.store(true, Ordering::Relaxed);
    let connects = dribbling.join().map_err(|_| "the dribblers panicked")?;
    table.row(
        "HTTP → stdio, echo p99, 1,000 dribbling sockets and a slow reader",
        micros(times?.percentile(99)),
        format!("{} alone, {connects} connects meanwhile", micros(alone.percentile(99))),
        "< 50 ms",
    );
    Ok(())
}

/// Keeps many sockets open and sends one byte on each in turn. Reconnects a socket that was closed.
/// Returns the number of connects.
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

/// Calls per second with `window` clients, each of which waits for its response.
fn rate(window: usize, server: &Server) -> BenchResult<f64> {
    let clients = (0..window).map(|_| server.client()).collect::<BenchResult<Vec<HttpClient>>>()?;
    let each = CALLS / window;
    let started = Instant::now();
    let threads: Vec<_> = clients
        .into_iter()
        .map(|mut client| {
            thread::spawn(move || echoes(&mut client, each).map_err(|e| e.to_string()))
        })
        .collect();
    for thread in threads {
        thread.join().map_err(|_| "a client panicked")??;
    }
    Ok((each * window) as f64 / started.elapsed().as_secs_f64())
}

fn echoes(client: &mut HttpClient, count: usize) -> BenchResult<Times> {
    client.sequential(&json!({ "text": "hello there" }), count)
}

fn ratio(ours: Duration, floor: Duration) -> String {
    format!("{:.2}", ours.as_secs_f64() / floor.as_secs_f64())
}

fn micros(time: Duration) -> String {
    format!("{:.0} µs", time.as_secs_f64() * 1e6)
}

/// Raises the limit of open files, because many systems allow fewer than a thousand sockets by
/// default.
fn raise_file_limit() -> BenchResult<()> {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    Ok(setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum })?)
}
