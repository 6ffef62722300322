//! Command lines that install a package and then run it, such as `npx -y PACKAGE`: what they mean,
//! so that the installed program can be run without them.

pub mod package;
pub mod python;
pub mod question;

use package::Package;

/// The launchers, by whose cache they install into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Npm,
    Bun,
    Pnpm,
    Uv,
}

/// A launcher's command line that can do without its launcher.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Launch {
    pub kind: Kind,
    pub package: Package,
    /// The program of the package, where the line names it apart from the package.
    pub bin: Option<String>,
    /// What is left for the program.
    pub args: Vec<String>,
    /// The words that make a launcher of the command: `exec` of `npm`.
    mode: &'static [&'static str],
}

/// How a launcher writes its command line.
struct Form {
    command: &'static str,
    mode: &'static [&'static str],
    kind: Kind,
    /// Flags without a value that change nothing about what is run.
    switches: &'static [&'static str],
    /// Flags whose value is the package; what is run is then the first word.
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

/// Which launcher a command line starts, whatever its flags are.
pub fn kind_of(command: &str, args: &[String]) -> Option<Kind> {
    let program = program_of(command);
    let flags_aside = |form: &&Form| {
        let words = args.iter().take_while(|arg| *arg != "--").filter(|arg| !arg.starts_with('-'));
        // The value of a flag may come in between.
        form.mode.iter().all(|mode| words.clone().any(|word| word == mode))
    };
    FORMS.iter().filter(|form| form.command == program).find(flags_aside).map(|form| form.kind)
}

/// What the line means; `None` if it is no launcher's, or has a flag that is not understood.
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
    // An address does not say what its program is called.
    if bin.is_none() && package.name.is_empty() {
        return None;
    }
    Some(Launch { kind: form.kind, package, bin, args: named.collect(), mode: form.mode })
}

impl Form {
    /// The package that a flag gives, and all words that are neither flags nor their values.
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
            // Several packages, and every other flag, are the launcher's own business.
            if !self.package.contains(&flag) || package.is_some() {
                return None;
            }
            package = Some(value);
        }
        Some((package, named))
    }
}

/// The name of the program. A file that is given from where it is started has none that tells
/// anything: it is whatever lies there.
fn program_of(command: &str) -> &str {
    match command.rsplit_once('/') {
        Some((folder, name)) if folder.is_empty() || folder.starts_with('/') => name,
        Some(_) => "",
        None => command,
    }
}

/// Whether it can stand for a file in a folder, and for nothing else.
fn is_file_name(name: &str) -> bool {
    !name.is_empty() && !name.starts_with(['.', '-']) && !name.contains(['/', '\\', '\0'])
}

#[cfg(test)]
mod tests;
