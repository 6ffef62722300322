//! The location of the packages that `npx` installs.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use switchboard_core::launcher::package::Package;

use crate::paths;

/// The directory of a package, from the settings that npm reads in this environment.
pub(super) fn root_of(package: &Package, env: &BTreeMap<String, String>) -> Option<PathBuf> {
    let home = env.get("HOME").map(Path::new)?;
    let cache = match setting("npm_config_cache", env) {
        Some(cache) => home.join(cache),
        None => {
            let config = setting("npm_config_userconfig", env).map(|path| home.join(path));
            let config = config.unwrap_or_else(|| home.join(".npmrc"));
            let text = paths::read(&config).ok().flatten().unwrap_or_default();
            match cache_in(&String::from_utf8_lossy(&text)) {
                // The path contains a variable, which only npm can expand.
                Some(cache) if cache.contains('$') => return None,
                Some(cache) => home.join(cache.strip_prefix("~/").unwrap_or(&cache)),
                None => home.join(".npm"),
            }
        }
    };
    Some(cache.join("_npx").join(package.npx_folder()))
}

/// The value of an npm setting in the environment. npm ignores the case of its variables.
fn setting<'a>(name: &str, env: &'a BTreeMap<String, String>) -> Option<&'a str> {
    let found = env.iter().find(|(key, value)| key.eq_ignore_ascii_case(name) && !value.is_empty());
    found.map(|(_, value)| value.as_str())
}

/// The value of `cache` in the text of an `.npmrc`.
fn cache_in(text: &str) -> Option<String> {
    let mut assigned = text.lines().filter_map(|line| line.split_once('='));
    let (_, value) = assigned.rfind(|(key, _)| key.trim() == "cache")?;
    let value = value.trim().trim_matches(['"', '\'']);
    Some(value.to_owned()).filter(|value| !value.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn last_cache_setting_of_npmrc_applies() {
        let check = |text: &str, expected: Option<&str>| {
            assert_eq!(cache_in(text).as_deref(), expected, "{text}");
        };
        check("", None);
        check("registry=https://x.example/\n; cache=/a\n#cache=/b\n", None);
        check("cache = \"/c d\"\r\n", Some("/c d"));
        check("cache=/a\ncache=~/b\n", Some("~/b"));
        check("cache=\n", None);
        check("@scope:cache=/a\n", None);
    }
}
