//! What other tools call the things of this language, and the operators that are planned but not here yet.
//!
//! Two tables. A name found here gets a message that says what to write; it may not be accepted.

/// Operators of the language that this version doesn't have.
pub const LATER: &[(&str, &str)] = &[
    ("mysql", "read or write files, and load them with the database's own tools"),
    ("sqlserver", "read or write files, and load them with the database's own tools"),
    ("oracle", "read or write files, and load them with the database's own tools"),
    ("hive", "read or write its files with `parquet` or `csv`"),
    ("doris", "write files, and load them with the database's own tools"),
    ("kafka", "read or write files with `jsonl`"),
    ("window", "group by a computed time, as in `aggregate(by: [hour: date_trunc(\"hour\", at)], …)`"),
    ("top", "use `sort(…)` and `take(…)`"),
    ("unnest", "flatten the list before, or take single items with `tags[0]`"),
    ("explode", "flatten the list before, or take single items with `tags[0]`"),
    ("flatten", "flatten the list before, or take single items with `tags[0]`"),
    ("rolling", "group by a computed time, as in `aggregate(by: [hour: date_trunc(\"hour\", at)], …)`"),
    ("parse", "use `json_get`, `split_part` or `regexp_extract` in `derive`"),
    ("rejected", "give `errors { limit: 100, to: \"…\" }` in the job: rejected rows are written to that folder"),
];

const RUNNING: &str = "`aggregate(by: [day], total: sum(x))`, the total of each group (there are no window functions),";

/// Other tools' names of operators: (theirs, ours, what to write).
pub const OPERATORS: &[(&str, &str, &str)] = &[
    ("where", "filter", "`filter(condition)`"),
    ("having", "filter", "`filter(condition)` after `aggregate`"),
    ("map", "derive", "`derive(name: expression)`, or `select(…)` to keep only what is named"),
    ("with_column", "derive", "`derive(name: expression)`"),
    ("mutate", "derive", "`derive(name: expression)`"),
    ("project", "select", "`select(…)`"),
    ("group_by", "aggregate", "`aggregate(by: […], name: count())`"),
    ("groupby", "aggregate", "`aggregate(by: […], name: count())`"),
    ("summarise", "aggregate", "`aggregate(by: […], name: count())`"),
    ("summarize", "aggregate", "`aggregate(by: […], name: count())`"),
    ("order_by", "sort", "`sort(a, desc(b))`"),
    ("orderby", "sort", "`sort(a, desc(b))`"),
    ("limit", "take", "`take(10)`"),
    ("head", "take", "`take(10)`"),
    ("unique", "distinct", "`distinct(by: […])`"),
    ("dedup", "distinct", "`distinct(by: […])`"),
    (
        "qualify",
        "distinct",
        "`distinct(by: [id], order: desc(day))` for the newest row of each group, without window functions,",
    ),
    (
        "row_number",
        "distinct",
        "`distinct(by: [id], order: desc(day))` for the newest row of each group, without window functions,",
    ),
    ("rank", "sort", "`sort(desc(price))` and `take(10)` for the first ones, without window functions,"),
    ("deduplicate", "distinct", "`distinct(by: […])`"),
    ("left_join", "join", "`join(other, on: …, kind: left)`"),
    ("inner_join", "join", "`join(other, on: …)`"),
    ("merge", "join", "`join(other, on: …)`, or `union(a, b)`"),
    ("concat", "union", "`union(a, b)` at the start of a chain"),
    ("assert", "require", "`require(condition, message: \"…\")`"),
    ("json", "jsonl", "`jsonl(…)`, one object a line"),
    ("ndjson", "jsonl", "`jsonl(…)`"),
    ("tsv", "csv", "`csv(…, delimiter: \"\\t\")`"),
    ("stdout", "print", "`print()`"),
    ("console", "print", "`print()`"),
    ("null", "discard", "`discard()`"),
    ("resample", "aggregate", "`aggregate(by: [hour: date_trunc(\"hour\", at)], …)`"),
    ("cumulate", "aggregate", RUNNING),
    ("cumsum", "aggregate", RUNNING),
    ("running_total", "aggregate", RUNNING),
    ("scan", "aggregate", RUNNING),
    ("value_counts", "aggregate", "`aggregate(by: […], name: count())`"),
    (
        "pivot",
        "aggregate",
        "`aggregate(by: [day], paid: sum(price, where: status == \"paid\"))`, one aggregate a column,",
    ),
    (
        "pivot_table",
        "aggregate",
        "`aggregate(by: [day], paid: sum(price, where: status == \"paid\"))`, one aggregate a column,",
    ),
    ("melt", "union", "`union(a, b)` of streams that each `select(…)` one of the columns"),
    ("unpivot", "union", "`union(a, b)` of streams that each `select(…)` one of the columns"),
    ("group", "aggregate", "`aggregate(by: […], name: count())`"),
    ("agg", "aggregate", "`aggregate(by: […], name: count())`"),
    ("reduce", "aggregate", "`aggregate(by: […], name: sum(x))`"),
    ("order", "sort", "`sort(a, desc(b))`"),
    ("query", "filter", "`filter(condition)`"),
    ("sort_values", "sort", "`sort(a, desc(b))`"),
    ("drop_duplicates", "distinct", "`distinct(by: […])`"),
    ("tail", "take", "`sort(desc(a))` and `take(10)`"),
    ("copy", "csv", "the end of a sink, `sink orders |> csv(\"out.csv\")`,"),
    ("export", "csv", "the end of a sink, `sink orders |> csv(\"out.csv\")`,"),
    ("save", "csv", "the end of a sink, `sink orders |> csv(\"out.csv\")`,"),
    ("write", "csv", "the end of a sink, `sink orders |> csv(\"out.csv\")`,"),
    ("into", "csv", "the end of a sink, `sink orders |> csv(\"out.csv\")`,"),
    ("assign", "derive", "`derive(name: expression)`"),
    ("apply", "derive", "`derive(name: expression)`"),
    ("fillna", "derive", "`derive(x: x ?? 0)`"),
    ("dropna", "filter", "`filter(x is not null)`"),
    ("astype", "cast", "`cast(x as int64)`"),
    ("right_join", "join", "`join(other, on: …, kind: right)`"),
    ("full_join", "join", "`join(other, on: …, kind: full)`"),
    ("semi_join", "join", "`join(other, on: …, kind: semi)`"),
    ("anti_join", "join", "`join(other, on: …, kind: anti)`"),
    ("intersect", "join", "`join(other, on: …, kind: semi)`"),
    ("except", "join", "`join(other, on: …, kind: anti)`"),
    ("minus", "join", "`join(other, on: …, kind: anti)`"),
    ("union_all", "union", "`union(a, b)` at the start of a chain"),
    ("append", "union", "`union(a, b)` at the start of a chain"),
    ("read_csv", "csv", "`csv(…)`"),
    ("to_csv", "csv", "`csv(…)`"),
    ("read_json", "jsonl", "`jsonl(…)`, one object a line"),
    ("to_json", "jsonl", "`jsonl(…)`, one object a line"),
    ("read_parquet", "parquet", "`parquet(…)`"),
    ("to_parquet", "parquet", "`parquet(…)`"),
    ("excel", "csv", "`csv(…)`, with the sheet saved as CSV,"),
    ("xlsx", "csv", "`csv(…)`, with the sheet saved as CSV,"),
];

