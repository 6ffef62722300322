//! Configuration files of hosts and of Switchboard, merged into one configuration.

use std::fs;
use std::path::Path;

use serde_json::Value;
use switchboard::config::hosts::Host;
use switchboard::discover::discover;
use switchboard::load::{LoadOptions, load};
use switchboard::paths::Paths;
use switchboard::trust::TrustStore;
use switchboard::{Environment, Gateway};
use switchboard_it::harness::{Home, World};
use switchboard_it::program::Installed;

use crate::PROGRAMS;
use crate::nine_hosts::NineHosts;

#[tokio::test]
async fn nine_hosts_and_switchboard_files_merge_into_one_configuration() {
    let fixture = NineHosts::new();
    let (code, stdout, stderr) = fixture.run(&["config", "show", "--json"]).await;
    assert_eq!(code, Some(0), "{stderr}");
    insta::assert_snapshot!("nine_hosts", stdout);
    insta::assert_snapshot!(stderr, @r#"
    warning: [HOME]/.config/Code/User/mcp.json:11:35: `servers.perplexity.env` uses `${input:perplexity-key}`, which only VS Code can expand: this server is ignored
    error: [HOME]/project/.switchboard/mcp.json:1:87: `mcpServers.greedy.inheritEnv` is not allowed in a project file
    error: [HOME]/project/.switchboard/mcp.json:1:143: `settings.approve` is not allowed in a project file
    "#);
    for secret in ["correct-horse", "BSA-not", "hunter2", "eu-west-1"] {
        assert!(!stdout.contains(secret), "{secret} is shown");
    }
}

#[tokio::test]
async fn servers_disabled_in_a_host_stay_disabled() {
    let fixture = NineHosts::new();
    let (_, stdout, _) = fixture.run(&["status", "--json"]).await;
    let status: Value = serde_json::from_str(&stdout).unwrap();
    let servers = status["servers"].as_array().unwrap();
    let disabled: Vec<&str> = servers
        .iter()
        .filter(|server| server["status"] == "disabled")
        .map(|server| server["name"].as_str().unwrap())
        .collect();
    let expected =
        ["docs", "figma", "jira", "memory", "mermaid", "old-jira", "puppeteer", "slack", "weather"];
    assert_eq!(disabled, expected);
}

#[tokio::test]
async fn origin_option_names_file_and_line_of_each_value() {
    let fixture = NineHosts::new();
    let (_, stdout, _) = fixture.run(&["config", "show", "--origin"]).await;
    let shown = |name: &str| {
        let start = stdout.find(&format!("{name} ")).unwrap();
        stdout[start..].split("\n\n").next().unwrap().to_owned()
    };
    insta::assert_snapshot!(shown("\nfilesystem"), @r#"

    filesystem user
      command: "npx"  [HOME]/switchboard/mcp.json:10
      args: ["-y","@modelcontextprotocol/server-filesystem","${HOME}/notes","[HOME]/project"]  [HOME]/.cursor/mcp.json:5
      env: {"LOG_LEVEL":"${env:LOG_LEVEL}","MAX":"…"}  [HOME]/.cursor/mcp.json:6
      lifecycle: "keep-alive"  [HOME]/switchboard/mcp.json:11
    "#);
    insta::assert_snapshot!(shown("\nteam"), @r#"

    team pending
      command: "node"  [HOME]/project/.mcp.json:3
      args: ["tools/server.js"]  [HOME]/project/.mcp.json:3
      env: {"TEAM_TOKEN":"${TEAM_TOKEN}"}  [HOME]/project/.mcp.json:3
      lifecycle: "eager"  [HOME]/project/.pi/mcp.json:1
      excludeTools: ["drop_*"]  [HOME]/project/.switchboard/mcp.json:1
    "#);
}

#[tokio::test]
async fn config_path_lists_files_read_and_the_file_written() {
    let fixture = NineHosts::new();
    let (_, stdout, _) = fixture.run(&["config", "path"]).await;
    insta::assert_snapshot!(stdout, @r#"
    ✓ [HOME]/.claude.json (user, of Claude Code)
    ✓ [HOME]/.claude/mcp.json (user, of Claude Code)
    ○ [HOME]/.claude/claude_desktop_config.json (user, of Claude Code), not there
    ✓ [HOME]/.cursor/mcp.json (user, of Cursor)
    ✓ [HOME]/project/.cursor/mcp.json (project, of Cursor)
    ✓ [HOME]/.config/Code/User/mcp.json (user, of VS Code)
    ○ [HOME]/Library/Application Support/Code/User/mcp.json (user, of VS Code), not there
    ✓ [HOME]/project/.vscode/mcp.json (project, of VS Code)
    ✓ [HOME]/.codex/config.toml (user, of Codex)
    ✓ [HOME]/project/.codex/config.toml (project, of Codex)
    ✓ [HOME]/.config/Claude/claude_desktop_config.json (user, of Claude Desktop)
    ○ [HOME]/Library/Application Support/Claude/claude_desktop_config.json (user, of Claude Desktop), not there
    ✓ [HOME]/.config/opencode/opencode.json (user, of OpenCode)
    ○ [HOME]/.config/opencode/opencode.jsonc (user, of OpenCode), not there
    ○ [HOME]/project/opencode.json (project, of OpenCode), not there
    ○ [HOME]/project/opencode.jsonc (project, of OpenCode), not there
    ✓ [HOME]/.codeium/windsurf/mcp_config.json (user, of Windsurf)
    ✓ [HOME]/.windsurf/mcp.json (user, of Windsurf)
    ✓ [HOME]/.config/zed/settings.json (user, of Zed)
    ○ [HOME]/project/.zed/settings.json (project, of Zed), not there
    ✓ [HOME]/.gemini/settings.json (user, of Gemini CLI)
    ✓ [HOME]/project/.gemini/settings.json (project, of Gemini CLI)
    ✓ [HOME]/.config/mcp/mcp.json (user)
    ✓ [HOME]/.agents/mcp.json (user)
    ○ [HOME]/.agents/mcp/mcp.json (user), not there
    ✓ [HOME]/.pi/agent/mcp.json (user)
    ✓ [HOME]/switchboard/mcp.json (user, where changes go)
    ✓ [HOME]/project/.mcp.json (project)
    ✓ [HOME]/project/.pi/mcp.json (project)
    ✓ [HOME]/project/.pi/mcp-servers.json (project)
    ✓ [HOME]/project/.switchboard/mcp.json (project)
    "#);
    let (_, stdout, _) = fixture.run(&["config", "path", "--json"]).await;
    let paths: Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!(paths["writes"], "[HOME]/switchboard/mcp.json");
    assert_eq!(paths["files"][0]["host"], "claude-code");
}

#[tokio::test]
async fn config_option_replaces_files_of_switchboard_and_pi() {
    let fixture = NineHosts::new();
    fixture.installed.write("named.json", r#"{ "mcpServers": { "named": { "command": "x" } } }"#);
    let named = fixture.installed.home().join("named.json");
    let words = ["--config", &*named.to_string_lossy(), "config", "show", "--json"];
    let (_, stdout, _) = fixture.run(&words).await;
    let shown: Value = serde_json::from_str(&stdout).unwrap();
    let users = shown["servers"].as_object().unwrap().iter();
    let users = users.filter(|(_, server)| server["trust"] == "user").map(|(name, _)| name);
    // `--config` replaces the files of Pi and of Switchboard with their imports, but not the shared
    // files.
    assert_eq!(users.collect::<Vec<_>>(), ["agents", "named", "shared"]);
}

#[tokio::test]
async fn config_check_reads_all_files_and_rejects_forbidden_keys() {
    let fixture = NineHosts::new();
    let (code, stdout, stderr) = fixture.run(&["config", "check"]).await;
    assert_eq!(code, Some(2));
    insta::assert_snapshot!(format!("{stdout}{stderr}"), @r#"
    warning: [HOME]/.config/Code/User/mcp.json:11:35: `servers.perplexity.env` uses `${input:perplexity-key}`, which only VS Code can expand: this server is ignored
    error: [HOME]/project/.switchboard/mcp.json:1:87: `mcpServers.greedy.inheritEnv` is not allowed in a project file
    error: [HOME]/project/.switchboard/mcp.json:1:143: `settings.approve` is not allowed in a project file
    checked 23 files with 36 servers: 3 problems
    "#);
}

#[tokio::test]
async fn schema_files_in_docs_equal_the_printed_schemas() {
    let installed = Installed::bare(PROGRAMS);
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    for (form, file) in [("mcp", "mcp.schema.json"), ("mcp-servers", "mcp-servers.schema.json")] {
        let ran = installed.run(["config", "schema", "--form", form]).await;
        assert_eq!(ran.stdout, fs::read_to_string(docs.join(file)).unwrap(), "{file}");
    }
}

#[test]
fn discovery_finds_servers_of_every_host_imported_or_not() {
    let fixture = NineHosts::new();
    let home = fixture.project.parent().unwrap();
    let own = home.join("switchboard");
    fs::write(own.join("mcp.json"), r#"{ "imports": ["zed"], "mcpServers": {} }"#).unwrap();
    let variables =
        [("HOME", &*home.to_string_lossy()), ("SWITCHBOARD_HOME", &*own.to_string_lossy())];
    let environment = Environment::made_of(variables, &fixture.project);
    let options = LoadOptions { project: fixture.project.clone(), ..LoadOptions::default() };
    let found = discover(&environment, &Paths::of(&environment), &options).unwrap();
    let mut lines = Vec::new();
    for host in &found.hosts {
        let files = host.files.iter().filter(|file| file.found);
        let servers = files.clone().flat_map(|file| &file.servers).map(|server| &*server.name);
        let mark = if host.imported { "imported" } else { "found" };
        let servers = servers.collect::<Vec<_>>().join(" ");
        let line = format!("{} {mark} in {}: {servers}", host.host, files.count());
        lines.push(line.trim_end().to_owned());
    }
    for conflict in found.conflicts(&Host::ALL) {
        let places = conflict.places.iter().map(|at| format!(" {}:{}", at.path, at.line));
        lines.push(format!("{}:{}", conflict.server, places.collect::<String>()));
    }
    let text = lines.join("\n").replace(&*home.to_string_lossy(), "[HOME]");
    insta::assert_snapshot!(text, @r#"
    claude-code found in 2: local-db linear github sentry puppeteer github claude-extra
    claude-desktop found in 1: brave-search memory
    cursor found in 2: filesystem github figma storybook shared
    vscode found in 2: microsoft.docs playwright workspace
    codex found in 2: docs context7 old-jira project-codex
    opencode found in 1: everything jira
    windsurf found in 2: notion slack notion surf
    zed imported in 1: postgres mermaid
    gemini-cli found in 2: maps events weather project-gemini
    copilot-cli found in 0:
    qwen-code found in 0:
    cline found in 0:
    vibe found in 0:
    kiro found in 0:
    amp found in 0:
    crush found in 0:
    roo found in 0:
    github: [HOME]/.claude.json:7 [HOME]/.claude/mcp.json:1 [HOME]/.cursor/mcp.json:8
    notion: [HOME]/.codeium/windsurf/mcp_config.json:3 [HOME]/.windsurf/mcp.json:1
    "#);
}

#[tokio::test]
async fn pi_list_entry_connects_at_start_if_enabled() {
    let home = Home::new();
    let project = home.path().canonicalize().unwrap().join("project");
    fs::create_dir_all(project.join(".pi")).unwrap();
    let command = format!("'{}' everything", PROGRAMS.fixture_server);
    let list = serde_json::json!({ "version": "1.0", "servers": [
        { "id": "waits", "url": command, "name": "Waiting room", "description": "of the clinic" },
        { "id": "starts", "url": command, "enabled": true },
    ]});
    fs::write(project.join(".pi/mcp-servers.json"), list.to_string()).unwrap();
    let mut environment = home.environment();
    environment.cwd.clone_from(&project);
    let paths = Paths::of(&environment);
    let options = LoadOptions { project: project.clone(), ..LoadOptions::default() };
    let store = TrustStore::at(paths.trust());
    for pending in load(&environment, &paths, &options).unwrap().config.pending {
        store.approve(&pending.hash, &pending.name, &project).unwrap();
    }
    let config = load(&environment, &paths, &options).unwrap().config;
    let gateway = Gateway::builder(environment).config(config).build();
    gateway.list_missing(|_, _, _| {}).await;
    let world = World::of_gateway(gateway, home);
    let status = async || world.ask("{}").await.split("\n\n").next().unwrap().to_owned();
    insta::assert_snapshot!(status().await, @r#"
    MCP: 1/2 servers, 30 tools
    ✓ starts (30 tools)
    ○ waits (not connected): Waiting room: of the clinic
    "#);
    world.ask(r#"{ "connect": "waits" }"#).await;
    insta::assert_snapshot!(status().await, @r#"
    MCP: 2/2 servers, 60 tools
    ✓ starts (30 tools)
    ✓ waits (30 tools): Waiting room: of the clinic
    "#);
    insta::assert_snapshot!(world.ask(r#"{ "search": "clinic", "limit": 1 }"#).await, @r"
    waits_add(a: number, b: number)
      Adds two numbers.
    1 of 30; next page: offset 1
    ");
    world.shut_down().await;
}

#[cfg(unix)]
#[tokio::test]
async fn project_file_that_is_a_device_is_not_opened() {
    let fixture = NineHosts::new();
    fs::remove_file(fixture.project.join(".mcp.json")).unwrap();
    std::os::unix::fs::symlink("/dev/zero", fixture.project.join(".mcp.json")).unwrap();
    let (code, stdout, _) = fixture.run(&["config", "check"]).await;
    assert_eq!(code, Some(2));
    let line = "[HOME]/project/.mcp.json:1:1: the file cannot be read: not a regular file";
    assert!(stdout.contains(line), "{stdout}");
}
