//! Servers that are disabled, enabled again, and removed while they are disabled.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use switchboard_it::program::Installed;

use crate::PROGRAMS;

const SHARED: &str = r#"{ "mcpServers": { "files": { "command": "files-mcp" } } }"#;
const USER: &str = "switchboard/mcp.json";
const OURS_IN_THE_PROJECT: &str = ".switchboard/mcp.json";

/// The texts of the configuration files that exist in the home directory.
fn files(home: &Path) -> BTreeMap<PathBuf, String> {
    let mut found = BTreeMap::new();
    for file in [USER, OURS_IN_THE_PROJECT, ".mcp.json", ".agents/mcp.json"] {
        if let Ok(text) = fs::read_to_string(home.join(file)) {
            found.insert(file.into(), text);
        }
    }
    found
}

#[tokio::test]
async fn disable_then_enable_restores_the_configuration_file_exactly() {
    for server in [".agents/mcp.json", ".mcp.json"] {
        for before in [
            None,
            Some("{}"),
            Some("{ \"settings\": { \"toolPrefix\": \"short\" } }\n"),
            Some("// mine\n{\n  \"settings\": {}, // none\n}\n"),
            Some("{\n  \"mcpServers\": {\n    \"other\": { \"command\": \"x\" }\n  }\n}\n"),
        ] {
            let installed = Installed::bare(PROGRAMS);
            installed.write(server, SHARED);
            let ours = if server == ".mcp.json" { OURS_IN_THE_PROJECT } else { USER };
            if let Some(text) = before {
                installed.write(ours, text);
            }
            let there = files(installed.home());
            let off = installed.run(["disable", "files"]).await;
            assert_eq!(off.code, Some(0), "{off:?}");
            assert_ne!(files(installed.home()), there, "{before:?}");
            let shown = installed.run(["config", "show"]).await.stdout;
            assert!(shown.contains("disabled: true"), "{before:?}: {shown}");
            let on = installed.run(["enable", "files"]).await;
            assert_eq!(on.code, Some(0), "{on:?}");
            assert_eq!(files(installed.home()), there, "{before:?}");
            let directory = installed.home().join(".switchboard");
            assert_eq!(directory.exists(), before.is_some() && ours == OURS_IN_THE_PROJECT);
        }
    }
}

#[tokio::test]
async fn entry_with_only_disabled_flag_is_not_a_server() {
    let flag = r#"{ "mcpServers": { "files": { "disabled": true } } }"#;
    let installed = Installed::with(PROGRAMS, flag);
    for command in ["enable", "disable"] {
        let ran = installed.run([command, "files"]).await;
        insta::allow_duplicates! {
            insta::assert_snapshot!(ran.transcript(installed.home()), @r"
            exit 2
            --- stdout
            --- stderr
            error: no server is named `files`

            hint: see the servers with `switchboard status`
            ");
        }
    }
    assert_eq!(fs::read_to_string(installed.home().join(USER)).unwrap(), flag);
    let ran = installed.run(["remove", "files"]).await;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(!fs::read_to_string(installed.home().join(USER)).unwrap().contains("files"));
}

#[tokio::test]
async fn remove_deletes_disabled_flag_but_refuses_shared_server() {
    let installed = Installed::bare(PROGRAMS);
    installed.write(".mcp.json", SHARED);
    installed.run(["disable", "files"]).await;
    let ran = installed.run(["remove", "files"]).await;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let left = files(installed.home());
    assert!(left.values().all(|text| !text.contains("files")), "{left:?}");

    installed.write(".agents/mcp.json", SHARED);
    installed.run(["disable", "files"]).await;
    let there = files(installed.home());
    let ran = installed.run(["remove", "files"]).await;
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.stderr.contains("which belongs to another program"), "{ran:?}");
    assert_eq!(files(installed.home()), there);
}
