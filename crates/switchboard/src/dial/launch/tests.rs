//! The program to which a launcher's command line resolves, with fake caches.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;

use super::*;
use crate::dial::spawn::Confinement;

/// A home with programs, a project, and installed packages.
struct Machine {
    home: tempfile::TempDir,
}

impl Machine {
    fn new() -> Machine {
        let machine = Machine { home: tempfile::tempdir().unwrap() };
        machine.program("bin/node");
        machine.program("bin/npx");
        machine
    }

    fn at(&self, path: &str) -> PathBuf {
        self.home.path().join(path)
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.at(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn program(&self, path: &str) {
        self.write(path, "#!/bin/sh\n");
        fs::set_permissions(self.at(path), fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// A package of one script below `root`.
    fn package(&self, root: &str, name: &str, version: &str) {
        let package = format!("{root}/node_modules/{name}");
        let manifest = format!(r#"{{"version": "{version}", "bin": "cli.js"}}"#);
        self.write(&format!("{package}/package.json"), &manifest);
        self.write(&format!("{package}/cli.js"), "");
    }

    /// Where npm installs a package.
    fn npx(&self, spec: &str) -> String {
        let launch = launcher::parse("npx", &[spec.to_owned()]).unwrap();
        format!(".npm/_npx/{}", launch.package.npx_folder())
    }

    fn line(&self, line: &str) -> Program {
        let mut words = line.split(' ').map(str::to_owned);
        let env = [
            ("HOME", self.at("").display().to_string()),
            ("PATH", format!("{}:{}", self.at("bin").display(), self.at("shims").display())),
        ];
        let env = env.map(|(name, value)| (name.to_owned(), value)).into_iter();
        Program {
            command: words.next().unwrap(),
            args: words.collect(),
            env: env.collect::<BTreeMap<_, _>>(),
            cwd: self.at("project"),
            confinement: Confinement::default(),
        }
    }

    fn launching(&self, ground: Ground) -> Launching {
        Launching {
            resolving: Resolving::On,
            ground,
            home: self.at("ours"),
            log: self.at("log"),
            start_timeout: Duration::from_secs(30),
            withheld: Vec::new(),
        }
    }

    /// The command that would run, without the parts that differ between runs.
    fn outlook(&self, line: &str, ground: Ground) -> String {
        let root = self.home.path().canonicalize().unwrap().display().to_string();
        let shown = |program: &Program| {
            let words = std::iter::once(&program.command).chain(&program.args);
            let words: Vec<&str> = words.map(String::as_str).collect();
            words.join(" ").replace(&self.at("").display().to_string(), "~/").replace(&root, "~")
        };
        match self.launching(ground).outlook(&self.line(line)) {
            Outlook::Plain => "unchanged".to_owned(),
            Outlook::Direct(found) => shown(&found.program),
            Outlook::Ask(asking) => match &asking.stale {
                None => "asks".to_owned(),
                Some(stale) => format!("asks, or {}", shown(&stale.program)),
            },
        }
    }

    #[track_caller]
    fn check(&self, line: &str, expected: &str) {
        assert_eq!(self.outlook(line, Ground::Foreign), expected, "{line}");
    }
}

#[test]
fn installed_npm_package_runs_under_node_without_npx() {
    let machine = Machine::new();
    for spec in ["@s/server", "server@1.2.3", "server@1.2.4", "server@^1", "server@latest"] {
        let name = if spec.starts_with('@') { "@s/server" } else { "server" };
        machine.package(&machine.npx(spec), name, "1.2.3");
    }
    let direct = |spec: &str, name: &str, rest: &str| {
        format!("~/bin/node ~/{}/node_modules/{name}/cli.js{rest}", machine.npx(spec))
    };
    machine.check("npx -y @s/server a -b", &direct("@s/server", "@s/server", " a -b"));
    machine.check("npx server@1.2.3", &direct("server@1.2.3", "server", ""));
    machine.check("npm exec -- server@^1 --x", &direct("server@^1", "server", " --x"));
    // The installed version is another one.
    machine.check("npx server@1.2.4", "asks");
    // Only npm knows the current version.
    machine.check("npx server@latest", "asks");
    machine.check("npx server@next", "asks");
    machine.check("npx --registry x @s/server", "unchanged");
}

#[test]
fn user_npmrc_decides_the_npm_cache_directory() {
    let machine = Machine::new();
    machine.write(".npmrc", "cache=~/elsewhere\n");
    let folder = machine.npx("@s/server").replace(".npm/", "elsewhere/");
    machine.package(&folder, "@s/server", "1.0.0");
    let expected = format!("~/bin/node ~/{folder}/node_modules/@s/server/cli.js");
    machine.check("npx @s/server", &expected);
}

#[test]
fn package_with_invalid_program_is_left_to_launcher() {
    let machine = Machine::new();
    let package = format!("{}/node_modules/@s/a", machine.npx("@s/a"));
    machine.write(&format!("{package}/cli.js"), "");
    let check = |manifest: &str| {
        machine.write(&format!("{package}/package.json"), manifest);
        machine.check("npx @s/a", "asks");
    };
    machine.write("outside.js", "");
    check("");
    check(r#"{"bin": "gone.js"}"#);
    check(r#"{"bin": "../../../../../../outside.js"}"#);
    check(r#"{"bin": "."}"#);
    check(r#"{"bin": {"x": "cli.js", "y": "package.json"}}"#);
    machine.write(&format!("{package}/tool"), "#!/bin/sh\n");
    check(r#"{"bin": "tool"}"#);
    machine.program(&format!("{package}/tool"));
    machine.check("npx @s/a x", &format!("~/{package}/tool x"));
}

#[test]
fn package_that_npm_finds_elsewhere_is_left_to_npm() {
    let machine = Machine::new();
    machine.package(&machine.npx("server"), "server", "1.0.0");
    let direct = format!("~/bin/node ~/{}/node_modules/server/cli.js", machine.npx("server"));
    machine.check("npx server", &direct);
    // A package of the project applies only to servers of the project.
    machine.package("project", "server", "0.0.1");
    machine.check("npx server", &direct);
    assert_eq!(machine.outlook("npx server", Ground::Own), "unchanged");
    // A globally installed program is in the directory of npm.
    machine.program("bin/server");
    machine.check("npx server", "unchanged");
}

#[test]
fn resolved_package_location_is_cached_for_a_day() {
    let machine = Machine::new();
    machine.program("uv/bin/serve");
    let launching = machine.launching(Ground::Foreign);
    let keep = |line: &str, hours_ago: u64| {
        let program = machine.line(line);
        let launch = launcher::parse(&program.command, &program.args).unwrap();
        assert!(launching.installed(&launch, &program, &machine.at("uv")).is_some());
        let file = machine.at("ours/known.json");
        let mut known: serde_json::Value =
            serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
        for place in known["packages"].as_object_mut().unwrap().values_mut() {
            let at = place["at"].as_u64().unwrap();
            place["at"] = (at - hours_ago * 60 * 60).into();
        }
        fs::write(file, known.to_string()).unwrap();
    };
    machine.check("uvx serve a", "asks");
    keep("uvx serve a", 0);
    machine.check("uvx serve a", "~/uv/bin/serve a");
    // The arguments of the program do not affect the lookup.
    machine.check("uvx serve b c", "~/uv/bin/serve b c");
    machine.check("uvx serve@latest", "asks");
    assert_eq!(machine.outlook("uvx serve a", Ground::Own), "asks");
    keep("uvx serve a", 25);
    machine.check("uvx serve a", "asks, or ~/uv/bin/serve a");
    keep("uvx serve==1.0.0", 25);
    machine.check("uvx serve==1.0.0", "~/uv/bin/serve");
    fs::remove_file(machine.at("uv/bin/serve")).unwrap();
    machine.check("uvx serve==1.0.0", "asks");
}

#[test]
fn package_location_cache_writable_by_other_users_is_ignored() {
    let machine = Machine::new();
    machine.program("uv/bin/serve");
    let program = machine.line("uvx serve");
    let launch = launcher::parse(&program.command, &program.args).unwrap();
    machine.launching(Ground::Foreign).installed(&launch, &program, &machine.at("uv")).unwrap();
    machine.check("uvx serve", "~/uv/bin/serve");
    let file = machine.at("ours/known.json");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o666)).unwrap();
    machine.check("uvx serve", "asks");
    machine.write("ours/known.json", "rubbish");
    machine.check("uvx serve", "asks");
}

#[test]
fn unresolved_user_launcher_runs_in_a_neutral_directory() {
    let machine = Machine::new();
    let check = |line: &str, ground: Ground, expected: &str| {
        let program = machine.line(line);
        let ready = machine.launching(ground).plainly(program);
        assert_eq!(ready.program.cwd, machine.at(expected), "{line}");
        assert_eq!(ready.start_timeout, INSTALLATION, "{line}");
    };
    check("npx --registry x server", Ground::Foreign, "ours/neutral");
    check("npx --registry x server", Ground::Own, "project");
    check("bunx --bun server", Ground::Foreign, "ours/neutral");
    // The `uvx` of a Python version manager reads `.python-version`.
    check("uvx --python 3.12 server", Ground::Foreign, "ours/neutral");
}

#[test]
fn program_reading_directory_settings_runs_in_neutral_directory() {
    let machine = Machine::new();
    machine.package(&machine.npx("server"), "server", "1.0.0");
    let package = format!("{}/node_modules/server", machine.npx("server"));
    let check = |ground: Ground, expected: &str| {
        let launching = machine.launching(ground);
        let Outlook::Direct(found) = launching.outlook(&machine.line("npx server")) else {
            panic!("the package is installed");
        };
        assert_eq!(launching.unswayed(found).program.cwd, machine.at(expected));
    };
    check(Ground::Foreign, "project");
    // A link to the shim of a version manager, and its directory of shims.
    fs::remove_file(machine.at("bin/node")).unwrap();
    machine.program("manager/volta-shim");
    std::os::unix::fs::symlink(machine.at("manager/volta-shim"), machine.at("bin/node")).unwrap();
    check(Ground::Foreign, "ours/neutral");
    check(Ground::Own, "project");
    fs::remove_file(machine.at("bin/node")).unwrap();
    machine.program("shims/node");
    check(Ground::Foreign, "ours/neutral");
    // A script with another interpreter, and a binary.
    machine.write(&format!("{package}/package.json"), r#"{"version": "1.0.0", "bin": "tool"}"#);
    machine.program(&format!("{package}/tool"));
    check(Ground::Foreign, "ours/neutral");
    machine.write(&format!("{package}/tool"), "\u{7f}ELF");
    check(Ground::Foreign, "project");
    machine.write(&format!("{package}/tool"), "#!/usr/bin/env -S node --no-warnings\n");
    check(Ground::Foreign, "ours/neutral");
    machine.program("bin/node");
    check(Ground::Foreign, "project");
}

#[test]
fn user_python_server_does_not_import_from_the_project() {
    let machine = Machine::new();
    let check = |line: &str, ground: Ground, expected: Option<&str>| {
        let program = machine.launching(ground).without_the_project(machine.line(line));
        assert_eq!(program.env.get(SAFE_PATH).map(String::as_str), expected, "{line}");
    };
    check("python3 -m server", Ground::Foreign, Some("1"));
    check("python3 -m server", Ground::Own, None);
    check("python3 server.py", Ground::Foreign, None);
}
