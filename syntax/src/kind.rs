//! The kinds of tokens and nodes.

macro_rules! kinds {
    ($($(#[$meta:meta])* $name:ident $(= $text:literal)?,)*) => {
        /// The kind of a token or node.
        #[allow(non_camel_case_types, clippy::upper_case_acronyms, reason = "kinds are written as in the grammar")]
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        #[repr(u16)]
        pub enum SyntaxKind { $($(#[$meta])* $name,)* }

        const ALL: &[SyntaxKind] = &[$(SyntaxKind::$name,)*];

        impl SyntaxKind {
            /// The only text that a token of this kind can have.
            pub const fn fixed_text(self) -> Option<&'static str> {
                match self {
                    $($(SyntaxKind::$name => Some($text),)?)*
                    _ => None,
                }
            }
        }
    };
}

kinds! {
    /// What the parser sees after the last token. It is never part of a tree.
    EOF,

    // Trivia.
    WHITESPACE,
    /// `// …` up to the end of the line.
    LINE_COMMENT,
    /// `/* … */`.
    BLOCK_COMMENT,
    /// A preprocessor line: `#` at the start of a line, with its continuation lines.
    HASH_LINE,

    // Words and literals.
    /// A name or mnemonic: `add`, `%r1`, `$L__BB0_1`, `sm_90`.
    IDENT,
    /// A directive or suffix with its dot: `.global`, `.s32`, `.shared::cta`, `.L2::128B`.
    DOT_WORD,
    /// An integer in any base, possibly with bad digits: `12`, `0x1FU`, `0b10`, `017`.
    INT,
    /// A floating-point literal, possibly with bad digits: `0f3F800000`, `0d…`, `1.5`, `1e-5`.
    FLOAT,
    STRING,

    // Punctuation.
    UNDERSCORE = "_",
    COMMA = ",",
    SEMICOLON = ";",
    COLON = ":",
    DOT = ".",
    L_PAREN = "(",
    R_PAREN = ")",
    L_BRACK = "[",
    R_BRACK = "]",
    L_BRACE = "{",
    R_BRACE = "}",
    AT = "@",
    QUESTION = "?",
    EQ = "=",
    EQ2 = "==",
    NEQ = "!=",
    LT = "<",
    GT = ">",
    LE = "<=",
    GE = ">=",
    SHL = "<<",
    SHR = ">>",
    BANG = "!",
    TILDE = "~",
    PLUS = "+",
    MINUS = "-",
    STAR = "*",
    SLASH = "/",
    PERCENT = "%",
    AMP = "&",
    AMP2 = "&&",
    PIPE = "|",
    PIPE2 = "||",
    CARET = "^",
    /// Bytes that no PTX token contains: a run of non-ASCII characters, or a single control or invalid character.
    BAD_CHAR,
    /// Many tokens that the grammar does not allow, joined to one token with the blanks between them. The lexer never
    /// makes this kind.
    SKIPPED,

    // Items.
    SOURCE_FILE,
    /// Blanks and comments after the last item.
    TRIVIA,
    /// Tokens that the grammar does not allow at their place.
    ERROR,
    VERSION_DIRECTIVE,
    TARGET_DIRECTIVE,
    ADDRESS_SIZE_DIRECTIVE,
    FUNCTION,
    /// A declaration in any state space, at module scope or in a block.
    VARIABLE,
    FILE_DIRECTIVE,
    LOC_DIRECTIVE,
    SECTION,
    PRAGMA,
    ALIAS,
    /// `@@DWARF …`, the debug data of PTX 1.x, one per line.
    DWARF_LINE,

    // Parts of declarations.
    NAME,
    /// `(…)` of a function or prototype, for results or parameters.
    PARAM_LIST,
    PARAM,
    /// A performance or ABI directive of a function header: `.maxntid 32, 1, 1`, `.noreturn`.
    FUNCTION_DIRECTIVE,
    /// `.align 8`.
    ALIGN,
    /// `.ptr .global .align 8`.
    POINTER,
    /// `.attribute(.managed)`.
    ATTRIBUTE_LIST,
    ATTRIBUTE,
    /// `[2]` after `.const` in PTX 1.x and 2.x.
    BANK,
    /// One declared name with its range, dimensions and initializer.
    DECLARATOR,
    /// `<10>` of `%r<10>`.
    REGISTER_RANGE,
    ARRAY_DIMENSION,
    /// `= value`.
    INITIALIZER,
    INITIALIZER_LIST,
    /// `addr_mode_0 = wrap` in the initializer of a texture or sampler.
    FIELD_INITIALIZER,

    // Statements.
    BLOCK,
    /// A lone `;`.
    EMPTY_STATEMENT,
    LABEL,
    INSTRUCTION,
    CALL_PROTOTYPE,
    BRANCH_TARGETS,
    CALL_TARGETS,
    /// `@p`, `@!p`.
    GUARD,

    // Operands.
    ARGUMENT_LIST,
    ADDRESS,
    VECTOR,
    /// `p|q`.
    PAIR,
    /// `_`.
    SINK,
    /// `%r1.x`, `%r1.b0`.
    COMPONENT,

    // Expressions.
    LITERAL,
    NAME_REF,
    PAREN_EXPR,
    PREFIX_EXPR,
    BINARY_EXPR,
    CONDITIONAL_EXPR,
    /// `(.s64) x`.
    CAST_EXPR,
    /// `generic(x)`.
    CALL_EXPR,
    /// `0xFF(x)`: one byte of an address.
    MASK_EXPR,
    /// `x[3]`.
    INDEX_EXPR,

    // Debug data.
    /// `.b8 1, 2` in a section.
    SECTION_DATA,
    /// `function_name $info + 8` of a `.loc`.
    LOC_FUNCTION,
    /// `inlined_at 1 2 3` of a `.loc`.
    LOC_INLINED_AT,
}

impl SyntaxKind {
    pub const fn is_trivia(self) -> bool {
        matches!(
            self,
            SyntaxKind::WHITESPACE
                | SyntaxKind::LINE_COMMENT
                | SyntaxKind::BLOCK_COMMENT
                | SyntaxKind::HASH_LINE
        )
    }

    pub const fn is_comment(self) -> bool {
        matches!(self, SyntaxKind::LINE_COMMENT | SyntaxKind::BLOCK_COMMENT)
    }

    /// Whether the kind is that of a node. The others are kinds of tokens.
    pub(crate) const fn is_node(self) -> bool {
        self as u16 >= SyntaxKind::SOURCE_FILE as u16
    }

    /// An unknown number, from a tree that this crate did not build, gives `ERROR`.
    pub(crate) fn from_raw(raw: u16) -> SyntaxKind {
        ALL.get(usize::from(raw)).copied().unwrap_or(SyntaxKind::ERROR)
    }
}
