//! Commands that edit configuration files change exactly the expected lines, or nothing.

use std::fs;
use std::path::PathBuf;

use switchboard::edit::{EditEffect, Editor, Existing, NewServer, Scope};
use switchboard::load::{LoadOptions, load};
use switchboard::name::ServerName;
use switchboard::paths::Paths;
use switchboard_it::harness::Home;
use switchboard_it::program::Installed;

use crate::PROGRAMS;

const COMMENTED: &str = r#"// My servers.
{
    // Settings of all servers.
    "settings": { "toolPrefix": "short" },
    "mcpServers": {
        /* Issues. */
        "github": {
            "command": "github-mcp",
            "env": { "GITHUB_TOKEN": "s3cret" }, // do not show
            "x-mine": true,
        },
        "files": { "command": "files-mcp" }, // local
        // "old": { "command": "old-mcp" },
    },
}
"#;

/// An installation, and the configuration file of its user.
struct Desk {
    installed: Installed,
    file: PathBuf,
}

impl Desk {
    fn with(text: &str) -> Self {
        let installed = Installed::with(PROGRAMS, text);
        let file = installed.home().join("switchboard/mcp.json");
        Self { installed, file }
    }

    fn text(&self) -> String {
        fs::read_to_string(&self.file).unwrap()
    }

    async fn run(&self, words: &[&str]) -> String {
        let ran = self.installed.run(words.iter().copied()).await;
        ran.transcript(self.installed.home())
    }
}

/// The transcript of a command on a fresh copy of the commented file.
async fn on_commented(words: &[&str]) -> String {
    Desk::with(COMMENTED).run(words).await
}

