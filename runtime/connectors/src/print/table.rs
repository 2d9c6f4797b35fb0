//! A table of texts: columns as wide as their widest value, numbers to the right, no lines but the one under the header.

use arrow_array::Array;
use dfc_batch::{Batch, value_at};
use dfc_ir::{Schema, Type};

/// Widest column, in character cells; longer values are cut.
const MAX_WIDTH: usize = 60;

/// A table under construction.
pub(crate) struct Table {
    names: Vec<String>,
    types: Vec<Type>,
    cells: Vec<Vec<String>>,
}

impl Table {
    /// An empty table with the fields' outside names.
    pub(crate) fn new(schema: &Schema) -> Self {
        Table {
            names: schema.fields.iter().map(|f| one_line(f.external_name())).collect(),
            types: schema.fields.iter().map(|f| f.ty.ty.clone()).collect(),
            cells: Vec::new(),
        }
    }

    /// Adds the rows of a batch.
    pub(crate) fn add(&mut self, batch: &Batch) {
        for row in 0..batch.rows {
            let cells = batch.columns.iter().zip(&self.types).map(|(column, ty)| {
                if column.is_null(row) {
                    "null".into()
                } else {
                    one_line(&dfc_eval::format_value(&value_at(column, ty, row), ty))
                }
            });
            self.cells.push(cells.collect());
        }
    }

    /// The table's text.
    pub(crate) fn render(&self) -> String {
        let mut widths: Vec<usize> = self.names.iter().map(|n| width(n)).collect();
        for row in &self.cells {
            for (widest, cell) in widths.iter_mut().zip(row) {
                *widest = (*widest).max(width(cell));
            }
        }
        let mut out = String::new();
        self.line(&mut out, &self.names, &widths);
        let rule: Vec<String> = widths.iter().map(|w| "-".repeat(*w)).collect();
        self.line(&mut out, &rule, &widths);
        for row in &self.cells {
            self.line(&mut out, row, &widths);
        }
        out
    }

    fn line(&self, out: &mut String, cells: &[String], widths: &[usize]) {
        let start = out.len();
        for (i, (cell, wide)) in cells.iter().zip(widths).enumerate() {
            if i > 0 {
                out.push_str("  ");
            }
            let pad = " ".repeat(wide - width(cell));
            if self.types[i].is_numeric() {
                out.push_str(&pad);
                out.push_str(cell);
            } else {
                out.push_str(cell);
                out.push_str(&pad);
            }
        }
        out.truncate(out[start..].trim_end().len() + start);
        out.push('\n');
    }
}

/// A text on one line, control characters escaped, cut where it is long.
fn one_line(text: &str) -> String {
    let (mut out, mut wide) = (String::new(), 0);
    for c in text.chars() {
        let shown = match c {
            '\n' => "\\n".into(),
            '\r' => "\\r".into(),
            '\t' => "\\t".into(),
            c if c.is_control() => format!("\\u{{{:x}}}", c as u32),
            c => c.to_string(),
        };
        wide += width(&shown);
        if wide >= MAX_WIDTH {
            out.push('…');
            break;
        }
        out += &shown;
    }
    out
}

/// Cells that a text takes on a terminal: two for the wide scripts of East Asia and for pictures, none for combining marks.
fn width(text: &str) -> usize {
    text.chars()
        .map(|c| match c as u32 {
            0x300..=0x36F | 0x200B..=0x200F | 0xFE00..=0xFE0F => 0,
            0x1100..=0x115F
            | 0x2E80..=0x303E
            | 0x3041..=0xA4CF
            | 0xAC00..=0xD7A3
            | 0xF900..=0xFAFF
            | 0xFE30..=0xFE6F => 2,
            0xFF00..=0xFF60 | 0xFFE0..=0xFFE6 | 0x1F300..=0x1F64F | 0x1F900..=0x1F9FF | 0x20000..=0x3FFFD => 2,
            _ => 1,
        })
        .sum()
}
