//! Serves the `mcp` tool to a host until it goes or a signal comes.

use switchboard_server::stdio;
use tokio_util::sync::CancellationToken;

use crate::boot::App;
use crate::exit::Exit;
use crate::report::Outcome;
use crate::signals::Signals;

pub(super) async fn serve(app: &App) -> Outcome {
    let loaded = app.load_and_warn()?;
    let gateway = app.gateway(loaded.config).build();
    let mut signals = Signals::listen();
    gateway.list_missing_in_background();
    gateway.follow(app.load_options(), loaded.good);
    let stop = CancellationToken::new();
    let serving = stdio::serve(gateway.clone(), stop.clone());
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
