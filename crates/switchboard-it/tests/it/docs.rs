//! Runs the transcripts of the README and the guide and compares their output.

use std::fs;
use std::path::Path;
use std::time::Duration;

use switchboard::approval::ApprovalAnswer;
use switchboard::{Gateway, Headless, Session, explain, render, request};
use switchboard_it::faces::{Face, Stdio};
use switchboard_it::harness::Home;
use switchboard_it::program::Programs;
use switchboard_it::scenario::{Step, Story, play};

/// Runs `console` blocks with the real program in a new home. `TRYCMD=overwrite` updates the files
/// instead.
#[test]
fn documented_commands_print_the_documented_output() {
    let home = Home::new();
    let cases = transcripts(&home);
    cases.case("../../README.md").case("../../docs/guide/*.md").skip(EDITING).skip(SIGN_IN);
    cases.run();
}

/// The commands of this page change files, so they run in a home of their own.
#[test]
fn documented_edit_commands_print_the_documented_output() {
    let home = Home::new();
    let cases = transcripts(&home);
    cases.insert_var("[HOME]", home.path().to_string_lossy().into_owned()).unwrap();
    cases.case(EDITING);
    cases.run();
}

const EDITING: &str = "../../docs/guide/editing.md";

/// This page needs a browser, so `sign_in/guide.rs` tests it.
const SIGN_IN: &str = "../../docs/guide/sign-in.md";

fn transcripts(home: &Home) -> trycmd::TestCases {
    let cases = trycmd::TestCases::new();
    cases
        .register_bin("switchboard", Path::new(env!("CARGO_BIN_EXE_switchboard-dup")))
        .env("HOME", home.path().to_string_lossy())
        .env("NO_COLOR", "1");
    // An empty variable is treated as unset, so no file of the user is read.
    for moved in ["SWITCHBOARD_HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME"] {
        cases.env(moved, "");
    }
    cases
}

/// Runs the `mcp` blocks on the built-in server as one scenario.
#[tokio::test]
async fn documented_mcp_requests_return_the_documented_answers() {
    assert!(asked::<Demo>("../../README.md", "{}").await > 1, "the README has no examples");
    assert!(asked::<Demo>("search-and-call.md", "{}").await > 10, "the guide has no examples");
}

/// Runs the program, because the library alone cannot run filters.
#[tokio::test]
async fn requests_in_the_results_guide_return_documented_answers() {
    let config =
        r#"{ "mcpServers": { "demo": { "command": "fixture-server", "args": ["everything"] } } }"#;
    assert!(asked::<Stdio>("results.md", config).await > 5, "the guide has no examples");
}

/// Runs the `mcp` blocks of a guide page, and returns the number of requests.
async fn asked<F: Face>(page: &str, config: &str) -> usize {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guide").join(page);
    let page = fs::read_to_string(page).unwrap();
    let blocks = page.split("\n```mcp\n").skip(1).filter_map(|rest| rest.split("\n```").next());
    let asked: Vec<&str> = blocks.collect();
    let asked = asked.join("\n\n");
    let text = format!("# guide\nfaces: library\n\n--- config\n{config}\n\n{asked}\n");
    let story = Story::parse(&text).unwrap();
    let told = play::<F>(&story, crate::PROGRAMS).await;
    for (expected, seen) in story.steps.iter().zip(&told.steps) {
        assert_eq!(expected, seen);
    }
    story.steps.iter().filter(|step| matches!(step, Step::Ask { .. })).count()
}

/// The built-in server after its first listing, for a host that cannot ask the user.
struct Demo {
    session: Session,
    _home: Home,
}

impl Face for Demo {
    async fn open(_: Programs, _: &str) -> Self {
        let home = Home::new();
        let gateway = Gateway::builder(home.environment()).demo().build();
        gateway.list_missing(|_, _, _| {}).await;
        Self { session: gateway.session(Headless), _home: home }
    }

    async fn ask(&mut self, arguments: &str) -> String {
        let arguments = serde_json::from_str(arguments).unwrap();
        let parsed = request::parse(arguments).map_err(explain::request_error);
        let answer = match parsed {
            Ok(parsed) => self.session.handle(parsed.request).await,
            Err(failure) => Err(failure),
        };
        answer.map_or_else(|f| render::text::failure(&f), |reply| render::text::reply(&reply))
    }

    fn will_answer(&mut self, _: &[ApprovalAnswer]) {
        unreachable!("the guide has no approval questions");
    }

    fn asked(&self) -> Vec<String> {
        Vec::new()
    }

    async fn advance(&mut self, _: Duration) {
        unreachable!("the guide does not wait");
    }

    async fn restart(self) -> Self {
        self
    }
}
