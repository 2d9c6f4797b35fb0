//! The syntax tree of one `.df` file.
//!
//! Plain data with byte spans. Every span inside an item is **relative to the item's first byte**
//! ([`Item::start`]), so that a change elsewhere in the file leaves an item's tree equal to what it was: the
//! compiler's queries work per item and compare trees. [`Span::shift`] gives the place in the file.
//!
//! The tree may not know what a name means: `count` may be a field, a function or a stream. Resolving is the
//! compiler's.

use std::sync::Arc;

/// A half-open byte range. Inside an item: relative to the item's start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Span {
    /// First byte.
    pub start: u32,
    /// One past the last byte.
    pub end: u32,
}

impl Span {
    /// A span from `start` to `end`, in bytes.
    pub fn new(start: usize, end: usize) -> Self {
        Span { start: start as u32, end: end as u32 }
    }

    /// The same range `by` bytes further on: from item-relative to file-absolute.
    pub fn shift(self, by: u32) -> Self {
        Span { start: self.start + by, end: self.end + by }
    }

    /// The smallest range that covers both.
    pub fn to(self, other: Span) -> Self {
        Span { start: self.start.min(other.start), end: self.end.max(other.end) }
    }
}

/// A name as written, backticks removed.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Ident {
    /// The name's text without backticks.
    pub text: String,
    /// Where it stands (backticks included).
    pub span: Span,
}

/// A whole file: its documentation (`//!` lines joined) and its items in source order.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct File {
    /// Text of the `//!` lines, joined by newlines.
    pub doc: Option<String>,
    /// Every sound item, in source order. Broken ones are left out; their errors are in `Parse::errors`.
    pub items: Vec<Item>,
}

/// One top-level declaration.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Item {
    /// Byte offset in the file of the item's first token (its doc comment, if it has one).
    pub start: u32,
    /// Length in bytes up to the end of its last token.
    pub len: u32,
    /// Text of the `///` lines above it, joined by newlines.
    pub doc: Option<String>,
    /// What it declares. Spans inside are relative to `start`.
    pub kind: Arc<ItemKind>,
}

/// What an item declares.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum ItemKind {
    /// `job name { … }`
    Job(Job),
    /// `param name: type = default`
    Param(Param),
    /// `const name: type = value`
    Const(Const),
    /// `record Name { … }`
    Record(Record),
    /// `source name = connector(…)`
    Source(Source),
    /// `stream name = chain`
    Stream(Stream),
    /// `sink chain |> connector(…)` or `sink { … }`
    Sink(Sink),
    /// `fn name(params) = expr`
    Fn(FnDecl),
    /// `operator name(params) -> output { state … on row { … } }`
    Operator(OperatorDecl),
    /// `use "path.df"`
    Use(Use),
    /// `native source|shuffle|sink|fn|agg name(params) -> …` (the standard library only)
    Native(Native),
}

/// `job orders { parallelism: 4  checkpoint { interval: 30s } }`
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Job {
    /// The job's name.
    pub name: Ident,
    /// Its settings, nested blocks included.
    pub settings: Vec<Setting>,
}

/// One `name: value` or `name { … }` of a settings block.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Setting {
    /// Its name.
    pub name: Ident,
    /// Its value.
    pub value: SettingValue,
    /// The whole setting.
    pub span: Span,
}

/// A setting is a value or a block of settings.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum SettingValue {
    /// `name: expr`
    Expr(Expr),
    /// `name { … }`
    Block(Vec<Setting>),
}

/// `param since: date = @1995-01-01`
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Param {
    /// Its name.
    pub name: Ident,
    /// Its declared type.
    pub ty: TypeExpr,
    /// Its default, if any.
    pub default: Option<Expr>,
}

/// `const vat: decimal(4, 2) = 0.19` (the type may be left out)
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Const {
    /// Its name.
    pub name: Ident,
    /// Its declared type, if written.
    pub ty: Option<TypeExpr>,
    /// Its value.
    pub value: Expr,
}

/// `record Order { id: int64, … }`
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Record {
    /// Its name.
    pub name: Ident,
    /// Its fields.
    pub fields: Vec<FieldDecl>,
}

