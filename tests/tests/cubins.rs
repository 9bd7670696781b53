//! Cubins as written to files: their kernels, linked with the functions that they call, must give the interpreter's
//! results.

use conformance::case::{self, Case, agrees};
use conformance::description::{self, Described};
use object::{Object, ObjectSection, ObjectSymbol, RelocationFlags, RelocationTarget};
use ptx_analysis::Database;
use ptx_analysis::link::{LinkOptions, link};
use ptx_emu::cubin;
use rayon::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Kernels of files with functions, in executables of both forms: with copies of the functions in each kernel, and with
/// functions in sections of their own.
#[test]
fn cubins_of_files_with_functions_run() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("kernels");
    let mut cases = description::folder(&folder).unwrap_or_else(|error| panic!("{error}"));
    cases.retain(|described| described.case.ptx.contains(".func"));
    let mut files: BTreeMap<String, Vec<Described>> = BTreeMap::new();
    cases.into_iter().for_each(|case| files.entry(case.case.ptx.clone()).or_default().push(case));
    assert!(!files.is_empty());
    let files: Vec<Vec<Described>> = files.into_values().collect();
    let wrong: Vec<String> = files.par_iter().flat_map(|cases| wrong_cases(cases)).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The cases of a file whose cubins run wrongly.
fn wrong_cases(cases: &[Described]) -> Vec<String> {
    let mut wrong = Vec::new();
    let text: &'static str = cases[0].case.ptx.clone().leak();
    let input = |case: &Case| case::input(&case.ptx, &case.kernel);
    let all: Result<Vec<_>, String> = cases
        .iter()
        .map(|described| {
            let input = input(&described.case)?;
            let (prepared, expected) = case::interpret(&described.case, &input)?;
            Ok((&described.name, input, prepared, expected))
        })
        .collect();
    let all = all.unwrap_or_else(|error| panic!("{}: {error}", cases[0].name));
    let least = all[0].1.env.target.number;
    for (number, debug) in [75, 80, 90, 120].into_iter().flat_map(|number| [(number, false), (number, true)])
    {
        if number < least {
            continue;
        }
        let mut db = Database::default();
        let file = db.add_frozen_file(text);
        db.set_target_override(Some(ptx_isa::Sm::new(number)));
        db.set_shows_registers(debug);
        if debug {
            db.set_opt_level(0);
        }
        let linked = link(&db, file, &LinkOptions::default());
        let bytes = linked.unwrap_or_else(|errors| panic!("{} sm_{number}: {errors:?}", cases[0].name)).cubin;
        for (name, input, prepared, expected) in &all {
            let how = match cubin::kernel(&bytes, &input.function.name, &prepared.device) {
                Ok(kernel) => agrees(prepared, expected, &kernel).err(),
                Err(error) => Some(error.to_string()),
            };
            wrong.extend(how.map(|how| format!("{name} sm_{number}, for debuggers: {debug}: {how}")));
        }
    }
    wrong
}

/// The attributes of a kernel about its matrix instructions and about the system's shared memory, as in ptxas.
#[test]
fn kernels_say_which_matrix_instructions_they_have() {
    const SPARSE: &str = "mma.sp.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f1, %f2, %f3, %f4}, {%r1, %r2}, {%r3, %r4}, \
        {%f1, %f2, %f3, %f4}, %r5, 0;";
    const TILES: &str = "wmma.load.c.sync.aligned.row.m16n16k16.shared.f16 {%r1, %r2, %r3, %r4}, [s];";
    const PLACE: &str = "mov.u32 %r1, %reserved_smem_offset_begin;";
    let has = |body: &str, record: [u8; 4]| {
        let text = format!(
            ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k() {{\n\
             .reg .f32 %f<5>; .reg .b32 %r<6>; .shared .align 16 .b32 s[256];\n{body}\nst.shared.u32 [s], %r1;\nst.shared.f32 [s+4], %f1;\nret;\n}}\n"
        );
        let db = Database::default();
        let file = db.add_frozen_file(text.as_str());
        let linked = link(&db, file, &LinkOptions::default()).unwrap_or_else(|errors| panic!("{errors:?}"));
        linked.cubin.windows(4).any(|bytes| bytes == record)
    };
    let records = [(SPARSE, [3, 0x50, 0x10, 0]), (TILES, [1, 0x2b, 0, 0]), (PLACE, [1, 0x41, 0, 0])];
    for (body, record) in records {
        for (_, other) in records {
            assert_eq!(has(body, other), record == other, "{body}: {other:x?}");
        }
    }
}

