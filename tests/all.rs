//! All tests that need the whole of dfc, in one binary. See `README.md` in this folder.

mod support;

mod cases {
    mod audit;
    mod checkpoints;
    mod checkpoints_s3;
    mod cli;
    pub mod codes;
    mod databases;
    mod editors;
    mod examples;
    mod files;
    mod fmt;
    mod functions;
    mod going_on;
    mod hostile;
    mod limits;
    mod lsp;
    mod lsp_actions;
    mod lsp_clients;
    mod lsp_completion;
    mod lsp_features;
    mod lsp_findings;
    mod lsp_mistakes;
    mod lsp_workspace;
    mod memory;
    mod odd;
    mod planted;
    mod reference;
    mod robust;
    mod savepoints;
    mod schemas;
    mod secrets;
    mod state;
    mod stopping;
    mod timeline;
    mod traps;
}
mod crash {
    mod beside;
    mod drill;
    mod kills;
    mod notes;
    mod points;
    mod resume;
    mod spill;
}
mod differential {
    mod duckdb;
    mod tpch;
    mod variants;
}
mod golden {
    mod diagnostics;
    mod failures;
    mod plans;
    mod runs;
    mod syntax;
}
