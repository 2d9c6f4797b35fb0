//! Near misses: the nearest known name, and what names of other tools are called here.

/// The candidate nearest to `name`, if it is near enough: at most a third of the name's length in edits (insert, delete,
/// replace, swap neighbours), at least one. Letters' case and `_` don't count as edits.
pub fn nearest<'c>(name: &str, candidates: impl IntoIterator<Item = &'c str>) -> Option<&'c str> {
    let plain = fold(name);
    let limit = (plain.len() / 3).max(1);
    let mut best: Option<(usize, &'c str)> = None;
    for candidate in candidates {
        let other = fold(candidate);
        if candidate == name || other.len().abs_diff(plain.len()) > limit {
            continue;
        }
        let distance = distance(&plain, &other);
        // A name of one or two letters is near to everything: only case and `_` may differ then.
        if (plain.len() <= 2 && distance > 0) || distance > limit {
            continue;
        }
        if best.is_none_or(|(least, _)| distance < least) {
            best = Some((distance, candidate));
        }
    }
    best.map(|(_, candidate)| candidate)
}

fn fold(name: &str) -> Vec<char> {
    name.chars().filter(|c| *c != '_').flat_map(char::to_lowercase).take(200).collect()
}

/// Damerau-Levenshtein distance (optimal string alignment).
fn distance(a: &[char], b: &[char]) -> usize {
    let width = b.len() + 1;
    let mut before = vec![0usize; width];
    let mut last: Vec<usize> = (0..width).collect();
    for i in 1..=a.len() {
        let mut row = vec![i; width];
        for j in 1..width {
            let cost = usize::from(a[i - 1] != b[j - 1]);
            row[j] = (last[j] + 1).min(row[j - 1] + 1).min(last[j - 1] + cost);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                row[j] = row[j].min(before[j - 2] + 1);
            }
        }
        before = last;
        last = row;
    }
    last[b.len()]
}

/// What a function of SQL or of another tool is called here: (its name there, what to write here).
pub const FOREIGN_FUNCTIONS: &[(&str, &str)] = &[
    ("len", "length"),
    ("char_length", "length"),
    ("character_length", "length"),
    ("strlen", "length"),
    ("size", "length"),
    ("cardinality", "length"),
    ("substr", "substring"),
    ("mid", "substring"),
    ("slice", "substring"),
    ("ucase", "upper"),
    ("toupper", "upper"),
    ("to_upper", "upper"),
    ("lcase", "lower"),
    ("tolower", "lower"),
    ("to_lower", "lower"),
    ("strip", "trim"),
    ("btrim", "trim"),
    ("instr", "position"),
    ("strpos", "position"),
    ("locate", "position"),
    ("charindex", "position"),
    ("index_of", "position"),
    ("concat_ws", "concat"),
    ("string_concat", "concat"),
    ("startswith", "starts_with"),
    ("endswith", "ends_with"),
    ("split", "split_part"),
    ("regexp_substr", "regexp_extract"),
    ("regexp_match", "regexp_extract"),
    ("regex_replace", "regexp_replace"),
    ("char", "chr"),
    ("ceiling", "ceil"),
    ("truncate", "trunc"),
    ("pow", "power"),
    ("rand", "random_by"),
    ("random", "random_by"),
    ("ifnull", "coalesce"),
    ("nvl", "coalesce"),
    ("getdate", "now"),
    ("current_timestamp", "now"),
    ("current_date", "today"),
    ("curdate", "today"),
    ("sysdate", "now"),
    ("dayofweek", "day_of_week"),
    ("weekday", "day_of_week"),
    ("dayofyear", "day_of_year"),
    ("weekofyear", "week"),
    ("strftime", "format_date"),
    ("date_format", "format_date"),
    ("to_char", "format_date"),
    ("strptime", "parse_datetime"),
    ("str_to_date", "parse_date"),
    ("to_date", "parse_date"),
    ("unix_timestamp", "epoch_seconds"),
    ("from_unixtime", "from_epoch"),
    ("sha2", "sha256"),
    ("hash", "xxhash64"),
    ("base64", "base64_encode"),
    ("to_base64", "base64_encode"),
    ("unbase64", "base64_decode"),
    ("from_base64", "base64_decode"),
    ("json_extract", "json_get"),
    ("get_json_object", "json_text"),
    ("json_value", "json_text"),
    ("average", "avg"),
    ("mean", "avg"),
    ("std", "stddev"),
    ("stddev_samp", "stddev"),
    ("var_samp", "variance"),
    ("group_concat", "string_agg"),
    ("listagg", "string_agg"),
    ("array_agg", "collect"),
    ("collect_list", "collect"),
    ("approx_distinct", "approx_count_distinct"),
    ("countdistinct", "count_distinct"),
    ("every", "bool_and"),
    ("arbitrary", "any_value"),
];

