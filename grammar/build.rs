//! Generates the parser from `src/df.lalrpop`.

fn main() {
    println!("cargo:rerun-if-changed=src/df.lalrpop");
    if let Err(error) = lalrpop::process_src() {
        eprintln!("{error}");
        std::process::exit(1);
    }
}
