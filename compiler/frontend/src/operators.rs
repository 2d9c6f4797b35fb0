//! The operators as declared in `stdlib/operators/*.df`: names, parameters, kinds, defaults, documentation.
//!
//! Checking, defaults, hover and the reference docs read this table; it may not know what an operator does.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use dfc_grammar::ast::{
    self, ItemKind, Native, NativeOutput, NativeRole, OutputTerm, ParamKind, Sign, TypeExpr, TypeKind,
};

use dfc_ir::plan::OptionValue;
use dfc_ir::{Options, Value};

/// What an operator does in a pipeline.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Role {
    /// Reads.
    Source,
    /// Changes.
    Shuffle,
    /// Writes.
    Sink,
}

impl Role {
    /// Its word in the language.
    pub fn word(self) -> &'static str {
        match self {
            Role::Source => "source",
            Role::Shuffle => "shuffle",
            Role::Sink => "sink",
        }
    }
}

/// What kind of argument a parameter takes.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A constant of this type.
    Const(TypeExpr),
    /// An expression for each row. `any`: of any type.
    Row(TypeExpr),
    /// An aggregate expression.
    Agg(TypeExpr),
    /// A condition over two sides.
    Pair,
    /// One of these names.
    Enum(Vec<String>),
    /// A stream or a chain.
    Stream,
    /// A source, inline or by name.
    Source,
    /// One field's name.
    Field,
    /// A list of fields: `[day: date(at), country]`.
    Fields,
    /// A type: a record's name or `record { … }`.
    Type,
    /// An ordering: `x`, `desc(x, nulls: last)`.
    Order,
}

/// A parameter of an operator.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Param {
    /// Its name.
    pub name: String,
    /// Its documentation.
    pub doc: Option<String>,
    /// What it takes.
    pub kind: Kind,
    /// Takes any number of arguments.
    pub variadic: bool,
    /// May be left out without having a default (`T?`).
    pub optional: bool,
    /// Its default.
    pub default: Option<ast::Expr>,
    /// Inclusive bounds of a number.
    pub range: Option<(i128, i128)>,
}

impl Param {
    /// Whether a call without it is an error.
    pub fn required(&self) -> bool {
        !self.optional && self.default.is_none() && !self.variadic
    }

    /// Its kind in words: `string`, `row bool?`, `utf8 | gbk`.
    pub fn kind_text(&self) -> String {
        let optional = if self.optional { "?" } else { "" };
        match &self.kind {
            Kind::Const(ty) => type_text(ty),
            Kind::Row(ty) => format!("row {}", type_text(ty)),
            Kind::Agg(ty) => format!("agg {}", type_text(ty)),
            Kind::Pair => "pair bool?".into(),
            Kind::Enum(values) => values.join(" | "),
            Kind::Stream => format!("stream{optional}"),
            Kind::Source => format!("source{optional}"),
            Kind::Field => format!("field{optional}"),
            Kind::Fields => format!("fields{optional}"),
            Kind::Type => format!("type{optional}"),
            Kind::Order => format!("order{optional}"),
        }
    }
}

/// A clause of a declaration: `resumes byte_offset`, `bounded unless follow`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Clause {
    /// Its first word.
    pub name: String,
    /// The words behind it.
    pub words: Vec<String>,
    /// Under which arguments it holds; `None`: always.
    pub condition: Option<Condition>,
}

/// `when PARAM`, `when PARAM VALUE`, `unless …`
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Condition {
    /// `unless`.
    pub negated: bool,
    /// The parameter.
    pub param: String,
    /// The name it must have been given, `FOLDER` or `STREAM`; `None`: it is given, and not `false`.
    pub value: Option<String>,
}

/// A path that ends with `/`.
const FOLDER: &str = "folder";
/// The path `-`: the standard input or output.
const STREAM: &str = "standard";

impl Condition {
    /// Whether it holds for these arguments.
    pub fn holds(&self, options: &Options) -> bool {
        let found = match (options.get(&self.param), &self.value) {
            (None | Some(OptionValue::Absent | OptionValue::Value(Value::Bool(false))), _) => false,
            (Some(given), Some(wanted)) if wanted == FOLDER => given.text().is_some_and(|path| path.ends_with('/')),
            (Some(given), Some(wanted)) if wanted == STREAM => given.text() == Some("-"),
            (Some(given), Some(wanted)) => given.text() == Some(wanted),
            (Some(OptionValue::Names(names)), None) => !names.is_empty(),
            (Some(_), None) => true,
        };
        found != self.negated
    }

    /// Whether it is about the standard input or output.
    pub fn is_stream(&self) -> bool {
        self.value.as_deref() == Some(STREAM)
    }
}

/// A declared operator.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Operator {
    /// Its name.
    pub name: String,
    /// Its role.
    pub role: Role,
    /// Its documentation.
    pub doc: Option<String>,
    /// Its parameters, in order.
    pub params: Vec<Param>,
    /// Its output rule as text: `input + fields`; empty for sinks.
    pub output: String,
    /// Its clauses, in order.
    pub clauses: Vec<Clause>,
}

