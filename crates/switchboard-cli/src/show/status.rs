//! The status as text: a summary, then a line for each server.

use std::fmt::Write;

use switchboard::gateway::CheckedServer;
use switchboard::render;
use switchboard::render::words::{clean_line, plural};
use switchboard::reply::{Overview, ServerLine, ServerStatus};

use super::NAME;
use crate::report;
use crate::style::Palette;

/// The servers that the status shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Servers {
    Configured,
    /// Nothing is configured, so only the built-in server is available.
    DemoAlone,
}

pub(crate) fn text(overview: &Overview, servers: Servers, palette: Palette) -> String {
    let mut out = String::new();
    let first = match servers {
        Servers::Configured => palette.heading(header(overview)).to_string(),
        Servers::DemoAlone => format!(
            "No servers yet: {} adds one, {} uses those of your hosts",
            palette.command("`switchboard add NAME -- COMMAND`"),
            palette.command("`switchboard import`"),
        ),
    };
    let _ = writeln!(out, "{first}");
    for server in &overview.servers {
        let _ = writeln!(out, "{}", line(server, palette));
    }
    for place in &overview.stale {
        let _ = writeln!(out, "{}", render::text::stale_line(place));
    }
    for place in &overview.mistakes {
        let _ = writeln!(out, "{}", render::text::mistake_line(place));
    }
    out
}

/// The summary, such as `3 servers, 75 tools: 1 failed, 1 disabled`. It has no number of connected
/// servers, which is always zero between two commands.
fn header(overview: &Overview) -> String {
    let mut out =
        format!("{}, {}", plural(overview.servers.len(), "server"), plural(overview.tools, "tool"));
    let exceptions = [
        (ServerStatus::Failed, "failed"),
        (ServerStatus::NeedsAuth, "needs sign-in"),
        (ServerStatus::Pending, "pending"),
        (ServerStatus::Disabled, "disabled"),
    ];
    let mut separator = ": ";
    for (status, word) in exceptions {
        let count = overview.servers.iter().filter(|server| server.status == status).count();
        if count > 0 {
            let _ = write!(out, "{separator}{count} {word}");
            separator = ", ";
        }
    }
    out
}

/// The status line of a server, worded as in every face, with colours.
pub(crate) fn line(server: &ServerLine, palette: Palette) -> String {
    let line = render::text::server_line(server);
    let name = clean_line(server.name.as_str(), NAME);
    let mut glyph = [0; 4];
    let glyph = &*server.status.glyph().encode_utf8(&mut glyph);
    let rest = line.strip_prefix(glyph).map(|rest| rest.trim_start());
    let Some(rest) = rest.and_then(|rest| rest.strip_prefix(&*name)) else {
        return line;
    };
    let glyph = match server.status {
        ServerStatus::Connected => palette.command(glyph),
        ServerStatus::NeedsAuth | ServerStatus::Pending => palette.warning(glyph),
        ServerStatus::Failed => palette.error(glyph),
        ServerStatus::Cached
        | ServerStatus::NotConnected
        | ServerStatus::Connecting
        | ServerStatus::Disabled => palette.aside(glyph),
    };
    format!("{glyph} {}{rest}", palette.name(name))
}

/// The result of connecting a server: `✓ name, 12 tools, 0.4 s`, or `✗ name, 0.4 s: reason; next
/// step`.
pub(crate) fn checked(checked: &CheckedServer, palette: Palette) -> String {
    let name = palette.name(clean_line(checked.server.as_str(), NAME)).to_string();
    let took = format!("{:.1} s", checked.took.as_secs_f32());
    match &checked.outcome {
        Ok(tools) => {
            let glyph = palette.command("✓");
            format!("{glyph} {name}, {}, {took}", plural(*tools, "tool"))
        }
        Err(failure) => {
            let glyph = palette.error("✗");
            format!("{glyph} {name}, {took}: {}", report::line(failure, palette))
        }
    }
}
