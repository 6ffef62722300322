//! `install pi` adds the package of Switchboard, and `uninstall pi` restores Pi's settings exactly.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};

use super::Machine;

const SETTINGS: &str = ".pi/agent/settings.json";
const SERVERS: &str = ".pi/agent/mcp.json";
const PACKAGE: &str = "switchboard/data/pi-switchboard";

const BEFORE: &str = r#"{
  "theme": "hunter2",
  "packages": [
    "npm:some-skills@1.0.0",
    { "source": "npm:pi-mcp-adapter@2.36.0", "skills": [] }
  ],
  "extensions": ["+builtin:mcp", "./mine.ts"]
}
"#;

impl Machine {
    fn with_pi(settings: &str) -> Machine {
        let machine = Machine::bare();
        machine.installed.write(SETTINGS, settings);
        machine
    }

    fn named(&self, text: &str) -> String {
        text.replace(&*self.home.to_string_lossy(), "[HOME]")
    }

    fn settings(&self) -> Value {
        serde_json::from_str(&self.read(SETTINGS)).unwrap()
    }

    fn package_path(&self) -> String {
        self.home.join(PACKAGE).to_string_lossy().into_owned()
    }

    fn package_file(&self, name: &str) -> String {
        self.read(&format!("{PACKAGE}/{name}"))
    }

    /// Writes the record of an earlier version, which added the entry of Switchboard to Pi's
    /// servers.
    fn write_older_record(&self, before: &str) {
        let path = self.home.join(SERVERS);
        let host = json!({ "path": path, "before": before, "after": "not what is there now" });
        let record = json!({ "host": host, "ours": null, "moved": [], "copied": {} });
        self.installed.write("switchboard/state/installed-pi.json", &record.to_string());
        let private = fs::Permissions::from_mode(0o600);
        fs::set_permissions(self.record("pi"), private).unwrap();
    }
}

