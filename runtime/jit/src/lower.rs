//! From a program to one cranelift function: the loop over a batch's rows, its steps in order, and the state that the lowering of
//! expressions (in the files of this folder) shares.
//!
//! Values are SSA registers ([`Val`]); a row that fails jumps to one cold block that writes its index down; a row that a filter drops
//! jumps on to the next. It may not know Arrow.

mod aggregate;
mod arith;
mod call;
mod cast;
mod compare;
mod decimal;
mod expr;
mod function;
mod lanes;
mod logic;
mod registers;

use std::collections::HashMap;
use std::mem::offset_of;

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{self, Block, FuncRef, InstBuilder, MemFlagsData, StackSlotData, StackSlotKind, types};
use cranelift_frontend::FunctionBuilder;
use cranelift_module::Module;
use dfc_ir::{DataType, Expr};

pub(crate) use self::aggregate::{CACHE_ENTRIES, UpdateStates};
pub(crate) use self::decimal::Shape;
pub use self::function::outputs_fail;
pub(crate) use self::function::{Built, Ending, OutputPlan, WriteOutputs, build};
#[cfg(test)]
pub(crate) use self::lanes::in_lanes;
pub use self::logic::infallible;
use crate::context::{ColumnIn, Context};
use crate::helpers::Helper;
use crate::islands::Pool;
use crate::kind::{Kind, Val, View};

/// Why a program can't be compiled: the text of the expression concerned.
#[derive(Debug)]
pub(crate) struct Unsupported(pub(crate) String);

/// What a column number of an expression stands for.
#[derive(Clone, Copy)]
pub(crate) enum Binding {
    /// A column of the batch.
    Input(usize),
    /// A value computed before: a let, or an output that a fused aggregate reads.
    Known(Val),
}

/// An input column's addresses, loaded before the loop.
#[derive(Clone, Copy)]
struct Column {
    values: ir::Value,
    first_bit: ir::Value,
    validity: ir::Value,
    first_valid: ir::Value,
    buffers: ir::Value,
}

/// The function under construction.
pub(crate) struct Lowerer<'a> {
    pub(crate) b: FunctionBuilder<'a>,
    pub(crate) module: &'a mut dyn Module,
    helpers: HashMap<&'static str, FuncRef>,
    /// Constants and islands that were met.
    pub(crate) pool: Pool,
    /// Types of the batch's columns.
    inputs: &'a [DataType],
    columns: Vec<Column>,
    /// The batch's columns that were loaded for this row, where that dominates the current block.
    loaded: Vec<Option<Val>>,
    /// What columns mean in the expressions lowered now, and their types.
    pub(crate) bindings: Vec<(Binding, DataType)>,
    /// Whether a row may put something into the arena.
    pub(crate) uses_arena: bool,
    /// What is in doubt in the current block of rows (`lanes`): bits are set where something is.
    pub(crate) doubt: Option<ir::Value>,
    /// Where a row that fails goes.
    pub(crate) fail: Block,
    pub(crate) context: ir::Value,
    /// The current row; in a block its first.
    pub(crate) row: ir::Value,
}

/// For memory that doesn't change while a batch passes.
pub(crate) fn constant_memory() -> MemFlagsData {
    MemFlagsData::trusted().with_readonly().with_can_move()
}

/// For memory that the code itself, or a helper, writes.
pub(crate) fn memory() -> MemFlagsData {
    MemFlagsData::trusted()
}

