//! Serves MCP: over standard streams to one host until it disconnects or a signal arrives, or over
//! HTTP to many hosts.

use std::io;
use std::net::SocketAddr;

use serde_json::json;
use switchboard::Gateway;
use switchboard::config::values::Toolset;
use switchboard::failure::{Code, Failure, Hint, Subject};
use switchboard::pi::text::auto_connected;
use switchboard::secret::Token;
use switchboard_server::http::Listening;
use switchboard_server::{HostKind, Offer, stdio, warning_of_many};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::args::serve::Serve;
use crate::boot::App;
use crate::exit::Exit;
use crate::printer::Printer;
use crate::report::CommandResult;
use crate::signals::Signals;

#[derive(Debug, thiserror::Error)]
enum HttpError {
    #[error(
        "refusing to listen at `{address}`, which other machines can reach: add `--allow-remote`"
    )]
    Remote { address: SocketAddr },
    #[error("cannot listen at `{address}`")]
    Listen {
        address: SocketAddr,
        #[source]
        cause: io::Error,
    },
}

/// The transport over which clients reach `serve`.
enum Face {
    Stdio,
    Http(Listening, Token),
}

pub(super) async fn serve(app: &App, how: &Serve) -> CommandResult {
    // The listener is bound first, so that a failure is reported before anything starts.
    let face = match how.http {
        None => Face::Stdio,
        Some(address) => listen(app, address, how).await?,
    };
    let loaded = app.load_and_warn()?;
    let mut builder = app.gateway(loaded.config).capabilities_of_first_client();
    if let Some(toolset) = how.toolset {
        builder = builder.toolset(toolset);
    }
    let gateway = builder.build();
    let mut signals = Signals::listen();
    gateway.list_missing_in_background();
    gateway.follow(app.load_options(), loaded.good);
    let host = how.host.as_deref().map_or(HostKind::Any, HostKind::named);
    let stop = CancellationToken::new();
    let offer = match (&how.transparent, gateway.settings().toolset) {
        (Some(server), _) => Offer::Mirror(gateway.usable(server)?.to_string()),
        (None, Toolset::Direct) => Offer::Direct,
        (None, Toolset::Granular) => Offer::Granular,
        (None, Toolset::Auto) => Offer::Auto,
        (None, Toolset::Proxy) => Offer::Proxy,
        (None, Toolset::Pair) => Offer::Pair,
    };
    let mut announcing = JoinSet::new();
    // The Pi extension receives the warnings of `announce` over its connection.
    if host != HostKind::Pi {
        announcing.spawn(announce(app.printer, gateway.clone(), offer.clone()));
    }
    let serving = async {
        match face {
            Face::Stdio => {
                if app.printer.can_ask() {
                    let install = app.printer.err.command("`switchboard install HOST`");
                    app.printer.note(&format!(
                        "Waiting for a host on standard input; {install} lets a host start this \
                         command by itself"
                    ));
                }
                stdio::serve(gateway.clone(), offer, host, stop.clone()).await
            }
            Face::Http(listening, token) => {
                print_endpoint(app, &listening, &token);
                listening.serve(gateway.clone(), offer, token, stop.clone()).await;
                Ok(())
            }
        }
    };
    tokio::pin!(serving);
    let served = tokio::select! {
        served = &mut serving => served,
        () = signals.stop() => {
            stop.cancel();
            tokio::select! {
                served = &mut serving => served,
                // A second signal ends the shutdown without waiting.
                () = signals.stop() => return Ok(Exit::Interrupted),
            }
        }
    };
    tokio::select! {
        () = gateway.shutdown() => {}
        () = signals.stop() => return Ok(Exit::Interrupted),
    }
    served?;
    Ok(Exit::Done)
}

async fn listen(app: &App, address: SocketAddr, how: &Serve) -> Result<Face, Failure> {
    let failure = |code, error| Failure::new(code, Subject::Request, error);
    if !address.ip().is_loopback() && !how.allow_remote {
        return Err(failure(Code::BadRequest, HttpError::Remote { address }));
    }
    let token = Token::of(&app.paths)
        .map_err(|error| Failure::new(Code::Storage, Subject::Request, error))?;
    let listening = Listening::at(address).await.map_err(|cause| {
        use io::ErrorKind::{AddrInUse, PermissionDenied};
        let taken = matches!(cause.kind(), AddrInUse | PermissionDenied);
        let failed = failure(Code::BadRequest, HttpError::Listen { address, cause });
        if taken { failed.hint(Hint::ChoosePort) } else { failed }
    })?;
    Ok(Face::Http(listening, token))
}

/// Prints the URL and an entry for hosts. The token itself is shown only on a terminal.
fn print_endpoint(app: &App, listening: &Listening, token: &Token) {
    let (printer, url) = (app.printer, listening.url());
    printer.note(&format!("Serving MCP at {}", printer.err.name(&url)));
    let file = app.paths.http_token().display().to_string();
    let status = printer.err.command("`switchboard status --http-token`");
    let file = printer.err.name(file);
    printer.note(&format!("The bearer token is in {file}; {status} prints it"));
    let shown = if printer.is_watched() { token.expose() } else { "TOKEN" };
    let headers = json!({ "Authorization": format!("Bearer {shown}") });
    let entry = json!({ "type": "http", "url": url, "headers": headers });
    let hosts = json!({ "mcpServers": { "switchboard": entry } });
    printer.note(&format!("In the configuration of a host:\n  {hosts}"));
}

/// Prints a warning about too many direct tools, and how the servers that were turned on in Pi's
/// server list have connected.
async fn announce(printer: Printer, gateway: Gateway, offer: Offer) {
    gateway.declared().await;
    if let Some(warning) = warning_of_many(&gateway, &offer) {
        printer.warn(&warning);
    }
    let (connected, failed) = auto_connected(&gateway.turned_on().await);
    if let Some(connected) = connected {
        printer.note(&connected);
    }
    failed.iter().for_each(|line| printer.warn(line));
}
