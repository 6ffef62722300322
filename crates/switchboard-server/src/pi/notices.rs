//! Notices of `serve` after its start. The Pi extension shows them, because the user of Pi does not
//! see standard error.

use std::sync::Arc;

use switchboard::Session;
use switchboard::log_level::LogLevel;
use switchboard::pi::text as words;
use switchboard::render::text::{mistake_line, stale_line};

use crate::host::ClientHost;

/// Sends `warning`, the result of the first connects, and each configuration problem once.
pub(super) async fn tell(session: Arc<Session>, host: ClientHost, warning: Option<String>) {
    let gateway = session.gateway();
    if let Some(warning) = warning {
        host.notice(LogLevel::Warning, &warning);
    }
    let mut changes = gateway.changes();
    let (connected, failed) = words::auto_connected(&gateway.turned_on().await);
    if let Some(connected) = connected.filter(|_| gateway.settings().startup_notice) {
        host.notice(LogLevel::Info, &connected);
    }
    failed.iter().for_each(|line| host.notice(LogLevel::Warning, line));
    let mut shown: Vec<String> = Vec::new();
    loop {
        let overview = session.overview();
        let stale = overview.stale.iter().map(|place| stale_line(place));
        let wrong = overview.mistakes.iter().map(|place| mistake_line(place));
        let now: Vec<String> = stale.chain(wrong).collect();
        for line in now.iter().filter(|line| !shown.contains(line)) {
            host.notice(LogLevel::Warning, line);
        }
        shown = now;
        if !changes.next().await {
            return;
        }
    }
}
