//! `import` adds names of hosts to `imports` in the user's file and writes nothing else.

use std::fs;
use std::path::PathBuf;

use switchboard_it::program::Installed;
use switchboard_it::terminal;

use crate::PROGRAMS;
use crate::nine_hosts::NineHosts;

const OWN: &str = "// Mine.\n{\n  \"imports\": [\"zed\"], // so far\n}\n";

/// A home with nine hosts, and the path of the user's file of Switchboard, which has this text.
fn with(text: &str) -> (NineHosts, PathBuf) {
    let hosts = NineHosts::new();
    let file = hosts.installed.write("switchboard/mcp.json", text);
    (hosts, file)
}

#[tokio::test]
async fn import_dry_run_shows_servers_with_file_and_line() {
    let (hosts, _) = with(OWN);
    let (code, stdout, stderr) = hosts.run(&["import", "--dry-run"]).await;
    assert_eq!(code, Some(0), "{stderr}");
    insta::assert_snapshot!(stdout, @r"
    Claude Code claude-code
      [HOME]/.claude.json
        local-db  stdio
        linear  sse
        github  http
        sentry  http
        puppeteer  stdio, disabled
      [HOME]/.claude/mcp.json
        github  stdio
        claude-extra  stdio
    Claude Desktop claude-desktop
      [HOME]/.config/Claude/claude_desktop_config.json
        brave-search  stdio
        memory  stdio, disabled
    Cursor cursor
      [HOME]/.cursor/mcp.json
        filesystem  stdio
        github  stdio
        figma  http, disabled
      [HOME]/project/.cursor/mcp.json (of this project, pending until trusted)
        storybook  http
        shared  stdio
    VS Code vscode
      [HOME]/.config/Code/User/mcp.json
        microsoft.docs  http
        playwright  stdio
      [HOME]/project/.vscode/mcp.json (of this project, pending until trusted)
        workspace  stdio
    Codex codex
      [HOME]/.codex/config.toml
        docs  http
        context7  stdio
        old-jira  stdio, disabled
      [HOME]/project/.codex/config.toml (of this project, pending until trusted)
        project-codex  stdio
    OpenCode opencode
      [HOME]/.config/opencode/opencode.json
        everything  stdio
        jira  http, disabled
    Windsurf windsurf
      [HOME]/.codeium/windsurf/mcp_config.json
        notion  http
        slack  stdio, disabled
      [HOME]/.windsurf/mcp.json
        notion  stdio
        surf  stdio
    Gemini CLI gemini-cli
      [HOME]/.gemini/settings.json
        maps  http
        events  sse
        weather  stdio, disabled
      [HOME]/project/.gemini/settings.json (of this project, pending until trusted)
        project-gemini  stdio
    github differs: [HOME]/.claude.json:7 takes precedence over [HOME]/.claude/mcp.json:1, [HOME]/.cursor/mcp.json:8
    notion differs: [HOME]/.codeium/windsurf/mcp_config.json:3 takes precedence over [HOME]/.windsurf/mcp.json:1
    ");
}

#[tokio::test]
async fn import_adds_hosts_to_imports_once_and_loads_servers() {
    let (hosts, file) = with(OWN);
    let (code, _, stderr) = hosts.run(&["import", "--yes"]).await;
    assert_eq!(code, Some(0), "{stderr}");
    insta::assert_snapshot!(stderr, @r#"
    warning: [HOME]/.config/Code/User/mcp.json:11:35: `servers.perplexity.env` uses `${input:perplexity-key}`, which only VS Code can expand: this server is ignored
    [HOME]/switchboard/mcp.json
    @@ -1,4 +1,4 @@
     // Mine.
     {
    -  "imports": ["zed"], // so far
    +  "imports": ["zed", "claude-code", "claude-desktop", "cursor", "vscode", "codex", "opencode", "windsurf", "gemini-cli"], // so far
     }
    Claude Code, Claude Desktop, Cursor, VS Code, Codex, OpenCode, Windsurf and Gemini CLI are imported; see the servers with `switchboard status`
    "#);
    let written = fs::read_to_string(&file).unwrap();
    insta::assert_snapshot!(written, @r#"
    // Mine.
    {
      "imports": ["zed", "claude-code", "claude-desktop", "cursor", "vscode", "codex", "opencode", "windsurf", "gemini-cli"], // so far
    }
    "#);
    let (_, stdout, _) = hosts.run(&["status"]).await;
    assert!(stdout.contains("brave-search"), "{stdout}");
    let (code, stdout, stderr) = hosts.run(&["import", "--yes"]).await;
    assert_eq!((code, stdout.as_str()), (Some(0), ""));
    insta::assert_snapshot!(stderr, @"nothing new: imported already from Claude Code, Claude Desktop, Cursor, VS Code, Codex, OpenCode, Windsurf, Zed and Gemini CLI");
    assert_eq!(fs::read_to_string(&file).unwrap(), written);
    assert!(!hosts.installed.spawn_log().exists());
}

#[tokio::test]
async fn hosts_are_imported_in_the_order_of_arguments() {
    let (hosts, file) = with("");
    let (code, _, stderr) = hosts.run(&["import", "--yes", "codex", "cursor", "codex"]).await;
    assert_eq!(code, Some(0), "{stderr}");
    insta::assert_snapshot!(fs::read_to_string(&file).unwrap(), @r#"
    {
      "$schema": "./mcp.schema.json",
      "imports": ["codex", "cursor"]
    }
    "#);
    let (code, stdout, stderr) = hosts.run(&["import", "emacs"]).await;
    assert_eq!((code, stdout.as_str()), (Some(2), ""));
    assert!(stderr.contains("possible values: claude-code, claude-desktop, cursor"), "{stderr}");
}

#[tokio::test]
async fn import_names_the_file_that_takes_precedence() {
    let (hosts, _) = with(r#"{ "imports": ["cursor"] }"#);
    fs::remove_file(hosts.project.join(".mcp.json")).unwrap();
    let (_, stdout, stderr) = hosts.run(&["import", "--yes", "claude-code"]).await;
    let said =
        "\ngithub differs: [HOME]/.cursor/mcp.json:8 takes precedence over [HOME]/.claude.json:7, ";
    assert!(stdout.contains(said), "{stdout}{stderr}");
    let (_, stdout, _) = hosts.run(&["config", "show", "--json"]).await;
    let shown: serde_json::Value = serde_json::from_str(&stdout).unwrap();
    let origin = &shown["servers"]["github"]["origin"]["command"]["file"];
    assert_eq!(origin, "[HOME]/.cursor/mcp.json");
}

#[tokio::test]
async fn same_launcher_with_different_package_is_an_import_conflict() {
    let own = r#"{ "mcpServers": { "notes": { "command": "npx", "args": ["-y", "mine"] } } }"#;
    let installed = Installed::with(PROGRAMS, own);
    let theirs = r#"{ "mcpServers": { "notes": { "command": "npx", "args": ["-y", "theirs"],
        "env": { "TOKEN": "s3cret" } } } }"#;
    installed.write(".cursor/mcp.json", theirs);
    let ran = installed.run(["import", "--yes"]).await.transcript(installed.home());
    let said = "notes differs in its arguments: [HOME]/switchboard/mcp.json:1 takes precedence over \
        [HOME]/.cursor/mcp.json:1\n";
    assert!(ran.contains(said), "{ran}");
    let ran = installed.run(["config", "check"]).await;
    insta::assert_snapshot!(ran.transcript(installed.home()), @r"
    exit 0
    --- stdout
    warning: [HOME]/switchboard/mcp.json:1:19: server `notes` inherits its `env` from [HOME]/.cursor/mcp.json:2, where it has other arguments: set `env` here too
    --- stderr
    checked 2 files with 1 server: 1 problem
    ");
}

#[tokio::test]
async fn import_without_confirmation_writes_nothing() {
    let (hosts, file) = with(OWN);
    let dry = hosts.run(&["import", "--dry-run"]).await;
    assert_eq!(dry.0, Some(0));
    assert!(dry.2.contains("\n+  \"imports\": [\"zed\", \"claude-code\""), "{}", dry.2);
    let (code, stdout, stderr) = hosts.run(&["import"]).await;
    assert_eq!((code, stdout), (Some(4), dry.1), "the same as in the dry run");
    assert!(stderr.ends_with("or in advance with `--yes`\n"), "{stderr}");
    let (code, stdout, _) = hosts.run(&["import", "--json"]).await;
    assert_eq!(code, Some(4));
    assert!(stdout.contains("\"approval_required\""), "{stdout}");
    for typed in ["\n", "n\n", "yes\n", ""] {
        let shown = terminal::run(hosts.command().args(["import"]), typed).await;
        assert_eq!(shown.code, Some(4), "{}", shown.screen);
    }
    assert_eq!(fs::read_to_string(&file).unwrap(), OWN);
    let shown = terminal::run(hosts.command().args(["import", "cursor"]), "y\n").await;
    assert_eq!(shown.code, Some(0), "{}", shown.screen);
    let expected = OWN.replace("[\"zed\"]", "[\"zed\", \"cursor\"]");
    assert_eq!(fs::read_to_string(&file).unwrap(), expected);
}

#[tokio::test]
async fn import_json_matches_its_snapshot() {
    let (hosts, _) = with(OWN);
    let (code, stdout, _) = hosts.run(&["import", "--dry-run", "--json", "windsurf"]).await;
    assert_eq!(code, Some(0));
    let mut answer: serde_json::Value = serde_json::from_str(&stdout).unwrap();
    let found = answer["hosts"].as_array_mut().unwrap();
    found.retain(|host| host["host"] == "windsurf");
    insta::assert_snapshot!(format!("{answer:#}"), @r#"
    {
      "hosts": [
        {
          "host": "windsurf",
          "imported": false,
          "files": [
            {
              "path": "[HOME]/.codeium/windsurf/mcp_config.json",
              "tier": "user",
              "servers": [
                {
                  "name": "notion",
                  "transport": "http",
                  "disabled": false
                },
                {
                  "name": "slack",
                  "transport": "stdio",
                  "disabled": true
                }
              ]
            },
            {
              "path": "[HOME]/.windsurf/mcp.json",
              "tier": "user",
              "servers": [
                {
                  "name": "notion",
                  "transport": "stdio",
                  "disabled": false
                },
                {
                  "name": "surf",
                  "transport": "stdio",
                  "disabled": false
                }
              ]
            }
          ]
        }
      ],
      "conflicts": [
        {
          "server": "notion",
          "differs": "endpoint",
          "places": [
            {
              "file": "[HOME]/.codeium/windsurf/mcp_config.json",
              "line": 3
            },
            {
              "file": "[HOME]/.windsurf/mcp.json",
              "line": 1
            }
          ]
        }
      ],
      "imports": [
        "windsurf"
      ],
      "file": "[HOME]/switchboard/mcp.json",
      "written": false
    }
    "#);
}

#[tokio::test]
async fn import_leaves_a_malformed_file_unchanged() {
    for text in ["{ \"imports\": [", "{ \"imports\": \"cursor\" }"] {
        let (hosts, file) = with(text);
        let (code, stdout, stderr) = hosts.run(&["import", "--yes"]).await;
        assert_eq!((code, stdout.as_str()), (Some(2), ""), "{stderr}");
        assert!(stderr.contains("cannot change"), "{stderr}");
        assert_eq!(fs::read_to_string(&file).unwrap(), text);
    }
}

#[tokio::test]
async fn import_offers_no_host_whose_files_define_no_server() {
    let installed = Installed::bare(PROGRAMS);
    installed.write(".zed/settings.json", r#"{ "context_servers": { "x": { "command": "x" } } }"#);
    // The entry of Switchboard itself is not offered for import.
    let own = r#"{ "mcpServers": { "all": { "command": "switchboard", "args": ["serve"] } } }"#;
    installed.write(".cursor/mcp.json", own);
    let ran = installed.run(["import", "--yes"]).await;
    insta::assert_snapshot!(ran.transcript(installed.home()), @r"
    exit 0
    --- stdout
    --- stderr
    nothing to import: no other host has servers of yours
    ");
    let ran = installed.run(["import", "--yes", "cursor"]).await;
    insta::assert_snapshot!(ran.transcript(installed.home()), @r"
    exit 0
    --- stdout
    --- stderr
    nothing to import: no servers in Cursor
    ");
    assert!(!installed.home().join("switchboard/mcp.json").exists());
}
