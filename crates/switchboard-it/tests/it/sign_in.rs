//! `switchboard auth` and `logout`, used by programs and by users.

mod accounts;
mod far;
mod hostile;
mod guide;
mod person;
mod races;
mod secrets;
mod trouble;

use std::fs;
use std::path::PathBuf;
use std::process::Stdio;

use serde_json::{Map, Value, json};
use switchboard_it::authority::{Authority, Consent, Endpoint, Setup, get, redirect_of, visit};
use switchboard_it::fixture::HttpFixture;
use switchboard_it::program::{Installed, Ran};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};

use crate::PROGRAMS;

/// The files in the token store of an installation that contain tokens.
pub(crate) fn files_with_tokens(installed: &Installed) -> Vec<PathBuf> {
    let folder = installed.home().join("switchboard/state/tokens");
    let files = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    files
        .filter(|path| fs::read_to_string(path).is_ok_and(|text| text.contains("access")))
        .collect()
}

/// A user with one server, `tracker`, that requires authentication.
struct Desk {
    authority: Authority,
    installed: Installed,
}

impl Desk {
    async fn with(setup: Setup) -> Desk {
        let authority = Authority::start(setup).await;
        let installed = Installed::bare(PROGRAMS);
        let user = Desk { authority, installed };
        user.configure(json!({}));
        user
    }

    fn configure(&self, settings: Value) {
        let tracker = json!({ "url": self.authority.mcp_url() });
        let plain = json!({ "command": "fixture-server", "args": ["everything"] });
        let config = json!({
            "mcpServers": { "tracker": tracker, "plain": plain },
            "settings": settings,
        });
        self.installed.write("switchboard/mcp.json", &config.to_string());
    }

    fn command(&self, line: &str) -> Command {
        let mut command = self.installed.command();
        command.args(line.split(' ')).args(["--color", "never"]);
        command
    }

    /// Starts a command whose output is read while it runs.
    fn start(&self, line: &str) -> Running {
        let mut command = self.command(line);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap()).lines();
        Running { child, stdout }
    }

    async fn run(&self, line: &str) -> Ran {
        self.installed.run(line.split(' ')).await
    }

    async fn call(&self) -> Ran {
        self.run("call tracker_echo text=hello").await
    }

    /// The files that contain tokens.
    fn tokens(&self) -> Vec<PathBuf> {
        files_with_tokens(&self.installed)
    }

    /// The output, without the parts that differ from run to run.
    fn neutral(&self, text: &str) -> String {
        let text = text.replace(&self.authority.issuer(), "[ISSUER]");
        let text = text.replace(&*self.installed.home().to_string_lossy(), "[HOME]");
        let lines = text.lines().map(|line| match line.split_once("/authorize?") {
            Some((before, _)) => format!("{before}/authorize?…\n"),
            None => format!("{line}\n"),
        });
        lines.collect()
    }
}

struct Running {
    child: Child,
    stdout: Lines<BufReader<ChildStdout>>,
}

impl Running {
    async fn line(&mut self) -> String {
        self.stdout.next_line().await.unwrap().expect("a line")
    }

    async fn paste(&mut self, text: &str) {
        let stdin = self.child.stdin.as_mut().unwrap();
        stdin.write_all(format!("{text}\n").as_bytes()).await.unwrap();
    }

    /// Waits until the command ends; returns the exit code, the rest of stdout, and stderr.
    async fn ended(mut self) -> Ran {
        let mut stdout = String::new();
        while let Some(line) = self.stdout.next_line().await.unwrap() {
            stdout.push_str(&line);
            stdout.push('\n');
        }
        let mut stderr = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut stderr).await.unwrap();
        Ran { code: self.child.wait().await.unwrap().code(), stdout, stderr }
    }
}