/// The address of a kernel is that of its descriptor, which launches use. In objects of sm_90 and higher, the address of a
/// function is unified. In executables it is a number that needs no relocation.
#[test]
fn kernels_are_named_by_their_descriptors() {
    const TEXT: &str = ".version 8.0\n.target sm_75\n.address_size 64\n\
        .visible .entry child() { ret; }\n.visible .func callee() { ret; }\n\
        .global .u64 table[2] = { child, callee };\n\
        .visible .entry parent(.param .u64 out) {\n.reg .b64 %d<4>;\nld.param.u64 %d1, [out];\n\
        mov.u64 %d2, child;\nst.global.u64 [%d1], %d2;\nmov.u64 %d3, callee;\nst.global.u64 [%d1+8], %d3;\nret;\n}\n";
    let check = |file: Vec<u8>, of_child: &[u32], of_callee: &[u32]| {
        let image = object::File::parse(&file[..]).unwrap_or_else(|error| panic!("{error}"));
        let kinds = |name: &str| -> BTreeSet<u32> {
            let sections = image.sections().filter(|section| {
                let code_and_data = [".text.parent", ".nv.global.init", ".nv.constant4"];
                section.name().is_ok_and(|name| code_and_data.contains(&name))
            });
            let relocations =
                sections.flat_map(|section| section.relocations().map(|(_, relocation)| relocation));
            let named = relocations.filter(|relocation| match relocation.target() {
                RelocationTarget::Symbol(index) => {
                    image.symbol_by_index(index).is_ok_and(|s| s.name() == Ok(name))
                }
                _ => false,
            });
            named
                .map(|relocation| match relocation.flags() {
                    RelocationFlags::Elf { r_type } => r_type.0,
                    flags => panic!("{flags:?}"),
                })
                .collect()
        };
        assert_eq!(kinds("child"), of_child.iter().copied().collect());
        assert_eq!(kinds("callee"), of_callee.iter().copied().collect());
    };
    // R_CUDA_FUNC_DESC32_LO_32, R_CUDA_FUNC_DESC32_HI_32, R_CUDA_FUNC_DESC_64; R_CUDA_ABS32_LO_32, R_CUDA_ABS32_HI_32, R_CUDA_64;
    // R_CUDA_UNIFIED32_LO_32, R_CUDA_UNIFIED32_HI_32, R_CUDA_UNIFIED.
    for (number, callee) in
        [(75, [56, 57, 2]), (80, [56, 57, 2]), (90, [112, 113, 102]), (120, [112, 113, 102])]
    {
        check(object_of(TEXT, number), &[62, 63, 35], &callee);
        check(executable_of(TEXT, number), &[35], &[]);
    }
}

