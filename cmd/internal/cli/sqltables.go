package cli

import (
	"fmt"
	"slices"

	"github.com/tarnproject/tarn/cmd/internal/mirror"
)

// tablesIn are the resources whose tables a statement names, and the names of all
// tables that there could be.
func tablesIn(catalog *mirror.Catalog, statement string) (wanted []mirror.Resource, tables []string) {
	all := catalog.All()
	for _, r := range all {
		tables = append(tables, mirror.SQLName(r))
	}
	named := mirror.NamedInSQL(statement, tables)
	for i, r := range all {
		if slices.Contains(named, tables[i]) {
			wanted = append(wanted, r)
		}
	}
	return wanted, tables
}

// tellUnwritten says of a table why it seems to be empty.
func (a *app) tellUnwritten(table string) {
	fmt.Fprintf(a.errOut, "%s: the first state is not all on disk yet.\n", table)
}
