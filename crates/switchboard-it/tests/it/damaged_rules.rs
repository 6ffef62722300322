//! A damaged configuration file loses no rule: no call runs that the undamaged file refuses.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Value, json};
use switchboard::load::{LoadOptions, Loaded, load_again};
use switchboard::paths::Paths;
use switchboard::request::Request;
use switchboard::{Gateway, Headless, LastGood};
use switchboard_it::fixture::{FixtureState, Script};
use switchboard_it::harness::{Home, Troupe, call};

/// The servers are in a separate file, so that they stay defined if the file with the rules is
/// damaged.
const SERVERS: &str = r#"{ "mcpServers": {
    "kit": { "command": "fixture-server", "args": ["kit"] },
    "lent": { "command": "fixture-server", "args": ["kit"] }
} }"#;

const KIT: &str = "
[[tools]]
name = 'denied'
[[tools]]
name = 'asked'
[[tools]]
name = 'free'
annotations = { readOnlyHint = true }
";

/// The tools that `rules` refuses unless the user approves the call.
const REFUSED: &[&str] = &["kit_denied", "kit_asked", "lent_denied", "lent_asked", "lent_free"];

fn rules() -> Value {
    json!({
        "settings": {
            "deny": ["*/denied"],
            "allow": ["kit/free"],
            "approve": "all",
            "approveTools": ["kit/asked"],
            "pins": "warn",
        },
        "mcpServers": { "lent": { "approveTools": true, "excludeTools": [] } },
    })
}

struct Machine {
    home: Home,
    file: PathBuf,
    /// The last valid configuration, as a running gateway keeps it.
    good: LastGood,
}

impl Machine {
    fn new() -> Machine {
        let home = Home::new();
        let shared = home.path().join(".config/mcp");
        fs::create_dir_all(&shared).unwrap();
        fs::write(shared.join("mcp.json"), SERVERS).unwrap();
        let own = home.path().join("switchboard");
        fs::create_dir_all(&own).unwrap();
        let file = own.join("mcp.json");
        let mut machine = Machine { home, file, good: LastGood::default() };
        machine.write(rules().to_string().as_bytes());
        machine.good = machine.load(&LastGood::default()).good;
        machine
    }

    fn write(&self, damaged: &[u8]) {
        let _absent = fs::remove_file(&self.file);
        fs::write(&self.file, damaged).unwrap();
    }

    fn load(&self, last_good: &LastGood) -> Loaded {
        let environment = self.home.environment();
        let options = LoadOptions { project: environment.cwd.clone(), ..LoadOptions::default() };
        load_again(&environment, &Paths::of(&environment), &options, last_good).unwrap()
    }

    /// The `tools` that run in a new gateway, and in a gateway that had loaded the undamaged file.
    async fn runs(&self, tools: &[&str]) -> Vec<String> {
        let mut ran = Vec::new();
        for last_good in [&LastGood::default(), &self.good] {
            let config = self.load(last_good).config;
            let mut builder = Gateway::builder(self.home.environment());
            let state = FixtureState::default();
            let script = Arc::new(Script::parse(KIT).unwrap());
            for server in ["kit", "lent"] {
                let acts = vec![Arc::clone(&script)];
                builder = builder.server(server, Troupe::new(acts, state.clone()));
            }
            let gateway = builder.config(config).build();
            let session = gateway.session(Headless);
            for tool in tools {
                if session.handle(Request::Call(call(tool, json!({})))).await.is_ok() {
                    ran.push((*tool).to_owned());
                }
            }
            assert!(state.ledger().calls.len() >= ran.len().min(1), "calls reach the fixture");
            gateway.shutdown().await;
        }
        ran
    }

    async fn check(&self, about: &str) {
        assert_eq!(self.runs(REFUSED).await, Vec::<String>::new(), "{about}");
    }
}

#[tokio::test(start_paused = true)]
async fn intact_rules_deny_and_allow_calls() {
    let machine = Machine::new();
    machine.check("as it is").await;
    assert_eq!(machine.runs(&["kit_free"]).await, ["kit_free", "kit_free"]);
    machine.write(b"{}");
    assert_eq!(machine.runs(&["kit_denied", "lent_free"]).await.len(), 4, "there are no rules");
}

