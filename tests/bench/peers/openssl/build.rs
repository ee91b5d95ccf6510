// SPDX-License-Identifier: Apache-2.0
//! Builds OpenSSL and leaves word of where, for ../build.sh.

use std::{env, fs, path::Path};

fn main() {
    let built = openssl_src::Build::new().build();
    let word = Path::new(&env::var("PEER_BUILT").expect("PEER_BUILT names a folder"))
        .join("openssl.paths");
    let text = format!(
        "{}\n{}\n",
        built.include_dir().display(),
        built.lib_dir().join("libcrypto.a").display()
    );
    fs::write(word, text).expect("the paths");
    println!("cargo:rerun-if-env-changed=PEER_BUILT");
}
