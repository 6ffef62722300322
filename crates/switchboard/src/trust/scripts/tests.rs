//! The files that an approval covers, and how often they are read.

use serde_json::{Value, json};
use switchboard_core::config::layers::Tier;
use switchboard_core::config::snippet;
use tempfile::TempDir;

use std::fs;

use super::*;

mod first_lines;
mod loading;
mod repository;
mod spelling;

fn entry(json: &Value) -> ServerEntry {
    snippet::check("s", json.as_object().unwrap(), Tier::User).unwrap()
}

/// A project with these files, all with the same content.
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

/// The files that an approval of this definition would cover, in a project with these files.
fn covered(files: &[&str], path: &str, json: &Value) -> Vec<String> {
    let (_folder, root) = project(files);
    let environment = Environment::made_of([("PATH", path), ("ELSE", "x.js")], &root);
    let start = format!("{}/", root.display());
    let within = |(file, _): &FileHash| file.strip_prefix(&start).unwrap().to_owned();
    coverage(&entry(json), &environment).files.iter().map(within).collect()
}

#[test]
fn approval_covers_program_in_project_found_on_search_path() {
    let check = |path: &str, json: Value, expected: &[&str]| {
        assert_eq!(covered(&["bin/srv", "sub/bin/srv"], path, &json), expected, "{path} {json}");
    };
    check("/bin", json!({ "command": "srv" }), &[]);
    check("/bin:bin", json!({ "command": "srv" }), &["bin/srv"]);
    let own = |path: &str| json!({ "command": "srv", "env": { "PATH": path } });
    check("/bin", own("./bin:/usr/bin"), &["bin/srv", "bin/"]);
    check("/bin", own("${PATH}:bin"), &["bin/srv", "bin/"]);
    check("/bin", own("${workspaceFolder}/sub/bin"), &["sub/bin/srv", "sub/bin/"]);
    check("bin", own("/usr/bin"), &[]);
    // The variable is known only at the start, which is refused if it names a directory of the
    // project.
    check("/bin", own("${ELSE}/bin"), &[]);
    // A word may be a base directory of other paths.
    check("/bin", own("!echo bin"), &["bin/srv", "bin/"]);
    let below = json!({ "command": "srv", "cwd": "sub", "env": { "PATH": "bin" } });
    check("/bin", below, &["sub/bin/srv", "sub/bin/"]);
    let line = json!({ "url": "srv --stdio", "env": { "PATH": "bin" } });
    check("/bin", line, &["bin/srv", "bin/"]);
    let asked = json!({ "command": "cat", "env": { "T": "!srv token" } });
    check("/bin:bin", asked, &["bin/srv"]);
}

#[test]
fn approval_covers_a_file_that_an_environment_variable_loads() {
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
fn files_of_all_definitions_share_a_read_limit() {
    let (_folder, root) = project(&["a", "b"]);
    let environment = Environment::made_of([("PATH", "/bin")], &root);
    let scripts = Scripts { left: Cell::new(6), ..Scripts::default() };
    let hash = |json: Value| scripts.coverage(&entry(&json), &environment).files;
    let first = hash(json!({ "command": "sh", "args": ["a"] }));
    let alone = coverage(&entry(&json!({ "command": "./a" })), &environment).files;
    assert_eq!(first, alone);
    assert_eq!(hash(json!({ "command": "bash", "args": ["a"] })), first, "not read again");
    // The second file exceeds the limit, so no approval matches it.
    let second = hash(json!({ "command": "sh", "args": ["b"] }));
    assert_ne!(second[0].1, first[0].1, "the content is the same");
    assert_eq!(
        hash(json!({ "command": "sh", "args": ["./b"] })),
        second,
        "the limit is checked once per load"
    );
}

#[test]
fn approval_coverage_of_large_files_is_reproducible() {
    let (_folder, root) = project(&["a.py", "b.py", "c.py"]);
    for file in ["a.py", "b.py", "c.py"] {
        fs::write(root.join(file), vec![b'#'; 20 * 1024 * 1024]).unwrap();
    }
    let environment = Environment::made_of([("PATH", "/bin")], &root);
    let json = |args: Value| entry(&json!({ "command": "python", "args": args }));
    let (both, other) = (json(json!(["a.py", "b.py"])), json(json!(["c.py"])));
    let scripts = Scripts::default();
    let first = scripts.coverage(&both, &environment);
    assert_eq!(scripts.coverage(&other, &environment), coverage(&other, &environment));
    assert_eq!(coverage(&both, &environment), first);
    fs::write(root.join("b.py"), vec![b'+'; 20 * 1024 * 1024]).unwrap();
    assert_ne!(coverage(&both, &environment), first);
}

#[test]
fn approval_covers_the_file_an_argument_resolves_to() {
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
    check(&["node", "dist"], &["dist/index.js", "dist/"]);
    check(&["node", "lib"], &["lib/package.json", "lib/"]);
    check(&["node", "."], &["package.json"]);
    check(&["python3", "pkg"], &["pkg/__main__.py", "pkg/"]);
    check(&["python3", "-m", "mod"], &["mod.py"]);
    check(&["python3", "-mmod"], &["mod.py"]);
    check(&["python3", "-m", "a.b"], &["a/b.py", "a/"]);
    check(&["npm", "start"], &["package.json"]);
    check(&["cat", "nothing"], &[]);
}

#[test]
fn approval_covers_the_main_file_of_a_node_package() {
    let (_folder, root) = project(&["lib/start.js"]);
    fs::write(root.join("lib/package.json"), r#"{ "main": "start" }"#).unwrap();
    let environment = Environment::made_of([("PATH", "/bin")], &root);
    let json = json!({ "command": "node", "args": ["lib"] });
    let files = coverage(&entry(&json), &environment).files;
    let covers = |name: &str| files.iter().any(|(file, _)| Path::new(file).ends_with(name));
    assert!(covers("lib/package.json") && covers("lib/start.js"), "{files:?}");
}

#[test]
fn approval_covers_the_index_file_of_a_main_directory() {
    let environment = |root: &Path| Environment::made_of([("PATH", "/bin")], root);
    for (main, index) in
        [("lib", "lib/index.js"), ("./dist/server/", "dist/server/index.json"), (".", "index.mjs")]
    {
        let (_folder, root) = project(&[index, "node_modules/own/lib/index.js"]);
        let manifest = json!({ "main": main }).to_string();
        fs::write(root.join("package.json"), &manifest).unwrap();
        fs::write(root.join("node_modules/own/package.json"), r#"{ "main": "lib" }"#).unwrap();
        let json = json!({ "command": "node", "args": ["-r", "own", "."] });
        let files = coverage(&entry(&json), &environment(&root)).files;
        let covers = |name: &str| files.iter().any(|(file, _)| Path::new(file).ends_with(name));
        assert!(covers(index) && covers("node_modules/own/lib/index.js"), "{main}: {files:?}");
    }
}
