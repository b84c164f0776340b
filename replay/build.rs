//! Lists `variants/*.toml`, so that a new kernel is one new file and no line of Rust.

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
    fs::write(out.join("embedded_variants.rs"), code)
}
