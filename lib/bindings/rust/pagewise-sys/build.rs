//! Finds libpagewise: in PAGEWISE_LIB_DIR, or where pkg-config says, or in the linker's directories.

use std::{env, process::Command};

fn main() {
    println!("cargo:rerun-if-env-changed=PAGEWISE_LIB_DIR");
    println!("cargo:rustc-link-lib=pagewise");
    if let Ok(directory) = env::var("PAGEWISE_LIB_DIR") {
        println!("cargo:rustc-link-search=native={directory}");
    } else if let Ok(found) = Command::new("pkg-config").args(["--libs-only-L", "libpagewise"]).output() {
        for word in String::from_utf8_lossy(&found.stdout).split_whitespace() {
            println!("cargo:rustc-link-search=native={}", word.trim_start_matches("-L"));
        }
    }
}
