//! Texture reads with derivatives that have no machine instruction: from sm_90 on, a driver function executes each of
//! them.

use super::param;
use crate::input::{Env, Instr, Operand, Param};
use crate::ori::op::TexDims;
use ptx_isa::{FormId, Mod, ScalarType};

/// One of these functions.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Gradient {
    pub dims: TexDims,
    /// The type of the texels; `F16` for `.f16x2` too.
    pub texel: ScalarType,
    /// The statement asks whether the texels are resident. The function always returns that.
    pub residency: bool,
    /// The module is in independent texture mode, where the function takes a sampler.
    pub independent: bool,
    pub offsets: bool,
    pub compares: bool,
}

/// Geometries, with their names and numbers of coordinates.
const GEOMETRIES: [(Mod, TexDims, &str, usize); 7] = [
    (Mod::D1d, TexDims::D1, "1d", 1),
    (Mod::D2d, TexDims::D2, "2d", 2),
    (Mod::D3d, TexDims::D3, "3d", 3),
    (Mod::A1d, TexDims::A1, "a1d", 1),
    (Mod::A2d, TexDims::A2, "a2d", 2),
    (Mod::Cube, TexDims::Cube, "cube", 3),
    (Mod::Acube, TexDims::Cubes, "acube", 3),
];
const TEXELS: [(ScalarType, &str); 4] =
    [(ScalarType::F32, "f32"), (ScalarType::U32, "u32"), (ScalarType::S32, "s32"), (ScalarType::F16, "f16")];
/// The number of operands before the derivatives: the texels and the coordinates.
const DERIVATIVES: usize = 2;

impl Gradient {
    /// The number of functions for modules of one texture mode.
    pub const COUNT: u16 = (GEOMETRIES.len() * TEXELS.len() * 8) as u16;

    /// The function for a statement; `None` if the machine has an instruction for it.
    pub fn of(env: &Env, instr: &Instr) -> Option<Gradient> {
        let has = |modifier| instr.opcode.has(modifier);
        if instr.opcode.form != FormId::Tex || !has(Mod::Grad) {
            return None;
        }
        let &(_, dims, _, count) = GEOMETRIES.iter().find(|(geometry, ..)| has(*geometry))?;
        let behind = instr.operands.get(DERIVATIVES + 2..).unwrap_or_default();
        let offsets = matches!(behind, [Operand::Vector(_), ..]);
        let compared = behind.get(usize::from(offsets));
        let compares = compared.is_some_and(is_reference);
        let texel = match instr.opcode.types().next()? {
            ScalarType::F16x2 => ScalarType::F16,
            texel => texel,
        };
        let found = Gradient {
            dims,
            texel,
            residency: matches!(instr.operands.first(), Some(Operand::Pair(_))),
            independent: env.independent_samplers,
            offsets,
            compares,
        };
        (count == 3 || compares).then_some(found)
    }

    /// The function with a number, among those of one texture mode.
    pub fn numbered(number: u16, independent: bool) -> Option<Gradient> {
        let index = usize::from(number);
        let flag = |bit: usize| index >> bit & 1 == 1;
        let (_, dims, ..) = *GEOMETRIES.get(index / 8 / TEXELS.len())?;
        let (texel, _) = TEXELS[index / 8 % TEXELS.len()];
        Some(Gradient { dims, texel, residency: flag(2), independent, offsets: flag(1), compares: flag(0) })
    }

    /// The name of the function in the driver.
    pub fn name(self) -> String {
        let geometry =
            GEOMETRIES.iter().find(|(_, dims, ..)| *dims == self.dims).map_or("", |(_, _, name, _)| name);
        let texel = TEXELS.iter().find(|(texel, _)| *texel == self.texel).map_or("", |(_, name)| name);
        let part = |is: bool, name: &'static str| if is { name } else { "" };
        format!(
            "__cuda_syscall_tex_grad{}_{geometry}_v4_{texel}_f32{}{}{}",
            part(self.residency, "_pred"),
            part(self.independent, "_texmode_independent"),
            part(self.offsets, "_offset"),
            part(self.compares, "_depth_compare"),
        )
    }

    /// The parameters: the handles, the vectors (coordinates, both derivatives, offsets), and the reference value.
    pub fn params(self) -> Vec<Param> {
        let handles = [param(ScalarType::U64, 8), param(ScalarType::U64, 8)];
        let vector = || param(ScalarType::B8, VECTOR);
        let mut params = handles[..1 + usize::from(self.independent)].to_vec();
        params.extend((0..3 + usize::from(self.offsets)).map(|_| vector()));
        params.extend(self.compares.then(|| param(ScalarType::F32, 4)));
        params
    }

    /// The results: whether the texels are resident, then the texels. Halves are in pairs.
    pub fn returns(self) -> Vec<Param> {
        let texels = if self.texel == ScalarType::F16 { 2 } else { 4 };
        (0..1 + texels).map(|_| param(ScalarType::B32, 4)).collect()
    }
}

/// The size of a vector in bytes, for any number of elements.
const VECTOR: u32 = 16;

/// Whether ptxas treats an operand of a texture read as the reference value of a depth comparison. This is the first
/// register or floating-point constant after the offsets, even where it could be an offset without braces. ptxas
/// ignores an integer.
pub(crate) const fn is_reference(operand: &Operand) -> bool {
    matches!(operand, Operand::Reg(_) | Operand::F32(_) | Operand::F64(_))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::driver::DriverFunction;

    #[test]
    fn vectors_are_aligned_and_the_last_are_on_the_stack() {
        use crate::abi::{ArgumentPlace, Results};
        let gradient = Gradient {
            dims: TexDims::A2,
            texel: ScalarType::F32,
            residency: false,
            independent: true,
            offsets: true,
            compares: true,
        };
        assert_eq!(
            gradient.name(),
            "__cuda_syscall_tex_grad_a2d_v4_f32_f32_texmode_independent_offset_depth_compare"
        );
        let convention = DriverFunction::Gradient(gradient).convention();
        let [registers, stack] =
            [[4, 6, 8, 12].map(ArgumentPlace::Registers), [0, 16, 32, 48].map(ArgumentPlace::Stack)];
        assert_eq!(convention.params, [&registers[..], &stack[..3]].concat());
        assert_eq!(convention.results, Results::Registers(vec![4, 5, 6, 7, 8]));
    }
}
