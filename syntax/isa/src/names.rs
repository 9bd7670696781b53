//! Directives, state spaces and pragmas: all dotted words that are not part of an instruction name.

use crate::lookup::NameIndex;
use crate::opcode::Suffix;
use crate::{Gate, Space};
use std::sync::LazyLock;

/// The purpose of a directive.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum DirectiveKind {
    /// `.version`, `.target`, `.address_size`.
    Module,
    /// `.entry`, `.func`, `.alias`.
    Function,
    /// A state space at the start of a declaration.
    Space,
    /// `.visible` and the like, before a declaration.
    Linkage,
    /// Limits and properties of a function, between its parameters and its body.
    Tuning,
    /// `.branchtargets` and the like.
    Control,
    /// Part of a declaration: `.align`, `.ptr`.
    Attribute,
    Debug,
    Pragma,
}

/// Where a directive may appear: a set of bits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Site(pub u8);

impl Site {
    /// The first lines of a module.
    pub const HEADER: Site = Site(1);
    /// Between the declarations of a module.
    pub const MODULE: Site = Site(1 << 1);
    /// After the parameters of a function, before its body or the closing `;`.
    pub const FUNCTION: Site = Site(1 << 2);
    /// Between the statements of a body.
    pub const BODY: Site = Site(1 << 3);
    /// In a parameter list.
    pub const PARAMETER: Site = Site(1 << 4);
    /// Inside a declaration, after its space.
    pub const DECLARATION: Site = Site(1 << 5);

    pub const fn or(self, other: Site) -> Site {
        Site(self.0 | other.0)
    }

    pub const fn intersects(self, other: Site) -> bool {
        self.0 & other.0 != 0
    }
}

/// A directive of the language.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Directive {
    /// Without its dot. `@@dwarf` is complete.
    pub name: &'static str,
    pub kind: DirectiveKind,
    pub site: Site,
    pub gate: Gate,
    /// The syntax line.
    pub syntax: &'static str,
    /// What it does, in one line.
    pub about: &'static str,
}

impl Directive {
    /// Every directive, grouped by kind.
    pub const ALL: &'static [Directive] = DIRECTIVES;

    /// Finds a directive by its name without the dot.
    pub fn parse(name: &str) -> Option<&'static Directive> {
        static INDEX: LazyLock<NameIndex> =
            LazyLock::new(|| NameIndex::new(DIRECTIVES.iter().map(|d| d.name)));
        INDEX.get(name).map(|i| &DIRECTIVES[i])
    }

    /// Whether the syntax line has arguments after a blank.
    pub fn takes_arguments(&self) -> bool {
        self.syntax.contains(' ')
    }
}

impl Space {
    /// Parses a state space without its dot. A sub-space counts as its state space.
    pub fn parse(name: &str) -> Option<Self> {
        Some(match name {
            "reg" => Space::Reg,
            "const" => Space::Const,
            "global" => Space::Global,
            "local" => Space::Local,
            "param" | "param::entry" | "param::func" => Space::Param,
            "shared" | "shared::cta" | "shared::cluster" => Space::Shared,
            _ => return None,
        })
    }

    /// The name without its dot. Empty for the generic window.
    pub const fn text(self) -> &'static str {
        match self {
            Space::Generic => "",
            Space::Reg => "reg",
            Space::Const => "const",
            Space::Global => "global",
            Space::Local => "local",
            Space::Param => "param",
            Space::Shared => "shared",
        }
    }
}

/// Words that are still reserved but have no meaning any more.
const RETIRED: &[&str] = &["byte", "1byte", "2byte", "4byte", "8byte", "quad", "proto", "scratch", "unique"];

/// Whether a word, given without its dot, has the same meaning everywhere. No section can have this name.
pub fn is_reserved(word: &str) -> bool {
    match Suffix::parse(word) {
        Some(Suffix::Mod(modifier)) => !modifier.is_free(),
        Some(Suffix::Type(ty)) => !ty.is_free(),
        None => match Directive::parse(word) {
            Some(directive) => !matches!(directive.name, "version" | "sreg"),
            None => RETIRED.contains(&word),
        },
    }
}

/// A pragma that the assembler knows. It ignores others with a warning.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Pragma {
    /// The first word of the string.
    pub name: &'static str,
    pub gate: Gate,
    /// Whether the pragma applies to the next statement, so it appears in a body.
    pub of_statements: bool,
    pub argument: PragmaArgument,
    pub about: &'static str,
}

/// The text after the name of a pragma in its string.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PragmaArgument {
    None,
    /// Accepted and ignored.
    Ignored,
    /// A positive integer.
    Count,
    /// A hexadecimal or decimal mask.
    Mask,
}