/// Other tools' names of parameters: (theirs, ours where an operator has it).
pub const PARAMETERS: &[(&str, &str)] = &[
    ("sep", "delimiter"),
    ("separator", "delimiter"),
    ("delim", "delimiter"),
    ("fieldDelimiter", "delimiter"),
    ("field_delimiter", "delimiter"),
    ("file", "path"),
    ("filename", "path"),
    ("fileName", "path"),
    ("url", "path"),
    ("has_header", "header"),
    ("skipHeader", "header"),
    ("headers", "header"),
    ("nullFormat", "nulls"),
    ("null_value", "nulls"),
    ("nullValue", "nulls"),
    ("na_values", "nulls"),
    ("charset", "encoding"),
    ("compress", "compression"),
    ("skip_rows", "skip"),
    ("skiprows", "skip"),
    ("writeMode", "mode"),
    ("write_mode", "mode"),
    ("if_exists", "mode"),
    ("column", "schema"),
    ("columns", "schema"),
    ("fields", "schema"),
    ("types", "schema"),
    ("dateFormat", "date_format"),
    ("group_by", "by"),
    ("groupBy", "by"),
    ("keys", "by"),
    ("partition_by", "by"),
    ("order_by", "order"),
    ("orderBy", "order"),
    ("how", "kind"),
    ("type", "kind"),
    ("joinType", "kind"),
    ("using", "on"),
    ("condition", "on"),
    ("key", "on"),
    ("with", "right"),
    ("other", "right"),
    ("limit", "n"),
    ("count", "n"),
    ("select", "take"),
    ("splitPk", "split_by"),
    ("partitionColumn", "split_by"),
    ("increColumn", "increment"),
    ("jdbcUrl", "url"),
    ("primaryKey", "key"),
    ("uniqueKey", "key"),
    ("pollingInterval", "poll"),
];

/// Other tools' names of parameters for which there is something else than a parameter: (theirs, what to do).
pub const ELSEWHERE: &[(&str, &str)] = &[
    ("having", "put a `filter(condition)` behind it"),
    ("where", "put a `filter(condition)` behind it: what a source can leave out is left out at the source"),
    ("splitPk", "leave it out: files are split without it"),
    ("increColumn", "tables are read by an increment, `increment: changed_at`; files as a whole"),
    ("fetchSize", "leave it out: batches have a fixed size"),
    ("batchSize", "leave it out: batches have a fixed size"),
    ("errorLimit", "write `errors { limit: … }` in the job"),
    ("channel", "write `parallelism: …` in the job"),
    ("parallelism", "write `parallelism: …` in the job"),
];

/// Other tools' names of an enumeration's values: (theirs, ours where an operator has it).
pub const VALUES: &[(&str, &str)] = &[
    ("outer", "full"),
    ("full_outer", "full"),
    ("left_outer", "left"),
    ("right_outer", "right"),
    ("left_semi", "semi"),
    ("left_anti", "anti"),
    ("replace", "overwrite"),
    ("truncate", "overwrite"),
    ("error", "fail"),
    ("add", "append"),
    ("utf-8", "utf8"),
    ("latin-1", "latin1"),
    ("iso-8859-1", "latin1"),
    ("gz", "gzip"),
    ("zst", "zstd"),
];

/// What to write for another tool's operator, or for a function that stands where an operator is expected.
pub fn operator(name: &str) -> Option<String> {
    let plain = |name: &str| name.replace('_', "").to_lowercase();
    if let Some((.., write)) = OPERATORS.iter().find(|(theirs, ..)| plain(theirs) == plain(name)) {
        return Some((*write).to_owned());
    }
    let function = dfc_typeck::FunctionTable::standard().get(name)?;
    Some(match function.aggregate {
        true => format!("an aggregate, `aggregate(by: […], x: {name}(…))`"),
        false => format!("a function, `derive(x: {name}(…))`"),
    })
}

/// What stands in for an operator of a later version.
pub fn later(name: &str) -> Option<&'static str> {
    LATER.iter().find(|(operator, _)| *operator == name).map(|(_, instead)| *instead)
}
