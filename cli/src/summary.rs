//! Numbers as people read them, and the summary at the end of a run.

use std::fmt::Write;
use std::time::Duration;

use dfc_engine::Summary;

/// `1234567` → `1,234,567`
pub fn count(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// `1 row`, `2 rows`
pub fn rows(n: u64) -> String {
    format!("{} row{}", count(n), if n == 1 { "" } else { "s" })
}

/// Bytes in units of 1000.
pub fn bytes(n: u64) -> String {
    const UNITS: [&str; 5] = ["kB", "MB", "GB", "TB", "PB"];
    if n < 1000 {
        return format!("{n} B");
    }
    let mut value = n as f64 / 1000.0;
    let mut unit = 0;
    while value >= 999.95 && unit + 1 < UNITS.len() {
        value /= 1000.0;
        unit += 1;
    }
    format!("{value:.1} {}", UNITS[unit])
}

/// `12 ms`, `3.42 s`, `5 min 03 s`
pub fn duration(d: Duration) -> String {
    let seconds = d.as_secs_f64();
    if seconds < 0.001 {
        format!("{} µs", d.as_micros())
    } else if seconds < 1.0 {
        format!("{} ms", d.as_millis())
    } else if seconds < 60.0 {
        format!("{seconds:.2} s")
    } else {
        format!("{} min {:02} s", d.as_secs() / 60, d.as_secs() % 60)
    }
}

/// The lines that end a run.
pub fn text(job: &str, summary: &Summary) -> String {
    let mut out = String::new();
    // Writing to a string does not fail.
    let _ = writeln!(out, "{job}: done in {}", duration(summary.elapsed));
    let rate = summary.bytes_in as f64 / summary.elapsed.as_secs_f64().max(1e-6);
    let rate = if summary.bytes_in > 0 {
        format!(", {} ({}/s)", bytes(summary.bytes_in), bytes(rate as u64))
    } else {
        String::new()
    };
    let _ = writeln!(out, "  read      {}{rate}", rows(summary.rows_in));
    if summary.rejected > 0 {
        let kept = match &summary.rejects {
            Some(path) => format!(", see {}", path.display()),
            None => ", not kept (`errors { to: … }` keeps them)".to_owned(),
        };
        let _ = writeln!(out, "  rejected  {}{kept}", rows(summary.rejected));
    }
    for sink in &summary.sinks {
        let written = &sink.written;
        let size = if written.bytes > 0 { format!(", {}", bytes(written.bytes)) } else { String::new() };
        let target = written.target.as_ref().map_or(String::new(), |target| format!(" to {target}"));
        let _ = writeln!(out, "  wrote     {}{size}{target}", rows(written.rows));
    }
    out
}

/// A table of what each operator did, for `run -v`.
pub fn operators(summary: &Summary) -> String {
    let mut out = String::new();
    let width = summary.operators.iter().map(|o| o.operator.chars().count()).max().unwrap_or(0).max(8);
    let _ = writeln!(
        out,
        "  {:>5} {:width$} {:>5} {:>14} {:>14} {:>10} {:>10}",
        "stage", "operator", "tasks", "rows in", "rows out", "busy", "closed at"
    );
    for operator in &summary.operators {
        let closed = operator.closed.map_or(String::from("-"), duration);
        let _ = writeln!(
            out,
            "  {:>5} {:width$} {:>5} {:>14} {:>14} {:>10} {:>10}",
            operator.stage,
            operator.operator,
            operator.tasks,
            count(operator.rows_in),
            count(operator.rows_out),
            duration(operator.busy),
            closed
        );
    }
    for operator in &summary.operators {
        if let Some(note) = &operator.note {
            let _ = writeln!(out, "  {}: {note}", operator.operator);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_well() {
        assert_eq!(count(0), "0");
        assert_eq!(count(1_234_567), "1,234,567");
        assert_eq!(bytes(999), "999 B");
        assert_eq!(bytes(1_000), "1.0 kB");
        assert_eq!(bytes(999_999), "1.0 MB");
        assert_eq!(bytes(765_864_690), "765.9 MB");
        assert_eq!(rows(1), "1 row");
        assert_eq!(duration(Duration::from_millis(12)), "12 ms");
        assert_eq!(duration(Duration::from_secs(303)), "5 min 03 s");
    }
}