#[tokio::test]
async fn sign_in_without_a_terminal_prints_the_url() {
    let user = Desk::with(Setup { scopes: vec!["read".into()], ..Setup::default() }).await;
    let refused = user.call().await;
    assert_eq!(refused.code, Some(3), "{refused:?}");
    assert!(
        refused.stderr.contains("hint: sign in with `switchboard auth tracker`"),
        "{refused:?}"
    );
    let mut auth = user.start("auth tracker");
    let url = auth.line().await;
    assert!(url.starts_with(&format!("{}/authorize?", user.authority.issuer())), "{url}");
    assert_eq!(visit(&url).await, 200);
    let ended = auth.ended().await;
    insta::assert_snapshot!(user.neutral(&ended.transcript(user.installed.home())), @r"
    exit 0
    --- stdout
    --- stderr
    To sign in to `tracker`, open this address:
    Signed in to tracker at [ISSUER]
      scopes  read
      token   valid for 59m, refreshed automatically
      stored  in a file in `[HOME]/switchboard/state/tokens`, unencrypted; only you can read it
    hint: see its tools with `switchboard tools tracker`
    ");
    let called = user.call().await;
    assert_eq!((called.code, called.stdout.as_str()), (Some(0), "hello\n"), "{called:?}");
    assert_eq!(user.authority.ledger().now().sign_ins, 1);
}

#[tokio::test]
async fn sign_in_json_has_url_and_outcome() {
    let user = Desk::with(Setup::default()).await;
    let mut auth = user.start("auth tracker --json");
    let begun: Value = serde_json::from_str(&auth.line().await).unwrap();
    assert_eq!(begun["server"], "tracker");
    assert_eq!(visit(begun["url"].as_str().unwrap()).await, 200);
    let done: Value = serde_json::from_str(&auth.line().await).unwrap();
    let expected = json!({ "server": "tracker", "issuer": user.authority.issuer() });
    for (name, value) in expected.as_object().unwrap() {
        assert_eq!(&done[name], value);
    }
    assert_eq!((&done["renewable"], &done["kept"]), (&json!(true), &json!("file")), "{done}");
    assert!(done["expiresAt"].as_u64().is_some_and(|at| at > 1_700_000_000), "{done}");
    assert_eq!(json!([done["path"]]), json!(user.tokens()), "{done}");
    let ended = auth.ended().await;
    assert_eq!((ended.code, ended.stdout.as_str(), ended.stderr.as_str()), (Some(0), "", ""));
}

#[tokio::test]
async fn invalid_pasted_callback_is_rejected_and_can_be_retried() {
    let user = Desk::with(Setup::default()).await;
    let mut auth = user.start("auth tracker --paste");
    let url = auth.line().await;
    let back = redirect_of(&url).await.unwrap();
    let (stray, _) = back.split_once("&state=").unwrap();
    for wrong in [&url, "hello", &format!("{stray}&state=other"), ""] {
        auth.paste(wrong).await;
    }
    auth.paste(&back).await;
    let ended = auth.ended().await;
    insta::assert_snapshot!(user.neutral(&ended.transcript(user.installed.home())), @r"
    exit 0
    --- stdout
    --- stderr
    To sign in to `tracker`, open this address:
    If the browser ends at a page that does not load, paste its address here
    warning: the callback has no code (still waiting)
    warning: the pasted code has no `iss`, which this authorization server always sends: paste the whole URL (still waiting)
    warning: the callback does not match the sign-in in progress (still waiting)
    Signed in to tracker at [ISSUER]
      token   valid for 59m, refreshed automatically
      stored  in a file in `[HOME]/switchboard/state/tokens`, unencrypted; only you can read it
    hint: see its tools with `switchboard tools tracker`
    ");
    assert_eq!(user.call().await.code, Some(0));
}

#[tokio::test]
async fn callback_pasted_during_the_token_request_is_ignored() {
    let user = Desk::with(Setup::default()).await;
    let mut auth = user.start("auth tracker --paste");
    let url = auth.line().await;
    let back = redirect_of(&url).await.unwrap();
    user.authority.alter(|setup| setup.delay_ms = 1_000);
    assert_eq!(get(&back).await.head.status, 200);
    user.authority.ledger().until(|record| record.count(Endpoint::Token) == 1).await;
    auth.paste(&back).await;
    let ended = auth.ended().await;
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(user.authority.ledger().now().sign_ins, 1);
}

#[tokio::test]
async fn consent_denial_ends_the_sign_in_with_an_error() {
    let user = Desk::with(Setup { consent: Consent::Denied, ..Setup::default() }).await;
    let mut auth = user.start("auth tracker");
    visit(&auth.line().await).await;
    let ended = auth.ended().await;
    insta::assert_snapshot!(ended.transcript(user.installed.home()), @r"
    exit 3
    --- stdout
    --- stderr
    To sign in to `tracker`, open this address:
    error: cannot sign in to the server `tracker`
      caused by: the authorization response ended the sign-in
      caused by: the authorization server refused the request: `access_denied`

    hint: sign in with `switchboard auth tracker`
    ");
    assert_eq!(user.tokens(), Vec::<PathBuf>::new());
    // Pastes the same callback address.
    let mut auth = user.start("auth tracker --paste --json");
    let begun: Value = serde_json::from_str(&auth.line().await).unwrap();
    auth.paste(&redirect_of(begun["url"].as_str().unwrap()).await.unwrap()).await;
    let ended = auth.ended().await;
    let failure: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(failure["error"]["code"], "sign_in_required", "{failure}");
    assert_eq!(ended.code, Some(3));
}

#[tokio::test]
async fn device_flow_signs_in_from_another_device() {
    let user = Desk::with(Setup::default()).await;
    let mut auth = user.start("auth tracker --device");
    let (url, code) = (auth.line().await, auth.line().await);
    assert!(url.starts_with(&user.authority.issuer()), "{url}");
    assert!(user.authority.answer_device(&code, Consent::Given), "{code}");
    let ended = auth.ended().await;
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(ended.stderr.contains("enter this code there:"), "{ended:?}");
    assert_eq!(user.call().await.code, Some(0));
    let mut auth = user.start("auth tracker --device --json");
    let begun: Value = serde_json::from_str(&auth.line().await).unwrap();
    let code = begun["userCode"].as_str().unwrap();
    assert!(user.authority.answer_device(code, Consent::Denied), "{begun}");
    assert_eq!(auth.ended().await.code, Some(3));
}

#[tokio::test]
async fn logout_deletes_and_revokes_the_token() {
    let user = Desk::with(Setup::default()).await;
    let mut auth = user.start("auth tracker");
    visit(&auth.line().await).await;
    assert_eq!(auth.ended().await.code, Some(0));
    assert_eq!(user.tokens().len(), 1);
    let out = user.run("logout tracker").await;
    assert_eq!((out.code, out.stdout.as_str()), (Some(0), ""), "{out:?}");
    assert_eq!(out.stderr, "signed out of `tracker`; its tokens were revoked\n");
    assert_eq!(user.tokens(), Vec::<PathBuf>::new());
    let record = user.authority.ledger().now();
    assert_eq!((record.count(Endpoint::Revoke), record.revocations), (1, 1));
    assert_eq!(user.call().await.code, Some(3));
    let again = user.run("logout tracker").await;
    assert_eq!((again.code, &*again.stderr), (Some(0), "not signed in to `tracker`\n"));
}

#[tokio::test]
async fn auth_for_a_server_without_oauth_is_refused() {
    let user = Desk::with(Setup::default()).await;
    for line in ["auth plain", "logout plain"] {
        let ran = user.run(line).await;
        insta::allow_duplicates! {
            insta::assert_snapshot!(ran.transcript(user.installed.home()), @r"
            exit 2
            --- stdout
            --- stderr
            error: the server `plain` has no sign-in: it has no URL, or its entry configures other credentials
            ");
        }
    }
    let ran = user.run("auth trakcer").await;
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.stderr.contains("did you mean `tracker`?"), "{ran:?}");
    let ran = user.run("auth tracker --paste --device").await;
    assert_eq!(ran.code, Some(2), "{ran:?}");
    user.authority.alter(|setup| {
        setup.metadata.fields =
            Map::from_iter([("device_authorization_endpoint".into(), Value::Null)]);
    });
    let ran = user.run("auth tracker --device").await;
    assert_eq!(ran.code, Some(3), "{ran:?}");
    assert!(ran.stderr.contains("does not support device authorization"), "{ran:?}");
}

#[tokio::test]
async fn auth_fails_if_the_server_requires_no_authentication() {
    let open = HttpFixture::start("everything").await;
    let config = json!({ "mcpServers": { "open": { "url": open.url() } } });
    let installed = Installed::with(PROGRAMS, &config.to_string());
    let ran = installed.run(["auth", "open"]).await;
    insta::assert_snapshot!(ran.transcript(installed.home()), @r"
    exit 2
    --- stdout
    --- stderr
    error: cannot sign in to the server `open`
      caused by: the server requires no authentication and names no authorization server
    ");
}

#[tokio::test]
async fn second_sign_in_process_waits_for_the_first() {
    let user = Desk::with(Setup::default()).await;
    let mut first = user.start("auth tracker");
    let url = first.line().await;
    let mut second = user.start("auth tracker");
    let mut said = BufReader::new(second.child.stderr.take().unwrap()).lines();
    let note = said.next_line().await.unwrap().unwrap();
    assert_eq!(note, "note: another process is signing in to `tracker`; waiting for it");
    assert_eq!(visit(&url).await, 200);
    assert_eq!(first.ended().await.code, Some(0));
    assert_eq!(second.stdout.next_line().await.unwrap(), None);
    assert_eq!(second.child.wait().await.unwrap().code(), Some(0));
    assert_eq!(user.authority.ledger().now().sign_ins, 1);
}
