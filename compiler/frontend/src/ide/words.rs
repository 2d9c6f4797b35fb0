//! The words of the language with what is said of them and what is put in for them: items, types, words of expressions.

/// A word: its text, what is put in for it (with places to fill in), what it is.
pub struct Word {
    pub word: &'static str,
    pub snippet: &'static str,
    pub doc: &'static str,
}

const fn word(word: &'static str, snippet: &'static str, doc: &'static str) -> Word {
    Word { word, snippet, doc }
}

/// The words that items start with.
pub const ITEMS: &[Word] = &[
    word(
        "job",
        "job ${1:name} {\n    $0\n}",
        "The job that this file describes, with its settings. A file without one is a library.",
    ),
    word("param", "param ${1:name}: ${2:string}", "A value that is given from outside: `--set name=value`."),
    word("const", "const ${1:name} = $0", "A value with a name."),
    word(
        "record",
        "record ${1:Name} {\n    ${2:id}: ${3:int64}\n}",
        "The fields of rows, with their types; `T?` may be null.",
    ),
    word("source", "source ${1:name} = $0", "Where rows come from: a connector that reads."),
    word(
        "stream",
        "stream ${1:name} = $0",
        "Rows on their way: a source or a stream, and the operators they pass through.",
    ),
    word("sink", "sink ${1:stream} |> $0", "Where rows go to: a stream, and a connector that writes."),
    word("fn", "fn ${1:name}(${2:x}: ${3:int64}) = $0", "An expression with a name and parameters."),
    word("operator", "operator ${1:name}(${2:x}: row ${3:int64}) -> input {\n    $0\n}", "An operator of one's own."),
    word("use", "use \"$0\"", "Takes in everything that another file declares."),
];

/// The built-in types.
pub const TYPES: &[Word] = &[
    word("bool", "bool", "`true` or `false`."),
    word("int8", "int8", "A whole number from −128 to 127."),
    word("int16", "int16", "A whole number from −32,768 to 32,767."),
    word("int32", "int32", "A whole number from −2,147,483,648 to 2,147,483,647."),
    word("int64", "int64", "A whole number of 64 bits."),
    word("uint8", "uint8", "A whole number from 0 to 255."),
    word("uint16", "uint16", "A whole number from 0 to 65,535."),
    word("uint32", "uint32", "A whole number from 0 to 4,294,967,295."),
    word("uint64", "uint64", "A whole number of 64 bits without a sign."),
    word("float32", "float32", "A binary floating point number of 32 bits."),
    word("float64", "float64", "A binary floating point number of 64 bits."),
    word(
        "decimal",
        "decimal(${1:18}, ${2:2})",
        "`decimal(p, s)`: an exact number of `p` digits (38 at most), `s` of them after the point.",
    ),
    word("string", "string", "Text, UTF-8."),
    word("bytes", "bytes", "Bytes."),
    word("date", "date", "A day of the calendar."),
    word("time", "time", "A time of day, to the microsecond."),
    word("datetime", "datetime", "Date and time as a clock on the wall shows them, without a zone."),
    word("timestamp", "timestamp", "An instant, to the microsecond."),
    word("duration", "duration", "A length of time."),
    word("json", "json", "JSON text, kept as it is written."),
    word("list", "list<$1>", "`list<T>`: values of one type, in order."),
    word("record", "record { $1 }", "`record { name: type, … }`: fields with their types."),
    word("secret", "secret", "A text that is never shown: of a parameter only."),
];

/// The classes that a parameter's type may be.
pub const CLASSES: &[Word] = &[
    word("any", "any", "Any type."),
    word("number", "number", "Any type of numbers."),
    word("integer", "integer", "Any type of whole numbers."),
    word("float", "float", "`float32` or `float64`."),
    word("decimal", "decimal", "Any `decimal(p, s)`."),
    word("text", "text", "`string`."),
    word("temporal", "temporal", "Any type of dates and times."),
    word("ordered", "ordered", "Any type whose values have an order."),
];

/// Words that a value can start with.
pub const VALUES: &[Word] = &[
    word("true", "true", "The truth value true."),
    word("false", "false", "The truth value false."),
    word("null", "null", "No value: of an optional type only."),
    word("not", "not ", "`not x`: true where `x` is false."),
    word(
        "if",
        "if ${1:condition} then ${2:value} else ${3:value}",
        "`if c then a else b`: `a` where `c` is true, else `b`.",
    ),
    word(
        "match",
        "match ${1:value} {\n    ${2:\"a\"} => $3,\n    else => $4,\n}",
        "`match x { \"a\" => 1, else => 0 }`: the value of the first arm that fits.",
    ),
];

