//! Jobs that nobody tuned anything for: variants of the TPC-H pipelines, drawn by seed, give DuckDB's answers. `DFC_SEED` draws others.

use crate::support::python;

#[test]
fn twenty_variants_drawn_by_seed_give_duckdbs_answers() {
    let data = python::tpch("0.01").display().to_string();
    let seed = std::env::var("DFC_SEED").unwrap_or_else(|_| "1".into());
    python::script("variants.py", &[env!("CARGO_BIN_EXE_dfc"), &data, "--seed", &seed, "--count", "20"]);
}
