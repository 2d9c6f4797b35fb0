//! `dfc plan`: what the compiler makes of a pipeline, at each step on the way to machine code.

use std::io::Write;

use anyhow::Result;
use dfc_ir::stage::{StageOp, StagePlan};
use dfc_ir::text;

use crate::Outcome;
use crate::args::{Emit, Format, PlanArgs};
use crate::report;

/// Runs the command.
pub fn plan(args: &PlanArgs) -> Result<Outcome> {
    let compiler = report::compiler(&args.set);
    let text = match args.emit {
        Emit::Tokens | Emit::Ast => match compiler.parse(&args.file) {
            Ok(parsed) if args.emit == Emit::Tokens => dfc_grammar::dump_tokens(&parsed.parse, &parsed.text),
            Ok(parsed) => dfc_grammar::dump_ast(&parsed.parse),
            Err(checked) => {
                report::findings(&[&checked], Format::Human)?;
                return Ok(Outcome::Failed);
            }
        },
        Emit::Ir | Emit::Stages | Emit::Clif | Emit::Dot => match compiler.plan(&args.file) {
            Ok(plan) => match args.emit {
                Emit::Ir => text::plan(&plan),
                Emit::Dot => text::dot(&plan),
                Emit::Clif => clif(&dfc_planner::plan_stages(&plan)),
                _ => {
                    let stages = dfc_planner::plan_stages(&plan);
                    text::stages_with(&stages, &|stage| dfc_engine::asked_first(&stages, stage))
                }
            },
            Err(checked) => {
                report::findings(&[&checked], Format::Human)?;
                eprintln!("{}", report::verdict(&args.file, &checked));
                return Ok(Outcome::Failed);
            }
        },
    };
    std::io::stdout().lock().write_all(text.as_bytes())?;
    Ok(Outcome::Fine)
}

/// The code of each program, an aggregate fused with the program before it.
fn clif(plan: &StagePlan) -> String {
    let mut out = String::new();
    for (id, stage) in plan.stages.iter().enumerate() {
        let mut ops = stage.ops.iter().peekable();
        while let Some(op) = ops.next() {
            let StageOp::Program(program) = op else { continue };
            let aggregate = match ops.peek() {
                Some(StageOp::AggregatePartial(spec)) => Some(spec),
                _ => None,
            };
            let code = dfc_jit::emit_clif(program, aggregate);
            out.push_str(&format!("; stage {id}: {}\n", stage.name));
            match code {
                Ok(code) => out.push_str(&code),
                Err(reason) => out.push_str(&format!("; interpreted: {reason}\n")),
            }
        }
    }
    out
}
