//! The formatter: its style in golden files (`style/NAME.df` becomes `style/NAME.out`); formatting twice is formatting
//! once; tree and comments stay; the style follows from the tokens and not from how they were laid out.

mod common;

use common::{apply, check_format, every_file, files, tree};
use dfc_grammar::ast::Span;
use dfc_grammar::{TokenKind, format, format_range, lex, parse};
use std::fs;

/// Random numbers that are the same everywhere: xorshift64* (Vigna 2016).
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % n
    }
}

#[test]
fn style() {
    let mut wrong = Vec::new();
    let inputs: Vec<_> =
        files("tests/style").into_iter().filter(|file| file.extension().is_some_and(|e| e == "df")).collect();
    assert!(inputs.len() >= 5);
    for file in inputs {
        let new = check_format(&fs::read_to_string(&file).unwrap()).text;
        let golden = file.with_extension("out");
        if std::env::var_os("BLESS").is_some_and(|value| value == "1") {
            fs::write(&golden, &new).unwrap();
        } else if fs::read_to_string(&golden).unwrap_or_default() != new {
            wrong.push(format!("{}\n{new}", golden.display()));
        }
    }
    assert!(wrong.is_empty(), "BLESS=1 rewrites these files; read them before you commit:\n\n{}", wrong.join("\n"));
}

#[test]
fn every_file_of_the_repository() {
    for (_, text) in every_file() {
        check_format(&text);
    }
}

/// A text with other blanks between its tokens: `blank` gives those between two tokens of an item, from those that are
/// there. Blanks beside comments stay, and so do those that separate items.
fn laid_out(text: &str, mut blank: impl FnMut(&str) -> String) -> String {
    let parse = parse(text);
    let mut out = String::new();
    for item in &parse.file.items {
        let (from, to) = (item.start as usize, (item.start + item.len) as usize);
        let kept = text.len() - text[from..].len();
        out.push_str(&text[end_of(&parse, item.start)..kept]);
        let own: Vec<_> =
            parse.tokens.iter().filter(|t| t.span.start as usize >= from && t.span.end as usize <= to).collect();
        for (i, token) in own.iter().enumerate() {
            let beside = |at: Option<usize>| {
                at.and_then(|at| own.get(at)).is_some_and(|t| t.kind.is_trivia() && t.kind != TokenKind::Whitespace)
            };
            if token.kind == TokenKind::Whitespace {
                if beside(i.checked_sub(1)) || beside(Some(i + 1)) {
                    out.push_str(token.text(text));
                } else {
                    out.push_str(&blank(token.text(text)));
                }
            } else {
                out.push_str(token.text(text));
                if own.get(i + 1).is_some_and(|next| !next.kind.is_trivia()) {
                    out.push_str(&blank(""));
                }
            }
        }
    }
    out.push_str(&text[end_of(&parse, u32::MAX)..]);
    out
}

/// Where the last item before this place ends.
fn end_of(parse: &dfc_grammar::Parse, before: u32) -> usize {
    parse.file.items.iter().rfind(|item| item.start < before).map_or(0, |item| item.start + item.len) as usize
}

/// The sound files of the repository, without empty lines inside items (they are the one thing that is kept as written).
fn dense_files() -> Vec<String> {
    let sound = every_file().into_iter().filter(|(_, text)| parse(text).errors.is_empty());
    let dense =
        |text: String| laid_out(&text, |blank| if blank.contains('\n') { "\n".to_owned() } else { blank.to_owned() });
    sound.map(|(_, text)| dense(text.replace("\r\n", "\n"))).collect()
}

#[test]
fn the_style_does_not_depend_on_the_layout() {
    let mut seen = 0;
    for text in dense_files() {
        let once = format(&text).text;
        assert_eq!(tree(&once), tree(&text));
        let squashed = laid_out(&text, |blank| if blank.is_empty() { String::new() } else { " ".to_owned() });
        let blown_up = laid_out(&text, |_| "\n".to_owned());
        for other in [squashed, blown_up] {
            // An item word at the start of a line can begin another item.
            if tree(&other) == tree(&text) {
                seen += 1;
                assert_eq!(check_format(&other).text, once, "laid out as {other:?}");
            }
        }
    }
    assert!(seen > 250, "only {seen} layouts keep their tree");
}

/// Blanks and comments anywhere.
#[test]
fn comments_anywhere() {
    let blanks = [
        " ",
        "\n",
        "\n\n\n",
        " // after\n",
        "\n// above\n",
        "\n\n    // apart\n\n",
        "\t",
        " /// doc\n",
        "\r\n",
        " // a\n// b\n",
    ];
    let mut random = Random(7);
    let mut changed = 0;
    for text in dense_files() {
        for _ in 0..rounds(8) {
            let odds = 1 + random.below(12);
            let other = laid_out(&text, |blank| match random.below(odds) {
                0 => blanks[random.below(blanks.len())].to_owned(),
                _ => blank.to_owned(),
            });
            changed += usize::from(check_format(&other).text != other);
        }
    }
    assert!(changed > 500, "only {changed} texts were formatted");
}

