//! An update keeps links, the file mode, and every finished update.

use std::os::unix::fs::symlink;

use super::*;

/// Appends a line to the file in an update.
fn append(file: &SharedFile, line: &str) {
    file.update(|before| {
        let mut text = before.unwrap_or_default().to_vec();
        text.extend(line.as_bytes());
        text.push(b'\n');
        Ok::<_, ()>(Some(text))
    })
    .unwrap();
}

fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).unwrap();
    let mut names: Vec<_> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().mode() & 0o7777
}

#[test]
fn edit_keeps_a_symlink_and_changes_its_target() {
    let home = tempfile::tempdir().unwrap();
    let (link, target) = (home.path().join("link"), home.path().join("dotfiles/mcp.json"));
    symlink("dotfiles/mcp.json", &link).unwrap();
    let locks = home.path().join("locks");
    // The target of the link does not exist before the first update.
    for expected in ["one\n", "one\none\n"] {
        let file = SharedFile::elsewhere(&link, &locks, Privacy::Usual).unwrap();
        append(&file, "one");
        assert_eq!(fs::read_to_string(&target).unwrap(), expected);
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    }
    let direct = SharedFile::elsewhere(&target, &locks, Privacy::Usual).unwrap();
    append(&direct, "two");
    assert_eq!(names(&locks).len(), 1, "both ways to the file have one lock");

    symlink("circle", home.path().join("circle")).unwrap();
    assert!(SharedFile::elsewhere(&home.path().join("circle"), &locks, Privacy::Usual).is_err());
}

#[test]
fn edit_keeps_file_mode_and_creates_private_files() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("new/mcp.json");
    let file = SharedFile::ours(path.clone());
    append(&file, "one");
    assert_eq!((mode(&path), mode(path.parent().unwrap())), (0o600, 0o700));
    for kept in [0o644, 0o640, 0o600, 0o400] {
        fs::set_permissions(&path, Permissions::from_mode(kept)).unwrap();
        append(&file, "two");
        assert_eq!(mode(&path), kept);
    }
}

#[test]
fn temporary_files_of_a_killed_writer_are_removed() {
    let home = tempfile::tempdir().unwrap();
    let file = SharedFile::ours(home.path().join("mcp.json"));
    let other = SharedFile::ours(home.path().join("mcp.json.x"));
    let left = || {
        fs::write(home.path().join(".mcp.json.Ab12.switchboard-new"), "to").unwrap();
        fs::write(home.path().join(".mcp.json.x.Ab12.switchboard-new"), "to").unwrap();
    };
    left();
    append(&file, "one");
    let others = [".mcp.json.x.Ab12.switchboard-new", "mcp.json", "mcp.lock"];
    assert_eq!(names(home.path()), others, "temporary files of other files stay");
    left();
    let _writing = paths::lock(&other.lock).unwrap();
    SharedFile::sweep_directory(home.path()).unwrap();
    assert_eq!(names(home.path()), [others[0], "mcp.json", "mcp.json.lock", "mcp.lock"]);
}

#[test]
fn failed_or_empty_update_leaves_the_file_unchanged() {
    let home = tempfile::tempdir().unwrap();
    let file = SharedFile::ours(home.path().join("mcp.json"));
    append(&file, "one");
    let before = fs::metadata(&file.path).unwrap().ino();
    file.update(|_| Ok::<_, ()>(None)).unwrap();
    assert!(matches!(file.update(|_| Err("no")), Err(UpdateError::Change("no"))));
    assert_eq!(fs::metadata(&file.path).unwrap().ino(), before);
}

#[test]
fn concurrent_write_without_the_lock_is_not_lost() {
    let home = tempfile::tempdir().unwrap();
    let file = SharedFile::ours(home.path().join("mcp.json"));
    let mut rounds = 0;
    file.update(|before| {
        rounds += 1;
        let mut text = before.unwrap_or_default().to_vec();
        if rounds == 1 {
            fs::write(&file.path, "theirs\n").unwrap();
        }
        text.extend(b"ours\n");
        Ok::<_, ()>(Some(text))
    })
    .unwrap();
    assert_eq!(fs::read_to_string(&file.path).unwrap(), "theirs\nours\n");
}

