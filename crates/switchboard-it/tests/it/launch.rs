//! Servers behind `npx`, `uvx` and similar: an installed package runs without the launcher, and no
//! project decides which package runs. The launchers are fakes that use the real directories.

use std::fs;
use std::future::pending;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::pin::Pin;
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;

use rustix::process::Signal;
use serde_json::{Value, json};
use switchboard::dial::spawn::{Process, Program, Promise, Spawner, Started};
use switchboard::failure::Code;
use switchboard::load::{LoadOptions, load};
use switchboard::paths::Paths;
use switchboard::request::Request;
use switchboard::{Gateway, Headless, render};
use switchboard_it::client::Client;
use switchboard_it::fixture::{FixtureState, Script, act};
use switchboard_it::harness::{Home, call};
use switchboard_it::processes::{children, send_signal, until};
use switchboard_it::program::{Installed, Ran};
use switchboard_it::terminal;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::sync::Notify;
use tokio::time::timeout;

use crate::PROGRAMS;

/// The maximum time for which a command of a test may print nothing.
const DEADLINE: Duration = Duration::from_secs(50);

/// The note about an installation when standard error is not a terminal.
const WAITING: &str = "note: the server `it` is being installed first\n";

/// A fake `node`: logs its start and runs the fixture server.
const NODE: &str = r#"#!/bin/sh
[ "$1" = -e ] && { echo "switchboard: $HOME/installed/node_modules/.bin:$PATH"; exit; }
echo "node ${1#"$HOME"/} in ${PWD#"$HOME"/}" >> "$HOME/ledger"
shift
exec fixture-server "$@"
"#;

/// A fake `npx`: like npm, it prefers `node_modules` of the working directory. Otherwise it
/// installs the package and runs it.
const NPX: &str = r#"#!/bin/sh
echo "npx $1 in ${PWD#"$HOME"/}" >> "$HOME/ledger"
[ -e .npmrc ] && echo "hostile .npmrc" >> "$HOME/ledger"
[ -e node_modules/.bin/server ] && exec node_modules/.bin/server
[ "$1" = --yes ] || exec fixture-server "$HOME/server.toml"
[ -e "$HOME/offline" ] && { echo 'npm error 404 no such package' >&2; exit 1; }
package="$HOME/installed/node_modules/server"
mkdir -p "$package"
echo '{ "version": "1.0.0", "bin": "cli.js" }' > "$package/package.json"
: > "$package/cli.js"
while [ "$1" != -- ]; do shift; done
shift
exec "$@"
"#;

/// A fake `uvx`: creates a virtual environment with the server, and keeps running while the server
/// runs.
const UVX: &str = r#"#!/bin/sh
echo "uvx $1 in ${PWD#"$HOME"/}" >> "$HOME/ledger"
[ "$1" = --from ] || { fixture-server "$HOME/server.toml"; exit; }
mkdir -p "$HOME/venv/bin"
printf '#!/bin/sh\necho "server in ${PWD#"$HOME"/}" >> "$HOME/ledger"\nexec fixture-server "$@"\n' > "$HOME/venv/bin/server"
chmod +x "$HOME/venv/bin/server"
echo "switchboard: $HOME/venv"
"#;

/// A fake `python3`: prefers a module of the working directory, unless `PYTHONSAFEPATH` is set.
const PYTHON: &str = r#"#!/bin/sh
[ -z "$PYTHONSAFEPATH" ] && [ -e "$2.py" ] && exec sh "$2.py"
echo "python $1 $2 in ${PWD#"$HOME"/}" >> "$HOME/ledger"
exec fixture-server "$HOME/server.toml"
"#;

/// A program of the repository that must not run.
const HOSTILE: &str = "#!/bin/sh\necho hostile >> \"$HOME/ledger\"\nexec fixture-server flaky\n";

/// A user in a cloned repository that tries to replace the user's programs.
struct User {
    installed: Installed,
}

