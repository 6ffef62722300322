//! `switchboard setup` and interactive `connect`: only confirmed changes are written.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use switchboard_it::program::Installed;
use switchboard_it::terminal::{self, Shown};

use crate::PROGRAMS;

const CURSOR: &str = r#"{ "mcpServers": { "notes": { "command": "notes-mcp" } } }"#;

/// A machine with Cursor, and a server program that is not configured yet.
struct Desk {
    installed: Installed,
    file: PathBuf,
    /// The command line of the server program.
    program: String,
}

impl Desk {
    fn new() -> Desk {
        let installed = Installed::bare(PROGRAMS);
        installed.write(".cursor/mcp.json", CURSOR);
        let script = installed.write("words.toml", "[[tools]]\nname = 'shout'\n");
        fs::create_dir(installed.home().join("bin")).unwrap();
        symlink(PROGRAMS.switchboard, installed.home().join("bin/switchboard")).unwrap();
        let file = installed.home().join("switchboard/mcp.json");
        let log = installed.spawn_log();
        let program =
            format!("fixture-server '{}' --spawn-log {}", script.display(), log.display());
        Desk { installed, file, program }
    }

    async fn type_into(&self, command: &str, answers: &[&str]) -> Shown {
        let mut program = self.installed.command();
        // `install` writes the program's bare name, so it must be in `PATH`.
        let fixtures = Path::new(PROGRAMS.fixture_server).parent().unwrap().display();
        let bin = self.installed.home().join("bin");
        let path = format!("{}:{fixtures}:/usr/bin:/bin", bin.display());
        program.env("PATH", path).args([command, "--color", "never"]);
        let typed: String = answers.iter().map(|answer| format!("{answer}\n")).collect();
        terminal::run(&mut program, &typed).await
    }

    fn text(&self) -> Option<String> {
        let text = fs::read_to_string(&self.file).ok()?;
        Some(text.replace(&*self.installed.home().to_string_lossy(), "[HOME]"))
    }
}

