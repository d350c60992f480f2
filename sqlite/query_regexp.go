package sqlite

import (
	"context"
	"fmt"
	"io"
	"regexp"
	"regexp/syntax"
	"unicode/utf8"

	"github.com/ncruces/go-sqlite3"
)

const (
	// longestExpression limits the bytes of a regular expression, and largestProgram
	// the instructions that it compiles to: (a{900}){9} is a few bytes and thousands of
	// instructions.
	longestExpression = 1_000
	largestProgram    = 10_000
	// quickMatch is the number of steps, bytes of the text times instructions, up to
	// which a match ignores ctx: some 50 ms at worst.
	quickMatch = 1 << 21
	// askEvery is the number of characters after which a longer match checks ctx.
	askEvery = 128
)

// expression is a compiled regular expression.
type expression struct {
	*regexp.Regexp
	instructions int
}

func compileExpression(text string) (*expression, error) {
	if len(text) > longestExpression {
		return nil, fmt.Errorf("a regular expression of %d bytes: REGEXP takes up to %d", len(text), longestExpression)
	}
	parsed, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return nil, err
	}
	program, err := syntax.Compile(parsed.Simplify())
	if err != nil {
		return nil, err
	}
	if n := len(program.Inst); n > largestProgram {
		return nil, fmt.Errorf("the regular expression %.40q is too large: %d instructions, and REGEXP takes up to %d; use fewer or smaller counts in braces", text, n, largestProgram)
	}
	compiled, err := regexp.Compile(text)
	return &expression{compiled, len(program.Inst)}, err
}

// match reports whether a text matches. It fails when ctx ends.
//
// Why not Match for all texts: it takes instructions times bytes, and cannot be
// stopped. Why not a reader for all: Match skips quickly to where a match can begin.
func (e *expression) match(ctx context.Context, text []byte) (bool, error) {
	if len(text)*e.instructions <= quickMatch {
		return e.Match(text), nil
	}
	r := &runes{ctx: ctx, text: text}
	found := e.MatchReader(r)
	if r.ended != nil {
		return false, r.ended
	}
	return found, nil
}

// runes reads a text until its end, or until ctx ends.
type runes struct {
	ctx   context.Context
	text  []byte
	read  int
	ended error
}

func (r *runes) ReadRune() (rune, int, error) {
	if r.read++; r.read%askEvery == 0 && r.ctx.Err() != nil {
		r.ended = sqlite3.INTERRUPT
	}
	if r.ended != nil || len(r.text) == 0 {
		return 0, 0, io.EOF
	}
	c, size := utf8.DecodeRune(r.text)
	r.text = r.text[size:]
	return c, size, nil
}

// matches implements REGEXP: the expression is its first argument. An expression that is
// the same for all rows is compiled once.
func matches(ctx context.Context, mode string) sqlite3.ScalarFunction {
	return func(call sqlite3.Context, args ...sqlite3.Value) {
		known, _ := call.GetAuxData(0).(*expression)
		if known == nil {
			var err error
			if known, err = compileExpression(mode + args[0].Text()); err != nil {
				call.ResultError(err)
				return
			}
			call.SetAuxData(0, known)
		}
		found, err := known.match(ctx, args[1].RawText())
		if err != nil {
			call.ResultError(err)
			return
		}
		call.ResultBool(found)
	}
}
