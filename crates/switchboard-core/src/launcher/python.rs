//! Checks whether a Python command line imports modules from its working directory.

use super::program_of;

/// Whether the command line runs `python -m NAME` or `python -c TEXT`, which import modules from
/// the working directory before installed ones.
pub fn imports_from_its_directory(command: &str, args: &[String]) -> bool {
    let version = program_of(command).strip_prefix("python");
    if !version.is_some_and(|version| version.chars().all(|c| c.is_ascii_digit() || c == '.')) {
        return false;
    }
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        if arg == "--check-hash-based-pycs" {
            args.next();
            continue;
        }
        if arg.starts_with("--") {
            continue;
        }
        // The argument is a script. Python then imports from the directory of the script.
        let Some(letters) = arg.strip_prefix('-').filter(|letters| !letters.is_empty()) else {
            return false;
        };
        for (at, letter) in letters.char_indices() {
            match letter {
                'm' | 'c' => return true,
                'W' | 'X' => {
                    if at + 1 == letters.len() {
                        args.next();
                    }
                    break;
                }
                _ => {}
            }
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn python_with_m_or_c_imports_from_working_directory() {
        let check = |line: &str, expected: bool| {
            let mut words = line.split(' ').map(str::to_owned);
            let command = words.next().unwrap();
            let args: Vec<String> = words.collect();
            assert_eq!(imports_from_its_directory(&command, &args), expected, "{line}");
        };
        check("python -m mcp_server_time", true);
        check("/usr/bin/python3 -um mcp_server_time", true);
        check("python3.12 -X utf8 -Wd -W d -mserver", true);
        check("python --check-hash-based-pycs always -c pass", true);
        check("python server.py -m x", false);
        check("python -u server.py -m x", false);
        check("python -Xm server.py", false);
        check("python - -m", false);
        check("python", false);
        check("pythonic -m x", false);
        check(".venv/bin/python -m x", false);
        check("node -m x", false);
    }
}
