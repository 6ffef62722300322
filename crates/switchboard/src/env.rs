//! The environment of this process, read once and passed on as a value.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use switchboard_core::config::expand::Surroundings;

use crate::auth::vault::KEY_VARIABLE;

/// Variables that every server gets. Programs commonly need them, and they hold no secrets.
const PASSED_ON: &[&str] =
    &["HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER", "LANG", "LANGUAGE", "TMPDIR", "TZ"];

/// Variables with network settings. A proxy URL can hold a password, so a server gets them only if
/// its entry names them. The list lets a message name the network variables that a server did not
/// get.
const NETWORK: &[&str] = &[
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "all_proxy",
    "no_proxy",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "NODE_EXTRA_CA_CERTS",
];

/// Variables that locate or decrypt Switchboard's own files.
pub(crate) const OWN_VARIABLES: &[&str] = &[
    "SWITCHBOARD_HOME",
    "XDG_CACHE_HOME",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_STATE_HOME",
    KEY_VARIABLE,
];

/// The environment of a process: variables, working directory and program.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Environment {
    variables: BTreeMap<String, String>,
    /// The working directory of the process.
    pub cwd: PathBuf,
    /// The running program; unknown in an environment for a test or an embedder.
    pub program: Option<PathBuf>,
}

impl Environment {
    /// The environment that this process was started with. Variables that are not UTF-8 are left
    /// out.
    #[expect(clippy::disallowed_methods, reason = "the environment is read here alone")]
    pub fn of_process() -> Environment {
        let variables = std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
            .collect();
        Environment {
            variables,
            cwd: std::env::current_dir().unwrap_or_default(),
            program: std::env::current_exe().ok(),
        }
    }

    /// An environment for a test or an embedder.
    pub fn made_of<const N: usize>(
        variables: [(&str, &str); N],
        cwd: impl Into<PathBuf>,
    ) -> Environment {
        let variables =
            variables.map(|(name, value)| (name.to_owned(), value.to_owned())).into_iter();
        Environment { variables: variables.collect(), cwd: cwd.into(), program: None }
    }

    /// The value of a variable, if it is set and not empty.
    pub fn variable(&self, name: &str) -> Option<&str> {
        self.variables.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    /// Removes variables that are empty or refer to themselves: hosts pass such values if their
    /// file names a variable that is not set.
    pub fn without_unset(mut self) -> Environment {
        self.variables.retain(|name, value| {
            let references =
                [format!("${name}"), format!("${{{name}}}"), format!("${{env:{name}}}")];
            !value.is_empty() && !references.contains(value)
        });
        self
    }

    /// The home directory of the user.
    pub fn home(&self) -> Option<&Path> {
        self.variable("HOME").map(Path::new)
    }

    /// Runs `work` with the context for expanding templates. A variable that is set but empty
    /// is not replaced by its default.
    pub(crate) fn expanding<T>(&self, work: impl FnOnce(&Surroundings<'_>) -> T) -> T {
        let variable = |name: &str| self.variables.get(name).cloned();
        work(&Surroundings { variable: &variable, ..self.places() })
    }

    /// The context for expanding templates that name directories; no variable is set in it.
    pub(crate) fn places(&self) -> Surroundings<'_> {
        Surroundings {
            variable: &|_| None,
            home: self.home().and_then(Path::to_str),
            project: self.cwd.to_str(),
        }
    }

    /// The variables that every server gets. Exported shell functions are never passed on.
    pub fn for_servers(&self) -> impl Iterator<Item = (&str, &str)> {
        self.all().filter(|(name, _)| PASSED_ON.contains(name) || name.starts_with("LC_"))
    }

    /// The network variables that are set; servers get them only if their entry names them.
    pub(crate) fn withheld(&self) -> impl Iterator<Item = &'static str> {
        NETWORK.iter().copied().filter(|name| self.variable(name).is_some())
    }

    /// All variables, for a server whose entry sets `inheritEnv`, except the one that decrypts
    /// Switchboard's files.
    pub fn all(&self) -> impl Iterator<Item = (&str, &str)> {
        self.variables
            .iter()
            .filter(|(name, _)| *name != KEY_VARIABLE)
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .filter(|(_, value)| !value.starts_with("() {"))
    }
}

impl std::fmt::Debug for Environment {
    /// Omits the values of variables, because they are often secrets.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Environment").field("cwd", &self.cwd).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unexpanded_host_variable_is_treated_as_unset() {
        let environment = Environment::made_of(
            [("A", "a"), ("B", ""), ("C", "$C"), ("D", "${D}"), ("E", "${env:E}"), ("F", "$E")],
            "/",
        );
        let left = environment.without_unset();
        assert_eq!(left.variables.into_keys().collect::<Vec<_>>(), ["A", "F"]);
    }

    #[test]
    fn inherited_environment_lacks_token_key_and_shell_functions() {
        let environment = Environment::made_of(
            [("A", "a"), (KEY_VARIABLE, "key"), ("BASH_FUNC_f%%", "() { :; }"), ("PATH", "/bin")],
            "/",
        );
        let inherited: Vec<&str> = environment.all().map(|(name, _)| name).collect();
        assert_eq!(inherited, ["A", "PATH"]);
        let usual: Vec<&str> = environment.for_servers().map(|(name, _)| name).collect();
        assert_eq!(usual, ["PATH"]);
    }
}
