//! Shebang lines of scripts, as the kernel reads them.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};

use super::*;

/// First lines without `#!`, and the name of the file beside the script that runs because of each.
fn class() -> Vec<(Vec<u8>, Vec<u8>)> {
    let long = |padding: usize| {
        let path = format!("./{}b", "./".repeat(padding));
        (path.into_bytes(), b"b".to_vec())
    };
    let plain = |line: &str, file: &str| (line.as_bytes().to_vec(), file.as_bytes().to_vec());
    vec![
        plain("./b", "b"),
        plain(" \t./b", "b"),
        plain("./b \t ", "b"),
        plain("./b -x y", "b"),
        plain("./b\r", "b\r"),
        plain("./b\u{b}x", "b\u{b}x"),
        plain("./b\u{c}x y", "b\u{c}x"),
        plain("./b\u{a0}x", "b\u{a0}x"),
        plain("./b\u{2003}x", "b\u{2003}x"),
        plain("./b\u{85}", "b\u{85}"),
        plain("./'b'", "'b'"),
        plain("./b\\", "b\\"),
        plain("./b\0/../c", "b"),
        plain("./b\0 c", "b"),
        plain("/bin/sh ./with blank", "with blank"),
        plain("/bin/sh ./with blank\r", "with blank\r"),
        long(100),
        // Longer than the buffer of the kernel, which truncates the name.
        (format!("/bin/sh ./{}", "c".repeat(300)).into_bytes(), vec![b'c'; 243]),
    ]
}

#[test]
#[expect(clippy::disallowed_methods, reason = "the kernel shows which program it runs")]
fn approval_covers_the_interpreter_of_a_shebang() {
    for (line, runs) in class() {
        let (_folder, root) = project(&[]);
        let at = |name: &[u8]| root.join(std::ffi::OsStr::from_bytes(name));
        let write = |name: &[u8], text: &[u8]| {
            fs::write(at(name), text).unwrap();
            fs::set_permissions(at(name), fs::Permissions::from_mode(0o755)).unwrap();
        };
        write(b"script", &[b"#!", &line[..], b"\nexit 1\n"].concat());
        write(&runs, b"#!/bin/sh\nexit 42\n");
        let about = line.escape_ascii().to_string();
        let mut started = Command::new("./script");
        let status = started.current_dir(&root).stderr(Stdio::null()).status();
        assert_eq!(status.unwrap().code(), Some(42), "{about}");
        let environment = Environment::made_of([("PATH", "/bin:/usr/bin")], root.clone());
        let covered = || coverage(&entry(&json!({ "command": "./script" })), &environment).hashes();
        let before = covered();
        fs::write(at(&runs), "#!/bin/sh\nexit 43\n").unwrap();
        assert_ne!(before, covered(), "{about}");
    }
}

#[test]
fn non_utf8_shebang_is_reported_as_not_covered() {
    let (_folder, root) = project(&[]);
    fs::write(root.join("script"), b"#!./b\xff\n").unwrap();
    let environment = Environment::made_of([("PATH", "/bin:/usr/bin")], root);
    let coverage = coverage(&entry(&json!({ "command": "./script" })), &environment);
    let said = coverage.not_covered;
    assert!(said.iter().any(|what| what.contains("in the first line of")), "{said:?}");
}