#[rustfmt::skip]
pub const PRAGMAS: &[Pragma] = &[
    Pragma { name: "nounroll", gate: Gate::since(2, 0, 20), of_statements: false, argument: PragmaArgument::None, about: "do not unroll this loop, or any loop of the function or module" },
    Pragma { name: "used_bytes_mask", gate: Gate::since(8, 3, 50), of_statements: true, argument: PragmaArgument::Mask, about: "bytes of the next vector load that are used" },
    Pragma { name: "enable_smem_spilling", gate: Gate::since(8, 7, 75), of_statements: true, argument: PragmaArgument::Ignored, about: "spill registers of the kernel to shared memory" },
    Pragma { name: "frequency", gate: Gate::since(9, 0, 10), of_statements: true, argument: PragmaArgument::Count, about: "execution count of the basic block that starts here" },
];

const fn directive(
    name: &'static str,
    kind: DirectiveKind,
    site: Site,
    gate: Gate,
    syntax: &'static str,
    about: &'static str,
) -> Directive {
    Directive { name, kind, site, gate, syntax, about }
}

use DirectiveKind as K;
const ANY: Gate = Gate::BASE;
const DECLARATIONS: Site = Site::MODULE.or(Site::BODY);
const CLUSTERS: Gate = Gate::since(7, 8, 90);