/// The records from which the driver configures samplers: modes that the initializer does not state are 0xff, and the
/// last statement of a mode counts. Numbers are those of the words, from 1.
#[test]
fn samplers_have_the_modes_of_their_initializers() {
    const TEXT: &str = ".version 8.0\n.target sm_75, texmode_independent\n.address_size 64\n\
        .global .samplerref plain;\n\
        .global .samplerref s = { addr_mode_0 = clamp_to_border, addr_mode_1 = wrap, filter_mode = linear,\n\
        force_unnormalized_coords = 1 };\n\
        .global .samplerref t = { addr_mode_2 = 2, addr_mode_1 = mirror, addr_mode_1 = clamp_ogl, filter_mode = nearest };\n\
        .global .samplerref u = { addr_mode_0 = clamp_to_edge, filter_mode = 0, force_unnormalized_coords = -1 };\n\
        .visible .entry k() { ret; }\n";
    let records = |bytes: &[u8], name: &str| {
        let image = object::File::parse(bytes).unwrap_or_else(|error| panic!("{error}"));
        let symbol = image.symbols().find(|symbol| symbol.name() == Ok(name)).unwrap();
        let info = image.section_by_name(".nv.info").and_then(|info| info.data().ok()).unwrap();
        assert!(info.windows(4).any(|word| word == [1, 0x4d, 0, 0]), "independent mode");
        let found = |attribute: u8| {
            let head = [&[4, attribute, 8, 0][..], &(symbol.index().0 as u32).to_le_bytes()].concat();
            info.windows(12).find(|words| words[..8] == head).map(|words| words[8..].to_vec())
        };
        [found(0x09), found(0x13)]
    };
    for file in [executable_of(TEXT, 75), executable_of(TEXT, 90), object_of(TEXT, 75), object_of(TEXT, 120)]
    {
        let is = |name: &str, modes: [u8; 4], unnormalized: Option<[u8; 4]>| {
            assert_eq!(records(&file, name), [Some(modes.to_vec()), unnormalized.map(Vec::from)], "{name}");
        };
        is("plain", [0xff; 4], None);
        is("s", [4, 0, 0xff, 1], Some([1, 0, 0, 0]));
        is("t", [0xff, 2, 1, 0], None);
        is("u", [3, 0xff, 0xff, 0xff], None);
    }
}

/// Other files do not see kernels without a linkage directive, so two objects may have kernels of one name.
#[test]
fn kernels_have_the_binding_of_their_linkage() {
    const TEXT: &str = ".version 8.0\n.target sm_75\n.address_size 64\n\
        .entry own() { ret; }\n.weak .entry weak() { ret; }\n.visible .entry shown() { ret; }\n";
    for file in [executable_of(TEXT, 75), executable_of(TEXT, 90), object_of(TEXT, 75), object_of(TEXT, 90)] {
        let image = object::File::parse(&file[..]).unwrap_or_else(|error| panic!("{error}"));
        let symbol = |name: &str| image.symbols().find(|symbol| symbol.name() == Ok(name)).unwrap();
        assert!(symbol("own").is_local());
        assert!(symbol("weak").is_weak());
        assert!(symbol("shown").is_global() && !symbol("shown").is_weak());
    }
}

/// The executable of a module for a target.
fn executable_of(text: &'static str, number: u16) -> Vec<u8> {
    let mut db = Database::default();
    let file = db.add_frozen_file(text);
    db.set_target_override(Some(ptx_isa::Sm::new(number)));
    link(&db, file, &LinkOptions::default()).unwrap_or_else(|errors| panic!("{errors:?}")).cubin
}

/// The object of a module for a target.
fn object_of(text: &'static str, number: u16) -> Vec<u8> {
    let mut db = Database::default();
    let file = db.add_frozen_file(text);
    db.set_target_override(Some(ptx_isa::Sm::new(number)));
    db.set_relocatable(true);
    link(&db, file, &LinkOptions::default()).unwrap_or_else(|errors| panic!("{errors:?}")).cubin
}

#[test]
fn handles_that_are_parameters_are_symbols_of_their_kernel() {
    const TEXT: &str = ".version 8.7 .target sm_75 .address_size 64
        .visible .entry k(.param .u64 out, .param .texref image, .param .surfref target) {
            .reg .b32 %x, %y; .reg .b64 %out;
            ld.param.u64 %out, [out]; mov.b32 %x, 0;
            tex.1d.v4.s32.s32 {%x, _, _, _}, [image, {%x}];
            suld.b.1d.b32.trap %y, [target, {%x}];
            add.u32 %x, %x, %y; st.global.u32 [%out], %x; ret;
        }";
    for number in [75, 89, 90, 120] {
        let object = object_of(TEXT, number);
        let image = object::File::parse(&object[..]).unwrap_or_else(|error| panic!("{error}"));
        let code = image.section_by_name(".text.k").unwrap_or_else(|| panic!("sm_{number} has code"));
        let info = image.section_by_name(".nv.info.k").and_then(|info| info.data().ok()).unwrap();
        for (name, ordinal) in [("image", 1), ("target", 2)] {
            let symbol = image.symbols().find(|symbol| symbol.name() == Ok(name)).unwrap();
            assert!(symbol.is_local() && symbol.section_index() == Some(code.index()), "sm_{number}: {name}");
            let of_it = RelocationTarget::Symbol(symbol.index());
            let described = [symbol.index().0 as u32, 0xffff_0000 | ordinal].map(u32::to_le_bytes).concat();
            assert!(info.windows(8).any(|words| words == described), "sm_{number}: {name}");
            assert!(code.relocations().any(|(_, reloc)| reloc.target() == of_it), "sm_{number}: {name}");
        }
    }
}

