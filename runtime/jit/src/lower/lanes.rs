//! Sixteen rows at a time in vector registers: which expressions can be computed so, and how.
//!
//! A block never rejects a row and knows no order of evaluation. What may have no value is computed all the same, and whether a row
//! of the block went wrong is noted in one register ([`Lowerer::doubt`]): then the block counts for nothing, and the loop over rows goes
//! on from its first row, with its errors. So everything here must be free of effects, and nothing is decided here about a row.
//! What is in [`CLASSES`] and [`in_lanes`] is what arrow's kernels do faster than a loop over rows; the rest stays with the rows.

use cranelift_codegen::ir::{self, ConstantData, Endianness, InstBuilder, MemFlagsData, types};
use dfc_ir::types::IntType;
use dfc_ir::{BinaryOp, Expr, ExprKind, UnaryOp, Value};

use super::call::short_start;
use super::compare::codes;
use super::expr::CHAIN;
use super::{Lowerer, Unsupported, text_of};
use crate::context::{INLINE, inline_view};
use crate::kind::{Kind, Val};

/// Rows of a block: as many as a vector register has bytes.
pub(crate) const ROWS: usize = 16;

/// How operators over these operands are computed in blocks.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    /// Three-valued logic.
    Logic,
    /// A comparison of all lanes.
    Compare,
    /// A comparison of views.
    View,
    /// Float arithmetic but division; an infinite result, or none, is in doubt.
    Float,
    /// A division of floats: as other arithmetic, but what a null is divided by would be in doubt.
    Ratio,
    /// A sum of integers of 64 bits; an overflow is in doubt.
    Sum,
}