#[rustfmt::skip]
const DIRECTIVES: &[Directive] = &[
    directive("version", K::Module, Site::HEADER, ANY, ".version major.minor", "PTX ISA version of the module; the first directive"),
    directive("target", K::Module, Site::HEADER, ANY, ".target sm_NN [, option]", "target architecture and texture mode of the module"),
    directive("address_size", K::Module, Site::HEADER, Gate::since(2, 3, 10), ".address_size 32 | 64", "address size in bits"),
    directive("entry", K::Function, Site::MODULE, ANY, ".entry name (params) [tuning] { body }", "defines a kernel"),
    directive("func", K::Function, Site::MODULE, ANY, ".func (result) name (params) [tuning] { body }", "defines or declares a function"),
    directive("alias", K::Function, Site::MODULE, Gate::since(6, 3, 30), ".alias alias, aliasee;", "second name of a function"),
    directive("reg", K::Space, DECLARATIONS.or(Site::PARAMETER), ANY, ".reg .type name, name<n>;", "virtual registers"),
    directive("sreg", K::Space, DECLARATIONS, ANY, ".sreg .type name;", "predefined special registers"),
    directive("const", K::Space, DECLARATIONS, ANY, ".const [.align n] .type name [= init];", "read-only variables in constant memory"),
    directive("global", K::Space, DECLARATIONS, ANY, ".global [.align n] .type name [= init];", "variables in global memory"),
    directive("local", K::Space, DECLARATIONS, ANY, ".local [.align n] .type name;", "variables private to a thread"),
    directive("param", K::Space, Site::PARAMETER.or(Site::BODY), ANY, ".param [.align n] .type name", "parameters of kernels and functions"),
    directive("shared", K::Space, DECLARATIONS, ANY, ".shared [.align n] .type name;", "variables shared by the threads of a CTA"),
    directive("tex", K::Space, Site::MODULE, ANY, ".tex .u32 name;", "bound texture; superseded by `.global .texref`"),
    directive("extern", K::Linkage, Site::MODULE, ANY, ".extern declaration", "defined in another module"),
    directive("visible", K::Linkage, Site::MODULE, ANY, ".visible declaration", "visible to other modules"),
    directive("weak", K::Linkage, Site::MODULE, Gate::since(3, 1, 20), ".weak declaration", "overridden by a definition that is not weak"),
    directive("common", K::Linkage, Site::MODULE, Gate::since(5, 0, 20), ".common .global declaration", "merged with definitions of the same name in other modules; the largest wins"),
    directive("maxnreg", K::Tuning, Site::FUNCTION, Gate::since(1, 3, 10), ".maxnreg n", "maximum number of registers per thread"),
    directive("maxntid", K::Tuning, Site::FUNCTION, Gate::since(1, 3, 10), ".maxntid nx [, ny [, nz]]", "maximum number of threads per CTA"),
    directive("reqntid", K::Tuning, Site::FUNCTION, Gate::since(2, 1, 10), ".reqntid nx [, ny [, nz]]", "exact number of threads per CTA"),
    directive("minnctapersm", K::Tuning, Site::FUNCTION, Gate::since(2, 0, 20), ".minnctapersm n", "minimum number of CTAs per multiprocessor"),
    directive("maxnctapersm", K::Tuning, Site::FUNCTION, Gate::since(1, 3, 10), ".maxnctapersm n", "old name of `.minnctapersm`"),
    directive("noreturn", K::Tuning, Site::FUNCTION, Gate::since(6, 4, 30), ".noreturn", "the function never returns"),
    directive("abi_preserve", K::Tuning, Site::FUNCTION, Gate::since(9, 0, 80), ".abi_preserve n", "number of general registers that the function preserves"),
    directive("abi_preserve_control", K::Tuning, Site::FUNCTION, Gate::since(9, 0, 80), ".abi_preserve_control n", "number of control registers that the function preserves"),
    directive("reqnctapercluster", K::Tuning, Site::FUNCTION, CLUSTERS, ".reqnctapercluster nx [, ny [, nz]]", "exact number of CTAs per cluster"),
    directive("explicitcluster", K::Tuning, Site::FUNCTION, CLUSTERS, ".explicitcluster", "the launch must specify the cluster shape"),
    directive("maxclusterrank", K::Tuning, Site::FUNCTION, CLUSTERS, ".maxclusterrank n", "maximum number of CTAs per cluster"),
    directive("blocksareclusters", K::Tuning, Site::FUNCTION, Gate::since(9, 0, 90), ".blocksareclusters", "the grid size at launch counts clusters, not CTAs"),
    directive("branchtargets", K::Control, Site::BODY, Gate::since(6, 0, 30), "name: .branchtargets label, ...;", "possible targets of `brx.idx`"),
    directive("calltargets", K::Control, Site::BODY, Gate::since(2, 1, 20), "name: .calltargets function, ...;", "possible targets of an indirect call"),
    directive("callprototype", K::Control, Site::BODY, Gate::since(2, 1, 20), "name: .callprototype (result) _ (params);", "signature of an indirect call"),
    directive("align", K::Attribute, Site::DECLARATION.or(Site::PARAMETER), ANY, ".align bytes", "alignment, a power of two"),
    directive("ptr", K::Attribute, Site::PARAMETER, Gate::since(2, 2, 10), ".ptr [.space] [.align n]", "the parameter is a pointer; the address that it holds is in this state space and has this alignment"),
    directive("attribute", K::Attribute, Site::DECLARATION.or(Site::MODULE), Gate::since(4, 0, 30), ".attribute(.managed | .unified(a, b))", "attributes of a variable or function"),
    directive("managed", K::Attribute, Site::DECLARATION, Gate::since(4, 0, 30), ".attribute(.managed)", "the variable is in memory shared by host and device"),
    directive("unified", K::Attribute, Site::DECLARATION.or(Site::MODULE), Gate::since(9, 0, 90), ".attribute(.unified(a, b))", "the variable or function is the same on host and device"),
    directive("pragma", K::Pragma, Site::MODULE.or(Site::FUNCTION).or(Site::BODY), Gate::since(2, 0, 10), ".pragma \"text\";", "passes a hint to the assembler"),
    directive("file", K::Debug, Site::MODULE, Gate::since(1, 0, 10), ".file index \"name\" [, timestamp, size]", "source file that `.loc` refers to by index"),
    directive("loc", K::Debug, Site::BODY, Gate::since(1, 0, 10), ".loc file line column [, function_name label, inlined_at ...]", "source location of the following instructions"),
    directive("section", K::Debug, Site::MODULE, Gate::since(2, 0, 10), ".section name { data }", "section of debug data"),
    directive("@@dwarf", K::Debug, Site::MODULE.or(Site::BODY), Gate::since(1, 2, 10), "@@dwarf data", "debug data in the syntax before `.section`"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directives_are_found_by_name_and_grouped() {
        for directive in Directive::ALL {
            assert_eq!(Directive::parse(directive.name).map(|d| d.name), Some(directive.name));
            assert!(directive.gate.ptx >= Gate::BASE.ptx);
        }
        assert_eq!(Directive::parse("globl"), None);
        let kinds: Vec<_> = Directive::ALL.iter().map(|d| d.kind).collect();
        let mut changes = kinds.clone();
        changes.dedup();
        let mut kinds = kinds;
        kinds.sort();
        kinds.dedup();
        assert_eq!(changes.len(), kinds.len(), "directives of one kind are adjacent");
    }

    #[test]
    fn words_are_reserved_by_their_rows() {
        for word in ["rn", "sync", "b32", "m64n8k16", "2d", "file", "param::entry", "4byte"] {
            assert!(is_reserved(word), "{word}");
        }
        for word in ["wide", "to", "tf32", "b4x16", "m64n40k256", "cta_group::1", "version", "debug_str"] {
            assert!(!is_reserved(word), "{word}");
        }
    }

    #[test]
    fn spaces_read_back() {
        for space in [Space::Reg, Space::Const, Space::Global, Space::Local, Space::Param, Space::Shared] {
            assert_eq!(Space::parse(space.text()), Some(space));
        }
        assert_eq!(Space::parse("shared::cluster"), Some(Space::Shared));
    }
}