/// Debuggers find shared variables through their addresses in debug data and through their symbols.
#[test]
fn debug_data_contains_the_addresses_of_shared_variables() {
    const TEXT: &str = ".version 8.0 .target sm_75, debug .address_size 64
        .shared .align 4 .b32 both[8];
        .func f() { .shared .align 4 .b32 of_f[4]; st.shared.b32 [of_f], 1; st.shared.b32 [both], 1; ret; }
        .visible .entry first() { .shared .align 4 .b32 own[4]; st.shared.b32 [own], 2; call f, (); ret; }
        .visible .entry second() { .shared .align 4 .b32 own2[4]; st.shared.b32 [own2], 2; ret; }
        .section .debug_abbrev { .b8 0 }
        .section .debug_info { .b64 of_f .b64 both .b64 own .b64 own2 }";
    for (number, base) in [(75, 0), (80, 0), (90, 0x400), (120, 0x400)] {
        let file = executable_of(TEXT, number);
        let image = object::File::parse(&file[..]).unwrap_or_else(|error| panic!("{error}"));
        let data = image.section_by_name(".debug_info").unwrap();
        assert_eq!(data.relocations().count(), 0);
        let bytes = data.data().unwrap().chunks_exact(8);
        let found: Vec<u64> = bytes.map(|eight| u64::from_le_bytes(eight.try_into().unwrap())).collect();
        assert_eq!(found, [0, 16, 48, 0].map(|offset| base + offset), "sm_{number}");
        for (name, place, section) in [
            ("of_f", 0, ".nv_debug.shared"),
            ("both", 16, ".nv_debug.shared"),
            ("own", 48, ".nv.shared.first"),
            ("own2", 0, ".nv.shared.second"),
        ] {
            let symbol = image.symbols().find(|symbol| symbol.name() == Ok(name)).unwrap();
            let own = image.section_by_name(section).map(|section| section.index());
            assert_eq!(
                (symbol.address(), symbol.section_index()),
                (base + place, own),
                "sm_{number}: {name}"
            );
        }
    }
}

/// A linker gives each texture or surface of an object a word in constant bank 0.
#[test]
fn objects_read_textures() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("kernels");
    let cases = description::folder(&folder).unwrap_or_else(|error| panic!("{error}"));
    let described =
        |name: &str| cases.iter().find(|case| case.name.contains(name) && !case.case.bound.is_empty());
    let case = &described("handles: variables").unwrap_or_else(|| panic!("the case is there")).case;
    let input = case::input(&case.ptx, "variables").unwrap_or_else(|error| panic!("{error}"));
    let (prepared, expected) = case::interpret(case, &input).unwrap_or_else(|error| panic!("{error}"));
    let text: &'static str = case.ptx.clone().leak();
    for number in [75, 80, 90, 120] {
        let object = object_of(text, number);
        let kernel = cubin::kernel(&object, "variables", &prepared.device);
        let kernel = kernel.unwrap_or_else(|error| panic!("sm_{number}: {error}"));
        agrees(&prepared, &expected, &kernel).unwrap_or_else(|how| panic!("sm_{number}: {how}"));
    }
}