/// `created_at: datetime = "Created At"` inside a record.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct FieldDecl {
    /// Documentation above it.
    pub doc: Option<String>,
    /// The field's name.
    pub name: Ident,
    /// Its type.
    pub ty: TypeExpr,
    /// The name it has outside, where that differs, with its span.
    pub external: Option<(String, Span)>,
    /// The whole declaration.
    pub span: Span,
}

/// `source orders = csv(…)`
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Source {
    /// Its name.
    pub name: Ident,
    /// The connector with its arguments (a chain with links is parsed, and refused by the compiler).
    pub chain: Chain,
}

/// `stream paid = orders |> filter(…)`
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Stream {
    /// Its name.
    pub name: Ident,
    /// What it is.
    pub chain: Chain,
}

/// `sink …`: one chain, or a block of chains.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Sink {
    /// `true` for the block form.
    pub block: bool,
    /// The chains; the last link of each is the sink's connector.
    pub chains: Vec<Chain>,
}

/// `head |> link(…) |> link(…)`
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Chain {
    /// A stream's name, or a call: `union(a, b)`, `rejected(s)`, a connector.
    pub head: Box<Expr>,
    /// The operators it passes through, in order.
    pub links: Vec<Call>,
    /// The whole chain.
    pub span: Span,
}

/// `name(args)`; parentheses may be empty. A link written without parentheses is a syntax error.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Call {
    /// Operator or function name.
    pub name: Ident,
    /// Its arguments in source order.
    pub args: Vec<Arg>,
    /// From the name to the closing parenthesis.
    pub span: Span,
}

/// One argument, `label: value` or `value`. Also an element of a list literal (`by: [day: date(at), country]`).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Arg {
    /// Its label, if it has one.
    pub label: Option<Ident>,
    /// Its value.
    pub value: Expr,
    /// The whole argument.
    pub span: Span,
}

/// `fn net(price: decimal(15, 2), discount: decimal(4, 2)?) = price * (1 - (discount ?? 0))`
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct FnDecl {
    /// Its name.
    pub name: Ident,
    /// Its parameters.
    pub params: Vec<DeclParam>,
    /// The declared result type `-> T`, if written.
    pub result: Option<TypeExpr>,
    /// The body, after `=`.
    pub body: Expr,
}

/// A user's operator.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct OperatorDecl {
    /// Its name.
    pub name: Ident,
    /// Its parameters.
    pub params: Vec<DeclParam>,
    /// Its output rule after `->`.
    pub output: OutputRule,
    /// `state name: type = init by [keys]`, in order.
    pub states: Vec<StateDecl>,
    /// `on row { … }` and `on end { … }`, in order.
    pub handlers: Vec<Handler>,
}

/// `state total: decimal(38, 2) = 0 by [key]`
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct StateDecl {
    /// Its name.
    pub name: Ident,
    /// Its type.
    pub ty: TypeExpr,
    /// Its first value.
    pub init: Expr,
    /// The keys it is kept by.
    pub by: Vec<Ident>,
    /// The whole declaration.
    pub span: Span,
}

/// `on row { … }` or `on end { … }`
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Handler {
    /// `row` or `end` as written (anything else is refused by the compiler).
    pub event: Ident,
    /// Its statements.
    pub body: Vec<Stmt>,
}

/// A statement of an operator's body.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Stmt {
    /// `let x = e;`
    Let(Ident, Expr),
    /// `x = e;`
    Assign(Ident, Expr),
    /// `emit e;`
    Emit(Expr, Span),
    /// `if c { … } else { … }` (an `else if` is a nested `If`)
    If(Expr, Vec<Stmt>, Vec<Stmt>),
}

/// A declared parameter of a function, an operator or a native declaration.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct DeclParam {
    /// Documentation above it.
    pub doc: Option<String>,
    /// Written with `...` before it: takes any number of arguments.
    pub variadic: bool,
    /// Its name.
    pub name: Ident,
    /// What it takes.
    pub kind: ParamKind,
    /// Its default, if any.
    pub default: Option<Expr>,
    /// `range 1..64`: inclusive bounds.
    pub range: Option<(Expr, Expr)>,
    /// The whole parameter.
    pub span: Span,
}

