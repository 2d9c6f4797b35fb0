//! Walks over the text of one JSON object (RFC 8259): its keys and the texts of their values, checked but not converted, so that
//! numbers stay exact. It may not know types.

/// How deep arrays and objects may be nested.
const MAX_DEPTH: usize = 128;

/// Why a text is no JSON object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NotJson {
    /// Byte in the line.
    pub at: usize,
    /// What is wrong there.
    pub why: &'static str,
}

/// Calls `member` for each key and value of the object that `line` must be. Keys and values come as they are written, keys with quotes.
///
/// # Errors
/// Where the text stops being an object.
pub(crate) fn object<'a>(line: &'a str, mut member: impl FnMut(&'a str, &'a str)) -> Result<(), NotJson> {
    let mut scan = Scan { bytes: line.as_bytes(), at: 0 };
    scan.blanks();
    scan.expect(b'{', "an object `{…}` is expected in each line")?;
    scan.blanks();
    if !scan.take(b'}') {
        loop {
            scan.blanks();
            let key = scan.at;
            scan.string()?;
            let key = &line[key..scan.at];
            scan.blanks();
            scan.expect(b':', "a colon is expected after a key")?;
            scan.blanks();
            let value = scan.at;
            scan.value(1)?;
            member(key, &line[value..scan.at]);
            scan.blanks();
            if scan.take(b'}') {
                break;
            }
            scan.expect(b',', "a comma or `}` is expected")?;
        }
    }
    scan.blanks();
    if scan.at == line.len() {
        Ok(())
    } else {
        Err(scan.fail("something follows the object; one object a line is expected"))
    }
}

/// Calls `item` for each item of the array that `text` must be, as it is written.
///
/// # Errors
/// Where the text stops being an array.
pub(crate) fn array<'a>(text: &'a str, mut item: impl FnMut(&'a str)) -> Result<(), NotJson> {
    let mut scan = Scan { bytes: text.as_bytes(), at: 0 };
    scan.all(b']', |scan| {
        let start = scan.at;
        scan.value(1)?;
        item(&text[start..scan.at]);
        Ok(())
    })
}

/// Behind the value that stands there, in so many arrays and objects, if one does.
pub(crate) fn value_end(bytes: &[u8], at: usize, depth: usize) -> Option<usize> {
    let mut scan = Scan { bytes, at };
    scan.value(depth).ok().map(|()| scan.at)
}

struct Scan<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Scan<'_> {
    fn fail(&self, why: &'static str) -> NotJson {
        NotJson { at: self.at, why }
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn take(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    fn expect(&mut self, byte: u8, why: &'static str) -> Result<(), NotJson> {
        if self.take(byte) { Ok(()) } else { Err(self.fail(why)) }
    }

    fn blanks(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn value(&mut self, depth: usize) -> Result<(), NotJson> {
        match self.peek() {
            Some(b'"') => self.string(),
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(b'{' | b'[') if depth >= MAX_DEPTH => Err(self.fail("more than 128 levels of arrays and objects")),
            Some(b'[') => self.all(b']', |scan| scan.value(depth + 1)),
            Some(b'{') => self.all(b'}', |scan| {
                scan.string()?;
                scan.blanks();
                scan.expect(b':', "a colon is expected after a key")?;
                scan.blanks();
                scan.value(depth + 1)
            }),
            _ => {
                let word =
                    ["true", "false", "null"].into_iter().find(|w| self.bytes[self.at..].starts_with(w.as_bytes()));
                self.at += word.map_or(0, str::len);
                word.map(|_| ()).ok_or_else(|| self.fail("a value is expected"))
            }
        }
    }

    fn all(&mut self, close: u8, mut part: impl FnMut(&mut Self) -> Result<(), NotJson>) -> Result<(), NotJson> {
        self.at += 1;
        self.blanks();
        if self.take(close) {
            return Ok(());
        }
        loop {
            self.blanks();
            part(self)?;
            self.blanks();
            if self.take(close) {
                return Ok(());
            }
            self.expect(b',', "a comma or a closing bracket is expected")?;
        }
    }

    fn string(&mut self) -> Result<(), NotJson> {
        self.expect(b'"', "a string is expected")?;
        loop {
            self.at = dfc_eval::special_in_string(self.bytes, self.at).unwrap_or(self.bytes.len());
            match self.peek() {
                None => return Err(self.fail("a string has no end")),
                Some(b'"') => {
                    self.at += 1;
                    return Ok(());
                }
                Some(b'\\') => match self.bytes.get(self.at + 1) {
                    Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => self.at += 2,
                    Some(b'u')
                        if self
                            .bytes
                            .get(self.at + 2..self.at + 6)
                            .is_some_and(|d| d.iter().all(u8::is_ascii_hexdigit)) =>
                    {
                        self.at += 6;
                    }
                    _ => return Err(self.fail("an unknown escape in a string")),
                },
                Some(_) => {
                    return Err(self.fail("a control character in a string, where `\\n`, `\\t` or `\\u…` is expected"));
                }
            }
        }
    }

    fn number(&mut self) -> Result<(), NotJson> {
        self.take(b'-');
        if !self.take(b'0') {
            self.digits()?;
        }
        if self.take(b'.') {
            self.digits()?;
        }
        if self.take(b'e') || self.take(b'E') {
            let _ = self.take(b'+') || self.take(b'-');
            self.digits()?;
        }
        Ok(())
    }

    fn digits(&mut self) -> Result<(), NotJson> {
        let start = self.at;
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            self.at += 1;
        }
        if self.at > start { Ok(()) } else { Err(self.fail("a digit is expected")) }
    }
}