/// Other objects call a function by its alias.
#[test]
fn aliases_in_objects_are_symbols_of_their_function() {
    const TEXT: &str = ".version 8.7 .target sm_75 .address_size 64
        .visible .func (.param .b32 r) f(.param .b32 a) { st.param.b32 [r], 1; ret; }
        .visible .func (.param .b32 r) g(.param .b32 a);
        .alias g, f;";
    for number in [75, 90, 120] {
        let object = object_of(TEXT, number);
        let image = object::File::parse(&object[..]).unwrap_or_else(|error| panic!("{error}"));
        let symbol = |name: &str| image.symbols().find(|symbol| symbol.name() == Ok(name)).unwrap();
        let (alias, function) = (symbol("g"), symbol("f"));
        assert!(alias.is_global() && alias.size() == 0);
        assert_eq!((alias.section_index(), alias.address()), (function.section_index(), 0));
        let words = |section: &str| {
            let section = image.section_by_name(section).and_then(|section| section.data().ok()).unwrap();
            section.chunks_exact(8).map(|pair| pair.to_vec()).collect::<Vec<_>>()
        };
        let number_of = |symbol: &object::Symbol<'_, '_>| (symbol.index().0 as u32).to_le_bytes();
        let pair = [number_of(&alias), number_of(&function)].concat();
        assert!(words(".nv.callgraph").contains(&pair));
        assert!(words(".nv.prototype").iter().any(|pair| pair[..4] == number_of(&alias)));
    }
}

#[test]
fn samplers_in_functions_have_words_of_their_own() {
    const TEXT: &str = ".version 8.7 .target sm_75, texmode_independent .address_size 64
        .global .texref image; .global .samplerref filter;
        .visible .func (.param .b32 r) f(.param .b32 a) {
            .reg .f32 %x; .reg .b32 %a; .reg .pred %p; ld.param.b32 %a, [a]; ld.param.f32 %x, [a];
            tex.1d.v4.f32.f32 {%x, _, _, _}, [image, filter, {%x}];
            setp.eq.u32 %p, %a, 0; @%p bra DONE;
            { .param .b32 b, c; st.param.f32 [b], %x; call (c), f, (b); ld.param.f32 %x, [c]; }
            DONE: st.param.f32 [r], %x; ret;
        }
        .visible .entry k(.param .u64 out) {
            .reg .f32 %x; .reg .b64 %out; ld.param.u64 %out, [out]; ld.global.f32 %x, [%out];
            { .param .b32 b, c; st.param.f32 [b], %x; call (c), f, (b); ld.param.f32 %x, [c]; }
            st.global.f32 [%out], %x; ret;
        }";
    for number in [75, 80, 90, 120] {
        for (file, section) in
            [(executable_of(TEXT, number), ".nv.constant0.k"), (object_of(TEXT, number), ".text.f")]
        {
            let image = object::File::parse(&file[..]).unwrap_or_else(|error| panic!("{error}"));
            let section = image.section_by_name(section).unwrap();
            let target = |name: &str| {
                let symbol = image.symbols().find(|symbol| symbol.name() == Ok(name)).unwrap();
                let of_it = RelocationTarget::Symbol(symbol.index());
                section.relocations().find(|(_, reloc)| reloc.target() == of_it).unwrap().0
            };
            assert_ne!(target("image"), target("filter"), "sm_{number}");
        }
    }
}

/// The words in which a block records its columns of tensor memory follow a variable that only modules for sm_110 have.
#[test]
fn tensor_memory_words_follow_the_reserved_variable() {
    const TEXT: &str = ".version 9.0 .target sm_110a .address_size 64
        .visible .entry k() { .reg .b32 %at; .shared .align 4 .b32 to; mov.b32 %at, to;
            tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%at], 32; ret; }";
    for (target, address) in [("sm_100a", 0x40), ("sm_110a", 0xc0)] {
        let text: &'static str = TEXT.replace("sm_110a", target).leak();
        let db = Database::default();
        let file = db.add_frozen_file(text);
        let linked = link(&db, file, &LinkOptions::default()).unwrap_or_else(|errors| panic!("{errors:?}"));
        let image = object::File::parse(&linked.cubin[..]).unwrap_or_else(|error| panic!("{error}"));
        let words = image.symbols().find(|symbol| symbol.name() == Ok("__nv_reservedSMEM_tcgen05_partition"));
        assert_eq!(words.unwrap().address(), address, "{target}");
        let section = image.section_by_name(".nv.shared.reserved.0").unwrap();
        assert_eq!(section.size(), address + 0x20, "{target}");
        let code = image.section_by_name(".text.k").and_then(|code| code.data().ok()).unwrap();
        let leas = code.chunks_exact(16).filter(|word| word[0] == 0x11 && word[1] & 0xf == 8);
        let mut addresses = leas.map(|word| u64::from(word[4]));
        assert!(addresses.any(|at| at == address), "{target}");
    }
}

