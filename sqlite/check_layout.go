package sqlite

import (
	"fmt"
	"strings"
)

// layout lists the tables of a collection, from its row in tarn_collections: the identity
// ends with the statements that made them, for the id 0.
type layout struct {
	// made are the statements for the collection's own id.
	made []string
	// shown says that there are tables for SQL; wide are the wide columns of these, in
	// the order of the sums in tarn_objects.
	shown bool
	wide  []wideLayout
	lists []List
}

type wideLayout struct {
	name   string
	shared bool
}

func layoutOf(r collectionRow) layout {
	l := layout{made: []string{objectsDDL(r.id)}}
	_, ddl, shown := strings.Cut(r.identity, "\nCREATE TABLE ")
	if !shown {
		return l
	}
	l.shown = true
	id := fmt.Sprint(r.id)
	own := strings.NewReplacer("tarn_rows_0", "tarn_rows_"+id, "tarn_labels_0", "tarn_labels_"+id, "tarn_wide_0_", "tarn_wide_"+id+"_", "tarn_list_0_", "tarn_list_"+id+"_", "tarn_collections WHERE id = 0)", "tarn_collections WHERE id = "+id+")")
	prefix := wideTable(r.id, "")
	for sql := range strings.SplitSeq("CREATE TABLE "+ddl, ";\n") {
		sql = own.Replace(sql)
		l.made = append(l.made, sql)
		if list, ok := listOf(r.id, sql); ok {
			l.lists = append(l.lists, list)
			continue
		}
		kind, name := madeBy(sql)
		column, wide := strings.CutPrefix(name, prefix)
		if kind != "TABLE" || !wide {
			continue
		}
		if n := len(l.wide); n > 0 && column == l.wide[n-1].name+"_values" {
			l.wide[n-1].shared = true
			continue
		}
		l.wide = append(l.wide, wideLayout{name: column})
	}
	return l
}
