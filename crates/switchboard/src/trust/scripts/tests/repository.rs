//! An approval covers or names the code that runs from a repository; a change of that code
//! invalidates the approval.

use std::fs;

use super::*;

/// A repository with a server definition in `pkg`, and the coverage of its approval.
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
    "tools/conf",
    "tools/deep/x.inc",
    "package.json",
    "pkg/lib/libfoo.so.1",
    "pkg/lib/foo.pyc",
    "pkg/lib/sitecustomize/__init__.py",
    "pkg/lib/Foo.pm",
    "pkg/lib/Foo/Bar.pm",
    "pkg/app/__init__.py",
    "pkg/app/run.py",
    "pkg/app/__pycache__/__init__.cpython-311.pyc",
    "pkg/mod.py",
    "pkg/mod.abi3.so",
    "pkg/__pycache__/mod.cpython-311.pyc",
    "pkg/sub/x",
    "pkg/a/b/x",
    "pkg/-x.sh",
    "pkg/--init.sh",
    "pkg/w x.sh",
    "pkg/mk/makefile",
    "pkg/node_modules/foo/register.js",
    "pkg/home/.profile",
    "pkg/.venv/bin/python",
    "pkg/.venv/pyvenv.cfg",
];

/// Argument files, each of which names the next one.
const ARGUMENTS: &[(&str, &str)] = &[
    ("a0", "@a1"),
    ("a1", "@a2"),
    ("a2", "@a3"),
    ("a3", "@a4"),
    ("a4", "-wrapper sh,./sub/x"),
    ("quoted", "-wrapper \"sh,./w x.sh\""),
    ("list", "sub/x"),
    (".env", "NODE_OPTIONS=--require=./sub/x"),
    ("escaped", "-wrapper sh,./su\\b/x"),
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
        for (name, text) in ARGUMENTS {
            fs::write(root.join("pkg").join(name), text).unwrap();
        }
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

/// Definitions, and the path of a file that each of them runs, relative to the root of the
/// repository.
fn class() -> Vec<(Value, &'static str)> {
    let with = |mut json: Value, key: &str, value: Value| {
        json[key] = value;
        json
    };
    let path = |json: Value, path: &str| with(json, "env", json!({ "PATH": path }));
    vec![
        (run("python", &["../tools/srv.py"]), "tools/srv.py"),
        (
            with(run("perl", &["-e", "1"]), "env", json!({ "PERL5OPT": "-Ilib -MFoo" })),
            "pkg/lib/Foo.pm",
        ),
        (
            with(run("perl", &["-e", "1"]), "env", json!({ "PERL5OPT": "-I./lib -MFoo" })),
            "pkg/lib/Foo.pm",
        ),
        (run("env", &["-S", "perl -Ilib -MFoo -e 1"]), "pkg/lib/Foo.pm"),
        (run("env", &["--split-string=perl -Ilib -MFoo -e 1"]), "pkg/lib/Foo.pm"),
        (run("env", &["PERL5OPT=-Ilib -MFoo", "perl", "-e", "1"]), "pkg/lib/Foo.pm"),
        (run("env", &["-S", "make -Cmk"]), "pkg/mk/makefile"),
        (
            with(run("node", &["x"]), "env", json!({ "NODE_OPTIONS": "--require \"./sub/\\x\"" })),
            "pkg/sub/x",
        ),
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

/// Like `class`, for words that name a file without its path.
fn indirect() -> Vec<(Value, &'static str)> {
    let set = |name: &str, value: &str| json!({ "command": "true", "env": { name: value } });
    vec![
        (run("sh", &["-c", "for f in lib/*; do . $f; done"]), "pkg/lib/libfoo.so.1"),
        (run("sh", &["-c", "for f in ../tools/*; do . $f; done"]), "tools/deep/x.inc"),
        (set("LD_LIBRARY_PATH", "./lib"), "pkg/lib/libfoo.so.1"),
        (set("PYTHONPATH", "lib"), "pkg/lib/foo.pyc"),
        (set("PYTHONPATH", "/usr/x:lib"), "pkg/lib/sitecustomize/__init__.py"),
        (set("PERL5LIB", "lib"), "pkg/lib/Foo/Bar.pm"),
        (set("COMPILER_PATH", "../tools"), "tools/conf"),
        (set("GIT_EXEC_PATH", "./lib"), "pkg/lib/Foo.pm"),
        (set("PYTHONUSERBASE", "./lib"), "pkg/lib/Foo/Bar.pm"),
        (set("HOME", "${workspaceFolder}/home"), "pkg/home/.profile"),
        (set("XDG_CONFIG_HOME", "home"), "pkg/home/.profile"),
        (set("PATH", "./lib:/bin"), "pkg/lib/Foo.pm"),
        (set("PATH", "${workspaceFolder}/lib:${PATH}"), "pkg/lib/Foo.pm"),
        (set("ANYTHING", "a:../tools"), "tools/deep/x.inc"),
        (run("python", &["-m", "app.run"]), "pkg/app/__pycache__/__init__.cpython-311.pyc"),
        (run("python", &["-c", "import mod"]), "pkg/__pycache__/mod.cpython-311.pyc"),
        (run("python", &["-m", "mod"]), "pkg/mod.abi3.so"),
        (run("sh", &["-c", "./s*/x"]), "pkg/sub/x"),
        (run("sh", &["-c", "./s?b/x"]), "pkg/sub/x"),
        (run("sh", &["-c", "./[s]ub/x"]), "pkg/sub/x"),
        (run("sh", &["-c", "./su\\b/x"]), "pkg/sub/x"),
        (run("sh", &["-c", "./s'u'b/x"]), "pkg/sub/x"),
        (run("bash", &["-c", "./{s,t}ub/x"]), "pkg/sub/x"),
        (run("bash", &["-c", "~+/sub/x"]), "pkg/sub/x"),
        (run("sh", &["-c", "exec $PWD/sub/x"]), "pkg/sub/x"),
        (run("sh", &["--", "-x.sh"]), "pkg/-x.sh"),
        (run("bash", &["--", "--init.sh"]), "pkg/--init.sh"),
        (run("perl", &["-Ilib", "-MFoo", "-e1"]), "pkg/lib/Foo.pm"),
        (run("find", &["../tools", "-exec", "sh", "{}", ";"]), "tools/deep/x.inc"),
        (run("run-parts", &["../tools"]), "tools/conf"),
        (run("make", &["-sCmk", "go"]), "pkg/mk/makefile"),
        (run("npm", &["run", "go"]), "package.json"),
        (run("node", &["--run", "go"]), "package.json"),
        (run("node", &["--run=go"]), "package.json"),
        (run("env", &["-Ssh\\_./sub/x"]), "pkg/sub/x"),
        (run("env", &["-Ssh\\_./sub/x\\_--now"]), "pkg/sub/x"),
        (run("env", &["-C", "a", "env", "-C", "b", "sh", "x"]), "pkg/a/b/x"),
        (run("script", &["-qec./sub/x", "/dev/null"]), "pkg/sub/x"),
        (run("gcc", &["-B../tools/", "-c", "x.c"]), "tools/conf"),
        (run("node", &["-r", "foo/register"]), "pkg/node_modules/foo/register.js"),
        (run("node", &["--import=data:text/javascript,import(%22./srv.py%22)"]), "pkg/srv.py"),
        (run("xargs", &["-a", "list", "sh"]), "pkg/sub/x"),
        (run("node", &["--env-file=.env", "-e", "0"]), "pkg/sub/x"),
        (run(".venv/bin/python", &["srv.py"]), "pkg/.venv/pyvenv.cfg"),
        (run("gcc", &["@a0"]), "pkg/sub/x"),
        (run("gcc", &["@quoted"]), "pkg/w x.sh"),
        (run("gcc", &["@escaped"]), "pkg/sub/x"),
    ]
}

/// Definitions, and a file that each of them would run as soon as it exists.
fn added() -> Vec<(Value, &'static str)> {
    let set = |name: &str, value: &str| json!({ "command": "true", "env": { name: value } });
    vec![
        (run("run-parts", &["../tools"]), "tools/new"),
        (set("LD_LIBRARY_PATH", "lib"), "pkg/lib/libc.so.6"),
        (set("PYTHONPATH", "lib"), "pkg/lib/json/__init__.py"),
        (set("PYTHONPATH", "."), "pkg/sitecustomize.py"),
        (set("PYTHONPATH", "lib:"), "pkg/sitecustomize.py"),
        (set("PATH", "./bin:/bin"), "pkg/bin/ls"),
        (run("python", &["-m", "json.tool"]), "pkg/json.py"),
        (run("python", &["-m", "json.tool"]), "pkg/json.abi3.so"),
        (run("python", &["-m", "app.run"]), "pkg/app/__init__.abi3.so"),
        (run("python", &["-c", "import mod"]), "pkg/mod.cpython-313-x86_64-linux-gnu.so"),
        (run("sh", &["-c", "./s*/x"]), "pkg/so/x"),
    ]
}

#[test]
fn new_file_that_would_run_invalidates_the_approval() {
    for (json, new) in added() {
        let repository = Repository::new();
        let before = repository.coverage(&json);
        let file = repository.root.join(new);
        assert!(!file.exists(), "{new}");
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, "new").unwrap();
        assert_ne!(repository.coverage(&json).hashes(), before.hashes(), "{json} {new}");
    }
}

#[test]
fn approval_covers_relative_path_out_of_the_repository() {
    let files = ["lib/x.pm", "mod.py", "package.json", "Makefile"];
    let check = |json: Value, runs: &str, mark: Option<&str>| {
        let (_folder, root) = project(&files);
        fs::create_dir_all(root.join("pkg")).unwrap();
        mark.iter().for_each(|mark| fs::create_dir(root.join("pkg").join(mark)).unwrap());
        let environment = Environment::made_of([("PATH", "/bin")], root.join("pkg"));
        let before = coverage(&entry(&json), &environment).hashes();
        fs::write(root.join(runs), "else").unwrap();
        assert_ne!(coverage(&entry(&json), &environment).hashes(), before, "{json} {mark:?}");
    };
    for mark in [None, Some(".git")] {
        let loads = json!({ "command": "true", "env": { "PERL5LIB": "../lib" } });
        check(loads, "lib/x.pm", mark);
        let module = json!({ "command": "python", "args": ["-m", "mod"], "cwd": ".." });
        check(module, "mod.py", mark);
        let runner = json!({ "command": "npm", "args": ["run", "go"], "cwd": ".." });
        check(runner, "package.json", mark);
        check(run("make", &["-C", "..", "go"]), "Makefile", mark);
    }
}

#[test]
fn approval_omits_user_programs_if_search_path_is_extended() {
    let (_folder, root) = project(&["home/bin/node", "home/bin/x.js", "pkg/x.js"]);
    let path = format!("{}:/bin", root.join("home/bin").display());
    let environment = Environment::made_of([("PATH", path.as_str())], root.join("pkg"));
    let json = json!({ "command": "node", "args": ["x.js"], "env": { "PATH": "bin:${PATH}" } });
    let files = coverage(&entry(&json), &environment).files;
    let files: Vec<&Path> = files.iter().map(|(file, _)| Path::new(file)).collect();
    assert_eq!(files, [root.join("pkg/x.js")]);
}

/// A project with a directory of this many files.
fn crowded(count: usize) -> (TempDir, PathBuf, Environment) {
    let (folder, root) = project(&["lib/last"]);
    for number in 1..count {
        fs::write(root.join(format!("lib/n{number}")), "x").unwrap();
    }
    let environment = Environment::made_of([("PATH", "/bin")], &root);
    (folder, root, environment)
}

#[test]
fn approval_covers_an_oversized_directory_by_its_listing() {
    let json = entry(&json!({ "command": "true", "env": { "PYTHONPATH": "lib" } }));
    for (count, is_covered) in [(2_000, true), (2_001, false)] {
        let (_folder, root, environment) = crowded(count);
        let before = coverage(&json, &environment);
        let line = format!("{}/lib/", root.display());
        assert_eq!(before.files.iter().any(|(file, _)| *file == line), is_covered, "{count}");
        let left_out = format!("files in {line:?}: too many files");
        assert_eq!(before.not_covered.contains(&left_out), !is_covered, "{count}");
        fs::write(root.join("lib/last"), "another").unwrap();
        assert_ne!(coverage(&json, &environment).hashes(), before.hashes(), "{count}");
    }
}

#[test]
fn files_of_installed_packages_are_reported_as_not_covered() {
    let (_folder, root) = project(&["lib/node_modules/a/x.js", "lib/.git/HEAD", "lib/x.js"]);
    let environment = Environment::made_of([("PATH", "/bin")], &root);
    let json = entry(&json!({ "command": "true", "env": { "NODE_PATH": "lib" } }));
    let before = coverage(&json, &environment);
    let within = |name: &str| format!("files in \"{}/lib/{name}/\"", root.display());
    let expected = [within(".git"), within("node_modules"), OTHER_FILES.to_owned()];
    assert_eq!(before.not_covered, expected);
    fs::write(root.join("lib/.git/index"), "").unwrap();
    assert_eq!(coverage(&json, &environment), before);
    fs::create_dir(root.join("lib/node_modules/b")).unwrap();
    assert_ne!(coverage(&json, &environment).hashes(), before.hashes());
}

#[test]
fn approval_covers_a_link_and_its_target() {
    let (_folder, root) = project(&["lib/x", "other/y", "more/deep/z"]);
    let link = |to: &str, at: &str| std::os::unix::fs::symlink(to, root.join(at)).unwrap();
    link("../other/y", "lib/file");
    link("../more", "lib/directory");
    link("..", "lib/around");
    let environment = Environment::made_of([("PATH", "/bin")], &root);
    let json = entry(&json!({ "command": "true", "env": { "PERL5LIB": "lib" } }));
    let mut before = coverage(&json, &environment).hashes();
    let mut is_noticed = |what: &str| {
        let now = coverage(&json, &environment).hashes();
        assert_ne!(now, before, "{what}");
        before = now;
    };
    fs::write(root.join("other/y"), "else").unwrap();
    is_noticed("target");
    fs::write(root.join("more/deep/z"), "else").unwrap();
    is_noticed("file in a linked directory");
    fs::remove_file(root.join("lib/file")).unwrap();
    link("./../other/y", "lib/file");
    is_noticed("link");
}

#[test]
fn pipe_in_place_of_a_script_is_never_approved() {
    let (_folder, root) = project(&["lib/x"]);
    let environment = Environment::made_of([("PATH", "/bin")], &root);
    let pipe = |at: &str| {
        let (kind, mode) = (rustix::fs::FileType::Fifo, rustix::fs::Mode::RUSR);
        rustix::fs::mknodat(rustix::fs::CWD, root.join(at), kind, mode, 0).unwrap();
    };
    pipe("run.sh");
    pipe("lib/run.sh");
    for (word, at) in [("run.sh", "run.sh"), ("./lib", "lib/run.sh")] {
        let json = entry(&run("sh", &[word]));
        let first = coverage(&json, &environment);
        let path = root.join(at);
        let left_out = format!("{path:?}, which is no regular file: the server does not start");
        assert_eq!(first.not_covered, [left_out, OTHER_FILES.to_owned()]);
        assert_ne!(coverage(&json, &environment).hashes(), first.hashes(), "{word}");
    }
}

#[test]
fn changed_byte_of_an_executed_file_invalidates_the_approval() {
    for (json, runs) in class().into_iter().chain(indirect()) {
        let repository = Repository::new();
        let before = repository.coverage(&json);
        let changed = |file: &Path, text: &[u8]| {
            let old = fs::read(file).unwrap();
            fs::write(file, text).unwrap();
            assert_ne!(repository.coverage(&json).files, before.files, "{json} {file:?}");
            fs::write(file, old).unwrap();
        };
        let file = repository.root.join(runs);
        let mut text = fs::read(&file).unwrap();
        text[0] ^= 1;
        changed(&file, &text);
        // A change of any file that is listed as covered is detected.
        for file in before.files.iter().flat_map(|(named, _)| files_below(Path::new(named))) {
            changed(&file, b"else");
        }
        assert_eq!(repository.coverage(&json), before, "{json}");
    }
}

/// The file itself, or all files below a directory.
fn files_below(path: &Path) -> Vec<PathBuf> {
    if !path.is_dir() {
        return vec![path.to_owned()];
    }
    let entries = fs::read_dir(path).unwrap();
    entries.flat_map(|entry| files_below(&entry.unwrap().path())).collect()
}

#[test]
fn approval_covers_absolute_path_into_the_repository() {
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
fn approval_prompt_names_inputs_that_approval_cannot_cover() {
    let repository = Repository::new();
    let named = |json: Value| {
        let mut lines = repository.coverage(&json).not_covered;
        assert_eq!(lines.pop().as_deref(), Some(OTHER_FILES), "{json}");
        lines.join("; ")
    };
    assert_eq!(named(run("python", &["srv.py"])), "");
    let own = json!({ "command": "python", "args": ["-c", "import srv", "."],
        "env": { "PYTHONPATH": "." } });
    assert_eq!(named(own), "files that its code names in other ways");
    assert_eq!(
        named(run("python", &["${TOOLS}/srv.py"])),
        "\"${TOOLS}/srv.py\", whose variables are not read"
    );
    assert_eq!(
        named(run("python", &["-c", "import srv"])),
        "files that its code names in other ways"
    );
    let place = repository.root.join("pkg/.venv");
    let installed = format!("files in \"{}/\"", place.display());
    assert_eq!(named(run(".venv/bin/python", &["srv.py"])), installed);
    let moved = json!({ "command": "python", "args": ["srv.py"], "cwd": "${TOOLS}" });
    assert_eq!(named(moved), "files in \"${TOOLS}\", whose variables are not read");
    let words: Vec<String> = (0..600).map(|n| format!("w{n}")).collect();
    let many = json!({ "command": "python", "args": words });
    assert_eq!(named(many), "files named after the first 512 words");
}

#[test]
fn approval_prompt_names_program_that_loads_other_files() {
    let (_folder, outer) = project(&["repo/x.py", "repo/pkg/y", "other/z.py"]);
    fs::create_dir(outer.join("repo/.git")).unwrap();
    let environment = Environment::made_of([("PATH", "/bin")], outer.join("repo"));
    let check = |json: Value, is_named: bool| {
        let text = json.to_string().replace("OUTER", outer.to_str().unwrap());
        let json = serde_json::from_str(&text).unwrap();
        let lines = coverage(&entry(&json), &environment).not_covered;
        let last = lines.last().filter(|line| *line == OTHER_FILES);
        assert_eq!(last.is_some(), is_named, "{json} {lines:?}");
        let count = lines.iter().filter(|line| *line == OTHER_FILES).count();
        assert_eq!(count, usize::from(is_named), "{json}");
    };
    check(json!({ "command": "tox" }), true);
    check(json!({ "command": "/usr/bin/true" }), true);
    check(json!({ "command": "npx", "args": ["-y", "server@1.2.3"] }), true);
    check(json!({ "url": "tox -e serve" }), true);
    check(json!({ "command": "tox", "cwd": "pkg" }), true);
    check(json!({ "command": "tox", "cwd": ".." }), true);
    check(json!({ "command": "tox", "cwd": "../other" }), true);
    check(json!({ "command": "tox", "cwd": "OUTER" }), true);
    check(json!({ "command": "tox", "cwd": "${ELSE}" }), true);
    check(json!({ "command": "tox", "cwd": "OUTER/missing" }), true);
    check(json!({ "command": "tox", "env": { "PYTHONPATH": "." } }), true);
    check(json!({ "command": "tox", "cwd": "OUTER/other" }), false);
    check(json!({ "command": "tox", "cwd": "OUTER/other", "args": ["z.py"] }), false);
    check(json!({ "command": "tox", "cwd": "OUTER/other", "args": ["OUTER/repo/x.py"] }), true);
    check(json!({ "command": "tox", "cwd": "OUTER/other", "args": ["OUTER/repo/new"] }), true);
    let set = json!({ "command": "tox", "cwd": "OUTER/other", "env": { "A": "OUTER/repo/pkg" } });
    check(set, true);
    check(json!({ "url": "https://example.com/mcp" }), false);
    let asked = json!({ "url": "https://example.com/mcp", "bearerToken": "!pass show token" });
    check(asked, true);
}