/// Words that come behind a value.
pub const INFIX: &[Word] = &[
    word("and", "and ", "`a and b`: true where both are."),
    word("or", "or ", "`a or b`: true where one of both is."),
    word("is null", "is null", "True where the value is null."),
    word("is not null", "is not null", "True where the value is not null."),
    word("in", "in [$1]", "`x in [1, 2]`: true where `x` is one of them."),
    word("not in", "not in [$1]", "`x not in [1, 2]`: true where `x` is none of them."),
    word("between", "between ${1:low} and ${2:high}", "`x between low and high`, both included."),
    word("like", "like \"$1\"", "`x like \"a%\"`: `%` stands for any text, `_` for one character."),
    word("matches", "matches r\"$1\"", "`x matches r\"^a+\"`: a regular expression finds something in `x`."),
    word("as", "as ${1:type}", "`x as T`: converts; a value that doesn't fit is a row error."),
    word("as?", "as? ${1:type}", "`x as? T`: converts; null where a value doesn't fit."),
    word("div", "div ", "`a div b`: division of whole numbers, cut to a whole number."),
];

/// Behind the condition of an `if`.
pub const THEN: Word = word("then", "then ", "`if c then a else b`: what the value is where the condition is true.");

/// Behind the first value of an `if`.
pub const ELSE: Word =
    word("else", "else ", "`if c then a else b`: what the value is where the condition is not true.");

/// What an operator's body declares.
pub const PARTS: &[Word] = &[
    word("state", "state ${1:name}: ${2:int64} = ${3:0} by [${4:key}]", "A value that is kept for each key."),
    word("on row", "on row {\n    $0\n}", "What happens with each row."),
    word("on end", "on end {\n    $0\n}", "What happens for each key when the input has ended."),
];

/// The statements of an operator's body.
pub const STATEMENTS: &[Word] = &[
    word("let", "let ${1:name} = $2;", "A value with a name, to the end of the block."),
    word("emit", "emit { ...row, $1 };", "Gives a row out."),
    word("if", "if $1 {\n    $0\n}", "Does something where a condition is true."),
];

/// Words that stand behind others in an expression, for what is said of them.
pub const OTHERS: &[Word] = &[
    word("then", "then ", "`if c then a else b`"),
    word("else", "else ", "What holds where nothing before does."),
    word("is", "is ", "`x is null`, `x is not null`"),
    word("left", "left.", "The left side of a join or lookup: the rows that come along the chain."),
    word("right", "right.", "The right side of a join or lookup: the other stream or table."),
    word("asc", "asc($1)", "`asc(x, nulls: last)`: from small to large."),
    word("desc", "desc($1)", "`desc(x, nulls: last)`: from large to small."),
];

/// What is said of the blocks of a job's settings. (What is said of a setting stands in the table of settings.)
pub const BLOCKS: &[(&str, &str)] = &[
    ("errors", "How many rows may be rejected, and where they are kept. Without it the first one stops the job."),
    ("checkpoint", "How the state is kept, so that a run that is interrupted goes on where it was."),
    ("restart", "How often a job that failed starts again by itself."),
];

/// What is said of a block of settings.
pub fn block(name: &str) -> &'static str {
    BLOCKS.iter().find(|(block, _)| *block == name).map_or("", |(_, words)| words)
}

/// The word of this text in a table.
pub fn find(table: &'static [Word], text: &str) -> Option<&'static Word> {
    table.iter().find(|word| word.word == text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_type_has_words() {
        for name in crate::globals::TYPE_NAMES.iter().filter(|name| **name != "any") {
            assert!(find(TYPES, name).is_some(), "{name}");
        }
    }

    #[test]
    fn every_class_has_words() {
        for class in CLASSES {
            assert!(dfc_typeck::is_class(class.word), "{}", class.word);
        }
    }

    #[test]
    fn every_block_has_words() {
        for setting in crate::settings::of_block("").iter().filter(|setting| setting.is_block) {
            assert!(!block(setting.name).is_empty(), "{}", setting.name);
        }
    }

    #[test]
    fn every_item_has_words() {
        for name in super::super::cursor::ITEM_WORDS.iter().filter(|name| **name != "native") {
            assert!(find(ITEMS, name).is_some(), "{name}");
        }
    }
}