/// What stands for a function that looks at the rows before.
const NO_RUNNING_TOTAL: &str = "`aggregate(by: [day], total: sum(x))` for the total of each group: a function sees its own row only, and there are no window functions";

const LATER: &str = "`date_add(\"day\", 3, day)`: the unit first, then how many";
const BETWEEN: &str = "`date_diff(\"day\", from, to)`: the unit first, then the earlier one";

/// Forms of SQL that are operators here: (the function there, what to write here).
pub const FOREIGN_FORMS: &[(&str, &str)] = &[
    ("cast", "`x as int64`, without `cast`"),
    ("try_cast", "`x as? int64`, without `try_cast`"),
    ("convert", "`x as int64`, without `convert`"),
    ("iff", "`if c then a else b`"),
    ("iif", "`if c then a else b`"),
    ("if", "`if c then a else b`"),
    ("case", "`match x { \"a\" => 1, else => 0 }`"),
    ("decode", "`match x { \"a\" => 1, else => 0 }`"),
    ("to_string", "`x as string`"),
    ("str", "`x as string`"),
    ("to_number", "`x as decimal(18, 2)`"),
    ("toint", "`x as int64`"),
    ("to_int", "`x as int64`"),
    ("int", "`x as int64`"),
    ("float", "`x as float64`"),
    ("is_null", "`x is null`"),
    ("regexp_like", "`x matches r\"…\"`"),
    ("rlike", "`x matches r\"…\"`"),
    ("isna", "`x is null`"),
    ("isnull", "`x is null`; for another value in its place, `x ?? 0`"),
    ("isnotnull", "`x is not null`"),
    ("is_not_null", "`x is not null`"),
    ("notna", "`x is not null`"),
    ("when", "`if c then a else b`"),
    ("otherwise", "`if c then a else b`"),
    ("notnull", "`x is not null`"),
    ("fillna", "`x ?? 0`"),
    ("extract", "`year(day)`, `month(day)`, `day(day)`: each part of a date is a function"),
    ("datepart", "`year(day)`, `month(day)`, `day(day)`: each part of a date is a function"),
    ("date_part", "`year(day)`, `month(day)`, `day(day)`: each part of a date is a function"),
    ("dateadd", LATER),
    ("add_days", LATER),
    ("adddays", LATER),
    ("add_hours", LATER),
    ("add_minutes", LATER),
    ("add_weeks", LATER),
    ("add_years", LATER),
    ("timestampadd", LATER),
    ("datesub", "`date_add(\"day\", -3, day)`: the unit first, and less than zero for earlier"),
    ("date_sub", "`date_add(\"day\", -3, day)`: the unit first, and less than zero for earlier"),
    ("datediff", BETWEEN),
    ("timestampdiff", BETWEEN),
    ("days_between", BETWEEN),
    ("daysbetween", BETWEEN),
    ("months_between", BETWEEN),
    ("sumif", "`sum(x, where: condition)`"),
    ("sum_if", "`sum(x, where: condition)`"),
    ("countif", "`count(where: condition)`"),
    ("count_if", "`count(where: condition)`"),
    (
        "row_number",
        "`distinct(by: [id], order: desc(day))` for the newest row of each group: there are no window functions",
    ),
    ("rank", "`sort(desc(price))` and `take(10)` for the first ones: there are no window functions"),
    ("dense_rank", "`sort(desc(price))` and `take(10)` for the first ones: there are no window functions"),
    ("cumsum", NO_RUNNING_TOTAL),
    ("cum_sum", NO_RUNNING_TOTAL),
    ("cumulative_sum", NO_RUNNING_TOTAL),
    ("running_sum", NO_RUNNING_TOTAL),
    ("running_total", NO_RUNNING_TOTAL),
    ("lag", "it with a `join` of the stream with itself: there are no window functions"),
    ("lead", "it with a `join` of the stream with itself: there are no window functions"),
    ("exists", "`|> join(other, on: …, kind: semi)`: rows that the other stream has too"),
    ("array_contains", "`item in list`"),
    ("has", "`item in list`"),
    ("array_length", "`length(list)`"),
    ("cardinality", "`length(list)`"),
    (
        "secret",
        "it as the default of a parameter, `param password: secret = secret(\"NAME\")`, or in a connector's argument",
    ),
    (
        "secret_file",
        "it as the default of a parameter, `param password: secret = secret_file(\"path\")`, or in a connector's argument",
    ),
    ("env", "`param name: string` and give it with `--set name=…`; a password is `secret(\"NAME\")`"),
    ("getenv", "`param name: string` and give it with `--set name=…`; a password is `secret(\"NAME\")`"),
    ("format", "`f\"{a}-{b}\"`"),
    ("sprintf", "`f\"{a}-{b}\"`"),
    ("regexp_matches", "`x matches r\"…\"`"),
];

