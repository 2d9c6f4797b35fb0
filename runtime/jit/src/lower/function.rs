//! The loop over a batch's rows; before it, where all that a program does can be done in vector registers, one over blocks of
//! sixteen rows, which ends with the last whole block or with the first that is in doubt.
//!
//! ```text
//! entry(context, n)   addresses of the columns
//! start(at, kept)     at + 16 ≤ n ? block : leave
//! block               steps and outputs of 16 rows; in doubt ? leave : start(at + 16, kept + …)
//! leave               → head(at, kept)
//! head(row, kept)     row < n ? body : exit
//! body                steps and outputs → next(kept + 1)
//! fail                the row's index goes to the failed ones → next(kept)
//! next(kept)          → head(row + 1, kept)
//! exit                kept → context
//! ```

use std::mem::offset_of;

use cranelift_codegen::cursor::{Cursor, FuncCursor};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{self, Block, Function, InstBuilder, types};
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext};
use cranelift_module::Module;
use dfc_ir::{Expr, ExprKind, Program, Step};

use super::lanes::{self, in_lanes};
use super::logic::infallible;
use super::{Binding, Lowerer, Unsupported, memory, text_of};
use crate::context::{ColumnOut, Context};
use crate::helpers;
use crate::islands::Pool;
use crate::kind::{Kind, Val};

/// Where an output column comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OutputPlan {
    /// It is a column of the batch.
    Pass(usize),
    /// The code writes it: into buffer number `buffer`.
    Computed {
        /// Which.
        buffer: usize,
        /// The form of its values.
        kind: Kind,
        /// Whether validity is written.
        nullable: bool,
    },
}

/// What was built beside the function.
pub(crate) struct Built {
    /// Constants and islands.
    pub(crate) pool: Pool,
    /// The columns of the batch that the code reads.
    pub(crate) used: Vec<usize>,
    /// Every row is kept: the selection isn't written.
    pub(crate) keeps_all: bool,
}