#[tokio::test(start_paused = true)]
async fn configuration_file_truncated_at_any_byte_loses_no_rule() {
    let machine = Machine::new();
    let whole = rules().to_string();
    for end in 0..whole.len() {
        machine.write(&whole.as_bytes()[..end]);
        machine.check(&format!("cut at {end}")).await;
    }
}

/// Wrong values in place of an object or a rule.
const OTHERS: &[&str] =
    &["null", "true", "false", "0", "-1.5", "\"\"", "\"deny\"", "[]", "[null]", "[[]]", "[{}]"];

#[tokio::test(start_paused = true)]
async fn configuration_file_that_is_not_json_loses_no_rule() {
    let machine = Machine::new();
    let blank = ["", " ", "\n\n", "\u{feff}", "// nothing", "/* nothing */", "\0", "{", "}", ","];
    for text in OTHERS.iter().chain(&blank) {
        machine.write(text.as_bytes());
        machine.check(text).await;
    }
    let huge = format!("{{{}\"settings\": {{}}}}", "\"a\": 1,".repeat(20_000));
    let flooded = (0..300).map(|n| format!("\"x{n}\": 1,")).collect::<String>();
    let flooded = format!("{{ \"settings\": {{ {flooded} \"deny\": 5 }} }}");
    let latin = [b"{ \"settings\": { \"deny\": [\"k\xefit/*\"] } }".to_vec()];
    for bytes in [huge.into_bytes(), flooded.into_bytes()].into_iter().chain(latin) {
        machine.write(&bytes);
        machine.check(&String::from_utf8_lossy(&bytes[..30])).await;
    }
}

#[tokio::test(start_paused = true)]
async fn non_regular_configuration_file_loses_no_rule() {
    let machine = Machine::new();
    let remove = || fs::remove_file(&machine.file).unwrap();
    remove();
    symlink("/nowhere/at/all", &machine.file).unwrap();
    machine.check("a link that leads nowhere").await;
    remove();
    symlink("/dev/zero", &machine.file).unwrap();
    machine.check("a device").await;
    remove();
    symlink("mcp.json", &machine.file).unwrap();
    machine.check("a link to itself").await;
    remove();
    let mode = rustix::fs::Mode::from(0o600);
    rustix::fs::mknodat(rustix::fs::CWD, &machine.file, rustix::fs::FileType::Fifo, mode, 0)
        .unwrap();
    machine.check("a pipe").await;
    remove();
    let _listener = std::os::unix::net::UnixListener::bind(&machine.file).unwrap();
    machine.check("a socket").await;
    remove();
    fs::create_dir(&machine.file).unwrap();
    machine.check("a directory").await;
}

#[tokio::test(start_paused = true)]
async fn wrong_type_or_misspelt_key_loses_no_rule() {
    let machine = Machine::new();
    for at in ["/settings", "/mcpServers", "/mcpServers/lent"] {
        for other in OTHERS {
            let mut damaged = rules();
            *damaged.pointer_mut(at).unwrap() = serde_json::from_str(other).unwrap();
            machine.write(damaged.to_string().as_bytes());
            machine.check(&format!("{at} is {other}")).await;
        }
    }
    for rule in ["deny", "allow", "approve", "approveTools", "pins"] {
        for other in ["null", "7", "{}", "[7]", "[[]]", "[{}]", "\"never\"", "\"\""] {
            let mut damaged = rules();
            damaged["settings"][rule] = serde_json::from_str(other).unwrap();
            machine.write(damaged.to_string().as_bytes());
            machine.check(&format!("{rule} is {other}")).await;
        }
    }
    for (name, misspelt) in [
        ("deny", "Deny"),
        ("deny", "denny"),
        ("deny", "den"),
        ("approve", "approves"),
        ("approve", "aprove"),
        ("approveTools", "approvetools"),
        ("approveTools", "approveTool"),
    ] {
        let mut damaged = rules();
        let value = damaged["settings"].as_object_mut().unwrap().remove(name).unwrap();
        damaged["settings"][misspelt] = value;
        machine.write(damaged.to_string().as_bytes());
        machine.check(&format!("{name} is written {misspelt}")).await;
    }
    for misspelt in ["Settings", "setting", "setings"] {
        let mut damaged = rules();
        let settings = damaged.as_object_mut().unwrap().remove("settings").unwrap();
        damaged[misspelt] = settings;
        machine.write(damaged.to_string().as_bytes());
        machine.check(&format!("settings is written {misspelt}")).await;
    }
    let mut damaged = rules();
    let deny = damaged["settings"].as_object_mut().unwrap().remove("deny").unwrap();
    damaged["deny"] = deny;
    machine.write(damaged.to_string().as_bytes());
    machine.check("deny stands outside of settings").await;
}

