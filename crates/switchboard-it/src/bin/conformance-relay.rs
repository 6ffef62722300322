//! Adds the bearer token of a gateway to requests of the conformance suite, which cannot send one.

use std::fs;
use std::io::{self, Write};
use std::net::Ipv4Addr;
use std::process::ExitCode;

use switchboard_it::relay::Relay;
use tokio::net::TcpListener;

const USAGE: &str = "usage: conformance-relay GATEWAY-ADDRESS TOKEN-FILE";

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Nothing to do if stderr is closed.
            let _ = writeln!(io::stderr(), "conformance-relay: {error}");
            ExitCode::from(2)
        }
    }
}

fn run() -> Result<(), Box<dyn std::error::Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [gateway, token] = words.as_slice() else { return Err(USAGE.into()) };
    let gateway = gateway.parse()?;
    let token = fs::read_to_string(token)?.trim().to_owned();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let own = listener.local_addr()?;
        writeln!(io::stdout(), "http://{own}/mcp")?;
        Ok(Relay { own, gateway, token }.run(listener).await?)
    })
}
