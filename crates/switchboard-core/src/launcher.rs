//! Parses command lines that install a package and then run it, such as `npx -y PACKAGE`, so that
//! the installed program can be run without the launcher.

pub mod package;
pub mod python;
pub mod question;

use package::Package;

/// The launchers, by the cache into which they install.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Npm,
    Bun,
    Pnpm,
    Uv,
}

/// A launcher's command line whose program can be run without the launcher.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Launch {
    pub kind: Kind,
    pub package: Package,
    /// The program of the package, if the line names it separately.
    pub bin: Option<String>,
    /// The arguments of the program.
    pub args: Vec<String>,
    /// The subcommand that makes the command a launcher: `exec` of `npm`.
    mode: &'static [&'static str],
}

/// The syntax of a launcher's command line.
struct Form {
    command: &'static str,
    mode: &'static [&'static str],
    kind: Kind,
    /// Flags without a value that do not affect which program runs.
    switches: &'static [&'static str],
    /// Flags whose value is the package; the first word is then the program.
    package: &'static [&'static str],
    flags_end: FlagsEnd,
}

/// Where the flags of a launcher end and those of the program begin.
#[derive(Clone, Copy, PartialEq, Eq)]
enum FlagsEnd {
    AtFirstWord,
    AtDashes,
}

#[rustfmt::skip]
const FORMS: [Form; 8] = [
    Form { command: "npx", mode: &[], kind: Kind::Npm, switches: &["-y", "--yes"], package: &["-p", "--package"], flags_end: FlagsEnd::AtFirstWord },
    Form { command: "npm", mode: &["exec"], kind: Kind::Npm, switches: &["-y", "--yes"], package: &["--package"], flags_end: FlagsEnd::AtDashes },
    Form { command: "npm", mode: &["x"], kind: Kind::Npm, switches: &["-y", "--yes"], package: &["--package"], flags_end: FlagsEnd::AtDashes },
    Form { command: "bunx", mode: &[], kind: Kind::Bun, switches: &[], package: &["-p", "--package"], flags_end: FlagsEnd::AtFirstWord },
    Form { command: "bun", mode: &["x"], kind: Kind::Bun, switches: &[], package: &["-p", "--package"], flags_end: FlagsEnd::AtFirstWord },
    Form { command: "pnpm", mode: &["dlx"], kind: Kind::Pnpm, switches: &[], package: &["--package"], flags_end: FlagsEnd::AtFirstWord },
    Form { command: "uvx", mode: &[], kind: Kind::Uv, switches: &[], package: &["--from"], flags_end: FlagsEnd::AtFirstWord },
    Form { command: "uv", mode: &["tool", "run"], kind: Kind::Uv, switches: &[], package: &["--from"], flags_end: FlagsEnd::AtFirstWord },
];

/// Which launcher a command line starts, regardless of its flags.
pub fn kind_of(command: &str, args: &[String]) -> Option<Kind> {
    let program = program_of(command);
    let flags_aside = |form: &&Form| {
        let words = args.iter().take_while(|arg| *arg != "--").filter(|arg| !arg.starts_with('-'));
        // Values of flags may come in between.
        form.mode.iter().all(|mode| words.clone().any(|word| word == mode))
    };
    FORMS.iter().filter(|form| form.command == program).find(flags_aside).map(|form| form.kind)
}

/// Parses a command line; `None` if it starts no launcher or has an unknown flag.
pub fn parse(command: &str, args: &[String]) -> Option<Launch> {
    let program = program_of(command);
    let (form, words) = FORMS.iter().filter(|form| form.command == program).find_map(|form| {
        let (mode, words) = args.split_at_checked(form.mode.len())?;
        (mode == form.mode).then_some((form, words))
    })?;
    let (package, named) = form.read(words)?;
    let mut named = named.into_iter();
    let (spec, bin) = match package {
        Some(package) => (package, Some(named.next().filter(|bin| is_file_name(bin))?)),
        None => (named.next()?, None),
    };
    let package = Package::parse(form.kind, &spec)?;
    // A URL does not give the name of its program.
    if bin.is_none() && package.name.is_empty() {
        return None;
    }
    Some(Launch { kind: form.kind, package, bin, args: named.collect(), mode: form.mode })
}

impl Form {
    /// The package given by a flag, and all words that are neither flags nor their values.
    fn read(&self, words: &[String]) -> Option<(Option<String>, Vec<String>)> {
        let mut package = None;
        let mut named: Vec<String> = Vec::new();
        let mut words = words.iter();
        while let Some(word) = words.next() {
            if word == "--" && self.kind == Kind::Npm {
                named.extend(words.by_ref().cloned());
                break;
            }
            if !word.starts_with('-') {
                named.push(word.clone());
                if self.flags_end == FlagsEnd::AtFirstWord {
                    named.extend(words.by_ref().cloned());
                }
                continue;
            }
            if self.switches.contains(&word.as_str()) {
                continue;
            }
            let (flag, value) = match word.split_once('=') {
                Some((flag, value)) if flag.starts_with("--") => (flag, value.to_owned()),
                Some(_) | None => (word.as_str(), words.next().cloned()?),
            };
            // Only the launcher can handle several packages, and other flags.
            if !self.package.contains(&flag) || package.is_some() {
                return None;
            }
            package = Some(value);
        }
        Some((package, named))
    }
}

/// The file name of the program; empty for a relative path, because any program may have that name.
fn program_of(command: &str) -> &str {
    match command.rsplit_once('/') {
        Some((folder, name)) if folder.is_empty() || folder.starts_with('/') => name,
        Some(_) => "",
        None => command,
    }
}

/// Whether a name is a plain file name, not a path or a flag.
fn is_file_name(name: &str) -> bool {
    !name.is_empty() && !name.starts_with(['.', '-']) && !name.contains(['/', '\\', '\0'])
}

#[cfg(test)]
mod tests;
