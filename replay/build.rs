//! Lists `variants/*.toml`, so that a new kernel is one new file and no line of Rust; and names the code's version by
//! its content, so that results of other code are not taken for results of this one.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program for people to look at")]

use std::fmt::Write as _;
use std::path::PathBuf;
use std::{env, fs, io};

fn main() -> io::Result<()> {
    let folder = PathBuf::from(env::var("CARGO_MANIFEST_DIR").map_err(io::Error::other)?).join("variants");
    println!("cargo::rerun-if-changed={}", folder.display());
    let mut names = Vec::new();
    for entry in fs::read_dir(&folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|e| e == "toml") {
            names.extend(path.file_name().and_then(|n| n.to_str()).map(str::to_owned));
        }
    }
    names.sort();
    let mut code =
        String::from("/// File name and text of each built-in variant.\nstatic EMBEDDED: &[(&str, &str)] = &[\n");
    for name in names {
        let full = folder.join(&name);
        writeln!(code, "    ({name:?}, include_str!({full:?})),").map_err(io::Error::other)?;
    }
    code.push_str("];\n");
    let out = PathBuf::from(env::var("OUT_DIR").map_err(io::Error::other)?);
    fs::write(out.join("embedded_variants.rs"), code)?;

    println!("cargo::rerun-if-changed=src");
    let mut files = Vec::new();
    list(&PathBuf::from("src"), &mut files)?;
    files.sort();
    let mut hash = FNV_OFFSET;
    for file in files {
        for byte in file.to_string_lossy().bytes().chain([0]).chain(fs::read(&file)?) {
            hash = (hash ^ u64::from(byte)).wrapping_mul(FNV_PRIME);
        }
    }
    println!("cargo::rustc-env=KREPLAY_CODE_HASH={hash:016x}");
    Ok(())
}

// FNV-1a, 64 bits: no build dependency, and it need not withstand attacks.
const FNV_OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
const FNV_PRIME: u64 = 0x0000_0100_0000_01b3;

fn list(folder: &PathBuf, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            list(&path, files)?;
        } else if path.extension().is_some_and(|e| e == "rs") {
            files.push(path);
        }
    }
    Ok(())
}
