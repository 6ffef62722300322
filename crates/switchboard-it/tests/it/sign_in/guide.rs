//! The sign-in guide, followed step by step on a terminal with a browser.

use std::path::Path;

use switchboard::Environment;
use switchboard_it::terminal::Watched;

use super::person::{WAITING, address, left, recorder};
use super::*;

/// URLs of the server and its authorization server in the guide.
const SERVER: &str = "https://tracker.example/mcp";
const ISSUER: &str = "https://login.tracker.example";

const BLOCK: &str = "```console\n";

/// Runs the commands of all `console` blocks in order. `UPDATE_EXPECT=1` writes the output into
/// the page instead.
#[tokio::test]
async fn sign_in_guide_commands_work_as_written() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guide/sign-in.md");
    let text = fs::read_to_string(&page).unwrap();
    let user = Desk::with(Setup { scopes: vec!["issues".into()], ..Setup::default() }).await;
    recorder(&user);
    let mut seen = String::new();
    for (index, part) in text.split(BLOCK).enumerate() {
        if index == 0 {
            seen.push_str(part);
            continue;
        }
        let (block, rest) = part.split_once("```").unwrap();
        seen.push_str(BLOCK);
        for command in block.lines().filter_map(|line| line.strip_prefix("$ switchboard ")) {
            seen.push_str(&user.follow(command).await);
        }
        seen.push_str("```");
        seen.push_str(rest);
    }
    if Environment::of_process().variable("UPDATE_EXPECT").is_some() {
        fs::write(page, seen).unwrap();
    } else {
        assert_eq!(seen, text);
    }
    let record = user.authority.ledger().now();
    assert_eq!((record.sign_ins, record.revocations), (1, 1), "the guide signs in and out once");
}

impl Desk {
    /// Types a command of the guide, uses the browser that it opens, and returns the text that a
    /// reader sees.
    async fn follow(&self, line: &str) -> String {
        let home = self.installed.home();
        let mut command = self.command(&line.replace(SERVER, &self.authority.mcp_url()));
        command.env_remove("SWITCHBOARD_HOME").env("DISPLAY", ":0");
        let mut shown = Watched::start(command.env("BROWSER", home.join("browser")));
        if line.starts_with("auth ") {
            assert_eq!(visit(&address(&shown.until(WAITING).await)).await, 200);
        }
        let ended = shown.ended().await;
        let code = match ended.code {
            Some(0) => String::new(),
            code => format!("? {}\n", code.unwrap()),
        };
        let said = self.neutral(&left(&ended.screen).replace(&self.authority.mcp_url(), SERVER));
        let said = said.replace("[ISSUER]", ISSUER).replace("[HOME]", "~");
        format!("$ switchboard {line}\n{code}{said}\n")
    }
}
