//! Command lines of each launcher, and properties of any command line.

use proptest::prelude::*;

use super::package::{Version, interpreter, runs_under_node, script_of};
use super::*;

fn read(line: &str) -> Option<Launch> {
    let mut words = line.split(' ').map(str::to_owned);
    let command = words.next().unwrap();
    parse(&command, &words.collect::<Vec<_>>())
}

/// The results of parsing the command lines, as text.
fn shown(lines: &[&str]) -> String {
    let show = |line: &&str| {
        let meaning = match read(line) {
            None => "runs unchanged".to_owned(),
            Some(Launch { kind, package, bin, args, .. }) => format!(
                "{kind:?} {} {:?} bin={} args={args:?}",
                package.name,
                package.version,
                bin.as_deref().unwrap_or("-"),
            ),
        };
        format!("{line} => {meaning}\n")
    };
    lines.iter().map(show).collect()
}

#[test]
fn launcher_line_is_split_into_package_and_program_arguments() {
    insta::assert_snapshot!(shown(&[
        "npx -y @scope/server .",
        "npx --yes server@1.2.3 --port 1 -y -- x",
        "/opt/node/bin/npx server@^1.2",
        "npx server@latest",
        "npx -p @scope/server@2.0.0-rc.1 serve -v",
        "npx --package=server -- serve -v",
        "npm exec -y server@next -- --flag",
        "npm exec --package server -- serve --flag",
        "npm x -- server --flag",
        "bunx server",
        "bun x -p server serve",
        "pnpm dlx server@4 a",
        "pnpm dlx --package=server serve",
        "uvx mcp-server-time --local-timezone UTC",
        "uvx mcp-server-time@2026.10.19",
        "uvx mcp-server-time==2026.10.19",
        "uvx mcp-server[extra]>=1",
        "uvx --from git+https://example.com/x serve a",
        "uv tool run --from=server@latest serve",
    ]), @r#"
    npx -y @scope/server . => Npm @scope/server Installed bin=- args=["."]
    npx --yes server@1.2.3 --port 1 -y -- x => Npm server Exact("1.2.3") bin=- args=["--port", "1", "-y", "--", "x"]
    /opt/node/bin/npx server@^1.2 => Npm server Installed bin=- args=[]
    npx server@latest => Npm server Moving bin=- args=[]
    npx -p @scope/server@2.0.0-rc.1 serve -v => Npm @scope/server Exact("2.0.0-rc.1") bin=serve args=["-v"]
    npx --package=server -- serve -v => Npm server Installed bin=serve args=["-v"]
    npm exec -y server@next -- --flag => Npm server Moving bin=- args=["--flag"]
    npm exec --package server -- serve --flag => Npm server Installed bin=serve args=["--flag"]
    npm x -- server --flag => Npm server Installed bin=- args=["--flag"]
    bunx server => Bun server Moving bin=- args=[]
    bun x -p server serve => Bun server Moving bin=serve args=[]
    pnpm dlx server@4 a => Pnpm server Moving bin=- args=["a"]
    pnpm dlx --package=server serve => Pnpm server Moving bin=serve args=[]
    uvx mcp-server-time --local-timezone UTC => Uv mcp-server-time Moving bin=- args=["--local-timezone", "UTC"]
    uvx mcp-server-time@2026.10.19 => Uv mcp-server-time Exact("2026.10.19") bin=- args=[]
    uvx mcp-server-time==2026.10.19 => Uv mcp-server-time Exact("2026.10.19") bin=- args=[]
    uvx mcp-server[extra]>=1 => Uv mcp-server Moving bin=- args=[]
    uvx --from git+https://example.com/x serve a => Uv  Moving bin=serve args=["a"]
    uv tool run --from=server@latest serve => Uv server Moving bin=serve args=[]
    "#);
}

#[test]
fn launcher_line_with_unknown_flags_is_not_replaced() {
    let lines = [
        "npx",
        "npx -y",
        "npx --yes --",
        "npx --registry https://x.example server",
        "npx -c server",
        "npx -p one -p two serve",
        "npx -p server",
        "npx -p server ../serve",
        "npx ./server",
        "npx ../server",
        "npx user/repo",
        "npx github:user/repo",
        "npx .",
        "npx server@npm:other",
        "npx @scope",
        "npx @/x",
        "npx @../x/y",
        "npx /abs",
        "npx server@file:x",
        "npm run server",
        "npm exec --registry x server",
        "npm exec -p server serve",
        "npm server",
        "bunx --bun server",
        "bun run server",
        "pnpm server",
        "pnpm --package=x dlx y",
        "uvx",
        "uvx --python 3.12 server",
        "uvx --from",
        "uvx --from ./here serve",
        "uvx ./server",
        "uvx git+https://example.com/x",
        "uv run server",
        "uv tool install server",
        "node x",
        "",
    ];
    for line in lines {
        assert_eq!(read(line), None, "{line}");
    }
}

#[test]
fn launcher_kind_is_recognized_despite_flags() {
    let check = |line: &str, expected: Option<LauncherKind>| {
        let mut words = line.split(' ').map(str::to_owned);
        let command = words.next().unwrap();
        assert_eq!(kind_of(&command, &words.collect::<Vec<_>>()), expected, "{line}");
    };
    check("npx --registry x server", Some(LauncherKind::Npm));
    check("/usr/bin/npx", Some(LauncherKind::Npm));
    check("npm --loglevel silent exec server", Some(LauncherKind::Npm));
    check("pnpm --package=x dlx y", Some(LauncherKind::Pnpm));
    check("uv --offline tool run server", Some(LauncherKind::Uv));
    check("bun --bun x server", Some(LauncherKind::Bun));
    check("npm run -- exec", None);
    check("npm start", None);
    check("uv run server", None);
    check("my-npx server", None);
    check("./npx server", None);
    check("node_modules/.bin/npx server", None);
}

#[test]
fn package_bin_entry_is_chosen_as_by_npm() {
    let check = |line: &str, manifest: &str, expected: Option<&str>| {
        let launch = read(line).unwrap();
        assert_eq!(script_of(&launch, manifest).as_deref(), expected, "{line} {manifest}");
    };
    check("npx a", r#"{"bin": "cli.js"}"#, Some("cli.js"));
    check("npx @s/a", r#"{"bin": {"other": "o.js"}}"#, Some("o.js"));
    check("npx @s/a", r#"{"bin": {"b": "b.js", "a": "a.js"}}"#, Some("a.js"));
    check("npx @s/a", r#"{"bin": {"b": "x.js", "c": "x.js"}}"#, Some("x.js"));
    check("npx -p @s/a b", r#"{"bin": {"b": "b.js", "a": "a.js"}}"#, Some("b.js"));
    check("npx -p @s/a a", r#"{"bin": "cli.js"}"#, Some("cli.js"));
    check("npx a@1.2.3", r#"{"version": "1.2.3", "bin": "cli.js"}"#, Some("cli.js"));
    check("npx a@1.2.3", r#"{"version": "1.2.4", "bin": "cli.js"}"#, None);
    check("npx a@1.2.3", r#"{"bin": "cli.js"}"#, None);
    check("npx a", r#"{"bin": {"b": "b.js", "c": "c.js"}}"#, None);
    check("npx -p a d", r#"{"bin": {"b": "b.js"}}"#, None);
    for manifest in ["", "[]", "{}", r#"{"bin": {}}"#, r#"{"bin": [1]}"#, r#"{"bin": {"a": 1}}"#] {
        check("npx a", manifest, None);
    }
}

#[test]
fn node_script_is_recognized_by_extension_and_shebang() {
    let check = |file: &str, head: &str, expected: bool| {
        assert_eq!(runs_under_node(file, head.as_bytes()), expected, "{file} {head}");
    };
    check("cli.js", "import x", true);
    check("cli.mjs", "", true);
    check("cli", "#!/usr/bin/env node\nx", true);
    check("cli", "#!/usr/local/bin/node\r\nx", true);
    check("cli", "", false);
    check("cli", "\u{7f}ELF", false);
    check("cli.js", "#!/usr/bin/env bun\n", false);
    check("cli.js", "#!/usr/bin/env -S node --flag\n", false);
    check("cli.js", "#!\n", false);
    check("cli", "#!/bin/sh\n", false);
}

#[test]
fn interpreter_name_is_parsed_from_the_shebang() {
    let check = |head: &str, expected: Option<&str>| {
        assert_eq!(interpreter(head.as_bytes()).as_deref(), expected, "{head}");
    };
    check("#!/usr/bin/env bun\nx", Some("bun"));
    check("#! /usr/bin/env -S A=1 node --flag\r\n", Some("node"));
    check("#!/bin/sh", Some("sh"));
    check("#!\nx", None);
    check("#!/usr/bin/env\nx", None);
    check("import x", None);
    check("\u{7f}ELF", None);
}

#[test]
fn npx_cache_directory_matches_npm() {
    // The directory name was observed in a cache of npm 11.
    let launch = read("npx -y @modelcontextprotocol/server-everything").unwrap();
    assert_eq!(launch.package.npx_folder(), "5b2dd62b9d0bddd4");
}

#[test]
fn each_launcher_is_probed_with_its_own_options() {
    let asked = |line: &str| {
        let args = read(line).unwrap().probe_args();
        let words: Vec<&str> = args.iter().map(String::as_str).collect();
        format!("{}\n", words.split_last().unwrap().1.join(" "))
    };
    let lines =
        ["npx a b", "npm exec a", "bunx a", "bun x a", "pnpm dlx a", "uvx a", "uv tool run a"];
    insta::assert_snapshot!(lines.map(asked).concat(), @"
    --yes --package=a -- node -e
    exec --yes --package=a -- node -e
    --package a node -e
    x --package a node -e
    dlx --package=a node -e
    --from a python -c
    tool run --from a python -c
    ");
    let node = read("npx a").unwrap();
    let printed =
        "notice\nswitchboard: /c/_npx/1/node_modules/.bin:/n/node_modules/.bin:/bin\nbye\n";
    assert_eq!(node.root_in(printed), Some("/c/_npx/1"));
    assert_eq!(node.root_in("switchboard: /bin\n"), None);
    assert_eq!(node.root_in("switchboard: x/node_modules/.bin\n"), None);
    assert_eq!(node.root_in("/c/node_modules/.bin\n"), None);
    let python = read("uvx a").unwrap();
    assert_eq!(python.root_in("\nswitchboard: /c/uv/x\n"), Some("/c/uv/x"));
    assert_eq!(python.root_in(""), None);
}

fn words() -> impl Strategy<Value = Vec<String>> {
    let word = prop_oneof![
        Just("-y".to_owned()),
        Just("--".to_owned()),
        Just("--package=a".to_owned()),
        Just("-p".to_owned()),
        Just("--from".to_owned()),
        Just("exec".to_owned()),
        Just("dlx".to_owned()),
        Just("@s/a@1.0.0".to_owned()),
        Just("a".to_owned()),
        "\\PC{0,12}",
    ];
    prop::collection::vec(word, 0..8)
}

proptest! {
    #[test]
    fn launcher_parsing_never_panics_or_leaves_the_package(
        command in prop_oneof!["npx", "npm", "bunx", "bun", "pnpm", "uvx", "uv", "\\PC{0,8}"],
        args in words(),
    ) {
        let _kind = kind_of(&command, &args);
        let _python = python::imports_from_its_directory(&command, &args);
        if let Some(launch) = parse(&command, &args) {
            prop_assert!(kind_of(&command, &args) == Some(launch.kind));
            // The program's arguments are words of the command line in the same order. They are its
            // last words, unless flags of the launcher may stand between them.
            let mut given = args.iter();
            prop_assert!(launch.args.iter().all(|word| given.any(|given| given == word)));
            prop_assert!(command == "npm" || args.ends_with(&launch.args));
            let named = launch.bin.as_deref().unwrap_or(&launch.package.name);
            prop_assert!(!named.is_empty() && !named.split('/').any(|part| part == ".."));
            prop_assert!(!named.starts_with(['/', '.', '-']));
            let exact = matches!(&launch.package.version, Version::Exact(v) if v.is_empty());
            prop_assert!(!exact);
        }
    }

    #[test]
    fn manifest_and_output_parsing_never_panics(manifest in "\\PC{0,60}", printed in "\\PC{0,60}") {
        for line in ["npx a", "uvx a"] {
            let launch = read(line).unwrap();
            let _script = script_of(&launch, &manifest);
            let _root = launch.root_in(&format!("switchboard: {printed}"));
        }
        let _node = runs_under_node(&manifest, printed.as_bytes());
    }
}