impl Operator {
    /// The parameter of this name.
    pub fn param(&self, name: &str) -> Option<&Param> {
        self.params.iter().find(|p| p.name == name)
    }

    /// The arguments of a call, each with its parameter as far as there is one.
    pub fn paired<'c>(&self, call: &'c ast::Call) -> impl Iterator<Item = (&'c ast::Arg, Option<&Param>)> {
        let mut positional = self.params.iter().filter(|p| !p.variadic);
        let variadic = self.params.iter().find(|p| p.variadic);
        call.args.iter().map(move |arg| {
            let param = match &arg.label {
                Some(label) => self.param(&label.text),
                None => variadic.or_else(|| positional.next()),
            };
            (arg, param)
        })
    }

    /// The words of a clause, whatever its condition; `None` if it is not there.
    pub fn clause(&self, name: &str) -> Option<&[String]> {
        self.clauses.iter().find(|clause| clause.name == name).map(|clause| clause.words.as_slice())
    }

    /// The groups of parameters that exclude one another.
    pub fn excludes(&self) -> impl Iterator<Item = &[String]> {
        self.clauses.iter().filter(|clause| clause.name == "excludes").map(|clause| clause.words.as_slice())
    }

    /// The words of the first clause of this name that holds for these arguments.
    pub fn clause_for(&self, name: &str, options: &Options) -> Option<&[String]> {
        let holds = |clause: &&Clause| clause.condition.as_ref().is_none_or(|condition| condition.holds(options));
        self.clauses.iter().filter(|clause| clause.name == name).find(holds).map(|clause| clause.words.as_slice())
    }

    /// Whether it writes a folder of parts where its path ends with `/`.
    pub fn writes_folders(&self) -> bool {
        let conditions = self.clauses.iter().filter_map(|clause| clause.condition.as_ref());
        conditions.filter_map(|condition| condition.value.as_deref()).any(|value| value == FOLDER)
    }

    /// `csv(path: string, schema: type, …)` on one line.
    pub fn signature(&self) -> String {
        let params: Vec<String> = self
            .params
            .iter()
            .map(|p| {
                let dots = if p.variadic { "..." } else { "" };
                let default = p.default.as_ref().and_then(default_text).map(|d| format!(" = {d}")).unwrap_or_default();
                format!("{dots}{}: {}{default}", p.name, p.kind_text())
            })
            .collect();
        let output = if self.output.is_empty() { String::new() } else { format!(" -> {}", self.output) };
        format!("{} {}({}){output}", self.role.word(), self.name, params.join(", "))
    }
}

/// All declared operators. One name may stand for several roles: `csv` reads and writes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct OperatorTable {
    by_name: BTreeMap<(String, Role), Operator>,
}

impl OperatorTable {
    /// Reads the declarations out of the standard library's files. What is no operator is left to others.
    pub fn read(files: &[(&str, &str)]) -> Self {
        let mut table = OperatorTable::default();
        for (_, text) in files {
            for item in dfc_grammar::parse(text).file.items {
                if let ItemKind::Native(native) = item.kind.as_ref()
                    && let Some(operator) = operator(native, item.doc.clone())
                {
                    table.by_name.insert((operator.name.clone(), operator.role), operator);
                }
            }
        }
        table
    }

    /// The operator of this name in this role.
    pub fn get(&self, name: &str, role: Role) -> Option<&Operator> {
        self.by_name.get(&(name.to_string(), role))
    }

    /// All operators, by name.
    pub fn all(&self) -> impl Iterator<Item = &Operator> {
        self.by_name.values()
    }

    /// The names of a role's operators, sorted.
    pub fn names(&self, role: Role) -> Vec<&str> {
        self.by_name.values().filter(|o| o.role == role).map(|o| o.name.as_str()).collect()
    }

    /// The roles that a name has.
    pub fn roles(&self, name: &str) -> Vec<Role> {
        [Role::Source, Role::Shuffle, Role::Sink].into_iter().filter(|role| self.get(name, *role).is_some()).collect()
    }
}

/// The standard library's operators.
pub fn table() -> &'static OperatorTable {
    static TABLE: LazyLock<OperatorTable> = LazyLock::new(|| OperatorTable::read(dfc_stdlib::DECLARATIONS));
    &TABLE
}

fn operator(native: &Native, doc: Option<String>) -> Option<Operator> {
    let role = match native.role {
        NativeRole::Source => Role::Source,
        NativeRole::Shuffle => Role::Shuffle,
        NativeRole::Sink => Role::Sink,
        NativeRole::Fn | NativeRole::Agg => return None,
    };
    Some(Operator {
        name: native.name.text.clone(),
        role,
        doc,
        params: native.params.iter().map(param).collect(),
        output: output_text(&native.output),
        clauses: clauses(&native.clauses),
    })
}

