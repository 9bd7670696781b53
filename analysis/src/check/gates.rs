//! The versions and targets that instructions require.

use ptx_backend::input::Operand;
use ptx_isa::{ExpectedType, Gate, GateError, PtxVersion, ScalarType, Sm, TargetSet};
use text_size::{TextRange, TextSize};

use super::operands::title;
use super::{Context, Statement, warp_sync};
use crate::diagnostic::{Diagnostic, Findings};
pub(crate) use crate::externals::TARGET_GATE;
use crate::module::VERSION_GATE;

/// The version for unsigned 32-bit lengths; signed ones have always been accepted.
const SHORT_LENGTH: Gate = Gate::since(9, 0, 100);

/// Whether an operand is an unsigned 32-bit register. A variable plus an offset counts too.
fn is_unsigned_word(ctx: &Context<'_>, operand: Option<&Operand>) -> bool {
    match operand {
        Some(Operand::Reg(register)) => ctx.register_type(*register) == ScalarType::U32,
        operand => matches!(operand, Some(Operand::Symbol(..))),
    }
}

pub(super) fn check(ctx: &Context<'_>, statement: &Statement<'_>, out: &mut Findings) {
    if !ctx.gates.enabled {
        return;
    }
    if !statement.available {
        let gate = ptx_isa::gates(&statement.opcode);
        let mnemonic = statement.form.mnemonic();
        let found = ctx.gates.check(&gate, ctx.slice(statement.name), statement.name, mnemonic);
        let is_removed =
            matches!(gate.check(ctx.gates.version, ctx.gates.target), Err(GateError::Removed(_)));
        out.extend(found.map(|diagnostic| match is_removed {
            true => warp_sync::synchronise(diagnostic, statement),
            false => diagnostic,
        }));
        return;
    }
    for (i, operand) in statement.operands.iter().enumerate() {
        let range = statement.ranges[i];
        if let Some(row) = statement.rows.and_then(|rows| rows.get(i))
            && row.gate != Gate::BASE
        {
            let what = format!("operand `{}` of `{}`", row.name, title(ctx, statement));
            out.extend(ctx.gates.check_phrase(&row.gate, what, range));
        }
        if let Some(row) = statement.rows.and_then(|rows| rows.get(i))
            && let (Some(Operand::Int(value)), Some((values, gate))) = (operand, row.gated)
            && values.contains(*value)
        {
            let what = format!("value {value} of operand `{}`", row.name);
            out.extend(ctx.gates.check_phrase(&gate, what, range));
        }
        if let Some(row) = statement.rows.and_then(|rows| rows.get(i))
            && let (Some(Operand::Sink), Some(gate)) = (operand, row.gated_sink)
        {
            let what = format!("`_` as operand `{}`", row.name);
            out.extend(ctx.gates.check_phrase(&gate, what, range));
        }
        if let Some(row) = statement.rows.and_then(|rows| rows.get(i))
            && row.ty == ExpectedType::Length
            && is_unsigned_word(ctx, operand.as_ref())
        {
            let what = format!("an unsigned 32-bit register as operand `{}`", row.name);
            out.extend(ctx.gates.check_phrase(&SHORT_LENGTH, what, range));
        }
        // A vector of registers, or a single one.
        let register = match operand {
            Some(Operand::Vector(elements)) => elements.first(),
            operand => operand.as_ref(),
        };
        if let Some(Operand::Special(register)) = register {
            out.extend(ctx.gates.check(&register.gate(), register.text(), range, ""));
        }
    }
}

/// The version and targets of the module.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Gates {
    pub version: PtxVersion,
    /// The target of the file, or the one that the options select instead.
    pub target: Sm,
    /// The architecture that code is generated for: the one that the options select, or the target.
    pub architecture: Sm,
    /// Both version and target are known, so gates can be checked.
    pub enabled: bool,
}

/// The preferred target of a set for a module of this target: the next higher one.
pub(crate) fn nearest(targets: TargetSet, sm: Sm) -> Option<Sm> {
    targets.iter().find(|&other| other >= sm).or_else(|| targets.iter().next())
}

impl Gates {
    pub fn is_compiled(&self) -> bool {
        self.architecture.is_compiled()
    }

    pub fn is_open(&self, gate: &Gate) -> bool {
        !self.enabled || gate.check(self.version, self.target).is_ok()
    }

    /// Reports what the module lacks for the word at `range`.
    pub fn check(&self, gate: &Gate, word: &str, range: TextRange, mnemonic: &str) -> Option<Diagnostic> {
        if self.is_open(gate) {
            return None;
        }
        let diagnostic = self.check_phrase(gate, format!("`{word}`"), range)?;
        let removed = matches!(gate.check(self.version, self.target), Err(GateError::Removed(_)));
        Some(match mnemonic {
            "shfl" | "vote" if removed => {
                diagnostic.note(format!("use `{mnemonic}.sync` with a mask of the participating threads"))
            }
            "mad" if gate.targets.lowest() < Some(20) => diagnostic
                .note("from sm_20 on, `mad` on floating-point types requires a rounding modifier")
                .fix("add `.rn`", TextRange::at(range.start() + TextSize::of("mad"), 0.into()), ".rn"),
            _ => diagnostic,
        })
    }

    pub fn check_phrase(&self, gate: &Gate, what: String, range: TextRange) -> Option<Diagnostic> {
        if !self.enabled {
            return None;
        }
        let error = gate.check(self.version, self.target).err()?;
        let message = format!("{what} {error}");
        let diagnostic = match error {
            GateError::Version(version) => Diagnostic::new(&VERSION_GATE, range, message)
                .note(format!("the module declares `.version {}`; raise it to {version}", self.version)),
            GateError::Target(targets) => {
                let diagnostic = Diagnostic::new(&TARGET_GATE, range, message);
                match nearest(targets, self.target) {
                    Some(sm) if !sm.is_compiled() && self.is_compiled() => {
                        diagnostic.note(format!("the module targets {}, which is newer", self.target))
                    }
                    Some(sm) => diagnostic
                        .note(format!("the module targets {}; `.target {sm}` supports it", self.target)),
                    None => diagnostic.rule(),
                }
            }
            GateError::Removed(_) => Diagnostic::new(&TARGET_GATE, range, message).note(format!(
                "the module declares `.version {}` and `.target {}`",
                self.version, self.target
            )),
        };
        Some(Diagnostic { gate: Some(*gate), ..diagnostic })
    }
}