/// What is done with the rows that pass the steps.
pub(crate) trait Ending {
    /// The columns of the program's input, lets included, that it reads through the lowerer.
    fn columns(&self, program: &Program) -> Vec<usize>;
    /// Whether it may drop or reject rows.
    fn selective(&self, program: &Program) -> bool;
    /// Whether the rows that are kept are counted and written down.
    fn wants_selection(&self) -> bool {
        true
    }
    /// Whether it can be done in blocks of rows after steps that can.
    fn in_blocks(&self, _program: &Program) -> bool {
        false
    }
    /// Code for a block of rows: for those that have `passed`, if that isn't all. Of an ending that wants the selection it is only asked where
    /// all pass. The block may be in doubt, so nothing that counts is done with it yet.
    fn block(
        &mut self,
        _lowerer: &mut Lowerer<'_>,
        _program: &Program,
        _passed: Option<ir::Value>,
    ) -> Result<(), Unsupported> {
        Ok(())
    }
    /// Code for a block behind that, once it is in no doubt.
    fn settle(&mut self, _lowerer: &mut Lowerer<'_>) {}
    /// Code before the loop.
    fn prepare(&mut self, lowerer: &mut Lowerer<'_>) -> Result<(), Unsupported>;
    /// Code for a row, `kept` of which were kept before.
    fn row(&mut self, lowerer: &mut Lowerer<'_>, program: &Program, kept: ir::Value) -> Result<(), Unsupported>;
    /// Code behind the loop.
    fn finish(&mut self, _lowerer: &mut Lowerer<'_>) {}
}

/// Builds the function.
pub(crate) fn build(
    function: &mut Function,
    module: &mut dyn Module,
    program: &Program,
    ending: &mut dyn Ending,
) -> Result<Built, Unsupported> {
    let mut builder_context = FunctionBuilderContext::new();
    let mut b = FunctionBuilder::new(function, &mut builder_context);
    let [entry, head, body, fail, next, exit] = std::array::from_fn(|_| b.create_block());
    b.append_block_params_for_function_params(entry);
    b.switch_to_block(entry);
    let (context, rows) = (b.block_params(entry)[0], b.block_params(entry)[1]);
    let row = b.append_block_param(head, types::I64);
    let kept = b.append_block_param(head, types::I64);
    let next_kept = b.append_block_param(next, types::I64);
    b.set_cold_block(fail);

    let mut used = ending.columns(program);
    for step in &program.steps {
        let (Step::Filter(expr) | Step::Require(expr, _) | Step::Let(expr)) = step;
        used.extend(expr.columns());
    }
    used.retain(|index| *index < program.inputs.len());
    used.sort_unstable();
    used.dedup();
    let selective = ending.selective(program)
        || program.steps.iter().any(|step| match step {
            Step::Let(expr) => !infallible(expr),
            Step::Filter(_) | Step::Require(..) => true,
        });

    let mut l = Lowerer::new(b, module, &program.inputs, &used, context, row, fail);
    let selection = pointer(&mut l, offset_of!(Context, selection));
    ending.prepare(&mut l)?;
    let filters = program.steps.iter().all(|step| matches!(step, Step::Filter(condition) if in_lanes(condition)));
    if filters && ending.in_blocks(program) {
        blocks(&mut l, program, ending, [rows, selection], head)?;
        l.row = row;
    } else {
        let zero = l.int(0);
        l.b.ins().jump(head, &[zero.into(), zero.into()]);
    }

    l.b.switch_to_block(head);
    let more = l.b.ins().icmp(IntCC::UnsignedLessThan, row, rows);
    l.b.ins().brif(more, body, &[], exit, &[]);

    l.b.switch_to_block(body);
    for step in &program.steps {
        lower_step(&mut l, step, next, kept)?;
    }
    ending.row(&mut l, program, kept)?;
    if selective && ending.wants_selection() {
        let two = l.int(2);
        let offset = l.b.ins().ishl(kept, two);
        let address = l.b.ins().iadd(selection, offset);
        l.b.ins().istore32(memory(), row, address, 0);
    }
    let mut more_kept = kept;
    if ending.wants_selection() {
        let one = l.int(1);
        more_kept = l.b.ins().iadd(kept, one);
    }
    l.b.ins().jump(next, &[more_kept.into()]);

    l.b.switch_to_block(fail);
    let failed = pointer(&mut l, offset_of!(Context, failed));
    let count_at = offset_of!(Context, failed_count) as i32;
    let count = l.b.ins().load(types::I64, memory(), context, count_at);
    let two = l.int(2);
    let offset = l.b.ins().ishl(count, two);
    let address = l.b.ins().iadd(failed, offset);
    l.b.ins().istore32(memory(), row, address, 0);
    let one = l.int(1);
    let count = l.b.ins().iadd(count, one);
    l.b.ins().store(memory(), count, context, count_at);
    l.b.ins().jump(next, &[kept.into()]);

    l.b.switch_to_block(next);
    let one = l.int(1);
    let next_row = l.b.ins().iadd(row, one);
    l.b.ins().jump(head, &[next_row.into(), next_kept.into()]);

    l.b.switch_to_block(exit);
    ending.finish(&mut l);
    l.b.ins().store(memory(), kept, context, offset_of!(Context, kept) as i32);
    l.b.ins().return_(&[]);
    l.b.seal_all_blocks();
    let config = l.module.target_config();
    let Lowerer { b, pool, uses_arena, .. } = l;
    b.finalize(config);
    if uses_arena {
        let mut cursor = FuncCursor::new(function).at_first_insertion_point(body);
        let zero = cursor.ins().iconst(types::I64, 0);
        cursor.ins().store(memory(), zero, context, offset_of!(Context, arena_used) as i32);
    }
    Ok(Built { pool, used, keeps_all: !selective })
}

/// The loop over blocks. It goes on at `head` with the first row that it has left, and the number of those that it has kept.
fn blocks(
    l: &mut Lowerer<'_>,
    program: &Program,
    ending: &mut dyn Ending,
    [rows, selection]: [ir::Value; 2],
    head: Block,
) -> Result<(), Unsupported> {
    let [start, block, next, leave] = std::array::from_fn(|_| l.b.create_block());
    let at = l.b.append_block_param(start, types::I64);
    let kept = l.b.append_block_param(start, types::I64);
    let next_kept = l.b.append_block_param(next, types::I64);
    let (zero, size) = (l.int(0), l.int(lanes::ROWS as i64));
    l.b.ins().jump(start, &[zero.into(), zero.into()]);

    l.b.switch_to_block(start);
    let end = l.b.ins().iadd(at, size);
    let whole = l.b.ins().icmp(IntCC::UnsignedLessThanOrEqual, end, rows);
    l.b.ins().brif(whole, block, &[], leave, &[]);

    l.b.switch_to_block(block);
    l.row = at;
    let mut passed = None;
    for step in &program.steps {
        let Step::Filter(condition) = step else { continue };
        let val = l.mask(condition)?;
        let truth = l.truth(val);
        passed = l.both(passed, Some(truth));
    }
    let selected = passed.filter(|_| ending.wants_selection());
    if selected.is_none() {
        ending.block(l, program, passed)?;
    }
    if let Some(doubt) = l.doubt.take() {
        let sure = l.b.create_block();
        let any = l.b.ins().vany_true(doubt);
        l.b.ins().brif(any, leave, &[], sure, &[]);
        l.b.switch_to_block(sure);
    }
    match selected {
        Some(passed) => select_block(l, passed, selection, kept, next),
        None => {
            ending.settle(l);
            let more = if ending.wants_selection() { l.b.ins().iadd(kept, size) } else { kept };
            l.b.ins().jump(next, &[more.into()]);
        }
    }

    l.b.switch_to_block(next);
    l.b.ins().jump(start, &[end.into(), next_kept.into()]);

    l.b.switch_to_block(leave);
    if program.steps.is_empty() {
        l.b.ins().store(memory(), at, l.context, offset_of!(Context, unselected) as i32);
    }
    l.b.ins().jump(head, &[at.into(), kept.into()]);
    Ok(())
}

/// Writes the rows of a block that its mask has into the selection.
fn select_block(l: &mut Lowerer<'_>, mask: ir::Value, selection: ir::Value, kept: ir::Value, next: Block) {
    let [some, all, one_more] = std::array::from_fn(|_| l.b.create_block());
    let two = l.int(2);
    let bits = l.b.ins().vhigh_bits(types::I64, mask);
    l.b.ins().brif(bits, some, &[], next, &[kept.into()]);

    l.b.switch_to_block(some);
    let full = l.int((1 << lanes::ROWS) - 1);
    let every = l.b.ins().icmp(IntCC::Equal, bits, full);
    l.b.ins().brif(every, all, &[], one_more, &[bits.into(), kept.into()]);

    l.b.switch_to_block(all);
    let offset = l.b.ins().ishl(kept, two);
    let address = l.b.ins().iadd(selection, offset);
    let first = l.b.ins().ireduce(types::I32, l.row);
    let first = l.b.ins().splat(types::I32X4, first);
    for four in 0..lanes::ROWS as u128 / 4 {
        let numbers = (0..4).fold(0, |numbers, k| numbers | (four * 4 + k) << (32 * k));
        let numbers = l.vector(types::I32X4, numbers);
        let numbers = l.b.ins().iadd(first, numbers);
        l.b.ins().store(lanes::output_memory(), numbers, address, four as i32 * 16);
    }
    let size = l.int(lanes::ROWS as i64);
    let more = l.b.ins().iadd(kept, size);
    l.b.ins().jump(next, &[more.into()]);

    // One bit after the other, from the lowest on.
    let (left, at) = (l.b.append_block_param(one_more, types::I64), l.b.append_block_param(one_more, types::I64));
    l.b.switch_to_block(one_more);
    let number = l.b.ins().ctz(left);
    let row = l.b.ins().iadd(l.row, number);
    let offset = l.b.ins().ishl(at, two);
    let address = l.b.ins().iadd(selection, offset);
    l.b.ins().istore32(memory(), row, address, 0);
    let one = l.int(1);
    let at = l.b.ins().iadd(at, one);
    let below = l.b.ins().isub(left, one);
    let left = l.b.ins().band(left, below);
    l.b.ins().brif(left, one_more, &[left.into(), at.into()], next, &[at.into()]);
}

/// Loads an address from the context.
pub(crate) fn pointer(l: &mut Lowerer<'_>, offset: usize) -> ir::Value {
    l.b.ins().load(types::I64, memory(), l.context, offset as i32)
}

fn lower_step(l: &mut Lowerer<'_>, step: &Step, next: Block, kept: ir::Value) -> Result<(), Unsupported> {
    match step {
        Step::Filter(condition) => {
            let (yes, no) = (l.b.create_block(), l.b.create_block());
            l.condition(condition, yes, no)?;
            l.b.switch_to_block(no);
            l.b.ins().jump(next, &[kept.into()]);
            l.b.switch_to_block(yes);
        }
        Step::Require(condition, _) => {
            let (yes, fail) = (l.b.create_block(), l.fail);
            l.condition(condition, yes, fail)?;
            l.b.switch_to_block(yes);
        }
        Step::Let(expr) => {
            let val = l.expr(expr)?;
            l.bindings.push((Binding::Known(val), expr.ty.clone()));
        }
    }
    Ok(())
}

/// The values of a program's outputs on the current row; `None` for a column of the batch that needs none.
pub(crate) fn output_values(l: &mut Lowerer<'_>, program: &Program) -> Result<Vec<Option<Val>>, Unsupported> {
    let mut vals = Vec::with_capacity(program.outputs.len());
    for (expr, field) in program.outputs.iter().zip(&program.schema.fields) {
        let passes = passed(program, expr).is_some();
        let valid = match passed(program, expr) {
            Some(input) if field.ty.nullable || !program.inputs[input].nullable => None,
            Some(input) => l.input_valid(input),
            None => {
                let mut val = l.expr(expr)?;
                let valid = val.valid;
                if !field.ty.nullable {
                    val.valid = None;
                }
                vals.push(Some(val));
                if field.ty.nullable { None } else { valid }
            }
        };
        if let Some(valid) = valid {
            let null = l.not(valid);
            l.fail_if(null, None);
        }
        if passes {
            vals.push(None);
        }
    }
    Ok(vals)
}

/// The column of the batch that an output is.
pub(crate) fn passed(program: &Program, expr: &Expr) -> Option<usize> {
    match expr.kind {
        ExprKind::Column(index) if index < program.inputs.len() => Some(index),
        _ => None,
    }
}

/// Whether computing a program's outputs may reject a row.
pub fn outputs_fail(program: &Program) -> bool {
    program.outputs.iter().zip(&program.schema.fields).any(|(expr, field)| {
        let nullable = match passed(program, expr) {
            Some(input) => program.inputs[input].nullable,
            None => expr.ty.nullable,
        };
        !infallible(expr) || (nullable && !field.ty.nullable)
    })
}

/// Writes the outputs, densely.
pub(crate) struct WriteOutputs {
    pub(crate) plans: Vec<OutputPlan>,
    /// Addresses of values and validity of each buffer.
    buffers: Vec<(ir::Value, ir::Value)>,
}

impl WriteOutputs {
    /// Plans the outputs. Errors: an output that has no form in registers.
    pub(crate) fn new(program: &Program) -> Result<Self, Unsupported> {
        let mut buffers = 0;
        let mut plans = Vec::with_capacity(program.outputs.len());
        for (expr, field) in program.outputs.iter().zip(&program.schema.fields) {
            plans.push(match passed(program, expr) {
                Some(input) => OutputPlan::Pass(input),
                None => {
                    let kind = Kind::of(&expr.ty.ty).ok_or_else(|| Unsupported(text_of(expr)))?;
                    buffers += 1;
                    OutputPlan::Computed { buffer: buffers - 1, kind, nullable: field.ty.nullable }
                }
            });
        }
        Ok(WriteOutputs { plans, buffers: Vec::new() })
    }
}

impl Ending for WriteOutputs {
    fn columns(&self, program: &Program) -> Vec<usize> {
        program.outputs.iter().flat_map(Expr::columns).collect()
    }

    fn selective(&self, program: &Program) -> bool {
        outputs_fail(program)
    }

    fn in_blocks(&self, program: &Program) -> bool {
        let outputs = program.outputs.iter().zip(&program.schema.fields).zip(&self.plans);
        let mut computed = false;
        let fit = outputs.into_iter().all(|((expr, field), plan)| match plan {
            OutputPlan::Pass(input) => field.ty.nullable || !program.inputs[*input].nullable,
            OutputPlan::Computed { .. } => {
                computed = true;
                (field.ty.nullable || !expr.ty.nullable) && in_lanes(expr)
            }
        });
        // Values stand in their places only where all rows are kept.
        fit && computed == program.steps.is_empty()
    }

    fn block(&mut self, l: &mut Lowerer<'_>, program: &Program, _passed: Option<ir::Value>) -> Result<(), Unsupported> {
        for (plan, expr) in self.plans.iter().zip(&program.outputs) {
            let OutputPlan::Computed { buffer, kind, nullable } = plan else { continue };
            let (values, validity) = self.buffers[*buffer];
            l.store_block(expr, *kind, values, nullable.then_some(validity))?;
        }
        Ok(())
    }

    fn prepare(&mut self, l: &mut Lowerer<'_>) -> Result<(), Unsupported> {
        let table = pointer(l, offset_of!(Context, outputs));
        let count = self.plans.iter().filter(|plan| matches!(plan, OutputPlan::Computed { .. })).count();
        self.buffers = (0..count)
            .map(|k| {
                let mut field = |offset: usize| {
                    let at = k * size_of::<ColumnOut>() + offset;
                    l.b.ins().load(types::I64, memory(), table, at as i32)
                };
                (field(offset_of!(ColumnOut, values)), field(offset_of!(ColumnOut, validity)))
            })
            .collect();
        Ok(())
    }

    fn row(&mut self, l: &mut Lowerer<'_>, program: &Program, kept: ir::Value) -> Result<(), Unsupported> {
        // All are computed before the first is written: a row that fails leaves nothing behind.
        let vals = output_values(l, program)?;
        for (plan, val) in self.plans.iter().zip(vals) {
            let (OutputPlan::Computed { buffer, kind, nullable }, Some(val)) = (plan, val) else { continue };
            let (values, validity) = self.buffers[*buffer];
            let shift = l.int(i64::from(kind.width().trailing_zeros()));
            let offset = l.b.ins().ishl(kept, shift);
            let address = l.b.ins().iadd(values, offset);
            match (kind, val.len) {
                (Kind::Text, Some(mut len)) => {
                    if let Some(valid) = val.valid {
                        let zero = l.int(0);
                        len = l.b.ins().select(valid, len, zero);
                    }
                    let number = l.int(*buffer as i64);
                    l.call(&helpers::TEXT_OUT, &[l.context, number, val.value, len, address]);
                }
                _ => l.store(*kind, val.value, address, 0),
            }
            if *nullable {
                let valid = val.valid.unwrap_or_else(|| l.flag(true));
                let address = l.b.ins().iadd(validity, kept);
                l.b.ins().store(memory(), valid, address, 0);
            }
        }
        Ok(())
    }
}
