" Machine code of NVIDIA's GPUs. Made from the table of instructions by the tests of ptx-analyzer; see
" tests/src/grammars.
if exists('b:current_syntax')
  finish
endif
syntax case match

syntax match ptxSassModifier /\.[A-Za-z0-9][A-Za-z0-9_]*/
syntax match ptxSassNumber /\<-\?[0-9]\+\>/
syntax match ptxSassNumber /\<-\?0x[0-9a-fA-F]\+\>/
syntax match ptxSassNumber /\<[0-9]\+\.[0-9]*\%([eE][-+]\?[0-9]\+\)\?/
syntax match ptxSassMnemonic /\<\%(UGETNEXTWORKID\|ENDCOLLECTIVE\|UCGABAR_WAIT\|UTMACMDFLUSH\|GETLMEMBASE\|SETLMEMBASE\|UCGABAR_ARV\|USETMAXREG\|UTCATOMSWS\|UVIRTCOUNT\|CGAERRBAR\|LDGDEPBAR\|NANOSLEEP\|VABSDIFF4\|VIADDMNMX\|WARPGROUP\|MOV64IUR\|SETCTAID\|UMEMSETS\|UTCSHIFT\|UTMACCTL\|UTMAREDG\|VABSDIFF\|WARPSYNC\|ACQBULK\|ARRIVES\|FSWZADD\|PREEXIT\|UBLKRED\|UTCHMMA\|UTCIMMA\|UTCOMMA\|UTCQMMA\|UTMALDG\|UTMASTG\|UVIMNMX\|VIMNMX3\|CREDUX\|DEPBAR\|ERRBAR\|FMNMX3\|HMNMX2\|HSETP2\|LDGSTS\|MEMBAR\|PMTRIG\|RPCMOV\|UBLKCP\|UBLKPF\|UFHADD\|UFHFMA\|UFMNMX\|UFSETP\|UIADD3\|UIMNMX\|UISETP\|UPLOP3\|UREDGR\|UTCBAR\|UTMAPF\|UVIADD\|VHMNMX\|VIMNMX\|ATOMG\|ATOMS\|BGMMA\|BREAK\|BSYNC\|CCTLL\|CLMAD\|CS2UR\|DSETP\|ELECT\|FADD2\|FENCE\|FFMA2\|FHADD\|FHFMA\|FMNMX\|FMUL2\|FSETP\|HADD2\|HFMA2\|HGMMA\|HMUL2\|HSET2\|IADD3\|IGMMA\|IMNMX\|ISETP\|LDGMC\|MATCH\|PLOP3\|QGMMA\|REDAS\|REDUX\|SURED\|SYNCS\|UBMSK\|UBREV\|UCLEA\|UF2FP\|UF2IP\|UFADD\|UFFMA\|UFMUL\|UFRND\|UFSEL\|UFSET\|UI2FP\|UI2IP\|UIABS\|UIMAD\|ULEPC\|ULOP3\|UP2UR\|UPOPC\|UPRMT\|UR2UP\|USGXT\|USTGR\|UTCCP\|VIADD\|VOTEU\|YIELD\|ATOM\|BMMA\|BMOV\|BMSK\|BREV\|BRXU\|BSSY\|CALL\|CCTL\|CS2R\|DADD\|DFMA\|DMMA\|DMUL\|EXIT\|F2FP\|F2IP\|FADD\|FCHK\|FFMA\|FMUL\|FRND\|FSEL\|FSET\|HMMA\|I2FP\|I2IP\|IABS\|IADD\|IMAD\|IMMA\|JMXU\|KILL\|LDCU\|LDSM\|LDTM\|LEPC\|LOP3\|MOVM\|MUFU\|OMMA\|POPC\|PRMT\|QMMA\|QSPC\|R2UR\|REDG\|S2UR\|SGXT\|SHFL\|STAS\|STSM\|STTM\|SULD\|SUST\|TLD4\|TMML\|UF2F\|UF2I\|UFLO\|UI2F\|UI2I\|ULDC\|ULEA\|UMOV\|USEL\|USHF\|VOTE\|B2R\|BAR\|BPT\|BRA\|BRX\|F2F\|F2I\|FLO\|I2F\|I2I\|IDP\|JMP\|JMX\|LDC\|LDG\|LDL\|LDS\|LEA\|MOV\|NOP\|P2R\|R2P\|RED\|RET\|S2R\|SEL\|SHF\|STG\|STL\|STS\|TEX\|TLD\|TXD\|TXQ\|LD\|ST\)\>\ze[. ;]/ nextgroup=ptxSassModifier
syntax match ptxSassRegister /\<R\%([0-9]\+\|Z\)\>/
syntax match ptxSassUniform /\<UR\%([0-9]\+\|Z\)\>/
syntax match ptxSassPredicate /@\?!\?\<U\?P\%([0-9]\+\|T\)\>/
syntax match ptxSassSpecial /\<SRZ\>/
syntax match ptxSassSpecial /\<SR_[A-Za-z0-9_]\+\%(\.[XYZ]\)\?/
syntax match ptxSassBank /\<c\ze\[/
syntax match ptxSassLabel /\.L_x_[0-9]\+/
syntax match ptxSassControl /\<B[-0-5]\{6}:R[-0-5]:W[-0-5]:[-Y]:S[0-9][0-9]\>/
syntax match ptxSassControl /\<live\>\ze \+[0-9]/
syntax match ptxSassAddress /\/\*[0-9a-fA-F]\{4,}\*\//
syntax match ptxSassComment /\/\/.*$/
syntax match ptxSassComment /^#.*$/
syntax match ptxSassComment /\/\* 0x[0-9a-f]* \*\//

highlight default link ptxSassModifier Special
highlight default link ptxSassNumber Number
highlight default link ptxSassMnemonic Statement
highlight default link ptxSassRegister Identifier
highlight default link ptxSassUniform Constant
highlight default link ptxSassPredicate Conditional
highlight default link ptxSassSpecial Constant
highlight default link ptxSassBank Constant
highlight default link ptxSassLabel Label
highlight default link ptxSassControl Comment
highlight default link ptxSassAddress Comment
highlight default link ptxSassComment Comment

let b:current_syntax = 'ptx-sass'