/// Attribute 0x3f is the largest number of blocks of a cluster.
#[test]
fn kernels_state_the_largest_cluster() {
    const TEXT: &str =
        ".version 8.7 .target sm_90 .address_size 64 .visible .entry k() .maxclusterrank 4 { ret; }";
    let file = executable_of(TEXT, 90);
    let image = object::File::parse(&file[..]).unwrap_or_else(|error| panic!("{error}"));
    let info = image.section_by_name(".nv.info.k").and_then(|info| info.data().ok()).unwrap();
    assert!(info.windows(8).any(|record| record == [4, 0x3f, 4, 0, 4, 0, 0, 0]));
}

/// Callers of an object align the stack to 8 bytes only, so four words are filled by two accesses.
#[test]
fn functions_of_objects_spill_four_words() {
    let loads =
        |i: usize| format!("ld.volatile.v4.u32 {{%r{0}, %s{0}, %t{0}, %u{0}}}, [%p + {1}];\n", i, 16 * i);
    let stores =
        |i: usize| format!("st.volatile.v4.u32 [%p + {1}], {{%r{0}, %s{0}, %t{0}, %u{0}}};\n", i, 16 * i);
    let text = format!(
        ".version 8.7 .target sm_75 .address_size 64
        .visible .func f(.param .u64 p, .param .u64 other) {{
            PROTOTYPE: .callprototype _ ();
            .reg .b64 %other;
            .reg .b32 %r<32>, %s<32>, %t<32>, %u<32>; .reg .b64 %p;
            ld.param.u64 %p, [p]; ld.param.u64 %other, [other];
            {}call %other, (), PROTOTYPE;\n{}ret;
        }}",
        (0..32).map(loads).collect::<String>(),
        (0..32).map(stores).collect::<String>(),
    );
    let text: &'static str = text.leak();
    has_code_of_f(text);
}

/// Checks that the object of a module has code of its function `f`.
fn has_code_of_f(text: &'static str) {
    for number in [75, 80, 90, 120] {
        let object = object_of(text, number);
        let image = object::File::parse(&object[..]).unwrap_or_else(|error| panic!("{error}"));
        assert!(image.section_by_name(".text.f").is_some(), "sm_{number} has code");
    }
}

/// Threads may be apart at the recursive call. Since nothing else yields in the function, its barriers may be saved.
#[test]
fn functions_of_objects_call_themselves_on_one_side_of_a_branch() {
    const TEXT: &str = ".version 8.7 .target sm_75 .address_size 64
        .visible .func (.param .b32 result) f(.param .u64 image, .param .b32 n) {
            .reg .b64 %image; .reg .f32 %x, %y, %z, %w; .reg .b32 %n; .reg .pred %last;
            ld.param.u64 %image, [image]; ld.param.b32 %n, [n]; mov.b32 %x, %n;
            tex.2d.v4.f32.f32 {%x, %y, %z, %w}, [%image, {%x, %x}];
            mov.b32 %n, %x; setp.eq.u32 %last, %n, 0;
            @%last bra DONE;
            .param .u64 first; .param .b32 second; .param .b32 returned;
            st.param.u64 [first], %image; st.param.b32 [second], %n;
            call (returned), f, (first, second);
            ld.param.b32 %n, [returned];
            DONE: st.param.b32 [result], %n; ret;
        }";
    has_code_of_f(TEXT);
}

