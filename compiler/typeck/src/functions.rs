//! The table of native functions and aggregates, read from the declarations of the standard library.
//!
//! It knows signatures, docs and examples; nothing about bodies.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use dfc_grammar::ast;

/// A declared function with all its overloads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Function {
    /// Its name.
    pub name: String,
    /// Whether it is an aggregate (`native agg`) rather than a scalar function (`native fn`).
    pub aggregate: bool,
    /// Its declarations, in order.
    pub overloads: Vec<Overload>,
    /// The declarations' file: `strings`, `numbers` ….
    pub group: String,
}

/// One declaration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Overload {
    /// The declaration's tree.
    pub decl: ast::Native,
    /// Its documentation without the examples.
    pub doc: String,
    /// Its examples: expressions that are true, or (second part `true`) that are errors. Those of an aggregate end with the
    /// values it is computed over, ` for x = [1, null, 3]`.
    pub examples: Vec<(String, bool)>,
    /// `upper(s: string) -> string`
    pub signature: String,
}

/// All functions by name.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FunctionTable {
    functions: BTreeMap<String, Function>,
}

impl FunctionTable {
    /// The standard library's functions, parsed once.
    pub fn standard() -> &'static FunctionTable {
        static TABLE: OnceLock<FunctionTable> = OnceLock::new();
        TABLE.get_or_init(|| FunctionTable::from_declarations(dfc_stdlib::DECLARATIONS))
    }

    /// The functions declared in these files: (file name, text). What is no `native fn` or `native agg` is passed over.
    pub fn from_declarations(files: &[(&str, &str)]) -> FunctionTable {
        let mut table = FunctionTable::default();
        for (file, text) in files {
            let group = file.rsplit('/').next().unwrap_or(file).trim_end_matches(".df");
            for item in dfc_grammar::parse(text).file.items {
                let ast::ItemKind::Native(decl) = Arc::unwrap_or_clone(item.kind) else { continue };
                let aggregate = match decl.role {
                    ast::NativeRole::Fn => false,
                    ast::NativeRole::Agg => true,
                    _ => continue,
                };
                let (doc, examples) = split_doc(item.doc.as_deref().unwrap_or(""));
                let signature = signature(&decl);
                let function = table.functions.entry(decl.name.text.clone()).or_insert_with(|| Function {
                    name: decl.name.text.clone(),
                    aggregate,
                    overloads: Vec::new(),
                    group: group.to_owned(),
                });
                function.overloads.push(Overload { decl, doc, examples, signature });
            }
        }
        table
    }

    /// The function of this name.
    pub fn get(&self, name: &str) -> Option<&Function> {
        self.functions.get(name)
    }

    /// All functions, by name.
    pub fn iter(&self) -> impl Iterator<Item = &Function> {
        self.functions.values()
    }

    /// The nearest function's name, by spelling.
    pub fn nearest(&self, name: &str) -> Option<&str> {
        crate::nearest::nearest(name, self.functions.keys().map(String::as_str))
    }
}

/// Splits `example:` lines off a doc comment.
fn split_doc(doc: &str) -> (String, Vec<(String, bool)>) {
    let mut text = Vec::new();
    let mut examples = Vec::new();
    for line in doc.lines() {
        let line = line.trim();
        if let Some(example) = line.strip_prefix("example error:") {
            examples.push((example.trim().to_owned(), true));
        } else if let Some(example) = line.strip_prefix("example:") {
            examples.push((example.trim().to_owned(), false));
        } else {
            text.push(line);
        }
    }
    (text.join("\n").trim().to_owned(), examples)
}

fn signature(decl: &ast::Native) -> String {
    let generics = if decl.generics.is_empty() {
        String::new()
    } else {
        let vars: Vec<_> = decl.generics.iter().map(|(var, class)| format!("{}: {}", var.text, class.text)).collect();
        format!("<{}>", vars.join(", "))
    };
    let params: Vec<_> = decl.params.iter().map(param_text).collect();
    let result = match &decl.output {
        ast::NativeOutput::Type(ty) => format!(" -> {}", type_text(ty)),
        ast::NativeOutput::Rule(rule) => format!(" -> rule {}", rule.text),
        ast::NativeOutput::Fields(_) | ast::NativeOutput::None => String::new(),
    };
    format!("{}{generics}({}){result}", decl.name.text, params.join(", "))
}

fn param_text(param: &ast::DeclParam) -> String {
    let dots = if param.variadic { "..." } else { "" };
    let kind = match &param.kind {
        ast::ParamKind::Const(ty) => type_text(ty),
        ast::ParamKind::Row(ty) => format!("row {}", type_text(ty)),
        ast::ParamKind::Agg(ty) => format!("agg {}", type_text(ty)),
        ast::ParamKind::Pair(ty) => format!("pair {}", type_text(ty)),
        ast::ParamKind::Enum(names) => names.iter().map(|n| n.text.as_str()).collect::<Vec<_>>().join(" | "),
        ast::ParamKind::Bare(name) => name.text.clone(),
    };
    let default = match &param.default {
        Some(ast::Expr { kind: ast::ExprKind::Literal(literal), .. }) => format!(" = {}", literal_text(literal)),
        Some(_) => " = …".to_owned(),
        None => String::new(),
    };
    format!("{dots}{}: {kind}{default}", param.name.text)
}

fn literal_text(literal: &ast::Literal) -> String {
    match literal {
        ast::Literal::Null => "null".into(),
        ast::Literal::Bool(value) => value.to_string(),
        ast::Literal::Int(value) => value.to_string(),
        ast::Literal::String(text) => format!("{text:?}"),
        _ => "…".into(),
    }
}

/// A type as it would be written.
pub fn type_text(ty: &ast::TypeExpr) -> String {
    let text = match &ty.kind {
        ast::TypeKind::Name(name) => name.clone(),
        ast::TypeKind::Decimal(None) => "decimal".into(),
        ast::TypeKind::Decimal(Some((p, s))) => format!("decimal({p}, {s})"),
        ast::TypeKind::List(item) => format!("list<{}>", type_text(item)),
        ast::TypeKind::Record(fields) => {
            let fields: Vec<_> = fields.iter().map(|f| format!("{}: {}", f.name.text, type_text(&f.ty))).collect();
            format!("record {{ {} }}", fields.join(", "))
        }
    };
    format!("{text}{}", if ty.nullable { "?" } else { "" })
}
