//! The text of each reply.

use std::collections::BTreeMap;

use switchboard::catalog::account::{Account, Cost};
use switchboard::catalog::pin::DriftCount;
use switchboard::catalog::search::Fit;
use switchboard::config::values::{Lifecycle, Toolset};
use switchboard::reply::{Overview, ReachedBy, SearchHit, ServerLine, ServerStatus, TrustLevel};

use super::*;
use switchboard::catalog::pin::Pin;

const PLAIN: Look = Look { palette: Palette::Plain, columns: 60 };

fn name(name: &str) -> ServerName {
    ServerName::new(name).unwrap()
}

fn line(shown: &str, server: &str, description: &str) -> ToolLine {
    let tool = shown.to_owned();
    ToolLine {
        shown: shown.to_owned(),
        server: name(server),
        tool,
        description: description.into(),
        pin: Pin::Same,
        claims: None,
        hidden: None,
        reached_by: ReachedBy::SameTool,
    }
}

fn server(server: &str, status: ServerStatus, tools: Option<usize>) -> ServerLine {
    ServerLine {
        denied: 0,
        name: name(server),
        status,
        tools,
        resources: 0,
        lifecycle: Lifecycle::Lazy,
        trust: TrustLevel::User,
        failure: None,
        underway: None,
        description: None,
        note: None,
        drift: DriftCount::default(),
    }
}

fn page(server: Option<&str>) -> ToolPage {
    ToolPage {
        denied: 0,
        server: server.map(name),
        tools: vec![
            line("files_read", "files", "Read a file.\nAll of it, from the beginning to the end."),
            line("files_write", "files", ""),
            line("git_log", "git", "\u{1b}[31mShow\u{1b}[0m the \u{202e}log"),
        ],
        total: 3,
        offset: 0,
        next: None,
        skipped: vec!["`x` has no schema".to_owned()],
        without_tools: false,
        has_instructions: true,
        not_listed: Vec::new(),
        pending: Vec::new(),
    }
}

#[test]
fn status_has_one_line_per_server() {
    let overview = Overview {
        stale: Vec::new(),
        mistakes: Vec::new(),
        servers: vec![
            server("files", ServerStatus::Connected, Some(3)),
            server("git", ServerStatus::Pending, None),
        ],
        tools: 3,
        connected: 1,
    };
    let status = Reply::Status(overview);
    insta::assert_snapshot!(reply(&status, PLAIN), @r#"
    2 servers, 3 tools: 1 pending
    ✓ files (3 tools)
    ⚠ git (pending: the user has to trust it)
    "#);
    let coloured = Look { palette: Palette::Coloured, ..PLAIN };
    insta::assert_snapshot!(reply(&status, coloured).replace('\u{1b}', "ESC"), @r#"
    ESC[1m2 servers, 3 tools: 1 pendingESC[0m
    ESC[32m✓ESC[0m ESC[36mfilesESC[0m (3 tools)
    ESC[33m⚠ESC[0m ESC[36mgitESC[0m (pending: the user has to trust it)
    "#);
}

#[test]
fn tool_list_is_grouped_by_server() {
    insta::assert_snapshot!(reply(&Reply::Tools(page(None)), PLAIN), @r#"
    files
    files_read  Read a file. All of it, from the beginning to t…
    files_write

    git
    git_log  Show the \u{202e}log
    "#);
}

#[test]
fn tool_list_mentions_skipped_definitions_and_server_instructions() {
    let remarks = remarks(&page(Some("files")), Palette::Plain);
    insta::assert_snapshot!(remarks.join("\n"), @r#"
    left out: 1 definition (`x` has no schema)
    it has instructions: `switchboard instructions files`
    "#);
}

#[test]
fn first_matches_of_a_search_are_printed_in_full() {
    let hit = |index: usize| SearchHit {
        line: line(&format!("files_read_{index}"), "files", "Read a file"),
        score: 1.0,
        signature: format!("files_read_{index}(path: string)"),
        notes: Vec::new(),
    };
    let found = SearchPage {
        denied: 0,
        clear: None,
        query: "read".to_owned(),
        hits: (0..4).map(hit).collect(),
        total: 4,
        offset: 0,
        next: None,
        fit: Fit::Plausible,
        good: 1,
        with_signatures: true,
        unavailable: Vec::new(),
        not_listed: Vec::new(),
        pending: Vec::new(),
        not_called: None,
    };
    insta::assert_snapshot!(reply(&Reply::Found(found), PLAIN), @r#"
    files_read_0(path: string)
      Read a file
    files_read_1(path: string)
      Read a file
    files_read_2(path: string)
      Read a file
    files_read_3  Read a file
    "#);
}

#[test]
fn token_cost_table_shows_saved_or_extra_tokens() {
    let overview = Overview {
        stale: Vec::new(),
        mistakes: Vec::new(),
        servers: vec![
            server("files", ServerStatus::Cached, Some(3)),
            server("git", ServerStatus::NotConnected, None),
            server("off", ServerStatus::Disabled, None),
        ],
        tools: 3,
        connected: 0,
    };
    let mut account = Account {
        card: 174,
        toolset: Toolset::Proxy,
        shown: Cost { tools: 1, tokens: 174 },
        servers: BTreeMap::from([(name("files"), Cost { tools: 26, tokens: 3_812 })]),
        not_listed: vec![name("git")],
    };
    insta::assert_snapshot!(account::table(&overview, &account, Palette::Plain), @r"
                      tools     tokens
    files                26      3,812
    git                   ?          ?  not listed yet
    off                   ?          ?  disabled
    listed directly      26      3,812
    shown to hosts        1        174  proxy
    saved                        3,638  95 %, at least
    ");
    account.servers.insert(name("files"), Cost { tools: 1, tokens: 58 });
    insta::assert_snapshot!(account::table(&overview, &account, Palette::Plain), @r"
                      tools     tokens
    files                 1         58
    git                   ?          ?  not listed yet
    off                   ?          ?  disabled
    listed directly       1         58
    shown to hosts        1        174  proxy
    extra                          116  200 %, at most
    ");
    account.servers.clear();
    insta::assert_snapshot!(account::table(&overview, &account, Palette::Plain), @r"
                      tools     tokens
    files                 ?          ?  cached
    git                   ?          ?  not listed yet
    off                   ?          ?  disabled
    listed directly       0          0
    shown to hosts        1        174  proxy
    ");
}
