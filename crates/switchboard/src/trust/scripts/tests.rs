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
    coverage(&entry(json), &environment).files.iter().map(within).collect()
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
    // A word may be where others count from.
    check("/bin", own("!echo bin"), &["bin/srv"]);
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
    let hash = |json: Value| scripts.coverage(&entry(&json), &environment).files;
    let first = hash(json!({ "command": "sh", "args": ["a"] }));
    let alone = coverage(&entry(&json!({ "command": "./a" })), &environment).files;
    assert_eq!(first, alone);
    assert_eq!(hash(json!({ "command": "bash", "args": ["a"] })), first, "not read again");
    // There is no room for the second one, so that no approval ever matches it.
    let second = hash(json!({ "command": "sh", "args": ["b"] }));
    assert_ne!(second[0].1, first[0].1, "the content is the same");
    assert_eq!(hash(json!({ "command": "sh", "args": ["./b"] })), second, "decided once a load");
}

#[test]
fn each_look_at_large_files_comes_to_the_same() {
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
    let files = coverage(&entry(&json), &environment).files;
    let covers = |name: &str| files.iter().any(|(file, _)| Path::new(file).ends_with(name));
    assert!(covers("lib/package.json") && covers("lib/start.js"), "{files:?}");
}

/// A repository whose server is defined in `pkg`, and what an approval there covers.
struct Repository {
    _folder: TempDir,
    root: PathBuf,
    environment: Environment,
}

const MEMBERS: &[&str] = &[
    "tools/srv.py",
    "tools/args.txt",
    "tools/bin/interp",
    "pkg/bin/prog",
    "pkg/sub/srv.py",
    "pkg/sub/lib.py",
    "pkg/srv.py",
    "pkg/hook file.mjs",
    "pkg/args.txt",
    "pkg/Makefile",
    "pkg/node_modules/.bin/tool",
    "pkg/lib/helper.py",
];

impl Repository {
    fn new() -> Repository {
        let (folder, outer) = project(&[]);
        let root = outer.join("repo");
        for file in MEMBERS {
            let file = root.join(file);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, "print('as it was')\n").unwrap();
        }
        fs::create_dir(root.join(".git")).unwrap();
        fs::write(outer.join("outside.py"), "print()").unwrap();
        fs::write(root.join("pkg/script"), "#!/usr/bin/env interp\n").unwrap();
        fs::write(root.join("pkg/args.txt"), "--quiet\nsub/srv.py\n").unwrap();
        let link = |to: &str, at: &str| std::os::unix::fs::symlink(to, root.join(at)).unwrap();
        link("../tools/srv.py", "pkg/link.py");
        link("../../outside.py", "pkg/out.py");
        link("../tools", "pkg/dirlink");
        let environment = Environment::made_of([("PATH", "/bin:/usr/bin")], root.join("pkg"));
        Repository { _folder: folder, root, environment }
    }

    fn coverage(&self, json: &Value) -> Coverage {
        coverage(&entry(json), &self.environment)
    }
}

fn run(command: &str, args: &[&str]) -> Value {
    json!({ "command": command, "args": args })
}