#[test]
fn concurrent_updates_are_not_lost() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("mcp.json");
    std::thread::scope(|scope| {
        for writer in 0..8 {
            let file = SharedFile::ours(path.clone());
            scope.spawn(move || (0..8).for_each(|n| append(&file, &format!("{writer}-{n}"))));
        }
    });
    let text = fs::read_to_string(&path).unwrap();
    let mut lines: Vec<&str> = text.lines().collect();
    lines.sort_unstable();
    lines.dedup();
    assert_eq!(lines.len(), 64);
    assert_eq!(names(home.path()), ["mcp.json", "mcp.lock"]);
}

/// A secret is not written to a directory in which another user could read or replace it, or
/// restore an older version.
#[test]
fn directory_writable_by_other_users_gets_no_secret_file() {
    const OTHER_USER: u32 = 65534;
    let is_root = rustix::process::geteuid().is_root();
    let check = |above: u32, own: u32, owners: [Option<u32>; 2], linked: bool, expected: bool| {
        let home = tempfile::tempdir().unwrap();
        let (upper, lower) = (home.path().join("above"), home.path().join("above/own"));
        fs::create_dir_all(&lower).unwrap();
        for (directory, mode, owner) in [(&lower, own, owners[1]), (&upper, above, owners[0])] {
            std::os::unix::fs::chown(directory, owner.filter(|_| is_root), None).unwrap();
            fs::set_permissions(directory, Permissions::from_mode(mode)).unwrap();
        }
        let link = home.path().join("link");
        symlink(&lower, &link).unwrap();
        let directory = if linked { &link } else { &lower };
        let file = SharedFile::guarded(directory.join("secret"));
        let written = file.update(|_| Ok::<_, ()>(Some(b"secret".to_vec())));
        let about = format!("{above:o} {own:o} {owners:?} {linked}");
        assert_eq!(written.is_ok(), expected, "{about}");
        assert!(expected || names(&lower).is_empty(), "{about}");
    };
    let ours = [None, None];
    for linked in [false, true] {
        check(0o700, 0o700, ours, linked, true);
        check(0o755, 0o755, ours, linked, true);
        check(0o775, 0o700, ours, linked, true);
        check(0o1777, 0o700, ours, linked, true);
        check(0o777, 0o700, ours, linked, false);
        for own in [0o777, 0o1777, 0o770, 0o720, 0o702] {
            check(0o700, own, ours, linked, false);
        }
        if is_root {
            check(0o700, 0o700, [None, Some(OTHER_USER)], linked, false);
            check(0o755, 0o777, [None, Some(OTHER_USER)], linked, false);
            check(0o755, 0o700, [Some(OTHER_USER), None], linked, false);
        }
    }
}

/// Opening a pipe blocks until its other end is open.
#[test]
fn lock_path_that_is_no_regular_file_is_refused() {
    let home = tempfile::tempdir().unwrap();
    let lock = home.path().join("file.lock");
    let check = |about: &str| {
        let file = SharedFile::ours(home.path().join("file"));
        assert!(file.update(|_| Ok::<_, ()>(Some(Vec::new()))).is_err(), "{about}");
        assert!(paths::try_lock(&lock).is_err(), "{about}");
    };
    let remove = || fs::remove_file(&lock).unwrap();
    let mode = rustix::fs::Mode::from(0o600);
    rustix::fs::mknodat(rustix::fs::CWD, &lock, rustix::fs::FileType::Fifo, mode, 0).unwrap();
    check("a pipe");
    remove();
    let _listener = std::os::unix::net::UnixListener::bind(&lock).unwrap();
    check("a socket");
    remove();
    for target in ["/dev/null", "/dev/zero", "nowhere", "file.lock"] {
        symlink(target, &lock).unwrap();
        check(target);
        remove();
    }
    assert!(!home.path().join("nowhere").exists());
    fs::create_dir(&lock).unwrap();
    check("a directory");
}