impl User {
    /// A user whose own configuration file has one server, `it`.
    fn with(entry: &Value) -> User {
        let user = User { installed: Installed::bare(PROGRAMS) };
        user.configure(entry);
        user.installed.write("server.toml", "[[tools]]\nname = 'echo'\n");
        let programs = [("node", NODE), ("npx", NPX), ("uvx", UVX), ("python3", PYTHON)];
        for (name, text) in programs {
            user.program(&format!("bin/{name}"), text);
        }
        user.program("project/node_modules/.bin/server", HOSTILE);
        user.program("project/node_modules/.bin/node", HOSTILE);
        user.installed.write("project/node_modules/server/package.json", "{}");
        user.installed.write("project/.npmrc", "registry=http://127.0.0.1:9/\n");
        user.installed.write("project/server.py", HOSTILE);
        user
    }

    fn configure(&self, entry: &Value) {
        let config = json!({ "mcpServers": { "it": entry } });
        self.installed.write("switchboard/mcp.json", &config.to_string());
    }

    fn program(&self, path: &str, text: &str) {
        let path = self.installed.write(path, text);
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    fn command(&self) -> tokio::process::Command {
        let mut command = self.installed.command();
        let fixtures = PathBuf::from(PROGRAMS.fixture_server);
        let folders = [self.installed.home().join("bin"), fixtures.parent().unwrap().to_owned()];
        let path = folders.map(|folder| folder.display().to_string()).join(":");
        command.env("PATH", format!("{path}:/usr/bin:/bin"));
        command.current_dir(self.installed.home().join("project"));
        command
    }

    async fn serve(&self) -> Client {
        let mut client = Client::start(self.command().arg("serve"));
        client.initialize("2025-11-25", json!({})).await;
        client
    }

    async fn run(&self, line: &str) -> Ran {
        let output = self.command().args(line.split(' ')).output().await.unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        Ran { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
    }

    /// Returns the log of the programs that ran, and clears it.
    fn ledger(&self) -> String {
        let file = self.installed.home().join("ledger");
        let text = fs::read_to_string(&file).unwrap_or_default();
        let _nothing_ran = fs::remove_file(file);
        text
    }

    /// Connects and returns the programs that ran.
    async fn connect(&self) -> String {
        let ran = self.run("connect it").await;
        assert_eq!(ran.code, Some(0), "{}{}", ran.stdout, ran.stderr);
        self.ledger()
    }
}

const PACKAGE: &str = r#"{ "version": "1.0.0", "bin": { "server": "dist/cli.js" } }"#;

/// Writes the package where npm keeps packages of `npx server`.
fn install(user: &User) {
    // npm names the directory by the first half of the SHA-512 of `server`.
    let root = ".npm/_npx/fb7daafb37d21221/node_modules/server";
    user.installed.write(&format!("{root}/package.json"), PACKAGE);
    user.installed.write(&format!("{root}/dist/cli.js"), "");
}

#[tokio::test]
async fn installed_npm_package_runs_without_npx_in_the_project() {
    let user = User::with(&json!({ "command": "npx", "args": ["-y", "server", "../server.toml"] }));
    install(&user);
    let mut client = user.serve().await;
    let said = client.mcp(json!({ "tool": "it_echo", "args": { "text": "hello" } })).await;
    assert_eq!(said, "hello");
    insta::assert_snapshot!(user.ledger(), @"node .npm/_npx/fb7daafb37d21221/node_modules/server/dist/cli.js in project");
    // The reaper, a keeper and the server are the only processes.
    let mut last = client.pid();
    for _ in 0..3 {
        let below = children(last);
        assert_eq!(below.len(), 1, "{below:?}");
        last = below[0];
    }
    assert_eq!(children(last), Vec::<u32>::new());
}

/// A fake `npx` that holds a lock while it installs. Like Node, it survives a closed standard
/// error.
const SLOW_NPX: &str = r#"#!/bin/sh
exec 2>/dev/null
trap 'rm "$HOME/lock"; exit 1' TERM
: > "$HOME/lock"
while :; do sleep 0.01; done
"#;

#[tokio::test]
async fn interrupted_launcher_releases_its_lock() {
    let user = User::with(&json!({ "command": "npx", "args": ["server@latest"] }));
    user.program("bin/npx", SLOW_NPX);
    let lock = user.installed.home().join("lock");
    let mut connecting = user.command().args(["connect", "it"]).spawn().unwrap();
    until("it installs", || lock.exists()).await;
    send_signal(connecting.id().unwrap(), Signal::INT);
    assert_eq!(connecting.wait().await.unwrap().code(), Some(130));
    until("the lock is gone", || !lock.exists()).await;
}

#[tokio::test]
async fn connect_and_call_report_a_running_launcher_installation() {
    let user = User::with(&json!({ "command": "npx", "args": ["server@latest"] }));
    user.program("bin/npx", SLOW_NPX);
    // The tool may belong to a server that was never listed, whatever its prefix.
    for line in ["connect it", "call nosuch_tool"] {
        let mut command = user.command();
        command.args(line.split(' ')).stderr(Stdio::piped());
        let mut waiting = command.spawn().unwrap();
        let mut said = BufReader::new(waiting.stderr.take().unwrap()).lines();
        let first = timeout(DEADLINE, said.next_line()).await.unwrap().unwrap();
        assert_eq!(first.unwrap(), WAITING.trim_end(), "{line}");
        send_signal(waiting.id().unwrap(), Signal::INT);
        assert_eq!(waiting.wait().await.unwrap().code(), Some(130));
    }
    let mut command = user.command();
    let shown = terminal::interrupt(command.args(["connect", "it"]), "", "installing it").await;
    assert_eq!(shown.code, Some(130));
}

#[tokio::test]
async fn resolved_launcher_is_skipped_on_the_next_start() {
    let npx = json!({ "command": "npx", "args": ["server@latest", "../server.toml"] });
    let user = User::with(&npx);
    let direct = "node installed/node_modules/server/cli.js in project\n";
    let asked = "npx --yes in switchboard/cache/launchers/neutral\n";
    assert_eq!(user.connect().await, format!("{asked}{direct}"));
    assert_eq!(user.connect().await, direct);
    // If the cached command has expired and the launcher fails, the cached command is used.
    let known = user.installed.home().join("switchboard/cache/launchers/known.json");
    let text = fs::read_to_string(&known).unwrap();
    fs::write(
        &known,
        regex::Regex::new(r#""at":\d+"#).unwrap().replace(&text, r#""at":1"#).as_ref(),
    )
    .unwrap();
    user.installed.write("offline", "");
    assert_eq!(user.connect().await, format!("{asked}{direct}"));
    user.configure(&json!({ "command": "uvx", "args": ["server", "../server.toml"] }));
    let direct = "server in project\n";
    let asked = "uvx --from in switchboard/cache/launchers/neutral\n";
    assert_eq!(user.connect().await, format!("{asked}{direct}"));
    assert_eq!(user.connect().await, direct);
    fs::remove_dir_all(user.installed.home().join("venv")).unwrap();
    assert_eq!(user.connect().await, format!("{asked}{direct}"));
}

#[tokio::test]
async fn failed_installation_shows_the_launcher_output() {
    let user = User::with(&json!({ "command": "npx", "args": ["-y", "server"] }));
    user.installed.write("offline", "");
    let ran = user.run("connect it").await;
    assert_eq!(ran.code, Some(5));
    let times = regex::Regex::new(r"\d+ m?s\b").unwrap();
    // On a busy machine the installation can take so long that the note is printed.
    let transcript = ran.transcript(user.installed.home()).replace(WAITING, "");
    insta::assert_snapshot!(times.replace(&transcript, "[TIME]"), @r"
    exit 5
    --- stdout
    --- stderr
    error: cannot use the server `it`
      caused by: cannot connect
      caused by: `npx` failed to install the server after [TIME]
      caused by: the program failed (exit code 1)

    hint: end of its standard error:
      npm error 404 no such package
    hint: read its log with `switchboard logs it`
    ");
    // The installation leaves only its log.
    let said = user.run("doctor").await.stdout;
    let hints =
        "connect it with `switchboard connect it`\n  hint: read its log with `switchboard logs it`";
    assert!(said.contains(hints), "{said}");
}

#[tokio::test]
async fn failed_installation_names_variables_hidden_from_the_launcher() {
    let entry = json!({ "command": "npx", "args": ["-y", "server"], "env": { "NO_PROXY": "x" } });
    let user = User::with(&entry);
    user.installed.write("offline", "");
    let mut command = user.command();
    command.args(["connect", "it"]).env("NO_PROXY", "y").env("SSL_CERT_FILE", "/ca");
    let output = command.env("https_proxy", "http://u:secret@127.0.0.1:9").output().await.unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    let hint = "hint: it does not see `https_proxy` and `SSL_CERT_FILE`: if it needs that, \
        put `\"https_proxy\": \"${https_proxy}\"` into its `env`\n";
    assert!(said.contains(hint) && !said.contains("secret"), "{said}");
}

#[tokio::test]
async fn launcher_runs_as_written_if_resolve_launcher_is_false() {
    let entry = json!({ "command": "npx", "args": ["-y", "server"] });
    let user = User::with(&entry);
    install(&user);
    let mut off = user.command();
    let off = off.env("SWITCHBOARD_LAUNCHER", "off").args(["connect", "it"]).output().await;
    assert!(off.unwrap().status.success());
    let plain = "npx -y in switchboard/cache/launchers/neutral\n";
    assert_eq!(user.ledger(), plain);
    let mut entry = entry;
    entry["resolveLauncher"] = json!(false);
    user.configure(&entry);
    assert_eq!(user.connect().await, plain);
}

#[tokio::test]
async fn project_files_do_not_redirect_a_user_launcher() {
    let check = async |command: &str, args: &[&str], expected: &str| {
        let user = User::with(&json!({ "command": command, "args": args }));
        assert_eq!(user.connect().await, expected, "{command} {args:?}");
    };
    let neutral = "in switchboard/cache/launchers/neutral\n";
    // A launcher that is resolved, two that run as written, and one that searches for modules.
    let direct = "node installed/node_modules/server/cli.js in project\n";
    check("npx", &["server", "../server.toml"], &format!("npx --yes {neutral}{direct}")).await;
    check("npx", &["--quiet", "server"], &format!("npx --quiet {neutral}")).await;
    check("uvx", &["--python", "3.12", "server"], &format!("uvx --python {neutral}")).await;
    check("python3", &["-m", "server"], "python -m server in project\n").await;
}

#[tokio::test]
async fn files_in_an_explicit_cwd_can_affect_the_launcher() {
    let check = async |command: &str, args: &[&str], expected: &str| {
        let user = User::with(&json!({ "command": command, "args": args, "cwd": "." }));
        install(&user);
        assert_eq!(user.connect().await, expected, "{command} {args:?}");
    };
    check("npx", &["-y", "server"], "npx -y in project\nhostile .npmrc\nhostile\n").await;
    check("python3", &["-m", "server"], "hostile\n").await;
}

#[tokio::test]
async fn doctor_explains_launcher_resolution_without_starting_a_server() {
    let user = User::with(&json!({ "command": "npx", "args": ["-y", "server", "secret"] }));
    let examine = async || {
        let ran = user.run("doctor").await;
        assert_eq!(ran.code, Some(0));
        ran.stdout.replace(&*user.installed.home().to_string_lossy(), "~")
    };
    insta::assert_snapshot!(examine().await, @"
    note: it: `npx` installs or locates the server at the next start
      hint: connect it with `switchboard connect it`
    ");
    install(&user);
    insta::assert_snapshot!(examine().await, @"note: it: `npx` is not needed: `~/.npm/_npx/fb7daafb37d21221/node_modules/server/dist/cli.js` runs instead of it");
    user.configure(&json!({ "command": "npx", "args": ["--quiet", "server"] }));
    insta::assert_snapshot!(examine().await, @"note: it: `npx` starts the server and keeps running");
    assert_eq!(user.ledger(), "", "nothing was started");
}

/// A spawner without processes that simulates a slow launcher and the server that it installs.
#[derive(Clone)]
struct Slow {
    home: Home,
    /// The test notifies this to complete the installation.
    go_on: Arc<Notify>,
}

struct NeverExits;

impl Process for NeverExits {
    fn exited(&mut self) -> Pin<Box<dyn Future<Output = io::Result<ExitStatus>> + Send + '_>> {
        Box::pin(pending())
    }
    fn terminate(&self) {}
    fn kill(&self) {}
}

/// A process that exits when `done` is notified.
struct Installer {
    done: Arc<Notify>,
}

impl Process for Installer {
    fn exited(&mut self) -> Pin<Box<dyn Future<Output = io::Result<ExitStatus>> + Send + '_>> {
        Box::pin(async {
            self.done.notified().await;
            Ok(ExitStatus::default())
        })
    }
    fn terminate(&self) {}
    fn kill(&self) {}
}

impl Spawner for Slow {
    fn start<'a>(&'a self, program: &'a Program) -> Promise<'a, io::Result<Started>> {
        let (stdin, read) = tokio::io::duplex(64 * 1024);
        let (mut write, stdout) = tokio::io::duplex(64 * 1024);
        let process: Box<dyn Process> = if program.command == "uvx" {
            let (done, go_on) = (Arc::new(Notify::new()), Arc::clone(&self.go_on));
            let venv = self.home.path().join("venv");
            let installer = Installer { done: Arc::clone(&done) };
            tokio::spawn(async move {
                go_on.notified().await;
                fs::create_dir_all(venv.join("bin")).unwrap();
                fs::write(venv.join("bin/server"), "").unwrap();
                let mode = fs::Permissions::from_mode(0o755);
                fs::set_permissions(venv.join("bin/server"), mode).unwrap();
                write
                    .write_all(format!("switchboard: {}\n", venv.display()).as_bytes())
                    .await
                    .unwrap();
                done.notify_one();
            });
            Box::new(installer)
        } else {
            let script = Arc::new(Script::parse("[[tools]]\nname = 'echo'\n").unwrap());
            tokio::spawn(act(script, FixtureState::default(), read, write, tokio::io::sink()));
            Box::new(NeverExits)
        };
        let stderr = Box::new(tokio::io::empty());
        let started = Started { stdin: Box::new(stdin), stdout: Box::new(stdout), stderr, process };
        Box::pin(async { Ok(started) })
    }
}

#[tokio::test(start_paused = true)]
async fn launcher_installation_continues_after_the_waiting_calls_time_out() {
    let home = Home::new();
    fs::create_dir(home.path().join("switchboard")).unwrap();
    let config = r#"{ "mcpServers": { "it": { "command": "uvx", "args": ["server"] } } }"#;
    fs::write(home.path().join("switchboard/mcp.json"), config).unwrap();
    let environment = home.environment();
    let options = LoadOptions { project: home.path().to_owned(), ..LoadOptions::default() };
    let config = load(&environment, &Paths::of(&environment), &options).unwrap().config;
    let slow = Slow { home: home.clone(), go_on: Arc::default() };
    let gateway = Gateway::builder(environment).config(config).spawner(slow.clone()).build();
    let session = gateway.session(Headless);
    let began = tokio::time::Instant::now();
    let ask = || session.handle(Request::Call(call("it_echo", json!({ "text": "hello" }))));
    for _ in 0..2 {
        // The first call waits, the second fails at once.
        let failure = ask().await.unwrap_err();
        assert_eq!(failure.code, Code::Starting);
        assert_eq!(began.elapsed().as_secs(), 25);
        assert_eq!(
            render::text::failure(&failure),
            "starting: cannot use the server `it`: the server is being installed, for 25 s so far\nTry again in 15s",
        );
    }
    let status = session.handle(Request::Status).await.unwrap();
    let text = render::text::reply(&status);
    assert!(text.contains("\n○ it (connecting, installing for 25s)\n"), "{text}");
    let stage = json!({ "name": "installing", "forMs": 25_000 });
    assert_eq!(render::json::reply(&status)["servers"][0]["stage"], stage);
    let mut catalog = gateway.watch();
    slow.go_on.notify_one();
    catalog.changed().await.unwrap();
    let reply = ask().await.unwrap();
    assert_eq!(render::text::reply(&reply), "hello");
    assert!(began.elapsed() < Duration::from_secs(26), "no later call waited");
    gateway.shutdown().await;
}