#[tokio::test]
async fn pi_package_replaces_builtin_mcp_and_uninstall_restores_it() {
    let machine = Machine::with_pi(BEFORE);
    machine.installed.write(SERVERS, r#"{ "mcpServers": { "a": { "command": "a" } } }"#);
    let before = machine.files();
    let said = machine.done("install pi --move --yes").await;
    assert!(said.contains("\n+ index.ts\n"), "{said}");
    let said = machine.named(&said);
    let but_our_files: Vec<&str> = said.lines().filter(|line| !line.starts_with("+ ")).collect();
    insta::assert_snapshot!(but_our_files.join("\n"));
    let directory = machine.package_path();
    assert_eq!(
        machine.settings(),
        json!({
            "theme": "hunter2",
            "packages": ["npm:some-skills@1.0.0", directory],
            "extensions": ["./mine.ts", "-builtin:mcp"],
        })
    );
    let manifest: Value = serde_json::from_str(&machine.package_file("package.json")).unwrap();
    assert_eq!(manifest["name"], "pi-switchboard");
    let entry = manifest["pi"]["extensions"][0].as_str().unwrap();
    assert!(machine.home.join(PACKAGE).join(entry).is_file(), "{entry}");
    let binary: Value = serde_json::from_str(&machine.package_file("binary.json")).unwrap();
    assert_eq!(binary, json!({ "path": machine.home.join("bin/switchboard") }));
    let said = machine.done("install pi").await;
    assert!(said.contains("installed in Pi already"), "{said}");
    let said = machine.done("uninstall pi --yes").await;
    assert!(said.ends_with("Switchboard is not installed in Pi any more\n"), "{said}");
    assert_eq!(machine.files(), before);
    assert!(!machine.home.join(PACKAGE).exists());
    assert!(!machine.record("pi").exists());
}

#[tokio::test]
async fn pi_install_creates_settings_and_uninstall_removes_them() {
    let machine = Machine::bare();
    let ran = machine.run("install pi --dry-run").await;
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert_eq!(machine.run("install pi").await.code, Some(4));
    assert_eq!(machine.files(), Default::default());
    machine.done("install pi --yes").await;
    let expected = json!({ "packages": [machine.package_path()], "extensions": ["-builtin:mcp"] });
    assert_eq!(machine.settings(), expected);
    machine.done("uninstall pi --yes").await;
    assert_eq!(machine.files(), Default::default());
    let said = machine.done("uninstall pi --yes").await;
    assert!(said.contains("is not installed in Pi"), "{said}");
}

#[tokio::test]
async fn pi_reinstall_replaces_outdated_package_files() {
    let machine = Machine::with_pi(BEFORE);
    let before = machine.files();
    machine.done("install pi --yes").await;
    let installed = machine.files();
    machine.installed.write(&format!("{PACKAGE}/index.ts"), "// of an older version\n");
    machine.installed.write(&format!("{PACKAGE}/gone.ts"), "// of an older version\n");
    let said = machine.done("install pi --yes").await;
    assert!(said.contains("- gone.ts\n~ index.ts\n"), "{said}");
    assert!(!said.contains("settings.json"), "{said}");
    assert_eq!(machine.files(), installed);
    machine.done("uninstall pi --yes").await;
    assert_eq!(machine.files(), before);
}

#[tokio::test]
async fn pi_uninstall_keeps_later_edits_of_the_user() {
    let machine = Machine::with_pi(BEFORE);
    machine.done("install pi --yes").await;
    let text = machine.read(SETTINGS).replace("hunter2", "dark").replace("@1.0.0", "@2.0.0");
    machine.installed.write(SETTINGS, &text);
    let said = machine.done("install pi --yes").await;
    assert!(said.contains("installed in Pi already"), "{said}");
    machine.done("uninstall pi --yes").await;
    assert_eq!(
        machine.settings(),
        json!({
            "theme": "dark",
            "packages": [
                "npm:some-skills@2.0.0",
                { "source": "npm:pi-mcp-adapter@2.36.0", "skills": [] },
            ],
            "extensions": ["./mine.ts", "+builtin:mcp"],
        })
    );
}

#[tokio::test]
async fn install_keeps_a_pi_switchboard_package_from_npm() {
    let machine = Machine::with_pi(r#"{ "packages": ["npm:pi-switchboard@1.0.0"] }"#);
    let before = machine.files();
    machine.done("install pi --yes").await;
    let expected =
        json!({ "packages": ["npm:pi-switchboard@1.0.0"], "extensions": ["-builtin:mcp"] });
    assert_eq!(machine.settings(), expected);
    assert!(!machine.home.join(PACKAGE).exists());
    let said = machine.done("uninstall pi --yes").await;
    assert!(said.contains("with the entry of Switchboard that it had before"), "{said}");
    assert_eq!(machine.files(), before);
    machine.done("uninstall pi --yes").await;
    assert_eq!(machine.settings(), json!({ "packages": [] }));
}

#[tokio::test]
async fn malformed_pi_settings_are_left_unchanged() {
    for (settings, reason) in [
        ("[]", "`(root)` cannot be changed, because it is not an object"),
        (r#"{ "packages": "npm:x" }"#, "`packages` cannot be changed, because it is not an array"),
        (r#"{ "extensions": {} }"#, "`extensions` cannot be changed, because it is not an array"),
        ("{ \"packages\": ", "line 1, column 15"),
    ] {
        let machine = Machine::with_pi(settings);
        let before = machine.files();
        let ran = machine.run("install pi --yes").await;
        assert_eq!(ran.code, Some(2), "{settings}: {}", ran.stderr);
        assert!(ran.stderr.contains(reason), "{settings}: {}", ran.stderr);
        assert_eq!(machine.files(), before, "{settings}");
        assert!(!machine.record("pi").exists(), "{settings}");
    }
}

#[tokio::test]
async fn pi_install_does_not_write_through_a_link() {
    let machine = Machine::with_pi("{}");
    let elsewhere = machine.home.join("checkout");
    fs::create_dir(&elsewhere).unwrap();
    let package = machine.home.join(PACKAGE);
    fs::create_dir_all(package.parent().unwrap()).unwrap();
    std::os::unix::fs::symlink(&elsewhere, &package).unwrap();
    let ran = machine.run("install pi --yes").await;
    assert_ne!(ran.code, Some(0));
    assert!(ran.stderr.contains("is a symbolic link"), "{}", ran.stderr);
    assert_eq!(fs::read_dir(&elsewhere).unwrap().count(), 0);
    assert_eq!(machine.read(SETTINGS), "{}");
}

#[tokio::test]
async fn pi_install_and_uninstall_remove_entry_of_earlier_version() {
    let theirs = "{ \"mcpServers\": { \"a\": { \"command\": \"a\" } } }\n";
    let ours = r#""switchboard": { "command": "switchboard", "args": ["serve"] }"#;
    let machine = Machine::with_pi(BEFORE);
    machine.installed.write(SERVERS, &theirs.replace("} } }", &format!("}}, {ours} }} }}")));
    machine.write_older_record(theirs);
    machine.done("install pi --yes").await;
    assert_eq!(machine.read(SERVERS), theirs);
    machine.done("uninstall pi --yes").await;
    assert_eq!((machine.read(SERVERS).as_str(), machine.read(SETTINGS).as_str()), (theirs, BEFORE));
    // The result is the same without the new installation in between.
    machine.write_older_record(theirs);
    machine.installed.write(SERVERS, &theirs.replace("} } }", &format!("}}, {ours} }} }}")));
    machine.done("uninstall pi --yes").await;
    assert_eq!((machine.read(SERVERS).as_str(), machine.read(SETTINGS).as_str()), (theirs, BEFORE));
}

#[tokio::test]
async fn pi_uninstall_without_record_restores_builtin_mcp() {
    let machine = Machine::with_pi("{}\n");
    machine.done("install pi --yes").await;
    fs::remove_file(machine.record("pi")).unwrap();
    machine.done("uninstall pi --yes").await;
    assert_eq!(machine.settings(), json!({ "packages": [], "extensions": [] }));
    assert!(!machine.home.join(PACKAGE).exists());
}

#[tokio::test]
async fn pi_package_stays_while_another_pi_directory_loads_it() {
    let machine = Machine::with_pi(BEFORE);
    machine.installed.write("other/settings.json", BEFORE);
    let before = machine.files();
    let run = async |directory: &str, words: &str| {
        let mut command = machine.command(words);
        let ran = command.env("PI_CODING_AGENT_DIR", machine.home.join(directory)).output().await;
        assert_eq!(ran.unwrap().status.code(), Some(0), "{directory}: {words}");
    };
    for directory in [".pi/agent", "other"] {
        run(directory, "install pi --yes").await;
    }
    run("other", "uninstall pi --yes").await;
    assert_eq!(machine.read("other/settings.json"), BEFORE);
    assert!(machine.home.join(PACKAGE).join("package.json").exists());
    assert!(machine.read(SETTINGS).contains(PACKAGE));
    run(".pi/agent", "uninstall pi --yes").await;
    assert_eq!(machine.files(), before);
}