/// Operators, the operands' kind, and the way.
type Class = (&'static [BinaryOp], fn(Kind) -> bool, Way);

const CLASSES: &[Class] = {
    use BinaryOp::*;
    &[
        (&[And, Or], |kind| matches!(kind, Kind::Bool), Way::Logic),
        (&[Eq, Ne, Lt, Le, Gt, Ge], |kind| lane(kind).is_some(), Way::Compare),
        (&[Eq, Ne], |kind| matches!(kind, Kind::Text), Way::View),
        (&[Add, Sub, Mul], Kind::is_float, Way::Float),
        (&[Div], Kind::is_float, Way::Ratio),
        (&[Add, Sub], |kind| matches!(kind, Kind::Int(IntType::I64)), Way::Sum),
    ]
};

fn way(op: BinaryOp, left: &Expr, right: &Expr) -> Option<Way> {
    let (left, right) = (Kind::of(&left.ty.ty)?, Kind::of(&right.ty.ty)?);
    let class = CLASSES.iter().find(|(ops, fits, _)| ops.contains(&op) && fits(left))?;
    (left == right).then_some(class.2)
}

/// A register of values as they stand in memory; `None` for what doesn't stand there in lanes.
pub(super) fn lane(kind: Kind) -> Option<ir::Type> {
    Some(match kind {
        Kind::Int(int) => match int.bits() {
            8 => types::I8X16,
            16 => types::I16X8,
            32 => types::I32X4,
            _ => types::I64X2,
        },
        Kind::Float32 => types::F32X4,
        Kind::Float64 => types::F64X2,
        Kind::Short | Kind::Micros => types::I64X2,
        Kind::Date => types::I32X4,
        Kind::Bool | Kind::Wide | Kind::Text => return None,
    })
}

/// Whether an expression over columns of the batch can be computed in blocks.
pub(crate) fn in_lanes(expr: &Expr) -> bool {
    let kind = Kind::of(&expr.ty.ty);
    let fits = kind.is_some_and(|kind| kind == Kind::Bool || lane(kind).is_some());
    fits && match &expr.kind {
        ExprKind::Literal(value) => *value != Value::Null,
        ExprKind::Column(_) => true,
        ExprKind::IsNull(operand) => matches!(operand.kind, ExprKind::Column(_)),
        ExprKind::Unary(UnaryOp::Not, operand) => in_lanes(operand),
        ExprKind::Unary(UnaryOp::Neg, operand) => kind.is_some_and(Kind::is_float) && in_lanes(operand),
        ExprKind::Binary(op, left, right) => match way(*op, left, right) {
            Some(Way::View) => view_test(expr).is_some(),
            Some(Way::Logic) => in_lanes(left) && in_lanes(right),
            // Decimals of two scales have no lanes in common.
            Some(Way::Compare) => left.ty.ty == right.ty.ty && in_lanes(left) && in_lanes(right),
            Some(way) => {
                let steady = way != Way::Ratio || !expr.ty.nullable;
                steady && expr.ty.ty == left.ty.ty && in_lanes(left) && in_lanes(right)
            }
            None => false,
        },
        ExprKind::Call(name, args) => short_start(name, args).is_some() && view_test(expr).is_some(),
        ExprKind::InList(operand, values) if values.len() <= CHAIN => match Kind::of(&operand.ty.ty) {
            Some(Kind::Text) => is_column(operand) && values.iter().all(|value| short_text(value).is_some()),
            Some(kind) => lane(kind).is_some() && in_lanes(operand),
            None => false,
        },
        _ => false,
    }
}

/// Whether the bits that `mask` has are those of `wanted` in a column's views.
struct ViewTest {
    column: usize,
    mask: u128,
    wanted: u128,
}

/// A condition that a text column's views answer alone; `!=` is answered as `==`.
fn view_test(expr: &Expr) -> Option<ViewTest> {
    match &expr.kind {
        ExprKind::Binary(_, left, right) => match (&left.kind, &right.kind) {
            (ExprKind::Column(column), ExprKind::Literal(value))
            | (ExprKind::Literal(value), ExprKind::Column(column)) => same_text(*column, value),
            _ => None,
        },
        ExprKind::Call(name, args) => {
            let (start, ExprKind::Column(column)) = (short_start(name, args)?, &args.first()?.kind) else {
                return None;
            };
            // Further bytes of a long text stand elsewhere.
            if start.len() > crate::context::HEAD {
                return None;
            }
            let mask = ((1u128 << (8 * start.len())) - 1) << 32;
            Some(ViewTest { column: *column, mask, wanted: inline_view(start) & mask })
        }
        _ => None,
    }
}

fn same_text(column: usize, value: &Value<'_>) -> Option<ViewTest> {
    Some(ViewTest { column, mask: u128::MAX, wanted: inline_view(short_text(value)?) })
}

/// A text that stands in its view.
fn short_text<'v>(value: &'v Value<'_>) -> Option<&'v [u8]> {
    let bytes = match value {
        Value::Str(text) => text.as_bytes(),
        Value::Bytes(bytes) => bytes,
        _ => return None,
    };
    (bytes.len() <= INLINE).then_some(bytes)
}

fn is_column(expr: &Expr) -> bool {
    matches!(expr.kind, ExprKind::Column(_))
}

/// For columns: a register of them may stand anywhere.
fn column_memory() -> MemFlagsData {
    MemFlagsData::new().with_notrap().with_readonly().with_can_move()
}

/// For outputs.
pub(crate) fn output_memory() -> MemFlagsData {
    MemFlagsData::new().with_notrap()
}

impl Lowerer<'_> {
    /// The values of a block as an array's; `kind` is the expression's.
    pub(crate) fn store_block(
        &mut self,
        expr: &Expr,
        kind: Kind,
        values: ir::Value,
        validity: Option<ir::Value>,
    ) -> Result<(), Unsupported> {
        let valid = if kind == Kind::Bool {
            let val = self.mask(expr)?;
            let (at, ones) = (self.element(values, 1), self.ones());
            let bytes = self.b.ins().band(val.value, ones);
            self.b.ins().store(output_memory(), bytes, at, 0);
            val.valid
        } else {
            let lane = lane(kind).ok_or_else(|| Unsupported(text_of(expr)))?;
            let at = self.element(values, kind.width());
            for group in 0..groups(lane) {
                let register = self.finite_lanes(expr, lane, group)?;
                self.b.ins().store(output_memory(), register, at, group * 16);
            }
            self.block_valid(expr)
        };
        if let Some(validity) = validity {
            let (at, ones) = (self.element(validity, 1), self.ones());
            let bytes = valid.map_or(ones, |valid| self.b.ins().band(valid, ones));
            self.b.ins().store(output_memory(), bytes, at, 0);
        }
        Ok(())
    }

    /// A bool of a block: a mask of a byte a row, all of whose bits are set where it is true.
    pub(crate) fn mask(&mut self, expr: &Expr) -> Result<Val, Unsupported> {
        let unsupported = || Unsupported(text_of(expr));
        Ok(match &expr.kind {
            ExprKind::Literal(value) => {
                let all = if *value == Value::Bool(true) { u128::MAX } else { 0 };
                Val::plain(self.vector(types::I8X16, all))
            }
            ExprKind::Column(index) => {
                let column = self.columns[*index];
                let value = self.bits(column.values, column.first_bit);
                Val::plain(value).with_valid(self.column_valid(*index))
            }
            ExprKind::IsNull(operand) => {
                let ExprKind::Column(index) = operand.kind else { return Err(unsupported()) };
                Val::plain(match self.column_valid(index) {
                    Some(valid) => self.not(valid),
                    None => self.vector(types::I8X16, 0),
                })
            }
            ExprKind::Unary(_, operand) => {
                let val = self.mask(operand)?;
                let value = self.not(val.value);
                Val::plain(value).with_valid(val.valid)
            }
            ExprKind::Binary(op, left, right) => match way(*op, left, right).ok_or_else(unsupported)? {
                Way::Logic => {
                    let (left, right) = (self.mask(left)?, self.mask(right)?);
                    self.combine(*op == BinaryOp::And, left, right)
                }
                Way::View => {
                    let test = view_test(expr).ok_or_else(unsupported)?;
                    let same = self.views(&test);
                    let value = if *op == BinaryOp::Ne { self.not(same) } else { same };
                    Val::plain(value).with_valid(self.column_valid(test.column))
                }
                _ => {
                    let kind = Kind::of(&left.ty.ty).ok_or_else(unsupported)?;
                    let value = self.compare_lanes(*op, kind, left, right)?;
                    Val::plain(value).with_valid(self.strict(left, right))
                }
            },
            ExprKind::Call(..) => {
                let test = view_test(expr).ok_or_else(unsupported)?;
                let value = self.views(&test);
                Val::plain(value).with_valid(self.column_valid(test.column))
            }
            ExprKind::InList(operand, values) => {
                let mut any = self.vector(types::I8X16, 0);
                for value in values {
                    let equal = match &operand.kind {
                        ExprKind::Column(column) if Kind::of(&operand.ty.ty) == Some(Kind::Text) => {
                            let test = same_text(*column, value).ok_or_else(unsupported)?;
                            self.views(&test)
                        }
                        _ => {
                            let kind = Kind::of(&operand.ty.ty).ok_or_else(unsupported)?;
                            let literal = Expr::literal(value.clone(), operand.ty.clone());
                            self.compare_lanes(BinaryOp::Eq, kind, operand, &literal)?
                        }
                    };
                    any = self.b.ins().bor(any, equal);
                }
                Val::plain(any).with_valid(self.block_valid(operand))
            }
            _ => return Err(unsupported()),
        })
    }

    /// One register of an expression's values, floats of any sort: group number `group` of the block.
    fn lanes(&mut self, expr: &Expr, lane: ir::Type, group: i32) -> Result<ir::Value, Unsupported> {
        let unsupported = || Unsupported(text_of(expr));
        Ok(match &expr.kind {
            ExprKind::Literal(value) => {
                let scalar = match (value, lane.lane_type()) {
                    (Value::Float(v), types::F32) => self.b.ins().f32const(*v as f32),
                    (Value::Float(v), _) => self.b.ins().f64const(*v),
                    (Value::Int(v) | Value::Decimal(v), register) => {
                        self.b.ins().iconst(register, cut(*v as i64, register))
                    }
                    (Value::Date(v), register) => self.b.ins().iconst(register, cut(i64::from(*v), register)),
                    (Value::Time(v) | Value::DateTime(v) | Value::Timestamp(v) | Value::Duration(v), register) => {
                        self.b.ins().iconst(register, *v)
                    }
                    _ => return Err(unsupported()),
                };
                self.b.ins().splat(lane, scalar)
            }
            ExprKind::Column(index) => {
                let at = self.element(self.columns[*index].values, lane.lane_type().bytes() as usize);
                self.b.ins().load(lane, column_memory(), at, group * 16)
            }
            ExprKind::Unary(_, operand) => {
                let operand = self.lanes(operand, lane, group)?;
                self.b.ins().fneg(operand)
            }
            ExprKind::Binary(op, left, right) => {
                let (l, way) = (self.lanes(left, lane, group)?, way(*op, left, right));
                let r = match way {
                    // What is divided by infinity is finite again.
                    Some(Way::Ratio) => self.finite_lanes(right, lane, group)?,
                    _ => self.lanes(right, lane, group)?,
                };
                match (way, op) {
                    (Some(Way::Sum), _) => self.sum(*op, l, r),
                    (_, BinaryOp::Add) => self.b.ins().fadd(l, r),
                    (_, BinaryOp::Sub) => self.b.ins().fsub(l, r),
                    (_, BinaryOp::Mul) => self.b.ins().fmul(l, r),
                    (_, BinaryOp::Div) => self.b.ins().fdiv(l, r),
                    _ => return Err(unsupported()),
                }
            }
            _ => return Err(unsupported()),
        })
    }

    /// One register of an expression's values, which is in doubt where one is infinite or no number. What goes wrong before the last
    /// operator of sums and products stays so to the end.
    pub(super) fn finite_lanes(&mut self, expr: &Expr, lane: ir::Type, group: i32) -> Result<ir::Value, Unsupported> {
        let value = self.lanes(expr, lane, group)?;
        if !lane.lane_type().is_float() || matches!(expr.kind, ExprKind::Literal(_) | ExprKind::Column(_)) {
            return Ok(value);
        }
        let infinity = match lane {
            types::F32X4 => self.b.ins().f32const(f32::INFINITY),
            _ => self.b.ins().f64const(f64::INFINITY),
        };
        let infinity = self.b.ins().splat(lane, infinity);
        let size = self.b.ins().fabs(value);
        let bad = self.b.ins().fcmp(ir::condcodes::FloatCC::UnorderedOrGreaterThanOrEqual, size, infinity);
        self.doubts(bad);
        Ok(value)
    }

    fn sum(&mut self, op: BinaryOp, l: ir::Value, r: ir::Value) -> ir::Value {
        let value = if op == BinaryOp::Add { self.b.ins().iadd(l, r) } else { self.b.ins().isub(l, r) };
        // It overflowed where the result's sign is neither what the left operand's says nor what the right one's does.
        let left = self.b.ins().bxor(l, value);
        let right = if op == BinaryOp::Add { self.b.ins().bxor(r, value) } else { self.b.ins().bxor(l, r) };
        let signs = self.b.ins().band(left, right);
        let zero = self.vector(types::I64X2, 0);
        let bad = self.b.ins().icmp(ir::condcodes::IntCC::SignedLessThan, signs, zero);
        self.doubts(bad);
        value
    }

    /// Notes that the block is in doubt if any bit is set.
    fn doubts(&mut self, bad: ir::Value) {
        let bad = self.seen_as(types::I8X16, bad);
        self.doubt = Some(match self.doubt {
            Some(before) => self.b.ins().bor(before, bad),
            None => bad,
        });
    }

    /// The mask of a comparison; validity aside.
    fn compare_lanes(&mut self, op: BinaryOp, kind: Kind, left: &Expr, right: &Expr) -> Result<ir::Value, Unsupported> {
        let (Some(lane), Some((float, signed, unsigned))) = (lane(kind), codes(op)) else {
            return Err(Unsupported(text_of(left)));
        };
        let code = if matches!(kind, Kind::Int(int) if !int.signed()) { unsigned } else { signed };
        let mut masks = Vec::new();
        for group in 0..groups(lane) {
            let (l, r) = (self.finite_lanes(left, lane, group)?, self.finite_lanes(right, lane, group)?);
            masks.push(match kind.is_float() {
                true => self.b.ins().fcmp(float, l, r),
                false => self.b.ins().icmp(code, l, r),
            });
        }
        Ok(self.narrow(masks))
    }

    /// The mask of the rows whose view has these bits.
    fn views(&mut self, test: &ViewTest) -> ir::Value {
        let at = self.element(self.columns[test.column].values, 16);
        let (wanted, mask) = (self.vector(types::I32X4, test.wanted), self.vector(types::I32X4, test.mask));
        let all = self.vector(types::I32X4, u128::MAX);
        let mut masks = Vec::new();
        for four in 0..ROWS as i32 / 4 {
            let same: Vec<ir::Value> = (0..4)
                .map(|row| {
                    let mut view = self.b.ins().load(types::I32X4, column_memory(), at, (four * 4 + row) * 16);
                    if test.mask != u128::MAX {
                        view = self.b.ins().band(view, mask);
                    }
                    self.b.ins().icmp(ir::condcodes::IntCC::Equal, view, wanted)
                })
                .collect();
            // A byte for each fourth of a view: a row's four are one lane again.
            let fourths = self.narrow(same);
            let rows = self.seen_as(types::I32X4, fourths);
            masks.push(self.b.ins().icmp(ir::condcodes::IntCC::Equal, rows, all));
        }
        self.narrow(masks)
    }

    /// The masks of a block's groups, all lanes 0 or all ones, as one mask of a byte a lane.
    fn narrow(&mut self, mut masks: Vec<ir::Value>) -> ir::Value {
        // A lane of 64 bits is two of 32 at first, and stays two until the last step.
        let mut lane = types::I32X4;
        if masks.len() == 2 {
            lane = types::I16X8;
        }
        while masks.len() > 1 {
            masks = masks
                .chunks(2)
                .map(|pair| {
                    let [low, high] = [pair[0], pair[pair.len() - 1]].map(|mask| self.seen_as(lane, mask));
                    self.b.ins().snarrow(low, high)
                })
                .collect();
            lane = types::I16X8;
        }
        masks[0]
    }

    /// The same bits in other lanes.
    fn seen_as(&mut self, lanes: ir::Type, value: ir::Value) -> ir::Value {
        if self.b.func.dfg.value_type(value) == lanes {
            return value;
        }
        self.b.ins().bitcast(lanes, MemFlagsData::new().with_endianness(Endianness::Little), value)
    }

    /// Where an expression has a value, as a mask; `None`: everywhere.
    pub(super) fn block_valid(&mut self, expr: &Expr) -> Option<ir::Value> {
        match &expr.kind {
            ExprKind::Column(index) => self.column_valid(*index),
            ExprKind::Unary(_, operand) => self.block_valid(operand),
            ExprKind::Binary(_, left, right) => self.strict(left, right),
            _ => None,
        }
    }

    fn strict(&mut self, left: &Expr, right: &Expr) -> Option<ir::Value> {
        let (left, right) = (self.block_valid(left), self.block_valid(right));
        self.both(left, right)
    }

    fn column_valid(&mut self, index: usize) -> Option<ir::Value> {
        let column = self.columns[index];
        self.inputs[index].nullable.then(|| self.bits(column.validity, column.first_valid))
    }

    /// The block's bits of a bitmap as a mask.
    fn bits(&mut self, bitmap: ir::Value, first: ir::Value) -> ir::Value {
        let number = self.b.ins().iadd(first, self.row);
        let [three, seven, last, sixteen] = [3, 7, ROWS as i64 - 1, 16].map(|number| self.int(number));
        let byte = self.b.ins().ushr(number, three);
        let at = self.b.ins().iadd(bitmap, byte);
        let low = self.b.ins().uload16(types::I64, column_memory(), at, 0);
        // The third byte, if there are bits in it: else the second once more, which then is moved out.
        let end = self.b.ins().iadd(number, last);
        let end = self.b.ins().ushr(end, three);
        let at = self.b.ins().iadd(bitmap, end);
        let high = self.b.ins().uload8(types::I64, column_memory(), at, 0);
        let high = self.b.ins().ishl(high, sixteen);
        let all = self.b.ins().bor(low, high);
        let distance = self.b.ins().band(number, seven);
        let moved = self.b.ins().ushr(all, distance);
        let bits = self.b.ins().ireduce(types::I16, moved);
        let bits = self.b.ins().splat(types::I16X8, bits);
        let bytes = self.seen_as(types::I8X16, bits);
        let halves: Vec<u8> = (0..ROWS as u8).map(|row| row / 8).collect();
        let halves = self.b.func.dfg.immediates.push(ConstantData::from(halves));
        let bytes = self.b.ins().shuffle(bytes, bytes, halves);
        let single = self.vector(types::I8X16, 0x8040_2010_0804_0201_8040_2010_0804_0201);
        let bytes = self.b.ins().band(bytes, single);
        self.b.ins().icmp(ir::condcodes::IntCC::Equal, bytes, single)
    }

    /// A constant, its first byte in the lowest.
    pub(crate) fn vector(&mut self, lanes: ir::Type, bits: u128) -> ir::Value {
        let constant = self.b.func.dfg.constants.insert(ConstantData::from(&bits.to_le_bytes()[..]));
        self.b.ins().vconst(lanes, constant)
    }

    /// 1 in each byte.
    fn ones(&mut self) -> ir::Value {
        self.vector(types::I8X16, u128::from_le_bytes([1; ROWS]))
    }
}

/// Registers that a block takes.
pub(super) fn groups(lane: ir::Type) -> i32 {
    ROWS as i32 / lane.lane_count() as i32
}

/// A number as a constant of an integer register: without the bits that it has no room for.
fn cut(value: i64, register: ir::Type) -> i64 {
    match register.bits() {
        64 => value,
        bits => value & ((1 << bits) - 1),
    }
}
