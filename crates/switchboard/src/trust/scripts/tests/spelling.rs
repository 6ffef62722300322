//! Every spelling of a path refers to the same file.

use std::fs;

use super::*;
use crate::trust::place::project_root;

#[test]
fn project_root_is_the_enclosing_repository() {
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

/// The path with quotes and backslashes that a shell removes.
fn escaped(random: &mut fastrand::Rng, path: &str) -> String {
    let mut out = String::new();
    for c in path.chars() {
        match random.u8(..8) {
            0 => out.extend(['\\', c]),
            1 => out.extend(['\'', c, '\'']),
            _ => out.push(c),
        }
    }
    out
}

/// A pattern for the last name of the path.
fn matching(random: &mut fastrand::Rng, path: &str) -> String {
    let mut any = |c: char| match random.u8(..6) {
        0 => "?".to_owned(),
        1 => "*".to_owned(),
        2 => format!("[{c}x]"),
        3 => format!("{{{c},x}}"),
        _ => c.to_string(),
    };
    let start = path.rfind('/').unwrap_or_default();
    let (before, names) = path.split_at(start);
    let names = names.chars().map(|c| if c.is_alphanumeric() { any(c) } else { c.to_string() });
    names.fold(before.to_owned(), |pattern, part| pattern + &part)
}

#[test]
fn approval_covers_any_spelling_of_a_repository_path() {
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
        let kind = random.u8(..16);
        let (command, args) = match kind {
            0 => ("python", vec![path]),
            1 => ("env", vec!["-S".to_owned(), format!("python {path}")]),
            2 => ("sh", vec!["-c".to_owned(), format!("exec python '{path}' --now")]),
            3 => ("python", vec!["-c".to_owned(), format!("exec(open(\"{path}\").read())")]),
            4 => ("node", vec![format!("--import=file://{absolute}")]),
            5 => ("node", vec![format!("file://{}", absolute.replace("d", "%64"))]),
            6 => ("tool", vec![format!("@{path}")]),
            8 => ("sh", vec!["-c".to_owned(), escaped(random, &path)]),
            9 => ("sh", vec!["-c".to_owned(), format!(". {}", matching(random, &path))]),
            10 => ("env", vec![format!("-Ssh\\_{path}")]),
            11 => ("script", vec![format!("-qec{path}")]),
            12 => (
                "find",
                vec![path.replace(&format!("/server{case}.py"), "/"), "-delete".to_owned()],
            ),
            13 => ("node", vec![format!("data:text/javascript,import(%22file://{absolute}%22)")]),
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
        assert_eq!(before.not_covered.last().map(String::as_str), Some(OTHER_FILES));
        // The project's own directory cannot be covered.
        let is_own = kind == 12 && cwd.starts_with(&home);
        assert!(is_own || after.files != before.files, "{json} in {}", cwd.display());
    }
}

#[test]
fn approval_covers_a_path_that_only_lexical_normalization_resolves() {
    const FILES: [&str; 8] = [
        "x.js",
        "b.js",
        "d/x.js",
        "d/e/y",
        "sub/package.json",
        "sub/lib/z",
        "node_modules/a/i.js",
        "node_modules/c.js",
    ];
    let check = |json: Value, expected: &[&str]| {
        let (_folder, root) = project(&FILES);
        fs::create_dir(root.join(".git")).unwrap();
        std::os::unix::fs::symlink("d/e", root.join("l")).unwrap();
        let text = json.to_string().replace("ROOT", root.to_str().unwrap());
        let json = entry(&serde_json::from_str(&text).unwrap());
        let environment = Environment::made_of([("PATH", "/bin")], &root);
        let files = coverage(&json, &environment).files;
        for file in expected {
            let file = format!("{}/{file}", root.display());
            assert!(files.iter().any(|(known, _)| *known == file), "{file} {text} {files:?}");
        }
    };
    for word in [
        "nosuch/../x.js",
        "./x.js/",
        "x.js/",
        "x.js//",
        "x.js/.",
        "b.js/../x.js",
        "x.js/../x.js",
        "./nosuch/../x",
        "nosuch/more/../../x.js",
        "sub/nosuch/../../x.js",
        "ROOT/nosuch/../x.js",
        "a/../../x.js",
        "file://ROOT/nosuch/../x.js",
    ] {
        check(json!({ "command": "node", "args": [word] }), &["x.js"]);
        check(json!({ "command": "node", "args": ["-r", word, "b.js"] }), &["x.js", "b.js"]);
        check(json!({ "command": "node", "args": [format!("--import={word}")] }), &["x.js"]);
        let options = json!({ "NODE_OPTIONS": format!("--require {word}") });
        check(json!({ "command": "node", "env": options }), &["x.js"]);
    }
    check(json!({ "command": "node", "args": ["l/../x.js"] }), &["x.js", "d/x.js"]);
    check(json!({ "command": "node", "args": ["-r", "a/../c"] }), &["node_modules/c.js"]);
    let prefix = ["--prefix", "nosuch/../sub", "start"];
    check(json!({ "command": "npm", "args": prefix }), &["sub/package.json", "sub/"]);
    check(json!({ "command": "npx", "args": ["./nosuch/../sub"] }), &["sub/package.json", "sub/"]);
    check(json!({ "command": "perl", "args": ["-Inosuch/../sub"] }), &["sub/"]);
    let path = json!({ "PYTHONPATH": "/usr:nosuch/../sub/lib" });
    check(json!({ "command": "python3", "env": path }), &["sub/lib/"]);
}
