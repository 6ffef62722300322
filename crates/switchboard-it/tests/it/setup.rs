//! The guided first run: what is answered with yes is written, and nothing else is.

use std::fs;
use std::path::PathBuf;

use switchboard_it::program::Installed;
use switchboard_it::terminal::{self, Shown};

use crate::PROGRAMS;

const CURSOR: &str = r#"{ "mcpServers": { "notes": { "command": "notes-mcp" } } }"#;

/// A machine with Cursor, and a program that is not configured yet.
struct Desk {
    installed: Installed,
    file: PathBuf,
    /// The command line of the program.
    program: String,
}

impl Desk {
    fn new() -> Desk {
        let installed = Installed::bare(PROGRAMS);
        installed.write(".cursor/mcp.json", CURSOR);
        let script = installed.write("words.toml", "[[tools]]\nname = 'shout'\n");
        let file = installed.home().join("switchboard/mcp.json");
        let log = installed.spawn_log();
        let program =
            format!("fixture-server '{}' --spawn-log {}", script.display(), log.display());
        Desk { installed, file, program }
    }

    async fn type_into(&self, command: &str, answers: &[&str]) -> Shown {
        let mut program = self.installed.command();
        program.args([command, "--color", "never"]);
        let typed: String = answers.iter().map(|answer| format!("{answer}\n")).collect();
        terminal::run(&mut program, &typed).await
    }

    fn text(&self) -> Option<String> {
        let text = fs::read_to_string(&self.file).ok()?;
        Some(text.replace(&*self.installed.home().to_string_lossy(), "[HOME]"))
    }
}

#[tokio::test]
async fn a_setup_imports_and_adds_what_was_agreed_to() {
    let desk = Desk::new();
    let answers = ["y", "y", "y", "", "words", &desk.program, "HOME", "", "y"];
    let shown = desk.type_into("setup", &answers).await;
    assert_eq!(shown.code, Some(0), "{}", shown.screen);
    for part in ["notes  stdio", "+  \"imports\": [\"cursor\"]", "`words` works: 1 tool", "Next: "]
    {
        assert!(shown.screen.contains(part), "{part} is not in {}", shown.screen);
    }
    insta::assert_snapshot!(desk.text().unwrap(), @r#"
    {
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
    let ran = desk.installed.run(["tools", "words"]).await;
    assert!(ran.stdout.contains("words_shout"), "{ran:?}");
    assert_eq!(desk.installed.spawned().len(), 1, "what was tried is known");
}

#[tokio::test]
async fn whoever_leaves_a_question_leaves_everything_as_it_was_before() {
    let desk = Desk::new();
    let answers = ["y", "y", "y", "", "words", &desk.program, "", "", "y"];
    for given in 0..answers.len() {
        fs::remove_file(&desk.file).ok();
        let shown = desk.type_into("setup", &answers[..given]).await;
        assert_eq!(shown.code, Some(130), "after {given}: {}", shown.screen);
        let said = if given < 2 { "nothing was written" } else { "nothing more was written" };
        assert!(shown.screen.contains(&format!("stopped, {said}")), "{}", shown.screen);
        let imported = "{\n  \"imports\": [\"cursor\"]\n}\n".to_owned();
        assert_eq!(desk.text(), (given >= 2).then_some(imported), "after {given}");
    }
    fs::remove_file(&desk.file).ok();
    let mut program = desk.installed.command();
    let shown = terminal::interrupt(program.arg("setup"), "y\n", "Write this?").await;
    assert_eq!(shown.code, Some(130), "{}", shown.screen);
    assert_eq!(desk.text(), None);
}

#[tokio::test]
async fn a_no_writes_nothing() {
    let desk = Desk::new();
    for answers in [
        ["n", "n"].as_slice(),
        &["y", "n", "n"],
        &["n", "y", "", "words", &desk.program, "", "", "n"],
        &["n", "y", "", "broken", "no-such-program", "", "", "n"],
    ] {
        let shown = desk.type_into("setup", answers).await;
        assert_eq!((shown.code, desk.text()), (Some(0), None), "{}", shown.screen);
    }
}

#[tokio::test]
async fn a_server_that_does_not_connect_can_be_kept() {
    let desk = Desk::new();
    let answers = ["", "later", "no-such-program", "", "", "y", "y"];
    let shown = desk.type_into("connect", &answers).await;
    assert_eq!(shown.code, Some(0), "{}", shown.screen);
    assert!(shown.screen.contains("`no-such-program` was not found"), "{}", shown.screen);
    insta::assert_snapshot!(desk.text().unwrap(), @r#"
    {
      "mcpServers": {
        "later": {
          "command": "no-such-program"
        }
      }
    }
    "#);
    let shown = desk.type_into("connect", &["", "dropped", "no-such-program", "", "", "n"]).await;
    assert_eq!(shown.code, Some(5), "{}", shown.screen);
    let answers = ["", "later", "sooner", "x ${NO_SUCH}", "", "", "n"];
    let shown = desk.type_into("connect", &answers).await;
    assert_eq!(shown.code, Some(2), "{}", shown.screen);
    let taken = "warning: a server is called `later` already: choose another name";
    assert!(shown.screen.contains(taken), "{}", shown.screen);
    let remedy = "hint: set the environment variable `NO_SUCH`";
    assert!(shown.screen.contains(remedy), "{}", shown.screen);
    assert!(!desk.text().unwrap().contains("dropped"));
}

#[tokio::test]
async fn a_server_for_the_project_is_trusted_by_whoever_typed_it() {
    let desk = Desk::new();
    let shown = desk.type_into("connect", &["", "words", &desk.program, "", "project", "y"]).await;
    assert_eq!(shown.code, Some(0), "{}", shown.screen);
    assert!(shown.screen.contains("`words` is trusted in this project"), "{}", shown.screen);
    assert_eq!(desk.text(), None);
    let ran = desk.installed.run(["tools", "words"]).await;
    assert!(ran.stdout.contains("words_shout"), "{ran:?}");
}

#[tokio::test]
async fn without_a_terminal_nothing_is_asked() {
    let desk = Desk::new();
    for command in ["setup", "connect"] {
        let ran = desk.installed.run_with_input([command], "y\ny\ny\n").await;
        assert_eq!((ran.code, desk.text()), (Some(2), None), "{ran:?}");
    }
    let ran = desk.installed.run(["setup"]).await;
    insta::assert_snapshot!(ran.transcript(desk.installed.home()), @r"
    exit 2
    --- stdout
    --- stderr
    error: a setup asks questions, and there is nobody to ask

    hint: use what other hosts have with `switchboard import`, or add a server with `switchboard add`
    ");
    let ran = desk.installed.run(["connect"]).await;
    insta::assert_snapshot!(ran.transcript(desk.installed.home()), @r"
    exit 2
    --- stdout
    --- stderr
    error: the name of a server is missing

    hint: see the servers with `switchboard status`
    ");
}

#[tokio::test]
async fn a_file_that_does_not_parse_is_said_before_anything_is_asked() {
    let desk = Desk::new();
    desk.installed.write("switchboard/mcp.json", "{ oops");
    let shown = desk.type_into("setup", &["y", "y"]).await;
    assert_eq!(shown.code, Some(2), "{}", shown.screen);
    assert!(!shown.screen.contains("Use the servers"), "{}", shown.screen);
    assert_eq!(desk.text().unwrap(), "{ oops");
}