#[tokio::test]
async fn edit_of_a_commented_file_changes_only_expected_lines() {
    insta::assert_snapshot!(
        on_commented(&["add", "--no-check", "--env", "TOKEN", "web", "--", "npx", "-y", "web-mcp"]).await, @r#"
    exit 0
    --- stdout
    --- stderr
    [HOME]/switchboard/mcp.json
    @@ -12,4 +12,11 @@
             "files": { "command": "files-mcp" }, // local
             // …
    +        "web": {
    +            "command": "npx",
    +            "args": ["-y", "web-mcp"],
    +            "env": {
    +                "TOKEN": "${TOKEN}"
    +            }
    +        },
         },
     }
    `web` is configured
    "#);
    insta::assert_snapshot!(on_commented(&["disable", "github"]).await, @r#"
    exit 0
    --- stdout
    --- stderr
    [HOME]/switchboard/mcp.json
    @@ -9,4 +9,5 @@
                 "env": { "GITHUB_TOKEN": "…" }, // do not show
                 "x-mine": true,
    +            "disabled": true,
             },
             "files": { "command": "files-mcp" }, // local
    `github` is disabled
    "#);
    insta::assert_snapshot!(on_commented(&["allow", "github_list_*"]).await, @r#"
    exit 0
    --- stdout
    --- stderr
    [HOME]/switchboard/mcp.json
    @@ -2,5 +2,5 @@
     {
         // Settings of all servers.
    -    "settings": { "toolPrefix": "short" },
    +    "settings": { "toolPrefix": "short", "allow": ["github_list_*"] },
         "mcpServers": {
             /* Issues. */
    `github_list_*` is allowed
    warning: `github_list_*` matches no known tool
    2 servers not listed yet: files and github (try `switchboard connect files`)
    "#);
    insta::assert_snapshot!(on_commented(&["remove", "files"]).await, @r#"
    exit 0
    --- stdout
    --- stderr
    [HOME]/switchboard/mcp.json
    @@ -10,5 +10,5 @@
                 "x-mine": true,
             },
    -        "files": { "command": "files-mcp" }, // local
    +        // local
             // …
         },
    `files` is removed
    "#);
}

#[tokio::test]
async fn added_entry_is_written_exactly_and_removed_completely() {
    let desk = Desk::with(COMMENTED);
    desk.run(&["add", "--no-check", "web", "https://web.example/mcp", "--header", "X-Key: ${KEY}"])
        .await;
    let added = COMMENTED.replace(
        "\"old-mcp\" },\n",
        "\"old-mcp\" },\n        \"web\": {\n            \"url\": \"https://web.example/mcp\",\n            \
         \"headers\": {\n                \"X-Key\": \"${KEY}\"\n            }\n        },\n",
    );
    assert_eq!(desk.text(), added);
    desk.run(&["remove", "web"]).await;
    assert_eq!(desk.text(), COMMENTED);
}

/// Runs each command, and then the command that undoes it.
#[tokio::test]
async fn undone_edit_restores_the_configuration_file_exactly() {
    for (there, back) in [
        (["disable", "github"].as_slice(), ["enable", "github"].as_slice()),
        (&["disable", "files"], &["enable", "files"]),
        (&["add", "--no-check", "x", "x-mcp"], &["remove", "x"]),
        (
            &["add", "--no-check", "--json", r#"{ "servers": { "x": { "url": "https://x" } } }"#],
            &["remove", "x"],
        ),
    ] {
        let desk = Desk::with(COMMENTED);
        desk.run(there).await;
        assert_ne!(desk.text(), COMMENTED, "{there:?}");
        desk.run(back).await;
        assert_eq!(desk.text(), COMMENTED, "{back:?}");
    }
}

#[tokio::test]
async fn edit_leaves_a_malformed_file_unchanged() {
    let broken = COMMENTED.replace("\"settings\":", "\"settings\"");
    for words in [
        ["add", "--no-check", "x", "x-mcp"].as_slice(),
        &["add", "--no-check", "--replace", "github", "x-mcp"],
        &["remove", "github"],
        &["enable", "github"],
        &["disable", "github"],
        &["allow", "x"],
        &["deny", "x"],
        &["deny", "--remove", "x"],
        &["allow"],
    ] {
        let desk = Desk::with(&broken);
        let told = desk.run(words).await;
        assert!(told.starts_with("exit 2\n"), "{words:?}: {told}");
        assert!(told.contains("switchboard/mcp.json"), "{told}");
        assert!(told.contains("line 4, column 1"), "{told}");
        assert!(told.contains("hint: correct line 4 of `[HOME]/switchboard/mcp.json`"), "{told}");
        assert!(told.contains("`switchboard config check`"), "{told}");
        let reads = words == ["allow"];
        assert_eq!(told.contains("error: cannot read"), reads, "{words:?}: {told}");
        assert_eq!(desk.text(), broken, "{words:?}");
    }
    let desk = Desk::with("");
    fs::write(&desk.file, b"{ \"x\": \"\xff\" }").unwrap();
    assert!(desk.run(&["allow", "x"]).await.starts_with("exit 2\n"));
    assert_eq!(fs::read(&desk.file).unwrap(), b"{ \"x\": \"\xff\" }");
}

#[tokio::test]
async fn refused_edit_leaves_the_configuration_file_unchanged() {
    let desk = Desk::with(COMMENTED);
    let refusals = [
        ["add", "github", "other-mcp"].as_slice(),
        &["remove", "guthub"],
        &["disable", "nothing-like-it"],
        &["add", "x", "gopher://x"],
        &["add", "x", "--transport", "http", "x-mcp"],
        &["add", "x", "https://x", "--env", "A=b"],
        &["add", "x", "x-mcp", "--header", "A: b"],
        &[
            "add",
            "--scope",
            "project",
            "--json",
            r#"{ "x": { "command": "x", "inheritEnv": true } }"#,
        ],
        &["add", "--json", "{ command: x }"],
        &["deny", "[a-"],
        &["--config", "nowhere.json", "add", "x", "x-mcp"],
    ];
    let mut told = String::new();
    for words in refusals {
        let transcript = desk.run(words).await;
        assert!(transcript.starts_with("exit 2\n--- stdout\n--- stderr\n"), "{transcript}");
        let said = transcript.trim_start_matches("exit 2\n--- stdout\n--- stderr\n");
        told += &format!("$ {}\n{said}", words.join(" "));
    }
    assert_eq!(desk.text(), COMMENTED);
    insta::assert_snapshot!(told, @r#"
    $ add github other-mcp
    error: `[HOME]/switchboard/mcp.json` already has a server named `github`

    hint: replace it with `--replace`
    $ remove guthub
    error: no server is named `guthub`

    hint: did you mean `github`?
    hint: see the servers with `switchboard status`
    $ disable nothing-like-it
    error: no server is named `nothing-like-it`

    hint: see the servers with `switchboard status`
    $ add x gopher://x
    error: the definition of `x` is invalid
      caused by: the `url` of server `x` must begin with http://, https://, sse://, ws:// or wss://
    $ add x --transport http x-mcp
    error: `--transport http` needs a URL
    $ add x https://x --env A=b
    error: a server at a URL takes `--header`, not `--env`
    $ add x x-mcp --header A: b
    error: a server program takes `--env`, not `--header`
    $ add --scope project --json { "x": { "command": "x", "inheritEnv": true } }
    error: the definition of `x` is invalid
      caused by: `mcpServers.x.inheritEnv` is not allowed in a project file
    $ add --json { command: x }
    error: cannot read servers from the snippet
      caused by: the snippet is not JSON
      caused by: line 1, column 3: expected string for object property
    $ deny [a-
    error: `[a-` is not a valid pattern for tool names
    $ --config nowhere.json add x x-mcp
    error: the configuration file `[HOME]/nowhere.json` does not exist

    hint: see the files that are read with `switchboard config path`
    "#);
}

/// A repository may contain a link or pipe in place of its configuration file.
#[tokio::test]
async fn edit_does_not_write_through_a_link_or_pipe() {
    let desk = Desk::with("{}");
    let project = desk.installed.home().join("project");
    fs::create_dir(&project).unwrap();
    let add = async || {
        let mut command = desk.installed.command();
        command
            .args(["add", "--no-check", "--scope", "project", "p", "--", "./run.sh"])
            .current_dir(&project);
        command.stdin(std::process::Stdio::null()).output().await.unwrap()
    };
    let file = project.join(".mcp.json");
    std::os::unix::fs::symlink(&desk.file, &file).unwrap();
    let led_out = add().await;
    assert_eq!(led_out.status.code(), Some(2), "{led_out:?}");
    assert_eq!(desk.text(), "{}");
    fs::remove_file(&file).unwrap();
    rustix::fs::mkfifoat(rustix::fs::CWD, &file, rustix::fs::Mode::RWXU).unwrap();
    let piped = add().await;
    assert!(!piped.status.success() && piped.status.code().is_some(), "{piped:?}");
}

#[tokio::test]
async fn arguments_after_two_dashes_belong_to_the_program() {
    let desk = Desk::with("{}");
    desk.run(&["add", "--no-check", "a", "npx", "pkg", "--env", "TOKEN", "--", "-y", "--port=1"])
        .await;
    desk.run(&["add", "--no-check", "b", "--", "npx", "-y", "pkg", "--env", "x"]).await;
    let text: serde_json::Value = serde_json::from_str(&desk.text()).unwrap();
    let servers = &text["mcpServers"];
    assert_eq!(servers["a"]["args"], serde_json::json!(["pkg", "-y", "--port=1"]));
    assert_eq!(servers["a"]["env"], serde_json::json!({ "TOKEN": "${TOKEN}" }));
    assert_eq!(servers["b"]["args"], serde_json::json!(["-y", "pkg", "--env", "x"]));
}

#[tokio::test]
async fn replace_option_overwrites_an_existing_server() {
    let desk = Desk::with(COMMENTED);
    insta::assert_snapshot!(desk.run(&["add", "--no-check", "--replace", "github", "gh-mcp"]).await, @r#"
    exit 0
    --- stdout
    --- stderr
    [HOME]/switchboard/mcp.json
    @@ -6,7 +6,6 @@
             /* Issues. */
             "github": {
    -            "command": "github-mcp",
    -            "env": { "GITHUB_TOKEN": "…" }, // do not show
    -            "x-mine": true,
    +            "command": "gh-mcp",
    +            // do not show
             },
             "files": { "command": "files-mcp" }, // local
    `github` is configured
    "#);
}

#[tokio::test]
async fn adding_first_server_creates_config_file_with_mode_0600() {
    use std::os::unix::fs::MetadataExt;
    let installed = Installed::bare(PROGRAMS);
    let ran = installed.run(["add", "--no-check", "web", "https://web.example/mcp"]).await;
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let file = installed.home().join("switchboard/mcp.json");
    insta::assert_snapshot!(fs::read_to_string(&file).unwrap(), @r#"
    {
      "$schema": "./mcp.schema.json",
      "mcpServers": {
        "web": {
          "url": "https://web.example/mcp"
        }
      }
    }
    "#);
    assert_eq!(fs::metadata(&file).unwrap().mode() & 0o777, 0o600);
    assert_eq!(fs::metadata(file.parent().unwrap()).unwrap().mode() & 0o777, 0o700);
    let check = installed.run(["config", "check"]).await;
    assert_eq!(check.stderr, "checked 1 file with 1 server: no problem\n");
}

#[tokio::test]
async fn edits_leave_shared_files_of_other_programs_unchanged() {
    let desk = Desk::with("{}");
    let theirs = r#"{ "mcpServers": { "shared": { "command": "shared-mcp" } } }"#;
    let file = desk.installed.write(".config/mcp/mcp.json", theirs);
    insta::assert_snapshot!(desk.run(&["remove", "shared"]).await, @r#"
    exit 2
    --- stdout
    --- stderr
    error: `shared` is defined in `[HOME]/.config/mcp/mcp.json`, which belongs to another program

    hint: disable it with `switchboard disable shared`
    "#);
    desk.run(&["disable", "shared"]).await;
    insta::assert_snapshot!(desk.text(), @r#"
    {
      "mcpServers": {
        "shared": {
          "disabled": true
        }
      }
    }
    "#);
    assert!(desk.run(&["status"]).await.contains("⊘ shared"));
    desk.run(&["enable", "shared"]).await;
    assert_eq!(desk.text(), "{}");
    assert_eq!(fs::read_to_string(&file).unwrap(), theirs);

    fs::write(&file, theirs.replace("\"shared-mcp\"", "\"shared-mcp\", \"disabled\": true"))
        .unwrap();
    desk.run(&["enable", "shared"]).await;
    assert!(desk.text().contains(r#""disabled": false"#), "{}", desk.text());
    assert!(!desk.run(&["status"]).await.contains("⊘ shared"));
}

#[tokio::test]
async fn added_project_server_is_pending_and_disable_stays_local() {
    let desk = Desk::with("{}");
    insta::assert_snapshot!(
        desk.run(&["add", "--no-check", "--scope", "project", "local", "local-mcp", "--env", "A"]).await, @r#"
    exit 0
    --- stdout
    --- stderr
    [HOME]/.mcp.json
    @@ -0,0 +1,10 @@
    +{
    +  "mcpServers": {
    +    "local": {
    +      "command": "local-mcp",
    +      "env": {
    +        "A": "${A}"
    +      }
    +    }
    +  }
    +}
    `local` is configured
    `local` is pending; approve it with `switchboard trust`
    "#);
    let shared = desk.installed.home().join(".mcp.json");
    let text = fs::read_to_string(&shared).unwrap();
    desk.run(&["disable", "local"]).await;
    assert_eq!(fs::read_to_string(&shared).unwrap(), text);
    let ours = desk.installed.home().join(".switchboard/mcp.json");
    assert!(fs::read_to_string(&ours).unwrap().contains(r#""disabled": true"#));
    desk.run(&["enable", "local"]).await;
    assert!(!ours.exists());
    desk.run(&["remove", "local"]).await;
    assert_eq!(fs::read_to_string(&shared).unwrap(), "{\n  \"mcpServers\": {}\n}\n");
    assert_eq!(desk.text(), "{}");
}

#[tokio::test]
async fn edit_writes_under_the_existing_spelling_of_mcp_servers() {
    let desk = Desk::with("{\n  \"mcp-servers\": { \"a\": { \"command\": \"a\" } }\n}\n");
    desk.run(&["add", "--no-check", "b", "b-mcp"]).await;
    let both = desk.text();
    assert!(
        both.contains(r#""mcp-servers": { "a": { "command": "a" }, "b": { "command": "b-mcp" } }"#),
        "{both}"
    );
    fs::write(
        &desk.file,
        both.replace("{\n  ", "{\n  \"mcpServers\": { \"b\": { \"url\": \"https://b\" } },\n  "),
    )
    .unwrap();
    desk.run(&["remove", "b"]).await;
    let text = desk.text();
    assert!(!text.contains("\"b\"") && text.contains("\"a\""), "{text}");
}

#[tokio::test]
async fn allow_and_deny_without_pattern_print_the_rules() {
    let desk = Desk::with("{}");
    desk.run(&["allow", "a_*"]).await;
    desk.run(&["deny", "a_*"]).await;
    insta::assert_snapshot!(desk.run(&["allow", "a_*"]).await, @r#"
    exit 0
    --- stdout
    --- stderr
    `a_*` is allowed already, nothing was changed
    warning: `a_*` also matches a `deny` rule, which takes precedence
    "#);
    insta::assert_snapshot!(desk.run(&["deny"]).await, @r#"
    exit 0
    --- stdout
    a_*
    --- stderr
    "#);
    insta::assert_snapshot!(desk.run(&["deny", "--json"]).await, @r#"
    exit 0
    --- stdout
    {
      "deny": [
        "a_*"
      ]
    }
    --- stderr
    "#);
    desk.run(&["deny", "--remove", "a_*"]).await;
    insta::assert_snapshot!(desk.run(&["deny"]).await, @r#"
    exit 0
    --- stdout
    --- stderr
    no patterns
    "#);
}

/// Adds a server to a project whose `.switchboard/mcp.json` contains `override_file`; returns
/// whether the server is trusted.
fn approved_after_typing(override_file: Option<&str>) -> bool {
    let home = Home::new();
    let environment = home.environment();
    let paths = Paths::of(&environment);
    if let Some(text) = override_file {
        fs::create_dir(home.path().join(".switchboard")).unwrap();
        fs::write(home.path().join(".switchboard/mcp.json"), text).unwrap();
    }
    let options = LoadOptions { project: home.path().to_path_buf(), ..LoadOptions::default() };
    let editor = Editor::new(&environment, &paths, options.clone());
    let entry = serde_json::json!({ "command": "local-mcp" }).as_object().cloned().unwrap();
    let typed = [NewServer { name: ServerName::new("local").unwrap(), entry }];
    editor.add(Scope::Project, &typed, Existing::Refuse, EditEffect::Written).unwrap();
    let before = load(&environment, &paths, &options).unwrap();
    assert!(!before.config.servers.contains_key("local"), "writing a server does not trust it");
    editor.approve_added(&typed).unwrap();
    load(&environment, &paths, &options).unwrap().config.servers.contains_key("local")
}

#[test]
fn added_server_is_trusted_unless_another_file_changes_it() {
    assert!(approved_after_typing(None));
    let more = r#"{ "mcpServers": { "local": { "env": { "A": "b" } } } }"#;
    assert!(!approved_after_typing(Some(more)));
}