/// Serializes `value` with the member at `path` twice. One of the two has the value `second`; it
/// comes first if `first` is set.
fn doubled(value: &Value, path: &[&str], second: &str, first: bool) -> String {
    let Value::Object(members) = value else { return value.to_string() };
    let mut written = Vec::new();
    for (key, member) in members {
        match path {
            [only] if key == only => {
                let (own, other) = (format!("\"{key}\":{member}"), format!("\"{key}\":{second}"));
                written.extend(if first { [other, own] } else { [own, other] });
            }
            [next, rest @ ..] if key == next && !rest.is_empty() => {
                written.push(format!("\"{key}\":{}", doubled(member, rest, second, first)));
            }
            _ => written.push(format!("\"{key}\":{member}")),
        }
    }
    format!("{{{}}}", written.join(","))
}

const KEYS: &[&[&str]] = &[
    &["settings"],
    &["settings", "deny"],
    &["settings", "allow"],
    &["settings", "approve"],
    &["settings", "approveTools"],
    &["settings", "pins"],
    &["mcpServers"],
    &["mcpServers", "lent"],
    &["mcpServers", "lent", "approveTools"],
];

#[tokio::test(start_paused = true)]
async fn duplicate_key_in_a_configuration_file_loses_no_rule() {
    let machine = Machine::new();
    let seconds = OTHERS.iter().chain(&["{}", "\"none\"", "[\"kit/*\"]"]);
    for second in seconds {
        for path in KEYS {
            for first in [false, true] {
                let damaged = doubled(&rules(), path, second, first);
                machine.write(damaged.as_bytes());
                machine.check(&damaged).await;
            }
        }
    }
}

/// A file system can leave a block of zeros after a crash.
#[tokio::test(start_paused = true)]
async fn zeroed_bytes_in_a_configuration_file_lose_no_rule() {
    let machine = Machine::new();
    let whole = rules().to_string().into_bytes();
    for length in [1, 16, 64, whole.len()] {
        for at in (0..whole.len()).step_by(5) {
            let mut damaged = whole.clone();
            let end = (at + length).min(damaged.len());
            damaged[at..end].fill(0);
            machine.write(&damaged);
            machine.check(&format!("{length} zeros at {at}")).await;
        }
    }
}

/// Rules in a file that other programs share are remembered between commands.
#[tokio::test(start_paused = true)]
async fn damaged_shared_config_file_loses_no_rule() {
    for shared in [".agents/mcp.json", ".agents/mcp/mcp.json", ".pi/agent/mcp.json"] {
        let mut machine = Machine::new();
        machine.write(b"{}");
        machine.file = machine.home.path().join(shared);
        fs::create_dir_all(machine.file.parent().unwrap()).unwrap();
        machine.write(rules().to_string().as_bytes());
        machine.good = machine.load(&LastGood::default()).good;
        machine.check(shared).await;
        for damaged in ["", "null", "[]", "{", "5", "\u{feff}", "{ \"settings\": { \"deny\": ["] {
            machine.write(damaged.as_bytes());
            machine.check(&format!("{shared} {damaged:?}")).await;
        }
        fs::remove_file(&machine.file).unwrap();
        symlink("/dev/zero", &machine.file).unwrap();
        machine.check(&format!("{shared} as a device")).await;
    }
}