/// What a type of SQL or of another tool is called here.
pub const FOREIGN_TYPES: &[(&str, &str)] = &[
    ("int", "int64"),
    ("integer", "int32"),
    ("bigint", "int64"),
    ("smallint", "int16"),
    ("tinyint", "int8"),
    ("long", "int64"),
    ("short", "int16"),
    ("byte", "int8"),
    ("i8", "int8"),
    ("i16", "int16"),
    ("i32", "int32"),
    ("i64", "int64"),
    ("u8", "uint8"),
    ("u16", "uint16"),
    ("u32", "uint32"),
    ("u64", "uint64"),
    ("uint", "uint64"),
    ("float", "float64"),
    ("double", "float64"),
    ("real", "float32"),
    ("f32", "float32"),
    ("f64", "float64"),
    ("number", "decimal(18, 2)"),
    ("numeric", "decimal(18, 2)"),
    ("money", "decimal(18, 2)"),
    ("text", "string"),
    ("varchar", "string"),
    ("char", "string"),
    ("str", "string"),
    ("utf8", "string"),
    ("boolean", "bool"),
    ("binary", "bytes"),
    ("blob", "bytes"),
    ("bytea", "bytes"),
    ("varbinary", "bytes"),
    ("timestamptz", "timestamp"),
    ("instant", "timestamp"),
    ("interval", "duration"),
    ("jsonb", "json"),
    ("array", "list<string>"),
    ("list", "list<string>"),
    ("struct", "record { name: string }"),
    ("object", "json"),
    ("map", "json"),
];

/// The entry for a name, letters' case aside.
pub fn foreign(table: &[(&str, &'static str)], name: &str) -> Option<&'static str> {
    table.iter().find(|(there, _)| there.eq_ignore_ascii_case(name)).map(|(_, here)| *here)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_names_are_found_and_far_ones_are_not() {
        let fields = ["status", "price", "created_at", "id"];
        assert_eq!(nearest("statsu", fields), Some("status"));
        assert_eq!(nearest("createdAt", fields), Some("created_at"));
        assert_eq!(nearest("prise", fields), Some("price"));
        assert_eq!(nearest("ID", fields), Some("id"));
        assert_eq!(nearest("ix", fields), None);
        assert_eq!(nearest("country", fields), None);
        assert_eq!(nearest("金额", ["金额x", "数量"]), None);
    }

    #[test]
    fn distances_count_swaps_once() {
        let d = |a: &str, b: &str| distance(&fold(a), &fold(b));
        assert_eq!(d("abcd", "abdc"), 1);
        assert_eq!(d("abcd", "abcd"), 0);
        assert_eq!(d("", "abc"), 3);
        assert_eq!(d("kitten", "sitting"), 3);
    }

    #[test]
    fn foreign_names_lead_home() {
        assert_eq!(foreign(FOREIGN_FUNCTIONS, "SUBSTR"), Some("substring"));
        assert_eq!(foreign(FOREIGN_TYPES, "varchar"), Some("string"));
        assert_eq!(foreign(FOREIGN_TYPES, "order"), None);
    }
}
