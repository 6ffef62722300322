//! The program that is started for each URL, and the URL that it gets.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;

use switchboard::sign_in::address::Reach;
use switchboard::sign_in::link::BadLink;
use tempfile::TempDir;

use super::*;

/// A timeout that is longer than any test.
const FOR_EVER: Duration = Duration::from_secs(600);

const GOOD: [&str; 3] = [
    "https://as.example/authorize?response_type=code&state=a-b_c",
    "https://as.example:8443/a=b~c/*@touch%20x?q=%22&x=%24%7By%7D&scope=a+b,c#f",
    "https://xn--bcher-kva.example/authorize?redirect_uri=http%3A%2F%2F127.0.0.1%3A1%2Fcallback",
];

/// A link of a server that is not on this machine.
fn link(text: &str) -> Result<Link, BadLink> {
    Link::of(text, &Reach::of(&"https://mcp.example/mcp".parse().unwrap()))
}

/// A directory with a program that writes down how it was started.
struct Recorder {
    home: TempDir,
    environment: Environment,
}

impl Recorder {
    /// `then` is shell code that the program runs afterwards.
    fn new(program: &str, then: &str) -> Recorder {
        let home = tempfile::tempdir().unwrap();
        let at = home.path().join(program);
        let here = home.path().display();
        let record = "pwd; printf '%s\\n' \"${0##*/}\" \"$@\"";
        fs::write(&at, format!("#!/bin/sh\n{{ {record}; }} >> '{here}/record'\n{then}\n")).unwrap();
        fs::set_permissions(&at, Permissions::from_mode(0o755)).unwrap();
        let path = home.path().to_str().unwrap();
        let environment = Environment::made_of([("PATH", path), ("DISPLAY", ":0")], path);
        Recorder { home, environment }
    }

    fn browser(&self, patience: Duration) -> Browser<'_> {
        Browser { system: System::Unix, patience, ..Browser::of(&self.environment) }
    }

    /// The directory and the arguments of every start.
    fn record(&self) -> String {
        fs::read_to_string(self.home.path().join("record")).unwrap_or_default()
    }
}

#[tokio::test]
async fn browser_gets_the_url_as_one_exact_argument() {
    let recorder = Recorder::new("xdg-open", "");
    let mut expected = String::new();
    for address in GOOD {
        recorder.browser(FOR_EVER).open(&link(address).unwrap()).await.unwrap();
        expected += &format!("/\nxdg-open\n{address}\n");
        assert_eq!(recorder.record(), expected);
    }
    let left: Vec<_> = fs::read_dir(recorder.home.path()).unwrap().collect();
    assert_eq!(left.len(), 2, "the program and its record: {left:?}");
}

/// Threat T9 in `docs/safety.md`.
#[tokio::test]
async fn invalid_url_starts_no_browser() {
    let recorder = Recorder::new("xdg-open", "");
    let hostile = [
        "",
        "-flag",
        "--version",
        "http",
        "calc.exe",
        "/etc/passwd",
        "file:///etc/passwd",
        "javascript:alert(1)",
        "data:text/html,x",
        "ms-msdt:/id",
        "vscode://x",
        "http://as.example/",
        "http://user$(calc)r:pass@as.example/",
        "https://as.example@evil.example/",
        "https://as.example/\"&calc&\"",
        "https://as.example/`calc`",
        "https://as.example/|calc",
        "https://as.example/;calc",
        "https://as.example/$(calc)",
        "https://as.example/a b",
        "https://as.example/\\..\\calc",
        "https://as.example/\n-flag",
        "https://as.example/\0",
        "https://as.example/\u{202e}",
        "https://127.0.0.1/",
        "https://169.254.169.254/",
        " https://as.example/",
    ];
    for text in hostile {
        match link(text) {
            Err(_refused) => {}
            Ok(link) => {
                let opened = recorder.browser(FOR_EVER).open(&link).await;
                panic!("{text} became {link}, {opened:?}");
            }
        }
        // The command line checks the URL once more.
        let words = recorder.browser(FOR_EVER).words(text);
        assert!(words.is_err() || text.starts_with("http"), "{text}: {words:?}");
    }
    assert_eq!(recorder.record(), "");
}

