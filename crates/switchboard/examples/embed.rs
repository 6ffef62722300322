//! Switchboard inside another program: build a gateway, search, call.

use std::io::Write;

use switchboard::exact::Args;
use switchboard::request::{CallRequest, Request, SearchRequest};
use switchboard::{Environment, Gateway, Headless, render};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // Must come first: servers then end with this program, even if it is killed.
    switchboard::reaper::run_if_asked();
    run()
}

#[tokio::main(flavor = "current_thread")]
async fn run() -> Result<(), Box<dyn std::error::Error>> {
    // For the servers of configuration files, add `switchboard::load` and `.config(…)`.
    let gateway = Gateway::builder(Environment::of_process()).demo().build();
    gateway.list_missing(|_, _, _| {}).await;
    // `Headless` has no user: a call that needs approval is refused.
    let session = gateway.session(Headless);
    let mut out = std::io::stdout();

    let search = SearchRequest::words("add numbers");
    let found = session.handle(Request::Search(search)).await?;
    writeln!(out, "{}", render::text::reply(&found))?;

    let args = Args::parse(r#"{ "a": 2, "b": 40 }"#)?;
    let call = CallRequest::new("demo_add", None, args);
    let sum = session.handle(Request::Call(call)).await?;
    writeln!(out, "{}", render::text::reply(&sum))?;

    gateway.shutdown().await;
    Ok(())
}
