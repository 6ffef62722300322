//! A protected MCP server with its authorization server as a program. It prints their URLs, then
//! one response for each command line on stdin, and exits at the end of stdin. `authority visit` is
//! the browser for it.

use std::io::{self, Write};
use std::process::ExitCode;

use serde_json::{Value, json};
use switchboard_it::authority::{Authority, Consent, Setup, visit};
use tokio::io::{AsyncBufReadExt, BufReader};

const USAGE: &str = "usage: authority [--port PORT] [NAME=VALUE…]
       authority visit URL

  NAME=VALUE is a field of the setup, such as refresh=rotate, tenant=/acme,
  metadata={\"fields\":{\"issuer\":null}} or token-answers=[{\"status\":500},\"hang\"]

  on stdin: expire-tokens | end-sign-ins | migrate | approve CODE | deny CODE | ledger";

fn main() -> ExitCode {
    match run(std::env::args().skip(1)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let cause = error.source().map(|cause| format!(": {cause}")).unwrap_or_default();
            // Nothing to do if stderr is closed.
            let _ = writeln!(io::stderr(), "authority: {error}{cause}\n{USAGE}");
            ExitCode::from(2)
        }
    }
}

fn run(arguments: impl Iterator<Item = String>) -> Result<(), Box<dyn std::error::Error>> {
    let mut words: Vec<String> = arguments.collect();
    if let Some(at) = words.iter().position(|word| word == "--port") {
        let port = words.get(at + 1).ok_or("--port needs a number")?;
        words.splice(at..at + 2, [format!("port={port}")]);
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    if let [verb, url] = words.as_slice()
        && verb == "visit"
    {
        return Ok(say(&runtime.block_on(visit(url)).into())?);
    }
    let setup = Setup::of_words(words)?;
    let served = runtime.block_on(serve(setup));
    // A blocking read of stdin cannot be stopped.
    runtime.shutdown_background();
    Ok(served?)
}

async fn serve(setup: Setup) -> io::Result<()> {
    let authority = Authority::start(setup).await;
    say(&json!({ "mcp": authority.mcp_url(), "issuer": authority.issuer() }))?;
    let mut lines = BufReader::new(tokio::io::stdin()).lines();
    while let Some(line) = lines.next_line().await? {
        say(&obey(&authority, &line))?;
    }
    Ok(())
}

/// Runs the command of a line and returns its response.
fn obey(authority: &Authority, line: &str) -> Value {
    match line.split_once(' ').unwrap_or((line, "")) {
        ("expire-tokens", _) => authority.expire_tokens(),
        ("end-sign-ins", _) => authority.end_sign_ins(),
        ("migrate", _) => authority.migrate(),
        ("approve", code) => return authority.answer_device(code, Consent::Given).into(),
        ("deny", code) => return authority.answer_device(code, Consent::Denied).into(),
        ("ledger", _) => return json!(authority.ledger().now()),
        _ => return Value::Null,
    }
    true.into()
}

fn say(line: &Value) -> io::Result<()> {
    writeln!(io::stdout(), "{line}")
}