/// Definitions, and a file that each of them runs, from the root of the repository.
fn class() -> Vec<(Value, &'static str)> {
    let with = |mut json: Value, key: &str, value: Value| {
        json[key] = value;
        json
    };
    let path = |json: Value, path: &str| with(json, "env", json!({ "PATH": path }));
    vec![
        (run("python", &["../tools/srv.py"]), "tools/srv.py"),
        (run("python", &["${workspaceFolder}/../tools/srv.py"]), "tools/srv.py"),
        (with(run("python", &["srv.py"]), "cwd", json!("../tools")), "tools/srv.py"),
        (run("python", &["link.py"]), "tools/srv.py"),
        (run("python", &["dirlink/srv.py"]), "tools/srv.py"),
        (run("python", &["out.py"]), "../outside.py"),
        (run("python", &["../../outside.py"]), "../outside.py"),
        (run("env", &["python", "-c", "exec(open('srv.py').read())"]), "pkg/srv.py"),
        (run("python", &["-c", "import srv"]), "pkg/srv.py"),
        (run("python", &["-c", "exec(open(\"../tools/srv.py\").read())"]), "tools/srv.py"),
        (run("env", &["-C", "sub", "python", "srv.py"]), "pkg/sub/srv.py"),
        (run("env", &["--chdir=sub", "python", "srv.py"]), "pkg/sub/srv.py"),
        (run("sh", &["-c", "cd sub && python srv.py"]), "pkg/sub/srv.py"),
        (run("uv", &["--directory", "sub", "run", "srv.py"]), "pkg/sub/srv.py"),
        (run("env", &["-C", "sub", "python", "-c", "import srv"]), "pkg/sub/srv.py"),
        (path(run("./script", &[]), "../tools/bin:/bin"), "tools/bin/interp"),
        (path(run("sh", &["-c", "prog"]), "bin:/bin"), "pkg/bin/prog"),
        (path(run("sh", &["-c", "exec prog --now"]), "./bin"), "pkg/bin/prog"),
        (path(run("env", &["prog"]), "./bin"), "pkg/bin/prog"),
        (path(run("nice", &["-n", "5", "prog"]), "./bin"), "pkg/bin/prog"),
        (run("java", &["@args.txt"]), "pkg/args.txt"),
        (run("java", &["@args.txt"]), "pkg/sub/srv.py"),
        (run("node", &["--import", "file:hook%20file.mjs", "x"]), "pkg/hook file.mjs"),
        (run("node", &["--import=./hook%20file.mjs"]), "pkg/hook file.mjs"),
        (run("make", &["serve"]), "pkg/Makefile"),
        (run("npx", &["tool"]), "pkg/node_modules/.bin/tool"),
        (run("bash", &["-lc", "source ./srv.py"]), "pkg/srv.py"),
        (run("sh", &["-c", "python<srv.py"]), "pkg/srv.py"),
        (run("sh", &["-c", "(python 'sub/srv.py')"]), "pkg/sub/srv.py"),
        (
            with(run("python", &["-m", "x"]), "env", json!({ "PYTHONPATH": "lib" })),
            "pkg/lib/helper.py",
        ),
        (with(run("python", &["-c", "import lib"]), "cwd", json!("sub")), "pkg/sub/lib.py"),
    ]
}

#[test]
fn one_byte_of_a_file_that_runs_changes_what_was_approved() {
    for (json, runs) in class() {
        let repository = Repository::new();
        let before = repository.coverage(&json);
        let file = repository.root.join(runs);
        assert!(file.is_file(), "{runs}");
        let mut text = fs::read(&file).unwrap();
        text[0] ^= 1;
        fs::write(&file, text).unwrap();
        assert_ne!(repository.coverage(&json).files, before.files, "{json}");
        // What is said to be covered is: a change of any of these files is seen.
        for (named, _) in &before.files {
            let repository = Repository::new();
            let before = repository.coverage(&json);
            let at = Path::new(named).components().rev().take(3).collect::<Vec<_>>();
            let same = |file: &&FileHash| {
                Path::new(&file.0).components().rev().take(3).eq(at.iter().copied())
            };
            let Some((file, _)) = before.files.iter().find(same) else { continue };
            if file.ends_with('/') {
                continue;
            }
            let mut text = fs::read(file).unwrap();
            text.push(b' ');
            fs::write(file, text).unwrap();
            assert_ne!(repository.coverage(&json).files, before.files, "{json} {file}");
        }
    }
}

#[test]
fn absolute_path_into_the_repository_is_covered() {
    let repository = Repository::new();
    let file = repository.root.join("tools/srv.py");
    let named = |word: String| {
        let json = json!({ "command": "python", "args": [word] });
        repository.coverage(&json).files.iter().any(|(path, _)| Path::new(path) == file)
    };
    assert!(named(file.display().to_string()));
    assert!(named(format!("file://{}", file.display())));
    assert!(named(format!("file://localhost{}", file.display())));
    assert!(named(format!("{}/pkg/../tools/./srv.py", repository.root.display())));
}

#[test]
fn what_cannot_be_followed_is_named() {
    let repository = Repository::new();
    let named = |json: Value| repository.coverage(&json).not_covered.join("; ");
    assert_eq!(named(run("python", &["srv.py"])), "");
    assert_eq!(
        named(run("python", &["${TOOLS}/srv.py"])),
        "\"${TOOLS}/srv.py\", whose variables are not read"
    );
    assert_eq!(
        named(run("python", &["-c", "import srv"])),
        "files that its code names in other ways"
    );
    let moved = json!({ "command": "python", "args": ["srv.py"], "cwd": "${TOOLS}" });
    assert_eq!(named(moved), "files in \"${TOOLS}\", whose variables are not read");
    let words: Vec<String> = (0..600).map(|n| format!("w{n}")).collect();
    let many = json!({ "command": "python", "args": words });
    assert_eq!(named(many), "what is named behind the first 512 words");
}