impl<'a> Lowerer<'a> {
    /// Starts a function: `b` stands in its entry block. The columns named in `used` can be read afterwards.
    pub(crate) fn new(
        mut b: FunctionBuilder<'a>,
        module: &'a mut dyn Module,
        inputs: &'a [DataType],
        used: &[usize],
        context: ir::Value,
        row: ir::Value,
        fail: Block,
    ) -> Self {
        // Not as `constant_memory`: such loads would be moved into the loop, to where they are used.
        let table = b.ins().load(types::I64, memory(), context, offset_of!(Context, columns) as i32);
        let zero = b.ins().iconst(types::I64, 0);
        let unread = Column { values: zero, first_bit: zero, validity: zero, first_valid: zero, buffers: zero };
        let mut columns = vec![unread; inputs.len()];
        for &index in used {
            let mut field = |offset: usize| {
                let at = index * size_of::<ColumnIn>() + offset;
                b.ins().load(types::I64, memory(), table, at as i32)
            };
            columns[index] = Column {
                values: field(offset_of!(ColumnIn, values)),
                first_bit: field(offset_of!(ColumnIn, first_bit)),
                validity: field(offset_of!(ColumnIn, validity)),
                first_valid: field(offset_of!(ColumnIn, first_valid)),
                buffers: field(offset_of!(ColumnIn, buffers)),
            };
        }
        let bindings = inputs.iter().enumerate().map(|(k, ty)| (Binding::Input(k), ty.clone())).collect();
        Lowerer {
            b,
            module,
            helpers: HashMap::new(),
            pool: Pool::default(),
            loaded: vec![None; inputs.len()],
            inputs,
            columns,
            bindings,
            uses_arena: false,
            doubt: None,
            fail,
            context,
            row,
        }
    }

    /// Calls a helper; its result, if it has one.
    pub(crate) fn call(&mut self, helper: &'static Helper, args: &[ir::Value]) -> Option<ir::Value> {
        let reference = match self.helpers.get(helper.name) {
            Some(reference) => *reference,
            None => {
                let id = helper.declare(self.module);
                let reference = self.module.declare_func_in_func(id, self.b.func);
                self.helpers.insert(helper.name, reference);
                reference
            }
        };
        let call = self.b.ins().call(reference, args);
        self.b.inst_results(call).first().copied()
    }

    /// An i64 constant.
    pub(crate) fn int(&mut self, value: i64) -> ir::Value {
        self.b.ins().iconst(types::I64, value)
    }

    /// An i128 constant.
    pub(crate) fn wide(&mut self, value: i128) -> ir::Value {
        let low = self.int(value as i64);
        if i128::from(value as i64) == value {
            return self.b.ins().sextend(types::I128, low);
        }
        let high = self.int((value >> 64) as i64);
        self.b.ins().iconcat(low, high)
    }

    /// A constant of an integer register type.
    pub(crate) fn constant(&mut self, register: ir::Type, value: i128) -> ir::Value {
        if register == types::I128 { self.wide(value) } else { self.b.ins().iconst(register, value as i64) }
    }

    /// An i8 constant.
    pub(crate) fn flag(&mut self, value: bool) -> ir::Value {
        self.b.ins().iconst(types::I8, i64::from(value))
    }

    /// `flag`, or a block's flags, negated.
    pub(crate) fn not(&mut self, flag: ir::Value) -> ir::Value {
        if self.b.func.dfg.value_type(flag).is_vector() {
            return self.b.ins().bnot(flag);
        }
        let one = self.flag(true);
        self.b.ins().bxor(flag, one)
    }

    /// Valid where both are.
    pub(crate) fn both(&mut self, a: Option<ir::Value>, b: Option<ir::Value>) -> Option<ir::Value> {
        match (a, b) {
            (Some(a), Some(b)) if a == b => Some(a),
            (Some(a), Some(b)) => Some(self.b.ins().band(a, b)),
            (one, other) => one.or(other),
        }
    }

    /// Rejects the row where `bad`, unless the value concerned is null.
    pub(crate) fn fail_if(&mut self, bad: ir::Value, valid: Option<ir::Value>) {
        let bad = match valid {
            Some(valid) => self.b.ins().band(bad, valid),
            None => bad,
        };
        let go_on = self.b.create_block();
        self.b.ins().brif(bad, self.fail, &[], go_on, &[]);
        self.b.switch_to_block(go_on);
    }

    /// Room on the stack; its address.
    pub(crate) fn stack(&mut self, bytes: usize) -> ir::Value {
        let slot = self.b.create_sized_stack_slot(StackSlotData::new(StackSlotKind::ExplicitSlot, bytes as u32, 4));
        self.b.ins().stack_addr(types::I64, slot, 0)
    }