#[tokio::test(start_paused = true)]
async fn truncated_shared_file_with_invalid_rule_refuses_calls() {
    for text in [
        r#"{ "mcpServers": { "lent": { "disabledTools": ["free"] } } }"#,
        r#"{ "mcpServers": { "lent": { "deny": ["free"] } } }"#,
        r#"{ "mcpServers": { "lent": { "excludeTools": 5 } } }"#,
        r#"{ "mcpServers": { "lent": { "excludeTools": ["[free"] } } }"#,
        r#"{ "mcpServers": { "lent": { "includeTools": null } } }"#,
        r#"{ "settings": { "deny": 5 } }"#,
        r#"{ "settings": { "Deny": ["lent/free"] } }"#,
        r#"{ "settings": { "deny": ["lent/[free"] } }"#,
        r#"{ "deny": ["lent/free"] }"#,
        r#"{ "permissions": { "deny": ["lent/free"] } }"#,
    ] {
        let machine = with_rules_in(".agents/mcp.json");
        machine.write(text.as_bytes());
        let config = machine.load(&LastGood::default()).config;
        assert!(config.unread_rules.is_some() || !config.servers.contains_key("lent"), "{text}");
        machine.write(&text.as_bytes()[..text.len() - 1]);
        assert!(machine.load(&LastGood::default()).config.unread_rules.is_some(), "cut: {text}");
        machine.check(text).await;
    }
}

/// The configuration files that Switchboard shares with other programs, and the file of Pi.
const SHARED: &[&str] = &[".agents/mcp.json", ".agents/mcp/mcp.json", ".pi/agent/mcp.json"];

/// A machine with rules in the file at `path`, which no command has read yet.
fn with_rules_in(path: &str) -> Machine {
    let mut machine = Machine::new();
    machine.write(b"{}");
    machine.load(&LastGood::default());
    machine.file = machine.home.path().join(path);
    fs::create_dir_all(machine.file.parent().unwrap()).unwrap();
    machine
}

/// A machine with its rules in the file at `path`, which a command has read.
fn with_known_rules_in(path: &str) -> Machine {
    let mut machine = with_rules_in(path);
    machine.write(rules().to_string().as_bytes());
    machine.good = machine.load(&LastGood::default()).good;
    machine
}

fn record(machine: &Machine) -> PathBuf {
    let record = machine.home.path().join("switchboard/state/known-files.json");
    assert!(record.exists(), "{record:?}");
    record
}

