//! Every kind of failure as it is printed.

use std::time::Duration;

use switchboard::failure::{Code, Subject};
use switchboard::name::ServerName;

use super::*;

#[derive(Debug, thiserror::Error)]
#[error("what was attempted ({code})")]
struct Attempt {
    code: Code,
    #[source]
    cause: Cause,
}

#[derive(Debug, thiserror::Error)]
#[error("what prevented it")]
struct Cause;

fn name(name: &str) -> ServerName {
    ServerName::new(name).unwrap()
}

/// The hints that the engine gives with each code.
fn hints(code: Code) -> Vec<Hint> {
    let files = || name("files");
    match code {
        Code::BadRequest => vec![Hint::UseArgs],
        Code::UnknownTool => vec![
            Hint::DidYouMean(vec!["files_read".to_owned(), "files_write".to_owned()]),
            Hint::NotListedYet(vec![name("github"), name("linear")]),
            Hint::Search("read it's file".to_owned()),
        ],
        Code::AmbiguousTool => {
            vec![Hint::Choose(vec!["a_read".to_owned(), "b_read".to_owned()])]
        }
        Code::UnknownServer => vec![Hint::DidYouMean(vec!["files".to_owned()]), Hint::ListServers],
        Code::ServerDisabled => vec![Hint::Enable(files())],
        Code::Config => {
            vec![Hint::Replace, Hint::Disable(files()), Hint::Configure, Hint::ListFiles]
        }
        Code::TrustRequired => vec![Hint::Trust(name("my files"))],
        Code::SignInRequired => vec![
            Hint::SignIn(files()),
            Hint::GiveToken(files()),
            Hint::SetToken(files()),
            Hint::Unlock,
        ],
        Code::BadArguments => vec![Hint::Expected("a: number\nb?: number".to_owned())],
        Code::ApprovalRequired => vec![Hint::AskUser, Hint::Allow("files/read_?".to_owned())],
        Code::ApprovalDenied => vec![Hint::LiftDenial("files/read_?".to_owned())],
        Code::ToolChanged => vec![Hint::ListTools(files())],
        Code::NotReadOnly => vec![Hint::UseWriteTool(Some("files_write".to_owned()))],
        Code::ToolBlocked => vec![Hint::Accept(files())],
        Code::ConnectFailed => vec![
            Hint::CheckCommand("npx".to_owned()),
            Hint::CheckUrl,
            Hint::Stderr(vec!["\u{1b}[31mno such module".to_owned(), "  at main".to_owned()]),
            Hint::ReadLog(files()),
        ],
        Code::Starting => vec![Hint::RetryAfter(Duration::from_secs(15))],
        Code::Backoff | Code::CrashLoop => {
            vec![Hint::RetryAfter(Duration::from_secs(90)), Hint::Connect(files())]
        }
        Code::TimedOut => vec![Hint::Setting("requestTimeoutMs")],
        Code::AnswerTooLarge => vec![Hint::Setting("maxFrameBytes")],
        Code::OutcomeUnknown => vec![Hint::CheckOutcome],
        Code::Disconnected => vec![Hint::Connect(files())],
        Code::UnknownResource => vec![Hint::ListResources],
        Code::UnknownPrompt => vec![Hint::ListPrompts],
        Code::UnknownResult
        | Code::BadPattern
        | Code::BadFilter
        | Code::NoInstructions
        | Code::ConnectionLost
        | Code::ServerError
        | Code::ShuttingDown
        | Code::Storage => Vec::new(),
    }
}

fn failure(code: Code) -> Failure {
    let mut failure = Failure::new(code, Subject::Request, Attempt { code, cause: Cause });
    failure.hints = hints(code);
    failure
}

