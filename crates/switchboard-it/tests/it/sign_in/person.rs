//! Sign-in on a terminal.

use std::os::unix::fs::PermissionsExt;

use rustix::termios::LocalModes;
use switchboard_it::terminal::Watched;

use super::*;

/// Installs a fake browser that records the URL that it is to open.
pub(super) fn recorder(user: &Desk) -> PathBuf {
    let log = user.installed.home().join("opened");
    let script = format!(
        "#!/bin/sh\nprintf '%s\\n' \"$#\" \"$@\" > '{0}.part' && mv '{0}.part' '{0}'\n",
        log.display()
    );
    let browser = user.installed.write("browser", &script);
    fs::set_permissions(&browser, fs::Permissions::from_mode(0o700)).unwrap();
    log
}

impl Desk {
    /// A command on a desktop terminal, with the recorder as its browser.
    fn start_on_terminal(&self, line: &str) -> Watched {
        let browser = self.installed.home().join("browser");
        Watched::start(self.command(line).env("DISPLAY", ":0").env("BROWSER", browser))
    }
}

/// The authorization address on its own line of the screen.
pub(super) fn address(screen: &str) -> String {
    let mut lines = screen.lines().map(str::trim_end);
    lines.find(|line| line.contains("/authorize?")).expect("an address").to_owned()
}

/// The text that stays on the screen after redrawn lines are removed.
pub(super) fn left(screen: &str) -> String {
    let lines = screen.replace("\r\n", "\n");
    let lines = lines.lines().map(|line| line.rsplit("\r\u{1b}[2K").next().unwrap_or_default());
    lines.map(|line| format!("{line}\n")).collect()
}

pub(super) const WAITING: &str = "waiting for the browser";

