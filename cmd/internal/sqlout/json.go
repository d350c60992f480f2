package sqlout

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"fmt"
	"math"
	"strconv"
	"unicode/utf8"

	"github.com/tarnproject/tarn/sqlite"
)

// WriteJSON writes a value of a [sqlite.RowWriter] as JSON. Bytes are written in base64, numbers
// that JSON does not have as null, bytes that are no UTF-8 as U+FFFD. It holds
// nothing: a value of 8 MiB of control characters is 48 MiB of JSON.
func WriteJSON(w *bufio.Writer, v any) error {
	var err error
	switch v := v.(type) {
	case nil:
		_, err = w.WriteString("null")
	case int64:
		_, err = w.Write(strconv.AppendInt(w.AvailableBuffer(), v, 10))
	case float64:
		if math.IsInf(v, 0) || math.IsNaN(v) {
			_, err = w.WriteString("null")
			break
		}
		_, err = w.Write(strconv.AppendFloat(w.AvailableBuffer(), v, floatFormat(v), -1, 64))
	case sqlite.Text:
		err = writeJSONText(w, v)
	case string:
		err = writeJSONText(w, []byte(v))
	case []byte:
		w.WriteByte('"')
		e := base64.NewEncoder(base64.StdEncoding, w)
		e.Write(v)
		e.Close()
		err = w.WriteByte('"') // also returns earlier errors
	}
	return err
}

// floatFormat is that of strconv: without an exponent where that can be read, such as in
// times in Unix seconds.
func floatFormat(v float64) byte {
	if size := math.Abs(v); size != 0 && (size < 1e-6 || size >= 1e21) {
		return 'e'
	}
	return 'f'
}

// jsonEscapes are the escapes of characters that JSON does not allow in texts.
var jsonEscapes = func() (all [128]string) {
	for c := range 0x20 {
		all[c] = fmt.Sprintf(`\u%04x`, c)
	}
	all['\n'], all['\r'], all['\t'], all['"'], all['\\'] = `\n`, `\r`, `\t`, `\"`, `\\`
	return all
}()

func writeJSONText(w *bufio.Writer, text []byte) error {
	w.WriteByte('"')
	from := 0
	for at := 0; at < len(text); {
		c, size := utf8.DecodeRune(text[at:])
		escape := ""
		switch {
		case c < 128:
			escape = jsonEscapes[c]
		case c == utf8.RuneError && size == 1:
			escape = `\ufffd`
		}
		if escape != "" {
			w.Write(text[from:at])
			w.WriteString(escape)
			from = at + size
		}
		at += size
	}
	w.Write(text[from:])
	return w.WriteByte('"') // also returns earlier errors
}

func jsonName(name string) []byte {
	var b bytes.Buffer
	w := bufio.NewWriter(&b)
	_ = writeJSONText(w, []byte(name)) // memory takes everything
	w.WriteString(": ")
	_ = w.Flush()
	return b.Bytes()
}
