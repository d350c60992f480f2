package sqlite

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"unicode/utf8"

	"github.com/ncruces/go-sqlite3"
)

// quickFunctions replaces the SQLite functions that compare each byte of one text with
// each of another: a single instr of two long texts would run for days.
//
// The results are those of SQLite, except that regular expressions are Go's.
func quickFunctions(ctx context.Context, conn *sqlite3.Conn) error {
	const flags = sqlite3.DETERMINISTIC | sqlite3.INNOCUOUS
	return errors.Join(
		conn.CreateFunction("instr", 2, flags, unlessNull(instr)),
		conn.CreateFunction("replace", 3, flags, replace),
		conn.CreateFunction("trim", 2, flags, unlessNull(trimmed(strings.TrimFunc))),
		conn.CreateFunction("ltrim", 2, flags, unlessNull(trimmed(strings.TrimLeftFunc))),
		conn.CreateFunction("rtrim", 2, flags, unlessNull(trimmed(strings.TrimRightFunc))),
		conn.CreateFunction("regexp", 2, flags, unlessNull(matches(ctx, ""))),
		conn.CreateFunction("regexpi", 2, flags, unlessNull(matches(ctx, "(?i)"))),
	)
}

// unlessNull wraps a function to return NULL for a NULL argument.
func unlessNull(f sqlite3.ScalarFunction) sqlite3.ScalarFunction {
	return func(ctx sqlite3.Context, args ...sqlite3.Value) {
		for _, arg := range args {
			if arg.Type() == sqlite3.NULL {
				return
			}
		}
		f(ctx, args...)
	}
}

// instr is the position of a text in another, from 1, in characters, or in bytes for
// blobs; 0 if it is not there.
func instr(ctx sqlite3.Context, args ...sqlite3.Value) {
	blobs := args[0].Type() == sqlite3.BLOB && args[1].Type() == sqlite3.BLOB
	bytesOf := sqlite3.Value.RawText
	if blobs {
		bytesOf = sqlite3.Value.RawBlob
	}
	hay := bytesOf(args[0])
	at := bytes.Index(hay, bytesOf(args[1]))
	if at > 0 && !blobs {
		at = utf8.RuneCount(hay[:at])
	}
	ctx.ResultInt(at + 1)
}

// replace replaces all occurrences of a text. An empty text, or one that begins with a
// NUL byte, does not occur.
func replace(ctx sqlite3.Context, args ...sqlite3.Value) {
	if args[0].Type() == sqlite3.NULL || args[1].Type() == sqlite3.NULL {
		return
	}
	text, old, put := args[0].RawText(), args[1].RawText(), args[2].RawText()
	switch {
	case len(old) == 0 || old[0] == 0:
		ctx.ResultRawText(text)
	case args[2].Type() == sqlite3.NULL:
	case len(text)+bytes.Count(text, old)*(len(put)-len(old)) > longestValue:
		ctx.ResultError(sqlite3.TOOBIG)
	default:
		ctx.ResultRawText(bytes.ReplaceAll(text, old, put))
	}
}

// trimmed is a text without certain characters at its ends.
func trimmed(trim func(string, func(rune) bool) string) sqlite3.ScalarFunction {
	return func(ctx sqlite3.Context, args ...sqlite3.Value) {
		chars := map[rune]bool{}
		all, _, _ := strings.Cut(args[1].Text(), "\x00")
		for _, r := range all {
			chars[r] = true
		}
		ctx.ResultText(trim(args[0].Text(), func(r rune) bool { return chars[r] }))
	}
}
