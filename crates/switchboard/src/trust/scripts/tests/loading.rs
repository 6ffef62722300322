//! Files that programs load by a module, package, class or default name.

use super::*;

/// The files that the approval of a definition covers, and the descriptions of what it does not
/// cover.
fn look(files: &[(&str, &str)], json: &Value) -> (Vec<String>, Vec<String>) {
    let (_folder, root) = project(&[".git/HEAD"]);
    for (name, text) in files {
        let file = root.join(name);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
    }
    let environment = Environment::made_of([("PATH", "/bin")], &root);
    let start = format!("{}/", root.display());
    let Coverage { files, not_covered, .. } = coverage(&entry(json), &environment);
    let files = files.iter().map(|(file, _)| file.replace(&start, "")).collect();
    (files, not_covered.iter().map(|what| what.replace(&start, "")).collect())
}

fn line(text: &str) -> Value {
    let words: Vec<&str> = text.split(' ').collect();
    json!({ "command": words[0], "args": words[1..] })
}

/// Asserts that the definition covers the file, which has this text.
fn covers(json: &Value, file: &str, text: &str) {
    let (files, _) = look(&[(file, text)], json);
    assert!(files.iter().any(|known| known == file), "{json} {file}: {files:?}");
}

#[test]
fn approval_covers_module_named_in_grouped_short_options() {
    for group in ["-m", "-um", "-Bm", "-Bum", "-uBm", "-OOm", "-qm", "-Im", "-bbm", "-Esm"] {
        covers(&line(&format!("python3 {group}mod")), "mod.py", "");
        covers(&line(&format!("python3 {group}pkg.sub")), "pkg/sub.py", "");
        covers(&line(&format!("python3 {group}pkg")), "pkg/__main__.py", "");
        covers(&line(&format!("python3 {group} mod")), "mod.py", "");
        covers(
            &json!({ "command": "env", "args": [format!("-Spython3 {group}mod")] }),
            "mod.py",
            "",
        );
    }
}

#[test]
fn approval_prompt_names_inline_code_in_grouped_options() {
    let named = |args: Value| {
        let (_, lines) = look(&[("mod.py", "")], &json!({ "command": "python3", "args": args }));
        lines.iter().any(|what| what == "files that its code names in other ways")
    };
    for args in [json!(["-cimport mod"]), json!(["-Bcimport mod"]), json!(["-uBc", "import mod"])] {
        assert!(named(args.clone()), "{args}");
    }
    assert!(!named(json!(["-Bmmod"])));
    assert!(!named(json!(["-u", "mod.py"])));
}

#[test]
fn approval_prompt_names_variable_that_a_shell_expands() {
    let named = |value: &str| {
        let json = json!({ "command": "bash", "args": ["x.sh"], "env": { "BASH_ENV": value } });
        let (_, lines) = look(&[("r", "")], &json);
        lines.iter().any(|what| what == "files that \"BASH_ENV\" names after a shell expands it")
    };
    for value in [
        "$PWD/r",
        "$(pwd)/r",
        "`pwd`/r",
        "~+/r",
        "./?",
        "./*",
        "./[r]",
        "./{r,s}",
        ". ?",
        "$'\\x72'",
        "./r$X",
        "./${Q-r}",
        "${X:-$PWD/r}",
        "a:~+/r",
        "!echo $PWD/r",
        "!!$PWD/r",
    ] {
        assert!(named(value), "{value}");
    }
    for value in ["./r", "${TOKEN}", "${X:-r}", "~/r", "*", "a~b", "${workspaceFolder}/r", "!cat r"]
    {
        assert!(!named(value), "{value}");
    }
}

#[test]
fn approval_prompt_names_argument_that_shell_may_expand() {
    let lines = |args: Value| look(&[], &json!({ "command": "tool", "args": args })).1;
    let expected = "files that \"--run=$PWD/r\" names after a shell expands it";
    assert_eq!(lines(json!(["--run=$PWD/r"])), [expected, OTHER_FILES]);
    assert_eq!(lines(json!(["--run=./r"])), [OTHER_FILES]);
}

#[test]
fn approval_covers_the_file_of_a_module_specifier() {
    for word in ["./x.mjs?a", "./x.mjs#a", "./x.mjs?a#b", "./nosuch/../x.mjs?a", "./x%2Emjs?a"] {
        covers(&line(&format!("node --import {word} b.js")), "x.mjs", "");
        covers(&line(&format!("node --import={word}")), "x.mjs", "");
    }
    covers(&line("nix run ./sub#srv"), "sub/flake.nix", "");
    covers(&line("nix run .#srv"), "flake.nix", "");
}

