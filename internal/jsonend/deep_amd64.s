#include "textflag.h"

// Both loops keep of the state R8, which is depth less 2, R9, strings, and R10, escaped. Of the
// block R12 is quotes, R13 backslashes, DX opens and BX closes. SI is where the data ends, and
// CX, which is negative, how far from there the block is. The loops differ in how they make the
// masks. ANDNQ a, b, c means c = a &^ b.

#define BEGIN \
	MOVQ     s+0(FP), DI;       \
	MOVQ     data+8(FP), SI;    \
	MOVQ     blocks+16(FP), CX; \
	SHLQ     $6, CX;            \
	ADDQ     CX, SI;            \
	NEGQ     CX;                \
	MOVQ     0(DI), R8;         \
	SUBQ     $2, R8;            \
	MOVQ     8(DI), R9;         \
	MOVQ     16(DI), R10;       \
	VPCMPEQB X9, X9, X9

// FILL sets all bytes of a register. These are set: a quote, a backslash, { and }, and the bit
// that [ and ] lack of { and }; no other byte becomes these by it.
#define FILL(byte, low, all) \
	MOVL         byte, AX; \
	VMOVD        AX, low;  \
	VPBROADCASTB low, all

// FOLLOW makes of the masks the next state, and jumps to next if another block is left, or to
// stopped.
//
// First escapes: AX is runs, DI becomes the escaped bytes, R14 the escaped of the next state.
// Few blocks have two backslashes in a row, so what these need is elsewhere, in RUNS. Then
// parity: a product without carries, by a number with all bits, has at each place the sum of the
// bits up to it. AX becomes the bytes that are in strings. The rest is as in deepGeneric: R15 is
// the least depth.
#define FOLLOW \
	ANDNQ      R13, R10, AX;   \
	LEAQ       (AX)(AX*1), DI; \
	TESTQ      AX, DI;         \
	JNZ        runs;           \
	MOVQ       AX, R14;        \
	SHRQ       $63, R14;       \
escapes:                       \
	ORQ        R10, DI;        \
	ANDNQ      R12, DI, DI;    \
	VMOVQ      DI, X2;         \
	VPCLMULQDQ $0, X9, X2, X2; \
	VMOVQ      X2, AX;         \
	XORQ       R9, AX;         \
	ANDNQ      DX, AX, DX;     \
	ANDNQ      BX, AX, BX;     \
	ANDNQ      R13, AX, DI;    \
	JNZ        stopped;        \
	LEAQ       (DX)(DX*1), DI; \
	ANDNQ      BX, DI, DI;     \
	POPCNTQ    DI, DI;         \
	MOVQ       R8, R15;        \
	SUBQ       DI, R15;        \
	JLT        stopped;        \
	POPCNTQ    DX, DI;         \
	ADDQ       DI, R8;         \
	POPCNTQ    BX, DI;         \
	SUBQ       DI, R8;         \
	SARQ       $63, AX;        \
	MOVQ       AX, R9;         \
	MOVQ       R14, R10;       \
	ADDQ       $64, CX;        \
	JNZ        next

// RUNS continues with runs of more than one backslash. R11 is oddPlaces.
#define RUNS \
	MOVQ  $0xaaaaaaaaaaaaaaaa, R11; \
	ANDNQ AX, DI, R15;              \
	ANDQ  R11, R15;                 \
	ANDNQ DI, AX, DI;               \
	ANDQ  R11, DI;                  \
	XORL  R14, R14;                 \
	ADDQ  AX, R15;                  \
	ADCQ  $0, R14;                  \
	ANDNQ R15, AX, R15;             \
	XORQ  R15, DI;                  \
	JMP   escapes

// STOP hands the block over that comes next.
#define STOP \
	MOVQ stop+24(FP), DI; \
	MOVQ R12, 0(DI);      \
	MOVQ R13, 8(DI);      \
	MOVQ DX, 16(DI);      \
	MOVQ BX, 24(DI)

#define END \
	MOVQ s+0(FP), DI;       \
	ADDQ $2, R8;            \
	MOVQ R8, 0(DI);         \
	MOVQ R9, 8(DI);         \
	MOVQ R10, 16(DI);       \
	SARQ $6, CX;            \
	ADDQ blocks+16(FP), CX; \
	MOVQ CX, n+32(FP);      \
	VZEROUPPER;             \
	RET

// MASK makes a mask of the bytes of the block, which is in Y0 and Y1, that equal those of text.
#define MASK(text, into) \
	VPCMPEQB  Y0, text, Y2; \
	VPCMPEQB  Y1, text, Y3; \
	VPMOVMSKB Y2, into;     \
	VPMOVMSKB Y3, AX;       \
	SHLQ      $32, AX;      \
	ORQ       AX, into

// func deepAVX2(s *state, data *byte, blocks int, stop *block) (n int)
TEXT ·deepAVX2(SB), NOSPLIT, $0-40
	BEGIN
	FILL($0x22, X4, Y4)
	FILL($0x5c, X5, Y5)
	FILL($0x7b, X6, Y6)
	FILL($0x7d, X7, Y7)
	FILL($0x20, X8, Y8)

next:
	VMOVDQU (SI)(CX*1), Y0
	VMOVDQU 32(SI)(CX*1), Y1
	MASK(Y4, R12)
	MASK(Y5, R13)
	VPOR Y8, Y0, Y0
	VPOR Y8, Y1, Y1
	MASK(Y6, DX)
	MASK(Y7, BX)
	FOLLOW
	JMP done

runs:
	RUNS

stopped:
	STOP

done:
	END

// func deepAVX512(s *state, data *byte, blocks int, stop *block) (n int)
TEXT ·deepAVX512(SB), NOSPLIT, $0-40
	BEGIN
	FILL($0x22, X4, Z4)
	FILL($0x5c, X5, Z5)
	FILL($0x7b, X6, Z6)
	FILL($0x7d, X7, Z7)
	FILL($0x20, X8, Z8)

next:
	VMOVDQU64 (SI)(CX*1), Z0
	VPORQ     Z8, Z0, Z1
	VPCMPEQB  Z0, Z4, K1
	VPCMPEQB  Z0, Z5, K2
	VPCMPEQB  Z1, Z6, K3
	VPCMPEQB  Z1, Z7, K4
	KMOVQ     K1, R12
	KMOVQ     K2, R13
	KMOVQ     K3, DX
	KMOVQ     K4, BX
	FOLLOW
	JMP done

runs:
	RUNS

stopped:
	STOP

done:
	END
