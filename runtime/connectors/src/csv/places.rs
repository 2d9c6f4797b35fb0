//! Where the fields of some columns stand, column by column: fields that stand side by side in their rows are taken out of the index
//! together, as they lie in one or two of its cache lines, and read later one column after the other. It may not know what they hold.

use super::index::Index;
use crate::text::blocks::BLOCK;
use crate::text::cells::Column;

/// Fields of a row that are taken out together.
const AT_ONCE: usize = 8;

/// The fields of some columns that follow each other in the file.
#[derive(Default)]
pub(crate) struct Places {
    /// The first of the columns.
    first: usize,
    /// Where a delimiter before each row would stand, if the first column is the file's.
    starts: Vec<u32>,
    /// Where fields end, a column after the other, from the one before the first on (if there is one).
    ends: Vec<u32>,
    /// Number of rows.
    rows: usize,
}

impl Places {
    /// How many of these columns of a file, the first and those that stand behind it one after the other, are taken out together.
    pub(crate) fn together(columns: &[usize]) -> usize {
        let (Some(&first), at_once) = (columns.first(), AT_ONCE - 1) else { return 0 };
        let fits = |&column: &usize| (first..first + at_once).contains(&column);
        columns.iter().take_while(|column| fits(column)).count()
    }

    /// Takes out the fields of the columns from `first` to `last` of a file, of which [`Places::together`] says that they are few
    /// enough: of these rows of the index, or of all.
    pub(crate) fn take(&mut self, index: &Index, first: usize, last: usize, rows: Option<&[u32]>, delimiter: usize) {
        self.first = first;
        self.rows = rows.map_or(index.rows(), <[u32]>::len);
        self.starts.clear();
        if first == 0 {
            let before = |start: &u32| start.wrapping_sub(delimiter as u32);
            match rows {
                Some(rows) => self.starts.extend(rows.iter().map(|&row| before(&index.starts[row as usize]))),
                None => self.starts.extend(index.starts.iter().map(before)),
            }
        }
        let from = first.saturating_sub(1);
        let count = last + 1 - from;
        let room = count * self.rows;
        if self.ends.len() < room {
            self.ends.resize(room, 0);
        }
        let out = &mut self.ends[..room];
        match count {
            1 => copy::<1>(index, from, rows, out),
            2 => copy::<2>(index, from, rows, out),
            3 => copy::<3>(index, from, rows, out),
            4 => copy::<4>(index, from, rows, out),
            5 => copy::<5>(index, from, rows, out),
            6 => copy::<6>(index, from, rows, out),
            7 => copy::<7>(index, from, rows, out),
            _ => copy::<AT_ONCE>(index, from, rows, out),
        }
    }

    /// The fields of one of the columns.
    pub(crate) fn column(&self, column: usize) -> Column<'_> {
        let of = |number: usize| &self.ends[number * self.rows..(number + 1) * self.rows];
        match column.checked_sub(self.first.max(1)) {
            Some(number) => Column { before: of(number), ends: of(number + 1) },
            None => Column { before: &self.starts, ends: of(0) },
        }
    }
}

/// Copies `N` ends of each row, those from the one with this number on; to each of them belong as many places of `out` as there are rows.
fn copy<const N: usize>(index: &Index, from: usize, rows: Option<&[u32]>, out: &mut [u32]) {
    match rows {
        Some(rows) => copy_of::<N>(index, from, rows.len(), |row| rows[row] as usize, out),
        None => copy_of::<N>(index, from, index.rows(), |row| row, out),
    }
}

#[inline(always)]
fn copy_of<const N: usize>(index: &Index, from: usize, count: usize, number: impl Fn(usize) -> usize, out: &mut [u32]) {
    let (all, width) = (&index.ends[..], index.width);
    let mut block = [[0; BLOCK]; N];
    for first in (0..count).step_by(BLOCK) {
        let len = BLOCK.min(count - first);
        for k in 0..len {
            let at = number(first + k) * width + from;
            let ends: &[u32; N] = all[at..].first_chunk().unwrap_or(&[0; N]);
            for (column, end) in block.iter_mut().zip(ends) {
                column[k] = *end;
            }
        }
        for (column, ends) in block.iter().enumerate() {
            let at = column * count + first;
            out[at..at + len].copy_from_slice(&ends[..len]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::index::Ragged;
    use super::*;
    use crate::text::dialect::Dialect;

    /// Columns taken out alone and together, of all rows and of some, stand where the rows' texts have them.
    #[test]
    fn fields_stand_where_they_do_in_their_rows() {
        let cell = |row: usize, column: usize| "x".repeat((row * 7 + column * 3) % 5);
        let (rows, width) = (150, 20);
        let lines = (0..rows).map(|row| (0..width).map(|column| cell(row, column)).collect::<Vec<_>>().join(";;"));
        let text: String = lines.map(|line| line + "\n").collect();
        let dialect = Dialect { delimiter: b";;".to_vec(), quote: None, escape: b'"', comment: None, trim: false };
        let mut index = Index::default();
        index.build(text.as_bytes(), &dialect, width, Ragged::Error);
        assert_eq!(index.rows(), rows);
        let some: Vec<u32> = (0..rows as u32).filter(|row| row % 3 != 1).collect();
        let mut places = Places::default();
        for wanted in
            [vec![0], vec![19], vec![0, 1, 2, 3, 4, 5, 6, 7], vec![3, 5, 9, 10], (1..20).collect(), vec![0, 19]]
        {
            for chosen in [None, Some(&some[..])] {
                let mut left = &wanted[..];
                while !left.is_empty() {
                    let (these, rest) = left.split_at(Places::together(left));
                    left = rest;
                    places.take(&index, these[0], these[these.len() - 1], chosen, 2);
                    for &column in these {
                        let Column { before, ends } = places.column(column);
                        assert_eq!(ends.len(), chosen.map_or(rows, <[u32]>::len));
                        for (k, (before, end)) in before.iter().zip(ends).enumerate() {
                            let row = chosen.map_or(k, |chosen| chosen[k] as usize);
                            let start = before.wrapping_add(2) as usize;
                            assert_eq!(&text[start..*end as usize], cell(row, column), "row {row}, column {column}");
                        }
                    }
                }
            }
        }
    }
}