#[tokio::test(start_paused = true)]
async fn unreadable_directory_of_shared_file_loses_no_rule() {
    type Damage = (&'static str, fn(&Path));
    let blocked: [Damage; 4] = [
        ("a link loop", |directory| symlink(directory, directory).unwrap()),
        ("a link to nowhere", |directory| symlink("/nowhere/at/all", directory).unwrap()),
        ("a link to a file", |directory| symlink("/etc/passwd", directory).unwrap()),
        ("a file", |directory| fs::write(directory, "x").unwrap()),
    ];
    for shared in SHARED {
        for (what, block) in blocked {
            let machine = with_known_rules_in(shared);
            let directory = machine.file.parent().unwrap();
            fs::remove_dir_all(directory).unwrap();
            block(directory);
            for time in 0..3 {
                machine.check(&format!("{shared}: its directory is {what}, {time}")).await;
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn removed_shared_file_ends_its_rules_in_new_processes() {
    for shared in SHARED {
        let machine = with_known_rules_in(shared);
        fs::remove_dir_all(machine.file.parent().unwrap()).unwrap();
        let config = machine.load(&LastGood::default()).config;
        assert_eq!((config.settings.deny.len(), config.unread_rules), (0, None), "{shared}");
    }
}

#[tokio::test(start_paused = true)]
async fn shared_file_that_reappears_damaged_loses_no_rule() {
    for shared in SHARED {
        let machine = with_known_rules_in(shared);
        fs::remove_file(&machine.file).unwrap();
        machine.load(&LastGood::default());
        machine.load(&LastGood::default());
        machine.write(b"{ \"settings\": { \"deny\": [");
        machine.check(shared).await;
        machine.check(shared).await;
    }
}

#[tokio::test(start_paused = true)]
async fn damaged_record_of_configuration_files_loses_no_rule() {
    for shared in SHARED {
        for damaged in ["", "{", "null", "{}", "[]", "\0\0\0", "{ \"files\": 5 }"] {
            let machine = with_known_rules_in(shared);
            fs::write(record(&machine), damaged).unwrap();
            machine.write(b"{ \"settings\": { \"deny\": [");
            machine.check(&format!("{shared} {damaged:?}")).await;
            machine.check(&format!("{shared} {damaged:?}, again")).await;
            machine.write(b"{}");
            assert_eq!(machine.runs(&["kit_denied"]).await.len(), 2, "{shared} is sound again");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn pi_file_damaged_at_first_load_loses_no_rule() {
    let machine = with_rules_in(".pi/agent/mcp.json");
    for damaged in ["", "{", "[]", "{ \"settings\": { \"deny\": ["] {
        machine.write(damaged.as_bytes());
        assert!(machine.load(&LastGood::default()).config.unread_rules.is_some(), "{damaged}");
        machine.check(damaged).await;
    }
}

/// The rules are in the entries of this file, and another file defines the servers.
#[tokio::test(start_paused = true)]
async fn damaged_server_entry_or_root_key_loses_no_rule() {
    let machine = Machine::new();
    let entries = r#"{ "lent": { "excludeTools": ["*"] } }"#;
    machine.write(format!("{{ \"mcpServers\": {entries} }}").as_bytes());
    assert_eq!(machine.runs(&["lent_free"]).await, Vec::<String>::new());
    machine.write(br#"{ "mcpServers": { "lent": { "includeTools": [] } } }"#);
    assert_eq!(machine.runs(&["lent_free"]).await, Vec::<String>::new());
    let keys = ["mcpservers", "mcpServer", "servers", "mcpSevers", "McpServers", "mcp_servers"];
    for key in keys.into_iter().chain(["mcp", "context_servers", "tools"]) {
        machine.write(format!("{{ \"{key}\": {entries} }}").as_bytes());
        assert_eq!(machine.runs(&["lent_free"]).await, Vec::<String>::new(), "{key}");
    }
    for entry in [
        r#""lent": { "excludeTools": ["*"] }, "lent": { "excludeTools": ["*"] }"#,
        r#""lent": { "disabled": true }, "lent": { "disabled": true }"#,
        r#""lent": { "disabledTools": ["free"] }"#,
        r#""lent": { "deny": ["free"] }"#,
        r#""Lent": { "excludeTools": ["free"] }"#,
        r#""deny": ["lent/free"]"#,
        r#""settings": { "deny": ["lent/free"] }"#,
    ] {
        machine.write(format!("{{ \"mcpServers\": {{ {entry} }} }}").as_bytes());
        for last_good in [&LastGood::default(), &machine.good] {
            let config = machine.load(last_good).config;
            let usable = config.unread_rules.is_none() && config.servers.contains_key("lent");
            let last_good_holds = !config.settings.deny.is_empty();
            assert!(!usable || last_good_holds, "{entry}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn imported_empty_tool_list_allows_no_tool() {
    let machine = Machine::new();
    let shared = machine.home.path().join(".config/mcp/mcp.json");
    fs::remove_file(shared).unwrap();
    machine.write(br#"{ "imports": ["codex"] }"#);
    fs::create_dir_all(machine.home.path().join(".codex")).unwrap();
    let codex = machine.home.path().join(".codex/config.toml");
    let entry = "[mcp_servers.kit]\ncommand = 'fixture-server'\nargs = ['kit']\n";
    fs::write(&codex, entry).unwrap();
    assert_eq!(machine.runs(&["kit_free"]).await.len(), 2);
    fs::write(&codex, format!("{entry}enabled_tools = []\n")).unwrap();
    assert_eq!(machine.runs(&["kit_free"]).await, Vec::<String>::new());
}

/// Some editors remove a file before they write it again.
#[tokio::test(start_paused = true)]
async fn running_gateway_keeps_rules_of_a_removed_configuration_file() {
    let machine = Machine::new();
    fs::remove_file(&machine.file).unwrap();
    let config = machine.load(&machine.good).config;
    assert_eq!(config.settings.deny, ["*/denied"]);
    let later = machine.load(&machine.load(&machine.good).good).config;
    assert_eq!(later.settings.deny, ["*/denied"]);
    assert!(machine.load(&LastGood::default()).config.settings.deny.is_empty());
}

/// Each deny pattern is malformed or matches no tool.
#[tokio::test(start_paused = true)]
async fn malformed_deny_pattern_loses_no_rule() {
    let machine = Machine::new();
    for pattern in [
        "kit/[denied",
        "kit/{denied",
        "kit/[z-a]",
        "kit/[]",
        "kit/denied\\",
        "[",
        "",
        " ",
        "kit/denied ",
        " kit/denied",
        "kit\\denied",
        "!kit/denied",
        "kit/{denied, asked}",
    ] {
        let mut rules = rules();
        rules["settings"]["deny"] = json!([pattern]);
        machine.write(rules.to_string().as_bytes());
        machine.check(pattern).await;
    }
}
