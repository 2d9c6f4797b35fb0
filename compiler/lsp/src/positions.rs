//! Lines and columns of a text, counted as the client counts: bytes, or units of UTF-16 or UTF-32.
//!
//! A position that is not in the text is taken to the nearest that is: past a line's end to its end, past the last line to
//! the end of the text, inside a character to its start.

use dfc_compiler::ide::TextRange;
use ls_types::{Position, PositionEncodingKind, Range};

/// How columns are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encoding {
    /// Bytes.
    Utf8,
    /// Units of UTF-16: what every client can.
    Utf16,
    /// Characters.
    Utf32,
}

impl Encoding {
    /// The best of those that a client offers.
    pub fn choose(offered: &[PositionEncodingKind]) -> Encoding {
        match offered {
            offered if offered.contains(&PositionEncodingKind::UTF8) => Encoding::Utf8,
            offered if offered.contains(&PositionEncodingKind::UTF16) || offered.is_empty() => Encoding::Utf16,
            offered if offered.contains(&PositionEncodingKind::UTF32) => Encoding::Utf32,
            _ => Encoding::Utf16,
        }
    }

    /// Its name in the protocol.
    pub fn kind(self) -> PositionEncodingKind {
        match self {
            Encoding::Utf8 => PositionEncodingKind::UTF8,
            Encoding::Utf16 => PositionEncodingKind::UTF16,
            Encoding::Utf32 => PositionEncodingKind::UTF32,
        }
    }

    /// The length of a text in its units.
    pub fn len(self, text: &str) -> usize {
        match self {
            Encoding::Utf8 => text.len(),
            _ if text.is_ascii() => text.len(),
            Encoding::Utf16 => text.chars().map(char::len_utf16).sum(),
            Encoding::Utf32 => text.chars().count(),
        }
    }
}

/// A text that knows its lines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Text {
    /// The text.
    pub text: std::sync::Arc<str>,
    /// Where each line starts.
    starts: Vec<usize>,
}

impl Text {
    /// Counts the lines of a text. A line ends with `\n`, `\r\n` or `\r`.
    pub fn new(text: impl Into<std::sync::Arc<str>>) -> Text {
        let text = text.into();
        let bytes = text.as_bytes();
        let mut starts = vec![0];
        for (at, byte) in bytes.iter().enumerate() {
            if *byte == b'\n' || (*byte == b'\r' && bytes.get(at + 1) != Some(&b'\n')) {
                starts.push(at + 1);
            }
        }
        Text { text, starts }
    }

    /// How many lines there are; an empty text has one.
    pub fn lines(&self) -> usize {
        self.starts.len()
    }

    /// The line of a byte, from 0.
    pub fn line_of(&self, offset: usize) -> usize {
        self.starts.partition_point(|start| *start <= offset).saturating_sub(1)
    }

    /// The bytes of a line, its end left out.
    pub fn line(&self, line: usize) -> TextRange {
        let Some(&start) = self.starts.get(line) else { return TextRange::empty(self.text.len()) };
        let end = self.starts.get(line + 1).copied().unwrap_or(self.text.len());
        let content = self.text[start..end].trim_end_matches(['\n', '\r']).len();
        TextRange::new(start, start + content)
    }

    /// The position of a byte.
    pub fn position(&self, offset: usize, encoding: Encoding) -> Position {
        let offset = self.text.floor_char_boundary(offset);
        let line = self.line_of(offset);
        let start = self.starts[line];
        // Between `\r` and `\n` there is nothing: the position is the line's end.
        let end = offset.min(self.line(line).end).max(start);
        Position::new(line as u32, encoding.len(&self.text[start..end]) as u32)
    }

    /// The byte of a position.
    pub fn offset(&self, position: Position, encoding: Encoding) -> usize {
        let line = position.line as usize;
        if line >= self.lines() {
            return self.text.len();
        }
        let TextRange { start, end } = self.line(line);
        let content = &self.text[start..end];
        let column = position.character as usize;
        if encoding == Encoding::Utf8 || content.is_ascii() {
            return self.text.floor_char_boundary(start + column.min(content.len()));
        }
        let mut units = 0;
        for (at, c) in content.char_indices() {
            units += if encoding == Encoding::Utf16 { c.len_utf16() } else { 1 };
            if units > column {
                return start + at;
            }
        }
        end
    }

    /// The range of bytes.
    pub fn range(&self, range: TextRange, encoding: Encoding) -> Range {
        Range::new(self.position(range.start, encoding), self.position(range.end, encoding))
    }

    /// The bytes of a range; one that ends before it starts is empty.
    pub fn bytes(&self, range: Range, encoding: Encoding) -> TextRange {
        let start = self.offset(range.start, encoding);
        TextRange::new(start, self.offset(range.end, encoding).max(start))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_boundary_goes_there_and_back() {
        let text = Text::new("a\n金额😀x\r\nb\rc\n");
        for encoding in [Encoding::Utf8, Encoding::Utf16, Encoding::Utf32] {
            for (offset, _) in text.text.char_indices() {
                let inside_an_end = text.text[..offset].ends_with('\r') && text.text[offset..].starts_with('\n');
                let back = text.offset(text.position(offset, encoding), encoding);
                assert_eq!(back, if inside_an_end { offset - 1 } else { offset }, "{offset} {encoding:?}");
            }
        }
        assert_eq!(text.position(text.text.len(), Encoding::Utf16), Position::new(4, 0));
    }

    #[test]
    fn what_is_not_in_the_text_is_taken_to_what_is() {
        let text = Text::new("x😀y\nz");
        let at = |line, character| text.offset(Position::new(line, character), Encoding::Utf16);
        // Between the two halves of a pair, past a line's end, past the last line.
        assert_eq!((at(0, 2), at(0, 3), at(0, 99), at(1, u32::MAX), at(7, 0)), (1, 5, 6, 8, 8));
        assert_eq!(
            text.bytes(Range::new(Position::new(1, 0), Position::new(0, 0)), Encoding::Utf16),
            TextRange::empty(7)
        );
    }

    #[test]
    fn the_best_offered_encoding_is_taken() {
        use PositionEncodingKind as Kind;
        assert_eq!(Encoding::choose(&[]), Encoding::Utf16);
        assert_eq!(Encoding::choose(&[Kind::UTF16, Kind::UTF8]), Encoding::Utf8);
        assert_eq!(Encoding::choose(&[Kind::UTF32]), Encoding::Utf32);
        assert_eq!(Encoding::choose(&[Kind::new("utf-7")]), Encoding::Utf16);
    }
}
