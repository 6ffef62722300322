//! Replies as text for the terminal.

pub(crate) mod account;
pub(crate) mod status;

use std::fmt::Write;

use switchboard::name::ServerName;
use switchboard::render::words::{clean_block, clean_line, list, plural};
use switchboard::reply::{Description, Reply, SearchPage, ToolLine, ToolPage};
use switchboard::{catalog, render};

use crate::style::Palette;

/// The number of hits that are shown with signature and description; later hits get one line.
const FULL_HITS: usize = 3;

const NAME: usize = 100;
const LINE: usize = 100;
const PARAGRAPH: usize = 300;
const BLOCK: usize = 256 * 1024;

/// The minimum number of characters for a description, whatever the length of the name.
const SOME_WORDS: usize = 30;

/// How text is laid out on the terminal: its colours and its width.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Look {
    pub(crate) palette: Palette,
    /// The maximum width of a line in characters.
    pub(crate) columns: usize,
}

/// The text of a reply. The output of a call is printed in another module, block by block.
pub(crate) fn reply(reply: &Reply, look: Look) -> String {
    let palette = look.palette;
    let mut out = String::new();
    match reply {
        Reply::Status(overview) => {
            out.push_str(&status::text(overview, status::Servers::Configured, palette));
        }
        Reply::Tools(page) | Reply::Connected(page) => tools(&mut out, page, look),
        Reply::Found(page) => found(&mut out, page, look),
        Reply::Described(description) => described(&mut out, description, palette),
        Reply::Instructions { text, .. } => out.push_str(&clean_block(text, BLOCK)),
        Reply::Resources(resources) => self::resources(&mut out, resources, palette),
        Reply::Prompts(prompts) => self::prompts(&mut out, prompts, palette),
        Reply::SignInBegun { .. }
        | Reply::SignedIn { .. }
        | Reply::Disconnected { .. }
        | Reply::Output(_)
        | Reply::Stored { .. } => {
            out.push_str(&clean_block(&render::text::reply(reply), usize::MAX));
        }
    }
    out
}

fn tools(out: &mut String, page: &ToolPage, look: Look) {
    let mut server = None;
    for tool in &page.tools {
        if page.server.is_none() && server != Some(&tool.server) {
            let gap = if server.is_some() { "\n" } else { "" };
            let name = clean_line(tool.server.as_str(), NAME);
            let _ = writeln!(out, "{gap}{}", look.palette.heading(name));
            server = Some(&tool.server);
        }
        let _ = writeln!(out, "{}", tool_line(tool, look));
    }
}

/// Remarks about the page, such as denied tools and skipped definitions.
pub(crate) fn remarks(page: &ToolPage, palette: Palette) -> Vec<String> {
    let mut remarks = Vec::new();
    if page.tools.is_empty() {
        let still_missing = !page.not_listed.is_empty();
        remarks.push(if still_missing { "no tools yet" } else { "no tools" }.to_owned());
    }
    if page.denied > 0 {
        remarks.push(render::text::denied_line(page.denied));
    }
    if !page.skipped.is_empty() {
        let reasons = list(&page.skipped, 3);
        let count = plural(page.skipped.len(), "definition");
        remarks.push(format!("left out: {count} ({})", clean_line(&reasons, PARAGRAPH)));
    }
    if let Some(server) = page.server.as_ref().filter(|_| page.has_instructions) {
        let server = clean_line(server.as_str(), NAME);
        let command = palette.command(format!("`switchboard instructions {server}`"));
        remarks.push(format!("it has instructions: {command}"));
    }
    remarks
}

/// One line for a tool: its whole name, and as much of the description as fits.
fn tool_line(tool: &ToolLine, look: Look) -> String {
    let name = clean_line(&tool.shown, NAME);
    let mark = marks(tool, look.palette);
    let room = look.columns.saturating_sub(name.chars().count() + 2).max(SOME_WORDS);
    match clean_line(&tool.description, room) {
        about if about.is_empty() => format!("{}{mark}", look.palette.name(name)),
        about => format!("{}{mark}  {about}", look.palette.name(name)),
    }
}

