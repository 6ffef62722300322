//! Values that refer to the project only after expansion.

use std::collections::BTreeMap;
use std::fs;

use serde_json::{Value, json};
use switchboard_core::config::layers::Tier;
use switchboard_core::config::snippet;
use switchboard_reaper::Confinement;

use super::*;

/// Starts the approved definition with this environment.
fn check(json: &Value, args: &[&str], env: &[(&str, &str)], expected: Result<(), BrokenSeal>) {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    fs::create_dir_all(root.join("project/lib/deep")).unwrap();
    fs::create_dir_all(root.join("project/.git")).unwrap();
    fs::write(root.join("project/lib/deep/x.py"), "").unwrap();
    let cwd = root.join("project");
    let definition = snippet::check("s", json.as_object().unwrap(), Tier::User).unwrap();
    let environment = Environment::made_of([("PATH", "/bin")], &cwd);
    let files = coverage(&definition, &environment).hashes();
    let hash = trust_hash("s", &definition, &cwd.to_string_lossy(), &files);
    let store = TrustStore::at(root.join("trust.json"));
    store.approve(&hash, "s", &cwd).unwrap();
    let seal = Seal { server: "s".to_owned(), definition, environment, hash, store };
    let filled = |text: &str| text.replace("ROOT", &cwd.to_string_lossy());
    let env: BTreeMap<String, String> =
        env.iter().map(|(name, value)| ((*name).to_owned(), filled(value))).collect();
    let program = Program {
        command: "python3".to_owned(),
        args: args.iter().map(|arg| filled(arg)).collect(),
        env,
        cwd,
        confinement: Confinement::default(),
    };
    assert_eq!(seal.check(&program, &[]), expected, "{json} {program:?}");
}

#[test]
fn start_is_refused_if_expansion_names_unapproved_project_directory() {
    let set = |name: &str, value: &str| json!({ "command": "python3", "env": { name: value } });
    let hidden = Err(BrokenSeal::HiddenScript);
    check(&set("PYTHONPATH", "lib"), &[], &[("PYTHONPATH", "lib")], Ok(()));
    check(&set("PYTHONPATH", "${X}"), &[], &[("PYTHONPATH", "/usr/share")], Ok(()));
    check(&set("PYTHONPATH", "${X}"), &[], &[("PYTHONPATH", "lib")], hidden);
    check(&set("PYTHONPATH", "${X}"), &[], &[("PYTHONPATH", "/usr/share:ROOT/lib")], hidden);
    check(&set("PYTHONPATH", "!echo lib"), &[], &[("PYTHONPATH", "lib")], Ok(()));
    check(&set("PYTHONPATH", "!cat x"), &[], &[("PYTHONPATH", "./lib/deep")], hidden);
    check(&set("PYTHONPATH", "lib:${X}"), &[], &[("PYTHONPATH", "lib:lib/deep")], Ok(()));
    check(&set("PYTHONPATH", "${X}"), &[], &[("PYTHONPATH", "ROOT")], hidden);
    check(&set("PYTHONPATH", "."), &[], &[("PYTHONPATH", ".")], Ok(()));
    check(&set("PATH", "./lib:${PATH}"), &[], &[("PATH", "./lib:/bin")], Ok(()));
    check(&set("PATH", "${X}"), &[], &[("PATH", "lib:/bin")], hidden);
    check(&set("ANYTHING", "${X}"), &[], &[("ANYTHING", "ROOT/lib")], hidden);
    // Permitted values: the project itself, and a text without a slash that equals the name of a
    // directory.
    check(&set("ANYTHING", "${X}"), &[], &[("ANYTHING", "ROOT")], Ok(()));
    check(&set("ANYTHING", "${X}"), &[], &[("ANYTHING", "lib")], Ok(()));
    let args = json!({ "command": "python3", "args": ["${X}"] });
    check(&args, &["lib"], &[], hidden);
    check(&args, &["/usr/share"], &[], Ok(()));
}