/// A function saves what its callee does not preserve but its callers rely on: every register that a thread may have.
/// The linker gives a kernel as many registers as its functions count.
#[test]
fn functions_count_the_registers_that_they_save_for_a_callee() {
    const TEXT: &str = ".version 9.0 .target sm_80 .address_size 64
        .visible .func (.param .b32 r) g(.param .b32 a) .abi_preserve 4 {
            .reg .b32 %x; ld.param.b32 %x, [a]; st.param.b32 [r], %x; ret;
        }
        .visible .func (.param .b32 r) f(.param .b32 a) {
            .reg .b32 %x;
            .param .b32 p; .param .b32 q;
            ld.param.b32 %x, [a]; st.param.b32 [p], %x; call (q), g, (p);
            ld.param.b32 %x, [q]; st.param.b32 [r], %x; ret;
        }";
    for number in [80, 90, 120] {
        let object = object_of(TEXT, number);
        let image = object::File::parse(&object[..]).unwrap_or_else(|error| panic!("{error}"));
        let info = image.section_by_name(".nv.info").and_then(|info| info.data().ok()).unwrap();
        let f = image.symbols().find(|symbol| symbol.name() == Ok("f")).unwrap();
        let count = [0x0008_2f04, f.index().0 as u32, 255].map(u32::to_le_bytes).concat();
        assert!(info.windows(12).any(|words| words == count), "sm_{number}");
    }
}

/// The kernel `f` of each program is compiled.
#[test]
fn programs_with_undefined_behavior_are_compiled_as_ptxas_compiles_them() {
    // A mask that is known to name no thread, and one that is never written.
    const EMPTY_MASK: &str = ".version 8.7 .target sm_75 .address_size 64
        .visible .entry f() { .reg .b32 %m; mov.u32 %m, 0; bar.warp.sync %m; ret; }";
    const UNWRITTEN_MASK: &str = ".version 8.7 .target sm_75 .address_size 64
        .visible .entry f(.param .u64 out) {
            .reg .b32 %m, %x; .reg .pred %p, %q; .reg .b64 %out;
            ld.param.u64 %out, [out]; mov.u32 %x, %tid.x; setp.eq.u32 %p, %x, 1;
            vote.sync.any.pred %q, %p, %m; selp.b32 %x, 1, 0, %q; st.global.u32 [%out], %x; ret;
        }";
    // A result in a register is not a parameter, so its value is an address.
    const ADDRESS_OF_RESULT: &str = ".version 8.7 .target sm_75 .address_size 64
        .func (.reg .b32 %result) g(.param .b32 a) {
            .reg .b32 %x; ld.param.u32 %x, [a]; st.param.u32 [%result], %x; ret;
        }
        .visible .entry f(.param .u64 out) {
            .reg .b32 %x; .reg .b64 %out; .param .b32 a;
            ld.param.u64 %out, [out]; st.param.b32 [a], 1; call (%x), g, (a);
            st.global.u32 [%out], %x; ret;
        }";
    // A predicate as a coordinate is all ones or zero.
    const PREDICATE_AS_COORDINATE: &str = ".version 8.7 .target sm_75 .address_size 64
        .visible .entry f(.param .u64 out, .param .u64 image) {
            .reg .b32 %x; .reg .pred %p; .reg .b64 %out, %image;
            ld.param.u64 %out, [out]; ld.param.u64 %image, [image]; ld.global.u32 %x, [%out];
            setp.eq.u32 %p, %x, 3; suld.b.a1d.b32.trap %x, [%image, {%x, %p}]; st.global.u32 [%out], %x; ret;
        }";
    const PREDICATE_AFTER_INDEX: &str = ".version 8.7 .target sm_75 .address_size 64
        .visible .entry f(.param .u64 out, .param .u64 image) {
            .reg .b32 %x; .reg .pred %p; .reg .b64 %out, %image;
            ld.param.u64 %out, [out]; ld.param.u64 %image, [image]; ld.global.u32 %x, [%out];
            setp.eq.u32 %p, %x, 3; tex.a1d.v4.u32.s32 {%x, _, _, _}, [%image, {%x, %p}];
            st.global.u32 [%out], %x; ret;
        }";
    for text in
        [EMPTY_MASK, UNWRITTEN_MASK, ADDRESS_OF_RESULT, PREDICATE_AS_COORDINATE, PREDICATE_AFTER_INDEX]
    {
        for number in [75, 80, 90, 120] {
            let cubin = executable_of(text, number);
            let image = object::File::parse(&cubin[..]).unwrap_or_else(|error| panic!("{error}"));
            assert!(image.section_by_name(".text.f").is_some(), "sm_{number} has code: {text}");
        }
    }
}