    /// Bit `first + row` of a bitmap, as an i8.
    fn bit(&mut self, bitmap: ir::Value, first: ir::Value) -> ir::Value {
        let number = self.b.ins().iadd(first, self.row);
        let three = self.int(3);
        let byte = self.b.ins().ushr(number, three);
        let address = self.b.ins().iadd(bitmap, byte);
        let byte = self.b.ins().uload8(types::I64, constant_memory(), address, 0);
        let seven = self.int(7);
        let distance = self.b.ins().band(number, seven);
        let moved = self.b.ins().ushr(byte, distance);
        let low = self.b.ins().ireduce(types::I8, moved);
        let one = self.flag(true);
        self.b.ins().band(low, one)
    }

    /// The address of the current row's element in an array.
    fn element(&mut self, base: ir::Value, width: usize) -> ir::Value {
        let shift = self.int(i64::from(width.trailing_zeros()));
        let offset = self.b.ins().ishl(self.row, shift);
        self.b.ins().iadd(base, offset)
    }

    /// Whether the current row of a column of the batch is not null.
    pub(crate) fn input_valid(&mut self, index: usize) -> Option<ir::Value> {
        let column = self.columns[index];
        self.inputs[index].nullable.then(|| self.bit(column.validity, column.first_valid))
    }

    /// The current row's value of a column of the batch.
    fn input(&mut self, index: usize) -> Result<Val, Unsupported> {
        if let Some(known) = self.loaded[index] {
            return Ok(known);
        }
        let kind = Kind::of(&self.inputs[index].ty)
            .ok_or_else(|| Unsupported(format!("a column of type {}", self.inputs[index])))?;
        let column = self.columns[index];
        let valid = self.input_valid(index);
        let value = match kind {
            Kind::Text => {
                let val = self.view(index, valid);
                self.loaded[index] = Some(val);
                return Ok(val);
            }
            Kind::Bool => self.bit(column.values, column.first_bit),
            _ => {
                let address = self.element(column.values, kind.width());
                self.load(kind, address, constant_memory())
            }
        };
        let val = Val::plain(value).with_valid(valid);
        self.loaded[index] = Some(val);
        Ok(val)
    }

    /// Loads a value of any kind but text from where it is stored at its width.
    pub(crate) fn load(&mut self, kind: Kind, address: ir::Value, flags: MemFlagsData) -> ir::Value {
        let ins = self.b.ins();
        match kind {
            Kind::Int(int) => match (int.bits(), int.signed()) {
                (8, true) => ins.sload8(types::I64, flags, address, 0),
                (8, false) => ins.uload8(types::I64, flags, address, 0),
                (16, true) => ins.sload16(types::I64, flags, address, 0),
                (16, false) => ins.uload16(types::I64, flags, address, 0),
                (32, true) => ins.sload32(flags, address, 0),
                (32, false) => ins.uload32(flags, address, 0),
                _ => ins.load(types::I64, flags, address, 0),
            },
            Kind::Float32 => {
                let narrow = ins.load(types::F32, flags, address, 0);
                self.b.ins().fpromote(types::F64, narrow)
            }
            Kind::Float64 => ins.load(types::F64, flags, address, 0),
            Kind::Date => ins.sload32(flags, address, 0),
            Kind::Bool => ins.load(types::I8, flags, address, 0),
            Kind::Wide => ins.load(types::I128, flags, address, 0),
            Kind::Short | Kind::Micros | Kind::Text => ins.load(types::I64, flags, address, 0),
        }
    }

    /// Stores a value of any kind but text at its width.
    pub(crate) fn store(&mut self, kind: Kind, value: ir::Value, address: ir::Value, offset: i32) {
        let flags = memory();
        match (kind, kind.width()) {
            (Kind::Float32, _) => {
                let narrow = self.b.ins().fdemote(types::F32, value);
                self.b.ins().store(flags, narrow, address, offset);
            }
            (Kind::Bool, _) | (_, 8 | 16) => {
                self.b.ins().store(flags, value, address, offset);
            }
            (_, 1) => {
                self.b.ins().istore8(flags, value, address, offset);
            }
            (_, 2) => {
                self.b.ins().istore16(flags, value, address, offset);
            }
            _ => {
                self.b.ins().istore32(flags, value, address, offset);
            }
        }
    }

