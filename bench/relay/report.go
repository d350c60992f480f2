package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/tarnproject/tarn/bench/report"
)

// text is the section of the page.
func (b *benchmark) text() string {
	var text strings.Builder
	machine := report.ThisMachine()
	fmt.Fprintf(&text, "%d real pods of %.1f KB on average in protobuf, over TLS, measured on %s with %d cores for everything (%s): the kube-apiserver, the relay, and the clients, which decode nothing. CPU is that of the server's process, without what the same writes cost it with one watch; memory is what its live heap and stacks grew by when the watches were opened. What a delivery costs without TLS is computed from profiles of the same rounds.\n\n",
		len(b.writer.keys), float64(b.writer.bytes)/float64(len(b.writer.keys))/1000, time.Now().Format("2 January 2006"), machine.Cores, machine.CPU)
	text.WriteString("| who serves, whom | CPU of a delivery | memory of a watch | |\n| --- | ---: | ---: | --- |\n")
	for _, line := range b.lines {
		text.WriteString(line + "\n")
	}
	return text.String()
}