/// Tokens left out, doubled, exchanged or taken from elsewhere, beside comments: most such texts have mistakes.
#[test]
fn mutated_files() {
    let mut random = Random(11);
    let (mut sound, mut broken) = (0, 0);
    for text in dense_files() {
        for _ in 0..rounds(4) {
            let mut pieces: Vec<String> = lex(&text).iter().map(|token| token.text(&text).to_owned()).collect();
            for _ in 0..1 + random.below(3) {
                if pieces.is_empty() {
                    break;
                }
                let (at, other) = (random.below(pieces.len()), random.below(pieces.len()));
                match random.below(5) {
                    0 => drop(pieces.remove(at)),
                    1 => pieces.insert(at, pieces[at].clone()),
                    2 => pieces.swap(at, other),
                    3 => pieces[at] = pieces[other].clone(),
                    _ => pieces.insert(at, ["\n", " // c\n", "\n/// d\n", ",", ";", "  "][random.below(6)].to_owned()),
                }
            }
            let mutated = pieces.concat();
            check_format(&mutated);
            *if parse(&mutated).errors.is_empty() { &mut sound } else { &mut broken } += 1;
        }
    }
    assert!(sound > 200 && broken > 200, "{sound} sound and {broken} broken texts");
}

/// How often a random test repeats itself: `FORMAT_ROUNDS` times more for long runs.
fn rounds(usual: usize) -> usize {
    let times = std::env::var("FORMAT_ROUNDS").ok().and_then(|times| times.parse().ok()).unwrap_or(1);
    usual * times
}

#[test]
fn damaged_items_stay_as_they_are() {
    let broken = "stream  b =  a |> filter( x ==  )\n   |>  take( 1 )";
    let text = format!("param  x:int64\n\n\n\n  {broken}\n\n\nparam   y:int64=1\n");
    let new = check_format(&text).text;
    assert_eq!(new, format!("param x: int64\n\n\n\n  {broken}\n\n\nparam y: int64 = 1\n"));
    assert_eq!(check_format("what is  this\n\n\n").text, "what is  this\n\n\n");
    assert_eq!(check_format("/*  a  */\n\n\n\nparam x:int64").text, "/*  a  */\n\n\n\nparam x: int64\n");
}

#[test]
fn line_ends_and_byte_order_mark_stay() {
    let text =
        "\u{feff}\r\n//! Doc.  \r\n\r\n\r\n\r\nconst q = \"\"\"a\r\nb\"\"\"\r\nrecord R {\r\n a: int64 // one\r\n}";
    let new = "\u{feff}//! Doc.\r\n\r\nconst q = \"\"\"a\r\nb\"\"\"\r\nrecord R {\r\n    a: int64  // one\r\n}\r\n";
    assert_eq!(check_format(text).text, new);
    assert_eq!(check_format("").text, "");
    assert_eq!(check_format("\n \n").text, "");
    assert_eq!(check_format("// a").text, "// a\n");
}

#[test]
fn edits_are_small() {
    let text = "param x: int64 = 1\nstream a = b |> filter(x>1) |> take(2)\nparam y: int64 = 2\n";
    let edits: Vec<_> =
        format(text).edits.into_iter().map(|edit| (edit.span.start, edit.span.end, edit.text)).collect();
    let line = "\n   ".to_owned();
    assert_eq!(edits, [(31, 31, line.clone()), (43, 43, " ".into()), (44, 44, " ".into()), (46, 46, line)]);
}

#[test]
fn a_range_touches_only_its_items() {
    let text = "param  a:int64\n\n\n\nparam  b:int64\n\n\n\nparam  c:int64\n\n\n";
    let at = text.find("b:").unwrap();
    let one = format_range(text, Span::new(at, at));
    assert_eq!(one.text, "param  a:int64\n\n\n\nparam b: int64\n\n\n\nparam  c:int64\n\n\n");
    assert_eq!(apply(text, &one), one.text);
    let two = format_range(text, Span::new(at, text.find("c:").unwrap()));
    assert_eq!(two.text, "param  a:int64\n\n\n\nparam b: int64\n\nparam c: int64\n\n\n");
    assert_eq!(format_range(text, Span::new(0, text.len())), format(text));
}

#[test]
fn no_line_is_longer_than_it_must_be() {
    for (path, text) in every_file() {
        let new = format(&text).text;
        if !parse(&new).errors.is_empty() {
            continue;
        }
        let mut strings = lex(&new).into_iter().filter(|token| token.kind == TokenKind::TripleString);
        for line in new.lines().filter(|line| !line.contains("//") && !line.contains('"')) {
            let excused = line.chars().count() <= 100 || strings.any(|token| token.text(&new).contains(line));
            assert!(excused, "{}: {line}", path.display());
        }
    }
}