/// What kind of argument a parameter takes.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum ParamKind {
    /// A plain type: a constant.
    Const(TypeExpr),
    /// `row T`: an expression for each row. `row any` has the type `any`.
    Row(TypeExpr),
    /// `agg T`: an aggregate expression.
    Agg(TypeExpr),
    /// `pair T`: an expression over two sides.
    Pair(TypeExpr),
    /// `utf8 | gbk | latin1`: one of these names.
    Enum(Vec<Ident>),
    /// A bare kind: `stream`, `source`, `field`, `fields`, `type`, `order` …, resolved by the compiler. Kept apart from
    /// [`ParamKind::Const`] only where a keyword makes it certain; a plain name parses as `Const(TypeExpr::Name)`.
    Bare(Ident),
}

/// The output of an operator, as declared after `->`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct OutputRule {
    /// Terms with their signs, in order: `input + fields`, `by + aggs`, `schema`, `input + { total: decimal(38,2) }`.
    pub terms: Vec<(Sign, OutputTerm)>,
    /// The whole rule.
    pub span: Span,
}

/// `+` or `-` before a term (the first term has `Plus`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Sign {
    /// Adds the term's fields.
    Plus,
    /// Removes them.
    Minus,
}

/// One term of an output rule.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum OutputTerm {
    /// A name: `input`, a parameter, or (after `rule`) a rule in the compiler.
    Name(Ident),
    /// `rule join`: named in the compiler.
    Rule(Ident),
    /// `{ total: decimal(38, 2) }`
    Fields(Vec<FieldDecl>),
}

/// `use "path.df"`
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Use {
    /// The path as written, escapes resolved.
    pub path: String,
    /// Where it stands.
    pub span: Span,
}

/// A declaration of the standard library: the body is in Rust.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Native {
    /// `source`, `shuffle`, `sink`, `fn` or `agg`.
    pub role: NativeRole,
    /// Its name. Functions may be declared several times with different parameters (overloads).
    pub name: Ident,
    /// `<T: number>`: type variables with their class (`any number integer float decimal text temporal ordered`).
    pub generics: Vec<(Ident, Ident)>,
    /// Its parameters.
    pub params: Vec<DeclParam>,
    /// `-> …`
    pub output: NativeOutput,
    /// Clauses after the output, in order: `resumes byte_offset`, `bounded`, `guarantees exactly_once`,
    /// `excludes a b`, `keyed by key`, `unique_path`, `stateful` …: the clause's words.
    pub clauses: Vec<Clause>,
}

/// What a native declaration gives.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum NativeOutput {
    /// Functions and aggregates: a type (maybe a type variable).
    Type(TypeExpr),
    /// `rule sum`: the result type is computed by a rule named in the compiler.
    Rule(Ident),
    /// Operators: an output rule.
    Fields(OutputRule),
    /// Sinks: nothing.
    None,
}

/// Roles of native declarations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum NativeRole {
    /// Reads.
    Source,
    /// Changes.
    Shuffle,
    /// Writes.
    Sink,
    /// A scalar function.
    Fn,
    /// An aggregate function.
    Agg,
}

/// A clause of a native declaration: its words, `resumes byte_offset`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Clause {
    /// First word.
    pub name: Ident,
    /// The words after it.
    pub words: Vec<Ident>,
}

/// A type as written.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TypeExpr {
    /// What it is.
    pub kind: TypeKind,
    /// Written with `?` after it.
    pub nullable: bool,
    /// Where it stands.
    pub span: Span,
}

/// The forms of a type.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum TypeKind {
    /// `int64`, `Order`, `string`
    Name(String),
    /// `decimal(15, 2)`: precision and scale as written (any integers; the compiler checks them).
    Decimal(Option<(u64, u64)>),
    /// `list<T>`
    List(Box<TypeExpr>),
    /// `record { … }`
    Record(Vec<FieldDecl>),
}

/// An expression.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Expr {
    /// What it is.
    pub kind: ExprKind,
    /// Where it stands.
    pub span: Span,
}