#[test]
fn approval_covers_manifest_for_the_project_package_name() {
    const MANIFEST: &str = r##"{ "name": "@scope/own", "exports": "./x.js",
        "imports": { "#foo": "./f.mjs" }, "bin": { "start": "./x.js" } }"##;
    let check = |text: &str, is_covered: bool| {
        let (files, lines) = look(&[("package.json", MANIFEST)], &line(text));
        let is_named = lines.iter().any(|what| what.contains("package.json\" starts"));
        assert_eq!(
            (files.contains(&"package.json".to_owned()), is_named),
            (is_covered, is_covered),
            "{text}"
        );
    };
    check("node -r @scope/own b.js", true);
    check("node -r @scope/own/sub b.js", true);
    check("node --import=#foo b.js", true);
    check("npx own", true);
    check("npx -y start@1.0.0", true);
    check("node b.js", false);
    check("npx -y server@1.0.0", false);
    check("node -r @scope/owner b.js", false);
}

#[test]
fn approval_covers_a_file_named_without_its_extension() {
    for (text, file) in [
        ("java Main", "Main.class"),
        ("java com.ex.Main", "com/ex/Main.class"),
        ("java com/ex/Main", "com/ex/Main.class"),
        ("java -cp out com.ex.Main", "out/com/ex/Main.class"),
        ("lua -l foo", "foo.lua"),
        ("lua -lfoo", "foo.lua"),
        ("lua -l a.foo", "a/foo.lua"),
        ("lua -l foo", "foo/init.lua"),
        ("lua -l foo", "foo.so"),
        ("groovy x", "x.groovy"),
        ("bun run x", "x.tsx"),
        ("bun x", "x.ts"),
        ("node ./x", "x.node"),
        ("npx @scope/foo", "node_modules/.bin/foo"),
        ("docker run -v .:/w node node /w/x.js", "x.js"),
        ("docker run --mount type=bind,source=.,target=/w node /w/sub/x.js", "sub/x.js"),
        ("podman run --volume=./:/srv/app:ro node /srv/app/x", "x.js"),
        ("docker run -v./app:/a img python /a/main.py", "app/main.py"),
        ("docker run -itv./app:/a img python /a/main.py", "app/main.py"),
        ("uvx --from . x", "pyproject.toml"),
        ("uvx --from=. x", "setup.py"),
        ("uvx .", "setup.cfg"),
        ("uvx --with-editable ./ x", "setup.py"),
        ("pipx run --spec . x", "pyproject.toml"),
    ] {
        covers(&line(text), file, "");
    }
}

#[test]
fn approval_covers_task_runner_file_but_not_its_tasks() {
    for (text, file) in [
        ("tox -e serve", "tox.ini"),
        ("python3 -m nox", "noxfile.py"),
        ("inv serve", "tasks.py"),
        ("gulp", "gulpfile.mjs"),
        ("grunt", "Gruntfile.js"),
        ("pm2-runtime start", "ecosystem.config.cjs"),
        ("npx vite", "vite.config.ts"),
        ("jest", "jest.config.js"),
        ("mocha", ".mocharc.js"),
        ("pytest", "conftest.py"),
        ("flask run", ".flaskenv"),
        ("gunicorn app:app", "gunicorn.conf.py"),
        ("rackup", "config.ru"),
        ("ant", "build.xml"),
        ("sbt run", "project/plugins.sbt"),
        ("dotnet run", "server.csproj"),
        ("swift run", "Package.swift"),
        ("zig build run", "build.zig"),
        ("ninja", "build.ninja"),
        ("bazel run x", ".bazelrc"),
        ("foreman start", "Procfile"),
        ("terraform console", "main.tf"),
        ("ansible-playbook x", "ansible.cfg"),
        ("npx -y server@1.0.0", ".npmrc"),
        ("yarn start", ".yarn/releases/yarn-4.cjs"),
    ] {
        let (files, lines) = look(&[(file, "")], &line(text));
        assert_eq!(files, [file], "{text}");
        let starts = lines.iter().any(|what| what.contains(&format!("{file}\" starts")));
        assert!(starts, "{text} {lines:?}");
    }
}
