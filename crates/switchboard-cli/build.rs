//! Links relative relocations in the packed form (DT_RELR) if the C library of this machine supports it.

#![allow(clippy::disallowed_methods, reason = "a build script has no engine to start programs")]

use std::env;
use std::process::Command;

/// The first version of glibc that supports DT_RELR.
const GLIBC: (u32, u32) = (2, 36);

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let is_native = env::var("HOST") == env::var("TARGET");
    let is_gnu = env::var("CARGO_CFG_TARGET_ENV").is_ok_and(|name| name == "gnu");
    if is_native && is_gnu && glibc().is_some_and(|version| version >= GLIBC) {
        println!("cargo:rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
    }
}

/// The version of glibc on this machine, parsed from a text such as `glibc 2.36`.
fn glibc() -> Option<(u32, u32)> {
    let ran = Command::new("getconf").arg("GNU_LIBC_VERSION").output().ok()?;
    let text = String::from_utf8(ran.stdout).ok()?;
    let (major, minor) = text.trim().strip_prefix("glibc ")?.split_once('.')?;
    Some((major.parse().ok()?, minor.split('.').next()?.parse().ok()?))
}
