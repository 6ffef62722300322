//! Serves the `mcp` tool to a host until it goes or a signal comes.

use switchboard::Gateway;
use switchboard_server::{Offer, stdio};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::args::Serve;
use crate::boot::App;
use crate::exit::Exit;
use crate::printer::Printer;
use crate::report::{self, Outcome};
use crate::signals::Signals;

pub(super) async fn serve(app: &App, how: &Serve) -> Outcome {
    let loaded = app.load_and_warn()?;
    let gateway = app.gateway(loaded.config).build();
    let mut signals = Signals::listen();
    gateway.list_missing_in_background();
    gateway.follow(app.load_options(), loaded.good);
    let mut announcing = JoinSet::new();
    announcing.spawn(announce(app.printer, gateway.clone()));
    let stop = CancellationToken::new();
    let offer = match &how.transparent {
        None => Offer::Proxy,
        Some(server) => Offer::Mirror(server.clone()),
    };
    let serving = stdio::serve(gateway.clone(), offer, stop.clone());
    tokio::pin!(serving);
    let served = tokio::select! {
        served = &mut serving => served,
        () = signals.stop() => {
            stop.cancel();
            tokio::select! {
                served = &mut serving => served,
                // Whoever asks twice does not want to wait.
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

/// Says how it went with the servers that Pi's list of servers turns on.
async fn announce(printer: Printer, gateway: Gateway) {
    let outcomes = gateway.turned_on().await;
    let connected = outcomes.iter().filter(|(_, outcome)| outcome.is_ok());
    let names: Vec<&str> = connected.map(|(server, _)| server.as_str()).collect();
    if !names.is_empty() {
        printer.note(&format!("Auto-connected: {}", names.join(", ")));
    }
    for failure in outcomes.iter().filter_map(|(_, outcome)| outcome.as_ref().err()) {
        printer.warn(&report::line(failure));
    }
}