    /// Reads the current row's 16-byte view: without a branch, and empty where null.
    fn view(&mut self, index: usize, valid: Option<ir::Value>) -> Val {
        let column = self.columns[index];
        let view = self.element(column.values, 16);
        let mut len = self.b.ins().uload32(constant_memory(), view, 0);
        let zero = self.int(0);
        if let Some(valid) = valid {
            len = self.b.ins().select(valid, len, zero);
        }
        let inline = self.int(crate::context::INLINE as i64);
        let long = self.b.ins().icmp(IntCC::UnsignedGreaterThan, len, inline);
        // The bytes of a short text stand where a long one has its buffer's number: those must not be used as one.
        let number = self.b.ins().uload32(constant_memory(), view, 8);
        let number = self.b.ins().select(long, number, zero);
        let three = self.int(3);
        let entry = self.b.ins().ishl(number, three);
        let entry = self.b.ins().iadd(column.buffers, entry);
        let buffer = self.b.ins().load(types::I64, constant_memory(), entry, 0);
        let offset = self.b.ins().uload32(constant_memory(), view, 12);
        let far = self.b.ins().iadd(buffer, offset);
        let four = self.int(4);
        let near = self.b.ins().iadd(view, four);
        let value = self.b.ins().select(long, far, near);
        let (mut head, tail) = self.view_words(index);
        if let Some(valid) = valid {
            head = self.b.ins().select(valid, head, zero);
        }
        let view = View { head, tail: Some(tail), constant: None };
        Val { view: Some(view), ..Val::text(value, len) }.with_valid(valid)
    }

    /// The current row's view in a text column, as two words.
    pub(crate) fn view_words(&mut self, input: usize) -> (ir::Value, ir::Value) {
        let view = self.element(self.columns[input].values, 16);
        let low = self.b.ins().load(types::I64, constant_memory(), view, 0);
        let high = self.b.ins().load(types::I64, constant_memory(), view, 8);
        (low, high)
    }

    /// What is loaded, to be restored when a branch is left.
    pub(crate) fn scope(&self) -> Vec<Option<Val>> {
        self.loaded.clone()
    }

    /// Forgets what was loaded since.
    pub(crate) fn leave(&mut self, scope: Vec<Option<Val>>) {
        self.loaded = scope;
    }

    /// A block that several branches hand a value of this kind to.
    pub(crate) fn meeting(&mut self, kind: Kind, nullable: bool) -> Meeting {
        let block = self.b.create_block();
        let value = self.b.append_block_param(block, kind.register());
        let len = (kind == Kind::Text).then(|| self.b.append_block_param(block, types::I64));
        let valid = nullable.then(|| self.b.append_block_param(block, types::I8));
        Meeting { block, val: Val { len, valid, ..Val::plain(value) } }
    }

    /// Jumps there with this value.
    pub(crate) fn meet(&mut self, meeting: &Meeting, val: Val) {
        let mut args: Vec<ir::BlockArg> = vec![val.value.into()];
        if meeting.val.len.is_some() {
            let len = val.len.unwrap_or_else(|| self.int(0));
            args.push(len.into());
        }
        if meeting.val.valid.is_some() {
            let valid = val.valid.unwrap_or_else(|| self.flag(true));
            args.push(valid.into());
        }
        self.b.ins().jump(meeting.block, &args);
    }

    /// Goes on there.
    pub(crate) fn arrive(&mut self, meeting: &Meeting) -> Val {
        self.b.switch_to_block(meeting.block);
        meeting.val
    }

    /// Null of a kind.
    pub(crate) fn null(&mut self, kind: Kind) -> Val {
        let value = match kind.register() {
            types::F64 => self.b.ins().f64const(0.0),
            types::I128 => self.wide(0),
            // An address that is not null makes an empty text readable.
            types::I64 => self.int(1),
            register => self.b.ins().iconst(register, 0),
        };
        let len = (kind == Kind::Text).then(|| self.int(0));
        let valid = Some(self.flag(false));
        Val { len, valid, ..Val::plain(value) }
    }
}

/// See [`Lowerer::meeting`].
pub(crate) struct Meeting {
    pub(crate) block: Block,
    val: Val,
}

/// The text of an expression, for reports.
pub(crate) fn text_of(expr: &Expr) -> String {
    dfc_ir::text::expr(expr, &|column| format!("#{column}"))
}