#[test]
fn repository_goes_up_to_its_root_and_no_further() {
    let (_folder, outer) = project(&["repo/pkg/deep/x", "repo/sub/.git", "alone/x"]);
    fs::create_dir_all(outer.join("repo/.git")).unwrap();
    assert_eq!(project_root(&outer.join("repo/pkg/deep"), None), outer.join("repo"));
    assert_eq!(project_root(&outer.join("repo/sub"), None), outer.join("repo"), "a submodule");
    assert_eq!(project_root(&outer.join("alone"), None), outer.join("alone"));
    let home = outer.join("repo");
    let deep = outer.join("repo/pkg/deep");
    assert_eq!(project_root(&deep, Some(&home)), deep, "a repository of the user's settings");
}

/// A path from `cwd` to `file`, with detours.
fn detour(random: &mut fastrand::Rng, cwd: &Path, file: &Path, root: &Path) -> String {
    let below = file.strip_prefix(root).unwrap();
    let ups = cwd.strip_prefix(root).unwrap().components().count();
    let mut words: Vec<String> = vec!["..".to_owned(); ups];
    for part in below.components() {
        if random.u8(..4) == 0 {
            words.push(".".to_owned());
        }
        words.push(part.as_os_str().to_str().unwrap().to_owned());
        if random.u8(..6) == 0 && words.last().is_some_and(|word| !word.contains('.')) {
            let back = words.last().unwrap().clone();
            words.extend(["..".to_owned(), back]);
        }
    }
    words.join("/")
}

#[test]
fn any_spelling_of_a_path_in_any_repository_is_covered() {
    let random = &mut fastrand::Rng::with_seed(7);
    for case in 0..400 {
        let (_folder, root) = project(&[]);
        fs::create_dir(root.join(".git")).unwrap();
        let mut places = vec![root.clone()];
        for number in 0..random.usize(1..6) {
            let place = places[random.usize(..places.len())].join(format!("d{number}"));
            fs::create_dir(&place).unwrap();
            places.push(place);
        }
        let mut any = || places[random.usize(..places.len())].clone();
        let (cwd, home) = (any(), any());
        let file = home.join(format!("server{case}.py"));
        fs::write(&file, "print()").unwrap();
        let mut named = file.clone();
        for number in 0..random.usize(..4) {
            let link = places[random.usize(..places.len())].join(format!("l{number}.py"));
            std::os::unix::fs::symlink(&named, &link).unwrap();
            named = link;
        }
        let relative = detour(random, &cwd, &named, &root);
        let absolute = named.display().to_string();
        let path = if random.bool() { relative } else { absolute.clone() };
        let (command, args) = match random.u8(..9) {
            0 => ("python", vec![path]),
            1 => ("env", vec!["-S".to_owned(), format!("python {path}")]),
            2 => ("sh", vec!["-c".to_owned(), format!("exec python '{path}' --now")]),
            3 => ("python", vec!["-c".to_owned(), format!("exec(open(\"{path}\").read())")]),
            4 => ("node", vec![format!("--import=file://{absolute}")]),
            5 => ("node", vec![format!("file://{}", absolute.replace("d", "%64"))]),
            6 => ("tool", vec![format!("@{path}")]),
            7 => ("nice", vec!["-n".to_owned(), "3".to_owned(), path]),
            _ => ("python", vec![format!("-X{path}")]),
        };
        let json = json!({ "command": command, "args": args });
        let environment = Environment::made_of([("PATH", "/bin")], &cwd);
        let before = coverage(&entry(&json), &environment);
        let length = fs::read(&file).unwrap().len();
        let mut text = fs::read(&file).unwrap();
        text[random.usize(..length)] ^= 1;
        fs::write(&file, text).unwrap();
        let after = coverage(&entry(&json), &environment);
        assert_ne!(after.files, before.files, "{json} in {}", cwd.display());
    }
}
