//! The part of the command line that exists for Pi alone: the package of the extension, embedded in
//! this program so that both have the same version.

macro_rules! files {
    [$($name:literal),* $(,)?] => {
        &[$(($name, include_str!(concat!("../../../extensions/pi/", $name)))),*]
    };
}

/// The names and contents of the files of the Pi package.
pub(crate) const FILES: &[(&str, &str)] = files![
    "README.md",
    "binary.ts",
    "board.ts",
    "commands.ts",
    "dialogs.ts",
    "form.ts",
    "index.ts",
    "link.ts",
    "package.json",
    "render.ts",
    "tools.ts",
    "trust.ts",
];

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;

    #[test]
    fn every_file_of_the_pi_extension_is_embedded() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../extensions/pi");
        let names = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
        let names = names.map(|name| name.into_string().unwrap());
        let is_loaded =
            |name: &String| name.ends_with(".ts") || name == "package.json" || name == "README.md";
        let mut names: Vec<String> = names.filter(is_loaded).collect();
        names.sort_unstable();
        let mut listed: Vec<&str> = FILES.iter().map(|(name, _)| *name).collect();
        listed.sort_unstable();
        assert_eq!(listed, names);
    }
}