/// The forms of an expression.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum ExprKind {
    /// A place where an expression should stand and a syntax error was reported.
    Error,
    /// A literal.
    Literal(Literal),
    /// A bare name.
    Name(String),
    /// `f(a, b)`
    Call(Call),
    /// `x.name`
    Field(Box<Expr>, Ident),
    /// `x[i]`
    Index(Box<Expr>, Box<Expr>),
    /// `-x`, `not x`
    Unary(UnaryOp, Box<Expr>),
    /// `a + b`; the span is the operator's.
    Binary(BinaryOp, Span, Box<Expr>, Box<Expr>),
    /// `x [not] between low and high`
    Between {
        /// `not between`
        negated: bool,
        /// The value.
        value: Box<Expr>,
        /// Lower bound, inclusive.
        low: Box<Expr>,
        /// Upper bound, inclusive.
        high: Box<Expr>,
    },
    /// `x [not] in list`: the right side is usually a list literal.
    In {
        /// `not in`
        negated: bool,
        /// The value.
        value: Box<Expr>,
        /// The list.
        list: Box<Expr>,
    },
    /// `x [not] like p`, `x [not] matches p`
    Pattern {
        /// `not like`
        negated: bool,
        /// `true` for `matches` (a regular expression), `false` for `like`.
        regex: bool,
        /// The value.
        value: Box<Expr>,
        /// The pattern.
        pattern: Box<Expr>,
    },
    /// `x is [not] null`
    IsNull {
        /// `is not null`
        negated: bool,
        /// The value.
        value: Box<Expr>,
    },
    /// `x as T`, `x as? T`
    Cast {
        /// The value.
        value: Box<Expr>,
        /// The type.
        ty: TypeExpr,
        /// `as?`
        fallible: bool,
    },
    /// `if c then a else b`
    If(Box<Expr>, Box<Expr>, Box<Expr>),
    /// `match x { "a" => 1, else => 0 }` or `match { c => e, else => e }`
    Match {
        /// The value compared, if any.
        subject: Option<Box<Expr>>,
        /// Arms in order.
        arms: Vec<MatchArm>,
        /// The `else` arm, if written.
        otherwise: Option<Box<Expr>>,
    },
    /// `[1, 2]`, `[day: date(at), country]`
    List(Vec<Arg>),
    /// `{ a: 1, ...row }`
    Record(Vec<RecordEntry>),
    /// `f"{name}-{id}"`
    Format(Vec<FormatPart>),
    /// `(e)`
    Paren(Box<Expr>),
    /// A chain in an argument's place: `paid |> filter(…)` (at least one link).
    Chain(Chain),
    /// A type in an argument's place that can only be one: `record { … }`, `list<T>`.
    Type(TypeExpr),
}

/// `a, b => e`
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct MatchArm {
    /// One or more patterns (values, or conditions without a subject).
    pub patterns: Vec<Expr>,
    /// The result.
    pub value: Expr,
}

/// An entry of a record literal.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum RecordEntry {
    /// `name: value`
    Field(Ident, Expr),
    /// `...value`
    Spread(Expr, Span),
}

/// A piece of `f"…"`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum FormatPart {
    /// Text, escapes resolved.
    Text(String),
    /// `{expr}`
    Expr(Expr),
}

/// `-x`, `not x`
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum UnaryOp {
    /// `-`
    Neg,
    /// `not`
    Not,
}

/// Two-sided operators.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs)] // each is its own spelling
pub enum BinaryOp {
    Or,
    And,
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
    Add,
    Sub,
    Mul,
    Div,
    IntDiv,
    Mod,
    /// `??`
    Coalesce,
}

/// A literal, its text already checked and decoded by the lexer.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Literal {
    /// `null`
    Null,
    /// `true`, `false`
    Bool(bool),
    /// `42` (without sign; up to 2¹²⁷−1)
    Int(i128),
    /// `1.25`: mantissa 125, scale 2
    Decimal {
        /// All digits.
        mantissa: i128,
        /// Digits after the point.
        scale: u8,
    },
    /// `1.25f`, `1e3`: the bits of the f64 (so that trees can be compared and hashed).
    Float(u64),
    /// `"…"`, `r"…"`, `"""…"""`
    String(String),
    /// `@2026-01-31`: days since 1970-01-01
    Date(i32),
    /// `@10:00:00`: microseconds since midnight
    Time(i64),
    /// `@2026-01-31T10:00:00`: microseconds since 1970-01-01T00:00:00, no zone
    DateTime(i64),
    /// `@2026-01-31T10:00:00Z`: microseconds since the epoch, UTC
    Timestamp(i64),
    /// `500ms`, `7d`: microseconds
    Duration(i64),
    /// `64MB`, `64MiB`: bytes
    Bytes(u64),
}
