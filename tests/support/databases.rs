//! Databases in tests: Python's SQLite, and `psql` on the server whose URL is in `DFC_POSTGRES` (see `tests/servers`).

use std::path::Path;
use std::process::Command;

use super::run;

/// What Python's SQLite says to this; statements are separated by `;;`.
pub fn sqlite(folder: &Path, file: &str, sql: &str) -> String {
    let program = "import sqlite3, sys
c = sqlite3.connect(sys.argv[1], timeout=60)
for statement in sys.argv[2].split(';;'):
    for row in c.execute(statement): print('|'.join(str(x) for x in row))
c.commit()";
    let output = run(Command::new("python3").current_dir(folder).args(["-c", program, file, sql]));
    assert_eq!(output.code, 0, "{}", output.stderr);
    output.stdout
}

/// What `psql` says to this, as the server's superuser.
pub fn psql(url: &str, sql: &str) -> String {
    let output = run(Command::new("psql").args([url, "-X", "-q", "-t", "-A", "-v", "ON_ERROR_STOP=1", "-c", sql]));
    assert_eq!(output.code, 0, "{}", output.stderr);
    output.stdout
}

/// The server's URL; `None`, said loudly, where there is none.
pub fn server() -> Option<String> {
    let url = std::env::var("DFC_POSTGRES").ok();
    if url.is_none() {
        assert!(std::env::var_os("CI").is_none(), "DFC_POSTGRES isn't set: PostgreSQL is not tested");
        eprintln!("NOT TESTED: PostgreSQL is missing (DFC_POSTGRES=$(tests/servers/postgres start /tmp/dfc-postgres))");
    }
    url
}
