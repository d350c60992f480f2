#include "textflag.h"

// FILL sets all bytes of a register.
#define FILL(byte, low, all) \
	MOVL         byte, AX; \
	VMOVD        AX, low;  \
	VPBROADCASTB low, all

// MASK makes a mask of the bytes of the block, which is in Y0 and Y1, that equal those of text.
#define MASK(text, into) \
	VPCMPEQB  Y0, text, Y2; \
	VPCMPEQB  Y1, text, Y3; \
	VPMOVMSKB Y2, into;     \
	VPMOVMSKB Y3, AX;       \
	SHLQ      $32, AX;      \
	ORQ       AX, into

// func deepAVX2(s *state, data *byte, blocks int, stop *block) (n int)
//
// Of the state, R8 is depth, R9 strings and R10 escaped. Of the block, R12 is quotes, R13
// backslashes, DX opens and BX closes. SI is where the block is, and CX how many are left.
// ANDNQ a, b, c means c = a &^ b.
TEXT ·deepAVX2(SB), NOSPLIT, $0-40
	MOVQ s+0(FP), DI
	MOVQ data+8(FP), SI
	MOVQ blocks+16(FP), CX
	MOVQ 0(DI), R8
	MOVQ 8(DI), R9
	MOVQ 16(DI), R10
	MOVQ $0xaaaaaaaaaaaaaaaa, R11 // oddPlaces
	FILL($0x22, X4, Y4)           // "
	FILL($0x5c, X5, Y5)           // backslash
	FILL($0x7b, X6, Y6)           // {
	FILL($0x7d, X7, Y7)           // }
	FILL($0x20, X8, Y8)           // what [ and ] lack of { and }; no other byte becomes these by it
	VPCMPEQB X9, X9, X9           // all bits

next:
	VMOVDQU (SI), Y0
	VMOVDQU 32(SI), Y1
	MASK(Y4, R12)
	MASK(Y5, R13)
	VPOR    Y8, Y0, Y0
	VPOR    Y8, Y1, Y1
	MASK(Y6, DX)
	MASK(Y7, BX)

	// escapes: AX is runs, DI becomes the escaped bytes, R14 the escaped of the next state.
	ANDNQ R13, R10, AX
	LEAQ  (AX)(AX*1), DI
	ANDNQ AX, DI, R15
	ANDQ  R11, R15
	ANDNQ DI, AX, DI
	ANDQ  R11, DI
	XORL  R14, R14
	ADDQ  AX, R15
	ADCQ  $0, R14
	ANDNQ R15, AX, R15
	XORQ  R15, DI
	ORQ   R10, DI

	// parity: a product without carries, by a number with all bits, has at each place the sum
	// of the bits up to it. AX becomes the bytes that are in strings.
	ANDNQ      R12, DI, DI
	VMOVQ      DI, X2
	VPCLMULQDQ $0, X9, X2, X2
	VMOVQ      X2, AX
	XORQ       R9, AX

	// The rest is as in deepGeneric: R15 is the least depth.
	ANDNQ   DX, AX, DX
	ANDNQ   BX, AX, BX
	ANDNQ   R13, AX, DI
	JNZ     stopped
	POPCNTQ BX, DI
	MOVQ    R8, R15
	SUBQ    DI, R15
	CMPQ    R15, $2
	JLT     shallow

pass:
	POPCNTQ DX, DI
	LEAQ    (R15)(DI*1), R8
	SARQ    $63, AX
	MOVQ    AX, R9
	MOVQ    R14, R10
	ADDQ    $64, SI
	DECQ    CX
	JNZ     next
	JMP     done

shallow:
	MOVQ DX, DI
	ORQ  BX, DI
	JZ   pass

stopped:
	MOVQ stop+24(FP), DI
	MOVQ R12, 0(DI)
	MOVQ R13, 8(DI)
	MOVQ DX, 16(DI)
	MOVQ BX, 24(DI)

done:
	MOVQ s+0(FP), DI
	MOVQ R8, 0(DI)
	MOVQ R9, 8(DI)
	MOVQ R10, 16(DI)
	MOVQ blocks+16(FP), AX
	SUBQ CX, AX
	MOVQ AX, n+32(FP)
	VZEROUPPER
	RET
