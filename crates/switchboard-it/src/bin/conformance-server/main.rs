//! A server on the official Rust SDK with every fixture that the conformance suite requires.

mod dialogue;
mod fixtures;
mod handler;
mod tools;

use std::io::{self, Write};
use std::net::Ipv4Addr;
use std::process::ExitCode;
use std::sync::Arc;

use hyper::server::conn::http1;
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use rmcp::service::ServiceExt;
use rmcp::transport::stdio;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use tokio::net::TcpListener;
use tokio::task::JoinSet;

use handler::{Eras, Handler, Shared};

const USAGE: &str = "usage: conformance-server PORT|stdio [legacy|modern]";

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Nothing to do if stderr is closed.
            let _ = writeln!(io::stderr(), "conformance-server: {error}");
            ExitCode::from(2)
        }
    }
}

type Failure = Box<dyn std::error::Error>;

fn run() -> Result<(), Failure> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let (place, eras) = match words[..] {
        [place] => (place, Eras::Both),
        // Serves as a server did before the stateless revision existed.
        [place, "legacy"] => (place, Eras::Legacy),
        [place, "modern"] => (place, Eras::Modern),
        _ => return Err(USAGE.into()),
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let shared = Arc::new(Shared::load(eras)?);
    let served = match place {
        "stdio" => runtime.block_on(serve_stdio(shared)),
        port => runtime.block_on(serve_http(shared, port.parse().map_err(|_| USAGE)?)),
    };
    // A blocking read of stdin cannot be stopped.
    runtime.shutdown_background();
    served
}

/// Serves until stdin ends.
async fn serve_stdio(shared: Arc<Shared>) -> Result<(), Failure> {
    let running = Handler::new(shared).serve(stdio()).await?;
    running.waiting().await?;
    Ok(())
}

/// Serves until it is killed; prints its URL as the only line on stdout.
async fn serve_http(shared: Arc<Shared>, port: u16) -> Result<(), Failure> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await?;
    let address = listener.local_addr()?;
    let config = StreamableHttpServerConfig::default()
        .with_allowed_origins([format!("http://{address}"), format!("http://localhost:{port}")]);
    let sessions = Arc::new(LocalSessionManager::default());
    let service =
        StreamableHttpService::new(move || Ok(Handler::new(shared.clone())), sessions, config);
    let service = TowerToHyperService::new(service);
    writeln!(io::stdout(), "http://{address}/mcp")?;

    let mut connections = JoinSet::new();
    loop {
        let (stream, _) = listener.accept().await?;
        let connection =
            http1::Builder::new().serve_connection(TokioIo::new(stream), service.clone());
        connections.spawn(connection);
        while connections.try_join_next().is_some() {}
    }
}