#[tokio::test]
async fn browser_opens_the_shown_authorization_url() {
    let user = Desk::with(Setup::default()).await;
    let log = recorder(&user);
    let mut shown = user.start_on_terminal("auth tracker");
    let screen = shown.until(WAITING).await;
    let url = address(&screen);
    assert_eq!(fs::read_to_string(log).unwrap(), format!("1\n{url}\n"));
    assert_eq!(visit(&url).await, 200);
    let ended = shown.ended().await;
    assert_eq!(ended.code, Some(0), "{}", ended.screen);
    insta::assert_snapshot!(user.neutral(&left(&ended.screen)), @r"
    To sign in to `tracker`, open this address:
    [ISSUER]/authorize?…
    Opened it in your browser
    If the browser ends at a page that does not load, paste its address here
    Signed in to tracker at [ISSUER]
      token   valid for 59m, refreshed automatically
      stored  in a file in `[HOME]/switchboard/state/tokens`, unencrypted; only you can read it
    hint: see its tools with `switchboard tools tracker`
    ");
}

#[tokio::test]
async fn sign_in_over_ssh_accepts_the_pasted_callback() {
    let user = Desk::with(Setup::default()).await;
    let log = recorder(&user);
    let mut command = user.command("auth tracker");
    let mut shown = Watched::start(command.env("DISPLAY", ":0").env("SSH_CONNECTION", "a b c d"));
    let screen = shown.until(WAITING).await;
    assert!(screen.contains("The browser was not opened: this is an SSH session"), "{screen}");
    let back = redirect_of(&address(&screen)).await.unwrap();
    assert!(!shown.modes().local_modes.contains(LocalModes::ECHO));
    shown.types("what is this\n");
    shown.until("warning: the callback has no code (still waiting)").await;
    // This address is longer than the maximum line of a terminal in canonical mode.
    let long = format!("{back}&more={}", "x".repeat(5_000));
    shown.types(&long);
    shown.until(&format!("{} characters pasted; press Enter", long.len())).await;
    shown.types("\n");
    let ended = shown.ended().await;
    assert_eq!(ended.code, Some(0), "{}", ended.screen);
    assert!(!ended.screen.contains("code="), "the pasted address was echoed: {}", ended.screen);
    assert!(!log.exists());
    assert_eq!(user.call().await.code, Some(0));
}

#[tokio::test]
async fn second_terminal_sign_in_shows_that_it_waits() {
    let user = Desk::with(Setup::default()).await;
    let log = recorder(&user);
    let mut first = user.start("auth tracker");
    let url = first.line().await;
    let mut second = user.start_on_terminal("auth tracker");
    second.until("another process is signing in; waiting").await;
    assert_eq!(visit(&url).await, 200);
    let ended = second.ended().await;
    assert_eq!(ended.code, Some(0), "{}", ended.screen);
    assert!(left(&ended.screen).starts_with("Signed in to tracker at "), "{}", ended.screen);
    assert!(!log.exists(), "the second process opened a browser");
    assert_eq!(first.ended().await.code, Some(0));
}

#[tokio::test]
async fn interrupted_sign_in_leaves_no_token_or_lock() {
    let user = Desk::with(Setup::default()).await;
    let log = recorder(&user);
    let mut shown = user.start_on_terminal("auth tracker --paste");
    shown.until("waiting for an address to be pasted").await;
    shown.interrupt();
    let ended = shown.ended().await;
    assert_eq!(ended.code, Some(130), "{}", ended.screen);
    assert!(shown.modes().local_modes.contains(LocalModes::ECHO | LocalModes::ICANON));
    assert_eq!(user.tokens(), Vec::<PathBuf>::new());
    assert!(!log.exists(), "a paste opens no browser");
    // The next sign-in is not blocked.
    let mut auth = user.start("auth tracker");
    visit(&auth.line().await).await;
    assert_eq!(auth.ended().await.code, Some(0));
}

#[tokio::test]
async fn call_signs_in_automatically_when_auto_auth_is_set() {
    let user = Desk::with(Setup::default()).await;
    recorder(&user);
    const CALL: &str = "call tracker_echo text=hello";
    let ended = user.start_on_terminal(CALL).ended().await;
    assert_eq!(ended.code, Some(3), "{}", ended.screen);
    assert!(ended.screen.contains("hint: sign in with `switchboard auth tracker`"));
    user.configure(json!({ "autoAuth": true }));
    // Without a terminal, `autoAuth` has no effect.
    assert_eq!(user.call().await.code, Some(3));
    let mut shown = user.start_on_terminal(CALL);
    let url = address(&shown.until(WAITING).await);
    assert_eq!(visit(&url).await, 200);
    let ended = shown.ended().await;
    assert_eq!(ended.code, Some(0), "{}", ended.screen);
    insta::assert_snapshot!(user.neutral(&left(&ended.screen)), @r"
    To sign in to `tracker`, open this address:
    [ISSUER]/authorize?…
    Opened it in your browser
    If the browser ends at a page that does not load, paste its address here
    Signed in to tracker at [ISSUER]
      token   valid for 59m, refreshed automatically
      stored  in a file in `[HOME]/switchboard/state/tokens`, unencrypted; only you can read it
    hello
    ");
}

/// The same check as in `hostile`, but with the command line and a browser that could be opened.
#[tokio::test]
async fn browser_is_not_opened_at_an_unsafe_url() {
    let user = Desk::with(Setup::default()).await;
    let log = recorder(&user);
    for page in [
        "http://user$(calc)r:pass@127.0.0.1/authorize",
        "http://127.0.0.1/$(calc)",
        "http://127.0.0.1/`calc`",
        "http://127.0.0.1/\"&calc&\"",
        "http://127.0.0.1/\ncalc",
        "http://169.254.169.254/authorize",
        "javascript:alert(1)",
        "file:///etc/passwd",
        "--new-window=http://127.0.0.1/",
        "https:auth.example/authorize",
    ] {
        user.authority.alter(|setup| {
            setup.metadata.fields.insert("authorization_endpoint".to_owned(), page.into());
        });
        let ended = user.start_on_terminal("auth tracker").ended().await;
        assert_eq!(ended.code, Some(3), "{page}: {}", ended.screen);
        let because = "the URL `authorization_endpoint` is refused";
        assert!(ended.screen.contains(because), "{page}: {}", ended.screen);
        assert!(!log.exists(), "{page}: {}", ended.screen);
    }
    assert_eq!(user.tokens(), Vec::<PathBuf>::new());
}