/// The clauses of a declaration, each with the condition behind it.
fn clauses(declared: &[ast::Clause]) -> Vec<Clause> {
    let mut out: Vec<Clause> = Vec::new();
    for clause in declared {
        let mut words = clause.words.iter().map(|w| w.text.clone());
        match (clause.name.text.as_str(), out.last_mut()) {
            (word @ ("when" | "unless"), Some(last)) => {
                let (param, value) = (words.next().unwrap_or_default(), words.next());
                last.condition = Some(Condition { negated: word == "unless", param, value });
            }
            (name, _) => out.push(Clause { name: name.to_string(), words: words.collect(), condition: None }),
        }
    }
    out
}

/// A declared parameter as checks read it.
pub(crate) fn param(param: &ast::DeclParam) -> Param {
    let bare = |name: &str| match name {
        "stream" => Some(Kind::Stream),
        "source" => Some(Kind::Source),
        "field" => Some(Kind::Field),
        "fields" => Some(Kind::Fields),
        "type" => Some(Kind::Type),
        "order" => Some(Kind::Order),
        _ => None,
    };
    let (kind, optional) = match &param.kind {
        ParamKind::Const(ty) => match &ty.kind {
            TypeKind::Name(name) => (bare(name).unwrap_or_else(|| Kind::Const(ty.clone())), ty.nullable),
            _ => (Kind::Const(ty.clone()), ty.nullable),
        },
        ParamKind::Bare(name) => {
            let named = TypeExpr { kind: TypeKind::Name(name.text.clone()), nullable: false, span: name.span };
            (bare(&name.text).unwrap_or(Kind::Const(named)), false)
        }
        ParamKind::Row(ty) => (Kind::Row(ty.clone()), false),
        ParamKind::Agg(ty) => (Kind::Agg(ty.clone()), false),
        ParamKind::Pair(_) => (Kind::Pair, false),
        ParamKind::Enum(values) => (Kind::Enum(values.iter().map(|v| v.text.clone()).collect()), false),
    };
    let range = param.range.as_ref().and_then(|(low, high)| Some((int(low)?, int(high)?)));
    Param {
        name: param.name.text.clone(),
        doc: param.doc.clone(),
        kind,
        variadic: param.variadic,
        optional,
        default: param.default.clone(),
        range,
    }
}

fn int(expr: &ast::Expr) -> Option<i128> {
    match &expr.kind {
        ast::ExprKind::Literal(ast::Literal::Int(n)) => Some(*n),
        ast::ExprKind::Unary(ast::UnaryOp::Neg, inner) => int(inner).map(|n| -n),
        _ => None,
    }
}

fn output_text(output: &NativeOutput) -> String {
    let NativeOutput::Fields(rule) = output else {
        return match output {
            NativeOutput::Rule(name) => format!("rule {}", name.text),
            _ => String::new(),
        };
    };
    let mut text = String::new();
    for (i, (sign, term)) in rule.terms.iter().enumerate() {
        match (i, sign) {
            (0, _) => {}
            (_, Sign::Plus) => text.push_str(" + "),
            (_, Sign::Minus) => text.push_str(" - "),
        }
        match term {
            OutputTerm::Name(name) => text.push_str(&name.text),
            OutputTerm::Rule(name) => text.push_str(&format!("rule {}", name.text)),
            OutputTerm::Fields(fields) => {
                let fields: Vec<String> =
                    fields.iter().map(|f| format!("{}: {}", f.name.text, type_text(&f.ty))).collect();
                text.push_str(&format!("{{ {} }}", fields.join(", ")));
            }
        }
    }
    text
}

/// A declared type as text.
pub fn type_text(ty: &TypeExpr) -> String {
    let text = match &ty.kind {
        TypeKind::Name(name) => name.clone(),
        TypeKind::Decimal(None) => "decimal".into(),
        TypeKind::Decimal(Some((p, s))) => format!("decimal({p}, {s})"),
        TypeKind::List(item) => format!("list<{}>", type_text(item)),
        TypeKind::Record(fields) => {
            let fields: Vec<String> = fields.iter().map(|f| format!("{}: {}", f.name.text, type_text(&f.ty))).collect();
            format!("record {{ {} }}", fields.join(", "))
        }
    };
    format!("{text}{}", if ty.nullable { "?" } else { "" })
}

/// A declared default as text; `None` for forms that defaults don't have.
pub fn default_text(default: &ast::Expr) -> Option<String> {
    use ast::{ExprKind, Literal};
    Some(match &default.kind {
        ExprKind::Literal(Literal::Null) => "null".into(),
        ExprKind::Literal(Literal::Bool(value)) => value.to_string(),
        ExprKind::Literal(Literal::Int(value)) => value.to_string(),
        ExprKind::Literal(Literal::String(value)) => {
            format!("\"{}\"", value.replace('\\', "\\\\").replace('"', "\\\""))
        }
        ExprKind::Name(name) => name.clone(),
        ExprKind::List(items) if items.is_empty() => "[]".into(),
        _ => return None,
    })
}