#[tokio::test]
async fn setup_imports_and_adds_only_confirmed_servers() {
    let machine = Desk::new();
    let answers = ["y", "y", "", "words", &machine.program, "HOME", "", "y", "y"];
    let shown = machine.type_into("setup", &answers).await;
    assert_eq!(shown.code, Some(0), "{}", shown.screen);
    for part in [
        "notes  stdio",
        "Use the servers of Cursor? [y/N]",
        "+  \"imports\": [\"cursor\"]",
        "`words` works: 1 tool",
        "Add Switchboard to Cursor? [y/N]",
        "Switchboard is installed in Cursor",
        "Next: ",
    ] {
        assert!(shown.screen.contains(part), "{part} is not in {}", shown.screen);
    }
    insta::assert_snapshot!(machine.text().unwrap(), @r#"
    {
      "$schema": "./mcp.schema.json",
      "imports": ["cursor"],
      "mcpServers": {
        "words": {
          "command": "fixture-server",
          "args": ["[HOME]/words.toml", "--spawn-log", "[HOME]/spawns"],
          "env": {
            "HOME": "${HOME}"
          }
        }
      }
    }
    "#);
    let mut program = machine.installed.command();
    let shown = terminal::run(program.args(["tools", "words"]), "").await;
    assert!(shown.screen.contains("words_shout"), "{}", shown.screen);
    assert_eq!(
        machine.installed.spawned().len(),
        1,
        "the listing of the connection test was not cached"
    );
}

#[tokio::test]
async fn aborted_setup_keeps_only_confirmed_changes() {
    let machine = Desk::new();
    let answers = ["y", "y", "", "words", &machine.program, "", "", "y"];
    for given in 0..answers.len() {
        fs::remove_file(&machine.file).ok();
        let shown = machine.type_into("setup", &answers[..given]).await;
        assert_eq!(shown.code, Some(130), "after {given}: {}", shown.screen);
        let said = if given < 1 { "nothing was written" } else { "nothing more was written" };
        assert!(shown.screen.contains(&format!("stopped, {said}")), "{}", shown.screen);
        let imported =
            "{\n  \"$schema\": \"./mcp.schema.json\",\n  \"imports\": [\"cursor\"]\n}\n".to_owned();
        assert_eq!(machine.text(), (given >= 1).then_some(imported), "after {given}");
    }
    fs::remove_file(&machine.file).ok();
    let mut program = machine.installed.command();
    let shown = terminal::interrupt(program.arg("setup"), "", "Use the servers of").await;
    assert_eq!(shown.code, Some(130), "{}", shown.screen);
    assert_eq!(machine.text(), None);
}

#[tokio::test]
async fn declined_setup_writes_nothing() {
    let machine = Desk::new();
    for answers in [
        ["n", "n", "n"].as_slice(),
        &["", "", ""],
        &["n", "y", "", "words", &machine.program, "", "", "n", "n"],
        &["n", "y", "", "broken", "no-such-program", "", "", "n", "n"],
    ] {
        let shown = machine.type_into("setup", answers).await;
        assert_eq!((shown.code, machine.text()), (Some(0), None), "{}", shown.screen);
    }
}

#[tokio::test]
async fn connect_saves_a_failing_server_if_user_confirms() {
    let machine = Desk::new();
    let answers = ["", "later", "no-such-program", "", "", "w"];
    let shown = machine.type_into("connect", &answers).await;
    assert_eq!(shown.code, Some(0), "{}", shown.screen);
    assert!(shown.screen.contains("`no-such-program` was not found"), "{}", shown.screen);
    insta::assert_snapshot!(machine.text().unwrap(), @r#"
    {
      "$schema": "./mcp.schema.json",
      "mcpServers": {
        "later": {
          "command": "no-such-program"
        }
      }
    }
    "#);
    let shown =
        machine.type_into("connect", &["", "dropped", "no-such-program", "", "", "n"]).await;
    assert_eq!(shown.code, Some(5), "{}", shown.screen);
    let answers = ["", "later", "sooner", "x ${NO_SUCH}", "", "", "n"];
    let shown = machine.type_into("connect", &answers).await;
    assert_eq!(shown.code, Some(2), "{}", shown.screen);
    let taken = "warning: a server is called `later` already: choose another name";
    assert!(shown.screen.contains(taken), "{}", shown.screen);
    let remedy = "hint: set the environment variable `NO_SUCH`";
    assert!(shown.screen.contains(remedy), "{}", shown.screen);
    assert!(!machine.text().unwrap().contains("dropped"));
}

#[tokio::test]
async fn project_server_added_in_setup_is_trusted() {
    let machine = Desk::new();
    let shown =
        machine.type_into("connect", &["", "words", &machine.program, "", "project", "y"]).await;
    assert_eq!(shown.code, Some(0), "{}", shown.screen);
    assert!(shown.screen.contains("`words` is trusted in this project"), "{}", shown.screen);
    assert_eq!(machine.text(), None);
    let ran = machine.installed.run(["tools", "words"]).await;
    assert!(ran.stdout.contains("words_shout"), "{ran:?}");
}

#[tokio::test]
async fn setup_without_a_terminal_is_refused() {
    let machine = Desk::new();
    for command in ["setup", "connect"] {
        let ran = machine.installed.run_with_input([command], "y\ny\ny\n").await;
        assert_eq!((ran.code, machine.text()), (Some(2), None), "{ran:?}");
    }
    let ran = machine.installed.run(["setup"]).await;
    insta::assert_snapshot!(ran.transcript(machine.installed.home()), @r"
    exit 2
    --- stdout
    --- stderr
    error: `setup` is interactive and needs a terminal

    hint: import servers of other hosts with `switchboard import`, or add a server with `switchboard add`
    ");
    let ran = machine.installed.run(["connect"]).await;
    insta::assert_snapshot!(ran.transcript(machine.installed.home()), @r"
    exit 2
    --- stdout
    --- stderr
    error: the name of a server is missing

    hint: see the servers with `switchboard status`
    ");
}

#[tokio::test]
async fn malformed_file_stops_setup_before_any_question() {
    let machine = Desk::new();
    machine.installed.write("switchboard/mcp.json", "{ oops");
    let shown = machine.type_into("setup", &["y", "y"]).await;
    assert_eq!(shown.code, Some(2), "{}", shown.screen);
    assert!(!shown.screen.contains("Use the servers"), "{}", shown.screen);
    assert_eq!(machine.text().unwrap(), "{ oops");
}

#[tokio::test]
async fn failing_command_line_can_be_corrected_in_setup() {
    let machine = Desk::new();
    let answers = ["", "words", "no-such-program", "", "", "c", &machine.program, "", "", "y"];
    let shown = machine.type_into("connect", &answers).await;
    assert_eq!(shown.code, Some(0), "{}", shown.screen);
    for part in ["`no-such-program` was not found", "What now?", "`words` works: 1 tool"] {
        assert!(shown.screen.contains(part), "{part} is not in {}", shown.screen);
    }
    assert!(!machine.text().unwrap().contains("no-such-program"));
    assert!(shown.screen.contains("[Enter: no-such-program]"), "{}", shown.screen);
}

#[tokio::test]
async fn setup_accepts_an_endpoint_at_the_first_question() {
    let machine = Desk::new();
    let answers = ["n", "http://127.0.0.1:1/mcp", "far", "", "w", "n"];
    let shown = machine.type_into("setup", &answers).await;
    assert_eq!(shown.code, Some(0), "{}", shown.screen);
    let answers = ["n", "maybe", &*machine.program, "a/b", "my words", "words", "", "", "y", "n"];
    let shown = machine.type_into("setup", &answers).await;
    assert_eq!(shown.code, Some(0), "{}", shown.screen);
    let again = "warning: enter y or n, or its command line, URL or JSON";
    assert!(shown.screen.contains(again), "{}", shown.screen);
    let warning = "warning: a name has only letters, digits, `-`, `_` and `.`";
    assert_eq!(shown.screen.matches(warning).count(), 2, "{}", shown.screen);
    let text = machine.text().unwrap();
    assert!(text.contains("\"url\": \"http://127.0.0.1:1/mcp\""), "{text}");
    assert!(text.contains("\"words\": {"), "{text}");
}

#[tokio::test]
async fn connect_accepts_json_pasted_at_the_first_question() {
    let machine = Desk::new();
    let words: Vec<&str> = machine.program.split(' ').collect();
    let script = words[1].trim_matches('\'');
    let json = format!(
        "{{\n  \"mcpServers\": {{\n    \"pasted\": {{ \"command\": \"fixture-server\",\n      \
         \"args\": [{script:?}] }}\n  }}\n}}"
    );
    let shown = machine.type_into("connect", &[&json, "", "y"]).await;
    assert_eq!(shown.code, Some(0), "{}", shown.screen);
    assert!(shown.screen.contains("`pasted` works: 1 tool"), "{}", shown.screen);
    assert!(machine.text().unwrap().contains("\"pasted\""));
    // For JSON without a name, the name is requested.
    let nameless = format!("{{ \"command\": \"fixture-server\", \"args\": [{script:?}] }}");
    let shown = machine.type_into("connect", &[&nameless, "named", "", "y"]).await;
    assert_eq!(shown.code, Some(0), "{}", shown.screen);
    assert!(machine.text().unwrap().contains("\"named\""));
}

#[tokio::test]
async fn json_pasted_at_a_yes_no_question_is_accepted() {
    let machine = Desk::new();
    let words: Vec<&str> = machine.program.split(' ').collect();
    let script = words[1].trim_matches('\'');
    let json =
        format!("{{ \"pasted\": {{ \"command\": \"fixture-server\", \"args\": [{script:?}] }} }}");
    let shown = machine.type_into("setup", &["n", &json, "", "y", "n"]).await;
    assert_eq!(shown.code, Some(0), "{}", shown.screen);
    assert!(machine.text().unwrap().contains("\"pasted\""), "{}", shown.screen);
}

#[tokio::test]
async fn new_configuration_file_gets_a_schema_file_beside_it() {
    let machine = Desk::new();
    machine.installed.run(["add", "--no-check", "words", "words-mcp"]).await;
    let text = machine.text().unwrap();
    assert!(text.starts_with("{\n  \"$schema\": \"./mcp.schema.json\",\n"), "{text}");
    let beside = machine.file.with_file_name("mcp.schema.json");
    let schema = fs::read_to_string(&beside).unwrap();
    let printed = machine.installed.run(["config", "schema"]).await;
    assert_eq!(schema, printed.stdout);
    // A schema file of another version is replaced if the configuration file refers to it.
    let older = r#"{ "title": "Switchboard: mcp.json" }"#;
    machine.installed.write("switchboard/mcp.schema.json", older);
    machine.installed.run(["disable", "words"]).await;
    assert_eq!(fs::read_to_string(&beside).unwrap(), schema);
    // A schema file that the user wrote is not replaced, nor is one behind a link.
    machine.installed.write("switchboard/mcp.schema.json", "{}");
    machine.installed.run(["enable", "words"]).await;
    assert_eq!(fs::read_to_string(&beside).unwrap(), "{}");
    let elsewhere = machine.installed.write("own.json", older);
    fs::remove_file(&beside).unwrap();
    symlink(&elsewhere, &beside).unwrap();
    machine.installed.run(["disable", "words"]).await;
    assert_eq!(fs::read_to_string(&elsewhere).unwrap(), older);
    fs::remove_file(&beside).unwrap();
    machine.installed.write("switchboard/mcp.json", "{}");
    machine.installed.write("switchboard/mcp.schema.json", "{}");
    machine.installed.run(["add", "--no-check", "words", "words-mcp"]).await;
    assert_eq!(fs::read_to_string(&beside).unwrap(), "{}");
}

#[tokio::test]
async fn add_command_tests_the_server_and_suggests_next_command() {
    let machine = Desk::new();
    let words: Vec<&str> = machine.program.split(' ').collect();
    let script = words[1].trim_matches('\'');
    let ran = machine.installed.run(["add", "words", "fixture-server", script]).await;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.stderr.contains("`words` works: 1 tool"), "{ran:?}");
    assert!(ran.stderr.contains("next: see them with `switchboard tools words`"), "{ran:?}");
    let ran = machine.installed.run(["add", "broken", "no-such-program"]).await;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.stderr.contains("`broken` is configured, but it does not work yet"), "{ran:?}");
    assert!(ran.stderr.contains("`no-such-program` was not found"), "{ran:?}");
    assert!(ran.stderr.contains("`switchboard remove broken`"), "{ran:?}");
    let pasted = r#"{ "command": "no-such-program --with words" }"#;
    let ran = machine.installed.run(["add", "--no-check", "split", "--json", pasted]).await;
    assert!(!ran.stderr.contains("does not work"), "{ran:?}");
    assert!(
        machine.text().unwrap().contains(r#""args": ["--with", "words"]"#),
        "{:?}",
        machine.text()
    );
}

#[tokio::test]
async fn config_set_writes_one_key_and_rejects_wrong_values() {
    let machine = Desk::new();
    machine.installed.run(["add", "--no-check", "words", "words-mcp"]).await;
    let ran = machine.installed.run(["config", "set", "toolPrefix", "short"]).await;
    assert!(ran.stderr.contains("`toolPrefix` is set"), "{ran:?}");
    let env = ["config", "set", "--server", "words", "env.LOG", "debug"];
    let ran = machine.installed.run(env).await;
    assert!(ran.stderr.contains("`env.LOG` of `words` is set"), "{ran:?}");
    let text = machine.text().unwrap();
    assert!(text.contains(r#""toolPrefix": "short""#) && text.contains(r#""LOG": "debug""#));
    for (line, said) in [
        ("config set toolPrefix shorter", "must be"),
        ("config set toolPrefx short", "did you mean `toolPrefix`"),
        ("config set --server word env.A b", "did you mean `words`"),
    ] {
        let ran = machine.installed.run(line.split(' ')).await;
        assert_eq!(ran.code, Some(2), "{ran:?}");
        assert!(ran.stderr.contains(said), "{said}: {ran:?}");
    }
    assert_eq!(machine.text().unwrap(), text);
    let ran = machine.installed.run(["config", "set", "toolPrefix", "--unset"]).await;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(!machine.text().unwrap().contains("toolPrefix"));
}

#[tokio::test]
async fn config_edit_opens_the_editor_and_reports_mistakes() {
    let machine = Desk::new();
    let editor = machine.installed.write("editor.sh", "#!/bin/sh\necho \"$1\" > \"$2\"\n");
    let line = |text: &str| format!("sh {} '{text}'", editor.display());
    let edit = |text: &str| {
        let mut command = machine.installed.command();
        command.args(["config", "edit"]).env("EDITOR", line(text)).env_remove("VISUAL");
        command
    };
    let good = r#"{ "settings": { "maxTools": 5 } }"#;
    let ran = edit(good).output().await.unwrap();
    assert!(ran.status.success(), "{ran:?}");
    assert_eq!(machine.text().unwrap().trim(), good);
    let ran = edit("{ half").output().await.unwrap();
    assert_eq!(ran.status.code(), Some(2), "{ran:?}");
    let mut command = machine.installed.command();
    command.args(["config", "edit"]).env("EDITOR", "no-such-editor").env_remove("VISUAL");
    let ran = command.output().await.unwrap();
    let said = String::from_utf8_lossy(&ran.stderr).into_owned();
    assert!(said.contains("cannot start the editor `no-such-editor`"), "{said}");
}