fn marks(tool: &ToolLine, palette: Palette) -> String {
    tool.marks().map(|mark| format!(" {}", palette.warning(format!("({mark})")))).collect()
}

fn found(out: &mut String, page: &SearchPage, look: Look) {
    for (index, hit) in page.hits.iter().enumerate() {
        if index >= FULL_HITS || page.offset > 0 {
            let _ = writeln!(out, "{}", tool_line(&hit.line, look));
            continue;
        }
        let signature = signature(&hit.signature, &hit.line.shown, look.palette);
        let about = clean_line(&hit.line.description, PARAGRAPH);
        let mark = marks(&hit.line, look.palette);
        let _ = writeln!(out, "{signature}{mark}");
        if !about.is_empty() {
            let _ = writeln!(out, "  {about}");
        }
    }
}

/// The signature of a tool, which begins with the tool's name. The name gets a colour.
fn signature(signature: &str, shown: &str, palette: Palette) -> String {
    let signature = clean_block(signature, BLOCK);
    let shown = clean_line(shown, NAME);
    match signature.strip_prefix(&*shown) {
        Some(rest) => format!("{}{rest}", palette.name(shown)),
        None => signature.into_owned(),
    }
}

fn described(out: &mut String, description: &Description, palette: Palette) {
    let line = &description.line;
    let _ = writeln!(out, "{}", signature(&description.signature, &line.shown, palette));
    let about = clean_block(line.description.trim(), BLOCK);
    if !about.is_empty() {
        let _ = writeln!(out, "\n{about}");
    }
    if !description.parameters.is_empty() {
        let parameters = clean_block(&description.parameters, BLOCK);
        let _ = writeln!(out, "\n{}\n{parameters}", palette.heading("Parameters"));
    }
    if let Some(returns) = &description.returns {
        let returns = clean_block(returns, BLOCK);
        let _ = writeln!(out, "\n{}\n{returns}", palette.heading("Returns"));
    }
    let mut facts = vec![("server", line.server.as_str()), ("tool", line.tool.as_str())];
    let cautions = line.cautions();
    facts.extend(cautions.iter().map(|caution| ("attention", caution.as_str())));
    let denied = description.denied.as_deref();
    let denied = denied.map(|pattern| format!("never called, because of the rule `{pattern}`"));
    facts.extend(denied.as_deref().map(|denied| ("denied", denied)));
    facts.extend(description.title.as_deref().map(|title| ("title", title)));
    facts.extend(description.resource.as_deref().map(|uri| ("reads", uri)));
    facts.extend(description.annotations.as_deref().map(|claims| ("declares", claims)));
    out.push('\n');
    for (what, value) in facts {
        let _ = writeln!(out, "{} {}", palette.aside(what), clean_line(value, PARAGRAPH));
    }
}

fn resources(out: &mut String, rows: &[(ServerName, catalog::Resource)], palette: Palette) {
    for (server, resource) in rows {
        let about = resource.description.as_deref().unwrap_or(&resource.name);
        let uri = palette.name(clean_line(&resource.uri, PARAGRAPH)).to_string();
        row(out, (&uri, server), about, palette);
    }
}

fn prompts(out: &mut String, rows: &[(ServerName, catalog::Prompt)], palette: Palette) {
    for (server, prompt) in rows {
        let mut name = palette.name(clean_line(&prompt.name, NAME)).to_string();
        for argument in &prompt.arguments {
            let key = clean_line(&argument.name, NAME);
            let _ = match argument.required {
                true => write!(name, " {key}=…"),
                false => write!(name, " [{key}=…]"),
            };
        }
        row(out, (&name, server), prompt.description.as_deref().unwrap_or_default(), palette);
    }
}

fn row(out: &mut String, (what, server): (&str, &ServerName), about: &str, palette: Palette) {
    let server = palette.aside(format!("({})", clean_line(server.as_str(), NAME))).to_string();
    let line = format!("{what} {server}  {}", clean_line(about, LINE));
    let _ = writeln!(out, "{}", line.trim_end());
}

#[cfg(test)]
mod tests;
