//! Which files count, and how often they are read.

use serde_json::{Value, json};
use switchboard_core::config::layers::Tier;
use switchboard_core::config::snippet;
use tempfile::TempDir;

use super::*;

fn entry(json: &Value) -> ServerEntry {
    snippet::check("s", json.as_object().unwrap(), Tier::User).unwrap()
}

/// A project with these files, all alike.
fn project(files: &[&str]) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    for file in files {
        let file = root.join(file);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, "four").unwrap();
    }
    (folder, root)
}

/// The files of such a project that an approval would cover.
fn covered(files: &[&str], path: &str, json: &Value) -> Vec<String> {
    let (_folder, root) = project(files);
    let environment = Environment::made_of([("PATH", path), ("ELSE", "x.js")], &root);
    let within =
        |(file, _): &FileHash| Path::new(file).strip_prefix(&root).unwrap().display().to_string();
    script_hashes(&entry(json), &environment).iter().map(within).collect()
}

#[test]
fn a_program_of_the_project_counts_wherever_the_server_would_find_it() {
    let check = |path: &str, json: Value, expected: &[&str]| {
        assert_eq!(covered(&["bin/srv", "sub/bin/srv"], path, &json), expected, "{path} {json}");
    };
    check("/bin", json!({ "command": "srv" }), &[]);
    check("/bin:bin", json!({ "command": "srv" }), &["bin/srv"]);
    let own = |path: &str| json!({ "command": "srv", "env": { "PATH": path } });
    check("/bin", own("./bin:/usr/bin"), &["bin/srv"]);
    check("/bin", own("${PATH}:bin"), &["bin/srv"]);
    check("/bin", own("${workspaceFolder}/sub/bin"), &["sub/bin/srv"]);
    check("bin", own("/usr/bin"), &[]);
    // Only a start tells, and is refused.
    check("/bin", own("${ELSE}/bin"), &[]);
    check("/bin", own("!echo bin"), &[]);
    let below = json!({ "command": "srv", "cwd": "sub", "env": { "PATH": "bin" } });
    check("/bin", below, &["sub/bin/srv"]);
    let line = json!({ "url": "srv --stdio", "env": { "PATH": "bin" } });
    check("/bin", line, &["bin/srv"]);
    let asked = json!({ "command": "cat", "env": { "T": "!srv token" } });
    check("/bin:bin", asked, &["bin/srv"]);
}

#[test]
fn a_file_that_a_loader_is_given_by_a_variable_counts() {
    for (value, counts) in [
        ("x.js", true),
        ("--require ./x.js", true),
        ("--no-warnings --import=./x.js", true),
        ("/lib/a.so:./x.js", true),
        ("-javaagent:x.js", true),
        ("${workspaceFolder}/x.js", true),
        ("${NOT_SET:-x.js}", true),
        (".", false),
        ("${ELSE}", false),
    ] {
        let json = json!({ "command": "node", "env": { "LOADS": value } });
        let expected: &[&str] = if counts { &["x.js"] } else { &[] };
        assert_eq!(covered(&["x.js"], "/bin", &json), expected, "{value}");
    }
}

#[test]
fn a_file_is_read_once_for_all_definitions_and_all_files_have_one_limit() {
    let (_folder, root) = project(&["a", "b"]);
    let environment = Environment::made_of([("PATH", "/bin")], &root);
    let scripts = Scripts { left: Cell::new(6), read: RefCell::default() };
    let hash = |json: Value| scripts.hashes(&entry(&json), &environment);
    let first = hash(json!({ "command": "sh", "args": ["a"] }));
    assert_eq!(first, script_hashes(&entry(&json!({ "command": "./a" })), &environment));
    assert_eq!(hash(json!({ "command": "bash", "args": ["a"] })), first, "not read again");
    // There is no room for the second one, so that no approval ever matches it.
    let second = hash(json!({ "command": "sh", "args": ["b"] }));
    assert_ne!(second[0].1, first[0].1, "the content is the same");
    assert_eq!(hash(json!({ "command": "sh", "args": ["./b"] })), second, "decided once a load");
}

#[test]
fn what_an_interpreter_takes_for_a_name_counts() {
    let files = [
        "server.js",
        "pre.js",
        "dist/index.js",
        "lib/package.json",
        "pkg/__main__.py",
        "mod.py",
        "a/b.py",
        "package.json",
    ];
    let check = |line: &[&str], expected: &[&str]| {
        let json = json!({ "command": line[0], "args": line[1..] });
        assert_eq!(covered(&files, "/bin", &json), expected, "{line:?}");
    };
    check(&["node", "./server"], &["server.js"]);
    check(&["node", "server"], &["server.js"]);
    check(&["node", "-r", "./pre", "server.js"], &["pre.js", "server.js"]);
    check(&["node", "dist"], &["dist/index.js"]);
    check(&["node", "lib"], &["lib/package.json"]);
    check(&["node", "."], &["package.json"]);
    check(&["python3", "pkg"], &["pkg/__main__.py"]);
    check(&["python3", "-m", "mod"], &["mod.py"]);
    check(&["python3", "-mmod"], &["mod.py"]);
    check(&["python3", "-m", "a.b"], &["a/b.py"]);
    check(&["npm", "start"], &["package.json"]);
    check(&["cat", "nothing"], &[]);
}

#[test]
fn the_main_file_of_a_package_counts() {
    let (_folder, root) = project(&["lib/start.js"]);
    fs::write(root.join("lib/package.json"), r#"{ "main": "start" }"#).unwrap();
    let environment = Environment::made_of([("PATH", "/bin")], &root);
    let json = json!({ "command": "node", "args": ["lib"] });
    let files = script_hashes(&entry(&json), &environment);
    let covers = |name: &str| files.iter().any(|(file, _)| Path::new(file).ends_with(name));
    assert!(covers("lib/package.json") && covers("lib/start.js"), "{files:?}");
}
