// SPDX-License-Identifier: Apache-2.0
//! Leaves word of where AWS-LC was built, for ../build.sh.

use std::{env, fs, path::Path};

fn main() {
    let told = |end: &str| {
        env::vars()
            .find(|(name, _)| name.starts_with("DEP_AWS_LC_") && name.ends_with(end))
            .map(|(_, value)| value)
            .unwrap_or_else(|| panic!("aws-lc-sys tells no {end}"))
    };
    let library = told("_LIBCRYPTO_PATH");
    let word = Path::new(&env::var("PEER_BUILT").expect("PEER_BUILT names a folder"))
        .join("awslc.paths");
    let text = format!("{}\n{}\n", told("_INCLUDE"), library);
    fs::write(word, text).expect("the paths");
    println!("cargo:rerun-if-env-changed=PEER_BUILT");
}