#[test]
#[expect(clippy::too_many_lines, reason = "the reports are best read here")]
fn every_error_code_is_reported_with_its_hints() {
    let reports: Vec<String> =
        Code::ALL.iter().map(|code| text(&failure(*code), Palette::Plain)).collect();
    insta::assert_snapshot!(reports.join("--\n"), @r"
    error: what was attempted (bad_request)
      caused by: what prevented it

    hint: for example `switchboard call demo_add a=2 b=40`
    --
    error: what was attempted (unknown_tool)
      caused by: what prevented it

    hint: did you mean `files_read` or `files_write`?
    hint: 2 servers not listed yet: github and linear (try `switchboard connect github`)
    hint: find it with `switchboard search read 'it'\''s' file`
    --
    error: what was attempted (ambiguous_tool)
      caused by: what prevented it

    hint: it could be `a_read` or `b_read`
    --
    error: what was attempted (unknown_server)
      caused by: what prevented it

    hint: did you mean `files`?
    hint: see the servers with `switchboard status`
    --
    error: what was attempted (unknown_resource)
      caused by: what prevented it

    hint: see the resources with `switchboard resources`
    --
    error: what was attempted (unknown_prompt)
      caused by: what prevented it

    hint: see the prompts with `switchboard prompts`
    --
    error: what was attempted (unknown_result)
      caused by: what prevented it
    --
    error: what was attempted (server_disabled)
      caused by: what prevented it

    hint: enable it with `switchboard enable files`
    --
    error: what was attempted (trust_required)
      caused by: what prevented it

    hint: look at its definition and approve it with `switchboard trust 'my files'`
    --
    error: what was attempted (sign_in_required)
      caused by: what prevented it

    hint: sign in with `switchboard auth files`
    hint: give the entry of `files` a `bearerTokenEnv`, or `headers` that the server accepts
    hint: give it its token with `switchboard token set files`
    hint: unlock the keyring, or set another `oauthCredentialStore`
    --
    error: what was attempted (bad_arguments)
      caused by: what prevented it

    hint: it takes:
      a: number
      b?: number
    --
    error: what was attempted (bad_pattern)
      caused by: what prevented it
    --
    error: what was attempted (bad_filter)
      caused by: what prevented it
    --
    error: what was attempted (approval_required)
      caused by: what prevented it

    hint: approve it on a terminal, or in advance with `--yes`
    hint: allow it for good with `switchboard allow 'files/read_?'`
    --
    error: what was attempted (approval_denied)
      caused by: what prevented it

    hint: to allow the call, remove the rule with `switchboard deny --remove 'files/read_?'`
    --
    error: what was attempted (tool_changed)
      caused by: what prevented it

    hint: see its tools with `switchboard tools files`
    --
    error: what was attempted (tool_blocked)
      caused by: what prevented it

    hint: see what changed with `switchboard pins files` and accept it with `switchboard pins accept files`
    --
    error: what was attempted (not_read_only)
      caused by: what prevented it

    hint: use `mcp_write` in its place
    --
    error: what was attempted (no_instructions)
      caused by: what prevented it
    --
    error: what was attempted (config)
      caused by: what prevented it

    hint: replace it with `--replace`
    hint: disable it with `switchboard disable files`
    hint: import servers of other hosts with `switchboard import`, or add a server with `switchboard add`
    hint: see the files that are read with `switchboard config path`
    --
    error: what was attempted (connect_failed)
      caused by: what prevented it

    hint: check that `npx` is installed and can be run
    hint: check that the server is running, and that the `url` of its entry is correct
    hint: end of its standard error:
      no such module
        at main
    hint: read its log with `switchboard logs files`
    --
    error: what was attempted (starting)
      caused by: what prevented it

    hint: wait for 15s
    --
    error: what was attempted (backoff)
      caused by: what prevented it

    hint: wait for 1m
    hint: connect it with `switchboard connect files`
    --
    error: what was attempted (crash_loop)
      caused by: what prevented it

    hint: wait for 1m
    hint: connect it with `switchboard connect files`
    --
    error: what was attempted (timed_out)
      caused by: what prevented it

    hint: if the server needs longer, raise the setting `requestTimeoutMs`
    --
    error: what was attempted (connection_lost)
      caused by: what prevented it
    --
    error: what was attempted (outcome_unknown)
      caused by: what prevented it

    hint: it may have taken effect: check before you call it again
    --
    error: what was attempted (answer_too_large)
      caused by: what prevented it

    hint: raise the setting `maxFrameBytes`
    --
    error: what was attempted (server_error)
      caused by: what prevented it
    --
    error: what was attempted (disconnected)
      caused by: what prevented it

    hint: connect it with `switchboard connect files`
    --
    error: what was attempted (shutting_down)
      caused by: what prevented it
    --
    error: what was attempted (storage)
      caused by: what prevented it
    ");
}

#[test]
fn colours_mark_error_hint_and_command() {
    let report = text(&failure(Code::Disconnected), Palette::Coloured);
    insta::assert_snapshot!(report.replace('\u{1b}', "ESC"), @r#"
    ESC[1mESC[31merror:ESC[0m what was attempted (disconnected)
      caused by: what prevented it

    ESC[1mhint:ESC[0m connect it with ESC[32m`switchboard connect files`ESC[0m
    "#);
}

#[test]
fn hostile_error_text_cannot_move_the_cursor() {
    #[derive(Debug, thiserror::Error)]
    #[error("gone\r\u{1b}[2Jfine\nerror: fake")]
    struct Hostile;
    let failure = Failure::new(Code::ServerError, Subject::Request, Hostile);
    assert_eq!(text(&failure, Palette::Plain), "error: gone\\rfine error: fake\n");
}

#[test]
fn failed_server_line_quotes_the_relevant_stderr_line() {
    let check = |stderr: &[&str], expected: &str| {
        let lines = stderr.iter().map(|line| (*line).to_owned()).collect();
        let cause = Attempt { code: Code::ConnectFailed, cause: Cause };
        let failure = Failure::new(Code::ConnectFailed, Subject::Server(name("files")), cause);
        let line = line(&failure.hint(Hint::Stderr(lines)), Palette::Plain);
        let about = "what was attempted (connect_failed): what prevented it";
        let next = "connect it with `switchboard connect files`";
        assert_eq!(line, format!("{about}{expected}; {next}"));
    };
    check(&[], "");
    check(&["starting", "no such module", " "], ": no such module");
    let npm = [
        "npm error code E404",
        "npm error 404 Not Found - GET https://registry.example/x",
        "npm error 404 Note that you can use a tarball.",
        "npm notice New major version of npm available!",
        "npm error A complete log of this run can be found in: npm.log",
    ];
    check(&npm, ": npm error 404 Not Found - GET https://registry.example/x");
}