#[tokio::test]
async fn browser_start_error_names_the_program() {
    let open = async |recorder: &Recorder| {
        let refused = recorder.browser(FOR_EVER).open(&link(GOOD[0]).unwrap()).await;
        refused.unwrap_err().to_string()
    };
    let failing = Recorder::new("xdg-open", "exit 3");
    assert_eq!(open(&failing).await, "`xdg-open` could not open the URL (exit status: 3)");
    let missing = Recorder::new("other", "");
    assert_eq!(open(&missing).await, "cannot start `xdg-open`");
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn browser_still_running_after_wait_is_not_a_failure() {
    use rustix::fs::{CWD, FileType, Mode, mknodat};

    let then = "cd \"${0%/*}\"; read _ _ _ _ group _ < /proc/self/stat; read go < go; \
                printf '%s' \"$go $$ $group\" > said";
    let recorder = Recorder::new("xdg-open", then);
    let [go, said] = ["go", "said"].map(|name| recorder.home.path().join(name));
    for pipe in [&go, &said] {
        mknodat(CWD, pipe, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    }
    recorder.browser(Duration::from_millis(1)).open(&link(GOOD[0]).unwrap()).await.unwrap();
    // Each side blocks until the other end opens the pipe.
    let output = tokio::task::spawn_blocking(move || {
        fs::write(go, "still-here\n").unwrap();
        fs::read_to_string(said).unwrap()
    });
    let output = output.await.unwrap();
    let [word, process, group] = output.split(' ').collect::<Vec<_>>()[..] else {
        panic!("{output}")
    };
    assert_eq!((word, process), ("still-here", group), "it leads a group of its own");
}

/// The command line, or why there is none.
fn outcome(system: System, environment: &Environment) -> String {
    let browser = Browser { system, ..Browser::of(environment) };
    match browser.words("https://as.example/") {
        Ok(CommandLine { program, args }) => format!("{program} {}", args.join(" ")),
        Err(error) => error.to_string(),
    }
}

#[test]
fn each_operating_system_has_its_browser_command() {
    let here = Environment::made_of([("DISPLAY", ":0"), ("SSH_CONNECTION", "")], "/");
    let check = |system, expected: &str| assert_eq!(outcome(system, &here), expected);
    check(System::Unix, "xdg-open https://as.example/");
    check(System::MacOs, "open https://as.example/");
    check(System::Windows, "rundll32 url.dll,FileProtocolHandler https://as.example/");
}

#[test]
fn no_browser_opens_over_ssh_or_without_display() {
    let over_ssh = [("DISPLAY", ":10"), ("SSH_CONNECTION", "1.2.3.4 5 6.7.8.9 22")];
    let over_ssh = Environment::made_of(over_ssh, "/");
    for system in [System::Unix, System::MacOs, System::Windows] {
        let expected = "this is an SSH session, and the browser runs on another machine";
        assert_eq!(outcome(system, &over_ssh), expected);
    }
    let dark = Environment::made_of([("DISPLAY", ""), ("BROWSER", "firefox")], "/");
    assert_eq!(
        outcome(System::Unix, &dark),
        "there is no display (`DISPLAY` and `WAYLAND_DISPLAY` are not set)"
    );
    assert_eq!(outcome(System::MacOs, &dark), "open https://as.example/");
    let wayland = Environment::made_of([("WAYLAND_DISPLAY", "wayland-0")], "/");
    assert_eq!(outcome(System::Unix, &wayland), "xdg-open https://as.example/");
}

#[test]
fn browser_variable_with_arguments_or_relative_path_is_ignored() {
    let check = |browser: &str, expected: &str| {
        let environment = Environment::made_of([("DISPLAY", ":0"), ("BROWSER", browser)], "/");
        let expected = format!("{expected} https://as.example/");
        assert_eq!(outcome(System::Unix, &environment), expected, "{browser}");
        assert_eq!(outcome(System::MacOs, &environment), "open https://as.example/");
    };
    check("firefox", "firefox");
    check("/opt/browsers/g++-1.0_x", "/opt/browsers/g++-1.0_x");
    check("", "xdg-open");
    for other in [
        "firefox --new-tab",
        "firefox:chromium",
        "firefox %s",
        "sh -c 'x'",
        "$(calc)",
        "./browser",
        "bin/browser",
        "-c",
        "a;b",
        "fire\nfox",
    ] {
        check(other, "xdg-open");
    }
}
