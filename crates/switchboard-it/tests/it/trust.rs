//! Servers of a project run only after the user has approved their exact definition.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use switchboard::config::layers::PendingServer;
use switchboard::load::{LoadOptions, load};
use switchboard::paths::Paths;
use switchboard::trust::TrustStore;
use switchboard::{Gateway, Headless, Session, explain, render, request};
use switchboard_it::harness::Home;

/// A project in its own home directory. Its server creates a canary file when it runs.
struct Project {
    home: Home,
    folder: PathBuf,
}

impl Project {
    fn new() -> Self {
        let home = Home::new();
        let folder = home.path().join("project");
        fs::create_dir(&folder).unwrap();
        Self { home, folder }
    }

    fn canary(&self) -> PathBuf {
        self.folder.join("canary")
    }

    /// Writes a server that runs a script of the project.
    fn write(&self, script: &str, args: &str) {
        fs::write(self.folder.join("run.sh"), script).unwrap();
        let server = format!(r#"{{ "command": "/bin/sh", "args": ["run.sh"{args}] }}"#);
        let config = format!(r#"{{ "mcpServers": {{ "local": {server} }} }}"#);
        fs::write(self.folder.join(".mcp.json"), config).unwrap();
    }

    fn open(&self) -> (Gateway, Session, Vec<PendingServer>) {
        let mut environment = self.home.environment();
        environment.cwd.clone_from(&self.folder);
        let paths = Paths::of(&environment);
        let options = LoadOptions { project: self.folder.clone(), ..LoadOptions::default() };
        let loaded = load(&environment, &paths, &options).unwrap();
        let pending = loaded.config.pending.clone();
        let gateway = Gateway::builder(environment).config(loaded.config).build();
        let session = gateway.session(Headless);
        (gateway, session, pending)
    }

    fn approve(&self, pending: &PendingServer) {
        let store = TrustStore::at(Paths::of(&self.home.environment()).trust());
        store.approve(&pending.hash, &pending.name, &self.folder).unwrap();
    }

    /// Sends every request that could start the server; returns the last response.
    async fn use_it(&self) -> String {
        let (gateway, session, _) = self.open();
        gateway.list_missing(|_, _, _| {}).await;
        let mut last = String::new();
        for arguments in [
            r#"{}"#,
            r#"{ "search": "anything" }"#,
            r#"{ "tool": "local_echo" }"#,
            r#"{ "describe": "local_echo" }"#,
            r#"{ "server": "local" }"#,
            r#"{ "connect": "local" }"#,
        ] {
            last = ask(&session, arguments).await;
        }
        gateway.shutdown().await;
        last
    }
}

/// The text that a model gets for one `mcp` call.
async fn ask(session: &Session, arguments: &str) -> String {
    let parsed = request::parse(serde_json::from_str(arguments).unwrap());
    let outcome = match parsed.map_err(explain::request_error) {
        Ok(parsed) => session.handle(parsed.request).await,
        Err(failure) => Err(failure),
    };
    match outcome {
        Ok(reply) => render::text::reply(&reply),
        Err(failure) => render::text::failure(&failure),
    }
}

const TOUCHES: &str = "touch canary\n";

#[tokio::test]
async fn pending_server_is_shown_but_never_started() {
    let project = Project::new();
    project.write(TOUCHES, "");
    let answer = project.use_it().await;
    insta::assert_snapshot!(answer, @r"
    trust_required: the server `local` comes from this project and was not approved
    Ask the user to look at its definition and to trust it: switchboard trust local
    ");
    assert!(!project.canary().exists());
}

#[tokio::test]
async fn trusted_server_becomes_pending_if_definition_or_script_changes() {
    let project = Project::new();
    project.write(TOUCHES, "");
    let (_, _, pending) = project.open();
    project.approve(&pending[0]);
    let answer = project.use_it().await;
    assert!(answer.starts_with("connect_failed"), "{answer}");
    assert!(project.canary().exists(), "the approved server did not start");

    for (script, args) in [(TOUCHES, r#", "--more""#), ("touch canary # changed\n", "")] {
        fs::remove_file(project.canary()).ok();
        project.write(script, args);
        assert!(project.use_it().await.starts_with("trust_required"), "{script} {args}");
        assert!(!project.canary().exists());
    }
    project.write(TOUCHES, "");
    assert!(
        project.use_it().await.starts_with("connect_failed"),
        "the approval of the original definition was lost"
    );
}

#[tokio::test]
async fn changed_script_in_working_directory_makes_its_server_pending() {
    let project = Project::new();
    let below = project.folder.join("below");
    fs::create_dir(&below).unwrap();
    fs::write(below.join("run.sh"), TOUCHES).unwrap();
    let config = r#"{ "mcpServers": { "local": {
        "command": "/bin/sh", "args": ["run.sh"], "cwd": "below" } } }"#;
    fs::write(project.folder.join(".mcp.json"), config).unwrap();
    let (_, _, pending) = project.open();
    project.approve(&pending[0]);
    assert!(
        project.use_it().await.starts_with("connect_failed"),
        "the approved server did not start"
    );
    fs::write(below.join("run.sh"), "touch canary # changed\n").unwrap();
    assert!(project.use_it().await.starts_with("trust_required"));
}

#[tokio::test]
async fn server_is_not_started_after_untrust() {
    let project = Project::new();
    project.write(TOUCHES, "");
    let (_, _, pending) = project.open();
    project.approve(&pending[0]);
    let store = TrustStore::at(Paths::of(&project.home.environment()).trust());
    assert!(store.revoke("local", &project.folder).unwrap());
    assert!(project.use_it().await.starts_with("trust_required"));
    assert!(!project.canary().exists());
}

#[tokio::test]
async fn malformed_trust_file_leaves_every_server_pending() {
    let project = Project::new();
    project.write(TOUCHES, "");
    let (_, _, pending) = project.open();
    project.approve(&pending[0]);
    let file = Paths::of(&project.home.environment()).trust();
    fs::write(&file, "{ damaged").unwrap();
    assert!(project.use_it().await.starts_with("trust_required"));
    assert!(!project.canary().exists());
    let store = TrustStore::at(file.clone());
    assert!(store.approve(&pending[0].hash, "local", &project.folder).is_err());
    assert_eq!(fs::read_to_string(file).unwrap(), "{ damaged");
}

#[tokio::test]
async fn definition_trusted_in_one_project_is_pending_in_another() {
    let project = Project::new();
    project.write(TOUCHES, "");
    let (_, _, pending) = project.open();
    project.approve(&pending[0]);
    let other = Project { home: project.home.clone(), folder: project.home.path().join("other") };
    fs::create_dir(&other.folder).unwrap();
    other.write(TOUCHES, "");
    assert!(other.use_it().await.starts_with("trust_required"));
    assert!(!other.canary().exists());
}

#[tokio::test]
async fn changed_script_is_not_started_by_a_running_gateway() {
    let project = Project::new();
    project.write(TOUCHES, "");
    let (_, _, pending) = project.open();
    project.approve(&pending[0]);
    let (gateway, session, _) = project.open();
    project.write("touch canary # changed\n", "");
    // The second call is within the backoff of the first, and gets the same result.
    for _ in 0..2 {
        let answer = ask(&session, r#"{ "tool": "local_echo" }"#).await;
        assert!(answer.starts_with("trust_required"), "{answer}");
        assert!(answer.contains("has changed since it was approved"), "{answer}");
        assert!(answer.ends_with("to trust it: switchboard trust local"), "{answer}");
    }
    let status = ask(&session, "{}").await;
    let line = status.lines().nth(1).unwrap();
    insta::assert_snapshot!(line, @"⚠ local (pending: a file of the project that the server runs has changed since it was approved; the user has to trust it again)");
    gateway.shutdown().await;
    assert!(!project.canary().exists());
}

#[tokio::test]
async fn trust_withdrawn_by_another_process_prevents_the_server_start() {
    let project = Project::new();
    project.write(TOUCHES, "");
    let (_, _, pending) = project.open();
    project.approve(&pending[0]);
    let (gateway, session, _) = project.open();
    let store = TrustStore::at(Paths::of(&project.home.environment()).trust());
    assert!(store.revoke("local", &project.folder).unwrap());
    let answer = ask(&session, r#"{ "tool": "local_echo" }"#).await;
    assert!(answer.starts_with("trust_required"), "{answer}");
    gateway.shutdown().await;
    assert!(!project.canary().exists());
}

#[tokio::test]
async fn project_script_named_by_a_variable_does_not_start() {
    for (fields, starts) in [
        (r#""args": ["${HOME}/project/run.sh"]"#, false),
        (r#""args": ["run.sh"], "cwd": "${HOME}/project""#, true),
        (r#""args": ["-c", "true"], "env": { "X": "!sh ${HOME}/project/run.sh" }"#, false),
        (r#""args": ["-c", ". $X"], "env": { "X": "${HOME}/project/run.sh" }"#, false),
        (r#""args": ["-c", ". $X"], "env": { "X": "!printf ./run.%s sh" }"#, false),
        (r#""args": ["-c", ". $X"], "env": { "X": "./run.sh" }"#, true),
        (r#""args": ["${workspaceFolder}/run.sh"]"#, true),
        (r#""args": ["~/project/run.sh"]"#, true),
    ] {
        let project = Project::new();
        fs::write(project.folder.join("run.sh"), TOUCHES).unwrap();
        let server = format!(r#"{{ "command": "/bin/sh", {fields} }}"#);
        let config = format!(r#"{{ "mcpServers": {{ "local": {server} }} }}"#);
        fs::write(project.folder.join(".mcp.json"), config).unwrap();
        let (_, _, pending) = project.open();
        project.approve(&pending[0]);
        let answer = project.use_it().await;
        let expected = if starts { "connect_failed" } else { "trust_required" };
        assert!(answer.starts_with(expected), "{fields}: {answer}");
        assert_eq!(project.canary().exists(), starts, "{fields}");
    }
}

#[tokio::test]
async fn program_in_project_found_on_search_path_requires_trust() {
    for (path, starts) in [
        ("bin:/bin", true),
        ("/bin:${workspaceFolder}/bin", true),
        ("${HOME}/project/bin:/bin", false),
        ("!echo bin:/bin", true),
    ] {
        let project = Project::new();
        let bin = project.folder.join("bin");
        fs::create_dir(&bin).unwrap();
        let write = |text: &str| {
            fs::write(bin.join("srv"), text).unwrap();
            fs::set_permissions(bin.join("srv"), fs::Permissions::from_mode(0o755)).unwrap();
        };
        write("#!/bin/sh\ntouch canary\n");
        let config = format!(
            r#"{{ "mcpServers": {{ "local": {{ "command": "srv", "env": {{ "PATH": "{path}" }} }} }} }}"#
        );
        fs::write(project.folder.join(".mcp.json"), config).unwrap();
        let (_, _, pending) = project.open();
        project.approve(&pending[0]);
        let answer = project.use_it().await;
        let expected = if starts { "connect_failed" } else { "trust_required" };
        assert!(answer.starts_with(expected), "{path}: {answer}");
        assert_eq!(project.canary().exists(), starts, "{path}");
        fs::remove_file(project.canary()).ok();
        write("#!/bin/sh\ntouch canary # changed\n");
        assert!(project.use_it().await.starts_with("trust_required"), "{path}");
        assert!(!project.canary().exists(), "{path}");
    }
}

#[tokio::test]
async fn trust_file_writable_by_others_leaves_every_server_pending() {
    let project = Project::new();
    project.write(TOUCHES, "");
    let (_, _, pending) = project.open();
    project.approve(&pending[0]);
    let file = Paths::of(&project.home.environment()).trust();
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    fs::set_permissions(&file, fs::Permissions::from_mode(0o620)).unwrap();
    assert!(project.use_it().await.starts_with("trust_required"));
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    let directory = file.parent().unwrap();
    fs::set_permissions(directory, fs::Permissions::from_mode(0o777)).unwrap();
    assert!(project.use_it().await.starts_with("trust_required"));
    fs::set_permissions(directory, fs::Permissions::from_mode(0o700)).unwrap();
    let elsewhere = project.folder.join("trust.json");
    fs::rename(&file, &elsewhere).unwrap();
    std::os::unix::fs::symlink(&elsewhere, &file).unwrap();
    assert!(project.use_it().await.starts_with("trust_required"));
    assert!(!project.canary().exists());
    let store = TrustStore::at(file);
    assert!(store.approve(&pending[0].hash, "local", &project.folder).is_err());
}
